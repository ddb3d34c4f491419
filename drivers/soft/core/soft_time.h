/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Time of a device for packets and timers: soft_time.c. */
#ifndef SOFT_TIME_H
#define SOFT_TIME_H

#include <rte_cycles.h>

#include "soft.h"

/* Initializes the clock. Must be called before the other functions of this header. */
void soft_time_init(void);
/* Converts @us microseconds to TSC ticks. */
uint64_t soft_us_ticks(uint64_t us);
/* Returns the device's time in TSC ticks. */
static inline uint64_t
soft_ticks(const struct soft_dev *dev)
{
	return unlikely(dev->opts.virtual_time)
		       ? soft_us_ticks(__atomic_load_n(&dev->virtual_us, __ATOMIC_RELAXED))
		       : rte_rdtsc();
}
/* Returns the device's time in ns. */
uint64_t soft_dev_ns(const struct soft_dev *dev);
/*
 * Sets e->ticks and e->ns at the first call in a poll. A device that sends packets uses these
 * values for the rest of the poll.
 */
void soft_engine_clock(struct soft_engine *e);
/* Does the same as soft_engine_clock() with the options no_clock and virtual_time. */
void soft_engine_clock_other(struct soft_engine *e);
/* Returns the duration of a TSC tick in 2^-20 ns. */
uint64_t soft_tick_ns(void);
/* Converts @ns nanoseconds to TSC ticks, rounded up. */
uint64_t soft_time_cycles(uint64_t ns);
/* The period in which packets have found no room. */
struct soft_full {
	uint64_t since, seen; /* first and last time without room, ns; since is 0 with room */
};
/*
 * Records at @now, in ns, that a packet finds no room. Returns true if there has been no room for
 * @lifetime ns, so that the packet must be dropped. If the last packet without room is older than
 * @lifetime, it says nothing of the room since then, and a new period begins.
 */
static inline bool
soft_full_expired(struct soft_full *f, uint64_t now, uint64_t lifetime)
{
	if (f->since == 0 || now - f->seen >= lifetime)
		f->since = now;
	f->seen = now;
	return now - f->since >= lifetime;
}

#endif
