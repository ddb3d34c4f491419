/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Floors: what a task costs when it is written by hand for one purpose. No
 * bookkeeping, no error paths, no code of the library and none of its headers.
 *
 * Times are the caller's to take; a floor only does the work @n times.
 */
#ifndef FLOOR_H
#define FLOOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A send queue and a completion queue on plain memory, as mlx5 lays them out. */
struct floor_qp {
	uint8_t *sq; /* blocks of 64 bytes */
	uint8_t *cq; /* CQEs of 64 bytes */
	uint32_t sq_mask, cq_mask, cq_log;
	uint32_t qpn;
	volatile uint32_t *sq_rec, *cq_rec;
	volatile uint64_t *reg;
	uint16_t pi;
	uint32_t ci;
	/* What is written where, and by which keys. */
	const uint8_t *src;
	uint64_t raddr;
	uint32_t lkey, rkey;
};

/* Which WQEs of a batch ask for a CQE. */
enum floor_signal {
	FLOOR_SIGNAL_ALL,
	FLOOR_SIGNAL_LAST,
};

/* Data of @n writes lies at src + 8 * (i % 512), and goes to raddr + the same. */
#define FLOOR_SPREAD 511u

/* ---- floor_queue.c */

/* Build @n RDMA WRITEs of 8 bytes inline; ring once per @batch. */
void floor_post_inline8(struct floor_qp *q, uint64_t n, uint32_t batch);
/* The same with one pointer segment of 64 bytes. */
void floor_post_sge64(struct floor_qp *q, uint64_t n, uint32_t batch);
/* One batch, without a loop around it: for counting instructions. */
void floor_post_batch(struct floor_qp *q, uint64_t i, uint32_t batch, enum floor_signal sig);
/* Take what is there; returns CQEs. */
uint32_t floor_poll(struct floor_qp *q);
/* @n writes of 8 bytes inline, each batch posted, run by @device and polled. */
void floor_post_poll(struct floor_qp *q, uint64_t n, uint32_t batch, enum floor_signal sig,
		     void (*device)(void *arg), void *arg);
/* Look @n times into an empty CQ; returns CQEs found. */
uint32_t floor_poll_empty(struct floor_qp *q, uint64_t n);
/* Take @n CQEs that are there, giving them back in bursts of 32. */
uint32_t floor_poll_ready(struct floor_qp *q, uint32_t n);
/* @n batches, at most @window WQEs outstanding; the device is on another core. */
void floor_post_window(struct floor_qp *q, uint64_t n, uint32_t batch, uint32_t window,
		       enum floor_signal sig);
/* @n times: one write through a 64-byte register, its CQE; the device is on another core. */
void floor_post_register(struct floor_qp *q, uint64_t n);

/* ---- floor_device.c */

/*
 * A device in its simplest form. The null device completes WQEs without looking
 * at more than their control segment; the ideal one also carries out inline
 * RDMA WRITEs, addresses taken as they are.
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
/* Runs floor_ideal_run() until stop. */
void *floor_ideal_thread(void *dev);
/* The same, of WQEs that come through the register: one line has all there is to know. */
void *floor_register_thread(void *dev);
/* Write @n CQEs, block counters from 0, one block each. */
void floor_write_cqes(struct floor_dev *d, uint32_t n);

/* ---- floor_mem.c */

struct floor_range {
	uint64_t start, end;
	uint32_t key;
};

/* Look @n addresses up in one range; returns the sum of the keys. */
uint64_t floor_range_one(const struct floor_range *r, const uint64_t *addr, uint64_t n);
/* The same by binary search in a sorted table of @ranges. */
uint64_t floor_range_search(const struct floor_range *r, uint32_t ranges, const uint64_t *addr,
			    uint64_t n);
/* memcpy of @n blocks of @block bytes, going round in two buffers of @set bytes. */
void floor_memcpy(uint8_t *dst, const uint8_t *src, size_t set, size_t block, uint64_t n);

#endif
