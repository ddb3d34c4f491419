/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The device under test, through the public API only: open, calls, clear. */
#include <stdlib.h>
#include <string.h>

#include "exec.h"

#define NO_GID 255 /* past the table */

/* Reads port and GIDs of device @i. */
static bool
look_at(struct exec *x, uint32_t i, char *why, size_t size)
{
	struct bb_port_attr port;
	struct bb_dev_attr dev;
	struct bb_gid gid;
	int ret = bb_port_query(x->dev[i], 1, &port);

	if (ret != 0)
		return exec_fail(why, size, "no port 1: %s", strerror(-ret));
	x->lid[i] = port.lid;
	x->world.ib = port.link_layer == BB_LINK_INFINIBAND;
	x->world.ud_mtu = port.active_mtu;
	(void)bb_dev_query(x->dev[i], &dev);
	x->world.masked = dev.masked_atomics;
	x->world.mkeys = dev.max_mkey_pieces >= 8 && dev.mkey_layout && dev.mkey_interleaved;
	x->world.dm = dev.max_dm_size >= 2 * 4096 && dev.memory_windows;
	x->world.masked_be = dev.masked_atomics_be;
	for (uint32_t k = 0; k < GIDS; k++) {
		ret = bb_gid_query(x->dev[i], 1, k, &gid);
		x->world.gid[i][k].there = ret == 0;
		if (ret != 0)
			continue;
		memcpy(x->world.gid[i][k].raw, gid.raw, sizeof(gid.raw));
		x->world.gid[i][k].type = gid.type;
	}
	return x->world.ib || x->world.gid[i][0].there ||
	       exec_fail(why, size, "no GID 0: %s", strerror(-ret));
}

/* Opens one or two devices, whose specs are joined by '+': "soft0,shuffle=1+soft1". */
struct exec *
exec_open(const char *spec, char *why, size_t size)
{
	struct exec *x = calloc(1, sizeof(*x));
	char copy[256], *save, *one;
	int ret;

	if (x == NULL || strlen(spec) >= sizeof(copy))
		goto no_memory;
	x->arena = aligned_alloc(4096, ARENA);
	if (x->arena == NULL)
		goto no_memory;
	memory_init(x->arena);
	strcpy(copy, spec);
	for (one = strtok_r(copy, "+", &save); one != NULL; one = strtok_r(NULL, "+", &save)) {
		if (x->world.devs == DIFF_DEVS) {
			exec_fail(why, size, "%s: more than %d devices", spec, DIFF_DEVS);
			goto close;
		}
		/* Only a soft device without a progress thread is idle between polls. */
		x->world.own_pace |=
			strncmp(one, "soft", 4) != 0 || strstr(one, ",progress=") != NULL;
		ret = bb_dev_open(one, &x->dev[x->world.devs]);
		if (ret != 0) {
			exec_fail(why, size, "%s does not open: %s", one, strerror(-ret));
			goto close;
		}
		if (!look_at(x, x->world.devs, why, size)) {
			x->world.devs++;
			goto close;
		}
		x->world.devs++;
	}
	x->lkey[NO_KEY] = x->rkey[NO_KEY] = 0xdeadbe;
	return x;

close:
	exec_close(x);
	return NULL;
no_memory:
	exec_fail(why, size, "no memory for the device");
	free(x);
	return NULL;
}

const struct world *
exec_world(const struct exec *x)
{
	return &x->world;
}

void
exec_hurry(struct exec *x, bool on)
{
	x->hurry = on;
}

const struct exec_counts *
exec_counts(const struct exec *x)
{
	return &x->counts;
}

static void *
at(const struct exec *x, uint32_t buf, uint32_t off)
{
	return x->arena + ARENA_OF(buf, off);
}

static int
ah_create(struct exec *x, const uint32_t *a)
{
	struct bb_path path = {.port = 1};

	memcpy(path.dgid, x->world.gid[a[2]][a[3] % GIDS].raw, sizeof(path.dgid));
	path.dlid = x->lid[a[2]];
	path.sgid_index = a[3] < GIDS ? (uint8_t)a[3] : NO_GID;
	path.traffic_class = (uint8_t)a[4];
	path.flow_label = a[5];
	path.hop_limit = (uint8_t)a[6];
	return bb_ah_create(x->pd[a[1]], &path, &x->ah[a[0]]);
}

static int
cq_create(struct exec *x, const uint32_t *a)
{
	struct bb_cq_attr attr;

	bb_cq_attr_init(&attr);
	attr.depth = a[1];
	return bb_cq_create(x->dev[a[0] % x->world.devs], &attr, &x->cq[a[0]]);
}

static int
qp_create(struct exec *x, const uint32_t *a)
{
	struct bb_qp_init_attr attr;

	bb_qp_init_attr_init(&attr);
	attr.type = (enum bb_qp_type)a[12];
	attr.send_cq = x->cq[a[2]];
	attr.recv_cq = x->cq[a[3]];
	attr.srq = a[13] != 0 ? x->srq[a[13] - 1] : NULL;
	attr.sq_depth = a[4];
	attr.rq_depth = a[5];
	attr.max_sge = a[6];
	attr.max_recv_sge = a[7];
	attr.max_inline = a[8];
	attr.signal_all = a[11] || x->world.own_pace;
	attr.signal_every = attr.signal_all ? 0 : a[9];
	attr.db_mode = a[10] & 1 ? BB_DB_BLUEFLAME : BB_DB_DOORBELL;
	return bb_qp_create(x->pd[a[1]], &attr, &x->qp[a[0]]);
}

/*
 * Returns the attributes of a transition. "drop" counts them in this order; UC needs the first
 * ones.
 */
static uint32_t
mask_of(uint32_t type, uint32_t from, uint32_t to, uint32_t drop)
{
	static const uint32_t rtr[] = {BB_QP_PATH,   BB_QP_PATH_MTU,           BB_QP_DEST_QPN,
				       BB_QP_RQ_PSN, BB_QP_MAX_DEST_RD_ATOMIC, BB_QP_MIN_RNR_TIMER};
	static const uint32_t rts[] = {BB_QP_SQ_PSN, BB_QP_TIMEOUT, BB_QP_RETRY_CNT,
				       BB_QP_RNR_RETRY, BB_QP_MAX_RD_ATOMIC};
	static const uint32_t rtr_needs[] = {6, 4, 0}, rts_needs[] = {5, 1, 1};
	const uint32_t right = type == BB_QPT_UD ? BB_QP_QKEY : BB_QP_ACCESS;
	const uint32_t init[] = {right, BB_QP_PKEY_INDEX, BB_QP_PORT};
	const uint32_t *list = NULL;
	uint32_t n = 0, i, mask = BB_QP_STATE;

	if (to == BB_QP_INIT && from != BB_QP_INIT)
		list = init, n = 3;
	else if (to == BB_QP_RTR)
		list = rtr, n = rtr_needs[type];
	else if (to == BB_QP_RTS && from != BB_QP_RTS)
		list = rts, n = rts_needs[type];
	for (i = 0; i < n; i++)
		if (drop == 0 || i != (drop - 1) % n)
			mask |= list[i];
	if ((to == BB_QP_INIT && from == BB_QP_INIT) || to == BB_QP_RTS)
		mask |= right;
	return mask;
}

static int
modify(struct exec *x, const struct model *m, const uint32_t *a)
{
	const struct m_qp *mq = &m->qp[a[0]], *peer = &m->qp[a[2]];
	bool up = peer->state == BB_QP_RTR || peer->state == BB_QP_RTS;
	uint32_t mask = mask_of(mq->type, mq->state, a[1], a[4]), dev = a[2] % x->world.devs;
	struct bb_qp_attr attr;

	bb_qp_attr_init(&attr);
	attr.state = (enum bb_qp_state)a[1];
	attr.access = a[3];
	attr.dest_qpn = NO_QPN;
	if (x->qp[a[2]] != NULL) {
		attr.dest_qpn = x->qp[a[2]]->qpn;
		dev = peer->pd % x->world.devs;
	}
	attr.qkey = a[8];
	memcpy(attr.path.dgid, x->world.gid[dev][0].raw, sizeof(attr.path.dgid));
	attr.path.dlid = x->lid[dev];
	attr.path_mtu = MTU;
	attr.rq_psn = up ? peer->sq_psn : PSN_START;
	attr.sq_psn = mq->sq_psn;
	attr.timeout = 1;
	attr.rnr_retry = (uint8_t)a[6];
	attr.retry_cnt = (uint8_t)a[7];
	if (a[5] != 0) /* an attribute that the transition does not permit */
		mask |= a[1] == BB_QP_INIT || a[1] == BB_QP_RTS ? BB_QP_DEST_QPN : BB_QP_SQ_PSN;
	return bb_qp_modify(x->qp[a[0]], &attr, mask);
}

int
exec_step(struct exec *x, const struct model *m, const struct step *s)
{
	const uint32_t *a = s->a;
	int ret;

	switch (s->op) {
	case OP_PD_ALLOC:
		return bb_pd_alloc(x->dev[a[0] % x->world.devs], &x->pd[a[0]]);
	case OP_PD_FREE:
		ret = bb_pd_free(x->pd[a[0]]);
		if (ret == 0)
			x->pd[a[0]] = NULL;
		return ret;
	case OP_MR_REG:
	case OP_MR_REREG:
	case OP_MR_DEREG:
	case OP_MR_REG_DM:
	case OP_DM_ALLOC:
	case OP_DM_FREE:
	case OP_DM_WRITE:
	case OP_MW_ALLOC:
	case OP_MW_FREE:
	case OP_MKEY_CREATE:
	case OP_MKEY_DESTROY:
		return exec_mem(x, m, s);
	case OP_CQ_CREATE:
		return cq_create(x, a);
	case OP_CQ_DESTROY:
		ret = bb_cq_destroy(x->cq[a[0]]);
		if (ret == 0)
			x->cq[a[0]] = NULL;
		return ret;
	case OP_QP_CREATE:
		return qp_create(x, a);
	case OP_QP_DESTROY:
		ret = bb_qp_destroy(x->qp[a[0]]);
		if (ret == 0)
			x->qp[a[0]] = NULL;
		return ret;
	case OP_MODIFY:
		return modify(x, m, a);
	case OP_RING:
		bb_qp_ring(x->qp[a[0]]);
		return 0;
	case OP_RING_RECV:
		bb_qp_ring_recv(x->qp[a[0]]);
		return 0;
	case OP_FILL:
		for (uint32_t i = 0; i < a[2]; i++)
			*(uint8_t *)at(x, a[0], a[1] + i) = model_pattern(a[3], i);
		return 0;
	case OP_AH_CREATE:
		return ah_create(x, a);
	case OP_AH_DESTROY:
		ret = bb_ah_destroy(x->ah[a[0]]);
		x->ah[a[0]] = NULL;
		return ret;
	case OP_SRQ_CREATE:
	case OP_SRQ_DESTROY:
	case OP_SRQ_MODIFY:
	case OP_SRQ_RECV:
	case OP_SRQ_RING:
		return exec_srq(x, m, s);
	case OP_POST_LIST:
	case OP_RECV_LIST:
		return exec_list(x, m, s);
	default:
		return s->a[A_FLAGS] & LISTED ? 0 : exec_post(x, m, s);
	}
}

bool
exec_clear(struct exec *x, char *why, size_t size)
{
	struct bb_event event;
	int ret = 0;

	for (uint32_t i = 0; i < QPS; i++) {
		if (x->qp[i] != NULL)
			ret |= bb_qp_destroy(x->qp[i]);
		x->qp[i] = NULL;
	}
	for (uint32_t i = 0; i < SRQS; i++) {
		if (x->srq[i] != NULL)
			ret |= bb_srq_destroy(x->srq[i]);
		x->srq[i] = NULL;
	}
	for (uint32_t i = 0; i < CQS; i++) {
		if (x->cq[i] != NULL)
			ret |= bb_cq_destroy(x->cq[i]);
		x->cq[i] = NULL;
	}
	ret |= exec_mem_clear(x);
	for (uint32_t i = 0; i < AHS; i++) {
		if (x->ah[i] != NULL)
			ret |= bb_ah_destroy(x->ah[i]);
		x->ah[i] = NULL;
	}
	for (uint32_t i = 0; i < PDS; i++) {
		if (x->pd[i] != NULL)
			ret |= bb_pd_free(x->pd[i]);
		x->pd[i] = NULL;
	}
	for (uint32_t i = 0; i < x->world.devs; i++)
		while (bb_event_get(x->dev[i], &event) == 0)
			;
	memory_init(x->arena);
	return ret == 0 || exec_fail(why, size, "an object is not destroyed at the end");
}

void
exec_close(struct exec *x)
{
	while (x->world.devs != 0)
		(void)bb_dev_close(x->dev[--x->world.devs]);
	free(x->arena);
	free(x);
}
