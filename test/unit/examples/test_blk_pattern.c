/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The pattern of storage_client: what was written is found right, and nothing else is. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "pattern.h"

#define LEN (4 * PATTERN_UNIT)

static uint8_t mem[LEN];

static const char *
check(uint64_t offset, uint64_t seed, uint64_t *seq)
{
	return pattern_check(mem, LEN, offset, seed, seq);
}

static void
test_right(void **state)
{
	uint64_t seq = 99;

	(void)state;
	memset(mem, 0, LEN);
	assert_null(check(8192, 1, &seq));
	assert_int_equal(seq, 0);
	pattern_fill(mem, LEN, 8192, 17, 5);
	assert_null(check(8192, 5, &seq));
	assert_int_equal(seq, 17);
}

static void
test_wrong(void **state)
{
	uint64_t seq = 99;

	(void)state;
	pattern_fill(mem, LEN, 8192, 17, 5);
	assert_non_null(strstr(check(8192, 6, &seq), "seed"));
	assert_non_null(strstr(check(4096, 5, &seq), "another place"));
	pattern_fill(mem + PATTERN_UNIT, PATTERN_UNIT, 8192 + PATTERN_UNIT, 18, 5);
	assert_non_null(strstr(check(8192, 5, &seq), "two writes"));
	memset(mem + PATTERN_UNIT, 0, LEN - PATTERN_UNIT);
	assert_non_null(strstr(check(8192, 5, &seq), "rest not"));
	pattern_fill(mem, LEN, 8192, 17, 5);
	memset(mem, 0, PATTERN_UNIT);
	assert_non_null(strstr(check(8192, 5, &seq), "two writes"));
	memset(mem, 'x', LEN);
	assert_non_null(strstr(check(8192, 5, &seq), "not written by"));
	assert_int_equal(seq, 99);
}

/* One piece that is of the seed, wherever it is, and it is not foreign. */
static void
test_foreign(void **state)
{
	uint32_t at;

	(void)state;
	memset(mem, 'x', LEN);
	assert_true(pattern_foreign(mem, LEN, 5));
	pattern_fill(mem, LEN, 8192, 17, 6);
	assert_true(pattern_foreign(mem, LEN, 5));
	for (at = 0; at < LEN; at += PATTERN_UNIT) {
		pattern_fill(mem, LEN, 8192, 17, 6);
		pattern_fill(mem + at, PATTERN_UNIT, 4096, 3, 5);
		assert_false(pattern_foreign(mem, LEN, 5));
	}
}

static void
test_every_bit(void **state)
{
	uint64_t seq;
	uint32_t bit;

	(void)state;
	pattern_fill(mem, LEN, 0, 1, 0);
	for (bit = 0; bit < LEN * 8; bit++) {
		mem[bit / 8] ^= (uint8_t)(1u << bit % 8);
		if (check(0, 0, &seq) == NULL)
			fail_msg("bit %u can be another", bit);
		mem[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	assert_null(check(0, 0, &seq));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_right),
		cmocka_unit_test(test_wrong),
		cmocka_unit_test(test_foreign),
		cmocka_unit_test(test_every_bit),
	};

	return cmocka_run_group_tests_name("blk_pattern", tests, NULL, NULL);
}
