/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* The entry point of libFuzzer; replay.c calls it for each file of a corpus. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Aborts unless @ok, a property that must hold for any input. */
static inline void
fuzz_check(bool ok)
{
	if (!ok)
		abort();
}

/* The same, and prints @what. */
static inline void
check(bool ok, const char *what)
{
	if (!ok) {
		fprintf(stderr, "%s\n", what);
		abort();
	}
}

/* Returns whether the bytes still have the value FUZZ_FILL. */
#define FUZZ_FILL 0x5a
static inline bool
fuzz_untouched(const void *v, size_t len)
{
	const uint8_t *p = v;

	for (size_t i = 0; i < len; i++)
		if (p[i] != FUZZ_FILL)
			return false;
	return true;
}

/* The rest of an input. After its end zeros are read. */
struct fuzz_in {
	const uint8_t *p;
	size_t left;
};

static inline uint8_t
fuzz_u8(struct fuzz_in *in)
{
	if (in->left == 0)
		return 0;
	in->left--;
	return *in->p++;
}

/* Numbers of an input are big endian. */
static inline uint16_t
fuzz_u16(struct fuzz_in *in)
{
	uint16_t hi = fuzz_u8(in);

	return (uint16_t)(hi << 8 | fuzz_u8(in));
}

static inline uint32_t
fuzz_u32(struct fuzz_in *in)
{
	uint32_t hi = fuzz_u16(in);

	return hi << 16 | fuzz_u16(in);
}

static inline uint64_t
fuzz_u64(struct fuzz_in *in)
{
	uint64_t hi = fuzz_u32(in);

	return hi << 32 | fuzz_u32(in);
}

#endif
