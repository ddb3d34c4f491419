/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Results as text (list, table) and as JSON. */
#include "conform.h"

static const char *const result_name[] = {
	[NOT_RUN] = "not run", [PASS] = "pass",       [SKIP] = "skip",
	[FAIL] = "fail",       [DIFFERS] = "differs",
};

void
report_list(const struct rows *rows, const char *filter)
{
	for (unsigned int i = 0; i < rows->n; i++)
		if (row_matches(&rows->row[i], filter))
			printf("%-60s %s\n", rows->row[i].name, rows->row[i].man);
}

static FILE *
open_out(const char *path)
{
	FILE *f = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");

	if (f == NULL)
		fprintf(stderr, "conform: %s: %s\n", path, strerror(errno));
	return f;
}

static int
close_out(FILE *f, const char *path)
{
	if (f == stdout)
		return fflush(f);
	if (fclose(f) == 0)
		return 0;
	fprintf(stderr, "conform: %s: %s\n", path, strerror(errno));
	return -EIO;
}

static void
json_string(FILE *f, const char *text)
{
	putc('"', f);
	for (; *text != '\0'; text++) {
		if (*text == '"' || *text == '\\')
			fprintf(f, "\\%c", *text);
		else if ((unsigned char)*text < 0x20)
			fprintf(f, "\\u%04x", *text);
		else
			putc(*text, f);
	}
	putc('"', f);
}

static void
json_row(FILE *f, const struct row *row)
{
	fputs("    {\"name\": ", f);
	json_string(f, row->name);
	fputs(", \"group\": ", f);
	json_string(f, row->group);
	fputs(", \"man\": ", f);
	json_string(f, row->man);
	fprintf(f, ", \"assumption\": %s", row_assumed(row) ? "true" : "false");
	fprintf(f, ", \"result\": \"%s\"", result_name[row->result]);
	if (row->why[0] != '\0') {
		fputs(", \"why\": ", f);
		json_string(f, row->why);
	}
	putc('}', f);
}

int
report_json(const char *path, const struct column *col, unsigned int n)
{
	FILE *f = open_out(path);

	if (f == NULL)
		return -EIO;
	fputs("{\"devices\": [\n", f);
	for (unsigned int c = 0; c < n; c++) {
		fputs("  {\"device\": ", f);
		json_string(f, col[c].spec);
		fputs(", \"rows\": [\n", f);
		for (unsigned int i = 0; i < col[c].rows.n; i++) {
			json_row(f, &col[c].rows.row[i]);
			fputs(i + 1 < col[c].rows.n ? ",\n" : "\n", f);
		}
		fputs(c + 1 < n ? "  ]},\n" : "  ]}\n", f);
	}
	fputs("]}\n", f);
	return close_out(f, path);
}

/* ---- The table: one line per group, one column per device. */

/* The texts are constants or belong to the rows, which outlive the table. */
struct reasons {
	const char *text[64];
	unsigned int n;
};

static unsigned int
reason_number(struct reasons *r, const char *text)
{
	for (unsigned int i = 0; i < r->n; i++)
		if (strcmp(r->text[i], text) == 0)
			return i + 1;
	if (r->n < RTE_DIM(r->text))
		r->text[r->n++] = text;
	return r->n;
}

static bool
first_of_group(const struct rows *rows, unsigned int i)
{
	for (unsigned int k = 0; k < i; k++)
		if (strcmp(rows->row[k].group, rows->row[i].group) == 0)
			return false;
	return true;
}

static void
table_cell(FILE *f, const struct rows *rows, const char *group, struct reasons *reasons)
{
	unsigned int i, count[RESULTS] = {0};
	const char *why = "", *machine = NULL, *text;

	for (i = 0; i < rows->n; i++) {
		if (strcmp(rows->row[i].group, group) != 0)
			continue;
		count[rows->row[i].result]++;
		if (rows->row[i].result == SKIP)
			why = rows->row[i].why;
		/* If the device supports a row, only the machine can be the cause. */
		text = need_of_machine(rows->row[i].needs);
		if (text != NULL && (rows->row[i].result == PASS || strcmp(why, text) == 0))
			machine = text;
	}
	if (count[FAIL] != 0)
		fprintf(f, ", fail %u", count[FAIL]);
	else if (count[DIFFERS] != 0)
		fprintf(f, ", differs %u", count[DIFFERS]);
	else if (count[NOT_RUN] != 0)
		fputs(", not run", f);
	else if (machine != NULL)
		/* The table describes devices, not the machine that made it. */
		fprintf(f, ", pass or skip [%u]", reason_number(reasons, machine));
	else if (count[SKIP] == 0)
		fputs(", pass", f);
	else if (count[PASS] == 0)
		fprintf(f, ", skip [%u]", reason_number(reasons, why));
	else
		fprintf(f, ", pass %u skip %u [%u]", count[PASS], count[SKIP],
			reason_number(reasons, why));
}

static unsigned int
group_size(const struct rows *rows, const char *group)
{
	unsigned int i, n = 0;

	for (i = 0; i < rows->n; i++)
		n += strcmp(rows->row[i].group, group) == 0;
	return n;
}

/* Prints the sources of the rules of a group, each once. */
static void
group_sources(FILE *f, const struct rows *rows, const char *group)
{
	const char *seen[16];
	unsigned int i, k, n = 0;

	putc('"', f);
	for (i = 0; i < rows->n && n < RTE_DIM(seen); i++) {
		const struct row *row = &rows->row[i];

		if (strcmp(row->group, group) != 0)
			continue;
		for (k = 0; k < n && strcmp(seen[k], row->man) != 0; k++)
			;
		if (k < n)
			continue;
		fprintf(f, "%s%s", n != 0 ? "; " : "", row->man);
		seen[n++] = row->man;
	}
	putc('"', f);
}

static void
table_head(FILE *f, const char *area, size_t len, unsigned int n)
{
	fprintf(f, "\n%.*s\n", (int)len, area);
	for (unsigned int i = 0; i < len; i++)
		putc('-', f);
	fputs("\n\n.. csv-table::\n   :header: group, rows, source", f);
	for (unsigned int i = 0; i < n; i++)
		fprintf(f, ", %u", i + 1);
	fputs("\n\n", f);
}

static const char table_intro[] =
	"Conformance\n"
	"===========\n"
	"\n"
	".. Made by test/conform/conform --table; do not edit. \"meson test table\" compares.\n"
	"\n"
	"Run the suite on your device with ``conform --device mlx5_0``. ``conform --list`` lists the\n"
	"tests of the suite, which are called rows.\n"
	"\n"
	"The tables show the behaviour that Bluebell promises, and the devices that pass the rows. A\n"
	"line is a group of rows, which differ in size, flags, number of SGEs or type of bad input.\n"
	"Every row checks the data with guard bytes around it, the completions, and the state of both\n"
	"queue pairs. If a call must fail, its row checks the errno, that the objects are unchanged,\n"
	"and that the log has one line. Connections use RoCE v2 GIDs if the port has them. The rows of\n"
	"the areas data, atomic and unreliable run again on each other type of GID, such as RoCE v1. A\n"
	"source \"assumption\" marks behaviour of the software device that no public source states for\n"
	"cards. If a card behaves differently in such a row, the suite reports that and does not fail.\n"
	"\n"
	"Devices:\n"
	"\n";

static const char table_end[] = "\n"
				"Reasons of skips\n"
				"----------------\n"
				"\n";

int
report_table(const char *path, const struct column *col, unsigned int n)
{
	static struct reasons reasons;
	const struct rows *rows = &col[0].rows;
	FILE *f = open_out(path);
	const char *area = "";

	if (f == NULL)
		return -EIO;
	fputs(table_intro, f);
	for (unsigned int c = 0; c < n; c++)
		fprintf(f, "%u. ``%s``\n", c + 1, col[c].spec);
	for (unsigned int i = 0; i < rows->n; i++) {
		const struct row *row = &rows->row[i];
		size_t len = strcspn(row->group, "/");

		if (!first_of_group(rows, i))
			continue;
		if (strncmp(area, row->group, len + 1) != 0) {
			area = row->group;
			table_head(f, area, len, n);
		}
		fprintf(f, "   %s, %u, ", row->group + len + 1, group_size(rows, row->group));
		group_sources(f, rows, row->group);
		for (unsigned int c = 0; c < n; c++)
			table_cell(f, &col[c].rows, row->group, &reasons);
		putc('\n', f);
	}
	fputs(table_end, f);
	for (unsigned int i = 0; i < reasons.n; i++)
		fprintf(f, "%u. %s\n", i + 1, reasons.text[i]);
	return close_out(f, path);
}
