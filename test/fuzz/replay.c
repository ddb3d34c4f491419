/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Run a fuzz target over the files of a folder, without libFuzzer: its corpus as a test. */
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
	/* As long as the input: a read behind it is seen. */
	exact = realloc(data, len > 0 ? len : 1);
	if (exact == NULL)
		exit(1);
	(void)LLVMFuzzerTestOneInput(exact, len);
	free(exact);
	return 1;
}

int
main(int argc, char **argv)
{
	unsigned int n = 0;
	struct dirent *e;
	DIR *dir;

	if (argc != 2 || (dir = opendir(argv[1])) == NULL) {
		fprintf(stderr, "usage: %s CORPUS\n", argv[0]);
		return 1;
	}
	while ((e = readdir(dir)) != NULL) {
		char path[4096];

		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", argv[1], e->d_name);
		n += (unsigned int)replay(path);
	}
	closedir(dir);
	printf("%u inputs\n", n);
	return n == 0; /* an empty corpus tests nothing */
}
