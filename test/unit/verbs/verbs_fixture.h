/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* A device on the null provider and all objects that a QP needs. The QP is its own peer. */
#ifndef VERBS_FIXTURE_H
#define VERBS_FIXTURE_H

#include <errno.h>
#include <string.h>

#include "bare_eal.h"
#include "bb_defaults.h"
#include "bb_test_on.h"
#include "bluebell.h"
#include "verbs_null.h"

#define LEN 4096u

/* Kinds of provider; each test runs on all of them. */
static const struct {
	bool no_cq_ex, no_qp_ex, no_td, rxe;
} kinds[] = {{false, false, false, false},
	     {true, true, true, false},
	     {false, true, false, false},
	     {false, false, true, false},
	     {false, false, true, true}};

/* Returns true if requests are posted by ibv_wr_*(), false if by ibv_post_send(). */
static inline bool
extended(size_t kind)
{
	return !kinds[kind].no_qp_ex && !kinds[kind].no_td && !kinds[kind].rxe;
}

/* Returns true if completions are polled by ibv_poll_cq(). */
static inline bool
plain_cq(size_t kind)
{
	return kinds[kind].no_cq_ex || kinds[kind].rxe;
}

struct fixture {
	struct bb_dev *dev;
	struct bb_pd *pd;
	struct bb_cq *cq;
	struct bb_srq *srq;
	struct bb_channel *ch;
	struct bb_qp *qp;
	struct bb_mr *mr;
};

static uint8_t mem[2 * LEN] __attribute__((aligned(64)));
#define FROM ((uintptr_t)mem)
#define TO   ((uintptr_t)mem + LEN)

static inline void
fixture_free(struct fixture *f)
{
	if (f->qp != NULL)
		assert_int_equal(bb_qp_destroy(f->qp), 0);
	if (f->srq != NULL)
		assert_int_equal(bb_srq_destroy(f->srq), 0);
	if (f->cq != NULL)
		assert_int_equal(bb_cq_destroy(f->cq), 0);
	if (f->ch != NULL)
		assert_int_equal(bb_channel_destroy(f->ch), 0);
	if (f->mr != NULL)
		assert_int_equal(bb_mr_dereg(f->mr), 0);
	if (f->pd != NULL)
		assert_int_equal(bb_pd_free(f->pd), 0);
	if (f->dev != NULL)
		assert_int_equal(bb_dev_close(f->dev), 0);
	assert_int_equal(null_dev.misuse, 0);
	memset(f, 0, sizeof(*f));
}

static inline int
connect_to_itself(struct bb_qp *qp)
{
	struct bb_qp_attr attr = DEFAULTS(qp_attr);
	struct bb_qp_addr addr;
	int ret;

	attr.access = BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE;
	attr.max_rd_atomic = 16;
	attr.max_dest_rd_atomic = 16;
	ret = bb_qp_addr(qp, 1, 0, &addr);
	return ret == 0 ? bb_qp_connect(qp, &addr, &addr, &attr) : ret;
}

/* Makes everything that a QP needs. Returns 0 or the first error. */
static inline int
fixture_make(struct fixture *f, enum bb_qp_type type, bool srq)
{
	struct bb_qp_init_attr init = DEFAULTS(qp_init_attr);
	struct bb_srq_attr sattr = DEFAULTS(srq_attr);
	struct bb_cq_attr cattr = DEFAULTS(cq_attr);
	int ret;

	memset(f, 0, sizeof(*f));
	ret = bb_dev_open(null_dev.mlx5 ? "verbs:" NULL_NAME : NULL_NAME, &f->dev);
	if (ret == 0)
		ret = bb_pd_alloc(f->dev, &f->pd);
	if (ret == 0)
		ret = bb_mr_reg(f->pd, mem, sizeof(mem),
				BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE |
					BB_ACCESS_REMOTE_READ |
					(null_dev.no_atomics ? 0 : BB_ACCESS_REMOTE_ATOMIC) |
					BB_ACCESS_MW_BIND,
				&f->mr);
	if (ret == 0)
		ret = bb_channel_create(f->dev, &f->ch);
	cattr.channel = f->ch;
	if (ret == 0)
		ret = bb_cq_create(f->dev, &cattr, &f->cq);
	sattr.max_sge = 2;
	if (ret == 0 && srq)
		ret = bb_srq_create(f->pd, &sattr, &f->srq);
	init.type = type;
	init.sq_depth = 16;
	init.rq_depth = 16;
	init.max_sge = 4;
	init.max_recv_sge = 2;
	init.send_cq = f->cq;
	init.recv_cq = f->cq;
	init.srq = f->srq;
	if (ret == 0)
		ret = bb_qp_create(f->pd, &init, &f->qp);
	if (ret != 0)
		return ret;
	return type == BB_QPT_UD ? bb_qp_ud_up(f->qp, 1, 0, 0x11, 5) : connect_to_itself(f->qp);
}

static inline void
make(struct fixture *f, enum bb_qp_type type, bool srq, size_t kind)
{
	null_dev.no_cq_ex = kinds[kind].no_cq_ex;
	null_dev.no_qp_ex = kinds[kind].no_qp_ex;
	null_dev.no_td = kinds[kind].no_td;
	null_dev.rxe = kinds[kind].rxe;
	assert_int_equal(fixture_make(f, type, srq), 0);
	for (uint32_t i = 0; i < LEN; i++) {
		mem[i] = (uint8_t)(i * 7 + 1);
		mem[LEN + i] = 0;
	}
}

static inline struct bb_sge
piece(const struct fixture *f, uintptr_t addr, uint32_t len)
{
	return (struct bb_sge){addr, len, f->mr->lkey};
}

/* Takes exactly @n completions. */
static inline void
take(struct fixture *f, struct bb_wc *wc, unsigned int n)
{
	struct bb_wc more;

	assert_int_equal(bb_cq_poll(f->cq, wc, n), n);
	assert_int_equal(bb_cq_poll(f->cq, &more, 1), 0);
}

static inline void
one(struct fixture *f, int posted, uint64_t wr_id, enum bb_wc_opcode opcode)
{
	struct bb_wc wc;

	assert_int_equal(posted, 0);
	bb_qp_ring(f->qp);
	take(f, &wc, 1);
	assert_fields(wc, status, BB_WC_SUCCESS, wr_id, wr_id, opcode, opcode);
	assert_ptr_equal(wc.qp, f->qp);
}

static inline void
post_recv(struct fixture *f, uint64_t wr_id)
{
	const struct bb_sge sge[2] = {piece(f, TO, 10), piece(f, TO + 100, 60)};

	if (f->srq != NULL) {
		assert_int_equal(bb_post_srq_recv(f->srq, wr_id, sge, 2), 0);
		bb_srq_ring(f->srq);
	} else {
		assert_int_equal(bb_post_recv(f->qp, wr_id, sge, 2), 0);
		bb_qp_ring_recv(f->qp);
	}
}

static int
setup(void **state)
{
	(void)state;
	null_reset();
	return 0;
}

/* Asserts that no object of the provider is left and no CQ has overrun. */
static int
teardown(void **state)
{
	(void)state;
	return null_dev.objects == 0 && null_dev.overruns == 0 ? 0 : -1;
}

#define T(name) TEST_WITH(setup, teardown, name)
/* A test that makes @f itself; what is left of it is freed after the body. */
#define T_F(name)                                                                                  \
	TEST_ON(setup, teardown, struct fixture, memset(f, 0, sizeof(*f)), fixture_free(f), name)
/* A test on the first kind of provider: @f is made before and freed after the body. */
#define T_ON(type, srq, name)                                                                      \
	TEST_ON(setup, teardown, struct fixture, make(f, type, srq, 0), fixture_free(f), name)
/* A test whose body runs on each kind of provider. */
#define T_KINDS(type, srq, name)                                                                   \
	static void name##_on(struct fixture *f);                                                  \
	T(name)                                                                                    \
	{                                                                                          \
		struct fixture f;                                                                  \
		size_t k;                                                                          \
                                                                                                   \
		for (k = 0; k < RTE_DIM(kinds); k++) {                                             \
			make(&f, type, srq, k);                                                    \
			name##_on(&f);                                                             \
			fixture_free(&f);                                                          \
			null_reset();                                                              \
		}                                                                                  \
	}                                                                                          \
	static void name##_on(struct fixture *f)

#endif
