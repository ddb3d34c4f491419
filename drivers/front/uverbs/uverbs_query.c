/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Queries: the context, and the attributes of the device and of its port. */
#include <errno.h>
#include <string.h>

#include <infiniband/verbs.h>
#include <rdma/mlx5-abi.h>

#include "bb_prm.h"
#include "uverbs_priv.h"

/*
 * Values that ib_user_verbs.h does not name. They are in <rdma/ib_verbs.h> of Linux and in
 * infiniband/verbs.h.
 */
#define PORT_DOWN           1
#define PORT_ACTIVE         4
#define IB_ATOMIC_HCA       1
#define PORT_CM_SUP         (1u << 16)
#define PORT_IP_BASED_GIDS  (1u << 26)
#define PHYS_STATE_DISABLED 3
#define PHYS_STATE_LINK_UP  5
#define WIDTH_4X            2
#define SPEED_EDR           32
#define QPF_GRH_REQUIRED    1
/* Firmware 20.31.1014 of a ConnectX-6, the device that the files in /sys show. */
#define FW_VER         ((uint64_t)20 << 32 | 31 << 16 | 1014)
#define VENDOR_ID      0x02c9
#define VENDOR_PART_ID 4123

bool
uverbs_has_clock(const struct uverbs_file *f)
{
	return f->attr.clock;
}

void
uverbs_fill_context(const struct uverbs_file *f, struct mlx5_ib_alloc_ucontext_resp *to)
{
	uverbs_context(to);
	to->cmds_supp_uhw = MLX5_USER_CMDS_SUPP_UHW_CREATE_AH;
	if (uverbs_has_clock(f))
		to->comp_mask = MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_CORE_CLOCK_OFFSET;
}

int
uverbs_get_context(struct uverbs_file *f, const struct uverbs_cmd *c)
{
	struct ib_uverbs_get_context_resp core = {.num_comp_vectors = UVERBS_COMP_VECTORS};
	struct mlx5_ib_alloc_ucontext_resp drv;
	int fd;

	if (f->async != NULL)
		return EINVAL;
	fd = uverbs_events_new(f, UV_ASYNC);
	if (fd < 0)
		return -fd;
	core.async_fd = (uint32_t)fd;
	uverbs_fill_context(f, &drv);
	return uverbs_reply(c, &core, sizeof(core), &drv, sizeof(drv));
}

static bool
query_caps(struct uverbs_file *f, enum bb_prm_cap type, uint8_t out[BB_PRM_SZ_QUERY_HCA_CAP_OUT])
{
	uint8_t in[BB_PRM_SZ_QUERY_HCA_CAP_IN] = {0};

	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_QUERY_HCA_CAP);
	bb_prm_set(in, BB_PRM_CMD_OP_MOD, (uint32_t)type << 1 | 1);
	memset(out, 0, BB_PRM_SZ_QUERY_HCA_CAP_OUT);
	return f->soft->cmd->general(f->soft, in, sizeof(in), out, BB_PRM_SZ_QUERY_HCA_CAP_OUT) ==
	       0;
}

/*
 * Reads the capabilities of ON_DEMAND regions from the device. A kernel also supports regions of
 * the whole address space, so this function reports that, too.
 */
static void
odp_caps(struct uverbs_file *f, struct ib_uverbs_odp_caps *to)
{
	uint8_t out[BB_PRM_SZ_QUERY_HCA_CAP_OUT];
	const void *cap = out + BB_PRM_HCA_CAP_OUT_CAPS;
	const void *rc;

	if (!query_caps(f, BB_PRM_CAP_ODP, out))
		return;
	rc = bb_prm_csub(bb_prm_csub(cap, BB_PRM_ODP_CAP_TRANSPORT), BB_PRM_ODP_SCHEME_RC);
	to->general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
	to->per_transport_caps.rc_odp_caps =
		(bb_prm_get(rc, BB_PRM_ODP_SERVICE_WRITE) != 0 ? IBV_ODP_SUPPORT_WRITE : 0) |
		(bb_prm_get(rc, BB_PRM_ODP_SERVICE_READ) != 0 ? IBV_ODP_SUPPORT_READ : 0) |
		(bb_prm_get(rc, BB_PRM_ODP_SERVICE_ATOMIC) != 0 ? IBV_ODP_SUPPORT_ATOMIC : 0);
}

/* Returns the largest allocation of device memory, 0 if there is none. */
static uint64_t
max_dm(struct uverbs_file *f)
{
	uint8_t out[BB_PRM_SZ_QUERY_HCA_CAP_OUT];

	return query_caps(f, BB_PRM_CAP_DEV_MEM, out)
		       ? bb_prm_get(out + BB_PRM_HCA_CAP_OUT_CAPS,
				    BB_PRM_DEV_MEM_CAP_MAX_MEMIC_SIZE)
		       : 0;
}

/*
 * Fills in the attributes of the device. Takes them from the capabilities that the device reports,
 * as far as it reports them.
 */
static void
fill_device(struct uverbs_file *f, struct ib_uverbs_query_device_resp *to)
{
	uint8_t out[BB_PRM_SZ_QUERY_HCA_CAP_OUT] = {0};
	const void *cap = out + BB_PRM_HCA_CAP_OUT_CAPS;
	struct bb_gid gid;

	(void)query_caps(f, BB_PRM_CAP_GENERAL, out);
	*to = (struct ib_uverbs_query_device_resp){
		.fw_ver = FW_VER,
		.vendor_id = VENDOR_ID,
		.vendor_part_id = VENDOR_PART_ID,
		.max_mr_size = UINT64_MAX,
		.page_size_cap = ~(uint64_t)4095,
		.max_qp = 1 << bb_prm_get(cap, BB_PRM_HCA_LOG_MAX_QP),
		.max_qp_wr = 1 << 15,
		.max_sge = 30,
		.max_sge_rd = 30,
		.max_cq = 1 << 16,
		.max_cqe = (1 << 22) - 1,
		.max_mr = 1u << bb_prm_get(cap, BB_PRM_HCA_LOG_MAX_MKEY),
		.max_pd = 1 << 16,
		.max_qp_rd_atom = UVERBS_MAX_RD_ATOMIC,
		.max_qp_init_rd_atom = UVERBS_MAX_RD_ATOMIC,
		.max_res_rd_atom = UVERBS_MAX_RD_ATOMIC << 17,
		.atomic_cap = IB_ATOMIC_HCA,
		.max_ah = 1 << 16,
		.max_mw = 1u << bb_prm_get(cap, BB_PRM_HCA_LOG_MAX_MKEY),
		.device_cap_flags =
			IB_UVERBS_DEVICE_MEM_WINDOW | IB_UVERBS_DEVICE_MEM_WINDOW_TYPE_2B,
		.max_srq = 1 << 15,
		.max_srq_wr = (1 << 15) - 1,
		.max_srq_sge = 31,
		.max_mcast_grp = 1u << bb_prm_get(cap, BB_PRM_HCA_LOG_MAX_MCG),
		.max_mcast_qp_attach = bb_prm_get(cap, BB_PRM_HCA_MAX_QP_MCG),
		.max_pkeys = 1,
		.local_ca_ack_delay = 16,
		.phys_port_cnt = 1,
	};
	to->max_total_mcast_qp_attach = to->max_mcast_qp_attach * to->max_mcast_grp;
	/* Uses the interface identifier (EUI-64) of the link-local GID as the node GUID. */
	if (f->soft->cmd->gid_query(f->soft, 1, 0, &gid) == 0) {
		memcpy(&to->node_guid, gid.raw + 8, sizeof(to->node_guid));
		to->sys_image_guid = to->node_guid;
	}
}

int
uverbs_query_device(struct uverbs_file *f, const struct uverbs_cmd *c)
{
	struct ib_uverbs_query_device_resp core;

	fill_device(f, &core);
	return uverbs_reply(c, &core, sizeof(core), NULL, 0);
}

int
uverbs_query_device_ex(struct uverbs_file *f, const struct uverbs_cmd *c)
{
	struct ib_uverbs_ex_query_device_resp core = {
		.response_length = sizeof(core),
		.cq_moderation_caps = {.max_cq_moderation_count = UINT16_MAX,
				       .max_cq_moderation_period = 4095},
		.max_dm_size = max_dm(f),
	};
	const size_t len = c->out_len < sizeof(core) ? c->out_len : sizeof(core);
	uint8_t out[BB_PRM_SZ_QUERY_HCA_CAP_OUT];

	fill_device(f, &core.base);
	odp_caps(f, &core.odp_caps);
	if (query_caps(f, BB_PRM_CAP_GENERAL, out))
		core.hca_core_clock =
			bb_prm_get(out + BB_PRM_HCA_CAP_OUT_CAPS, BB_PRM_HCA_DEVICE_FREQUENCY_KHZ);
	core.timestamp_mask = core.hca_core_clock != 0 ? INT64_MAX : 0;
	return uverbs_reply(c, &core, len, NULL, 0);
}

int
uverbs_query_port(struct uverbs_file *f, const struct uverbs_cmd *c)
{
	struct ib_uverbs_query_port_resp core = {0};
	struct ib_uverbs_query_port q;
	struct mlx5_port port;
	bool up, eth;
	int ret;

	memcpy(&q, c->in, sizeof(q));
	ret = f->soft->cmd->port_query(f->soft, q.port_num, &port);
	if (ret != 0)
		return -ret;
	up = f->attr.link_up || port.state == BB_PORT_ACTIVE;
	eth = port.link_layer == BB_LINK_ETHERNET;
	core.state = up ? PORT_ACTIVE : PORT_DOWN;
	core.phys_state = up ? PHYS_STATE_LINK_UP : PHYS_STATE_DISABLED;
	core.lid = port.lid;
	core.gid_tbl_len = (int32_t)port.gids;
	core.pkey_tbl_len = 1;
	core.max_msg_sz = 1u << 30;
	core.max_vl_num = 1;
	core.max_mtu = (uint8_t)(__builtin_ctz(port.max_mtu) - 7);
	core.active_mtu = (uint8_t)(__builtin_ctz(port.active_mtu) - 7);
	core.active_width = WIDTH_4X;
	core.active_speed = SPEED_EDR;
	core.port_cap_flags = PORT_CM_SUP | (eth ? PORT_IP_BASED_GIDS : 0);
	core.flags = eth || port.grh_required ? QPF_GRH_REQUIRED : 0;
	core.link_layer = eth ? 2 : 1;
	return uverbs_reply(c, &core, sizeof(core), NULL, 0);
}
