/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The ethdev of a device (soft_port.h), shared by the device's engines and the control path.
 *
 * Only the holder of the port's lock polls and sends. No engine waits for the lock. An engine holds
 * the lock for a whole turn, or runs the turn without the port and sends in a later turn. The
 * control path takes the lock for one poll, and holds no other lock that an engine may want. The
 * lock also protects lookups of QPs, as an engine's lock does: soft_quiesce() waits for the holder
 * of the port's lock, too.
 *
 * An engine that uses the port alone retains the lock between its turns, so that a turn takes one
 * lock, not two. Such an engine is the retainer. Another thread can take the port from the
 * retainer. For that, the thread must hold the retainer's engine lock, which proves that the
 * retainer is in no turn.
 *
 * An engine that polls without a pause leaves almost no time between turns, but EAL's interrupt
 * thread must get the lock (soft_netif_gate.c). So that thread requests the lock, and the engine
 * passes the lock on, still locked, at the end of a turn.
 */
#ifndef SOFT_NETIF_H
#define SOFT_NETIF_H

#include <rte_spinlock.h>

#include "soft_data.h"
#include "soft_port.h"

/* Whether EAL's interrupt thread must hold the port's lock while it works: soft_netif_gate.c. */
enum soft_netif_gate {
	/*
	 * The PMD does not work on the interrupt thread (true of most PMDs), so that thread does
	 * not take the port's lock.
	 */
	SOFT_NETIF_FREE,
	SOFT_NETIF_JOINS,
	SOFT_NETIF_GATED,
	SOFT_NETIF_LEAVES,
};

/* Requests to the engine that holds the port's lock; it serves them at the end of its turn. */
enum {
	SOFT_NETIF_SHARED = 1, /* Several engines want the lock, so no engine may retain it. */
	SOFT_NETIF_WANTED = 2, /* The interrupt thread waits for the lock. */
};

#define SOFT_NETIF_HELD 64u /* received frames that wait for a guest's kernel; a power of two */

/* State of a port that a guest's kernel uses, too: soft_frames.c. */
struct soft_netif_host {
	struct rte_mbuf *held[SOFT_NETIF_HELD]; /* ring, each mbuf with a reference */
	uint32_t first, n;
	uint64_t rx, rx_dropped, tx, tx_dropped; /* frames to and from the guest */
	uint64_t polled; /* frames that the port had received at the last soft_frames_poll() */
	struct soft_full full;         /* time since which the port has had no room */
	uint8_t mac[SOFT_MAX_GIDS][6]; /* the MAC that goes with each valid GID of the device */
};

struct soft_netif {
	struct soft_dev *dev;
	struct soft_port *port;
	rte_spinlock_t lock;
	/*
	 * Engine that holds the lock, in and between its turns. NULL if no engine holds the lock.
	 * Written under that engine's lock. __atomic
	 */
	struct soft_engine *lock_retainer;
	uint8_t requests; /* Pending requests: SOFT_NETIF_SHARED, SOFT_NETIF_WANTED.
			   * __atomic */
	bool passed_on; /* The lock was passed to the interrupt thread, which has not seen that yet.
			 * __atomic */
	rte_spinlock_t retainer_lock; /* Held by a thread that reads "lock_retainer", so that the
				       * engine is not freed meanwhile. */
	/*
	 * Reference count (hold) of all payload that is sent without a copy. At the end of each
	 * turn no mbuf refers to the payload. Keys, QPs and their memory are freed only between
	 * turns. Completions come from received packets, before any packet of the turn is sent. So
	 * no thread has to wait for this hold.
	 */
	struct soft_port_hold hold;
	bool refer; /* The PMD sends payload without a copy, and frees each mbuf before
		     * rte_eth_tx_burst() returns. */
	bool plain; /* Loss is the only injected fault of sent packets. */
	struct soft_netif_host *host; /* Guest's kernel that uses the port, too; NULL if none. */
	uint64_t now;                 /* Time of the last poll, ns. */
	LIST_ENTRY(soft_netif) link;
	struct soft_reader reader;
	enum soft_netif_gate gate;
	bool gate_holds, gate_requested; /* The interrupt thread holds the lock, or waits for it;
					  * used only by that thread. */
	LIST_ENTRY(soft_netif) gate_link;
};

/* Returns true if the engine holds the port's lock. Call it in a turn of the engine. */
static inline bool
soft_netif_mine(const struct soft_engine *e)
{
	return __atomic_load_n(&e->dev->netif->lock_retainer, __ATOMIC_RELAXED) == e;
}

/*
 * Releases the lock by a store on every machine. DPDK uses an exchange on x86. An exchange would
 * wait for all stores of the burst, and the peer's core may own their cache lines.
 */
static inline void
soft_netif_unlock(struct soft_netif *nif)
{
	__atomic_store_n(&nif->lock.locked, 0, __ATOMIC_RELEASE);
}

/* ---- soft_netif.c: any thread */

/*
 * Takes the port's lock, unless its holder is in a turn. Returns true if the caller now holds the
 * lock. Does not wait.
 */
bool soft_netif_trylock(struct soft_netif *nif);
void soft_netif_lock(struct soft_netif *nif);
/*
 * Handles requests of other threads for the port's lock, at the end of a turn: releases the lock,
 * or passes it to the waiting interrupt thread.
 */
void soft_netif_pass(struct soft_netif *nif);
/*
 * Releases the lock that an engine retains between turns. After the return no thread accesses the
 * engine through lock_retainer, so the engine can be freed.
 */
void soft_netif_leave(struct soft_engine *e);

/* Returns true if the packet must not be sent: the port is down, or the hop limit is 0. */
static inline bool
soft_netif_is_dead(const struct soft_dev *dev, const struct bb_roce_net *net)
{
	return net->hop_limit == 0 || __atomic_load_n(&dev->port_down, __ATOMIC_RELAXED);
}

/* ---- soft_netif.c: control path */

/*
 * Opens the ethdev that the device's options name, with its addresses, MAC and MTU. Received frames
 * go to @ops, with the struct soft_netif as argument. Returns 0 or a negative errno, logged.
 */
int soft_netif_open(struct soft_dev *dev, const struct soft_port_ops *ops);
/*
 * Closes the port. The caller has destroyed all engines of the device. Does nothing for a device
 * without a port.
 */
void soft_netif_close(struct soft_dev *dev);
/*
 * Reads the numbers of frames that the port dropped, by reason. May run during a poll. Returns
 * false if the device has no port now.
 */
bool soft_netif_drops(const struct soft_dev *dev, uint64_t drop[SOFT_DROPS]);
/* Polls each port of the process that no other thread polls. */
void soft_netif_poll_all(void);
/* ---- soft_frames.c: functions that the port calls for a guest's kernel (soft_host.h) */

/* Retains a received frame for the guest's kernel, if there is room. The poller calls it. */
void soft_frames_hold(struct soft_netif *nif, struct rte_mbuf *m);
/* Frees the state of the guest's kernel and logs its counts, before the port is closed. */
void soft_frames_close(struct soft_netif *nif);
/* ---- soft_netif_gate.c: control path */

/*
 * From this call on, EAL's interrupt thread works only while it holds the lock of @nif. It takes
 * the lock for about 20 us every 20 ms, so its alarms and other work are delayed by up to 20 ms.
 * Call it before any poll of the port, and not on the interrupt thread. Returns 0 or -ENOMEM.
 */
int soft_netif_gate_join(struct soft_netif *nif);
/*
 * Ends the effect of soft_netif_gate_join(), after the last poll. Does nothing for a port that did
 * not join.
 */
void soft_netif_gate_leave(struct soft_netif *nif);

/* ---- soft_netif.c */

/*
 * Starts the resolution of an address; never waits. Returns 0 if the address is resolved, -EAGAIN
 * if the resolution is in progress or the link is down, or -EHOSTUNREACH, logged.
 */
int soft_netif_ready(struct soft_dev *dev, const uint8_t ip[16]);
/*
 * Resolves an address to a MAC and waits for the reply. Returns 0, or -EHOSTUNREACH or -ENETDOWN,
 * logged.
 */
int soft_netif_resolve(struct soft_dev *dev, const uint8_t ip[16], uint8_t mac[6]);

#endif
