/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Writes all rows as one HTML page. Line plots come first. Then each case and unit has a bar
 * plot and a table. The page loads no other files and has no script.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <bench_commit.h>

#include "html.h"
#include "output.h"

static const char style[] =
	"<style>\n"
	":root{color-scheme:light dark;--fg:#1c2330;--bg:#fff;--dim:#5d6778;--line:#d5dae2;"
	"--baseline:#7d899b;--ours:#2f6fde;--bad:#b3261e;--good:#1a7f37}\n"
	"@media(prefers-color-scheme:dark){:root{--fg:#e4e8ef;--bg:#14181f;--dim:#9aa5b5;"
	"--line:#343c49;--baseline:#7c8797;--ours:#6ea0ff;--bad:#ff8a80;--good:#56d364}}\n"
	"body{font:15px/1.5 system-ui,sans-serif;color:var(--fg);background:var(--bg);"
	"max-width:1200px;margin:2em auto;padding:0 1em}\n"
	"section{display:flex;flex-wrap:wrap;gap:.4em 1.5em;align-items:flex-start;"
	"border-top:1px solid var(--line);padding:.5em 0 1.5em}\n"
	"h2{flex:100%;margin:.4em 0 0;font-size:1.1em}\n"
	"svg{flex:1 1 470px;min-width:0;max-width:640px;height:auto}\n"
	/* A table is to the right of its plot if it fits there, otherwise below it. */
	".t{flex:0 1 auto;min-width:0;max-width:100%;overflow-x:auto}\n"
	"table{border-collapse:collapse;font-size:13px}\n"
	"td,th{padding:.15em .6em;border-bottom:1px solid var(--line);text-align:right;"
	"white-space:nowrap}\n"
	"th:first-child{text-align:left}\n"
	".rows tr>th[scope=row]{font-weight:normal}\n"
	".t:focus-visible{outline:2px solid var(--ours)}\n"
	"text{font:12px system-ui,sans-serif;fill:var(--fg)}\n"
	".f{fill:var(--baseline)}.o{fill:var(--ours)}.a{stroke:var(--line)}\n"
	".missed,.failed{color:var(--bad)}.reached{color:var(--good)}.dim{color:var(--dim)}\n"
	"p.why{flex:100%;margin:0;font-size:13px;color:var(--dim);overflow-wrap:anywhere}\n"
	"code{white-space:nowrap}ul.legend{margin:.5em 0 1em;padding-left:1.2em}\n"
	/*
	 * Outlines the figures in the background colour, so that they stay readable over a scale
	 * line.
	 */
	".b text{paint-order:stroke;stroke:var(--bg);stroke-width:3px}\n"
	/* On a narrow screen the name of a row is above its figures. */
	"@media(max-width:600px){.t{flex:100%}table,tbody{display:block}table{font-size:12px}"
	"tr{display:grid;grid-template-columns:repeat(var(--n),minmax(3.4em,1fr));"
	"border-bottom:1px solid var(--line)}"
	"td,th{padding:.1em .2em;border:0;white-space:normal}"
	"th:first-child{grid-column:1/-1}}\n";

/*
 * Returns the length of the part before @end, such as "lcore" in "lcore/latency", or "ns" in "ns;
 * baseline: memcpy".
 */
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

/*
 * Writes the indexes of the rows of a plot to @rows. @first is the index of the plot's first row.
 * Returns the number of rows.
 */
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

/* Writes the goal of a row and its verdict. */
static void
goal(FILE *f, const struct judged *j)
{
	char text[REPORT_GOAL];

	report_goal(&j->row, text);
	fprintf(f, "<td class=\"%s\">%s%s", strchr(j->verdict, ' ') != NULL ? "dim" : j->verdict,
		j->verdict, text[0] != '\0' ? ": " : "");
	html_text(f, text);
}

/* Writes the table of a plot. @bluebell: true if at least one row has a figure of Bluebell. */
static void
table(FILE *f, const unsigned int *rows, unsigned int n, const char *baseline, bool bluebell)
{
	unsigned int i;

	html_table_begin(f, "rows", report_judged(rows[0])->row.name, bluebell ? 5 : 2);
	fprintf(f, "<tr><th scope=\"col\">row<th scope=\"col\">%s", baseline);
	if (bluebell)
		fprintf(f, "<th scope=\"col\">Bluebell<th scope=\"col\">ratio"
			   "<th scope=\"col\">goal");
	fprintf(f, "<th scope=\"col\">L, ns</tr>\n");
	for (i = 0; i < n; i++) {
		const struct judged *j = report_judged(rows[i]);
		const struct pair *p = &j->row.p;

		fprintf(f, "<tr><th scope=\"row\">");
		html_text(f, html_row_name(j->row.name));
		fprintf(f, "<td>");
		if (html_measured(j))
			html_number(f, p->baseline);
		if (bluebell) {
			fprintf(f, "<td>");
			if (html_has_bluebell(j))
				html_number(f, p->bluebell);
			fprintf(f, "<td>");
			if (j->ratio > 0)
				fprintf(f, j->ratio < 0.1 ? "%.2g" : "%.2f", j->ratio);
			goal(f, j);
		}
		fprintf(f, "<td>");
		if (p->l_before > 0)
			fprintf(f, "%.0f / %.0f", p->l_before, p->l_after);
		fprintf(f, "</tr>\n");
	}
	html_table_end(f);
}

/*
 * Returns the part of a row's unit after "; ", such as "baseline: memcpy" in "ns; baseline:
 * memcpy". Returns "" if there is none.
 */
static const char *
baseline_of(unsigned int row)
{
	const char *baseline = strchr(report_judged(row)->row.unit, ';');

	return baseline != NULL ? baseline + 2 : "";
}

/*
 * Describes each baseline once. If the rows have different baselines, also lists the rows of each.
 */
static void
baselines(FILE *f, const unsigned int *rows, unsigned int n)
{
	unsigned int i, k, same;

	for (i = 0; i < n; i++) {
		const char *baseline = baseline_of(rows[i]);

		for (k = 0; k < i && strcmp(baseline_of(rows[k]), baseline) != 0; k++)
			;
		if (k < i || baseline[0] == '\0')
			continue;
		fprintf(f, "<p class=\"why\">");
		html_text(f, baseline);
		for (k = same = 0; k < n; k++)
			same += strcmp(baseline_of(rows[k]), baseline) == 0;
		for (k = i; same < n && k < n; k++) {
			if (strcmp(baseline_of(rows[k]), baseline) != 0)
				continue;
			fprintf(f, k == i ? " (" : ", ");
			html_text(f, html_row_name(report_judged(rows[k])->row.name));
		}
		fprintf(f, "%s</p>\n", same < n ? ")" : "");
	}
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
		html_text(f, html_row_name(j->row.name));
		fprintf(f, ": ");
		html_text(f, j->why);
		fprintf(f, "%s", j->why[0] != '\0' && j->row.note[0] != '\0' ? "; " : "");
		html_text(f, j->row.note);
		fprintf(f, "</p>\n");
	}
}

/*
 * Writes a plot with its table. If @first_of_case is true, first writes the description of the
 * case.
 */
static void
section(FILE *f, unsigned int first, bool first_of_case)
{
	const struct judged *j = report_judged(first);
	unsigned int rows[BENCH_MAX_ROWS], n = plot_rows(first, rows), i;
	const char *baseline = strncmp(j->row.name, "peers/", 6) == 0 ? "peer" : "baseline";
	char name[sizeof(j->row.name)];
	bool bluebell = false;

	for (i = 0; i < n; i++)
		bluebell |= html_has_bluebell(report_judged(rows[i]));
	snprintf(name, sizeof(name), "%.*s", (int)head_of(j->row.name, "/"), j->row.name);
	fprintf(f, "<section><h2>%s", name);
	if (j->row.unit[0] != '\0')
		fprintf(f, ", %.*s", (int)head_of(j->row.unit, ";"), j->row.unit);
	fprintf(f, "</h2>\n");
	if (first_of_case) {
		fprintf(f, "<p class=\"why\">");
		html_text(f, bench_case_what(name));
		fprintf(f, "</p>\n");
	}
	/*
	 * Draws no bars for rows that are points of the line plots at the top of the page.
	 */
	if (j->row.plot == PLOT_NONE)
		html_bars(f, rows, n, baseline);
	table(f, rows, n, baseline, bluebell);
	baselines(f, rows, n);
	reasons(f, rows, n);
	fprintf(f, "</section>\n");
}

/* Explains the colours, the lines and the words of the page. */
static void
legend(FILE *f)
{
	fputs("<ul class=\"legend\">\n"
	      "<li><b>Bluebell</b>, blue bars and solid lines: the library.</li>\n"
	      "<li><b>Baseline</b>, grey bars and dashed lines: hand-written code that does the "
	      "same work and nothing else. It shows what the machine can do.</li>\n"
	      "<li><b>Peer</b>, dotted lines, and grey bars of the case peers: another library "
	      "or the kernel, which does the same "
	      "work.</li>\n"
	      "<li><b>Ratio</b>: Bluebell divided by the baseline. <b>Goal</b>: the limit of that "
	      "ratio, and whether Bluebell has reached or missed it. A line that is not judged, or "
	      "was skipped, states the reason.</li>\n"
	      "<li><b>L</b>: the time in which a cache line goes to the other CPU and back, before "
	      "and after each measurement. If it changed much, the machine was busy.</li>\n"
	      "</ul>\n",
	      f);
}

/* Writes the version, the commit, a description of the machine, and the time of the measurement. */
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
	fprintf(f, "<p class=\"machine\">Bluebell %s, commit ", BENCH_VERSION);
	html_text(f, BENCH_COMMIT);
	fprintf(f, "; ");
	html_text(f, model[0] != '\0' ? model : u.machine);
	fprintf(f, ", %ld CPUs, %s %s, %s</p>\n", sysconf(_SC_NPROCESSORS_ONLN), u.sysname,
		u.release, when);
}

/* Returns true if row @i is the first row of its plot or, with @of_case, of its case. */
static bool
is_first(unsigned int i, bool of_case)
{
	const struct judged *j = report_judged(i), *before;
	const size_t name = head_of(j->row.name, "/") + 1;
	unsigned int k;

	for (k = 0; k < i; k++) {
		before = report_judged(k);
		if (of_case ? strncmp(before->row.name, j->row.name, name) == 0
			    : same_plot(before, j))
			return false;
	}
	return true;
}

/*
 * Writes the number of pairs of runs from which each median comes. Some cases measure another
 * number of pairs than the option of the run says.
 */
static void
pairs(FILE *f)
{
	const struct judged *j;
	unsigned int lo = UINT_MAX, hi = 0, i;

	for (i = 0; (j = report_judged(i)) != NULL; i++) {
		if (!html_measured(j) || j->row.p.pairs == 0)
			continue;
		lo = j->row.p.pairs < lo ? j->row.p.pairs : lo;
		hi = j->row.p.pairs > hi ? j->row.p.pairs : hi;
	}
	if (hi <= 1)
		fprintf(f, "a single pair for each line, so no medians");
	else if (lo == hi)
		fprintf(f, "medians of %u pairs, measured alternately", hi);
	else
		fprintf(f, "medians of %u to %u pairs, measured alternately", lo, hi);
}

int
report_html(const char *path, double l)
{
	FILE *f = output_open("report", path);
	unsigned int i;

	if (f == NULL)
		return -EIO;
	fprintf(f,
		"<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
		"<meta name=\"viewport\" content=\"width=device-width\">\n"
		"<title>Bluebell %s bench, commit ",
		BENCH_VERSION);
	html_text(f, BENCH_COMMIT);
	fprintf(f,
		"</title>\n%s%s</style></head><body>\n"
		"<h1>Bluebell bench</h1>\n",
		style, html_lines_style);
	fprintf(f, "<p>Bluebell beside hand-written baselines and installed peers, in one run: ");
	pairs(f);
	fprintf(f,
		". TSC %.2f GHz, core %.2f GHz; L, the round trip of a cache line between the "
		"two CPUs, %.0f ns; the tables give L before and after each line. For times less "
		"is better, for rates more. A line without a ratio states the reason.%s</p>\n<p>",
		tsc_ghz(), core_ghz(), l,
		opts.quick ? " Made with <code>--quick</code>: it checks that all works, and its "
			     "figures mean nothing."
			   : "");
	report_summary(f);
	fprintf(f, ".</p>\n");
	machine(f);
	legend(f);
	if (bench_stopped())
		fprintf(f, "<p class=\"failed\">The run was stopped: this page has only the "
			   "lines that were finished.</p>\n");
	html_latency(f);
	html_sweeps(f);
	for (i = 0; report_judged(i) != NULL; i++)
		if (is_first(i, false))
			section(f, i, is_first(i, true));
	fprintf(f, "</body></html>\n");
	return output_close(f, "report", path);
}
