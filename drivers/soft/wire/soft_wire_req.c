/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The requester's half of a QP that sends packets. It turns WQEs into messages. For the RoCEv2
 * engine it reads and writes the memory that WQEs name.
 *
 * A WQE without a message (NOP, UMR) and a rejected WQE wait until all earlier WQEs are complete,
 * because completions must come in the order of posting.
 */
#include "soft_wire.h"

#include "soft_access.h"
#include "soft_resp.h"
#include "soft_ud.h"

/* ---- WQEs that become messages */

/* Sets *kind to the message type of a WQE. Returns false if the WQE has no message. */
static bool
soft_wire_kind(uint8_t opcode, uint8_t *kind)
{
	switch (opcode) {
	case BB_WQE_SEND:
		*kind = BB_ROCE_MSG_SEND;
		return true;
	case BB_WQE_SEND_IMM:
		*kind = BB_ROCE_MSG_SEND_IMM;
		return true;
	case BB_WQE_SEND_INV:
		*kind = BB_ROCE_MSG_SEND_INV;
		return true;
	case BB_WQE_RDMA_WRITE:
		*kind = BB_ROCE_MSG_WRITE;
		return true;
	case BB_WQE_RDMA_WRITE_IMM:
		*kind = BB_ROCE_MSG_WRITE_IMM;
		return true;
	case BB_WQE_RDMA_READ:
		*kind = BB_ROCE_MSG_READ;
		return true;
	case BB_WQE_ATOMIC_CS:
		*kind = BB_ROCE_MSG_CMP_SWAP;
		return true;
	case BB_WQE_ATOMIC_FA:
		*kind = BB_ROCE_MSG_FETCH_ADD;
		return true;
	default:
		return false;
	}
}

/*
 * Completes the WQE at the head of the queue, which has no message. Returns false if another engine
 * uses the key of the UMR; the caller tries again later.
 */
static bool
soft_wire_local(struct soft_engine *e, struct soft_wire *w, struct soft_req *r, uint8_t synd)
{
	struct soft_qp *qp = w->qp;

	if (synd == 0 && r->d.opcode == BB_WQE_UMR) {
		/* All earlier WQEs are complete, so this engine no longer uses the key. */
		soft_keys_done(e);
		synd = soft_umr_execute(qp, r);
		if (synd == SOFT_SYN_AGAIN)
			return false;
	}
	w->sq_next = (uint16_t)(w->sq_next + r->d.blocks);
	r->d.packets = 0;
	if (synd == 0)
		soft_req_done(e, qp, &r->d);
	else
		soft_req_fail(e, qp, &r->d, synd, r->why);
	return true;
}

/*
 * Caches the payload's address for the usual case, a send in the same turn. Copies inline data,
 * because the next WQE overwrites r->wqe.
 */
static inline void
soft_wire_cache_payload(const struct soft_engine *e, struct soft_wire *w, const struct soft_req *r,
			uint32_t slot)
{
	struct soft_wire_frag *keep = &w->frag[slot];
	uintptr_t at;

	keep->turn = 0;
	if (unlikely(r->n != 1 || e->n_held != 0))
		return;
	at = (uintptr_t)r->frag[0].p - (uintptr_t)r->wqe;
	keep->frag = r->frag[0];
	if (at < sizeof(r->wqe)) {
		if (keep->frag.len > SOFT_WIRE_INLINE || at > sizeof(r->wqe) - SOFT_WIRE_INLINE)
			return;
		/* The length is constant, so the compiler emits a few moves instead of a call. */
		memcpy(w->inl[slot], keep->frag.p, SOFT_WIRE_INLINE);
		keep->frag.p = w->inl[slot];
	}
	keep->turn = e->turn;
}

/*
 * Posts the message of a WQE to the RoCEv2 engine. Returns false if the RoCEv2 engine rejects the
 * message.
 */
static bool
soft_wire_post_msg(const struct soft_engine *e, struct soft_wire *w, const struct soft_req *r,
		   uint8_t kind)
{
	uint32_t slot = w->roce.req.head % SOFT_WIRE_SLOTS;
	struct bb_roce_msg msg = {
		.cookie = slot,
		.kind = kind,
		.flags = (uint8_t)(((r->d.fm_ce_se & BB_WQE_SE) != 0 ? BB_ROCE_SOLICITED : 0) |
				   (r->d.fm_ce_se >> 5 >= 2 ? BB_ROCE_FENCE : 0)),
		.len = (uint32_t)r->d.len,
		.imm = kind == BB_ROCE_MSG_SEND_INV ? bb_be32(r->imm) : r->imm,
		.rkey = r->rkey,
		.raddr = r->raddr,
		.swap_add = r->swap_add,
		.compare = r->compare,
	};

	if (w->qp->st == BB_PRM_QP_ST_UD) {
		soft_wire_ud_dest(w->qp, r, &msg, &w->dest[slot]);
		msg.net = &w->dest[slot].net;
	}
	w->done[slot] = r->d;
	soft_wire_cache_payload(e, w, r, slot);
	if (bb_roce_post(&w->roce, &msg) != 0)
		return false;
	w->sq_next = (uint16_t)(w->sq_next + r->d.blocks);
	return true;
}

void
soft_wire_post(struct soft_engine *e, struct soft_wire *w)
{
	struct soft_qp *qp = w->qp;
	struct soft_req *r = &e->req;

	if (unlikely(w->waits) && w->sq_next != qp->sq_ci)
		return;
	w->waits = false;
	while (qp->state == BB_PRM_QP_RTS && w->sq_next != qp->sq_pi &&
	       w->roce.req.head - w->roce.req.tail < SOFT_WIRE_SLOTS &&
	       likely(e->packets_left > 0)) {
		uint16_t left = (uint16_t)(qp->sq_pi - w->sq_next);
		uint8_t kind = 0, synd;

		e->packets_left--;
		e->decoded = NULL;
		synd = soft_req_decode(e, r, qp, w->sq_next, left);
		if (unlikely(synd != 0) && soft_req_faulted(e, qp, &r->d, synd)) {
			w->parked = true;
			return;
		}
		if (likely(synd == 0))
			soft_umr_pass(qp, &r->d);
		if (likely(synd == 0 && soft_wire_kind(r->d.opcode, &kind) &&
			   soft_wire_post_msg(e, w, r, kind)))
			continue;
		if (synd == 0 && r->d.opcode != BB_WQE_NOP && r->d.opcode != BB_WQE_UMR) {
			synd = BB_SYN_LOCAL_QP_OP;
			r->why = "RoCE has no packets for this operation";
		}
		w->waits = w->sq_next != qp->sq_ci;
		/*
		 * If soft_wire_local() returns false, another engine uses the key. The QP's next
		 * turn tries again.
		 */
		if (w->waits || !soft_wire_local(e, w, r, synd))
			return;
	}
	/*
	 * Every WQE that was posted when the UMR was executed is now in flight, so later WQEs need
	 * no fence.
	 */
	if (w->sq_next == qp->sq_pi)
		qp->umr_index = 0;
}

/* ---- Payload of requests */

/* Number of packets to send whose fragments soft_wire_decode() finds at a time. */
#define DECODE_PACKETS 4u

static const char *
soft_wire_text(const struct soft_engine *e, uint8_t status)
{
	switch (status) {
	case BB_SYN_REMOTE_INVAL_REQ:
	case BB_SYN_REMOTE_ACCESS:
	case BB_SYN_REMOTE_OP:
		return soft_nak_text(status);
	case BB_SYN_RETRY_EXC:
		return "the peer did not acknowledge the request: check that the peer is "
		       "reachable, and that its QP is in RTR or RTS with the number and PSN of "
		       "this QP";
	case BB_SYN_RNR_RETRY_EXC:
		return "the peer posted no receive before the RNR retries ran out";
	case BB_SYN_BAD_RESP:
		return "the peer's response does not match the request";
	default:
		return e->req.why;
	}
}

/*
 * Decodes the WQE of a message to e->req, at least for its bytes [*off, *off + @len). If a key is
 * indirect, finds the fragments of @most bytes at most, because a message may have very many.
 * Changes *off to the offset in the fragments. Returns 0, a syndrome, or BB_ROCE_TRY_AGAIN if a
 * page of an RC or UD message is missing.
 */
static uint8_t
soft_wire_decode(struct soft_engine *e, struct soft_wire *w, const struct bb_roce_msg *msg,
		 uint32_t *off, uint32_t len, uint32_t most)
{
	const struct soft_done *d = &w->done[msg->cookie];
	const uint64_t from = *off, to = from + most;
	struct soft_req *r = &e->req;
	bool whole;
	uint8_t synd;

	if (e->decoded == w->qp && r->d.idx == d->idx && from >= e->decoded_from &&
	    from + len <= e->decoded_to) {
		*off -= (uint32_t)e->decoded_from;
		return 0;
	}
	e->decoded = NULL;
	r->from = from;
	r->to = to;
	synd = soft_req_decode(e, r, w->qp, d->idx, d->blocks);
	r->from = 0;
	r->to = UINT64_MAX;
	if (unlikely(synd != 0) && w->qp->st != BB_PRM_QP_ST_UC &&
	    soft_req_faulted(e, w->qp, d, synd)) {
		w->parked = w->qp->st == BB_PRM_QP_ST_UD;
		return BB_ROCE_TRY_AGAIN;
	}
	if (synd == 0 && (r->d.opcode != d->opcode || r->d.len != d->len)) {
		r->why = "the application changed the WQE before its completion";
		synd = BB_SYN_LOCAL_QP_OP;
	}
	if (synd != 0)
		return synd;
	whole = r->frag == r->own;
	e->decoded = w->qp;
	e->decoded_from = whole ? 0 : from;
	e->decoded_to = whole ? UINT64_MAX : to;
	*off -= (uint32_t)e->decoded_from;
	return 0;
}

int
soft_wire_gather(void *ctx, struct bb_roce_qp *roce, const struct bb_roce_msg *msg, uint32_t off,
		 uint32_t len, struct bb_roce_iov iov[BB_ROCE_MAX_IOV])
{
	struct soft_wire *w = soft_wire_of(roce);
	struct soft_engine *e = w->qp->engine;
	const struct soft_wire_frag *known = &w->frag[msg->cookie];
	struct soft_frag part[BB_ROCE_MAX_IOV];
	uint32_t n, i;
	uint8_t synd;

	(void)ctx;
	if (likely(known->turn == e->turn)) {
		iov[0] = (struct bb_roce_iov){.p = known->frag.p + off, .len = len};
		return 1;
	}
	synd = soft_wire_decode(e, w, msg, &off, len, DECODE_PACKETS * w->qp->mtu);
	if (unlikely(synd != 0))
		return -synd;
	n = soft_frags_part(e->req.frag, e->req.n, off, len, part, RTE_DIM(part));
	if (unlikely(n > RTE_DIM(part))) {
		soft_frags_copy_out(e->bounce, e->req.frag, e->req.n, off, len);
		iov[0] = (struct bb_roce_iov){.p = e->bounce, .len = len};
		return 1;
	}
	for (i = 0; i < n; i++)
		iov[i] = (struct bb_roce_iov){.p = part[i].p, .len = (uint32_t)part[i].len};
	return (int)n;
}

uint8_t
soft_wire_place(void *ctx, struct bb_roce_qp *roce, const struct bb_roce_msg *msg, uint32_t off,
		const uint8_t *data, uint32_t len)
{
	struct soft_wire *w = soft_wire_of(roce);
	struct soft_engine *e = w->qp->engine;
	uint8_t synd = soft_wire_decode(e, w, msg, &off, len, len);

	(void)ctx;
	if (unlikely(synd != 0))
		return synd;
	/*
	 * A message whose data goes into the CQE has only one packet, so @data is the whole data.
	 */
	if (soft_resp_to_cqe(w->qp, &e->req)) {
		memcpy(w->qp->cs_data, data, len);
		w->qp->cs_len = (uint8_t)len;
		return 0;
	}
	soft_frags_copy_in(e, e->req.frag, e->req.n, off, data, len);
	return 0;
}

uint8_t
soft_wire_atomic_result(void *ctx, struct bb_roce_qp *roce, const struct bb_roce_msg *msg,
			uint64_t orig)
{
	return soft_wire_place(ctx, roce, msg, 0, (const uint8_t *)&orig, sizeof(orig));
}

void
soft_wire_complete(void *ctx, struct bb_roce_qp *roce, const struct bb_roce_msg *msg,
		   uint8_t status)
{
	struct soft_wire *w = soft_wire_of(roce);
	const struct soft_done *d = &w->done[msg->cookie];

	(void)ctx;
	/* The QP has failed meanwhile, and the flush has already completed this WQE. */
	if (w->qp->state != BB_PRM_QP_RTS)
		return;
	if (status == 0)
		soft_req_done(w->qp->engine, w->qp, d);
	else
		soft_req_fail(w->qp->engine, w->qp, d, status,
			      soft_wire_text(w->qp->engine, status));
}

/*
 * Advances the queue only at the WQEs with a CQE and at the last WQE, because the completion of
 * other WQEs is not visible.
 */
void
soft_wire_complete_run(void *ctx, struct bb_roce_qp *roce, uint32_t n)
{
	const struct bb_roce_req *req = &roce->req;
	struct soft_wire *w = soft_wire_of(roce);
	struct soft_qp *qp = w->qp;
	uint32_t i;

	(void)ctx;
	for (i = 0; i < n; i++) {
		const struct soft_done *d = &w->done[req->ring[(req->tail + i) & req->mask].cookie];

		if (i + 1 != n && (d->fm_ce_se & BB_WQE_CE_CQE) == 0)
			continue;
		/* If the QP has failed meanwhile, the flush completes this WQE and all later ones.
		 */
		if (qp->state != BB_PRM_QP_RTS)
			return;
		qp->sq_ci = d->idx;
		soft_req_done(qp->engine, qp, d);
	}
}
