/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Registers: stores of the guest to register pages.
 *
 * A program rings a doorbell with one store of 8 bytes. A BlueFlame copy of WQEs consists of
 * several stores, which a CPU may also combine. If the hypervisor traps the stores, each one
 * arrives here in a separate call. The device must see a copy as a whole, so the front collects its
 * stores.
 */
#include <string.h>

#include "front_priv.h"

#define ARM_REG  0x20  /* register that arms CQs */
#define BELLS    0x800 /* first doorbell register */
#define PAGE     0x1000
#define REG      256 /* bytes of a doorbell register */
#define WQE_BB   64
#define DOORBELL 8
/*
 * Time to wait for the next store of a BlueFlame copy, ns. After that only the copy's first 8
 * bytes, the doorbell, are used.
 */
#define COPY_NS 200000
/* After a doorbell front_poll() asks to be called without a pause for this long, ns. */
#define BUSY_NS 2000000

/* Stores bytes as a CPU does: the first 8 bytes last, as one store that the device may see. */
static void
store(struct front *f, struct front_obj *o, uint32_t off, const uint8_t *data, uint32_t len)
{
	uint8_t *reg = o->uar->base_addr + off;
	uint64_t head;

	if (len > DOORBELL)
		memcpy(reg + DOORBELL, data + DOORBELL, len - DOORBELL);
	memcpy(&head, data, DOORBELL);
	__atomic_store_n((uint64_t *)(void *)reg, head, __ATOMIC_RELEASE);
	if (o->progress != NULL)
		o->progress(o->progress_arg);
	f->busy_until = front_now() + BUSY_NS;
}

/* Returns the bytes of the WQE that begins with @data: the low 6 bits of dword 1 count segments. */
static uint32_t
wqe_bytes(const uint8_t *data)
{
	return (data[7] & 0x3fu) * 16;
}

bool
front_bell_flush(struct front *f, bool now)
{
	struct front_bell *b = &f->bell;
	struct front_obj *o = b->uar;
	uint32_t len = b->len;

	if (o == NULL)
		return false;
	if (!now && front_now() - b->since < COPY_NS)
		return true;
	b->uar = NULL;
	if (len % WQE_BB != 0 || len < wqe_bytes(b->data))
		len = DOORBELL;
	if (b->len >= DOORBELL)
		store(f, o, b->reg, b->data, len);
	return false;
}

/*
 * Adds a store of the guest to the copy that is being collected for the store's doorbell register.
 */
static void
ring(struct front *f, struct front_obj *o, uint32_t off, const uint8_t *data, uint32_t len)
{
	struct front_bell *b = &f->bell;
	uint32_t reg = off & ~(REG - 1u), at = off % REG;

	if (b->uar != NULL && (b->uar != o || b->reg != reg || b->len != at))
		(void)front_bell_flush(f, true);
	if (b->uar == NULL) {
		if (at != 0)
			/* the rest of a copy whose beginning was already passed to the device */
			return;
		b->uar = o;
		b->reg = reg;
		b->len = 0;
	}
	memcpy(b->data + b->len, data, len);
	b->len += len;
	b->since = front_now();
	if (b->len >= WQE_BB && b->len % WQE_BB == 0 && b->len >= wqe_bytes(b->data))
		(void)front_bell_flush(f, true);
}

void
front_doorbell(struct front *f, uint32_t uar, uint32_t off, const void *data, uint32_t len)
{
	struct front_obj *o = front_obj_find(f, FRONT_UAR, uar);

	if (o == NULL || len == 0 || off >= PAGE || len > PAGE - off)
		return;
	if (off >= BELLS) {
		if (len <= REG - off % REG)
			ring(f, o, off, data, len);
		return;
	}
	(void)front_bell_flush(f, true);
	if (off == ARM_REG && len == DOORBELL)
		store(f, o, off, data, len);
}
