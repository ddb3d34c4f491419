/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * A replay posts requests again that did not complete because their connection broke. The replay
 * policy selects which of these requests it posts again. The replay reports the others to the
 * application.
 *
 * A replay holds a copy of each request from its post to its completion, so the application posts
 * with bb_replay_post(). The application also passes to the replay every completion of the send
 * queue and every event of the connection. It then gets each signalled request exactly once: by
 * bb_replay_completion() or by a report. Make all calls from the owner of the queue pair. The
 * replay copies inline data, but not the memory that the SGEs of a request refer to. The replay and
 * the connection may be destroyed in any order.
 *
 * A request may access a region that the peer has named (bb_conn_region()). A restarted peer has
 * new addresses and keys. So the replay looks up the region by its name before it posts the request
 * again.
 */
#ifndef BB_REPLAY_H
#define BB_REPLAY_H

#include "bb_connect.h"
#include "bb_wr.h"

#ifdef __cplusplus
extern "C" {
#endif

struct bb_replay;

/**
 * Selects the incomplete requests that a replay posts again after recovery. The replay reports the
 * others.
 */
enum bb_replay_policy {
	/** Posts no request again; the replay reports all incomplete requests. */
	BB_REPLAY_NONE,
	/**
	 * Posts a request again only if it was certainly not executed (fate BB_WR_NOT_DONE), so
	 * each request is executed at most once.
	 */
	BB_REPLAY_NOT_DONE,
	/**
	 * Also posts a request again if it may have been executed (fate BB_WR_UNKNOWN). So a
	 * request may be executed twice. Do not use this policy for SENDs and atomics that must not
	 * be repeated. It also posts a WRITE_WITH_IMM again that found no receive, because the peer
	 * may have written some of its data.
	 */
	BB_REPLAY_UNKNOWN,
};

/**
 * Upper 32 bits of the wr_id of every request that a replay posts. A request that the application
 * posts to the queue pair itself, such as BIND_MW, may have any other wr_id. A small number and the
 * address of an object are safe.
 */
#define BB_REPLAY_TAG 0xb1ebe11au

/** Maximum SGEs of a request. */
#define BB_REPLAY_MAX_SGE 8u
/** Maximum bytes of inline data of a request. */
#define BB_REPLAY_MAX_INLINE 256u

/**
 * Creates a replay for a connection.
 * @param depth maximum outstanding requests; the depth of the send queue is enough.
 * @return 0; -EINVAL for an invalid argument; -EBUSY if the connection has a replay; -ENOMEM.
 */
int bb_replay_create(struct bb_conn *conn, uint32_t depth, enum bb_replay_policy policy,
		     struct bb_replay **replay);

/**
 * Frees the replay and its copies of requests. Requests that it holds are neither posted nor
 * reported.
 */
void bb_replay_destroy(struct bb_replay *replay);

/**
 * Posts requests and rings the doorbell. @p err is described at bb_qp_post_list(). After
 * BB_CM_LOST, until bb_replay_resume(), the call posts nothing, returns 0 and sets *err to 0.
 * @return number of requests posted. If the number is below @p n and *err is 0, the queue or the
 * replay is full. *err is also -EINVAL for a request of more than BB_REPLAY_MAX_SGE SGEs or
 * BB_REPLAY_MAX_INLINE bytes of inline data, and for BIND_MW and LOCAL_INV.
 */
uint32_t bb_replay_post(struct bb_replay *replay, const struct bb_send_wr *wr, uint32_t n,
			int *err);

/**
 * Processes a completion of the send queue. If the replay posted the request, sets wc->wr_id to the
 * wr_id of the application. If the application posted the request itself, changes nothing and
 * returns true.
 * @return true if the application must handle the completion. False if the request failed because
 * the connection broke, and the connection may recover. The replay then holds the request, and
 * either reports it in bb_replay_lost() or posts it again. After bb_conn_disconnect() or the end of
 * the connection the call holds no further request. Also false for a request that bb_replay_lost()
 * has already reported.
 */
bool bb_replay_completion(struct bb_replay *replay, struct bb_wc *wc);

/**
 * Callback that reports a request that the replay does not post again. end->wc.wr_id is the wr_id
 * that the application gave to bb_replay_post().
 */
typedef void (*bb_replay_fn)(const struct bb_wr_end *end, void *arg);

/**
 * Processes an event of the connection; call it for every event. Does not report receives.
 *
 * BB_CM_LOST: reports two sorts of requests in the order of their posts: signalled requests that
 * completed but were not polled, and requests that the policy does not post again.
 *
 * BB_CM_DISCONNECTED and other events that end the connection: reports all requests that the replay
 * holds, whatever the policy is. The fate is BB_WR_UNKNOWN if the peer may have executed the
 * request, otherwise BB_WR_NOT_DONE. The other requests still complete with an error: pass their
 * completions to bb_replay_completion(). After that bb_replay_pending() returns the number of
 * unsignalled requests that succeeded after the last completion, because these have none. A
 * request's memory must not be changed before its completion or report, or before the queue pair is
 * destroyed. If bb_conn_destroy() comes before this event, requests that the replay holds are not
 * reported.
 *
 * Other events: does nothing.
 */
void bb_replay_lost(struct bb_replay *replay, const struct bb_cm_event *event, bb_replay_fn fn,
		    void *arg);

/**
 * Processes BB_CM_RECOVERED: posts the held requests again in order and rings the doorbell.
 * @return number of requests posted. -EAGAIN if the QP is full: call again after completions.
 * -ENOTCONN if the connection is not established. -ENOENT if the peer no longer has the region that
 * a request names, or the region is now too small for the request. The replay then reports that
 * request as BB_WR_NOT_DONE, or as BB_WR_UNKNOWN if it may have been executed before. Call again to
 * post the later requests.
 */
int bb_replay_resume(struct bb_replay *replay, bb_replay_fn fn, void *arg);

/**
 * Returns the number of requests that the replay holds: posted and not yet completed or reported.
 * The call looks at each request from the oldest one on.
 */
uint32_t bb_replay_pending(const struct bb_replay *replay);

#ifdef __cplusplus
}
#endif

#endif
