/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* A decoded send WQE, in the form that libibverbs needs. */
#ifndef VERBS_REQ_H
#define VERBS_REQ_H

#include "bb_sq_umr.h"
#include "verbs_drv.h"

struct verbs_req {
	uint64_t wr_id; /* includes VERBS_WR_REPORT if the completion is reported */
	uint32_t flags; /* enum ibv_send_flags */
	uint8_t opcode; /* as in struct bb_sq_wqe */
	bool is_inline; /* true: data is valid; false: sge is valid */
	uint32_t n;     /* number of SGEs, or of buffers of inline data */
	uint32_t imm;   /* immediate data, or the key of SEND_WITH_INV; in network order */
	uint32_t rkey;  /* rkey of the peer; for a bind the new key of the window */
	uint64_t raddr;
	uint64_t swap_add; /* valid only for atomics */
	uint64_t compare;
	struct ibv_ah *ah; /* address handle; valid only for UD, otherwise NULL */
	uint32_t dest_qpn;
	uint32_t qkey;
	struct ibv_mw *mw; /* valid only for binds */
	struct ibv_mw_bind_info bind;
	/* inline data; two buffers if the data wraps at the end of the ring */
	struct ibv_data_buf data[2];
	struct ibv_sge sge[VERBS_MAX_SGE];
};

/* Decodes a WQE, except for a WRITE, READ or SEND on a connected QP. Returns 0 or VERBS_LOGGED. */
int verbs_req_other(struct verbs_qp *q, const struct bb_sq *sq, struct bb_wqe_ctrl *ctrl,
		    uint32_t ds, struct verbs_req *r);

/* Decodes inline data after the segment @seg. */
static inline void
verbs_req_inline(const struct bb_sq *sq, const void *seg, uint32_t len, struct verbs_req *r)
{
	const uint8_t *from = (const uint8_t *)seg + 4;
	const size_t room = (size_t)(sq->buf + ((size_t)sq->mask + 1) * BB_WQE_BB - from);

	r->is_inline = true;
	/*
	 * Set the flag although ibv_wr_set_inline_data() implies it, because rxe's kernel driver
	 * checks the flag.
	 */
	r->flags |= IBV_SEND_INLINE;
	r->data[0].addr = (void *)(uintptr_t)from;
	r->data[0].length = RTE_MIN((size_t)len, room);
	r->data[1].addr = sq->buf;
	r->data[1].length = len - r->data[0].length;
	r->n = r->data[1].length != 0 ? 2 : 1;
}

/* Decodes the SGEs or the inline data in @segs segments from @seg on. */
static inline void
verbs_req_data(const struct bb_sq *sq, void *seg, uint32_t segs, struct verbs_req *r)
{
	uint32_t i;

	for (i = 0; i < segs; i++) {
		const struct bb_wqe_data *d = seg;
		const uint32_t len = bb_be32(d->byte_count);

		if (bb_unlikely((len & BB_WQE_INLINE) != 0)) {
			verbs_req_inline(sq, seg, len & ~BB_WQE_INLINE, r);
			return;
		}
		/* A length of 2^31 is stored as 0 in a WQE: see bb_sq_fill_data(). */
		r->sge[i].length = len != 0 ? len : BB_WQE_MAX_SGE_LEN;
		r->sge[i].lkey = bb_be32(d->lkey);
		r->sge[i].addr = bb_be64(d->addr);
		seg = bb_sq_next_seg(sq, seg);
	}
	r->n = segs;
}

/* Decodes the WQE at @ctrl. Returns 0 or VERBS_LOGGED. */
static inline int
verbs_req_read(struct verbs_qp *q, const struct bb_sq *sq, struct bb_wqe_ctrl *ctrl,
	       const struct bb_sq_wqe *w, uint32_t ds, struct verbs_req *r)
{
	const uint8_t fm = ctrl->fm_ce_se;
	const struct bb_wqe_raddr *raddr = (const void *)(ctrl + 1);

	r->opcode = w->opcode;
	r->imm = ctrl->imm;
	r->is_inline = false;
	r->ah = NULL;
	r->wr_id = 0;
	r->flags = 0;
	if ((fm & BB_WQE_CE_CQE) != 0) {
		r->wr_id = VERBS_WR_REPORT;
		r->flags = IBV_SEND_SIGNALED;
	}
	if (bb_unlikely((fm & (BB_WQE_SE | BB_WQE_FM_FENCE)) != 0))
		r->flags |= ((fm & BB_WQE_SE) != 0 ? IBV_SEND_SOLICITED : 0) |
			    ((fm & BB_WQE_FM_FENCE) != 0 ? IBV_SEND_FENCE : 0);
	switch (w->opcode) {
	case BB_WQE_RDMA_WRITE:
	case BB_WQE_RDMA_WRITE_IMM:
	case BB_WQE_RDMA_READ:
		r->raddr = bb_be64(raddr->raddr);
		r->rkey = bb_be32(raddr->rkey);
		verbs_req_data(sq, ctrl + 2, ds - 2, r);
		return 0;
	case BB_WQE_SEND:
	case BB_WQE_SEND_IMM:
	case BB_WQE_SEND_INV:
		if (bb_unlikely(sq->type == BB_QPT_UD))
			break;
		verbs_req_data(sq, ctrl + 1, ds - 1, r);
		return 0;
	default:
		break;
	}
	return verbs_req_other(q, sq, ctrl, ds, r);
}

#endif
