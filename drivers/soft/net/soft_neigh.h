/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Neighbours: which MAC answers to an IP address, by ARP and neighbour discovery.
 *
 * The table knows no packets. It says what is to be asked, is told what was heard, and gets
 * the time with each call: nanoseconds from any start that do not go back. States are those
 * of RFC 4861, 7.3.2, for IPv4 too. It belongs to the port's poller, without a lock.
 */
#ifndef SOFT_NEIGH_H
#define SOFT_NEIGH_H

#include <stdbool.h>
#include <stdint.h>

#define SOFT_NEIGH_MAX     256 /* entries */
#define SOFT_NEIGH_ASKING  32  /* resolutions under way that have no MAC yet */
#define SOFT_NEIGH_BUCKETS 64
#define SOFT_NEIGH_NONE    UINT16_MAX
#define SOFT_NEIGH_NEVER   UINT64_MAX

/* RFC 4861, 10: MAX_UNICAST_SOLICIT and MAX_MULTICAST_SOLICIT, RETRANS_TIMER, REACHABLE_TIME. */
#define SOFT_NEIGH_TRIES        3
#define SOFT_NEIGH_RETRY_NS     UINT64_C(1000000000)
#define SOFT_NEIGH_FULL_NS      UINT64_C(1000000) /* the port had no room for the question */
#define SOFT_NEIGH_REACHABLE_NS UINT64_C(30000000000)
#define SOFT_NEIGH_FAILED_NS    UINT64_C(3000000000) /* nobody answered: not asked again before */
#define SOFT_NEIGH_IDLE_NS      UINT64_C(600000000000)

enum soft_neigh_state {
	SOFT_NEIGH_FREE,
	SOFT_NEIGH_INCOMPLETE, /* asked everybody, no MAC yet */
	SOFT_NEIGH_REACHABLE,
	SOFT_NEIGH_STALE, /* has a MAC that was not confirmed lately; asked when it is used */
	SOFT_NEIGH_PROBE, /* asked itself; its MAC is used meanwhile */
	SOFT_NEIGH_FAILED,
	SOFT_NEIGH_STATIC,
};

struct soft_neigh_entry {
	uint8_t ip[16]; /* as in GIDs: IPv4 is ::ffff:a.b.c.d */
	uint8_t mac[6];
	uint8_t state; /* enum soft_neigh_state */
	uint8_t tries;
	bool unsent;       /* the question in hand is still to leave */
	uint16_t next;     /* of the bucket, or of the free list */
	uint64_t deadline; /* of the state */
	uint64_t next_try; /* when the question in hand had its time, sent or not */
	uint64_t used;     /* last looked for */
};

struct soft_neigh_stats {
	uint64_t asked, learned, changed, failed, expired, evicted, full;
};

/*
 * Ask who has @ip: everybody (@mac NULL), or that neighbour whether it still is. False: there is
 * no room for the question now.
 */
typedef bool (*soft_neigh_ask_t)(void *arg, const uint8_t ip[16], const uint8_t *mac);

struct soft_neigh {
	struct soft_neigh_entry entry[SOFT_NEIGH_MAX];
	uint16_t bucket[SOFT_NEIGH_BUCKETS];
	uint16_t free;
	uint32_t count, asking;
	uint32_t gen;           /* another one whenever an entry has changed */
	uint64_t next_deadline; /* when soft_neigh_tick() has something to do */
	soft_neigh_ask_t ask;
	void *arg;
	struct soft_neigh_stats stats;
};

void soft_neigh_init(struct soft_neigh *t, soft_neigh_ask_t ask, void *arg);

/* An entry for ever. -ENOSPC. */
int soft_neigh_add_static(struct soft_neigh *t, const uint8_t ip[16], const uint8_t mac[6]);

enum soft_neigh_answer {
	SOFT_NEIGH_FOUND,
	SOFT_NEIGH_PENDING, /* it is being asked for; look again later */
	SOFT_NEIGH_UNREACHABLE,
	SOFT_NEIGH_BUSY, /* too many resolutions under way, or the table is full of such */
};

/*
 * Look for a neighbour, and ask for it if need be. *hint (may be NULL) is where it was last
 * time, any value at first. *mac is written if it is FOUND.
 */
enum soft_neigh_answer soft_neigh_find(struct soft_neigh *t, const uint8_t ip[16], uint64_t now,
				       uint16_t *hint, uint8_t mac[6]);

/* How a MAC was learned. */
enum soft_neigh_how {
	SOFT_NEIGH_MENTIONED, /* by whoever sent it: known neighbours only */
	SOFT_NEIGH_ASKED_US,  /* it asks for our address, and will be answered soon */
	SOFT_NEIGH_ANSWERED,  /* our question */
	SOFT_NEIGH_WEAKLY,    /* the answer does not override a known MAC (RFC 4861, 7.2.5) */
};
void soft_neigh_heard(struct soft_neigh *t, const uint8_t ip[16], const uint8_t mac[6],
		      enum soft_neigh_how how, uint64_t now);

/* Ask again, give up, forget. Cheap before next_deadline. */
void soft_neigh_tick(struct soft_neigh *t, uint64_t now);

/* For tests and dumps. NULL: not there. */
const struct soft_neigh_entry *soft_neigh_peek(const struct soft_neigh *t, const uint8_t ip[16]);

#endif
