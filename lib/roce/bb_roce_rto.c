/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Adaptive retransmission of RC, similar in purpose to the roce_adp_retrans of mlx5. A NAK reports
 * most losses at once. Only the ack timeout, after thousands of round trips, detects the loss of a
 * NAK, of a repeated packet, or of the last packet before a pause. So the requester measures the
 * round trip (RFC 6298) and restarts after a few of them without progress. A wrong estimate costs
 * packets but never a retry: only the ack timeout uses retries.
 *
 * A software peer answers when it gets a CPU, and this side processes the answer when it gets one.
 * On an overloaded machine that sometimes takes longer than the ack timeout, although most round
 * trips are short. Each loss would then use up the retries of several waits. So the ack timeout is
 * twice the longest recent wait that ended with progress, but at most four times the configured
 * value (9.7.6.1.3).
 */
#include "bb_roce_priv.h"

#define INITIAL_NS   UINT64_C(1000000)      /* used until a round trip has been measured */
#define FOR_EVER_NS  (UINT64_C(4096) << 20) /* longest interval if there is no ack timeout */
#define MAX_DOUBLING 31u
#define GAP_WINDOW   64u /* length of a gap window, in ack timeouts */

void
bb_roce_rto_init(struct bb_roce_qp *qp)
{
	qp->req.rto = (struct bb_roce_rto){
		.deadline = BB_ROCE_NEVER,
		.asked = bb_roce_psn_add(qp->req.una, BB_ROCE_PSN_MASK),
	};
}

/* Returns true if @psn is before @una, counted from the oldest PSN that is not acknowledged. */
static bool
covered(const struct bb_roce_qp *qp, uint32_t psn, uint32_t una)
{
	return bb_roce_psn_distance(qp->req.una, psn) < bb_roce_psn_distance(qp->req.una, una);
}

/* Updates the estimate by RFC 6298, 2.2 and 2.3. @rtt is not 0: srtt 0 means not measured. */
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
	 * Karn: the interval stays doubled until a packet first sent after the doubling is
	 * acknowledged. Otherwise a peer that became slow would get repeated packets too early each
	 * time, and no packet could be timed.
	 */
	if (rto->shift != 0 && covered(qp, rto->doubled, una))
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
	const uint64_t *gap = qp->req.rto.gap, ns = UINT64_C(4096) << qp->attr.ack_timeout;
	uint64_t want = 2 * (gap[0] > gap[1] ? gap[0] : gap[1]);

	if (qp->attr.adaptive == 0 || want <= ns)
		return ns;
	return want < 4 * ns ? want : 4 * ns;
}

void
bb_roce_rto_waited(struct bb_roce_qp *qp, uint64_t now)
{
	struct bb_roce_rto *rto = &qp->req.rto;
	uint64_t gap = now - rto->since;

	if (!rto->waiting || qp->attr.ack_timeout == 0)
		return;
	rto->waiting = false;
	if (now >= rto->gap_end) {
		rto->gap[1] = rto->gap[0];
		rto->gap[0] = 0;
		rto->gap_end = now + (UINT64_C(4096) << qp->attr.ack_timeout) * GAP_WINDOW;
	}
	if (gap > rto->gap[0])
		rto->gap[0] = gap;
}

/*
 * Returns the allowance for variation. RFC 6298 uses the clock's resolution as its minimum; this
 * function uses a round trip, or half of one for @one. Expiring too early sends all packets in
 * flight again, or only one packet if @one.
 */
static uint64_t
spread(const struct bb_roce_rto *rto, bool one)
{
	uint64_t ns = one ? rto->rttvar : 4 * rto->rttvar;
	uint64_t least = one ? rto->srtt / 2 : rto->srtt;

	return ns > least ? ns : least;
}

void
bb_roce_rto_start(struct bb_roce_qp *qp, uint64_t now)
{
	struct bb_roce_rto *rto = &qp->req.rto;
	uint64_t ns = INITIAL_NS, limit = FOR_EVER_NS, least = qp->attr.adaptive;
	bool one;

	rto->deadline = BB_ROCE_NEVER;
	if (qp->attr.adaptive == 0 || !covered(qp, rto->asked, qp->req.nxt))
		return;
	one = qp->req.keeps && bb_roce_again_one(&qp->req);
	if (rto->srtt != 0)
		ns = rto->srtt + spread(rto, one);
	if (one && least > BB_ROCE_ADAPTIVE)
		least = BB_ROCE_ADAPTIVE;
	if (ns < least)
		ns = least;
	if (qp->attr.ack_timeout != 0)
		limit = bb_roce_rto_ack_timeout(qp);
	/* Starts no interval that is as long as the ack timeout or longer. */
	if (ns < limit >> rto->shift)
		rto->deadline = now + (ns << rto->shift);
	else if (qp->attr.ack_timeout == 0)
		rto->deadline = now + limit;
}

void
bb_roce_rto_rewound(struct bb_roce_qp *qp)
{
	qp->req.rto.deadline = BB_ROCE_NEVER;
	qp->req.rto.timing = false;
}

void
bb_roce_rto_again(struct bb_roce_qp *qp, bool missing, uint64_t now)
{
	struct bb_roce_rto *rto = &qp->req.rto;

	if (!covered(qp, rto->asked, qp->req.nxt))
		rto->asked = qp->req.una;
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
	rto->doubled = req->sent;
	/* A NAK for packets sent earlier has no new information and would use a retry. */
	req->going_back = true;
	qp->stats.roce_adp_retrans++;
	if (!bb_roce_again_lost(qp, false))
		bb_roce_req_rewind(qp);
}
