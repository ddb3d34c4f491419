/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Order books: all open orders, and for each symbol the shares that are offered at each price.
 * All memory is taken when the books are made. Pure: the same messages make the same books.
 */
#ifndef BOOK_H
#define BOOK_H

#include "itch.h"

#define BOOK_LEVELS 1024 /* prices of a side of a symbol */

/* Best prices of a symbol; 0 where a side is empty. */
struct book_top {
	uint32_t bid, bid_shares, ask, ask_shares;
};

struct book;

/* NULL: no memory. @orders that may be open at a time. */
struct book *book_new(uint32_t symbols, uint32_t orders);
void book_free(struct book *b);

/*
 * Apply a message. NULL, or why it does not fit the books, as a piece of a sentence; they are as
 * they were then.
 */
const char *book_apply(struct book *b, const struct itch_msg *m);

/*
 * For each turn without a message: fetch a little of the books, all of it in turn. An order is
 * looked at once in milliseconds; by then its line was out of the caches, and fetching it cost
 * as much as all else that is done to it. Books that are too large for
 * a cache are left alone.
 */
void book_warm(struct book *b);

/* Best prices of a symbol of the book. */
struct book_top book_top_of(const struct book *b, uint16_t locate);

/* What two equal books have in common, and no others: a sum over all levels and orders. */
uint64_t book_digest(const struct book *b);

/*
 * What two books that went the same way have in common: a sum over every change of a level. Books
 * that were different for a while and are equal again differ in it.
 */
uint64_t book_history(const struct book *b);

/* Orders that are open, and most that were at a time. */
uint32_t book_open(const struct book *b);
uint32_t book_max_open(const struct book *b);

#endif
