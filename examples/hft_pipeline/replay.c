/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "replay.h"

struct order_out
order_out_of(const union hft_msg *m)
{
	return (struct order_out){m->number,       m->order.shares, m->order.price,
				  m->order.locate, m->order.side,   0};
}

int
replay(struct replay *r, const struct itch_file *f, uint32_t messages, const struct params *p)
{
	union hft_msg tick, quote[STAGE_OUT], order[STAGE_OUT], out[STAGE_OUT];
	struct strategy_stage strategy = {.signal = NULL};
	struct risk_stage risk = {.position = NULL};
	struct params cold = *p;
	struct book_stage book = {.book = NULL};
	uint32_t i;
	int rc;

	memset(r, 0, sizeof(*r));
	cold.warm = 0; /* warm-up orders have no effect on the result */
	r->orders = malloc(((size_t)messages + 1) * sizeof(*r->orders));
	rc = r->orders != NULL ? 0 : -ENOMEM;
	if (rc == 0)
		rc = book_stage_open(&book, p);
	if (rc == 0)
		rc = strategy_stage_open(&strategy, &cold);
	if (rc == 0)
		rc = risk_stage_open(&risk, p, NULL);
	for (i = 0; i < messages && rc == 0; i++) {
		memset(&tick, 0, sizeof(tick));
		tick.number = i;
		memcpy(tick.tick.itch, f->msg[i], itch_len(f->msg[i][0]));
		if (book_stage(&book, &tick, quote) == 1 &&
		    strategy_stage(&strategy, quote, order) == 1 &&
		    risk_stage(&risk, order, out) == 1)
			r->orders[r->norders++] = order_out_of(out);
	}
	if (rc == 0) {
		r->digest = book_digest(book.book) ^ book_history(book.book);
		r->quotes = book.seq;
		r->decisions = strategy.seq;
		memcpy(r->stopped, risk.stopped, sizeof(r->stopped));
		r->wrong = book.wrong;
	}
	book_stage_close(&book);
	strategy_stage_close(&strategy);
	risk_stage_close(&risk);
	if (rc != 0)
		replay_free(r);
	return rc;
}

void
replay_free(struct replay *r)
{
	free(r->orders);
	memset(r, 0, sizeof(*r));
}
