/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Baselines: the cost of a task written by hand for one purpose. They have no bookkeeping and no
 * error paths, and use no code or headers of the library.
 *
 * The caller measures the time; a baseline only does the work @n times.
 */
#ifndef FLOOR_H
#define FLOOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A send queue and a completion queue on plain memory, in the layout of mlx5. */
struct floor_qp {
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
enum floor_signal {
	FLOOR_SIGNAL_ALL,
	FLOOR_SIGNAL_LAST,
};

/*
 * Index mask of the writes: write i reads 8 bytes at src + 8 * (i % 512) and writes them at the
 * same offset from raddr.
 */
#define FLOOR_SPREAD 511u

/* ---- floor_queue.c */

/* Builds @n RDMA WRITEs with 8 bytes inline; rings once per @batch. */
void floor_post_inline8(struct floor_qp *q, uint64_t n, uint32_t batch);
/* Builds @n RDMA WRITEs with one pointer segment of 64 bytes; rings once per @batch. */
void floor_post_sge64(struct floor_qp *q, uint64_t n, uint32_t batch);
/* Posts one batch, without a loop around it: for counting instructions. */
void floor_post_batch(struct floor_qp *q, uint64_t i, uint32_t batch, enum floor_signal sig);
/* Consumes all available CQEs. Returns their number. */
uint32_t floor_poll(struct floor_qp *q);
/* Posts @n writes of 8 bytes inline. Each batch is posted, executed by @device and polled. */
void floor_post_poll(struct floor_qp *q, uint64_t n, uint32_t batch, enum floor_signal sig,
		     void (*device)(void *arg), void *arg);
/* Polls an empty CQ @n times. Returns the number of CQEs found. */
uint32_t floor_poll_empty(struct floor_qp *q, uint64_t n);
/* Consumes @n available CQEs, releasing them in bursts of 32. */
uint32_t floor_poll_ready(struct floor_qp *q, uint32_t n);
/* Posts @n WQEs in batches, at most @window outstanding; the device is on another core. */
void floor_post_window(struct floor_qp *q, uint64_t n, uint32_t batch, uint32_t window,
		       enum floor_signal sig);
/*
 * Repeats @n times: one write through a 64-byte register, and its CQE. The device is on another
 * core.
 */
void floor_post_register(struct floor_qp *q, uint64_t n);

/* ---- floor_device.c */

/*
 * A minimal device. The null device completes WQEs and reads only their control segment. The ideal
 * device also executes inline RDMA WRITEs and uses addresses without translation.
 */
struct floor_dev {
	const uint8_t *sq;
	uint8_t *cq;
	uint32_t sq_mask, cq_mask, cq_log;
	volatile uint32_t *sq_rec;
	const uint64_t *reg;
	uint32_t user_index;
	uint16_t ci;
	uint32_t pi;
	int stop; /* __atomic; ends floor_ideal_thread() */
};

void floor_null_run(void *dev);
void floor_ideal_run(void *dev);
/* Runs floor_ideal_run() until stop is set. */
void *floor_ideal_thread(void *dev);
/* Does the same for WQEs that arrive through the register: one cache line has all data. */
void *floor_register_thread(void *dev);
/* Writes @n CQEs with block counters from 0, one block each. */
void floor_write_cqes(struct floor_dev *d, uint32_t n);

/* ---- floor_mem.c */

struct floor_range {
	uint64_t start, end;
	uint32_t key;
};

/* Looks up @n addresses in one range. Returns the sum of the keys. */
uint64_t floor_range_one(const struct floor_range *r, const uint64_t *addr, uint64_t n);
/*
 * Looks up @n addresses by binary search in a sorted table of @ranges. Returns the sum of the keys.
 */
uint64_t floor_range_search(const struct floor_range *r, uint32_t ranges, const uint64_t *addr,
			    uint64_t n);
/* Copies @n blocks of @block bytes with memcpy(), cycling through two buffers of @set bytes. */
void floor_memcpy(uint8_t *dst, const uint8_t *src, size_t set, size_t block, uint64_t n);

#endif
