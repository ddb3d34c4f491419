/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Minimal devices: read the doorbell record, process the new WQEs, write CQEs. */
#include <string.h>

#include "baseline.h"

#define REQ       UINT64_C(0)
#define RESP_SEND UINT64_C(2)

/* Writes bytes 32 to 63 of a CQE. The last store writes op_own. */
static inline void
write_cqe(struct baseline_dev *d, uint16_t wqe_counter, uint64_t opcode)
{
	uint64_t *cqe = (uint64_t *)(void *)(d->cq + (size_t)(d->pi & d->cq_mask) * 64);
	uint64_t owner = d->pi >> d->cq_log & 1;

	cqe[0] = 0;
	cqe[1] = 0;
	cqe[2] = 0;
	cqe[3] = 0;
	cqe[6] = 0;
	cqe[4] = __builtin_bswap32(d->user_index);
	cqe[5] = 0;
	__atomic_store_n(&cqe[7],
			 (uint64_t)__builtin_bswap16(wqe_counter) << 32 | (opcode << 4 | owner)
										  << 56,
			 __ATOMIC_RELEASE);
	d->pi++;
}

static inline uint16_t
new_wqes(const struct baseline_dev *d)
{
	return (uint16_t)__builtin_bswap32(__atomic_load_n(d->sq_rec, __ATOMIC_ACQUIRE));
}

void
baseline_null_run(void *dev)
{
	struct baseline_dev *d = dev;
	uint16_t end = new_wqes(d);

	while (d->ci != end) {
		uint8_t w[64];
		uint32_t ds;

		memcpy(w, d->sq + (size_t)(d->ci & d->sq_mask) * 64, sizeof(w));
		__asm__ volatile("" : : "r"(w) : "memory");
		ds = w[7] & 63;
		if ((w[11] & 0x0c) == 0x08)
			write_cqe(d, d->ci, REQ);
		d->ci = (uint16_t)(d->ci + (ds + 3) / 4);
	}
}

void
baseline_null_recv(struct baseline_dev *d)
{
	uint16_t end = (uint16_t)__builtin_bswap32(__atomic_load_n(d->rq_rec, __ATOMIC_ACQUIRE));

	for (; d->rq_ci != end; d->rq_ci++)
		write_cqe(d, d->rq_ci, RESP_SEND);
}

void
baseline_ideal_run(void *dev)
{
	struct baseline_dev *d = dev;
	uint16_t end = new_wqes(d);

	while (d->ci != end) {
		const uint8_t *w = d->sq + (size_t)(d->ci & d->sq_mask) * 64;
		uint64_t raddr, data;

		memcpy(&raddr, w + 16, 8);
		memcpy(&data, w + 36, 8);
		*(volatile uint64_t *)(uintptr_t)__builtin_bswap64(raddr) = data;
		if ((w[11] & 0x0c) == 0x08)
			write_cqe(d, d->ci, REQ);
		d->ci++;
	}
}

static inline void
relax(void)
{
#if defined(__x86_64__)
	/* Prevents speculative loads of the cache line that the loop polls. */
	__builtin_ia32_pause();
#endif
}

void *
baseline_ideal_thread(void *dev)
{
	struct baseline_dev *d = dev;

	while (!__atomic_load_n(&d->stop, __ATOMIC_RELAXED)) {
		if (new_wqes(d) == d->ci)
			relax();
		else
			baseline_ideal_run(d);
	}
	return NULL;
}

void *
baseline_register_thread(void *dev)
{
	struct baseline_dev *d = dev;
	uint64_t head, data;

	while (!__atomic_load_n(&d->stop, __ATOMIC_RELAXED)) {
		head = __atomic_load_n(&d->reg[0], __ATOMIC_ACQUIRE);
		if (head == 0 || (uint16_t)(__builtin_bswap32((uint32_t)head) >> 8) != d->ci) {
			relax();
			continue;
		}
		memcpy(&data, (const uint8_t *)d->reg + 36, 8);
		*(volatile uint64_t *)(uintptr_t)__builtin_bswap64(d->reg[2]) = data;
		write_cqe(d, d->ci++, REQ);
	}
	return NULL;
}

void
baseline_write_cqes(struct baseline_dev *d, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		write_cqe(d, (uint16_t)i, REQ);
}
