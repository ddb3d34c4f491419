/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The rdma_cm device node: its open files, the commands of IDs, received MADs and timeouts. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "ucma_priv.h"

#define MAX_IDS 65535u
/*
 * Maximum number of pending requests of one address. All processes of a peer's host have one
 * address, so an address may fill the largest backlog of a listener, as in Linux. But other
 * addresses keep three quarters of the engine's pending requests, and half of the IDs.
 */
#define MAX_PENDING_PER_GID UCMA_MAX_BACKLOG

/* ---- Creation */

static void
send_mad(void *ctx, const struct bb_ibcm_net *net, const uint8_t mad[BB_IBCM_MAD])
{
	const struct ucma *u = ctx;

	u->attr.ops->tx(u->attr.ctx, net, mad);
}

int
ucma_create(const struct ucma_attr *attr, struct ucma **out)
{
	static const struct bb_ibcm_ops ops = {
		.tx = send_mad, .event = ucma_cm_event, .reused = ucma_cm_reused};
	struct bb_ibcm_attr cm;
	struct ucma *u;
	int ret = -ENOMEM;

	if (attr->ops == NULL || attr->max_ids == 0 || attr->max_ids > MAX_IDS || attr->mtu < 1 ||
	    attr->mtu > 5 || attr->ack_delay > 31)
		return -EINVAL;
	u = calloc(1, sizeof(*u));
	if (u == NULL)
		return -ENOMEM;
	u->attr = *attr;
	u->random = attr->seed;
	TAILQ_INIT(&u->live);
	u->ids = calloc(attr->max_ids + 1, sizeof(*u->ids));
	u->mcs = calloc(attr->max_ids + 1, sizeof(*u->mcs));
	if (u->ids == NULL || u->mcs == NULL)
		goto free_ids;
	bb_ibcm_attr_init(&cm);
	/* The CM engine keeps a connection's slot in use for a while after the ID is destroyed. */
	cm.max_conns = 2 * attr->max_ids;
	cm.max_services = attr->max_ids;
	cm.max_pending = 4 * MAX_PENDING_PER_GID;
	cm.max_pending_per_gid = MAX_PENDING_PER_GID;
	cm.ca_guid = attr->node_guid;
	cm.id_prefix = attr->id_prefix;
	cm.seed = attr->seed;
	cm.ops = &ops;
	cm.ctx = u;
	ret = bb_ibcm_create(&cm, &u->cm);
	if (ret != 0)
		goto free_ids;
	*out = u;
	return 0;

free_ids:
	free(u->mcs);
	free(u->ids);
	free(u);
	return ret;
}

void
ucma_destroy(struct ucma *u)
{
	bb_ibcm_destroy(u->cm);
	free(u->mcs);
	free(u->ids);
	free(u);
}

/* ---- Figures */

uint32_t
ucma_ids(const struct ucma *u)
{
	return u->nids;
}

uint32_t
ucma_connections(const struct ucma *u)
{
	return bb_ibcm_in_use(u->cm);
}

const struct bb_ibcm_stats *
ucma_stats(const struct ucma *u)
{
	return bb_ibcm_stats(u->cm);
}

/* ---- Files */

int
ucma_open(struct ucma *u, void *arg, struct ucma_file **out)
{
	struct ucma_file *f = calloc(1, sizeof(*f));

	if (f == NULL)
		return -ENOMEM;
	f->u = u;
	f->arg = arg;
	TAILQ_INIT(&f->events);
	*out = f;
	return 0;
}

void
ucma_close(struct ucma_file *f, uint64_t now)
{
	struct ucma *u = f->u;
	uint32_t i;

	u->now = now;
	for (i = 1; i <= u->attr.max_ids; i++)
		if (u->ids[i] != NULL && u->ids[i]->file == f)
			(void)ucma_id_free(u->ids[i]);
	free(f);
}

/* ---- Commands */

int
ucma_create_id(struct ucma_file *f, const union ucma_cmd *c, uint32_t out)
{
	struct rdma_ucm_create_id_resp resp;
	uint8_t qp_type = c->create_id.qp_type;
	struct ucma_id *id;
	int ret;

	(void)out;
	switch (c->create_id.ps) {
	case RDMA_PS_TCP:
		qp_type = IBV_QPT_RC;
		break;
	case RDMA_PS_UDP:
	case RDMA_PS_IPOIB:
		qp_type = IBV_QPT_UD;
		break;
	case RDMA_PS_IB:
		break;
	default:
		return -EINVAL;
	}
	if (qp_type != IBV_QPT_RC && qp_type != IBV_QPT_UC && qp_type != IBV_QPT_UD)
		return -EINVAL;
	id = ucma_id_new(f->u, c->create_id.ps, qp_type);
	if (id == NULL)
		return -ENOMEM;
	id->file = f;
	id->uid = c->create_id.uid;
	resp.id = id->number;
	ret = ucma_reply(f->u, c->create_id.response, &resp, sizeof(resp));
	if (ret != 0)
		(void)ucma_id_free(id);
	return ret;
}

int
ucma_destroy_id(struct ucma_file *f, const union ucma_cmd *c, uint32_t out)
{
	struct rdma_ucm_destroy_id_resp resp;
	struct ucma_id *id;
	int ret = ucma_id_find(f, c->destroy_id.id, &id);

	(void)out;
	if (ret != 0)
		return ret;
	resp.events_reported = ucma_id_free(id);
	return ucma_reply(f->u, c->destroy_id.response, &resp, sizeof(resp));
}

/* Moves an ID and its events to the file that gets the command (Linux: ucma_migrate_id()). */
int
ucma_migrate_id(struct ucma_file *f, const union ucma_cmd *c, uint32_t out)
{
	struct rdma_ucm_migrate_resp resp;
	struct ucma_file *from;
	struct ucma_id *id;
	int ret = f->u->attr.ops->file(f->u->attr.ctx, c->migrate_id.fd, &from);

	(void)out;
	if (ret == 0)
		ret = ucma_id_find(from, c->migrate_id.id, &id);
	if (ret != 0)
		return ret;
	resp.events_reported = id->events_reported;
	if (from != f) {
		ucma_events_move(id, f);
		id->file = f;
	}
	return ucma_reply(f->u, c->migrate_id.response, &resp, sizeof(resp));
}

/*
 * Sets an option of level RDMA_OPTION_ID (Linux: ucma_set_option_id()). Level RDMA_OPTION_IB sets
 * paths from an SA, which RoCE does not have.
 */
int
ucma_set_option(struct ucma_file *f, const union ucma_cmd *c, uint32_t out)
{
	const struct rdma_ucm_set_option *o = &c->set_option;
	const bool byte =
		o->optname == RDMA_OPTION_ID_TOS || o->optname == RDMA_OPTION_ID_ACK_TIMEOUT;
	uint8_t small = 0;
	int32_t flag = 0;
	struct ucma_id *id;
	int ret = ucma_id_find(f, o->id, &id);

	(void)out;
	if (ret != 0)
		return ret;
	if (o->level != RDMA_OPTION_ID || o->optname > RDMA_OPTION_ID_ACK_TIMEOUT)
		return -ENOSYS;
	if (o->optlen != (byte ? sizeof(small) : sizeof(flag)))
		return -EINVAL;
	ret = f->u->attr.ops->copy_in(f->u->attr.ctx, byte ? (void *)&small : (void *)&flag,
				      o->optval, o->optlen);
	if (ret != 0)
		return ret;
	switch (o->optname) {
	case RDMA_OPTION_ID_TOS:
		id->tos = small;
		return 0;
	case RDMA_OPTION_ID_REUSEADDR: /* Linux: rdma_set_reuseaddr() of core/cma.c */
		if (id->state != UCMA_IDLE && (flag == 0 || id->state == UCMA_LISTEN))
			return -EINVAL;
		id->reuseaddr = flag != 0;
		return 0;
	case RDMA_OPTION_ID_AFONLY:
		if (id->state != UCMA_IDLE && id->state != UCMA_BOUND)
			return -EINVAL;
		id->afonly = flag != 0;
		id->afonly_set = true;
		return 0;
	default: /* ACK_TIMEOUT, 5 bits, only for RC (Linux: rdma_set_ack_timeout()) */
		if (id->qp_type != IBV_QPT_RC || small > 31)
			return -EINVAL;
		id->ack_timeout = small;
		return 0;
	}
}

/* ---- MADs and time */

void
ucma_rx(struct ucma *u, const struct bb_ibcm_gmp *gmp, const uint8_t *mad, size_t len, uint64_t now)
{
	u->now = now;
	bb_ibcm_rx(u->cm, gmp, mad, len, now);
}

void
ucma_tick(struct ucma *u, uint64_t now)
{
	u->now = now;
	bb_ibcm_tick(u->cm, now);
	if (u->queries != 0 && now >= u->query_at) {
		u->query_at = now + UCMA_QUERY_NS;
		ucma_addr_tick(u);
	}
	if (u->peers != 0 && now >= u->check_at) {
		u->check_at = now + UCMA_CHECK_NS;
		ucma_peers_check(u);
	}
}

uint32_t
ucma_finish(struct ucma *u, uint64_t interval, uint64_t now)
{
	return bb_ibcm_finish(u->cm, interval, now);
}

uint64_t
ucma_deadline(const struct ucma *u)
{
	uint64_t at = bb_ibcm_deadline(u->cm);

	if (u->queries != 0 && u->query_at < at)
		at = u->query_at;
	if (u->peers != 0 && u->check_at < at)
		at = u->check_at;
	return at;
}
