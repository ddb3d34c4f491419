/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Memory that requests name by keys: who may, where it is, and how it is copied. */
#ifndef SOFT_ACCESS_H
#define SOFT_ACCESS_H

#include "soft_data.h"

/* ---- soft_mem_access.c */
/* What an access through a key needs. */
enum soft_right {
	SOFT_RIGHT_LOCAL_READ,
	SOFT_RIGHT_LOCAL_WRITE,
	SOFT_RIGHT_REMOTE_READ,
	SOFT_RIGHT_REMOTE_WRITE,
	SOFT_RIGHT_ATOMIC,
};
/*
 * The checks of soft_mem_find() again, one by one; @why names the one that failed. NULL
 * and a detour in the engine: all passed, but the memory is not accessed as others are.
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

/* Is [addr, addr + len) of PD @pdn plain memory of the key that may be used so? */
static __rte_always_inline bool
soft_mkey_plain(const struct soft_mkey *m, uint32_t pdn, uint64_t addr, uint64_t len,
		enum soft_right right)
{
	if (unlikely(m == NULL || m->pdn != pdn || addr < m->start || len > m->len ||
		     addr - m->start > m->len - len))
		return false;
	return soft_mkey_allows(m, right);
}

/* Translate [addr, addr + len) of a key of PD @pdn. NULL: refused, *why says why. */
static inline uint8_t *
soft_mem_find(struct soft_engine *e, const struct soft_dev *dev, uint32_t key, uint32_t pdn,
	      uint64_t addr, uint64_t len, enum soft_right right, const char **why)
{
	const struct soft_mkey *m = soft_mkey_find(dev, key);

	if (likely(soft_mkey_plain(m, pdn, addr, len, right)))
		return m->base + (addr - m->start);
	return soft_mem_refuse(e, m, pdn, addr, len, right, why);
}

/* ---- soft_xlt.c */
/* soft_mem_map() of a key that is indirect, or refused, or when the list is full. */
bool soft_xlt_map(struct soft_engine *e, const struct soft_dev *dev, uint32_t pdn, uint32_t qpn,
		  uint32_t key, uint64_t addr, uint64_t len, enum soft_right right,
		  struct soft_pieces *to, const char **why);
/*
 * The memory of @p that a request names by an indirect key or a window. Where that is one
 * piece it is *at, else NULL and it is e->remote. False: refused.
 */
bool soft_xlt_remote(struct soft_engine *e, const struct soft_qp *p, const struct soft_req *r,
		     uint64_t len, enum soft_right right, uint8_t **at, const char **why);
void soft_xlt_release(struct soft_engine *e);
bool soft_pieces_add(struct soft_pieces *to, uint8_t *p, uint64_t len);

/*
 * Append the memory of [addr, addr + len) of a key that a QP of PD @pdn uses. False: refused,
 * *why says why. Indirect keys are held until soft_keys_done().
 */
static inline bool
soft_mem_map(struct soft_engine *e, const struct soft_dev *dev, uint32_t pdn, uint32_t qpn,
	     uint32_t key, uint64_t addr, uint64_t len, enum soft_right right,
	     struct soft_pieces *to, const char **why)
{
	const struct soft_mkey *m = soft_mkey_find(dev, key);

	if (likely(soft_mkey_plain(m, pdn, addr, len, right) && to->n < to->cap)) {
		to->p[to->n].p = m->base + (addr - m->start);
		to->p[to->n++].len = len;
		return true;
	}
	return soft_xlt_map(e, dev, pdn, qpn, key, addr, len, right, to, why);
}

/* The request is done with the memory. */
static inline void
soft_keys_done(struct soft_engine *e)
{
	if (unlikely(e->n_held != 0))
		soft_xlt_release(e);
}

/* ---- soft_paged.c: each false if some of the paged memory is not mapped for that */
bool soft_paged_write(uint8_t *dst, const struct soft_piece *src, uint32_t n);
bool soft_paged_read(uint8_t *dst, uint8_t *src, uint64_t len);
/* The data of a READ, into its pieces or @in_cqe. */
bool soft_paged_answer(struct soft_qp *qp, const struct soft_req *r, bool in_cqe, uint8_t *src);

/* ---- soft_pieces.c */
/*
 * [off, off + len) of a payload in pieces: up to @max pieces in @to. Returns their number, max + 1
 * if it takes more.
 */
uint32_t soft_pieces_part(const struct soft_piece *p, uint32_t n, uint64_t off, uint64_t len,
			  struct soft_piece *to, uint32_t max);
void soft_pieces_copy_out(uint8_t *dst, const struct soft_piece *p, uint32_t n, uint64_t off,
			  uint64_t len);
void soft_pieces_copy_in(struct soft_engine *e, const struct soft_piece *p, uint32_t n,
			 uint64_t off, const uint8_t *src, uint64_t len);

/* As soft_mem_gather(), each piece in shuffled order. */
void soft_mem_gather_relaxed(struct soft_engine *e, uint8_t *dst, const struct soft_piece *src,
			     uint32_t n);
/* Copy pieces to contiguous memory, the reverse, and pieces to pieces of the same sum. */
void soft_mem_gather(struct soft_engine *e, uint8_t *dst, const struct soft_piece *src, uint32_t n);
void soft_mem_scatter(struct soft_engine *e, const struct soft_piece *dst, uint32_t n,
		      const uint8_t *src);
void soft_mem_move(struct soft_engine *e, const struct soft_piece *dst,
		   const struct soft_piece *src, uint32_t n_src);
void soft_mem_copy_any(struct soft_engine *e, uint8_t *dst, const uint8_t *src, uint64_t len);

/* Copy contiguous memory; soft_mem_access.c says what is promised. */
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
