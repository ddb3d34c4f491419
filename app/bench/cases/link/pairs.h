/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Functions for the cases with two processes. */
#ifndef PAIRS_H
#define PAIRS_H

#include "link.h"

/*
 * Writes the specifications of a RoCEv2 link's two devices to @here and @there. These are --device
 * and --peer-device or, without them, two devices on a pair of net_memif, which this function
 * creates. Appends @more to both. Returns 0, or -errno after printing the error on stderr.
 */
int wire_specs(char *here, char *there, size_t size, const char *more);

/*
 * Measures latency and rate of @s compared with TCP. Uses UCX over TCP if UCX is installed,
 * otherwise sockets. Reports the results as rows NAME/...
 */
void tcp_pairs(const char *name, struct soft *s);

#endif
