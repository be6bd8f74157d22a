/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two-phase commit: a coordinator orders, N clients answer. In phase 1 they are to prepare and all vote yes, in phase 2
 * they are to commit and all acknowledge.
 *
 * Orders and answers are messages of one size, which begin with this, in network byte order; what follows it is zero.
 * An answer is its order with the kind changed. An order by broadcast is for every client, and each answers with its
 * own number.
 */
#ifndef Q2PC_MESSAGE_H
#define Q2PC_MESSAGE_H

#include <endian.h>
#include <stdint.h>

#include "../common/common.h"

#define MAGIC 0x716a3270U /* "qj2p" */
#define MESSAGE_MAX 1472  /* one frame: 1500 bytes less the headers of IP and UDP */
#define MOST_CLIENTS 64	  /* bits of a set */
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
	return message->magic == htobe32(MAGIC) && message->kind == kind && (message->phase == PREPARE || message->phase == COMMIT);
}

union message_buffer {
	struct message message;
	char bytes[MESSAGE_MAX];
};

enum transport { TCP, UDP, BROADCAST };

extern const char *const transports[]; /* their names, up to NULL */

int q2pc_coordinate(int argc, char **argv);
int q2pc_serve(int argc, char **argv);

#endif
