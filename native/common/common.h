/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Code shared by the traffic generators: the command line, the log, waiting, sockets and random
 * numbers.
 *
 * All hosts run on a single processor. So no program spins, allocates or writes while it measures:
 * a log is allocated and touched beforehand, and written at the end. Times are in nanoseconds of
 * CLOCK_MONOTONIC, which is the same clock in all network namespaces.
 */
#ifndef QJUMP_MN_COMMON_H
#define QJUMP_MN_COMMON_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NS_PER_S 1000000000LL
#define NEVER INT64_MAX
#define MAX_NS (86400 * NS_PER_S) /* longest time in an option: no sum of times overflows */

/* Name of the program, which each program defines. */
extern const char program[];

/* --- the command line (options.c) --- */

enum { EXIT_FAILED = 1, EXIT_USAGE = 2 };

/*
 * Print "PROGRAM: MESSAGE" on stderr and exit: refuse() by EXIT_USAGE, fail() by EXIT_FAILED
 * without a log.
 */
__attribute__((format(printf, 1, 2), noreturn)) void refuse(const char *format, ...);
__attribute__((format(printf, 1, 2), noreturn)) void fail(const char *format, ...);

enum setting_kind {
	SETTING_END,
	SETTING_NUMBER,
	SETTING_REAL,
	SETTING_CHOICE, /* one of a list of words */
	SETTING_ADDRESSES, /* ADDRESS:PORT,..., IPv4 */
	SETTING_HOST, /* ADDRESS of one host, IPv4, without a port */
	SETTING_FLAG,
	SETTING_OUTPUT, /* a file; not repeated in the log */
};

struct setting {
	const char *name; /* without "--"; also the key in the first line of the log */
	enum setting_kind kind;
	int64_t number; /* default, then value, index of choice, count of addresses, or flag */
	int64_t min, max; /* of a number; max: also of addresses */
	struct {
		double value, min, max;
	} real; /* the same for SETTING_REAL */
	const char *const *choices; /* terminated by NULL */
	struct sockaddr_in *addresses; /* output, room for `max` */
	bool required;
	const char *text; /* as given on the command line, or NULL */
};

/*
 * Parse a command line (without argv[0]), and handle --help; refuse wrong, missing and surplus
 * arguments. If an option is repeated, the last one counts.
 */
void read_options(int argc, char **argv, struct setting *settings, const char *help);

/* A role of a program, selected by the first word of its command line; there are two. */
struct role {
	const char *name; /* NULL terminates the list */
	int (*run)(int argc, char **argv);
};

int run_role(int argc, char **argv, const struct role *roles);

/* --- the log (log.c) --- */

struct total {
	const char *name; /* NULL terminates an array of them */
	int64_t value;
};

/* Open the output, stdout if path is NULL. Call it before measuring, to report errors early. */
void open_output(const char *path);
/* Write "# PROGRAM 1 role=ROLE name=value ..." (no role if NULL) and "# columns ...". */
void write_start(const char *role, const struct setting *settings, const char *columns);
/*
 * Write non-negative cells; fprintf() costs three times as much while other programs still measure.
 */
void write_row(const int64_t *cells, size_t count);
/* Write "# end rows=N early=0|1 name=value ..." and close the log. */
void write_end(size_t rows, bool early, const struct total *totals);

/* A preallocated table that rows are appended to. */
struct table {
	int64_t *cells; /* in row-major order */
	size_t columns, capacity, rows;
};

void table_allocate(struct table *table, size_t columns, size_t capacity);
/* Append a row for the caller to fill. A full table is a failure:
   "...; increase it with --OPTION". */
int64_t *table_row(struct table *table, const char *option);
void write_table(const struct table *table);

/* Allocate zeroed and populated memory, so that no page fault occurs during the measurement. */
void *allocate(size_t count, size_t size);

/* --- clocks and waiting (wait.c) --- */

int64_t now_ns(void);
int64_t realtime_ns(void); /* CLOCK_REALTIME, the clock of the kernel's time stamps */

/*
 * Two descriptors, for wait_for() or an epoll set. The timer is a timerfd, because only that is
 * exact: the kernel lets poll(2) and epoll_wait(2) oversleep by a thousandth of their timeout (25
 * us in 25 ms), and clock_nanosleep(2) by the timer slack of 50 us.
 */
struct waiter {
	int signals; /* readable after SIGTERM or SIGINT, which have no other effect */
	int timer; /* readable from armed_ns on; never read, as re-arming makes it unreadable */
	int64_t armed_ns; /* NEVER if not armed */
};

enum wake { WAKE_SIGNAL, WAKE_READY, WAKE_TIME };

void waiter_open(struct waiter *waiter);
/* Arm the timer unless it is armed for this time; a time in the past expires at once. */
void waiter_arm(struct waiter *waiter, int64_t at_ns);
/*
 * Wait for a signal, an event on fd (-1: none) or a time (NEVER: none); report the first in this
 * order.
 */
enum wake wait_for(struct waiter *waiter, int fd, short events, int64_t until_ns);

/* --- sockets (socket.c) --- */

/* Format as "10.0.0.1:11211", in one of four static buffers in turn. */
const char *address_text(const struct sockaddr_in *address);
/* Start to connect a non-blocking TCP socket without Nagle's delay; -1 with errno on failure. */
int connect_to(const struct sockaddr_in *address);
/* Accept a connection, non-blocking and without Nagle's delay; -1 with errno on failure. */
int accept_from(int listener);
/* Return the pending error of a socket, as after a non-blocking connect(), or 0. */
int socket_error(int fd);
/* Return how many packets were dropped because the receive buffer of a socket was full. */
uint32_t socket_overflowed(int fd);

/* --- random numbers --- */

/*
 * Return the n-th random number of the sequence with this seed: a Weyl sequence and a bit mixer
 * (splitmix64). It is a function of seed and n, so users of the same sequence do not affect each
 * other.
 */
static inline uint64_t draw(uint64_t seed, uint64_t n)
{
	uint64_t z = seed + (n + 1) * 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

#endif
