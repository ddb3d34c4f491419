/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Computes the figures of a test, which the table, CSV and JSON show. */
#include "testrdma.h"

void
test_figures(const struct tester *t, const struct test *test, struct figures *f)
{
	const struct result *r = &test->res;
	double ops = (double)r->ops, ns = 1e9 / (double)t->tsc_hz;
	const struct hist *h = &test->lat;

	f->seconds = (double)r->cycles / (double)t->tsc_hz / test->lcores;
	f->mops = f->seconds > 0 ? (double)r->ops / f->seconds / 1e6 : 0;
	f->gbytes_per_s = f->mops * test->size / 1e3;
	f->cycles_per_op = ops > 0 ? (double)r->cycles / ops : 0;
	f->doorbells_per_op = ops > 0 ? (double)r->doorbells / ops : 0;
	f->p50 = (double)hist_quantile(h, 500000) * ns;
	f->p99 = (double)hist_quantile(h, 990000) * ns;
	f->p999 = (double)hist_quantile(h, 999000) * ns;
	f->max = (double)h->max * ns;
	f->min = h->count > 0 ? (double)h->min * ns : 0;
	f->mean = h->count > 0 ? (double)h->sum / (double)h->count * ns : 0;
}

const char *
test_latency_of(const struct test *test)
{
	if (test->rate != 0)
		return "intended start";
	return test->e->ping_pong ? "round trip" : "operation";
}
