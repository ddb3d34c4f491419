/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The whole pipeline without transport: computes the expected result. */
#ifndef REPLAY_H
#define REPLAY_H

#include "stages.h"

/* An order as sent to the market. */
struct order_out {
	uint32_t number; /* number of its tick, from 0 */
	uint32_t shares;
	uint32_t price;
	uint16_t locate;
	char side;
	char pad;
};

struct replay {
	struct order_out *orders; /* from malloc() */
	uint32_t norders;
	uint64_t digest; /* hash of the books and their history */
	uint32_t quotes, decisions;
	uint32_t stopped[RISK_REASONS];
	uint32_t wrong; /* messages that do not fit the books */
	uint32_t which; /* number of the first one, from 1, and the reason */
	const char *why;
};

/* Returns the relevant fields of an order. */
struct order_out order_out_of(const union hft_msg *m);

/* Replays the first @messages of a file. Returns 0 or -ENOMEM. */
int replay(struct replay *r, const struct itch_file *f, uint32_t messages, const struct params *p);

void replay_free(struct replay *r);

#endif
