/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Selective repeat, the responder's half: requests of RC that come before one that was lost are
 * kept, and executed in their order when that one has come again. What the peer sees is as if they
 * had come then: nothing is placed, completed or acknowledged before its turn (9.7.4.1.1). A
 * requester that goes back further than it has to sends duplicates.
 *
 * A packet is kept at its PSN modulo the room there is, and no further ahead than that, so no two
 * have the same place.
 */
#include "bb_roce_priv.h"

static struct bb_roce_pkt **
place_of(const struct bb_roce_resp *r, uint32_t psn)
{
	return &r->ahead[psn & (r->aheads - 1)];
}

static void
drop(struct bb_roce_qp *qp, struct bb_roce_pkt **at)
{
	struct bb_roce_pkt *pkt = *at;

	if (pkt == NULL)
		return;
	*at = NULL;
	qp->resp.n_ahead--;
	qp->ops->unkeep(qp->ctx, qp, pkt);
}

void
bb_roce_ahead_keep(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt)
{
	struct bb_roce_resp *r = &qp->resp;
	struct bb_roce_pkt **at;

	if (bb_roce_psn_distance(r->epsn, pkt->psn) >= r->aheads)
		return;
	at = place_of(r, pkt->psn);
	if (*at != NULL)
		return;
	*at = qp->ops->keep(qp->ctx, qp, pkt);
	if (*at == NULL)
		return;
	r->n_ahead++;
	qp->stats.kept++;
}

/* PSNs of a READ's response have no requests, whatever has come with them. */
static void
forget(struct bb_roce_qp *qp, uint32_t psn)
{
	struct bb_roce_resp *r = &qp->resp;
	uint32_t n = bb_roce_psn_distance(psn, r->epsn);

	if (n > r->aheads)
		n = r->aheads;
	for (; n != 0; n--, psn = bb_roce_psn_add(psn, 1))
		drop(qp, place_of(r, psn));
}

bool
bb_roce_ahead_next(struct bb_roce_qp *qp, uint32_t before, struct bb_roce_pkt **pkt)
{
	struct bb_roce_resp *r = &qp->resp;
	struct bb_roce_pkt **at;

	forget(qp, before);
	if (r->n_ahead == 0)
		return false;
	at = place_of(r, r->epsn);
	*pkt = *at;
	if (*at != NULL) {
		*at = NULL;
		r->n_ahead--;
	}
	return true;
}

void
bb_roce_ahead_drop(struct bb_roce_qp *qp)
{
	uint32_t i;

	for (i = 0; qp->resp.n_ahead != 0; i++)
		drop(qp, &qp->resp.ahead[i]);
}
