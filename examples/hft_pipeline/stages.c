/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stages.h"

const char *const stage_name[STAGES] = {"feed", "book", "strategy", "risk", "gateway"};

unsigned int
stage_report(enum stage self, const struct order_check *c, const union hft_msg *in,
	     const uint32_t value[5], uint32_t wrong, union hft_msg *out)
{
	out[0] = *in;
	if (in->report.stage + 1u != (unsigned int)self)
		return 1;
	memset(&out[1], 0, sizeof(out[1]));
	out[1].number = in->number;
	out[1].kind = MSG_REPORT;
	out[1].report.stage = (uint8_t)self;
	out[1].report.lost = c->lost;
	out[1].report.twice = c->twice;
	out[1].report.wrong = wrong;
	memcpy(out[1].report.value, value, sizeof(out[1].report.value));
	return 2;
}

int
book_stage_open(struct book_stage *s, const struct params *p)
{
	memset(s, 0, sizeof(*s));
	s->book = book_new(p->symbols, p->max_orders);
	s->top = calloc(p->symbols, sizeof(*s->top));
	if (s->book != NULL && s->top != NULL)
		return 0;
	book_stage_close(s);
	return -ENOMEM;
}

void
book_stage_close(struct book_stage *s)
{
	book_free(s->book);
	free(s->top);
	memset(s, 0, sizeof(*s));
}

static unsigned int
book_report(struct book_stage *s, const union hft_msg *in, union hft_msg *out)
{
	uint64_t digest = book_digest(s->book) ^ book_history(s->book);
	uint32_t value[5] = {(uint32_t)digest, (uint32_t)(digest >> 32), s->in.next,
			     book_open(s->book), s->seq};

	/* Counts missing messages at the end of the day as lost. */
	if (in->report.stage == STAGE_FEED && s->in.next < in->number)
		s->in.lost += in->number - s->in.next;
	return stage_report(STAGE_BOOK, &s->in, in, value, s->wrong, out);
}

unsigned int
book_stage(struct book_stage *s, const union hft_msg *in, union hft_msg *out)
{
	struct itch_msg m;
	struct book_top top, *told;
	const char *wrong;

	if (in->kind == MSG_REPORT)
		return book_report(s, in, out);
	order_check(&s->in, in->number);
	wrong = itch_decode(in->tick.itch, itch_len(in->kind), &m);
	if (wrong == NULL && s->spoil != 0 && in->number + 1 >= s->spoil && m.type == ITCH_ADD) {
		m.shares++;
		s->spoil = 0;
	}
	if (wrong == NULL)
		wrong = book_apply(s->book, &m);
	if (wrong != NULL) {
		if (s->wrong++ == 0) {
			s->why = wrong;
			s->which = in->number + 1;
		}
		return 0;
	}
	if (m.type == ITCH_SYSTEM)
		return 0;
	top = book_top_of(s->book, m.locate);
	told = &s->top[m.locate - 1];
	if (memcmp(&top, told, sizeof(top)) == 0)
		return 0;
	*told = top;
	memset(out, 0, sizeof(*out));
	out->stamp = in->stamp;
	out->number = in->number;
	out->kind = MSG_QUOTE;
	out->quote.locate = m.locate;
	out->quote.seq = s->seq++;
	out->quote.top = top;
	out->quote.ns = m.ns;
	return 1;
}

int
strategy_stage_open(struct strategy_stage *s, const struct params *p)
{
	memset(s, 0, sizeof(*s));
	s->p = *p;
	s->signal = calloc(p->symbols, sizeof(*s->signal));
	return s->signal != NULL ? 0 : -ENOMEM;
}

void
strategy_stage_close(struct strategy_stage *s)
{
	free(s->signal);
	memset(s, 0, sizeof(*s));
}

/*
 * The textbook signal, order book imbalance. If many times more shares are wanted than offered, the
 * price is likely to rise, so this stage buys what is offered. In the opposite case it sells. It
 * sends one order per price, and another order if the signal has disappeared in between.
 */
unsigned int
strategy_stage(struct strategy_stage *s, const union hft_msg *in, union hft_msg *out)
{
	const struct book_top *t = &in->quote.top;
	const uint32_t value[5] = {s->in.next, s->seq, s->warm};
	int64_t signal = 0, *told;
	bool order;
	char side;

	if (in->kind == MSG_REPORT)
		return stage_report(STAGE_STRATEGY, &s->in, in, value, 0, out);
	order_check(&s->in, in->quote.seq);
	if (in->kind != MSG_QUOTE || in->quote.locate == 0 || in->quote.locate > s->p.symbols ||
	    t->bid == 0 || t->ask <= t->bid)
		return 0;
	if (t->bid_shares >= (uint64_t)s->p.imbalance * t->ask_shares)
		signal = t->ask;
	else if (t->ask_shares >= (uint64_t)s->p.imbalance * t->bid_shares)
		signal = -(int64_t)t->bid;
	told = &s->signal[in->quote.locate - 1];
	order = signal != *told && signal != 0;
	*told = signal;
	if (!order && !s->p.warm)
		return 0;
	side = signal >= 0 ? 'B' : 'S';
	memset(out, 0, sizeof(*out));
	out->stamp = in->stamp;
	out->number = in->number;
	out->kind = order ? MSG_ORDER : MSG_WARM;
	out->order.side = side;
	out->order.locate = in->quote.locate;
	out->order.seq = order ? s->seq++ : s->warm++;
	out->order.shares = s->p.shares * (1 + in->number % 4);
	out->order.price = side == 'B' ? t->ask : t->bid;
	out->order.bid = t->bid;
	out->order.ask = t->ask;
	out->order.ns = in->quote.ns;
	return 1;
}
