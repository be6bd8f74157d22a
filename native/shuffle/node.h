/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A node, master or worker: it serves bytes to whoever asks, and fetches bytes from others, each copy over a TCP
 * connection of its own, as Hadoop's reducers fetch the output of mappers.
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
#define BYTES_MAX (1LL << 40) /* of a copy */
#define MASTER 0U /* its number; workers count from 1 */

enum step { STEP_DISTRIBUTE, STEP_SHUFFLE, STEP_AGGREGATE, STEP_ROUND };

/* A copy, as its receiver logs it; or, as STEP_ROUND, a whole round */
struct transfer {
	uint32_t round;
	uint32_t step;
	uint32_t source;
	uint32_t destination;
	int64_t bytes;
	int64_t start; /* ns: the connection was asked for */
	int64_t end; /* ns: the last byte was read */
};

/*
 * What every connection begins with. All that nodes tell each other are structures as they lie in memory: they are the
 * same program on the same kind of machine.
 */
struct hello {
#define HELLO_MAGIC 0x31306c6675687371ULL /* a program of another kind or version is told by it */
	uint64_t magic;
	enum { HELLO_CONTROL, HELLO_FETCH } kind;
	uint32_t padding;
	struct transfer wanted; /* its bytes follow; all 0 on a control connection */
};

/* What an event is for. It is told by calling ready(); fd is -1 when it is not in use. */
struct endpoint {
	void (*ready)(struct endpoint *endpoint);
	struct node *node;
	int fd;
};

struct served {
	struct endpoint endpoint;
	struct hello hello;
	size_t read; /* of hello */
	int64_t left; /* bytes to send */
};

struct fetch {
	struct endpoint endpoint;
	struct transfer transfer;
	int64_t got;
	bool asked;
};

struct node {
	int epoll;
	struct waiter waiter;
	struct endpoint stop, listener; /* stop: of the waiter's signals */
	uint32_t number; /* NOBODY: it serves no one */
	struct served served[SERVED_MAX];
	struct fetch fetches[WORKERS_MAX];
	uint32_t active, limit; /* fetches under way, and at most */
	struct transfer queue[WORKERS_MAX]; /* not begun */
	uint32_t queue_first, queue_count;
	bool over;
	void *owner;
	/* What the owner hears of: the waiter's time, a copy, one that failed, a control connection, which becomes its own. */
	void (*woken)(void *owner);
	void (*fetched)(void *owner, const struct transfer *transfer);
	void (*broken)(void *owner, const struct transfer *transfer, const char *why);
	void (*called)(void *owner, int fd);
	struct sockaddr_in (*address)(void *owner, uint32_t number); /* where another node listens */
};
#define NOBODY UINT32_MAX

/* Listen on a port (0: any, which is returned); the owner's functions are set by the caller. */
uint16_t node_open(struct node *node, uint16_t port);
/* Handle events until the node is over: true; or until a signal: false. */
bool node_run(struct node *node);

void endpoint_watch(struct endpoint *endpoint, uint32_t events, int how);
void endpoint_close(struct endpoint *endpoint);

/* Fetch transfer.bytes from an address, when fewer than the limit are under way. */
void node_fetch(struct node *node, const struct transfer *transfer);
/* End the copies to here. */
void node_fetch_none(struct node *node);
/* End the copies from here. Who has not said yet what it wants may be the next master, and stays. */
void node_serve_none(struct node *node);

/* All of a short message; false with errno. Waits, if it must, for the socket to take it. */
bool send_all(int fd, const void *data, size_t size);

#endif
