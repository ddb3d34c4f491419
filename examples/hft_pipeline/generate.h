/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* A day of market data out of a seed: the same file on every machine. */
#ifndef GENERATE_H
#define GENERATE_H

#include "itch.h"

#define GENERATE_MAX_OPEN 16384u /* orders open at a time */

struct generate {
	uint64_t seed;
	uint32_t messages; /* from 2: the first and the last one open and end the day */
	uint32_t symbols;  /* 1 to ITCH_SYMBOLS */
};

/* The image of a file, for itch_file_open(). 0; -EINVAL; -ENOMEM. */
int generate(const struct generate *g, uint8_t **image, size_t *size);

#endif
