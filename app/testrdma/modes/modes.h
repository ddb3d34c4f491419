/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The engines of this folder; modes.c lists them. */
#ifndef MODES_H
#define MODES_H

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "testrdma.h"

extern const struct engine engine_write, engine_write_imm;
extern const struct engine engine_read;
extern const struct engine engine_fetch_add, engine_cmp_swap;
extern const struct engine engine_send, engine_send_imm;
extern const struct engine engine_pingpong, engine_mixed, engine_bidirectional;

/* What the modes that are made of them use. */
int write_post(struct pair *p, uint32_t n);
int send_post(struct pair *p, uint32_t n);
int send_post_recv(struct pair *p, uint32_t n);

/* One request of an operation: 1 posted, 0 full, a negative errno. */
typedef int (*post_one_fn)(struct pair *p, uint64_t wr_id, const struct bb_sge *sge,
			   uint32_t pieces);

/*
 * Post up to @n requests with @one, each from or to the next local slot. Always inlined, and
 * @one with it: an operation's loop has no indirect call.
 * Returns how many were posted, or a negative errno.
 */
static __rte_always_inline int
post_each(struct pair *p, uint32_t n, post_one_fn one)
{
	uint64_t base = (uint64_t)(uintptr_t)p->local;
	struct bb_sge sge[MAX_SGL];
	uint32_t i;
	int rc = 1;

	for (i = 0; i < n; i++) {
		uint32_t pieces = slot_sges(p->near, base, p->slot, sge);

		rc = one(p, p->wr_base + p->posted, sge, pieces);
		if (unlikely(rc != 1))
			break;
		pair_advance(p);
	}
	return rc < 0 ? rc : (int)i;
}

#endif
