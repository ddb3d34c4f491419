/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Memory of a guest (a virtual machine), which mailboxes name by page lists. The program that hosts
 * the guest maps the pages as one range, so the data path accesses them as any other memory.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "soft_ctl.h"

/*
 * Bit of an entry that permits writes (mtt.wr_en of mlx5_ifc.h). The low bits of an entry do not
 * belong to the address.
 */
#define ENTRY_WRITE UINT64_C(0x2)

static uint64_t
entry(const uint8_t *list, uint32_t i)
{
	return bb_prm_get64(list + (size_t)i * 8, BB_PRM_F(0, 0, 64));
}

int
soft_window_open(const struct soft_ctx *ctx, const uint8_t *list, uint32_t n, unsigned int log_sz,
		 struct soft_window *w)
{
	uint64_t *pa = malloc((size_t)n * sizeof(*pa));
	uint32_t i;

	if (pa == NULL)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		pa[i] = entry(list, i) & ~((UINT64_C(1) << log_sz) - 1);
	w->at = ctx->host->window(ctx->host->arg, pa, n, log_sz);
	free(pa);
	if (w->at == NULL)
		return -EFAULT;
	w->host = ctx->host;
	w->n = n;
	w->log_sz = log_sz;
	return 0;
}

void
soft_window_close(struct soft_window *w)
{
	if (w->at != NULL)
		w->host->unwindow(w->host->arg, w->at, w->n, w->log_sz);
	w->at = NULL;
}

bool
soft_pages_writable(const uint8_t *list, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		if ((entry(list, i) & ENTRY_WRITE) == 0)
			return false;
	return true;
}

int
soft_umem_of_pages(struct soft_ctx *ctx, const uint8_t *list, uint32_t n, unsigned int log_sz,
		   uint64_t off, bool writable, struct soft_umem **umem)
{
	struct soft_umem *u = calloc(1, sizeof(*u));
	int ret;

	if (u == NULL)
		return -ENOMEM;
	u->ctx = ctx;
	if (n == 0) {
		*umem = u;
		return 0;
	}
	ret = soft_window_open(ctx, list, n, log_sz, &u->window);
	if (ret != 0) {
		free(u);
		return ret;
	}
	u->base = (uint8_t *)u->window.at + off;
	u->len = ((uint64_t)n << log_sz) - off;
	u->pgsz = UINT64_C(1) << log_sz;
	u->writable = writable;
	*umem = u;
	return 0;
}

void
soft_umem_discard(struct soft_umem *u)
{
	if (u == NULL || u->pub.id != 0 || u->refs != 0)
		return;
	soft_window_close(&u->window);
	free(u);
}

void
soft_umem_unref(struct soft_umem *u)
{
	u->refs--;
	soft_umem_discard(u);
}
