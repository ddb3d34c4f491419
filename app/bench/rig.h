/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The library's queue pair and completion queue on plain memory, without EAL and without a device:
 * the cost of the application's side alone. The baselines use the same memory layout.
 */
#ifndef RIG_H
#define RIG_H

#include "baseline.h"
#include "bb_post.h"

#define RIG_LOG_BLOCKS 8 /* 16 KiB of ring: it stays in the first-level cache */
#define RIG_LOG_CQES   8

struct rig {
	struct bb_qp qp;
	struct bb_cq cq;
	struct bb_qp *qps[1];
	struct baseline_qp baseline;
	struct baseline_dev dev; /* completes the posts of both sides */
	uint8_t *mem;
	uint8_t *src, *dst; /* data: BASELINE_SPREAD + 1 pieces of 8 bytes, and a tail */
};

/*
 * Creates a rig for the library (@ours) or for a baseline. Returns NULL if there is no memory or
 * the library refuses.
 */
struct rig *rig_new(bool ours);
void rig_free(struct rig *r);

/* Source and destination of a series of writes; passed by value, as in the baselines. */
struct rig_data {
	const uint8_t *src;
	uint64_t dst;
};

static inline struct rig_data
rig_data(const struct rig *r)
{
	return (struct rig_data){.src = r->src, .dst = (uint64_t)(uintptr_t)r->dst};
}

/* Posts write @i of a series: 8 bytes inline, or 64 bytes from memory. */
static inline int
rig_post_inline8(struct bb_qp *qp, struct rig_data d, uint64_t i, uint32_t flags)
{
	const uint64_t offset = (i & BASELINE_SPREAD) * 8;

	return bb_post_write_inline(qp, i, d.src + offset, 8, d.dst + offset, 0x2200, flags);
}

static inline int
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
