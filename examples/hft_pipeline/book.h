/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Order books: all open orders, and for each symbol the shares offered at each price. All memory is
 * allocated when the books are created. Pure: the same messages produce the same books.
 */
#ifndef BOOK_H
#define BOOK_H

#include "itch.h"

#define BOOK_LEVELS 1024 /* maximum prices per side of a symbol */

/* Best prices of a symbol; 0 if a side is empty. */
struct book_top {
	uint32_t bid, bid_shares, ask, ask_shares;
};

struct book;

/* Creates books for @orders open orders at a time. Returns NULL if there is no memory. */
struct book *book_new(uint32_t symbols, uint32_t orders);
void book_free(struct book *b);

/*
 * Applies a message. Returns NULL, or the reason why it does not fit the books, as a part of a
 * sentence; the books are then unchanged.
 */
const char *book_apply(struct book *b, const struct itch_msg *m);

/*
 * Prefetches a small part of the books; call it in each turn without a message. Milliseconds may
 * pass between two accesses to an order. Its line was then out of the caches, and fetching it cost
 * as much as all other work for the order. Books that are too large for a cache are skipped.
 */
void book_warm(struct book *b);

/* Returns the best prices of a symbol of the books. */
struct book_top book_top_of(const struct book *b, uint16_t locate);

/* Returns a hash over all levels and orders: equal for equal books only. */
uint64_t book_digest(const struct book *b);

/*
 * Returns a hash over every change of a level: equal for books with the same history. Books that
 * differed for a while and are equal again have different hashes.
 */
uint64_t book_history(const struct book *b);

/* Return the number of open orders, and its maximum so far. */
uint32_t book_open(const struct book *b);
uint32_t book_max_open(const struct book *b);

#endif
