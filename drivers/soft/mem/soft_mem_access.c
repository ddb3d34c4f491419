/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Access to registered memory: the reasons to refuse a key, and the copy of payload.
 *
 * Guarantees of a copy: an aligned 8-byte unit that lies wholly inside the payload is never visible
 * half written. A payload of 1, 2, 4 or 8 bytes at an aligned address is written by one store.
 * Neither guarantee holds if source and destination overlap. The order of other writes inside a
 * payload is undefined. With option "shuffle" the 64-byte lines are written in a random order.
 */
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "soft_access.h"

uint8_t *
soft_mem_refuse(struct soft_engine *e, const struct soft_mkey *m, uint32_t pdn, uint64_t addr,
		uint64_t len, enum soft_right right, const char **why)
{
	uint64_t size;
	uint8_t *at;

	e->detour = SOFT_DETOUR_NONE;
	if (m == NULL) {
		*why = "the key does not exist";
		e->key_fault = SOFT_KEY_PD;
		return NULL;
	}
	if (m->pdn != pdn && !soft_defect(e, SOFT_DEFECT_NO_PD) &&
	    !(right == SOFT_RIGHT_REMOTE_READ && soft_defect(e, SOFT_DEFECT_READ_PD))) {
		*why = "the key belongs to another protection domain";
		e->key_fault = SOFT_KEY_PD;
		return NULL;
	}
	size = m->detour != SOFT_DETOUR_NONE ? m->detour_len : m->len;
	if ((addr < m->start || len > size || addr - m->start > size - len) &&
	    !soft_defect(e, SOFT_DEFECT_NO_BOUNDS)) {
		*why = "the range is not inside the key's memory";
		e->key_fault = SOFT_KEY_RANGE;
		return NULL;
	}
	if (!soft_mkey_allows(m, right) && !soft_defect(e, SOFT_DEFECT_NO_ACCESS)) {
		*why = "the key does not have the right that the access needs";
		e->key_fault = SOFT_KEY_RIGHT;
		return NULL;
	}
	/* Integer arithmetic, because base is NULL for a key over the whole address space. */
	at = (uint8_t *)((uintptr_t)m->base + (addr - m->start));
	if (m->detour == SOFT_DETOUR_PAGED &&
	    (right == SOFT_RIGHT_LOCAL_READ || right == SOFT_RIGHT_LOCAL_WRITE)) {
		/*
		 * The kernel resolves page faults of a local key only for QPs that it created:
		 * mlx5_ib_mr_wqe_pfault_handler() does not know others (assumption [A]). Such QPs
		 * exist with the option mmap, for programs of libmlx5.
		 */
		if (e->dev->opts.mmap &&
		    soft_paged_populate(at, len, right == SOFT_RIGHT_LOCAL_WRITE))
			return at;
		*why = e->dev->opts.mmap
			       ? "the memory of the ON_DEMAND key is not fully mapped with the "
				 "right that the access needs"
			       : "the key is ON_DEMAND, and the kernel resolves no page faults of "
				 "local keys in a DEVX queue";
		e->key_fault = SOFT_KEY_RIGHT;
		return NULL;
	}
	if (m->detour == SOFT_DETOUR_PAGED ||
	    (m->detour == SOFT_DETOUR_RELAXED && right == SOFT_RIGHT_REMOTE_WRITE)) {
		e->detour = m->detour;
		e->detour_at = at;
		*why = "the device cannot access the key's memory by direct loads and stores";
		return NULL;
	}
	return at;
}

#if defined(__SSE2__) && !defined(BB_TSAN)
/*
 * Copies 64 bytes in ascending order; @dst must be aligned to 8. The buffers may overlap. No
 * aligned 8-byte unit is split, because x86 splits a 16-byte store only at a cache line boundary,
 * and no unit crosses that.
 */
static inline void
soft_copy_line(uint8_t *dst, const uint8_t *src)
{
	const __m128i *from = (const __m128i *)(const void *)src;
	__m128i *to = (__m128i *)(void *)dst;
	__m128i a = _mm_loadu_si128(from), b = _mm_loadu_si128(from + 1);
	__m128i c = _mm_loadu_si128(from + 2), d = _mm_loadu_si128(from + 3);

	_mm_storeu_si128(to, a);
	_mm_storeu_si128(to + 1, b);
	_mm_storeu_si128(to + 2, c);
	bb_dma_wmb();
	_mm_storeu_si128(to + 3, d);
	bb_dma_wmb();
}

/*
 * Range of lengths for which a loop of 32-byte moves is faster than memcpy(). From 2 KiB on,
 * memcpy() is one REP MOVSB on many CPUs. The CPU hardly overlaps REP MOVSB with work on the next
 * message, which matters at 4 KiB. Below WIDE_MIN memcpy() is fast enough. Above WIDE_MAX memcpy()
 * is faster: REP MOVSB need not read the lines that it overwrites, and for more bytes than the
 * caches hold memcpy() uses non-temporal stores.
 */
#define WIDE_MIN 256u
#define WIDE_MAX 4096u

static inline bool
soft_wide(uint64_t len)
{
	return len - WIDE_MIN <= WIDE_MAX - WIDE_MIN && __builtin_cpu_supports("avx2");
}

/*
 * Copies whole 8-byte units in ascending order; @dst must be aligned to 8. No store crosses a cache
 * line, so no unit is split.
 */
__attribute__((target("avx2"))) static void
soft_copy_wide(uint8_t *dst, const uint8_t *src, uint64_t len)
{
	const uint8_t *const end = dst + len;
	uint64_t v;

	for (; ((uintptr_t)dst & 31) != 0; dst += sizeof(v), src += sizeof(v)) {
		memcpy(&v, src, sizeof(v));
		__atomic_store_n((uint64_t *)(void *)dst, v, __ATOMIC_RELAXED);
	}
	for (; end - dst >= 128; dst += 128, src += 128) {
		const __m256i *from = (const __m256i *)(const void *)src;
		__m256i *to = (__m256i *)(void *)dst;
		__m256i a = _mm256_lddqu_si256(from), b = _mm256_lddqu_si256(from + 1);
		__m256i c = _mm256_lddqu_si256(from + 2), d = _mm256_lddqu_si256(from + 3);

		_mm256_store_si256(to, a);
		_mm256_store_si256(to + 1, b);
		_mm256_store_si256(to + 2, c);
		_mm256_store_si256(to + 3, d);
		bb_dma_wmb();
	}
	for (; dst != end; dst += sizeof(v), src += sizeof(v)) {
		memcpy(&v, src, sizeof(v));
		__atomic_store_n((uint64_t *)(void *)dst, v, __ATOMIC_RELEASE);
	}
}
#endif

/*
 * Copies whole 8-byte units; @dst must be aligned to 8. A concurrent reader may see the old or the
 * new value of each unit. ThreadSanitizer accepts such a reader only if the stores are atomic.
 * Without ThreadSanitizer memcpy() has the same effect, because it does not split a unit.
 */
static inline void
soft_copy_whole(uint8_t *dst, const uint8_t *src, uint64_t len)
{
	uint64_t v, i = 0;

#if !defined(BB_TSAN) && defined(__x86_64__)
	/*
	 * memcpy() may move single bytes if the two addresses differ in alignment, as they do in
	 * packets. On Arm with SVE, glibc moves single bytes up to a length of 32 at any alignment.
	 */
	if (likely(((uintptr_t)src & 7) == 0)) {
		memcpy(dst, src, len);
		return;
	}
#if defined(__SSE2__)
	for (; len - i >= 64; i += 64)
		soft_copy_line(dst + i, src + i);
	for (; len - i >= 16; i += 16)
		_mm_storeu_si128((__m128i *)(void *)(dst + i),
				 _mm_loadu_si128((const __m128i *)(const void *)(src + i)));
#endif
#endif
	for (; i < len; i += sizeof(v)) {
		memcpy(&v, src + i, sizeof(v));
		__atomic_store_n((uint64_t *)(void *)(dst + i), v, __ATOMIC_RELAXED);
	}
}

/*
 * Copies each line once, in a random order that depends on the seed. The sequence x = a * x + c
 * modulo a power of two visits all values if c is odd and a is 1 modulo 4.
 */
static void
soft_copy_shuffled(struct soft_engine *e, uint8_t *dst, const uint8_t *src, uint64_t len)
{
	uint64_t head = (uintptr_t)dst & 63;
	uint64_t lines = (head + len + 63) >> 6, mask, a, c, x, i;

	e->shuffle = e->shuffle * 6364136223846793005u + 1442695040888963407u;
	mask = lines == 1 ? 0 : UINT64_MAX >> __builtin_clzll(lines - 1);
	a = (e->shuffle >> 33 & ~3ull) | 1;
	c = e->shuffle >> 20 | 1;
	x = e->shuffle >> 40;
	for (i = 0; i <= mask; i++) {
		uint64_t from, to;

		x = (x * a + c) & mask;
		if (x >= lines)
			continue;
		from = x == 0 ? 0 : (x << 6) - head;
		to = ((x + 1) << 6) - head;
		if (to > len)
			to = len;
		soft_copy_whole(dst + from, src + from, to - from);
	}
}

static inline void
soft_copy_small(uint8_t *dst, const uint8_t *src, uint64_t len)
{
	switch (len) {
	case 1:
		__atomic_store_n(dst, *src, __ATOMIC_RELAXED);
		return;
	case 2:
		if (((uintptr_t)dst & 1) == 0) {
			uint16_t v;

			memcpy(&v, src, sizeof(v));
			__atomic_store_n((uint16_t *)(void *)dst, v, __ATOMIC_RELAXED);
			return;
		}
		break;
	case 4:
		if (((uintptr_t)dst & 3) == 0) {
			uint32_t v;

			memcpy(&v, src, sizeof(v));
			__atomic_store_n((uint32_t *)(void *)dst, v, __ATOMIC_RELAXED);
			return;
		}
		break;
	default:
		break;
	}
	memmove(dst, src, len);
}

/*
 * Copies with the guarantees at the top of this file. memcpy() writes blocks of its own choice from
 * both ends. These blocks may split an aligned unit, unless address and length are multiples of 8.
 * So the unaligned bytes at both ends are copied separately.
 */
static inline void
soft_copy_units(struct soft_engine *e, uint8_t *dst, const uint8_t *src, uint64_t len, bool shuffle)
{
	uint64_t tail = 0;

	if (unlikely((((uintptr_t)dst | len) & 7) != 0)) {
		uint64_t head = -(uintptr_t)dst & 7;

		soft_copy_small(dst, src, head);
		dst += head;
		src += head;
		tail = (len - head) & 7;
		len -= head + tail;
	}
	if (unlikely(shuffle) && len != 0) {
		soft_copy_shuffled(e, dst, src, len);
#if defined(__SSE2__) && !defined(BB_TSAN)
	} else if (soft_wide(len)) {
		soft_copy_wide(dst, src, len);
#endif
	} else if (likely(tail == 0) && len > 8) {
		/*
		 * Writes the last 8 bytes last. memcpy() would write them first. No rule requires
		 * this order. But programs such as perftest poll the last byte of a WRITE, which
		 * works on cards that write in order.
		 */
		soft_copy_whole(dst, src, len - 8);
		bb_dma_wmb();
		soft_copy_whole(dst + len - 8, src + len - 8, 8);
	} else {
		soft_copy_whole(dst, src, len);
	}
	/* The unaligned bytes at the end must also become visible after all other bytes. */
	bb_dma_wmb();
	if (unlikely(tail != 0))
		soft_copy_small(dst + len, src + len, tail);
}

/*
 * Copies what the fast path of soft_mem_copy_any() does not. Not inlined there, because gcc -O3
 * would then save registers for this function before the fast path, too.
 */
static __rte_noinline void
soft_copy_slow(struct soft_engine *e, uint8_t *dst, const uint8_t *src, uint64_t len)
{
	if (len < 8) {
		soft_copy_small(dst, src, len);
	} else if (unlikely((uintptr_t)dst - (uintptr_t)src < len ||
			    (uintptr_t)src - (uintptr_t)dst < len)) {
		memmove(dst, src, len);
	} else {
		soft_copy_units(e, dst, src, len, e->dev->opts.shuffle);
	}
}

void
soft_mem_copy_any(struct soft_engine *e, uint8_t *dst, const uint8_t *src, uint64_t len)
{
#if defined(__SSE2__) && !defined(BB_TSAN)
	/*
	 * Fast path for one cache line, as message rings use. soft_copy_line() gives all
	 * guarantees, so no further checks are needed.
	 */
	if (len == 64 && ((uintptr_t)dst & 7) == 0 && likely(!e->dev->opts.shuffle)) {
		soft_copy_line(dst, src);
		return;
	}
#endif
	soft_copy_slow(e, dst, src, len);
}

void
soft_mem_gather(struct soft_engine *e, uint8_t *dst, const struct soft_frag *src, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		soft_mem_copy(e, dst, src[i].p, src[i].len);
		dst += src[i].len;
	}
}

void
soft_mem_gather_relaxed(struct soft_engine *e, uint8_t *dst, const struct soft_frag *src,
			uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		bool overlap = (uintptr_t)dst - (uintptr_t)src[i].p < src[i].len ||
			       (uintptr_t)src[i].p - (uintptr_t)dst < src[i].len;

		if (src[i].len <= 8 || overlap)
			soft_mem_copy(e, dst, src[i].p, src[i].len);
		else
			soft_copy_units(e, dst, src[i].p, src[i].len, true);
		dst += src[i].len;
	}
}

void
soft_mem_scatter(struct soft_engine *e, const struct soft_frag *dst, uint32_t n, const uint8_t *src)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		soft_mem_copy(e, dst[i].p, src, dst[i].len);
		src += dst[i].len;
	}
}

void
soft_mem_move(struct soft_engine *e, const struct soft_frag *dst, const struct soft_frag *src,
	      uint32_t n_src)
{
	uint64_t used = 0; /* bytes of *dst that are already filled */
	uint32_t i;

	for (i = 0; i < n_src; i++) {
		const uint8_t *p = src[i].p;
		uint64_t left = src[i].len;

		while (left != 0) {
			uint64_t room = dst->len - used, n = left < room ? left : room;

			soft_mem_copy(e, dst->p + used, p, n);
			p += n;
			left -= n;
			used += n;
			if (used == dst->len) {
				dst++;
				used = 0;
			}
		}
	}
}
