/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The device's clock. libmlx5 maps two pages of a card and reads them: a clock register, and a page
 * in which the kernel relates the clock to the time of day. The software device's pages are plain
 * memory without a running clock. So this file replaces the calls that read these pages.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <time.h>

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include "clock.h"
#include "preload.h"

/*
 * With this shift the product of mlx5dv_ts_to_ns() fits into 64 bits for an hour at least, and the
 * error of the factor is below 1e-6, at up to 4 GHz.
 */
#define SHIFT 21u

int
clock_query_rt_values(struct ibv_context *ctx, struct ibv_values_ex *values)
{
	const bool raw = (values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK) != 0;
	uint64_t cycles = 0;
	uint32_t khz;
	int ret;

	(void)ctx;
	if ((values->comp_mask & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK) != 0)
		return EINVAL;
	ret = raw ? node_clock(&cycles, &khz) : 0;
	if (ret != 0)
		return -ret;
	/* As mlx5_query_rt_values() of libmlx5: the number of ticks is in tv_nsec. */
	values->raw_clock = (struct timespec){.tv_nsec = (long)cycles};
	return 0;
}

int
clock_info(struct mlx5dv_clock_info *info)
{
	struct timespec now;
	uint64_t cycles;
	uint32_t khz;
	int ret = node_clock(&cycles, &khz);

	if (ret != 0 || khz == 0)
		return ret != 0 ? -ret : EOPNOTSUPP;
	clock_gettime(CLOCK_REALTIME, &now);
	*info = (struct mlx5dv_clock_info){
		.nsec = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec,
		.last_cycles = cycles,
		.mult = (uint32_t)((UINT64_C(1000000) << SHIFT) / khz),
		.shift = SHIFT,
		.mask = UINT64_MAX,
	};
	return 0;
}
