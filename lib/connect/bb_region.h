/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Memory keys for a peer: named regions, as they go with a request to connect and its answer.
 */
#ifndef BB_REGION_H
#define BB_REGION_H

#include "bb_mem.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Bytes of a region's name, its zero included. */
#define BB_REGION_NAME 16u
/** Bytes of a packed region. */
#define BB_REGION_PACKED 40u
/** Most regions of a message. */
#define BB_REGION_MAX 32u

/** Memory that the other side may reach. */
struct bb_region {
	char name[BB_REGION_NAME]; /**< what both sides call it; padded with zeros */
	uint64_t addr;             /**< for raddr of a request */
	uint64_t len;              /**< bytes, from 1 */
	uint32_t rkey;
	uint32_t access; /**< what it allows: enum bb_access REMOTE_*; for information */
};

/**
 * Describe a region of memory, or a part of it.
 * @param off first byte of it that is to be told, and @p len bytes from there; 0: to its end.
 * @return 0; -EINVAL no name or one too long, a range that is not inside, or no rkey: @p mr was
 *   registered without a REMOTE right.
 */
int bb_region_of(const struct bb_mr *mr, const char *name, uint64_t off, uint64_t len,
		 struct bb_region *region);

/**
 * Put regions into bytes, BB_REGION_PACKED each: name, address, length, rkey, rights; big endian.
 * The regions of a TCP message look like this; with librdmacm they can be put into private
 * data, where one fits into a request and four into an answer.
 * @return bytes written; -ENOSPC; -EINVAL a region that bb_region_unpack() would refuse.
 */
int bb_region_pack(const struct bb_region *regions, uint32_t n, void *buf, size_t len);

/**
 * The way back. The bytes may come from anybody.
 * @param max room in @p regions.
 * @return how many there are; -EINVAL the length is no multiple of BB_REGION_PACKED, a name is
 *   empty, not ended or there twice, or a region is empty or wraps; -ENOSPC more than @p max.
 *   Nothing is written then.
 */
int bb_region_unpack(const void *buf, size_t len, struct bb_region *regions, uint32_t max);

#ifdef __cplusplus
}
#endif

#endif
