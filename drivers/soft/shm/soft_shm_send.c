/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Fast path of plain SENDs that fit one packet. The requester copies the WQE's payload into the
 * ring. The responder copies the packet from the ring into its receive. The packets are those that
 * lib/roce would build. Both QPs end in the state that lib/roce would leave (bb_roce_short_send(),
 * bb_roce_short_accepted()). So either peer may use the slow path at any time. A peer does so for
 * any other WQE or packet, if no receive is posted, and on any fault.
 */
#include "bb_roce_short.h"
#include "soft_recv_fast.h"
#include "soft_shm.h"
#include "soft_wire.h"

/* ---- Sending */

/* Sends the next WQE. Returns false if the WQE needs the slow path or the ring is full. */
static inline bool
send_one(struct soft_engine *e, struct soft_wire *w, struct soft_shm_tx *tx, uint8_t sgid,
	 uint64_t now)
{
	struct soft_qp *qp = w->qp;
	const uint8_t *b = qp->sq + ((size_t)(w->sq_next & ((1u << qp->log_sq) - 1)) << 6);
	const uint8_t fm_ce_se = __atomic_load_n(&b[11], __ATOMIC_RELAXED);
	const struct bb_roce_net *net = &w->path.net;
	struct soft_ring_rec *rec;
	struct bb_roce_short s;
	struct soft_write r;
	uint32_t len;
	uint8_t *at;

	/* WQEs with a fence take the slow path. */
	if (fm_ce_se >> 5 != 0 || !soft_fast_decode_send(e, qp, b, w->sq_next, &r) ||
	    r.len > qp->mtu)
		return false;
	len = BB_ROCE_BTH_LEN + (uint32_t)r.len + bb_roce_pad((uint32_t)r.len);
	rec = soft_ring_reserve(&tx->ring, len);
	if (unlikely(rec == NULL))
		return false;
	bb_roce_short_send(&w->roce, soft_wire_record_msg(w, BB_WQE_SEND, 1, fm_ce_se, r.len),
			   (uint32_t)r.len, (fm_ce_se & BB_WQE_SE) != 0 ? BB_ROCE_SOLICITED : 0,
			   now, &s);
	rec->flow_label = net->flow_label;
	rec->sport = net->sport;
	rec->tclass = net->tclass;
	rec->hop_limit = net->hop_limit;
	rec->sgid = sgid;
	at = (uint8_t *)(rec + 1);
	bb_roce_short_build(at, &s);
	at += BB_ROCE_BTH_LEN;
	if (likely(r.len == 8)) {
		memcpy(at, r.src, 8);
	} else {
		memcpy(at, r.src, r.len);
		memset(at + r.len, 0, bb_roce_pad((uint32_t)r.len));
	}
	soft_ring_publish(&tx->ring, rec, len);
	return true;
}

void
soft_shm_send_out(struct soft_engine *e, struct soft_wire *w, uint64_t now)
{
	const struct soft_qp *qp = w->qp;
	struct soft_shm_tx *tx;
	uint32_t room, posted;
	uint8_t sgid;

	/* WQEs after a UMR may have to wait for it; soft_req_decode() then handles them. */
	if (qp->state != BB_PRM_QP_RTS || !soft_shm_wire(w)->direct.allowed ||
	    w->sq_next == qp->sq_pi || unlikely(qp->umr_index != 0))
		return;
	posted = (uint16_t)(qp->sq_pi - w->sq_next);
	room = RTE_MIN(bb_roce_short_room(&w->roce), posted);
	if (room == 0)
		return;
	tx = soft_shm_tx_lock(e, &w->path, &sgid);
	if (unlikely(tx == NULL))
		return;
	while (room != 0 && send_one(e, w, tx, sgid, now))
		room--;
	soft_shm_rouse(tx);
	rte_ticketlock_unlock(&tx->lock);
}

/* ---- Receiving */

bool
soft_shm_send_in(struct soft_engine *e, const struct soft_shm_rx *rx,
		 const struct soft_ring_rec *rec, const uint8_t *p)
{
	uint8_t bth[BB_ROCE_BTH_LEN], *dst;
	const uint8_t *list;
	struct bb_roce_short s;
	struct soft_wire *w;
	struct soft_qp *qp;

	if (unlikely(rec->len < sizeof(bth) || rec->sgid >= rx->n_gids ||
		     __atomic_load_n(&e->dev->port_down, __ATOMIC_RELAXED)))
		return false;
	/*
	 * Parses a copy of the header, because the peer may change the original. The payload is not
	 * parsed, only copied.
	 */
	memcpy(bth, p, sizeof(bth));
	if (!bb_roce_short_parse(&s, bth, rec->len))
		return false;
	qp = soft_qp_find(e->dev, s.dqpn);
	if (unlikely(qp == NULL || qp->wire == NULL || qp->engine != e ||
		     !soft_shm_wire(qp->wire)->direct.allowed))
		return false;
	w = qp->wire;
	if (unlikely(!bb_roce_short_expected(&w->roce, &s, rx->gids[rec->sgid], rx->dst,
					     rec->tclass)))
		return false;
	list = soft_recv_next(qp);
	dst = list != NULL ? soft_recv_addr(e, qp, list, s.len) : NULL;
	if (unlikely(dst == NULL))
		return false;
	soft_mem_copy(e, dst, p + sizeof(bth), s.len);
	if (unlikely(!soft_recv_complete(e, qp, BB_CQE_RESP_SEND, (s.flags & BB_ROCE_SE) != 0, 0,
					 s.len)))
		return true;
	bb_roce_short_accepted(&w->roce, &s);
	soft_wire_received(e, w, false);
	return true;
}
