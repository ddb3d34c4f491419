/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Drain a send queue, and bring a queue pair back after an error.
 *
 * All calls are the owner's: the thread that posts to the QP and polls its CQs.
 */
#ifndef BB_RECOVER_H
#define BB_RECOVER_H

#include "bb_qp.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Is every send known complete? Says nothing of the receives. */
static inline bool
bb_qp_drained(const struct bb_qp *qp)
{
	return qp->sq.seq == qp->sq.done;
}

/**
 * Get the last sends to complete: what SQD does on other devices. Rings what is not
 * rung, and when the last send asks for no CQE posts a NOP that does; its completion is
 * not reported, not even if it is flushed. Never waits: poll the send CQ, and call again while it
 * returns -EAGAIN.
 * @return 0 drained; -EAGAIN not yet; -ENOTCONN the QP is neither in RTS nor in ERR.
 */
int bb_qp_drain(struct bb_qp *qp);

/** What became of a request. */
enum bb_wr_fate {
	/** It completed with success; of an RC send the peer has acknowledged it. */
	BB_WR_DONE,
	/** It failed, and wc.status says how. The peer may have seen a part of a WRITE. */
	BB_WR_FAILED,
	/** Neither the peer nor local memory has seen anything of it: post it again. */
	BB_WR_NOT_DONE,
	/** It was under way: the peer may have carried it out, whole, in part or not. */
	BB_WR_UNKNOWN,
};

/** Name of a fate: "not done". */
const char *bb_wr_fate_name(enum bb_wr_fate fate);

/** A request that bb_qp_recover() gave up, or found complete. */
struct bb_wr_end {
	struct bb_wc wc; /**< as a poll would give it; unsignalled sends too */
	enum bb_wr_fate fate;
	bool recv; /**< a receive; NOT_DONE is then one that no message has reached */
};

/** In: where to report. Out: what became of the requests. */
struct bb_qp_recovery {
	uint32_t size;          /**< bytes of the caller's struct; set by bb_qp_recover() */
	struct bb_wr_end *ends; /**< the caller's array; sends in their order, receives in theirs */
	uint32_t max;           /**< its entries; sq_depth + rq_depth is always enough, with an SRQ
				 *   sq_depth and the SRQ's depth */
	uint32_t n;             /**< entries written */
	/** What the flush errors mean that the application polled before this call. */
	enum bb_wr_fate flushed;
};

/** Use bb_qp_recover(). */
int bb_qp_recover_v(struct bb_qp *qp, const struct bb_qp_addr *local,
		    const struct bb_qp_addr *remote, const struct bb_qp_attr *attr,
		    struct bb_qp_recovery *recovery);

/**
 * Bring a QP back: to ERR, collect what became of every request that no poll has
 * reported yet, to RESET and, with @p remote, to RTS as bb_qp_connect() does. Completions
 * of other QPs stay in the CQs. The peer's QP needs a new beginning, too: exchange
 * fresh bb_qp_addr() first (the QP number stays, GIDs and PSN may not), then call it on both sides.
 *
 * How fates are told. Sends complete in their order, so all in front of the failed one are
 * DONE. Behind an error of the request itself or a NAK of the peer nothing was carried out:
 * NOT_DONE (IBTA vol. 1, 9.9.3: the responder executes nothing behind it).
 * Behind a lost answer (retries exceeded), or when the QP was moved to ERR for
 * another reason, the rest may have been under way: UNKNOWN. What was never rung is NOT_DONE.
 *
 * Cost: control path; milliseconds on a card [A], up to a second when it is stuck. With @p remote
 * it may wait for a neighbour, as bb_qp_connect(); bb_conn_recover() does not.
 * @param remote NULL: leave the QP in RESET; @p local and @p attr are not used then.
 * @param attr as for bb_qp_connect(); NULL: rights, retries and path as set before; not from RESET,
 *   which forgets them.
 * @return 0; -ENOSPC more than recovery->max requests: the entries written are final, the
 *   QP is in ERR, call again for the rest; -EBUSY a connection owns the QP: bb_conn_recover(); else
 * as bb_qp_connect(), the QP is in RESET or ERR then, and the entries are valid.
 */
static inline int
bb_qp_recover(struct bb_qp *qp, const struct bb_qp_addr *local, const struct bb_qp_addr *remote,
	      const struct bb_qp_attr *attr, struct bb_qp_recovery *recovery)
{
	if (recovery != NULL)
		recovery->size = sizeof(*recovery);
	return bb_qp_recover_v(qp, local, remote, attr, recovery);
}

#ifdef __cplusplus
}
#endif

#endif
