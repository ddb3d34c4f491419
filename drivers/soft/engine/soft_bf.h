/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * BlueFlame: software copies a WQE to a register of the UAR page, and a card executes the copy.
 * This device executes a copy only if it knows that the copy is complete. Otherwise it executes the
 * WQE in the ring. Software updates the doorbell record before it stores to the register, so the
 * ring has the WQE by then. The copy and the ring may differ: Linux's mlx5 driver requests a CQE in
 * the copy only, to detect whether write combining works
 * (drivers/net/ethernet/mellanox/mlx5/core/wc.c).
 *
 * A register has two halves, and a copy is stored to one of them. Software alternates between the
 * halves, as a card requires. Below, the first 8 bytes of a half are called its head. Software
 * stores a copy in ascending order, in stores of 8 to 64 bytes (enum bb_bf_copy), between two store
 * fences. The 8-byte words of a wide store may become visible in any order. So no rule below
 * depends on the order of the words of one copy.
 *
 * The device has two methods to find out that a copy is complete:
 * - With inline progress, on a page with one owner, the thread that stores is also the thread that
 *   reads. The device leaves the words after a head 0, so other values come from a copy. They
 *   belong to the current head only if the device has read every store to the half. So the page
 *   must have one QP, and the doorbell record must cover just this WQE.
 * - With progress on a thread or lcore, or on a page with several owners, software may store while
 *   the device reads. The device fills the words after a head with the value SOFT_BF_NONE. A copy
 *   of one block is complete when no word has this value. This method is valid only on CPUs that
 *   make stores visible in order (BB_STORES_IN_ORDER), and only in a clean half. If a WQE itself
 *   contains the value, the device executes the WQE in the ring, which is correct, too.
 *
 * A half is clean (SOFT_BF_CLEAN) if every word in it that is not SOFT_BF_NONE was stored by
 * software after the device filled the half. These rules follow from the alternation:
 * - If words 1 to 7 of a copy in a clean half are all visible, no store to the half is in flight.
 *   So the device can clean the half again.
 * - If the device reads a half, and a store to the other half arrives later, all earlier stores to
 *   the first half came before that store. So the device can clean the first half when it sees that
 *   store, unless software has stored to the first half again. But if the store to the other half
 *   was already visible when the device read the first half, it may be older (SOFT_BF_OLDER) and
 *   proves nothing.
 * - Between two stores to one half, software stores to the other half. The device uses a copy only
 *   if the head of the other half is 0 both before and after it reads the copy. So the copy has no
 *   words of a later store. If the head of the other half is not 0, the other half is no longer
 *   clean. The store there may be older, and the next store may arrive before the device looks at
 *   that half.
 * - The same rules apply to the first words of a copy of several blocks, but the device executes
 *   the WQE in the ring.
 * - With packets (wire=1, port= or shm=), and on CPUs that do not make stores visible in order, the
 *   device executes the WQE in the ring.
 */
#ifndef SOFT_BF_H
#define SOFT_BF_H

#include "soft_data.h"

/*
 * Value with which the device fills a half of a register, except its first 8 bytes, if another
 * thread stores to the half.
 */
#define SOFT_BF_NONE UINT64_C(0x9d3cf1b7e2a6580b)

#define SOFT_BF_WORDS (BB_WQE_BB / 8)

/*
 * Bits of soft_watch.bf, two for each half of a register. The page has two registers, so @half is 0
 * to 3. The rules at the top of this file use both bits.
 * - SOFT_BF_CLEAN: the half is clean, so the device can detect whether a copy in it is complete.
 * - SOFT_BF_OLDER: the device found a store in this half when it looked at the other half of the
 *   register. That store may be older than the one in the other half, so it does not show which WQE
 *   is next.
 */
#define SOFT_BF_CLEAN(half) (1u << (half))
#define SOFT_BF_OLDER(half) (0x10u << (half))
/*
 * Bit of soft_watch.bf: since the last soft_bf_reset(), the device has looked for a copy of a WQE
 * on this page while other threads could store to the page. So halves of its registers may contain
 * SOFT_BF_NONE or stale copies. soft_bf_reset() must clear them when the page has only one owner
 * again.
 */
#define SOFT_BF_SHARED 0x100u

/*
 * Clears the halves of all registers of a page (top of this file). Called when the page gets its
 * only QP or its only owner, so that the device does not execute a stale copy of a WQE.
 */
void soft_bf_reset(struct soft_watch *w);

/*
 * Reads the copy of a WQE in the half of a register whose first 8 bytes were @head, and clears the
 * half. Call it only if no thread can store to the half meanwhile. If the copy is complete and
 * differs from the WQE in the ring, stores the copy in the QP; the engine then executes the copy
 * instead of the WQE in the ring.
 */
void soft_bf_take(struct soft_watch *w, uint64_t *reg, uint64_t head);

/*
 * Reads the copy of a WQE in half @half of a register, whose first 8 bytes are @head, while
 * software may store to the half. Returns true and sets @copy if the copy is complete. The caller
 * must then call soft_bf_release().
 */
bool soft_bf_look(struct soft_watch *w, uint32_t half, uint64_t head, uint64_t copy[SOFT_BF_WORDS]);

/*
 * Executes the complete WQE of one block in @copy and returns true, if its QP is idle and the fast
 * path supports the WQE. Otherwise executes nothing and returns false; the engine executes the WQE
 * later. In that case the QP stores @copy if it differs from the ring.
 */
bool soft_bf_run(struct soft_engine *e, struct soft_watch *w, const uint64_t copy[SOFT_BF_WORDS]);

/*
 * Ends the use of a half that soft_bf_look() has read. @copied is the result of soft_bf_look(). If
 * @copied is true, fills the half with SOFT_BF_NONE again. If @copied is false, marks the half as
 * not clean (top of this file). Call it before the first 8 bytes of the half are set to 0.
 */
void soft_bf_release(struct soft_watch *w, uint32_t half, bool copied);

#endif
