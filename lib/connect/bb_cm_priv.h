/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * What the files of lib/connect share. bb_cm.c polls and keeps time, bb_conn.c is what
 * the application calls, bb_cm_fsm.c is the course of a connection, bb_cm_recover.c brings it
 * back; a way (bb_cm_tcp.c, bb_cm_rdma.c) carries messages.
 */
#ifndef BB_CM_PRIV_H
#define BB_CM_PRIV_H

#include <sys/queue.h>
#include <sys/socket.h>

#include "bb_cm_msg.h"
#include "bb_connect.h"
#include "bb_core.h"
#include "bb_gid_priv.h"

/* Something with a descriptor in the epoll set. */
struct bb_cm_io {
	void (*ready)(struct bb_cm_io *io, uint32_t events);
};

struct bb_cm;

/* Carries messages. What it hears it tells by bb_cm_heard() and bb_cm_broken(). */
struct bb_cm_ops {
	uint32_t max_private_req, max_private_rep, max_private_rej, max_private_dreq;
	bool messages; /* carries ours whole: regions, sessions, the QP's type */
	int (*open)(struct bb_cm *cm);
	void (*close)(struct bb_cm *cm);
	int (*listen)(struct bb_listener *l, const struct sockaddr *addr);
	void (*unlisten)(struct bb_listener *l);
	/* Begin to reach conn->addr; bb_cm_reached() follows, or bb_cm_broken(). */
	int (*dial)(struct bb_conn *c);
	/* Send a message of conn: own end, parameters and session are filled in. */
	int (*send)(struct bb_conn *c, uint8_t type, uint32_t reason, const void *priv,
		    uint32_t len);
	/* RESET to RTS, with what the peer has said. */
	int (*qp_up)(struct bb_conn *c);
	/* Go on with the peer that @from, a half-open one, was talking to. */
	void (*adopt)(struct bb_conn *c, struct bb_conn *from);
	/* Forget the peer; may be called again. @abort: without the wait of a proper end. */
	void (*hang_up)(struct bb_conn *c, bool abort);
};

extern const struct bb_cm_ops bb_cm_tcp_ops;
#ifdef HAVE_RDMACM
extern const struct bb_cm_ops bb_cm_rdma_ops;
#endif

TAILQ_HEAD(bb_conn_list, bb_conn);

struct bb_listener {
	struct bb_cm_io io; /* first */
	struct bb_cm *cm;
	LIST_ENTRY(bb_listener) link;
	int fd;
	uint16_t port;
	uint64_t said; /* when a failure of accept() was last logged */
	/* Of the last connection that was accepted here. */
	bool accepted;       /* there is one */
	bool path_sure;      /* its GID was chosen without a wish: see bb_conn.path_sure */
	struct bb_path path; /* port and sgid_index */
	uint8_t peer[16];    /* the peer's GID */
	void *way;           /* of librdmacm */
};

/* A connection that is not the application's yet is half-open; state is CONNECTING then. */
struct bb_conn {
	struct bb_cm_io io; /* first */
	struct bb_cm *cm;
	struct bb_listener *listener; /* it came in here; NULL: we connect, or the listener went */
	TAILQ_ENTRY(bb_conn) link;    /* cm->conns; in the graveyard: there */
	TAILQ_ENTRY(bb_conn) half_link;
	TAILQ_ENTRY(bb_conn) ready_link;
	enum bb_conn_state state;
	bool active;    /* we connect */
	bool half_open; /* in cm->half */
	bool queued;    /* ev waits in cm->ready */
	bool known;     /* the application has it */
	bool was_up;    /* has been ESTABLISHED */
	bool doomed;    /* in the graveyard */
	bool on_call;   /* dialled, no answer yet: of a connection that is LOST */
	bool resolving; /* a REQ or REP waits for the address of its GID; no message is read */
	bool path_sure; /* param.path of a REQ is what accept will choose without a wish */
	bool asked;     /* it may ask for that address: see cm->asking */
	uint64_t born, deadline, next_try; /* TSC; 0: none */
	struct bb_qp *qp;                  /* not the connection's any more once it is CLOSED */
	bool owns_qp;
	struct bb_conn_param param; /* private_data and regions are copies in own_bytes */
	void *own_bytes;
	struct bb_cm_end own, peer;
	struct bb_region *peer_regions;
	uint32_t npeer_regions;
	uint8_t *peer_private; /* last that came, in memory of its own */
	uint32_t peer_private_len;
	uint8_t sgid[16]; /* the GID in use, to be found again */
	struct bb_gid_said no_gid;
	uint8_t rd_init, rd_resp; /* in force */
	struct sockaddr_storage addr;
	void *user;
	struct bb_cm_event ev;
	/* Recovery. */
	struct bb_conn *heir;      /* half-open: carries a REQ that takes this connection up */
	struct bb_conn *taken_for; /* of the heir: the other end of that */
	struct bb_wr_end *ends;
	uint32_t recoveries, tries, backoff_ms;
	/* TCP. */
	int fd;
	bool dialing;
	bool said_no;     /* sent REJ, which the peer is to read */
	uint32_t watched; /* epoll events asked for */
	uint32_t rx_have;
	uint8_t rx_head[BB_CM_HEADER];
	struct bb_cm_header rx;
	uint8_t *rx_body; /* NULL: the header is not complete */
	uint8_t *tx;
	uint32_t tx_off, tx_len;
	void *way; /* of librdmacm */
};

struct bb_cm {
	struct bb_cm_io io; /* first: of wakefd */
	struct bb_dev *dev;
	const struct bb_cm_ops *ops;
	struct bb_cm_attr attr;
	int epfd;
	int wakefd; /* makes epfd readable for what no socket tells: bb_cm_wake() */
	bool awake; /* it does */
	uint64_t hz, next_poll, poll_cycles;
	struct bb_conn_list conns, half, ready, grave;
	struct bb_conn *cursor; /* next whose deadline is looked at */
	LIST_HEAD(, bb_listener) listeners;
	uint32_t pending;   /* connections being made */
	uint32_t resolving; /* connections that wait for an address */
	uint32_t asking;    /* half-open ones of them that ask for it */
	uint32_t heirs;     /* half-open connections that wait to be taken over */
	uint32_t unsaid;    /* bad messages, since one was logged at said */
	uint64_t said;
	struct bb_cm_stats stats;
	struct bb_loop *loop;
	bb_cm_fn fn;
	void *arg;
	void *way;
};

/* ---- bb_cm.c */
struct bb_conn *bb_cm_conn_new(struct bb_cm *cm);
/* Out of all lists, hung up before; freed when no event under way can name it. */
void bb_cm_conn_free(struct bb_conn *c);
/* The half-open connection that is to carry on this one, if there is one: its peer sees it break.
 */
void bb_cm_drop_heir(struct bb_conn *c);
/* Releases the QP if the new state is CLOSED. */
void bb_cm_set_state(struct bb_conn *c, enum bb_conn_state state);
/* Makes the connection the owner of an unowned QP: no other connection takes it. */
void bb_cm_own_qp(struct bb_conn *c, struct bb_qp *qp);
void bb_cm_release_qp(struct bb_conn *c);
/* Queue conn->ev, or change the one that waits. */
void bb_cm_tell(struct bb_conn *c, enum bb_cm_event_type type, int status, const char *why);
/* Have bb_cm_fd() readable until no event waits, and no heir. */
void bb_cm_wake(struct bb_cm *cm);
uint64_t bb_cm_now(void);
uint64_t bb_cm_after(const struct bb_cm *cm, uint32_t ms);
/* Ready to hear: no event of it waits for the application. */
static inline bool
bb_cm_can_hear(const struct bb_conn *c)
{
	return !c->queued && !c->doomed;
}

/* ---- bb_cm_fsm.c: what a way says */
void bb_cm_reached(struct bb_conn *c);
void bb_cm_heard(struct bb_conn *c, const struct bb_cm_msg *msg);
/* Time for what a connection that is resolving does. */
void bb_cm_resolve_step(struct bb_conn *c);
/* Count a message that is refused, and say so once a second. */
void bb_cm_bad(struct bb_conn *c, const char *what, const char *why);
void bb_cm_broken(struct bb_conn *c, int status, const char *why);
void bb_cm_expired(struct bb_conn *c);
/* Own end of a message: GID, PSN, depths. */
int bb_cm_own_end(struct bb_conn *c);
int bb_cm_keep_peer(struct bb_conn *c, const struct bb_cm_msg *msg);
void bb_cm_depths(struct bb_conn *c);
int bb_cm_qp_error(struct bb_conn *c);
/* CLOSED, and the QP in ERR: no message of the peer brings it back. The caller tells why. */
void bb_cm_over(struct bb_conn *c);
bool bb_cm_comes_back(const struct bb_conn *c);

/* ---- bb_cm_resolve.c */
/*
 * Asks for the address behind the GID of @peer; never waits. 0; -EAGAIN call again; else the peer
 * cannot be reached.
 */
int bb_cm_peer_ready(const struct bb_conn *c, const struct bb_cm_end *peer);
/* RESET to RTS with the peer. -EAGAIN: the address of its GID is not known yet. */
int bb_cm_qp_up(struct bb_conn *c);
/*
 * The path that the answer to a request will take: as the last one that the listener has accepted,
 * else by the GID that accept chooses where it names none. Returns false if there is no such GID.
 */
bool bb_cm_request_path(struct bb_conn *c);
/* Remembers the path of a connection that is accepted, for requests to come. */
void bb_cm_accepted_path(const struct bb_conn *c);
/* Returns true if the half-open connection may ask now; others are asked for before it. */
bool bb_cm_may_ask(struct bb_conn *c);
void bb_cm_resolve_begin(struct bb_conn *c);
/* Ends the wait for an address. */
void bb_cm_resolve_end(struct bb_conn *c);

/* ---- bb_cm_recover.c */
void bb_cm_lost(struct bb_conn *c, int status, const char *why);
/* Time for what a LOST connection does; also after its event has been taken. */
void bb_cm_lost_step(struct bb_conn *c);
/* A half-open connection whose REQ names a session: true when it was taken. */
bool bb_cm_take_up(struct bb_conn *c);
void bb_cm_try_failed(struct bb_conn *c, int status, const char *why);
void bb_cm_end_of_trying(struct bb_conn *c, int status, const char *why);
void bb_cm_recovered(struct bb_conn *c);

#endif
