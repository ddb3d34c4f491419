/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Multicast groups of IDs. A RoCE port has no SA, so a join needs no answer of another host: its
 * event reports the group's GID and Q_Key, and librdmacm attaches the QP. Checks and errors are
 * those of ucma_process_join() of Linux drivers/infiniband/core/ucma.c, and of
 * rdma_join_multicast() and cma_iboe_join_multicast() of core/cma.c, for RoCE v2.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "ucma_priv.h"

/* Linux's own ENOTSUPP (include/linux/errno.h), which the program gets for an IPv6 group. */
#define KERNEL_ENOTSUPP 524
#define MCAST_QPN       0xffffffu

static struct ucma_mc *
mc_new(struct ucma_id *id, uint64_t uid)
{
	struct ucma *u = id->u;
	struct ucma_mc *mc;

	if (u->nmcs == u->attr.max_ids)
		return NULL;
	mc = calloc(1, sizeof(*mc));
	if (mc == NULL)
		return NULL;
	do
		u->last_mc = u->last_mc % u->attr.max_ids + 1;
	while (u->mcs[u->last_mc] != NULL);
	u->mcs[u->last_mc] = mc;
	u->nmcs++;
	mc->number = u->last_mc;
	mc->id = id;
	mc->uid = uid;
	LIST_INSERT_HEAD(&id->mcs, mc, link);
	return mc;
}

/* As cma_iboe_set_mgid() of Linux does for RoCE v2: a loopback address has the GID zero. */
static int
group_gid(const union ucma_addr *a, uint8_t gid[16])
{
	uint32_t ip;

	if (a->sa.sa_family == AF_INET6)
		return ucma_addr_is_any(a) ? -EINVAL : -KERNEL_ENOTSUPP;
	ip = ntohl(a->in.sin_addr.s_addr);
	if (ip >> 24 == 0)
		return -EINVAL;
	if (ip >> 24 == IN_LOOPBACKNET)
		memset(gid, 0, 16);
	else
		ucma_addr_gid(a, gid);
	return 0;
}

/* Queues the event of a join. An ID without a value of the program has no events. */
static int
report_join(struct ucma_mc *mc, const uint8_t gid[16])
{
	struct ucma_id *id = mc->id;
	struct rdma_ucm_ud_param *p;
	struct ucma_event *e;

	if (id->uid == 0)
		return 0;
	e = ucma_event_add(id, UCMA_EV_MULTICAST_JOIN, 0);
	if (e == NULL)
		return -ENOMEM;
	e->mc = mc;
	e->resp.uid = mc->uid;
	e->resp.id = mc->number;
	p = &e->resp.param.ud;
	ucma_ah_attr(id, &p->ah_attr);
	memcpy(p->ah_attr.grh.dgid, gid, sizeof(p->ah_attr.grh.dgid));
	p->ah_attr.grh.traffic_class = 0;
	p->qp_num = MCAST_QPN;
	p->qkey = UCMA_UDP_QKEY;
	return 0;
}

static int
join(struct ucma_file *f, uint32_t number, const union ucma_addr *a, uint64_t uid,
     uint64_t response)
{
	struct rdma_ucm_create_id_resp resp;
	struct ucma_mc *mc;
	struct ucma_id *id;
	uint8_t gid[16];
	int ret = ucma_id_find(f, number, &id);

	if (ret != 0)
		return ret;
	if (!id->has_dev || !ucma_is_ud(id) || (id->state != UCMA_BOUND && id->state != UCMA_ADDR))
		return -EINVAL;
	ret = group_gid(a, gid);
	if (ret != 0)
		return ret;
	mc = mc_new(id, uid);
	if (mc == NULL)
		return -ENOMEM;
	resp.id = mc->number;
	ret = ucma_reply(f->u, response, &resp, sizeof(resp));
	if (ret == 0)
		ret = report_join(mc, gid);
	if (ret != 0)
		ucma_mc_free(mc);
	return ret;
}

int
ucma_join_ip_mcast(struct ucma_file *f, const union ucma_cmd *c, uint32_t out)
{
	const struct rdma_ucm_join_ip_mcast *j = &c->join_ip_mcast;
	const union ucma_addr a = {.in6 = j->addr};

	(void)out;
	return ucma_addr_len(&a.sa) != 0 ? join(f, j->id, &a, j->uid, j->response) : -EINVAL;
}

/* Members that only send differ in the program: librdmacm does not attach their QPs. */
int
ucma_join_mcast(struct ucma_file *f, const union ucma_cmd *c, uint32_t out)
{
	const struct rdma_ucm_join_mcast *j = &c->join_mcast;
	union ucma_addr a;
	int ret = ucma_addr_get(&a, &j->addr, j->addr_size);

	(void)out;
	if (ret == 0 && j->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
		ret = -EINVAL;
	return ret != 0 ? ret : join(f, j->id, &a, j->uid, j->response);
}

int
ucma_leave_mcast(struct ucma_file *f, const union ucma_cmd *c, uint32_t out)
{
	const uint32_t number = c->destroy_id.id;
	struct rdma_ucm_destroy_id_resp resp;
	struct ucma_mc *mc = number <= f->u->attr.max_ids ? f->u->mcs[number] : NULL;

	(void)out;
	if (mc == NULL)
		return -ENOENT;
	if (mc->id->file != f)
		return -EINVAL;
	ucma_events_drop_mc(mc);
	resp.events_reported = mc->events_reported;
	ucma_mc_free(mc);
	return ucma_reply(f->u, c->destroy_id.response, &resp, sizeof(resp));
}
