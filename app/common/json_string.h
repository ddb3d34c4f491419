/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Strings in the JSON of the programs. */
#ifndef JSON_STRING_H
#define JSON_STRING_H

#include <stdio.h>

/* "name": "value" */
static inline void
json_string(FILE *f, const char *name, const char *value)
{
	fprintf(f, "\"%s\": \"", name);
	for (; *value != '\0'; value++) {
		if (*value == '"' || *value == '\\')
			fprintf(f, "\\%c", *value);
		else if ((unsigned char)*value < 0x20)
			fprintf(f, "\\u%04x", (unsigned char)*value);
		else
			fputc(*value, f);
	}
	fputc('"', f);
}

#endif
