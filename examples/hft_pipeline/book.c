/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "book.h"

/* An open order; ref 0: a free place. */
struct order {
	uint64_t ref;
	uint32_t shares;
	uint32_t price;
	uint16_t locate;
	uint8_t ask;
};

struct level {
	uint32_t price;
	uint32_t orders;
	uint64_t shares;
};

/* Levels from the worst to the best: what changes most is at the end, where moving is short. */
struct side {
	uint32_t n;
	struct level level[BOOK_LEVELS];
};

struct book {
	uint32_t symbols;
	uint32_t max_orders, open, max_open;
	uint64_t history;
	uint32_t mask;
	struct order *orders; /* open addressing, at most half full */
	struct side *sides;   /* of locate - 1: bid, ask */
};

struct book *
book_new(uint32_t symbols, uint32_t orders)
{
	struct book *b = calloc(1, sizeof(*b));
	uint64_t places = 16;

	if (b == NULL)
		return NULL;
	while (places < 2 * (uint64_t)orders)
		places *= 2;
	b->symbols = symbols;
	b->max_orders = orders;
	b->mask = (uint32_t)(places - 1);
	b->orders = calloc(places, sizeof(*b->orders));
	b->sides = calloc(2 * (size_t)symbols, sizeof(*b->sides));
	if (b->orders == NULL || b->sides == NULL) {
		book_free(b);
		return NULL;
	}
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

/* Where an order is, or the free place where it would be. */
static struct order *
order_find(const struct book *b, uint64_t ref)
{
	uint32_t i = (uint32_t)mix(ref) & b->mask;

	while (b->orders[i].ref != 0 && b->orders[i].ref != ref)
		i = (i + 1) & b->mask;
	return &b->orders[i];
}

/* Free a place, and move up those behind it that would not be found any more. */
static void
order_remove(struct book *b, struct order *o)
{
	uint32_t hole = (uint32_t)(o - b->orders), i = hole, home;

	for (;;) {
		i = (i + 1) & b->mask;
		if (b->orders[i].ref == 0)
			break;
		home = (uint32_t)mix(b->orders[i].ref) & b->mask;
		if (((i - home) & b->mask) >= ((i - hole) & b->mask)) {
			b->orders[hole] = b->orders[i];
			hole = i;
		}
	}
	b->orders[hole].ref = 0;
	b->open--;
}

static bool
better(uint32_t price, uint32_t than, bool ask)
{
	return ask ? price < than : price > than;
}

/* The index of the first level that is not worse than @price. */
static uint32_t
level_find(const struct side *s, uint32_t price, bool ask)
{
	uint32_t lo = 0, hi = s->n, mid;

	/* Nearly everything happens near the best price. */
	while (hi > 0 && s->n - hi < 4) {
		if (better(price, s->level[hi - 1].price, ask))
			return hi;
		hi--;
		if (s->level[hi].price == price)
			return hi;
	}
	while (lo < hi) {
		mid = (lo + hi) / 2;
		if (better(price, s->level[mid].price, ask))
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
level_add(struct book *b, struct side *s, uint32_t price, uint32_t shares, bool ask)
{
	uint32_t i = level_find(s, price, ask);
	struct level *l = &s->level[i];

	if (i == s->n || l->price != price) {
		if (s->n == BOOK_LEVELS)
			return "is at one price more than a side of the book has room for";
		memmove(l + 1, l, (s->n - i) * sizeof(*l));
		s->n++;
		*l = (struct level){price, 0, 0};
	}
	l->shares += shares;
	l->orders++;
	b->history = mix(b->history ^ l->shares);
	return NULL;
}

static void
level_take(struct book *b, struct side *s, uint32_t price, uint32_t shares, bool ask, bool whole)
{
	uint32_t i = level_find(s, price, ask);
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
		return "adds an order that is there already";
	if (b->open == b->max_orders)
		return "is one open order more than there is room for";
	wrong = level_add(b, side_of(b, locate, ask), price, shares, ask);
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

	level_take(b, side_of(b, o->locate, o->ask), o->price, shares, o->ask, whole);
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
		return "is of a symbol that there is no book of";
	if (m->type == ITCH_ADD)
		return add(b, m->ref, m->locate, m->side == 'S', m->shares, m->price);
	o = order_find(b, m->ref);
	if (m->ref == 0 || o->ref == 0)
		return "is about an order that is not open";
	if (o->locate != m->locate)
		return "is about an order of another symbol";
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
			return "replaces an order by one that is there already";
		old = *o;
		take(b, o, old.shares);
		wrong = add(b, m->new_ref, old.locate, old.ask, m->shares, m->price);
		if (wrong != NULL)
			add(b, old.ref, old.locate, old.ask, old.shares, old.price);
		return wrong;
	default:
		return "is of a type the book does not know";
	}
}

struct book_top
book_top_of(const struct book *b, uint16_t locate)
{
	const struct side *bid = side_of(b, locate, false), *ask = side_of(b, locate, true);
	struct book_top t = {0, 0, 0, 0};
	uint64_t shares;

	if (bid->n > 0) {
		shares = bid->level[bid->n - 1].shares;
		t.bid = bid->level[bid->n - 1].price;
		t.bid_shares = shares < UINT32_MAX ? (uint32_t)shares : UINT32_MAX;
	}
	if (ask->n > 0) {
		shares = ask->level[ask->n - 1].shares;
		t.ask = ask->level[ask->n - 1].price;
		t.ask_shares = shares < UINT32_MAX ? (uint32_t)shares : UINT32_MAX;
	}
	return t;
}

uint64_t
book_digest(const struct book *b)
{
	uint64_t d = mix(b->open + 1), sum = 0;
	uint32_t i, k;

	for (i = 0; i < 2 * b->symbols; i++) {
		const struct side *s = &b->sides[i];

		for (k = 0; k < s->n; k++) {
			d = mix(d ^ ((uint64_t)i << 32 | s->level[k].price));
			d = mix(d ^ s->level[k].shares);
			d = mix(d ^ s->level[k].orders);
		}
		d = mix(d ^ s->n);
	}
	/* Where an order is in the table depends on what was there before: any sequence counts. */
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
