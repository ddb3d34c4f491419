/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Poll loop: attached objects, one iteration, accounting. */
#include <errno.h>
#include <sched.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_cycles.h>
#include <rte_lcore.h>
#include <rte_malloc.h>

#include "bb_dev_priv.h"
#include "bb_loop.h"
#include "bb_loop_priv.h"
#include "bb_time_limit.h"

/*
 * The statistics are published after this number of iterations, or after 10 us if that is earlier.
 */
#define PUBLISH_ITERATIONS 256
#include "bb_post.h"

/* Milliseconds for which an attach or detach waits until a running loop applies it. */
#define LOOP_CONTROL_TIMEOUT_MS 1000

RTE_DEFINE_PER_LCORE(struct bb_loop *, bb_loop_current);

void
bb_loop_attr_init(struct bb_loop_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	attr->lcore = BB_LCORE_SELF;
	attr->max_cqs = 64;
	attr->max_pollers = 64;
	attr->burst = 32;
	attr->accounting = true;
}

static int
loop_attr_check(const struct bb_loop_attr *attr)
{
	int ret = bb_attr_size_check(attr->size, sizeof(*attr), "bb_loop_attr_init");

	if (ret != 0)
		return ret;
	if (attr->burst == 0 || attr->burst > BB_LOOP_MAX_BURST) {
		BB_LOG(ERR, "loop: invalid burst %u (1 to %u)", attr->burst, BB_LOOP_MAX_BURST);
		return -EINVAL;
	}
	if (attr->max_cqs > BB_LOOP_MAX_OBJECTS || attr->max_pollers > BB_LOOP_MAX_OBJECTS) {
		BB_LOG(ERR, "loop: invalid max_cqs %u or max_pollers %u (at most %u)",
		       attr->max_cqs, attr->max_pollers, BB_LOOP_MAX_OBJECTS);
		return -EINVAL;
	}
	return 0;
}

int
bb_loop_create(const struct bb_loop_attr *attr, struct bb_loop **loop)
{
	struct bb_loop *l;
	uint32_t lcore;
	int socket, rc;

	rc = loop_attr_check(attr);
	if (rc != 0)
		return rc;
	rc = bb_lcore_resolve(attr->lcore, &lcore);
	if (rc != 0)
		return rc;

	socket = (int)rte_lcore_to_socket_id(lcore);
	l = rte_zmalloc_socket("bb_loop", sizeof(*l) + attr->burst * sizeof(l->wc[0]),
			       RTE_CACHE_LINE_SIZE, socket);
	if (l == NULL)
		goto no_loop;
	l->cqs = rte_calloc_socket("bb_loop_cqs", (size_t)attr->max_cqs + 1, sizeof(l->cqs[0]),
				   RTE_CACHE_LINE_SIZE, socket);
	if (l->cqs == NULL)
		goto no_cqs;
	l->pollers = rte_calloc_socket("bb_loop_pollers", (size_t)attr->max_pollers + 1,
				       sizeof(l->pollers[0]), RTE_CACHE_LINE_SIZE, socket);
	if (l->pollers == NULL)
		goto no_pollers;
	l->lcore = lcore;
	l->max_cqs = attr->max_cqs;
	l->max_pollers = attr->max_pollers;
	l->burst = attr->burst;
	l->accounting = attr->accounting;
	l->to_publish = PUBLISH_ITERATIONS;
	l->publish_cycles = rte_get_tsc_hz() / 100000; /* 10 us */
	pthread_mutex_init(&l->control, NULL);
	bb_loop_tel_add(l);
	*loop = l;
	return 0;

no_pollers:
	rte_free(l->cqs);
no_cqs:
	rte_free(l);
no_loop:
	BB_LOG(ERR,
	       "loop of lcore %u not created: no EAL memory: give EAL more, with -m or "
	       "hugepages",
	       lcore);
	return -ENOMEM;
}

int
bb_loop_destroy(struct bb_loop *loop)
{
	int rc = 0;

	if (RTE_PER_LCORE(bb_loop_current) != NULL)
		return -EBUSY;
	pthread_mutex_lock(&loop->control);
	if (bb_loop_running(loop))
		rc = -EBUSY;
	pthread_mutex_unlock(&loop->control);
	if (rc != 0) {
		BB_LOG(ERR,
		       "loop of lcore %u is not destroyed, because it runs: call "
		       "bb_loop_stop() and bb_loop_wait() first",
		       loop->lcore);
		return rc;
	}
	bb_loop_tel_remove(loop);
	pthread_mutex_destroy(&loop->control);
	rte_free(loop->pollers);
	rte_free(loop->cqs);
	rte_free(loop);
	return 0;
}

uint32_t
bb_loop_lcore(const struct bb_loop *loop)
{
	return loop->lcore;
}

bool
bb_loop_running(const struct bb_loop *loop)
{
	return __atomic_load_n(&loop->state, __ATOMIC_ACQUIRE) != LOOP_IDLE;
}

/*
 * Removes the entries of detached CQs and pollers from the loop's arrays. Never call it while the
 * arrays are iterated.
 */
static void
loop_squeeze(struct bb_loop *loop)
{
	uint32_t i, n;

	for (i = n = 0; i < loop->n_cqs; i++)
		if (loop->cqs[i].cq != NULL)
			loop->cqs[n++] = loop->cqs[i];
	loop->n_cqs = n;
	for (i = n = 0; i < loop->n_pollers; i++)
		if (loop->pollers[i].fn != NULL)
			loop->pollers[n++] = loop->pollers[i];
	loop->n_pollers = n;
	loop->dirty = false;
}

/*
 * The next four functions execute the commands: attach and detach a CQ, add and remove a poller.
 * They run in the loop's thread, or in another thread while the loop cannot start. They may run
 * inside a callback, while an iteration walks over the slots, so they do not move slots.
 */
static int
loop_add_cq(struct bb_loop *loop, const struct loop_cmd *cmd)
{
	struct loop_cq *slot = NULL;
	uint32_t i;

	for (i = 0; i < loop->n_cqs; i++) {
		if (loop->cqs[i].cq == cmd->cq)
			return -EALREADY;
		if (loop->cqs[i].cq == NULL && slot == NULL)
			slot = &loop->cqs[i];
	}
	if (slot == NULL) {
		if (loop->n_cqs == loop->max_cqs)
			return -ENOSPC;
		slot = &loop->cqs[loop->n_cqs++];
	}
	*slot = (struct loop_cq){.cq = cmd->cq, .cb = cmd->cb, .arg = cmd->arg};
	return 0;
}

static int
loop_del_cq(struct bb_loop *loop, const struct loop_cmd *cmd)
{
	uint32_t i;

	for (i = 0; i < loop->n_cqs; i++) {
		if (loop->cqs[i].cq == cmd->cq) {
			loop->cqs[i].cq = NULL;
			loop->dirty = true;
			return 0;
		}
	}
	return -ENOENT;
}

static int
loop_add_poller(struct bb_loop *loop, const struct loop_cmd *cmd)
{
	struct loop_poller *slot = NULL;
	uint32_t i;

	for (i = 0; i < loop->n_pollers; i++) {
		if (loop->pollers[i].fn == cmd->fn && loop->pollers[i].arg == cmd->arg)
			return -EALREADY;
		if (loop->pollers[i].fn == NULL && slot == NULL)
			slot = &loop->pollers[i];
	}
	if (slot == NULL) {
		if (loop->n_pollers == loop->max_pollers)
			return -ENOSPC;
		slot = &loop->pollers[loop->n_pollers++];
	}
	*slot = (struct loop_poller){.fn = cmd->fn, .arg = cmd->arg};
	return 0;
}

static int
loop_del_poller(struct bb_loop *loop, const struct loop_cmd *cmd)
{
	uint32_t i;

	for (i = 0; i < loop->n_pollers; i++) {
		if (loop->pollers[i].fn == cmd->fn && loop->pollers[i].arg == cmd->arg) {
			loop->pollers[i].fn = NULL;
			loop->dirty = true;
			return 0;
		}
	}
	return -ENOENT;
}

/*
 * Passes @cmd to the loop's thread and waits for its result. The caller holds loop->control, so
 * only one command is pending and the loop cannot start. The thread that takes the pointer out of
 * loop->cmd decides about the command. The loop's thread applies the command between two
 * iterations. This function takes the pointer back, and applies the command itself, if the loop
 * ended without taking it. If the loop does not respond, this function takes the pointer back and
 * returns an error.
 */
static int
loop_hand_over(struct bb_loop *loop, struct loop_cmd *cmd)
{
	struct bb_time_limit limit;

	bb_time_limit_start(&limit, LOOP_CONTROL_TIMEOUT_MS);
	__atomic_store_n(&loop->cmd, cmd, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&cmd->done, __ATOMIC_ACQUIRE)) {
		uint32_t state = __atomic_load_n(&loop->state, __ATOMIC_ACQUIRE);
		/*
		 * A service that was stopped runs no iteration, so it would never take the command.
		 */
		bool stopped = state == LOOP_STOPPING && loop->mode == LOOP_MODE_SERVICE;
		struct loop_cmd *expected = cmd;

		if (state != LOOP_IDLE && !stopped && !bb_time_limit_reached(&limit)) {
			sched_yield();
			continue;
		}
		if (!__atomic_compare_exchange_n(&loop->cmd, &expected, NULL, false,
						 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			continue; /* the loop took the command and will set done */
		if (state == LOOP_IDLE) {
			cmd->rc = cmd->apply(loop, cmd);
			loop_squeeze(loop);
			break;
		}
		if (stopped) {
			BB_LOG(ERR,
			       "loop of lcore %u cannot be changed after bb_loop_stop(): "
			       "call bb_loop_wait() first",
			       loop->lcore);
			return -EBUSY;
		}
		BB_LOG(ERR,
		       "loop of lcore %u did not apply a change within %u ms: start its service "
		       "lcore, and check that no callback blocks",
		       loop->lcore, LOOP_CONTROL_TIMEOUT_MS);
		return -ETIMEDOUT;
	}
	return cmd->rc;
}

static int
loop_control(struct bb_loop *loop, struct loop_cmd *cmd)
{
	struct bb_loop *current = RTE_PER_LCORE(bb_loop_current);
	int rc;

	if (current == loop)
		return cmd->apply(loop, cmd);
	if (current != NULL) {
		BB_LOG(ERR,
		       "loop of lcore %u: cannot be changed from a callback of the loop of lcore "
		       "%u",
		       loop->lcore, current->lcore);
		return -EBUSY;
	}
	pthread_mutex_lock(&loop->control);
	rc = loop_hand_over(loop, cmd);
	pthread_mutex_unlock(&loop->control);
	return rc;
}

static int
loop_log(const struct bb_loop *loop, int rc, const char *what)
{
	switch (rc) {
	case -EALREADY:
		BB_LOG(ERR, "loop of lcore %u: this %s is attached already", loop->lcore, what);
		break;
	case -ENOSPC:
		BB_LOG(ERR,
		       "loop of lcore %u: the maximum of attached objects is reached, so "
		       "this %s is not attached: raise max_cqs or max_pollers of "
		       "bb_loop_attr",
		       loop->lcore, what);
		break;
	case -ENOENT:
		BB_LOG(ERR, "loop of lcore %u: this %s is not attached", loop->lcore, what);
		break;
	}
	return rc;
}

int
bb_loop_attach_cq(struct bb_loop *loop, struct bb_cq *cq, bb_loop_cq_fn cb, void *arg)
{
	struct loop_cmd cmd = {.apply = loop_add_cq, .cq = cq, .cb = cb, .arg = arg};

	if (cq == NULL || cb == NULL) {
		BB_LOG(ERR, "loop of lcore %u: the CQ or the callback to attach is NULL",
		       loop->lcore);
		return -EINVAL;
	}
	if (cq->owner != loop->lcore) {
		BB_LOG(ERR,
		       "loop of lcore %u: the CQ belongs to lcore %u: create the CQ with "
		       "this loop's lcore",
		       loop->lcore, cq->owner);
		return -EINVAL;
	}
	return loop_log(loop, loop_control(loop, &cmd), "CQ");
}

int
bb_loop_detach_cq(struct bb_loop *loop, struct bb_cq *cq)
{
	struct loop_cmd cmd = {.apply = loop_del_cq, .cq = cq};

	return loop_log(loop, cq == NULL ? -ENOENT : loop_control(loop, &cmd), "CQ");
}

int
bb_loop_attach_poller(struct bb_loop *loop, bb_loop_poll_fn fn, void *arg)
{
	struct loop_cmd cmd = {.apply = loop_add_poller, .fn = fn, .arg = arg};

	if (fn == NULL) {
		BB_LOG(ERR, "loop of lcore %u: the function of the poller is NULL", loop->lcore);
		return -EINVAL;
	}
	return loop_log(loop, loop_control(loop, &cmd), "poller");
}

int
bb_loop_detach_poller(struct bb_loop *loop, bb_loop_poll_fn fn, void *arg)
{
	struct loop_cmd cmd = {.apply = loop_del_poller, .fn = fn, .arg = arg};

	return loop_log(loop, fn == NULL ? -ENOENT : loop_control(loop, &cmd), "poller");
}

/*
 * Publishes the loop's numbers. Readers read all of them between two equal, even values of seq. The
 * release order of each store keeps it after the store of the odd seq. On x86 a store with release
 * order is a plain store.
 */
void
bb_loop_publish(struct bb_loop *loop)
{
	struct loop_stats *st = &loop->stats;
	const struct bb_loop_stats *n = &loop->now;
	uint64_t seq = st->seq;

	__atomic_store_n(&st->seq, seq + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&st->s.iterations, n->iterations, __ATOMIC_RELEASE);
	__atomic_store_n(&st->s.idle, n->idle, __ATOMIC_RELEASE);
	__atomic_store_n(&st->s.completions, n->completions, __ATOMIC_RELEASE);
	__atomic_store_n(&st->s.work, n->work, __ATOMIC_RELEASE);
	__atomic_store_n(&st->s.busy_cycles, n->busy_cycles, __ATOMIC_RELEASE);
	__atomic_store_n(&st->s.idle_cycles, n->idle_cycles, __ATOMIC_RELEASE);
	__atomic_store_n(&st->seq, seq + 2, __ATOMIC_RELEASE);
	loop->to_publish = PUBLISH_ITERATIONS;
	loop->published = loop->tsc;
}

/*
 * Counts an iteration, and publishes the statistics only at intervals. An idle iteration is shorter
 * than a reader's seven loads. So if the published values changed in each iteration, a reader would
 * retry for ever.
 */
static void
loop_account(struct bb_loop *loop, unsigned int completions, unsigned int work)
{
	struct bb_loop_stats *s = &loop->now;
	bool busy = (completions | work) != 0;

	s->iterations++;
	s->idle += !busy;
	s->completions += completions;
	s->work += work;
	if (loop->accounting) {
		uint64_t now = rte_rdtsc();

		if (busy)
			s->busy_cycles += now - loop->tsc;
		else
			s->idle_cycles += now - loop->tsc;
		loop->tsc = now;
	}
	if (unlikely(--loop->to_publish == 0 || loop->tsc - loop->published > loop->publish_cycles))
		bb_loop_publish(loop);
}

void
bb_loop_stats_v(const struct bb_loop *loop, struct bb_loop_stats *stats)
{
	const struct loop_stats *st = &loop->stats;
	const struct bb_loop_stats *s = &st->s;
	struct bb_loop_stats r = {0};
	uint64_t seq;

	do {
		/*
		 * The acquire order of each load keeps the second load of seq after the other
		 * loads.
		 */
		seq = __atomic_load_n(&st->seq, __ATOMIC_ACQUIRE);
		r.iterations = __atomic_load_n(&s->iterations, __ATOMIC_ACQUIRE);
		r.idle = __atomic_load_n(&s->idle, __ATOMIC_ACQUIRE);
		r.completions = __atomic_load_n(&s->completions, __ATOMIC_ACQUIRE);
		r.work = __atomic_load_n(&s->work, __ATOMIC_ACQUIRE);
		r.busy_cycles = __atomic_load_n(&s->busy_cycles, __ATOMIC_ACQUIRE);
		r.idle_cycles = __atomic_load_n(&s->idle_cycles, __ATOMIC_ACQUIRE);
	} while ((seq & 1) != 0 || __atomic_load_n(&st->seq, __ATOMIC_RELAXED) != seq);
	(void)bb_out(stats, &r, sizeof(r));
}

static void
loop_take_cmd(struct bb_loop *loop)
{
	struct loop_cmd *cmd = __atomic_exchange_n(&loop->cmd, NULL, __ATOMIC_ACQ_REL);

	if (cmd == NULL)
		return;
	cmd->rc = cmd->apply(loop, cmd);
	if (loop->dirty)
		loop_squeeze(loop);
	/* This store is the last access to @cmd, which is on the stack of the waiting thread. */
	__atomic_store_n(&cmd->done, 1, __ATOMIC_RELEASE);
}

unsigned int
bb_loop_iterate(struct bb_loop *loop)
{
	unsigned int completions = 0, work = 0;
	uint32_t i;

	/*
	 * Callbacks may detach any slot and may attach objects, so the loop reads n_cqs in each
	 * round.
	 */
	for (i = 0; i < loop->n_cqs; i++) {
		const struct loop_cq slot = loop->cqs[i];
		unsigned int n;

		if (unlikely(slot.cq == NULL))
			continue;
		n = bb_cq_poll(slot.cq, loop->wc, loop->burst);
		if (n == 0)
			continue;
		completions += n;
		slot.cb(slot.cq, loop->wc, n, slot.arg);
	}
	for (i = 0; i < loop->n_pollers; i++) {
		const struct loop_poller slot = loop->pollers[i];

		if (likely(slot.fn != NULL))
			work += slot.fn(slot.arg);
	}
	if (unlikely(loop->dirty))
		loop_squeeze(loop);
	if (unlikely(__atomic_load_n(&loop->cmd, __ATOMIC_RELAXED) != NULL))
		loop_take_cmd(loop);
	loop_account(loop, completions, work);
	return completions + work;
}
