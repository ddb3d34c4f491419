/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Memory keys for a peer: named regions, sent with a connection request and its answer.
 */
#ifndef BB_REGION_H
#define BB_REGION_H

#include "bb_mem.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Bytes of a region's name with its terminating zero. */
#define BB_REGION_NAME 16u
/** Bytes of a packed region. */
#define BB_REGION_PACKED 40u
/** Maximum regions in a message. */
#define BB_REGION_MAX 32u

/** Memory that the peer may access. */
struct bb_region {
	char name[BB_REGION_NAME]; /**< name for both sides; padded with zeros */
	uint64_t addr;             /**< raddr for requests */
	uint64_t len;              /**< bytes, at least 1 */
	uint32_t rkey;
	uint32_t access; /**< rights that it grants: enum bb_access REMOTE_*; for information */
};

/**
 * Describes a region of memory, or a part of it.
 * @param off first byte of the part, relative to the MR.
 * @param len bytes of the part; 0: to the MR's end.
 * @return 0; -EINVAL if the name is missing or too long, the range is not inside the MR, or @p mr
 * has no rkey because it was registered without a REMOTE right.
 */
int bb_region_of(const struct bb_mr *mr, const char *name, uint64_t off, uint64_t len,
		 struct bb_region *region);

/**
 * Encodes regions, BB_REGION_PACKED bytes each: name, address, length, rkey, rights; big endian.
 * TCP messages use this format. With librdmacm you can put it into private data: a request has room
 * for one region, an answer for four.
 * @return bytes written; -ENOSPC; -EINVAL for a region that bb_region_unpack() would refuse.
 */
int bb_region_pack(const struct bb_region *regions, uint32_t n, void *buf, size_t len);

/**
 * Decodes regions. The bytes may be untrusted.
 * @param max room in @p regions.
 * @return number of regions; -EINVAL if the length is not a multiple of BB_REGION_PACKED, a name is
 * empty, not terminated or repeated, or a region is empty or wraps; -ENOSPC if there are more than
 * @p max. Nothing is written on an error.
 */
int bb_region_unpack(const void *buf, size_t len, struct bb_region *regions, uint32_t max);

#ifdef __cplusplus
}
#endif

#endif
