/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Connections by librdmacm, with QPs that librdmacm has not created. The QP numbers are passed to
 * rdma_connect() and rdma_accept() (man rdma_connect: qp_num). This file moves the QPs through
 * their states. rdma_init_qp_attr() provides the attributes of the three transitions. After the
 * reply, this file calls rdma_establish(), which sends the RTU (man rdma_establish).
 *
 * The kernel builds the messages: those of IBTA vol. 1, 12.6, or of iWARP's MPA. All of their
 * private data belongs to the application, so any librdmacm program can be the peer. As a result,
 * the messages have no room for regions, sessions and queue depths.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_log.h>

#include "bb_cm_priv.h"
#include "bb_gid_priv.h"

/* Maximum events handled in one poll; maximum bytes of private data in an event. */
#define EVENT_BATCH  16
#define EVENT_PRIV   256
#define LISTEN_DEPTH 1024

struct channel {
	struct bb_cm_io io; /* must be the first member */
	struct rdma_event_channel *ch;
	struct bb_cm *cm;
};

/* Copy of an event. The event itself is acknowledged before the copy is handled. */
struct cm_msg_event {
	enum rdma_cm_event_type type;
	int status;
	struct rdma_cm_id *id, *listen_id;
	struct rdma_conn_param conn;
	uint8_t priv[EVENT_PRIV];
};

/* ---- Device of an rdma_cm_id */

/*
 * Returns true if @id uses the device of the CM. That device may have been opened by its PCI
 * address.
 */
static bool
is_device(const struct bb_cm *cm, const struct rdma_cm_id *id)
{
	const char *name = bb_kernel_name(cm->dev->name, cm->dev->drv->name);
	char path[256], link[256];
	const char *base;
	ssize_t n;

	if (id->verbs == NULL)
		return false;
	if (strcmp(id->verbs->device->name, name) == 0)
		return true;
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device", id->verbs->device->name);
	n = readlink(path, link, sizeof(link) - 1);
	if (n <= 0)
		return false;
	link[n] = '\0';
	base = strrchr(link, '/');
	return base != NULL && strcmp(base + 1, name) == 0;
}

/* ---- iWARP */

/*
 * Returns true if @id uses iWARP. With iWARP, rdma_connect() and rdma_accept() themselves move the
 * QP with the given number to RTS. So the QP must have its access rights before these calls.
 */
static bool
is_iwarp(const struct rdma_cm_id *id)
{
	return id->verbs != NULL && id->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
}

static int
iwarp_init(struct bb_conn *c)
{
	struct bb_qp_attr attr;

	bb_qp_attr_init(&attr);
	attr.state = BB_QP_INIT;
	attr.access = c->param.access;
	return bb_qp_modify(c->qp, &attr,
			    BB_QP_STATE | BB_QP_PKEY_INDEX | BB_QP_PORT | BB_QP_ACCESS);
}

/*
 * Connects over iWARP. rdma_connect() itself makes the TCP connection, so it returns an error if
 * the peer has no listener on the port. On InfiniBand the peer sends a REJ in this case.
 */
static int
iwarp_connect(struct bb_conn *c, struct rdma_conn_param *p)
{
	static const struct bb_cm_msg refused = {
		.type = BB_CM_REJ,
		.reason = BB_REJECT_NO_LISTENER,
	};
	int ret = iwarp_init(c);

	if (ret != 0 || rdma_connect(c->transport_ctx, p) == 0)
		return ret;
	if (errno != ECONNREFUSED)
		return -errno;
	bb_cm_received(c, &refused);
	return 0;
}

static int
iwarp_accept(struct bb_conn *c, struct rdma_conn_param *p)
{
	if (rdma_accept(c->transport_ctx, p) == 0)
		return bb_qp_adopt(c->qp);
	/* the kernel returns ECONNRESET if the peer has already given up */
	return errno == ECONNRESET ? -ENOTCONN : -errno;
}

/* ---- Events */

static void
bad_status(const struct cm_msg_event *h, struct bb_conn *c, const char *why)
{
	/*
	 * The kernel reports a status as a negative errno, some versions of librdmacm as a positive
	 * one.
	 */
	int status = h->status > 0 ? -h->status : h->status;

	bb_cm_broken(c, status != 0 ? status : -EIO, why);
}

static void
fill_end(const struct rdma_conn_param *p, struct bb_cm_msg *msg)
{
	/*
	 * librdmacm reports the depths from this side's view (man rdma_get_cm_event), so swap them
	 * to get the peer's view.
	 */
	msg->end.initiator_depth = p->responder_resources;
	msg->end.responder_resources = p->initiator_depth;
	msg->end.retry_count = p->retry_count & 7;
	msg->end.rnr_retry_count = p->rnr_retry_count & 7;
	msg->end.addr.qpn = p->qp_num;
	msg->end.flags = p->srq ? BB_CM_SRQ : 0;
	msg->private = p->private_data_len != 0 ? p->private_data : NULL;
	msg->private_len = p->private_data_len;
}

static void
connect_request(const struct cm_msg_event *h)
{
	struct bb_listener *l = h->listen_id->context;
	struct bb_cm_msg msg = {.type = BB_CM_REQ};
	struct bb_cm *cm = l->cm;
	struct sockaddr *from = rdma_get_peer_addr(h->id);
	struct bb_conn *c;

	if (!is_device(cm, h->id)) {
		BB_LOG(NOTICE,
		       "connect: a connection request through device %s was rejected: "
		       "the CM uses device %s",
		       h->id->verbs != NULL ? h->id->verbs->device->name : "no device",
		       cm->dev->name);
		(void)rdma_reject(h->id, NULL, 0);
		rdma_destroy_id(h->id);
		return;
	}
	c = bb_cm_conn_new(cm);
	if (c == NULL) {
		rdma_destroy_id(h->id);
		return;
	}
	h->id->context = c;
	c->transport_ctx = h->id;
	c->listener = l;
	if (from->sa_family == AF_INET || from->sa_family == AF_INET6)
		memcpy(&c->addr, from,
		       from->sa_family == AF_INET ? sizeof(struct sockaddr_in)
						  : sizeof(struct sockaddr_in6));
	c->half_open = true;
	TAILQ_INSERT_TAIL(&cm->half_open_conns, c, half_link);
	cm->stats.half_open++;
	bb_cm_set_state(c, BB_CONN_CONNECTING);
	fill_end(&h->conn, &msg);
	bb_cm_received(c, &msg);
}

static void
address_resolved(struct bb_conn *c)
{
	struct rdma_cm_id *id = c->transport_ctx;

	if (!is_device(c->cm, id)) {
		BB_LOG(ERR,
		       "connect: the route to the peer uses device %s, the CM uses device "
		       "%s: open a CM on the route's device",
		       id->verbs != NULL ? id->verbs->device->name : "no device", c->cm->dev->name);
		bb_cm_broken(c, -EXDEV, "the route to the peer uses another device");
	} else if (rdma_resolve_route(id, (int)c->param.timeout_ms) != 0) {
		bb_cm_broken(c, -errno, "the route cannot be resolved");
	}
}

/* Returns true if the context of @id is a listener. Returns false if it is a connection. */
static bool
is_listener(const struct bb_cm *cm, const struct rdma_cm_id *id)
{
	const struct bb_listener *l;

	LIST_FOREACH(l, &cm->listeners, link)
		if (l->transport_ctx == id)
			return true;
	return false;
}

static void
receive_event(const struct bb_cm *cm, const struct cm_msg_event *h)
{
	struct bb_cm_msg msg = {0};
	struct bb_conn *c;

	if (h->type == RDMA_CM_EVENT_CONNECT_REQUEST) {
		connect_request(h);
		return;
	}
	if (h->type == RDMA_CM_EVENT_TIMEWAIT_EXIT || h->type == RDMA_CM_EVENT_ADDR_CHANGE)
		return;
	/* Ignore the event: a listener stays bound when its device is removed. */
	if (is_listener(cm, h->id))
		return;
	c = h->id->context;
	if (c == NULL || c->transport_ctx != h->id)
		return;
	switch (h->type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		address_resolved(c);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		bb_cm_connected(c);
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		msg.type = BB_CM_REP;
		fill_end(&h->conn, &msg);
		bb_cm_received(c, &msg);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		/* On iWARP this event reports the reply, because MPA has no third message. */
		msg.type = c->active && is_iwarp(h->id) ? BB_CM_REP : BB_CM_RTU;
		if (msg.type == BB_CM_REP) {
			fill_end(&h->conn, &msg);
			/*
			 * Undo the swap of fill_end(), because on iWARP the kernel reports this
			 * side's own depths (siw_cm_upcall(), cma_iw_handler()).
			 */
			msg.end.initiator_depth = h->conn.initiator_depth;
			msg.end.responder_resources = h->conn.responder_resources;
		}
		bb_cm_received(c, &msg);
		break;
	case RDMA_CM_EVENT_REJECTED:
		msg.type = BB_CM_REJ;
		msg.reason = h->status > 0 ? (uint32_t)h->status : BB_REJECT_CONSUMER;
		msg.private = h->conn.private_data_len != 0 ? h->conn.private_data : NULL;
		msg.private_len = h->conn.private_data_len;
		bb_cm_received(c, &msg);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		msg.type = c->state == BB_CONN_DISCONNECTING ? BB_CM_DREP : BB_CM_DREQ;
		if (c->state != BB_CONN_CLOSED)
			bb_cm_received(c, &msg);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
		bad_status(h, c, "no device has a route to the peer's address");
		break;
	case RDMA_CM_EVENT_ROUTE_ERROR:
		bad_status(h, c, "the route cannot be resolved");
		break;
	case RDMA_CM_EVENT_UNREACHABLE:
		bad_status(h, c, "the peer does not answer");
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		bb_cm_broken(c, -ENODEV, "the device was removed");
		break;
	default:
		bad_status(h, c, "the connection failed");
	}
}

/*
 * Handles events of the channel. Leaves them in the kernel while an earlier event waits for the
 * application.
 */
static void
channel_ready(struct bb_cm_io *io, uint32_t events)
{
	struct channel *chan = (struct channel *)io;
	struct rdma_cm_event *ev;
	struct cm_msg_event h;
	int i;

	(void)events;
	/*
	 * A connection can hold only one event, so stop while an event waits for the application.
	 */
	for (i = 0; i < EVENT_BATCH && TAILQ_EMPTY(&chan->cm->ready); i++) {
		if (rdma_get_cm_event(chan->ch, &ev) != 0)
			return;
		memset(&h, 0, sizeof(h));
		h.type = ev->event;
		h.status = ev->status;
		h.id = ev->id;
		h.listen_id = ev->listen_id;
		h.conn = ev->param.conn;
		if (ev->param.conn.private_data != NULL)
			memcpy(h.priv, ev->param.conn.private_data,
			       ev->param.conn.private_data_len);
		else
			h.conn.private_data_len = 0;
		h.conn.private_data = h.priv;
		/*
		 * Acknowledge before handling, because rdma_destroy_id() waits until all events of
		 * the id are acknowledged.
		 */
		rdma_ack_cm_event(ev);
		receive_event(chan->cm, &h);
	}
}

/* ---- CM, listener */

static int
rdma_open(struct bb_cm *cm)
{
	struct channel *chan = calloc(1, sizeof(*chan));
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = chan};
	int ret;

	if (chan == NULL)
		return -ENOMEM;
	chan->cm = cm;
	chan->io.ready = channel_ready;
	chan->ch = rdma_create_event_channel();
	if (chan->ch == NULL) {
		BB_LOG(ERR,
		       "connect: no event channel of librdmacm: %s: load the kernel module "
		       "rdma_ucm, or use BB_CM_TCP",
		       strerror(errno));
		free(chan);
		return -ENOTSUP;
	}
	if (fcntl(chan->ch->fd, F_SETFL, O_NONBLOCK) != 0 ||
	    epoll_ctl(cm->epfd, EPOLL_CTL_ADD, chan->ch->fd, &ev) != 0) {
		ret = -errno;
		rdma_destroy_event_channel(chan->ch);
		free(chan);
		return ret;
	}
	cm->transport_ctx = chan;
	return 0;
}

static void
rdma_close(struct bb_cm *cm)
{
	struct channel *chan = cm->transport_ctx;

	rdma_destroy_event_channel(chan->ch);
	free(chan);
}

static int
rdma_listen_at(struct bb_listener *l, const struct sockaddr *addr)
{
	struct channel *chan = l->cm->transport_ctx;
	struct rdma_cm_id *id;
	int ret;

	if (rdma_create_id(chan->ch, &id, l, RDMA_PS_TCP) != 0)
		return -errno;
	if (rdma_bind_addr(id, (struct sockaddr *)(uintptr_t)addr) != 0 ||
	    rdma_listen(id, LISTEN_DEPTH) != 0) {
		ret = -errno;
		rdma_destroy_id(id);
		return ret;
	}
	l->transport_ctx = id;
	l->port = ntohs(rdma_get_src_port(id));
	return 0;
}

static void
rdma_unlisten(struct bb_listener *l)
{
	rdma_destroy_id(l->transport_ctx);
}

/* ---- Connections */

static int
rdma_connect_conn(struct bb_conn *c)
{
	struct channel *chan = c->cm->transport_ctx;
	struct rdma_cm_id *id;
	int ret;

	if (rdma_create_id(chan->ch, &id, c, RDMA_PS_TCP) != 0)
		return -errno;
	if (rdma_resolve_addr(id, NULL, (struct sockaddr *)&c->addr, (int)c->param.timeout_ms) !=
	    0) {
		ret = -errno;
		rdma_destroy_id(id);
		return ret;
	}
	c->transport_ctx = id;
	return 0;
}

static int
rdma_send(struct bb_conn *c, uint8_t type, uint32_t reason, const void *priv, uint32_t len)
{
	struct rdma_cm_id *id = c->transport_ctx;
	struct rdma_conn_param p = {
		.private_data = len != 0 ? priv : NULL,
		.private_data_len = (uint8_t)len,
		.retry_count = c->own.retry_count,
		.rnr_retry_count = c->own.rnr_retry_count,
		.qp_num = c->own.addr.qpn,
		.srq = (c->own.flags & BB_CM_SRQ) != 0,
	};
	int ret;

	(void)reason; /* librdmacm cannot send a reason: every rejection is a consumer reject */
	if (id == NULL)
		return -ENOTCONN;
	switch (type) {
	case BB_CM_REQ:
		p.initiator_depth = c->own.initiator_depth;
		p.responder_resources = c->own.responder_resources;
		if (is_iwarp(id))
			return iwarp_connect(c, &p);
		ret = rdma_connect(id, &p);
		break;
	case BB_CM_REP:
		p.initiator_depth = c->rd_init;
		p.responder_resources = c->rd_resp;
		if (is_iwarp(id))
			return iwarp_accept(c, &p);
		ret = rdma_accept(id, &p);
		break;
	case BB_CM_RTU:
		ret = is_iwarp(id) ? 0 : rdma_establish(id);
		break;
	case BB_CM_REJ:
		ret = rdma_reject(id, priv, (uint8_t)len);
		break;
	default:
		/* The kernel sends a DREQ, or a DREP if the peer's DREQ has already arrived. */
		ret = rdma_disconnect(id);
	}
	return ret != 0 ? -errno : 0;
}

/* Gets the QP attributes of the transition to @state from the kernel. */
static int
attr_of(struct rdma_cm_id *id, enum ibv_qp_state state, struct ibv_qp_attr *attr)
{
	int mask = 0;

	attr->qp_state = state;
	return rdma_init_qp_attr(id, attr, &mask) != 0 ? -errno : 0;
}

static int
rdma_qp_up(struct bb_conn *c)
{
	struct ibv_qp_attr init = {0}, rtr = {0}, rts = {0};
	struct bb_qp_addr local = {0}, remote = {0};
	const struct ibv_ah_attr *ah = &rtr.ah_attr;
	struct rdma_cm_id *id = c->transport_ctx;
	struct bb_qp_attr attr;
	int ret;

	if (id == NULL)
		return -ENOTCONN;
	if (is_iwarp(id))
		return c->active ? bb_qp_adopt(c->qp) : iwarp_init(c);
	ret = attr_of(id, IBV_QPS_INIT, &init);
	if (ret == 0)
		ret = attr_of(id, IBV_QPS_RTR, &rtr);
	if (ret == 0)
		ret = attr_of(id, IBV_QPS_RTS, &rts);
	if (ret == -EINVAL && !c->active) {
		/* The kernel reports in no other way that a peer gave up before it was accepted. */
		BB_LOG(NOTICE, "connect: the peer cancelled its connection request before it was "
			       "accepted");
		return -ENOTCONN;
	}
	if (ret != 0) {
		BB_LOG(ERR, "QP 0x%x is not connected: rdma_init_qp_attr() failed: %s", c->qp->qpn,
		       strerror(-ret));
		return ret;
	}
	if (rtr.path_mtu < IBV_MTU_256 || rtr.path_mtu > IBV_MTU_4096)
		return -EPROTO;
	bb_qp_attr_init(&attr);
	attr.access = c->param.access;
	attr.pkey_index = init.pkey_index;
	attr.path.port = init.port_num;
	attr.path.sgid_index = ah->grh.sgid_index;
	attr.path.hop_limit = ah->grh.hop_limit;
	attr.path.traffic_class = ah->grh.traffic_class;
	attr.path.flow_label = ah->grh.flow_label;
	attr.path.sl = ah->sl;
	attr.path.is_global = ah->is_global;
	attr.path.src_path_bits = ah->src_path_bits;
	attr.path.static_rate = ah->static_rate;
	attr.max_rd_atomic = c->rd_init;
	attr.max_dest_rd_atomic = c->rd_resp;
	attr.min_rnr_timer = c->param.min_rnr_timer;
	attr.timeout = rts.timeout != 0 ? rts.timeout : c->param.ack_timeout;
	attr.retry_cnt = rts.retry_cnt & 7;
	attr.rnr_retry = rts.rnr_retry & 7;
	local.qpn = c->own.addr.qpn;
	local.psn = rts.sq_psn;
	local.mtu = (uint16_t)(128u << rtr.path_mtu);
	if (c->param.path_mtu != 0 && c->param.path_mtu < local.mtu)
		local.mtu = (uint16_t)c->param.path_mtu;
	remote.qpn = rtr.dest_qp_num;
	remote.psn = rtr.rq_psn;
	remote.mtu = local.mtu;
	remote.lid = ah->dlid;
	memcpy(remote.gid, ah->grh.dgid.raw, sizeof(remote.gid));
	c->param.path.sgid_index = ah->grh.sgid_index;
	c->own.addr.mtu = local.mtu;
	return bb_qp_connect_owned(c->qp, &local, &remote, &attr);
}

static void
rdma_disconnect_conn(struct bb_conn *c, bool abort)
{
	struct rdma_cm_id *id = c->transport_ctx;

	(void)abort;
	c->transport_ctx = NULL;
	if (id != NULL)
		rdma_destroy_id(id);
}

/*
 * Maximum private data: 56 and 196 bytes in man rdma_connect and rdma_accept for RDMA_PS_TCP; 148
 * bytes in man rdma_reject.
 */
const struct bb_cm_ops bb_cm_rdma_ops = {
	.max_private_req = 56,
	.max_private_rep = 196,
	.max_private_rej = 148,
	.max_private_dreq = 0,
	.name = "BB_CM_RDMACM",
	.open = rdma_open,
	.close = rdma_close,
	.listen = rdma_listen_at,
	.unlisten = rdma_unlisten,
	.connect = rdma_connect_conn,
	.send = rdma_send,
	.qp_up = rdma_qp_up,
	.disconnect = rdma_disconnect_conn,
};
