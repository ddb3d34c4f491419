/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The responder's half of a QP that sends packets: receives and remote access. Keys and rules are
 * those of a device without packets (soft_resp*.c, soft_mem_access.c).
 *
 * A message arrives packet by packet, and each packet looks up the receive again. The receive is
 * consumed when the message is complete, so the index of the queue does not change before.
 */
#include "soft_wire.h"

#include "soft_access.h"
#include "soft_cqe.h"
#include "soft_host.h"
#include "soft_resp.h"
#include "soft_seeded.h"
#include "soft_ud.h"

/* ---- Receives */

enum bb_roce_take
soft_wire_recv_take(void *ctx, struct bb_roce_qp *roce)
{
	struct soft_qp *qp = soft_wire_of(roce)->qp;
	struct soft_response ans;

	(void)ctx;
	soft_wire_of(roce)->checked.turn = 0;
	/*
	 * If the QP has no receive queue, sends the same NAK as a device without packets: "not
	 * supported by this receive queue".
	 */
	if (!qp->has_rq && qp->rmp == NULL && qp->st == BB_PRM_QP_ST_RC) {
		SOFT_LOG(ERR,
			 "%s QP 0x%x rejected a message of its peer: the QP was created without a "
			 "receive queue",
			 qp->dev->name, qp->qpn);
		return BB_ROCE_TAKE_NEVER;
	}
	ans = soft_resp_recv_ready(qp->engine, qp, NULL, NULL);
	switch (ans.kind) {
	case SOFT_ACK:
		return BB_ROCE_TAKE_OK;
	case SOFT_NAK_RNR:
	case SOFT_SILENCE:
		return BB_ROCE_TAKE_EMPTY;
	default:
		return BB_ROCE_TAKE_FAILED;
	}
}

/*
 * Resolves the buffers of the current receive for [off, off + len) into e->remote. Returns 0, a
 * syndrome, or BB_ROCE_TRY_AGAIN.
 */
static uint8_t
soft_wire_recv_map(struct soft_wire *w, uint64_t off, uint64_t len)
{
	struct soft_qp *qp = w->qp;
	struct soft_engine *e = qp->engine;
	const char *why;
	uint8_t synd;

	w->checked.turn = 0;
	/*
	 * The engine may have processed a receive of another QP meanwhile, so look up this QP's
	 * receive again.
	 */
	if (soft_resp_recv_ready(e, qp, NULL, NULL).kind != SOFT_ACK)
		return BB_SYN_LOCAL_QP_OP;
	synd = soft_resp_scatter_at(e, qp, NULL, off, len, &why);
	if (unlikely(synd != 0) && soft_resp_recv_faulted(e, qp, len, synd))
		return BB_ROCE_TRY_AGAIN;
	if (synd != 0 && !(qp->st != BB_PRM_QP_ST_RC && synd == BB_SYN_LOCAL_LENGTH))
		SOFT_LOG(ERR, "%s QP 0x%x receive WQE %u failed: syndrome 0x%02x, %s", e->dev->name,
			 qp->qpn, e->recv.idx, synd, why);
	return synd;
}

uint8_t
soft_wire_recv_place(void *ctx, struct bb_roce_qp *roce, uint32_t off, const uint8_t *data,
		     uint32_t len)
{
	struct soft_wire *w = soft_wire_of(roce);
	struct soft_qp *qp = w->qp;
	bool ud = qp->st == BB_PRM_QP_ST_UD;
	const struct soft_frag src = {.p = (uint8_t *)(uintptr_t)data, .len = len};
	uint8_t synd;

	(void)ctx;
	/*
	 * If the first packet is this short, the message has no other packet. Software copies the
	 * data from the CQE to the buffers when it polls the CQ.
	 */
	if (qp->cs_res != 0 && off == 0 && len <= qp->cs_res) {
		memcpy(w->in_cqe, data, len);
		return 0;
	}
	/* The receive of a datagram also needs room for the GRH. */
	synd = ud ? soft_wire_recv_map(w, 0, SOFT_GRH) : 0;
	if (synd == 0)
		synd = soft_wire_recv_map(w, off + (ud ? (uint64_t)SOFT_GRH : 0), len);
	if (synd == 0)
		soft_mem_move(qp->engine, qp->engine->remote.p, &src, 1);
	return synd;
}

static uint8_t
soft_wire_cqe_opcode(uint8_t kind)
{
	switch (kind) {
	case BB_ROCE_MSG_SEND_IMM:
		return BB_CQE_RESP_SEND_IMM;
	case BB_ROCE_MSG_SEND_INV:
		return BB_CQE_RESP_SEND_INV;
	case BB_ROCE_MSG_WRITE_IMM:
		return BB_CQE_RESP_WR_IMM;
	default:
		return BB_CQE_RESP_SEND;
	}
}

static void
soft_wire_recv_error(struct soft_wire *w, const struct bb_roce_recv *r)
{
	struct soft_qp *qp = w->qp;

	if (r->status == BB_SYN_LOCAL_LENGTH)
		SOFT_COUNT(qp, resp_local_length);
	else if (r->status == BB_SYN_LOCAL_PROT)
		SOFT_COUNT(qp, resp_local_prot);
	w->recv_failed = soft_cqe_error(qp->engine, qp, true, qp->engine->recv.idx, 0, r->status);
	if (qp->rmp == NULL)
		qp->rq_ci++;
}

uint8_t
soft_wire_recv_done(void *ctx, struct bb_roce_qp *roce, const struct bb_roce_recv *r)
{
	struct soft_wire *w = soft_wire_of(roce);
	struct soft_qp *qp = w->qp;
	struct soft_engine *e = qp->engine;
	uint8_t opcode = soft_wire_cqe_opcode(r->kind);
	uint32_t imm = r->kind == BB_ROCE_MSG_SEND_INV ? bb_be32(r->imm) : r->imm, len = r->len;
	/*
	 * The condition of soft_wire_recv_place(). It must hold for this message: an earlier one
	 * may have failed after its data was placed.
	 */
	const bool in_cqe = r->kind != BB_ROCE_MSG_WRITE_IMM && r->len != 0 && r->len <= qp->cs_res;
	bool solicited = r->solicited, ok;

	(void)ctx;
	if (soft_resp_recv_ready(e, qp, NULL, NULL).kind != SOFT_ACK)
		return BB_SYN_LOCAL_QP_OP;
	if (r->status != 0) {
		soft_wire_recv_error(w, r);
		return 0;
	}
	bb_dma_wmb();
	if (qp->st == BB_PRM_QP_ST_UD) {
		ok = soft_wire_ud_done(e, w, r);
	} else {
		if (unlikely(soft_opts_defect(&e->dev->opts) != SOFT_DEFECT_NONE))
			soft_defect_recv(e, opcode, &solicited, &imm, &len);
		ok = soft_cqe_resp(e, qp, opcode, solicited, imm, len, in_cqe ? w->in_cqe : NULL);
	}
	if (!ok)
		return BB_SYN_REMOTE_OP;
	if (qp->rmp == NULL)
		qp->rq_ci++;
	return 0;
}

uint8_t
soft_wire_invalidate(void *ctx, struct bb_roce_qp *roce, uint32_t rkey)
{
	struct soft_qp *qp = soft_wire_of(roce)->qp;
	const char *why;
	int ret;

	(void)ctx;
	ret = soft_key_invalidate(qp->engine, qp, rkey, &why);
	if (ret == 0)
		return 0;
	if (ret == -EAGAIN)
		return BB_ROCE_TRY_AGAIN;
	SOFT_LOG(ERR,
		 "%s QP 0x%x cannot invalidate key 0x%x for a SEND with invalidate of its peer: %s",
		 qp->dev->name, qp->qpn, rkey, why);
	return BB_SYN_REMOTE_INVAL_REQ;
}

/* ---- Remote access */

/*
 * Resolves the memory that a request names into e->remote. If the key's memory needs special
 * access, sets e->detour instead (enum soft_detour). Returns false if the request has no right to
 * access the memory.
 */
static bool
soft_wire_map(struct soft_wire *w, uint32_t rkey, uint64_t va, uint64_t len, enum soft_right right,
	      const char **why)
{
	struct soft_qp *qp = w->qp;
	struct soft_engine *e = qp->engine;

	e->detour = SOFT_DETOUR_NONE;
	soft_frags_clear(&e->remote);
	return soft_mem_map(e, qp->dev, qp->pdn, qp->qpn, rkey, va, len, right, &e->remote, why) ||
	       e->detour != SOFT_DETOUR_NONE;
}

/*
 * Handles memory that soft_wire_map() does not find. Returns BB_ROCE_TRY_AGAIN if the request of an
 * RC peer waits for a missing page, else a syndrome.
 */
static uint8_t
soft_wire_no_memory(struct soft_wire *w, enum bb_roce_access access, uint32_t rkey, uint64_t va,
		    uint32_t len)
{
	struct soft_qp *qp = w->qp;
	struct soft_page_fault fault = {
		.type = SOFT_PF_RDMA | (access != BB_ROCE_ACCESS_READ ? SOFT_PF_WRITE : 0),
		.packet = (uint16_t)RTE_MIN(len, qp->mtu),
		.rkey = rkey,
		.va = va,
		.len = len,
	};

	if (qp->st != BB_PRM_QP_ST_RC || qp->engine->key_fault != SOFT_KEY_PAGE)
		return BB_SYN_REMOTE_ACCESS;
	return soft_pf_wait(qp, &fault) ? BB_ROCE_TRY_AGAIN : BB_SYN_REMOTE_OP;
}

static enum soft_right
soft_wire_right(enum bb_roce_access access)
{
	switch (access) {
	case BB_ROCE_ACCESS_WRITE:
		return SOFT_RIGHT_REMOTE_WRITE;
	case BB_ROCE_ACCESS_READ:
		return SOFT_RIGHT_REMOTE_READ;
	default:
		return SOFT_RIGHT_ATOMIC;
	}
}

static bool
soft_wire_qp_allows(const struct soft_qp *qp, enum bb_roce_access access)
{
	switch (access) {
	case BB_ROCE_ACCESS_WRITE:
		return __atomic_load_n(&qp->rwe, __ATOMIC_RELAXED);
	case BB_ROCE_ACCESS_READ:
		return __atomic_load_n(&qp->rre, __ATOMIC_RELAXED);
	default:
		return __atomic_load_n(&qp->rae, __ATOMIC_RELAXED) &&
		       __atomic_load_n(&qp->atomic_mode, __ATOMIC_RELAXED) != 0;
	}
}

uint8_t
soft_wire_remote_check(void *ctx, struct bb_roce_qp *roce, enum bb_roce_access access,
		       uint32_t rkey, uint64_t va, uint32_t len)
{
	struct soft_wire *w = soft_wire_of(roce);
	struct soft_qp *qp = w->qp;
	const char *why = "the QP does not allow the operation";
	uint8_t synd = BB_SYN_REMOTE_INVAL_REQ;

	(void)ctx;
	if (soft_wire_qp_allows(qp, access)) {
		/*
		 * A message without payload accesses no memory, so its key is not checked (IBTA
		 * vol. 1, 9.7.4.1.4).
		 */
		if (len == 0)
			return 0;
		if (soft_wire_map(w, rkey, va, len, soft_wire_right(access), &why)) {
			if (access == BB_ROCE_ACCESS_WRITE)
				w->checked = (struct soft_wire_checked){
					.turn = qp->engine->turn,
					.va = va,
					.rkey = rkey,
					.len = len,
				};
			return 0;
		}
		synd = soft_wire_no_memory(w, access, rkey, va, len);
		if (synd == BB_ROCE_TRY_AGAIN)
			return synd;
	}
	soft_log(qp->st == BB_PRM_QP_ST_RC ? RTE_LOG_ERR : RTE_LOG_NOTICE,
		 "%s QP 0x%x rejected a request of its peer (rkey 0x%x, address 0x%" PRIx64
		 ", %u bytes): %s",
		 qp->dev->name, qp->qpn, rkey, va, len, why);
	return synd;
}

/*
 * Returns true if soft_wire_remote_check() has just checked this range for this packet. This is the
 * usual case for one-packet messages.
 */
static bool
soft_wire_is_checked(const struct soft_wire *w, uint32_t rkey, uint64_t va, uint32_t len)
{
	return w->checked.turn == w->qp->engine->turn && w->checked.va == va &&
	       w->checked.rkey == rkey && w->checked.len == len;
}

/*
 * Applies a seeded defect to one packet of a WRITE: an error that the option "defect" requests, see
 * soft_defect.h. Returns false if no defect applies; the caller then writes the packet's payload
 * to the correct address.
 */
static bool
soft_wire_defect_write(struct soft_wire *w, uint32_t rkey, uint64_t va, const struct soft_frag *src)
{
	struct soft_engine *e = w->qp->engine;
	uint32_t len = (uint32_t)src->len;
	const char *why;

	if (e->detour != SOFT_DETOUR_NONE || len == 0)
		return false;
	if (soft_defect(e, SOFT_DEFECT_LOSE_WRITE))
		return true;
	if (soft_defect(e, SOFT_DEFECT_FLIP_BIT)) {
		soft_mem_move(e, e->remote.p, src, 1);
		e->remote.p[0].p[e->remote.p[0].len / 2] ^= 0x10;
		return true;
	}
	/* The data is misplaced only if it stays inside the region; otherwise it is dropped. */
	if (!soft_defect(e, SOFT_DEFECT_MISPLACE))
		return false;
	if (soft_wire_map(w, rkey, va + 8, len, SOFT_RIGHT_REMOTE_WRITE, &why) ||
	    soft_wire_map(w, rkey, va - 8, len, SOFT_RIGHT_REMOTE_WRITE, &why))
		soft_mem_move(e, e->remote.p, src, 1);
	return true;
}

uint8_t
soft_wire_remote_write(void *ctx, struct bb_roce_qp *roce, uint32_t rkey, uint64_t va,
		       const uint8_t *data, uint32_t len)
{
	struct soft_wire *w = soft_wire_of(roce);
	struct soft_engine *e = w->qp->engine;
	const struct soft_frag src = {.p = (uint8_t *)(uintptr_t)data, .len = len};
	const char *why;

	(void)ctx;
	if (!soft_wire_is_checked(w, rkey, va, len) &&
	    !soft_wire_map(w, rkey, va, len, SOFT_RIGHT_REMOTE_WRITE, &why))
		return soft_wire_no_memory(w, BB_ROCE_ACCESS_WRITE, rkey, va, len);
	if (unlikely(soft_opts_defect(&e->dev->opts) != SOFT_DEFECT_NONE) &&
	    soft_wire_defect_write(w, rkey, va, &src))
		return 0;
	if (e->detour == SOFT_DETOUR_PAGED)
		return soft_paged_write(e->detour_at, &src, 1) ? 0 : BB_SYN_REMOTE_OP;
	if (e->detour == SOFT_DETOUR_RELAXED)
		soft_mem_gather_relaxed(e, e->detour_at, &src, 1);
	else
		soft_mem_move(e, e->remote.p, &src, 1);
	return 0;
}

int
soft_wire_remote_read(void *ctx, struct bb_roce_qp *roce, uint32_t rkey, uint64_t va, uint32_t len,
		      struct bb_roce_iov iov[BB_ROCE_MAX_IOV])
{
	struct soft_wire *w = soft_wire_of(roce);
	struct soft_engine *e = w->qp->engine;
	const char *why;
	uint32_t i;

	(void)ctx;
	if (!soft_wire_map(w, rkey, va, len, SOFT_RIGHT_REMOTE_READ, &why)) {
		uint8_t status = soft_wire_no_memory(w, BB_ROCE_ACCESS_READ, rkey, va, len);

		/* The response waits. */
		if (status == BB_ROCE_TRY_AGAIN)
			w->parked = true;
		return -status;
	}
	/* A READ does not pass an earlier WRITE, SEND or atomic of the QP. */
	bb_smp_mb();
	if (e->detour == SOFT_DETOUR_PAGED) {
		if (!soft_paged_read(e->bounce, e->detour_at, len))
			return -BB_SYN_REMOTE_OP;
	} else if (e->remote.n <= BB_ROCE_MAX_IOV) {
		for (i = 0; i < e->remote.n; i++)
			iov[i] = (struct bb_roce_iov){.p = e->remote.p[i].p,
						      .len = (uint32_t)e->remote.p[i].len};
		return (int)e->remote.n;
	} else {
		soft_mem_gather(e, e->bounce, e->remote.p, e->remote.n);
	}
	iov[0] = (struct bb_roce_iov){.p = e->bounce, .len = len};
	return 1;
}

uint8_t
soft_wire_remote_atomic(void *ctx, struct bb_roce_qp *roce, uint8_t kind, uint32_t rkey,
			uint64_t va, uint64_t swap_add, uint64_t compare, uint64_t *orig)
{
	struct soft_wire *w = soft_wire_of(roce);
	struct soft_engine *e = w->qp->engine;
	const char *why;
	uint8_t *at;

	(void)ctx;
	if (!soft_wire_map(w, rkey, va, 8, SOFT_RIGHT_ATOMIC, &why))
		return soft_wire_no_memory(w, BB_ROCE_ACCESS_ATOMIC, rkey, va, 8);
	if (e->detour == SOFT_DETOUR_PAGED || e->remote.n > 1)
		return BB_SYN_REMOTE_ACCESS;
	at = e->detour != SOFT_DETOUR_NONE ? e->detour_at : e->remote.p[0].p;
	/* The request's address is aligned, but the key may map it to an unaligned address. */
	if (((uintptr_t)at & 7) != 0)
		return BB_SYN_REMOTE_INVAL_REQ;
	*orig = soft_atomic(e, kind == BB_ROCE_MSG_FETCH_ADD, (uint64_t *)(void *)at, swap_add,
			    compare);
	return 0;
}
