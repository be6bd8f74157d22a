/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

#define MAX_SETTINGS 30
enum { HELP = 256, FIRST_SETTING }; /* values for getopt_long() outside the range of characters */

__attribute__((format(printf, 2, 0), noreturn)) static void end(int status, const char *format,
    va_list arguments)
{
	fprintf(stderr, "%s: ", program);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	exit(status);
}

void refuse(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	end(EXIT_USAGE, format, arguments);
}

void fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	end(EXIT_FAILED, format, arguments);
}

/* Parse a decimal number from min to max, without sign or blanks. */
static bool parse_number(const char *text, size_t length, int64_t min, int64_t max, int64_t *number)
{
	int64_t value = 0;

	for (size_t i = 0; i < length; i++) {
		int digit = text[i] - '0';

		if (digit < 0 || digit > 9 || value > (max - digit) / 10)
			return false;
		value = 10 * value + digit;
	}
	*number = value;
	return length > 0 && value >= min && value <= max;
}

static bool parse_real(const char *text, double min, double max, double *real)
{
	char *rest;

	errno = 0;
	*real = strtod(text, &rest);
	/* strtod() also accepts blanks, signs, hexadecimal numbers, "nan" and "inf". */
	return text[0] >= '.' && !text[strspn(text, "0123456789.e-")] && !*rest && rest != text &&
	    !errno &&
	       *real >= min && *real <= max;
}

static bool parse_host(const char *text, size_t length, struct sockaddr_in *address)
{
	char host[INET_ADDRSTRLEN];

	if (length >= sizeof(host))
		return false;
	memcpy(host, text, length);
	host[length] = '\0';
	*address = (struct sockaddr_in){ .sin_family = AF_INET };
	return inet_pton(AF_INET, host, &address->sin_addr) == 1;
}

/* False for "this host", multicast and broadcast addresses. */
static bool is_one_host(const struct sockaddr_in *address)
{
	const uint32_t host = ntohl(address->sin_addr.s_addr);

	return host >> 24 != 0 && !IN_MULTICAST(host) && !IN_BADCLASS(host);
}

static bool parse_address(const char *text, size_t length, struct sockaddr_in *address)
{
	const char *colon = memchr(text, ':', length);
	size_t host_length;
	int64_t port;

	if (!colon)
		return false;
	host_length = (size_t)(colon - text);
	if (!parse_host(text, host_length, address) ||
	    !parse_number(colon + 1, length - host_length - 1, 1, UINT16_MAX, &port))
		return false;
	address->sin_port = htons((uint16_t)port);
	return true;
}

static bool parse_addresses(const char *text, struct setting *setting)
{
	for (setting->number = 0; setting->number < setting->max; text++) {
		size_t length = strcspn(text, ",");

		if (!parse_address(text, length, &setting->addresses[setting->number++]))
			return false;
		text += length;
		if (!*text)
			return true;
	}
	return false;
}

static bool parse_choice(const char *text, struct setting *setting)
{
	setting->number = 0;
	while (setting->choices[setting->number] && strcmp(setting->choices[setting->number], text) != 0)
		setting->number++;
	return setting->choices[setting->number];
}

__attribute__((noreturn)) static void refuse_choice(const struct setting *setting, const char *text)
{
	char list[200] = "";

	for (const char *const *choice = setting->choices; *choice; choice++)
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s", *choice,
			 !choice[1] ? "" : choice[2] ? ", " : " or ");
	refuse("--%s must be %s (got '%s')", setting->name, list, text);
}

static void set(struct setting *setting, const char *text)
{
	switch (setting->kind) {
	case SETTING_NUMBER:
		if (!parse_number(text, strlen(text), setting->min, setting->max, &setting->number))
			refuse("--%s must be a whole number from %lld to %lld (got '%s')", setting->name,
			       (long long)setting->min, (long long)setting->max, text);
		break;
	case SETTING_REAL:
		if (!parse_real(text, setting->real.min, setting->real.max, &setting->real.value))
			refuse("--%s must be a number from %g to %g (got '%s')", setting->name, setting->real.min,
			       setting->real.max, text);
		break;
	case SETTING_CHOICE:
		if (!parse_choice(text, setting))
			refuse_choice(setting, text);
		break;
	case SETTING_ADDRESSES:
		if (parse_addresses(text, setting))
			break;
		if (setting->max == 1)
			refuse("--%s must be an IPv4 address and a port, as in 10.0.0.1:7000 (got '%s')", setting->name,
			       text);
		refuse("--%s must be 1 to %lld IPv4 addresses with ports, as in 10.0.0.1:7000,10.0.0.2:7000 (got '%s')",
		       setting->name, (long long)setting->max, text);
	case SETTING_HOST:
		if (!parse_host(text, strlen(text), setting->addresses) || !is_one_host(setting->addresses))
			refuse("--%s must be the IPv4 address of a host, as in 10.0.0.1 (got '%s')", setting->name,
			    text);
		break;
	case SETTING_FLAG:
		setting->number = 1;
		text = "";
		break;
	default:
		break;
	}
	setting->text = text;
}

/* answer: '?' or ':', as returned by getopt_long(). */
__attribute__((noreturn)) static void refuse_option(int answer, const char *word)
{
	if (answer == ':')
		refuse("%s needs a value", word);
	if (optopt >= HELP)
		refuse("%s does not take a value", word);
	if (optopt)
		refuse("unknown option -%c, see --help", optopt);
	refuse("unknown option %s, see --help", word);
}

void read_options(int argc, char **argv, struct setting *settings, const char *help)
{
	struct option options[MAX_SETTINGS + 2] = { { "help", no_argument, NULL, HELP } };
	int option;

	for (int i = 0; settings[i].kind != SETTING_END; i++)
		options[1 + i] = (struct option){
			.name = settings[i].name,
			.has_arg = settings[i].kind == SETTING_FLAG ? no_argument : required_argument,
			.val = FIRST_SETTING + i,
		};
	opterr = 0;
	while ((option = getopt_long(argc, argv, ":", options, NULL)) != -1) {
		if (option == HELP) {
			fputs(help, stdout);
			exit(fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILED);
		}
		if (option < FIRST_SETTING)
			refuse_option(option, argv[optind - 1]);
		set(&settings[option - FIRST_SETTING], optarg);
	}
	if (optind < argc)
		refuse("unexpected argument '%s', see --help", argv[optind]);
	for (; settings->kind != SETTING_END; settings++)
		if (settings->required && !settings->text)
			refuse("--%s is required", settings->name);
}

int run_role(int argc, char **argv, const struct role *roles)
{
	const char *word = argc > 1 ? argv[1] : "";

	for (const struct role *role = roles; role->name; role++)
		if (strcmp(role->name, word) == 0)
			return role->run(argc - 1, argv + 1);
	refuse("expected %s or %s as the first word (got '%s'); see --help after it", roles[0].name,
	    roles[1].name,
	       word);
}
