/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * UMR WQEs of a kernel's own queue: ibv_rereg_mr() with another PD or other rights.
 *
 * mlx5_ib posts them to a QP of type REG_UMR (umr.c: mlx5r_umr_rereg_pd_access(), Linux 6.1). Such
 * a WQE changes the key of an MR over a page list. It cannot change the translation of a key that
 * was created with its page list. For other keys see soft_umr_load.c. Masks: MLX5_MKEY_MASK_* of
 * the kernel's mlx5/device.h.
 */
#include "soft_umr.h"

#define MASK_PD            (1u << 7)
#define MASK_LR            (1u << 17)
#define MASK_RELAXED_WRITE (1u << 25)
#define MASK_RELAXED_READ  (UINT64_C(1) << 47)
/*
 * Fields of a key that a kernel's UMR may select. The device accepts both bits for relaxed ordering
 * but ignores their values: the key keeps the ordering with which it was created.
 */
#define KNOWN_MASK                                                                                 \
	(BB_MKEY_MASK_KEY | BB_MKEY_MASK_ACCESS | MASK_LR | MASK_PD | MASK_RELAXED_WRITE |         \
	 MASK_RELAXED_READ)

static uint8_t
refuse(struct soft_req *r, const char *why)
{
	r->why = why;
	return BB_SYN_MW_BIND;
}

static void
put_right(bool *right, uint64_t mask, uint64_t bit, bool value)
{
	if ((mask & bit) != 0)
		__atomic_store_n(right, value, __ATOMIC_RELAXED);
}

/* Applies the change to @m, under umr_lock. */
static uint8_t
apply(struct soft_qp *qp, struct soft_req *r, struct soft_mkey *m, uint64_t mask)
{
	const uint8_t *seg = r->wqe + MKEY_SEG;
	uint8_t access = (uint8_t)(bb_get32(seg) >> 8);
	bool needs_lw = (mask & BB_MKEY_MASK_ACCESS) != 0 &&
			(access & (BB_MKEY_RW | BB_MKEY_A)) != 0 && (access & BB_MKEY_LW) == 0;

	if (needs_lw)
		return refuse(r, "remote write and atomic rights need the local write right");
	if ((mask & MASK_PD) != 0 && !soft_mkey_move(qp->dev, m, bb_get32(seg + 12) & 0xffffff))
		return refuse(r, "the UMR names a PD that does not exist");
	put_right(&m->lw, mask, BB_MKEY_MASK_LW, (access & BB_MKEY_LW) != 0);
	put_right(&m->rr, mask, BB_MKEY_MASK_RR, (access & BB_MKEY_RR) != 0);
	put_right(&m->rw, mask, BB_MKEY_MASK_RW, (access & BB_MKEY_RW) != 0);
	put_right(&m->atomic, mask, BB_MKEY_MASK_A, (access & BB_MKEY_A) != 0);
	if ((mask & BB_MKEY_MASK_KEY) != 0)
		__atomic_store_n(&m->key, (m->key & ~0xffu) | (bb_get32(seg + 4) & 0xff),
				 __ATOMIC_RELAXED);
	return 0;
}

uint8_t
soft_umr_kernel(struct soft_qp *qp, struct soft_req *r)
{
	uint32_t key = bb_be32(r->imm), ds = r->wqe[7];
	uint64_t mask = bb_get64(r->wqe + UMR_SEG + 8);
	uint8_t flags = r->wqe[UMR_SEG], synd;
	struct soft_mkey *m;

	if (ds < BB_WQE_UMR_DS)
		return refuse(r, "the UMR has fewer than its 8 fixed segments");
	rte_ticketlock_lock(&qp->dev->umr_lock);
	m = key >> 8 < 1u << SOFT_LOG_MAX_MKEY
		    ? __atomic_load_n(&qp->dev->mkeys[key >> 8], __ATOMIC_ACQUIRE)
		    : NULL;
	if (m != NULL && m->ind != NULL && m->ind->list_cap != 0)
		synd = soft_umr_load(qp, r, m, mask);
	else if (m == NULL || m->key != key || !m->umr_en)
		synd = refuse(r, "the key is not that of an MR with umr_en");
	else if ((flags & BB_UMR_XLT_OFFSET) != 0 || bb_get32(r->wqe + UMR_SEG + 4) != 0)
		synd = refuse(r, "the UMR sets translations of a key that has a page list");
	else if ((mask & ~(uint64_t)KNOWN_MASK) != 0)
		synd = refuse(r, "the mkey mask names a field that a UMR cannot change");
	else
		synd = apply(qp, r, m, mask);
	rte_ticketlock_unlock(&qp->dev->umr_lock);
	return synd;
}
