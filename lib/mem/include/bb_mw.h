/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Memory windows: rkeys for a part of a memory region. Requests on a send queue grant and revoke
 * them.
 *
 * bb_mw_bind() binds a window of type 1 for all QPs of its PD. bb_post_bind_mw() binds a window of
 * type 2 only for the peer of the QP that posts the bind. bb_post_local_inv(), or a SEND with
 * invalidate of the peer, invalidates a type 2 window, which can then be bound again. Windows give
 * remote rights only. The control-path rules of bb_dev.h apply.
 *
 * Source: man ibv_alloc_mw, ibv_bind_mw, ibv_post_send.
 */
#ifndef BB_MW_H
#define BB_MW_H

#include "bb_qp.h"
#include "bb_sq_umr.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Types of memory windows. */
enum bb_mw_type {
	BB_MW_TYPE_1 = 1,
	BB_MW_TYPE_2 = 2, /**< type 2B: only for peers of the QP that bound it */
};

/** A memory window; read-only for the application. */
struct bb_mw {
	struct bb_pd *pd;
	uint32_t rkey; /**< key of the last posted bind that has not failed; see bb_mw_bind() */
	enum bb_mw_type type;
};

/**
 * Allocates an unbound window (man ibv_alloc_mw).
 * @return 0; -EINVAL if the type is unknown; -ENOTSUP if the device has no windows; -ENOMEM.
 */
int bb_mw_alloc(struct bb_pd *pd, enum bb_mw_type type, struct bb_mw **mw);

/**
 * Unbinds and frees a window. Requests that bind or invalidate the window must have completed. A
 * type 2 window whose QP was destroyed can only be freed, as no other QP can invalidate it (IBTA
 * vol. 1, 10.6.7.2).
 */
int bb_mw_free(struct bb_mw *mw);

/** Returns @p rkey with its low byte incremented (man ibv_inc_rkey). */
static inline uint32_t
bb_inc_rkey(uint32_t rkey)
{
	return (rkey & ~UINT32_C(0xff)) | ((rkey + 1) & 0xff);
}

/**
 * Posts a bind of a type 1 window to [@p addr, @p addr + @p len) of @p mr, in the addresses that
 * WQEs use for the MR (man ibv_bind_mw). On success mw->rkey is the new key, which is the old key
 * with its low byte incremented. When the bind executes, the old key becomes invalid. Give the new
 * key to the peer over this QP, or after the completion (BB_WC_BIND_MW). A bind that completes in
 * error changes nothing: mw->rkey is the old key again after its QP was reset, or after the next
 * call that binds or invalidates the window. A length of 0 unbinds; @p mr may be NULL then. Neither
 * the old nor the new MR can be deregistered until the completion was polled. An unsignalled bind
 * completes with the next signalled request. Ring the requests of one window on several QPs in the
 * order of their posts.
 * @param access rights of peers, BB_ACCESS_REMOTE_*; writes and atomics need an MR with
 *   LOCAL_WRITE. REMOTE_ATOMIC needs bb_dev_attr.memory_window_atomics.
 * @return 0 or an error of bb_post_send(). -EAGAIN also if 8 requests are pending on this window.
 *   -ENOMEM (logged) if the outcome of 8 of its binds is unknown, because their QPs were reset or
 *   destroyed: free the window.
 *   -EINVAL (logged) if the window is of type 2, if the MR is without MW_BIND, of another PD,
 *   ON_DEMAND or ZERO_BASED, if the range exceeds the MR, or if the rights are invalid or
 *   ZERO_BASED. -EOPNOTSUPP if @p len is over 2^31.
 */
int bb_mw_bind(struct bb_qp *qp, uint64_t wr_id, struct bb_mw *mw, struct bb_mr *mr, uint64_t addr,
	       uint64_t len, uint32_t access, uint32_t flags);

/**
 * Posts a bind of an unbound type 2 window (IBV_WR_BIND_MW). @p new_rkey differs from mw->rkey in
 * its low byte: use bb_inc_rkey(). When the call returns 0, mw->rkey is @p new_rkey.
 * @param access rights of bb_mw_bind(). With BB_ACCESS_ZERO_BASED the window's first byte has
 * address 0.
 * @return as bb_mw_bind(). -EINVAL if the window is of type 1, @p mr is NULL, @p len is 0, or @p
 *   new_rkey is not a key of this window.
 */
int bb_post_bind_mw(struct bb_qp *qp, uint64_t wr_id, struct bb_mw *mw, uint32_t new_rkey,
		    struct bb_mr *mr, uint64_t addr, uint64_t len, uint32_t access, uint32_t flags);

/**
 * Posts a request that invalidates a type 2 window, or an indirect key whose layout requests set
 * (IBV_WR_LOCAL_INV). The request completes with opcode BB_WC_LOCAL_INV. After a successful
 * completion the device rejects every access through the key. The window's MR can be deregistered
 * once that completion was polled.
 */
int bb_post_local_inv(struct bb_qp *qp, uint64_t wr_id, uint32_t rkey, uint32_t flags);

#ifdef __cplusplus
}
#endif

#endif
