/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Counters of a device. One counter set per device is bound to all its QPs; its 32-bit counters are
 * extended to 64 bits. The congestion counters are those of the port.
 */
#include <errno.h>
#include <string.h>

#include "mlx5.h"

#define CNT(field_, stat_)                                                                         \
	{                                                                                          \
		BB_PRM_Q_COUNTER_##field_, offsetof(struct bb_dev_stats, stat_)                    \
	}

/*
 * Table of device counters, each with the statistic that it is added to. Several counters may be
 * added to one statistic.
 */
static const struct {
	struct bb_prm_field field;
	size_t stat;
} counters[] = {
	CNT(RX_WRITE_REQUESTS, rx_write),
	CNT(RX_READ_REQUESTS, rx_read),
	CNT(RX_ATOMIC_REQUESTS, rx_atomic),
	CNT(OUT_OF_BUFFER, out_of_buffer),
	CNT(OUT_OF_SEQUENCE, out_of_sequence),
	CNT(DUPLICATE_REQUEST, duplicate),
	CNT(RNR_NAK_RETRY_ERR, rnr_nak_retry),
	CNT(LOCAL_ACK_TIMEOUT_ERR, ack_timeout),
	CNT(REQ_REMOTE_ACCESS_ERRORS, remote_access_err),
	CNT(REQ_REMOTE_OPERATION_ERRORS, remote_op_err),
	CNT(REQ_REMOTE_INVALID_REQUEST, remote_invalid_req),
	CNT(REQ_TRANSPORT_RETRIES_EXCEEDED, retry_exceeded),
	CNT(REQ_RNR_RETRIES_EXCEEDED, rnr_retry_exceeded),
	CNT(REQ_LOCAL_PROTECTION, local_protection_err),
	CNT(REQ_LOCAL_LENGTH_ERROR, local_length_err),
	CNT(CQ_OVERFLOW, cq_overflow),
	CNT(RESP_CQE_FLUSH_ERROR, flushed),
	CNT(REQ_CQE_FLUSH_ERROR, flushed),
};
BB_STATIC_ASSERT(RTE_DIM(counters) == MLX5_N_COUNTERS, "struct mlx5_counters keeps them");

void
mlx5_counters_init(struct mlx5_dev *d)
{
	uint8_t in[BB_PRM_SZ_SHORT] = {0}, out[BB_PRM_SZ_SHORT] = {0};
	struct mlx5_counters *c = &d->counters;
	int ret;

	mlx5_cmd_set_op(in, BB_PRM_OP_ALLOC_Q_COUNTER);
	ret = d->cmd->obj_create(d->ctx, in, sizeof(in), out, sizeof(out), &c->obj);
	if (ret != 0) {
		c->obj = NULL;
		BB_LOG(WARNING, "%s: cannot allocate a counter set: bb_dev_stats() returns zeros",
		       d->ctx->name);
		return;
	}
	c->id = bb_prm_get(out, BB_PRM_ALLOC_Q_COUNTER_OUT_ID);
}

int
mlx5_counters_fini(struct mlx5_dev *d)
{
	int ret = 0;

	if (d->counters.obj != NULL)
		ret = mlx5_obj_destroy(d, "DEALLOC_Q_COUNTER", d->counters.obj);
	if (ret == 0)
		d->counters.obj = NULL;
	return ret;
}

static uint64_t
wide(const void *out, struct bb_prm_field high, struct bb_prm_field low)
{
	return (uint64_t)bb_prm_get(out, high) << 32 | bb_prm_get(out, low);
}

/*
 * Adds the congestion counters to @stats. Some PCI functions of cards refuse the query although
 * they report the capability. After such a refusal, later calls do not query again.
 */
static void
congestion(struct mlx5_dev *d, struct bb_dev_stats *stats)
{
	uint8_t in[BB_PRM_SZ_QUERY_CONG_STATISTICS_IN] = {0};
	uint8_t out[BB_PRM_SZ_QUERY_CONG_STATISTICS_OUT] = {0};

	if (!d->caps.cong_statistics)
		return;
	mlx5_cmd_set_op(in, BB_PRM_OP_QUERY_CONG_STATISTICS);
	if (mlx5_general(d, "QUERY_CONG_STATISTICS", in, sizeof(in), out, sizeof(out)) != 0) {
		d->caps.cong_statistics = false;
		return;
	}
	stats->ecn_marked = wide(out, BB_PRM_CONG_NP_ECN_MARKED_ROCE_PACKETS_HIGH,
				 BB_PRM_CONG_NP_ECN_MARKED_ROCE_PACKETS_LOW);
	stats->cnp_sent = wide(out, BB_PRM_CONG_NP_CNP_SENT_HIGH, BB_PRM_CONG_NP_CNP_SENT_LOW);
	stats->cnp_handled =
		wide(out, BB_PRM_CONG_RP_CNP_HANDLED_HIGH, BB_PRM_CONG_RP_CNP_HANDLED_LOW);
}

int
mlx5_stats(struct bb_dev *dev, struct bb_dev_stats *stats)
{
	uint8_t in[BB_PRM_SZ_QUERY_Q_COUNTER_IN] = {0}, out[BB_PRM_SZ_QUERY_Q_COUNTER_OUT] = {0};
	struct mlx5_dev *d = mlx5_dev_of(dev);
	struct mlx5_counters *c = &d->counters;
	uint32_t v, i;
	int ret;

	memset(stats, 0, sizeof(*stats));
	if (c->obj == NULL)
		return 0;
	mlx5_cmd_set_op(in, BB_PRM_OP_QUERY_Q_COUNTER);
	bb_prm_set(in, BB_PRM_QUERY_Q_COUNTER_ID, c->id);
	ret = mlx5_obj_query(d, "QUERY_Q_COUNTER", c->obj, in, sizeof(in), out, sizeof(out));
	if (ret != 0)
		return ret;
	for (i = 0; i < RTE_DIM(counters); i++) {
		uint64_t *stat = (uint64_t *)(void *)((uint8_t *)stats + counters[i].stat);

		v = bb_prm_get(out, counters[i].field);
		c->sum[i] += (uint32_t)(v - c->last[i]);
		c->last[i] = v;
		*stat += c->sum[i];
	}
	congestion(d, stats);
	return 0;
}

int
mlx5_drops(struct bb_dev *dev, struct bb_dev_drop *drops, unsigned int n)
{
	struct mlx5_dev *d = mlx5_dev_of(dev);

	return d->cmd->drops != NULL ? d->cmd->drops(d->ctx, drops, n) : -ENOTSUP;
}

int
mlx5_qp_retries(const struct bb_qp *qp, uint64_t *retries, uint64_t *rnr_retries)
{
	struct mlx5_dev *d = mlx5_dev_of(qp->ctrl->pd->dev);

	if (d->cmd->qp_retries == NULL)
		return -ENOTSUP;
	return d->cmd->qp_retries(d->ctx, qp->qpn, retries, rnr_retries);
}
