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
	uint32_t *dbrec; /**< doorbell record: consumer index, then arm record */
	uint64_t ci; /**< CQEs consumed; the bit above the ring index is the owner bit that the next
			CQE must have */
	const struct bb_cqe *next; /**< address of CQE number ci */
	uint32_t mask;
	uint8_t lap; /**< owner bit that CQE number ci must have */
	uint8_t log_size;
	uint8_t compress; /**< 1 if the device may write compressed blocks; bb_cqring_init() sets 0
			   */
	uint8_t pad;
};

/**
 * Initializes the ring and its memory: all CQEs are invalid, none is consumed, and the CQ is not
 * armed.
 * @param log_size log2 of the number of CQEs, 0 to 22.
 * @return 0, or -EINVAL if @p log_size is out of range.
 */
int bb_cqring_init(struct bb_cqring *cq, void *buf, uint32_t log_size, uint32_t *dbrec);

/** Returns the address of CQE number @p ci, whether or not the device has written the CQE. */
static inline struct bb_cqe *
bb_cqring_at(const struct bb_cqring *cq, uint64_t ci)
{
	return (struct bb_cqe *)(void *)(cq->buf + (size_t)(ci & cq->mask) * sizeof(struct bb_cqe));
}

/**
 * Returns the number of CQEs in the ring, a power of two. The CQE with number n must have the owner
 * bit (n & size) != 0, where size is this number.
 */
static inline uint32_t
bb_cqring_size(const struct bb_cqring *cq)
{
	return cq->mask + 1;
}

/**
 * Returns the op_own byte of CQE number @p ci with its owner bit replaced: 0 if the CQE's owner
 * bit is the expected one, else 1.
 */
static inline uint8_t
bb_cqring_own(const struct bb_cqring *cq, const struct bb_cqe *cqe, uint64_t ci)
{
	return bb_cqe_own_load(&cqe->op_own) ^ ((ci & bb_cqring_size(cq)) != 0);
}

/** Returns true if the device has written the CQE. @p own is the result of bb_cqring_own(). */
static inline bool
bb_cqring_is_there(uint8_t own)
{
	return (own & 1) == 0 && own >> 4 != BB_CQE_INVALID;
}

/**
 * Returns true if the CQE is valid and reports a successful send without inline data. @p own is
 * the result of bb_cqring_own().
 */
static inline bool
bb_cqring_is_plain(uint8_t own)
{
	BB_STATIC_ASSERT(BB_CQE_REQ == 0, "and no data in it: 0, too, but for the solicited bit");
	return (own & ~BB_CQE_SE) == 0;
}

/** Returns CQE number @p ci, which may then be read, or NULL if the device has not written it. */
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

/** Returns the next CQE, which may then be read, or NULL if the device has not written it. */
static inline struct bb_cqe *
bb_cqring_peek(const struct bb_cqring *cq)
{
	return bb_cqring_peek_at(cq, cq->ci);
}

/** Sets the consumer index. Does not write the doorbell record. */
static inline void
bb_cqring_seek(struct bb_cqring *cq, uint64_t ci)
{
	bb_count_add(&cq->ci, ci - cq->ci);
	cq->next = bb_cqring_at(cq, ci);
	cq->lap = (ci & bb_cqring_size(cq)) != 0;
}

/** Writes the consumer index to the doorbell record. Call it once per burst. */
static inline void
bb_cqring_update(struct bb_cqring *cq)
{
	const uint32_t ci = (uint32_t)cq->ci;

	/*
	 * The device may overwrite released CQEs, so software's reads must come before the
	 * release.
	 */
	bb_dma_rmb();
	bb_dbrec_store(cq->dbrec, bb_be32(ci & 0xffffff));
}

/**
 * Returns the address of CQE number @p ci, which follows @p cqe. At the end of the ring, flips the
 * expected owner bit (cq->lap). Leaves the consumer index unchanged, so the caller must then call
 * bb_cqring_release() or bb_cqring_seek().
 */
static inline const struct bb_cqe *
bb_cqring_after(struct bb_cqring *cq, const struct bb_cqe *cqe, uint64_t ci)
{
	if (bb_likely((ci & cq->mask) != 0))
		return cqe + 1;
	cq->lap ^= 1;
	return (const struct bb_cqe *)(const void *)cq->buf;
}

/** Frees the CQEs up to but not including CQE number @p ci, whose address is @p cqe. */
static inline void
bb_cqring_release(struct bb_cqring *cq, const struct bb_cqe *cqe, uint64_t ci)
{
	bb_count_add(&cq->ci, ci - cq->ci);
	cq->next = cqe;
	bb_cqring_update(cq);
}

/** Offset in a UAR page at which CQs are armed (libmlx5's mlx5.h: MLX5_CQ_DOORBELL). */
#define BB_UAR_ARM_OFFSET 0x20

/** Bit of the arm record: raise an event only for a solicited completion or an error. */
#define BB_CQ_ARM_SOLICITED (1u << 24)

/**
 * Value of the arm record before the CQ is armed for the first time. With 0 a device would run
 * doorbell recovery on a CQ that is only polled. Linux's dr_create_cq() (mlx5/core, steering,
 * dr_send.c) sets 2 << 28 for that reason. This value has the sequence number before 0, so that
 * the first arming changes the record too.
 */
#define BB_CQ_ARM_NONE (3u << 28)

/**
 * Arms the CQ: requests an event at the next CQE after the consumer index. Writes the arm record,
 * then the register, as for any doorbell.
 * @param sn number of events received so far. The device compares it modulo 4 with the last
 * request that raised an event, and ignores the new request if they are equal.
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

/** Returns true if the CQE is the title, that is, the first CQE of a block of compressed CQEs. */
static inline bool
bb_cqe_is_compressed(const struct bb_cqe *cqe)
{
	return (cqe->op_own & BB_CQE_COMPRESSED) == BB_CQE_COMPRESSED;
}

/**
 * Expands a compressed block (basic layout) into full CQEs in the ring, as if the device had
 * written them. Copies immediates, flags and times from the title. Numbers the WQE counters
 * upwards from the title's, because the receives of a queue complete in order.
 * @param title a valid CQE of the ring for which bb_cqe_is_compressed() is true.
 * @return 0, or -EINVAL in these cases: the ring does not accept compressed blocks, the title is
 * not a receive CQE, or its count is below 2 or above the ring size. The title then stays as a
 * single uncompressed CQE.
 */
int bb_cqring_expand(struct bb_cqring *cq, struct bb_cqe *title);

/** Makes every CQE of a ring invalid. Call it only while the device does not use the ring. */
void bb_cqring_clear(void *buf, uint32_t log_size);

/**
 * Switches to the ring that MODIFY_CQ gave to the device. Copies the unread CQEs from the old to
 * the new ring, at an index that is higher by one, because the CQE that ends the old ring is
 * counted too.
 * @param buf memory of the new ring, prepared by bb_cqring_clear()
 * @param log_size log2 of the number of CQEs, as of bb_cqring_init()
 * @return 0; -EAGAIN if the device has not written the last CQE of the old ring yet; -ENOSPC if the
 * new ring is too small for the unread CQEs. Nothing changes on an error.
 */
int bb_cqring_move(struct bb_cqring *cq, void *buf, uint32_t log_size);

/**
 * Marks the unconsumed CQEs with @p user_index, so that a poll skips them. Called when the queue
 * of that index is reset or destroyed.
 * @return number of CQEs marked.
 */
uint32_t bb_cqring_purge(struct bb_cqring *cq, uint32_t user_index);

/** User index that no queue has; bb_cqring_purge() writes it to a CQE as the mark. */
#define BB_CQE_NO_USER 0xffffffu

#ifdef __cplusplus
}
#endif

#endif
