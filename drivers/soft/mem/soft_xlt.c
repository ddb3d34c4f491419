/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Translation of a range of an indirect key to memory.
 *
 * The key that the request names must give the access right. The keys that this key's entries name
 * need another right: local write for a write, local read for a read. This rule also holds for a
 * memory window and its MR (man ibv_bind_mw), and for Linux' signature keys, which have no remote
 * rights. Each key that an entry names must belong to the QP's PD and cover the range that its
 * entry names. It is an assumption [A] that a card makes these checks at every access, and not when
 * the key is created.
 *
 * The owner of a key chooses how many entries each byte of a message needs. So SOFT_MAX_STEPS
 * limits the work for a message, and the steps count against the engine's turn.
 */
#include <stdlib.h>

#include "soft_access.h"

struct walk {
	struct soft_engine *e;
	const struct soft_dev *dev;
	uint32_t pdn, qpn; /* PD and number of the QP that makes the access */
	struct soft_frags *to;
	/* index of the first fragment that the current translation appends to "to" */
	uint32_t first;
	const char **why;
};

static bool walk_key(struct walk *w, uint32_t key, uint64_t addr, uint64_t len,
		     enum soft_right right, uint32_t depth);

/* Number of entries above which a list is long: soft_xlt_shrink() frees its memory. */
#define LONG_LIST 4096u
/* Maximum number of references that an engine holds. Some messages may be in flight at a time. */
#define MAX_HELD (2 * SOFT_MAX_STEPS)

/* Bits of an entry of SOFT_XLT_PAGES (mtt.rd_en and mtt.wr_en of Linux's mlx5_ifc.h). */
#define PAGE_READ  UINT64_C(1)
#define PAGE_WRITE UINT64_C(2)

static bool
refuse(struct walk *w, enum soft_key_fault fault, const char *why)
{
	w->e->key_fault = fault;
	*w->why = why;
	return false;
}

/* Counts one step of the translation. Returns false if the message has used all steps. */
static bool
step(struct walk *w)
{
	if (unlikely(w->to->steps == SOFT_MAX_STEPS))
		return refuse(w, SOFT_KEY_RANGE,
			      "the translation of the message through indirect keys takes more "
			      "steps than the device supports");
	w->to->steps++;
	return true;
}

bool
soft_frags_add(struct soft_frags *to, uint8_t *p, uint64_t len)
{
	if (to->n == to->cap) {
		uint32_t cap = to->cap * 2;
		struct soft_frag *more;

		if (cap > SOFT_MAX_PARTS)
			return false;
		more = realloc(to->grown ? to->p : NULL, cap * sizeof(*more));
		if (more == NULL)
			return false;
		if (!to->grown)
			memcpy(more, to->p, to->n * sizeof(*more));
		to->p = more;
		to->cap = cap;
		to->grown = true;
	}
	to->p[to->n].p = p;
	to->p[to->n++].len = len;
	return true;
}

static bool
add(struct walk *w, uint8_t *p, uint64_t len)
{
	struct soft_frag *last = w->to->n > w->first ? &w->to->p[w->to->n - 1] : NULL;

	if (last != NULL && last->p + last->len == p) {
		last->len += len;
		return true;
	}
	if (!soft_frags_add(w->to, p, len))
		return refuse(w, SOFT_KEY_RANGE,
			      "the indirect keys split the message into more parts than the device "
			      "supports");
	return true;
}

/*
 * Holds a reference to a key, so that no UMR changes the key before the request is done. Returns
 * false if the key is in state free, or if a UMR is about to change the key.
 */
static bool
hold(struct walk *w, const struct soft_mkey *m, uint32_t key)
{
	struct soft_engine *e = w->e;

	if (!m->ind->umr || (e->n_held != 0 && e->held[e->n_held - 1] == m->ind))
		return true;
	if (e->n_held == e->cap_held) {
		uint32_t cap = e->cap_held == 0 ? 16 : e->cap_held * 2;
		struct soft_indirect **more =
			cap > MAX_HELD ? NULL : realloc(e->held, cap * sizeof(*more));

		if (more == NULL)
			return refuse(w, SOFT_KEY_PD,
				      "out of memory for the references to indirect keys");
		e->held = more;
		e->cap_held = cap;
	}
	if ((__atomic_add_fetch(&m->ind->gate, 1, __ATOMIC_ACQ_REL) & SOFT_GATE_CLOSED) != 0 ||
	    __atomic_load_n(&m->key, __ATOMIC_RELAXED) != key) {
		__atomic_sub_fetch(&m->ind->gate, 1, __ATOMIC_RELEASE);
		return refuse(w, SOFT_KEY_FREE,
			      m->ind->mw_type != 0
				      ? "the memory window is not bound"
				      : "the key is free: configure it by a UMR first");
	}
	e->held[e->n_held++] = m->ind;
	return true;
}

void
soft_xlt_release(struct soft_engine *e)
{
	while (e->n_held != 0)
		__atomic_sub_fetch(&e->held[--e->n_held]->gate, 1, __ATOMIC_RELEASE);
}

/* Returns the first entry that ends after byte @off, or the number of entries if there is none. */
static uint32_t
entry_at(const struct soft_indirect *ind, uint64_t off)
{
	uint32_t low = 0, high = ind->n;

	while (low != high) {
		const uint32_t i = (low + high) / 2;

		if (ind->x[i].end > off)
			high = i;
		else
			low = i + 1;
	}
	return low;
}

/*
 * Translates the bytes of a list, or of repetition @turn of a pattern, from byte @off of it on.
 * Subtracts their number from *len. Ends with *len bytes or with the last entry.
 */
static bool
walk_entries(struct walk *w, const struct soft_indirect *ind, uint64_t turn, uint64_t off,
	     uint64_t *len, enum soft_right right, uint32_t depth)
{
	uint32_t i;

	for (i = entry_at(ind, off); i < ind->n && *len != 0; i++) {
		const struct soft_xlt *x = &ind->x[i];
		const uint64_t in = off - soft_xlt_begin(ind, i);
		const uint64_t part = RTE_MIN(*len, x->end - off);

		if (!step(w))
			return false;
		/* An entry of a UMR may have no bytes. */
		if (part != 0 &&
		    !walk_key(w, x->key, x->addr + turn * x->stride + in, part, right, depth))
			return false;
		off += part;
		*len -= part;
	}
	return true;
}

static bool
walk_list(struct walk *w, const struct soft_indirect *ind, uint64_t off, uint64_t len,
	  enum soft_right right, uint32_t depth)
{
	if (!walk_entries(w, ind, 0, off, &len, right, depth))
		return false;
	return len == 0 ||
	       refuse(w, SOFT_KEY_RANGE, "the range ends after the last entry of the key");
}

static bool
missing(struct walk *w)
{
	return refuse(w, SOFT_KEY_PAGE,
		      "a page of the ON_DEMAND key is missing, or lacks the right that the access "
		      "needs");
}

/*
 * Reads entry @i of a key of equal pieces. Returns false if the key has no such entry, or if the
 * entry stands for missing memory.
 */
static bool
fixed_entry(struct walk *w, const struct soft_indirect *ind, uint64_t i, uint32_t *key,
	    uint64_t *addr)
{
	const uint8_t *at;

	if (i >= (ind->list_cap != 0 ? ind->list_cap : ind->n))
		return refuse(w, SOFT_KEY_RANGE, "the range ends after the last entry of the key");
	if (ind->list_cap == 0) {
		*key = ind->x[i].key;
		*addr = ind->x[i].addr;
		return true;
	}
	if (ind->list == NULL)
		return missing(w);
	at = ind->list + i * SOFT_LIST_UNIT;
	*key = bb_get32(at + 4);
	*addr = bb_get64(at + 8);
	return *key != SOFT_NULL_KEY || missing(w);
}

static bool
walk_fixed(struct walk *w, const struct soft_indirect *ind, uint64_t off, uint64_t len,
	   enum soft_right right, uint32_t depth)
{
	uint64_t size = UINT64_C(1) << ind->log_entity;

	while (len != 0) {
		uint64_t in = off & (size - 1), part = RTE_MIN(len, size - in), addr;
		uint32_t key;

		if (!step(w) || !fixed_entry(w, ind, off >> ind->log_entity, &key, &addr) ||
		    !walk_key(w, key, addr + in, part, right, depth))
			return false;
		off += part;
		len -= part;
	}
	return true;
}

static bool
walk_strided(struct walk *w, const struct soft_indirect *ind, uint64_t off, uint64_t len,
	     enum soft_right right, uint32_t depth)
{
	uint64_t turn = off / ind->round;

	for (off %= ind->round; len != 0; off = 0, turn++) {
		if (turn >= ind->repeat)
			return refuse(w, SOFT_KEY_RANGE,
				      "the range ends after the pattern of the key");
		if (!walk_entries(w, ind, turn, off, &len, right, depth))
			return false;
	}
	return true;
}

static bool
walk_phys(struct walk *w, const struct soft_indirect *ind, uint64_t addr, uint64_t len)
{
	while (len != 0) {
		uint64_t part = len;
		uint8_t *p = soft_phys_find(ind->phys, addr, &part);

		if (p == NULL)
			return refuse(w, SOFT_KEY_RANGE, "the guest has no memory at the address");
		if (!step(w) || !add(w, p, part))
			return false;
		addr += part;
		len -= part;
	}
	return true;
}

/* @off: offset from the start of the first page. */
static bool
walk_pages(struct walk *w, const struct soft_indirect *ind, uint64_t off, uint64_t len,
	   uint64_t right)
{
	const uint64_t page = UINT64_C(1) << ind->log_entity;

	while (len != 0) {
		uint64_t i = off >> ind->log_entity, in = off & (page - 1), entry;
		uint64_t part = RTE_MIN(len, page - in);

		if (!step(w))
			return false;
		if (i / 2 >= ind->list_cap)
			return refuse(w, SOFT_KEY_RANGE,
				      "the range ends after the last page of the key");
		entry = ind->list != NULL ? bb_get64(ind->list + i * sizeof(entry)) : 0;
		if ((entry & right) == 0)
			return missing(w);
		if (!walk_phys(w, ind, (entry & ~(page - 1)) + in, part))
			return false;
		off += part;
		len -= part;
	}
	return true;
}

static bool
ind_allows(const struct soft_indirect *ind, enum soft_right right)
{
	switch (right) {
	case SOFT_RIGHT_LOCAL_WRITE:
		return ind->lw;
	case SOFT_RIGHT_REMOTE_READ:
		return ind->rr;
	case SOFT_RIGHT_REMOTE_WRITE:
		return ind->rw;
	case SOFT_RIGHT_ATOMIC:
		return ind->atomic;
	default:
		return true;
	}
}

static bool
walk_indirect(struct walk *w, const struct soft_mkey *m, uint32_t key, uint64_t addr, uint64_t len,
	      enum soft_right right, uint32_t depth)
{
	const struct soft_indirect *ind = m->ind;
	enum soft_right below;

	if (depth == SOFT_INDIRECTION)
		return refuse(w, SOFT_KEY_RANGE,
			      "the indirect keys are nested deeper than max_indirection");
	if (m->pdn != w->pdn)
		return refuse(w, SOFT_KEY_PD, "the key belongs to another protection domain");
	if (ind->mw_type != 0 &&
	    (depth != 0 || right == SOFT_RIGHT_LOCAL_READ || right == SOFT_RIGHT_LOCAL_WRITE))
		return refuse(w, SOFT_KEY_RIGHT, "a memory window is not valid as a local key");
	if (!hold(w, m, key))
		return false;
	if (ind->qpn != BB_MKEY_ANY_QP && ind->qpn != w->qpn)
		return refuse(
			w, SOFT_KEY_PD,
			"another QP bound the memory window, so only that QP's peer may use it");
	if (addr < ind->start || len > ind->len || addr - ind->start > ind->len - len)
		return refuse(w, SOFT_KEY_RANGE, "the range is not inside the key's memory");
	if (!ind_allows(ind, right))
		return refuse(w, SOFT_KEY_RIGHT,
			      "the key does not have the right that the access needs");
	below = right == SOFT_RIGHT_LOCAL_READ || right == SOFT_RIGHT_REMOTE_READ
			? SOFT_RIGHT_LOCAL_READ
			: SOFT_RIGHT_LOCAL_WRITE;
	addr -= ind->start;
	switch (ind->kind) {
	case SOFT_XLT_FIXED:
		return walk_fixed(w, ind, addr, len, below, depth + 1);
	case SOFT_XLT_STRIDED:
		return walk_strided(w, ind, addr, len, below, depth + 1);
	case SOFT_XLT_PHYS:
		return walk_phys(w, ind, addr, len);
	case SOFT_XLT_PAGES:
		addr += ind->start & ((UINT64_C(1) << ind->log_entity) - 1);
		return walk_pages(w, ind, addr, len,
				  below == SOFT_RIGHT_LOCAL_WRITE ? PAGE_WRITE : PAGE_READ);
	default:
		return walk_list(w, ind, addr, len, below, depth + 1);
	}
}

static bool
walk_key(struct walk *w, uint32_t key, uint64_t addr, uint64_t len, enum soft_right right,
	 uint32_t depth)
{
	const struct soft_mkey *m = soft_mkey_find(w->dev, key);
	uint8_t *p;

	if (m != NULL && m->ind != NULL)
		return walk_indirect(w, m, key, addr, len, right, depth);
	p = soft_mem_find(w->e, w->dev, key, w->pdn, addr, len, right, w->why);
	return p != NULL && add(w, p, len);
}

bool
soft_xlt_map(struct soft_engine *e, const struct soft_dev *dev, uint32_t pdn, uint32_t qpn,
	     uint32_t key, uint64_t addr, uint64_t len, enum soft_right right,
	     struct soft_frags *to, const char **why)
{
	struct walk w = {
		.e = e, .dev = dev, .pdn = pdn, .qpn = qpn, .to = to, .first = to->n, .why = why};
	const uint32_t packets = to->steps / SOFT_PACKET_STEPS;
	const bool found = walk_key(&w, key, addr, len, right, 0);

	e->packets_left -= to->steps / SOFT_PACKET_STEPS - packets;
	if (unlikely(to->cap > LONG_LIST || e->cap_held > LONG_LIST)) {
		e->failures |= SOFT_LISTS_LARGE;
		e->chores = true;
	}
	return found;
}

static void
shrink(struct soft_frags *list, struct soft_frag *own, uint32_t cap)
{
	if (list->cap <= LONG_LIST)
		return;
	free(list->p);
	*list = (struct soft_frags){.p = own, .cap = cap};
}

void
soft_xlt_shrink(struct soft_engine *e)
{
	shrink(&e->local, e->local_own, RTE_DIM(e->local_own));
	shrink(&e->remote, e->remote_own, RTE_DIM(e->remote_own));
	if (e->cap_held > LONG_LIST && e->n_held == 0) {
		free(e->held);
		e->held = NULL;
		e->cap_held = 0;
	}
	/* Fragments of the current turn are stale. */
	e->decoded = NULL;
	e->turn++;
}

bool
soft_xlt_remote(struct soft_engine *e, const struct soft_qp *p, const struct soft_req *r,
		uint64_t len, enum soft_right right, uint8_t **at, const char **why)
{
	soft_frags_clear(&e->remote);
	if (!soft_xlt_map(e, p->dev, p->pdn, p->qpn, r->rkey, r->raddr, len, right, &e->remote,
			  why))
		return false;
	*at = e->remote.n == 1 ? e->remote.p[0].p : NULL;
	return true;
}
