/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Private functions of lib/mem: regions and memory windows.
 */
#ifndef BB_MEM_PRIV_H
#define BB_MEM_PRIV_H

#include "bb_dev_priv.h"

/* A memory region of any kind. Under dev->lock. */
struct bb_mr_priv {
	struct bb_mr pub;
	LIST_ENTRY(bb_mr_priv) link; /* in pd->mr_list */
	enum bb_drv_mr_kind kind;
	struct bb_mem_reg *reg;
	uint32_t windows;      /* memory windows that hold it; __atomic */
	uint32_t mkeys;        /* keys that refer to it */
	struct bb_dm_ctrl *dm; /* device memory, else NULL */
};

/* Returns @access without optional rights that the device lacks. */
uint32_t bb_mr_access_in_force(const struct bb_dev *dev, uint32_t access);
/*
 * Checks rights. Returns 0, or -EINVAL or -ENOTSUP with the reason in *why, for the caller's log
 * line.
 */
int bb_mr_access_check(const struct bb_dev *dev, uint32_t access, const char **why);
/* Registers with the driver. @attr has been checked; its access is in force. */
int bb_mr_create(struct bb_pd *pd, const struct bb_drv_mr_attr *attr, struct bb_mr **mr);
/* Copies the driver's keys that the rights allow into mr->pub. */
void bb_mr_keys(struct bb_mr_priv *mr);
/* Returns its share of bb_mem_stats.bytes; 0 for the whole address space. */
uint64_t bb_mr_bytes(const struct bb_mr *mr);
/* Returns the key that identifies it: its lkey, or its rkey without one. */
static inline uint32_t
bb_mr_name(const struct bb_mr *mr)
{
	return mr->lkey != BB_LKEY_NONE ? mr->lkey : mr->rkey;
}
/* Finds an explicit registration of any PD by lkey or rkey; dev->lock held. */
const struct bb_mr_priv *bb_mr_by_key(const struct bb_dev *dev, uint32_t key);
/*
 * Formats rights, such as "local_write|remote_read" or "none"; @buf has BB_ACCESS_TEXT_MAX bytes.
 */
#define BB_ACCESS_TEXT_MAX 128
void bb_access_text(uint32_t access, char *buf);
/* Returns -EBUSY, and logs, while windows or keys refer to it; dev->lock held. */
int bb_mr_busy(const struct bb_mr_priv *mr, const char *what);

/*
 * Releases the region of a window after a peer or a request has invalidated its key. Other keys
 * have no effect.
 */
void bb_mw_invalidated(const struct bb_dev *dev, uint32_t rkey);
/* Releases regions whose windows completed requests have unbound; dev->lock held. */
void bb_mw_settle(const struct bb_dev *dev);
/* Handles the reset of a QP, which loses its requests; dev->lock held. */
void bb_mw_qp_reset(const struct bb_qp *qp);
/* Takes back the unrung binds and invalidations of @qp; dev->lock held. */
void bb_mw_qp_abort(const struct bb_qp *qp);

/*
 * Extends the sequence number of a request to 64 bits. Valid while fewer than 2^31 requests lie
 * between it and the last doorbell, so that an old number does not look new. Any thread; @seq was
 * read before.
 */
static inline uint64_t
bb_sq_seq64(const struct bb_sq *sq, uint32_t seq)
{
	const uint64_t rung = bb_count_get(&sq->rung_seq);

	return rung + (uint64_t)(int64_t)(int32_t)(seq - (uint32_t)rung);
}

#endif
