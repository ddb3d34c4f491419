/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Receives: posts the WQEs of a receive queue or an SRQ to the provider, with ibv_post_recv() or
 * ibv_post_srq_recv().
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verbs_drv.h"

#define CHAIN 16u
/* Maximum SGEs of the receives of one ibv_post_recv(); a receive has at most VERBS_MAX_SGE. */
#define CHAIN_SGE 64u
BB_STATIC_ASSERT(CHAIN_SGE >= VERBS_MAX_SGE, "a request fits into an empty chain");

struct chain {
	struct ibv_recv_wr wr[CHAIN];
	struct ibv_sge sge[CHAIN_SGE];
	uint32_t n, n_sge;
};

/*
 * Appends a receive to the list for ibv_post_recv(), for the WQE whose @segs data segments start at
 * @seg.
 */
static void
chain_add(struct chain *ch, uint64_t wr_id, const struct bb_wqe_data *seg, uint32_t segs)
{
	struct ibv_recv_wr *wr = &ch->wr[ch->n];
	uint32_t i;

	wr->wr_id = wr_id;
	wr->next = NULL;
	wr->sg_list = &ch->sge[ch->n_sge];
	wr->num_sge = 0;
	for (i = 0; i < segs; i++) {
		const uint32_t len = bb_be32(seg[i].byte_count), lkey = bb_be32(seg[i].lkey);

		if (len == 0 && lkey == BB_WQE_INVALID_LKEY)
			break;
		ch->sge[ch->n_sge].addr = bb_be64(seg[i].addr);
		ch->sge[ch->n_sge].length = len != 0 ? len : BB_WQE_MAX_SGE_LEN;
		ch->sge[ch->n_sge++].lkey = lkey;
		wr->num_sge++;
	}
	if (ch->n != 0)
		ch->wr[ch->n - 1].next = wr;
	ch->n++;
}

static bool
chain_full(const struct chain *ch, uint32_t segs)
{
	return ch->n == CHAIN || ch->n_sge + segs > CHAIN_SGE;
}

/* Completes with an error, as a card would, the receives that the provider rejected. */
static void
rq_refused(struct bb_qp *qp, const struct ibv_recv_wr *bad, int err)
{
	verbs_qp_stop(qp, "a receive", err);
	/*
	 * First process the completions of the accepted receives, which the provider has now
	 * flushed.
	 */
	verbs_drain(qp->ctrl->recv_cq->ctrl->priv);
	for (; bad != NULL; bad = bad->next)
		verbs_recv_refused(qp, (uint16_t)bad->wr_id);
}

static void
rq_give(struct bb_qp *qp, struct chain *ch)
{
	struct ibv_recv_wr *bad = NULL;
	int err;

	if (ch->n == 0)
		return;
	err = ibv_post_recv(verbs_qp_of(qp)->ib, ch->wr, &bad);
	/* siw's provider returns a negative errno, so use the absolute value. */
	if (err != 0)
		rq_refused(qp, bad != NULL ? bad : ch->wr, abs(err));
	ch->n = 0;
	ch->n_sge = 0;
}

void
verbs_rq_ring(struct bb_rq *rq)
{
	struct bb_qp *qp = container_of(rq, struct bb_qp, rq);
	const uint64_t base = VERBS_WR_RECV | (uint64_t)qp->user_index << VERBS_WR_USER_SHIFT;
	const uint32_t segs = 1u << rq->log_stride >> 4;
	struct chain ch;

	ch.n = 0;
	ch.n_sge = 0;
	for (; rq->rung != rq->pi; rq->rung++) {
		const uint8_t *wqe = rq->buf + ((size_t)(rq->rung & rq->mask) << rq->log_stride);

		if (chain_full(&ch, segs))
			rq_give(qp, &ch);
		chain_add(&ch, base | (uint16_t)rq->rung,
			  (const struct bb_wqe_data *)(const void *)wqe, segs);
	}
	rq_give(qp, &ch);
}

/*
 * Posts the collected receives to the SRQ. A rejected receive is only logged: it belongs to no QP,
 * so it cannot complete.
 */
static void
srq_give(struct bb_srqring *ring, struct verbs_srq *s, struct chain *ch)
{
	struct ibv_recv_wr *bad = NULL;
	int err;

	if (ch->n == 0)
		return;
	err = ibv_post_srq_recv(s->ib, ch->wr, &bad);
	if (err != 0)
		BB_LOG(ERR,
		       "SRQ 0x%x: the provider rejected a receive: %s; the receive never "
		       "completes: recreate the SRQ",
		       ring->srqn, strerror(abs(err)));
	ch->n = 0;
	ch->n_sge = 0;
}

void
verbs_srq_ring(struct bb_srqring *ring)
{
	struct bb_srq *srq = container_of(ring, struct bb_srq, ring);
	struct verbs_srq *s = srq->ctrl->priv;
	const uint32_t segs = (1u << ring->log_stride >> 4) - 1;
	struct chain ch;

	ch.n = 0;
	ch.n_sge = 0;
	for (; ring->rung != ring->pi; ring->rung++) {
		const struct bb_wqe_srq_next *wqe = bb_srqring_wqe(ring, s->head);

		if (chain_full(&ch, segs))
			srq_give(ring, s, &ch);
		chain_add(&ch, VERBS_WR_RECV | VERBS_WR_SRQ | s->head,
			  (const struct bb_wqe_data *)(const void *)(wqe + 1), segs);
		/*
		 * The link of a posted WQE, next_wqe_index, stays valid until the WQE completes. So
		 * it names the next posted WQE.
		 */
		s->head = bb_be16(wqe->next_wqe_index);
	}
	srq_give(ring, s, &ch);
}
