/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Devices of this process that are the processes of a host. */
#ifndef SHM_HOST_H
#define SHM_HOST_H

#include <unistd.h>

#include "bb_test.h"
#include "soft_ctl.h"
#include "soft_hooks.h"
#include "soft_host.h"
#include "soft_link.h"
#include "soft_shm.h"

static const uint8_t address[16] = {[10] = 0xff, [11] = 0xff, 192, 0, 2, 1};

static inline int
open_as(unsigned int number, const char *more, struct mlx5_ctx **ctx)
{
	char name[16], args[128];

	snprintf(name, sizeof(name), "soft%u", number);
	snprintf(args, sizeof(args), "shm=slot%d,ip=192.0.2.1/24%s", (int)getpid(), more);
	return soft_cmd_if.open(name, args, ctx);
}

static inline struct mlx5_ctx *
opened(unsigned int number, const char *more)
{
	struct mlx5_ctx *ctx;

	assert_int_equal(open_as(number, more, &ctx), 0);
	return ctx;
}

static inline void
shut(struct mlx5_ctx *ctx)
{
	assert_int_equal(soft_cmd_if.close(ctx), 0);
}

static inline struct soft_dev *
dev_of(struct mlx5_ctx *ctx)
{
	return soft_ctx(ctx)->dev;
}

/* Sends a datagram of @len bytes to a QPN. */
static inline enum soft_link_sent
send_to(struct soft_dev *dev, const uint8_t dst[16], uint32_t dqpn, const uint8_t *data,
	uint32_t len)
{
	static struct soft_engine e;
	struct soft_wire_dest to = {.net = {.sport = 0xc000, .hop_limit = 64}};
	const struct bb_roce_pkt pkt = {
		.opcode = BB_ROCE_UD | BB_ROCE_SEND_ONLY, .pkey = 0xffff, .dqpn = dqpn, .len = len};
	const struct bb_roce_iov iov = {.p = data, .len = len};
	const struct soft_link_pkt p = {.to = &to, .pkt = &pkt, .iov = &iov, .n = 1};

	e.dev = dev;
	memcpy(to.net.src, address, 16);
	memcpy(to.net.dst, dst, 16);
	soft_shm_mac(dst, to.mac);
	return soft_link_shm.send(&e, &p);
}

#endif
