/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Configuration files: sections in [], lines NAME = VALUE, comments after ; or # at the start of a
 * line or after a space. A section and a name may occur several times. A section ends at the next
 * one.
 */
#ifndef INI_H
#define INI_H

#include <stdint.h>

/* Largest size of a file in bytes. */
#define INI_MAX (1u << 20)

struct ini {
	const char *path;
	uint32_t line;   /* number of the current line, from 1 */
	char *section;   /* current section; NULL before the first one */
	char *name;      /* NULL if the line begins a section */
	char *value;     /* never NULL if name is not NULL */
	char error[128]; /* valid after an error */
	char *text, *at; /* private: the file, and its next line */
};

/*
 * Reads the file @path. Returns 0, or -errno and sets f->error. The strings that ini_next() returns
 * are valid until ini_close().
 */
int ini_open(struct ini *f, const char *path);
/* Advances to the next line. Returns 1; 0 at the end; or -EINVAL and sets f->error. */
int ini_next(struct ini *f);
void ini_close(struct ini *f);

#endif
