/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Device memory: a few KiB of memory on the device itself.
 *
 * Data that a peer writes or adds there, and data that a WQE reads from there, do not cross the
 * PCI bus. The process accesses it through bb_dm_write() and bb_dm_read(), WQEs and peers through
 * keys of bb_mr_reg_dm(). @ref bb_dev_attr max_dm_size is 0 on a device without it (man
 * ibv_alloc_dm).
 *
 * Control path rules are those of bb_dev.h.
 */
#ifndef BB_DM_H
#define BB_DM_H

#include "bb_dev.h"
#include "bb_mem.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A piece of device memory; read-only for the application. */
struct bb_dm {
	struct bb_dev *dev;
	uint64_t len;       /**< bytes, as requested */
	uint32_t log_align; /**< log2 of the alignment of its start, as requested */
};

/** Alignment, in bytes, of offset and length of a copy to or from device memory. */
#define BB_DM_COPY_ALIGN 4u

/**
 * Allocates device memory (man ibv_alloc_dm). Its content is undefined. mlx5 rounds the size up
 * to 64 bytes, and the kernel allocates whole 4 KiB pages of the device's window. So allocate
 * once and divide; many small pieces are expensive.
 * @param len bytes, 1 to max_dm_size of bb_dev_attr.
 * @param log_align log2 of the alignment of its first byte on the device, up to max_dm_log_align;
 *   atomics on it need 3, which every piece has.
 * @return 0; -ENOTSUP the device has none; -EINVAL empty, longer than max_dm_size, or an
 *   unsupported alignment; -ENOMEM none is left.
 */
int bb_dm_alloc(struct bb_dev *dev, uint64_t len, uint32_t log_align, struct bb_dm **dm);

/** Frees device memory. -EBUSY while MRs use it. */
int bb_dm_free(struct bb_dm *dm);

/**
 * Copies from process memory to device memory (man ibv_memcpy_to_dm). Each aligned unit of 4
 * bytes is written as a whole, in no promised order. Requests whose doorbell rings afterwards see
 * the data.
 *
 * Any thread may call it, several at once, and while the device accesses the memory. It costs a
 * store over the bus for each 4 bytes.
 * @param off, len multiples of BB_DM_COPY_ALIGN; @p len 0 copies nothing.
 * @param src of any alignment.
 * @return 0; -EFAULT the range leaves the memory; -EINVAL not aligned. Nothing is copied on an
 *   error.
 */
int bb_dm_write(struct bb_dm *dm, uint64_t off, const void *src, size_t len);

/**
 * Copies from device memory to process memory (man ibv_memcpy_from_dm), with the rules of
 * bb_dm_write(). Each aligned unit of 4 bytes is read as a whole. The halves of a 64-bit counter
 * may be from different moments while peers add to it. Read a counter that only grows in three
 * reads: high half, low half, high half again, until both high halves are equal. It costs a read
 * over the bus for each 4 bytes, of the order of a microsecond each.
 */
int bb_dm_read(const struct bb_dm *dm, void *dst, uint64_t off, size_t len);

/**
 * Registers [@p off, @p off + @p len) of device memory (man ibv_alloc_dm: ibv_reg_dm_mr). The MR
 * is zero-based: its first byte has address 0 in WQEs and for peers. struct bb_mr has iova 0 and
 * addr NULL, and bb_mem_lkey() does not find it. For atomics @p off must be a multiple of 8,
 * because both address and memory must be aligned.
 * @param access of BB_ACCESS_LOCAL_WRITE, REMOTE_WRITE, REMOTE_READ, REMOTE_ATOMIC and
 *   BB_ACCESS_ZERO_BASED, which is always set. Optional rights such as RELAXED_ORDERING are left
 *   out: device memory has none (mlx5_ib_reg_dm_mr() in Linux).
 * @return 0; -EINVAL empty, not inside the memory, another device's PD, or a right that device
 *   memory does not have; else the device's error.
 */
int bb_mr_reg_dm(struct bb_pd *pd, struct bb_dm *dm, uint64_t off, size_t len, uint32_t access,
		 struct bb_mr **mr);

#ifdef __cplusplus
}
#endif

#endif
