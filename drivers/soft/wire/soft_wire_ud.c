/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * UD datagrams as packets: sets their destination from the address vector, and completes their
 * receives.
 */
#include "soft_wire.h"

#include "soft_access.h"
#include "soft_resp.h"
#include "soft_ud.h"

void
soft_wire_ud_dest(const struct soft_qp *qp, const struct soft_req *r, struct bb_roce_msg *msg,
		  struct soft_wire_dest *dest)
{
	struct bb_roce_net net;
	const struct bb_wqe_av *av = (const struct bb_wqe_av *)(const void *)(r->wqe + BB_WQE_SEG);

	/* soft_ud_check() has already checked the address vector. */
	memset(&net, 0,
	       sizeof(net)); /* Zeros the padding, too, because memcmp() below compares it. */
	soft_ud_net(qp, av, &net);
	if (net.sport == 0)
		net.sport = (uint16_t)(0xc000 | (qp->qpn & 0x3fff));
	if (memcmp(&net, &dest->net, sizeof(net)) != 0 ||
	    memcmp(dest->mac, av->rmac, sizeof(dest->mac)) != 0) {
		dest->net = net;
		memset(&dest->path, 0, sizeof(dest->path));
	}
	dest->own = soft_dev_has_gid(qp->dev, dest->net.dst) || bb_roce_is_mcast(dest->net.dst);
	memcpy(dest->mac, av->rmac, sizeof(dest->mac));
	msg->dqpn = bb_be32(av->dest_qpn) & BB_ROCE_QPN_MASK;
	msg->qkey = bb_be32(av->qkey);
}

bool
soft_wire_ud_done(struct soft_engine *e, struct soft_wire *w, const struct bb_roce_recv *r)
{
	struct soft_dgram d = {
		.src_qpn = r->sqpn,
		.imm = r->imm,
		.len = r->len,
		.opcode = r->kind == BB_ROCE_MSG_SEND_IMM ? BB_WQE_SEND_IMM : BB_WQE_SEND,
		.solicited = r->solicited,
		.grh = true,
	};
	const struct soft_frag head = {.p = d.head, .len = sizeof(d.head)};
	const char *why;

	soft_ud_head(&d, r->net, BB_GID_ROCE_V2);
	if (soft_resp_scatter_at(e, w->qp, NULL, 0, SOFT_GRH, &why) != 0)
		return false;
	soft_mem_move(e, e->remote.p, &head, 1);
	bb_dma_wmb();
	return soft_ud_complete(e, w->qp, &d);
}
