/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Shared by the two users of libibverbs: drivers/verbs, and the command interface of drivers/mlx5.
 */
#ifndef BB_IBV_H
#define BB_IBV_H

#include <infiniband/verbs.h>

#include "bb_dev.h"

/*
 * Returns the errno of a failed libibverbs call as a negative number, never 0: some calls do not
 * set errno.
 */
int bb_ibv_errno(void);

/*
 * Returns the errno of a call that registers [@addr, @addr + @len). With ibv_fork_init() libibverbs
 * detects a hole in that range before the kernel does, and reports ENOMEM; this function returns
 * -EFAULT instead. DPDK's own mlx5 driver calls ibv_fork_init() in every program that loads it.
 */
int bb_ibv_reg_errno(const void *addr, uint64_t len);

/* Writes the PCI address of a device, "" if it has none. rxe and siw have no underlying device. */
void bb_ibv_bus(const struct ibv_device *dev, char *bus, size_t size);

/* Returns the number of completion vectors of a device, at least 1. */
uint32_t bb_ibv_comp_vectors(const struct ibv_context *ctx);

/* Returns the MTU in bytes, 0 if it is not an InfiniBand MTU. */
uint32_t bb_ibv_mtu(enum ibv_mtu mtu);

/* Returns 0 or -errno; -EINVAL for a port number that no device has. */
int bb_ibv_port(struct ibv_context *ctx, uint32_t port, struct bb_port_attr *attr);

/* Returns 0, -ENOENT for an empty entry, or -errno. */
/* @port and @index are in range. */
int bb_ibv_pkey(struct ibv_context *ctx, uint32_t port, uint32_t index, uint16_t *pkey);
int bb_ibv_gid(struct ibv_context *ctx, uint32_t port, uint32_t index, struct bb_gid *gid);

/*
 * Requests the MAC of attr->grh.dgid on RoCE from the kernel; never waits. Returns 0 if the kernel
 * has the MAC: creating an address handle will then not wait, for about a minute. Returns -EAGAIN
 * if the caller must call again. Otherwise returns the reason why there is none, which is reported
 * once. Any thread.
 */
int bb_ibv_ready(struct ibv_context *ctx, const struct ibv_ah_attr *attr);
/* Waits for pending requests of bb_ibv_ready(). Call it before the device is closed. */
void bb_ibv_ready_end(struct ibv_context *ctx);

#endif
