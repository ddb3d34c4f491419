/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Waiting for peers inside this process's memory when a key or QP is removed. Peers that were
 * inside are waited for, and only a peer that does not leave is cut off.
 */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bb_test.h"
#include "soft_shm.h"

#define PEERS 2

struct peer {
	struct soft_shm_rx rx;
	struct soft_shm_dir *dir; /* as the peer writes it */
	int sock;                 /* the peer's end of the socket */
};

static struct world {
	struct soft_dev dev;
	struct soft_shm shm;
	struct peer peer[PEERS];
} * w;

static void
peer_open(struct peer *p)
{
	int fd, socks[2];
	void *map;

	assert_int_equal(soft_shm_create(NULL, "dir", sizeof(*p->dir), &fd, &map), 0);
	p->dir = map;
	p->dir->engines = 1;
	p->rx.dir = soft_shm_reserve(NULL, sizeof(*p->dir));
	p->rx.ring.data = soft_shm_reserve(NULL, SOFT_RING_SIZE);
	assert_true(p->rx.dir != NULL && p->rx.ring.data != NULL);
	assert_int_equal(soft_shm_map(fd, sizeof(*p->dir), p->rx.dir), 0);
	close(fd);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, socks), 0);
	p->rx.sock = socks[0];
	p->sock = socks[1];
	p->rx.state = SOFT_SHM_UP;
	rte_ticketlock_init(&p->rx.lock);
}

static int
setup(void **st)
{
	(void)st;
	soft_time_init();
	w = calloc(1, sizeof(*w));
	assert_non_null(w);
	w->dev.qps = calloc(1u << SOFT_LOG_MAX_QP, sizeof(*w->dev.qps));
	assert_non_null(w->dev.qps);
	w->dev.shm = &w->shm;
	w->shm.dev = &w->dev;
	pthread_mutex_init(&w->shm.lock, NULL);
	for (uint32_t i = 0; i < PEERS; i++) {
		peer_open(&w->peer[i]);
		w->shm.rx[i] = &w->peer[i].rx;
	}
	w->shm.n_rx = PEERS;
	return 0;
}

static int
teardown(void **st)
{
	(void)st;
	for (uint32_t i = 0; i < PEERS; i++) {
		struct peer *p = &w->peer[i];

		if (p->rx.state != SOFT_SHM_IDLE)
			soft_shm_rx_close(&w->shm, &p->rx, NULL);
		munmap((void *)(uintptr_t)p->rx.dir, sizeof(*p->dir));
		munmap((void *)(uintptr_t)p->rx.ring.data, SOFT_RING_SIZE);
		munmap(p->dir, sizeof(*p->dir));
		close(p->sock);
	}
	pthread_mutex_destroy(&w->shm.lock);
	free(w->dev.qps);
	free(w);
	return 0;
}

static void
word(uint32_t peer, uint64_t v)
{
	__atomic_store_n(&w->peer[peer].dir->engine[0].v, v, __ATOMIC_RELEASE);
}

static uint32_t
state_of(uint32_t peer)
{
	return __atomic_load_n(&w->peer[peer].rx.state, __ATOMIC_ACQUIRE);
}

/* Enters long after the key was removed, and leaves a moment after another peer was cut off. */
static void *
comes_later(void *arg)
{
	(void)arg;
	usleep(SOFT_SHM_HOLD_NS / 1000 / 2);
	word(1, 1);
	while (state_of(0) == SOFT_SHM_UP)
		;
	usleep(20000);
	word(1, 2);
	return NULL;
}

/* Leaves after a moment, and enters again repeatedly. */
static void *
comes_and_goes(void *arg)
{
	const uint64_t *stop = arg;

	usleep(1000);
	for (uint64_t v = 3; __atomic_load_n(stop, __ATOMIC_ACQUIRE) == 0; v += 2)
		word(1, v);
	return NULL;
}

#define T(name) TEST_WITH(setup, teardown, name)

/*
 * The process of peer 0 is stopped inside. Only this peer is cut off, within the time limit for
 * all.
 */
T(test_stopped_peer_is_cut_off_in_time)
{
	uint64_t began = rte_rdtsc();
	pthread_t other;

	word(0, 7);
	assert_int_equal(pthread_create(&other, NULL, comes_later, NULL), 0);
	soft_shm_wait(&w->dev);
	pthread_join(other, NULL);
	assert_int_equal(state_of(0), SOFT_SHM_IDLE);
	assert_int_equal(state_of(1), SOFT_SHM_UP);
	assert_true(rte_rdtsc() - began >= soft_time_cycles(SOFT_SHM_HOLD_NS));
}

/* A peer that leaves in time stays connected, even if the peer before it used up the time. */
T(test_peer_that_leaves_in_time_stays)
{
	uint64_t stop = 0;
	pthread_t other;

	word(0, 7);
	word(1, 1);
	assert_int_equal(pthread_create(&other, NULL, comes_and_goes, &stop), 0);
	soft_shm_wait(&w->dev);
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	pthread_join(other, NULL);
	assert_int_equal(state_of(0), SOFT_SHM_IDLE);
	assert_int_equal(state_of(1), SOFT_SHM_UP);
}

/*
 * While true, a sched_yield() of this thread is a long stop of the machine, and the next one ends
 * the access of peer 0.
 */
static __thread bool stops, stopped;

int
sched_yield(void)
{
	if (!stops)
		return (int)syscall(SYS_sched_yield);
	if (stopped)
		word(0, 8);
	else
		usleep(SOFT_SHM_HOLD_NS / 1000 + 100000);
	stopped = true;
	return 0;
}

/* A stop of the machine, with the peer in an access, is no fault of the peer. */
T(test_stop_of_the_machine_does_not_cut_a_peer_off)
{
	word(0, 7);
	stops = true;
	soft_shm_wait(&w->dev);
	stops = false;
	assert_true(stopped);
	assert_int_equal(state_of(0), SOFT_SHM_UP);
}

/* No peer is inside, or only one whose process has ended. */
T(test_wait_ends_at_once_without_live_peers)
{
	uint64_t began = rte_rdtsc();

	word(0, 2);
	word(1, 5);
	close(w->peer[1].sock);
	w->peer[1].sock = -1;
	soft_shm_wait(&w->dev);
	assert_int_equal(state_of(0), SOFT_SHM_UP);
	assert_int_equal(state_of(1), SOFT_SHM_UP);
	assert_true(rte_rdtsc() - began < soft_time_cycles(SOFT_SHM_HOLD_NS));
}

T(test_new_engine_takes_the_first_free_epoch)
{
	struct soft_shm_dir *dir = w->peer[0].dir;
	struct soft_engine *e[3];

	w->shm.dir = dir;
	dir->engines = 0;
	for (uint32_t i = 0; i < 3; i++) {
		e[i] = calloc(1, sizeof(*e[i]));
		assert_non_null(e[i]);
		e[i]->dev = &w->dev;
	}
	for (uint32_t round = 0; round < SOFT_SHM_ENGINES + 1; round++) {
		for (uint32_t i = 0; i < 3; i++) {
			soft_shm_engine_add(e[i]);
			assert_ptr_equal(e[i]->shm_epoch, &dir->engine[i].v);
			assert_int_equal(dir->engines, round == 0 ? i + 1 : 3);
		}
		/* An engine that is removed from the middle leaves its epoch to the next. */
		soft_shm_engine_del(e[1]);
		soft_shm_engine_add(e[1]);
		assert_ptr_equal(e[1]->shm_epoch, &dir->engine[1].v);
		for (uint32_t i = 0; i < 3; i++)
			soft_shm_engine_del(e[i]);
	}
	for (uint32_t i = 0; i < 3; i++)
		free(e[i]);
}

TEST_MAIN(0)
