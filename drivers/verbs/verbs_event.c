/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Asynchronous events. When an object is destroyed, the kernel drops the events of it that were not
 * read. Each event that is read is acknowledged at once. So no event refers to a destroyed object.
 */
#include <errno.h>
#include <string.h>

#include "verbs_drv.h"

#define MAX_DROPS 64u /* maximum unknown events skipped per call */

static bool
of_qp(const struct ibv_async_event *e, struct bb_event *event)
{
	event->qp = e->element.qp->qp_context;
	switch (e->event_type) {
	case IBV_EVENT_QP_FATAL:
		event->type = BB_EVENT_QP_FATAL;
		return true;
	case IBV_EVENT_QP_REQ_ERR:
		event->type = BB_EVENT_QP_REQUEST;
		return true;
	case IBV_EVENT_QP_ACCESS_ERR:
		event->type = BB_EVENT_QP_ACCESS;
		return true;
	case IBV_EVENT_COMM_EST:
		event->type = BB_EVENT_QP_COMM_EST;
		return true;
	case IBV_EVENT_PATH_MIG:
		event->type = BB_EVENT_QP_PATH_MIG;
		return true;
	case IBV_EVENT_PATH_MIG_ERR:
		event->type = BB_EVENT_QP_PATH_MIG_ERR;
		return true;
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		event->type = BB_EVENT_SRQ_LAST_WQE;
		return true;
	default:
		return false;
	}
}

/* Translates an event of libibverbs. Returns false if Bluebell does not report such events. */
static bool
translate(const struct ibv_async_event *e, struct bb_event *event)
{
	memset(event, 0, sizeof(*event));
	switch (e->event_type) {
	case IBV_EVENT_CQ_ERR:
		event->type = BB_EVENT_CQ_ERROR;
		event->cq = e->element.cq->cq_context;
		return true;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		event->type = e->event_type == IBV_EVENT_SRQ_ERR ? BB_EVENT_SRQ_ERROR
								 : BB_EVENT_SRQ_LIMIT;
		event->srq = e->element.srq->srq_context;
		return true;
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_LID_CHANGE:
	case IBV_EVENT_PKEY_CHANGE:
	case IBV_EVENT_GID_CHANGE:
		event->type = e->event_type == IBV_EVENT_PORT_ACTIVE ? BB_EVENT_PORT_ACTIVE
			      : e->event_type == IBV_EVENT_PORT_ERR  ? BB_EVENT_PORT_DOWN
								     : BB_EVENT_PORT_CHANGE;
		event->port = (uint32_t)e->element.port_num;
		return true;
	case IBV_EVENT_DEVICE_FATAL:
		event->type = BB_EVENT_DEV_FATAL;
		return true;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return of_qp(e, event);
	default:
		return false;
	}
}

int
verbs_event_get(struct bb_dev *dev, struct bb_event *event)
{
	struct verbs_dev *d = verbs_dev_of(dev);
	struct ibv_async_event e;
	struct bb_event ev;
	unsigned int i;

	for (i = 0; i < MAX_DROPS; i++) {
		bool known;

		errno = 0;
		if (ibv_get_async_event(d->ctx, &e) != 0) {
			if (errno == EAGAIN || errno == EINTR)
				return -EAGAIN;
			BB_LOG(ERR, "%s: cannot read asynchronous events: %s", dev->name,
			       strerror(errno));
			return bb_ibv_errno();
		}
		known = translate(&e, &ev);
		ibv_ack_async_event(&e);
		if (e.event_type == IBV_EVENT_DEVICE_FATAL)
			__atomic_store_n(&d->gone, true, __ATOMIC_RELAXED);
		if (!known)
			continue;
		*event = ev;
		return 0;
	}
	return -EAGAIN;
}
