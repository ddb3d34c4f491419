/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* What the parts of the kernel in its place share; see README.md. */
#ifndef KERNEL_H
#define KERNEL_H

#include <rdma/ib_user_verbs.h>
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
	CQ,
	QP,
	SRQ,
	ASYNC,
	EVENTS,
	CHANNEL,
	COMP
};

struct kernel_handle {
	enum kernel_kind kind;
	void *p;
	int fd; /* from ASYNC on */
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

/* CQs, QPs and SRQs, other than those by DEVX. 0 or an errno. */
int kernel_create_cq(const struct uverbs_cmd *c, uint64_t element, uint32_t cqe, int channel,
		     bool ex);
int kernel_resize_cq(const struct uverbs_cmd *c);
int kernel_modify_cq(const struct uverbs_cmd *c);
int kernel_create_srq(const struct uverbs_cmd *c);
int kernel_modify_srq(const struct uverbs_cmd *c);
int kernel_query_srq(const struct uverbs_cmd *c);
int kernel_create_qp(const struct uverbs_cmd *c, const struct ib_uverbs_create_qp *a, bool ex);
int kernel_modify_qp(const struct ib_uverbs_modify_qp *m);
int kernel_query_qp(const struct uverbs_cmd *c, uint32_t handle);
int kernel_end_queue(void *p);
/* How many events of it were told. */
void kernel_queue_events(const void *p, struct ib_uverbs_destroy_cq_resp *told);
/* What ibv_get_cq_event() reads; false: the CQ is gone. */
bool kernel_comp_event(uint64_t cookie, struct ib_uverbs_comp_event_desc *to);
/* In the cookie of events for ibv_get_async_event(), beside the handle. */
#define KERNEL_COOKIE ((uint64_t)1 << 63)
/* What ibv_get_async_event() reads; false: nobody asked for this one. */
bool kernel_async_event(const struct mlx5_cmd_event *event, struct ib_uverbs_async_event_desc *to);

/* What is mapped for the clock of the device; NULL: there is no way on this machine. */
void *kernel_clock_page(void);

/* A channel of completions as @kind: its descriptor, or a negative errno. */
int kernel_channel(enum kernel_kind kind);

/* A method of an ioctl(), a command by write(). 0 or an errno. */
int kernel_ioctl(struct ib_uverbs_ioctl_hdr *h);
int kernel_write(uint32_t command, const struct uverbs_cmd *c);

#endif
