/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Functions that CQs, QPs and SRQs share: uverbs_queue.c. */
#ifndef UVERBS_QUEUE_H
#define UVERBS_QUEUE_H

#include "uverbs_priv.h"

struct uverbs_queue {
	struct mlx5_obj *obj;
	struct mlx5_umem *ring, *rec;
	uint64_t ring_at; /* offset of a CQ's ring in its umem */
	uint32_t num;
	uint32_t uar;      /* page number of the UAR of a CQ or QP */
	uint32_t events;   /* events reported */
	uint32_t comps;    /* completion events reported */
	uint64_t element;  /* value in events by which libibverbs finds its object */
	uint32_t entries;  /* number of entries of a CQ or SRQ, a power of two */
	uint16_t cqe_size; /* valid for a CQ: bytes of a CQE, 64 or 128 */
	uint32_t max_sge;  /* valid for an SRQ: maximum number of SGEs of a receive */
	uint8_t type;      /* valid for a QP: enum ibv_qp_type */
	uint8_t state;     /* enum ibv_qp_state */
	/* valid for a QP: attributes of the last transition that set them */
	uint32_t access;
	uint8_t max_dest_rd_atomic;
	struct mlx5_pd *pd;
	struct ib_uverbs_create_qp made; /* valid for a QP: attributes that the program requested */
};

/*
 * Makes a umem of the pages that hold [addr, addr + len). Sets *offset to the offset of @addr in
 * the umem.
 */
int uverbs_queue_umem(struct uverbs_file *f, uint64_t addr, uint64_t len, struct mlx5_umem **u,
		      uint64_t *offset);
/*
 * Allocates a queue with the umems of its ring and doorbell record. Returns NULL if that fails.
 */
struct uverbs_queue *uverbs_queue_begin(struct uverbs_file *f, uint64_t ring, uint64_t bytes,
					uint64_t rec, uint64_t *ring_at, uint64_t *rec_at);
/*
 * Returns the errno for the result @ret of a command: 0, or as the kernel does, that of the status
 * in @out if the device rejected the command.
 */
int uverbs_queue_errno(int ret, const void *out);
/* Destroys a queue. Returns 0, or an errno if other objects still refer to the queue. */
int uverbs_queue_end(struct uverbs_file *f, struct uverbs_queue *q);
/* Subscribes to events of @types and stores the queue. Returns its handle, 0 on failure. */
uint32_t uverbs_queue_born(struct uverbs_file *f, enum uverbs_kind kind, struct uverbs_queue *q,
			   const uint16_t *types, unsigned int n);
/*
 * Fills in @to, the event that ibv_get_async_event() reads. Returns false if the object of the
 * event is destroyed.
 */
bool uverbs_async_event(struct uverbs_file *f, const struct mlx5_cmd_event *event,
			struct ib_uverbs_async_event_desc *to);
/* Fills in @to, the event that ibv_get_cq_event() reads. Returns false if the CQ is destroyed. */
bool uverbs_comp_event(struct uverbs_file *f, uint64_t cookie,
		       struct ib_uverbs_comp_event_desc *to);

/* Returns log2 of the largest power of two that is at most @v. */
static inline uint32_t
uverbs_log2(uint32_t v)
{
	return v == 0 ? 0 : 31u - (uint32_t)__builtin_clz(v);
}

/* Returns log2 of the smallest power of two that is at least @v. */
static inline uint32_t
uverbs_log2_up(uint32_t v)
{
	return v <= 1 ? 0 : uverbs_log2(v - 1) + 1;
}

#endif
