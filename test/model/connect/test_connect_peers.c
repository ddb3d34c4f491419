/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Connections between two processes on the shared-memory fabric.
 * model_connect_peers: the run of CI.
 * model_connect_peers CONNS CYCLES KILLS: CONNS simultaneous connections, CYCLES set-ups and
 * tear-downs, and KILLS times the peer is killed during traffic and returns with another address.
 */
#define _GNU_SOURCE /* pipe2() */
#include <netinet/in.h>

#include "connect_server.h"

#define WINDOW 128u

static uint32_t nconns = 200, ncycles = 600, nkills = 3;
static struct end e;
static struct sockaddr_storage to;

static void
open_near(uint32_t conns)
{
	char spec[64];

	snprintf(spec, sizeof(spec), "soft0,shm=conn%d,ip=192.0.2.1/24", (int)getpid());
	peers_end(&e, spec, conns);
}

static void
close_near(void)
{
	struct bb_dev *dev = e.dev;

	end_close(&e);
	OK(bb_dev_close(dev));
}

static bool
start_server(struct server *s, unsigned int host, uint32_t port, uint32_t conns)
{
	char spec[64], text[64];

	snprintf(spec, sizeof(spec), "soft0,shm=conn%d,ip=192.0.2.%u/24", (int)getpid(), host);
	if (!server_start(s, spec, port, conns))
		return false;
	snprintf(text, sizeof(text), "127.0.0.1:%u", s->port);
	OK(bb_cm_addr(text, &to));
	return true;
}

/* Asks the other process for its numbers, while this process runs its own side. */
static void
ask(struct server *s, struct server_says *says)
{
	assert_int_equal(write(s->in, "?", 1), 1);
	server_hear(s, says);
}

static void
begin(struct bb_conn **c)
{
	struct bb_qp *qp = end_qp(&e);

	OK(bb_conn_connect(e.cm, (struct sockaddr *)&to, qp, &e.param, c));
}

static void
end(struct bb_conn *c)
{
	struct bb_conn_info info;

	bb_conn_query(c, &info);
	bb_conn_destroy(c);
	OK(bb_qp_destroy(info.qp));
}

static void
run(void)
{
	struct bb_wc wc[16];

	(void)bb_cq_poll(e.cq, wc, 16);
}

/* Writes eight bytes through each connection, each to its own offset. */
static void
use(struct bb_conn **conns, uint32_t n)
{
	uint64_t stop = wait_end(), value;
	struct bb_conn_info info;
	struct bb_region r;
	uint32_t i, done = 0;
	struct bb_wc wc;

	for (i = 0; i < n; i++) {
		bb_conn_query(conns[i], &info);
		assert_int_equal(info.state, BB_CONN_ESTABLISHED);
		assert_int_equal(bb_conn_region(conns[i], "buf", &r), 0);
		value = i;
		OK(bb_post_write_inline(info.qp, i, &value, 8, r.addr + 8 * (i % (BUF / 8)), r.rkey,
					BB_SEND_SIGNALED));
		bb_qp_ring(info.qp);
		while (bb_cq_poll(e.cq, &wc, 1) == 1) {
			assert_int_equal(wc.status, BB_WC_SUCCESS);
			done++;
		}
	}
	while (done < n) {
		if (bb_cq_poll(e.cq, &wc, 1) == 1) {
			assert_int_equal(wc.status, BB_WC_SUCCESS);
			done++;
		}
		assert_true(rte_get_tsc_cycles() < stop);
	}
}

/* nconns simultaneous connections, each with a WRITE; afterwards neither side has any left. */
TEST(test_many_connections_at_once_leave_nothing)
{
	struct bb_conn **conns = calloc(nconns, sizeof(struct bb_conn *));
	uint32_t begun = 0, up = 0, down = 0;
	struct server_says says;
	struct bb_cm_stats stats;
	struct bb_cm_event ev;
	struct server s;
	uint64_t stop, start;

	assert_non_null(conns);
	if (!descriptors_raise(nconns + 100)) {
		print_message("skipped: the limit of descriptors is below %u\n", nconns + 100);
		free(conns);
		skip();
	}
	open_near(nconns);
	assert_true(start_server(&s, 2, 0, nconns + 100));
	start = rte_get_tsc_cycles();
	for (stop = wait_end(); up < nconns;) {
		while (begun < nconns && begun - up < WINDOW)
			begin(&conns[begun++]);
		if (bb_cm_poll(e.cm, &ev, 1) == 1) {
			if (ev.type != BB_CM_ESTABLISHED)
				fail_msg("%s: %s", bb_cm_event_name(ev.type), ev.why);
			up++;
			stop = wait_end();
		}
		run();
		assert_true(rte_get_tsc_cycles() < stop);
	}
	print_message("%u connections in %.2f s\n", nconns,
		      (double)(rte_get_tsc_cycles() - start) / (double)rte_get_tsc_hz());
	use(conns, nconns);
	do {
		run();
		ask(&s, &says);
		assert_true(rte_get_tsc_cycles() < stop + WAIT_S * rte_get_tsc_hz());
	} while (says.established < nconns);
	assert_int_equal(says.conns, nconns);
	assert_int_equal(says.half_open, 0);
	bb_cm_stats(e.cm, &stats);
	assert_int_equal(stats.conns, nconns);
	for (up = 0; up < nconns; up++)
		OK(bb_conn_disconnect(conns[up], NULL, 0));
	for (stop = wait_end(); down < nconns;) {
		if (bb_cm_poll(e.cm, &ev, 1) == 1) {
			assert_int_equal(ev.type, BB_CM_DISCONNECTED);
			assert_int_equal(ev.status, 0);
			end(ev.conn);
			down++;
			stop = wait_end();
		}
		run();
		assert_true(rte_get_tsc_cycles() < stop);
	}
	for (stop = wait_end();;) {
		ask(&s, &says);
		if (says.conns == 0)
			break;
		assert_true(rte_get_tsc_cycles() < stop);
	}
	assert_int_equal(says.disconnected, nconns);
	server_stop(&s);
	close_near();
	free(conns);
}

/* Sets up and tears down connections, a few at a time; none is lost and none is left. */
TEST(test_repeated_connections_leave_nothing)
{
	uint32_t begun = 0, up = 0, down = 0, before;
	struct server_says says;
	struct bb_cm_event ev;
	struct server s;
	uint64_t stop, start;

	open_near(2 * WINDOW);
	assert_true(start_server(&s, 2, 0, 2 * WINDOW));
	before = descriptors();
	start = rte_get_tsc_cycles();
	for (stop = wait_end(); down < ncycles;) {
		while (begun < ncycles && begun - down < WINDOW) {
			struct bb_conn *c;

			begin(&c);
			begun++;
		}
		if (bb_cm_poll(e.cm, &ev, 1) == 1) {
			stop = wait_end();
			switch (ev.type) {
			case BB_CM_ESTABLISHED:
				up++;
				OK(bb_conn_disconnect(ev.conn, NULL, 0));
				break;
			case BB_CM_DISCONNECTED:
				assert_int_equal(ev.status, 0);
				end(ev.conn);
				down++;
				break;
			default:
				fail_msg("%s: %s", bb_cm_event_name(ev.type), ev.why);
			}
		}
		run();
		assert_true(rte_get_tsc_cycles() < stop);
	}
	start = rte_get_tsc_cycles() - start;
	print_message("%u cycles, %.0f a second\n", down,
		      (double)down * (double)rte_get_tsc_hz() / (double)start);
	assert_int_equal(up, ncycles);
	for (stop = wait_end();;) {
		ask(&s, &says);
		if (says.conns == 0)
			break;
		assert_true(rte_get_tsc_cycles() < stop);
	}
	assert_int_equal(says.established, ncycles);
	assert_int_equal(says.disconnected, ncycles);
	/* A peer of the fabric needs descriptors only once. */
	assert_in_range(descriptors(), before, before + 16);
	server_stop(&s);
	close_near();
}

/*
 * The peer is killed during a stream of WRITEs and returns, each time with another address and
 * other keys. All WRITEs that did not complete are posted again.
 */
TEST(test_writes_to_a_killed_peer_complete_after_its_return)
{
	uint32_t round, next = 0, done = 0, target;
	struct bb_conn_info info;
	struct bb_cm_event ev;
	struct bb_conn *c;
	struct bb_region r;
	struct server s;
	struct bb_wc wc;
	bool up = false;
	uint64_t stop, value, expect_gid = 2;

	open_near(8);
	assert_true(start_server(&s, 2, 0, 8));
	begin(&c);
	for (round = 0; round <= nkills; round++) {
		target = done + 100 + 37 * round % 50;
		for (stop = wait_end(); done < target;) {
			while (up && next - done < 3) {
				value = next;
				if (bb_post_write_inline(info.qp, next, &value, 8,
							 r.addr + 8 * (next % 64), r.rkey,
							 BB_SEND_SIGNALED) != 0)
					break;
				next++;
				bb_qp_ring(info.qp);
			}
			while (bb_cq_poll(e.cq, &wc, 1) == 1) {
				if (wc.status != BB_WC_SUCCESS)
					continue;
				assert_int_equal(wc.wr_id, done);
				done++;
			}
			assert_true(rte_get_tsc_cycles() < stop);
			if (bb_cm_poll(e.cm, &ev, 1) == 0)
				continue;
			stop = wait_end();
			up = ev.type == BB_CM_ESTABLISHED || ev.type == BB_CM_RECOVERED;
			if (ev.type == BB_CM_RECOVERED)
				assert_true(ev.restarted);
			else if (ev.type != BB_CM_ESTABLISHED && ev.type != BB_CM_LOST)
				fail_msg("%s: %s", bb_cm_event_name(ev.type), ev.why);
			if (!up) {
				uint32_t i;

				for (i = 0; i < ev.nends; i++)
					done += ev.ends[i].fate == BB_WR_DONE;
				next = done;
				continue;
			}
			bb_conn_query(c, &info);
			assert_int_equal(bb_conn_region(c, "buf", &r), 0);
			assert_int_equal(info.remote.gid[15], expect_gid);
			assert_int_equal(info.recoveries, round);
		}
		if (round == nkills)
			break;
		server_kill(&s);
		expect_gid = 2 + (round + 1) % 3;
		assert_true(start_server(&s, (unsigned int)expect_gid, s.port, 8));
	}
	print_message("%u writes, %u recoveries\n", done, info.recoveries);
	assert_int_equal(info.recoveries, nkills);
	OK(bb_conn_disconnect(c, NULL, 0));
	for (stop = wait_end(); bb_cm_poll(e.cm, &ev, 1) == 0;) {
		run();
		assert_true(rte_get_tsc_cycles() < stop);
	}
	assert_int_equal(ev.type, BB_CM_DISCONNECTED);
	end(c);
	server_stop(&s);
	close_near();
}

int
main(int argc, char **argv)
{
	if (argc == 5 && strcmp(argv[1], "serve") == 0)
		return server_main(argv + 2);
	if (argc == 4) {
		nconns = (uint32_t)strtoul(argv[1], NULL, 10);
		ncycles = (uint32_t)strtoul(argv[2], NULL, 10);
		nkills = (uint32_t)strtoul(argv[3], NULL, 10);
	}
	if (peers_eal(nconns > 1000 ? 2048 : 256) != 0)
		return 77;
	return bb_test_run(__FILE__, NULL, NULL);
}
