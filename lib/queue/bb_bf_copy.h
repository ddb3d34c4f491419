/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * BlueFlame: the doorbell functions of queues that copy WQEs to their register, and the choice of
 * the store instructions for such a copy.
 *
 * bb_sq_ring() calls bb_sq.ring for these queues. There is one function per enum bb_bf_copy, so
 * the choice adds neither a branch nor a field to the doorbell.
 */
#ifndef BB_BF_COPY_H
#define BB_BF_COPY_H

#include "bb_sq_ring.h"

/* Copies one 64-byte block to a register in ascending order. */
typedef void bb_bf_block(volatile uint64_t *reg, const uint8_t *block);

/* Returns the 8-byte word @i of a block. */
static inline uint64_t
bb_bf_word(const uint8_t *block, uint32_t i)
{
	uint64_t w;

	memcpy(&w, block + i * sizeof(w), sizeof(w));
	return w;
}

static inline void
bb_bf_block_plain(volatile uint64_t *reg, const uint8_t *block)
{
	/*
	 * The stores are in ascending order, as in libmlx5, which warns that the order matters
	 * (mlx5_bf_copy() of rdma-core's providers/mlx5/qp.c). All loads come before all stores.
	 * With loads between the stores, many CPUs would send the block in several smaller writes
	 * (Linux, __iowrite64_copy() of arm64).
	 */
	const uint64_t w0 = bb_bf_word(block, 0), w1 = bb_bf_word(block, 1);
	const uint64_t w2 = bb_bf_word(block, 2), w3 = bb_bf_word(block, 3);
	const uint64_t w4 = bb_bf_word(block, 4), w5 = bb_bf_word(block, 5);
	const uint64_t w6 = bb_bf_word(block, 6), w7 = bb_bf_word(block, 7);

	bb_uar_store64(reg, w0);
	bb_uar_store64(reg + 1, w1);
	bb_uar_store64(reg + 2, w2);
	bb_uar_store64(reg + 3, w3);
	bb_uar_store64(reg + 4, w4);
	bb_uar_store64(reg + 5, w5);
	bb_uar_store64(reg + 6, w6);
	bb_uar_store64(reg + 7, w7);
}

/*
 * Copies the last WQE, which has @blocks blocks, to the register one block at a time. The source
 * wraps at the end of the ring.
 */
static inline __attribute__((always_inline)) void
bb_bf_blocks(const struct bb_sq *sq, volatile uint64_t *reg, uint32_t blocks, bb_bf_block *block)
{
	const uint8_t *src = sq->last;
	const uint8_t *end = sq->buf + ((size_t)sq->mask + 1) * BB_WQE_BB;

	do {
		block(reg, src);
		reg += BB_WQE_BB / 8;
		src += BB_WQE_BB;
		if (src == end)
			src = sq->buf;
	} while (--blocks > 0);
}

/*
 * Value of bb_sq.ring for a queue whose register receives BlueFlame copies. @block is NULL if only
 * other queues copy to that register. Called through a pointer, which keeps this code out of the
 * inline doorbell.
 *
 * The device may still read the half of the register that was used last. So the next doorbell must
 * use the other half, even for an 8-byte store, as in libmlx5 (post_send_db() of rdma-core's
 * providers/mlx5/qp.c).
 */
static inline __attribute__((always_inline)) void
bb_bf_doorbell(struct bb_sq *sq, bb_bf_block *block)
{
	const uint64_t where = bb_sq_where(sq);
	const uint32_t built = bb_sq_rung(sq);
	const uint16_t offset = *sq->bf_offset;
	volatile uint64_t *reg;
	uint64_t head;
	uint32_t ds;

	if (bb_unlikely(built == 0))
		return;
	reg = (volatile uint64_t *)(void *)(sq->reg + offset);
	*sq->bf_offset = offset ^ sq->bf_size;
	memcpy(&head, sq->last, sizeof(head));
	ds = head >> 56 & BB_WQE_MAX_DS;
	bb_sq_record(sq, where);
	if (block != NULL && built == 1 && ds > 1 && bb_wqe_blocks(ds) * BB_WQE_BB <= sq->bf_size)
		bb_bf_blocks(sq, reg, bb_wqe_blocks(ds), block);
	else
		bb_uar_store64(reg, head);
	bb_wc_flush();
}

/*
 * The common case of bb_bf_doorbell(): one WQE of one block since the last doorbell. Returns false,
 * without any change, in all other cases.
 */
static inline __attribute__((always_inline)) bool
bb_bf_doorbell_one(struct bb_sq *sq, bb_bf_block *block)
{
	const uint64_t where = bb_sq_where(sq);
	const uint64_t next = (uint64_t)(uint32_t)sq->rung_seq + 1;
	const uint8_t *last = sq->last;
	const uint32_t ds = last[offsetof(struct bb_wqe_ctrl, qpn_ds) + 3];
	uint16_t offset;

	/*
	 * @next has 64 bits and does not wrap, so it differs from the 32-bit seq if seq has
	 * wrapped. A WQE fills exactly one block if it has two to four segments.
	 */
	if (bb_unlikely(next != (uint32_t)where || ds - 2 > 2 || !bb_queue_check_owner(sq->owner)))
		return false;
	offset = *sq->bf_offset;
	bb_sq_rung_to(sq, (uint32_t)where);
	*sq->bf_offset = offset ^ sq->bf_size;
	bb_sq_record(sq, where);
	block((volatile uint64_t *)(void *)(sq->reg + offset), last);
	bb_wc_flush();
	return true;
}

/* Returns true if the CPU, the operating system and the build support the stores of @how. */
bool bb_bf_copy_has(enum bb_bf_copy how);

/*
 * Returns the widest stores that the CPU supports and EAL allows. --force-max-simd-bitwidth limits
 * vectors; its default is 256 bits on x86. MOVDIR64B is not a vector store, so that limit does not
 * apply to it.
 *
 * @memory: the register is ordinary memory that a device on another core reads through the caches.
 * MOVDIR64B is then never returned, because it removes the cache line from the caches.
 */
enum bb_bf_copy bb_bf_copy_best(bool memory);

/*
 * Looks up an enum bb_bf_copy by its name: plain, neon, avx2, avx512 or movdir64b, in lower case.
 * Returns 0, -EINVAL for an unknown name, -ENOTSUP if the CPU or the build does not support these
 * stores, or -ERANGE if EAL does not allow vectors of that width.
 */
int bb_bf_copy_parse(const char *name, enum bb_bf_copy *how);

/* Returns the name of @how, such as "avx2". */
const char *bb_bf_copy_name(enum bb_bf_copy how);

/*
 * Returns the value of bb_sq.ring for queues that copy with @how, or NULL if the build does not
 * support these stores.
 */
void (*bb_bf_ring(enum bb_bf_copy how))(struct bb_sq *sq);

/*
 * Value of bb_sq.ring for a queue whose doorbell is 8 bytes, if other queues copy WQEs to the same
 * register.
 */
void bb_bf_ring_head(struct bb_sq *sq);

#endif
