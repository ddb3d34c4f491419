/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The device under test, through the public API alone: open, make the calls, clear. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exec.h"

#define NO_QPN 0xfffff0u

/* Specs of one or two devices, joined by '+': "soft0,shuffle=1+soft1". */
struct exec *
exec_open(const char *spec, char *why, size_t size)
{
	struct exec *x = calloc(1, sizeof(*x));
	char copy[256], *save, *one;
	struct bb_port_attr port;
	int ret;

	if (x == NULL || strlen(spec) >= sizeof(copy))
		goto no_memory;
	x->arena = aligned_alloc(4096, ARENA);
	if (x->arena == NULL)
		goto no_memory;
	memory_init(x->arena);
	strcpy(copy, spec);
	for (one = strtok_r(copy, "+", &save); one != NULL; one = strtok_r(NULL, "+", &save)) {
		if (x->devs == DIFF_DEVS) {
			exec_fail(why, size, "%s: more than %d devices", spec, DIFF_DEVS);
			goto close;
		}
		/* Only a soft device that nobody else runs does nothing between polls. */
		x->own_pace |= strncmp(one, "soft", 4) != 0 || strstr(one, ",progress=") != NULL;
		ret = bb_dev_open(one, &x->dev[x->devs]);
		if (ret != 0) {
			exec_fail(why, size, "%s does not open: %s", one, strerror(-ret));
			goto close;
		}
		ret = bb_port_query(x->dev[x->devs], 1, &port);
		if (ret == 0)
			ret = bb_gid_query(x->dev[x->devs], 1, 0, &x->gid[x->devs]);
		x->lid[x->devs] = port.lid;
		x->ib = port.link_layer == BB_LINK_INFINIBAND;
		x->devs++;
		if (ret != 0 && !x->ib) {
			exec_fail(why, size, "%s has no GID 0: %s", one, strerror(-ret));
			goto close;
		}
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

uint32_t
exec_devs(const struct exec *x)
{
	return x->devs;
}

bool
exec_own_pace(const struct exec *x)
{
	return x->own_pace;
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

static void
keys_of(struct exec *x, uint32_t slot)
{
	x->lkey[slot] = x->mr[slot]->lkey;
	x->rkey[slot] = x->mr[slot]->rkey;
}

static int
mr_step(struct exec *x, const struct step *s)
{
	const uint32_t *a = s->a;
	int ret;

	if (s->op == OP_MR_DEREG) {
		ret = bb_mr_dereg(x->mr[a[0]]);
		if (ret == 0)
			x->mr[a[0]] = NULL;
		return ret;
	}
	if (s->op == OP_MR_REG)
		ret = bb_mr_reg(x->pd[a[1]], at(x, a[2], a[3]), a[4], a[5], &x->mr[a[0]]);
	else
		ret = bb_mr_rereg(x->mr[a[0]], a[1], x->pd[a[2]], at(x, a[3], a[4]), a[5], a[6]);
	if (ret != 0)
		return ret;
	keys_of(x, a[0]);
	if (s->op == OP_MR_REG)
		x->key_dev[a[0]] = a[1] % x->devs;
	else if ((a[1] & BB_MR_REREG_PD) != 0)
		x->key_dev[a[0]] = a[2] % x->devs;
	return 0;
}

/*
 * A key's number. Each device counts its keys by itself, so that of another device may by
 * chance be one of this device's: no test of anything.
 */
static uint32_t
key_on(const struct exec *x, const uint32_t *keys, uint32_t slot, uint32_t dev)
{
	return keys[slot < MRS && x->key_dev[slot] != dev ? NO_KEY : slot];
}

static uint32_t
lkey_of(const struct exec *x, const struct model *m, uint32_t qp, uint32_t slot)
{
	return key_on(x, x->lkey, slot, m->qp[qp].pd % x->devs);
}

static uint32_t
rkey_of(const struct exec *x, const struct model *m, uint32_t qp, uint32_t slot)
{
	const uint32_t peer = m->qp[qp].peer;

	return key_on(x, x->rkey, slot, peer < QPS ? m->qp[peer].pd % x->devs : 0);
}

static int
cq_create(struct exec *x, const uint32_t *a)
{
	struct bb_cq_attr attr;

	bb_cq_attr_init(&attr);
	attr.depth = a[1];
	return bb_cq_create(x->dev[a[0] % x->devs], &attr, &x->cq[a[0]]);
}

static int
qp_create(struct exec *x, const uint32_t *a)
{
	struct bb_qp_init_attr attr;

	bb_qp_init_attr_init(&attr);
	attr.send_cq = x->cq[a[2]];
	attr.recv_cq = x->cq[a[3]];
	attr.sq_depth = a[4];
	attr.rq_depth = a[5];
	attr.max_sge = a[6];
	attr.max_recv_sge = a[7];
	attr.max_inline = a[8];
	attr.signal_all = a[11] || x->own_pace;
	attr.signal_every = attr.signal_all ? 0 : a[9];
	attr.db_mode = a[10] & 1 ? BB_DB_BLUEFLAME : BB_DB_DOORBELL;
	return bb_qp_create(x->pd[a[1]], &attr, &x->qp[a[0]]);
}

/* The attributes of a transition, in the order that "drop" counts. */
static uint32_t
mask_of(uint32_t from, uint32_t to, uint32_t drop)
{
	static const uint32_t init[] = {BB_QP_ACCESS, BB_QP_PKEY_INDEX, BB_QP_PORT};
	static const uint32_t rtr[] = {BB_QP_PATH,   BB_QP_PATH_MTU,           BB_QP_DEST_QPN,
				       BB_QP_RQ_PSN, BB_QP_MAX_DEST_RD_ATOMIC, BB_QP_MIN_RNR_TIMER};
	static const uint32_t rts[] = {BB_QP_TIMEOUT, BB_QP_RETRY_CNT, BB_QP_RNR_RETRY,
				       BB_QP_SQ_PSN, BB_QP_MAX_RD_ATOMIC};
	const uint32_t *list = NULL;
	uint32_t n = 0, i, mask = BB_QP_STATE;

	if (to == BB_QP_INIT && from != BB_QP_INIT)
		list = init, n = 3;
	else if (to == BB_QP_RTR)
		list = rtr, n = 6;
	else if (to == BB_QP_RTS && from != BB_QP_RTS)
		list = rts, n = 5;
	for (i = 0; i < n; i++)
		if (drop == 0 || i != (drop - 1) % n)
			mask |= list[i];
	if ((to == BB_QP_INIT && from == BB_QP_INIT) || to == BB_QP_RTS)
		mask |= BB_QP_ACCESS;
	return mask;
}

static int
modify(struct exec *x, const struct model *m, const uint32_t *a)
{
	const struct m_qp *mq = &m->qp[a[0]], *peer = &m->qp[a[2]];
	bool up = peer->state == BB_QP_RTR || peer->state == BB_QP_RTS;
	uint32_t mask = mask_of(mq->state, a[1], a[4]), dev = a[2] % x->devs;
	struct bb_qp_attr attr;

	bb_qp_attr_init(&attr);
	attr.state = (enum bb_qp_state)a[1];
	attr.access = a[3];
	attr.dest_qpn = NO_QPN;
	if (x->qp[a[2]] != NULL) {
		attr.dest_qpn = x->qp[a[2]]->qpn;
		dev = peer->pd % x->devs;
	}
	memcpy(attr.path.dgid, x->gid[dev].raw, sizeof(attr.path.dgid));
	attr.path.dlid = x->lid[dev];
	attr.path_mtu = MTU;
	attr.rq_psn = up ? peer->sq_psn : PSN_START;
	attr.sq_psn = mq->sq_psn;
	attr.timeout = 1;
	attr.rnr_retry = (uint8_t)a[6];
	attr.retry_cnt = (uint8_t)a[7];
	if (a[5] != 0) /* an attribute that does not belong there */
		mask |= a[1] == BB_QP_INIT || a[1] == BB_QP_RTS ? BB_QP_DEST_QPN : BB_QP_SQ_PSN;
	return bb_qp_modify(x->qp[a[0]], &attr, mask);
}

/* ---- Posts */

static uint32_t
sges_of(const struct exec *x, const struct model *m, const struct step *s, struct bb_sge *sge)
{
	struct m_sge list[MAX_SGE];
	uint32_t n = model_seq_sges(s, list), i;

	memset(sge, 0, sizeof(*sge) * (MAX_SGE + 1));
	for (i = 0; i < n; i++)
		sge[i] = (struct bb_sge){(uintptr_t)at(x, list[i].buf, list[i].off), list[i].len,
					 lkey_of(x, m, s->a[0], list[i].key)};
	/* More pieces than there can be: the last ones are empty. */
	return s->a[A_N] > MAX_SGE ? MAX_SGE + 1 : n;
}

static int
post_inline(const struct exec *x, const struct model *m, const struct step *s, uint64_t wr_id)
{
	const uint32_t *a = s->a;
	struct bb_qp *qp = x->qp[a[0]];
	uint64_t raddr = (uintptr_t)at(x, a[I_RBUF], a[I_ROFF]);
	uint32_t rkey = rkey_of(x, m, a[0], a[I_RKEY]), i;
	uint8_t data[MAX_INLINE];

	for (i = 0; i < a[I_LEN]; i++)
		data[i] = model_pattern(a[I_SEED], i);
	switch (s->op) {
	case OP_WRITE_INLINE:
		return bb_post_write_inline(qp, wr_id, data, a[I_LEN], raddr, rkey, a[A_FLAGS]);
	case OP_WRITE_IMM_INLINE:
		return bb_post_write_imm_inline(qp, wr_id, data, a[I_LEN], raddr, rkey, a[I_IMM],
						a[A_FLAGS]);
	case OP_SEND_INLINE:
		return bb_post_send_inline(qp, wr_id, data, a[I_LEN], a[A_FLAGS]);
	default:
		return bb_post_send_imm_inline(qp, wr_id, data, a[I_LEN], a[I_IMM], a[A_FLAGS]);
	}
}

static int
post_atomic(const struct exec *x, const struct model *m, const struct step *s, uint64_t wr_id)
{
	const uint32_t *a = s->a;
	const struct bb_sge sge = {(uintptr_t)at(x, a[AT_SGE + 1], a[AT_SGE + 2]), a[AT_SGE + 3],
				   lkey_of(x, m, a[0], a[AT_SGE])};
	uint64_t raddr = (uintptr_t)at(x, a[AT_RBUF], a[AT_ROFF]);
	uint32_t rkey = rkey_of(x, m, a[0], a[AT_RKEY]);

	if (s->op == OP_FETCH_ADD)
		return bb_post_fetch_add(x->qp[a[0]], wr_id, &sge, raddr, rkey, a[AT_X],
					 a[A_FLAGS]);
	return bb_post_cmp_swap(x->qp[a[0]], wr_id, &sge, raddr, rkey, a[AT_X], a[AT_Y],
				a[A_FLAGS]);
}

static int
post(const struct exec *x, const struct model *m, const struct step *s)
{
	const uint32_t *a = s->a;
	uint64_t wr_id = (m->next_wr + 1) << 1 | (s->op == OP_RECV);
	struct bb_qp *qp = x->qp[a[0]];
	struct bb_sge sge[MAX_SGE + 1];
	uint32_t n, rkey;
	uint64_t raddr;

	if (s->op == OP_NOP)
		return bb_post_nop(qp, wr_id, a[A_FLAGS]);
	if (s->op >= OP_WRITE_INLINE && s->op <= OP_SEND_IMM_INLINE)
		return post_inline(x, m, s, wr_id);
	if (s->op == OP_CMP_SWAP || s->op == OP_FETCH_ADD)
		return post_atomic(x, m, s, wr_id);
	n = sges_of(x, m, s, sge);
	if (s->op == OP_RECV)
		return bb_post_recv(qp, wr_id, sge, n);
	raddr = (uintptr_t)at(x, a[A_RBUF], a[A_ROFF]);
	rkey = rkey_of(x, m, a[0], a[A_RKEY]);
	switch (s->op) {
	case OP_WRITE:
		return bb_post_write(qp, wr_id, sge, n, raddr, rkey, a[A_FLAGS]);
	case OP_WRITE_IMM:
		return bb_post_write_imm(qp, wr_id, sge, n, raddr, rkey, a[A_IMM], a[A_FLAGS]);
	case OP_READ:
		return bb_post_read(qp, wr_id, sge, n, raddr, rkey, a[A_FLAGS]);
	case OP_SEND:
		return bb_post_send(qp, wr_id, sge, n, a[A_FLAGS]);
	default:
		return bb_post_send_imm(qp, wr_id, sge, n, a[A_IMM], a[A_FLAGS]);
	}
}

int
exec_step(struct exec *x, const struct model *m, const struct step *s)
{
	const uint32_t *a = s->a;
	uint32_t i;
	int ret;

	switch (s->op) {
	case OP_PD_ALLOC:
		return bb_pd_alloc(x->dev[a[0] % x->devs], &x->pd[a[0]]);
	case OP_PD_FREE:
		ret = bb_pd_free(x->pd[a[0]]);
		if (ret == 0)
			x->pd[a[0]] = NULL;
		return ret;
	case OP_MR_REG:
	case OP_MR_REREG:
	case OP_MR_DEREG:
		return mr_step(x, s);
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
		for (i = 0; i < a[2]; i++)
			*(uint8_t *)at(x, a[0], a[1] + i) = model_pattern(a[3], i);
		return 0;
	default:
		return post(x, m, s);
	}
}

bool
exec_clear(struct exec *x, char *why, size_t size)
{
	struct bb_event event;
	int ret = 0;
	uint32_t i;

	for (i = 0; i < QPS; i++) {
		if (x->qp[i] != NULL)
			ret |= bb_qp_destroy(x->qp[i]);
		x->qp[i] = NULL;
	}
	for (i = 0; i < CQS; i++) {
		if (x->cq[i] != NULL)
			ret |= bb_cq_destroy(x->cq[i]);
		x->cq[i] = NULL;
	}
	for (i = 0; i < MRS; i++) {
		if (x->mr[i] != NULL)
			ret |= bb_mr_dereg(x->mr[i]);
		x->mr[i] = NULL;
		x->lkey[i] = x->rkey[i] = x->lkey[NO_KEY];
	}
	for (i = 0; i < PDS; i++) {
		if (x->pd[i] != NULL)
			ret |= bb_pd_free(x->pd[i]);
		x->pd[i] = NULL;
	}
	for (i = 0; i < x->devs; i++)
		while (bb_event_get(x->dev[i], &event) == 0)
			;
	memory_init(x->arena);
	return ret == 0 || exec_fail(why, size, "an object is not destroyed at the end");
}

void
exec_close(struct exec *x)
{
	while (x->devs != 0)
		(void)bb_dev_close(x->dev[--x->devs]);
	free(x->arena);
	free(x);
}
