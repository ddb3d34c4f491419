/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The mlx5 driver on a software device with an InfiniBand port. */
#include "../mlx5_env.h"

/* Paths by LID, with and without a GRH. */
TEST(infiniband)
{
	struct bb_port_attr port;
	struct env e;
	unsigned int i;

	env_open_spec(&e, "soft0,link=ib");
	assert_int_equal(bb_port_query(e.a.dev, 1, &port), 0);
	assert_int_equal(port.link_layer, BB_LINK_INFINIBAND);
	assert_int_not_equal(port.lid, 0);
	env_qps(&e);
	for (i = 0; i < 2; i++) {
		e.attr.path.is_global = (uint8_t)i;
		connect_pair(e.a.qp, e.b.qp, &e.attr);
		assert_int_equal(bb_post_write_inline(e.a.qp, i, "lid", 3, raddr_of(&e.b, i * 8),
						      e.b.mr->rkey, BB_SEND_SIGNALED),
				 0);
		env_done(&e, &e.a, i, BB_WC_SUCCESS);
		assert_memory_equal(e.b.buf + i * 8, "lid", 3);
		e.attr.state = BB_QP_RESET;
		assert_int_equal(bb_qp_modify(e.a.qp, &e.attr, BB_QP_STATE), 0);
		assert_int_equal(bb_qp_modify(e.b.qp, &e.attr, BB_QP_STATE), 0);
	}
	env_stop(&e);
}

/*
 * A port that needs a GRH on every path, as virtual functions do. bb_qp_connect() adds the GRH; a
 * caller that gives its own path without one gets an error.
 */
TEST(infiniband_grh)
{
	struct bb_port_attr port;
	struct bb_path path;
	struct bb_qp_attr got;
	struct bb_ah *ah;
	struct env e;

	env_open_spec(&e, "soft0,link=ib,grh_required");
	assert_int_equal(bb_port_query(e.a.dev, 1, &port), 0);
	assert_true(port.grh_required);
	env_up(&e);
	assert_int_equal(bb_post_write_inline(e.a.qp, 1, "grh", 3, raddr_of(&e.b, 0), e.b.mr->rkey,
					      BB_SEND_SIGNALED),
			 0);
	env_done(&e, &e.a, 1, BB_WC_SUCCESS);
	assert_memory_equal(e.b.buf, "grh", 3);
	assert_int_equal(bb_qp_query(e.a.qp, &got), 0);
	assert_int_equal(got.path.is_global, 1);

	path = got.path;
	assert_int_equal(bb_ah_create(e.a.pd, &path, &ah), 0);
	assert_int_equal(bb_ah_destroy(ah), 0);
	path.is_global = 0;
	assert_int_equal(bb_ah_create(e.a.pd, &path, &ah), -EINVAL);
	path.is_global = 1;
	memset(path.dgid, 0, sizeof(path.dgid));
	assert_int_equal(bb_ah_create(e.a.pd, &path, &ah), -EINVAL);
	env_stop(&e);
}

TEST_MAIN(env_eal_init("mlx5_infiniband_port"))
