/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include "bb_scatter.h"

/* Copies data to the memory of one SGE. Returns the number of bytes of @len that did not fit. */
static uint32_t
fill(const struct bb_wqe_data *seg, const uint8_t *data, uint32_t len)
{
	uint32_t count = bb_be32(seg->byte_count);

	if (count == 0)
		count = BB_WQE_MAX_SGE_LEN;
	if (count > len)
		count = len;
	memcpy((void *)(uintptr_t)bb_be64(seg->addr), data, count);
	return len - count;
}

static uint32_t
fill_list(const struct bb_wqe_data *seg, uint32_t n, const void *data, uint32_t len)
{
	const uint8_t *end = (const uint8_t *)data + len;

	for (; n != 0 && len != 0; n--, seg++) {
		if (seg->byte_count == 0 && seg->lkey == bb_be32(BB_WQE_INVALID_LKEY))
			break;
		len = fill(seg, end - len, len);
	}
	return len;
}

uint32_t
bb_sq_scatter(const struct bb_sq *sq, uint16_t idx, const void *data, uint32_t len)
{
	const uint8_t *wqe = sq->buf + (size_t)(idx & sq->mask) * BB_WQE_BB;
	const uint8_t *end = (const uint8_t *)data + len;
	size_t ring = ((size_t)sq->mask + 1) * BB_WQE_BB;
	uint32_t ds = wqe[7] & BB_WQE_MAX_DS, i;

	/*
	 * The scatter list of a READ starts at segment 2. An atomic has one SGE, which is its last
	 * segment.
	 */
	for (i = wqe[3] == BB_WQE_RDMA_READ ? 2 : ds - 1; i < ds && len != 0; i++) {
		size_t at = (size_t)(wqe - sq->buf) + (size_t)i * BB_WQE_SEG;
		struct bb_wqe_data seg;

		memcpy(&seg, sq->buf + (at < ring ? at : at - ring), sizeof(seg));
		len = fill(&seg, end - len, len);
	}
	return len;
}

uint32_t
bb_rq_scatter(const struct bb_rq *rq, uint16_t idx, const void *data, uint32_t len)
{
	const uint8_t *wqe = rq->buf + ((size_t)(idx & rq->mask) << rq->log_stride);

	return fill_list((const struct bb_wqe_data *)(const void *)wqe,
			 (1u << rq->log_stride) / BB_WQE_SEG, data, len);
}

uint32_t
bb_srqring_scatter(const struct bb_srqring *srq, uint16_t idx, const void *data, uint32_t len)
{
	const struct bb_wqe_srq_next *wqe = bb_srqring_wqe(srq, idx);

	return fill_list((const struct bb_wqe_data *)(const void *)(wqe + 1),
			 (1u << srq->log_stride) / BB_WQE_SEG - 1, data, len);
}
