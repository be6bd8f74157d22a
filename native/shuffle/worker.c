/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shuffle.h"

struct worker {
	struct node node;
	struct endpoint control; /* fd is -1 while there is no master */
	struct sockaddr_in master; /* where it listens */
	struct plan plan;
	struct order order;
	size_t read; /* bytes received of the plan, then of an order */
	bool planned;
	uint32_t round;
	enum { IDLE, DISTRIBUTING, MAPPING, SHUFFLING, REDUCING } doing;
	struct transfer received[WORKERS_MAX];
	uint32_t count;
};

/* The master has closed the connection: end the job. */
static void end_job(struct worker *worker)
{
	node_abort_fetches(&worker->node);
	node_abort_serving(&worker->node);
	waiter_arm(&worker->node.waiter, NEVER);
	endpoint_close(&worker->control);
	worker->node.number = NOBODY;
	worker->doing = IDLE;
}

static void report(struct worker *worker, int what, const char *why)
{
	struct report text = { .what = what, .round = worker->round, .count = worker->count };

	snprintf(text.why, sizeof(text.why), "%s", why);
	/* Ignore errors: if the master has gone, its connection will report that. */
	if (send_all(worker->control.fd, &text, sizeof(text)))
		send_all(worker->control.fd, worker->received, worker->count * sizeof(worker->received[0]));
	worker->count = 0;
}

static void compute(struct worker *worker, int doing)
{
	const struct plan *plan = &worker->plan;
	uint64_t number = draw(draw(plan->seed, 2 * plan->node),
	    2ULL * worker->round + (doing == REDUCING));
	double share = (double)(number >> 11) * 0x1p-52; /* 0 to 2 */

	worker->doing = doing;
	waiter_arm(&worker->node.waiter,
		   now_ns() + plan->compute - plan->jitter + (int64_t)(share * (double)plan->jitter));
}

static void woken(void *owner)
{
	struct worker *worker = owner;

	if (worker->doing != MAPPING && worker->doing != REDUCING)
		return;
	waiter_arm(&worker->node.waiter, NEVER);
	report(worker, worker->doing == MAPPING ? REPORT_MAPPED : REPORT_REDUCED, "");
	worker->doing = IDLE;
}

static void distribute(struct worker *worker)
{
	struct transfer transfer = {
		.round = worker->round,
		.step = STEP_DISTRIBUTE,
		.source = MASTER,
		.destination = worker->plan.node,
		.bytes = worker->plan.distribute,
	};

	worker->doing = DISTRIBUTING;
	if (transfer.bytes)
		node_fetch(&worker->node, &transfer);
	else
		compute(worker, MAPPING);
}

/* Fetch from all other workers in random order, so that not all start with the same one. */
static void shuffle(struct worker *worker)
{
	const struct plan *plan = &worker->plan;
	uint64_t seed = draw(plan->seed, 2 * plan->node + 1);
	uint32_t sources[WORKERS_MAX], count = 0;

	for (uint32_t source = 1; source <= plan->workers; source++)
		if (source != plan->node)
			sources[count++] = source;
	worker->doing = SHUFFLING;
	if (!plan->shuffle || !count) {
		compute(worker, REDUCING);
		return;
	}
	/* A copy that fails immediately ends the step. */
	for (uint32_t left = count; left && worker->doing == SHUFFLING; left--) {
		uint32_t place = (uint32_t)(draw(seed, (uint64_t)worker->round * WORKERS_MAX + left) % left);
		struct transfer transfer = {
			.round = worker->round,
			.step = STEP_SHUFFLE,
			.source = sources[place],
			.destination = plan->node,
			.bytes = plan->shuffle,
		};

		sources[place] = sources[left - 1];
		node_fetch(&worker->node, &transfer);
	}
}

static void fetched(void *owner, const struct transfer *transfer)
{
	struct worker *worker = owner;

	worker->received[worker->count++] = *transfer;
	if (transfer->step == STEP_DISTRIBUTE)
		compute(worker, MAPPING);
	else if (worker->count == worker->plan.workers - 1)
		compute(worker, REDUCING);
}

/*
 * Report a failed copy to the master, which decides. It is not an error of this worker: the master
 * may have gone, and other workers that know it may have hung up. Continue to serve others, so that
 * they do not report failures caused by this worker.
 */
static void broken(void *owner, const struct transfer *transfer, const char *why)
{
	struct worker *worker = owner;
	char text[sizeof(((struct report *)0)->why)];

	snprintf(text, sizeof(text), "copy from node %u: %s", transfer->source, why);
	node_abort_fetches(&worker->node);
	worker->doing = IDLE;
	report(worker, REPORT_BROKEN, text);
}

static struct sockaddr_in address(void *owner, uint32_t number)
{
	struct worker *worker = owner;

	return number == MASTER ? worker->master : worker->plan.addresses[number - 1];
}

/*
 * Check a number from the master, which sizes arrays, copies and times: exit if it is out of range.
 */
static void check(const struct worker *worker, const char *what, int64_t number, int64_t min,
    int64_t max)
{
	if (number < min || number > max)
		fail("the master at %s gives %lld as %s, out of range %lld to %lld; run the same build on all nodes",
		     address_text(&worker->master), (long long)number, what, (long long)min, (long long)max);
}

static void handle_plan(struct worker *worker)
{
	const struct plan *plan = &worker->plan;

	check(worker, "number of workers", plan->workers, 1, WORKERS_MAX);
	check(worker, "number of this worker", plan->node, 1, plan->workers);
	check(worker, "number of parallel copies", plan->parallel, 1, WORKERS_MAX);
	check(worker, "its port", plan->master_port, 1, UINT16_MAX);
	check(worker, "bytes to distribute", plan->distribute, 0, BYTES_MAX);
	check(worker, "bytes to shuffle", plan->shuffle, 0, BYTES_MAX);
	check(worker, "time to compute", plan->compute, 0, MAX_NS);
	check(worker, "jitter", plan->jitter, 0, plan->compute);
	worker->planned = true;
	worker->node.number = plan->node;
	worker->node.limit = plan->parallel;
	worker->master.sin_port = htons((uint16_t)plan->master_port);
}

static void handle_order(struct worker *worker)
{
	const struct order *order = &worker->order;

	check(worker, "kind of an order", order->what, ORDER_ROUND, ORDER_SHUFFLE);
	/* Copies of a step are counted until its report, so steps must not overlap. */
	if (worker->doing != IDLE)
		fail("the master at %s orders round %u while round %u is not done; run the same build on all nodes",
		     address_text(&worker->master), order->round, worker->round);
	worker->round = order->round;
	if (order->what == ORDER_ROUND)
		distribute(worker);
	else
		shuffle(worker);
}

static void control_ready(struct endpoint *endpoint)
{
	struct worker *worker = endpoint->node->owner;
	void *to = worker->planned ? (void *)&worker->order : (void *)&worker->plan;
	size_t size = worker->planned ? sizeof(worker->order) : sizeof(worker->plan);
	ssize_t got = recv(endpoint->fd, (char *)to + worker->read, size - worker->read, 0);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		end_job(worker);
		return;
	}
	worker->read += (size_t)got;
	if (worker->read < size)
		return;
	worker->read = 0;
	if (worker->planned)
		handle_order(worker);
	else
		handle_plan(worker);
}

static void control_connected(void *owner, int fd)
{
	struct worker *worker = owner;
	struct pollfd before = { .fd = worker->control.fd, .events = POLLRDHUP };
	socklen_t size = sizeof(worker->master);

	/* The last master may have hung up without our having noticed. */
	if (before.fd >= 0 && poll(&before, 1, 0) == 1)
		end_job(worker);
	if (worker->control.fd >= 0 || getpeername(fd, (struct sockaddr *)&worker->master, &size)) {
		close(fd); /* one job at a time: the second master sees the close */
		return;
	}
	worker->control.fd = fd;
	worker->planned = false;
	worker->read = 0;
	worker->count = 0;
	endpoint_watch(&worker->control, EPOLLIN, EPOLL_CTL_ADD);
}

void run_worker(uint16_t port)
{
	struct worker *worker = allocate(1, sizeof(*worker));
	struct node *node = &worker->node;

	worker->control = (struct endpoint){ .ready = control_ready, .node = node, .fd = -1 };
	node->owner = worker;
	node->number = NOBODY;
	node->woken = woken;
	node->fetched = fetched;
	node->broken = broken;
	node->control_connected = control_connected;
	node->address = address;
	node_open(node, port);
	node_run(node);
}
