/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * What is written, so that what is read tells whether it is right: each piece of PATTERN_UNIT bytes
 * begins with a stamp (its place, a number of the write, a seed), and the rest follows from it.
 * So a piece that is stale, at a wrong place, torn or damaged is seen without a copy.
 */
#ifndef PATTERN_H
#define PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PATTERN_UNIT 512u

/* @p len bytes, a multiple of PATTERN_UNIT, that go to @p offset by the @p seq-th write. */
void pattern_fill(void *mem, uint32_t len, uint64_t offset, uint64_t seq, uint64_t seed);

/*
 * Look at what was read.
 * @param seq the number of the write it is of; 0: never written, all of it is zeros
 * @return NULL, or what is wrong as a piece of a sentence
 */
const char *pattern_check(const void *mem, uint32_t len, uint64_t offset, uint64_t seed,
			  uint64_t *seq);

/* No piece of it was written with @seed: it is of another run, or of another program. */
bool pattern_foreign(const void *mem, uint32_t len, uint64_t seed);

#endif
