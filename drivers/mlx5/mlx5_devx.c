/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Passes mailboxes and objects of the application to the command interface. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "mlx5.h"

/* Clears the header of @out, which says whether the device refused the command. */
static void
clear(void *out, size_t outlen)
{
	memset(out, 0, RTE_MIN(outlen, (size_t)BB_DEVX_MAILBOX_MIN));
}

/*
 * Logs a failed command. Returns @ret, including -EREMOTEIO, so that the application reads the
 * status itself.
 */
static int
outcome(const struct mlx5_dev *d, int ret, uint32_t op, const void *out)
{
	char what[32];

	if (ret == 0)
		return 0;
	snprintf(what, sizeof(what), "DEVX command 0x%x", op);
	(void)mlx5_cmd_failed(d, what, ret, out);
	return ret;
}

static int
devx_general(struct bb_dev *dev, const void *in, size_t inlen, void *out, size_t outlen)
{
	const struct mlx5_dev *d = mlx5_dev_of(dev);
	const uint32_t op = bb_prm_get(in, BB_PRM_CMD_OPCODE);

	clear(out, outlen);
	return outcome(d, d->cmd->general(d->ctx, in, inlen, out, outlen), op, out);
}

static int
devx_obj_create(struct bb_dev *dev, const void *in, size_t inlen, void *out, size_t outlen,
		void **obj)
{
	const struct mlx5_dev *d = mlx5_dev_of(dev);
	const uint32_t op = bb_prm_get(in, BB_PRM_CMD_OPCODE);
	struct mlx5_obj *o;
	int ret;

	clear(out, outlen);
	ret = d->cmd->obj_create(d->ctx, in, inlen, out, outlen, &o);
	if (ret == 0)
		*obj = o;
	return outcome(d, ret, op, out);
}

static int
devx_obj_cmd(struct bb_dev *dev, void *obj, bool modify, const void *in, size_t inlen, void *out,
	     size_t outlen)
{
	const struct mlx5_dev *d = mlx5_dev_of(dev);
	const uint32_t op = bb_prm_get(in, BB_PRM_CMD_OPCODE);
	int ret;

	clear(out, outlen);
	ret = modify ? d->cmd->obj_modify(obj, in, inlen, out, outlen)
		     : d->cmd->obj_query(obj, in, inlen, out, outlen);
	return outcome(d, ret, op, out);
}

static int
devx_obj_destroy(struct bb_dev *dev, void *obj)
{
	return mlx5_obj_destroy(mlx5_dev_of(dev), "destroying a DEVX object", obj);
}

static int
devx_query_eqn(struct bb_dev *dev, uint32_t vector, uint32_t *eqn)
{
	const struct mlx5_dev *d = mlx5_dev_of(dev);
	int ret = d->cmd->query_eqn(d->ctx, vector, eqn);

	if (ret != 0)
		BB_LOG(ERR, "%s: cannot query the event queue of completion vector %u: %s",
		       d->ctx->name, vector, strerror(-ret));
	return ret;
}

static uint32_t
devx_pd_number(const struct bb_pd *pd)
{
	const struct mlx5_pd *p = pd->priv;

	return p->pdn;
}

static int
devx_uar_alloc(struct bb_devx_uar *uar)
{
	struct mlx5_lcore *l;
	int ret = mlx5_lcore_get(mlx5_dev_of(uar->dev), uar->lcore, &l);

	if (ret != 0)
		return ret;
	uar->page_id = l->uar->page_id;
	uar->reg_addr = l->uar->reg_addr;
	uar->base_addr = l->uar->base_addr;
	return 0;
}

static void
devx_uar_free(struct bb_devx_uar *uar)
{
	mlx5_lcore_put(mlx5_dev_of(uar->dev), uar->lcore);
}

const struct bb_devx_ops mlx5_devx = {
	.general = devx_general,
	.obj_create = devx_obj_create,
	.obj_cmd = devx_obj_cmd,
	.obj_destroy = devx_obj_destroy,
	.query_eqn = devx_query_eqn,
	.pd_number = devx_pd_number,
	.uar_alloc = devx_uar_alloc,
	.uar_free = devx_uar_free,
};
