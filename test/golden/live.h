/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * libibverbs and libmlx5 as they are installed, over a kernel that says what a test wants it to:
 * numbers, keys and addresses of a recording. There is no device behind; nothing reads the queues.
 */
#ifndef GOLDEN_LIVE_H
#define GOLDEN_LIVE_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

/* What the kernel answers from now on. */
struct live_answers {
	bool ethernet; /* port 1, asked for when the device is opened */
	uint32_t qpn;  /* of the next QP */
	uint32_t key;  /* of the next region or window */
	uint8_t dmac[6];
	uint32_t user_index; /* not an answer: what libmlx5 calls its last QP */
};
extern struct live_answers live;

/* main() of a program with one test, with what libibverbs looks for in /sys: its exit status. */
int live_main(const char *name, void (*test)(void **state));
/* A new context of the one device. NULL: there is none; is libmlx5 installed? */
struct ibv_context *live_open(void);
/* GID @index of port 1 is of this type, a line of /sys: "RoCE v2", "IB/RoCE v1". */
void live_gid_type(unsigned int index, const char *type);

/* Take @qp where libmlx5 lets it send and receive; the kernel has nothing against it. */
bool live_ready(struct ibv_qp *qp);

/* A CQ whose completions the test makes. */
struct live_cq {
	struct ibv_cq *cq;
	struct mlx5dv_cq dv;
	uint32_t ci;
};
bool live_cq_create(struct live_cq *c, struct ibv_context *ctx);
/*
 * The request that ended with block @index of the QP with @user_index is over, or the receive of
 * that index, or of an SRQ's WQE: libmlx5 polls it.
 */
bool live_cq_done(struct live_cq *c, uint32_t user_index, uint16_t index, bool receive);

#endif
