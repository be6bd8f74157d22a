/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requests and answers in memcached's binary protocol: a header of 24 bytes, then extras, key, value. It is what memaslap
 * -B spoke in the paper's runs, and the cheaper one: client, server (1.6.18) and kernel take 40.3 (GET) and 41.2 (SET)
 * thousand instructions for a request of 1 KiB over loopback, 41.1 and 42.5 by the text protocol.
 */
#ifndef MEMLOAD_REQUEST_H
#define MEMLOAD_REQUEST_H

#include <stdint.h>

#include "load.h"

#define HEADER_BYTES 24
#define KEY_DIGITS 8 /* of a key's number, hexadecimal, at its end */

/* A buffer for either request for any key; a SET is all of it, a GET begins later and ends before the value. */
uint32_t message_bytes(const struct settings *settings);
void message_init(uint8_t *message, const struct settings *settings);
/* Make it this request; returns where it begins and sets its size. */
const uint8_t *message_make(uint8_t *message, const struct settings *settings, enum op op, uint32_t key,
			    uint32_t *bytes);

/* How long an answer is as a whole, by its header; 0: this is no answer to such a request. */
uint64_t answer_bytes(const uint8_t *header, enum op op);
/* What it says, by its header: a value of another length than asked for is an error. */
enum status answer_status(const uint8_t *header, const struct settings *settings, enum op op);
/* The protocol's own number for it, for messages. */
uint16_t answer_code(const uint8_t *header);

#endif
