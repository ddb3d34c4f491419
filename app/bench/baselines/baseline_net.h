/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Baselines of a network: packets over an ethdev between two processes. Payload is copied in and
 * out, with a CRC-32 over it on both sides, as for a RoCEv2 packet. There is no protocol and no
 * loss is expected; reordered or damaged packets make the run fail.
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
/* Bytes of the buffers that payload is read from and written to, sequentially. */
#define BASELINE_NET_SET (1u << 20)

struct rte_mempool;

struct baseline_net {
	uint16_t port;
	bool open;
	struct rte_mempool *pool;
	uint8_t *from, *to; /* source and destination buffers of payload */
	uint64_t tx_seq, rx_seq;
};

/*
 * Creates the vdev "name,arguments" unless one of that name exists. Returns 0 or -errno, with a
 * message on stderr.
 */
int vdev_make(const char *text);

/*
 * Creates the vdev "name,arguments" and starts it. Returns 0 or -errno, with a message on stderr.
 */
int baseline_net_open(struct baseline_net *net, const char *vdev);
void baseline_net_close(struct baseline_net *net);

/* All functions below return 0, -EBADMSG for a wrong packet, -ETIMEDOUT or -ENETDOWN. */

/* Sends and receives one packet at a time, numbered from @from to @n - 1. */
int baseline_net_ping(struct baseline_net *net, uint64_t from, uint64_t n, uint32_t size);
int baseline_net_echo(struct baseline_net *net, uint64_t n, uint32_t size);
/*
 * Sends @n packets in one direction, at most @window without credit; returns when all have arrived.
 */
int baseline_net_source(struct baseline_net *net, uint64_t n, uint32_t size, uint64_t window);
int baseline_net_sink(struct baseline_net *net, uint64_t n, uint32_t size, uint64_t window);

#endif
