/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* What a network does to packets, on purpose as the options tx_* and rx_* say: soft_wire_fault.c.
 */
#ifndef SOFT_NET_FAULT_H
#define SOFT_NET_FAULT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct soft_packet_msg;
TAILQ_HEAD(soft_packets, soft_packet_msg);

#define SOFT_WINDOW     256u /* where nothing is said */
#define SOFT_MAX_WINDOW 65536u

/* What happens to packets in one direction; rates in millionths. */
struct soft_net_fault {
	uint32_t drop, dup, reorder, corrupt;
	uint32_t ecn;   /* of those that may be marked, RFC 3168 */
	uint32_t delay; /* us, of all */
	/* A packet that strikes, and those behind it, go on so many ms later. */
	uint32_t stall, stall_ms;
	/* After so many packets of an engine the link takes none for @full_ms; 0: for ever. */
	uint32_t full_after, full_ms;
};

/* A port that is up and down in turn: ns since @start. */
struct soft_flap {
	uint64_t start, up, down; /* up 0: it does not flap */
};

/* Is it down? Until *edge it stays so. */
static inline bool
soft_flap_down(const struct soft_flap *f, uint64_t now, uint64_t *edge)
{
	uint64_t at = (now - f->start) % (f->up + f->down);

	*edge = now - at + (at < f->up ? f->up : f->up + f->down);
	return at >= f->up;
}

/* An engine's part of it. */
struct soft_net_state {
	uint64_t faults;         /* state of what is drawn */
	uint64_t stall_until[2]; /* ticks; out, in */
	uint32_t stalled[2];     /* held packets that one has stopped */
	uint32_t passed[2];      /* packets, for soft_net_fault.full_after */
	uint64_t full_until[2];  /* ticks; 0: the link has not been full yet; __atomic */
	bool busy;               /* soft_net_run() in every poll */
	bool spared;             /* the next packet out is drawn for, and not lost */
	bool loses;              /* soft_net_loses() is to be asked for each packet out */
};

/* Has a fault been asked for? */
static inline bool
soft_net_faulty(const struct soft_net_fault *f)
{
	return (f->drop | f->dup | f->reorder | f->corrupt | f->ecn | f->delay | f->stall |
		f->full_after) != 0;
}

#endif
