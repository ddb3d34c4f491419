/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Shared by the parts of the substitute kernel; see README.md. */
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
	int fd; /* for ASYNC and the following kinds */
};

/* The software device, NULL before the first open. One thread at a time. */
extern struct mlx5_ctx *kernel_soft;

/* Stores an object and returns its handle, 0 if the table is full. */
uint32_t kernel_keep(enum kernel_kind kind, void *p);
/* Returns the object, NULL if the handle is free or of another kind. */
void *kernel_get(enum kernel_kind kind, uint64_t handle);
struct kernel_handle *kernel_handle(uint64_t handle);
/* Destroys the object of @handle. Returns 0 or an errno. */
int kernel_destroy(enum kernel_kind kind, uint64_t handle);
/* Returns the handle of an event descriptor, NULL if @fd is none. */
struct kernel_handle *kernel_by_fd(int fd);

/* A UAR in the offset of mmap(): its handle starts at bit KERNEL_MAP_SHIFT. */
#define KERNEL_MAP_UAR   ((uint64_t)1 << 40)
#define KERNEL_MAP_SHIFT 20

/* CQs, QPs and SRQs that are not made by DEVX. Return 0 or an errno. */
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
int kernel_attach_mcast(const struct uverbs_cmd *c);
int kernel_detach_mcast(const struct uverbs_cmd *c);
/* Returns true if the QP of @handle is attached to a multicast group. */
bool kernel_qp_has_groups(uint32_t handle);
/* Returns the number of events reported for the queue. */
void kernel_queue_events(const void *p, struct ib_uverbs_destroy_cq_resp *told);
/* Makes the event that ibv_get_cq_event() reads. Returns false if the CQ is destroyed. */
bool kernel_comp_event(uint64_t cookie, struct ib_uverbs_comp_event_desc *to);
/* Set in the cookie of events for ibv_get_async_event(), beside the handle. */
#define KERNEL_COOKIE ((uint64_t)1 << 63)
/* Makes the event that ibv_get_async_event() reads. Returns false if it was not subscribed. */
bool kernel_async_event(const struct mlx5_cmd_event *event, struct ib_uverbs_async_event_desc *to);

/*
 * Returns the page that is mapped for the device's clock, NULL if this machine cannot emulate it.
 */
void *kernel_clock_page(void);

/* Makes a completion channel as @kind. Returns its descriptor or a negative errno. */
int kernel_channel(enum kernel_kind kind);

/* Execute a method of ioctl(), or a command of write(). Return 0 or an errno. */
int kernel_ioctl(struct ib_uverbs_ioctl_hdr *h);
int kernel_write(uint32_t command, const struct uverbs_cmd *c);

#endif
