/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * BlueFlame: software copies a WQE to a register, and a card executes the copy. This device
 * executes the copy only if the copy is known to be complete. Otherwise it executes the WQE in the
 * ring, which the doorbell record covers before the register is stored to. Copy and ring may
 * differ: Linux's mlx5 driver asks for a CQE in the copy only, to detect whether write combining
 * works (drivers/net/ethernet/mellanox/mlx5/core/wc.c). Software stores a copy upwards, in stores
 * of 8 to 64 bytes (enum bb_bf_copy), between two store fences. A wide store may become visible in
 * parts of 8 bytes, in any order. No rule below depends on the order of a copy's words.
 *
 * A copy is known to be complete in these cases:
 * - Inline progress, and the page has one owner: the thread that stores also reads. The words
 *   after a head are 0 unless a copy wrote them. They belong to the head if no other store to the
 *   half was missed. So the page must have one QP, and the record must cover just this WQE.
 * - Otherwise (progress on a thread or lcore, or a page with several owners) software stores
 *   while the device reads. The device leaves the value SOFT_BF_NONE there. If the CPU makes stores
 * visible in order (BB_STORES_IN_ORDER), a copy of one block without this value is complete. If a
 * copy contains the value itself, no harm is done: the ring is executed. A half is clean
 * (SOFT_BF_CLEAN) if all its words other than SOFT_BF_NONE are newer than the device's. Stores to a
 * register alternate between its halves, as a card requires. From this follow these rules:
 * - If words 1 to 7 of a copy in a clean half are all visible, no store to the half is in flight.
 *   The device cleans the half again.
 * - A store to the other half that arrives after a look at this half comes after all stores to
 *   this half. Seeing it makes this half clean, unless this half was stored to again. A store that
 *   was there at the look may be the older one (SOFT_BF_OLDER) and proves nothing.
 * - Between two stores to a half there is one to the other half. A copy counts only while the
 *   other head is 0, both before and after the copy is read. So no later store is mixed into it. A
 *   look at a half that finds the other head not 0 makes the other half unclean: the store there
 *   may be older, and the next one may arrive before the device looks at it.
 * - The first words of a longer copy follow the same rules, and the ring is executed.
 * - On a port, and on CPUs that do not make stores visible in order, the ring is executed.
 */
#ifndef SOFT_BF_H
#define SOFT_BF_H

#include "soft_data.h"

/* Value that the device leaves in a shared half where no copy was stored. */
#define SOFT_BF_NONE UINT64_C(0x9d3cf1b7e2a6580b)

#define SOFT_BF_WORDS (BB_WQE_BB / 8)

/* Bits of soft_watch.bf. */
#define SOFT_BF_CLEAN(half) (1u << (half))
#define SOFT_BF_OLDER(half) (0x10u << (half))
#define SOFT_BF_SHARED      0x100u /* words of the page may be SOFT_BF_NONE */

/*
 * Drops old copies, because the page has one QP or one owner from now on. No old copy may be taken
 * for a new one.
 */
void soft_bf_forget(struct soft_watch *w);

/*
 * Takes the copy out of a half whose head was @head, while no thread stores to it. Keeps the copy
 * for the QP if it is complete and differs from the ring.
 */
void soft_bf_take(struct soft_watch *w, uint64_t *reg, uint64_t head);

/*
 * Reads half @half with @head while software may store to it. Returns true and the copy in @copy if
 * it is complete. The caller then calls soft_bf_release().
 */
bool soft_bf_look(struct soft_watch *w, uint32_t half, uint64_t head, uint64_t copy[SOFT_BF_WORDS]);

/*
 * Executes a copy of one block and returns true. Otherwise keeps the copy for the QP if needed and
 * returns false.
 */
bool soft_bf_run(struct soft_engine *e, struct soft_watch *w, const uint64_t copy[SOFT_BF_WORDS]);

/*
 * Restores the half before its head is given back to software. @copied: result of soft_bf_look().
 */
void soft_bf_release(struct soft_watch *w, uint32_t half, bool copied);

#endif
