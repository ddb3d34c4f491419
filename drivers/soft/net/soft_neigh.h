/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Neighbours: the table of IP addresses and their MACs, filled by ARP and neighbour discovery.
 *
 * The table knows no packets. A callback sends its questions, the caller passes in the answers,
 * and each call gets the time: nanoseconds from any start, never going back. States are those of
 * RFC 4861, 7.3.2, for IPv4 too. The table belongs to the port's poller and takes no lock.
 */
#ifndef SOFT_NEIGH_H
#define SOFT_NEIGH_H

#include <stdbool.h>
#include <stdint.h>

#define SOFT_NEIGH_MAX     256 /* Entries of the table. */
#define SOFT_NEIGH_ASKING  32  /* Resolutions in progress without a MAC. */
#define SOFT_NEIGH_BUCKETS 64
#define SOFT_NEIGH_NONE    UINT16_MAX
#define SOFT_NEIGH_NEVER   UINT64_MAX

/*
 * Constants of RFC 4861, 10: MAX_UNICAST_SOLICIT and MAX_MULTICAST_SOLICIT, RETRANS_TIMER,
 * REACHABLE_TIME.
 */
#define SOFT_NEIGH_TRIES    3
#define SOFT_NEIGH_RETRY_NS UINT64_C(1000000000)
/* Delay before a retry if the port had no room for the question. */
#define SOFT_NEIGH_FULL_NS      UINT64_C(1000000)
#define SOFT_NEIGH_REACHABLE_NS UINT64_C(30000000000)
/* Delay before an address that did not answer is asked again. */
#define SOFT_NEIGH_FAILED_NS UINT64_C(3000000000)
#define SOFT_NEIGH_IDLE_NS   UINT64_C(600000000000)

enum soft_neigh_state {
	SOFT_NEIGH_FREE,
	SOFT_NEIGH_INCOMPLETE, /* Question sent to all hosts, no MAC yet. */
	SOFT_NEIGH_REACHABLE,
	SOFT_NEIGH_STALE, /* Has a MAC without recent confirmation; the next use sends a
			   * question. */
	SOFT_NEIGH_PROBE, /* Question sent to the neighbour; its MAC stays in use. */
	SOFT_NEIGH_FAILED,
	SOFT_NEIGH_STATIC,
};

struct soft_neigh_entry {
	uint8_t ip[16]; /* As in GIDs: IPv4 is ::ffff:a.b.c.d. */
	uint8_t mac[6];
	uint8_t state; /* enum soft_neigh_state. */
	uint8_t tries;
	bool unsent;       /* The current question is not sent yet. */
	uint16_t next;     /* Next entry of the bucket or of the free list. */
	uint64_t deadline; /* End of the current state, ns. */
	uint64_t next_try; /* End of the current question's wait, ns; counts from its first
			    * attempt. */
	uint64_t used;     /* Time of the last lookup, ns. */
};

struct soft_neigh_stats {
	uint64_t asked, learned, changed, failed, expired, evicted, full;
};

/*
 * Asks for the owner of @ip: all hosts if @mac is NULL, otherwise the neighbour with that MAC.
 * Returns false if the port has no room for the question now.
 */
typedef bool (*soft_neigh_ask_t)(void *arg, const uint8_t ip[16], const uint8_t *mac);

struct soft_neigh {
	struct soft_neigh_entry entry[SOFT_NEIGH_MAX];
	uint16_t bucket[SOFT_NEIGH_BUCKETS];
	uint16_t free;
	uint32_t count, asking;
	uint32_t gen;           /* Increments with every change of an entry. */
	uint64_t next_deadline; /* Time of the next work of soft_neigh_tick(), ns. */
	soft_neigh_ask_t ask;
	void *arg;
	struct soft_neigh_stats stats;
};

void soft_neigh_init(struct soft_neigh *t, soft_neigh_ask_t ask, void *arg);

/* Adds an entry that never expires. Returns -ENOSPC if the table is full. */
int soft_neigh_add_static(struct soft_neigh *t, const uint8_t ip[16], const uint8_t mac[6]);

enum soft_neigh_answer {
	SOFT_NEIGH_FOUND,
	SOFT_NEIGH_PENDING, /* Resolution in progress; look up again later. */
	SOFT_NEIGH_UNREACHABLE,
	SOFT_NEIGH_BUSY, /* Too many resolutions in progress, or no entry can be evicted. */
};

/*
 * Looks up a neighbour, and starts a resolution if it is unknown. *hint caches the entry's index
 * between calls: any value at first, @hint may be NULL. *mac is written only for FOUND.
 */
enum soft_neigh_answer soft_neigh_find(struct soft_neigh *t, const uint8_t ip[16], uint64_t now,
				       uint16_t *hint, uint8_t mac[6]);

/* Source of a MAC. */
enum soft_neigh_how {
	SOFT_NEIGH_MENTIONED, /* Sender of another message; updates known neighbours only. */
	SOFT_NEIGH_ASKED_US,  /* Sender of a question for one of this port's addresses, about
			       * to be answered. */
	SOFT_NEIGH_ANSWERED,  /* Answer to a question of this port. */
	SOFT_NEIGH_WEAKLY,    /* Answer without the override flag: a known MAC stays (RFC 4861,
			       * 7.2.5). */
};
void soft_neigh_heard(struct soft_neigh *t, const uint8_t ip[16], const uint8_t mac[6],
		      enum soft_neigh_how how, uint64_t now);

/* Retries questions, fails resolutions and expires entries. Cheap before next_deadline. */
void soft_neigh_tick(struct soft_neigh *t, uint64_t now);

/*
 * Returns the entry of @ip without a change of state, or NULL if there is none. For tests, dumps
 * and static routes.
 */
const struct soft_neigh_entry *soft_neigh_peek(const struct soft_neigh *t, const uint8_t ip[16]);

#endif
