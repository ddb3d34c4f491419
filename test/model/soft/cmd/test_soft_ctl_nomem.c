/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Every allocation of the control path fails once. The call returns the error and leaves no
 * memory behind (AddressSanitizer checks that), and the same call succeeds afterwards.
 */
#include "soft_ctl_env.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

/* Allocation that fails, counted down; 0 if none fails. */
static uint32_t fail_in;

static bool
fails(void)
{
	return fail_in != 0 && --fail_in == 0;
}

/* Wraps allocator @name with the arguments @call of the types @proto. */
#define WRAP(type, name, proto, call, failed)                                                      \
	type __real_##name proto;                                                                  \
	type __wrap_##name proto;                                                                  \
	type __wrap_##name proto                                                                   \
	{                                                                                          \
		return fails() ? failed : __real_##name call;                                      \
	}
WRAP(void *, malloc, (size_t size), (size), NULL)
WRAP(void *, calloc, (size_t n, size_t size), (n, size), NULL)
WRAP(void *, realloc, (void *p, size_t size), (p, size), NULL)
WRAP(void *, aligned_alloc, (size_t align, size_t size), (align, size), NULL)
WRAP(int, posix_memalign, (void **p, size_t align, size_t size), (p, align, size), ENOMEM)

/* A call that makes an object, and the call that destroys it. */
struct maker {
	const char *what;
	int (*make)(struct env *env);
	void (*undo)(struct env *env);
};

static struct mlx5_ctx *made_ctx;
static struct mlx5_pd *made_pd;
static struct mlx5_mr *made_mr;
static struct mlx5_umem *made_umem;
static struct mlx5_uar *made_uar;
static struct mlx5_dm *made_dm;
static struct mlx5_obj *made_obj;

#define MAKE(name, call)                                                                           \
	static int make_##name(struct env *env __attribute__((unused)))                            \
	{                                                                                          \
		return call;                                                                       \
	}
#define UNDO(name, made, call)                                                                     \
	static void undo_##name(struct env *env __attribute__((unused)))                           \
	{                                                                                          \
		OK(call);                                                                          \
		made = NULL;                                                                       \
	}

/* The first open of soft9 also creates its tables. */
MAKE(ctx, soft_cmd_if.open("soft9", NULL, &made_ctx))
UNDO(ctx, made_ctx, soft_cmd_if.close(made_ctx))
MAKE(pd, soft_cmd_if.pd_alloc(env->ctx, &made_pd))
UNDO(pd, made_pd, soft_cmd_if.pd_free(env->ctx, made_pd))

static int
make_mr(struct env *env)
{
	struct mlx5_mr_attr attr = mlx5_mr_mem(env->mem, 4096, MLX5_ACCESS_LOCAL_WRITE);

	return soft_cmd_if.mr_reg(env->ctx, env->pd, &attr, &made_mr);
}

UNDO(mr, made_mr, soft_cmd_if.mr_dereg(env->ctx, made_mr))
MAKE(umem, soft_cmd_if.umem_reg(env->ctx, env->mem, 4096, BB_ACCESS_LOCAL_WRITE, 4096, &made_umem))
UNDO(umem, made_umem, soft_cmd_if.umem_dereg(env->ctx, made_umem))

/* Returns a sealed memfd, which the device accepts as a dma-buf. */
static int
memfd(void)
{
	int fd = memfd_create("bb_test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 4096), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	return fd;
}

static int
make_dmabuf_umem(struct env *env)
{
	int fd = memfd();
	int ret = soft_cmd_if.umem_reg_dmabuf(env->ctx, fd, 0, 4096, 0, 4096, &made_umem);

	close(fd);
	return ret;
}

static int
make_dmabuf_mr(struct env *env)
{
	struct mlx5_mr_attr attr = {.kind = MLX5_MR_DMABUF, .len = 4096, .fd = memfd()};
	int ret = soft_cmd_if.mr_reg(env->ctx, env->pd, &attr, &made_mr);

	close(attr.fd);
	return ret;
}

MAKE(dm, soft_cmd_if.dm_alloc(env->ctx, 64, 0, &made_dm))
UNDO(dm, made_dm, soft_cmd_if.dm_free(env->ctx, made_dm))

/* The device memory is fully used afterwards, so a leaked allocation is found. */
static int
make_dm_mr(struct env *env)
{
	struct mlx5_mr_attr attr = {.kind = MLX5_MR_DM, .len = 64, .access = BB_ACCESS_ZERO_BASED};
	int ret = soft_cmd_if.dm_alloc(env->ctx, env->dev->opts.dm, 0, &made_dm);

	if (ret != 0)
		return ret;
	attr.dm = made_dm;
	ret = soft_cmd_if.mr_reg(env->ctx, env->pd, &attr, &made_mr);
	if (ret != 0)
		undo_dm(env);
	return ret;
}

static void
undo_dm_mr(struct env *env)
{
	undo_mr(env);
	undo_dm(env);
}

MAKE(uar, soft_cmd_if.uar_alloc(env->ctx, MLX5_UAR_BF, &made_uar))
UNDO(uar, made_uar, soft_cmd_if.uar_free(env->ctx, made_uar))

static int
make_obj(struct env *env, const uint8_t *in, size_t inlen)
{
	uint8_t out[BB_PRM_SZ_SHORT];
	int ret = soft_cmd_if.obj_create(env->ctx, in, inlen, out, sizeof(out), &made_obj);

	if (ret == -EREMOTEIO && bb_prm_get(out, BB_PRM_CMD_STATUS) == BB_PRM_STAT_NO_RES)
		return -ENOMEM;
	return ret;
}

static int
make_cq(struct env *env)
{
	uint8_t in[BB_PRM_SZ_CREATE_CQ_IN];

	env_cq_in(env, in);
	return make_obj(env, in, sizeof(in));
}

static int
make_qp(struct env *env)
{
	uint8_t in[BB_PRM_SZ_CREATE_QP_IN];

	env_qp_in(env, in);
	return make_obj(env, in, sizeof(in));
}

static int
make_counters(struct env *env)
{
	uint8_t in[BB_PRM_SZ_SHORT] = {0};

	env_op(in, BB_PRM_OP_ALLOC_Q_COUNTER);
	return make_obj(env, in, sizeof(in));
}

UNDO(obj, made_obj, soft_cmd_if.obj_destroy(made_obj))

static int
make_subs(struct env *env)
{
	static const uint16_t types[] = {0x04, 0x05, 0x10, 0x11};

	return soft_cmd_if.event_subscribe(env->ctx, env->cq, types, RTE_DIM(types), 1);
}

static void
undo_subs(struct env *env)
{
	uint32_t n = 0;
	struct soft_event_sub *sub;

	LIST_FOREACH(sub, soft_event_subs_of(env->dev, env->cq), link)
		n++;
	/* All four subscriptions or none. */
	assert_int_equal(n, 4);
	soft_event_remove(soft_ctx(env->ctx), env->cq);
}

static int
setup(void **state)
{
	struct env *env = malloc(sizeof(*env));

	assert_non_null(env);
	env_open(env, "dmabuf=memfd");
	*state = env;
	return 0;
}

TEST_WITH(setup, env_teardown, test_failed_allocation_of_each_command_leaves_no_object)
{
	static const struct maker makers[] = {
		{"open", make_ctx, undo_ctx},
		{"PD", make_pd, undo_pd},
		{"MR", make_mr, undo_mr},
		{"umem", make_umem, undo_umem},
		{"UAR", make_uar, undo_uar},
		{"CQ", make_cq, undo_obj},
		{"QP", make_qp, undo_obj},
		{"counter set", make_counters, undo_obj},
		{"events", make_subs, undo_subs},
		{"device memory", make_dm, undo_dm},
		{"DM MR", make_dm_mr, undo_dm_mr},
		{"dma-buf MR", make_dmabuf_mr, undo_mr},
		{"dma-buf umem", make_dmabuf_umem, undo_umem},
	};
	struct env *env = *state;
	uint32_t i, k, failed;

	for (i = 0; i < RTE_DIM(makers); i++) {
		struct census before = env_census(env);

		failed = 0;
		for (k = 1;; k++) {
			int ret;

			env_log(env);
			fail_in = k;
			ret = makers[i].make(env);
			if (ret == 0)
				break;
			fail_in = 0;
			failed++;
			if (ret != -ENOMEM)
				fail_msg("%s: allocation %u failed: ret %d", makers[i].what, k,
					 ret);
			if (strstr(env_log(env), "soft: ") == NULL)
				fail_msg("%s: allocation %u failed in silence", makers[i].what, k);
			env_same(makers[i].what, before, env_census(env));
			assert_true(made_ctx == NULL && made_pd == NULL && made_mr == NULL &&
				    made_umem == NULL && made_uar == NULL && made_obj == NULL &&
				    made_dm == NULL);
		}
		/* The call succeeded because fewer allocations were left than the count. */
		assert_int_not_equal(fail_in, 0);
		fail_in = 0;
		assert_true(failed > 0);
		makers[i].undo(env);
		env_same(makers[i].what, before, env_census(env));
	}
}

TEST_MAIN(0)
