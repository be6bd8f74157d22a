/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include "measure.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_SETTINGS 16

static void say(const char *format, va_list arguments)
{
	fprintf(stderr, "%s: ", program_invocation_short_name);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
}

void refuse(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	say(format, arguments);
	va_end(arguments);
	exit(EXIT_USAGE);
}

void fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	say(format, arguments);
	va_end(arguments);
	exit(EXIT_FAILED);
}

/* A whole decimal number without sign, blank or rest, from least to most. */
static bool parse_number(const char *text, size_t length, int64_t least, int64_t most, int64_t *number)
{
	int64_t value = 0;

	for (size_t i = 0; i < length; i++) {
		int digit = text[i] - '0';

		if (digit < 0 || digit > 9 || value > (most - digit) / 10)
			return false;
		value = 10 * value + digit;
	}
	*number = value;
	return length > 0 && value >= least;
}

bool parse_address(const char *text, size_t length, struct sockaddr_in *address)
{
	const char *colon = memchr(text, ':', length);
	char host[INET_ADDRSTRLEN];
	size_t host_length;
	int64_t port;

	if (!colon)
		return false;
	host_length = (size_t)(colon - text);
	if (host_length >= sizeof(host) || !parse_number(colon + 1, length - host_length - 1, 1, UINT16_MAX, &port))
		return false;
	memcpy(host, text, host_length);
	host[host_length] = '\0';
	memset(address, 0, sizeof(*address));
	address->sin_family = AF_INET;
	address->sin_port = htons((uint16_t)port);
	return inet_pton(AF_INET, host, &address->sin_addr) == 1;
}

static void set(struct setting *setting, const char *text)
{
	setting->text = text;
	switch (setting->kind) {
	case SETTING_NUMBER:
		if (!parse_number(text, strlen(text), setting->least, setting->most, &setting->number))
			refuse("--%s '%s' is not %s from %lld to %lld; see --help", setting->name, text, setting->unit,
			       (long long)setting->least, (long long)setting->most);
		break;
	case SETTING_ADDRESS:
		if (!parse_address(text, strlen(text), &setting->address))
			refuse("--%s '%s' is not an IPv4 address and a port; give them as in 10.0.0.10:5000", setting->name, text);
		break;
	case SETTING_TEXT: /* one word, so that the log's first line can be taken apart */
		if (*text == '\0' || strpbrk(text, " \t\n"))
			refuse("--%s '%s' is not %s; see --help", setting->name, text, setting->unit);
		break;
	default:
		setting->number = 1;
	}
}

void read_options(int argc, char **argv, struct setting *settings, const char *help)
{
	struct option options[MOST_SETTINGS + 3] = { { "help", no_argument, NULL, 'h' }, { "output", required_argument, NULL, 'o' } };
	const char *output = NULL;
	int count = 0, option;

	for (; settings[count].kind != SETTING_END; count++) {
		options[2 + count].name = settings[count].name;
		options[2 + count].has_arg = settings[count].kind == SETTING_FLAG ? no_argument : required_argument;
		options[2 + count].val = 256 + count;
	}
	opterr = 0;
	while ((option = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		switch (option) {
		case 'h':
			fputs(help, stdout);
			exit(fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILED);
		case 'o':
			output = optarg;
			break;
		case ':':
			refuse("option %s lacks its value; see --help", argv[optind - 1]);
		case '?':
			refuse("there is no option %s, or it takes no value; see --help", argv[optind - 1]);
		default:
			set(&settings[option - 256], optarg);
		}
	}
	if (optind < argc)
		refuse("'%s' is left over after the options; see --help", argv[optind]);
	for (int i = 0; i < count; i++)
		if (settings[i].required && !settings[i].text)
			refuse("--%s is missing; see --help", settings[i].name);
	open_output(output);
}
