/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the programs that measure share: options, sentences, waits and the log.
 *
 * They run on a machine with one processor, where one instruction takes one nanosecond and which carries every host. So
 * none of them spins, allocates or writes while it measures: a log is allocated and touched beforehand, and written at
 * the end. Times are nanoseconds of CLOCK_MONOTONIC, which is one clock for all network namespaces.
 */
#ifndef MEASURE_H
#define MEASURE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NS_PER_S 1000000000LL
#define NEVER INT64_MAX
#define LONGEST_NS (86400 * NS_PER_S) /* of any time given by an option: a day */
#define MOST_ROWS 4000000	      /* of a log: 224 MB at seven columns */

enum { EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* --- what is said (options.c) --- */

/* One sentence on stderr; the end. What it was asked: EXIT_USAGE. What happened: EXIT_FAILED, and no log is written. */
__attribute__((format(printf, 1, 2), noreturn)) void refuse(const char *format, ...);
__attribute__((format(printf, 1, 2), noreturn)) void fail(const char *format, ...);

/* --- options (options.c) --- */

enum setting_kind { SETTING_END, SETTING_NUMBER, SETTING_ADDRESS, SETTING_TEXT, SETTING_FLAG };

struct setting {
	const char *name; /* without "--"; also its key in the log's first line */
	enum setting_kind kind;
	const char *unit;	   /* numbers: "a number of nanoseconds"; texts: what they must be */
	int64_t number;		   /* numbers: the default, then the value; flags: 1 if given */
	int64_t least, most;	   /* numbers */
	bool required;		   /* to be given */
	const char *text;	   /* as given; NULL if it was not */
	struct sockaddr_in address; /* addresses: the value */
};

/*
 * Read --NAME VALUE for every setting, --output FILE and --help; refuse what is wrong, missing or left over. argv[0] is
 * not read: it may be the role.
 */
void read_options(int argc, char **argv, struct setting *settings, const char *help);

/* ADDR:PORT, of IPv4; false if it is none. The text is length bytes long. */
bool parse_address(const char *text, size_t length, struct sockaddr_in *address);

/* --- the clock, and waits (wait.c) --- */

int64_t now_ns(void);

/* What CLOCK_REALTIME is ahead of CLOCK_MONOTONIC; *error: no further from the truth than that. */
int64_t realtime_ahead_ns(int64_t *error);

enum wake { WAKE_SIGNAL, WAKE_READY, WAKE_TIME };

struct waiter {
	int signals;	  /* readable after SIGTERM or SIGINT, which do nothing else */
	int timer;	  /* readable from armed_ns on */
	int64_t armed_ns; /* NEVER: not armed */
};

void waiter_open(struct waiter *waiter);
/* Arm the timer, if it is not already for this time; one in the past is over at once. */
void waiter_arm(struct waiter *waiter, int64_t at_ns);
/* Sleep until a signal, one of the events of the descriptor (-1: none), or a time (NEVER: none), in this order. */
enum wake wait_for(struct waiter *waiter, int fd, short events, int64_t until_ns);

/* --- the log (table.c) --- */

struct table {
	int64_t *cells; /* row by row */
	size_t columns;
	size_t capacity, rows;
};

void table_allocate(struct table *table, size_t columns, size_t capacity);
__attribute__((noreturn)) void table_full(const struct table *table);

/* The next row, to be filled; the run fails if there is none. */
static inline int64_t *table_row(struct table *table)
{
	if (table->rows == table->capacity)
		table_full(table);
	return table->cells + table->columns * table->rows++;
}

/* Opened before anything is measured, so that a name that cannot be written is refused then. NULL: stdout. */
void open_output(const char *path);
/* "# PROGRAM 1 role=ROLE name=value ...", "# columns ...", the rows, "# end rows=N ..." */
void write_start(const char *program, const char *role, const struct setting *settings);
void write_table(const struct table *table, const char *columns);
__attribute__((format(printf, 2, 3))) void write_end(const struct table *table, const char *format, ...);

#endif
