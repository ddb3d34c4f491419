/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Queue pairs: create, connect, change state, query, destroy.
 *
 * Control-path rules are those of bb_dev.h. Only the owner thread changes the state of a QP or
 * destroys it; another thread may do so while the owner does not post or poll.
 */
#ifndef BB_QP_H
#define BB_QP_H

#include "bb_cq.h"
#include "bb_mem.h"
#include "bb_path.h"
#include "bb_srq.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * States (man ibv_modify_qp). DEVX queues have no SQD and SQE: a UC or UD QP whose send fails goes
 * to ERR, not to SQE [A].
 */
enum bb_qp_state {
	BB_QP_RESET,
	BB_QP_INIT,
	BB_QP_RTR,
	BB_QP_RTS,
	BB_QP_SQD, /**< not supported (-ENOTSUP): stop posting, and call bb_qp_drain() */
	BB_QP_ERR,
};

/** Returns the name of a state: "RTS". */
const char *bb_qp_state_name(enum bb_qp_state state);

/** Attributes of a new QP (man ibv_create_qp). */
struct bb_qp_init_attr {
	uint32_t size; /**< set by bb_qp_init_attr_init() */
	enum bb_qp_type type;
	struct bb_cq *send_cq;
	struct bb_cq *recv_cq; /**< same owner as send_cq; may be the same CQ */
	uint32_t sq_depth;     /**< send WQEs that can be outstanding */
	uint32_t rq_depth;     /**< receive WQEs that can be outstanding, 0 for no receive queue */
	/**
	 * Pieces of a send, pieces of a receive, bytes of inline data. A post that exceeds them is
	 * rejected (-EINVAL) on every device, even if the WQE has room. With max_sge 0, RC and UC
	 * sends may have 1 piece.
	 */
	uint32_t max_sge;
	uint32_t max_recv_sge;
	uint32_t max_inline;
	bool signal_all;       /**< report every send, as if BB_SEND_SIGNALED was set (man
				* ibv_create_qp: sq_sig_all) */
	uint32_t signal_every; /**< largest distance of CQEs, in WQEs, so that a full SQ always
				* gets room. 0: a quarter of sq_depth, or 1 with signal_all,
				* which accepts no other value */
	enum bb_db_mode db_mode;
	/**
	 * SRQ that provides the receives instead of a receive queue, NULL if none. It has the same
	 * device and owner. With an SRQ, rq_depth and max_recv_sge are ignored and recv_cq is
	 * required.
	 */
	struct bb_srq *srq;
	/**
	 * The device may write up to 32 bytes of received data, or of results of READs and atomics,
	 * into the CQE. The poll copies them to the buffer. The keys of such buffers are not
	 * checked, and their addresses must be pointers of this process. So no buffer may be in a
	 * region that is zero-based, has another iova, or is device memory. Saves the card one
	 * write per message. UC: received data only; UD: no effect.
	 */
	bool scatter_to_cqe;
};

/** Sets the defaults: 128 WQEs of 1 piece in each queue, 64 bytes inline, BlueFlame; no CQs yet. */
static inline void
bb_qp_init_attr_init(struct bb_qp_init_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	attr->sq_depth = 128;
	attr->rq_depth = 128;
	attr->max_sge = 1;
	attr->max_recv_sge = 1;
	attr->max_inline = 64;
	attr->db_mode = BB_DB_BLUEFLAME;
}

/** Attributes of a QP (man ibv_modify_qp). */
struct bb_qp_attr {
	uint32_t size; /**< set by bb_qp_attr_init() */
	enum bb_qp_state state;
	uint32_t access;     /**< REMOTE_* rights of enum bb_access for the peer; on UC only WRITE
			      * has an effect */
	uint16_t pkey_index; /**< partition of the QP: see bb_pkey_query() */
	uint32_t path_mtu;   /**< bytes: 256, 512, 1024, 2048, 4096 */
	uint32_t dest_qpn;
	uint32_t rq_psn;            /**< the peer's sq_psn, 24 bits */
	uint32_t sq_psn;            /**< first PSN that this QP sends, 24 bits */
	uint8_t max_rd_atomic;      /**< outstanding READs and atomics, as initiator */
	uint8_t max_dest_rd_atomic; /**< outstanding READs and atomics, as target; 0 rejects them,
				     * whatever access says */
	uint8_t min_rnr_timer;      /**< as in ibv_modify_qp, 0 to 31 */
	uint8_t timeout;            /**< 4.096 us << timeout, 1 to 31; 0: no timeout */
	uint8_t retry_cnt;          /**< retries after a timeout or sequence error, 0 to 7 */
	uint8_t rnr_retry;          /**< retries after an RNR NAK, 0 to 7; 7: no limit */
	struct bb_path path;
	uint32_t qkey; /**< UD: Q_Key that received datagrams must have; also sent in place of a
			* Q_Key with the top bit set */
};

/** Attributes for bb_qp_modify(), or-ed. */
enum bb_qp_attr_mask {
	BB_QP_STATE = 1 << 0,
	BB_QP_ACCESS = 1 << 1,
	BB_QP_PKEY_INDEX = 1 << 2,
	BB_QP_PORT = 1 << 3,
	BB_QP_PATH = 1 << 4,
	BB_QP_PATH_MTU = 1 << 5,
	BB_QP_DEST_QPN = 1 << 6,
	BB_QP_RQ_PSN = 1 << 7,
	BB_QP_MAX_DEST_RD_ATOMIC = 1 << 8,
	BB_QP_MIN_RNR_TIMER = 1 << 9,
	BB_QP_SQ_PSN = 1 << 10,
	BB_QP_TIMEOUT = 1 << 11,
	BB_QP_RETRY_CNT = 1 << 12,
	BB_QP_RNR_RETRY = 1 << 13,
	BB_QP_MAX_RD_ATOMIC = 1 << 14,
	BB_QP_QKEY = 1 << 15,
};

/**
 * Sets values for a short reliable path: MTU 1024, 16 READs, timeout 14 (67 ms), 7 retries,
 * unlimited RNR retries with timer 0.01 ms, no REMOTE rights, port 1.
 */
void bb_qp_attr_init(struct bb_qp_attr *attr);

/** Address of a QP: what its peer needs to connect. The application exchanges it. */
struct bb_qp_addr {
	uint32_t qpn;
	uint32_t psn; /**< first PSN that this QP sends */
	uint8_t gid[16];
	uint16_t lid;
	uint16_t mtu; /**< active MTU, bytes */
};

/** Control-path half of a QP, opaque. */
struct bb_qp_ctrl;

/** A queue pair. Only the inline functions of bb_post.h access its fields. */
struct bb_qp {
	struct bb_sq sq;
	struct bb_rq rq;
	/* Not touched on the data path. */
	uint32_t qpn;
	uint32_t user_index;
	enum bb_qp_state
		state; /**< state after the last call; an error may have changed it since */
	struct bb_qp_ctrl *ctrl;
	void *user; /**< free for the application */
};

/** Use bb_qp_create(). */
int bb_qp_create_v(struct bb_pd *pd, const struct bb_qp_init_attr *attr, uint32_t layout,
		   struct bb_qp **qp);

/**
 * Creates a QP in RESET (man ibv_create_qp). Receives may be posted at once. They are passed to the
 * device when the QP goes to INIT. A transition to RESET drops all receives.
 * @return 0; -EINVAL a limit of bb_dev_query() is exceeded (a UD WQE holds two pieces, or 32 inline
 * bytes, less), or the CQs belong to another device or owner; -ENOSPC the CQ cannot hold a
 * completion for every WQE of its queues: make it deeper; -ENOMEM; -EPROTO rebuild the program.
 */
static inline int
bb_qp_create(struct bb_pd *pd, const struct bb_qp_init_attr *attr, struct bb_qp **qp)
{
	return bb_qp_create_v(pd, attr, BB_LAYOUT_VERSION, qp);
}

/**
 * Destroys the QP. Completions not yet polled are dropped. PD and CQs stay.
 * @return 0; -EINVAL; -EBUSY a connection of bb_connect.h owns the QP: destroy the connection
 * first.
 */
int bb_qp_destroy(struct bb_qp *qp);

/**
 * Changes state and attributes (man ibv_modify_qp has the tables of required and optional
 * attributes for each type: UC has no retries, timers and READs; UD has a Q_Key and no peer). A
 * transition to RTR may wait for a neighbour, as bb_qp_connect() does.
 * @return 0; -EINVAL the transition is not legal, or an attribute is missing, not allowed or out of
 * range; -ENOTSUP SQD. After an error the QP is unchanged, and the log names the attribute.
 */
int bb_qp_modify(struct bb_qp *qp, const struct bb_qp_attr *attr, uint32_t mask);

/** Use bb_qp_query(). */
int bb_qp_query_v(struct bb_qp *qp, struct bb_qp_attr *attr);

/** Reads state and attributes from the device. Any thread. */
static inline int
bb_qp_query(struct bb_qp *qp, struct bb_qp_attr *attr)
{
	if (attr != NULL)
		attr->size = sizeof(*attr);
	return bb_qp_query_v(qp, attr);
}

/**
 * Returns the QP's address, for the peer's bb_qp_connect(). The PSN is random.
 * @return 0; -ENOENT no GID at that index, on RoCE and on ports with grh_required (other InfiniBand
 * ports do not need one); as bb_port_query().
 */
int bb_qp_addr(struct bb_qp *qp, uint8_t port, uint8_t sgid_index, struct bb_qp_addr *addr);

/** Bytes of a packed address. */
#define BB_QP_ADDR_PACKED 28u

/**
 * Writes an address as bytes for the peer: version, QP number, PSN, GID, LID, MTU. Big endian, the
 * same on every machine. Pure.
 * @param len bytes of @p buf.
 * @return @ref BB_QP_ADDR_PACKED; -ENOSPC; -EINVAL an address that bb_qp_addr_unpack() would
 * reject.
 */
int bb_qp_addr_pack(const struct bb_qp_addr *addr, void *buf, size_t len);

/**
 * Reads a packed address. The bytes may come from an untrusted peer; nothing is logged.
 * @param len bytes at @p buf, exactly @ref BB_QP_ADDR_PACKED.
 * @return 0; -ENOTSUP a version that this library does not know; -EINVAL another length, a QP
 * number that no application's QP can have, a PSN of more than 24 bits, an invalid MTU, or neither
 * GID nor LID. Nothing is written after an error.
 */
int bb_qp_addr_unpack(const void *buf, size_t len, struct bb_qp_addr *addr);

/**
 * Moves an RC or UC QP from RESET to RTS in one call. @p attr gives rights, retries (RC), and the
 * path's port, GID index and class. The two addresses give the rest.
 *
 * On InfiniBand packets have a GRH if path.is_global is set or the local port needs it
 * (bb_port_attr.grh_required). An address does not say whether the peer's port needs one. If only
 * the peer's port does, the caller sets is_global; bb_connect.h handles this case itself.
 *
 * On RoCE the call may wait for a neighbour to answer: up to 3 s on the software device, about 1 s
 * in the kernel. Meanwhile the calling thread polls nothing. A thread that serves other connections
 * uses bb_connect.h, which never waits.
 * @return 0; -EBUSY a connection of bb_connect.h owns the QP; as bb_qp_modify(). After an error the
 * QP is in RESET.
 */
int bb_qp_connect(struct bb_qp *qp, const struct bb_qp_addr *local, const struct bb_qp_addr *remote,
		  const struct bb_qp_attr *attr);

/**
 * Moves a UD queue pair from RESET to RTS in one call.
 * @param qkey Q_Key that datagrams to this QP must have
 * @param sq_psn first PSN that this QP sends, 24 bits; any value is valid
 * @return as bb_qp_modify(); -EINVAL also for a QP of another type or not in RESET. After an error
 * the QP is in RESET.
 */
int bb_qp_ud_up(struct bb_qp *qp, uint8_t port, uint16_t pkey_index, uint32_t qkey,
		uint32_t sq_psn);

/** Statistics of a QP, counted by software. */
struct bb_qp_stats {
	uint32_t size;   /**< bytes of the caller's struct; set by bb_qp_stats() */
	uint64_t posted; /**< send requests */
	uint64_t doorbells;
	uint64_t full;        /**< posts rejected because the queue was full */
	uint32_t outstanding; /**< room taken by send requests not known to be complete, in WQEs */
	uint64_t recv_posted;
	uint32_t recv_outstanding;
	uint64_t errors;    /**< error completions polled */
	uint64_t send_cqes; /**< CQEs of sends; each completes one or several sends */
};

/** Use bb_qp_stats(). */
int bb_qp_stats_v(const struct bb_qp *qp, struct bb_qp_stats *stats);

/**
 * Reads the statistics. Any thread, also while the owner posts and polls; the QP must not be
 * destroyed or reset meanwhile. Related counters may then differ by some posts.
 */
static inline int
bb_qp_stats(const struct bb_qp *qp, struct bb_qp_stats *stats)
{
	if (stats != NULL)
		stats->size = sizeof(*stats);
	return bb_qp_stats_v(qp, stats);
}

#ifdef __cplusplus
}
#endif

#endif
