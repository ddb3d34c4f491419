/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Common to CQs, QPs and SRQs of the kernel: kernel_queue.c. */
#ifndef KERNEL_QUEUE_H
#define KERNEL_QUEUE_H

#include "kernel.h"

struct kernel_queue {
	struct mlx5_obj *obj;
	struct mlx5_umem *ring, *rec;
	uint64_t ring_at; /* offset of a CQ's ring in its umem */
	uint32_t num;
	uint32_t events;  /* events reported */
	uint32_t comps;   /* completion events reported */
	uint64_t element; /* libibverbs's name for it in events */
	uint32_t entries; /* of a CQ or an SRQ: a power of two */
	uint32_t max_sge; /* of an SRQ */
	uint8_t type;     /* of a QP: enum ibv_qp_type */
	uint8_t state;    /* enum ibv_qp_state */
	struct mlx5_pd *pd;
};

/* Makes a umem of the pages that hold [addr, addr + len); *offset is the position in it. */
int kernel_queue_umem(uint64_t addr, uint64_t len, struct mlx5_umem **u, uint64_t *offset);
/*
 * Allocates a queue with the umems of its ring and doorbell record. Returns NULL if that fails.
 */
struct kernel_queue *kernel_queue_begin(uint64_t ring, uint64_t bytes, uint64_t rec,
					uint64_t *ring_at, uint64_t *rec_at);
/* Subscribes to events of @types and stores the queue. Returns its handle, 0 on failure. */
uint32_t kernel_queue_born(enum kernel_kind kind, struct kernel_queue *q, const uint16_t *types,
			   unsigned int n);

/* Returns log2 of the largest power of two that is at most @v. */
static inline uint32_t
kernel_log2(uint32_t v)
{
	return v == 0 ? 0 : 31u - (uint32_t)__builtin_clz(v);
}

#endif
