/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Runs the whole pipeline without transport, to compute the expected result. */
#ifndef REPLAY_H
#define REPLAY_H

#include "stages.h"

/* Fields of an order as the gateway sends it to the market. */
struct order_out {
	uint32_t number; /* number of the tick that caused the order, from 0 */
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
	uint32_t wrong; /* number of messages that do not fit the books */
};

/* Returns the fields of an order message that the gateway sends to the market. */
struct order_out order_out_of(const union hft_msg *m);

/* Replays the first @messages of a file. Returns 0 or -ENOMEM. */
int replay(struct replay *r, const struct itch_file *f, uint32_t messages, const struct params *p);

void replay_free(struct replay *r);

#endif
