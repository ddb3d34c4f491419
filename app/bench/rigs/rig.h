/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The library's queue pair and completion queue on plain memory, without EAL and without a device.
 * With them a case measures the cost of the application's code alone. The baselines use the same
 * memory layout.
 */
#ifndef RIG_H
#define RIG_H

#include "baseline.h"
#include "bb_post.h"

#define RIG_LOG_BLOCKS 8 /* 16 KiB of ring, which stays in the first-level cache */
#define RIG_LOG_CQES   8

struct rig {
	struct bb_qp qp;
	struct bb_cq cq;
	struct bb_qp *qps[1];
	struct baseline_qp baseline;
	struct baseline_dev
		dev; /* device that completes the posts of the library and of the baseline */
	uint8_t *mem;
	uint8_t *src, *dst; /* data of the WRITEs: BASELINE_SPREAD + 1 times 8 bytes, then room for
			       a WRITE of 64 bytes */
};

/*
 * Creates queues on plain memory for a measurement without a device: queues of the library if
 * @bluebell, otherwise those of a baseline. Returns NULL if there is no memory, or if the library
 * cannot create its queues.
 */
struct rig *rig_new(bool bluebell);
/*
 * Does the same as rig_new(true), but the queue copies single WQEs to its doorbell register
 * (BlueFlame). The copies use AVX2 if the CPU has it, because EAL allows AVX2 by default, otherwise
 * 8-byte stores.
 */
struct rig *rig_new_blueflame(void);
void rig_free(struct rig *r);

/* Source and destination of a series of WRITEs. Passed by value, as in the baselines. */
struct rig_data {
	const uint8_t *src;
	uint64_t dst;
};

static inline struct rig_data
rig_data(const struct rig *r)
{
	return (struct rig_data){.src = r->src, .dst = (uint64_t)(uintptr_t)r->dst};
}

/*
 * Post WRITE @i of a series: 8 bytes inline, or 64 bytes from memory with one SGE. Always inlined,
 * so that the counted instructions include no function call.
 */
static inline __attribute__((always_inline)) int
rig_post_inline8(struct bb_qp *qp, struct rig_data d, uint64_t i, uint32_t flags)
{
	const uint64_t offset = (i & BASELINE_SPREAD) * 8;

	return bb_post_write_inline(qp, i, d.src + offset, 8, d.dst + offset, 0x2200, flags);
}

static inline __attribute__((always_inline)) int
rig_post_sge64(struct bb_qp *qp, struct rig_data d, uint64_t i, uint32_t flags)
{
	const uint64_t offset = (i & BASELINE_SPREAD) * 8;
	const struct bb_sge sge = {
		.addr = (uint64_t)(uintptr_t)(d.src + offset),
		.len = 64,
		.lkey = 0x1100,
	};

	return bb_post_write(qp, i, &sge, 1, d.dst + offset, 0x2200, flags);
}

#endif
