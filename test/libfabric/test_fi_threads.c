/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Threads that use one domain at the same time, as FI_THREAD_SAFE allows: one sends, one receives,
 * one registers memory, one reads the event queue, and the provider has its own thread.
 */
#include <pthread.h>
#include <sched.h>

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

TEST_MAIN(0)
