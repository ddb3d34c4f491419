/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Resolves the MAC of a GID without waiting.
 *
 * The kernel resolves the MAC when an address handle is created or a QP goes to RTR, and the
 * calling thread waits up to a second for the result (Linux: rdma_addr_find_l2_eth_by_grh()). So a
 * separate thread creates an address handle and destroys it. Afterwards the kernel's neighbour
 * table has the MAC, and the next call finds it there without waiting.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "bb_ibv.h"

/* Maximum pending requests of the process. Each request has a thread. */
#define THREADS 16u
/* Maximum number of addresses that are being resolved or whose result is cached. */
#define MAX_QUERIES 256u
/*
 * Seconds for which a successful result is cached. While a neighbour's entry exists, the kernel
 * uses its MAC at once, even if the entry is stale. The kernel keeps an unused entry for at least
 * 60 s (man 7 arp: gc_stale_time).
 */
#define RESULT_S 60

struct query {
	struct ibv_context *ctx; /* NULL if the entry is free */
	struct ibv_ah_attr attr;
	uint64_t number; /* sequence number of the request */
	time_t at;       /* time of the result in seconds, monotonic clock */
	bool finished;
	int ret; /* result: 0 or a negative errno */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t query_done = PTHREAD_COND_INITIALIZER;
static struct query queries[MAX_QUERIES];
static uint64_t n_started;
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
run_query(void *arg)
{
	struct query *q = arg;
	struct ibv_ah_attr attr = q->attr;
	int ret = make_ah(q->ctx, &attr);

	pthread_mutex_lock(&lock);
	q->ret = ret;
	q->at = now();
	q->finished = true;
	running--;
	pthread_cond_broadcast(&query_done);
	pthread_mutex_unlock(&lock);
	return NULL;
}

/*
 * Starts the thread that resolves one address. All signals are blocked in the thread, so the
 * program's own threads handle them.
 */
static int
start(struct query *q)
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
	err = pthread_create(&thread, &attr, run_query, q);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	(void)pthread_attr_destroy(&attr);
	return -err;
}

static bool
same_query(const struct query *q, struct ibv_context *ctx, const struct ibv_ah_attr *attr)
{
	return q->ctx == ctx && q->attr.port_num == attr->port_num &&
	       q->attr.grh.sgid_index == attr->grh.sgid_index &&
	       memcmp(q->attr.grh.dgid.raw, attr->grh.dgid.raw, sizeof(attr->grh.dgid.raw)) == 0;
}

/*
 * Returns a free entry, or else the entry with the oldest result. Returns NULL if all requests are
 * pending.
 */
static struct query *
free_entry(void)
{
	struct query *oldest = NULL;
	unsigned int i;

	for (i = 0; i < MAX_QUERIES; i++) {
		struct query *q = &queries[i];

		if (q->ctx == NULL)
			return q;
		if (q->finished && (oldest == NULL || q->number < oldest->number))
			oldest = q;
	}
	return oldest;
}

int
bb_ibv_ready(struct ibv_context *ctx, const struct ibv_ah_attr *attr)
{
	struct query *q = NULL;
	unsigned int i;
	int ret = -EAGAIN;

	pthread_mutex_lock(&lock);
	for (i = 0; i < MAX_QUERIES && q == NULL; i++)
		if (same_query(&queries[i], ctx, attr))
			q = &queries[i];
	if (q != NULL && q->finished && q->ret == 0 && now() - q->at >= RESULT_S)
		q->ctx = NULL;
	if (q != NULL && q->ctx != NULL) {
		ret = q->finished ? q->ret : -EAGAIN;
		/*
		 * Report the failure only once: drop the result, so that the next call resolves the
		 * MAC again.
		 */
		if (q->finished && ret != 0)
			q->ctx = NULL;
	} else if (running < THREADS && (q = free_entry()) != NULL) {
		*q = (struct query){.ctx = ctx, .attr = *attr, .number = n_started++};
		/* If no thread can be started, drop the entry. The next call tries again. */
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
	for (i = 0; i < MAX_QUERIES; i++) {
		while (queries[i].ctx == ctx && !queries[i].finished)
			pthread_cond_wait(&query_done, &lock);
		if (queries[i].ctx == ctx)
			queries[i].ctx = NULL;
	}
	pthread_mutex_unlock(&lock);
}
