/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include "soft_ctl.h"
#include "soft_hooks.h"
#include "soft_shm.h"

void
soft_fork_before(struct mlx5_ctx *ctx)
{
	struct soft_dev *dev = soft_ctx(ctx)->dev;

	if (dev->shm == NULL)
		return;
	pthread_mutex_lock(&dev->shm->lock);
	soft_shm_services_lock();
}

void
soft_fork_parent(struct mlx5_ctx *ctx)
{
	struct soft_dev *dev = soft_ctx(ctx)->dev;

	if (dev->shm == NULL)
		return;
	soft_shm_services_unlock();
	pthread_mutex_unlock(&dev->shm->lock);
}

void
soft_fork_child(struct mlx5_ctx *ctx)
{
	struct soft_dev *dev = soft_ctx(ctx)->dev;

	soft_log_forget();
	soft_readers_forget();
	if (dev->shm != NULL)
		soft_shm_forget(dev->shm);
	soft_dev_forget(dev->index);
}
