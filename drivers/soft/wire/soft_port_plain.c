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

/* Key of an ACK in struct soft_port_begin. All ACKs of a queue pair have equal first bytes. */
#define ACK_KEY 1u

/* ---- Frames with cached first bytes */

/* Caches the first bytes of frames with @len bytes from the BTH to the padding. */
static __rte_noinline void
begin_anew(const struct soft_port *p, const struct soft_wire *w, struct soft_port_begin *b,
	   uint32_t key, uint32_t bth, uint32_t len)
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
	b->key = key;
	b->len = len;
	b->frame_len = (uint16_t)(path->len - SOFT_UDP_HDR + udp_len);
	b->crc = bb_roce_icrc_begin(ip, path->l3_len, ip + path->l3_len, at, SOFT_PORT_BTH);
	b->ol_flags = m.ol_flags;
	b->tx_offload = m.tx_offload;
}

/* Returns true if the cached bytes are those of frames with the key @key. */
static inline bool
begins_with(const struct soft_wire *w, const struct soft_port_begin *b, uint32_t key)
{
	return likely(b->key == key && b->gen == w->path.path.gen);
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
	memcpy(rte_pktmbuf_mtod(m, uint8_t *), b->head, sizeof(b->head));
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

	if (unlikely(!begins_with(w, b, ACK_KEY)))
		begin_anew(p, w, b, ACK_KEY,
			   bb_roce_bth_first(BB_ROCE_RC | BB_ROCE_ACK, BB_ROCE_MIGREQ,
					     roce->attr.pkey, 0),
			   BB_ROCE_BTH_LEN + BB_ROCE_AETH_LEN);
	m = frame_open(p, b);
	if (unlikely(m == NULL))
		return false;
	bth = rte_pktmbuf_mtod_offset(m, uint8_t *, w->path.path.len);
	bb_roce_aeth_store(bth + BB_ROCE_BTH_LEN, roce->resp.ack_syndrome, roce->resp.msn);
	frame_close(e, p, m, b, bth, bb_roce_bth_last(0, bb_roce_ack_psn(&roce->resp)));
	bb_roce_short_ack_sent(roce);
	return true;
}

/* ---- Requests */

/*
 * Kind and headers of a request packet, by the WQE's opcode. Has only the opcodes that
 * soft_fast_decode_plain() accepts.
 */
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

static inline void
plain_payload(uint8_t *at, const struct soft_write *r)
{
	if (likely(r->len == 8)) {
		memcpy(at, r->src, 8);
		return;
	}
	memcpy(at, r->src, r->len);
	memset(at + r->len, 0, bb_roce_pad((uint32_t)r->len));
}

/*
 * Returns the key of a request in struct soft_port_begin. It has all fields of the request on which
 * the first bytes depend. It is not 0, because the opcode is not.
 */
static inline uint32_t
request_key(const struct soft_plain *r)
{
	static_assert(PLAIN_MAX < 1u << 16, "length and opcode overlap in the key");
	return (uint32_t)r->w.len << 16 | (uint32_t)(r->fm_ce_se & BB_WQE_SE) << 8 | r->opcode;
}

/*
 * Caches the first bytes of requests with the key @key. Takes the key and not the request, so that
 * the caller can hold the request in registers.
 */
static __rte_noinline void
begin_request(const struct soft_port *p, const struct soft_wire *w, struct soft_port_begin *b,
	      uint32_t key)
{
	const struct plain_kind *kind = &plain_kinds[key & 0xff];
	const uint32_t bytes = key >> 16, pad = bb_roce_pad(bytes);
	uint32_t flags = BB_ROCE_MIGREQ;

	if ((key >> 8 & BB_WQE_SE) != 0 && kind->kind != BB_ROCE_MSG_WRITE)
		flags |= BB_ROCE_SE;
	begin_anew(p, w, b, key, bb_roce_bth_first(kind->opcode, flags, w->roce.attr.pkey, pad),
		   kind->hdr_len + bytes + pad);
}

/* A request packet that still lacks its PSN, its AckReq bit, and the ICRC. */
struct plain_open {
	struct rte_mbuf *m; /* NULL if no packet is open */
	uint8_t *bth;
};

/*
 * Begins the packet of a request, and posts its message. If the port has no room, changes nothing
 * and returns false.
 */
static inline bool
open_request(struct soft_wire *w, struct soft_port *p, const struct soft_plain *r,
	     struct plain_open *o)
{
	const struct plain_kind *kind = &plain_kinds[r->opcode];
	struct soft_port_begin *b = &w->begin[PLAIN_REQUEST];
	const uint32_t bytes = (uint32_t)r->w.len;
	struct bb_roce_msg *msg;
	uint8_t *at;

	if (unlikely(!begins_with(w, b, request_key(r))))
		begin_request(p, w, b, request_key(r));
	o->m = frame_open(p, b);
	if (unlikely(o->m == NULL))
		return false;
	o->bth = rte_pktmbuf_mtod_offset(o->m, uint8_t *, w->path.path.len);
	at = o->bth + BB_ROCE_BTH_LEN;
	if (likely(kind->write)) {
		bb_roce_reth_store(at, r->w.raddr, r->w.rkey, bytes);
		at += BB_ROCE_RETH_LEN;
	}
	if (unlikely(kind->imm)) {
		memcpy(at, &r->imm, BB_ROCE_IMM_LEN);
		at += BB_ROCE_IMM_LEN;
	}
	plain_payload(at, &r->w);
	msg = bb_roce_short_msg(&w->roce);
	msg->cookie = soft_wire_record_msg(w, r->opcode, r->w.blocks, r->fm_ce_se, r->w.len);
	msg->kind = kind->kind;
	msg->flags = (r->fm_ce_se & BB_WQE_SE) != 0 ? BB_ROCE_SOLICITED : 0;
	msg->len = bytes;
	msg->imm = r->imm;
	msg->rkey = r->w.rkey;
	msg->raddr = r->w.raddr;
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

#define QUIET_UNKNOWN UINT32_MAX

/*
 * Returns true if the open packet must request an ACK although another packet follows. *quiet:
 * number of packets that need not request an ACK before the next one must; QUIET_UNKNOWN before the
 * first call.
 */
static inline bool
must_ask(const struct soft_wire *w, uint32_t *quiet)
{
	if (unlikely(*quiet == QUIET_UNKNOWN))
		*quiet = bb_roce_short_quiet(&w->roce);
	return (*quiet)-- == 0; /* 0 wraps to QUIET_UNKNOWN */
}

/*
 * Sends request packets for the WQEs of a queue. Completes a packet after the next WQE is decoded,
 * because the packet depends on whether another follows.
 */
static inline void
plain_requests(struct soft_engine *e, struct soft_wire *w, struct soft_port *p)
{
	const struct soft_qp *qp = w->qp;
	const uint32_t most = RTE_MIN(PLAIN_MAX, qp->mtu);
	uint32_t left = (uint16_t)(qp->sq_pi - w->sq_next), room = bb_roce_short_room(&w->roce);
	uint32_t quiet = QUIET_UNKNOWN;
	struct plain_open o = {.m = NULL};
	struct soft_plain r = {.opcode = 0};
	bool more, ask;

	/* WQEs that must wait for a UMR go to soft_req_decode(), which detects them. */
	if (room == 0 || qp->state != BB_PRM_QP_RTS || unlikely(qp->umr_index != 0))
		return;
	for (; room != 0; room--) {
		/* "more" is also true if a longer request follows, which lib/roce sends. */
		more = soft_fast_decode_plain(e, qp, w->sq_next, left, &r);
		if (!more || unlikely(r.w.len > most))
			break;
		if (likely(o.m != NULL)) {
			ask = must_ask(w, &quiet);
			close_request(e, w, p, &o, ask);
			bb_roce_short_timers(&w->roce, ask, soft_engine_ns(e));
		}
		if (unlikely(!open_request(w, p, &r, &o)))
			return;
		left -= r.w.blocks;
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
	bb_roce_short_timers(&w->roce, ask, soft_engine_ns(e));
}

void
soft_port_plain(struct soft_engine *e, struct soft_wire *w)
{
	const struct soft_port_path *path = &w->path.path;
	struct soft_netif *nif = e->dev->netif;
	struct soft_port *p = nif->port;

	/* The RoCEv2 engine sends the first packet of a path, which fills the cache of headers. */
	if (unlikely(path->len == 0 || path->gen != p->stack.neigh.gen || !nif->plain || !p->up ||
		     w->path.own || soft_netif_is_dead(e->dev, &w->path.net) ||
		     !soft_netif_mine(e)))
		return;
	/*
	 * Marks the neighbour entry as used, because the least recently used entry is evicted
	 * first.
	 */
	p->stack.neigh.entry[path->hint].used = nif->now;
	/* A pending ACK is sent before requests, but a delayed ACK after them. */
	if (w->qp->queued == SOFT_Q_LATE) {
		if (w->sq_next != w->qp->sq_pi)
			plain_requests(e, w, p);
		if (bb_roce_short_ack_due(&w->roce))
			(void)plain_ack(e, w, p);
		return;
	}
	if (bb_roce_short_ack_due(&w->roce) && unlikely(!plain_ack(e, w, p)))
		return;
	if (w->sq_next != w->qp->sq_pi && likely(!bb_roce_has_response(&w->roce)))
		plain_requests(e, w, p);
}
