/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Writes CQEs of 64 or 128 bytes. The fields of a CQE of 128 bytes are in its second half; the
 * first half has only payload. The owner bit is written last. The device keeps the last consumer
 * index that it has read. It reads the doorbell record again only if the ring looks full with that
 * index. If a CQE is due and the CQ is full, the CQ overruns: the CQ and the QPs that complete into
 * it go to the error state. A CQ that ignores overruns (cqc.oi) instead loses its oldest CQE.
 *
 * CQE timestamps come from the TSC. An engine reads the TSC before it executes new requests. With
 * option shm it may read the TSC only before it writes their first CQE. A CQE contains the value
 * that its engine read last (assumption [A]). In both cases this time lies between the post of the
 * request and the poll that returns the CQE.
 */
#ifndef SOFT_CQE_H
#define SOFT_CQE_H

#include "soft_data.h"

#define SOFT_CQE_SE (1u << 1) /* bit of op_own: completion of a solicited message */

struct soft_cqe_parts;
/*
 * Adds a CQE to the open block of compressed CQEs, or opens a block. Returns false if the CQE
 * cannot be compressed.
 */
bool soft_zip_take(struct soft_engine *e, uint32_t qpn, struct soft_cq *cq,
		   const struct soft_cqe_parts *c);
/* Writes the open block of compressed CQEs to the ring, if there is an open block. */
void soft_zip_end(struct soft_engine *e, struct soft_cq *cq);

/*
 * Returns the fields of the next CQE, or NULL if the CQ is full or in error. @big says whether CQEs
 * have 128 bytes.
 */
static inline struct bb_cqe *
soft_cqe_slot(struct soft_cq *cq, bool big)
{
	uint32_t size = 1u << cq->log_size;

	if (unlikely(cq->error))
		return NULL;
	if (unlikely(((cq->pi - cq->last_ci) & 0xffffff) >= size)) {
		cq->last_ci = bb_be32(bb_dbrec_load(cq->dbrec)) & 0xffffff;
		if (((cq->pi - cq->last_ci) & 0xffffff) >= size && !cq->ignore_overrun)
			return NULL;
	}
	return (struct bb_cqe *)(void *)(cq->buf + ((size_t)(cq->pi & (size - 1)) << (6 + big)) +
					 ((size_t)big << 6));
}

struct soft_cqe_parts {
	uint64_t w4, w5; /* bytes 32 to 47 of the CQE, in memory byte order */
	uint64_t w6;     /* bytes 48 to 55 of an error CQE, else unused */
	/*
	 * Payload: SOFT_CS_MAX bytes if op_flags has BB_CQE_SCATTER_64, else 32 bytes. NULL if the
	 * CQE has no payload.
	 */
	const uint8_t *data;
	uint8_t sop;
	uint8_t op_flags; /* op_own without the owner bit */
	uint16_t counter;
	uint8_t owner_flip; /* bits to invert in the owner byte; only for SOFT_DEFECT_OWNER_BIT */
};

/*
 * Writes a CQE. Returns false if the CQ is in error. Sets *died if the CQ overran because of this
 * CQE. Always inline, because most callers have constant parts, which then need no memory.
 */
static __rte_always_inline bool
soft_cqe_put(const struct soft_engine *e, uint32_t qpn, struct soft_cq *cq,
	     const struct soft_cqe_parts *c, bool big, bool *died)
{
	uint64_t w6 = c->op_flags >> 4 >= BB_CQE_REQ_ERR ? c->w6 : bb_be64(e->now);
	struct bb_cqe *cqe = soft_cqe_slot(cq, big);

	if (unlikely(cqe == NULL)) {
		*died = !cq->error;
		cq->error = true;
		return false;
	}
	if (big && (c->op_flags & BB_CQE_FORMAT_MASK) == BB_CQE_SCATTER_64)
		memcpy((uint8_t *)cqe - SOFT_CS_MAX, c->data, SOFT_CS_MAX);
	else if (c->data != NULL)
		memcpy(cqe, c->data, 32);
	else
		memset(cqe, 0, 32);
	memcpy((uint8_t *)cqe + 32, &c->w4, sizeof(c->w4));
	memcpy((uint8_t *)cqe + 40, &c->w5, sizeof(c->w5));
	memcpy((uint8_t *)cqe + 48, &w6, sizeof(w6));
	cqe->sop_qpn = bb_be32((uint32_t)c->sop << 24 | qpn);
	cqe->wqe_counter = bb_be16(c->counter);
	cqe->signature = 0;
	bb_cqe_own_store(&cqe->op_own,
			 (uint8_t)(c->op_flags | ((cq->pi >> cq->log_size & 1) ^ c->owner_flip)));
	cq->pi++;
	if ((c->op_flags & SOFT_CQE_SE) != 0 || c->op_flags >> 4 >= BB_CQE_REQ_ERR)
		cq->sol_pi = cq->pi;
	return true;
}

/*
 * Writes a CQE to a CQ whose flags are not 0 (armed, shared or otherwise not on the fast path).
 * Gets a copy of @c, because the caller could not hold its own in registers if it passed an
 * address.
 */
bool soft_cqe_write_slow(struct soft_engine *e, struct soft_qp *qp, struct soft_cq *cq,
			 struct soft_cqe_parts c);

/*
 * Writes a CQE. Returns false if the CQ has overrun, with this CQE or with an earlier one. Always
 * inline, as soft_cqe_put().
 */
static __rte_always_inline bool
soft_cqe_write_data(struct soft_engine *e, struct soft_qp *qp, struct soft_cq *cq, uint64_t w4,
		    uint64_t w5, uint64_t w6, uint8_t sop, uint16_t counter, uint8_t op_flags,
		    const uint8_t *data)
{
	const struct soft_cqe_parts c = {w4, w5, w6, data, sop, op_flags, counter, 0};
	bool died = false, ok;

	/*
	 * Another thread may set SOFT_CQ_SHARED while this CQE is written. That is safe, because no
	 * other engine writes to the CQ before soft_quiesce() returns.
	 */
	if (unlikely(__atomic_load_n(&cq->flags, __ATOMIC_RELAXED) != 0))
		return soft_cqe_write_slow(e, qp, cq, c);
	ok = soft_cqe_put(e, qp->qpn, cq, &c, false, &died);
	if (unlikely(died))
		soft_cq_fail(e, qp, cq);
	return ok;
}

static __rte_always_inline bool
soft_cqe_write(struct soft_engine *e, struct soft_qp *qp, struct soft_cq *cq, uint64_t w4,
	       uint64_t w5, uint64_t w6, uint8_t sop, uint16_t counter, uint8_t op_flags)
{
	return soft_cqe_write_data(e, qp, cq, w4, w5, w6, sop, counter, op_flags, NULL);
}

static inline uint64_t
soft_pair(uint32_t first_be, uint32_t second_be)
{
	return (uint64_t)second_be << 32 | first_be;
}

#endif
