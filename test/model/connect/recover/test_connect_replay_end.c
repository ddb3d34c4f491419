/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Requests of a replay whose connection ends: the application gets each of them once. */
#include <poll.h>

#include "connect_replay.h"

#define N 4u

static unsigned int seen[N]; /* reports and completions that the application got, by request */

static void
post_all(struct bb_replay *r)
{
	int err;

	memset(seen, 0, sizeof(seen));
	for (unsigned int i = 0; i < N; i++)
		assert_int_equal(put(r, 100 + i, 1, i, BB_SEND_SIGNALED, false, &err), 1);
}

static void
count(const struct bb_wc *wc)
{
	assert_in_range(wc->wr_id, 100, 100 + N - 1);
	assert_int_not_equal(wc->status, BB_WC_SUCCESS);
	seen[wc->wr_id - 100]++;
}

/* Polls @n completions. Returns the number that the application handles. */
static unsigned int
poll_completions(struct bb_replay *r, unsigned int n)
{
	unsigned int handled = 0;

	while (n-- > 0) {
		struct bb_wc wc = completion();

		if (!bb_replay_completion(r, &wc))
			continue;
		count(&wc);
		handled++;
	}
	return handled;
}

/* Passes the event to the replay, which must report @n requests with this fate. */
static void
pass(struct bb_replay *r, const struct bb_cm_event *ev, unsigned int n, enum bb_wr_fate fate)
{
	nreports = 0;
	bb_replay_lost(r, ev, reported, &p);
	assert_int_equal(nreports, n);
	for (unsigned int i = 0; i < n; i++) {
		assert_int_equal(reports[i].fate, fate);
		count(&reports[i].wc);
	}
}

static void
check_all_seen_once(const struct bb_replay *r)
{
	for (unsigned int i = 0; i < N; i++)
		assert_int_equal(seen[i], 1);
	assert_int_equal(bb_replay_pending(r), 0);
}

/* Moves the QP to ERR. The peer of the QP then gets no answer. */
static void
fail_qp(struct bb_qp *qp)
{
	struct bb_qp_attr attr;

	bb_qp_attr_init(&attr);
	attr.state = BB_QP_ERR;
	OK(bb_qp_modify(qp, &attr, BB_QP_STATE));
}

/* The peer disconnects. Returns when this side's CM can receive the message. */
static void
peer_disconnects(void)
{
	struct pollfd fd = {.fd = bb_cm_fd(p.a.cm), .events = POLLIN};

	OK(bb_conn_disconnect(l.b, NULL, 0));
	assert_int_equal(poll(&fd, 1, WAIT_S * 1000), 1);
}

/* The application polls some completions before the event, and the others afterwards. */
TEST(test_requests_are_reported_once_if_the_peer_disconnects)
{
	for (unsigned int before = 0; before <= N; before++) {
		struct bb_replay *r = start(BB_REPLAY_UNKNOWN, "soft0", NULL);
		struct bb_cm_event ev;

		peer_disconnects();
		post_all(r);
		assert_int_equal(poll_completions(r, before), 0);
		ev = expect(&p, &p.a, BB_CM_DISCONNECTED);
		pass(r, &ev, before, BB_WR_UNKNOWN);
		assert_int_equal(bb_replay_pending(r), N - before);
		assert_int_equal(poll_completions(r, N - before), N - before);
		check_all_seen_once(r);
		pass(r, &ev, 0, BB_WR_UNKNOWN);
		stop(r);
	}
}

/* The CM is not polled, and the connection may be destroyed. */
TEST(test_completions_after_own_disconnect_belong_to_the_application)
{
	for (unsigned int destroyed = 0; destroyed < 2; destroyed++) {
		struct bb_replay *r = start(BB_REPLAY_UNKNOWN, "soft0", NULL);

		fail_qp(l.qb);
		post_all(r);
		OK(bb_conn_disconnect(l.a, NULL, 0));
		if (destroyed) {
			bb_conn_destroy(l.a);
			l.a = NULL;
			/* Frees the memory of the connection. */
			(void)bb_cm_poll(p.a.cm, p.a.ev, 1);
		}
		assert_int_equal(poll_completions(r, N), N);
		check_all_seen_once(r);
		assert_int_equal(bb_replay_resume(r, reported, &p), -ENOTCONN);
		stop(r);
	}
}

/* One side wants no recovery, so no event follows the failed requests. */
TEST(test_errors_without_recovery_belong_to_the_application)
{
	struct bb_replay *r;

	open_pair("soft0", NULL);
	p.b.param.recover_ms = 0;
	r = begin(BB_REPLAY_UNKNOWN);
	fail_qp(l.qb);
	post_all(r);
	assert_int_equal(poll_completions(r, N), N);
	check_all_seen_once(r);
	stop(r);
}

/* The replay holds the requests, but the connection ends before it is recovered. */
TEST(test_held_requests_are_reported_if_recovery_ends)
{
	for (unsigned int unknown = 0; unknown < 2; unknown++) {
		struct bb_replay *r = start(BB_REPLAY_UNKNOWN, "soft0", NULL);
		struct bb_cm_event ev;
		struct bb_wc wc;
		int err;

		if (unknown) {
			fail_qp(l.qb);
			post_all(r);
			fail_qp(l.qa);
		} else {
			assert_int_equal(put(r, 99, 1, 0, BB_SEND_SIGNALED, true, &err), 1);
			post_all(r);
			wc = completion();
			assert_true(bb_replay_completion(r, &wc));
			assert_int_equal(wc.status, BB_WC_REM_ACCESS_ERR);
		}
		ev = expect(&p, &p.a, BB_CM_LOST);
		pass(r, &ev, 0, BB_WR_UNKNOWN);
		assert_int_equal(bb_replay_pending(r), N);
		OK(bb_conn_disconnect(l.a, NULL, 0));
		ev = expect(&p, &p.a, BB_CM_DISCONNECTED);
		pass(r, &ev, N, unknown ? BB_WR_UNKNOWN : BB_WR_NOT_DONE);
		check_all_seen_once(r);
		stop(r);
	}
}

/*
 * The application ends the connection before it has polled LOST, so it gets DISCONNECTED instead.
 * The queue pair is reset: its completions are gone.
 */
REPLAY_TEST(BB_REPLAY_UNKNOWN, test_requests_are_reported_if_disconnected_replaces_lost)
{
	struct bb_cm_event ev;
	struct bb_wc wc;
	int err;

	assert_int_equal(put(r, 99, 1, 0, BB_SEND_SIGNALED, true, &err), 1);
	post_all(r);
	wc = completion();
	assert_true(bb_replay_completion(r, &wc));
	assert_int_equal(poll_completions(r, 1), 0);
	OK(bb_conn_recover(l.a));
	OK(bb_conn_disconnect(l.a, NULL, 0));
	ev = expect(&p, &p.a, BB_CM_DISCONNECTED);
	pass(r, &ev, N, BB_WR_NOT_DONE);
	check_all_seen_once(r);
}

REPLAY_TEST(BB_REPLAY_UNKNOWN, test_events_that_end_nothing_report_nothing)
{
	static const enum bb_cm_event_type types[] = {BB_CM_CONNECT_REQUEST, BB_CM_ESTABLISHED,
						      BB_CM_RECOVERED};

	post_all(r);
	for (unsigned int i = 0; i < RTE_DIM(types); i++) {
		const struct bb_cm_event ev = {.type = types[i], .conn = l.a};

		pass(r, &ev, 0, BB_WR_UNKNOWN);
		assert_int_equal(bb_replay_pending(r), N);
	}
}

CONNECT_MAIN(RTE_LOG_CRIT)
