/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Selective repeat in the responder. If a packet is lost, the responder stores the RC requests
 * after it. When the lost packet arrives, the stored requests are executed in order. For the peer
 * the result is the same as if they had arrived only then: no data is placed, completed or
 * acknowledged out of order (9.7.4.1.1). If the requester restarts further back than necessary, the
 * repeated packets are handled as duplicates.
 *
 * A packet is stored at its PSN modulo the number of slots. A packet is not stored if the distance
 * of its PSN from the expected PSN is the number of slots or more. So two packets never share a
 * slot.
 *
 * An off-path attacker that forges packets must guess the one expected PSN. Storing packets lets
 * the attacker guess any PSN of a window. So the window is small, and packets are stored only under
 * these conditions:
 *
 * - The peer repeats selectively; no other peer benefits from stored packets. The responder sees
 *   this after a NAK: a selective peer sends the lost packet and then its newest or a new packet.
 *   Other peers send the packet with the next PSN. The permission lasts for GRANT packets.
 * - The packet is within BURST PSNs of the expected packet or of the newest stored packet.
 * - If two packets with the same PSN differ, one of them is forged. Both are dropped, the peer gets
 *   a NAK, and the permission ends.
 * - A stored packet cannot fail the queue pair, except by a local error such as a completion that
 *   cannot be reported. If the packet is invalid, the responder requests it again.
 */
#include "bb_roce_priv.h"

/*
 * Number of packets after which the responder's permission to store out-of-order packets ends.
 * After such a long time without a loss, one restart of the peer costs little.
 */
#define GRANT 65536u
/* a packet is not stored if this number of PSNs or more are missing right before it */
#define BURST 16u

static struct bb_roce_pkt **
slot_of(const struct bb_roce_resp *r, uint32_t psn)
{
	return &r->out_of_order[psn & (r->max_out_of_order - 1)];
}

static void
drop(struct bb_roce_qp *qp, struct bb_roce_pkt **at)
{
	struct bb_roce_pkt *pkt = *at;

	if (pkt == NULL)
		return;
	*at = NULL;
	qp->resp.n_out_of_order--;
	qp->ops->release_pkt(qp->ctx, qp, pkt);
}

/*
 * Returns true if two packets with the same PSN are equal. Ignores AckReq and congestion marks,
 * which may differ between two transmissions.
 */
static bool
equal_packets(const struct bb_roce_pkt *a, const struct bb_roce_pkt *b, uint32_t flags)
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

/*
 * Returns true if fewer than BURST PSNs are missing between @psn and the newest PSN that the peer
 * is known to have sent. If @psn is newer, records it as the newest.
 */
static bool
psn_plausible(struct bb_roce_resp *r, uint32_t psn)
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
bb_roce_ooo_store(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt, uint32_t flags)
{
	struct bb_roce_resp *r = &qp->resp;
	struct bb_roce_pkt **at;

	if (bb_roce_psn_distance(r->epsn, pkt->psn) >= r->max_out_of_order)
		return true;
	/*
	 * The lost packet has arrived, and this packet is not the one with the next PSN: it is the
	 * peer's newest packet or a new one. So the peer repeats selectively. No packet is
	 * known as lost while "newest" and "missing" are equal.
	 */
	if (!r->nak_sent && r->newest != r->missing && r->epsn == bb_roce_psn_add(r->missing, 1) &&
	    bb_roce_psn_distance(r->newest, bb_roce_psn_add(pkt->psn, 1)) <= BURST)
		r->store_until = r->seq + GRANT;
	if (!psn_plausible(r, pkt->psn) || r->seq >= r->store_until)
		return true;
	at = slot_of(r, pkt->psn);
	if (*at != NULL && equal_packets(*at, pkt, flags))
		return true;
	if (*at != NULL) {
		drop(qp, at);
		qp->stats.drop_differs++;
		r->store_until = 0;
		return false;
	}
	*at = qp->ops->store_pkt(qp->ctx, qp, pkt);
	if (*at == NULL)
		return true;
	r->n_out_of_order++;
	qp->stats.stored++;
	return true;
}

/* Drops packets stored at the PSNs of a READ's responses. No valid request has such a PSN. */
static void
drop_response_psns(struct bb_roce_qp *qp, uint32_t psn)
{
	struct bb_roce_resp *r = &qp->resp;
	uint32_t n = bb_roce_psn_distance(psn, r->epsn);

	if (n > r->max_out_of_order)
		n = r->max_out_of_order;
	for (; n != 0; n--, psn = bb_roce_psn_add(psn, 1))
		drop(qp, slot_of(r, psn));
}

bool
bb_roce_ooo_next(struct bb_roce_qp *qp, uint32_t before, struct bb_roce_pkt **pkt)
{
	struct bb_roce_resp *r = &qp->resp;
	struct bb_roce_pkt **at;

	drop_response_psns(qp, before);
	if (r->n_out_of_order == 0)
		return false;
	at = slot_of(r, r->epsn);
	*pkt = *at;
	if (*at != NULL) {
		*at = NULL;
		r->n_out_of_order--;
	}
	return true;
}

void
bb_roce_ooo_drop(struct bb_roce_qp *qp)
{
	uint32_t i;

	for (i = 0; qp->resp.n_out_of_order != 0; i++)
		drop(qp, &qp->resp.out_of_order[i]);
}
