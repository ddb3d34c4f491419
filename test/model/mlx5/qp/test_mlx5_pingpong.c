/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Two lcores, each with its own queue pair, UAR and engine of the software device. They exchange
 * messages over every QP type; each side polls only its own objects.
 */
#include <sched.h>

#include <rte_launch.h>
#include <rte_lcore.h>

#include "../mlx5_types.h"

#define ROUNDS 1000u
#define LEN    64u

struct player {
	struct types_env *t;
	enum bb_qp_type type;
	struct side *me;
	const struct bb_ah *ah;
	uint32_t dest;
	bool first;
	int failed; /* Line of the first failed check, 0 if none. */
};

/* cmocka cannot run on a second thread; the main thread reports the line. */
#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond))                                                                       \
			return __LINE__;                                                           \
	} while (0)

static int
take(struct player *p, uint32_t round)
{
	uint64_t end = rte_get_timer_cycles() + 60 * rte_get_timer_hz();
	uint32_t head = types_head(p->type), i;
	unsigned int n = 0;
	struct bb_wc wc;

	while (n == 0 && rte_get_timer_cycles() < end) {
		n = bb_cq_poll(p->me->cq, &wc, 1);
		if (n == 1 && wc.opcode != BB_WC_RECV) {
			CHECK(wc.status == BB_WC_SUCCESS);
			n = 0;
		}
		/* Both threads may share one CPU. */
		if (n == 0)
			sched_yield();
	}
	CHECK(n == 1 && wc.status == BB_WC_SUCCESS && wc.byte_len == LEN + head);
	CHECK(wc.imm == round);
	for (i = 0; i < LEN; i++)
		CHECK(p->me->buf[wc.wr_id + head + i] == (uint8_t)(round + i));
	return 0;
}

static int
receive(struct player *p, uint32_t round)
{
	uint64_t at = 4096 + (round % 8) * 256;
	struct bb_sge sge = sge_of(p->me, at, 200);

	CHECK(bb_post_recv(p->me->qp, at, &sge, 1) == 0);
	bb_qp_ring_recv(p->me->qp);
	return 0;
}

static int
send_to_other(struct player *p, uint32_t round)
{
	struct bb_sge sge = sge_of(p->me, 0, LEN);
	uint64_t end = rte_get_timer_cycles() + 60 * rte_get_timer_hz();
	uint32_t i;
	int ret;

	for (i = 0; i < LEN; i++)
		p->me->buf[i] = (uint8_t)(round + i);
	do {
		struct bb_wc wc;

		ret = p->type == BB_QPT_UD ? bb_post_send_ud_imm(p->me->qp, 1, &sge, 1, p->ah,
								 p->dest, TYPES_QKEY, round, 0)
					   : bb_post_send_imm(p->me->qp, 1, &sge, 1, round, 0);
		/* CQEs of unsignalled sends free room; no receive is due yet. */
		if (ret == -EAGAIN)
			CHECK(bb_cq_poll(p->me->cq, &wc, 1) == 0);
	} while (ret == -EAGAIN && rte_get_timer_cycles() < end);
	CHECK(ret == 0);
	bb_qp_ring(p->me->qp);
	return 0;
}

static int
play(void *arg)
{
	struct player *p = arg;
	uint32_t round;

	for (round = 0; round < ROUNDS && p->failed == 0; round++) {
		if (p->first)
			p->failed = receive(p, round + 1);
		if (p->first && p->failed == 0)
			p->failed = send_to_other(p, round);
		if (p->failed == 0)
			p->failed = take(p, round);
		if (!p->first && p->failed == 0)
			p->failed = receive(p, round + 1);
		if (!p->first && p->failed == 0)
			p->failed = send_to_other(p, round);
	}
	/* Our engine may still have to serve the last message of the other lcore. */
	for (round = 0; round < 1000; round++)
		bb_dev_progress(p->me->dev);
	return 0;
}

/* Posts the first receive before any message is sent: UC and UD do not retry. */
static int
get_ready(void *arg)
{
	struct player *p = arg;

	p->failed = receive(p, 0);
	return 0;
}

TEST(test_threads_that_answer_each_other_lose_no_message)
{
	unsigned int type;

	for (type = BB_QPT_RC; type <= BB_QPT_UD; type++) {
		struct types_env t = {0};
		struct env *e = &t.e;
		struct player a = {.t = &t, .type = type, .me = &e->a, .first = true};
		struct player b = {.t = &t, .type = type, .me = &e->b};
		struct bb_cq_attr cq;
		struct bb_path path;

		env_open(e);
		OK(bb_cq_destroy(e->b.cq));
		bb_cq_attr_init(&cq);
		cq.depth = 1024;
		cq.lcore = rte_get_next_lcore(-1, 1, 0);
		OK(bb_cq_create(e->b.dev, &cq, &e->b.cq));
		e->init.type = type;
		env_qps(e);
		if (type == BB_QPT_UD) {
			OK(bb_qp_ud_up(e->a.qp, 1, 0, TYPES_QKEY, 1));
			OK(bb_qp_ud_up(e->b.qp, 1, 0, TYPES_QKEY, 1));
			types_path(&e->b, 1, &path);
			OK(bb_ah_create(e->a.pd, &path, &t.to_b));
			types_path(&e->a, 1, &path);
			OK(bb_ah_create(e->b.pd, &path, &t.to_a));
			a.ah = t.to_b;
			b.ah = t.to_a;
			a.dest = e->b.qp->qpn;
			b.dest = e->a.qp->qpn;
		} else {
			connect_pair(e->a.qp, e->b.qp, &e->attr);
		}
		assert_int_equal(rte_eal_remote_launch(get_ready, &b, cq.lcore), 0);
		rte_eal_wait_lcore(cq.lcore);
		assert_int_equal(b.failed, 0);
		assert_int_equal(rte_eal_remote_launch(play, &b, cq.lcore), 0);
		play(&a);
		rte_eal_wait_lcore(cq.lcore);
		if (a.failed != 0 || b.failed != 0)
			fail_msg("%s: lines %d and %d", bb_qp_type_name(type), a.failed, b.failed);
		types_stop(&t);
	}
}

TEST_MAIN(env_eal_init("mlx5_pingpong"))
