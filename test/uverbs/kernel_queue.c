/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Queues that the kernel makes for verbs. Rings and doorbell records are in libmlx5's memory,
 * which becomes umems of the software device. kernel_cq.c, kernel_qp.c and kernel_srq.c build the
 * mailboxes as the kernel does. This file has the shared parts and the events.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "bb_prm.h"
#include "kernel_queue.h"

int
kernel_queue_umem(uint64_t addr, uint64_t len, struct mlx5_umem **u, uint64_t *offset)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), from = addr & ~(page - 1);

	*offset = addr - from;
	return kernel_soft->cmd->umem_reg(kernel_soft, (void *)(uintptr_t)from,
					  (addr + len - from + page - 1) & ~(page - 1),
					  MLX5_ACCESS_LOCAL_WRITE, UINT64_MAX, u);
}

int
kernel_end_queue(void *p)
{
	struct kernel_queue *q = p;
	int ret = q->obj != NULL ? kernel_soft->cmd->obj_destroy(q->obj) : 0;

	/* Other objects still refer to it. */
	if (ret != 0)
		return -ret;
	if (q->ring != NULL)
		(void)kernel_soft->cmd->umem_dereg(kernel_soft, q->ring);
	if (q->rec != NULL)
		(void)kernel_soft->cmd->umem_dereg(kernel_soft, q->rec);
	free(q);
	return 0;
}

struct kernel_queue *
kernel_queue_begin(uint64_t ring, uint64_t bytes, uint64_t rec, uint64_t *ring_at, uint64_t *rec_at)
{
	struct kernel_queue *q = calloc(1, sizeof(*q));

	if (q == NULL)
		return NULL;
	if (kernel_queue_umem(ring, bytes, &q->ring, ring_at) != 0 ||
	    kernel_queue_umem(rec, 8, &q->rec, rec_at) != 0) {
		(void)kernel_end_queue(q);
		return NULL;
	}
	return q;
}

uint32_t
kernel_queue_born(enum kernel_kind kind, struct kernel_queue *q, const uint16_t *types,
		  unsigned int n)
{
	const uint32_t handle = kernel_keep(kind, q);

	if (handle != 0 && kernel_soft->cmd->event_subscribe(kernel_soft, q->obj, types, n,
							     KERNEL_COOKIE | handle) != 0) {
		kernel_handle(handle)->kind = FREE;
		return 0;
	}
	return handle;
}

bool
kernel_async_event(const struct mlx5_cmd_event *event, struct ib_uverbs_async_event_desc *to)
{
	static const struct {
		uint16_t type;
		enum kernel_kind kind;
		enum ibv_event_type told;
	} events[] = {
		{BB_PRM_EVENT_CQ_ERROR, CQ, IBV_EVENT_CQ_ERR},
		{BB_PRM_EVENT_COMM_EST, QP, IBV_EVENT_COMM_EST},
		{BB_PRM_EVENT_WQ_CATAS_ERROR, QP, IBV_EVENT_QP_FATAL},
		{BB_PRM_EVENT_WQ_INVAL_REQ_ERROR, QP, IBV_EVENT_QP_REQ_ERR},
		{BB_PRM_EVENT_WQ_ACCESS_ERROR, QP, IBV_EVENT_QP_ACCESS_ERR},
		{BB_PRM_EVENT_SRQ_LAST_WQE, QP, IBV_EVENT_QP_LAST_WQE_REACHED},
		{BB_PRM_EVENT_SRQ_RQ_LIMIT, SRQ, IBV_EVENT_SRQ_LIMIT_REACHED},
		{BB_PRM_EVENT_SRQ_CATAS_ERROR, SRQ, IBV_EVENT_SRQ_ERR},
	};
	struct kernel_queue *q = NULL;
	unsigned int i;

	for (i = 0; i < sizeof(events) / sizeof(events[0]) && q == NULL; i++) {
		if (events[i].type != event->type)
			continue;
		q = kernel_get(events[i].kind, event->cookie & ~KERNEL_COOKIE);
		*to = (struct ib_uverbs_async_event_desc){.event_type = events[i].told};
	}
	if (q == NULL)
		return false;
	to->element = q->element;
	q->events++;
	return true;
}

void
kernel_queue_events(const void *p, struct ib_uverbs_destroy_cq_resp *told)
{
	const struct kernel_queue *q = p;

	*told = (struct ib_uverbs_destroy_cq_resp){q->comps, q->events};
}

bool
kernel_comp_event(uint64_t cookie, struct ib_uverbs_comp_event_desc *to)
{
	struct kernel_queue *q = kernel_get(CQ, cookie);

	if (q == NULL)
		return false;
	to->cq_handle = q->element;
	q->comps++;
	return true;
}
