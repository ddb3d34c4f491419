/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * mlx5 completion queue entries, as the device writes them.
 *
 * Fields of more than one byte are big endian. Layout: rdma-core's mlx5dv.h
 * (struct mlx5_cqe64, struct mlx5_err_cqe).
 */
#ifndef BB_CQE_H
#define BB_CQE_H

#include <stdint.h>
#include <string.h>

#include "bb_wqe.h"

#ifdef __cplusplus
extern "C" {
#endif

/** CQE opcodes: the upper four bits of op_own (mlx5dv.h: MLX5_CQE_*). */
enum bb_cqe_opcode {
	BB_CQE_REQ = 0,
	BB_CQE_RESP_WR_IMM = 1,
	BB_CQE_RESP_SEND = 2,
	BB_CQE_RESP_SEND_IMM = 3,
	BB_CQE_RESP_SEND_INV = 4,
	BB_CQE_RESIZE = 5, /**< last CQE of a ring that MODIFY_CQ replaced */
	BB_CQE_REQ_ERR = 13,
	BB_CQE_RESP_ERR = 14,
	BB_CQE_INVALID = 15,
};

/**
 * Format bits of op_own in a title, which is the first CQE of a block of compressed CQEs
 * (MLX5_COMPRESSED).
 */
#define BB_CQE_COMPRESSED (3u << 2)

/** Bit of op_own: the sender requested a solicited event. */
#define BB_CQE_SE 2u

/** Initial op_own of every CQE: an invalid CQE, which the device owns. */
#define BB_CQE_OP_OWN_INIT 0xf1

/** Error syndromes (mlx5dv.h: MLX5_CQE_SYNDROME_*). */
enum bb_cqe_syndrome {
	BB_SYN_LOCAL_LENGTH = 0x01,
	BB_SYN_LOCAL_QP_OP = 0x02,
	BB_SYN_LOCAL_PROT = 0x04,
	BB_SYN_WR_FLUSH = 0x05,
	BB_SYN_MW_BIND = 0x06,
	BB_SYN_BAD_RESP = 0x10,
	BB_SYN_LOCAL_ACCESS = 0x11,
	BB_SYN_REMOTE_INVAL_REQ = 0x12,
	BB_SYN_REMOTE_ACCESS = 0x13,
	BB_SYN_REMOTE_OP = 0x14,
	BB_SYN_RETRY_EXC = 0x15,
	BB_SYN_RNR_RETRY_EXC = 0x16,
	BB_SYN_REMOTE_ABORTED = 0x22,
};

/**
 * Payload inside a CQE, as encoded in bits 2 and 3 of op_own (rdma-core: MLX5_INLINE_SCATTER_*).
 */
enum bb_cqe_format {
	BB_CQE_FORMAT_MASK = 3 << 2,
	BB_CQE_SCATTER_32 = 1 << 2, /**< up to 32 bytes in the first half of the CQE */
	BB_CQE_SCATTER_64 = 2 << 2, /**< up to 64 bytes in the first half of a 128-byte CQE, before
				       the fields of struct bb_cqe */
};

/** A 64-byte CQE. In an error CQE, bytes 54 and 55 are the syndromes. */
struct bb_cqe {
	uint8_t rsvd0[17];
	uint8_t ml_path;
	uint8_t rsvd18[4];
	uint16_t slid;       /**< LID of the sender; valid only for UD receives on InfiniBand */
	uint32_t flags_rqpn; /**< enum bb_cqe_rqpn; valid only for UD receives */
	uint8_t rsvd28[4];
	uint32_t srqn_uidx; /**< user index of the queue in the low 24 bits */
	uint32_t imm; /**< immediate data, invalidated rkey, or P_Key index, depending on the opcode
		       */
	uint8_t rsvd40[4];
	uint32_t byte_cnt;
	uint64_t timestamp; /**< time of the completion; in an error CQE byte 54 is the vendor
			       syndrome, byte 55 the syndrome */
	uint32_t sop_qpn;   /**< opcode of the send WQE << 24 | QP number */
	uint16_t wqe_counter;
	uint8_t signature;
	uint8_t op_own; /**< opcode<<4 | format<<2 | solicited<<1 | owner */
};
BB_STATIC_ASSERT(sizeof(struct bb_cqe) == 64, "CQE");
BB_STATIC_ASSERT(offsetof(struct bb_cqe, slid) == 22, "CQE");
BB_STATIC_ASSERT(offsetof(struct bb_cqe, flags_rqpn) == 24, "CQE");
BB_STATIC_ASSERT(offsetof(struct bb_cqe, srqn_uidx) == 32, "CQE");
BB_STATIC_ASSERT(offsetof(struct bb_cqe, imm) == 36, "CQE");
BB_STATIC_ASSERT(offsetof(struct bb_cqe, byte_cnt) == 44, "CQE");
BB_STATIC_ASSERT(offsetof(struct bb_cqe, timestamp) == 48, "CQE");
BB_STATIC_ASSERT(offsetof(struct bb_cqe, sop_qpn) == 56, "CQE");
BB_STATIC_ASSERT(offsetof(struct bb_cqe, wqe_counter) == 60, "CQE");
BB_STATIC_ASSERT(offsetof(struct bb_cqe, op_own) == 63, "CQE");

/**
 * Fields of flags_rqpn, which is valid only for UD receives (mlx5dv.h, and the kernel's enum
 * mlx5_cqe_roce_l3_hdr_type).
 */
enum bb_cqe_rqpn {
	BB_CQE_RQPN_QPN = 0xffffff, /**< QP number of the sender */
	BB_CQE_RQPN_SL_SHIFT = 24,  /**< position of the service level (4 bits) on InfiniBand, or of
				       enum bb_cqe_l3 (2 bits) on Ethernet */
	BB_CQE_RQPN_GRH = 3 << 28,  /**< non-zero if the receive buffer starts with a GRH */
};

/** Network header in the first 40 bytes of a UD receive buffer on Ethernet. */
enum bb_cqe_l3 {
	BB_CQE_L3_GRH = 0,  /**< RoCE v1: a GRH */
	BB_CQE_L3_IPV6 = 1, /**< RoCE v2: an IPv6 header */
	BB_CQE_L3_IPV4 = 2, /**< RoCE v2: an IPv4 header, in the last 20 of the 40 bytes */
};

/** Offset of the vendor syndrome in an error CQE. */
#define BB_CQE_VENDOR_SYNDROME_BYTE 54
/** Offset of the syndrome in an error CQE. */
#define BB_CQE_SYNDROME_BYTE 55

/**
 * Returns the WQE counter of a CQE in the low 16 bits; the high bits hold other fields. Costs one
 * instruction less than a load of 16 bits, if the caller masks the result anyway.
 */
static inline uint32_t
bb_cqe_wqe_counter(const struct bb_cqe *cqe)
{
	uint32_t v;

	memcpy(&v, (const uint8_t *)cqe + offsetof(struct bb_cqe, wqe_counter) - 2, sizeof(v));
	return bb_be32(v);
}

/** Returns the syndrome of an error CQE. */
static inline uint8_t
bb_cqe_syndrome(const struct bb_cqe *cqe)
{
	return ((const uint8_t *)cqe)[BB_CQE_SYNDROME_BYTE];
}

/** Returns the vendor syndrome of an error CQE. */
static inline uint8_t
bb_cqe_vendor_syndrome(const struct bb_cqe *cqe)
{
	return ((const uint8_t *)cqe)[BB_CQE_VENDOR_SYNDROME_BYTE];
}

/**
 * Writes a CQE as readable text into @p buf. The text is always terminated by a zero byte.
 * @return length of the whole text, even if it did not fit, as snprintf().
 */
int bb_cqe_dump(char *buf, size_t size, const struct bb_cqe *cqe);

#ifdef __cplusplus
}
#endif

#endif
