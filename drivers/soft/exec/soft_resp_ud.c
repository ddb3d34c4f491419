/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The responder of UD queue pairs. A datagram that fits is written to the next receive, after 40
 * bytes for a GRH. Any other datagram is dropped silently (IBTA vol. 1, 9.8.3).
 */
#include "bb_prm_kernel.h"
#include "soft_access.h"
#include "soft_cqe.h"
#include "soft_resp.h"
#include "soft_ud.h"

/*
 * Removes the first @bytes of a receive's buffers from the list @to, so that no data is written to
 * these bytes.
 */
static void
soft_ud_skip(struct soft_frags *to, uint64_t bytes)
{
	uint32_t i = 0;

	while (bytes != 0 && i < to->n) {
		uint64_t n = RTE_MIN(bytes, to->p[i].len);

		to->p[i].p += n;
		to->p[i].len -= n;
		bytes -= n;
		if (to->p[i].len == 0)
			i++;
	}
	to->n -= i;
	memmove(to->p, to->p + i, to->n * sizeof(*to->p));
}

/*
 * Writes a datagram to the buffers of its receive, e->remote: first SOFT_GRH bytes of header, then
 * the data. Without a GRH the first SOFT_GRH bytes of the buffers stay unchanged.
 */
static void
soft_ud_write(struct soft_engine *e, const struct soft_dgram *d, const struct soft_frag *frag,
	      uint32_t n)
{
	struct soft_frag all[SOFT_MAX_FRAGS + 1];

	if (!d->grh) {
		soft_ud_skip(&e->remote, SOFT_GRH);
		soft_mem_move(e, e->remote.p, frag, n);
		return;
	}
	/* The cast drops const, but soft_mem_move() only reads from this fragment. */
	all[0].p = (uint8_t *)(uintptr_t)d->head;
	all[0].len = SOFT_GRH;
	if (n <= SOFT_MAX_FRAGS) {
		memcpy(&all[1], frag, n * sizeof(*frag));
		soft_mem_move(e, e->remote.p, all, n + 1);
		return;
	}
	/*
	 * The array of fragments has no room for the GRH and all SGEs, so GRH and data are written
	 * separately.
	 */
	soft_mem_move(e, e->remote.p, all, 1);
	soft_ud_skip(&e->remote, SOFT_GRH);
	soft_mem_move(e, e->remote.p, frag, n);
}

bool
soft_ud_complete(struct soft_engine *e, struct soft_qp *p, const struct soft_dgram *d)
{
	bool imm = d->opcode == BB_WQE_SEND_IMM;
	uint32_t rqpn = bb_be32((uint32_t)d->grh << 28 | (uint32_t)d->sl << BB_CQE_RQPN_SL_SHIFT |
				d->src_qpn);
	uint32_t pkey = p->special == BB_PRM_QP_ST_QP1 ? bb_be32(SOFT_PKEY) : 0;
	uint16_t slid = bb_be16(d->slid);
	uint8_t head[32] = {0};

	memcpy(head + offsetof(struct bb_cqe, slid), &slid, sizeof(slid));
	memcpy(head + offsetof(struct bb_cqe, flags_rqpn), &rqpn, sizeof(rqpn));
	p->rmp_holds = false;
	/*
	 * Without immediate data this CQE field holds the P_Key index, which is always 0. For a
	 * kernel's QP1 it holds the P_Key (Linux mlx5_ib, cq.c: handle_responder()).
	 */
	return soft_cqe_write_data(
		e, p, p->rcq, soft_pair(bb_be32(p->user_index), imm ? d->imm : pkey),
		soft_pair(0, bb_be32((uint32_t)d->len + SOFT_GRH)), 0, 0, e->recv.idx,
		(uint8_t)((imm ? BB_CQE_RESP_SEND_IMM : BB_CQE_RESP_SEND) << 4 |
			  (d->solicited ? SOFT_CQE_SE : 0)),
		head);
}

void
soft_ud_receive(struct soft_engine *e, struct soft_qp *p, const struct soft_dgram *d,
		const struct soft_frag *frag, uint32_t n)
{
	struct soft_response ans;
	const char *why;
	uint8_t synd;

	if (d->qkey != p->q_key) {
		soft_resp_drop(p, d->src_qpn, d->len,
			       "the Q_Key of the message is not the Q_Key of this QP");
		return;
	}
	ans = soft_resp_recv_ready(e, p, NULL, NULL);
	if (ans.kind != SOFT_ACK)
		return;
	synd = soft_resp_scatter(e, p, NULL, d->len + SOFT_GRH, &why);
	if (synd != 0) {
		soft_resp_recv_fail(e, p, NULL, d->len, synd, why);
		return;
	}
	soft_ud_write(e, d, frag, n);
	bb_dma_wmb();
	if (!soft_ud_complete(e, p, d))
		soft_qp_fail(p, BB_PRM_EVENT_WQ_CATAS_ERROR);
	else if (p->rmp == NULL)
		p->rq_ci++;
}
