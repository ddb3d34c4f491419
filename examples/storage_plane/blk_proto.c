/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include <isa-l/crc.h>

#include "blk_proto.h"

#define MAGIC_HELLO      0x484b4c42u /* "BLKH" */
#define MAGIC_WELCOME    0x574b4c42u /* "BLKW" */
#define MAGIC_COMMAND    0x434b4c42u /* "BLKC" */
#define MAGIC_COMPLETION 0x444b4c42u /* "BLKD" */

#define WELCOME_READONLY 1u

static void
put16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
}

static void
put32(uint8_t *p, uint32_t v)
{
	put16(p, (uint16_t)v);
	put16(p + 2, (uint16_t)(v >> 16));
}

static void
put64(uint8_t *p, uint64_t v)
{
	put32(p, (uint32_t)v);
	put32(p + 4, (uint32_t)(v >> 32));
}

static uint16_t
get16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t
get32(const uint8_t *p)
{
	return get16(p) | (uint32_t)get16(p + 2) << 16;
}

static uint64_t
get64(const uint8_t *p)
{
	return get32(p) | (uint64_t)get32(p + 4) << 32;
}

uint32_t
blk_crc(const void *data, uint32_t len)
{
	/* The data parameter of ISA-L is not const, and the length is an int. */
	return len > INT_MAX ? 0 : ~crc32_iscsi((unsigned char *)(uintptr_t)data, (int)len, ~0u);
}

const char *
blk_status_name(enum blk_status status)
{
	static const char *const names[] = {
		[BLK_OK] = "success",
		[BLK_INVALID] = "invalid length or offset",
		[BLK_RANGE] = "beyond the end of the device",
		[BLK_READONLY] = "read only",
		[BLK_DIGEST] = "wrong checksum of the data",
		[BLK_NOSPACE] = "no space left",
		[BLK_IO] = "input/output error",
	};

	return (unsigned int)status < BLK_STATUSES ? names[status] : "unknown status";
}

int
blk_status_errno(enum blk_status status)
{
	static const int errnos[] = {
		[BLK_OK] = 0,
		[BLK_INVALID] = -EINVAL,
		[BLK_RANGE] = -ERANGE,
		[BLK_READONLY] = -EROFS,
		[BLK_DIGEST] = -EBADMSG,
		[BLK_NOSPACE] = -ENOSPC,
		[BLK_IO] = -EIO,
	};

	return (unsigned int)status < BLK_STATUSES ? errnos[status] : -EPROTO;
}

/* ---- Fields that each message has: magic number, version, and a CRC at the end */

static void
begin(uint8_t *msg, uint32_t magic, uint32_t len)
{
	memset(msg, 0, len);
	put32(msg, magic);
	msg[4] = BLK_VERSION;
}

static void
end(uint8_t *msg, uint32_t len)
{
	put32(msg + len - 4, blk_crc(msg, len - 4));
}

static const char *
check_frame(const uint8_t *msg, size_t len, uint32_t magic, uint32_t want)
{
	if (len != want)
		return "has another length";
	if (get32(msg) != magic)
		return "does not begin with the right magic number";
	if (msg[4] != BLK_VERSION)
		return "is of another version";
	if (get32(msg + want - 4) != blk_crc(msg, want - 4))
		return "is damaged: its checksum is wrong";
	return NULL;
}

static bool
zeros(const uint8_t *p, size_t n)
{
	while (n > 0 && *p == 0)
		p++, n--;
	return n == 0;
}

/* ---- Connection */

void
blk_hello_encode(uint8_t *msg, uint32_t depth)
{
	begin(msg, MAGIC_HELLO, BLK_HELLO);
	put32(msg + 8, depth);
	end(msg, BLK_HELLO);
}

const char *
blk_hello_decode(const void *bytes, size_t len, uint32_t *depth)
{
	const uint8_t *msg = bytes;
	const char *wrong = check_frame(msg, len, MAGIC_HELLO, BLK_HELLO);

	if (wrong != NULL)
		return wrong;
	if (!zeros(msg + 5, 3))
		return "has bits that are not defined";
	if (get32(msg + 8) == 0)
		return "asks for a depth of 0";
	*depth = get32(msg + 8);
	return NULL;
}

void
blk_welcome_encode(uint8_t *msg, const struct bb_blk_shape *s)
{
	begin(msg, MAGIC_WELCOME, BLK_WELCOME);
	msg[5] = s->read_only ? WELCOME_READONLY : 0;
	put16(msg + 6, s->depth);
	put64(msg + 8, s->capacity);
	put32(msg + 16, s->block);
	put32(msg + 20, s->max_io);
	put32(msg + 24, s->queues);
	end(msg, BLK_WELCOME);
}

const char *
blk_welcome_decode(const void *bytes, size_t len, struct bb_blk_shape *s)
{
	const uint8_t *msg = bytes;
	const char *wrong = check_frame(msg, len, MAGIC_WELCOME, BLK_WELCOME);
	struct bb_blk_shape in;

	if (wrong != NULL)
		return wrong;
	in.read_only = msg[5] == WELCOME_READONLY;
	in.depth = get16(msg + 6);
	in.capacity = get64(msg + 8);
	in.block = get32(msg + 16);
	in.max_io = get32(msg + 20);
	in.queues = get32(msg + 24);
	if (msg[5] > WELCOME_READONLY)
		return "has flags that are not defined";
	if (in.depth == 0 || in.depth > BB_BLK_MAX_DEPTH)
		return "grants a depth that is out of range";
	if (in.block < BLK_MIN_BLOCK || in.block > BLK_MAX_BLOCK ||
	    (in.block & (in.block - 1)) != 0)
		return "has blocks of a size that is out of range";
	if (in.max_io < in.block || in.max_io > BB_BLK_MAX_IO || in.max_io % in.block != 0)
		return "has a length of commands that is out of range";
	if (in.capacity < in.block || in.capacity > INT64_MAX || in.capacity % in.block != 0)
		return "has a capacity that is out of range";
	if (in.queues == 0 || in.queues > UINT16_MAX)
		return "has a number of queues that is out of range";
	*s = in;
	return NULL;
}

/* ---- Commands */

void
blk_command_encode(uint8_t *msg, const struct blk_command *c)
{
	begin(msg, MAGIC_COMMAND, BLK_COMMAND);
	msg[5] = c->op;
	put16(msg + 6, c->flags);
	put16(msg + 8, c->id);
	put32(msg + 12, c->length);
	put64(msg + 16, c->offset);
	put64(msg + 24, c->addr);
	put32(msg + 32, c->rkey);
	put32(msg + 36, c->digest);
	end(msg, BLK_COMMAND);
}

const char *
blk_command_decode(const void *bytes, size_t len, struct blk_command *c)
{
	const uint8_t *msg = bytes;
	const char *wrong = check_frame(msg, len, MAGIC_COMMAND, BLK_COMMAND);
	struct blk_command in;

	if (wrong != NULL)
		return wrong;
	in.op = msg[5];
	in.flags = get16(msg + 6);
	in.id = get16(msg + 8);
	in.length = get32(msg + 12);
	in.offset = get64(msg + 16);
	in.addr = get64(msg + 24);
	in.rkey = get32(msg + 32);
	in.digest = get32(msg + 36);
	if (in.op < BB_BLK_READ || in.op > BB_BLK_FLUSH)
		return "has no operation";
	if (in.flags != 0 && (in.flags != BB_BLK_FUA || in.op != BB_BLK_WRITE))
		return "has flags that its operation does not allow";
	if (!zeros(msg + 10, 2) || !zeros(msg + 40, 4))
		return "has bits that are not defined";
	if (in.digest != 0 && in.op != BB_BLK_WRITE)
		return "has a checksum of data, and no data";
	if (in.op == BB_BLK_FLUSH &&
	    (in.length != 0 || in.offset != 0 || in.addr != 0 || in.rkey != 0))
		return "is a flush with an offset, a length or a key";
	if (in.op != BB_BLK_FLUSH && in.length == 0)
		return "has a length of 0";
	*c = in;
	return NULL;
}

enum blk_status
blk_command_check(const struct blk_command *c, const struct bb_blk_shape *s)
{
	if (c->op == BB_BLK_FLUSH)
		return BLK_OK;
	if (c->length > s->max_io || c->length % s->block != 0 || c->offset % s->block != 0)
		return BLK_INVALID;
	if (c->length > s->capacity || c->offset > s->capacity - c->length)
		return BLK_RANGE;
	if (c->op == BB_BLK_WRITE && s->read_only)
		return BLK_READONLY;
	return BLK_OK;
}

/* ---- Completions */

void
blk_completion_encode(uint8_t *msg, const struct blk_completion *c)
{
	begin(msg, MAGIC_COMPLETION, BLK_COMPLETION);
	msg[5] = c->status;
	put16(msg + 6, c->id);
	put32(msg + 8, c->length);
	put32(msg + 12, c->digest);
	end(msg, BLK_COMPLETION);
}

const char *
blk_completion_decode(const void *bytes, size_t len, struct blk_completion *c)
{
	const uint8_t *msg = bytes;
	const char *wrong = check_frame(msg, len, MAGIC_COMPLETION, BLK_COMPLETION);

	if (wrong != NULL)
		return wrong;
	if (msg[5] >= BLK_STATUSES)
		return "has no status";
	if (!zeros(msg + 16, 12))
		return "has bits that are not defined";
	c->status = msg[5];
	c->id = get16(msg + 6);
	c->length = get32(msg + 8);
	c->digest = get32(msg + 12);
	return NULL;
}
