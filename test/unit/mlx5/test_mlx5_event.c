/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Events: their translation, and that no event reaches a destroyed object. */
#include "../../fakes/log_catch.h"
#include "mlx5_fixture.h"

T_QP(test_no_event_gives_eagain)
{
	struct bb_event ev;

	assert_int_equal(bb_event_get(f->dev, &ev), -EAGAIN);
}

T_DEV(test_port_change_and_fatal_error_are_reported)
{
	struct bb_event ev;

	stub_event(BB_PRM_EVENT_PORT_CHANGE, 0, 1);
	stub_event(MLX5_CMD_EVENT_DEV_FATAL, 0, 0);
	assert_int_equal(bb_event_get(f->dev, &ev), 0);
	assert_fields(ev, type, BB_EVENT_PORT_CHANGE, port, 1);
	assert_int_equal(bb_event_get(f->dev, &ev), 0);
	assert_int_equal(ev.type, BB_EVENT_DEV_FATAL);
}

T_DEV(test_event_names_its_qp_or_cq)
{
	static const struct {
		uint16_t prm;
		enum bb_event_type type;
	} map[] = {
		{BB_PRM_EVENT_WQ_CATAS_ERROR, BB_EVENT_QP_FATAL},
		{BB_PRM_EVENT_WQ_ACCESS_ERROR, BB_EVENT_QP_ACCESS},
		{BB_PRM_EVENT_WQ_INVAL_REQ_ERROR, BB_EVENT_QP_REQUEST},
		{BB_PRM_EVENT_COMM_EST, BB_EVENT_QP_COMM_EST},
		{BB_PRM_EVENT_SRQ_LAST_WQE, BB_EVENT_SRQ_LAST_WQE},
	};
	struct bb_qp_init_attr init = DEFAULTS(qp_init_attr);
	struct bb_event ev;
	uint64_t cq_cookie;

	make_qp(f, &init);
	/* The QP subscribed last; the CQ is one slot before it. */
	cq_cookie = stub.cookie - 1;
	for (size_t i = 0; i < RTE_DIM(map); i++) {
		stub_event(map[i].prm, stub.cookie, 0);
		assert_int_equal(bb_event_get(f->dev, &ev), 0);
		assert_int_equal(ev.type, map[i].type);
		assert_ptr_equal(ev.qp, f->qp);
		assert_null(ev.cq);
	}
	stub_event(BB_PRM_EVENT_CQ_ERROR, cq_cookie, 0);
	assert_int_equal(bb_event_get(f->dev, &ev), 0);
	assert_int_equal(ev.type, BB_EVENT_CQ_ERROR);
	assert_ptr_equal(ev.cq, f->cq);
}

/*
 * Events of the wrong type for the object, of an unknown type, and with unknown cookies are
 * dropped.
 */
T_QP(test_events_that_do_not_fit_their_object_are_dropped)
{
	struct bb_event ev;

	stub_event(BB_PRM_EVENT_CQ_ERROR, stub.cookie, 0);
	stub_event(BB_PRM_EVENT_WQ_CATAS_ERROR, stub.cookie - 1, 0);
	stub_event(BB_PRM_EVENT_SRQ_RQ_LIMIT, stub.cookie, 0);
	stub_event(BB_PRM_EVENT_SRQ_CATAS_ERROR, stub.cookie, 0);
	stub_event(0x03, stub.cookie, 0);                  /* SQ drained: not subscribed by any
							    * queue */
	stub_event(BB_PRM_EVENT_PATH_MIG, stub.cookie, 0); /* no alternate paths */
	stub_event(BB_PRM_EVENT_WQ_CATAS_ERROR, 0, 0);
	stub_event(BB_PRM_EVENT_WQ_CATAS_ERROR, UINT64_MAX, 0);
	stub_event(BB_PRM_EVENT_WQ_CATAS_ERROR, stub.cookie | 0xffff, 0);
	stub_event(BB_PRM_EVENT_WQ_CATAS_ERROR, UINT64_C(1) << 32 | 64, 0); /* one past the slots */
	assert_int_equal(bb_event_get(f->dev, &ev), -EAGAIN);
}

T_QP(test_events_of_destroyed_objects_are_dropped)
{
	struct bb_qp_init_attr init = DEFAULTS(qp_init_attr);
	uint64_t old, last;
	struct bb_event ev;

	old = stub.cookie;
	assert_int_equal(bb_qp_destroy(f->qp), 0);
	stub_event(BB_PRM_EVENT_WQ_CATAS_ERROR, old, 0);
	assert_int_equal(bb_event_get(f->dev, &ev), -EAGAIN);

	/* The next QP reuses the slot, not the cookie. */
	init.send_cq = f->cq;
	init.recv_cq = f->cq;
	assert_int_equal(bb_qp_create(f->pd, &init, &f->qp), 0);
	last = stub.cookie;
	assert_int_equal((uint32_t)last, (uint32_t)old);
	assert_true(last != old);
	stub_event(BB_PRM_EVENT_WQ_CATAS_ERROR, old, 0);
	stub_event(BB_PRM_EVENT_WQ_CATAS_ERROR, last, 0);
	assert_int_equal(bb_event_get(f->dev, &ev), 0);
	assert_ptr_equal(ev.qp, f->qp);
	assert_int_equal(bb_event_get(f->dev, &ev), -EAGAIN);
}

/* A flood of stale events takes several calls to consume, not one endless call. */
T_QP(test_flood_of_stale_events_takes_several_calls)
{
	struct bb_event ev;
	unsigned int i;
	int ret;

	for (i = 0; i < 200; i++)
		stub_event(BB_PRM_EVENT_WQ_CATAS_ERROR, 77, 0);
	stub_event(BB_PRM_EVENT_WQ_ACCESS_ERROR, stub.cookie, 0);
	for (i = 0; i < 4; i++) {
		ret = bb_event_get(f->dev, &ev);
		if (ret == 0)
			break;
		assert_int_equal(ret, -EAGAIN);
	}
	assert_int_equal(ret, 0);
	assert_int_equal(i, 3);
	assert_int_equal(ev.type, BB_EVENT_QP_ACCESS);
}

T_F(test_device_without_events_is_logged_once)
{
	struct bb_qp_init_attr init = DEFAULTS(qp_init_attr);
	struct bb_event ev;

	stub.subscribe_errno = -EOPNOTSUPP;
	log_begin();
	open_dev(f);
	log_expect("reports no asynchronous events");
	assert_false(f->dev->attr.refusal_events);
	/* Logged once. */
	log_begin();
	make_qp(f, &init);
	log_expect(NULL);
	assert_int_equal(bb_event_get(f->dev, &ev), -EAGAIN);
}

/*
 * Only event types in event_cap are subscribed: one other type would fail the whole subscription.
 */
T_F(test_only_event_types_of_the_device_are_subscribed)
{
	const uint64_t catas = UINT64_C(1) << BB_PRM_EVENT_WQ_CATAS_ERROR;
	const uint64_t cq = UINT64_C(1) << BB_PRM_EVENT_CQ_ERROR;
	struct bb_qp_init_attr init = DEFAULTS(qp_init_attr);

	open_qp(f);
	assert_int_equal(stub.types, 1u << 2 | 1u << 5 | 1u << 16 | 1u << 17);
	close_dev(f);
	stub_reset();
	bb_prm_set(stub.general, BB_PRM_HCA_EVENT_CAP, 1);
	bb_prm_set64(stub.dev_event, BB_PRM_F(0, 0, 64), catas | cq);
	open_qp(f);
	assert_int_equal(stub.types, catas);
	close_dev(f);
	/* With no event type the objects are created without a subscription. */
	stub_reset();
	bb_prm_set(stub.general, BB_PRM_HCA_EVENT_CAP, 1);
	open_dev(f);
	stub.subscribe_errno = -EINVAL;
	make_qp(f, &init);
}

/* The program learns from the attributes and from one line in the log which events never come. */
T_F(test_events_that_the_device_lacks_are_reported_at_open)
{
	const uint64_t access = UINT64_C(1) << BB_PRM_EVENT_WQ_ACCESS_ERROR;
	const uint64_t request = UINT64_C(1) << BB_PRM_EVENT_WQ_INVAL_REQ_ERROR;
	const uint64_t last = UINT64_C(1) << BB_PRM_EVENT_SRQ_LAST_WQE;
	const struct {
		uint64_t lacks;
		bool refusal_events;
		const char *text;
	} cases[] = {
		{0, true, NULL},
		{access, false, "access"},
		{request, false, "request"},
		{access | request, false, ", "},
		{last, true, "SRQ"},
	};

	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		stub_reset();
		bb_prm_set(stub.general, BB_PRM_HCA_EVENT_CAP, 1);
		bb_prm_set64(stub.dev_event, BB_PRM_F(0, 0, 64), ~cases[i].lacks);
		log_begin();
		open_dev(f);
		log_expect(cases[i].text);
		assert_int_equal(f->dev->attr.refusal_events, cases[i].refusal_events);
		if (i + 1 < RTE_DIM(cases))
			close_dev(f);
	}
}

TEST_MAIN(stub_eal_init("mlx5_event"))
