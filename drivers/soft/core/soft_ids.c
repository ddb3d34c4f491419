/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Numbers of objects. QP numbers and keys give a remote peer access, so they are random. Other
 * numbers ascend, because only the device's owner sees them.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "soft_ctl.h"

int
soft_ids_init(struct soft_ids *ids, uint32_t first, uint32_t size)
{
	ids->used = calloc((size + 63) / 64, sizeof(uint64_t));
	ids->first = first;
	ids->size = size;
	ids->next = first;
	return ids->used == NULL ? -ENOMEM : 0;
}

int
soft_ids_alloc_in(struct soft_ids *ids, uint32_t first, uint32_t end, uint32_t *id)
{
	uint32_t n, i = ids->next >= first && ids->next < end ? ids->next : first;

	for (n = first; n < end; n++) {
		if ((ids->used[i / 64] & UINT64_C(1) << i % 64) == 0) {
			ids->used[i / 64] |= UINT64_C(1) << i % 64;
			ids->next = i + 1 < end ? i + 1 : first;
			*id = i;
			return 0;
		}
		i = i + 1 < end ? i + 1 : first;
	}
	return -ENOSPC;
}

int
soft_ids_alloc(struct soft_ids *ids, uint32_t *id)
{
	return soft_ids_alloc_in(ids, ids->first, ids->size, id);
}

void
soft_ids_free(struct soft_ids *ids, uint32_t id)
{
	ids->used[id / 64] &= ~(UINT64_C(1) << id % 64);
}

/*
 * Returns the next value of splitmix64. Used with option seed, so that a test gets the same numbers
 * in each run.
 */
static uint64_t
seeded(struct soft_random *r)
{
	uint64_t x = r->state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

int
soft_random(struct soft_random *r, uint64_t *value)
{
	if (r->seeded) {
		*value = seeded(r);
		return 0;
	}
	if (r->unused == 0 && getrandom(r->pool, sizeof(r->pool), 0) == (ssize_t)sizeof(r->pool))
		r->unused = RTE_DIM(r->pool);
	if (r->unused != 0) {
		*value = r->pool[--r->unused];
		return 0;
	}
	SOFT_LOG(ERR,
		 "software device: getrandom() failed: %s: allow the call in the process's seccomp "
		 "filter",
		 strerror(errno));
	return -EIO;
}

int
soft_draw_init(struct soft_draw *d, uint32_t first, uint32_t start, uint32_t size)
{
	*d = (struct soft_draw){.first = first};
	d->order = calloc(size - first, sizeof(*d->order));
	if (d->order == NULL)
		return -ENOMEM;
	soft_draw_resize(d, start, size);
	return 0;
}

void
soft_draw_resize(struct soft_draw *d, uint32_t start, uint32_t size)
{
	/* Only the first d->n entries, which form the ring, were ever written. */
	memset(d->order, 0, d->n * sizeof(*d->order));
	d->max = size - d->first;
	d->n = RTE_MIN(start, size) - d->first;
	d->free = d->n;
	d->head = 0;
}

void
soft_draw_move(struct soft_draw *d, uint32_t first, uint32_t size)
{
	memset(d->order, 0, d->n * sizeof(*d->order));
	d->first = first;
	soft_draw_resize(d, size, size);
}

/* Returns the ring index of the @i-th free number. */
static uint32_t
ring_index(const struct soft_draw *d, uint32_t i)
{
	uint32_t at = d->head + i;

	return at < d->n ? at : at - d->n;
}

/*
 * Returns the number at index @at of the ring. An entry that was never written is 0, which stands
 * for the number first + @at. So the ring needs no memory until numbers are freed.
 */
static uint32_t
number_at(const struct soft_draw *d, uint32_t at)
{
	return d->order[at] != 0 ? d->order[at] : d->first + at;
}

/*
 * Adds new numbers to the ring, before the free numbers. If there is no memory to move the free
 * numbers, the ring stays unchanged.
 */
static void
grow(struct soft_draw *d)
{
	uint32_t n = d->n > d->max / 2 ? d->max : d->n * 2, added = n - d->n, i;
	uint32_t *freed = calloc(d->free + 1, sizeof(*freed));

	if (freed == NULL)
		return;
	for (i = 0; i < d->free; i++)
		freed[i] = number_at(d, ring_index(d, i));
	for (i = 0; i < added; i++)
		d->order[i] = d->first + d->n + i;
	memcpy(&d->order[added], freed, d->free * sizeof(*freed));
	free(freed);
	__atomic_store_n(&d->n, n, __ATOMIC_RELAXED);
	d->head = 0;
	d->free += added;
}

int
soft_draw_take(struct soft_draw *d, struct soft_random *r, uint32_t *id)
{
	uint32_t hold, choice, at;
	uint64_t random;
	int ret;

	if (d->free <= d->n / SOFT_DRAW_HOLD && d->n < d->max)
		grow(d);
	if (d->free == 0)
		return -ENOSPC;
	hold = d->n / SOFT_DRAW_HOLD;
	choice = d->free > hold ? d->free - hold : 1;
	ret = soft_random(r, &random);
	if (ret != 0)
		return ret;
	/* The choice is slightly uneven: probabilities differ by less than n / 2^32. */
	at = ring_index(d, (uint32_t)((random >> 32) * choice >> 32));
	*id = number_at(d, at);
	d->order[at] = number_at(d, d->head);
	d->head = ring_index(d, 1);
	d->free--;
	return 0;
}

void
soft_draw_give(struct soft_draw *d, uint32_t id)
{
	d->order[ring_index(d, d->free)] = id;
	d->free++;
}

int
soft_key_take(struct soft_ctl *ctl, uint32_t *key)
{
	uint64_t random;
	uint32_t id;
	int ret = soft_draw_take(&ctl->mkey_draw, &ctl->random, &id);

	if (ret != 0)
		return ret;
	ret = soft_random(&ctl->random, &random);
	if (ret != 0) {
		soft_draw_give(&ctl->mkey_draw, id);
		return ret;
	}
	/*
	 * The low byte must differ from the byte of this index's last key, so that the last key
	 * stays invalid.
	 */
	ctl->mkey_variant[id] += (uint8_t)(1 + (random >> 32) * 255 / (UINT64_C(1) << 32));
	*key = id << 8 | ctl->mkey_variant[id];
	return 0;
}
