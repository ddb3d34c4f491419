/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* DEVX at the device node: commands to queues of verbs, and events. */
#include "bb_prm.h"
#include "soft_ctl.h"
#include "uverbs_program.h"
#include "uverbs_queue.h"

#define NO_DATA MLX5_IB_UAPI_DEVX_CR_EV_CH_FLAGS_OMIT_DATA

struct world {
	struct node n;
	uint64_t page;
	uint32_t cq; /* handle */
	const struct uverbs_queue *q;
	struct soft_dev *dev;
};

static void
world_open(struct world *w)
{
	node_open(&w->n, "");
	get_context(&w->n);
	(void)alloc_uar(&w->n, &w->page);
	w->cq = create_cq(&w->n, w->page);
	w->q = uverbs_find(w->n.file, UV_CQ, w->cq);
	assert_non_null(w->q);
	w->dev = soft_ctx(w->n.file->soft)->dev;
}

static void
world_close(struct world *w)
{
	assert_int_equal(destroy_cq(&w->n, w->cq), 0);
	assert_int_equal(free_uar(&w->n, uar_handle), 0);
	node_close(&w->n);
}

/* ---- Commands */

/* Sets the moderation of the CQ @cqn by the object @handle. Returns 0 or an errno. */
static int
moderate(struct world *w, uint32_t handle, uint32_t cqn)
{
	uint8_t in[BB_PRM_SZ_MODIFY_CQ_IN] = {0}, out[BB_PRM_SZ_SHORT];
	const struct ib_uverbs_attr attrs[3] = {
		{.attr_id = MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE, .data = handle},
		{.attr_id = MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN,
		 .len = sizeof(in),
		 .data = (uintptr_t)in},
		{.attr_id = MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT,
		 .len = sizeof(out),
		 .data = (uintptr_t)out}};
	union method m = {.room = {0}};

	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_MODIFY_CQ);
	bb_prm_set(in, BB_PRM_MODIFY_CQ_CQN, cqn);
	bb_prm_set(in, BB_PRM_MODIFY_CQ_FIELD_SELECT, BB_PRM_CQ_MODIFY_COUNT);
	/* The kernel sets cq_umem_valid. */
	bb_prm_set(in, BB_PRM_CREATE_CQ_UMEM_ID, w->q->ring->id);
	bb_prm_set64(in, BB_PRM_CREATE_CQ_UMEM_OFFSET, w->q->ring_at);
	bb_prm_set(bb_prm_sub(in, BB_PRM_MODIFY_CQ_CQC), BB_PRM_CQC_CQ_MAX_COUNT, 3);
	method(&m, MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_MODIFY, 3);
	memcpy(m.h.attrs, attrs, sizeof(attrs));
	return uverbs_ioctl(w->n.file, &m.h);
}

/* mlx5dv_devx_cq_modify() and mlx5dv_devx_qp_modify() name a queue of verbs by its handle. */
TEST(test_command_changes_queue_of_verbs)
{
	static struct world w;

	world_open(&w);
	assert_int_equal(moderate(&w, w.cq, w.q->num), 0);
	assert_int_equal(w.dev->cqs[w.q->num]->mod_count, 3);
	/* The number in the command must be that of the object. */
	assert_int_equal(moderate(&w, w.cq, w.q->num + 1), EINVAL);
	assert_int_equal(moderate(&w, w.cq + 1, w.q->num), EINVAL);
	/* A UAR is not an object of commands. */
	assert_int_equal(moderate(&w, (uint32_t)uar_handle, w.q->num), EINVAL);
	world_close(&w);
}

/* ---- Events */

/* @flags: 0 for events with data. */
static struct uverbs_events *
event_file(struct node *n, uint64_t flags)
{
	union method m = {.room = {0}};

	method(&m, MLX5_IB_OBJECT_DEVX_ASYNC_EVENT_FD, MLX5_IB_METHOD_DEVX_ASYNC_EVENT_FD_ALLOC, 2);
	m.h.attrs[0].attr_id = MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_HANDLE;
	m.h.attrs[1] = (struct ib_uverbs_attr){
		.attr_id = MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_FLAGS, .len = 8, .data = flags};
	assert_int_equal(uverbs_ioctl(n->file, &m.h), 0);
	assert_int_equal(fcntl(n->events_fd, F_SETFL, O_NONBLOCK), 0);
	return n->events;
}

static int
subscribe_to(struct world *w, struct uverbs_events *ev, struct mlx5_obj *obj, const uint16_t *types,
	     unsigned int n, uint64_t cookie)
{
	int ret;

	pthread_mutex_lock(&w->n.file->lock);
	ret = uverbs_subscribe(w->n.file, ev, obj, types, n, cookie);
	pthread_mutex_unlock(&w->n.file->lock);
	return ret;
}

static int
subscribe(struct world *w, struct uverbs_events *ev, const uint16_t *types, unsigned int n,
	  uint64_t cookie)
{
	return subscribe_to(w, ev, w->q->obj, types, n, cookie);
}

static bool
readable(const struct node *n)
{
	struct pollfd p = {.fd = n->events_fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

static void
expect(struct node *n, struct uverbs_events *ev, uint64_t want)
{
	uint64_t cookie = 0;

	assert_true(readable(n));
	assert_int_equal(uverbs_events_read(ev, &cookie, sizeof(cookie)), sizeof(cookie));
	assert_int_equal(cookie, want);
}

static void
expect_none(struct node *n, struct uverbs_events *ev)
{
	uint64_t cookie;

	assert_false(readable(n));
	assert_int_equal(uverbs_events_read(ev, &cookie, sizeof(cookie)), -EAGAIN);
}

/*
 * A file of events without data takes every type of event, completions included. A read returns the
 * cookie of a subscription, once for all its events of a type.
 */
TEST(test_events_without_data_are_pending_once)
{
	static const uint16_t both[] = {BB_PRM_EVENT_COMP, BB_PRM_EVENT_CQ_ERROR};
	static const uint16_t last[] = {BB_PRM_EVENT_SRQ_LAST_WQE};
	static const uint16_t bad[] = {BB_PRM_EVENT_CQ_ERROR, BB_PRM_EVENT_PORT_CHANGE};
	static struct world w;
	struct uverbs_events *ev;
	struct soft_cq *cq;

	world_open(&w);
	cq = w.dev->cqs[w.q->num];
	ev = event_file(&w.n, NO_DATA);
	assert_int_equal(subscribe(&w, ev, both, 0, 7), EINVAL);
	assert_int_equal(subscribe(&w, ev, bad, 2, 9), EINVAL);
	assert_int_equal(subscribe(&w, ev, both, 2, 7), 0);
	assert_int_equal(subscribe(&w, ev, last, 1, 8), 0);
	expect_none(&w.n, ev);

	soft_event_raise(w.dev, w.q->obj, BB_PRM_EVENT_CQ_ERROR);
	soft_event_raise(w.dev, w.q->obj, BB_PRM_EVENT_CQ_ERROR);
	soft_event_raise(w.dev, w.q->obj, BB_PRM_EVENT_SRQ_LAST_WQE);
	expect(&w.n, ev, 7);
	expect(&w.n, ev, 8);
	expect_none(&w.n, ev);

	/* The descriptor stays readable until completions and other events are read. */
	soft_channel_fire(w.dev, cq);
	soft_event_raise(w.dev, w.q->obj, BB_PRM_EVENT_SRQ_LAST_WQE);
	expect(&w.n, ev, 8);
	soft_event_raise(w.dev, w.q->obj, BB_PRM_EVENT_SRQ_LAST_WQE);
	soft_channel_fire(w.dev, cq);
	expect(&w.n, ev, 8);
	expect(&w.n, ev, 7);
	expect_none(&w.n, ev);

	/* Pending events end with their object. */
	soft_event_raise(w.dev, w.q->obj, BB_PRM_EVENT_CQ_ERROR);
	soft_event_raise(w.dev, w.q->obj, BB_PRM_EVENT_SRQ_LAST_WQE);
	soft_channel_fire(w.dev, cq);
	uverbs_unsubscribe(w.n.file, w.q->obj);
	expect(&w.n, ev, 7);
	expect_none(&w.n, ev);
	world_close(&w);
}

/* The device, not an object, raises these events. It raises completions for objects only. */
TEST(test_events_of_the_device_without_data)
{
	static const uint16_t port[] = {BB_PRM_EVENT_PORT_CHANGE};
	static const uint16_t bad[] = {BB_PRM_EVENT_PORT_CHANGE, BB_PRM_EVENT_COMP};
	static struct world w;
	struct uverbs_events *ev;

	world_open(&w);
	ev = event_file(&w.n, NO_DATA);
	assert_int_equal(subscribe_to(&w, ev, NULL, bad, 2, 7), EINVAL);
	assert_int_equal(subscribe_to(&w, ev, NULL, bad + 1, 1, 7), EINVAL);
	assert_int_equal(subscribe_to(&w, ev, NULL, port, 1, 7), 0);
	soft_event_raise(w.dev, NULL, BB_PRM_EVENT_PORT_CHANGE);
	expect(&w.n, ev, 7);
	expect_none(&w.n, ev);
	world_close(&w);
}

/* The device goes on to raise the events of a closed file, so the next file takes them over. */
TEST(test_closed_files_leave_no_subscriptions_behind)
{
	static const uint16_t port[] = {BB_PRM_EVENT_PORT_CHANGE};
	static const uint16_t error[] = {BB_PRM_EVENT_CQ_ERROR};
	static const uint16_t unknown[] = {BB_PRM_EVENT_PORT_CHANGE + 64};
	static struct world w;
	struct uverbs_events *ev;
	int i;

	world_open(&w);
	for (i = 0;; i++) {
		ev = event_file(&w.n, NO_DATA);
		assert_int_equal(subscribe_to(&w, ev, NULL, unknown, 1, 7), EINVAL);
		assert_int_equal(subscribe_to(&w, ev, NULL, port, 1, 7), 0);
		assert_int_equal(subscribe(&w, ev, error, 1, 8), 0);
		soft_event_raise(w.dev, NULL, BB_PRM_EVENT_PORT_CHANGE);
		expect(&w.n, ev, 7);
		soft_event_raise(w.dev, w.q->obj, BB_PRM_EVENT_CQ_ERROR);
		if (i == 100)
			break;
		events_close(&w.n, w.n.n - 1);
	}
	assert_int_equal(w.n.file->n_subs, 64);
	expect(&w.n, ev, 8);
	expect_none(&w.n, ev);
	world_close(&w);
}

static int
refuse(struct mlx5_channel *ch, struct mlx5_obj *cq, uint64_t cookie)
{
	(void)ch, (void)cq, (void)cookie;
	return -ENOMEM;
}

/* The device has no memory for the completions, after it has accepted the other events. */
TEST(test_failed_subscription_delivers_nothing)
{
	static const uint16_t both[] = {BB_PRM_EVENT_COMP, BB_PRM_EVENT_CQ_ERROR};
	static struct world w;
	struct uverbs_events *ev;
	struct mlx5_cmd_if refusing;
	const struct mlx5_cmd_if *cmd;

	world_open(&w);
	ev = event_file(&w.n, NO_DATA);
	cmd = w.n.file->soft->cmd;
	refusing = *cmd;
	refusing.channel_subscribe = refuse;
	w.n.file->soft->cmd = &refusing;
	assert_int_equal(subscribe(&w, ev, both, 2, 7), ENOMEM);
	w.n.file->soft->cmd = cmd;
	soft_event_raise(w.dev, w.q->obj, BB_PRM_EVENT_CQ_ERROR);
	expect_none(&w.n, ev);
	/* The next subscription is not mixed up with the failed one. */
	assert_int_equal(subscribe(&w, ev, both, 2, 8), 0);
	soft_event_raise(w.dev, w.q->obj, BB_PRM_EVENT_CQ_ERROR);
	expect(&w.n, ev, 8);
	expect_none(&w.n, ev);
	world_close(&w);
}

/* ---- Events with data */

/* The kernel's struct mlx5_ib_uapi_devx_async_event_hdr and an EQE. */
#define EVENT (8 + 64)

static void
expect_data(struct uverbs_events *ev, uint64_t want)
{
	uint8_t event[EVENT + 1];
	uint64_t cookie;

	assert_int_equal(uverbs_events_read(ev, event, sizeof(event)), EVENT);
	memcpy(&cookie, event, sizeof(cookie));
	assert_int_equal(cookie, want);
	assert_int_equal(event[8 + 1], BB_PRM_EVENT_CQ_ERROR);
}

/* As in devx_async_event_read() of Linux, a read of too few bytes takes no event. */
TEST(test_event_with_data_is_read_whole)
{
	static const uint16_t types[] = {BB_PRM_EVENT_CQ_ERROR};
	static struct world w;
	struct uverbs_events *ev;
	uint8_t event[EVENT];

	world_open(&w);
	ev = event_file(&w.n, 0);
	assert_int_equal(subscribe(&w, ev, types, 1, 7), 0);
	assert_int_equal(uverbs_events_read(ev, event, EVENT), -EAGAIN);
	soft_event_raise(w.dev, w.q->obj, BB_PRM_EVENT_CQ_ERROR);
	assert_int_equal(uverbs_events_read(ev, event, EVENT - 1), -EINVAL);
	assert_true(readable(&w.n));
	expect_data(ev, 7);
	assert_false(readable(&w.n));
	assert_int_equal(uverbs_events_read(ev, event, EVENT), -EAGAIN);
	world_close(&w);
}

/* A read reports lost events before those that were kept, once. */
TEST(test_lost_events_are_reported)
{
	static const uint16_t types[] = {BB_PRM_EVENT_CQ_ERROR};
	static struct world w;
	struct uverbs_events *ev;
	uint8_t event[EVENT];
	int i;

	world_open(&w);
	ev = event_file(&w.n, 0);
	assert_int_equal(subscribe(&w, ev, types, 1, 7), 0);
	for (i = 0; i < UVERBS_MAX_EVENTS; i++)
		soft_event_raise(w.dev, w.q->obj, BB_PRM_EVENT_CQ_ERROR);
	expect_data(ev, 7);
	soft_event_raise(w.dev, w.q->obj, BB_PRM_EVENT_CQ_ERROR);
	for (int lost = 0; lost < 2; lost++)
		soft_event_raise(w.dev, w.q->obj, BB_PRM_EVENT_CQ_ERROR);
	assert_int_equal(uverbs_events_read(ev, event, EVENT), -EOVERFLOW);
	for (i = 0; i < UVERBS_MAX_EVENTS; i++)
		expect_data(ev, 7);
	assert_int_equal(uverbs_events_read(ev, event, EVENT), -EAGAIN);
	world_close(&w);
}

/* The device reports each refused call. */
static int
quiet(void)
{
	rte_log_set_global_level(RTE_LOG_CRIT);
	return 0;
}

TEST_MAIN(quiet())
