/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The NVMe-oF initiator of examples/nvmf/host and the target of examples/nvmf, over RDMA on two
 * software devices. The target has a thread of its own, because bb_nvmf_open() waits.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include <rte_lcore.h>

#include "bb_nvmf.h"
#include "nvmf_initiator.h"

#define BLOCK    512u
#define REQUESTS 15u

/* ---- Target in a thread */

static pthread_t thread;
static bool running, stopping;
static uint8_t saved[DISK]; /* data of the disk between two targets */
static char address[80], listen_at[32];

static void *
target_thread(void *arg)
{
	char text[INET_ADDRSTRLEN];

	(void)arg;
	OK(rte_thread_register());
	target_open("soft0");
	memcpy(tgt.storage, saved, DISK);
	inet_ntop(AF_INET, &((struct sockaddr_in *)&tgt.addr)->sin_addr, text, sizeof(text));
	snprintf(address, sizeof(address), "%s:%u", text, bb_listener_port(tgt.rdma.listener[0]));
	snprintf(listen_at, sizeof(listen_at), "0.0.0.0:%u",
		 bb_listener_port(tgt.rdma.listener[0]));
	__atomic_store_n(&running, true, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&stopping, __ATOMIC_ACQUIRE))
		(void)bb_loop_run_once(tgt.rdma.loop);
	memcpy(saved, tgt.storage, DISK);
	target_close();
	rte_thread_unregister();
	return NULL;
}

static void
target_start(void)
{
	running = stopping = false;
	assert_int_equal(pthread_create(&thread, NULL, target_thread, NULL), 0);
	while (!__atomic_load_n(&running, __ATOMIC_ACQUIRE))
		sched_yield();
}

static void
target_stop(void)
{
	__atomic_store_n(&stopping, true, __ATOMIC_RELEASE);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

/* ---- Initiator */

static struct bb_dev *dev;
static struct bb_nvmf *n;
static struct bb_mr *mr;
static uint8_t *data;
static struct bb_nvmf_attr attr;
static char why[160];

static int
setup(void **state)
{
	(void)state;
	target_listen[0] = "0.0.0.0:0";
	memset(saved, 0, sizeof(saved));
	target_start();
	OK(bb_dev_open("soft1", &dev));
	data = rte_zmalloc("data", DATA, 4096);
	assert_non_null(data);
	bb_nvmf_attr_init(&attr);
	attr.addr = address;
	attr.subnqn = NQN;
	attr.depth = REQUESTS;
	return 0;
}

static void
open_host(void)
{
	int rc = bb_nvmf_open(dev, &attr, &n, why, sizeof(why));

	if (rc != 0)
		fail_msg("bb_nvmf_open: %d: %s", rc, why);
	OK(bb_nvmf_reg(n, data, DATA, &mr));
}

static void
close_host(void)
{
	assert_int_equal(bb_nvmf_close(n), -EBUSY);
	OK(bb_nvmf_dereg(n, mr));
	OK(bb_nvmf_close(n));
}

static int
teardown(void **state)
{
	(void)state;
	OK(bb_dev_close(dev));
	rte_free(data);
	target_stop();
	return 0;
}

/* Takes @count completed requests, which must have the result @error. */
static void
take(uint32_t count, int error)
{
	const uint64_t end = rte_get_tsc_cycles() + WAIT_S * rte_get_tsc_hz();
	struct bb_nvmf_done done[REQUESTS];
	uint32_t i, got;

	while (count > 0) {
		got = bb_nvmf_poll(n, done, count < REQUESTS ? count : REQUESTS);
		for (i = 0; i < got; i++)
			assert_int_equal(done[i].error, error);
		count -= got;
		if (rte_get_tsc_cycles() > end)
			fail_msg("%u requests are not answered", count);
	}
}

static void
submit(enum bb_nvmf_op op, uint64_t block, void *mem, uint32_t len)
{
	struct bb_nvmf_request req = {
		.op = op, .offset = block * BLOCK, .length = len, .mem = mem, .mr = mr};

	OK(bb_nvmf_submit(n, &req));
}

static void
exec(enum bb_nvmf_op op, uint64_t block, void *mem, uint32_t len, int error)
{
	submit(op, block, mem, len);
	bb_nvmf_ring(n);
	take(1, error);
}

static void
fill(uint8_t *at, uint32_t len, uint32_t seed)
{
	for (uint32_t i = 0; i < len; i++)
		at[i] = (uint8_t)((i + seed) * 31 + i / 509);
}

static void
all_commands(void)
{
	open_host();
	assert_int_equal(bb_nvmf_shape(n)->capacity, DISK);
	assert_int_equal(bb_nvmf_shape(n)->block, BLOCK);
	assert_int_equal(bb_nvmf_shape(n)->max_io, MAX_IO);
	assert_int_equal(bb_nvmf_shape(n)->depth, REQUESTS);
	fill(data, MAX_IO, 1);
	exec(BB_NVMF_WRITE, 3, data, MAX_IO, 0);
	exec(BB_NVMF_FLUSH, 0, NULL, 0, 0);
	exec(BB_NVMF_READ, 3, data + MAX_IO, MAX_IO, 0);
	assert_memory_equal(data, data + MAX_IO, MAX_IO);
	exec(BB_NVMF_COMPARE, 3, data, MAX_IO, 0);
	data[MAX_IO - 1] ^= 1;
	exec(BB_NVMF_COMPARE, 3, data, MAX_IO, -EILSEQ);
	data[MAX_IO - 1] ^= 1;
	exec(BB_NVMF_ZEROES, 4, NULL, BLOCK, 0);
	exec(BB_NVMF_DISCARD, 0, NULL, BLOCK, 0);
	exec(BB_NVMF_READ, 3, data + MAX_IO, 3 * BLOCK, 0);
	assert_memory_equal(data, data + MAX_IO, BLOCK);
	memset(data + BLOCK, 0, BLOCK);
	assert_memory_equal(data, data + MAX_IO, 3 * BLOCK);
	close_host();
}

TEST_WITH(setup, teardown, test_all_commands)
{
	all_commands();
}

TEST_WITH(setup, teardown, test_all_commands_by_windows_that_the_target_invalidates)
{
	attr.windows = true;
	all_commands();
}

/* Writes and reads with full queues, in rounds. @middle runs while requests are outstanding. */
static void
load(uint32_t rounds, void (*middle)(void))
{
	uint32_t round, i;

	for (round = 0; round < rounds; round++) {
		for (i = 0; i < REQUESTS; i++) {
			fill(data + i * MAX_IO, 4 * BLOCK, round * REQUESTS + i);
			submit(BB_NVMF_WRITE, i * 4, data + i * MAX_IO, 4 * BLOCK);
		}
		bb_nvmf_ring(n);
		if (round == rounds / 2 && middle != NULL)
			middle();
		take(REQUESTS, 0);
		for (i = 0; i < REQUESTS; i++)
			submit(BB_NVMF_READ, i * 4, data + i * MAX_IO + MAX_IO / 2, 4 * BLOCK);
		bb_nvmf_ring(n);
		take(REQUESTS, 0);
		for (i = 0; i < REQUESTS; i++)
			assert_memory_equal(data + i * MAX_IO, data + i * MAX_IO + MAX_IO / 2,
					    4 * BLOCK);
	}
}

TEST_WITH(setup, teardown, test_full_queues_keep_the_data)
{
	for (uint32_t i = 0; i < 2; i++) {
		attr.windows = i == 1;
		open_host();
		load(200, NULL);
		close_host();
	}
}

static void
restart(void)
{
	target_stop();
	target_listen[0] = listen_at;
	target_start();
}

TEST_WITH(setup, teardown, test_restarted_target_gets_the_outstanding_requests)
{
	attr.reconnect_ms = WAIT_S * 1000;
	for (uint32_t i = 0; i < 2; i++) {
		attr.windows = i == 1;
		open_host();
		load(10, restart);
		assert_int_equal(bb_nvmf_reconnects(n), 1);
		assert_null(bb_nvmf_broken(n));
		close_host();
	}
}

TEST_WITH(setup, teardown, test_target_that_ends_fails_the_requests)
{
	open_host();
	submit(BB_NVMF_READ, 0, data, BLOCK);
	bb_nvmf_ring(n);
	take(1, 0);
	target_stop();
	submit(BB_NVMF_READ, 0, data, BLOCK);
	submit(BB_NVMF_READ, 1, data + BLOCK, BLOCK);
	bb_nvmf_ring(n);
	take(2, -ECONNRESET);
	assert_non_null(bb_nvmf_broken(n));
	close_host();
	target_start();
}

TEST_WITH(setup, teardown, test_wrong_attributes_are_refused_with_a_reason)
{
	char none[80];

	attr.subnqn = "nqn.2026-01.org.example:none";
	assert_int_equal(bb_nvmf_open(dev, &attr, &n, why, sizeof(why)), -ECONNREFUSED);
	assert_non_null(strstr(why, "no such subsystem"));
	attr.subnqn = NQN;
	attr.nsid = 2;
	assert_int_equal(bb_nvmf_open(dev, &attr, &n, why, sizeof(why)), -EPROTO);
	assert_non_null(strstr(why, "no namespace of this number"));
	attr.nsid = 1;
	attr.depth = 0;
	assert_int_equal(bb_nvmf_open(dev, &attr, &n, why, sizeof(why)), -EINVAL);
	attr.depth = 1000; /* the queue of the target has 16 entries */
	open_host();
	assert_int_equal(bb_nvmf_shape(n)->depth, DEPTH - 1);
	close_host();
	snprintf(none, sizeof(none), "%.*s:1", (int)strcspn(address, ":"), address);
	attr.addr = none;
	assert_int_equal(bb_nvmf_open(dev, &attr, &n, why, sizeof(why)), -ECONNREFUSED);
}

TEST_WITH(setup, teardown, test_close_ends_the_outstanding_requests_before_their_memory_is_free)
{
	for (uint32_t i = 0; i < 2; i++) {
		attr.windows = i == 1;
		open_host();
		submit(BB_NVMF_READ, 0, data, BLOCK);
		submit(BB_NVMF_WRITE, 1, data + BLOCK, BLOCK);
		bb_nvmf_ring(n);
		submit(BB_NVMF_READ, 2, data + 2 * BLOCK, BLOCK);
		assert_int_equal(bb_nvmf_close(n), -EBUSY);
		assert_non_null(bb_nvmf_broken(n));
		assert_non_null(strstr(bb_nvmf_broken(n), "bb_nvmf_close()"));
		assert_int_equal(bb_nvmf_pending(n), 3);
		take(3, -ECONNRESET);
		OK(bb_nvmf_dereg(n, mr));
		OK(bb_nvmf_close(n));
		/* The requests need not be polled. */
		open_host();
		submit(BB_NVMF_READ, 0, data, BLOCK);
		bb_nvmf_ring(n);
		close_host();
	}
}

TEST_WITH(setup, teardown, test_memory_outside_of_the_registration_is_refused)
{
	struct bb_nvmf_request req = {.op = BB_NVMF_READ, .length = BLOCK, .mem = data};

	open_host();
	assert_int_equal(bb_nvmf_submit(n, &req), -EINVAL);
	req.mr = mr;
	req.mem = data - 1;
	assert_int_equal(bb_nvmf_submit(n, &req), -EINVAL);
	req.mem = data + DATA - BLOCK + 1;
	assert_int_equal(bb_nvmf_submit(n, &req), -EINVAL);
	req.mem = data + DATA - BLOCK;
	OK(bb_nvmf_submit(n, &req));
	bb_nvmf_ring(n);
	take(1, 0);
	close_host();
}

TEST_MAIN(bare_eal_init() < 0 ? 1 : 0)
