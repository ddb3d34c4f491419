/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Result files. These functions never leave a truncated file, follow a symbolic link, or write to a
 * file of another user. The paths /dev/stdout and /dev/fd/N mean the open descriptor. Errors are
 * printed after the program's name.
 */
#ifndef OUTPUT_H
#define OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

/*
 * Returns true if the file @path of option --@option can be written. Does not change the file, so a
 * program can call it before a long run. @path may be NULL.
 */
bool output_try(const char *option, const char *path);
/*
 * Opens the file @path of option --@option. Returns NULL after printing the error if the file
 * cannot be written.
 */
FILE *output_open(const char *option, const char *path);
/*
 * Closes the file. Returns 0, or -errno if some data could not be written, for example to a full
 * disk. The incomplete file is then removed.
 */
int output_close(FILE *f, const char *option, const char *path);

/*
 * Registers an exit handler for standard output. If some output could not be written, for example
 * to a full disk, the program then exits with an error status.
 */
void output_watch(void);

#endif
