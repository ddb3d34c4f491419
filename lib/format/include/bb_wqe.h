/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * mlx5 work queue entries, as the device reads them.
 *
 * All fields of more than one byte are big endian. The layouts are those of rdma-core's mlx5dv.h
 * (struct mlx5_wqe_*_seg). test/golden checks them against that header and against bytes recorded
 * from libmlx5.
 */
#ifndef BB_WQE_H
#define BB_WQE_H

#include <stdbool.h>
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

/** Converts between host order and big endian. */
static inline uint16_t
bb_be16(uint16_t v)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return __builtin_bswap16(v);
#else
	return v;
#endif
}

/** Converts between host order and big endian. */
static inline uint32_t
bb_be32(uint32_t v)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return __builtin_bswap32(v);
#else
	return v;
#endif
}

/** Converts between host order and big endian. */
static inline uint64_t
bb_be64(uint64_t v)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return __builtin_bswap64(v);
#else
	return v;
#endif
}

/** Bytes of a basic block of a send WQE, the unit of WQE indices. */
#define BB_WQE_BB 64u
/** Bytes of a segment, the unit of a WQE's size (ds). */
#define BB_WQE_SEG 16u
/** Largest number of segments in a send WQE: ds has 6 bits. */
#define BB_WQE_MAX_DS 63u
/** Largest number of segments in a READ WQE: 512 bytes (kernel: MLX5_MAX_SGE_RD). */
#define BB_WQE_READ_MAX_DS 32u

/** Send WQE opcodes (mlx5dv.h: MLX5_OPCODE_*). */
enum bb_wqe_opcode {
	BB_WQE_NOP = 0x00,
	BB_WQE_SEND_INV = 0x01,
	BB_WQE_RDMA_WRITE = 0x08,
	BB_WQE_RDMA_WRITE_IMM = 0x09,
	BB_WQE_SEND = 0x0a,
	BB_WQE_SEND_IMM = 0x0b,
	BB_WQE_RDMA_READ = 0x10,
	BB_WQE_ATOMIC_CS = 0x11,
	BB_WQE_ATOMIC_FA = 0x12,
	BB_WQE_UMR = 0x25, /**< changes a memory key: bind, layout, invalidate */
	BB_WQE_ATOMIC_MASKED_CS = 0x14,
	BB_WQE_ATOMIC_MASKED_FA = 0x15,
};

/** Returns the opmod (top byte of a control segment) of a masked atomic of 4 or 8 bytes. */
static inline uint32_t
bb_wqe_atomic_opmod(uint32_t bytes)
{
	return bytes == 8 ? 0x09u : 0x08u;
}

/** Control segment, byte 11: completion, solicited event, fence. */
enum bb_wqe_fm_ce_se {
	BB_WQE_SE = 1 << 1,       /**< solicited event */
	BB_WQE_CE_CQE = 2 << 2,   /**< write a CQE on success too */
	BB_WQE_FM_SMALL = 1 << 5, /**< small fence: after a UMR */
	BB_WQE_FM_FENCE = 4 << 5, /**< wait for earlier READs and atomics */
};

/** Control segment: the first segment of every send WQE. */
struct bb_wqe_ctrl {
	uint32_t opmod_idx_opcode; /**< opmod<<24 | block index<<8 | opcode */
	uint32_t qpn_ds;           /**< QP number<<8 | ds */
	uint8_t signature;
	uint8_t rsvd[2];
	uint8_t fm_ce_se; /**< enum bb_wqe_fm_ce_se */
	uint32_t imm;     /**< immediate data in network order */
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

/** Address vector: the three segments that follow the control segment on a UD queue. */
struct bb_wqe_av {
	uint32_t qkey;
	uint32_t rsvd4;
	uint32_t dest_qpn; /**< BB_WQE_EXT_AV | QP number */
	uint8_t rate_sl;   /**< rate<<4 | SL; Ethernet: rate<<4 | priority<<1 */
	uint8_t fl_mlid;   /**< low bits of the source LID */
	uint16_t rlid;     /**< destination LID; RoCE v2: UDP source port */
	uint8_t rsvd16[4];
	uint8_t rmac[6];
	uint8_t tclass;
	uint8_t hop_limit;
	uint32_t grh_gid_fl; /**< GRH (InfiniBand only)<<30 | source GID index<<20 | flow label */
	uint8_t rgid[16];
};
BB_STATIC_ASSERT(sizeof(struct bb_wqe_av) == 48, "address vector");
BB_STATIC_ASSERT(offsetof(struct bb_wqe_av, rmac) == 20, "address vector");
BB_STATIC_ASSERT(offsetof(struct bb_wqe_av, rgid) == 32, "address vector");
/** The address vector has all 48 bytes, not only the first 16. */
#define BB_WQE_EXT_AV 0x80000000u
/** Bit of @ref bb_wqe_av grh_gid_fl. */
#define BB_WQE_AV_GRH (1u << 30)

/** Atomic segment. A masked 8-byte CMP_SWAP has a second one with the masks. */
struct bb_wqe_atomic {
	uint64_t swap_add;
	uint64_t compare; /**< not read for FETCH_ADD; field boundaries for a masked FETCH_ADD */
};
BB_STATIC_ASSERT(sizeof(struct bb_wqe_atomic) == 16, "atomic segment");

/** Atomic segment of a 4-byte masked atomic. */
struct bb_wqe_atomic4 {
	uint32_t swap_add;
	uint32_t compare;      /**< FETCH_ADD: field boundaries */
	uint32_t swap_mask;    /**< CMP_SWAP only */
	uint32_t compare_mask; /**< CMP_SWAP only */
};
BB_STATIC_ASSERT(sizeof(struct bb_wqe_atomic4) == 16, "atomic segment");

/** Pointer data segment, in send and receive WQEs. A byte count of 0 means 2^31. */
struct bb_wqe_data {
	uint32_t byte_count;
	uint32_t lkey;
	uint64_t addr;
};
BB_STATIC_ASSERT(sizeof(struct bb_wqe_data) == 16, "data segment");

/** Marks the end of a receive WQE's scatter list that is not full. */
#define BB_WQE_INVALID_LKEY 0x100u
/** Marks an inline segment: the data follows its 4-byte header, padded to 16. */
#define BB_WQE_INLINE 0x80000000u
/** Longest piece of one pointer segment, in bytes. */
#define BB_WQE_MAX_SGE_LEN 0x80000000u

/** Returns the segments of an inline piece of @p len bytes, 0 if it is empty. */
static inline uint32_t
bb_wqe_inline_ds(uint32_t len)
{
	return len == 0 ? 0 : (len + 4 + BB_WQE_SEG - 1) / BB_WQE_SEG;
}

/** Returns the basic blocks of a WQE of @p ds segments. */
static inline uint32_t
bb_wqe_blocks(uint32_t ds)
{
	return (ds + 3) / 4;
}

/** UMR control segment: the change to the key that the control segment names. */
struct bb_wqe_umr {
	uint8_t flags; /**< enum bb_wqe_umr_flags */
	uint8_t rsvd0[3];
	uint16_t xlt_octowords; /**< 16-byte units of translations after the mkey segment */
	uint16_t xlt_offset;    /**< first of the key's units that changes */
	uint64_t mkey_mask;     /**< enum bb_wqe_mkey_mask: valid fields of the mkey segment */
	uint8_t rsvd1[32];
};
BB_STATIC_ASSERT(sizeof(struct bb_wqe_umr) == 48, "UMR control segment");
BB_STATIC_ASSERT(offsetof(struct bb_wqe_umr, mkey_mask) == 8, "UMR control segment");

/** UMR control segment, byte 0 (mlx5dv.h: MLX5_WQE_UMR_CTRL_FLAG_*; kernel: MLX5_UMR_*). */
enum bb_wqe_umr_flags {
	BB_UMR_CHECK_QPN = 1 << 3,  /**< fail if another QP bound the key */
	BB_UMR_XLT_OFFSET = 1 << 4, /**< xlt_offset is valid */
	BB_UMR_CHECK_FREE = 1 << 5, /**< fail if the key is in use */
	BB_UMR_CHECK_USED = 2 << 5, /**< fail if the key is free */
	BB_UMR_INLINE = 1 << 7,     /**< the translations are in the WQE */
};

/** Fields of an mkey segment (mlx5dv.h: MLX5_WQE_UMR_CTRL_MKEY_MASK_*). */
enum bb_wqe_mkey_mask {
	BB_MKEY_MASK_LEN = 1 << 0,
	BB_MKEY_MASK_START_ADDR = 1 << 6,
	BB_MKEY_MASK_KEY = 1 << 13, /**< low byte of the key */
	BB_MKEY_MASK_QPN = 1 << 14,
	BB_MKEY_MASK_LW = 1 << 18,
	BB_MKEY_MASK_RR = 1 << 19,
	BB_MKEY_MASK_RW = 1 << 20,
	BB_MKEY_MASK_A = 1 << 21,
	BB_MKEY_MASK_FREE = 1 << 29,
};
/** The four access rights. */
#define BB_MKEY_MASK_ACCESS (BB_MKEY_MASK_LW | BB_MKEY_MASK_RR | BB_MKEY_MASK_RW | BB_MKEY_MASK_A)

/** Memory key segment of a UMR WQE. The device reads only the fields in the mask. */
struct bb_wqe_mkey {
	uint8_t free; /**< BB_MKEY_FREE or 0 */
	uint8_t rsvd0;
	uint8_t access; /**< enum bb_wqe_mkey_access */
	uint8_t sf;
	uint32_t qpn_key; /**< QP number<<8 | low byte of the key */
	uint32_t rsvd1;
	uint32_t flags_pd;
	uint64_t start_addr;
	uint64_t len;
	uint32_t bsf_octowords;
	uint32_t rsvd2[4];
	uint32_t xlt_octowords;
	uint8_t rsvd3[3];
	uint8_t log_page_size;
	uint32_t rsvd4;
};
BB_STATIC_ASSERT(sizeof(struct bb_wqe_mkey) == 64, "mkey segment");
BB_STATIC_ASSERT(offsetof(struct bb_wqe_mkey, start_addr) == 16, "mkey segment");

/** The key is free: no access is allowed. */
#define BB_MKEY_FREE (1 << 6)
/** QP number of a key that is not bound to one QP. */
#define BB_MKEY_ANY_QP 0xffffffu

/** Access rights in an mkey segment (mlx5dv.h: MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_*). */
enum bb_wqe_mkey_access {
	BB_MKEY_LR = 1 << 2,
	BB_MKEY_LW = 1 << 3,
	BB_MKEY_RR = 1 << 4,
	BB_MKEY_RW = 1 << 5,
	BB_MKEY_A = 1 << 6,
};

/** Head of an interleaved layout, followed by num_entries struct bb_wqe_repeat_entry. */
struct bb_wqe_repeat {
	uint32_t byte_count; /**< total bytes of one repetition of all entries */
	uint32_t op;         /**< BB_WQE_REPEAT_OP, at the place of a pointer segment's key */
	uint32_t repeat_count;
	uint16_t rsvd;
	uint16_t num_entries;
};
BB_STATIC_ASSERT(sizeof(struct bb_wqe_repeat) == 16, "repeat block");

/** Marks a repeat block; never a valid key. */
#define BB_WQE_REPEAT_OP 0x400u

/** One entry of an interleaved layout: blocks that are accessed in turn with the other entries'. */
struct bb_wqe_repeat_entry {
	uint16_t stride; /**< bytes from the start of one block to the next */
	uint16_t byte_count;
	uint32_t lkey;
	uint64_t addr; /**< address of its first block */
};
BB_STATIC_ASSERT(sizeof(struct bb_wqe_repeat_entry) == 16, "repeat entry");

/** Segments of a UMR WQE before its translations: control, UMR, mkey. */
#define BB_WQE_UMR_DS 8u
/** Translations are padded to multiples of this many octowords: 64 bytes. */
#define BB_WQE_XLT_ALIGN 4u

/**
 * Writes a send WQE as readable text into @p buf, always terminated. Never reads outside the ring,
 * whatever the WQE contains.
 *
 * @param ring first byte of the ring
 * @param blocks its size in blocks, a power of two
 * @param idx block index of the WQE
 * @param ud the WQE is of a UD queue pair and has an address vector
 * @return length of the whole text, as snprintf().
 */
int bb_wqe_dump(char *buf, size_t size, const void *ring, uint32_t blocks, uint16_t idx, bool ud);

/** Writes a receive WQE of @p stride bytes as readable text, as bb_wqe_dump() does. */
int bb_recv_wqe_dump(char *buf, size_t size, const void *wqe, uint32_t stride);

#ifdef __cplusplus
}
#endif

#endif
