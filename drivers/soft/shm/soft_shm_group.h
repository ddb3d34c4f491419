/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Multicast groups of the devices of a fabric. */
#ifndef SOFT_SHM_GROUP_H
#define SOFT_SHM_GROUP_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_ticketlock.h>

#include "soft_link.h"
#include "soft_mcg.h"

struct soft_ring_rec;
struct soft_shm;
struct soft_shm_rx;

/* A multicast group of which the device is a member. */
struct soft_shm_group {
	bool used;
	uint8_t gid[16];
	int listener;
	int mark; /* Socket that marks the member's number as used. */
};

#define SOFT_SHM_MEMBERS 32u /* Largest number of devices of a fabric in a multicast group. */
/* Time after which a member that has refused a connection is asked again, ns. */
#define SOFT_SHM_GROUP_RETRY_NS UINT64_C(1000000000)
#define SOFT_SHM_CASTS          32u /* Groups to which a device sends at a time. */
/* Largest number of a device's connections to members of groups, and of those from senders. */
#define SOFT_SHM_GROUP_PEERS 64u
/* Time after the last datagram to a group at which its record is freed, ns. */
#define SOFT_SHM_CAST_IDLE_NS UINT64_C(5000000000)
/*
 * Time for which a sender uses the members that it has found, ns. A device that joins a group waits
 * as long, so that every datagram that is sent after the join reaches it.
 */
#define SOFT_SHM_CAST_NS UINT64_C(5000000)

/*
 * Record of a group to which the device sends. A record in use is changed under
 * soft_shm_casts.lock, "entry" also under soft_shm.lock.
 */
struct soft_shm_cast {
	uint8_t gid[16];
	uint64_t used;       /* Time of the last datagram, TSC; 0 if the record is free. */
	uint64_t expires;    /* Time of the next search for members, TSC. */
	uint64_t wait_until; /* End of the last wait for a search, TSC. */
	uint32_t missed;     /* Members that the last search could not connect, for lack of room. */
	/* Index of the connection to each member in soft_shm.tx, plus 1; 0 if there is none. */
	uint16_t entry[SOFT_SHM_MEMBERS];
	/* Time before which a member that has refused is not asked again, TSC. soft_shm.lock. */
	uint64_t retry[SOFT_SHM_MEMBERS];
};

/* Groups to which the device sends. */
struct soft_shm_casts {
	rte_ticketlock_t lock;
	bool full; /* A datagram was dropped, because all records are in use. __atomic */
	struct soft_shm_cast cast[SOFT_SHM_CASTS];
	/* Under soft_shm.lock. */
	uint32_t n_tx;     /* Entries of soft_shm.tx for members. An entry with slot 0 is free. */
	uint64_t next_log; /* Time of the next log line about a limit, TSC. */
};

/*
 * Makes the device a member of a multicast group, or ends its membership. soft_shm_group_join()
 * returns 0; -ENOSPC if the group has SOFT_SHM_MEMBERS members; or another negative errno. Sends
 * that begin SOFT_SHM_CAST_NS later reach the device. Under soft_dev.lock.
 */
int soft_shm_group_join(struct soft_shm *shm, const uint8_t gid[16]);
void soft_shm_group_leave(struct soft_shm *shm, const uint8_t gid[16]);
/* Closes the sockets of all memberships. */
void soft_shm_groups_close(struct soft_shm *shm);
/*
 * Send a datagram to the members of the group net->dst, of this device, too. The second function
 * gets the packet from BTH to padding as bytes. A copy for which a member has no room is dropped.
 */
enum soft_link_sent soft_shm_cast(struct soft_engine *e, const struct soft_link_pkt *p);
enum soft_link_sent soft_shm_cast_bytes(struct soft_engine *e, const struct bb_roce_net *net,
					const uint8_t mac[6], const uint8_t *bytes, uint32_t len);
/* Returns true if a log line about a limit of groups is due, once a second. Under soft_shm.lock. */
bool soft_shm_group_log_due(struct soft_shm *shm, uint64_t now);
/*
 * Frees the record of one group to which nothing was sent for SOFT_SHM_CAST_IDLE_NS, and closes its
 * connections. Under soft_shm.lock.
 */
void soft_shm_casts_chores(struct soft_shm *shm, uint64_t now);
/* Gives a datagram in the ring of a connection to a group to the members of this device. */
void soft_shm_cast_in(struct soft_engine *e, const struct soft_shm_rx *rx,
		      const struct soft_ring_rec *rec, const uint8_t *p);

#endif
