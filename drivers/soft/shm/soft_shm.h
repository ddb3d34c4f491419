/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A device's port to other processes of the host, option shm=FABRIC. Where to start reading:
 * soft_shm_msg.h (how two devices meet), soft_shm_ring.h (packets), soft_shm_mem.h (what is
 * shared), soft_link_shm.c (where the RoCEv2 engine's packets come and go).
 *
 * A connection carries packets one way: each device connects to whom it sends to. Both sides have
 * a struct for it, of the sender's (tx) or the receiver's (rx) view.
 *
 * Locks: soft_shm.lock is over the sockets and over which connections there are; engines only try
 * it. A connection's lock is over its ring, taken for a moment. Order: soft_dev.lock, an engine's,
 * soft_shm.lock (tried), an rx lock, a tx lock. What is read without a lock stays mapped: see
 * soft_shm_reserve().
 */
#ifndef SOFT_SHM_H
#define SOFT_SHM_H

#include "soft_data.h"
#include "soft_shm_mem.h"
#include "soft_shm_msg.h"
#include "soft_shm_ring.h"
#include "soft_wire.h"

#define SOFT_SHM_CHORES_NS  1000000u  /* between two looks at the sockets */
#define SOFT_SHM_AGAIN_NS   10000000u /* between two attempts to connect */
#define SOFT_SHM_FULL_NS    1000000u  /* the same, while the peer's queue is full */
#define SOFT_SHM_PATIENCE_S 5u        /* for the other side's half of a handshake */
/* For a peer that is inside when its right to be there ends; then it is cut off. */
#define SOFT_SHM_HOLD_NS UINT64_C(2000000000)

enum soft_shm_state {
	SOFT_SHM_IDLE,
	SOFT_SHM_GREETING, /* HELLO is sent, or is to come */
	SOFT_SHM_UP,
};

/* A part of a file of application memory that a device hands over. */
struct soft_shm_seg {
	int fd;
	dev_t dev;
	ino_t ino;
	uint64_t off, end; /* whole pages */
	uint32_t gen;      /* of the slot: another file has another one */
	uint32_t rev;      /* who was sent an older one gets it again */
	uint32_t refs;     /* keys */
};

/* The same as a peer has mapped it. Does not change; it is replaced by another one. */
struct soft_shm_window {
	uint8_t *base;
	uint64_t off, len;
	uint32_t gen;
	/* Once replaced, it goes when every engine that was inside then has left. */
	struct soft_shm_window *next;
	uint64_t inside[SOFT_SHM_ENGINES];
};

/*
 * A connection that this device made, to send. Lives as long as the device is open, as an address:
 * the device does not learn when the last address vector with it goes.
 */
struct soft_shm_tx {
	rte_ticketlock_t lock;
	uint32_t state;  /* __atomic; changed under both locks */
	uint32_t deaths; /* __atomic; how often the other side went away */
	uint8_t dst[16];
	uint8_t mac[6]; /* that goes with it */
	/* Under the lock of the connection. */
	struct soft_ring_tx ring;
	/* Under soft_shm.lock. */
	int sock;
	uint64_t again; /* TSC: when to connect again, or to give up; __atomic */
	pid_t pid;
	const struct soft_shm_dir *dir; /* the other side's; zeros when there is none */
	/* Read without a lock by engines that are inside. */
	struct soft_shm_window *win[SOFT_SHM_SEGS]; /* __atomic */
	uint32_t rev;                               /* __atomic; new with every change of these */
};

/* A connection that somebody made to this device. */
struct soft_shm_rx {
	rte_ticketlock_t lock;
	uint32_t state; /* as above */
	struct soft_ring_rx ring;
	uint8_t dst[16]; /* our address that it was made to */
	uint32_t n_gids;
	uint8_t gids[SOFT_SHM_GIDS][16];
	/* Under soft_shm.lock. */
	int sock;
	uint64_t give_up; /* TSC */
	uint32_t seg_rev[SOFT_SHM_SEGS];
	pid_t pid;
	const struct soft_shm_dir *dir;
	/* The words of its engines, as soft_shm_wait() has found them. */
	uint32_t n_inside;
	uint64_t inside[SOFT_SHM_ENGINES];
};

struct soft_shm {
	struct soft_dev *dev;
	pthread_mutex_t lock;
	uint64_t chores_at;  /* TSC; __atomic */
	uint32_t deaths;     /* of connections made, together; __atomic */
	uint32_t n_tx, n_rx; /* slots that have been in use; __atomic */
	struct soft_shm_tx *tx[SOFT_SHM_PEERS];
	struct soft_shm_rx *rx[SOFT_SHM_PEERS];
	/* Control path's, and under the lock. */
	int epoll;
	int listener[SOFT_SHM_GIDS];
	uint32_t n_listeners;
	int dir_fd;
	struct soft_shm_dir *dir;
	bool slot_used[SOFT_SHM_ENGINES];
	struct soft_shm_seg seg[SOFT_SHM_SEGS];
	struct soft_shm_window *old; /* windows that were replaced */
	uint64_t said;               /* TSC of the last line about a user that is not trusted */
	uint32_t unsaid;             /* connections of such, since */
	/* Number of every user that has none of its own here; SOFT_SHM_NO_USER if all have one. */
	uid_t unnamed;
};

#define SOFT_SHM_NEAR 4u /* power of two */

/* What an engine remembers to carry out a QP's requests in the peer's memory. */
struct soft_shm_direct {
	bool allowed;
	bool fenced;     /* who retires an entry fences for us, too */
	uint32_t rev;    /* soft_shm_tx.rev when the rest was found */
	uint32_t qp_seq; /* of the peer's QP; 0: not found */
	uint32_t pdn, rights;
	struct soft_shm_near near[SOFT_SHM_NEAR];
};

/* A QP on this link. */
struct soft_shm_wire {
	struct soft_wire w;
	uint32_t deaths; /* of w.shm_tx, as the QP got to RTR */
	struct soft_shm_direct direct;
	struct soft_shm_count served; /* of what its peer has done by itself, counted already */
};

static inline struct soft_shm_wire *
soft_shm_wire(struct soft_wire *w)
{
	return container_of(w, struct soft_shm_wire, w);
}

/* ---- soft_shm.c */

/* GID @index of a device with these options. False: none. */
bool soft_shm_gid(const struct soft_port_opts *o, uint32_t index, uint8_t gid[16]);
/*
 * The MAC that goes with an address. Nothing goes by it here, but address vectors have one; a
 * device's own is that of its first ip option.
 */
void soft_shm_mac(const uint8_t gid[16], uint8_t mac[6]);
/* Join the fabric that the options name. -EADDRINUSE, -errno, logged. */
int soft_shm_start(struct soft_dev *dev);
/* No engine is left. */
void soft_shm_stop(struct soft_dev *dev);
/*
 * Resolves an address for an address vector: connects to its owner, and waits SOFT_SHM_PATIENCE_S
 * for a place in its queue. -EHOSTUNREACH: no owner yet; -EAGAIN: the queue stayed full; -EACCES: a
 * user that is not trusted; -errno; logged.
 */
int soft_shm_resolve(struct soft_dev *dev, const uint8_t gid[16], uint8_t mac[6]);
/* What is to be done now and then; from an engine's turn. */
void soft_shm_chores(struct soft_shm *shm, uint64_t now);
void soft_shm_watch(struct soft_shm *shm, int sock, uint32_t what);
/* Why a connection ends whose other side has hung up: without BYE, and with it. */
extern const char soft_shm_died[], soft_shm_closed[];
/*
 * Logs why a connection of @pid has ended, unless @why is NULL. That a process died or closed its
 * device is logged once, at the end of its last connection.
 */
void soft_shm_say_end(const struct soft_shm *shm, pid_t pid, const char *why);
/* Says that this device is closed. */
void soft_shm_bye(int sock);

/* What an epoll event is of: one of these, and an index. */
enum {
	SOFT_SHM_EV_LISTENER = 0 << 16,
	SOFT_SHM_EV_TX = 1 << 16,
	SOFT_SHM_EV_RX = 2 << 16,
};

/* ---- soft_shm_user.c */

#define SOFT_SHM_NO_USER ((uid_t)-1)
#define SOFT_SHM_HINT    64

/*
 * Returns the number that stands for every user that a user namespace does not number, or
 * SOFT_SHM_NO_USER if it numbers all. Files as /proc/self/uid_map and
 * /proc/sys/kernel/overflowuid; one that cannot be read counts as an incomplete map or the
 * kernel's default.
 */
uid_t soft_shm_unnamed(const char *map_path, const char *overflow_path);
/* Checks that the device's own user and that of shm_uid are identities. -EPERM: logged. */
int soft_shm_user_start(struct soft_shm *shm);
/* Checks that the process at the other end of @sock may be a peer. 0; -EACCES; -errno. */
int soft_shm_user(const struct soft_shm *shm, int sock, pid_t *pid, uid_t *uid);
/* Returns what would make a refused user a trusted one, for a line of the log. */
const char *soft_shm_user_hint(const struct soft_shm *shm, uid_t uid, char hint[SOFT_SHM_HINT]);

/* ---- soft_link_shm.c */

/*
 * The connection that leads there, locked, and the place of the source among our addresses. NULL:
 * it is not up, or nothing can be sent there.
 */
struct soft_shm_tx *soft_shm_tx_lock(struct soft_engine *e, const struct soft_wire_dest *to,
				     uint8_t *sgid);

/*
 * Takes a packet of @rec->len bytes at @p in the ring of @rx, where it may change at any time: all
 * of the peer's bytes come in here.
 */
void soft_shm_input(struct soft_engine *e, const struct soft_shm_rx *rx,
		    const struct soft_ring_rec *rec, const uint8_t *p);

/* ---- soft_shm_tx.c */

/*
 * Connect to an address, if that is not done or under way; @keep: and if nobody is there now, be
 * ready for who comes later. As soft_shm_resolve(), but it never waits: -EAGAIN the peer's queue of
 * connections is full. Takes soft_shm.lock.
 */
int soft_shm_reach(struct soft_dev *dev, const uint8_t gid[16], bool keep);
/* The connection to an address, without the lock. NULL: nobody has asked for it. */
struct soft_shm_tx *soft_shm_find(const struct soft_shm *shm, const uint8_t gid[16]);
/* Under soft_shm.lock: connect if it is time. 0: it is up, or under way. */
int soft_shm_tx_connect(struct soft_shm *shm, uint32_t index, uint64_t now);
void soft_shm_tx_event(struct soft_shm *shm, uint32_t index);
void soft_shm_tx_chores(struct soft_shm *shm, uint64_t now);
void soft_shm_tx_close(struct soft_shm *shm, struct soft_shm_tx *tx, const char *why);

/* ---- soft_shm_win.c: what peers have handed over */

/* Map a part of a file that a SEGMENT message came with. NULL, or why it cannot be. */
const char *soft_shm_win_take(struct soft_shm *shm, struct soft_shm_tx *tx,
			      const struct soft_shm_msg *m, int fd);
/*
 * Look a peer's key up, for a QP of PD @pdn there with these rights. False: it is none of memory
 * that is mapped here. The entry may be anything; the result is inside a window.
 */
bool soft_shm_near_find(const struct soft_shm_tx *tx, uint32_t pdn, uint32_t rights, uint32_t key,
			struct soft_shm_near *n);
/* Forget all that a peer has handed over. */
void soft_shm_win_drop(struct soft_shm *shm, struct soft_shm_tx *tx);
/* Unmap what nobody uses any more; @all: no engine is left. */
void soft_shm_win_chores(struct soft_shm *shm, bool all);

/* ---- soft_shm_rx.c */
void soft_shm_rx_accept(struct soft_shm *shm, uint32_t listener, uint64_t now);
void soft_shm_rx_event(struct soft_shm *shm, uint32_t index);
void soft_shm_rx_chores(struct soft_shm *shm, uint64_t now);
/* Under soft_shm.lock and, if it is up, what soft_shm_collect_all() takes. */
void soft_shm_rx_close(struct soft_shm *shm, struct soft_shm_rx *rx, const char *why);

/* ---- soft_shm_pub.c: what peers may access themselves; each nothing without the option shm */

extern const struct soft_share_ops soft_shm_share;
/* A QP's state or rights have changed, under its engine's lock. */
void soft_shm_qp_update(struct soft_qp *qp);
/*
 * Count what peers have done by themselves: to @qp, which leaves RTS, or NULL: to all QPs. Under
 * soft_dev.lock, and no engine's.
 */
void soft_shm_collect(struct soft_dev *dev, const struct soft_qp *qp);
/*
 * What the peer of @qp, which is in RTR, has done by itself until now was for an earlier
 * connection, and has been counted. Under soft_dev.lock, and no engine's.
 */
void soft_shm_skip(struct soft_dev *dev, const struct soft_qp *qp);
/*
 * The same for all QPs, under soft_shm.lock and, so that none of them goes meanwhile, soft_dev.lock
 * or an engine's.
 */
void soft_shm_collect_all(const struct soft_shm *shm);
/* It has no engine any more. */
void soft_shm_qp_gone(struct soft_dev *dev, uint32_t qpn);
/*
 * Returns when no peer is doing any more what it began while a key or QP was published that is not
 * now. One that is dead is not waited for, one that stays inside is cut off. No engine's lock may
 * be held.
 */
void soft_shm_wait(struct soft_dev *dev);
/* Tell a peer of segments that are new to it; under soft_shm.lock. */
void soft_shm_segs_send(struct soft_shm *shm, struct soft_shm_rx *rx);
void soft_shm_engine_add(struct soft_engine *e);
void soft_shm_engine_del(struct soft_engine *e);
/* May requests of this device be carried out by other means than packets? */
bool soft_shm_direct_allowed(const struct soft_dev *dev);

/* ---- soft_shm_direct.c */

/*
 * The requests at the head of the queue that this engine can carry out itself in the peer's memory,
 * at most @budget. Returns how many; the QP may have failed.
 */
uint32_t soft_shm_direct(struct soft_engine *e, struct soft_wire *w, uint32_t budget);

/* ---- soft_shm_send.c */

/* Send what is posted and plain, up to the first that is not, to a peer in shared memory. */
void soft_shm_send_out(struct soft_engine *e, struct soft_wire *w, uint64_t now);
/* Take a packet that is such a SEND. False: it is not taken. */
bool soft_shm_send_in(struct soft_engine *e, const struct soft_shm_rx *rx,
		      const struct soft_ring_rec *rec, const uint8_t *p);

#endif
