/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A device's port to other processes of the host, option shm=FABRIC. Start reading at
 * soft_shm_msg.h (the handshake of two devices), soft_shm_ring.h (packets), soft_shm_mem.h (shared
 * memory) and soft_link_shm.c (the link to the RoCEv2 engine).
 *
 * A connection carries packets in one direction: a device connects to each peer that it sends to.
 * The sender has a struct soft_shm_tx for the connection, the receiver a struct soft_shm_rx. A
 * direct access is a request that the requester's CPU executes in the peer's memory, without
 * packets. An engine's epoch is a counter that is odd while the engine may make direct accesses.
 * Peers read the epoch to find out when an access that may use old memory has ended.
 *
 * Locks: soft_shm.lock covers the sockets and the set of connections; an engine never waits for it.
 * A connection's lock covers its ring and is held only briefly. Order: soft_dev.lock, an engine's
 * lock, soft_shm.lock (trylock only), an rx lock, soft_shm_casts.lock, a tx lock. Memory that is
 * read without a lock stays mapped: see soft_shm_reserve().
 */
#ifndef SOFT_SHM_H
#define SOFT_SHM_H

#include "soft_data.h"
#include "soft_shm_group.h"
#include "soft_shm_mem.h"
#include "soft_shm_msg.h"
#include "soft_shm_ring.h"
#include "soft_shm_segs.h"
#include "soft_shm_slot.h"
#include "soft_shm_user.h"
#include "soft_wire.h"

#define SOFT_SHM_CHORES_NS 1000000u  /* Interval of socket checks, ns. */
#define SOFT_SHM_RETRY_NS  10000000u /* Interval of connection attempts, ns. */
/* Interval of connection attempts while the peer's queue is full, ns. */
#define SOFT_SHM_FULL_NS    1000000u
#define SOFT_SHM_PATIENCE_S 5u /* Timeout for the peer's reply during a handshake, seconds. */
/*
 * Timeout in ns for accesses of a peer to withdrawn memory. A peer that needs longer is
 * disconnected.
 */
#define SOFT_SHM_HOLD_NS UINT64_C(2000000000)

enum soft_shm_state {
	SOFT_SHM_IDLE,
	SOFT_SHM_HANDSHAKE, /* Handshake in progress: HELLO was sent, or is expected. */
	SOFT_SHM_UP,
};

/*
 * A window: a peer's segment (shared part of a file), mapped in this process. A window never
 * changes: if the peer sends a new segment, a new window replaces the old.
 */
struct soft_shm_window {
	uint8_t *base;
	uint64_t off, len;
	uint32_t gen;
	/*
	 * Valid after a newer window has replaced this one: next old window, and the epochs of this
	 * device's engines at the replacement. If an epoch was odd, that engine may still use this
	 * window. The window is unmapped when each epoch that was odd has changed.
	 */
	struct soft_shm_window *next;
	uint64_t epochs[SOFT_SHM_ENGINES];
};

/* Longest wait for the last packets of a peer that has closed, ns of soft_shm.running. */
#define SOFT_SHM_LAST_NS UINT64_C(1000000000)
/* Longest time between two runs of soft_shm_chores() that soft_shm.running counts, ns. */
#define SOFT_SHM_GAP_NS UINT64_C(100000000)

/*
 * A connection that this device made, to send to one address, or to one slot of an address that
 * several processes share (soft_shm_slot.h). The connection lives until the device is closed,
 * because the device does not learn when the last address vector with that address is destroyed.
 */
struct soft_shm_tx {
	rte_ticketlock_t lock;
	/* enum soft_shm_state. __atomic; written under soft_shm.lock and this struct's lock. */
	uint32_t state;
	uint32_t deaths; /* Number of times the peer disconnected or died. __atomic */
	uint8_t dst[16];
	uint32_t slot;  /* Slot (range of QPNs) of dst, or SOFT_SHM_ALL. */
	uint8_t mac[6]; /* MAC that belongs to dst. */
	bool fenced;    /* Result of soft_shm_fenced(). */
	/*
	 * True for a connection to a member of a multicast group (soft_shm_group.c). dst is zero
	 * then, so that no address has the connection. Never changes.
	 */
	bool to_group;
	/* Only if to_group: the group. "slot": the member's number, 0 if the entry is free. */
	uint8_t group[16];
	uint64_t group_retry; /* Time before which the member is not asked again, TSC. */
	/* Fields that the connection's lock protects. */
	struct soft_ring_tx ring;
	uint32_t woken; /* Value of soft_shm_dir.asleep for which WAKE was sent. */
	/* Protected by soft_shm.lock. While the connection is up, its lock also protects "sock". */
	int sock;
	uint64_t next_attempt; /* Time of the next connection attempt, or timeout of the handshake,
				* TSC.
				* __atomic */
	pid_t pid;
	/*
	 * Why the connection will end, once the peer's last packets, such as ACKs, are read; NULL
	 * while the peer is connected.
	 */
	const char *leaving;
	/* Value of soft_shm.running at which the connection closes in any case; 0: not yet set. */
	uint64_t leave_by;
	/* Descriptor of process "pid" for poll(), -1 if there is none. Protected like "sock". */
	int pidfd;
	/*
	 * The kernel refuses access to the peer's memory that has no file, or the peer's process is
	 * unknown. __atomic
	 */
	bool vm_refused;
	/*
	 * Directory in the peer's shared memory, which lists the peer's QPs and keys; zeros if not
	 * connected.
	 */
	const struct soft_shm_dir *dir;
	/*
	 * Used only in the first entry of an address: for each slot of the address, the earliest
	 * time of the next connection attempt, TSC. Under soft_shm.lock.
	 */
	uint64_t next_retry[SOFT_SHM_SLOTS];
	/* soft_shm_dir.opening of the peer that was last connected, 0 if none was. */
	uint64_t opening;
	/* Fields that engines read without a lock while their epoch is odd. */
	/* Windows (mappings of the peer's memory) by segment number, NULL if none. __atomic */
	struct soft_shm_window *win[SOFT_SHM_SEGS];
	/* Revision; increments when a window (mapping of the peer's memory) changes. __atomic */
	uint32_t rev;
};

/* A connection that a peer made to this device. */
struct soft_shm_rx {
	rte_ticketlock_t lock;
	/* enum soft_shm_state. __atomic; written under soft_shm.lock and this struct's lock. */
	uint32_t state;
	struct soft_ring_rx ring;
	uint8_t dst[16]; /* Address of this device to which the peer connected. */
	/* 0 for a connection to a multicast group, so that its packets reach no QP by number. */
	uint32_t n_gids;
	uint32_t n_group_gids; /* Number of gids[] of a connection to a group, else 0. */
	uint8_t gids[SOFT_SHM_GIDS][16];
	/* Fields that soft_shm.lock protects. */
	int sock;
	uint64_t give_up; /* Timeout of the handshake, TSC. */
	/* Why the connection will end, once its last packets are read; NULL if it will not. */
	const char *leaving;
	uint64_t leave_by; /* As in struct soft_shm_tx. */
	uint32_t seg_rev[SOFT_SHM_SEGS];
	uint32_t seg_changes; /* Value of soft_shm.seg_changes when all segments were sent. */
	pid_t pid;
	const struct soft_shm_dir *dir;
	/*
	 * Epochs of the peer's engines when soft_shm_wait() last read them. Odd: the engine may
	 * access this process's memory.
	 */
	uint32_t n_epochs;
	uint64_t epochs[SOFT_SHM_ENGINES];
};

struct soft_shm {
	struct soft_dev *dev;
	pthread_mutex_t lock;
	uint64_t chores_at; /* Time at which soft_shm_chores() must run next, TSC. __atomic */
	/*
	 * Number of times that a connection of tx[] to an address came up, or ended after it was
	 * up. Engines then check their QPs. __atomic
	 */
	uint32_t changes;
	uint32_t n_tx, n_rx; /* Numbers of entries that were ever used. __atomic */
	struct soft_shm_tx *tx[SOFT_SHM_PEERS + SOFT_SHM_GROUP_PEERS];
	struct soft_shm_rx *rx[SOFT_SHM_PEERS];
	/* Used by the control path and by soft_shm_chores(), under soft_shm.lock. */
	int epoll;
	int listener[SOFT_SHM_GIDS];
	uint32_t n_listeners;
	struct soft_shm_group groups[1u << SOFT_LOG_MAX_MCG];
	struct soft_shm_casts casts;
	uint32_t slot; /* Slot (range of QPNs) that the device has, or SOFT_SHM_ALL. */
	int mark[2 * SOFT_SHM_GIDS]; /* Sockets that mark the slot as used. */
	uint32_t n_marks;
	int dir_fd;
	struct soft_shm_dir *dir;
	bool slot_used[SOFT_SHM_ENGINES];
	struct soft_shm_seg seg[SOFT_SHM_SEGS];
	uint32_t seg_changes; /* Increments when a segment may have changed. */
	/* Mappings of peers' memory that were replaced but are not unmapped yet. */
	struct soft_shm_window *old;
	uint64_t last_untrusted_log; /* Time of the last log line about an untrusted user, TSC. */
	/* Connections of untrusted users refused since last_untrusted_log. */
	uint32_t unlogged_untrusted;
	/*
	 * Time at which the device watches its listening sockets again after accept4() has failed,
	 * TSC; 0 if it watches them.
	 */
	uint64_t accept_at;
	int accept_error;     /* Negative errno of the last accept4(), 0 if it succeeded. */
	uint64_t last_chores; /* Time of the last run of soft_shm_chores(), TSC. */
	/*
	 * Sum of the times between two runs of soft_shm_chores(), TSC cycles. Each counts for at
	 * most SOFT_SHM_GAP_NS: a process that was stopped could not read packets.
	 */
	uint64_t running;
	/*
	 * uid that this process's user namespace shows for all unmapped users; SOFT_SHM_NO_USER if
	 * all users are mapped.
	 */
	uid_t unnamed;
};

#define SOFT_SHM_CACHED_KEYS 4u /* Cached keys per QP; a power of two. */

/* State of a QP whose requests an engine executes in the peer's memory. */
struct soft_shm_direct {
	bool fenced; /* A fence of a peer that withdraws an entry also orders this engine's accesses
		      * (soft_shm_fence()). */
	uint32_t rev;    /* soft_shm_tx.rev when the fields below were looked up. */
	uint32_t qp_seq; /* Sequence number of the peer's QP entry, 0 if not found. */
	/*
	 * Only if qp_seq is not 0: addresses of that entry's sequence number, and of the PSN that
	 * the peer's QP expects.
	 */
	const uint32_t *seq, *epsn;
	uint32_t pdn, rights;
	struct soft_shm_cached_key cached_keys[SOFT_SHM_CACHED_KEYS];
};

/* A QP on a device with shm= (shared memory instead of a network port). */
struct soft_shm_wire {
	struct soft_wire w;
	/* Value of w.shm_tx->deaths (how often the peer was lost) when the QP entered RTR. */
	uint32_t deaths;
	/*
	 * Direct accesses, and the fast path of SENDs and ACKs, are allowed: the QP is RC, its
	 * engine may access peers' memory, and its path reaches the peer.
	 */
	bool plain;
	/* Header of the fast path's records. Its sgid is checked at each use. */
	struct soft_ring_rec head;
	struct soft_shm_direct direct;
	/*
	 * True after the first packet of the connection, which raises COMM_EST. The QP is then in
	 * the directory for peers even if its state is RTR. A QP that never sends stays in RTR.
	 * __atomic
	 */
	bool established;
	/* Requests of the peer in this device's memory that the counters already include. */
	struct soft_shm_count served;
};

static inline struct soft_shm_wire *
soft_shm_wire(struct soft_wire *w)
{
	return container_of(w, struct soft_shm_wire, w);
}

/* ---- soft_shm.c */

/*
 * Writes GID @index of a device with the options @o to @gid. Returns false if there is no such GID.
 */
bool soft_shm_gid(const struct soft_port_opts *o, uint32_t index, uint8_t gid[16]);
/*
 * Returns in *index the position of a source address in this device's HELLO. Returns false if the
 * device does not have that address.
 */
bool soft_shm_source(const struct soft_dev *dev, const uint8_t src[16], uint8_t *index);
/*
 * Returns the MAC of an address. Shared memory does not use MACs, but an address vector contains
 * one. A device's own MAC is that of its first ip option.
 */
void soft_shm_mac(const uint8_t gid[16], uint8_t mac[6]);
/*
 * Joins the fabric (the devices that share memory) that the options name. Returns 0, -EADDRINUSE or
 * another negative errno, logged.
 */
int soft_shm_start(struct soft_dev *dev);
/* Leaves the fabric. The caller has destroyed all engines of the device. */
void soft_shm_stop(struct soft_dev *dev);
/* Closes the sockets in a child of fork(), and initializes the locks: see soft_fork_before(). */
void soft_shm_forget(struct soft_shm *shm);
/*
 * Resolves an address for an address vector: connects to the process that owns the address. Waits
 * up to SOFT_SHM_PATIENCE_S for room in the owner's queue. Returns 0, -EHOSTUNREACH (no owner yet),
 * -EAGAIN (the queue stayed full), -EACCES (untrusted user) or another negative errno, logged.
 */
int soft_shm_resolve(struct soft_dev *dev, const uint8_t gid[16], uint8_t mac[6]);
/* Handles events of the sockets and expired timeouts. Called from an engine's turn. */
void soft_shm_chores(struct soft_shm *shm, uint64_t now);
void soft_shm_watch(struct soft_shm *shm, int sock, uint32_t what);
/* Causes of a disconnection: the peer left without BYE, and the peer left with BYE. */
extern const char soft_shm_died[], soft_shm_closed[];
/*
 * Logs why the connection of process @pid has ended; logs nothing if @why is NULL. The death of a
 * process, or the close of its device, is logged only once, when its last connection ends.
 */
void soft_shm_log_end(const struct soft_shm *shm, pid_t pid, const char *why);
/* Sends BYE: reports to the peer that this device closes. */
void soft_shm_send_bye(int sock);

/* User data of an epoll event: one of these values plus an index. */
enum {
	SOFT_SHM_EV_LISTENER = 0 << 16,
	SOFT_SHM_EV_TX = 1 << 16,
	SOFT_SHM_EV_RX = 2 << 16,
	SOFT_SHM_EV_GROUP = 3 << 16, /* Listener of a multicast group. */
};

/* ---- soft_shm_qps.c: functions of soft_link_ops, and the check of all QPs of an engine */
void soft_shm_connected(struct soft_wire *w);
void soft_shm_established(struct soft_wire *w);
/* Fails the QPs whose peers were lost, and looks up connections that were made since. */
void soft_shm_check_qps(struct soft_engine *e, struct soft_shm *shm);

/* ---- soft_link_shm.c */

/* A received packet: its addresses and headers, and a pointer to its payload in the ring. */
struct soft_shm_pkt {
	struct soft_wire_dest from;
	struct bb_roce_pkt pkt;
	uint8_t hdr[BB_ROCE_MAX_HDR]; /* Copy, because the peer may change the original. */
};

/*
 * Parses a packet in the ring of a connection that has @n_gids source addresses. Returns
 * BB_ROCE_OK, or the reason for which the caller must drop the packet: see soft_wire_lost().
 */
uint32_t soft_shm_parse(const struct soft_engine *e, const struct soft_shm_rx *rx, uint32_t n_gids,
			const struct soft_ring_rec *rec, const uint8_t *p, struct soft_shm_pkt *in);

/*
 * Processes the packets of a record, @rec->len bytes at @p in the ring of @rx. Every packet from a
 * peer enters here. The peer may change the bytes at any time. Returns the QP for which the caller
 * must call soft_wire_received(), once for consecutive packets of a QP; NULL if there is none.
 */
struct soft_wire *soft_shm_input(struct soft_engine *e, const struct soft_shm_rx *rx,
				 const struct soft_ring_rec *rec, const uint8_t *p);

/*
 * Receives the packets that wait for an engine, without a turn. Their ACKs may complete requests of
 * a QP that moves to ERR. Does nothing without option shm. QPs may fail: call soft_failures_run()
 * afterwards. Under the engine's lock.
 */
void soft_shm_last_packets(struct soft_engine *e);

/*
 * Announces to peers whether the device is asleep. If it is asleep, a peer sends WAKE after its
 * next packet. Returns false if peers could miss the announcement, because membarrier(2) does not
 * work.
 */
bool soft_shm_sleep(struct soft_dev *dev, bool asleep);
/* Sends WAKE to the peer. Under the connection's lock. Use soft_shm_rouse(). */
void soft_shm_send_wake(struct soft_shm_tx *tx, uint32_t asleep);

/*
 * Wakes the peer if it is asleep. Call it after a packet was written, with the connection's lock
 * held. The connection must be up.
 */
static inline void
soft_shm_rouse(struct soft_shm_tx *tx)
{
	uint32_t asleep;

	/*
	 * Orders this load after the store of the packet. If this process takes part, the fence of
	 * soft_shm_sleep() does that.
	 */
	if (likely(tx->fenced))
		rte_compiler_barrier();
	else
		bb_smp_mb();
	asleep = __atomic_load_n(&tx->dir->asleep, __ATOMIC_RELAXED);
	if (unlikely((asleep & 1) != 0 && asleep != tx->woken))
		soft_shm_send_wake(tx, asleep);
}

/* ---- soft_shm_tx.c */

/*
 * Connects to the device that owns an address, and whose QPNs are those of @slot. Does nothing if a
 * connection exists or its handshake is in progress. Never waits. Takes soft_shm.lock.
 *
 * Returns 0 if packets can be sent: requests of RC wait for the end of the handshake, all others
 * arrive even if this device closes at once. Returns -EAGAIN if the peer's queue of connections
 * is full, else the errors of soft_shm_resolve(). Does not log that the address has no owner. If it
 * has none and @keep is true, retains an entry for the connection, so that a later owner of the
 * address can be reached.
 */
int soft_shm_reach(struct soft_dev *dev, const uint8_t gid[16], uint32_t slot, bool keep);
/*
 * Does what soft_shm_reach() does with @keep, but at most once in SOFT_SHM_RETRY_NS for each slot.
 * The link calls it for a packet, so it makes no system call between the attempts. Under
 * soft_shm.lock.
 */
void soft_shm_tx_retry(struct soft_shm *shm, const uint8_t gid[16], uint32_t slot);
/*
 * Connects as soft_shm_reach() does, and sets *opening to soft_shm_dir.opening of the peer; to 0 if
 * @slot is SOFT_SHM_ANY and processes share the address. Returns -EAGAIN also while the handshake
 * is in progress.
 */
int soft_shm_opening(struct soft_dev *dev, const uint8_t gid[16], uint32_t slot, uint64_t *opening);
/* Returns the text for an error of soft_shm_reach(), and what to do. */
const char *soft_shm_reach_error(int ret);
/*
 * Returns the connection to the device with the QPNs of @slot of an address, an idle one only if
 * there is no other. Returns NULL if soft_shm_reach() was never called for it. Takes no lock.
 */
struct soft_shm_tx *soft_shm_find(const struct soft_shm *shm, const uint8_t gid[16], uint32_t slot);
/*
 * Starts a connection if it is idle. Returns 0 if the connection is up or in progress, or a
 * negative errno. Under soft_shm.lock.
 */
int soft_shm_tx_connect(struct soft_shm *shm, uint32_t index, uint64_t now);
void soft_shm_tx_event(struct soft_shm *shm, uint32_t index);
void soft_shm_tx_chores(struct soft_shm *shm, uint64_t now);
void soft_shm_tx_close(struct soft_shm *shm, struct soft_shm_tx *tx, const char *why);

/*
 * Creates a connection to a slot of an address, or to a member of a group, which is the caller's to
 * publish in n_tx. Returns NULL if the table or the memory is full. Under soft_shm.lock.
 */
struct soft_shm_tx *soft_shm_tx_create(struct soft_shm *shm, const uint8_t gid[16], uint32_t slot,
				       bool to_group);

/* ---- soft_shm_win.c: peers' memory mapped in this process */

/*
 * Maps the range of a file that the SEGMENT message @m announces. Returns NULL, or the reason to
 * close the connection.
 */
const char *soft_shm_win_take(struct soft_shm *shm, struct soft_shm_tx *tx,
			      const struct soft_shm_msg *m, int fd);
/*
 * Looks up the rkey @key of a request in the peer's table of keys. @pdn: PD of the peer's QP that
 * the request addresses; the key must have this PD. @rights: access rights of that QP; the result
 * has only rights that both the QP and the key grant. Returns false if the key is invalid or its
 * memory is not mapped in this process. The peer controls the content of the table's entry, but the
 * result always lies inside a mapping of the peer's memory.
 */
bool soft_shm_key_find(const struct soft_shm_tx *tx, uint32_t pdn, uint32_t rights, uint32_t key,
		       struct soft_shm_cached_key *n);
/* Removes all mappings of a peer's memory. */
void soft_shm_win_drop(struct soft_shm *shm, struct soft_shm_tx *tx);
/*
 * Unmaps windows (mappings of peers' memory) that a larger mapping has replaced and that no engine
 * uses. @all: unmaps every window, because the device has no engine left.
 */
void soft_shm_win_chores(struct soft_shm *shm, bool all);

/* ---- soft_shm_rx.c */
/*
 * Accepts connections at the listening socket of an address or of a multicast group. Returns 0 or a
 * negative errno: the next connection could not be accepted.
 */
int soft_shm_rx_accept(struct soft_shm *shm, int listener, const uint8_t gid[16], bool group,
		       uint64_t now);
void soft_shm_rx_event(struct soft_shm *shm, uint32_t index);
/* Returns true if packets of a process are not yet read. Call with soft_shm.lock held. */
bool soft_shm_rx_pending(const struct soft_shm *shm, pid_t pid);
void soft_shm_rx_chores(struct soft_shm *shm, uint64_t now);
/*
 * Closes a connection. Under soft_shm.lock and, if the connection is up, also the locks that
 * soft_shm_collect_all() needs.
 */
void soft_shm_rx_close(struct soft_shm *shm, struct soft_shm_rx *rx, const char *why);

/*
 * ---- soft_shm_pub.c: memory that peers may access without packets. Each function does nothing
 * without option shm.
 */

extern const struct soft_share_ops soft_shm_share;
/* Publishes a QP after a change of its state or rights. Under its engine's lock. */
void soft_shm_qp_update(struct soft_qp *qp);
/*
 * Updates the counters with the requests that peers executed in this device's memory: requests to
 * @qp, which leaves RTS, or to all QPs if @qp is NULL. Under soft_dev.lock; the caller holds no
 * engine's lock.
 */
void soft_shm_collect(struct soft_dev *dev, const struct soft_qp *qp);
/*
 * Ignores the requests that the peer of @qp executed in this device's memory until now, because
 * they belong to an earlier connection and are already counted. @qp is in RTR. Under soft_dev.lock;
 * the caller holds no engine's lock.
 */
void soft_shm_skip(struct soft_dev *dev, const struct soft_qp *qp);
/*
 * Updates the counters with the requests that peers executed in this device's memory, for all QPs.
 * Under soft_shm.lock, and under soft_dev.lock or an engine's lock, so that no QP is destroyed
 * meanwhile.
 */
void soft_shm_collect_all(const struct soft_shm *shm);
/* Withdraws the entry of a QP that its engine removed. Waits until no peer uses the entry. */
void soft_shm_qp_gone(struct soft_dev *dev, uint32_t qpn);
/*
 * Waits until no peer executes an access that began while a withdrawn key or QP was still
 * published. Skips dead peers. Disconnects a peer that needs more than SOFT_SHM_HOLD_NS. The
 * caller holds no engine's lock.
 */
void soft_shm_wait(struct soft_dev *dev);
void soft_shm_engine_add(struct soft_engine *e);
void soft_shm_engine_del(struct soft_engine *e);
/* Returns true if peers and this device may access each other's memory without packets. */
bool soft_shm_direct_allowed(const struct soft_dev *dev);

/* ---- soft_shm_direct.c */

/* Returns true if requests with this opcode can be executed in the peer's memory. */
static inline bool
soft_shm_direct_kind(uint8_t opcode)
{
	switch (opcode) {
	case BB_WQE_RDMA_WRITE:
	case BB_WQE_RDMA_READ:
	case BB_WQE_ATOMIC_CS:
	case BB_WQE_ATOMIC_FA:
		return true;
	default:
		return false;
	}
}

/* Returns true if soft_shm_direct() may execute the WQE at the front of the send queue. */
static inline bool
soft_shm_direct_next(const struct soft_qp *qp)
{
	return soft_shm_direct_kind(
		__atomic_load_n(&soft_wqe_at(qp, qp->sq_ci)[3], __ATOMIC_RELAXED));
}

/*
 * Executes at most @budget requests from the front of the send queue. Accesses the peer's memory
 * for them and sends no packets. Returns the number of executed requests; the QP may have failed.
 */
uint32_t soft_shm_direct(struct soft_engine *e, struct soft_wire *w, uint32_t budget);

/*
 * Returns true if the next WQE must not become packets: packets are in flight, and the WQE can be
 * executed directly once they are acknowledged. A queue that is never empty would otherwise use
 * packets for ever. After a SEND a single WQE becomes packets, and several WQEs wait.
 */
bool soft_shm_holds(struct soft_engine *e, struct soft_wire *w);

/* ---- soft_shm_vm.c: memory of a peer that has no file */

/*
 * Executes a decoded WRITE or READ of at least one byte in memory of the peer that has no file.
 * Returns false if the request must go as packets; it may then have copied a part of the payload.
 * The fragments may end before the request. The key must cover the whole request. Call it while the
 * engine's epoch is odd and the peer's QP is looked up.
 */
bool soft_shm_vm(struct soft_engine *e, struct soft_wire *w, const struct soft_req *r);
/* Returns true if soft_shm_vm() may execute the request in @wqe, which names the peer's @addr. */
bool soft_shm_vm_has(struct soft_wire *w, const uint8_t *wqe, uint32_t key, uint64_t addr);

/* ---- soft_shm_send.c */

/*
 * Sends posted plain SENDs to a peer in shared memory, and the pending ACK in the record of the
 * first one. Stops at the first WQE that is not a plain SEND.
 */
void soft_shm_send_out(struct soft_engine *e, struct soft_wire *w);
/*
 * Processes a packet that is a plain SEND or an ACK. Returns its QP, which may have failed and for
 * which the caller must call soft_wire_received(). Returns NULL if the packet needs the slow path.
 */
struct soft_wire *soft_shm_send_in(struct soft_engine *e, const struct soft_shm_rx *rx,
				   const struct soft_ring_rec *rec, const uint8_t *p);

#endif
