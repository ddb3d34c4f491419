/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Operations and flags that each type of queue pair supports. The tables are those of man
 * ibv_post_send.
 *
 * bb_qp_post_list() checks every request against these tables. The functions of bb_post.h refuse
 * an operation that the QP's type does not support. They pass FENCE and SOLICITED to the device
 * unchecked, because the device ignores these flags where they have no meaning, as with libmlx5.
 */
#ifndef BB_OP_H
#define BB_OP_H

#include "bb_wqe.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Types of queue pairs. */
enum bb_qp_type {
	BB_QPT_RC, /**< reliable connection */
	BB_QPT_UC, /**< unreliable connection: no acknowledgements, no READs, no atomics */
	BB_QPT_UD, /**< unreliable datagram: SENDs of at most one MTU to any UD queue pair */
};

/** Flags of a send request, to be or-ed (man ibv_post_send: send_flags). */
enum bb_send_flags {
	BB_SEND_SOLICITED = BB_WQE_SE,    /**< request a solicited event at the receiver */
	BB_SEND_SIGNALED = BB_WQE_CE_CQE, /**< report a completion also on success */
	BB_SEND_FENCE = BB_WQE_FM_FENCE,  /**< start after earlier READs and atomics complete */
	/**
	 * Start only after an earlier change of a memory key has taken effect. The library sets
	 * this flag on the request after such a change. Callers may set it on any request without
	 * BB_SEND_FENCE, which includes it. Do not combine both: no WQE has the resulting bits.
	 */
	BB_SEND_SMALL_FENCE = BB_WQE_FM_SMALL,
	/**
	 * Flag of struct bb_send_wr: the data is copied when the request is posted. The posts of
	 * bb_post.h do not support it: call the function *_inline() instead.
	 */
	BB_SEND_INLINE = 1 << 8,
};

/**
 * True if @p flags has INLINE, which a post of registered memory rejects. Optimized code checks
 * only constant flags, because a check of others costs an instruction per post.
 */
#ifdef __OPTIMIZE__
#define BB_SEND_INLINE_MISUSED(flags) (__builtin_constant_p(flags) && ((flags)&BB_SEND_INLINE) != 0)
#else
#define BB_SEND_INLINE_MISUSED(flags) (((flags)&BB_SEND_INLINE) != 0)
#endif

/** Reasons why a request is refused permanently: to poll and try again would not help. */
enum bb_refusal {
	BB_REFUSED_STATE,        /**< -ENOTCONN: the QP's state does not allow posts */
	BB_REFUSED_OWNER,        /**< -EPERM: the calling thread does not own the queue */
	BB_REFUSED_MAX_SGE,      /**< -EINVAL: more SGEs than max_sge */
	BB_REFUSED_SGE_LEN,      /**< -EINVAL: an SGE of more than 2^31 bytes */
	BB_REFUSED_MAX_INLINE,   /**< -EINVAL: more inline bytes than max_inline */
	BB_REFUSED_ATOMIC_LEN,   /**< -EINVAL: the length of the local SGE is not the size of the
				    atomic */
	BB_REFUSED_ATOMIC_ALIGN, /**< -EINVAL: the remote address is not a multiple of the atomic's
				    size */
	BB_REFUSED_NO_RQ,        /**< -EINVAL: the QP uses a shared receive queue, or none */
	BB_REFUSED_LKEY,         /**< -EFAULT: the memory of an mbuf segment is not registered */
	BB_REFUSED_MKEY_PIECES,  /**< -EINVAL: a key's layout has more SGEs than fit into a WQE */
	BB_REFUSED_MKEY_BLOCK,   /**< -EINVAL: a range or block that the layout of a key cannot
				    describe */
	BB_REFUSED_OPCODE,       /**< -EINVAL: the QP's type does not support the operation */
	BB_REFUSED_FLAGS,        /**< -EINVAL: a flag that the operation does not support */
	BB_REFUSED_AH,       /**< -EINVAL: the address handle is missing or belongs to another PD */
	BB_REFUSED_WQE_SIZE, /**< -EINVAL: the WQE needs more slots than the queue has */
	BB_REFUSED_UNSUPPORTED, /**< -ENOTSUP: the device does not support the operation */
};

/**
 * Operations of struct bb_send_wr. Values are those of IBV_WR_*; for masked atomics, those of the
 * kernel's enum ib_wr_opcode.
 */
enum bb_wr_opcode {
	BB_WR_RDMA_WRITE = 0,
	BB_WR_RDMA_WRITE_WITH_IMM = 1,
	BB_WR_SEND = 2,
	BB_WR_SEND_WITH_IMM = 3,
	BB_WR_RDMA_READ = 4,
	BB_WR_ATOMIC_CMP_AND_SWP = 5,
	BB_WR_ATOMIC_FETCH_AND_ADD = 6,
	BB_WR_LOCAL_INV = 7,
	BB_WR_BIND_MW = 8,
	BB_WR_SEND_WITH_INV = 9,
	BB_WR_TSO = 10, /**< supported by raw Ethernet queues only; use DPDK's mlx5 PMD */
	BB_WR_DRIVER1 = 11,
	BB_WR_MASKED_CMP_AND_SWP = 12,
	BB_WR_MASKED_FETCH_AND_ADD = 13,
	BB_WR_FLUSH = 14,        /**< not supported by mlx5: rdma-core has it for rxe only */
	BB_WR_ATOMIC_WRITE = 15, /**< not supported by mlx5: rdma-core has it for rxe only */
	BB_WR_OPCODES,
};

/** Operation of a completion. */
enum bb_wc_opcode {
	BB_WC_SEND,
	BB_WC_RDMA_WRITE,
	BB_WC_RDMA_READ,
	BB_WC_CMP_SWAP,  /**< CMP_SWAP or masked CMP_SWAP */
	BB_WC_FETCH_ADD, /**< FETCH_ADD or masked FETCH_ADD */
	BB_WC_NOP,
	BB_WC_RECV,          /**< receive */
	BB_WC_RECV_RDMA_IMM, /**< receive without data, consumed by an RDMA_WRITE_WITH_IMM */
	BB_WC_LOCAL_INV,     /**< bb_post_local_inv() */
	BB_WC_BIND_MW,       /**< bb_mw_bind(), bb_post_bind_mw() */
	BB_WC_MKEY,          /**< bb_post_mkey_list(), bb_post_mkey_interleaved() */
};

/**
 * Operations that a UMR WQE performs, as recorded in struct bb_sq_wqe. The values are opcodes of
 * older devices.
 */
enum bb_sq_umr_kind {
	BB_SQ_BIND_MW = 0x18,
	BB_SQ_MKEY = 0x19,
	BB_SQ_LOCAL_INV = 0x1b,
};

/** Returns the completion opcode of a send. @p wqe_opcode is the opcode in struct bb_sq_wqe. */
static inline uint8_t
bb_wc_opcode_of(uint8_t wqe_opcode)
{
	switch (wqe_opcode) {
	case BB_WQE_RDMA_WRITE:
	case BB_WQE_RDMA_WRITE_IMM:
		return BB_WC_RDMA_WRITE;
	case BB_WQE_RDMA_READ:
		return BB_WC_RDMA_READ;
	case BB_WQE_ATOMIC_CS:
	case BB_WQE_ATOMIC_MASKED_CS:
		return BB_WC_CMP_SWAP;
	case BB_WQE_ATOMIC_FA:
	case BB_WQE_ATOMIC_MASKED_FA:
		return BB_WC_FETCH_ADD;
	case BB_WQE_NOP:
		return BB_WC_NOP;
	case BB_SQ_LOCAL_INV:
		return BB_WC_LOCAL_INV;
	case BB_SQ_BIND_MW:
		return BB_WC_BIND_MW;
	case BB_SQ_MKEY:
		return BB_WC_MKEY;
	default:
		return BB_WC_SEND;
	}
}

/**
 * Checks whether a QP of type @p type supports operation @p opcode with @p flags.
 * @return 0; -EINVAL if man ibv_post_send does not allow it, or @p flags has both fences; -ENOTSUP
 * if no device that Bluebell drives supports it on any queue pair.
 */
int bb_wr_check(enum bb_qp_type type, enum bb_wr_opcode opcode, uint32_t flags);

/** Returns the WQE opcode of operation @p opcode, for which bb_wr_check() returned 0. */
uint8_t bb_wr_wqe_opcode(enum bb_wr_opcode opcode);

/** Returns the name of an operation, such as "RDMA_WRITE", or "?" if it is unknown. */
const char *bb_wr_opcode_name(enum bb_wr_opcode opcode);

/** Returns the name of a QP type, such as "UD", or "?" if it is unknown. */
const char *bb_qp_type_name(enum bb_qp_type type);

#ifdef __cplusplus
}
#endif

#endif
