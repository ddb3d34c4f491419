/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Header prediction, as Van Jacobson's for TCP: from one packet of a connection to the next, hardly
 * anything but PSNs, addresses and payload changes.
 *
 * A frame that has passed all checks predicts the next frame, if the state of its queue pair allows
 * a prediction. The device caches the first bytes of the frame, up to the QP number, and the state
 * of the ICRC after them. A later frame with equal first bytes passes all checks that depend only
 * on these bytes. The other checks are made for each frame. A frame that does not match goes to
 * soft_port_input() and soft_wire_deliver() before any state has changed. These functions make all
 * checks, and drop and count invalid frames.
 *
 * The cache serves WRITEs and SENDs of one packet, and ACKs. It works for peers that send all IPv4
 * packets with the same identification field. (Linux changes this field from packet to packet.)
 */
#include "soft_wire.h"

#include "bb_roce_short.h"
#include "soft_port.h"
#include "soft_recv_fast.h"

#define ETH     14u
#define TAG     4u
#define UDP_LEN 8u
#define PSN     8u /* Offset of the PSN in the BTH. */
#define NEXT    BB_ROCE_BTH_LEN
/* Length of the shortest frame that is compared; every RoCE frame is longer. */
#define SHORT (ETH + 20u + UDP_LEN + NEXT)

/*
 * The comparison ends before the lower two bytes of the QP number. These bytes select the QP, and
 * so the predicted headers.
 */
#define COMPARED (PSN - 2)
static_assert(SOFT_WIRE_HEAD == ETH + 20 + UDP_LEN + COMPARED, "the QP number is in between");
static_assert(SOFT_WIRE_HEAD_MAX == ETH + TAG + 40 + UDP_LEN + COMPARED, "and with more in front");
static_assert(SOFT_WIRE_HEAD == 48, "three words of 16 bytes");
static_assert(SOFT_WIRE_HEAD_MAX - SOFT_WIRE_HEAD <= 32, "and two more");

#define LEARN_EVERY 16u

/*
 * Packet type by RC opcode. Opcodes without a type map to type 0. The comparison of the bytes then
 * fails, because the opcode differs.
 */
static const uint8_t kinds[32] = {
	[BB_ROCE_WRITE_ONLY] = SOFT_WIRE_WRITE, [BB_ROCE_WRITE_ONLY_IMM] = SOFT_WIRE_WRITE_IMM,
	[BB_ROCE_SEND_ONLY] = SOFT_WIRE_SEND,   [BB_ROCE_SEND_ONLY_IMM] = SOFT_WIRE_SEND_IMM,
	[BB_ROCE_ACK] = SOFT_WIRE_ACK,
};

static inline enum soft_wire_kind
kind_of(uint8_t opcode)
{
	return kinds[opcode & 31];
}

/* Returns the offset of the BTH in a frame, if the frame is a RoCEv2 packet. Does not check that.
 */
static inline uint32_t
bth_at(const uint8_t *p)
{
	uint16_t type, ipv6 = bb_be16(0x86dd);
	uint32_t l2 = ETH;

	memcpy(&type, p + ETH - 2, sizeof(type));
	if (unlikely(type == bb_be16(0x8100))) {
		l2 += TAG;
		memcpy(&type, p + l2 - 2, sizeof(type));
	}
	return l2 + (type == ipv6 ? 40u : 20u) + UDP_LEN;
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

/*
 * Returns true if the first @n bytes of @a and @b are equal; @n is from SOFT_WIRE_HEAD to
 * SOFT_WIRE_HEAD_MAX.
 */
static inline bool
same_head(const uint8_t *a, const uint8_t *b, uint32_t n)
{
	word16 diff = differ16(a, b) | differ16(a + 16, b + 16) | differ16(a + 32, b + 32);

	if (unlikely(n != SOFT_WIRE_HEAD))
		diff |= differ16(a + n - 32, b + n - 32) | differ16(a + n - 16, b + n - 16);
	return (diff[0] | diff[1]) == 0;
}

static inline uint32_t
le32(const uint8_t *p)
{
	return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

/* A received frame whose first bytes equal the predicted headers of its queue pair. */
struct frame {
	struct soft_engine *e;
	struct soft_wire *w;
	const struct soft_wire_expect *x;
	enum soft_wire_kind kind;
	const uint8_t *p, *bth;
};

/*
 * Processes an out-of-order packet of @len bytes, before which a packet is missing. Returns false
 * if the packet needs all checks.
 */
static __rte_noinline bool
expect_out_of_order(struct soft_wire *w, const uint8_t *bth, size_t len, uint32_t psn)
{
	struct bb_roce_pkt pkt;

	if (!bb_roce_short_is_out_of_order(&w->roce, psn) ||
	    bb_roce_parse(&pkt, bth, len) != BB_ROCE_OK)
		return false;
	bb_roce_short_out_of_order(&w->roce, &pkt);
	return true;
}

static __rte_always_inline bool
expect_message(const struct frame *f, bool write, bool imm)
{
	const uint8_t *next = f->bth + NEXT, *data = next, *list = NULL;
	const uint32_t psn = bb_get32(f->bth + PSN), len = f->x->len;
	struct soft_wire *w = f->w;
	struct soft_qp *qp = w->qp;
	uint32_t rkey = 0, imm_data = 0;
	uint64_t va = 0;
	uint8_t *dst;

	if (unlikely(!bb_roce_short_next(&w->roce, psn & BB_ROCE_PSN_MASK)))
		return expect_out_of_order(w, f->bth, PSN + f->x->covered, psn & BB_ROCE_PSN_MASK);
	if (!write || imm) {
		list = bb_roce_short_receives(&w->roce) ? soft_recv_next(qp) : NULL;
		if (unlikely(list == NULL))
			return false;
	}
	if (write) {
		const struct soft_mkey *m;

		va = bb_get64(next);
		rkey = bb_get32(next + 8);
		data += BB_ROCE_RETH_LEN;
		if (unlikely(bb_get32(next + 12) != len ||
			     !__atomic_load_n(&qp->rwe, __ATOMIC_RELAXED)))
			return false;
		m = soft_mkey_find(qp->dev, rkey);
		if (unlikely(!soft_mkey_plain(m, qp->pdn, va, len, SOFT_RIGHT_REMOTE_WRITE)))
			return false;
		dst = m->base + (va - m->start);
	} else {
		dst = soft_recv_addr(f->e, qp, list, len);
		if (unlikely(dst == NULL))
			return false;
	}
	if (imm) {
		memcpy(&imm_data, data, sizeof(imm_data));
		data += BB_ROCE_IMM_LEN;
	}
	soft_mem_copy(f->e, dst, data, len);
	if (!write || imm) {
		uint8_t opcode = write ? BB_CQE_RESP_WR_IMM
				       : (imm ? BB_CQE_RESP_SEND_IMM : BB_CQE_RESP_SEND);

		/* Reads the clock now, because the CQE needs a timestamp. */
		(void)soft_engine_ns(f->e);
		if (unlikely(!soft_recv_complete(f->e, qp, opcode,
						 (bb_get32(f->bth) >> 23 & BB_ROCE_SE) != 0,
						 imm_data, len)))
			return true;
	}
	if (write)
		bb_roce_short_written(&w->roce, va, rkey, len, psn >> 31 != 0 ? BB_ROCE_ACKREQ : 0);
	else
		bb_roce_short_message(&w->roce, BB_ROCE_MSG_SEND, len,
				      psn >> 31 != 0 ? BB_ROCE_ACKREQ : 0);
	return true;
}

static inline bool
expect_ack(const struct frame *f)
{
	uint32_t psn = bb_get32(f->bth + PSN) & BB_ROCE_PSN_MASK;

	if (unlikely(!bb_roce_short_ack_next(&f->w->roce, psn, f->bth[NEXT])))
		return false;
	bb_roce_short_acked(&f->w->roce, psn, soft_engine_ns(f->e));
	return true;
}

static inline bool
expect(const struct frame *f, enum soft_wire_kind kind)
{
	/* The test for the most common packet comes first. */
	if (likely(kind == SOFT_WIRE_WRITE))
		return expect_message(f, true, false);
	switch (kind) {
	case SOFT_WIRE_WRITE_IMM:
		return expect_message(f, true, true);
	case SOFT_WIRE_SEND:
		return expect_message(f, false, false);
	case SOFT_WIRE_SEND_IMM:
		return expect_message(f, false, true);
	default:
		return expect_ack(f);
	}
}

/*
 * Selects the predicted headers of a frame of @len bytes. Returns false if the frame is not for a
 * QP of the engine.
 */
static inline bool
find_expect(struct frame *f, uint32_t len)
{
	const uint8_t *bth;
	struct soft_qp *qp;
	uint32_t at;

	if (unlikely(len < SHORT))
		return false;
	at = bth_at(f->p);
	if (unlikely(len < at + NEXT))
		return false;
	bth = f->p + at;
	qp = soft_qp_find(f->e->dev, bb_get32(bth + 4) & BB_ROCE_QPN_MASK);
	if (unlikely(qp == NULL || qp->wire == NULL || qp->engine != f->e))
		return false;
	f->w = qp->wire;
	f->kind = kind_of(bth[0]);
	f->x = &f->w->expect[f->kind];
	return true;
}

/*
 * Returns true if the first bytes of the frame of @len bytes, and the number of its QP, are those
 * of @f->x, and its ICRC is right.
 */
static inline bool
matches(const struct frame *f, uint32_t len)
{
	const struct soft_wire_expect *x = f->x;
	const uint8_t *bth = f->p + x->bth;

	/*
	 * If no frame is predicted, x->end is 0. The subtraction then wraps to a value above every
	 * frame length, so the function returns false.
	 */
	if (unlikely(x->end - 1 >= len || !same_head(f->p, x->head, x->bth + COMPARED) ||
		     memcmp(bth + COMPARED, x->qpn, sizeof(x->qpn)) != 0))
		return false;
	return likely(bb_roce_icrc_more(x->crc, bth + PSN, x->covered) ==
		      le32(f->p + x->end - BB_ROCE_ICRC_LEN));
}

uint32_t
soft_wire_expected(struct soft_dev *dev, struct soft_engine *e, struct rte_mbuf **m, uint32_t n)
{
	struct soft_wire *last = NULL; /* QP of the last processed frame */
	struct frame f = {.e = e};
	uint32_t i;

	/*
	 * @e is NULL if the control path polls the port, and not an engine. soft_wire_deliver()
	 * captures packets, and this function does not.
	 */
	if (unlikely(e == NULL || dev->capture != NULL ||
		     __atomic_load_n(&dev->port_down, __ATOMIC_RELAXED)))
		return 0;
	soft_wire_turn(e);
	/* Most frames are for the same QP, and of the same type, as the frame before. */
	if (likely(e->predicted != NULL)) {
		f.w = e->predicted;
		f.kind = e->predicted_kind;
		f.x = &f.w->expect[f.kind];
	}
	for (i = 0; i < n; i++) {
		const uint32_t len = m[i]->data_len;

		if (i + 1 != n)
			rte_prefetch0(rte_pktmbuf_mtod(m[i + 1], const void *));
		if (unlikely(m[i]->nb_segs != 1 || !soft_port_plain_rx(m[i])))
			break;
		f.p = rte_pktmbuf_mtod(m[i], const uint8_t *);
		if ((f.x == NULL || unlikely(!matches(&f, len))) &&
		    (unlikely(!find_expect(&f, len)) || unlikely(!matches(&f, len))))
			break;
		f.bth = f.p + f.x->bth;
		if (unlikely(!expect(&f, f.kind)))
			break;
		f.w->expect_met++;
		if (unlikely(f.w != last) && last != NULL)
			soft_wire_received(e, last, false);
		last = f.w;
	}
	if (likely(last != NULL)) {
		e->predicted = f.w;
		e->predicted_kind = f.kind;
		soft_wire_received(e, last, i == n);
	}
	return i;
}

/*
 * Returns true if a frame with the same first bytes as this one can be accepted without further
 * checks of those bytes.
 */
static bool
is_plain(const struct soft_wire *w, const struct soft_packet *p)
{
	const struct soft_opts *o = &w->qp->dev->opts;
	const uint8_t *udp = p->ip + p->ip_len, *bth = udp + UDP_LEN;

	if (soft_opts_defect(o) != SOFT_DEFECT_NONE || soft_net_faulty(&o->rx_fault) ||
	    p->l2_len != bth_at(p->ip - p->l2_len) - p->ip_len - UDP_LEN ||
	    bb_get32(udp + 4) != (p->len - p->ip_len) << 16 || bth[4] != 0)
		return false;
	if (p->ip_len == 40)
		return bb_get32(p->ip + 4) >> 16 == p->len - 40;
	/*
	 * Computes the checksum of the IPv4 header here. A PMD may report a good checksum although
	 * the field in the header has another value.
	 */
	return p->ip_len == 20 && bb_get32(p->ip) << 16 == p->len << 16 &&
	       soft_port_csum(NULL, NULL, 0, 0, p->ip, 20) == 0;
}

static __rte_noinline void
learn(struct soft_wire *w, const struct soft_packet *p, struct soft_wire_expect *x)
{
	const uint8_t *udp = p->ip + p->ip_len, *bth = udp + UDP_LEN;
	uint32_t len = p->len - p->ip_len - UDP_LEN - BB_ROCE_ICRC_LEN;
	struct bb_roce_pkt pkt;

	if (!is_plain(w, p) ||
	    bb_roce_icrc_begin(p->ip, p->ip_len, udp, bth, len) != le32(bth + len) ||
	    bb_roce_parse(&pkt, bth, len) != BB_ROCE_OK ||
	    !bb_roce_short_repeats(&w->roce, &pkt, p->net))
		return;
	w->expect_met = 0;
	memcpy(x->head, p->ip - p->l2_len, p->l2_len + p->ip_len + UDP_LEN + COMPARED);
	x->crc = bb_roce_icrc_begin(p->ip, p->ip_len, udp, bth, PSN);
	x->bth = p->l2_len + p->ip_len + UDP_LEN;
	memcpy(x->qpn, bth + COMPARED, sizeof(x->qpn));
	x->covered = len - PSN;
	x->end = p->l2_len + p->len;
	x->len = pkt.len;
}

void
soft_wire_learn(struct soft_wire *w, const struct soft_packet *p)
{
	uint8_t opcode = p->ip[p->ip_len + UDP_LEN];
	enum soft_wire_kind kind = kind_of(opcode);

	/*
	 * kinds[] maps an opcode without a packet type to 0, which is also the type of WRITEs. So
	 * for type 0 the opcode must be that of a WRITE.
	 */
	if (opcode >= 32 || (kind == 0 && opcode != (BB_ROCE_RC | BB_ROCE_WRITE_ONLY)))
		return;
	/*
	 * To learn from a frame is to cache its first bytes for the comparison with later frames.
	 * If no frame has matched since the last one was learnt, learning costs more than it saves.
	 * In this case the function learns only from every LEARN_EVERY-th frame.
	 */
	if (w->expect_met == 0 && w->expect_missed++ % LEARN_EVERY != 0)
		return;
	learn(w, p, &w->expect[kind]);
}
