/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The ethdev of a device (soft_port.h), which its engines and the control path share.
 *
 * Whoever polls or sends has the lock, and nobody waits for it in the data path: an engine has it
 * for the whole of its turn or goes on without, and sends in a later turn. The control path takes
 * it for a poll, with no other lock that an engine may want. With the lock QPs may be looked up,
 * as with that of an engine: soft_quiesce() passes here too.
 *
 * An engine that is alone with the port keeps the lock between its turns, so that it need not take
 * two locks in each of them. Who wants it takes it from the keeper, under the keeper's own lock,
 * which says that it is in no turn. Between the turns of an engine that always polls is next to
 * no time: EAL's interrupt thread, which must have it (soft_netif_gate.c), asks for it and is
 * given it, locked as it is, at the end of a turn.
 */
#ifndef SOFT_NETIF_H
#define SOFT_NETIF_H

#include <rte_spinlock.h>

#include "soft_data.h"
#include "soft_port.h"

/* A port whose PMD works on EAL's interrupt thread, see soft_netif_gate.c. */
enum soft_netif_gate {
	SOFT_NETIF_FREE, /* not under the gate, as most are */
	SOFT_NETIF_JOINS,
	SOFT_NETIF_GATED,
	SOFT_NETIF_LEAVES,
};

/* What an engine is asked at the end of its turn. */
enum {
	SOFT_NETIF_SHARED = 1, /* several engines want the lock: nobody keeps it */
	SOFT_NETIF_WANTED = 2, /* the interrupt thread waits for it */
};

struct soft_netif {
	struct soft_dev *dev;
	struct soft_port *port;
	rte_spinlock_t lock;
	/* Who keeps it; NULL: nobody. Changed under that engine's lock. __atomic */
	struct soft_engine *keeper;
	uint8_t asked;         /* SOFT_NETIF_SHARED, SOFT_NETIF_WANTED. __atomic */
	bool given;            /* to the interrupt thread, which has not seen it yet. __atomic */
	rte_spinlock_t takers; /* while somebody looks at the keeper: it does not go */
	/*
	 * Of all payload that is sent from where it lies: until the turn ends, when none refers to
	 * it any more. Keys, queue pairs and their memory go only between turns, and completions
	 * come from packets that were received, before any is sent: nothing need wait for it.
	 */
	struct soft_port_hold hold;
	bool refer;                 /* the PMD can do it, and keeps nothing */
	bool plain;                 /* what is sent may be lost on purpose, and no more */
	struct soft_engine *poller; /* who has the lock; NULL: nobody, or the control path */
	uint64_t now;               /* ns, when it was polled last */
	LIST_ENTRY(soft_netif) link;
	struct soft_reader reader;
	enum soft_netif_gate gate;
	bool gate_has, gate_asked; /* the interrupt thread has the lock, waits for it; its own */
	LIST_ENTRY(soft_netif) gate_link;
};

/* Has the engine the port in this turn? */
static inline bool
soft_netif_mine(const struct soft_engine *e)
{
	return __atomic_load_n(&e->dev->netif->poller, __ATOMIC_RELAXED) == e;
}

/*
 * Give the lock back by a store, on every machine. DPDK has an exchange for it on x86, which waits
 * until the other end has given up all cache lines that a burst was written to.
 */
static inline void
soft_netif_unlock(struct soft_netif *nif)
{
	__atomic_store_n(&nif->lock.locked, 0, __ATOMIC_RELEASE);
}

/* ---- soft_netif.c: any thread */

/* Take the lock, unless who has it works with it now. Does not wait. */
bool soft_netif_trylock(struct soft_netif *nif);
void soft_netif_lock(struct soft_netif *nif);
/* An engine's turn ends, and it was asked for something: unlock, or give it to who waits. */
void soft_netif_pass(struct soft_netif *nif);
/* The engine, in no turn, gives back what it keeps, and nobody looks at it any more. */
void soft_netif_leave(struct soft_engine *e);

/* Nothing leaves, as the device says or the packet. */
static inline bool
soft_netif_is_dead(const struct soft_dev *dev, const struct bb_roce_net *net)
{
	return net->hop_limit == 0 || __atomic_load_n(&dev->port_down, __ATOMIC_RELAXED);
}

/* ---- soft_netif.c: control path */

/*
 * Open the port of the device's options; its addresses, MAC, MTU. What comes goes to @ops, with the
 * struct soft_netif as their argument. 0, -errno, logged.
 */
int soft_netif_open(struct soft_dev *dev, const struct soft_port_ops *ops);
/* No engine of the device is left. Nothing to do for a device without a port. */
void soft_netif_close(struct soft_dev *dev);
/*
 * The frames that the device's port has dropped, by reason, also while somebody polls it. False:
 * it has no port now.
 */
bool soft_netif_drops(const struct soft_dev *dev, uint64_t drop[SOFT_DROPS]);
/* Poll all ports of the process that nobody polls. */
void soft_netif_poll_all(void);
/* ---- soft_netif_gate.c: control path */

/*
 * From here on EAL's interrupt thread does nothing without the lock of @nif, which it takes for
 * some 50 us every 20 ms; other work there, alarms too, is late by as much. For a port that nobody
 * polls yet, and not on that thread. 0 or -ENOMEM.
 */
int soft_netif_gate_join(struct soft_netif *nif);
/* Nobody polls the port any more. Nothing to do for one that did not join. */
void soft_netif_gate_leave(struct soft_netif *nif);

/* ---- soft_netif.c */

/* Asks for an address; never waits. 0, -EAGAIN, or -EHOSTUNREACH, -ENETDOWN, logged. */
int soft_netif_ready(struct soft_dev *dev, const uint8_t ip[16]);
/* The MAC of the owner of an address; waits for it. -EHOSTUNREACH, -ENETDOWN, logged. */
int soft_netif_resolve(struct soft_dev *dev, const uint8_t ip[16], uint8_t mac[6]);

#endif
