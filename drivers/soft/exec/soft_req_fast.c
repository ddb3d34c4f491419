/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The requester's short cut: RDMA WRITEs with one piece or inline data, of at most two blocks,
 * that nothing is wrong with, from the ring.
 */
#include "soft_req_fast.h"

/* WQEs from the one that is executed to the one that is fetched. */
#define AHEAD 6u

uint32_t
soft_req_fast(struct soft_engine *e, struct soft_qp *qp, uint32_t budget)
{
	const uint32_t mask = (1u << qp->log_sq) - 1, posted = (uint16_t)(qp->sq_pi - qp->sq_ci);
	struct soft_fast_run r;
	uint32_t at = 0, blocks;

	if (unlikely(!soft_fast_begin(&r, qp)))
		return 0;
	do {
		/* From another core's cache: the CPU does not look ahead over a loop this long. */
		if (at + AHEAD < posted)
			rte_prefetch0(qp->sq + ((size_t)((r.ci + AHEAD) & mask) << 6));
		blocks = soft_fast_one(e, &r, qp, qp->sq + ((size_t)(r.ci & mask) << 6),
				       posted - at);
		if (unlikely(blocks == 0))
			break;
		at += blocks;
	} while (at != posted && r.done != budget && likely(r.alive));
	return soft_fast_end(e, &r, qp);
}
