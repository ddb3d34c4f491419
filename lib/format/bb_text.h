/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Builds text in a buffer. If the text does not fit, the rest is dropped but counted in len, as
 * snprintf() does.
 */
#ifndef BB_TEXT_H
#define BB_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct bb_text {
	char *buf;
	size_t size;
	size_t len;
};

static inline struct bb_text
bb_text_start(char *buf, size_t size)
{
	struct bb_text t = {buf, size, 0};

	if (size != 0)
		buf[0] = '\0';
	return t;
}

static inline void __attribute__((format(printf, 2, 3)))
bb_text_add(struct bb_text *t, const char *fmt, ...)
{
	bool room = t->len < t->size;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(room ? t->buf + t->len : NULL, room ? t->size - t->len : 0, fmt, ap);
	va_end(ap);
	if (n > 0)
		t->len += (size_t)n;
}

#endif
