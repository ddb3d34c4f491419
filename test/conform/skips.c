/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The list of permitted skips: lines of "device need: reason", the device as a shell pattern. A
 * row that skips for another need fails.
 */
#include <ctype.h>
#include <fnmatch.h>

#include "conform.h"

#define MAX 128

static struct {
	char spec[96], need[32], reason[160];
	bool used;
} skip[MAX];
static unsigned int n_skips;
static bool loaded;

int
skips_load(const char *path)
{
	FILE *f = fopen(path, "r");
	unsigned int no = 0;
	char line[512];

	if (f == NULL) {
		fprintf(stderr, "conform: %s: %s\n", path, strerror(errno));
		return -errno;
	}
	loaded = true;
	while (fgets(line, sizeof(line), f) != NULL) {
		char *p = line;

		no++;
		while (isspace((unsigned char)*p))
			p++;
		if (*p == '#' || *p == '\0')
			continue;
		if (n_skips == MAX || sscanf(p, "%95s %31[^: ] : %159[^\n]", skip[n_skips].spec,
					     skip[n_skips].need, skip[n_skips].reason) != 3) {
			fprintf(stderr, "conform: %s:%u: write \"device need: reason\"\n", path,
				no);
			fclose(f);
			return -EINVAL;
		}
		n_skips++;
	}
	fclose(f);
	return 0;
}

const char *
skip_allowed(const char *spec, const char *need)
{
	const char *reason = NULL;

	if (!loaded)
		return "";
	for (unsigned int i = 0; i < n_skips; i++) {
		if (fnmatch(skip[i].spec, spec, FNM_EXTMATCH) != 0 ||
		    strcmp(skip[i].need, need) != 0)
			continue;
		skip[i].used = true;
		reason = skip[i].reason;
	}
	return reason;
}

unsigned int
skips_unused(void)
{
	unsigned int i, n = 0;

	for (i = 0; i < n_skips; i++) {
		if (skip[i].used || strncmp(skip[i].need, "machine-", 8) == 0)
			continue;
		printf("conform: the list of allowed skips has a line that no row needs: %s %s\n",
		       skip[i].spec, skip[i].need);
		n++;
	}
	return n;
}
