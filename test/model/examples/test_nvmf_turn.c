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

/* ---- Shared memory */

/* Returns the number of RDMA WRITEs of the target that its device copied into the host's memory. */
static uint64_t
copied(const struct hq *q)
{
	const uint8_t *ip = (const uint8_t *)&((struct sockaddr_in *)&tgt.addr)->sin_addr;
	const uint8_t gid[16] = {[10] = 0xff, 0xff, ip[0], ip[1], ip[2], ip[3]};

	for (uint32_t i = 0; i < CONNS; i++)
		if (tgt.rdma.conn[i].queue != NULL && tgt.rdma.conn[i].queue->qid == q->qid)
			return soft_dev_peek_gid(gid)
				->shm->dir->count[tgt.rdma.conn[i].qp->qpn]
				.writes;
	fail();
	return 0;
}

TEST(test_reads_over_shared_memory_are_copied_into_the_hosts_memory)
{
	char spec[2][64];
	struct bb_loop_stats from, to;
	struct hq admin, io;
	uint8_t cmd[NVMF_SQE];
	uint32_t round, i;
	uint64_t before;

	for (i = 0; i < 2; i++)
		snprintf(spec[i], sizeof(spec[i]), "soft%u,shm=nvmf%d,ip=192.0.2.%u/24", i,
			 (int)getpid(), i + 1);
	open_both(0, spec[0], spec[1]);
	hq_connect(&io, 1, hq_admin(&admin, 0), 0);
	before = copied(&io);
	bb_loop_stats(tgt.rdma.loop, &from);
	for (round = 0; round < 50; round++) {
		for (i = 0; i < 8; i++) {
			command_rw(cmd, (uint16_t)i, NVM_READ, i, host.data + i * 4096, 4096);
			hq_send(&io, cmd, NULL, 0);
		}
		WAIT_FOR(io.outstanding == 0);
	}
	bb_loop_stats(tgt.rdma.loop, &to);
	/* The responses of a turn raise one completion. */
	assert_in_range(to.completions - from.completions, 50 * (8 + 1), 50 * (8 + 4));
	/* If a response followed each WRITE, most WRITEs would go as packets. */
	assert_in_range(copied(&io) - before, 50 * 8 / 2, 50 * 8);
	hq_disconnect(&io);
	hq_disconnect(&admin);
	WAIT_FOR(IDLE);
	close_both();
}

TEST_MAIN(bare_eal_init() < 0 ? 1 : 0)
