/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Asynchronous events. The cookie of a subscription is a slot number and the generation of the
 * slot, never a pointer. The event of a destroyed object has an old generation, so it is dropped.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mlx5.h"

#define EVT_SLOTS_STEP 64u
#define EVT_MAX_DROPS  64u /* maximum events of destroyed objects skipped per call */
/* maximum number of event types that the driver subscribes to per object */
#define MAX_TYPES 5u

/* Cookie of device events. No object has this cookie, because generations start at 1. */
#define EVT_COOKIE_DEV 0ull

int
mlx5_evt_init(struct mlx5_evts *evts)
{
	memset(evts, 0, sizeof(*evts));
	return -pthread_mutex_init(&evts->lock, NULL);
}

void
mlx5_evt_fini(struct mlx5_evts *evts)
{
	pthread_mutex_destroy(&evts->lock);
	free(evts->slots);
}

/*
 * Adds entries to the table of event subscriptions when all are used. The first new entry becomes
 * e->free.
 */
static int
grow(struct mlx5_evts *e)
{
	uint32_t i, n = e->n + RTE_MAX(e->n, EVT_SLOTS_STEP);
	struct mlx5_evt_slot *slots = realloc(e->slots, (size_t)n * sizeof(*slots));

	if (slots == NULL)
		return -ENOMEM;
	for (i = e->n; i < n; i++) {
		slots[i].kind = MLX5_EVT_FREE;
		slots[i].gen = 0;
		slots[i].next_free = i + 1;
	}
	e->slots = slots;
	e->n = n;
	return 0;
}

static int
slot_take(struct mlx5_evts *e, enum mlx5_evt_kind kind, void *owner, uint64_t *cookie)
{
	struct mlx5_evt_slot *s;
	int ret = 0;

	pthread_mutex_lock(&e->lock);
	if (e->free == e->n)
		ret = grow(e);
	if (ret == 0) {
		uint32_t i = e->free;

		s = &e->slots[i];
		e->free = s->next_free;
		s->kind = kind;
		s->obj = owner;
		s->gen += s->gen == UINT32_MAX ? 2 : 1;
		*cookie = (uint64_t)s->gen << 32 | i;
	}
	pthread_mutex_unlock(&e->lock);
	return ret;
}

void
mlx5_evt_del(struct mlx5_dev *d, uint64_t cookie)
{
	struct mlx5_evts *e = &d->evts;
	uint32_t i = (uint32_t)cookie;

	pthread_mutex_lock(&e->lock);
	e->slots[i].kind = MLX5_EVT_FREE;
	e->slots[i].next_free = e->free;
	e->free = i;
	pthread_mutex_unlock(&e->lock);
}

/* Returns true if the firmware reports events of @type of objects. */
static bool
has_event(const struct mlx5_dev *d, uint16_t type)
{
	return (d->caps.events >> type & 1) != 0;
}

/*
 * Subscribes to events. A failure is not fatal: without events, errors of queues only appear as
 * error CQEs or as missing CQEs.
 */
static int
subscribe(struct mlx5_dev *d, struct mlx5_obj *obj, const uint16_t *types, unsigned int n,
	  uint64_t cookie)
{
	uint16_t known[MAX_TYPES];
	unsigned int i, m = 0;
	int ret;

	for (i = 0; i < n; i++)
		if (obj == NULL || has_event(d, types[i]))
			known[m++] = types[i];
	if (d->evts.off || m == 0)
		return 0;
	ret = d->cmd->event_subscribe(d->ctx, obj, known, m, cookie);
	if (ret == -EOPNOTSUPP) {
		d->evts.off = true;
		BB_LOG(WARNING,
		       "%s: the kernel or firmware reports no asynchronous events of queues: "
		       "bb_event_get() returns only those of ports",
		       d->ctx->name);
		return 0;
	}
	if (ret != 0)
		BB_LOG(ERR, "%s: cannot subscribe to asynchronous events: %s", d->ctx->name,
		       strerror(-ret));
	return ret;
}

int
mlx5_evt_add(struct mlx5_dev *d, enum mlx5_evt_kind kind, struct mlx5_obj *obj, void *owner,
	     uint64_t *cookie)
{
	static const uint16_t cq_types[] = {BB_PRM_EVENT_CQ_ERROR};
	/* Events of QPs. Path migration events are omitted, because QPs have no alternate path. */
	static const uint16_t qp_types[] = {BB_PRM_EVENT_COMM_EST, BB_PRM_EVENT_WQ_CATAS_ERROR,
					    BB_PRM_EVENT_WQ_INVAL_REQ_ERROR,
					    BB_PRM_EVENT_WQ_ACCESS_ERROR,
					    /*
					     * Subscribe to this last entry only for QPs with an
					     * SRQ.
					     */
					    BB_PRM_EVENT_SRQ_LAST_WQE};
	static const uint16_t srq_types[] = {BB_PRM_EVENT_SRQ_CATAS_ERROR,
					     BB_PRM_EVENT_SRQ_RQ_LIMIT};
	const struct bb_qp *qp = owner;
	int ret;

	BB_STATIC_ASSERT(RTE_DIM(qp_types) <= MAX_TYPES, "subscribe() keeps them");
	ret = slot_take(&d->evts, kind, owner, cookie);
	if (ret != 0) {
		BB_LOG(ERR, "%s: out of memory for an event subscription", d->ctx->name);
		return ret;
	}
	if (kind == MLX5_EVT_CQ)
		ret = subscribe(d, obj, cq_types, RTE_DIM(cq_types), *cookie);
	else if (kind == MLX5_EVT_SRQ)
		ret = subscribe(d, obj, srq_types, RTE_DIM(srq_types), *cookie);
	else
		ret = subscribe(d, obj, qp_types, RTE_DIM(qp_types) - (qp->ctrl->init.srq == NULL),
				*cookie);
	if (ret != 0)
		mlx5_evt_del(d, *cookie);
	return ret;
}

/* Translates the event of an object. Returns false if the event is not reported. */
static bool
translate(enum mlx5_evt_kind kind, uint16_t type, void *obj, struct bb_event *event)
{
	switch (type) {
	case BB_PRM_EVENT_CQ_ERROR:
		event->type = BB_EVENT_CQ_ERROR;
		event->cq = obj;
		return kind == MLX5_EVT_CQ;
	case BB_PRM_EVENT_SRQ_CATAS_ERROR:
	case BB_PRM_EVENT_SRQ_RQ_LIMIT:
		event->type =
			type == BB_PRM_EVENT_SRQ_RQ_LIMIT ? BB_EVENT_SRQ_LIMIT : BB_EVENT_SRQ_ERROR;
		event->srq = obj;
		return kind == MLX5_EVT_SRQ;
	case BB_PRM_EVENT_SRQ_LAST_WQE:
		event->type = BB_EVENT_SRQ_LAST_WQE;
		break;
	case BB_PRM_EVENT_WQ_CATAS_ERROR:
		event->type = BB_EVENT_QP_FATAL;
		break;
	case BB_PRM_EVENT_COMM_EST:
		event->type = BB_EVENT_QP_COMM_EST;
		break;
	case BB_PRM_EVENT_WQ_INVAL_REQ_ERROR:
		event->type = BB_EVENT_QP_REQUEST;
		break;
	case BB_PRM_EVENT_WQ_ACCESS_ERROR:
		event->type = BB_EVENT_QP_ACCESS;
		break;
	default:
		return false;
	}
	event->qp = obj;
	return kind == MLX5_EVT_QP;
}

/* Logs which events of queues the device cannot report, so that no program waits for these. */
static void
log_missing(const struct mlx5_dev *d)
{
	static const struct {
		uint16_t type;
		enum mlx5_evt_kind kind;
	} all[] = {
		{BB_PRM_EVENT_COMM_EST, MLX5_EVT_QP},
		{BB_PRM_EVENT_WQ_CATAS_ERROR, MLX5_EVT_QP},
		{BB_PRM_EVENT_WQ_INVAL_REQ_ERROR, MLX5_EVT_QP},
		{BB_PRM_EVENT_WQ_ACCESS_ERROR, MLX5_EVT_QP},
		{BB_PRM_EVENT_SRQ_LAST_WQE, MLX5_EVT_QP},
		{BB_PRM_EVENT_CQ_ERROR, MLX5_EVT_CQ},
		{BB_PRM_EVENT_SRQ_CATAS_ERROR, MLX5_EVT_SRQ},
		{BB_PRM_EVENT_SRQ_RQ_LIMIT, MLX5_EVT_SRQ},
	};
	struct bb_event ev;
	char names[256] = "";
	size_t i, len = 0;

	for (i = 0; i < RTE_DIM(all); i++) {
		if (has_event(d, all[i].type) || !translate(all[i].kind, all[i].type, NULL, &ev))
			continue;
		len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s",
					len == 0 ? "" : ", ", bb_event_name(ev.type));
		if (len >= sizeof(names))
			break;
	}
	if (len != 0)
		BB_LOG(WARNING,
		       "%s: the firmware does not report these events: %s: bb_event_get() never "
		       "returns them",
		       d->ctx->name, names);
}

int
mlx5_evt_open(struct mlx5_dev *d)
{
	static const uint16_t types[] = {BB_PRM_EVENT_PORT_CHANGE};
	int ret = subscribe(d, NULL, types, RTE_DIM(types), EVT_COOKIE_DEV);

	if (ret == 0 && !d->evts.off)
		log_missing(d);
	return ret;
}

bool
mlx5_evt_refusals(const struct mlx5_dev *d)
{
	return !d->evts.off && has_event(d, BB_PRM_EVENT_WQ_ACCESS_ERROR) &&
	       has_event(d, BB_PRM_EVENT_WQ_INVAL_REQ_ERROR);
}

void *
mlx5_evt_obj(struct mlx5_dev *d, enum mlx5_evt_kind kind, uint64_t cookie)
{
	struct mlx5_evts *e = &d->evts;
	uint32_t i = (uint32_t)cookie;
	void *obj = NULL;

	pthread_mutex_lock(&e->lock);
	if (i < e->n && e->slots[i].kind == kind && e->slots[i].gen == (uint32_t)(cookie >> 32))
		obj = e->slots[i].obj;
	pthread_mutex_unlock(&e->lock);
	return obj;
}

static bool
find(struct mlx5_evts *e, const struct mlx5_cmd_event *ce, struct bb_event *event)
{
	uint32_t i = (uint32_t)ce->cookie;
	bool found = false;

	pthread_mutex_lock(&e->lock);
	if (i < e->n && e->slots[i].kind != MLX5_EVT_FREE &&
	    e->slots[i].gen == (uint32_t)(ce->cookie >> 32))
		found = translate(e->slots[i].kind, ce->type, e->slots[i].obj, event);
	pthread_mutex_unlock(&e->lock);
	return found;
}

int
mlx5_event_get(struct bb_dev *dev, struct bb_event *event)
{
	struct mlx5_dev *d = mlx5_dev_of(dev);
	struct mlx5_cmd_event ce;
	struct bb_event ev;
	unsigned int i;
	int ret;

	/*
	 * Run the device, because the thread that waits for the event may also be the one that runs
	 * the device.
	 */
	mlx5_progress(dev);
	for (i = 0; i < EVT_MAX_DROPS; i++) {
		ret = d->cmd->event_get(d->ctx, &ce);
		if (ret != 0) {
			if (ret != -EAGAIN)
				BB_LOG(ERR, "%s: cannot read asynchronous events: %s", d->ctx->name,
				       strerror(-ret));
			return ret;
		}
		memset(&ev, 0, sizeof(ev));
		if (ce.type == MLX5_CMD_EVENT_DEV_FATAL) {
			ev.type = BB_EVENT_DEV_FATAL;
		} else if (ce.type == BB_PRM_EVENT_PORT_CHANGE) {
			ev.type = ce.change == BB_PRM_PORT_CHANGE_ACTIVE ? BB_EVENT_PORT_ACTIVE
				  : ce.change == BB_PRM_PORT_CHANGE_DOWN ? BB_EVENT_PORT_DOWN
									 : BB_EVENT_PORT_CHANGE;
			ev.port = ce.port;
		} else if (!find(&d->evts, &ce, &ev)) {
			continue;
		}
		*event = ev;
		return 0;
	}
	return -EAGAIN;
}
