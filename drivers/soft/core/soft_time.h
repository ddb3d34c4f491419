/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The time that packets and timers of a device go by: soft_time.c. */
#ifndef SOFT_TIME_H
#define SOFT_TIME_H

#include <rte_cycles.h>

#include "soft.h"

/* Before any of the others. */
void soft_time_init(void);
/* What packets and timers of a device go by, in TSC ticks. */
static inline uint64_t
soft_ticks(const struct soft_dev *dev)
{
	return unlikely(dev->opts.virtual_time)
		       ? __atomic_load_n(&dev->virtual_tsc, __ATOMIC_RELAXED)
		       : rte_rdtsc();
}
/* The same in ns. */
uint64_t soft_dev_ns(const struct soft_dev *dev);
/* On a port all of a poll is at one time, in e->ticks and e->ns: when that was first asked. */
void soft_engine_clock(struct soft_engine *e);
/* At least so many nanoseconds, in TSC ticks. */
uint64_t soft_time_cycles(uint64_t ns);

#endif
