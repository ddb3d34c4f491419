/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * HCA capabilities, read once when a device is opened. A device that the driver cannot use is
 * refused.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_bitops.h>
#include <rte_random.h>

#include "mlx5.h"

/* Bits of atomic_caps (kernel: MLX5_ATOMIC_OPS_*, _SIZE_QP_8BYTES, _REQ_MODE_HOST_ENDIANNESS). */
#define ATOMIC_OPS_CS_FA   0x3u
#define ATOMIC_SIZE_8      (1u << 3)
#define ATOMIC_OPS_EXT     0xcu /* _EXTENDED_CMP_SWAP, _EXTENDED_FETCH_ADD */
#define ATOMIC_SIZES_EXT   (1u << 2 | 1u << 3)
#define ATOMIC_HOST_ENDIAN 1u

/*
 * log2 of the unit of device memory alignment, which is 64 bytes (kernel: MLX5_MEMIC_BASE_ALIGN).
 */
#define MEMIC_LOG_BASE 6u

/* Bytes of the control and remote address segments, which precede the data of a WQE. */
#define WQE_HEAD (2 * BB_WQE_SEG)

/*
 * RoCEv2 UDP source ports if the device reports no range: IANA's dynamic ports, as in the kernel.
 */
#define SPORT_MIN 0xc000
#define SPORT_MAX 0xffff

/*
 * Values of roce_cap.qp_ts_format: 0 free-running clock only, 1 real time only, 2 both (kernel:
 * MLX5_TIMESTAMP_FORMAT_CAP_*).
 */
#define TS_CAP_REAL_TIME 1u
/* Values of qpc.ts_format (kernel: MLX5_TIMESTAMP_FORMAT_*). */
#define TS_FREE_RUNNING 0u
#define TS_DEFAULT      1u

/*
 * The value 1 of lagc.lag_state means that the ports are bonded. The value 1 of
 * lagc.port_select_mode means that a hash of the packet selects the port (kernel: MLX5_LAG_*).
 */
#define LAG_ACTIVE 1u
#define LAG_HASH   1u

static uint32_t
pow2(uint32_t log)
{
	return log < 31 ? 1u << log : 1u << 31;
}

static int
query(struct mlx5_dev *d, const char *what, enum bb_prm_cap type, void *out)
{
	uint8_t in[BB_PRM_SZ_QUERY_HCA_CAP_IN] = {0};

	mlx5_cmd_set_op(in, BB_PRM_OP_QUERY_HCA_CAP);
	bb_prm_set(in, BB_PRM_CMD_OP_MOD, (uint32_t)type << 1 | 1);
	memset(out, 0, BB_PRM_SZ_QUERY_HCA_CAP_OUT);
	return mlx5_general(d, what, in, sizeof(in), out, BB_PRM_SZ_QUERY_HCA_CAP_OUT);
}

static int
general(struct mlx5_dev *d, const uint8_t *cap)
{
	struct mlx5_caps *c = &d->caps;
	uint32_t cqe_version = bb_prm_get(cap, BB_PRM_HCA_CQE_VERSION);
	bool umr;

	/* CQEs of version 1 have the user index, by which the driver identifies the QP. */
	if (cqe_version != 1) {
		BB_LOG(ERR,
		       "%s: CQE version %u is not supported (1 is required): update the device's "
		       "firmware",
		       d->ctx->name, cqe_version);
		return -EOPNOTSUPP;
	}
	c->ports = bb_prm_get(cap, BB_PRM_HCA_NUM_PORTS);
	c->log_max_qp = bb_prm_get(cap, BB_PRM_HCA_LOG_MAX_QP);
	c->log_max_qp_sz = RTE_MIN(bb_prm_get(cap, BB_PRM_HCA_LOG_MAX_QP_SZ), 15u);
	c->log_max_cq = bb_prm_get(cap, BB_PRM_HCA_LOG_MAX_CQ);
	c->log_max_cq_sz = RTE_MIN(bb_prm_get(cap, BB_PRM_HCA_LOG_MAX_CQ_SZ), 22u);
	c->log_max_rmp = bb_prm_get(cap, BB_PRM_HCA_LOG_MAX_RMP);
	c->log_max_srq_sz = RTE_MIN(bb_prm_get(cap, BB_PRM_HCA_LOG_MAX_SRQ_SZ), 15u);
	/* A WQE of an SRQ needs a next segment and at least one data segment. */
	if (c->log_max_srq_sz == 0 || bb_prm_get(cap, BB_PRM_HCA_MAX_WQE_SZ_RQ) < 2 * BB_WQE_SEG)
		c->log_max_rmp = 0;
	c->log_max_mr = bb_prm_get(cap, BB_PRM_HCA_LOG_MAX_MRW_SZ);
	c->log_max_mkey = bb_prm_get(cap, BB_PRM_HCA_LOG_MAX_MKEY);
	c->stat_rates = bb_prm_get(cap, BB_PRM_HCA_STAT_RATE_SUPPORT);
	c->relaxed_ordering = bb_prm_get(cap, BB_PRM_HCA_RELAXED_ORDERING_WRITE) != 0;
	/*
	 * DPDK (mlx5_os_wrapped_mkey_create()) and UCX (uct_ib_md_parse_relaxed_order()) give every
	 * key of such a device relaxed ordering.
	 */
	c->relaxed_only = bb_prm_get(cap, BB_PRM_HCA_RELAXED_ORDERING_ONLY) != 0;
	if (c->relaxed_only)
		BB_LOG(WARNING,
		       "%s: the device accepts only keys with relaxed ordering: data of one message "
		       "may overtake the data of an earlier message; memory that peers write to "
		       "needs BB_ACCESS_RELAXED_ORDERING, and indirect keys get it",
		       d->ctx->name);
	/* Capabilities that the kernel requires for implicit ODP (internal_fill_odp_caps()). */
	c->odp_implicit = bb_prm_get(cap, BB_PRM_HCA_FIXED_BUFFER_SIZE) != 0 &&
			  bb_prm_get(cap, BB_PRM_HCA_NULL_MKEY) != 0 &&
			  bb_prm_get(cap, BB_PRM_HCA_UMR_EXTENDED_TRANSLATION_OFFSET) != 0 &&
			  bb_prm_get(cap, BB_PRM_HCA_UMR_INDIRECT_MKEY_DISABLED) == 0;
	c->log_max_ra_req = RTE_MIN(bb_prm_get(cap, BB_PRM_HCA_LOG_MAX_RA_REQ_QP), 7u);
	c->log_max_ra_res = RTE_MIN(bb_prm_get(cap, BB_PRM_HCA_LOG_MAX_RA_RES_QP), 7u);
	c->log_max_msg = bb_prm_get(cap, BB_PRM_HCA_LOG_MAX_MSG);
	if (bb_prm_get(cap, BB_PRM_HCA_MAX_INDIRECTION) != 0)
		c->max_klm = 1u << RTE_MIN(bb_prm_get(cap, BB_PRM_HCA_LOG_MAX_KLM_LIST_SIZE),
					   MLX5_LOG_MAX_KLM);
	c->ksm = bb_prm_get(cap, BB_PRM_HCA_FIXED_BUFFER_SIZE) != 0;
	/*
	 * If UMR may not change the atomic right, a key changed by UMR never has that right: see
	 * bb_sq_umr.c.
	 */
	c->mkey_atomics = !bb_prm_get(cap, BB_PRM_HCA_UMR_MODIFY_ATOMIC_DISABLED);
	umr = !bb_prm_get(cap, BB_PRM_HCA_UMR_INDIRECT_MKEY_DISABLED);
	c->umr = c->max_klm != 0 && umr;
	c->interleaved = c->umr && !bb_prm_get(cap, BB_PRM_HCA_REPEATED_BLOCK_DISABLED);
	/*
	 * Linux reports memory windows by IMAICL. UMR is needed too, because a bind is a UMR of the
	 * window's key.
	 */
	c->mw = bb_prm_get(cap, BB_PRM_HCA_IMAICL) != 0 && umr;
	if (bb_prm_get(cap, BB_PRM_HCA_LOG_MAX_UMEM) != 0)
		c->max_umem = 1u << bb_prm_get(cap, BB_PRM_HCA_LOG_MAX_UMEM);
	/* Values as in the kernel's mlx5_ib_query_device(). */
	c->max_qp_mcg = bb_prm_get(cap, BB_PRM_HCA_MAX_QP_MCG);
	if (c->max_qp_mcg != 0)
		c->max_mcg = pow2(bb_prm_get(cap, BB_PRM_HCA_LOG_MAX_MCG));
	c->max_wqe_sq =
		RTE_MIN(bb_prm_get(cap, BB_PRM_HCA_MAX_WQE_SZ_SQ), BB_WQE_MAX_DS * BB_WQE_SEG);
	/* lib/queue supports WQEs of at most 512 bytes in a receive queue. */
	c->max_wqe_rq = RTE_MIN(bb_prm_get(cap, BB_PRM_HCA_MAX_WQE_SZ_RQ), 512u);
	c->cong_statistics = bb_prm_get(cap, BB_PRM_HCA_CC_QUERY_ALLOWED) != 0;
	c->cq_resize = bb_prm_get(cap, BB_PRM_HCA_CQ_RESIZE) != 0;
	c->cq_moderation = bb_prm_get(cap, BB_PRM_HCA_CQ_MODERATION) != 0;
	c->cqe_compression = bb_prm_get(cap, BB_PRM_HCA_CQE_COMPRESSION) != 0;
	c->clock_hz = bb_prm_get(cap, BB_PRM_HCA_DEVICE_FREQUENCY_KHZ) * UINT64_C(1000);
	if (bb_prm_get(cap, BB_PRM_HCA_BF))
		c->bf_half = 1u << bb_prm_get(cap, BB_PRM_HCA_LOG_BF_REG_SIZE) >> 1;
	if (c->bf_half < BB_WQE_BB || d->ctx->no_bf)
		c->bf_half = 0;
	if (c->ports == 0 || c->ports > MLX5_MAX_PORTS || c->max_wqe_sq < BB_WQE_BB ||
	    c->max_wqe_rq < BB_WQE_SEG || c->log_max_qp == 0 || c->log_max_cq == 0) {
		BB_LOG(ERR,
		       "%s: unusable capabilities: num_ports %u (1 to %d), max_wqe_sz_sq %u (%u "
		       "or more), max_wqe_sz_rq %u (%u or more), log_max_qp %u, log_max_cq %u (1 "
		       "or more): update the device's firmware",
		       d->ctx->name, c->ports, MLX5_MAX_PORTS, c->max_wqe_sq, BB_WQE_BB,
		       c->max_wqe_rq, BB_WQE_SEG, c->log_max_qp, c->log_max_cq);
		return -EIO;
	}
	return 0;
}

static void
atomic(struct mlx5_dev *d, const uint8_t *cap)
{
	/*
	 * Results of atomics must be in host order, because the API cannot report another byte
	 * order.
	 */
	d->caps.atomic =
		(bb_prm_get(cap, BB_PRM_ATOMIC_CAP_MODE) & ATOMIC_OPS_CS_FA) == ATOMIC_OPS_CS_FA &&
		(bb_prm_get(cap, BB_PRM_ATOMIC_CAP_SIZE_QP) & ATOMIC_SIZE_8) != 0 &&
		bb_prm_get(cap, BB_PRM_ATOMIC_CAP_REQ_8B_ENDIANNESS_MODE) == ATOMIC_HOST_ENDIAN;
	/*
	 * UCX states: "FW requires indirect atomic MR address and length to be aligned to max
	 * supported atomic argument size". UCX does not create such keys if UMR may not change the
	 * atomic right (INDIRECT_ATOMICS).
	 */
	if (d->caps.atomic && d->caps.mkey_atomics)
		d->caps.mkey_atomic_align =
			rte_align32prevpow2(bb_prm_get(cap, BB_PRM_ATOMIC_CAP_SIZE_QP));
	/*
	 * Only results of 8 bytes are in host order. Results of other sizes are big endian, as in
	 * UCX (uct_ib_mlx5, ext_atomic_arg_sizes_be). Operands of more than 8 bytes are not
	 * supported, because no public source documents them.
	 */
	if (d->caps.atomic &&
	    (bb_prm_get(cap, BB_PRM_ATOMIC_CAP_MODE) & ATOMIC_OPS_EXT) == ATOMIC_OPS_EXT) {
		d->caps.masked_atomics =
			bb_prm_get(cap, BB_PRM_ATOMIC_CAP_SIZE_QP) & ATOMIC_SIZES_EXT;
		d->caps.masked_atomics_be = d->caps.masked_atomics & ~ATOMIC_SIZE_8;
	}
}

/*
 * Reads @cap, the capabilities of on-demand paging: whether remote WRITEs, READs and atomics may
 * use it. Local accesses may not. For a local access the kernel would have to read the WQE, and it
 * can read a WQE only in a queue that it created.
 */
static void
odp(struct mlx5_dev *d, const uint8_t *cap)
{
	const void *scheme = bb_prm_get(cap, BB_PRM_ODP_CAP_MEM_PAGE_FAULT)
				     ? bb_prm_csub(cap, BB_PRM_ODP_CAP_MEMORY)
				     : bb_prm_csub(cap, BB_PRM_ODP_CAP_TRANSPORT);
	const void *rc = bb_prm_csub(scheme, BB_PRM_ODP_SCHEME_RC);
	struct mlx5_caps *c = &d->caps;

	c->odp_write = bb_prm_get(rc, BB_PRM_ODP_SERVICE_WRITE) != 0;
	c->odp_read = bb_prm_get(rc, BB_PRM_ODP_SERVICE_READ) != 0;
	c->odp_atomic = bb_prm_get(rc, BB_PRM_ODP_SERVICE_ATOMIC) != 0;
	c->odp = c->odp_write || c->odp_read;
}

static void
roce(struct mlx5_dev *d, const uint8_t *cap)
{
	uint32_t min = bb_prm_get(cap, BB_PRM_ROCE_CAP_R_ROCE_MIN_SRC_UDP_PORT);
	uint32_t max = bb_prm_get(cap, BB_PRM_ROCE_CAP_R_ROCE_MAX_SRC_UDP_PORT);

	/*
	 * A device configured for real time (REAL_TIME_CLOCK_ENABLE, ConnectX-6 Dx and later)
	 * rejects QPs that request the free-running clock. Value 0 requests that clock (kernel
	 * get_qp_ts_format(), DPDK mlx5_ts_format_conv()). Timestamps of such a device are seconds
	 * and nanoseconds instead of ticks of clock_hz.
	 */
	if (bb_prm_get(cap, BB_PRM_ROCE_CAP_QP_TS_FORMAT) == TS_CAP_REAL_TIME) {
		BB_LOG(INFO,
		       "%s: no completion timestamps: the device is configured for real-time "
		       "timestamps (firmware setting REAL_TIME_CLOCK_ENABLE)",
		       d->ctx->name);
		d->caps.qp_ts_format = TS_DEFAULT;
		d->caps.clock_hz = 0;
	}
	if (min == 0 || max < min)
		return;
	d->caps.sport_min = (uint16_t)min;
	d->caps.sport_max = (uint16_t)max;
}

static void
dev_mem(struct mlx5_dev *d, const uint8_t *cap)
{
	if (!bb_prm_get(cap, BB_PRM_DEV_MEM_CAP_MEMIC))
		return;
	d->caps.max_dm = bb_prm_get(cap, BB_PRM_DEV_MEM_CAP_MAX_MEMIC_SIZE);
	d->caps.max_dm_log_align =
		MEMIC_LOG_BASE + bb_prm_get(cap, BB_PRM_DEV_MEM_CAP_LOG_MAX_MEMIC_ADDR_ALIGNMENT);
}

/*
 * Reads the types of events that the card supports. The kernel rejects a subscription to any other
 * type (is_valid_events()).
 */
static void
events(struct mlx5_dev *d, const uint8_t *cap)
{
	/* Read only types 0 to 63, because the driver subscribes to no other type. */
	d->caps.events =
		bb_prm_get64(bb_prm_csub(cap, BB_PRM_DEV_EVENT_CAP_AFFILIATED), BB_PRM_F(0, 0, 64));
}

/*
 * A card with bonded ports can choose the port of each packet by a hash. Returns true if a QP with
 * an assigned port bypasses that hash (port_select_flow_table_bypass). On such a card the kernel
 * assigns no ports to QPs, because each assignment uses an entry of a firmware table. (Linux,
 * mlx5_ib_lag_should_assign_affinity() in drivers/infiniband/hw/mlx5/mlx5_ib.h, and the commit that
 * adds the check.) @out is the buffer for a QUERY_HCA_CAP.
 */
static bool
hash_bypassed(struct mlx5_dev *d, uint8_t *out, bool port_selection)
{
	return port_selection &&
	       query(d, "QUERY_HCA_CAP (port selection)", BB_PRM_CAP_PORT_SELECTION, out) == 0 &&
	       bb_prm_get(out + BB_PRM_HCA_CAP_OUT_CAPS, BB_PRM_PORT_SELECTION_CAP_BYPASS) != 0;
}

/*
 * Decides whether the driver must distribute QPs over the ports of a bond, as the kernel does
 * (get_tx_affinity()). QPs without an assigned port have been seen to share one port. If the ports
 * are not bonded, no port is assigned. If the card chooses ports by a hash that an assigned port
 * would bypass, no port is assigned either. When the bond changes, the kernel creates a new device.
 *
 * Some PCI functions, such as virtual functions, cannot query the bond. For these, @affinity
 * decides: it is true if the device lets the driver assign a port to a QP (kernel:
 * mlx5_ib_lag_should_assign_affinity()).
 */
static void
lag(struct mlx5_dev *d, uint8_t *scratch, uint32_t ports, bool affinity, bool port_selection)
{
	uint8_t in[BB_PRM_SZ_SHORT] = {0}, out[BB_PRM_SZ_SHORT] = {0};
	const void *ctx = bb_prm_csub(out, BB_PRM_QUERY_LAG_OUT_CTX);

	mlx5_cmd_set_op(in, BB_PRM_OP_QUERY_LAG);
	if (d->cmd->general(d->ctx, in, sizeof(in), out, sizeof(out)) == 0)
		affinity = bb_prm_get(ctx, BB_PRM_LAGC_LAG_STATE) == LAG_ACTIVE &&
			   (bb_prm_get(ctx, BB_PRM_LAGC_PORT_SELECT_MODE) != LAG_HASH ||
			    !hash_bypassed(d, scratch, port_selection));
	else
		BB_LOG(INFO,
		       "%s: QUERY_LAG failed, so the capability lag_tx_port_affinity decides "
		       "whether QPs are spread over the ports",
		       d->ctx->name);
	if (!affinity)
		return;
	d->caps.lag_ports = ports;
	/*
	 * Start at a random port. If all processes started at the first port, processes with few
	 * QPs would use only that port.
	 */
	d->lag_next = (uint32_t)rte_rand_max(ports);
}

int
mlx5_caps_query(struct mlx5_dev *d)
{
	const uint8_t *cap;
	bool has_atomic, has_roce, has_odp, has_dev_mem, has_events;
	uint32_t lag_ports;
	uint8_t *out;
	int ret;

	d->caps.qp_ts_format = TS_FREE_RUNNING;
	d->caps.events = UINT64_MAX;
	d->caps.sport_min = SPORT_MIN;
	d->caps.sport_max = SPORT_MAX;
	out = malloc(BB_PRM_SZ_QUERY_HCA_CAP_OUT);
	if (out == NULL) {
		BB_LOG(ERR, "%s: out of memory for the answer of QUERY_HCA_CAP", d->ctx->name);
		return -ENOMEM;
	}
	cap = out + BB_PRM_HCA_CAP_OUT_CAPS;
	ret = query(d, "QUERY_HCA_CAP (general)", BB_PRM_CAP_GENERAL, out);
	if (ret != 0)
		goto done;
	ret = general(d, cap);
	if (ret != 0)
		goto done;
	has_atomic = bb_prm_get(cap, BB_PRM_HCA_ATOMIC) != 0;
	has_roce = bb_prm_get(cap, BB_PRM_HCA_ROCE) != 0;
	has_dev_mem = bb_prm_get(cap, BB_PRM_HCA_DEVICE_MEMORY) != 0;
	has_odp = bb_prm_get(cap, BB_PRM_HCA_PG) != 0;
	has_events = bb_prm_get(cap, BB_PRM_HCA_EVENT_CAP) != 0;
	lag_ports = bb_prm_get(cap, BB_PRM_HCA_NUM_LAG_PORTS);
	if (has_roce && lag_ports > 1)
		/*
		 * Use the buffer of the general capabilities as scratch space, because these have
		 * all been read.
		 */
		lag(d, out, lag_ports, bb_prm_get(cap, BB_PRM_HCA_LAG_AFFINITY) != 0,
		    bb_prm_get(cap, BB_PRM_HCA_PORT_SELECTION) != 0);
	if (has_atomic) {
		ret = query(d, "QUERY_HCA_CAP (atomic)", BB_PRM_CAP_ATOMIC, out);
		if (ret != 0)
			goto done;
		atomic(d, cap);
	}
	if (!d->caps.atomic)
		BB_LOG(INFO,
		       "%s: atomics are off: the device has no 8-byte atomics that return results "
		       "in host byte order",
		       d->ctx->name);
	if (has_odp) {
		ret = query(d, "QUERY_HCA_CAP (ODP)", BB_PRM_CAP_ODP, out);
		if (ret != 0)
			goto done;
		odp(d, cap);
	}
	if (has_roce) {
		ret = query(d, "QUERY_HCA_CAP (RoCE)", BB_PRM_CAP_ROCE, out);
		if (ret != 0)
			goto done;
		roce(d, cap);
	}
	if (has_dev_mem) {
		ret = query(d, "QUERY_HCA_CAP (device memory)", BB_PRM_CAP_DEV_MEM, out);
		if (ret != 0)
			goto done;
		dev_mem(d, cap);
	}
	if (has_events) {
		ret = query(d, "QUERY_HCA_CAP (events)", BB_PRM_CAP_DEV_EVENT, out);
		if (ret != 0)
			goto done;
		events(d, cap);
	}
done:
	free(out);
	return ret;
}

void
mlx5_caps_attr(const struct mlx5_dev *d, struct bb_dev_attr *attr)
{
	const struct mlx5_caps *c = &d->caps;

	memset(attr, 0, sizeof(*attr));
	memcpy(attr->driver, "mlx5", sizeof("mlx5"));
	attr->ports = c->ports;
	attr->max_qp = RTE_MIN(pow2(c->log_max_qp), BB_MAX_USER_INDEX);
	attr->max_cq = pow2(c->log_max_cq);
	attr->max_cqe = pow2(c->log_max_cq_sz);
	attr->comp_vectors = d->ctx->comp_vectors;
	attr->max_qp_wr = pow2(c->log_max_qp_sz);
	attr->max_sge = (c->max_wqe_sq - WQE_HEAD) / BB_WQE_SEG;
	attr->max_read_sge =
		(RTE_MIN(c->max_wqe_sq, BB_WQE_READ_MAX_DS * BB_WQE_SEG) - WQE_HEAD) / BB_WQE_SEG;
	attr->max_recv_sge = c->max_wqe_rq / BB_WQE_SEG;
	if (c->log_max_rmp != 0) {
		attr->max_srq = pow2(c->log_max_rmp);
		attr->max_srq_wr = pow2(c->log_max_srq_sz) - 1;
		attr->max_srq_sge = c->max_wqe_rq / BB_WQE_SEG - 1;
	}
	attr->max_inline = c->max_wqe_sq - WQE_HEAD - 4;
	attr->max_mr_size =
		c->log_max_mr == 0 || c->log_max_mr > 63 ? UINT64_MAX : 1ull << c->log_max_mr;
	attr->max_mr = pow2(c->log_max_mkey);
	attr->max_msg_size = 1ull << RTE_MIN(c->log_max_msg, MLX5_LOG_MSG_MAX);
	attr->max_rd_atomic = pow2(c->log_max_ra_req);
	attr->max_dest_rd_atomic = pow2(c->log_max_ra_res);
	attr->bf_size = c->bf_half;
	attr->max_dm_size = c->max_dm;
	attr->max_dm_log_align = c->max_dm_log_align;
	attr->max_umem = c->max_umem;
	attr->max_mcast_grp = c->max_mcg;
	attr->max_mcast_qp = c->max_qp_mcg;
	attr->dmabuf = d->ctx->dmabuf;
	attr->atomics = c->atomic;
	attr->masked_atomics = c->masked_atomics;
	attr->masked_atomics_be = c->masked_atomics_be;
	attr->odp = c->odp;
	attr->odp_write = c->odp_write;
	attr->odp_read = c->odp_read;
	attr->odp_atomic = c->odp && c->odp_atomic && c->atomic;
	attr->odp_implicit = c->odp && c->odp_implicit;
	attr->relaxed_ordering = c->relaxed_ordering || c->relaxed_only;
	attr->cq_resize = c->cq_resize && d->ctx->cq_resize;
	attr->mr_rereg = true;
	attr->refusal_events = mlx5_evt_refusals(d);
	attr->wc_solicited = true;
	attr->cq_moderation = c->cq_moderation;
	attr->cqe_compression = c->cqe_compression;
	attr->clock_hz = c->clock_hz;
	attr->memory_windows = c->mw;
	attr->memory_window_atomics = c->mw && c->atomic && c->mkey_atomics;
	attr->max_mkey_pieces = c->max_klm;
	attr->mkey_layout = c->umr;
	attr->mkey_atomic_align = c->max_klm != 0 ? c->mkey_atomic_align : 0;
	attr->mkey_interleaved = c->interleaved;
	attr->counters = d->counters.obj != NULL;
	attr->software = d->cmd->progress_of != NULL;
	attr->target_progress = d->ctx->target_progress;
	/*
	 * Report global atomicity only for the software device. The kernel reports IB_ATOMIC_HCA
	 * for every card (hw/mlx5/main.c, get_atomic_caps()).
	 */
	attr->atomics_global = c->atomic && attr->software;
}
