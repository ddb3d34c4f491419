/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Endpoints: receives that are posted where there is no connection are kept, and come to the queue
 * in their order when there is one. Calls that would wait give up at once, and one thread runs both
 * sides in turn.
 */
#include "../fakes/bare_eal.h"
#include "bb_cm_priv.h"
#include "connect_env.h"

#define MSG 64u

static struct bb_dev *dev;
static struct bb_ep *listener;
static struct bb_conn_param param;

struct side {
	struct bb_ep *ep;
	struct bb_mr *mr;
	uint8_t *buf;
};

static struct side a, b;

/* Until it is so, both sides work. */
#define UNTIL(what)                                                                                \
	for (uint64_t end_ = wait_end(); !(what);) {                                               \
		(void)bb_ep_connected(a.ep);                                                       \
		if (b.ep != NULL)                                                                  \
			(void)bb_ep_connected(b.ep);                                               \
		assert_true(rte_get_tsc_cycles() < end_);                                          \
	}

static void
side_memory(struct side *s)
{
	s->buf = rte_zmalloc("ep", 8 * MSG, 64);
	assert_non_null(s->buf);
	assert_int_equal(bb_ep_reg_msgs(s->ep, s->buf, 8 * MSG, &s->mr), 0);
}

static void
receive(struct side *s, uintptr_t n)
{
	assert_int_equal(bb_ep_post_recv(s->ep, (void *)n, s->buf + n * MSG, MSG, s->mr), 0);
}

/* Messages, and the receives that they come to. */
static void
sends(struct side *from, struct side *to, const uint64_t *contexts, unsigned int n)
{
	struct bb_wc wc;
	unsigned int i;

	for (i = 0; i < n; i++)
		assert_int_equal(
			bb_ep_post_send(from->ep, NULL, from->buf, MSG, from->mr, BB_SEND_SIGNALED),
			0);
	for (i = 0; i < n; i++) {
		UNTIL(bb_cq_poll(to->ep->recv_cq, &wc, 1) == 1);
		assert_int_equal(wc.status, BB_WC_SUCCESS);
		assert_int_equal(wc.wr_id, contexts[i]);
		UNTIL(bb_cq_poll(from->ep->send_cq, &wc, 1) == 1);
		assert_int_equal(wc.status, BB_WC_SUCCESS);
	}
}

/* Two endpoints, connected; one receive was posted at each before that. */
static void
open_pair(void)
{
	struct bb_ep_attr attr;
	char where[32];

	memset(&a, 0, sizeof(a));
	memset(&b, 0, sizeof(b));
	assert_int_equal(bb_dev_open("soft0", &dev), 0);
	bb_ep_attr_init(&attr);
	attr.timeout_ms = 1;
	attr.qp.sq_depth = 4;
	attr.qp.rq_depth = 4;
	bb_conn_param_init(&param);
	param.timeout_ms = WAIT_S * 1000;
	param.recover_ms = WAIT_S * 1000;
	param.backoff_min_ms = 1;
	param.backoff_max_ms = 20;
	assert_int_equal(bb_ep_create(dev, "127.0.0.1:0", true, &attr, &listener), 0);
	snprintf(where, sizeof(where), "127.0.0.1:%u", bb_ep_port(listener));
	assert_int_equal(bb_ep_create(dev, where, false, &attr, &a.ep), 0);
	side_memory(&a);
	receive(&a, 0);
	assert_int_equal(bb_ep_connect(a.ep, &param), -ETIMEDOUT);
	UNTIL(bb_ep_get_request(listener, &b.ep) == 0);
	side_memory(&b);
	receive(&b, 0);
	assert_int_equal(bb_ep_accept(b.ep, &param), -ETIMEDOUT);
	UNTIL(bb_ep_connected(a.ep) && bb_ep_connected(b.ep));
}

static void
close_pair(void)
{
	struct side *sides[] = {&a, &b};
	unsigned int i;

	for (i = 0; i < 2; i++) {
		assert_int_equal(bb_mr_dereg(sides[i]->mr), 0);
		assert_int_equal(bb_ep_destroy(sides[i]->ep), 0);
		rte_free(sides[i]->buf);
	}
	assert_int_equal(bb_ep_destroy(listener), 0);
	assert_int_equal(bb_dev_close(dev), 0);
}

/* Before there is a connection; also when bb_ep_connect() has given up to wait for that. */
static void
test_before(void **st)
{
	static const uint64_t first[] = {0};

	(void)st;
	open_pair();
	sends(&a, &b, first, 1);
	sends(&b, &a, first, 1);
	close_pair();
}

/*
 * While it is LOST. The side that has accepted is in RTS before it is told that it is back: what is
 * posted then goes behind those that were kept. The second time the way to the peer breaks there:
 * they wait on.
 */
static void
test_lost(void **st)
{
	static const uint64_t contexts[] = {1, 2, 3};
	int again;

	(void)st;
	for (again = 0; again < 2; again++) {
		open_pair();
		assert_int_equal(bb_conn_recover(a.ep->conn), 0);
		UNTIL(b.ep->event.type == BB_CM_LOST);
		assert_int_equal(a.ep->event.type, BB_CM_LOST);
		assert_int_equal(a.ep->qp->state, BB_QP_RESET);
		receive(&a, 1);
		receive(&a, 2);
		receive(&b, 1);
		receive(&b, 2);
		UNTIL(b.ep->qp->state == BB_QP_RTS);
		assert_int_equal(b.ep->event.type, BB_CM_LOST);
		receive(&b, 3);
		if (again) {
			assert_int_equal(shutdown(a.ep->conn->fd, SHUT_RDWR), 0);
			UNTIL(b.ep->qp->state == BB_QP_RESET);
		}
		UNTIL(bb_ep_connected(a.ep) && bb_ep_connected(b.ep));
		assert_int_equal(a.ep->event.type, BB_CM_RECOVERED);
		receive(&a, 3);
		sends(&a, &b, contexts, 3);
		sends(&b, &a, contexts, 3);
		close_pair();
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_before),
		cmocka_unit_test(test_lost),
	};

	if (bare_eal_init() < 0)
		return 77;
	rte_log_set_global_level(RTE_LOG_CRIT);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
