/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Fast path of RDMA READs and SENDs on the loop port, which copies memory and sends no packets. It
 * executes a WQE from the ring, without a copy of the WQE, if the WQE meets these conditions:
 *
 * - A READ has one SGE.
 * - A SEND has one SGE or inline data, and fits into the first SGE of the next receive.
 * - The WQE passes every check of soft_req.c, soft_resp.c and soft_resp_recv.c.
 *
 * The fast path leaves the first WQE that does not meet them to soft_req_decode(), before any state
 * has changed.
 */
#include "soft_recv_fast.h"

/* State of a pass over consecutive WQEs, and the counts of soft_req_reads(). */
struct run {
	struct soft_fast_run r;
	uint32_t reads;          /* READs executed */
	uint32_t reads_in_burst; /* new value of qp->reads_in_burst */
	bool fenced;             /* the payloads of earlier WRITEs and SENDs are visible */
};

/*
 * Starts a pass over at most @limit consecutive WQEs. Returns false if the fast path cannot execute
 * WQEs of this QP.
 */
static bool
begin(struct run *u, struct soft_qp *qp, uint32_t limit)
{
	struct soft_qp *p = soft_resp_find_rts(qp);

	*u = (struct run){
		.r = {.peer = p, .psn = qp->sq_psn, .limit = limit, .ci = qp->sq_ci, .alive = true},
		.reads_in_burst = qp->reads_in_burst,
	};
	return likely(p != NULL && p != qp && qp->st == BB_PRM_QP_ST_RC && p->mtu == qp->mtu &&
		      __atomic_load_n(&p->epsn, __ATOMIC_RELAXED) == u->r.psn);
}

/*
 * Executes a READ, whose WQE has @ds segments. Returns the length of the payload, or 0 if the fast
 * path cannot execute the WQE.
 */
static inline uint32_t
read_one(struct soft_engine *e, struct run *u, const struct soft_qp *qp, const uint8_t *b,
	 uint32_t ds)
{
	const struct soft_qp *p = u->r.peer;
	uint32_t len = bb_be32(soft_ring32(b + 32)), burst = u->reads_in_burst;
	const uint8_t *src;
	const char *why;
	uint8_t *dst;

	/* In a data segment, length 0 means 2 GiB, and the top bit marks inline data. */
	if (ds != 3 || len == 0 || len >> 31 != 0 || (len - 1) >> qp->log_msg_max != 0 ||
	    qp->cs_req)
		return 0;
	if (burst < 1u << qp->log_sra_max)
		burst++;
	if (burst > 1u << p->log_rra_max || !__atomic_load_n(&p->rre, __ATOMIC_RELAXED))
		return 0;
	dst = soft_mem_find(e, qp->dev, bb_be32(soft_ring32(b + 36)), qp->pdn,
			    bb_be64(soft_ring64(b + 40)), len, SOFT_RIGHT_LOCAL_WRITE, &why);
	if (unlikely(dst == NULL))
		return 0;
	src = soft_mem_find(e, p->dev, bb_be32(soft_ring32(b + 24)), p->pdn,
			    bb_be64(soft_ring64(b + 16)), len, SOFT_RIGHT_REMOTE_READ, &why);
	if (unlikely(src == NULL))
		return 0;
	/* A READ does not pass an earlier WRITE, SEND or atomic of the QP. */
	if (unlikely(!u->fenced)) {
		bb_smp_mb();
		u->fenced = true;
	}
	soft_mem_copy(e, dst, src, len);
	u->reads_in_burst = burst;
	u->reads++;
	return len;
}

/*
 * Executes a SEND. Returns the length of the message, or 0 if the fast path cannot execute the WQE.
 * Sets *blocks to the number of its blocks.
 */
static inline uint32_t
send_one(struct soft_engine *e, struct run *u, const struct soft_qp *qp, const uint8_t *b,
	 uint8_t fm_ce_se, uint32_t *blocks)
{
	struct soft_qp *p = u->r.peer;
	const uint8_t *list;
	struct soft_write w = {.src = NULL};
	uint8_t *dst;

	/* The receive queue belongs to the peer's engine. */
	if (unlikely(p->engine != e))
		return 0;
	*blocks = soft_fast_decode_send(e, qp, b, u->r.ci, &w);
	if (unlikely(*blocks == 0))
		return 0;
	list = soft_recv_next(p);
	if (unlikely(list == NULL))
		return 0;
	dst = soft_recv_addr(e, p, list, (uint32_t)w.len);
	if (unlikely(dst == NULL))
		return 0;
	soft_mem_copy(e, dst, w.src, w.len);
	u->fenced = false;
	/* The CQ has room, so this call cannot fail. */
	(void)soft_recv_complete(e, p, BB_CQE_RESP_SEND, (fm_ce_se & BB_WQE_SE) != 0, 0,
				 (uint32_t)w.len);
	return (uint32_t)w.len;
}

/* Executes the WQE at u->r.ci, in block @b. Returns false if the fast path cannot execute it. */
static inline bool
one(struct soft_engine *e, struct run *u, struct soft_qp *qp, const uint8_t *b)
{
	const uint8_t fm_ce_se = __atomic_load_n(&b[11], __ATOMIC_RELAXED);
	const uint64_t head = soft_ring64(b);
	const uint32_t op = bb_be32((uint32_t)head) ^ (uint32_t)u->r.ci << 8;
	const uint32_t before = u->reads_in_burst;
	uint32_t blocks = 1, len;

	/* After a fence soft_req_reads() counts outstanding READs and atomics from 0 again. */
	if (unlikely(fm_ce_se >> 5 >= 2))
		u->reads_in_burst = 0;
	if (op == BB_WQE_RDMA_READ)
		len = read_one(e, u, qp, b, bb_be32((uint32_t)(head >> 32)) ^ qp->qpn << 8);
	else if (op == BB_WQE_SEND)
		len = send_one(e, u, qp, b, fm_ce_se, &blocks);
	else
		len = 0;
	if (unlikely(len == 0)) {
		u->reads_in_burst = before;
		return false;
	}
	/* The payload of this WQE must become visible before that of the next WQE. */
	bb_dma_wmb();
	soft_fast_count(e, &u->r, qp, len);
	if (fm_ce_se & BB_WQE_CE_CQE)
		u->r.alive = soft_cqe_write(e, qp, qp->scq, bb_be32(qp->user_index),
					    op == BB_WQE_RDMA_READ ? soft_pair(0, bb_be32(len)) : 0,
					    0, (uint8_t)op, u->r.ci, BB_CQE_REQ << 4);
	u->r.ci = (uint16_t)(u->r.ci + blocks);
	u->r.done++;
	return true;
}

uint32_t
soft_req_more(struct soft_engine *e, struct soft_qp *qp, uint32_t budget)
{
	const uint32_t mask = (1u << qp->log_sq) - 1;
	struct run u;

	if (unlikely(!begin(&u, qp, budget)))
		return 0;
	while (u.r.ci != qp->sq_pi && u.r.done < u.r.limit && likely(u.r.alive) &&
	       likely(one(e, &u, qp, qp->sq + ((size_t)(u.r.ci & mask) << 6))))
		;
	qp->reads_in_burst = u.reads_in_burst;
	return soft_fast_end(e, &u.r, qp, 0, u.reads);
}
