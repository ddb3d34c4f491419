/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Multicast groups. The command is that of the kernel's mlx5_cmd_attach_mcg(). DEVX treats an
 * attachment as an object: ATTACH_TO_MCG creates it, and its destruction sends DETACH_FROM_MCG
 * (Linux drivers/infiniband/hw/mlx5/devx.c, devx_is_obj_create_cmd() and
 * devx_obj_build_destroy_cmd()). The device needs no LID.
 */
#include <string.h>

#include "mlx5.h"

int
mlx5_mcast_attach(struct bb_qp *qp, struct bb_mcast *m)
{
	uint8_t in[BB_PRM_SZ_MCG] = {0}, out[BB_PRM_SZ_SHORT] = {0};
	struct mlx5_dev *d = mlx5_dev_of(qp->ctrl->pd->dev);
	struct mlx5_obj *obj;
	int ret;

	mlx5_cmd_set_op(in, BB_PRM_OP_ATTACH_TO_MCG);
	bb_prm_set(in, BB_PRM_ATTACH_TO_MCG_QPN, qp->qpn);
	memcpy(bb_prm_sub(in, BB_PRM_ATTACH_TO_MCG_GID), m->gid, sizeof(m->gid));
	ret = mlx5_obj_create(d, "ATTACH_TO_MCG", in, sizeof(in), out, sizeof(out), &obj);
	if (ret == 0)
		m->priv = obj;
	return ret;
}

int
mlx5_mcast_detach(struct bb_qp *qp, struct bb_mcast *m)
{
	return mlx5_obj_destroy(mlx5_dev_of(qp->ctrl->pd->dev), "DETACH_FROM_MCG", m->priv);
}
