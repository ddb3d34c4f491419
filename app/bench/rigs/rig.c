/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <stdlib.h>
#include <string.h>

#include "rig.h"

#define QPN      0x123
#define SRC_SIZE ((BASELINE_SPREAD + 1) * 8 + 64)

enum {
	BLOCKS = 1 << RIG_LOG_BLOCKS,
	CQES = 1 << RIG_LOG_CQES,
};

/*
 * Memory of the queues that a rig (software queues without a device) works on. No two members share
 * a cache line.
 */
struct layout {
	uint8_t sq[BLOCKS * 64];
	uint8_t cq[CQES * 64];
	uint8_t rq[CQES * 16];
	uint64_t recv_ids[CQES];
	uint64_t reg[64];
	uint32_t sq_rec[16];
	uint32_t cq_rec[16];
	struct bb_sq_wqe wqes[BLOCKS];
	uint8_t src[SRC_SIZE];
	uint8_t dst[SRC_SIZE];
};

static int
rig_bluebell(struct rig *r, struct layout *m, enum bb_db_mode mode)
{
	const struct bb_sq_conf conf = {
		.buf = m->sq,
		.wqes = m->wqes,
		.blocks = BLOCKS,
		.qpn = QPN,
		.depth = BLOCKS / 2,
		.max_sge = 4,
		.max_inline = 64,
		.sig_every = BLOCKS / 8,
		.dbrec = &m->sq_rec[1],
		.reg = m->reg,
		.bf_size = mode == BB_DB_BLUEFLAME ? sizeof(m->reg) / 2 : 0,
		.db_mode = mode,
#ifdef __x86_64__
		.bf_copy = __builtin_cpu_supports("avx2") ? BB_BF_COPY_AVX2 : BB_BF_COPY_PLAIN,
#endif
		.owner = UINT32_MAX,
	};
	const struct bb_rq_conf recv = {
		.buf = m->rq,
		.wr_ids = m->recv_ids,
		.wqes = CQES,
		.depth = CQES,
		.log_stride = 4,
		.max_sge = 1,
		.dbrec = &m->sq_rec[0],
		.qpn = QPN,
		.owner = UINT32_MAX,
	};
	int rc = bb_sq_init(&r->qp.sq, &conf);

	if (rc == 0)
		rc = bb_rq_init(&r->qp.rq, &recv);
	if (rc != 0)
		return rc;
	bb_sq_enable(&r->qp.sq, true);
	bb_rq_enable(&r->qp.rq);
	r->qp.rq.connected = true;
	rc = bb_cqring_init(&r->cq.ring, m->cq, RIG_LOG_CQES, m->cq_rec);
	if (rc != 0)
		return rc;
	r->qps[0] = &r->qp;
	r->cq.qps = r->qps;
	r->cq.owner = UINT32_MAX;
	return 0;
}

static void
rig_baseline(struct rig *r, struct layout *m)
{
	unsigned int i;

	r->baseline = (struct baseline_qp){
		.sq = m->sq,
		.cq = m->cq,
		.sq_mask = BLOCKS - 1,
		.cq_mask = CQES - 1,
		.cq_log = RIG_LOG_CQES,
		.qpn = QPN,
		.sq_rec = &m->sq_rec[1],
		.cq_rec = m->cq_rec,
		.reg = m->reg,
		.src = m->src,
		.raddr = (uint64_t)(uintptr_t)m->dst,
		.lkey = 0x1100,
		.rkey = 0x2200,
	};
	for (i = 0; i < CQES; i++)
		m->cq[i * 64 + 63] = 0xf1;
}

static struct rig *
make(bool bluebell, enum bb_db_mode mode)
{
	struct rig *r = aligned_alloc(128, (sizeof(*r) + 127) / 128 * 128);
	struct layout *m = aligned_alloc(4096, (sizeof(*m) + 4095) / 4096 * 4096);

	if (r == NULL || m == NULL)
		goto fail;
	memset(r, 0, sizeof(*r));
	memset(m, 0, sizeof(*m));
	r->mem = (uint8_t *)m;
	r->src = m->src;
	r->dst = m->dst;
	if (!bluebell)
		rig_baseline(r, m);
	else if (rig_bluebell(r, m, mode) != 0)
		goto fail;
	r->dev = (struct baseline_dev){
		.sq = m->sq,
		.cq = m->cq,
		.sq_mask = BLOCKS - 1,
		.cq_mask = CQES - 1,
		.cq_log = RIG_LOG_CQES,
		.sq_rec = &m->sq_rec[1],
		.rq_rec = &m->sq_rec[0],
		.reg = m->reg,
	};
	return r;

fail:
	free(m);
	free(r);
	return NULL;
}

struct rig *
rig_new(bool bluebell)
{
	return make(bluebell, BB_DB_DOORBELL);
}

struct rig *
rig_new_blueflame(void)
{
	return make(true, BB_DB_BLUEFLAME);
}

void
rig_free(struct rig *r)
{
	if (r == NULL)
		return;
	free(r->mem);
	free(r);
}
