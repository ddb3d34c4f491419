/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Two software devices whose connected QPs exchange packets through two rings, as ethdevs. */
#ifndef RING_PAIR_ENV_H
#define RING_PAIR_ENV_H

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <rte_eth_ring.h>
#include <rte_ethdev.h>

#include "../soft_rig.h"

#define RINGS 256
#define MEM   16384u

struct side {
	struct rte_ring *in;
	uint16_t port;
	struct rig_dev d;
	struct rig_uar u;
	struct rig_cq c;
	struct rig_qp q;
	struct rig_mem m;
};

static struct side s[2];

static const struct rig_qp_attr attr = {.log_sq = 6, .log_rq = 4, .log_stride = 6};

/*
 * Creates the rings and their ethdevs once for the whole program. Returns false if there are
 * none.
 */
static bool
make_rings(void)
{
	uint32_t i;
	int port;

	for (i = 0; i < 2; i++) {
		s[i].in = rte_ring_create(i == 0 ? "in0" : "in1", RINGS, 0, 0);
		if (s[i].in == NULL)
			return false;
	}
	for (i = 0; i < 2; i++) {
		port = rte_eth_from_rings(i == 0 ? "pair0" : "pair1", &s[i].in, 1, &s[1 - i].in, 1,
					  0);
		if (port < 0)
			return false;
		s[i].port = (uint16_t)port;
	}
	return true;
}

/* Opens side @i. @more: further device options, "" or starting with a comma. */
static void
open_side(uint32_t i, const char *more)
{
	char name[RTE_ETH_NAME_MAX_LEN], args[256];

	memset(&s[i].d, 0, sizeof(s[i]) - offsetof(struct side, d));
	assert_int_equal(rte_eth_dev_get_name_by_port(s[i].port, name), 0);
	/*
	 * The rig's GID is the third of these addresses. soft_port_eth.c gives this MAC to a port
	 * without one.
	 */
	assert_true(snprintf(args, sizeof(args),
			     "port=%s,ip=198.51.100.1/24,ip=198.51.100.2/24,ip=192.0.2.%u/24,"
			     "neigh=192.0.2.%u@02:bb:00:01:00:%02x%s",
			     name, 1 + i, 2 - i, s[1 - i].port, more) < (int)sizeof(args));
	rig_dev_open(&s[i].d, i == 0 ? "soft0" : "soft1", args);
	rig_uar_open(&s[i].u, &s[i].d, MLX5_UAR_BF);
	rig_cq_open(&s[i].c, &s[i].u, 8);
	rig_qp_open(&s[i].q, &s[i].u, &s[i].c, &s[i].c, &attr);
	rig_mem_open(&s[i].m, &s[i].d, NULL, MEM, RIG_ALL);
}

static void
close_both(void)
{
	uint32_t i;
	void *m;

	for (i = 0; i < 2; i++) {
		rig_qp_close(&s[i].q);
		rig_cq_close(&s[i].c);
		rig_mem_close(&s[i].m);
		rig_uar_close(&s[i].u);
		rig_dev_close(&s[i].d);
	}
	for (i = 0; i < 2; i++)
		while (rte_ring_dequeue(s[i].in, &m) == 0)
			rte_pktmbuf_free(m);
}

#endif
