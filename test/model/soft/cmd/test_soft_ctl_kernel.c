/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Commands that the kernel refuses before the firmware sees them. */
#include "soft_ctl_env.h"
#include "soft_hooks.h"
#include "soft_kernel.h"

T(test_each_method_passes_its_opcodes)
{
	uint8_t in[BB_PRM_SZ_CREATE_QP_IN] = {0}, out[BB_PRM_SZ_QUERY_HCA_CAP_OUT];
	static const uint16_t never_general[] = {0x203,
						 BB_PRM_OP_CREATE_QP,
						 BB_PRM_OP_DESTROY_QP,
						 BB_PRM_OP_2RST_QP,
						 BB_PRM_OP_QUERY_QP,
						 BB_PRM_OP_ALLOC_Q_COUNTER,
						 BB_PRM_OP_DEALLOC_Q_COUNTER,
						 BB_PRM_OP_DESTROY_CQ,
						 0,
						 0xd00,
						 0xaff,
						 0xffff};
	static const uint16_t never_create[] = {BB_PRM_OP_QUERY_HCA_CAP, BB_PRM_OP_DESTROY_CQ,
						BB_PRM_OP_QUERY_QP, BB_PRM_OP_RST2INIT_QP, 0};
	static const uint16_t never_modify[] = {BB_PRM_OP_QUERY_QP, BB_PRM_OP_DESTROY_QP,
						BB_PRM_OP_CREATE_QP, BB_PRM_OP_QUERY_HCA_CAP,
						0x50c};
	static const uint16_t never_query[] = {BB_PRM_OP_2RST_QP, BB_PRM_OP_QUERY_HCA_CAP,
					       BB_PRM_OP_DESTROY_QP};
	/* Passed to the firmware, which does not know them. */
	static const uint16_t unknown_general[] = {0x754, 0x760, 0x762, 0x80d, 0xb00, 0xcff};
	static const uint16_t unknown_create[] = {0x800, 0x816};
	struct mlx5_obj *obj = NULL;
	size_t i;

	env_qp_to(env, BB_PRM_QP_INIT);
	for (i = 0; i < RTE_DIM(never_general); i++) {
		env_op(in, never_general[i]);
		memset(out, 0xee, 16);
		assert_int_equal(soft_cmd_if.general(env->ctx, in, 16, out, sizeof(out)), -EINVAL);
		assert_int_equal(out[0], 0xee);
	}
	for (i = 0; i < RTE_DIM(never_create); i++) {
		env_op(in, never_create[i]);
		assert_int_equal(soft_cmd_if.obj_create(env->ctx, in, 16, out, 16, &obj), -EINVAL);
	}
	bb_prm_set(in, BB_PRM_MODIFY_QP_QPN, env->qpn);
	for (i = 0; i < RTE_DIM(never_modify); i++) {
		env_op(in, never_modify[i]);
		assert_int_equal(soft_cmd_if.obj_modify(env->qp, in, 16, out, 16), -EINVAL);
	}
	for (i = 0; i < RTE_DIM(never_query); i++) {
		env_op(in, never_query[i]);
		assert_int_equal(soft_cmd_if.obj_query(env->qp, in, 16, out, 16), -EINVAL);
	}
	memset(in, 0, sizeof(in));
	for (i = 0; i < RTE_DIM(unknown_general); i++) {
		env_op(in, unknown_general[i]);
		env_log(env);
		env_refused(env, "general", soft_cmd_if.general(env->ctx, in, 16, out, 16), out,
			    BB_PRM_STAT_BAD_OP, "opcode");
	}
	for (i = 0; i < RTE_DIM(unknown_create); i++) {
		env_op(in, unknown_create[i]);
		env_log(env);
		env_refused(env, "create",
			    soft_cmd_if.obj_create(env->ctx, in, sizeof(in), out, 16, &obj), out,
			    BB_PRM_STAT_BAD_OP, "opcode");
	}
	assert_null(obj);
	assert_int_equal(env->dev->qps[env->qpn]->state, BB_PRM_QP_INIT);
}

T(test_query_lag_of_ports_that_are_not_bonded)
{
	static const uint8_t zeros[BB_PRM_SZ_SHORT];
	uint8_t in[BB_PRM_SZ_SHORT] = {0}, out[BB_PRM_SZ_SHORT];

	env_op(in, BB_PRM_OP_QUERY_LAG);
	memset(out, 0xee, sizeof(out));
	OK(soft_cmd_if.general(env->ctx, in, sizeof(in), out, sizeof(out)));
	assert_memory_equal(out, zeros, sizeof(out));
	in[9] = 1;
	env_refused(env, "general", soft_cmd_if.general(env->ctx, in, sizeof(in), out, sizeof(out)),
		    out, BB_PRM_STAT_BAD_PARAM, "reserved");
}

/* The mailbox must name the object of the handle; otherwise the command has no effect. */
T(test_mailbox_of_another_handle_has_no_effect)
{
	uint8_t in[BB_PRM_SZ_MODIFY_QP_IN], out[BB_PRM_SZ_QUERY_QP_OUT];
	struct mlx5_obj *first;
	uint32_t first_qpn;

	env_qp_to(env, BB_PRM_QP_RST);
	first = env->qp;
	first_qpn = env->qpn;
	env_qp_to(env, BB_PRM_QP_RST);

	env_modify_in(env, BB_PRM_OP_RST2INIT_QP, first_qpn, in);
	assert_int_equal(soft_cmd_if.obj_modify(env->qp, in, sizeof(in), out, 16), -EINVAL);
	/* A CQ's handle with a QP's number, even if the numbers are equal. */
	env_modify_in(env, BB_PRM_OP_RST2INIT_QP, env->cqn, in);
	assert_int_equal(soft_cmd_if.obj_modify(env->cq, in, sizeof(in), out, 16), -EINVAL);
	memset(in, 0, sizeof(in));
	env_op(in, BB_PRM_OP_QUERY_QP);
	bb_prm_set(in, BB_PRM_QUERY_QP_QPN, first_qpn);
	assert_int_equal(soft_cmd_if.obj_query(env->qp, in, 16, out, sizeof(out)), -EINVAL);
	/* A counter set's number would be past the 16 bytes of the mailbox. */
	env_op(in, BB_PRM_OP_QUERY_Q_COUNTER);
	assert_int_equal(soft_cmd_if.obj_query(env->qp, in, 16, out, sizeof(out)), -EINVAL);
	assert_int_equal(env->dev->qps[first_qpn]->state, BB_PRM_QP_RST);
	assert_int_equal(env->dev->qps[env->qpn]->state, BB_PRM_QP_RST);
	OK(soft_cmd_if.obj_destroy(first));
}

T(test_uid_of_a_mailbox_is_refused)
{
	uint8_t in[BB_PRM_SZ_CREATE_QP_IN], out[BB_PRM_SZ_QUERY_HCA_CAP_OUT];
	struct mlx5_obj *obj = NULL;

	env_qp_in(env, in);
	bb_prm_set(in, BB_PRM_CMD_UID, 1);
	env_log(env);
	assert_int_equal(soft_cmd_if.obj_create(env->ctx, in, sizeof(in), out, 16, &obj), -EINVAL);
	assert_non_null(strstr(env_log(env), "uid"));
	memset(in, 0, 16);
	env_op(in, BB_PRM_OP_QUERY_HCA_CAP);
	bb_prm_set(in, BB_PRM_CMD_UID, 0xffff);
	assert_int_equal(soft_cmd_if.general(env->ctx, in, 16, out, sizeof(out)), -EINVAL);
}

/* The errno of a destroy that the firmware refuses (cmd_status_to_err()). */
TEST(test_refused_destroy_has_the_kernels_errno)
{
	assert_int_equal(soft_kernel_status_errno(BB_PRM_STAT_OK), 0);
	assert_int_equal(soft_kernel_status_errno(BB_PRM_STAT_RES_BUSY), -EBUSY);
	assert_int_equal(soft_kernel_status_errno(BB_PRM_STAT_BAD_RES), -EINVAL);
	assert_int_equal(soft_kernel_status_errno(BB_PRM_STAT_BAD_RES_STATE), -EINVAL);
	assert_int_equal(soft_kernel_status_errno(BB_PRM_STAT_NO_RES), -EAGAIN);
	assert_int_equal(soft_kernel_status_errno(BB_PRM_STAT_LIM_ERR), -ENOMEM);
	assert_int_equal(soft_kernel_status_errno(BB_PRM_STAT_BAD_INP_LEN), -EIO);
	assert_int_equal(soft_kernel_status_errno(0xee), -EIO);
}

TEST_MAIN(0)
