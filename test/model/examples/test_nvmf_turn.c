/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* examples/nvmf over RDMA: turns of the target's loop, on two software devices of one process. */
#include "nvmf_initiator.h"
#include "soft_shm.h"

#define IDLE nvmf_rdma_idle(&tgt.rdma)

static void
open_both(uint32_t sleep_us, const char *target, const char *initiator)
{
	tgt_sleep_us = sleep_us;
	target_open(target);
	host_open(initiator);
}

static void
close_both(void)
{
	host_close();
	target_close();
}

/* ---- Sleep */

static bool storage_busy; /* the test's storage has an outstanding request */

static bool
outstanding(void *arg)
{
	assert_ptr_equal(arg, &storage_busy);
	return storage_busy;
}

TEST(test_lcore_without_work_sleeps_until_a_completion)
{
	struct hq admin, io;
	uint8_t cmd[NVMF_SQE];
	uint64_t wakeups, sleeps;
	uint32_t i;

	open_both(1, "soft0", "soft1");
	tgt.rdma.outstanding = outstanding;
	tgt.rdma.turn_arg = &storage_busy;
	hq_connect(&io, 1, hq_admin(&admin, 0), 0);
	storage_busy = true;
	tgt.rdma.sleeps = 0;
	for (i = 0; i < 1000; i++)
		turn();
	assert_int_equal(tgt.rdma.sleeps, 0);
	storage_busy = false;
	WAIT_FOR(tgt.rdma.sleeps >= 3);
	for (i = 0; i < 50; i++) {
		wakeups = tgt.rdma.wakeups;
		WAIT_FOR(tgt.rdma.recv_armed);
		command_rw(cmd, 1, (i & 1) != 0 ? NVM_READ : NVM_WRITE, i, host.data, 4096);
		hq_send(&io, cmd, NULL, 0);
		WAIT_FOR(tgt.rdma.wakeups != wakeups);
		WAIT_FOR(io.outstanding == 0);
		assert_int_equal(io.status[1], SC_OK);
		/* The command and the data of a write end a sleep; the end of a response does not.
		 */
		sleeps = tgt.rdma.sleeps;
		WAIT_FOR(tgt.rdma.sleeps >= sleeps + 2);
		assert_in_range(tgt.rdma.wakeups - wakeups, 1, (i & 1) != 0 ? 1 : 2);
	}
	hq_disconnect(&io);
	hq_disconnect(&admin);
	WAIT_FOR(IDLE);
	assert_int_equal(tgt.rdma.pulls, 0);
	close_both();
}

/* ---- Order of RDMA WRITEs and responses */

/* Returns the target's queue pair of a queue. */
static struct bb_qp *
target_qp(const struct hq *q)
{
	for (uint32_t i = 0; i < CONNS; i++)
		if (tgt.rdma.conn[i].queue != NULL && tgt.rdma.conn[i].queue->qid == q->qid)
			return tgt.rdma.conn[i].qp;
	fail();
	return NULL;
}

/* Returns the number of RDMA WRITEs of the target that its device copied into the host's memory. */
static uint64_t
copied(const struct hq *q)
{
	const uint8_t *ip = (const uint8_t *)&((struct sockaddr_in *)&tgt.addr)->sin_addr;
	const uint8_t gid[16] = {[10] = 0xff, 0xff, ip[0], ip[1], ip[2], ip[3]};

	return soft_dev_peek_gid(gid)->shm->dir->count[target_qp(q)->qpn].writes;
}

/* Opens two devices that share memory. There a turn of the target gets several reads. */
static void
open_fabric(void)
{
	char spec[2][64];
	uint32_t i;

	for (i = 0; i < 2; i++)
		snprintf(spec[i], sizeof(spec[i]), "soft%u,shm=nvmf%d,ip=192.0.2.%u/24", i,
			 (int)getpid(), i + 1);
	open_both(0, spec[0], spec[1]);
}

#define READS  8u
#define ROUNDS 50u

static void
send_reads(struct hq *q)
{
	uint8_t cmd[NVMF_SQE];

	for (uint32_t i = 0; i < READS; i++) {
		command_rw(cmd, (uint16_t)i, NVM_READ, i, host.data + i * 4096, 4096);
		hq_send(q, cmd, NULL, 0);
	}
	WAIT_FOR(q->outstanding == 0);
}

TEST(test_each_response_follows_its_own_write_unless_the_device_is_software)
{
	struct bb_loop_stats from, to;
	struct hq admin, io;
	const struct bb_sq *sq;
	uint32_t round, i;

	open_fabric();
	assert_int_not_equal(tgt.rdma.push_max, 0);
	tgt.rdma.push_max = 0;
	hq_connect(&io, 1, hq_admin(&admin, 0), 0);
	sq = &target_qp(&io)->sq;
	bb_loop_stats(tgt.rdma.loop, &from);
	for (round = 0; round < ROUNDS; round++) {
		send_reads(&io);
		for (i = 0; i < 2 * READS; i++)
			assert_int_equal(sq->wqes[(sq->pi - 1 - i) & sq->mask].opcode,
					 i % 2 == 0 ? BB_WQE_SEND : BB_WQE_RDMA_WRITE);
	}
	bb_loop_stats(tgt.rdma.loop, &to);
	/* The responses of a turn raise one completion in this order, too. */
	assert_in_range(to.completions - from.completions, ROUNDS * (READS + 1),
			ROUNDS * (READS + 4));
	hq_disconnect(&io);
	hq_disconnect(&admin);
	WAIT_FOR(IDLE);
	close_both();
}

TEST(test_reads_over_shared_memory_are_copied_into_the_hosts_memory)
{
	struct bb_loop_stats from, to;
	struct hq admin, io;
	uint32_t round;
	uint64_t before;

	open_fabric();
	hq_connect(&io, 1, hq_admin(&admin, 0), 0);
	before = copied(&io);
	bb_loop_stats(tgt.rdma.loop, &from);
	for (round = 0; round < ROUNDS; round++)
		send_reads(&io);
	bb_loop_stats(tgt.rdma.loop, &to);
	/* The responses of a turn raise one completion. */
	assert_in_range(to.completions - from.completions, ROUNDS * (READS + 1),
			ROUNDS * (READS + 4));
	/* If a response followed each WRITE, most WRITEs would go as packets. */
	assert_in_range(copied(&io) - before, ROUNDS * READS / 2, ROUNDS * READS);
	hq_disconnect(&io);
	hq_disconnect(&admin);
	WAIT_FOR(IDLE);
	close_both();
}

TEST_MAIN(bare_eal_init() < 0 ? 1 : 0)
