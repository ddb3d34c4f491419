/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Queue pairs: create, connect, change state, query, destroy.
 *
 * The control-path rules of bb_dev.h apply. The owner thread may change the state of a QP or
 * destroy it at any time. If another thread does this, the program must ensure that the owner
 * thread does not post or poll meanwhile.
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
 * States of a QP (man ibv_modify_qp). Queues created through DEVX have no states SQD and SQE. So a
 * UC or UD QP whose send fails goes to ERR, not to SQE ([A]: an assumption, not tested on a card).
 */
enum bb_qp_state {
	BB_QP_RESET,
	BB_QP_INIT,
	BB_QP_RTR,
	BB_QP_RTS,
	BB_QP_SQD, /**< not supported (-ENOTSUP); instead stop posting and call bb_qp_drain() */
	BB_QP_ERR,
};

/** Returns the name of a state, for example "RTS". */
const char *bb_qp_state_name(enum bb_qp_state state);

/** Attributes of a new QP (man ibv_create_qp). */
struct bb_qp_init_attr {
	uint32_t size; /**< set by bb_qp_init_attr_init() */
	enum bb_qp_type type;
	struct bb_cq *send_cq;
	struct bb_cq *recv_cq; /**< CQ of the receives; has the same owner as send_cq and may be the
				* same CQ */
	uint32_t sq_depth;     /**< send WQEs that can be outstanding */
	uint32_t rq_depth;     /**< receive WQEs that can be outstanding, 0 for no receive queue */
	/**
	 * Limits of a post: SGEs of a send, SGEs of a receive, bytes of inline data. A post that
	 * exceeds a limit is rejected (-EINVAL) on every device, even if the WQE has room. With
	 * max_sge 0, RC and UC sends may have 1 SGE.
	 */
	uint32_t max_sge;
	uint32_t max_recv_sge;
	uint32_t max_inline;
	bool signal_all; /**< if true, every send is reported, as if its post had set
			  * BB_SEND_SIGNALED (man ibv_create_qp: sq_sig_all) */
	/**
	 * largest number of send WQEs per CQE. The library requests a CQE at least that often, so
	 * that a full send queue always gets room. 0: a quarter of sq_depth. With signal_all only 0
	 * and 1 are valid and mean 1
	 */
	uint32_t signal_every;
	enum bb_db_mode db_mode;
	/**
	 * SRQ that provides the receives instead of a receive queue, NULL if none. The SRQ must
	 * have the same device and owner as the QP. With an SRQ, rq_depth and max_recv_sge are
	 * ignored and recv_cq is required.
	 */
	struct bb_srq *srq;
	/**
	 * If true, the device may write up to 32 bytes of received data, or of results of READs and
	 * atomics, into the CQE. The poll copies these bytes to the buffer. The keys of such
	 * buffers are not checked, and their addresses must be pointers of this process. So no
	 * buffer may be in a region that is zero-based, has another iova, or is device memory. The
	 * option saves the card one write per message. On UC it applies to received data only; on
	 * UD it has no effect.
	 */
	bool scatter_to_cqe;
};

/**
 * Sets the defaults: 128 WQEs of 1 SGE in each queue, 64 bytes of inline data, and BlueFlame. The
 * caller must set the CQs.
 */
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
	uint32_t access;     /**< rights of the peer: REMOTE_* of enum bb_access; on UC only
			      * REMOTE_WRITE has an effect */
	uint16_t pkey_index; /**< index of the QP's partition key; see bb_pkey_query() */
	uint32_t path_mtu;   /**< bytes: 256, 512, 1024, 2048, 4096 */
	uint32_t dest_qpn;
	uint32_t rq_psn;            /**< first PSN that this QP receives, 24 bits: the sq_psn of the
				     * peer */
	uint32_t sq_psn;            /**< first PSN that this QP sends, 24 bits */
	uint8_t max_rd_atomic;      /**< READs and atomics of this QP that can be outstanding */
	uint8_t max_dest_rd_atomic; /**< READs and atomics of the peer that can be outstanding; 0
				     * rejects them even if access allows them */
	uint8_t min_rnr_timer;      /**< code of the time that a peer waits after an RNR NAK, as in
				     * man ibv_modify_qp, 0 to 31 */
	uint8_t timeout;            /**< code of the ACK timeout, 1 to 31: 4.096 us << timeout; 0:
				     * no timeout */
	uint8_t retry_cnt;          /**< retries after a timeout or sequence error, 0 to 7 */
	uint8_t rnr_retry;          /**< retries after an RNR NAK, 0 to 7; 7: no limit */
	struct bb_path path;
	uint32_t qkey; /**< Q_Key that received datagrams must have; valid only for UD. It is also
			* sent if the Q_Key of a post has its top bit set */
};

/** Attributes that bb_qp_modify() sets, combined with OR. */
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

/**
 * Address of a QP, which the peer's QP needs to connect. The application sends the address to the
 * peer.
 */
struct bb_qp_addr {
	uint32_t qpn;
	uint32_t psn; /**< first PSN that this QP sends */
	uint8_t gid[16];
	uint16_t lid;
	uint16_t mtu; /**< active MTU, bytes */
};

/** Control-path data of a QP, opaque. */
struct bb_qp_ctrl;

/** A queue pair. Only the inline functions of bb_post.h access its fields. */
struct bb_qp {
	struct bb_sq sq;
	struct bb_rq rq;
	/* The data path does not access the following fields. */
	uint32_t qpn;
	uint32_t user_index;
	enum bb_qp_state state; /**< state after the last call of the control path; an error may
				 * have changed the state since */
	struct bb_qp_ctrl *ctrl;
	void *user; /**< free for the application */
};

/**
 * Implements bb_qp_create(), which passes the layout version of the headers. Call bb_qp_create()
 * instead.
 */
int bb_qp_create_v(struct bb_pd *pd, const struct bb_qp_init_attr *attr, uint32_t layout,
		   struct bb_qp **qp);

/**
 * Creates a QP in RESET (man ibv_create_qp). Receives may be posted at once; the library passes
 * them to the device when the QP goes to INIT. A transition to RESET drops all receives.
 * @return 0; -EINVAL if an attribute exceeds a limit of bb_dev_query(), or the CQs belong to
 * another device or owner; -ENOSPC if a CQ cannot hold a completion for every WQE of its queues:
 * make the CQ deeper; -ENOMEM; -EPROTO if the program was built with headers of another
 * BB_LAYOUT_VERSION: rebuild the program. For UD, the limit of SGEs is 2 lower than in
 * bb_dev_query(), and the limit of inline bytes is 32 lower.
 */
static inline int
bb_qp_create(struct bb_pd *pd, const struct bb_qp_init_attr *attr, struct bb_qp **qp)
{
	return bb_qp_create_v(pd, attr, BB_LAYOUT_VERSION, qp);
}

/**
 * Destroys the QP. Completions of the QP that were not polled yet are dropped. The PD and the CQs
 * are not destroyed.
 * @return 0; -EINVAL if @p qp is NULL; -EBUSY if a connection of bb_connect.h owns the QP: destroy
 * the connection first. -EBUSY also if the QP is attached to a multicast group: detach the QP
 * first.
 */
int bb_qp_destroy(struct bb_qp *qp);

/**
 * Changes state and attributes (man ibv_modify_qp has the tables of required and optional
 * attributes for each type: UC has no retries, timers and READs; UD has a Q_Key and no peer). A
 * transition to RTR may wait until the next hop's MAC is resolved, as bb_qp_connect() does.
 * @return 0; -EINVAL if the transition is not legal, or an attribute is missing, not allowed or out
 * of range; -ENOTSUP if the new state is SQD. After these errors the QP is unchanged, and the log
 * names the attribute. If the device rejects a transition to RESET, a QP with an SRQ may be in ERR.
 */
int bb_qp_modify(struct bb_qp *qp, const struct bb_qp_attr *attr, uint32_t mask);

/** Implements bb_qp_query(), which sets the struct's size. Call bb_qp_query() instead. */
int bb_qp_query_v(struct bb_qp *qp, struct bb_qp_attr *attr);

/** Reads state and attributes of a QP from the device. Any thread may call this function. */
static inline int
bb_qp_query(struct bb_qp *qp, struct bb_qp_attr *attr)
{
	if (attr != NULL)
		attr->size = sizeof(*attr);
	return bb_qp_query_v(qp, attr);
}

/**
 * Returns the QP's address, for the peer's bb_qp_connect(). The PSN of the address is random.
 * @return 0; -ENOENT if the port needs a GID and has none at that index; otherwise an error of
 * bb_port_query(). RoCE ports and InfiniBand ports with grh_required need a GID.
 */
int bb_qp_addr(struct bb_qp *qp, uint8_t port, uint8_t sgid_index, struct bb_qp_addr *addr);

/** Bytes of a packed address. */
#define BB_QP_ADDR_PACKED 28u

/**
 * Writes an address as bytes for the peer: version, QP number, PSN, GID, LID, MTU. The bytes are
 * big endian, so they are the same on every machine. Any thread may call this function.
 * @param len size of @p buf in bytes.
 * @return @ref BB_QP_ADDR_PACKED; -ENOSPC if @p len is too small; -EINVAL if bb_qp_addr_unpack()
 * would reject the address.
 */
int bb_qp_addr_pack(const struct bb_qp_addr *addr, void *buf, size_t len);

/**
 * Reads a packed address. The bytes may come from an untrusted peer; nothing is logged.
 * @param len bytes at @p buf, exactly @ref BB_QP_ADDR_PACKED.
 * @return 0; -ENOTSUP if this library does not know the version; -EINVAL if @p len is wrong or a
 * field is invalid. A field is invalid if the QP number cannot be that of an application's QP, or
 * the PSN has more than 24 bits. An invalid MTU and an address without GID and LID also give
 * -EINVAL. On an error @p addr is not written.
 */
int bb_qp_addr_unpack(const void *buf, size_t len, struct bb_qp_addr *addr);

/**
 * Moves an RC or UC QP from RESET to RTS in one call. @p attr gives rights, retries (RC), and the
 * path's port, GID index and traffic class. The two addresses give all other attributes.
 *
 * On InfiniBand packets have a GRH if path.is_global is set or the local port needs it
 * (bb_port_attr.grh_required). An address does not say whether the peer's port needs one. If only
 * the peer's port needs a GRH, the caller must set is_global. Connections of bb_connect.h need no
 * such care, because their handshake exchanges grh_required.
 *
 * On RoCE the call may wait until ARP or neighbour discovery has resolved the next hop's MAC: up to
 * 4 s on a software device with port=, about 1 s in the kernel. With shm= the call may wait 5 s if
 * the peer's queue of connections is full. The calling thread polls nothing during this time. So a
 * thread that serves other connections should use bb_connect.h, which never waits.
 * @return 0; -EBUSY if a connection of bb_connect.h owns the QP; -EINVAL if the QP is not in RESET;
 * otherwise an error of bb_qp_modify(). If a transition fails, the call moves the QP back to RESET.
 * A QP that was not in RESET is unchanged.
 */
int bb_qp_connect(struct bb_qp *qp, const struct bb_qp_addr *local, const struct bb_qp_addr *remote,
		  const struct bb_qp_attr *attr);

/**
 * Moves a UD queue pair from RESET to RTS in one call.
 * @param qkey Q_Key that datagrams to this QP must have
 * @param sq_psn first PSN that this QP sends, 24 bits; any value is valid
 * @return as bb_qp_modify(); -EINVAL also if the QP is not of type UD or not in RESET. If a
 * transition fails, the call moves the QP back to RESET. A QP that was not in RESET is unchanged.
 */
int bb_qp_ud_up(struct bb_qp *qp, uint8_t port, uint16_t pkey_index, uint32_t qkey,
		uint32_t sq_psn);

/** QP number of every multicast group: datagrams to a group name this number as the receiver. */
#define BB_MCAST_QPN 0xffffffu

/**
 * Attaches a UD QP to a multicast group (man ibv_attach_mcast). In RTR and RTS the QP then gets a
 * copy of each datagram to @ref BB_MCAST_QPN at the group's GID. The datagram needs the Q_Key of
 * the QP, and the QP needs a receive for it, as with other datagrams. A QP may be attached to
 * several groups. A second attach to the same group has no effect.
 *
 * A datagram to a group is sent with an address handle whose dgid is the group's GID. The members
 * on the sender's port get it, too, including the sending QP if it is attached.
 *
 * The call concerns only the device. So that the network delivers the group to this port, on
 * InfiniBand the subnet manager must have added the port to the group. On RoCE, switches with
 * multicast snooping need an IGMP or MLD report of the host.
 * @param gid GID of the group: the first byte is 0xff, or the GID is an IPv4-mapped multicast
 * address (RoCE v2 over IPv4).
 * @param lid LID of the group in host byte order, 0xc000 to 0xfffe; ignored on RoCE.
 * @return 0; -EINVAL if an argument is NULL or out of range, or the QP is not of type UD; -ENOTSUP
 * if bb_dev_attr.max_mcast_grp is 0; -ENOMEM, -EAGAIN or another errno of the device if a limit of
 * bb_dev_attr or the device's memory is used up.
 */
int bb_qp_mcast_attach(struct bb_qp *qp, const uint8_t gid[16], uint16_t lid);

/**
 * Detaches a QP from a multicast group (man ibv_detach_mcast). A datagram that the device had
 * already received may still complete a receive after the call.
 * @return 0; -EINVAL if the QP is not attached to the group with this @p gid and @p lid; otherwise
 * an error of bb_qp_mcast_attach(). After an error of the device the QP is still attached.
 */
int bb_qp_mcast_detach(struct bb_qp *qp, const uint8_t gid[16], uint16_t lid);

/** Statistics of a QP, counted by software. */
struct bb_qp_stats {
	uint32_t size;   /**< bytes of the caller's struct; set by bb_qp_stats() */
	uint64_t posted; /**< send requests */
	uint64_t doorbells;
	uint64_t full;        /**< posts rejected because the queue was full */
	uint32_t outstanding; /**< room, in WQEs, that send requests occupy until they are known to
				 be complete */
	uint64_t recv_posted;
	uint32_t recv_outstanding;
	uint64_t errors;    /**< number of error completions polled */
	uint64_t send_cqes; /**< number of CQEs of sends; each CQE completes one or several sends */
};

/** Implements bb_qp_stats(), which sets the struct's size. Call bb_qp_stats() instead. */
int bb_qp_stats_v(const struct bb_qp *qp, struct bb_qp_stats *stats);

/**
 * Reads the statistics of a QP. Any thread may call this function, also while the owner posts and
 * polls; related counters may then differ by some posts. The QP must not be destroyed or reset
 * before the call returns.
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
