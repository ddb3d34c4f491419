/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Send queue: configuration. Included by bb_sq.h.
 */
#ifndef BB_SQ_CONF_H
#define BB_SQ_CONF_H

#include <stdbool.h>
#include <stdint.h>

#include "bb_op.h"
#include "bb_segs.h"

#ifdef __cplusplus
extern "C" {
#endif

struct bb_rung;
struct bb_sq;
struct bb_sq_ops;
struct ibv_qp_ex;
struct bb_sq_wqe;

/** How a queue rings its doorbell. */
enum bb_db_mode {
	BB_DB_DOORBELL,  /**< one 8-byte store to the register */
	BB_DB_BLUEFLAME, /**< a single WQE of at least 2 segments is copied to the register in
			    64-byte blocks; otherwise an 8-byte store */
};

/**
 * Width of the stores of a BlueFlame copy. Every width copies the same bytes in ascending order.
 * Chosen when the queue is created.
 */
enum bb_bf_copy {
	BB_BF_COPY_PLAIN,     /**< 8-byte stores */
	BB_BF_COPY_NEON,      /**< Arm: pairs of 16-byte stores */
	BB_BF_COPY_AVX2,      /**< 32-byte stores */
	BB_BF_COPY_AVX512,    /**< 64-byte stores */
	BB_BF_COPY_MOVDIR64B, /**< one 64-byte store, which reaches the device as one write; 8-byte
			       * stores for longer WQEs */
	BB_BF_COPY_KINDS,     /**< number of values */
};

/** Configuration of a send queue. The caller owns the memory. */
struct bb_sq_conf {
	void *buf;              /**< ring of @ref blocks, 64-byte aligned; NULL if ops is given */
	struct bb_sq_wqe *wqes; /**< array of @ref blocks entries */
	uint32_t blocks;        /**< number of blocks, a power of two from 1 to 32768 */
	uint32_t qpn;
	uint32_t depth; /**< WQEs that may be outstanding; the ring must have room for as many WQEs
			   of the largest size */
	uint32_t max_sge;    /**< largest number of SGEs of a WQE. 0: UD WQEs have only inline data,
				other types have up to 1 SGE */
	uint32_t max_inline; /**< largest inline data of a WQE, in bytes */
	enum bb_qp_type type;
	bool signal_all;    /**< report every request, signalled or not; requires sig_every = 1 */
	uint32_t sig_every; /**< largest number of WQEs from one CQE request to the next, 1 to depth
			     */
	uint32_t *dbrec;
	void *reg;
	/**
	 * Called by bb_sq_ring() to pass WQEs to a device without dbrec and reg, which must then
	 * be NULL. The function must call bb_sq_rung().
	 */
	void (*ring)(struct bb_sq *sq);
	/**
	 * Functions of a driver whose posts build no WQEs; buf, dbrec and reg must then be NULL.
	 * NULL for a ring.
	 */
	const struct bb_sq_ops *ops;
	void *driver; /**< value of bb_sq.driver */
	/** value of bb_sq.piece; NULL if ops->write is NULL */
	void (*piece)(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t len);
	uint32_t bf_size; /**< bytes of a register half: 0, or a power of two >= 64 */
	/**
	 * Storage for the offset of the register half to use next; initially 0. All queues that
	 * ring the same register must share it, whatever their db_mode, because the halves of a
	 * register are used in turn. NULL if no other queue rings the register.
	 */
	uint16_t *bf_offset;
	enum bb_db_mode db_mode; /**< BB_DB_BLUEFLAME with a bf_size of 0 uses 8-byte stores */
	enum bb_bf_copy bf_copy; /**< valid only for BB_DB_BLUEFLAME; the CPU and the build must
				    support it */
	/**
	 * List to which each doorbell adds the queue, if the device reads the register as memory;
	 * else NULL. All queues that ring the register have the same list.
	 */
	struct bb_rung *rung;
	bool umr_no_atomic; /**< UMRs must not change the atomic access right */
	uint32_t owner;     /**< lcore id of the owner; LCORE_ID_ANY: callers are not checked */
};

/**
 * Initializes a send queue. Posts are disabled until bb_sq_enable().
 * @return 0, or -EINVAL if the configuration is inconsistent.
 */
int bb_sq_init(struct bb_sq *sq, const struct bb_sq_conf *conf);

#ifdef __cplusplus
}
#endif

#endif
