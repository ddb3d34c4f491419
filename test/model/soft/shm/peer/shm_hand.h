/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A device on a fabric of processes; the test acts as the process at the other end of its
 * sockets.
 */
#ifndef SHM_HAND_H
#define SHM_HAND_H

#include <sys/mman.h>
#include <unistd.h>

#include "../../../../fakes/process.h"
#include "../../../mlx5/mlx5_env.h"
#include "soft_ctl.h"
#include "soft_shm.h"

#define SECOND (rte_get_tsc_hz())

static const uint8_t own_gid[16] = {[10] = 0xff, [11] = 0xff, 192, 0, 2, 1};
static const uint8_t peer_gid[16] = {[10] = 0xff, [11] = 0xff, 192, 0, 2, 2};

static char fabric[32];
static struct bb_dev *dev;
static struct soft_shm *shm;

/* Runs the port's periodic work as if @s seconds had passed. */
static inline void
chores(uint64_t s)
{
	soft_shm_chores(shm, rte_rdtsc() + s * SECOND);
}

/*
 * Asserts that @end is the end of a handshake that began between the times @from and @to, and runs
 * the port's periodic work immediately before @end. TSC.
 */
static inline void
chores_before(uint64_t end, uint64_t from, uint64_t to)
{
	const uint64_t patience = soft_time_cycles(SOFT_SHM_PATIENCE_S * UINT64_C(1000000000));

	assert_in_range(end, from + patience, to + patience);
	soft_shm_chores(shm, end - 1);
}

/* Creates the memory that a sender shares: its directory and its ring. */
static inline void
share(int fds[2])
{
	void *map;

	assert_int_equal(soft_shm_create(NULL, "t-dir", sizeof(struct soft_shm_dir), &fds[0], &map),
			 0);
	munmap(map, sizeof(struct soft_shm_dir));
	assert_int_equal(soft_shm_create(NULL, "t-ring", SOFT_RING_SIZE, &fds[1], &map), 0);
	munmap(map, SOFT_RING_SIZE);
}

/* Sends @m with the first @n of @fds, closes @fds, and polls the device. */
static inline void
say(int sock, const struct soft_shm_msg *m, const int fds[2], uint32_t n)
{
	assert_int_equal(soft_shm_send(sock, m, fds, n), 0);
	close(fds[0]);
	close(fds[1]);
	chores(0);
}

static inline struct soft_shm_msg
hello(void)
{
	struct soft_shm_msg m;

	soft_shm_msg_init(&m, SOFT_SHM_HELLO);
	m.u.hello.n_gids = 1;
	memcpy(m.u.hello.gids[0], peer_gid, 16);
	return m;
}

/*
 * Reads the next message on @sock. Returns 0 if there is none, -ECONNRESET if the device has
 * closed the connection.
 */
static inline int
heard(int sock, bool from_listener, struct soft_shm_msg *m)
{
	int fds[SOFT_SHM_MAX_FDS], ret, i;
	const char *why = NULL;

	ret = soft_shm_recv(sock, from_listener, m, fds, &why);
	for (i = 0; ret == 1 && i < SOFT_SHM_MAX_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return ret;
}

static inline int
call(void)
{
	int sock;

	assert_int_equal(soft_shm_connect(fabric, own_gid, 0, &sock), 0);
	return sock;
}

/* Connects with a correct handshake, and expects that the device assigns the free slot @slot. */
static inline int
welcome(uint32_t slot)
{
	struct soft_shm_msg m = hello();
	int fds[2], sock = call();

	share(fds);
	say(sock, &m, fds, 2);
	assert_int_equal(heard(sock, true, &m), 1);
	assert_int_equal(m.type, SOFT_SHM_WELCOME);
	assert_int_equal(m.u.welcome.slot, slot);
	assert_int_equal(shm->rx[slot]->state, SOFT_SHM_UP);
	assert_int_equal(shm->rx[slot]->n_gids, 1);
	return sock;
}

static inline int
open_port(void **st)
{
	char spec[96];

	(void)st;
	snprintf(fabric, sizeof(fabric), "greet%d", (int)getpid());
	snprintf(spec, sizeof(spec), "soft0,shm=%s,ip=192.0.2.1/24", fabric);
	OK(bb_dev_open(spec, &dev));
	shm = soft_dev_peek_gid(own_gid)->shm;
	return 0;
}

static inline int
close_port(void **st)
{
	(void)st;
	return bb_dev_close(dev);
}

#endif
