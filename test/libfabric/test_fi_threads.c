/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Threads that use one domain at the same time, as FI_THREAD_SAFE allows: one sends, one receives,
 * one registers memory, one reads the event queue, and the provider has its own thread.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "pair.h"

#define MESSAGES 2000u
#define AHEAD    32u /* receives that are posted before the first message */
#define BYTES    96u /* more than inject_size, so the device reads the buffer */

static const struct want plain;
static struct pair p;
static bool stop; /* __atomic */

static void *
sender(void *arg)
{
	uint32_t i;

	(void)arg;
	for (i = 0; i < MESSAGES; i++) {
		p.a.mem[0] = (unsigned char)i;
		while (fi_send(p.a.ep, p.a.mem, BYTES, p.a.desc, 0, NULL) == -FI_EAGAIN)
			sched_yield();
		done(&p.a); /* the buffer is free now */
	}
	return NULL;
}

static void *
receiver(void *arg)
{
	uint32_t i;

	(void)arg;
	for (i = 0; i < MESSAGES; i++) {
		done(&p.b);
		assert_int_equal(p.b.mem[i % AHEAD * BYTES], i & 0xff);
		OK(fi_recv(p.b.ep, p.b.mem + i % AHEAD * BYTES, BYTES, p.b.desc, 0, NULL));
	}
	return NULL;
}

static void *
registrar(void *arg)
{
	static unsigned char mem[4096];
	struct fid_mr *mr;

	(void)arg;
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		OK(fi_mr_reg(p.domain, mem, sizeof(mem), 0, 0, 0, 0, &mr, NULL));
		OK(fi_close(&mr->fid));
		sched_yield();
	}
	return NULL;
}

static void *
watcher(void *arg)
{
	struct fi_eq_cm_entry e;
	uint32_t type;

	(void)arg;
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		assert_int_equal(fi_eq_read(p.eq, &type, &e, sizeof(e), 0), -FI_EAGAIN);
		sched_yield();
	}
	return NULL;
}

TEST(test_threads_share_a_domain)
{
	static void *(*const work[])(void *) = {sender, receiver, registrar, watcher};
	pthread_t threads[4];
	uint32_t i;

	pair_open(&p, &plain);
	pair_connect(&p, &plain);
	for (i = 0; i < AHEAD; i++)
		OK(fi_recv(p.b.ep, p.b.mem + i * BYTES, BYTES, p.b.desc, 0, NULL));
	for (i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, work[i], NULL), 0);
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	for (; i < 4; i++)
		pthread_join(threads[i], NULL);
	pair_close(&p);
}

/* ---- The provider's thread */

#define SLEEPS 1000u

static struct fid_cq *busy; /* CQ that poll() reads; NULL if there is none. __atomic */
static ssize_t last_read;   /* result of the last read of busy */

/*
 * Replaces poll() of libc. Reads a CQ after each sleep of the provider's thread, so that this
 * thread never sees a program that reads no queue. Ends after a completion or SLEEPS sleeps.
 */
int
poll(struct pollfd *fds, nfds_t n, int ms)
{
	static unsigned int sleeps;

	const struct timespec limit = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
	const int ret = ppoll(fds, n, ms < 0 ? NULL : &limit, NULL);
	struct fid_cq *cq = ms > 0 ? __atomic_load_n(&busy, __ATOMIC_ACQUIRE) : NULL;
	struct fi_cq_data_entry e;

	if (cq == NULL)
		return ret;
	last_read = fi_cq_read(cq, &e, 1);
	if (last_read != -FI_EAGAIN || ++sleeps == SLEEPS)
		__atomic_store_n(&busy, NULL, __ATOMIC_RELEASE);
	return ret;
}

/* Control progress is automatic: the program need not read its event queue. */
TEST(test_shutdown_cancels_receives_of_a_program_that_reads_its_cq_only)
{
	const struct timespec nap = {.tv_nsec = 1000000};

	pair_open(&p, &plain);
	pair_connect(&p, &plain);
	OK(fi_recv(p.b.ep, p.b.mem, 64, p.b.desc, 0, NULL));
	__atomic_store_n(&busy, p.b.cq, __ATOMIC_RELEASE);
	OK(fi_shutdown(p.a.ep, 0));
	while (__atomic_load_n(&busy, __ATOMIC_ACQUIRE) != NULL)
		nanosleep(&nap, NULL);
	assert_int_equal(last_read, -FI_EAVAIL);
	assert_int_equal(failed(&p.b).err, FI_ECANCELED);
	pair_close(&p);
}

TEST_MAIN(0)
