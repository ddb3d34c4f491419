/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Slices of a payload that consists of fragments, such as the slice for a single packet. */
#include "soft_access.h"

uint32_t
soft_frags_part(const struct soft_frag *p, uint32_t n, uint64_t off, uint64_t len,
		struct soft_frag *to, uint32_t max)
{
	uint32_t i, count = 0;

	for (i = 0; i < n && len != 0; i++) {
		uint64_t bytes;

		if (off >= p[i].len) {
			off -= p[i].len;
			continue;
		}
		if (count == max)
			return max + 1;
		bytes = RTE_MIN(p[i].len - off, len);
		to[count].p = p[i].p + off;
		to[count++].len = bytes;
		len -= bytes;
		off = 0;
	}
	return count;
}

void
soft_frags_copy_out(uint8_t *dst, const struct soft_frag *p, uint32_t n, uint64_t off, uint64_t len)
{
	for (; n != 0 && len != 0; p++, n--) {
		uint64_t bytes;

		if (off >= p->len) {
			off -= p->len;
			continue;
		}
		bytes = RTE_MIN(p->len - off, len);
		memcpy(dst, p->p + off, bytes);
		dst += bytes;
		len -= bytes;
		off = 0;
	}
}

void
soft_frags_copy_in(struct soft_engine *e, const struct soft_frag *p, uint32_t n, uint64_t off,
		   const uint8_t *src, uint64_t len)
{
	for (; n != 0 && len != 0; p++, n--) {
		uint64_t bytes;

		if (off >= p->len) {
			off -= p->len;
			continue;
		}
		bytes = RTE_MIN(p->len - off, len);
		soft_mem_copy(e, p->p + off, src, bytes);
		src += bytes;
		len -= bytes;
		off = 0;
	}
}
