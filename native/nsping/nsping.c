/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * nsping: measure round trips of echo requests, sent at scheduled times, in nanoseconds. iputils'
 * ping prints whole microseconds and sends at most every 2 ms, but a full-size frame takes 1.2 us
 * at 10 Gb/s.
 *
 * A round trip lasts from a clock reading just before the request is given to the kernel to the
 * kernel's time stamp of the reply, so it does not include the time until the reply is read. The
 * stamp is of CLOCK_REALTIME; times of sending are logged by CLOCK_MONOTONIC, as in the other
 * programs.
 *
 * The socket is not connected and does not use IP_RECVERR, so that ICMP errors are not put on it,
 * where a later call would report them as its own. The price is that the kernel does not report
 * local drops by a queueing discipline: such requests are lost, like those dropped in the network.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "../common/common.h"
#include "echo.h"

#include <linux/icmp.h>

#define MAX_REQUESTS 10000000 /* a log of 240 MB */

const char program[] = "nsping";

enum { TO, INTERVAL, COUNT, PAYLOAD, LINGER, OUTPUT };

static struct sockaddr_in target;

static struct setting settings[] = {
	[TO] = { "to", SETTING_HOST, .addresses = &target, .required = true },
	[INTERVAL] = { "interval", SETTING_NUMBER, 0, 1000, MAX_NS, .required = true },
	[COUNT] = { "count", SETTING_NUMBER, 0, 1, MAX_REQUESTS, .required = true },
	[PAYLOAD] = { "payload", SETTING_NUMBER, 56, PAYLOAD_MIN, PAYLOAD_MAX },
	[LINGER] = { "linger", SETTING_NUMBER, 5 * NS_PER_S, 0, MAX_NS },
	[OUTPUT] = { "output", SETTING_OUTPUT },
	{ .kind = SETTING_END },
};

static const char help[] =
	"usage: nsping --to ADDRESS --interval NS --count N [OPTION]...\n"
	"  --to ADDRESS     the host that is to answer, IPv4\n"
	"  --interval NS    from one request to the next, 1000 or more\n"
	"  --count N        how many requests\n"
	"  --payload BYTES  payload of a request, 16 to 65507 (56)\n"
	"  --linger NS      how long to wait for replies after the last request (5000000000)\n"
	"  --output FILE    for the log (standard output)\n"
	"  --help           this text\n"
	"A row a request, columns: sequence sent_ns rtt_ns, 0 if it was lost. See nsping(1).\n";

struct request {
	int64_t sent_ns;
	int64_t sent_realtime_ns;
	int64_t rtt_ns; /* 0: not answered */
};

static struct {
	struct waiter waiter;
	int socket;
	int clock; /* timer that is cancelled if CLOCK_REALTIME is set */
	uint16_t identifier;
	int64_t start_ns;
	struct request *requests;
	int64_t sent, received, duplicates, foreign;
	bool early;
	union {
		struct echo echo;
		uint8_t bytes[ICMP_HEADER_BYTES + PAYLOAD_MAX];
	} request;
	uint8_t reply[PACKET_MAX];
} run;

static void watch_clock(void)
{
	const struct itimerspec never = { .it_value.tv_sec = NEVER / NS_PER_S };

	run.clock = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (run.clock < 0 ||
	    timerfd_settime(run.clock, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, NULL) != 0)
		fail("cannot create a timer to watch the clock (%s), raise the limit of open files",
		    strerror(errno));
}

static void check_clock(void)
{
	uint64_t expirations;

	if (read(run.clock, &expirations, sizeof(expirations)) < 0 && errno == ECANCELED)
		fail("CLOCK_REALTIME was set during the run, so round trips are wrong; stop the program that sets it");
}

/*
 * Choose an ICMP identifier that no other nsping in this network namespace has: the number of a UDP
 * port, which the kernel gives to nobody else while the socket is open.
 */
static uint16_t own_identifier(void)
{
	struct sockaddr_in own = { .sin_family = AF_INET };
	socklen_t size = sizeof(own);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (const struct sockaddr *)&own, sizeof(own)) != 0 ||
	    getsockname(fd, (struct sockaddr *)&own, &size) != 0)
		fail("no free UDP port to use as identifier (%s)", strerror(errno));
	return ntohs(own.sin_port);
}

/* Raw sockets receive all replies in their network namespace: filter those of other programs. */
static void filter_replies(void)
{
	const struct icmp_filter types = { .data = ~(1U << ICMP_ECHOREPLY) };
	struct sock_filter steps[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 12), /* source address */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohl(target.sin_addr.s_addr), 0, 4),
		BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0), /* skip the IP header */
		BPF_STMT(BPF_LD | BPF_H | BPF_IND, 4), /* identifier */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, run.identifier, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, PACKET_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	const struct sock_fprog filter = { sizeof(steps) / sizeof(steps[0]), steps };

	if (setsockopt(run.socket, SOL_RAW, ICMP_FILTER, &types, sizeof(types)) != 0 ||
	    setsockopt(run.socket, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) != 0)
		fail("cannot filter replies (%s)", strerror(errno));
	while (recv(run.socket, run.reply, sizeof(run.reply), 0) >= 0) /* drain earlier packets */
		;
}

static void open_socket(void)
{
	const int on = 1;

	run.socket = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_ICMP);
	if (run.socket < 0 && errno == EPERM)
		fail("raw sockets need root or CAP_NET_RAW");
	if (run.socket < 0 || setsockopt(run.socket, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on)) != 0)
		fail("no raw socket with time stamps (%s)", strerror(errno));
	filter_replies();
}

static int64_t arrival_realtime_ns(struct msghdr *message)
{
	for (struct cmsghdr *control = CMSG_FIRSTHDR(message); control; control =
	    CMSG_NXTHDR(message, control)) {
		struct timespec stamp;

		if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_TIMESTAMPNS)
			continue;
		memcpy(&stamp, CMSG_DATA(control), sizeof(stamp));
		return stamp.tv_sec * NS_PER_S + stamp.tv_nsec;
	}
	fail("a reply has no time stamp, this kernel does not support SO_TIMESTAMPNS");
}

/* Return the request that a packet answers, or NULL. */
static struct request *answered(size_t size)
{
	struct request *request;
	uint64_t number;
	int64_t sent_ns;

	if (!echo_reply(run.reply, size, (size_t)settings[PAYLOAD].number, &number, &sent_ns) ||
	    number == 0 ||
	    number > (uint64_t)run.sent)
		return NULL;
	request = &run.requests[number - 1];
	return request->sent_realtime_ns == sent_ns ? request : NULL;
}

/* Receive one packet, if there is one. */
static void receive(void)
{
	char control[CMSG_SPACE(sizeof(struct timespec))];
	struct iovec space = { run.reply, sizeof(run.reply) };
	struct msghdr message = {
		.msg_iov = &space, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)
	};
	ssize_t size = recvmsg(run.socket, &message, 0);
	struct request *request;

	if (size < 0) {
		if (errno != EAGAIN)
			fail("cannot receive from %s (%s)", settings[TO].text, strerror(errno));
		return;
	}
	request = answered((size_t)size);
	if (!request) {
		run.foreign++;
	} else if (request->rtt_ns) {
		run.duplicates++;
	} else {
		request->rtt_ns = arrival_realtime_ns(&message) - request->sent_realtime_ns;
		if (request->rtt_ns < 1)
			request->rtt_ns = 1; /* 0 means lost; the clock may be coarse */
		run.received++;
	}
}

static bool is_ready(int fd, short events)
{
	struct pollfd look = { .fd = fd, .events = events };

	return poll(&look, 1, 0) > 0;
}

/* Wait for a time or an event, which must include POLLIN; receive a packet if there is one. */
static enum wake wait_and_receive(short events, int64_t until_ns)
{
	enum wake wake = wait_for(&run.waiter, run.socket, events, until_ns);

	if (wake == WAKE_SIGNAL)
		run.early = true;
	else if (wake == WAKE_READY)
		receive();
	return wake;
}

/*
 * Receive one packet without waiting. Sending is late, and a timer that expires at once is
 * expensive.
 */
static bool receive_one(void)
{
	run.early = is_ready(run.waiter.signals, POLLIN);
	receive();
	return !run.early;
}

/* Return false if a signal came first. When late, receive one packet per request sent. */
static bool receive_until(int64_t until_ns)
{
	enum wake wake;

	if (now_ns() >= until_ns)
		return receive_one();
	do
		wake = wait_and_receive(POLLIN, until_ns);
	while (wake == WAKE_READY && now_ns() < until_ns);
	return wake != WAKE_SIGNAL;
}

static int64_t due_ns(int64_t sent)
{
	return run.start_ns + sent * settings[INTERVAL].number;
}

/* Wait until half of the socket's buffer is free; return false on a signal or timeout. */
static bool wait_for_room(void)
{
	const int64_t end_ns = due_ns(settings[COUNT].number - 1) + settings[LINGER].number;

	do
		if (wait_and_receive(POLLIN | POLLOUT, end_ns) != WAKE_READY)
			return false;
	while (!is_ready(run.socket, POLLOUT));
	return true;
}

/*
 * Send the next request; return false if a signal came first or there was no room for too long. A
 * raw socket reports a full buffer by ENOBUFS, even a non-blocking one, just as it reports lack of
 * memory.
 */
static bool send_next(void)
{
	const size_t size = ICMP_HEADER_BYTES + (size_t)settings[PAYLOAD].number;
	struct request *request = &run.requests[run.sent];

	for (bool waited = false;; waited = true) {
		request->sent_ns = now_ns();
		request->sent_realtime_ns = realtime_ns();
		echo_request(&run.request.echo, run.identifier, (uint64_t)run.sent + 1,
		    request->sent_realtime_ns);
		if (sendto(run.socket, &run.request, size, 0, (const struct sockaddr *)&target,
		    sizeof(target)) >= 0) {
			run.sent++;
			return true;
		}
		if (errno != ENOBUFS)
			fail("cannot send %lld bytes to %s (%s), give this host an address and a route, or send less",
			     (long long)settings[PAYLOAD].number, settings[TO].text, strerror(errno));
		if (waited)
			fail("the socket's buffer has no room for %lld bytes when half empty, give less by --payload",
			     (long long)settings[PAYLOAD].number);
		if (!wait_for_room())
			return false;
	}
}

static void measure(void)
{
	int64_t end_ns;

	run.start_ns = now_ns();
	while (run.sent < settings[COUNT].number)
		if (!receive_until(due_ns(run.sent)) || !send_next())
			break;
	end_ns = now_ns() + settings[LINGER].number;
	while (!run.early && run.received < run.sent)
		if (wait_and_receive(POLLIN, end_ns) == WAKE_TIME)
			break;
}

static void write_log(void)
{
	write_start(NULL, settings, "sequence sent_ns rtt_ns");
	for (int64_t i = 0; i < run.sent; i++)
		write_row((const int64_t[]){ i + 1, run.requests[i].sent_ns, run.requests[i].rtt_ns }, 3);
	write_end((size_t)run.sent, run.early,
		  (const struct total[]){ { "identifier", run.identifier },
					  { "start_ns", run.start_ns },
					  { "sent", run.sent },
					  { "received", run.received },
					  { "duplicates", run.duplicates },
					  { "foreign", run.foreign },
					  { "overflowed", socket_overflowed(run.socket) },
					  { NULL, 0 } });
}

int main(int argc, char **argv)
{
	read_options(argc, argv, settings, help);
	if (settings[COUNT].number - 1 > MAX_NS / settings[INTERVAL].number)
		refuse("--count requests at --interval take more than a day, reduce one of them");
	open_output(settings[OUTPUT].text);
	memset(&run.request, 0, sizeof(run.request)); /* touch the pages of both */
	memset(run.reply, 0, sizeof(run.reply));
	run.requests = allocate((size_t)settings[COUNT].number, sizeof(*run.requests));
	run.identifier = own_identifier();
	open_socket();
	waiter_open(&run.waiter);
	watch_clock();

	measure();

	check_clock();
	write_log();
	return EXIT_SUCCESS;
}
