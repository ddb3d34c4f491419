/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Reads and writes big-endian integers at any address. */
#ifndef BB_BYTES_H
#define BB_BYTES_H

#include <stdint.h>
#include <string.h>

#include "bb_wqe.h"

static inline uint16_t
bb_get16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return bb_be16(v);
}

static inline uint32_t
bb_get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return bb_be32(v);
}

static inline uint64_t
bb_get64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return bb_be64(v);
}

static inline void
bb_put16(uint8_t *p, uint16_t v)
{
	v = bb_be16(v);
	memcpy(p, &v, sizeof(v));
}

static inline void
bb_put32(uint8_t *p, uint32_t v)
{
	v = bb_be32(v);
	memcpy(p, &v, sizeof(v));
}

static inline void
bb_put64(uint8_t *p, uint64_t v)
{
	v = bb_be64(v);
	memcpy(p, &v, sizeof(v));
}

#endif
