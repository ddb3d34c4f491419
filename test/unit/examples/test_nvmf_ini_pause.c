/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* NVMe-oF initiator: pauses of the caller between two polls. */
#include "bb_test.h"
#include "nvmf_ini_target.h"

static struct nvmf_ini_target t;
static struct bb_nvmf_attr attr;
static struct bb_nvmf_done done[64];

static int
setup(void **state)
{
	(void)state;
	bb_nvmf_attr_init(&attr);
	nvmf_ini_target_open(&t, &attr);
	assert_true(nvmf_ini_target_live(&t));
	return 0;
}

/* A connection that is restored. */
static int
setup_again(void **state)
{
	(void)state;
	bb_nvmf_attr_init(&attr);
	attr.reconnect_ms = 20000;
	nvmf_ini_target_open(&t, &attr);
	assert_true(nvmf_ini_target_live(&t));
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	nvmf_ini_target_close(&t);
	return 0;
}

static int
submit(enum bb_nvmf_op op)
{
	const struct bb_nvmf_request req = {.op = op, .length = 512};

	return nvmf_ini_submit(t.e, &req, 0x10000, 1);
}

TEST_WITH(setup_again, teardown, test_loss_in_a_pause_of_the_caller_leaves_time_for_an_attempt)
{
	OK(submit(BB_NVMF_WRITE));
	/* The time is set, and then the event of the pause is passed. */
	t.now += 3 * attr.reconnect_ms;
	nvmf_ini_time(t.e, t.now);
	nvmf_ini_target_break(&t);
	nvmf_ini_run(t.e);
	assert_int_equal(t.e->step, INI_PAUSE);
	assert_true(nvmf_ini_target_live(&t));
	assert_int_equal(t.nsent, 1);
}

TEST_WITH(setup_again, teardown, test_pause_in_a_restoration_leaves_time_for_an_attempt)
{
	OK(submit(BB_NVMF_WRITE));
	nvmf_ini_target_break(&t);
	nvmf_ini_target_jump(&t, 3 * attr.reconnect_ms);
	assert_int_equal(t.connects[0], 2);
	nvmf_ini_target_jump(&t, 3 * attr.reconnect_ms);
	assert_true(nvmf_ini_target_live(&t));
	assert_int_equal(t.nsent, 1);
}

TEST_WITH(setup, teardown, test_pause_with_outstanding_requests_leaves_the_connection)
{
	OK(submit(BB_NVMF_READ));
	nvmf_ini_target_jump(&t, 4 * attr.timeout_ms);
	assert_int_equal(t.e->step, INI_LIVE);
	/* Keep Alive is sent at once, and its answer has its whole time. */
	assert_int_equal(t.nsent, 2);
	assert_int_equal(t.sent[1].cmd[AT_OPCODE], ADM_KEEP_ALIVE);
	nvmf_ini_target_jump(&t, 4 * attr.timeout_ms);
	assert_int_equal(t.e->step, INI_LIVE);
	nvmf_ini_target_answer(&t, 1, SC_OK, 0);
	nvmf_ini_target_answer(&t, 0, SC_OK, 0);
	assert_int_equal(nvmf_ini_take(t.e, done, 64), 1);
	assert_int_equal(done[0].error, 0);
	/* A request that was submitted before the caller's first poll after a pause. */
	t.now += 4 * attr.timeout_ms;
	OK(submit(BB_NVMF_READ));
	nvmf_ini_target_jump(&t, 0);
	assert_int_equal(t.e->step, INI_LIVE);
}

TEST_WITH(setup, teardown, test_caller_that_polls_rarely_sends_keep_alive_in_time)
{
	uint32_t i, sent = 0;

	for (i = 0; i < 4 * 60; i++) {
		nvmf_ini_target_jump(&t, 250);
		sent += t.nsent;
		if (t.nsent != 0)
			nvmf_ini_target_answer(&t, 0, SC_OK, 0);
	}
	/* One each half of 15 s. */
	assert_in_range(sent, 7, 8);
	/* Time limits end all the same, after as many polls as the limit has steps. */
	OK(submit(BB_NVMF_READ));
	for (i = 0; i < attr.timeout_ms / INI_STEP_MAX; i++) {
		assert_int_equal(t.e->step, INI_LIVE);
		nvmf_ini_target_jump(&t, 1000);
		if (t.nsent > 1)
			nvmf_ini_target_answer(&t, 1, SC_OK, 0);
	}
	assert_int_equal(t.e->step, INI_OVER);
}

TEST_MAIN(0)
