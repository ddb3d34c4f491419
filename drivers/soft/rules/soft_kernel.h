/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Checks that the kernel makes before a DEVX call reaches the firmware.
 *
 * Source: Linux drivers/infiniband/hw/mlx5/devx.c; the comment at each rule names the kernel's
 * function. The lists contain the commands of the software device, and commands that a user could
 * mistake for them. The kernel knows many more commands.
 */
#ifndef SOFT_KERNEL_H
#define SOFT_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bb_prm.h"

/* The DEVX ioctl methods. */
enum soft_kernel_method {
	SOFT_KERNEL_GENERAL,
	SOFT_KERNEL_CREATE,
	SOFT_KERNEL_MODIFY,
	SOFT_KERNEL_QUERY,
};

/*
 * Bytes of the smallest mailbox, and of the largest input mailbox that the software device knows.
 */
#define SOFT_KERNEL_MIN_BOX 16
#define SOFT_KERNEL_MAX_IN  4096
/* Bytes of the longest command that destroys an object. */
#define SOFT_KERNEL_MAX_DESTROY 32

/*
 * Checks whether the kernel passes a mailbox on to the firmware by @method. @obj_id identifies the
 * handle's object; used for modify and query. Returns 0, -EINVAL, or -ENOENT if a CQ names a
 * missing event queue. Logs each error.
 */
int soft_kernel_check(enum soft_kernel_method method, uint64_t obj_id, const void *in, size_t inlen,
		      size_t outlen);

/*
 * Sets the bits that the kernel sets in its copy of the mailbox. @inlen is the size of @in in
 * bytes.
 */
void soft_kernel_fill(void *in, size_t inlen);

/* Returns the identity of the object that a command created: its opcode and its number. */
uint64_t soft_kernel_obj_id(const void *in, const void *out);

/*
 * Builds the command that destroys an object, of up to SOFT_KERNEL_MAX_DESTROY bytes, at @in.
 * @create is the command that created the object. Returns the length in bytes.
 */
uint32_t soft_kernel_destroy_cmd(const void *create, uint64_t obj_id, void *in);

/*
 * Check the access flags of umems and MRs (IBV_ACCESS_*). Return 0 or a negative errno, logged.
 */
int soft_kernel_umem_access(uint32_t access);
int soft_kernel_mr_access(uint32_t access, bool odp);

/* Returns true if the access flags require writable memory (ib_access_writable()). */
bool soft_kernel_writable(uint32_t access);

/* Checks the iova of an MR against its address. Returns 0 or -EINVAL, logged. */
int soft_kernel_mr_iova(uint64_t addr, uint64_t iova);

/* Checks the flags and the new memory range of a re-registration. Returns 0 or -EINVAL, logged. */
int soft_kernel_mr_rereg(uint32_t flags, const void *addr, uint64_t len);

/*
 * Returns true if an MR can change from access flags @from to @to without a new key
 * (can_use_umr_rereg_access()).
 */
bool soft_kernel_rereg_in_place(uint32_t from, uint32_t to);

/* Masks of the event types that the device raises, as 1 << type: for objects, and device-wide. */
#define SOFT_EVENTS_OBJ                                                                            \
	(UINT64_C(1) << BB_PRM_EVENT_COMM_EST | 1u << BB_PRM_EVENT_CQ_ERROR |                      \
	 1u << BB_PRM_EVENT_WQ_CATAS_ERROR | 1u << BB_PRM_EVENT_WQ_INVAL_REQ_ERROR |               \
	 1u << BB_PRM_EVENT_WQ_ACCESS_ERROR | 1u << BB_PRM_EVENT_SRQ_CATAS_ERROR |                 \
	 1u << BB_PRM_EVENT_SRQ_LAST_WQE | 1u << BB_PRM_EVENT_SRQ_RQ_LIMIT)
#define SOFT_EVENTS_DEV (UINT64_C(1) << BB_PRM_EVENT_PORT_CHANGE)

/*
 * Checks the event types of a subscription to an object or to the device. Returns 0 or -EINVAL,
 * logged.
 */
int soft_kernel_events(const uint16_t *types, unsigned int n, bool has_obj);

/* Smallest page of the device, in bytes. */
#define SOFT_KERNEL_PAGE 4096u
/* Returns PAGE_SIZE of the host in bytes; may be larger than SOFT_KERNEL_PAGE. */
uint64_t soft_kernel_host_page(void);

/*
 * Returns the page size of a umem in bytes, or 0 if no page size fits. @host is PAGE_SIZE of the
 * host. @real_page is the size of the pages that hold the memory, such as 2 MiB for hugepages; the
 * pages need not be contiguous physically. As in the kernel, the result may be a size that
 * @pgsz_bitmap does not contain.
 */
uint64_t soft_kernel_umem_pgsz(uint64_t host, uint64_t addr, uint64_t len, uint64_t real_page,
			       uint64_t pgsz_bitmap);

/*
 * Checks the length and alignment of an allocation of device memory. @max is the device's total in
 * bytes. Returns 0 or a negative errno, logged.
 */
int soft_kernel_dm(const char *name, uint64_t len, uint32_t log_align, uint64_t max,
		   uint32_t max_log_align);
/*
 * Checks an MR over [off, off + len) of @dm_len bytes of device memory. Returns 0 or -EINVAL,
 * logged.
 */
int soft_kernel_dm_mr(const char *name, uint32_t access, uint64_t off, uint64_t len,
		      uint64_t dm_len);
/* Checks the access flags and the address of an MR over a dma-buf. Returns 0 or -EINVAL, logged. */
int soft_kernel_dmabuf_mr(const char *name, uint32_t access, uint64_t offset, uint64_t iova);
/*
 * Checks a copy of @copy bytes to or from device memory of @len bytes. Returns 0 or a negative
 * errno, logged.
 */
int soft_kernel_dm_copy(const char *name, uint64_t len, uint64_t off, uint64_t copy);

#endif
