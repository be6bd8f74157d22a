/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requests and answers in memcached's binary protocol: a header of 24 bytes, then extras, key,
 * value. The paper used it, by memaslap -B, and it is cheaper: for a request of 1 KiB over
 * loopback, client, server (1.6.18) and kernel take 40.3 (GET) and 41.2 (SET) thousand
 * instructions, instead of 41.1 and 42.5 with the text protocol.
 */
#ifndef MEMLOAD_REQUEST_H
#define MEMLOAD_REQUEST_H

#include <stdint.h>

#include "load.h"

#define HEADER_BYTES 24
#define KEY_DIGITS 8 /* hexadecimal digits of the key's number, at the end of the key */

/* The size of a buffer for either request: a SET uses all of it, a GET a part without the value. */
uint32_t message_bytes(const struct settings *settings);
void message_init(uint8_t *message, const struct settings *settings);
/* Build a request in the buffer; return its start and set *bytes to its size. */
const uint8_t *message_make(uint8_t *message, const struct settings *settings, enum op op,
    uint32_t key,
			    uint32_t *bytes);

/*
 * Return the total length of an answer from its header, or 0 if it does not answer such a request.
 */
uint64_t answer_bytes(const uint8_t *header, enum op op);
/* Return the status of an answer from its header; a value of unexpected length is an error. */
enum status answer_status(const uint8_t *header, const struct settings *settings, enum op op);
/* Return the protocol's status code, for messages. */
uint16_t answer_code(const uint8_t *header);

#endif
