/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* RDMA_WRITE in both directions of each QP pair at the same time. */
#include "modes.h"

const struct engine engine_bidirectional = {
	.name = "bidirectional",
	.help = "mode: RDMA_WRITE by both sides at once",
	.mode = true,
	.two_way = true,
	.to_target = true,
	.wc_opcode = BB_WC_RDMA_WRITE,
	.post = write_post,
	.prepare = data_prepare,
	.verify = data_verify,
	.arrived = data_arrived,
};
