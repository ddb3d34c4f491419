/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Copies data that was received inside a CQE to the buffers of the WQE. Not on the fast path; not
 * installed.
 *
 * Each function copies @len bytes to the scatter list of the WQE at index @idx. Software owns that
 * WQE until the completion is recorded. Each function returns the number of bytes that did not
 * fit.
 */
#ifndef BB_SCATTER_H
#define BB_SCATTER_H

#include "bb_rq.h"
#include "bb_sq.h"
#include "bb_srqring.h"

/* Copies the data of a READ or atomic response. */
uint32_t bb_sq_scatter(const struct bb_sq *sq, uint16_t idx, const void *data, uint32_t len);
/* Copies the data of a receive. */
uint32_t bb_rq_scatter(const struct bb_rq *rq, uint16_t idx, const void *data, uint32_t len);
uint32_t bb_srqring_scatter(const struct bb_srqring *srq, uint16_t idx, const void *data,
			    uint32_t len);

#endif
