/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * All rows as one page of HTML: lines of what is over something, then a plot of bars for each
 * case and unit, its table beside it. Nothing is loaded from elsewhere, and there is no script.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "html.h"

/* Of a plot, in its own units; the page scales it. */
#define WIDTH 560
#define LABEL 215 /* names of rows, left of the bars */
#define VALUE 104 /* figures, right of them */
#define ROW   44  /* a phone's letters are 18 high */
#define BAR   17
#define HEAD  30

static const char style[] =
	"<style>\n"
	":root{color-scheme:light dark;--fg:#1c2330;--bg:#fff;--dim:#5d6778;--line:#d5dae2;"
	"--floor:#9aa5b5;--ours:#2f6fde;--bad:#b3261e;--good:#1a7f37}\n"
	"@media(prefers-color-scheme:dark){:root{--fg:#e4e8ef;--bg:#14181f;--dim:#9aa5b5;"
	"--line:#343c49;--floor:#66707f;--ours:#6ea0ff;--bad:#ff8a80;--good:#56d364}}\n"
	"body{font:15px/1.5 system-ui,sans-serif;color:var(--fg);background:var(--bg);"
	"max-width:1200px;margin:2em auto;padding:0 1em}\n"
	"section{display:flex;flex-wrap:wrap;gap:.4em 1.5em;align-items:flex-start;"
	"border-top:1px solid var(--line);padding:.5em 0 1.5em}\n"
	"h2{flex:100%;margin:.4em 0 0;font-size:1.1em}\n"
	"svg{flex:1 1 460px;min-width:0;max-width:640px;height:auto}\n"
	".t{flex:1 1 420px;min-width:0;overflow-x:auto}\n"
	"table{border-collapse:collapse;font-size:13px}\n"
	"td,th{padding:.15em .6em;border-bottom:1px solid var(--line);text-align:right;"
	"white-space:nowrap}\n"
	"th:first-child{text-align:left}\n"
	".rows tr>th[scope=row]{font-weight:normal}\n"
	".t:focus-visible{outline:2px solid var(--ours)}\n"
	"text{font:12px system-ui,sans-serif;fill:var(--fg)}\n"
	".f{fill:var(--floor)}.o{fill:var(--ours)}.a{stroke:var(--line)}\n"
	".missed,.failed{color:var(--bad)}.reached{color:var(--good)}.dim{color:var(--dim)}\n"
	"p.why{flex:100%;margin:0;font-size:13px;color:var(--dim)}\n";

/* Length of "lcore" in "lcore/latency", of "ns" in "ns; floor: memcpy". */
static size_t
head_of(const char *s, const char *end)
{
	return strcspn(s, end);
}

static bool
same_plot(const struct judged *a, const struct judged *b)
{
	size_t name = head_of(a->row.name, "/"), unit = head_of(a->row.unit, ";");

	return name == head_of(b->row.name, "/") && unit == head_of(b->row.unit, ";") &&
	       memcmp(a->row.name, b->row.name, name) == 0 &&
	       memcmp(a->row.unit, b->row.unit, unit) == 0;
}

static bool
measured(const struct judged *j)
{
	return j->row.p.valid && strcmp(j->verdict, "skipped") != 0;
}

/* Rows of the plot whose first row is @first. */
static unsigned int
plot_rows(unsigned int first, unsigned int *rows)
{
	const struct judged *j;
	unsigned int i, n = 0;

	for (i = first; (j = report_judged(i)) != NULL; i++)
		if (same_plot(report_judged(first), j))
			rows[n++] = i;
	return n;
}

static double
largest(const unsigned int *rows, unsigned int n)
{
	double max = 0;
	unsigned int i;

	for (i = 0; i < n; i++) {
		const struct judged *j = report_judged(rows[i]);

		if (!measured(j))
			continue;
		max = j->row.p.floor > max ? j->row.p.floor : max;
		if (!j->row.p.floor_only && j->row.p.ours > max)
			max = j->row.p.ours;
	}
	return max;
}

static void
bar(FILE *f, const char *class, unsigned int y, double v, double max)
{
	double len = v > 0 ? v / max * (WIDTH - LABEL - VALUE) : 0;

	fprintf(f, "<rect class=\"%s\" x=\"%d\" y=\"%u\" width=\"%.1f\" height=\"%d\"/>", class,
		LABEL, y, len, BAR);
	fprintf(f, "<text x=\"%.1f\" y=\"%u\">", LABEL + len + 4, y + BAR - 3);
	html_number(f, v);
	fprintf(f, "</text>\n");
}

/* "write8/rate" of "wire/write8/rate". */
static const char *
tail_of(const char *name)
{
	const char *slash = strchr(name, '/');

	return slash != NULL ? slash + 1 : name;
}

static void
plot(FILE *f, const unsigned int *rows, unsigned int n)
{
	unsigned int i, y = HEAD;
	double max = largest(rows, n);

	if (max <= 0)
		return;
	fprintf(f,
		"<svg class=\"b\" viewBox=\"0 0 %d %u\" role=\"img\" aria-label=\"floor and ours\">\n",
		WIDTH, HEAD + n * ROW + 4);
	fprintf(f,
		"<rect class=\"f\" x=\"%d\" y=\"6\" width=\"12\" height=\"12\"/>"
		"<text x=\"%d\" y=\"17\">floor</text><rect class=\"o\" x=\"%d\" y=\"6\" "
		"width=\"12\" height=\"12\"/><text x=\"%d\" y=\"17\">ours</text>\n",
		LABEL, LABEL + 17, LABEL + 85, LABEL + 102);
	fprintf(f, "<line class=\"a\" x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%u\"/>\n", LABEL, HEAD - 4,
		LABEL, HEAD + n * ROW);
	for (i = 0; i < n; i++, y += ROW) {
		const struct judged *j = report_judged(rows[i]);

		fprintf(f, "<text x=\"%d\" y=\"%u\" text-anchor=\"end\">", LABEL - 6, y + BAR + 4);
		html_text(f, tail_of(j->row.name));
		fprintf(f, "</text>\n");
		if (!measured(j))
			continue;
		bar(f, "f", y, j->row.p.floor, max);
		if (!j->row.p.floor_only)
			bar(f, "o", y + BAR + 2, j->row.p.ours, max);
	}
	fprintf(f, "</svg>\n");
}

static void
table(FILE *f, const unsigned int *rows, unsigned int n)
{
	unsigned int i;

	html_table_begin(f, "rows", report_judged(rows[0])->row.name);
	fprintf(f, "<tr><th scope=\"col\">row<th scope=\"col\">floor<th scope=\"col\">ours"
		   "<th scope=\"col\">ratio<th scope=\"col\">target"
		   "<th scope=\"col\">L, ns</tr>\n");
	for (i = 0; i < n; i++) {
		const struct judged *j = report_judged(rows[i]);
		const struct pair *p = &j->row.p;

		fprintf(f, "<tr><th scope=\"row\">");
		html_text(f, tail_of(j->row.name));
		fprintf(f, "<td>");
		if (measured(j))
			html_number(f, p->floor);
		fprintf(f, "<td>");
		if (measured(j) && !p->floor_only)
			html_number(f, p->ours);
		fprintf(f, "<td>");
		if (j->ratio > 0)
			fprintf(f, j->ratio < 0.1 ? "%.2g" : "%.2f", j->ratio);
		fprintf(f, "<td class=\"%s\">%s<td>",
			strchr(j->verdict, ' ') != NULL ? "dim" : j->verdict, j->verdict);
		if (p->l_before > 0)
			fprintf(f, "%.0f / %.0f", p->l_before, p->l_after);
		fprintf(f, "</tr>\n");
	}
	html_table_end(f);
}

static void
reasons(FILE *f, const unsigned int *rows, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		const struct judged *j = report_judged(rows[i]);

		if (j->why[0] == '\0' && j->row.note[0] == '\0')
			continue;
		fprintf(f, "<p class=\"why\">");
		html_text(f, tail_of(j->row.name));
		fprintf(f, ": ");
		html_text(f, j->why);
		fprintf(f, "%s", j->why[0] != '\0' && j->row.note[0] != '\0' ? "; " : "");
		html_text(f, j->row.note);
		fprintf(f, "</p>\n");
	}
}

static void
section(FILE *f, unsigned int first)
{
	const struct judged *j = report_judged(first);
	unsigned int rows[BENCH_MAX_ROWS], n = plot_rows(first, rows), i;

	fprintf(f, "<section><h2>%.*s", (int)head_of(j->row.name, "/"), j->row.name);
	if (j->row.unit[0] != '\0')
		fprintf(f, ", %.*s", (int)head_of(j->row.unit, ";"), j->row.unit);
	fprintf(f, "</h2>\n");
	/* Points of lines are drawn above. */
	if (j->row.plot == PLOT_NONE)
		plot(f, rows, n);
	table(f, rows, n);
	/* What the floors are, of units as "ns; floor: memcpy". */
	for (i = 0; i < n; i++) {
		const char *unit = report_judged(rows[i])->row.unit;
		const char *floor = strchr(unit, ';');

		if (floor == NULL ||
		    (i > 0 && strcmp(unit, report_judged(rows[i - 1])->row.unit) == 0))
			continue;
		fprintf(f, "<p class=\"why\">");
		html_text(f, tail_of(report_judged(rows[i])->row.name));
		fprintf(f, ":");
		html_text(f, floor + 1);
		fprintf(f, "</p>\n");
	}
	reasons(f, rows, n);
	fprintf(f, "</section>\n");
}

/* What it was measured on, and when. */
static void
machine(FILE *f)
{
	char line[256], model[200] = "", when[40];
	FILE *info = fopen("/proc/cpuinfo", "r");
	time_t now = time(NULL);
	struct utsname u = {.sysname = ""};
	struct tm tm;

	while (info != NULL && model[0] == '\0' && fgets(line, sizeof(line), info) != NULL)
		sscanf(line, "model name : %199[^\n]", model);
	if (info != NULL)
		fclose(info);
	uname(&u);
	gmtime_r(&now, &tm);
	strftime(when, sizeof(when), "%Y-%m-%d %H:%M UTC", &tm);
	fprintf(f, "<p class=\"machine\">");
	html_text(f, model[0] != '\0' ? model : u.machine);
	fprintf(f, ", %ld CPUs, %s %s, %s</p>\n", sysconf(_SC_NPROCESSORS_ONLN), u.sysname,
		u.release, when);
}

static bool
is_first(unsigned int i)
{
	unsigned int k;

	for (k = 0; k < i; k++)
		if (same_plot(report_judged(k), report_judged(i)))
			return false;
	return true;
}

int
report_html(const char *path, double l)
{
	FILE *f = report_open(path);
	unsigned int i;

	if (f == NULL)
		return -EIO;
	fprintf(f,
		"<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
		"<meta name=\"viewport\" content=\"width=device-width\">\n"
		"<title>bench</title>\n%s%s</style></head><body>\n<h1>bench</h1>\n",
		style, html_lines_style);
	fprintf(f,
		"<p>Floors written by hand, ours and installed peers, of one run: medians of %u "
		"pairs, measured alternately. TSC %.2f GHz, core %.2f GHz; L, the round trip of a "
		"cache line between the two CPUs, %.0f ns; in the tables, before and after a row. Of ns less is better, of rates more. A "
		"row without a ratio says why.</p>\n",
		opts.repeat, tsc_ghz(), core_ghz(), l);
	machine(f);
	if (bench_stopped())
		fprintf(f, "<p class=\"failed\">The run was stopped: of its rows there are those "
			   "that were finished.</p>\n");
	html_latency(f);
	html_sweeps(f);
	for (i = 0; report_judged(i) != NULL; i++)
		if (is_first(i))
			section(f, i);
	fprintf(f, "</body></html>\n");
	return report_close(f, path);
}
