/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Parts of the page written by --report. */
#ifndef HTML_H
#define HTML_H

#include <stdio.h>
#include <string.h>

#include "bench.h"

#define HTML_MAX_LINES 24

/* Kind of a line: baselines are dashed, peers dotted. */
enum html_kind {
	HTML_OURS,
	HTML_BASELINE,
	HTML_PEER,
};

struct html_line {
	char label[96];
	enum html_kind kind;
	double y[BENCH_MAX_POINTS]; /* value at each tick; <= 0 if there is none */
};

/* Unit of y; it is printed with a suitable prefix. */
enum html_unit {
	HTML_NS,
	HTML_PER_S,
	HTML_BYTES_PER_S,
};

/* A plot of lines over equidistant ticks, with a logarithmic y axis. */
struct html_lines {
	const char *title, *x_label, *y_label; /* y_label without a prefix */
	char ticks[BENCH_MAX_POINTS][16];
	unsigned int n_ticks;
	struct html_line lines[HTML_MAX_LINES];
	unsigned int n;
	enum html_unit unit;
};

/* ---- html_lines.c */

/* Writes the plot, its legend and its table; nothing if it has no line. */
void html_lines(FILE *f, const struct html_lines *p);
/* Writes text with HTML characters escaped. */
void html_text(FILE *f, const char *s);
/* Writes four digits; with an exponent only if it would otherwise exceed nine characters. */
void html_number(FILE *f, double v);
/*
 * Begin and end a table with @columns besides the row names. A table wider than the page can be
 * scrolled, also by keyboard.
 */
void html_table_begin(FILE *f, const char *class, const char *label, unsigned int columns);
void html_table_end(FILE *f);
/* Styles of the plots. */
extern const char html_lines_style[];

/* ---- html_bars.c */

/* Draws the @n rows, whose baselines are labelled @baseline; nothing if none was measured. */
void html_bars(FILE *f, const unsigned int *rows, unsigned int n, const char *baseline);

/* ---- rows */

/* Returns "write8/rate" from "wire/write8/rate". */
static inline const char *
html_row_name(const char *name)
{
	const char *slash = strchr(name, '/');

	return slash != NULL ? slash + 1 : name;
}

static inline bool
html_measured(const struct judged *j)
{
	return j->row.p.valid && strcmp(j->verdict, "skipped") != 0;
}

static inline bool
html_has_ours(const struct judged *j)
{
	return html_measured(j) && !j->row.p.baseline_only;
}

/* ---- html_plots.c: the lines made of rows */
void html_latency(FILE *f);
void html_sweeps(FILE *f);

#endif
