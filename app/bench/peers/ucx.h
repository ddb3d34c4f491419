/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * UCX as a peer: its own program ucx_perftest (Debian: ucx-utils) is run, one process
 * on each CPU, and what it prints is read. Nothing of UCX is linked.
 */
#ifndef UCX_H
#define UCX_H

#include <stdbool.h>
#include <stdint.h>

struct ucx_test {
	const char *test; /* as ucx_perftest -t */
	const char *tls;  /* UCX_TLS */
	uint64_t n;
	uint32_t size;
};

/* Is the program there? */
bool ucx_present(void);
/* All take a struct ucx_test; < 0: failed, which is said to stderr. */
double ucx_latency(void *test);   /* ns one way */
double ucx_rate(void *test);      /* M/s */
double ucx_bandwidth(void *test); /* GB/s */

#endif
