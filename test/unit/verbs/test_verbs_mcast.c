/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Multicast groups of the verbs driver on the null provider. */
#include "../../fakes/log_catch.h"
#include "verbs_fixture.h"

static const uint8_t group[16] = {0xff, 0x12, [15] = 1};

static void
limits(struct ibv_device_attr_ex *attr, struct ibv_port_attr *port)
{
	(void)port;
	if (attr == NULL)
		return;
	attr->orig_attr.max_mcast_grp = 8192;
	attr->orig_attr.max_mcast_qp_attach = 56;
}

static int
setup_groups(void **state)
{
	int ret = setup(state);

	null_dev.attr = limits;
	return ret;
}

#define MCAST_TEST(name) TEST_WITH(setup_groups, teardown, name)

MCAST_TEST(test_group_and_lid_reach_libibverbs)
{
	struct fixture f;

	null_dev.infiniband = true;
	make(&f, BB_QPT_UD, false, 0);
	assert_int_equal(bb_qp_mcast_attach(f.qp, group, 0xc001), 0);
	assert_memory_equal(null_dev.mcast_gid, group, sizeof(group));
	assert_fields(null_dev, mcast_lid, 0xc001, mcasts, 1);
	assert_int_equal(bb_qp_mcast_attach(f.qp, group, 0xc001), 0);
	assert_int_equal(null_dev.mcasts, 1);
	/* The LID belongs to the group's identity. */
	assert_int_equal(bb_qp_mcast_detach(f.qp, group, 0xc002), -EINVAL);
	assert_int_equal(bb_qp_mcast_detach(f.qp, group, 0xc001), 0);
	assert_int_equal(null_dev.mcasts, 0);
	fixture_free(&f);
}

MCAST_TEST(test_lid_is_ignored_on_ethernet)
{
	struct fixture f;

	make(&f, BB_QPT_UD, false, 0);
	assert_int_equal(bb_qp_mcast_attach(f.qp, group, 7), 0);
	assert_int_equal(null_dev.mcast_lid, 0);
	assert_int_equal(bb_qp_mcast_detach(f.qp, group, 8), 0);
	fixture_free(&f);
}

MCAST_TEST(test_refused_calls_change_nothing)
{
	struct fixture f;

	make(&f, BB_QPT_UD, false, 0);
	null_dev.fail_errno = ENOMEM;
	null_dev.fail_at = 1;
	assert_logged(bb_qp_mcast_attach(f.qp, group, 0), -ENOMEM,
		      "cannot attach to a multicast group");
	assert_int_equal(bb_qp_mcast_attach(f.qp, group, 0), 0);
	null_dev.fail_errno = EBUSY;
	null_dev.fail_at = 1;
	assert_logged(bb_qp_mcast_detach(f.qp, group, 0), -EBUSY,
		      "cannot detach from a multicast group");
	assert_int_equal(bb_qp_destroy(f.qp), -EBUSY);
	assert_int_equal(bb_qp_mcast_detach(f.qp, group, 0), 0);
	fixture_free(&f);
}

TEST_MAIN(bare_eal_init() < 0 ? 1 : 0)
