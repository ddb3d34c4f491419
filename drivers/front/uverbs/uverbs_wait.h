/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Waiting for an event of a descriptor as in the kernel: a signal ends the wait with EINTR, unless
 * its handler was installed with SA_RESTART. ib_uverbs_event_read() of Linux
 * drivers/infiniband/core/uverbs_main.c, devx_async_event_read() of hw/mlx5/devx.c and
 * ucma_get_event() of core/ucma.c return -ERESTARTSYS for that. The kernel never restarts poll(2),
 * but it restarts a futex(2) wait without a timeout: signal(7).
 */
#ifndef UVERBS_WAIT_H
#define UVERBS_WAIT_H

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

struct uverbs_wait {
	uint32_t events;  /* changes with each event; __atomic */
	uint32_t waiters; /* threads that wait; __atomic */
};

/* Returns the argument @seen of uverbs_wait(). Call it before looking for an event. */
static inline uint32_t
uverbs_wait_begin(const struct uverbs_wait *w)
{
	return __atomic_load_n(&w->events, __ATOMIC_ACQUIRE);
}

/* Wakes the threads that wait. Call it after an event was queued. Async-signal-safe. */
static inline void
uverbs_wait_wake(struct uverbs_wait *w)
{
	/*
	 * This thread stores "events", then loads "waiters". A thread that waits stores "waiters",
	 * then loads "events". So at least one of the two sees the other's store.
	 */
	__atomic_fetch_add(&w->events, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&w->waiters, __ATOMIC_SEQ_CST) != 0)
		(void)syscall(SYS_futex, &w->events, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static inline void
uverbs_wait_end(void *w)
{
	__atomic_fetch_sub(&((struct uverbs_wait *)w)->waiters, 1, __ATOMIC_SEQ_CST);
}

/* Sleeps while "events" is @seen. Returns 0 or -EINTR. */
static inline int
uverbs_wait_sleep(struct uverbs_wait *w, uint32_t seen)
{
	int type;
	long rc;

	/* syscall() is no cancellation point. */
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	rc = syscall(SYS_futex, &w->events, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
	pthread_setcanceltype(type, NULL);
	return rc < 0 && errno == EINTR ? -EINTR : 0;
}

/*
 * Waits until an event was queued since uverbs_wait_begin() returned @seen. May return earlier. A
 * thread that is cancelled meanwhile ends in this function. Returns 0 or -EINTR.
 */
static inline int
uverbs_wait(struct uverbs_wait *w, uint32_t seen)
{
	int ret;

	pthread_cleanup_push(uverbs_wait_end, w);
	__atomic_fetch_add(&w->waiters, 1, __ATOMIC_SEQ_CST);
	ret = uverbs_wait_sleep(w, seen);
	pthread_cleanup_pop(1);
	return ret;
}

#endif
