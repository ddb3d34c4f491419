/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Reports wrong commands of a session. */
#include <stdarg.h>

#include "session.h"

void
command_error(struct session *s, const char *fmt, ...)
{
	va_list ap;

	s->n_wrong += !s->typed;
	fprintf(stderr, "testrdma: ");
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\n");
}
