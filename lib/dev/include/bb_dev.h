/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Devices: list, open, query, close.
 *
 * Control-path functions return 0 or a negative errno. They return an object only on success. An
 * object with children cannot be destroyed (-EBUSY). In a child of fork(), calls that create,
 * change, destroy or query objects of the parent's devices return -ENOTSUP.
 *
 * Any thread may call the functions of this header, but only one thread at a time per device. Other
 * threads may post and poll on the device's queues at the same time.
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

/** Bytes of a device name or PCI address, including the final zero. */
#define BB_DEV_NAME_MAX 64

/** An entry of bb_dev_list(). */
struct bb_dev_info {
	uint32_t size;              /**< bytes of the caller's struct; set by bb_dev_list() */
	char name[BB_DEV_NAME_MAX]; /**< name for bb_dev_open() */
	char driver[16];
	char bus[BB_DEV_NAME_MAX]; /**< PCI address, empty if none */
};

/** Implements bb_dev_list(), which sets the struct's size. Call bb_dev_list() instead. */
int bb_dev_list_v(struct bb_dev_info *info, unsigned int n);

/**
 * Lists the devices that can be opened. The software ConnectX is listed as soft0 if its library,
 * libbluebell-soft, is installed. The call does not load this library.
 * @param info array of @p n entries; NULL, with @p n 0, if only the number is needed. At most @p n
 * entries are written.
 * @return the number of devices, or a negative errno.
 */
static inline int
bb_dev_list(struct bb_dev_info *info, unsigned int n)
{
	if (n != 0 && info != NULL)
		info->size = sizeof(*info);
	return bb_dev_list_v(info, n);
}

/**
 * Opens a device by its spec string: "mlx5_0", a PCI address "0000:3b:00.0", or the software
 * ConnectX "soft0". Options follow the name, as in "soft0,progress=lcore". EAL must be initialised,
 * and the process must be a primary process of EAL.
 *
 * The first software device that a process opens loads libbluebell-soft from the folder of
 * libbluebell. The environment variable ``BB_DRIVER_PATH`` can name another folder. A program that
 * links Bluebell statically adds bluebell-soft to the packages of pkg-config --static.
 * @return 0; -ENODEV if there is no such device; -EINVAL if an option is unknown or invalid, or
 * rte_eal_init() was not called; -EPERM or -EACCES if the process lacks the permission; -EOPNOTSUPP
 * if the device or the kernel has no DEVX; -ENOTSUP in a secondary process, or in a child that was
 * forked after rte_eal_init(). A software device also gives -ELIBACC if libbluebell-soft is
 * missing, unreadable, of another release or not linked, and -ELIBBAD if the file is another
 * library. The log says what to do.
 */
int bb_dev_open(const char *spec, struct bb_dev **dev);

/**
 * Closes a device. Returns 0, or -EBUSY while PDs, CQs, QPs, umems, device memory, channels or
 * objects of bb_devx.h exist.
 */
int bb_dev_close(struct bb_dev *dev);

/**
 * Returns the name under which the device was opened, without options. The string is valid until
 * the device is closed.
 */
const char *bb_dev_name(const struct bb_dev *dev);

/** Link layer of a port. */
enum bb_link_layer {
	BB_LINK_INFINIBAND,
	BB_LINK_ETHERNET,
};

/** Capabilities of a device (man ibv_query_device). */
struct bb_dev_attr {
	uint32_t size; /**< bytes of the caller's struct; set by bb_dev_query() */
	char driver[16];
	uint32_t ports;
	uint32_t max_qp;
	uint32_t max_cq;
	uint32_t max_cqe;      /**< CQEs per CQ */
	uint32_t comp_vectors; /**< completion vectors, at least 1 (bb_cq_attr.comp_vector) */
	uint32_t max_qp_wr;    /**< WQEs per queue */
	uint32_t max_sge;      /**< SGEs of a send WQE */
	uint32_t max_recv_sge;
	uint32_t max_inline;         /**< inline bytes of a send WQE */
	uint64_t max_mr_size;        /**< bytes of one memory region */
	uint32_t max_mr;             /**< memory keys of all types; all processes share them */
	uint64_t max_msg_size;       /**< bytes of one message */
	uint32_t max_rd_atomic;      /**< READs and atomics that a QP can have outstanding as
				      * requester */
	uint32_t max_dest_rd_atomic; /**< READs and atomics that a QP can have outstanding as
				      * responder */
	uint32_t bf_size;            /**< bytes of one half of a BlueFlame register; 0 if the device
				      * has no BlueFlame */
	uint64_t max_dm_size; /**< bytes of device memory; 0 if the device has no such memory */
	uint32_t max_dm_log_align; /**< log2 of the largest alignment that bb_dm_alloc() accepts */
	uint32_t max_umem;         /**< number of umems; 0 if not supported */
	bool dmabuf;               /**< the kernel and rdma-core can register dma-bufs */
	uint32_t max_srq;          /**< number of shared receive queues; 0 if not supported */
	uint32_t max_srq_wr;       /**< receives in an SRQ */
	uint32_t max_srq_sge;      /**< SGEs of a receive in an SRQ */
	bool atomics;              /**< 8-byte CMP_SWAP and FETCH_ADD */
	bool odp;                  /**< on-demand paging: BB_ACCESS_ON_DEMAND */
	bool odp_write;            /**< on-demand paging with REMOTE_WRITE on an RC QP */
	bool odp_read;             /**< on-demand paging with REMOTE_READ */
	bool odp_atomic;           /**< on-demand paging with REMOTE_ATOMIC */
	bool odp_implicit;         /**< on-demand paging for the whole address space */
	bool relaxed_ordering;     /**< the right BB_ACCESS_RELAXED_ORDERING may have an effect; see
				    * its comment */
	bool memory_windows;       /**< memory windows of types 1 and 2 (bb_mw.h) */
	bool memory_window_atomics; /**< memory windows with REMOTE_ATOMIC */
	uint32_t max_mkey_pieces;   /**< memory ranges of an indirect key; 0 if not supported
				     * (bb_mkey.h) */
	bool mkey_layout;           /**< a request can set the layout of an indirect key */
	bool mkey_interleaved;      /**< the layout of an indirect key can be a repeating pattern */
	bool counters;              /**< the device has hardware counter sets */
	bool software;              /**< a software device */
	/**
	 * If true, the device executes RDMA requests of peers only while a thread polls its CQs or
	 * calls bb_dev_progress(). This is so for a software device that receives packets and has
	 * no thread of its own.
	 */
	bool target_progress;
	bool cq_resize;       /**< the device supports bb_cq_resize() */
	bool cq_moderation;   /**< the device supports bb_cq_moderate() */
	bool cqe_compression; /**< the device supports bb_cq_attr.compress */
	bool mr_rereg;        /**< the device supports bb_mr_rereg() */
	bool refusal_events;  /**< the device raises BB_EVENT_QP_ACCESS and BB_EVENT_QP_REQUEST */
	bool wc_solicited;    /**< receive completions have the flag BB_WC_SOLICITED; libibverbs
			       * does not report it */
	uint64_t clock_hz; /**< frequency of the clock that stamps completions; 0 if the device has
			    * no clock */
	/**
	 * Operand sizes of masked CMP_SWAP and FETCH_ADD in bytes: 4, 8 or both, combined with OR;
	 * 0 if not supported. A device may support larger sizes, but this field never has them,
	 * because the format of such operands is not published.
	 */
	uint32_t masked_atomics;
	/**
	 * Sizes of masked_atomics whose result is in network byte order. The results of other sizes
	 * are in host byte order.
	 */
	uint32_t masked_atomics_be;
	uint32_t max_read_sge; /**< SGEs of a READ */
	/**
	 * Alignment of iova and length of an indirect key with REMOTE_ATOMIC, in bytes; 0 if
	 * indirect keys cannot have this right (bb_mkey_create()).
	 */
	uint32_t mkey_atomic_align;
	/**
	 * If true, the device is an iWARP device. Its QPs are RC only and are connected through
	 * librdmacm (bb_connect.h). They have no immediate data and no RNR. The memory that a READ
	 * fills may need REMOTE_WRITE (RFC 5040; man ibv_reg_mr does not mention it).
	 */
	bool iwarp;
	/**
	 * If true, an atomic is also atomic for the target's CPUs and its other devices
	 * (IBV_ATOMIC_GLOB). Otherwise it is atomic only among the requests that the target's
	 * device serves (IBV_ATOMIC_HCA). Cards report false. Software devices of the mlx5 driver
	 * report true.
	 */
	bool atomics_global;
	uint32_t max_mcast_grp; /**< multicast groups; 0 if not supported (bb_qp_mcast_attach()) */
	uint32_t max_mcast_qp;  /**< QPs that can be attached to one multicast group */
};

/** Implements bb_dev_query(), which sets the struct's size. Call bb_dev_query() instead. */
int bb_dev_query_v(struct bb_dev *dev, struct bb_dev_attr *attr);

/** Reads the capabilities of the device. */
static inline int
bb_dev_query(struct bb_dev *dev, struct bb_dev_attr *attr)
{
	if (attr != NULL)
		attr->size = sizeof(*attr);
	return bb_dev_query_v(dev, attr);
}

/** Link state of a port. */
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
	uint32_t active_mtu; /**< path MTU of the link at present, in bytes */
	uint16_t lid;        /**< local identifier of the port; InfiniBand only */
	uint32_t gids;       /**< entries of the GID table, including empty ones */
	bool grh_required;   /**< InfiniBand only: every path needs is_global and GIDs
			      * (IBV_QPF_GRH_REQUIRED). An example is a virtual function that shares
			      * its LID with others */
	uint32_t pkeys;      /**< entries of the P_Key table, including empty ones; 1 on RoCE */
};

/** Implements bb_port_query(), which sets the struct's size. Call bb_port_query() instead. */
int bb_port_query_v(struct bb_dev *dev, uint32_t port, struct bb_port_attr *attr);

/** Reads state and limits of port @p port, 1 to the number of ports. */
static inline int
bb_port_query(struct bb_dev *dev, uint32_t port, struct bb_port_attr *attr)
{
	if (attr != NULL)
		attr->size = sizeof(*attr);
	return bb_port_query_v(dev, port, attr);
}

/** Packet format that a GID selects. */
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

/** Implements bb_gid_query(), which sets the struct's size. Call bb_gid_query() instead. */
int bb_gid_query_v(struct bb_dev *dev, uint32_t port, uint32_t index, struct bb_gid *gid);

/**
 * Reads an entry of a GID table. Returns 0, -ENOENT if the entry is empty, or -EINVAL if @p index
 * is outside the table.
 */
static inline int
bb_gid_query(struct bb_dev *dev, uint32_t port, uint32_t index, struct bb_gid *gid)
{
	if (gid != NULL)
		gid->size = sizeof(*gid);
	return bb_gid_query_v(dev, port, index, gid);
}

/**
 * Reads an entry of a port's P_Key table (man ibv_query_pkey). The entry is the partition of the
 * queue pairs with this pkey_index.
 * @param pkey receives the P_Key in host byte order, 0 if the entry is empty. The top bit is set if
 * the port is a full member of the partition.
 * @return 0; -EINVAL if there is no such port or index; -ENOTSUP if the driver cannot read the
 * table.
 */
int bb_pkey_query(struct bb_dev *dev, uint32_t port, uint32_t index, uint16_t *pkey);

/** Types of asynchronous events (man ibv_get_async_event). */
enum bb_event_type {
	BB_EVENT_CQ_ERROR,     /**< CQ overrun or access error: create the CQ and its QPs anew */
	BB_EVENT_QP_FATAL,     /**< QP moved to ERR for a reason that no CQE reports */
	BB_EVENT_QP_ACCESS,    /**< QP is in ERR because a peer's request violated access rights */
	BB_EVENT_QP_REQUEST,   /**< QP is in ERR because a peer's request was invalid */
	BB_EVENT_PORT_CHANGE,  /**< LID, P_Key or GID table changed: read them again */
	BB_EVENT_DEV_FATAL,    /**< the device failed: close it */
	BB_EVENT_SRQ_LIMIT,    /**< an SRQ holds fewer receives than the limit of
				* bb_srq_modify() */
	BB_EVENT_SRQ_LAST_WQE, /**< a QP in ERR consumes no further receive of its SRQ */
	BB_EVENT_SRQ_ERROR,    /**< the SRQ is unusable: create it and its QPs anew */
	BB_EVENT_PORT_ACTIVE,  /**< the link is up: call bb_qp_recover() for QPs that failed
				* while the link was down */
	BB_EVENT_PORT_DOWN,    /**< the link is down: requests are retried until they time out */
	BB_EVENT_QP_COMM_EST,  /**< a QP in RTR has received its first message */
	BB_EVENT_QP_PATH_MIG,  /**< QP migrated to its alternate path */
	BB_EVENT_QP_PATH_MIG_ERR, /**< migration to the alternate path failed */
};

/** An asynchronous event and the object that it concerns. */
struct bb_event {
	uint32_t size; /**< bytes of the caller's struct; set by bb_event_get() */
	enum bb_event_type type;
	struct bb_cq *cq;   /**< CQ of the event; valid only in CQ events */
	struct bb_qp *qp;   /**< QP of the event; valid only in QP events and in
			     * BB_EVENT_SRQ_LAST_WQE */
	uint32_t port;      /**< port of the event; valid only in port events */
	struct bb_srq *srq; /**< SRQ of the event; valid only in SRQ events */
};

/** Implements bb_event_get(), which sets the struct's size. Call bb_event_get() instead. */
int bb_event_get_v(struct bb_dev *dev, struct bb_event *event);

/**
 * Consumes one asynchronous event. Never blocks.
 * @return 0; -EAGAIN if no event is pending.
 */
static inline int
bb_event_get(struct bb_dev *dev, struct bb_event *event)
{
	if (event != NULL)
		event->size = sizeof(*event);
	return bb_event_get_v(dev, event);
}

/** Returns the name of an event type, for logs. */
const char *bb_event_name(enum bb_event_type type);

/**
 * Runs a software device with progress=inline once for the queues of the calling lcore. A thread
 * that waits without polling a CQ must call this function. On other devices the call has no effect.
 */
void bb_dev_progress(struct bb_dev *dev);

/**
 * Reads the clock that stamps completions (bb_cq_poll_ts()). The clock is a free-running 64-bit
 * counter, the same for all queues of the device. Time stamps a and b are (b - a) / hz seconds
 * apart. The clock is unrelated to the time of day.
 * @param hz ticks per second; may be NULL.
 * @param now the clock's value; may be NULL.
 * @return 0; -ENOTSUP if the device has no clock that can be read.
 */
int bb_dev_clock(struct bb_dev *dev, uint64_t *hz, uint64_t *now);

/** Device-wide statistics. Hardware counters are 0 unless the device has bb_dev_attr::counters. */
struct bb_dev_stats {
	uint32_t size; /**< bytes of the caller's struct; set by bb_dev_stats() */
	uint64_t rx_write, rx_read, rx_atomic; /**< WRITEs, READs and atomics of peers that the
						* device executed */
	uint64_t out_of_buffer;                /**< RNR NAKs that the device sent because no receive
						* was posted */
	uint64_t out_of_sequence, duplicate;
	uint64_t rnr_nak_retry, ack_timeout; /**< retransmissions as requester: after RNR NAKs, and
					      * after ACK timeouts */
	uint64_t remote_access_err, remote_op_err, remote_invalid_req;
	uint64_t retry_exceeded, rnr_retry_exceeded;
	uint64_t local_protection_err, local_length_err;
	uint64_t cq_overflow;
	uint64_t flushed;
	/**
	 * Congestion counters of RoCE v2, for the whole port since it came up: received packets
	 * that a switch marked (CE, RFC 3168), CNPs (congestion notification packets) sent for
	 * marked packets, and CNPs received and handled.
	 */
	uint64_t ecn_marked, cnp_sent, cnp_handled;
};

/** Implements bb_dev_stats(), which sets the struct's size. Call bb_dev_stats() instead. */
int bb_dev_stats_v(struct bb_dev *dev, struct bb_dev_stats *stats);

/** Reads the statistics of the device. Each value is the sum over the device's counter sets. */
static inline int
bb_dev_stats(struct bb_dev *dev, struct bb_dev_stats *stats)
{
	if (stats != NULL)
		stats->size = sizeof(*stats);
	return bb_dev_stats_v(dev, stats);
}

/** Layer of a device at which a packet was dropped. */
enum bb_drop_layer {
	BB_DROP_PORT, /**< Ethernet, IP or UDP layer: the frame is not RoCE, is for another host, or
		       * is damaged */
	BB_DROP_ROCE, /**< RoCE layer: the RoCEv2 engine rejected the packet */
};

/**
 * One reason for which a device drops received packets without a NAK, and the number of such drops.
 */
struct bb_dev_drop {
	uint32_t size; /**< bytes of the caller's struct; set by bb_dev_drops() */
	enum bb_drop_layer layer;
	const char *reason; /**< name of the reason in telemetry; valid until the process ends */
	uint64_t count;     /**< packets since the device was opened */
};

/** Implements bb_dev_drops(), which sets the struct's size. Call bb_dev_drops() instead. */
int bb_dev_drops_v(struct bb_dev *dev, struct bb_dev_drop *drops, unsigned int n);

/**
 * Reads the drop counters, one for each reason. Only the software device has drop counters. Reasons
 * of BB_DROP_PORT are listed only if the device has an ethdev (option port=). May be called from
 * any thread, also while other threads poll.
 * @param drops array of @p n entries. Reasons with count 0 are written, too. NULL, with @p n 0, if
 * only the return value is needed.
 * @return the number of reasons, which may exceed @p n; -ENOTSUP if the device does not count
 * drops.
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
