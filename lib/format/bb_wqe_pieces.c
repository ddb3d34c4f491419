/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Lists the memory that a WQE refers to. The WQE may come from a corrupted queue, as in bb_dump.c,
 * so the functions never read outside the ring, whatever the WQE contains.
 */
#include <stdbool.h>
#include <string.h>

#include "bb_wqe_priv.h"
#include "bb_wqe_shape.h"

/* Copies segment @i of the WQE at block @idx to @seg; wraps at the end of the ring. */
static void
segment(const uint8_t *ring, uint32_t blocks, uint16_t idx, uint32_t i, void *seg)
{
	size_t size = (size_t)blocks * BB_WQE_BB;
	size_t at = ((size_t)(idx % blocks) * BB_WQE_BB + (size_t)i * BB_WQE_SEG) % size;

	memcpy(seg, ring + at, BB_WQE_SEG);
}

static uint32_t
add_piece(struct bb_wqe_piece *pieces, uint32_t n, uint32_t max, const struct bb_wqe_data *d,
	  bool written)
{
	uint32_t len = bb_be32(d->byte_count);

	if (n < max)
		pieces[n] = (struct bb_wqe_piece){
			.addr = bb_be64(d->addr),
			.len = len == 0 ? BB_WQE_MAX_SGE_LEN : len,
			.key = bb_be32(d->lkey),
			.written = written,
		};
	return n + 1;
}

uint32_t
bb_wqe_pieces(struct bb_wqe_piece *pieces, uint32_t max, const void *ring, uint32_t blocks,
	      uint16_t idx, bool ud)
{
	uint32_t i = 1, n = 0, ds, head;
	struct bb_wqe_shape shape;
	struct bb_wqe_ctrl ctrl;
	struct bb_wqe_raddr r;
	struct bb_wqe_data d;

	if (ring == NULL || blocks == 0)
		return 0;
	segment(ring, blocks, idx, 0, &ctrl);
	head = bb_be32(ctrl.opmod_idx_opcode);
	shape = bb_wqe_shape((uint8_t)head, head >> 24, ud);
	ds = bb_be32(ctrl.qpn_ds) & BB_WQE_MAX_DS;
	if (ds > blocks * (BB_WQE_BB / BB_WQE_SEG))
		ds = blocks * (BB_WQE_BB / BB_WQE_SEG);
	if (!shape.data)
		return 0;
	if (shape.raddr && i < ds) {
		segment(ring, blocks, idx, i++, &r);
		if (max != 0)
			pieces[0] = (struct bb_wqe_piece){
				.addr = bb_be64(r.raddr), .key = bb_be32(r.rkey), .remote = true};
		n = 1;
		i += shape.operands;
	} else if (shape.av) {
		i += BB_WQE_AV_SEGS;
	}
	for (; i < ds; i++) {
		segment(ring, blocks, idx, i, &d);
		/* Inline data extends to the end of the WQE, so no SGE follows. */
		if ((bb_be32(d.byte_count) & BB_WQE_INLINE) != 0)
			break;
		n = add_piece(pieces, n, max, &d, shape.written);
	}
	return n < max ? n : max;
}

uint32_t
bb_recv_wqe_pieces(struct bb_wqe_piece *pieces, uint32_t max, const void *wqe, uint32_t stride)
{
	const uint8_t *p = wqe;
	struct bb_wqe_data d;
	uint32_t n = 0, at;

	for (at = 0; p != NULL && at + BB_WQE_SEG <= stride; at += BB_WQE_SEG) {
		memcpy(&d, p + at, sizeof(d));
		if (d.byte_count == 0 && bb_be32(d.lkey) == BB_WQE_INVALID_LKEY)
			break;
		n = add_piece(pieces, n, max, &d, true);
	}
	return n < max ? n : max;
}
