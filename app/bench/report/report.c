/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Writes the results as table, CSV and JSON, and judges whether each result reaches its target. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "bench.h"
#include "json_string.h"
#include "output.h"

#define LIMIT_TOLERANCE 1.3

static struct judged rows[BENCH_MAX_ROWS];
static unsigned int n_rows;

const struct judged *
report_judged(unsigned int i)
{
	return i < n_rows ? &rows[i] : NULL;
}

static const char *const goal_text[] = {
	[GOAL_NONE] = "",
	[GOAL_AT_MOST] = "<= %.4g x",
	[GOAL_AT_LEAST] = ">= %.4g x",
	[GOAL_BELOW] = "<= %.4g ns",
	[GOAL_BELOW_L] = "<= %.4g L",
};

void
report_goal(const struct row *row, char text[static REPORT_GOAL])
{
	snprintf(text, REPORT_GOAL, goal_text[row->goal], row->target);
}

static double
row_l(const struct row *row)
{
	return (row->p.l_before + row->p.l_after) / 2;
}

/*
 * Converts a recorded figure to the unit of the row. Uses the present clock rate of this machine
 * and its L, the round trip of a cache line between two CPUs.
 */
static double
limit_scaled(const struct row *row, double limit)
{
	switch (row->limit_by) {
	case LIMIT_NS:
		return limit * row->p.baseline_limit_scale;
	case LIMIT_RATE:
		return limit / row->p.baseline_limit_scale;
	case LIMIT_L:
		return limit * row->p.baseline / row->p.baseline_l;
	case LIMIT_RATE_L:
		/*
		 * A longer path between the cores lowers a rate. A shorter path does not raise the
		 * rate, because other limits remain.
		 */
		return row_l(row) > 125 ? limit * 125 / row_l(row) : limit;
	case LIMIT_NONE:
		break;
	}
	return 0;
}

static bool
is_rate(const struct row *row)
{
	return row->goal == GOAL_AT_LEAST || row->limit_by == LIMIT_RATE ||
	       row->limit_by == LIMIT_RATE_L;
}

static bool
meets_goal(const struct row *row, double ratio)
{
	switch (row->goal) {
	case GOAL_AT_MOST:
		return ratio <= row->target;
	case GOAL_AT_LEAST:
		return ratio >= row->target;
	case GOAL_BELOW:
		return row->p.bluebell <= row->target;
	case GOAL_BELOW_L:
		return row->p.bluebell_l <= row->target;
	case GOAL_NONE:
		break;
	}
	return true;
}

static const char *
verdict(const struct row *row, double ratio)
{
	if (row->goal == GOAL_NONE)
		return "";
	return meets_goal(row, ratio) ? "reached" : "missed";
}

/*
 * Sets the verdict of a row, and the ratio that the report shows. The target of a ratio was set
 * with a recorded baseline. So the report shows a ratio only if the measured baseline is close to
 * the recorded one (LIMIT_TOLERANCE). If the measured baseline is slower than that, there is no
 * verdict on the ratio, because the ratio would look too good. If it is faster, a row that meets
 * its target with the measured baseline has reached the target. A row that meets its target with
 * neither baseline has missed it. Otherwise there is no verdict.
 */
static void
judge(unsigned int i)
{
	const struct row *row = &rows[i].row;
	const double lo = limit_scaled(row, row->limit_lo), hi = limit_scaled(row, row->limit_hi);
	const bool above = row->p.baseline > hi * LIMIT_TOLERANCE;
	const bool below = row->p.baseline < lo / LIMIT_TOLERANCE;
	const double recorded = above ? hi : lo;
	const bool by_ratio = row->goal == GOAL_AT_MOST || row->goal == GOAL_AT_LEAST;

	rows[i].verdict = verdict(row, row->p.ratio);
	if (row->p.shared > 0) {
		/*
		 * Gives no verdict, because medians are meaningless if other work used the CPU half
		 * of the time.
		 */
		if (row->goal != GOAL_NONE)
			rows[i].verdict = "not judged";
		snprintf(rows[i].why, sizeof(rows[i].why),
			 "no ratio: the CPUs were shared; its threads waited %.0f %% of the time "
			 "for other work",
			 row->p.shared < 1 ? 100 * row->p.shared : 100);
		return;
	}
	if (row->p.baseline_only) {
		if (row->limit_by != LIMIT_NONE && (above || below))
			snprintf(rows[i].why, sizeof(rows[i].why),
				 "more than 1.3 x away from the recorded %.4g", recorded);
		return;
	}
	if (row->limit_by == LIMIT_NONE || (!above && !below)) {
		rows[i].ratio = row->p.ratio;
		return;
	}
	if (above != is_rate(row)) {
		if (by_ratio)
			rows[i].verdict = "not judged";
		snprintf(rows[i].why, sizeof(rows[i].why),
			 "no ratio: baseline %.4g is more than 1.3 x slower than the recorded "
			 "%.4g",
			 row->p.baseline, recorded);
		return;
	}
	if (by_ratio && !meets_goal(row, row->p.ratio))
		rows[i].verdict =
			meets_goal(row, row->p.bluebell / recorded) ? "not judged" : "missed";
	snprintf(rows[i].why, sizeof(rows[i].why),
		 "no ratio: baseline %.4g is more than 1.3 x faster than the recorded %.4g; "
		 "ratio to this baseline %.2f, to the recorded %.2f",
		 row->p.baseline, recorded, row->p.ratio, row->p.bluebell / recorded);
}

void
report_header(void)
{
	printf("%-32s %9s %9s %7s  %-11s %-10s %s\n", "case", "baseline", "bluebell", "ratio",
	       "target", "", "unit; L before / after, ns");
}

static void
print_tail(const char *side, const struct tail *t)
{
	unsigned int i;

	if (t->samples == 0)
		return;
	printf("%-32s   %s, ns:", "", side);
	for (i = 0; i < BENCH_QUANTILES; i++)
		printf(" %s %.4g", bench_quantiles[i].name, t->ns[i]);
	printf(" of %" PRIu64 "\n", t->samples);
}

static void
print_row(unsigned int i)
{
	const struct row *row = &rows[i].row;
	char goal[REPORT_GOAL], ratio[16], bluebell[16];

	if (strcmp(rows[i].verdict, "skipped") == 0) {
		printf("%-32s %9s %9s %7s  %-11s %-10s %s\n", row->name, "", "", "", "", "skipped",
		       rows[i].why);
		return;
	}
	report_goal(row, goal);
	if (rows[i].ratio > 0)
		snprintf(ratio, sizeof(ratio), rows[i].ratio < 0.1 ? "%.2g" : "%.2f",
			 rows[i].ratio);
	else
		snprintf(ratio, sizeof(ratio), "-");
	if (row->p.baseline_only)
		snprintf(bluebell, sizeof(bluebell), "-");
	else
		snprintf(bluebell, sizeof(bluebell), "%.4g", row->p.bluebell);
	printf("%-32s %9.4g %9s %7s  %-11s %-10s %s", row->name, row->p.baseline, bluebell, ratio,
	       goal, rows[i].verdict, row->unit);
	if (row->p.l_before > 0)
		printf("; L %.0f / %.0f, %u pairs discarded", row->p.l_before, row->p.l_after,
		       row->p.rejected);
	if (row->goal == GOAL_BELOW_L)
		printf("; baseline %.2f L, bluebell %.2f L", row->p.baseline_l, row->p.bluebell_l);
	printf("\n");
	print_tail("baseline", &row->p.baseline_tail);
	print_tail("bluebell", &row->p.bluebell_tail);
	if (rows[i].why[0] != '\0')
		printf("%-32s   %s\n", "", rows[i].why);
	if (row->note[0] != '\0')
		printf("%-32s   %s\n", "", row->note);
	fflush(stdout);
}

/*
 * Returns true if a row can be added to the report. Returns false if the report is full. Also
 * returns false if the program was stopped, because the row's measurement is then incomplete.
 */
static bool
room(void)
{
	if (n_rows == BENCH_MAX_ROWS)
		fprintf(stderr, "bench: more than %u lines of results; one line is left out\n",
			BENCH_MAX_ROWS);
	return n_rows < BENCH_MAX_ROWS && !bench_stopped();
}

void
report_row(const struct row *row)
{
	unsigned int i = n_rows;

	if (!room())
		return;
	n_rows++;
	rows[i].row = *row;
	rows[i].why[0] = '\0';
	rows[i].ratio = 0;
	if (!row->p.valid) {
		const bool moved = row->p.rejected > 0;

		rows[i].verdict = moved ? "not judged" : "failed";
		snprintf(rows[i].why, sizeof(rows[i].why),
			 moved ? "L changed by more than 20 %% in every pair: run the case again"
			       : "the measurement failed");
	} else {
		judge(i);
	}
	print_row(i);
}

void
report_skip(const char *name, const char *why)
{
	unsigned int i = n_rows;

	if (!room())
		return;
	n_rows++;
	memset(&rows[i].row, 0, sizeof(rows[i].row));
	rows[i].row.unit = "";
	snprintf(rows[i].row.name, sizeof(rows[i].row.name), "%s", name);
	snprintf(rows[i].why, sizeof(rows[i].why), "%s", why);
	rows[i].verdict = "skipped";
	print_row(i);
}

static unsigned int
count(const char *verdict)
{
	unsigned int i, n = 0;

	for (i = 0; i < n_rows; i++)
		n += strcmp(rows[i].verdict, verdict) == 0;
	return n;
}

unsigned int
report_count(void)
{
	return n_rows;
}

unsigned int
report_failed(void)
{
	return count("failed");
}

void
report_summary(FILE *f)
{
	fprintf(f, "%u targets reached, %u missed, %u not judged, %u failed, %u skipped",
		count("reached"), count("missed"), count("not judged"), count("failed"),
		count("skipped"));
}

static void
csv_tail(FILE *f, const struct tail *t)
{
	unsigned int i;

	for (i = 0; i < BENCH_QUANTILES; i++) {
		if (t->samples != 0)
			fprintf(f, ",%.6g", t->ns[i]);
		else
			fprintf(f, ",");
	}
}

static void
json_tail(FILE *f, const char *side, const struct tail *t)
{
	unsigned int i;

	if (t->samples == 0) {
		fprintf(f, "\"%s_latency_ns\": null, ", side);
		return;
	}
	fprintf(f, "\"%s_latency_ns\": {\"samples\": %" PRIu64, side, t->samples);
	for (i = 0; i < BENCH_QUANTILES; i++)
		fprintf(f, ", \"%s\": %.6g", bench_quantiles[i].name, t->ns[i]);
	fprintf(f, "}, ");
}

int
report_csv(const char *path)
{
	FILE *f = path != NULL ? output_open("csv", path) : stdout;
	unsigned int i;

	if (f == NULL)
		return -EIO;
	fprintf(f, "case,unit,floor,ours,ratio,goal,target,verdict,l_before,l_after,thrown,shared");
	for (i = 0; i < 2 * BENCH_QUANTILES; i++)
		fprintf(f, ",%s_%s", i < BENCH_QUANTILES ? "floor" : "ours",
			bench_quantiles[i % BENCH_QUANTILES].key);
	fprintf(f, "\n");
	for (i = 0; i < n_rows; i++) {
		const struct row *r = &rows[i].row;
		static const char *const goal[] = {
			[GOAL_NONE] = "",
			[GOAL_AT_MOST] = "ratio_at_most",
			[GOAL_AT_LEAST] = "ratio_at_least",
			[GOAL_BELOW] = "ns_at_most",
			[GOAL_BELOW_L] = "l_at_most",
		};

		/* Names and units are in quotes, because some contain commas. */
		fprintf(f, "\"%s\",\"%s\",%.6g,", r->name, r->unit, r->p.baseline);
		if (r->p.baseline_only)
			fprintf(f, ",");
		else
			fprintf(f, "%.6g,", r->p.bluebell);
		if (rows[i].ratio > 0)
			fprintf(f, "%.6g", rows[i].ratio);
		fprintf(f, ",%s,%.6g,%s,%.6g,%.6g,%u,%.3g", goal[r->goal], r->target,
			rows[i].verdict, r->p.l_before, r->p.l_after, r->p.rejected, r->p.shared);
		csv_tail(f, &r->p.baseline_tail);
		csv_tail(f, &r->p.bluebell_tail);
		fprintf(f, "\n");
	}
	return path != NULL ? output_close(f, "csv", path) : 0;
}

int
report_json(const char *path)
{
	FILE *f = output_open("json", path);
	unsigned int i;

	if (f == NULL)
		return -EIO;
	fprintf(f,
		"{\n  \"tsc_ghz\": %.4f,\n  \"core_ghz\": %.3f,\n  \"repeat\": %u,\n"
		"  \"interrupted\": %s,\n  \"rows\": [",
		tsc_ghz(), core_ghz(), opts.repeat, bench_stopped() ? "true" : "false");
	for (i = 0; i < n_rows; i++) {
		const struct row *r = &rows[i].row;

		fprintf(f, "%s\n    {", i == 0 ? "" : ",");
		json_string(f, "case", r->name);
		fprintf(f, ", ");
		json_string(f, "unit", r->unit);
		fprintf(f, ", \"floor\": %.6g, \"ours\": ", r->p.baseline);
		if (r->p.baseline_only)
			fprintf(f, "null, \"ratio\": ");
		else
			fprintf(f, "%.6g, \"ratio\": ", r->p.bluebell);
		if (rows[i].ratio > 0)
			fprintf(f, "%.6g, ", rows[i].ratio);
		else
			fprintf(f, "null, ");
		fprintf(f, "\"target\": %.6g, \"verdict\": \"%s\", ", r->target, rows[i].verdict);
		fprintf(f,
			"\"l_before\": %.6g, \"l_after\": %.6g, \"thrown\": %u, \"shared\": %.3g, ",
			r->p.l_before, r->p.l_after, r->p.rejected, r->p.shared);
		json_tail(f, "floor", &r->p.baseline_tail);
		json_tail(f, "ours", &r->p.bluebell_tail);
		json_string(f, "why", rows[i].why);
		fprintf(f, ", ");
		json_string(f, "note", r->note);
		fprintf(f, "}");
	}
	fprintf(f, "\n  ]\n}\n");
	return output_close(f, "json", path);
}
