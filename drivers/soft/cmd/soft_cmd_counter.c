/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Commands ALLOC_Q_COUNTER, DEALLOC_Q_COUNTER, QUERY_Q_COUNTER and QUERY_CONG_STATISTICS. */
#include <stddef.h>
#include <stdlib.h>

#include "soft_ctl.h"
#include "soft_shm.h"

#define SOFT_SYNDROME 0xbb040000u

int
soft_cmd_alloc_q_counter(struct soft_cmd *cmd)
{
	struct soft_ctl *ctl = cmd->dev->ctl;
	struct soft_counters *set;
	uint32_t id;
	int ret;

	ret = soft_cmd_only(cmd, NULL, 0);
	if (ret != 0)
		return ret;
	if (cmd->dev->opts.no_counters)
		return SOFT_REFUSE(cmd, NO_RES,
				   "the device has no counter sets (option no_counters)");
	set = calloc(1, sizeof(*set));
	if (set == NULL)
		return SOFT_REFUSE(cmd, NO_RES, "out of memory for a counter set");
	if (soft_ids_alloc(&ctl->counter_ids, &id) != 0) {
		free(set);
		return SOFT_REFUSE(cmd, NO_RES, "all %d counter sets are in use: free some",
				   SOFT_MAX_COUNTER_SETS - 1);
	}
	ctl->counter_ctx[id] = cmd->ctx;
	__atomic_store_n(&cmd->dev->counters[id], set, __ATOMIC_RELEASE);
	bb_prm_set(cmd->out, BB_PRM_ALLOC_Q_COUNTER_OUT_ID, id);
	return 0;
}

int
soft_cmd_dealloc_q_counter(struct soft_cmd *cmd)
{
	static const struct soft_field fields[] = {{BB_PRM_DEALLOC_Q_COUNTER_ID, 0}};
	uint32_t id = bb_prm_get(cmd->in, BB_PRM_DEALLOC_Q_COUNTER_ID);
	struct soft_ctl *ctl = cmd->dev->ctl;
	struct soft_counters *set = cmd->dev->counters[id];
	int ret;

	ret = soft_cmd_only(cmd, fields, RTE_DIM(fields));
	if (ret != 0)
		return ret;
	if (set == NULL || !soft_ctx_may_use(cmd->ctx, ctl->counter_ctx[id]))
		return SOFT_REFUSE(cmd, BAD_RES, "counter set %u does not exist", id);
	if (ctl->counter_refs[id] != 0)
		return SOFT_REFUSE(cmd, RES_BUSY,
				   "counter set %u is used by %u QPs: destroy them first", id,
				   ctl->counter_refs[id]);
	__atomic_store_n(&cmd->dev->counters[id], NULL, __ATOMIC_RELEASE);
	soft_quiesce();
	ctl->counter_ctx[id] = NULL;
	soft_ids_free(&ctl->counter_ids, id);
	free(set);
	return 0;
}

struct counter_field {
	struct bb_prm_field f;
	size_t counter; /* Offset of the counter in struct soft_counters. */
};

#define AT(name) offsetof(struct soft_counters, name)
static const struct counter_field counter_fields[] = {
	{BB_PRM_Q_COUNTER_RX_WRITE_REQUESTS, AT(rx_write)},
	{BB_PRM_Q_COUNTER_RX_READ_REQUESTS, AT(rx_read)},
	{BB_PRM_Q_COUNTER_RX_ATOMIC_REQUESTS, AT(rx_atomic)},
	{BB_PRM_Q_COUNTER_OUT_OF_BUFFER, AT(out_of_buffer)},
	{BB_PRM_Q_COUNTER_OUT_OF_SEQUENCE, AT(out_of_sequence)},
	{BB_PRM_Q_COUNTER_DUPLICATE_REQUEST, AT(duplicate)},
	{BB_PRM_Q_COUNTER_RNR_NAK_RETRY_ERR, AT(rnr_nak_retry)},
	{BB_PRM_Q_COUNTER_PACKET_SEQ_ERR, AT(packet_seq_err)},
	{BB_PRM_Q_COUNTER_LOCAL_ACK_TIMEOUT_ERR, AT(ack_timeout)},
	{BB_PRM_Q_COUNTER_RESP_LOCAL_LENGTH_ERROR, AT(resp_local_length)},
	{BB_PRM_Q_COUNTER_REQ_LOCAL_LENGTH_ERROR, AT(req_local_length)},
	{BB_PRM_Q_COUNTER_LOCAL_OPERATION_ERROR, AT(local_operation)},
	{BB_PRM_Q_COUNTER_RESP_LOCAL_PROTECTION, AT(resp_local_prot)},
	{BB_PRM_Q_COUNTER_REQ_LOCAL_PROTECTION, AT(req_local_prot)},
	{BB_PRM_Q_COUNTER_REQ_REMOTE_INVALID_REQUEST, AT(req_remote_invalid)},
	{BB_PRM_Q_COUNTER_RESP_REMOTE_INVALID_REQUEST, AT(resp_remote_invalid)},
	{BB_PRM_Q_COUNTER_REQ_REMOTE_ACCESS_ERRORS, AT(req_remote_access)},
	{BB_PRM_Q_COUNTER_RESP_REMOTE_ACCESS_ERRORS, AT(resp_remote_access)},
	{BB_PRM_Q_COUNTER_REQ_REMOTE_OPERATION_ERRORS, AT(req_remote_op)},
	{BB_PRM_Q_COUNTER_REQ_TRANSPORT_RETRIES_EXCEEDED, AT(retry_exceeded)},
	{BB_PRM_Q_COUNTER_REQ_RNR_RETRIES_EXCEEDED, AT(rnr_retry_exceeded)},
	{BB_PRM_Q_COUNTER_CQ_OVERFLOW, AT(cq_overflow)},
	{BB_PRM_Q_COUNTER_RESP_CQE_FLUSH_ERROR, AT(resp_flush)},
	{BB_PRM_Q_COUNTER_REQ_CQE_FLUSH_ERROR, AT(req_flush)},
};

int
soft_cmd_query_q_counter(struct soft_cmd *cmd)
{
	static const struct soft_field fields[] = {{BB_PRM_QUERY_Q_COUNTER_CLEAR, 0},
						   {BB_PRM_QUERY_Q_COUNTER_ID, 0}};
	uint32_t id = bb_prm_get(cmd->in, BB_PRM_QUERY_Q_COUNTER_ID);
	bool clear = bb_prm_get(cmd->in, BB_PRM_QUERY_Q_COUNTER_CLEAR) != 0;
	struct soft_counters *set = cmd->dev->counters[id];
	unsigned int i;
	int ret;

	ret = soft_cmd_only(cmd, fields, RTE_DIM(fields));
	if (ret != 0)
		return ret;
	if (set == NULL || !soft_ctx_may_use(cmd->ctx, cmd->dev->ctl->counter_ctx[id]))
		return SOFT_REFUSE(cmd, BAD_RES, "counter set %u does not exist", id);
	/*
	 * Engines add their counts only from time to time. soft_quiesce() makes every engine add
	 * them now.
	 */
	soft_quiesce();
	soft_shm_collect(cmd->dev, NULL);
	for (i = 0; i < RTE_DIM(counter_fields); i++) {
		uint64_t *counter = (uint64_t *)((uint8_t *)set + counter_fields[i].counter);
		uint64_t v = clear ? __atomic_exchange_n(counter, 0, __ATOMIC_RELAXED)
				   : __atomic_load_n(counter, __ATOMIC_RELAXED);

		/* A counter of the command has 32 bits and wraps, as on a card. */
		bb_prm_set(cmd->out, counter_fields[i].f, (uint32_t)v);
	}
	return 0;
}

int
soft_cmd_query_cong_statistics(struct soft_cmd *cmd)
{
	static const struct soft_field fields[] = {{BB_PRM_QUERY_CONG_STATISTICS_CLEAR, 0}};
	const struct {
		uint64_t *counter;
		struct bb_prm_field high, low;
	} where[] = {
		{&cmd->dev->cong.rp_cnp_handled, BB_PRM_CONG_RP_CNP_HANDLED_HIGH,
		 BB_PRM_CONG_RP_CNP_HANDLED_LOW},
		{&cmd->dev->cong.np_ecn_marked_roce_packets,
		 BB_PRM_CONG_NP_ECN_MARKED_ROCE_PACKETS_HIGH,
		 BB_PRM_CONG_NP_ECN_MARKED_ROCE_PACKETS_LOW},
		{&cmd->dev->cong.np_cnp_sent, BB_PRM_CONG_NP_CNP_SENT_HIGH,
		 BB_PRM_CONG_NP_CNP_SENT_LOW},
	};
	bool clear = bb_prm_get(cmd->in, BB_PRM_QUERY_CONG_STATISTICS_CLEAR) != 0;
	unsigned int i;
	int ret;

	ret = soft_cmd_only(cmd, fields, RTE_DIM(fields));
	if (ret != 0)
		return ret;
	soft_quiesce();
	if (cmd->dev->opts.no_counters || cmd->dev->opts.link_ib)
		return SOFT_REFUSE(cmd, BAD_OP, "the device has no congestion statistics");
	for (i = 0; i < RTE_DIM(where); i++) {
		uint64_t v = clear ? __atomic_exchange_n(where[i].counter, 0, __ATOMIC_RELAXED)
				   : __atomic_load_n(where[i].counter, __ATOMIC_RELAXED);

		bb_prm_set(cmd->out, where[i].high, (uint32_t)(v >> 32));
		bb_prm_set(cmd->out, where[i].low, (uint32_t)v);
	}
	return 0;
}
