/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the load programs have in common: options, errors, time, random numbers, their log's file. Each program's folder
 * has links to these files, so that it is built from itself alone.
 */
#ifndef QJUMP_MN_COMMAND_H
#define QJUMP_MN_COMMAND_H

#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>

#define NS_PER_S 1000000000ULL
#define NEVER UINT64_MAX

enum { EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* Each program says what it is called. */
extern const char program[];

/* End with "program: SENTENCE" on stderr. */
__attribute__((format(printf, 2, 3), noreturn)) void fail(int status, const char *format, ...);

/* Options: each refuses a wrong text with a sentence that names the option, and exit status 2. */
uint64_t count_option(const char *option, const char *text, uint64_t min, uint64_t max);
double number_option(const char *option, const char *text, double min, double max);
struct sockaddr_in address_option(const char *option, const char *text);

/* For getopt_long()'s '?' and ':', with opterr 0: refuse it. */
__attribute__((noreturn)) void refuse_option(int answer, char **argv, int index, int character);

/* "10.0.0.1:11211", in one of four buffers by turns */
const char *address_text(const struct sockaddr_in *address);

/* CLOCK_MONOTONIC */
uint64_t now_ns(void);

/* A descriptor that becomes readable on SIGTERM and SIGINT, which do nothing else from now on. */
int open_stop(void);

/*
 * A timer on CLOCK_MONOTONIC whose descriptor waits in an epoll set, edge-triggered, and is never read. epoll's own
 * timeout may come late by 50 us or a thousandth of itself (the kernel's timer slack); a timerfd comes in time.
 */
struct alarm {
	int fd;
	uint64_t at; /* ns; NEVER: not set */
};

void alarm_open(struct alarm *alarm, int epoll);
void alarm_set(struct alarm *alarm, uint64_t at);

/* A TCP socket, non-blocking, without Nagle's delay, being connected to an address; -1 with errno if that failed already */
int connect_to(const struct sockaddr_in *address);

/* The socket's pending error, as after a non-blocking connect(); 0 if there is none */
int socket_error(int fd);

/* The file for a run's results (stdout without a path), opened before the run: what cannot be written is told then. */
FILE *open_output(const char *path);
void close_output(FILE *file, const char *path);

/* A row of integers and a newline, as fprintf() would write it at three times the cost */
void write_row(FILE *file, const uint64_t *values, int count);

/* Zeroed pages that are there before they are used */
void *allocate(size_t count, size_t size);

/*
 * The n-th number of the sequence that a seed starts: a Weyl sequence behind a bit mixer (the construction known as
 * splitmix64). A number is a function of seed and place, so that nobody who draws disturbs another's numbers.
 */
static inline uint64_t draw(uint64_t seed, uint64_t n)
{
	uint64_t z = seed + (n + 1) * 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

#endif
