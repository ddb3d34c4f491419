/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * FETCH_ADD and CMP_SWAP. All operations of a pair work on one word, in slot 0 of the target. Each
 * operation returns the word's old value to the operation's own local slot. Old and new values have
 * closed forms, so each value can be checked alone.
 *
 * FETCH_ADD: operation n adds A + n. The old values are exactly V0, V0 + A, V0 + A + (A + 1), ...
 * So a lost, duplicated or reordered operation changes every later value.
 *
 * CMP_SWAP: of three operations two compare with the correct value and swap in the next value. The
 * third compares with a value that has one wrong bit, so it must return the old value and change
 * nothing.
 */
#include "modes.h"

static uint64_t
word_addr(const struct pair *p)
{
	return slot_addr(p->target, p->remote, 0);
}

static uint64_t
first_value(const struct pair *p)
{
	return op_key(p, UINT64_MAX);
}

static uint64_t
add_base(const struct pair *p)
{
	return p->t->o.seed * UINT64_C(0x9e3779b97f4a7c15) | UINT64_C(1) << 62 | 1;
}

/* Returns the value that the word has before FETCH_ADD number @n. */
static uint64_t
fetch_add_old(const struct pair *p, uint64_t n)
{
	/* Divides the even factor of n * (n - 1) by 2, so that the result is exact modulo 2^64. */
	uint64_t triangle = n % 2 == 0 ? n / 2 * (n - 1) : (n - 1) / 2 * n;

	return p->word_start + n * add_base(p) + triangle;
}

/* Returns the value that the word has after @k successful swaps. */
static uint64_t
swap_value(const struct pair *p, uint64_t k)
{
	return p->word_start + k * UINT64_C(0xd1342543de82ef95);
}

static uint64_t
cmp_swap_old(const struct pair *p, uint64_t n)
{
	return swap_value(p, n - n / 3);
}

POST_ONE
fetch_add_one(const struct pair *p, const struct request *rq)
{
	return bb_post_fetch_add(rq->qp, rq->wr_id, rq->sge, target_addr(p, 0), rq->rkey,
				 add_base(p) + rq->op, rq->flags);
}

static int
fetch_add_post(struct pair *p, uint32_t n)
{
	return post_each(p, n, fetch_add_one);
}

POST_ONE
cmp_swap_one(const struct pair *p, const struct request *rq)
{
	uint64_t op = rq->op, compare = cmp_swap_old(p, op), swap;

	if (op % 3 != 2) {
		swap = swap_value(p, op - op / 3 + 1);
	} else {
		swap = ~compare;
		compare ^= UINT64_C(1) << op / 3 % 64;
	}
	return bb_post_cmp_swap(rq->qp, rq->wr_id, rq->sge, target_addr(p, 0), rq->rkey, compare,
				swap, rq->flags);
}

static int
cmp_swap_post(struct pair *p, uint32_t n)
{
	return post_each(p, n, cmp_swap_one);
}

static void
atomic_start(struct pair *p)
{
	p->word_start = first_value(p);
	memcpy((void *)(uintptr_t)word_addr(p), &p->word_start, 8);
}

static uint8_t *
result_at(const struct pair *p, uint64_t op)
{
	uint32_t slot = (uint32_t)(op % p->t->test->slots);

	return (uint8_t *)(uintptr_t)slot_addr(p->initiator, p->local, slot);
}

static void
atomic_prepare(struct pair *p, uint64_t first, uint64_t n,
	       uint64_t (*old)(const struct pair *p, uint64_t op))
{
	uint64_t op;

	for (op = first; op < first + n; op++) {
		uint64_t not_yet = ~old(p, op);

		memcpy(result_at(p, op), &not_yet, 8);
	}
}

static void
atomic_verify(struct pair *p, uint64_t first, uint64_t n,
	      uint64_t (*old)(const struct pair *p, uint64_t op))
{
	uint64_t op;

	for (op = first; op < first + n; op++)
		word_check(p, result_at(p, op), old(p, op), op, "the old value returned");
	word_check(p, (const uint8_t *)(uintptr_t)word_addr(p), old(p, first + n), first + n - 1,
		   "the word at the target, and after it,");
	slots_verify_untouched(p, p->target, p->remote, 1);
}

static bool
atomic_arrived(struct pair *p, uint64_t op, uint64_t want)
{
	uint64_t got = __atomic_load_n((uint64_t *)(void *)result_at(p, op), __ATOMIC_RELAXED);

	return got == want;
}

static void
fetch_add_prepare(struct pair *p, uint64_t first, uint64_t n)
{
	atomic_prepare(p, first, n, fetch_add_old);
}

static void
fetch_add_verify(struct pair *p, uint64_t first, uint64_t n)
{
	atomic_verify(p, first, n, fetch_add_old);
}

static bool
fetch_add_arrived(struct pair *p, uint64_t op)
{
	return atomic_arrived(p, op, fetch_add_old(p, op));
}

static void
cmp_swap_prepare(struct pair *p, uint64_t first, uint64_t n)
{
	atomic_prepare(p, first, n, cmp_swap_old);
}

static void
cmp_swap_verify(struct pair *p, uint64_t first, uint64_t n)
{
	atomic_verify(p, first, n, cmp_swap_old);
}

static bool
cmp_swap_arrived(struct pair *p, uint64_t op)
{
	return atomic_arrived(p, op, cmp_swap_old(p, op));
}

const struct engine engine_fetch_add = {
	.name = "fetch_add",
	.help = "FETCH_ADD of 8 bytes",
	.atomic = true,
	.has_byte_len = true,
	.wc_opcode = BB_WC_FETCH_ADD,
	.post = fetch_add_post,
	.start = atomic_start,
	.prepare = fetch_add_prepare,
	.verify = fetch_add_verify,
	.arrived = fetch_add_arrived,
};

const struct engine engine_cmp_swap = {
	.name = "cmp_swap",
	.help = "CMP_SWAP of 8 bytes, every third one refused by its comparison",
	.atomic = true,
	.has_byte_len = true,
	.wc_opcode = BB_WC_CMP_SWAP,
	.post = cmp_swap_post,
	.start = atomic_start,
	.prepare = cmp_swap_prepare,
	.verify = cmp_swap_verify,
	.arrived = cmp_swap_arrived,
};
