/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Network baselines between this process and the second one: raw packets, with both ends
 * controlled.
 */
#ifndef RAW_H
#define RAW_H

#include "baseline_net.h"
#include "remote.h"

struct raw {
	struct baseline_net net;
	uint32_t index; /* index of the other process's end */
};

/* Parameters of a run. */
struct raw_run {
	struct raw *raw;
	uint64_t n;
	uint32_t size;   /* bytes of payload */
	uint64_t window; /* for a rate: maximum packets without credit */
};

/* Opens vdevs "name,arguments" in both processes. Returns 0 or -errno. */
int raw_open(struct raw *raw, uint32_t index, const char *here, const char *there);
/* Opens a pair of net_memif whose names end in @id. */
int raw_open_memif(struct raw *raw, uint32_t index, uint32_t id);
void raw_close(struct raw *raw);

/*
 * Writes "name,arguments" of a net_memif. The two ends with the same @id and @serial connect. The
 * PMD releases a socket some time after a port was closed, so the next one needs another serial.
 */
void raw_memif_text(char *text, size_t size, bool server, uint32_t id, uint32_t serial);

/* All return < 0 on an error or a wrong packet. */
double raw_latency(void *run);   /* ns one way: half a round trip */
double raw_rate(void *run);      /* M packets/s */
double raw_bandwidth(void *run); /* GB/s of payload */

#endif
