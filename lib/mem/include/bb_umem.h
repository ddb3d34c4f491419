/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * umems: registered memory that holds the rings and doorbell records of device objects, such as
 * CQs. A number, the id, identifies a umem.
 *
 * Bluebell creates the umems of its own queues itself. This header is for programs that create
 * further objects by DEVX commands (bb_devx.h). Such a program writes the id of a umem into the
 * fields cq_umem_id of CREATE_CQ, wq_umem_id of CREATE_QP, and dbr_umem_id of the CQ or QP context.
 * The id is valid only on the device of the umem. A umem has no keys.
 *
 * The device must have DEVX and umems (@ref bb_dev_attr max_umem is not 0). The control-path rules
 * of bb_dev.h apply (man mlx5dv_devx_umem_reg).
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
	uint32_t id;     /**< number of the umem, for mailboxes */
	uint32_t access; /**< rights as requested */
	void *addr;      /**< address of the first byte; for a dma-buf, the offset of the first byte
			  * in the dma-buf */
	size_t len;
};

/** Mask of all page sizes, 4 KiB and larger, for bb_umem_attr.pgsz_bitmap. */
#define BB_UMEM_ANY_PAGE (~UINT64_C(4095))

/** Attributes of a umem. */
struct bb_umem_attr {
	uint32_t size;   /**< sizeof(struct bb_umem_attr); set by bb_umem_attr_init() */
	uint32_t access; /**< BB_ACCESS_LOCAL_WRITE, REMOTE_WRITE, REMOTE_READ; 0 for reading
			  * only */
	void *addr;      /**< first byte; for a dma-buf, the offset of the first byte in the
			  * dma-buf, as a pointer */
	size_t len;      /**< bytes */
	/**
	 * Page sizes that the device may use, one bit each: bit 12 is 4 KiB. The kernel chooses one
	 * of these sizes or a smaller size, see bb_umem_reg_ex(). The device rejects an object
	 * whose log_page_size exceeds the chosen size. It also rejects an object whose offset is
	 * not a multiple of a 64th of that size. So to place objects at multiples of N bytes, allow
	 * page sizes up to 64 N.
	 */
	uint64_t pgsz_bitmap;
	int dmabuf_fd; /**< file descriptor of a dma-buf, -1 for process memory. The caller may
			* close it after the call. */
};

/** Sets the defaults: read only, any page size, process memory. */
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
 * Registers process memory for objects of the device. The caller owns the memory and must not unmap
 * it before bb_umem_dereg().
 * @param access LOCAL_WRITE for memory that the device writes, such as CQs.
 * @return 0; -EINVAL if the range is empty or overflows, if a umem cannot have a requested right,
 *   or if REMOTE_WRITE is given without LOCAL_WRITE; -EFAULT if the memory is not mapped, or not
 *   writable although a right needs it; -ENOTSUP if the device has no umems; -ENOMEM.
 */
int bb_umem_reg(struct bb_dev *dev, void *addr, size_t len, uint32_t access, struct bb_umem **umem);

/**
 * Registers memory for objects of the device by attributes, which can select page sizes or a
 * dma-buf.
 *
 * The kernel starts with the largest page size in pgsz_bitmap that the physical layout of the
 * memory allows. It halves this page size, down to 4 KiB, until the memory starts at a multiple of
 * the page size and the length is a multiple of it, too. The call fails if every page size in
 * pgsz_bitmap is larger than the length rounded up to a power of two, or larger than the pages that
 * back the memory.
 * @return as bb_umem_reg(). -EINVAL also if no page size fits, if bb_umem_attr_init() of this
 *   version did not set up @p attr, if the file is no dma-buf, or if the dma-buf is too short.
 *   -EBADF if the descriptor is not open; -ENOTSUP if this kernel or libmlx5 does not support
 *   dma-bufs (bb_dev_attr dmabuf) or the selection of page sizes.
 */
int bb_umem_reg_ex(struct bb_dev *dev, const struct bb_umem_attr *attr, struct bb_umem **umem);

/**
 * Deregisters a umem. Returns 0, or -EBUSY while an object of the device uses the umem: destroy the
 * object first.
 */
int bb_umem_dereg(struct bb_umem *umem);

/**
 * Registers a part of a dma-buf as memory region (man ibv_reg_dmabuf_mr). The memory need not be
 * mapped in the process. struct bb_mr has the offset as addr, and bb_mem_lkey() does not find it.
 * If the exporter moves the memory, the kernel updates the registration, but a request of a
 * Bluebell queue at that moment completes in error. So keep the memory pinned.
 * @param offset first byte in the dma-buf.
 * @param iova address of that byte in WQEs and for peers; equal to @p offset in the lowest 12
 *   bits.
 * @param fd file descriptor of the dma-buf; the caller may close it after the call.
 * @param access rights: LOCAL_WRITE, REMOTE_WRITE, REMOTE_READ, REMOTE_ATOMIC, RELAXED_ORDERING.
 * @return 0; -EINVAL if the range is empty or exceeds the dma-buf, the file is no dma-buf, a right
 *   is not allowed, or @p iova and @p offset have different offsets in their pages. -EBADF if the
 *   descriptor is not open; -ENOTSUP if the kernel or libibverbs has no dma-buf MRs (bb_dev_attr
 *   dmabuf).
 */
int bb_mr_reg_dmabuf(struct bb_pd *pd, uint64_t offset, size_t len, uint64_t iova, int fd,
		     uint32_t access, struct bb_mr **mr);

#ifdef __cplusplus
}
#endif

#endif
