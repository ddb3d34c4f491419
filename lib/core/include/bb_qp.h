/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Queue pairs: create, connect, change state, ask, destroy.
 *
 * Control-path rules are those of bb_dev.h. State changes and destruction are
 * made by the owner thread, or while it is known not to post or poll.
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
 * States (man ibv_modify_qp). SQD and SQE do not exist on DEVX queues: a UC or UD QP whose send
 * fails goes to ERR, not to SQE [A].
 */
enum bb_qp_state {
	BB_QP_RESET,
	BB_QP_INIT,
	BB_QP_RTR,
	BB_QP_RTS,
	BB_QP_SQD, /**< -ENOTSUP: stop posting, and see bb_qp_drain() */
	BB_QP_ERR,
};

/** Name of a state: "RTS". */
const char *bb_qp_state_name(enum bb_qp_state state);

/** What a QP is to be like (man ibv_create_qp). */
struct bb_qp_init_attr {
	uint32_t size; /**< set by bb_qp_init_attr_init() */
	enum bb_qp_type type;
	struct bb_cq *send_cq;
	struct bb_cq *recv_cq; /**< same owner as send_cq; may be the same CQ */
	uint32_t sq_depth;     /**< send WQEs outstanding */
	uint32_t rq_depth;     /**< receive WQEs outstanding; 0: none */
	/**
	 * Pieces of a send, pieces of a receive, bytes of inline data. Posts of more are refused
	 * (-EINVAL), also where a WQE would have room: the numbers hold as given, on every
	 * device. Of 0 pieces, RC and UC sends have 1.
	 */
	uint32_t max_sge;
	uint32_t max_recv_sge;
	uint32_t max_inline;
	bool signal_all;       /**< report every send, as if BB_SEND_SIGNALED was given
				*   (man ibv_create_qp: sq_sig_all) */
	uint32_t signal_every; /**< a CQE at the latest this many WQEs apart, so that the
				*   SQ cannot fill unseen; 0: a quarter of sq_depth, or 1
				*   with signal_all, which takes no other value */
	enum bb_db_mode db_mode;
	/**
	 * Where receives come from instead of an own RQ, NULL: nowhere. Same device and owner;
	 * rq_depth and max_recv_sge do not count then, recv_cq must be given.
	 */
	struct bb_srq *srq;
	/**
	 * The device may put received data, and data of READs and atomics, of up to 32 bytes
	 * into the CQE; the poll copies it to the buffer. The keys of such buffers are not
	 * looked at, and their addresses must be pointers of this process: no region that is
	 * zero-based, has another iova or is device memory. Saves the card a write per
	 * message. UC: received data only; UD: nothing.
	 */
	bool scatter_to_cqe;
};

/** Defaults: 128 WQEs each way of 1 piece, 64 bytes inline, BlueFlame; no CQs yet. */
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
	uint32_t access;     /**< enum bb_access REMOTE_* a peer gets; on UC, WRITE alone counts */
	uint16_t pkey_index; /**< the partition: see bb_pkey_query() */
	uint32_t path_mtu;   /**< bytes: 256, 512, 1024, 2048, 4096 */
	uint32_t dest_qpn;
	uint32_t rq_psn;            /**< 24 bits: the peer's sq_psn */
	uint32_t sq_psn;            /**< 24 bits */
	uint8_t max_rd_atomic;      /**< READs and atomics under way, as initiator */
	uint8_t max_dest_rd_atomic; /**< and as target; 0: refused, whatever access says */
	uint8_t min_rnr_timer;      /**< coded as in ibv_modify_qp, 0 to 31 */
	uint8_t timeout;            /**< 4.096 us << timeout, 1 to 31; 0: for ever */
	uint8_t retry_cnt;          /**< 0 to 7 */
	uint8_t rnr_retry;          /**< 0 to 7; 7: for ever */
	struct bb_path path;
	uint32_t qkey; /**< UD: what a datagram must carry to be taken; and what is sent in
			*   place of a Q_Key whose top bit is set */
};

/** Which attributes bb_qp_modify() is to use. */
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
 * Sensible values for a short reliable path: MTU 1024, 16 READs, timeout 14
 * (67 ms), 7 retries, RNR for ever at 0.01 ms, all REMOTE rights off, port 1.
 */
void bb_qp_attr_init(struct bb_qp_attr *attr);

/** What a peer must know to connect; exchanged by the application. */
struct bb_qp_addr {
	uint32_t qpn;
	uint32_t psn; /**< first PSN this side sends */
	uint8_t gid[16];
	uint16_t lid;
	uint16_t mtu; /**< active MTU, bytes */
};

/** Control-path half of a QP, opaque. */
struct bb_qp_ctrl;

/** A queue pair. Only the inline functions of bb_post.h touch it. */
struct bb_qp {
	struct bb_sq sq;
	struct bb_rq rq;
	/* Not touched on the data path. */
	uint32_t qpn;
	uint32_t user_index;
	enum bb_qp_state state; /**< as of the last call; an error may have moved it */
	struct bb_qp_ctrl *ctrl;
	void *user; /**< the application's */
};

/** Use bb_qp_create(). */
int bb_qp_create_v(struct bb_pd *pd, const struct bb_qp_init_attr *attr, uint32_t layout,
		   struct bb_qp **qp);

/**
 * Create a QP in RESET (man ibv_create_qp). Receives may be posted at once: they are kept and given
 * to the device as the QP goes to INIT. Going to RESET drops all receives.
 * @return 0; -EINVAL a limit of bb_dev_query() is exceeded (a UD WQE has room for two
 *   pieces, or 32 inline bytes, less), the CQs belong to another device or owner; -ENOSPC the CQ
 * cannot hold a completion for every WQE of its queues: make it deeper; -ENOMEM; -EPROTO rebuild
 * the program.
 */
static inline int
bb_qp_create(struct bb_pd *pd, const struct bb_qp_init_attr *attr, struct bb_qp **qp)
{
	return bb_qp_create_v(pd, attr, BB_LAYOUT_VERSION, qp);
}

/**
 * Destroy it; completions not yet polled are dropped. The PD and CQs stay.
 * @return 0; -EINVAL; -EBUSY a connection of bb_connect.h owns it: destroy that one first.
 */
int bb_qp_destroy(struct bb_qp *qp);

/**
 * Change state and attributes (man ibv_modify_qp, its tables of required and
 * optional attributes for each type: UC has no retries, timers and READs, UD has a
 * Q_Key and no peer). To RTR it may wait for a neighbour, as bb_qp_connect().
 * @return 0; -EINVAL not a legal transition, or an attribute is missing, not
 *   allowed or out of range; -ENOTSUP SQD. The QP is as it was then, and the log
 *   names the attribute.
 */
int bb_qp_modify(struct bb_qp *qp, const struct bb_qp_attr *attr, uint32_t mask);

/** Use bb_qp_query(). */
int bb_qp_query_v(struct bb_qp *qp, struct bb_qp_attr *attr);

/** Ask the device for state and attributes. Any thread. */
static inline int
bb_qp_query(struct bb_qp *qp, struct bb_qp_attr *attr)
{
	if (attr != NULL)
		attr->size = sizeof(*attr);
	return bb_qp_query_v(qp, attr);
}

/**
 * Fill what the peer's bb_qp_connect() needs. The PSN is drawn at random.
 * @return 0; -ENOENT no GID at that index, on RoCE and on ports with grh_required (other ports of
 *   InfiniBand do without); as bb_port_query().
 */
int bb_qp_addr(struct bb_qp *qp, uint8_t port, uint8_t sgid_index, struct bb_qp_addr *addr);

/** Bytes of a packed address. */
#define BB_QP_ADDR_PACKED 28u

/**
 * Put an address into bytes for the peer: version, QP number, PSN, GID, LID, MTU; big endian, the
 * same on every machine. Pure.
 * @param len room in @p buf.
 * @return @ref BB_QP_ADDR_PACKED; -ENOSPC; -EINVAL an address that bb_qp_addr_unpack() would
 * refuse.
 */
int bb_qp_addr_pack(const struct bb_qp_addr *addr, void *buf, size_t len);

/**
 * Read a packed address. The bytes may come from anybody; nothing is logged.
 * @param len bytes at @p buf, exactly @ref BB_QP_ADDR_PACKED.
 * @return 0; -ENOTSUP of a version that this library does not know; -EINVAL another length, a QP
 *   number of no application's QP, a PSN of more than 24 bits, an MTU that does not exist, or
 *   neither GID nor LID. Nothing is written then.
 */
int bb_qp_addr_unpack(const void *buf, size_t len, struct bb_qp_addr *addr);

/**
 * RESET to RTS in one call, of RC and UC: @p attr gives rights, retries (RC) and the
 * path's port, GID index and class; the rest comes from the two addresses.
 *
 * On InfiniBand packets have a GRH where path.is_global asks for it or the own port needs it
 * (bb_port_attr.grh_required). An address does not tell whether the peer's port does: who connects
 * to such a one from a port that does not sets is_global. bb_connect.h sees to it.
 * May wait for a neighbour of a RoCE port to answer: up to 3 s on the software device, about 1 s in
 * the kernel. The calling thread polls nothing meanwhile. A thread that serves other connections
 * uses bb_connect.h, which never waits.
 * @return 0; -EBUSY a connection of bb_connect.h owns the QP; as bb_qp_modify(). After an error the
 *   QP is in RESET.
 */
int bb_qp_connect(struct bb_qp *qp, const struct bb_qp_addr *local, const struct bb_qp_addr *remote,
		  const struct bb_qp_attr *attr);

/**
 * RESET to RTS of a UD queue pair in one call.
 * @param qkey Q_Key that datagrams to this QP must carry
 * @param sq_psn first PSN this side sends, 24 bits; any will do
 * @return as bb_qp_modify(); -EINVAL also for a QP of another type or not in RESET. On
 *   an error it is in RESET.
 */
int bb_qp_ud_up(struct bb_qp *qp, uint8_t port, uint16_t pkey_index, uint32_t qkey,
		uint32_t sq_psn);

/** Per-QP numbers, kept by software. */
struct bb_qp_stats {
	uint32_t size;   /**< bytes of the caller's struct; set by bb_qp_stats() */
	uint64_t posted; /**< send requests */
	uint64_t doorbells;
	uint64_t full;        /**< posts refused for want of room */
	uint32_t outstanding; /**< room taken by send requests not known complete, in WQEs */
	uint64_t recv_posted;
	uint32_t recv_outstanding;
	uint64_t errors;    /**< error completions seen */
	uint64_t send_cqes; /**< CQEs that told of sends, of one or of many: the signalled ones */
};

/** Use bb_qp_stats(). */
int bb_qp_stats_v(const struct bb_qp *qp, struct bb_qp_stats *stats);

/**
 * Read them: any thread, also while the owner posts and polls; the QP must not be destroyed or
 * reset meanwhile. Numbers that belong together may be some posts apart then.
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
