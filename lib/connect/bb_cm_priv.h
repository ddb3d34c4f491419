/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Declarations shared by the files of lib/connect. bb_cm.c polls and checks deadlines. bb_conn.c
 * has the functions that the application calls. bb_cm_fsm.c has the states of a connection.
 * bb_cm_recover.c recovers a lost connection. A transport (bb_cm_tcp.c, bb_cm_rdma.c) sends and
 * receives the messages.
 */
#ifndef BB_CM_PRIV_H
#define BB_CM_PRIV_H

#include <sys/queue.h>
#include <sys/socket.h>

#include "bb_cm_msg.h"
#include "bb_connect.h"
#include "bb_core.h"
#include "bb_gid_priv.h"

/* An object with a file descriptor in the epoll set of the CM. */
struct bb_cm_io {
	void (*ready)(struct bb_cm_io *io, uint32_t events);
};

struct bb_cm;

/*
 * Functions of a transport of messages. The transport passes received messages to bb_cm_received()
 * and failures to bb_cm_broken().
 */
struct bb_cm_ops {
	uint32_t max_private_req, max_private_rep, max_private_rej, max_private_dreq;
	const char *name; /* name of the transport in log lines */
	bool messages;    /* true if messages can carry regions and the session of recovery */
	/*
	 * True if this side chooses its GID and PSN, knows the type of the peer's QP, and resolves
	 * the MAC of the peer. False if the kernel does this.
	 */
	bool addresses;
	/* True if the peer's address is also the GID of its QP. */
	bool peer_is_gid;
	/* True if no descriptor shows received messages, so that bb_cm_fd() is always readable. */
	bool always_awake;
	/* Does work at each poll that no descriptor shows. NULL if there is none. */
	void (*poll)(struct bb_cm *cm);
	/* Set up and release the transport of a CM. NULL if there is nothing to do. */
	int (*open)(struct bb_cm *cm);
	void (*close)(struct bb_cm *cm);
	int (*listen)(struct bb_listener *l, const struct sockaddr *addr);
	void (*unlisten)(struct bb_listener *l);
	/*
	 * Starts to connect to c->addr; the transport then calls bb_cm_connected() or
	 * bb_cm_broken().
	 */
	int (*connect)(struct bb_conn *c);
	/* Sends a message of connection @c. The caller has set c->own, c->param and the session. */
	int (*send)(struct bb_conn *c, uint8_t type, uint32_t reason, const void *priv,
		    uint32_t len);
	/* Moves the QP from RESET to RTS with the peer's parameters. */
	int (*qp_up)(struct bb_conn *c);
	/* Moves a request to another CM. NULL if the transport cannot; see bb_conn_migrate(). */
	int (*migrate)(struct bb_conn *c, struct bb_cm *to);
	/* Moves the transport connection of @from, a half-open connection, to @c. */
	void (*adopt)(struct bb_conn *c, struct bb_conn *from);
	/*
	 * Closes the transport connection; may be called again. @abort closes without an orderly
	 * shutdown.
	 */
	void (*disconnect)(struct bb_conn *c, bool abort);
};

extern const struct bb_cm_ops bb_cm_tcp_ops;
#ifdef HAVE_RDMACM
extern const struct bb_cm_ops bb_cm_rdma_ops;
#endif

TAILQ_HEAD(bb_conn_list, bb_conn);
LIST_HEAD(bb_session_list, bb_conn);
#define BB_CM_SESSION_LISTS 4096u /* number of lists in bb_cm.sessions */

struct bb_listener {
	struct bb_cm_io io; /* must be the first member */
	struct bb_cm *cm;
	LIST_ENTRY(bb_listener) link;
	int fd;
	uint16_t port;
	/* TSC of the last log line about a failed accept(); limits these lines */
	uint64_t last_log;
	/* TSC of the last accept() that found no free descriptor; 0 if epoll watches fd */
	uint64_t paused_at;
	/* Path of the connection that was last accepted on this listener. */
	bool accepted; /* true if a connection was accepted, so the fields below are valid */
	/*
	 * true if the application left the choice of the local GID to the CM; see bb_conn.path_sure
	 */
	bool path_sure;
	struct bb_path path; /* local port and sgid_index of the accepted connection */
	uint8_t peer[16];    /* GID of the accepted connection's peer */
	void *transport_ctx; /* rdma_cm_id, or struct ib_listener of BB_CM_IB */
};

/* Part of a replay that its connection uses. */
struct bb_replay_link {
	/* NULL after the connection was disconnected or closed, so that it cannot recover */
	struct bb_conn *conn;
};

/*
 * A connection. While it is half-open, its state is CONNECTING and the application does not know
 * it.
 */
struct bb_conn {
	struct bb_cm_io io; /* must be the first member */
	struct bb_cm *cm;
	/*
	 * listener of an incoming connection; NULL for an outgoing connection, or if the listener
	 * was destroyed
	 */
	struct bb_listener *listener;
	TAILQ_ENTRY(bb_conn) link; /* entry of cm->conns; of cm->to_free if freeing */
	TAILQ_ENTRY(bb_conn) half_link;
	TAILQ_ENTRY(bb_conn) ready_link;
	LIST_ENTRY(bb_conn) session_link; /* entry of cm->sessions */
	bool has_session;                 /* true if the connection is in cm->sessions */
	enum bb_conn_state state;
	bool active;    /* true on the connecting side */
	bool half_open; /* true while in cm->half_open_conns, the list of half-open connections */
	bool queued;    /* true if the connection is in cm->ready, because ev waits for a poll */
	bool was_established; /* true if the connection has been ESTABLISHED before */
	/* true if the connection is in cm->to_free: it is freed after the next poll */
	bool freeing;
	/* valid only if LOST: a new REQ or REP was sent and the peer has not replied yet */
	bool awaiting_reply;
	/*
	 * true while a REQ or REP waits until the MAC of the peer's GID is resolved; no message is
	 * read meanwhile
	 */
	bool resolving;
	/*
	 * true if param.path has the local GID that bb_conn_accept() will use, unless the
	 * application chooses another GID
	 */
	bool path_sure;
	/* true while the connection is counted in cm->n_resolving_half_open */
	bool counted_as_resolving;
	/*
	 * TSC times, 0 if not set: creation, deadline of the current state, next recovery attempt
	 */
	uint64_t created_at, deadline, next_try;
	/* QP; the connection does not own it any more once it is CLOSED */
	struct bb_qp *qp;
	bool owns_qp;
	/* parameters of this side; private_data and regions point to copies in own_bytes */
	struct bb_conn_param param;
	void *own_bytes;
	struct bb_cm_end own, peer;
	struct bb_region *peer_regions;
	uint32_t npeer_regions;
	uint8_t *peer_private; /* private data that was last received; allocated */
	uint32_t peer_private_len;
	bool sgid_fixed;  /* true if the peer's request names the local GID, so sgid must be used */
	uint8_t sgid[16]; /* local GID in use; recovery looks up the current index of this GID */
	struct bb_gid_last_log no_gid;
	/* negotiated number of outstanding READs and atomics, as initiator and as responder */
	uint8_t rd_init, rd_resp;
	struct sockaddr_storage addr;
	void *user;
	struct bb_cm_event ev;
	/* Recovery. */
	/*
	 * half-open connection on which the peer has sent a REQ to resume this lost connection;
	 * NULL if none
	 */
	struct bb_conn *successor;
	/* lost connection that this half-open connection resumes; NULL if none */
	struct bb_conn *predecessor;
	struct bb_wr_end *ends;
	uint32_t recoveries, tries, backoff_ms;
	struct bb_replay_link *replay; /* NULL after the connection was disconnected or closed */
	uint32_t replay_next;          /* number of the first request of the next replay */
	/* TCP. */
	int fd;
	bool connecting;
	/* true if a REJ was sent; an abortive close (TCP RST) could discard the REJ */
	bool rej_sent;
	uint32_t watched; /* epoll events for which fd is registered */
	uint32_t rx_have;
	uint8_t rx_head[BB_CM_HEADER];
	struct bb_cm_header rx;
	/* body of the message being received; NULL until its header is complete */
	uint8_t *rx_body;
	uint8_t *tx;
	uint32_t tx_off, tx_len;
	void *transport_ctx; /* rdma_cm_id, or struct ib_conn of BB_CM_IB */
};

struct bb_cm {
	struct bb_cm_io io; /* must be the first member; for the descriptor wakefd */
	struct bb_dev *dev;
	const struct bb_cm_ops *ops;
	struct bb_cm_attr attr;
	int epfd;
	/* eventfd that makes epfd readable for events without a socket: see bb_cm_wake() */
	int wakefd;
	bool awake; /* true while wakefd is readable */
	uint64_t hz, next_poll, poll_cycles;
	struct bb_conn_list conns, half_open_conns, ready, to_free;
	/*
	 * Accepted connections by the lowest bits of own.session: the request of a peer that names
	 * a session costs no walk over all connections.
	 */
	struct bb_session_list sessions[BB_CM_SESSION_LISTS];
	struct bb_conn *cursor; /* connection whose deadline the next poll checks first */
	LIST_HEAD(, bb_listener) listeners;
	uint32_t pending;   /* number of connections being established */
	uint32_t resolving; /* number of connections that wait for the MAC of their peer */
	/* number of half-open connections that are resolving the MAC of their peer */
	uint32_t n_resolving_half_open;
	/* number of half-open connections that wait to resume a lost connection */
	uint32_t n_successors;
	uint32_t suppressed; /* number of invalid messages since last_log that were not logged */
	uint64_t last_log;
	struct bb_cm_stats stats;
	struct bb_loop *loop;
	bb_cm_fn fn;
	void *arg;
	void *transport_ctx;
};

/* ---- bb_cm.c */
/*
 * Sets the functions of BB_CM_IB. A constructor of lib/connect/ib calls it, so lib/connect needs no
 * symbol of lib/connect/ib.
 */
void bb_cm_ib_register(const struct bb_cm_ops *ops);
struct bb_conn *bb_cm_conn_new(struct bb_cm *cm);
/*
 * Removes a connection, whose transport connection is already closed, from all lists. The memory is
 * freed once no pending event can refer to it.
 */
void bb_cm_conn_free(struct bb_conn *c);
/*
 * Destroys the half-open connection that would resume @c, if there is one. The peer detects a
 * broken connection.
 */
void bb_cm_drop_successor(struct bb_conn *c);
/* Sets the state. If the new state is CLOSED, the connection gives up the ownership of its QP. */
void bb_cm_set_state(struct bb_conn *c, enum bb_conn_state state);
/*
 * Makes the connection the owner of a QP that has no owner, so no other connection can use the QP.
 */
void bb_cm_own_qp(struct bb_conn *c, struct bb_qp *qp);
void bb_cm_release_qp(struct bb_conn *c);
/* Queues an event in c->ev. If an event is queued already, replaces it. */
void bb_cm_report(struct bb_conn *c, enum bb_cm_event_type type, int status, const char *why);
/*
 * Makes bb_cm_fd() readable. The descriptor stays readable while an event is pending. It also stays
 * readable while a connection waits for the MAC of its peer, or waits to resume a lost connection.
 */
void bb_cm_wake(struct bb_cm *cm);
/* Returns the list of the connections that may have this session. */
static inline struct bb_session_list *
bb_cm_sessions(struct bb_cm *cm, uint64_t session)
{
	return &cm->sessions[session % BB_CM_SESSION_LISTS];
}
uint64_t bb_cm_now(void);
uint64_t bb_cm_after(const struct bb_cm *cm, uint32_t ms);
/*
 * Returns true if a message may be processed: the application has polled all events of the
 * connection.
 */
static inline bool
bb_cm_can_receive(const struct bb_conn *c)
{
	return !c->queued && !c->freeing;
}

/* ---- bb_cm_fsm.c: called by a transport */
void bb_cm_connected(struct bb_conn *c);
void bb_cm_received(struct bb_conn *c, const struct bb_cm_msg *msg);
/* Runs one step of a connection that is resolving the MAC of its peer. */
void bb_cm_resolve_step(struct bb_conn *c);
/* Counts an invalid message. Logs at most one such message per second. */
void bb_cm_bad(struct bb_conn *c, const char *what, const char *why);
void bb_cm_broken(struct bb_conn *c, int status, const char *why);
void bb_cm_expired(struct bb_conn *c);
/* Sets c->own, the parameters of this side that a message contains: GID, PSN, depths of READs. */
int bb_cm_own_end(struct bb_conn *c);
/* Chooses the GID of this side and stores its index in c->param.path. */
int bb_cm_choose_gid(struct bb_conn *c);
int bb_cm_store_peer(struct bb_conn *c, const struct bb_cm_msg *msg);
void bb_cm_depths(struct bb_conn *c);
int bb_cm_qp_error(struct bb_conn *c);
/*
 * Moves the connection to CLOSED and the QP to ERR. Later messages of the peer are ignored. The
 * caller reports the cause to the application.
 */
void bb_cm_close(struct bb_conn *c);
bool bb_cm_is_recoverable(const struct bb_conn *c);

/* ---- bb_cm_resolve.c */
/*
 * Closes the oldest half-open connection to make room for a new one. Returns false if that
 * connection is too young to be closed.
 */
bool bb_cm_evict(struct bb_cm *cm);
/*
 * Returns true if one more half-open connection may exist. If there are max_half_open already,
 * closes the oldest one first.
 */
bool bb_cm_make_room(struct bb_cm *cm);
/*
 * Resolves the MAC of the GID of @peer, without waiting. Returns 0 if the MAC is known, -EAGAIN if
 * the caller must call again, or another negative errno if the peer cannot be reached.
 */
int bb_cm_peer_ready(const struct bb_conn *c, const struct bb_cm_end *peer);
/*
 * Moves the QP from RESET to RTS, connected to the peer. Returns -EAGAIN while the MAC of the
 * peer's GID is unknown.
 */
int bb_cm_qp_up(struct bb_conn *c);
/*
 * Implements the operation qp_up with the addresses of both QPs and the parameters that both sides
 * have sent.
 */
int bb_cm_connect_qp(struct bb_conn *c, const struct bb_qp_addr *local,
		     const struct bb_qp_addr *remote);
/*
 * Predicts the local port and GID that bb_conn_accept() will use for a connection request, and
 * stores them in param.path. The prediction is the port and GID of the listener's last accepted
 * connection if the peer of that connection had a GID of the same IP version and scope. Otherwise
 * it is the port and GID that bb_conn_accept() chooses if the application does not name a GID.
 * Returns false if the port has no suitable GID.
 */
bool bb_cm_request_path(struct bb_conn *c);
/* Stores the path of an accepted connection in its listener, for bb_cm_request_path(). */
void bb_cm_accepted_path(const struct bb_conn *c);
/*
 * Returns true if the half-open connection may start to resolve the MAC of its peer. Returns false
 * if it must wait because too many connections are resolving a MAC.
 */
bool bb_cm_may_resolve(struct bb_conn *c);
void bb_cm_resolve_begin(struct bb_conn *c);
/*
 * Marks the MAC of the peer as no longer awaited; does nothing if the connection did not wait for
 * it.
 */
void bb_cm_resolve_end(struct bb_conn *c);

/* Returns the GID of an IP address in @gid: an IPv4 address is ::ffff:a.b.c.d. */
void bb_cm_gid_of(const struct sockaddr_storage *addr, uint8_t gid[16]);

/* ---- bb_cm_recover.c */
void bb_cm_lost(struct bb_conn *c, int status, const char *why);
/*
 * Runs one step of the recovery of a LOST connection. Call it also after the application has got
 * the LOST event.
 */
void bb_cm_lost_step(struct bb_conn *c);
/*
 * Handles a half-open connection whose REQ names a session. Returns true if an existing connection
 * with that session accepts the request.
 */
bool bb_cm_resume(struct bb_conn *c);
void bb_cm_try_failed(struct bb_conn *c, int status, const char *why);
void bb_cm_give_up(struct bb_conn *c, int status, const char *why);
void bb_cm_recovered(struct bb_conn *c);

#endif
