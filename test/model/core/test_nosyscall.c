/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * In a steady loop the application's post and poll path takes no lock, makes no system call,
 * allocates nothing and divides nothing. The test decodes every executed instruction. The
 * software device's own work is counted separately.
 */
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <sys/syscall.h>

#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_malloc.h>
#include <rte_spinlock.h>

#include "../../fakes/bare_eal.h"
#include "bb_loop.h"
#include "bb_post.h"
#include "bb_test.h"
#include "step.h"

#define BLOCKS 256
#define ROUNDS 10 /* a step costs up to 30 us in a virtual machine */

static void
print_counts(const char *what, const struct step_counts *c)
{
	print_message("%-34s %8" PRIu64 " instructions, %" PRIu64 " locks, %" PRIu64
		      " system calls, %" PRIu64 " divisions, %" PRIu64 " allocations, %" PRIu64
		      " mutexes\n",
		      what, c->instructions, c->locks, c->syscalls, c->divisions, c->allocs,
		      c->mutexes);
}

static void
assert_clean(const char *what, const struct step_counts *c)
{
	print_counts(what, c);
	assert_true(c->instructions > 300);
	assert_int_equal(c->locks, 0);
	assert_int_equal(c->syscalls, 0);
	assert_int_equal(c->divisions, 0);
	assert_int_equal(c->allocs, 0);
	assert_int_equal(c->mutexes, 0);
}

/* ---- Each kind is detected */

static volatile uint64_t number = 7;
static rte_spinlock_t spin = RTE_SPINLOCK_INITIALIZER;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void
do_nothing(void *arg)
{
	(void)arg;
}

static void
do_lock(void *arg)
{
	(void)arg;
	__atomic_fetch_add(&number, 1, __ATOMIC_RELAXED);
}

static void
do_exchange(void *arg)
{
	(void)arg;
	__atomic_exchange_n(&number, 5, __ATOMIC_RELAXED);
}

static void
do_spinlock(void *arg)
{
	(void)arg;
	rte_spinlock_lock(&spin);
	rte_spinlock_unlock(&spin);
}

static void
do_syscall(void *arg)
{
	(void)arg;
	syscall(SYS_getppid);
}

static void
do_division(void *arg)
{
	(void)arg;
	number = 1000 / number;
}

static void
do_malloc(void *arg)
{
	void *volatile p = malloc((size_t)number);

	(void)arg;
	free(p);
}

static void
do_rte_malloc(void *arg)
{
	(void)arg;
	rte_free(rte_malloc("step", (size_t)number, 0));
}

static void
do_mutex(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
}

TEST(test_system_calls_are_counted)
{
	struct step_counts none = {0}, c;

	step_run(do_nothing, NULL, &none);
	assert_true(none.instructions > 0 && none.instructions < 100);
	assert_int_equal(none.locks + none.syscalls + none.divisions, 0);
	assert_int_equal(none.allocs + none.mutexes, 0);

#define ONE(fn, field, least)                                                                      \
	do {                                                                                       \
		memset(&c, 0, sizeof(c));                                                          \
		step_run(fn, NULL, &c);                                                            \
		assert_true(c.field >= (least));                                                   \
	} while (0)
	ONE(do_lock, locks, 1);
	ONE(do_exchange, locks, 1);
	ONE(do_spinlock, locks, 1);
	ONE(do_syscall, syscalls, 1);
	ONE(do_division, divisions, 1);
	ONE(do_malloc, allocs, 2);
	ONE(do_rte_malloc, allocs, 2);
	ONE(do_mutex, mutexes, 1);
}

/* ---- Queues in plain memory, completed by a minimal device */

struct null_rig {
	struct bb_qp qp;
	struct bb_cq cq;
	struct bb_qp *qps[1];
	uint8_t sq[BLOCKS * 64] __attribute__((aligned(64)));
	uint8_t cqes[BLOCKS * 64] __attribute__((aligned(64)));
	struct bb_sq_wqe wqes[BLOCKS];
	uint64_t reg[256] __attribute__((aligned(64)));
	uint32_t sq_rec[2], cq_rec[2];
	uint8_t data[4096];
	uint16_t ci;
	uint32_t pi;
	struct bb_loop *loop;
	unsigned int completions;
	/* Parameters and counts of a run. */
	struct step_counts *app, *device;
	uint32_t batch, rounds;
	bool all, sge;
};

static struct null_rig *
null_new(enum bb_db_mode mode)
{
	struct null_rig *r = aligned_alloc(64, (sizeof(*r) + 63) / 64 * 64);
	struct bb_sq_conf conf;

	assert_non_null(r);
	memset(r, 0, sizeof(*r));
	conf = (struct bb_sq_conf){
		.buf = r->sq,
		.wqes = r->wqes,
		.blocks = BLOCKS,
		.qpn = 9,
		.depth = BLOCKS / 2,
		.max_sge = 1,
		.max_inline = 28,
		.sig_every = BLOCKS / 8,
		.dbrec = &r->sq_rec[1],
		.reg = r->reg,
		.bf_size = 256,
		.db_mode = mode,
		.owner = rte_lcore_id(),
	};
	OK(bb_sq_init(&r->qp.sq, &conf));
	bb_sq_enable(&r->qp.sq, true);
	OK(bb_cqring_init(&r->cq.ring, r->cqes, 8, r->cq_rec));
	r->qps[0] = &r->qp;
	r->cq.qps = r->qps;
	r->cq.owner = rte_lcore_id();
	return r;
}

static void
null_device(struct null_rig *r)
{
	const uint16_t end = (uint16_t)bb_be32(r->sq_rec[1]);

	step_to = r->device;
	for (; r->ci != end; r->ci++) {
		const uint8_t *w = r->sq + (size_t)(r->ci % BLOCKS) * 64;
		struct bb_cqe *cqe = (struct bb_cqe *)(void *)(r->cqes + r->pi % BLOCKS * 64);

		if ((w[11] & BB_WQE_CE_CQE) == 0)
			continue;
		cqe->wqe_counter = bb_be16(r->ci);
		bb_cqe_own_store(&cqe->op_own, r->pi / BLOCKS & 1);
		r->pi++;
	}
	step_to = r->app;
}

static int
null_post(struct null_rig *r, uint32_t i, uint32_t flags)
{
	const struct bb_sge sge = {(uintptr_t)r->data, 64, 0x1100};

	return r->sge ? bb_post_write(&r->qp, i, &sge, 1, (uintptr_t)r->data, 0x2200, flags)
		      : bb_post_write_inline(&r->qp, i, r->data, 8, (uintptr_t)r->data, 0x2200,
					     flags);
}

static void
null_loop(void *arg)
{
	struct null_rig *r = arg;
	uint32_t i, k;
	struct bb_wc wc[32];

	for (i = 0; i < r->rounds; i++) {
		const uint32_t want = r->all ? r->batch : 1;
		unsigned int got = 0;

		for (k = 1; k <= r->batch; k++)
			if (null_post(r, k, r->all || k == r->batch ? BB_SEND_SIGNALED : 0) != 0)
				return;
		bb_qp_ring(&r->qp);
		null_device(r);
		while (got < want)
			got += bb_cq_poll(&r->cq, wc, 32);
		r->completions += got;
	}
}

TEST(test_post_and_poll_make_no_system_call)
{
	static const uint32_t batches[] = {1, 16, 32};
	struct step_counts app, device;
	struct null_rig *r;
	unsigned int i;
	char what[64];

	for (i = 0; i < 24; i++) {
		r = null_new(i & 1 ? BB_DB_BLUEFLAME : BB_DB_DOORBELL);
		memset(&app, 0, sizeof(app));
		memset(&device, 0, sizeof(device));
		r->app = &app;
		r->device = &device;
		r->batch = batches[i / 8];
		r->rounds = r->batch == 1 ? 32 : 2;
		r->all = (i & 2) != 0;
		r->sge = (i & 4) != 0;
		step_run(null_loop, r, &app);
		assert_int_equal(r->completions, r->rounds * (r->all ? r->batch : 1));
		snprintf(what, sizeof(what), "%s, batch %u, %s, %s", r->sge ? "sge64" : "inline8",
			 r->batch, r->all ? "all" : "last", i & 1 ? "bf" : "db");
		assert_clean(what, &app);
		free(r);
	}
}

static void
empty_loop(void *arg)
{
	struct null_rig *r = arg;
	struct bb_wc wc[32];
	unsigned int i;

	for (i = 0; i < ROUNDS; i++)
		r->completions += bb_cq_poll(&r->cq, wc, 32);
}

TEST(test_empty_poll_makes_no_system_call)
{
	struct null_rig *r = null_new(BB_DB_DOORBELL);
	struct step_counts app = {0};

	step_run(empty_loop, r, &app);
	assert_int_equal(r->completions, 0);
	assert_clean("empty CQ", &app);
	free(r);
}

/* ---- An iteration of the poll loop */

static void
on_cq(struct bb_cq *cq, const struct bb_wc *wc, unsigned int n, void *arg)
{
	struct null_rig *r = arg;

	(void)cq;
	(void)wc;
	r->completions += n;
}

static unsigned int
on_poll(void *arg)
{
	(void)arg;
	return 0;
}

static void
iterate_loop(void *arg)
{
	struct null_rig *r = arg;
	unsigned int i;

	for (i = 0; i < ROUNDS; i++) {
		if (null_post(r, i, BB_SEND_SIGNALED) != 0)
			return;
		bb_qp_ring(&r->qp);
		null_device(r);
		bb_loop_run_once(r->loop); /* one iteration with work, one without */
		bb_loop_run_once(r->loop);
	}
}

TEST(test_loop_iteration_makes_no_system_call)
{
	struct null_rig *r = null_new(BB_DB_DOORBELL);
	struct step_counts app = {0}, device = {0};
	struct bb_loop_attr attr;
	struct bb_loop_stats st;

	bb_loop_attr_init(&attr);
	OK(bb_loop_create(&attr, &r->loop));
	OK(bb_loop_attach_cq(r->loop, &r->cq, on_cq, r));
	assert_int_equal(bb_loop_attach_poller(r->loop, on_poll, r), 0);
	r->app = &app;
	r->device = &device;
	step_run(iterate_loop, r, &app);
	assert_int_equal(r->completions, ROUNDS);
	bb_loop_stats(r->loop, &st);
	assert_int_equal(st.iterations, 2 * ROUNDS);
	assert_clean("loop iteration", &app);
	OK(bb_loop_destroy(r->loop));
	free(r);
}

/* ---- On the software device: its work starts and ends in the CQ's progress call */

struct dev_rig {
	struct bb_dev *dev;
	struct bb_pd *pd;
	struct bb_cq *cq;
	struct bb_mr *mr;
	struct bb_qp *a, *b;
	uint8_t *data;
	struct bb_lkey_cache cache;
	void (*progress)(void *arg);
	void *progress_arg;
	struct step_counts app, device;
	int rc;
	unsigned int completions;
};

static void
progress_apart(void *arg)
{
	struct dev_rig *r = arg;

	if (step_to != NULL)
		step_to = &r->device;
	r->progress(r->progress_arg);
	if (step_to != NULL)
		step_to = &r->app;
}

static void
dev_connect(struct dev_rig *r)
{
	struct bb_qp_addr addr_a, addr_b;
	struct bb_qp_attr attr;

	bb_qp_attr_init(&attr);
	attr.access = BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_READ | BB_ACCESS_REMOTE_ATOMIC;
	OK(bb_qp_addr(r->a, 1, 0, &addr_a));
	OK(bb_qp_addr(r->b, 1, 0, &addr_b));
	OK(bb_qp_connect(r->a, &addr_a, &addr_b, &attr));
	OK(bb_qp_connect(r->b, &addr_b, &addr_a, &attr));
}

static void
dev_open(struct dev_rig *r)
{
	struct bb_qp_init_attr init;
	struct bb_cq_attr cq;

	memset(r, 0, sizeof(*r));
	r->data = rte_zmalloc("data", 65536, 4096);
	assert_non_null(r->data);
	OK(bb_dev_open("soft0", &r->dev));
	OK(bb_pd_alloc(r->dev, &r->pd));
	OK(bb_mr_reg(r->pd, r->data, 65536,
		     BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_READ |
			     BB_ACCESS_REMOTE_ATOMIC,
		     &r->mr));
	bb_cq_attr_init(&cq);
	cq.depth = 512;
	OK(bb_cq_create(r->dev, &cq, &r->cq));
	bb_qp_init_attr_init(&init);
	init.send_cq = r->cq;
	init.recv_cq = r->cq;
	init.sq_depth = 64;
	init.rq_depth = 64;
	OK(bb_qp_create(r->pd, &init, &r->a));
	OK(bb_qp_create(r->pd, &init, &r->b));
	dev_connect(r);
	bb_lkey_cache_init(&r->cache, r->pd);
	assert_non_null(r->cq->progress);
	r->progress = r->cq->progress;
	r->progress_arg = r->cq->progress_arg;
	r->cq->progress = progress_apart;
	r->cq->progress_arg = r;
}

static void
dev_close(struct dev_rig *r)
{
	r->cq->progress = r->progress;
	r->cq->progress_arg = r->progress_arg;
	OK(bb_qp_destroy(r->a));
	OK(bb_qp_destroy(r->b));
	OK(bb_cq_destroy(r->cq));
	OK(bb_mr_dereg(r->mr));
	OK(bb_pd_free(r->pd));
	OK(bb_dev_close(r->dev));
	rte_free(r->data);
}

/* One request of each kind: WRITE inline and not, READ, atomic, SEND with its receive. */
static void
dev_loop(void *arg)
{
	struct dev_rig *r = arg;
	const uint64_t there = (uintptr_t)(r->data + 32768);
	const uint32_t rkey = r->mr->rkey, flags = BB_SEND_SIGNALED;
	struct bb_wc wc[32];
	unsigned int i;

	for (i = 0; i < ROUNDS; i++) {
		const uint32_t lkey = bb_mem_lkey(&r->cache, r->data, 64);
		const struct bb_sge big = {(uintptr_t)r->data, 4096, lkey};
		const struct bb_sge word = {(uintptr_t)r->data, 8, lkey};
		const struct bb_sge in = {(uintptr_t)(r->data + 8192), 4096, lkey};
		unsigned int polls = 0, got = 0, k;

		r->rc += bb_post_recv(r->b, i, &in, 1) != 0;
		bb_qp_ring_recv(r->b);
		r->rc += bb_post_write_inline(r->a, i, r->data, 8, there, rkey, flags) != 0;
		r->rc += bb_post_write(r->a, i, &big, 1, there, rkey, flags) != 0;
		r->rc += bb_post_read(r->a, i, &big, 1, there, rkey, flags) != 0;
		r->rc += bb_post_fetch_add(r->a, i, &word, there, rkey, 1, flags) != 0;
		r->rc += bb_post_send(r->a, i, &word, 1, flags) != 0;
		bb_qp_ring(r->a);
		while (got < 6 && polls++ < 100) {
			unsigned int n = bb_cq_poll(r->cq, wc, 32);

			for (k = 0; k < n; k++)
				r->rc += wc[k].status != BB_WC_SUCCESS;
			got += n;
		}
		r->completions += got;
	}
}

TEST(test_soft_device_makes_no_system_call)
{
	struct dev_rig r;

	dev_open(&r);
	dev_loop(&r); /* once without counting: fills caches, does first-use work */
	assert_int_equal(r.rc, 0);
	r.completions = 0;
	step_run(dev_loop, &r, &r.app);
	assert_int_equal(r.rc, 0);
	assert_int_equal(r.completions, 6 * ROUNDS);
	print_counts("software device, apart", &r.device);
	assert_true(r.device.instructions > 1000);
	assert_clean("application over the software device", &r.app);
	dev_close(&r);
}

static int
setup(void **state)
{
	(void)state;
	if (bare_eal_init() < 0)
		return -1;
	rte_log_set_global_level(RTE_LOG_ERR);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	return rte_eal_cleanup();
}

TEST_MAIN_WITH(setup, teardown, 0)
