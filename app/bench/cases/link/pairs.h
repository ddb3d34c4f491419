/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Shared by the cases with two processes. */
#ifndef PAIRS_H
#define PAIRS_H

#include "link.h"

/*
 * Returns the specifications of a RoCEv2 link's two devices, and creates what they need: --device
 * and --peer-device, or two devices on a pair of net_memif. @more is appended to both. Returns 0 or
 * -errno, with a message on stderr.
 */
int wire_specs(char *here, char *there, size_t size, const char *more);

/* Reports rows NAME/...: latency and rate of @s compared with TCP, by UCX if it is installed. */
void tcp_pairs(const char *name, struct soft *s);

#endif
