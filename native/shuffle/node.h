/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A node, either master or worker: it serves bytes to other nodes and fetches bytes from them, each
 * copy over its own TCP connection, as Hadoop's reducers fetch the output of mappers.
 */
#ifndef SHUFFLE_NODE_H
#define SHUFFLE_NODE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../common/common.h"

#define WORKERS_MAX 64
#define SERVED_MAX (4 * WORKERS_MAX)
#define BYTES_MAX (1LL << 40) /* per copy */
#define MASTER 0U /* number of the master; workers count from 1 */

enum step { STEP_DISTRIBUTE, STEP_SHUFFLE, STEP_AGGREGATE, STEP_ROUND };

/* A copy as logged by its receiver, or a whole round (STEP_ROUND). */
struct transfer {
	uint32_t round;
	uint32_t step;
	uint32_t source;
	uint32_t destination;
	int64_t bytes;
	int64_t start; /* ns: call of connect() */
	int64_t end; /* ns: last byte read */
};

/*
 * The first message on every connection. Nodes exchange structures as they are in memory, because
 * all run the same program on the same kind of machine.
 */
struct hello {
#define HELLO_MAGIC 0x31306c6675687371ULL /* identifies program and version */
	uint64_t magic;
	enum { HELLO_CONTROL, HELLO_FETCH } kind;
	uint32_t padding;
	struct transfer wanted; /* the copy to serve; all 0 on a control connection */
};

/* A descriptor in the epoll set; events call ready(). fd is -1 if not in use. */
struct endpoint {
	void (*ready)(struct endpoint *endpoint);
	struct node *node;
	int fd;
};

struct served {
	struct endpoint endpoint;
	struct hello hello;
	size_t read; /* bytes received of hello */
	int64_t left; /* bytes still to send */
};

struct fetch {
	struct endpoint endpoint;
	struct transfer transfer;
	int64_t got;
	bool requested;
};

struct node {
	int epoll;
	struct waiter waiter;
	struct endpoint stop, listener; /* stop: the waiter's signals */
	uint32_t number; /* NOBODY: it serves nothing */
	struct served served[SERVED_MAX];
	struct fetch fetches[WORKERS_MAX];
	uint32_t active, limit; /* fetches in progress, and their maximum */
	struct transfer queue[WORKERS_MAX]; /* fetches not started */
	uint32_t queue_first, queue_count;
	bool over;
	void *owner;
	/*
	 * Callbacks: timer expired, copy complete, copy failed, new control connection (the owner
	 * takes fd).
	 */
	void (*woken)(void *owner);
	void (*fetched)(void *owner, const struct transfer *transfer);
	void (*broken)(void *owner, const struct transfer *transfer, const char *why);
	void (*control_connected)(void *owner, int fd);
	struct sockaddr_in (*address)(void *owner, uint32_t number); /* where a node listens */
};
#define NOBODY UINT32_MAX

/* Listen on a port (0: any) and return it; the caller sets owner and callbacks. */
uint16_t node_open(struct node *node, uint16_t port);
/* Handle events until node->over is set, and return true, or until a signal, and return false. */
bool node_run(struct node *node);

void endpoint_watch(struct endpoint *endpoint, uint32_t events, int how);
void endpoint_close(struct endpoint *endpoint);

/* Queue a fetch, which starts when fewer than `limit` are in progress. */
void node_fetch(struct node *node, const struct transfer *transfer);
/* Abort all copies to this node. */
void node_abort_fetches(struct node *node);
/* Abort all copies from this node. Keep connections without a hello: one may be the next master. */
void node_abort_serving(struct node *node);

/*
 * Send a short message completely, waiting for room if necessary; return false with errno on
 * failure.
 */
bool send_all(int fd, const void *data, size_t size);

#endif
