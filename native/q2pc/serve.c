/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * q2pc serve: a client, which answers each order of the coordinator at once. It answers repeated
 * orders too, as its answer may have been lost. Over TCP it serves one connection at a time; over
 * UDP it answers the sender of an order.
 */
#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "message.h"

enum { PORT, TRANSPORT, CLIENT, MESSAGE, OUTPUT };

static struct setting settings[] = {
	[PORT] = { "port", SETTING_NUMBER, 0, 1, UINT16_MAX, .required = true },
	[TRANSPORT] = { "transport", SETTING_CHOICE, .choices = transports, .required = true },
	[CLIENT] = { "client", SETTING_NUMBER, 0, 0, MAX_CLIENTS - 1 },
	[MESSAGE] = { "message", SETTING_NUMBER, sizeof(struct message), sizeof(struct message),
	    MESSAGE_MAX },
	[OUTPUT] = { "output", SETTING_OUTPUT },
	{ .kind = SETTING_END },
};

static const char help[] =
	"usage: q2pc serve --port PORT --transport tcp|udp|broadcast [OPTION]...\n"
	"  --port PORT        to listen on\n"
	"  --transport NAME   tcp, udp or broadcast\n"
	"  --client I         number of this client, from 0; with broadcast, where every client needs its own\n"
	"  --message BYTES    as the coordinator's, 16 to 1472 (16)\n"
	"  --output FILE      for the log (standard output)\n"
	"  --help             this text\n"
	"Ends on SIGTERM. One row, columns: orders repeated unprepared foreign. See q2pc(1).\n";

static struct {
	enum transport transport;
	int listener;	 /* TCP: the listening socket; otherwise the only socket */
	int connection;	 /* TCP: -1 if there is none */
	size_t have;	 /* TCP: bytes received of the next order */
	uint64_t request; /* of the last order */
	uint8_t phase;
	union message_buffer order;
} run;

static struct {
	int64_t orders, repeated, unprepared, foreign;
} count;

static void open_socket(void)
{
	const struct sockaddr_in at = { .sin_family = AF_INET,
	    .sin_port = htons((uint16_t)settings[PORT].number) };
	const int type = (run.transport == TCP ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC | SOCK_NONBLOCK;
	const int on = 1;
	bool good;

	run.connection = -1;
	run.listener = socket(AF_INET, type, 0);
	good = run.listener >= 0;
	/*
	 * TCP: ignore connections in TIME_WAIT. Broadcast: allow several clients per host. UDP:
	 * only one.
	 */
	if (run.transport != UDP)
		good = good && setsockopt(run.listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0;
	good = good && bind(run.listener, (const struct sockaddr *)&at, sizeof(at)) == 0;
	if (run.transport == TCP)
		good = good && listen(run.listener, 1) == 0;
	if (!good)
		fail("cannot listen on port %lld (%s), choose another", (long long)settings[PORT].number,
		     strerror(errno));
}

/* Turn the order in the buffer into its answer; return false if it is not a valid order. */
static bool handle_order(size_t size)
{
	struct message *order = &run.order.message;
	const uint64_t request = be64toh(order->request);

	if (size != (size_t)settings[MESSAGE].number || !is_message(order, ORDER)) {
		count.foreign++;
		return false;
	}
	count.orders++;
	if (request == run.request && order->phase == run.phase)
		count.repeated++;
	else if (order->phase == COMMIT && (request != run.request || run.phase != PREPARE))
		count.unprepared++;
	run.request = request;
	run.phase = order->phase;
	order->kind = ANSWER;
	if (order->client == EVERY_CLIENT)
		order->client = (uint8_t)settings[CLIENT].number;
	return true;
}

static void serve_datagram(void)
{
	struct sockaddr_in source;
	socklen_t length = sizeof(source);
	ssize_t size = recvfrom(run.listener, &run.order, sizeof(run.order), MSG_TRUNC,
	    (struct sockaddr *)&source, &length);

	/* Ignore errors: to the coordinator it is one more lost datagram. */
	if (size >= 0 && handle_order((size_t)size))
		sendto(run.listener, &run.order, (size_t)size, 0, (struct sockaddr *)&source, length);
}

static void hang_up(void)
{
	close(run.connection);
	run.connection = -1;
}

static void serve_connection(void)
{
	const size_t whole = (size_t)settings[MESSAGE].number;
	ssize_t got = recv(run.connection, run.order.bytes + run.have, whole - run.have, 0);

	if (got < 0 && errno == EAGAIN)
		return;
	if (got <= 0) { /* the coordinator has finished or is gone: wait for the next */
		hang_up();
		return;
	}
	run.have += (size_t)got;
	if (run.have < whole)
		return;
	run.have = 0;
	if (!handle_order(whole) || send(run.connection, &run.order, whole,
	    MSG_NOSIGNAL) != (ssize_t)whole)
		hang_up();
}

static void serve_tcp(void)
{
	const int on = 1;

	if (run.connection >= 0) {
		serve_connection();
		return;
	}
	run.connection = accept_from(run.listener);
	run.have = 0;
	if (run.connection >= 0)
		setsockopt(run.connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

int q2pc_serve(int argc, char **argv)
{
	struct waiter waiter;

	read_options(argc, argv, settings, help);
	run.transport = (enum transport)settings[TRANSPORT].number;
	if ((run.transport == BROADCAST) != (settings[CLIENT].text != NULL))
		refuse(run.transport == BROADCAST ? "--client is required with --transport broadcast" :
						    "--client needs --transport broadcast");
	open_output(settings[OUTPUT].text);
	waiter_open(&waiter);
	open_socket();

	while (wait_for(&waiter, run.connection >= 0 ? run.connection : run.listener, POLLIN,
	    NEVER) != WAKE_SIGNAL)
		if (run.transport == TCP)
			serve_tcp();
		else
			serve_datagram();

	write_start("serve", settings, "orders repeated unprepared foreign");
	write_row((const int64_t[]){ count.orders, count.repeated, count.unprepared, count.foreign }, 4);
	write_end(1, false, (const struct total[]){ { NULL, 0 } });
	return EXIT_SUCCESS;
}
