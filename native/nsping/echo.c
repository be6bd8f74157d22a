/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include "echo.h"

#include <arpa/inet.h>
#include <endian.h>
#include <netinet/ip_icmp.h>
#include <string.h>

/*
 * Return the Internet checksum (RFC 1071) in network byte order; 0 for data with a correct
 * checksum.
 */
static uint16_t checksum(const uint8_t *bytes, size_t size)
{
	uint64_t sum = 0;

	while (size > 0) {
		uint32_t word = 0;
		size_t taken = size < sizeof(word) ? size : sizeof(word);

		memcpy(&word, bytes, taken);
		sum += word;
		bytes += taken;
		size -= taken;
	}
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

void echo_request(struct echo *request, uint16_t identifier, uint64_t number, int64_t sent_ns)
{
	*request = (struct echo){
		.type = ICMP_ECHO,
		.identifier = htons(identifier),
		.sequence = htons((uint16_t)number),
		.number = htobe64(number),
		.sent_ns = htobe64((uint64_t)sent_ns),
	};
	request->checksum = checksum((const uint8_t *)request, sizeof(*request));
}

bool echo_reply(const uint8_t *packet, size_t size, size_t payload, uint64_t *number,
    int64_t *sent_ns)
{
	const size_t header = (packet[0] & 15U) * 4; /* the IP header is always complete */
	struct echo reply;

	if (size != header + ICMP_HEADER_BYTES + payload || checksum(packet + header, size - header) != 0)
		return false;
	memcpy(&reply, packet + header, sizeof(reply));
	*number = be64toh(reply.number);
	*sent_ns = (int64_t)be64toh(reply.sent_ns);
	return reply.type == ICMP_ECHOREPLY && reply.code == 0 &&
	    reply.sequence == htons((uint16_t)*number);
}
