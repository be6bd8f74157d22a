/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ICMP echo requests, and replies as a raw socket gives them, with their IP header.
 *
 * ICMP has sequence numbers of 16 bits, which wrap after 65 ms at one request per microsecond. So
 * the payload begins with a number of 64 bits and the time of sending; only the matching reply
 * repeats both.
 */
#ifndef NSPING_ECHO_H
#define NSPING_ECHO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ICMP_HEADER_BYTES 8
#define PAYLOAD_MIN 16	  /* the number and the time */
#define PAYLOAD_MAX 65507 /* in an IPv4 packet of 65535 bytes */
#define PACKET_MAX 65535

/* A request as sent, in network byte order; the rest of the payload is zero. */
struct echo {
	uint8_t type, code;
	uint16_t checksum;
	uint16_t identifier;
	uint16_t sequence;
	uint64_t number;
	uint64_t sent_ns;
};

_Static_assert(sizeof(struct echo) == ICMP_HEADER_BYTES + PAYLOAD_MIN, "there are no gaps");

/* Build a request; its checksum holds for any length of payload, as the rest is zero. */
void echo_request(struct echo *request, uint16_t identifier, uint64_t number, int64_t sent_ns);
/* Parse a reply; return false unless it is undamaged and has a payload of this many bytes. */
bool echo_reply(const uint8_t *packet, size_t size, size_t payload, uint64_t *number,
    int64_t *sent_ns);

#endif
