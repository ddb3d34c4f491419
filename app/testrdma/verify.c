/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Fills memory with patterns before operations, and compares it with the expected contents
 * afterwards.
 *
 * The bytes of a message are a function of seed, test, pair, operation number and offset, without a
 * period. The destination is first filled with the complement of the expected bytes, so an
 * unwritten byte is always detected. Guard bytes are written once per test and checked in every
 * round. The source is compared too, because no operation may change it.
 */
#include <stdlib.h>

#include <rte_common.h>

#include "testrdma.h"

/* The finaliser of splitmix64. Every bit of the result depends on every bit of @x. */
static uint64_t
mix(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* Returns the 8-byte word @i of the pattern of @key. @key is a result of mix(). */
static inline uint64_t
pattern_word(uint64_t key, uint64_t i)
{
	uint64_t x = key + i * UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
	return x ^ x >> 29;
}

static void
pattern_fill(uint8_t *buf, uint64_t key, size_t len)
{
	size_t i;
	uint64_t w;

	for (i = 0; i < len / 8; i++) {
		w = pattern_word(key, i);
		memcpy(buf + i * 8, &w, 8);
	}
	w = pattern_word(key, i);
	memcpy(buf + i * 8, &w, len % 8);
}

static void
copy_inverted(uint8_t *to, const uint8_t *from, size_t len)
{
	uint64_t w;
	size_t i;

	for (i = 0; i + 8 <= len; i += 8) {
		memcpy(&w, from + i, 8);
		w = ~w;
		memcpy(to + i, &w, 8);
	}
	for (; i < len; i++)
		to[i] = (uint8_t)~from[i];
}

uint64_t
op_key(const struct pair *p, uint64_t op)
{
	return mix(p->t->o.seed ^
		   mix((uint64_t)p->t->test_no << 56 ^ (uint64_t)p->index << 40 ^ op));
}

uint64_t
op_word(const struct pair *p, uint64_t op)
{
	return pattern_word(op_key(p, op), 0);
}

/*
 * Returns the number from which the pattern of the guard bytes of a side is computed. The
 * initiators, the targets and the data of slots have different numbers, so that bytes in the wrong
 * place are noticed.
 */
static uint64_t
guard_key(const struct tester *t, const struct side *s)
{
	return mix(t->o.seed + 1 + (s == &t->remote));
}

void
layout_make(struct layout *lay, uint32_t size, uint32_t pieces, uint32_t offset)
{
	uint32_t i, at = GUARD + offset;

	lay->n = pieces < size ? pieces : size;
	for (i = 0; i < lay->n; i++) {
		lay->off[i] = at;
		lay->len[i] = size / lay->n + (i < size % lay->n);
		at += lay->len[i] + GUARD;
	}
	lay->stride = RTE_ALIGN_CEIL(at, 64);
}

static void
side_fill(struct tester *t, struct side *s)
{
	const struct test *test = t->test;
	uint8_t *at = s->mem + EDGE;
	uint64_t i;

	pattern_fill(s->image, guard_key(t, s), s->lay.stride);
	memcpy(s->mem, t->edge, EDGE);
	for (i = 0; i < (uint64_t)t->nflows * test->slots; i++, at += s->lay.stride)
		memcpy(at, s->image, s->lay.stride);
	memcpy(at, t->edge, EDGE);
}

void
test_fill(struct tester *t)
{
	pattern_fill(t->edge, mix(~t->o.seed), EDGE);
	side_fill(t, &t->local);
	side_fill(t, &t->remote);
}

/* Describes how the bytes @at differ from @want, so that a reader can guess the cause. */
static void
explain(char *buf, size_t size, const uint8_t *at, const uint8_t *want, size_t len)
{
	size_t i, first = len, last = 0, n = 0, inverted = 0;
	unsigned int bits = 0;

	for (i = 0; i < len; i++) {
		if (at[i] == want[i])
			continue;
		if (first == len)
			first = i;
		last = i;
		n++;
		bits += (unsigned int)__builtin_popcount(at[i] ^ want[i]);
		inverted += (at[i] ^ want[i]) == 0xff;
	}
	if (inverted == len)
		snprintf(buf, size, "none of its %zu bytes was written", len);
	else if (inverted == n && n > 1)
		snprintf(buf, size, "%zu of its %zu bytes, %zu to %zu, were not written", n, len,
			 first, last);
	else if (bits == 1)
		snprintf(buf, size, "byte %zu is 0x%02x, expected 0x%02x: one bit is wrong", first,
			 at[first], want[first]);
	else
		snprintf(buf, size,
			 "%zu of %zu bytes are wrong, the first is %zu: 0x%02x, expected 0x%02x", n,
			 len, first, at[first], want[first]);
}

/*
 * Searches for the message near its expected position. Returns its distance from there in bytes, 0
 * if the message is not found. The guard bytes around a message make it safe to read there.
 */
static int
find_shift(const uint8_t *at, const uint8_t *want, size_t len)
{
	int d;

	for (d = 1; len >= 4 && d <= GUARD; d++) {
		if (memcmp(at + d, want, len) == 0)
			return d;
		if (memcmp(at - d, want, len) == 0)
			return -d;
	}
	return 0;
}

/*
 * Compares the bytes @at with @want and reports a difference. @p and @op name the operation that
 * the bytes belong to; @p is NULL if there is none.
 */
static void
bytes_check(struct tester *t, const struct pair *p, const uint8_t *at, const uint8_t *want,
	    size_t len, uint64_t op, const char *what)
{
	char text[160];
	int shift;

	if (likely(memcmp(at, want, len) == 0))
		return;
	shift = p != NULL ? find_shift(at, want, len) : 0;
	if (shift != 0)
		snprintf(text, sizeof(text), "the data is %d bytes %s its address", abs(shift),
			 shift > 0 ? "after" : "before");
	else
		explain(text, sizeof(text), at, want, len);
	if (p == NULL)
		report_fail(t, "%s at %p: %s", what, (const void *)at, text);
	else
		report_fail(t, "operation %" PRIu64 " of pair %u: %s at %p: %s", op, p->index, what,
			    (const void *)at, text);
}

void
word_check(struct pair *p, const uint8_t *at, uint64_t want, uint64_t op, const char *what)
{
	uint64_t got;

	memcpy(&got, at, sizeof(got));
	if (got != want)
		report_fail(p->t,
			    "operation %" PRIu64 " of pair %u: %s is 0x%016" PRIx64
			    ", expected 0x%016" PRIx64 "%s",
			    op, p->index, what, got, want,
			    got == ~want ? ": nothing was written" : "");
	else
		p->t->test->res.bytes += sizeof(got);
}

static void
pieces_check(struct pair *p, const struct side *s, const uint8_t *slot, uint64_t op,
	     const char *what)
{
	const struct layout *lay = &s->lay;
	uint32_t i, at = 0;

	for (i = 0; i < lay->n; i++) {
		bytes_check(p->t, p, slot + lay->off[i], p->t->scratch + at, lay->len[i], op, what);
		at += lay->len[i];
	}
}

void
data_prepare(struct pair *p, uint64_t first, uint64_t n)
{
	struct tester *t = p->t;
	const struct test *test = t->test;
	uint64_t op;

	for (op = first; op < first + n; op++) {
		bool out = op_engine(p, op)->to_target;
		const struct layout *from = out ? &p->initiator->lay : &p->target->lay;
		const struct layout *to = out ? &p->target->lay : &p->initiator->lay;
		uint32_t slot = (uint32_t)(op % test->slots), i, at;
		uint8_t *src = (out ? p->local : p->remote) + (size_t)slot * from->stride;
		uint8_t *dst = (out ? p->remote : p->local) + (size_t)slot * to->stride;

		pattern_fill(t->scratch, op_key(p, op), test->size);
		for (i = at = 0; i < from->n; at += from->len[i++])
			memcpy(src + from->off[i], t->scratch + at, from->len[i]);
		for (i = at = 0; i < to->n; at += to->len[i++])
			copy_inverted(dst + to->off[i], t->scratch + at, to->len[i]);
	}
}

void
data_verify(struct pair *p, uint64_t first, uint64_t n)
{
	struct tester *t = p->t;
	struct test *test = t->test;
	uint64_t op;

	for (op = first; op < first + n; op++) {
		bool out = op_engine(p, op)->to_target;
		size_t slot = op % test->slots;
		uint64_t errors = test->res.errors;

		pattern_fill(t->scratch, op_key(p, op), test->size);
		pieces_check(p, p->initiator, p->local + slot * p->initiator->lay.stride, op,
			     out ? "the initiator's memory, the source," : "the data read");
		pieces_check(p, p->target, p->remote + slot * p->target->lay.stride, op,
			     out ? "the data at the target" : "the target's memory, the source,");
		if (test->res.errors == errors)
			test->res.bytes += test->size;
	}
}

void
data_verify_after_word(struct pair *p, uint64_t op)
{
	struct test *test = p->t->test;
	size_t slot = op % test->slots, len = test->size - 8;
	uint8_t *want = p->t->scratch;

	pattern_fill(want, op_key(p, op), test->size);
	bytes_check(p->t, p,
		    (uint8_t *)(uintptr_t)slot_addr(p->target, p->remote, (uint32_t)slot) + 8,
		    want + 8, len, op, "the target's memory after the word");
	copy_inverted(want, want, test->size);
	bytes_check(p->t, p,
		    (uint8_t *)(uintptr_t)slot_addr(p->initiator, p->local, (uint32_t)slot) + 8,
		    want + 8, len, op, "the initiator's memory after the word");
}

/*
 * Returns true if the last byte of the message is in memory, which means that it was written before
 * the completion.
 */
bool
data_arrived(struct pair *p, uint64_t op)
{
	const struct test *test = p->t->test;
	bool out = op_engine(p, op)->to_target;
	const struct side *s = out ? p->target : p->initiator;
	const uint8_t *base = out ? p->remote : p->local;
	const struct layout *lay = &s->lay;
	size_t slot = op % test->slots;
	uint32_t last = test->size - 1;
	const uint8_t *at =
		base + slot * lay->stride + lay->off[lay->n - 1] + lay->len[lay->n - 1] - 1;

	return __atomic_load_n(at, __ATOMIC_RELAXED) ==
	       (uint8_t)(pattern_word(op_key(p, op), last / 8) >> last % 8 * 8);
}

static void
guard_check(struct tester *t, const struct pair *p, const uint8_t *slot, const uint8_t *image,
	    uint32_t from, uint32_t to, uint32_t slot_no, const char *side)
{
	char what[96];

	if (likely(memcmp(slot + from, image + from, to - from) == 0)) {
		t->test->res.guards += to - from;
		return;
	}
	snprintf(what, sizeof(what), "%s memory beside the data of slot %u of pair %u", side,
		 slot_no, p->index);
	bytes_check(t, NULL, slot + from, image + from, to - from, 0, what);
}

static void
side_guards_verify(struct tester *t, const struct side *s, uint32_t nflows)
{
	const struct test *test = t->test;
	const struct layout *lay = &s->lay;
	const uint8_t *slot = s->mem + EDGE;
	uint32_t i, n, k;

	bytes_check(t, NULL, s->mem, t->edge, EDGE, 0, "memory before the first slot");
	for (i = 0; i < nflows; i++) {
		for (n = 0; n < test->slots; n++, slot += lay->stride) {
			guard_check(t, t->flows[i], slot, s->image, 0, lay->off[0], n, s->name);
			for (k = 0; k < lay->n; k++)
				guard_check(
					t, t->flows[i], slot, s->image, lay->off[k] + lay->len[k],
					k + 1 < lay->n ? lay->off[k + 1] : lay->stride, n, s->name);
		}
	}
	slot += (size_t)(t->nflows - nflows) * test->slots * lay->stride;
	bytes_check(t, NULL, slot, t->edge, EDGE, 0, "memory after the last slot");
	t->test->res.guards += 2 * EDGE;
}

/*
 * Verifies the guard bytes around every slot of the first @nflows flows, and the EDGE guard bytes
 * of both memories.
 */
void
guards_verify(struct tester *t, uint32_t nflows)
{
	side_guards_verify(t, &t->local, nflows);
	side_guards_verify(t, &t->remote, nflows);
}

/*
 * Verifies that the slots from @from on, with their data, still have the contents that test_fill()
 * wrote.
 */
void
slots_verify_untouched(struct pair *p, const struct side *s, const uint8_t *base, uint32_t from)
{
	const struct test *test = p->t->test;
	const struct layout *lay = &s->lay;
	uint32_t n;

	for (n = from; n < test->slots; n++)
		bytes_check(p->t, NULL, base + (size_t)n * lay->stride + lay->off[0],
			    s->image + lay->off[0], lay->len[0], 0,
			    "memory that no operation addresses");
}

/*
 * Verifies the last @n operations of each of the first @nflows flows (directions of pairs). Call it
 * after these operations have completed.
 */
void
round_verify(struct tester *t, uint32_t nflows, uint64_t n)
{
	struct result *res = &t->test->res;
	uint64_t errors = res->errors;
	uint32_t i;

	for (i = 0; i < nflows; i++)
		t->test->e->verify(t->flows[i], t->flows[i]->done - n, n);
	guards_verify(t, nflows);
	/*
	 * Reports late data only if the memory is correct now. Otherwise the errors in memory,
	 * which were reported already, say more.
	 */
	if (res->late != 0 && res->errors == errors)
		report_fail(t,
			    "operation %" PRIu64 " and %" PRIu64
			    " others: their results arrived after their completions",
			    res->first_late, res->late - 1);
	res->late = 0;
	res->rounds++;
}
