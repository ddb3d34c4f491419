/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Neighbours: the table of IP addresses and their MACs, filled by ARP and neighbour discovery (ND).
 *
 * The table does not know packets. A callback sends the table's requests, and the caller passes in
 * the replies. Each call gets the time in nanoseconds, counted from an arbitrary moment; the time
 * never goes back. States are those of RFC 4861, 7.3.2, for IPv4 too. The table belongs to the
 * thread that polls the port, and takes no lock.
 */
#ifndef SOFT_NEIGH_H
#define SOFT_NEIGH_H

#include <stdbool.h>
#include <stdint.h>

#define SOFT_NEIGH_MAX     256 /* Largest number of entries in the table. */
#define SOFT_NEIGH_ASKING  32  /* Largest number of resolutions in progress without a MAC. */
#define SOFT_NEIGH_BUCKETS 64
#define SOFT_NEIGH_NONE    UINT16_MAX
#define SOFT_NEIGH_NEVER   UINT64_MAX

/*
 * Constants of RFC 4861, 10: MAX_UNICAST_SOLICIT and MAX_MULTICAST_SOLICIT, RETRANS_TIMER,
 * REACHABLE_TIME.
 */
#define SOFT_NEIGH_TRIES    3
#define SOFT_NEIGH_RETRY_NS UINT64_C(1000000000)
/* Delay before a retry if the port had no room for the request. */
#define SOFT_NEIGH_FULL_NS      UINT64_C(1000000)
#define SOFT_NEIGH_REACHABLE_NS UINT64_C(30000000000)
/*
 * Delay before a request is repeated to an address that did not reply (FAILED), and time after
 * which an unused STALE entry expires (IDLE).
 */
#define SOFT_NEIGH_FAILED_NS UINT64_C(3000000000)
#define SOFT_NEIGH_IDLE_NS   UINT64_C(600000000000)

enum soft_neigh_state {
	SOFT_NEIGH_FREE,
	SOFT_NEIGH_INCOMPLETE, /* The request was sent to all hosts; the MAC is not known yet. */
	SOFT_NEIGH_REACHABLE,
	SOFT_NEIGH_STALE, /* The MAC is known but not recently confirmed; the next use sends a
			   * request. */
	SOFT_NEIGH_PROBE, /* A request was sent to the neighbour; the known MAC stays in use. */
	SOFT_NEIGH_FAILED,
	SOFT_NEIGH_STATIC,
};

struct soft_neigh_entry {
	uint8_t ip[16]; /* Address in the form of GIDs: IPv4 is ::ffff:a.b.c.d. */
	uint8_t mac[6];
	uint8_t state; /* enum soft_neigh_state. */
	uint8_t tries;
	bool unsent;       /* The current request is not sent yet, because the port had no room. */
	uint16_t next;     /* Index of the next entry in the bucket or in the free list. */
	uint64_t deadline; /* Time at which the current state ends, ns. */
	/*
	 * Time at which the next request is sent, ns. The interval starts at the first attempt to
	 * send the current request.
	 */
	uint64_t next_try;
	uint64_t used; /* Time of the last lookup, ns. */
};

struct soft_neigh_stats {
	uint64_t asked, learned, changed, failed, expired, evicted, full;
};

/*
 * Sends a request for the MAC of @ip: to all hosts if @mac is NULL, otherwise to the neighbour with
 * that MAC. Returns false if the port has no room for the request now.
 */
typedef bool (*soft_neigh_ask_t)(void *arg, const uint8_t ip[16], const uint8_t *mac);

struct soft_neigh {
	struct soft_neigh_entry entry[SOFT_NEIGH_MAX];
	uint16_t bucket[SOFT_NEIGH_BUCKETS];
	uint16_t free;
	uint32_t count, asking;
	uint32_t gen;           /* Generation; increments with every change of an entry. */
	uint64_t next_deadline; /* Earliest time at which soft_neigh_tick() has work, ns. */
	soft_neigh_ask_t ask;
	void *arg;
	struct soft_neigh_stats stats;
};

void soft_neigh_init(struct soft_neigh *t, soft_neigh_ask_t ask, void *arg);

/* Adds an entry that never expires. Returns -ENOSPC if the table is full. */
int soft_neigh_add_static(struct soft_neigh *t, const uint8_t ip[16], const uint8_t mac[6]);

enum soft_neigh_result {
	SOFT_NEIGH_FOUND,
	SOFT_NEIGH_PENDING, /* Resolution in progress; look up again later. */
	SOFT_NEIGH_UNREACHABLE,
	SOFT_NEIGH_BUSY, /* Too many resolutions in progress, or no entry can be evicted. */
};

/*
 * Looks up a neighbour, and starts a resolution if the neighbour is unknown. *hint caches the index
 * of the entry between calls. Its first value does not matter, and @hint may be NULL. *mac is
 * written only if the result is SOFT_NEIGH_FOUND.
 */
enum soft_neigh_result soft_neigh_find(struct soft_neigh *t, const uint8_t ip[16], uint64_t now,
				       uint16_t *hint, uint8_t mac[6]);

/* Kind of message from which a MAC was learned. */
enum soft_neigh_how {
	SOFT_NEIGH_MENTIONED, /* The neighbour sent a message of another kind; updates known
			       * neighbours only. */
	SOFT_NEIGH_ASKED_US,  /* The neighbour sent a request for one of this port's addresses; the
			       * port replies next. */
	SOFT_NEIGH_REPLIED,   /* The neighbour replied to a request of this port. */
	SOFT_NEIGH_WEAKLY,    /* The reply has no override flag, so a known MAC stays (RFC
			       * 4861, 7.2.5). */
};
void soft_neigh_heard(struct soft_neigh *t, const uint8_t ip[16], const uint8_t mac[6],
		      enum soft_neigh_how how, uint64_t now);

/* Repeats requests, fails resolutions and expires entries. Cheap before next_deadline. */
void soft_neigh_tick(struct soft_neigh *t, uint64_t now);

/*
 * Returns the entry of @ip, or NULL if there is none. Does not change the entry's state. For tests,
 * dumps and static routes.
 */
const struct soft_neigh_entry *soft_neigh_peek(const struct soft_neigh *t, const uint8_t ip[16]);

#endif
