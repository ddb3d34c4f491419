/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * QP1 of the process's device for the rdma_cm node. It uses the command interface and writes WQEs
 * itself, because this library contains neither libbluebell nor an EAL.
 *
 * Thread rule: one thread at a time, except that any thread may wait for qp1_fd().
 */
#ifndef QP1_H
#define QP1_H

#include <stdbool.h>
#include <stdint.h>

#include "bb_ibcm.h"
#include "mlx5_cmd.h"

struct qp1;

/* Reasons for which QP1 drops a MAD. */
enum qp1_drop {
	QP1_DROP_MALFORMED,  /* received, without a valid GRH, or too long */
	QP1_DROP_NO_ROOM,    /* too many MADs wait, or all send buffers are in use */
	QP1_DROP_NO_ADDRESS, /* the destination cannot be reached */
	QP1_DROPS
};

/* Creates QP1 on a context, which must outlive it. Returns 0 or a negative errno. */
int qp1_open(struct mlx5_ctx *ctx, struct qp1 **q);
/* Runs the device a few times, so that posted MADs can still leave, and then destroys QP1. */
void qp1_close(struct qp1 *q);

/*
 * Resolves the MAC of a GID. Returns 0, -EAGAIN if it is not known yet, or another negative errno.
 */
int qp1_reach(struct qp1 *q, uint32_t sgid_index, const uint8_t dgid[16]);
/*
 * Sends a MAD. If the MAC of its destination is not known yet, holds the MAD for at most 2 s. Drops
 * the MAD if its destination cannot be reached, all buffers are in use, or too many MADs are held.
 */
void qp1_send(struct qp1 *q, uint32_t sgid_index, const struct bb_ibcm_net *net,
	      const uint8_t mad[BB_IBCM_MAD]);
/* Interval, in ns, at which the caller calls qp1_retry() while qp1_holds() returns true. */
#define QP1_RETRY_NS UINT64_C(10000000)
bool qp1_holds(const struct qp1 *q);
/* Returns the numbers of dropped MADs, indexed by enum qp1_drop. */
const uint64_t *qp1_drops(const struct qp1 *q);
/* Returns the name of a reason, as that of BB_CM_IB in telemetry. */
const char *qp1_drop_name(enum qp1_drop why);
/* Sends the held MADs whose destinations can be reached now. */
void qp1_retry(struct qp1 *q, uint64_t now);

/*
 * Gets a received MAD. Returns NULL if there is none; qp1_fd() is then readable when there is one.
 * The MAD is valid until qp1_done().
 */
const uint8_t *qp1_receive(struct qp1 *q, struct bb_ibcm_gmp *gmp, uint32_t *len);
void qp1_done(struct qp1 *q);
int qp1_fd(const struct qp1 *q);

#endif
