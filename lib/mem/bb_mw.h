/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Memory windows: rkeys of a part of a memory region, given and taken by requests.
 *
 * A window of type 1 is bound by bb_mw_bind() for all QPs of its PD. One of type 2 is bound
 * by bb_post_bind_mw() for peers of that QP alone, is invalidated by bb_post_local_inv() or
 * by the peer's SEND with invalidate, and can then be bound again. Windows give remote rights
 * only. Control-path rules are those of bb_dev.h.
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
	BB_MW_TYPE_2 = 2, /**< 2B: only peers of the QP that bound it */
};

/** A memory window; read-only for the application. */
struct bb_mw {
	struct bb_pd *pd;
	uint32_t rkey; /**< as of the last bind that was posted */
	enum bb_mw_type type;
};

/**
 * Allocate a window, not bound (man ibv_alloc_mw).
 * @return 0; -EINVAL no such type; -ENOTSUP the device has no windows; -ENOMEM.
 */
int bb_mw_alloc(struct bb_pd *pd, enum bb_mw_type type, struct bb_mw **mw);

/**
 * Free it; unbinds it first. Requests on it must have completed. It is the only way to take back
 * a type 2 window whose QP was destroyed: no other QP can (IBTA vol. 1, 10.6.7.2).
 */
int bb_mw_free(struct bb_mw *mw);

/** The same key with the next low byte (man ibv_inc_rkey). */
static inline uint32_t
bb_inc_rkey(uint32_t rkey)
{
	return (rkey & ~UINT32_C(0xff)) | ((rkey + 1) & 0xff);
}

/**
 * Post a bind of a type 1 window to [@p addr, @p addr + @p len) of @p mr, in the MR's
 * addresses (man ibv_bind_mw). On success mw->rkey is the new key, the next one after the old,
 * which dies; give it to the peer by this QP, or after the completion (BB_WC_BIND_MW). A bind
 * that completes in error leaves the window as it was: keep the old key until then. A length
 * of 0 unbinds, @p mr may be NULL then. Until the completion was polled neither the old MR nor the
 * new one can be deregistered; an unsignalled bind completes with the next signalled request.
 * @param access BB_ACCESS_REMOTE_*; writes and atomics need an MR with LOCAL_WRITE.
 * REMOTE_ATOMIC where bb_dev_attr.memory_window_atomics says so.
 * @return as every post, -EAGAIN also when 8 requests wait on this window; -EINVAL (logged) a type
 * 2 window, an MR without MW_BIND or of another PD, one that is ON_DEMAND, a range that leaves the
 * MR, rights as above, a ZERO_BASED window or MR; -EOPNOTSUPP over 2^31 bytes.
 */
int bb_mw_bind(struct bb_qp *qp, uint64_t wr_id, struct bb_mw *mw, struct bb_mr *mr, uint64_t addr,
	       uint64_t len, uint32_t access, uint32_t flags);

/**
 * Post a bind of a type 2 window that is not bound (IBV_WR_BIND_MW). @p new_rkey differs from
 * mw->rkey in its low byte: bb_inc_rkey(). mw->rkey is @p new_rkey when this returns 0.
 * @param access as bb_mw_bind(), and BB_ACCESS_ZERO_BASED: the window's addresses start at 0.
 * @return as bb_mw_bind(); -EINVAL also a type 1 window, no MR, length 0, a key of another
 *   window.
 */
int bb_post_bind_mw(struct bb_qp *qp, uint64_t wr_id, struct bb_mw *mw, uint32_t new_rkey,
		    struct bb_mr *mr, uint64_t addr, uint64_t len, uint32_t access, uint32_t flags);

/**
 * Invalidate a type 2 window or an indirect key that requests lay out (IBV_WR_LOCAL_INV);
 * completes as BB_WC_LOCAL_INV, and no access through it happens from then on. The MR can be
 * deregistered when it has completed with success and was polled.
 */
int bb_post_local_inv(struct bb_qp *qp, uint64_t wr_id, uint32_t rkey, uint32_t flags);

#ifdef __cplusplus
}
#endif

#endif
