/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Writes a line plot as SVG, its legend, and its data as a table. */
#include <math.h>

#include "html.h"
#include "json_string.h"

/*
 * Dimensions of a plot in SVG units, which the page scales. Letters are 1.5 times as large on a
 * phone.
 */
#define WIDTH  600
#define HEIGHT 340
#define LEFT   90
#define RIGHT  38
#define TOP    34
#define BOTTOM 62
#define HUES   8

/* The colours also differ in lightness, for colour-blind readers and grey printers. */
const char html_lines_style[] =
	":root{--h0:#2f6fde;--h1:#c2410c;--h2:#15803d;--h3:#9333ea;--h4:#b91c5c;--h5:#0e7490;"
	"--h6:#854d0e;--h7:#475569}\n"
	"@media(prefers-color-scheme:dark){:root{--h0:#6ea0ff;--h1:#fb923c;--h2:#4ade80;"
	"--h3:#c4a1ff;--h4:#f472b6;--h5:#22d3ee;--h6:#facc15;--h7:#cbd5e1}}\n"
	".h0{--h:var(--h0)}.h1{--h:var(--h1)}.h2{--h:var(--h2)}.h3{--h:var(--h3)}"
	".h4{--h:var(--h4)}.h5{--h:var(--h5)}.h6{--h:var(--h6)}.h7{--h:var(--h7)}\n"
	".l{fill:none;stroke:var(--h);stroke-width:2.2}.d{fill:var(--h)}\n"
	".baseline{stroke-dasharray:7 4}.peer{stroke-dasharray:2 4}\n"
	".g{stroke:var(--line);stroke-width:1}.m{text-anchor:middle}.e{text-anchor:end}\n"
	"figure{flex:1 1 540px;min-width:0;max-width:640px;margin:0}\n"
	"figure svg{width:100%;max-width:none}\n"
	"ul.k{list-style:none;margin:0;padding:0;font-size:13px;display:flex;flex-wrap:wrap;"
	"gap:.1em 1.2em}\n"
	"ul.k svg{width:30px;height:10px;flex:none;vertical-align:middle;margin-right:.4em}\n"
	"table.lines th:first-child{white-space:normal;min-width:7em}\n"
	"@media(max-width:600px){text{font-size:18px}}\n";

/*
 * Marks of points, relative to their centre: disc, square, triangle, diamond, inverted triangle.
 * Together with the dashes they make lines distinguishable without colour.
 */
#define MARKERS 5
static const char *const markers[MARKERS] = {"m-3.6 0a3.6 3.6 0 1 0 7.2 0a3.6 3.6 0 1 0-7.2 0",
					     "m-3.4-3.4h6.8v6.8h-6.8z", "m0-4.8l4.6 8h-9.2z",
					     "m0-5l4.6 5l-4.6 5l-4.6-5z", "m0 4.8l4.6-8h-9.2z"};

static const char *const kind_class[] = {
	[HTML_BLUEBELL] = "Bluebell",
	[HTML_BASELINE] = "baseline",
	[HTML_PEER] = "peer",
};

void
html_text(FILE *f, const char *s)
{
	unsigned int len;

	for (; *s != '\0'; s += len == 0 ? 1 : len) {
		len = utf8_length(s);
		if (len == 0)
			fputs("&#xfffd;", f);
		else if (*s == '<')
			fputs("&lt;", f);
		else if (*s == '>')
			fputs("&gt;", f);
		else if (*s == '&')
			fputs("&amp;", f);
		else if (*s == '"')
			fputs("&quot;", f);
		else
			fwrite(s, 1, len, f);
	}
}

void
html_number(FILE *f, double v)
{
	char text[32];
	size_t len;

	if (v <= 0 || (v >= 1e-3 && v < 1e3)) {
		fprintf(f, "%.4g", v);
		return;
	}
	/* Uses an exponent outside this range, because there is room for nine characters. */
	if (v < 1e-6 || v >= 1e8) {
		fprintf(f, "%.3g", v);
		return;
	}
	len = (size_t)snprintf(text, sizeof(text), v >= 1e3 ? "%.0f" : "%.7f", v);
	while (v < 1e3 && text[len - 1] == '0')
		len--;
	fprintf(f, "%.*s", (int)len, text);
}

void
html_table_begin(FILE *f, const char *class, const char *label, unsigned int columns)
{
	fprintf(f, "<div class=\"t\" tabindex=\"0\" role=\"region\" aria-label=\"");
	html_text(f, label);
	fprintf(f, "\"><table class=\"%s\" style=\"--n:%u\">", class, columns);
}

void
html_table_end(FILE *f)
{
	fprintf(f, "</table></div>\n");
}

/* Writes a y value with three digits and the largest prefix that fits. */
static void
figure(FILE *f, const struct html_lines *p, double v)
{
	static const char *const units[][5] = {
		[HTML_NS] = {" ns", " us", " ms", " s", NULL},
		[HTML_PER_S] = {"", " k", " M", " G", NULL},
		[HTML_BYTES_PER_S] = {" B", " kB", " MB", " GB", NULL},
	};
	const char *const *unit = units[p->unit];

	/* The limit is 999.5, because that would be printed as 1e+03. */
	for (; v >= 999.5 && unit[1] != NULL; unit++)
		v /= 1000;
	fprintf(f, v < 1e6 && v >= 100 ? "%.0f%s" : "%.3g%s", v, *unit);
}

/*
 * Computes the limits of the y axis, whole decades around all points. Returns false if there are no
 * points.
 */
static bool
decades(const struct html_lines *p, double *lo, double *hi)
{
	double min = HUGE_VAL, max = 0;
	unsigned int i, k;

	for (i = 0; i < p->n; i++) {
		for (k = 0; k < p->n_ticks; k++) {
			const double y = p->lines[i].y[k];

			if (y > 0 && y < min)
				min = y;
			if (y > max)
				max = y;
		}
	}
	if (max <= 0)
		return false;
	*lo = floor(log10(min));
	*hi = ceil(log10(max));
	if (*hi <= *lo)
		*hi = *lo + 1;
	return true;
}

static double
x_at(const struct html_lines *p, unsigned int k)
{
	const double step = p->n_ticks > 1 ? (double)k / (p->n_ticks - 1) : 0.5;

	return LEFT + step * (WIDTH - LEFT - RIGHT);
}

static double
y_at(double v, double lo, double hi)
{
	return HEIGHT - BOTTOM - (log10(v) - lo) / (hi - lo) * (HEIGHT - TOP - BOTTOM);
}

static void
axes(FILE *f, const struct html_lines *p, double lo, double hi)
{
	/*
	 * An axis of few decades also has the labels 2 and 5, 20 and 50, and so on. Without them
	 * the points between two decades are hard to read.
	 */
	static const double between[] = {1, 2, 5};
	const unsigned int steps = hi - lo <= 2 ? 3 : 1,
			   marks = (unsigned int)(hi - lo) * steps + 1;
	unsigned int k;

	for (k = 0; k < marks; k++) {
		const double v = pow(10, lo + k / steps) * between[k % steps];
		const double y = y_at(v, lo, hi);

		fprintf(f,
			"<line class=\"g\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>"
			"<text class=\"e\" x=\"%d\" y=\"%.1f\">",
			LEFT, y, WIDTH - RIGHT, y, LEFT - 6, y + 5);
		figure(f, p, v);
		fprintf(f, "</text>\n");
	}
	for (k = 0; k < p->n_ticks; k++) {
		const double x = x_at(p, k);

		fprintf(f,
			"<line class=\"g\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/>"
			"<text class=\"m\" x=\"%.1f\" y=\"%d\">%s</text>\n",
			x, TOP, x, HEIGHT - BOTTOM, x, HEIGHT - BOTTOM + 25, p->ticks[k]);
	}
	fprintf(f,
		"<text x=\"4\" y=\"18\">%s</text><text class=\"m\" x=\"%d\" y=\"%d\">%s</text>\n",
		p->y_label, (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, p->x_label);
}

static void
draw(FILE *f, const struct html_lines *p, unsigned int i, double lo, double hi)
{
	const struct html_line *l = &p->lines[i];
	unsigned int k;

	fprintf(f, "<g class=\"h%u\"><polyline class=\"l %s\" points=\"", i % HUES,
		kind_class[l->kind]);
	for (k = 0; k < p->n_ticks; k++)
		if (l->y[k] > 0)
			fprintf(f, "%.1f,%.1f ", x_at(p, k), y_at(l->y[k], lo, hi));
	fprintf(f, "\"/>");
	for (k = 0; k < p->n_ticks; k++) {
		if (l->y[k] <= 0)
			continue;
		fprintf(f, "<path class=\"d\" d=\"M%.1f %.1f%s\"><title>", x_at(p, k),
			y_at(l->y[k], lo, hi), markers[i % MARKERS]);
		html_text(f, l->label);
		fprintf(f, ", %s: ", p->ticks[k]);
		figure(f, p, l->y[k]);
		fprintf(f, "</title></path>");
	}
	fprintf(f, "</g>\n");
}

static void
legend(FILE *f, const struct html_lines *p)
{
	unsigned int i;

	fprintf(f, "<ul class=\"k\">\n");
	for (i = 0; i < p->n; i++) {
		fprintf(f,
			"<li class=\"h%u\"><svg viewBox=\"0 0 30 10\" aria-hidden=\"true\"><path "
			"class=\"l %s\" d=\"M0 5H30\"/><path class=\"d\" d=\"M15 5%s\"/></svg>",
			i % HUES, kind_class[p->lines[i].kind], markers[i % MARKERS]);
		html_text(f, p->lines[i].label);
		fprintf(f, "</li>\n");
	}
	fprintf(f, "</ul>\n");
}

static void
table(FILE *f, const struct html_lines *p)
{
	unsigned int i, k;

	html_table_begin(f, "lines", p->title, p->n_ticks);
	fprintf(f, "<tr><th scope=\"col\">%s</th>", p->y_label);
	for (k = 0; k < p->n_ticks; k++)
		fprintf(f, "<th scope=\"col\">%s</th>", p->ticks[k]);
	fprintf(f, "</tr>\n");
	for (i = 0; i < p->n; i++) {
		fprintf(f, "<tr><th scope=\"row\">");
		html_text(f, p->lines[i].label);
		fprintf(f, "</th>");
		for (k = 0; k < p->n_ticks; k++) {
			fprintf(f, "<td>");
			if (p->lines[i].y[k] > 0)
				figure(f, p, p->lines[i].y[k]);
			fprintf(f, "</td>");
		}
		fprintf(f, "</tr>\n");
	}
	html_table_end(f);
}

void
html_lines(FILE *f, const struct html_lines *p)
{
	double lo, hi;
	unsigned int i;

	if (!decades(p, &lo, &hi))
		return;
	fprintf(f,
		"<section class=\"lines\"><h2>%s</h2>\n<figure><svg viewBox=\"0 0 %d %d\" "
		"role=\"img\" aria-label=\"%s\">\n",
		p->title, WIDTH, HEIGHT, p->title);
	axes(f, p, lo, hi);
	for (i = 0; i < p->n; i++)
		draw(f, p, i, lo, hi);
	fprintf(f, "</svg>\n");
	legend(f, p);
	fprintf(f, "</figure>\n");
	table(f, p);
	fprintf(f, "</section>\n");
}
