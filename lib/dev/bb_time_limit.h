/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Time limit of a thread that waits in a loop for another thread of its process, such as the thread
 * of a software device. While the process or its virtual machine is stopped, the other thread
 * cannot respond either. So each turn of the loop counts for at most 10 ms.
 */
#ifndef BB_TIME_LIMIT_H
#define BB_TIME_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_common.h>
#include <rte_cycles.h>

struct bb_time_limit {
	uint64_t left; /* TSC cycles until the limit. */
	uint64_t last; /* TSC at the start of this turn. */
	uint64_t max;  /* Most cycles for which a turn counts. */
};

static inline void
bb_time_limit_start(struct bb_time_limit *t, uint32_t ms)
{
	const uint64_t hz = rte_get_tsc_hz();

	*t = (struct bb_time_limit){
		.left = hz / 1000 * ms, .last = rte_get_tsc_cycles(), .max = hz / 100};
}

/* Ends a turn. Returns true if the limit is reached. */
static inline bool
bb_time_limit_reached(struct bb_time_limit *t)
{
	const uint64_t now = rte_get_tsc_cycles(), turn = RTE_MIN(now - t->last, t->max);

	t->last = now;
	t->left -= RTE_MIN(turn, t->left);
	return t->left == 0;
}

#endif
