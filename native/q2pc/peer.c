/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The coordinator's sockets. They are connected to the clients, for TCP and UDP alike: a connected
 * UDP socket receives answers from that client only, and gets an error if nobody listens there.
 */
#define _GNU_SOURCE
#include "coordinate.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

__attribute__((noreturn)) static void fail_peer(const struct peer *peer, int error)
{
	fail("client %s cannot be reached (%s), start q2pc serve there first",
	    address_text(&peer->address),
	     strerror(error));
}

/* Connect without blocking, so that SIGTERM ends the wait. */
static bool open_tcp(struct peer *peer, struct waiter *waiter)
{
	int error;

	peer->fd = connect_to(&peer->address);
	if (peer->fd < 0)
		fail_peer(peer, errno);
	if (wait_for(waiter, peer->fd, POLLOUT, NEVER) == WAKE_SIGNAL)
		return false;
	error = socket_error(peer->fd);
	if (error)
		fail_peer(peer, error);
	return true;
}

bool open_peer(struct peer *peer, enum transport transport, struct waiter *waiter)
{
	const int on = 1;

	if (transport == TCP)
		return open_tcp(peer, waiter);
	peer->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (peer->fd < 0)
		fail_peer(peer, errno);
	/* Do not connect to a broadcast address: answers come from the clients' own addresses. */
	if (transport == BROADCAST ? setsockopt(peer->fd, SOL_SOCKET, SO_BROADCAST, &on, sizeof(on)) != 0 :
				     connect(peer->fd, (struct sockaddr *)&peer->address, sizeof(peer->address)) != 0)
		fail_peer(peer, errno);
	return true;
}

void send_order(struct peer *peer, const union message_buffer *order, size_t size)
{
	const bool named = order->message.client == EVERY_CLIENT;
	ssize_t sent = sendto(peer->fd, order, size, MSG_NOSIGNAL,
	    named ? (struct sockaddr *)&peer->address : NULL,
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
		fail("client %s hung up, check why it ended", address_text(&peer->address));
	peer->have += (size_t)got;
	if (peer->have < size)
		return false;
	peer->have = 0;
	return true;
}
