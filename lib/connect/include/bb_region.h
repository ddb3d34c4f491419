/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Memory keys for a peer: named regions, which a connection request and its reply carry.
 */
#ifndef BB_REGION_H
#define BB_REGION_H

#include "bb_mem.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Bytes of a region's name with its terminating zero. */
#define BB_REGION_NAME 16u
/** Bytes of a region that bb_region_pack() has encoded. */
#define BB_REGION_PACKED 40u
/** Maximum regions in a connection request or its reply. */
#define BB_REGION_MAX 32u

/** A named region of memory that the peer may access. */
struct bb_region {
	/** name by which the peer looks up the region; padded with zeros */
	char name[BB_REGION_NAME];
	uint64_t addr; /**< first byte; the peer gives this address in bb_send_wr.raddr */
	uint64_t len;  /**< length in bytes, at least 1 */
	uint32_t rkey; /**< key that the peer gives in bb_send_wr.rkey */
	/** access rights that the rkey grants: enum bb_access REMOTE_*; for information only */
	uint32_t access;
};

/**
 * Describes a region: all bytes of a memory region (MR), or a range of them.
 * @param off first byte of the range, relative to the start of the MR.
 * @param len bytes of the range; 0: up to the end of the MR.
 * @return 0; -EINVAL if the name is missing or too long, the range is not inside the MR, or @p mr
 * has no rkey because it was registered without a REMOTE access right.
 */
int bb_region_of(const struct bb_mr *mr, const char *name, uint64_t off, uint64_t len,
		 struct bb_region *region);

/**
 * Encodes regions, BB_REGION_PACKED bytes each: name, address, length, rkey, access rights; big
 * endian. The TCP messages of bb_connect.h use this format. With librdmacm the application can put
 * the bytes into private data: a connection request has room for one region, a reply for four.
 * @return number of bytes written; -ENOSPC if @p len is too small or @p n exceeds
 * BB_REGION_MAX; -EINVAL for a region that bb_region_unpack() would refuse.
 */
int bb_region_pack(const struct bb_region *regions, uint32_t n, void *buf, size_t len);

/**
 * Decodes regions. The bytes may be untrusted.
 * @param max number of entries of @p regions.
 * @return number of regions; -EINVAL if the length is not a multiple of BB_REGION_PACKED, a name is
 * empty, not terminated or repeated, or a region is empty or wraps; -ENOSPC if there are more than
 * @p max or BB_REGION_MAX. Writes nothing on an error.
 */
int bb_region_unpack(const void *buf, size_t len, struct bb_region *regions, uint32_t max);

#ifdef __cplusplus
}
#endif

#endif
