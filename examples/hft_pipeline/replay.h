/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The whole pipeline without transport: what must have come out of it. */
#ifndef REPLAY_H
#define REPLAY_H

#include "stages.h"

/* An order as the market would get it. */
struct order_out {
	uint32_t number; /* of the tick, from 0 */
	uint32_t shares;
	uint32_t price;
	uint16_t locate;
	char side;
	char pad;
};

struct replay {
	struct order_out *orders; /* of malloc() */
	uint32_t norders;
	uint64_t digest; /* of the books, and the way they went */
	uint32_t quotes, decisions;
	uint32_t stopped[RISK_REASONS];
	uint32_t wrong; /* messages that do not fit the books */
	uint32_t which; /* the first of them, from 1, */
	const char *why;
};

/* Keep what matters of an order. */
struct order_out order_out_of(const union hft_msg *m);

/* Replay the first @messages of a file. 0 or -ENOMEM. */
int replay(struct replay *r, const struct itch_file *f, uint32_t messages, const struct params *p);

void replay_free(struct replay *r);

#endif
