/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Forks and signals during control calls, during traffic and while the process sleeps on a
 * channel.
 */
#include <glob.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_mempool.h>

#include "../mlx5_env.h"

#define CHILDREN 40
#define WRITES   16u
#define LEN      4096u

static void
post_writes(struct env *e, uint32_t seed)
{
	unsigned int i;

	fill(e->a.buf, WRITES * LEN, seed);
	memset(e->b.buf, 0, WRITES * LEN);
	for (i = 0; i < WRITES; i++) {
		struct bb_sge sge = sge_of(&e->a, i * LEN, LEN);

		OK(bb_post_write(e->a.qp, i, &sge, 1, raddr_of(&e->b, i * LEN), e->b.mr->rkey,
				 BB_SEND_SIGNALED));
	}
	bb_qp_ring(e->a.qp);
}

static void
finish_writes(struct env *e)
{
	struct bb_wc wc[WRITES];
	unsigned int i;

	env_poll(e, &e->a, wc, WRITES);
	for (i = 0; i < WRITES; i++)
		expect(&wc[i], e->a.qp, i, BB_WC_SUCCESS);
	assert_memory_equal(e->a.buf, e->b.buf, WRITES * LEN);
}

/*
 * Forks children between a post and its completion. EAL's memory and the device's writes go to
 * the parent's pages. A child may write its own pages, whether it exits at once or lives on.
 */
TEST(test_fork_in_traffic_keeps_the_parents_memory)
{
	pid_t child[CHILDREN];
	char own[LEN] = "";
	struct env e;
	int i, status, hold[2];

	env_start(&e);
	assert_int_equal(pipe(hold), 0);
	for (i = 0; i < CHILDREN; i++) {
		post_writes(&e, (uint32_t)i);
		child[i] = fork();
		assert_true(child[i] >= 0);
		if (child[i] == 0) {
			memset(own, i, sizeof(own));
			close(hold[1]);
			if (i % 4 == 0)
				execl("/bin/true", "true", (char *)NULL);
			/* The other children end at once, or when the parent is done. */
			if (i % 4 == 1)
				(void)!read(hold[0], own, 1);
			_exit(0);
		}
		finish_writes(&e);
		assert_int_equal(own[0], 0);
	}
	/* New queues and registrations while children live. */
	env_stop(&e);
	env_start(&e);
	post_writes(&e, 99);
	finish_writes(&e);
	env_stop(&e);
	close(hold[1]);
	for (i = 0; i < CHILDREN; i++) {
		assert_int_equal(waitpid(child[i], &status, 0), child[i]);
		assert_int_equal(status, 0);
	}
	close(hold[0]);
}

/* Objects other than queues and registrations that a child may try to destroy. */
struct others {
	struct bb_channel *ch;
	struct bb_umem *umem;
	struct bb_dm *dm;
	struct bb_mw *mw;
	struct bb_srq *srq;
	struct rte_mempool *mp;
};

/*
 * Returns the number, from 1, of the first creating or registering call that is not refused; 0 if
 * all are refused.
 */
static size_t
others_made(const struct env *e, const struct others *o)
{
	const struct bb_path path = {.port = 1};
	struct bb_sge piece = sge_of(&e->a, 0, 64);
	struct bb_channel *ch;
	struct bb_mkey_attr key;
	struct bb_umem *umem;
	struct bb_mkey *mkey;
	struct bb_mr *mr;
	struct bb_dm *dm;
	struct bb_mw *mw;
	struct bb_ah *ah;
	size_t i;

	bb_mkey_attr_init(&key);
	key.pieces = &piece;
	key.n = 1;
	{
		const int ret[] = {
			bb_mem_reap(e->a.pd),
			bb_mem_follow_heap(e->a.pd),
			bb_mem_add_heap(e->a.pd, e->a.buf, 64),
			bb_mem_del_heap(e->a.pd, e->a.buf, 64),
			bb_mem_add_mempool(e->a.pd, o->mp),
			bb_mr_reg_dm(e->a.pd, o->dm, 0, 64, BB_ACCESS_LOCAL_WRITE, &mr),
			bb_mr_reg_dmabuf(e->a.pd, 0, 64, 0, 0, BB_ACCESS_LOCAL_WRITE, &mr),
			bb_dm_alloc(e->a.dev, 64, 0, &dm),
			bb_umem_reg(e->a.dev, e->a.buf, 64, BB_ACCESS_LOCAL_WRITE, &umem),
			bb_mkey_create(e->a.pd, &key, &mkey),
			bb_mw_alloc(e->a.pd, BB_MW_TYPE_2, &mw),
			bb_channel_create(e->a.dev, &ch),
			bb_ah_create(e->a.pd, &path, &ah),
		};

		for (i = 0; i < RTE_DIM(ret); i++)
			if (ret[i] != -ENOTSUP)
				return i + 1;
	}
	return 0;
}

/*
 * Returns the number, from 1, of the first query that is not refused; 0 if all are refused. Queries
 * execute commands of the device, and take its lock, which another thread may have held.
 */
static unsigned int
queried(const struct env *e, const struct others *o)
{
	struct bb_mem_stats memory;
	struct bb_dev_stats stats;
	struct bb_port_attr port;
	struct bb_srq_attr srq;
	struct bb_event event;
	struct bb_qp_attr qp;
	struct bb_gid gid;
	struct bb_cq *cq;
	uint32_t word = 0;
	uint16_t pkey;
	char text[64];
	const int ret[] = {
		bb_channel_get(o->ch, &cq),
		bb_channel_wait(o->ch, 0, &cq),
		bb_mem_stats(e->a.pd, &memory),
		bb_dm_write(o->dm, 0, &word, sizeof(word)),
		bb_dm_read(o->dm, &word, 0, sizeof(word)),
		bb_srq_query(o->srq, &srq),
		bb_qp_query(e->a.qp, &qp),
		bb_port_query(e->a.dev, 1, &port),
		bb_gid_query(e->a.dev, 1, 0, &gid),
		bb_pkey_query(e->a.dev, 1, 0, &pkey),
		bb_event_get(e->a.dev, &event),
		bb_dev_stats(e->a.dev, &stats),
		bb_dev_drops(e->a.dev, NULL, 0),
		bb_qp_error_text(e->a.qp, text, sizeof(text)),
		bb_qp_pending_text(e->a.qp, text, sizeof(text)),
	};
	unsigned int i;

	for (i = 0; i < RTE_DIM(ret); i++)
		if (ret[i] != -ENOTSUP)
			return i + 1;
	return 0;
}

/* Returns the number, from 1, of the first of these calls that does not return @ret, else 0. */
static int
others_end(const struct others *o, int ret)
{
	if (bb_channel_destroy(o->ch) != ret)
		return 1;
	if (bb_umem_dereg(o->umem) != ret)
		return 2;
	if (bb_dm_free(o->dm) != ret)
		return 3;
	return bb_mw_free(o->mw) != ret ? 4 : 0;
}

ENV_TEST(test_child_cannot_change_the_parents_objects)
{
	struct bb_qp_attr attr;
	struct bb_qp_init_attr init = e->init;
	struct bb_qp_recovery recovery = {0};
	struct bb_cq_attr cq_attr;
	struct bb_srq_attr srq_attr;
	struct bb_qp *qp, *rc, *ud;
	struct bb_qp_addr addr;
	struct bb_cq *cq;
	struct bb_pd *pd;
	struct bb_mr *mr;
	struct others o;
	pid_t child;
	int status;

	init.send_cq = init.recv_cq = e->a.cq;
	OK(bb_qp_create(e->a.pd, &init, &rc));
	OK(bb_qp_addr(rc, 1, e->attr.path.sgid_index, &addr));
	init.type = BB_QPT_UD;
	OK(bb_qp_create(e->a.pd, &init, &ud));
	OK(bb_channel_create(e->a.dev, &o.ch));
	OK(bb_umem_reg(e->a.dev, e->a.buf, 64, BB_ACCESS_LOCAL_WRITE, &o.umem));
	OK(bb_dm_alloc(e->a.dev, 64, 0, &o.dm));
	OK(bb_mw_alloc(e->a.pd, BB_MW_TYPE_2, &o.mw));
	bb_srq_attr_init(&srq_attr);
	srq_attr.depth = 16;
	OK(bb_srq_create(e->a.pd, &srq_attr, &o.srq));
	o.mp = rte_mempool_create("owned", 15, 64, 0, 0, NULL, NULL, NULL, NULL, SOCKET_ID_ANY, 0);
	assert_non_null(o.mp);
	post_writes(e, 3);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		unsigned int wrong = 0;

		bb_qp_attr_init(&attr);
		attr.state = BB_QP_ERR;
		bb_cq_attr_init(&cq_attr);
		wrong |= (bb_qp_modify(e->a.qp, &attr, BB_QP_STATE) != -ENOTSUP) << 0;
		wrong |= (bb_qp_destroy(e->a.qp) != -ENOTSUP) << 1;
		wrong |= (bb_cq_destroy(e->a.cq) != -ENOTSUP) << 2;
		wrong |= (bb_mr_dereg(e->a.mr) != -ENOTSUP) << 3;
		wrong |= (bb_pd_free(e->a.pd) != -ENOTSUP) << 4;
		wrong |= (bb_dev_close(e->a.dev) != -ENOTSUP) << 5;
		wrong |= (bb_pd_alloc(e->a.dev, &pd) != -ENOTSUP ||
			  bb_cq_create(e->a.dev, &cq_attr, &cq) != -ENOTSUP)
			 << 6;
		wrong |=
			(bb_mr_reg(e->a.pd, e->a.buf, 64, BB_ACCESS_LOCAL_WRITE, &mr) != -ENOTSUP ||
			 bb_qp_create(e->a.pd, &init, &qp) != -ENOTSUP)
			<< 7;
		if (wrong == 0 &&
		    (others_end(&o, -ENOTSUP) != 0 || bb_cq_resize(e->a.cq, 64) != -ENOTSUP ||
		     bb_mr_rereg(e->a.mr, BB_MR_REREG_ACCESS, NULL, NULL, 0, 0) != -ENOTSUP))
			wrong = 0xff;
		if (wrong == 0 &&
		    (bb_qp_connect(rc, &addr, &addr, &e->attr) != -ENOTSUP ||
		     bb_qp_recover(rc, &addr, &addr, &e->attr, &recovery) != -ENOTSUP ||
		     bb_qp_ud_up(ud, 1, 0, 0x11, 5) != -ENOTSUP))
			wrong = 0xfe;
		if (wrong == 0)
			wrong = (unsigned int)others_made(e, &o);
		if (wrong == 0 && queried(e, &o) != 0)
			wrong = 0x40 + queried(e, &o);
		_exit((int)wrong);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	finish_writes(e);
	post_writes(e, 4);
	finish_writes(e);
	OK(bb_qp_connect(rc, &addr, &addr, &e->attr));
	OK(bb_qp_destroy(rc));
	OK(bb_qp_destroy(ud));
	assert_int_equal(others_end(&o, 0), 0);
	OK(bb_srq_destroy(o.srq));
	rte_mempool_free(o.mp);
}

/* Device names for each driver and each progress mode, and one unknown name. */
static const char *const specs[] = {
	"soft0",
	"soft1",
	"soft0,progress=thread",
	"soft0,shm=bb_process,ip=192.0.2.1/24",
	"mlx5_0",
	"verbs:rxe0",
	"none",
};

/*
 * Returns the number, from 1, of the first spec that is not refused with -ENOTSUP; 0 if all are
 * refused.
 */
static int
opened(void)
{
	struct bb_dev *dev = NULL;
	size_t i;

	for (i = 0; i < RTE_DIM(specs); i++)
		if (bb_dev_open(specs[i], &dev) != -ENOTSUP || dev != NULL)
			return (int)i + 1;
	return 0;
}

static int
exit_of(pid_t child)
{
	int status;

	assert_true(child >= 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/*
 * The parent has a device open, has closed one, or never opened one. A grandchild is refused,
 * too.
 */
TEST(test_child_of_a_process_with_eal_cannot_open_a_device)
{
	struct env e;
	pid_t child;

	child = fork();
	if (child == 0)
		_exit(opened());
	assert_int_equal(exit_of(child), 0);
	env_start(&e);
	post_writes(&e, 1);
	child = fork();
	if (child == 0) {
		struct bb_cm_attr attr;
		struct bb_cm *cm;
		int status = 0xff00;
		pid_t grandchild = fork();

		if (grandchild == 0)
			_exit(opened());
		(void)waitpid(grandchild, &status, 0);
		bb_cm_attr_init(&attr);
		_exit(opened() + (bb_cm_create(e.a.dev, &attr, &cm) != -ENOTSUP ? 100 : 0) +
		      (status != 0 ? 50 : 0));
	}
	assert_int_equal(exit_of(child), 0);
	finish_writes(&e);
	env_stop(&e);
	child = fork();
	if (child == 0)
		_exit(opened());
	assert_int_equal(exit_of(child), 0);
	/* The parent still works. */
	env_start(&e);
	post_writes(&e, 2);
	finish_writes(&e);
	env_stop(&e);
}

/*
 * Exit status of a child of main() that initialised EAL itself; -1 if the child could not be
 * made.
 */
static int early_child;

static int
early(void)
{
	struct bb_dev *dev;
	struct env e;

	if (env_eal_init("mlx5_process_early") != 0)
		return 77;
	/* A device with its own thread works in this child, too. */
	if (bb_dev_open("soft1,progress=thread", &dev) != 0 || bb_dev_close(dev) != 0)
		return 1;
	env_start(&e);
	post_writes(&e, 5);
	finish_writes(&e);
	env_stop(&e);
	return 0;
}

static void
fork_early(void)
{
	int status;
	pid_t child = fork();

	if (child == 0)
		_exit(early());
	early_child = child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status)
			      ? WEXITSTATUS(status)
			      : -1;
}

TEST(test_child_that_initialises_eal_itself_uses_devices)
{
	if (early_child == 77)
		skip();
	assert_int_equal(early_child, 0);
}

/* Signals received; accessed with __atomic, because EAL's threads take signals, too. */
static unsigned int alarms;

static void
on_alarm(int sig)
{
	(void)sig;
	__atomic_add_fetch(&alarms, 1, __ATOMIC_RELAXED);
}

static unsigned int
alarm_count(void)
{
	return __atomic_load_n(&alarms, __ATOMIC_RELAXED);
}

static void
alarm_every(long us)
{
	struct sigaction sa = {.sa_handler = us != 0 ? on_alarm : SIG_IGN};
	struct itimerval t = {{0, us}, {0, us}};

	/* No SA_RESTART: system calls end with EINTR. */
	assert_int_equal(sigaction(SIGALRM, &sa, NULL), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &t, NULL), 0);
}

TEST(test_signals_disturb_no_call)
{
	struct env e;
	int i;

	__atomic_store_n(&alarms, 0, __ATOMIC_RELAXED);
	alarm_every(1000);
	for (i = 0; i < 1000 && (i < 10 || alarm_count() < 50); i++) {
		env_start(&e);
		post_writes(&e, (uint32_t)i);
		finish_writes(&e);
		env_stop(&e);
	}
	alarm_every(0);
	assert_true(alarm_count() >= 50);
}

/* A signal wakes a sleeper, which gets an error and may sleep again; no event is lost. */
TEST(test_signal_ends_a_wait_and_loses_no_event)
{
	struct bb_channel *ch;
	struct bb_cq_attr attr;
	struct bb_cq *cq;
	struct env e;
	int ret;

	env_open(&e);
	OK(bb_channel_create(e.a.dev, &ch));
	OK(bb_cq_destroy(e.a.cq));
	bb_cq_attr_init(&attr);
	attr.depth = 1024;
	attr.channel = ch;
	OK(bb_cq_create(e.a.dev, &attr, &e.a.cq));
	env_up(&e);
	OK(bb_cq_arm(e.a.cq, false));

	alarm_every(5000);
	assert_int_equal(bb_channel_wait(ch, -1, &cq), -EINTR);
	post_writes(&e, 7);
	do
		ret = bb_channel_wait(ch, ENV_WAIT_S * 1000, &cq);
	while (ret == -EINTR);
	alarm_every(0);
	assert_int_equal(ret, 0);
	assert_ptr_equal(cq, e.a.cq);
	finish_writes(&e);

	side_close(&e.a);
	side_close(&e.b);
	OK(bb_pd_free(e.a.pd));
	if (e.b.pd != e.a.pd)
		OK(bb_pd_free(e.b.pd));
	OK(bb_channel_destroy(ch));
	OK(bb_dev_close(e.a.dev));
	if (e.b.dev != e.a.dev)
		OK(bb_dev_close(e.b.dev));
}

TEST_IF(env_thread(), test_device_thread_blocks_signals)
{
	unsigned long long blocked;
	unsigned int found = 0;
	char line[256];
	struct env e;
	glob_t tasks;
	size_t i;

	env_start(&e);
	assert_int_equal(glob("/proc/self/task/*/status", 0, NULL, &tasks), 0);
	for (i = 0; i < tasks.gl_pathc; i++) {
		FILE *f = fopen(tasks.gl_pathv[i], "r");
		bool ours = false;

		if (f == NULL)
			continue;
		while (fgets(line, sizeof(line), f) != NULL) {
			ours |= strcmp(line, "Name:\tbb-soft\n") == 0;
			if (!ours || sscanf(line, "SigBlk: %llx", &blocked) != 1)
				continue;
			found++;
			assert_true((blocked & 1u << (SIGALRM - 1)) != 0);
			assert_true((blocked & 1u << (SIGTERM - 1)) != 0);
		}
		fclose(f);
	}
	globfree(&tasks);
	assert_true(found > 0);
	env_stop(&e);
}

int
main(void)
{
	int rc;

	fork_early();
	rc = env_eal_init("mlx5_process");
	return rc != 0 ? rc : bb_test_run(__FILE__, NULL, NULL);
}
