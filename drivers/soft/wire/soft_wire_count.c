/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Adds the counts of a QP's RoCEv2 engine to the counters of the device. */
#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "soft_wire.h"

#define SERVED 3u

/*
 * A counter of the device, and the RoCEv2 counter from which its values come, as offsets in their
 * structs.
 */
#define PAIR(soft, roce)                                                                           \
	{                                                                                          \
		offsetof(struct soft_counters, soft), offsetof(struct bb_roce_stats, roce)         \
	}
static const struct {
	size_t soft, roce;
} soft_wire_counters[] = {
	/* The first three entries (SERVED) count requests of peers that the device executed. */
	PAIR(rx_write, rx_write),
	PAIR(rx_read, rx_read),
	PAIR(rx_atomic, rx_atomic),
	PAIR(out_of_sequence, out_of_sequence),
	PAIR(duplicate, duplicate),
	PAIR(rnr_nak_retry, rnr_nak_retry),
	PAIR(packet_seq_err, packet_seq_err),
	PAIR(ack_timeout, ack_timeout),
	PAIR(resp_remote_invalid, resp_remote_invalid),
	PAIR(resp_remote_access, resp_remote_access),
};

#define CONG(soft, roce)                                                                           \
	{                                                                                          \
		offsetof(struct soft_congestion, soft), offsetof(struct bb_roce_stats, roce)       \
	}
static const struct {
	size_t soft, roce;
} soft_wire_congestion[] = {
	CONG(rp_cnp_handled, cnp),
	CONG(np_ecn_marked_roce_packets, ecn_ce),
	CONG(np_cnp_sent, tx_cnp),
};

static uint64_t *
soft_wire_counter(void *base, size_t at)
{
	return (uint64_t *)(void *)((uint8_t *)base + at);
}

/* Adds to *to the increment of the RoCEv2 counter @roce since the last update; @to may be NULL. */
static void
soft_wire_add_increment(struct soft_wire *w, size_t roce, uint64_t *to)
{
	uint64_t now = *soft_wire_counter(&w->roce.stats, roce);
	uint64_t *counted = soft_wire_counter(&w->counted_stats, roce);

	if (now == *counted)
		return;
	if (to != NULL)
		__atomic_fetch_add(to, now - *counted, __ATOMIC_RELAXED);
	*counted = now;
}

/*
 * Reasons for which a packet is dropped silently. The reasons of packets without a QP come first,
 * in the order of enum bb_roce_drop.
 */
#define LOST(roce, text)                                                                           \
	{                                                                                          \
		offsetof(struct bb_roce_stats, roce), #roce, text                                  \
	}
static const struct {
	size_t roce;
	const char *name;
	const char *text;
} soft_wire_losses[] = {
	LOST(drop_type, "of another transport type than the QP's"),
	LOST(drop_pkey, "with another P_Key than the QP's"),
	LOST(drop_qkey, "with a wrong Q_Key"),
	LOST(drop_source, "not from the QP's peer"),
	LOST(drop_dest, "to another address than the QP's"),
	LOST(drop_state, "for a QP in a state that does not receive"),
	LOST(drop_ghost, "that answer no request"),
	LOST(drop_order, "out of order"),
	LOST(drop_length, "of a wrong length"),
	LOST(drop_no_recv, "without a posted receive"),
	LOST(drop_access, "that ask for a forbidden access"),
	LOST(drop_replay, "repeated too late"),
	LOST(drop_differs, "that differ from an earlier packet with the same PSN"),
};
static_assert((uint32_t)BB_ROCE_DROPS <= SOFT_LOST_NO_QP &&
		      SOFT_LOST_QP + RTE_DIM(soft_wire_losses) <= SOFT_LOSTS,
	      "there is room");

void
soft_wire_lost(struct soft_dev *dev, uint32_t why)
{
	__atomic_fetch_add(&dev->lost[why], 1, __ATOMIC_RELAXED);
}

static const char *
soft_wire_lost_str(uint32_t why)
{
	switch (why) {
	case SOFT_LOST_NO_QP:
		return "for an unknown QP";
	case SOFT_LOST_NO_ROOM:
		return "because the device was not polled for too long";
	case SOFT_LOST_PORT_DOWN:
		return "while the port was down";
	default:
		return why < BB_ROCE_DROPS ? bb_roce_drop_str(why)
					   : soft_wire_losses[why - SOFT_LOST_QP].text;
	}
}

const char *
soft_wire_lost_name(uint32_t why)
{
	static const char *const names[SOFT_LOST_QP] = {
		[BB_ROCE_DROP_SHORT] = "drop_short",   [BB_ROCE_DROP_VERSION] = "drop_version",
		[BB_ROCE_DROP_OPCODE] = "drop_opcode", [BB_ROCE_DROP_PAYLOAD] = "drop_payload",
		[BB_ROCE_DROP_ICRC] = "drop_icrc",     [SOFT_LOST_NO_QP] = "drop_no_qp",
		[SOFT_LOST_NO_ROOM] = "drop_no_room",  [SOFT_LOST_PORT_DOWN] = "drop_port_down",
	};

	if (why < SOFT_LOST_QP)
		return names[why];
	why -= SOFT_LOST_QP;
	return why < RTE_DIM(soft_wire_losses) ? soft_wire_losses[why].name : NULL;
}

void
soft_wire_log_lost(const struct soft_dev *dev)
{
	char text[1024];
	size_t at = 0;
	uint32_t i;

	for (i = 0; i < SOFT_LOST_QP + RTE_DIM(soft_wire_losses) && at < sizeof(text); i++)
		if (dev->lost[i] != 0)
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%s %" PRIu64 " %s",
					       at != 0 ? "," : "", dev->lost[i],
					       soft_wire_lost_str(i));
	if (at != 0)
		SOFT_LOG(INFO, "%s: packets dropped:%s", dev->name, text);
}

static inline bool
soft_wire_is_counted(const struct soft_wire *w)
{
	return memcmp(&w->counted_stats, &w->roce.stats,
		      offsetof(struct bb_roce_stats, tx_packets)) == 0;
}

/*
 * Returns the number of retries. The event that exceeds the retry limit moves the QP to ERR and
 * causes no retry, so it is subtracted.
 */
static uint64_t
soft_wire_retries(const struct bb_roce_stats *s)
{
	return s->packet_seq_err + s->implied_nak_seq + s->ack_timeout + s->roce_adp_retrans -
	       s->retry_exceeded;
}

static uint64_t
soft_wire_rnr_retries(const struct bb_roce_stats *s)
{
	return s->rnr_nak_retry - s->rnr_retry_exceeded;
}

void
soft_wire_count(struct soft_wire *w)
{
	struct soft_counters *c = soft_counters_of(w->qp);
	struct soft_dev *dev = w->qp->dev;
	uint32_t i;

	/*
	 * The counters that are copied to the device come first in struct bb_roce_stats. A QP that
	 * only sends requests changes none of them.
	 */
	if (likely(soft_wire_is_counted(w)))
		return;
	for (i = 0; i < SERVED; i++)
		soft_wire_add_increment(w, soft_wire_counters[i].roce,
					c != NULL ? soft_wire_counter(c, soft_wire_counters[i].soft)
						  : NULL);
	/*
	 * The responder usually changes only the counters of executed requests, which are up to
	 * date now.
	 */
	if (likely(soft_wire_is_counted(w)))
		return;
	w->qp->retries += soft_wire_retries(&w->roce.stats) - soft_wire_retries(&w->counted_stats);
	w->qp->rnr_retries +=
		soft_wire_rnr_retries(&w->roce.stats) - soft_wire_rnr_retries(&w->counted_stats);
	for (; i < RTE_DIM(soft_wire_counters); i++)
		soft_wire_add_increment(w, soft_wire_counters[i].roce,
					c != NULL ? soft_wire_counter(c, soft_wire_counters[i].soft)
						  : NULL);
	for (i = 0; i < RTE_DIM(soft_wire_congestion); i++)
		soft_wire_add_increment(
			w, soft_wire_congestion[i].roce,
			soft_wire_counter(&dev->cong, soft_wire_congestion[i].soft));
	for (i = 0; i < RTE_DIM(soft_wire_losses); i++)
		soft_wire_add_increment(w, soft_wire_losses[i].roce, &dev->lost[SOFT_LOST_QP + i]);
	/*
	 * Copies also the RoCEv2 counters that are in no table above, because
	 * soft_wire_is_counted() compares some of them.
	 */
	w->counted_stats = w->roce.stats;
}

void
soft_wire_count_last(struct soft_wire *w)
{
	if (w->uncounted)
		LIST_REMOVE(w, count);
	w->uncounted = false;
	soft_wire_count(w);
}

void
soft_wire_count_all(struct soft_engine *e)
{
	while (!LIST_EMPTY(&e->uncounted))
		soft_wire_count_last(LIST_FIRST(&e->uncounted));
}
