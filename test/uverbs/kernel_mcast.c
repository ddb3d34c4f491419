/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Multicast groups of the kernel's QPs, after Linux drivers/infiniband/core/uverbs_cmd.c: a second
 * attach has no effect, and a QP with groups stays (uverbs_free_qp()).
 */
#include <errno.h>
#include <string.h>

#include "bb_prm.h"
#include "kernel_queue.h"

#define MAX_GROUPS 64

static struct group {
	struct mlx5_obj *obj; /* NULL: the entry is free */
	struct ib_uverbs_attach_mcast q;
} groups[MAX_GROUPS];

/* Returns the attachment that @q names, or a free entry if @q is NULL. NULL if there is none. */
static struct group *
find(const struct ib_uverbs_attach_mcast *q)
{
	struct group *g;

	for (g = groups; g < groups + MAX_GROUPS; g++)
		if (q == NULL ? g->obj == NULL
			      : g->obj != NULL && g->q.qp_handle == q->qp_handle &&
					g->q.mlid == q->mlid &&
					memcmp(g->q.gid, q->gid, sizeof(q->gid)) == 0)
			return g;
	return NULL;
}

bool
kernel_qp_has_groups(uint32_t handle)
{
	const struct group *g;

	for (g = groups; g < groups + MAX_GROUPS; g++)
		if (g->obj != NULL && g->q.qp_handle == handle)
			return true;
	return false;
}

int
kernel_attach_mcast(const struct uverbs_cmd *c)
{
	uint8_t in[BB_PRM_SZ_MCG] = {0}, out[BB_PRM_SZ_SHORT] = {0};
	struct ib_uverbs_attach_mcast q;
	const struct kernel_queue *qp;
	struct group *g;

	memcpy(&q, c->in, sizeof(q));
	qp = kernel_get(QP, q.qp_handle);
	if (qp == NULL)
		return EINVAL;
	if (find(&q) != NULL)
		return 0;
	g = find(NULL);
	if (g == NULL)
		return ENOMEM;
	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_ATTACH_TO_MCG);
	bb_prm_set(in, BB_PRM_ATTACH_TO_MCG_QPN, qp->num);
	memcpy(bb_prm_sub(in, BB_PRM_ATTACH_TO_MCG_GID), q.gid, sizeof(q.gid));
	if (kernel_soft->cmd->obj_create(kernel_soft, in, sizeof(in), out, sizeof(out), &g->obj) !=
	    0)
		return EINVAL;
	g->q = q;
	return 0;
}

int
kernel_detach_mcast(const struct uverbs_cmd *c)
{
	struct ib_uverbs_attach_mcast q;
	struct group *g;
	int ret;

	/* Both commands have the same layout. */
	memcpy(&q, c->in, sizeof(q));
	g = find(&q);
	if (g == NULL)
		return EINVAL;
	ret = kernel_soft->cmd->obj_destroy(g->obj);
	if (ret == 0)
		g->obj = NULL;
	return -ret;
}
