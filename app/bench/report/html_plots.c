/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Selects the rows of the line plots: quantiles of latencies, rates over size, rates over queue
 * pairs.
 */
#include <string.h>

#include "html.h"

/*
 * Returns the line named @label. Adds it if there is none. Returns NULL if there are too many
 * lines.
 */
static struct html_line *
line_of(struct html_lines *p, const char *label, enum html_kind kind)
{
	unsigned int i;

	for (i = 0; i < p->n; i++)
		if (strcmp(p->lines[i].label, label) == 0)
			return &p->lines[i];
	if (p->n == HTML_MAX_LINES)
		return NULL;
	p->lines[p->n] = (struct html_line){.kind = kind};
	snprintf(p->lines[p->n].label, sizeof(p->lines[0].label), "%s", label);
	return &p->lines[p->n++];
}

/* Returns HTML_PEER for a baseline that is another library or the kernel. */
static enum html_kind
baseline_kind(const char *name)
{
	return strstr(name, "UCX") != NULL || strstr(name, "TCP") != NULL ||
			       strncmp(name, "peers/", 6) == 0
		       ? HTML_PEER
		       : HTML_BASELINE;
}

static void
add_tail(struct html_lines *p, const char *label, enum html_kind kind, const struct tail *t)
{
	const unsigned int n = p->n;
	struct html_line *l;

	if (t->samples == 0)
		return;
	l = line_of(p, label, kind);
	/*
	 * Sets the points only if line_of() added a line. The plot has Bluebell's line already if
	 * another baseline of the same measurement was added before.
	 */
	if (l != NULL && p->n != n)
		memcpy(l->y, t->ns, sizeof(t->ns));
}

/*
 * Writes the label of a latency line to @label, such as "wire/write8" for
 * "wire/write8/latency/tcp".
 */
static void
latency_label(const char *name, char *label, size_t size)
{
	const char *end = strstr(name, "/latency");

	snprintf(label, size, "%.*s", end != NULL ? (int)(end - name) : (int)strlen(name), name);
}

/* Plots the rows whose unit begins with @unit. */
static void
latency_plot(FILE *f, const char *unit, const char *title)
{
	static struct html_lines p;
	const struct judged *j;
	char label[80], by[96];
	unsigned int i;

	memset(&p, 0, sizeof(p));
	p.title = title;
	p.x_label = "fraction of the operations with at most this latency";
	p.y_label = "latency";
	p.unit = HTML_NS;
	p.n_ticks = BENCH_QUANTILES;
	for (i = 0; i < BENCH_QUANTILES; i++)
		snprintf(p.ticks[i], sizeof(p.ticks[i]), "%s", bench_quantiles[i].name);
	for (i = 0; (j = report_judged(i)) != NULL; i++) {
		const char *baseline = strstr(j->row.unit, "baseline: ");

		if (strncmp(j->row.unit, unit, strlen(unit)) != 0 || !j->row.p.valid)
			continue;
		latency_label(j->row.name, label, sizeof(label));
		add_tail(&p, label, HTML_BLUEBELL, &j->row.p.bluebell_tail);
		if (baseline != NULL)
			snprintf(by, sizeof(by), "%s", baseline + 7);
		else
			snprintf(by, sizeof(by), "%s%s", label,
				 j->row.p.baseline_only ? "" : " by hand");
		add_tail(&p, by, baseline_kind(by), &j->row.p.baseline_tail);
	}
	html_lines(f, &p);
}

void
html_latency(FILE *f)
{
	latency_plot(f, "ns one way", "Latency percentiles, one way to another process");
	latency_plot(f, "ns, post to CQE", "Latency percentiles, from the post to the CQE");
}

static void
tick_text(char *text, size_t size, enum bench_plot plot, uint32_t x)
{
	if (plot == PLOT_QPS || x < 1024)
		snprintf(text, size, plot == PLOT_QPS ? "%u" : "%u B", x);
	else if (x < 1u << 20)
		snprintf(text, size, "%u KiB", x >> 10);
	else
		snprintf(text, size, "%u MiB", x >> 20);
}

/*
 * Returns the index of the tick for @x, and adds the tick if it is missing. Rows come in ascending
 * order of x, so the ticks do too.
 */
static unsigned int
tick_of(struct html_lines *p, enum bench_plot plot, uint32_t x)
{
	char text[16];
	unsigned int i;

	tick_text(text, sizeof(text), plot, x);
	for (i = 0; i < p->n_ticks; i++)
		if (strcmp(p->ticks[i], text) == 0)
			return i;
	if (p->n_ticks < BENCH_MAX_POINTS)
		memcpy(p->ticks[p->n_ticks++], text, sizeof(text));
	return i;
}

static void
add_point(struct html_lines *p, const char *label, enum html_kind kind, unsigned int tick, double y)
{
	struct html_line *l = label != NULL && y > 0 ? line_of(p, label, kind) : NULL;

	if (l != NULL && tick < BENCH_MAX_POINTS)
		l->y[tick] = y;
}

/* Plots rows whose figures are in M/s, one point for each value of a parameter. */
static void
sweep_plot(FILE *f, enum bench_plot plot, enum html_unit y_unit, const char *title,
	   const char *x_label, const char *y_label)
{
	static struct html_lines p;
	const struct judged *j;
	unsigned int i, tick;

	memset(&p, 0, sizeof(p));
	p.title = title;
	p.x_label = x_label;
	p.y_label = y_label;
	p.unit = y_unit;
	for (i = 0; (j = report_judged(i)) != NULL; i++) {
		const struct row *r = &j->row;
		const double by = y_unit == HTML_BYTES_PER_S ? 1e6 * r->x : 1e6;

		if (r->plot != plot || !r->p.valid)
			continue;
		tick = tick_of(&p, plot, r->x);
		if (!r->p.baseline_only)
			add_point(&p, r->bluebell_line, HTML_BLUEBELL, tick, r->p.bluebell * by);
		add_point(&p, r->baseline_line,
			  r->baseline_line != NULL ? baseline_kind(r->baseline_line)
						   : HTML_BASELINE,
			  tick, r->p.baseline * by);
	}
	html_lines(f, &p);
}

void
html_sweeps(FILE *f)
{
	sweep_plot(f, PLOT_SIZE, HTML_PER_S, "Rate over message size", "message size",
		   "messages/s");
	sweep_plot(f, PLOT_SIZE, HTML_BYTES_PER_S, "Bytes moved over message size", "message size",
		   "bytes a second");
	sweep_plot(f, PLOT_QPS, HTML_PER_S, "Scaling over queue pairs", "queue pairs", "writes/s");
}
