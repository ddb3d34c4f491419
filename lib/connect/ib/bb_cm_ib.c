/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Connections by the CM engine of a device, as librdmacm makes them. Service IDs are those of the
 * port space TCP. The private data of a REQ starts with the IP CM header, so 56 bytes are left for
 * the application (Linux: cma_format_hdr() and cma_connect_ib() of cma.c).
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_log.h>
#include <rte_random.h>

#include "bb_cm_ib.h"
#include "bb_gid_priv.h"

/*
 * Number of repeats of a message (Linux: CMA_MAX_CM_RETRIES), and limits of the timeout code
 * between two repeats. The code is chosen so that all repeats fit in param.timeout_ms.
 */
#define RETRIES     15u
#define MIN_TIMEOUT 12u /* 17 ms */
#define MAX_TIMEOUT 20u /* 4.3 s (Linux: CMA_CM_RESPONSE_TIMEOUT) */
/* Value of the LIDs in a REQ on RoCE, which has no LIDs (Linux: IB_LID_PERMISSIVE). */
#define NO_LID 0xffffu
/*
 * Rate in a REQ: the code of 10 Gb/s (IBTA vol. 1, 15.2.5.16). A software port has no rate, but the
 * code 0 is reserved.
 */
#define RATE 3u
/* Free ports are those that Linux gives to sockets (net.ipv4.ip_local_port_range). */
#define FIRST_FREE_PORT 32768u
#define FREE_PORTS      28232u
#define PORT_TRIES      256

static int
ib_open(struct bb_cm *cm)
{
	struct ib_cm *ib = calloc(1, sizeof(*ib));
	int ret;

	if (ib == NULL)
		return -ENOMEM;
	ret = bb_qp1_get(cm->dev, &ib->q);
	if (ret != 0) {
		free(ib);
		return ret;
	}
	ib->cm = cm;
	TAILQ_INIT(&ib->inbox);
	ib->engine = bb_qp1_lock(ib->q);
	bb_qp1_unlock(ib->q);
	cm->transport_ctx = ib;
	bb_cm_wake(cm);
	return 0;
}

/*
 * Rejects the requests that are left in the inbox. They have migrated to this CM, so no listener of
 * this CM has rejected them.
 */
static void
ib_close(struct bb_cm *cm)
{
	struct ib_cm *ib = ib_of(cm);

	bb_qp1_lock(ib->q);
	while (!TAILQ_EMPTY(&ib->inbox))
		ib_conn_free(TAILQ_FIRST(&ib->inbox));
	bb_qp1_unlock(ib->q);
	bb_qp1_put(ib->q);
	free(ib);
}

/* ---- Listeners */

static uint16_t
port_of(const struct sockaddr_storage *addr)
{
	return ntohs(addr->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)addr)->sin6_port
						 : ((const struct sockaddr_in *)addr)->sin_port);
}

/* Returns true for 0.0.0.0 and ::, which stand for all addresses. */
static bool
is_any(const uint8_t gid[16])
{
	static const uint8_t none[16];

	return memcmp(gid, none, 16) == 0 ||
	       (bb_gid_is_ipv4(gid) && memcmp(gid + 12, none, 4) == 0);
}

/* Sets the address of the service. Returns -EADDRNOTAVAIL if it is not a GID of the device. */
static int
set_address(struct bb_listener *l, struct bb_ibcm_service *s, const struct sockaddr_storage *addr)
{
	struct bb_gid_entry list[BB_GID_MAX];
	uint8_t gid[16];
	int i, n;

	bb_cm_gid_of(addr, gid);
	if (is_any(gid))
		return 0;
	n = bb_gid_list(l->cm->dev, 1, list, RTE_DIM(list));
	for (i = 0; i < n; i++)
		if (memcmp(list[i].raw, gid, sizeof(gid)) == 0)
			break;
	if (i >= n)
		return n < 0 ? n : -EADDRNOTAVAIL;
	memcpy(s->addr, gid, sizeof(s->addr));
	return 0;
}

/*
 * Adds a listener's service to the engine. If @port is 0, chooses a free port. Call under the lock
 * of QP1.
 */
static int
add_service(struct ib_cm *ib, struct bb_ibcm_service *s, uint16_t *port)
{
	const bool any = *port == 0;
	int i, ret = -EADDRINUSE;

	for (i = 0; i < (any ? PORT_TRIES : 1) && ret == -EADDRINUSE; i++) {
		if (any)
			*port = (uint16_t)(FIRST_FREE_PORT + rte_rand_max(FREE_PORTS));
		s->service_id = bb_ibcm_service_id(BB_IBCM_PS_TCP, *port);
		ret = bb_ibcm_listen(ib->engine, s);
	}
	return ret;
}

static int
ib_listen(struct bb_listener *l, const struct sockaddr *addr)
{
	struct ib_cm *ib = ib_of(l->cm);
	struct sockaddr_storage at = {0};
	struct ib_listener *il;
	int ret;

	memcpy(&at, addr,
	       addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					   : sizeof(struct sockaddr_in));
	il = calloc(1, sizeof(*il));
	if (il == NULL)
		return -ENOMEM;
	il->user.event = ib_listener_event;
	il->l = l;
	il->service.mask = UINT64_MAX;
	il->service.ip = true;
	il->service.cookie = bb_qp1_cookie(&il->user);
	l->port = port_of(&at);
	ret = set_address(l, &il->service, &at);
	if (ret != 0)
		goto fail;
	bb_qp1_lock(ib->q);
	ret = add_service(ib, &il->service, &l->port);
	bb_qp1_unlock(ib->q);
	if (ret != 0)
		goto fail;
	l->transport_ctx = il;
	return 0;

fail:
	free(il);
	return ret;
}

/* Destroys a listener, and rejects its requests that wait in the inbox. */
static void
ib_unlisten(struct bb_listener *l)
{
	struct ib_listener *il = l->transport_ctx;
	struct ib_cm *ib = ib_of(l->cm);
	struct ib_conn *ic, *next;

	bb_qp1_lock(ib->q);
	(void)bb_ibcm_unlisten(ib->engine, &il->service);
	for (ic = TAILQ_FIRST(&ib->inbox); ic != NULL; ic = next) {
		next = TAILQ_NEXT(ic, link);
		if (ic->listener == l)
			ib_conn_free(ic);
	}
	bb_qp1_unlock(ib->q);
	free(il);
}

/* ---- Messages */

/* Returns the code of the time between two repeats of a message. */
static uint32_t
timeout_code(uint32_t timeout_ms)
{
	const uint64_t ns = (uint64_t)timeout_ms * 1000000 / (RETRIES + 1);
	uint32_t code = MIN_TIMEOUT;

	while (code < MAX_TIMEOUT && (UINT64_C(4096) << (code + 1)) <= ns)
		code++;
	return code;
}

/* Returns the code of an MTU in bytes: 1 is 256 bytes, 5 is 4096. */
static uint32_t
mtu_code(uint32_t mtu)
{
	uint32_t code = 1;

	while (code < 5 && 256u << code <= mtu)
		code++;
	return code;
}

static void
ip_header(const struct bb_conn *c, uint8_t *to)
{
	struct bb_ibcm_ip ip = {
		.version = c->addr.ss_family == AF_INET6 ? 6 : 4,
		.sport = (uint16_t)(FIRST_FREE_PORT + rte_rand_max(FREE_PORTS)),
	};

	memcpy(ip.src, c->own.addr.gid, sizeof(ip.src));
	bb_cm_gid_of(&c->addr, ip.dst);
	bb_ibcm_ip_build(to, &ip);
}

/* Sends the REQ of a connection that is new to the engine. Call under the lock of QP1. */
static int
send_req(struct bb_conn *c, struct ib_conn *ic, const void *priv, uint32_t len)
{
	const struct bb_cm_end *e = &c->own;
	const struct bb_path *path = &c->param.path;
	const uint32_t timeout = timeout_code(c->param.timeout_ms);
	const struct bb_ibcm_req req = {
		.service_id = bb_ibcm_service_id(BB_IBCM_PS_TCP, port_of(&c->addr)),
		.qpn = e->addr.qpn,
		.psn = e->addr.psn,
		.responder_resources = e->responder_resources,
		.initiator_depth = e->initiator_depth,
		.remote_timeout = timeout,
		.local_timeout = timeout,
		.transport = e->qp_type == BB_QPT_UC ? BB_IBCM_UC : BB_IBCM_RC,
		.flow_control = 1,
		.retry_count = e->retry_count,
		.rnr_retry = e->rnr_retry_count,
		.pkey = 0xffff,
		.mtu = mtu_code(e->addr.mtu),
		.cm_retries = RETRIES,
		.srq = (e->flags & BB_CM_SRQ) != 0,
		.primary =
			{
				.local_lid = NO_LID,
				.remote_lid = NO_LID,
				.rate = RATE,
				.ack_timeout = c->param.ack_timeout,
			},
	};
	struct bb_ibcm_net net = {
		.flow_label = path->flow_label & 0xfffff,
		.tclass = path->traffic_class,
		.hop_limit = path->hop_limit != 0 ? path->hop_limit : 64,
		.sl = path->sl & 15,
	};
	uint8_t data[BB_IBCM_PRIV_REQ];
	int ret;

	memcpy(net.src, e->addr.gid, sizeof(net.src));
	bb_cm_gid_of(&c->addr, net.dst);
	ip_header(c, data);
	if (len != 0)
		memcpy(data + BB_IBCM_IP_LEN, priv, len);
	ret = bb_ibcm_connect(ic->ib->engine, &net, &req, data, BB_IBCM_IP_LEN + len,
			      bb_qp1_cookie(&ic->user), bb_qp1_now(), &ic->id);
	ic->has_id = ret == 0;
	return ret;
}

static int
send_rep(const struct bb_conn *c, struct ib_conn *ic, const void *priv, uint32_t len)
{
	const struct bb_ibcm_rep rep = {
		.qpn = c->own.addr.qpn,
		.psn = c->own.addr.psn,
		.responder_resources = c->rd_resp,
		.initiator_depth = c->rd_init,
		.flow_control = 1,
		.rnr_retry = c->own.rnr_retry_count,
		.srq = (c->own.flags & BB_CM_SRQ) != 0,
	};

	return bb_ibcm_accept(ic->ib->engine, ic->id, &rep, priv, len, bb_qp1_cookie(&ic->user),
			      bb_qp1_now());
}

/*
 * Sends a DREQ. Before the peer's RTU the engine sends a REJ instead; then the connection has no
 * further event. Returns 0 also if the peer has disconnected and the event waits in the inbox.
 */
static int
send_dreq(struct ib_conn *ic, const void *priv, uint32_t len)
{
	struct bb_ibcm *engine = ic->ib->engine;
	int ret = bb_ibcm_disconnect(engine, ic->id, priv, len, bb_qp1_now());

	if (ret != -EINVAL || ic->nev != 0)
		return 0;
	(void)bb_ibcm_release(engine, ic->id, bb_qp1_now());
	ic->has_id = false;
	return -ENOTCONN;
}

static int
ib_send(struct bb_conn *c, uint8_t type, uint32_t reason, const void *priv, uint32_t len)
{
	struct ib_conn *ic = c->transport_ctx;
	struct bb_qp1 *q = ib_of(c->cm)->q;
	int ret;

	/* The engine has answered the peer's DREQ itself. */
	if (type == BB_CM_DREP)
		return 0;
	if (ic == NULL || (!ic->has_id && type != BB_CM_REQ))
		return -ENOTCONN;
	bb_qp1_lock(q);
	switch (type) {
	case BB_CM_REQ:
		ret = send_req(c, ic, priv, len);
		break;
	case BB_CM_REP:
		ret = send_rep(c, ic, priv, len);
		break;
	case BB_CM_RTU:
		ret = bb_ibcm_ready(ic->ib->engine, ic->id, NULL, 0);
		break;
	case BB_CM_REJ:
		ret = bb_ibcm_reject(ic->ib->engine, ic->id, (uint16_t)reason, priv, len,
				     bb_qp1_now());
		break;
	default:
		ret = send_dreq(ic, priv, len);
	}
	bb_qp1_unlock(q);
	/* The parameters are valid, so these errors mean that the peer has ended the connection. */
	return type != BB_CM_REQ && (ret == -EINVAL || ret == -ENOENT) ? -ENOTCONN : ret;
}

/* ---- Connections */

static int
ib_connect(struct bb_conn *c)
{
	struct ib_conn *ic = ib_conn_new(ib_of(c->cm));

	if (ic == NULL)
		return -ENOMEM;
	ic->c = c;
	c->transport_ctx = ic;
	return ib_send(c, BB_CM_REQ, 0, c->param.private_data, c->param.private_len);
}

/*
 * Moves the QP to RTS. The PSN in a REQ or REP is the first one that the message's sender expects.
 * So this side sends from the peer's PSN on, and receives from its own PSN on. The path MTU is that
 * of the REQ.
 */
static int
ib_qp_up(struct bb_conn *c)
{
	struct bb_qp_addr local, remote;

	if (!c->active && c->own.addr.mtu < c->peer.addr.mtu) {
		BB_LOG(ERR,
		       "QP 0x%x is not connected: the peer requests a path MTU of %u bytes, this "
		       "side allows %u: set path_mtu on the connecting side",
		       c->qp->qpn, c->peer.addr.mtu, c->own.addr.mtu);
		return -EPROTO;
	}
	local = c->own.addr;
	remote = c->peer.addr;
	local.psn = c->peer.addr.psn;
	remote.psn = c->own.addr.psn;
	return bb_cm_connect_qp(c, &local, &remote);
}

static void
ib_disconnect(struct bb_conn *c, bool abort)
{
	struct ib_conn *ic = c->transport_ctx;
	struct bb_qp1 *q = ib_of(c->cm)->q;

	c->transport_ctx = NULL;
	if (ic == NULL)
		return;
	bb_qp1_lock(q);
	/*
	 * A REJ to a peer whose MAC is unknown would only take the room of other messages. The
	 * engine sends it nevertheless if the peer waits for it.
	 */
	if (abort && c->half_open)
		ib_conn_abandon(ic);
	else
		ib_conn_free(ic);
	bb_qp1_unlock(q);
}

static const struct bb_cm_ops ib_ops = {
	.max_private_req = IB_PRIV_REQ,
	.max_private_rep = BB_IBCM_PRIV_REP,
	.max_private_rej = BB_IBCM_PRIV_REJ,
	.max_private_dreq = BB_IBCM_PRIV_DREQ,
	.name = "BB_CM_IB",
	.addresses = true,
	.peer_is_gid = true,
	.always_awake = true,
	.open = ib_open,
	.close = ib_close,
	.listen = ib_listen,
	.unlisten = ib_unlisten,
	.connect = ib_connect,
	.send = ib_send,
	.qp_up = ib_qp_up,
	.migrate = ib_migrate,
	.disconnect = ib_disconnect,
	.poll = ib_poll,
};

static void __attribute__((constructor)) register_ops(void)
{
	bb_cm_ib_register(&ib_ops);
}
