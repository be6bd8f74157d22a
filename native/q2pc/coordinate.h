/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef Q2PC_COORDINATE_H
#define Q2PC_COORDINATE_H

#include "message.h"

/* A socket of the coordinator: to one client, or the only one if it broadcasts. */
struct peer {
	struct sockaddr_in address;
	int fd;
	size_t have; /* TCP: bytes received of the next answer */
	union message_buffer answer;
};

/*
 * Open the peer's socket and connect it unless it broadcasts; return false if a signal came first.
 */
bool open_peer(struct peer *peer, enum transport transport, struct waiter *waiter);

/* Send an order. A local drop is treated like a loss; an unreachable peer is a failure. */
void send_order(struct peer *peer, const union message_buffer *order, size_t size);

/* Receive into peer->answer; return false if there is no complete answer yet. */
bool receive_answer(struct peer *peer, enum transport transport, size_t size);

#endif
