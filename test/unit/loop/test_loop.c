/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The poll loop in one thread: attaching, bursts, accounting, changes from callbacks. */
#include "loop_fake.h"

TEST(test_create_refuses_sizes_out_of_range)
{
	struct bb_loop *loop = (struct bb_loop *)(uintptr_t)1;
	struct bb_loop_attr attr = DEFAULTS(loop_attr);

	attr.burst = 0;
	assert_int_equal(bb_loop_create(&attr, &loop), -EINVAL);
	attr.burst = BB_LOOP_MAX_BURST + 1;
	assert_int_equal(bb_loop_create(&attr, &loop), -EINVAL);
	bb_loop_attr_init(&attr);
	attr.max_cqs = BB_LOOP_MAX_OBJECTS + 1;
	assert_int_equal(bb_loop_create(&attr, &loop), -EINVAL);
	bb_loop_attr_init(&attr);
	attr.max_pollers = UINT32_MAX;
	assert_int_equal(bb_loop_create(&attr, &loop), -EINVAL);
	bb_loop_attr_init(&attr);
	attr.lcore = 100;
	assert_int_equal(bb_loop_create(&attr, &loop), -EINVAL);
	bb_loop_attr_init(&attr);
	attr.size--;
	assert_int_equal(bb_loop_create(&attr, &loop), -EINVAL);
	assert_ptr_equal(loop, (void *)(uintptr_t)1);
}

TEST(test_attach_refuses_foreign_repeated_and_surplus_cqs)
{
	struct bb_loop *loop = loop_new(0);
	struct fake *f[3] = {fake_new(0), fake_new(0), fake_new(0)};

	assert_int_equal(bb_loop_attach_cq(loop, NULL, on_cq, NULL), -EINVAL);
	assert_int_equal(bb_loop_attach_cq(loop, &f[0]->cq, NULL, NULL), -EINVAL);
	f[0]->cq.owner = WORKER;
	assert_int_equal(bb_loop_attach_cq(loop, &f[0]->cq, on_cq, f[0]), -EINVAL);
	f[0]->cq.owner = 0;
	assert_int_equal(bb_loop_detach_cq(loop, &f[0]->cq), -ENOENT);
	assert_int_equal(bb_loop_attach_cq(loop, &f[0]->cq, on_cq, f[0]), 0);
	assert_int_equal(bb_loop_attach_cq(loop, &f[0]->cq, on_cq, f[0]), -EALREADY);
	assert_int_equal(bb_loop_attach_cq(loop, &f[1]->cq, on_cq, f[1]), 0);
	assert_int_equal(bb_loop_attach_cq(loop, &f[2]->cq, on_cq, f[2]), -ENOSPC);
	assert_int_equal(bb_loop_detach_cq(loop, &f[0]->cq), 0);
	assert_int_equal(bb_loop_detach_cq(loop, &f[0]->cq), -ENOENT);
	assert_int_equal(bb_loop_attach_cq(loop, &f[2]->cq, on_cq, f[2]), 0);
	fake_complete(f[1], 3);
	fake_complete(f[2], 4);
	assert_int_equal(bb_loop_run_once(loop), 7);
	assert_int_equal(f[1]->completions, 3);
	assert_int_equal(f[2]->completions, 4);
	assert_int_equal(bb_loop_stop(loop), -EALREADY);
	assert_int_equal(bb_loop_destroy(loop), 0);
	fake_free(f[0]);
	fake_free(f[1]);
	fake_free(f[2]);
}

TEST(test_burst_bounds_completions_per_turn)
{
	struct bb_loop *loop = loop_new(0);
	struct fake *f = fake_new(0);
	struct bb_loop_stats st;

	assert_int_equal(bb_loop_attach_cq(loop, &f->cq, on_cq, f), 0);
	assert_int_equal(bb_loop_run_once(loop), 0);
	assert_int_equal(f->calls, 0);
	fake_complete(f, 70);
	assert_int_equal(bb_loop_run_once(loop), 32);
	assert_int_equal(bb_loop_run_once(loop), 32);
	assert_int_equal(bb_loop_run_once(loop), 6);
	assert_int_equal(bb_loop_run_once(loop), 0);
	assert_fields(*f, calls, 3, largest, 32, completions, 70);
	assert_false(f->misordered);
	assert_int_equal(f->cq_rec[0], bb_be32(70));
	bb_loop_stats(loop, &st);
	assert_fields(st, iterations, 5, idle, 2, completions, 70, work, 0);
	assert_true(st.busy_cycles > 0 && st.idle_cycles > 0);
	assert_int_equal(bb_loop_destroy(loop), 0);
	fake_free(f);
}

TEST(test_without_accounting_no_cycles_are_counted)
{
	struct bb_loop_attr attr = DEFAULTS(loop_attr);
	struct bb_loop_stats st;
	struct bb_loop *loop;

	attr.accounting = false;
	assert_int_equal(bb_loop_create(&attr, &loop), 0);
	assert_int_equal(bb_loop_lcore(loop), rte_lcore_id());
	assert_int_equal(bb_loop_run_once(loop), 0);
	bb_loop_stats(loop, &st);
	assert_fields(st, iterations, 1, idle, 1);
	assert_int_equal(st.busy_cycles + st.idle_cycles, 0);
	assert_int_equal(bb_loop_destroy(loop), 0);
}

/* Makes any further poll of the CQ crash. */
static void
poison(struct fake *f)
{
	memset(&f->cq, 0xff, sizeof(f->cq));
}

static void
detach_self(struct fake *f)
{
	f->rc = bb_loop_detach_cq(f->loop, &f->cq);
	poison(f);
}

static void
detach_other(struct fake *f)
{
	f->rc = bb_loop_detach_cq(f->loop, &f->other->cq);
	poison(f->other);
	f->hook = NULL;
}

TEST(test_callback_may_detach_its_own_cq)
{
	struct bb_loop *loop = loop_new(0);
	struct fake *a = fake_new(0), *b = fake_new(0);

	a->loop = b->loop = loop;
	a->hook = detach_self;
	assert_int_equal(bb_loop_attach_cq(loop, &a->cq, on_cq, a), 0);
	assert_int_equal(bb_loop_attach_cq(loop, &b->cq, on_cq, b), 0);
	fake_complete(a, 40);
	fake_complete(b, 1);
	assert_int_equal(bb_loop_run_once(loop), 33);
	assert_int_equal(a->rc, 0);
	fake_complete(b, 1);
	assert_int_equal(bb_loop_run_once(loop), 1);
	assert_int_equal(a->calls, 1);
	assert_int_equal(b->calls, 2);
	assert_int_equal(bb_loop_detach_cq(loop, &b->cq), 0);
	fake_free(a);

	/* The first poller detaches the second, which has a completion waiting. */
	a = fake_new(0);
	a->loop = loop;
	a->hook = detach_other;
	a->other = b;
	assert_int_equal(bb_loop_attach_cq(loop, &a->cq, on_cq, a), 0);
	assert_int_equal(bb_loop_attach_cq(loop, &b->cq, on_cq, b), 0);
	fake_complete(a, 1);
	fake_complete(b, 1);
	assert_int_equal(bb_loop_run_once(loop), 1);
	assert_int_equal(a->rc, 0);
	assert_int_equal(b->calls, 2);
	assert_int_equal(bb_loop_destroy(loop), 0);
	fake_free(a);
	fake_free(b);
}

static void
attach_other(struct fake *f)
{
	f->rc = bb_loop_attach_cq(f->loop, &f->other->cq, on_cq, f->other);
	f->hook = NULL;
}

TEST(test_callback_may_attach_another_cq)
{
	struct bb_loop *loop = loop_new(0);
	struct fake *a = fake_new(0), *b = fake_new(0);

	a->loop = loop;
	a->other = b;
	a->hook = attach_other;
	assert_int_equal(bb_loop_attach_cq(loop, &a->cq, on_cq, a), 0);
	fake_complete(a, 1);
	fake_complete(b, 2);
	assert_true(bb_loop_run_once(loop) >= 1);
	assert_int_equal(a->rc, 0);
	bb_loop_run_once(loop);
	assert_int_equal(b->completions, 2);
	assert_int_equal(bb_loop_destroy(loop), 0);
	fake_free(a);
	fake_free(b);
}

static void
stop_at_three(struct poller *p)
{
	p->rc[0] = bb_loop_run_once(p->loop);
	p->rc[1] = bb_loop_run(p->loop);
	p->rc[2] = bb_loop_destroy(p->loop);
	p->rc[3] = bb_loop_stop(p->loop);
}

TEST(test_run_returns_after_stop)
{
	struct poller p = {.at_three = stop_at_three};
	struct bb_loop_stats st;

	p.loop = loop_new(0);
	assert_int_equal(bb_loop_attach_poller(p.loop, NULL, &p), -EINVAL);
	assert_int_equal(bb_loop_attach_poller(p.loop, on_poll, &p), 0);
	assert_int_equal(bb_loop_attach_poller(p.loop, on_poll, &p), -EALREADY);
	assert_int_equal(bb_loop_run(p.loop), 0);
	assert_fields(p, calls, 3, rc[0], -EBUSY, rc[1], -EBUSY, rc[2], -EBUSY, rc[3], 0);
	assert_false(bb_loop_running(p.loop));
	bb_loop_stats(p.loop, &st);
	assert_fields(st, iterations, 3, work, 3, idle, 0);

	p.calls = 0;
	assert_int_equal(bb_loop_run(p.loop), 0);
	assert_int_equal(p.calls, 3);
	assert_int_equal(bb_loop_detach_poller(p.loop, on_poll, NULL), -ENOENT);
	assert_int_equal(bb_loop_detach_poller(p.loop, on_poll, &p), 0);
	assert_int_equal(bb_loop_run_once(p.loop), 0);
	assert_int_equal(bb_loop_destroy(p.loop), 0);
}

static void
swap_at_three(struct poller *p)
{
	static struct poller second;

	second.calls = 0;
	p->rc[0] = bb_loop_detach_poller(p->loop, on_poll, p);
	p->rc[1] = bb_loop_attach_poller(p->loop, on_poll, &second);
	p->rc[2] = bb_loop_attach_poller(p->loop, on_poll, p);
	p->rc[3] = bb_loop_attach_poller(p->loop, on_poll, &p->rc);
	bb_loop_detach_poller(p->loop, on_poll, &second);
}

TEST(test_poller_may_change_the_list_of_pollers)
{
	struct poller p = {.at_three = swap_at_three};

	p.loop = loop_new(0);
	assert_int_equal(bb_loop_attach_poller(p.loop, on_poll, &p), 0);
	while (p.calls < 3)
		assert_int_equal(bb_loop_run_once(p.loop) >= 1, 1);
	assert_fields(p, rc[0], 0, rc[1], 0, rc[2], 0, rc[3], -ENOSPC);
	p.calls = 10;
	assert_int_equal(bb_loop_run_once(p.loop), 1);
	assert_int_equal(p.calls, 11);
	assert_int_equal(bb_loop_destroy(p.loop), 0);
}

static void
change_other_at_three(struct poller *p)
{
	p->rc[0] = bb_loop_attach_poller(p->other, on_poll, p);
	p->rc[1] = bb_loop_run_once(p->other);
	p->rc[2] = bb_loop_wait(p->other);
}

TEST(test_callback_may_not_change_another_loop)
{
	struct poller p = {.at_three = change_other_at_three};

	p.loop = loop_new(0);
	p.other = loop_new(0);
	assert_int_equal(bb_loop_attach_poller(p.loop, on_poll, &p), 0);
	while (p.calls < 3)
		bb_loop_run_once(p.loop);
	assert_fields(p, rc[0], -EBUSY, rc[1], -EBUSY, rc[2], -EBUSY);
	assert_int_equal(bb_loop_detach_poller(p.other, on_poll, &p), -ENOENT);
	assert_int_equal(bb_loop_destroy(p.loop), 0);
	assert_int_equal(bb_loop_destroy(p.other), 0);
}

TEST(test_start_on_the_main_lcore_is_refused)
{
	struct bb_loop *loop = loop_new(rte_get_main_lcore());

	assert_int_equal(bb_loop_start(loop), -EINVAL);
	assert_int_equal(bb_loop_service_start(loop), -EINVAL);
	assert_int_equal(bb_loop_wait(loop), 0);
	assert_int_equal(bb_loop_destroy(loop), 0);
}

TEST_MAIN_WITH(setup, teardown, 0)
