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

/** Returns true if every send is known to be complete. Receives have no effect on the result. */
static inline bool
bb_qp_drained(const struct bb_qp *qp)
{
	return qp->sq.seq == qp->sq.done;
}

/**
 * Drains the send queue, which is the purpose of state SQD in verbs. The call rings all posted
 * sends. If the last send asks for no CQE, the call posts a NOP that asks for one. No poll reports
 * the completion of this NOP, even if the NOP is flushed. The call never waits, so while it returns
 * -EAGAIN, poll the send CQ and call again.
 * @return 0 if every send is complete; -EAGAIN if sends are outstanding; -ENOTCONN if the QP is
 * neither in RTS nor in ERR.
 */
int bb_qp_drain(struct bb_qp *qp);

/** Fate of a request: whether it was executed before the QP failed. */
enum bb_wr_fate {
	/**
	 * The request completed successfully. If it is an RC send, the peer has acknowledged it.
	 */
	BB_WR_DONE,
	/**
	 * The request failed; wc.status has the reason. The peer may have received a part of a
	 * WRITE. On an RC QP the peer may have executed the whole request if the error is local
	 * (LOC_LEN, LOC_QP_OP or LOC_PROT), or if retries ran out.
	 */
	BB_WR_FAILED,
	/**
	 * The request has not changed any memory, neither the peer's nor local memory, so the
	 * application can post it again.
	 */
	BB_WR_NOT_DONE,
	/**
	 * The request was in flight at the error: the peer may have executed the whole request, a
	 * part, or nothing.
	 */
	BB_WR_UNKNOWN,
};

/** Returns the name of a fate, for example "not done". */
const char *bb_wr_fate_name(enum bb_wr_fate fate);

/** A request that was outstanding when bb_qp_recover() was called, and its fate. */
struct bb_wr_end {
	struct bb_wc wc; /**< completion as a poll would return it, also for an unsignalled send */
	enum bb_wr_fate fate;
	bool recv; /**< true for a receive. The fate NOT_DONE of a receive means that no message
		    * used the receive */
};

/** Input and output of bb_qp_recover(): the application's array, and the reports written to it. */
struct bb_qp_recovery {
	uint32_t size;          /**< bytes of the caller's struct; set by bb_qp_recover() */
	struct bb_wr_end *ends; /**< array of the caller; its sends are in the order of their posts,
				 * and so are its receives */
	uint32_t max;           /**< size of the array in entries. sq_depth + rq_depth are always
				 * enough; for a QP with an SRQ, sq_depth + the SRQ's depth */
	uint32_t n;             /**< entries written */
	/** Fate of the requests whose flush errors the application polled before this call. */
	enum bb_wr_fate flushed;
};

/** Implements bb_qp_recover(), which sets the struct's size. Call bb_qp_recover() instead. */
int bb_qp_recover_v(struct bb_qp *qp, const struct bb_qp_addr *local,
		    const struct bb_qp_addr *remote, const struct bb_qp_attr *attr,
		    struct bb_qp_recovery *recovery);

/**
 * Recovers a QP. The call moves the QP to ERR, collects the fates of requests that no poll has
 * reported, and moves the QP to RESET. If @p remote is given, the call then connects the QP as
 * bb_qp_connect() does. Completions of other QPs stay in the CQs. The peer's QP must be recovered
 * too. First exchange new addresses of bb_qp_addr() (the QP number stays, GID and PSN may change),
 * then call this function on both peers.
 *
 * Rules for fates:
 * - Sends complete in order. So all sends before the failed one are DONE.
 * - If the peer sent a NAK, no later send was executed (IBTA vol. 1, 9.9.3: the responder executes
 *   nothing after the error). Later sends are NOT_DONE. But after a READ they are UNKNOWN: the peer
 *   reads the memory when it responds, which may be after it has executed later requests.
 * - If the failed send had a local error (LOC_LEN, LOC_QP_OP or LOC_PROT), later sends of an RC QP
 *   are UNKNOWN: the device may have found the error when it sent the request again, or in a
 *   response, after it had sent later requests. Those of other QPs are NOT_DONE.
 * - If no response of the peer arrived (retries exceeded), the failed send and later ones may have
 *   been executed. Later sends are UNKNOWN. The same holds if the QP was moved to ERR for another
 *   reason.
 * - A send that no doorbell has covered is NOT_DONE.
 *
 * Cost: the call takes milliseconds on a card ([A]: an assumption, not tested on a card), and up to
 * a second if the device does not respond. If @p remote is given, the call may wait until the next
 * hop's MAC is resolved, as bb_qp_connect() does; bb_conn_recover() never waits for this.
 * @param remote the peer's address; NULL: leave the QP in RESET, @p local and @p attr are ignored.
 * @param attr as for bb_qp_connect(); NULL: rights, retries and path as set before. A QP in RESET
 * has lost these values, so @p attr is required for such a QP.
 * @return 0; -ENOSPC if there are more than recovery->max requests: the entries written are final
 * and the QP is in ERR, so call again for the other requests; -EBUSY if a connection owns the QP:
 * use bb_conn_recover(); an error of bb_qp_modify() if the device cannot move the QP to ERR, as a
 * device that was removed cannot: there are no entries and the QP is unchanged; otherwise an error
 * of bb_qp_connect(), with the QP in RESET or ERR and valid entries.
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
