/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Reports wrong commands of a session. */
#include <stdarg.h>

#include "session.h"

void
command_error_begin(struct session *s)
{
	s->n_wrong += !s->typed;
	fprintf(stderr, "testrdma: ");
	if (s->file != NULL)
		fprintf(stderr, "%s:%u: ", s->file, s->file_line);
}

void
command_error(struct session *s, const char *fmt, ...)
{
	va_list ap;

	command_error_begin(s);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\n");
}
