/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The responder: what the connected peer does with a request.
 *
 * RDMA WRITE, READ and atomics that succeed need nothing that belongs to the target's
 * engine, so the requester's engine carries them out. All that touches the target's
 * receive queue, its CQ or its state is done by the target's engine: another one gets
 * SOFT_OWNER and sends the request there, where all checks are made again.
 *
 * PSNs, NAKs and what they do to the two QPs: IBTA vol. 1, 9.7.4 and 9.9.3. RDMA without
 * the QP's right (rre, rwe, rae) is a request that the QP does not support, so it is
 * answered with an invalid request, as Linux's rxe does; a card's answer is [A].
 */
#include "soft_data.h"

static const struct soft_answer soft_ack = {.kind = SOFT_ACK};
static const struct soft_answer soft_owner = {.kind = SOFT_OWNER};
static const struct soft_answer soft_silence = {.kind = SOFT_SILENCE};

struct soft_qp *
soft_resp_find(const struct soft_qp *qp)
{
	struct soft_qp *p;
	uint32_t state;

	if (unlikely(qp->peer_dev == NULL))
		return NULL;
	p = soft_qp_find(qp->peer_dev, qp->remote_qpn);
	if (unlikely(p == NULL))
		return NULL;
	state = soft_qp_state(p);
	if (unlikely(state != BB_PRM_QP_RTS && state != BB_PRM_QP_RTR))
		return NULL;
	if (unlikely(p->remote_qpn != qp->qpn || p->peer_dev != qp->dev))
		return NULL;
	if (unlikely(__atomic_load_n(&qp->dev->port_down, __ATOMIC_RELAXED) ||
		     __atomic_load_n(&p->dev->port_down, __ATOMIC_RELAXED)))
		return NULL;
	return p;
}

static inline struct soft_answer
soft_nak(uint8_t synd)
{
	return (struct soft_answer){.kind = SOFT_NAK, .code = synd};
}

/*
 * The target goes to ERR. When a QP talks to itself, the requester's half does that
 * behind its error CQE, or the flush would come first.
 */
static void
soft_resp_fail(struct soft_qp *p, const struct soft_qp *qp, uint16_t event)
{
	if (p != qp)
		soft_qp_fail(p, event);
	else if (event != 0)
		soft_event_raise(p->dev, p->obj, event);
}

/* Refuse a request that needs no receive: tell the requester, raise the event. */
static struct soft_answer
soft_resp_refuse(struct soft_engine *e, struct soft_qp *p, const struct soft_qp *qp,
		 const struct soft_req *r, uint8_t synd, const char *why)
{
	if (p->engine != e)
		return soft_owner;
	SOFT_LOG(ERR,
		 "%s QP 0x%x refuses a request of QP 0x%x (opcode 0x%x, rkey 0x%x, address "
		 "0x%" PRIx64 ", %" PRIu64 " bytes): %s",
		 p->dev->name, p->qpn, qp->qpn, r->d.opcode, r->rkey, r->raddr, r->d.len, why);
	if (synd == BB_SYN_REMOTE_ACCESS) {
		SOFT_COUNT(p, resp_remote_access);
		soft_resp_fail(p, qp, BB_PRM_EVENT_WQ_ACCESS_ERROR);
	} else {
		SOFT_COUNT(p, resp_remote_invalid);
		soft_resp_fail(p, qp, BB_PRM_EVENT_WQ_INVAL_REQ_ERROR);
	}
	return soft_nak(synd);
}

/* The receive at the head of the queue fails: its CQE, then ERR. */
static struct soft_answer
soft_resp_recv_fail(struct soft_engine *e, struct soft_qp *p, const struct soft_qp *qp,
		    const struct soft_req *r, uint8_t synd, const char *why)
{
	SOFT_LOG(ERR,
		 "%s QP 0x%x receive WQE %u (message of %" PRIu64 " bytes): syndrome 0x%02x, %s",
		 p->dev->name, p->qpn, p->rq_ci, r->d.len, synd, why);
	if (synd == BB_SYN_LOCAL_LENGTH)
		SOFT_COUNT(p, resp_local_length);
	else if (synd == BB_SYN_LOCAL_PROT)
		SOFT_COUNT(p, resp_local_prot);
	soft_cqe_error(e, p, true, p->rq_ci, 0, synd);
	p->rq_ci++;
	soft_resp_fail(p, qp, 0);
	return soft_nak(synd == BB_SYN_LOCAL_LENGTH ? BB_SYN_REMOTE_INVAL_REQ : BB_SYN_REMOTE_OP);
}

/* Is there a receive for this message? */
static struct soft_answer
soft_resp_recv_ready(struct soft_engine *e, struct soft_qp *p, const struct soft_qp *qp,
		     const struct soft_req *r)
{
	uint16_t posted;

	/* "Not supported by this receive queue": it has none at all [A]. */
	if (unlikely(!p->has_rq))
		return soft_resp_refuse(e, p, qp, r, BB_SYN_REMOTE_INVAL_REQ,
					"the QP was created without a receive queue");
	posted = (uint16_t)(bb_be32(bb_dbrec_load(&p->dbrec[0])) - p->rq_ci);
	if (likely(posted != 0 && posted <= 1u << p->log_rq))
		return soft_ack;
	if (posted == 0) {
		SOFT_COUNT(p, out_of_buffer);
		return (struct soft_answer){
			.kind = SOFT_NAK_RNR,
			.code = __atomic_load_n(&p->min_rnr_nak, __ATOMIC_RELAXED)};
	}
	SOFT_LOG(ERR,
		 "%s QP 0x%x: the receive doorbell record is %u WQEs ahead of the %u in the ring; "
		 "write the WQE counter, big endian, to word 0",
		 p->dev->name, p->qpn, posted, 1u << p->log_rq);
	soft_resp_fail(p, qp, BB_PRM_EVENT_WQ_CATAS_ERROR);
	return soft_nak(BB_SYN_REMOTE_OP);
}

/* The completion of a receive. */
static struct soft_answer
soft_resp_recv_done(struct soft_engine *e, struct soft_qp *p, const struct soft_qp *qp,
		    const struct soft_req *r, uint8_t opcode, uint32_t imm)
{
	if (unlikely(!soft_cqe_resp(e, p, opcode, r->d.fm_ce_se & BB_WQE_SE, imm,
				    (uint32_t)r->d.len))) {
		soft_resp_fail(p, qp, BB_PRM_EVENT_WQ_CATAS_ERROR);
		return soft_nak(BB_SYN_REMOTE_OP);
	}
	p->rq_ci++;
	return soft_ack;
}

static struct soft_answer
soft_resp_send(struct soft_engine *e, struct soft_qp *p, const struct soft_qp *qp,
	       struct soft_req *r)
{
	uint64_t left = r->d.len;
	struct soft_answer ans;
	const uint8_t *wqe;
	const char *why;
	uint32_t i, n = 0, max;

	if (p->engine != e)
		return soft_owner;
	ans = soft_resp_recv_ready(e, p, qp, r);
	if (unlikely(ans.kind != SOFT_ACK))
		return ans;

	wqe = p->rq + ((size_t)(p->rq_ci & ((1u << p->log_rq) - 1)) << p->log_rq_stride);
	max = RTE_MIN((1u << p->log_rq_stride) / BB_WQE_SEG, (uint32_t)SOFT_MAX_RX);
	for (i = 0; left != 0 && i < max; i++) {
		uint8_t s[BB_WQE_SEG];
		uint32_t count, lkey;
		uint64_t len;

		memcpy(s, wqe + (size_t)i * BB_WQE_SEG, sizeof(s));
		bb_dma_rmb();
		count = soft_be32(s);
		lkey = soft_be32(s + 4);
		if (count == 0 && lkey == BB_WQE_INVALID_LKEY)
			break;
		if (unlikely(count & BB_WQE_INLINE))
			return soft_resp_recv_fail(e, p, qp, r, BB_SYN_LOCAL_QP_OP,
						   "an entry of its list is marked inline");
		len = count == 0 ? BB_WQE_MAX_SGE_LEN : count;
		if (len > left)
			len = left;
		/* Only what is written is checked [A]. */
		e->rx[n].p = soft_mem_find(e, p->dev, lkey, p->pdn, soft_be64(s + 8), len,
					   SOFT_RIGHT_LOCAL_WRITE, &why);
		if (unlikely(e->rx[n].p == NULL))
			return soft_resp_recv_fail(e, p, qp, r, BB_SYN_LOCAL_PROT, why);
		e->rx[n++].len = len;
		left -= len;
	}
	if (unlikely(left != 0))
		return soft_resp_recv_fail(e, p, qp, r, BB_SYN_LOCAL_LENGTH,
					   "the receive's buffers are too small for the message");
	soft_mem_move(e, e->rx, r->piece, r->n);
	if (r->d.opcode == BB_WQE_SEND_IMM)
		return soft_resp_recv_done(e, p, qp, r, BB_CQE_RESP_SEND_IMM, r->imm);
	return soft_resp_recv_done(e, p, qp, r, BB_CQE_RESP_SEND, 0);
}

/* Write the payload as a defective device would. False: it was not defective this time. */
static bool
soft_write_defect(struct soft_engine *e, const struct soft_qp *p, const struct soft_req *r,
		  uint8_t *dst)
{
	const char *why;

	if (soft_defect(e, SOFT_DEFECT_LOSE_WRITE))
		return true;
	if (soft_defect(e, SOFT_DEFECT_FLIP_BIT)) {
		soft_mem_gather(e, dst, r->piece, r->n);
		dst[r->d.len / 2] ^= 0x10;
		return true;
	}
	if (soft_defect(e, SOFT_DEFECT_MISPLACE)) {
		/* Never outside the region: then the write is only 8 bytes early. */
		if (soft_mem_find(e, p->dev, r->rkey, p->pdn, r->raddr + 8, r->d.len,
				  SOFT_RIGHT_REMOTE_WRITE, &why) != NULL)
			soft_mem_gather(e, dst + 8, r->piece, r->n);
		else if (soft_mem_find(e, p->dev, r->rkey, p->pdn, r->raddr - 8, r->d.len,
				       SOFT_RIGHT_REMOTE_WRITE, &why) != NULL)
			soft_mem_gather(e, dst - 8, r->piece, r->n);
		return true;
	}
	return false;
}

static struct soft_answer
soft_resp_write(struct soft_engine *e, struct soft_qp *p, const struct soft_qp *qp,
		struct soft_req *r)
{
	bool imm = r->d.opcode == BB_WQE_RDMA_WRITE_IMM;
	struct soft_answer ans;
	uint8_t *dst = NULL;
	const char *why;

	if (unlikely(!__atomic_load_n(&p->rwe, __ATOMIC_RELAXED)))
		return soft_resp_refuse(e, p, qp, r, BB_SYN_REMOTE_INVAL_REQ,
					"the QP does not allow remote writes");
	/* The key of a message without payload is not looked at (IBTA vol. 1, 9.7.4.1.4). */
	if (r->d.len != 0) {
		dst = soft_mem_find(e, p->dev, r->rkey, p->pdn, r->raddr, r->d.len,
				    SOFT_RIGHT_REMOTE_WRITE, &why);
		if (unlikely(dst == NULL))
			return soft_resp_refuse(e, p, qp, r, BB_SYN_REMOTE_ACCESS, why);
	}
	if (imm) {
		if (p->engine != e)
			return soft_owner;
		ans = soft_resp_recv_ready(e, p, qp, r);
		if (ans.kind != SOFT_ACK)
			return ans;
	}
	if (likely(e->dev->opts.defect == SOFT_DEFECT_NONE) || dst == NULL ||
	    !soft_write_defect(e, p, r, dst)) {
		if (likely(r->n == 1))
			soft_mem_copy(e, dst, r->piece[0].p, r->piece[0].len);
		else
			soft_mem_gather(e, dst, r->piece, r->n);
	}
	soft_served_for(e, p);
	e->served_write++;
	if (imm)
		return soft_resp_recv_done(e, p, qp, r, BB_CQE_RESP_WR_IMM, r->imm);
	return soft_ack;
}

/* More READs and atomics under way than the responder has resources for? */
static bool
soft_resp_too_many(const struct soft_qp *p, const struct soft_req *r)
{
	return r->d.reads > 1u << p->log_rra_max;
}

static struct soft_answer
soft_resp_read(struct soft_engine *e, struct soft_qp *p, const struct soft_qp *qp,
	       struct soft_req *r)
{
	const char *why;
	uint8_t *src;

	if (unlikely(soft_resp_too_many(p, r)))
		return soft_resp_refuse(
			e, p, qp, r, BB_SYN_REMOTE_INVAL_REQ,
			"more READs and atomics under way than max_dest_rd_atomic: the "
			"peer's max_rd_atomic is too large");
	if (unlikely(!__atomic_load_n(&p->rre, __ATOMIC_RELAXED)))
		return soft_resp_refuse(e, p, qp, r, BB_SYN_REMOTE_INVAL_REQ,
					"the QP does not allow remote reads");
	if (r->d.len != 0) {
		src = soft_mem_find(e, p->dev, r->rkey, p->pdn, r->raddr, r->d.len,
				    SOFT_RIGHT_REMOTE_READ, &why);
		if (unlikely(src == NULL))
			return soft_resp_refuse(e, p, qp, r, BB_SYN_REMOTE_ACCESS, why);
		soft_mem_scatter(e, r->piece, r->n, src);
	}
	soft_served_for(e, p);
	e->served_read++;
	return soft_ack;
}

/* Returns what was there before. Memory and operands are in host order. */
static uint64_t
soft_atomic(struct soft_engine *e, const struct soft_req *r, uint64_t *at)
{
	uint64_t old = r->compare, new;

	if (unlikely(soft_defect(e, SOFT_DEFECT_ATOMIC_SPLIT))) {
		unsigned int spin;

		old = __atomic_load_n(at, __ATOMIC_RELAXED);
		for (spin = 0; spin < 1000; spin++)
			rte_pause();
		new = r->d.opcode == BB_WQE_ATOMIC_FA ? old + r->swap_add : r->swap_add;
		if (r->d.opcode == BB_WQE_ATOMIC_FA || old == r->compare)
			__atomic_store_n(at, new, __ATOMIC_RELAXED);
		return old;
	}
	if (r->d.opcode == BB_WQE_ATOMIC_FA) {
		old = __atomic_fetch_add(at, r->swap_add, __ATOMIC_SEQ_CST);
		new = old + r->swap_add;
	} else {
		new = __atomic_compare_exchange_n(at, &old, r->swap_add, false, __ATOMIC_SEQ_CST,
						  __ATOMIC_SEQ_CST)
			      ? r->swap_add
			      : old;
	}
	return unlikely(soft_defect(e, SOFT_DEFECT_ATOMIC_OLD)) ? new : old;
}

static struct soft_answer
soft_resp_atomic(struct soft_engine *e, struct soft_qp *p, const struct soft_qp *qp,
		 struct soft_req *r)
{
	struct soft_replay *replay;
	const char *why;
	uint64_t old;
	uint8_t *at;

	if (unlikely(soft_resp_too_many(p, r)))
		return soft_resp_refuse(
			e, p, qp, r, BB_SYN_REMOTE_INVAL_REQ,
			"more READs and atomics under way than max_dest_rd_atomic: the "
			"peer's max_rd_atomic is too large");
	if (unlikely(!__atomic_load_n(&p->rae, __ATOMIC_RELAXED) ||
		     __atomic_load_n(&p->atomic_mode, __ATOMIC_RELAXED) == 0))
		return soft_resp_refuse(e, p, qp, r, BB_SYN_REMOTE_INVAL_REQ,
					"the QP does not allow remote atomics");
	if (unlikely((r->raddr & 7) != 0))
		return soft_resp_refuse(e, p, qp, r, BB_SYN_REMOTE_INVAL_REQ,
					"an atomic's address is not a multiple of 8");
	at = soft_mem_find(e, p->dev, r->rkey, p->pdn, r->raddr, 8, SOFT_RIGHT_ATOMIC, &why);
	if (unlikely(at == NULL))
		return soft_resp_refuse(e, p, qp, r, BB_SYN_REMOTE_ACCESS, why);
	if (unlikely(((uintptr_t)at & 7) != 0))
		return soft_resp_refuse(e, p, qp, r, BB_SYN_REMOTE_INVAL_REQ,
					"an atomic's memory is not 8-byte aligned");
	old = soft_atomic(e, r, (uint64_t *)(void *)at);
	replay = &p->replay[p->replay_next++ % SOFT_REPLAYS];
	replay->old = old;
	replay->psn = r->d.psn;
	replay->valid = true;
	soft_mem_copy(e, r->piece[0].p, (const uint8_t *)&old, sizeof(old));
	soft_served_for(e, p);
	e->served_atomic++;
	return soft_ack;
}

static struct soft_answer
soft_resp_dispatch(struct soft_engine *e, struct soft_qp *p, const struct soft_qp *qp,
		   struct soft_req *r)
{
	switch (r->d.opcode) {
	case BB_WQE_RDMA_WRITE:
	case BB_WQE_RDMA_WRITE_IMM:
		return soft_resp_write(e, p, qp, r);
	case BB_WQE_RDMA_READ:
		return soft_resp_read(e, p, qp, r);
	case BB_WQE_ATOMIC_CS:
	case BB_WQE_ATOMIC_FA:
		return soft_resp_atomic(e, p, qp, r);
	default:
		return soft_resp_send(e, p, qp, r);
	}
}

/*
 * A PSN that is not the expected one. Behind it: a duplicate, acknowledged and not
 * executed; a READ is served again, an atomic replayed, if it is among the last ones.
 * Ahead of it: something was lost, as it seems.
 */
static struct soft_answer
soft_resp_out_of_order(struct soft_engine *e, struct soft_qp *p, const struct soft_qp *qp,
		       struct soft_req *r, uint32_t epsn)
{
	uint32_t behind = (epsn - r->d.psn) & SOFT_PSN_MASK, i;

	if (behind >= 0x800000) {
		SOFT_COUNT(p, out_of_sequence);
		return (struct soft_answer){.kind = SOFT_NAK_SEQ};
	}
	/* Its first packets are old and the next one is new: a middle without a first. */
	if (unlikely(r->d.packets > behind))
		return soft_resp_refuse(
			e, p, qp, r, BB_SYN_REMOTE_INVAL_REQ,
			"a message begins behind the expected PSN and ends beyond it");
	SOFT_COUNT(p, duplicate);
	switch (r->d.opcode) {
	case BB_WQE_RDMA_READ:
		return soft_resp_read(e, p, qp, r);
	case BB_WQE_ATOMIC_CS:
	case BB_WQE_ATOMIC_FA:
		for (i = 0; i < SOFT_REPLAYS; i++) {
			const struct soft_replay *o = &p->replay[i];

			if (!o->valid || o->psn != r->d.psn)
				continue;
			soft_mem_copy(e, r->piece[0].p, (const uint8_t *)&o->old, sizeof(o->old));
			return soft_ack;
		}
		return soft_silence;
	default:
		return soft_ack;
	}
}

struct soft_answer
soft_resp_execute(struct soft_engine *e, struct soft_qp *p, struct soft_qp *qp, struct soft_req *r)
{
	uint32_t epsn = __atomic_load_n(&p->epsn, __ATOMIC_RELAXED);
	struct soft_answer ans;

	/* Packets of a message are full but for the last; both sides must agree on how full. */
	if (unlikely(p->mtu != qp->mtu && r->d.len > RTE_MIN(p->mtu, qp->mtu)))
		return soft_resp_refuse(e, p, qp, r, BB_SYN_REMOTE_INVAL_REQ,
					"the two QPs have different path MTUs");
	if (unlikely(r->d.psn != epsn))
		return soft_resp_out_of_order(e, p, qp, r, epsn);
	ans = soft_resp_dispatch(e, p, qp, r);
	if (likely(ans.kind == SOFT_ACK))
		__atomic_store_n(&p->epsn, (epsn + r->d.packets) & SOFT_PSN_MASK, __ATOMIC_RELAXED);
	return ans;
}
