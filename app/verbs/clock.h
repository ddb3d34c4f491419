/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#ifndef CLOCK_H
#define CLOCK_H

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

/* Replaces query_rt_values of struct verbs_context, which ibv_query_rt_values_ex() calls. */
int clock_query_rt_values(struct ibv_context *ctx, struct ibv_values_ex *values);
/* Fills in *@info as mlx5dv_get_clock_info() does. Returns 0 or an errno. */
int clock_info(struct mlx5dv_clock_info *info);

#endif
