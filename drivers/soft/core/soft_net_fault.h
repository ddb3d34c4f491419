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

#define SOFT_WINDOW     256u /* default of the option window */
#define SOFT_MAX_WINDOW 65536u

/* Faults of one direction; rates in millionths of the packets. */
struct soft_net_fault {
	uint32_t drop, dup, reorder, corrupt;
	uint32_t ecn;   /* rate among packets that may be marked, RFC 3168 */
	uint32_t delay; /* us, for all packets */
	/*
	 * Rate of stalls. A stall delays the packet that starts it, and all later ones, by
	 * @stall_ms ms.
	 */
	uint32_t stall, stall_ms;
	/*
	 * After this many packets of an engine the link accepts none for @full_ms ms; 0: without
	 * end.
	 */
	uint32_t full_after, full_ms;
};

/* A port that alternates between up and down; ns, counted from @start. */
struct soft_flap {
	uint64_t start, up, down; /* up 0: the port stays up */
};

/* Returns true if the port is down. The state lasts until *edge. */
static inline bool
soft_flap_down(const struct soft_flap *f, uint64_t now, uint64_t *edge)
{
	uint64_t at = (now - f->start) % (f->up + f->down);

	*edge = now - at + (at < f->up ? f->up : f->up + f->down);
	return at >= f->up;
}

/* State of the faults in one engine. */
struct soft_net_state {
	uint64_t faults;         /* state of the random sequence */
	uint64_t stall_until[2]; /* ticks; index 0 out, 1 in */
	uint32_t stalled[2];     /* packets held by a stall */
	uint32_t passed[2];      /* packets passed, for soft_net_fault.full_after */
	uint64_t full_until[2];  /* ticks; 0 if the link was never full; __atomic */
	bool busy;               /* soft_net_run() must run in every poll */
	bool spared;             /* the next packet out was drawn for already and is not lost */
	bool loses;              /* soft_net_loses() must be called for each packet out */
};

/* Returns true if any fault is configured. */
static inline bool
soft_net_faulty(const struct soft_net_fault *f)
{
	return (f->drop | f->dup | f->reorder | f->corrupt | f->ecn | f->delay | f->stall |
		f->full_after) != 0;
}

#endif
