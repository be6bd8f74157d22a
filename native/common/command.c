/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "command.h"

void fail(int status, const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "%s: ", program);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	exit(status);
}

uint64_t count_option(const char *option, const char *text, uint64_t min, uint64_t max)
{
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	/* strtoull() takes blanks and signs. */
	if (text[0] < '0' || text[0] > '9' || *end || errno || value < min || value > max)
		fail(EXIT_USAGE, "--%s is '%s', give a whole number from %llu to %llu", option, text,
		     (unsigned long long)min, (unsigned long long)max);
	return value;
}

double number_option(const char *option, const char *text, double min, double max)
{
	double value;
	char *end;

	errno = 0;
	value = strtod(text, &end);
	/* strtod() takes blanks, signs, hexadecimals, "nan" and "inf" too. */
	if (text[strspn(text, "0123456789.e-")] || text[0] < '.' || *end || end == text || errno || value < min ||
	    value > max)
		fail(EXIT_USAGE, "--%s is '%s', give a number from %g to %g", option, text, min, max);
	return value;
}

struct sockaddr_in address_option(const char *option, const char *text)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	const char *colon = strchr(text, ':');
	char host[INET_ADDRSTRLEN] = "", *end = NULL;
	unsigned long port = 0;

	if (colon && (size_t)(colon - text) < sizeof(host)) {
		memcpy(host, text, (size_t)(colon - text));
		if (colon[1] >= '0' && colon[1] <= '9')
			port = strtoul(colon + 1, &end, 10);
	}
	if (!port || port > UINT16_MAX || *end || inet_pton(AF_INET, host, &address.sin_addr) != 1)
		fail(EXIT_USAGE, "--%s has '%s', give an IPv4 address and a port, as in 10.0.0.1:11211", option, text);
	address.sin_port = htons((uint16_t)port);
	return address;
}

void refuse_option(int answer, char **argv, int index, int character)
{
	const char *word = argv[index - 1];

	/* An option that is known by its letter is one that needs a value or, if it is long, takes none. */
	if (answer == ':')
		fail(EXIT_USAGE, "%s stands without a value, give it one", word);
	if (character > ' ' && strncmp(word, "--", 2) == 0)
		fail(EXIT_USAGE, "%s takes no value, leave that out", word);
	fail(EXIT_USAGE, "there is no option %s, see %s --help", word, program);
}

const char *address_text(const struct sockaddr_in *address)
{
	static char buffers[4][INET_ADDRSTRLEN + sizeof(":65535")];
	static unsigned int turn;
	char host[INET_ADDRSTRLEN];
	char *buffer = buffers[turn++ % 4];

	inet_ntop(AF_INET, &address->sin_addr, host, sizeof(host));
	snprintf(buffer, sizeof(buffers[0]), "%s:%u", host, ntohs(address->sin_port));
	return buffer;
}

uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

int open_stop(void)
{
	sigset_t signals;
	int fd;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	fd = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
	if (fd < 0)
		fail(EXIT_FAILED, "no descriptor for signals: %s", strerror(errno));
	return fd;
}

void alarm_open(struct alarm *alarm, int epoll)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.ptr = NULL };

	alarm->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	alarm->at = NEVER;
	if (alarm->fd < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, alarm->fd, &event))
		fail(EXIT_FAILED, "no timer: %s", strerror(errno));
}

void alarm_set(struct alarm *alarm, uint64_t at)
{
	struct itimerspec when = { 0 };

	if (at == alarm->at)
		return;
	alarm->at = at;
	if (at != NEVER) {
		when.it_value.tv_sec = (time_t)(at / NS_PER_S);
		when.it_value.tv_nsec = (long)(at % NS_PER_S);
	}
	timerfd_settime(alarm->fd, TFD_TIMER_ABSTIME, &when, NULL);
}

int connect_to(const struct sockaddr_in *address)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1, error;

	if (fd < 0)
		return -1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 || errno == EINPROGRESS)
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

int socket_error(int fd)
{
	int error = 0;
	socklen_t size = sizeof(error);

	getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
	return error;
}

FILE *open_output(const char *path)
{
	FILE *file = path ? fopen(path, "we") : stdout;

	if (!file)
		fail(EXIT_FAILED, "cannot write --output %s: %s", path, strerror(errno));
	return file;
}

void close_output(FILE *file, const char *path)
{
	int bad = ferror(file);

	if (fclose(file) || bad)
		fail(EXIT_FAILED, "cannot write %s%s: %s", path ? "--output " : "stdout", path ? path : "",
		     strerror(errno));
}

void write_row(FILE *file, const uint64_t *values, int count)
{
	char row[16 * 21], *at = row + sizeof(row);

	for (int i = count - 1; i >= 0; i--) {
		uint64_t left = values[i];

		*--at = i == count - 1 ? '\n' : ' ';
		do
			*--at = (char)('0' + left % 10);
		while (left /= 10);
	}
	fwrite_unlocked(at, 1, (size_t)(row + sizeof(row) - at), file);
}

void *allocate(size_t count, size_t size)
{
	size_t bytes;
	void *memory = MAP_FAILED;

	errno = ENOMEM;
	if (!__builtin_mul_overflow(count, size, &bytes) && bytes < SIZE_MAX / 2)
		memory = mmap(NULL, bytes + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1,
			      0);
	if (memory == MAP_FAILED)
		fail(EXIT_FAILED, "no memory for %zu times %zu bytes: %s", count, size, strerror(errno));
	return memory;
}
