/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Numbers that protect a connection: QP numbers and keys are drawn at random and are not reused
 * soon.
 */
#include "soft_ctl_env.h"

#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool no_random;

/* Replaces libc's function. */
ssize_t
getrandom(void *buf, size_t len, unsigned int flags)
{
	if (!no_random)
		return syscall(SYS_getrandom, buf, len, flags);
	errno = ENOSYS;
	return -1;
}

static struct mlx5_mr *
mr_reg(struct env *env)
{
	struct mlx5_mr_attr attr = mlx5_mr_mem(env->mem, 4096, BB_ACCESS_LOCAL_WRITE);
	struct mlx5_mr *mr;

	OK(soft_cmd_if.mr_reg(env->ctx, env->pd, &attr, &mr));
	return mr;
}

/*
 * Every number is drawn, none twice, and a freed number is not reused while others are free. The
 * device has few numbers, so that reuse is frequent.
 */
TEST(test_drawn_numbers_rest_before_they_return)
{
	enum {
		FIRST = 7,
		N = 64,
		HOLD = N / SOFT_DRAW_HOLD
	};
	struct soft_random random = {.seeded = true, .state = 1};
	uint32_t given[FIRST + N] = {0}, used[N], n = 0, gives = 0, id, i, step;
	bool live[FIRST + N] = {false};
	struct soft_draw d;
	uint64_t r;

	assert_int_equal(soft_draw_init(&d, FIRST, FIRST + N, FIRST + N), 0);
	for (step = 0; step < 20000; step++) {
		assert_int_equal(soft_random(&random, &r), 0);
		/* Phases with few free numbers alternate with phases with many. */
		if (n < N && (n == 0 || r % 8 < (step / 500 % 2 != 0 ? 5u : 3u))) {
			bool scarce = d.free <= HOLD;

			assert_int_equal(soft_draw_take(&d, &random, &id), 0);
			assert_in_range(id, FIRST, FIRST + N - 1);
			assert_false(live[id]);
			if (given[id] != 0 && !scarce)
				assert_in_range(gives - given[id], HOLD, UINT32_MAX);
			live[id] = true;
			used[n++] = id;
		} else {
			i = (uint32_t)(r >> 32) % n;
			live[used[i]] = false;
			given[used[i]] = ++gives;
			soft_draw_give(&d, used[i]);
			used[i] = used[--n];
		}
	}
	while (soft_draw_take(&d, &random, &id) == 0) {
		assert_false(live[id]);
		live[id] = true;
		n++;
	}
	assert_int_equal(n, N);
	assert_int_equal(soft_draw_take(&d, &random, &id), -ENOSPC);
	free(d.order);
}

/*
 * The ring grows in steps when only numbers in quarantine are free. It then has new numbers, the
 * numbers in quarantine stay there, and no number is lost or given twice.
 */
TEST(test_ring_grows_when_numbers_run_short)
{
	enum {
		FIRST = 5,
		START = FIRST + 64,
		END = FIRST + 1000
	};
	struct soft_random random = {.seeded = true, .state = 2};
	uint32_t used[END], given[END] = {0}, n = 0, gives = 0, sizes = 1, last = 64, id, i;
	bool live[END] = {false};
	struct soft_draw d;
	uint64_t r;

	assert_int_equal(soft_draw_init(&d, FIRST, START, END), 0);
	while (n < END - FIRST) {
		assert_int_equal(soft_random(&random, &r), 0);
		if (n == 0 || r % 8 < 5) {
			bool few = d.free > d.n / SOFT_DRAW_HOLD;

			assert_int_equal(soft_draw_take(&d, &random, &id), 0);
			assert_in_range(id, FIRST, END - 1);
			assert_false(live[id]);
			if (given[id] != 0 && d.n < END - FIRST)
				assert_in_range(gives - given[id], last / SOFT_DRAW_HOLD,
						UINT32_MAX);
			/* The ring grows only then. */
			if (few)
				assert_int_equal(d.n, last);
			sizes += d.n != last;
			last = d.n;
			live[id] = true;
			used[n++] = id;
		} else {
			i = (uint32_t)(r >> 32) % n;
			live[used[i]] = false;
			given[used[i]] = ++gives;
			soft_draw_give(&d, used[i]);
			used[i] = used[--n];
		}
		assert_int_equal(d.free + n, d.n);
	}
	/* 64, 128, 256, 512, 1000 */
	assert_int_equal(sizes, 5);
	assert_int_equal(soft_draw_take(&d, &random, &id), -ENOSPC);
	soft_draw_resize(&d, START, END);
	assert_int_equal(d.free, 64);
	for (i = 0; i < 16; i++) {
		assert_int_equal(soft_draw_take(&d, &random, &id), 0);
		assert_in_range(id, FIRST, START - 1);
	}
	free(d.order);
}

/* A device with few keys uses a small part of its tables. */
TEST(test_million_keys_and_small_numbers_while_they_are_few)
{
	static struct mlx5_mr *mr[1000];
	struct env env;
	uint32_t i;

	env_open(&env, NULL);
	assert_int_equal(env.dev->ctl->mkey_draw.max, (1u << 20) - 0x10);
	for (i = 0; i < RTE_DIM(mr); i++) {
		mr[i] = mr_reg(&env);
		assert_in_range(mr[i]->lkey >> 8, 0x10, SOFT_FEW_MKEYS - 1);
	}
	for (i = 0; i < RTE_DIM(mr); i++)
		OK(soft_cmd_if.mr_dereg(env.ctx, mr[i]));
	env_close(&env);
}

/* A freed key is refused, also when its index is allocated again. */
TEST(test_key_that_was_given_back_finds_nothing)
{
	const uint32_t keys = (1u << 5) - 0x10;
	uint32_t last[1u << 5] = {0}, again = 0, i;
	struct mlx5_mr *mr;
	struct env env;

	env_open(&env, "log_max_mkey=5");
	for (i = 0; i < 5000; i++) {
		uint32_t key, index;

		mr = mr_reg(&env);
		key = mr->lkey;
		index = key >> 8;
		assert_in_range(index, 0x10, 0x10 + keys - 1);
		if (last[index] != 0) {
			again++;
			assert_int_not_equal(key, last[index]);
			assert_null(soft_mkey_find(env.dev, last[index]));
		}
		last[index] = key;
		OK(soft_cmd_if.mr_dereg(env.ctx, mr));
		assert_null(soft_mkey_find(env.dev, key));
	}
	assert_in_range(again, 5000 - keys, 5000);
	/* Keys past the table. */
	assert_null(soft_mkey_find(env.dev, UINT32_MAX));
	assert_null(soft_mkey_find(env.dev, 0));
	assert_null(soft_mkey_find(env.dev, BB_WQE_INVALID_LKEY));
	env_close(&env);
}

/* Draws 8 keys of regions and 8 of windows, and QP numbers. */
static void
numbers_of(const char *options, uint32_t out[24])
{
	struct mlx5_mr *mr[8];
	struct mlx5_mw *mw[8];
	struct env env;
	uint32_t i;

	env_open(&env, options);
	for (i = 0; i < 8; i++) {
		mr[i] = mr_reg(&env);
		OK(soft_cmd_if.mw_alloc(env.ctx, env.pd, 1, &mw[i]));
		env_qp_to(&env, BB_PRM_QP_RST);
		out[i] = mr[i]->rkey;
		out[8 + i] = mw[i]->rkey;
		out[16 + i] = env.qpn;
		env_qp_gone(&env);
	}
	for (i = 0; i < 8; i++) {
		OK(soft_cmd_if.mw_free(env.ctx, mw[i]));
		OK(soft_cmd_if.mr_dereg(env.ctx, mr[i]));
	}
	env_close(&env);
}

/* Numbers repeat only with the option seed, and the log says so. */
TEST(test_numbers_repeat_with_a_seed_only)
{
	uint32_t a[24], b[24], i, same = 0, in_sequence = 0;

	numbers_of("seed=7", a);
	numbers_of("seed=7", b);
	assert_memory_equal(a, b, sizeof(a));
	numbers_of("seed=8", b);
	assert_memory_not_equal(a, b, sizeof(a));
	numbers_of(NULL, a);
	numbers_of(NULL, b);
	for (i = 0; i < RTE_DIM(a); i++)
		same += a[i] == b[i];
	for (i = 1; i < RTE_DIM(a); i++)
		in_sequence += a[i] >> 8 == (a[i - 1] >> 8) + 1 || a[i] == a[i - 1] + 1;
	/* One in 65,000 or fewer by chance. */
	assert_in_range(same, 0, 3);
	assert_in_range(in_sequence, 0, 5);
}

/* With the option seed, numbers do not depend on keys that the device had before. */
TEST(test_seed_repeats_keys_after_a_smaller_key_table)
{
	uint32_t a[24], b[24];
	struct env env;

	numbers_of("seed=7", a);
	env_open(&env, "log_max_mkey=5");
	env_close(&env);
	numbers_of("seed=7", b);
	assert_memory_equal(a, b, sizeof(a));
}

/* No line says that all numbers are in use. */
T(test_objects_without_random_numbers_are_refused_for_that_reason)
{
	struct mlx5_mr_attr attr = mlx5_mr_mem(env->mem, 4096, BB_ACCESS_LOCAL_WRITE);
	uint8_t qp[BB_PRM_SZ_CREATE_QP_IN], key[BB_PRM_SZ_CREATE_MKEY_IN] = {0};
	uint8_t out[BB_PRM_SZ_SHORT], *mkc = key + 0x10;
	struct mlx5_obj *obj;
	struct mlx5_mr *mr;
	struct mlx5_mw *mw;
	const char *log;

	env_qp_in(env, qp);
	bb_prm_set(key, BB_PRM_CMD_OPCODE, BB_PRM_OP_CREATE_MKEY);
	bb_prm_set(mkc, BB_PRM_MKC_ACCESS_MODE, BB_PRM_MKC_MODE_KLMS);
	bb_prm_set(mkc, BB_PRM_MKC_FREE, 1);
	bb_prm_set(mkc, BB_PRM_MKC_UMR_EN, 1);
	bb_prm_set(mkc, BB_PRM_MKC_LR, 1);
	bb_prm_set(mkc, BB_PRM_MKC_QPN, 0xffffff);
	bb_prm_set(mkc, BB_PRM_MKC_PD, env->pd->pdn);
	bb_prm_set(mkc, BB_PRM_MKC_XLT_OCTWORD_SIZE, 8);
	no_random = true;
	env->dev->ctl->random.unused = 0;
	assert_int_equal(soft_cmd_if.mr_reg(env->ctx, env->pd, &attr, &mr), -ENOMEM);
	assert_int_equal(soft_cmd_if.mw_alloc(env->ctx, env->pd, 1, &mw), -ENOMEM);
	assert_int_equal(soft_cmd_if.obj_create(env->ctx, qp, sizeof(qp), out, sizeof(out), &obj),
			 -EREMOTEIO);
	assert_int_equal(soft_cmd_if.obj_create(env->ctx, key, sizeof(key), out, sizeof(out), &obj),
			 -EREMOTEIO);
	no_random = false;
	log = env_log(env);
	assert_non_null(strstr(log, "getrandom() failed"));
	assert_non_null(strstr(log, "no random number for the QP"));
	assert_non_null(strstr(log, "no random number for the key"));
	assert_null(strstr(log, "in use"));
}

TEST_MAIN(0)
