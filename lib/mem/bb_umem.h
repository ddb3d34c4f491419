/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * umems: memory that a device may use for its own objects, named by a number.
 *
 * Bluebell's queues have umems of their own; nothing here is needed for them. This is
 * for programs that create objects of their own by DEVX commands: id is what
 * CREATE_CQ's cq_umem_id, CREATE_QP's wq_umem_id and their contexts' dbr_umem_id
 * take, on the context that the device was opened by. Keys are not to be had of a umem.
 *
 * Needs DEVX (bb_dev_open() fails without) and the device's log_max_umem.
 * Control path rules are those of bb_dev.h (man mlx5dv_devx_umem_reg).
 */
#ifndef BB_UMEM_H
#define BB_UMEM_H

#include "bb_dev.h"
#include "bb_mem.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A registered umem; read-only for the application. */
struct bb_umem {
	struct bb_dev *dev;
	uint32_t id;     /**< as mailboxes take it */
	uint32_t access; /**< as asked for */
	void *addr;      /**< of its first byte; the offset in the dma-buf, if it is one */
	size_t len;
};

/** Every page size a device may know, 4 KiB and larger. */
#define BB_UMEM_ANY_PAGE (~UINT64_C(4095))

/** What a umem is to be like. */
struct bb_umem_attr {
	uint32_t size;   /**< sizeof(struct bb_umem_attr); set by bb_umem_attr_init() */
	uint32_t access; /**< of BB_ACCESS_LOCAL_WRITE, REMOTE_WRITE, REMOTE_READ; 0: read */
	void *addr;      /**< first byte; with a dma-buf the offset in it, as a pointer */
	size_t len;      /**< bytes */
	/**
	 * Page sizes the device may map it by, one bit each: bit 12 is 4 KiB. An object
	 * whose log_page_size says more than the size taken is refused by the device, and
	 * so is an offset that is no multiple of a 64th of that size: who places objects at
	 * offsets allows page sizes up to 64 times what all offsets are multiples of.
	 */
	uint64_t pgsz_bitmap;
	int dmabuf_fd; /**< -1: process memory. May be closed after the call. */
};

/** Defaults: read only, any page size, process memory. */
static inline void
bb_umem_attr_init(struct bb_umem_attr *attr)
{
	attr->size = sizeof(*attr);
	attr->access = 0;
	attr->addr = NULL;
	attr->len = 0;
	attr->pgsz_bitmap = BB_UMEM_ANY_PAGE;
	attr->dmabuf_fd = -1;
}

/**
 * Register process memory for objects of the device. It stays the caller's and must
 * not be unmapped before bb_umem_dereg().
 * @param access LOCAL_WRITE where the device writes: CQs, and what it returns.
 * @return 0; -EINVAL empty, overflowing, a right that a umem cannot have, or REMOTE_WRITE
 *   without LOCAL_WRITE; -EFAULT not mapped, or not writable as asked; -ENOTSUP the
 *   device has none; -ENOMEM.
 */
int bb_umem_reg(struct bb_dev *dev, void *addr, size_t len, uint32_t access, struct bb_umem **umem);

/**
 * Register memory by attributes: with page sizes of choice, or a dma-buf.
 *
 * The kernel takes the largest page size of the bitmap that the physical layout allows
 * and halves it, to 4 KiB at least, until the memory starts on it and it divides the
 * length. There is none, and the call fails, when all of them are larger than the
 * length rounded up to a power of two, or when the pages of the memory are smaller
 * than all of them.
 * @return as bb_umem_reg(); -EINVAL also when no page size fits, when @p attr is of
 *   another version, or when the dma-buf is shorter or no dma-buf; -EBADF no open file;
 *   -ENOTSUP dma-buf (see bb_dev_attr dmabuf) or page sizes are not to be had from this
 *   kernel or libmlx5.
 */
int bb_umem_reg_ex(struct bb_dev *dev, const struct bb_umem_attr *attr, struct bb_umem **umem);

/** Deregister. -EBUSY while an object lies in it: destroy those first. */
int bb_umem_dereg(struct bb_umem *umem);

/**
 * Register a part of a dma-buf as memory region (man ibv_reg_dmabuf_mr). Its memory need
 * not be mapped; struct bb_mr has the offset as addr, and bb_mem_lkey() does not find it.
 * Memory that its exporter moves is followed by the kernel, but a queue of Bluebell's
 * that meets it on its way gets a completion with error: keep it pinned.
 * @param offset first byte in the dma-buf.
 * @param iova address by which WQEs and peers name that byte; equal to @p offset in the
 *   lowest 12 bits.
 * @param fd may be closed after the call.
 * @param access of LOCAL_WRITE, REMOTE_WRITE, REMOTE_READ, REMOTE_ATOMIC, RELAXED_ORDERING.
 * @return 0; -EINVAL empty, past the dma-buf's end, no dma-buf, a right it cannot have, or
 *   iova and offset differ in their page offset; -EBADF no open file; -ENOTSUP the kernel
 *   or libibverbs has no dma-buf MRs (bb_dev_attr dmabuf).
 */
int bb_mr_reg_dmabuf(struct bb_pd *pd, uint64_t offset, size_t len, uint64_t iova, int fd,
		     uint32_t access, struct bb_mr **mr);

#ifdef __cplusplus
}
#endif

#endif
