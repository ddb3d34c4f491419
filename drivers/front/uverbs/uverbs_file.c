/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* An open file of the device node: its references, and the handles of its objects. */
#include <stdlib.h>
#include <string.h>

#include "uverbs_priv.h"

#define FIRST_HANDLES 64u
#define MAX_HANDLES   (1u << 20)

void
uverbs_get(struct uverbs_file *f)
{
	__atomic_fetch_add(&f->refs, 1, __ATOMIC_RELAXED);
}

void
uverbs_put(struct uverbs_file *f)
{
	if (__atomic_fetch_sub(&f->refs, 1, __ATOMIC_ACQ_REL) != 1)
		return;
	pthread_mutex_destroy(&f->lock);
	pthread_mutex_destroy(&f->event_lock);
	free(f->handles);
	free(f->subs);
	free(f);
}

/* ---- Handles */

static bool
grow(struct uverbs_file *f)
{
	const uint32_t n = f->n_handles == 0 ? FIRST_HANDLES : 2 * f->n_handles;
	struct uverbs_handle *to;

	if (n > MAX_HANDLES)
		return false;
	to = realloc(f->handles, n * sizeof(*to));
	if (to == NULL)
		return false;
	memset(to + f->n_handles, 0, (n - f->n_handles) * sizeof(*to));
	f->handles = to;
	f->last = f->n_handles != 0 ? f->n_handles - 1 : 0;
	f->n_handles = n;
	return true;
}

/*
 * Searches for a free entry, beginning after the entry that was used last. Returns 0 if there is
 * none.
 */
static uint32_t
free_entry(const struct uverbs_file *f)
{
	uint32_t i, at;

	for (i = 1; i <= f->n_handles; i++) {
		at = (f->last + i) & (f->n_handles - 1);
		if (at != 0 && f->handles[at].kind == UV_FREE)
			return at;
	}
	return 0;
}

uint32_t
uverbs_keep(struct uverbs_file *f, enum uverbs_kind kind, void *p)
{
	uint32_t at = free_entry(f);

	if (at == 0 && grow(f))
		at = free_entry(f);
	if (at == 0)
		return 0;
	f->handles[at] = (struct uverbs_handle){.kind = kind, .p = p};
	f->last = at;
	return at;
}

void *
uverbs_find(const struct uverbs_file *f, enum uverbs_kind kind, uint64_t handle)
{
	return handle < f->n_handles && f->handles[handle].kind == kind ? f->handles[handle].p
									: NULL;
}

void
uverbs_forget(struct uverbs_file *f, uint64_t handle)
{
	if (handle < f->n_handles)
		f->handles[handle].kind = UV_FREE;
}
