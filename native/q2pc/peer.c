/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The coordinator's sockets. It connects to its clients, over TCP and UDP alike: a connected UDP socket takes answers of
 * that client only, and learns that nobody listens there.
 */
#define _GNU_SOURCE
#include "coordinate.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

__attribute__((noreturn)) static void fail_peer(const struct peer *peer, int error)
{
	fail("client %s cannot be reached (%s); start q2pc serve there first", peer->name, strerror(error));
}

int parse_peers(const char *list, struct peer peers[MOST_CLIENTS])
{
	const char *next = list;
	int count = 0;

	for (;;) {
		size_t length = strcspn(next, ",");

		if (count == MOST_CLIENTS || !parse_address(next, length, &peers[count].address))
			refuse("--peers '%s' is not a list of at most %d addresses; give them as in 10.0.0.2:7331,10.0.0.3:7331",
			       list, MOST_CLIENTS);
		snprintf(peers[count].name, sizeof(peers[count].name), "%.*s", (int)length, next);
		count++;
		if (next[length] == '\0')
			return count;
		next += length + 1;
	}
}

/* A new connection, without blocking: SIGTERM ends the wait. */
static bool connect_tcp(struct peer *peer, struct waiter *waiter)
{
	const int on = 1;
	int error = 0;
	socklen_t size = sizeof(error);

	if (setsockopt(peer->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0)
		fail_peer(peer, errno);
	if (connect(peer->fd, (struct sockaddr *)&peer->address, sizeof(peer->address)) == 0)
		return true;
	if (errno != EINPROGRESS)
		fail_peer(peer, errno);
	if (wait_for(waiter, peer->fd, POLLOUT, NEVER) == WAKE_SIGNAL)
		return false;
	getsockopt(peer->fd, SOL_SOCKET, SO_ERROR, &error, &size);
	if (error)
		fail_peer(peer, error);
	return true;
}

bool open_peer(struct peer *peer, enum transport transport, struct waiter *waiter)
{
	const int type = transport == TCP ? SOCK_STREAM | SOCK_NONBLOCK : SOCK_DGRAM;
	const int on = 1;

	peer->fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
	if (peer->fd < 0)
		fail_peer(peer, errno);
	if (transport == TCP)
		return connect_tcp(peer, waiter);
	/* A socket connected to a broadcast address would take no answers, which come from the clients' own. */
	if (transport == BROADCAST ? setsockopt(peer->fd, SOL_SOCKET, SO_BROADCAST, &on, sizeof(on)) != 0 :
				     connect(peer->fd, (struct sockaddr *)&peer->address, sizeof(peer->address)) != 0)
		fail_peer(peer, errno);
	return true;
}

void send_order(struct peer *peer, const union message_buffer *order, size_t size)
{
	const bool named = order->message.client == EVERY_CLIENT;
	ssize_t sent = sendto(peer->fd, order, size, MSG_NOSIGNAL, named ? (struct sockaddr *)&peer->address : NULL,
			      named ? sizeof(peer->address) : 0);

	if (sent < 0 && errno != ENOBUFS)
		fail_peer(peer, errno);
}

bool receive_answer(struct peer *peer, enum transport transport, size_t size)
{
	const size_t want = transport == TCP ? size - peer->have : sizeof(peer->answer);
	const int flags = MSG_DONTWAIT | (transport == TCP ? 0 : MSG_TRUNC);
	ssize_t got = recv(peer->fd, peer->answer.bytes + peer->have, want, flags);

	if (got < 0 && errno == EAGAIN)
		return false;
	if (got < 0)
		fail_peer(peer, errno);
	if (transport != TCP)
		return (size_t)got == size;
	if (got == 0)
		fail("client %s hung up; look why it ended", peer->name);
	peer->have += (size_t)got;
	if (peer->have < size)
		return false;
	peer->have = 0;
	return true;
}
