/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include "soft_ctl.h"
#include "soft_hooks.h"
#include "soft_shm.h"

void
soft_fork_child(struct mlx5_ctx *ctx)
{
	struct soft_dev *dev = soft_ctx(ctx)->dev;

	soft_readers_forget();
	if (dev->shm != NULL)
		soft_shm_forget(dev->shm);
	soft_dev_forget(dev->index);
}
