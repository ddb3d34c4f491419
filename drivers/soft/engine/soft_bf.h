/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * BlueFlame: software copies a WQE to a register, and a card executes the copy. This device
 * executes a copy only if it knows that the copy is complete. Otherwise it executes the WQE in the
 * ring. Software updates the doorbell record before it stores to the register, so the ring has the
 * WQE by then. Copy and ring may differ. Linux's mlx5 driver asks for a CQE in the copy only, to
 * detect whether write combining works (drivers/net/ethernet/mellanox/mlx5/core/wc.c).
 *
 * A register has two halves, and a copy goes to one of them. Software alternates between the
 * halves, as a card requires. The first 8 bytes of a half are its head. Software stores a copy in
 * ascending order, in stores of 8 to 64 bytes (enum bb_bf_copy), between two store fences. A wide
 * store may become visible in parts of 8 bytes, in any order. So no rule below depends on the order
 * of the words of one copy.
 *
 * The device knows in two ways that a copy is complete:
 * - With inline progress, on a page with one owner. The thread that stores also reads. The words
 *   after a head are 0 unless a copy wrote them. They belong to the head only if the device has
 *   read every store to the half. So the page must have one QP, and the doorbell record must cover
 *   just this WQE.
 * - Otherwise: with progress on a thread or lcore, or on a page with several owners. Software may
 *   store while the device reads. The device fills the words after a head with the value
 *   SOFT_BF_NONE. A copy of one block is complete when none of its words has this value. This is
 *   valid only on CPUs that make stores visible in order (BB_STORES_IN_ORDER), and in a clean half.
 *   A WQE that contains the value itself does no harm, because the device then executes the ring.
 *
 * A half is clean (SOFT_BF_CLEAN) if software wrote all its words that are not SOFT_BF_NONE after
 * the device filled it. These rules follow from the alternation:
 * - If words 1 to 7 of a copy in a clean half are all visible, no store to the half is in flight.
 *   The device cleans the half again.
 * - The device looks at a half, and later a store to the other half arrives. All earlier stores to
 *   the first half came before that store. So the device can clean the first half when it sees that
 *   store, unless software has stored to the first half again. A store to the other half that was
 *   visible at the look may be older (SOFT_BF_OLDER) and proves nothing.
 * - Between two stores to a half software stores to the other half. The device uses a copy only
 *   while the head of the other half is 0, before and after it reads the copy. So the copy has no
 *   words of a later store. If the device finds the other head not 0, the other half is no longer
 *   clean: the store there may be older, and the next one may arrive before the device looks at
 *   that half.
 * - The first words of a copy of several blocks follow the same rules, but the device executes the
 *   ring.
 * - On an Ethernet port (port=) the device executes the ring, and so it does on CPUs that do not
 *   make stores visible in order.
 */
#ifndef SOFT_BF_H
#define SOFT_BF_H

#include "soft_data.h"

/* Value with which the device fills the words after a head, for stores by other threads. */
#define SOFT_BF_NONE UINT64_C(0x9d3cf1b7e2a6580b)

#define SOFT_BF_WORDS (BB_WQE_BB / 8)

/* Bits of soft_watch.bf. */
#define SOFT_BF_CLEAN(half) (1u << (half))
#define SOFT_BF_OLDER(half) (0x10u << (half))
#define SOFT_BF_SHARED      0x100u /* the device has filled a half of the page with SOFT_BF_NONE */

/*
 * Clears all halves of a page. Called when the page gets its only QP or its only owner, so that the
 * device does not execute an old copy.
 */
void soft_bf_forget(struct soft_watch *w);

/*
 * Reads the copy in a half whose head was @head, and clears the half. Call it only while no thread
 * stores to the half. Retains the copy in the QP if it is complete and differs from the ring; the
 * engine then executes the copy instead of the ring.
 */
void soft_bf_take(struct soft_watch *w, uint64_t *reg, uint64_t head);

/*
 * Reads the copy in half @half, whose head is @head, while software may store to the half. Returns
 * true and sets @copy if the copy is complete. The caller then calls soft_bf_release().
 */
bool soft_bf_look(struct soft_watch *w, uint32_t half, uint64_t head, uint64_t copy[SOFT_BF_WORDS]);

/*
 * Executes the complete WQE of one block in @copy and returns true, if its QP is idle and the WQE
 * is a plain one. Otherwise executes nothing and returns false: the engine executes the WQE later.
 * The QP then retains @copy if it differs from the ring.
 */
bool soft_bf_run(struct soft_engine *e, struct soft_watch *w, const uint64_t copy[SOFT_BF_WORDS]);

/*
 * Fills a half with SOFT_BF_NONE again if @copied, the result of soft_bf_look(). Otherwise the half
 * is no longer clean. Call it before the head is set to 0.
 */
void soft_bf_release(struct soft_watch *w, uint32_t half, bool copied);

#endif
