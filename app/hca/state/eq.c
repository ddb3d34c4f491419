/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Event queues. The owner bit of a new entry changes with each pass over the queue. By this bit the
 * guest detects a new entry (Linux eq.c, next_eqe_sw()). An armed queue with an unconsumed entry
 * raises its MSI-X vector once.
 */
#include <stdlib.h>
#include <string.h>

#include "bb_prm_hca.h"
#include "hca.h"
#include "hca_log.h"

#define OWNER_BYTE 63 /* index in an entry of the byte with the owner bit */
#define CI_MASK    0xffffffu

static void
fire(struct hca *h, uint32_t eqn)
{
	struct hca_eq *eq = &h->eqs[eqn];

	if (!eq->armed || eq->pi == eq->ci)
		return;
	eq->armed = false;
	hca_count(&h->stats.interrupts);
	if (!vfu_irq(&h->vfu, eq->vector))
		HCA_LOG(INFO, "EQ %u: no interrupt: the guest has masked vector %u", eqn,
			eq->vector);
}

void
hca_eq_post(struct hca *h, uint32_t eqn, uint8_t type, uint8_t sub, const void *data,
	    unsigned int len)
{
	uint32_t index, size;
	struct hca_eq *eq;
	uint64_t off;
	uint8_t *e;

	/* The guest chooses the EQ number of a CQ. */
	if (eqn >= HCA_EQS || !h->eqs[eqn].used || h->health != HCA_HEALTH_OK)
		return;
	eq = &h->eqs[eqn];
	size = 1u << eq->log_size;
	if (eq->pi - eq->ci >= size) {
		HCA_LOG(ERR, "EQ %u: overrun: the guest has not consumed any of its %u entries",
			eqn, size);
		hca_fatal(h, HCA_HEALTH_EQ_OVERRUN);
		return;
	}
	index = eq->pi & (size - 1);
	off = (uint64_t)index * BB_PRM_SZ_EQE;
	e = guest_at(&h->guest,
		     eq->pages[off >> eq->log_page] + (off & ((UINT64_C(1) << eq->log_page) - 1)),
		     BB_PRM_SZ_EQE, true);
	if (e == NULL) {
		HCA_LOG(ERR, "EQ %u: cannot write entry %u: it is not in the guest's RAM", eqn,
			index);
		hca_fatal(h, HCA_HEALTH_EQ);
		return;
	}
	memset(e, 0, OWNER_BYTE);
	bb_prm_set(e, BB_PRM_EQE_EVENT_TYPE, type);
	bb_prm_set(e, BB_PRM_EQE_EVENT_SUB_TYPE, sub);
	memcpy(bb_prm_sub(e, BB_PRM_EQE_EVENT_DATA), data, len > 28 ? 28 : len);
	__atomic_store_n(&e[OWNER_BYTE], (uint8_t)(eq->pi >> eq->log_size & 1), __ATOMIC_RELEASE);
	eq->pi++;
	hca_count(&h->stats.events);
	fire(h, eqn);
}

uint32_t
hca_event_eq(const struct hca *h, uint8_t type)
{
	uint32_t i;

	for (i = 1; i < HCA_EQS; i++)
		if (h->eqs[i].used && h->eqs[i].mask[type / 64] >> (type % 64) & 1)
			return i;
	return 0;
}

void
hca_event(struct hca *h, uint8_t type, uint8_t sub, const void *data, unsigned int len)
{
	uint32_t eqn = hca_event_eq(h, type);

	if (eqn != 0)
		hca_eq_post(h, eqn, type, sub, data, len);
}

bool
hca_event_room(const struct hca *h, uint8_t type)
{
	const struct hca_eq *eq = &h->eqs[hca_event_eq(h, type)];

	return !eq->used || eq->pi - eq->ci < 1u << eq->log_size;
}

void
hca_eq_doorbell(struct hca *h, uint32_t uar, uint32_t value, bool arm)
{
	uint32_t eqn = value >> 24, delta;
	struct hca_eq *eq;

	if (eqn >= HCA_EQS || !h->eqs[eqn].used || h->eqs[eqn].uar != uar) {
		HCA_LOG(WARNING,
			"ignored a doorbell of EQ %u on register page 0x%x: this page has no such EQ",
			eqn, uar);
		return;
	}
	eq = &h->eqs[eqn];
	delta = (value - eq->ci) & CI_MASK;
	if (delta > eq->pi - eq->ci) {
		HCA_LOG(WARNING,
			"EQ %u: ignored consumer index 0x%06x, beyond the producer's 0x%06x", eqn,
			value & CI_MASK, eq->pi & CI_MASK);
		return;
	}
	eq->ci += delta;
	eq->armed |= arm;
	fire(h, eqn);
}

void
hca_eq_free(struct hca_eq *eq)
{
	free(eq->pages);
	*eq = (struct hca_eq){0};
}
