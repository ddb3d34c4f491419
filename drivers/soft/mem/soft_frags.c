/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Slices of a payload that consists of fragments, such as the slice for a single packet. */
#include "soft_access.h"

/* The rest of a slice. */
struct slice {
	const struct soft_frag *p;
	uint32_t n; /* number of fragments from p on */
	uint64_t off, len;
};

/* Returns the next part of a slice, or a part without bytes at its end. */
static inline struct soft_frag
next_part(struct slice *s)
{
	struct soft_frag part = {NULL, 0};

	for (; s->n != 0 && s->off >= s->p->len; s->p++, s->n--)
		s->off -= s->p->len;
	if (s->n != 0 && s->len != 0) {
		part.p = s->p->p + s->off;
		part.len = RTE_MIN(s->p->len - s->off, s->len);
		s->off += part.len;
		s->len -= part.len;
	}
	return part;
}

uint32_t
soft_frags_part(const struct soft_frag *p, uint32_t n, uint64_t off, uint64_t len,
		struct soft_frag *to, uint32_t max)
{
	struct slice s = {p, n, off, len};
	struct soft_frag part;
	uint32_t count;

	for (count = 0; (part = next_part(&s)).len != 0; count++) {
		if (count == max)
			return max + 1;
		to[count] = part;
	}
	return count;
}

void
soft_frags_copy_out(uint8_t *dst, const struct soft_frag *p, uint32_t n, uint64_t off, uint64_t len)
{
	struct slice s = {p, n, off, len};
	struct soft_frag part;

	for (; (part = next_part(&s)).len != 0; dst += part.len)
		memcpy(dst, part.p, part.len);
}

void
soft_frags_copy_in(struct soft_engine *e, const struct soft_frag *p, uint32_t n, uint64_t off,
		   const uint8_t *src, uint64_t len)
{
	struct slice s = {p, n, off, len};
	struct soft_frag part;

	for (; (part = next_part(&s)).len != 0; src += part.len)
		soft_mem_copy(e, part.p, src, part.len);
}
