/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Requests a neighbour from the kernel without waiting for it. The kernel resolves the MAC of a GID
 * when an address handle is created or a QP goes to RTR. The caller waits meanwhile (Linux:
 * rdma_addr_find_l2_eth_by_grh(), up to a second). Here a thread creates an address handle and
 * destroys it. The neighbour is then in the kernel's table, where the next call finds it.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "bb_ibv.h"

/* Maximum pending requests in the process; each has a thread. */
#define THREADS 16u
/* Maximum pending requests and cached answers. */
#define QUESTIONS 256u
/*
 * Seconds for which a positive answer is cached. The kernel uses a neighbour's MAC at once while
 * its entry exists, even a stale one. It drops an unused entry after 60 s at the earliest (man 7
 * arp: gc_stale_time).
 */
#define KEEP_S 60

struct question {
	struct ibv_context *ctx; /* NULL if the entry is free */
	struct ibv_ah_attr attr;
	uint64_t number; /* sequence number of the request */
	time_t at;       /* time of the answer, monotonic */
	bool answered;
	int ret; /* result */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t answer = PTHREAD_COND_INITIALIZER;
static struct question questions[QUESTIONS];
static uint64_t asked;
static unsigned int running;

static time_t
now(void)
{
	struct timespec t = {0};

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

static int
make_ah(struct ibv_context *ctx, struct ibv_ah_attr *attr)
{
	struct ibv_pd *pd;
	struct ibv_ah *ah;
	int ret = 0;

	errno = 0;
	pd = ibv_alloc_pd(ctx);
	if (pd == NULL)
		return bb_ibv_errno();
	errno = 0;
	ah = ibv_create_ah(pd, attr);
	if (ah == NULL)
		ret = bb_ibv_errno();
	else
		(void)ibv_destroy_ah(ah);
	(void)ibv_dealloc_pd(pd);
	return ret;
}

static void *
ask(void *arg)
{
	struct question *q = arg;
	struct ibv_ah_attr attr = q->attr;
	int ret = make_ah(q->ctx, &attr);

	pthread_mutex_lock(&lock);
	q->ret = ret;
	q->at = now();
	q->answered = true;
	running--;
	pthread_cond_broadcast(&answer);
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* Starts the thread of a request with all signals blocked: they are for the program's threads. */
static int
start(struct question *q)
{
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;
	int err;

	if (pthread_attr_init(&attr) != 0)
		return -EAGAIN;
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&thread, &attr, ask, q);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	(void)pthread_attr_destroy(&attr);
	return -err;
}

static bool
same(const struct question *q, struct ibv_context *ctx, const struct ibv_ah_attr *attr)
{
	return q->ctx == ctx && q->attr.port_num == attr->port_num &&
	       q->attr.grh.sgid_index == attr->grh.sgid_index &&
	       memcmp(q->attr.grh.dgid.raw, attr->grh.dgid.raw, sizeof(attr->grh.dgid.raw)) == 0;
}

/* Returns a free entry, or that of the oldest answer; NULL if all requests are pending. */
static struct question *
place(void)
{
	struct question *oldest = NULL;
	unsigned int i;

	for (i = 0; i < QUESTIONS; i++) {
		struct question *q = &questions[i];

		if (q->ctx == NULL)
			return q;
		if (q->answered && (oldest == NULL || q->number < oldest->number))
			oldest = q;
	}
	return oldest;
}

int
bb_ibv_ready(struct ibv_context *ctx, const struct ibv_ah_attr *attr)
{
	struct question *q = NULL;
	unsigned int i;
	int ret = -EAGAIN;

	pthread_mutex_lock(&lock);
	for (i = 0; i < QUESTIONS && q == NULL; i++)
		if (same(&questions[i], ctx, attr))
			q = &questions[i];
	if (q != NULL && q->answered && q->ret == 0 && now() - q->at >= KEEP_S)
		q->ctx = NULL;
	if (q != NULL && q->ctx != NULL) {
		ret = q->answered ? q->ret : -EAGAIN;
		/* The next call requests it again. */
		if (q->answered && ret != 0)
			q->ctx = NULL;
	} else if (running < THREADS && (q = place()) != NULL) {
		*q = (struct question){.ctx = ctx, .attr = *attr, .number = asked++};
		/* No thread is available now; the next call requests it again. */
		if (start(q) != 0)
			q->ctx = NULL;
		running += q->ctx != NULL;
	}
	pthread_mutex_unlock(&lock);
	return ret;
}

void
bb_ibv_ready_end(struct ibv_context *ctx)
{
	unsigned int i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < QUESTIONS; i++) {
		while (questions[i].ctx == ctx && !questions[i].answered)
			pthread_cond_wait(&answer, &lock);
		if (questions[i].ctx == ctx)
			questions[i].ctx = NULL;
	}
	pthread_mutex_unlock(&lock);
}
