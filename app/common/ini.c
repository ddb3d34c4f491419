/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ini.h"

static int
fail(struct ini *f, int rc, const char *why)
{
	snprintf(f->error, sizeof(f->error), "%s", why);
	return rc;
}

int
ini_open(struct ini *f, const char *path)
{
	FILE *in;
	size_t n;
	int rc;

	memset(f, 0, sizeof(*f));
	f->path = path;
	in = fopen(path, "re");
	if (in == NULL)
		return fail(f, -errno, strerror(errno));
	f->text = malloc(INI_MAX + 2);
	if (f->text == NULL) {
		fclose(in);
		return fail(f, -ENOMEM, "no memory");
	}
	n = fread(f->text, 1, INI_MAX + 1, in);
	rc = ferror(in) ? fail(f, -EIO, "the file cannot be read") : 0;
	fclose(in);
	if (rc == 0 && n > INI_MAX)
		rc = fail(f, -EFBIG, "the file is larger than 1 MiB");
	f->text[n] = '\0';
	if (rc == 0 && strlen(f->text) != n)
		rc = fail(f, -EINVAL, "the file contains a NUL character");
	f->at = f->text;
	if (rc != 0)
		ini_close(f);
	return rc;
}

void
ini_close(struct ini *f)
{
	free(f->text);
	f->text = f->at = NULL;
}

/* Removes spaces at both ends. */
static char *
trim(char *s)
{
	char *end = s + strlen(s);

	while (end > s && strchr(" \t\r", end[-1]) != NULL)
		*--end = '\0';
	return s + strspn(s, " \t");
}

static void
cut_comment(char *s)
{
	char *p;

	for (p = s; *p != '\0'; p++) {
		if ((*p == ';' || *p == '#') && (p == s || p[-1] == ' ' || p[-1] == '\t')) {
			*p = '\0';
			return;
		}
	}
}

/* Parses a line that is not empty. */
static int
parse(struct ini *f, char *s)
{
	char *equals = strchr(s, '=');
	size_t len = strlen(s);

	if (s[0] == '[') {
		if (s[len - 1] != ']')
			return fail(f, -EINVAL, "the section has no ]");
		s[len - 1] = '\0';
		f->section = trim(s + 1);
		f->name = f->value = NULL;
		return f->section[0] == '\0' ? fail(f, -EINVAL, "the section has no name") : 1;
	}
	if (equals == NULL)
		return fail(f, -EINVAL, "the line is neither [SECTION] nor NAME = VALUE");
	*equals = '\0';
	f->name = trim(s);
	f->value = trim(equals + 1);
	return f->name[0] == '\0' ? fail(f, -EINVAL, "there is no name before the =") : 1;
}

int
ini_next(struct ini *f)
{
	while (*f->at != '\0') {
		char *s = f->at, *end = s + strcspn(s, "\n");

		f->at = *end == '\0' ? end : end + 1;
		*end = '\0';
		f->line++;
		cut_comment(s);
		s = trim(s);
		if (s[0] != '\0')
			return parse(f, s);
	}
	return 0;
}
