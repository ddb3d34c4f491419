/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* A recorded send request in the form that libibverbs takes. */
#ifndef GOLDEN_LIVE_REQUEST_H
#define GOLDEN_LIVE_REQUEST_H

#include "golden.h"
#include "live.h"

#define LIVE_MAX_SGE 32u
#define LIVE_MAX_WQE 1024u

struct live_request {
	struct ibv_send_wr wr;
	struct ibv_sge sge[LIVE_MAX_SGE];
	struct ibv_data_buf part[LIVE_MAX_SGE];
	uint8_t data[LIVE_MAX_WQE];
	bool is_inline, ud;
};

enum ibv_qp_type live_qp_type(const struct vec *v);
/* Returns IBV_QP_EX_WITH_* of the requests recorded for a type. */
uint64_t live_send_ops(enum ibv_qp_type type);
/* Returns the name of opcode @i, NULL after the last one. */
const char *live_opcode(unsigned int i);
/* Creates the address handle of a datagram. */
struct ibv_ah *live_ah(const struct vec *v, struct ibv_pd *pd);
/* Parses a vector; pieces of inline data are stored in @r itself. */
void live_parse(const struct vec *v, struct ibv_pd *pd, struct live_request *r);
/* Builds the request by ibv_wr_*(), between start and complete. */
void live_build(struct ibv_qp_ex *ex, const struct live_request *r);

#endif
