/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Parts of the page that --report writes. */
#ifndef HTML_H
#define HTML_H

#include <stdio.h>

#include "bench.h"

#define HTML_MAX_LINES 24

/* What a line is of: floors are dashed, peers dotted. */
enum html_kind {
	HTML_OURS,
	HTML_FLOOR,
	HTML_PEER,
};

struct html_line {
	char label[96];
	enum html_kind kind;
	double y[BENCH_MAX_POINTS]; /* of each tick; <= 0: none */
};

/* What y is of; it is told with the prefix that suits. */
enum html_unit {
	HTML_NS,
	HTML_PER_S,
	HTML_BYTES_PER_S,
};

/* A plot of lines over ticks of even distance, its axis of y logarithmic. */
struct html_lines {
	const char *title, *x_label, *y_label; /* y_label without a prefix */
	char ticks[BENCH_MAX_POINTS][16];
	unsigned int n_ticks;
	struct html_line lines[HTML_MAX_LINES];
	unsigned int n;
	enum html_unit unit;
};

/* ---- html_lines.c */

/* The plot, its legend and its table; nothing if it has no line. */
void html_lines(FILE *f, const struct html_lines *p);
/* Text of a page: what means something to HTML is escaped. */
void html_text(FILE *f, const char *s);
/* Four digits; an exponent only where it would be longer than nine characters without. */
void html_number(FILE *f, double v);
/*
 * Around a table of @columns besides the names of rows: what is wider than the page is scrolled,
 * also with the keys.
 */
void html_table_begin(FILE *f, const char *class, const char *label, unsigned int columns);
void html_table_end(FILE *f);
/* Its part of the style sheet. */
extern const char html_lines_style[];

/* ---- html_bars.c */

/* The @n rows, whose floor is called @floor; nothing if none was measured. */
void html_bars(FILE *f, const unsigned int *rows, unsigned int n, const char *floor);

/* ---- html.c */

/* "write8/rate" of "wire/write8/rate". */
const char *html_row_name(const char *name);
bool html_measured(const struct judged *j);
bool html_has_ours(const struct judged *j);

/* ---- html_plots.c: which lines the rows make */
void html_latency(FILE *f);
void html_sweeps(FILE *f);

#endif
