/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Stores of the guest to register pages. The device reads the register page of the UAR. So
 * front_doorbell() repeats the guest's store in that page, and then runs the QPs of the page.
 */
#include <string.h>

#include "front_priv.h"

#define ARM_REG 0x20  /* register that arms CQs */
#define BELLS   0x800 /* first doorbell register */
#define PAGE    0x1000
#define REG     256 /* bytes of a doorbell register */
/*
 * A page has doorbell registers from 0x800 to 0xfff. Linux uses the registers from 0xc00 on for
 * queues of its fast path (uar.c, map_offset()). The device reads only the registers below 0xc00.
 * So this file subtracts 0x400 from the offset of a store at 0xc00 or above.
 */
#define SECOND_HALF 0x400
#define DOORBELL    8

void
front_doorbell(struct front *f, uint32_t uar, uint32_t off, const void *data, uint32_t len)
{
	struct front_obj *o = front_obj_find(f, FRONT_UAR, uar);
	uint64_t head;
	uint8_t *reg;

	if (o == NULL || off % DOORBELL != 0 || len % DOORBELL != 0 || len == 0 || off >= PAGE)
		return;
	if (off < BELLS ? off != ARM_REG || len != DOORBELL : len > REG - off % REG)
		return;
	if (off >= BELLS && f->eth != NULL && f->eth_doorbell(f->eth, uar, data, len)) {
		f->busy_until = front_now() + FRONT_BUSY_NS;
		return;
	}
	if (off >= BELLS)
		off &= ~(uint32_t)SECOND_HALF;
	/*
	 * The device detects a doorbell by its first 8 bytes, so write these bytes last, with one
	 * store.
	 */
	reg = o->uar->base_addr + off;
	memcpy(reg + DOORBELL, (const uint8_t *)data + DOORBELL, len - DOORBELL);
	memcpy(&head, data, DOORBELL);
	__atomic_store_n((uint64_t *)(void *)reg, head, __ATOMIC_RELEASE);
	if (o->progress != NULL && !f->stopped)
		o->progress(o->progress_arg);
	f->busy_until = front_now() + FRONT_BUSY_NS;
}
