/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* A configuration file: the cases of a run, their order, and the repetitions of each case. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_cfgfile.h>

#include "bench.h"

/* Name of the section with options of the whole run. Every other section is named after a case. */
#define GLOBAL "bench"

static int
print_invalid(const char *path, const char *section, const char *what, const char *which)
{
	fprintf(stderr, "bench: %s, [%s]: %s \"%s\"\n", path, section, what, which);
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
global_entry(const char *path, const struct rte_cfgfile_entry *e, struct bench_config *config)
{
	if (strcmp(e->name, "repeat") == 0)
		opts.repeat = (unsigned int)bench_number("repeat", e->value, 1, BENCH_MAX_REPEAT);
	else if (strcmp(e->name, "device") == 0)
		opts.device = copy_value(e->value);
	else if (strcmp(e->name, "peer-device") == 0)
		opts.peer_device = copy_value(e->value);
	else if (strcmp(e->name, "csv") == 0)
		config->csv = copy_value(e->value);
	else if (strcmp(e->name, "json") == 0)
		config->json = copy_value(e->value);
	else if (strcmp(e->name, "report") == 0)
		config->report = copy_value(e->value);
	else
		return print_invalid(
			path, GLOBAL,
			"unknown setting (known: repeat, device, peer-device, csv, json, report):",
			e->name);
	return 0;
}

static int
section(const char *path, struct rte_cfgfile *file, char *name, struct bench_config *config)
{
	const bool global = strcmp(name, GLOBAL) == 0;
	int n = rte_cfgfile_section_num_entries(file, name), i, rc = 0;
	struct rte_cfgfile_entry *entries;

	if (!global && !bench_has_case(name))
		return print_invalid(path, name,
				     "the section is neither bench nor a case of "
				     "--list:",
				     name);
	if (!global && config->n == BENCH_MAX_RUNS)
		return print_invalid(
			path, name,
			"the file has too many sections, this one is over the limit:", name);
	if (!global)
		snprintf(config->runs[config->n].name, sizeof(config->runs[0].name), "%s", name);
	entries = calloc((size_t)n + 1, sizeof(*entries));
	if (entries == NULL || rte_cfgfile_section_entries(file, name, entries, n) != n) {
		free(entries);
		return print_invalid(path, name, "cannot be read:", name);
	}
	for (i = 0; i < n && rc == 0; i++) {
		if (global)
			rc = global_entry(path, &entries[i], config);
		else if (strcmp(entries[i].name, "repeat") == 0)
			config->runs[config->n].repeat = (unsigned int)bench_number(
				"repeat", entries[i].value, 1, BENCH_MAX_REPEAT);
		else if (strcmp(name, case_size.name) == 0 && strcmp(entries[i].name, "size") == 0)
			bench_sizes("size", entries[i].value);
		else if (strcmp(name, case_scale.name) == 0 && strcmp(entries[i].name, "qps") == 0)
			bench_qps("qps", entries[i].value);
		else
			rc = print_invalid(
				path, name,
				"unknown setting (known: repeat; in [size] also size, in [scale] "
				"also qps):",
				entries[i].name);
	}
	free(entries);
	config->n += global ? 0 : 1;
	return rc;
}

int
bench_config_load(const char *path, struct bench_config *config)
{
	char *names[BENCH_MAX_RUNS + 1], text[BENCH_MAX_RUNS + 1][CFG_NAME_LEN];
	struct rte_cfgfile *file;
	int i, k, n, rc = 0;

	if (access(path, R_OK) != 0) {
		fprintf(stderr, "bench: %s cannot be read: %s\n", path, strerror(errno));
		return 2;
	}
	file = rte_cfgfile_load(path, 0);
	if (file == NULL) {
		fprintf(stderr,
			"bench: %s cannot be read: it needs sections in [], lines NAME = VALUE, "
			"comments after ;\n",
			path);
		return 2;
	}
	for (i = 0; i <= BENCH_MAX_RUNS; i++)
		names[i] = text[i];
	n = rte_cfgfile_num_sections(file, NULL, 0);
	if (n > BENCH_MAX_RUNS + 1) {
		fprintf(stderr, "bench: %s has more than %d sections\n", path, BENCH_MAX_RUNS + 1);
		rc = 2;
		n = 0;
	}
	n = n > 0 ? rte_cfgfile_sections(file, names, n) : 0;
	for (i = 0; i < n && rc == 0; i++) {
		/*
		 * Rejects two sections of the same name, which rte_cfgfile would not distinguish.
		 */
		for (k = 0; k < i && rc == 0; k++)
			if (strcmp(names[k], names[i]) == 0)
				rc = print_invalid(path, names[i],
						   "the file has the section twice:", names[i]);
		if (rc == 0)
			rc = section(path, file, names[i], config);
	}
	rte_cfgfile_close(file);
	if (rc == 0 && config->n == 0) {
		fprintf(stderr, "bench: %s has no section for a case: --list shows the cases\n",
			path);
		rc = 2;
	}
	return rc;
}
