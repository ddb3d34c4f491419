/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The control path while the device runs on its own thread or lcore. QPs, keys and UAR pages are
 * created and destroyed while an engine uses them.
 */
#include "soft_ctl_env.h"

#include <rte_eal.h>
#include <rte_lcore.h>
#include <rte_malloc.h>

static unsigned int worker = RTE_MAX_LCORE;

static void
no_progress(void *arg)
{
	(void)arg;
}

/* Connects and disconnects QPs; the test ignores the outcome of requests posted meanwhile. */
static void
churn(struct env *env, uint32_t rounds)
{
	struct mlx5_uar *uar;
	struct mlx5_mr *mr;
	struct mlx5_mr_attr attr;
	uint32_t i, state;

	for (i = 0; i < rounds; i++) {
		for (state = BB_PRM_QP_RST; state <= BB_PRM_QP_ERR; state++) {
			if (state == BB_PRM_QP_SQER || state == BB_PRM_QP_SQD)
				continue;
			env_qp_to(env, state);
			if (state == BB_PRM_QP_ERR)
				assert_int_equal(
					env_modify(env, env->qp, env->qpn, BB_PRM_OP_2RST_QP), 0);
			env_qp_gone(env);
		}
		OK(soft_cmd_if.uar_alloc(env->ctx, MLX5_UAR_BF, &uar));
		attr = mlx5_mr_mem(env->mem, ENV_BYTES, MLX5_ACCESS_LOCAL_WRITE);
		OK(soft_cmd_if.mr_reg(env->ctx, env->pd, &attr, &mr));
		OK(soft_cmd_if.mr_dereg(env->ctx, mr));
		OK(soft_cmd_if.uar_free(env->ctx, uar));
	}
}

static void
test_mode(const char *args)
{
	void (*fn)(void *arg) = no_progress;
	struct env *env = malloc(sizeof(*env));
	void *arg = NULL;

	assert_non_null(env);
	env_open(env, args);
	/* The device needs no polls, and reports that. */
	soft_cmd_if.progress_of(env->ctx, env->uar, &fn, &arg);
	assert_ptr_equal(fn, no_progress);
	assert_null(arg);
	churn(env, 20);
	env_close(env);
	free(env);
}

/*
 * If every CPU belongs to an lcore, EAL runs control threads on the main lcore's CPU. The two
 * threads would then wait for each other's time slices. The worker's CPU is idle now.
 */
TEST(test_control_thread_runs_the_device)
{
	const rte_cpuset_t own = rte_lcore_cpuset(rte_get_main_lcore());
	rte_cpuset_t other;

	if (worker != RTE_MAX_LCORE) {
		other = rte_lcore_cpuset(worker);
		pthread_setaffinity_np(pthread_self(), sizeof(other), &other);
	}
	test_mode("progress=thread");
	/* Again: the thread ended with the last context. */
	test_mode("progress=thread");
	pthread_setaffinity_np(pthread_self(), sizeof(own), &own);
}

TEST(test_lcore_runs_the_device)
{
	char args[64];

	if (worker == RTE_MAX_LCORE)
		skip();
	snprintf(args, sizeof(args), "progress=lcore,lcore=%u", worker);
	test_mode(args);
	test_mode(args);
}

TEST(test_unusable_lcore_is_refused)
{
	struct mlx5_ctx *ctx = NULL, *second = NULL;
	char args[64];

	snprintf(args, sizeof(args), "progress=lcore,lcore=%u", rte_get_main_lcore());
	assert_int_equal(soft_cmd_if.open("soft0", args, &ctx), -EINVAL);
	assert_int_equal(soft_cmd_if.open("soft0", "progress=lcore,lcore=127", &ctx), -EINVAL);
	assert_int_equal(soft_cmd_if.open("soft0", "progress=lcore,lcore=4000000", &ctx), -EINVAL);
	assert_null(ctx);
	if (worker == RTE_MAX_LCORE)
		skip();
	/* A second device on the same lcore is refused. */
	snprintf(args, sizeof(args), "progress=lcore,lcore=%u", worker);
	OK(soft_cmd_if.open("soft0", args, &ctx));
	assert_int_equal(soft_cmd_if.open("soft1", args, &second), -EBUSY);
	assert_null(second);
	OK(soft_cmd_if.close(ctx));
	OK(soft_cmd_if.open("soft1", args, &second));
	OK(soft_cmd_if.close(second));
}

/* EAL's memory: its heap, and memory that is reserved and not mapped. */
T(test_memory_of_eal_can_be_registered)
{
	void *p = rte_malloc(NULL, 1 << 20, 0);
	struct mlx5_mr_attr attr =
		mlx5_mr_mem(p, 1 << 20, MLX5_ACCESS_LOCAL_WRITE | MLX5_ACCESS_REMOTE_WRITE);
	struct mlx5_mr *mr;

	assert_non_null(p);
	OK(soft_cmd_if.mr_reg(env->ctx, env->pd, &attr, &mr));
	OK(soft_cmd_if.mr_dereg(env->ctx, mr));
	rte_free(p);
}

int
main(void)
{
	char *argv[] = {(char[]){"test"},
			(char[]){"-l"},
			(char[]){"0-1"},
			(char[]){"--no-huge"},
			(char[]){"-m"},
			(char[]){"256"},
			(char[]){"--no-pci"},
			(char[]){"--no-telemetry"},
			(char[]){"--no-shconf"},
			(char[]){"--log-level=lib.eal:error"},
			NULL};
	int ret;

	if (rte_eal_init((int)RTE_DIM(argv) - 1, argv) < 0) {
		printf("SKIP: EAL does not start on lcores 0-1 (two processors are needed)\n");
		return 77;
	}
	worker = rte_get_next_lcore(-1, 1, 0);
	ret = bb_test_run(__FILE__, NULL, NULL);
	rte_eal_cleanup();
	return ret;
}
