/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The load: what is asked of the server, when, and how it was answered. */
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
	int64_t think; /* ns from an answer to the connection's next request, closed loop */
	double get_fraction;
	uint32_t key_bytes;
	uint32_t value_bytes;
	uint32_t keys;
	int64_t warmup; /* ns */
	int64_t duration; /* ns, after the warm-up */
	int64_t linger; /* ns, after the duration */
	uint64_t seed;
	size_t requests; /* how many the log can hold, those of the warm-up included */
	bool store_only; /* store every key, and end */
	bool stored; /* every key is there */
};

enum op { OP_GET, OP_SET };
enum status { STATUS_OK, STATUS_MISS, STATUS_ERROR, STATUS_NONE };

struct request {
	int64_t due; /* ns, as are the others; 0 is never */
	int64_t sent;
	int64_t done;
	uint32_t connection;
	uint8_t op;
	uint8_t status;
};

struct result {
	struct request *log; /* in the order in which they were due (open loop) or sent (closed loop) */
	size_t count; /* up to the last that was due before `to` */
	int64_t from, to; /* ns: when the measured time began and ended; both 0 if it did not begin */
	bool early; /* ended by a signal */
};

/* Connect, store every key unless they are there, load, wait for the last answers. Ends the program if a connection or the log fails. */
struct result run_load(const struct settings *settings);

#endif
