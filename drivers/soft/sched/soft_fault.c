/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Hardware faults: a link that goes down, a device that dies, a CQ or QP that fails. The option
 * "fault" injects one fault at a given request, so that tests can check how software reacts. A
 * fault differs from a seeded defect, because the device reports a fault as a card does.
 */
#include "soft_data.h"

/* Number of requests that are lost before the port comes up again. */
#define SOFT_FAULT_LOST 3

bool
soft_fault_dead(const struct soft_dev *dev)
{
	return __atomic_load_n(&dev->dead, __ATOMIC_ACQUIRE);
}

int
soft_fault_check(const struct soft_dev *dev, const char *what)
{
	if (likely(!soft_fault_dead(dev)))
		return 0;
	SOFT_LOG(ERR,
		 "%s: %s rejected: the device is in its fatal error state: destroy its objects and "
		 "close it",
		 dev->name, what);
	return -EIO;
}

/* Stops the device: it executes no further request and receives no message. */
static void
soft_fault_die(struct soft_dev *dev)
{
	SOFT_LOG(ERR,
		 "%s: the device stops for good (BB_EVENT_DEV_FATAL), as requested by the option "
		 "fault=dev_fatal",
		 dev->name);
	__atomic_store_n(&dev->port_down, true, __ATOMIC_RELEASE);
	__atomic_store_n(&dev->dead, true, __ATOMIC_RELEASE);
	soft_event_raise(dev, NULL, MLX5_CMD_EVENT_DEV_FATAL);
}

/* Fails the CQ as an overrun would. The request is still executed. */
static void
soft_fault_cq(struct soft_engine *e, struct soft_cq *cq)
{
	SOFT_LOG(ERR,
		 "%s CQ 0x%x: the device cannot write to the CQ's memory (BB_EVENT_CQ_ERROR), as "
		 "requested by the option fault=cq_error",
		 e->dev->name, cq->cqn);
	rte_ticketlock_lock(&cq->lock);
	__atomic_store_n(&cq->error, true, __ATOMIC_RELEASE);
	rte_ticketlock_unlock(&cq->lock);
	soft_event_raise(e->dev, cq->obj, BB_PRM_EVENT_CQ_ERROR);
	e->failures |= SOFT_CQ_FAILED;
	e->chores = true;
}

bool
soft_fault(struct soft_engine *e, struct soft_qp *qp)
{
	struct soft_dev *dev = e->dev;
	uint64_t n = __atomic_add_fetch(&dev->fault_requests, 1, __ATOMIC_RELAXED);
	bool now = n == dev->opts.fault_at;

	if (soft_fault_dead(dev)) {
		/* The device is dead. The QP waits without a timer, so it waits for ever. */
		qp->wait = SOFT_WAIT_ACK;
		return true;
	}
	switch (dev->opts.fault) {
	case SOFT_FAULT_PORT_DOWN:
		if (now)
			soft_dev_port_set(dev, false);
		else if (n == dev->opts.fault_at + SOFT_FAULT_LOST)
			soft_dev_port_set(dev, true);
		return false;
	case SOFT_FAULT_DEV_FATAL:
		if (!now)
			return false;
		soft_fault_die(dev);
		qp->wait = SOFT_WAIT_ACK;
		return true;
	case SOFT_FAULT_CQ_ERROR:
		if (now)
			soft_fault_cq(e, qp->scq);
		return false;
	default:
		if (!now)
			return false;
		SOFT_LOG(ERR,
			 "%s QP 0x%x: the device cannot read the QP's WQEs (BB_EVENT_QP_FATAL), as "
			 "requested by the option fault=qp_fatal",
			 dev->name, qp->qpn);
		soft_qp_fail(qp, BB_PRM_EVENT_WQ_CATAS_ERROR);
		return true;
	}
}
