/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* What the two users of libibverbs share: drivers/verbs, and drivers/mlx5 by its commands. */
#ifndef BB_IBV_H
#define BB_IBV_H

#include <infiniband/verbs.h>

#include "bb_dev.h"

/* An errno as calls of libibverbs leave it, some of which do not: negative, never 0. */
int bb_ibv_errno(void);

/*
 * The same of a call that registers [@addr, @addr + @len). With ibv_fork_init(), which DPDK's own
 * mlx5 driver calls in every program that loads it, libibverbs meets a hole there before the kernel
 * does, and calls it ENOMEM: -EFAULT in place of that.
 */
int bb_ibv_reg_errno(const void *addr, uint64_t len);

/* The PCI address of a device, "" for one that has none: what rxe and siw have is no device. */
void bb_ibv_bus(const struct ibv_device *dev, char *bus, size_t size);

/* Bytes, 0: no MTU of InfiniBand. */
uint32_t bb_ibv_mtu(enum ibv_mtu mtu);

/* 0 or -errno; -EINVAL a port that no device has. */
int bb_ibv_port(struct ibv_context *ctx, uint32_t port, struct bb_port_attr *attr);

/* 0, -ENOENT an empty entry, or -errno. */
int bb_ibv_gid(struct ibv_context *ctx, uint32_t port, uint32_t index, struct bb_gid *gid);

/*
 * Asks the kernel for the MAC of attr->grh.dgid on RoCE; never waits. 0: the kernel has it now, and
 * making an address handle does not wait, for about a minute; -EAGAIN: call again; else why there
 * is none, which is told once. Any thread.
 */
int bb_ibv_ready(struct ibv_context *ctx, const struct ibv_ah_attr *attr);
/* Waits for what bb_ibv_ready() has under way; before the device is closed. */
void bb_ibv_ready_end(struct ibv_context *ctx);

#endif
