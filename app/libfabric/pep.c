/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Passive endpoints: listen, and report connection requests. */
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "fab.h"

void
fab_connreq_forget(struct fab_connreq *r)
{
	if (r == NULL)
		return;
	if (r->ep != NULL)
		r->ep->request = NULL;
	LIST_REMOVE(r, next);
	free(r);
}

void
fab_connreq_free(struct fab_connreq *r)
{
	if (r->ep != NULL)
		r->ep->conn = NULL;
	bb_conn_destroy(r->conn);
	fab_connreq_forget(r);
}

/* Finds a request. Compares addresses only, because the application may pass a stale handle. */
static struct fab_connreq *
find(struct fab_dev *d, fid_t handle)
{
	struct fab_connreq *r;

	LIST_FOREACH(r, &d->requests, next)
		if (&r->fid == handle)
			break;
	return r;
}

int
fab_connreq_take(struct fab_ep *ep, fid_t handle)
{
	struct fab_connreq *r;
	struct fab_pep *p;

	if (handle == NULL)
		return 0;
	LIST_FOREACH(p, &ep->dev->peps, next)
		if (&p->fid.fid == handle)
			return 0;
	r = find(ep->dev, handle);
	if (r == NULL || r->ep != NULL) {
		FAB_WARN(EP_CTRL,
			 "fi_endpoint(): the handle of the fi_info is no pending connection "
			 "request: it %s\n",
			 r != NULL ? "has an endpoint already"
				   : "is accepted, rejected or invalid");
		return -FI_EINVAL;
	}
	r->ep = ep;
	ep->request = r;
	ep->conn = r->conn;
	bb_conn_user_set(ep->conn, &ep->fid.fid);
	return 0;
}

/* Writes the peer's address, which bb_conn_query() gives as text, to the entry of FI_CONNREQ. */
static int
set_peer(struct fi_info *info, const struct bb_conn *conn)
{
	struct sockaddr_storage addr;
	struct bb_conn_info about;

	bb_conn_query(conn, &about);
	return bb_cm_addr(about.peer, &addr) == 0 ? fab_peer_set(info, &addr) : 0;
}

/* Reports a request to the event queue of its passive endpoint. */
static int
report(struct fab_pep *p, const struct bb_cm_event *ev)
{
	struct fab_connreq *r = calloc(1, sizeof(*r));
	struct fi_info *info = fi_dupinfo(p->info);
	const void *data;
	size_t len;

	if (r == NULL || info == NULL || set_peer(info, ev->conn) != 0) {
		free(r);
		fi_freeinfo(info);
		return -FI_ENOMEM;
	}
	r->fid = (struct fid){FI_CLASS_CONNREQ, p->fid.fid.context, NULL};
	r->conn = ev->conn;
	r->pep = p;
	bb_conn_user_set(ev->conn, &r->fid);
	LIST_INSERT_HEAD(&p->fabric->dev->requests, r, next);
	info->handle = &r->fid;
	data = fab_cm_unpack(p->fabric->dev, ev, &len);
	fab_eq_add(p->eq, FI_CONNREQ, 0, &p->fid.fid, info, data, len);
	return 0;
}

void
fab_pep_event(struct fab_dev *dev, const struct bb_cm_event *ev)
{
	struct fab_pep *p;

	LIST_FOREACH(p, &dev->peps, next)
		if (p->listener == ev->listener)
			break;
	if (p != NULL && p->listening && report(p, ev) == 0)
		return;
	bb_conn_reject(ev->conn, NULL, 0);
	bb_conn_destroy(ev->conn);
}

static int
listen_at(struct fab_pep *p, const struct sockaddr *addr)
{
	int ret = fab_dev_check(p->fabric->dev);

	if (ret != 0)
		return ret;
	if (p->listener != NULL)
		bb_listener_destroy(p->listener);
	p->listener = NULL;
	ret = bb_listener_create(p->fabric->dev->cm, addr, &p->listener);
	if (ret != 0)
		return ret;
	/* sin_port and sin6_port have the same offset. */
	((struct sockaddr_in *)p->info->src_addr)->sin_port = htons(bb_listener_port(p->listener));
	return 0;
}

static int
pep_setname(fid_t fid, void *addr, size_t len)
{
	struct fab_pep *p = container_of(fid, struct fab_pep, fid.fid);
	void *copy;
	int ret;

	if (p->listening)
		return -FI_EBUSY;
	if (len < sizeof(struct sockaddr_in) || (((struct sockaddr *)addr)->sa_family == AF_INET6 &&
						 len < sizeof(struct sockaddr_in6))) {
		FAB_WARN(EP_CTRL,
			 "%zu bytes are no address: use struct sockaddr_in or sockaddr_in6\n", len);
		return -FI_EINVAL;
	}
	copy = malloc(len);
	if (copy == NULL)
		return -FI_ENOMEM;
	memcpy(copy, addr, len);
	free(p->info->src_addr);
	p->info->src_addr = copy;
	p->info->src_addrlen = len;
	fab_lock(p->fabric->dev);
	ret = listen_at(p, copy);
	fab_unlock(p->fabric->dev);
	return ret;
}

static int
pep_getname(fid_t fid, void *addr, size_t *len)
{
	const struct fi_info *info = container_of(fid, struct fab_pep, fid.fid)->info;
	const size_t room = *len;

	*len = info->src_addrlen;
	memcpy(addr, info->src_addr, room < *len ? room : *len);
	return room < *len ? -FI_ETOOSMALL : 0;
}

static int
pep_listen(struct fid_pep *fid)
{
	struct fab_pep *p = container_of(fid, struct fab_pep, fid);

	struct fab_dev *dev = p->fabric->dev;
	int ret = 0;

	if (p->eq == NULL)
		return -FI_ENOEQ;
	fab_lock(dev);
	/* The last fi_setname() has failed. */
	if (p->listener == NULL && !dev->child)
		ret = listen_at(p, p->info->src_addr);
	p->listening = ret == 0;
	fab_unlock(dev);
	return ret;
}

static int
pep_reject(struct fid_pep *fid, fid_t handle, const void *param, size_t len)
{
	struct fab_dev *dev = container_of(fid, struct fab_pep, fid)->fabric->dev;
	struct fab_cm_room room;
	struct fab_connreq *r;
	int ret;

	ret = fab_dev_check(dev);
	if (ret == 0)
		ret = fab_cm_check(dev, "fi_reject()", len);
	if (ret != 0)
		return ret;
	param = fab_cm_pack(dev, &room, param, &len);
	fab_lock(dev);
	r = find(dev, handle);
	ret = r != NULL ? bb_conn_reject(r->conn, param, (uint32_t)len) : -FI_EINVAL;
	if (r != NULL)
		fab_connreq_free(r);
	fab_unlock(dev);
	return ret;
}

static int
pep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct fab_pep *p = container_of(fid, struct fab_pep, fid.fid);

	(void)flags;
	if (bfid->fclass != FI_CLASS_EQ || p->eq != NULL)
		return -FI_EINVAL;
	p->eq = container_of(bfid, struct fab_eq, fid.fid);
	fab_lock(p->fabric->dev);
	p->eq->refs++;
	fab_unlock(p->fabric->dev);
	return 0;
}

static int
pep_close(struct fid *fid)
{
	struct fab_pep *p = container_of(fid, struct fab_pep, fid.fid);
	struct fab_dev *dev = p->fabric->dev;
	struct fab_connreq *r, *next;

	fab_lock(dev);
	for (r = LIST_FIRST(&dev->requests); r != NULL; r = next) {
		next = LIST_NEXT(r, next);
		if (r->pep != p)
			continue;
		/*
		 * If the application has read the event, it may still open an endpoint with the
		 * request.
		 */
		r->pep = NULL;
		if (fab_eq_has(p->eq, &r->fid))
			fab_connreq_free(r);
	}
	if (p->listener != NULL)
		bb_listener_destroy(p->listener);
	LIST_REMOVE(p, next);
	if (p->eq != NULL) {
		fab_eq_forget(p->eq, fid);
		p->eq->refs--;
	}
	p->fabric->refs--;
	__atomic_fetch_sub(&dev->active, 1, __ATOMIC_RELAXED);
	fab_unlock(dev);
	fi_freeinfo(p->info);
	free(p);
	return 0;
}

static struct fi_ops pep_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = pep_close,
	.bind = pep_bind,
	.control = fab_no_control,
	.ops_open = fab_no_ops_open,
};

static int
no_getpeer(struct fid_ep *ep, void *addr, size_t *len)
{
	(void)ep, (void)addr, (void)len;
	return -FI_ENOSYS;
}

static int
no_connect(struct fid_ep *ep, const void *addr, const void *param, size_t len)
{
	(void)ep, (void)addr, (void)param, (void)len;
	return -FI_ENOSYS;
}

static int
no_accept(struct fid_ep *ep, const void *param, size_t len)
{
	(void)ep, (void)param, (void)len;
	return -FI_ENOSYS;
}

static int
no_shutdown(struct fid_ep *ep, uint64_t flags)
{
	(void)ep, (void)flags;
	return -FI_ENOSYS;
}

static struct fi_ops_cm pep_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = pep_setname,
	.getname = pep_getname,
	.getpeer = no_getpeer,
	.connect = no_connect,
	.listen = pep_listen,
	.accept = no_accept,
	.reject = pep_reject,
	.shutdown = no_shutdown,
};

int
fab_passive_ep(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep, void *context)
{
	struct fab_fabric *f = container_of(fabric, struct fab_fabric, fid);
	struct sockaddr_storage any = {.ss_family = AF_INET};
	struct fab_pep *p = calloc(1, sizeof(*p));
	int ret = -FI_ENOMEM;

	if (p == NULL)
		return -FI_ENOMEM;
	p->fabric = f;
	p->info = fi_dupinfo(info);
	if (p->info == NULL)
		goto free_pep;
	if (p->info->src_addr == NULL) {
		if (info->addr_format == FI_SOCKADDR_IN6)
			any.ss_family = AF_INET6;
		p->info->src_addrlen = any.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
								 : sizeof(struct sockaddr_in);
		p->info->src_addr = malloc(sizeof(any));
		if (p->info->src_addr == NULL)
			goto free_info;
		memcpy(p->info->src_addr, &any, sizeof(any));
	}
	/* The port must be known before fi_listen(), because fi_getname() returns it. */
	fab_lock(f->dev);
	ret = listen_at(p, p->info->src_addr);
	if (ret == 0) {
		LIST_INSERT_HEAD(&f->dev->peps, p, next);
		f->refs++;
		__atomic_fetch_add(&f->dev->active, 1, __ATOMIC_RELAXED);
	}
	fab_unlock(f->dev);
	if (ret != 0)
		goto free_info;
	p->fid.fid = (struct fid){FI_CLASS_PEP, context, &pep_fi_ops};
	p->fid.ops = &fab_opt_ops;
	p->fid.cm = &pep_cm_ops;
	*pep = &p->fid;
	return 0;

free_info:
	fi_freeinfo(p->info);
free_pep:
	free(p);
	return ret;
}
