/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* QPs of the fake driver and their state changes. */
#ifndef QP_FIXTURE_H
#define QP_FIXTURE_H

#include "core_fixture.h"

#define TO_INIT (BB_QP_STATE | BB_QP_PKEY_INDEX | BB_QP_PORT | BB_QP_ACCESS)
#define TO_RTR                                                                                     \
	(BB_QP_STATE | BB_QP_PATH | BB_QP_PATH_MTU | BB_QP_DEST_QPN | BB_QP_RQ_PSN |               \
	 BB_QP_MAX_DEST_RD_ATOMIC | BB_QP_MIN_RNR_TIMER)
#define TO_RTS                                                                                     \
	(BB_QP_STATE | BB_QP_TIMEOUT | BB_QP_RETRY_CNT | BB_QP_RNR_RETRY | BB_QP_SQ_PSN |          \
	 BB_QP_MAX_RD_ATOMIC)

static inline void
init_attr(struct fixture *f, struct bb_qp_init_attr *attr)
{
	bb_qp_init_attr_init(attr);
	attr->send_cq = f->cq;
	attr->recv_cq = f->cq;
	attr->sq_depth = 32;
	attr->rq_depth = 16;
}

static inline struct bb_qp *
qp_create(struct fixture *f)
{
	struct bb_qp_init_attr attr;
	struct bb_qp *qp = NULL;

	init_attr(f, &attr);
	assert_int_equal(bb_qp_create(f->pd, &attr, &qp), 0);
	return qp;
}

static inline void
good_attr(struct bb_qp_attr *a)
{
	bb_qp_attr_init(a);
	a->dest_qpn = 0x77;
	a->rq_psn = 1;
	a->sq_psn = 2;
	a->path.dlid = 3;
	a->path.dgid[15] = 4;
}

static inline int
modify(struct bb_qp *qp, enum bb_qp_state to, uint32_t mask)
{
	struct bb_qp_attr a;

	good_attr(&a);
	a.state = to;
	return bb_qp_modify(qp, &a, mask);
}

/* Moves a QP from RESET to state @to. */
static inline void
bring_to(struct bb_qp *qp, enum bb_qp_state to)
{
	if (to == BB_QP_RESET)
		return;
	if (to == BB_QP_ERR) {
		assert_int_equal(modify(qp, BB_QP_ERR, BB_QP_STATE), 0);
		return;
	}
	assert_int_equal(modify(qp, BB_QP_INIT, TO_INIT), 0);
	if (to == BB_QP_INIT)
		return;
	assert_int_equal(modify(qp, BB_QP_RTR, TO_RTR), 0);
	if (to == BB_QP_RTR)
		return;
	assert_int_equal(modify(qp, BB_QP_RTS, TO_RTS), 0);
}

#endif
