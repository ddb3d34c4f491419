/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Calls of libibverbs and libmlx5 by write(). */
#include <errno.h>
#include <string.h>

#include <infiniband/verbs.h>
#include <rdma/mlx5-abi.h>

#include "bb_prm.h"
#include "kernel.h"

#define MAX_DM (1u << 17) /* the software device's limit */
/* ib_user_verbs.h has no names for these. */
#define PORT_DOWN     1
#define IB_ATOMIC_HCA 1
#define PORT_ACTIVE   4

static int
get_context(const struct uverbs_cmd *c)
{
	const bool clock = kernel_clock_page() != NULL;
	struct mlx5_ib_alloc_ucontext_resp drv;
	struct ib_uverbs_get_context_resp core = {.num_comp_vectors = 1};
	int fd, ret = kernel_soft == NULL ? soft_cmd_if.open("soft0",
							     clock ? "progress=thread"
								   : "progress=thread,no_clock",
							     &kernel_soft)
					  : 0;

	if (ret != 0)
		return -ret;
	fd = kernel_channel(ASYNC);
	if (fd < 0)
		return -fd;
	core.async_fd = (uint32_t)fd;
	uverbs_context(&drv);
	drv.cmds_supp_uhw = MLX5_USER_CMDS_SUPP_UHW_CREATE_AH;
	if (clock)
		drv.comp_mask = MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_CORE_CLOCK_OFFSET;
	return uverbs_reply(c, &core, sizeof(core), &drv, sizeof(drv));
}

static bool
query_caps(enum bb_prm_cap type, uint8_t out[BB_PRM_SZ_QUERY_HCA_CAP_OUT])
{
	uint8_t in[BB_PRM_SZ_QUERY_HCA_CAP_IN] = {0};

	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_QUERY_HCA_CAP);
	bb_prm_set(in, BB_PRM_CMD_OP_MOD, (uint32_t)type << 1 | 1);
	memset(out, 0, BB_PRM_SZ_QUERY_HCA_CAP_OUT);
	return kernel_soft->cmd->general(kernel_soft, in, sizeof(in), out,
					 BB_PRM_SZ_QUERY_HCA_CAP_OUT) == 0;
}

/*
 * Capabilities of ON_DEMAND regions from the device's mailbox; the kernel provides the whole
 * address space.
 */
static void
odp_caps(struct ib_uverbs_odp_caps *to)
{
	uint8_t out[BB_PRM_SZ_QUERY_HCA_CAP_OUT];
	const void *cap = out + BB_PRM_HCA_CAP_OUT_CAPS;
	const void *rc;

	if (!query_caps(BB_PRM_CAP_ODP, out))
		return;
	rc = bb_prm_csub(bb_prm_csub(cap, BB_PRM_ODP_CAP_TRANSPORT), BB_PRM_ODP_SCHEME_RC);
	to->general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
	to->per_transport_caps.rc_odp_caps =
		(bb_prm_get(rc, BB_PRM_ODP_SERVICE_WRITE) != 0 ? IBV_ODP_SUPPORT_WRITE : 0) |
		(bb_prm_get(rc, BB_PRM_ODP_SERVICE_READ) != 0 ? IBV_ODP_SUPPORT_READ : 0) |
		(bb_prm_get(rc, BB_PRM_ODP_SERVICE_ATOMIC) != 0 ? IBV_ODP_SUPPORT_ATOMIC : 0);
}

/* Returns the clock's rate, 0 if there is no readable clock. */
static uint32_t
clock_khz(void)
{
	uint8_t out[BB_PRM_SZ_QUERY_HCA_CAP_OUT];
	const void *cap = out + BB_PRM_HCA_CAP_OUT_CAPS;

	return query_caps(BB_PRM_CAP_GENERAL, out)
		       ? bb_prm_get(cap, BB_PRM_HCA_DEVICE_FREQUENCY_KHZ)
		       : 0;
}

/* Answers what libmlx5 queries at open, from the capabilities in the device's mailbox. */
static int
query_device(const struct uverbs_cmd *c)
{
	struct ib_uverbs_ex_query_device_resp core = {
		.base =
			{
				.max_mr_size = UINT64_MAX,
				.page_size_cap = ~(uint64_t)4095,
				.max_qp = 1 << 17,
				.max_qp_wr = 1 << 15,
				.max_sge = 30,
				.max_sge_rd = 30,
				.max_cq = 1 << 16,
				.max_cqe = (1 << 22) - 1,
				.max_mr = 1 << 16,
				.max_pd = 1 << 16,
				.max_qp_rd_atom = 16,
				.max_qp_init_rd_atom = 16,
				.atomic_cap = IB_ATOMIC_HCA,
				.max_ah = 1 << 16,
				.max_mw = 1 << 16,
				.device_cap_flags = IB_UVERBS_DEVICE_MEM_WINDOW |
						    IB_UVERBS_DEVICE_MEM_WINDOW_TYPE_2B,
				.max_srq = 1 << 15,
				.max_srq_wr = (1 << 15) - 1,
				.max_srq_sge = 31,
				.max_mcast_grp = 1 << SOFT_LOG_MAX_MCG,
				.max_mcast_qp_attach = SOFT_MAX_QP_MCG,
				.max_total_mcast_qp_attach = SOFT_MAX_QP_MCG << SOFT_LOG_MAX_MCG,
				.max_pkeys = 1,
				.phys_port_cnt = 1,
			},
		.response_length = sizeof(core),
		.cq_moderation_caps = {.max_cq_moderation_count = UINT16_MAX,
				       .max_cq_moderation_period = 4095},
		.max_dm_size = MAX_DM,
	};
	size_t len = c->out_len < sizeof(core) ? c->out_len : sizeof(core);

	odp_caps(&core.odp_caps);
	core.hca_core_clock = clock_khz();
	core.timestamp_mask = core.hca_core_clock != 0 ? INT64_MAX : 0;
	return uverbs_reply(c, &core, len, NULL, 0);
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
	core.max_msg_sz = 1u << 30;
	core.max_mtu = (uint8_t)(__builtin_ctz(port.max_mtu) - 7);
	core.active_mtu = (uint8_t)(__builtin_ctz(port.active_mtu) - 7);
	core.link_layer = port.link_layer == BB_LINK_ETHERNET ? 2 : 1;
	return uverbs_reply(c, &core, sizeof(core), NULL, 0);
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
	return uverbs_reply(c, &core, sizeof(core), &drv, sizeof(drv));
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
	return uverbs_reply(c, &core, sizeof(core), NULL, 0);
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
	return uverbs_reply(c, &core, sizeof(core), NULL, 0);
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
	return uverbs_reply(c, &core, sizeof(core), NULL, 0);
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
	return uverbs_reply(c, &core, sizeof(core), &drv, sizeof(drv));
}

/* Destroy commands have one form: the handle, before or after a response. */
static int
end(const struct uverbs_cmd *c, enum kernel_kind kind)
{
	uint32_t handle;

	if (c->in_len < sizeof(handle))
		return EINVAL;
	memcpy(&handle, c->in, sizeof(handle));
	return kernel_destroy(kind, handle);
}

/* As end(), with a response that contains the number of events. */
static int
end_queue(const struct uverbs_cmd *c, enum kernel_kind kind)
{
	struct ib_uverbs_destroy_cq_resp cq;
	struct ib_uverbs_destroy_qp_resp qp;
	struct ib_uverbs_destroy_cq q;
	const void *p;
	int rc;

	memcpy(&q, c->in, sizeof(q));
	p = kernel_get(kind, q.cq_handle);
	if (p == NULL)
		return EINVAL;
	if (kind == QP && kernel_qp_has_groups(q.cq_handle))
		return EBUSY;
	kernel_queue_events(p, &cq);
	qp.events_reported = cq.async_events_reported;
	rc = kernel_destroy(kind, q.cq_handle);
	if (rc != 0)
		return rc;
	return kind == CQ ? uverbs_reply(c, &cq, sizeof(cq), NULL, 0)
			  : uverbs_reply(c, &qp, sizeof(qp), NULL, 0);
}

static int
create_channel(const struct uverbs_cmd *c)
{
	struct ib_uverbs_create_comp_channel_resp core;
	int fd = kernel_channel(COMP);

	if (fd < 0)
		return -fd;
	core.fd = (uint32_t)fd;
	return uverbs_reply(c, &core, sizeof(core), NULL, 0);
}

static int
create_cq(const struct uverbs_cmd *c)
{
	struct uverbs_cmd with = *c;
	struct ib_uverbs_create_cq q;

	memcpy(&q, c->in, sizeof(q));
	with.drv_in = c->in + sizeof(q);
	with.drv_len = c->in_len - sizeof(q);
	return kernel_create_cq(&with, q.user_handle, q.cqe, q.comp_channel, false);
}

static int
create_cq_ex(const struct uverbs_cmd *c)
{
	struct ib_uverbs_ex_create_cq q;

	memcpy(&q, c->in, sizeof(q));
	/* Each CQE has a timestamp. */
	return (q.flags & ~(uint32_t)IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION) == 0
		       ? kernel_create_cq(c, q.user_handle, q.cqe, q.comp_channel, true)
		       : EOPNOTSUPP;
}

static int
create_qp(const struct uverbs_cmd *c)
{
	struct uverbs_cmd with = *c;
	struct ib_uverbs_create_qp q;

	memcpy(&q, c->in, sizeof(q));
	with.drv_in = c->in + sizeof(q);
	with.drv_len = c->in_len - sizeof(q);
	return kernel_create_qp(&with, &q, false);
}

static int
create_qp_ex(const struct uverbs_cmd *c)
{
	struct ib_uverbs_create_qp q = {0};
	struct ib_uverbs_ex_create_qp e;

	memcpy(&e, c->in, sizeof(e));
	q.user_handle = e.user_handle;
	q.pd_handle = e.pd_handle;
	q.send_cq_handle = e.send_cq_handle;
	q.recv_cq_handle = e.recv_cq_handle;
	q.max_send_wr = e.max_send_wr;
	q.max_recv_wr = e.max_recv_wr;
	q.max_send_sge = e.max_send_sge;
	q.max_recv_sge = e.max_recv_sge;
	q.max_inline_data = e.max_inline_data;
	q.qp_type = e.qp_type;
	q.is_srq = e.is_srq;
	q.srq_handle = e.srq_handle;
	return kernel_create_qp(c, &q, true);
}

static int
query_qp(const struct uverbs_cmd *c)
{
	struct ib_uverbs_query_qp q;

	memcpy(&q, c->in, sizeof(q));
	return kernel_query_qp(c, q.qp_handle);
}

static int
modify_qp(const struct uverbs_cmd *c, bool ex)
{
	const struct ib_uverbs_ex_modify_qp_resp core = {.response_length = sizeof(core)};
	struct ib_uverbs_modify_qp q;
	int rc;

	memcpy(&q, c->in, sizeof(q));
	rc = kernel_modify_qp(&q);
	return rc != 0 || !ex ? rc : uverbs_reply(c, &core, sizeof(core), NULL, 0);
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
	case IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL:
		return create_channel(c);
	case IB_USER_VERBS_CMD_CREATE_CQ:
		return create_cq(c);
	case IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_CREATE_CQ:
		return create_cq_ex(c);
	case IB_USER_VERBS_CMD_RESIZE_CQ:
		return kernel_resize_cq(c);
	case IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_MODIFY_CQ:
		return kernel_modify_cq(c);
	case IB_USER_VERBS_CMD_DESTROY_CQ:
		return end_queue(c, CQ);
	case IB_USER_VERBS_CMD_CREATE_SRQ:
		return kernel_create_srq(c);
	case IB_USER_VERBS_CMD_MODIFY_SRQ:
		return kernel_modify_srq(c);
	case IB_USER_VERBS_CMD_QUERY_SRQ:
		return kernel_query_srq(c);
	case IB_USER_VERBS_CMD_DESTROY_SRQ:
		return end_queue(c, SRQ);
	case IB_USER_VERBS_CMD_CREATE_QP:
		return create_qp(c);
	case IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_CREATE_QP:
		return create_qp_ex(c);
	case IB_USER_VERBS_CMD_MODIFY_QP:
		return modify_qp(c, false);
	case IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_MODIFY_QP:
		return modify_qp(c, true);
	case IB_USER_VERBS_CMD_QUERY_QP:
		return query_qp(c);
	case IB_USER_VERBS_CMD_DESTROY_QP:
		return end_queue(c, QP);
	case IB_USER_VERBS_CMD_ATTACH_MCAST:
		return kernel_attach_mcast(c);
	case IB_USER_VERBS_CMD_DETACH_MCAST:
		return kernel_detach_mcast(c);
	case IB_USER_VERBS_CMD_DESTROY_AH:
		return end(c, AH);
	default:
		return EOPNOTSUPP;
	}
}
