/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* What libibverbs and libmlx5 ask by write(). */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>

#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include "kernel.h"

#define MAX_DM (1u << 20)
/* ib_user_verbs.h has no names for them. */
#define PORT_DOWN   1
#define PORT_ACTIVE 4

static int
get_context(const struct uverbs_cmd *c)
{
	const struct mlx5_ib_alloc_ucontext_resp drv = {
		.qp_tab_size = 1 << 18,
		.bf_reg_size = 512,
		.cache_line_size = 64,
		.max_sq_desc_sz = 1008,
		.max_rq_desc_sz = 512,
		.max_send_wqebb = 32768,
		.max_recv_wr = 32768,
		.max_srq_recv_wr = 32767,
		.num_ports = 1,
		.response_length = sizeof(drv),
		.cqe_version = 1,
		.cmds_supp_uhw = MLX5_USER_CMDS_SUPP_UHW_CREATE_AH,
		.log_uar_size = 12,
		.num_uars_per_page = 1,
	};
	const struct ib_uverbs_get_context_resp core = {
		.async_fd = (uint32_t)eventfd(0, EFD_CLOEXEC),
		.num_comp_vectors = 1,
	};
	int ret = kernel_soft == NULL
			  ? soft_cmd_if.open("soft0", "progress=thread,no_clock", &kernel_soft)
			  : 0;

	return ret != 0 ? -ret : uverbs_answer(c, &core, sizeof(core), &drv, sizeof(drv));
}

/* Of what libmlx5 asks for at the opening; capabilities are read from the device's mailbox. */
static int
query_device(const struct uverbs_cmd *c)
{
	const struct ib_uverbs_ex_query_device_resp core = {
		.response_length = sizeof(core),
		.max_dm_size = MAX_DM,
	};
	size_t len = c->out_len < sizeof(core) ? c->out_len : sizeof(core);

	return uverbs_answer(c, &core, len, NULL, 0);
}

static int
query_port(const struct uverbs_cmd *c)
{
	struct ib_uverbs_query_port_resp core = {0};
	struct ib_uverbs_query_port q;
	struct mlx5_port port;
	int ret;

	memcpy(&q, c->in, sizeof(q));
	ret = kernel_soft->cmd->port_query(kernel_soft, q.port_num, &port);
	if (ret != 0)
		return -ret;
	core.state = port.state == BB_PORT_ACTIVE ? PORT_ACTIVE : PORT_DOWN;
	core.lid = port.lid;
	core.gid_tbl_len = (int32_t)port.gids;
	core.pkey_tbl_len = 1;
	core.max_mtu = (uint8_t)(__builtin_ctz(port.max_mtu) - 7);
	core.active_mtu = (uint8_t)(__builtin_ctz(port.active_mtu) - 7);
	core.link_layer = port.link_layer == BB_LINK_ETHERNET ? 2 : 1;
	return uverbs_answer(c, &core, sizeof(core), NULL, 0);
}

static int
alloc_pd(const struct uverbs_cmd *c)
{
	struct ib_uverbs_alloc_pd_resp core;
	struct mlx5_ib_alloc_pd_resp drv;
	struct mlx5_pd *pd;
	int ret = kernel_soft->cmd->pd_alloc(kernel_soft, &pd);

	if (ret != 0)
		return -ret;
	core.pd_handle = kernel_keep(PD, pd);
	drv.pdn = pd->pdn;
	return uverbs_answer(c, &core, sizeof(core), &drv, sizeof(drv));
}

static int
reg_mr(const struct uverbs_cmd *c)
{
	struct ib_uverbs_reg_mr_resp core = {0};
	struct mlx5_mr_attr attr;
	struct ib_uverbs_reg_mr q;
	struct mlx5_pd *pd;
	struct mlx5_mr *mr;
	int ret;

	memcpy(&q, c->in, sizeof(q));
	pd = kernel_get(PD, q.pd_handle);
	if (pd == NULL)
		return EINVAL;
	attr = mlx5_mr_mem((void *)(uintptr_t)q.start, q.length, q.access_flags);
	attr.iova = q.hca_va;
	ret = kernel_soft->cmd->mr_reg(kernel_soft, pd, &attr, &mr);
	if (ret != 0)
		return -ret;
	core.mr_handle = kernel_keep(MR, mr);
	core.lkey = mr->lkey;
	core.rkey = mr->rkey;
	return uverbs_answer(c, &core, sizeof(core), NULL, 0);
}

static int
rereg_mr(const struct uverbs_cmd *c)
{
	struct ib_uverbs_rereg_mr_resp core = {0};
	struct ib_uverbs_rereg_mr q;
	struct mlx5_mr *mr;
	int ret;

	memcpy(&q, c->in, sizeof(q));
	mr = kernel_get(MR, q.mr_handle);
	if (mr == NULL)
		return EINVAL;
	ret = kernel_soft->cmd->mr_rereg(kernel_soft, mr, q.flags, kernel_get(PD, q.pd_handle),
					 (void *)(uintptr_t)q.start, q.length, q.access_flags);
	if (ret != 0)
		return -ret;
	core.lkey = mr->lkey;
	core.rkey = mr->rkey;
	return uverbs_answer(c, &core, sizeof(core), NULL, 0);
}

static int
alloc_mw(const struct uverbs_cmd *c)
{
	struct ib_uverbs_alloc_mw_resp core = {0};
	struct ib_uverbs_alloc_mw q;
	struct mlx5_pd *pd;
	struct mlx5_mw *mw;
	int ret;

	memcpy(&q, c->in, sizeof(q));
	pd = kernel_get(PD, q.pd_handle);
	if (pd == NULL)
		return EINVAL;
	ret = kernel_soft->cmd->mw_alloc(kernel_soft, pd, q.mw_type, &mw);
	if (ret != 0)
		return -ret;
	core.mw_handle = kernel_keep(MW, mw);
	core.rkey = mw->rkey;
	return uverbs_answer(c, &core, sizeof(core), NULL, 0);
}

static int
create_ah(const struct uverbs_cmd *c)
{
	struct ib_uverbs_create_ah_resp core;
	struct mlx5_ib_create_ah_resp drv = {.response_length = sizeof(drv)};
	struct ib_uverbs_create_ah q;
	struct mlx5_pd *pd;
	struct mlx5_av av;
	int ret;

	memcpy(&q, c->in, sizeof(q));
	pd = kernel_get(PD, q.pd_handle);
	if (pd == NULL)
		return EINVAL;
	ret = kernel_soft->cmd->av_resolve(kernel_soft, pd, q.attr.port_num, q.attr.grh.sgid_index,
					   q.attr.grh.dgid, &av);
	if (ret != 0)
		return -ret;
	memcpy(drv.dmac, av.dmac, sizeof(av.dmac));
	core.ah_handle = kernel_keep(AH, pd);
	return uverbs_answer(c, &core, sizeof(core), &drv, sizeof(drv));
}

/* Those that end something are of one form: the handle, in front or behind a response. */
static int
end(const struct uverbs_cmd *c, enum kernel_kind kind)
{
	uint32_t handle;

	if (c->in_len < sizeof(handle))
		return EINVAL;
	memcpy(&handle, c->in, sizeof(handle));
	return kernel_destroy(kind, handle);
}

int
kernel_write(uint32_t command, const struct uverbs_cmd *c)
{
	switch (command) {
	case IB_USER_VERBS_CMD_GET_CONTEXT:
		return get_context(c);
	case IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_QUERY_DEVICE:
		return query_device(c);
	case IB_USER_VERBS_CMD_QUERY_PORT:
		return query_port(c);
	case IB_USER_VERBS_CMD_ALLOC_PD:
		return alloc_pd(c);
	case IB_USER_VERBS_CMD_DEALLOC_PD:
		return end(c, PD);
	case IB_USER_VERBS_CMD_REG_MR:
		return reg_mr(c);
	case IB_USER_VERBS_CMD_REREG_MR:
		return rereg_mr(c);
	case IB_USER_VERBS_CMD_DEREG_MR:
		return end(c, MR);
	case IB_USER_VERBS_CMD_ALLOC_MW:
		return alloc_mw(c);
	case IB_USER_VERBS_CMD_DEALLOC_MW:
		return end(c, MW);
	case IB_USER_VERBS_CMD_CREATE_AH:
		return create_ah(c);
	case IB_USER_VERBS_CMD_DESTROY_AH:
		return end(c, AH);
	default:
		return EOPNOTSUPP;
	}
}
