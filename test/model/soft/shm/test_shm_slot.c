/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Devices that share an address (option host): slots, QPNs, service IDs, and the destinations of
 * MADs. Two devices of this process are two processes of a host.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm_host.h"

#define SERVICE 0x01061d2fu /* TCP, port 7471 */

static const uint8_t gids[2][16] = {
	{[10] = 0xff, [11] = 0xff, 192, 0, 2, 1},
	{0xfe, 0x80, [8] = 0x00, 0xbb, 0xc0, 0xff, 0xfe, 0x00, 0x02, 0x01},
};

/* ---- System calls of the device */

static void (*after_bind)(void);

int
bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	const int ret = (int)syscall(SYS_bind, fd, addr, len), error = errno;

	if (after_bind != NULL)
		after_bind();
	errno = error;
	return ret;
}

/* ---- Slots */

TEST(test_devices_of_a_host_have_slots_with_separate_qpns)
{
	struct mlx5_ctx *a = opened(0, ",host=h"), *b = opened(1, ",host=h");
	struct soft_ctl *ctl[2] = {dev_of(a)->ctl, dev_of(b)->ctl};
	uint32_t qpn, i, k;

	assert_int_equal(soft_id_prefix(a), 1);
	assert_int_equal(soft_id_prefix(b), 2);
	for (i = 0; i < 2; i++) {
		for (k = 0; k < 1u << SOFT_LOG_QPNS; k++) {
			assert_int_equal(soft_draw_take(&ctl[i]->qp_draw, &ctl[i]->random, &qpn),
					 0);
			assert_int_equal(soft_shm_slot_of(qpn), i + 1);
		}
		assert_int_equal(soft_draw_take(&ctl[i]->qp_draw, &ctl[i]->random, &qpn), -ENOSPC);
	}
	/* A slot that was given back is the next one to be taken. */
	shut(a);
	a = opened(0, ",host=h");
	assert_int_equal(soft_id_prefix(a), 1);
	shut(a);
	shut(b);
	/* Without the option the device has its usual QPNs again. */
	a = opened(0, "");
	assert_int_equal(soft_id_prefix(a), 0);
	for (k = 0; k < 1u << (SOFT_LOG_QPNS + 1); k++)
		assert_int_equal(soft_draw_take(&ctl[0]->qp_draw, &ctl[0]->random, &qpn), 0);
	shut(a);
}

TEST(test_another_host_cannot_have_the_address)
{
	struct mlx5_ctx *a = opened(0, ",host=h"), *other;

	assert_int_equal(open_as(1, ",host=i", &other), -EADDRINUSE);
	assert_int_equal(open_as(1, "", &other), -EADDRINUSE);
	shut(a);
	/* The host is found by a slot that is not the first one, too. */
	a = opened(0, ",host=h");
	other = opened(1, ",host=h");
	shut(a);
	assert_int_equal(open_as(0, ",host=i", &a), -EADDRINUSE);
	assert_int_equal(open_as(0, "", &a), -EADDRINUSE);
	shut(other);
	a = opened(0, "");
	assert_int_equal(open_as(1, ",host=h", &other), -EADDRINUSE);
	assert_int_equal(open_as(1, "", &other), -EADDRINUSE);
	shut(a);
	a = opened(0, ",host=i");
	shut(a);
}

TEST(test_host_needs_a_fabric)
{
	struct mlx5_ctx *ctx;

	assert_int_equal(soft_cmd_if.open("soft0", "host=h", &ctx), -EINVAL);
}

TEST(test_killed_process_gives_back_its_slot_and_services)
{
	struct mlx5_ctx *a = opened(0, ",host=h");
	struct soft_service *s;
	char c = 0;
	int ready[2];
	pid_t child;

	assert_int_equal(pipe(ready), 0);
	shut(a);
	child = fork();
	if (child == 0) {
		char args[128];

		snprintf(args, sizeof(args), "shm=slot%d,ip=192.0.2.1/24,host=h", (int)getppid());
		c = soft_cmd_if.open("soft1", args, &a) == 0 && soft_id_prefix(a) == 1 &&
		    soft_service_take(a, gids, 2, true, SERVICE, &s) == 0;
		if (write(ready[1], &c, 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	assert_int_equal(c, 1);
	a = opened(0, ",host=h");
	assert_int_equal(soft_id_prefix(a), 2);
	assert_int_equal(soft_service_take(a, gids, 1, false, SERVICE, &s), -EADDRNOTAVAIL);
	assert_true(soft_shm_slot_used(dev_of(a)->shm, address, 1));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_false(soft_shm_slot_used(dev_of(a)->shm, address, 1));
	assert_int_equal(soft_service_take(a, gids, 1, false, SERVICE, &s), 0);
	soft_service_give(s);
	shut(a);
	close(ready[0]);
	close(ready[1]);
}

/*
 * A child of fork() that does not execute another program closes its copies of the parent's
 * sockets. So it holds neither the slot nor the services of its parent, and has a slot of its own.
 */
TEST(test_forked_child_does_not_hold_what_its_parent_has)
{
	struct mlx5_ctx *a = opened(0, ",host=h"), *own;
	struct soft_service *s, *t;
	char c = 0;
	int ready[2];
	pid_t child;

	assert_int_equal(pipe(ready), 0);
	assert_int_equal(soft_service_take(a, gids, 2, true, SERVICE, &s), 0);
	child = fork();
	if (child == 0) {
		char args[128];

		soft_fork_child(a);
		snprintf(args, sizeof(args), "shm=slot%d,ip=192.0.2.1/24,host=h", (int)getppid());
		c = soft_cmd_if.open("soft0", args, &own) == 0 && soft_id_prefix(own) == 2 &&
		    soft_service_take(own, gids, 1, false, SERVICE, &t) == -EADDRNOTAVAIL;
		if (write(ready[1], &c, 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	assert_int_equal(c, 1);
	soft_service_give(s);
	shut(a);
	a = opened(0, ",host=h");
	assert_int_equal(soft_id_prefix(a), 1);
	assert_int_equal(soft_service_take(a, gids, 2, true, SERVICE, &s), 0);
	soft_service_give(s);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	shut(a);
	close(ready[0]);
	close(ready[1]);
}

/* ---- Services */

static struct mlx5_ctx *forks;
static pthread_t forker;
static pid_t forked;

static void *
do_fork(void *arg)
{
	(void)arg;
	soft_fork_before(forks);
	forked = fork();
	if (forked == 0) {
		soft_fork_child(forks);
		pause();
		_exit(0);
	}
	soft_fork_parent(forks);
	return NULL;
}

/* Runs after the name of a socket is taken: another thread forks, if no lock hinders it. */
static void
fork_meanwhile(void)
{
	after_bind = NULL;
	assert_int_equal(pthread_create(&forker, NULL, do_fork, NULL), 0);
	usleep(200000);
}

/* A thread may take a service while another thread forks: the child closes its copies, too. */
TEST(test_child_does_not_hold_a_service_that_a_thread_takes_during_the_fork)
{
	struct mlx5_ctx *a = opened(0, ",host=h");
	struct soft_service *s;

	forks = a;
	after_bind = fork_meanwhile;
	assert_int_equal(soft_service_take(a, gids, 2, true, SERVICE, &s), 0);
	assert_int_equal(pthread_join(forker, NULL), 0);
	assert_true(forked > 0);
	soft_service_give(s);
	/* The child lives, but does not have the names. */
	assert_int_equal(waitpid(forked, NULL, WNOHANG), 0);
	for (int i = 0; i < 60000 && soft_service_take(a, gids, 2, true, SERVICE, &s) != 0; i++)
		usleep(1000);
	assert_non_null(s);
	soft_service_give(s);
	kill(forked, SIGKILL);
	waitpid(forked, NULL, 0);
	shut(a);
}

TEST(test_service_belongs_to_one_process_of_a_host)
{
	struct mlx5_ctx *a = opened(0, ",host=h"), *b = opened(1, ",host=h");
	struct soft_service *s, *t;

	assert_int_equal(soft_service_take(a, gids, 1, false, SERVICE, &s), 0);
	assert_non_null(s);
	assert_int_equal(soft_service_take(b, gids, 1, false, SERVICE, &t), -EADDRINUSE);
	assert_null(t);
	/* Linux has another error if one of both is at all addresses. */
	assert_int_equal(soft_service_take(b, gids, 2, true, SERVICE, &t), -EADDRNOTAVAIL);
	/* Another port, and another address. */
	assert_int_equal(soft_service_take(b, gids, 2, true, SERVICE + 1, &t), 0);
	soft_service_give(t);
	assert_int_equal(soft_service_take(b, gids + 1, 1, false, SERVICE, &t), 0);
	soft_service_give(t);
	soft_service_give(s);
	assert_int_equal(soft_service_take(b, gids, 2, true, SERVICE, &t), 0);
	assert_int_equal(soft_service_take(a, gids, 1, false, SERVICE, &s), -EADDRNOTAVAIL);
	assert_int_equal(soft_service_take(a, gids + 1, 1, false, SERVICE, &s), -EADDRNOTAVAIL);
	soft_service_give(t);
	shut(a);
	shut(b);
}

TEST(test_service_of_a_device_without_a_host_needs_no_table)
{
	struct mlx5_ctx *a = opened(0, "");
	struct soft_service *s;

	assert_int_equal(soft_service_take(a, gids, 2, true, SERVICE, &s), 0);
	assert_null(s);
	soft_service_give(s);
	shut(a);
}

/* ---- Destinations of MADs */

static uint32_t
slot_of_mad(struct mlx5_ctx *ctx, const uint8_t *mad, uint32_t len)
{
	/* An address without a connection has no destination. */
	assert_int_equal(soft_shm_reach(dev_of(ctx), address, SOFT_SHM_ANY, false), 0);
	return soft_shm_mad_slot(dev_of(ctx)->shm, address, mad, len);
}

/* Builds the start of a CM message. */
static void
build(uint8_t *mad, uint8_t attr, uint32_t local, uint32_t remote, uint32_t high, uint32_t low)
{
	const uint32_t words[4] = {local, remote, high, low};
	unsigned int i;

	memset(mad, 0, 64);
	mad[1] = 7;
	mad[17] = attr;
	for (i = 0; i < 16; i++)
		mad[24 + i] = (uint8_t)(words[i / 4] >> (24 - 8 * (i & 3)));
}

TEST(test_mad_goes_to_the_process_that_it_names)
{
	struct mlx5_ctx *a = opened(0, ",host=h"), *b = opened(1, ",host=h");
	struct soft_service *s;
	uint8_t mad[64];

	/* REQ and SIDR_REQ: the service ID. */
	build(mad, 0x10, 5, 0, 0, SERVICE);
	assert_int_equal(slot_of_mad(a, mad, 40), SOFT_SHM_ANY);
	assert_int_equal(soft_service_take(b, gids, 2, true, SERVICE, &s), 0);
	assert_int_equal(slot_of_mad(a, mad, 40), 2);
	build(mad, 0x17, 5, 0, 0, SERVICE);
	assert_int_equal(slot_of_mad(b, mad, 64), 2);
	/* A service ID that is not of rdma_cm has the same lower half. */
	build(mad, 0x10, 5, 0, 1, SERVICE);
	assert_int_equal(slot_of_mad(a, mad, 40), SOFT_SHM_ANY);
	soft_service_give(s);
	/* REP, RTU and so on: the receiver's ID. */
	build(mad, 0x13, 0x01000000, 0x02abcdef, 0, 0);
	assert_int_equal(slot_of_mad(a, mad, 40), 2);
	/* SIDR_REP: the requester's ID comes first. */
	build(mad, 0x18, 0x01000000, 0x02abcdef, 0, 0);
	assert_int_equal(slot_of_mad(a, mad, 40), 1);
	shut(a);
	shut(b);
}

static struct mlx5_ctx *watcher;
static uint32_t first_slot, last_slot, changes;

/* Notes the destination of a REQ. */
static void
look_up(void)
{
	uint8_t mad[64];
	uint32_t slot;

	build(mad, 0x10, 5, 0, 0, SERVICE);
	slot = slot_of_mad(watcher, mad, 40);
	if (changes == 0)
		first_slot = slot;
	changes += changes == 0 || slot != last_slot;
	last_slot = slot;
}

/* Takes the service for @ctx, and looks up the destination after each name that it takes. */
static int
take_watched(struct mlx5_ctx *ctx, bool any, struct soft_service **s)
{
	int ret;

	watcher = ctx;
	changes = 0;
	after_bind = look_up;
	ret = soft_service_take(ctx, gids, 2, any, SERVICE, s);
	after_bind = NULL;
	assert_true(changes != 0);
	return ret;
}

TEST(test_request_never_goes_to_a_process_that_fails_to_take_the_service)
{
	struct mlx5_ctx *a = opened(0, ",host=h"), *b = opened(1, ",host=h");
	struct soft_service *s, *t;
	int any;

	for (any = 0; any < 2; any++) {
		assert_int_equal(soft_service_take(b, gids, 2, any != 0, SERVICE, &s), 0);
		assert_int_not_equal(take_watched(a, false, &t), 0);
		assert_int_equal(first_slot, 2);
		assert_int_equal(changes, 1);
		assert_int_not_equal(take_watched(a, true, &t), 0);
		assert_int_equal(first_slot, 2);
		assert_int_equal(changes, 1);
		soft_service_give(s);
	}
	shut(a);
	shut(b);
}

TEST(test_request_has_no_destination_while_a_process_takes_the_service)
{
	struct mlx5_ctx *a = opened(0, ",host=h");
	struct soft_service *s;
	int any;

	for (any = 0; any < 2; any++) {
		assert_int_equal(take_watched(a, any != 0, &s), 0);
		assert_int_equal(first_slot, SOFT_SHM_NO_SLOT);
		assert_int_equal(last_slot, 1);
		assert_int_equal(changes, 2);
		soft_service_give(s);
	}
	shut(a);
}

TEST(test_hostile_mad_has_a_destination_within_the_table_or_none)
{
	struct mlx5_ctx *a = opened(0, ",host=h");
	uint8_t mad[64];
	uint32_t i, len, slot;

	/* Each ID, each attribute, each length. */
	for (i = 0; i < 1u << 16; i++) {
		build(mad, (uint8_t)i, i << 16, (i & 0xff00) << 16, 0, i * 0x9e3779b9u);
		slot = slot_of_mad(a, mad, (uint8_t)i == 0x10 || (uint8_t)i == 0x17 ? 39 : 40);
		assert_true(slot == SOFT_SHM_ANY || (slot != 0 && slot < SOFT_SHM_SLOTS));
	}
	build(mad, 0x13, 0, 0x02000000, 0, 0);
	for (len = 0; len < SOFT_SHM_MAD_HEAD; len++)
		assert_int_equal(slot_of_mad(a, mad, len), SOFT_SHM_ANY);
	/* Another class. */
	mad[1] = 3;
	assert_int_equal(slot_of_mad(a, mad, 64), SOFT_SHM_ANY);
	shut(a);
}

/*
 * Another process of the host may take any name. A mark for a slot that is not in use leads to a
 * slot without a device: the message is lost, or rejected by another process.
 */
TEST(test_mark_of_a_slot_without_a_device_does_no_harm)
{
	struct mlx5_ctx *a = opened(0, ",host=h"), *b;
	const int fd[2] = {socket(AF_UNIX, SOCK_DGRAM, 0), socket(AF_UNIX, SOCK_DGRAM, 0)};
	char fabric[32], suffix[SOFT_SHM_SUFFIX];
	struct sockaddr_un sun;
	struct soft_dev *dev = dev_of(a);
	uint8_t mad[64];
	socklen_t len;

	snprintf(fabric, sizeof(fabric), "slot%d", (int)getpid());
	snprintf(suffix, sizeof(suffix), "/p/%08x", SERVICE);
	len = soft_shm_address(fabric, address, suffix, &sun);
	assert_int_equal(bind(fd[0], (struct sockaddr *)&sun, len), 0);
	build(mad, 0x10, 5, 0, 0, SERVICE);
	assert_int_equal(slot_of_mad(a, mad, 40), SOFT_SHM_NO_SLOT);
	/* The link drops the REQ, and calls no process. */
	assert_int_equal(soft_shm_reach(dev, address, 1, false), 0);
	assert_int_equal(send_to(dev, address, 1, mad, sizeof(mad)), SOFT_LINK_LOST);
	assert_int_equal(dev->shm->n_tx, 1);
	assert_int_equal(dev->shm->tx[0]->ring.tail, 0);
	snprintf(suffix, sizeof(suffix), "/p/%08x/99", SERVICE);
	len = soft_shm_address(fabric, address, suffix, &sun);
	assert_int_equal(bind(fd[1], (struct sockaddr *)&sun, len), 0);
	assert_int_equal(slot_of_mad(a, mad, 40), 99);
	assert_int_equal(soft_shm_reach(dev, address, 99, false), -EHOSTUNREACH);
	/* Any slot in use: that of this device. */
	assert_int_equal(soft_shm_reach(dev, address, SOFT_SHM_ANY, false), 0);
	assert_int_equal(soft_shm_find(dev->shm, address, SOFT_SHM_ANY)->slot, 1);
	assert_null(soft_shm_find(dev->shm, address, 2));
	b = opened(1, ",host=h");
	assert_int_equal(soft_shm_reach(dev, address, 2, false), 0);
	assert_int_equal(soft_shm_find(dev->shm, address, 2)->slot, 2);
	close(fd[0]);
	close(fd[1]);
	shut(b);
	shut(a);
}

TEST_MAIN(0)
