/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Memory windows: rkeys for a part of a memory region, granted and revoked by requests.
 *
 * bb_mw_bind() binds a window of type 1 for all QPs of its PD. bb_post_bind_mw() binds a window
 * of type 2 for peers of that QP alone. bb_post_local_inv() or the peer's SEND with invalidate
 * invalidates it, and then it can be bound again. Windows give remote rights only. Control-path
 * rules are those of bb_dev.h.
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
	uint32_t rkey; /**< key of the last posted bind */
	enum bb_mw_type type;
};

/**
 * Allocates an unbound window (man ibv_alloc_mw).
 * @return 0; -EINVAL unknown type; -ENOTSUP the device has no windows; -ENOMEM.
 */
int bb_mw_alloc(struct bb_pd *pd, enum bb_mw_type type, struct bb_mw **mw);

/**
 * Frees a window and unbinds it first. Requests on it must have completed. A type 2 window whose
 * QP was destroyed can only be freed, as no other QP can invalidate it (IBTA vol. 1, 10.6.7.2).
 */
int bb_mw_free(struct bb_mw *mw);

/** Returns the key with the next low byte (man ibv_inc_rkey). */
static inline uint32_t
bb_inc_rkey(uint32_t rkey)
{
	return (rkey & ~UINT32_C(0xff)) | ((rkey + 1) & 0xff);
}

/**
 * Posts a bind of a type 1 window to [@p addr, @p addr + @p len) of @p mr, in the MR's addresses
 * (man ibv_bind_mw). On success mw->rkey is the new key, the old key plus 1 in its low byte, and
 * the old key becomes invalid. Give the new key to the peer over this QP, or after the completion
 * (BB_WC_BIND_MW). A bind that completes in error changes nothing, so keep the old key until
 * then. A length of 0 unbinds; @p mr may be NULL then. Neither the old nor the new MR can be
 * deregistered before the completion was polled. An unsignalled bind completes with the next
 * signalled request.
 * @param access BB_ACCESS_REMOTE_*; writes and atomics need an MR with LOCAL_WRITE. REMOTE_ATOMIC
 *   needs bb_dev_attr.memory_window_atomics.
 * @return as every post, -EAGAIN also when 8 requests are pending on this window; -EINVAL
 *   (logged) a type 2 window, an MR without MW_BIND or of another PD, an ON_DEMAND MR, a range
 *   that leaves the MR, rights as above, a ZERO_BASED window or MR; -EOPNOTSUPP over 2^31 bytes.
 */
int bb_mw_bind(struct bb_qp *qp, uint64_t wr_id, struct bb_mw *mw, struct bb_mr *mr, uint64_t addr,
	       uint64_t len, uint32_t access, uint32_t flags);

/**
 * Posts a bind of an unbound type 2 window (IBV_WR_BIND_MW). @p new_rkey differs from mw->rkey in
 * its low byte: use bb_inc_rkey(). mw->rkey is @p new_rkey when this returns 0.
 * @param access as bb_mw_bind(), and BB_ACCESS_ZERO_BASED: the window's addresses start at 0.
 * @return as bb_mw_bind(); -EINVAL also a type 1 window, no MR, length 0, a key of another
 *   window.
 */
int bb_post_bind_mw(struct bb_qp *qp, uint64_t wr_id, struct bb_mw *mw, uint32_t new_rkey,
		    struct bb_mr *mr, uint64_t addr, uint64_t len, uint32_t access, uint32_t flags);

/**
 * Invalidates a type 2 window, or an indirect key that requests lay out (IBV_WR_LOCAL_INV). It
 * completes as BB_WC_LOCAL_INV; no access passes through the key from then on. The MR can be
 * deregistered after a successful completion was polled.
 */
int bb_post_local_inv(struct bb_qp *qp, uint64_t wr_id, uint32_t rkey, uint32_t flags);

#ifdef __cplusplus
}
#endif

#endif
