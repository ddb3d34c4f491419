/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Multicast groups of the devices of a fabric. */
#ifndef SOFT_SHM_GROUP_H
#define SOFT_SHM_GROUP_H

#include <stdbool.h>
#include <stdint.h>

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
#define SOFT_SHM_CASTS          64u /* Groups whose members a sender remembers. */
/*
 * Time for which a sender uses the members that it has found, ns. A device that joins a group waits
 * as long, so that every datagram that is sent after the join reaches it.
 */
#define SOFT_SHM_CAST_NS UINT64_C(5000000)

/* Members of a group to which the device sends. Under soft_shm.lock. */
struct soft_shm_cast {
	uint8_t gid[16];
	uint64_t expires; /* Time of the next search for members, TSC. */
	uint32_t n;
	uint8_t tx[SOFT_SHM_MEMBERS]; /* Indexes of their connections. */
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
/* Gives a datagram in the ring of a connection to a group to the members of this device. */
void soft_shm_cast_in(struct soft_engine *e, const struct soft_shm_rx *rx,
		      const struct soft_ring_rec *rec, const uint8_t *p);

#endif
