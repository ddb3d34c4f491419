/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * UMR WQEs of a kernel's own queue for keys that CREATE_MKEY made free, without translations.
 *
 * The kernel loads the translations by one or more UMRs, each for a part of the key's list. The
 * last of these UMRs also makes the key usable. Later UMRs replace parts of the list while the key
 * is in use, and a revocation makes the key free again (umr.c: mlx5r_umr_update_xlt(),
 * mlx5r_umr_update_mr_pas() and mlx5r_umr_revoke_mr(), Linux 6.1). A list has pages (8 bytes each)
 * or entries of other keys (KSM, 16 bytes each). The UMR has the new part of the list inline, or
 * names it by a key over physical addresses.
 *
 * A request that uses the key has ended before the UMR changes the list. So no access to a page
 * happens after the UMR that removes the page has completed.
 *
 * Masks: MLX5_MKEY_MASK_* of the kernel's mlx5/device.h.
 */
#include "soft_umr.h"

#define MASK_PAGE_SIZE     (1u << 1)
#define MASK_PD            (1u << 7)
#define MASK_LR            (1u << 17)
#define MASK_RELAXED_WRITE (1u << 25)
#define MASK_RELAXED_READ  (UINT64_C(1) << 47)
/* The device ignores the bits of relaxed ordering: writes to such keys are in order. */
#define KNOWN_MASK                                                                                 \
	(BB_MKEY_MASK_LEN | MASK_PAGE_SIZE | BB_MKEY_MASK_START_ADDR | MASK_PD |                   \
	 BB_MKEY_MASK_KEY | BB_MKEY_MASK_QPN | MASK_LR | BB_MKEY_MASK_ACCESS | BB_MKEY_MASK_FREE | \
	 MASK_RELAXED_WRITE | MASK_RELAXED_READ)

#define CHECK_BITS  (BB_UMR_CHECK_FREE | BB_UMR_CHECK_USED)
#define KNOWN_FLAGS (BB_UMR_INLINE | BB_UMR_XLT_OFFSET | CHECK_BITS)

#define LOG_MIN_PAGE 12u
#define LENGTH64     (1u << 31) /* mkc.length64, in the dword of the PD */

/* A decoded UMR. */
struct load {
	struct soft_qp *qp;
	struct soft_req *r;
	struct soft_mkey *m;
	struct soft_indirect *ind;
	const uint8_t *seg; /* mkey segment */
	uint64_t mask;
	uint8_t flags, access;
	bool to_free;        /* state of the key after the UMR */
	uint32_t n;          /* size of the new part of the list, in units of 16 bytes */
	uint64_t offset;     /* its position in the list, in the same units */
	uint32_t log_entity; /* log2 of the bytes of a page or entry, after the UMR */
};

static uint8_t
refuse(struct load *l, const char *why)
{
	l->r->why = why;
	return BB_SYN_MW_BIND;
}

static bool
changes(const struct load *l, uint64_t bit)
{
	return (l->mask & bit) != 0;
}

/* Decodes the segments, and checks the state of the key. Returns 0 or a syndrome. */
static uint8_t
decode(struct load *l)
{
	const uint8_t *umr = l->r->wqe + UMR_SEG;
	const struct soft_indirect *ind = l->ind;
	uint32_t key = bb_be32(l->r->imm), sizes = bb_get32(umr + 4);

	l->flags = umr[0];
	l->n = sizes >> 16;
	l->offset = (uint64_t)bb_get32(umr + 16) << 16 | (sizes & 0xffff);
	l->access = (uint8_t)(bb_get32(l->seg) >> 8);
	l->to_free = changes(l, BB_MKEY_MASK_FREE) ? (l->seg[0] & BB_MKEY_FREE) != 0 : ind->free;
	l->log_entity = changes(l, MASK_PAGE_SIZE) ? bb_get32(l->seg + 56) & 0x1f : ind->log_entity;
	if ((l->flags & (uint8_t)~KNOWN_FLAGS) != 0 || (l->flags & CHECK_BITS) == CHECK_BITS)
		return refuse(l, "unknown UMR flags");
	if ((l->mask & ~(uint64_t)KNOWN_MASK) != 0)
		return refuse(l, "the mkey mask names a field that a UMR cannot change");
	/* The low byte of a free key is that of its last use. */
	if (!ind->free && l->m->key != key)
		return refuse(l, "the low byte of the key is stale");
	if ((l->flags & BB_UMR_CHECK_FREE) != 0 && !ind->free)
		return refuse(l, "the key is in use: revoke it first");
	if ((l->flags & BB_UMR_CHECK_USED) != 0 && ind->free)
		return refuse(l, "the key is free: make it usable first");
	if ((l->flags & BB_UMR_XLT_OFFSET) == 0 && l->offset != 0)
		return refuse(l, "the UMR has a translation offset, but not its flag");
	if (l->n % BB_WQE_XLT_ALIGN != 0 || l->offset % BB_WQE_XLT_ALIGN != 0)
		return refuse(l, "the translations are not whole blocks of 64 bytes");
	if (l->n > ind->list_cap || l->offset > ind->list_cap - l->n)
		return refuse(l, "the translations end after the key's list");
	return 0;
}

/* Checks the new attributes of the key. Returns 0 or a syndrome. */
static uint8_t
check(struct load *l)
{
	const uint8_t write = BB_MKEY_RW | BB_MKEY_A;

	if (changes(l, BB_MKEY_MASK_ACCESS) && (l->access & write) != 0 &&
	    (l->access & BB_MKEY_LW) == 0)
		return refuse(l, "remote write and atomic rights need the local write right");
	if (changes(l, BB_MKEY_MASK_QPN) && bb_get32(l->seg + 4) >> 8 != BB_MKEY_ANY_QP)
		return refuse(l, "the UMR assigns the key to a QP");
	if (!l->to_free && l->log_entity < LOG_MIN_PAGE)
		return refuse(l, "the key becomes usable with pages of less than 4096 bytes");
	return 0;
}

/*
 * Resolves the key and the address by which the UMR names its part of the list, into e->local. Only
 * a key over physical addresses of the same guest may name it. Returns 0 or a syndrome.
 */
static uint8_t
find_list(struct soft_engine *e, struct load *l)
{
	const uint8_t *data = l->r->wqe + XLT;
	uint32_t ds = l->r->wqe[7], lkey = bb_get32(data + 4);
	const struct soft_mkey *from;

	soft_frags_clear(&e->local);
	if (l->n == 0)
		return 0;
	if ((l->flags & BB_UMR_INLINE) != 0) {
		if (ds != BB_WQE_UMR_DS + l->n)
			return refuse(l, "ds does not count the inline translations");
		e->local.p[0] = (struct soft_frag){.p = l->r->wqe + XLT,
						   .len = (uint64_t)l->n * SOFT_LIST_UNIT};
		e->local.n = 1;
		return 0;
	}
	if (ds != BB_WQE_UMR_DS + 1 || bb_get32(data) != l->n * SOFT_LIST_UNIT)
		return refuse(l, "the UMR needs one data segment, of the length of its "
				 "translations");
	from = soft_mkey_find(l->qp->dev, lkey);
	if (from == NULL || from->ind == NULL || from->ind->kind != SOFT_XLT_PHYS ||
	    from->ind->phys != l->ind->phys)
		return refuse(l, "the key of the translations is not one over the guest's physical "
				 "addresses");
	return soft_mem_map(e, l->qp->dev, from->pdn, l->qp->qpn, lkey, bb_get64(data + 8),
			    (uint64_t)l->n * SOFT_LIST_UNIT, SOFT_RIGHT_LOCAL_READ, &e->local,
			    &l->r->why)
		       ? 0
		       : BB_SYN_MW_BIND;
}

static void
put(struct load *l, uint64_t bit, bool *right, uint8_t access)
{
	if (changes(l, bit))
		*right = (l->access & access) != 0;
}

/* Applies the UMR. The caller has closed the gate, so no request uses the key. */
static void
apply(const struct soft_engine *e, struct load *l)
{
	struct soft_indirect *ind = l->ind;
	uint8_t *to;
	uint32_t i;

	if (l->n != 0) {
		to = ind->list + l->offset * SOFT_LIST_UNIT;
		for (i = 0; i < e->local.n; i++) {
			memcpy(to, e->local.p[i].p, e->local.p[i].len);
			to += e->local.p[i].len;
		}
	}
	put(l, BB_MKEY_MASK_LW, &ind->lw, BB_MKEY_LW);
	put(l, BB_MKEY_MASK_RR, &ind->rr, BB_MKEY_RR);
	put(l, BB_MKEY_MASK_RW, &ind->rw, BB_MKEY_RW);
	put(l, BB_MKEY_MASK_A, &ind->atomic, BB_MKEY_A);
	if (changes(l, BB_MKEY_MASK_START_ADDR))
		ind->start = bb_get64(l->seg + 16);
	if (changes(l, BB_MKEY_MASK_LEN))
		ind->len = (bb_get32(l->seg + 12) & LENGTH64) != 0 ? UINT64_MAX
								   : bb_get64(l->seg + 24);
	if (changes(l, BB_MKEY_MASK_KEY))
		__atomic_store_n(&l->m->key, (l->m->key & ~0xffu) | (bb_get32(l->seg + 4) & 0xff),
				 __ATOMIC_RELAXED);
	ind->log_entity = l->log_entity;
	if (l->to_free && !ind->free)
		soft_list_free(ind);
	ind->free = l->to_free;
}

uint8_t
soft_umr_load(struct soft_qp *qp, struct soft_req *r, struct soft_mkey *m, uint64_t mask)
{
	struct soft_engine *e = qp->engine;
	struct load l = {
		.qp = qp, .r = r, .m = m, .ind = m->ind, .seg = r->wqe + MKEY_SEG, .mask = mask};
	uint8_t synd = decode(&l);

	if (synd == 0)
		synd = check(&l);
	if (synd == 0)
		synd = find_list(e, &l);
	if (synd != 0)
		return synd;
	if (!soft_gate_close(m->ind, 0))
		return SOFT_SYN_AGAIN;
	if (l.n != 0 && !soft_list_make(m->ind))
		synd = refuse(&l, "out of memory for the translations of the guest's keys");
	else if (changes(&l, MASK_PD) &&
		 !soft_mkey_move(qp->dev, m, bb_get32(l.seg + 12) & 0xffffff))
		synd = refuse(&l, "the UMR names a PD that does not exist");
	else
		apply(e, &l);
	if (!m->ind->free)
		__atomic_fetch_and(&m->ind->gate, ~SOFT_GATE_CLOSED, __ATOMIC_RELEASE);
	return synd;
}
