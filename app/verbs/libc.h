/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Looks up the function of libc that a function of the same name replaces. */
#ifndef LIBC_H
#define LIBC_H

#include <dlfcn.h>

#define PUBLIC __attribute__((visibility("default")))

/* Returns the function @name of libc. Aborts the process if libc does not have it. */
void *libc_find(const char *name);

/* Declares @real, a pointer to libc's function @name_ of the given return and parameter types. */
#define REAL(ret_, name_, ...)                                                                     \
	static ret_ (*real)(__VA_ARGS__);                                                          \
	if (real == NULL)                                                                          \
	*(void **)&real = libc_find(#name_)

#endif
