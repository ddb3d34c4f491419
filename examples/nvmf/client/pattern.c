/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <string.h>

#include "pattern.h"

#define WORDS (PATTERN_UNIT / 8)
#define MAGIC 0x6d7453656c754242ull /* "BBluestm" */

/* Mixes the bits of a number: the last step of splitmix64. */
static uint64_t
mix(uint64_t v)
{
	v ^= v >> 30;
	v *= 0xbf58476d1ce4e5b9ull;
	v ^= v >> 27;
	v *= 0x94d049bb133111ebull;
	return v ^ v >> 31;
}

static void
unit(uint64_t *words, uint64_t offset, uint64_t seq, uint64_t seed)
{
	uint64_t v = mix(offset ^ mix(seq ^ mix(seed)));
	uint32_t i;

	words[0] = MAGIC;
	words[1] = offset;
	words[2] = seq;
	words[3] = seed;
	for (i = 4; i < WORDS; i++) {
		v = v * 6364136223846793005ull + 1442695040888963407ull;
		words[i] = v;
	}
}

void
pattern_fill(void *mem, uint32_t len, uint64_t offset, uint64_t seq, uint64_t seed)
{
	uint64_t words[WORDS];
	uint32_t at;

	for (at = 0; at < len; at += PATTERN_UNIT) {
		unit(words, offset + at, seq, seed);
		memcpy((uint8_t *)mem + at, words, PATTERN_UNIT);
	}
}

const char *
pattern_check(const void *mem, uint32_t len, uint64_t offset, uint64_t seed, uint64_t *seq)
{
	uint64_t want[WORDS], have[WORDS];
	static const uint64_t zeros[WORDS];
	uint64_t first = 0;
	uint32_t at;

	for (at = 0; at < len; at += PATTERN_UNIT) {
		memcpy(have, (const uint8_t *)mem + at, PATTERN_UNIT);
		if (memcmp(have, zeros, sizeof(zeros)) == 0) {
			if (at > 0 && first != 0)
				return "is torn: its beginning was written, but not its rest";
			continue;
		}
		if (have[0] != MAGIC)
			return "was not written by this program, or is damaged";
		if (have[3] != seed)
			return "was written with another --seed";
		if (have[1] != offset + at)
			return "is data of another offset";
		if (have[2] == 0 || (at > 0 && have[2] != first))
			return "is torn: it has parts of two writes";
		first = have[2];
		unit(want, have[1], have[2], have[3]);
		if (memcmp(have, want, sizeof(want)) != 0)
			return "is damaged";
	}
	*seq = first;
	return NULL;
}

bool
pattern_foreign(const void *mem, uint32_t len, uint64_t seed)
{
	uint64_t have[4];
	uint32_t at;

	for (at = 0; at < len; at += PATTERN_UNIT) {
		memcpy(have, (const uint8_t *)mem + at, sizeof(have));
		if (have[0] == MAGIC && have[3] == seed)
			return false;
	}
	return true;
}
