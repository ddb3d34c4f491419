/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#define _GNU_SOURCE
#undef _FILE_OFFSET_BITS /* the headers would rename these functions of libc */
#undef _FORTIFY_SOURCE   /* the headers would define some of these functions inline */
#include <stdarg.h>
#include <stdlib.h>

#include "libc.h"

void *
libc_find(const char *name)
{
	void *fn = dlsym(RTLD_NEXT, name);

	if (fn == NULL)
		abort(); /* this libc lacks the function that the program has called */
	return fn;
}

int
libc_open(const char *path, int flags, mode_t mode)
{
	REAL(int, open, const char *, int, ...);
	return real(path, flags, mode);
}

FILE *
libc_fopen(const char *path, const char *mode)
{
	REAL(FILE *, fopen, const char *, const char *);
	return real(path, mode);
}

int
libc_close(int fd)
{
	REAL(int, close, int);
	return real(fd);
}

ssize_t
libc_read(int fd, void *buf, size_t len)
{
	REAL(ssize_t, read, int, void *, size_t);
	return real(fd, buf, len);
}

ssize_t
libc_write(int fd, const void *buf, size_t len)
{
	REAL(ssize_t, write, int, const void *, size_t);
	return real(fd, buf, len);
}

int
libc_fcntl(int fd, int command, ...)
{
	va_list ap;
	void *arg;

	REAL(int, fcntl, int, int, ...);
	va_start(ap, command);
	arg = va_arg(ap, void *);
	va_end(ap);
	return real(fd, command, arg);
}

int
libc_ioctl(int fd, unsigned long request, void *arg)
{
	REAL(int, ioctl, int, unsigned long, ...);
	return real(fd, request, arg);
}

int
libc_fstat(int fd, struct stat *st)
{
	REAL(int, fstat, int, struct stat *);
	return real(fd, st);
}
