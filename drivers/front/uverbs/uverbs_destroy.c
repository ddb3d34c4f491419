/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Destroys the objects of an open file. */
#include <errno.h>

#include "uverbs_queue.h"

int
uverbs_end(struct uverbs_file *f, enum uverbs_kind kind, void *p)
{
	int ret;

	switch (kind) {
	case UV_PD:
		return -f->soft->cmd->pd_free(f->soft, p);
	case UV_OBJ:
		ret = f->soft->cmd->obj_destroy(p);
		if (ret == 0)
			uverbs_unsubscribe(f, p);
		return -ret;
	case UV_UMEM:
		return -f->soft->cmd->umem_dereg(f->soft, p);
	case UV_UAR:
	case UV_ORPHAN_UAR:
		return -f->soft->cmd->uar_free(f->soft, p);
	case UV_DM:
		return -f->soft->cmd->dm_free(f->soft, p);
	case UV_MR:
		return -f->soft->cmd->mr_dereg(f->soft, p);
	case UV_MW:
		return -f->soft->cmd->mw_free(f->soft, p);
	case UV_CQ:
	case UV_QP:
	case UV_SRQ:
		return uverbs_queue_end(f, p);
	default: /* an address handle has no object */
		return 0;
	}
}

int
uverbs_destroy(struct uverbs_file *f, enum uverbs_kind kind, uint64_t handle)
{
	void *p = uverbs_find(f, kind, handle);
	int rc = p != NULL ? uverbs_end(f, kind, p) : EINVAL;

	if (rc != 0)
		return rc;
	/* The next object may get the handle, by which an event finds its object. */
	uverbs_pending_drop(f, handle);
	uverbs_forget(f, handle);
	return 0;
}

int
uverbs_uar_destroy(struct uverbs_file *f, uint64_t handle)
{
	const struct mlx5_uar *uar = uverbs_find(f, UV_UAR, handle);
	const struct uverbs_handle *h;
	uint32_t i;

	for (i = 1; uar != NULL && i < f->n_handles; i++) {
		h = &f->handles[i];
		if ((h->kind == UV_CQ || h->kind == UV_QP) &&
		    ((const struct uverbs_queue *)h->p)->uar == uar->page_id) {
			f->handles[handle].kind = UV_ORPHAN_UAR;
			return 0;
		}
	}
	return uverbs_destroy(f, UV_UAR, handle);
}

/*
 * DEVX objects may refer to one another in any way, and an object in use cannot be destroyed. So
 * the function tries all objects again until a pass destroys none, as uverbs_destroy_ufile_hw() of
 * Linux drivers/infiniband/core/rdma_core.c.
 */
bool
uverbs_destroy_all(struct uverbs_file *f)
{
	unsigned int done, left, kind;
	uint32_t i;

	uverbs_mcast_end(f);
	do {
		done = left = 0;
		for (kind = UV_FREE + 1; kind < UV_KINDS; kind++)
			for (i = 1; i < f->n_handles; i++) {
				if (f->handles[i].kind != (enum uverbs_kind)kind)
					continue;
				if (uverbs_destroy(f, (enum uverbs_kind)kind, i) == 0)
					done++;
				else
					left++;
			}
	} while (left != 0 && done != 0);
	return left == 0;
}
