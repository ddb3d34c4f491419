/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The mlx5 driver on a software device with an InfiniBand port. */
#include "../mlx5_env.h"

TEST(test_path_by_lid_works_with_and_without_a_grh)
{
	struct bb_port_attr port;
	struct env e;
	unsigned int i;

	env_open_spec(&e, "soft0,link=ib");
	OK(bb_port_query(e.a.dev, 1, &port));
	assert_int_equal(port.link_layer, BB_LINK_INFINIBAND);
	assert_int_not_equal(port.lid, 0);
	env_qps(&e);
	for (i = 0; i < 2; i++) {
		e.attr.path.is_global = (uint8_t)i;
		connect_pair(e.a.qp, e.b.qp, &e.attr);
		OK(bb_post_write_inline(e.a.qp, i, "lid", 3, raddr_of(&e.b, i * 8), e.b.mr->rkey,
					BB_SEND_SIGNALED));
		env_done(&e, &e.a, i, BB_WC_SUCCESS);
		assert_memory_equal(e.b.buf + i * 8, "lid", 3);
		e.attr.state = BB_QP_RESET;
		OK(bb_qp_modify(e.a.qp, &e.attr, BB_QP_STATE));
		OK(bb_qp_modify(e.b.qp, &e.attr, BB_QP_STATE));
	}
	env_stop(&e);
}

/*
 * A port that needs a GRH on every path, as virtual functions do. bb_qp_connect() adds the GRH; a
 * caller that gives its own path without one gets an error.
 */
TEST(test_port_that_needs_a_grh_gets_one)
{
	struct bb_port_attr port;
	struct bb_path path;
	struct bb_qp_attr got;
	struct bb_ah *ah;
	struct env e;

	env_open_spec(&e, "soft0,link=ib,grh_required");
	OK(bb_port_query(e.a.dev, 1, &port));
	assert_true(port.grh_required);
	env_up(&e);
	OK(bb_post_write_inline(e.a.qp, 1, "grh", 3, raddr_of(&e.b, 0), e.b.mr->rkey,
				BB_SEND_SIGNALED));
	env_done(&e, &e.a, 1, BB_WC_SUCCESS);
	assert_memory_equal(e.b.buf, "grh", 3);
	OK(bb_qp_query(e.a.qp, &got));
	assert_int_equal(got.path.is_global, 1);

	path = got.path;
	OK(bb_ah_create(e.a.pd, &path, &ah));
	OK(bb_ah_destroy(ah));
	path.is_global = 0;
	assert_int_equal(bb_ah_create(e.a.pd, &path, &ah), -EINVAL);
	path.is_global = 1;
	memset(path.dgid, 0, sizeof(path.dgid));
	assert_int_equal(bb_ah_create(e.a.pd, &path, &ah), -EINVAL);
	env_stop(&e);
}

TEST_MAIN(env_eal_init("mlx5_infiniband_port"))
