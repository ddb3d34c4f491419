/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Writes strings as JSON. The JSON is valid even if an option or a name has bytes that are not
 * UTF-8.
 */
#ifndef JSON_STRING_H
#define JSON_STRING_H

#include <stdio.h>

/*
 * Returns the length in bytes of the UTF-8 character at the start of a non-empty string. Returns 0
 * if there is no valid character (RFC 3629, section 4).
 */
static inline unsigned int
utf8_length(const char *s)
{
	const unsigned char *b = (const unsigned char *)s;
	unsigned int len = b[0] < 0x80 ? 1 : b[0] < 0xe0 ? 2 : b[0] < 0xf0 ? 3 : 4, i;

	if (len == 1)
		return 1;
	if (b[0] < 0xc2 || b[0] > 0xf4)
		return 0;
	/* Rejects overlong encodings, surrogates, and characters above U+10FFFF. */
	if ((b[0] == 0xe0 && b[1] < 0xa0) || (b[0] == 0xed && b[1] > 0x9f) ||
	    (b[0] == 0xf0 && b[1] < 0x90) || (b[0] == 0xf4 && b[1] > 0x8f))
		return 0;
	for (i = 1; i < len; i++)
		if ((b[i] & 0xc0) != 0x80)
			return 0;
	return len;
}

/* Writes @value in quotes. Replaces each byte that is not UTF-8 with U+FFFD. */
static inline void
json_text(FILE *f, const char *value)
{
	unsigned int len;

	fputc('"', f);
	for (; *value != '\0'; value += len == 0 ? 1 : len) {
		len = utf8_length(value);
		if (len == 0)
			fputs("\\ufffd", f);
		else if (*value == '"' || *value == '\\')
			fprintf(f, "\\%c", *value);
		else if ((unsigned char)*value < 0x20)
			fprintf(f, "\\u%04x", (unsigned char)*value);
		else
			fwrite(value, 1, len, f);
	}
	fputc('"', f);
}

/* Writes @name and @value as a JSON member, "name": "value". */
static inline void
json_string(FILE *f, const char *name, const char *value)
{
	fprintf(f, "\"%s\": ", name);
	json_text(f, value);
}

#endif
