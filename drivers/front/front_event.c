/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Converts events of the device to entries of the guest's event queues. */
#include <stdlib.h>

#include <rte_common.h>

#include "front_priv.h"

#define EQE_DATA 28
/* Events of a front that may wait for room. More than its objects: 2^17 QPs, CQs, and SRQs. */
#define MAX_WAITING (1u << 19)
#define CQ_OVERRUN  1 /* MLX5_CQ_ERROR_SYNDROME_CQ_OVERRUN, the device's only cause */
#define TYPE_QP     0 /* MLX5_EVENT_QUEUE_TYPE_QP */
#define TYPE_RQ     1 /* MLX5_EVENT_QUEUE_TYPE_RQ */
#define PF_WQE      0 /* MLX5_PFAULT_SUBTYPE_WQE */
#define PF_RDMA     1 /* MLX5_PFAULT_SUBTYPE_RDMA */

static const uint16_t qp_events[] = {BB_PRM_EVENT_COMM_EST, BB_PRM_EVENT_WQ_CATAS_ERROR,
				     BB_PRM_EVENT_WQ_INVAL_REQ_ERROR, BB_PRM_EVENT_WQ_ACCESS_ERROR,
				     BB_PRM_EVENT_SRQ_LAST_WQE};
static const uint16_t rmp_events[] = {BB_PRM_EVENT_SRQ_CATAS_ERROR, BB_PRM_EVENT_SRQ_RQ_LIMIT};
static const uint16_t cq_events[] = {BB_PRM_EVENT_CQ_ERROR};

int
front_event_watch(struct front_obj *o)
{
	const struct mlx5_cmd_if *cmd = o->user->ctx->cmd;
	uint64_t cookie = (uint64_t)o->kind << 32 | o->id;
	int ret;

	switch (o->kind) {
	case FRONT_CQ:
		ret = cmd->channel_subscribe(o->user->ch, o->obj, o->id);
		return ret != 0 ? ret
				: cmd->event_subscribe(o->user->ctx, o->obj, cq_events,
						       RTE_DIM(cq_events), cookie);
	case FRONT_QP:
		return cmd->event_subscribe(o->user->ctx, o->obj, qp_events, RTE_DIM(qp_events),
					    cookie);
	case FRONT_RMP:
		return cmd->event_subscribe(o->user->ctx, o->obj, rmp_events, RTE_DIM(rmp_events),
					    cookie);
	default:
		return 0;
	}
}

static void
completions(struct front *f, struct front_user *u)
{
	uint64_t cookie;

	while (f->cmd->channel_get(u->ch, &cookie) == 0) {
		struct front_obj *o = front_obj_find(f, FRONT_CQ, (uint32_t)cookie);
		uint8_t data[EQE_DATA] = {0};

		if (o == NULL)
			continue;
		bb_prm_set(data, BB_PRM_EQE_COMP_CQN, o->id);
		f->host.eqe(f->host.arg, o->eqn, BB_PRM_EVENT_COMP, 0, data, sizeof(data));
	}
}

void
front_event_add(void *arg, const struct mlx5_cmd_event *event)
{
	struct front_event *e = malloc(sizeof(*e));
	struct front_user *u = arg;

	if (e == NULL) {
		FRONT_LOG(ERR, "out of memory: lost an event of type 0x%x\n", event->type);
		return;
	}
	e->event = *event;
	rte_spinlock_lock(&u->event_lock);
	STAILQ_INSERT_TAIL(&u->events, e, next);
	u->n_events++;
	rte_spinlock_unlock(&u->event_lock);
}

void
front_event_drop_all(struct front_user *u)
{
	struct front_event *e;

	while ((e = STAILQ_FIRST(&u->events)) != NULL) {
		STAILQ_REMOVE_HEAD(&u->events, next);
		free(e);
	}
}

static void
report(struct front *f, const struct mlx5_cmd_event *ev)
{
	uint32_t kind = (uint32_t)(ev->cookie >> 32), id = (uint32_t)ev->cookie;
	uint8_t data[EQE_DATA] = {0}, sub = 0;

	/* Each context gets this event. Only the first one is reported to the program. */
	if (ev->type == MLX5_CMD_EVENT_DEV_FATAL) {
		if (!f->dead)
			f->host.fatal(f->host.arg);
		f->dead = true;
		return;
	}
	if (ev->type == BB_PRM_EVENT_PORT_CHANGE) {
		/* The number is in the upper 4 bits. */
		bb_prm_set(data, BB_PRM_EQE_PORT, (uint32_t)ev->port << 4);
		sub = ev->change;
	} else if (kind == FRONT_CQ) {
		bb_prm_set(data, BB_PRM_EQE_CQ_ERR_CQN, id);
		bb_prm_set(data, BB_PRM_EQE_CQ_ERR_SYNDROME, CQ_OVERRUN);
	} else {
		bb_prm_set(data, BB_PRM_EQE_QP_SRQ_N, id);
		/* Linux's devx.c finds the subscribers of an RMP by the type RQ. */
		bb_prm_set(data, BB_PRM_EQE_QP_SRQ_TYPE, kind == FRONT_RMP ? TYPE_RQ : TYPE_QP);
	}
	f->host.event(f->host.arg, (uint8_t)ev->type, sub, data, sizeof(data));
}

/*
 * Takes the oldest event that the guest's event queue has room for. If too many events wait, the
 * guest does not read them: then takes one anyway, and the queue overruns. Returns NULL if there is
 * no event to report. @waiting: number of events of other users that have no room; adds those of
 * @u.
 */
static struct front_event *
take(struct front *f, struct front_user *u, uint32_t *waiting)
{
	struct front_event *e;

	rte_spinlock_lock(&u->event_lock);
	e = STAILQ_FIRST(&u->events);
	if (e != NULL && (e->event.type == MLX5_CMD_EVENT_DEV_FATAL || f->host.room == NULL ||
			  *waiting + u->n_events > MAX_WAITING ||
			  f->host.room(f->host.arg, (uint8_t)e->event.type))) {
		STAILQ_REMOVE_HEAD(&u->events, next);
		u->n_events--;
	} else {
		e = NULL;
		*waiting += u->n_events;
	}
	rte_spinlock_unlock(&u->event_lock);
	return e;
}

static void
async(struct front *f, struct front_user *u, uint32_t *waiting)
{
	struct front_event *e;

	while ((e = take(f, u, waiting)) != NULL) {
		report(f, &e->event);
		free(e);
	}
}

/* Reports page faults of the device to the kernel. */
static void
page_faults(struct front *f)
{
	struct soft_page_fault pf;

	while (soft_page_fault_get(f->users[0].ctx, &pf)) {
		bool rdma = (pf.type & SOFT_PF_RDMA) != 0;
		uint8_t data[EQE_DATA] = {0};

		if (rdma) {
			bb_prm_set(data, BB_PRM_EQE_PF_RDMA_KEY, pf.rkey);
			bb_prm_set(data, BB_PRM_EQE_PF_RDMA_PACKET, pf.packet);
			bb_prm_set(data, BB_PRM_EQE_PF_RDMA_LEN, pf.len);
			bb_prm_set64(data, BB_PRM_EQE_PF_RDMA_VA, pf.va);
			bb_prm_set(data, BB_PRM_EQE_PF_RDMA_TYPE_TOKEN,
				   (uint32_t)pf.type << 24 | pf.token);
		} else {
			bb_prm_set(data, BB_PRM_EQE_PF_WQE_INDEX, pf.wqe_index);
			bb_prm_set(data, BB_PRM_EQE_PF_WQE_PACKET, pf.packet);
			bb_prm_set(data, BB_PRM_EQE_PF_WQE_TOKEN, pf.token);
			bb_prm_set(data, BB_PRM_EQE_PF_WQE_TYPE_WQ,
				   (uint32_t)pf.type << 24 | pf.wq);
		}
		f->host.event(f->host.arg, BB_PRM_EVENT_PAGE_FAULT, rdma ? PF_RDMA : PF_WQE, data,
			      sizeof(data));
	}
}

/* Returns true if events wait for room in the guest's event queue. */
bool
front_events(struct front *f)
{
	uint32_t waiting = 0, uid;

	if (f->users[0].ctx != NULL)
		page_faults(f);
	for (uid = 0; uid < FRONT_MAX_UIDS; uid++) {
		if (f->users[uid].ctx == NULL)
			continue;
		completions(f, &f->users[uid]);
		async(f, &f->users[uid], &waiting);
	}
	async(f, &f->shared, &waiting);
	return waiting != 0;
}
