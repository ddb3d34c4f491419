/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Requests that survive the loss of a connection. Requests that did not complete are posted again
 * after recovery, or reported, as the application chooses.
 *
 * A replay keeps a copy of each request between its post and its completion. The application posts
 * through it, and passes it every completion of the send queue and the connection's events LOST and
 * RECOVERED. Make all calls from the owner of the queue pair. Memory of requests is not copied,
 * except for inline data.
 *
 * Regions: a request may access a region that the peer has named (bb_conn_region()). When it is
 * posted again it goes to the region of that name: a restarted peer has other keys.
 */
#ifndef BB_REPLAY_H
#define BB_REPLAY_H

#include "bb_connect.h"
#include "bb_wr.h"

#ifdef __cplusplus
extern "C" {
#endif

struct bb_replay;

/** Requests that are posted again. */
enum bb_replay_policy {
	/** None: all incomplete requests are reported. */
	BB_REPLAY_NONE,
	/**
	 * Those that were certainly not executed (BB_WR_NOT_DONE): each is executed at most once.
	 */
	BB_REPLAY_NOT_DONE,
	/**
	 * Also those that may have been executed (BB_WR_UNKNOWN): each is executed at least once.
	 * For WRITEs and READs, not for SENDs and atomics that must not be repeated. This includes
	 * a WRITE_WITH_IMM without a receive: a part of it may be written.
	 */
	BB_REPLAY_UNKNOWN,
};

/** Maximum pieces of a request. */
#define BB_REPLAY_MAX_SGE 8u
/** Maximum bytes of inline data. */
#define BB_REPLAY_MAX_INLINE 256u

/**
 * Creates a replay for a connection.
 * @param depth maximum outstanding requests; that of the send queue is enough.
 * @return 0; -EINVAL; -ENOMEM.
 */
int bb_replay_create(struct bb_conn *conn, uint32_t depth, enum bb_replay_policy policy,
		     struct bb_replay **replay);

/** Frees the replay and its copies. */
void bb_replay_destroy(struct bb_replay *replay);

/**
 * Posts requests as bb_qp_post_list(), which describes @p err, and rings the doorbell. While the
 * connection is LOST it posts nothing, returns 0 and sets *err to 0.
 * @return number of requests posted. Fewer than @p n with *err 0: no room, in the queue or in the
 * replay. *err is -EINVAL also for a request of more than BB_REPLAY_MAX_SGE pieces or
 * BB_REPLAY_MAX_INLINE bytes inline, and for BIND_MW and LOCAL_INV.
 */
uint32_t bb_replay_post(struct bb_replay *replay, const struct bb_send_wr *wr, uint32_t n,
			int *err);

/**
 * Processes a completion of a request posted through the replay. Changes its wr_id to the
 * application's.
 * @return true if the application must handle it. False if the request failed and is retained: it
 * completes after it is posted again, or bb_replay_lost() reports it.
 */
bool bb_replay_completion(struct bb_replay *replay, struct bb_wc *wc);

/**
 * Callback for a request that is not posted again, or was found complete. wr_id is the
 * application's.
 */
typedef void (*bb_replay_fn)(const struct bb_wr_end *end, void *arg);

/**
 * Processes BB_CM_LOST. Reports, in order, signalled requests that were found complete, and
 * requests that the policy does not post again. Receives are not reported.
 */
void bb_replay_lost(struct bb_replay *replay, const struct bb_cm_event *event, bb_replay_fn fn,
		    void *arg);

/**
 * Processes BB_CM_RECOVERED: posts the retained requests in order and rings the doorbell.
 * @return number of requests posted. -EAGAIN: the QP is full; call again after completions.
 * -ENOTCONN: the connection is not established. -ENOENT: a region has no successor at the peer, or
 * it is too small now. That request is reported, as BB_WR_NOT_DONE, or as BB_WR_UNKNOWN if it may
 * have been executed before. Later requests are not posted yet: call again.
 */
int bb_replay_resume(struct bb_replay *replay, bb_replay_fn fn, void *arg);

/** Returns the number of retained requests: posted and not completed. */
uint32_t bb_replay_pending(const struct bb_replay *replay);

#ifdef __cplusplus
}
#endif

#endif
