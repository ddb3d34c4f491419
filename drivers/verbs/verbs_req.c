/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Decoding of the less frequent send WQEs: datagrams, atomics, and requests that change keys. */
#include <errno.h>
#include <string.h>

#include "bb_wqe_priv.h"
#include "verbs_req.h"

/*
 * Number of segments of a bind that the driver reads: control, UMR, mkey, and the first
 * translation.
 */
#define BIND_DS (BB_WQE_UMR_DS + 1)

static void
datagram(const struct bb_sq *sq, struct bb_wqe_ctrl *ctrl, uint32_t ds, struct verbs_req *r)
{
	struct bb_wqe_av av;

	memcpy(&av, ctrl + 1, sizeof(av));
	r->ah = verbs_ah_of(&av);
	r->dest_qpn = bb_be32(av.dest_qpn) & 0xffffff;
	r->qkey = bb_be32(av.qkey);
	verbs_req_data(sq, bb_sq_next_seg(sq, ctrl + 3), ds - 4, r);
}

static void
atomic(const struct bb_sq *sq, struct bb_wqe_ctrl *ctrl, uint32_t ds, struct verbs_req *r)
{
	const struct bb_wqe_raddr *raddr = (const void *)(ctrl + 1);
	const struct bb_wqe_atomic *a = (const void *)(ctrl + 2);

	r->raddr = bb_be64(raddr->raddr);
	r->rkey = bb_be32(raddr->rkey);
	r->swap_add = bb_be64(a->swap_add);
	r->compare = bb_be64(a->compare);
	verbs_req_data(sq, ctrl + 3, ds - 3, r);
}

/* Converts the access bits of an mkey segment to IBV_ACCESS_* flags. */
static unsigned int
access_of(uint8_t bits)
{
	return ((bits & BB_MKEY_LW) != 0 ? IBV_ACCESS_LOCAL_WRITE : 0u) |
	       ((bits & BB_MKEY_RW) != 0 ? IBV_ACCESS_REMOTE_WRITE : 0u) |
	       ((bits & BB_MKEY_RR) != 0 ? IBV_ACCESS_REMOTE_READ : 0u) |
	       ((bits & BB_MKEY_A) != 0 ? IBV_ACCESS_REMOTE_ATOMIC : 0u);
}

/*
 * Decodes the WQE of bb_sq_post_bind(). The WQE has only keys, so the function looks up their
 * objects.
 */
static int
bind(struct verbs_qp *q, const struct bb_sq *sq, struct bb_wqe_ctrl *ctrl, uint32_t ds,
     struct verbs_req *r)
{
	struct verbs_dev *d = q->scq->d;
	struct {
		struct bb_wqe_ctrl ctrl;
		struct bb_wqe_umr umr;
		struct bb_wqe_mkey mkey;
		struct bb_wqe_data piece;
	} w;
	const uint32_t key = bb_be32(ctrl->imm);
	struct verbs_mr *mw, *mr = NULL;
	uint8_t *to = (uint8_t *)&w;
	void *seg = ctrl;
	uint32_t i;

	BB_STATIC_ASSERT(sizeof(w) == BIND_DS * BB_WQE_SEG, "no padding");
	memset(&w.piece, 0, sizeof(w.piece));
	for (i = 0; i < RTE_MIN(ds, BIND_DS); i++) {
		memcpy(to + (size_t)i * BB_WQE_SEG, seg, BB_WQE_SEG);
		seg = bb_sq_next_seg(sq, seg);
	}
	mw = verbs_key_find(d, key, true);
	if (ds >= BIND_DS)
		mr = verbs_key_find(d, bb_be32(w.piece.lkey), false);
	if (mw == NULL || (ds >= BIND_DS && mr == NULL)) {
		BB_LOG(ERR,
		       "QP 0x%x: cannot bind memory window 0x%x: the window or its MR was "
		       "destroyed; the QP goes to ERR",
		       q->ib->qp_num, key);
		return VERBS_LOGGED;
	}
	r->mw = mw->mw;
	r->rkey = (key & ~0xffu) | (bb_be32(w.mkey.qpn_key) & 0xff);
	memset(&r->bind, 0, sizeof(r->bind));
	r->n = 0;
	if (mr == NULL) {
		/*
		 * A bind without memory removes the window's access to its MR. rxe's provider reads
		 * the MR in this case too, so pass the placeholder.
		 */
		d->no_mr.pd = r->mw->pd;
		r->bind.mr = d->rxe ? &d->no_mr : NULL;
		return 0;
	}
	r->bind.mr = mr->mr;
	r->bind.addr = bb_be64(w.piece.addr);
	r->bind.length = bb_be64(w.mkey.len);
	r->bind.mw_access_flags = access_of(w.mkey.access);
	if (w.mkey.start_addr == 0 && r->bind.addr != 0)
		r->bind.mw_access_flags |= IBV_ACCESS_ZERO_BASED;
	return 0;
}

int
verbs_req_other(struct verbs_qp *q, const struct bb_sq *sq, struct bb_wqe_ctrl *ctrl, uint32_t ds,
		struct verbs_req *r)
{
	switch (r->opcode) {
	case BB_WQE_SEND:
	case BB_WQE_SEND_IMM:
		datagram(sq, ctrl, ds, r);
		return 0;
	case BB_WQE_ATOMIC_CS:
	case BB_WQE_ATOMIC_FA:
		atomic(sq, ctrl, ds, r);
		return 0;
	case BB_SQ_LOCAL_INV:
		r->n = 0;
		return 0;
	case BB_SQ_BIND_MW:
		return bind(q, sq, ctrl, ds, r);
	default:
		BB_LOG(ERR,
		       "QP 0x%x: libibverbs does not support the operation %s; the QP goes to ERR",
		       q->ib->qp_num, bb_wqe_opcode_name(r->opcode));
		return VERBS_LOGGED;
	}
}
