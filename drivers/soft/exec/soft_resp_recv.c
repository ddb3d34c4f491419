/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The responder's receives: takes a receive, fills and completes it.
 *
 * If a message of an unreliable peer finds no receive or does not fit, the message is dropped. The
 * receive stays for the next message (class D of IBTA vol. 1, 9.9.3, as in Linux's rxe). If the
 * receive came from an RMP, it stays assigned to this QP.
 *
 * If the key of a SEND with invalidate cannot be invalidated (class J in IBTA's and rxe's terms),
 * the receive fails with a remote invalid request, as in rxe. The sender gets a remote operation
 * error (assumption [A]), while rxe acknowledges the SEND before it invalidates the key.
 */
#include "soft_access.h"
#include "soft_host.h"
#include "soft_resp.h"
#include "soft_seeded.h"

struct soft_response
soft_resp_drop(const struct soft_qp *p, uint32_t from, uint64_t len, const char *why)
{
	SOFT_LOG(NOTICE, "%s QP 0x%x dropped a message of %" PRIu64 " bytes from QP 0x%x: %s",
		 p->dev->name, p->qpn, len, from, why);
	return (struct soft_response){.kind = SOFT_SILENCE};
}

/* Completes the receive in e->recv with an error CQE and moves the QP to ERR. */
struct soft_response
soft_resp_recv_fail(struct soft_engine *e, struct soft_qp *p, const struct soft_qp *qp,
		    uint64_t len, uint8_t synd, const char *why)
{
	if (p->st != BB_PRM_QP_ST_RC && synd == BB_SYN_LOCAL_LENGTH) {
		SOFT_COUNT(p, resp_local_length);
		return soft_resp_drop(p, qp != NULL ? qp->qpn : 0, len, why);
	}
	SOFT_LOG(ERR,
		 "%s QP 0x%x receive WQE %u (message of %" PRIu64
		 " bytes) failed: syndrome 0x%02x, %s",
		 p->dev->name, p->qpn, e->recv.idx, len, synd, why);
	if (synd == BB_SYN_LOCAL_LENGTH)
		SOFT_COUNT(p, resp_local_length);
	else if (synd == BB_SYN_LOCAL_PROT)
		SOFT_COUNT(p, resp_local_prot);
	soft_cqe_error(e, p, true, e->recv.idx, 0, synd);
	if (p->rmp == NULL)
		p->rq_ci++;
	soft_resp_fail(p, 0);
	return soft_nak(synd == BB_SYN_LOCAL_LENGTH ? BB_SYN_REMOTE_INVAL_REQ : BB_SYN_REMOTE_OP);
}

static struct soft_response
soft_resp_rnr(struct soft_qp *p, const struct soft_qp *qp)
{
	SOFT_COUNT(p, out_of_buffer);
	if (p->st != BB_PRM_QP_ST_RC)
		return soft_resp_drop(p, qp != NULL ? qp->qpn : 0, 0, "no receive is posted");
	return (struct soft_response){.kind = SOFT_NAK_RNR,
				      .code = __atomic_load_n(&p->min_rnr_nak, __ATOMIC_RELAXED)};
}

/* Takes a receive of an RMP. The receive stays assigned to the QP until its CQE is written. */
static struct soft_response
soft_resp_recv_shared(struct soft_engine *e, struct soft_qp *p, const struct soft_qp *qp)
{
	switch (soft_rmp_take(e, p)) {
	case SOFT_TAKE_OK:
		return soft_ack;
	case SOFT_TAKE_EMPTY:
		return soft_resp_rnr(p, qp);
	default:
		soft_resp_fail(p, BB_PRM_EVENT_WQ_CATAS_ERROR);
		return soft_nak(BB_SYN_REMOTE_OP);
	}
}

struct soft_response
soft_resp_recv_ready(struct soft_engine *e, struct soft_qp *p, const struct soft_qp *qp,
		     const struct soft_req *r)
{
	uint16_t posted;

	if (p->rmp != NULL)
		return soft_resp_recv_shared(e, p, qp);
	if (unlikely(!p->has_rq) && p->st != BB_PRM_QP_ST_RC)
		return soft_resp_rnr(p, qp);
	/*
	 * The QP has no receive queue. The standard's reason is "not supported by this receive
	 * queue" (assumption [A]).
	 */
	if (unlikely(!p->has_rq))
		return soft_resp_refuse(e, p, qp, r, BB_SYN_REMOTE_INVAL_REQ,
					"the QP was created without a receive queue");
	posted = (uint16_t)(bb_be32(bb_dbrec_load(&p->dbrec[0])) - p->rq_ci);
	if (likely(posted != 0 && posted <= 1u << p->log_rq)) {
		e->recv.idx = p->rq_ci;
		e->recv.max = (1u << p->log_rq_stride) / BB_WQE_SEG;
		e->recv.pdn = p->pdn;
		e->recv.list =
			p->rq + ((size_t)(p->rq_ci & ((1u << p->log_rq) - 1)) << p->log_rq_stride);
		return soft_ack;
	}
	if (posted == 0)
		return soft_resp_rnr(p, qp);
	SOFT_LOG(ERR,
		 "%s QP 0x%x: the receive doorbell record announces %u WQEs, but the ring has %u: "
		 "write the WQE counter, big endian, to word 0",
		 p->dev->name, p->qpn, posted, 1u << p->log_rq);
	soft_resp_fail(p, BB_PRM_EVENT_WQ_CATAS_ERROR);
	return soft_nak(BB_SYN_REMOTE_OP);
}

struct soft_response
soft_resp_recv_done(struct soft_engine *e, struct soft_qp *p, const struct soft_req *r,
		    uint8_t opcode, uint32_t imm, const uint8_t *data)
{
	bool solicited = r->d.fm_ce_se & BB_WQE_SE;
	uint32_t len = (uint32_t)r->d.len;

	if (unlikely(soft_opts_defect(&e->dev->opts) != SOFT_DEFECT_NONE))
		soft_defect_recv(e, opcode, &solicited, &imm, &len);
	if (unlikely(!soft_cqe_resp(e, p, opcode, solicited, imm, len, data))) {
		soft_resp_fail(p, BB_PRM_EVENT_WQ_CATAS_ERROR);
		return soft_nak(BB_SYN_REMOTE_OP);
	}
	if (p->rmp == NULL)
		p->rq_ci++;
	return soft_ack;
}

uint8_t
soft_resp_scatter_at(struct soft_engine *e, const struct soft_qp *p, struct soft_req *r,
		     uint64_t off, uint64_t total, const char **why)
{
	uint64_t left = total;
	uint32_t i, max = RTE_MIN(e->recv.max, (uint32_t)SOFT_MAX_RX);

	soft_frags_clear(&e->remote);
	for (i = 0; left != 0 && i < max; i++) {
		uint8_t s[BB_WQE_SEG];
		uint32_t count, lkey;
		uint64_t len;

		memcpy(s, e->recv.list + (size_t)i * BB_WQE_SEG, sizeof(s));
		bb_dma_rmb();
		count = bb_get32(s);
		lkey = bb_get32(s + 4);
		if (count == 0 && lkey == BB_WQE_INVALID_LKEY)
			break;
		if (unlikely(count & BB_WQE_INLINE)) {
			*why = "an SGE of the receive is marked inline";
			return BB_SYN_LOCAL_QP_OP;
		}
		len = count == 0 ? BB_WQE_MAX_SGE_LEN : count;
		if (off >= len) {
			off -= len;
			continue;
		}
		len -= off;
		if (len > left)
			len = left;
		/*
		 * Checks only the SGEs that are written; the others may be invalid (assumption
		 * [A]).
		 */
		if (unlikely(!soft_mem_map(e, p->dev, e->recv.pdn, p->qpn, lkey,
					   bb_get64(s + 8) + off, len, SOFT_RIGHT_LOCAL_WRITE,
					   &e->remote, why)))
			return BB_SYN_LOCAL_PROT;
		left -= len;
		off = 0;
	}
	*why = "the receive's buffers are too small for the message";
	return left != 0 && (r == NULL || !soft_defect_overfill(e, r, left)) ? BB_SYN_LOCAL_LENGTH
									     : 0;
}

/* Returns the opcode of the receive's CQE for a SEND. */
static uint8_t
soft_resp_send_opcode(uint8_t wqe_opcode)
{
	switch (wqe_opcode) {
	case BB_WQE_SEND_IMM:
		return BB_CQE_RESP_SEND_IMM;
	case BB_WQE_SEND_INV:
		return BB_CQE_RESP_SEND_INV;
	default:
		return BB_CQE_RESP_SEND;
	}
}

bool
soft_resp_recv_faulted(const struct soft_engine *e, struct soft_qp *p, uint64_t len, uint8_t synd)
{
	struct soft_page_fault fault = {
		.type = p->rmp != NULL ? 0 : SOFT_PF_WRITE,
		.packet = (uint16_t)RTE_MIN(len, (uint64_t)p->mtu),
		.wq = p->rmp != NULL ? p->rmp->rmpn : p->qpn,
		.wqe_index = e->recv.idx,
	};

	return synd == BB_SYN_LOCAL_PROT && p->st == BB_PRM_QP_ST_RC &&
	       e->key_fault == SOFT_KEY_PAGE && soft_pf_wait(p, &fault);
}

struct soft_response
soft_resp_send(struct soft_engine *e, struct soft_qp *p, const struct soft_qp *qp,
	       struct soft_req *r)
{
	uint8_t opcode = soft_resp_send_opcode(r->d.opcode);
	/* Immediate data, or the key to invalidate; 0 for a plain SEND. */
	uint32_t imm = r->d.opcode == BB_WQE_SEND ? 0 : r->imm;
	bool in_cqe = r->d.len != 0 && r->d.len <= p->cs_res;
	uint8_t data[SOFT_CS_MAX] = {0}, synd;
	struct soft_response ans;
	const char *why;

	if (p->engine != e)
		return soft_owner;
	ans = soft_resp_recv_ready(e, p, qp, r);
	if (unlikely(ans.kind != SOFT_ACK))
		return ans;
	/*
	 * Data in the CQE is copied to the buffers by software, so the device does not read the
	 * scatter list. A card does not read it either (assumption [A]).
	 */
	if (likely(!in_cqe)) {
		synd = soft_resp_scatter(e, p, r, r->d.len, &why);
		if (unlikely(synd != 0))
			return soft_resp_recv_faulted(e, p, r->d.len, synd)
				       ? (struct soft_response){.kind = SOFT_FAULTED}
				       : soft_resp_recv_fail(e, p, qp, r->d.len, synd, why);
	}
	if (unlikely(opcode == BB_CQE_RESP_SEND_INV)) {
		/*
		 * The key is invalidated first, because software must find it unusable when it sees
		 * the CQE.
		 */
		int ret = soft_key_invalidate(e, p, bb_be32(r->imm), &why);

		if (ret == -EAGAIN)
			return (struct soft_response){.kind = SOFT_BUSY};
		if (ret != 0)
			return soft_resp_recv_fail(e, p, qp, r->d.len, BB_SYN_REMOTE_INVAL_REQ,
						   why);
	}
	if (unlikely(in_cqe)) {
		soft_mem_gather(e, data, r->frag, r->n);
		return soft_resp_recv_done(e, p, r, opcode, imm, data);
	}
	soft_mem_move(e, e->remote.p, r->frag, r->n);
	return soft_resp_recv_done(e, p, r, opcode, imm, NULL);
}
