/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Declarations shared by the files of the device side. */
#ifndef DIFF_EXEC_H
#define DIFF_EXEC_H

#include "bb_wr.h"
#include "bluebell.h"
#include "diff.h"

struct exec {
	struct world world;
	struct bb_dev *dev[DIFF_DEVS];
	uint16_t lid[DIFF_DEVS];
	struct bb_pd *pd[PDS];
	struct bb_mr *mr[MRS];
	uint32_t lkey[KEYS], rkey[KEYS]; /* last known values, also of destroyed objects */
	uint32_t key_dev[KEYS];          /* device of these keys */
	struct bb_mw *mw[MWS];
	uint32_t mw_first[MWS]; /* its first key */
	struct bb_dm *dm[DMS];
	struct bb_mkey *mkey[MKEYS];
	struct bb_cq *cq[CQS];
	struct bb_qp *qp[QPS];
	struct bb_ah *ah[AHS];
	struct bb_srq *srq[SRQS];
	uint32_t n_events; /* events of this step */
	struct m_event event[MAX_EVENTS];
	uint8_t *arena;
	struct exec_counts counts;
	bool hurry;
};

#define NO_QPN 0xfffff0u

/* Returns the address of a buffer's offset in a request. */
static inline uintptr_t
exec_addr(const struct exec *x, uint32_t buf, uint32_t off)
{
	return buf == ZERO_BUF ? off : (uintptr_t)(x->arena + ARENA_OF(buf, off));
}

/* ---- exec_mem.c */
int exec_mem(struct exec *x, const struct model *m, const struct step *s);
int exec_mem_clear(struct exec *x);

/* ---- exec_post.c */
/* Returns a key for a device. Keys of the other device are not tested. */
uint32_t exec_key_on(const struct exec *x, const uint32_t *keys, uint32_t slot, uint32_t dev);
int exec_srq(struct exec *x, const struct model *m, const struct step *s);
/* Returns the number posted << 8 | -error. */
int exec_list(struct exec *x, const struct model *m, const struct step *s);
int exec_post(struct exec *x, const struct model *m, const struct step *s);

/* ---- compare.c */
/* Writes the reason and returns false. */
bool exec_fail(char *why, size_t size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
