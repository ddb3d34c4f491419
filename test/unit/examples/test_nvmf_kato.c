/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* NVMe-oF engine: keep-alive timers, pauses of the target. */
#include "bb_test.h"
#include "nvmf_host.h"

static struct nvmf_host host;

static int
setup(void **state)
{
	*state = &host;
	nvmf_host_open(&host);
	return 0;
}

static int
teardown(void **state)
{
	nvmf_host_close(*state);
	return 0;
}

/* Passes the time without a pause. */
static void
advance(uint64_t to)
{
	while (host.t->now + NVMF_PAUSE_MS < to)
		nvmf_target_time(host.t, host.t->now + NVMF_PAUSE_MS);
	nvmf_target_time(host.t, to);
}

TEST_WITH(setup, teardown, test_keep_alive_timer_closes_all_queues_of_a_silent_host)
{
	struct nvmf_queue *q = nvmf_host_queue(&host, 0, IO_DEPTH), *io;
	uint8_t cmd[NVMF_SQE];

	advance(1000);
	nvmf_host_connect_cmd(&host, cmd, SUBSYS_OPEN, 0, NVMF_CNTLID_ANY, IO_DEPTH);
	put32(cmd + AT_CON_KATO, 1500); /* rounded up to 2 s */
	assert_int_equal(nvmf_host_exec(&host, q, cmd), SC_OK);
	assert_int_equal(nvmf_host_set_cc(&host, q, CC_ENTRIES_NVM | CC_EN), SC_OK);
	io = nvmf_host_io(&host, q, 1);
	advance(2999);
	assert_int_equal(host.closes, 0);
	nvmf_host_cmd(&host, cmd, ADM_KEEP_ALIVE, 0, 0);
	assert_int_equal(nvmf_host_exec(&host, q, cmd), SC_OK);
	advance(4998);
	assert_int_equal(host.closes, 0);
	/* A command of an I/O queue counts, too. */
	nvmf_host_rw(&host, cmd, NVM_READ, 1, 0, 1, 512);
	assert_int_equal(nvmf_host_exec(&host, io, cmd), SC_OK);
	advance(6997);
	assert_int_equal(host.closes, 0);
	advance(6998);
	assert_int_equal(host.closes, 2);
	/* From now on the controller executes no command. */
	assert_int_equal(nvmf_host_exec(&host, io, cmd), SC_COMMAND_SEQUENCE | SC_DNR);
	nvmf_host_drop(&host, q);
	nvmf_host_drop(&host, io);
}

TEST_WITH(setup, teardown, test_silent_host_without_keep_alive_time_loses_its_discovery_controller)
{
	struct nvmf_queue *q;
	uint8_t cmd[NVMF_SQE];
	uint64_t last;

	advance(1000);
	q = nvmf_host_admin(&host, NVMF_DISCOVERY);
	advance(100000);
	/* Any command restarts the timer. Set Features cannot switch it off. */
	nvmf_host_cmd(&host, cmd, ADM_SET_FEATURES, 0, 0);
	put32(cmd + AT_CDW10, FEAT_KATO);
	assert_int_equal(nvmf_host_exec(&host, q, cmd), SC_OK);
	last = host.t->now;
	advance(last + 119999);
	assert_int_equal(host.closes, 0);
	advance(last + 120000);
	assert_int_equal(host.closes, 1);
	nvmf_host_drop(&host, q);
}

TEST_WITH(setup, teardown, test_host_of_a_subsystem_may_have_no_keep_alive_timer)
{
	struct nvmf_queue *q = nvmf_host_admin(&host, SUBSYS_OPEN);

	advance(1000000);
	assert_int_equal(host.closes, 0);
	nvmf_host_drop(&host, q);
}

TEST_WITH(setup, teardown, test_keep_alive_time_over_the_limit_is_refused)
{
	static const struct {
		uint32_t ms;
		bool ok;
	} cases[] = {{0, false}, {1, true}, {5000, true}, {5001, false}, {UINT32_MAX, false}};
	struct nvmf_queue *q;
	uint8_t cmd[NVMF_SQE];

	host.t->attr.keep_alive = 5000;
	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		q = nvmf_host_queue(&host, 0, IO_DEPTH);
		nvmf_host_connect_cmd(&host, cmd, SUBSYS_OPEN, 0, NVMF_CNTLID_ANY, IO_DEPTH);
		put32(cmd + AT_CON_KATO, cases[i].ms);
		if (!cases[i].ok) {
			assert_int_equal(nvmf_host_exec(&host, q, cmd), SC_CONNECT_PARAM | SC_DNR);
			assert_int_equal(host.result, AT_CON_KATO);
			nvmf_host_drop(&host, q);
			continue;
		}
		assert_int_equal(nvmf_host_exec(&host, q, cmd), SC_OK);
		assert_int_equal(nvmf_host_set_cc(&host, q, CC_ENTRIES_NVM | CC_EN), SC_OK);
		nvmf_host_cmd(&host, cmd, ADM_SET_FEATURES, 0, 0);
		put32(cmd + AT_CDW10, FEAT_KATO);
		put32(cmd + AT_CDW11, 5001);
		assert_int_equal(nvmf_host_exec(&host, q, cmd), SC_KATO_INVALID | SC_DNR);
		put32(cmd + AT_CDW11, 4000);
		assert_int_equal(nvmf_host_exec(&host, q, cmd), SC_OK);
		nvmf_host_drop(&host, q);
	}
}

TEST_WITH(setup, teardown, test_keep_alive_time_of_a_discovery_is_2_minutes_at_most)
{
	struct nvmf_queue *q;
	uint8_t cmd[NVMF_SQE];

	/* The target's limit is for hosts of subsystems. */
	host.t->attr.keep_alive = 5000;
	q = nvmf_host_queue(&host, 0, IO_DEPTH);
	nvmf_host_connect_cmd(&host, cmd, NVMF_DISCOVERY, 0, NVMF_CNTLID_ANY, IO_DEPTH);
	put32(cmd + AT_CON_KATO, 120001);
	assert_int_equal(nvmf_host_exec(&host, q, cmd), SC_CONNECT_PARAM | SC_DNR);
	assert_int_equal(host.result, AT_CON_KATO);
	put32(cmd + AT_CON_KATO, 120000);
	assert_int_equal(nvmf_host_exec(&host, q, cmd), SC_OK);
	assert_int_equal(nvmf_host_set_cc(&host, q, CC_EN), SC_OK);
	nvmf_host_cmd(&host, cmd, ADM_SET_FEATURES, 0, 0);
	put32(cmd + AT_CDW10, FEAT_KATO);
	put32(cmd + AT_CDW11, UINT32_MAX);
	assert_int_equal(nvmf_host_exec(&host, q, cmd), SC_KATO_INVALID | SC_DNR);
	nvmf_host_drop(&host, q);
}

/* Connects an admin queue at the time 1000 with a keep-alive time of 2 s. */
static struct nvmf_queue *
connect_for_2s(void)
{
	struct nvmf_queue *q = nvmf_host_queue(&host, 0, IO_DEPTH);
	uint8_t cmd[NVMF_SQE];

	advance(1000);
	nvmf_host_connect_cmd(&host, cmd, SUBSYS_OPEN, 0, NVMF_CNTLID_ANY, IO_DEPTH);
	put32(cmd + AT_CON_KATO, 2000);
	assert_int_equal(nvmf_host_exec(&host, q, cmd), SC_OK);
	return q;
}

TEST_WITH(setup, teardown, test_host_has_time_to_be_heard_after_a_pause_of_the_target)
{
	struct nvmf_queue *q = connect_for_2s();

	/* A long pause: the host has its whole time again. */
	advance(1500);
	nvmf_target_time(host.t, 31500);
	advance(33499);
	assert_int_equal(host.closes, 0);
	/* A command that it has sent in the pause arrives. */
	assert_int_equal(nvmf_host_property(&host, q, PROP_VS, 0), SC_OK);
	advance(35498);
	assert_int_equal(host.closes, 0);
	advance(35499);
	assert_int_equal(host.closes, 1);
	nvmf_host_drop(&host, q);
}

TEST_WITH(setup, teardown, test_short_pause_extends_the_keep_alive_time_by_its_length)
{
	struct nvmf_queue *q = connect_for_2s();

	nvmf_target_time(host.t, 1300);
	advance(3299);
	assert_int_equal(host.closes, 0);
	advance(3300);
	assert_int_equal(host.closes, 1);
	nvmf_host_drop(&host, q);
}

TEST_WITH(setup, teardown, test_keep_alive_timer_expires_though_every_turn_takes_long)
{
	struct nvmf_queue *q = connect_for_2s();
	uint64_t now = 1000;

	while (host.closes == 0 && now < 60000)
		nvmf_target_time(host.t, now += NVMF_PAUSE_MS + 50);
	/* The time twice, and at most two turns more. */
	assert_true(now >= 3000 && now <= 1000 + 2 * 2000 + 2 * (NVMF_PAUSE_MS + 50));
	nvmf_host_drop(&host, q);
}

TEST_MAIN(0)
