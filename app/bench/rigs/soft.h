/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Opens and runs the library on a software device, as an application does: EAL, device, memory and
 * connected queue pairs.
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
	uint8_t *from, *to; /* source and target buffer of bytes bytes each, from rte_malloc() */
	size_t bytes;
	struct bb_qp **qps;
	uint32_t n;
	uint32_t depth;
	uint64_t raddr; /* target of the WRITEs: the buffer "to", or memory of another process */
	uint32_t rkey;
	uint8_t sgid;
};

/*
 * Ack timeout of queue pairs. LONG is a second, so that a peer which gets no CPU for a while causes
 * no error. The device detects a loss earlier, without this timer. USUAL is the default of the
 * library. With NONE no timer ever repeats a packet.
 */
extern enum soft_timeout {
	SOFT_TIMEOUT_LONG,
	SOFT_TIMEOUT_USUAL,
	SOFT_TIMEOUT_NONE,
} soft_timeout;

/* Doorbell mode of queue pairs that soft_open() and soft_open_one() create. Initially DOORBELL. */
extern enum bb_db_mode soft_db_mode;

/*
 * Largest inline data of queue pairs, in bytes. SOFT_INLINE is as much as fits into one block with
 * the remote address segment.
 */
#define SOFT_INLINE 28u
extern uint32_t soft_inline;

/* Depth of the receive queues that soft_open() creates. Initially 0. */
extern uint32_t soft_recvs;

/*
 * Starts EAL at the first call. Later calls return the result of the first one. Returns 0, or
 * -errno after printing the error on stderr.
 */
int eal_start(void);
bool eal_started(void);
/* Returns the lcore for a device with progress=lcore, or RTE_MAX_LCORE if there is none. */
unsigned int peer_lcore(void);

/*
 * Opens the device @spec with 2 * @pairs QPs of @depth WQEs, and two buffers of @bytes. QP 2k is
 * connected to QP 2k + 1. Returns 0, or -errno after printing the error on stderr.
 */
int soft_open(struct soft *s, const char *spec, uint32_t pairs, uint32_t depth, size_t bytes);
/*
 * Does the same as soft_open(), but creates one QP, which is not connected and can have @depth
 * receives.
 */
int soft_open_one(struct soft *s, const char *spec, uint32_t depth, size_t bytes);
/* Writes the address of @qp for its peer to *@addr, with a new PSN. Returns 0 or -errno. */
int soft_addr(struct soft *s, struct bb_qp *qp, struct bb_qp_addr *addr);
/*
 * Waits until the device's port is active, at most half a minute, and polls the device meanwhile.
 * The link of a net_memif comes up only after both ends are open. Returns 0, -ENETDOWN or another
 * negative errno.
 */
int soft_wait_link(struct soft *s);
int soft_connect(struct soft *s, struct bb_qp *qp, const struct bb_qp_addr *own,
		 const struct bb_qp_addr *peer);
void soft_close(struct soft *s);

/*
 * Posts WRITE number @i of a series on @qp: 8 bytes inline, to offset 8 * (i % 512) of the target.
 */
static inline int
soft_post8(const struct soft *s, struct bb_qp *qp, uint64_t i, uint32_t flags)
{
	const uint64_t offset = (i & 511) * 8;

	return bb_post_write_inline(qp, i, s->from + offset, 8, s->raddr + offset, s->rkey, flags);
}

/* Parameters of soft_write8(). */
struct soft_run {
	struct soft *s;
	uint64_t n;         /* number of WRITEs */
	uint32_t batch;     /* WRITEs per doorbell */
	uint32_t window;    /* maximum outstanding WRITEs, at least batch */
	bool all;           /* true if each WRITE is signalled; false if one WRITE per batch is */
	struct soft *other; /* another device to poll in the same loop, or NULL */
};

/*
 * Executes WRITEs of 8 bytes on QP 0. Returns ns per WRITE, or a negative number if a WRITE fails
 * or does not complete.
 */
double soft_write8(void *run);

/*
 * Executes @writes WRITEs of 8 bytes on the first @active QPs, with one outstanding WRITE per QP. A
 * QP posts a WRITE when its previous WRITE has completed. All QPs ring the same doorbell register,
 * so the device sees only the last of several stores. Returns ns per WRITE, or a negative number on
 * an error. Sets *@worst to the maximum number of polls from the post of a WRITE to its completion.
 */
double soft_in_turn(const struct soft *s, uint32_t active, uint64_t writes, uint64_t *worst);

/* Parameters of soft_together(). */
struct soft_rounds {
	struct soft *s;
	uint64_t n;      /* number of rounds */
	uint32_t active; /* number of QPs that ring the doorbell in each round */
	bool others; /* true if each round uses other QPs than the round before; false if all rounds
			use the same QPs, which are spread over all QPs */
};

/*
 * Executes rounds: each active QP posts a WRITE of 8 bytes and rings, then the CQ is polled until
 * all WRITEs have completed. All QPs ring one register, so only the last store of a round is
 * visible. Returns ns per WRITE, or a negative number on an error.
 */
double soft_together(void *rounds);

#endif
