/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Copies data received inside a CQE to the buffers of its WQE. Off the fast path; not installed.
 *
 * Each function copies @len bytes along the scatter list of the WQE, which software owns until the
 * completion is recorded. Returns the number of bytes that found no room.
 */
#ifndef BB_SCATTER_H
#define BB_SCATTER_H

#include "bb_rq.h"
#include "bb_sq.h"
#include "bb_srqring.h"

/* For a READ or atomic at block @idx. */
uint32_t bb_sq_scatter(const struct bb_sq *sq, uint16_t idx, const void *data, uint32_t len);
/* For a receive. */
uint32_t bb_rq_scatter(const struct bb_rq *rq, uint16_t idx, const void *data, uint32_t len);
uint32_t bb_srqring_scatter(const struct bb_srqring *srq, uint16_t idx, const void *data,
			    uint32_t len);

#endif
