/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Result files. None is left truncated, reached through a symbolic link, or owned by another user.
 * /dev/stdout and /dev/fd/N mean the open descriptor. Errors are printed after the program's name.
 */
#ifndef OUTPUT_H
#define OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

/*
 * Returns true if the file @path of --@option can be written. Called before the run; does not
 * change the file. @path may be NULL.
 */
bool output_try(const char *option, const char *path);
/* Opens the file. Returns NULL if it cannot be written. */
FILE *output_open(const char *option, const char *path);
/*
 * Closes the file. Returns 0, or -errno if it is incomplete, as on a full disk; it is then removed.
 */
int output_close(FILE *f, const char *option, const char *path);

/* Makes the program fail at its end if its output could not be written, as on a full disk. */
void output_watch(void);

#endif
