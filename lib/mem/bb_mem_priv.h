/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Private functions of lib/mem: regions and memory windows.
 */
#ifndef BB_MEM_PRIV_H
#define BB_MEM_PRIV_H

#include "bb_dev_priv.h"

/* A memory region of any type. dev->lock protects the fields. */
struct bb_mr_priv {
	struct bb_mr pub;
	LIST_ENTRY(bb_mr_priv) link; /* in pd->mr_list */
	enum bb_drv_mr_kind kind;
	struct bb_mem_reg *reg;
	uint32_t windows;      /* memory windows that are or may be bound to the region; accessed
				* with __atomic */
	uint32_t mkeys;        /* indirect keys with a piece in this region */
	struct bb_dm_ctrl *dm; /* device memory of the region, NULL if the region is not in device
				* memory */
};

/* Returns @access without optional rights that the device lacks. */
uint32_t bb_mr_access_in_force(const struct bb_dev *dev, uint32_t access);
/*
 * Checks rights. Returns 0, or -EINVAL or -ENOTSUP with the reason in *why, for the caller's log
 * line.
 */
int bb_mr_access_check(const struct bb_dev *dev, uint32_t access, const char **why);
/*
 * Registers a region with the driver. The caller has checked @attr and has removed the optional
 * rights that the device lacks.
 */
int bb_mr_create(struct bb_pd *pd, const struct bb_drv_mr_attr *attr, struct bb_mr **mr);
/* Copies the driver's lkey and rkey into mr->pub, each only if the region's rights allow it. */
void bb_mr_keys(struct bb_mr_priv *mr);
/*
 * Returns the bytes that a region adds to bb_mem_stats.bytes; 0 if the region is the whole address
 * space.
 */
uint64_t bb_mr_bytes(const struct bb_mr *mr);
/*
 * Returns the key that identifies a region in logs: the lkey, or the rkey if the region has no
 * lkey.
 */
static inline uint32_t
bb_mr_name(const struct bb_mr *mr)
{
	return mr->lkey != BB_LKEY_NONE ? mr->lkey : mr->rkey;
}
/* Returns the region of any PD with this lkey or rkey, NULL if none. Call with dev->lock held. */
const struct bb_mr_priv *bb_mr_by_key(const struct bb_dev *dev, uint32_t key);
/*
 * Formats rights, such as "local_write|remote_read" or "none"; @buf has BB_ACCESS_TEXT_MAX bytes.
 */
#define BB_ACCESS_TEXT_MAX 128
void bb_access_text(uint32_t access, char *buf);
/*
 * Returns 0, or -EBUSY (logged) while memory windows or indirect keys refer to @mr. Call with
 * dev->lock held.
 */
int bb_mr_busy(const struct bb_mr_priv *mr, const char *what);

/*
 * Releases the region of a type 2 window after a peer or a request has invalidated the window's key
 * @rkey. The call has no effect if @rkey is not the current key of a type 2 window.
 */
void bb_mw_invalidated(const struct bb_dev *dev, uint32_t rkey);
/*
 * Removes the completed requests of every memory window, and releases the regions that only these
 * requests held. Call with dev->lock held.
 */
void bb_mw_settle(const struct bb_dev *dev);
/*
 * Records that the reset of @qp has dropped its binds and invalidations of memory windows. Call
 * with dev->lock held.
 */
void bb_mw_qp_reset(const struct bb_qp *qp);
/*
 * Removes the binds and invalidations on @qp that no doorbell has covered. Call with dev->lock
 * held.
 */
void bb_mw_qp_abort(const struct bb_qp *qp);

/*
 * Extends the sequence number of a request to 64 bits. The result is correct only if fewer than
 * 2^31 requests lie between the request and the last doorbell. Any thread may call this function;
 * @seq must have been read before the call.
 */
static inline uint64_t
bb_sq_seq64(const struct bb_sq *sq, uint32_t seq)
{
	const uint64_t rung = bb_count_get(&sq->rung_seq);

	return rung + (uint64_t)(int64_t)(int32_t)(seq - (uint32_t)rung);
}

#endif
