/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Bluebell between two processes, with one queue pair in each. Functions that end in _peer are the
 * other process's part.
 */
#ifndef LINK_H
#define LINK_H

#include "remote.h"
#include "soft.h"

#define LINK_DEPTH 512u
#define LINK_BYTES (4u << 20)

/* Opens @here in this process and @there in the other, and connects them. Returns 0 or -errno. */
int link_open(struct soft *s, const char *here, const char *there);
/* Does the same; calls @then after @here is open and before @there is opened. */
int link_open_with(struct soft *s, const char *here, const char *there,
		   int (*then)(const void *arg), const void *arg);
void link_close(struct soft *s);

/* Parameters of a run. */
struct link_run {
	struct soft *s;
	uint64_t n;
	/*
	 * Large writes: bytes of each, bytes of the memory that they cycle through, maximum
	 * outstanding.
	 */
	uint32_t size, set, window;
	uint32_t signal_every; /* writes per CQE; 0: one CQE each. Must divide n */
};
/*
 * Returns ns from a WRITE of 8 bytes until the peer sees it: half a round trip. All of these
 * functions return < 0 for an error or wrong data.
 */
double link_latency(void *run);
/* Returns M/s of 8-byte messages, in batches of 32 with one signalled WQE each. */
double link_write_rate(void *run);
double link_send_rate(void *run);
/* Returns GB/s, or M/s of the same writes. */
double link_bandwidth(void *run);
double link_messages(void *run);

int link_echo_peer(struct soft *s, uint64_t n);
/* Polls until stop, consuming *@n receives meanwhile. Sets *@n to the number that arrived. */
int link_run_peer(struct soft *s, uint64_t *n);

/* Fills and checks data that depends on its offset and on @seed. */
void link_fill(uint8_t *p, size_t len, uint64_t seed);
bool link_check(const uint8_t *p, size_t len, uint64_t seed);

#endif
