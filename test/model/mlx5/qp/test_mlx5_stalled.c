/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* A link that stops taking packets, in virtual time: the requests of each QP type still end. */
#include "../mlx5_env.h"

#define QKEY 0x1234u
#define MANY 100u

static void
stalled_open(struct env *e, enum bb_qp_type type, const char *fault)
{
	char spec[96];

	snprintf(spec, sizeof(spec), "soft0,wire=1,virtual_time,%s", fault);
	env_open_two(e, spec, NULL);
	e->init.type = type;
	e->init.sq_depth = 256;
	e->attr.timeout = 10;
	e->attr.retry_cnt = 3;
	env_qps(e);
}

static void
post(struct env *e, struct bb_ah *ah, uint32_t n)
{
	const struct bb_sge sge = sge_of(&e->a, 0, 8);
	uint32_t i;

	for (i = 0; i < n; i++) {
		if (ah != NULL)
			OK(bb_post_send_ud(e->a.qp, i, &sge, 1, ah, e->b.qp->qpn, QKEY,
					   BB_SEND_SIGNALED));
		else
			OK(bb_post_write(e->a.qp, i, &sge, 1, raddr_of(&e->b, 0), e->b.mr->rkey,
					 BB_SEND_SIGNALED));
	}
	bb_qp_ring(e->a.qp);
}

/* Expects @ok successes, then one completion with @status, then flush errors up to @n. */
static void
ends(struct env *e, uint32_t n, uint32_t ok, enum bb_wc_status status)
{
	struct bb_wc wc;
	uint32_t i;

	for (i = 0; i < n; i++) {
		env_poll(e, &e->a, &wc, 1);
		expect(&wc, e->a.qp, i,
		       i < ok    ? BB_WC_SUCCESS
		       : i == ok ? status
				 : BB_WC_WR_FLUSH_ERR);
	}
}

TEST(test_stalled_link_ends_rc_with_retry_exceeded)
{
	static const char *const faults[] = {"tx_full=1", "rx_full=1"};
	struct env e;
	uint32_t i, n;

	for (i = 0; i < RTE_DIM(faults); i++) {
		for (n = 1; n <= MANY; n += MANY - 1) {
			stalled_open(&e, BB_QPT_RC, faults[i]);
			connect_pair(e.a.qp, e.b.qp, &e.attr);
			post(&e, NULL, n);
			ends(&e, n, 0, BB_WC_RETRY_EXC_ERR);
			env_stop(&e);
		}
	}
}

/* UC and UD get no ACK: a packet without room in the link is dropped in the end. */
TEST(test_stalled_link_drops_packets_of_uc_and_ud)
{
	struct bb_path path = {.port = 1, .is_global = 1, .hop_limit = 64};
	struct bb_gid gid;
	struct bb_ah *ah;
	struct env e;

	stalled_open(&e, BB_QPT_UC, "rx_full=2");
	connect_pair(e.a.qp, e.b.qp, &e.attr);
	post(&e, NULL, MANY);
	ends(&e, MANY, MANY, BB_WC_SUCCESS);
	env_stop(&e);

	stalled_open(&e, BB_QPT_UD, "tx_full=2");
	OK(bb_gid_query(e.a.dev, 1, 0, &gid));
	memcpy(path.dgid, gid.raw, sizeof(path.dgid));
	OK(bb_qp_ud_up(e.a.qp, 1, 0, QKEY, 1));
	OK(bb_qp_ud_up(e.b.qp, 1, 0, QKEY, 1));
	OK(bb_ah_create(e.a.pd, &path, &ah));
	post(&e, ah, MANY);
	ends(&e, MANY, MANY, BB_WC_SUCCESS);
	OK(bb_ah_destroy(ah));
	env_stop(&e);
}

TEST_MAIN(env_eal_init("stalled"))
