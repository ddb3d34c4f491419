/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Memory windows: what bb_mw.c and bb_mw_post.c share. */
#ifndef BB_MW_PRIV_H
#define BB_MW_PRIV_H

#include <rte_ticketlock.h> /* a lock whose stores ThreadSanitizer sees */

#include "bb_mem_priv.h"
#include "bb_mw.h"

#define BB_MW_MAX_OPS 8

/* A pending request that binds the window to region mr, or unbinds the window if mr is NULL. */
struct bb_mw_op {
	const struct bb_qp *qp; /* QP of the request; NULL if the QP was reset, so that it is
				 * unknown whether the request was executed */
	uint64_t seq;
	struct bb_mr_priv *mr;
	/* Keys of the window before and after the request; equal for an invalidation. */
	uint32_t old_rkey, new_rkey;
};

struct bb_mw_priv {
	struct bb_mw pub;
	struct bb_drv_mr *drv;
	/*
	 * Protects the fields below, because owners of QPs may post and poll while bb_mr_dereg()
	 * runs.
	 */
	rte_ticketlock_t lock;
	struct bb_mr_priv *mr; /* region of the last completed bind, NULL if none */
	struct bb_mw_op ops[BB_MW_MAX_OPS];
	uint32_t n_ops;
};

/*
 * Returns 0 if the window has room for one more pending request, -EAGAIN if a request must complete
 * first. Each request asks for a CQE, so there is room again when the owners of the queues ring and
 * poll. Call with w->lock held.
 */
int bb_mw_has_room(struct bb_mw_priv *w);
/*
 * Adds the request that was just posted to @qp. @new_rkey: the window's key after the request. Call
 * with w->lock held.
 */
void bb_mw_add_op(struct bb_mw_priv *w, const struct bb_qp *qp, struct bb_mr_priv *mr,
		  uint32_t new_rkey);
/* Returns the window that has the index of @rkey, NULL if there is none. */
struct bb_mw_priv *bb_mw_find(const struct bb_dev *dev, uint32_t rkey);

#endif
