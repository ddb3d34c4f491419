/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A device's port to other processes of the host, option shm=FABRIC. Start reading at
 * soft_shm_msg.h (the handshake of two devices), soft_shm_ring.h (packets), soft_shm_mem.h (shared
 * memory) and soft_link_shm.c (the link to the RoCEv2 engine).
 *
 * A connection carries packets one way: a device connects to each peer that it sends to. The sender
 * has a struct soft_shm_tx for it, the receiver a struct soft_shm_rx.
 *
 * Locks: soft_shm.lock covers the sockets and the set of connections; engines only try it. A
 * connection's lock covers its ring, for short sections. Order: soft_dev.lock, an engine's lock,
 * soft_shm.lock (tried), an rx lock, a tx lock. Memory that is read without a lock stays mapped:
 * see soft_shm_reserve().
 */
#ifndef SOFT_SHM_H
#define SOFT_SHM_H

#include "soft_data.h"
#include "soft_shm_mem.h"
#include "soft_shm_msg.h"
#include "soft_shm_ring.h"
#include "soft_wire.h"

#define SOFT_SHM_CHORES_NS 1000000u  /* Interval of socket checks. */
#define SOFT_SHM_AGAIN_NS  10000000u /* Interval of connection attempts. */
/* Interval of connection attempts while the peer's queue is full. */
#define SOFT_SHM_FULL_NS    1000000u
#define SOFT_SHM_PATIENCE_S 5u /* Timeout of the peer's half of a handshake, seconds. */
/* Timeout for a peer's access after its right ended; then the peer is disconnected. Nanoseconds. */
#define SOFT_SHM_HOLD_NS UINT64_C(2000000000)

enum soft_shm_state {
	SOFT_SHM_IDLE,
	SOFT_SHM_GREETING, /* Handshake: HELLO is sent, or expected. */
	SOFT_SHM_UP,
};

/* A part of a file of application memory that a device shares. */
struct soft_shm_seg {
	int fd;
	dev_t dev;
	ino_t ino;
	uint64_t off, end; /* Offsets in the file: whole pages from off to end. */
	uint32_t gen;      /* Generation of the slot; changes with the file. */
	uint32_t rev;      /* Revision; a peer with an older one gets the segment again. */
	uint32_t refs;     /* Number of keys in the segment. */
};

/*
 * A peer's segment, mapped in this process. Never changes; a new segment replaces it by a new
 * window.
 */
struct soft_shm_window {
	uint8_t *base;
	uint64_t off, len;
	uint32_t gen;
	/*
	 * After a replacement: next old window, and the epochs of the engines at that time. The
	 * window is unmapped when each engine that was inside has left.
	 */
	struct soft_shm_window *next;
	uint64_t inside[SOFT_SHM_ENGINES];
};

/*
 * A connection made by this device, for sending. Lives until the device is closed, because its
 * address does: the device does not learn when the last address vector with that address is
 * destroyed.
 */
struct soft_shm_tx {
	rte_ticketlock_t lock;
	uint32_t state;  /* enum soft_shm_state. __atomic; written under both locks. */
	uint32_t deaths; /* Number of times the peer went away. __atomic */
	uint8_t dst[16];
	uint8_t mac[6]; /* MAC of dst. */
	/* Under the lock of the connection. */
	struct soft_ring_tx ring;
	/* Under soft_shm.lock. */
	int sock;
	uint64_t again; /* Time of the next connection attempt, or of the handshake's timeout,
			 * TSC. __atomic */
	pid_t pid;
	const struct soft_shm_dir *dir; /* Directory of the peer; zeros if not connected. */
	/* Engines that are inside read these fields without a lock. */
	struct soft_shm_window *win[SOFT_SHM_SEGS]; /* Windows by slot, NULL if none. __atomic */
	uint32_t rev;                               /* Revision of win; changes with each change
						     * of a window. __atomic */
};

/* A connection that a peer made to this device. */
struct soft_shm_rx {
	rte_ticketlock_t lock;
	uint32_t state; /* enum soft_shm_state. __atomic; written under both locks. */
	struct soft_ring_rx ring;
	uint8_t dst[16]; /* Address of this device that the peer connected to. */
	uint32_t n_gids;
	uint8_t gids[SOFT_SHM_GIDS][16];
	/* Under soft_shm.lock. */
	int sock;
	uint64_t give_up; /* Handshake's timeout, TSC. */
	uint32_t seg_rev[SOFT_SHM_SEGS];
	pid_t pid;
	const struct soft_shm_dir *dir;
	/* Epochs of the peer's engines, as soft_shm_wait() read them. */
	uint32_t n_inside;
	uint64_t inside[SOFT_SHM_ENGINES];
};

struct soft_shm {
	struct soft_dev *dev;
	pthread_mutex_t lock;
	uint64_t chores_at;  /* Time of the next chores, TSC. __atomic */
	uint32_t deaths;     /* Sum of the deaths of all tx. __atomic */
	uint32_t n_tx, n_rx; /* Slots ever used. __atomic */
	struct soft_shm_tx *tx[SOFT_SHM_PEERS];
	struct soft_shm_rx *rx[SOFT_SHM_PEERS];
	/* Used by the control path and the chores, under the lock. */
	int epoll;
	int listener[SOFT_SHM_GIDS];
	uint32_t n_listeners;
	int dir_fd;
	struct soft_shm_dir *dir;
	bool slot_used[SOFT_SHM_ENGINES];
	struct soft_shm_seg seg[SOFT_SHM_SEGS];
	struct soft_shm_window *old; /* Replaced windows that are still mapped. */
	uint64_t said;               /* Time of the last log line about an untrusted user, TSC. */
	uint32_t unsaid;             /* Connections of untrusted users since that line. */
	/*
	 * uid by which the user namespace shows all users without a number; SOFT_SHM_NO_USER if
	 * every user has one.
	 */
	uid_t unnamed;
};

#define SOFT_SHM_NEAR 4u /* Power of two. */

/* State of a QP whose requests an engine executes in the peer's memory. */
struct soft_shm_direct {
	bool allowed;
	bool fenced;     /* A peer that retires an entry fences this CPU, too. */
	uint32_t rev;    /* soft_shm_tx.rev at the lookup of the fields below. */
	uint32_t qp_seq; /* seq of the peer's QP, 0 if not found. */
	uint32_t pdn, rights;
	struct soft_shm_near near[SOFT_SHM_NEAR];
};

/* A QP on this link. */
struct soft_shm_wire {
	struct soft_wire w;
	uint32_t deaths; /* w.shm_tx->deaths when the QP entered RTR. */
	struct soft_shm_direct direct;
	struct soft_shm_count served; /* Direct accesses of the peer that are already counted. */
};

static inline struct soft_shm_wire *
soft_shm_wire(struct soft_wire *w)
{
	return container_of(w, struct soft_shm_wire, w);
}

/* ---- soft_shm.c */

/* Writes GID @index of a device with these options to @gid. Returns false if it has no such GID. */
bool soft_shm_gid(const struct soft_port_opts *o, uint32_t index, uint8_t gid[16]);
/*
 * Returns the MAC of an address. Shared memory does not use it, but address vectors have one. A
 * device's own MAC is that of its first ip option.
 */
void soft_shm_mac(const uint8_t gid[16], uint8_t mac[6]);
/*
 * Joins the fabric that the options name. Returns 0, -EADDRINUSE or another negative errno, logged.
 */
int soft_shm_start(struct soft_dev *dev);
/* Leaves the fabric; no engine of the device is left. */
void soft_shm_stop(struct soft_dev *dev);
/*
 * Resolves an address for an address vector: connects to its owner. Waits up to SOFT_SHM_PATIENCE_S
 * for room in the owner's queue. Returns 0, -EHOSTUNREACH (no owner yet), -EAGAIN (the queue stayed
 * full), -EACCES (untrusted user) or another negative errno, logged.
 */
int soft_shm_resolve(struct soft_dev *dev, const uint8_t gid[16], uint8_t mac[6]);
/* Serves the sockets and timeouts. Called from an engine's turn. */
void soft_shm_chores(struct soft_shm *shm, uint64_t now);
void soft_shm_watch(struct soft_shm *shm, int sock, uint32_t what);
/* Reasons for the end of a connection: the peer left without BYE; the peer left with BYE. */
extern const char soft_shm_died[], soft_shm_closed[];
/*
 * Logs why a connection of @pid has ended, unless @why is NULL. The death of a process or the close
 * of its device is logged once, at the end of its last connection.
 */
void soft_shm_say_end(const struct soft_shm *shm, pid_t pid, const char *why);
/* Sends BYE: this device is closed. */
void soft_shm_bye(int sock);

/* Data of an epoll event: one of these values plus an index. */
enum {
	SOFT_SHM_EV_LISTENER = 0 << 16,
	SOFT_SHM_EV_TX = 1 << 16,
	SOFT_SHM_EV_RX = 2 << 16,
};

/* ---- soft_shm_user.c */

#define SOFT_SHM_NO_USER ((uid_t)-1)
#define SOFT_SHM_HINT    64

/*
 * Returns the uid by which a user namespace shows all users without a number, or SOFT_SHM_NO_USER
 * if every user has one. @map_path and @overflow_path name files with the format of
 * /proc/self/uid_map and /proc/sys/kernel/overflowuid. An unreadable map counts as incomplete, and
 * an unreadable overflow file as the kernel's default.
 */
uid_t soft_shm_unnamed(const char *map_path, const char *overflow_path);
/*
 * Checks that the uids of the device's user and of shm_uid identify one user each. Returns 0 or
 * -EPERM, logged.
 */
int soft_shm_user_start(struct soft_shm *shm);
/*
 * Checks that the process at the far end of @sock is a trusted user's. Returns 0, -EACCES or
 * another negative errno; *pid and *uid identify the process.
 */
int soft_shm_user(const struct soft_shm *shm, int sock, pid_t *pid, uid_t *uid);
/* Returns advice for the log: the way to make a refused user trusted. */
const char *soft_shm_user_hint(const struct soft_shm *shm, uid_t uid, char hint[SOFT_SHM_HINT]);

/* ---- soft_link_shm.c */

/*
 * Returns the connection to @to, locked, and in *sgid the index of the source among this device's
 * addresses. Returns NULL if the connection is not up or the destination is unreachable.
 */
struct soft_shm_tx *soft_shm_tx_lock(struct soft_engine *e, const struct soft_wire_dest *to,
				     uint8_t *sgid);

/*
 * Takes a packet of @rec->len bytes at @p in the ring of @rx. The peer may change the bytes at any
 * time. All packets of peers enter here.
 */
void soft_shm_input(struct soft_engine *e, const struct soft_shm_rx *rx,
		    const struct soft_ring_rec *rec, const uint8_t *p);

/* ---- soft_shm_tx.c */

/*
 * Connects to an address unless it is connected or connecting. With @keep the entry stays if the
 * address has no owner now, for a later owner. Same results as soft_shm_resolve(), but never waits:
 * -EAGAIN if the peer's queue of connections is full. Takes soft_shm.lock.
 */
int soft_shm_reach(struct soft_dev *dev, const uint8_t gid[16], bool keep);
/* Returns the connection to an address, or NULL if no caller has requested one. Takes no lock. */
struct soft_shm_tx *soft_shm_find(const struct soft_shm *shm, const uint8_t gid[16]);
/*
 * Starts a connection if it is idle. Returns 0 if it is up or in progress, or a negative errno.
 * Under soft_shm.lock.
 */
int soft_shm_tx_connect(struct soft_shm *shm, uint32_t index, uint64_t now);
void soft_shm_tx_event(struct soft_shm *shm, uint32_t index);
void soft_shm_tx_chores(struct soft_shm *shm, uint64_t now);
void soft_shm_tx_close(struct soft_shm *shm, struct soft_shm_tx *tx, const char *why);

/* ---- soft_shm_win.c: memory that peers share */

/*
 * Maps the part of a file that a SEGMENT message brought. Returns NULL, or the reason to close the
 * connection.
 */
const char *soft_shm_win_take(struct soft_shm *shm, struct soft_shm_tx *tx,
			      const struct soft_shm_msg *m, int fd);
/*
 * Looks up a peer's key for a QP of PD @pdn with @rights at the peer. Returns false if its memory
 * is not mapped here. The peer controls the entry's content; the result always lies inside a
 * window.
 */
bool soft_shm_near_find(const struct soft_shm_tx *tx, uint32_t pdn, uint32_t rights, uint32_t key,
			struct soft_shm_near *n);
/* Drops all windows of a peer. */
void soft_shm_win_drop(struct soft_shm *shm, struct soft_shm_tx *tx);
/* Unmaps replaced windows that no engine uses; with @all every one, because no engine is left. */
void soft_shm_win_chores(struct soft_shm *shm, bool all);

/* ---- soft_shm_rx.c */
void soft_shm_rx_accept(struct soft_shm *shm, uint32_t listener, uint64_t now);
void soft_shm_rx_event(struct soft_shm *shm, uint32_t index);
void soft_shm_rx_chores(struct soft_shm *shm, uint64_t now);
/*
 * Closes a connection. Under soft_shm.lock and, if the connection is up, the locks that
 * soft_shm_collect_all() needs.
 */
void soft_shm_rx_close(struct soft_shm *shm, struct soft_shm_rx *rx, const char *why);

/*
 * ---- soft_shm_pub.c: memory for direct access by peers; each call does nothing without option shm
 */

extern const struct soft_share_ops soft_shm_share;
/* Publishes a QP after a change of its state or rights. Under its engine's lock. */
void soft_shm_qp_update(struct soft_qp *qp);
/*
 * Counts direct accesses of peers: to @qp, which leaves RTS, or to all QPs if @qp is NULL. Under
 * soft_dev.lock and no engine's lock.
 */
void soft_shm_collect(struct soft_dev *dev, const struct soft_qp *qp);
/*
 * Skips the direct accesses of the peer of @qp until now: they belong to an earlier connection and
 * are counted already. @qp is in RTR. Under soft_dev.lock and no engine's lock.
 */
void soft_shm_skip(struct soft_dev *dev, const struct soft_qp *qp);
/*
 * Counts direct accesses of peers to all QPs. Under soft_shm.lock, and under soft_dev.lock or an
 * engine's lock, so that no QP is destroyed meanwhile.
 */
void soft_shm_collect_all(const struct soft_shm *shm);
/* Withdraws a QP that has no engine any more, and waits for peers. */
void soft_shm_qp_gone(struct soft_dev *dev, uint32_t qpn);
/*
 * Waits until no peer executes an access that it began while a withdrawn key or QP was published.
 * Skips dead peers, and disconnects a peer that stays inside for SOFT_SHM_HOLD_NS. The caller holds
 * no engine's lock.
 */
void soft_shm_wait(struct soft_dev *dev);
/* Sends a peer the segments that are new to it. Under soft_shm.lock. */
void soft_shm_segs_send(struct soft_shm *shm, struct soft_shm_rx *rx);
void soft_shm_engine_add(struct soft_engine *e);
void soft_shm_engine_del(struct soft_engine *e);
/* Returns true if peers and this device may execute requests without packets. */
bool soft_shm_direct_allowed(const struct soft_dev *dev);

/* ---- soft_shm_direct.c */

/*
 * Executes requests from the head of the send queue in the peer's memory, at most @budget. Returns
 * their number; the QP may have failed.
 */
uint32_t soft_shm_direct(struct soft_engine *e, struct soft_wire *w, uint32_t budget);

/* ---- soft_shm_send.c */

/* Sends plain posted SENDs to a peer in shared memory, up to the first WQE of another kind. */
void soft_shm_send_out(struct soft_engine *e, struct soft_wire *w, uint64_t now);
/* Takes a packet that is such a SEND. Returns false if the packet needs the long path. */
bool soft_shm_send_in(struct soft_engine *e, const struct soft_shm_rx *rx,
		      const struct soft_ring_rec *rec, const uint8_t *p);

#endif
