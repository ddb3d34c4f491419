/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Floors between two processes without a device: memory both have mapped, and kernel TCP. */
#ifndef FLOOR_PROC_H
#define FLOOR_PROC_H

#include "remote.h"

/* What a run is to do. */
struct floor_proc_run {
	uint64_t n;
	uint32_t size;
};

/* ns per write of size bytes until the other process sees it: half of there and back. */
double floor_mapped_latency(void *run);
/* The same by messages of TCP on loopback, both ends spinning. */
double floor_tcp_latency(void *run);
/* M/s of messages of size bytes, a send() each. */
double floor_tcp_rate(void *run);

/* The other process's part. 0 or -errno. */
int floor_mapped_echo(uint64_t n, uint32_t size);
int floor_tcp_peer(const struct remote_msg *msg);

#endif
