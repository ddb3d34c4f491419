/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Baselines of posting and polling: mlx5 WQEs and CQEs written by hand. */
#include <string.h>

#include "baseline.h"

#define OP_RDMA_WRITE 0x08u
#define CE_CQE        0x08u

static inline void
fence(void)
{
#if defined(__x86_64__)
	__asm__ volatile("sfence" ::: "memory");
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/* Gives the other core time to write the whole cache line that this core polls. */
static inline void
relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

static inline void
compiler_barrier(void)
{
	__asm__ volatile("" ::: "memory");
}

/* Writes the control and remote address segments of the WQE at pi: 32 bytes. */
static inline uint64_t *
build_head(struct baseline_qp *q, uint64_t offset, uint32_t ce)
{
	uint64_t *w = (uint64_t *)(void *)(q->sq + (size_t)(q->pi & q->sq_mask) * 64);

	w[0] = (uint64_t)__builtin_bswap32((uint32_t)q->pi << 8 | OP_RDMA_WRITE) |
	       (uint64_t)__builtin_bswap32(q->qpn << 8 | 3) << 32;
	w[1] = (uint64_t)ce << 24;
	w[2] = __builtin_bswap64(q->raddr + offset);
	w[3] = __builtin_bswap32(q->rkey);
	q->pi++;
	return w;
}

static inline uint64_t *
build_inline8(struct baseline_qp *q, uint64_t i, uint32_t ce)
{
	uint64_t offset = (i & BASELINE_SPREAD) * 8;
	uint64_t *w = build_head(q, offset, ce);
	uint32_t header = __builtin_bswap32(0x80000008u);

	memcpy((uint8_t *)w + 32, &header, 4);
	memcpy((uint8_t *)w + 36, q->src + offset, 8);
	return w;
}

static inline uint64_t *
build_sge64(struct baseline_qp *q, uint64_t i, uint32_t ce)
{
	uint64_t offset = (i & BASELINE_SPREAD) * 8;
	uint64_t *w = build_head(q, offset, ce);

	w[4] = (uint64_t)__builtin_bswap32(64) | (uint64_t)__builtin_bswap32(q->lkey) << 32;
	w[5] = __builtin_bswap64((uint64_t)(uintptr_t)(q->src + offset));
	return w;
}

static inline void
ring(struct baseline_qp *q, const uint64_t *last)
{
	compiler_barrier();
	*q->sq_rec = __builtin_bswap32(q->pi);
	fence();
	*q->reg = last[0];
}

void
baseline_post_inline8(struct baseline_qp *q, uint64_t n, uint32_t batch)
{
	struct baseline_qp l = *q;
	uint64_t i, *w = NULL;
	uint32_t k;

	for (i = 0; i < n; i += batch) {
		for (k = 0; k < batch; k++)
			w = build_inline8(&l, i + k, CE_CQE);
		ring(&l, w);
	}
	q->pi = l.pi;
}

void
baseline_post_sge64(struct baseline_qp *q, uint64_t n, uint32_t batch, enum baseline_signal sig)
{
	struct baseline_qp l = *q;
	uint64_t i, *w = NULL;
	uint32_t k;

	for (i = 0; i < n; i += batch) {
		for (k = 0; k < batch; k++)
			w = build_sge64(&l, i + k,
					sig == BASELINE_SIGNAL_ALL || k + 1 == batch ? CE_CQE : 0);
		ring(&l, w);
	}
	q->pi = l.pi;
}

static inline void
post_batch(struct baseline_qp *q, uint64_t i, uint32_t batch, enum baseline_signal sig)
{
	uint64_t *w = NULL;
	uint32_t k;

	for (k = 0; k < batch; k++)
		w = build_inline8(q, i + k,
				  sig == BASELINE_SIGNAL_ALL || k + 1 == batch ? CE_CQE : 0);
	ring(q, w);
}

void
baseline_post_batch(struct baseline_qp *q, uint64_t i, uint32_t batch, enum baseline_signal sig)
{
	post_batch(q, i, batch, sig);
}

static inline bool
valid_at(const struct baseline_qp *q, uint32_t ci)
{
	const volatile uint8_t *cqe = q->cq + (size_t)(ci & q->cq_mask) * 64;
	uint8_t own = cqe[63];

	return (own & 1) == (ci >> q->cq_log & 1) && own >> 4 != 15;
}

static inline bool
valid(const struct baseline_qp *q)
{
	return valid_at(q, q->ci);
}

static inline uint32_t
poll(struct baseline_qp *q)
{
	uint32_t n = 0;

	while (valid(q)) {
		q->ci++;
		n++;
	}
	if (n != 0)
		*q->cq_rec = __builtin_bswap32(q->ci & 0xffffff);
	return n;
}

/* Consumes at most @n CQEs. */
static inline uint32_t
poll_some(struct baseline_qp *q, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n && valid(q); i++)
		q->ci++;
	*q->cq_rec = __builtin_bswap32(q->ci & 0xffffff);
	return i;
}

uint32_t
baseline_poll(struct baseline_qp *q)
{
	return poll(q);
}

void
baseline_post_poll(struct baseline_qp *q, uint64_t n, uint32_t batch, enum baseline_signal sig,
		   void (*device)(void *arg), void *arg)
{
	const uint32_t cqes = sig == BASELINE_SIGNAL_ALL ? batch : 1;
	struct baseline_qp l = *q;
	uint64_t i;

	for (i = 0; i < n; i += batch) {
		uint32_t got = 0;

		post_batch(&l, i, batch, sig);
		device(arg);
		while (got < cqes)
			got += poll(&l);
	}
	*q = l;
}

uint32_t
baseline_poll_empty(struct baseline_qp *q, uint64_t n)
{
	struct baseline_qp l = *q;
	uint32_t found = 0;
	uint64_t i;

	for (i = 0; i < n; i++)
		found += poll(&l);
	return found;
}

uint32_t
baseline_poll_ready(struct baseline_qp *q, uint32_t n)
{
	struct baseline_qp l = *q;
	uint32_t i, ready = 0;

	for (i = 0; i < n; i++) {
		ready += valid(&l);
		l.ci++;
		if ((i & 31) == 31)
			*l.cq_rec = __builtin_bswap32(l.ci & 0xffffff);
	}
	*q = l;
	return ready;
}

void
baseline_post_window(struct baseline_qp *q, uint64_t n, uint32_t batch, uint32_t window,
		     enum baseline_signal sig)
{
	const uint32_t per_cqe = sig == BASELINE_SIGNAL_ALL ? 1 : batch;
	struct baseline_qp l = *q;
	uint64_t posted = 0, done = 0;

	while (done < n) {
		while (posted < n && posted - done + batch <= window) {
			post_batch(&l, posted, batch, sig);
			posted += batch;
		}
		/*
		 * Checks only the last CQE of the batch. Each read of a cache line that the device
		 * has yet to write makes the device fetch the line again.
		 */
		if (!valid_at(&l, l.ci + batch / per_cqe - 1)) {
			relax();
			continue;
		}
		done += (uint64_t)poll_some(&l, batch / per_cqe) * per_cqe;
	}
	*q = l;
}

void
baseline_post_register(struct baseline_qp *q, uint64_t n)
{
	struct baseline_qp l = *q;
	uint64_t i;

	for (i = 0; i < n; i++) {
		uint64_t *w = build_inline8(&l, i, CE_CQE);
		unsigned int k;

		compiler_barrier();
		*l.sq_rec = __builtin_bswap32(l.pi);
		fence();
		/*
		 * Stores the 8-byte word with the WQE index last, because the device waits for that
		 * word.
		 */
		for (k = 1; k < 8; k++)
			l.reg[k] = w[k];
		compiler_barrier();
		l.reg[0] = w[0];
		while (poll(&l) == 0)
			;
	}
	*q = l;
}
