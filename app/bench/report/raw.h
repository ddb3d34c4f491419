/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Floors of a network between this process and the second: raw packets, both ends driven. */
#ifndef RAW_H
#define RAW_H

#include "floor_net.h"
#include "remote.h"

struct raw {
	struct floor_net net;
	uint32_t index; /* of the other process's end */
};

/* What a run is to do. */
struct raw_run {
	struct raw *raw;
	uint64_t n;
	uint32_t size;   /* bytes of payload */
	uint64_t window; /* packets not yet credited, of a rate */
};

/* Vdevs here and there, "name,arguments". 0 or -errno. */
int raw_open(struct raw *raw, uint32_t index, const char *here, const char *there);
/* A pair of net_memif, whose names end in @id. */
int raw_open_memif(struct raw *raw, uint32_t index, uint32_t id);
void raw_close(struct raw *raw);

/*
 * "name,arguments" of a net_memif; both ends of one @id and @serial meet. The PMD lets go of a
 * socket some time after a port was closed: the next one has another serial.
 */
void raw_memif_text(char *text, size_t size, bool server, uint32_t id, uint32_t serial);

/* < 0: failed, or a packet was wrong. */
double raw_latency(void *run);   /* ns one way: half of there and back */
double raw_rate(void *run);      /* M packets/s */
double raw_bandwidth(void *run); /* GB/s of payload */

#endif
