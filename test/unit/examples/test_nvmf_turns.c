/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* NVMe-oF engine: commands for a namespace of memory that take more than one turn. */
#include <string.h>

#include "bb_test.h"
#include "nvmf_host.h"

static struct nvmf_host host;
static struct nvmf_queue *admin, *q;

static int
setup(void **state)
{
	*state = &host;
	nvmf_host_open(&host);
	admin = nvmf_host_admin(&host, SUBSYS_OPEN);
	q = nvmf_host_io(&host, admin, 1);
	return 0;
}

static int
teardown(void **state)
{
	nvmf_host_drop(*state, q);
	nvmf_host_drop(*state, admin);
	nvmf_host_close(*state);
	return 0;
}

static uint32_t
rw(uint8_t op, uint32_t nsid, uint64_t slba, uint32_t n, uint32_t len)
{
	uint8_t cmd[NVMF_SQE];

	nvmf_host_rw(&host, cmd, op, nsid, slba, n, len);
	return nvmf_host_exec(&host, q, cmd);
}

#define BIG_NSID 3u

static uint8_t big[4 * NVMF_ZERO_PART];
static struct nvmf_ns big_ns;

static void
add_big(void)
{
	memset(big, 0xaa, sizeof(big));
	nvmf_ns_memory(&big_ns, big, sizeof(big), 9);
	assert_int_equal(nvmf_ns_add(&host.subsys[0], BIG_NSID, &big_ns), 0);
	host.hold_turns = true;
}

static void
send_zeroes(uint64_t at, uint64_t len)
{
	uint8_t cmd[NVMF_SQE];

	nvmf_host_rw(&host, cmd, NVM_WRITE_ZEROES, BIG_NSID, at / 512, (uint32_t)(len / 512), 0);
	nvmf_host_send(&host, q, cmd, NULL, 0);
	nvmf_host_run(&host);
}

static bool
all_bytes(uint64_t at, uint64_t len, uint8_t value)
{
	uint64_t i;

	for (i = at; i < at + len; i++)
		if (big[i] != value)
			return false;
	return true;
}

TEST_WITH(setup, teardown, test_long_write_zeroes_leaves_turns_to_other_commands)
{
	const uint64_t part = NVMF_ZERO_PART, other = 3 * part + 1024;
	uint32_t before = host.responses;

	add_big();
	send_zeroes(0, 3 * part);
	send_zeroes(other, 512);
	assert_int_equal(host.responses, before);
	assert_int_equal(nvmf_target_turn(host.t), 1);
	nvmf_host_run(&host);
	assert_int_equal(host.responses, before);
	assert_true(all_bytes(0, part, 0) && all_bytes(part, 3 * part, 0xaa));
	assert_int_equal(rw(NVM_READ, BIG_NSID, 0, 1, 512), SC_OK);
	/* The short command does not wait for the end of the long one. */
	assert_int_equal(nvmf_target_turn(host.t), 1);
	nvmf_host_run(&host);
	assert_int_equal(host.responses, before + 2);
	assert_true(all_bytes(other, 512, 0));
	assert_int_equal(nvmf_target_turn(host.t), 1);
	assert_true(all_bytes(2 * part, part, 0xaa));
	assert_int_equal(nvmf_target_turn(host.t), 1);
	nvmf_host_run(&host);
	assert_int_equal(host.responses, before + 3);
	assert_int_equal(nvmf_host_status(&host, before + 2), SC_OK);
	assert_int_equal(nvmf_target_turn(host.t), 0);
	assert_true(all_bytes(0, 3 * part, 0) && all_bytes(3 * part, 1024, 0xaa));
	assert_true(all_bytes(other + 512, sizeof(big) - other - 512, 0xaa));
}

TEST_WITH(setup, teardown, test_closed_queue_ends_a_long_write_zeroes)
{
	add_big();
	send_zeroes(0, 3 * NVMF_ZERO_PART);
	assert_int_equal(nvmf_target_turn(host.t), 1);
	nvmf_queue_close(q);
	assert_false(nvmf_queue_idle(q));
	assert_int_equal(nvmf_target_turn(host.t), 1);
	assert_true(nvmf_queue_idle(q));
	assert_true(all_bytes(NVMF_ZERO_PART, 3 * NVMF_ZERO_PART, 0xaa));
	assert_int_equal(nvmf_target_turn(host.t), 0);
}

TEST_WITH(setup, teardown, test_dsm_of_memory_changes_nothing)
{
	uint8_t cmd[NVMF_SQE];
	uint32_t i;

	add_big();
	memset(host.mem, 0, DSM_RANGES * DSM_RANGE);
	for (i = 0; i < DSM_RANGES; i++)
		put32(host.mem + DSM_RANGE * i + 4, sizeof(big) / 512);
	nvmf_host_cmd(&host, cmd, NVM_DSM, BIG_NSID, DSM_RANGES * DSM_RANGE);
	put32(cmd + AT_CDW10, DSM_RANGES - 1);
	put32(cmd + AT_CDW11, DSM_AD);
	assert_int_equal(nvmf_host_exec(&host, q, cmd), SC_OK);
	assert_true(all_bytes(0, sizeof(big), 0xaa));
}

TEST_MAIN(0)
