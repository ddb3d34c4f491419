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
	struct bb_dm_ctrl *dm; /* of device memory, else NULL */
};

/* Rights of @access that the device honours: optional ones it lacks go. */
uint32_t bb_mr_access_in_force(const struct bb_dev *dev, uint32_t access);
/* 0, -EINVAL or -ENOTSUP; then *why says why, for the caller's line in the log. */
int bb_mr_access_check(const struct bb_dev *dev, uint32_t access, const char **why);
/* Register with the driver; @attr is checked, its access is what is in force. */
int bb_mr_create(struct bb_pd *pd, const struct bb_drv_mr_attr *attr, struct bb_mr **mr);
/* Put the driver's keys into mr->pub, those that the rights give. */
void bb_mr_keys(struct bb_mr_priv *mr);
/* What it adds to struct bb_mem_stats; nothing for the whole address space. */
uint64_t bb_mr_bytes(const struct bb_mr *mr);
/* The key it is listed by: its lkey, or its rkey if it has no other. */
static inline uint32_t
bb_mr_name(const struct bb_mr *mr)
{
	return mr->lkey != BB_LKEY_NONE ? mr->lkey : mr->rkey;
}
/* The explicit registration of any PD that has the key, as lkey or rkey; dev->lock held. */
const struct bb_mr_priv *bb_mr_by_key(const struct bb_dev *dev, uint32_t key);
/* "local_write|remote_read", "none"; @buf of BB_ACCESS_TEXT_MAX bytes. */
#define BB_ACCESS_TEXT_MAX 128
void bb_access_text(uint32_t access, char *buf);
/* -EBUSY, logged, while windows or keys refer to it; dev->lock held. */
int bb_mr_busy(const struct bb_mr_priv *mr, const char *what);

/* A peer, or a request, has invalidated the key: if it is a window's, its region is free of it. */
void bb_mw_invalidated(const struct bb_dev *dev, uint32_t rkey);
/* Let regions go from which completed requests took windows; dev->lock held. */
void bb_mw_settle(const struct bb_dev *dev);
/* A QP is about to forget its requests; dev->lock held. */
void bb_mw_qp_reset(const struct bb_qp *qp);

/*
 * The number of a request with all its bits, while fewer than 2^31 lie between it and the last
 * doorbell: what is kept beyond that must not look new again. Any thread; @seq is read before.
 */
static inline uint64_t
bb_sq_seq64(const struct bb_sq *sq, uint32_t seq)
{
	const uint64_t rung = bb_count_get(&sq->rung_seq);

	return rung + (uint64_t)(int64_t)(int32_t)(seq - (uint32_t)rung);
}

#endif
