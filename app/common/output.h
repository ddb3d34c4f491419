/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Files of results: none is there cut short, none is reached through a symbolic link, none belongs
 * to another user. /dev/stdout and /dev/fd/N are the open descriptor. What is wrong is said after
 * the program's name.
 */
#ifndef OUTPUT_H
#define OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

/* Can --@option @path be written? Asked before the work; @path, which may be NULL, stays as it is.
 */
bool output_try(const char *option, const char *path);
/* NULL: it cannot be written. */
FILE *output_open(const char *option, const char *path);
/* 0, or -errno if it is not whole, as on a full disk: then there is no such file any more. */
int output_close(FILE *f, const char *option, const char *path);

/* From here on the program fails at its end if what it printed was not written, as to a full disk.
 */
void output_watch(void);

#endif
