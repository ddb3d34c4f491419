/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A CQ that overruns. The library leaves room for every completion of its own queues, so the test
 * uses a raw queue: a QP made by mailboxes on the same context. It completes into the library's
 * CQ, and the library does not know it.
 */
#include "../../soft/soft_rig.h"
#include "cq_env.h"

#include "bb_core.h"
#include "mlx5.h"

#define DEPTH    64u
#define KNOWN    60u
#define RAW_UIDX 0x123456u /* belongs to no QP of the library */

/* The library's objects as the rig needs them. */
struct raw {
	struct rig_dev dev;
	struct rig_uar uar;
	struct rig_cq cq;
	struct rig_qp qp;
};

static void
raw_open(struct raw *r, struct side *s)
{
	const struct mlx5_cq *cq = s->cq->ctrl->priv;
	struct rig_qp_attr attr = {.log_sq = 6, .no_rq = true, .uidx = RAW_UIDX};
	struct rig_link link = rig_link_default();
	struct mlx5_av av;

	memset(r, 0, sizeof(*r));
	r->dev.ctx = mlx5_dev_of(s->dev)->ctx;
	r->dev.pd = s->pd->priv;
	r->dev.gid_index = 1;
	OK(soft_cmd_if.gid_query(r->dev.ctx, 1, 1, &r->dev.gid));
	OK(soft_cmd_if.av_resolve(r->dev.ctx, r->dev.pd, 1, 1, r->dev.gid.raw, &av));
	memcpy(r->dev.mac, av.dmac, sizeof(r->dev.mac));
	rig_uar_open(&r->uar, &r->dev, MLX5_UAR_NC);
	r->cq.d = &r->dev;
	r->cq.cqn = cq->cqn;
	rig_qp_open(&r->qp, &r->uar, &r->cq, &r->cq, &attr);
	rig_connect(&r->qp, &r->qp, &link);
}

static void
raw_close(struct raw *r)
{
	rig_qp_close(&r->qp);
	rig_uar_close(&r->uar);
}

static void
raw_nops(struct raw *r, unsigned int n)
{
	while (n-- > 0)
		rig_nop(&r->qp, RIG_CQE);
	rig_ring(&r->qp);
}

static void
start(struct env *e, struct bb_cq_attr *attr)
{
	env_open(e);
	bb_cq_attr_init(attr);
	attr->depth = DEPTH;
	OK(bb_cq_destroy(e->a.cq));
	OK(bb_cq_create(e->a.dev, attr, &e->a.cq));
	e->init.sq_depth = DEPTH;
	e->init.rq_depth = 0;
	env_up(e);
}

/* Fills the CQ to the last entry: CQEs of unknown QPs are dropped, and the CQ works on. */
TEST(test_full_cq_drops_completions_of_unknown_qps)
{
	struct bb_wc wc[DEPTH];
	struct bb_cq_attr attr;
	struct env e;
	struct raw r;
	unsigned int i;

	start(&e, &attr);
	raw_open(&r, &e.a);
	write_some(&e, 0, KNOWN);
	wait_unread(&e, e.a.cq, KNOWN);
	raw_nops(&r, DEPTH - KNOWN);
	rig_polls(&r.uar, 4);
	wait_unread(&e, e.a.cq, DEPTH);
	env_poll(&e, &e.a, wc, KNOWN);
	for (i = 0; i < KNOWN; i++)
		expect(&wc[i], e.a.qp, i, BB_WC_SUCCESS);
	env_silent(&e, &e.a);
	assert_int_equal(e.a.cq->ctrl->purged, DEPTH - KNOWN);
	write_some(&e, 100, KNOWN);
	env_poll(&e, &e.a, wc, KNOWN);
	raw_close(&r);
	env_stop(&e);
}

/*
 * One CQE more overruns the CQ. An event names the CQ, its CQEs can still be read, and its QPs
 * fail. A new CQ with new QPs works.
 */
TEST(test_overrun_cq_is_reported_and_can_be_rebuilt)
{
	struct bb_wc wc[DEPTH];
	struct bb_qp *second = NULL;
	bool cq_error = false;
	struct bb_cq_attr attr;
	struct bb_event ev;
	struct env e;
	struct raw r;
	uint64_t end;
	unsigned int i;

	start(&e, &attr);
	/* The library itself leaves no room to overrun the CQ. */
	e.init.send_cq = e.a.cq;
	assert_int_equal(bb_qp_create(e.a.pd, &e.init, &second), -ENOSPC);
	raw_open(&r, &e.a);
	write_some(&e, 0, KNOWN);
	wait_unread(&e, e.a.cq, KNOWN);
	raw_nops(&r, DEPTH - KNOWN + 1);
	end = rte_get_timer_cycles() + ENV_WAIT_S * rte_get_timer_hz();
	while (!cq_error && rte_get_timer_cycles() < end) {
		rig_poll(&r.uar);
		bb_dev_progress(e.a.dev);
		if (bb_event_get(e.a.dev, &ev) != 0)
			continue;
		cq_error = ev.type == BB_EVENT_CQ_ERROR;
		if (cq_error)
			assert_ptr_equal(ev.cq, e.a.cq);
	}
	assert_true(cq_error);
	assert_int_equal(rig_qp_state(&r.qp), BB_PRM_QP_ERR);
	/* The CQEs in the ring can still be read; after them no CQE arrives. */
	env_poll(&e, &e.a, wc, KNOWN);
	for (i = 0; i < KNOWN; i++)
		expect(&wc[i], e.a.qp, i, BB_WC_SUCCESS);
	env_silent(&e, &e.a);
	assert_int_equal(e.a.cq->ctrl->purged, DEPTH - KNOWN);
	write_some(&e, 80, 1);
	env_silent(&e, &e.a);
	/* A CQ in error cannot be resized; it must be rebuilt with its QPs. */
	assert_int_equal(bb_cq_resize(e.a.cq, 1024), -EINVAL);
	raw_close(&r);
	OK(bb_qp_destroy(e.a.qp));
	OK(bb_qp_destroy(e.b.qp));
	OK(bb_cq_destroy(e.a.cq));
	OK(bb_cq_create(e.a.dev, &attr, &e.a.cq));
	env_up(&e);
	write_some(&e, 100, KNOWN);
	env_poll(&e, &e.a, wc, KNOWN);
	for (i = 0; i < KNOWN; i++)
		expect(&wc[i], e.a.qp, 100 + i, BB_WC_SUCCESS);
	env_stop(&e);
}

TEST_MAIN(env_eal_init("cq_overrun"))
