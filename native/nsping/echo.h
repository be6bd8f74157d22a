/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ICMP echo requests, and the replies that a raw socket gives: with their IP header.
 *
 * ICMP numbers requests in 16 bits, which wrap after 65 ms at one every microsecond. So the payload begins with a
 * number of 64 bits, and with the time at which the request was sent: only its own reply repeats both.
 */
#ifndef NSPING_ECHO_H
#define NSPING_ECHO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ICMP_HEADER_BYTES 8
#define PAYLOAD_MIN 16	  /* the number and the time */
#define PAYLOAD_MAX 65507 /* of an IPv4 packet of 65535 bytes */
#define PACKET_MAX 65535

/* As it is sent, in network byte order; what follows it is zero. */
struct echo {
	uint8_t type, code;
	uint16_t checksum;
	uint16_t identifier;
	uint16_t sequence;
	uint64_t number;
	uint64_t sent_ns;
};

_Static_assert(sizeof(struct echo) == ICMP_HEADER_BYTES + PAYLOAD_MIN, "there are no gaps");

/* Make the request with this number and time, whatever the length of its payload. */
void echo_request(struct echo *request, uint16_t identifier, uint64_t number, int64_t sent_ns);
/* What a packet says if it is a whole and undamaged reply with a payload of so many bytes. */
bool echo_reply(const uint8_t *packet, size_t size, size_t payload, uint64_t *number, int64_t *sent_ns);

#endif
