/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The installed libibverbs and libmlx5 over a substitute kernel. A test sets its answers: the
 * numbers, keys and addresses of a recording. There is no device; the queues are not read.
 */
#ifndef GOLDEN_LIVE_H
#define GOLDEN_LIVE_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

/* Answers of the kernel from now on. */
struct live_answers {
	bool ethernet; /* link of port 1, queried when the device is opened */
	uint32_t qpn;  /* of the next QP */
	uint32_t key;  /* of the next region or window */
	uint8_t dmac[6];
	uint32_t user_index; /* not an answer: libmlx5's index of its last QP */
};
extern struct live_answers live;

/*
 * main() of a program with one test, after it sets up what libibverbs reads in /sys. Returns the
 * exit status.
 */
int live_main(const char *name, void (*test)(void **state));
/* Opens a new context of the one device. Returns NULL if there is none, as without libmlx5. */
struct ibv_context *live_open(void);
/* Sets the type of GID @index of port 1 to a line of /sys: "RoCE v2", "IB/RoCE v1". */
void live_gid_type(unsigned int index, const char *type);

/* Moves @qp to the state in which libmlx5 sends and receives; the kernel accepts each step. */
bool live_ready(struct ibv_qp *qp);

/* A CQ whose completions the test writes. */
struct live_cq {
	struct ibv_cq *cq;
	struct mlx5dv_cq dv;
	uint32_t ci;
};
bool live_cq_create(struct live_cq *c, struct ibv_context *ctx);
/*
 * Completes the request that ends with block @index of the QP with @user_index, or the receive of
 * that index or SRQ slot. libmlx5 then polls it.
 */
bool live_cq_done(struct live_cq *c, uint32_t user_index, uint16_t index, bool receive);

#endif
