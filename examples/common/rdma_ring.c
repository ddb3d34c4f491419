/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <assert.h>
#include <errno.h>

#include "rdma_ring.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "encode and decode shift bytes");

static bool
slots_valid(uint64_t slots)
{
	return slots >= RDMA_RING_MIN_SLOTS && slots <= RDMA_RING_MAX_SLOTS &&
	       (slots & (slots - 1)) == 0;
}

void
rdma_ring_format(void *mem, uint32_t slots)
{
	uint64_t *unit = (uint64_t *)mem;
	uint32_t i, k;

	for (i = 0; i < slots; i++)
		for (k = 0; k < RDMA_RING_UNITS; k++)
			unit[i * RDMA_RING_UNITS + k] = (uint16_t)(i - slots);
}

int
rdma_ring_tx_init(struct rdma_ring_tx *tx, struct bb_qp *qp, uint32_t max_inline,
		  const void *credit, const struct bb_region *slots)
{
	const uint32_t per_write = max_inline / RDMA_RING_SLOT;

	/* Checks the peer's values, although they are not used as indexes of local memory. */
	if (slots->len % RDMA_RING_SLOT != 0 || !slots_valid(slots->len / RDMA_RING_SLOT) ||
	    slots->addr % RDMA_RING_SLOT != 0 || (uintptr_t)credit % 8 != 0 || per_write == 0)
		return -EINVAL;
	memset(tx, 0, sizeof(*tx));
	tx->qp = qp;
	tx->credit = (const uint64_t *)credit;
	tx->raddr = slots->addr;
	tx->rkey = slots->rkey;
	tx->slots = (uint32_t)(slots->len / RDMA_RING_SLOT);
	tx->per_write = per_write < RDMA_RING_MAX_WRITE ? per_write : RDMA_RING_MAX_WRITE;
	tx->limit = tx->slots;
	rdma_ring_tx_plan(tx);
	return 0;
}

int
rdma_ring_rx_init(struct rdma_ring_rx *rx, struct bb_qp *qp, const void *mem, uint32_t slots,
		  const struct bb_region *credit)
{
	if (!slots_valid(slots) || (uintptr_t)mem % RDMA_RING_SLOT != 0 || credit->len < 8 ||
	    credit->addr % 8 != 0)
		return -EINVAL;
	memset(rx, 0, sizeof(*rx));
	rx->qp = qp;
	rx->mem = (const uint64_t *)mem;
	rx->slots = slots;
	rx->batch = slots / 4;
	rx->wrap_slots = slots;
	rx->raddr = credit->addr;
	rx->rkey = credit->rkey;
	return 0;
}

void
rdma_ring_tx_fail(struct rdma_ring_tx *tx, int error)
{
	if (tx->error == 0)
		tx->error = error;
	tx->stop = tx->head; /* makes the next push call rdma_ring_tx_wait(), which returns the
				error */
	/*
	 * After an error, pushed messages are never sent, so rdma_ring_tx_pending() must not report
	 * them.
	 */
	tx->posted = tx->rung = tx->head;
}

void
rdma_ring_rx_fail(struct rdma_ring_rx *rx, int error)
{
	/* The units differ, so each pop calls rdma_ring_rx_wait(), which returns the error. */
	static const uint64_t never_valid[RDMA_RING_UNITS] = {0, 1};

	if (rx->error == 0)
		rx->error = error;
	rx->mem = never_valid;
	rx->slots = 1;
}

int
rdma_ring_tx_wait(struct rdma_ring_tx *tx)
{
	uint64_t credit;
	int rc;

	if (tx->error == 0 && tx->head != tx->posted) {
		/* This post raises tx->stop if the credit allows more messages. */
		rc = rdma_ring_tx_post(tx);
		if (rc != 0)
			return rc;
	}
	if (tx->error != 0)
		return tx->error;
	if (tx->head != tx->stop)
		return 0;
	credit = __atomic_load_n(tx->credit, __ATOMIC_ACQUIRE);
	/*
	 * An error of the consumer: it has consumed more messages than were pushed, or its credit
	 * has decreased.
	 */
	if (credit > tx->head || credit + tx->slots < tx->limit) {
		rdma_ring_tx_fail(tx, -EPROTO);
		return -EPROTO;
	}
	tx->limit = credit + tx->slots;
	rdma_ring_tx_plan(tx);
	if (tx->head != tx->stop)
		return 0;
	tx->full++;
	return -EAGAIN;
}

int
rdma_ring_rx_wait(struct rdma_ring_rx *rx)
{
	const uint64_t *slot = rx->mem + (rx->tail & (rx->slots - 1)) * RDMA_RING_UNITS;
	uint16_t now = (uint16_t)rx->tail, before = (uint16_t)(rx->tail - rx->slots), tag;
	unsigned int i;

	if (rx->error != 0)
		return rx->error;
	for (i = 0; i < RDMA_RING_UNITS; i++) {
		tag = (uint16_t)__atomic_load_n(&slot[i], __ATOMIC_RELAXED);
		if (tag != now && tag != before) {
			rdma_ring_rx_fail(rx, -EPROTO);
			return -EPROTO;
		}
	}
	return 0;
}
