/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * CQs, QPs and SRQs that the program creates by verbs commands, not by DEVX. Rings and doorbell
 * records are in libmlx5's memory, which becomes umems of the software device. uverbs_cq.c,
 * uverbs_qp.c and uverbs_srq.c build the mailboxes as the kernel does. This file has the shared
 * parts and the events.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "bb_prm.h"
#include "soft_hooks.h"
#include "uverbs_queue.h"

int
uverbs_queue_umem(struct uverbs_file *f, uint64_t addr, uint64_t len, struct mlx5_umem **u,
		  uint64_t *offset)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), from = addr & ~(page - 1);

	if (len > UINT64_MAX - page || addr > UINT64_MAX - page - len)
		return -EINVAL;
	*offset = addr - from;
	/* No command of verbs names a page size, so that the pages of the memory do not matter. */
	return f->soft->cmd->umem_reg(f->soft, (void *)(uintptr_t)from,
				      (addr + len - from + page - 1) & ~(page - 1),
				      MLX5_ACCESS_LOCAL_WRITE, page, u);
}

int
uverbs_queue_errno(int ret, const void *out)
{
	if (ret == -EREMOTEIO)
		ret = soft_kernel_status_errno((uint8_t)bb_prm_get(out, BB_PRM_CMD_STATUS));
	return -ret;
}

int
uverbs_queue_end(struct uverbs_file *f, struct uverbs_queue *q)
{
	int ret = q->obj != NULL ? f->soft->cmd->obj_destroy(q->obj) : 0;

	/* If the destruction failed, other objects still refer to this one. */
	if (ret != 0)
		return -ret;
	if (q->ring != NULL)
		(void)f->soft->cmd->umem_dereg(f->soft, q->ring);
	if (q->rec != NULL)
		(void)f->soft->cmd->umem_dereg(f->soft, q->rec);
	free(q);
	return 0;
}

struct uverbs_queue *
uverbs_queue_begin(struct uverbs_file *f, uint64_t ring, uint64_t bytes, uint64_t rec,
		   uint64_t *ring_at, uint64_t *rec_at)
{
	struct uverbs_queue *q = calloc(1, sizeof(*q));

	if (q == NULL)
		return NULL;
	if (uverbs_queue_umem(f, ring, bytes, &q->ring, ring_at) != 0 ||
	    uverbs_queue_umem(f, rec, 8, &q->rec, rec_at) != 0) {
		(void)uverbs_queue_end(f, q);
		return NULL;
	}
	return q;
}

uint32_t
uverbs_queue_born(struct uverbs_file *f, enum uverbs_kind kind, struct uverbs_queue *q,
		  const uint16_t *types, unsigned int n)
{
	const uint32_t handle = uverbs_keep(f, kind, q);

	if (handle != 0 &&
	    f->soft->cmd->event_subscribe(f->soft, q->obj, types, n, UVERBS_COOKIE | handle) != 0) {
		uverbs_forget(f, handle);
		return 0;
	}
	return handle;
}

/*
 * Converts an event of the device or of its port to a verbs event. Returns false for events of
 * objects.
 */
static bool
device_event(const struct mlx5_cmd_event *event, struct ib_uverbs_async_event_desc *to)
{
	if (event->type == MLX5_CMD_EVENT_DEV_FATAL) {
		*to = (struct ib_uverbs_async_event_desc){.event_type = IBV_EVENT_DEVICE_FATAL};
		return true;
	}
	if (event->type != BB_PRM_EVENT_PORT_CHANGE)
		return false;
	*to = (struct ib_uverbs_async_event_desc){
		.element = event->port,
		.event_type = event->change == BB_PRM_PORT_CHANGE_DOWN ? IBV_EVENT_PORT_ERR
								       : IBV_EVENT_PORT_ACTIVE,
	};
	return true;
}

bool
uverbs_async_event(struct uverbs_file *f, const struct mlx5_cmd_event *event,
		   struct ib_uverbs_async_event_desc *to)
{
	static const struct {
		uint16_t type;
		enum uverbs_kind kind;
		enum ibv_event_type reported;
	} events[] = {
		{BB_PRM_EVENT_CQ_ERROR, UV_CQ, IBV_EVENT_CQ_ERR},
		{BB_PRM_EVENT_COMM_EST, UV_QP, IBV_EVENT_COMM_EST},
		{BB_PRM_EVENT_WQ_CATAS_ERROR, UV_QP, IBV_EVENT_QP_FATAL},
		{BB_PRM_EVENT_WQ_INVAL_REQ_ERROR, UV_QP, IBV_EVENT_QP_REQ_ERR},
		{BB_PRM_EVENT_WQ_ACCESS_ERROR, UV_QP, IBV_EVENT_QP_ACCESS_ERR},
		{BB_PRM_EVENT_SRQ_LAST_WQE, UV_QP, IBV_EVENT_QP_LAST_WQE_REACHED},
		{BB_PRM_EVENT_SRQ_RQ_LIMIT, UV_SRQ, IBV_EVENT_SRQ_LIMIT_REACHED},
		{BB_PRM_EVENT_SRQ_CATAS_ERROR, UV_SRQ, IBV_EVENT_SRQ_ERR},
	};
	struct uverbs_queue *q = NULL;
	unsigned int i;

	if (device_event(event, to))
		return true;
	for (i = 0; i < sizeof(events) / sizeof(events[0]) && q == NULL; i++) {
		if (events[i].type != event->type)
			continue;
		q = uverbs_find(f, events[i].kind, event->cookie & ~UVERBS_COOKIE);
		*to = (struct ib_uverbs_async_event_desc){.event_type = events[i].reported};
	}
	if (q == NULL)
		return false;
	to->element = q->element;
	q->events++;
	return true;
}

bool
uverbs_comp_event(struct uverbs_file *f, uint64_t cookie, struct ib_uverbs_comp_event_desc *to)
{
	struct uverbs_queue *q = uverbs_find(f, UV_CQ, cookie);

	if (q == NULL)
		return false;
	to->cq_handle = q->element;
	q->comps++;
	return true;
}
