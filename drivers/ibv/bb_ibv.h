/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Declarations shared by the two users of libibverbs: drivers/verbs, and the command interface of
 * drivers/mlx5.
 */
#ifndef BB_IBV_H
#define BB_IBV_H

#include <infiniband/verbs.h>

#include "bb_dev.h"

/*
 * Returns the errno of a failed libibverbs call as a negative number. Returns a number other than 0
 * also if the call has not set errno.
 */
int bb_ibv_errno(void);

/*
 * Returns the negative errno of a failed call that registers the memory [@addr, @addr + @len),
 * which is not ON_DEMAND. If DPDK's own mlx5 driver is loaded, it has called ibv_fork_init(). After
 * that call libibverbs itself detects unmapped pages in the range, and sets ENOMEM. In this case
 * the function returns -EFAULT, as the kernel would.
 */
int bb_ibv_reg_errno(const void *addr, uint64_t len);

/*
 * Writes the PCI address of a device to @bus. Writes "" if the device has no PCI address, such as
 * rxe and siw.
 */
void bb_ibv_bus(const struct ibv_device *dev, char *bus, size_t size);

/* Returns the number of completion vectors of a device, at least 1. */
uint32_t bb_ibv_comp_vectors(const struct ibv_context *ctx);

/* Returns the MTU in bytes; 0 if @mtu is not an InfiniBand MTU. */
uint32_t bb_ibv_mtu(enum ibv_mtu mtu);

/* Queries a port. Returns 0 or -errno; -EINVAL if the device has no port of that number. */
int bb_ibv_port(struct ibv_context *ctx, uint32_t port, struct bb_port_attr *attr);

/* Queries a P_Key of a port. @port and @index are in range. Returns 0 or -errno. */
int bb_ibv_pkey(struct ibv_context *ctx, uint32_t port, uint32_t index, uint16_t *pkey);
int bb_ibv_gid(struct ibv_context *ctx, uint32_t port, uint32_t index, struct bb_gid *gid);

/*
 * Resolves the MAC of attr->grh.dgid on RoCE in the background; never waits. Returns 0 if the
 * kernel knows the MAC. For about a minute from then on, creating an address handle does not wait.
 * Returns -EAGAIN if the caller must call again. If the MAC cannot be resolved, returns the reason
 * once, as another negative errno; the next call resolves the MAC again. Any thread.
 */
int bb_ibv_ready(struct ibv_context *ctx, const struct ibv_ah_attr *attr);
/* Waits for pending requests of bb_ibv_ready(). Call it before the device is closed. */
void bb_ibv_ready_end(struct ibv_context *ctx);

#endif
