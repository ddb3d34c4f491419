/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* QPs of one side that share an SRQ, through the public API, each connected to a QP of the peer. */
#ifndef MLX5_SRQ_ENV_H
#define MLX5_SRQ_ENV_H

#include "../mlx5_env.h"

#define QPS   8
#define DEPTH 32u
#define LEN   64u

/* Side b's QPs share one SRQ; each is connected to a QP of side a. */
struct rig {
	struct env e;
	struct bb_srq *srq;
	struct bb_qp *a[QPS], *b[QPS];
};

static inline void
srq_open(struct rig *r, uint32_t depth, uint32_t max_sge, uint32_t limit)
{
	struct bb_srq_attr attr;

	bb_srq_attr_init(&attr);
	attr.depth = depth;
	attr.max_sge = max_sge;
	attr.limit = limit;
	OK(bb_srq_create(r->e.b.pd, &attr, &r->srq));
}

static inline struct bb_qp *
make_qp(const struct rig *r, const struct side *s, struct bb_srq *srq)
{
	struct bb_qp_init_attr init = r->e.init;
	struct bb_qp *qp;

	init.send_cq = s->cq;
	init.recv_cq = s->cq;
	init.sq_depth = 16;
	init.rq_depth = 16;
	init.srq = srq;
	OK(bb_qp_create(s->pd, &init, &qp));
	return qp;
}

static inline void
rig_open(struct rig *r, uint32_t qps, uint32_t max_sge)
{
	uint32_t i;

	memset(r, 0, sizeof(*r));
	env_open(&r->e);
	srq_open(r, DEPTH, max_sge, 0);
	for (i = 0; i < qps; i++) {
		r->a[i] = make_qp(r, &r->e.a, NULL);
		r->b[i] = make_qp(r, &r->e.b, r->srq);
		connect_pair(r->a[i], r->b[i], &r->e.attr);
	}
}

static inline void
rig_close(struct rig *r)
{
	uint32_t i;

	for (i = 0; i < QPS; i++) {
		if (r->a[i] != NULL)
			OK(bb_qp_destroy(r->a[i]));
		if (r->b[i] != NULL)
			OK(bb_qp_destroy(r->b[i]));
	}
	OK(bb_srq_destroy(r->srq));
	env_stop(&r->e);
}

/* A test of @qps pairs on an SRQ of @max_sge pieces a receive; r is the struct rig. */
#define SRQ_TEST(qps, max_sge, name)                                                               \
	TEST_ON_AS(struct rig, r, rig_open(r, qps, max_sge), rig_close(r), name)

/* Posts receive number @n, which has its own part of the buffer. */
static inline int
post(struct rig *r, uint32_t n)
{
	struct bb_sge sge = sge_of(&r->e.b, (size_t)n * LEN, LEN);

	return bb_post_srq_recv(r->srq, 1000 + n, &sge, 1);
}

static inline void
post_some(struct rig *r, uint32_t from, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		assert_int_equal(post(r, from + i), 0);
	bb_srq_ring(r->srq);
}

static inline void
send_from(struct rig *r, uint32_t qp, uint32_t seed)
{
	uint8_t data[LEN];

	fill(data, LEN, seed);
	OK(bb_post_send_inline(r->a[qp], seed, data, LEN, BB_SEND_SIGNALED));
	bb_qp_ring(r->a[qp]);
}

static inline void
check_data(const struct rig *r, const struct bb_wc *wc, uint32_t seed)
{
	uint8_t want[LEN];

	fill(want, LEN, seed);
	assert_int_equal(wc->byte_len, LEN);
	assert_memory_equal(r->e.b.buf + (wc->wr_id - 1000) * LEN, want, LEN);
}

#endif
