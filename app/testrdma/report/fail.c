/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Prints the errors of a test on standard error. */
#include <stdarg.h>

#include "testrdma.h"

static bool line_open; /* the progress line is on the screen and has no newline */

void
progress_open(bool open)
{
	line_open = open;
}

void
progress_clear(void)
{
	if (line_open)
		fprintf(stderr, "\r\033[K");
	line_open = false;
}

void
report_fail(struct tester *t, const char *fmt, ...)
{
	struct test *test = t->test;
	va_list ap;

	if (test->res.errors++ >= FAILS_SHOWN)
		return;
	progress_clear();
	fprintf(stderr, "testrdma: %s %u: ", test->e->name, test->size);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\n");
}
