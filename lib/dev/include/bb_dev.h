/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Devices: find, open, ask, close.
 *
 * Control path: 0 or a negative errno; an object comes out only on success; an
 * object with children is not destroyed (-EBUSY). The calls of this header may
 * be made from any thread, one at a time per device, also while other threads
 * post and poll on the device's queues.
 */
#ifndef BB_DEV_H
#define BB_DEV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bb_dev;
struct bb_qp;
struct bb_cq;
struct bb_srq;
struct bb_channel;

/** Bytes of a device name or PCI address, its zero included. */
#define BB_DEV_NAME_MAX 64

/** One line of bb_dev_list(). */
struct bb_dev_info {
	uint32_t size;              /**< bytes of the caller's struct; set by bb_dev_list() */
	char name[BB_DEV_NAME_MAX]; /**< what bb_dev_open() takes */
	char driver[16];
	char bus[BB_DEV_NAME_MAX]; /**< PCI address, or empty */
};

/** Use bb_dev_list(). */
int bb_dev_list_v(struct bb_dev_info *info, unsigned int n);

/**
 * List devices that could be opened. The software ConnectX is there as soft0 if its library,
 * libbluebell-soft, is installed; listing does not load it.
 * @param info at most @p n entries are written; NULL with @p n 0 only counts.
 * @return how many there are, or a negative errno.
 */
static inline int
bb_dev_list(struct bb_dev_info *info, unsigned int n)
{
	if (n != 0 && info != NULL)
		info->size = sizeof(*info);
	return bb_dev_list_v(info, n);
}

/**
 * Open a device by its spec string: "mlx5_0", a PCI address "0000:3b:00.0", or
 * the software ConnectX "soft0", each with options behind it as in
 * "soft0,progress=lcore". EAL must be initialised, in a primary process.
 * The first software device that a process opens loads libbluebell-soft from the folder of
 * libbluebell, or from the one that the environment variable ``BB_DRIVER_PATH`` names. A program
 * that links Bluebell statically adds bluebell-soft to the packages of pkg-config --static.
 * @return 0; -ENODEV no such device; -EINVAL unknown or bad option, or no
 *   rte_eal_init() before; -EPERM or -EACCES no permission; -EOPNOTSUPP no DEVX;
 *   -ENOTSUP secondary process, or a child of fork() after rte_eal_init(); of a software device
 *   also -ELIBACC its library is missing, unreadable, of another release or not linked,
 *   -ELIBBAD it is another library. The log says what to do.
 */
int bb_dev_open(const char *spec, struct bb_dev **dev);

/** Close a device. -EBUSY while PDs, CQs, QPs, umems, device memory, channels or objects of
 * bb_devx.h live. */
int bb_dev_close(struct bb_dev *dev);

/** Name the device was opened by, without options. Valid until close. */
const char *bb_dev_name(const struct bb_dev *dev);

/** What a port speaks. */
enum bb_link_layer {
	BB_LINK_INFINIBAND,
	BB_LINK_ETHERNET,
};

/** What a device can do (man ibv_query_device). */
struct bb_dev_attr {
	uint32_t size; /**< bytes of the caller's struct; set by bb_dev_query() */
	char driver[16];
	uint32_t ports;
	uint32_t max_qp;
	uint32_t max_cq;
	uint32_t max_cqe;      /**< CQEs per CQ */
	uint32_t comp_vectors; /**< completion vectors, at least 1 (bb_cq_attr.comp_vector) */
	uint32_t max_qp_wr;    /**< WQEs per queue */
	uint32_t max_sge;      /**< pieces of a send WQE */
	uint32_t max_recv_sge;
	uint32_t max_inline;         /**< bytes of a send WQE */
	uint64_t max_mr_size;        /**< bytes */
	uint32_t max_mr;             /**< memory keys of all kinds and all processes */
	uint64_t max_msg_size;       /**< bytes */
	uint32_t max_rd_atomic;      /**< outstanding READs and atomics, as initiator */
	uint32_t max_dest_rd_atomic; /**< and as target */
	uint32_t bf_size;            /**< bytes of a BlueFlame register half, 0: none */
	uint64_t max_dm_size;        /**< bytes of device memory, 0: none */
	uint32_t max_dm_log_align;   /**< log2 of the largest alignment of a piece of it */
	uint32_t max_umem;           /**< umems, 0: none */
	bool dmabuf;                 /**< kernel and rdma-core can register dma-bufs */
	uint32_t max_srq;            /**< shared receive queues, 0: none */
	uint32_t max_srq_wr;         /**< receives of an SRQ */
	uint32_t max_srq_sge;        /**< pieces of such a receive */
	bool atomics;                /**< 8-byte CMP_SWAP and FETCH_ADD */
	bool odp;                    /**< BB_ACCESS_ON_DEMAND */
	bool odp_write;              /**< it with REMOTE_WRITE on an RC QP */
	bool odp_read;               /**< with REMOTE_READ */
	bool odp_atomic;             /**< with REMOTE_ATOMIC */
	bool odp_implicit;           /**< it for the whole address space */
	bool relaxed_ordering;       /**< BB_ACCESS_RELAXED_ORDERING, which says more */
	bool memory_windows;         /**< of types 1 and 2 (bb_mw.h) */
	bool memory_window_atomics;  /**< also with REMOTE_ATOMIC */
	uint32_t max_mkey_pieces;    /**< of an indirect key; 0: none (bb_mkey.h) */
	bool mkey_layout;            /**< requests may lay an indirect key out */
	bool mkey_interleaved;       /**< also as a pattern */
	bool counters;               /**< hardware counter sets */
	bool software;               /**< no hardware behind it */
	/**
	 * RDMA to memory of this device goes on only while a thread polls its CQs, or calls
	 * bb_dev_progress(): a software device that takes packets and has no thread of its own.
	 */
	bool target_progress;
	bool cq_resize;       /**< bb_cq_resize() */
	bool cq_moderation;   /**< bb_cq_moderate() */
	bool cqe_compression; /**< bb_cq_attr.compress */
	bool mr_rereg;        /**< bb_mr_rereg() */
	bool refusal_events;  /**< BB_EVENT_QP_ACCESS and _REQUEST come */
	bool wc_solicited;    /**< completions of receives have BB_WC_SOLICITED; libibverbs does
			       *   not tell */
	uint64_t clock_hz;    /**< of the clock that stamps completions; 0: none */
	/**
	 * Sizes of masked CMP_SWAP and FETCH_ADD, in bytes and or-ed: 4, 8; 0: there are none.
	 * Devices may have larger ones, whose operands nobody has published.
	 */
	uint32_t masked_atomics;
	/** Those of them whose result lands in network order; other results are in host order. */
	uint32_t masked_atomics_be;
	uint32_t max_read_sge; /**< pieces of a READ */
	/**
	 * What iova and length of an indirect key with REMOTE_ATOMIC are multiples of; 0: there are
	 * none with this right (bb_mkey_create()).
	 */
	uint32_t mkey_atomic_align;
	/**
	 * RC alone, connected through librdmacm (bb_connect.h); no immediate data, no RNR. The
	 * memory that a READ fills may need REMOTE_WRITE (man ibv_reg_mr does not say so, RFC 5040
	 * does).
	 */
	bool iwarp;
	/**
	 * An atomic is atomic also to the target's CPUs and its other devices (IBV_ATOMIC_GLOB);
	 * else to the requests that the target's device serves alone (IBV_ATOMIC_HCA). Cards report
	 * the latter, software devices by the mlx5 driver have the former.
	 */
	bool atomics_global;
};

/** Use bb_dev_query(). */
int bb_dev_query_v(struct bb_dev *dev, struct bb_dev_attr *attr);

/** Read what the device can do. */
static inline int
bb_dev_query(struct bb_dev *dev, struct bb_dev_attr *attr)
{
	if (attr != NULL)
		attr->size = sizeof(*attr);
	return bb_dev_query_v(dev, attr);
}

/** Whether a port can carry traffic. */
enum bb_port_state {
	BB_PORT_DOWN,
	BB_PORT_ACTIVE,
};

/** State and limits of a port (man ibv_query_port). */
struct bb_port_attr {
	uint32_t size; /**< bytes of the caller's struct; set by bb_port_query() */
	enum bb_port_state state;
	enum bb_link_layer link_layer;
	uint32_t max_mtu;    /**< path MTU in bytes, 256 to 4096 */
	uint32_t active_mtu; /**< bytes */
	uint16_t lid;        /**< InfiniBand only */
	uint32_t gids;       /**< entries of the GID table, empty ones too */
	bool grh_required;   /**< InfiniBand: every path needs is_global and GIDs, as virtual
			      *   functions do that share a LID (IBV_QPF_GRH_REQUIRED) */
	uint32_t pkeys;      /**< entries of the P_Key table, empty ones too; RoCE: 1 */
};

/** Use bb_port_query(). */
int bb_port_query_v(struct bb_dev *dev, uint32_t port, struct bb_port_attr *attr);

/** @param port 1 to ports. */
static inline int
bb_port_query(struct bb_dev *dev, uint32_t port, struct bb_port_attr *attr)
{
	if (attr != NULL)
		attr->size = sizeof(*attr);
	return bb_port_query_v(dev, port, attr);
}

/** What packets to and from a GID are like. */
enum bb_gid_type {
	BB_GID_IB,
	BB_GID_ROCE_V1,
	BB_GID_ROCE_V2,
};

/** An entry of a GID table (man ibv_query_gid). */
struct bb_gid {
	uint32_t size; /**< bytes of the caller's struct; set by bb_gid_query() */
	uint8_t raw[16];
	enum bb_gid_type type;
};

/** Use bb_gid_query(). */
int bb_gid_query_v(struct bb_dev *dev, uint32_t port, uint32_t index, struct bb_gid *gid);

/** -ENOENT for an empty entry, -EINVAL for an index out of the table. */
static inline int
bb_gid_query(struct bb_dev *dev, uint32_t port, uint32_t index, struct bb_gid *gid)
{
	if (gid != NULL)
		gid->size = sizeof(*gid);
	return bb_gid_query_v(dev, port, index, gid);
}

/**
 * Read an entry of a port's P_Key table (man ibv_query_pkey): the partition that a queue pair with
 * this pkey_index belongs to.
 * @param pkey in host byte order; top bit: full member; 0: the entry is empty.
 * @return 0; -EINVAL no such port or index; -ENOTSUP the device's driver has none.
 */
int bb_pkey_query(struct bb_dev *dev, uint32_t port, uint32_t index, uint16_t *pkey);

/** Kinds of asynchronous events (man ibv_get_async_event). */
enum bb_event_type {
	BB_EVENT_CQ_ERROR,        /**< CQ overrun or access error: rebuild CQ and QPs */
	BB_EVENT_QP_FATAL,        /**< QP went to ERR for a reason no CQE tells */
	BB_EVENT_QP_ACCESS,       /**< a peer's request was refused; QP is in ERR */
	BB_EVENT_QP_REQUEST,      /**< a peer's request was invalid; QP is in ERR */
	BB_EVENT_PORT_CHANGE,     /**< LID, P_Key or GID table: read them anew */
	BB_EVENT_DEV_FATAL,       /**< the device is gone: close it */
	BB_EVENT_SRQ_LIMIT,       /**< fewer receives are left than bb_srq_modify() asked for */
	BB_EVENT_SRQ_LAST_WQE,    /**< a QP in ERR takes no receive of its SRQ any more */
	BB_EVENT_SRQ_ERROR,       /**< the SRQ is unusable: rebuild it and its QPs */
	BB_EVENT_PORT_ACTIVE,     /**< the link is up: bb_qp_recover() what failed meanwhile */
	BB_EVENT_PORT_DOWN,       /**< requests wait for their timeouts and retries */
	BB_EVENT_QP_COMM_EST,     /**< a QP in RTR has received its first message */
	BB_EVENT_QP_PATH_MIG,     /**< QP went over to its alternate path */
	BB_EVENT_QP_PATH_MIG_ERR, /**< it could not */
};

/** An asynchronous event and what it is about. */
struct bb_event {
	uint32_t size; /**< bytes of the caller's struct; set by bb_event_get() */
	enum bb_event_type type;
	struct bb_cq *cq;   /**< of CQ events */
	struct bb_qp *qp;   /**< of QP events, and of SRQ_LAST_WQE */
	uint32_t port;      /**< of port events */
	struct bb_srq *srq; /**< of SRQ events */
};

/** Use bb_event_get(). */
int bb_event_get_v(struct bb_dev *dev, struct bb_event *event);

/**
 * Take one asynchronous event. Never blocks.
 * @return 0; -EAGAIN none.
 */
static inline int
bb_event_get(struct bb_dev *dev, struct bb_event *event)
{
	if (event != NULL)
		event->size = sizeof(*event);
	return bb_event_get_v(dev, event);
}

/** Name of an event type, for logs. */
const char *bb_event_name(enum bb_event_type type);

/**
 * Run the software device once on behalf of the calling lcore, in inline mode:
 * for a thread that waits without polling a CQ. Nothing to do on hardware.
 */
void bb_dev_progress(struct bb_dev *dev);

/**
 * The clock that stamps completions (bb_cq_poll_ts()): free running, of 64 bits, the same
 * for all queues of the device. Two stamps are (b - a) / hz seconds apart; the clock
 * says nothing about the time of day.
 * @param hz ticks per second; may be NULL.
 * @param now the clock's value; may be NULL.
 * @return 0; -ENOTSUP the device has no clock that can be read.
 */
int bb_dev_clock(struct bb_dev *dev, uint64_t *hz, uint64_t *now);

/** Device-wide statistics. Counters from hardware are 0 without @ref bb_dev_attr counters. */
struct bb_dev_stats {
	uint32_t size; /**< bytes of the caller's struct; set by bb_dev_stats() */
	uint64_t rx_write, rx_read, rx_atomic; /**< requests served as target */
	uint64_t out_of_buffer;                /**< RNR NAKs sent */
	uint64_t out_of_sequence, duplicate;
	uint64_t rnr_nak_retry, ack_timeout; /**< retries as initiator */
	uint64_t remote_access_err, remote_op_err, remote_invalid_req;
	uint64_t retry_exceeded, rnr_retry_exceeded;
	uint64_t local_protection_err, local_length_err;
	uint64_t cq_overflow;
	uint64_t flushed;
	/**
	 * Congestion of RoCE v2, of the whole port, since it came up: packets received that a
	 * switch had marked (CE, RFC 3168), notifications (CNP) sent for them and received
	 */
	uint64_t ecn_marked, cnp_sent, cnp_handled;
};

/** Use bb_dev_stats(). */
int bb_dev_stats_v(struct bb_dev *dev, struct bb_dev_stats *stats);

/** Read them, summed over the counter sets of the device. */
static inline int
bb_dev_stats(struct bb_dev *dev, struct bb_dev_stats *stats)
{
	if (stats != NULL)
		stats->size = sizeof(*stats);
	return bb_dev_stats_v(dev, stats);
}

/** Where in a device a packet was dropped. */
enum bb_drop_layer {
	BB_DROP_PORT, /**< at the port, as a frame: not RoCE, not ours, or damaged below RoCE */
	BB_DROP_ROCE, /**< as a packet of RoCE */
};

/** Packets that came and were dropped without an answer, for one reason. */
struct bb_dev_drop {
	uint32_t size; /**< bytes of the caller's struct; set by bb_dev_drops() */
	enum bb_drop_layer layer;
	const char *reason; /**< its name in telemetry; lives as long as the process */
	uint64_t count;     /**< since the device was opened */
};

/** Use bb_dev_drops(). */
int bb_dev_drops_v(struct bb_dev *dev, struct bb_dev_drop *drops, unsigned int n);

/**
 * Read what a device has dropped. The software device alone tells; reasons of the port are there
 * while it has one, an ethdev (port=). Any thread, also while others poll.
 * @param drops at most @p n entries are written, those of 0 too; NULL with @p n 0 only counts.
 * @return how many reasons there are; -ENOTSUP the device does not tell.
 */
static inline int
bb_dev_drops(struct bb_dev *dev, struct bb_dev_drop *drops, unsigned int n)
{
	if (n != 0 && drops != NULL)
		drops->size = sizeof(*drops);
	return bb_dev_drops_v(dev, drops, n);
}

#ifdef __cplusplus
}
#endif

#endif
