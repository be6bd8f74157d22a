/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fanin: datagrams from many hosts to one at scheduled times, with logs of departure and arrival.
 *
 * Every datagram begins with this header, in network byte order; the rest is zero.
 */
#ifndef FANIN_H
#define FANIN_H

#include <stdint.h>

#define FANIN_MAGIC 0x716a666eU	    /* "qjfn" */
#define FANIN_PAYLOAD_MAX 65507	    /* bytes in a UDP datagram over IPv4 */

struct fanin_header {
	uint32_t magic;
	uint32_t stream;   /* number within the sender, from 0 */
	uint64_t sequence; /* number within the stream, from 0 */
	uint64_t sent_ns;  /* CLOCK_MONOTONIC, just before the system call */
};

int fanin_send(int argc, char **argv);
int fanin_receive(int argc, char **argv);

#endif
