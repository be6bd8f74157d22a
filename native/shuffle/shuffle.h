/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What master and workers tell each other on the master's connections, and when:
 *
 *	master	hello, plan			once
 *	master	ORDER_ROUND			the worker fetches its part from the master, then computes (waits)
 *	worker	REPORT_MAPPED
 *	master	ORDER_SHUFFLE			after every worker's report: the worker fetches from every other one, then computes
 *	worker	REPORT_REDUCED			the master fetches the worker's result; after all of them the round is over
 *	worker	REPORT_BROKEN			at any time: a copy failed
 *
 * A report brings the copies that the worker received since the last one. The connection's end ends the job; the worker
 * is free then.
 */
#ifndef SHUFFLE_SHUFFLE_H
#define SHUFFLE_SHUFFLE_H

#include "node.h"

struct plan {
	uint32_t node; /* the worker's number */
	uint32_t workers;
	uint32_t parallel;
	uint32_t master_port; /* at the address that the control connection comes from */
	int64_t distribute; /* bytes */
	int64_t shuffle;
	int64_t compute; /* ns */
	int64_t jitter; /* ns: a worker computes so much longer or shorter at most */
	uint64_t seed;
	struct sockaddr_in addresses[WORKERS_MAX];
};

struct order {
	enum { ORDER_ROUND, ORDER_SHUFFLE } what;
	uint32_t round;
};

struct report {
	enum { REPORT_MAPPED, REPORT_REDUCED, REPORT_BROKEN } what;
	uint32_t round;
	uint32_t count; /* how many transfers follow it, at most WORKERS_MAX */
	char why[100]; /* REPORT_BROKEN */
};

struct settings {
	struct sockaddr_in workers[WORKERS_MAX];
	uint32_t count;
	int64_t rounds; /* 0: as many as the duration allows */
	int64_t duration; /* ns, after which no round begins; 0: any time */
	int64_t distribute, shuffle, aggregate; /* bytes */
	uint32_t parallel;
	int64_t compute; /* ns */
	double jitter; /* of the time to compute */
	uint64_t seed;
	size_t transfers; /* how many rows the log can hold */
};

struct result {
	struct transfer *log;
	size_t count;
	int64_t rounds; /* that are complete */
	int64_t from, to; /* ns: the first round's beginning, the end; both 0 if none began */
	bool early;
};

/* Rows that a round makes. */
int64_t rows_per_round(const struct settings *settings);

/* Run the job. Ends the program if a connection fails or the log is full. */
struct result run_master(const struct settings *settings);
/* Serve one master after another, until a signal. */
void run_worker(uint16_t port);

#endif
