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

struct bb_sq;
struct bb_sq_wqe;

/** How the doorbell is rung. */
enum bb_db_mode {
	BB_DB_DOORBELL,  /**< 8-byte store to the register */
	BB_DB_BLUEFLAME, /**< copies a single WQE of at least 2 segments in 64-byte blocks;
			  * otherwise an 8-byte store */
};

/**
 * Stores that make up a BlueFlame copy. Each kind copies the same bytes in ascending order. Set
 * when the queue is created.
 */
enum bb_bf_copy {
	BB_BF_COPY_PLAIN,     /**< 8 bytes each */
	BB_BF_COPY_NEON,      /**< Arm: pairs of 16 bytes */
	BB_BF_COPY_AVX2,      /**< 32 bytes each */
	BB_BF_COPY_AVX512,    /**< 64 bytes each */
	BB_BF_COPY_MOVDIR64B, /**< 64 bytes each, which reach the device as one write */
	BB_BF_COPY_KINDS,     /**< number of kinds */
};

/** Configuration of a send queue. The caller owns the memory. */
struct bb_sq_conf {
	void *buf;              /**< ring of @ref blocks, 64-byte aligned */
	struct bb_sq_wqe *wqes; /**< @ref blocks entries */
	uint32_t blocks;        /**< power of two, 1 to 32768 */
	uint32_t qpn;
	uint32_t depth;   /**< WQEs that may be outstanding; the ring must hold that number of the
			   * largest WQE */
	uint32_t max_sge; /**< pieces of a WQE; 0 means 1 for types other than UD */
	uint32_t max_inline; /**< bytes */
	enum bb_qp_type type;
	bool signal_all;    /**< report every request, signalled or not; requires sig_every 1 */
	uint32_t sig_every; /**< request a CQE at least once every sig_every WQEs, 1 to depth */
	uint32_t *dbrec;
	void *reg;
	/**
	 * Called by bb_sq_ring() in place of dbrec and reg, which are then NULL. Must call
	 * bb_sq_rung().
	 */
	void (*ring)(struct bb_sq *sq);
	/** As in struct bb_sq; NULL for bb_sq_post_slow(). */
	int (*post)(struct bb_sq *sq, uint32_t what, uint64_t wr_id, const struct bb_sge *piece,
		    uint64_t raddr, uint64_t keys);
	/** As in struct bb_sq. @ref post sets ex and piece before it raises direct_limit. */
	void (*write)(struct bb_sq *sq, uint32_t rkey, uint64_t raddr, uint64_t wr_id,
		      uint64_t where);
	void *driver;
	uint32_t bf_size; /**< bytes of a register half: 0, or a power of two >= 64 */
	/**
	 * Storage for the register half to use next; initially 0. All queues that ring one
	 * register, of either db_mode, share it, because halves alternate per register. NULL if no
	 * other queue rings it.
	 */
	uint16_t *bf_offset;
	enum bb_db_mode db_mode; /**< BLUEFLAME without bf_size uses 8-byte stores */
	enum bb_bf_copy bf_copy; /**< how a BlueFlame doorbell copies the WQE; the CPU and
				  * the build must support it */
	bool umr_no_atomic;      /**< UMRs may not change the atomic access right */
	uint32_t owner;          /**< lcore id; LCORE_ID_ANY turns the check off */
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
