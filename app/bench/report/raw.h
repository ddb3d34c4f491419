/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Network baselines: raw packets between this process and the second one. This process controls
 * both ends.
 */
#ifndef RAW_H
#define RAW_H

#include "baseline_net.h"
#include "remote.h"

struct raw {
	struct baseline_net net;
	uint32_t index; /* index by which commands name the second process's port */
};

/* Parameters of one measurement run with raw packets. */
struct raw_run {
	struct raw *raw;
	uint64_t n;
	uint32_t size;   /* bytes of payload */
	uint64_t window; /* maximum packets sent without credit; used only to measure a rate */
};

/*
 * Opens the vdev @here in this process and @there in the second one, each given as
 * "name,arguments". Returns 0 or -errno.
 */
int raw_open(struct raw *raw, uint32_t index, const char *here, const char *there);
/* Opens a pair of net_memif, one in each process. Both names end in @id. */
int raw_open_memif(struct raw *raw, uint32_t index, uint32_t id);
void raw_close(struct raw *raw);

/*
 * Writes "name,arguments" of a net_memif to @text. Two net_memif with the same @id and @serial
 * connect to each other. The PMD releases a socket some time after its port was closed, so the next
 * pair needs another serial.
 */
void raw_memif_text(char *text, size_t size, bool server, uint32_t id, uint32_t serial);

/*
 * The three functions below take a struct raw_run, and return a negative number on an error or a
 * wrong packet.
 */
double raw_latency(void *run);   /* ns in one direction: half of a round trip */
double raw_rate(void *run);      /* M packets/s */
double raw_bandwidth(void *run); /* GB/s of payload */

#endif
