/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Datagrams at set times from many hosts to one, and when each was sent and arrived.
 *
 * Every datagram begins with this header, in network byte order; what follows it is zero.
 */
#ifndef FANIN_H
#define FANIN_H

#include <stdint.h>

#define FANIN_MAGIC 0x716a666eU	    /* "qjfn" */
#define FANIN_PAYLOAD_MAX 65507	    /* bytes in a UDP datagram over IPv4 */

struct fanin_header {
	uint32_t magic;
	uint32_t stream;   /* of this sender, from 0 */
	uint64_t sequence; /* in the stream, from 0 */
	uint64_t sent_ns;  /* CLOCK_MONOTONIC, right before the system call */
};

int fanin_send(int argc, char **argv);
int fanin_receive(int argc, char **argv);

#endif
