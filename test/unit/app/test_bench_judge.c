/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * How bench judges a result against its baseline. A baseline that differs from its recorded value
 * gives no ratio and is reported. The target is judged by the recorded baseline.
 */
#include <string.h>

#include "bb_test.h"
#include "bench.h"

/* Variables that report.c uses from the rest of the program. */
struct bench_opts opts;
static bool stopped;

const struct quantile bench_quantiles[BENCH_QUANTILES] = {
	{"p50", "p50", 500000},    {"p90", "p90", 900000},  {"p99", "p99", 990000},
	{"p99.9", "p999", 999000}, {"max", "max", 1000000},
};

bool
bench_stopped(void)
{
	return stopped;
}

double
tsc_ghz(void)
{
	return 1;
}

double
core_ghz(void)
{
	return 1;
}

/* Judges @row and returns the result. */
static const struct judged *
judged(const struct row *row)
{
	unsigned int n = report_count();

	report_row(row);
	assert_int_equal(report_count(), n + 1);
	return report_judged(n);
}

/*
 * A row with a recorded baseline of 10 ns on a core as fast as the recording's. The target is 20
 * ns.
 */
static struct row
time_row(double baseline, double ours)
{
	return (struct row){
		.name = "time",
		.unit = "ns",
		.p = {.baseline = baseline,
		      .bluebell = ours,
		      .ratio = ours / baseline,
		      .baseline_limit_scale = 1,
		      .valid = true},
		.goal = GOAL_AT_MOST,
		.target = 2,
		.limit_by = LIMIT_NS,
		.limit_lo = 10,
		.limit_hi = 10,
	};
}

/* A row with a recorded baseline of 10 M/s. The target is 5 M/s. */
static struct row
rate_row(double baseline, double ours)
{
	struct row row = time_row(baseline, ours);

	row.goal = GOAL_AT_LEAST;
	row.target = 0.5;
	row.limit_by = LIMIT_RATE;
	return row;
}

static void
check(const struct row *row, const char *verdict, bool ratio, const char *why)
{
	const struct judged *j = judged(row);

	assert_string_equal(j->verdict, verdict);
	if (ratio)
		assert_float_equal(j->ratio, row->p.ratio, 1e-9);
	else
		assert_float_equal(j->ratio, 0, 0);
	if (why == NULL)
		assert_string_equal(j->why, "");
	else if (strstr(j->why, why) == NULL)
		fail_msg("\"%s\" is not in \"%s\"", why, j->why);
}

/* Within a factor of 1.3 of the recorded baseline the ratio is shown and judged. */
TEST(test_ratio_is_judged_within_1_3_of_the_recorded_baseline)
{
	static const double baselines[] = {7.70, 10, 12.99};
	struct row row;

	for (size_t i = 0; i < sizeof(baselines) / sizeof(baselines[0]); i++) {
		row = time_row(baselines[i], 1.99 * baselines[i]);
		check(&row, "reached", true, NULL);
		row = time_row(baselines[i], 2.01 * baselines[i]);
		check(&row, "missed", true, NULL);
		row = rate_row(baselines[i], 0.51 * baselines[i]);
		check(&row, "reached", true, NULL);
		row = rate_row(baselines[i], 0.49 * baselines[i]);
		check(&row, "missed", true, NULL);
	}
}

/* A slow baseline makes the ratio look too good: there is no verdict, whatever the ratio is. */
TEST(test_slow_baseline_gives_no_verdict)
{
	struct row row = time_row(13.1, 13.1);

	check(&row, "not judged", false, "slower than the recorded 10");
	row = time_row(100, 1000);
	check(&row, "not judged", false, "no ratio");
	row = rate_row(7.6, 7.6);
	check(&row, "not judged", false, "slower than the recorded 10");
	row = rate_row(1, 0.01);
	check(&row, "not judged", false, "no ratio");
}

/*
 * A fast baseline makes the ratio look too bad. Reached: the result meets the target from the
 * fast baseline. Missed: it misses even the target from the recorded one. Otherwise there is no
 * verdict.
 */
TEST(test_fast_baseline_judges_only_what_it_cannot_distort)
{
	struct row row = time_row(7.6, 15.1);

	check(&row, "reached", false, "faster than the recorded 10");
	row = time_row(7.6, 19.9);
	check(&row, "not judged", false, "no ratio");
	row = time_row(7.6, 20.1);
	check(&row, "missed", false, "no ratio");
	row = rate_row(13.1, 6.6);
	check(&row, "reached", false, "faster than the recorded 10");
	row = rate_row(13.1, 5.1);
	check(&row, "not judged", false, "no ratio");
	row = rate_row(13.1, 4.9);
	check(&row, "missed", false, "no ratio");
}

TEST(test_recorded_baseline_is_scaled_to_core_and_l)
{
	struct row row = time_row(20, 30);

	row.p.baseline_limit_scale = 2;
	check(&row, "reached", true, NULL);
	row = rate_row(5, 3);
	row.p.baseline_limit_scale = 2;
	check(&row, "reached", true, NULL);
	/* L is 100 ns; the baseline spends 10 L. */
	row = time_row(1000, 1500);
	row.limit_by = LIMIT_L;
	row.p.baseline_l = 10;
	check(&row, "reached", true, NULL);
	row.p.baseline_l = 13.1;
	check(&row, "not judged", false, "slower");
	/* Twice the L of the recording halves the expected rate. */
	row = rate_row(5, 3);
	row.limit_by = LIMIT_RATE_L;
	row.p.l_before = 240;
	row.p.l_after = 260;
	check(&row, "reached", true, NULL);
	row.p.l_before = row.p.l_after = 125;
	check(&row, "not judged", false, "slower");
}

TEST(test_goal_without_ratio_ignores_the_baseline)
{
	struct row row = time_row(100, 2.9);

	row.goal = GOAL_BELOW;
	row.target = 3;
	check(&row, "reached", false, "no ratio");
	row.p.bluebell = 3.1;
	check(&row, "missed", false, "no ratio");
	row = time_row(10, 11);
	row.goal = GOAL_BELOW_L;
	row.p.bluebell_l = 2.01;
	check(&row, "missed", true, NULL);
	row.p.bluebell_l = 1.99;
	check(&row, "reached", true, NULL);
	row.goal = GOAL_NONE;
	check(&row, "", true, NULL);
	/* A row with a baseline but no result of Bluebell. */
	row = time_row(13.1, 0);
	row.goal = GOAL_NONE;
	row.p.baseline_only = true;
	check(&row, "", false, "away from the recorded 10");
}

/* Results that were measured beside other work, not at all, or after the end of the run. */
TEST(test_unmeasured_results_get_no_verdict)
{
	struct row row = time_row(10, 11);
	unsigned int n;

	row.p.shared = 0.07;
	check(&row, "not judged", false, "7 % of the time for other work");
	row = time_row(10, 11);
	row.p.valid = false;
	check(&row, "failed", false, "the measurement failed");
	assert_int_equal(report_failed(), 1);
	row.p.rejected = 3;
	check(&row, "not judged", false, "L changed by more than 20 % in every pair");
	assert_int_equal(report_failed(), 1);
	n = report_count();
	report_skip("a row", "a reason");
	assert_string_equal(report_judged(n)->verdict, "skipped");
	assert_string_equal(report_judged(n)->why, "a reason");
	stopped = true;
	report_row(&row);
	stopped = false;
	assert_int_equal(report_count(), n + 1);
	assert_null(report_judged(n + 1));
}

TEST_MAIN(0)
