/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Transport of the initiator: queue pairs and connections by the RDMA CM. */
#ifndef BB_NVMF_PRIV_H
#define BB_NVMF_PRIV_H

#include <bluebell.h>

#include "nvmf_ini.h"

/* Bytes of a receive: more than a response has, so that a longer message is detected. */
#define RECV 64u

/* Connection to a queue of the target. The admin queue and the I/O queue share a CQ. */
struct nvmf_ini_queue {
	struct bb_nvmf *n;
	struct bb_qp *qp; /* NULL if not connected */
	struct bb_conn *conn;
	uint8_t *recv; /* receive buffers for responses */
	bool ring_send, ring_recv;
};

struct bb_nvmf {
	struct nvmf_ini *e;
	struct bb_dev *dev;
	struct bb_pd *pd;
	struct bb_cq *cq;
	struct bb_cm *cm;
	struct sockaddr_storage addr;
	uint8_t *mem; /* memory shared with the target, followed by receive buffers for responses */
	struct bb_mr *shared, *recv;
	struct nvmf_ini_queue queue[2]; /* [0]: admin queue, [1]: I/O queue */
	struct bb_mw **window;          /* memory window of each request; NULL without windows */
	uint32_t depth, regs, timeout_ms;
	uint64_t ms;     /* TSC cycles of a millisecond */
	uint64_t tick;   /* TSC of the next call of nvmf_ini_time() */
	uint64_t failed; /* TSC at the first flushed request; 0 if there was none */
	/* number of disconnections; a change shows that a call of the engine has disconnected */
	uint32_t connection;
	bool windows;
	const volatile int *stop; /* ends the wait in bb_nvmf_open() */
	char subnqn[NVMF_NQN], hostnqn[NVMF_NQN];
};

/* Defined in bb_nvmf_conn.c. */
extern const struct nvmf_ini_ops bb_nvmf_conn_ops;
void bb_nvmf_conn_disconnect(struct bb_nvmf *n);
/* Disconnects, and waits a short time for the target's answer. */
void bb_nvmf_conn_finish(struct bb_nvmf *n);
/* Polls the CM, and passes its events to the engine. */
void bb_nvmf_conn_poll(struct bb_nvmf *n);
/* Passes a completion to the engine. */
void bb_nvmf_conn_wc(struct bb_nvmf *n, const struct bb_wc *wc);

#endif
