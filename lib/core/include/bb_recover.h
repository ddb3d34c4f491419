/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Drain a send queue, and recover a queue pair after an error.
 *
 * Only the owner may call these functions: the thread that posts to the QP and polls its CQs.
 */
#ifndef BB_RECOVER_H
#define BB_RECOVER_H

#include "bb_qp.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Returns true if every send is known to be complete. Does not cover receives. */
static inline bool
bb_qp_drained(const struct bb_qp *qp)
{
	return qp->sq.seq == qp->sq.done;
}

/**
 * Makes the last sends complete, as SQD does on other devices. Rings all posted sends. If the last
 * send asks for no CQE, posts a NOP that does; its completion is never reported, even if it is
 * flushed. Never waits: while the call returns -EAGAIN, poll the send CQ and call again.
 * @return 0 drained; -EAGAIN not yet; -ENOTCONN the QP is neither in RTS nor in ERR.
 */
int bb_qp_drain(struct bb_qp *qp);

/** Fate of a request. */
enum bb_wr_fate {
	/** Completed successfully; the peer has acknowledged an RC send. */
	BB_WR_DONE,
	/** Failed; wc.status has the reason. The peer may have received a part of a WRITE. */
	BB_WR_FAILED,
	/** Not executed at all, neither at the peer nor in local memory: post it again. */
	BB_WR_NOT_DONE,
	/** In flight at the error: the peer may have executed all of it, a part, or nothing. */
	BB_WR_UNKNOWN,
};

/** Returns the name of a fate: "not done". */
const char *bb_wr_fate_name(enum bb_wr_fate fate);

/** A request that was outstanding when bb_qp_recover() was called, and its fate. */
struct bb_wr_end {
	struct bb_wc wc; /**< completion as a poll would return it, also for an unsignalled send */
	enum bb_wr_fate fate;
	bool recv; /**< true for a receive; its NOT_DONE means that no message used it */
};

/** Input and output of bb_qp_recover(): the application's array, and the reports written to it. */
struct bb_qp_recovery {
	uint32_t size;          /**< bytes of the caller's struct; set by bb_qp_recover() */
	struct bb_wr_end *ends; /**< the caller's array; sends are in the order of their posts, and
				 * so are receives */
	uint32_t max;           /**< entries of the array. Sufficient: sq_depth + rq_depth, with an
				 * SRQ sq_depth + the SRQ's depth */
	uint32_t n;             /**< entries written */
	/** Fate of the requests whose flush errors the application polled before this call. */
	enum bb_wr_fate flushed;
};

/** Use bb_qp_recover(). */
int bb_qp_recover_v(struct bb_qp *qp, const struct bb_qp_addr *local,
		    const struct bb_qp_addr *remote, const struct bb_qp_attr *attr,
		    struct bb_qp_recovery *recovery);

/**
 * Recovers a QP. Moves it to ERR, collects the fates of requests that no poll has reported, and
 * moves it to RESET. With @p remote it then connects the QP as bb_qp_connect() does. Completions of
 * other QPs stay in the CQs. The peer's QP must be recovered too. First exchange new bb_qp_addr()
 * (the QP number stays, GID and PSN may change), then call this on both peers.
 *
 * Rules for fates. Sends complete in order, so all sends before the failed one are DONE. After an
 * error of the request itself, or a NAK of the peer, no later send was executed: NOT_DONE (IBTA
 * vol. 1, 9.9.3: the responder executes nothing after it). If no response of the peer arrived
 * (retries exceeded), the failed send and later ones may have been executed: later sends are
 * UNKNOWN. The same holds if the QP was moved to ERR for another reason. A send that was never rung
 * is NOT_DONE.
 *
 * Cost: control path; milliseconds on a card [A], up to a second when the device is stuck. With @p
 * remote it may wait for a neighbour, as bb_qp_connect() does; bb_conn_recover() does not.
 * @param remote the peer's address; NULL: leave the QP in RESET, @p local and @p attr are ignored.
 * @param attr as for bb_qp_connect(); NULL: rights, retries and path as set before. A QP in RESET
 * has lost them, so it needs @p attr.
 * @return 0; -ENOSPC more than recovery->max requests: the entries written are final, the QP is in
 * ERR, call again for the rest; -EBUSY a connection owns the QP: use bb_conn_recover(); otherwise
 * as bb_qp_connect(). The QP is then in RESET or ERR, and the entries are valid.
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
