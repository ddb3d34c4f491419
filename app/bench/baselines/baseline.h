/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Baselines: tasks written by hand, to measure the lowest cost that they can have. A baseline has
 * no bookkeeping and no error paths, and uses no code or header of the library. The caller measures
 * the time. The baseline only executes the task @n times.
 */
#ifndef BASELINE_H
#define BASELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A send queue and a completion queue on plain memory, in the layout of mlx5. */
struct baseline_qp {
	uint8_t *sq; /* blocks of 64 bytes */
	uint8_t *cq; /* CQEs of 64 bytes */
	uint32_t sq_mask, cq_mask, cq_log;
	uint32_t qpn;
	volatile uint32_t *sq_rec, *cq_rec;
	volatile uint64_t *reg;
	uint16_t pi;
	uint32_t ci;
	/* Source, destination and keys of the writes. */
	const uint8_t *src;
	uint64_t raddr;
	uint32_t lkey, rkey;
};

/* WQEs of a batch that request a CQE. */
enum baseline_signal {
	BASELINE_SIGNAL_ALL,
	BASELINE_SIGNAL_LAST,
};

/*
 * Bits of a WRITE's index that select its 8 bytes: WRITE i copies the bytes at src + 8 * (i % 512)
 * to the same offset from raddr.
 */
#define BASELINE_SPREAD 511u

/* ---- baseline_queue.c */

/* Builds @n RDMA WRITEs with 8 bytes inline. Rings the doorbell once per @batch. */
void baseline_post_inline8(struct baseline_qp *q, uint64_t n, uint32_t batch);
/*
 * Builds @n RDMA WRITEs with one pointer segment of 64 bytes, in batches of @batch. @sig: WQEs of a
 * batch that request a CQE. Rings the doorbell once per batch.
 */
void baseline_post_sge64(struct baseline_qp *q, uint64_t n, uint32_t batch,
			 enum baseline_signal sig);
/* Posts one batch. It contains no loop over batches, so that its instructions can be counted. */
void baseline_post_batch(struct baseline_qp *q, uint64_t i, uint32_t batch,
			 enum baseline_signal sig);
/* Consumes all available CQEs. Returns their number. */
uint32_t baseline_poll(struct baseline_qp *q);
/* Posts @n WRITEs of 8 bytes inline in batches. Runs @device and polls the CQ after each batch. */
void baseline_post_poll(struct baseline_qp *q, uint64_t n, uint32_t batch, enum baseline_signal sig,
			void (*device)(void *arg), void *arg);
/* Polls an empty CQ @n times. Returns the number of CQEs found. */
uint32_t baseline_poll_empty(struct baseline_qp *q, uint64_t n);
/* Consumes @n CQEs that are in the CQ already. Updates the consumer index once for 32 CQEs. */
uint32_t baseline_poll_ready(struct baseline_qp *q, uint32_t n);
/* Posts @n WQEs in batches, with at most @window outstanding. The device runs on another core. */
void baseline_post_window(struct baseline_qp *q, uint64_t n, uint32_t batch, uint32_t window,
			  enum baseline_signal sig);
/*
 * Posts one WRITE through a 64-byte register and waits for its CQE, @n times. The device runs on
 * another core.
 */
void baseline_post_register(struct baseline_qp *q, uint64_t n);

/* ---- baseline_device.c */

/*
 * A minimal device. The null device completes WQEs and reads only their control segments. The ideal
 * device also executes inline RDMA WRITEs. It uses their addresses as virtual addresses of this
 * process.
 */
struct baseline_dev {
	const uint8_t *sq;
	uint8_t *cq;
	uint32_t sq_mask, cq_mask, cq_log;
	volatile uint32_t *sq_rec;
	volatile uint32_t *rq_rec; /* doorbell record of the receive queue; NULL if the QP has no
				      receive queue */
	const uint64_t *reg;
	uint32_t user_index;
	uint16_t ci;
	uint16_t rq_ci;
	uint32_t pi;
	int stop; /* __atomic; ends baseline_ideal_thread() */
};

void baseline_null_run(void *dev);
/* Completes each posted receive as if a SEND of 0 bytes had arrived; the CQE has no data. */
void baseline_null_recv(struct baseline_dev *dev);
void baseline_ideal_run(void *dev);
/*
 * Thread function: executes WRITEs with baseline_ideal_run() until @dev's field stop is set. @dev
 * is a struct baseline_dev.
 */
void *baseline_ideal_thread(void *dev);
/*
 * Thread function like baseline_ideal_thread(), but takes each WQE from the 64-byte doorbell
 * register instead of the send queue. A WQE and its data fill one cache line.
 */
void *baseline_register_thread(void *dev);
/* Writes @n CQEs for WQEs of one block each. The WQE counters in the CQEs start at 0. */
void baseline_write_cqes(struct baseline_dev *d, uint32_t n);

/* ---- baseline_mem.c */

struct baseline_range {
	uint64_t start, end;
	uint32_t key;
};

/* Looks up @n addresses in one range. Returns the sum of the keys. */
uint64_t baseline_range_one(const struct baseline_range *r, const uint64_t *addr, uint64_t n);
/*
 * Looks up @n addresses by binary search in a sorted table of @ranges. Returns the sum of the keys.
 */
uint64_t baseline_range_search(const struct baseline_range *r, uint32_t ranges,
			       const uint64_t *addr, uint64_t n);
/* Copies @n blocks of @block bytes with memcpy(), cycling through two buffers of @set bytes. */
void baseline_memcpy(uint8_t *dst, const uint8_t *src, size_t set, size_t block, uint64_t n);

#endif
