/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * mlx5 work queue entries, as the device reads them.
 *
 * All fields of more than one byte are big endian. Layouts are those of
 * rdma-core's mlx5dv.h (struct mlx5_wqe_*_seg); test/golden holds them against
 * that header and against bytes recorded from libmlx5.
 */
#ifndef BB_WQE_H
#define BB_WQE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** static_assert in C and C++. */
#ifdef __cplusplus
#define BB_STATIC_ASSERT(cond, msg) static_assert(cond, msg)
#else
#define BB_STATIC_ASSERT(cond, msg) _Static_assert(cond, msg)
#endif

/** Host to big endian and back. */
static inline uint16_t
bb_be16(uint16_t v)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return __builtin_bswap16(v);
#else
	return v;
#endif
}

/** Host to big endian and back. */
static inline uint32_t
bb_be32(uint32_t v)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return __builtin_bswap32(v);
#else
	return v;
#endif
}

/** Host to big endian and back. */
static inline uint64_t
bb_be64(uint64_t v)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return __builtin_bswap64(v);
#else
	return v;
#endif
}

/** Bytes of a send WQE basic block; WQE indices count these. */
#define BB_WQE_BB 64u
/** Bytes of a segment; a WQE's size (ds) counts these. */
#define BB_WQE_SEG 16u
/** Largest number of segments in a send WQE: ds has 6 bits. */
#define BB_WQE_MAX_DS 63u

/** Send WQE opcodes (mlx5dv.h: MLX5_OPCODE_*). */
enum bb_wqe_opcode {
	BB_WQE_NOP = 0x00,
	BB_WQE_RDMA_WRITE = 0x08,
	BB_WQE_RDMA_WRITE_IMM = 0x09,
	BB_WQE_SEND = 0x0a,
	BB_WQE_SEND_IMM = 0x0b,
	BB_WQE_RDMA_READ = 0x10,
	BB_WQE_ATOMIC_CS = 0x11,
	BB_WQE_ATOMIC_FA = 0x12,
};

/** Control segment, byte 11: completion, solicited event, fence. */
enum bb_wqe_fm_ce_se {
	BB_WQE_SE = 1 << 1,       /**< solicited event */
	BB_WQE_CE_CQE = 2 << 2,   /**< write a CQE also on success */
	BB_WQE_FM_SMALL = 1 << 5, /**< fence small: behind a UMR */
	BB_WQE_FM_FENCE = 4 << 5, /**< wait for earlier READs and atomics */
};

/** Control segment: the first of every send WQE. */
struct bb_wqe_ctrl {
	uint32_t opmod_idx_opcode; /**< opmod<<24 | block index<<8 | opcode */
	uint32_t qpn_ds;           /**< QP number<<8 | ds */
	uint8_t signature;
	uint8_t rsvd[2];
	uint8_t fm_ce_se; /**< enum bb_wqe_fm_ce_se */
	uint32_t imm;     /**< immediate data, as it travels */
};
BB_STATIC_ASSERT(sizeof(struct bb_wqe_ctrl) == 16, "ctrl segment");
BB_STATIC_ASSERT(offsetof(struct bb_wqe_ctrl, fm_ce_se) == 11, "ctrl segment");
BB_STATIC_ASSERT(offsetof(struct bb_wqe_ctrl, imm) == 12, "ctrl segment");

/** Remote address segment of RDMA and atomic WQEs. */
struct bb_wqe_raddr {
	uint64_t raddr;
	uint32_t rkey;
	uint32_t rsvd;
};
BB_STATIC_ASSERT(sizeof(struct bb_wqe_raddr) == 16, "raddr segment");

/** Atomic segment. */
struct bb_wqe_atomic {
	uint64_t swap_add;
	uint64_t compare; /**< not read by the device for FETCH_ADD */
};
BB_STATIC_ASSERT(sizeof(struct bb_wqe_atomic) == 16, "atomic segment");

/** Pointer data segment, in send and receive WQEs. A byte count of 0 means 2^31. */
struct bb_wqe_data {
	uint32_t byte_count;
	uint32_t lkey;
	uint64_t addr;
};
BB_STATIC_ASSERT(sizeof(struct bb_wqe_data) == 16, "data segment");

/** Ends the scatter list of a receive WQE that is not full. */
#define BB_WQE_INVALID_LKEY 0x100u
/** Marks an inline segment: the data follows its 4-byte header, padded to 16. */
#define BB_WQE_INLINE 0x80000000u
/** Longest piece one pointer segment can name, in bytes. */
#define BB_WQE_MAX_SGE_LEN 0x80000000u

/** Segments that an inline piece of @p len bytes takes; 0 for an empty one. */
static inline uint32_t
bb_wqe_inline_ds(uint32_t len)
{
	return len == 0 ? 0 : (len + 4 + BB_WQE_SEG - 1) / BB_WQE_SEG;
}

/** Basic blocks that a WQE of @p ds segments takes. */
static inline uint32_t
bb_wqe_blocks(uint32_t ds)
{
	return (ds + 3) / 4;
}

/** Name of a send WQE opcode, "?" for one that is not known. */
const char *bb_wqe_opcode_name(uint8_t opcode);

/**
 * Write a readable account of a send WQE into @p buf, always terminated.
 *
 * @param ring first byte of the ring; @param blocks its size in blocks (a power
 * of two); @param idx block index of the WQE. Never reads outside the ring,
 * whatever the bytes say.
 * @return length of the whole text, as snprintf().
 */
int bb_wqe_dump(char *buf, size_t size, const void *ring, uint32_t blocks, uint16_t idx);

/** The same for a receive WQE of @p stride bytes. */
int bb_recv_wqe_dump(char *buf, size_t size, const void *wqe, uint32_t stride);

#ifdef __cplusplus
}
#endif

#endif
