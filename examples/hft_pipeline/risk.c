/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Checks in front of the market: the last place where an order can be stopped. */
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
 * RISK_REASONS: nothing is wrong with it. What it would change is changed then, unless it is an
 * order that is none.
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
	 * The word is written by the peer's atomic. It is looked at for every order, so that
	 * none that comes later gets past it; an order that went before cannot be called back.
	 */
	if (s->kill != NULL && __atomic_load_n(s->kill, __ATOMIC_ACQUIRE) != 0)
		return RISK_KILLED;
	if (o->order.shares > s->p.max_shares)
		return RISK_SHARES;
	/* From the other side of the market: twice the distance from the middle. */
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
	/* As if all of it was done at once: the worst that can become of it. */
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
