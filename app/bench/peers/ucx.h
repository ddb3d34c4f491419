/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Measures UCX: runs its program ucx_perftest (Debian: ucx-utils), one process on each CPU, and
 * parses the output. No code of UCX is linked.
 */
#ifndef UCX_H
#define UCX_H

#include <stdbool.h>
#include <stdint.h>

struct ucx_test {
	const char *test; /* argument of ucx_perftest -t: the test */
	const char *tls;  /* value of UCX_TLS: the transports */
	uint64_t n;
	uint32_t size;
};

/* Returns true if ucx_perftest is installed. */
bool ucx_present(void);
/*
 * The three functions below take a struct ucx_test. They return a negative number after printing an
 * error on stderr.
 */
double ucx_latency(void *test);   /* ns in one direction */
double ucx_rate(void *test);      /* millions of messages per second */
double ucx_bandwidth(void *test); /* GB/s */

#endif
