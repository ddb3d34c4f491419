/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * List of the QPs that rang a doorbell register, for devices whose registers are memory.
 *
 * A card receives every store to a register. A device that polls a register as memory sees only the
 * last store, so earlier stores of other QPs are lost. So the thread that owns such a register also
 * adds the QP of each store to this list. A register of a card has no list.
 *
 * The list is a hint. It may have entries of QPs that rang no doorbell. It lacks the QPs of
 * software that does not know the list. The doorbell records say what the device executes, and the
 * register says when. If the owner adds more than BB_RUNG_SIZE entries between two reads, the
 * oldest entries are lost.
 */
#ifndef BB_RUNG_H
#define BB_RUNG_H

#include <stdint.h>

#define BB_RUNG_SIZE 1024u

/* Written by the thread that owns the doorbell register, read by the device. */
struct bb_rung {
	/* number of entries added since the list was created; wraps; accessed with __atomic */
	uint32_t n;
	uint8_t pad[60];
	/* QP number << 8, big endian, as in a control segment; entry i is at i % BB_RUNG_SIZE */
	uint32_t qpn[BB_RUNG_SIZE];
};

/*
 * Adds a QP to the list. Call it before the store to the doorbell register. @qpn has the form of
 * the entries of bb_rung.qpn.
 */
static inline void
bb_rung_add(struct bb_rung *r, uint32_t qpn)
{
	const uint32_t n = r->n;

	__atomic_store_n(&r->qpn[n % BB_RUNG_SIZE], qpn, __ATOMIC_RELAXED);
	__atomic_store_n(&r->n, n + 1, __ATOMIC_RELEASE);
}

#endif
