/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "book.h"

/*
 * An open order. If ref is 0, the entry is free. The struct is aligned, so that no entry spans two
 * cache lines.
 */
struct order {
	_Alignas(32) uint64_t ref;
	uint32_t shares;
	uint32_t price;
	uint16_t locate;
	uint8_t ask;
};

struct level {
	uint32_t rank; /* rank of the order's price, higher is better: see rank_of() */
	uint32_t orders;
	uint64_t shares;
};

#define BRANCHLESS 8 /* number of levels that are compared without a branch per level */

/*
 * Largest books that book_warm() prefetches. Together with the lcore's other data they fit into a
 * core's second-level cache.
 */
#define WARM_ORDERS  8192 /* book_warm() prefetches tables of up to this many orders, 256 KiB */
#define WARM_SYMBOLS 64   /* no prefetch if the book has more symbols than this */
#define LINE         64

/*
 * One side of a symbol's book. Levels are sorted from the worst to the best, because most changes
 * are near the best, where few entries must be moved. The first BRANCHLESS entries are empty and
 * worse than any level, so the last BRANCHLESS entries can always be compared.
 */
struct side {
	uint32_t n;
	struct level level[BRANCHLESS + BOOK_LEVELS];
};

struct book {
	uint32_t symbols;
	uint32_t max_orders, open, max_open;
	uint64_t history;
	uint32_t mask;
	unsigned int shift;   /* reduces a 64-bit hash to as many bits as mask has */
	struct order *orders; /* hash table with open addressing, at most half full */
	struct side *sides;   /* two for each symbol: index 2 * (stock locate - 1) for bid, the next
				 index for ask */
	uint32_t warm_order, warm_side; /* next entries that book_warm() prefetches */
};

struct book *
book_new(uint32_t symbols, uint32_t orders)
{
	struct book *b = calloc(1, sizeof(*b));
	uint64_t slots = 16;
	uint32_t i;

	if (b == NULL)
		return NULL;
	while (slots < 2 * (uint64_t)orders)
		slots *= 2;
	b->symbols = symbols;
	b->max_orders = orders;
	b->mask = (uint32_t)(slots - 1);
	b->shift = 64 - (unsigned int)__builtin_ctzll(slots);
	b->orders = aligned_alloc(_Alignof(struct order), slots * sizeof(*b->orders));
	if (b->orders != NULL)
		memset(b->orders, 0, slots * sizeof(*b->orders));
	b->sides = calloc(2 * (size_t)symbols, sizeof(*b->sides));
	if (b->orders == NULL || b->sides == NULL) {
		book_free(b);
		return NULL;
	}
	for (i = 0; i < 2 * symbols; i++)
		b->sides[i].n = BRANCHLESS;
	return b;
}

void
book_free(struct book *b)
{
	if (b == NULL)
		return;
	free(b->orders);
	free(b->sides);
	free(b);
}

static uint64_t
mix(uint64_t x)
{
	x = (x ^ x >> 31) * UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ x >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
	return x ^ x >> 32;
}

/*
 * Returns the index of an order's preferred entry in the hash table. One multiplication spreads
 * consecutive numbers evenly, and order numbers are mostly consecutive.
 */
static uint32_t
home_of(const struct book *b, uint64_t ref)
{
	return (uint32_t)(ref * UINT64_C(0x9e3779b97f4a7c15) >> b->shift);
}

/* Returns the entry of an order, or the free entry where it would be inserted. */
static struct order *
order_find(const struct book *b, uint64_t ref)
{
	uint32_t i = home_of(b, ref);

	while (b->orders[i].ref != 0 && b->orders[i].ref != ref)
		i = (i + 1) & b->mask;
	return &b->orders[i];
}

/* Frees the entry @o, and moves up later entries that order_find() would no longer find. */
static void
order_remove(struct book *b, struct order *o)
{
	uint32_t hole = (uint32_t)(o - b->orders), i = hole, home;

	for (;;) {
		i = (i + 1) & b->mask;
		if (b->orders[i].ref == 0)
			break;
		home = home_of(b, b->orders[i].ref);
		if (((i - home) & b->mask) >= ((i - hole) & b->mask)) {
			b->orders[hole] = b->orders[i];
			hole = i;
		}
	}
	b->orders[hole].ref = 0;
	b->open--;
}

/*
 * Converts a price to a rank, which is higher for a better price: a higher bid or a lower ask. The
 * same function converts a rank to a price.
 */
static uint32_t
rank_of(uint32_t price, bool ask)
{
	return ask ? ~price : price;
}

/* Returns the index of the first level that is not worse than @rank. */
static uint32_t
level_find(const struct side *s, uint32_t rank)
{
	uint32_t lo = BRANCHLESS, hi = s->n, mid, better = 0, i;

	/*
	 * First examines the best BRANCHLESS levels. Counts those that are better than @rank,
	 * without branches: most changes are near the best price, at a distance that no branch
	 * predictor can guess.
	 */
	for (i = 1; i <= BRANCHLESS; i++)
		better += s->level[s->n - i].rank > rank;
	hi -= better;
	if (better < BRANCHLESS)
		return hi - (hi > BRANCHLESS && s->level[hi - 1].rank == rank);
	while (lo < hi) {
		mid = (lo + hi) / 2;
		if (s->level[mid].rank < rank)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static struct side *
side_of(const struct book *b, uint16_t locate, bool ask)
{
	return &b->sides[2 * (size_t)(locate - 1) + ask];
}

static const char *
level_add(struct book *b, struct side *s, uint32_t rank, uint32_t shares)
{
	uint32_t i = level_find(s, rank);
	struct level *l = &s->level[i];

	if (i == s->n || l->rank != rank) {
		if (s->n == BRANCHLESS + BOOK_LEVELS)
			return "needs more prices than a side of the book has room for";
		memmove(l + 1, l, (s->n - i) * sizeof(*l));
		s->n++;
		*l = (struct level){rank, 0, 0};
	}
	l->shares += shares;
	l->orders++;
	b->history = mix(b->history ^ l->shares);
	return NULL;
}

static void
level_take(struct book *b, struct side *s, uint32_t rank, uint32_t shares, bool whole)
{
	uint32_t i = level_find(s, rank);
	struct level *l = &s->level[i];

	l->shares -= shares;
	l->orders -= whole;
	b->history = mix(b->history ^ l->shares);
	if (l->orders == 0) {
		s->n--;
		memmove(l, l + 1, (s->n - i) * sizeof(*l));
	}
}

static const char *
add(struct book *b, uint64_t ref, uint16_t locate, bool ask, uint32_t shares, uint32_t price)
{
	struct order *o = order_find(b, ref);
	const char *wrong;

	if (ref == 0 || o->ref != 0)
		return "adds an order that exists already";
	if (b->open == b->max_orders)
		return "exceeds the maximum of open orders";
	wrong = level_add(b, side_of(b, locate, ask), rank_of(price, ask), shares);
	if (wrong != NULL)
		return wrong;
	*o = (struct order){ref, shares, price, locate, ask};
	if (++b->open > b->max_open)
		b->max_open = b->open;
	return NULL;
}

static void
take(struct book *b, struct order *o, uint32_t shares)
{
	bool whole = shares == o->shares;

	level_take(b, side_of(b, o->locate, o->ask), rank_of(o->price, o->ask), shares, whole);
	o->shares -= shares;
	if (whole)
		order_remove(b, o);
}

const char *
book_apply(struct book *b, const struct itch_msg *m)
{
	const char *wrong;
	struct order *o, old;

	if (m->type == ITCH_SYSTEM)
		return NULL;
	if (m->locate == 0 || m->locate > b->symbols)
		return "has a symbol without a book";
	if (m->type == ITCH_ADD)
		return add(b, m->ref, m->locate, m->side == 'S', m->shares, m->price);
	o = order_find(b, m->ref);
	if (m->ref == 0 || o->ref == 0)
		return "refers to an order that is not open";
	if (o->locate != m->locate)
		return "refers to an order of another symbol";
	switch (m->type) {
	case ITCH_EXECUTE:
	case ITCH_CANCEL:
		if (m->shares > o->shares)
			return "takes more shares than the order has";
		take(b, o, m->shares);
		return NULL;
	case ITCH_DELETE:
		take(b, o, o->shares);
		return NULL;
	case ITCH_REPLACE:
		if (m->new_ref == m->ref || order_find(b, m->new_ref)->ref != 0)
			return "replaces an order by one that exists already";
		old = *o;
		take(b, o, old.shares);
		wrong = add(b, m->new_ref, old.locate, old.ask, m->shares, m->price);
		if (wrong != NULL)
			add(b, old.ref, old.locate, old.ask, old.shares, old.price);
		return wrong;
	default:
		return "has a type that the book does not know";
	}
}

/*
 * Returns the shares of the best level of a side. It is 0 if the side is empty, because empty
 * entries have no shares.
 */
static uint32_t
top_shares(const struct side *s)
{
	uint64_t shares = s->level[s->n - 1].shares;

	return shares < UINT32_MAX ? (uint32_t)shares : UINT32_MAX;
}

void
book_warm(struct book *b)
{
	const struct side *s = &b->sides[b->warm_side];
	uint32_t i;

	if (b->mask >= WARM_ORDERS || b->symbols > WARM_SYMBOLS)
		return;
	__builtin_prefetch(&b->orders[b->warm_order]);
	b->warm_order = (b->warm_order + LINE / sizeof(*b->orders)) & b->mask;
	/*
	 * Prefetches the best levels and the entry after them. BRANCHLESS more entries always
	 * precede them. If the side is full, that entry is past the end of the array, which is
	 * harmless for a prefetch. The read of s->n loads its cache line.
	 */
	for (i = 0; i <= BRANCHLESS; i += LINE / sizeof(s->level[0]))
		__builtin_prefetch(&s->level[s->n - i]);
	if (++b->warm_side == 2 * b->symbols)
		b->warm_side = 0;
}

struct book_top
book_top_of(const struct book *b, uint16_t locate)
{
	const struct side *bid = side_of(b, locate, false), *ask = side_of(b, locate, true);

	return (struct book_top){
		.bid = bid->level[bid->n - 1].rank,
		.bid_shares = top_shares(bid),
		.ask = ask->n > BRANCHLESS ? rank_of(ask->level[ask->n - 1].rank, true) : 0,
		.ask_shares = top_shares(ask),
	};
}

uint64_t
book_digest(const struct book *b)
{
	uint64_t d = mix(b->open + 1), sum = 0;
	uint32_t i, k;

	for (i = 0; i < 2 * b->symbols; i++) {
		const struct side *s = &b->sides[i];

		for (k = BRANCHLESS; k < s->n; k++) {
			d = mix(d ^ ((uint64_t)i << 32 | rank_of(s->level[k].rank, i % 2 != 0)));
			d = mix(d ^ s->level[k].shares);
			d = mix(d ^ s->level[k].orders);
		}
		d = mix(d ^ (s->n - BRANCHLESS));
	}
	/*
	 * Adds up the hashes of the orders, because their positions in the table depend on earlier
	 * orders.
	 */
	for (i = 0; i <= b->mask; i++) {
		const struct order *o = &b->orders[i];

		if (o->ref != 0)
			sum += mix(mix(o->ref) ^ mix((uint64_t)o->shares << 32 | o->price) ^
				   mix((uint64_t)o->locate << 1 | o->ask));
	}
	return mix(d ^ sum);
}

uint64_t
book_history(const struct book *b)
{
	return b->history;
}

uint32_t
book_open(const struct book *b)
{
	return b->open;
}

uint32_t
book_max_open(const struct book *b)
{
	return b->max_open;
}
