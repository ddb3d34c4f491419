/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Traffic on TCP connections that recover, on one device whose address another process changes,
 * for moves.py. There are two streams of numbered WRITEs. In one, requests that did not complete
 * are posted again; in the other they are reported.
 *
 *   cm_move EAL-OPTIONS -- DEVICE
 *
 * Answers each input line with one line. It has, for each stream: how often it was lost and
 * recovered; its requests completed, failed and reported; and the index of its GID. After "end"
 * it ends the connections and checks the memory that the WRITEs left.
 */
#include <inttypes.h>
#include <poll.h>

#include "../model/connect/connect_env.h"

#define FLOWS     2u
#define SLOTS     64u /* slots of a stream, one per number; more than are in flight */
#define AWAY      8u  /* requests in flight */
#define SILENCE_S 5

struct flow {
	struct link l;
	struct bb_replay *replay;
	uint64_t posted, next; /* number of the next request to post, and to end */
	uint64_t done, failed, reported;
	unsigned int lost, back;
	uint64_t heard; /* time of the last completion or recovery */
};

static struct pair p;
static struct flow flows[FLOWS];

static uint64_t *
slot(uint8_t *buf, const struct flow *f, uint64_t number)
{
	return (uint64_t *)(void *)buf + (size_t)(f - flows) * SLOTS + number % SLOTS;
}

/* Each request ends once, in order. */
static void
ended(struct flow *f, uint64_t number, uint64_t *count)
{
	if (number != f->next)
		fail_msg("stream %u: %" PRIu64 " ends, not %" PRIu64 "; lost %u, back %u",
			 (unsigned int)(f - flows), number, f->next, f->lost, f->back);
	f->next++;
	f->heard = rte_get_tsc_cycles();
	(*count)++;
}

static void
report(const struct bb_wr_end *end, void *arg)
{
	struct flow *f = arg;

	ended(f, end->wc.wr_id, end->fate == BB_WR_DONE ? &f->done : &f->reported);
}

static void
event(const struct bb_cm_event *ev)
{
	struct flow *f = ev->conn == flows[0].l.a ? &flows[0] : &flows[1];

	assert_ptr_equal(ev->conn, f->l.a);
	if (ev->type == BB_CM_LOST) {
		f->lost++;
		bb_replay_lost(f->replay, ev, report, f);
	} else {
		assert_int_equal(ev->type, BB_CM_RECOVERED);
		assert_false(ev->restarted);
		assert_true(bb_replay_resume(f->replay, report, f) >= 0);
		f->back++;
		f->heard = rte_get_tsc_cycles();
	}
}

/*
 * rxe may retry without end, whatever the retry count: while the address is gone, requests get
 * through and acknowledgements do not. Then the application declares the connection broken.
 */
static void
watch(struct flow *f)
{
	if (f->lost != f->back || rte_get_tsc_cycles() - f->heard < SILENCE_S * rte_get_tsc_hz())
		return;
	f->heard = rte_get_tsc_cycles();
	/* It may already be broken. */
	(void)bb_conn_recover(f->l.a);
}

static void
post(struct flow *f)
{
	struct bb_sge sge = {0, sizeof(uint64_t), p.a.mr->lkey};
	struct bb_send_wr wr = {.opcode = BB_WR_RDMA_WRITE, .flags = BB_SEND_SIGNALED};
	int err = 0;

	wr.sge = &sge;
	wr.nsge = 1;
	while (f->posted - f->next < AWAY) {
		struct bb_region r;

		assert_int_equal(bb_conn_region(f->l.a, "buf", &r), 0);
		*slot(p.a.buf, f, f->posted) = f->posted;
		sge.addr = (uintptr_t)slot(p.a.buf, f, f->posted);
		wr.wr_id = f->posted;
		wr.rdma.raddr = r.addr + (sge.addr - (uintptr_t)p.a.buf);
		wr.rdma.rkey = r.rkey;
		if (bb_replay_post(f->replay, &wr, 1, &err) != 1) {
			assert_int_equal(err, 0);
			return;
		}
		f->posted++;
	}
}

static void
work(bool posts)
{
	struct bb_cm_event ev;
	struct bb_wc wc[16];
	unsigned int n;

	turn(&p);
	n = bb_cq_poll(p.a.cq, wc, 16);
	for (unsigned int i = 0; i < n; i++) {
		struct flow *f = wc[i].qp == flows[0].l.qa ? &flows[0] : &flows[1];

		if (bb_replay_completion(f->replay, &wc[i]))
			ended(f, wc[i].wr_id,
			      wc[i].status == BB_WC_SUCCESS ? &f->done : &f->failed);
	}
	while (take(&p.a, &ev))
		event(&ev);
	/* The events of the peer's end are the same. */
	while (take(&p.b, &ev))
		assert_true(ev.type == BB_CM_LOST || ev.type == BB_CM_RECOVERED);
	for (unsigned int i = 0; i < FLOWS; i++) {
		watch(&flows[i]);
		if (posts)
			post(&flows[i]);
	}
}

static void
tell(void)
{
	for (unsigned int i = 0; i < FLOWS; i++) {
		const struct flow *f = &flows[i];
		struct bb_conn_info info;

		bb_conn_query(f->l.a, &info);
		printf("%slost=%u back=%u done=%" PRIu64 " failed=%" PRIu64 " reported=%" PRIu64
		       " gid=%u",
		       i != 0 ? " | " : "", f->lost, f->back, f->done, f->failed, f->reported,
		       info.sgid_index);
	}
	printf("\n");
}

/* Runs until "end" or the end of the input. */
static void
serve(void)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	char text[64];

	for (;;) {
		ssize_t n;

		work(true);
		if (poll(&in, 1, 0) <= 0)
			continue;
		n = read(in.fd, text, sizeof(text));
		if (n <= 0 || text[0] == 'e')
			return;
		if (memchr(text, '\n', (size_t)n) != NULL)
			tell();
	}
}

static void
check(const struct flow *f)
{
	assert_int_equal(f->posted, f->next);
	assert_int_equal(f->done + f->failed + f->reported, f->next);
	assert_true(f->done > SLOTS);
	/* The last WRITEs were posted when no address moved. */
	for (uint64_t i = 0; i < SLOTS; i++)
		assert_int_equal(*slot(p.b.buf, f, i), *slot(p.a.buf, f, i));
}

static void
test_moves(void **st)
{
	struct bb_cm_attr attr;
	struct bb_region r;
	uint64_t more;

	bb_cm_attr_init(&attr);
	attr.poll_us = 1000;
	pair_open_with(&p, *st, NULL, &attr);
	for (unsigned int i = 0; i < 2; i++) {
		struct bb_conn_param *param = i == 0 ? &p.a.param : &p.b.param;

		param->recover_ms = 4 * WAIT_S * 1000;
		param->backoff_min_ms = 10;
		param->backoff_max_ms = 100;
		param->ack_timeout = 14;
		param->retry_count = 3; /* rxe takes 7 for unlimited retries */
		param->gid.family = BB_GID_IPV4;
	}
	assert_int_equal(bb_region_of(p.b.mr, "buf", 0, 0, &r), 0);
	p.b.param.regions = &r;
	p.b.param.nregions = 1;
	for (unsigned int i = 0; i < FLOWS; i++) {
		link_up(&p, &flows[i].l);
		assert_int_equal(bb_replay_create(flows[i].l.a, 2 * AWAY,
						  i == 0 ? BB_REPLAY_UNKNOWN : BB_REPLAY_NONE,
						  &flows[i].replay),
				 0);
		flows[i].heard = rte_get_tsc_cycles();
	}
	printf("connected\n");
	serve();
	/* Each slot once more, then no request is in flight. */
	more = RTE_MAX(flows[0].posted, flows[1].posted) + 2 * SLOTS;
	for (uint64_t end = wait_end(); flows[0].next < more || flows[1].next < more;) {
		work(true);
		assert_true(rte_get_tsc_cycles() < end);
	}
	for (uint64_t end = wait_end();
	     flows[0].posted != flows[0].next || flows[1].posted != flows[1].next;) {
		work(false);
		assert_true(rte_get_tsc_cycles() < end);
	}
	for (unsigned int i = 0; i < FLOWS; i++) {
		check(&flows[i]);
		bb_replay_destroy(flows[i].replay);
		link_down(&p, &flows[i].l);
	}
	pair_close(&p);
}

int
main(int argc, char **argv)
{
	int args = rte_eal_init(argc, argv);
	struct CMUnitTest tests[] = {cmocka_unit_test_prestate(test_moves, NULL)};

	if (args < 0 || argc - args != 2)
		return 2;
	setlinebuf(stdout);
	tests[0].initial_state = argv[args + 1];
	return cmocka_run_group_tests_name("cm_move", tests, NULL, NULL);
}
