/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * BlueFlame: software copies a WQE to a register, and a card executes the copy.
 *
 * Where the one owner of the page runs the device (inline progress), no copy can be half
 * done. The ring is executed, and the copy is held against it: a difference refuses the WQE
 * with LOCAL_QP_OP. That is decided only when the copy can come from no merge of two
 * stores: the page has one QP and the record covers just this WQE.
 *
 * Else software stores while the device looks. On a CPU that shows stores in their order
 * (BB_STORES_IN_ORDER), a copy of one block that is whole is executed, and neither the record nor
 * the ring is read: their lines stay with the core that posts. What makes sure of that:
 * - Of a block the head, the first 8 bytes, is stored last (bb_sq_blueflame()), which a card does
 * not ask for [A]: who sees the head can see all of the copy.
 * - Stores to a register take its halves in turn, as a card asks. A look at a half ends with
 *   its head given back and then a look at the other head. If that is 0 the register is in
 *   step (SOFT_BF_STEP): all stores to it were seen, but for what is being stored. In step,
 *   while the other head is 0, the store that follows has not ended, and the one behind that,
 *   into this half again, has not begun: what is read here meanwhile is not overwritten.
 * - A plain doorbell of 8 bytes leaves what was behind them, so a half has to be clean
 *   (SOFT_BF_CLEAN) for what is found in it to be a copy. Before a head is given back, the
 *   half is cleared; in step, with the other head 0 behind it, that has hit no new copy.
 * Whatever is not sure goes by the record and the ring, which is always right.
 */
#ifndef SOFT_BF_H
#define SOFT_BF_H

#include "soft_data.h"

/* Bits of soft_watch.bf. */
#define SOFT_BF_CLEAN(half) (1u << (half))
#define SOFT_BF_STEP(half)  (0x10u << (half) / 2)

/* The words of half @half, 0 to 3, of the two registers of a page. */
static inline uint64_t *
soft_bf_half(const struct soft_uar_page *uar, uint32_t half)
{
	return (uint64_t *)(void *)(uar->base + SOFT_BF_OFFSET + half * SOFT_BF_HALF);
}

/* A page has one QP from now on: no old copy shall be taken for one of its. */
void soft_bf_forget(struct soft_watch *w);

/*
 * Take the copy, if there is one, out of a half whose head was @head and which nobody stores
 * to, so that the next plain doorbell does not look like one; hold it against the ring
 * where that proves something.
 */
void soft_bf_check(struct soft_engine *e, struct soft_watch *w, uint64_t *reg, uint64_t head);

/* Execute the copy in half @half behind @head. False: it is for the ring. */
bool soft_bf_run(struct soft_engine *e, struct soft_watch *w, uint32_t half, uint64_t head);

/* A half was looked at that may be stored to meanwhile: before its head is given back. */
static inline void
soft_bf_clear(const struct soft_watch *w, uint32_t half)
{
	uint64_t *reg = soft_bf_half(w->uar, half);
	uint32_t i;

	/* Where no copy is executed none has to be told from an old one. */
	if (!BB_STORES_IN_ORDER || !w->uar->bf)
		return;
	for (i = 1; i < BB_WQE_BB / 8; i++)
		__atomic_store_n(&reg[i], 0, __ATOMIC_RELAXED);
}

/* Behind it. @given: no doorbell came through this half meanwhile. */
static inline void
soft_bf_cleared(struct soft_watch *w, uint32_t half, bool given)
{
	const uint32_t was = w->bf, step = SOFT_BF_STEP(half), clean = SOFT_BF_CLEAN(half);

	w->bf &= ~(step | clean);
	if (given && __atomic_load_n(soft_bf_half(w->uar, half ^ 1), __ATOMIC_RELAXED) == 0)
		w->bf |= step | ((was & step) != 0 ? clean : 0);
}

#endif
