/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Baselines between two processes without a device: mapped memory, and kernel TCP. */
#ifndef BASELINE_PROC_H
#define BASELINE_PROC_H

#include "remote.h"

/* Parameters of a run. */
struct baseline_proc_run {
	uint64_t n;
	uint32_t size;
};

/* Returns ns from a write of size bytes until the other process sees it: half a round trip. */
double baseline_mapped_latency(void *run);
/* Returns ns one way for TCP messages on loopback, with both ends polling. */
double baseline_tcp_latency(void *run);
/* Returns M/s for messages of size bytes, with one send() each. */
double baseline_tcp_rate(void *run);

/* The other process's part. Returns 0 or -errno. */
int baseline_mapped_echo(uint64_t n, uint32_t size);
int baseline_tcp_peer(const struct remote_msg *msg);

#endif
