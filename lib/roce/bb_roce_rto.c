/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Adaptive retransmission of RC, with the same purpose as roce_adp_retrans of mlx5. Most losses are
 * reported by a NAK at once. Three losses are not: the NAK itself, a repeated packet, and the last
 * packet before a pause. Only the ack timeout detects them, after thousands of round trips. So the
 * requester measures the round trip (RFC 6298), and restarts after a few round trips without
 * progress. If the estimate is wrong, packets are repeated needlessly, but no retry is used: only
 * the ack timeout and NAKs use retries.
 *
 * A software peer responds only when a CPU runs it, and the same is true for this side when it
 * processes the response. On an overloaded machine that sometimes takes longer than the ack
 * timeout, although most round trips are short. A single loss would then use up several retries. So
 * the ack timeout is twice the longest recent wait that ended with progress. It is at least the
 * configured value, and at most four times that value (9.7.6.1.3).
 */
#include "bb_roce_priv.h"

/*
 * Adaptive interval until the first round trip is measured. All packets are sent again after an
 * adaptive interval without progress.
 */
#define INITIAL_NS UINT64_C(1000000)
/* Longest adaptive interval if the ack timeout is off. */
#define FOR_EVER_NS  (UINT64_C(4096) << 20)
#define MAX_DOUBLING 31u
#define WAIT_WINDOW  64u /* length of the time window of longest_wait, in ack timeouts */

void
bb_roce_rto_init(struct bb_roce_qp *qp)
{
	qp->req.rto = (struct bb_roce_rto){
		.deadline = BB_ROCE_NEVER,
		.ack_req_psn = bb_roce_psn_add(qp->req.una, BB_ROCE_PSN_MASK),
	};
}

/* Returns true if @psn is acknowledged once all PSNs before @una are acknowledged. */
static bool
covered(const struct bb_roce_qp *qp, uint32_t psn, uint32_t una)
{
	return bb_roce_psn_distance(qp->req.una, psn) < bb_roce_psn_distance(qp->req.una, una);
}

/*
 * Updates the estimate as in RFC 6298, 2.2 and 2.3. @rtt must not be 0, because an srtt of 0 means
 * that no round trip was measured.
 */
static void
sample(struct bb_roce_rto *rto, uint64_t rtt)
{
	uint64_t err = rtt > rto->srtt ? rtt - rto->srtt : rto->srtt - rtt;

	if (rto->srtt == 0) {
		rto->srtt = rtt;
		rto->rttvar = rtt / 2;
		return;
	}
	rto->rttvar = (3 * rto->rttvar + err) / 4;
	rto->srtt = (7 * rto->srtt + rtt) / 8;
}

void
bb_roce_rto_acked(struct bb_roce_qp *qp, uint32_t una, uint64_t now)
{
	struct bb_roce_rto *rto = &qp->req.rto;

	if (rto->timing && covered(qp, rto->timed_psn, una)) {
		rto->timing = false;
		sample(rto, now > rto->timed_at ? now - rto->timed_at : 1);
	}
	/*
	 * Karn's algorithm: the adaptive interval stays doubled until a packet that was first sent
	 * after the doubling is acknowledged. Without this rule a peer that has become slow would
	 * get repeated packets too early every time, and no round trip could be measured.
	 */
	if (rto->shift != 0 && covered(qp, rto->doubling_end, una))
		rto->shift = 0;
}

void
bb_roce_rto_lost(struct bb_roce_qp *qp)
{
	qp->req.rto.shift = 0;
}

uint64_t
bb_roce_rto_ack_timeout(const struct bb_roce_qp *qp)
{
	const uint64_t *longest = qp->req.rto.longest_wait, ns = UINT64_C(4096)
								 << qp->attr.ack_timeout;
	uint64_t want = 2 * (longest[0] > longest[1] ? longest[0] : longest[1]);

	if (qp->attr.adaptive == 0 || want <= ns)
		return ns;
	return want < 4 * ns ? want : 4 * ns;
}

void
bb_roce_rto_waited(struct bb_roce_qp *qp, uint64_t now)
{
	struct bb_roce_rto *rto = &qp->req.rto;
	uint64_t wait = now - rto->wait_start;

	if (!rto->waiting || qp->attr.ack_timeout == 0)
		return;
	rto->waiting = false;
	if (now >= rto->wait_window_end) {
		rto->longest_wait[1] = rto->longest_wait[0];
		rto->longest_wait[0] = 0;
		rto->wait_window_end = now + (UINT64_C(4096) << qp->attr.ack_timeout) * WAIT_WINDOW;
	}
	if (wait > rto->longest_wait[0])
		rto->longest_wait[0] = wait;
}

/*
 * Returns the part of the interval that allows for variation of the round trip. RFC 6298 uses the
 * resolution of the clock as the minimum. This function uses one round trip, or half a round trip
 * if @one is true. @one says what an interval that expires too early costs: one repeated packet if
 * true, all packets in flight if false.
 */
static uint64_t
spread(const struct bb_roce_rto *rto, bool one)
{
	uint64_t ns = one ? rto->rttvar : 4 * rto->rttvar;
	uint64_t least = one ? rto->srtt / 2 : rto->srtt;

	return ns > least ? ns : least;
}

/* Sets the deadline of the adaptive interval, which starts now. */
static __attribute__((noinline)) void
set_deadline(struct bb_roce_qp *qp, uint64_t now)
{
	struct bb_roce_rto *rto = &qp->req.rto;
	uint64_t ns = INITIAL_NS, limit = FOR_EVER_NS, least = qp->attr.adaptive;
	bool one;

	one = qp->req.peer_stores && bb_roce_repeat_possible(&qp->req);
	if (rto->srtt != 0)
		ns = rto->srtt + spread(rto, one);
	if (one && least > BB_ROCE_ADAPTIVE)
		least = BB_ROCE_ADAPTIVE;
	if (ns < least)
		ns = least;
	if (qp->attr.ack_timeout != 0)
		limit = bb_roce_rto_ack_timeout(qp);
	/*
	 * If the adaptive interval is not shorter than the ack timeout, only the ack timeout runs.
	 */
	if (ns < limit >> rto->shift)
		rto->deadline = now + (ns << rto->shift);
	else if (qp->attr.ack_timeout == 0)
		rto->deadline = now + limit;
}

void
bb_roce_rto_start(struct bb_roce_qp *qp, uint64_t now)
{
	qp->req.rto.deadline = BB_ROCE_NEVER;
	if (qp->attr.adaptive != 0 && covered(qp, qp->req.rto.ack_req_psn, qp->req.nxt))
		set_deadline(qp, now);
}

void
bb_roce_rto_rewound(struct bb_roce_qp *qp)
{
	qp->req.rto.deadline = BB_ROCE_NEVER;
	qp->req.rto.timing = false;
}

void
bb_roce_rto_repeated(struct bb_roce_qp *qp, bool missing, uint64_t now)
{
	struct bb_roce_rto *rto = &qp->req.rto;

	if (!covered(qp, rto->ack_req_psn, qp->req.nxt))
		rto->ack_req_psn = qp->req.una;
	if (!missing)
		return;
	rto->timing = true;
	rto->timed_psn = qp->req.una;
	rto->timed_at = now;
}

void
bb_roce_rto_tick(struct bb_roce_qp *qp)
{
	struct bb_roce_req *req = &qp->req;
	struct bb_roce_rto *rto = &req->rto;

	if (rto->shift < MAX_DOUBLING)
		rto->shift++;
	rto->doubling_end = req->sent;
	/*
	 * Ignore NAKs for packets that were sent before this expiry. They contain no new
	 * information, and handling one would use a retry.
	 */
	req->going_back = true;
	qp->stats.roce_adp_retrans++;
	if (!bb_roce_repeat_lost(qp, false))
		bb_roce_req_rewind(qp);
}
