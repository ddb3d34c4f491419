/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* A configuration file: the cases of a run, their order, and the repetitions of each case. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "ini.h"

/* Name of the section with options of the whole run. Every other section is named after a case. */
#define GLOBAL "bench"

static int
print_invalid(const struct ini *f, const char *what, const char *which)
{
	fprintf(stderr, "bench: %s:%u: %s \"%s\"\n", f->path, f->line, what, which);
	return 2;
}

/* Returns a copy of @value, because values are used after the file is closed. */
static const char *
copy_value(const char *value)
{
	char *copy = strdup(value);

	if (copy == NULL) {
		fprintf(stderr, "bench: no memory\n");
		exit(1);
	}
	return copy;
}

static int
global_entry(const struct ini *f, const char *where, struct bench_config *config)
{
	if (strcmp(f->name, "repeat") == 0)
		opts.repeat = (unsigned int)bench_number(where, f->value, 1, BENCH_MAX_REPEAT);
	else if (strcmp(f->name, "device") == 0)
		opts.device = copy_value(f->value);
	else if (strcmp(f->name, "peer-device") == 0)
		opts.peer_device = copy_value(f->value);
	else if (strcmp(f->name, "csv") == 0)
		config->csv = copy_value(f->value);
	else if (strcmp(f->name, "json") == 0)
		config->json = copy_value(f->value);
	else if (strcmp(f->name, "report") == 0)
		config->report = copy_value(f->value);
	else
		return print_invalid(
			f,
			"unknown setting (known: repeat, device, peer-device, csv, json, report):",
			f->name);
	return 0;
}

static int
entry(const struct ini *f, struct bench_config *config)
{
	/* Start of the error texts that bench_number() and similar functions print. */
	char where[128];

	if (f->section == NULL)
		return print_invalid(f, "no section, such as [bench], precedes the setting",
				     f->name);
	snprintf(where, sizeof(where), "%s:%u: %s", f->path, f->line, f->name);
	if (strcmp(f->section, GLOBAL) == 0)
		return global_entry(f, where, config);
	if (strcmp(f->name, "repeat") == 0)
		config->runs[config->n - 1].repeat =
			(unsigned int)bench_number(where, f->value, 1, BENCH_MAX_REPEAT);
	else if (strcmp(f->section, case_size.name) == 0 && strcmp(f->name, "size") == 0)
		bench_sizes(where, f->value);
	else if (strcmp(f->section, case_scale.name) == 0 && strcmp(f->name, "qps") == 0)
		bench_qps(where, f->value);
	else
		return print_invalid(f,
				     "unknown setting (known: repeat; in [size] also size, in "
				     "[scale] also qps):",
				     f->name);
	return 0;
}

static int
section(const struct ini *f, struct bench_config *config)
{
	unsigned int i;

	if (strcmp(f->section, GLOBAL) == 0)
		return 0;
	if (!bench_has_case(f->section))
		return print_invalid(
			f, "the section is neither bench nor a case of --list:", f->section);
	for (i = 0; i < config->n; i++)
		if (strcmp(config->runs[i].name, f->section) == 0)
			return print_invalid(f, "the file has the section twice:", f->section);
	if (config->n == BENCH_MAX_RUNS)
		return print_invalid(
			f,
			"the file has too many sections, this one is over the limit:", f->section);
	snprintf(config->runs[config->n++].name, sizeof(config->runs[0].name), "%s", f->section);
	return 0;
}

int
bench_config_load(const char *path, struct bench_config *config)
{
	struct ini f;
	int rc;

	if (ini_open(&f, path) != 0) {
		fprintf(stderr, "bench: %s cannot be read: %s\n", path, f.error);
		return 2;
	}
	while ((rc = ini_next(&f)) == 1) {
		rc = f.name == NULL ? section(&f, config) : entry(&f, config);
		if (rc != 0)
			break;
	}
	if (rc < 0)
		fprintf(stderr, "bench: %s:%u: %s\n", path, f.line, f.error);
	ini_close(&f);
	if (rc == 0 && config->n == 0) {
		fprintf(stderr, "bench: %s has no section for a case: --list shows the cases\n",
			path);
		rc = 2;
	}
	return rc < 0 ? 2 : rc;
}
