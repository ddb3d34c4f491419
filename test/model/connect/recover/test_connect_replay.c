/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Requests on a connection that breaks: posted again, or reported, by policy. */
#include "connect_replay.h"

/*
 * Posts a request that is refused, after one that is executed and before three that are not. The
 * application polls @polled of the flush errors itself.
 */
static struct bb_replay *
break_it(enum bb_replay_policy policy, unsigned int polled)
{
	struct bb_replay *r = start(policy, "soft0", NULL);
	struct bb_wc wc;
	unsigned int i;
	int err;

	assert_int_equal(put(r, 1000, 11, 0, BB_SEND_SIGNALED, false, &err), 1);
	assert_int_equal(put(r, 1000, 12, 1, 0, false, &err), 1);
	assert_int_equal(put(r, 1001, 13, 2, BB_SEND_SIGNALED, true, &err), 1);
	for (i = 0; i < 3; i++)
		assert_int_equal(
			put(r, 2000 + i, 14 + i, 3 + i, i == 1 ? 0 : BB_SEND_SIGNALED, false, &err),
			1);
	assert_int_equal(err, 0);
	wc = completion();
	assert_true(bb_replay_completion(r, &wc));
	assert_int_equal(wc.wr_id, 1000);
	assert_int_equal(wc.status, BB_WC_SUCCESS);
	/* The request itself is at fault, so it is not stored. */
	wc = completion();
	assert_true(bb_replay_completion(r, &wc));
	assert_int_equal(wc.wr_id, 1001);
	assert_int_equal(wc.status, BB_WC_REM_ACCESS_ERR);
	for (i = 0; i < polled; i++) {
		wc = completion();
		assert_int_equal(wc.status, BB_WC_WR_FLUSH_ERR);
		assert_false(bb_replay_completion(r, &wc));
		assert_int_equal(wc.wr_id, 2000 + i);
	}
	assert_int_equal(bb_replay_pending(r), 3);
	return r;
}

static void
places(uint64_t a, uint64_t b, uint64_t c)
{
	const uint64_t *at = (const uint64_t *)(const void *)p.b.buf;

	assert_int_equal(at[0], 11);
	assert_int_equal(at[1], 12);
	assert_int_equal(at[2], 0);
	assert_int_equal(at[3], a);
	assert_int_equal(at[4], b);
	assert_int_equal(at[5], c);
}

TEST(test_requests_not_executed_are_posted_again)
{
	struct bb_cm_event ev;
	struct bb_replay *r;
	struct bb_wc wc;
	unsigned int polled;
	int err;

	for (polled = 0; polled <= 3; polled++) {
		r = break_it(BB_REPLAY_NOT_DONE, polled);
		ev = expect(&p, &p.a, BB_CM_LOST);
		bb_replay_lost(r, &ev, reported, &p);
		assert_int_equal(put(r, 1, 1, 9, 0, false, &err), 0);
		assert_int_equal(err, 0);
		assert_int_equal(bb_replay_resume(r, reported, &p), -ENOTCONN);
		expect(&p, &p.a, BB_CM_RECOVERED);
		assert_int_equal(bb_replay_resume(r, reported, &p), 3);
		assert_int_equal(nreports, 0);
		wc = completion();
		assert_true(bb_replay_completion(r, &wc));
		assert_int_equal(wc.wr_id, 2000);
		assert_int_equal(wc.status, BB_WC_SUCCESS);
		wc = completion();
		assert_true(bb_replay_completion(r, &wc));
		assert_int_equal(wc.wr_id, 2002);
		assert_int_equal(bb_replay_pending(r), 0);
		places(14, 15, 16);
		stop(r);
	}
}

TEST(test_policy_none_reports_every_request)
{
	struct bb_cm_event ev;
	struct bb_replay *r;
	unsigned int i, polled;

	for (polled = 0; polled <= 3; polled++) {
		r = break_it(BB_REPLAY_NONE, polled);
		ev = expect(&p, &p.a, BB_CM_LOST);
		bb_replay_lost(r, &ev, reported, &p);
		assert_int_equal(nreports, 3);
		for (i = 0; i < 3; i++) {
			assert_int_equal(reports[i].wc.wr_id, 2000 + i);
			assert_int_equal(reports[i].fate, BB_WR_NOT_DONE);
			assert_int_equal(reports[i].wc.status, BB_WC_WR_FLUSH_ERR);
		}
		assert_int_equal(bb_replay_pending(r), 0);
		expect(&p, &p.a, BB_CM_RECOVERED);
		OK(bb_replay_resume(r, reported, &p));
		places(0, 0, 0);
		stop(r);
	}
}

/* The peer has restarted: its region has another address, does not exist, or is too small. */
TEST(test_requests_follow_the_region_of_a_restarted_peer)
{
	struct bb_replay *r;
	uint32_t n;

	for (n = 0; n < 4; n++) {
		r = break_it(BB_REPLAY_NOT_DONE, 1);
		OK(bb_region_of(p.b.mr, n == 1 ? "other" : "buf", 8192,
				n == 2   ? 40
				: n == 3 ? 8
					 : 4096,
				&region));
		restart(r);
		if (n == 0) {
			assert_int_equal(bb_replay_resume(r, reported, &p), 3);
			(void)completion();
			(void)completion();
			assert_int_equal(((uint64_t *)(void *)(p.b.buf + 8192))[3], 14);
			assert_int_equal(((uint64_t *)(void *)(p.b.buf + 8192))[5], 16);
			places(0, 0, 0);
		} else if (n == 1 || n == 3) {
			assert_int_equal(bb_replay_resume(r, reported, &p), -ENOENT);
			assert_int_equal(bb_replay_resume(r, reported, &p), -ENOENT);
			assert_int_equal(bb_replay_resume(r, reported, &p), -ENOENT);
			OK(bb_replay_resume(r, reported, &p));
			assert_int_equal(nreports, 3);
			assert_int_equal(bb_replay_pending(r), 0);
		} else {
			/* Two slots of three still exist. */
			assert_int_equal(bb_replay_resume(r, reported, &p), -ENOENT);
			assert_int_equal(nreports, 1);
			assert_int_equal(reports[0].wc.wr_id, 2002);
		}
		stop(r);
	}
}

/*
 * Requests that may have been executed and have no target any more are reported as such, also if
 * the second attempt surely did not reach the peer.
 */
TEST(test_request_without_a_target_has_unknown_fate)
{
	struct bb_replay *r;
	unsigned int again, i;
	struct bb_wc wc;
	int err;

	for (again = 0; again < 2; again++) {
		r = start(BB_REPLAY_UNKNOWN, "soft0", NULL);
		for (i = 0; i < 3; i++)
			assert_int_equal(
				put(r, 2000 + i, 14 + i, 3 + i, BB_SEND_SIGNALED, false, &err), 1);
		if (again) {
			region.rkey += 77;
			restart(r);
			assert_int_equal(bb_replay_pending(r), 3);
			assert_int_equal(bb_replay_resume(r, reported, &p), 3);
			wc = completion();
			assert_true(bb_replay_completion(r, &wc));
			assert_int_equal(wc.status, BB_WC_REM_ACCESS_ERR);
		}
		strcpy(region.name, "other");
		restart(r);
		assert_int_equal(bb_replay_pending(r), 3 - again);
		assert_int_equal(nreports, 0);
		for (i = again; i < 3; i++)
			assert_int_equal(bb_replay_resume(r, reported, &p), -ENOENT);
		assert_int_equal(nreports, 3 - again);
		for (i = 0; i < nreports; i++) {
			assert_int_equal(reports[i].wc.wr_id, 2000 + again + i);
			assert_int_equal(reports[i].fate, BB_WR_UNKNOWN);
		}
		assert_int_equal(bb_replay_pending(r), 0);
		stop(r);
	}
}

REPLAY_TEST(BB_REPLAY_NOT_DONE, test_each_kind_of_request_follows_the_region)
{
	static const enum bb_wr_opcode kinds[] = {BB_WR_RDMA_READ, BB_WR_ATOMIC_FETCH_AND_ADD,
						  BB_WR_ATOMIC_CMP_AND_SWP,
						  BB_WR_RDMA_WRITE_WITH_IMM};
	uint64_t *from, *there, *here;
	struct bb_sge none = {0};
	struct bb_wc wc;
	uint32_t i;
	int err;

	from = (uint64_t *)(void *)p.b.buf;
	there = (uint64_t *)(void *)(p.b.buf + 8192);
	here = (uint64_t *)(void *)p.a.buf;
	assert_int_equal(put(r, 1, 1, 0, BB_SEND_SIGNALED, true, &err), 1);
	for (i = 0; i < RTE_DIM(kinds); i++) {
		struct bb_sge sge = {(uintptr_t)&here[i], 8, p.a.mr->lkey};
		struct bb_send_wr wr = {.wr_id = 10 + i,
					.opcode = kinds[i],
					.flags = BB_SEND_SIGNALED,
					.sge = &sge,
					.nsge = 1,
					.imm_or_inv = 5};

		here[i] = 70 + i;
		there[i] = 50 + i;
		if (kinds[i] == BB_WR_RDMA_READ || kinds[i] == BB_WR_RDMA_WRITE_WITH_IMM) {
			wr.rdma.raddr = region.addr + 8 * i;
			wr.rdma.rkey = region.rkey;
		} else {
			wr.atomic.raddr = region.addr + 8 * i;
			wr.atomic.rkey = region.rkey;
			wr.atomic.compare_add = kinds[i] == BB_WR_ATOMIC_FETCH_AND_ADD ? 3 : 50 + i;
			wr.atomic.swap = 99;
		}
		assert_int_equal(bb_replay_post(r, &wr, 1, &err), 1);
	}
	wc = completion();
	assert_true(bb_replay_completion(r, &wc));
	assert_int_equal(wc.status, BB_WC_REM_ACCESS_ERR);
	OK(bb_region_of(p.b.mr, "buf", 8192, 4096, &region));
	restart(r);
	assert_int_equal(nreports, 0);
	OK(bb_post_recv(l.qb, 1, &none, 0));
	bb_qp_ring_recv(l.qb);
	assert_int_equal(bb_replay_resume(r, reported, &p), RTE_DIM(kinds));
	for (i = 0; i < RTE_DIM(kinds); i++) {
		wc = completion();
		assert_true(bb_replay_completion(r, &wc));
		assert_int_equal(wc.wr_id, 10 + i);
		assert_int_equal(wc.status, BB_WC_SUCCESS);
		/* The memory of the former region is unchanged. */
		assert_int_equal(from[i], 0);
	}
	assert_int_equal(here[0], 50);
	assert_int_equal(here[1], 51);
	assert_int_equal(there[1], 54);
	assert_int_equal(here[2], 52);
	assert_int_equal(there[2], 99);
	assert_int_equal(there[3], 73);
}

/*
 * A WRITE_WITH_IMM of four packets finds no receive. Three packets have been written, so the
 * request may have been executed. The application polls its failure, or the event reports it.
 */
TEST(test_partly_written_request_has_unknown_fate)
{
	struct bb_sge sge, none = {0};
	struct bb_replay *r;
	struct bb_cm_event ev;
	bool again, polled;
	unsigned int i, n;
	struct bb_wc wc;
	int err;

	for (i = 0; i < 4; i++) {
		again = i % 2 != 0;
		polled = i / 2 != 0;
		open_pair("soft0,wire=1", "soft1,wire=1");
		p.a.param.path_mtu = 256;
		p.b.param.rnr_retry_count = 0;
		r = begin(again ? BB_REPLAY_UNKNOWN : BB_REPLAY_NOT_DONE);
		memset(p.a.buf, 0x5a, 1024);
		sge = (struct bb_sge){(uintptr_t)p.a.buf, 1024, p.a.mr->lkey};
		const struct bb_send_wr wr = {.wr_id = 7,
					      .opcode = BB_WR_RDMA_WRITE_WITH_IMM,
					      .flags = BB_SEND_SIGNALED,
					      .sge = &sge,
					      .nsge = 1,
					      .rdma = {region.addr, region.rkey}};
		assert_int_equal(bb_replay_post(r, &wr, 1, &err), 1);
		if (polled) {
			wc = completion();
			assert_int_equal(wc.status, BB_WC_RNR_RETRY_EXC_ERR);
			assert_false(bb_replay_completion(r, &wc));
		} else {
			for (n = 0; n < 1000; n++) {
				bb_dev_progress(p.a.dev);
				bb_dev_progress(p.b.dev);
			}
			OK(bb_conn_recover(l.a));
		}
		assert_int_equal(p.b.buf[767], 0x5a);
		assert_int_equal(p.b.buf[768], 0);
		ev = expect(&p, &p.a, BB_CM_LOST);
		bb_replay_lost(r, &ev, reported, &p);
		assert_int_equal(bb_replay_pending(r), again);
		assert_int_equal(nreports, !again);
		if (!again) {
			assert_int_equal(reports[0].fate, BB_WR_UNKNOWN);
			assert_int_equal(reports[0].wc.status, BB_WC_RNR_RETRY_EXC_ERR);
		}
		expect(&p, &p.b, BB_CM_LOST);
		expect(&p, &p.b, BB_CM_RECOVERED);
		expect(&p, &p.a, BB_CM_RECOVERED);
		OK(bb_post_recv(l.qb, 1, &none, 0));
		bb_qp_ring_recv(l.qb);
		assert_int_equal(bb_replay_resume(r, reported, &p), again);
		if (again) {
			wc = completion();
			assert_true(bb_replay_completion(r, &wc));
			assert_int_equal(wc.status, BB_WC_SUCCESS);
			assert_int_equal(wc.wr_id, 7);
			assert_int_equal(p.b.buf[1023], 0x5a);
		}
		stop(r);
	}
}

/*
 * A stream of WRITEs over a port that flaps: the application sees each completion once, in order,
 * and no error.
 */
#define STREAM 3000u

TEST(test_writes_over_a_flapping_port_complete_once_in_order)
{
	struct bb_replay *r;
	struct bb_conn_info info;
	struct bb_cm_event ev;
	uint32_t next = 0, done = 0, losses = 0;
	uint64_t end, last;
	struct bb_wc wc;
	int err, ret;

	r = start(BB_REPLAY_UNKNOWN, "soft0,wire=1,flap=12:30", "soft1,wire=1");
	end = wait_end() + 3 * WAIT_S * rte_get_tsc_hz();
	while (done < STREAM || losses < 3) {
		while (put(r, next, next, next % 512, BB_SEND_SIGNALED, false, &err) == 1)
			next++;
		assert_int_equal(err, 0);
		while (bb_cq_poll(p.a.cq, &wc, 1) == 1) {
			if (!bb_replay_completion(r, &wc))
				continue;
			assert_int_equal(wc.status, BB_WC_SUCCESS);
			assert_int_equal(wc.wr_id, done);
			done++;
		}
		turn(&p);
		(void)take(&p.b, &ev);
		if (take(&p.a, &ev)) {
			if (ev.type == BB_CM_LOST) {
				nreports = 0;
				bb_replay_lost(r, &ev, reported, &p);
				for (ret = 0; ret < (int)nreports; ret++, done++) {
					assert_int_equal(reports[ret].fate, BB_WR_DONE);
					assert_int_equal(reports[ret].wc.wr_id, done);
				}
				losses++;
			} else {
				assert_int_equal(ev.type, BB_CM_RECOVERED);
				assert_true(bb_replay_resume(r, reported, &p) >= 0);
			}
		}
		assert_true(rte_get_tsc_cycles() < end);
	}
	bb_conn_query(l.a, &info);
	print_message("%u writes, %u losses\n", done, losses);
	last = ((uint64_t *)(void *)p.b.buf)[(done - 1) % 512];
	assert_true(last >= done - 1 && last % 512 == (done - 1) % 512);
	stop(r);
}

TEST(test_invalid_requests_are_refused)
{
	struct bb_send_wr wr = {.opcode = BB_WR_SEND};
	static struct bb_sge sge[4096];
	struct bb_replay *r, *none;
	struct bb_wc wc = {0};
	uint32_t i;
	int err;

	r = start(BB_REPLAY_NONE, "soft0", NULL);
	assert_int_equal(bb_replay_create(l.a, 0, BB_REPLAY_NONE, &none), -EINVAL);
	assert_int_equal(bb_replay_create(NULL, 1, BB_REPLAY_NONE, &none), -EINVAL);
	assert_int_equal(bb_replay_create(l.a, (1u << 20) + 1, BB_REPLAY_NONE, &none), -EINVAL);
	assert_int_equal(bb_replay_create(l.a, 1, BB_REPLAY_UNKNOWN + 1, &none), -EINVAL);
	wr.sge = sge;
	wr.nsge = 9;
	OK(bb_replay_post(r, &wr, 1, &err));
	assert_int_equal(err, -EINVAL);
	/* More inline data than the replay stores, and pieces that are NULL. */
	wr.flags = BB_SEND_INLINE;
	wr.nsge = 2;
	sge[0].len = BB_REPLAY_MAX_INLINE;
	sge[0].addr = (uintptr_t)p.a.buf;
	sge[1] = (struct bb_sge){(uintptr_t)p.a.buf, 1, 0};
	OK(bb_replay_post(r, &wr, 1, &err));
	assert_int_equal(err, -EINVAL);
	wr.sge = NULL;
	OK(bb_replay_post(r, &wr, 1, &err));
	assert_int_equal(err, -EINVAL);
	wr.flags = 0;
	wr.opcode = BB_WR_LOCAL_INV;
	wr.nsge = 0;
	OK(bb_replay_post(r, &wr, 1, &err));
	assert_int_equal(err, -EINVAL);
	/*
	 * A replay with memory for one request: more inline data or more pieces would overflow
	 * it.
	 */
	assert_int_equal(bb_replay_create(l.a, 1, BB_REPLAY_NONE, &none), -EBUSY);
	bb_replay_destroy(r);
	OK(bb_replay_create(l.a, 1, BB_REPLAY_NONE, &none));
	wr = (struct bb_send_wr){.opcode = BB_WR_SEND, .sge = sge, .nsge = RTE_DIM(sge)};
	OK(bb_replay_post(none, &wr, 1, &err));
	assert_int_equal(err, -EINVAL);
	sge[0] = (struct bb_sge){(uintptr_t)p.a.buf, BUF, 0};
	wr.nsge = 1;
	wr.flags = BB_SEND_INLINE;
	OK(bb_replay_post(none, &wr, 1, &err));
	assert_int_equal(err, -EINVAL);
	assert_int_equal(bb_replay_pending(none), 0);
	bb_replay_destroy(none);
	OK(bb_replay_create(l.a, 16, BB_REPLAY_NONE, &r));
	/* The replay is full before the queue is. */
	for (i = 0; i < 16; i++)
		if (put(r, i, i, i, BB_SEND_SIGNALED, false, &err) != 1)
			break;
	assert_int_equal(err, 0);
	assert_int_equal(bb_replay_pending(r), i);
	/* A completion of another owner whose number ends like one of the replay's. */
	wc.wr_id = UINT64_C(1) << 32;
	assert_true(bb_replay_completion(r, &wc));
	assert_int_equal(wc.wr_id, UINT64_C(1) << 32);
	assert_int_equal(bb_replay_pending(r), i);
	assert_int_equal(put(r, 16, 16, 16, 0, false, &err), 0);
	stop(r);
}

/* Completions of requests of a replay that is destroyed come while the next one has requests. */
TEST(test_next_replay_takes_no_completion_of_the_last)
{
	struct bb_replay *r = start(BB_REPLAY_NONE, "soft0", NULL);
	struct bb_wc wc;
	int err, i;

	for (i = 0; i < 2; i++)
		assert_int_equal(put(r, 1, 1, 0, BB_SEND_SIGNALED, false, &err), 1);
	bb_replay_destroy(r);
	OK(bb_replay_create(l.a, 16, BB_REPLAY_NONE, &r));
	assert_int_equal(put(r, 9, 9, 0, BB_SEND_SIGNALED, false, &err), 1);
	for (i = 0; i < 3; i++) {
		wc = completion();
		assert_int_equal(bb_replay_completion(r, &wc), i == 2);
		assert_int_equal(bb_replay_pending(r), i != 2);
	}
	assert_int_equal(wc.wr_id, 9);
	stop(r);
}

CONNECT_MAIN(RTE_LOG_CRIT)
