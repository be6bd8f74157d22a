/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The protocol between master and workers, on control connections made by the master:
 *
 *	master	hello, plan	once
 *	master	ORDER_ROUND	the worker fetches its part from the master, then computes (waits)
 *	worker	REPORT_MAPPED
 *	master	ORDER_SHUFFLE	after all workers have reported: the worker fetches from every other
 *				worker, then computes
 *	worker	REPORT_REDUCED	the master fetches the worker's result; after all the round ends
 *	worker	REPORT_BROKEN	at any time: a copy failed
 *
 * A report lists the copies that the worker has received since the last report. The end of the
 * connection ends the job, and the worker becomes free.
 */
#ifndef SHUFFLE_SHUFFLE_H
#define SHUFFLE_SHUFFLE_H

#include "node.h"

struct plan {
	uint32_t node; /* the worker's number */
	uint32_t workers;
	uint32_t parallel;
	uint32_t master_port; /* at the source address of the control connection */
	int64_t distribute; /* bytes */
	int64_t shuffle;
	int64_t compute; /* ns */
	int64_t jitter; /* ns: largest deviation of a time to compute */
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
	uint32_t count; /* number of transfers that follow, at most WORKERS_MAX */
	char why[100]; /* for REPORT_BROKEN */
};

struct settings {
	struct sockaddr_in workers[WORKERS_MAX];
	uint32_t count;
	int64_t rounds; /* 0: as many as the duration allows */
	int64_t duration; /* ns, after which no round begins; 0: no limit */
	int64_t distribute, shuffle, aggregate; /* bytes */
	uint32_t parallel;
	int64_t compute; /* ns */
	double jitter; /* as a fraction of the time to compute */
	uint64_t seed;
	size_t transfers; /* capacity of the log in rows */
};

struct result {
	struct transfer *log;
	size_t count;
	int64_t rounds; /* completed */
	int64_t from, to; /* ns: start of the first round, end; both 0 if no round began */
	bool early;
};

/* Return the number of rows per round. */
int64_t rows_per_round(const struct settings *settings);

/* Run the job. Exits if a connection fails or the log is full. */
struct result run_master(const struct settings *settings);
/* Serve one master after another, until a signal. */
void run_worker(uint16_t port);

#endif
