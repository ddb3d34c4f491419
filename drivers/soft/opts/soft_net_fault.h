/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Network faults, injected by the options tx_* and rx_*: soft_wire_fault.c. */
#ifndef SOFT_NET_FAULT_H
#define SOFT_NET_FAULT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct soft_packet_msg;
TAILQ_HEAD(soft_packets, soft_packet_msg);

#define SOFT_WINDOW     256u /* default of the option window, packets */
#define SOFT_MAX_WINDOW 65536u

/* Faults of one direction; rates in millionths of the packets. */
struct soft_net_fault {
	uint32_t drop, dup, reorder, corrupt;
	uint32_t ecn;   /* rate of ECN marks, among packets that may be marked (RFC 3168) */
	uint32_t delay; /* delay of every packet, us */
	/*
	 * Rate of stalls. A stall delays the packet that starts it, and all later ones, by
	 * @stall_ms ms.
	 */
	uint32_t stall, stall_ms;
	/*
	 * After @full_after packets of an engine the link accepts no packet for @full_ms ms;
	 * @full_ms 0: for ever.
	 */
	uint32_t full_after, full_ms;
};

/* Schedule of a port that alternates between up and down. Times in ns, counted from @start. */
struct soft_flap {
	/*
	 * ns; start of the schedule, length of each up time and of each down time; up 0: the port
	 * is always up
	 */
	uint64_t start, up, down;
};

/* Returns true if the port is down at @now. Sets *edge to the time of the next change. */
static inline bool
soft_flap_down(const struct soft_flap *f, uint64_t now, uint64_t *edge)
{
	uint64_t at = (now - f->start) % (f->up + f->down);

	*edge = now - at + (at < f->up ? f->up : f->up + f->down);
	return at >= f->up;
}

/* State of the faults in one engine. */
struct soft_net_state {
	uint64_t faults; /* state of the random sequence that selects the packets */
	/*
	 * ticks; time at which an injected stall ends; index 0: sent packets, 1: received packets
	 */
	uint64_t stall_until[2];
	/* number of packets that wait for the end of an injected stall, by direction */
	uint32_t stalled[2];
	uint32_t passed[2]; /* packets passed, by direction; for soft_net_fault.full_after */
	/*
	 * time in ticks until which the link accepts no packet, by direction; 0 if it was
	 * never full; __atomic
	 */
	uint64_t full_until[2];
	bool busy; /* delayed packets exist, so soft_net_run() must run in every poll */
	/* fault injection has decided not to drop the next packet, which could not be sent yet */
	bool spared;
	bool loses; /* soft_net_loses() must decide for each outgoing packet whether it is lost */
};

/* Returns true if any fault is configured. */
static inline bool
soft_net_faulty(const struct soft_net_fault *f)
{
	return (f->drop | f->dup | f->reorder | f->corrupt | f->ecn | f->delay | f->stall |
		f->full_after) != 0;
}

#endif
