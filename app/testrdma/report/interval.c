/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The lines of --interval: operations, errors and latencies since the previous line. In the
 * foreground the test itself prints them; at the prompt the session does (show.c).
 */
#include "testrdma.h"

static struct {
	uint64_t finished_ops; /* number of operations of finished tests */
	uint64_t ops, errors;  /* totals at the last printed line, in the foreground */
	uint64_t last;         /* TSC at which the last line was printed */
	struct hist since;     /* latencies since the last printed line, in TSC cycles */
	/* latencies of the current test that were printed or added to the histogram "since" */
	struct hist counted;
} interval;

void
interval_clear(void)
{
	hist_reset(&interval.since);
	hist_reset(&interval.counted);
}

void
interval_start(const struct tester *t)
{
	interval.last = t->started;
	interval_clear();
}

void
interval_latencies(const struct hist *now)
{
	hist_add_since(&interval.since, now, &interval.counted);
	interval.counted = *now;
}

void
interval_test_end(const struct tester *t, const struct test *test)
{
	interval.finished_ops += flows_done(t);
	interval_latencies(&test->lat);
	hist_reset(&interval.counted);
}

void
interval_line(FILE *out, uint64_t ops, double seconds, uint64_t errors, uint64_t tsc_hz)
{
	const struct hist *lat = &interval.since;
	double ns = 1e9 / (double)tsc_hz;

	fprintf(out, "%" PRIu64 " operations in %.3f s: %.4f M ops/s; %" PRIu64 " errors; ", ops,
		seconds, seconds > 0 ? (double)ops / seconds / 1e6 : 0.0, errors);
	if (lat->count > 0)
		fprintf(out, "latency p50 %.0f ns, p99 %.0f ns\n",
			(double)hist_quantile(lat, 500000) * ns,
			(double)hist_quantile(lat, 990000) * ns);
	else
		fprintf(out, "latency not measured\n");
	fflush(out);
	hist_reset(&interval.since);
}

void
interval_update(const struct tester *t, uint64_t now)
{
	double seconds = (double)(now - interval.last) / (double)t->tsc_hz;
	uint64_t ops, errors;

	if (t->o.interval == 0 || seconds < t->o.interval)
		return;
	ops = interval.finished_ops + flows_done(t);
	errors = t->errors + t->test->res.errors;
	interval_latencies(&t->test->lat);
	progress_clear();
	interval_line(interval_out(&t->o), ops - interval.ops, seconds, errors - interval.errors,
		      t->tsc_hz);
	interval.ops = ops;
	interval.errors = errors;
	interval.last = now;
}
