/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Parts of the HTML page that --report writes. */
#ifndef HTML_H
#define HTML_H

#include <stdio.h>
#include <string.h>

#include "bench.h"

#define HTML_MAX_LINES 24

/*
 * Type of a line in a plot. Baselines have dashed lines. Other transports and libraries (HTML_PEER)
 * have dotted lines.
 */
enum html_kind {
	HTML_BLUEBELL,
	HTML_BASELINE,
	HTML_PEER,
};

struct html_line {
	char label[96];
	enum html_kind kind;
	double y[BENCH_MAX_POINTS]; /* value at each tick of the x axis; <= 0 if there is none */
};

/* Unit of the y values. The page shows the unit with a suitable prefix. */
enum html_unit {
	HTML_NS,
	HTML_PER_S,
	HTML_BYTES_PER_S,
};

/* A plot of lines over equidistant ticks, with a logarithmic y axis and ticks on the x axis. */
struct html_lines {
	const char *title, *x_label, *y_label; /* labels; y_label has no unit prefix */
	char ticks[BENCH_MAX_POINTS][16];
	unsigned int n_ticks;
	struct html_line lines[HTML_MAX_LINES];
	unsigned int n;
	enum html_unit unit;
};

/* ---- html_lines.c */

/* Writes the plot, its legend and its table. Writes nothing if the plot has no line. */
void html_lines(FILE *f, const struct html_lines *p);
/* Writes a text and escapes its HTML characters. */
void html_text(FILE *f, const char *s);
/*
 * Writes a number with four digits. Uses an exponent only if the text would otherwise be longer
 * than nine characters.
 */
void html_number(FILE *f, double v);
/*
 * Write the begin and the end of a table with @columns columns besides the row names. A user can
 * scroll a table that is wider than the page, also by keyboard.
 */
void html_table_begin(FILE *f, const char *class, const char *label, unsigned int columns);
void html_table_end(FILE *f);
/* CSS rules of the plots. */
extern const char html_lines_style[];

/* ---- html_bars.c */

/*
 * Draws the @n rows as bars. @baseline is the label of their baselines. Draws nothing if no row was
 * measured.
 */
void html_bars(FILE *f, const unsigned int *rows, unsigned int n, const char *baseline);

/* ---- rows */

/*
 * Returns the part of a row's name after the case, such as "write8/rate" from "wire/write8/rate".
 */
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
html_has_bluebell(const struct judged *j)
{
	return html_measured(j) && !j->row.p.baseline_only;
}

/* ---- html_plots.c: line plots made from rows */
void html_latency(FILE *f);
void html_sweeps(FILE *f);

#endif
