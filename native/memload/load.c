/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One thread, one epoll set, and one request at a time on each connection. Free connections wait in
 * a ring, so that they take turns. In the open loop, requests become due by a schedule drawn
 * beforehand; those that are due but not sent form the queue. In the closed loop, a free connection
 * has a due time of its own, stored beside it in the ring.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../common/common.h"
#include "load.h"
#include "request.h"

enum { STREAM_ARRIVALS, STREAM_CHOICES }; /* sequences of random numbers */
enum phase { PHASE_CONNECT, PHASE_STORE, PHASE_LOAD };

struct connection {
	int fd;
	uint32_t number;
	bool connected;
	struct request *request; /* the one in flight, or NULL */
	uint8_t *message;
	const uint8_t *unsent;
	uint32_t unsent_bytes;
	uint64_t received; /* bytes of the answer; expected is its length, known from its header */
	uint64_t expected;
	uint8_t header[HEADER_BYTES];
};

struct load {
	const struct settings *settings;
	struct connection *connections;
	struct {
		struct connection *connection;
		int64_t due;
	} *ring;
	uint32_t ring_first, ring_count;
	enum phase phase;
	uint32_t stored; /* keys for which a SET was sent */
	struct request *log;
	size_t scheduled, sent; /* requests in the log with a due time, and requests sent */
	uint64_t seed; /* for operations and keys */
	int64_t measured, end; /* ns: end of the warm-up, end of the run */
	int epoll;
	struct waiter waiter;
};

static uint8_t answer[64 << 10]; /* buffer for answers, which are discarded */

static void watch(struct load *load, struct connection *connection, uint32_t events, int how)
{
	struct epoll_event event = { .events = events, .data.ptr = connection };

	if (epoll_ctl(load->epoll, how, connection->fd, &event))
		fail("cannot wait for a connection (%s), give fewer", strerror(errno));
}

__attribute__((noreturn)) static void fail_connection(const struct load *load,
						      const struct connection *connection, const char *why)
{
	fail("connection %u to %s failed (%s); check that the server is running and its connection limit",
	     connection->number, address_text(&load->settings->server), why);
}

static void set_free(struct load *load, struct connection *connection, int64_t due)
{
	uint32_t place = (load->ring_first + load->ring_count++) % load->settings->connections;

	load->ring[place].connection = connection;
	load->ring[place].due = due;
}

/* Return when to send the next request, provided that a connection is free. */
static int64_t next_due(const struct load *load)
{
	if (load->phase == PHASE_STORE)
		return load->stored < load->settings->keys ? 0 : NEVER;
	if (load->phase == PHASE_CONNECT)
		return NEVER;
	if (load->settings->rate > 0)
		return load->sent < load->scheduled ? load->log[load->sent].due : NEVER;
	if (load->ring_count == 0 || load->ring[load->ring_first].due >= load->end)
		return NEVER;
	return load->ring[load->ring_first].due;
}

static void choose(const struct load *load, size_t request, enum op *op, uint32_t *key)
{
	uint64_t number = draw(load->seed, request);

	*op = (double)(number >> 32) < load->settings->get_fraction * 4294967296.0 ? OP_GET : OP_SET;
	*key = (uint32_t)((number & UINT32_MAX) * load->settings->keys >> 32);
}

static void open_connection(struct load *load, struct connection *connection)
{
	connection->fd = connect_to(&load->settings->server);
	if (connection->fd < 0)
		fail_connection(load, connection, strerror(errno));
	connection->connected = false;
	connection->request = NULL;
	connection->unsent_bytes = 0;
	watch(load, connection, EPOLLOUT, EPOLL_CTL_ADD);
}

/*
 * A connection failed. If one of its ends gave up sending under load, which is the network's doing,
 * open another one; its request is not answered.
 */
static void replace(struct load *load, struct connection *connection, int error)
{
	if (load->phase != PHASE_LOAD || (error != ETIMEDOUT && error != ECONNRESET))
		fail_connection(load, connection, strerror(error));
	if (connection->request)
		connection->request->status = STATUS_BROKEN;
	close(connection->fd);
	open_connection(load, connection);
}

/* Send as much as the socket accepts; the rest follows when it is writable. */
static void send_more(struct load *load, struct connection *connection)
{
	ssize_t sent = send(connection->fd, connection->unsent, connection->unsent_bytes, MSG_NOSIGNAL);

	if (sent < 0 && errno != EAGAIN && errno != EINTR)
		replace(load, connection, errno);
	if (sent > 0) {
		connection->unsent += sent;
		connection->unsent_bytes -= (uint32_t)sent;
	}
}

static void issue(struct load *load, int64_t due)
{
	struct connection *connection = load->ring[load->ring_first].connection;
	struct request *request = connection->request;
	enum op op = OP_SET;
	uint32_t key;

	load->ring_first = (load->ring_first + 1) % load->settings->connections;
	load->ring_count--;
	if (load->phase == PHASE_STORE) {
		key = load->stored++;
		request = &load->log[connection->number]; /* scratch: the log has not begun */
	} else {
		if (load->sent == load->settings->requests)
			fail("the log of %zu requests is full %lld ns before the end; increase it with --requests",
			     load->sent, (long long)(load->end - due));
		request = &load->log[load->sent];
		choose(load, load->sent++, &op, &key);
		request->due = due;
	}
	request->connection = connection->number;
	request->op = (uint8_t)op;
	request->status = STATUS_NONE;
	request->done = 0;
	connection->request = request;
	connection->received = 0;
	connection->expected = HEADER_BYTES;
	connection->unsent = message_make(connection->message, load->settings, op, key,
	    &connection->unsent_bytes);
	request->sent = now_ns();
	send_more(load, connection);
	if (connection->unsent_bytes)
		watch(load, connection, EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
}

static void answered(struct load *load, struct connection *connection)
{
	struct request *request = connection->request;

	request->done = now_ns();
	request->status = (uint8_t)answer_status(connection->header, load->settings, request->op);
	if (load->phase == PHASE_STORE && request->status != STATUS_OK)
		fail("%s did not store a key (status 0x%02x), give it more memory or store less",
		     address_text(&load->settings->server), answer_code(connection->header));
	connection->request = NULL;
	set_free(load, connection, request->done + load->settings->think);
}

static void receive(struct load *load, struct connection *connection)
{
	ssize_t got = recv(connection->fd, answer, sizeof(answer), 0);
	struct request *request = connection->request;
	uint64_t missing;

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got < 0) {
		replace(load, connection, errno);
		return;
	}
	if (got == 0)
		fail_connection(load, connection, "the server closed it");
	if (!request || connection->unsent_bytes)
		fail_connection(load, connection, "an answer without a request");
	missing = connection->received < HEADER_BYTES ? HEADER_BYTES - connection->received : 0;
	if (missing) {
		memcpy(connection->header + connection->received, answer,
		       (uint64_t)got < missing ? (size_t)got : missing);
		if ((uint64_t)got >= missing) {
			connection->expected = answer_bytes(connection->header, request->op);
			if (!connection->expected)
				fail_connection(load, connection, "not an answer in memcached's binary protocol");
		}
	}
	connection->received += (uint64_t)got;
	if (connection->received > connection->expected)
		fail_connection(load, connection, "an answer longer than its header says");
	if (connection->received >= HEADER_BYTES && connection->received == connection->expected)
		answered(load, connection);
}

static void serve(struct load *load, struct connection *connection, uint32_t events)
{
	int error;

	if (!connection->connected) {
		error = socket_error(connection->fd);
		if (error) {
			replace(load, connection, error);
			return;
		}
		connection->connected = true;
		watch(load, connection, EPOLLIN, EPOLL_CTL_MOD);
		set_free(load, connection, now_ns() + load->settings->think);
		return;
	}
	if (connection->unsent_bytes && events & EPOLLOUT) {
		send_more(load, connection);
		if (!connection->connected) /* replaced */
			return;
		if (!connection->unsent_bytes)
			watch(load, connection, EPOLLIN, EPOLL_CTL_MOD);
	}
	if (events & ~(uint32_t)EPOLLOUT)
		receive(load, connection);
}

/*
 * Handle events and send requests that are due, until this phase is complete or it is time to give
 * up. Return false if a signal ended it. give_up is NEVER while connecting and storing: TCP times
 * out.
 */
static bool run_until(struct load *load, int64_t give_up)
{
	struct epoll_event events[64];

	for (;;) {
		int64_t now = now_ns(), due, wake;
		int count;

		while (load->ring_count && (due = next_due(load)) <= now)
			issue(load, due);
		if (now >= give_up ||
		    (now >= load->end && load->ring_count == load->settings->connections &&
		        next_due(load) == NEVER))
			return true;
		wake = now < load->end ? load->end : give_up;
		if (load->ring_count && next_due(load) < wake)
			wake = next_due(load);
		waiter_arm(&load->waiter, wake);
		count = epoll_wait(load->epoll, events, 64, -1);
		for (int i = 0; i < count; i++) {
			if (events[i].data.ptr == &load->waiter.signals)
				return false;
			if (events[i].data.ptr != &load->waiter.timer)
				serve(load, events[i].data.ptr, events[i].events);
		}
	}
}

static void open_connections(struct load *load)
{
	const struct settings *settings = load->settings;
	struct waiter *waiter = &load->waiter;
	struct epoll_event stop = { .events = EPOLLIN, .data.ptr = &waiter->signals };
	struct epoll_event time = { .events = EPOLLIN | EPOLLET, .data.ptr = &waiter->timer };
	uint8_t *messages = allocate(settings->connections, message_bytes(settings));

	load->epoll = epoll_create1(EPOLL_CLOEXEC);
	waiter_open(waiter);
	if (load->epoll < 0 || epoll_ctl(load->epoll, EPOLL_CTL_ADD, waiter->signals, &stop) ||
	    epoll_ctl(load->epoll, EPOLL_CTL_ADD, waiter->timer, &time))
		fail("cannot open descriptors for epoll (%s), raise the limit of open files", strerror(errno));
	load->connections = allocate(settings->connections, sizeof(*load->connections));
	load->ring = allocate(settings->connections, sizeof(*load->ring));
	for (uint32_t i = 0; i < settings->connections; i++) {
		struct connection *connection = &load->connections[i];

		connection->number = i;
		connection->message = messages + (size_t)i * message_bytes(settings);
		message_init(connection->message, settings);
		open_connection(load, connection);
	}
}

/*
 * Draw the due times of an open loop, a Poisson process, relative to the start of the run. Return
 * their number; store them in log_of_them unless it is NULL.
 */
static size_t draw_schedule(const struct settings *settings, struct request *log_of_them)
{
	uint64_t seed = draw(settings->seed, STREAM_ARRIVALS);
	double length = (double)(settings->warmup + settings->duration), at = 0;

	for (size_t i = 0;; i++) {
		at -= log((double)((draw(seed, i) >> 11) + 1) * 0x1p-53) / settings->rate * (double)NS_PER_S;
		if (at >= length)
			return i;
		if (i == settings->requests)
			fail("the log of %zu requests is too short for this rate and time; increase it with --requests",
			    i);
		if (log_of_them)
			log_of_them[i].due = (int64_t)at;
	}
}

/*
 * Start the load. In the closed loop, spread the connections over the second think time; during the
 * first, queues drain of the handshakes. The open loop starts now.
 */
static void begin(struct load *load)
{
	const struct settings *settings = load->settings;
	int64_t start = now_ns() + settings->think;

	load->ring_first = 0;
	for (uint32_t i = 0; i < settings->connections; i++) {
		load->ring[i].connection = &load->connections[i];
		load->ring[i].due = start + settings->think / settings->connections * i;
	}
	for (size_t i = 0; i < load->scheduled; i++)
		load->log[i].due += start;
	load->measured = start + settings->warmup;
	load->end = load->measured + settings->duration;
	load->phase = PHASE_LOAD;
}

/* Fill in operation and status of requests of the open loop that found no free connection. */
static void fill_unsent(struct load *load)
{
	for (size_t i = load->sent; i < load->scheduled; i++) {
		enum op op;
		uint32_t key;

		choose(load, i, &op, &key);
		load->log[i].op = (uint8_t)op;
		load->log[i].status = STATUS_NONE;
	}
}

struct result run_load(const struct settings *settings)
{
	struct load load = { .settings = settings, .seed = draw(settings->seed, STREAM_CHOICES) };
	size_t rows = settings->rate > 0 ? draw_schedule(settings, NULL) : settings->requests;
	struct result result = { 0 };

	open_connections(&load);
	if (rows < settings->connections)
		rows = settings->connections; /* storing uses one row per connection */
	load.log = allocate(rows, sizeof(*load.log));
	result.log = load.log;
	result.early = !run_until(&load, NEVER);
	load.phase = PHASE_STORE;
	if (!result.early && !settings->stored)
		result.early = !run_until(&load, NEVER);
	if (result.early || settings->store_only)
		return result;
	memset(load.log, 0, settings->connections * sizeof(*load.log));
	if (settings->rate > 0)
		load.scheduled = draw_schedule(settings, load.log);
	begin(&load);
	result.early = !run_until(&load, load.end + settings->linger);
	result.to = now_ns() < load.end ? now_ns() : load.end;
	result.from = load.measured < result.to ? load.measured : result.to;
	fill_unsent(&load);
	result.count = settings->rate > 0 ? load.scheduled : load.sent;
	while (result.count && load.log[result.count - 1].due >= result.to)
		result.count--;
	return result;
}
