/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */

#include "bb_test.h"
#include "histogram.h"

#define N 200000

static struct hist h, other;
static uint64_t values[N];
static uint64_t seed;

static uint64_t
rnd(void)
{
	uint64_t x = seed += 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static int
cmp(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Returns the exact value at a quantile: the nearest rank in the sorted values. */
static uint64_t
exact(uint32_t n, uint32_t ppm)
{
	uint64_t rank = ((uint64_t)n * ppm + 999999) / 1000000;

	return values[rank == 0 ? 0 : rank - 1];
}

static void
check_against_exact(uint32_t n)
{
	static const uint32_t ppms[] = {0,      1,      10000,  250000, 500000,
					900000, 990000, 999000, 999999, 1000000};
	uint64_t sum = 0;

	hist_reset(&h);
	for (uint32_t i = 0; i < n; i++) {
		hist_add(&h, values[i]);
		sum += values[i];
	}
	qsort(values, n, sizeof(values[0]), cmp);
	assert_fields(h, count, n, sum, sum, min, values[0], max, values[n - 1]);
	for (uint32_t i = 0; i < sizeof(ppms) / sizeof(ppms[0]); i++) {
		uint64_t want = exact(n, ppms[i]), got = hist_quantile(&h, ppms[i]);

		assert_true(got >= want);
		assert_true(got - want <= want / HIST_SUB);
	}
	assert_int_equal(hist_quantile(&h, 1000000), values[n - 1]);
}

TEST(test_buckets_cover_every_value_once)
{
	uint64_t v;

	assert_int_equal(hist_index(0), 0);
	assert_int_equal(hist_index(UINT64_MAX), HIST_BUCKETS - 1);
	assert_true(hist_bucket_top(HIST_BUCKETS - 1) == UINT64_MAX);
	for (uint32_t i = 0; i < HIST_BUCKETS - 1; i++) {
		v = hist_bucket_top(i);
		assert_int_equal(hist_index(v), i);
		assert_int_equal(hist_index(v + 1), i + 1);
	}
}

TEST(test_small_values_are_exact)
{
	for (uint32_t i = 0; i < 2 * HIST_SUB; i++)
		values[i] = i;
	hist_reset(&h);
	for (uint32_t i = 0; i < 2 * HIST_SUB; i++)
		hist_add(&h, i);
	for (uint32_t i = 1; i <= 1000000; i += 997)
		assert_int_equal(hist_quantile(&h, i), exact(2 * HIST_SUB, i));
}

TEST(test_quantiles_of_a_uniform_distribution_are_exact_enough)
{
	seed = 1;
	for (uint32_t i = 0; i < N; i++)
		values[i] = rnd() % 100000;
	check_against_exact(N);
}

TEST(test_quantiles_over_all_magnitudes_are_exact_enough)
{
	seed = 2;
	for (uint32_t i = 0; i < N; i++)
		values[i] = rnd() >> rnd() % 64;
	check_against_exact(N);
}

/* A distribution as latencies have it: a narrow body and a thin tail far away. */
TEST(test_quantiles_of_a_long_tail_are_exact_enough)
{
	seed = 3;
	for (uint32_t i = 0; i < N; i++)
		values[i] = i % 1000 == 7 ? 1000000 + rnd() % 5000000 : 400 + rnd() % 60;
	check_against_exact(N);
	/* One in a thousand is slow: the 99.9 % point is still in the body. */
	assert_true(hist_quantile(&h, 999000) < 1000);
	assert_true(hist_quantile(&h, 999100) >= 1000000);
}

TEST(test_quantiles_of_few_values_are_exact)
{
	hist_reset(&h);
	assert_int_equal(hist_quantile(&h, 500000), 0);
	values[0] = 12345;
	check_against_exact(1);
	values[0] = 1;
	values[1] = 1000;
	values[2] = 5;
	check_against_exact(3);
	assert_int_equal(hist_quantile(&h, 500000), 5);
}

TEST(test_merge_equals_adding_all_values)
{
	uint32_t i;

	seed = 4;
	for (i = 0; i < N; i++)
		values[i] = rnd() >> 40;
	check_against_exact(N);
	hist_reset(&other);
	for (i = 0; i < N / 3; i++)
		hist_add(&other, values[i]);
	hist_reset(&h);
	for (; i < N; i++)
		hist_add(&h, values[i]);
	hist_merge(&h, &other);
	assert_fields(h, count, N, min, values[0], max, values[N - 1]);
	assert_true(hist_quantile(&h, 500000) - exact(N, 500000) <= exact(N, 500000) / HIST_SUB);
}

TEST(test_add_since_adds_only_the_values_after_the_copy)
{
	static struct hist since;
	uint32_t i;

	hist_reset(&h);
	hist_reset(&since);
	for (i = 0; i < 1000; i++)
		hist_add(&h, 1000000 + i);
	other = h;
	hist_add(&since, 7);
	hist_add_since(&since, &h, &other);
	assert_int_equal(since.count, 1);
	assert_int_equal(hist_quantile(&since, 500000), 7);
	for (i = 1; i <= 100; i++)
		hist_add(&h, i);
	hist_add_since(&since, &h, &other);
	assert_int_equal(since.count, 101);
	assert_int_equal(since.sum, 7 + 5050);
	assert_int_equal(hist_quantile(&since, 500000), 50);
	assert_int_equal(hist_quantile(&since, 1000000), 100);
}

/* An open loop adds latencies of minutes, billions of times. */
TEST(test_sum_of_many_large_values)
{
	const uint64_t v = UINT64_C(1) << 40;

	hist_reset(&h);
	hist_add_many(&h, v, UINT64_C(1) << 31);
	hist_add(&h, 3);
	assert_fields(h, count, (UINT64_C(1) << 31) + 1, min, 3, max, v);
	assert_true((double)h.sum / (double)h.count > (double)v * 0.999);
	assert_int_equal(hist_quantile(&h, 500000), v);
}

TEST_MAIN(0)
