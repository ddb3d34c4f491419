/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Connections of a pair of CM engines, and messages that claim to come from one of them. */
#ifndef IBCM_HOSTILE_H
#define IBCM_HOSTILE_H

#include "ibcm_test.h"

static inline uint64_t
drops(const struct pair *p, unsigned int end, enum bb_ibcm_drop why)
{
	return bb_ibcm_stats(p->end[end].cm)->drop[why];
}

static inline uint32_t
connect_qpn(struct pair *p, uint32_t qpn)
{
	const struct bb_ibcm_net net = pair_net(p, 0);
	const struct bb_ibcm_req req = pair_req(SERVICE, qpn);
	uint32_t id = 0;

	OK(bb_ibcm_connect(p->end[0].cm, &net, &req, NULL, 0, 7, p->now, &id));
	return id;
}

/* Establishes a connection. The network then has its REQ, REP and RTU as MADs 0, 1 and 2. */
static inline void
establish(struct pair *p, uint32_t *a, uint32_t *b)
{
	const struct bb_ibcm_rep rep = pair_rep(0x222);

	p->nmads = p->next = 0;
	*a = connect_qpn(p, 0x111);
	pair_deliver_all(p);
	*b = p->end[1].ev[p->end[1].nev - 1].id;
	OK(bb_ibcm_accept(p->end[1].cm, *b, &rep, NULL, 0, 8, p->now));
	pair_deliver_all(p);
	OK(bb_ibcm_ready(p->end[0].cm, *a, NULL, 0));
	pair_deliver_all(p);
	assert_int_equal(p->end[1].ev[p->end[1].nev - 1].type, BB_IBCM_EV_ESTABLISHED);
}

/* Delivers a message to end @to that claims to come from the other end. */
static inline void
inject(struct pair *p, unsigned int to, const struct bb_ibcm_msg *msg)
{
	struct pair_mad m = {.net = pair_net(p, 1 - to)};

	assert_true(bb_ibcm_build(m.mad, msg));
	pair_deliver(p, &m);
}

#endif
