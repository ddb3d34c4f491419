/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Generates a day of market data from a seed. The same seed produces the same file on every
 * machine.
 */
#ifndef GENERATE_H
#define GENERATE_H

#include "itch.h"

#define GENERATE_MAX_OPEN 16384u /* maximum open orders */

struct generate {
	uint64_t seed;
	uint32_t messages; /* number of messages, at least 2: one opens the day, one ends it */
	uint32_t symbols;  /* 1 to ITCH_SYMBOLS */
};

/* Creates the image of a file for itch_file_open(). Returns 0, -EINVAL or -ENOMEM. */
int generate(const struct generate *g, uint8_t **image, size_t *size);

#endif
