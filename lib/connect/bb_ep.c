/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Endpoints like those of rdma_create_ep(), built on Bluebell's public functions. */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "bb_core.h"
#include "bb_ep.h"
#include "bb_time_limit.h"

#define WAITING 64u /* maximum pending connection requests of a listener */

struct recv {
	void *context;
	uint32_t nsge;
	struct bb_sge *sge;
};

struct bb_ep_ctrl {
	struct bb_ep_attr attr;
	struct sockaddr_storage addr;
	/* listening endpoint that created this endpoint and owns its CM; NULL if none */
	struct bb_ep *from;
	struct bb_listener *listener;
	struct bb_conn *waiting[WAITING];
	struct bb_cm_event waiting_ev[WAITING];
	uint32_t nwaiting;
	uint32_t children;
	bool own_pd, own_send_cq, own_recv_cq, up, over;
	bool ending;                /* true after bb_ep_disconnect() */
	struct bb_time_limit flush; /* how long the device may flush its queues; valid once over */
	/* receives stored before the connection is established */
	struct recv *recvs;
	uint32_t nrecvs;
	int stored_err; /* first error of posting the receives in recvs */
};

void
bb_ep_attr_init(struct bb_ep_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	attr->transport = BB_CM_TCP;
	attr->timeout_ms = 10000;
	bb_qp_init_attr_init(&attr->qp);
}

/* ---- Creation, destruction */

static int
make_cq(struct bb_dev *dev, uint32_t depth, struct bb_cq **cq)
{
	struct bb_cq_attr attr;

	bb_cq_attr_init(&attr);
	attr.depth = RTE_MAX(depth, 1u);
	return bb_cq_create(dev, &attr, cq);
}

/* Creates PD, CQs and QP. On a failure, @ep holds the objects created before the failure. */
static int
make_qp(struct bb_ep *ep)
{
	struct bb_ep_ctrl *c = ep->ctrl;
	struct bb_qp_init_attr *init = &c->attr.qp;
	int ret = 0;

	if (c->attr.pd == NULL) {
		ret = bb_pd_alloc(ep->dev, &c->attr.pd);
		c->own_pd = ret == 0;
	}
	ep->pd = c->attr.pd;
	if (ret == 0 && init->send_cq == NULL) {
		ret = make_cq(ep->dev, init->sq_depth, &init->send_cq);
		c->own_send_cq = ret == 0;
	}
	ep->send_cq = init->send_cq;
	if (ret == 0 && init->recv_cq == NULL) {
		ret = make_cq(ep->dev,
			      init->srq != NULL ? init->srq->ctrl->attr.depth : init->rq_depth,
			      &init->recv_cq);
		c->own_recv_cq = ret == 0;
	}
	ep->recv_cq = init->recv_cq;
	return ret != 0 ? ret : bb_qp_create(ep->pd, init, &ep->qp);
}

static struct bb_ep *
ep_new(struct bb_dev *dev, const struct bb_ep_attr *attr)
{
	struct bb_ep *ep = calloc(1, sizeof(*ep));

	if (ep == NULL)
		return NULL;
	ep->ctrl = calloc(1, sizeof(*ep->ctrl));
	if (ep->ctrl == NULL) {
		free(ep);
		return NULL;
	}
	ep->dev = dev;
	ep->ctrl->attr = *attr;
	return ep;
}

static void
drop_recvs(struct bb_ep_ctrl *c)
{
	uint32_t i;

	for (i = 0; i < c->nrecvs; i++)
		free(c->recvs[i].sge);
	free(c->recvs);
	c->recvs = NULL;
	c->nrecvs = 0;
}

/* Returns -EBUSY if the application has objects that use objects of the endpoint. */
static int
check_unused(const struct bb_ep *ep)
{
	const struct bb_pd *pd = ep->ctrl->own_pd ? ep->pd : NULL;

	if (ep->ctrl->children != 0) {
		BB_LOG(ERR, "endpoint: not destroyed: destroy its %u accepted endpoint%s first",
		       ep->ctrl->children, BB_PLURAL(ep->ctrl->children));
		return -EBUSY;
	}
	if (pd == NULL || (pd->mrs == 0 && pd->mkeys == 0 && pd->mws == 0 && pd->srqs == 0 &&
			   pd->ahs == 0 && pd->qps == (ep->qp != NULL)))
		return 0;
	BB_LOG(ERR,
	       "endpoint: not destroyed: its PD has %u MRs, %u indirect keys, %u memory windows, "
	       "%u SRQs, %u address handles and %u QPs (one is the endpoint's own): destroy the "
	       "others first",
	       pd->mrs, pd->mkeys, pd->mws, pd->srqs, pd->ahs, pd->qps);
	return -EBUSY;
}

/* Destroys a CQ that the endpoint created. Fails if other QPs complete into the CQ. */
static int
unmake_cq(struct bb_cq *cq, bool *own)
{
	int ret = *own ? bb_cq_destroy(cq) : 0;

	*own = *own && ret != 0;
	return ret;
}

int
bb_ep_destroy(struct bb_ep *ep)
{
	struct bb_ep_ctrl *c;
	int ret;

	if (ep == NULL)
		return -EINVAL;
	c = ep->ctrl;
	ret = check_unused(ep);
	if (ret != 0)
		return ret;
	while (c->nwaiting != 0)
		bb_conn_destroy(c->waiting[--c->nwaiting]);
	bb_conn_destroy(ep->conn);
	ep->conn = NULL;
	ret = ep->qp != NULL ? bb_qp_destroy(ep->qp) : 0;
	if (ret != 0)
		return ret;
	ep->qp = NULL;
	ret = unmake_cq(ep->send_cq, &c->own_send_cq);
	if (ret == 0)
		ret = unmake_cq(ep->recv_cq, &c->own_recv_cq);
	if (ret != 0)
		return ret;
	if (c->own_pd)
		(void)bb_pd_free(ep->pd);
	if (c->listener != NULL)
		(void)bb_listener_destroy(c->listener);
	if (c->from != NULL)
		c->from->ctrl->children--;
	else if (ep->cm != NULL)
		(void)bb_cm_destroy(ep->cm);
	drop_recvs(c);
	free(c);
	free(ep);
	return 0;
}

int
bb_ep_create(struct bb_dev *dev, const char *addr, bool passive, const struct bb_ep_attr *attr,
	     struct bb_ep **out)
{
	struct bb_cm_attr cm;
	struct bb_ep *ep;
	int ret;

	if (dev == NULL || addr == NULL || attr == NULL || out == NULL || attr->timeout_ms == 0)
		return -EINVAL;
	ret = bb_attr_size_check(attr->size, sizeof(*attr), "bb_ep_attr_init");
	if (ret != 0)
		return ret;
	ep = ep_new(dev, attr);
	if (ep == NULL)
		return -ENOMEM;
	ret = bb_cm_addr(addr, &ep->ctrl->addr);
	if (ret != 0)
		BB_LOG(ERR,
		       "endpoint: invalid address \"%s\": give ADDRESS:PORT or [ADDRESS]:PORT; host "
		       "names are not resolved",
		       addr);
	bb_cm_attr_init(&cm);
	cm.transport = attr->transport;
	if (ret == 0)
		ret = bb_cm_create(dev, &cm, &ep->cm);
	if (ret == 0 && passive)
		ret = bb_listener_create(ep->cm, (struct sockaddr *)&ep->ctrl->addr,
					 &ep->ctrl->listener);
	if (ret == 0 && !passive)
		ret = make_qp(ep);
	if (ret != 0) {
		(void)bb_ep_destroy(ep);
		return ret;
	}
	*out = ep;
	return 0;
}

uint16_t
bb_ep_port(const struct bb_ep *ep)
{
	return ep->ctrl->listener != NULL ? bb_listener_port(ep->ctrl->listener) : 0;
}

/* ---- Events */

static void
request_arrived(struct bb_ep *listener, const struct bb_cm_event *ev)
{
	struct bb_ep_ctrl *c = listener->ctrl;

	if (c->nwaiting == WAITING) {
		(void)bb_conn_reject(ev->conn, NULL, 0);
		bb_conn_destroy(ev->conn);
		return;
	}
	c->waiting[c->nwaiting] = ev->conn;
	c->waiting_ev[c->nwaiting++] = *ev;
}

/* Removes a pending connection request whose connection has ended. */
static void
drop_request(struct bb_ep *listener, struct bb_conn *conn)
{
	struct bb_ep_ctrl *c = listener->ctrl;
	uint32_t i;

	for (i = 0; i < c->nwaiting; i++)
		if (c->waiting[i] == conn)
			break;
	if (i == c->nwaiting)
		return;
	c->nwaiting--;
	memmove(&c->waiting[i], &c->waiting[i + 1], (c->nwaiting - i) * sizeof(c->waiting[0]));
	memmove(&c->waiting_ev[i], &c->waiting_ev[i + 1],
		(c->nwaiting - i) * sizeof(c->waiting_ev[0]));
	bb_conn_destroy(conn);
}

/* Posts the receives that were stored while the connection was not established. */
static int
post_stored(struct bb_ep *ep)
{
	struct bb_ep_ctrl *c = ep->ctrl;
	uint32_t i;
	int ret = 0;

	if (c->nrecvs == 0)
		return 0;
	for (i = 0; i < c->nrecvs && ret == 0; i++)
		ret = bb_post_recv(ep->qp, (uintptr_t)c->recvs[i].context, c->recvs[i].sge,
				   c->recvs[i].nsge);
	bb_qp_ring_recv(ep->qp);
	drop_recvs(c);
	return ret;
}

/* Polls the CM that @any shares with other endpoints, and handles the events of all of them. */
static void
poll_cm(struct bb_ep *any)
{
	struct bb_ep *root = any->ctrl->from != NULL ? any->ctrl->from : any, *ep;
	struct bb_cm_event ev;

	bb_dev_progress(any->dev);
	while (bb_cm_poll(root->cm, &ev, 1) == 1) {
		ep = bb_conn_user(ev.conn);
		if (ev.type == BB_CM_CONNECT_REQUEST) {
			request_arrived(root, &ev);
			continue;
		}
		if (ep == NULL) {
			drop_request(root, ev.conn);
			continue;
		}
		ep->event = ev;
		ep->ctrl->up = ev.type == BB_CM_ESTABLISHED;
		ep->ctrl->over = !ep->ctrl->up;
		if (ep->ctrl->over)
			bb_time_limit_start(&ep->ctrl->flush, BB_FLUSH_MS);
		if (ev.type == BB_CM_FAILED || ev.type == BB_CM_REJECTED)
			BB_LOG(ERR, "endpoint: connection %s: %s", bb_cm_event_name(ev.type),
			       ev.why);
		if (ep->ctrl->up)
			ep->ctrl->stored_err = post_stored(ep);
	}
}

static uint64_t
deadline(const struct bb_ep *ep)
{
	return rte_get_tsc_cycles() + rte_get_tsc_hz() / 1000 * ep->ctrl->attr.timeout_ms;
}

static bool
expired(uint64_t end)
{
	return (int64_t)(rte_get_tsc_cycles() - end) >= 0;
}

/* ---- Connect and disconnect */

static int
wait_up(struct bb_ep *ep)
{
	const uint64_t end = deadline(ep);

	while (!ep->ctrl->up && !ep->ctrl->over && !expired(end))
		poll_cm(ep);
	if (ep->ctrl->up)
		return 0;
	if (!ep->ctrl->over) {
		BB_LOG(ERR, "endpoint: no connection after %u ms, its timeout_ms",
		       ep->ctrl->attr.timeout_ms);
		return -ETIMEDOUT;
	}
	return ep->event.status != 0 ? ep->event.status : -ENOTCONN;
}

/*
 * If *param is NULL, fills *own with the defaults and sets *param to own. Refuses recovery: the
 * fates of requests come with events, and functions that wait would have to keep all of them.
 */
static int
check_param(const struct bb_ep *ep, const struct bb_conn_param **param, struct bb_conn_param *own)
{
	if (*param != NULL && (*param)->recover_ms != 0) {
		BB_LOG(ERR, "endpoint: recover_ms is not supported: use bb_conn_connect(), "
			    "bb_conn_accept() and bb_cm_poll() for a connection that recovers");
		return -ENOTSUP;
	}
	if (*param != NULL)
		return 0;
	*param = own;
	bb_conn_param_init(own);
	own->timeout_ms = ep->ctrl->attr.timeout_ms;
	own->access = BB_ACCESS_REMOTE_WRITE;
	if (ep->ctrl->attr.qp.type == BB_QPT_RC)
		own->access |= BB_ACCESS_REMOTE_READ;
	if (ep->ctrl->attr.qp.type == BB_QPT_RC && ep->dev->attr.atomics)
		own->access |= BB_ACCESS_REMOTE_ATOMIC;
	return 0;
}

/*
 * Posts the stored receives before the peer can send. iWARP needs this, because it has no RNR NAK:
 * a SEND without a receive ends the connection (RFC 5041: invalid MSN, no buffer available).
 */
static int
post_early(struct bb_ep *ep, const struct bb_conn_param *param)
{
	struct bb_qp_attr attr;
	int ret;

	if (!ep->dev->iwarp)
		return 0;
	ret = bb_qp_unowned(ep->qp, "endpoint");
	if (ret != 0)
		return ret;
	bb_qp_attr_init(&attr);
	attr.state = BB_QP_INIT;
	attr.access = param->access;
	attr.path.port = param->path.port;
	ret = bb_qp_modify(ep->qp, &attr,
			   BB_QP_STATE | BB_QP_PKEY_INDEX | BB_QP_PORT | BB_QP_ACCESS);
	return ret != 0 ? ret : post_stored(ep);
}

int
bb_ep_connect(struct bb_ep *ep, const struct bb_conn_param *param)
{
	struct bb_conn_param own;
	int ret;

	if (ep == NULL || ep->qp == NULL || ep->conn != NULL)
		return -EINVAL;
	ret = check_param(ep, &param, &own);
	if (ret == 0)
		ret = post_early(ep, param);
	if (ret == 0)
		ret = bb_conn_connect(ep->cm, (struct sockaddr *)&ep->ctrl->addr, ep->qp, param,
				      &ep->conn);
	if (ret != 0)
		return ret;
	bb_conn_user_set(ep->conn, ep);
	ret = wait_up(ep);
	return ret != 0 ? ret : ep->ctrl->stored_err;
}

int
bb_ep_get_request(struct bb_ep *listener, struct bb_ep **out)
{
	struct bb_ep_ctrl *l;
	struct bb_ep *ep;
	uint64_t end;
	int ret;

	if (listener == NULL || out == NULL || listener->ctrl->listener == NULL)
		return -EINVAL;
	l = listener->ctrl;
	for (end = deadline(listener); l->nwaiting == 0; poll_cm(listener))
		if (expired(end))
			return -ETIMEDOUT;
	ep = ep_new(listener->dev, &l->attr);
	if (ep == NULL)
		return -ENOMEM;
	ep->ctrl->from = listener;
	l->children++;
	ep->cm = listener->cm;
	ret = make_qp(ep);
	if (ret != 0) {
		(void)bb_ep_destroy(ep);
		return ret;
	}
	ep->conn = l->waiting[0];
	ep->event = l->waiting_ev[0];
	l->nwaiting--;
	memmove(&l->waiting[0], &l->waiting[1], l->nwaiting * sizeof(l->waiting[0]));
	memmove(&l->waiting_ev[0], &l->waiting_ev[1], l->nwaiting * sizeof(l->waiting_ev[0]));
	bb_conn_user_set(ep->conn, ep);
	*out = ep;
	return 0;
}

int
bb_ep_accept(struct bb_ep *ep, const struct bb_conn_param *param)
{
	struct bb_conn_param own;
	uint64_t end;
	int ret;

	if (ep == NULL || ep->conn == NULL || ep->ctrl->from == NULL)
		return -EINVAL;
	ret = check_param(ep, &param, &own);
	if (ret == 0)
		ret = post_early(ep, param);
	/* While the MAC of the peer's GID is being resolved, poll and accept again. */
	end = deadline(ep);
	if (ret == 0)
		ret = bb_conn_accept(ep->conn, ep->qp, param);
	while (ret == -EAGAIN && !expired(end)) {
		poll_cm(ep);
		ret = bb_conn_accept(ep->conn, ep->qp, param);
	}
	if (ret == 0)
		ret = post_stored(ep);
	return ret != 0 ? ret : wait_up(ep);
}

int
bb_ep_reject(struct bb_ep *ep, const void *private_data, uint32_t private_len)
{
	if (ep == NULL || ep->conn == NULL)
		return -EINVAL;
	return bb_conn_reject(ep->conn, private_data, private_len);
}

int
bb_ep_disconnect(struct bb_ep *ep)
{
	uint64_t end;
	int ret;

	if (ep == NULL || ep->conn == NULL)
		return -EINVAL;
	ret = bb_conn_disconnect(ep->conn, NULL, 0);
	if (ret == 0)
		ep->ctrl->ending = true;
	else if (ret != -ENOTCONN)
		return ret;
	/* If an earlier call has disconnected and timed out, wait again. */
	if (!ep->ctrl->ending)
		return 0;
	for (end = deadline(ep); !ep->ctrl->over; poll_cm(ep))
		if (expired(end))
			return -ETIMEDOUT;
	return 0;
}

bool
bb_ep_connected(struct bb_ep *ep)
{
	poll_cm(ep);
	return ep->ctrl->up;
}

/* ---- Posts and completions */

int
bb_ep_post_recvv(struct bb_ep *ep, void *context, const struct bb_sge *sge, uint32_t nsge)
{
	struct bb_ep_ctrl *c = ep->ctrl;
	struct recv *more;
	int ret;

	/* Post the stored receives first, to keep the order. */
	if (ep->qp->state != BB_QP_RESET) {
		ret = post_stored(ep);
		if (ret == 0)
			ret = bb_post_recv(ep->qp, (uintptr_t)context, sge, nsge);
		if (ret == 0)
			bb_qp_ring_recv(ep->qp);
		return ret;
	}
	if (nsge == 0 || nsge > c->attr.qp.max_recv_sge)
		return -EINVAL;
	if (c->nrecvs >= c->attr.qp.rq_depth)
		return -EAGAIN;
	more = realloc(c->recvs, (c->nrecvs + 1) * sizeof(*more));
	if (more == NULL)
		return -ENOMEM;
	c->recvs = more;
	more[c->nrecvs].context = context;
	more[c->nrecvs].nsge = nsge;
	more[c->nrecvs].sge = malloc(nsge * sizeof(*sge));
	if (more[c->nrecvs].sge == NULL)
		return -ENOMEM;
	memcpy(more[c->nrecvs++].sge, sge, nsge * sizeof(*sge));
	return 0;
}

/*
 * Returns true if the device has yet to flush sends, or receives of the QP's own queue. May post a
 * NOP, whose completion follows those of all sends. Gives up a device that does not flush what was
 * posted after the end, such as siw, after BB_FLUSH_MS.
 */
static bool
is_flushing(struct bb_ep *ep, bool recv)
{
	struct bb_qp *qp = ep->qp;

	if (qp->state != BB_QP_ERR || bb_time_limit_reached(&ep->ctrl->flush))
		return false;
	return recv ? qp->rq.ci != qp->rq.rung : bb_qp_drain(qp) == -EAGAIN;
}

static int
get_comp(struct bb_ep *ep, bool recv, struct bb_wc *wc)
{
	const uint64_t end = deadline(ep);
	bool over;

	for (;;) {
		/* Asked before the poll, because the last completion may come in between. */
		over = ep->ctrl->over && !is_flushing(ep, recv);
		if (bb_cq_poll(recv ? ep->recv_cq : ep->send_cq, wc, 1) == 1)
			return 0;
		if (over)
			return -ENOTCONN;
		if (expired(end))
			return -ETIMEDOUT;
		poll_cm(ep);
	}
}

int
bb_ep_get_send_comp(struct bb_ep *ep, struct bb_wc *wc)
{
	return get_comp(ep, false, wc);
}

int
bb_ep_get_recv_comp(struct bb_ep *ep, struct bb_wc *wc)
{
	return get_comp(ep, true, wc);
}
