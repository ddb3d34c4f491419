/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Stores to a UAR register that are wider than 8 bytes. Each function copies a block of 64 bytes
 * to @reg in ascending order, without a load between its stores. Both addresses must be aligned to
 * 64 bytes. The caller uses the same fences as for 8-byte stores: bb_db_wmb() before,
 * bb_wc_flush() after.
 *
 * Builds with ThreadSanitizer have none of these functions, because ThreadSanitizer does not see
 * the order of wide stores.
 *
 * None of these functions was tested on a card. libmlx5 copies with NEON on Arm (mmio_memcpy_x64()
 * of rdma-core's util/mmio.h), and UCX with 16-byte SSE stores on x86 (uct_ib_mlx5_bf_copy_bb()).
 * No open driver of the card uses AVX or MOVDIR64B. Linux submits descriptors to other devices
 * with MOVDIR64B (iosubmit_cmds512()), which it does not order.
 *
 * ST64B of Arm is not used, although newer versions of libmlx5 use it. It faults on memory that
 * does not support it, and a program cannot find out whether a UAR does (Linux,
 * Documentation/arch/arm64/elf_hwcaps.rst, HWCAP3_LS64).
 */
#ifndef BB_UAR_WIDE_H
#define BB_UAR_WIDE_H

#include <stdint.h>

#include "bb_barrier.h"

#if defined(__x86_64__) && !defined(BB_TSAN)
#include <immintrin.h>
#define BB_UAR_WIDE_X86 1
#elif defined(__aarch64__) && !defined(BB_TSAN)
#include <arm_neon.h>
#define BB_UAR_WIDE_ARM 1
#endif

#ifdef BB_UAR_WIDE_X86
static inline __attribute__((target("avx2"))) void
bb_uar_block_avx2(volatile uint64_t *reg, const uint8_t *block)
{
	volatile __m256i *to = (volatile __m256i *)(volatile void *)reg;
	const __m256i low = _mm256_load_si256((const __m256i *)(const void *)block);
	const __m256i high = _mm256_load_si256((const __m256i *)(const void *)(block + 32));

	to[0] = low;
	to[1] = high;
}

static inline __attribute__((target("avx512f"))) void
bb_uar_block_avx512(volatile uint64_t *reg, const uint8_t *block)
{
	*(volatile __m512i *)(volatile void *)reg = _mm512_load_si512(block);
}

/*
 * Writes the block with one store of 64 bytes, whatever the memory type of @reg. The store does
 * not wait in the write-combining buffer (Intel SDM vol. 2, MOVDIR64B), and it removes the cache
 * line from all caches.
 */
static inline __attribute__((target("movdir64b"))) void
bb_uar_block_movdir64b(volatile uint64_t *reg, const uint8_t *block)
{
	_movdir64b((void *)(uintptr_t)reg, block);
}
#endif

#ifdef BB_UAR_WIDE_ARM
static inline void
bb_uar_block_neon(volatile uint64_t *reg, const uint8_t *block)
{
	const uint8x16_t b0 = vld1q_u8(block), b1 = vld1q_u8(block + 16);
	const uint8x16_t b2 = vld1q_u8(block + 32), b3 = vld1q_u8(block + 48);

	/*
	 * Assembly instead of intrinsics, because with intrinsics the compiler could place other
	 * instructions between the two pairs of stores.
	 */
	__asm__ volatile("stp %q1, %q2, [%0]\n\tstp %q3, %q4, [%0, #32]"
			 :
			 : "r"(reg), "w"(b0), "w"(b1), "w"(b2), "w"(b3)
			 : "memory");
}
#endif

#endif
