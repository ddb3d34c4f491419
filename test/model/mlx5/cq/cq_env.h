/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Helpers that produce CQEs without polling for them. */
#ifndef CQ_ENV_H
#define CQ_ENV_H

#include "../mlx5_env.h"

#include "bb_core.h"

/* Posts @n WRITEs from a to b and rings the doorbell once. */
static inline void
write_some(struct env *e, uint64_t first, unsigned int n)
{
	struct bb_sge sge = sge_of(&e->a, 0, 8);
	unsigned int i;

	for (i = 0; i < n; i++)
		OK(bb_post_write(e->a.qp, first + i, &sge, 1, raddr_of(&e->b, 0), e->b.mr->rkey,
				 BB_SEND_SIGNALED));
	bb_qp_ring(e->a.qp);
}

/* Waits until @n unread CQEs are in @cq, without polling the CQ. */
static inline void
wait_unread(struct env *e, const struct bb_cq *cq, unsigned int n)
{
	uint64_t end = rte_get_timer_cycles() + ENV_WAIT_S * rte_get_timer_hz();
	struct bb_cqring ring = cq->ring;

	ring.ci += n - 1;
	while (bb_cqring_peek(&ring) == NULL && rte_get_timer_cycles() < end) {
		bb_dev_progress(e->a.dev);
		bb_dev_progress(e->b.dev);
	}
	assert_non_null(bb_cqring_peek(&ring));
}

#endif
