/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <assert.h>
#include <string.h>

#include <rte_branch_prediction.h>

#include "soft_shm_ring.h"

static_assert(sizeof(struct soft_ring_rec) == 16, "a record's header");

void
soft_ring_tx_init(struct soft_ring_tx *r, uint8_t *data, const uint64_t *head)
{
	*r = (struct soft_ring_tx){.data = data, .head = head};
}

void
soft_ring_rx_init(struct soft_ring_rx *r, const uint8_t *data, uint64_t *head_out)
{
	r->head_out = head_out;
	r->next = 0;
	r->broken = false;
	/*
	 * A thread without the lock may call soft_ring_waiting() for this ring at the same time, so
	 * the stores are atomic. Release: a thread that reads the address also sees the ring's
	 * memory there.
	 */
	__atomic_store_n(&r->head, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&r->data, data, __ATOMIC_RELEASE);
}

/*
 * Returns true if @bytes are free. Reads the consumer's head only if the cached head shows too
 * little room.
 */
static inline bool
room_for(struct soft_ring_tx *r, uint32_t bytes)
{
	if (likely(bytes <= SOFT_RING_SIZE - (r->tail - r->last_head)))
		return true;
	/* Acquire: the consumer's reads come before the producer overwrites the bytes. */
	r->last_head = __atomic_load_n(r->head, __ATOMIC_ACQUIRE);
	/* Rejects a head after the tail, and a head more than one ring before the tail. */
	if (unlikely(r->tail - r->last_head > SOFT_RING_SIZE)) {
		r->broken = true;
		return false;
	}
	return bytes <= SOFT_RING_SIZE - (r->tail - r->last_head);
}

void
soft_ring_publish_slow(struct soft_ring_tx *r, struct soft_ring_rec *rec, uint32_t size,
		       uint32_t len)
{
	uint32_t i;

	r->tail += size;
	/* The first of these lines may have bytes of an older packet, so it is cleared first. */
	soft_ring_clear(r, r->tail);
	__atomic_store_n(&rec->len, len, __ATOMIC_RELEASE);
	for (i = 1; i < SOFT_RING_AHEAD; i++)
		soft_ring_clear(r, r->tail + i * SOFT_RING_ALIGN);
}

struct soft_ring_rec *
soft_ring_reserve_slow(struct soft_ring_tx *r, uint32_t len)
{
	uint32_t size = soft_ring_size(len);
	uint32_t to_end = soft_ring_to_end(r->tail);
	uint32_t skip = size > to_end ? to_end : 0;

	/* The room includes the lines that soft_ring_publish() clears. */
	if (unlikely(r->broken || len > SOFT_RING_MAX) ||
	    !room_for(r, skip + size + SOFT_RING_AHEAD * SOFT_RING_ALIGN))
		return NULL;
	if (unlikely(skip != 0))
		soft_ring_publish_slow(r, soft_ring_at(r->data, r->tail), skip, SOFT_RING_WRAP);
	return soft_ring_at(r->data, r->tail);
}

const uint8_t *
soft_ring_peek_slow(struct soft_ring_rx *r, struct soft_ring_rec *rec)
{
	const struct soft_ring_rec *at = soft_ring_seen(r->data, r->head);
	uint32_t to_end = soft_ring_to_end(r->head), len;

	if (unlikely(r->broken))
		return NULL;
	/* Acquire: the producer wrote the packet before its length. */
	len = __atomic_load_n(&at->len, __ATOMIC_ACQUIRE);
	if (unlikely(len == SOFT_RING_WRAP)) {
		/* A wrap record at the ring's start would make the consumer wrap for ever. */
		if (to_end == SOFT_RING_SIZE) {
			r->broken = true;
			return NULL;
		}
		__atomic_store_n(&r->head, r->head + to_end, __ATOMIC_RELAXED);
		to_end = SOFT_RING_SIZE;
		at = soft_ring_seen(r->data, r->head);
		len = __atomic_load_n(&at->len, __ATOMIC_ACQUIRE);
	}
	if (len == 0)
		return NULL;
	if (unlikely(len > SOFT_RING_MAX || soft_ring_size(len) > to_end)) {
		r->broken = true;
		return NULL;
	}
	memcpy(rec, at, sizeof(*rec));
	/* Stores the checked length, because the producer may have changed it before the copy. */
	rec->len = len;
	r->next = soft_ring_size(len);
	return (const uint8_t *)(at + 1);
}
