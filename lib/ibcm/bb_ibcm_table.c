/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Slots, their IDs and the hash tables. The number of slots is fixed. Free slots form a queue, so
 * that the slot that was freed first is used first. The hash has a secret seed: a peer cannot
 * choose IDs, QPNs or GIDs that fall into one bucket.
 */
#include <errno.h>
#include <stdlib.h>

#include "bb_ibcm_priv.h"

/* Timeout code and repeats of a DREQ while more than half of all slots are in use. */
#define CROWDED_TIMEOUT 16u /* 268 ms */
#define CROWDED_TRIES   3u

/* Mixes the bits of a word: the finalizer of splitmix64. */
static uint64_t
mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static uint32_t
bucket_of(const struct bb_ibcm *cm, enum bb_ibcm_table table, const uint8_t gid[16], uint32_t value)
{
	uint64_t g[2];

	memcpy(g, gid, sizeof(g));
	g[0] = mix(g[0] ^ cm->attr.seed);
	g[1] = mix(g[1] ^ g[0]);
	return (uint32_t)mix(g[1] ^ value ^ (uint64_t)table << 32) & cm->bucket_mask;
}

/* Returns the number that, together with the peer's GID, is the key of @c in @table. */
static uint32_t
value_of(const struct bb_ibcm_conn *c, enum bb_ibcm_table table)
{
	switch (table) {
	case BB_IBCM_BY_ID:
		return c->remote_id;
	case BB_IBCM_BY_QPN:
		return c->remote_qpn;
	default:
		return 0;
	}
}

int
bb_ibcm_tables_init(struct bb_ibcm *cm)
{
	uint32_t n = cm->attr.max_conns, buckets = 1;

	while (buckets < n)
		buckets *= 2;
	while (1u << cm->id_bits < n)
		cm->id_bits++;
	cm->id_xor = (uint32_t)mix(cm->attr.seed);
	cm->bucket_mask = buckets - 1;
	cm->conns = calloc(n, sizeof(*cm->conns));
	cm->heap = calloc(n, sizeof(*cm->heap));
	cm->services = calloc(cm->attr.max_services, sizeof(*cm->services));
	if (cm->conns == NULL || cm->heap == NULL || cm->services == NULL)
		return -ENOMEM;
	cm->full = malloc(buckets * sizeof(*cm->full));
	if (cm->full == NULL)
		return -ENOMEM;
	memset(cm->full, 0xff, buckets * sizeof(*cm->full));
	for (int t = 0; t < BB_IBCM_TABLES; t++) {
		cm->buckets[t] = malloc(buckets * sizeof(*cm->buckets[t]));
		if (cm->buckets[t] == NULL)
			return -ENOMEM;
		memset(cm->buckets[t], 0xff, buckets * sizeof(*cm->buckets[t]));
	}
	cm->free_first = cm->free_last = BB_IBCM_NONE;
	return 0;
}

void
bb_ibcm_tables_free(struct bb_ibcm *cm)
{
	for (int t = 0; t < BB_IBCM_TABLES; t++)
		free(cm->buckets[t]);
	free(cm->full);
	free(cm->services);
	free(cm->heap);
	free(cm->conns);
}

/*
 * Returns a new communication ID for slot @c. Never returns 0, which stands for "unknown" in a REJ.
 * attr.id_prefix, if not 0, replaces the highest 8 bits of the ID. The index of the slot is in the
 * lowest 20 bits, so the prefix does not change it.
 */
static uint32_t
next_id(const struct bb_ibcm *cm, struct bb_ibcm_conn *c)
{
	uint32_t id;

	do {
		id = (++c->generation << cm->id_bits | c->index) ^ cm->id_xor;
		if (cm->attr.id_prefix != 0)
			id = (id & 0xffffff) | (uint32_t)cm->attr.id_prefix << 24;
	} while (id == 0);
	return id;
}

/*
 * Takes a slot that was never used, if there is one, otherwise the slot that was freed first. So
 * the creation of an engine need not initialize the slots.
 */
struct bb_ibcm_conn *
bb_ibcm_slot_take(struct bb_ibcm *cm)
{
	uint32_t index = cm->used, generation;
	struct bb_ibcm_conn *c;

	if (index < cm->attr.max_conns) {
		cm->used++;
		c = &cm->conns[index];
		/* Starts IDs at a value that a peer cannot guess. */
		generation = (uint32_t)mix(cm->attr.seed + index);
	} else {
		index = cm->free_first;
		if (index == BB_IBCM_NONE)
			return NULL;
		c = &cm->conns[index];
		cm->free_first = c->next[0];
		if (cm->free_first == BB_IBCM_NONE)
			cm->free_last = BB_IBCM_NONE;
		generation = c->generation;
	}
	/* Also tx: a peer must not get a message of the slot's earlier connection. */
	memset(c, 0, sizeof(*c));
	c->index = index;
	c->generation = generation;
	c->heap_at = BB_IBCM_NONE;
	c->id = next_id(cm, c);
	c->tid = mix(cm->attr.seed ^ c->id) << 32 | c->id;
	cm->in_use++;
	return c;
}

void
bb_ibcm_slot_free(struct bb_ibcm *cm, struct bb_ibcm_conn *c)
{
	for (int t = 0; t < BB_IBCM_TABLES; t++)
		bb_ibcm_remove(cm, c, (enum bb_ibcm_table)t);
	bb_ibcm_clock_stop(cm, c);
	cm->n_dreq -= c->state == BB_IBCM_DREQ_SENT;
	c->state = BB_IBCM_FREE;
	c->owned = false;
	c->next[0] = BB_IBCM_NONE;
	if (cm->free_last == BB_IBCM_NONE)
		cm->free_first = c->index;
	else
		cm->conns[cm->free_last].next[0] = c->index;
	cm->free_last = c->index;
	cm->in_use--;
}

struct bb_ibcm_conn *
bb_ibcm_find(struct bb_ibcm *cm, uint32_t id)
{
	uint32_t index = (id ^ cm->id_xor) & ((1u << cm->id_bits) - 1);
	struct bb_ibcm_conn *c;

	if (index >= cm->attr.max_conns)
		return NULL;
	c = &cm->conns[index];
	return c->state != BB_IBCM_FREE && c->id == id ? c : NULL;
}

void
bb_ibcm_insert(struct bb_ibcm *cm, struct bb_ibcm_conn *c, enum bb_ibcm_table table)
{
	uint32_t *first;

	if ((c->in_tables & 1u << table) != 0)
		return;
	first = &cm->buckets[table][bucket_of(cm, table, c->net.dst, value_of(c, table))];
	c->next[table] = *first;
	*first = c->index;
	c->in_tables |= (uint8_t)(1u << table);
	if (table == BB_IBCM_BY_GID)
		cm->pending++;
}

void
bb_ibcm_remove(struct bb_ibcm *cm, struct bb_ibcm_conn *c, enum bb_ibcm_table table)
{
	uint32_t *at;

	if ((c->in_tables & 1u << table) == 0)
		return;
	at = &cm->buckets[table][bucket_of(cm, table, c->net.dst, value_of(c, table))];
	while (*at != c->index)
		at = &cm->conns[*at].next[table];
	*at = c->next[table];
	c->in_tables &= (uint8_t) ~(1u << table);
	if (table == BB_IBCM_BY_GID) {
		cm->pending--;
		cm->full[bucket_of(cm, table, c->net.dst, 0)] = BB_IBCM_NONE;
	}
}

static bool
is_sidr(const struct bb_ibcm_conn *c)
{
	return c->state >= BB_IBCM_SIDR_SENT;
}

struct bb_ibcm_conn *
bb_ibcm_find_peer(struct bb_ibcm *cm, enum bb_ibcm_table table, const uint8_t gid[16],
		  uint32_t value, uint64_t guid, bool sidr)
{
	uint32_t index = cm->buckets[table][bucket_of(cm, table, gid, value)];

	for (; index != BB_IBCM_NONE; index = cm->conns[index].next[table]) {
		struct bb_ibcm_conn *c = &cm->conns[index];

		if (value_of(c, table) == value && bb_ibcm_same_gid(c->net.dst, gid) &&
		    is_sidr(c) == sidr && (guid == 0 || c->remote_guid == guid))
			return c;
	}
	return NULL;
}

/* Limits the wait for the answer to a DREQ to 1.1 s. */
static void
shorten_dreq(struct bb_ibcm *cm, struct bb_ibcm_conn *c, uint64_t now)
{
	const uint64_t interval = bb_ibcm_ns(CROWDED_TIMEOUT);

	if (c->tries > CROWDED_TRIES)
		c->tries = CROWDED_TRIES;
	if (c->interval > interval) {
		c->interval = interval;
		bb_ibcm_clock_set(cm, c, now + interval);
	}
}

void
bb_ibcm_limit_ended(struct bb_ibcm *cm, struct bb_ibcm_conn *c, uint64_t now)
{
	const bool crowded = cm->in_use > cm->attr.max_conns / 2;
	struct bb_ibcm_conn *oldest = NULL, *oldest_timewait = NULL;
	uint32_t index, n = 0;

	if (crowded && c->state == BB_IBCM_TIMEWAIT) {
		bb_ibcm_slot_free(cm, c);
		return;
	}
	if (crowded)
		shorten_dreq(cm, c, now);
	bb_ibcm_remove(cm, c, BB_IBCM_BY_GID);
	bb_ibcm_insert(cm, c, BB_IBCM_ENDED);
	/* A new slot is the first of its bucket, so the last one found is the oldest. */
	index = cm->buckets[BB_IBCM_ENDED][bucket_of(cm, BB_IBCM_ENDED, c->net.dst, 0)];
	for (; index != BB_IBCM_NONE; index = cm->conns[index].next[BB_IBCM_ENDED]) {
		if (!bb_ibcm_same_gid(cm->conns[index].net.dst, c->net.dst))
			continue;
		oldest = &cm->conns[index];
		if (oldest->state == BB_IBCM_TIMEWAIT)
			oldest_timewait = oldest;
		n++;
	}
	if (n > cm->attr.max_ended_per_gid)
		bb_ibcm_slot_free(cm, oldest_timewait != NULL ? oldest_timewait : oldest);
}

bool
bb_ibcm_gid_is_full(struct bb_ibcm *cm, const uint8_t gid[16], uint32_t limit)
{
	const uint32_t bucket = bucket_of(cm, BB_IBCM_BY_GID, gid, 0);
	uint32_t index = cm->buckets[BB_IBCM_BY_GID][bucket], n = 0, *full = &cm->full[bucket];

	if (*full != BB_IBCM_NONE && bb_ibcm_same_gid(cm->conns[*full].net.dst, gid))
		return true;
	for (; index != BB_IBCM_NONE; index = cm->conns[index].next[BB_IBCM_BY_GID]) {
		if (!bb_ibcm_same_gid(cm->conns[index].net.dst, gid) || ++n < limit)
			continue;
		*full = index;
		return true;
	}
	return false;
}
