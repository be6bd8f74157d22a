/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "shuffle.h"

#define NOTHING_DUE (-1)

struct worker {
	struct endpoint control;
	struct master *master;
	uint32_t number;
	bool connected;
	int due; /* kind of its next report, or NOTHING_DUE */
	size_t read; /* bytes received of `incoming` */
	struct {
		struct report report;
		struct transfer transfers[WORKERS_MAX];
	} incoming;
};

struct master {
	struct node node;
	const struct settings *settings;
	uint16_t port;
	struct worker *workers;
	uint32_t connected, mapped, finished; /* numbers of workers; the last two in this round */
	uint32_t round;
	int64_t round_start;
	struct result result;
};

int64_t rows_per_round(const struct settings *settings)
{
	int64_t workers = settings->count;

	return 1 + (settings->distribute ? workers : 0) + (settings->shuffle ? workers * (workers - 1)
	    : 0) +
	       (settings->aggregate ? workers : 0);
}

__attribute__((noreturn)) static void fail_worker(const struct master *master,
    const struct worker *worker,
						  const char *why)
{
	fail("worker %u at %s failed in round %u (%s), check that it runs and serves no other master",
	     worker->number, address_text(&master->settings->workers[worker->number - 1]), master->round,
	         why);
}

static void log_transfer(struct master *master, const struct transfer *transfer)
{
	struct result *result = &master->result;

	if (result->count == master->settings->transfers)
		fail("the log of %zu transfers is full in round %u; increase it with --transfers",
		     result->count, master->round);
	result->log[result->count++] = *transfer;
}

static void order_all(struct master *master, int what)
{
	struct order order = { .what = what, .round = master->round };

	for (uint32_t i = 0; i < master->settings->count; i++) {
		if (!send_all(master->workers[i].control.fd, &order, sizeof(order)))
			fail_worker(master, &master->workers[i], strerror(errno));
		master->workers[i].due = what == ORDER_ROUND ? REPORT_MAPPED : REPORT_REDUCED;
	}
}

static void begin_round(struct master *master)
{
	master->mapped = 0;
	master->finished = 0;
	master->round_start = now_ns();
	order_all(master, ORDER_ROUND);
}

static void finish(struct master *master)
{
	const struct settings *settings = master->settings;
	struct result *result = &master->result;
	struct transfer round = {
		.round = master->round,
		.step = STEP_ROUND,
		.source = MASTER,
		.destination = MASTER,
		.start = master->round_start,
		.end = now_ns(),
	};
	int64_t workers = settings->count;

	if (++master->finished < workers)
		return;
	round.bytes = workers * (settings->distribute + (workers - 1) * settings->shuffle + settings->aggregate);
	log_transfer(master, &round);
	result->rounds++;
	master->node.over = (settings->rounds && result->rounds == settings->rounds) ||
			    (settings->duration && round.end - result->from >= settings->duration);
	if (master->node.over)
		return;
	master->round++;
	begin_round(master);
}

/* Check the header of a report first, as its count determines how much is read. */
static void check_report(const struct master *master, const struct worker *worker)
{
	const struct report *report = &worker->incoming.report;
	char why[80];

	if (report->count > WORKERS_MAX) {
		snprintf(why, sizeof(why), "it reports %u copies, more than %d", report->count,
			 WORKERS_MAX);
		fail_worker(master, worker, why);
	}
	if (report->what == REPORT_BROKEN || (int)report->what == worker->due)
		return;
	if (worker->due == NOTHING_DUE)
		snprintf(why, sizeof(why), "its report is of kind %u, and none was due", report->what);
	else
		snprintf(why, sizeof(why), "its report is of kind %u, and %d was due", report->what,
			 worker->due);
	fail_worker(master, worker, why);
}

/* True if this copy was requested of the worker in the step that it reports. */
static bool is_copy(const struct master *master, const struct worker *worker,
		    const struct transfer *transfer)
{
	const struct settings *settings = master->settings;
	bool mapped = worker->incoming.report.what == REPORT_MAPPED;

	if (transfer->destination != worker->number || transfer->round != master->round ||
	    transfer->bytes != (mapped ? settings->distribute : settings->shuffle) ||
	        transfer->start < 0 ||
	    transfer->end < transfer->start)
		return false;
	if (mapped)
		return transfer->step == STEP_DISTRIBUTE && transfer->source == MASTER;
	return transfer->step == STEP_SHUFFLE && transfer->source != MASTER &&
	       transfer->source <= settings->count && transfer->source != worker->number;
}

/*
 * Check that a report has the copies that were requested of the worker, which has checked their
 * bytes.
 */
static void handle_report(struct master *master, struct worker *worker)
{
	const struct settings *settings = master->settings;
	const struct report *report = &worker->incoming.report;
	bool mapped = report->what == REPORT_MAPPED;
	uint32_t expected = mapped ? settings->distribute > 0 : settings->shuffle ? settings->count - 1
	    : 0;
	struct transfer result = {
		.round = master->round,
		.step = STEP_AGGREGATE,
		.source = worker->number,
		.destination = MASTER,
		.bytes = settings->aggregate,
	};

	if (report->what == REPORT_BROKEN)
		fail_worker(master, worker, report->why);
	if (report->count != expected || report->round != master->round)
		fail_worker(master, worker, "it reports copies that were not requested");
	for (uint32_t i = 0; i < report->count; i++) {
		const struct transfer *transfer = &worker->incoming.transfers[i];

		if (!is_copy(master, worker, transfer))
			fail_worker(master, worker, "it reports a copy that was not requested");
		log_transfer(master, transfer);
	}
	worker->due = NOTHING_DUE;
	if (mapped) {
		if (++master->mapped == settings->count)
			order_all(master, ORDER_SHUFFLE);
	} else if (settings->aggregate) {
		node_fetch(&master->node, &result);
	} else {
		finish(master);
	}
}

/* A worker is connected: send it the plan. */
static void send_plan(struct master *master, struct worker *worker)
{
	const struct settings *settings = master->settings;
	struct hello hello = { .magic = HELLO_MAGIC, .kind = HELLO_CONTROL };
	struct plan plan = {
		.node = worker->number,
		.workers = settings->count,
		.parallel = settings->parallel,
		.master_port = master->port,
		.distribute = settings->distribute,
		.shuffle = settings->shuffle,
		.compute = settings->compute,
		.jitter = (int64_t)(settings->jitter * (double)settings->compute),
		.seed = settings->seed,
	};
	int error = socket_error(worker->control.fd);

	memcpy(plan.addresses, settings->workers, sizeof(plan.addresses));
	if (error)
		fail_worker(master, worker, strerror(error));
	if (!send_all(worker->control.fd, &hello, sizeof(hello)) ||
	    !send_all(worker->control.fd, &plan, sizeof(plan)))
		fail_worker(master, worker, strerror(errno));
	worker->connected = true;
	endpoint_watch(&worker->control, EPOLLIN, EPOLL_CTL_MOD);
	if (++master->connected < settings->count)
		return;
	master->result.from = now_ns();
	begin_round(master);
}

static void control_ready(struct endpoint *endpoint)
{
	struct worker *worker = (struct worker *)endpoint;
	struct master *master = worker->master;
	struct report *report = &worker->incoming.report;
	size_t size = sizeof(*report);
	ssize_t got;

	if (!worker->connected) {
		send_plan(master, worker);
		return;
	}
	if (worker->read >= size)
		size += report->count * sizeof(struct transfer);
	got = recv(endpoint->fd, (char *)&worker->incoming + worker->read, size - worker->read, 0);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0)
		fail_worker(master, worker, got ? strerror(errno) : "it hung up");
	worker->read += (size_t)got;
	if (worker->read < sizeof(*report))
		return;
	check_report(master, worker);
	report->why[sizeof(report->why) - 1] = '\0';
	if (worker->read < sizeof(*report) + report->count * sizeof(struct transfer))
		return;
	worker->read = 0;
	handle_report(master, worker);
}

static void fetched(void *owner, const struct transfer *transfer)
{
	log_transfer(owner, transfer);
	finish(owner);
}

static void broken(void *owner, const struct transfer *transfer, const char *why)
{
	struct master *master = owner;

	fail_worker(master, &master->workers[transfer->source - 1], why);
}

static struct sockaddr_in address(void *owner, uint32_t number)
{
	return ((struct master *)owner)->settings->workers[number - 1];
}

static void woken(void *owner)
{
	(void)owner; /* the master never arms the timer */
}

struct result run_master(const struct settings *settings)
{
	struct master *master = allocate(1, sizeof(*master));
	struct node *node = &master->node;

	master->settings = settings;
	master->result.log = allocate(settings->transfers, sizeof(struct transfer));
	master->workers = allocate(settings->count, sizeof(*master->workers));
	node->owner = master;
	node->number = MASTER;
	/*
	 * --parallel limits the workers only: results are fetched as soon as they are ready, as if
	 * pushed.
	 */
	node->limit = settings->count;
	node->woken = woken;
	node->fetched = fetched;
	node->broken = broken;
	node->address = address;
	master->port = node_open(node, 0);
	for (uint32_t i = 0; i < settings->count; i++) {
		struct worker *worker = &master->workers[i];

		worker->master = master;
		worker->number = i + 1;
		worker->due = NOTHING_DUE;
		worker->control = (struct endpoint){ .ready = control_ready,
							.node = node,
							.fd = connect_to(&settings->workers[i]) };
		if (worker->control.fd < 0)
			fail_worker(master, worker, strerror(errno));
		endpoint_watch(&worker->control, EPOLLOUT, EPOLL_CTL_ADD);
	}
	master->result.early = !node_run(node);
	if (master->result.from)
		master->result.to = now_ns();
	return master->result;
}
