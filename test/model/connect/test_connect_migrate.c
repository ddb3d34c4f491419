/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Requests that move from the CM of the listener to another CM, also to one of another thread. */
#include <pthread.h>

#include <rte_lcore.h>

#include "connect_env.h"

#define CYCLES 100u

/* cmocka's assertions work in the main thread only. */
#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			fprintf(stderr, "line %d: not so: %s\n", __LINE__, #what);                 \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

static struct pair p;
static struct end third; /* of the device of the listener */

static void
attr_init(struct bb_cm_attr *attr)
{
	bb_cm_attr_init(attr);
	attr->transport = BB_CM_IB;
	attr->poll_us = 0;
}

static int
setup(void **state)
{
	struct bb_cm_attr attr;

	(void)state;
	attr_init(&attr);
	pair_open_with(&p, "soft0", "soft1", &attr);
	attr.max_half_open = 2;
	end_open(&third, p.b.dev, &attr);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	end_close(&third);
	pair_close(&p);
	return 0;
}

/* Polls all CMs until that of @e has an event, and returns the event. */
static struct bb_cm_event
wait_event(struct end *e)
{
	const uint64_t end = wait_end();
	struct bb_cm_event ev;

	for (;;) {
		turn(&p);
		if (third.nev < EVENTS)
			third.nev += bb_cm_poll(third.cm, &third.ev[third.nev], 1);
		if (take(e, &ev))
			return ev;
		assert_true(rte_get_tsc_cycles() < end);
	}
}

/* Connects from p.a, and returns the request at the listener's CM. */
static struct bb_conn *
request(struct bb_qp **qp, struct bb_conn **c)
{
	struct bb_cm_event ev;

	*qp = end_qp(&p.a);
	p.a.param.private_data = "who is there";
	p.a.param.private_len = 12;
	OK(bb_conn_connect(p.a.cm, (struct sockaddr *)&p.addr, *qp, &p.a.param, c));
	ev = wait_event(&p.b);
	assert_int_equal(ev.type, BB_CM_CONNECT_REQUEST);
	return ev.conn;
}

TEST_WITH(setup, teardown, test_migrated_request_is_accepted_by_the_other_cm)
{
	struct bb_conn_info before, after;
	struct bb_qp *qa, *qb;
	struct bb_cm_event ev;
	struct bb_conn *a, *b;

	b = request(&qa, &a);
	bb_conn_query(b, &before);
	OK(bb_conn_migrate(b, third.cm));
	ev = wait_event(&third);
	assert_int_equal(ev.type, BB_CM_CONNECT_REQUEST);
	assert_null(ev.listener);
	assert_int_equal(ev.private_len, 56);
	assert_memory_equal(ev.private_data, "who is there", 12);
	bb_conn_query(ev.conn, &after);
	assert_string_equal(after.peer, before.peer);
	assert_int_equal(after.remote.qpn, qa->qpn);
	assert_int_equal(after.peer_initiator_depth, before.peer_initiator_depth);
	b = ev.conn;
	qb = end_qp(&third);
	OK(bb_conn_accept(b, qb, &third.param));
	assert_int_equal(wait_event(&p.a).type, BB_CM_ESTABLISHED);
	assert_int_equal(wait_event(&third).type, BB_CM_ESTABLISHED);
	OK(bb_conn_disconnect(a, NULL, 0));
	assert_int_equal(wait_event(&third).type, BB_CM_DISCONNECTED);
	assert_int_equal(wait_event(&p.a).type, BB_CM_DISCONNECTED);
	bb_conn_destroy(a);
	bb_conn_destroy(b);
	OK(bb_qp_destroy(qa));
	OK(bb_qp_destroy(qb));
}

TEST_WITH(setup, teardown, test_migrated_request_is_rejected_by_the_other_cm)
{
	struct bb_cm_event ev;
	struct bb_conn *a, *b;
	struct bb_qp *qa;

	b = request(&qa, &a);
	OK(bb_conn_migrate(b, third.cm));
	ev = wait_event(&third);
	OK(bb_conn_reject(ev.conn, "no", 2));
	bb_conn_destroy(ev.conn);
	ev = wait_event(&p.a);
	assert_int_equal(ev.type, BB_CM_REJECTED);
	assert_memory_equal(ev.private_data, "no", 2);
	bb_conn_destroy(a);
	OK(bb_qp_destroy(qa));
}

TEST_WITH(setup, teardown, test_requests_that_cannot_migrate_are_unchanged)
{
	struct bb_conn *a[4], *b[4];
	struct bb_qp *qp[4], *qb;
	struct bb_cm_event ev;

	b[0] = request(&qp[0], &a[0]);
	assert_int_equal(bb_conn_migrate(NULL, third.cm), -EINVAL);
	assert_int_equal(bb_conn_migrate(b[0], NULL), -EINVAL);
	assert_int_equal(bb_conn_migrate(b[0], p.b.cm), -EINVAL); /* its own */
	assert_int_equal(bb_conn_migrate(b[0], p.a.cm), -EINVAL); /* of another device */
	assert_int_equal(bb_conn_migrate(a[0], p.b.cm), -EINVAL); /* no request */
	qb = end_qp(&p.b);
	OK(bb_conn_accept(b[0], qb, &p.b.param));
	assert_int_equal(bb_conn_migrate(b[0], third.cm), -EINVAL); /* answered */
	assert_int_equal(wait_event(&p.a).type, BB_CM_ESTABLISHED);
	assert_int_equal(wait_event(&p.b).type, BB_CM_ESTABLISHED);
	bb_conn_destroy(a[0]);
	bb_conn_destroy(b[0]);
	OK(bb_qp_destroy(qp[0]));
	OK(bb_qp_destroy(qb));
	/* max_half_open is 2, and nothing polls the third CM. */
	for (uint32_t i = 1; i < 4; i++) {
		qp[i] = end_qp(&p.a);
		OK(bb_conn_connect(p.a.cm, (struct sockaddr *)&p.addr, qp[i], &p.a.param, &a[i]));
		do
			turn(&p);
		while (!take(&p.b, &ev));
		b[i] = ev.conn;
		assert_int_equal(bb_conn_migrate(b[i], third.cm), i < 3 ? 0 : -ENOSPC);
	}
	OK(bb_conn_reject(b[3], NULL, 0));
	bb_conn_destroy(b[3]);
	for (uint32_t i = 1; i < 3; i++) {
		ev = wait_event(&third);
		OK(bb_conn_reject(ev.conn, NULL, 0));
		bb_conn_destroy(ev.conn);
	}
	for (uint32_t i = 1; i < 4; i++) {
		assert_int_equal(wait_event(&p.a).type, BB_CM_REJECTED);
		bb_conn_destroy(a[i]);
		OK(bb_qp_destroy(qp[i]));
	}
}

TEST_WITH(setup, teardown, test_peer_that_gives_up_before_the_other_cm_polls_leaves_nothing)
{
	struct bb_cm_stats stats;
	struct bb_conn *a, *b;
	struct bb_qp *qa;
	uint64_t end;

	/* The cancellation arrives after the move. */
	b = request(&qa, &a);
	OK(bb_conn_migrate(b, third.cm));
	bb_conn_destroy(a);
	for (uint32_t i = 0; i < 100; i++)
		turn(&p);
	end = wait_end();
	do {
		struct bb_cm_event ev;

		/* The request, or its end if that came first. */
		if (bb_cm_poll(third.cm, &ev, 1) == 1)
			bb_conn_destroy(ev.conn);
		turn(&p);
		bb_cm_stats(third.cm, &stats);
		assert_true(rte_get_tsc_cycles() < end);
	} while (stats.conns != 0 || stats.half_open != 0);
	OK(bb_qp_destroy(qa));
	/* The cancellation arrives before the move. */
	b = request(&qa, &a);
	bb_conn_destroy(a);
	for (uint32_t i = 0; i < 100; i++)
		bb_dev_progress(p.a.dev);
	for (uint32_t i = 0; i < 100 && p.b.nev == 0; i++)
		turn(&p);
	assert_int_equal(bb_conn_migrate(b, third.cm), -ENOTCONN);
	bb_conn_destroy(b);
	p.b.nev = 0;
	OK(bb_qp_destroy(qa));
}

TEST_WITH(setup, teardown, test_migrated_request_is_rejected_when_the_other_cm_is_destroyed)
{
	struct bb_conn *a, *b;
	struct bb_cm_attr attr;
	struct bb_qp *qa;
	struct end last;

	attr_init(&attr);
	end_open(&last, p.b.dev, &attr);
	b = request(&qa, &a);
	OK(bb_conn_migrate(b, last.cm));
	end_close(&last); /* nothing has polled its CM */
	assert_int_equal(wait_event(&p.a).type, BB_CM_REJECTED);
	bb_conn_destroy(a);
	OK(bb_qp_destroy(qa));
}

/* ---- Another thread */

/* EAL's heap has a lock that ThreadSanitizer does not see. This one orders the uses of the heap. */
static pthread_mutex_t heap = PTHREAD_MUTEX_INITIALIZER;
static struct bb_cm *worker_cm; /* accessed with __atomic */
static bool done;

static struct bb_qp *
qp_create(struct end *e)
{
	struct bb_qp *qp;

	pthread_mutex_lock(&heap);
	qp = end_qp(e);
	pthread_mutex_unlock(&heap);
	return qp;
}

static void
qp_destroy(struct bb_qp *qp)
{
	pthread_mutex_lock(&heap);
	OK(bb_qp_destroy(qp));
	pthread_mutex_unlock(&heap);
}

/* Accepts the requests that migrate to its CM, until the peer has disconnected all of them. */
static void *
work(void *arg)
{
	struct bb_dev *dev = arg;
	struct bb_conn_info info;
	uint32_t up = 0, down = 0;
	struct bb_cm_event ev;
	struct bb_cm_attr attr;
	struct end e;

	CHECK(rte_thread_register() == 0);
	attr_init(&attr);
	pthread_mutex_lock(&heap);
	end_open(&e, dev, &attr);
	pthread_mutex_unlock(&heap);
	__atomic_store_n(&worker_cm, e.cm, __ATOMIC_RELEASE);
	while (down < CYCLES) {
		bb_dev_progress(dev);
		if (bb_cm_poll(e.cm, &ev, 1) == 0)
			continue;
		if (ev.type == BB_CM_CONNECT_REQUEST) {
			CHECK(ev.listener == NULL);
			OK(bb_conn_accept(ev.conn, qp_create(&e), &e.param));
		} else if (ev.type == BB_CM_ESTABLISHED) {
			up++;
		} else {
			CHECK(ev.type == BB_CM_DISCONNECTED && ev.status == 0);
			down++;
			bb_conn_query(ev.conn, &info);
			bb_conn_destroy(ev.conn);
			qp_destroy(info.qp);
		}
	}
	CHECK(up == CYCLES);
	__atomic_store_n(&done, true, __ATOMIC_RELEASE);
	pthread_mutex_lock(&heap);
	end_close(&e);
	pthread_mutex_unlock(&heap);
	rte_thread_unregister();
	return NULL;
}

TEST_WITH(setup, teardown, test_requests_migrate_to_the_cm_of_another_thread)
{
	struct bb_cm_event ev;
	struct bb_conn *a;
	struct bb_cm *to;
	pthread_t thread;
	struct bb_qp *qa;
	uint64_t end;

	CHECK(pthread_create(&thread, NULL, work, p.b.dev) == 0);
	do
		to = __atomic_load_n(&worker_cm, __ATOMIC_ACQUIRE);
	while (to == NULL);
	for (uint32_t i = 0; i < CYCLES; i++) {
		qa = qp_create(&p.a);
		OK(bb_conn_connect(p.a.cm, (struct sockaddr *)&p.addr, qa, &p.a.param, &a));
		ev = wait_event(&p.b);
		CHECK(ev.type == BB_CM_CONNECT_REQUEST);
		OK(bb_conn_migrate(ev.conn, to));
		CHECK(wait_event(&p.a).type == BB_CM_ESTABLISHED);
		OK(bb_conn_disconnect(a, NULL, 0));
		CHECK(wait_event(&p.a).type == BB_CM_DISCONNECTED);
		bb_conn_destroy(a);
		qp_destroy(qa);
	}
	end = wait_end();
	while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE)) {
		turn(&p);
		CHECK(rte_get_tsc_cycles() < end);
	}
	CHECK(pthread_join(thread, NULL) == 0);
}

TEST_MAIN(bare_eal_init() < 0 ? 1 : 0)
