/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The operations that testrdma can test, one struct engine each; modes.c lists them. */
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

/*
 * Functions that post WRITEs, SENDs and receives. The modes that combine operations use them too.
 */
int write_post(struct pair *p, uint32_t n);
int send_post(struct pair *p, uint32_t n);
int send_post_recv(struct pair *p, uint32_t n);

/*
 * Declares a function that posts one request. The library's inline functions are flattened into it.
 * Otherwise the compiler would call them in a file with several posts, and their arguments would
 * not be constants.
 */
#define POST_ONE static inline __attribute__((flatten)) int

/* Fields of the request for one operation. */
struct request {
	struct bb_qp *qp;
	uint64_t op, wr_id;
	const struct bb_sge *sge; /* SGEs of the local slot */
	uint32_t pieces;          /* number of SGEs */
	uint32_t size;            /* size of the test's messages */
	uint64_t raddr; /* address of the target's slot; its index is that of the local slot */
	uint32_t rkey, flags;
	const uint8_t *kind; /* type of the operation, enum mix_kind; valid only in mixed tests */
};

/* Posts a request. Returns 0 or a negative errno, as the functions of bb_post.h do. */
typedef int (*post_one_fn)(const struct pair *p, const struct request *rq);

/*
 * Returns the result of a burst of posts. @done posts succeeded, and the last attempt returned @rc.
 * A full queue is not an error, so the result is then @done.
 */
static inline int
burst_result(int rc, uint32_t done)
{
	return rc == 0 || rc == -EAGAIN ? (int)done : rc;
}

/*
 * Posts operations in consecutive slots. Signals at most the last one. Keeps the values of the next
 * operation in registers, because reading them from the pair each time cost as much as the post.
 */
static __rte_always_inline uint32_t
post_run(struct pair *p, uint32_t n, uint32_t pieces, post_one_fn one, int *rc)
{
	const uint64_t local_stride = p->initiator->lay.stride,
		       target_stride = p->target->lay.stride;
	const uint32_t last = p->posted + n == p->sig_at ? BB_SEND_SIGNALED : 0;
	struct bb_sge sge[MAX_SGL];
	struct request rq = {
		.qp = p->qp,
		.op = p->posted,
		.wr_id = p->wr_base + p->posted,
		.sge = sge,
		.pieces = pieces,
		.size = p->t->test->size,
		.raddr = target_addr(p, p->slot),
		.rkey = p->target_rkey,
		.kind = p->t->kinds + p->turn_of_kind,
	};
	uint32_t i, k;

	slot_sges(p->initiator, p->local, p->slot, sge, pieces);
	for (k = 0; k < n; k++) {
		rq.flags = k + 1 == n ? last : 0;
		*rc = one(p, &rq);
		if (unlikely(*rc != 0))
			break;
		rq.op++;
		rq.wr_id++;
		rq.raddr += target_stride;
		rq.kind++;
		for (i = 0; i < pieces; i++)
			sge[i].addr += local_stride;
	}
	pair_advance(p, k);
	return k;
}

/*
 * Posts up to @n requests of @pieces SGEs each. If @pieces is a constant, the compiler makes a
 * shorter loop.
 */
static __rte_always_inline int
post_pieces(struct pair *p, uint32_t n, uint32_t pieces, post_one_fn one)
{
	uint32_t i = 0, run, done;
	int rc = 0;

	while (i < n) {
		run = pair_run(p, n - i);
		done = post_run(p, run, pieces, one, &rc);
		i += done;
		if (unlikely(done != run))
			break;
	}
	return burst_result(rc, i);
}

/*
 * Posts up to @n requests: calls @one for each, with the next local slot as source or
 * destination. The compiler inlines this function and @one, so the loop has no indirect call.
 * Returns the number of requests posted, or a negative errno.
 */
static __rte_always_inline int
post_each(struct pair *p, uint32_t n, post_one_fn one)
{
	if (likely(p->initiator->lay.n == 1))
		return post_pieces(p, n, 1, one);
	return post_pieces(p, n, p->initiator->lay.n, one);
}

/* Returns the data of a request with inline data. */
static inline const void *
inline_data(const struct request *rq)
{
	return (const void *)(uintptr_t)rq->sge[0].addr;
}

/*
 * Does the same as post_each(), but for requests with inline data, which have one SGE. Calls @one8
 * for messages of 8 bytes. In @one8 the length is a constant, as in most applications, so the
 * library's code is shorter.
 */
static __rte_always_inline int
post_each_inline(struct pair *p, uint32_t n, post_one_fn one, post_one_fn one8)
{
	if (likely(p->t->test->size == 8))
		return post_pieces(p, n, 1, one8);
	return post_pieces(p, n, 1, one);
}

#endif
