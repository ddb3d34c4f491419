/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Send queue: posts of datagrams, and posts of inline data from several SGEs.
 * Results and rules are those of bb_sq.h.
 */
#ifndef BB_SQ_UD_H
#define BB_SQ_UD_H

#include "bb_sq.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Posts a SEND, SEND_IMM, RDMA_WRITE or RDMA_WRITE_IMM whose inline data is gathered from @p nsge
 * SGEs.
 */
int bb_sq_post_inline_list(struct bb_sq *sq, uint8_t opcode, bool has_raddr, uint64_t wr_id,
			   const struct bb_sge *sge, uint32_t nsge, uint64_t raddr, uint32_t rkey,
			   uint32_t imm, uint32_t flags);

/** Posts a datagram whose inline data is gathered from @p nsge SGEs. */
int bb_sq_post_ud_inline_list(struct bb_sq *sq, uint8_t opcode, uint64_t wr_id,
			      const struct bb_wqe_av *av, uint32_t dest_qpn, uint32_t qkey,
			      const struct bb_sge *sge, uint32_t nsge, uint32_t imm,
			      uint32_t flags);

/** Writes the address vector after a control segment. The two fill the first block of the WQE. */
static inline void
bb_sq_fill_av(struct bb_wqe_ctrl *ctrl, const struct bb_wqe_av *av, uint32_t dest_qpn,
	      uint32_t qkey)
{
	struct bb_wqe_av *seg = (struct bb_wqe_av *)(void *)(ctrl + 1);

	memcpy(seg, av, sizeof(*seg));
	seg->qkey = bb_be32(qkey);
	seg->dest_qpn = bb_be32(dest_qpn | BB_WQE_EXT_AV);
}

/**
 * Builds a datagram with a gather list, of which @p pieces SGEs are not empty. The queue must have
 * room.
 */
static inline void
bb_sq_build_ud(struct bb_sq *sq, uint8_t opcode, uint64_t wr_id, const struct bb_wqe_av *av,
	       uint32_t dest_qpn, uint32_t qkey, const struct bb_sge *sge, uint32_t nsge,
	       uint32_t pieces, uint32_t imm, uint32_t flags)
{
	struct bb_wqe_ctrl *ctrl = bb_sq_commit(sq, opcode, 4 + pieces, wr_id, flags, imm);
	void *seg = bb_sq_next_seg(sq, ctrl + 3);
	uint32_t i;

	bb_sq_fill_av(ctrl, av, dest_qpn, qkey);
	for (i = 0; i < nsge; i++) {
		if (sge[i].len == 0)
			continue;
		bb_sq_fill_data(seg, &sge[i]);
		seg = bb_sq_next_seg(sq, seg);
	}
}

/** Posts a SEND or SEND_IMM with a gather list to the UD QP @p dest_qpn. */
static inline int
bb_sq_post_ud(struct bb_sq *sq, uint8_t opcode, uint64_t wr_id, const struct bb_wqe_av *av,
	      uint32_t dest_qpn, uint32_t qkey, const struct bb_sge *sge, uint32_t nsge,
	      uint32_t imm, uint32_t flags)
{
	int pieces;

	if (BB_SEND_INLINE_MISUSED(flags))
		return bb_sq_refuse_arg(sq, BB_REFUSED_FLAGS);
	/* The list's length may be out of range, so check it before reading the list. */
	if (bb_unlikely(nsge > sq->max_sge))
		return bb_sq_refuse_arg(sq, BB_REFUSED_MAX_SGE);
	pieces = bb_sq_count_sge(sge, nsge);
	if (bb_unlikely(pieces < 0))
		return bb_sq_refuse_arg(sq, BB_REFUSED_SGE_LEN);
	if (bb_unlikely(!bb_sq_has_room_in(sq, sq->ud_limit))) {
		if (!bb_queue_check_owner(sq->owner))
			return bb_sq_refuse_arg(sq, BB_REFUSED_OWNER);
		return sq->ops->datagram(sq, BB_SQ_WHAT(opcode, flags), wr_id, av, dest_qpn, qkey,
					 sge, nsge, imm);
	}
	bb_sq_build_ud(sq, opcode, wr_id, av, dest_qpn, qkey, sge, nsge, (uint32_t)pieces, imm,
		       flags);
	return 0;
}

/** Builds a datagram with inline data. The queue must have room. */
static inline void
bb_sq_build_ud_inline(struct bb_sq *sq, uint8_t opcode, uint64_t wr_id, const struct bb_wqe_av *av,
		      uint32_t dest_qpn, uint32_t qkey, const void *data, uint32_t len,
		      uint32_t imm, uint32_t flags)
{
	struct bb_wqe_ctrl *ctrl =
		bb_sq_commit(sq, opcode, 4 + bb_wqe_inline_ds(len), wr_id, flags, imm);

	bb_sq_fill_av(ctrl, av, dest_qpn, qkey);
	if (len != 0)
		bb_sq_fill_inline(sq, bb_sq_next_seg(sq, ctrl + 3), data, len, 60);
}

/** Posts a datagram with inline data. @p data may be reused at once. */
static inline int
bb_sq_post_ud_inline(struct bb_sq *sq, uint8_t opcode, uint64_t wr_id, const struct bb_wqe_av *av,
		     uint32_t dest_qpn, uint32_t qkey, const void *data, uint32_t len, uint32_t imm,
		     uint32_t flags)
{
	if (bb_unlikely(len > sq->max_inline))
		return bb_sq_refuse_arg(sq, BB_REFUSED_MAX_INLINE);
	if (bb_unlikely(!bb_sq_has_room_in(sq, sq->ud_limit))) {
		const struct bb_sge piece = {(uintptr_t)data, len, 0};

		if (!bb_queue_check_owner(sq->owner))
			return bb_sq_refuse_arg(sq, BB_REFUSED_OWNER);
		return sq->ops->datagram(sq, BB_SQ_WHAT(opcode | BB_SQ_INLINE, flags), wr_id, av,
					 dest_qpn, qkey, &piece, 1, imm);
	}
	bb_sq_build_ud_inline(sq, opcode, wr_id, av, dest_qpn, qkey, data, len, imm, flags);
	return 0;
}

#ifdef __cplusplus
}
#endif

#endif
