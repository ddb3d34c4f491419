/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Ends a program in the guest when a call fails. */
#ifndef NEED_H
#define NEED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void *
need(void *p, const char *what)
{
	if (p == NULL) {
		perror(what);
		exit(1);
	}
	return p;
}

static inline void
must(int ret, const char *what)
{
	if (ret != 0) {
		fprintf(stderr, "%s: %s\n", what, strerror(ret));
		exit(1);
	}
}

#endif
