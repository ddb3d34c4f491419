/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Two connected QPs on the software device, through the public API.
 *
 * The environment variable BB_VARIANT chooses the devices: unset, both sides share one
 * device, with one UAR and one engine; "two_uars" gives each side a device, both run by
 * one thread; "thread" gives the device a thread of its own.
 */
#ifndef MLX5_ENV_H
#define MLX5_ENV_H

#include <errno.h>
#include <string.h>
#include <time.h>

#include <rte_cycles.h>
#include <rte_malloc.h>

#include "../../fakes/bare_eal.h"
#include "bb_test_on.h"
#include "bluebell.h"

#define ENV_BUF    (256 * 1024)
#define ENV_WAIT_S 30
#define ENV_ALL                                                                                    \
	(BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_READ |                  \
	 BB_ACCESS_REMOTE_ATOMIC)

struct side {
	struct bb_dev *dev;
	struct bb_pd *pd;
	struct bb_cq *cq;
	struct bb_qp *qp;
	struct bb_mr *mr;
	uint8_t *buf;
};

struct env {
	struct side a, b;
	struct bb_qp_attr attr; /* Attributes that both sides connect with. */
	struct bb_qp_init_attr init;
};

static inline bool
env_variant_is(const char *name)
{
	const char *variant = getenv("BB_VARIANT");

	return variant != NULL && strcmp(variant, name) == 0;
}

static inline bool
env_two_uars(void)
{
	return env_variant_is("two_uars");
}

static inline bool
env_thread(void)
{
	return env_variant_is("thread");
}

static inline const char *
env_dev_a(void)
{
	return env_thread() ? "soft0,progress=thread" : "soft0";
}

static inline int
env_eal_init(const char *program)
{
	return eal_start_or_skip(program, "0,1",
				 EAL_OPTIONS("--no-huge", "-m", "256", "--log-level=5"
#ifndef ENV_TELEMETRY
					     ,
					     "--no-telemetry"
#endif
					     ));
}

static inline void
side_open(struct side *s, struct bb_dev *dev, struct bb_pd *pd)
{
	struct bb_dev_attr attr;
	struct bb_cq_attr cq;

	OK(bb_dev_query(dev, &attr));
	s->dev = dev;
	s->pd = pd;
	bb_cq_attr_init(&cq);
	cq.depth = 1024;
	OK(bb_cq_create(dev, &cq, &s->cq));
	s->buf = rte_zmalloc("env", ENV_BUF, 4096);
	assert_non_null(s->buf);
	OK(bb_mr_reg(pd, s->buf, ENV_BUF,
		     attr.atomics ? ENV_ALL : ENV_ALL & ~BB_ACCESS_REMOTE_ATOMIC, &s->mr));
}

/*
 * Creates devices, PDs, CQs and buffers of both sides, but no QPs. Both sides are on one device
 * if @spec_b is NULL. Sets defaults in env->attr and init.
 */
static inline void
env_open_two(struct env *e, const char *spec_a, const char *spec_b)
{
	struct bb_dev *dev_a, *dev_b;
	struct bb_pd *pd;

	memset(e, 0, sizeof(*e));
	OK(bb_dev_open(spec_a, &dev_a));
	OK(bb_pd_alloc(dev_a, &pd));
	side_open(&e->a, dev_a, pd);
	dev_b = dev_a;
	if (spec_b != NULL) {
		OK(bb_dev_open(spec_b, &dev_b));
		OK(bb_pd_alloc(dev_b, &pd));
	}
	side_open(&e->b, dev_b, pd);
	bb_qp_attr_init(&e->attr);
	e->attr.access = BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_READ | BB_ACCESS_REMOTE_ATOMIC;
	bb_qp_init_attr_init(&e->init);
	e->init.max_sge = 4;
	e->init.max_recv_sge = 4;
}

static inline void
env_open_spec(struct env *e, const char *spec)
{
	env_open_two(e, spec, env_two_uars() ? "soft1" : NULL);
}

static inline void
env_open(struct env *e)
{
	env_open_spec(e, env_dev_a());
}

static inline void
side_qp(struct env *e, struct side *s)
{
	struct bb_qp_init_attr init = e->init;

	init.send_cq = s->cq;
	init.recv_cq = s->cq;
	OK(bb_qp_create(s->pd, &init, &s->qp));
}

static inline void
connect_pair(struct bb_qp *a, struct bb_qp *b, const struct bb_qp_attr *attr)
{
	struct bb_qp_addr addr_a, addr_b;

	OK(bb_qp_addr(a, 1, attr->path.sgid_index, &addr_a));
	OK(bb_qp_addr(b, 1, attr->path.sgid_index, &addr_b));
	OK(bb_qp_connect(a, &addr_a, &addr_b, attr));
	OK(bb_qp_connect(b, &addr_b, &addr_a, attr));
}

static inline void
env_qps(struct env *e)
{
	side_qp(e, &e->a);
	side_qp(e, &e->b);
}

/* Creates a QP on each side and connects them. */
static inline void
env_up(struct env *e)
{
	env_qps(e);
	connect_pair(e->a.qp, e->b.qp, &e->attr);
}

static inline void
env_start(struct env *e)
{
	env_open(e);
	env_up(e);
}

static inline void
side_close(struct side *s)
{
	if (s->qp != NULL)
		OK(bb_qp_destroy(s->qp));
	OK(bb_mr_dereg(s->mr));
	OK(bb_cq_destroy(s->cq));
	rte_free(s->buf);
}

static inline void
env_stop(struct env *e)
{
	side_close(&e->a);
	side_close(&e->b);
	OK(bb_pd_free(e->a.pd));
	if (e->b.pd != e->a.pd)
		OK(bb_pd_free(e->b.pd));
	OK(bb_dev_close(e->a.dev));
	if (e->b.dev != e->a.dev)
		OK(bb_dev_close(e->b.dev));
}

/* Polls exactly @n completions of one side; fails after the time limit of a hanging test. */
static inline void
env_poll_at(struct env *e, struct side *s, struct bb_wc *wc, unsigned int n, const char *file,
	    int line)
{
	uint64_t end = rte_get_timer_cycles() + ENV_WAIT_S * rte_get_timer_hz();
	unsigned int got = 0;

	while (got < n && rte_get_timer_cycles() < end) {
		got += bb_cq_poll(s->cq, wc + got, n - got);
		bb_dev_progress(e->a.dev);
		bb_dev_progress(e->b.dev);
	}
	if (got != n) {
		print_error("%u of %u completions came\n", got, n);
		_fail(file, line);
	}
}
#define env_poll(e, s, wc, n) env_poll_at(e, s, wc, n, __FILE__, __LINE__)

static inline void
expect_at(const struct bb_wc *wc, const struct bb_qp *qp, uint64_t wr_id, enum bb_wc_status status,
	  const char *file, int line)
{
	if (wc->qp == qp && wc->wr_id == wr_id && wc->status == status)
		return;
	print_error("request %ju of QP 0x%x: %s; expected request %ju of QP 0x%x: %s\n",
		    (uintmax_t)wc->wr_id, wc->qp->qpn, bb_wc_status_name(wc->status),
		    (uintmax_t)wr_id, qp->qpn, bb_wc_status_name(status));
	_fail(file, line);
}
#define expect(wc, qp, wr_id, status) expect_at(wc, qp, wr_id, status, __FILE__, __LINE__)

/* Polls one completion of a side's QP and checks it. */
#define env_expect(e, s, wr_id, status)                                                            \
	do {                                                                                       \
		struct bb_wc wc_;                                                                  \
                                                                                                   \
		env_poll(e, s, &wc_, 1);                                                           \
		expect(&wc_, (s)->qp, wr_id, status);                                              \
	} while (0)

/* The same, after it rang the doorbell of the side's QP. */
#define env_done(e, s, wr_id, status)                                                              \
	do {                                                                                       \
		bb_qp_ring((s)->qp);                                                               \
		env_expect(e, s, wr_id, status);                                                   \
	} while (0)

/*
 * Returns the CPU time of this thread, including time spent polling, excluding time that other
 * threads had the CPU.
 */
static inline uint64_t
env_cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Checks that no further completion arrives. */
static inline void
env_silent(struct env *e, struct side *s)
{
	struct bb_wc wc;
	unsigned int i;

	for (i = 0; i < 100; i++) {
		bb_dev_progress(e->a.dev);
		bb_dev_progress(e->b.dev);
		assert_int_equal(bb_cq_poll(s->cq, &wc, 1), 0);
	}
}

/* Waits for the next event of a device. */
static inline void
env_event(struct env *e, struct bb_dev *dev, struct bb_event *ev)
{
	uint64_t end = rte_get_timer_cycles() + ENV_WAIT_S * rte_get_timer_hz();
	int ret;

	do {
		bb_dev_progress(e->a.dev);
		ret = bb_event_get(dev, ev);
	} while (ret == -EAGAIN && rte_get_timer_cycles() < end);
	assert_int_equal(ret, 0);
}

/* A test of two connected QPs, and a test that creates the QPs itself; e is the struct env. */
#define ENV_TEST(name)      TEST_ON_AS(struct env, e, env_start(e), env_stop(e), name)
#define ENV_TEST_OPEN(name) TEST_ON_AS(struct env, e, env_open(e), env_stop(e), name)

static inline void
fill(uint8_t *p, size_t len, uint32_t seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		p[i] = (uint8_t)(seed * 131 + i * 7 + (i >> 8));
}

static inline struct bb_sge
sge_of(const struct side *s, size_t offset, uint32_t len)
{
	return (struct bb_sge){(uintptr_t)s->buf + offset, len, s->mr->lkey};
}

static inline uint64_t
raddr_of(const struct side *s, size_t offset)
{
	return (uintptr_t)s->buf + offset;
}

#endif
