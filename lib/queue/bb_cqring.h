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
	uint64_t ci;     /**< CQEs consumed; the bit above the ring's gives the owner */
	uint32_t mask;
	uint32_t size; /**< CQEs in the ring: the bit of ci that the owner bit follows */
	uint8_t log_size;
	uint8_t compress; /**< the device may write compressed blocks; 0 after init */
	uint8_t pad[2];
};

/**
 * Prepare the ring and its memory: every CQE invalid, nothing consumed, never armed.
 * @param log_size log2 of the number of CQEs, 0 to 22.
 * @return 0, or -EINVAL.
 */
int bb_cqring_init(struct bb_cqring *cq, void *buf, uint32_t log_size, uint32_t *dbrec);

/** The place of the CQE numbered @p ci. */
static inline struct bb_cqe *
bb_cqring_at(const struct bb_cqring *cq, uint64_t ci)
{
	return (struct bb_cqe *)(void *)(cq->buf + (size_t)(ci & cq->mask) * sizeof(struct bb_cqe));
}

/** op_own of the place of CQE number @p ci, its owner bit 0 where it is that of this number. */
static inline uint8_t
bb_cqring_own(const struct bb_cqring *cq, const struct bb_cqe *cqe, uint64_t ci)
{
	return bb_cqe_own_load(&cqe->op_own) ^ ((ci & cq->size) != 0);
}

/** By its bb_cqring_own(): has the device written it? */
static inline bool
bb_cqring_is_there(uint8_t own)
{
	return (own & 1) == 0 && own >> 4 != BB_CQE_INVALID;
}

/** By its bb_cqring_own(): is it there, and says no more than that a send succeeded? */
static inline bool
bb_cqring_is_plain(uint8_t own)
{
	BB_STATIC_ASSERT(BB_CQE_REQ == 0, "and no data in it: 0, too, but for the solicited bit");
	return (own & ~BB_CQE_SE) == 0;
}

/** The CQE numbered @p ci if the device has written it, else NULL. It may be read. */
static inline struct bb_cqe *
bb_cqring_peek_at(const struct bb_cqring *cq, uint64_t ci)
{
	struct bb_cqe *cqe = bb_cqring_at(cq, ci);

	if (!bb_cqring_is_there(bb_cqring_own(cq, cqe, ci)))
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
	const uint32_t ci = (uint32_t)cq->ci;

	/* The device may overwrite what is given back: our reads come first. */
	bb_dma_rmb();
	bb_dbrec_store(cq->dbrec, bb_be32(ci & 0xffffff));
}

/** Where in a UAR page CQs are armed (mlx5.h of libmlx5: MLX5_CQ_DOORBELL). */
#define BB_UAR_ARM_OFFSET 0x20

/** Bit of the arm word: only a solicited completion, or an error. */
#define BB_CQ_ARM_SOLICITED (1u << 24)

/**
 * The arm record before the first arming. It must not be 0, or a device runs doorbell recovery on
 * a CQ that is only polled: Linux's dr_create_cq() (mlx5/core, steering, dr_send.c) sets 2 << 28
 * for that reason. The number here is the one before 0, so that the first arming changes the
 * record, too.
 */
#define BB_CQ_ARM_NONE (3u << 28)

/**
 * Ask for an event at the next CQE behind the consumer index: the arm record, then the
 * register, as for any doorbell.
 * @param sn events taken so far; the device ignores a request whose number, modulo 4,
 *   is that of one it has answered already.
 */
static inline void
bb_cqring_arm(struct bb_cqring *cq, uint32_t cqn, uint32_t sn, bool solicited, uint64_t *reg)
{
	uint32_t word = (sn & 3) << 28 | (solicited ? BB_CQ_ARM_SOLICITED : 0) |
			((uint32_t)cq->ci & 0xffffff);

	bb_dbrec_store(&cq->dbrec[1], bb_be32(word));
	bb_db_wmb();
	bb_uar_store64(reg, bb_be64((uint64_t)word << 32 | cqn));
	bb_wc_flush();
}

/** Is it the title of a block of compressed CQEs? */
static inline bool
bb_cqe_is_compressed(const struct bb_cqe *cqe)
{
	return (cqe->op_own & BB_CQE_COMPRESSED) == BB_CQE_COMPRESSED;
}

/**
 * Write the CQEs of a compressed block (basic layout) into the places that it takes, whole,
 * as if the device had. Their immediates, flags and times are the title's; WQE counters
 * count up from the title's, as receives of one queue do.
 * @param title a valid CQE of the ring, bb_cqe_is_compressed().
 * @return 0; -EINVAL the ring takes none, it is no title of receives, or its count is not 2 to
 *   the ring's size.
 *   Then it is left as a CQE of its own that is not compressed.
 */
int bb_cqring_expand(struct bb_cqring *cq, struct bb_cqe *title);

/** Make every CQE of a ring invalid. For a ring that the device does not know yet. */
void bb_cqring_clear(void *buf, uint32_t log_size);

/**
 * Go over to another ring that the device has been given (MODIFY_CQ). What is unread in the
 * old one moves to the new one, one place on: the CQE that ends the old ring has an index too.
 * @param buf, log_size as of bb_cqring_init(), prepared by bb_cqring_clear().
 * @return 0; -EAGAIN the device has not ended the old ring yet; -ENOSPC the new ring is too
 *   small for what is unread. On an error nothing has changed.
 */
int bb_cqring_move(struct bb_cqring *cq, void *buf, uint32_t log_size);

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
