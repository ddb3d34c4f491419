/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The responder: executes a request of the connected peer.
 *
 * A successful RDMA WRITE, READ or atomic changes nothing in the target's engine, so the
 * requester's engine executes it. Whatever uses the target's receive queue, CQ or state must run in
 * the target's engine. If the requester's engine is another one, the functions here return
 * SOFT_OWNER. The requester then sends the request to the target's engine, which makes all checks
 * again.
 *
 * PSNs, NAKs and their effect on the two QPs: IBTA vol. 1, 9.7.4 and 9.9.3. If the target QP does
 * not permit the operation (rre, rwe, rae), the NAK is "invalid request", because the QP does not
 * support the request. Linux's rxe does the same; a card may send another NAK (so the behaviour
 * here is an assumption, [A]).
 *
 * An unreliable peer (UC) gets neither ACKs nor NAKs. An error drops its message, and the next
 * message is accepted with any PSN. IBTA vol. 1, 9.8.2.2 and 9.9.3, class D, permits this because
 * every message begins with a first or only packet.
 */
#include "soft_resp.h"
#include "soft_access.h"
#include "soft_host.h"
#include "soft_seeded.h"

/*
 * Raises the "communication established" event for the first message to a QP in RTR (man
 * ibv_get_async_event).
 */
struct soft_qp *
soft_resp_find_in_rtr(const struct soft_qp *qp, struct soft_qp *p)
{
	if (soft_qp_state(p) != BB_PRM_QP_RTR || !soft_resp_linked(qp, p))
		return NULL;
	if (__atomic_exchange_n(&p->comm_est, 1, __ATOMIC_RELAXED) == 0)
		soft_event_raise(p->dev, p->obj, BB_PRM_EVENT_COMM_EST);
	return p;
}

void
soft_resp_fail(struct soft_qp *p, uint16_t event)
{
	/*
	 * With packets the NAK must be sent first: soft_wire_failed() moves the QP to ERR after the
	 * NAK has left.
	 */
	if (p->wire == NULL)
		soft_qp_fail(p, event);
}

struct soft_response
soft_resp_refuse(struct soft_engine *e, struct soft_qp *p, const struct soft_qp *qp,
		 const struct soft_req *r, uint8_t synd, const char *why)
{
	bool told = !soft_defect(e, SOFT_DEFECT_EVENT_LOST);

	if (p->st != BB_PRM_QP_ST_RC)
		return soft_resp_drop(p, qp->qpn, r->d.len, why);
	if (p->engine != e)
		return soft_owner;
	SOFT_LOG(ERR,
		 "%s QP 0x%x rejected a request of QP 0x%x (opcode 0x%x, rkey 0x%x, address "
		 "0x%" PRIx64 ", %" PRIu64 " bytes): %s",
		 p->dev->name, p->qpn, qp->qpn, r->d.opcode, r->rkey, r->raddr, r->d.len, why);
	if (synd == BB_SYN_REMOTE_ACCESS) {
		SOFT_COUNT(p, resp_remote_access);
		soft_resp_fail(p, told ? BB_PRM_EVENT_WQ_ACCESS_ERROR : 0);
	} else {
		SOFT_COUNT(p, resp_remote_invalid);
		soft_resp_fail(p, told ? BB_PRM_EVENT_WQ_INVAL_REQ_ERROR : 0);
	}
	return soft_nak(synd);
}

/*
 * Rejects a request for memory of an ON_DEMAND key if the memory is not mapped, or is mapped
 * without the right for this access (assumption [A]).
 */
static struct soft_response
soft_resp_page_fault(struct soft_engine *e, struct soft_qp *p, const struct soft_qp *qp,
		     const struct soft_req *r)
{
	if (p->st != BB_PRM_QP_ST_RC)
		return soft_resp_drop(
			p, qp->qpn, r->d.len,
			"the memory of the ON_DEMAND key is not fully mapped with the right that "
			"the request needs");
	if (p->engine != e)
		return soft_owner;
	SOFT_LOG(ERR,
		 "%s QP 0x%x failed to execute a request of QP 0x%x (opcode 0x%x, rkey 0x%x, "
		 "address 0x%" PRIx64 ", %" PRIu64
		 " bytes): the memory of the ON_DEMAND key is not fully mapped with the right that "
		 "the request needs",
		 p->dev->name, p->qpn, qp->qpn, r->d.opcode, r->rkey, r->raddr, r->d.len);
	soft_resp_fail(p, BB_PRM_EVENT_WQ_CATAS_ERROR);
	return soft_nak(BB_SYN_REMOTE_OP);
}

/*
 * Handles a request whose memory cannot be found by its key: rejects it, or waits for a missing
 * page of a guest's key. @write: the access writes.
 */
struct soft_response
soft_resp_no_memory(struct soft_engine *e, struct soft_qp *p, const struct soft_qp *qp,
		    const struct soft_req *r, bool write, const char *why)
{
	struct soft_page_fault fault = {
		.type = SOFT_PF_RDMA | (write ? SOFT_PF_WRITE : 0),
		.packet = (uint16_t)RTE_MIN(r->d.len, (uint64_t)p->mtu),
		.rkey = r->rkey,
		.va = r->raddr,
		.len = (uint32_t)r->d.len,
	};

	if (e->key_fault != SOFT_KEY_PAGE)
		return soft_resp_refuse(e, p, qp, r, BB_SYN_REMOTE_ACCESS, why);
	if (p->st != BB_PRM_QP_ST_RC)
		return soft_resp_drop(p, qp->qpn, r->d.len, why);
	if (p->engine != e)
		return soft_owner;
	return soft_pf_wait(p, &fault) ? (struct soft_response){.kind = SOFT_FAULTED}
				       : soft_resp_page_fault(e, p, qp, r);
}

static struct soft_response
soft_resp_write(struct soft_engine *e, struct soft_qp *p, const struct soft_qp *qp,
		struct soft_req *r)
{
	bool imm = r->d.opcode == BB_WQE_RDMA_WRITE_IMM;
	enum soft_detour detour = SOFT_DETOUR_NONE;
	struct soft_response ans;
	uint8_t *dst = NULL;
	const char *why;

	if (unlikely(!__atomic_load_n(&p->rwe, __ATOMIC_RELAXED)) &&
	    !soft_defect(e, SOFT_DEFECT_QP_RIGHT))
		return soft_resp_refuse(e, p, qp, r, BB_SYN_REMOTE_INVAL_REQ,
					"the QP does not allow remote writes");
	/*
	 * A message without payload accesses no memory, so its key is not checked (IBTA vol. 1,
	 * 9.7.4.1.4).
	 */
	if (r->d.len != 0) {
		dst = soft_mem_find(e, p->dev, r->rkey, p->pdn, r->raddr, r->d.len,
				    SOFT_RIGHT_REMOTE_WRITE, &why);
		if (unlikely(dst == NULL)) {
			detour = e->detour;
			if (detour != SOFT_DETOUR_NONE)
				dst = e->detour_at;
			else if (!soft_xlt_remote(e, p, r, r->d.len, SOFT_RIGHT_REMOTE_WRITE, &dst,
						  &why))
				return soft_resp_no_memory(e, p, qp, r, true, why);
		}
	}
	if (imm) {
		if (p->engine != e)
			return soft_owner;
		ans = soft_resp_recv_ready(e, p, qp, r);
		if (ans.kind != SOFT_ACK)
			return ans;
	}
	if (unlikely(detour == SOFT_DETOUR_PAGED)) {
		if (!soft_paged_write(dst, r->frag, r->n))
			return soft_resp_page_fault(e, p, qp, r);
	} else if (unlikely(detour == SOFT_DETOUR_RELAXED)) {
		soft_mem_gather_relaxed(e, dst, r->frag, r->n);
	} else if (likely(soft_opts_defect(&e->dev->opts) == SOFT_DEFECT_NONE) ||
		   (dst == NULL && r->d.len != 0) || !soft_defect_write(e, p, r, dst)) {
		if (unlikely(dst == NULL && r->d.len != 0))
			soft_mem_move(e, e->remote.p, r->frag, r->n);
		else if (likely(r->n == 1))
			soft_mem_copy(e, dst, r->frag[0].p, r->frag[0].len);
		else
			soft_mem_gather(e, dst, r->frag, r->n);
	}
	soft_served_for(e, p);
	e->served_write++;
	if (imm)
		return soft_resp_recv_done(e, p, r, BB_CQE_RESP_WR_IMM, r->imm, NULL);
	return soft_ack;
}

bool
soft_resp_too_many(const struct soft_qp *p, const struct soft_req *r)
{
	return r->d.reads > 1u << p->log_rra_max;
}

bool
soft_resp_to_cqe(const struct soft_qp *qp, const struct soft_req *r)
{
	return qp->cs_req != 0 && r->d.len <= qp->cs_req && (r->d.fm_ce_se & BB_WQE_CE_CQE);
}

/*
 * Writes the response of a READ to the requester's SGEs or CQE. @src has all data, or is NULL if
 * the data is in e->remote.
 */
static void
soft_resp_read_data(struct soft_engine *e, struct soft_qp *qp, const struct soft_req *r,
		    const uint8_t *src)
{
	if (soft_resp_to_cqe(qp, r)) {
		if (src != NULL)
			soft_mem_copy(e, qp->cs_data, src, r->d.len);
		else
			soft_mem_gather(e, qp->cs_data, e->remote.p, e->remote.n);
		qp->cs_len = (uint8_t)r->d.len;
	} else if (likely(src != NULL)) {
		soft_mem_scatter(e, r->frag, r->n, src);
	} else {
		soft_mem_move(e, r->frag, e->remote.p, e->remote.n);
	}
}

static struct soft_response
soft_resp_read(struct soft_engine *e, struct soft_qp *p, struct soft_qp *qp, struct soft_req *r)
{
	const char *why;
	uint8_t *src;

	if (unlikely(soft_resp_too_many(p, r)))
		return soft_resp_refuse(
			e, p, qp, r, BB_SYN_REMOTE_INVAL_REQ,
			"more READs and atomics are in flight than max_dest_rd_atomic: lower the "
			"peer's max_rd_atomic");
	if (unlikely(!__atomic_load_n(&p->rre, __ATOMIC_RELAXED)) &&
	    !soft_defect(e, SOFT_DEFECT_QP_RIGHT))
		return soft_resp_refuse(e, p, qp, r, BB_SYN_REMOTE_INVAL_REQ,
					"the QP does not allow remote reads");
	if (r->d.len != 0) {
		/* A READ does not pass an earlier WRITE, SEND or atomic of the QP. */
		bb_smp_mb();
		src = soft_mem_find(e, p->dev, r->rkey, p->pdn, r->raddr, r->d.len,
				    SOFT_RIGHT_REMOTE_READ, &why);
		if (unlikely(src == NULL && e->detour == SOFT_DETOUR_PAGED)) {
			if (!soft_paged_respond(qp, r, soft_resp_to_cqe(qp, r), e->detour_at))
				return soft_resp_page_fault(e, p, qp, r);
		} else if (unlikely(src == NULL) &&
			   !soft_xlt_remote(e, p, r, r->d.len, SOFT_RIGHT_REMOTE_READ, &src,
					    &why)) {
			return soft_resp_no_memory(e, p, qp, r, false, why);
		} else {
			soft_resp_read_data(e, qp, r, src);
		}
	}
	soft_served_for(e, p);
	e->served_read++;
	return soft_ack;
}

static struct soft_response
soft_resp_dispatch(struct soft_engine *e, struct soft_qp *p, struct soft_qp *qp, struct soft_req *r)
{
	switch (r->d.opcode) {
	case BB_WQE_RDMA_WRITE:
	case BB_WQE_RDMA_WRITE_IMM:
		return soft_resp_write(e, p, qp, r);
	case BB_WQE_RDMA_READ:
		return soft_resp_read(e, p, qp, r);
	case BB_WQE_ATOMIC_CS:
	case BB_WQE_ATOMIC_FA:
	case BB_WQE_ATOMIC_MASKED_CS:
	case BB_WQE_ATOMIC_MASKED_FA:
		return soft_resp_atomic(e, p, qp, r);
	default:
		return soft_resp_send(e, p, qp, r);
	}
}

/*
 * Handles a request whose PSN is not the expected one. A smaller PSN marks a duplicate, which is
 * acknowledged but not executed. A duplicate READ is executed again. A duplicate atomic gets its
 * stored response, if the responder still has it. A larger PSN means that packets before it are
 * lost.
 */
static struct soft_response
soft_resp_out_of_order(struct soft_engine *e, struct soft_qp *p, struct soft_qp *qp,
		       struct soft_req *r, uint32_t epsn)
{
	uint32_t behind = (epsn - r->d.psn) & SOFT_PSN_MASK;

	if (behind >= 0x800000) {
		SOFT_COUNT(p, out_of_sequence);
		return (struct soft_response){.kind = SOFT_NAK_SEQ};
	}
	/*
	 * The first packets of the message are duplicates and its last packets are new. A valid
	 * requester never sends that: the new packets would be a middle without a first packet.
	 */
	if (unlikely(r->d.packets > behind))
		return soft_resp_refuse(
			e, p, qp, r, BB_SYN_REMOTE_INVAL_REQ,
			"the message starts before the expected PSN and ends after it");
	SOFT_COUNT(p, duplicate);
	switch (r->d.opcode) {
	case BB_WQE_RDMA_READ:
		return soft_resp_read(e, p, qp, r);
	case BB_WQE_ATOMIC_CS:
	case BB_WQE_ATOMIC_FA:
	case BB_WQE_ATOMIC_MASKED_CS:
	case BB_WQE_ATOMIC_MASKED_FA:
		if (unlikely(soft_defect(e, SOFT_DEFECT_REPLAY_TWICE)))
			return soft_resp_atomic(e, p, qp, r);
		return soft_resp_atomic_replay(e, p, qp, r)
			       ? soft_ack
			       : (struct soft_response){.kind = SOFT_SILENCE};
	default:
		return soft_ack;
	}
}

/* Handles a message of an unreliable connection (UC). The peer gets neither ACK nor NAK. */
static struct soft_response
soft_resp_unreliable(struct soft_engine *e, struct soft_qp *p, struct soft_qp *qp,
		     struct soft_req *r)
{
	struct soft_response ans;

	if (p->mtu != qp->mtu && r->d.len > RTE_MIN(p->mtu, qp->mtu))
		ans = soft_resp_drop(p, qp->qpn, r->d.len, "the two QPs have different path MTUs");
	else
		ans = soft_resp_dispatch(e, p, qp, r);
	if (ans.kind == SOFT_OWNER || ans.kind == SOFT_BUSY)
		return ans;
	__atomic_store_n(&p->epsn, (r->d.psn + r->d.packets) & SOFT_PSN_MASK, __ATOMIC_RELAXED);
	return soft_ack;
}

struct soft_response
soft_resp_execute(struct soft_engine *e, struct soft_qp *p, struct soft_qp *qp, struct soft_req *r)
{
	uint32_t epsn = __atomic_load_n(&p->epsn, __ATOMIC_RELAXED);
	struct soft_response ans;

	if (unlikely(p->st != BB_PRM_QP_ST_RC))
		return soft_resp_unreliable(e, p, qp, r);
	/*
	 * Every packet of a message except the last one is full. So both QPs must use the same path
	 * MTU.
	 */
	if (unlikely(p->mtu != qp->mtu && r->d.len > RTE_MIN(p->mtu, qp->mtu)))
		return soft_resp_refuse(e, p, qp, r, BB_SYN_REMOTE_INVAL_REQ,
					"the two QPs have different path MTUs");
	if (unlikely(r->d.psn != epsn))
		return soft_resp_out_of_order(e, p, qp, r, epsn);
	ans = soft_resp_dispatch(e, p, qp, r);
	if (likely(ans.kind == SOFT_ACK))
		__atomic_store_n(&p->epsn, (epsn + r->d.packets) & soft_defect_psn_mask(e),
				 __ATOMIC_RELAXED);
	return ans;
}
