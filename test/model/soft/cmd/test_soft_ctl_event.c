/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Events: which contexts get them, in what order, and which events are lost. */
#include "soft_ctl_env.h"

T(test_bad_event_subscriptions_are_refused)
{
	const uint16_t cq_type = BB_PRM_EVENT_CQ_ERROR, port = BB_PRM_EVENT_PORT_CHANGE;
	const uint16_t unknown = 0x7777, seventeen[17] = {0};
	/* One type that the capabilities do not name fails the whole call. */
	const uint16_t mig[] = {cq_type, BB_PRM_EVENT_PATH_MIG};
	struct mlx5_cmd_event event;
	struct mlx5_ctx *other;

	assert_int_equal(soft_cmd_if.event_get(env->ctx, &event), -EAGAIN);
	assert_int_equal(soft_cmd_if.event_subscribe(env->ctx, env->cq, &unknown, 1, 0), -EINVAL);
	assert_int_equal(soft_cmd_if.event_subscribe(env->ctx, env->cq, &port, 1, 0), -EINVAL);
	assert_int_equal(soft_cmd_if.event_subscribe(env->ctx, env->cq, mig, 2, 0), -EINVAL);
	assert_int_equal(soft_cmd_if.event_subscribe(env->ctx, NULL, &cq_type, 1, 0), -EINVAL);
	assert_int_equal(soft_cmd_if.event_subscribe(env->ctx, env->cq, seventeen, 17, 0), -EINVAL);
	assert_int_equal(soft_cmd_if.event_subscribe(env->ctx, env->cq, &cq_type, 0, 0), -EINVAL);
	assert_int_equal(soft_cmd_if.event_subscribe(env->ctx, env->cq, NULL, 1, 0), -EINVAL);
	OK(soft_cmd_if.open("soft0", NULL, &other));
	assert_int_equal(soft_cmd_if.event_subscribe(other, env->cq, &cq_type, 1, 0), -EINVAL);
	OK(soft_cmd_if.close(other));
	/* A refused call subscribes to no type. */
	soft_event_raise(env->dev, env->cq, cq_type);
	soft_event_raise(env->dev, NULL, port);
	assert_int_equal(soft_cmd_if.event_get(env->ctx, &event), -EAGAIN);
}

static void
expect_event(struct mlx5_ctx *ctx, uint16_t type, uint64_t cookie, uint32_t port)
{
	struct mlx5_cmd_event event;

	OK(soft_cmd_if.event_get(ctx, &event));
	assert_int_equal(event.type, type);
	assert_int_equal(event.cookie, cookie);
	assert_int_equal(event.port, port);
}

T(test_events_reach_their_subscribers_only)
{
	const uint16_t cq_type = BB_PRM_EVENT_CQ_ERROR, port_type = BB_PRM_EVENT_PORT_CHANGE;
	const uint16_t qp_types[] = {BB_PRM_EVENT_WQ_CATAS_ERROR, BB_PRM_EVENT_WQ_ACCESS_ERROR};
	struct mlx5_cmd_event event;
	struct mlx5_ctx *other;
	struct mlx5_port port;

	env_qp_to(env, BB_PRM_QP_RST);
	OK(soft_cmd_if.open("soft0", NULL, &other));
	OK(soft_cmd_if.event_subscribe(env->ctx, env->cq, &cq_type, 1, 11));
	OK(soft_cmd_if.event_subscribe(env->ctx, env->qp, qp_types, 2, 22));
	OK(soft_cmd_if.event_subscribe(env->ctx, NULL, &port_type, 1, 33));
	OK(soft_cmd_if.event_subscribe(other, NULL, &port_type, 1, 44));

	soft_event_raise(env->dev, env->qp, BB_PRM_EVENT_WQ_ACCESS_ERROR);
	soft_event_raise(env->dev, env->qp, BB_PRM_EVENT_WQ_INVAL_REQ_ERROR); /* not subscribed */
	/* another object's type */
	soft_event_raise(env->dev, env->cq, BB_PRM_EVENT_WQ_ACCESS_ERROR);
	soft_event_raise(env->dev, env->cq, BB_PRM_EVENT_CQ_ERROR);
	soft_dev_port_set(env->dev, false);
	expect_event(env->ctx, BB_PRM_EVENT_WQ_ACCESS_ERROR, 22, 0);
	expect_event(env->ctx, BB_PRM_EVENT_CQ_ERROR, 11, 0);
	expect_event(env->ctx, BB_PRM_EVENT_PORT_CHANGE, 33, 1);
	assert_int_equal(soft_cmd_if.event_get(env->ctx, &event), -EAGAIN);
	expect_event(other, BB_PRM_EVENT_PORT_CHANGE, 44, 1);
	assert_int_equal(soft_cmd_if.event_get(other, &event), -EAGAIN);
	OK(soft_cmd_if.port_query(env->ctx, 1, &port));
	assert_int_equal(port.state, BB_PORT_DOWN);
	soft_dev_port_set(env->dev, true);
	OK(soft_cmd_if.port_query(env->ctx, 1, &port));
	assert_int_equal(port.state, BB_PORT_ACTIVE);
	expect_event(env->ctx, BB_PRM_EVENT_PORT_CHANGE, 33, 1);
	expect_event(other, BB_PRM_EVENT_PORT_CHANGE, 44, 1);

	/* A fatal device error goes to every context, subscribed or not. */
	soft_event_raise(env->dev, NULL, MLX5_CMD_EVENT_DEV_FATAL);
	expect_event(env->ctx, MLX5_CMD_EVENT_DEV_FATAL, 0, 0);
	expect_event(other, MLX5_CMD_EVENT_DEV_FATAL, 0, 0);

	/* Subscriptions end with their object; a pending event stays. */
	soft_event_raise(env->dev, env->qp, BB_PRM_EVENT_WQ_CATAS_ERROR);
	env_qp_gone(env);
	expect_event(env->ctx, BB_PRM_EVENT_WQ_CATAS_ERROR, 22, 0);
	OK(soft_cmd_if.close(other));
	/* The first context's subscriptions still exist. */
	soft_dev_port_set(env->dev, true);
	expect_event(env->ctx, BB_PRM_EVENT_PORT_CHANGE, 33, 1);
}

static uint32_t
subs_of(struct env *env, struct mlx5_obj *obj)
{
	const struct soft_event_sub *sub;
	uint32_t n = 0;

	LIST_FOREACH(sub, soft_event_subs_of(env->dev, obj), link)
		n++;
	return n;
}

/*
 * An event and the destruction of an object visit the object's own subscriptions only. So their
 * cost does not depend on the number of objects.
 */
T(test_each_object_holds_its_own_subscriptions)
{
	const uint16_t qp_types[] = {BB_PRM_EVENT_WQ_CATAS_ERROR, BB_PRM_EVENT_WQ_ACCESS_ERROR};
	const uint16_t cq_type = BB_PRM_EVENT_CQ_ERROR;

	env_qp_to(env, BB_PRM_QP_RST);
	OK(soft_cmd_if.event_subscribe(env->ctx, env->cq, &cq_type, 1, 1));
	OK(soft_cmd_if.event_subscribe(env->ctx, env->qp, qp_types, 2, 2));
	assert_int_equal(subs_of(env, env->cq), 1);
	assert_int_equal(subs_of(env, env->qp), 2);
	assert_int_equal(subs_of(env, NULL), 0);
	env_qp_gone(env);
	assert_int_equal(subs_of(env, env->cq), 1);
}

T(test_lost_events_are_reported)
{
	const uint16_t type = BB_PRM_EVENT_CQ_ERROR;
	struct mlx5_cmd_event event;
	uint32_t i, round;

	OK(soft_cmd_if.event_subscribe(env->ctx, env->cq, &type, 1, 5));
	for (round = 0; round < 3; round++) {
		/* The start of the event ring moves between the rounds. */
		for (i = 0; i < SOFT_EVENT_QUEUE + 10 * round; i++)
			soft_event_raise(env->dev, env->cq, type);
		if (round > 0)
			assert_int_equal(soft_cmd_if.event_get(env->ctx, &event), -EOVERFLOW);
		for (i = 0; i < SOFT_EVENT_QUEUE; i++)
			expect_event(env->ctx, type, 5, 0);
		assert_int_equal(soft_cmd_if.event_get(env->ctx, &event), -EAGAIN);
		soft_event_raise(env->dev, env->cq, type);
		expect_event(env->ctx, type, 5, 0);
	}
}

TEST_MAIN(0)
