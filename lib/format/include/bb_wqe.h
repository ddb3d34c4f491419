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

/** static_assert for both C and C++. */
#ifdef __cplusplus
#define BB_STATIC_ASSERT(cond, msg) static_assert(cond, msg)
#else
#define BB_STATIC_ASSERT(cond, msg) _Static_assert(cond, msg)
#endif

/** Converts a 16-bit value from host order to big endian, or back. */
static inline uint16_t
bb_be16(uint16_t v)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return __builtin_bswap16(v);
#else
	return v;
#endif
}

/** Converts a 32-bit value from host order to big endian, or back. */
static inline uint32_t
bb_be32(uint32_t v)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return __builtin_bswap32(v);
#else
	return v;
#endif
}

/** Converts a 64-bit value from host order to big endian, or back. */
static inline uint64_t
bb_be64(uint64_t v)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return __builtin_bswap64(v);
#else
	return v;
#endif
}

/** Bytes of a basic block. A WQE index counts such blocks. */
#define BB_WQE_BB 64u
/** Bytes of a segment. The size of a WQE (field ds) is counted in segments. */
#define BB_WQE_SEG 16u
/** Largest number of segments in a send WQE, because ds has 6 bits. */
#define BB_WQE_MAX_DS 63u
/** Largest number of segments in a READ WQE, which may have 512 bytes (kernel: MLX5_MAX_SGE_RD). */
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
	BB_WQE_UMR = 0x25, /**< changes a memory key: bind, layout or invalidate */
	BB_WQE_ATOMIC_MASKED_CS = 0x14,
	BB_WQE_ATOMIC_MASKED_FA = 0x15,
};

/** Returns the opmod, the top byte of a control segment, for a masked atomic of 4 or 8 bytes. */
static inline uint32_t
bb_wqe_atomic_opmod(uint32_t bytes)
{
	return bytes == 8 ? 0x09u : 0x08u;
}

/** Bits of byte 11 of the control segment: completion, solicited event and fence. */
enum bb_wqe_fm_ce_se {
	BB_WQE_SE = 1 << 1,       /**< request a solicited event at the receiver */
	BB_WQE_CE_CQE = 2 << 2,   /**< write a CQE also on success */
	BB_WQE_FM_SMALL = 1 << 5, /**< small fence: start only after earlier UMRs */
	BB_WQE_FM_FENCE = 4 << 5, /**< start only after earlier READs and atomics */
};

/** Control segment: the first segment of every send WQE. */
struct bb_wqe_ctrl {
	uint32_t opmod_idx_opcode; /**< opmod << 24 | block index << 8 | opcode */
	uint32_t qpn_ds;           /**< QP number << 8 | ds */
	uint8_t signature;
	uint8_t rsvd[2];
	uint8_t fm_ce_se; /**< enum bb_wqe_fm_ce_se */
	uint32_t imm;     /**< immediate data in network order */
};
BB_STATIC_ASSERT(sizeof(struct bb_wqe_ctrl) == 16, "ctrl segment");
BB_STATIC_ASSERT(offsetof(struct bb_wqe_ctrl, fm_ce_se) == 11, "ctrl segment");
BB_STATIC_ASSERT(offsetof(struct bb_wqe_ctrl, imm) == 12, "ctrl segment");

/** Remote address segment, the second segment of an RDMA or atomic WQE. */
struct bb_wqe_raddr {
	uint64_t raddr;
	uint32_t rkey;
	uint32_t rsvd;
};
BB_STATIC_ASSERT(sizeof(struct bb_wqe_raddr) == 16, "raddr segment");

/** Address vector: three segments after the control segment of a UD send WQE. */
struct bb_wqe_av {
	uint32_t qkey;
	uint32_t rsvd4;
	uint32_t dest_qpn; /**< BB_WQE_EXT_AV | QP number */
	uint8_t rate_sl;   /**< rate << 4 | service level; on Ethernet rate << 4 | priority << 1 */
	uint8_t fl_mlid;   /**< low bits of the source LID */
	uint16_t rlid;     /**< destination LID on InfiniBand; UDP source port on RoCE v2 */
	uint8_t rsvd16[4];
	uint8_t rmac[6];
	uint8_t tclass;
	uint8_t hop_limit;
	uint32_t grh_gid_fl; /**< BB_WQE_AV_GRH (InfiniBand only) | source GID index << 20 | flow
				label */
	uint8_t rgid[16];
};
BB_STATIC_ASSERT(sizeof(struct bb_wqe_av) == 48, "address vector");
BB_STATIC_ASSERT(offsetof(struct bb_wqe_av, rmac) == 20, "address vector");
BB_STATIC_ASSERT(offsetof(struct bb_wqe_av, rgid) == 32, "address vector");
/** Bit of dest_qpn (see @ref bb_wqe_av). If set, the address vector has all 48 bytes, else 16. */
#define BB_WQE_EXT_AV 0x80000000u
/** Bit of grh_gid_fl (see @ref bb_wqe_av). If set, the packet has a GRH. */
#define BB_WQE_AV_GRH (1u << 30)

/**
 * Atomic segment. A masked 8-byte CMP_SWAP has a second atomic segment, which contains the masks.
 */
struct bb_wqe_atomic {
	uint64_t swap_add;
	uint64_t compare; /**< compare value of CMP_SWAP; field boundaries of a masked FETCH_ADD;
			     ignored for FETCH_ADD */
};
BB_STATIC_ASSERT(sizeof(struct bb_wqe_atomic) == 16, "atomic segment");

/** Atomic segment of a 4-byte masked atomic. */
struct bb_wqe_atomic4 {
	uint32_t swap_add;
	uint32_t compare;      /**< compare value of CMP_SWAP, or field boundaries of FETCH_ADD */
	uint32_t swap_mask;    /**< swap mask of CMP_SWAP; ignored for FETCH_ADD */
	uint32_t compare_mask; /**< compare mask of CMP_SWAP; ignored for FETCH_ADD */
};
BB_STATIC_ASSERT(sizeof(struct bb_wqe_atomic4) == 16, "atomic segment");

/** Data segment: an SGE of a send or receive WQE. A byte count of 0 means 2^31. */
struct bb_wqe_data {
	uint32_t byte_count;
	uint32_t lkey;
	uint64_t addr;
};
BB_STATIC_ASSERT(sizeof(struct bb_wqe_data) == 16, "data segment");

/** lkey that marks the end of a receive WQE's scatter list with fewer SGEs than fit. */
#define BB_WQE_INVALID_LKEY 0x100u
/**
 * Bit of the byte count that marks an inline segment. The data follows its 4-byte header and is
 * padded to a multiple of 16 bytes, header included.
 */
#define BB_WQE_INLINE 0x80000000u
/** Largest length of one SGE, in bytes. */
#define BB_WQE_MAX_SGE_LEN 0x80000000u

/** Returns the number of segments that @p len bytes of inline data need, 0 for no data. */
static inline uint32_t
bb_wqe_inline_ds(uint32_t len)
{
	return len == 0 ? 0 : (len + 4 + BB_WQE_SEG - 1) / BB_WQE_SEG;
}

/** Returns the number of basic blocks of a WQE of @p ds segments. */
static inline uint32_t
bb_wqe_blocks(uint32_t ds)
{
	return (ds + 3) / 4;
}

/** UMR control segment: describes how to change the key whose number is in the control segment. */
struct bb_wqe_umr {
	uint8_t flags; /**< enum bb_wqe_umr_flags */
	uint8_t rsvd0[3];
	uint16_t xlt_octowords; /**< translation entries that follow the mkey segment, in units of
				   16 bytes */
	uint16_t xlt_offset;    /**< position in the key's translation table of the first entry that
				   changes, in units of 16 bytes */
	uint64_t mkey_mask;     /**< enum bb_wqe_mkey_mask: valid fields of the mkey segment */
	uint8_t rsvd1[32];
};
BB_STATIC_ASSERT(sizeof(struct bb_wqe_umr) == 48, "UMR control segment");
BB_STATIC_ASSERT(offsetof(struct bb_wqe_umr, mkey_mask) == 8, "UMR control segment");

/** UMR control segment, byte 0 (mlx5dv.h: MLX5_WQE_UMR_CTRL_FLAG_*; kernel: MLX5_UMR_*). */
enum bb_wqe_umr_flags {
	BB_UMR_CHECK_QPN = 1 << 3,  /**< fail if the key is bound to another QP */
	BB_UMR_XLT_OFFSET = 1 << 4, /**< xlt_offset is valid */
	BB_UMR_CHECK_FREE = 1 << 5, /**< fail if the key is in use */
	BB_UMR_CHECK_USED = 2 << 5, /**< fail if the key is free */
	BB_UMR_INLINE = 1 << 7,     /**< the translation entries are in the WQE */
};

/** Fields of an mkey segment that a UMR changes (mlx5dv.h: MLX5_WQE_UMR_CTRL_MKEY_MASK_*). */
enum bb_wqe_mkey_mask {
	BB_MKEY_MASK_LEN = 1 << 0,
	BB_MKEY_MASK_START_ADDR = 1 << 6,
	BB_MKEY_MASK_KEY = 1 << 13, /**< low byte of the key number */
	BB_MKEY_MASK_QPN = 1 << 14,
	BB_MKEY_MASK_LW = 1 << 18,
	BB_MKEY_MASK_RR = 1 << 19,
	BB_MKEY_MASK_RW = 1 << 20,
	BB_MKEY_MASK_A = 1 << 21,
	BB_MKEY_MASK_FREE = 1 << 29,
};
/** Mask bits of all access rights that a UMR can change. */
#define BB_MKEY_MASK_ACCESS (BB_MKEY_MASK_LW | BB_MKEY_MASK_RR | BB_MKEY_MASK_RW | BB_MKEY_MASK_A)

/**
 * Mkey segment of a UMR WQE: new attributes of a memory key. The device reads only the fields that
 * mkey_mask selects.
 */
struct bb_wqe_mkey {
	uint8_t free; /**< BB_MKEY_FREE or 0 */
	uint8_t rsvd0;
	uint8_t access; /**< enum bb_wqe_mkey_access */
	uint8_t sf;
	uint32_t qpn_key; /**< QP number << 8 | low byte of the key number */
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

/** Value of free in struct bb_wqe_mkey: the key is free, so no access through it is allowed. */
#define BB_MKEY_FREE (1 << 6)
/** QP number in an mkey segment if the key is not bound to one QP. */
#define BB_MKEY_ANY_QP 0xffffffu

/** Access rights in an mkey segment (mlx5dv.h: MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_*). */
enum bb_wqe_mkey_access {
	BB_MKEY_LR = 1 << 2,
	BB_MKEY_LW = 1 << 3,
	BB_MKEY_RR = 1 << 4,
	BB_MKEY_RW = 1 << 5,
	BB_MKEY_A = 1 << 6,
};

/**
 * Header of an interleaved layout, which is a pattern of memory blocks that a memory key covers,
 * repeated repeat_count times. It is followed by num_entries of struct bb_wqe_repeat_entry.
 */
struct bb_wqe_repeat {
	uint32_t byte_count; /**< total bytes of one repetition of all entries */
	uint32_t op;         /**< BB_WQE_REPEAT_OP; a data segment has its lkey at this position */
	uint32_t repeat_count;
	uint16_t rsvd;
	uint16_t num_entries;
};
BB_STATIC_ASSERT(sizeof(struct bb_wqe_repeat) == 16, "repeat block");

/** Marks the header of an interleaved layout; never a valid key. */
#define BB_WQE_REPEAT_OP 0x400u

/**
 * One entry of an interleaved layout: equal blocks of memory. The layout takes one block of each
 * entry in turn.
 */
struct bb_wqe_repeat_entry {
	uint16_t stride; /**< bytes from the start of one block of this entry to the start of the
			    next */
	uint16_t byte_count;
	uint32_t lkey;
	uint64_t addr; /**< address of the first block of this entry */
};
BB_STATIC_ASSERT(sizeof(struct bb_wqe_repeat_entry) == 16, "repeat entry");

/** Segments of a UMR WQE before its translation entries: control, UMR control and mkey segment. */
#define BB_WQE_UMR_DS 8u
/**
 * Translation entries are padded to a multiple of this number of 16-byte units, that is, to 64
 * bytes.
 */
#define BB_WQE_XLT_ALIGN 4u

/**
 * Writes a send WQE as readable text into @p buf. The text is always terminated by a zero byte.
 * The function never reads outside the ring, whatever the WQE contains.
 *
 * @param ring first byte of the ring
 * @param blocks size of the ring in blocks, a power of two
 * @param idx block index of the WQE
 * @param ud true if the WQE belongs to a UD queue pair and so has an address vector
 * @return length of the whole text, even if it did not fit, as snprintf().
 */
int bb_wqe_dump(char *buf, size_t size, const void *ring, uint32_t blocks, uint16_t idx, bool ud);

/** Writes a receive WQE of @p stride bytes as readable text, as bb_wqe_dump() does. */
int bb_recv_wqe_dump(char *buf, size_t size, const void *wqe, uint32_t stride);

#ifdef __cplusplus
}
#endif

#endif
