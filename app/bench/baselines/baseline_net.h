/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Baselines of a network: packets between two processes over an ethdev. Each process copies the
 * payload and computes a CRC-32 of it, as for a RoCEv2 packet. There is no protocol. A lost,
 * reordered or damaged packet makes the run fail.
 */
#ifndef BASELINE_NET_H
#define BASELINE_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the Ethernet header and the CRC. */
#define BASELINE_NET_OVERHEAD 18u
/* Payload size that gives the packet the length of a RoCEv2 WRITE of 8 bytes over IPv4. */
#define BASELINE_NET_WRITE8 64u
#define BASELINE_NET_MAX    4096u
/* Bytes of the source buffer and of the destination buffer. Payload fills them sequentially. */
#define BASELINE_NET_SET (1u << 20)

struct rte_mempool;

struct baseline_net {
	uint16_t port;
	bool open;
	struct rte_mempool *pool;
	uint8_t *from, *to; /* source and destination buffers of payload */
	uint64_t rx_seq;
};

/*
 * Creates the vdev @text ("name,arguments") unless a vdev of that name exists. Returns 0, or -errno
 * after printing the error on stderr.
 */
int vdev_make(const char *text);

/*
 * Creates the vdev @vdev ("name,arguments") and starts its port. Returns 0, or -errno after
 * printing the error on stderr.
 */
int baseline_net_open(struct baseline_net *net, const char *vdev);
void baseline_net_close(struct baseline_net *net);

/* All functions below return 0, -EBADMSG for a wrong packet, -ETIMEDOUT or -ENETDOWN. */

/*
 * For each number from @from to @n - 1, sends a packet with this number and waits until the packet
 * comes back.
 */
int baseline_net_ping(struct baseline_net *net, uint64_t from, uint64_t n, uint32_t size);
int baseline_net_echo(struct baseline_net *net, uint64_t n, uint32_t size);
/*
 * Sends @n packets and returns when all have arrived. The receiver reports from time to time how
 * many packets it has received (credit). At most @window packets beyond that number are sent.
 */
int baseline_net_source(struct baseline_net *net, uint64_t n, uint32_t size, uint64_t window);
int baseline_net_sink(struct baseline_net *net, uint64_t n, uint32_t size, uint64_t window);

#endif
