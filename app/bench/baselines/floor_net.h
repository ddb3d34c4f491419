/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Floors of a network: packets over an ethdev between two processes, payload copied
 * in and out and a CRC-32 over it on both sides, as a RoCEv2 packet has. No
 * protocol, no loss expected; what comes out of order or damaged fails.
 */
#ifndef FLOOR_NET_H
#define FLOOR_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ethernet's header and the CRC. */
#define FLOOR_NET_OVERHEAD 18u
/* Payload with which the packet is as long as a RoCEv2 WRITE of 8 bytes over IPv4. */
#define FLOOR_NET_WRITE8 64u
#define FLOOR_NET_MAX    4096u
/* Bytes that payload is taken from, and put to, one after the other. */
#define FLOOR_NET_SET (1u << 20)

struct rte_mempool;

struct floor_net {
	uint16_t port;
	bool open;
	struct rte_mempool *pool;
	uint8_t *from, *to; /* where payload comes from and goes to */
	uint64_t tx_seq, rx_seq;
};

/* Make the vdev "name,arguments" unless one of that name is there. 0 or -errno, said to stderr. */
int vdev_make(const char *text);

/* Make the vdev "name,arguments" and start it. 0 or -errno, said to stderr. */
int floor_net_open(struct floor_net *net, const char *vdev);
void floor_net_close(struct floor_net *net);

/* All below: 0, or -EBADMSG for a wrong packet, -ETIMEDOUT, -ENETDOWN. */

/* A packet there and one back, those with the numbers from @from to @n - 1. */
int floor_net_ping(struct floor_net *net, uint64_t from, uint64_t n, uint32_t size);
int floor_net_echo(struct floor_net *net, uint64_t n, uint32_t size);
/* @n packets one way, at most @window not yet credited; at the end all are there. */
int floor_net_source(struct floor_net *net, uint64_t n, uint32_t size, uint64_t window);
int floor_net_sink(struct floor_net *net, uint64_t n, uint32_t size, uint64_t window);

#endif
