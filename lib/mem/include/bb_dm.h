/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Device memory: a few KiB of memory on the device itself.
 *
 * Data that a peer writes or adds to device memory, and data that a WQE reads from it, do not cross
 * the PCI bus. The process accesses the memory through bb_dm_write() and bb_dm_read(). WQEs and
 * peers access it through keys of bb_mr_reg_dm(). @ref bb_dev_attr max_dm_size is 0 if the device
 * has no device memory (man ibv_alloc_dm).
 *
 * The control-path rules of bb_dev.h apply.
 */
#ifndef BB_DM_H
#define BB_DM_H

#include "bb_dev.h"
#include "bb_mem.h"

#ifdef __cplusplus
extern "C" {
#endif

/** An allocation of device memory; read-only for the application. */
struct bb_dm {
	struct bb_dev *dev;
	uint64_t len;       /**< bytes, as requested */
	uint32_t log_align; /**< log2 of the alignment of the first byte on the device, as requested
			     */
};

/**
 * Offset and length of a copy to or from device memory must be multiples of this number of bytes.
 */
#define BB_DM_COPY_ALIGN 4u

/**
 * Allocates device memory (man ibv_alloc_dm). Its content is undefined. mlx5 rounds the size up to
 * 64 bytes, and the kernel allocates whole 4 KiB pages of the device's window. So many small
 * allocations are expensive: allocate once and divide the memory.
 * @param len bytes, 1 to max_dm_size of bb_dev_attr.
 * @param log_align log2 of the alignment of its first byte on the device, up to max_dm_log_align;
 *   atomics need 3, which every allocation has.
 * @return 0; -ENOTSUP if the device has no device memory; -EINVAL if @p len is 0 or over
 *   max_dm_size, or the alignment is not supported; -ENOMEM if no device memory is left.
 */
int bb_dm_alloc(struct bb_dev *dev, uint64_t len, uint32_t log_align, struct bb_dm **dm);

/** Frees device memory. Returns 0, or -EBUSY while MRs use the memory. */
int bb_dm_free(struct bb_dm *dm);

/**
 * Copies from process memory to device memory (man ibv_memcpy_to_dm). Each aligned unit of 4 bytes
 * is written as a whole. The order of the units is undefined. Requests whose doorbell rings
 * afterwards see the data.
 *
 * Any thread may call this function, several threads at once too, also while the device accesses
 * the memory. The cost is one store over the bus for each 4 bytes.
 * @param off, len multiples of BB_DM_COPY_ALIGN; @p len 0 copies nothing.
 * @param src may have any alignment.
 * @return 0; -EFAULT if the range exceeds the memory; -EINVAL if @p off or @p len is not aligned.
 *   On an error no byte is copied.
 */
int bb_dm_write(struct bb_dm *dm, uint64_t off, const void *src, size_t len);

/**
 * Copies from device memory to process memory (man ibv_memcpy_from_dm), with the rules of
 * bb_dm_write(). Each aligned unit of 4 bytes is read as a whole. The halves of a 64-bit counter
 * may be from different moments while peers add to it. To read a counter that only grows, read its
 * high half, its low half and its high half again, until both high halves are equal. Each 4 bytes
 * cost one read over the bus, of the order of a microsecond.
 */
int bb_dm_read(const struct bb_dm *dm, void *dst, uint64_t off, size_t len);

/**
 * Registers [@p off, @p off + @p len) of device memory (man ibv_alloc_dm: ibv_reg_dm_mr). The MR is
 * zero-based, that is, its first byte has address 0 in WQEs and for peers. struct bb_mr has iova 0
 * and addr NULL, and bb_mem_lkey() does not find it. For atomics @p off must be a multiple of 8,
 * because both address and memory must be aligned.
 * @param access rights: BB_ACCESS_LOCAL_WRITE, REMOTE_WRITE, REMOTE_READ, REMOTE_ATOMIC, and
 *   BB_ACCESS_ZERO_BASED, which the call always adds. The call removes optional rights such as
 *   RELAXED_ORDERING, because device memory does not have them (mlx5_ib_reg_dm_mr() in Linux).
 * @return 0; -EINVAL if the range is empty or exceeds the memory, the PD belongs to another device,
 *   or device memory does not have a requested right; otherwise an error of the device.
 */
int bb_mr_reg_dm(struct bb_pd *pd, struct bb_dm *dm, uint64_t off, size_t len, uint32_t access,
		 struct bb_mr **mr);

#ifdef __cplusplus
}
#endif

#endif
