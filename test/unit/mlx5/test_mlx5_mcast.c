/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Multicast groups on a stub of the command interface: mailboxes, failures, limits. */
#include "mlx5_fixture.h"

static const uint8_t group[16] = {0xff, 0x1e, [12] = 0xde, 0xad, 0xbe, 0xef};

static void
open_ud(struct fixture *f, uint32_t max_qp_mcg, uint32_t log_max_mcg)
{
	struct bb_qp_init_attr init = DEFAULTS(qp_init_attr);

	bb_prm_set(stub.general, BB_PRM_HCA_MAX_QP_MCG, max_qp_mcg);
	bb_prm_set(stub.general, BB_PRM_HCA_LOG_MAX_MCG, log_max_mcg);
	open_dev(f);
	init.type = BB_QPT_UD;
	make_qp(f, &init);
}

#define T(name) TEST_WITH(stub_setup, stub_teardown, name)

/* As the kernel's mlx5_cmd_attach_mcg(). */
T_F(test_attach_sends_qpn_and_gid)
{
	struct bb_dev_attr attr;
	const uint8_t *in;
	unsigned int objs;

	open_ud(f, 48, 21);
	assert_int_equal(bb_dev_query(f->dev, &attr), 0);
	assert_fields(attr, max_mcast_qp, 48, max_mcast_grp, 1 << 21);
	objs = stub.objs;
	assert_int_equal(bb_qp_mcast_attach(f->qp, group, 0), 0);
	in = stub_box(0x806);
	assert_non_null(in);
	assert_int_equal(bb_prm_dword(in, 0), 0x08060000);
	assert_int_equal(bb_prm_dword(in, 8), f->qp->qpn);
	assert_memory_equal(in + 16, group, sizeof(group));
	assert_fields(stub, boxes[stub.n_boxes - 1].len, 32, objs, objs + 1);
	/* A second attach is no command. */
	stub.fail_op = BB_PRM_OP_ATTACH_TO_MCG;
	stub.fail_errno = -EIO;
	assert_int_equal(bb_qp_mcast_attach(f->qp, group, 0), 0);
	assert_int_equal(bb_qp_destroy(f->qp), -EBUSY);
	assert_int_equal(bb_qp_mcast_detach(f->qp, group, 0), 0);
	assert_int_equal(stub.objs, objs);
	assert_int_equal(bb_qp_mcast_detach(f->qp, group, 0), -EINVAL);
}

T_F(test_refused_attach_leaves_nothing)
{
	open_ud(f, 1, 0);
	stub.fail_op = BB_PRM_OP_ATTACH_TO_MCG;
	stub.fail_status = BB_PRM_STAT_NO_RES;
	assert_int_equal(bb_qp_mcast_attach(f->qp, group, 0), -ENOMEM);
	assert_int_equal(bb_qp_mcast_detach(f->qp, group, 0), -EINVAL);
}

T_F(test_no_groups_without_max_qp_mcg)
{
	struct bb_dev_attr attr;

	open_ud(f, 0, 21);
	assert_int_equal(bb_dev_query(f->dev, &attr), 0);
	assert_int_equal(attr.max_mcast_grp, 0);
	assert_int_equal(bb_qp_mcast_attach(f->qp, group, 0), -ENOTSUP);
	assert_null(stub_box(BB_PRM_OP_ATTACH_TO_MCG));
}

TEST_MAIN(stub_eal_init("mlx5_mcast"))
