/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Builders that are too long to be inlined: masked atomics, and inline data of several SGEs. */
#include "bb_sq_atomic.h"
#include "bb_sq_ud.h"

/*
 * Returns the total length of the SGEs in bytes. Stops reading the list when the sum exceeds @max.
 */
static uint64_t
total_len(const struct bb_sge *sge, uint32_t nsge, uint32_t max)
{
	uint64_t len = 0;
	uint32_t i;

	for (i = 0; i < nsge && len <= max; i++)
		len += sge[i].len;
	return len;
}

/* Copies the data of the SGEs one after the other; wraps at the end of the ring. */
static void
fill_pieces(const struct bb_sq *sq, void *seg, const struct bb_sge *sge, uint32_t nsge,
	    uint32_t len)
{
	const uint8_t *end = sq->buf + ((size_t)sq->mask + 1) * BB_WQE_BB;
	uint8_t *dst = (uint8_t *)seg + 4;
	uint32_t hdr = bb_be32(BB_WQE_INLINE | len), i;

	memcpy(seg, &hdr, sizeof(hdr));
	for (i = 0; i < nsge; i++) {
		const uint8_t *src = (const uint8_t *)(uintptr_t)sge[i].addr;
		size_t left = sge[i].len;

		while (left != 0) {
			size_t room = (size_t)(end - dst), n = left < room ? left : room;

			memcpy(dst, src, n);
			dst = n == room ? sq->buf : dst + n;
			src += n;
			left -= n;
		}
	}
}

int
bb_sq_post_inline_list(struct bb_sq *sq, uint8_t opcode, bool has_raddr, uint64_t wr_id,
		       const struct bb_sge *sge, uint32_t nsge, uint64_t raddr, uint32_t rkey,
		       uint32_t imm, uint32_t flags)
{
	uint64_t len = total_len(sge, nsge, sq->max_inline);
	struct bb_wqe_ctrl *ctrl;
	void *seg;
	int ret;

	if (len > sq->max_inline)
		return bb_sq_refuse_arg(sq, BB_REFUSED_MAX_INLINE);
	if (sq->buf == NULL)
		return sq->ops->list(
			sq,
			BB_SQ_WHAT(opcode | (has_raddr ? BB_SQ_RADDR : 0) | BB_SQ_INLINE, flags),
			wr_id, sge, nsge, raddr, rkey | (uint64_t)imm << 32);
	ret = bb_sq_room(sq, BB_SQ_MSG, 1, &flags);
	if (ret != 0)
		return ret;
	ctrl = bb_sq_commit(sq, opcode, 1 + (uint32_t)has_raddr + bb_wqe_inline_ds((uint32_t)len),
			    wr_id, flags, imm);
	seg = ctrl + 1;
	if (has_raddr) {
		bb_sq_fill_raddr(seg, raddr, rkey);
		seg = ctrl + 2;
	}
	if (len != 0)
		fill_pieces(sq, seg, sge, nsge, (uint32_t)len);
	return 0;
}

int
bb_sq_post_ud_inline_list(struct bb_sq *sq, uint8_t opcode, uint64_t wr_id,
			  const struct bb_wqe_av *av, uint32_t dest_qpn, uint32_t qkey,
			  const struct bb_sge *sge, uint32_t nsge, uint32_t imm, uint32_t flags)
{
	uint64_t len = total_len(sge, nsge, sq->max_inline);
	struct bb_wqe_ctrl *ctrl;
	int ret;

	if (len > sq->max_inline)
		return bb_sq_refuse_arg(sq, BB_REFUSED_MAX_INLINE);
	if (sq->buf == NULL)
		return sq->ops->datagram(sq, BB_SQ_WHAT(opcode | BB_SQ_INLINE, flags), wr_id, av,
					 dest_qpn, qkey, sge, nsge, imm);
	ret = bb_sq_room(sq, BB_SQ_UD, 1, &flags);
	if (ret != 0)
		return ret;
	ctrl = bb_sq_commit(sq, opcode, 4 + bb_wqe_inline_ds((uint32_t)len), wr_id, flags, imm);
	bb_sq_fill_av(ctrl, av, dest_qpn, qkey);
	if (len != 0)
		fill_pieces(sq, bb_sq_next_seg(sq, ctrl + 3), sge, nsge, (uint32_t)len);
	return 0;
}

/* The WQE layouts are those that UCX's rc_mlx5 transport writes. */
int
bb_sq_post_masked(struct bb_sq *sq, uint8_t opcode, uint64_t wr_id, const struct bb_sge *sge,
		  uint64_t raddr, uint32_t rkey, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
		  uint32_t flags)
{
	bool long_cs = opcode == BB_WQE_ATOMIC_MASKED_CS && sge->len == 8;
	uint32_t ds = long_cs ? 5 : 4, slots;
	struct bb_wqe_ctrl *ctrl;
	int ret;

	if (sge->len != 4 && sge->len != 8)
		return bb_sq_refuse_arg(sq, BB_REFUSED_ATOMIC_LEN);
	if ((raddr & (sge->len - 1)) != 0)
		return bb_sq_refuse_arg(sq, BB_REFUSED_ATOMIC_ALIGN);
	if (sq->buf == NULL)
		return sq->ops->lacked(sq, opcode, wr_id, flags);
	slots = bb_sq_slots(sq, ds);
	if (slots > sq->depth)
		return bb_sq_refuse_arg(sq, BB_REFUSED_WQE_SIZE);
	ret = bb_sq_room(sq, BB_SQ_RD, slots, &flags);
	if (ret != 0)
		return ret;
	ctrl = bb_sq_commit_slots(sq, opcode, ds, slots, wr_id, flags, 0);
	*(uint8_t *)ctrl = (uint8_t)bb_wqe_atomic_opmod(sge->len);
	bb_sq_fill_raddr(ctrl + 1, raddr, rkey);
	if (sge->len == 4) {
		const struct bb_wqe_atomic4 w = {bb_be32((uint32_t)a), bb_be32((uint32_t)b),
						 bb_be32((uint32_t)c), bb_be32((uint32_t)d)};

		memcpy(ctrl + 2, &w, sizeof(w));
	} else {
		const struct bb_wqe_atomic w[2] = {{bb_be64(a), bb_be64(b)},
						   {bb_be64(c), bb_be64(d)}};

		memcpy(ctrl + 2, w, long_cs ? sizeof(w) : sizeof(w[0]));
	}
	bb_sq_fill_data(long_cs ? bb_sq_next_seg(sq, ctrl + 3) : ctrl + 3, sge);
	return 0;
}
