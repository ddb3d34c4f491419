/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Event-driven CQs through the public API: which CQ raises an event, when, and how often. Side b
 * receives on a CQ with a channel; side a sends.
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <rte_lcore.h>

#include "../mlx5_env.h"

struct ev_env {
	struct env e;
	struct bb_channel *ch;
};

/* Creates b's CQ on a channel, connects both sides and posts @recvs receives of 64 bytes at b. */
static void
start(struct ev_env *v, unsigned int recvs)
{
	struct bb_cq_attr attr;
	unsigned int i;

	env_open(&v->e);
	OK(bb_channel_create(v->e.b.dev, &v->ch));
	OK(bb_cq_destroy(v->e.b.cq));
	bb_cq_attr_init(&attr);
	attr.depth = 1024;
	attr.channel = v->ch;
	OK(bb_cq_create(v->e.b.dev, &attr, &v->e.b.cq));
	env_qps(&v->e);
	connect_pair(v->e.a.qp, v->e.b.qp, &v->e.attr);
	for (i = 0; i < recvs; i++) {
		struct bb_sge sge = sge_of(&v->e.b, 64 * (size_t)i, 64);

		OK(bb_post_recv(v->e.b.qp, i, &sge, 1));
	}
	bb_qp_ring_recv(v->e.b.qp);
}

static void
stop(struct ev_env *v)
{
	struct bb_channel *ch = v->ch;
	struct bb_dev *dev = v->e.b.dev;

	/*
	 * A channel cannot be destroyed while a CQ uses it. The device cannot be closed before
	 * the channel is destroyed.
	 */
	assert_int_equal(bb_channel_destroy(ch), -EBUSY);
	side_close(&v->e.a);
	side_close(&v->e.b);
	OK(bb_pd_free(v->e.a.pd));
	if (v->e.b.pd != v->e.a.pd)
		OK(bb_pd_free(v->e.b.pd));
	assert_int_equal(bb_dev_close(dev), -EBUSY);
	OK(bb_channel_destroy(ch));
	OK(bb_dev_close(v->e.a.dev));
	if (dev != v->e.a.dev)
		OK(bb_dev_close(dev));
}

static void
send_one(struct ev_env *v, uint32_t flags)
{
	struct bb_wc wc;

	OK(bb_post_send_inline(v->e.a.qp, 77, "event", 5, BB_SEND_SIGNALED | flags));
	bb_qp_ring(v->e.a.qp);
	env_poll(&v->e, &v->e.a, &wc, 1);
	assert_int_equal(wc.status, BB_WC_SUCCESS);
}

static void
recv_one(struct ev_env *v)
{
	struct bb_wc wc;

	env_poll(&v->e, &v->e.b, &wc, 1);
	assert_int_equal(wc.status, BB_WC_SUCCESS);
	assert_int_equal(wc.opcode, BB_WC_RECV);
}

static bool
readable(struct ev_env *v)
{
	struct pollfd pfd = {.fd = bb_channel_fd(v->ch), .events = POLLIN};

	return poll(&pfd, 1, 0) == 1;
}

/* Checks that no event arrives, after the device has had time to raise one. */
static void
no_event(struct ev_env *v)
{
	struct bb_cq *cq = NULL;

	assert_int_equal(bb_channel_wait(v->ch, 5, &cq), -EAGAIN);
	assert_null(cq);
	assert_false(readable(v));
}

static void
one_event(struct ev_env *v)
{
	uint64_t end = rte_get_timer_cycles() + ENV_WAIT_S * rte_get_timer_hz();
	struct bb_cq *cq = NULL;

	while (!readable(v) && rte_get_timer_cycles() < end)
		bb_dev_progress(v->e.b.dev);
	assert_true(readable(v));
	OK(bb_channel_get(v->ch, &cq));
	assert_ptr_equal(cq, v->e.b.cq);
	assert_false(readable(v));
	assert_int_equal(bb_channel_get(v->ch, &cq), -EAGAIN);
}

#define T(recvs, name) TEST_ON_AS(struct ev_env, v, start(v, recvs), stop(v), name)

T(64, test_cq_armed_twice_raises_one_event)
{
	OK(bb_cq_arm(v->e.b.cq, false));
	OK(bb_cq_arm(v->e.b.cq, false));
	no_event(v);
	send_one(v, 0);
	one_event(v);
	recv_one(v);
}

/* Arms more often than the two bits of the arming number can count and than the ring is deep. */
T(64, test_every_arming_raises_its_event)
{
	struct bb_sge sge;
	unsigned int i;

	sge = sge_of(&v->e.b, 0, 64);
	for (i = 0; i < 2500; i++) {
		OK(bb_cq_arm(v->e.b.cq, (i & 1) != 0));
		send_one(v, BB_SEND_SOLICITED);
		one_event(v);
		recv_one(v);
		OK(bb_post_recv(v->e.b.qp, i, &sge, 1));
		bb_qp_ring_recv(v->e.b.qp);
	}
}

T(8, test_unread_completions_raise_the_event_that_is_armed_for_them)
{
	struct bb_wc wc[8];

	send_one(v, 0);
	OK(bb_cq_arm(v->e.b.cq, true));
	no_event(v);
	/*
	 * Arming for any completion after arming for solicited ones: the unpolled CQE counts now.
	 */
	OK(bb_cq_arm(v->e.b.cq, false));
	one_event(v);
	/* An unpolled solicited completion counts, too. */
	send_one(v, BB_SEND_SOLICITED);
	send_one(v, 0);
	OK(bb_cq_arm(v->e.b.cq, true));
	one_event(v);
	env_poll(&v->e, &v->e.b, wc, 3);
	assert_int_equal(wc[0].flags & BB_WC_SOLICITED, 0);
	assert_int_equal(wc[1].flags & BB_WC_SOLICITED, BB_WC_SOLICITED);
}

T(8, test_event_of_a_cq_destroyed_meanwhile_is_not_delivered)
{
	struct bb_cq_attr attr;
	struct bb_cq *cq = NULL, *other;
	struct bb_wc wc;

	bb_cq_attr_init(&attr);
	attr.channel = v->ch;
	OK(bb_cq_create(v->e.b.dev, &attr, &other));
	OK(bb_cq_arm(v->e.b.cq, false));
	send_one(v, 0);
	while (!readable(v))
		bb_dev_progress(v->e.b.dev);
	OK(bb_qp_destroy(v->e.b.qp));
	OK(bb_cq_destroy(v->e.b.cq));
	assert_int_equal(bb_channel_get(v->ch, &cq), -EAGAIN);
	assert_null(cq);
	assert_int_equal(bb_cq_poll(other, &wc, 1), 0);
	v->e.b.qp = NULL;
	v->e.b.cq = other;
}

TEST(test_calls_with_null_or_a_foreign_channel_are_refused)
{
	struct bb_channel *ch = NULL;
	struct bb_dev *dev, *far;
	struct bb_cq_attr attr;
	struct bb_cq *cq = NULL;

	OK(bb_dev_open("soft4", &dev));
	OK(bb_dev_open("soft5", &far));
	assert_int_equal(bb_channel_create(NULL, &ch), -EINVAL);
	assert_int_equal(bb_channel_create(dev, NULL), -EINVAL);
	OK(bb_channel_create(dev, &ch));
	assert_int_equal(bb_channel_get(ch, NULL), -EINVAL);
	assert_int_equal(bb_channel_get(NULL, &cq), -EINVAL);
	assert_int_equal(bb_channel_wait(NULL, 0, &cq), -EINVAL);
	assert_int_equal(bb_channel_wait(ch, 0, NULL), -EINVAL);
	assert_int_equal(bb_channel_fd(NULL), -EINVAL);
	assert_int_equal(bb_channel_destroy(NULL), -EINVAL);
	bb_cq_attr_init(&attr);
	attr.channel = ch;
	assert_int_equal(bb_cq_create(far, &attr, &cq), -EINVAL);
	assert_null(cq);
	assert_int_equal(bb_channel_wait(ch, 20, &cq), -EAGAIN);
	assert_int_equal(bb_dev_close(dev), -EBUSY);
	OK(bb_channel_destroy(ch));
	OK(bb_dev_close(dev));
	OK(bb_dev_close(far));
}

/*
 * No wake-up is lost. A sender runs in its own thread; the receiver arms, polls until the CQ is
 * empty, and sleeps. The sender waits for an acknowledgement now and then, so that both sides
 * become idle again and again. A lost event shows as a wait that times out. On a loaded machine
 * each change of sides waits for a time slice; the test then sends as many messages as fit into
 * STRESS_S seconds. With two engines each message waits for both threads, so there are fewer
 * messages.
 */
#define STRESS       (env_two_uars() ? 2000u : 100000u)
#define STRESS_S     10
#define STRESS_LEAST 500u

struct stress {
	struct ev_env v;
	uint32_t total; /* Messages to send; reduced once, with __atomic. */
	uint32_t got;
};

static void *
sender(void *arg)
{
	struct stress *s = arg;
	struct bb_qp *qp = s->v.e.a.qp;
	struct bb_wc wc[16];
	uint64_t end = rte_get_timer_cycles() + STRESS_S * rte_get_timer_hz();
	uint32_t i = 0, total = STRESS, pause = 12345;

	while (i < total) {
		/*
		 * Set before the last message is sent: that message wakes the receiver, which
		 * needs the total.
		 */
		if (total == STRESS && i >= STRESS_LEAST && rte_get_timer_cycles() > end) {
			total = i + 1;
			__atomic_store_n(&s->total, total, __ATOMIC_RELEASE);
		}
		if (i - __atomic_load_n(&s->got, __ATOMIC_ACQUIRE) < 48 &&
		    bb_post_send_inline(qp, i, &i, sizeof(i), 0) == 0) {
			i++;
			pause = pause * 1664525 + 1013904223;
			if ((pause >> 16 & 3) != 0)
				continue;
		}
		bb_qp_ring(qp);
		if (bb_cq_poll(s->v.e.a.cq, wc, RTE_DIM(wc)) == 0)
			sched_yield();
	}
	bb_qp_ring(qp);
	while (__atomic_load_n(&s->got, __ATOMIC_ACQUIRE) != total)
		if (bb_cq_poll(s->v.e.a.cq, wc, RTE_DIM(wc)) == 0)
			sched_yield();
	return NULL;
}

TEST(test_no_lost_wakeup)
{
	struct bb_wc wc[16];
	struct stress s = {.total = STRESS};
	uint32_t sleeps = 0, i, n;
	struct bb_cq *cq;
	pthread_t thread;
	int ret;

	start(&s.v, 64);
	/* The thread takes over the QP. Builds with owner checks would refuse it otherwise. */
	s.v.e.a.qp->sq.owner = LCORE_ID_ANY;
	assert_int_equal(pthread_create(&thread, NULL, sender, &s), 0);
	while (s.got < __atomic_load_n(&s.total, __ATOMIC_ACQUIRE)) {
		OK(bb_cq_arm(s.v.e.b.cq, false));
		while ((n = bb_cq_poll(s.v.e.b.cq, wc, RTE_DIM(wc))) != 0) {
			for (i = 0; i < n; i++) {
				uint32_t seq = s.got + i;
				struct bb_sge sge = sge_of(&s.v.e.b, 64 * (wc[i].wr_id & 63), 64);

				assert_int_equal(wc[i].status, BB_WC_SUCCESS);
				assert_memory_equal((void *)(uintptr_t)sge.addr, &seq, 4);
				OK(bb_post_recv(s.v.e.b.qp, wc[i].wr_id, &sge, 1));
			}
			bb_qp_ring_recv(s.v.e.b.qp);
			__atomic_fetch_add(&s.got, n, __ATOMIC_RELEASE);
		}
		if (s.got == __atomic_load_n(&s.total, __ATOMIC_ACQUIRE))
			break;
		sleeps++;
		ret = bb_channel_wait(s.v.ch, ENV_WAIT_S * 1000, &cq);
		assert_int_equal(ret, 0);
		assert_ptr_equal(cq, s.v.e.b.cq);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	printf("%u messages, %u waits\n", s.got, sleeps);
	stop(&s.v);
}

/*
 * An armed CQ still waits for its next completion after a resize, whether or not the device had
 * seen the arming.
 */
TEST(test_resize_of_an_armed_cq_raises_no_event)
{
	unsigned int i;

	for (i = 0; i < 8; i++) {
		const bool solicited = (i & 1) != 0, seen = (i & 2) != 0, before = (i & 4) != 0;
		struct ev_env v;

		start(&v, 16);
		/* Moves the consumer index off 0. */
		if (before) {
			send_one(&v, 0);
			recv_one(&v);
		}
		OK(bb_cq_arm(v.e.b.cq, solicited));
		if (seen)
			no_event(&v);
		OK(bb_cq_resize(v.e.b.cq, 2048));
		no_event(&v);
		OK(bb_cq_resize(v.e.b.cq, 512));
		no_event(&v);
		/*
		 * A moderated event (one or two CQEs) does not count the resize as a completion
		 * either.
		 */
		OK(bb_cq_moderate(v.e.b.cq, 1, 0));
		no_event(&v);
		if (solicited) {
			send_one(&v, 0);
			recv_one(&v);
			no_event(&v);
		}
		send_one(&v, BB_SEND_SOLICITED);
		one_event(&v);
		recv_one(&v);
		no_event(&v);
		/* After the event the CQ is not armed, and a second resize does not arm it. */
		OK(bb_cq_resize(v.e.b.cq, 1024));
		send_one(&v, BB_SEND_SOLICITED);
		recv_one(&v);
		no_event(&v);
		OK(bb_cq_arm(v.e.b.cq, false));
		no_event(&v);
		send_one(&v, 0);
		one_event(&v);
		recv_one(&v);
		stop(&v);
	}
}

TEST_MAIN(env_eal_init("cq_event"))
