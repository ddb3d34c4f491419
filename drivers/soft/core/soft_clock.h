/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The clock of an engine's turn, for the turn of a port, which reads it in every poll. */
#ifndef SOFT_CLOCK_H
#define SOFT_CLOCK_H

#include "soft_data.h"

/* Does the same as soft_engine_clock(). */
static inline void
soft_engine_clock_inline(struct soft_engine *e)
{
	if (unlikely(!e->real_time)) {
		soft_engine_clock_other(e);
		return;
	}
	e->now = e->ticks = rte_rdtsc();
	/* The product has more than 64 bits. */
	e->ns = (uint64_t)((unsigned __int128)e->ticks * e->tick_ns >> 20);
	e->timed = true;
	e->stamped = soft_engine_alone(e);
}

#endif
