/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef Q2PC_COORDINATE_H
#define Q2PC_COORDINATE_H

#include "message.h"

/* A socket of the coordinator: to one client, or, with broadcast, the only one. */
struct peer {
	struct sockaddr_in address;
	int fd;
	size_t have; /* TCP: bytes of the next answer */
	union message_buffer answer;
};

/* Make the peer's socket and, unless it broadcasts, connect it. False if a signal came first. */
bool open_peer(struct peer *peer, enum transport transport, struct waiter *waiter);

/* Send an order. One that the kernel drops is lost like any other; a peer that is not there ends the run. */
void send_order(struct peer *peer, const union message_buffer *order, size_t size);

/* Fill peer->answer; false if there is nothing whole yet. */
bool receive_answer(struct peer *peer, enum transport transport, size_t size);

#endif
