/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#ifndef CHILD_H
#define CHILD_H

#include <stddef.h>
#include <sys/types.h>

/*
 * Starts the program @path on CPU @cpu, with its output to descriptor @out; -1 discards the output.
 * The kernel kills the program when this process ends. Returns the pid, or a negative number on an
 * error.
 */
pid_t child_spawn(const char *path, const char *const *argv, char *const *env, unsigned int cpu,
		  int out);
/*
 * Runs a program on this process's CPU until the program ends. Returns 0 if it succeeded, with its
 * output in @text. Returns -EAGAIN if it failed, -ETIMEDOUT, or another -errno.
 */
int child_run(const char *path, const char *const *argv, char *const *env, char *text, size_t size);
/*
 * Does the same as child_run(), for the program @name in the folder of this program. Sets argv[0].
 */
int child_run_beside(const char *name, const char **argv, char *text, size_t size);

#endif
