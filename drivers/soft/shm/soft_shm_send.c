/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Fast path of plain SENDs that fit one packet, and of ACKs. The requester copies the WQE's payload
 * into the ring. The responder copies the packet from the ring into its receive. The packets are
 * those that lib/roce would build. Both QPs end in the state that lib/roce would leave
 * (bb_roce_short_send(), bb_roce_short_accepted()). So either peer may use the slow path at any
 * time. A peer does so for any other WQE or packet, if no receive is posted, and on any fault.
 *
 * If both a SEND and an ACK are due, they share a record of the ring. So a short message and the
 * ACK of the message that it answers move one cache line, and the peer processes both in one turn.
 */
#include <assert.h>

#include "bb_roce_short.h"
#include "soft_recv_fast.h"
#include "soft_shm.h"
#include "soft_wire.h"

#define ACK_LEN (BB_ROCE_BTH_LEN + BB_ROCE_AETH_LEN)

static_assert(SOFT_PORT_MAX_MTU + BB_ROCE_BTH_LEN + ACK_LEN <= SOFT_RING_MAX, "a SEND and an ACK");

/* ---- Sending plain SENDs and ACKs */

/* Fills in a record's header, except the length, for a packet of @w. */
static inline void
set_header(struct soft_ring_rec *rec, struct soft_wire *w)
{
	memcpy(&rec->len + 1, &soft_shm_wire(w)->head.len + 1, sizeof(*rec) - sizeof(rec->len));
}

/* Writes the pending ACK, which the caller then publishes. */
static inline void
store_ack(struct bb_roce_qp *roce, uint8_t *at)
{
	bb_roce_bth_store(at, BB_ROCE_RC | BB_ROCE_ACK, BB_ROCE_MIGREQ, roce->attr.pkey,
			  roce->attr.dqpn, bb_roce_ack_psn(&roce->resp), 0);
	bb_roce_aeth_store(at + BB_ROCE_BTH_LEN, roce->resp.ack_syndrome, roce->resp.msn);
	bb_roce_short_ack_sent(roce);
}

/* Sends the pending ACK. If the ring is full, the ACK stays pending. */
static inline void
send_ack(struct soft_wire *w, struct soft_shm_tx *tx)
{
	struct soft_ring_rec *rec = soft_ring_reserve(&tx->ring, ACK_LEN);

	if (unlikely(rec == NULL))
		return;
	set_header(rec, w);
	store_ack(&w->roce, (uint8_t *)(rec + 1));
	soft_ring_publish(&tx->ring, rec, ACK_LEN);
}

/*
 * Sends the next WQE, and with @ack the pending ACK in the same record. Returns the number of the
 * WQE's blocks, or 0 if the WQE needs the slow path or the ring is full.
 */
static inline uint32_t
send_one(struct soft_engine *e, struct soft_wire *w, struct soft_shm_tx *tx, bool ack)
{
	struct soft_qp *qp = w->qp;
	const uint8_t *b = soft_wqe_at(qp, w->sq_next);
	const uint8_t fm_ce_se = __atomic_load_n(&b[11], __ATOMIC_RELAXED);
	struct soft_ring_rec *rec;
	struct bb_roce_short s;
	struct soft_write r;
	uint32_t len, blocks;
	uint8_t *at;

	/* WQEs with a fence take the slow path. */
	if (fm_ce_se >> 5 != 0)
		return 0;
	blocks = soft_fast_decode_send(e, qp, b, w->sq_next, &r);
	if (blocks == 0 || r.len > qp->mtu)
		return 0;
	len = BB_ROCE_BTH_LEN + (uint32_t)r.len + bb_roce_pad((uint32_t)r.len);
	rec = soft_ring_reserve(&tx->ring, len + ACK_LEN);
	if (unlikely(rec == NULL))
		return 0;
	bb_roce_short_send(&w->roce, soft_wire_record_msg(w, BB_WQE_SEND, blocks, fm_ce_se, r.len),
			   (uint32_t)r.len, (fm_ce_se & BB_WQE_SE) != 0 ? BB_ROCE_SOLICITED : 0,
			   soft_engine_ns(e), &s);
	set_header(rec, w);
	at = (uint8_t *)(rec + 1);
	bb_roce_short_build(at, &s);
	at += BB_ROCE_BTH_LEN;
	if (likely(r.len == 8)) {
		memcpy(at, r.src, 8);
	} else {
		memcpy(at, r.src, r.len);
		memset(at + r.len, 0, bb_roce_pad((uint32_t)r.len));
	}
	if (ack) {
		store_ack(&w->roce, (uint8_t *)(rec + 1) + len);
		rec->ack_len = ACK_LEN;
		len += ACK_LEN;
	}
	soft_ring_publish(&tx->ring, rec, len);
	return blocks;
}

/* Returns the number of posted blocks that may be sent now, if each is a WQE. */
static inline uint32_t
posted_room(const struct soft_wire *w)
{
	const struct soft_qp *qp = w->qp;
	const uint32_t posted = (uint16_t)(qp->sq_pi - w->sq_next);
	uint32_t room;

	/* WQEs after a UMR may have to wait for it; soft_req_decode() then handles them. */
	if (posted == 0 || qp->state != BB_PRM_QP_RTS || unlikely(qp->umr_index != 0))
		return 0;
	room = bb_roce_short_room(&w->roce);
	return RTE_MIN(room, posted);
}

/*
 * Returns true if the link is up for packets of @w. Checks that the index of the source address is
 * still right.
 */
static inline bool
path_up(const struct soft_dev *dev, struct soft_wire *w)
{
	const uint8_t *src = w->path.net.src;
	uint8_t *sgid = &soft_shm_wire(w)->head.sgid;

	return likely(!__atomic_load_n(&dev->port_down, __ATOMIC_RELAXED)) &&
	       (likely(bb_roce_same_gid(dev->gids[*sgid].raw, src)) ||
		soft_shm_source(dev, src, sgid));
}

void
soft_shm_send_out(struct soft_engine *e, struct soft_wire *w)
{
	bool ack = bb_roce_short_ack_due(&w->roce);
	uint32_t room = posted_room(w), blocks;
	struct soft_shm_tx *tx = w->shm_tx;

	if ((room == 0 && !ack) || !soft_shm_wire(w)->plain || unlikely(!path_up(e->dev, w)))
		return;
	rte_ticketlock_lock(&tx->lock);
	if (likely(tx->state == SOFT_SHM_UP)) {
		while (room != 0 && (blocks = send_one(e, w, tx, ack)) != 0) {
			ack = false;
			room -= RTE_MIN(room, blocks);
		}
		if (ack)
			send_ack(w, tx);
		soft_shm_rouse(tx);
	}
	rte_ticketlock_unlock(&tx->lock);
}

/* ---- Receiving plain SENDs and ACKs */

/*
 * Finds the QP for which this engine receives a packet on the fast path. Returns NULL if there is
 * none.
 */
static inline struct soft_wire *
receiver(const struct soft_engine *e, uint32_t dqpn)
{
	const struct soft_qp *qp = soft_qp_find(e->dev, dqpn);

	return unlikely(qp == NULL || qp->wire == NULL || qp->engine != e ||
			!soft_shm_wire(qp->wire)->plain)
		       ? NULL
		       : qp->wire;
}

/* Processes an ACK without credits. Returns NULL if the packet needs the full path. */
static struct soft_wire *
ack_in(struct soft_engine *e, const struct soft_shm_rx *rx, const struct soft_ring_rec *rec,
       const uint8_t *p)
{
	uint8_t ack[ACK_LEN];
	struct soft_wire *w;
	uint32_t bth[3], psn;

	memcpy(ack, p, sizeof(ack));
	bb_roce_bth_load(bth, ack);
	if (bth[0] >> BB_ROCE_BTH0_OPCODE != ((uint32_t)BB_ROCE_RC | BB_ROCE_ACK) ||
	    (bth[0] & (BB_ROCE_BTH0_TVER | 3u << BB_ROCE_BTH0_PAD)) != 0 ||
	    (bth[1] & BB_ROCE_BTH1_MARKS) != 0)
		return NULL;
	w = receiver(e, bth[1] & BB_ROCE_QPN_MASK);
	psn = bth[2] & BB_ROCE_PSN_MASK;
	if (unlikely(w == NULL ||
		     !bb_roce_short_from_peer(&w->roce, (uint16_t)bth[0], rx->gids[rec->sgid],
					      rx->dst, rec->tclass) ||
		     !bb_roce_short_ack_next(&w->roce, psn, ack[BB_ROCE_BTH_LEN])))
		return NULL;
	soft_wire_turn(e);
	bb_roce_short_acked(&w->roce, psn, soft_engine_ns(e));
	soft_keys_done(e);
	return w;
}

struct soft_wire *
soft_shm_send_in(struct soft_engine *e, const struct soft_shm_rx *rx,
		 const struct soft_ring_rec *rec, const uint8_t *p)
{
	uint8_t bth[BB_ROCE_BTH_LEN], in_cqe[32] = {0}, *dst;
	const uint8_t *list;
	struct bb_roce_short s;
	struct soft_wire *w;
	struct soft_qp *qp;

	if (unlikely(rec->len < sizeof(bth) || rec->sgid >= rx->n_gids ||
		     __atomic_load_n(&e->dev->port_down, __ATOMIC_RELAXED)))
		return NULL;
	/*
	 * Parses a copy of the header, because the peer may change the original. The payload is not
	 * parsed, only copied.
	 */
	memcpy(bth, p, sizeof(bth));
	if (!bb_roce_short_parse(&s, bth, rec->len))
		return rec->len == ACK_LEN ? ack_in(e, rx, rec, p) : NULL;
	w = receiver(e, s.dqpn);
	if (unlikely(w == NULL || !bb_roce_short_expected(&w->roce, &s, rx->gids[rec->sgid],
							  rx->dst, rec->tclass)))
		return NULL;
	qp = w->qp;
	list = soft_recv_peek(qp);
	if (unlikely(list == NULL))
		return NULL;
	/* A short message goes into the CQE if the QP wants that, as libmlx5's QPs do. */
	if (s.len > qp->cs_res)
		dst = soft_recv_addr(e, qp, list, s.len);
	else
		dst = qp->cs_res <= sizeof(in_cqe) ? in_cqe : NULL;
	if (unlikely(dst == NULL))
		return NULL;
	soft_mem_copy(e, dst, p + sizeof(bth), s.len);
	if (likely(soft_recv_complete_data(e, qp, BB_CQE_RESP_SEND, (s.flags & BB_ROCE_SE) != 0, 0,
					   s.len, dst == in_cqe ? in_cqe : NULL)))
		bb_roce_short_accepted(&w->roce, &s);
	return w;
}
