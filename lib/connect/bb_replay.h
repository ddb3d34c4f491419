/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Requests that survive a connection that breaks: what did not complete is posted again when the
 * connection is back, or reported, as the application chooses.
 *
 * A replay keeps a copy of each request between its post and its completion. The application
 * posts through it, shows it every completion of the send queue, and the events LOST and
 * RECOVERED of the connection. All calls are the owner's of the queue pair. The memory that
 * requests name is not copied, except for inline data.
 *
 * Regions: a request whose rkey and address are inside a region that the peer has named
 * (bb_conn_region()) goes to the region of that name when it is posted again: a peer that has
 * started anew has other keys.
 */
#ifndef BB_REPLAY_H
#define BB_REPLAY_H

#include "bb_connect.h"
#include "bb_wr.h"

#ifdef __cplusplus
extern "C" {
#endif

struct bb_replay;

/** Which requests are posted again. */
enum bb_replay_policy {
	/** None: all that did not complete are reported. */
	BB_REPLAY_NONE,
	/** Those of which nobody has seen anything (BB_WR_NOT_DONE): each is done once at most. */
	BB_REPLAY_NOT_DONE,
	/**
	 * Those too that may have been carried out (BB_WR_UNKNOWN): each is done once at least.
	 * For WRITEs and READs; not for SENDs and atomics that must not come twice. A
	 * WRITE_WITH_IMM that found no receive is one of these: a part of it may be written.
	 */
	BB_REPLAY_UNKNOWN,
};

/** Most pieces of a request. */
#define BB_REPLAY_MAX_SGE 8u
/** Bytes of inline data. */
#define BB_REPLAY_MAX_INLINE 256u

/**
 * Create one for a connection.
 * @param depth requests outstanding, at most; that of the send queue is enough.
 * @return 0; -EINVAL; -ENOMEM.
 */
int bb_replay_create(struct bb_conn *conn, uint32_t depth, enum bb_replay_policy policy,
		     struct bb_replay **replay);

/** Free it, and forget what is kept. */
void bb_replay_destroy(struct bb_replay *replay);

/**
 * Post requests as bb_qp_post_list(), which says what @p err is, and ring. While the connection
 * is LOST nothing is posted: 0, and *err is 0.
 * @return how many were posted. Fewer than @p n with *err 0: no room, in the queue or here.
 *   *err is -EINVAL also for a request of more than BB_REPLAY_MAX_SGE pieces or
 *   BB_REPLAY_MAX_INLINE bytes inline, and for BIND_MW and LOCAL_INV.
 */
uint32_t bb_replay_post(struct bb_replay *replay, const struct bb_send_wr *wr, uint32_t n,
			int *err);

/**
 * Show it a completion of a request that was posted through it. The wr_id is changed to the
 * application's.
 * @return true: it is the application's; false: the request failed and is kept, it completes after
 *   it was posted again, or is reported by bb_replay_lost().
 */
bool bb_replay_completion(struct bb_replay *replay, struct bb_wc *wc);

/** A request that is not posted again, or was found complete. wr_id is the application's. */
typedef void (*bb_replay_fn)(const struct bb_wr_end *end, void *arg);

/**
 * Show it BB_CM_LOST. Those found complete, if they were signalled, and those that the policy
 * does not post again are reported, in their order; not the receives.
 */
void bb_replay_lost(struct bb_replay *replay, const struct bb_cm_event *event, bb_replay_fn fn,
		    void *arg);

/**
 * Show it BB_CM_RECOVERED: what was kept is posted, in its order, and rung.
 * @return how many requests; -EAGAIN the QP takes no more: call it again after completions;
 *   -ENOTCONN the connection is not established; -ENOENT a region has no successor at the peer, or
 *   is too small now: that request is reported, BB_WR_NOT_DONE or, if it may have been carried out
 *   before, BB_WR_UNKNOWN, and those behind it are not posted yet: call it again.
 */
int bb_replay_again(struct bb_replay *replay, bb_replay_fn fn, void *arg);

/** Requests it keeps: posted and not completed. */
uint32_t bb_replay_kept(const struct bb_replay *replay);

#ifdef __cplusplus
}
#endif

#endif
