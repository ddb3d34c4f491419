/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Baselines between two processes without a device: mapped memory, and kernel TCP. */
#ifndef BASELINE_PROC_H
#define BASELINE_PROC_H

#include "remote.h"

/* Parameters of a run of the baseline between two processes. */
struct baseline_proc_run {
	uint64_t n;
	uint32_t size;
};

/*
 * Returns half of the round trip of a message of size bytes through mapped memory, in ns. This
 * function and the two TCP functions below return a negative number on an error or wrong data.
 */
double baseline_mapped_latency(void *run);
/* Returns half of the round trip of a TCP message on loopback, in ns. Both processes poll. */
double baseline_tcp_latency(void *run);
/* Returns millions of TCP messages per second. Each message of size bytes has its own send(). */
double baseline_tcp_rate(void *run);

/*
 * Run in the second process: send back what baseline_mapped_latency() writes, or what the two TCP
 * functions send. Return 0 or -errno.
 */
int baseline_mapped_echo(uint64_t n, uint32_t size);
int baseline_tcp_peer(const struct remote_msg *msg);

#endif
