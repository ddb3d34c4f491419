/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Shared by the files of lib/connect. bb_cm.c polls and checks deadlines, bb_conn.c has the calls
 * of the application, bb_cm_fsm.c the states of a connection. bb_cm_recover.c recovers a lost
 * connection. A transport (bb_cm_tcp.c, bb_cm_rdma.c) sends and receives the messages.
 */
#ifndef BB_CM_PRIV_H
#define BB_CM_PRIV_H

#include <sys/queue.h>
#include <sys/socket.h>

#include "bb_cm_msg.h"
#include "bb_connect.h"
#include "bb_core.h"
#include "bb_gid_priv.h"

/* An object with a descriptor in the epoll set. */
struct bb_cm_io {
	void (*ready)(struct bb_cm_io *io, uint32_t events);
};

struct bb_cm;

/*
 * A transport of messages. It reports received messages to bb_cm_heard() and failures to
 * bb_cm_broken().
 */
struct bb_cm_ops {
	uint32_t max_private_req, max_private_rep, max_private_rej, max_private_dreq;
	bool messages; /* sends all parts of a message: regions, session, type of the QP */
	int (*open)(struct bb_cm *cm);
	void (*close)(struct bb_cm *cm);
	int (*listen)(struct bb_listener *l, const struct sockaddr *addr);
	void (*unlisten)(struct bb_listener *l);
	/* Starts to connect to conn->addr; bb_cm_reached() or bb_cm_broken() follows. */
	int (*dial)(struct bb_conn *c);
	/* Sends a message of @c. c->own, c->param and the session must be set before. */
	int (*send)(struct bb_conn *c, uint8_t type, uint32_t reason, const void *priv,
		    uint32_t len);
	/* Moves the QP from RESET to RTS with the peer's parameters. */
	int (*qp_up)(struct bb_conn *c);
	/* Takes over the transport connection of @from, a half-open connection. */
	void (*adopt)(struct bb_conn *c, struct bb_conn *from);
	/*
	 * Closes the transport connection; may be called again. @abort: without an orderly
	 * shutdown.
	 */
	void (*hang_up)(struct bb_conn *c, bool abort);
};

extern const struct bb_cm_ops bb_cm_tcp_ops;
#ifdef HAVE_RDMACM
extern const struct bb_cm_ops bb_cm_rdma_ops;
#endif

TAILQ_HEAD(bb_conn_list, bb_conn);

struct bb_listener {
	struct bb_cm_io io; /* must be the first member */
	struct bb_cm *cm;
	LIST_ENTRY(bb_listener) link;
	int fd;
	uint16_t port;
	uint64_t last_log; /* TSC of the last log line about a failed accept() */
	/* State of the last connection that was accepted on this listener. */
	bool accepted;       /* a connection was accepted; the fields below are valid */
	bool path_sure;      /* the application did not choose its local GID: bb_conn.path_sure */
	struct bb_path path; /* local port and sgid_index of that connection */
	uint8_t peer[16];    /* GID of that connection's peer */
	void *transport_ctx; /* the listener's rdma_cm_id */
};

/*
 * A connection. It is half-open, in state CONNECTING, until it is reported to the application.
 */
struct bb_conn {
	struct bb_cm_io io; /* must be the first member */
	struct bb_cm *cm;
	struct bb_listener *listener; /* listener of an incoming connection; NULL for an outgoing
				       * one, or if it was destroyed */
	TAILQ_ENTRY(bb_conn) link;    /* in cm->conns, or in cm->grave */
	TAILQ_ENTRY(bb_conn) half_link;
	TAILQ_ENTRY(bb_conn) ready_link;
	enum bb_conn_state state;
	bool active;    /* this side connects */
	bool half_open; /* in cm->half */
	bool queued;    /* ev is queued in cm->ready */
	bool known;     /* the application has a pointer to the connection */
	bool was_up;    /* has been ESTABLISHED */
	bool doomed;    /* in cm->grave */
	bool on_call;   /* LOST connection: a new connection request is not answered yet */
	bool resolving; /* a REQ or REP waits for the MAC of its GID to be resolved; no message is
			 * read meanwhile */
	bool path_sure; /* bb_conn_accept() will use the local GID of param.path, unless the
			 * application chooses another GID */
	bool asked;     /* counted in cm->asking: the connection may resolve the MAC */
	uint64_t born, deadline, next_try; /* TSC; 0 if not set */
	struct bb_qp *qp;                  /* no longer owned by the connection once it is CLOSED */
	bool owns_qp;
	struct bb_conn_param param; /* private_data and regions are copies in own_bytes */
	void *own_bytes;
	struct bb_cm_end own, peer;
	struct bb_region *peer_regions;
	uint32_t npeer_regions;
	uint8_t *peer_private; /* last private data received; allocated */
	uint32_t peer_private_len;
	uint8_t sgid[16]; /* local GID in use; recovery looks up its index again */
	struct bb_gid_last_log no_gid;
	uint8_t rd_init, rd_resp; /* negotiated number of outstanding READs and atomics: as
				   * initiator, and as responder */
	struct sockaddr_storage addr;
	void *user;
	struct bb_cm_event ev;
	/* Recovery. */
	struct bb_conn *heir;      /* half-open connection with a REQ that resumes this
				    * connection */
	struct bb_conn *taken_for; /* in an heir: the connection that it resumes */
	struct bb_wr_end *ends;
	uint32_t recoveries, tries, backoff_ms;
	/* TCP. */
	int fd;
	bool dialing;
	bool said_no;     /* a REJ was sent; closing must not discard it (TCP RST) */
	uint32_t watched; /* epoll events registered */
	uint32_t rx_have;
	uint8_t rx_head[BB_CM_HEADER];
	struct bb_cm_header rx;
	uint8_t *rx_body; /* NULL until the header is complete */
	uint8_t *tx;
	uint32_t tx_off, tx_len;
	void *transport_ctx; /* the connection's rdma_cm_id */
};

struct bb_cm {
	struct bb_cm_io io; /* must be the first member; for wakefd */
	struct bb_dev *dev;
	const struct bb_cm_ops *ops;
	struct bb_cm_attr attr;
	int epfd;
	int wakefd; /* makes epfd readable for events that no socket shows: bb_cm_wake() */
	bool awake; /* wakefd is readable */
	uint64_t hz, next_poll, poll_cycles;
	struct bb_conn_list conns, half, ready, grave;
	struct bb_conn *cursor; /* connection whose deadline is checked next */
	LIST_HEAD(, bb_listener) listeners;
	uint32_t pending;    /* connections being established */
	uint32_t resolving;  /* connections that wait for the MAC of their peer */
	uint32_t asking;     /* half-open connections that resolve the MAC of their peer */
	uint32_t heirs;      /* half-open connections that wait to resume a lost connection */
	uint32_t suppressed; /* bad messages not logged since last_log */
	uint64_t last_log;
	struct bb_cm_stats stats;
	struct bb_loop *loop;
	bb_cm_fn fn;
	void *arg;
	void *transport_ctx;
};

/* ---- bb_cm.c */
struct bb_conn *bb_cm_conn_new(struct bb_cm *cm);
/*
 * Removes a connection, already hung up, from all lists. It is freed once no pending event can name
 * it.
 */
void bb_cm_conn_free(struct bb_conn *c);
/* Destroys the half-open connection that would resume this one, if any; its peer sees it break. */
void bb_cm_drop_heir(struct bb_conn *c);
/* Sets the state; releases the QP if the new state is CLOSED. */
void bb_cm_set_state(struct bb_conn *c, enum bb_conn_state state);
/* Makes the connection the owner of an unowned QP, which no other connection can then take. */
void bb_cm_own_qp(struct bb_conn *c, struct bb_qp *qp);
void bb_cm_release_qp(struct bb_conn *c);
/* Queues conn->ev, or changes it if it is queued already. */
void bb_cm_report(struct bb_conn *c, enum bb_cm_event_type type, int status, const char *why);
/* Keeps bb_cm_fd() readable until no event and no heir is waiting. */
void bb_cm_wake(struct bb_cm *cm);
uint64_t bb_cm_now(void);
uint64_t bb_cm_after(const struct bb_cm *cm, uint32_t ms);
/*
 * Returns true if a message may be processed: no event of the connection waits for the application.
 */
static inline bool
bb_cm_can_hear(const struct bb_conn *c)
{
	return !c->queued && !c->doomed;
}

/* ---- bb_cm_fsm.c: reports of a transport */
void bb_cm_reached(struct bb_conn *c);
void bb_cm_heard(struct bb_conn *c, const struct bb_cm_msg *msg);
/* Runs one step of a connection that is resolving the MAC of its peer. */
void bb_cm_resolve_step(struct bb_conn *c);
/* Counts a refused message and logs at most one per second. */
void bb_cm_bad(struct bb_conn *c, const char *what, const char *why);
void bb_cm_broken(struct bb_conn *c, int status, const char *why);
void bb_cm_expired(struct bb_conn *c);
/* Sets c->own, the local end of a message: GID, PSN, numbers of outstanding READs. */
int bb_cm_own_end(struct bb_conn *c);
int bb_cm_keep_peer(struct bb_conn *c, const struct bb_cm_msg *msg);
void bb_cm_depths(struct bb_conn *c);
int bb_cm_qp_error(struct bb_conn *c);
/*
 * Moves the connection to CLOSED and the QP to ERR; no message of the peer revives it. The caller
 * reports why.
 */
void bb_cm_over(struct bb_conn *c);
bool bb_cm_comes_back(const struct bb_conn *c);

/* ---- bb_cm_resolve.c */
/*
 * Resolves the MAC of the GID of @peer, without waiting. Returns 0 if it is known, -EAGAIN if the
 * caller must call again, or another negative errno if the peer cannot be reached.
 */
int bb_cm_peer_ready(const struct bb_conn *c, const struct bb_cm_end *peer);
/*
 * Moves the QP from RESET to RTS with the peer. Returns -EAGAIN while the MAC of the peer's GID is
 * unknown.
 */
int bb_cm_qp_up(struct bb_conn *c);
/*
 * Predicts the local port and GID with which a connection request will be accepted, in param.path.
 * If the listener accepted a connection from a similar GID before, these are that connection's.
 * Otherwise they are those that bb_conn_accept() chooses if the application does not name a GID.
 * Returns false if the port has no suitable GID.
 */
bool bb_cm_request_path(struct bb_conn *c);
/* Stores the path of an accepted connection in its listener, for bb_cm_request_path(). */
void bb_cm_accepted_path(const struct bb_conn *c);
/*
 * Returns true if the half-open connection may resolve the MAC of its peer now. Returns false if it
 * must wait until resolutions of other connections have ended.
 */
bool bb_cm_may_ask(struct bb_conn *c);
void bb_cm_resolve_begin(struct bb_conn *c);
/* Ends the wait for the peer's MAC, if any. */
void bb_cm_resolve_end(struct bb_conn *c);

/* ---- bb_cm_recover.c */
void bb_cm_lost(struct bb_conn *c, int status, const char *why);
/* Runs one step of a LOST connection; also after its event has been delivered. */
void bb_cm_lost_step(struct bb_conn *c);
/*
 * Handles a half-open connection whose REQ names a session. Returns true if a connection took it.
 */
bool bb_cm_take_up(struct bb_conn *c);
void bb_cm_try_failed(struct bb_conn *c, int status, const char *why);
void bb_cm_end_of_trying(struct bb_conn *c, int status, const char *why);
void bb_cm_recovered(struct bb_conn *c);

#endif
