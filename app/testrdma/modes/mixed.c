/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A weighted mix of WRITE, READ and atomics (--mix). The types alternate as evenly as the weights
 * allow. The order of types repeats after W operations, where W is the sum of the weights. Within W
 * operations each type occurs as often as its weight says.
 *
 * An atomic uses the first 8 bytes of its operation's slot on both sides. So it can be checked
 * alone, whatever the operations before and after it are. Memory is prepared as for a READ.
 * Afterwards the local slot must have the old value, and the word at the target must have changed
 * once. The rest of both slots must be unchanged.
 */
#include "modes.h"

static uint64_t
word_old(const struct pair *p, uint64_t op)
{
	return op_word(p, op);
}

static uint64_t
word_new(const struct pair *p, uint64_t op)
{
	return op_word(p, op) + (p->t->o.seed | 1);
}

static uint8_t *
word_at(const struct side *s, const uint8_t *base, const struct pair *p, uint64_t op)
{
	uint32_t slot = (uint32_t)(op % p->t->test->slots);

	return (uint8_t *)(uintptr_t)slot_addr(s, base, slot);
}

POST_ONE
add_one(const struct pair *p, const struct request *rq)
{
	const struct bb_sge word = {.addr = rq->sge->addr, .len = 8, .lkey = rq->sge->lkey};

	return bb_post_fetch_add(rq->qp, rq->wr_id, &word, rq->raddr, rq->rkey, p->t->o.seed | 1,
				 rq->flags);
}

POST_ONE
swap_one(const struct pair *p, const struct request *rq)
{
	const struct bb_sge word = {.addr = rq->sge->addr, .len = 8, .lkey = rq->sge->lkey};

	return bb_post_cmp_swap(rq->qp, rq->wr_id, &word, rq->raddr, rq->rkey, word_old(p, rq->op),
				word_new(p, rq->op), rq->flags);
}

static void
word_verify(struct pair *p, uint64_t first, uint64_t n)
{
	uint64_t op;

	for (op = first; op < first + n; op++) {
		word_check(p, word_at(p->initiator, p->local, p, op), word_old(p, op), op,
			   "the old value returned");
		word_check(p, word_at(p->target, p->remote, p, op), word_new(p, op), op,
			   "the word at the target");
		data_verify_after_word(p, op);
	}
}

static bool
word_arrived(struct pair *p, uint64_t op)
{
	uint64_t *at = (uint64_t *)(void *)word_at(p->initiator, p->local, p, op);

	return __atomic_load_n(at, __ATOMIC_RELAXED) == word_old(p, op);
}

static const struct engine mixed_fetch_add = {
	.atomic = true,
	.has_byte_len = true,
	.wc_opcode = BB_WC_FETCH_ADD,
	.prepare = data_prepare,
	.verify = word_verify,
	.arrived = word_arrived,
};

static const struct engine mixed_cmp_swap = {
	.atomic = true,
	.has_byte_len = true,
	.wc_opcode = BB_WC_CMP_SWAP,
	.prepare = data_prepare,
	.verify = word_verify,
	.arrived = word_arrived,
};

static const struct engine *const kinds[MIX_KINDS] = {
	[MIX_WRITE] = &engine_write,
	[MIX_READ] = &engine_read,
	[MIX_FETCH_ADD] = &mixed_fetch_add,
	[MIX_CMP_SWAP] = &mixed_cmp_swap,
};

static const struct engine *
mixed_pick(const struct pair *p, uint64_t op)
{
	return kinds[p->t->kinds[op % p->t->nkinds]];
}

/*
 * Computes the order of types, which all pairs use. In each step the credit of every type grows by
 * its weight. The type with the largest credit is chosen, and its credit is reduced by the sum of
 * all weights.
 */
static void
mixed_start(struct pair *p)
{
	const uint32_t *weight = p->t->o.mix;
	int64_t credit[MIX_KINDS] = {0};
	struct tester *t = p->t;
	uint32_t i, k, best, sum = 0;

	p->turn_of_kind = 0;
	if (p->index != 0)
		return;
	for (k = 0; k < MIX_KINDS; k++)
		sum += weight[k];
	/*
	 * Writes the order of types to the array as often as it fits, so that posts rarely return
	 * to the start of the array.
	 */
	t->nkinds = MIX_MAX / sum * sum;
	for (i = 0; i < t->nkinds; i++) {
		for (k = best = 0; k < MIX_KINDS; k++) {
			credit[k] += weight[k];
			if (credit[k] > credit[best])
				best = k;
		}
		credit[best] -= sum;
		t->kinds[i] = (uint8_t)best;
	}
}

/*
 * Posts one operation of any type. So one loop can post operations of all types in their order.
 */
POST_ONE
mixed_one(const struct pair *p, const struct request *rq)
{
	switch (*rq->kind) {
	case MIX_WRITE:
		if (p->t->test->use_inline)
			return bb_post_write_inline(rq->qp, rq->wr_id, inline_data(rq), rq->size,
						    rq->raddr, rq->rkey, rq->flags);
		return bb_post_write(rq->qp, rq->wr_id, rq->sge, rq->pieces, rq->raddr, rq->rkey,
				     rq->flags);
	case MIX_READ:
		return bb_post_read(rq->qp, rq->wr_id, rq->sge, rq->pieces, rq->raddr, rq->rkey,
				    rq->flags);
	case MIX_FETCH_ADD:
		return add_one(p, rq);
	default:
		return swap_one(p, rq);
	}
}

/*
 * Posts up to @n operations with @pieces SGEs each. Posts them in runs, as post_pieces() does: a
 * run uses consecutive slots. Here a run also ends where the order of types (test.kinds) starts
 * over.
 */
static __rte_always_inline int
mixed_pieces(struct pair *p, uint32_t n, uint32_t pieces)
{
	uint32_t i = 0, run, done;
	int rc = 0;

	while (i < n) {
		run = RTE_MIN(pair_run(p, n - i), p->t->nkinds - p->turn_of_kind);
		done = post_run(p, run, pieces, mixed_one, &rc);
		i += done;
		p->turn_of_kind += done;
		if (p->turn_of_kind == p->t->nkinds)
			p->turn_of_kind = 0;
		if (unlikely(done != run))
			break;
	}
	return burst_result(rc, i);
}

static int
mixed_post(struct pair *p, uint32_t n)
{
	if (likely(p->initiator->lay.n == 1))
		return mixed_pieces(p, n, 1);
	return mixed_pieces(p, n, p->initiator->lay.n);
}

static void
mixed_prepare(struct pair *p, uint64_t first, uint64_t n)
{
	uint64_t op;

	for (op = first; op < first + n; op++)
		mixed_pick(p, op)->prepare(p, op, 1);
}

static void
mixed_verify(struct pair *p, uint64_t first, uint64_t n)
{
	uint64_t op;

	for (op = first; op < first + n; op++)
		mixed_pick(p, op)->verify(p, op, 1);
}

void
mixed_count(const struct tester *t, uint64_t *count)
{
	uint32_t i, n;

	for (i = 0; i < t->nflows; i++) {
		uint64_t done = t->flows[i]->done;

		for (n = 0; n < t->nkinds; n++)
			count[t->kinds[n]] += done / t->nkinds + (n < done % t->nkinds);
	}
}

const struct engine engine_mixed = {
	.name = "mixed",
	.help = "mode: WRITE, READ and atomics by --mix",
	.mode = true,
	.pick = mixed_pick,
	.post = mixed_post,
	.start = mixed_start,
	.prepare = mixed_prepare,
	.verify = mixed_verify,
};
