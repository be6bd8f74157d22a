/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fanin receive: log every datagram of fanin send, until SIGTERM.
 *
 * The arrival of a datagram is the kernel's time stamp, taken when the link hands over the frame. A
 * clock read by this program would include the wake-up and, with all hosts on one processor,
 * whatever else is running. Over four idle 10 Mb/s links the stamp gave 941.5 us, of which the wire
 * takes 921.6, and a clock reading 953.1 us (Linux 6.12 on the virtual clock). The stamp is of
 * CLOCK_REALTIME; its offset from CLOCK_MONOTONIC is measured before and after the run.
 */
#define _GNU_SOURCE
#include "fanin.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "../common/common.h"

#define TRIES 32

enum { PORT, ROWS, OUTPUT };

static struct setting settings[] = {
	[PORT] = { "port", SETTING_NUMBER, 0, 1, UINT16_MAX, .required = true },
	[ROWS] = { "rows", SETTING_NUMBER, 200000, 1, 4000000 },
	[OUTPUT] = { "output", SETTING_OUTPUT },
	{ .kind = SETTING_END },
};

static const char help[] =
	"usage: fanin receive --port PORT [OPTION]...\n"
	"  --port PORT     to listen on\n"
	"  --rows N        room in the log; more datagrams are an error (200000)\n"
	"  --output FILE   for the log (standard output)\n"
	"  --help          this text\n"
	"Ends on SIGTERM. Columns: source port stream sequence sent_ns received_ns bytes. See fanin(1).\n";

static struct {
	int socket;
	int64_t ahead_ns; /* CLOCK_REALTIME minus CLOCK_MONOTONIC */
	struct table log;
	int64_t bytes, foreign;
	union {
		struct fanin_header header;
		char bytes[FANIN_PAYLOAD_MAX];
	} datagram;
} run;

/*
 * Measure CLOCK_REALTIME minus CLOCK_MONOTONIC; set *error to the bound of the error. The kernel
 * keeps the difference as an integer, which changes only when the clock is set: slewing affects
 * both clocks alike. Only root may read it, so estimate it from three readings, the middle one of
 * the other clock. Use the narrowest of several tries, as an interrupt may disturb one.
 */
static int64_t realtime_ahead_ns(int64_t *error)
{
	int64_t ahead = 0;

	*error = MAX_NS;
	for (int i = 0; i < TRIES; i++) {
		int64_t before = now_ns(), real = realtime_ns(), after = now_ns();

		if (after - before >= 2 * *error)
			continue;
		*error = (after - before + 1) / 2;
		ahead = real - before - (after - before) / 2;
	}
	return ahead;
}

static void open_socket(void)
{
	const struct sockaddr_in at = { .sin_family = AF_INET,
	    .sin_port = htons((uint16_t)settings[PORT].number) };
	const int on = 1;

	run.socket = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (run.socket < 0 || setsockopt(run.socket, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on)) != 0 ||
	    bind(run.socket, (const struct sockaddr *)&at, sizeof(at)) != 0)
		fail("cannot listen on port %lld (%s), choose another", (long long)settings[PORT].number,
		     strerror(errno));
}

static int64_t arrival_ns(struct msghdr *message)
{
	for (struct cmsghdr *control = CMSG_FIRSTHDR(message); control; control =
	    CMSG_NXTHDR(message, control)) {
		struct timespec stamp;

		if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_TIMESTAMPNS)
			continue;
		memcpy(&stamp, CMSG_DATA(control), sizeof(stamp));
		return stamp.tv_sec * NS_PER_S + stamp.tv_nsec - run.ahead_ns;
	}
	fail("a datagram has no time stamp, this kernel does not support SO_TIMESTAMPNS");
}

/* Receive and log one datagram; return false if there is none. */
static bool receive(void)
{
	char control[CMSG_SPACE(sizeof(struct timespec))];
	struct sockaddr_in source;
	struct iovec space = { &run.datagram, sizeof(run.datagram) };
	struct msghdr message = { .msg_name = &source, .msg_namelen = sizeof(source), .msg_iov = &space,
	    .msg_iovlen = 1,
				  .msg_control = control, .msg_controllen = sizeof(control) };
	ssize_t size = recvmsg(run.socket, &message, 0);
	int64_t *row;

	if (size < 0) {
		if (errno != EAGAIN)
			fail("cannot receive on port %lld (%s), choose another", (long long)settings[PORT].number,
			     strerror(errno));
		return false;
	}
	if ((size_t)size < sizeof(struct fanin_header) ||
	    run.datagram.header.magic != htobe32(FANIN_MAGIC)) {
		run.foreign++;
		return true;
	}
	row = table_row(&run.log, "rows");
	row[0] = ntohl(source.sin_addr.s_addr);
	row[1] = ntohs(source.sin_port);
	row[2] = be32toh(run.datagram.header.stream);
	row[3] = (int64_t)be64toh(run.datagram.header.sequence);
	row[4] = (int64_t)be64toh(run.datagram.header.sent_ns);
	row[5] = arrival_ns(&message);
	row[6] = size;
	run.bytes += size;
	return true;
}

int fanin_receive(int argc, char **argv)
{
	struct waiter waiter;
	int64_t error_ns, error_after_ns, ahead_after_ns;

	read_options(argc, argv, settings, help);
	open_output(settings[OUTPUT].text);
	memset(&run.datagram, 0, sizeof(run.datagram)); /* touch the pages */
	table_allocate(&run.log, 7, (size_t)settings[ROWS].number);
	waiter_open(&waiter);
	run.ahead_ns = realtime_ahead_ns(&error_ns);
	open_socket();

	while (wait_for(&waiter, run.socket, POLLIN, NEVER) != WAKE_SIGNAL)
		receive();
	while (receive()) /* datagrams that arrived before the signal */
		;

	ahead_after_ns = realtime_ahead_ns(&error_after_ns);
	if (llabs(ahead_after_ns - run.ahead_ns) > error_ns + error_after_ns)
		fail("CLOCK_REALTIME was set by %lld ns during the run, so arrivals are wrong; stop the program that sets it",
		     (long long)(ahead_after_ns - run.ahead_ns));
	write_start("receive", settings, "source port stream sequence sent_ns received_ns bytes");
	write_table(&run.log);
	write_end(run.log.rows, false,
		  (const struct total[]){ { "bytes", run.bytes },
					  { "foreign", run.foreign },
					  { "overflowed", socket_overflowed(run.socket) },
					  { "clock_error_ns", error_ns },
					  { NULL, 0 } });
	return EXIT_SUCCESS;
}
