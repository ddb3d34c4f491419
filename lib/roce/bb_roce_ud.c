/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * UD: each message is one packet, and an invalid packet is dropped without a response (IBTA vol.
 * 1, 9.8.3). A receive that is too small for a datagram is not consumed, so the next datagram can
 * use it, as on the loop port of the software device.
 */
#include "bb_roce_priv.h"

/*
 * Bit of the Q_Key of a request. If it is set, the packet has the Q_Key of the sending queue pair
 * (10.2.5).
 */
#define QKEY_OWN 0x80000000u

void
bb_roce_ud_rx(struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt, const struct bb_roce_net *net)
{
	uint32_t flags = bb_roce_ops[pkt->opcode].flags;
	uint8_t status;

	if (!(flags & BB_ROCE_F_DETH)) {
		qp->stats.drop_order++;
		return;
	}
	if (pkt->qkey != qp->attr.qkey) {
		qp->stats.drop_qkey++;
		return;
	}
	if (pkt->len > qp->attr.mtu) {
		qp->stats.drop_length++;
		return;
	}
	if (!bb_roce_resp_recv_ready(qp))
		return;
	qp->resp.kind = flags & BB_ROCE_F_IMM ? BB_ROCE_MSG_SEND_IMM : BB_ROCE_MSG_SEND;
	status = qp->ops->recv_place(qp->ctx, qp, 0, pkt->payload, pkt->len);
	if (status != 0)
		bb_roce_resp_recv_refused(qp, pkt->len, status);
	else if (bb_roce_resp_recv_complete(qp, pkt, qp->resp.kind, pkt->len, net))
		bb_roce_resp_established(qp);
}

/*
 * Sends the oldest message. Returns false if the link has no room, a page is missing, or the
 * message has failed.
 */
static bool
send_oldest(struct bb_roce_qp *qp, struct bb_roce_req *q)
{
	struct bb_roce_msg *m = &q->ring[q->tail & q->mask];
	struct bb_roce_iov iov[BB_ROCE_MAX_IOV];
	struct bb_roce_pkt pkt = {
		.opcode = BB_ROCE_UD | (m->kind == BB_ROCE_MSG_SEND_IMM ? BB_ROCE_SEND_ONLY_IMM
									: BB_ROCE_SEND_ONLY),
		.flags = m->flags & BB_ROCE_SOLICITED ? BB_ROCE_SE : 0,
		.dqpn = m->dqpn,
		.psn = q->psn,
		.imm = m->imm,
		.qkey = m->qkey & QKEY_OWN ? qp->attr.qkey : m->qkey,
		.sqpn = qp->attr.qpn,
		.len = m->len,
	};
	int pieces = 0;

	if (m->len != 0)
		pieces = qp->ops->gather(qp->ctx, qp, m, 0, m->len, iov);
	if (pieces == -(int)BB_ROCE_TRY_AGAIN)
		return false;
	if (pieces < 0) {
		bb_roce_req_failed(qp, (uint8_t)-pieces);
		return false;
	}
	m->psn = q->psn;
	m->packets = 1;
	if (!bb_roce_send(qp, &pkt, iov, (uint32_t)pieces, m))
		return false;
	q->psn = bb_roce_psn_add(q->psn, 1);
	q->una = q->psn;
	bb_roce_req_done(qp, 0);
	q->next = q->tail;
	return true;
}

uint32_t
bb_roce_ud_run(struct bb_roce_qp *qp, uint32_t budget)
{
	struct bb_roce_req *q = &qp->req;
	uint32_t sent = 0;

	/* The QP may go to ERR in a completion callback, so check its state for each message. */
	while (sent < budget && qp->state == BB_ROCE_RTS && q->tail != q->head &&
	       send_oldest(qp, q))
		sent++;
	return sent;
}
