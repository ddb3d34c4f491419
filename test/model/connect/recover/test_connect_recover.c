/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Connections that break and recover: a refused request, a side that asks for recovery, a port
 * that flaps under traffic, a peer that is gone. Argument: the number of rounds, 20 by default.
 */
#include "bb_cm_priv.h"
#include "connect_env.h"

static struct pair p;
static struct bb_region r; /* b's buffer */
static unsigned int rounds = 20;

static void
come_back(struct end *e)
{
	e->param.recover_ms = 4 * WAIT_S * 1000;
	e->param.backoff_min_ms = 1;
	e->param.backoff_max_ms = 20;
}

static void
open_pair(const char *dev_a, const char *dev_b)
{
	struct bb_cm_attr attr;

	bb_cm_attr_init(&attr);
	attr.poll_us = 0;
	pair_open_with(&p, dev_a, dev_b, &attr);
	come_back(&p.a);
	come_back(&p.b);
	name_buffer(&p, &r);
}

static void
drop_completions(void)
{
	struct bb_wc wc[16];

	while (bb_cq_poll(p.a.cq, wc, 16) != 0 || bb_cq_poll(p.b.cq, wc, 16) != 0)
		;
}

static void
both_back(struct link *l, unsigned int nends)
{
	struct bb_cm_event ev;
	struct bb_conn_info info;

	ev = expect(&p, &p.a, BB_CM_LOST);
	assert_ptr_equal(ev.conn, l->a);
	assert_int_equal(ev.nends, nends);
	expect(&p, &p.b, BB_CM_LOST);
	ev = expect(&p, &p.a, BB_CM_RECOVERED);
	assert_false(ev.restarted);
	expect(&p, &p.b, BB_CM_RECOVERED);
	assert_int_equal(l->qa->state, BB_QP_RTS);
	assert_int_equal(l->qb->state, BB_QP_RTS);
	bb_conn_query(l->a, &info);
	assert_true(info.tries >= 1);
	assert_true(info.recoverable);
}

/*
 * A request is refused: its QP goes to ERR, and the requests after it are reported as not
 * executed.
 */
PAIR_TEST(open_pair("soft0", NULL), test_refused_request_breaks_and_recovers_the_connection)
{
	struct bb_conn_info info;
	struct bb_sge sge;
	struct bb_wc wc;
	struct link l;
	unsigned int i, k;
	uint64_t end;

	link_up(&p, &l);
	for (i = 0; i < rounds; i++) {
		writes(&p, &l, (uint8_t)(i + 1));
		sge = (struct bb_sge){(uintptr_t)p.a.buf, 8, p.a.mr->lkey};
		OK(bb_post_write(l.qa, 100, &sge, 1, r.addr, r.rkey + 77, BB_SEND_SIGNALED));
		for (k = 0; k < 3; k++)
			OK(bb_post_write(l.qa, 101 + k, &sge, 1, r.addr, r.rkey, 0));
		bb_qp_ring(l.qa);
		/* The application polls the failure itself. */
		for (end = wait_end(); bb_cq_poll(p.a.cq, &wc, 1) == 0;) {
			bb_dev_progress(p.a.dev);
			assert_true(rte_get_tsc_cycles() < end);
		}
		assert_int_equal(wc.status, BB_WC_REM_ACCESS_ERR);
		both_back(&l, 3);
		bb_conn_query(l.b, &info);
		assert_int_equal(info.recoveries, i + 1);
	}
	writes(&p, &l, 0x77);
	link_down(&p, &l);
}

/* Requests that were not executed are reported, and can be posted again by their wr_id. */
PAIR_TEST(open_pair("soft0", NULL), test_requests_not_executed_are_reported)
{
	struct bb_cm_event ev;
	struct bb_sge sge;
	struct link l;
	uint32_t i;
	uint64_t end;
	struct bb_wc wc;
	unsigned int done = 0;

	link_up(&p, &l);
	memset(p.b.buf, 0, BUF);
	for (i = 0; i < 8; i++) {
		p.a.buf[i] = (uint8_t)(i + 1);
		sge = (struct bb_sge){(uintptr_t)p.a.buf + i, 1, p.a.mr->lkey};
		OK(bb_post_write(l.qa, i, &sge, 1, r.addr + i, r.rkey, BB_SEND_SIGNALED));
	}
	/* Never rung, so not executed. */
	OK(bb_conn_recover(l.a));
	ev = expect(&p, &p.a, BB_CM_LOST);
	assert_int_equal(ev.nends, 8);
	for (i = 0; i < 8; i++) {
		assert_int_equal(ev.ends[i].fate, BB_WR_NOT_DONE);
		assert_int_equal(ev.ends[i].wc.wr_id, i);
		assert_false(ev.ends[i].recv);
	}
	expect(&p, &p.b, BB_CM_LOST);
	expect(&p, &p.a, BB_CM_RECOVERED);
	expect(&p, &p.b, BB_CM_RECOVERED);
	for (i = 0; i < 8; i++) {
		sge = (struct bb_sge){(uintptr_t)p.a.buf + i, 1, p.a.mr->lkey};
		OK(bb_post_write(l.qa, i, &sge, 1, r.addr + i, r.rkey, BB_SEND_SIGNALED));
	}
	bb_qp_ring(l.qa);
	for (end = wait_end(); done < 8;) {
		done += bb_cq_poll(p.a.cq, &wc, 1);
		turn(&p);
		assert_true(rte_get_tsc_cycles() < end);
	}
	assert_memory_equal(p.a.buf, p.b.buf, 8);
	link_down(&p, &l);
}

/* Everything in the queues is reported: both queues are full, or the receives are of an SRQ. */
TEST(test_all_requests_of_full_queues_are_reported)
{
	struct bb_srq_attr attr;
	struct bb_srq *srq;
	struct bb_cm_event ev;
	struct bb_sge sge;
	struct link l;
	uint32_t i, shared, nrecvs;

	for (shared = 0; shared < 2; shared++) {
		open_pair("soft0", NULL);
		p.a.init.rq_depth = 32;
		p.b.init.sq_depth = 32;
		bb_srq_attr_init(&attr);
		attr.depth = nrecvs = 32;
		OK(bb_srq_create(p.a.pd, &attr, &srq));
		if (shared)
			p.a.init.srq = srq;
		link_up(&p, &l);
		sge = (struct bb_sge){(uintptr_t)p.a.buf, 1, p.a.mr->lkey};
		for (i = 0; i < nrecvs; i++)
			assert_int_equal(shared ? bb_post_srq_recv(srq, i, &sge, 1)
						: bb_post_recv(l.qa, i, &sge, 1),
					 0);
		bb_srq_ring(srq);
		for (i = 0; shared && i < nrecvs; i++) {
			/* Each message consumes one receive. */
			sge = (struct bb_sge){(uintptr_t)p.b.buf, 1, p.b.mr->lkey};
			OK(bb_post_send(l.qb, i, &sge, 1, 0));
			bb_qp_ring(l.qb);
			turn(&p);
		}
		sge = (struct bb_sge){(uintptr_t)p.a.buf, 1, p.a.mr->lkey};
		for (i = 0; i < 16; i++)
			OK(bb_post_write(l.qa, i, &sge, 1, r.addr, r.rkey, 0));
		OK(bb_conn_recover(l.a));
		ev = expect(&p, &p.a, BB_CM_LOST);
		assert_int_equal(ev.nends, 16 + nrecvs);
		link_free(&l);
		p.a.nev = p.b.nev = 0;
		OK(bb_srq_destroy(srq));
		drop_completions();
		pair_close(&p);
	}
}

PAIR_TEST(open_pair("soft0", NULL), test_either_side_may_ask_for_a_recovery)
{
	struct link l;
	unsigned int i;

	link_up(&p, &l);
	for (i = 0; i < rounds; i++) {
		OK(bb_conn_recover(i % 2 == 0 ? l.a : l.b));
		assert_int_equal(bb_conn_recover(i % 2 == 0 ? l.a : l.b), -ENOTCONN);
		both_back(&l, 0);
		writes(&p, &l, (uint8_t)(i + 1));
	}
	/* Both sides at the same time. */
	OK(bb_conn_recover(l.a));
	OK(bb_conn_recover(l.b));
	both_back(&l, 0);
	/* No recovery if one side does not allow it. */
	link_down(&p, &l);
	p.b.param.recover_ms = 0;
	link_up(&p, &l);
	assert_int_equal(bb_conn_recover(l.a), -EINVAL);
	assert_int_equal(bb_conn_recover(l.b), -EINVAL);
	link_down(&p, &l);
}

PAIR_TEST(open_pair("soft0", NULL), test_connections_that_break_together_recover_to_their_own_peers)
{
	struct bb_qp_attr qa, qb;
	struct link l[3];
	unsigned int i;

	for (i = 0; i < 3; i++)
		link_up(&p, &l[i]);
	for (i = 0; i < 3; i++)
		OK(bb_conn_recover(l[2 - i].a));
	for (i = 0; i < 6; i++) {
		/* Events may come in any order; twelve in all, half of them on this side. */
		const uint64_t end = wait_end();
		struct bb_cm_event ev;

		while (!take(&p.a, &ev)) {
			turn(&p);
			assert_true(rte_get_tsc_cycles() < end);
		}
		assert_true(ev.type == BB_CM_LOST || ev.type == BB_CM_RECOVERED);
	}
	for (i = 0; i < 3; i++) {
		const uint64_t end = wait_end();
		struct bb_conn_info info;

		do {
			turn(&p);
			bb_conn_query(l[i].b, &info);
			assert_true(rte_get_tsc_cycles() < end);
		} while (info.recoveries != 1);
		OK(bb_qp_query(l[i].qa, &qa));
		OK(bb_qp_query(l[i].qb, &qb));
		assert_int_equal(qa.dest_qpn, l[i].qb->qpn);
		assert_int_equal(qb.dest_qpn, l[i].qa->qpn);
		assert_int_equal(qa.sq_psn, qb.rq_psn);
	}
	p.a.nev = p.b.nev = 0;
	for (i = 0; i < 3; i++)
		link_free(&l[i]);
}

/*
 * The peer is gone for good: each side gives up after its own time, or this side ends the
 * connection.
 */
PAIR_TEST(open_pair("soft0", NULL), test_recovery_ends_after_recover_ms_or_a_disconnect)
{
	struct bb_cm_event ev;
	struct link l;

	p.a.param.recover_ms = 30;
	link_up(&p, &l);
	OK(bb_listener_destroy(p.listener));
	bb_conn_destroy(l.b);
	expect(&p, &p.a, BB_CM_LOST);
	ev = expect(&p, &p.a, BB_CM_DISCONNECTED);
	assert_int_equal(ev.status, -ETIMEDOUT);
	link_end(&l, l.a);

	OK(bb_listener_create(p.b.cm, (struct sockaddr *)&p.addr, &p.listener));
	p.a.param.recover_ms = 30000;
	p.b.param.recover_ms = 30;
	link_up(&p, &l);
	bb_conn_destroy(l.a);
	expect(&p, &p.b, BB_CM_LOST);
	assert_int_equal(expect(&p, &p.b, BB_CM_DISCONNECTED).status, -ETIMEDOUT);
	link_end(&l, l.b);

	link_up(&p, &l);
	bb_conn_destroy(l.b);
	expect(&p, &p.a, BB_CM_LOST);
	OK(bb_conn_disconnect(l.a, NULL, 0));
	assert_int_equal(expect(&p, &p.a, BB_CM_DISCONNECTED).status, 0);
	link_end(&l, l.a);
}

static unsigned int
lines(const char *text, const char *what)
{
	unsigned int n = 0;

	for (; (text = strstr(text, what)) != NULL; text++)
		n++;
	return n;
}

/* The local address is removed: each attempt looks for it, and the first one logs that. */
PAIR_TEST(open_pair("soft0", NULL), test_missing_gid_is_logged_once)
{
	struct bb_conn_info info = {0};
	char *text = NULL;
	size_t size = 0;
	uint64_t end;
	struct link l;
	FILE *log;

	link_up(&p, &l);
	log = open_memstream(&text, &size);
	assert_non_null(log);
	rte_openlog_stream(log);
	rte_log_set_global_level(RTE_LOG_ERR);
	l.a->param.gid.exact = true;
	memset(l.a->param.gid.raw, 0xcc, sizeof(l.a->param.gid.raw));
	bb_conn_destroy(l.b);
	expect(&p, &p.a, BB_CM_LOST);
	for (end = wait_end(); info.tries < 20; bb_conn_query(l.a, &info)) {
		turn(&p);
		assert_true(rte_get_tsc_cycles() < end);
	}
	rte_log_set_global_level(RTE_LOG_CRIT);
	rte_openlog_stream(NULL);
	fclose(log);
	assert_int_equal(lines(text, "no GID of port 1 matches"), 1);
	free(text);
	OK(bb_conn_disconnect(l.a, NULL, 0));
	assert_int_equal(expect(&p, &p.a, BB_CM_DISCONNECTED).status, 0);
	link_end(&l, l.a);
}

/* The accepting process is gone, and another one answers: it does not know the session. */
PAIR_TEST(open_pair("soft0", NULL), test_restart_of_the_peer_is_reported)
{
	struct bb_cm_event ev;
	struct bb_region got;
	struct link l;
	unsigned int i;

	link_up(&p, &l);
	for (i = 0; i < rounds; i++) {
		bb_conn_destroy(l.b);
		bb_qp_destroy(l.qb);
		expect(&p, &p.a, BB_CM_LOST);
		ev = expect(&p, &p.b, BB_CM_CONNECT_REQUEST);
		assert_true(ev.restarted);
		l.b = ev.conn;
		l.qb = end_qp(&p.b);
		OK(bb_region_of(p.b.mr, "buf", i, 0, &r));
		OK(bb_conn_accept(l.b, l.qb, &p.b.param));
		ev = expect(&p, &p.a, BB_CM_RECOVERED);
		assert_true(ev.restarted);
		expect(&p, &p.b, BB_CM_ESTABLISHED);
		assert_int_equal(bb_conn_region(l.a, "buf", &got), 0);
		assert_int_equal(got.addr, r.addr);
	}
	link_down(&p, &l);
}

PAIR_TEST(open_pair("soft0", NULL), test_pauses_between_attempts_double_to_the_maximum)
{
	struct bb_listener *other;
	uint64_t begin, ms;
	struct link l;

	p.a.param.backoff_min_ms = 40;
	p.a.param.backoff_max_ms = 160;
	link_up(&p, &l);
	OK(bb_listener_destroy(p.listener));
	bb_conn_destroy(l.b);
	expect(&p, &p.a, BB_CM_LOST);
	assert_int_equal(l.a->tries, 0);
	/*
	 * Pauses of 40, 20 to 40, 40 to 80, and then 80 to 160 ms; all may be longer on a busy
	 * machine.
	 */
	begin = rte_get_tsc_cycles();
	do {
		turn(&p);
		ms = (rte_get_tsc_cycles() - begin) * 1000 / rte_get_tsc_hz();
	} while (l.a->tries < 5 && ms < 30000);
	assert_int_equal(l.a->tries, 5);
	assert_in_range(ms, 250, 30000);
	assert_int_equal(l.a->backoff_ms, 160);
	assert_int_equal(p.a.nev, 0);
	/* The listener is back, and does not know the session. */
	OK(bb_listener_create(p.b.cm, (struct sockaddr *)&p.addr, &other));
	p.listener = other;
	l.b = expect(&p, &p.b, BB_CM_CONNECT_REQUEST).conn;
	OK(bb_qp_destroy(l.qb));
	l.qb = end_qp(&p.b);
	OK(bb_conn_accept(l.b, l.qb, &p.b.param));
	assert_true(expect(&p, &p.a, BB_CM_RECOVERED).restarted);
	expect(&p, &p.b, BB_CM_ESTABLISHED);
	link_down(&p, &l);
}

/*
 * A port goes down repeatedly under a stream of WRITEs, longer than a queue pair retries. Each
 * WRITE is posted until it has completed, and in the end all of them have arrived.
 */
#define WRITES 400u

PAIR_TEST(open_pair("soft0,wire=1,flap=12:30", "soft1,wire=1"),
	  test_writes_over_a_flapping_port_all_arrive)
{
	struct bb_conn_info info;
	struct bb_cm_event ev;
	struct bb_sge sge;
	struct link l;
	uint32_t next = 0, done = 0, losses = 0;
	bool up = true;
	uint64_t end;
	struct bb_wc wc;

	p.a.param.ack_timeout = 4; /* 65 us, 7 retries: shorter than the port is down */
	p.b.param.ack_timeout = 4;
	p.a.param.retry_count = 2;
	link_call(&p, &l);
	OK(bb_conn_accept(l.b, l.qb, &p.b.param));
	both_established(&p);
	memset(p.b.buf, 0, BUF);
	for (end = wait_end() + 3 * WAIT_S * rte_get_tsc_hz();
	     done < WRITES * rounds || losses < rounds / 4;) {
		while (up && next - done < 8) {
			uint32_t v = next + 1, off = 4 * (next % WRITES);

			memcpy(p.a.buf + off, &v, 4);
			sge = (struct bb_sge){(uintptr_t)p.a.buf + off, 4, p.a.mr->lkey};
			if (bb_post_write(l.qa, next, &sge, 1, r.addr + off, r.rkey,
					  BB_SEND_SIGNALED) != 0)
				break;
			next++;
		}
		bb_qp_ring(l.qa);
		while (bb_cq_poll(p.a.cq, &wc, 1) == 1) {
			if (wc.status != BB_WC_SUCCESS)
				continue;
			assert_int_equal(wc.wr_id, done);
			done++;
		}
		turn(&p);
		if (take(&p.b, &ev))
			assert_true(ev.type == BB_CM_LOST || ev.type == BB_CM_RECOVERED);
		if (take(&p.a, &ev)) {
			uint32_t i;

			assert_true(ev.type == BB_CM_LOST || ev.type == BB_CM_RECOVERED);
			up = ev.type == BB_CM_RECOVERED;
			losses += !up;
			for (i = 0; i < ev.nends; i++)
				if (ev.ends[i].fate == BB_WR_DONE && ev.ends[i].wc.wr_id == done)
					done++;
			/*
			 * A WRITE may be executed twice: all that did not complete are posted
			 * again.
			 */
			next = done;
		}
		assert_true(rte_get_tsc_cycles() < end);
	}
	bb_conn_query(l.a, &info);
	print_message("%u writes, %u losses, %u recoveries\n", done, losses, info.recoveries);
	assert_true(losses >= 1);
	/* Each offset has the last value that completed there, or a later value. */
	for (next = done - WRITES; next < done; next++) {
		uint32_t v;

		memcpy(&v, p.b.buf + 4 * (next % WRITES), 4);
		assert_true(v == next + 1 || v == next + 1 + WRITES);
	}
	link_free(&l);
	p.a.nev = p.b.nev = 0;
	drop_completions();
}

int
main(int argc, char **argv)
{
	if (argc > 1)
		rounds = (unsigned int)strtoul(argv[1], NULL, 10);
	if (bare_eal_init() < 0)
		return 77;
	rte_log_set_global_level(RTE_LOG_CRIT);
	return bb_test_run(__FILE__, NULL, NULL);
}
