/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The protocol between a client and a block target, similar to NVMe over RDMA. The client sends a
 * command by one SEND, which contains the key of the client's memory. The target moves the data by
 * RDMA READ or WRITE, and sends the completion by one SEND.
 *
 *   client                                        target
 *   HELLO, private data of the connection    →
 *                                            ←    WELCOME, private data of the accept; or a
 *                                                 sentence, private data of the reject
 *   COMMAND (SEND)                           →
 *                                            ←    write: RDMA READ of the data
 *                                            ←    read: RDMA WRITE of the data
 *                                            ←    COMPLETION (SEND)
 *
 * Flow control: WELCOME grants a depth, the maximum number of outstanding commands. Each
 * outstanding command has its own id below the depth. The target posts one receive for each id.
 *
 * Each message has a CRC32C of itself, and a CRC32C of the data. The target checks the data of a
 * write before it writes to the file. The client checks the data of a read.
 *
 * Each message has a fixed length. Numbers are little-endian. A field below is its offset, its
 * length in bytes and its name:
 *
 *   HELLO        0  4 magic   4  1 version   5  3 zero   8  4 depth wanted   12  4 CRC
 *   WELCOME      0  4 magic   4  1 version   5  1 flags  6  2 depth  8  8 capacity in bytes
 *               16  4 bytes of a block  20  4 maximum bytes of a command  24  4 queues  28  4 CRC
 *   COMMAND      0  4 magic   4  1 version   5  1 operation   6  2 flags   8  2 id  10  2 zero
 *               12  4 length  16  8 offset  24  8 address  32  4 rkey  36  4 CRC of the data
 *               40  4 zero   44  4 CRC
 *   COMPLETION   0  4 magic   4  1 version   5  1 status  6  2 id   8  4 length
 *               12  4 CRC of the data   16 12 zero  28  4 CRC
 *
 * These functions only convert between bytes and structs. Decoders accept no invalid message,
 * because the peer is not trusted.
 */
#ifndef BLK_PROTO_H
#define BLK_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bb_blk.h" /* operations, flags and struct bb_blk_shape, which client and target share */

#define BLK_VERSION 1
/*
 * Reason of a rejection after which the client may try again: another client may leave, or may be
 * disconnected because it is idle.
 */
#define BLK_FULL       "this target has as many clients as --clients allows"
#define BLK_HELLO      16
#define BLK_WELCOME    32
#define BLK_COMMAND    48
#define BLK_COMPLETION 32

#define BLK_MIN_BLOCK 512u
#define BLK_MAX_BLOCK 4096u

enum blk_status {
	BLK_OK,
	BLK_INVALID, /* length or offset is not a multiple of a block, or the length is too large */
	BLK_RANGE,   /* the range ends after the end of the device */
	BLK_READONLY, /* write to a read-only target */
	BLK_DIGEST,   /* data that the target read from the client has a wrong checksum */
	BLK_NOSPACE,  /* the file system is full, or a limit of the file's size was reached */
	BLK_IO,       /* the kernel reported an error, or an earlier flush failed */
	BLK_STATUSES,
};

/* Returns the name of a status, such as "no space left". */
const char *blk_status_name(enum blk_status status);
/* Converts a status to 0 or a negative errno. */
int blk_status_errno(enum blk_status status);

struct blk_command {
	uint64_t offset;
	uint64_t addr;
	uint32_t length;
	uint32_t rkey;
	uint32_t digest; /* CRC32C of the data of a write; 0 for other operations */
	uint16_t id;
	uint16_t flags; /* enum bb_blk_flag */
	uint8_t op;     /* enum bb_blk_op */
};

struct blk_completion {
	uint32_t length;
	uint32_t digest; /* CRC32C of the data of a read */
	uint16_t id;
	uint8_t status; /* enum blk_status */
};

/* Returns the CRC32C (Castagnoli, as in iSCSI and NVMe). */
uint32_t blk_crc(const void *data, uint32_t len);

void blk_hello_encode(uint8_t *msg, uint32_t depth);
void blk_welcome_encode(uint8_t *msg, const struct bb_blk_shape *s);
void blk_command_encode(uint8_t *msg, const struct blk_command *c);
void blk_completion_encode(uint8_t *msg, const struct blk_completion *c);

/*
 * Decode a message of @len bytes into the last argument. Return NULL if the message is valid.
 * Otherwise they return the error as the end of a sentence, and write nothing.
 */
const char *blk_hello_decode(const void *msg, size_t len, uint32_t *depth);
const char *blk_welcome_decode(const void *msg, size_t len, struct bb_blk_shape *s);
const char *blk_command_decode(const void *msg, size_t len, struct blk_command *c);
const char *blk_completion_decode(const void *msg, size_t len, struct blk_completion *c);

/* Checks the range and the operation of a command against the properties of the target. */
enum blk_status blk_command_check(const struct blk_command *c, const struct bb_blk_shape *s);

#endif
