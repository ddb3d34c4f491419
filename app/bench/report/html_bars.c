/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Draws the figures of a case side by side as bars from 0. If the largest figure is WIDE times the
 * smallest, the bar of the smallest would be invisible. Then marks on a logarithmic scale are drawn
 * instead.
 */
#include <math.h>
#include <string.h>

#include "html.h"

/* Dimensions of a plot in SVG units, which the page scales. */
#define WIDTH 560
#define LABEL 215 /* width of row names, left of the bars */
#define VALUE 104 /* width of figures, right of the bars */
#define SCALE (WIDTH - LABEL - VALUE)
#define BAR   17
#define GAP   10 /* distance between rows; letters are 18 units high on a phone */
#define HEAD  30
#define FOOT  26 /* height of the labels of decades */
#define WIDE  20.0
#define DIGIT 12 /* SVG units: width of a digit in the font size of narrow screens */

struct bars {
	const unsigned int *rows;
	unsigned int n;
	bool bluebell; /* at least one row has a figure of Bluebell */
	bool log;
	double lo, hi; /* limits of the axis; log10 of the limits if the axis is logarithmic */
};

static void
widen(struct bars *b, double v)
{
	if (v > b->hi)
		b->hi = v;
	if (v > 0 && v < b->lo)
		b->lo = v;
}

/* Computes the axis. Returns false if there is nothing to draw. */
static bool
scale(struct bars *b)
{
	unsigned int i;

	b->lo = HUGE_VAL;
	b->hi = 0;
	for (i = 0; i < b->n; i++) {
		const struct judged *j = report_judged(b->rows[i]);

		if (!html_measured(j))
			continue;
		widen(b, j->row.p.baseline);
		if (!j->row.p.baseline_only)
			widen(b, j->row.p.bluebell);
	}
	if (b->hi <= 0)
		return false;
	b->log = b->hi >= WIDE * b->lo;
	if (!b->log)
		return true;
	b->lo = floor(log10(b->lo));
	b->hi = ceil(log10(b->hi));
	return true;
}

/* Returns the distance of @v from the start of the axis. */
static double
at(const struct bars *b, double v)
{
	if (v <= 0)
		return 0;
	return (b->log ? (log10(v) - b->lo) / (b->hi - b->lo) : v / b->hi) * SCALE;
}

/* Draws a mark: a square for the baseline, a disc for Bluebell. */
static void
mark(FILE *f, const char *class, double x, double y)
{
	if (class[0] == 'f')
		fprintf(f, "<rect class=\"f\" x=\"%.1f\" y=\"%.1f\" width=\"11\" height=\"11\"/>",
			x - 5.5, y - 5.5);
	else
		fprintf(f, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"6\"/>", class, x, y);
}

static void
bar(FILE *f, const struct bars *b, const char *class, unsigned int y, double v)
{
	const double len = at(b, v);

	if (b->log) {
		fprintf(f, "<line class=\"a\" x1=\"%d\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>",
			LABEL, y + BAR / 2.0, LABEL + len, y + BAR / 2.0);
		mark(f, class, LABEL + len, y + BAR / 2.0);
	} else {
		fprintf(f, "<rect class=\"%s\" x=\"%d\" y=\"%u\" width=\"%.1f\" height=\"%d\"/>",
			class, LABEL, y, len, BAR);
	}
	fprintf(f, "<text x=\"%.1f\" y=\"%u\">", LABEL + len + (b->log ? 10 : 4), y + BAR - 3);
	html_number(f, v);
	fprintf(f, "</text>\n");
}

static void
key(FILE *f, const struct bars *b, const char *class, unsigned int x, const char *name)
{
	if (b->log)
		mark(f, class, x + 6, 12);
	else
		fprintf(f, "<rect class=\"%s\" x=\"%u\" y=\"6\" width=\"12\" height=\"12\"/>",
			class, x);
	fprintf(f, "<text x=\"%u\" y=\"17\">%s</text>\n", x + 17, name);
}

/*
 * Draws the axis. A logarithmic axis has a line for each power of ten, and labels as close as the
 * longest of them allows.
 */
static void
axis(FILE *f, const struct bars *b, unsigned int bottom)
{
	const double digits = 2 + fmax(-b->lo, b->hi);
	unsigned int every = 1, k;

	if (b->log)
		every += (unsigned int)(DIGIT * digits * (b->hi - b->lo) / SCALE);
	for (k = 0; k == 0 || (b->log && b->lo + k <= b->hi); k++) {
		const double x = LABEL + (b->log ? k * SCALE / (b->hi - b->lo) : 0);

		fprintf(f, "<line class=\"a\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%u\"/>\n", x,
			HEAD - 4, x, bottom);
		if (!b->log || k % every != 0)
			continue;
		fprintf(f, "<text class=\"m\" x=\"%.1f\" y=\"%u\">", x, bottom + 17);
		html_number(f, pow(10, b->lo + k));
		fprintf(f, "</text>\n");
	}
}

static unsigned int
height(const struct judged *j)
{
	return GAP + (j->row.p.baseline_only || !html_measured(j) ? BAR : 2 * BAR + 2);
}

void
html_bars(FILE *f, const unsigned int *rows, unsigned int n, const char *baseline)
{
	struct bars b = {.rows = rows, .n = n};
	unsigned int i, y = HEAD, bottom = HEAD;

	if (!scale(&b))
		return;
	for (i = 0; i < n; i++) {
		bottom += height(report_judged(rows[i]));
		b.bluebell |= html_has_bluebell(report_judged(rows[i]));
	}
	fprintf(f,
		"<svg class=\"b\" viewBox=\"0 0 %d %u\" role=\"img\" aria-label=\"%s%s: the "
		"figures of the table%s\">\n",
		WIDTH, bottom + (b.log ? FOOT : 4), baseline, b.bluebell ? " and Bluebell" : "",
		b.log ? ", on a logarithmic scale" : "");
	axis(f, &b, bottom);
	key(f, &b, "f", LABEL, baseline);
	if (b.bluebell)
		key(f, &b, "o", LABEL + 85, "Bluebell");
	if (b.log)
		fprintf(f, "<text class=\"e\" x=\"%d\" y=\"17\">logarithmic scale</text>\n",
			WIDTH - 2);
	for (i = 0; i < n; i++) {
		const struct judged *j = report_judged(rows[i]);

		/* Writes the name of a row at half the height of its bars. */
		fprintf(f, "<text class=\"e\" x=\"%d\" y=\"%u\">", LABEL - 8,
			y + (height(j) - GAP) / 2 + 5);
		html_text(f, html_row_name(j->row.name));
		fprintf(f, "</text>\n");
		if (html_measured(j)) {
			bar(f, &b, "f", y, j->row.p.baseline);
			if (!j->row.p.baseline_only)
				bar(f, &b, "o", y + BAR + 2, j->row.p.bluebell);
		}
		y += height(j);
	}
	fprintf(f, "</svg>\n");
}
