/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Resources of an lcore on a device. Each lcore has its own BlueFlame UAR, because two lcores that
 * store to one BlueFlame register would mix their WQEs. The lcore also has its own doorbell records
 * and, on a software device with inline progress, the function that runs the device.
 *
 * Without BlueFlame the lcores of a context share a UAR: rdma-core's mlx5dv_devx_alloc_uar()
 * returns the context's only UAR of type NC (struct mlx5_context.nc_uar in providers/mlx5). Sharing
 * is safe, because a doorbell is one 8-byte store and an uncached mapping merges no stores.
 */
#include <errno.h>
#include <string.h>

#include <rte_lcore.h>
#include <rte_malloc.h>
#include <rte_pause.h>

#include "bb_bf_copy.h"
#include "mlx5.h"

int
mlx5_bf_copy_choose(struct mlx5_dev *d)
{
	const char *name = d->ctx->bf_copy;
	int ret;

	if (name[0] == '\0') {
		d->bf_copy = bb_bf_copy_best(d->ctx->uar_memory);
		BB_LOG(INFO, "%s: BlueFlame copies: %s", d->ctx->name, bb_bf_copy_name(d->bf_copy));
		return 0;
	}
	d->bf_none = strcmp(name, "none") == 0;
	if (d->bf_none)
		return 0;
	ret = bb_bf_copy_parse(name, &d->bf_copy);
	if (ret == -EINVAL)
		BB_LOG(ERR,
		       "%s: unknown bf_copy \"%s\": give none, plain, neon, avx2, avx512 or "
		       "movdir64b, or leave it out for the widest",
		       d->ctx->name, name);
	else if (ret == -ENOTSUP)
		BB_LOG(ERR,
		       "%s: bf_copy=%s: this CPU or build does not support these copies: leave "
		       "bf_copy out",
		       d->ctx->name, name);
	else if (ret != 0)
		BB_LOG(ERR,
		       "%s: bf_copy=%s: EAL does not allow vectors of that width: start EAL with "
		       "--force-max-simd-bitwidth=512",
		       d->ctx->name, name);
	return ret == -EINVAL ? -EINVAL : ret != 0 ? -ENOTSUP : 0;
}

/*
 * Allocates a UAR for doorbells of 8-byte stores. libmlx5's mlx5_alloc_dyn_uar() returns EOPNOTSUPP
 * for an uncached UAR if the kernel has no objects for UARs. The stores then go to a
 * write-combining register of this lcore, as they do with bf_copy=none.
 */
static int
doorbell_uar_alloc(struct mlx5_dev *d, struct mlx5_lcore *l)
{
	int ret = d->cmd->uar_alloc(d->ctx, MLX5_UAR_NC, &l->uar);

	if (ret == 0)
		return 0;
	if (ret != -EOPNOTSUPP) {
		BB_LOG(ERR,
		       "%s: cannot allocate an uncached UAR: %s; let fewer processes use the "
		       "device (fewer lcores do not help, because all lcores share one)",
		       d->ctx->name, strerror(-ret));
		return ret;
	}
	ret = d->cmd->uar_alloc(d->ctx, MLX5_UAR_BF, &l->uar);
	if (ret != 0) {
		BB_LOG(ERR,
		       "%s: cannot allocate a UAR: the kernel has no uncached ones (kernels before "
		       "5.7 have none), and for a write-combining one: %s; use a newer kernel, or "
		       "let fewer processes or lcores use the device",
		       d->ctx->name, strerror(-ret));
		return ret;
	}
	BB_LOG(WARNING,
	       "%s: the kernel has no uncached UARs (kernels before 5.7 have none): this lcore stores "
	       "its doorbells to a write-combining register",
	       d->ctx->name);
	return 0;
}

static int
uar_alloc(struct mlx5_dev *d, struct mlx5_lcore *l)
{
	int ret;

	if (d->caps.bf_half != 0) {
		ret = d->cmd->uar_alloc(d->ctx, MLX5_UAR_BF, &l->uar);
		if (ret == 0) {
			l->bf_size = d->caps.bf_half;
			return 0;
		}
		BB_LOG(INFO,
		       "%s: cannot allocate a BlueFlame UAR (%s): this lcore uses the uncached "
		       "UAR that all lcores of the process share; for BlueFlame, let fewer "
		       "processes or lcores use the device",
		       d->ctx->name, strerror(-ret));
	}
	return doorbell_uar_alloc(d, l);
}

int
mlx5_lcore_get(struct mlx5_dev *d, uint32_t lcore, struct mlx5_lcore **out)
{
	struct mlx5_lcore *l;
	int ret;

	if (lcore >= RTE_DIM(d->run)) {
		BB_LOG(ERR, "%s: invalid lcore %u (0 to %zu)", d->ctx->name, lcore,
		       RTE_DIM(d->run) - 1);
		return -EINVAL;
	}
	l = d->run[lcore].lcore;
	if (l == NULL) {
		l = rte_zmalloc("bb_lcore", sizeof(*l), RTE_CACHE_LINE_SIZE);
		if (l == NULL) {
			BB_LOG(ERR,
			       "%s: no EAL memory for the UAR of lcore %u: give EAL more (-m, or "
			       "hugepages)",
			       d->ctx->name, lcore);
			return -ENOMEM;
		}
		ret = uar_alloc(d, l);
		if (ret != 0) {
			rte_free(l);
			return ret;
		}
		l->socket = (int)rte_lcore_to_socket_id(lcore);
		LIST_INIT(&l->qp_dbrs);
		LIST_INIT(&l->cq_dbrs);
		if (d->cmd->progress_of != NULL)
			d->cmd->progress_of(d->ctx, l->uar, &l->progress, &l->progress_arg);
		__atomic_store_n(&d->run[lcore].lcore, l, __ATOMIC_SEQ_CST);
	}
	l->refs++;
	*out = l;
	return 0;
}

void
mlx5_lcore_put(struct mlx5_dev *d, uint32_t lcore)
{
	struct mlx5_run *r = &d->run[lcore];
	struct mlx5_lcore *l = r->lcore;
	int ret;

	if (--l->refs > 0)
		return;
	/*
	 * The lcore may be inside mlx5_progress(). Either the lcore then reads NULL, or this thread
	 * sees that the lcore is busy.
	 */
	__atomic_store_n(&r->lcore, NULL, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&r->busy, __ATOMIC_SEQ_CST) != 0)
		rte_pause();
	ret = d->cmd->uar_free(d->ctx, l->uar);
	if (ret != 0)
		BB_LOG(ERR, "%s: cannot free a UAR: %s", d->ctx->name, strerror(-ret));
	rte_free(l);
}

void
mlx5_progress(struct bb_dev *dev)
{
	struct mlx5_dev *d = mlx5_dev_of(dev);
	uint32_t lcore = rte_lcore_id();
	struct mlx5_lcore *l;
	struct mlx5_run *r;

	if (d->cmd->progress_of == NULL || lcore >= RTE_DIM(d->run))
		return;
	r = &d->run[lcore];
	__atomic_store_n(&r->busy, 1, __ATOMIC_SEQ_CST);
	l = __atomic_load_n(&r->lcore, __ATOMIC_SEQ_CST);
	if (l != NULL && l->progress != NULL)
		l->progress(l->progress_arg);
	__atomic_store_n(&r->busy, 0, __ATOMIC_SEQ_CST);
}
