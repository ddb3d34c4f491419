/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * BlueFlame: the doorbell functions of queues whose register takes copies of WQEs, and the choice
 * of the store instructions for a copy.
 *
 * bb_sq_ring() calls bb_sq.ring for these queues. Each kind of store has its own function, so the
 * choice adds no branch and no field to the doorbell.
 */
#ifndef BB_BF_COPY_H
#define BB_BF_COPY_H

#include "bb_sq_ring.h"

/* Copies one block to a register in ascending order. */
typedef void bb_bf_block(volatile uint64_t *reg, const uint8_t *block);

/* Returns word @i of a block. */
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
	 * Stores in ascending order, as in libmlx5, which warns that the order matters
	 * (mlx5_bf_copy() of rdma-core's providers/mlx5/qp.c). All loads come before all stores:
	 * with loads in between, many cores send the parts one by one (Linux, __iowrite64_copy() of
	 * arm64).
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
 * Copies the last WQE, @blocks long, to the register block by block. The source wraps at the end of
 * the ring.
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
 * bb_sq.ring for a queue whose register takes copies. @block is NULL if only other queues copy to
 * it. Called through a pointer, so that programs need not inline it at each doorbell.
 *
 * The device may still read the half that was used last. So the next user of the register takes the
 * other half, also for an 8-byte store, as libmlx5 does (post_send_db() of rdma-core's
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

/* Returns true if the CPU, the operating system and the build support the stores of @how. */
bool bb_bf_copy_has(enum bb_bf_copy how);

/*
 * Returns the widest stores that the CPU has and EAL allows. --force-max-simd-bitwidth limits
 * vectors; its default is 256 bits on x86. MOVDIR64B is not a vector store.
 *
 * @memory: the register is ordinary memory, which a device on another core reads through the
 * caches. MOVDIR64B is not chosen then, because it removes the line from the caches.
 */
enum bb_bf_copy bb_bf_copy_best(bool memory);

/*
 * Looks up a kind by its name: plain, neon, avx2, avx512 or movdir64b, in lower case.
 * Returns 0, -EINVAL for an unknown name, -ENOTSUP if the CPU or the build does not have it, or
 * -ERANGE if EAL allows no vectors of that width.
 */
int bb_bf_copy_parse(const char *name, enum bb_bf_copy *how);

/* Returns the name of a kind. */
const char *bb_bf_copy_name(enum bb_bf_copy how);

/* Returns bb_sq.ring for queues that copy with @how, or NULL if the build does not have it. */
void (*bb_bf_ring(enum bb_bf_copy how))(struct bb_sq *sq);

/* bb_sq.ring for a queue that does not copy, but whose register other queues copy to. */
void bb_bf_ring_head(struct bb_sq *sq);

#endif
