/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "shuffle.h"

#define NOTHING_DUE (-1)

struct colleague {
	struct endpoint control;
	struct master *master;
	uint32_t number;
	bool connected;
	int due; /* kind of its next report, or NOTHING_DUE */
	size_t read; /* bytes received of `said` */
	struct {
		struct report report;
		struct transfer transfers[WORKERS_MAX];
	} said;
};

struct master {
	struct node node;
	const struct settings *settings;
	uint16_t port;
	struct colleague *colleagues;
	uint32_t connected, mapped, finished; /* numbers of workers; the last two in this round */
	uint32_t round;
	int64_t round_start;
	struct result result;
};

int64_t rows_per_round(const struct settings *settings)
{
	int64_t workers = settings->count;

	return 1 + (settings->distribute ? workers : 0) + (settings->shuffle ? workers * (workers - 1) : 0) +
	       (settings->aggregate ? workers : 0);
}

__attribute__((noreturn)) static void lost(const struct master *master, const struct colleague *colleague,
					   const char *why)
{
	fail("worker %u at %s failed in round %u (%s), see whether it runs, and for no other master",
	     colleague->number, address_text(&master->settings->workers[colleague->number - 1]), master->round, why);
}

static void note(struct master *master, const struct transfer *transfer)
{
	struct result *result = &master->result;

	if (result->count == master->settings->transfers)
		fail("the log of %zu transfers is full in round %u, give more by --transfers",
		     result->count, master->round);
	result->log[result->count++] = *transfer;
}

static void order_all(struct master *master, int what)
{
	struct order order = { .what = what, .round = master->round };

	for (uint32_t i = 0; i < master->settings->count; i++) {
		if (!send_all(master->colleagues[i].control.fd, &order, sizeof(order)))
			lost(master, &master->colleagues[i], strerror(errno));
		master->colleagues[i].due = what == ORDER_ROUND ? REPORT_MAPPED : REPORT_REDUCED;
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
	note(master, &round);
	result->rounds++;
	master->node.over = (settings->rounds && result->rounds == settings->rounds) ||
			    (settings->duration && round.end - result->from >= settings->duration);
	if (master->node.over)
		return;
	master->round++;
	begin_round(master);
}

/* Check the header of a report first, as its count determines how much is read. */
static void check_report(const struct master *master, const struct colleague *colleague)
{
	const struct report *report = &colleague->said.report;
	char why[80];

	if (report->count > WORKERS_MAX) {
		snprintf(why, sizeof(why), "it reports %u copies, and %d is the most", report->count,
			 WORKERS_MAX);
		lost(master, colleague, why);
	}
	if (report->what == REPORT_BROKEN || (int)report->what == colleague->due)
		return;
	if (colleague->due == NOTHING_DUE)
		snprintf(why, sizeof(why), "its report is of kind %u, and none was due", report->what);
	else
		snprintf(why, sizeof(why), "its report is of kind %u, and %d was due", report->what,
			 colleague->due);
	lost(master, colleague, why);
}

/* True if the worker was told to make this copy in the step that it reports. */
static bool is_copy(const struct master *master, const struct colleague *colleague,
		    const struct transfer *transfer)
{
	const struct settings *settings = master->settings;
	bool mapped = colleague->said.report.what == REPORT_MAPPED;

	if (transfer->destination != colleague->number || transfer->round != master->round ||
	    transfer->bytes != (mapped ? settings->distribute : settings->shuffle) || transfer->start < 0 ||
	    transfer->end < transfer->start)
		return false;
	if (mapped)
		return transfer->step == STEP_DISTRIBUTE && transfer->source == MASTER;
	return transfer->step == STEP_SHUFFLE && transfer->source != MASTER &&
	       transfer->source <= settings->count && transfer->source != colleague->number;
}

/*
 * Check that a report has the copies that the worker was told to make; the worker has checked their
 * bytes.
 */
static void hear(struct master *master, struct colleague *colleague)
{
	const struct settings *settings = master->settings;
	const struct report *report = &colleague->said.report;
	bool mapped = report->what == REPORT_MAPPED;
	uint32_t expected = mapped ? settings->distribute > 0 : settings->shuffle ? settings->count - 1 : 0;
	struct transfer result = {
		.round = master->round,
		.step = STEP_AGGREGATE,
		.source = colleague->number,
		.destination = MASTER,
		.bytes = settings->aggregate,
	};

	if (report->what == REPORT_BROKEN)
		lost(master, colleague, report->why);
	if (report->count != expected || report->round != master->round)
		lost(master, colleague, "it reports other copies than it was told to make");
	for (uint32_t i = 0; i < report->count; i++) {
		const struct transfer *transfer = &colleague->said.transfers[i];

		if (!is_copy(master, colleague, transfer))
			lost(master, colleague, "it reports another copy than it was told to make");
		note(master, transfer);
	}
	colleague->due = NOTHING_DUE;
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
static void greet(struct master *master, struct colleague *colleague)
{
	const struct settings *settings = master->settings;
	struct hello hello = { .magic = HELLO_MAGIC, .kind = HELLO_CONTROL };
	struct plan plan = {
		.node = colleague->number,
		.workers = settings->count,
		.parallel = settings->parallel,
		.master_port = master->port,
		.distribute = settings->distribute,
		.shuffle = settings->shuffle,
		.compute = settings->compute,
		.jitter = (int64_t)(settings->jitter * (double)settings->compute),
		.seed = settings->seed,
	};
	int error = socket_error(colleague->control.fd);

	memcpy(plan.addresses, settings->workers, sizeof(plan.addresses));
	if (error)
		lost(master, colleague, strerror(error));
	if (!send_all(colleague->control.fd, &hello, sizeof(hello)) ||
	    !send_all(colleague->control.fd, &plan, sizeof(plan)))
		lost(master, colleague, strerror(errno));
	colleague->connected = true;
	endpoint_watch(&colleague->control, EPOLLIN, EPOLL_CTL_MOD);
	if (++master->connected < settings->count)
		return;
	master->result.from = now_ns();
	begin_round(master);
}

static void control_ready(struct endpoint *endpoint)
{
	struct colleague *colleague = (struct colleague *)endpoint;
	struct master *master = colleague->master;
	struct report *report = &colleague->said.report;
	size_t size = sizeof(*report);
	ssize_t got;

	if (!colleague->connected) {
		greet(master, colleague);
		return;
	}
	if (colleague->read >= size)
		size += report->count * sizeof(struct transfer);
	got = recv(endpoint->fd, (char *)&colleague->said + colleague->read, size - colleague->read, 0);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0)
		lost(master, colleague, got ? strerror(errno) : "it hung up");
	colleague->read += (size_t)got;
	if (colleague->read < sizeof(*report))
		return;
	check_report(master, colleague);
	report->why[sizeof(report->why) - 1] = '\0';
	if (colleague->read < sizeof(*report) + report->count * sizeof(struct transfer))
		return;
	colleague->read = 0;
	hear(master, colleague);
}

static void fetched(void *owner, const struct transfer *transfer)
{
	note(owner, transfer);
	finish(owner);
}

static void broken(void *owner, const struct transfer *transfer, const char *why)
{
	struct master *master = owner;

	lost(master, &master->colleagues[transfer->source - 1], why);
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
	master->colleagues = allocate(settings->count, sizeof(*master->colleagues));
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
		struct colleague *colleague = &master->colleagues[i];

		colleague->master = master;
		colleague->number = i + 1;
		colleague->due = NOTHING_DUE;
		colleague->control = (struct endpoint){ .ready = control_ready,
							.node = node,
							.fd = connect_to(&settings->workers[i]) };
		if (colleague->control.fd < 0)
			lost(master, colleague, strerror(errno));
		endpoint_watch(&colleague->control, EPOLLOUT, EPOLL_CTL_ADD);
	}
	master->result.early = !node_run(node);
	if (master->result.from)
		master->result.to = now_ns();
	return master->result;
}
