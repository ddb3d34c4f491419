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
 *
 * A host that sees nothing of a connection and forges packets of it has to guess the one PSN that
 * is expected. What is kept widens that to a window, so the window is small and seldom open:
 *
 * - Packets are kept only for a peer that repeats selectively, as no other has a use for it. The
 *   peer shows that: after the packet that a NAK named comes the newest one or a new one, not the
 *   next one after the NAK's. That counts for GRANT packets.
 * - What is kept follows the packet that is expected, or the newest that is kept, within BURST.
 * - Of two packets with one PSN that differ one is forged: both are dropped, the peer gets a NAK,
 * and the window is closed.
 * - A packet that was kept cannot fail the queue pair: one that would is asked for again.
 */
#include "bb_roce_priv.h"

#define GRANT 65536u /* packets; losses that are rarer cost little */
#define BURST 16u    /* packets in a row that may be lost */

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

/* AckReq and what a switch marks may differ when a packet is sent again. */
static bool
same(const struct bb_roce_pkt *a, const struct bb_roce_pkt *b, uint32_t flags)
{
	if (a->opcode != b->opcode || ((a->flags ^ b->flags) & BB_ROCE_SE) != 0 || a->len != b->len)
		return false;
	if ((flags & (BB_ROCE_F_RETH | BB_ROCE_F_ATOMICETH)) != 0 &&
	    (a->va != b->va || a->rkey != b->rkey))
		return false;
	if ((flags & BB_ROCE_F_RETH) != 0 && a->dmalen != b->dmalen)
		return false;
	if ((flags & BB_ROCE_F_ATOMICETH) != 0 &&
	    (a->swap_add != b->swap_add || a->compare != b->compare))
		return false;
	if ((flags & (BB_ROCE_F_IMM | BB_ROCE_F_IETH)) != 0 && a->imm != b->imm)
		return false;
	return a->len == 0 || memcmp(a->payload, b->payload, a->len) == 0;
}

/* Is the packet near enough to what is known to be the peer's? */
static bool
follows(struct bb_roce_resp *r, uint32_t psn)
{
	uint32_t newest = r->nak_sent && r->missing == r->epsn ? r->newest : r->epsn;

	if (bb_roce_psn_diff(psn, newest) >= (int32_t)BURST)
		return false;
	if (bb_roce_psn_diff(psn, newest) >= 0)
		newest = bb_roce_psn_add(psn, 1);
	r->newest = newest;
	return true;
}

bool
bb_roce_ahead_keep(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt, uint32_t flags)
{
	struct bb_roce_resp *r = &qp->resp;
	struct bb_roce_pkt **at;

	if (bb_roce_psn_distance(r->epsn, pkt->psn) >= r->aheads)
		return true;
	/* The packet of the NAK, and it alone, has come again; this one is the newest, or new. */
	if (!r->nak_sent && r->epsn == bb_roce_psn_add(r->missing, 1) &&
	    bb_roce_psn_distance(r->newest, bb_roce_psn_add(pkt->psn, 1)) <= BURST)
		r->keep_until = r->seq + GRANT;
	if (!follows(r, pkt->psn) || r->seq >= r->keep_until)
		return true;
	at = place_of(r, pkt->psn);
	if (*at != NULL && same(*at, pkt, flags))
		return true;
	if (*at != NULL) {
		drop(qp, at);
		qp->stats.drop_differs++;
		r->keep_until = 0;
		return false;
	}
	*at = qp->ops->keep(qp->ctx, qp, pkt);
	if (*at == NULL)
		return true;
	r->n_ahead++;
	qp->stats.kept++;
	return true;
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
