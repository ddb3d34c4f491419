/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Memory of a guest by physical addresses, for the keys that the kernel's own queues use, and for
 * keys whose pages a UMR loads. The keys of a context share the mapped memory.
 *
 * The memory is mapped as it is used, in windows of 2 MiB or, where that fails, of 4 KiB. A window
 * stays mapped until the last key is destroyed, because requests in flight may use it. Later
 * requests use the same window, so the number of windows has a limit. The list of windows needs no
 * lock: one thread runs the engines of a guest's contexts, and the same thread changes the guest's
 * memory map.
 */
#include <stdlib.h>

#include "soft_access.h"
#include "soft_ctl.h"

#define LOG_LARGE 21u
#define LOG_SMALL 12u
#define BUCKETS   64u
#define MAX       16384u /* maximum number of mapped parts of the guest's memory */
/* Maximum size of all translations that UMRs have loaded, in units of 16 bytes: 512 MiB. */
#define LISTS_MAX (UINT32_C(1) << 25)

struct window {
	struct window *next;
	uint64_t pa;
	unsigned int log_sz;
	uint8_t *at;
};

struct soft_phys {
	struct soft_phys **owner; /* pointer of the context, which the last key clears */
	const struct soft_host *host;
	uint32_t keys;
	uint32_t lists; /* size of the keys' translations, in units of 16 bytes */
	uint32_t n;
	struct window *buckets[BUCKETS];
};

struct soft_phys *
soft_phys_hold(struct soft_ctx *ctx)
{
	struct soft_phys *p = ctx->phys;

	if (p == NULL) {
		p = calloc(1, sizeof(*p));
		if (p == NULL)
			return NULL;
		p->owner = &ctx->phys;
		p->host = ctx->host;
		ctx->phys = p;
	}
	p->keys++;
	return p;
}

void
soft_phys_drop(struct soft_phys *p)
{
	uint32_t i;

	if (--p->keys != 0)
		return;
	*p->owner = NULL;
	for (i = 0; i < BUCKETS; i++)
		while (p->buckets[i] != NULL) {
			struct window *w = p->buckets[i];

			p->buckets[i] = w->next;
			p->host->unwindow(p->host->arg, w->at, 1, w->log_sz);
			free(w);
		}
	free(p);
}

bool
soft_list_make(struct soft_indirect *ind)
{
	if (ind->list == NULL && ind->list_cap <= LISTS_MAX - ind->phys->lists) {
		ind->list = calloc(ind->list_cap, SOFT_LIST_UNIT);
		if (ind->list != NULL)
			ind->phys->lists += ind->list_cap;
	}
	return ind->list != NULL;
}

void
soft_list_free(struct soft_indirect *ind)
{
	if (ind->list == NULL)
		return;
	ind->phys->lists -= ind->list_cap;
	free(ind->list);
	ind->list = NULL;
}

static struct window **
bucket(struct soft_phys *p, uint64_t pa, unsigned int log_sz)
{
	return &p->buckets[((pa >> log_sz) ^ log_sz) % BUCKETS];
}

/*
 * A window is a mapped part of the guest's memory. Returns the window of 2^@log_sz bytes that
 * contains @pa. If there is none, maps it if @make is true; otherwise, or on failure, returns NULL.
 */
static struct window *
get(struct soft_phys *p, uint64_t pa, unsigned int log_sz, bool make)
{
	struct window **b = bucket(p, pa, log_sz), *w;

	pa &= ~((UINT64_C(1) << log_sz) - 1);
	for (w = *b; w != NULL; w = w->next)
		if (w->pa == pa && w->log_sz == log_sz)
			return w;
	if (!make || p->n == MAX)
		return NULL;
	w = malloc(sizeof(*w));
	if (w == NULL)
		return NULL;
	w->at = p->host->window(p->host->arg, &pa, 1, log_sz);
	if (w->at == NULL) {
		free(w);
		return NULL;
	}
	w->pa = pa;
	w->log_sz = log_sz;
	w->next = *b;
	*b = w;
	p->n++;
	return w;
}

uint8_t *
soft_phys_find(struct soft_phys *p, uint64_t pa, uint64_t *len)
{
	struct window *w = get(p, pa, LOG_LARGE, false);
	uint64_t off, room;

	if (w == NULL)
		w = get(p, pa, LOG_SMALL, false);
	if (w == NULL)
		w = get(p, pa, LOG_LARGE, true);
	if (w == NULL)
		w = get(p, pa, LOG_SMALL, true);
	if (w == NULL)
		return NULL;
	off = pa - w->pa;
	room = (UINT64_C(1) << w->log_sz) - off;
	*len = RTE_MIN(*len, room);
	return w->at + off;
}
