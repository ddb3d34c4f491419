/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Fast path for short requests and ACKs through a port. It writes the packet of a WQE, or a pending
 * ACK, directly to an mbuf. The frames, and the state of queue pair and port afterwards, are those
 * of lib/roce and soft_port_tx.c. In unusual cases it does nothing, and lib/roce and soft_port_tx.c
 * send the packet.
 *
 * Most packets of a queue pair have the same first bytes. The link caches these bytes with the
 * state of the ICRC after them. So the CRC is computed only over the rest, from the PSN on.
 */
#include "bb_roce_short.h"
#include "soft_fast.h"
#include "soft_netif.h"
#include "soft_port_priv.h"
#include "soft_wire.h"

/* Largest payload in bytes. It is always copied, and fits into a frame of any port. */
#define PLAIN_MAX SOFT_PORT_COPY
static_assert(PLAIN_MAX <= SOFT_PORT_MIN_MTU, "a plain packet may not fit a frame");

enum {
	PLAIN_REQUEST,
	PLAIN_ACK,
};

/* ---- Frames with cached first bytes */

/* Caches the first bytes of frames with @len bytes from the BTH to the padding. */
static __rte_noinline void
begin_anew(const struct soft_port *p, const struct soft_wire *w, struct soft_port_begin *b,
	   uint32_t bth, uint32_t len)
{
	const struct soft_port_path *path = &w->path.path;
	uint8_t *ip = b->head + path->l2_len, *at = b->head + path->len;
	const uint32_t word[2] = {bb_be32(bth), bb_be32(w->roce.attr.dqpn)};
	const uint32_t udp_len = SOFT_UDP_HDR + len + BB_ROCE_ICRC_LEN;
	struct rte_mbuf m = {.ol_flags = 0};

	memcpy(b->head, path->head, SOFT_PORT_HEAD);
	soft_port_put_lengths(p, path, &m, b->head, udp_len);
	memcpy(at, word, SOFT_PORT_BTH);
	b->gen = path->gen;
	b->len = len;
	b->frame_len = (uint16_t)(path->len - SOFT_UDP_HDR + udp_len);
	b->crc = bb_roce_icrc_begin(ip, path->l3_len, ip + path->l3_len, at, SOFT_PORT_BTH);
	b->ol_flags = m.ol_flags;
	b->tx_offload = m.tx_offload;
}

/* Returns true if the cached bytes are valid for the path. */
static inline bool
is_cached(const struct soft_wire *w, const struct soft_port_begin *b)
{
	return likely(b->len != 0 && b->gen == w->path.path.gen);
}

/* Returns the first byte of a frame that frame_open() has started. */
static inline uint8_t *
frame_start(const struct rte_mbuf *m)
{
	return (uint8_t *)m->buf_addr + RTE_PKTMBUF_HEADROOM;
}

/* Starts a frame with the cached bytes. Returns NULL if the port has no room or no mbuf. */
static inline struct rte_mbuf *
frame_open(struct soft_port *p, const struct soft_port_begin *b)
{
	struct rte_mbuf *m;

	if (unlikely(p->txq_n == SOFT_PORT_TXQ)) {
		soft_port_flush(p);
		if (p->txq_n == SOFT_PORT_TXQ)
			return NULL;
	}
	m = soft_port_raw_mbuf(p);
	if (unlikely(m == NULL))
		return NULL;
	m->data_off = RTE_PKTMBUF_HEADROOM;
	m->data_len = b->frame_len;
	m->pkt_len = b->frame_len;
	m->ol_flags = b->ol_flags;
	m->tx_offload = b->tx_offload;
	memcpy(frame_start(m), b->head, sizeof(b->head));
	return m;
}

/*
 * Completes a frame: writes the last word of the BTH, and the ICRC after the bytes that the caller
 * has written. Queues the frame, unless fault injection drops it.
 */
static inline void
frame_close(struct soft_engine *e, struct soft_port *p, struct rte_mbuf *m,
	    const struct soft_port_begin *b, uint8_t *bth, uint32_t last)
{
	last = bb_be32(last);
	memcpy(bth + SOFT_PORT_BTH, &last, sizeof(last));
	bb_roce_icrc_end(bb_roce_icrc_more(b->crc, bth + SOFT_PORT_BTH, b->len - SOFT_PORT_BTH),
			 bth + b->len);
	if (unlikely(e->net.loses) && soft_net_loses(e))
		soft_port_give_back(p, m);
	else
		soft_port_push(p, m);
}

/* ---- ACKs */

static inline bool
plain_ack(struct soft_engine *e, struct soft_wire *w, struct soft_port *p)
{
	struct soft_port_begin *b = &w->begin[PLAIN_ACK];
	struct bb_roce_qp *roce = &w->roce;
	struct rte_mbuf *m;
	uint8_t *bth;

	/* All ACKs of a queue pair have equal first bytes. */
	if (unlikely(!is_cached(w, b)))
		begin_anew(p, w, b,
			   bb_roce_bth_first(BB_ROCE_RC | BB_ROCE_ACK, BB_ROCE_MIGREQ,
					     roce->attr.pkey, 0),
			   BB_ROCE_BTH_LEN + BB_ROCE_AETH_LEN);
	m = frame_open(p, b);
	if (unlikely(m == NULL))
		return false;
	bth = frame_start(m) + w->path.path.len;
	bb_roce_aeth_store(bth + BB_ROCE_BTH_LEN, roce->resp.ack_syndrome, roce->resp.msn);
	frame_close(e, p, m, b, bth, bb_roce_bth_last(0, bb_roce_ack_psn(&roce->resp)));
	bb_roce_short_ack_sent(roce);
	return true;
}

/* ---- Requests */

/*
 * The shape of a request packet (struct soft_wire_shape) is all that follows from the control words
 * of its WQE: the headers that the packet has, and the length of its payload. The WQEs of a queue
 * mostly have equal control words, except for the index and the CE bits. So a WQE is decoded, and
 * the first bytes of its packet are computed, only if the comparison with the last WQE fails.
 */

/* Kind and headers of a request packet, by the WQE's opcode. hdr_len is 0 for other opcodes. */
static const struct plain_kind {
	uint8_t kind, opcode;
	uint8_t hdr_len; /* Length of BTH, RETH and ImmDt together, bytes. */
	bool write, imm;
} plain_kinds[] = {
	[BB_WQE_RDMA_WRITE] = {BB_ROCE_MSG_WRITE, BB_ROCE_RC | BB_ROCE_WRITE_ONLY,
			       BB_ROCE_BTH_LEN + BB_ROCE_RETH_LEN, true, false},
	[BB_WQE_RDMA_WRITE_IMM] = {BB_ROCE_MSG_WRITE_IMM, BB_ROCE_RC | BB_ROCE_WRITE_ONLY_IMM,
				   BB_ROCE_BTH_LEN + BB_ROCE_RETH_LEN + BB_ROCE_IMM_LEN, true,
				   true},
	[BB_WQE_SEND] = {BB_ROCE_MSG_SEND, BB_ROCE_RC | BB_ROCE_SEND_ONLY, BB_ROCE_BTH_LEN, false,
			 false},
	[BB_WQE_SEND_IMM] = {BB_ROCE_MSG_SEND_IMM, BB_ROCE_RC | BB_ROCE_SEND_ONLY_IMM,
			     BB_ROCE_BTH_LEN + BB_ROCE_IMM_LEN, false, true},
};

/* Bits of fm_ce_se that say which completions the WQE wants. The packet does not depend on them. */
#define CE_BITS 0x0cu

/*
 * Returns true if a WQE of @blocks blocks, 1 or 2, is posted completely and adjacent in memory.
 * @left blocks are posted, at least 1.
 */
static inline bool
fits(const struct soft_qp *qp, uint32_t blocks, uint16_t idx, uint32_t left)
{
	const uint32_t mask = (1u << qp->log_sq) - 1;

	return likely(blocks == 1) || (blocks == 2 && left >= 2 && (idx & mask) != mask);
}

/* Returns true if the WQE in block @idx, at @wqe, has the control words of the shape @s. */
static inline bool
has_shape(const struct soft_qp *qp, const struct soft_wire_shape *s, const uint8_t *wqe,
	  uint16_t idx, uint32_t left, uint8_t fm_ce_se)
{
	return fits(qp, s->blocks, idx, left) &&
	       likely((soft_ring64(wqe) ^ bb_be32((uint32_t)idx << 8)) == s->head &&
		      (fm_ce_se & ~CE_BITS) == s->fm_se && soft_ring32(wqe + s->at) == s->data);
}

/*
 * Decodes the control words of a SEND or WRITE without a fence, with or without immediate data,
 * whose payload is one SGE or inline data. Returns false if the WQE is another one.
 */
static __rte_noinline bool
read_shape(const struct soft_qp *qp, uint16_t idx, uint32_t left, uint8_t fm_ce_se,
	   struct soft_wire_shape *s)
{
	const uint8_t *wqe = soft_wqe_at(qp, idx);
	const uint64_t head = soft_ring64(wqe) ^ bb_be32((uint32_t)idx << 8);
	const uint32_t op = bb_be32((uint32_t)head);
	const uint32_t ds = bb_be32((uint32_t)(head >> 32)) ^ qp->qpn << 8;
	const struct plain_kind *kind;
	uint32_t hdr;

	if (op >= RTE_DIM(plain_kinds) || fm_ce_se >> 5 != 0 || ds > 8 ||
	    !fits(qp, (ds + 3) / 4, idx, left))
		return false;
	kind = &plain_kinds[op];
	if (kind->hdr_len == 0)
		return false;
	*s = (struct soft_wire_shape){
		.head = head,
		.opcode = (uint8_t)op,
		.at = kind->write ? 32 : 16,
		.blocks = (uint8_t)((ds + 3) / 4),
		.fm_se = (uint8_t)(fm_ce_se & ~CE_BITS),
		.write = kind->write,
		.imm = kind->imm,
		.kind = kind->kind,
		.flags = (fm_ce_se & BB_WQE_SE) != 0 ? BB_ROCE_SOLICITED : 0,
	};
	s->data = soft_ring32(wqe + s->at);
	hdr = bb_be32(s->data);
	s->len = hdr & ~BB_WQE_INLINE;
	return ds == s->at / BB_WQE_SEG +
			       ((hdr & BB_WQE_INLINE) != 0 ? bb_wqe_inline_ds(s->len) : 1) &&
	       (s->len - 1) >> qp->log_msg_max == 0;
}

/* Makes w->next_shape the shape of the next packet: caches the first bytes of its frame. */
static __rte_noinline void
begin_request(const struct soft_port *p, struct soft_wire *w)
{
	const struct soft_wire_shape *s = &w->next_shape;
	const struct plain_kind *kind = &plain_kinds[s->opcode];
	const uint32_t pad = bb_roce_pad(s->len);
	uint32_t flags = BB_ROCE_MIGREQ;

	if (s->flags != 0 && kind->kind != BB_ROCE_MSG_WRITE)
		flags |= BB_ROCE_SE;
	begin_anew(p, w, &w->begin[PLAIN_REQUEST],
		   bb_roce_bth_first(kind->opcode, flags, w->roce.attr.pkey, pad),
		   kind->hdr_len + s->len + pad);
	w->shape = *s;
}

/* Returns the payload of a WQE with the shape @s, or NULL if its key does not allow the access. */
static inline const uint8_t *
find_payload(struct soft_engine *e, const struct soft_qp *qp, const struct soft_wire_shape *s,
	     const uint8_t *wqe)
{
	const uint8_t *seg = wqe + s->at;

	if ((s->data & bb_be32(BB_WQE_INLINE)) != 0)
		return seg + 4;
	return soft_mem_find(e, qp->dev, bb_be32(soft_ring32(seg + 4)), qp->pdn,
			     bb_be64(soft_ring64(seg + 8)), s->len, SOFT_RIGHT_LOCAL_READ,
			     &e->req.why);
}

static inline void
plain_payload(uint8_t *at, const uint8_t *src, uint32_t len)
{
	if (likely(len == 8)) {
		memcpy(at, src, 8);
		return;
	}
	memcpy(at, src, len);
	memset(at + len, 0, bb_roce_pad(len));
}

/* A request packet that still lacks its PSN, its AckReq bit, and the ICRC. */
struct plain_open {
	struct rte_mbuf *m; /* NULL if no packet is open */
	uint8_t *bth;
};

/*
 * Begins the packet of the next WQE, at @wqe, which has the shape w->shape, and posts its message.
 * If the port has no room, changes nothing and returns false.
 */
static inline bool
open_request(struct soft_wire *w, struct soft_port *p, const uint8_t *wqe, const uint8_t *payload,
	     uint8_t fm_ce_se, struct plain_open *o)
{
	const struct soft_wire_shape *s = &w->shape;
	const uint32_t imm = soft_ring32(wqe + 12);
	struct bb_roce_msg *msg;
	uint8_t *at;

	o->m = frame_open(p, &w->begin[PLAIN_REQUEST]);
	if (unlikely(o->m == NULL))
		return false;
	o->bth = frame_start(o->m) + w->path.path.len;
	at = o->bth + BB_ROCE_BTH_LEN;
	msg = bb_roce_short_msg(&w->roce);
	if (likely(s->write)) {
		msg->raddr = bb_be64(soft_ring64(wqe + 16));
		msg->rkey = bb_be32(soft_ring32(wqe + 24));
		bb_roce_reth_store(at, msg->raddr, msg->rkey, s->len);
		at += BB_ROCE_RETH_LEN;
	}
	if (unlikely(s->imm)) {
		memcpy(at, &imm, BB_ROCE_IMM_LEN);
		at += BB_ROCE_IMM_LEN;
	}
	plain_payload(at, payload, s->len);
	msg->cookie = soft_wire_record_msg(w, s->opcode, s->blocks, fm_ce_se, s->len);
	msg->kind = s->kind;
	msg->flags = s->flags;
	msg->len = s->len;
	msg->imm = imm;
	bb_roce_short_assign(&w->roce, msg);
	return true;
}

/* Completes and sends the open packet, which is the last one that was begun. */
static inline void
close_request(struct soft_engine *e, struct soft_wire *w, struct soft_port *p,
	      const struct plain_open *o, bool ask)
{
	const uint32_t psn = bb_roce_short_last_psn(&w->roce);

	frame_close(e, p, o->m, &w->begin[PLAIN_REQUEST], o->bth,
		    bb_roce_bth_last(ask ? BB_ROCE_ACKREQ : 0, psn));
	p->stats.tx_copied++;
}

/* Packets since the last one that requested an ACK, in one run of plain_requests(). */
struct plain_quiet {
	uint32_t sent, most;
};

/*
 * Returns true if the open packet must request an ACK although another packet follows. Counts the
 * packet.
 */
static inline bool
must_ask(const struct soft_wire *w, struct plain_quiet *q)
{
	if (unlikely(q->sent == 0))
		q->most = bb_roce_short_quiet(&w->roce);
	return q->sent++ == q->most;
}

/* Updates the timers after a packet was sent with AckReq. */
static inline void
asked(struct soft_engine *e, struct soft_wire *w, struct plain_quiet *q)
{
	bb_roce_short_timers(&w->roce, true, soft_engine_ns(e));
	q->sent = 0;
}

/* Updates the timers if the last packets were sent without AckReq. */
static inline void
not_asked(struct soft_engine *e, struct soft_wire *w, const struct plain_quiet *q)
{
	if (q->sent != 0)
		bb_roce_short_quiet_sent(&w->roce, q->sent, soft_engine_ns(e));
}

/*
 * Sends request packets for the WQEs of a queue. Completes a packet after the next WQE is decoded,
 * because the packet depends on whether another follows.
 */
static inline void
plain_requests(struct soft_engine *e, struct soft_wire *w, struct soft_port *p)
{
	const struct soft_qp *qp = w->qp;
	uint32_t left = (uint16_t)(qp->sq_pi - w->sq_next), room = bb_roce_short_room(&w->roce);
	struct plain_open o = {.m = NULL};
	struct plain_quiet quiet = {0};
	bool more = false, ask;

	/* WQEs that must wait for a UMR go to soft_req_decode(), which detects them. */
	if (room == 0 || qp->state != BB_PRM_QP_RTS || unlikely(qp->umr_index != 0))
		return;
	if (unlikely(!is_cached(w, &w->begin[PLAIN_REQUEST])))
		w->shape.blocks = 0;
	for (; room != 0; room--) {
		const struct soft_wire_shape *s = &w->shape;
		const uint8_t *payload, *wqe = soft_wqe_at(qp, w->sq_next);
		uint8_t fm_ce_se;

		more = false;
		if (left == 0)
			break;
		fm_ce_se = __atomic_load_n(&wqe[11], __ATOMIC_RELAXED);
		if (unlikely(!has_shape(qp, s, wqe, w->sq_next, left, fm_ce_se))) {
			s = &w->next_shape;
			if (!read_shape(qp, w->sq_next, left, fm_ce_se, &w->next_shape))
				break;
		}
		payload = find_payload(e, qp, s, wqe);
		if (unlikely(payload == NULL))
			break;
		/* "more" is also true if a longer request follows, which lib/roce sends. */
		more = true;
		/* The last packet was short enough, so a WQE with its shape is. */
		if (unlikely(s != &w->shape) && s->len > RTE_MIN(PLAIN_MAX, qp->mtu))
			break;
		if (likely(o.m != NULL)) {
			ask = must_ask(w, &quiet);
			close_request(e, w, p, &o, ask);
			if (unlikely(ask))
				asked(e, w, &quiet);
		}
		if (unlikely(s != &w->shape))
			begin_request(p, w);
		if (unlikely(!open_request(w, p, wqe, payload, fm_ce_se, &o))) {
			not_asked(e, w, &quiet);
			return;
		}
		left -= w->shape.blocks;
	}
	if (unlikely(o.m == NULL))
		return;
	more = room != 0 && more;
	ask = !more || must_ask(w, &quiet);
	close_request(e, w, p, &o, ask);
	/*
	 * In a conversation (each message is answered by a message, see SOFT_WIRE_CONVERSATION) the
	 * peer waits for this packet. So the port sends it now, before the engine reads the clock.
	 */
	if (!more && w->n_answered == SOFT_WIRE_CONVERSATION)
		soft_port_flush(p);
	if (likely(ask))
		asked(e, w, &quiet);
	else
		not_asked(e, w, &quiet);
}

/* Sends a pending ACK before requests, but a delayed ACK after them. */
static __rte_noinline void
plain_both(struct soft_engine *e, struct soft_wire *w, struct soft_port *p)
{
	if (w->qp->queued == SOFT_Q_LATE) {
		plain_requests(e, w, p);
		if (bb_roce_short_ack_due(&w->roce))
			(void)plain_ack(e, w, p);
		return;
	}
	if (bb_roce_short_ack_due(&w->roce) && unlikely(!plain_ack(e, w, p)))
		return;
	if (likely(!bb_roce_has_response(&w->roce)))
		plain_requests(e, w, p);
}

void
soft_port_plain(struct soft_engine *e, struct soft_wire *w)
{
	const struct soft_port_path *path = &w->path.path;
	struct soft_netif *nif = e->dev->netif;
	struct soft_port *p = nif->port;

	/*
	 * The RoCEv2 engine sends the first packet of a path, which fills the cache of headers. The
	 * link sends no such packet if the destination is the device itself, or if the hop limit is
	 * 0.
	 */
	if (unlikely(path->len == 0 || path->gen != p->stack.neigh.gen || !nif->plain || !p->up ||
		     __atomic_load_n(&e->dev->port_down, __ATOMIC_RELAXED) || !soft_netif_mine(e)))
		return;
	/*
	 * Marks the neighbour entry as used, because the least recently used entry is evicted
	 * first.
	 */
	p->stack.neigh.entry[path->hint].used = nif->now;
	/* Each call is the last action, so that this function saves no registers. */
	if (w->sq_next == w->qp->sq_pi) {
		if (bb_roce_short_ack_due(&w->roce))
			(void)plain_ack(e, w, p);
	} else if (likely(!bb_roce_has_response(&w->roce))) {
		plain_requests(e, w, p);
	} else {
		plain_both(e, w, p);
	}
}
