/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Atomics (IBTA vol. 1, 9.4.5) and masked ones (doc comments of bb_post.h, after the "extended
 * atomics" of the kernel's IB_WR_MASKED_*), computed bit by bit here.
 */
#include <string.h>

#include "diff.h"

bool
model_is_masked(uint32_t op)
{
	return op == OP_MASKED_CMP_SWAP || op == OP_MASKED_FETCH_ADD;
}

bool
model_is_atomic(uint32_t op)
{
	return op == OP_CMP_SWAP || op == OP_FETCH_ADD || model_is_masked(op);
}

bool
model_is_cmp_swap(uint32_t op)
{
	return op == OP_CMP_SWAP || op == OP_MASKED_CMP_SWAP;
}

/* Arguments have 32 bits: derives the other half. */
uint64_t
model_wide(uint32_t v)
{
	return v | (uint64_t)(v * 0x9e3779b1u) << 32;
}

uint64_t
model_wide_mask(uint32_t v)
{
	return v | (uint64_t)(v >> 16) << 32;
}

static uint64_t
swapped(const struct m_wqe *w, uint64_t old)
{
	uint64_t new = old;

	for (uint32_t i = 0; i < w->len * 8; i++) {
		uint64_t bit = UINT64_C(1) << i;

		if ((w->y_mask & bit) != 0)
			new = (new & ~bit) | (w->y & bit);
	}
	/* All bits in the mask must be equal. */
	for (uint32_t i = 0; i < w->len * 8; i++)
		if ((w->x_mask >> i & 1) != 0 && (old >> i & 1) != (w->x >> i & 1))
			return old;
	return new;
}

/* A ripple-carry adder whose carry stops after each boundary. */
static uint64_t
added(const struct m_wqe *w, uint64_t old)
{
	uint64_t new = 0, carry = 0;

	for (uint32_t i = 0; i < w->len * 8; i++) {
		uint64_t sum = (old >> i & 1) + (w->x >> i & 1) + carry;

		new |= (sum & 1) << i;
		carry = (w->x_mask >> i & 1) != 0 ? 0 : sum >> 1;
	}
	return new;
}

void
model_atomic(const struct model *m, const struct m_wqe *w, uint8_t *at, uint8_t result[8])
{
	uint64_t old = 0, new;

	memcpy(&old, at, w->len);
	new = model_is_cmp_swap(w->op) ? swapped(w, old) : added(w, old);
	memcpy(at, &new, w->len);
	memcpy(result, &old, sizeof(old));
	if (!model_is_masked(w->op) || (m->world->masked_be & w->len) == 0)
		return;
	for (uint32_t i = 0; i < w->len; i++)
		result[i] = (uint8_t)(old >> (8 * (w->len - 1 - i)));
}
