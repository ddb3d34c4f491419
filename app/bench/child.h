/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#ifndef CHILD_H
#define CHILD_H

#include <stddef.h>
#include <sys/types.h>

/*
 * Starts the program on @cpu, with its output to @out; -1: discarded. It ends with this process.
 * Returns its pid, < 0 on an error.
 */
pid_t child_spawn(const char *path, const char *const *argv, char *const *env, unsigned int cpu,
		  int out);
/*
 * Runs a program on this process's CPU until it ends. Returns 0 if it succeeded, with its output in
 * @text; -EAGAIN if it failed; -ETIMEDOUT; another -errno.
 */
int child_run(const char *path, const char *const *argv, char *const *env, char *text, size_t size);
/* Does the same for a program in this program's folder; sets argv[0]. */
int child_beside(const char *name, const char **argv, char *text, size_t size);

#endif
