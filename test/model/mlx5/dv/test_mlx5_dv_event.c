/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Event channels of mlx5_cmd_dv_event.c. The kernel's state stays bounded while queues are made
 * and destroyed without end, and events of the remaining queues arrive, whichever channel they
 * use.
 */
#include "mlx5_dv_env.h"

#define ROUNDS 3000
/* Upper bound: two channels of 4096, and the subscriptions of one call. */
#define MOST (2 * 4096 + 64)

struct world {
	struct bb_dev *dev;
	struct bb_pd *pd;
	struct bb_cq *cq;
};

static void
world_open(struct world *w)
{
	struct bb_cq_attr attr;

	OK(bb_dev_open(SUBST_NAME, &w->dev));
	OK(bb_pd_alloc(w->dev, &w->pd));
	bb_cq_attr_init(&attr);
	attr.depth = 64;
	OK(bb_cq_create(w->dev, &attr, &w->cq));
}

static void
world_close(struct world *w)
{
	OK(bb_cq_destroy(w->cq));
	OK(bb_pd_free(w->pd));
	OK(bb_dev_close(w->dev));
	assert_int_equal(subst.subscriptions, 0);
}

static struct bb_qp *
qp_make(struct world *w)
{
	struct bb_qp_init_attr init;
	struct bb_qp *qp;

	bb_qp_init_attr_init(&init);
	init.sq_depth = 4;
	init.rq_depth = 4;
	init.send_cq = w->cq;
	init.recv_cq = w->cq;
	OK(bb_qp_create(w->pd, &init, &qp));
	return qp;
}

/*
 * Creates and destroys QPs for @rounds; returns the largest number of subscriptions that the
 * kernel held.
 */
static uint32_t
churn(struct world *w, uint32_t rounds)
{
	uint32_t most = 0;

	while (rounds-- != 0) {
		struct bb_qp *qp = qp_make(w);

		most = RTE_MAX(most, subst.subscriptions);
		OK(bb_qp_destroy(qp));
	}
	return most;
}

static void
expect_event(struct world *w, struct bb_qp *qp, uint64_t cookie)
{
	struct bb_event ev;

	subst_devx_event(cookie, BB_PRM_EVENT_WQ_CATAS_ERROR, 64);
	OK(bb_event_get(w->dev, &ev));
	assert_int_equal(ev.type, BB_EVENT_QP_FATAL);
	assert_ptr_equal(ev.qp, qp);
	assert_int_equal(bb_event_get(w->dev, &ev), -EAGAIN);
}

/* No path has an alternate path, so the library does not subscribe to path migration events. */
T(test_qp_subscribes_to_four_events)
{
	struct world w;
	struct bb_qp *qp;

	world_open(&w);
	assert_int_equal(subst.subscriptions, 1);
	qp = qp_make(&w);
	assert_int_equal(subst.subscriptions, 1 + 4);
	OK(bb_qp_destroy(qp));
	world_close(&w);
}

T(test_channels_stay_bounded)
{
	uint64_t old_cookie, new_cookie;
	struct bb_qp *old, *new;
	struct world w;

	world_open(&w);
	old = qp_make(&w);
	old_cookie = subst.cookie;
	assert_in_range(churn(&w, ROUNDS), 4096, MOST);
	/* The first channel stays open for its objects. */
	expect_event(&w, old, old_cookie);
	new = qp_make(&w);
	new_cookie = subst.cookie;
	expect_event(&w, new, new_cookie);
	expect_event(&w, old, old_cookie);
	OK(bb_qp_destroy(new));
	/* The channel is closed with the last of its objects. */
	OK(bb_qp_destroy(old));
	OK(bb_cq_destroy(w.cq));
	assert_in_range(subst.subscriptions, 0, 4096 + 64);
	OK(bb_pd_free(w.pd));
	OK(bb_dev_close(w.dev));
	assert_int_equal(subst.subscriptions, 0);
}

T(test_process_without_descriptors_keeps_its_channel)
{
	uint64_t cookie;
	struct bb_qp *qp;
	struct world w;

	world_open(&w);
	subst.no_channel = true;
	assert_true(churn(&w, ROUNDS / 2) > 4096 + 64);
	qp = qp_make(&w);
	cookie = subst.cookie;
	expect_event(&w, qp, cookie);
	subst.no_channel = false;
	churn(&w, 1);
	expect_event(&w, qp, cookie);
	OK(bb_qp_destroy(qp));
	OK(bb_cq_destroy(w.cq));
	assert_in_range(subst.subscriptions, 0, 64);
	OK(bb_pd_free(w.pd));
	OK(bb_dev_close(w.dev));
}

int
main(void)
{
	return run_group("mlx5_dv_event");
}
