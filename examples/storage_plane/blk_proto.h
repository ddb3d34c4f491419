/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * What clients and a block target say to each other. After NVMe over RDMA: a command is one SEND,
 * with the key of the client's memory; the target moves the data by RDMA READ or WRITE, and
 * answers with one SEND.
 *
 *   client                                        target
 *   HELLO, private data of the connection    →
 *                                            ←    WELCOME, with the accept; or a sentence, with
 *                                                 the reject
 *   COMMAND (SEND)                           →
 *                                            ←    write: RDMA READ of the data
 *                                            ←    read: RDMA WRITE of the data
 *                                            ←    COMPLETION (SEND)
 *
 * Flow control: WELCOME grants a depth. A command has an id below it, which is its own until
 * its completion has come, so there are at most that many. The target has a receive for each.
 *
 * Checksums are CRC32C: of each message, of the data of a write, which the target checks
 * before anything goes to the file, and of the data of a read, which the client checks.
 *
 * All little endian, all of fixed length:
 *
 *   HELLO        0  4 magic   4  1 version   5  3 zero   8  4 depth wanted   12  4 CRC
 *   WELCOME      0  4 magic   4  1 version   5  1 flags  6  2 depth  8  8 capacity in bytes
 *               16  4 bytes of a block  20  4 most bytes of a command  24  4 queues  28  4 CRC
 *   COMMAND      0  4 magic   4  1 version   5  1 operation   6  2 flags   8  2 id  10  2 zero
 *               12  4 length  16  8 offset  24  8 address  32  4 rkey  36  4 CRC of the data
 *               40  4 zero   44  4 CRC
 *   COMPLETION   0  4 magic   4  1 version   5  1 status  6  2 id   8  4 length
 *               12  4 CRC of the data   16 12 zero  28  4 CRC
 *
 * Pure: bytes in, structs out. Whatever is decoded may come from anybody.
 */
#ifndef BLK_PROTO_H
#define BLK_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bb_blk.h" /* operations, flags and the shape are of both */

#define BLK_VERSION 1
/* Why a target refuses a client that may try again: another one may go, or turn out to be idle. */
#define BLK_FULL       "this target has as many clients as --clients allows"
#define BLK_HELLO      16
#define BLK_WELCOME    32
#define BLK_COMMAND    48
#define BLK_COMPLETION 32

#define BLK_MIN_BLOCK 512u
#define BLK_MAX_BLOCK 4096u

enum blk_status {
	BLK_OK,
	BLK_INVALID,  /* length or offset is no multiple of a block, or too long */
	BLK_RANGE,    /* it ends behind the device */
	BLK_READONLY, /* a write to a target that serves a file for reading */
	BLK_DIGEST,   /* what the target read from the client has another checksum */
	BLK_NOSPACE,  /* the file system is full, or the file may not grow */
	BLK_IO,       /* the kernel said so, or an earlier flush failed */
	BLK_STATUSES,
};

/* "no space left". */
const char *blk_status_name(enum blk_status status);
/* 0 or -errno. */
int blk_status_errno(enum blk_status status);

struct blk_command {
	uint64_t offset;
	uint64_t addr;
	uint32_t length;
	uint32_t rkey;
	uint32_t digest; /* of a write */
	uint16_t id;
	uint16_t flags; /* enum bb_blk_flag */
	uint8_t op;     /* enum bb_blk_op */
};

struct blk_completion {
	uint32_t length;
	uint32_t digest; /* of a read */
	uint16_t id;
	uint8_t status; /* enum blk_status */
};

/* CRC32C (Castagnoli, as in iSCSI and NVMe). */
uint32_t blk_crc(const void *data, uint32_t len);

void blk_hello_encode(uint8_t *msg, uint32_t depth);
void blk_welcome_encode(uint8_t *msg, const struct bb_blk_shape *s);
void blk_command_encode(uint8_t *msg, const struct blk_command *c);
void blk_completion_encode(uint8_t *msg, const struct blk_completion *c);

/* NULL, or what is wrong as a piece of a sentence; then nothing is written. */
const char *blk_hello_decode(const void *msg, size_t len, uint32_t *depth);
const char *blk_welcome_decode(const void *msg, size_t len, struct bb_blk_shape *s);
const char *blk_command_decode(const void *msg, size_t len, struct blk_command *c);
const char *blk_completion_decode(const void *msg, size_t len, struct blk_completion *c);

/* Whether a target of this shape can do it: bounds and rights, the id not. */
enum blk_status blk_command_check(const struct blk_command *c, const struct bb_blk_shape *s);

#endif
