/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Runs a fuzz target over the files of folders, without libFuzzer: its corpus as a test. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

#define INPUT_MAX (1u << 20)

static int
replay(const char *path)
{
	uint8_t *data = malloc(INPUT_MAX), *exact;
	FILE *f = fopen(path, "rb");
	size_t len;

	if (data == NULL || f == NULL) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		exit(1);
	}
	len = fread(data, 1, INPUT_MAX, f);
	fclose(f);
	/* Allocated with the input's size, so that a read past it is detected. */
	exact = realloc(data, len > 0 ? len : 1);
	if (exact == NULL)
		exit(1);
	(void)LLVMFuzzerTestOneInput(exact, len);
	free(exact);
	return 1;
}

static unsigned int
replay_folder(const char *folder)
{
	DIR *dir = opendir(folder);
	unsigned int n = 0;
	struct dirent *e;

	if (dir == NULL) {
		fprintf(stderr, "%s: %s\n", folder, strerror(errno));
		exit(1);
	}
	while ((e = readdir(dir)) != NULL) {
		char path[4096];

		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
		n += (unsigned int)replay(path);
	}
	closedir(dir);
	printf("%u inputs in %s\n", n, folder);
	return n;
}

int
main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: %s CORPUS...\n", argv[0]);
		return 1;
	}
	for (int i = 1; i < argc; i++)
		if (replay_folder(argv[i]) == 0)
			return 1; /* an empty corpus tests nothing */
	return 0;
}
