/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Frames whose headers are those of the frame before, as Van Jacobson predicts those of TCP: of a
 * connection hardly anything but PSNs, addresses and payload differs from one packet to the next.
 *
 * Once a frame has gone through all checks, and its queue pair says what another one like it
 * would be, its first bytes are remembered, down to the queue pair's number, and the ICRC as far.
 * A frame that has the same has the same answers to all checks that look at these bytes alone. The
 * rest is asked each time. Whatever is not as expected is left to soft_port_input() and
 * soft_wire_deliver() before anything has been done: they refuse and count it.
 *
 * Remembered are frames over IPv4 without a tag, as they come from a peer that gives all packets
 * the same identification. (Linux' differ.)
 */
#include "soft_wire.h"

#include "bb_roce_short.h"
#include "soft_access.h"
#include "soft_port_stack.h"

#define AT_IP   14u
#define AT_BTH  (AT_IP + 28u) /* IPv4 and UDP */
#define AT_PSN  (AT_BTH + 8u)
#define AT_NEXT (AT_BTH + BB_ROCE_BTH_LEN)
#define AT_DATA (AT_NEXT + 16u) /* behind the RETH */

/* What is compared ends in front of the lower two bytes of the QP number, which find the QP. */
static_assert(SOFT_WIRE_HEAD == AT_PSN - 2, "the QP number is in between");
static_assert(SOFT_WIRE_HEAD == 48, "three words of 16 bytes");

#define LEARN_EVERY 16u

static inline const struct soft_wire_expect *
expect_of(const struct soft_wire *w, const uint8_t *p)
{
	return &w->expect[p[AT_BTH] == (BB_ROCE_RC | BB_ROCE_ACK)];
}

typedef uint64_t word16 __attribute__((vector_size(16)));

static inline word16
differ16(const uint8_t *a, const uint8_t *b)
{
	word16 x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return x ^ y;
}

static inline bool
same_head(const uint8_t *a, const uint8_t *b)
{
	word16 diff = differ16(a, b) | differ16(a + 16, b + 16) | differ16(a + 32, b + 32);

	return (diff[0] | diff[1]) == 0;
}

static inline uint32_t
le32(const uint8_t *p)
{
	return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

/* The packet in the frame, as soft_wire_deliver() has it. */
static inline void
seen(struct soft_engine *e, const struct soft_wire_expect *x, const uint8_t *p)
{
	soft_packet_seen(e, SOFT_CAPTURE_IN, p + AT_IP, x->end - AT_IP, 0);
}

static inline bool
expect_write(struct soft_engine *e, struct soft_wire *w, const struct soft_wire_expect *x,
	     const uint8_t *p)
{
	uint32_t psn = soft_be32(p + AT_PSN), rkey = soft_be32(p + AT_NEXT + 8);
	uint64_t va = soft_be64(p + AT_NEXT);
	struct soft_qp *qp = w->qp;
	const struct soft_mkey *m;

	if (unlikely(!bb_roce_short_next(&w->roce, psn & BB_ROCE_PSN_MASK) ||
		     soft_be32(p + AT_NEXT + 12) != x->len ||
		     !__atomic_load_n(&qp->rwe, __ATOMIC_RELAXED)))
		return false;
	m = soft_mkey_find(qp->dev, rkey);
	if (unlikely(!soft_mkey_plain(m, qp->pdn, va, x->len, SOFT_RIGHT_REMOTE_WRITE)))
		return false;
	seen(e, x, p);
	soft_wire_turn(e);
	soft_mem_copy(e, m->base + (va - m->start), p + AT_DATA, x->len);
	bb_roce_short_wrote(&w->roce, va, rkey, x->len, psn >> 31 != 0 ? BB_ROCE_ACKREQ : 0);
	return true;
}

static inline bool
expect_ack(struct soft_engine *e, struct soft_wire *w, const struct soft_wire_expect *x,
	   const uint8_t *p)
{
	uint32_t psn = soft_be32(p + AT_PSN) & BB_ROCE_PSN_MASK;

	if (unlikely(!bb_roce_short_ack_next(&w->roce, psn, p[AT_NEXT])))
		return false;
	seen(e, x, p);
	soft_wire_turn(e);
	bb_roce_short_acked(&w->roce, psn, soft_engine_ns(e));
	return true;
}

bool
soft_wire_expected(struct soft_dev *dev, struct soft_engine *e, const uint8_t *p, uint32_t len)
{
	const struct soft_wire_expect *x;
	struct soft_wire *w;
	struct soft_qp *qp;

	if (unlikely(len < AT_NEXT || __atomic_load_n(&dev->port_down, __ATOMIC_RELAXED)))
		return false;
	qp = soft_qp_find(dev, soft_be32(p + AT_BTH + 4) & BB_ROCE_QPN_MASK);
	/* Without an engine it is the control path that polls. */
	if (unlikely(qp == NULL || qp->wire == NULL || qp->engine != e))
		return false;
	w = qp->wire;
	x = expect_of(w, p);
	/* None: end is 0. */
	if (unlikely(x->end - 1 >= len || !same_head(p, x->head)))
		return false;
	if (unlikely(bb_roce_icrc_more(x->crc, p + AT_PSN, x->end - BB_ROCE_ICRC_LEN - AT_PSN) !=
		     le32(p + x->end - BB_ROCE_ICRC_LEN)))
		return false;
	if (!(x == w->expect ? expect_write(e, w, x, p) : expect_ack(e, w, x, p)))
		return false;
	w->expect_met++;
	soft_wire_took(e, w);
	return true;
}

/* Is its frame one that the first bytes of are enough to know another by? */
static bool
is_plain(const struct soft_wire *w, const struct soft_packet *p)
{
	const struct soft_opts *o = &w->qp->dev->opts;
	const uint8_t *udp = p->ip + 20, *bth = udp + 8;

	/* The PMD may have checked the IP header and not found the right sum in it. */
	return (o->defect | o->fault) == 0 && !soft_net_faulty(&o->rx_fault) && p->ip_len == 20 &&
	       soft_be32(p->ip) << 16 == p->len << 16 &&
	       soft_port_csum(NULL, NULL, 0, 0, p->ip, 20) == 0 &&
	       soft_be32(udp + 4) == (p->len - 20) << 16 && bth[4] == 0;
}

static __rte_noinline void
learn(struct soft_wire *w, const struct soft_packet *p, struct soft_wire_expect *x)
{
	const uint8_t *udp = p->ip + 20, *bth = udp + 8;
	uint32_t len = p->len - 28 - BB_ROCE_ICRC_LEN;
	struct bb_roce_pkt pkt;

	if (!is_plain(w, p) || bb_roce_icrc_begin(p->ip, 20, udp, bth, len) != le32(bth + len) ||
	    bb_roce_parse(&pkt, bth, len) != BB_ROCE_OK ||
	    !bb_roce_short_repeats(&w->roce, &pkt, p->net))
		return;
	w->expect_met = 0;
	memcpy(x->head, p->ip - AT_IP, sizeof(x->head));
	x->crc = bb_roce_icrc_begin(p->ip, 20, udp, bth, AT_PSN - AT_BTH);
	x->end = AT_IP + p->len;
	x->len = pkt.len;
}

void
soft_wire_learn(struct soft_wire *w, const struct soft_packet *p)
{
	uint8_t opcode = p->ip[AT_BTH - AT_IP];

	if (opcode != (BB_ROCE_RC | BB_ROCE_WRITE_ONLY) && opcode != (BB_ROCE_RC | BB_ROCE_ACK))
		return;
	/* What is of no use need not be learnt each time. */
	if (w->expect_met == 0 && w->expect_missed++ % LEARN_EVERY != 0)
		return;
	learn(w, p, &w->expect[opcode == (BB_ROCE_RC | BB_ROCE_ACK)]);
}
