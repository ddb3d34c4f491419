/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Completion ring: find valid CQEs by their owner bit, give them back.
 */
#ifndef BB_CQRING_H
#define BB_CQRING_H

#include "bb_cqe.h"
#include "bb_sq.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A ring of CQEs that the device writes and one thread reads. */
struct bb_cqring {
	uint8_t *buf;    /**< (mask + 1) CQEs of 64 bytes */
	uint32_t *dbrec; /**< word 0 consumer index, word 1 arm */
	uint32_t mask;
	uint32_t ci;   /**< CQEs consumed; bits above the ring give the owner */
	uint32_t size; /**< CQEs in the ring: the bit of ci that the owner bit follows */
	uint8_t log_size;
	uint8_t pad[3];
};

/**
 * Prepare the ring and its memory: every CQE invalid, records zero.
 * @param log_size log2 of the number of CQEs, 0 to 22.
 * @return 0, or -EINVAL.
 */
int bb_cqring_init(struct bb_cqring *cq, void *buf, uint32_t log_size, uint32_t *dbrec);

/** The CQE numbered @p ci if the device has written it, else NULL. It may be read. */
static inline struct bb_cqe *
bb_cqring_peek_at(const struct bb_cqring *cq, uint32_t ci)
{
	struct bb_cqe *cqe =
		(struct bb_cqe *)(void *)(cq->buf + (size_t)(ci & cq->mask) * sizeof(*cqe));
	uint8_t own = bb_cqe_own_load(&cqe->op_own);

	if ((own & 1) != ((ci & cq->size) != 0) || own >> 4 == BB_CQE_INVALID)
		return NULL;
	bb_dma_rmb();
	if (cqe == NULL)
		__builtin_unreachable(); /* spares the caller's compiler the question */
	return cqe;
}

/** The next CQE if the device has written it, else NULL. It may be read. */
static inline struct bb_cqe *
bb_cqring_peek(const struct bb_cqring *cq)
{
	return bb_cqring_peek_at(cq, cq->ci);
}

/** Tell the device how far software has read: once per burst. */
static inline void
bb_cqring_update(struct bb_cqring *cq)
{
	/* The device may overwrite what is given back: our reads come first. */
	bb_dma_rmb();
	bb_dbrec_store(cq->dbrec, bb_be32(cq->ci & 0xffffff));
}

/**
 * Mark the CQEs of one user index that are in the ring and not yet consumed, so
 * that a poll passes over them. For queues that are reset or destroyed.
 * @return how many there were.
 */
uint32_t bb_cqring_purge(struct bb_cqring *cq, uint32_t user_index);

/** User index no queue ever has; bb_cqring_purge() writes it. */
#define BB_CQE_NO_USER 0xffffffu

#ifdef __cplusplus
}
#endif

#endif
