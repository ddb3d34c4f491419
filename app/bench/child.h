/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#ifndef CHILD_H
#define CHILD_H

#include <stddef.h>
#include <sys/types.h>

/* The program on @cpu, its output to @out; -1: to nowhere. It does not outlive us. < 0: no. */
pid_t child_spawn(const char *path, const char *const *argv, char *const *env, unsigned int cpu,
		  int out);
/*
 * One that runs on our CPU until it ends. 0: it ended well, its output is in @text; -EAGAIN: it did
 * not; -ETIMEDOUT; another -errno.
 */
int child_run(const char *path, const char *const *argv, char *const *env, char *text, size_t size);
/* The same of a program that lies beside this one; argv[0] is set here. */
int child_beside(const char *name, const char **argv, char *text, size_t size);

#endif
