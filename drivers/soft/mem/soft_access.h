/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Access to memory that requests name by keys: rights, translation and copies. */
#ifndef SOFT_ACCESS_H
#define SOFT_ACCESS_H

#include "soft_data.h"

/* ---- soft_mem_access.c */
/* Right that an access through a key needs. */
enum soft_right {
	SOFT_RIGHT_LOCAL_READ,
	SOFT_RIGHT_LOCAL_WRITE,
	SOFT_RIGHT_REMOTE_READ,
	SOFT_RIGHT_REMOTE_WRITE,
	SOFT_RIGHT_ATOMIC,
};
/*
 * Repeats the checks of soft_mem_find() one by one. Returns the address, or NULL if the access is
 * refused; *why then names the failed check. Also returns NULL, with e->detour set, if all checks
 * passed but the key's memory needs special access (enum soft_detour).
 */
uint8_t *soft_mem_refuse(struct soft_engine *e, const struct soft_mkey *m, uint32_t pdn,
			 uint64_t addr, uint64_t len, enum soft_right right, const char **why);

static inline bool
soft_mkey_allows(const struct soft_mkey *m, enum soft_right right)
{
	switch (right) {
	case SOFT_RIGHT_LOCAL_WRITE:
		return m->lw;
	case SOFT_RIGHT_REMOTE_READ:
		return m->rr;
	case SOFT_RIGHT_REMOTE_WRITE:
		return m->rw;
	case SOFT_RIGHT_ATOMIC:
		return m->atomic;
	default:
		return true;
	}
}

/*
 * Returns true if @m is a direct key that covers [addr, addr + len), belongs to PD @pdn and gives
 * @right.
 */
static __rte_always_inline bool
soft_mkey_plain(const struct soft_mkey *m, uint32_t pdn, uint64_t addr, uint64_t len,
		enum soft_right right)
{
	if (unlikely(m == NULL || m->pdn != pdn || addr < m->start || len > m->len ||
		     addr - m->start > m->len - len))
		return false;
	return soft_mkey_allows(m, right);
}

/*
 * Translates [addr, addr + len) of a key of PD @pdn. Returns NULL if the access is refused, with
 * the reason in *why.
 */
static inline uint8_t *
soft_mem_find(struct soft_engine *e, const struct soft_dev *dev, uint32_t key, uint32_t pdn,
	      uint64_t addr, uint64_t len, enum soft_right right, const char **why)
{
	const struct soft_mkey *m = soft_mkey_find(dev, key);

	if (likely(soft_mkey_plain(m, pdn, addr, len, right)))
		return m->base + (addr - m->start);
	return soft_mem_refuse(e, m, pdn, addr, len, right, why);
}

/* ---- soft_mem.c */
/*
 * Moves a key over a guest's pages to PD @pdn of the same guest. Call it with umr_lock held.
 * Returns false if there is no such PD.
 */
bool soft_mkey_move(struct soft_dev *dev, struct soft_mkey *m, uint32_t pdn);

/* ---- soft_phys.c */
/*
 * Returns the memory at physical address @pa of a guest, and reduces *len to the bytes that are
 * contiguous. NULL if there is none.
 */
uint8_t *soft_phys_find(struct soft_phys *p, uint64_t pa, uint64_t *len);
/*
 * Allocates the translations of a key that UMRs load, all missing, unless they exist. Returns false
 * if there is no memory, or if the guest's keys have too many translations.
 */
bool soft_list_make(struct soft_indirect *ind);
void soft_list_free(struct soft_indirect *ind);

/* ---- soft_xlt.c */
/* Slow path of soft_mem_map(), taken if the key is indirect or refused, or the list is full. */
bool soft_xlt_map(struct soft_engine *e, const struct soft_dev *dev, uint32_t pdn, uint32_t qpn,
		  uint32_t key, uint64_t addr, uint64_t len, enum soft_right right,
		  struct soft_frags *to, const char **why);
/*
 * Resolves the memory that request @r to QP @p names by an indirect key or a window. If the memory
 * is contiguous, *at is its address. Otherwise *at is NULL and e->remote lists the fragments.
 * Returns false if the access is refused.
 */
bool soft_xlt_remote(struct soft_engine *e, const struct soft_qp *p, const struct soft_req *r,
		     uint64_t len, enum soft_right right, uint8_t **at, const char **why);
void soft_xlt_release(struct soft_engine *e);
/*
 * Frees the memory of long lists, so that a message does not hold it until the engine ends.
 * Call it at the end of a turn.
 */
void soft_xlt_shrink(struct soft_engine *e);
/* Empties a list for a new message. */
static inline void
soft_frags_clear(struct soft_frags *to)
{
	to->n = 0;
	to->steps = 0;
}
bool soft_frags_add(struct soft_frags *to, uint8_t *p, uint64_t len);

/*
 * Appends to a list of fragments the memory of [addr, addr + len) of a key that a QP of PD @pdn
 * uses. Returns false if the access is refused, with the reason in *why. The request holds
 * references to indirect keys until soft_keys_done().
 */
static inline bool
soft_mem_map(struct soft_engine *e, const struct soft_dev *dev, uint32_t pdn, uint32_t qpn,
	     uint32_t key, uint64_t addr, uint64_t len, enum soft_right right,
	     struct soft_frags *to, const char **why)
{
	const struct soft_mkey *m = soft_mkey_find(dev, key);

	if (likely(soft_mkey_plain(m, pdn, addr, len, right) && to->n < to->cap)) {
		to->p[to->n].p = m->base + (addr - m->start);
		to->p[to->n++].len = len;
		return true;
	}
	return soft_xlt_map(e, dev, pdn, qpn, key, addr, len, right, to, why);
}

/* Drops the references to indirect keys that the request holds. */
static inline void
soft_keys_done(struct soft_engine *e)
{
	if (unlikely(e->n_held != 0))
		soft_xlt_release(e);
}

/*
 * ---- soft_paged.c: each function returns false if a part of the paged memory is not mapped for
 * the access
 */
/*
 * Makes the kernel map the pages of local memory, as it resolves the page faults of a card. The
 * caller then accesses the memory directly, so the program must not unmap it meanwhile.
 */
bool soft_paged_populate(uint8_t *at, uint64_t len, bool write);
/*
 * Returns false if the kernel has no page for the mapped byte at @addr, so that an access would
 * raise SIGBUS. Returns true also if the kernel refuses to answer (seccomp).
 */
bool soft_paged_backed(uint64_t addr);
bool soft_paged_write(uint8_t *dst, const struct soft_frag *src, uint32_t n);
bool soft_paged_read(uint8_t *dst, uint8_t *src, uint64_t len);
/*
 * Copies the payload of a READ response from @src into the request's fragments, or into the CQE if
 * @in_cqe.
 */
bool soft_paged_respond(struct soft_qp *qp, const struct soft_req *r, bool in_cqe, uint8_t *src);

/* ---- soft_frags.c */
/*
 * Finds the range [off, off + len) of a payload that consists of fragments. Writes up to @max
 * fragments to @to. Returns the number of fragments, or max + 1 if the range needs more than @max.
 */
uint32_t soft_frags_part(const struct soft_frag *p, uint32_t n, uint64_t off, uint64_t len,
			 struct soft_frag *to, uint32_t max);
void soft_frags_copy_out(uint8_t *dst, const struct soft_frag *p, uint32_t n, uint64_t off,
			 uint64_t len);
void soft_frags_copy_in(struct soft_engine *e, const struct soft_frag *p, uint32_t n, uint64_t off,
			const uint8_t *src, uint64_t len);

/* Copies like soft_mem_gather(), but the cache lines of each fragment in shuffled order. */
void soft_mem_gather_relaxed(struct soft_engine *e, uint8_t *dst, const struct soft_frag *src,
			     uint32_t n);
/*
 * Copy fragments to contiguous memory, contiguous memory to fragments, and fragments to fragments
 * of the same total length.
 */
void soft_mem_gather(struct soft_engine *e, uint8_t *dst, const struct soft_frag *src, uint32_t n);
void soft_mem_scatter(struct soft_engine *e, const struct soft_frag *dst, uint32_t n,
		      const uint8_t *src);
void soft_mem_move(struct soft_engine *e, const struct soft_frag *dst, const struct soft_frag *src,
		   uint32_t n_src);
void soft_mem_copy_any(struct soft_engine *e, uint8_t *dst, const uint8_t *src, uint64_t len);

/* Copies contiguous memory. The comment at the top of soft_mem_access.c states the guarantees. */
static inline void
soft_mem_copy(struct soft_engine *e, uint8_t *dst, const uint8_t *src, uint64_t len)
{
	if (len == 8 && ((uintptr_t)dst & 7) == 0) {
		uint64_t v;

		memcpy(&v, src, sizeof(v));
		__atomic_store_n((uint64_t *)(void *)dst, v, __ATOMIC_RELEASE);
	} else {
		soft_mem_copy_any(e, dst, src, len);
	}
}

#endif
