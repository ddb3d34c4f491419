/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Connections: listen, connect, accept, reject, disconnect, recover.
 *
 * A connection manager (CM) moves queue pairs of the application to RTS. The CM finds the peer by a
 * TCP address, through librdmacm, or by the messages of librdmacm. Names and roles follow man
 * rdma_cm. One side connects. Its peer gets BB_CM_CONNECT_REQUEST and accepts or rejects. Both
 * sides get BB_CM_ESTABLISHED. doc/guides/api/connect.rst has the sequence, the TCP message and a
 * table for programs written for librdmacm.
 *
 * Threads: a CM, its listeners, its connections and their QPs belong to one thread, the owner of
 * the QPs. Make all calls of this header from that thread. No call waits, except that recovery may
 * wait for a flush (bb_qp_recover()). bb_cm_poll() resolves the MAC of a peer's GID in the
 * background: before it reports a connection request, and before a reply moves the QP to RTS.
 *
 * Ownership: a connection belongs to the application from the call or event that returned it until
 * bb_conn_destroy(), which the application must call in every case. A connection owns its QP from
 * bb_conn_connect() or bb_conn_accept() until the connection is closed (BB_CONN_CLOSED) or
 * destroyed. Until then bb_conn_connect(), bb_conn_accept(), bb_qp_connect(), bb_qp_recover() and
 * bb_qp_destroy() of that QP return -EBUSY.
 *
 * Times are in milliseconds. Calls return 0 or -errno as in bb_dev.h. A failure after the call has
 * returned is reported as an event with a status and a text (bb_cm_event.why), and is not logged.
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

/** Transport of the messages that establish a connection. */
enum bb_cm_transport {
	BB_CM_TCP,    /**< messages over a TCP connection: doc/guides/api/connect.rst */
	BB_CM_RDMACM, /**< librdmacm, which does not create the QPs (man rdma_connect: qp_num) */
	/**
	 * The messages of librdmacm (IBTA vol. 1, chapter 12 and annex A11), sent by the library
	 * through QP1 of a RoCE device of the software driver. Any librdmacm program can be the
	 * peer.
	 */
	BB_CM_IB,
	BB_CM_RDMA, /**< BB_CM_IB if the device supports it, otherwise BB_CM_RDMACM */
};

/** Attributes of a connection manager (CM). */
struct bb_cm_attr {
	uint32_t size; /**< set by bb_cm_attr_init() */
	enum bb_cm_transport transport;
	uint32_t max_conns; /**< maximum connections; half-open connections are not included */
	/** maximum incoming connections whose request, or whose peer's MAC, is not known yet */
	uint32_t max_half_open;
	uint32_t half_open_ms; /**< time limit of a half-open connection */
	/**
	 * Interval between checks of the sockets in microseconds; 0 checks at every bb_cm_poll().
	 */
	uint32_t poll_us;
};

/**
 * Sets the defaults: TCP, 65536 connections, 256 half-open connections with a limit of 5 s, and a
 * check of the sockets every 50 us.
 */
void bb_cm_attr_init(struct bb_cm_attr *attr);

/**
 * Creates a CM for the QPs of a device. A process can have several CMs.
 * @return 0; -EINVAL for invalid attributes; -ENOMEM; -EMFILE. -ENOTSUP in these cases: librdmacm
 * is not built in or does not support the device, the transport is TCP and the device is an iWARP
 * device, the transport is BB_CM_IB and the library does not have QP1 of the device or its port is
 * not Ethernet, or the caller is a child of the process that opened the device. With BB_CM_IB also
 * -EBUSY if QP1 is in use.
 */
int bb_cm_create(struct bb_dev *dev, const struct bb_cm_attr *attr, struct bb_cm **cm);

/**
 * Destroys the CM. Returns -EBUSY while the CM has listeners or connections or is attached to a
 * loop.
 */
int bb_cm_destroy(struct bb_cm *cm);

/**
 * Returns a file descriptor that is readable if bb_cm_poll() has work or an event, including events
 * that the application's own calls cause. Neither a timeout nor a QP that went to ERR makes the
 * descriptor readable, so applications that rely on timeouts or recover_ms must also poll at
 * intervals. So must those that listen while the process may run out of file descriptors. With
 * BB_CM_IB the descriptor is always readable, because only polls receive messages.
 */
int bb_cm_fd(const struct bb_cm *cm);

/** Types of events that bb_cm_poll() returns. */
enum bb_cm_event_type {
	/**
	 * A peer requests a connection; the event has the new connection. Call bb_conn_accept() or
	 * bb_conn_reject() for it.
	 */
	BB_CM_CONNECT_REQUEST,
	/** The connection is established: both QPs are in RTS. */
	BB_CM_ESTABLISHED,
	/**
	 * The peer, or its CM, has rejected the connection. The field reason has the cause. The
	 * accepting side can get this event instead of ESTABLISHED. While a connection is LOST, the
	 * side that connects again can get it, too, except for the reasons BB_REJECT_GID and
	 * BB_REJECT_TIMEOUT. Recovery then ends before recover_ms has passed. Destroy the
	 * connection.
	 */
	BB_CM_REJECTED,
	/**
	 * The connection could not be established; the field status has the cause. Destroy the
	 * connection.
	 */
	BB_CM_FAILED,
	/**
	 * The connection is closed. The field status is 0 if one side has disconnected, otherwise
	 * the cause as -errno. A QP that goes to ERR by itself does not close the connection unless
	 * recover_ms is set: after an error completion, call bb_conn_disconnect(). The QP is in
	 * ERR. If the connection was LOST, the QP is in RESET, or
	 * in ERR if this side had just replied to the peer's connection request. Destroy the
	 * connection.
	 */
	BB_CM_DISCONNECTED,
	/**
	 * The connection broke and is being recovered (@ref bb_conn_param.recover_ms). The QP is in
	 * RESET; the field ends has the fate of each request of the QP (bb_recover.h). Post
	 * receives again after BB_CM_RECOVERED.
	 *
	 * A second LOST event follows if recovery starts again after this side has replied to the
	 * peer's connection request. It is reported only if there are new fates: of requests posted
	 * since the previous LOST event, or of a message that consumed a receive of an SRQ.
	 */
	BB_CM_LOST,
	/** The connection is recovered: both QPs are in RTS again. */
	BB_CM_RECOVERED,
};

/** Returns the name of an event, such as "connect request". */
const char *bb_cm_event_name(enum bb_cm_event_type type);

/** Reasons for a rejection; the numbers are those of IBTA vol. 1, 12.6.7.2. */
enum bb_reject_reason {
	BB_REJECT_NO_RESOURCES = 3,
	BB_REJECT_TIMEOUT = 4,
	BB_REJECT_UNSUPPORTED = 5,
	BB_REJECT_NO_LISTENER = 8,
	BB_REJECT_QP_TYPE = 9,
	BB_REJECT_STALE = 10,
	BB_REJECT_GID = 12,      /**< the GID of the connecting side cannot be resolved. With
				  * BB_CM_IB also: the request names other addresses than its packet */
	BB_REJECT_CONSUMER = 28, /**< the application called bb_conn_reject() */
	BB_REJECT_VERSION = 31,  /**< the peer uses a different version of the TCP messages */
};

/**
 * Returns the name of a rejection reason, such as "consumer reject"; "reason" for numbers that enum
 * bb_reject_reason does not list.
 */
const char *bb_reject_name(uint32_t reason);

/**
 * An event of a connection. The pointers in it are valid until the next bb_cm_poll() or
 * bb_conn_destroy().
 */
struct bb_cm_event {
	uint32_t size; /**< bytes of the caller's struct; set by bb_cm_poll() */
	enum bb_cm_event_type type;
	int status; /**< 0, or the cause of REJECTED, FAILED, DISCONNECTED or LOST as -errno */
	struct bb_conn *conn;
	/**
	 * valid only for CONNECT_REQUEST; NULL if the listener has been destroyed, or after
	 * bb_conn_migrate()
	 */
	struct bb_listener *listener;
	const char *why; /**< cause of the event as one sentence, never NULL */
	uint32_t reason; /**< valid only for REJECTED: enum bb_reject_reason */
	/**
	 * With CONNECT_REQUEST, true if the peer resumes a connection that this CM does not have
	 * any more: this process has restarted, or has ended the connection. With RECOVERED, true
	 * if the peer has accepted such a request, so the peer's memory and keys may be new.
	 */
	bool restarted;
	const void *private_data; /**< private_len bytes that the peer sent */
	uint32_t private_len;
	/**
	 * Requests whose completions were not polled, in order. Valid for LOST, and for
	 * DISCONNECTED if the connection ended before the application polled LOST. Otherwise nends
	 * is 0.
	 */
	const struct bb_wr_end *ends;
	uint32_t nends;
	/**
	 * fate of all requests whose flush errors the application polled before the event; valid
	 * for LOST
	 */
	enum bb_wr_fate flushed;
};

/** Implementation of bb_cm_poll(), which applications call instead. */
unsigned int bb_cm_poll_v(struct bb_cm *cm, struct bb_cm_event *event, unsigned int n);

/**
 * Runs the CM and writes up to @p n events. Never waits. Runs the software device while connections
 * are being established. A call returns at most one event per connection. After you destroy a
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

/**
 * Event callback of a loop. The callback may destroy connections and detach the CM, but must not
 * destroy the CM.
 */
typedef void (*bb_cm_fn)(struct bb_cm *cm, const struct bb_cm_event *event, void *arg);

/**
 * Attaches the CM to a loop: the loop polls the CM and calls @p fn for each event. The lcore of the
 * loop must own the QPs. Call bb_cm_detach() before you destroy the loop or the CM.
 * @return 0; -EALREADY if the CM is attached; errors of bb_loop_attach_poller().
 */
int bb_cm_attach(struct bb_cm *cm, struct bb_loop *loop, bb_cm_fn fn, void *arg);

/**
 * Undoes bb_cm_attach(). The loop does not call the callback again, even if the callback itself
 * calls bb_cm_detach().
 * @return 0; -ENOENT if the CM is not attached; errors of bb_loop_detach_poller().
 */
int bb_cm_detach(struct bb_cm *cm);

/**
 * Parses an address: "192.0.2.1:18515", "[2001:db8::1]:18515", or ":18515" for all addresses of the
 * machine. Does not resolve names, because that would wait: use getaddrinfo().
 * @return 0 or -EINVAL.
 */
int bb_cm_addr(const char *text, struct sockaddr_storage *addr);

/**
 * Creates a listener.
 * @param addr IPv4 or IPv6; port 0 selects any free port. With BB_CM_IB the address must be a GID
 * of the device, or 0.0.0.0 or :: for all of them.
 * @return 0; -EADDRINUSE, -EADDRNOTAVAIL and other errors of man 2 bind; -ENOMEM.
 */
int bb_listener_create(struct bb_cm *cm, const struct sockaddr *addr,
		       struct bb_listener **listener);

/** Returns the port on which the listener listens. */
uint16_t bb_listener_port(const struct bb_listener *listener);

/**
 * Destroys a listener and its half-open connections. Connections that were reported to the
 * application are not changed. But a lost connection that was accepted is recovered only while
 * there is a listener at the same address.
 */
int bb_listener_destroy(struct bb_listener *listener);

/** Parameters of one side of a connection (man rdma_connect: struct rdma_conn_param). */
struct bb_conn_param {
	uint32_t size;            /**< set by bb_conn_param_init() */
	const void *private_data; /**< copied by the call */
	/** maximum with TCP: 1024; with librdmacm and BB_CM_IB: 56 to connect, 196 to accept */
	uint32_t private_len;
	/** regions that the peer may access; copied by the call; TCP only */
	const struct bb_region *regions;
	uint32_t nregions; /**< number of entries of regions, at most BB_REGION_MAX */
	/** maximum outstanding READs and atomics that this side posts */
	uint8_t initiator_depth;
	/** maximum outstanding READs and atomics of the peer that this side executes */
	uint8_t responder_resources;
	/** 0 to 7; the connecting side's value applies to both sides */
	uint8_t retry_count;
	/** maximum retries by the peer after an RNR NAK of this side: 0 to 6; 7: no limit */
	uint8_t rnr_retry_count;
	/**
	 * Time that the peer must wait after an RNR NAK of this side; coded as min_rnr_timer in
	 * ibv_modify_qp, 0 to 31.
	 */
	uint8_t min_rnr_timer;
	/**
	 * Ack timeout of this side's QP: 4.096 us << ack_timeout, up to 31; 0: no timeout. Not used
	 * with librdmacm, which takes the timeout from the path; with RoCE it is 19 (2 s). With
	 * BB_CM_IB the accepting side uses the connecting side's value, at most 22,
	 * unless that value is 0.
	 */
	uint8_t ack_timeout;
	/**
	 * Maximum path MTU in bytes, at least 256, rounded down to a valid MTU; 0: the MTU of the
	 * ports. librdmacm does not send the value to the peer, so set the same value on both
	 * sides. With BB_CM_IB both sides use the connecting side's value.
	 */
	uint32_t path_mtu;
	uint32_t access;     /**< access rights for the peer: enum bb_access REMOTE_* */
	struct bb_path path; /**< only port, traffic class, hop limit and sl are used */
	/** true: use path.sgid_index; false: the field gid selects the GID */
	bool sgid_index_given;
	struct bb_gid_want gid;
	uint32_t timeout_ms; /**< time limit for each reply of the peer */
	/**
	 * Time limit to recover a broken connection; 0: do not recover. Both sides must set a
	 * value. A connection is broken if the QP is in ERR, if the TCP connection is lost, or
	 * after bb_conn_recover(). Not supported with librdmacm and BB_CM_IB: -ENOTSUP.
	 */
	uint32_t recover_ms;
	/** wait before the first recovery attempt; doubles up to backoff_max_ms */
	uint32_t backoff_min_ms;
	uint32_t backoff_max_ms;
};

/**
 * Sets the defaults: no private data, 16 outstanding READs in each direction, 7 retries, unlimited
 * RNR retries with a wait of 0.01 ms, and ack timeout 14 (67 ms). The peer gets no access rights.
 * The path uses port 1 and any GID. The time limit is 10 s per reply. Recovery is off; its attempts
 * would be 10 ms to 1 s apart.
 */
void bb_conn_param_init(struct bb_conn_param *param);

/**
 * Starts to connect a QP to the listener at @p addr. The CM then reports ESTABLISHED, REJECTED or
 * FAILED.
 * @param qp RC or UC QP of the CM's device, in RESET; receives may be posted already. On iWARP: RC,
 * in RESET or INIT. The connection owns the QP until the connection is closed.
 * @return 0; -EINVAL for an invalid parameter or QP; -EBUSY if a connection owns the QP; -ENOENT or
 * -ENOTUNIQ of bb_gid_choose(); -EMSGSIZE for too much private data or too many regions; -ENOTSUP
 * for regions with librdmacm or BB_CM_IB; -ENOSPC if the CM has max_conns connections; -EMFILE;
 * -ENOMEM.
 */
int bb_conn_connect(struct bb_cm *cm, const struct sockaddr *addr, struct bb_qp *qp,
		    const struct bb_conn_param *param, struct bb_conn **conn);

/**
 * Accepts a CONNECT_REQUEST. On success the QP is in RTS when the function returns, and ESTABLISHED
 * follows. initiator_depth and responder_resources are limited to the peer's values.
 *
 * Post receives before this call, and before bb_conn_connect() if the server sends first. An RC
 * peer that finds no receive gets an RNR NAK and retries. iWARP has no RNR NAK, so a SEND without a
 * receive breaks the connection.
 * @return as bb_conn_connect(). -EAGAIN if the MAC of the peer's GID is being resolved: poll, and
 * call again. This happens if the request has waited for a minute, or if @p param selects a GID
 * other than the default and other than that of the listener's last accept. -ENOTCONN if the peer
 * is lost. -EPROTOTYPE if one QP is RC and the other UC. -EPROTO with BB_CM_IB if the peer requests
 * a larger path MTU than this side allows. Errors of bb_qp_connect(). After an error you can call
 * again or reject. If the QP is then in RESET, post its receives again.
 */
int bb_conn_accept(struct bb_conn *conn, struct bb_qp *qp, const struct bb_conn_param *param);

/**
 * Rejects a CONNECT_REQUEST and sends the peer a rejection with up to 1024 bytes of private data,
 * 148 bytes with librdmacm and BB_CM_IB. Then destroy the connection.
 * @return 0; -EINVAL if the connection is not in state REQUESTED; -EMSGSIZE for too much private
 * data; -ENOTCONN if the peer is lost.
 */
int bb_conn_reject(struct bb_conn *conn, const void *private_data, uint32_t private_len);

/**
 * Moves a CONNECT_REQUEST to another CM of the same device (man rdma_migrate_id), so that one
 * listener serves queues of several threads. @p to then reports CONNECT_REQUEST with a new
 * connection, the same private data and the listener NULL, and its thread answers. Call from the
 * thread of the connection's CM. Another thread may poll @p to at the same time, but must not
 * destroy it. The time limit of the peer's request does not start again.
 * @return 0: @p conn is destroyed; -EINVAL if the connection is not in state REQUESTED, or @p to is
 * the CM of the connection or belongs to another device or transport; -ENOTSUP if the transport is
 * not BB_CM_IB; -ENOTCONN if the peer is lost; -ENOSPC if attr.max_half_open requests wait in @p
 * to. After an error the connection is unchanged.
 */
int bb_conn_migrate(struct bb_conn *conn, struct bb_cm *to);

/**
 * Disconnects. Moves the QP to ERR, flushes its posted requests and informs the peer; DISCONNECTED
 * follows. To complete the requests instead, call bb_qp_drain() first. Also aborts a connection
 * that is being established or recovered. Sends up to 1024 bytes of private data, 220
 * with BB_CM_IB, none with librdmacm.
 * @return 0; -EMSGSIZE for too much private data; -ENOTCONN if the connection is already closed;
 * -EINVAL if the connection is in state REQUESTED: call bb_conn_reject().
 */
int bb_conn_disconnect(struct bb_conn *conn, const void *private_data, uint32_t private_len);

/**
 * Frees the connection. If the connection is not closed, the peer detects a broken connection. The
 * QP is not changed.
 */
void bb_conn_destroy(struct bb_conn *conn);

/**
 * Recovers an established connection before the CM has detected a loss, for example after
 * BB_EVENT_PORT_ACTIVE. LOST follows.
 * @return 0; -EINVAL if recover_ms was 0 on one side; -ENOTCONN if the connection is not
 * established; -EBUSY if an event of the connection is pending: call bb_cm_poll() first.
 */
int bb_conn_recover(struct bb_conn *conn);

/** States of a connection. */
enum bb_conn_state {
	BB_CONN_CONNECTING,
	BB_CONN_REQUESTED, /**< waits for bb_conn_accept() or bb_conn_reject() */
	BB_CONN_ACCEPTED,
	BB_CONN_ESTABLISHED,
	BB_CONN_DISCONNECTING,
	BB_CONN_LOST, /**< broken and being recovered */
	BB_CONN_CLOSED,
};

/** State, peer and negotiated parameters of a connection. */
struct bb_conn_info {
	uint32_t size; /**< bytes of the caller's struct; set by bb_conn_query() */
	enum bb_conn_state state;
	struct bb_qp *qp; /**< NULL before bb_conn_accept() */
	char peer[64];    /**< address and port of the peer, in the format of bb_cm_addr() */
	/** address of the peer's QP; zero until the peer has sent it; always zero with librdmacm */
	struct bb_qp_addr remote;
	/** Values that the peer sent, from its bb_conn_param. */
	uint8_t peer_initiator_depth, peer_responder_resources;
	uint8_t peer_retry_count, peer_rnr_retry_count;
	uint32_t peer_sq_depth, peer_rq_depth; /**< depths of the peer's queues; 0 without TCP */
	bool peer_srq;
	/** true if both sides set recover_ms, so a broken connection is recovered */
	bool recoverable;
	/** Negotiated values that the QP uses. */
	uint8_t initiator_depth, responder_resources;
	uint32_t path_mtu;
	uint8_t sgid_index;
	uint32_t recoveries; /**< number of successful recoveries */
	uint32_t tries;      /**< number of attempts of the last or current recovery */
};

/** Implementation of bb_conn_query(), which applications call instead. */
void bb_conn_query_v(const struct bb_conn *conn, struct bb_conn_info *info);

/** Returns information on a connection in @p info. */
static inline void
bb_conn_query(const struct bb_conn *conn, struct bb_conn_info *info)
{
	if (info != NULL)
		info->size = sizeof(*info);
	bb_conn_query_v(conn, info);
}

/**
 * Looks up a region that the peer has named. After a RECOVERED event with the flag restarted, the
 * region is the one that the restarted peer sent.
 * @return 0; -ENOENT if the peer has no region of that name.
 */
int bb_conn_region(const struct bb_conn *conn, const char *name, struct bb_region *region);

/** Sets the pointer that bb_conn_user() returns. */
void bb_conn_user_set(struct bb_conn *conn, void *user);
/** Returns the pointer of bb_conn_user_set(); NULL if it was not called. */
void *bb_conn_user(const struct bb_conn *conn);

/** Counters of a CM since its creation, and its current numbers of connections. */
struct bb_cm_stats {
	uint32_t size;      /**< bytes of the caller's struct; set by bb_cm_stats() */
	uint32_t conns;     /**< current number of connections in all states */
	uint32_t half_open; /**< incoming connections whose request, or MAC, is not known yet */
	uint64_t established;
	uint64_t recovered;
	uint64_t rejected;     /**< connection requests that this side rejected */
	uint64_t bad_messages; /**< received messages that the decoder refused */
	uint64_t timeouts;     /**< timeouts of half-open connections and of replies of the peer */
	/** half-open connections that were closed to make room for new ones */
	uint64_t evicted;
};

/** Implementation of bb_cm_stats(), which applications call instead. */
void bb_cm_stats_v(const struct bb_cm *cm, struct bb_cm_stats *stats);

/** Returns the counters of a CM in @p stats. */
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
