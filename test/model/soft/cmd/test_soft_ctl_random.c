/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Mailboxes spoiled at random. Every call ends as the command interface defines. No object is
 * lost, and the device touches only its own memory (the sanitizers check that).
 */
#include "soft_ctl_env.h"

#define ROUNDS 60000

static uint64_t seed = 88172645463325252u;

/* Marsaglia's xorshift. */
static uint32_t
rnd(uint32_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 32) % below;
}

/* Flips a few bits, replaces a word, or both. */
static void
spoil(uint8_t *in, size_t len)
{
	uint32_t i, n = rnd(4);

	for (i = 0; i < n; i++)
		in[4 + rnd((uint32_t)len - 4)] ^= (uint8_t)(1 << rnd(8));
	if (rnd(3) == 0) {
		static const uint32_t words[] = {0,          1,         0x7fffffff,    0x80000000,
						 UINT32_MAX, ENV_BYTES, ENV_BYTES - 64};
		uint32_t at = 4 + 4 * rnd((uint32_t)len / 4 - 1);
		struct bb_prm_field f = {(uint16_t)at, 0, 32};

		bb_prm_set(in, f, words[rnd(RTE_DIM(words))]);
	}
}

/* Returns the right length, or sometimes another one within the buffers. */
static size_t
some_len(size_t right, size_t max)
{
	return rnd(8) != 0 ? right : rnd((uint32_t)max + 1);
}

static void
check_outcome(const char *what, int ret, const uint8_t *out, size_t outlen)
{
	uint32_t status, syndrome;

	if (ret == -EINVAL || ret == -ENOENT)
		return;
	if ((ret != 0 && ret != -EREMOTEIO) || outlen < BB_PRM_SZ_SHORT)
		fail_msg("%s: ret %d, output of %zu bytes", what, ret, outlen);
	status = bb_prm_get(out, BB_PRM_CMD_STATUS);
	syndrome = bb_prm_get(out, BB_PRM_CMD_SYNDROME);
	if ((ret == 0) != (status == 0) || (ret == 0) != (syndrome == 0))
		fail_msg("%s: ret %d, status 0x%x, syndrome 0x%x", what, ret, status, syndrome);
}

static void
run_engine(struct env *env)
{
	void (*fn)(void *arg) = NULL;
	void *arg = NULL;

	soft_cmd_if.progress_of(env->ctx, env->uar, &fn, &arg);
	fn(arg);
}

T(test_random_create_qp_leaves_nothing)
{
	struct census before = env_census(env);
	uint32_t i, made = 0;

	for (i = 0; i < ROUNDS; i++) {
		uint8_t in[BB_PRM_SZ_CREATE_QP_IN + 64] = {0}, out[64];
		size_t right = BB_PRM_SZ_CREATE_QP_IN, inlen, outlen;
		struct mlx5_obj *obj = NULL;
		int ret;

		switch (rnd(3)) {
		case 0:
			env_qp_in(env, in);
			break;
		case 1:
			env_cq_in(env, in);
			break;
		default:
			env_op(in, BB_PRM_OP_ALLOC_Q_COUNTER);
			right = BB_PRM_SZ_SHORT;
			break;
		}
		spoil(in, right);
		inlen = some_len(right, sizeof(in));
		outlen = some_len(BB_PRM_SZ_SHORT, sizeof(out));
		ret = soft_cmd_if.obj_create(env->ctx, in, inlen, out, outlen, &obj);
		check_outcome("create", ret, out, outlen);
		assert_int_equal(ret == 0, obj != NULL);
		if (obj != NULL) {
			made++;
			run_engine(env);
			OK(soft_cmd_if.obj_destroy(obj));
		}
		env_same("create", before, env_census(env));
	}
	/* Enough mailboxes were refused, and enough accepted. */
	assert_in_range(made, ROUNDS / 10, ROUNDS * 9 / 10);
}

T(test_random_modify_qp_changes_nothing_refused)
{
	static const uint16_t ops[] = {
		BB_PRM_OP_RST2INIT_QP, BB_PRM_OP_INIT2RTR_QP,  BB_PRM_OP_RTR2RTS_QP,
		BB_PRM_OP_RTS2RTS_QP,  BB_PRM_OP_INIT2INIT_QP, BB_PRM_OP_2ERR_QP,
		BB_PRM_OP_2RST_QP,
	};
	uint32_t i, done = 0, states[BB_PRM_QP_ERR + 1] = {0};

	env_qp_to(env, BB_PRM_QP_RST);
	for (i = 0; i < ROUNDS; i++) {
		uint8_t in[BB_PRM_SZ_MODIFY_QP_IN + 64] = {0}, out[64];
		/* Mostly the next transition, so that all states occur. */
		static const uint16_t next[] = {
			[BB_PRM_QP_RST] = BB_PRM_OP_RST2INIT_QP,
			[BB_PRM_QP_INIT] = BB_PRM_OP_INIT2RTR_QP,
			[BB_PRM_QP_RTR] = BB_PRM_OP_RTR2RTS_QP,
			[BB_PRM_QP_RTS] = BB_PRM_OP_RTS2RTS_QP,
			[BB_PRM_QP_ERR] = BB_PRM_OP_2RST_QP,
		};
		uint32_t now = env->dev->qps[env->qpn]->state, pick = rnd(14);
		uint16_t op = pick < RTE_DIM(ops) ? ops[pick] : next[now];
		size_t right = env_modify_len(op), inlen, outlen;
		int ret;

		states[now]++;
		env_modify_in(env, op, env->qpn, in);
		spoil(in, right);
		inlen = some_len(right, sizeof(in));
		outlen = some_len(BB_PRM_SZ_SHORT, sizeof(out));
		ret = soft_cmd_if.obj_modify(env->qp, in, inlen, out, outlen);
		check_outcome("modify", ret, out, outlen);
		done += ret == 0;
		run_engine(env);
	}
	assert_in_range(done, ROUNDS / 10, ROUNDS * 9 / 10);
	for (i = BB_PRM_QP_RST; i <= BB_PRM_QP_RTS; i++)
		assert_int_not_equal(states[i], 0);
	assert_int_not_equal(states[BB_PRM_QP_ERR], 0);
}

T(test_random_queries_are_refused_or_answered)
{
	uint8_t alloc[BB_PRM_SZ_SHORT] = {0}, out[BB_PRM_SZ_QUERY_HCA_CAP_OUT];
	struct mlx5_obj *set;
	uint32_t id, i;

	env_op(alloc, BB_PRM_OP_ALLOC_Q_COUNTER);
	OK(soft_cmd_if.obj_create(env->ctx, alloc, sizeof(alloc), out, 16, &set));
	id = bb_prm_get(out, BB_PRM_ALLOC_Q_COUNTER_OUT_ID);
	env_qp_to(env, BB_PRM_QP_RTS);
	for (i = 0; i < ROUNDS / 10; i++) {
		uint8_t in[64] = {0};
		size_t outlen = some_len(BB_PRM_SZ_QUERY_QP_OUT, sizeof(out));
		int ret;

		switch (rnd(3)) {
		case 0:
			env_op(in, BB_PRM_OP_QUERY_QP);
			bb_prm_set(in, BB_PRM_QUERY_QP_QPN, env->qpn);
			spoil(in, BB_PRM_SZ_SHORT);
			ret = soft_cmd_if.obj_query(
				env->qp, in, some_len(BB_PRM_SZ_SHORT, sizeof(in)), out, outlen);
			break;
		case 1:
			env_op(in, BB_PRM_OP_QUERY_Q_COUNTER);
			bb_prm_set(in, BB_PRM_QUERY_Q_COUNTER_ID, id);
			spoil(in, BB_PRM_SZ_QUERY_Q_COUNTER_IN);
			ret = soft_cmd_if.obj_query(
				set, in, some_len(BB_PRM_SZ_QUERY_Q_COUNTER_IN, sizeof(in)), out,
				outlen);
			break;
		default:
			env_op(in, (uint16_t)rnd(0x1000));
			spoil(in, BB_PRM_SZ_SHORT);
			ret = soft_cmd_if.general(
				env->ctx, in, some_len(BB_PRM_SZ_SHORT, sizeof(in)), out, outlen);
			break;
		}
		check_outcome("query", ret, out, outlen);
	}
	OK(soft_cmd_if.obj_destroy(set));
}

TEST_MAIN(0)
