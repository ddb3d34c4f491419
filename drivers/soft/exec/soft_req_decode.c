/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The requester's decoder of WQEs.
 *
 * The bytes of a WQE are untrusted. So the WQE is first copied out of the ring, and the checks see
 * the same bytes that are used later. The copy is made block by block, because a WQE may wrap
 * around the end of the ring. An invalid WQE is rejected with LOCAL_QP_OP (an inconsistent WQE,
 * IBTA vol. 1, 10.10.2). A card may check the rules in another order (so the behaviour here is an
 * assumption, [A]).
 */
#include "bb_prm_kernel.h"
#include "soft_access.h"
#include "soft_ud.h"

/* index of the first data segment, after control segment and address vector */
#define SOFT_UD_SEG 4u

static uint8_t
soft_req_refuse(struct soft_req *r, uint8_t synd, const char *why)
{
	r->why = why;
	return synd;
}

/*
 * Computes the payload length and finds the WQE's SGEs or inline data. Does not check the keys yet.
 * Returns 0 or a syndrome.
 */
static uint8_t
soft_req_frags(struct soft_req *r, uint32_t seg, uint32_t ds, bool inline_ok, uint64_t *pointers)
{
	while (seg < ds) {
		uint8_t *s = r->wqe + (size_t)seg * BB_WQE_SEG;
		uint32_t count = bb_get32(s), i = r->n;

		if (count & BB_WQE_INLINE) {
			count &= ~BB_WQE_INLINE;
			if (!inline_ok)
				return soft_req_refuse(
					r, BB_SYN_LOCAL_QP_OP,
					"inline data in a request that receives data (READ or "
					"atomic)");
			if (count > (ds - seg) * BB_WQE_SEG - 4)
				return soft_req_refuse(r, BB_SYN_LOCAL_QP_OP,
						       "the inline data is longer than the WQE");
			seg += count == 0 ? 1 : bb_wqe_inline_ds(count);
			if (count == 0)
				continue;
			r->frag[i].p = s + 4;
			r->frag[i].len = count;
		} else {
			*pointers |= 1ull << i;
			r->frag[i].p = s;
			r->frag[i].len = count == 0 ? BB_WQE_MAX_SGE_LEN : count;
			seg++;
		}
		r->d.len += r->frag[i].len;
		r->n = i + 1;
	}
	return 0;
}

/*
 * Returns true if the WQE uses a key that a UMR has just changed, and has no fence after that UMR.
 */
static bool
soft_req_unfenced(const struct soft_req *r, const struct soft_qp *qp, uint64_t pointers)
{
	if (soft_umr_waited(qp, &r->d))
		return false;
	for (; pointers != 0; pointers &= pointers - 1) {
		const uint8_t *s = r->own[__builtin_ctzll(pointers)].p;

		if (bb_get32(s + 4) >> 8 == qp->umr_index)
			return true;
	}
	return false;
}

/*
 * Resolves the bytes [from, to) again if an SGE has no plain key. Such an SGE may map to several
 * ranges of memory, or to memory whose pages must be made present. @pointers: bit mask of the SGEs
 * that are not resolved yet. Returns 0 or a syndrome.
 */
static uint8_t
soft_req_indirect(struct soft_engine *e, struct soft_req *r, const struct soft_qp *qp,
		  enum soft_right right, uint64_t pointers)
{
	uint64_t from = r->from, left = r->to - from;
	uint32_t i;

	soft_frags_clear(&e->local);
	for (i = 0; i < r->n; i++) {
		const struct soft_frag *p = &r->own[i];
		const uint64_t off = RTE_MIN(from, p->len), len = RTE_MIN(left, p->len - off);

		from -= off;
		left -= len;
		if (len == 0)
			continue;
		if ((pointers >> i & 1) == 0) {
			if (soft_frags_add(&e->local, p->p + off, len))
				continue;
			e->key_fault = SOFT_KEY_RANGE; /* not a missing page */
			return soft_req_refuse(r, BB_SYN_LOCAL_PROT,
					       "out of memory for the request's SGEs");
		}
		if (!soft_mem_map(e, qp->dev, qp->pdn, qp->qpn, bb_get32(p->p + 4),
				  bb_get64(p->p + 8) + off, len, right, &e->local, &r->why))
			return BB_SYN_LOCAL_PROT;
	}
	r->frag = e->local.p;
	r->n = e->local.n;
	return 0;
}

/*
 * Returns true if a QP of type UC or UD supports the operation (man ibv_post_send). The kernel's
 * QPs for management datagrams support SENDs, as UD does. The kernel's QP for UMRs supports only
 * UMRs and NOPs.
 */
static bool
soft_req_type_does(const struct soft_qp *qp, uint8_t opcode)
{
	if (qp->special == BB_PRM_QP_ST_REG_UMR)
		return opcode == BB_WQE_NOP || opcode == BB_WQE_UMR;
	switch (opcode) {
	case BB_WQE_NOP:
	case BB_WQE_SEND:
	case BB_WQE_SEND_IMM:
		return true;
	case BB_WQE_SEND_INV:
	case BB_WQE_RDMA_WRITE:
	case BB_WQE_RDMA_WRITE_IMM:
	case BB_WQE_UMR:
		return qp->st == BB_PRM_QP_ST_UC;
	default:
		return false;
	}
}

/*
 * Reads the operands of an atomic. The layout of masked atomics is that of UCX's rc_mlx5. Returns
 * the index of the segment that holds the SGE, or 0 if the WQE is invalid.
 */
static uint32_t
soft_req_atomic(struct soft_req *r, const struct soft_qp *qp, uint32_t opmod, uint32_t ds)
{
	const uint8_t *ops = r->wqe + 2 * BB_WQE_SEG;
	bool masked =
		r->d.opcode == BB_WQE_ATOMIC_MASKED_CS || r->d.opcode == BB_WQE_ATOMIC_MASKED_FA;
	uint32_t seg = 3;

	if (qp->dev->opts.no_atomic || (masked && qp->dev->opts.no_ext_atomic)) {
		r->why = masked ? "the device has no masked atomics" : "the device has no atomics";
		return 0;
	}
	r->atomic_len = 8;
	if (masked && opmod == bb_wqe_atomic_opmod(4)) {
		r->atomic_len = 4;
	} else if (masked && opmod != bb_wqe_atomic_opmod(8)) {
		r->why = "invalid opmod of a masked atomic (8 for 4 bytes, 9 for 8 bytes)";
		return 0;
	}
	if (r->d.opcode == BB_WQE_ATOMIC_MASKED_CS && r->atomic_len == 8)
		seg = 4;
	/* An atomic has exactly one SGE. It is an assumption [A] that a card rejects more SGEs. */
	if (ds != seg + 1) {
		r->why = "invalid ds of an atomic: the WQE has a ctrl, a raddr, the operands and "
			 "one data segment";
		return 0;
	}
	if (r->atomic_len == 4) {
		r->swap_add = bb_get32(ops);
		r->compare = bb_get32(ops + 4);
		r->swap_mask = bb_get32(ops + 8);
		r->compare_mask = bb_get32(ops + 12);
	} else {
		r->swap_add = bb_get64(ops);
		r->compare = bb_get64(ops + 8);
		r->swap_mask = bb_get64(ops + 16);
		r->compare_mask = bb_get64(ops + 24);
	}
	return seg;
}

uint8_t
soft_req_decode(struct soft_engine *e, struct soft_req *r, const struct soft_qp *qp, uint16_t idx,
		uint32_t avail)
{
	uint32_t mask = (1u << qp->log_sq) - 1, w0, w1, ds, blocks, i, seg;
	const bool copied = unlikely(qp->bf_differs) && qp->bf_idx == idx;
	enum soft_right right = SOFT_RIGHT_LOCAL_READ;
	bool raddr = true, atomic = false;
	uint64_t pointers = 0;
	uint8_t synd;

	e->qp_op_fault = SOFT_VEND_LOCAL_QP_OP;
	memcpy(r->wqe, copied ? qp->bf_copy : qp->sq + ((size_t)(idx & mask) << 6), BB_WQE_BB);
	w0 = bb_get32(r->wqe);
	w1 = bb_get32(r->wqe + 4);
	ds = w1 & 0xff;
	blocks = bb_wqe_blocks(ds);
	r->d.idx = idx;
	r->d.blocks = 1;
	r->d.opcode = (uint8_t)w0;
	r->d.fm_ce_se = r->wqe[11];
	r->d.len = 0;
	r->d.psn = qp->sq_psn;
	r->d.packets = 1;
	r->d.reads = 0;
	r->n = 0;
	r->frag = r->own;
	if (unlikely(ds == 0 || ds > BB_WQE_MAX_DS))
		return soft_req_refuse(r, BB_SYN_LOCAL_QP_OP, "invalid ds (1 to 63 segments)");
	if (unlikely(blocks > avail))
		return soft_req_refuse(
			r, BB_SYN_LOCAL_QP_OP,
			"the WQE ends after the block counter of the doorbell record");
	r->d.blocks = (uint16_t)blocks;
	if (unlikely((w0 >> 8 & 0xffff) != idx))
		return soft_req_refuse(r, BB_SYN_LOCAL_QP_OP,
				       "the WQE's index is not the queue's block counter");
	if (unlikely(w1 >> 8 != qp->qpn))
		return soft_req_refuse(r, BB_SYN_LOCAL_QP_OP, "the WQE names another QP");
	if (unlikely(w0 >> 24 != 0) && r->d.opcode != BB_WQE_ATOMIC_MASKED_CS &&
	    r->d.opcode != BB_WQE_ATOMIC_MASKED_FA)
		return soft_req_refuse(r, BB_SYN_LOCAL_QP_OP,
				       "opmod is not 0 (only masked atomics use opmod)");
	for (i = 1; i < blocks; i++)
		memcpy(r->wqe + i * BB_WQE_BB,
		       copied ? qp->bf_copy + i * BB_WQE_BB
			      : qp->sq + ((size_t)((idx + i) & mask) << 6),
		       BB_WQE_BB);
	/*
	 * From here on, the compiler must use the copy. Without this barrier it might read the ring
	 * again, which software may change meanwhile.
	 */
	bb_dma_rmb();

	memcpy(&r->imm, r->wqe + 12, sizeof(r->imm));
	if (unlikely(qp->st != BB_PRM_QP_ST_RC) && !soft_req_type_does(qp, r->d.opcode)) {
		e->qp_op_fault = SOFT_VEND_QP_TYPE;
		return soft_req_refuse(r, BB_SYN_LOCAL_QP_OP,
				       "the QP's type does not support this opcode");
	}
	seg = 2;
	switch (r->d.opcode) {
	case BB_WQE_NOP:
		return 0;
	case BB_WQE_UMR:
		if (qp->dev->opts.no_umr)
			return soft_req_refuse(r, BB_SYN_LOCAL_QP_OP, "the device has no UMR");
		return 0;
	case BB_WQE_SEND:
	case BB_WQE_SEND_INV:
	case BB_WQE_SEND_IMM:
		seg = qp->st == BB_PRM_QP_ST_UD ? SOFT_UD_SEG : 1;
		raddr = false;
		break;
	case BB_WQE_RDMA_WRITE:
	case BB_WQE_RDMA_WRITE_IMM:
		break;
	case BB_WQE_RDMA_READ:
		/*
		 * The limit is that of the kernel. A card may handle a longer READ differently (so
		 * the behaviour here is an assumption, [A]).
		 */
		if (unlikely(ds > BB_WQE_READ_MAX_DS))
			return soft_req_refuse(
				r, BB_SYN_LOCAL_QP_OP,
				"the WQE of a READ is longer than 512 bytes (at most 30 SGEs)");
		right = SOFT_RIGHT_LOCAL_WRITE;
		break;
	case BB_WQE_ATOMIC_CS:
	case BB_WQE_ATOMIC_FA:
	case BB_WQE_ATOMIC_MASKED_CS:
	case BB_WQE_ATOMIC_MASKED_FA:
		seg = soft_req_atomic(r, qp, w0 >> 24, ds);
		if (unlikely(seg == 0))
			return BB_SYN_LOCAL_QP_OP;
		atomic = true;
		right = SOFT_RIGHT_LOCAL_WRITE;
		break;
	default:
		e->qp_op_fault = SOFT_VEND_OPCODE;
		return soft_req_refuse(r, BB_SYN_LOCAL_QP_OP, "unknown opcode");
	}
	if (unlikely(ds < seg))
		return soft_req_refuse(r, BB_SYN_LOCAL_QP_OP,
				       raddr ? "the remote address segment is missing"
					     : "the address vector is missing");
	if (unlikely(seg == SOFT_UD_SEG && !raddr)) {
		synd = soft_ud_check(r, qp);
		if (synd != 0)
			return synd;
	}
	if (raddr) {
		r->raddr = bb_get64(r->wqe + 16);
		r->rkey = bb_get32(r->wqe + 24);
	}
	synd = soft_req_frags(r, seg, ds, right == SOFT_RIGHT_LOCAL_READ, &pointers);
	if (unlikely(synd != 0))
		return synd;

	if (atomic) {
		if (unlikely(r->d.len != r->atomic_len))
			return soft_req_refuse(
				r, BB_SYN_LOCAL_LENGTH,
				"the length of the atomic's SGE is not the size of the atomic");
	} else if (qp->st == BB_PRM_QP_ST_UD) {
		if (unlikely(r->d.len > RTE_MIN(1ull << qp->log_msg_max, (uint64_t)qp->mtu)))
			return soft_req_refuse(r, BB_SYN_LOCAL_LENGTH,
					       "the datagram is longer than the port's MTU");
	} else if (r->d.len != 0) {
		if (unlikely(r->d.len > 1ull << qp->log_msg_max))
			return soft_req_refuse(
				r, BB_SYN_LOCAL_LENGTH,
				"the message is longer than the QP's log_msg_max allows");
		r->d.packets = (uint32_t)((r->d.len + qp->mtu - 1) >> __builtin_ctz(qp->mtu));
	}
	if (unlikely(qp->umr_index != 0) && soft_req_unfenced(r, qp, pointers)) {
		e->key_fault = SOFT_KEY_FREE;
		return soft_req_refuse(
			r, BB_SYN_LOCAL_PROT,
			"an earlier UMR changes the key, but the request has no small fence (fm "
			"1)");
	}
	while (pointers != 0) {
		struct soft_frag *p = &r->own[__builtin_ctzll(pointers)];
		const struct soft_mkey *m = soft_mkey_find(qp->dev, bb_get32(p->p + 4));
		const uint64_t addr = bb_get64(p->p + 8);

		if (unlikely(!soft_mkey_plain(m, qp->pdn, addr, p->len, right)))
			return soft_req_indirect(e, r, qp, right, pointers);
		p->p = m->base + (addr - m->start);
		pointers &= pointers - 1;
	}
	return 0;
}
