/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Multicast groups of a device: which UD QPs get a copy of a datagram to a group.
 *
 * Engines read the groups without a lock, as the tables of soft.h. A group is never changed: the
 * commands (soft_cmd_mcg.c) publish a changed copy, call soft_quiesce(), and free the old one.
 */
#ifndef SOFT_MCG_H
#define SOFT_MCG_H

#include "bb_roce_pkt.h"
#include "soft.h"

#define SOFT_LOG_MAX_MCG 8  /* log2 of the maximum number of multicast groups of a device */
#define SOFT_MAX_QP_MCG  32 /* maximum members of a group: each gets a copy of a datagram */
#define SOFT_MCG_BUCKETS 64 /* power of two */

struct soft_mcg {
	struct soft_mcg *next; /* next group of the bucket; __atomic */
	uint8_t gid[16];
	uint64_t known_at; /* time at which all senders of a fabric know the device, TSC */
	uint32_t n;        /* number of queue pairs attached to the group, at least 1 */
	struct soft_qp *qp[];
};

/* ---- soft_registry.c */
/* Returns the device with number @index if it exists, else NULL. Takes no lock. */
struct soft_dev *soft_dev_peek(uint32_t index);

struct soft_mcgs {
	uint32_t groups;
	struct soft_mcg *bucket[SOFT_MCG_BUCKETS]; /* heads of the hash chains; __atomic */
};

/*
 * Writes the MAC of a group (RFC 1112, 6.4; RFC 2464, 7; Linux: ib_resolve_eth_dmac()). A GID that
 * contains an IPv4 address after ff0e::, as in RoCE v1, counts as an IPv6 address.
 */
static inline void
soft_mcast_mac(const uint8_t gid[16], uint8_t mac[6])
{
	if (gid[0] == 0xff) {
		mac[0] = 0x33;
		mac[1] = 0x33;
		mac[2] = gid[12];
	} else {
		mac[0] = 0x01;
		mac[1] = 0x00;
		mac[2] = 0x5e;
	}
	mac[3] = gid[0] == 0xff ? gid[13] : gid[13] & 0x7f;
	mac[4] = gid[14];
	mac[5] = gid[15];
}

/*
 * Returns the hash bucket of a multicast group. Uses the last bytes of the GID, because groups
 * differ in those.
 */
static inline uint32_t
soft_mcg_bucket(const uint8_t gid[16])
{
	return (gid[15] ^ gid[14] ^ gid[13]) & (SOFT_MCG_BUCKETS - 1);
}

/*
 * Returns the multicast group @gid, or NULL if it has no member. The group stays valid while the
 * engine holds its own lock.
 */
static inline const struct soft_mcg *
soft_mcg_find(const struct soft_dev *dev, const uint8_t gid[16])
{
	const struct soft_mcgs *t = __atomic_load_n(&dev->mcgs, __ATOMIC_ACQUIRE);
	const struct soft_mcg *g;

	if (t == NULL)
		return NULL;
	g = __atomic_load_n(&t->bucket[soft_mcg_bucket(gid)], __ATOMIC_ACQUIRE);
	while (g != NULL && memcmp(g->gid, gid, sizeof(g->gid)) != 0)
		g = __atomic_load_n(&g->next, __ATOMIC_ACQUIRE);
	return g;
}

/* Returns true if @qp is a member of the group. Same rule as soft_mcg_find(). */
static inline bool
soft_mcg_has(const struct soft_mcg *g, const struct soft_qp *qp)
{
	uint32_t i;

	for (i = 0; g != NULL && i < g->n; i++)
		if (g->qp[i] == qp)
			return true;
	return false;
}

#endif
