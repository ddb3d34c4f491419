/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Each QP pair sends one message and gets one back: the initiator's SEND, then, after its receive
 * has completed, the target's SEND. The round trip counts as one operation. Each message has its
 * own pattern, so the returned data differs from the sent data.
 */
#include "modes.h"

const struct engine engine_pingpong = {
	.name = "pingpong",
	.help = "mode: a SEND out, a SEND back; latencies are round trips",
	.mode = true,
	.two_way = true,
	.ping_pong = true,
	.recv = true,
	.recv_data = true,
	.to_target = true,
	.wc_opcode = BB_WC_SEND,
	.recv_opcode = BB_WC_RECV,
	.post = send_post,
	.post_recv = send_post_recv,
	.prepare = data_prepare,
	.verify = data_verify,
	.arrived = data_arrived,
};
