/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The library on the software device: EAL, device, memory and connected queue pairs, as in an
 * application.
 */
#ifndef SOFT_BENCH_H
#define SOFT_BENCH_H

#include "bb_post.h"
#include "bench.h"

struct soft {
	struct bb_dev *dev;
	struct bb_pd *pd;
	struct bb_cq *cq;
	struct bb_mr *src, *dst;
	uint8_t *from, *to; /* two buffers of the size below; rte_malloc */
	size_t bytes;
	struct bb_qp **qps;
	uint32_t n;
	uint32_t depth;
	uint64_t raddr; /* target of the writes: @to, or memory of another process */
	uint32_t rkey;
	uint8_t sgid;
};

/*
 * Ack timeout of the queue pairs. LONG: a second, because a peer that gets no CPU for a while is
 * not an error; losses are repeated earlier. USUAL: the default. NONE: no timer ever repeats a
 * packet.
 */
extern enum soft_timeout {
	SOFT_TIMEOUT_LONG,
	SOFT_TIMEOUT_USUAL,
	SOFT_TIMEOUT_NONE,
} soft_timeout;

/* Doorbell mode of queue pairs opened from now on; initially DOORBELL. */
extern enum bb_db_mode soft_db_mode;

/*
 * Starts EAL once; later calls return the first result. Returns 0 or -errno, with a message on
 * stderr.
 */
int eal_start(void);
bool eal_started(void);
/* Returns the lcore for a device of its own, RTE_MAX_LCORE if there is none. */
unsigned int peer_lcore(void);

/*
 * Opens @spec with @pairs connected pairs, QPs 2k and 2k + 1, of @depth WQEs, and two buffers.
 * Returns 0 or -errno, with a message on stderr.
 */
int soft_open(struct soft *s, const char *spec, uint32_t pairs, uint32_t depth, size_t bytes);
/* Opens @spec with one unconnected QP, which also has @depth receives. */
int soft_open_one(struct soft *s, const char *spec, uint32_t depth, size_t bytes);
/* Returns the address of a QP for its peer, with a new PSN at each call. */
int soft_addr(struct soft *s, struct bb_qp *qp, struct bb_qp_addr *addr);
int soft_connect(struct soft *s, struct bb_qp *qp, const struct bb_qp_addr *own,
		 const struct bb_qp_addr *peer);
void soft_close(struct soft *s);

/* Posts write @i of a series, 8 bytes inline, from QP @qp to offset 8 * (i % 512). */
static inline int
soft_post8(const struct soft *s, struct bb_qp *qp, uint64_t i, uint32_t flags)
{
	const uint64_t offset = (i & 511) * 8;

	return bb_post_write_inline(qp, i, s->from + offset, 8, s->raddr + offset, s->rkey, flags);
}

/* Parameters of soft_write8(). */
struct soft_run {
	struct soft *s;
	uint64_t n;         /* writes */
	uint32_t batch;     /* per doorbell */
	uint32_t window;    /* maximum outstanding, >= batch */
	bool all;           /* one CQE each, otherwise one per batch */
	struct soft *other; /* another device to poll, or NULL */
};

/* Runs 8-byte writes on QP 0. Returns ns per write, < 0 if one fails or does not complete. */
double soft_write8(void *run);

/*
 * Keeps @active writes of 8 bytes outstanding. Each QP posts its next write as soon as its last one
 * is complete, through one register whose stores merge. Returns ns per write, < 0 on an error.
 * *@worst gets the maximum number of polls of the device that a write waited.
 */
double soft_in_turn(const struct soft *s, uint32_t active, uint64_t writes, uint64_t *worst);

#endif
