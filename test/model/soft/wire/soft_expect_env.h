/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Two identical devices on net_ring, for test_soft_expect.c. */
#ifndef SOFT_EXPECT_ENV_H
#define SOFT_EXPECT_ENV_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_log.h>

#include "../../../fakes/bare_eal.h"
#include "../../../fakes/roce_frame.h"
#include "../soft_rig.h"
#include "soft_ctl.h"
#include "soft_netif.h"
#include "soft_wire.h"

#define ETH      14u
#define FRAME    (ETH + ROCE_FRAME_MAX + 64u)
#define RINGS    256u
#define MTU      1024u /* of rig_link_default() */
#define MEM      16384u
#define IOVA     UINT64_C(0x10000000)
#define PEER_QPN 0x321u
#define PSN      0xffff00u

static const uint8_t peer_mac[6] = {0x02, 0xcc, 0, 0, 0, 2};

struct side {
	struct rte_ring *to, *from;
	uint16_t port;
	char capture[64];
	struct rig_dev d;
	struct rig_uar u;
	struct rig_cq c;
	struct rig_qp q;
	struct mlx5_mr *mr, *ro; /* ro: no remote write */
	uint8_t *mem;
	struct soft_wire *w;
	uint64_t ol_flags;
};

static struct env {
	struct side s[2]; /* s[0] may take expected frames on the fast path; s[1] never does */
	struct rte_mempool *pool;
	struct rig_dev peer;
	struct rig_link link;
	uint64_t seed;
	uint32_t len;   /* Length of the previous message. */
	uint8_t opcode; /* Opcode of the previous message. */
	bool v6, tag;
	uint32_t met[SOFT_WIRE_KINDS];
} env;

/* Variant of a test run. */
struct way {
	bool capture, v6;
	const char *vlan;
};

static uint64_t start = 1, steps = 20000;

static uint32_t
dice(uint32_t n)
{
	env.seed = env.seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(env.seed >> 33) % n;
}

/* ---- Two devices */

static void
side_open_qp(struct side *s)
{
	static const struct rig_qp_attr attr = {
		.log_sq = 6, .log_rq = 4, .log_stride = 6, .uidx = 0xa11ce};

	rig_qp_open(&s->q, &s->u, &s->c, &s->c, &attr);
	s->w = soft_qp_find(soft_ctx(s->d.ctx)->dev, s->q.qpn)->wire;
	assert_non_null(s->w);
}

static void
side_open(struct side *s, unsigned int i, const struct way *way)
{
	static const char v4[] = "ip=192.0.2.11/24,ip=192.0.2.12/24,ip=192.0.2.1/24,"
				 "neigh=192.0.2.2@02:cc:00:00:00:02,"
				 "neigh=192.0.2.3@02:cc:00:00:00:02";
	static const char v6[] = "ip=2001:db8::11/64,ip=2001:db8::12/64,ip=2001:db8::1/64,"
				 "neigh=2001:db8::2@02:cc:00:00:00:02,"
				 "neigh=2001:db8::3@02:cc:00:00:00:02";
	const bool capture = way->capture;
	struct mlx5_mr_attr mr = {.kind = MLX5_MR_MEM, .len = MEM, .iova = IOVA, .access = RIG_ALL};
	static unsigned int serial;
	char name[32], eth[64], args[400];
	int id;

	memset(s, 0, sizeof(*s));

	snprintf(name, sizeof(name), "to%u", i);
	s->to = rte_ring_create(name, RINGS, 0, 0);
	snprintf(name, sizeof(name), "from%u", i);
	s->from = rte_ring_create(name, RINGS, 0, 0);
	assert_true(s->to != NULL && s->from != NULL);
	/* The name of a closed ethdev cannot be used again. */
	snprintf(name, sizeof(name), "expect%u", serial++);
	id = rte_eth_from_rings(name, &s->to, 1, &s->from, 1, 0);
	assert_true(id >= 0);
	s->port = (uint16_t)id;
	assert_int_equal(rte_eth_dev_get_name_by_port(s->port, eth), 0);
	/* The rig uses GID 3, the third of these addresses. */
	snprintf(args, sizeof(args), "port=%s,framesz=4400,seed=1,%s%s", eth, way->vlan,
		 way->v6 ? v6 : v4);
	if (capture) {
		snprintf(s->capture, sizeof(s->capture), "/tmp/soft_expect_%d_%u", getpid(), i);
		strcat(strcat(args, ",capture="), s->capture);
	}
	snprintf(name, sizeof(name), "soft%u", i);
	rig_dev_open(&s->d, name, args);
	rig_uar_open(&s->u, &s->d, MLX5_UAR_BF);
	rig_cq_open(&s->c, &s->u, 8);
	side_open_qp(s);
	s->mem = aligned_alloc(4096, MEM);
	assert_non_null(s->mem);
	memset(s->mem, 0, MEM);
	mr.addr = s->mem;
	OK(soft_cmd_if.mr_reg(s->d.ctx, s->d.pd, &mr, &s->mr));
	mr.access = 0;
	OK(soft_cmd_if.mr_reg(s->d.ctx, s->d.pd, &mr, &s->ro));
	s->ol_flags = i == 0 ? 0 : RTE_MBUF_F_RX_IP_CKSUM_NONE;
}

static void
side_close(struct side *s)
{
	rig_qp_close(&s->q);
	rig_cq_close(&s->c);
	rig_uar_close(&s->u);
	OK(soft_cmd_if.mr_dereg(s->d.ctx, s->mr));
	OK(soft_cmd_if.mr_dereg(s->d.ctx, s->ro));
	free(s->mem);
	rig_dev_close(&s->d);
	assert_int_equal(rte_eth_dev_close(s->port), 0);
	rte_ring_free(s->to);
	rte_ring_free(s->from);
}

static int
setup(void **st)
{
	static const uint8_t v4[16] = {[10] = 0xff, [11] = 0xff, 192, 0, 2, 2};
	static const uint8_t v6[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = 2};
	const struct way *way = *st;
	unsigned int i;

	env.seed = start;
	env.len = 8;
	env.opcode = BB_ROCE_WRITE_ONLY;
	env.v6 = way->v6;
	env.tag = way->vlan[0] != '\0';
	env.pool = rte_pktmbuf_pool_create("frames", 2047, 0, 0, 8192, SOCKET_ID_ANY);
	assert_non_null(env.pool);
	memcpy(env.peer.mac, peer_mac, 6);
	memcpy(env.peer.gid.raw, way->v6 ? v6 : v4, 16);
	for (i = 0; i < 2; i++)
		side_open(&env.s[i], i, way);
	/* Frames name the same QP number and key on both devices, because both have one seed. */
	assert_int_equal(env.s[0].q.qpn, env.s[1].q.qpn);
	assert_int_equal(env.s[0].mr->rkey, env.s[1].mr->rkey);
	return 0;
}

static int
teardown(void **st)
{
	const struct way *way = *st;
	struct stat file[2];
	unsigned int i;

	for (i = 0; i < 2; i++)
		side_close(&env.s[i]);
	rte_mempool_free(env.pool);
	for (i = 0; i < 2 && way->capture; i++) {
		assert_int_equal(stat(env.s[i].capture, &file[i]), 0);
		assert_int_equal(unlink(env.s[i].capture), 0);
	}
	/* The packets in the files cannot be compared, because the devices have different MACs. */
	if (way->capture)
		assert_int_equal(file[0].st_size, file[1].st_size);
	return 0;
}

/* Moves both QPs from any state to RTS, connected to one of two peers. */
static void
connect_both(void)
{
	unsigned int i;

	env.link = rig_link_default();
	/* No timers: the outcome depends on frames only. */
	env.link.timeout = 0;
	env.link.sq_psn = PSN;
	env.link.rq_psn = (PSN + dice(1000)) & BB_ROCE_PSN_MASK;
	env.peer.gid.raw[15] = (uint8_t)(2 + dice(2));
	for (i = 0; i < 2; i++) {
		rig_qp_reset(&env.s[i].q);
		rig_qp_up(&env.s[i].q, &env.peer, PEER_QPN, &env.link);
	}
}

#endif
