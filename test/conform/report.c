/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The list of rows, and results as JSON. */
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
	const char *machine = need_of_machine(row->needs);

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
	if (row->missing != NULL) {
		fputs(", \"missing\": ", f);
		json_string(f, row->missing);
	}
	if (machine != NULL) {
		fputs(", \"machine\": ", f);
		json_string(f, machine);
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
