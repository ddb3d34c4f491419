/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* RMPs on a stub of the command interface: mailboxes, failures, events. */
#include "mlx5_fixture.h"

static void
make_srq(struct fixture *f, uint32_t depth, uint32_t max_sge, uint32_t limit, struct bb_srq **srq)
{
	struct bb_srq_attr attr = DEFAULTS(srq_attr);

	attr.depth = depth;
	attr.max_sge = max_sge;
	attr.limit = limit;
	assert_int_equal(bb_srq_create(f->pd, &attr, srq), 0);
}

T_DEV(test_srq_mailboxes_equal_those_of_the_kernel)
{
	struct bb_qp_init_attr init = DEFAULTS(qp_init_attr);
	struct bb_srq_attr got;
	const uint8_t *in, *c;
	struct bb_srq *srq;

	make_srq(f, 32, 2, 7, &srq);
	/* As create_rmp_cmd() in the kernel's srq_cmd.c. */
	in = stub_box(BB_PRM_OP_CREATE_RMP);
	c = in + BB_PRM_CREATE_RMP_CTX.byte;
	assert_int_equal(bb_prm_get(c, BB_PRM_RMPC_STATE), 1);
	assert_int_equal(bb_prm_get(c, BB_PRM_RMPC_BASIC_CYCLIC), 0);
	c += BB_PRM_RMPC_WQ.byte;
	assert_int_equal(bb_prm_get(c, BB_PRM_WQ_TYPE), 0);
	assert_int_equal(bb_prm_get(c, BB_PRM_WQ_PD), STUB_PDN);
	/* A head and two pieces: 64 bytes. 32 receives need 33 WQEs. */
	assert_int_equal(bb_prm_get(c, BB_PRM_WQ_LOG_STRIDE), 6);
	assert_int_equal(bb_prm_get(c, BB_PRM_WQ_LOG_SZ), 6);
	assert_int_equal(bb_prm_get(c, BB_PRM_WQ_LWM), 0);
	assert_int_equal(bb_prm_get(c, BB_PRM_WQ_UMEM_VALID), 1);
	assert_int_equal(bb_prm_get(c, BB_PRM_WQ_DBR_UMEM_VALID), 1);
	assert_ptr_equal(srq->ring.buf, stub.umem_addr + bb_prm_get64(c, BB_PRM_WQ_UMEM_OFFSET));
	assert_ptr_equal(srq->ring.dbrec, stub.umem_addr + bb_prm_get64(c, BB_PRM_WQ_DBR_ADDR));
	assert_fields(srq->ring, max_sge, 3, depth, 32);
	/* As arm_rmp_cmd(). */
	in = stub_box(BB_PRM_OP_MODIFY_RMP);
	assert_int_equal(bb_prm_get(in, BB_PRM_MODIFY_RMP_STATE), 1);
	assert_int_equal(bb_prm_get(in, BB_PRM_MODIFY_RMP_RMPN), srq->srqn);
	assert_int_equal(bb_prm_dword(in, BB_PRM_MODIFY_RMP_BITMASK.byte + 4), 1);
	c = in + BB_PRM_MODIFY_RMP_CTX.byte;
	assert_int_equal(bb_prm_get(c, BB_PRM_RMPC_STATE), 1);
	assert_int_equal(bb_prm_get(c + BB_PRM_RMPC_WQ.byte, BB_PRM_WQ_LWM), 7);
	assert_int_equal(bb_srq_query(srq, &got), 0);
	assert_fields(got, max_sge, 3, depth, 32);

	/* A QP on it. */
	init.srq = srq;
	init.scatter_to_cqe = true;
	make_qp(f, &init);
	c = stub_box(BB_PRM_OP_CREATE_QP) + BB_PRM_CREATE_QP_QPC.byte;
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_RQ_TYPE), 1);
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_SRQN_RMPN_XRQN), srq->srqn);
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_LOG_RQ_SIZE), 0);
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_LOG_RQ_STRIDE), 0);
	/* mlx5_ib.h: MLX5_REQ_SCAT_DATA32_CQE, MLX5_RES_SCAT_DATA32_CQE */
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_CS_REQ), 0x11);
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_CS_RES), 0x1);
	assert_true((stub.types >> BB_PRM_EVENT_SRQ_LAST_WQE & 1) != 0);
	assert_int_equal(bb_qp_destroy(f->qp), 0);
	f->qp = NULL;
	assert_int_equal(bb_srq_destroy(srq), 0);
}

/* Whichever step fails, nothing is left, and a failed destroy can be repeated. */
T_DEV(test_failed_srq_step_leaves_nothing)
{
	struct bb_srq_attr attr = DEFAULTS(srq_attr);
	struct bb_srq *srq = NULL;
	unsigned int objs;

	objs = stub.objs;
	attr.limit = 3;
	stub.fail_op = BB_PRM_OP_CREATE_RMP;
	stub.fail_status = BB_PRM_STAT_LIM_ERR;
	assert_int_equal(bb_srq_create(f->pd, &attr, &srq), -ENOMEM);
	stub.fail_op = BB_PRM_OP_MODIFY_RMP;
	stub.fail_status = BB_PRM_STAT_BAD_PARAM;
	assert_int_equal(bb_srq_create(f->pd, &attr, &srq), -EINVAL);
	stub.fail_op = 0;
	stub.subscribe_errno = -ENOMEM;
	assert_int_equal(bb_srq_create(f->pd, &attr, &srq), -ENOMEM);
	stub.subscribe_errno = 0;
	stub.no_uar = true;
	assert_true(bb_srq_create(f->pd, &attr, &srq) < 0);
	stub.no_uar = false;
	assert_null(srq);
	assert_int_equal(stub.objs, objs);
	assert_int_equal(bb_srq_create(f->pd, &attr, &srq), 0);
	stub.fail_op = BB_PRM_OP_MODIFY_RMP;
	stub.fail_status = BB_PRM_STAT_BAD_RES_STATE;
	assert_int_equal(bb_srq_modify(srq, 1), -EINVAL);
	stub.fail_op = BB_PRM_OP_QUERY_RMP;
	attr.depth = 4711;
	assert_int_equal(bb_srq_query(srq, &attr), -EINVAL);
	assert_int_equal(attr.depth, 4711);
	stub.fail_op = 0;
	assert_int_equal(bb_srq_destroy(srq), 0);
}

T_DEV(test_srq_reports_limit_and_error)
{
	struct bb_event ev;
	struct bb_srq *srq;
	uint64_t cookie;

	make_srq(f, 8, 1, 0, &srq);
	cookie = stub.cookie;
	assert_int_equal(stub.types,
			 1u << BB_PRM_EVENT_SRQ_CATAS_ERROR | 1u << BB_PRM_EVENT_SRQ_RQ_LIMIT);
	stub_event(BB_PRM_EVENT_SRQ_RQ_LIMIT, cookie, 0);
	stub_event(BB_PRM_EVENT_SRQ_CATAS_ERROR, cookie, 0);
	/* Events of other objects are skipped. */
	stub_event(BB_PRM_EVENT_CQ_ERROR, cookie, 0);
	stub_event(BB_PRM_EVENT_SRQ_LAST_WQE, cookie, 0);
	stub_event(BB_PRM_EVENT_WQ_CATAS_ERROR, cookie, 0);
	assert_int_equal(bb_event_get(f->dev, &ev), 0);
	assert_int_equal(ev.type, BB_EVENT_SRQ_LIMIT);
	assert_ptr_equal(ev.srq, srq);
	assert_int_equal(bb_event_get(f->dev, &ev), 0);
	assert_int_equal(ev.type, BB_EVENT_SRQ_ERROR);
	assert_ptr_equal(ev.srq, srq);
	assert_int_equal(bb_event_get(f->dev, &ev), -EAGAIN);
	/* No event of a destroyed SRQ is reported. */
	assert_int_equal(bb_srq_destroy(srq), 0);
	stub_event(BB_PRM_EVENT_SRQ_RQ_LIMIT, cookie, 0);
	assert_int_equal(bb_event_get(f->dev, &ev), -EAGAIN);
}

/* Capabilities that the device must have, and the limits derived from them. */
T(test_srq_needs_its_capabilities)
{
	static const struct {
		struct bb_prm_field f;
		uint32_t value, max_srq;
	} cases[] = {
		{BB_PRM_HCA_LOG_MAX_RMP, 0, 0},
		{BB_PRM_HCA_LOG_MAX_SRQ_SZ, 0, 0},
		{BB_PRM_HCA_MAX_WQE_SZ_RQ, 16, 0},
		{BB_PRM_HCA_LOG_MAX_RMP, 4, 16},
	};
	struct bb_srq_attr attr;
	struct bb_srq *srq = NULL;
	struct bb_dev_attr dev;
	struct fixture f;

	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		stub_reset();
		bb_prm_set(stub.general, cases[i].f, cases[i].value);
		open_dev(&f);
		assert_int_equal(bb_dev_query(f.dev, &dev), 0);
		assert_int_equal(dev.max_srq, cases[i].max_srq);
		assert_int_equal(dev.max_srq_wr != 0, cases[i].max_srq != 0);
		bb_srq_attr_init(&attr);
		if (cases[i].max_srq == 0)
			assert_int_equal(bb_srq_create(f.pd, &attr, &srq), -ENOTSUP);
		assert_null(srq);
		close_dev(&f);
	}
	/* The record counts 16 bits, so at most half of that range may be outstanding. */
	stub_reset();
	bb_prm_set(stub.general, BB_PRM_HCA_LOG_MAX_SRQ_SZ, 20);
	open_dev(&f);
	assert_int_equal(bb_dev_query(f.dev, &dev), 0);
	assert_int_equal(dev.max_srq_wr, 32767);
	close_dev(&f);
}

TEST_MAIN(stub_eal_init("mlx5_srq"))
