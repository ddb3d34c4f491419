/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Fast path: decodes plain RDMA WRITEs and SENDs in the ring, without a copy. Such a WQE takes one
 * block and has one SGE or inline data. With inline data it may take more blocks. WRITEs are
 * executed here, too. The fast path makes every check of soft_req.c and soft_resp.c, several in one
 * comparison. It leaves the first WQE that fails a check to soft_req_decode(), which reports the
 * reason.
 */
#ifndef SOFT_FAST_H
#define SOFT_FAST_H

#include "soft_access.h"
#include "soft_cqe.h"
#include "soft_resp.h"

/*
 * Reads a field of a WQE once, because software may change the ring at the same time. Each read has
 * the size of the write that stored the field. A load that spans two recent stores would stall
 * until both stores have left the core.
 */
static inline uint64_t
soft_ring64(const uint8_t *p)
{
	return __atomic_load_n((const uint64_t *)(const void *)p, __ATOMIC_RELAXED);
}

static inline uint32_t
soft_ring32(const uint8_t *p)
{
	return __atomic_load_n((const uint32_t *)(const void *)p, __ATOMIC_RELAXED);
}

struct soft_write {
	const uint8_t *src;
	uint64_t len;
	uint64_t raddr;
	uint32_t rkey;
	uint32_t blocks;
};

/*
 * Finds the payload of the WQE in block @b, which has @ds segments. The payload is one SGE or
 * inline data, and begins at offset @at of the block. Returns false if the fast path cannot execute
 * the WQE.
 */
static inline bool
soft_fast_data(struct soft_engine *e, const struct soft_qp *qp, const uint8_t *b, uint32_t at,
	       uint32_t ds, struct soft_write *w)
{
	uint32_t hdr = bb_be32(soft_ring32(b + at));

	if (hdr & BB_WQE_INLINE) {
		w->len = hdr & ~BB_WQE_INLINE;
		w->src = b + at + 4;
		if (unlikely(ds * BB_WQE_SEG !=
			     at + bb_wqe_inline_ds((uint32_t)w->len) * BB_WQE_SEG))
			return false;
	} else {
		if (ds * BB_WQE_SEG != at + BB_WQE_SEG || hdr == 0)
			return false;
		w->len = hdr;
		w->src = soft_mem_find(e, qp->dev, bb_be32(soft_ring32(b + at + 4)), qp->pdn,
				       bb_be64(soft_ring64(b + at + 8)), hdr, SOFT_RIGHT_LOCAL_READ,
				       &e->req.why);
		if (unlikely(w->src == NULL))
			return false;
	}
	return likely((w->len - 1) >> qp->log_msg_max == 0);
}

/*
 * Returns the number of blocks of a WQE of @ds segments at index @idx, or 0 if the fast path cannot
 * execute it. The ring has 2^@log_size blocks. A WQE of several blocks has only inline data, and
 * its blocks must be adjacent in memory. Not inlined, so that the code for WQEs of one block needs
 * fewer registers.
 */
static __rte_noinline __attribute__((cold, const)) uint32_t
soft_fast_blocks(uint32_t log_size, uint32_t idx, uint32_t ds, uint32_t left)
{
	const uint32_t size = 1u << log_size, blocks = (ds + 3) / 4;

	return ds - 5 <= BB_WQE_MAX_DS - 5 && blocks <= left && blocks <= size - (idx & (size - 1))
		       ? blocks
		       : 0;
}

/*
 * Decodes the WRITE at index @idx, which begins with block @b. From @b on, @left blocks are posted.
 * Returns false if the fast path cannot execute the WQE.
 */
static inline bool
soft_fast_decode(struct soft_engine *e, const struct soft_qp *qp, const uint8_t *b, uint16_t idx,
		 uint32_t left, struct soft_write *w)
{
	uint64_t head = soft_ring64(b);
	uint32_t ds;

	/*
	 * Checks that opmod is 0, the opcode is RDMA WRITE, index and QP number match, and the WQE
	 * has 3 segments or more.
	 */
	if ((uint32_t)head != bb_be32((uint32_t)idx << 8 | BB_WQE_RDMA_WRITE))
		return false;
	ds = bb_be32((uint32_t)(head >> 32)) ^ qp->qpn << 8;
	w->blocks = 1;
	if (unlikely(ds - 3 > 1)) {
		w->blocks = soft_fast_blocks(qp->log_sq, idx, ds, left);
		if (w->blocks == 0)
			return false;
	}
	if (unlikely(!soft_fast_data(e, qp, b, 32, ds, w)))
		return false;
	w->raddr = bb_be64(soft_ring64(b + 16));
	w->rkey = bb_be32(soft_ring32(b + 24));
	return true;
}

/*
 * Decodes a SEND without immediate data, as soft_fast_decode() decodes a WRITE. Returns the number
 * of its blocks, or 0 if the fast path cannot execute the WQE. Does not set w->blocks.
 */
static inline uint32_t
soft_fast_decode_send(struct soft_engine *e, const struct soft_qp *qp, const uint8_t *b,
		      uint16_t idx, struct soft_write *w)
{
	uint64_t head = soft_ring64(b);
	uint32_t ds, blocks = 1;

	if ((uint32_t)head != bb_be32((uint32_t)idx << 8 | BB_WQE_SEND))
		return 0;
	/* A WQE of one block has 2 to 4 segments: the control segment and one to three of data. */
	ds = bb_be32((uint32_t)(head >> 32)) ^ qp->qpn << 8;
	if (unlikely(ds - 2 > 2)) {
		blocks = soft_fast_blocks(qp->log_sq, idx, ds, (uint16_t)(qp->sq_pi - idx));
		if (blocks == 0)
			return 0;
	}
	return soft_fast_data(e, qp, b, 16, ds, w) ? blocks : 0;
}

/* ---- RDMA WRITEs, executed from the ring */

/* A pass of the fast path over consecutive WQEs. */
struct soft_fast_run {
	struct soft_qp *peer;
	uint32_t psn, done;
	uint32_t limit; /* the pass ends after this number of WQEs */
	uint16_t ci;
	bool alive; /* false after the CQ has overrun */
};

/*
 * Starts a pass over at most @limit consecutive WQEs. The checks made here stay valid for the whole
 * pass, because the caller holds the engine's lock until its end. Returns false if the fast path
 * cannot execute WQEs of this QP.
 */
static __rte_always_inline bool
soft_fast_begin(struct soft_fast_run *r, struct soft_qp *qp, uint32_t limit)
{
	struct soft_qp *p = soft_resp_find_rts(qp);

	*r = (struct soft_fast_run){
		.peer = p,
		.psn = qp->sq_psn,
		.limit = limit,
		.ci = qp->sq_ci,
		.alive = true,
	};
	return likely(p != NULL && p->mtu == qp->mtu &&
		      __atomic_load_n(&p->rwe, __ATOMIC_RELAXED) &&
		      __atomic_load_n(&p->epsn, __ATOMIC_RELAXED) == r->psn);
}

/*
 * Adds a message of @len bytes to the pass. The pass ends with this message if it uses up the
 * packets of the engine's turn.
 */
static __rte_always_inline void
soft_fast_count(const struct soft_engine *e, struct soft_fast_run *r, const struct soft_qp *qp,
		uint64_t len)
{
	r->psn++;
	if (unlikely(len > qp->mtu)) {
		r->psn += (uint32_t)((len - 1) >> __builtin_ctz(qp->mtu));
		if (r->psn - qp->sq_psn >= e->packets_left)
			r->limit = r->done + 1;
	}
}

/*
 * Executes the WQE at r->ci, in block @b; @left blocks are posted. Returns the number of blocks of
 * the WQE, or 0 if the fast path cannot execute it.
 */
static __rte_always_inline uint32_t
soft_fast_one(struct soft_engine *e, struct soft_fast_run *r, struct soft_qp *qp, const uint8_t *b,
	      uint32_t left)
{
	uint8_t fm_ce_se = __atomic_load_n(&b[11], __ATOMIC_RELAXED), *dst;
	struct soft_qp *p = r->peer;
	struct soft_write w;

	if (unlikely(!soft_fast_decode(e, qp, b, r->ci, left, &w)))
		return 0;
	dst = soft_mem_find(e, p->dev, w.rkey, p->pdn, w.raddr, w.len, SOFT_RIGHT_REMOTE_WRITE,
			    &e->req.why);
	if (unlikely(dst == NULL))
		return 0;
	/* After a fence soft_req.c counts outstanding READs and atomics from 0 again. */
	if (unlikely(fm_ce_se >> 5 >= 2))
		qp->reads_in_burst = 0;
	soft_mem_copy(e, dst, w.src, w.len);
	/* The payload of this WQE must become visible before that of the next WQE. */
	bb_dma_wmb();
	soft_fast_count(e, r, qp, w.len);
	if (fm_ce_se & BB_WQE_CE_CQE)
		r->alive = soft_cqe_write(e, qp, qp->scq, bb_be32(qp->user_index), 0, 0,
					  BB_WQE_RDMA_WRITE, r->ci, BB_CQE_REQ << 4);
	r->ci = (uint16_t)(r->ci + w.blocks);
	r->done++;
	return w.blocks;
}

/*
 * Ends a pass over consecutive WQEs, of which @writes were WRITEs and @reads READs. Returns the
 * number of WQEs executed.
 */
static __rte_always_inline uint32_t
soft_fast_end(struct soft_engine *e, const struct soft_fast_run *r, struct soft_qp *qp,
	      uint32_t writes, uint32_t reads)
{
	if (unlikely(r->done == 0))
		return 0;
	qp->sq_ci = r->ci;
	e->packets_left -= r->psn - qp->sq_psn;
	qp->sq_psn = r->psn & SOFT_PSN_MASK;
	__atomic_store_n(&r->peer->epsn, r->psn & SOFT_PSN_MASK, __ATOMIC_RELAXED);
	qp->retries_left = qp->retry_count;
	qp->rnr_left = qp->rnr_retry;
	soft_served_for(e, r->peer);
	e->served_write += writes;
	e->served_read += reads;
	if (unlikely(!r->alive))
		soft_qp_fail(qp, BB_PRM_EVENT_WQ_CATAS_ERROR);
	return r->done;
}

/* ---- soft_req_more.c */
/*
 * Executes at most @budget READs and SENDs from the head of the queue on the fast path. Returns the
 * number of WQEs executed.
 */
uint32_t soft_req_more(struct soft_engine *e, struct soft_qp *qp, uint32_t budget);

#endif
