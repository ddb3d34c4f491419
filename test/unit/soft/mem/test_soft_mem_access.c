/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Copies of payload: each length and alignment with a code path of its own, byte by byte. */

#include "bb_test.h"
#include "soft_access.h"

#define MAX  (2u << 20)
#define ROOM 128u

static struct soft_dev dev;
static struct soft_engine engine = {.dev = &dev, .shuffle = 1};
static uint8_t from[MAX + 2 * ROOM] __rte_cache_aligned, to[MAX + 2 * ROOM] __rte_cache_aligned;

/* Asserts that the payload arrived and no byte beside it changed. */
static void
check_copy(uint32_t src, uint32_t dst, uint32_t len)
{
	memset(to, 0xee, len + 2 * ROOM);
	soft_mem_copy(&engine, to + dst, from + src, len);
	if (memcmp(to + dst, from + src, len) != 0)
		fail_msg("%u bytes from %u to %u differ", len, src, dst);
	for (uint32_t i = 0; i < len + 2 * ROOM; i++)
		if ((i < dst || i >= dst + len) && to[i] != 0xee)
			fail_msg("%u bytes from %u to %u: byte %u written", len, src, dst, i);
}

static void
check_alignments(const uint32_t *lens, uint32_t n, uint32_t step)
{
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t dst = 0; dst < 64; dst += step)
			for (uint32_t src = 0; src < 64; src += step)
				check_copy(src, dst, lens[i]);
}

TEST(test_copy_moves_exactly_its_bytes)
{
	static const uint32_t lens[] = {1,   2,   3,   4,   7,   8,   9,   15,  16,  17,
					63,  64,  65,  72,  128, 255, 256, 257, 263, 264,
					287, 288, 383, 384, 385, 392, 511, 520, 1024};
	static const uint32_t more[] = {4088, 4095, 4096, 4097, 65536};
	static const uint32_t most[] = {MAX / 2 - 8, MAX / 2, MAX / 2 + 8, MAX};

	check_alignments(lens, RTE_DIM(lens), 1);
	check_alignments(more, RTE_DIM(more), 7);
	check_alignments(most, RTE_DIM(most), 36);
}

TEST(test_copy_in_shuffled_pieces_is_exact)
{
	static const uint32_t lens[] = {9, 64, 65, 255, 256, 300, 1001};

	dev.opts.shuffle = true;
	check_alignments(lens, RTE_DIM(lens), 3);
	dev.opts.shuffle = false;
}

/* Overlapping memory: a QP that WRITEs to its own process. */
TEST(test_overlapping_copy_keeps_the_source)
{
	static const int32_t shifts[] = {-300, -64, -8, -1, 1, 8, 64, 300};
	static uint8_t was[2048], now[2048];

	for (uint32_t k = 0; k < RTE_DIM(shifts); k++)
		for (uint32_t len = 1; len < 1024; len += 51) {
			for (uint32_t i = 0; i < sizeof(now); i++)
				was[i] = now[i] = (uint8_t)(i * 7 + (i >> 8));
			soft_mem_copy(&engine, now + 512 + shifts[k], now + 512, len);
			assert_memory_equal(now + 512 + shifts[k], was + 512, len);
		}
}

int
main(void)
{
	for (uint32_t i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)(i * 31 + (i >> 8));
	return bb_test_run(__FILE__, NULL, NULL);
}
