/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * What the kernel checks before a DEVX call reaches the firmware.
 *
 * Source: Linux drivers/infiniband/hw/mlx5/devx.c (functions named at each rule).
 * The kernel knows many more commands; those of the software device and those a
 * user could mistake for them are listed.
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

/* Smallest mailbox, and the largest input of a command that the software device knows. */
#define SOFT_KERNEL_MIN_BOX 16
#define SOFT_KERNEL_MAX_IN  4096

/*
 * May this mailbox go to the firmware by this method? @obj_id is the handle's, for
 * modify and query. 0; -EINVAL or, for a CQ's event queue, -ENOENT with a line in the log.
 */
int soft_kernel_check(enum soft_kernel_method method, uint64_t obj_id, const void *in, size_t inlen,
		      size_t outlen);

/* Set the bits that the kernel sets in the copy it sends on. @in holds @inlen bytes. */
void soft_kernel_fill(void *in, size_t inlen);

/* Identity of the object that a command created: its opcode and its number. */
uint64_t soft_kernel_obj_id(const void *in, const void *out);

/* The command that destroys it: SOFT_KERNEL_MIN_BOX bytes. */
void soft_kernel_destroy_cmd(uint64_t obj_id, void *in);

/* What a destroy call returns when the firmware refused: a negative errno, or 0. */
int soft_kernel_status_errno(uint8_t status);

/* Rules of umem and MR access flags (IBV_ACCESS_*). 0 or -EINVAL, logged. */
int soft_kernel_umem_access(uint32_t access);
int soft_kernel_mr_access(uint32_t access, bool odp);

/* Must the memory be writable (ib_access_writable())? */
bool soft_kernel_writable(uint32_t access);

/* An address and the iova it is to have. 0 or -EINVAL, logged. */
int soft_kernel_mr_iova(uint64_t addr, uint64_t iova);

/* Flags and new memory of a re-registration. 0 or -EINVAL, logged. */
int soft_kernel_mr_rereg(uint32_t flags, const void *addr, uint64_t len);

/* Can these rights become those without another key (can_use_umr_rereg_access())? */
bool soft_kernel_rereg_in_place(uint32_t from, uint32_t to);

/* Types of events that the device raises, 1 << type: of objects, and its own. */
#define SOFT_EVENTS_OBJ                                                                            \
	(UINT64_C(1) << BB_PRM_EVENT_COMM_EST | 1u << BB_PRM_EVENT_CQ_ERROR |                      \
	 1u << BB_PRM_EVENT_WQ_CATAS_ERROR | 1u << BB_PRM_EVENT_WQ_INVAL_REQ_ERROR |               \
	 1u << BB_PRM_EVENT_WQ_ACCESS_ERROR | 1u << BB_PRM_EVENT_SRQ_CATAS_ERROR |                 \
	 1u << BB_PRM_EVENT_SRQ_LAST_WQE | 1u << BB_PRM_EVENT_SRQ_RQ_LIMIT)
#define SOFT_EVENTS_DEV (UINT64_C(1) << BB_PRM_EVENT_PORT_CHANGE)

/* Which events may be subscribed to, of an object or of the device. 0 or -EINVAL, logged. */
int soft_kernel_events(const uint16_t *types, unsigned int n, bool has_obj);

/* The smallest page of the device. */
#define SOFT_KERNEL_PAGE 4096u
/* Of the host, which may be larger: PAGE_SIZE. */
uint64_t soft_kernel_host_page(void);

/*
 * The page size of a umem in memory of @real_page byte pages, of which one need not lie
 * beside the next physically, on a host with pages of @host bytes. 0: none. May be one that is
 * not in @pgsz_bitmap, as the kernel's may.
 */
uint64_t soft_kernel_umem_pgsz(uint64_t host, uint64_t addr, uint64_t len, uint64_t real_page,
			       uint64_t pgsz_bitmap);

/* Length and alignment of device memory, of which there are @max bytes. 0, -errno, logged. */
int soft_kernel_dm(const char *name, uint64_t len, uint32_t log_align, uint64_t max,
		   uint32_t max_log_align);
/* An MR over [off, off + len) of @dm_len bytes of device memory. 0 or -EINVAL, logged. */
int soft_kernel_dm_mr(const char *name, uint32_t access, uint64_t off, uint64_t len,
		      uint64_t dm_len);
/* Rights and address of an MR over a dma-buf. 0 or -EINVAL, logged. */
int soft_kernel_dmabuf_mr(const char *name, uint32_t access, uint64_t offset, uint64_t iova);
/* A copy to or from device memory of @len bytes. 0, -errno, logged. */
int soft_kernel_dm_copy(const char *name, uint64_t len, uint64_t off, uint64_t copy);

#endif
