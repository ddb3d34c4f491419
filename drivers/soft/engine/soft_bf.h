/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * BlueFlame: software copies a WQE to a register, and a card executes the copy. So does this
 * device, if it knows that the copy is complete; else it executes the WQE in the ring, which the
 * doorbell record covers before the register is stored to. Copy and ring may differ: Linux's
 * mlx5 driver asks for a CQE in the copy only, to find out whether write combining works
 * (drivers/net/ethernet/mellanox/mlx5/core/wc.c). Software stores a copy upwards, in stores of 8 to
 * 64 bytes (enum bb_bf_copy), between two store fences. A wide store may be seen in parts of 8
 * bytes, in any order: no rule below depends on the order of the words of a copy.
 *
 * When a copy is known to be complete:
 * - Inline progress, and the page has one owner: the thread that stores is the thread that looks.
 *   The words behind a head are 0 unless a copy put them there. They belong to the head if no
 *   other store to the half was missed, so the page has one QP and the record covers just this
 *   WQE.
 * - Else (progress on a thread or an lcore, a page with several owners) software stores while the
 *   device looks. On a CPU that shows stores in their order (BB_STORES_IN_ORDER), a copy of one
 *   block is complete once none of its words is SOFT_BF_NONE, the value that the device leaves
 *   there. Such a word is a copy's, if it ever is, to no harm: the ring is executed. A half is
 *   clean (SOFT_BF_CLEAN) if words that are not SOFT_BF_NONE are later than the device's.
 *   Stores to a register take its halves in turn, as a card asks, which gives the rest:
 *   - All words 1 to 7 of a copy in a clean half were seen: nothing is under way, and the half is
 *     made clean again.
 *   - A store to the other half that came behind a look at this one has all stores to this one
 *     before it. Seeing it makes this half clean, unless this half was stored to again. One that
 *     was there at the look may be the older one (SOFT_BF_OLDER): it proves nothing.
 *   - Two stores to a half have one to the other half between them. A copy counts only while the
 *     other head is 0, before and after the copy is read; so no later store is mixed into it. A
 *     look at a half that finds the other head not 0 takes the other's cleanness: the store
 *     there may be older, and the next one may come before it is looked at.
 *   The first words of a longer copy are held to the same rules, and the ring is executed.
 * - On a port, and where stores are not seen in order, the ring is executed.
 */
#ifndef SOFT_BF_H
#define SOFT_BF_H

#include "soft_data.h"

/* What a shared half holds where no copy was stored. */
#define SOFT_BF_NONE UINT64_C(0x9d3cf1b7e2a6580b)

#define SOFT_BF_WORDS (BB_WQE_BB / 8)

/* Bits of soft_watch.bf. */
#define SOFT_BF_CLEAN(half) (1u << (half))
#define SOFT_BF_OLDER(half) (0x10u << (half))
#define SOFT_BF_SHARED      0x100u /* SOFT_BF_NONE may stand in the page */

/* A page has one QP or one owner from now on: no old copy shall be taken for one of its. */
void soft_bf_forget(struct soft_watch *w);

/*
 * Takes the copy out of a half whose head was @head and to which no thread stores, and keeps it for
 * the QP if it is complete and differs from the ring.
 */
void soft_bf_take(struct soft_watch *w, uint64_t *reg, uint64_t head);

/*
 * Looks at half @half with @head, which software may be storing to. Returns true, and the copy in
 * @copy, if there is one that is complete. soft_bf_release() follows.
 */
bool soft_bf_look(struct soft_watch *w, uint32_t half, uint64_t head, uint64_t copy[SOFT_BF_WORDS]);

/* Executes a copy of one block. Otherwise keeps it for the QP if need be, and returns false. */
bool soft_bf_run(struct soft_engine *e, struct soft_watch *w, const uint64_t copy[SOFT_BF_WORDS]);

/* Before the head of a half is given back. @copied: as soft_bf_look() returned. */
void soft_bf_release(struct soft_watch *w, uint32_t half, bool copied);

#endif
