/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The risk stage: the last stage that can stop an order before the market. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stages.h"

const char *const risk_reason_name[RISK_REASONS] = {
	"kill switch", "shares of an order", "price collar", "position", "order rate",
};

int
risk_stage_open(struct risk_stage *s, const struct params *p, const uint64_t *kill)
{
	memset(s, 0, sizeof(*s));
	s->p = *p;
	s->kill = kill;
	s->position = calloc(p->symbols, sizeof(*s->position));
	return s->position != NULL ? 0 : -ENOMEM;
}

void
risk_stage_close(struct risk_stage *s)
{
	free(s->position);
	memset(s, 0, sizeof(*s));
}

/*
 * Returns the reason to stop order @o, or RISK_REASONS if there is none. If there is none, adds the
 * order to the position and to the rate, except a warm-up order.
 */
static enum risk_reason
judge(struct risk_stage *s, const union hft_msg *o)
{
	int64_t *position = &s->position[o->order.locate - 1];
	uint64_t second = o->order.ns / 1000000000;
	int64_t then =
		o->order.side == 'B' ? *position + o->order.shares : *position - o->order.shares;
	uint32_t off = o->order.side == 'B' ? o->order.price - o->order.bid
					    : o->order.ask - o->order.price;

	/*
	 * Reads the kill switch, which the peer's atomic writes, for every order. So no later order
	 * passes. An order sent earlier cannot be recalled.
	 */
	if (s->kill != NULL && __atomic_load_n(s->kill, __ATOMIC_ACQUIRE) != 0)
		return RISK_KILLED;
	if (o->order.shares > s->p.max_shares)
		return RISK_SHARES;
	/*
	 * An order has the best price of the opposite side, so off is the spread, and half of it is
	 * the distance of the price from the middle price.
	 */
	if (off / 2 > s->p.collar)
		return RISK_COLLAR;
	if (then > s->p.max_position || -then > s->p.max_position)
		return RISK_POSITION;
	if (second == s->second && s->in_second >= s->p.max_rate)
		return RISK_RATE;
	if (o->kind == MSG_WARM)
		return RISK_REASONS;
	if (second != s->second) {
		s->second = second;
		s->in_second = 0;
	}
	s->in_second++;
	/* Assumes the worst case, that the order is fully executed at once. */
	*position = then;
	return RISK_REASONS;
}

unsigned int
risk_stage(struct risk_stage *s, const union hft_msg *in, union hft_msg *out)
{
	enum risk_reason why;

	if (in->kind == MSG_REPORT)
		return stage_report(STAGE_RISK, &s->in, in, s->stopped, s->seq, out);
	order_check(in->kind == MSG_WARM ? &s->warm : &s->in, in->order.seq);
	if ((in->kind != MSG_ORDER && in->kind != MSG_WARM) || in->order.locate == 0 ||
	    in->order.locate > s->p.symbols)
		return 0;
	why = judge(s, in);
	*out = *in;
	if (in->kind == MSG_WARM)
		return 1;
	if (why != RISK_REASONS) {
		s->stopped[why]++;
		return 0;
	}
	out->order.seq = s->seq++;
	return 1;
}
