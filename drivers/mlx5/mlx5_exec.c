/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Executes commands. If a command fails, logs the cause and returns a negative errno. */
#include <errno.h>
#include <string.h>

#include "mlx5.h"

/*
 * Statuses of a refused command. Texts and errnos are the kernel's
 * (drivers/net/ethernet/mellanox/mlx5/core/cmd.c), with one exception: "no free resource" is
 * -ENOMEM and not -EAGAIN, because a retry does not help.
 */
static const struct {
	uint8_t status;
	int err;
	const char *text;
} statuses[] = {
	{BB_PRM_STAT_INT_ERR, -EIO, "internal error"},
	{BB_PRM_STAT_BAD_OP, -EOPNOTSUPP, "command not supported"},
	{BB_PRM_STAT_BAD_PARAM, -EINVAL, "bad parameter"},
	{BB_PRM_STAT_BAD_SYS_STATE, -EIO, "bad system state"},
	{BB_PRM_STAT_BAD_RES, -EINVAL, "no such resource"},
	{BB_PRM_STAT_RES_BUSY, -EBUSY, "resource busy"},
	{BB_PRM_STAT_LIM_ERR, -ENOMEM, "limit exceeded"},
	{BB_PRM_STAT_BAD_RES_STATE, -EINVAL, "resource in the wrong state"},
	{BB_PRM_STAT_IX_ERR, -EINVAL, "bad index"},
	{BB_PRM_STAT_NO_RES, -ENOMEM, "no free resource"},
	{BB_PRM_STAT_BAD_QP_STATE, -EINVAL, "QP in the wrong state"},
	{BB_PRM_STAT_BAD_SIZE_OUTS_CQES, -EINVAL, "bad CQ size"},
	{BB_PRM_STAT_BAD_INP_LEN, -EIO, "bad input length"},
	{BB_PRM_STAT_BAD_OUTP_LEN, -EIO, "bad output length"},
};

/* Returns advice for the log on an errno that the kernel returned, not the device. */
static const char *
hint(int err)
{
	switch (err) {
	case -EPERM:
	case -EACCES:
		return ": no permission; give the process read and write access to "
		       "/dev/infiniband/uverbs*";
	case -ENOMEM:
		return ": out of memory; raise the locked memory limit (ulimit -l)";
	case -EOPNOTSUPP:
		return ": the kernel or firmware does not support this command; update them";
	case -EIO:
	case -ENODEV:
		return ": the device is gone or in error; close the device and open it again";
	default:
		return "";
	}
}

int
mlx5_cmd_failed(const struct mlx5_dev *d, const char *what, int err, const void *out)
{
	uint32_t status, syndrome;
	unsigned int i;

	if (err != -EREMOTEIO) {
		BB_LOG(ERR, "%s: %s failed: %s%s", d->ctx->name, what, strerror(-err), hint(err));
		return err;
	}
	status = bb_prm_get(out, BB_PRM_CMD_STATUS);
	syndrome = bb_prm_get(out, BB_PRM_CMD_SYNDROME);
	for (i = 0; i < RTE_DIM(statuses); i++) {
		if (statuses[i].status != status)
			continue;
		BB_LOG(ERR,
		       "%s: %s: the device rejected the command: %s (status 0x%x, syndrome 0x%x)",
		       d->ctx->name, what, statuses[i].text, status, syndrome);
		return statuses[i].err;
	}
	BB_LOG(ERR, "%s: %s: the device rejected the command: status 0x%x, syndrome 0x%x",
	       d->ctx->name, what, status, syndrome);
	return -EIO;
}

void
mlx5_cmd_set_op(void *in, uint16_t opcode)
{
	bb_prm_set(in, BB_PRM_CMD_OPCODE, opcode);
}

int
mlx5_general(struct mlx5_dev *d, const char *what, const void *in, size_t inlen, void *out,
	     size_t outlen)
{
	int ret = d->cmd->general(d->ctx, in, inlen, out, outlen);

	return ret == 0 ? 0 : mlx5_cmd_failed(d, what, ret, out);
}

int
mlx5_obj_create(struct mlx5_dev *d, const char *what, const void *in, size_t inlen, void *out,
		size_t outlen, struct mlx5_obj **obj)
{
	int ret = d->cmd->obj_create(d->ctx, in, inlen, out, outlen, obj);

	return ret == 0 ? 0 : mlx5_cmd_failed(d, what, ret, out);
}

int
mlx5_obj_modify(struct mlx5_dev *d, const char *what, struct mlx5_obj *obj, const void *in,
		size_t inlen)
{
	uint8_t out[BB_PRM_SZ_SHORT] = {0};
	int ret = d->cmd->obj_modify(obj, in, inlen, out, sizeof(out));

	return ret == 0 ? 0 : mlx5_cmd_failed(d, what, ret, out);
}

int
mlx5_obj_query(struct mlx5_dev *d, const char *what, struct mlx5_obj *obj, const void *in,
	       size_t inlen, void *out, size_t outlen)
{
	int ret = d->cmd->obj_query(obj, in, inlen, out, outlen);

	return ret == 0 ? 0 : mlx5_cmd_failed(d, what, ret, out);
}

int
mlx5_obj_destroy(struct mlx5_dev *d, const char *what, struct mlx5_obj *obj)
{
	int ret = d->cmd->obj_destroy(obj);

	if (ret != 0)
		BB_LOG(ERR, "%s: %s failed: %s", d->ctx->name, what, strerror(-ret));
	return ret;
}
