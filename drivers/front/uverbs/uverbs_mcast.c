/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Attaches QPs to multicast groups, as Linux drivers/infiniband/core/uverbs_cmd.c does: a second
 * attach has no effect, and a QP that is attached to a group cannot be destroyed
 * (uverbs_free_qp()).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bb_prm.h"
#include "uverbs_queue.h"

struct uverbs_group {
	struct uverbs_group *next;
	struct mlx5_obj *obj;
	struct ib_uverbs_attach_mcast q;
};

/*
 * Returns the address of the pointer to the QP's attachment to the multicast group that @q names;
 * the pointer is NULL if there is none.
 */
static struct uverbs_group **
find(struct uverbs_file *f, const struct ib_uverbs_attach_mcast *q)
{
	struct uverbs_group **g;

	for (g = &f->groups; *g != NULL; g = &(*g)->next)
		if ((*g)->q.qp_handle == q->qp_handle && (*g)->q.mlid == q->mlid &&
		    memcmp((*g)->q.gid, q->gid, sizeof(q->gid)) == 0)
			break;
	return g;
}

bool
uverbs_qp_has_groups(const struct uverbs_file *f, uint32_t handle)
{
	const struct uverbs_group *g;

	for (g = f->groups; g != NULL; g = g->next)
		if (g->q.qp_handle == handle)
			return true;
	return false;
}

int
uverbs_attach_mcast(struct uverbs_file *f, const struct uverbs_cmd *c)
{
	uint8_t in[BB_PRM_SZ_MCG] = {0}, out[BB_PRM_SZ_SHORT] = {0};
	struct ib_uverbs_attach_mcast q;
	const struct uverbs_queue *qp;
	struct uverbs_group *g;
	int ret;

	memcpy(&q, c->in, sizeof(q));
	qp = uverbs_find(f, UV_QP, q.qp_handle);
	if (qp == NULL)
		return EINVAL;
	if (*find(f, &q) != NULL)
		return 0;
	g = calloc(1, sizeof(*g));
	if (g == NULL)
		return ENOMEM;
	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_ATTACH_TO_MCG);
	bb_prm_set(in, BB_PRM_ATTACH_TO_MCG_QPN, qp->num);
	memcpy(bb_prm_sub(in, BB_PRM_ATTACH_TO_MCG_GID), q.gid, sizeof(q.gid));
	ret = f->soft->cmd->obj_create(f->soft, in, sizeof(in), out, sizeof(out), &g->obj);
	if (ret != 0) {
		free(g);
		return uverbs_queue_errno(ret, out);
	}
	g->q = q;
	g->next = f->groups;
	f->groups = g;
	return 0;
}

/* Detaches the QP from the multicast group of *link and frees the entry. Returns 0 or an errno. */
static int
detach(struct uverbs_file *f, struct uverbs_group **link)
{
	struct uverbs_group *g = *link;
	int ret = f->soft->cmd->obj_destroy(g->obj);

	if (ret != 0)
		return -ret;
	*link = g->next;
	free(g);
	return 0;
}

int
uverbs_detach_mcast(struct uverbs_file *f, const struct uverbs_cmd *c)
{
	struct ib_uverbs_attach_mcast q;
	struct uverbs_group **g;

	/* The commands to attach and to detach have the same layout. */
	memcpy(&q, c->in, sizeof(q));
	g = find(f, &q);
	return *g != NULL ? detach(f, g) : EINVAL;
}

void
uverbs_mcast_end(struct uverbs_file *f)
{
	while (f->groups != NULL && detach(f, &f->groups) == 0)
		;
}
