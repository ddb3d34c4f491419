/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The functions of a queue pair that its owner calls: states, posting, and the dispatch of
 * received packets.
 */
#include <errno.h>
#include <string.h>

#include "bb_roce_priv.h"
#include "bb_roce_short.h"

/* Message kinds of each QP type (IBTA vol. 1, 9.2 table 38). */
#define KIND(k)  (1u << BB_ROCE_MSG_##k)
#define KINDS_UD (KIND(SEND) | KIND(SEND_IMM))
#define KINDS_UC (KINDS_UD | KIND(WRITE) | KIND(WRITE_IMM))
#define KINDS_RC (KINDS_UC | KIND(SEND_INV) | KIND(READ) | KIND(CMP_SWAP) | KIND(FETCH_ADD))

#define CODES        32u /* number of timer codes: 5 bits */
#define ECN_MASK     3u
#define ECN_CE       3u     /* ECN field of a packet that a switch has marked (RFC 3168) */
#define CNP_INTERVAL 50000u /* minimum interval between two CNPs of one queue pair, in ns */
#define PKEY_FULL    0x8000u
#define PKEY_MASK    0x7fffu

void
bb_roce_qp_init(struct bb_roce_qp *qp, const struct bb_roce_ops *ops, void *ctx,
		const struct bb_roce_mem *mem)
{
	memset(qp, 0, sizeof(*qp));
	qp->ops = ops;
	qp->ctx = ctx;
	qp->state = BB_ROCE_RESET;
	qp->req.ring = mem->ring;
	qp->req.mask = mem->slots - 1;
	qp->req.deadline = qp->req.rto.deadline = BB_ROCE_NEVER;
	qp->resp.replay = mem->replay;
	qp->resp.replays = mem->replays;
	qp->resp.out_of_order = mem->out_of_order;
	qp->resp.max_out_of_order = mem->max_out_of_order;
}

int
bb_roce_qp_rtr(struct bb_roce_qp *qp, const struct bb_roce_attr *attr)
{
	if (qp->state != BB_ROCE_RESET)
		return -EINVAL;
	if (attr->type != BB_ROCE_RC && attr->type != BB_ROCE_UC && attr->type != BB_ROCE_UD)
		return -EINVAL;
	if (attr->mtu < 256 || attr->mtu > 4096 || (attr->mtu & (attr->mtu - 1)) != 0)
		return -EINVAL;
	if (attr->qpn > BB_ROCE_QPN_MASK || attr->dqpn > BB_ROCE_QPN_MASK ||
	    attr->rq_psn > BB_ROCE_PSN_MASK || attr->min_rnr_timer >= CODES ||
	    attr->max_dest_rd_atomic > qp->resp.replays)
		return -EINVAL;
	qp->attr = *attr;
	qp->resp.epsn = attr->rq_psn;
	qp->state = BB_ROCE_RTR;
	return 0;
}

int
bb_roce_qp_rts(struct bb_roce_qp *qp, const struct bb_roce_attr *attr)
{
	struct bb_roce_req *req = &qp->req;

	if (qp->state != BB_ROCE_RTR || attr->sq_psn > BB_ROCE_PSN_MASK)
		return -EINVAL;
	if (qp->attr.type == BB_ROCE_RC &&
	    (attr->ack_timeout >= CODES || attr->retry_cnt > 7 || attr->rnr_retry > 7 ||
	     attr->window == 0 || attr->window > BB_ROCE_MAX_WINDOW))
		return -EINVAL;
	qp->attr.sq_psn = attr->sq_psn;
	qp->attr.max_rd_atomic = attr->max_rd_atomic;
	qp->attr.ack_timeout = attr->ack_timeout;
	qp->attr.retry_cnt = attr->retry_cnt;
	qp->attr.rnr_retry = attr->rnr_retry;
	qp->attr.window = attr->window;
	qp->attr.adaptive = attr->adaptive;
	/*
	 * Selective repeat needs a timer. To find out whether the peer stores packets, the
	 * requester ignores NAKs that may be old and waits for an ACK. That ACK may be lost, and
	 * without a timer the requester would wait for ever.
	 */
	qp->attr.selective = attr->selective && (attr->ack_timeout != 0 || attr->adaptive != 0);
	req->psn = req->una = req->nxt = req->sent = req->restart_end = req->probe_end =
		req->run_end = attr->sq_psn;
	req->resume_psn = UINT32_MAX;
	bb_roce_rto_init(qp);
	bb_roce_repeat_init(qp);
	req->retries = attr->retry_cnt;
	req->rnr_retries = attr->rnr_retry;
	/*
	 * The window has room for two READ requests, so that one is in flight while the peer sends
	 * the responses of the other.
	 */
	req->chunk = attr->max_rd_atomic > 1 ? (attr->window + 1) / 2 : attr->window;
	qp->state = BB_ROCE_RTS;
	return 0;
}

int
bb_roce_qp_change(struct bb_roce_qp *qp, uint32_t qkey, uint32_t min_rnr_timer)
{
	if ((qp->state != BB_ROCE_RTR && qp->state != BB_ROCE_RTS) || min_rnr_timer >= CODES)
		return -EINVAL;
	qp->attr.qkey = qkey;
	qp->attr.min_rnr_timer = min_rnr_timer;
	return 0;
}

void
bb_roce_qp_err(struct bb_roce_qp *qp)
{
	qp->state = BB_ROCE_ERR;
	qp->req.deadline = qp->req.rto.deadline = BB_ROCE_NEVER;
	bb_roce_ooo_drop(qp);
}

void
bb_roce_qp_flush(struct bb_roce_qp *qp, uint8_t status)
{
	while (qp->req.tail != qp->req.head)
		bb_roce_req_done(qp, status);
}

void
bb_roce_resp_failed(struct bb_roce_qp *qp, uint8_t synd)
{
	bb_roce_qp_err(qp);
	qp->ops->failed(qp->ctx, qp, true, synd);
}

void
bb_roce_req_done(struct bb_roce_qp *qp, uint8_t status)
{
	struct bb_roce_req *req = &qp->req;

	qp->ops->complete(qp->ctx, qp, &req->ring[req->tail & req->mask], status);
	req->tail++;
}

void
bb_roce_req_failed(struct bb_roce_qp *qp, uint8_t synd)
{
	bb_roce_qp_err(qp);
	bb_roce_req_done(qp, synd);
	qp->ops->failed(qp->ctx, qp, false, synd);
}

bool
bb_roce_send(struct bb_roce_qp *qp, struct bb_roce_pkt *pkt, const struct bb_roce_iov *iov,
	     uint32_t n, const struct bb_roce_msg *msg)
{
	if (pkt->opcode != BB_ROCE_CNP)
		pkt->opcode |= qp->attr.type;
	pkt->pkey = qp->attr.pkey;
	if (qp->attr.type != BB_ROCE_UD) {
		pkt->dqpn = qp->attr.dqpn;
		/*
		 * MigReq is set, because the migration state of a connection without path
		 * migration is Migrated (17.2.8).
		 */
		pkt->flags |= BB_ROCE_MIGREQ;
	}
	if (!qp->ops->tx(qp->ctx, qp, pkt, iov, n, msg))
		return false;
	qp->stats.tx_packets++;
	return true;
}

int
bb_roce_post(struct bb_roce_qp *qp, const struct bb_roce_msg *msg)
{
	struct bb_roce_req *req = &qp->req;
	enum bb_roce_type type = qp->attr.type;
	uint32_t kinds = type == BB_ROCE_RC ? KINDS_RC : type == BB_ROCE_UC ? KINDS_UC : KINDS_UD;

	if (qp->state == BB_ROCE_RESET || msg->kind >= 32 || (kinds >> msg->kind & 1) == 0)
		return -EINVAL;
	if (msg->kind > BB_ROCE_MSG_READ && msg->len != 8)
		return -EINVAL;
	if (msg->len > (type == BB_ROCE_UD ? qp->attr.mtu : BB_ROCE_MAX_MSG))
		return -EMSGSIZE;
	if (req->head - req->tail > req->mask)
		return -ENOBUFS;
	req->ring[req->head & req->mask] = *msg;
	req->head++;
	return 0;
}

/*
 * Returns true if both P_Keys belong to the same partition and at least one is that of a full
 * member (10.9.3).
 */
static bool
pkey_matches(uint16_t a, uint16_t b)
{
	return ((a ^ b) & PKEY_MASK) == 0 && ((a | b) & PKEY_FULL) != 0;
}

/*
 * Handles a packet with a congestion mark: the peer of a connection must get a CNP (annex A17.9).
 */
static void
congestion(struct bb_roce_qp *qp, uint64_t now)
{
	qp->stats.ecn_ce++;
	if (qp->attr.type == BB_ROCE_UD || now < qp->cnp_next)
		return;
	qp->cnp_due = true;
	qp->cnp_next = now + CNP_INTERVAL;
}

static __attribute__((noinline)) bool
send_cnp(struct bb_roce_qp *qp)
{
	struct bb_roce_pkt pkt;

	bb_roce_pkt_clear(&pkt);
	pkt.opcode = BB_ROCE_CNP;
	pkt.flags = BB_ROCE_BECN;
	if (!bb_roce_send(qp, &pkt, NULL, 0, NULL))
		return false;
	qp->stats.tx_cnp++;
	qp->cnp_due = false;
	return true;
}

/*
 * Returns the drop counter to increment if the headers of the packet do not match the queue pair.
 * Returns NULL if they match.
 */
static inline uint64_t *
refusal(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt, const struct bb_roce_net *net)
{
	struct bb_roce_stats *stats = &qp->stats;

	if (qp->state != BB_ROCE_RTR && qp->state != BB_ROCE_RTS)
		return &stats->drop_state;
	if (pkt->opcode != BB_ROCE_CNP && BB_ROCE_TYPE(pkt->opcode) != qp->attr.type)
		return &stats->drop_type;
	if (!pkey_matches(pkt->pkey, qp->attr.pkey))
		return &stats->drop_pkey;
	/* For a connection the source and destination addresses must match too (9.6.1.2). */
	if (qp->attr.type != BB_ROCE_UD) {
		if (!bb_roce_same_gid(net->src, qp->attr.path.dst))
			return &stats->drop_source;
		if (!bb_roce_same_gid(net->dst, qp->attr.path.src))
			return &stats->drop_dest;
	} else if (bb_roce_is_mcast(net->dst) != (pkt->dqpn == BB_ROCE_MCAST_QPN)) {
		/*
		 * The packet has only one of the two marks of multicast: a group address, and the
		 * QP number of all groups.
		 */
		return &stats->drop_dest;
	}
	return NULL;
}

static inline bool
marked(const struct bb_roce_pkt *pkt, const struct bb_roce_net *net)
{
	return (net->tclass & ECN_MASK) == ECN_CE || (pkt->flags & BB_ROCE_FECN) != 0;
}

bool
bb_roce_short_repeats(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt,
		      const struct bb_roce_net *net)
{
	if (qp->attr.type != BB_ROCE_RC || refusal(qp, pkt, net) != NULL || marked(pkt, net))
		return false;
	switch (pkt->opcode) {
	case BB_ROCE_RC | BB_ROCE_ACK:
		return true;
	case BB_ROCE_RC | BB_ROCE_SEND_ONLY:
	case BB_ROCE_RC | BB_ROCE_SEND_ONLY_IMM:
	case BB_ROCE_RC | BB_ROCE_WRITE_ONLY:
	case BB_ROCE_RC | BB_ROCE_WRITE_ONLY_IMM:
		return pkt->len != 0 && pkt->len <= qp->attr.mtu;
	default:
		return false;
	}
}

void
bb_roce_rx(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt, const struct bb_roce_net *net,
	   uint64_t now)
{
	uint32_t flags = bb_roce_ops[pkt->opcode].flags;
	struct bb_roce_stats *stats = &qp->stats;
	uint64_t *refused = refusal(qp, pkt, net);

	if (refused != NULL) {
		(*refused)++;
		return;
	}
	if (pkt->opcode == BB_ROCE_CNP) {
		stats->cnp++;
		return;
	}
	if (marked(pkt, net))
		congestion(qp, now);
	/*
	 * An unassigned opcode has no flags. It goes to the responder as an unsupported request
	 * (9.7.4.1.3).
	 */
	if (flags != 0 && (flags & BB_ROCE_F_REQUEST) == 0) {
		if (qp->state != BB_ROCE_RTS) { /* only RC packets can be responses */
			stats->drop_state++;
			return;
		}
		bb_roce_comp_rx(qp, pkt, flags, now);
		return;
	}
	if (qp->attr.type == BB_ROCE_UD)
		bb_roce_ud_rx(qp, pkt, net);
	else
		bb_roce_resp_rx(qp, pkt, flags);
}

uint32_t
bb_roce_run(struct bb_roce_qp *qp, uint32_t budget, uint64_t now)
{
	uint32_t n = 0, share, cnp = 0;

	if (qp->state != BB_ROCE_RTR && qp->state != BB_ROCE_RTS)
		return 0;
	if (qp->attr.type == BB_ROCE_UD)
		return qp->state == BB_ROCE_RTS ? bb_roce_ud_run(qp, budget) : 0;
	if (qp->cnp_due && budget != 0 && send_cnp(qp)) {
		cnp = 1;
		budget--;
	}
	if (qp->state != BB_ROCE_RTS)
		return cnp + bb_roce_resp_run(qp, budget);
	if (bb_roce_resp_busy(qp)) {
		/*
		 * If the requester is busy, reserve a part of the budget for it. Otherwise a long
		 * READ of the peer could stop the requester.
		 */
		share = bb_roce_req_busy(qp) ? budget / 4 : 0;
		n = bb_roce_resp_run(qp, budget - share);
	}
	if (qp->state == BB_ROCE_RTS && !bb_roce_req_idle(&qp->req))
		n += bb_roce_req_run(qp, budget - n, now);
	return cnp + n;
}

bool
bb_roce_can_send(const struct bb_roce_qp *qp)
{
	if (qp->state != BB_ROCE_RTR && qp->state != BB_ROCE_RTS)
		return false;
	if (qp->attr.type == BB_ROCE_UD)
		return qp->state == BB_ROCE_RTS && qp->req.next != qp->req.head;
	return qp->cnp_due || bb_roce_resp_busy(qp) ||
	       (qp->state == BB_ROCE_RTS && bb_roce_req_busy(qp));
}

void
bb_roce_tick(struct bb_roce_qp *qp, uint64_t now)
{
	bb_roce_comp_tick(qp, now);
}
