/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Writes the results as JSON, test by test. After each test the file has a valid end, which the
 * next test overwrites. So the file is valid even if the program is killed.
 */
#include <math.h>
#include <unistd.h>

#include <rte_lcore.h>
#include <rte_version.h>

#include "json_string.h"
#include "output.h"
#include "testrdma.h"

static FILE *json;
static bool tests_open, test_written;
static off_t tests_end = -1; /* file offset for the next test; -1 if the output cannot seek, so that
			       no end can be overwritten */

static const char *
boolean(bool b)
{
	return b ? "true" : "false";
}

int
json_open(const char *path)
{
	json = output_open("json", path);
	return json != NULL ? 0 : -1;
}

static void
put_end(const struct tester *t, const char *result, int status)
{
	fprintf(json, "\n  ],\n  \"result\": \"%s\", \"exit_status\": ", result);
	if (status < 0)
		fprintf(json, "null");
	else
		fprintf(json, "%d", status);
	fprintf(json,
		", \"rows_planned\": %u, \"rows_right\": %u, \"rows_wrong\": %u, \"errors\": %" PRIu64
		", \"verified_bytes\": %" PRIu64 "\n}\n",
		t->ntests, t->passed, t->failed, t->errors, t->verified);
}

/*
 * Writes the end of the JSON, with the result "unfinished", after the tests written so far. So the
 * file is valid JSON even if the program is killed.
 */
static void
tests_close(const struct tester *t)
{
	tests_end = ftello(json);
	if (tests_end < 0)
		return;
	put_end(t, "unfinished", -1);
	fflush(json);
}

/* Seeks back to the end of the tests, so that the next test overwrites the end "unfinished". */
static void
tests_reopen(void)
{
	if (tests_end >= 0)
		fseeko(json, tests_end, SEEK_SET);
}

static void
put_options(const struct options *o)
{
	uint32_t i;

	fprintf(json, "  \"options\": {");
	json_string(json, "device", o->device);
	fprintf(json, ", \"op\": [");
	for (i = 0; i < o->nops; i++)
		fprintf(json, "%s\"%s\"", i == 0 ? "" : ", ", o->ops[i]->name);
	fprintf(json, "], \"size\": [");
	for (i = 0; i < o->nsizes; i++)
		fprintf(json, "%s%u", i == 0 ? "" : ", ", o->sizes[i]);
	fprintf(json,
		"], \"depth\": %u, \"burst\": %u, \"signal_every\": %u, \"inline\": %u,\n"
		"    \"db\": \"%s\", \"qps\": %u, \"sgl\": %u, \"offset\": %u, \"seed\": %" PRIu64
		", \"verify\": %s, \"duration\": %.6g, \"rate\": %" PRIu64 ", \"mix\": {"
		"\"write\": %u, \"read\": %u, \"fetch_add\": %u, \"cmp_swap\": %u}},\n",
		o->depth, o->burst, o->signal_every, o->max_inline,
		o->blueflame ? "blueflame" : "doorbell", o->qps, o->sgl, o->offset, o->seed,
		boolean(o->verify), isinf(o->duration) ? 0 : o->duration, o->rate,
		o->mix[MIX_WRITE], o->mix[MIX_READ], o->mix[MIX_FETCH_ADD], o->mix[MIX_CMP_SWAP]);
}

void
json_start(const struct tester *t)
{
	const struct bb_dev_attr *a = &t->attr;

	if (json == NULL)
		return;
	fprintf(json, "{\n  \"program\": \"testrdma\", ");
	json_string(json, "version", TESTRDMA_VERSION);
	fprintf(json, ", \"layout_version\": %u, ", BB_LAYOUT_VERSION);
	json_string(json, "dpdk", rte_version());
	fprintf(json, ",\n  \"tsc_hz\": %" PRIu64 ", \"lcore\": %u,\n", t->tsc_hz, rte_lcore_id());
	put_options(&t->o);
	if (t->dev != NULL) {
		fprintf(json, "  \"device\": {");
		json_string(json, "name", bb_dev_name(t->dev));
		fprintf(json, ", ");
		json_string(json, "driver", a->driver);
		fprintf(json,
			", \"software\": %s, \"bf_size\": %u, \"max_inline\": %u, \"max_sge\": %u, "
			"\"max_qp_wr\": %u, \"max_rd_atomic\": %u},\n",
			boolean(a->software), a->bf_size, a->max_inline, a->max_sge, a->max_qp_wr,
			a->max_rd_atomic);
	}
	fprintf(json, "  \"rows\": [");
	tests_open = true;
	tests_close(t);
}

/* Writes the JSON members that only some modes have. */
static void
json_mode(const struct test *test, const struct figures *f)
{
	unsigned int i;

	if (test->e->ping_pong)
		fprintf(json,
			"     \"half_round_trip_ns\": {\"min\": %.1f, \"p50\": %.1f, \"p99\": %.1f, "
			"\"max\": %.1f},\n",
			f->min / 2, f->p50 / 2, f->p99 / 2, f->max / 2);
	if (test->rate != 0)
		fprintf(json,
			"     \"open_loop\": {\"rate\": %" PRIu64 ", \"unposted\": %" PRIu64 "},\n",
			test->rate * test->lcores, test->res.unposted);
	if (test->e->pick == NULL)
		return;
	fprintf(json, "     \"mix\": {");
	for (i = 0; i < MIX_KINDS; i++)
		fprintf(json, "%s\"%s\": %" PRIu64, i == 0 ? "" : ", ", mix_names[i],
			test->res.kinds[i]);
	fprintf(json, "},\n");
}

void
json_test(const struct tester *t, const struct test *test)
{
	const struct result *r = &test->res;
	struct figures f;

	if (json == NULL)
		return;
	test_figures(t, test, &f);
	tests_reopen();
	fprintf(json,
		"%s\n    {\"op\": \"%s\", \"size\": %u, \"window\": %u, \"burst\": %u, "
		"\"signal_every\": %u, \"slots\": %u, \"inline\": %s, \"lcores\": %u, "
		"\"qps\": %u,\n",
		test_written ? "," : "", test->e->name, test->size, test->window, test->burst,
		test->signal_every, test->slots, boolean(test->use_inline), test->lcores, t->o.qps);
	fprintf(json, "     \"ok\": %s, \"complete\": %s, \"errors\": %" PRIu64 ",\n",
		boolean(r->errors == 0 && test->complete), boolean(test->complete), r->errors);
	fprintf(json,
		"     \"rate\": {\"ops\": %" PRIu64 ", \"seconds\": %.9f, \"mops\": %.6f, "
		"\"gbytes_per_s\": %.6f, \"gbits_per_s\": %.6f, \"cycles_per_op\": %.3f, \"doorbells_per_op\": %.6f},\n",
		r->ops, f.seconds, f.mops, f.gbytes_per_s, 8 * f.gbytes_per_s, f.cycles_per_op,
		f.doorbells_per_op);
	fprintf(json,
		"     \"latency_ns\": {\"samples\": %" PRIu64 ", \"min\": %.1f, \"mean\": %.1f, "
		"\"p50\": %.1f, \"p99\": %.1f, \"p99.9\": %.1f, \"max\": %.1f, "
		"\"of\": \"%s\"},\n",
		test->lat.count, f.min, f.mean, f.p50, f.p99, f.p999, f.max, test_latency_of(test));
	json_mode(test, &f);
	fprintf(json,
		"     \"verified\": {\"bytes\": %" PRIu64 ", \"guard_bytes\": %" PRIu64
		", \"rounds\": %" PRIu64 ", \"receives\": %" PRIu64 "}}",
		r->bytes, r->guards, r->rounds, r->recvs);
	test_written = true;
	tests_close(t);
}

int
json_close(const struct tester *t, int status)
{
	FILE *f = json;

	if (json == NULL)
		return 0;
	if (!tests_open)
		json_start(t);
	tests_reopen();
	put_end(t,
		status == 0                                  ? "pass"
		: status > 128                               ? "interrupted"
		: t->passed + t->failed > 0 || t->errors > 0 ? "fail"
							     : "error",
		status);
	/*
	 * Truncates the file, because the text may be shorter than the text it has overwritten.
	 * Errors are detected when the file is closed.
	 */
	if (tests_end >= 0 && fflush(f) == 0 && ftruncate(fileno(f), ftello(f)) != 0)
		tests_end = -1;
	json = NULL;
	return output_close(f, "json", t->o.json);
}
