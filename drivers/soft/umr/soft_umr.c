/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * UMR WQEs: bind memory windows, set the layout of indirect keys, invalidate windows and keys.
 *
 * Segments and masks are those of rdma-core's mlx5dv.h and libmlx5, and of the kernel's
 * include/linux/mlx5/device.h (MLX5_UMR_*, MLX5_MKEY_MASK_*). A UMR can check whether its key is
 * free. The check has the value 1, which fails on a key in use, or 2, which fails on a free key
 * (comments in the kernel's mr.c). The rules for windows are those of IBTA vol. 1, 10.6.7.2 and
 * o10-37.2.x, and of man ibv_bind_mw. A violation by any UMR gives syndrome 6, a bind error (kernel
 * logs of failed UMRs show it). This device checks at the bind that a window lies in its region. It
 * is an assumption [A] that a card checks this, too: libmlx5 checks it in debug builds only. The
 * kernel does not pass the right MW_BIND to the card. This device needs the right, as the manual
 * page says. A bind may name LOCAL_WRITE, as pyverbs' tests do on cards: libmlx5 passes the right
 * to the card, and a window gives remote rights only, so the right has no effect.
 */
#include "soft_umr.h"

#define CHECK_BITS  (BB_UMR_CHECK_FREE | BB_UMR_CHECK_USED)
#define KNOWN_FLAGS (BB_UMR_INLINE | BB_UMR_XLT_OFFSET | BB_UMR_CHECK_QPN | CHECK_BITS)
/*
 * A bit outside this mask selects a field of the key that windows and indirect keys do not have, or
 * that users may not change (assumption [A]).
 */
#define KNOWN_MASK                                                                                 \
	(BB_MKEY_MASK_LEN | BB_MKEY_MASK_START_ADDR | BB_MKEY_MASK_KEY | BB_MKEY_MASK_QPN |        \
	 BB_MKEY_MASK_ACCESS | BB_MKEY_MASK_FREE)

/* A decoded UMR WQE, and the objects that it names. */
struct umr {
	struct soft_qp *qp;
	struct soft_req *r;
	struct soft_mkey *m;
	struct soft_indirect *ind;
	uint8_t flags;
	uint64_t mask;
	uint32_t key; /* key that the control segment names */
	bool to_free;
	uint8_t access;
	uint32_t qpn, variant;
	uint64_t start, len;
	uint32_t octowords;
	struct soft_mkey *mr; /* memory region to which the WQE binds a window, NULL if none */
};

static uint8_t
refuse(struct umr *u, uint8_t synd, const char *why)
{
	u->r->why = why;
	return synd;
}
#define BAD_WQE(u, why)  refuse(u, BB_SYN_LOCAL_QP_OP, why)
#define BAD_BIND(u, why) refuse(u, BB_SYN_MW_BIND, why)

static bool
all_zero(const uint8_t *p, size_t n)
{
	while (n != 0)
		if (p[--n] != 0)
			return false;
	return true;
}

/*
 * Returns the key with the index of @key, whatever its low byte. Returns NULL if there is no such
 * key.
 */
static struct soft_mkey *
find(const struct soft_dev *dev, uint32_t key)
{
	return key >> 8 < 1u << SOFT_LOG_MAX_MKEY
		       ? __atomic_load_n(&dev->mkeys[key >> 8], __ATOMIC_ACQUIRE)
		       : NULL;
}

/*
 * Decodes the segments. Ignores the fields that the mask does not select, because libmlx5 leaves
 * old values in them. Returns 0 or a syndrome.
 */
static uint8_t
decode(struct umr *u)
{
	const uint8_t *umr = u->r->wqe + UMR_SEG, *mkey = u->r->wqe + MKEY_SEG;
	uint32_t ds = u->r->wqe[7], w;

	if (ds < BB_WQE_UMR_DS)
		return BAD_WQE(u, "the UMR has fewer than its 8 fixed segments");
	u->flags = umr[0];
	u->octowords = bb_get32(umr + 4) >> 16;
	u->mask = bb_get64(umr + 8);
	if ((u->flags & (uint8_t)~KNOWN_FLAGS) != 0 || (u->flags & CHECK_BITS) == CHECK_BITS)
		return BAD_WQE(u, "unknown UMR flags");
	if ((u->flags & BB_UMR_INLINE) == 0)
		return BAD_WQE(
			u, "the translations are not inline in the WQE (UMR flag inline, 0x80)");
	if (!all_zero(umr + 1, 3) || !all_zero(umr + 16, 32))
		return BAD_WQE(u, "reserved bytes of the UMR segment are not 0");
	/*
	 * With BB_UMR_XLT_OFFSET the lower 16 bits are the translation offset, otherwise the size
	 * of signature data. The device supports neither.
	 */
	if ((bb_get32(umr + 4) & 0xffff) != 0)
		return BAD_WQE(u, "the translation offset is not 0");
	if (u->octowords % BB_WQE_XLT_ALIGN != 0 || ds != BB_WQE_UMR_DS + u->octowords)
		return BAD_WQE(
			u,
			"the translations are not whole blocks of 64 bytes, or ds does not count "
			"them");
	if ((u->mask & ~(uint64_t)KNOWN_MASK) != 0)
		return BAD_BIND(
			u, "the mkey mask names a field that a UMR cannot change on this device");
	/*
	 * The kernel never posts a UMR that names a right which UMR may not change
	 * (umr_check_mkey_mask()). The syndrome is an assumption [A].
	 */
	if ((u->mask & BB_MKEY_MASK_A) != 0 && u->qp->dev->opts.no_umr_atomic)
		return BAD_BIND(
			u,
			"the mkey mask names the atomic right, which a UMR cannot change on this "
			"device");
	w = bb_get32(mkey);
	if ((u->mask & BB_MKEY_MASK_FREE) != 0)
		u->to_free = (w >> 24 & BB_MKEY_FREE) != 0;
	u->access = (uint8_t)(w >> 8);
	u->qpn = bb_get32(mkey + 4) >> 8;
	u->variant = bb_get32(mkey + 4) & 0xff;
	u->start = bb_get64(mkey + 16);
	u->len = bb_get64(mkey + 24);
	return 0;
}

/*
 * Checks that the key exists and that its state permits the change. Call it with umr_lock held.
 * Returns 0 or a syndrome.
 */
static uint8_t
check_key(struct umr *u)
{
	const struct soft_indirect *ind;

	u->m = find(u->qp->dev, u->key);
	if (u->m == NULL)
		return BAD_BIND(u, "the key does not exist");
	if (u->m->pdn != u->qp->pdn)
		return BAD_BIND(u, "the key belongs to another protection domain");
	ind = u->ind = u->m->ind;
	if (ind == NULL || !ind->umr || ind->list_cap != 0)
		return BAD_BIND(u,
				"a UMR cannot change the key: it is neither a memory window nor an "
				"indirect key with umr_en");
	/*
	 * A free key still has the low byte of its last use, because LOCAL_INV does not change that
	 * byte. So the low byte is compared only if the key is in use.
	 */
	if (!ind->free && u->m->key != u->key)
		return BAD_BIND(
			u,
			"the low byte of the key is stale: use the key of the latest bind or UMR");
	if ((u->flags & BB_UMR_CHECK_FREE) != 0 && !ind->free)
		return BAD_BIND(u, "the key is in use: invalidate it first");
	if ((u->flags & BB_UMR_CHECK_USED) != 0 && ind->free)
		return BAD_BIND(u, "the key is free: bind or configure it first");
	if ((u->flags & BB_UMR_CHECK_QPN) != 0 && ind->qpn != BB_MKEY_ANY_QP &&
	    ind->qpn != u->qp->qpn)
		return BAD_BIND(u, "another QP bound the key");
	if ((u->mask & BB_MKEY_MASK_QPN) != 0 && u->qpn != BB_MKEY_ANY_QP && u->qpn != u->qp->qpn)
		return BAD_BIND(u, "the UMR assigns the key to another QP");
	return 0;
}

/*
 * Checks that a window of @len bytes at @addr lies in memory region @mr, and that @mr gives the
 * rights. Returns 0 or a syndrome.
 */
static uint8_t
check_region(struct umr *u, const struct soft_mkey *mr, uint64_t addr, uint32_t len)
{
	const struct soft_indirect *ind = mr->ind;
	uint64_t start = ind != NULL ? ind->start : mr->start, size = mr->len;
	bool lw = ind != NULL ? ind->lw : mr->lw;

	if (ind != NULL)
		size = ind->free ? 0 : ind->len;
	else if (mr->detour != SOFT_DETOUR_NONE)
		size = mr->detour_len;
	if (addr < start || len > size || addr - start > size - len)
		return BAD_BIND(u, "the window is not inside the memory region");
	if ((u->access & (BB_MKEY_RW | BB_MKEY_A)) != 0 && !lw)
		return BAD_BIND(u,
				"the window gives writes or atomics, but the memory region has no "
				"LOCAL_WRITE");
	return 0;
}

/* Checks the rules of type 1 and type 2 memory windows. Returns 0 or a syndrome. */
static uint8_t
check_window(struct umr *u)
{
	/*
	 * With option no_umr_atomic the device reports umr_modify_atomic_disabled, so software
	 * leaves the atomic right out of the mask.
	 */
	const uint64_t rights = BB_MKEY_MASK_ACCESS &
				~(uint64_t)(u->qp->dev->opts.no_umr_atomic ? BB_MKEY_MASK_A : 0);
	const uint64_t bind =
		BB_MKEY_MASK_FREE | BB_MKEY_MASK_LEN | BB_MKEY_MASK_START_ADDR | rights;
	const uint8_t *x = u->r->wqe + XLT;
	struct soft_mkey *mr;
	uint64_t addr;
	uint32_t len;
	uint8_t synd;
	bool type2 = u->ind->mw_type == 2;

	/*
	 * The WQE must match the type of the window: only a bind can unbind a type 1 window
	 * (o10-37.2.26).
	 */
	if (((u->mask & BB_MKEY_MASK_QPN) != 0) != type2)
		return BAD_BIND(u,
				type2 ? "a type 2 window cannot be bound as type 1"
				      : "a type 1 window cannot be bound or invalidated as type 2");
	if (u->to_free)
		return u->octowords == 0
			       ? 0
			       : BAD_BIND(u, "the UMR frees the key but carries translations");
	if ((u->mask & bind) != bind || u->octowords != BB_WQE_XLT_ALIGN)
		return BAD_BIND(
			u, "a bind must set the length, start, rights and one translation of the "
			   "window");
	if (type2 && !u->ind->free)
		return BAD_BIND(u, "the type 2 window is already bound: invalidate it first");
	if (type2 && u->qpn != u->qp->qpn)
		return BAD_BIND(
			u,
			"a type 2 window is bound to a QP other than the one that posts the bind");
	len = bb_get32(x);
	addr = bb_get64(x + 8);
	mr = find(u->qp->dev, bb_get32(x + 4));
	if (mr == NULL || (mr->ind != NULL && mr->ind->kind != SOFT_XLT_PAGES) ||
	    mr->key != bb_get32(x + 4))
		return BAD_BIND(u, "the lkey of the bind is not the lkey of a memory region");
	if (mr->pdn != u->qp->pdn)
		return BAD_BIND(u, "the memory region belongs to another protection domain");
	if (!mr->mw_bind)
		return BAD_BIND(u, "the memory region was registered without MW_BIND");
	if (len == 0 || u->len != len)
		return BAD_BIND(
			u, "the length of the bind's translation is 0 or differs from the window's "
			   "length");
	if (mr->detour == SOFT_DETOUR_PAGED)
		return BAD_BIND(u, "a window cannot be bound to an ON_DEMAND memory region");
	synd = check_region(u, mr, addr, len);
	if (synd != 0)
		return synd;
	if (u->start != addr && (!type2 || u->start != 0))
		return BAD_BIND(
			u, "the start of the window is not the address of its first byte (0 is "
			   "allowed for type 2)");
	if (!all_zero(x + BB_WQE_SEG, 3 * BB_WQE_SEG))
		return BAD_BIND(u, "a window has only one translation");
	u->mr = mr;
	return 0;
}

/*
 * Checks the interleaved (strided) layout that a UMR gives to a key. Changes nothing. Returns 0 or
 * a syndrome.
 */
static uint8_t
check_pattern(struct umr *u)
{
	const uint8_t *x = u->r->wqe + XLT;
	uint32_t n = bb_get32(x + 12) & 0xffff, i;
	uint64_t sum = 0;

	if (u->qp->dev->opts.no_interleaved)
		return BAD_BIND(u, "the device has no interleaved keys (option no_interleaved)");
	if (n == 0 || n + 1 > u->octowords || bb_get32(x + 12) >> 16 != 0)
		return BAD_BIND(u, "the WQE does not contain all blocks of the pattern");
	if (bb_get32(x + 8) == 0)
		return BAD_BIND(u, "the repeat count of the pattern is 0");
	for (i = 1; i <= n; i++) {
		uint32_t w = bb_get32(x + (size_t)i * BB_WQE_SEG);

		if ((w & 0xffff) == 0 || w >> 16 < (w & 0xffff))
			return BAD_BIND(u, "a block of the pattern is empty, or longer than its "
					   "stride");
		sum += w & 0xffff;
	}
	if (sum != bb_get32(x))
		return BAD_BIND(u, "the byte count of the pattern is not the sum of its blocks");
	return 0;
}

static bool
is_pattern(const struct umr *u)
{
	return u->octowords != 0 && bb_get32(u->r->wqe + XLT + 4) == BB_WQE_REPEAT_OP;
}

static uint8_t
check_layout(struct umr *u)
{
	if (u->octowords > u->ind->cap)
		return BAD_BIND(u, "the UMR has more translations than the key was created for");
	if ((u->mask & BB_MKEY_MASK_ACCESS) != 0 && (u->access & (BB_MKEY_RW | BB_MKEY_A)) != 0 &&
	    (u->access & BB_MKEY_LW) == 0)
		return BAD_BIND(u, "remote write and atomic rights need the local write right");
	return is_pattern(u) ? check_pattern(u) : 0;
}

static void
take_list(struct umr *u)
{
	const uint8_t *x = u->r->wqe + XLT;
	uint64_t end = 0;
	uint32_t i;

	u->ind->kind = SOFT_XLT_LIST;
	u->ind->n = u->octowords;
	for (i = 0; i < u->octowords; i++, x += BB_WQE_SEG) {
		end += bb_get32(x);
		u->ind->x[i] = (struct soft_xlt){
			.end = end, .key = bb_get32(x + 4), .addr = bb_get64(x + 8)};
	}
}

static void
take_pattern(struct umr *u)
{
	const uint8_t *x = u->r->wqe + XLT;
	uint64_t end = 0;
	uint32_t i;

	u->ind->kind = SOFT_XLT_STRIDED;
	u->ind->round = bb_get32(x);
	u->ind->repeat = bb_get32(x + 8);
	u->ind->n = bb_get32(x + 12) & 0xffff;
	for (i = 0; i < u->ind->n; i++) {
		x += BB_WQE_SEG;
		end += bb_get32(x) & 0xffff;
		u->ind->x[i] = (struct soft_xlt){.stride = bb_get32(x) >> 16,
						 .end = end,
						 .key = bb_get32(x + 4),
						 .addr = bb_get64(x + 8)};
	}
}

bool
soft_gate_close(struct soft_indirect *ind, uint32_t own)
{
	/*
	 * The gate of a free key is already closed, and a closed gate rejects every access. So for
	 * a free key the expected value includes the flag.
	 */
	uint32_t now = own | (ind->free ? SOFT_GATE_CLOSED : 0);

	return __atomic_compare_exchange_n(&ind->gate, &now, own | SOFT_GATE_CLOSED, false,
					   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static void
unbind(struct soft_indirect *ind)
{
	if (ind->bound != NULL)
		ind->bound->windows--;
	ind->bound = NULL;
}

/*
 * Applies the change to the key. The caller has closed the gate (the flag that rejects new
 * accesses), so no access uses the key meanwhile.
 */
static void
apply(struct umr *u)
{
	struct soft_indirect *ind = u->ind;

	unbind(ind);
	if (u->mr != NULL)
		u->mr->windows++;
	ind->bound = u->mr;
	if ((u->mask & BB_MKEY_MASK_LEN) != 0)
		ind->len = u->len;
	if ((u->mask & BB_MKEY_MASK_START_ADDR) != 0)
		ind->start = u->start;
	if ((u->mask & BB_MKEY_MASK_QPN) != 0)
		ind->qpn = u->qpn;
	if ((u->mask & BB_MKEY_MASK_LW) != 0)
		ind->lw = (u->access & BB_MKEY_LW) != 0 && ind->mw_type == 0;
	if ((u->mask & BB_MKEY_MASK_RR) != 0)
		ind->rr = (u->access & BB_MKEY_RR) != 0;
	if ((u->mask & BB_MKEY_MASK_RW) != 0)
		ind->rw = (u->access & BB_MKEY_RW) != 0;
	if ((u->mask & BB_MKEY_MASK_A) != 0)
		ind->atomic = (u->access & BB_MKEY_A) != 0;
	if ((u->mask & BB_MKEY_MASK_KEY) != 0)
		__atomic_store_n(&u->m->key, (u->m->key & ~0xffu) | u->variant, __ATOMIC_RELAXED);
	if (is_pattern(u))
		take_pattern(u);
	else if (u->octowords != 0)
		take_list(u);
	if ((u->mask & BB_MKEY_MASK_FREE) != 0)
		ind->free = u->to_free;
	if (!ind->free)
		__atomic_fetch_and(&ind->gate, ~SOFT_GATE_CLOSED, __ATOMIC_RELEASE);
}

static uint8_t
execute_locked(struct umr *u)
{
	uint8_t synd = check_key(u);

	if (synd == 0)
		synd = u->ind->mw_type != 0 ? check_window(u) : check_layout(u);
	if (synd != 0)
		return synd;
	if (!soft_gate_close(u->ind, 0))
		return SOFT_SYN_AGAIN;
	apply(u);
	return 0;
}

uint8_t
soft_umr_execute(struct soft_qp *qp, struct soft_req *r)
{
	struct umr u = {.qp = qp, .r = r, .key = bb_be32(r->imm)};
	uint8_t synd;

	if (qp->special != 0)
		return soft_umr_kernel(qp, r);
	synd = decode(&u);
	if (synd != 0)
		return synd;
	rte_ticketlock_lock(&qp->dev->umr_lock);
	synd = execute_locked(&u);
	rte_ticketlock_unlock(&qp->dev->umr_lock);
	if (synd == 0) {
		qp->umr_index = u.key >> 8;
		qp->umr_end = qp->sq_pi;
	}
	return synd;
}

/* Returns NULL if a peer may invalidate key @m, else the reason why it may not. */
static const char *
not_invalidated(const struct soft_mkey *m, const struct soft_qp *p)
{
	if (m == NULL || m->pdn != p->pdn)
		return "the key does not exist in the QP's protection domain";
	if (m->ind == NULL || !m->ind->en_rinval)
		return "a peer cannot invalidate the key: it is neither a type 2 window nor an "
		       "indirect key with en_rinval";
	if (m->ind->free)
		return "the key is already invalid";
	if (m->ind->qpn != BB_MKEY_ANY_QP && m->ind->qpn != p->qpn)
		return "the memory window was bound by another QP";
	return NULL;
}

int
soft_key_invalidate(const struct soft_engine *e, const struct soft_qp *p, uint32_t rkey,
		    const char **why)
{
	struct soft_mkey *m;
	uint32_t own = 0, i;
	int ret = 0;

	rte_ticketlock_lock(&p->dev->umr_lock);
	m = find(p->dev, rkey);
	if (m != NULL && m->key != rkey)
		m = NULL;
	*why = not_invalidated(m, p);
	if (*why != NULL) {
		ret = -EACCES;
		goto out;
	}
	/*
	 * Buffers of this receive may use the key themselves. Such uses do not prevent the
	 * invalidation.
	 */
	for (i = 0; i < e->n_held; i++)
		own += e->held[i] == m->ind;
	if (!soft_gate_close(m->ind, own)) {
		ret = -EAGAIN;
		goto out;
	}
	unbind(m->ind);
	m->ind->free = true;
	m->ind->qpn = BB_MKEY_ANY_QP;
out:
	rte_ticketlock_unlock(&p->dev->umr_lock);
	return ret;
}
