/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Ours between two processes: one queue pair here, one there. Functions that end in
 * _peer are the other process's part.
 */
#ifndef LINK_H
#define LINK_H

#include "remote.h"
#include "soft.h"

#define LINK_DEPTH 512u
#define LINK_BYTES (4u << 20)

/* Open @here in this process and @there in the other, and connect them. 0 or -errno. */
int link_open(struct soft *s, const char *here, const char *there);
/* The same; @then is called when @here is open and before @there is opened. */
int link_open_with(struct soft *s, const char *here, const char *there,
		   int (*then)(const void *arg), const void *arg);
void link_close(struct soft *s);

/* What a run is to do. */
struct link_run {
	struct soft *s;
	uint64_t n;
	/* Large writes: bytes each, and of the memory they go round in; how many at a time. */
	uint32_t size, set, window;
	uint32_t signal_every; /* a CQE for so many of them; 0: each. It divides n */
};
/*
 * ns per WRITE of 8 bytes until the peer sees it: half of there and back. All of these:
 * < 0 for an error or wrong data.
 */
double link_latency(void *run);
/* M/s of 8 bytes, batches of 32 with one signalled WQE each. */
double link_write_rate(void *run);
double link_send_rate(void *run);
/* GB/s; M/s of the same. */
double link_bandwidth(void *run);
double link_messages(void *run);

int link_echo_peer(struct soft *s, uint64_t n);
/* Poll until stop; take *@n receives meanwhile. How many came goes there. */
int link_run_peer(struct soft *s, uint64_t *n);

/* Data that says where it belongs, and another for each @seed. */
void link_fill(uint8_t *p, size_t len, uint64_t seed);
bool link_check(const uint8_t *p, size_t len, uint64_t seed);

#endif
