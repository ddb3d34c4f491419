/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Counters of a device, read by commands: soft_cmd_counter.c. */
#ifndef SOFT_COUNTERS_H
#define SOFT_COUNTERS_H

#include <stdint.h>

/* One counter set, in the order of QUERY_Q_COUNTER. Each counter is incremented with __atomic. */
struct soft_counters {
	uint64_t rx_write, rx_read, rx_atomic;
	uint64_t out_of_buffer, out_of_sequence, duplicate, rnr_nak_retry, packet_seq_err;
	uint64_t ack_timeout, resp_local_length, req_local_length, local_operation;
	uint64_t resp_local_prot, req_local_prot;
	uint64_t req_remote_invalid, resp_remote_invalid;
	uint64_t req_remote_access, resp_remote_access, req_remote_op;
	uint64_t retry_exceeded, rnr_retry_exceeded, cq_overflow;
	uint64_t resp_flush, req_flush;
};

/* Congestion counters, named as in QUERY_CONG_STATISTICS; __atomic. */
struct soft_congestion {
	uint64_t rp_cnp_handled, np_ecn_marked_roce_packets, np_cnp_sent;
};

/*
 * Reasons for dropping received packets. The values of enum bb_roce_drop come first, then these
 * values, then the reasons for which a QP drops a packet (soft_wire_count.c).
 */
enum soft_lost {
	SOFT_LOST_NO_QP = 8,
	SOFT_LOST_NO_ROOM,
	SOFT_LOST_PORT_DOWN,
	SOFT_LOST_QP,
	SOFT_LOSTS = 32,
};

#endif
