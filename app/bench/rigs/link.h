/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Measures Bluebell between two processes, with one queue pair in each. The second process executes
 * the functions that end in _peer.
 */
#ifndef LINK_H
#define LINK_H

#include "remote.h"
#include "soft.h"

#define LINK_DEPTH 512u
#define LINK_BYTES (4u << 20)

/*
 * Opens the device @here in this process and the device @there in the second process, and connects
 * a queue pair of each. Returns 0 or -errno.
 */
int link_open(struct soft *s, const char *here, const char *there);
/* Does the same as link_open(), but calls @then before it opens @there. */
int link_open_with(struct soft *s, const char *here, const char *there,
		   int (*then)(const void *arg), const void *arg);
void link_close(struct soft *s);

/* Parameters of one measurement run between two soft devices. */
struct link_run {
	struct soft *s;
	uint64_t n;
	/* Large WRITEs only: bytes of a WRITE, bytes of the buffer, maximum outstanding WRITEs. */
	uint32_t size, set, window;
	uint32_t signal_every; /* every signal_every-th WRITE is signalled; 0: each WRITE. Must
				  divide n */
};
/*
 * Returns half of the round trip of a WRITE of 8 bytes, in ns. link_latency() and the four
 * functions below return a negative number on an error or wrong data.
 */
double link_latency(void *run);
/* Return millions of 8-byte messages per second, in batches of 32 with one signalled WQE. */
double link_write_rate(void *run);
double link_send_rate(void *run);
/* Return GB/s, or millions of messages per second, of large WRITEs. */
double link_bandwidth(void *run);
double link_messages(void *run);

/* Answers each of @n WRITEs with a WRITE of the same 8 bytes. Returns 0 or -errno. */
int link_echo_peer(struct soft *s, uint64_t n);
/*
 * Polls until stop is set, and posts *@n receives meanwhile. Sets *@n to the number of completed
 * receives. Returns 0 or -errno.
 */
int link_run_peer(struct soft *s, uint64_t *n);

/*
 * link_fill() fills a buffer with data that depends on the offset and on @seed. link_check()
 * returns true if a buffer has this data.
 */
void link_fill(uint8_t *p, size_t len, uint64_t seed);
bool link_check(const uint8_t *p, size_t len, uint64_t seed);

#endif
