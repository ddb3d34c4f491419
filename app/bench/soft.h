/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The library on the software device: EAL, device, memory and connected pairs of
 * queue pairs, as an application has them.
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
	uint8_t *from, *to; /* bytes each; rte_malloc */
	size_t bytes;
	struct bb_qp **qps;
	uint32_t n;
	uint32_t depth;
	uint64_t raddr; /* where writes go: @to, or memory of another process */
	uint32_t rkey;
	uint8_t sgid;
};

/*
 * What queue pairs are connected with: an ack timeout of a second, as a peer without a CPU is no
 * error so soon, and what is lost is sent again earlier; the default one; or none, with which
 * nothing is ever sent again by the clock.
 */
extern enum soft_timeout {
	SOFT_TIMEOUT_LONG,
	SOFT_TIMEOUT_USUAL,
	SOFT_TIMEOUT_NONE,
} soft_timeout;

/* How single writes of queue pairs that are opened are handed over; DOORBELL. */
extern enum bb_db_mode soft_db_mode;

/* EAL, once; later calls return what the first did. 0 or -errno, said to stderr. */
int eal_start(void);
bool eal_started(void);
/* The lcore for a device of its own, RTE_MAX_LCORE if there is none. */
unsigned int peer_lcore(void);

/*
 * Open @spec with @pairs connected pairs, QPs 2k and 2k + 1, of @depth WQEs, and two
 * buffers. 0 or -errno, said to stderr.
 */
int soft_open(struct soft *s, const char *spec, uint32_t pairs, uint32_t depth, size_t bytes);
/* The same with one QP that is to be connected, which takes @depth receives, too. */
int soft_open_one(struct soft *s, const char *spec, uint32_t depth, size_t bytes);
/* Of a QP: what its peer must know, with a PSN of its own for each call. */
int soft_addr(struct soft *s, struct bb_qp *qp, struct bb_qp_addr *addr);
int soft_connect(struct soft *s, struct bb_qp *qp, const struct bb_qp_addr *own,
		 const struct bb_qp_addr *peer);
void soft_close(struct soft *s);

/* Write @i of a series, 8 bytes inline, from QP @qp to offset 8 * (i % 512). */
static inline int
soft_post8(const struct soft *s, struct bb_qp *qp, uint64_t i, uint32_t flags)
{
	const uint64_t offset = (i & 511) * 8;

	return bb_post_write_inline(qp, i, s->from + offset, 8, s->raddr + offset, s->rkey, flags);
}

/* What soft_write8() is to do. */
struct soft_run {
	struct soft *s;
	uint64_t n;         /* writes */
	uint32_t batch;     /* per doorbell */
	uint32_t window;    /* outstanding at most, >= batch */
	bool all;           /* a CQE each, or one per batch */
	struct soft *other; /* a device that is to be polled too; or NULL */
};

/* Writes of 8 bytes by QP 0; ns per write, < 0 when one fails or does not end. */
double soft_write8(void *run);

/*
 * @active writes of 8 bytes outstanding, each QP posting its next one as soon as its last is
 * complete, through one register whose stores merge. ns per write, < 0: failed; *@worst: polls
 * of the device that a write waited at most.
 */
double soft_in_turn(const struct soft *s, uint32_t active, uint64_t writes, uint64_t *worst);

#endif
