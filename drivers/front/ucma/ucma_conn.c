/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Commands for connections: each calls the CM engine. Values of messages that the program does not
 * give are those of Linux drivers/infiniband/core/cma.c.
 */
#include <errno.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "ucma_priv.h"

#define CM_TIMEOUT 20u /* CMA_CM_RESPONSE_TIMEOUT: 4.3 s */
#define CM_RETRIES 15u /* CMA_MAX_CM_RETRIES */
/* CMA_IBOE_PACKET_LIFETIME: 0.27 s */
#define PACKET_LIFE_TIME 16u
#define MAX_RETRY        7u
#define LID_PERMISSIVE   0xffffu /* LIDs of a path with a router, and of a RoCE path */

uint8_t
ucma_packet_life_time(const struct ucma_id *id)
{
	return (uint8_t)(id->ack_timeout != 0 ? id->ack_timeout - 1u : PACKET_LIFE_TIME);
}

/*
 * Both arguments and the result are codes of powers of two. The sum of the two times is rounded up.
 */
uint8_t
ucma_ack_timeout(uint8_t ack_delay, uint8_t packet_life_time)
{
	unsigned int code = packet_life_time + 1u;

	if (code >= ack_delay)
		code += ack_delay + 1u >= code;
	else
		code = ack_delay + (code + 1u >= ack_delay);
	return code < 31 ? (uint8_t)code : 31;
}

static void
set_net(const struct ucma_id *id, struct bb_ibcm_net *net)
{
	memset(net, 0, sizeof(*net));
	memcpy(net->src, id->sgid, 16);
	memcpy(net->dst, id->dgid, 16);
	net->tclass = id->tos;
	net->hop_limit = UCMA_HOPS;
}

static uint32_t
at_most(uint32_t v, uint32_t max)
{
	return v < max ? v : max;
}

/* ---- Listen */

int
ucma_listen(struct ucma_file *f, const union ucma_cmd *c, uint32_t out)
{
	const int32_t backlog = (int32_t)c->listen.backlog;
	const union ucma_addr any = {.sa.sa_family = AF_INET};
	struct ucma_id *id;
	int ret = ucma_id_find(f, c->listen.id, &id);

	(void)out;
	if (ret == 0 && id->state == UCMA_IDLE)
		ret = ucma_bind_to(id, &any, true);
	if (ret == 0 && id->state != UCMA_BOUND)
		ret = -EINVAL;
	if (ret == 0)
		ret = ucma_listen_port(id);
	if (ret != 0)
		return ret;
	id->reuseaddr = false;
	id->backlog = backlog > 0 && backlog < UCMA_MAX_BACKLOG ? backlog : UCMA_MAX_BACKLOG;
	id->service = (struct bb_ibcm_service){
		.service_id = ucma_service_id(id, &id->src),
		.mask = UINT64_MAX,
		.ip = true,
		.datagram = ucma_is_ud(id),
		.cookie = id->number,
	};
	if (!ucma_addr_is_any(&id->src))
		ucma_addr_gid(&id->src, id->service.addr);
	else if (id->afonly)
		id->service.ip_version = id->src.sa.sa_family == AF_INET ? 4 : 6;
	ret = bb_ibcm_listen(f->u->cm, &id->service);
	if (ret == 0)
		id->state = UCMA_LISTEN;
	return ret == -ENOSPC ? -ENOMEM : ret;
}

/* ---- Connect */

/* Writes the IP CM header and the program's data. Returns the length. */
static uint32_t
put_private(const struct ucma_id *id, const struct rdma_ucm_conn_param *p, uint8_t *priv)
{
	struct bb_ibcm_ip ip = {
		.version = id->src.sa.sa_family == AF_INET ? 4 : 6,
		.sport = ucma_addr_port(&id->src),
	};

	ucma_addr_gid(&id->src, ip.src);
	ucma_addr_gid(&id->dst, ip.dst);
	bb_ibcm_ip_build(priv, &ip);
	memcpy(priv + BB_IBCM_IP_LEN, p->private_data, p->private_data_len);
	return BB_IBCM_IP_LEN + p->private_data_len;
}

static int
send_sidr(struct ucma_id *id, const struct rdma_ucm_conn_param *p, uint32_t *cm)
{
	uint8_t priv[BB_IBCM_IP_LEN + RDMA_MAX_PRIVATE_DATA];
	struct bb_ibcm_net net;

	set_net(id, &net);
	return bb_ibcm_sidr(id->u->cm, &net, ucma_service_id(id, &id->dst), CM_TIMEOUT, CM_RETRIES,
			    priv, put_private(id, p, priv), id->number, id->u->now, cm);
}

static int
send_req(struct ucma_id *id, const struct rdma_ucm_conn_param *p, uint32_t *cm)
{
	const uint8_t life = ucma_packet_life_time(id);
	uint8_t priv[BB_IBCM_IP_LEN + RDMA_MAX_PRIVATE_DATA];
	struct bb_ibcm_req req = {
		.service_id = ucma_service_id(id, &id->dst),
		.qpn = p->qp_num,
		.psn = id->qp.rq_psn,
		.responder_resources = p->responder_resources,
		.initiator_depth = p->initiator_depth,
		.remote_timeout = CM_TIMEOUT,
		.local_timeout = CM_TIMEOUT,
		.transport = id->qp_type == IBV_QPT_UC ? BB_IBCM_UC : BB_IBCM_RC,
		.flow_control = p->flow_control & 1,
		.retry_count = at_most(p->retry_count, MAX_RETRY),
		.rnr_retry = at_most(p->rnr_retry_count, MAX_RETRY),
		.pkey = UCMA_PKEY,
		.mtu = id->u->attr.mtu,
		.cm_retries = CM_RETRIES,
		.srq = p->srq != 0,
		.primary = {.local_lid = LID_PERMISSIVE,
			    .remote_lid = LID_PERMISSIVE,
			    .ack_timeout = ucma_ack_timeout(id->u->attr.ack_delay, life)},
	};
	struct bb_ibcm_net net;
	int ret;

	set_net(id, &net);
	ret = bb_ibcm_connect(id->u->cm, &net, &req, priv, put_private(id, p, priv), id->number,
			      id->u->now, cm);
	if (ret != 0)
		return ret;
	id->qp.responder_resources = p->responder_resources;
	id->qp.initiator_depth = p->initiator_depth;
	id->qp.retry_count = (uint8_t)req.retry_count;
	id->qp.rnr_retry = (uint8_t)req.rnr_retry;
	id->qp.timeout = life + 1;
	id->qp.mtu = id->u->attr.mtu;
	return 0;
}

int
ucma_connect(struct ucma_file *f, const union ucma_cmd *c, uint32_t out)
{
	const struct rdma_ucm_conn_param *p = &c->connect.conn_param;
	struct ucma_id *id;
	uint32_t cm;
	int ret;

	(void)out;
	if (p->valid == 0)
		return -EINVAL;
	ret = ucma_id_find(f, c->connect.id, &id);
	if (ret != 0)
		return ret;
	if (id->state != UCMA_ROUTE)
		return -EINVAL;
	ret = ucma_is_ud(id) ? send_sidr(id, p, &cm) : send_req(id, p, &cm);
	if (ret != 0)
		return ret == -ENOSPC ? -ENOMEM : ret;
	ucma_cm_set(id, cm);
	id->state = UCMA_CONNECT;
	return 0;
}

/* ---- Accept and reject */

static int
send_sidr_rep(struct ucma_id *id, enum bb_ibcm_sidr_status status, uint32_t qpn, const void *priv,
	      uint32_t len)
{
	int ret = bb_ibcm_sidr_reply(id->u->cm, id->cm, status, qpn, UCMA_UDP_QKEY, priv, len);

	/* The SIDR reply ends the exchange, so release its slot. */
	if (ret == 0)
		ucma_cm_release(id, false);
	return ret;
}

static int
send_rep(struct ucma_id *id, const struct rdma_ucm_conn_param *p)
{
	const struct bb_ibcm_rep rep = {
		.qpn = p->qp_num,
		.psn = id->qp.rq_psn,
		.responder_resources = p->responder_resources,
		.initiator_depth = p->initiator_depth,
		.ack_delay = id->u->attr.ack_delay,
		.flow_control = p->flow_control & 1,
		.rnr_retry = at_most(p->rnr_retry_count, MAX_RETRY),
		.srq = p->srq != 0,
	};
	int ret = bb_ibcm_accept(id->u->cm, id->cm, &rep, p->private_data, p->private_data_len,
				 id->number, id->u->now);

	if (ret != 0)
		return ret;
	id->qp.responder_resources = p->responder_resources;
	id->qp.initiator_depth = p->initiator_depth;
	return 0;
}

/*
 * Sends a REP or SIDR REP (passive side), or an RTU (active side). If that fails, rejects the
 * connection, as rdma_accept() of Linux does.
 */
int
ucma_accept(struct ucma_file *f, const union ucma_cmd *c, uint32_t out)
{
	const struct rdma_ucm_conn_param *p = &c->accept.conn_param;
	struct ucma_id *id;
	int ret = ucma_id_find(f, c->accept.id, &id);

	(void)out;
	if (ret != 0)
		return ret;
	if (id->state != UCMA_CONNECT || !id->has_cm)
		return -EINVAL;
	if (ucma_is_ud(id)) {
		ret = send_sidr_rep(id, BB_IBCM_SIDR_OK, p->qp_num, p->private_data,
				    p->private_data_len);
	} else if (p->valid != 0) {
		ret = send_rep(id, p);
	} else {
		ret = bb_ibcm_ready(f->u->cm, id->cm, NULL, 0);
		id->established = ret == 0;
	}
	if (ret == 0 && p->valid != 0)
		id->uid = c->accept.uid;
	if (ret != 0 && !ucma_is_ud(id))
		(void)bb_ibcm_reject(f->u->cm, id->cm, BB_IBCM_REJ_CONSUMER, NULL, 0, f->u->now);
	return ret;
}

int
ucma_reject(struct ucma_file *f, const union ucma_cmd *c, uint32_t out)
{
	const struct rdma_ucm_reject *r = &c->reject;
	const uint16_t reason = r->reason != 0 ? r->reason : BB_IBCM_REJ_CONSUMER;
	struct ucma_id *id;
	int ret = ucma_id_find(f, r->id, &id);

	(void)out;
	if (ret != 0)
		return ret;
	/* Vendor option not supported (Linux: IB_CM_REJ_VENDOR_OPTION_NOT_SUPPORTED) is 35. */
	if (!id->has_cm || (reason != BB_IBCM_REJ_CONSUMER && reason != 35))
		return -EINVAL;
	if (ucma_is_ud(id))
		return send_sidr_rep(id, BB_IBCM_SIDR_REJECT, 0, r->private_data,
				     r->private_data_len);
	return bb_ibcm_reject(f->u->cm, id->cm, reason, r->private_data, r->private_data_len,
			      f->u->now);
}

/* ---- Disconnect and notify */

/* Returns 0 even if the connection has ended (Linux: rdma_disconnect()). */
int
ucma_disconnect(struct ucma_file *f, const union ucma_cmd *c, uint32_t out)
{
	struct ucma_id *id;
	int ret = ucma_id_find(f, c->disconnect.id, &id);

	(void)out;
	if (ret != 0)
		return ret;
	if (!id->had_cm)
		return -EINVAL;
	if (id->has_cm && !ucma_is_ud(id))
		(void)bb_ibcm_disconnect(f->u->cm, id->cm, NULL, 0, f->u->now);
	return 0;
}

/*
 * The program reports that data of the peer arrived before the peer's RTU (Linux: ib_cm_notify()).
 */
int
ucma_notify(struct ucma_file *f, const union ucma_cmd *c, uint32_t out)
{
	struct ucma_id *id;
	int ret = ucma_id_find(f, c->notify.id, &id);

	(void)out;
	if (ret != 0)
		return ret;
	if (!id->has_cm || ucma_is_ud(id) || c->notify.event != IBV_EVENT_COMM_EST)
		return -EINVAL;
	if (id->established)
		return 0;
	ret = bb_ibcm_established(f->u->cm, id->cm);
	if (ret == 0) {
		id->established = true;
		(void)ucma_event_add(id, UCMA_EV_ESTABLISHED, 0);
	}
	return ret;
}
