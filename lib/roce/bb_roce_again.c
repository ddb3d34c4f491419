/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Selective repeat in the requester. A NAK for a lost PSN does not show what the peer did with the
 * packets after that PSN. The peer may have stored them, as bb_roce_ooo.c does, or dropped them,
 * as the responder of the IBTA specification does. So the requester sends only the lost packet
 * again, continues with new packets, and looks at the next acknowledgement:
 *
 * - The acknowledgement covers more than the lost packet: the peer stores packets.
 * - It covers only the lost packet: the peer has dropped all packets after it. They must be sent
 *   again too, one round trip later than if the requester had restarted at once.
 *
 * After a few failures the requester restarts at once for a while (HOLD_OFF). It always restarts
 * if the peer does not store packets or if no timer runs.
 *
 * A peer stores packets only for a requester that shows selective repeat (bb_roce_ooo.c). To
 * show it, the requester sends the newest packet right after the lost one, until it knows that the
 * peer stores packets. A requester that restarts would send the packet after the lost one instead.
 * A peer that drops the newest packet sends a NAK.
 *
 * Other losses in the same window are found one after the other, each after one more round trip.
 * If the peer stores packets, each further loss therefore doubles the run, which is the number of
 * packets that are sent again from the lost one on. A longer run costs little if losses are rare.
 * If they are frequent, it is no slower than a restart.
 *
 * A NAK for a packet of a run may refer to the first transmission of that packet. Nothing else
 * shows whether the second transmission was lost. So the requester believes the NAK, and halves
 * the run that starts there.
 *
 * If the peer stores packets, an ACK may end before a packet that was sent earlier than the
 * repeated one. Such an ACK shows another loss, whose NAK was lost too. To repeat that packet too
 * early costs only one packet, so the adaptive interval may be short (bb_roce_rto.c). READs and
 * atomics are different: the requester does not store responses after a missing one, so it
 * requests all responses again from the missing one on.
 */
#include "bb_roce_priv.h"

/*
 * Failed attempts before the requester stops trying. One failure may mean that the next packet was
 * lost too. A peer that stored packets before gets more attempts, because it may only have run out
 * of room.
 */
#define CHANCES  3
#define KEPT     12 /* for a peer that stored packets before */
#define HOLD_OFF 64 /* number of losses that are handled by a restart before the next attempt */

void
bb_roce_again_init(struct bb_roce_qp *qp)
{
	qp->req.chances = CHANCES;
}

bool
bb_roce_again_one(const struct bb_roce_req *req)
{
	const struct bb_roce_msg *msg = &req->ring[req->tail & req->mask];

	return req->tail != req->unassigned && !bb_roce_is_read_or_atomic(msg->kind) &&
	       !req->credits && req->bad == 0;
}

/*
 * Returns true if the oldest packet may be sent again alone now: other packets follow it, and no
 * packets are being sent again.
 */
static bool
alone(const struct bb_roce_req *req)
{
	return req->nxt == req->sent && bb_roce_psn_distance(req->una, req->nxt) > 1 &&
	       bb_roce_again_one(req);
}

/* Returns true if @psn, which is not acknowledged, is before @end. */
static bool
before(const struct bb_roce_req *req, uint32_t psn, uint32_t end)
{
	return bb_roce_psn_distance(psn, end) - 1 < bb_roce_psn_distance(psn, req->sent);
}

/* Returns true if the oldest packet was sent again in the last run and is not acknowledged yet. */
static bool
on_the_way(const struct bb_roce_req *req)
{
	return before(req, req->una, req->again_end);
}

static void
again(struct bb_roce_qp *qp, uint8_t probe, bool by_nak)
{
	struct bb_roce_req *req = &qp->req;
	uint32_t out = bb_roce_psn_distance(req->una, req->nxt);

	if (!req->keeps || !before(req, req->una, req->probed))
		req->row = 1;
	else if (by_nak && on_the_way(req))
		req->row = (req->row + 1) / 2;
	else
		req->row *= 2;
	if (req->row > out)
		req->row = out;
	req->again = req->row;
	req->again_psn = req->una;
	req->again_msg = req->tail;
	req->shows = false;
	req->probe = probe;
	bb_roce_rto_rewound(qp);
}

bool
bb_roce_again_lost(struct bb_roce_qp *qp, bool by_nak)
{
	struct bb_roce_req *req = &qp->req;
	bool missing = by_nak && !before(req, req->una, req->redone) && !on_the_way(req);

	if (!qp->attr.selective)
		return false;
	if (req->chances <= 0 && by_nak && ++req->chances == 0)
		req->chances = 1;
	if (req->chances <= 0 || (!missing && !req->keeps) || !alone(req))
		return false;
	again(qp, missing ? BB_ROCE_PROBE_MISSING : BB_ROCE_PROBE_IN_DOUBT, by_nak);
	return true;
}

/*
 * Selects the newest packet as the next to send. Does nothing if the newest packet directly
 * follows the oldest, or if it cannot be sent alone.
 */
static void
show(struct bb_roce_req *req)
{
	const uint32_t newest = bb_roce_psn_add(req->sent, BB_ROCE_PSN_MASK);
	const uint32_t i = req->next_pkt != 0 ? req->next : req->next - 1;

	if (bb_roce_psn_distance(req->again_psn, newest) == 0 ||
	    bb_roce_psn_distance(req->again_psn, req->sent) >
		    bb_roce_psn_distance(req->una, req->sent) ||
	    bb_roce_is_read_or_atomic(req->ring[i & req->mask].kind))
		return;
	req->shows = true;
	req->again = 1;
	req->again_psn = newest;
	req->again_msg = i;
}

void
bb_roce_again_sent(struct bb_roce_qp *qp, uint64_t now)
{
	struct bb_roce_req *req = &qp->req;
	bool first = req->again_psn == req->una;
	const struct bb_roce_msg *msg = &req->ring[req->again_msg & req->mask];

	if (req->shows) {
		req->shows = false;
		req->again = 0;
		return;
	}
	req->again_psn = bb_roce_psn_add(req->again_psn, 1);
	req->again_end = req->again_psn;
	req->again--;
	if (bb_roce_psn_distance(msg->psn, req->again_psn) == msg->packets)
		req->again_msg++;
	if (!first)
		return;
	req->probed = req->nxt;
	bb_roce_rto_again(qp, req->probe == BB_ROCE_PROBE_MISSING, now);
	if (!req->keeps && req->again == 0)
		show(req);
}

void
bb_roce_again_acked(struct bb_roce_qp *qp, uint32_t acked, bool last)
{
	struct bb_roce_req *req = &qp->req;
	uint8_t probe = req->probe;

	req->again = 0;
	req->probe = BB_ROCE_PROBE_NONE;
	if (acked > req->row && probe == BB_ROCE_PROBE_MISSING) {
		req->keeps = true;
		req->chances = KEPT;
	}
	/*
	 * If the packet that is now the oldest was sent after the repeated one, the acknowledgement
	 * does not show whether it is lost.
	 */
	if (!before(req, req->una, req->probed))
		return;
	if (acked > req->row) {
		if (!last || !alone(req))
			return;
		again(qp, probe, false);
	} else {
		/*
		 * The other packets of the run are in flight. If one was lost, the peer will send
		 * a NAK.
		 */
		if (on_the_way(req))
			return;
		if (probe == BB_ROCE_PROBE_MISSING && --req->chances == 0) {
			req->keeps = false;
			req->chances = -HOLD_OFF;
		}
		/*
		 * A NAK already leads to a repeat of the missing packet, so nothing remains to do
		 * here.
		 */
		if (!last && req->keeps)
			return;
		bb_roce_req_rewind(qp);
	}
	/* Ignore NAKs for packets that were sent before this point. */
	req->going_back = true;
}
