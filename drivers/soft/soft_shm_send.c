/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Plain SENDs of one packet, the short way: the requester's WQE goes into the ring, the packet in
 * the ring goes into the responder's receive. They are the packets that lib/roce would have made,
 * and both queue pairs are afterwards as it would have left them (bb_roce_short_send(),
 * bb_roce_short_taken()), so that each side may take the long way with any of them: a WQE or
 * packet of another kind, one that meets no receive, one that something is wrong with.
 */
#include "bb_roce_short.h"
#include "soft_access.h"
#include "soft_cqe.h"
#include "soft_fast.h"
#include "soft_resp.h"
#include "soft_shm.h"
#include "soft_wire.h"

/* ---- Out */

/* The WQE that is next, into the ring. False: the long way, or no room. */
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

	/* Fences are for others to heed. */
	if (fm_ce_se >> 5 != 0 || !soft_fast_decode_send(e, qp, b, w->sq_next, &r) ||
	    r.len > qp->mtu)
		return false;
	len = BB_ROCE_BTH_LEN + (uint32_t)r.len + bb_roce_pad((uint32_t)r.len);
	rec = soft_ring_reserve(&tx->ring, len);
	if (unlikely(rec == NULL))
		return false;
	bb_roce_short_send(&w->roce, soft_wire_note(w, BB_WQE_SEND, 1, fm_ce_se, r.len),
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

	if (qp->state != BB_PRM_QP_RTS || !w->direct.allowed || w->sq_next == qp->sq_pi)
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
	rte_ticketlock_unlock(&tx->lock);
}

/* ---- In */

/* Where @len bytes go by the receive that is next. NULL: the long way. */
static inline uint8_t *
send_place(struct soft_engine *e, const struct soft_qp *qp, uint32_t len)
{
	uint16_t posted = (uint16_t)(bb_be32(bb_dbrec_load(&qp->dbrec[0])) - qp->rq_ci);
	const char *why;
	const uint8_t *s;
	uint32_t count;

	if (unlikely(posted == 0 || posted > 1u << qp->log_rq))
		return NULL;
	s = qp->rq + ((size_t)(qp->rq_ci & ((1u << qp->log_rq) - 1)) << qp->log_rq_stride);
	count = bb_be32(soft_ring32(s));
	/* All of it into the first entry. */
	if (unlikely((count & BB_WQE_INLINE) != 0 || count < len))
		return NULL;
	return soft_mem_find(e, qp->dev, bb_be32(soft_ring32(s + 4)), qp->pdn,
			     bb_be64(soft_ring64(s + 8)), len, SOFT_RIGHT_LOCAL_WRITE, &why);
}

/* What soft_wire_resp.c has other ways for. */
static inline bool
send_plain(const struct soft_engine *e, const struct soft_qp *qp)
{
	return qp->wire != NULL && qp->engine == e && qp->has_rq && qp->rmp == NULL &&
	       !qp->cs_res && qp->wire->direct.allowed;
}

bool
soft_shm_send_in(struct soft_engine *e, const struct soft_shm_rx *rx,
		 const struct soft_ring_rec *rec, const uint8_t *p)
{
	uint8_t bth[BB_ROCE_BTH_LEN], *dst;
	struct bb_roce_short s;
	struct soft_wire *w;
	struct soft_qp *qp;

	if (unlikely(rec->len < sizeof(bth) || rec->sgid >= rx->n_gids ||
		     __atomic_load_n(&e->dev->port_down, __ATOMIC_RELAXED)))
		return false;
	/* Looked at in a copy; the payload is only copied on. */
	memcpy(bth, p, sizeof(bth));
	if (!bb_roce_short_parse(&s, bth, rec->len))
		return false;
	qp = soft_qp_find(e->dev, s.dqpn);
	if (unlikely(qp == NULL || !send_plain(e, qp)))
		return false;
	w = qp->wire;
	if (unlikely(!bb_roce_short_expected(&w->roce, &s, rx->gids[rec->sgid], rx->dst,
					     rec->tclass)))
		return false;
	dst = send_place(e, qp, s.len);
	/* With room in a CQ of its own its completion cannot fail. */
	if (unlikely(dst == NULL || __atomic_load_n(&qp->rcq->flags, __ATOMIC_RELAXED) != 0 ||
		     soft_cqe_slot(qp->rcq) == NULL))
		return false;
	soft_mem_copy(e, dst, p + sizeof(bth), s.len);
	bb_dma_wmb();
	if (unlikely(!soft_cqe_write(e, qp, qp->rcq, soft_pair(bb_be32(qp->user_index), 0),
				     soft_pair(0, bb_be32(s.len)), 0, 0, qp->rq_ci,
				     (uint8_t)(BB_CQE_RESP_SEND << 4 |
					       ((s.flags & BB_ROCE_SE) != 0 ? SOFT_CQE_SE : 0))))) {
		soft_qp_fail(qp, BB_PRM_EVENT_WQ_CATAS_ERROR);
		return true;
	}
	qp->rq_ci++;
	bb_roce_short_taken(&w->roce, &s);
	soft_wire_took(e, w);
	return true;
}
