/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* What the parts of the kernel in its place share; see README.md. */
#ifndef KERNEL_H
#define KERNEL_H

#include <rdma/rdma_user_ioctl_cmds.h>

#include "mlx5_cmd.h"
#include "peer_uverbs.h"
#include "soft_ctl.h"

enum kernel_kind {
	FREE,
	PD,
	OBJ,
	UMEM,
	UAR,
	DM,
	MR,
	MW,
	AH,
	EVENTS,
	CHANNEL
};

struct kernel_handle {
	enum kernel_kind kind;
	void *p;
	int fd; /* of EVENTS and CHANNEL */
};

/* The software device behind all; NULL before the first opening. One thread at a time. */
extern struct mlx5_ctx *kernel_soft;

/* 0: there are too many. */
uint32_t kernel_keep(enum kernel_kind kind, void *p);
/* NULL: it is of another kind, or of nothing. */
void *kernel_get(enum kernel_kind kind, uint64_t handle);
struct kernel_handle *kernel_handle(uint64_t handle);
/* Destroy what @handle names. 0 or an errno. */
int kernel_destroy(enum kernel_kind kind, uint64_t handle);
/* Of an event descriptor; NULL: it is none. */
struct kernel_handle *kernel_by_fd(int fd);

/* Of a UAR in the offset of mmap(): its handle, from bit KERNEL_MAP_SHIFT on. */
#define KERNEL_MAP_UAR   ((uint64_t)1 << 40)
#define KERNEL_MAP_SHIFT 20

/* A method of an ioctl(), a command by write(). 0 or an errno. */
int kernel_ioctl(struct ib_uverbs_ioctl_hdr *h);
int kernel_write(uint32_t command, const struct uverbs_cmd *c);

#endif
