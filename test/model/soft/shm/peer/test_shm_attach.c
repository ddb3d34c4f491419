/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A QP that is created while several engines poll the device. Each engine may receive a packet for
 * any QPN, and looks up the QP without a lock. So the QP must be complete before it can be found.
 */
#include "shm_hand.h"

static unsigned int attached;
static bool found, no_memory;

int __real_soft_qp_attach(struct soft_qp *qp);
int __wrap_soft_qp_attach(struct soft_qp *qp);

int
__wrap_soft_qp_attach(struct soft_qp *qp)
{
	attached++;
	found |= soft_qp_find(qp->dev, qp->qpn) != NULL;
	return no_memory ? -ENOMEM : __real_soft_qp_attach(qp);
}

TEST_WITH(open_port, close_port, test_qp_is_found_only_after_it_is_complete)
{
	struct bb_qp_init_attr init;
	struct bb_cq_attr cq_attr;
	struct bb_qp_addr addr;
	struct bb_pd *pd;
	struct bb_cq *cq;
	struct bb_qp *qp;
	const struct soft_qp *q;
	uint32_t i;

	attached = 0;
	found = false;
	OK(bb_pd_alloc(dev, &pd));
	bb_cq_attr_init(&cq_attr);
	OK(bb_cq_create(dev, &cq_attr, &cq));
	bb_qp_init_attr_init(&init);
	init.send_cq = cq;
	init.recv_cq = cq;
	OK(bb_qp_create(pd, &init, &qp));
	assert_int_equal(attached, 1);
	assert_false(found);
	OK(bb_qp_addr(qp, 1, 1, &addr));
	q = soft_qp_find(shm->dev, addr.qpn);
	assert_non_null(q);
	assert_non_null(q->wire);
	OK(bb_qp_destroy(qp));
	assert_null(soft_qp_find(shm->dev, addr.qpn));
	no_memory = true;
	assert_int_not_equal(bb_qp_create(pd, &init, &qp), 0);
	no_memory = false;
	assert_int_equal(attached, 2);
	for (i = 0; i < 1u << SOFT_LOG_MAX_QP; i++)
		assert_null(soft_qp_find(shm->dev, i));
	OK(bb_cq_destroy(cq));
	OK(bb_pd_free(pd));
}

TEST_MAIN(env_eal_init("shm_attach"))
