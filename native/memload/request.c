/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <arpa/inet.h>
#include <string.h>

#include "request.h"

/* Offsets of header fields. Lengths are in bytes; the body is everything after the header. */
enum { AT_MAGIC, AT_OPCODE, AT_KEY_LENGTH, AT_EXTRAS_LENGTH = 4, AT_STATUS = 6,
    AT_BODY_LENGTH = 8 };
enum { MAGIC_REQUEST = 0x80, MAGIC_ANSWER = 0x81 };
enum { OPCODE_GET, OPCODE_SET };
enum { CODE_OK, CODE_NOT_FOUND };

#define SET_EXTRAS 8 /* flags and expiry time, both 0 */
#define GET_ANSWER_EXTRAS 4 /* flags */
#define BODY_MAX (1 << 20) /* no value or error text is longer */
#define KEY_AT (HEADER_BYTES + SET_EXTRAS)

static void put_header(uint8_t *header, uint8_t opcode, const struct settings *settings,
    uint8_t extras,
		       uint32_t value_bytes)
{
	uint16_t key_length = htons((uint16_t)settings->key_bytes);
	uint32_t body_length = htonl(extras + settings->key_bytes + value_bytes);

	memset(header, 0, HEADER_BYTES);
	header[AT_MAGIC] = MAGIC_REQUEST;
	header[AT_OPCODE] = opcode;
	header[AT_EXTRAS_LENGTH] = extras;
	memcpy(header + AT_KEY_LENGTH, &key_length, sizeof(key_length));
	memcpy(header + AT_BODY_LENGTH, &body_length, sizeof(body_length));
}

uint32_t message_bytes(const struct settings *settings)
{
	return KEY_AT + settings->key_bytes + settings->value_bytes;
}

void message_init(uint8_t *message, const struct settings *settings)
{
	memset(message + KEY_AT, 'k', settings->key_bytes);
	memset(message + KEY_AT + settings->key_bytes, 'v', settings->value_bytes);
}

const uint8_t *message_make(uint8_t *message, const struct settings *settings, enum op op,
    uint32_t key,
			    uint32_t *bytes)
{
	uint8_t *digit = message + KEY_AT + settings->key_bytes;

	for (int i = 0; i < KEY_DIGITS; i++, key >>= 4)
		*--digit = (uint8_t)"0123456789abcdef"[key & 15];
	if (op == OP_SET) {
		put_header(message, OPCODE_SET, settings, SET_EXTRAS, settings->value_bytes);
		memset(message + HEADER_BYTES, 0, SET_EXTRAS);
		*bytes = message_bytes(settings);
		return message;
	}
	put_header(message + SET_EXTRAS, OPCODE_GET, settings, 0, 0);
	*bytes = HEADER_BYTES + settings->key_bytes;
	return message + SET_EXTRAS;
}

static uint32_t body_bytes(const uint8_t *header)
{
	uint32_t bytes;

	memcpy(&bytes, header + AT_BODY_LENGTH, sizeof(bytes));
	return ntohl(bytes);
}

uint64_t answer_bytes(const uint8_t *header, enum op op)
{
	if (header[AT_MAGIC] != MAGIC_ANSWER ||
	    header[AT_OPCODE] != (op == OP_SET ? OPCODE_SET : OPCODE_GET))
		return 0;
	return body_bytes(header) > BODY_MAX ? 0 : (uint64_t)HEADER_BYTES + body_bytes(header);
}

uint16_t answer_code(const uint8_t *header)
{
	return (uint16_t)(header[AT_STATUS] << 8 | header[AT_STATUS + 1]);
}

enum status answer_status(const uint8_t *header, const struct settings *settings, enum op op)
{
	uint32_t expected = op == OP_SET ? 0 : GET_ANSWER_EXTRAS + settings->value_bytes;

	if (op == OP_GET && answer_code(header) == CODE_NOT_FOUND)
		return STATUS_MISS;
	return answer_code(header) == CODE_OK && body_bytes(header) == expected ? STATUS_OK : STATUS_ERROR;
}
