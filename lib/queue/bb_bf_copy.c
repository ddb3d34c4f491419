/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* For rte_vect_get_max_simd_bitwidth(), which is experimental in DPDK 22.11. */
#define ALLOW_EXPERIMENTAL_API
#include "bb_bf_copy.h"

#include <rte_cpuflags.h>
#include <rte_vect.h>

#include "bb_uar_wide.h"

static __attribute__((noinline)) void
ring_plain_any(struct bb_sq *sq)
{
	bb_bf_doorbell(sq, bb_bf_block_plain);
}

static void
ring_plain(struct bb_sq *sq)
{
	if (bb_unlikely(!bb_bf_doorbell_one(sq, bb_bf_block_plain)))
		ring_plain_any(sq);
}

#ifdef BB_UAR_WIDE_X86
static __attribute__((noinline, target("avx2"))) void
ring_avx2_any(struct bb_sq *sq)
{
	bb_bf_doorbell(sq, bb_uar_block_avx2);
	_mm256_zeroupper();
}

static __attribute__((target("avx2"))) void
ring_avx2(struct bb_sq *sq)
{
	if (bb_unlikely(!bb_bf_doorbell_one(sq, bb_uar_block_avx2))) {
		ring_avx2_any(sq);
		return;
	}
	/* Call this explicitly, because compilers insert the instruction only at -O2 and above. */
	_mm256_zeroupper();
}

static __attribute__((noinline, target("avx512f"))) void
ring_avx512_any(struct bb_sq *sq)
{
	bb_bf_doorbell(sq, bb_uar_block_avx512);
	_mm256_zeroupper();
}

static __attribute__((target("avx512f"))) void
ring_avx512(struct bb_sq *sq)
{
	if (bb_unlikely(!bb_bf_doorbell_one(sq, bb_uar_block_avx512))) {
		ring_avx512_any(sq);
		return;
	}
	_mm256_zeroupper();
}

/*
 * The CPU may send several MOVDIR64B in any order (Linux, iosubmit_cmds512()), and libmlx5 copies
 * in ascending order only (mlx5_bf_copy()). So a WQE of several blocks goes by 8-byte stores.
 */
static __attribute__((target("movdir64b"))) void
ring_movdir64b(struct bb_sq *sq)
{
	if (bb_unlikely(!bb_bf_doorbell_one(sq, bb_uar_block_movdir64b)))
		ring_plain_any(sq);
}
#endif

#ifdef BB_UAR_WIDE_ARM
static __attribute__((noinline)) void
ring_neon_any(struct bb_sq *sq)
{
	bb_bf_doorbell(sq, bb_uar_block_neon);
}

static void
ring_neon(struct bb_sq *sq)
{
	if (bb_unlikely(!bb_bf_doorbell_one(sq, bb_uar_block_neon)))
		ring_neon_any(sq);
}
#endif

void
bb_bf_ring_head(struct bb_sq *sq)
{
	bb_bf_doorbell(sq, NULL);
}

static const struct {
	const char *name;
	uint16_t bits; /* width of the vector registers; 0 if the copy uses none */
	void (*ring)(struct bb_sq *sq);
} kinds[BB_BF_COPY_KINDS] = {
	[BB_BF_COPY_PLAIN] = {"plain", 0, ring_plain},
#ifdef BB_UAR_WIDE_ARM
	[BB_BF_COPY_NEON] = {"neon", 128, ring_neon},
#else
	[BB_BF_COPY_NEON] = {"neon", 128, NULL},
#endif
#ifdef BB_UAR_WIDE_X86
	[BB_BF_COPY_AVX2] = {"avx2", 256, ring_avx2},
	[BB_BF_COPY_AVX512] = {"avx512", 512, ring_avx512},
	[BB_BF_COPY_MOVDIR64B] = {"movdir64b", 0, ring_movdir64b},
#else
	[BB_BF_COPY_AVX2] = {"avx2", 256, NULL},
	[BB_BF_COPY_AVX512] = {"avx512", 512, NULL},
	[BB_BF_COPY_MOVDIR64B] = {"movdir64b", 0, NULL},
#endif
};

bool
bb_bf_copy_has(enum bb_bf_copy how)
{
	switch (how) {
	case BB_BF_COPY_PLAIN:
		return true;
#ifdef BB_UAR_WIDE_ARM
	case BB_BF_COPY_NEON:
		return rte_cpu_get_flag_enabled(RTE_CPUFLAG_NEON) > 0;
#endif
#ifdef BB_UAR_WIDE_X86
	/*
	 * The compiler's builtin also checks that the operating system supports the registers;
	 * EAL's flag does not.
	 */
	case BB_BF_COPY_AVX2:
		return __builtin_cpu_supports("avx2");
	case BB_BF_COPY_AVX512:
		return __builtin_cpu_supports("avx512f");
	case BB_BF_COPY_MOVDIR64B:
		return rte_cpu_get_flag_enabled(RTE_CPUFLAG_MOVDIR64B) > 0;
#endif
	default:
		return false;
	}
}

static bool
allowed(enum bb_bf_copy how)
{
	return kinds[how].bits <= rte_vect_get_max_simd_bitwidth();
}

enum bb_bf_copy
bb_bf_copy_best(bool memory)
{
	enum bb_bf_copy how = memory ? BB_BF_COPY_AVX512 : BB_BF_COPY_MOVDIR64B;

	while (!bb_bf_copy_has(how) || !allowed(how))
		how--;
	return how;
}

int
bb_bf_copy_parse(const char *name, enum bb_bf_copy *how)
{
	enum bb_bf_copy i;

	for (i = 0; i < BB_BF_COPY_KINDS; i++) {
		if (strcmp(name, kinds[i].name) != 0)
			continue;
		if (!bb_bf_copy_has(i))
			return -ENOTSUP;
		if (!allowed(i))
			return -ERANGE;
		*how = i;
		return 0;
	}
	return -EINVAL;
}

const char *
bb_bf_copy_name(enum bb_bf_copy how)
{
	return kinds[how].name;
}

void (*bb_bf_ring(enum bb_bf_copy how))(struct bb_sq *sq)
{
	return how < BB_BF_COPY_KINDS ? kinds[how].ring : NULL;
}
