/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Rings of 48-byte messages between two processes: rdma_ring of the examples, and its baseline, an
 * rte_ring in mapped memory. The second process executes the functions that end in _peer.
 */
#ifndef RING_H
#define RING_H

#include "rdma_ring.h"
#include "remote.h"
#include "soft.h"

#define RING_SLOTS 256u /* messages that a ring holds */
#define RING_BATCH 32u  /* maximum messages of a batch */

/* Content of a message: its number, and words that depend on the number. */
struct ring_msg {
	uint64_t word[6];
};

static inline void
ring_fill(struct ring_msg *m, uint64_t n)
{
	unsigned int i;

	for (i = 0; i < 6; i++)
		m->word[i] = n + i;
}

/* Returns true if @m is message @n. */
static inline bool
ring_check(const struct ring_msg *m, uint64_t n)
{
	uint64_t bad = 0;
	unsigned int i;

	for (i = 0; i < 6; i++)
		bad |= m->word[i] ^ (n + i);
	return bad == 0;
}

/* Parameters of a run. */
struct ring_run {
	struct soft *s; /* NULL for an rte_ring */
	uint64_t n;
	uint32_t
		batch; /* messages that the producer adds, and that the consumer takes, at a time */
};

/*
 * Return half of the round trip of a message in ns, and millions of messages per second. Return a
 * negative number on an error or wrong data.
 */
double ring_latency(void *run);
double ring_rate(void *run);
double baseline_ring_latency(void *run);
double baseline_ring_rate(void *run);

/*
 * ring_init() initializes the ring in which @s sends and the one in which it receives. The buffers
 * of @s and of its peer must have space for RING_BYTES. Returns 0 or -errno.
 */
#define RING_BYTES (2 * RING_SLOTS * RDMA_RING_SLOT + 64)
int ring_init(struct soft *s, struct rdma_ring_tx *to, struct rdma_ring_rx *from);
/*
 * Initialize both rdma_rings of a device that link_open() has opened: ring_open() those of both
 * processes, ring_open_peer() those of the second process. Return 0 or -errno.
 */
int ring_open(struct soft *s);
int ring_open_peer(struct soft *s);

/* Send back @n messages one by one. Return 0 or -errno. */
int ring_echo_peer(struct soft *s, uint64_t n);
int baseline_ring_echo_peer(uint64_t n);
/* Take @n messages, at most @batch at a time, and then send one message back. */
int ring_sink_peer(struct soft *s, uint64_t n, uint32_t batch);
int baseline_ring_sink_peer(uint64_t n, uint32_t batch);

#endif
