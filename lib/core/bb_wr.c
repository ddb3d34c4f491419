/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Posts lists of work requests. */
#include "bb_wr.h"
#include "bb_core.h"
#include "bb_mw.h"

/* Returns true if the device does not support this WRITE, SEND or READ. */
static bool
unsupported(const struct bb_qp *qp, const struct bb_send_wr *wr)
{
	const struct bb_dev *dev = qp->ctrl->pd->dev;
	uint32_t i, n = 0;

	if (wr->opcode == BB_WR_SEND_WITH_IMM || wr->opcode == BB_WR_RDMA_WRITE_WITH_IMM)
		return dev->iwarp;
	/*
	 * A list longer than max_sge is rejected later because of its length, so its entries are
	 * not read here.
	 */
	if (wr->opcode != BB_WR_RDMA_READ || wr->nsge <= dev->attr.max_read_sge ||
	    wr->nsge > qp->sq.max_sge)
		return false;
	for (i = 0; i < wr->nsge; i++)
		n += wr->sge[i].len != 0;
	return n > dev->attr.max_read_sge;
}

static int
post_message(struct bb_qp *qp, const struct bb_send_wr *wr, uint8_t opcode, bool has_raddr,
	     uint32_t imm)
{
	uint64_t raddr = has_raddr ? wr->rdma.raddr : 0;
	uint32_t rkey = has_raddr ? wr->rdma.rkey : 0;

	if (unsupported(qp, wr))
		return bb_sq_refuse_arg(&qp->sq, BB_REFUSED_UNSUPPORTED);
	if ((wr->flags & BB_SEND_INLINE) != 0)
		return bb_sq_post_inline_list(&qp->sq, opcode, has_raddr, wr->wr_id, wr->sge,
					      wr->nsge, raddr, rkey, imm, wr->flags);
	return bb_sq_post_sgl(&qp->sq, opcode, has_raddr, wr->wr_id, wr->sge, wr->nsge, raddr, rkey,
			      imm, wr->flags);
}

int
bb_ah_refuse(struct bb_qp *qp, const struct bb_ah *ah)
{
	if (ah == NULL || ah->pd != qp->ctrl->pd)
		return bb_sq_refuse_arg(&qp->sq, BB_REFUSED_AH);
	return 0;
}

static int
post_datagram(struct bb_qp *qp, const struct bb_send_wr *wr, uint8_t opcode, uint32_t imm)
{
	const struct bb_ah *ah = wr->ud.ah;
	int bad = bb_ah_refuse(qp, ah);

	if (bad != 0)
		return bad;
	if ((wr->flags & BB_SEND_INLINE) != 0)
		return bb_sq_post_ud_inline_list(&qp->sq, opcode, wr->wr_id, &ah->av, wr->ud.qpn,
						 wr->ud.qkey, wr->sge, wr->nsge, imm, wr->flags);
	return bb_sq_post_ud(&qp->sq, opcode, wr->wr_id, &ah->av, wr->ud.qpn, wr->ud.qkey, wr->sge,
			     wr->nsge, imm, wr->flags);
}

static int
post_atomic(struct bb_qp *qp, const struct bb_send_wr *wr, uint8_t opcode)
{
	const struct bb_dev_attr *dev = &qp->ctrl->pd->dev->attr;
	bool masked =
		wr->opcode == BB_WR_MASKED_CMP_AND_SWP || wr->opcode == BB_WR_MASKED_FETCH_AND_ADD;
	bool swap =
		wr->opcode == BB_WR_ATOMIC_CMP_AND_SWP || wr->opcode == BB_WR_MASKED_CMP_AND_SWP;

	if (wr->nsge != 1)
		return bb_sq_refuse_arg(&qp->sq, BB_REFUSED_ATOMIC_LEN);
	if (masked) {
		if (dev->masked_atomics == 0)
			return bb_sq_refuse_arg(&qp->sq, BB_REFUSED_UNSUPPORTED);
		if ((wr->sge->len & dev->masked_atomics) != wr->sge->len)
			return bb_sq_refuse_arg(&qp->sq, BB_REFUSED_ATOMIC_LEN);
		return swap ? bb_post_masked_cmp_swap(qp, wr->wr_id, wr->sge, wr->atomic.raddr,
						      wr->atomic.rkey, wr->atomic.compare_add,
						      wr->atomic.compare_mask, wr->atomic.swap,
						      wr->atomic.swap_mask, wr->flags)
			    : bb_post_masked_fetch_add(qp, wr->wr_id, wr->sge, wr->atomic.raddr,
						       wr->atomic.rkey, wr->atomic.compare_add,
						       wr->atomic.compare_mask, wr->flags);
	}
	if (!dev->atomics)
		return bb_sq_refuse_arg(&qp->sq, BB_REFUSED_UNSUPPORTED);
	return bb_sq_post_atomic(&qp->sq, opcode, wr->wr_id, wr->sge, wr->atomic.raddr,
				 wr->atomic.rkey, swap ? wr->atomic.swap : wr->atomic.compare_add,
				 swap ? wr->atomic.compare_add : 0, wr->flags);
}

/* Posts a request that changes a key of the local device. */
static int
post_key(struct bb_qp *qp, const struct bb_send_wr *wr)
{
	const struct bb_dev_attr *dev = &qp->ctrl->pd->dev->attr;

	if (wr->opcode == BB_WR_LOCAL_INV)
		return dev->memory_windows || dev->mkey_layout
			       ? bb_post_local_inv(qp, wr->wr_id, wr->imm_or_inv, wr->flags)
			       : bb_sq_refuse_arg(&qp->sq, BB_REFUSED_UNSUPPORTED);
	if (!dev->memory_windows)
		return bb_sq_refuse_arg(&qp->sq, BB_REFUSED_UNSUPPORTED);
	if (wr->bind_mw.mw == NULL)
		return bb_sq_refuse_arg(&qp->sq, BB_REFUSED_MKEY_BLOCK);
	return bb_post_bind_mw(qp, wr->wr_id, wr->bind_mw.mw, wr->bind_mw.rkey, wr->bind_mw.mr,
			       wr->bind_mw.addr, wr->bind_mw.len, wr->bind_mw.access, wr->flags);
}

/* Posts one request. Returns what the functions of bb_post.h return. */
static int
post_one(struct bb_qp *qp, const struct bb_send_wr *wr)
{
	enum bb_qp_type type = (enum bb_qp_type)qp->sq.type;
	uint8_t opcode = bb_wr_wqe_opcode(wr->opcode);
	int ret = bb_wr_check(type, wr->opcode, wr->flags);

	if (ret == -ENOTSUP)
		return bb_sq_refuse_arg(&qp->sq, BB_REFUSED_UNSUPPORTED);
	if (ret != 0)
		return bb_sq_refuse_arg(&qp->sq, bb_wr_check(type, wr->opcode, 0) != 0
							 ? BB_REFUSED_OPCODE
							 : BB_REFUSED_FLAGS);
	switch (wr->opcode) {
	case BB_WR_SEND:
		return type == BB_QPT_UD ? post_datagram(qp, wr, opcode, 0)
					 : post_message(qp, wr, opcode, false, 0);
	case BB_WR_SEND_WITH_IMM:
		return type == BB_QPT_UD ? post_datagram(qp, wr, opcode, wr->imm_or_inv)
					 : post_message(qp, wr, opcode, false, wr->imm_or_inv);
	case BB_WR_RDMA_WRITE:
	case BB_WR_RDMA_READ:
		return post_message(qp, wr, opcode, true, 0);
	case BB_WR_RDMA_WRITE_WITH_IMM:
		return post_message(qp, wr, opcode, true, wr->imm_or_inv);
	case BB_WR_SEND_WITH_INV:
		return post_message(qp, wr, opcode, false, bb_be32(wr->imm_or_inv));
	case BB_WR_LOCAL_INV:
	case BB_WR_BIND_MW:
		return post_key(qp, wr);
	case BB_WR_ATOMIC_CMP_AND_SWP:
	case BB_WR_ATOMIC_FETCH_AND_ADD:
	case BB_WR_MASKED_CMP_AND_SWP:
	case BB_WR_MASKED_FETCH_AND_ADD:
		return post_atomic(qp, wr, opcode);
	default:
		return bb_sq_refuse_arg(&qp->sq, BB_REFUSED_UNSUPPORTED);
	}
}

uint32_t
bb_qp_post_list(struct bb_qp *qp, const struct bb_send_wr *wr, uint32_t n, int *err)
{
	uint32_t i;
	int ret = 0;

	for (i = 0; i < n; i++) {
		ret = post_one(qp, &wr[i]);
		if (ret != 0)
			break;
	}
	*err = ret != -EAGAIN ? ret : 0;
	return i;
}

uint32_t
bb_qp_post_recv_list(struct bb_qp *qp, const struct bb_recv_wr *wr, uint32_t n, int *err)
{
	uint32_t i;
	int ret = 0;

	for (i = 0; i < n; i++) {
		ret = bb_post_recv(qp, wr[i].wr_id, wr[i].sge, wr[i].nsge);
		if (ret != 0)
			break;
	}
	*err = ret != -EAGAIN ? ret : 0;
	return i;
}
