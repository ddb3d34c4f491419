/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "number.h"

const char *
number_parse(const char *s, size_t len, uint64_t *v)
{
	char buf[32], *end;
	unsigned int shift = 0;

	if (len == 0)
		return "lacks a number";
	if (len >= sizeof(buf))
		return "is too long for a number";
	memcpy(buf, s, len);
	buf[len] = '\0';
	if (buf[0] < '0' || buf[0] > '9')
		return "is not a number (examples: 64, 4K, 1M)";
	errno = 0;
	*v = strtoull(buf, &end, 0);
	if (errno != 0)
		return "is out of range";
	switch (*end) {
	case 'k':
	case 'K':
		shift = 10;
		break;
	case 'm':
	case 'M':
		shift = 20;
		break;
	case 'g':
	case 'G':
		shift = 30;
		break;
	case 't':
	case 'T':
		shift = 40;
		break;
	}
	if (end[shift != 0] != '\0')
		return "is not a number (examples: 64, 4K, 1M)";
	if (*v > UINT64_MAX >> shift)
		return "is out of range";
	*v <<= shift;
	return NULL;
}
