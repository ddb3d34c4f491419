/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* CREATE_QP, the transitions and QUERY_QP through raw mailboxes. */
#include "soft_ctl_env.h"

/* A connected RC flow, and what QUERY_QP says of it. */
static void
test_flow(void **state)
{
	struct env *env = *state;
	uint8_t in[BB_PRM_SZ_SHORT] = {0}, out[BB_PRM_SZ_QUERY_QP_OUT];
	const uint8_t *qpc = out + SOFT_QPC_AT, *ads = out + SOFT_ADS_AT;

	env_qp_to(env, BB_PRM_QP_RTS);
	env_op(in, BB_PRM_OP_QUERY_QP);
	bb_prm_set(in, BB_PRM_QUERY_QP_QPN, env->qpn);
	assert_int_equal(soft_cmd_if.obj_query(env->qp, in, sizeof(in), out, sizeof(out)), 0);
	assert_int_equal(bb_prm_get(qpc, BB_PRM_QPC_STATE), BB_PRM_QP_RTS);
	assert_int_equal(bb_prm_get(qpc, BB_PRM_QPC_PD), env->pd->pdn);
	assert_int_equal(bb_prm_get(qpc, BB_PRM_QPC_MTU), 3);
	assert_int_equal(bb_prm_get(qpc, BB_PRM_QPC_REMOTE_QPN), env->qpn);
	assert_int_equal(bb_prm_get(qpc, BB_PRM_QPC_NEXT_RCV_PSN), 0x123456);
	assert_int_equal(bb_prm_get(qpc, BB_PRM_QPC_RNR_RETRY), 6);
	assert_int_equal(bb_prm_get(qpc, BB_PRM_QPC_RWE), 1);
	assert_int_equal(bb_prm_get(qpc, BB_PRM_QPC_RRE), 0);
	assert_int_equal(bb_prm_get(ads, BB_PRM_ADS_ACK_TIMEOUT), 14);
	assert_int_equal(bb_prm_get(ads, BB_PRM_ADS_UDP_SPORT), 0xc001);
	assert_ptr_equal(env->dev->qps[env->qpn]->peer_dev, env->dev);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_flow, env_setup, env_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
