/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Slots of rings, doorbell records and events. The next queue reuses what a destroyed or failed
 * queue returned.
 */
#include "mlx5_fixture.h"

struct place {
	const void *ring, *rec;
	uint32_t slot;
};

static void
same(const struct place *a, const struct place *b)
{
	assert_ptr_equal(a->ring, b->ring);
	assert_ptr_equal(a->rec, b->rec);
	assert_int_equal(a->slot, b->slot);
}

static int
cq(struct fixture *f, struct place *p)
{
	struct bb_cq_attr attr = DEFAULTS(cq_attr);
	struct bb_cq *q;
	int ret;

	attr.depth = 256;
	ret = bb_cq_create(f->dev, &attr, &q);
	if (ret != 0)
		return ret;
	*p = (struct place){q->ring.buf, q->ring.dbrec, (uint32_t)stub.cookie};
	return bb_cq_destroy(q);
}

static int
srq(struct fixture *f, struct place *p)
{
	struct bb_srq_attr attr = DEFAULTS(srq_attr);
	struct bb_srq *q;
	int ret;

	attr.depth = 256;
	ret = bb_srq_create(f->pd, &attr, &q);
	if (ret != 0)
		return ret;
	*p = (struct place){q->ring.buf, q->ring.dbrec, (uint32_t)stub.cookie};
	return bb_srq_destroy(q);
}

static int
qp(struct fixture *f, struct place *p)
{
	struct bb_qp_init_attr init = DEFAULTS(qp_init_attr);
	struct bb_qp *q;
	int ret;

	init.send_cq = init.recv_cq = f->cq;
	ret = bb_qp_create(f->pd, &init, &q);
	if (ret != 0)
		return ret;
	*p = (struct place){q->rq.buf, q->rq.conf_dbrec, (uint32_t)stub.cookie};
	return bb_qp_destroy(q);
}

static const struct {
	int (*make)(struct fixture *f, struct place *p);
	uint16_t create;
} kinds[] = {
	{cq, BB_PRM_OP_CREATE_CQ},
	{srq, BB_PRM_OP_CREATE_RMP},
	{qp, BB_PRM_OP_CREATE_QP},
};

TEST_WITH(stub_setup, stub_teardown, test_failed_or_destroyed_object_returns_its_slots)
{
	struct place first, p;
	struct fixture f;

	open_qp(&f); /* keeps the pages of records alive */
	for (size_t i = 0; i < RTE_DIM(kinds); i++) {
		unsigned int alive = stub_alive();

		assert_int_equal(kinds[i].make(&f, &first), 0);
		assert_int_equal(kinds[i].make(&f, &p), 0);
		same(&p, &first);
		stub.fail_op = kinds[i].create;
		stub.fail_status = BB_PRM_STAT_NO_RES;
		assert_int_equal(kinds[i].make(&f, &p), -ENOMEM);
		stub.fail_op = 0;
		stub.subscribe_errno = -EINVAL;
		assert_int_equal(kinds[i].make(&f, &p), -EINVAL);
		stub.subscribe_errno = 0;
		assert_int_equal(kinds[i].make(&f, &p), 0);
		same(&p, &first);
		assert_int_equal(stub_alive(), alive);
	}
	close_dev(&f);
}

static void
cq_make(struct fixture *f, uint32_t depth, struct bb_cq **q)
{
	struct bb_cq_attr attr = DEFAULTS(cq_attr);

	attr.depth = depth;
	assert_int_equal(bb_cq_create(f->dev, &attr, q), 0);
}

/*
 * A CQ whose resize failed keeps its old ring only. A CQ destroyed during a resize returns both
 * rings.
 */
TEST_WITH(stub_setup, stub_teardown, test_resized_cq_returns_its_rings)
{
	struct place first, p;
	struct fixture f;
	const uint8_t *in;
	struct bb_cq *q;

	bb_prm_set(stub.general, BB_PRM_HCA_CQ_RESIZE, 1);
	open_qp(&f);
	assert_int_equal(cq(&f, &first), 0);
	cq_make(&f, 64, &q);
	stub.fail_op = BB_PRM_OP_MODIFY_CQ;
	stub.fail_status = BB_PRM_STAT_BAD_RES_STATE;
	assert_int_equal(bb_cq_resize(q, 128), -EINVAL);
	assert_int_equal(bb_cq_depth(q), 64);
	stub.fail_op = 0;
	assert_int_equal(bb_cq_destroy(q), 0);
	assert_int_equal(cq(&f, &p), 0);
	same(&p, &first);

	cq_make(&f, 64, &q);
	assert_int_equal(bb_cq_resize(q, 128), -EIO);
	in = stub_box(BB_PRM_OP_MODIFY_CQ);
	/* The kernel sets it, too; a direct firmware command must do so itself. */
	assert_int_equal(bb_prm_get(in, BB_PRM_MODIFY_CQ_UMEM_VALID), 1);
	assert_int_equal(bb_cq_destroy(q), 0);
	assert_int_equal(cq(&f, &p), 0);
	same(&p, &first);
	close_dev(&f);
}

TEST_MAIN(stub_eal_init("mlx5_slot_reuse"))
