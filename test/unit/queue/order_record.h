/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Replaces lib/queue/bb_barrier.h: the same functions record their call instead of fencing.
 * Included first, its guard keeps the real header out, so bb_sq.h, bb_rq.h and bb_cqring.h
 * compile unchanged.
 */
#ifndef BB_BARRIER_H
#define BB_BARRIER_H

#include <stdint.h>
#include <string.h>

enum order_event {
	ORDER_DMA_WMB = 1,
	ORDER_DMA_RMB,
	ORDER_DB_WMB,
	ORDER_WC_FLUSH,
	ORDER_DBREC,
	ORDER_UAR,
	ORDER_OWN_LOAD,
};

#define ORDER_MAX 64

/* The recorded calls, and copies of the ring at each call. */
extern struct order_log {
	unsigned int n;
	enum order_event event[ORDER_MAX];
	const void *where[ORDER_MAX];
	uint64_t value[ORDER_MAX];
	const uint8_t *ring; /* memory to copy at each call, NULL if none */
	size_t ring_size;
	uint8_t seen[ORDER_MAX][1024];
} order;

static inline void
order_add(enum order_event event, const volatile void *where, uint64_t value)
{
	if (order.n == ORDER_MAX)
		return;
	order.event[order.n] = event;
	order.where[order.n] = (const void *)(uintptr_t)where;
	order.value[order.n] = value;
	if (order.ring != NULL)
		memcpy(order.seen[order.n], order.ring, order.ring_size);
	order.n++;
}

static inline void
bb_dma_wmb(void)
{
	order_add(ORDER_DMA_WMB, NULL, 0);
}

static inline void
bb_dma_rmb(void)
{
	order_add(ORDER_DMA_RMB, NULL, 0);
}

static inline void
bb_db_wmb(void)
{
	order_add(ORDER_DB_WMB, NULL, 0);
}

static inline void
bb_wc_flush(void)
{
	order_add(ORDER_WC_FLUSH, NULL, 0);
}

static inline void
bb_dbrec_store(uint32_t *rec, uint32_t be)
{
	order_add(ORDER_DBREC, rec, be);
	*rec = be;
}

static inline uint32_t
bb_dbrec_load(const uint32_t *rec)
{
	return *rec;
}

static inline void
bb_uar_store64(volatile uint64_t *reg, uint64_t v)
{
	order_add(ORDER_UAR, reg, v);
	*reg = v;
}

static inline uint8_t
bb_cqe_own_load(const uint8_t *op_own)
{
	order_add(ORDER_OWN_LOAD, op_own, *op_own);
	return *op_own;
}

static inline void
bb_cqe_own_store(uint8_t *op_own, uint8_t v)
{
	*op_own = v;
}

#endif
