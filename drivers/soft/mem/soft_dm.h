/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Device memory. */
#ifndef SOFT_DM_H
#define SOFT_DM_H

#include "soft_ctl.h"

int soft_dm_start(struct soft_dev *dev);
void soft_dm_stop(struct soft_dev *dev);
int soft_dm_alloc(struct mlx5_ctx *ctx, uint64_t len, uint32_t log_align, struct mlx5_dm **dm);
int soft_dm_free(struct mlx5_ctx *ctx, struct mlx5_dm *dm);
int soft_dm_write(struct mlx5_ctx *ctx, struct mlx5_dm *dm, uint64_t off, const void *src,
		  size_t len);
int soft_dm_read(struct mlx5_ctx *ctx, struct mlx5_dm *dm, void *dst, uint64_t off, size_t len);
/*
 * Checks an MR over device memory, and sets *base to the address of its first byte. Returns 0 or a
 * negative errno (logged).
 */
int soft_dm_mr(const struct soft_ctx *ctx, const struct mlx5_mr_attr *attr, uint8_t **base);
/*
 * Allocates @len bytes in free pages from @first on and before @end. Returns NULL if no such pages
 * are free, or out of memory. Call with soft_dev.lock held.
 */
struct soft_dm *soft_dm_take(struct soft_ctx *ctx, uint64_t len, uint32_t first, uint32_t end);
/* Frees an allocation without MRs. Call with soft_dev.lock held. */
void soft_dm_give(struct soft_dm *d);
/*
 * Returns the allocation that has all of @len bytes at @addr, an address in BAR 0, or NULL. Call
 * with soft_dev.lock held.
 */
struct soft_dm *soft_dm_find(const struct soft_dev *dev, uint64_t addr, uint64_t len);

#endif
