/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Prints the results as text: one line per test on standard output, everything else on standard
 * error.
 */
#include <math.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_lcore.h>

#include "testrdma.h"

#define SPARSE_SECONDS 10 /* seconds between progress lines if stderr is not a terminal */

static struct {
	bool tty;      /* stderr is a terminal: one line is rewritten every second */
	uint64_t last; /* TSC of the last progress line */
} progress;

void
report_start(struct tester *t)
{
	const struct options *o = &t->o;
	FILE *out = o->csv ? stderr : stdout;
	char where[24];

	progress.tty = isatty(STDERR_FILENO) == 1;
	progress.last = t->started;
	interval_start(t);
	if (options_session(o) || o->lcores > 1)
		snprintf(where, sizeof(where), "%u lcore%s", o->lcores, o->lcores == 1 ? "" : "s");
	else
		snprintf(where, sizeof(where), "lcore %u", rte_lcore_id());
	fprintf(out,
		"testrdma %s on %s (%s%s), %s: %u QP pair%s, depth %u, burst %u, a completion "
		"every %u, %s%s\n",
		TESTRDMA_VERSION, bb_dev_name(t->dev), t->attr.driver,
		t->attr.software ? ", software" : "", where, o->qps, o->qps == 1 ? "" : "s",
		o->depth, o->burst, o->signal_every, o->blueflame ? "BlueFlame" : "doorbell",
		o->verify ? ", verified" : "");
	fflush(out);
	if (isinf(o->duration))
		fprintf(stderr, "runs until you stop it\n");
	else
		fprintf(stderr, "%u test%s of %.3g s: about %.3g s\n", t->ntests,
			t->ntests == 1 ? "" : "s", o->duration, t->ntests * o->duration);
	if (o->csv)
		printf("op,size,depth,mops,gbytes_per_s,gbits_per_s,p50_ns,p99_ns,p999_ns,max_ns,cycles_per_op,"
		       "doorbells_per_op,verified_bytes,errors,status,latency_of\n");
	else
		printf("%-13s%10s%6s%9s%8s%9s%9s%9s%10s%9s%7s%10s\n", "op", "size", "depth",
		       "M ops/s", "Gb/s", "p50 ns", "p99 ns", "p99.9 ns", "max ns", "cyc/op",
		       "db/op", "verified");
	fflush(stdout);
}

static const char *
human(char *buf, size_t size, uint64_t bytes)
{
	static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
	double v = (double)bytes;
	unsigned int u = 0;

	while (v >= 1000 && u < 4) {
		v /= 1000;
		u++;
	}
	snprintf(buf, size, u == 0 ? "%.0f %s" : "%.1f %s", v, units[u]);
	return buf;
}

static const char *
test_status(const struct test *test)
{
	if (test->res.errors > 0)
		return "FAIL";
	return test->complete ? "ok" : "cut short";
}

/* Prints the figures that only some modes have. */
static void
report_mode(const struct test *test, const struct figures *f)
{
	unsigned int i;

	if (test->e->ping_pong)
		printf("  round trips, ns: p50 %.0f, p99 %.0f; half of them (one way): p50 %.0f, "
		       "p99 %.0f\n",
		       f->p50, f->p99, f->p50 / 2, f->p99 / 2);
	if (test->rate != 0)
		printf("  open loop of %" PRIu64 " operations/s: latencies count from the due "
		       "time; %" PRIu64 " due operations were not posted at the end\n",
		       test->rate * test->lcores, test->res.unposted);
	if (test->e->pick == NULL)
		return;
	printf("  of it");
	for (i = 0; i < MIX_KINDS; i++)
		if (test->res.kinds[i] > 0)
			printf(" %s %" PRIu64, mix_names[i], test->res.kinds[i]);
	printf("\n");
}

void
report_test(struct tester *t, const struct test *test)
{
	const struct result *r = &test->res;
	struct figures f;
	char bytes[32];

	test_figures(t, test, &f);
	progress_clear();
	if (t->o.csv) {
		printf("%s,%u,%u,%.4f,%.4f,%.4f,%.1f,%.1f,%.1f,%.1f,%.1f,%.4f,%" PRIu64 ",%" PRIu64
		       ",%s,%s\n",
		       test->e->name, test->size, test->window, f.mops, f.gbytes_per_s,
		       8 * f.gbytes_per_s, f.p50, f.p99, f.p999, f.max, f.cycles_per_op,
		       f.doorbells_per_op, r->bytes, r->errors, test_status(test),
		       test_latency_of(test));
	} else {
		printf("%-13s%10u%6u%9.3f%8.2f", test->e->name, test->size, test->window, f.mops,
		       8 * f.gbytes_per_s);
		/*
		 * Skips the latencies if there are none: a test that was stopped early may not have
		 * reached its latency phase.
		 */
		if (test->lat.count > 0)
			printf(" %8.0f %8.0f %8.0f %9.0f", f.p50, f.p99, f.p999, f.max);
		else
			printf(" %8s %8s %8s %9s", "-", "-", "-", "-");
		/*
		 * Skips these figures if the first operation failed, because they are per
		 * operation.
		 */
		if (r->ops > 0)
			printf(" %8.0f %6.3f", f.cycles_per_op, f.doorbells_per_op);
		else
			printf(" %8s %6s", "-", "-");
		printf("%10s%s%s\n", t->o.verify ? human(bytes, sizeof(bytes), r->bytes) : "-",
		       r->errors == 0 && test->complete ? "" : "  ",
		       r->errors == 0 && test->complete ? "" : test_status(test));
	}
	if (!t->o.csv)
		report_mode(test, &f);
	fflush(stdout);
	if (r->errors > FAILS_SHOWN)
		say("%s %u: %" PRIu64 " more errors like these", test->e->name, test->size,
		    r->errors - FAILS_SHOWN);
}

void
test_finish(struct tester *t, const struct test *test)
{
	report_test(t, test);
	interval_test_end(t, test);
	t->errors += test->res.errors;
	t->verified += test->res.bytes;
	if (test->res.errors > 0)
		t->failed++;
	else if (test->complete)
		t->passed++;
	t->test_no++;
	json_test(t, test);
}

void
report_progress(struct tester *t, const char *phase)
{
	uint64_t now = rte_rdtsc(), gap = (progress.tty ? 1 : SPARSE_SECONDS) * t->tsc_hz;
	const struct test *test = t->test;

	interval_update(t, now);
	if (now - progress.last < gap)
		return;
	progress.last = now;
	progress_open(progress.tty);
	fprintf(stderr, "%s[%u/%u] %s %u, %s: %.0f s of about %.0f s%s", progress.tty ? "\r" : "",
		t->test_no + 1, t->ntests, test->e->name, test->size, phase,
		(double)(now - t->started) / (double)t->tsc_hz, t->ntests * t->o.duration,
		progress.tty ? "\033[K" : "\n");
}

void
report_summary(struct tester *t)
{
	FILE *out = t->o.csv ? stderr : stdout;
	char text[32];

	progress_clear();
	fprintf(out, "%u of %u tests ran, %u right, %u wrong", t->passed + t->failed, t->ntests,
		t->passed, t->failed);
	if (t->o.verify)
		fprintf(out, "; %s verified, guard bytes %s",
			human(text, sizeof(text), t->verified),
			t->failed == 0 ? "untouched" : "see above");
	fprintf(out, "; %.1f s\n", (double)(rte_rdtsc() - t->started) / (double)t->tsc_hz);
	if (stop_signal != 0)
		fprintf(out, "stopped by %s before the end\n",
			stop_signal == SIGINT    ? "Ctrl-C"
			: stop_signal == SIGTERM ? "SIGTERM"
						 : "the end of the output's reader");
	if (t->fatal)
		fprintf(out, "ended early: the queue pairs cannot be used again after the error\n");
	fflush(out);
}
