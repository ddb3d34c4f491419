/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* What the cases of two processes share. */
#ifndef PAIRS_H
#define PAIRS_H

#include "link.h"

/*
 * The devices of a RoCEv2 link, what they need made: --device and --peer-device, or two
 * on a pair of net_memif. @more is put behind both. 0 or -errno, said to stderr.
 */
int wire_specs(char *here, char *there, size_t size, const char *more);

/* Rows NAME/...: latency and rate of @s beside TCP, by UCX if it is there. */
void tcp_pairs(const char *name, struct soft *s);

#endif
