/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* How an entry finds libc's function of its name. */
#ifndef LIBC_H
#define LIBC_H

#include <dlfcn.h>

#define PUBLIC __attribute__((visibility("default")))

/* Returns libc's function. Ends the process if there is none. */
void *libc_find(const char *name);

/* Declares @real, a pointer to libc's function @name_ of the given return and parameter types. */
#define REAL(ret_, name_, ...)                                                                     \
	static ret_ (*real)(__VA_ARGS__);                                                          \
	if (real == NULL)                                                                          \
	*(void **)&real = libc_find(#name_)

#endif
