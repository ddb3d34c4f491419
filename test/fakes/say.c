/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <stdarg.h>
#include <stdio.h>

#include "program.h"
#include "say.h"

char said[256];

/* In place of app/common/program.c, which belongs to a program. */
void
say(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(said, sizeof(said), fmt, ap);
	va_end(ap);
	printf("%s\n", said);
}
