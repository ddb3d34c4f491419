/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Connections: listen, connect, accept, reject, disconnect, recover.
 *
 * A connection manager (CM) brings queue pairs of the application to RTS. It finds the peer by a
 * TCP address or through librdmacm. Names and roles follow man rdma_cm. One side connects. The
 * other gets BB_CM_CONNECT_REQUEST and accepts or rejects. Both get BB_CM_ESTABLISHED.
 * doc/guides/connect.rst has the sequence, the TCP message and a table for programs written for
 * librdmacm.
 *
 * Threads: a CM, its listeners, its connections and their QPs belong to one thread, the owner of
 * the QPs. Make all calls of this header from it. No call waits, except for a flush in recovery
 * (bb_qp_recover()). bb_cm_poll() resolves the address of a peer's GID in the background: before it
 * reports a request, and before an answer brings the QP up.
 *
 * Ownership: a connection belongs to the application from the call or event that returned it until
 * bb_conn_destroy(), which the application must call in every case. A connection owns its QP from
 * bb_conn_connect() or bb_conn_accept() until it is over (BB_CONN_CLOSED) or destroyed. Until then
 * bb_conn_connect(), bb_conn_accept(), bb_qp_connect(), bb_qp_recover() and bb_qp_destroy() of that
 * QP return -EBUSY.
 *
 * Times are in milliseconds. Calls return 0 or -errno as in bb_dev.h. Later failures arrive as an
 * event with a status, and the log has a line.
 */
#ifndef BB_CONNECT_H
#define BB_CONNECT_H

#include "bb_gid.h"
#include "bb_loop.h"
#include "bb_qp.h"
#include "bb_recover.h"
#include "bb_region.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sockaddr;
struct sockaddr_storage;
struct bb_cm;
struct bb_listener;
struct bb_conn;

/** How two sides find each other. */
enum bb_cm_transport {
	BB_CM_TCP,    /**< messages over a TCP connection: doc/guides/connect.rst */
	BB_CM_RDMACM, /**< librdmacm, with QPs that it does not know (man rdma_connect: qp_num) */
};

/** Attributes of a CM. */
struct bb_cm_attr {
	uint32_t size; /**< set by bb_cm_attr_init() */
	enum bb_cm_transport transport;
	uint32_t max_conns; /**< maximum connections; half-open ones do not count */
	uint32_t
		max_half_open; /**< maximum incoming connections that have not sent a request yet */
	uint32_t half_open_ms; /**< maximum age of such a connection */
	/** Interval between checks of the sockets, in microseconds; 0: at every bb_cm_poll(). */
	uint32_t poll_us;
};

/** Sets the defaults: TCP, 65536 connections, 256 half-open ones of 5 s, sockets every 50 us. */
void bb_cm_attr_init(struct bb_cm_attr *attr);

/**
 * Creates a CM for the QPs of a device. A process can have several.
 * @return 0; -EINVAL for invalid attributes; -ENOTSUP if librdmacm is not built in or does not know
 * the device, for TCP with an iWARP device, or in a child of the process that opened the device;
 * -ENOMEM; -EMFILE.
 */
int bb_cm_create(struct bb_dev *dev, const struct bb_cm_attr *attr, struct bb_cm **cm);

/**
 * Destroys the CM. Returns -EBUSY while it has listeners or connections or is attached to a loop.
 */
int bb_cm_destroy(struct bb_cm *cm);

/**
 * Returns a descriptor that is readable if bb_cm_poll() has work or an event, including events of
 * the application's own calls. It does not show timeouts, nor a QP that went to ERR: with timeouts
 * and recover_ms poll at intervals too.
 */
int bb_cm_fd(const struct bb_cm *cm);

/** Types of events. */
enum bb_cm_event_type {
	/** A peer wants to connect; a new connection. Call bb_conn_accept() or bb_conn_reject(). */
	BB_CM_CONNECT_REQUEST,
	/** Both QPs are in RTS. */
	BB_CM_ESTABLISHED,
	/**
	 * The peer, or its CM, has rejected the connection: see reason. A side that has accepted
	 * can get it too, in place of ESTABLISHED. So can a LOST connection whose side connects
	 * again; recovery then ends, whatever is left of recover_ms. Destroy the connection.
	 */
	BB_CM_REJECTED,
	/** The connection was never established: see status. Destroy the connection. */
	BB_CM_FAILED,
	/**
	 * The connection is over. Status 0: one side has disconnected; otherwise the reason. The QP
	 * is in ERR. If the connection was LOST the QP is in RESET, or in ERR if the peer's request
	 * had just been answered. Destroy the connection.
	 */
	BB_CM_DISCONNECTED,
	/**
	 * The connection broke and is being recovered (@ref bb_conn_param.recover_ms). The QP is in
	 * RESET; ends has the fate of its requests. Post receives again after BB_CM_RECOVERED. The
	 * event repeats if this side has answered, the peer goes or connects again, and there are
	 * new fates to report. Such fates are those of requests posted meanwhile, or of a message
	 * that consumed a receive of an SRQ.
	 */
	BB_CM_LOST,
	/** The connection is recovered: both QPs are in RTS again. */
	BB_CM_RECOVERED,
};

/** Returns the name of an event, such as "connect request". */
const char *bb_cm_event_name(enum bb_cm_event_type type);

/** Reasons of a rejection; numbers of IBTA vol. 1, 12.6.7.2. */
enum bb_reject_reason {
	BB_REJECT_NO_RESOURCES = 3,
	BB_REJECT_TIMEOUT = 4,
	BB_REJECT_UNSUPPORTED = 5,
	BB_REJECT_NO_LISTENER = 8,
	BB_REJECT_QP_TYPE = 9,
	BB_REJECT_STALE = 10,
	BB_REJECT_GID = 12,      /**< the connecting side's GID does not answer */
	BB_REJECT_CONSUMER = 28, /**< the application called bb_conn_reject() */
	BB_REJECT_VERSION = 31,  /**< the peer has a different version of the messages */
};

/**
 * Returns the name of a reason, such as "consumer reject"; "reason" for numbers not listed above.
 */
const char *bb_reject_name(uint32_t reason);

/** An event. Its pointers are valid until the next bb_cm_poll() or bb_conn_destroy(). */
struct bb_cm_event {
	uint32_t size; /**< bytes of the caller's struct; set by bb_cm_poll() */
	enum bb_cm_event_type type;
	int status; /**< 0 or -errno */
	struct bb_conn *conn;
	struct bb_listener *listener; /**< CONNECT_REQUEST; NULL if it has been destroyed */
	const char *why;              /**< one sentence, never NULL */
	uint32_t reason;              /**< REJECTED: enum bb_reject_reason */
	/**
	 * CONNECT_REQUEST: the peer resumes a connection that this process does not know, because
	 * this process has restarted. RECOVERED: the peer has restarted; its memory and keys are
	 * new.
	 */
	bool restarted;
	const void *private_data; /**< private data that the peer sent */
	uint32_t private_len;
	const struct bb_wr_end *ends; /**< LOST: requests that no poll has reported, in order */
	uint32_t nends;
	enum bb_wr_fate flushed; /**< LOST: meaning of flush errors already polled */
};

/** Use bb_cm_poll(). */
unsigned int bb_cm_poll_v(struct bb_cm *cm, struct bb_cm_event *event, unsigned int n);

/**
 * Runs the CM and returns up to @p n events. Never waits. Runs the software device while
 * connections are being established. Each event is of a different connection. After you destroy a
 * connection, do not use its event.
 * @return number of events written.
 */
static inline unsigned int
bb_cm_poll(struct bb_cm *cm, struct bb_cm_event *event, unsigned int n)
{
	if (n != 0 && event != NULL)
		event->size = sizeof(*event);
	return bb_cm_poll_v(cm, event, n);
}

/** Event callback of a loop. It may destroy connections and detach the CM, but not destroy it. */
typedef void (*bb_cm_fn)(struct bb_cm *cm, const struct bb_cm_event *event, void *arg);

/**
 * Makes a loop poll the CM and call @p fn for each event. The loop's lcore must own the QPs.
 * @return 0; -EALREADY; errors of bb_loop_attach_poller().
 */
int bb_cm_attach(struct bb_cm *cm, struct bb_loop *loop, bb_cm_fn fn, void *arg);

/**
 * Undoes bb_cm_attach(). @p fn is not called again, even if this is called from it.
 * @return 0; -ENOENT; errors of bb_loop_detach_poller().
 */
int bb_cm_detach(struct bb_cm *cm);

/**
 * Parses an address: "192.0.2.1:18515", "[2001:db8::1]:18515", or ":18515" for all addresses of the
 * machine. Does not resolve names, which would wait: use getaddrinfo().
 * @return 0 or -EINVAL.
 */
int bb_cm_addr(const char *text, struct sockaddr_storage *addr);

/**
 * Creates a listener.
 * @param addr IPv4 or IPv6; port 0 selects any free port.
 * @return 0; -EADDRINUSE, -EADDRNOTAVAIL and others of man 2 bind; -ENOMEM.
 */
int bb_listener_create(struct bb_cm *cm, const struct sockaddr *addr,
		       struct bb_listener **listener);

/** Returns the port of the listener. */
uint16_t bb_listener_port(const struct bb_listener *listener);

/** Stops listening. Half-open connections are closed; those of the application stay. */
int bb_listener_destroy(struct bb_listener *listener);

/** Parameters of one side of a connection (man rdma_connect: struct rdma_conn_param). */
struct bb_conn_param {
	uint32_t size;            /**< set by bb_conn_param_init() */
	const void *private_data; /**< copied */
	uint32_t private_len;     /**< TCP: at most 1024; librdmacm: 56 to connect, 196 to accept */
	const struct bb_region *regions; /**< keys for the peer; copied; TCP only */
	uint32_t nregions;               /**< at most BB_REGION_MAX */
	uint8_t initiator_depth;         /**< maximum outstanding READs and atomics of this side */
	uint8_t responder_resources;     /**< maximum READs and atomics of the peer that this side
					  * accepts */
	uint8_t retry_count;             /**< 0 to 7; the connecting side's value applies to both */
	uint8_t rnr_retry_count; /**< 0 to 7, 7: no limit; retries of the peer after an RNR NAK of
				  * this side */
	/** Wait that this side's RNR NAK requests; coded as in ibv_modify_qp, 0 to 31. */
	uint8_t min_rnr_timer;
	/**
	 * Ack timeout of this side's QP: 4.096 us << ack_timeout, up to 31; 0: no timeout.
	 * librdmacm uses the value of the path, 19 (2 s) with RoCE.
	 */
	uint8_t ack_timeout;
	/**
	 * Maximum path MTU in bytes, from 256, rounded down to an MTU; 0: the ports' MTU. librdmacm
	 * does not report it to the peer: set the same value on both sides.
	 */
	uint32_t path_mtu;
	uint32_t access;       /**< access rights for the peer: enum bb_access REMOTE_* */
	struct bb_path path;   /**< port, traffic class, hop limit, sl; other fields are ignored */
	bool sgid_index_given; /**< use path.sgid_index; otherwise gid selects the GID */
	struct bb_gid_want gid;
	uint32_t timeout_ms; /**< time limit for each answer of the peer */
	/**
	 * Time limit to recover a broken connection; 0: do not recover. Both sides must set it. A
	 * connection counts as broken if the QP is in ERR, if the TCP connection is gone, or after
	 * bb_conn_recover(). Not supported with librdmacm: -ENOTSUP.
	 */
	uint32_t recover_ms;
	uint32_t backoff_min_ms; /**< pause before the first try; doubles up to backoff_max_ms */
	uint32_t backoff_max_ms;
};

/**
 * Sets the defaults: no private data, 16 READs each way, 7 retries, unlimited RNR retries at 0.01
 * ms, ack timeout 14 (67 ms), no access rights, port 1, any GID, 10 s, no recovery; back-off 10 ms
 * to 1 s.
 */
void bb_conn_param_init(struct bb_conn_param *param);

/**
 * Starts to connect a QP to the listener at @p addr. ESTABLISHED, REJECTED or FAILED follows.
 * @param qp RC or UC, in RESET, of the CM's device; its receives may be posted already. On iWARP:
 * RC, in RESET or INIT. The connection owns it until it is over.
 * @return 0; -EINVAL for an invalid parameter or QP; -EBUSY if a connection owns the QP; -ENOENT or
 * -ENOTUNIQ of bb_gid_choose(); -EMSGSIZE for too much private data or too many regions; -ENOTSUP
 * for regions with librdmacm; -ENOSPC at max_conns; -EMFILE; -ENOMEM.
 */
int bb_conn_connect(struct bb_cm *cm, const struct sockaddr *addr, struct bb_qp *qp,
		    const struct bb_conn_param *param, struct bb_conn **conn);

/**
 * Accepts a CONNECT_REQUEST. The QP is in RTS on return. ESTABLISHED follows. Depths are limited to
 * the peer's.
 *
 * Post receives before this call, and before bb_conn_connect() if the server sends first. An RC
 * peer that finds no receive gets an RNR NAK and retries. iWARP has no RNR: a SEND without a
 * receive ends the connection.
 * @return as bb_conn_connect(). -EAGAIN: the address of the peer's GID is being resolved; poll, and
 * call again. This happens if the request has waited a minute, or if @p param names an unexpected
 * GID: neither the default choice nor that of the listener's last accept. -ENOTCONN: the peer is
 * gone. -EPROTOTYPE: one QP is RC, the other UC. Errors of bb_qp_connect(). After an error you can
 * try again or reject; if the QP is then in RESET, post its receives again.
 */
int bb_conn_accept(struct bb_conn *conn, struct bb_qp *qp, const struct bb_conn_param *param);

/**
 * Rejects a CONNECT_REQUEST and informs the peer, with up to 1024 bytes of private data, 148 with
 * librdmacm. Then destroy the connection.
 * @return 0; -EINVAL in another state; -EMSGSIZE; -ENOTCONN if the peer is gone.
 */
int bb_conn_reject(struct bb_conn *conn, const void *private_data, uint32_t private_len);

/**
 * Ends a connection. The QP goes to ERR, posted requests are flushed (call bb_qp_drain() first to
 * complete them), the peer is informed, and DISCONNECTED follows. Gives up a connection that is
 * being established or recovered. Up to 1024 bytes of private data, none with librdmacm.
 * @return 0; -EMSGSIZE for too much private data; -ENOTCONN if it is over already.
 */
int bb_conn_disconnect(struct bb_conn *conn, const void *private_data, uint32_t private_len);

/** Frees the connection. If it is not over, its peer sees it break. The QP is left unchanged. */
void bb_conn_destroy(struct bb_conn *conn);

/**
 * Recovers an established connection although the CM has not detected a loss, for example after
 * BB_EVENT_PORT_ACTIVE. LOST follows.
 * @return 0; -EINVAL if recover_ms was 0 on one side; -ENOTCONN if it is not established; -EBUSY if
 * one of its events waits: call bb_cm_poll() first.
 */
int bb_conn_recover(struct bb_conn *conn);

/** States of a connection. */
enum bb_conn_state {
	BB_CONN_CONNECTING,
	BB_CONN_REQUESTED, /**< waits for accept or reject */
	BB_CONN_ACCEPTED,
	BB_CONN_ESTABLISHED,
	BB_CONN_DISCONNECTING,
	BB_CONN_LOST, /**< being recovered */
	BB_CONN_CLOSED,
};

/** Information on a connection. */
struct bb_conn_info {
	uint32_t size; /**< bytes of the caller's struct; set by bb_conn_query() */
	enum bb_conn_state state;
	struct bb_qp *qp; /**< NULL before accept */
	char peer[64];    /**< its address and port, in the format of bb_cm_addr() */
	struct bb_qp_addr
		remote; /**< zero until the peer has sent it; always zero with librdmacm */
	/** Values that the peer sent: */
	uint8_t peer_initiator_depth, peer_responder_resources;
	uint8_t peer_retry_count, peer_rnr_retry_count;
	uint32_t peer_sq_depth, peer_rq_depth; /**< 0 with librdmacm */
	bool peer_srq;
	bool comes_back; /**< both sides want recovery */
	/** Values in force: */
	uint8_t initiator_depth, responder_resources;
	uint32_t path_mtu;
	uint8_t sgid_index;
	uint32_t recoveries; /**< number of successful recoveries */
	uint32_t tries;      /**< tries of the last or current recovery */
};

/** Use bb_conn_query(). */
void bb_conn_query_v(const struct bb_conn *conn, struct bb_conn_info *info);

/** Reads the information. */
static inline void
bb_conn_query(const struct bb_conn *conn, struct bb_conn_info *info)
{
	if (info != NULL)
		info->size = sizeof(*info);
	bb_conn_query_v(conn, info);
}

/**
 * Looks up a region that the peer has named. After RECOVERED with restarted: the peer's new region.
 * @return 0; -ENOENT.
 */
int bb_conn_region(const struct bb_conn *conn, const char *name, struct bb_region *region);

/** Sets the application's pointer. */
void bb_conn_user_set(struct bb_conn *conn, void *user);
/** Returns the application's pointer, NULL if it was not set. */
void *bb_conn_user(const struct bb_conn *conn);

/** Counters of a CM. */
struct bb_cm_stats {
	uint32_t size;      /**< bytes of the caller's struct; set by bb_cm_stats() */
	uint32_t conns;     /**< existing connections in all states */
	uint32_t half_open; /**< incoming connections that have not sent a request yet */
	uint64_t established;
	uint64_t recovered;
	uint64_t rejected;     /**< by this side */
	uint64_t bad_messages; /**< messages that the decoder refused */
	uint64_t timeouts;     /**< timeouts of half-open connections and of answers */
	uint64_t evicted;      /**< half-open connections closed to make room */
};

/** Use bb_cm_stats(). */
void bb_cm_stats_v(const struct bb_cm *cm, struct bb_cm_stats *stats);

/** Reads the counters. */
static inline void
bb_cm_stats(const struct bb_cm *cm, struct bb_cm_stats *stats)
{
	if (stats != NULL)
		stats->size = sizeof(*stats);
	bb_cm_stats_v(cm, stats);
}

#ifdef __cplusplus
}
#endif

#endif
