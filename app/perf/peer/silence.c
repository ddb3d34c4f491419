/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* --silence: detects that nothing has come from the peer for a while. */
#include <rte_cycles.h>

#include "perf.h"

void
perf_progress(struct perf *p)
{
	p->last_progress = rte_rdtsc();
	p->peer_gone = false;
}

uint64_t
perf_served(struct perf *p)
{
	struct bb_dev_stats stats;

	if (bb_dev_stats(p->dev, &stats) != 0)
		return 0;
	return stats.rx_write + stats.rx_read + stats.rx_atomic;
}

bool
perf_overdue(struct perf *p)
{
	uint64_t now = rte_rdtsc(), served;

	if (now - p->last_progress < p->limit || p->patient)
		return false;
	/*
	 * Counts executed requests as activity, because the target of a long one-sided test gets no
	 * TCP message until the test ends.
	 */
	served = perf_served(p);
	if (served == p->last_served)
		return true;
	p->last_served = served;
	p->last_progress = now;
	return false;
}
