/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Runs sequences step by step, and makes failing ones smaller. */
#include <stdlib.h>
#include <string.h>

#include "diff.h"

static bool
failed(struct failure *f, uint32_t at, const char *fmt, int a, const char *b)
{
	f->at = at;
	snprintf(f->why, sizeof(f->why), fmt, a, b);
	return true;
}

/* Runs one step on both. Returns true if they disagree. */
static bool
run_step(struct exec *x, struct model *m, const struct step *s, uint32_t at, struct failure *f)
{
	struct verdict v;
	char may[64];
	uint32_t i;
	int ret, n = 0;

	model_judge(m, s, &v);
	if (v.skip)
		return false;
	m->n_events = 0;
	ret = exec_step(x, m, s);
	for (i = 0; i < v.n && v.ret[i] != ret && !v.list; i++)
		n += snprintf(may + n, sizeof(may) - (size_t)n, "%s%d", i != 0 ? " or " : "",
			      v.ret[i]);
	if (i == v.n && !v.list)
		return failed(f, at, "it returned %d, not %s", ret, may);
	f->at = at;
	if (v.list) {
		if (!model_list_post(m, s, ret, f->why, sizeof(f->why)))
			return true;
	} else {
		model_step(m, s, ret);
	}
	model_run(m);
	return !exec_settle(x, m, f->why, sizeof(f->why));
}

static bool
finish(struct exec *x, struct failure *f, uint32_t at, bool bad)
{
	char why[128];

	if (!exec_clear(x, why, sizeof(why)) && !bad)
		return failed(f, at, "%.0d%s", 0, why);
	return bad;
}

bool
run_seq(struct exec *x, const struct seq *seq, struct failure *f)
{
	struct model *m = malloc(sizeof(*m));
	bool bad = false;

	if (m == NULL)
		return failed(f, 0, "%.0d%s", 0, "no memory for the model");
	model_init(m, exec_world(x));
	for (uint32_t i = 0; i < seq->n && !bad; i++)
		bad = run_step(x, m, &seq->s[i], i, f);
	free(m);
	return finish(x, f, seq->n, bad);
}

bool
run_random(struct exec *x, uint64_t seed, uint32_t steps, struct seq *seq, struct failure *f)
{
	struct model *m = malloc(sizeof(*m));
	struct rng r = {seed * 0x9e3779b97f4a7c15u + 1};
	bool bad = false;

	if (m == NULL)
		return failed(f, 0, "%.0d%s", 0, "no memory for the model");
	model_init(m, exec_world(x));
	for (seq->n = 0; seq->n < steps && !bad; seq->n++) {
		gen_step(&r, m, &seq->s[seq->n]);
		bad = run_step(x, m, &seq->s[seq->n], seq->n, f);
	}
	free(m);
	return finish(x, f, seq->n, bad);
}

/* Keeps @try if it fails, too. */
static bool
keep(struct exec *x, struct seq *seq, const struct seq *try, struct failure *f)
{
	struct failure g;

	if (!run_seq(x, try, &g))
		return false;
	*f = g;
	*seq = *try;
	/* Steps after the failing one are irrelevant. */
	if (g.at + 1 < seq->n)
		seq->n = g.at + 1;
	return true;
}

static bool
drop_steps(struct exec *x, struct seq *seq, struct seq *try, struct failure *f)
{
	bool any = false;

	for (uint32_t size = seq->n / 2; size != 0; size /= 2) {
		for (uint32_t at = 0; at + size <= seq->n;) {
			*try = *seq;
			memmove(&try->s[at], &try->s[at + size],
				(try->n - at - size) * sizeof(try->s[0]));
			try->n -= size;
			if (keep(x, seq, try, f))
				any = true;
			else
				at += size;
		}
	}
	return any;
}

static bool
shrink_numbers(struct exec *x, struct seq *seq, struct seq *try, struct failure *f)
{
	bool any = false;

	for (uint32_t i = 0; i < seq->n; i++) {
		for (uint32_t k = 0; k < op_args(seq->s[i].op); k++) {
			const uint32_t old = seq->s[i].a[k], less[] = {0, 1, 8, old / 2, old - 1};

			for (uint32_t j = 0;
			     j < 5 && i < seq->n && seq->s[i].a[k] == old && old != 0; j++) {
				if (less[j] >= old)
					continue;
				*try = *seq;
				try->s[i].a[k] = less[j];
				any |= keep(x, seq, try, f);
			}
		}
	}
	return any;
}

void
minimise(struct exec *x, struct seq *seq, struct failure *f)
{
	struct seq *try = malloc(sizeof(*try));

	if (try == NULL)
		return;
	exec_hurry(x, true);
	for (uint32_t round = 0; round < 4; round++) {
		bool fewer = drop_steps(x, seq, try, f), smaller;

		smaller = shrink_numbers(x, seq, try, f);
		if (!fewer && !smaller)
			break;
	}
	exec_hurry(x, false);
	free(try);
}
