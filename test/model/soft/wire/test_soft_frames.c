/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Frames that a guest's kernel sends through a port that has no room for them. */
#include <rte_eth_ring.h>
#include <rte_ethdev.h>

#include "../../../fakes/bare_eal.h"
#include "../soft_rig.h"
#include "soft_ctl.h"
#include "soft_host.h"
#include "soft_netif.h"

#define RINGS 64

static struct rte_ring *ring[2]; /* to and from the port */
static char name[RTE_ETH_NAME_MAX_LEN];

/* Sends frames until neither the ring nor the port's queue has room. */
static void
fill(struct mlx5_ctx *ctx)
{
	static const uint8_t frame[60] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1};
	struct soft_netif *nif = soft_ctx(ctx)->dev->netif;

	while (!soft_port_is_full(nif->port)) {
		soft_frames_send(ctx, frame, sizeof(frame));
		soft_frames_flush(ctx);
	}
}

static void
drain(struct mlx5_ctx *ctx)
{
	void *m;

	while (rte_ring_dequeue(ring[1], &m) == 0) {
		rte_pktmbuf_free(m);
		soft_frames_flush(ctx);
	}
}

TEST(test_frame_waits_its_time_for_room_although_the_port_was_full_before)
{
	struct mlx5_ctx *ctx;
	struct soft_dev *dev;
	char args[128];

	snprintf(args, sizeof(args), "port=%s,seed=1", name);
	OK(soft_cmd_if.open("soft0", args, &ctx));
	dev = soft_ctx(ctx)->dev;
	dev->opts.virtual_time = true;
	dev->virtual_us = 1000000;
	OK(soft_frames_open(ctx));
	assert_true(soft_frames_ready(ctx));
	fill(ctx);
	assert_false(soft_frames_ready(ctx));
	drain(ctx);
	dev->virtual_us += 1000000;
	fill(ctx);
	assert_false(soft_frames_ready(ctx));
	dev->virtual_us += 60000;
	assert_false(soft_frames_ready(ctx));
	dev->virtual_us += 60000;
	assert_true(soft_frames_ready(ctx));
	drain(ctx);
	dev->opts.virtual_time = false;
	OK(soft_cmd_if.close(ctx));
}

int
main(void)
{
	int port;

	if (bare_eal_init() < 0)
		return 77;
	ring[0] = rte_ring_create("to", RINGS, 0, 0);
	ring[1] = rte_ring_create("from", RINGS, 0, 0);
	if (ring[0] == NULL || ring[1] == NULL)
		return 1;
	port = rte_eth_from_rings("frames", &ring[0], 1, &ring[1], 1, 0);
	if (port < 0 || rte_eth_dev_get_name_by_port((uint16_t)port, name) != 0)
		return 1;
	return bb_test_run(__FILE__, NULL, NULL);
}
