/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * UCX as a peer: runs its program ucx_perftest (Debian: ucx-utils), one process on each CPU, and
 * parses its output. Nothing of UCX is linked.
 */
#ifndef UCX_H
#define UCX_H

#include <stdbool.h>
#include <stdint.h>

struct ucx_test {
	const char *test; /* argument of ucx_perftest -t */
	const char *tls;  /* UCX_TLS */
	uint64_t n;
	uint32_t size;
};

/* Returns true if the program is installed. */
bool ucx_present(void);
/* All take a struct ucx_test and return < 0 on an error, with a message on stderr. */
double ucx_latency(void *test);   /* ns one way */
double ucx_rate(void *test);      /* M/s */
double ucx_bandwidth(void *test); /* GB/s */

#endif
