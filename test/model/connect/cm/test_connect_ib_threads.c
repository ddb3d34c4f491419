/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Two CMs of one device in two threads, by BB_CM_IB: they share QP1 and its engine. Each thread
 * polls only its own CM and queues, so each also receives messages for the other.
 */
#include <pthread.h>

#include <rte_lcore.h>

#include "connect_env.h"

#define CYCLES 200u

/* cmocka's assertions work in the main thread only. */
#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			fprintf(stderr, "line %d: not so: %s\n", __LINE__, #what);                 \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

static struct bb_dev *dev;
static struct sockaddr_storage addr;
static bool listening, done;

/* EAL's heap has a lock that ThreadSanitizer does not see. This one orders the uses of the heap. */
static pthread_mutex_t heap = PTHREAD_MUTEX_INITIALIZER;

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

/* Polls the CM of @e until it has an event, and returns the event. */
static struct bb_cm_event
next_event(struct end *e)
{
	const uint64_t end = wait_end();
	struct bb_cm_event ev;

	do {
		bb_dev_progress(dev);
		CHECK(rte_get_tsc_cycles() < end);
	} while (bb_cm_poll(e->cm, &ev, 1) == 0);
	return ev;
}

static void
attr_init(struct bb_cm_attr *attr)
{
	bb_cm_attr_init(attr);
	attr->transport = BB_CM_IB;
	attr->poll_us = 0;
}

/* Handles events until CYCLES connections were accepted and have ended. */
static void
accept_all(struct end *e)
{
	uint32_t up = 0, down = 0;
	struct bb_conn_info info;
	struct bb_cm_event ev;

	while (down < CYCLES) {
		ev = next_event(e);
		switch (ev.type) {
		case BB_CM_CONNECT_REQUEST:
			OK(bb_conn_accept(ev.conn, qp_create(e), &e->param));
			break;
		case BB_CM_ESTABLISHED:
			up++;
			break;
		default:
			CHECK(ev.type == BB_CM_DISCONNECTED && ev.status == 0);
			down++;
			bb_conn_query(ev.conn, &info);
			bb_conn_destroy(ev.conn);
			qp_destroy(info.qp);
		}
	}
	CHECK(up == CYCLES);
}

static void *
serve(void *arg)
{
	struct bb_listener *l = NULL;
	struct bb_cm_event ev;
	struct bb_cm_attr attr;
	struct end e;

	(void)arg;
	CHECK(rte_thread_register() == 0);
	attr_init(&attr);
	end_open(&e, dev, &attr);
	OK(bb_listener_create(e.cm, (struct sockaddr *)&addr, &l));
	((struct sockaddr_in *)&addr)->sin_port = htons(bb_listener_port(l));
	__atomic_store_n(&listening, true, __ATOMIC_RELEASE);
	accept_all(&e);
	/* Keeps serving QP1 until the peer has its last event. */
	while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE))
		CHECK(bb_cm_poll(e.cm, &ev, 1) == 0);
	OK(bb_listener_destroy(l));
	end_close(&e);
	rte_thread_unregister();
	return NULL;
}

TEST(test_two_threads_share_qp1_of_a_device)
{
	struct bb_cm_attr attr;
	struct bb_conn *c;
	struct bb_qp *qp;
	pthread_t thread;
	struct end e;

	OK(bb_dev_open("soft0", &dev));
	dev_address(dev, BB_CM_IB, &addr);
	attr_init(&attr);
	end_open(&e, dev, &attr);
	CHECK(pthread_create(&thread, NULL, serve, NULL) == 0);
	while (!__atomic_load_n(&listening, __ATOMIC_ACQUIRE))
		;
	for (uint32_t i = 0; i < CYCLES; i++) {
		qp = qp_create(&e);
		OK(bb_conn_connect(e.cm, (struct sockaddr *)&addr, qp, &e.param, &c));
		CHECK(next_event(&e).type == BB_CM_ESTABLISHED);
		OK(bb_conn_disconnect(c, NULL, 0));
		CHECK(next_event(&e).type == BB_CM_DISCONNECTED);
		bb_conn_destroy(c);
		qp_destroy(qp);
	}
	__atomic_store_n(&done, true, __ATOMIC_RELEASE);
	CHECK(pthread_join(thread, NULL) == 0);
	end_close(&e);
	OK(bb_dev_close(dev));
}

CONNECT_MAIN(RTE_LOG_ERR)
