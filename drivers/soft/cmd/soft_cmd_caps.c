/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* QUERY_HCA_CAP: the capabilities that the device reports. */
#include "bb_prm_kernel.h"
#include "soft_ctl.h"
#include "soft_hooks.h"
#include "soft_host.h"
#include "soft_kernel.h"
#include "soft_pf.h"

#define SOFT_SYNDROME 0xbb010000u

static void
set(void *caps, struct bb_prm_field f, uint32_t v)
{
	bb_prm_set(caps, f, v);
}

static void
general_caps(const struct soft_dev *dev, void *caps)
{
	const struct soft_opts *opts = &dev->opts;

	set(caps, BB_PRM_HCA_LOG_MAX_SRQ_SZ, opts->no_srq ? 0 : SOFT_LOG_MAX_SRQ_SZ);
	set(caps, BB_PRM_HCA_LOG_MAX_RMP, opts->no_srq ? 0 : SOFT_LOG_MAX_RMP);
	set(caps, BB_PRM_HCA_BASIC_CYCLIC, !opts->no_srq);
	set(caps, BB_PRM_HCA_LOG_MAX_QP_SZ, SOFT_LOG_MAX_QP_SZ);
	set(caps, BB_PRM_HCA_LOG_MAX_QP,
	    opts->port.host[0] != '\0' ? SOFT_LOG_QPNS : SOFT_LOG_MAX_QP);
	set(caps, BB_PRM_HCA_EVENT_CAP, 1);
	set(caps, BB_PRM_HCA_LOG_MAX_CQ_SZ, SOFT_LOG_MAX_CQ_SZ);
	set(caps, BB_PRM_HCA_LOG_MAX_CQ, SOFT_LOG_MAX_CQ);
	set(caps, BB_PRM_HCA_RELAXED_ORDERING_WRITE, !opts->no_relaxed);
	set(caps, BB_PRM_HCA_LOG_MAX_MKEY, opts->log_max_mkey);
	/*
	 * An ON_DEMAND MR over the whole address space needs this capability, fixed_buffer_size and
	 * UMR.
	 */
	set(caps, BB_PRM_HCA_UMR_EXTENDED_TRANSLATION_OFFSET, dev->odp);
	set(caps, BB_PRM_HCA_NULL_MKEY, dev->odp);
	set(caps, BB_PRM_HCA_PG, dev->odp);
	set(caps, BB_PRM_HCA_LOG_MAX_MRW_SZ, 63);
	set(caps, BB_PRM_HCA_LOG_MAX_RA_REQ_QP, SOFT_LOG_MAX_RA);
	set(caps, BB_PRM_HCA_LOG_MAX_RA_RES_QP, SOFT_LOG_MAX_RA);
	set(caps, BB_PRM_HCA_MAX_QP_CNT, opts->no_counters ? 0 : SOFT_MAX_COUNTER_SETS - 1);
	set(caps, BB_PRM_HCA_CC_QUERY_ALLOWED, !opts->no_counters && !opts->link_ib);
	/* Type of the port: 0 is MLX5_CAP_PORT_TYPE_IB, 1 is MLX5_CAP_PORT_TYPE_ETH. */
	set(caps, BB_PRM_HCA_PORT_TYPE, opts->link_ib ? 0 : 1);
	set(caps, BB_PRM_HCA_NUM_PORTS, 1);
	set(caps, BB_PRM_HCA_LOG_MAX_MSG, opts->log_max_msg);
	/* The device accepts every static rate but does not limit the rate. */
	set(caps, BB_PRM_HCA_STAT_RATE_SUPPORT, 0xfffe);
	/* CQE version 1: CQEs contain the user index. */
	set(caps, BB_PRM_HCA_CQE_VERSION, 1);
	set(caps, BB_PRM_HCA_ROCE, !opts->link_ib);
	set(caps, BB_PRM_HCA_ATOMIC, !opts->no_atomic);
	set(caps, BB_PRM_HCA_DEVICE_MEMORY, !opts->no_dm);
	set(caps, BB_PRM_HCA_MAX_INDIRECTION, opts->no_mkey ? 0 : SOFT_INDIRECTION);
	set(caps, BB_PRM_HCA_LOG_MAX_KLM_LIST_SIZE, opts->no_mkey ? 0 : SOFT_LOG_MAX_KLM);
	set(caps, BB_PRM_HCA_FIXED_BUFFER_SIZE, !opts->no_mkey && !opts->no_ksm);
	set(caps, BB_PRM_HCA_UMR_INDIRECT_MKEY_DISABLED, opts->no_umr);
	set(caps, BB_PRM_HCA_UMR_MODIFY_ATOMIC_DISABLED, opts->no_umr_atomic);
	set(caps, BB_PRM_HCA_REPEATED_BLOCK_DISABLED, opts->no_interleaved);
	/*
	 * The value 1 is MLX5_CAP_UMR_FENCE_SMALL: a WQE that uses a key after a UMR needs the
	 * small fence.
	 */
	set(caps, BB_PRM_HCA_UMR_FENCE, 1);
	/*
	 * The capability imaicl announces memory windows of type 2B (Linux mlx5_ib_query_device()).
	 */
	set(caps, BB_PRM_HCA_IMAICL, !opts->no_mw && !opts->no_umr);
	set(caps, BB_PRM_HCA_CQ_OI, 1);
	set(caps, BB_PRM_HCA_CQ_RESIZE, !opts->no_cq_resize);
	set(caps, BB_PRM_HCA_CQ_MODERATION, !opts->no_cq_moderation);
	set(caps, BB_PRM_HCA_CQE_COMPRESSION, !opts->no_compress);
	set(caps, BB_PRM_HCA_CQE_COMPRESSION_MAX_NUM, opts->no_compress ? 0 : SOFT_ZIP_MAX);
	/* The device's clock is the TSC, so its frequency is that of the TSC. */
	set(caps, BB_PRM_HCA_DEVICE_FREQUENCY_KHZ, opts->no_clock ? 0 : soft_clock_khz());
	set(caps, BB_PRM_HCA_UAR_4K, 1);
	set(caps, BB_PRM_HCA_BF, !opts->no_bf);
	/* log2 of the size in bytes of a BlueFlame register, both halves together. */
	set(caps, BB_PRM_HCA_LOG_BF_REG_SIZE, opts->no_bf ? 0 : 9);
	set(caps, BB_PRM_HCA_MAX_WQE_SZ_SQ, SOFT_MAX_SQ_WQE);
	set(caps, BB_PRM_HCA_MAX_WQE_SZ_RQ, SOFT_MAX_RQ_STRIDE);
	set(caps, BB_PRM_HCA_MAX_QP_MCG, SOFT_MAX_QP_MCG);
	set(caps, BB_PRM_HCA_LOG_MAX_MCG, SOFT_LOG_MAX_MCG);
	set(caps, BB_PRM_HCA_LOG_MAX_PD, SOFT_LOG_MAX_PD);
	set(caps, BB_PRM_HCA_LOG_MAX_UCTX, 8);
	set(caps, BB_PRM_HCA_LOG_MAX_UMEM, SOFT_LOG_MAX_UMEM);
}

static void
atomic_caps(const struct soft_opts *opts, void *caps)
{
	/*
	 * Bits of the supported atomics: 0 is MLX5_ATOMIC_OPS_CMP_SWAP, 1 FETCH_ADD, 2
	 * EXTENDED_CMP_SWAP, 3 EXTENDED_FETCH_ADD. The size field is the sum of the supported
	 * operand sizes in bytes.
	 */
	set(caps, BB_PRM_ATOMIC_CAP_MODE, opts->no_ext_atomic ? 0x3 : 0xf);
	set(caps, BB_PRM_ATOMIC_CAP_SIZE_QP,
	    opts->no_ext_atomic ? SOFT_ATOMIC_SIZE : 4 | SOFT_ATOMIC_SIZE);
	/*
	 * The value 1 is MLX5_ATOMIC_REQ_MODE_HOST_ENDIANNESS: memory and result are in host byte
	 * order.
	 */
	set(caps, BB_PRM_ATOMIC_CAP_REQ_8B_ENDIANNESS_MODE, 1);
}

static void
roce_caps(const struct soft_opts *opts, void *caps)
{
	/*
	 * Timestamps that QPs may request: 0 is MLX5_TIMESTAMP_FORMAT_CAP_FREE_RUNNING, 1 is
	 * MLX5_TIMESTAMP_FORMAT_CAP_REAL_TIME.
	 */
	set(caps, BB_PRM_ROCE_CAP_QP_TS_FORMAT, opts->no_clock);
	/*
	 * RoCE versions of the device: bit 0 is MLX5_ROCE_VERSION_1_CAP, bit 2 is
	 * MLX5_ROCE_VERSION_2_CAP.
	 */
	set(caps, BB_PRM_ROCE_CAP_VERSION, opts->wire ? 1 << 2 : 1 << 0 | 1 << 2);
	set(caps, BB_PRM_ROCE_CAP_R_ROCE_MIN_SRC_UDP_PORT, SOFT_MIN_UDP_SPORT);
	set(caps, BB_PRM_ROCE_CAP_R_ROCE_MAX_SRC_UDP_PORT, UINT16_MAX);
	set(caps, BB_PRM_ROCE_CAP_ADDRESS_TABLE_SIZE, SOFT_MAX_GIDS);
}

/* Sets the bits of the supported event types, 0 to 63. Path migration events are not supported. */
static void
dev_event_caps(void *caps)
{
	bb_prm_set64(bb_prm_sub(caps, BB_PRM_DEV_EVENT_CAP_AFFILIATED), BB_PRM_F(0, 0, 64),
		     SOFT_EVENTS_OBJ);
	bb_prm_set64(bb_prm_sub(caps, BB_PRM_DEV_EVENT_CAP_UNAFFILIATED), BB_PRM_F(0, 0, 64),
		     SOFT_EVENTS_DEV);
}

static void
dev_mem_caps(const struct soft_opts *opts, void *caps)
{
	set(caps, BB_PRM_DEV_MEM_CAP_MEMIC, 1);
	/*
	 * log2 of the smallest allocation of device memory: 64 bytes (MLX5_MEMIC_BASE_SIZE). The
	 * next field is the log2 of the largest alignment divided by this size.
	 */
	set(caps, BB_PRM_DEV_MEM_CAP_LOG_MIN_MEMIC_ALLOC_SIZE, 6);
	set(caps, BB_PRM_DEV_MEM_CAP_LOG_MAX_MEMIC_ADDR_ALIGNMENT, SOFT_LOG_DM_ALIGN - 6);
	bb_prm_set64(caps, BB_PRM_DEV_MEM_CAP_MEMIC_BAR_START_ADDR, SOFT_DM_BAR);
	set(caps, BB_PRM_DEV_MEM_CAP_MEMIC_BAR_SIZE, opts->dm);
	set(caps, BB_PRM_DEV_MEM_CAP_MAX_MEMIC_SIZE, opts->dm);
}

int
soft_cmd_query_hca_cap(struct soft_cmd *cmd)
{
	static const struct soft_field fields[] = {{BB_PRM_CMD_OP_MOD, 0}};
	const struct soft_opts *opts = &cmd->dev->opts;
	/*
	 * Bit 0 of op_mod selects the current or the largest values, which are equal on this
	 * device. The other bits select the capability group.
	 */
	uint32_t type = bb_prm_get(cmd->in, BB_PRM_CMD_OP_MOD) >> 1;
	uint8_t *caps = cmd->out + BB_PRM_HCA_CAP_OUT_CAPS;
	int ret;

	ret = soft_cmd_only(cmd, fields, RTE_DIM(fields));
	if (ret != 0)
		return ret;
	switch (type) {
	case BB_PRM_CAP_GENERAL:
		general_caps(cmd->dev, caps);
		return 0;
	case BB_PRM_CAP_ATOMIC:
		if (opts->no_atomic)
			return SOFT_REFUSE(cmd, BAD_PARAM,
					   "no atomic capabilities: the device has no atomics");
		atomic_caps(opts, caps);
		return 0;
	case BB_PRM_CAP_ODP:
		if (!cmd->dev->odp)
			return SOFT_REFUSE(
				cmd, BAD_PARAM,
				"no ODP capabilities: the device has no on-demand paging");
		soft_cmd_odp_caps(cmd, caps);
		return 0;
	case BB_PRM_CAP_ROCE:
		if (opts->link_ib)
			return SOFT_REFUSE(cmd, BAD_PARAM,
					   "no RoCE capabilities: the port is an InfiniBand port");
		roce_caps(opts, caps);
		return 0;
	case BB_PRM_CAP_DEV_MEM:
		if (opts->no_dm)
			return SOFT_REFUSE(
				cmd, BAD_PARAM,
				"no device memory capabilities: the device has no device memory");
		dev_mem_caps(opts, caps);
		return 0;
	case BB_PRM_CAP_FLOW_TABLE:
		/*
		 * All capabilities of flow tables are 0, because the device has none. Every card
		 * reports this group, so programs read it without checking nic_flow_table first.
		 */
		return 0;
	case BB_PRM_CAP_DEV_EVENT:
		dev_event_caps(caps);
		return 0;
	default:
		return SOFT_REFUSE(cmd, BAD_PARAM, "unknown capability type 0x%x", type);
	}
}
