/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* What the two files of the device side share. */
#ifndef DIFF_EXEC_H
#define DIFF_EXEC_H

#include "bluebell.h"
#include "diff.h"

struct exec {
	uint32_t devs;
	struct bb_dev *dev[DIFF_DEVS];
	struct bb_gid gid[DIFF_DEVS];
	uint16_t lid[DIFF_DEVS];
	bool ib;
	bool own_pace;
	struct bb_pd *pd[PDS];
	struct bb_mr *mr[MRS];
	uint32_t lkey[MRS + 1], rkey[MRS + 1]; /* as last seen, also of dead regions */
	uint32_t key_dev[MRS];                 /* whose numbers these are */
	struct bb_cq *cq[CQS];
	struct bb_qp *qp[QPS];
	uint8_t *arena;
	struct exec_counts counts;
};

/* Write the reason; returns false. */
bool exec_fail(char *why, size_t size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
