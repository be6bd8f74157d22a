/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two-phase commit: a coordinator sends orders, and N clients answer. In phase 1 the order is to
 * prepare, and all clients vote yes; in phase 2 the order is to commit, and all clients
 * acknowledge.
 *
 * All messages have the same size and begin with this structure, in network byte order; the rest is
 * zero. An answer is its order with another kind. A broadcast order is for every client; each
 * answers with its own number.
 */
#ifndef Q2PC_MESSAGE_H
#define Q2PC_MESSAGE_H

#include <endian.h>
#include <stdint.h>

#include "../common/common.h"

#define MAGIC 0x716a3270U /* "qj2p" */
#define MESSAGE_MAX 1472  /* one frame: 1500 bytes minus IP and UDP headers */
#define MAX_CLIENTS 64	  /* bits in a set of clients */
#define EVERY_CLIENT 0xff

enum phase { PREPARE = 1, COMMIT = 2 };
enum kind { ORDER = 1, ANSWER = 2 };

struct message {
	uint32_t magic;
	uint8_t kind, phase, client, zero;
	uint64_t request; /* from 1 */
};

static inline bool is_message(const struct message *message, enum kind kind)
{
	return message->magic == htobe32(MAGIC) && message->kind == kind &&
	    (message->phase == PREPARE || message->phase == COMMIT);
}

union message_buffer {
	struct message message;
	char bytes[MESSAGE_MAX];
};

enum transport { TCP, UDP, BROADCAST };

extern const char *const transports[]; /* their names, terminated by NULL */

int q2pc_coordinate(int argc, char **argv);
int q2pc_serve(int argc, char **argv);

#endif
