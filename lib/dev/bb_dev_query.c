/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Queries of a device: capabilities, ports, GIDs, events, statistics. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bb_dev_priv.h"

int
bb_dev_query_v(struct bb_dev *dev, struct bb_dev_attr *attr)
{
	if (dev == NULL || attr == NULL)
		return -EINVAL;
	return bb_out(attr, &dev->attr, sizeof(dev->attr));
}

static int
port_check(const struct bb_dev *dev, uint32_t port)
{
	if (port >= 1 && port <= dev->attr.ports)
		return bb_process_owns(dev);
	BB_LOG(ERR, "%s: invalid port %u: give 1 to %u", dev->name, port, dev->attr.ports);
	return -EINVAL;
}

int
bb_port_query_v(struct bb_dev *dev, uint32_t port, struct bb_port_attr *attr)
{
	struct bb_port_attr tmp = {0};
	int ret;

	if (dev == NULL || attr == NULL)
		return -EINVAL;
	ret = port_check(dev, port);
	if (ret != 0)
		return ret;
	pthread_mutex_lock(&dev->lock);
	ret = dev->drv->port_query(dev, port, &tmp);
	pthread_mutex_unlock(&dev->lock);
	return ret != 0 ? ret : bb_out(attr, &tmp, sizeof(tmp));
}

int
bb_gid_query_v(struct bb_dev *dev, uint32_t port, uint32_t index, struct bb_gid *gid)
{
	struct bb_gid tmp = {0};
	int ret;

	if (dev == NULL || gid == NULL)
		return -EINVAL;
	ret = port_check(dev, port);
	if (ret != 0)
		return ret;
	pthread_mutex_lock(&dev->lock);
	ret = dev->drv->gid_query(dev, port, index, &tmp);
	pthread_mutex_unlock(&dev->lock);
	return ret != 0 ? ret : bb_out(gid, &tmp, sizeof(tmp));
}

int
bb_pkey_query(struct bb_dev *dev, uint32_t port, uint32_t index, uint16_t *pkey)
{
	struct bb_port_attr attr;
	int ret;

	if (pkey == NULL)
		return -EINVAL;
	ret = bb_port_query(dev, port, &attr);
	if (ret != 0)
		return ret;
	if (index >= attr.pkeys) {
		BB_LOG(ERR,
		       "%s: P_Key index %u is out of range: the table of port %u has %u "
		       "entries",
		       dev->name, index, port, attr.pkeys);
		return -EINVAL;
	}
	pthread_mutex_lock(&dev->lock);
	ret = dev->drv->pkey_query(dev, port, index, pkey);
	pthread_mutex_unlock(&dev->lock);
	return ret;
}

/*
 * Handles the event of a QP's error. The event may be older than a reset of the QP, so the device
 * is asked whether the QP is in ERR now. A QP of iWARP is never reset, and not every device of
 * iWARP knows the state.
 */
static void
qp_event(struct bb_qp *qp)
{
	struct bb_dev *dev = qp->ctrl->pd->dev;
	struct bb_qp_attr now = qp->ctrl->attr;

	now.state = BB_QP_ERR;
	if (dev->iwarp || dev->drv->qp_query(qp, &now) != 0 || now.state == BB_QP_ERR)
		bb_qp_failed(qp);
}

int
bb_event_get_v(struct bb_dev *dev, struct bb_event *event)
{
	struct bb_event ev = {0};
	int ret;

	if (dev == NULL || event == NULL)
		return -EINVAL;
	ret = bb_process_owns(dev);
	if (ret != 0)
		return ret;
	pthread_mutex_lock(&dev->lock);
	ret = dev->drv->event_get(dev, &ev);
	if (ret == 0) {
		switch (ev.type) {
		case BB_EVENT_QP_FATAL:
		case BB_EVENT_QP_ACCESS:
		case BB_EVENT_QP_REQUEST:
			BB_LOG(WARNING, "%s: QP 0x%x: asynchronous event: %s", dev->name,
			       ev.qp->qpn, bb_event_name(ev.type));
			qp_event(ev.qp);
			break;
		case BB_EVENT_QP_PATH_MIG:
		case BB_EVENT_QP_PATH_MIG_ERR:
		case BB_EVENT_QP_COMM_EST:
			BB_LOG(NOTICE, "%s: QP 0x%x: asynchronous event: %s", dev->name, ev.qp->qpn,
			       bb_event_name(ev.type));
			break;
		case BB_EVENT_PORT_ACTIVE:
		case BB_EVENT_PORT_DOWN:
		case BB_EVENT_PORT_CHANGE:
			BB_LOG(NOTICE, "%s: port %u: asynchronous event: %s", dev->name, ev.port,
			       bb_event_name(ev.type));
			break;
		case BB_EVENT_SRQ_LIMIT:
			BB_LOG(DEBUG, "%s: SRQ 0x%x: asynchronous event: %s", dev->name,
			       ev.srq->srqn, bb_event_name(ev.type));
			break;
		case BB_EVENT_SRQ_LAST_WQE:
			/*
			 * BB_EVENT_SRQ_LAST_WQE is raised only for a QP that has an SRQ, so
			 * init.srq is not NULL.
			 */
			ev.srq = ev.qp->ctrl->init.srq;
			BB_LOG(DEBUG, "%s: QP 0x%x: asynchronous event: %s", dev->name, ev.qp->qpn,
			       bb_event_name(ev.type));
			break;
		case BB_EVENT_SRQ_ERROR:
			BB_LOG(ERR, "%s: SRQ 0x%x: asynchronous event: %s", dev->name, ev.srq->srqn,
			       bb_event_name(ev.type));
			break;
		case BB_EVENT_CQ_ERROR:
		case BB_EVENT_DEV_FATAL:
			BB_LOG(ERR, "%s: asynchronous event: %s", dev->name,
			       bb_event_name(ev.type));
			break;
		}
	}
	pthread_mutex_unlock(&dev->lock);
	return ret != 0 ? ret : bb_out(event, &ev, sizeof(ev));
}

const char *
bb_event_name(enum bb_event_type type)
{
	switch (type) {
	case BB_EVENT_CQ_ERROR:
		return "CQ error";
	case BB_EVENT_QP_FATAL:
		return "QP fatal";
	case BB_EVENT_QP_ACCESS:
		return "peer's access refused";
	case BB_EVENT_QP_REQUEST:
		return "peer's request invalid";
	case BB_EVENT_PORT_CHANGE:
		return "port's addresses changed";
	case BB_EVENT_PORT_ACTIVE:
		return "port is active";
	case BB_EVENT_PORT_DOWN:
		return "port is down";
	case BB_EVENT_QP_COMM_EST:
		return "communication established";
	case BB_EVENT_QP_PATH_MIG:
		return "path migrated";
	case BB_EVENT_QP_PATH_MIG_ERR:
		return "path migration failed";
	case BB_EVENT_DEV_FATAL:
		return "device fatal";
	case BB_EVENT_SRQ_LIMIT:
		return "SRQ limit reached";
	case BB_EVENT_SRQ_LAST_WQE:
		return "last WQE of the SRQ taken";
	case BB_EVENT_SRQ_ERROR:
		return "SRQ error";
	}
	return "?";
}

void
bb_dev_progress(struct bb_dev *dev)
{
	/*
	 * The call takes no lock, because it belongs to the data path and uses only the UAR of the
	 * calling lcore.
	 */
	dev->drv->progress(dev);
}

int
bb_dev_clock(struct bb_dev *dev, uint64_t *hz, uint64_t *now)
{
	uint64_t t = 0;
	int ret = -ENOTSUP;

	if (dev == NULL)
		return -EINVAL;
	if (dev->attr.clock_hz != 0)
		ret = now != NULL ? dev->drv->clock(dev, &t) : 0;
	if (ret == -ENOTSUP)
		BB_LOG(ERR, "%s: the device has no clock that can be read", dev->name);
	if (ret != 0)
		return ret;
	if (hz != NULL)
		*hz = dev->attr.clock_hz;
	if (now != NULL)
		*now = t;
	return 0;
}

int
bb_dev_stats_v(struct bb_dev *dev, struct bb_dev_stats *stats)
{
	struct bb_dev_stats tmp = {0};
	int ret;

	if (dev == NULL || stats == NULL)
		return -EINVAL;
	ret = bb_process_owns(dev);
	if (ret != 0)
		return ret;
	pthread_mutex_lock(&dev->lock);
	ret = dev->drv->stats(dev, &tmp);
	pthread_mutex_unlock(&dev->lock);
	return ret != 0 ? ret : bb_out(stats, &tmp, sizeof(tmp));
}

int
bb_dev_drops_v(struct bb_dev *dev, struct bb_dev_drop *drops, unsigned int n)
{
	struct bb_dev_drop *all = NULL;
	unsigned int i;
	int ret, err;

	if (dev == NULL || (drops == NULL && n != 0))
		return -EINVAL;
	ret = bb_process_owns(dev);
	if (ret != 0)
		return ret;
	pthread_mutex_lock(&dev->lock);
	ret = dev->drv->drops(dev, NULL, 0);
	n = ret > 0 ? RTE_MIN(n, (unsigned int)ret) : 0;
	if (n != 0) {
		all = bb_alloc(dev, "the list of drops", n * sizeof(*all));
		ret = all != NULL ? dev->drv->drops(dev, all, n) : -ENOMEM;
	}
	pthread_mutex_unlock(&dev->lock);
	for (i = 0; ret >= 0 && i < n; i++) {
		err = bb_out_at(drops, i, &all[i], sizeof(all[i]));
		ret = err != 0 ? err : ret;
	}
	free(all);
	return ret;
}
