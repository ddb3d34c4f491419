/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The table of the cases, and the functions that run them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

static const struct bench_case *const cases[] = {
	&case_post,   &case_post_poll, &case_poll,  &case_inline, &case_lcore,
	&case_lkey,   &case_bandwidth, &case_qps,   &case_pauses, &case_mapped,
	&case_memif,  &case_peers,     &case_wire,  &case_shm,    &case_loss,
	&case_kernel, &case_size,      &case_scale, &case_ring,
};
#define N_CASES (sizeof(cases) / sizeof(cases[0]))

static const struct bench_case *
find_case(const char *name)
{
	size_t i;

	for (i = 0; i < N_CASES; i++)
		if (strcmp(cases[i]->name, name) == 0)
			return cases[i];
	return NULL;
}

bool
bench_has_case(const char *name)
{
	return find_case(name) != NULL;
}

const char *
bench_case_what(const char *name)
{
	const struct bench_case *c = find_case(name);

	return c != NULL ? c->what : "";
}

void
cases_list(FILE *out)
{
	size_t i;

	for (i = 0; i < N_CASES; i++)
		fprintf(out, "%-10s %s\n", cases[i]->name, cases[i]->what);
}

int
cases_run_config(const struct bench_config *config)
{
	const unsigned int repeat = opts.repeat;
	unsigned int i;
	int rc = 0;

	for (i = 0; i < config->n && rc == 0 && !bench_stopped(); i++) {
		opts.repeat = config->runs[i].repeat != 0 ? config->runs[i].repeat : repeat;
		rc = find_case(config->runs[i].name)->run();
	}
	opts.repeat = repeat;
	return rc;
}

int
cases_run(const char *list)
{
	char *copy, *save = NULL, *name;
	int rc = 0;
	size_t i;

	if (list == NULL) {
		for (i = 0; i < N_CASES && rc == 0 && !bench_stopped(); i++)
			rc = cases[i]->run();
		return rc;
	}
	copy = strdup(list);
	if (copy == NULL)
		return -ENOMEM;
	for (name = strtok_r(copy, ",", &save); name != NULL && rc == 0 && !bench_stopped();
	     name = strtok_r(NULL, ",", &save))
		rc = find_case(name)->run();
	free(copy);
	return rc;
}

bool
cases_check(const char *list)
{
	char *copy = strdup(list), *save = NULL, *name;
	bool good = copy != NULL;
	unsigned int n = 0;

	for (name = good ? strtok_r(copy, ",", &save) : NULL; name != NULL;
	     name = strtok_r(NULL, ",", &save)) {
		n++;
		if (find_case(name) == NULL) {
			fprintf(stderr, "bench: no case %s: --list shows them\n", name);
			good = false;
		}
	}
	free(copy);
	if (n == 0)
		fprintf(stderr, "bench: --case needs the name of a case: --list shows them\n");
	return good && n != 0;
}
