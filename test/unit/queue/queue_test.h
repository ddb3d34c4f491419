/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Shared by the tests of the rings: cmocka's includes, guarded memory, reproducible random
 * numbers and expected bytes.
 */
#ifndef QUEUE_TEST_H
#define QUEUE_TEST_H

#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../fakes/log_catch.h"
#include "bb_test_on.h"

#define GUARD_PAGE 4096u

/* Memory that ends at a page that faults or, with @head, starts right after one. */
struct guarded {
	uint8_t *map;
	size_t map_len;
	uint8_t *p;
};

static inline struct guarded
guarded_alloc(size_t len, bool head)
{
	size_t body = (len + GUARD_PAGE - 1) / GUARD_PAGE * GUARD_PAGE;
	struct guarded g;

	g.map_len = body + 2 * GUARD_PAGE;
	g.map = mmap(NULL, g.map_len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(g.map != MAP_FAILED);
	assert_int_equal(mprotect(g.map + GUARD_PAGE, body, PROT_READ | PROT_WRITE), 0);
	g.p = head ? g.map + GUARD_PAGE : g.map + GUARD_PAGE + body - len;
	return g;
}

static inline void
guarded_free(struct guarded *g)
{
	munmap(g->map, g->map_len);
}

/* xorshift64*: the same numbers on every machine. */
static inline uint64_t
rnd(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1dull;
}

static inline uint32_t
rnd_below(uint64_t *state, uint32_t n)
{
	return (uint32_t)(rnd(state) >> 32) % n;
}

/* Expected bytes, written by hand without the code under test. */
struct bytes {
	uint8_t b[2048];
	size_t len;
};

static inline void
put8(struct bytes *e, uint8_t v)
{
	assert_true(e->len < sizeof(e->b));
	e->b[e->len++] = v;
}

static inline void
put32(struct bytes *e, uint32_t v)
{
	for (int i = 24; i >= 0; i -= 8)
		put8(e, (uint8_t)(v >> i));
}

static inline void
put64(struct bytes *e, uint64_t v)
{
	put32(e, (uint32_t)(v >> 32));
	put32(e, (uint32_t)v);
}

static inline void
put_mem(struct bytes *e, const void *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		put8(e, ((const uint8_t *)p)[i]);
}

static inline void
put_pad16(struct bytes *e, uint8_t fill)
{
	while (e->len % 16 != 0)
		put8(e, fill);
}

#endif
