/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fanin send: K streams to one receiver. In every interval each stream sends one datagram, or a
 * burst of N, at its own phase, drawn from the seed, or all at a given phase; or one stream sends
 * without pause during the whole run (--flood).
 *
 * The times are absolute, so that delays do not accumulate. Everything due before the end is sent,
 * however late, unless the socket is full at the end. A queueing discipline that holds packets back
 * fills the socket, and the sender sleeps until there is room. The socket is non-blocking, because
 * a signal could arrive between checking for it and a blocking call; poll(2) wakes at the same
 * point as a blocking call, with half of the buffer free (sock_writeable).
 */
#define _GNU_SOURCE
#include "fanin.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "../common/common.h"

/* How long a flood sleeps after a local drop: otherwise it would spin on a full queue. */
#define FLOOD_PAUSE_NS 1000000

#define DRAWN (-1) /* the phases are drawn from the seed */

#define MAX_ROWS 4000000 /* a log of 224 MB */

enum { TO, INTERVAL, PAYLOAD, STREAMS, BURST, FLOOD, PHASE, DURATION, SEED, OUTPUT };

static struct sockaddr_in receiver;

static struct setting settings[] = {
	[TO] = { "to", SETTING_ADDRESSES, .max = 1, .addresses = &receiver, .required = true },
	[INTERVAL] = { "interval", SETTING_NUMBER, 0, 1, MAX_NS },
	[PAYLOAD] = { "payload", SETTING_NUMBER, 230, sizeof(struct fanin_header), FANIN_PAYLOAD_MAX },
	[STREAMS] = { "streams", SETTING_NUMBER, 1, 1, 10000 },
	[BURST] = { "burst", SETTING_NUMBER, 1, 1, 1000000 },
	[FLOOD] = { "flood", SETTING_FLAG },
	[PHASE] = { "phase", SETTING_NUMBER, DRAWN, 0, MAX_NS },
	[DURATION] = { "duration", SETTING_NUMBER, 0, 1, MAX_NS, .required = true },
	[SEED] = { "seed", SETTING_NUMBER, 1, 0, INT64_MAX },
	[OUTPUT] = { "output", SETTING_OUTPUT },
	{ .kind = SETTING_END },
};

static const char help[] =
	"usage: fanin send --to ADDRESS:PORT (--interval NS | --flood) --duration NS [OPTION]...\n"
	"  --to ADDRESS:PORT  the receiver\n"
	"  --interval NS      every stream sends once in each\n"
	"  --payload BYTES    of a datagram, 24 to 65507 (230)\n"
	"  --streams K        independent streams, each at a phase of its own in the interval (1)\n"
	"  --burst N          datagrams back to back each time (1)\n"
	"  --flood            as fast as the socket takes them, in one stream\n"
	"  --phase NS         of all streams, from multiples of the interval on the machine's clock (drawn)\n"
	"  --duration NS      of the run\n"
	"  --seed N           decides the phases (1)\n"
	"  --output FILE      for the log (standard output)\n"
	"  --help             this text\n"
	"Columns: stream sequence due_ns start_ns end_ns sent dropped, a row for each burst. See fanin(1).\n";

struct stream {
	uint32_t id;
	int64_t phase_ns;
	uint64_t sequence; /* of the next datagram */
};

static struct {
	struct waiter waiter;
	int socket;
	int64_t end_ns;
	bool early;
	struct table log;
	int64_t sent, dropped;
	union {
		struct fanin_header header;
		char bytes[FANIN_PAYLOAD_MAX];
	} datagram;
} run;

static int by_phase(const void *left, const void *right)
{
	const struct stream *a = left, *b = right;

	if (a->phase_ns != b->phase_ns)
		return a->phase_ns < b->phase_ns ? -1 : 1;
	return a->id < b->id ? -1 : 1;
}

static struct stream *make_streams(void)
{
	struct stream *streams = allocate((size_t)settings[STREAMS].number, sizeof(*streams));
	const uint64_t seed = (uint64_t)settings[SEED].number;

	for (uint32_t i = 0; i < (uint32_t)settings[STREAMS].number; i++) {
		streams[i].id = i;
		streams[i].phase_ns = (int64_t)(draw(seed, i) % (uint64_t)settings[INTERVAL].number);
	}
	qsort(streams, (size_t)settings[STREAMS].number, sizeof(*streams), by_phase);
	return streams;
}

/*
 * Set all streams to the given phase, counted from a multiple of the interval on the clock, so that
 * all senders with the same interval on this machine send at the same moments. Start at least one
 * interval from now, as the run still has to be prepared.
 */
static void set_phase(struct stream *streams, int64_t start_ns)
{
	const int64_t interval = settings[INTERVAL].number;
	const int64_t phase_ns = 2 * interval - start_ns % interval + settings[PHASE].number;

	for (int64_t i = 0; i < settings[STREAMS].number; i++)
		streams[i].phase_ns = phase_ns;
}

/* Return false if a signal or the end of the run came first. */
static bool wait_for_room(void)
{
	enum wake wake = wait_for(&run.waiter, run.socket, POLLOUT, run.end_ns);

	run.early |= wake == WAKE_SIGNAL;
	return wake == WAKE_READY;
}

static bool pause_until(int64_t until_ns)
{
	run.early |= wait_for(&run.waiter, -1, 0, until_ns) == WAKE_SIGNAL;
	return !run.early;
}

/*
 * Send a datagram; return 1 if sent, 0 if dropped by a local queueing discipline, -1 if the run is
 * over.
 */
static int send_one(struct stream *stream)
{
	struct fanin_header *header = &run.datagram.header;

	header->stream = htobe32(stream->id);
	header->sequence = htobe64(stream->sequence);
	for (;;) {
		header->sent_ns = htobe64((uint64_t)now_ns());
		if (send(run.socket, &run.datagram, (size_t)settings[PAYLOAD].number, 0) >= 0) {
			stream->sequence++;
			return 1;
		}
		switch (errno) {
		case EAGAIN:
			if (!wait_for_room())
				return -1;
			break;
		case ENOBUFS: /* only reported with IP_RECVERR */
			stream->sequence++;
			return 0;
		default:
			fail("%s does not accept datagrams (%s); start fanin receive there, and check by ping",
			     settings[TO].text, strerror(errno));
		}
	}
}

/* Send a burst and log it as a row; return false if the run is over. */
static bool send_burst(struct stream *stream, int64_t due_ns, int64_t count)
{
	int64_t *row = table_row(&run.log, "duration"), dropped = 0, sent = 0, start_ns = now_ns();
	const uint64_t first = stream->sequence;
	bool going = true;

	while (going && sent + dropped < count) {
		int result = send_one(stream);

		going = result >= 0;
		sent += result > 0;
		dropped += result == 0;
		if (!settings[FLOOD].number)
			continue;
		if (result == 0)
			going = pause_until(now_ns() + FLOOD_PAUSE_NS);
		going = going && now_ns() < run.end_ns;
	}
	row[0] = stream->id;
	row[1] = (int64_t)first;
	row[2] = due_ns;
	row[3] = start_ns;
	row[4] = now_ns();
	row[5] = sent;
	row[6] = dropped;
	run.sent += sent;
	run.dropped += dropped;
	return going;
}

static void open_socket(void)
{
	const int on = 1;

	run.socket = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (run.socket < 0 || setsockopt(run.socket, IPPROTO_IP, IP_RECVERR, &on, sizeof(on)) != 0 ||
	    connect(run.socket, (const struct sockaddr *)&receiver, sizeof(receiver)) != 0)
		fail("cannot connect to %s (%s), give this host an address and a route", settings[TO].text,
		    strerror(errno));
}

static uint16_t source_port(void)
{
	struct sockaddr_in own = { 0 };
	socklen_t size = sizeof(own);

	getsockname(run.socket, (struct sockaddr *)&own, &size);
	return ntohs(own.sin_port);
}

/* Count the rows of the log: the bursts of all streams that are due before the end. */
static int64_t count_due(const struct stream *streams)
{
	int64_t interval = settings[INTERVAL].number, duration = settings[DURATION].number, count = 0;

	for (int64_t i = 0; i < settings[STREAMS].number; i++)
		if (streams[i].phase_ns < duration)
			count += (duration - streams[i].phase_ns - 1) / interval + 1;
	return count;
}

static void send_streams(struct stream *streams, int64_t start_ns)
{
	for (int64_t round_ns = start_ns;; round_ns += settings[INTERVAL].number)
		for (int64_t i = 0; i < settings[STREAMS].number; i++) {
			int64_t due_ns = round_ns + streams[i].phase_ns;

			if (due_ns >= run.end_ns)
				return;
			if (!pause_until(due_ns) || !send_burst(&streams[i], due_ns, settings[BURST].number))
				return;
		}
}

static void check_settings(void)
{
	if (settings[FLOOD].number && (settings[INTERVAL].text || settings[STREAMS].text ||
	    settings[BURST].text ||
				       settings[PHASE].text))
		refuse("--flood excludes --interval, --streams, --burst and --phase");
	if (!settings[FLOOD].number && !settings[INTERVAL].text)
		refuse("--interval or --flood is required");
	if (settings[PHASE].number > settings[INTERVAL].number)
		refuse("--phase is %lld, more than --interval, %lld", (long long)settings[PHASE].number,
		       (long long)settings[INTERVAL].number);
}

int fanin_send(int argc, char **argv)
{
	struct stream *streams;
	int64_t start_ns, due = 1;

	read_options(argc, argv, settings, help);
	check_settings();
	if (settings[FLOOD].number)
		settings[INTERVAL].number = settings[DURATION].number;
	streams = make_streams();
	start_ns = now_ns();
	if (settings[PHASE].number != DRAWN)
		set_phase(streams, start_ns);
	if (!settings[FLOOD].number)
		due = count_due(streams);
	if (due > MAX_ROWS)
		refuse("--duration at --interval and --streams makes a log of %lld rows, more than %d, shorten it",
		       (long long)due, MAX_ROWS);
	open_output(settings[OUTPUT].text);
	memset(&run.datagram, 0, sizeof(run.datagram)); /* touch the pages */
	run.datagram.header.magic = htobe32(FANIN_MAGIC);
	open_socket();
	waiter_open(&run.waiter);
	table_allocate(&run.log, 7, (size_t)(due ? due : 1));

	if (settings[PHASE].number == DRAWN)
		start_ns = now_ns(); /* phases count from here */
	run.end_ns = start_ns + settings[DURATION].number;
	if (settings[FLOOD].number)
		send_burst(&streams[0], start_ns, INT64_MAX);
	else
		send_streams(streams, start_ns);

	write_start("send", settings, "stream sequence due_ns start_ns end_ns sent dropped");
	write_table(&run.log);
	write_end(run.log.rows, run.early,
		  (const struct total[]){ { "port", source_port() },
					  { "start_ns", start_ns },
					  { "elapsed_ns", now_ns() - start_ns },
					  { "due", due },
					  { "sent", run.sent },
					  { "dropped", run.dropped },
					  { "bytes", run.sent * settings[PAYLOAD].number },
					  { NULL, 0 } });
	return EXIT_SUCCESS;
}
