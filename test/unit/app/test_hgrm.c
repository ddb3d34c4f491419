/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Percentile files of HdrHistogram: lines, rules between them and the three last lines. */
#include <math.h>
#include <string.h>

#include "bb_test.h"
#include "hgrm.h"

struct file {
	char text[65536];
	double value[1024], percentile[1024], inverse[1024];
	uint64_t count[1024];
	int n; /* number of lines with a value */
};

static void
write_and_read(const struct hist *h, double scale, struct file *file)
{
	FILE *f = fmemopen(file->text, sizeof(file->text), "w");
	char *line, *rest, copy[sizeof(file->text)];

	assert_non_null(f);
	hgrm_write(f, h, scale);
	assert_int_equal(fclose(f), 0);
	memcpy(copy, file->text, sizeof(copy));
	file->n = 0;
	for (line = strtok_r(copy, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
		if (sscanf(line, "%lf %lf %lu %lf", &file->value[file->n],
			   &file->percentile[file->n], &file->count[file->n],
			   &file->inverse[file->n]) == 4)
			file->n++;
	}
}

static void
assert_percentiles(const struct hist *h, const struct file *f)
{
	int i;

	assert_true(f->n >= 2);
	assert_true(f->percentile[0] == 0);
	for (i = 0; i < f->n; i++) {
		/* At least the percentile's share of the values is not larger. */
		assert_true((double)f->count[i] >=
			    f->percentile[i] * (double)h->count * (1 - 1e-9));
		if (i + 1 == f->n)
			break;
		assert_true(fabs(f->inverse[i] * (1 - f->percentile[i]) - 1) < 0.01);
		assert_true(f->value[i] <= f->value[i + 1]);
		assert_true(f->percentile[i] < f->percentile[i + 1]);
		assert_true(f->count[i] <= f->count[i + 1]);
	}
	assert_true(f->percentile[i] == 1);
	assert_int_equal(f->count[i], h->count);
	assert_true(isinf(f->inverse[i]));
}

TEST(test_values_1_to_100_give_five_lines_for_each_halving_of_the_distance)
{
	/* As outputPercentileDistribution() of HdrHistogram prints for these values. */
	static const double first[][2] = {{1, 0},     {10, 0.1},   {20, 0.2}, {30, 0.3},  {40, 0.4},
					  {50, 0.5},  {55, 0.55},  {60, 0.6}, {65, 0.65}, {70, 0.7},
					  {75, 0.75}, {78, 0.775}, {80, 0.8}, {83, 0.825}};
	static struct hist h;
	static struct file f;
	uint64_t v;
	size_t i;

	hist_reset(&h);
	for (v = 1; v <= 100; v++)
		hist_add(&h, v);
	write_and_read(&h, 1, &f);
	assert_percentiles(&h, &f);
	for (i = 0; i < sizeof(first) / sizeof(first[0]); i++) {
		assert_true(fabs(f.value[i] - first[i][0]) < 1e-9);
		assert_true(fabs(f.percentile[i] - first[i][1]) < 1e-9);
	}
	assert_true(f.value[f.n - 1] == 100);
	assert_non_null(
		strstr(f.text, "#[Mean    =       50.500, StdDeviation   =       28.866]\n"));
	assert_non_null(
		strstr(f.text, "#[Max     =      100.000, Total count    =          100]\n"));
	assert_non_null(
		strstr(f.text, "#[Buckets =           57, SubBuckets     =          256]\n"));
}

TEST(test_scale_changes_values_and_not_percentiles)
{
	static struct file one, half;
	static struct hist h;
	uint64_t v = 1;
	int i;

	hist_reset(&h);
	for (i = 0; i < 5000; i++) {
		hist_add(&h, v >> 20);
		v = v * 6364136223846793005u + 1442695040888963407u;
	}
	write_and_read(&h, 1, &one);
	write_and_read(&h, 0.5, &half);
	assert_percentiles(&h, &one);
	assert_int_equal(one.n, half.n);
	for (i = 0; i < one.n; i++) {
		assert_true(one.percentile[i] == half.percentile[i]);
		assert_true(fabs(one.value[i] - 2 * half.value[i]) <= 0.002);
	}
}

TEST(test_single_value_has_a_line_for_0_and_100_percent)
{
	static struct hist h;
	static struct file f;

	hist_reset(&h);
	hist_add(&h, 7);
	write_and_read(&h, 1, &f);
	assert_int_equal(f.n, 2);
	assert_percentiles(&h, &f);
}

TEST(test_empty_histogram_has_no_lines)
{
	static struct hist h;
	static struct file f;

	hist_reset(&h);
	write_and_read(&h, 1, &f);
	assert_int_equal(f.n, 0);
	assert_non_null(strstr(f.text, "Total count    =            0]"));
	assert_null(strstr(f.text, "nan"));
}

TEST_MAIN(0)
