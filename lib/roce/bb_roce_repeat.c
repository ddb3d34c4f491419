/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Selective repeat in the requester. A NAK for a lost PSN does not show what the peer did with the
 * packets after that PSN. The peer may have stored them, as bb_roce_ooo.c does, or dropped them, as
 * the responder of the IBTA specification does. So the requester sends only the lost packet again,
 * continues with new packets, and looks at the next acknowledgement:
 *
 * - The acknowledgement covers more than the lost packet: the peer stores packets.
 * - It covers only the lost packet: the peer has dropped all packets after it. They must be sent
 *   again too, one round trip later than if the requester had restarted at once.
 *
 * After a few failures the requester restarts at once for a while (HOLD_OFF). Before the peer was
 * seen to store packets, a loss that only a timer reports leads to a restart, too. Without a timer
 * the requester never repeats selectively.
 *
 * A peer stores packets only for a requester that shows selective repeat (bb_roce_ooo.c). To show
 * it, the requester sends the newest packet right after the lost one, until it knows that the peer
 * stores packets. A requester that restarts would send the packet after the lost one instead. A
 * peer that drops the newest packet sends a NAK.
 *
 * Other losses in the same window are found one after the other, each after one more round trip. If
 * the peer stores packets, each further loss therefore doubles the run, which is the number of
 * packets that are sent again from the lost one on. A longer run costs little if losses are rare.
 * If they are frequent, it is no slower than a restart.
 *
 * A NAK for a packet that was sent again may refer to the first transmission of that packet.
 * Nothing else shows whether the second transmission was lost. So the requester believes the NAK,
 * and halves the run that starts there.
 *
 * If the peer stores packets, an ACK may end before a packet that was sent earlier than the
 * repeated one. Such an ACK shows another loss, whose NAK was lost too. To repeat that packet too
 * early costs only one packet, so the adaptive interval may be short (bb_roce_rto.c). READs and
 * atomics are different: the requester does not store responses after a missing one, so it requests
 * all responses again from the missing one on.
 */
#include "bb_roce_priv.h"

/*
 * Number of times that a repeat of only the lost packet may fail before the requester stops such
 * repeats for a while. One failure may mean that the next packet was lost too. A peer that stored
 * packets before gets more attempts, because it may only have run out of room.
 */
#define ATTEMPTS         3
#define ATTEMPTS_STORING 12 /* used instead of ATTEMPTS if the peer has stored packets */
/*
 * Number of losses after which the requester tries selective repeat again. At each of these losses
 * it sends all packets again from the lost one on.
 */
#define HOLD_OFF 64

void
bb_roce_repeat_init(struct bb_roce_qp *qp)
{
	qp->req.attempts_left = ATTEMPTS;
}

bool
bb_roce_repeat_possible(const struct bb_roce_req *req)
{
	const struct bb_roce_msg *msg = &req->ring[req->tail & req->mask];

	return req->tail != req->unassigned && !bb_roce_is_read_or_atomic(msg->kind) &&
	       !req->credits && req->failed_synd == 0;
}

/*
 * Returns true if the requester may now send the oldest packet again without the packets after it.
 * This requires that other packets follow it, and that no packets are being sent again.
 */
static bool
oldest_can_repeat(const struct bb_roce_req *req)
{
	return req->nxt == req->sent && bb_roce_psn_distance(req->una, req->nxt) > 1 &&
	       bb_roce_repeat_possible(req);
}

/* Returns true if @psn, which is not acknowledged, is before @end. */
static bool
before(const struct bb_roce_req *req, uint32_t psn, uint32_t end)
{
	return bb_roce_psn_distance(psn, end) - 1 < bb_roce_psn_distance(psn, req->sent);
}

/*
 * Returns true if selective repeat has sent the oldest packet again, and the packet may still be in
 * flight because it is not acknowledged yet.
 */
static bool
oldest_in_flight(const struct bb_roce_req *req)
{
	return before(req, req->una, req->run_end);
}

static void
start_run(struct bb_roce_qp *qp, uint8_t probe, bool by_nak)
{
	struct bb_roce_req *req = &qp->req;
	uint32_t out = bb_roce_psn_distance(req->una, req->nxt);

	if (!req->peer_stores || !before(req, req->una, req->probe_end))
		req->run_len = 1;
	else if (by_nak && oldest_in_flight(req))
		req->run_len = (req->run_len + 1) / 2;
	else
		req->run_len *= 2;
	if (req->run_len > out)
		req->run_len = out;
	req->run_left = req->run_len;
	req->run_psn = req->una;
	req->run_msg = req->tail;
	req->newest_next = false;
	req->probe = probe;
	bb_roce_rto_rewound(qp);
}

bool
bb_roce_repeat_lost(struct bb_roce_qp *qp, bool by_nak)
{
	struct bb_roce_req *req = &qp->req;
	bool missing = by_nak && !before(req, req->una, req->restart_end) && !oldest_in_flight(req);

	if (!qp->attr.selective)
		return false;
	if (req->attempts_left <= 0 && by_nak && ++req->attempts_left == 0)
		req->attempts_left = 1;
	if (req->attempts_left <= 0 || (!missing && !req->peer_stores) || !oldest_can_repeat(req))
		return false;
	start_run(qp, missing ? BB_ROCE_PROBE_MISSING : BB_ROCE_PROBE_IN_DOUBT, by_nak);
	return true;
}

/*
 * Selects the packet with the highest PSN sent so far as the next packet to send again. Called
 * after the lost packet was sent again. Does nothing if only one packet follows the lost packet, or
 * if the selected packet would belong to a READ or atomic, which cannot be sent again alone.
 */
static void
select_newest(struct bb_roce_req *req)
{
	const uint32_t newest = bb_roce_psn_add(req->sent, BB_ROCE_PSN_MASK);
	const uint32_t i = req->next_pkt != 0 ? req->next : req->next - 1;

	if (bb_roce_psn_distance(req->run_psn, newest) == 0 ||
	    bb_roce_psn_distance(req->run_psn, req->sent) >
		    bb_roce_psn_distance(req->una, req->sent) ||
	    bb_roce_is_read_or_atomic(req->ring[i & req->mask].kind))
		return;
	req->newest_next = true;
	req->run_left = 1;
	req->run_psn = newest;
	req->run_msg = i;
}

void
bb_roce_repeat_sent(struct bb_roce_qp *qp, uint64_t now)
{
	struct bb_roce_req *req = &qp->req;
	bool first = req->run_psn == req->una;
	const struct bb_roce_msg *msg = &req->ring[req->run_msg & req->mask];

	if (req->newest_next) {
		req->newest_next = false;
		req->run_left = 0;
		return;
	}
	req->run_psn = bb_roce_psn_add(req->run_psn, 1);
	req->run_end = req->run_psn;
	req->run_left--;
	if (bb_roce_psn_distance(msg->psn, req->run_psn) == msg->packets)
		req->run_msg++;
	if (!first)
		return;
	req->probe_end = req->nxt;
	bb_roce_rto_repeated(qp, req->probe == BB_ROCE_PROBE_MISSING, now);
	if (!req->peer_stores && req->run_left == 0)
		select_newest(req);
}

void
bb_roce_repeat_acked(struct bb_roce_qp *qp, uint32_t acked, bool last)
{
	struct bb_roce_req *req = &qp->req;
	uint8_t probe = req->probe;

	req->run_left = 0;
	req->probe = BB_ROCE_PROBE_NONE;
	if (acked > req->run_len && probe == BB_ROCE_PROBE_MISSING) {
		req->peer_stores = true;
		req->attempts_left = ATTEMPTS_STORING;
	}
	/*
	 * Does nothing if the packet that is now the oldest was sent after the repeated packet. The
	 * acknowledgement then does not show whether the oldest packet is lost.
	 */
	if (!before(req, req->una, req->probe_end))
		return;
	if (acked > req->run_len) {
		if (!last || !oldest_can_repeat(req))
			return;
		start_run(qp, probe, false);
	} else {
		/*
		 * If the oldest packet was sent again together with packets that are now
		 * acknowledged, the oldest packet is still in flight. If it is lost, the peer will
		 * send a NAK.
		 */
		if (oldest_in_flight(req))
			return;
		if (probe == BB_ROCE_PROBE_MISSING && --req->attempts_left == 0) {
			req->peer_stores = false;
			req->attempts_left = -HOLD_OFF;
		}
		/*
		 * A NAK already leads to a repeat of the missing packet, so nothing remains to do
		 * here.
		 */
		if (!last && req->peer_stores)
			return;
		bb_roce_req_rewind(qp);
	}
	/* Ignore NAKs for packets that were sent before this point. */
	req->going_back = true;
}
