/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The verbs driver on the null provider: a device that is removed, and signals. */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

#include <rte_lcore.h>

#include "../../fakes/log_catch.h"
#include "../../fakes/process.h"
#include "verbs_drv.h"
#include "verbs_fixture.h"

/* Objects beyond those of a fixture. */
struct more {
	struct bb_mw *mw;
	struct bb_dm *dm;
	struct bb_ah *ah;
};

static void
more_make(struct fixture *f, struct more *m)
{
	struct bb_path path;

	assert_int_equal(bb_mw_alloc(f->pd, BB_MW_TYPE_2, &m->mw), 0);
	assert_int_equal(bb_dm_alloc(f->dev, 64, 0, &m->dm), 0);
	memset(&path, 0, sizeof(path));
	path.port = 1;
	path.dgid[15] = 1;
	assert_int_equal(bb_ah_create(f->pd, &path, &m->ah), 0);
}

static void
more_free(struct more *m)
{
	assert_int_equal(bb_ah_destroy(m->ah), 0);
	assert_int_equal(bb_dm_free(m->dm), 0);
	assert_int_equal(bb_mw_free(m->mw), 0);
}

static unsigned int
open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;

	assert_non_null(d);
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

/* Asserts that new posts complete in error. */
static void
posts_fail(struct fixture *f)
{
	const struct bb_sge sge = piece(f, FROM, 8);
	struct bb_wc wc[2];

	assert_int_equal(bb_post_write(f->qp, 2, &sge, 1, TO, 1, BB_SEND_SIGNALED), 0);
	assert_int_equal(bb_post_write(f->qp, 3, &sge, 1, TO, 1, 0), 0);
	bb_qp_ring(f->qp);
	take(f, wc, 2);
	assert_fields(wc[0], wr_id, 2, status, BB_WC_LOC_QP_OP_ERR);
	assert_fields(wc[1], wr_id, 3, status, BB_WC_WR_FLUSH_ERR);
}

static void
control_calls_fail(struct fixture *f)
{
	struct bb_cq_attr cattr = DEFAULTS(cq_attr);
	struct bb_mr *mr;
	struct bb_cq *cq;

	assert_int_equal(bb_mr_reg(f->pd, mem, LEN, BB_ACCESS_LOCAL_WRITE, &mr), -EIO);
	assert_int_equal(bb_cq_create(f->dev, &cattr, &cq), -EIO);
}

/*
 * The device is removed with outstanding requests. The event is raised, requests fail, and all
 * objects can be destroyed, whether the event was read or not.
 */
TEST(test_removed_device_fails_requests_and_frees_all)
{
	struct bb_event event;
	struct fixture f;
	struct bb_sge sge;
	struct more m;
	unsigned int fds;

	for (size_t k = 0; k < 4 * RTE_DIM(kinds); k++) {
		const bool told = (k & 1) != 0, srq = (k & 2) != 0;

		null_reset();
		fds = open_fds();
		make(&f, BB_QPT_RC, srq, k / 4);
		more_make(&f, &m);
		post_recv(&f, 7);
		null_dev.hold = true;
		sge = piece(&f, FROM, 8);
		assert_int_equal(bb_post_write(f.qp, 1, &sge, 1, TO, 1, 0), 0);
		bb_qp_ring(f.qp);
		null_dev.gone = true;
		null_async(IBV_EVENT_DEVICE_FATAL, NULL);
		if (told) {
			assert_int_equal(bb_event_get(f.dev, &event), 0);
			assert_int_equal(event.type, BB_EVENT_DEV_FATAL);
			assert_int_equal(bb_event_get(f.dev, &event), -EAGAIN);
		}
		posts_fail(&f);
		control_calls_fail(&f);
		more_free(&m);
		fixture_free(&f);
		assert_int_equal(open_fds(), fds);
		null_dev.hold = false;
		null_release();
	}
}

/*
 * EIO or EBUSY of a present device is an ordinary error: an object that could not be destroyed
 * stays usable.
 */
T(test_error_of_a_present_device_is_ordinary)
{
	static const int errs[] = {EIO, EBUSY, EINVAL};
	struct fixture f;
	struct more m;
	unsigned int fds;

	for (uint32_t i = 0; i < RTE_DIM(errs); i++) {
		make(&f, BB_QPT_RC, true, 0);
		more_make(&f, &m);
		null_dev.fail_errno = errs[i];
		fds = open_fds();
/* Call number @at_ to the provider fails. The second attempt succeeds. */
#define FAILS_AT(at_, call_, name_, text_)                                                         \
	do {                                                                                       \
		null_dev.fail_at = (at_);                                                          \
		log_begin();                                                                       \
		assert_int_equal(call_, -errs[i]);                                                 \
		log_expect(text_);                                                                 \
		assert_string_equal(null_dev.failed_call, name_);                                  \
		assert_int_equal(open_fds(), fds);                                                 \
		assert_int_equal(call_, 0);                                                        \
	} while (0)
#define FAILS(call_, name_, text_) FAILS_AT(1, call_, name_, text_)
		FAILS(bb_dm_free(m.dm), "free_dm", "cannot free 64 bytes of device memory");
		FAILS(bb_mw_free(m.mw), "ibv_dealloc_mw", "cannot release key");
		assert_int_equal(bb_ah_destroy(m.ah), 0);
		/* It leaves the SRQ first. */
		FAILS_AT(2, bb_qp_destroy(f.qp), "ibv_destroy_qp", "cannot destroy QP");
		FAILS(bb_srq_destroy(f.srq), "ibv_destroy_srq", "cannot destroy SRQ");
		FAILS(bb_cq_destroy(f.cq), "ibv_destroy_cq", "cannot destroy CQ");
		FAILS(bb_channel_destroy(f.ch), "ibv_destroy_comp_channel",
		      "cannot destroy a completion channel");
		fds = open_fds();
		FAILS(bb_mr_dereg(f.mr), "ibv_dereg_mr", "cannot release key");
		FAILS(bb_pd_free(f.pd), "ibv_dealloc_pd", "cannot free a PD");
		FAILS(bb_dev_close(f.dev), "ibv_close_device", "cannot close");
	}
}

/* ---- Devices */

T(test_failed_open_logs_the_cause)
{
	static const struct {
		uint32_t call;
		int err, want;
		bool rights;
	} cases[] = {
		{3, EACCES, -EACCES, true},
		{3, EPERM, -EPERM, true},
		/* errno of libibverbs for a device that it may not open. */
		{3, ENOENT, -EACCES, true},
		{3, EMFILE, -EMFILE, false},
		{2, ENOMEM, -ENOMEM, false},
	};
	struct bb_dev *dev = NULL;

	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		null_dev.fail_errno = cases[i].err;
		null_dev.fail_at = cases[i].call;
		log_begin();
		assert_int_equal(bb_dev_open("verbs:" NULL_NAME, &dev), cases[i].want);
		assert_string_equal(null_dev.failed_call,
				    cases[i].call == 3 ? "ibv_open_device" : "ibv_get_device_list");
		fflush(log_file);
		assert_int_equal(strstr(log_text, "give this user rights") != NULL,
				 cases[i].rights);
		log_expect("cannot open the device");
		assert_null(dev);
	}
}

/* Missing counters read as zeros. A clock that cannot be read is either missing or an error. */
T(test_missing_counters_read_as_zero)
{
	static const struct {
		int err, want;
	} cases[] = {{EOPNOTSUPP, -ENOTSUP}, {ENOSYS, -ENOTSUP}, {EIO, -EIO}};
	struct bb_dev_stats stats;
	struct bb_dev_info info[4];
	struct bb_dev *dev;
	uint64_t now = 7;
	int i, n;

	null_dev.clock = 1000;
	assert_int_equal(bb_dev_open(NULL_NAME, &dev), 0);
	memset(&stats, 0xff, sizeof(stats));
	assert_int_equal(bb_dev_stats(dev, &stats), 0);
	for (i = offsetof(struct bb_dev_stats, rx_write); i < (int)sizeof(stats); i++)
		assert_int_equal(((uint8_t *)&stats)[i], 0);
	for (i = 0; i < (int)RTE_DIM(cases); i++) {
		null_dev.fail_errno = cases[i].err;
		null_dev.fail_at = 1;
		assert_logged(bb_dev_clock(dev, NULL, &now), cases[i].want, "clock");
		assert_int_equal(now, 7);
	}
	assert_int_equal(bb_dev_clock(dev, NULL, &now), 0);
	assert_int_equal(now, 1000);
	assert_int_equal(bb_dev_close(dev), 0);
	n = bb_dev_list(info, RTE_DIM(info));
	for (i = 0; i < n && strcmp(info[i].name, "verbs:" NULL_NAME) != 0; i++)
		;
	assert_true(i < n);
	assert_string_equal(info[i].driver, "verbs");
}

/* ---- Channels and events */

/* With fewer and fewer descriptors one call after another fails; none leaks a descriptor. */
T_ON(BB_QPT_RC, false, test_lack_of_descriptors_leaks_none)
{
	struct bb_channel *ch = NULL;
	uint32_t objects, failed = 0;
	int ret;
	unsigned int fds = open_fds();

	objects = null_dev.objects;
	for (;; failed++) {
		descriptors_leave(failed);
		ret = bb_channel_create(f->dev, &ch);
		descriptors_restore();
		if (ret == 0)
			break;
		assert_int_equal(ret, -EMFILE);
		assert_null(ch);
		assert_int_equal(open_fds(), fds);
		assert_int_equal(null_dev.objects, objects);
	}
	assert_int_equal(failed, 4); /* two of the provider and two of the driver */
	assert_int_equal(open_fds(), fds + 4);
	assert_int_equal(bb_channel_destroy(ch), 0);
	assert_int_equal(open_fds(), fds);
}

static int
get_event(struct fixture *f, bool async)
{
	struct bb_event event;
	struct bb_cq *cq;

	return async ? bb_event_get(f->dev, &event) : bb_channel_get(f->ch, &cq);
}

T_ON(BB_QPT_RC, false, test_only_eintr_of_an_event_read_is_hidden)
{
	struct bb_event event;

	for (int i = 0; i < 2; i++) {
		log_begin();
		assert_int_equal(get_event(f, i != 0), -EAGAIN);
		null_dev.event_errno = EINTR;
		assert_int_equal(get_event(f, i != 0), -EAGAIN);
		log_expect(NULL);
		null_dev.event_errno = EBADF;
		assert_logged(get_event(f, i != 0), -EBADF, "cannot read");
		null_dev.event_errno = 0;
	}
	/* A call skips a limited number of unknown events. */
	for (int i = 0; i < 65; i++)
		null_async(IBV_EVENT_SM_CHANGE, (void *)(uintptr_t)1);
	null_async(IBV_EVENT_PORT_ERR, (void *)(uintptr_t)1);
	assert_int_equal(bb_event_get(f->dev, &event), -EAGAIN);
	assert_int_equal(bb_event_get(f->dev, &event), 0);
	assert_int_equal(event.type, BB_EVENT_PORT_DOWN);
	null_dev.fail_errno = EIO;
	null_dev.fail_at = 1;
	assert_logged(bb_cq_arm(f->cq, false), -EIO, "cannot arm CQ");
}

/* Linux before 6.4 says so by POLLERR only, and the descriptor stays readable. */
T_ON(BB_QPT_RC, false, test_wait_on_a_channel_of_a_removed_device_ends)
{
	const int fd = ((const struct verbs_channel *)f->ch->priv)->ib->fd, copy = dup(fd);
	struct bb_cq *cq;
	int pipes[2];

	/* A pipe without a reader has POLLERR at its other end. */
	assert_int_equal(pipe(pipes), 0);
	close(pipes[0]);
	assert_int_equal(dup2(pipes[1], fd), fd);
	close(pipes[1]);
	null_dev.event_errno = EAGAIN;
	assert_int_equal(bb_channel_get(f->ch, &cq), -EIO);
	null_dev.event_errno = 0;
	assert_int_equal(dup2(copy, fd), fd);
	close(copy);
	assert_int_equal(bb_channel_get(f->ch, &cq), -EAGAIN);
}

static unsigned int alarms; /* __atomic: threads of EAL take signals, too */

/* A device that does not flush: requests that were rung may have executed, the others did not. */
T_ON(BB_QPT_RC, false, test_requests_on_a_stuck_device_have_a_fate)
{
	struct bb_wr_end ends[8];
	struct bb_qp_recovery r = {.ends = ends, .max = RTE_DIM(ends)};
	static const struct {
		uint64_t wr_id;
		enum bb_wr_fate fate;
		bool recv;
	} want[] = {{1, BB_WR_UNKNOWN, false},
		    {2, BB_WR_UNKNOWN, false},
		    {3, BB_WR_NOT_DONE, false},
		    {11, BB_WR_UNKNOWN, true},
		    {12, BB_WR_NOT_DONE, true}};
	struct bb_sge sge = piece(f, FROM, 8);

	null_dev.hold = true;
	assert_int_equal(bb_post_recv(f->qp, 11, &sge, 1), 0);
	bb_qp_ring_recv(f->qp);
	assert_int_equal(bb_post_recv(f->qp, 12, &sge, 1), 0);
	assert_int_equal(bb_post_write(f->qp, 1, &sge, 1, TO, 1, BB_SEND_SIGNALED), 0);
	assert_int_equal(bb_post_write(f->qp, 2, &sge, 1, TO, 1, 0), 0);
	bb_qp_ring(f->qp);
	assert_int_equal(bb_post_write(f->qp, 3, &sge, 1, TO, 1, 0), 0);
	assert_logged(
		bb_qp_recover(f->qp, NULL, NULL, NULL, &r), 0,
		"the device did not flush the QP within 1000 ms; the outcome of its remaining "
		"requests is unknown");
	assert_int_equal(r.n, RTE_DIM(want));
	for (uint32_t i = 0; i < r.n; i++) {
		assert_fields(ends[i], wc.wr_id, want[i].wr_id, fate, want[i].fate);
		assert_int_equal(ends[i].recv, want[i].recv);
	}
	assert_int_equal(r.flushed, BB_WR_UNKNOWN);
	null_dev.hold = false;
	null_release();
}

static struct {
	void (*progress)(void *arg);
	uint32_t calls;
} stopped;

/* The process is stopped once; its device flushes some time after the process continues. */
static void
progress_of_a_stopped_process(void *arg)
{
	stopped.calls++;
	if (stopped.calls == 1)
		usleep(1100000);
	if (stopped.calls == 4) {
		null_dev.hold = false;
		null_release();
	}
	stopped.progress(arg);
}

T_ON(BB_QPT_RC, false, test_recovery_waits_for_the_flush_after_the_process_was_stopped)
{
	struct bb_wr_end ends[2];
	struct bb_qp_recovery r = {.ends = ends, .max = RTE_DIM(ends)};
	struct bb_sge sge = piece(f, FROM, 8);

	null_dev.hold = true;
	assert_int_equal(bb_post_write(f->qp, 1, &sge, 1, TO, 1, BB_SEND_SIGNALED), 0);
	assert_int_equal(bb_post_write(f->qp, 2, &sge, 1, TO, 1, 0), 0);
	bb_qp_ring(f->qp);
	stopped.calls = 0;
	stopped.progress = f->cq->progress;
	f->cq->progress = progress_of_a_stopped_process;
	assert_logged(bb_qp_recover(f->qp, NULL, NULL, NULL, &r), 0, NULL);
	f->cq->progress = stopped.progress;
	assert_int_equal(r.n, 2);
}

struct queues {
	struct fixture *f;
	struct bb_cq *cq;
	struct bb_qp *qp;
	uint32_t objects; /* that creating the QP added */
};

static void *
make_queues(void *arg)
{
	struct bb_qp_init_attr init = DEFAULTS(qp_init_attr);
	struct bb_cq_attr cattr = DEFAULTS(cq_attr);
	struct queues *q = arg;

	assert_int_equal(bb_cq_create(q->f->dev, &cattr, &q->cq), 0);
	q->objects = null_dev.objects;
	init.send_cq = init.recv_cq = q->cq;
	assert_int_equal(bb_qp_create(q->f->pd, &init, &q->qp), 0);
	q->objects = null_dev.objects - q->objects;
	return NULL;
}

/* Creates the objects on another lcore, the same lcore each time. */
static void *
make_elsewhere(void *arg)
{
	assert_int_equal(rte_thread_register(), 0);
	make_queues(arg);
	rte_thread_unregister();
	return NULL;
}

/* One thread domain per lcore with queues; in it the provider takes no locks. */
T_ON(BB_QPT_RC, false, test_each_lcore_has_one_thread_domain)
{
	/* A QP is one object; the first QP of an lcore adds a domain and its PD. */
	static const uint32_t objects[] = {3, 3, 1, 1};
	struct queues q[RTE_DIM(objects)];
	uint32_t all;
	pthread_t t;

	assert_int_equal(bb_qp_destroy(f->qp), 0);
	f->qp = NULL;
	all = null_dev.objects;
	null_dev.td = NULL;
	for (uint32_t i = 0; i < RTE_DIM(objects); i++) {
		q[i].f = f;
		if (i == 0 || i == 3) {
			assert_int_equal(pthread_create(&t, NULL, make_elsewhere, &q[i]), 0);
			pthread_join(t, NULL);
		} else {
			make_queues(&q[i]);
		}
		assert_int_equal(q[i].objects, objects[i]);
		assert_non_null(null_dev.td);
	}
	for (uint32_t i = 0; i < RTE_DIM(objects); i++) {
		assert_int_equal(bb_qp_destroy(q[i].qp), 0);
		assert_int_equal(bb_cq_destroy(q[i].cq), 0);
	}
	assert_int_equal(null_dev.objects, all);
}

T_ON(BB_QPT_RC, false, test_event_of_a_destroyed_cq_is_dropped)
{
	struct bb_cq *cq, *got = NULL;

	assert_int_equal(bb_qp_destroy(f->qp), 0);
	f->qp = NULL;
	cq = f->cq;
	assert_int_equal(bb_cq_arm(cq, false), 0);
	verbs_raise(cq->progress_arg, true);
	assert_int_equal(bb_cq_destroy(cq), 0);
	f->cq = NULL;
	assert_int_equal(bb_channel_get(f->ch, &got), -EAGAIN);
	assert_null(got);
}

static void
on_alarm(int sig)
{
	(void)sig;
	__atomic_fetch_add(&alarms, 1, __ATOMIC_RELAXED);
}

T_ON(BB_QPT_RC, false, test_signal_does_not_lose_an_event)
{
	const struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
	const struct sigaction act = {.sa_handler = on_alarm};
	struct sigaction before;
	struct bb_cq *cq;
	struct bb_wc wc;
	int ret;
	struct bb_sge sge = piece(f, FROM, 8);

	assert_int_equal(sigaction(SIGALRM, &act, &before), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(bb_cq_arm(f->cq, false), 0);
		assert_int_equal(bb_channel_wait(f->ch, -1, &cq), -EINTR);
		assert_int_equal(bb_post_write(f->qp, 1, &sge, 1, TO, 1, BB_SEND_SIGNALED), 0);
		bb_qp_ring(f->qp);
		do
			ret = bb_channel_wait(f->ch, -1, &cq);
		while (ret == -EINTR);
		assert_int_equal(ret, 0);
		assert_ptr_equal(cq, f->cq);
		take(f, &wc, 1);
		assert_int_equal(wc.status, BB_WC_SUCCESS);
	}
	assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
	assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
	assert_true(__atomic_load_n(&alarms, __ATOMIC_RELAXED) >= 20);
}

TEST_MAIN(bare_eal_init() < 0 ? 1 : 0)
