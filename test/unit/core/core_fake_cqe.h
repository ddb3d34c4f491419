/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* CQEs of the fake driver. Only core_fake.h includes this file. */
#ifndef CORE_FAKE_CQE_H
#define CORE_FAKE_CQE_H

/* Writes a CQE as the device does, the owner bit last. */
static inline struct bb_cqe *
fake_cqe(struct bb_cq *cq, uint8_t opcode, uint32_t user_index, uint16_t counter)
{
	struct fake_cq *f = cq->ctrl->priv;
	struct bb_cqe *cqe = (struct bb_cqe *)(void *)cq->ring.buf + (f->pi & cq->ring.mask);

	assert_true(f->pi - cq->ring.ci <= cq->ring.mask);
	memset(cqe, 0, offsetof(struct bb_cqe, op_own));
	cqe->srqn_uidx = bb_be32(user_index);
	cqe->wqe_counter = bb_be16(counter);
	bb_cqe_own_store(&cqe->op_own, (uint8_t)(opcode << 4 | (f->pi >> cq->ring.log_size & 1)));
	f->pi++;
	return cqe;
}

static inline void
fake_cqe_error(struct bb_cq *cq, uint8_t opcode, uint32_t user_index, uint16_t counter,
	       uint8_t syndrome, uint8_t vendor)
{
	uint8_t *cqe = (uint8_t *)fake_cqe(cq, opcode, user_index, counter);

	cqe[BB_CQE_SYNDROME_BYTE] = syndrome;
	cqe[BB_CQE_VENDOR_SYNDROME_BYTE] = vendor;
}

#endif
