/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#ifndef HCA_TIME_H
#define HCA_TIME_H

#include <stdint.h>
#include <time.h>

/* Returns the time of the monotonic clock in ns. */
static inline uint64_t
hca_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#endif
