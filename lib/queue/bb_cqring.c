/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <string.h>

#include "bb_cqring.h"
#include "bb_queue_log.h"

/*
 * log2 of the largest ring. The device gets the lowest 24 bits of the consumer index. With fewer
 * than 2^24 CQEs these bits distinguish a full ring from an empty one.
 */
#define CQ_MAX_LOG_SIZE 22u

int
bb_cqring_init(struct bb_cqring *cq, void *buf, uint32_t log_size, uint32_t *dbrec)
{
	if (log_size > CQ_MAX_LOG_SIZE) {
		BB_QUEUE_LOG(ERR, "CQ not created: 2^%u CQEs are more than the maximum of 2^%u",
			     log_size, CQ_MAX_LOG_SIZE);
		return -EINVAL;
	}
	if (buf == NULL || dbrec == NULL || ((uintptr_t)buf & (sizeof(struct bb_cqe) - 1)) != 0 ||
	    ((uintptr_t)dbrec & 7) != 0) {
		BB_QUEUE_LOG(ERR,
			     "CQ not created: ring %p and doorbell record %p: neither may be "
			     "NULL, and they must be aligned to 64 and 8 bytes",
			     buf, (void *)dbrec);
		return -EINVAL;
	}
	memset(cq, 0, sizeof(*cq));
	cq->buf = buf;
	cq->dbrec = dbrec;
	cq->mask = (1u << log_size) - 1;
	cq->log_size = (uint8_t)log_size;
	bb_cqring_seek(cq, 0);
	bb_cqring_clear(buf, log_size);
	bb_dbrec_store(&dbrec[0], 0);
	bb_dbrec_store(&dbrec[1], bb_be32(BB_CQ_ARM_NONE));
	return 0;
}

#define MINIS 8u /* mini CQEs per array; an array has the size of a CQE */

int
bb_cqring_expand(struct bb_cqring *cq, struct bb_cqe *title)
{
	const uint32_t n = bb_be32(title->byte_cnt);
	const uint16_t counter = bb_be16(title->wqe_counter);
	const uint8_t opcode = title->op_own >> 4;
	struct bb_cqe cqe = *title;
	uint32_t minis[MINIS][2]; /* checksum and stride index, byte count */
	uint32_t ci, i;

	/*
	 * ci is the number of the title CQE modulo twice the ring size. The low bits are the index
	 * in the ring. The bit above them equals the owner bit, because the title is a valid CQE.
	 */
	ci = (uint32_t)(title - (struct bb_cqe *)(void *)cq->buf);
	ci |= (title->op_own & 1) != 0 ? bb_cqring_size(cq) : 0;
	cqe.op_own &= (uint8_t) ~(BB_CQE_COMPRESSED | 1u);
	if (!cq->compress || n < 2 || n > bb_cqring_size(cq) || opcode < BB_CQE_RESP_WR_IMM ||
	    opcode > BB_CQE_RESP_SEND_INV) {
		title->op_own &= (uint8_t)~BB_CQE_COMPRESSED;
		bb_dma_wmb();
		return -EINVAL;
	}
	for (i = 0; i < n; i++) {
		struct bb_cqe *dst = bb_cqring_at(cq, ci + i);

		/*
		 * The first array of mini CQEs follows the title CQE. Each further array is at the
		 * index of the first CQE that it describes.
		 */
		if (i % MINIS == 0)
			memcpy(minis, bb_cqring_at(cq, ci + (i == 0 ? 1 : i)), sizeof(minis));
		cqe.byte_cnt = minis[i % MINIS][1];
		cqe.wqe_counter = bb_be16((uint16_t)(counter + i));
		memcpy(dst, &cqe, offsetof(struct bb_cqe, op_own));
		bb_cqe_own_store(
			&dst->op_own,
			(uint8_t)(cqe.op_own | (((ci + i) & bb_cqring_size(cq)) != 0 ? 1 : 0)));
	}
	bb_dma_wmb();
	return 0;
}

void
bb_cqring_clear(void *buf, uint32_t log_size)
{
	struct bb_cqe *cqe = buf;
	uint32_t i;

	memset(buf, 0, sizeof(*cqe) << log_size);
	for (i = 0; i < 1u << log_size; i++)
		bb_cqe_own_store(&cqe[i].op_own, BB_CQE_OP_OWN_INIT);
}

int
bb_cqring_move(struct bb_cqring *cq, void *buf, uint32_t log_size)
{
	const uint32_t size = 1u << log_size;
	struct bb_cqe *to = buf, *cqe;
	struct bb_cqring end = *cq;
	uint64_t ci;

	for (;; end.ci++) {
		if (end.ci - cq->ci > cq->mask)
			return -EAGAIN;
		cqe = bb_cqring_peek(&end);
		if (cqe == NULL)
			return -EAGAIN;
		if (cqe->op_own >> 4 == BB_CQE_RESIZE)
			break;
		if (bb_cqe_is_compressed(cqe))
			(void)bb_cqring_expand(cq, cqe);
	}
	if (end.ci - cq->ci > size)
		return -ENOSPC;
	/*
	 * Copy only the unread CQEs of the old ring. The device may already have written CQEs to
	 * the new ring after them.
	 */
	for (ci = cq->ci; ci != end.ci; ci++) {
		struct bb_cqe *dst = &to[(ci + 1) & (size - 1)];
		const struct bb_cqe *src = bb_cqring_peek_at(cq, ci);

		memcpy(dst, src, offsetof(struct bb_cqe, op_own));
		bb_cqe_own_store(&dst->op_own,
				 (uint8_t)((src->op_own & ~1u) | (((ci + 1) & size) != 0 ? 1 : 0)));
	}
	cq->buf = buf;
	cq->mask = size - 1;
	cq->log_size = (uint8_t)log_size;
	bb_cqring_seek(cq, cq->ci + 1);
	bb_dma_wmb();
	bb_cqring_update(cq);
	return 0;
}

uint32_t
bb_cqring_purge(struct bb_cqring *cq, uint32_t user_index)
{
	struct bb_cqring walk = *cq;
	uint32_t i, found = 0;

	for (i = 0; i <= cq->mask; i++, walk.ci++) {
		struct bb_cqe *cqe = bb_cqring_peek(&walk);

		if (cqe == NULL)
			break;
		if (bb_cqe_is_compressed(cqe))
			(void)bb_cqring_expand(cq, cqe);
		if ((bb_be32(cqe->srqn_uidx) & 0xffffff) != user_index)
			continue;
		cqe->srqn_uidx = bb_be32(BB_CQE_NO_USER);
		found++;
	}
	return found;
}
