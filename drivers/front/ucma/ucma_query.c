/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Queries of an ID: its addresses and path, and the attributes for its QP. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "ucma_priv.h"

/* Selector of a path record: exactly this value (Linux: IB_SA_EQ). */
#define EXACTLY 2

/* The device has no index. librdmacm then compares devices by their node GUID. */
#define NO_INDEX UINT32_MAX

static void
path_record(const struct ucma_id *id, struct ib_user_path_rec *p)
{
	memcpy(p->sgid, id->sgid, sizeof(p->sgid));
	memcpy(p->dgid, id->dgid, sizeof(p->dgid));
	p->pkey = htobe16(UCMA_PKEY);
	p->reversible = 1;
	p->numb_path = 1;
	p->hop_limit = UCMA_HOPS;
	p->traffic_class = id->tos;
	p->mtu_selector = EXACTLY;
	p->mtu = id->qp.mtu != 0 ? id->qp.mtu : id->u->attr.mtu;
	p->rate_selector = EXACTLY;
	p->packet_life_time_selector = EXACTLY;
	p->packet_life_time = ucma_packet_life_time(id);
}

/* Executes QUERY_ROUTE as Linux's ucma_query_route() and ucma_copy_iboe_route() do. */
int
ucma_query_route(struct ucma_file *f, const union ucma_cmd *c, uint32_t out)
{
	struct rdma_ucm_query_route_resp r;
	struct ucma_id *id;
	int ret = ucma_id_find(f, c->query.id, &id);

	if (ret != 0)
		return ret;
	memset(&r, 0, sizeof(r));
	r.src_addr = id->src.in6;
	r.dst_addr = id->dst.in6;
	r.ibdev_index = NO_INDEX;
	if (id->has_dev) {
		r.node_guid = htobe64(f->u->attr.node_guid);
		r.port_num = 1;
		/*
		 * An ID has a path once its route is resolved or a connection request was sent or
		 * received.
		 */
		r.num_paths = id->state == UCMA_ROUTE || id->had_cm;
		if (r.num_paths != 0) {
			path_record(id, &r.ib_route[0]);
		} else {
			memcpy(r.ib_route[0].sgid, id->sgid, 16);
			memcpy(r.ib_route[0].dgid, id->dgid, 16);
			r.ib_route[0].pkey = htobe16(UCMA_PKEY);
		}
	}
	return ucma_reply(f->u, c->query.response, &r, out < sizeof(r) ? out : sizeof(r));
}

/*
 * Executes the query RDMA_USER_CM_QUERY_ADDR. The other queries of Linux, for AF_IB addresses and
 * packed path records, are not supported.
 */
int
ucma_query(struct ucma_file *f, const union ucma_cmd *c, uint32_t out)
{
	struct rdma_ucm_query_addr_resp r;
	struct ucma_id *id;
	int ret = ucma_id_find(f, c->query.id, &id);

	if (ret != 0)
		return ret;
	if (c->query.option != RDMA_USER_CM_QUERY_ADDR)
		return -ENOSYS;
	memset(&r, 0, sizeof(r));
	r.src_size = (uint16_t)ucma_addr_len(&id->src.sa);
	r.dst_size = (uint16_t)ucma_addr_len(&id->dst.sa);
	memcpy(&r.src_addr, &id->src, r.src_size);
	memcpy(&r.dst_addr, &id->dst, r.dst_size);
	r.ibdev_index = NO_INDEX;
	if (id->has_dev) {
		r.node_guid = htobe64(f->u->attr.node_guid);
		r.port_num = 1;
		r.pkey = htobe16(UCMA_PKEY);
	}
	return ucma_reply(f->u, c->query.response, &r, out < sizeof(r) ? out : sizeof(r));
}

/* ---- Attributes for the QP */

/*
 * Attributes of a QP without a connection (Linux: cma_ib_init_qp_attr() of core/cma.c). UD QPs get
 * these in each state.
 */
static void
unconnected(const struct ucma_id *id, struct ib_uverbs_qp_attr *a)
{
	a->qp_attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			  (ucma_is_ud(id) ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
	a->port_num = 1;
	if (ucma_is_ud(id))
		a->qkey = UCMA_UDP_QKEY;
}

static void
to_rtr(const struct ucma_id *id, struct ib_uverbs_qp_attr *a)
{
	a->qp_attr_mask =
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	ucma_ah_attr(id, &a->ah_attr);
	a->path_mtu = id->qp.mtu;
	a->dest_qp_num = id->qp.remote_qpn;
	a->rq_psn = id->qp.rq_psn;
	if (id->qp_type == IBV_QPT_RC) {
		a->qp_attr_mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
		a->max_dest_rd_atomic = id->qp.responder_resources;
	}
}

static void
to_rts(const struct ucma_id *id, struct ib_uverbs_qp_attr *a)
{
	a->qp_attr_mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	a->sq_psn = id->qp.sq_psn;
	if (id->qp_type == IBV_QPT_RC) {
		a->qp_attr_mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC |
				   IBV_QP_TIMEOUT;
		a->retry_cnt = id->qp.retry_count;
		a->rnr_retry = id->qp.rnr_retry;
		a->max_rd_atomic = id->qp.initiator_depth;
		a->timeout = id->ack_timeout != 0 ? id->ack_timeout : id->qp.timeout;
	}
}

/*
 * Attributes of a QP with a connection (Linux: cm_init_qp_init_attr(), _rtr_ and _rts_ of
 * core/cm.c). RTR and RTS need the peer's QPN.
 */
static int
connected(const struct ucma_id *id, struct ib_uverbs_qp_attr *a)
{
	switch (a->qp_state) {
	case IBV_QPS_INIT:
		a->qp_attr_mask =
			IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
		a->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
		if (id->qp.responder_resources != 0)
			a->qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
		a->port_num = 1;
		return 0;
	case IBV_QPS_RTR:
	case IBV_QPS_RTS:
		if (id->qp.remote_qpn == 0)
			return -EINVAL;
		if (a->qp_state == IBV_QPS_RTR)
			to_rtr(id, a);
		else
			to_rts(id, a);
		return 0;
	default:
		return -EINVAL;
	}
}

int
ucma_init_qp_attr(struct ucma_file *f, const union ucma_cmd *c, uint32_t out)
{
	struct ib_uverbs_qp_attr a;
	struct ucma_id *id;
	int ret = ucma_id_find(f, c->init_qp_attr.id, &id);

	(void)out;
	if (ret != 0)
		return ret;
	if (c->init_qp_attr.qp_state > IBV_QPS_ERR || !id->has_dev)
		return -EINVAL;
	memset(&a, 0, sizeof(a));
	a.qp_state = (uint8_t)c->init_qp_attr.qp_state;
	if (ucma_is_ud(id) || !id->had_cm)
		unconnected(id, &a);
	else
		ret = connected(id, &a);
	return ret != 0 ? ret : ucma_reply(f->u, c->init_qp_attr.response, &a, sizeof(a));
}
