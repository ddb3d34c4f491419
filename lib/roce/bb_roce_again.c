/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Selective repeat, the requester's half. A NAK for a PSN that was lost does not tell whether the
 * peer has kept what came behind it, as bb_roce_ahead.c does, or has dropped it, as IBTA's
 * responder. So the requester sends that packet alone again, goes on with what is new, and
 * sees what is acknowledged next: more than that packet, and the peer keeps; that packet alone, and
 * all behind it has to be sent again too, a round trip later than if that had been done at
 * once. A few of these, and it is done at once for a while, as it always is for a peer that does
 * not keep, and where no timer runs.
 *
 * A peer keeps only for a requester that shows that it repeats selectively (bb_roce_ahead.c). So
 * while it is not known to keep, the newest packet follows the one that was lost: a requester that
 * goes back sends the next one there. A peer that drops it says so by a NAK.
 *
 * More losses of the same window are found one by one, a round trip each. So where the peer keeps,
 * each of them doubles how many packets are sent again in a row from it on: that costs little where
 * losses are rare, and where they are not it is no slower than to send all again. A NAK of a packet
 * in such a row may only mean that it was lost the first time; as nothing else tells if it was lost
 * again, it is believed, and the row from it on is half as long.
 *
 * Where the peer keeps, an ACK that stops short of what went out before the packet sent again tells
 * of another loss, whose NAK is lost too; and asking too early costs one packet, so the
 * adaptive interval may be short: bb_roce_rto.c. Not so of a READ or an atomic: answers
 * behind the one that is missing are not kept, so all is asked for again from it on.
 */
#include "bb_roce_priv.h"

#define CHANCES  3  /* that the next packet is lost too is no reason to give up */
#define KEPT     12 /* the same of a peer that has kept before: it may have been out of room */
#define HOLD_OFF 64 /* losses until it is tried once more */

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

/* Now, and there are others behind it? */
static bool
alone(const struct bb_roce_req *req)
{
	return req->nxt == req->sent && bb_roce_psn_distance(req->una, req->nxt) > 1 &&
	       bb_roce_again_one(req);
}

/* Is @psn among those before @end that have been sent again? */
static bool
before(const struct bb_roce_req *req, uint32_t psn, uint32_t end)
{
	return bb_roce_psn_distance(psn, end) - 1 < bb_roce_psn_distance(psn, req->sent);
}

/* The oldest packet has been sent again behind one that was answered. */
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

/* The newest packet goes next, unless it follows the oldest or cannot be sent by itself. */
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
	/* What has been sent since says nothing. */
	if (!before(req, req->una, req->probed))
		return;
	if (acked > req->row) {
		if (!last || !alone(req))
			return;
		again(qp, probe, false);
	} else {
		/* The rest of the row is on the way, and if not, a NAK says so. */
		if (on_the_way(req))
			return;
		if (probe == BB_ROCE_PROBE_MISSING && --req->chances == 0) {
			req->keeps = false;
			req->chances = -HOLD_OFF;
		}
		/* A NAK says of its own what is missing: if all is, that is no news. */
		if (!last && req->keeps)
			return;
		bb_roce_req_rewind(qp);
	}
	/* NAKs for what went out before are no news. */
	req->going_back = true;
}
