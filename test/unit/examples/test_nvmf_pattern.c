/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The data pattern of nvmf_client: written data verify, all other data do not. */
#include <string.h>

#include "bb_test.h"
#include "pattern.h"

#define LEN (4 * PATTERN_UNIT)

static uint8_t mem[LEN];

static const char *
check(uint64_t offset, uint64_t seed, uint64_t *seq)
{
	return pattern_check(mem, LEN, offset, seed, seq);
}

TEST(test_written_and_empty_blocks_pass)
{
	uint64_t seq = 99;

	memset(mem, 0, LEN);
	assert_null(check(8192, 1, &seq));
	assert_int_equal(seq, 0);
	pattern_fill(mem, LEN, 8192, 17, 5);
	assert_null(check(8192, 5, &seq));
	assert_int_equal(seq, 17);
}

TEST(test_wrong_blocks_say_what_is_wrong)
{
	uint64_t seq = 99;

	pattern_fill(mem, LEN, 8192, 17, 5);
	assert_non_null(strstr(check(8192, 6, &seq), "seed"));
	assert_non_null(strstr(check(4096, 5, &seq), "another offset"));
	pattern_fill(mem + PATTERN_UNIT, PATTERN_UNIT, 8192 + PATTERN_UNIT, 18, 5);
	assert_non_null(strstr(check(8192, 5, &seq), "two writes"));
	memset(mem + PATTERN_UNIT, 0, LEN - PATTERN_UNIT);
	assert_non_null(strstr(check(8192, 5, &seq), "but not its rest"));
	pattern_fill(mem, LEN, 8192, 17, 5);
	memset(mem, 0, PATTERN_UNIT);
	assert_non_null(strstr(check(8192, 5, &seq), "two writes"));
	memset(mem, 'x', LEN);
	assert_non_null(strstr(check(8192, 5, &seq), "not written by"));
	assert_int_equal(seq, 99);
}

/* A single block of the right seed, at any position, is not foreign. */
TEST(test_block_of_another_seed_is_foreign)
{
	memset(mem, 'x', LEN);
	assert_true(pattern_foreign(mem, LEN, 5));
	pattern_fill(mem, LEN, 8192, 17, 6);
	assert_true(pattern_foreign(mem, LEN, 5));
	for (uint32_t at = 0; at < LEN; at += PATTERN_UNIT) {
		pattern_fill(mem, LEN, 8192, 17, 6);
		pattern_fill(mem + at, PATTERN_UNIT, 4096, 3, 5);
		assert_false(pattern_foreign(mem, LEN, 5));
	}
}

TEST(test_change_of_any_bit_is_detected)
{
	uint64_t seq;

	pattern_fill(mem, LEN, 0, 1, 0);
	for (uint32_t bit = 0; bit < LEN * 8; bit++) {
		mem[bit / 8] ^= (uint8_t)(1u << bit % 8);
		if (check(0, 0, &seq) == NULL)
			fail_msg("bit %u can be another", bit);
		mem[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	assert_null(check(0, 0, &seq));
}

TEST_MAIN(0)
