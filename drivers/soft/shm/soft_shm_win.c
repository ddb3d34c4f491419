/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Windows: mappings of peers' memory. An engine looks up a window without a lock, between
 * direct_enter(), which makes its epoch odd, and direct_leave(), which makes the epoch even. A
 * replaced window is unmapped when each epoch that was odd at the replacement has changed. An
 * engine whose epoch becomes odd later does not find the window.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "soft_shm.h"

static void
win_retire(struct soft_shm *shm, struct soft_shm_window *w)
{
	uint32_t i;

	if (w == NULL)
		return;
	soft_shm_fence();
	for (i = 0; i < SOFT_SHM_ENGINES; i++)
		w->epochs[i] = __atomic_load_n(&shm->dir->engine[i].v, __ATOMIC_ACQUIRE);
	w->next = shm->old;
	shm->old = w;
}

const char *
soft_shm_win_take(struct soft_shm *shm, struct soft_shm_tx *tx, const struct soft_shm_msg *m,
		  int fd)
{
	struct soft_shm_window *w, *old;
	uint32_t slot = m->u.segment.slot;
	void *base;
	int ret;

	w = calloc(1, sizeof(*w));
	if (w == NULL)
		return NULL;
	ret = soft_shm_map_segment(shm->dev, fd, m->u.segment.off, m->u.segment.len, &base);
	if (ret != 0) {
		/* Without a mapping, requests to this memory go as packets. */
		SOFT_LOG(WARNING,
			 "%s: cannot map memory of process %d, so requests to that memory use "
			 "packets: %s",
			 shm->dev->name, (int)tx->pid, strerror(-ret));
		free(w);
		return ret == -ENOMEM ? NULL : "it sent a segment that cannot be mapped";
	}
	w->base = base;
	w->off = m->u.segment.off;
	w->len = m->u.segment.len;
	w->gen = m->u.segment.gen;
	old = tx->win[slot];
	__atomic_store_n(&tx->win[slot], w, __ATOMIC_RELEASE);
	__atomic_fetch_add(&tx->rev, 1, __ATOMIC_RELEASE);
	win_retire(shm, old);
	return NULL;
}

bool
soft_shm_key_find(const struct soft_shm_tx *tx, uint32_t pdn, uint32_t rights, uint32_t key,
		  struct soft_shm_cached_key *n)
{
	const struct soft_shm_window *win;
	struct soft_shm_key k;
	uint32_t idx = key >> 8;

	n->now = NULL;
	if (idx >= 1u << SOFT_LOG_MAX_MKEY || !soft_shm_read(&k, &tx->dir->keys[idx], sizeof(k)))
		return false;
	if (k.key != key || k.pdn != pdn || k.len > UINT64_MAX - k.start || k.seg >= SOFT_SHM_SEGS)
		return false;
	win = __atomic_load_n(&tx->win[k.seg], __ATOMIC_ACQUIRE);
	/*
	 * If the SEGMENT message with the peer's segment has not arrived yet, the mapping is
	 * missing or has another generation.
	 */
	if (win == NULL || win->gen != k.gen || k.off < win->off || k.len > win->len ||
	    k.off - win->off > win->len - k.len)
		return false;
	n->key = key;
	n->seq = k.seq;
	n->rights = k.rights & rights;
	n->start = k.start;
	n->len = k.len;
	n->base = win->base + (k.off - win->off);
	n->now = &tx->dir->keys[idx].seq;
	return true;
}

void
soft_shm_win_drop(struct soft_shm *shm, struct soft_shm_tx *tx)
{
	uint32_t i;

	for (i = 0; i < SOFT_SHM_SEGS; i++) {
		struct soft_shm_window *w = tx->win[i];

		__atomic_store_n(&tx->win[i], NULL, __ATOMIC_RELEASE);
		__atomic_fetch_add(&tx->rev, 1, __ATOMIC_RELEASE);
		win_retire(shm, w);
	}
}

/*
 * Returns true if no engine uses the replaced window @w any more. An epoch is odd while its engine
 * accesses windows, so each epoch that was odd at the replacement must have changed.
 */
static bool
win_unused(const struct soft_shm *shm, const struct soft_shm_window *w)
{
	uint32_t i;

	for (i = 0; i < SOFT_SHM_ENGINES; i++)
		if ((w->epochs[i] & 1) != 0 &&
		    __atomic_load_n(&shm->dir->engine[i].v, __ATOMIC_ACQUIRE) == w->epochs[i])
			return false;
	return true;
}

void
soft_shm_win_chores(struct soft_shm *shm, bool all)
{
	struct soft_shm_window **at = &shm->old, *w;

	while ((w = *at) != NULL) {
		if (!all && !win_unused(shm, w)) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		munmap(w->base, w->len);
		free(w);
	}
}
