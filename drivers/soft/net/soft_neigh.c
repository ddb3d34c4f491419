/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <errno.h>
#include <string.h>

#include <rte_common.h>

#include "soft_neigh.h"

static uint32_t
bucket_of(const uint8_t ip[16])
{
	uint32_t w[4];

	memcpy(w, ip, sizeof(w));
	/*
	 * Addresses of one network differ in the last word. The multiplier (2^32 / golden ratio)
	 * spreads them over the buckets.
	 */
	return ((w[0] ^ w[1] ^ w[2] ^ w[3]) * UINT32_C(2654435769)) >> 16 &
	       (SOFT_NEIGH_BUCKETS - 1);
}

static uint16_t
lookup(const struct soft_neigh *t, const uint8_t ip[16])
{
	uint16_t i;

	for (i = t->bucket[bucket_of(ip)]; i != SOFT_NEIGH_NONE; i = t->entry[i].next)
		if (memcmp(t->entry[i].ip, ip, 16) == 0)
			break;
	return i;
}

/* Moves an entry of the neighbour table to @state; the state times out at @deadline. */
static void
enter(struct soft_neigh *t, struct soft_neigh_entry *e, enum soft_neigh_state state,
      uint64_t deadline)
{
	t->asking -= e->state == SOFT_NEIGH_INCOMPLETE;
	t->asking += state == SOFT_NEIGH_INCOMPLETE;
	t->gen++;
	e->state = (uint8_t)state;
	e->deadline = deadline;
	t->next_deadline = RTE_MIN(t->next_deadline, deadline);
}

static void
drop(struct soft_neigh *t, uint16_t idx)
{
	struct soft_neigh_entry *e = &t->entry[idx];
	uint16_t *link = &t->bucket[bucket_of(e->ip)];

	while (*link != idx)
		link = &t->entry[*link].next;
	*link = e->next;
	enter(t, e, SOFT_NEIGH_FREE, SOFT_NEIGH_NEVER);
	e->next = t->free;
	t->free = idx;
	t->count--;
}

/*
 * Evicts the entry whose last lookup is oldest. Never evicts static entries. Never evicts
 * resolutions in progress, because a flood of requests would end them. Returns false if no entry
 * can be evicted.
 */
static bool
evict(struct soft_neigh *t)
{
	uint16_t i, oldest = SOFT_NEIGH_NONE;

	for (i = 0; i < SOFT_NEIGH_MAX; i++) {
		const struct soft_neigh_entry *e = &t->entry[i];

		if (e->state == SOFT_NEIGH_FREE || e->state == SOFT_NEIGH_STATIC ||
		    e->state == SOFT_NEIGH_INCOMPLETE)
			continue;
		if (oldest == SOFT_NEIGH_NONE || e->used < t->entry[oldest].used)
			oldest = i;
	}
	if (oldest == SOFT_NEIGH_NONE)
		return false;
	drop(t, oldest);
	t->stats.evicted++;
	return true;
}

static uint16_t
insert(struct soft_neigh *t, const uint8_t ip[16], uint64_t now)
{
	uint32_t b = bucket_of(ip);
	struct soft_neigh_entry *e;
	uint16_t idx;

	if (t->free == SOFT_NEIGH_NONE && !evict(t)) {
		t->stats.full++;
		return SOFT_NEIGH_NONE;
	}
	idx = t->free;
	e = &t->entry[idx];
	t->free = e->next;
	*e = (struct soft_neigh_entry){.next = t->bucket[b], .used = now};
	memcpy(e->ip, ip, 16);
	t->bucket[b] = idx;
	t->count++;
	return idx;
}

static void
ask(struct soft_neigh *t, struct soft_neigh_entry *e, enum soft_neigh_state state, uint64_t now)
{
	if (!e->unsent)
		e->next_try = now + SOFT_NEIGH_RETRY_NS;
	e->unsent = !t->ask(t->arg, e->ip, state == SOFT_NEIGH_PROBE ? e->mac : NULL);
	t->stats.asked += !e->unsent;
	/*
	 * A full port has room again within moments, so the retry is early. Waiting a full retry
	 * interval of one second would cost connections.
	 */
	if (e->unsent && now + SOFT_NEIGH_FULL_NS < e->next_try) {
		enter(t, e, state, now + SOFT_NEIGH_FULL_NS);
		return;
	}
	e->unsent = false;
	e->tries++;
	enter(t, e, state, e->next_try);
}

void
soft_neigh_init(struct soft_neigh *t, soft_neigh_ask_t ask_fn, void *arg)
{
	uint16_t i;

	memset(t, 0, sizeof(*t));
	for (i = 0; i < SOFT_NEIGH_MAX; i++)
		t->entry[i].next = i + 1u < SOFT_NEIGH_MAX ? (uint16_t)(i + 1) : SOFT_NEIGH_NONE;
	memset(t->bucket, 0xff, sizeof(t->bucket));
	t->next_deadline = SOFT_NEIGH_NEVER;
	t->ask = ask_fn;
	t->arg = arg;
}

int
soft_neigh_add_static(struct soft_neigh *t, const uint8_t ip[16], const uint8_t mac[6])
{
	uint16_t idx = lookup(t, ip);

	if (idx == SOFT_NEIGH_NONE)
		idx = insert(t, ip, 0);
	if (idx == SOFT_NEIGH_NONE)
		return -ENOSPC;
	memcpy(t->entry[idx].mac, mac, 6);
	enter(t, &t->entry[idx], SOFT_NEIGH_STATIC, SOFT_NEIGH_NEVER);
	return 0;
}

enum soft_neigh_result
soft_neigh_find(struct soft_neigh *t, const uint8_t ip[16], uint64_t now, uint16_t *hint,
		uint8_t mac[6])
{
	uint16_t idx = hint != NULL ? *hint : SOFT_NEIGH_NONE;
	struct soft_neigh_entry *e;

	if (idx >= SOFT_NEIGH_MAX || t->entry[idx].state == SOFT_NEIGH_FREE ||
	    memcmp(t->entry[idx].ip, ip, 16) != 0)
		idx = lookup(t, ip);
	if (idx == SOFT_NEIGH_NONE) {
		if (t->asking >= SOFT_NEIGH_ASKING) {
			t->stats.full++;
			return SOFT_NEIGH_BUSY;
		}
		idx = insert(t, ip, now);
		if (idx == SOFT_NEIGH_NONE)
			return SOFT_NEIGH_BUSY;
		ask(t, &t->entry[idx], SOFT_NEIGH_INCOMPLETE, now);
	}
	if (hint != NULL)
		*hint = idx;
	e = &t->entry[idx];
	e->used = now;
	switch (e->state) {
	case SOFT_NEIGH_INCOMPLETE:
		return SOFT_NEIGH_PENDING;
	case SOFT_NEIGH_FAILED:
		return SOFT_NEIGH_UNREACHABLE;
	case SOFT_NEIGH_STALE:
		e->tries = 0;
		ask(t, e, SOFT_NEIGH_PROBE, now);
		break;
	}
	memcpy(mac, e->mac, 6);
	return SOFT_NEIGH_FOUND;
}

void
soft_neigh_heard(struct soft_neigh *t, const uint8_t ip[16], const uint8_t mac[6],
		 enum soft_neigh_how how, uint64_t now)
{
	uint16_t idx = lookup(t, ip);
	struct soft_neigh_entry *e;
	bool known, same;

	if (idx == SOFT_NEIGH_NONE) {
		/*
		 * Unsolicited messages create no entry, because any host could fill the table with
		 * them.
		 */
		if (how != SOFT_NEIGH_ASKED_US)
			return;
		idx = insert(t, ip, now);
		if (idx == SOFT_NEIGH_NONE)
			return;
	}
	e = &t->entry[idx];
	if (e->state == SOFT_NEIGH_STATIC)
		return;
	known = e->state == SOFT_NEIGH_REACHABLE || e->state == SOFT_NEIGH_STALE ||
		e->state == SOFT_NEIGH_PROBE;
	same = known && memcmp(e->mac, mac, 6) == 0;
	if (known && !same && how == SOFT_NEIGH_WEAKLY) {
		/*
		 * RFC 4861, 7.2.5: a reply with another MAC but without the override flag makes the
		 * known MAC stale.
		 */
		if (e->state == SOFT_NEIGH_REACHABLE)
			enter(t, e, SOFT_NEIGH_STALE, now + SOFT_NEIGH_IDLE_NS);
		return;
	}
	if (!known)
		t->stats.learned++;
	else if (!same)
		t->stats.changed++;
	memcpy(e->mac, mac, 6);
	e->tries = 0;
	e->unsent = false;
	if (how == SOFT_NEIGH_REPLIED || how == SOFT_NEIGH_WEAKLY)
		enter(t, e, SOFT_NEIGH_REACHABLE, now + SOFT_NEIGH_REACHABLE_NS);
	else if (!same)
		enter(t, e, SOFT_NEIGH_STALE, now + SOFT_NEIGH_IDLE_NS);
}

static void
expire(struct soft_neigh *t, uint16_t idx, uint64_t now)
{
	struct soft_neigh_entry *e = &t->entry[idx];

	switch (e->state) {
	case SOFT_NEIGH_INCOMPLETE:
		if (e->tries < SOFT_NEIGH_TRIES) {
			ask(t, e, SOFT_NEIGH_INCOMPLETE, now);
		} else {
			t->stats.failed++;
			enter(t, e, SOFT_NEIGH_FAILED, now + SOFT_NEIGH_FAILED_NS);
		}
		break;
	case SOFT_NEIGH_REACHABLE:
		enter(t, e, SOFT_NEIGH_STALE, now + SOFT_NEIGH_IDLE_NS);
		break;
	case SOFT_NEIGH_PROBE:
		if (e->tries < SOFT_NEIGH_TRIES) {
			ask(t, e, SOFT_NEIGH_PROBE, now);
			break;
		}
		t->stats.failed++;
		drop(t, idx);
		break;
	default:
		t->stats.expired++;
		drop(t, idx);
	}
}

void
soft_neigh_tick(struct soft_neigh *t, uint64_t now)
{
	uint64_t next = SOFT_NEIGH_NEVER;
	uint16_t i;

	if (now < t->next_deadline)
		return;
	for (i = 0; i < SOFT_NEIGH_MAX; i++) {
		struct soft_neigh_entry *e = &t->entry[i];

		if (e->state == SOFT_NEIGH_FREE || e->state == SOFT_NEIGH_STATIC)
			continue;
		if (e->deadline <= now)
			expire(t, i, now);
		if (e->state != SOFT_NEIGH_FREE)
			next = RTE_MIN(next, e->deadline);
	}
	t->next_deadline = next;
}

const struct soft_neigh_entry *
soft_neigh_peek(const struct soft_neigh *t, const uint8_t ip[16])
{
	uint16_t idx = lookup(t, ip);

	return idx == SOFT_NEIGH_NONE ? NULL : &t->entry[idx];
}
