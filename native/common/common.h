/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the programs that make traffic share: the command line, the log, waits, sockets and random numbers.
 *
 * They run on a machine with one processor, where one instruction takes one nanosecond and which carries every host. So
 * none of them spins, allocates or writes while it measures: a log is allocated and touched beforehand, and written at
 * the end. Times are nanoseconds of CLOCK_MONOTONIC, which is one clock for all network namespaces.
 */
#ifndef QJUMP_MN_COMMON_H
#define QJUMP_MN_COMMON_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NS_PER_S 1000000000LL
#define NEVER INT64_MAX
#define LONGEST_NS (86400 * NS_PER_S) /* of any time given by an option: a day, so that times never overflow */

/* What a program is called, which it says itself */
extern const char program[];

/* --- the command line (options.c) --- */

enum { EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* "program: SENTENCE" on stderr; the end. What it was asked: EXIT_USAGE. What happened: EXIT_FAILED, and no log. */
__attribute__((format(printf, 1, 2), noreturn)) void refuse(const char *format, ...);
__attribute__((format(printf, 1, 2), noreturn)) void fail(const char *format, ...);

enum setting_kind {
	SETTING_END,
	SETTING_NUMBER,
	SETTING_REAL,
	SETTING_CHOICE, /* one of some words */
	SETTING_ADDRESSES, /* ADDRESS:PORT,... of IPv4 */
	SETTING_HOST, /* ADDRESS of IPv4, of one host, without a port */
	SETTING_FLAG,
	SETTING_OUTPUT, /* a file; not in the log */
};

struct setting {
	const char *name; /* without "--"; also its key in the log's first line */
	enum setting_kind kind;
	int64_t number; /* the default, then the value; of a choice its place; how many addresses; 1 if a flag was given */
	int64_t least, most; /* numbers; addresses: how many at most */
	struct {
		double value, least, most;
	} real; /* instead */
	const char *const *choices; /* up to NULL */
	struct sockaddr_in *addresses; /* where they are put */
	bool required;
	const char *text; /* as given; NULL if it was not */
};

/*
 * Read a command line, whose first word is not looked at, and --help; refuse what is wrong, missing or left over. Of an
 * option that is given twice the last one counts.
 */
void read_options(int argc, char **argv, struct setting *settings, const char *help);

/* A program's role is its first word, one of two. */
struct role {
	const char *name; /* NULL after them */
	int (*run)(int argc, char **argv);
};

int run_role(int argc, char **argv, const struct role *roles);

/* --- the log (log.c) --- */

struct total {
	const char *name; /* NULL after the last one */
	int64_t value;
};

/* Open the file, or stdout without a path: before anything is measured, so that what cannot be written is told then. */
void open_output(const char *path);
/* "# PROGRAM 1 role=ROLE name=value ...", without a role if it is NULL; "# columns ..." */
void write_start(const char *role, const struct setting *settings, const char *columns);
/* As fprintf() would write it at three times the cost: others may still measure. No cell is negative. */
void write_row(const int64_t *cells, size_t count);
/* "# end rows=N early=0|1 name=value ...", and close */
void write_end(size_t rows, bool early, const struct total *totals);

/* Rows that are only added. */
struct table {
	int64_t *cells; /* row by row */
	size_t columns, capacity, rows;
};

void table_allocate(struct table *table, size_t columns, size_t capacity);
/* The next row, to be filled. If there is none the run fails: "..., give more by --OPTION" */
int64_t *table_row(struct table *table, const char *option);
void write_table(const struct table *table);

/* Zeroed pages that are there before they are used: no fault falls into what is measured. */
void *allocate(size_t count, size_t size);

/* --- the clock, and waits (wait.c) --- */

int64_t now_ns(void);
int64_t realtime_ns(void); /* of CLOCK_REALTIME, which the kernel's time stamps have */

/*
 * Two descriptors, for wait_for() or an epoll set. The timer is a timerfd, since it alone is exact: the kernel lets poll(2)
 * and epoll_wait(2) oversleep by a thousandth of their timeout (25 us in 25 ms), and clock_nanosleep(2) by the timer
 * slack of 50 us.
 */
struct waiter {
	int signals; /* readable after SIGTERM or SIGINT, which do nothing else from now on */
	int timer; /* readable from armed_ns on; never read, as arming it again takes that back */
	int64_t armed_ns; /* NEVER: not armed */
};

enum wake { WAKE_SIGNAL, WAKE_READY, WAKE_TIME };

void waiter_open(struct waiter *waiter);
/* Arm the timer, if it is not already for this time; one in the past is over at once. */
void waiter_arm(struct waiter *waiter, int64_t at_ns);
/* Sleep until a signal, one of the events of the descriptor (-1: none), or a time (NEVER: none), in this order. */
enum wake wait_for(struct waiter *waiter, int fd, short events, int64_t until_ns);

/* --- sockets (socket.c) --- */

/* "10.0.0.1:11211", in one of four buffers by turns */
const char *address_text(const struct sockaddr_in *address);
/* A TCP socket, non-blocking, without Nagle's delay, being connected; -1 with errno if that has failed already */
int connect_to(const struct sockaddr_in *address);
/* The next connection of a listener, likewise; -1 with errno */
int accept_from(int listener);
/* A socket's pending error, as after a non-blocking connect(); 0 if there is none */
int socket_error(int fd);
/* How many packets a socket's receive buffer had no room for */
uint32_t socket_overflowed(int fd);

/* --- random numbers --- */

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
