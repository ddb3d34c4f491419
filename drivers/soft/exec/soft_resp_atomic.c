/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Atomics at the responder: executes them, and repeats the stored response of a duplicate. */
#include <rte_cycles.h>

#include "soft_access.h"
#include "soft_resp.h"

uint64_t
soft_atomic(struct soft_engine *e, bool add, uint64_t *at, uint64_t swap_add, uint64_t compare)
{
	uint64_t old = compare, new;

	/* An atomic does not pass an earlier WRITE or SEND of the QP. */
	bb_smp_mb_before_atomic();
	if (unlikely(soft_defect(e, SOFT_DEFECT_ATOMIC_SPLIT))) {
		old = __atomic_load_n(at, __ATOMIC_RELAXED);
		/*
		 * Sleeps, so that other threads can access the memory between read and write, even
		 * on a machine with one CPU.
		 */
		rte_delay_us_sleep(1000);
		new = add ? old + swap_add : swap_add;
		if (add || old == compare)
			__atomic_store_n(at, new, __ATOMIC_RELAXED);
		return old;
	}
	if (add) {
		old = __atomic_fetch_add(at, swap_add, __ATOMIC_SEQ_CST);
		new = old + swap_add;
	} else {
		new = __atomic_compare_exchange_n(at, &old, swap_add, false, __ATOMIC_SEQ_CST,
						  __ATOMIC_SEQ_CST)
			      ? swap_add
			      : old;
	}
	return unlikely(soft_defect(e, SOFT_DEFECT_ATOMIC_OLD)) ? new : old;
}

/*
 * Adds @a and @b field by field. Each bit of @boundary is the highest bit of a field, and no carry
 * leaves its field.
 */
static uint64_t
soft_add_fields(uint64_t a, uint64_t b, uint64_t boundary)
{
	/*
	 * Adds the fields without their highest bits, so that no carry reaches the next field. XOR
	 * then adds the highest bits without a carry.
	 */
	return ((a & ~boundary) + (b & ~boundary)) ^ ((a ^ b) & boundary);
}

/* Returns the value that a masked atomic stores if the memory holds @old. */
static uint64_t
soft_masked(const struct soft_req *r, uint64_t old)
{
	if (r->d.opcode == BB_WQE_ATOMIC_MASKED_FA)
		return soft_add_fields(old, r->swap_add, r->compare);
	if (((old ^ r->compare) & r->compare_mask) != 0)
		return old;
	return (old & ~r->swap_mask) | (r->swap_add & r->swap_mask);
}

/*
 * Executes a masked atomic. Memory and operands are in host byte order. A result of 4 bytes is
 * returned in big endian, a result of 8 bytes in host order. The reason is that
 * atomic_req_8B_endianness_mode of the device covers only 8 bytes, and UCX expects big endian for
 * all other sizes (assumption [A]).
 */
static uint64_t
soft_atomic_masked(const struct soft_req *r, uint8_t *at)
{
	/* An atomic does not pass an earlier WRITE or SEND of the QP. */
	bb_smp_mb_before_atomic();
	if (r->atomic_len == 4) {
		uint32_t *p = (uint32_t *)(void *)at;
		uint32_t old = __atomic_load_n(p, __ATOMIC_RELAXED);

		while (!__atomic_compare_exchange_n(p, &old, (uint32_t)soft_masked(r, old), false,
						    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
			;
		return bb_be32(old);
	} else {
		uint64_t *p = (uint64_t *)(void *)at;
		uint64_t old = __atomic_load_n(p, __ATOMIC_RELAXED);

		while (!__atomic_compare_exchange_n(p, &old, soft_masked(r, old), false,
						    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
			;
		return old;
	}
}

static void
soft_resp_atomic_result(struct soft_engine *e, struct soft_qp *qp, const struct soft_req *r,
			uint64_t old)
{
	if (soft_resp_to_cqe(qp, r)) {
		memcpy(qp->cs_data, &old, r->atomic_len);
		qp->cs_len = (uint8_t)r->atomic_len;
	} else {
		soft_mem_scatter(e, r->frag, r->n, (const uint8_t *)&old);
	}
}

/* Checks that the QP permits the atomic. Returns the reason if it does not, else NULL. */
static const char *
soft_resp_atomic_right(struct soft_engine *e, const struct soft_qp *p, const struct soft_req *r)
{
	uint32_t mode = __atomic_load_n(&p->atomic_mode, __ATOMIC_RELAXED);

	if ((!__atomic_load_n(&p->rae, __ATOMIC_RELAXED) || mode == 0) &&
	    !soft_defect(e, SOFT_DEFECT_QP_RIGHT))
		return "the QP does not allow remote atomics";
	/* MLX5_ATOMIC_MODE_8B allows up to 8 bytes, including extended atomics (assumption [A]). */
	if ((r->d.opcode == BB_WQE_ATOMIC_MASKED_CS || r->d.opcode == BB_WQE_ATOMIC_MASKED_FA) &&
	    mode < 3)
		return "the QP's atomic_mode does not allow masked atomics";
	return NULL;
}

struct soft_response
soft_resp_atomic(struct soft_engine *e, struct soft_qp *p, struct soft_qp *qp, struct soft_req *r)
{
	bool masked =
		r->d.opcode == BB_WQE_ATOMIC_MASKED_CS || r->d.opcode == BB_WQE_ATOMIC_MASKED_FA;
	uint32_t low = r->atomic_len - 1;
	struct soft_replay *replay;
	const char *why;
	uint64_t old;
	uint8_t *at;

	if (unlikely(soft_resp_too_many(p, r)))
		return soft_resp_refuse(
			e, p, qp, r, BB_SYN_REMOTE_INVAL_REQ,
			"more READs and atomics are in flight than max_dest_rd_atomic: lower the "
			"peer's max_rd_atomic");
	why = soft_resp_atomic_right(e, p, r);
	if (unlikely(why != NULL))
		return soft_resp_refuse(e, p, qp, r, BB_SYN_REMOTE_INVAL_REQ, why);
	if (unlikely((r->raddr & low) != 0))
		return soft_resp_refuse(e, p, qp, r, BB_SYN_REMOTE_INVAL_REQ,
					"the address of the atomic is not a multiple of its size");
	at = soft_mem_find(e, p->dev, r->rkey, p->pdn, r->raddr, r->atomic_len, SOFT_RIGHT_ATOMIC,
			   &why);
	if (unlikely(at == NULL) &&
	    !soft_xlt_remote(e, p, r, r->atomic_len, SOFT_RIGHT_ATOMIC, &at, &why))
		return soft_resp_no_memory(e, p, qp, r, true, why);
	/* An atomic needs aligned memory that is contiguous on the target. */
	if (unlikely(at == NULL || ((uintptr_t)at & low) != 0))
		return soft_resp_refuse(
			e, p, qp, r, BB_SYN_REMOTE_INVAL_REQ,
			"the memory of the atomic is not aligned to its size or not contiguous");
	old = masked ? soft_atomic_masked(r, at)
		     : soft_atomic(e, r->d.opcode == BB_WQE_ATOMIC_FA, (uint64_t *)(void *)at,
				   r->swap_add, r->compare);
	replay = &p->replay[p->replay_next++ % SOFT_REPLAYS];
	replay->old = old;
	replay->psn = r->d.psn;
	replay->valid = true;
	soft_resp_atomic_result(e, qp, r, old);
	soft_served_for(e, p);
	e->served_atomic++;
	return soft_ack;
}

bool
soft_resp_atomic_replay(struct soft_engine *e, const struct soft_qp *p, struct soft_qp *qp,
			const struct soft_req *r)
{
	uint32_t i;

	for (i = 0; i < SOFT_REPLAYS; i++) {
		const struct soft_replay *o = &p->replay[i];

		if (!o->valid || o->psn != r->d.psn)
			continue;
		soft_resp_atomic_result(e, qp, r, o->old);
		return true;
	}
	return false;
}
