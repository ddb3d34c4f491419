/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Order books: all open orders, and for each symbol the shares offered at each price. All memory is
 * allocated when the books are created. The books depend on nothing but the messages applied to
 * them.
 */
#ifndef BOOK_H
#define BOOK_H

#include "itch.h"

#define BOOK_LEVELS 1024 /* maximum number of prices per side of a symbol */

/* Best prices of a symbol and their shares; 0 if a side is empty. */
struct book_top {
	uint32_t bid, bid_shares, ask, ask_shares;
};

struct book;

/* Creates books for @orders open orders at a time. Returns NULL if there is no memory. */
struct book *book_new(uint32_t symbols, uint32_t orders);
void book_free(struct book *b);

/*
 * Applies message @m to the books. Returns NULL, or the reason why the message does not fit the
 * books, as a part of a sentence. The books are then unchanged.
 */
const char *book_apply(struct book *b, const struct itch_msg *m);

/*
 * Prefetches a small part of the books. Call it in each pass of the lcore's loop that finds no
 * message. Milliseconds may pass between two accesses to an order. Without the prefetch, the
 * order's cache line is then no longer in a cache, and fetching it takes as long as all other work
 * for the order. Does nothing for books that are too large for a cache.
 */
void book_warm(struct book *b);

/* Returns the best prices of a symbol of the books. */
struct book_top book_top_of(const struct book *b, uint16_t locate);

/* Returns a hash over all levels and orders. Only equal books have equal hashes. */
uint64_t book_digest(const struct book *b);

/*
 * Returns a hash over every change of a level. Only books with the same history have equal hashes:
 * books that differed for a while and are equal again have different hashes.
 */
uint64_t book_history(const struct book *b);

/* book_open() returns the number of open orders, book_max_open() its maximum so far. */
uint32_t book_open(const struct book *b);
uint32_t book_max_open(const struct book *b);

#endif
