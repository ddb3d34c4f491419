/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The guest's netdev sends and receives frames through the Ethernet port that the device's option
 * port= names. The device takes the RoCE datagrams for the guest's addresses; all other received
 * frames come here.
 */
#include <errno.h>
#include <string.h>

#include "eth.h"

int
eth_port_open(struct front_eth *e)
{
	struct mlx5_ctx *ctx = front_ctx(e->f);

	return ctx != NULL ? soft_frames_open(ctx) : -ENODEV;
}

bool
front_ethernet_port(struct front *f, uint8_t mac[6], uint32_t *frame)
{
	struct mlx5_ctx *ctx = front_ctx(f);
	struct soft_frames_port port;

	if (ctx == NULL || f->eth == NULL || !f->eth->on_port)
		return false;
	soft_frames_port(ctx, &port);
	memcpy(mac, port.mac, sizeof(port.mac));
	*frame = port.frame;
	return true;
}

bool
eth_port_receive(struct front_eth *e)
{
	struct mlx5_ctx *ctx = front_ctx(e->f);
	uint64_t start = front_now();
	uint32_t len;
	bool any;

	if (ctx == NULL)
		return false;
	any = soft_frames_poll(ctx, e->f->stopped) != 0;
	while ((len = soft_frames_get(ctx, e->message, ETH_MAX_FRAME)) != 0) {
		any = true;
		eth_receive(e, e->message, len);
		if (front_now() - start >= ETH_TURN_NS)
			break;
	}
	if (any)
		e->f->busy_until = front_now() + FRONT_BUSY_NS;
	return any;
}

bool
eth_port_ready(struct front_eth *e)
{
	struct mlx5_ctx *ctx = front_ctx(e->f);

	return !e->on_port || ctx == NULL || soft_frames_ready(ctx);
}

void
eth_port_send(struct front_eth *e, const uint8_t *frame, uint32_t len)
{
	struct mlx5_ctx *ctx = front_ctx(e->f);

	if (ctx != NULL)
		soft_frames_send(ctx, frame, len);
}

void
eth_port_flush(struct front_eth *e)
{
	struct mlx5_ctx *ctx = front_ctx(e->f);

	if (e->on_port && ctx != NULL)
		soft_frames_flush(ctx);
}
