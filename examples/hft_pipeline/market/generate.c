/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "book.h"
#include "generate.h"

#define TICK 100u /* step of a price: one cent */
#define OPENING                                                                                    \
	UINT64_C(34200000000000) /* time of the first message: 09:30 in ns since midnight          \
				  */
#define MID   1000000u           /* first middle price: 100 dollars */
#define WALK  40000u /* maximum distance of a symbol's middle price from MID, 4 dollars */
#define DEPTH 48u    /* approximate number of open orders per symbol */
#define ROUND 100u   /* all numbers of shares are multiples of this */

/* An order that later messages may refer to. */
struct live {
	uint64_t ref;
	uint32_t shares;
	uint16_t locate;
	char side;
};

struct maker {
	uint64_t rng;
	uint64_t ns;
	uint64_t ref;
	uint64_t match;
	uint32_t nlive;
	struct live live[GENERATE_MAX_OPEN];
	uint32_t mid[ITCH_SYMBOLS];
	struct book *book;
};

/* Returns the next random number (splitmix64). */
static uint64_t
next(struct maker *k)
{
	uint64_t x = k->rng += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static uint32_t
below(struct maker *k, uint32_t n)
{
	return (uint32_t)((next(k) >> 32) * n >> 32);
}

/*
 * Returns a price near the symbol's middle price, which moves randomly. A price closer to the
 * middle is more likely. A price at which an exchange would have matched the order is never
 * returned.
 */
static uint32_t
price(struct maker *k, uint16_t locate, char side)
{
	uint32_t *mid = &k->mid[locate - 1], off = 1 + below(k, 1 + below(k, 6)), p;
	struct book_top top = book_top_of(k->book, locate);

	if (below(k, 4) == 0) {
		if (below(k, 2) == 0)
			*mid += *mid < MID + WALK ? TICK : 0;
		else
			*mid -= *mid > MID - WALK ? TICK : 0;
	}
	p = side == 'B' ? *mid - off * TICK : *mid + off * TICK;
	if (side == 'B' && top.ask != 0 && p >= top.ask)
		p = top.ask - TICK;
	if (side == 'S' && p <= top.bid)
		p = top.bid + TICK;
	return p;
}

static void
fill_add(struct maker *k, struct itch_msg *m, uint32_t symbols)
{
	char name[16];

	m->type = ITCH_ADD;
	m->locate = (uint16_t)(1 + below(k, symbols));
	m->ref = ++k->ref;
	m->side = below(k, 2) == 0 ? 'B' : 'S';
	m->shares = ROUND * (1 + below(k, 10));
	m->price = price(k, m->locate, m->side);
	snprintf(name, sizeof(name), "BB%04u  ", (unsigned int)m->locate);
	memcpy(m->stock, name, sizeof(m->stock));
	k->live[k->nlive++] = (struct live){m->ref, m->shares, m->locate, m->side};
}

/*
 * Fills in a message that changes a random open order. @kind, from 0 to 99, selects the type of the
 * message.
 */
static void
fill_change(struct maker *k, struct itch_msg *m, uint32_t kind)
{
	uint32_t i = below(k, k->nlive);
	struct live *o = &k->live[i];

	m->locate = o->locate;
	m->ref = o->ref;
	if (kind < 30 && o->shares > ROUND) {
		m->type = kind < 15 ? ITCH_CANCEL : ITCH_EXECUTE;
		m->shares = ROUND * (1 + below(k, o->shares / ROUND - 1));
		o->shares -= m->shares;
	} else if (kind < 45) {
		m->type = ITCH_EXECUTE;
		m->shares = o->shares;
		*o = k->live[--k->nlive];
	} else if (kind < 65) {
		m->type = ITCH_REPLACE;
		m->new_ref = ++k->ref;
		m->shares = ROUND * (1 + below(k, 10));
		m->price = price(k, o->locate, o->side);
		o->ref = m->new_ref;
		o->shares = m->shares;
	} else {
		m->type = ITCH_DELETE;
		*o = k->live[--k->nlive];
	}
	if (m->type == ITCH_EXECUTE)
		m->new_ref = ++k->match;
}

int
generate(const struct generate *g, uint8_t **image, size_t *size)
{
	size_t room = ITCH_HEADER + (size_t)g->messages * (2 + ITCH_MAX);
	struct itch_header h = {0, g->seed, g->messages, g->symbols, 0, 0};
	struct maker *k;
	uint8_t *buf, *p;
	uint32_t i, len;
	int rc = 0;

	if (g->messages < 2 || g->symbols == 0 || g->symbols > ITCH_SYMBOLS)
		return -EINVAL;
	k = calloc(1, sizeof(*k));
	buf = malloc(room);
	if (k != NULL)
		k->book = book_new(g->symbols, GENERATE_MAX_OPEN);
	if (k == NULL || k->book == NULL || buf == NULL) {
		rc = -ENOMEM;
		goto out;
	}
	k->rng = g->seed;
	k->ns = OPENING;
	for (i = 0; i < g->symbols; i++)
		k->mid[i] = MID;
	for (i = 0, p = buf + ITCH_HEADER; i < g->messages; i++, p += len) {
		struct itch_msg m = {0};

		k->ns += 1 + below(k, 20000);
		m.ns = k->ns;
		m.tracking = (uint16_t)i;
		if (i == 0 || i + 1 == g->messages) {
			m.type = ITCH_SYSTEM;
			m.side = i == 0 ? 'O' : 'C';
		} else if (k->nlive < GENERATE_MAX_OPEN &&
			   (k->nlive < 2 * g->symbols ||
			    below(k, 100) < (k->nlive < DEPTH * g->symbols ? 60u : 25u))) {
			fill_add(k, &m, g->symbols);
		} else {
			fill_change(k, &m, below(k, 100));
		}
		if (book_apply(k->book, &m) != NULL) {
			rc = -EINVAL; /* the book has no room for a price; the messages generated
					 here never cause that */
			goto out;
		}
		len = itch_encode(&m, p + 2);
		p[0] = (uint8_t)(len >> 8);
		p[1] = (uint8_t)len;
		len += 2;
	}
	h.max_open = book_max_open(k->book);
	*size = (size_t)(p - buf);
	h.bytes = *size - ITCH_HEADER;
	h.crc = itch_crc(0, buf + ITCH_HEADER, h.bytes);
	itch_header_encode(&h, buf);
	*image = buf;
	buf = NULL;
out:
	if (k != NULL)
		book_free(k->book);
	free(k);
	free(buf);
	return rc;
}
