/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Packets to a process that has ended, or starts later (option shm). Two devices of this process
 * are two processes.
 */
#include <sys/socket.h>
#include <sys/syscall.h>

#include "shm_host.h"

/* ---- System calls of the device */

static uint32_t calls;

int
socket(int domain, int type, int protocol)
{
	calls++;
	return (int)syscall(SYS_socket, domain, type, protocol);
}

int
connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	calls++;
	return (int)syscall(SYS_connect, fd, addr, len);
}

/* ---- Packets to a process that has ended */

#define PACKETS 2000u
/* System calls of one attempt to reach a slot: three connections. */
#define ATTEMPT_CALLS 6u

/* Handles the sockets of two devices until the connection of @shm to a slot has the state. */
static const struct soft_shm_tx *
await(struct soft_shm *shm, struct soft_shm *peer, const uint8_t gid[16], uint32_t slot,
      uint32_t state)
{
	const struct soft_shm_tx *tx = soft_shm_find(shm, gid, slot);
	uint32_t i;

	for (i = 0; i < 60000 && tx->state != state; i++) {
		if (peer != NULL)
			soft_shm_chores(peer, rte_rdtsc());
		soft_shm_chores(shm, rte_rdtsc());
		usleep(1000);
	}
	assert_int_equal(tx->state, state);
	return tx;
}

/* Sends to a QPN without a process. Attempts to reach it have intervals. */
static void
send_in_vain(struct soft_dev *dev, const uint8_t dst[16], uint32_t dqpn)
{
	const uint64_t began = rte_rdtsc();
	const uint8_t data[8] = {0};
	uint64_t attempts;
	uint32_t i;

	calls = 0;
	for (i = 0; i < PACKETS; i++)
		assert_int_equal(send_to(dev, dst, dqpn, data, sizeof(data)), SOFT_LINK_LOST);
	attempts = 2 + (rte_rdtsc() - began) / soft_time_cycles(SOFT_SHM_RETRY_NS);
	assert_true(calls <= attempts * ATTEMPT_CALLS);
}

/* Sends to a QPN whose process has started until the link takes the packet. */
static void
send_at_last(struct soft_dev *dev, const uint8_t dst[16], uint32_t dqpn)
{
	const uint8_t data[8] = {0};
	uint32_t i;

	for (i = 0; i < 60000 && send_to(dev, dst, dqpn, data, sizeof(data)) != SOFT_LINK_SENT; i++)
		usleep(1000);
	assert_true(i < 60000);
}

TEST(test_packets_to_an_ended_process_of_the_host_do_not_call_the_kernel)
{
	struct mlx5_ctx *a = opened(0, ",host=h"), *b = opened(1, ",host=h");
	struct soft_dev *dev = dev_of(a);
	const uint32_t qpn = 2 << SOFT_LOG_QPNS | 5, unused = 9 << SOFT_LOG_QPNS | 5;

	assert_int_equal(soft_shm_reach(dev, address, 2, true), 0);
	await(dev->shm, dev_of(b)->shm, address, 2, SOFT_SHM_UP);
	shut(b);
	await(dev->shm, NULL, address, 2, SOFT_SHM_IDLE);
	send_in_vain(dev, address, qpn);
	send_in_vain(dev, address, unused);
	/* An attempt for one slot does not put off the first attempt for another slot. */
	b = opened(1, ",host=h");
	send_in_vain(dev, address, unused);
	send_at_last(dev, address, qpn);
	send_in_vain(dev, address, unused);
	assert_int_equal(soft_shm_find(dev->shm, address, 2)->slot, 2);
	shut(b);
	shut(a);
}

TEST(test_packets_to_an_ended_process_with_its_own_address_do_not_call_the_kernel)
{
	static const uint8_t peer_gid[16] = {[10] = 0xff, [11] = 0xff, 192, 0, 2, 2};
	struct mlx5_ctx *a = opened(0, ""), *b;
	struct soft_dev *dev = dev_of(a);
	char args[128];

	snprintf(args, sizeof(args), "shm=slot%d,ip=192.0.2.2/24", (int)getpid());
	assert_int_equal(soft_cmd_if.open("soft1", args, &b), 0);
	assert_int_equal(soft_shm_reach(dev, peer_gid, SOFT_SHM_ANY, true), 0);
	await(dev->shm, dev_of(b)->shm, peer_gid, SOFT_SHM_ANY, SOFT_SHM_UP);
	shut(b);
	await(dev->shm, NULL, peer_gid, SOFT_SHM_ANY, SOFT_SHM_IDLE);
	send_in_vain(dev, peer_gid, 3 << SOFT_LOG_QPNS | 5);
	assert_int_equal(soft_cmd_if.open("soft1", args, &b), 0);
	send_at_last(dev, peer_gid, 3 << SOFT_LOG_QPNS | 5);
	shut(b);
	shut(a);
}

/* A QP may connect before its peer's device starts. It then is in no slot's connection. */
TEST(test_qp_whose_peer_started_later_has_the_connection_of_the_peers_slot)
{
	static struct soft_engine e;
	static struct soft_shm_wire sw;
	struct mlx5_ctx *a = opened(0, ",host=h"), *b;
	struct soft_dev *dev = dev_of(a);
	struct soft_qp qp = {.dev = dev,
			     .engine = &e,
			     .wire = &sw.w,
			     .st = BB_PRM_QP_ST_RC,
			     .state = BB_PRM_QP_RTR,
			     .qpn = 1 << SOFT_LOG_QPNS | 7,
			     .remote_qpn = 2 << SOFT_LOG_QPNS | 5};
	struct soft_obj obj = {0};

	e.dev = dev;
	TAILQ_INIT(&e.qps);
	TAILQ_INIT(&e.failed);
	TAILQ_INSERT_TAIL(&e.qps, &qp, all);
	qp.obj = (struct mlx5_obj *)&obj;
	sw.w.qp = &qp;
	memcpy(sw.w.path.net.dst, address, 16);
	assert_int_equal(soft_shm_reach(dev, address, 2, true), -EHOSTUNREACH);
	soft_link_shm.connected(&sw.w);
	assert_int_equal(sw.w.shm_tx->slot, SOFT_SHM_ALL);
	soft_link_shm.receive(&e);
	assert_int_equal(sw.w.shm_tx->slot, SOFT_SHM_ALL);

	b = opened(1, ",host=h");
	send_at_last(dev, address, qp.remote_qpn);
	await(dev->shm, dev_of(b)->shm, address, 2, SOFT_SHM_UP);
	assert_true(soft_link_shm.waiting(&e));
	soft_link_shm.receive(&e);
	assert_int_equal(sw.w.shm_tx->slot, 2);
	assert_int_equal(qp.state, BB_PRM_QP_RTR);
	/* The QP learns that the peer has ended. */
	shut(b);
	await(dev->shm, NULL, address, 2, SOFT_SHM_IDLE);
	soft_link_shm.receive(&e);
	assert_int_equal(qp.state, BB_PRM_QP_ERR);
	shut(a);
}

/* A request of the CM: its service ID would be looked up. */
TEST(test_mads_to_an_address_without_a_connection_do_not_call_the_kernel)
{
	static const uint8_t unknown[16] = {[10] = 0xff, [11] = 0xff, 192, 0, 2, 3};
	const uint8_t mad[64] = {[1] = 7, [17] = 0x10, [39] = 1};
	struct mlx5_ctx *a = opened(0, ",host=h");

	calls = 0;
	assert_int_equal(send_to(dev_of(a), unknown, 1, mad, sizeof(mad)), SOFT_LINK_LOST);
	assert_int_equal(calls, 0);
	shut(a);
}

/* The first process of the address has ended. Its last packet is not read yet. */
TEST(test_restarted_peer_is_reached_by_a_new_connection)
{
	static const uint8_t own[16] = {[10] = 0xff, [11] = 0xff, 192, 0, 2, 2};
	struct mlx5_ctx *a, *b = opened(1, "");
	const uint8_t data[8] = {0};
	const struct soft_shm_tx *tx;
	struct soft_shm *shm;
	uint32_t deaths;
	char args[128];

	snprintf(args, sizeof(args), "shm=slot%d,ip=192.0.2.2/24", (int)getpid());
	assert_int_equal(soft_cmd_if.open("soft0", args, &a), 0);
	shm = dev_of(a)->shm;
	assert_int_equal(soft_shm_reach(dev_of(a), address, SOFT_SHM_ANY, true), 0);
	tx = await(shm, dev_of(b)->shm, address, SOFT_SHM_ANY, SOFT_SHM_UP);
	assert_int_equal(soft_shm_reach(dev_of(b), own, SOFT_SHM_ANY, true), 0);
	await(dev_of(b)->shm, shm, own, SOFT_SHM_ANY, SOFT_SHM_UP);
	assert_int_equal(send_to(dev_of(b), own, 99, data, sizeof(data)), SOFT_LINK_SENT);
	shut(b);
	soft_shm_chores(shm, rte_rdtsc());
	assert_int_equal(tx->state, SOFT_SHM_UP);
	assert_non_null(tx->leaving);

	b = opened(1, "");
	assert_int_equal(soft_shm_reach(dev_of(a), address, SOFT_SHM_ANY, true), 0);
	assert_int_equal(tx->state, SOFT_SHM_HANDSHAKE);
	assert_null(tx->leaving);
	/* A QP that is connected now does not fail. */
	deaths = tx->deaths;
	await(shm, dev_of(b)->shm, address, SOFT_SHM_ANY, SOFT_SHM_UP);
	assert_int_equal(tx->deaths, deaths);
	shut(b);
	shut(a);
}

TEST_MAIN(0)
