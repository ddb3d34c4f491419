/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Market data: messages in the layout of Nasdaq TotalView-ITCH 5.0 (type, locate, tracking number,
 * 6 bytes of nanoseconds since midnight, then the fields of the type; all big endian), in a file
 * format of this example.
 *
 * A file has a header, then each message after its length (2 bytes, big endian, as in Nasdaq's
 * files). The header, big endian:
 *
 *   0  8  "BBITCH1\n"
 *   8  8  number of bytes after the header
 *  16  8  seed from which the file was generated, for information
 *  24  4  number of messages
 *  28  4  number of symbols; a locate is the number of a symbol, from 1
 *  32  4  maximum number of open orders
 *  36  4  CRC-32 (of gzip) of the bytes after the header
 *  40  4  0
 *  44  4  CRC-32 of the preceding 44 bytes
 *
 * These functions only convert bytes to structs and back. They accept any input, also damaged
 * files.
 */
#ifndef ITCH_H
#define ITCH_H

#include <stddef.h>
#include <stdint.h>

#define ITCH_MAX     36 /* bytes of the longest message */
#define ITCH_MIN     12
#define ITCH_HEADER  48
#define ITCH_SYMBOLS 4096 /* maximum number of symbols in a file */

enum itch_type {
	ITCH_SYSTEM = 'S',
	ITCH_ADD = 'A',
	ITCH_EXECUTE = 'E',
	ITCH_CANCEL = 'X',
	ITCH_DELETE = 'D',
	ITCH_REPLACE = 'U',
};

/* A decoded message. Fields that its type does not have are 0. */
struct itch_msg {
	uint64_t ns; /* nanoseconds since midnight, 48 bits */
	uint64_t ref;
	uint64_t new_ref; /* REPLACE: new reference; EXECUTE: match number */
	uint32_t shares;
	uint32_t price; /* price in 1/10000 of a dollar */
	uint16_t locate;
	uint16_t tracking;
	char stock[8];
	uint8_t type; /* enum itch_type */
	char side;    /* 'B' or 'S'; for SYSTEM the event code */
};

/* Returns the length of a message of @type in bytes, 0 if there is no such type. */
uint32_t itch_len(uint8_t type);

/* Encodes @m. Returns the number of bytes written, 0 for an unknown type. */
uint32_t itch_encode(const struct itch_msg *m, uint8_t out[ITCH_MAX]);

/* Decodes a message of @len bytes. Returns NULL, or the error as a part of a sentence. */
const char *itch_decode(const uint8_t *in, uint32_t len, struct itch_msg *m);

/* Contents of a file header. */
struct itch_header {
	uint64_t bytes;
	uint64_t seed;
	uint32_t messages;
	uint32_t symbols;
	uint32_t max_open;
	uint32_t crc;
};

/*
 * Returns the CRC-32 (as in gzip) of @len bytes that follow data with the CRC @crc. @crc is 0 if
 * there is no data before.
 */
uint32_t itch_crc(uint32_t crc, const uint8_t *p, size_t len);

void itch_header_encode(const struct itch_header *h, uint8_t out[ITCH_HEADER]);

/* Decodes a file header. Returns NULL, or the error as a part of a sentence. */
const char *itch_header_decode(const uint8_t *in, size_t len, struct itch_header *h);

/* A file in memory. */
struct itch_file {
	struct itch_header h;
	uint8_t *image; /* from malloc() */
	size_t size;
	const uint8_t **msg; /* start of each message; its length is in the 2 bytes before */
};

/* An error in a file, with its position. */
struct itch_fault {
	const char *what;
	uint64_t offset;
	uint32_t message; /* number of the message, from 1; 0 if the error is not in a message */
};

/*
 * Takes ownership of @image, checks all of it (header, checksums, every message) and locates the
 * messages. Returns 0, -EBADMSG with @fault, or -ENOMEM. itch_file_free() frees the image in every
 * case.
 */
int itch_file_open(struct itch_file *f, uint8_t *image, size_t size, struct itch_fault *fault);

/* Reads and opens @path. Errors are those of open(), -EFBIG, and those of itch_file_open(). */
int itch_file_read(struct itch_file *f, const char *path, struct itch_fault *fault);

void itch_file_free(struct itch_file *f);

#endif
