/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Test data that can be checked without a copy. Each piece of PATTERN_UNIT bytes begins with a
 * stamp: the offset, the number of the write and the seed. The other bytes are computed from the
 * stamp. So a check detects data that is stale, at a wrong offset, mixed from two writes, or
 * damaged.
 */
#ifndef PATTERN_H
#define PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PATTERN_UNIT 512u

/*
 * Fills @p mem with the data of write number @p seq, which goes to @p offset. @p len must be a
 * multiple of PATTERN_UNIT.
 */
void pattern_fill(void *mem, uint32_t len, uint64_t offset, uint64_t seq, uint64_t seed);

/*
 * Checks data that was read from @p offset.
 * @param seq set to the number of the write that the data belongs to; 0 if all bytes are 0, so that
 * the block was never written
 * @return NULL if the data is valid, otherwise the end of a sentence that begins with "the data",
 * such as "is damaged"
 */
const char *pattern_check(const void *mem, uint32_t len, uint64_t offset, uint64_t seed,
			  uint64_t *seq);

/* Returns true if no piece was written with @seed: the data is from another run or program. */
bool pattern_foreign(const void *mem, uint32_t len, uint64_t seed);

#endif
