/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Two CM engines, their users, and a network that an attacker controls: the input chooses calls of
 * the users, and which MADs arrive, twice, changed or never. After the input all IDs are released
 * and the time runs on. Then no engine may hold a slot, and no ID may have had an event after its
 * last one.
 */
#define PAIR_MADS   128u
#define PAIR_EVENTS 128u
#include "fuzz.h"
#include "ibcm_pair.h"

#define SERVICE 0x1061c06ull

/* Returns whether an ID ends with the event. */
static bool
is_last(enum bb_ibcm_event_type type)
{
	return type == BB_IBCM_EV_REJECTED || type == BB_IBCM_EV_FAILED ||
	       type == BB_IBCM_EV_DISCONNECTED || type == BB_IBCM_EV_SIDR_REP;
}

static void
check_events(const struct pair_end *e)
{
	for (uint32_t i = 0; i < e->nev; i++)
		for (uint32_t j = i + 1; j < e->nev; j++)
			if (e->ev[i].id == e->ev[j].id) {
				check(!is_last(e->ev[i].type), "event after the last one of an ID");
				check(e->ev[i].type != e->ev[j].type, "event twice");
			}
}

static void
small_pool(struct bb_ibcm_attr *attr)
{
	attr->max_conns = 12;
	attr->max_pending = 8;
	attr->max_pending_per_gid = 5;
}

/* Returns the ID of an event that the input chooses, 0 if there is none. */
static uint32_t
an_id(struct pair_end *e, struct fuzz_in *in)
{
	return e->nev == 0 ? 0 : e->ev[fuzz_u8(in) % e->nev].id;
}

static void
call(struct pair *p, struct fuzz_in *in, uint8_t op)
{
	const unsigned int side = op >> 7;
	struct pair_end *e = &p->end[side];
	const struct bb_ibcm_net net = pair_net(p, side);
	struct bb_ibcm_req req = pair_req(SERVICE + (op >> 6 & 1), 2 + fuzz_u8(in));
	const struct bb_ibcm_rep rep = pair_rep(2 + fuzz_u8(in));
	uint32_t id;

	switch (op % 10) {
	case 0:
		req.remote_timeout = fuzz_u8(in) % 20;
		req.cm_retries = fuzz_u8(in) & 3;
		/* The caller knows the ID without an event: it has one that ends with release. */
		if (bb_ibcm_connect(e->cm, &net, &req, NULL, 0, 7, p->now, &id) == 0 &&
		    (op & 0x20) != 0)
			bb_ibcm_release(e->cm, id, p->now);
		break;
	case 1:
		bb_ibcm_accept(e->cm, an_id(e, in), &rep, NULL, 0, 8, p->now);
		break;
	case 2:
		bb_ibcm_ready(e->cm, an_id(e, in), NULL, 0);
		break;
	case 3:
		bb_ibcm_established(e->cm, an_id(e, in));
		break;
	case 4:
		bb_ibcm_reject(e->cm, an_id(e, in), fuzz_u8(in), NULL, 0, p->now);
		break;
	case 5:
		bb_ibcm_disconnect(e->cm, an_id(e, in), NULL, 0, p->now);
		break;
	case 6:
		bb_ibcm_release(e->cm, an_id(e, in), p->now);
		break;
	case 7:
		bb_ibcm_sidr(e->cm, &net, SERVICE + 2, 14, 1, NULL, 0, 9, p->now, &id);
		break;
	case 8:
		bb_ibcm_sidr_reply(e->cm, an_id(e, in), BB_IBCM_SIDR_OK, 3, 4, NULL, 0);
		break;
	default:
		p->now += (uint64_t)fuzz_u16(in) << 16;
		bb_ibcm_tick(e->cm, p->now);
	}
}

/* Delivers a MAD of the network, or a copy with some bytes of the input. */
static void
attack(struct pair *p, struct fuzz_in *in, uint8_t op)
{
	struct pair_mad m = {.net = pair_net(p, op & 1)};

	if (p->nmads > 0)
		m = p->mads[fuzz_u8(in) % p->nmads];
	switch (op >> 1 & 3) {
	case 0: /* again, as it was */
		break;
	case 1: /* as another message with the same IDs */
		m.mad[17] = (uint8_t)(BB_IBCM_REQ + fuzz_u8(in) % BB_IBCM_TYPES);
		break;
	case 2: /* with the IDs swapped, to its sender */
		memcpy(m.net.src, m.net.dst, 16);
		memcpy(m.net.dst, p->end[pair_at(p, m.net.src) == &p->end[0]].gid, 16);
		for (unsigned int i = 24; i < 28; i++) {
			uint8_t byte = m.mad[i];

			m.mad[i] = m.mad[i + 4];
			m.mad[i + 4] = byte;
		}
		break;
	default:
		for (unsigned int n = fuzz_u8(in) & 7; n > 0; n--) {
			const uint8_t at = fuzz_u8(in);

			m.mad[at] = fuzz_u8(in);
		}
	}
	pair_deliver(p, &m);
}

static void
release_all(struct pair *p)
{
	for (unsigned int i = 0; i < 2; i++)
		for (uint32_t id = 0; id < p->end[i].nev; id++)
			bb_ibcm_release(p->end[i].cm, p->end[i].ev[id].id, p->now);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const struct bb_ibcm_service services[] = {
		{.service_id = SERVICE, .mask = UINT64_MAX},
		{.service_id = SERVICE + 1, .mask = UINT64_MAX, .ip = true},
		{.service_id = SERVICE + 2, .mask = UINT64_MAX, .datagram = true},
	};
	struct pair *p = pair_new(small_pool);
	struct fuzz_in in = {data, len};

	for (unsigned int i = 0; i < 6; i++)
		fuzz_check(bb_ibcm_listen(p->end[i & 1].cm, &services[i / 2]) == 0);
	while (in.left > 0 && p->nmads < PAIR_MADS / 2 && p->end[0].nev < PAIR_EVENTS / 4 &&
	       p->end[1].nev < PAIR_EVENTS / 4) {
		const uint8_t op = fuzz_u8(&in);

		if (op < 64)
			pair_deliver_next(p);
		else if (op < 80)
			p->next += p->next < p->nmads ? 1 : 0; /* lost */
		else if (op < 128)
			attack(p, &in, fuzz_u8(&in));
		else
			call(p, &in, fuzz_u8(&in));
	}
	release_all(p);
	/* Requests that had no event yet time out, and get one. */
	while (pair_time(p, BB_IBCM_NEVER - 1)) {
		p->nmads = p->next = 0;
		release_all(p);
	}
	check(bb_ibcm_in_use(p->end[0].cm) == 0, "the first engine holds a slot");
	check(bb_ibcm_in_use(p->end[1].cm) == 0, "the second engine holds a slot");
	check_events(&p->end[0]);
	check_events(&p->end[1]);
	pair_free(p);
	return 0;
}
