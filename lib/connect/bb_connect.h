/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/**
 * @file
 * Connections: listen, connect, accept, reject, disconnect, and coming back.
 *
 * A connection manager (CM) brings queue pairs that the application has created to RTS, with a
 * peer it finds by a TCP address or through librdmacm. Names follow man rdma_cm, and so does
 * who says what: one side connects; the other gets BB_CM_CONNECT_REQUEST and accepts or
 * rejects; both get BB_CM_ESTABLISHED. doc/guides/connect.rst has the course of it, the message
 * over TCP and a table for programs written to librdmacm.
 *
 * Threads: a CM, its listeners, its connections and their QPs belong to one thread, the owner of
 * the QPs. All calls of this header are made there. Nothing here waits, but for a flush in recovery
 * (bb_qp_recover()). The address behind a peer's GID is asked for by bb_cm_poll(), which goes on
 * meanwhile: before a request is reported, and before an answer brings the QP up.
 *
 * Ownership: a connection is the application's from the call or event that gave it until
 * bb_conn_destroy(), which it owes in every case. A connection owns its QP from bb_conn_connect()
 * or bb_conn_accept() until it is over (BB_CONN_CLOSED) or destroyed. Until then bb_conn_connect(),
 * bb_conn_accept(), bb_qp_connect(), bb_qp_recover() and bb_qp_destroy() of that QP are -EBUSY.
 *
 * Times are in milliseconds. Errors are 0 or -errno as in bb_dev.h; what goes wrong later comes
 * as an event with a status, and the log has a line.
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
enum bb_cm_way {
	BB_CM_TCP,    /**< the message of doc/guides/connect.rst over a TCP connection */
	BB_CM_RDMACM, /**< librdmacm, with QPs it does not know (man rdma_connect: qp_num) */
};

/** What a CM is to be like. */
struct bb_cm_attr {
	uint32_t size; /**< set by bb_cm_attr_init() */
	enum bb_cm_way way;
	uint32_t max_conns;     /**< connections at a time; half-open ones not counted */
	uint32_t max_half_open; /**< connections that came in and have not said what they want */
	uint32_t half_open_ms;  /**< how long such a one may take */
	/** How often sockets are asked, in microseconds; 0: at every bb_cm_poll(). */
	uint32_t poll_us;
};

/** TCP, 65536 connections, 256 half-open ones of 5 s, sockets every 50 us. */
void bb_cm_attr_init(struct bb_cm_attr *attr);

/**
 * Create a CM for the QPs of a device. A process can have several.
 * @return 0; -EINVAL attr; -ENOTSUP librdmacm: not built with it, or the device is none of the
 *   kernel's; TCP: the device is iWARP; a child of the process that opened the device; -ENOMEM;
 *   -EMFILE.
 */
int bb_cm_create(struct bb_dev *dev, const struct bb_cm_attr *attr, struct bb_cm **cm);

/** Destroy it. -EBUSY while listeners or connections live, or it is attached to a loop. */
int bb_cm_destroy(struct bb_cm *cm);

/**
 * A descriptor that is readable when bb_cm_poll() has something to do or an event to give, those of
 * the application's own calls too. What comes by time does not show, and neither does a QP that
 * went to ERR: with timeouts and recover_ms poll now and then.
 */
int bb_cm_fd(const struct bb_cm *cm);

/** What has happened. */
enum bb_cm_event_type {
	/** A peer wants to connect: bb_conn_accept() or bb_conn_reject(). New connection. */
	BB_CM_CONNECT_REQUEST,
	/** Both QPs are in RTS. */
	BB_CM_ESTABLISHED,
	/**
	 * The peer, or its CM, has refused: reason. A side that has accepted can get it as well,
	 * in place of ESTABLISHED; so can one that connected and calls again, LOST, and that is the
	 * end whatever is left of recover_ms. Destroy the connection.
	 */
	BB_CM_REJECTED,
	/** It was never made: status. Destroy the connection. */
	BB_CM_FAILED,
	/**
	 * It is over: status 0, one of the sides has disconnected; else why. The QP is in ERR;
	 * where the connection was LOST in RESET, or in ERR if the peer's call was answered just
	 * then. Destroy the connection.
	 */
	BB_CM_DISCONNECTED,
	/**
	 * It broke and is being brought back (@ref bb_conn_param.recover_ms). The QP is in RESET;
	 * ends says what became of its requests. Receives are posted anew after BB_CM_RECOVERED. It
	 * comes again when the peer goes or calls once more after this side has answered, and there
	 * is something to tell: what was posted meanwhile, or a message that took a receive of an
	 * SRQ.
	 */
	BB_CM_LOST,
	/** It is back: both QPs are in RTS again. */
	BB_CM_RECOVERED,
};

/** Name of an event: "connect request". */
const char *bb_cm_event_name(enum bb_cm_event_type type);

/** Why a connection is refused; numbers of IBTA vol. 1, 12.6.7.2. */
enum bb_reject_reason {
	BB_REJECT_NO_RESOURCES = 3,
	BB_REJECT_TIMEOUT = 4,
	BB_REJECT_UNSUPPORTED = 5,
	BB_REJECT_NO_LISTENER = 8,
	BB_REJECT_QP_TYPE = 9,
	BB_REJECT_STALE = 10,
	BB_REJECT_GID = 12,      /**< nothing answers to the GID of the side that connects */
	BB_REJECT_CONSUMER = 28, /**< bb_conn_reject(): the application */
	BB_REJECT_VERSION = 31,  /**< the other side speaks another version of the message */
};

/** Name of a reason: "consumer reject"; numbers that are not listed above are "reason". */
const char *bb_reject_name(uint32_t reason);

/** An event. What it points to is valid until the next bb_cm_poll() or bb_conn_destroy(). */
struct bb_cm_event {
	enum bb_cm_event_type type;
	int status; /**< 0 or -errno */
	struct bb_conn *conn;
	struct bb_listener *listener; /**< of CONNECT_REQUEST; NULL: it has been destroyed */
	const char *why;              /**< one sentence, never NULL */
	uint32_t reason;              /**< of REJECTED: enum bb_reject_reason */
	/**
	 * CONNECT_REQUEST: the peer takes up a connection that this process does not know, as it
	 * has started again. RECOVERED: so has the peer; its memory and keys are new ones.
	 */
	bool restarted;
	const void *private_data; /**< that came with it */
	uint32_t private_len;
	const struct bb_wr_end *ends; /**< of LOST: requests no poll has reported, in their order */
	uint32_t nends;
	enum bb_wr_fate flushed; /**< of LOST: what flush errors polled before mean */
};

/**
 * Let the CM work, and take up to @p n events. Never waits. Runs the software device while
 * connections are being made. No two events are of one connection; who destroys a connection must
 * not look at its event further behind.
 * @return how many were written.
 */
unsigned int bb_cm_poll(struct bb_cm *cm, struct bb_cm_event *event, unsigned int n);

/** An event, in a loop. May destroy connections, and detach the CM, not destroy it. */
typedef void (*bb_cm_fn)(struct bb_cm *cm, const struct bb_cm_event *event, void *arg);

/**
 * Have a loop poll the CM, and @p fn called for each event. The loop's lcore must own the QPs.
 * @return 0; -EALREADY; errors of bb_loop_attach_poller().
 */
int bb_cm_attach(struct bb_cm *cm, struct bb_loop *loop, bb_cm_fn fn, void *arg);

/**
 * Undo it. @p fn is not called any more, also when this is called from it.
 * @return 0; -ENOENT; errors of bb_loop_detach_poller().
 */
int bb_cm_detach(struct bb_cm *cm);

/**
 * Read an address: "192.0.2.1:18515", "[2001:db8::1]:18515", ":18515" for all addresses of the
 * machine. Names are not looked up, as that would wait: getaddrinfo() gives the same.
 * @return 0 or -EINVAL.
 */
int bb_cm_addr(const char *text, struct sockaddr_storage *addr);

/**
 * Listen.
 * @param addr IPv4 or IPv6; port 0: any that is free.
 * @return 0; -EADDRINUSE, -EADDRNOTAVAIL and others of man 2 bind; -ENOMEM.
 */
int bb_listener_create(struct bb_cm *cm, const struct sockaddr *addr,
		       struct bb_listener **listener);

/** The port it listens at. */
uint16_t bb_listener_port(const struct bb_listener *listener);

/** Stop. Half-open connections are closed, those the application has stay. */
int bb_listener_destroy(struct bb_listener *listener);

/** What a side brings to a connection (man rdma_connect: struct rdma_conn_param). */
struct bb_conn_param {
	uint32_t size;            /**< set by bb_conn_param_init() */
	const void *private_data; /**< copied */
	uint32_t private_len;     /**< TCP: at most 1024; librdmacm: 56 to connect, 196 to accept */
	const struct bb_region *regions; /**< keys for the peer; copied; TCP only */
	uint32_t nregions;               /**< at most BB_REGION_MAX */
	uint8_t initiator_depth;         /**< READs and atomics we have under way at a time */
	uint8_t responder_resources;     /**< and those of the peer that we take */
	uint8_t retry_count;     /**< 0 to 7, of both sides: what the connecting side says counts */
	uint8_t rnr_retry_count; /**< 0 to 7, 7 for ever: how often the peer retries at our RNR NAK
				  */
	/** Coded as in ibv_modify_qp, 0 to 31: what our RNR NAK asks for. */
	uint8_t min_rnr_timer;
	/**
	 * Of our QP: 4.096 us << ack_timeout, to 31; 0: for ever. librdmacm: what the path says, 19
	 * (2 s) with RoCE.
	 */
	uint8_t ack_timeout;
	/**
	 * Bytes, at most, from 256: what is no MTU is rounded down to one; 0: that of the ports.
	 * librdmacm does not tell the peer of it: give both sides the same.
	 */
	uint32_t path_mtu;
	uint32_t access;       /**< enum bb_access REMOTE_* that the peer gets */
	struct bb_path path;   /**< port, traffic class, hop limit, sl; the rest is not used */
	bool sgid_index_given; /**< path.sgid_index is the GID; else it is chosen: */
	struct bb_gid_want gid;
	uint32_t timeout_ms; /**< for each of the peer's answers */
	/**
	 * Bring the connection back when it breaks, and give up after so long; 0: do not. Both
	 * sides must ask for it. It counts as broken when the QP is in ERR, when the TCP
	 * connection is gone, and when bb_conn_recover() says so. Not with librdmacm: -ENOTSUP.
	 */
	uint32_t recover_ms;
	uint32_t backoff_min_ms; /**< pause in front of the first try; doubles to */
	uint32_t backoff_max_ms;
};

/**
 * No private data, 16 READs each way, 7 retries, RNR for ever at 0.01 ms, ack timeout 14 (67 ms),
 * no rights, port 1, any GID, 10 s, not brought back; back-off 10 ms to 1 s.
 */
void bb_conn_param_init(struct bb_conn_param *param);

/**
 * Connect a QP to who listens at @p addr: begin it. ESTABLISHED, REJECTED or FAILED follows.
 * @param qp RC or UC, in RESET, of the CM's device; on iWARP RC, in RESET or, with receives, in
 *   INIT: see bb_conn_accept(). The connection owns it until it is over.
 * @return 0; -EINVAL a parameter, or a QP that is not so; -EBUSY a connection owns the QP; -ENOENT,
 * -ENOTUNIQ of bb_gid_choose(); -EMSGSIZE too much private data or too many regions; -ENOTSUP
 * regions with librdmacm; -ENOSPC max_conns; -EMFILE; -ENOMEM.
 */
int bb_conn_connect(struct bb_cm *cm, const struct sockaddr *addr, struct bb_qp *qp,
		    const struct bb_conn_param *param, struct bb_conn **conn);

/**
 * Accept a CONNECT_REQUEST. The QP is in RTS on return; post receives to it then: in RESET
 * nothing can be posted, so with RC a peer that is faster is told to retry (RNR). ESTABLISHED
 * follows. Depths are cut to what the other side has.
 *
 * iWARP has no RNR: a SEND that finds no receive ends the connection. There, take the QP to INIT
 * by bb_qp_modify() and post receives before this call, and before bb_conn_connect() if the
 * server sends first.
 * @return as bb_conn_connect(); -EAGAIN the address behind the peer's GID is being asked for: poll,
 *   and call again. That is so where @p param names another GID of this side than the choice
 * without a wish and the last accept of the listener, or where the request has waited a minute;
 * -ENOTCONN the peer is gone; -EPROTOTYPE RC on one side, UC on the other; errors of
 * bb_qp_connect(). After an error it can be tried again, or rejected; where the QP is in RESET
 * then, receives are to be posted anew.
 */
int bb_conn_accept(struct bb_conn *conn, struct bb_qp *qp, const struct bb_conn_param *param);

/**
 * Refuse a CONNECT_REQUEST, and tell the peer so, with up to 1024 bytes of private data, 148
 * with librdmacm. Destroy the connection then.
 * @return 0; -EINVAL in another state; -EMSGSIZE; -ENOTCONN the peer is gone.
 */
int bb_conn_reject(struct bb_conn *conn, const void *private_data, uint32_t private_len);

/**
 * End a connection: the QP goes to ERR, what is posted is flushed (bb_qp_drain() first, to have
 * it done), the peer is told, and DISCONNECTED comes. One that is just being made or brought back
 * is given up. Up to 1024 bytes of private data, none with librdmacm.
 * @return 0; -EMSGSIZE too much private data; -ENOTCONN it is over already.
 */
int bb_conn_disconnect(struct bb_conn *conn, const void *private_data, uint32_t private_len);

/** Free it. The peer of one that is not over sees it break. The QP is left as it is. */
void bb_conn_destroy(struct bb_conn *conn);

/**
 * Bring an established connection back, although nothing has told the CM that it is broken:
 * after BB_EVENT_PORT_ACTIVE, for example. LOST follows.
 * @return 0; -EINVAL recover_ms was 0 on one of the sides; -ENOTCONN it is not established; -EBUSY
 * an event of it waits: bb_cm_poll() first.
 */
int bb_conn_recover(struct bb_conn *conn);

/** Where a connection stands. */
enum bb_conn_state {
	BB_CONN_CONNECTING,
	BB_CONN_REQUESTED, /**< to be accepted or rejected */
	BB_CONN_ACCEPTED,
	BB_CONN_ESTABLISHED,
	BB_CONN_DISCONNECTING,
	BB_CONN_LOST, /**< being brought back */
	BB_CONN_CLOSED,
};

/** What is known of a connection. */
struct bb_conn_info {
	enum bb_conn_state state;
	struct bb_qp *qp;         /**< NULL before accept */
	char peer[64];            /**< its address and port, as bb_cm_addr() reads it */
	struct bb_qp_addr remote; /**< zeros until the peer has told, and with librdmacm */
	/** Stated by the peer. */
	uint8_t peer_initiator_depth, peer_responder_resources;
	uint8_t peer_retry_count, peer_rnr_retry_count;
	uint32_t peer_sq_depth, peer_rq_depth; /**< 0 with librdmacm */
	bool peer_srq;
	bool comes_back; /**< both sides want it brought back */
	/** In force. */
	uint8_t initiator_depth, responder_resources;
	uint32_t path_mtu;
	uint8_t sgid_index;
	uint32_t recoveries; /**< times it came back */
	uint32_t tries;      /**< of the last or present time */
};

/** Read it. */
void bb_conn_query(const struct bb_conn *conn, struct bb_conn_info *info);

/**
 * A region that the peer has named. After RECOVERED with restarted: its new one.
 * @return 0; -ENOENT.
 */
int bb_conn_region(const struct bb_conn *conn, const char *name, struct bb_region *region);

/** The application's pointer. */
void bb_conn_user_set(struct bb_conn *conn, void *user);
/** What was set, NULL at first. */
void *bb_conn_user(const struct bb_conn *conn);

/** Numbers of a CM. */
struct bb_cm_stats {
	uint32_t conns;     /**< alive, all states */
	uint32_t half_open; /**< of them came in and have not said what they want */
	uint64_t established;
	uint64_t recovered;
	uint64_t rejected;     /**< by this side */
	uint64_t bad_messages; /**< refused by the decoder */
	uint64_t timeouts;     /**< of half-open ones and of answers that did not come */
	uint64_t evicted;      /**< half-open ones that made room for others */
};

/** Read them. */
void bb_cm_stats(const struct bb_cm *cm, struct bb_cm_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
