/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * QP1 of a device with an engine of the communication manager (bb_ibcm.h). All users of a device in
 * the process share one service: the first call of bb_qp1_get() creates it, the last bb_qp1_put()
 * destroys it. The service has no thread. bb_qp1_poll() receives and sends MADs and handles
 * timeouts; any user's poll serves all users.
 *
 * Threads: any thread may call these functions. QP1 has no owner; a lock protects QP1 and the
 * engine instead. The lock is never held while waiting for a peer.
 *
 * Limits: a poll handles at most 32 received MADs. A MAD waits at most 2 s for the MAC of its
 * destination. At most 4 MADs of one destination wait for its MAC. If all 128 send buffers are in
 * use, a MAD waits for one. At most 64 MADs wait. Further MADs are dropped, as on a network; the
 * engine repeats its messages. MADs that arrive while all receives are in use are dropped by the
 * device.
 */
#ifndef BB_QP1_H
#define BB_QP1_H

#include "bb_core.h"
#include "bb_ibcm.h"

struct bb_qp1;

/*
 * Receiver of events. The cookie of a service or connection of the engine is the address of its
 * user: see bb_qp1_cookie(). The callback runs under the lock, in the thread of any user's poll. It
 * may call the engine's functions that an event callback may call.
 */
struct bb_qp1_user {
	void (*event)(struct bb_qp1_user *user, const struct bb_ibcm_event *ev);
};

/*
 * Gets the service of a device. The caller must be a thread that may create queues. Returns 0;
 * -ENOTSUP (not logged) if QP1 does not belong to the library or the port is not Ethernet; -EBUSY
 * (logged) if another user of the device has QP1; errors of bb_qp_create() and bb_mr_reg();
 * -ENOMEM.
 */
int bb_qp1_get(struct bb_dev *dev, struct bb_qp1 **q);
/*
 * Gives QP1 back, which the caller got by bb_qp1_get(). The last user waits at most 20 ms until its
 * messages are sent. Before, the caller ends its connections and stops to listen.
 */
void bb_qp1_put(struct bb_qp1 *q);

/* Serves all users once. Returns at once if another thread does this now. Never waits. */
void bb_qp1_poll(struct bb_qp1 *q);

/* Locks the engine for calls, and returns it. */
struct bb_ibcm *bb_qp1_lock(struct bb_qp1 *q);
void bb_qp1_unlock(struct bb_qp1 *q);

/* Returns the time in ns to pass to the functions of the engine. */
uint64_t bb_qp1_now(void);

static inline uint64_t
bb_qp1_cookie(struct bb_qp1_user *user)
{
	return (uint64_t)(uintptr_t)user;
}

/* Counters since the creation of the service. */
struct bb_qp1_stats {
	uint64_t received;
	uint64_t sent;
	uint64_t malformed; /* received datagrams without a valid header */
	uint64_t held;      /* MADs that had to wait for a send buffer or a MAC */
	uint64_t no_room;   /* MADs dropped because too many wait, or all send buffers are in use */
	uint64_t no_address; /* MADs dropped because the destination cannot be reached */
};
/* Returns the counters. Call it between bb_qp1_lock() and bb_qp1_unlock(). */
const struct bb_qp1_stats *bb_qp1_stats(const struct bb_qp1 *q);
/*
 * Copies the counters of a device's service and of its engine. Any thread. Returns false if the
 * device has no service.
 */
bool bb_qp1_counters(const struct bb_dev *dev, struct bb_qp1_stats *stats,
		     struct bb_ibcm_stats *cm);

#endif
