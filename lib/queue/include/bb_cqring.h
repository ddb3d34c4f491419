/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Completion ring: finds valid CQEs by their owner bit and releases them.
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
	uint64_t ci;     /**< CQEs consumed; the bit above the index bits gives the expected owner
			  * bit */
	uint32_t mask;
	uint32_t size; /**< CQEs in the ring, and the bit of ci that the owner bit follows */
	uint8_t log_size;
	uint8_t compress; /**< 1 if the device may write compressed blocks; 0 after init */
	uint8_t pad[2];
};

/**
 * Initializes the ring and its memory: all CQEs invalid, none consumed, never armed.
 * @param log_size log2 of the number of CQEs, 0 to 22.
 * @return 0, or -EINVAL.
 */
int bb_cqring_init(struct bb_cqring *cq, void *buf, uint32_t log_size, uint32_t *dbrec);

/** Returns the address of CQE number @p ci, written or not. */
static inline struct bb_cqe *
bb_cqring_at(const struct bb_cqring *cq, uint64_t ci)
{
	return (struct bb_cqe *)(void *)(cq->buf + (size_t)(ci & cq->mask) * sizeof(struct bb_cqe));
}

/** Returns op_own at the index of CQE number @p ci, with an owner bit of 0 if it matches @p ci. */
static inline uint8_t
bb_cqring_own(const struct bb_cqring *cq, const struct bb_cqe *cqe, uint64_t ci)
{
	return bb_cqe_own_load(&cqe->op_own) ^ ((ci & cq->size) != 0);
}

/** Returns true if the device has written the CQE. @p own: result of bb_cqring_own(). */
static inline bool
bb_cqring_is_there(uint8_t own)
{
	return (own & 1) == 0 && own >> 4 != BB_CQE_INVALID;
}

/** Returns true if the CQE is valid and reports just a successful send. @p own: as above. */
static inline bool
bb_cqring_is_plain(uint8_t own)
{
	BB_STATIC_ASSERT(BB_CQE_REQ == 0, "and no data in it: 0, too, but for the solicited bit");
	return (own & ~BB_CQE_SE) == 0;
}

/** Returns CQE number @p ci, ready to be read, or NULL if the device has not written it. */
static inline struct bb_cqe *
bb_cqring_peek_at(const struct bb_cqring *cq, uint64_t ci)
{
	struct bb_cqe *cqe = bb_cqring_at(cq, ci);

	if (!bb_cqring_is_there(bb_cqring_own(cq, cqe, ci)))
		return NULL;
	bb_dma_rmb();
	if (cqe == NULL)
		__builtin_unreachable(); /* spares callers a NULL check in the generated code */
	return cqe;
}

/** Returns the next CQE, ready to be read, or NULL if the device has not written it. */
static inline struct bb_cqe *
bb_cqring_peek(const struct bb_cqring *cq)
{
	return bb_cqring_peek_at(cq, cq->ci);
}

/** Reports the consumer index to the device: once per burst. */
static inline void
bb_cqring_update(struct bb_cqring *cq)
{
	const uint32_t ci = (uint32_t)cq->ci;

	/* The device may overwrite released CQEs: software's reads must come first. */
	bb_dma_rmb();
	bb_dbrec_store(cq->dbrec, bb_be32(ci & 0xffffff));
}

/** Offset in a UAR page at which CQs are armed (libmlx5's mlx5.h: MLX5_CQ_DOORBELL). */
#define BB_UAR_ARM_OFFSET 0x20

/** Bit of the arm word: event only for a solicited completion or an error. */
#define BB_CQ_ARM_SOLICITED (1u << 24)

/**
 * Arm record before the first arming. It must not be 0: a device would run doorbell recovery on a
 * CQ that is only polled. Linux's dr_create_cq() (mlx5/core, steering, dr_send.c) sets 2 << 28 for
 * that reason. This value is the sequence number before 0, so that the first arming changes the
 * record too.
 */
#define BB_CQ_ARM_NONE (3u << 28)

/**
 * Requests an event at the next CQE after the consumer index. Writes the arm record, then the
 * register, as for any doorbell.
 * @param sn events taken so far. The device ignores a request whose number, modulo 4, equals that
 * of a request it has already answered.
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

/** Returns true if the CQE is the title of a block of compressed CQEs. */
static inline bool
bb_cqe_is_compressed(const struct bb_cqe *cqe)
{
	return (cqe->op_own & BB_CQE_COMPRESSED) == BB_CQE_COMPRESSED;
}

/**
 * Expands a compressed block (basic layout) into full CQEs in the ring, as if the device had
 * written them. Immediates, flags and times are copied from the title. WQE counters increase from
 * the title's, as receives of one queue do.
 * @param title a valid CQE of the ring for which bb_cqe_is_compressed() is true.
 * @return 0; -EINVAL if the ring takes no blocks, the title is not a receive's, or its count is not
 * 2 to the ring's size. The title then stays as a single uncompressed CQE.
 */
int bb_cqring_expand(struct bb_cqring *cq, struct bb_cqe *title);

/** Makes every CQE of a ring invalid. For a ring that the device does not use yet. */
void bb_cqring_clear(void *buf, uint32_t log_size);

/**
 * Switches to another ring that the device was given by MODIFY_CQ. Unread CQEs move from the old to
 * the new ring, one index further: the CQE that ends the old ring has an index too.
 * @param buf, log_size as of bb_cqring_init(), prepared by bb_cqring_clear().
 * @return 0; -EAGAIN if the device has not ended the old ring yet; -ENOSPC if the new ring is too
 * small for the unread CQEs. Nothing changes on an error.
 */
int bb_cqring_move(struct bb_cqring *cq, void *buf, uint32_t log_size);

/**
 * Marks the unconsumed CQEs of one user index, so that a poll skips them. For queues that are reset
 * or destroyed.
 * @return number of CQEs marked.
 */
uint32_t bb_cqring_purge(struct bb_cqring *cq, uint32_t user_index);

/** User index that no queue has; bb_cqring_purge() writes it. */
#define BB_CQE_NO_USER 0xffffffu

#ifdef __cplusplus
}
#endif

#endif
