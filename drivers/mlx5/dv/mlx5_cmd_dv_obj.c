/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* DEVX commands and objects. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bb_prm.h"
#include "mlx5_cmd_dv.h"

/*
 * Clears the header of an output mailbox before a command. If the device refuses the command,
 * kernels since 5.17 return EREMOTEIO and write the device's status to the mailbox. Older kernels
 * return an errno derived from the status and do not write the mailbox. A status without an errno
 * would be a kernel bug; it is also handled as an error.
 */
static void
clear(void *out, size_t outlen)
{
	memset(out, 0, outlen < BB_PRM_SZ_SHORT ? outlen : BB_PRM_SZ_SHORT);
}

static int
outcome(int err, const void *out)
{
	if (bb_prm_get(out, BB_PRM_CMD_STATUS) != BB_PRM_STAT_OK)
		return -EREMOTEIO;
	if (err == EREMOTEIO)
		return -EIO;
	return -err;
}

int
dv_general(struct mlx5_ctx *ctx, const void *in, size_t inlen, void *out, size_t outlen)
{
	clear(out, outlen);
	return outcome(mlx5dv_devx_general_cmd(dv_ctx_of(ctx)->ibv, in, inlen, out, outlen), out);
}

int
dv_obj_create(struct mlx5_ctx *ctx, const void *in, size_t inlen, void *out, size_t outlen,
	      struct mlx5_obj **obj)
{
	struct dv_ctx *c = dv_ctx_of(ctx);
	struct dv_obj *o;
	int ret;

	o = calloc(1, sizeof(*o));
	if (o == NULL)
		return -ENOMEM;
	clear(out, outlen);
	errno = 0;
	o->dv = mlx5dv_devx_obj_create(c->ibv, in, inlen, out, outlen);
	if (o->dv == NULL) {
		ret = outcome(-bb_ibv_errno(), out);
		free(o);
		return ret;
	}
	o->base.ctx = ctx;
	dv_born(c);
	*obj = &o->base;
	return 0;
}

int
dv_obj_modify(struct mlx5_obj *obj, const void *in, size_t inlen, void *out, size_t outlen)
{
	clear(out, outlen);
	return outcome(mlx5dv_devx_obj_modify(dv_obj_of(obj)->dv, in, inlen, out, outlen), out);
}

int
dv_obj_query(struct mlx5_obj *obj, const void *in, size_t inlen, void *out, size_t outlen)
{
	clear(out, outlen);
	return outcome(mlx5dv_devx_obj_query(dv_obj_of(obj)->dv, in, inlen, out, outlen), out);
}

int
dv_obj_destroy(struct mlx5_obj *obj)
{
	struct dv_obj *o = dv_obj_of(obj);
	struct dv_ctx *c = dv_ctx_of(obj->ctx);
	int ret = dv_died(c, mlx5dv_devx_obj_destroy(o->dv));

	if (ret != 0)
		return ret;
	if (o->events != NULL)
		dv_event_remove(c, o->events);
	free(o);
	return 0;
}

int
dv_query_eqn(struct mlx5_ctx *ctx, uint32_t vector, uint32_t *eqn)
{
	return -mlx5dv_devx_query_eqn(dv_ctx_of(ctx)->ibv, vector, eqn);
}
