/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * q2pc coordinate: make one request after another, each in two phases; a phase ends when every
 * client has answered.
 *
 * Over UDP, orders are sent again to clients that have not answered within --rto, as often as
 * necessary. A broadcast is sent once per phase; if answers are missing after --wait, because a
 * message was lost or late, the request fails and the next one begins.
 */
#define _GNU_SOURCE
#include "coordinate.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define BATCH 16 /* events per epoll_wait() */

enum { TRANSPORT, PEERS, BROADCAST_TO, CLIENTS, REQUESTS, DURATION, INTERVAL, MESSAGE, RTO, WAIT,
    OUTPUT };

static struct sockaddr_in addresses[MAX_CLIENTS];

static struct setting settings[] = {
	[TRANSPORT] = { "transport", SETTING_CHOICE, .choices = transports, .required = true },
	[PEERS] = { "peers", SETTING_ADDRESSES, .max = MAX_CLIENTS, .addresses = addresses },
	[BROADCAST_TO] = { "broadcast", SETTING_ADDRESSES, .max = 1, .addresses = addresses },
	[CLIENTS] = { "clients", SETTING_NUMBER, 0, 1, MAX_CLIENTS },
	[REQUESTS] = { "requests", SETTING_NUMBER, 100000, 1, 4000000 },
	[DURATION] = { "duration", SETTING_NUMBER, 0, 1, MAX_NS, .required = true },
	[INTERVAL] = { "interval", SETTING_NUMBER, 0, 0, MAX_NS },
	[MESSAGE] = { "message", SETTING_NUMBER, sizeof(struct message), sizeof(struct message),
	    MESSAGE_MAX },
	[RTO] = { "rto", SETTING_NUMBER, 200000000, 1, MAX_NS },
	[WAIT] = { "wait", SETTING_NUMBER, 5 * NS_PER_S, 1, MAX_NS },
	[OUTPUT] = { "output", SETTING_OUTPUT },
	{ .kind = SETTING_END },
};

static const char help[] =
	"usage: q2pc coordinate --transport tcp|udp --peers ADDRESS:PORT,... --duration NS [OPTION]...\n"
	"       q2pc coordinate --transport broadcast --broadcast ADDRESS:PORT --clients N --duration NS [OPTION]...\n"
	"  --transport NAME   tcp, udp or broadcast\n"
	"  --peers LIST       where the clients listen\n"
	"  --broadcast ADDRESS:PORT\n"
	"                     the subnet's broadcast address, and the port of all clients\n"
	"  --clients N        how many clients answer a broadcast\n"
	"  --duration NS      of the run\n"
	"  --requests MAX     the run ends after so many too, and the log has room for them (100000)\n"
	"  --interval NS      least time from one request to the next (0: back to back)\n"
	"  --message BYTES    of orders and answers, 16 to 1472 (16)\n"
	"  --rto NS           udp: ask again after (200000000)\n"
	"  --wait NS          broadcast: a phase has failed after (5000000000)\n"
	"  --output FILE      for the log (standard output)\n"
	"  --help             this text\n"
	"A row a request, columns: start_ns votes_ns end_ns retries failed. See q2pc(1).\n";

static struct {
	enum transport transport;
	struct peer peers[MAX_CLIENTS];
	int sockets;	   /* number of peers in use */
	uint64_t everyone; /* the set of all clients: bit i for client i */
	struct waiter waiter;
	int epoll;
	struct table log;
	int64_t end_ns;
	bool over, early;
} run;

/* The current request. */
static struct {
	uint64_t number;
	uint8_t phase; /* 0: there is none */
	uint64_t answered;
	int64_t start_ns, votes_ns;
	int64_t retries;
	int64_t deadline_ns; /* to retry or give up, or for the start of the next request */
	union message_buffer order;
} now;

static struct {
	int64_t completed, failed, retries, repeated, late, foreign;
} count;

static void send_orders(uint64_t clients)
{
	struct message *order = &now.order.message;
	const size_t size = (size_t)settings[MESSAGE].number;

	if (run.transport == BROADCAST) {
		order->client = EVERY_CLIENT;
		send_order(&run.peers[0], &now.order, size);
		return;
	}
	for (; clients != 0; clients &= clients - 1) {
		order->client = (uint8_t)__builtin_ctzll(clients);
		send_order(&run.peers[order->client], &now.order, size);
	}
}

static void begin_phase(enum phase phase, int64_t at_ns)
{
	now.phase = phase;
	now.answered = 0;
	now.deadline_ns = run.transport == TCP ? NEVER
	    : at_ns + settings[run.transport == UDP ? RTO : WAIT].number;
	now.order.message.phase = phase;
	send_orders(run.everyone);
}

static void begin_request(int64_t at_ns)
{
	now.number++;
	now.start_ns = at_ns;
	now.votes_ns = 0;
	now.retries = 0;
	now.order.message.request = htobe64(now.number);
	begin_phase(PREPARE, at_ns);
}

static void end_request(int64_t at_ns, bool failed)
{
	int64_t *row = table_row(&run.log, "requests");

	row[0] = now.start_ns;
	row[1] = now.votes_ns;
	row[2] = at_ns;
	row[3] = now.retries;
	row[4] = failed;
	count.completed += !failed;
	count.failed += failed;
	count.retries += now.retries;
	now.phase = 0;
	now.deadline_ns = now.start_ns + settings[INTERVAL].number;
	if (run.log.rows == run.log.capacity || at_ns >= run.end_ns)
		run.over = true;
	else if (now.deadline_ns <= at_ns)
		begin_request(at_ns);
}

static void handle_answer(int socket)
{
	const struct message *answer = &run.peers[socket].answer.message;
	uint64_t client;

	if (!is_message(answer, ANSWER) || answer->client >= settings[CLIENTS].number ||
	    (run.transport != BROADCAST && answer->client != socket)) {
		count.foreign++;
		return;
	}
	client = 1ULL << answer->client;
	if (be64toh(answer->request) != now.number || answer->phase != now.phase) {
		count.late++;
		return;
	}
	count.repeated += (now.answered & client) != 0;
	now.answered |= client;
	if (now.answered != run.everyone)
		return;
	if (now.phase == PREPARE) {
		now.votes_ns = now_ns();
		begin_phase(COMMIT, now.votes_ns);
	} else {
		end_request(now_ns(), false);
	}
}

static void handle_timer(void)
{
	const int64_t at_ns = now_ns();

	run.waiter.armed_ns = NEVER; /* it has expired, perhaps for a deadline that was met */
	if (at_ns >= run.end_ns) {
		run.over = true;
	} else if (at_ns < now.deadline_ns) {
		;
	} else if (now.phase == 0) {
		begin_request(at_ns);
	} else if (run.transport == UDP) {
		const uint64_t missing = run.everyone & ~now.answered;

		now.retries += __builtin_popcountll(missing);
		now.deadline_ns = at_ns + settings[RTO].number;
		send_orders(missing);
	} else {
		end_request(at_ns, true);
	}
}

static void watch(int fd, int number)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = (uint32_t)number };

	if (epoll_ctl(run.epoll, EPOLL_CTL_ADD, fd, &event) != 0)
		fail("cannot watch %d sockets (%s), give fewer clients", run.sockets, strerror(errno));
}

/* Open and watch all sockets; return false if a signal came first. */
static bool get_ready(void)
{
	run.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (run.epoll < 0)
		fail("cannot open descriptors for epoll (%s), raise the limit of open files", strerror(errno));
	for (int i = 0; i < run.sockets; i++) {
		if (!open_peer(&run.peers[i], run.transport, &run.waiter))
			return false;
		watch(run.peers[i].fd, i);
	}
	watch(run.waiter.timer, MAX_CLIENTS);
	watch(run.waiter.signals, MAX_CLIENTS + 1);
	return true;
}

static void coordinate(void)
{
	struct epoll_event events[BATCH];

	while (!run.over) {
		int64_t next_ns = now.deadline_ns < run.end_ns ? now.deadline_ns : run.end_ns;
		int ready;

		/*
		 * Deadlines move with every phase and are rarely reached: a spurious expiry is
		 * cheaper than re-arming.
		 */
		if (next_ns < run.waiter.armed_ns)
			waiter_arm(&run.waiter, next_ns);
		ready = epoll_wait(run.epoll, events, BATCH, -1);
		if (ready < 0 && errno != EINTR)
			fail("cannot wait (%s)", strerror(errno));
		for (int i = 0; i < ready && !run.over; i++) {
			int number = (int)events[i].data.u32;

			if (number == MAX_CLIENTS)
				handle_timer();
			else if (number > MAX_CLIENTS)
				run.over = run.early = true;
			else if (receive_answer(&run.peers[number], run.transport, (size_t)settings[MESSAGE].number))
				handle_answer(number);
		}
	}
}

static void check_settings(void)
{
	run.transport = (enum transport)settings[TRANSPORT].number;
	if (run.transport == BROADCAST) {
		if (settings[PEERS].text || !settings[BROADCAST_TO].text || !settings[CLIENTS].text)
			refuse("--transport broadcast needs --broadcast and --clients, not --peers");
		run.sockets = 1;
	} else {
		if (!settings[PEERS].text || settings[BROADCAST_TO].text || settings[CLIENTS].text)
			refuse("--transport %s needs --peers, not --broadcast and --clients",
			       settings[TRANSPORT].text);
		run.sockets = (int)settings[PEERS].number;
		settings[CLIENTS].number = run.sockets;
	}
	for (int i = 0; i < run.sockets; i++)
		run.peers[i].address = addresses[i];
	if (run.transport != UDP && settings[RTO].text)
		refuse("--rto needs --transport udp");
	if (run.transport != BROADCAST && settings[WAIT].text)
		refuse("--wait needs --transport broadcast");
	run.everyone = UINT64_MAX >> (MAX_CLIENTS - settings[CLIENTS].number);
}

int q2pc_coordinate(int argc, char **argv)
{
	int64_t start_ns, elapsed_ns = 0;

	read_options(argc, argv, settings, help);
	check_settings();
	open_output(settings[OUTPUT].text);
	now.order.message = (struct message){ .magic = htobe32(MAGIC), .kind = ORDER };
	table_allocate(&run.log, 5, (size_t)settings[REQUESTS].number);
	waiter_open(&run.waiter);
	if (get_ready()) {
		start_ns = now_ns();
		run.end_ns = start_ns + settings[DURATION].number;
		begin_request(start_ns);
		coordinate();
		elapsed_ns = now_ns() - start_ns;
	} else {
		run.early = true;
	}

	write_start("coordinate", settings, "start_ns votes_ns end_ns retries failed");
	write_table(&run.log);
	write_end(run.log.rows, run.early,
		  (const struct total[]){ { "elapsed_ns", elapsed_ns },
					  { "completed", count.completed },
					  { "failed", count.failed },
					  { "unfinished", now.phase != 0 },
					  { "retries", count.retries },
					  { "repeated", count.repeated },
					  { "late", count.late },
					  { "foreign", count.foreign },
					  { NULL, 0 } });
	return EXIT_SUCCESS;
}
