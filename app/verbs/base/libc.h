/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The functions of libc, some of which this library replaces. The library's own descriptors are not
 * those of the program: its files open and close them by the functions below, not by the
 * replacements, which would look into the program's table.
 */
#ifndef LIBC_H
#define LIBC_H

#include <dlfcn.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>

#define PUBLIC __attribute__((visibility("default")))

/* Returns the function @name of libc. Aborts the process if libc does not have it. */
void *libc_find(const char *name);

/* Declares @real, a pointer to libc's function @name_ of the given return and parameter types. */
#define REAL(ret_, name_, ...)                                                                     \
	static ret_ (*real)(__VA_ARGS__);                                                          \
	if (real == NULL)                                                                          \
	*(void **)&real = libc_find(#name_)

/* libc's functions of these names. */
int libc_open(const char *path, int flags, mode_t mode);
FILE *libc_fopen(const char *path, const char *mode);
int libc_close(int fd);
ssize_t libc_read(int fd, void *buf, size_t len);
ssize_t libc_write(int fd, const void *buf, size_t len);
int libc_fcntl(int fd, int command, ...);
int libc_ioctl(int fd, unsigned long request, void *arg);
int libc_fstat(int fd, struct stat *st);

#endif
