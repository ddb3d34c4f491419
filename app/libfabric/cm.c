/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Connections of endpoints: connect, accept, shut down, and handle their events. */
#include <string.h>

#include "fab.h"

static struct fab_ep *
ep_of(struct fid_ep *fid)
{
	return container_of(fid, struct fab_ep, fid);
}

static void
param_init(struct bb_conn_param *param, const struct fab_ep *ep, struct fab_cm_room *room,
	   const void *data, size_t len)
{
	bb_conn_param_init(param);
	param->private_data = fab_cm_pack(ep->dev, room, data, &len);
	param->private_len = (uint32_t)len;
	param->access = BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_READ |
			(ep->dev->attr.atomics ? BB_ACCESS_REMOTE_ATOMIC : 0u);
}

static int
ep_connect(struct fid_ep *fid, const void *addr, const void *data, size_t len)
{
	struct fab_ep *ep = ep_of(fid);
	struct bb_conn_param param;
	struct fab_cm_room room;
	int ret = -FI_EISCONN;

	if (addr == NULL && ep->info->dest_addr == NULL) {
		FAB_WARN(EP_CTRL, "fi_connect() needs an address\n");
		return -FI_EINVAL;
	}
	if (fab_cm_check(ep->dev, "fi_connect()", len) != 0)
		return -FI_EINVAL;
	if (ep->eq == NULL)
		return -FI_ENOEQ;
	fab_lock(ep->dev);
	if (ep->conn != NULL)
		goto unlock;
	ret = fab_ep_enable(ep);
	if (ret == 0 && addr != NULL)
		ret = fab_peer_set(ep->info, addr); /* for fi_getpeer() */
	if (ret != 0)
		goto unlock;
	param_init(&param, ep, &room, data, len);
	ret = bb_conn_connect(ep->dev->cm, ep->info->dest_addr, ep->qp, &param, &ep->conn);
	if (ret == 0) {
		ep->connecting = true;
		bb_conn_user_set(ep->conn, &ep->fid.fid);
	}
unlock:
	fab_unlock(ep->dev);
	return ret;
}

static int
ep_accept(struct fid_ep *fid, const void *data, size_t len)
{
	struct fab_ep *ep = ep_of(fid);
	struct bb_conn_param param;
	struct fab_cm_room room;
	int ret = -FI_EINVAL;

	if (fab_cm_check(ep->dev, "fi_accept()", len) != 0)
		return -FI_EINVAL;
	if (ep->eq == NULL)
		return -FI_ENOEQ;
	fab_lock(ep->dev);
	if (ep->conn == NULL) {
		FAB_WARN(EP_CTRL,
			 "fi_accept() needs an endpoint from the fi_info of an FI_CONNREQ event\n");
		goto unlock;
	}
	ret = fab_ep_enable(ep);
	if (ret != 0)
		goto unlock;
	param_init(&param, ep, &room, data, len);
	ret = bb_conn_accept(ep->conn, ep->qp, &param);
	if (ret == 0)
		fab_connreq_forget(ep->request);
unlock:
	fab_unlock(ep->dev);
	return ret;
}

static int
ep_shutdown(struct fid_ep *fid, uint64_t flags)
{
	struct fab_ep *ep = ep_of(fid);
	int ret = -FI_ENOTCONN;

	if (flags != 0)
		return -FI_EBADFLAGS;
	fab_lock(ep->dev);
	if (ep->conn != NULL)
		ret = bb_conn_disconnect(ep->conn, NULL, 0);
	fab_unlock(ep->dev);
	return ret;
}

void
fab_ep_broken(struct fab_ep *ep)
{
	if (ep->state == FAB_NEW)
		ep->state = FAB_BROKEN;
	if (ep->state != FAB_CONNECTED)
		return;
	ep->state = FAB_ENDED;
	fab_eq_add(ep->eq, FI_SHUTDOWN, 0, &ep->fid.fid, NULL, NULL, 0);
}

/* Reports that no connection was established. @data: private data of a rejection. */
static void
fail(struct fab_ep *ep, int err, const void *data, size_t len)
{
	ep->state = FAB_ENDED;
	fab_eq_add(ep->eq, 0, err, &ep->fid.fid, NULL, data, len);
}

void
fab_ep_event(struct fab_ep *ep, const struct bb_cm_event *ev)
{
	const bool broken = ep->state == FAB_BROKEN;
	const void *data;
	size_t len;

	/* The peer has gone before fi_accept(), which fails then. */
	if (ep->eq == NULL || ep->request != NULL)
		return;
	data = fab_cm_unpack(ep->dev, ev, &len);
	switch (ev->type) {
	case BB_CM_ESTABLISHED:
		ep->state = FAB_CONNECTED;
		/*
		 * Only the connecting side gets private data: the data that the peer gave to
		 * fi_accept().
		 */
		fab_eq_add(ep->eq, FI_CONNECTED, 0, &ep->fid.fid, NULL, data,
			   ep->connecting ? len : 0);
		if (broken)
			fab_ep_broken(ep);
		break;
	case BB_CM_REJECTED:
		fail(ep, FI_ECONNREFUSED, data, len);
		break;
	case BB_CM_DISCONNECTED:
		if (ep->state == FAB_CONNECTED || ep->state == FAB_ENDED) {
			fab_ep_broken(ep);
			break;
		}
		/* fall through */
	case BB_CM_FAILED:
		FAB_WARN(EP_CTRL, "connection failed: %s\n", ev->why);
		fail(ep, ev->status != 0 ? -ev->status : FI_ECONNABORTED, NULL, 0);
		break;
	default:
		break;
	}
}

static int
copy_addr(const void *from, size_t from_len, void *addr, size_t *len)
{
	const size_t room = *len;

	if (from == NULL)
		return -FI_EADDRNOTAVAIL;
	*len = from_len;
	memcpy(addr, from, room < from_len ? room : from_len);
	return room < from_len ? -FI_ETOOSMALL : 0;
}

static int
ep_getname(fid_t fid, void *addr, size_t *len)
{
	const struct fi_info *info = container_of(fid, struct fab_ep, fid.fid)->info;

	return copy_addr(info->src_addr, info->src_addrlen, addr, len);
}

static int
ep_getpeer(struct fid_ep *fid, void *addr, size_t *len)
{
	const struct fi_info *info = ep_of(fid)->info;

	return copy_addr(info->dest_addr, info->dest_addrlen, addr, len);
}

static int
no_setname(fid_t fid, void *addr, size_t len)
{
	(void)fid, (void)addr, (void)len;
	return -FI_ENOSYS;
}

static int
no_listen(struct fid_pep *pep)
{
	(void)pep;
	return -FI_ENOSYS;
}

static int
no_reject(struct fid_pep *pep, fid_t handle, const void *param, size_t len)
{
	(void)pep, (void)handle, (void)param, (void)len;
	return -FI_ENOSYS;
}

struct fi_ops_cm fab_ep_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = no_setname,
	.getname = ep_getname,
	.getpeer = ep_getpeer,
	.connect = ep_connect,
	.listen = no_listen,
	.accept = ep_accept,
	.reject = no_reject,
	.shutdown = ep_shutdown,
};
