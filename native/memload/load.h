/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The load: which requests are sent to the server, when, and the outcome of each. */
#ifndef MEMLOAD_LOAD_H
#define MEMLOAD_LOAD_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct settings {
	struct sockaddr_in server;
	uint32_t connections;
	double rate; /* requests/s; 0: closed loop */
	int64_t think; /* ns from an answer to the next request on the connection; closed loop */
	double get_fraction;
	uint32_t key_bytes;
	uint32_t value_bytes;
	uint32_t keys;
	int64_t warmup; /* ns */
	int64_t duration; /* ns, after the warm-up */
	int64_t linger; /* ns, after the duration */
	uint64_t seed;
	size_t requests; /* capacity of the log, including the warm-up */
	bool store_only; /* store every key and exit */
	bool stored; /* all keys are already stored */
};

enum op { OP_GET, OP_SET };
enum status { STATUS_OK, STATUS_MISS, STATUS_ERROR, STATUS_NONE, STATUS_BROKEN };

struct request {
	int64_t due; /* ns, like the next two; 0: never */
	int64_t sent;
	int64_t done;
	uint32_t connection;
	uint8_t op;
	uint8_t status;
};

struct result {
	struct request *log; /* ordered by due time (open loop) or time of sending (closed loop) */
	size_t count; /* including the last that was due before `to` */
	int64_t from, to; /* ns: start and end of the measured time; both 0 if it did not start */
	bool early; /* ended by a signal */
};

/*
 * Connect, store the keys unless they are stored, apply the load, and wait for the last answers.
 * A connection that times out or is reset under load is replaced. Exits if one fails otherwise, or
 * if the log is full.
 */
struct result run_load(const struct settings *settings);

#endif
