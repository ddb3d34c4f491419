/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* NVMe-oF initiator: requests, responses that lie, lost connections, memory windows. */
#include <errno.h>
#include <string.h>

#include "bb_test.h"
#include "nvmf_ini_target.h"

#define ADDR 0x123456780000ull
#define KEY  0x00c0ffeeu

static struct nvmf_ini_target t;
static struct bb_nvmf_attr attr;
static struct bb_nvmf_done done[64];

static int
setup(void **state)
{
	(void)state;
	bb_nvmf_attr_init(&attr);
	attr.depth = 8;
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
	attr.depth = 8;
	attr.reconnect_ms = 20000;
	attr.keep_alive_ms = 0;
	nvmf_ini_target_open(&t, &attr);
	assert_true(nvmf_ini_target_live(&t));
	return 0;
}

static int
setup_windows(void **state)
{
	(void)state;
	bb_nvmf_attr_init(&attr);
	attr.depth = 8;
	attr.windows = true;
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
submit(enum bb_nvmf_op op, uint64_t block, uint32_t blocks, uint32_t flags)
{
	struct bb_nvmf_request req = {.op = op,
				      .flags = flags,
				      .offset = block * 512,
				      .length = blocks * 512,
				      .user = (void *)(uintptr_t)(block + 1)};

	return nvmf_ini_submit(t.e, &req, ADDR + block * 512, KEY);
}

static void
assert_fatal(const char *why)
{
	assert_int_equal(t.e->step, INI_OVER);
	if (strstr(t.e->why, why) == NULL)
		fail_msg("\"%s\" is not in \"%s\"", why, t.e->why);
	assert_int_equal(t.e->error, -EPROTO);
	assert_int_equal(t.e->sent, 0);
}

/* ---- Commands */

TEST_WITH(setup, teardown, test_commands_name_the_memory_and_the_range)
{
	static const struct {
		enum bb_nvmf_op op;
		uint8_t opcode;
		bool data;
	} ops[] = {{BB_NVMF_READ, NVM_READ, true},
		   {BB_NVMF_WRITE, NVM_WRITE, true},
		   {BB_NVMF_COMPARE, NVM_COMPARE, true},
		   {BB_NVMF_ZEROES, NVM_WRITE_ZEROES, false}};

	for (uint32_t i = 0; i < 4; i++) {
		const uint8_t *cmd = t.sent[i].cmd;

		OK(submit(ops[i].op, 100 + i, 3, 0));
		assert_int_equal(t.sent[i].qid, 1);
		assert_int_equal(cmd[AT_OPCODE], ops[i].opcode);
		assert_int_equal(cmd[AT_FLAGS], PSDT_SGL);
		assert_int_equal(get32(cmd + AT_NSID), 1);
		assert_int_equal(get64(cmd + AT_SLBA), 100 + i);
		assert_int_equal(get32(cmd + AT_NLB), 2); /* no FUA */
		assert_int_equal(cmd[AT_SGL + AT_SGL_TYPE], SGL_KEYED);
		assert_int_equal(get64(cmd + AT_SGL), ops[i].data ? ADDR + (100 + i) * 512 : 0);
		assert_int_equal(get32(cmd + AT_SGL + 7) >> 8, ops[i].data ? 3 * 512 : 0);
		assert_int_equal(get32(cmd + AT_SGL + AT_SGL_KEY), ops[i].data ? KEY : 0);
	}
}

TEST_WITH(setup, teardown, test_flush_discard_and_fua_are_encoded)
{
	const uint8_t *cmd;

	OK(submit(BB_NVMF_FLUSH, 0, 0, 0));
	assert_int_equal(t.sent[0].cmd[AT_OPCODE], NVM_FLUSH);
	OK(submit(BB_NVMF_WRITE, 5, 32, BB_NVMF_FUA));
	assert_int_equal(get32(t.sent[1].cmd + AT_CDW12), CDW12_FUA | 31);
	OK(submit(BB_NVMF_DISCARD, 9, 20, 0));
	cmd = t.sent[2].cmd;
	assert_int_equal(cmd[AT_OPCODE], NVM_DSM);
	assert_int_equal(get32(cmd + AT_CDW10), 0);
	assert_int_equal(get32(cmd + AT_CDW11), DSM_AD);
	assert_int_equal(get32(cmd + AT_SGL + 7) >> 8, 16);
	assert_int_equal(get32(cmd + AT_SGL + AT_SGL_KEY), TARGET_KEY);
	cmd = t.shared + (get64(cmd + AT_SGL) - TARGET_ADDR);
	assert_in_range(cmd - t.shared, INI_PAGE, sizeof(t.shared) - 16);
	assert_int_equal(get32(cmd + 4), 20);
	assert_int_equal(get64(cmd + 8), 9);
}

TEST_WITH(setup, teardown, test_invalid_requests_are_refused)
{
	struct bb_nvmf_request req = {.op = BB_NVMF_READ, .length = 100};

	assert_int_equal(nvmf_ini_submit(t.e, &req, ADDR, KEY), -EINVAL);
	req.length = 512;
	req.offset = 100;
	assert_int_equal(nvmf_ini_submit(t.e, &req, ADDR, KEY), -EINVAL);
	assert_int_equal(submit(BB_NVMF_READ, 0, 0, 0), -EINVAL);
	assert_int_equal(submit(BB_NVMF_READ, 0, 33, 0), -EINVAL); /* above 16 KiB */
	assert_int_equal(submit(BB_NVMF_COMPARE, 0, 1, BB_NVMF_FUA), -EINVAL);
	assert_int_equal(submit(BB_NVMF_FLUSH, 0, 1, 0), -EINVAL);
	assert_int_equal(submit(BB_NVMF_FLUSH, 1, 0, 0), -EINVAL);
	assert_int_equal(submit((enum bb_nvmf_op)6, 0, 1, 0), -EINVAL);
	assert_int_equal(submit(BB_NVMF_READ, 0, 1, 8), -EINVAL);
	assert_int_equal(submit(BB_NVMF_READ, TARGET_BLOCKS, 1, 0), -ERANGE);
	assert_int_equal(submit(BB_NVMF_WRITE, TARGET_BLOCKS - 1, 2, 0), -ERANGE);
	assert_int_equal(submit(BB_NVMF_ZEROES, 0, TARGET_BLOCKS + 1, 0), -ERANGE);
	assert_int_equal(submit(BB_NVMF_READ, UINT64_MAX / 512, 1, 0), -ERANGE);
	assert_int_equal(t.nsent, 0);
	OK(submit(BB_NVMF_ZEROES, 0, TARGET_BLOCKS, 0));
}

TEST_WITH(NULL, teardown, test_operations_that_the_namespace_lacks_are_refused)
{
	nvmf_ini_target_open(&t, NULL);
	put16(t.controller + 520, 0);
	t.space[99] = 1;
	assert_true(nvmf_ini_target_live(&t));
	assert_int_equal(submit(BB_NVMF_COMPARE, 0, 1, 0), -EOPNOTSUPP);
	assert_int_equal(submit(BB_NVMF_WRITE, 0, 1, 0), -EROFS);
	assert_int_equal(submit(BB_NVMF_ZEROES, 0, 1, 0), -EROFS);
	assert_int_equal(submit(BB_NVMF_DISCARD, 0, 1, 0), -EROFS);
	OK(submit(BB_NVMF_READ, 0, 1, 0));
	OK(submit(BB_NVMF_FLUSH, 0, 0, 0));
}

TEST_WITH(setup, teardown, test_depth_limits_the_outstanding_requests)
{
	for (uint32_t i = 0; i < 8; i++)
		OK(submit(BB_NVMF_READ, i, 1, 0));
	assert_int_equal(submit(BB_NVMF_READ, 8, 1, 0), -EAGAIN);
	nvmf_ini_target_answer(&t, 3, SC_OK, 0);
	/* The slot is in use until the request is taken. */
	assert_int_equal(submit(BB_NVMF_READ, 8, 1, 0), -EAGAIN);
	assert_int_equal(nvmf_ini_take(t.e, done, 64), 1);
	assert_ptr_equal(done[0].user, (void *)4);
	assert_int_equal(done[0].error, 0);
	OK(submit(BB_NVMF_READ, 8, 1, 0));
	assert_int_equal(t.nsent, 8);
}

TEST_WITH(setup, teardown, test_each_status_becomes_an_error)
{
	static const struct {
		uint32_t status;
		int error;
	} all[] = {{SC_OK, 0},
		   {SC_LBA_RANGE | SC_DNR, -ERANGE},
		   {SC_CAPACITY | SC_DNR, -ENOSPC},
		   {SC_WRITE_PROTECTED, -EROFS},
		   {SC_COMPARE_FAILED | SC_DNR, -EILSEQ},
		   {SC_INVALID_OPCODE, -EOPNOTSUPP},
		   {SC_INVALID_NAMESPACE | SC_DNR, -ENODEV},
		   {SC_SGL_LENGTH | SC_DNR, -EINVAL},
		   {SC_READ_ERROR, -EIO},
		   {SC_DNR, 0}, /* a success that must not be retried */
		   {0x7ff, -EIO}};

	for (uint32_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		OK(submit(BB_NVMF_WRITE, i, 1, 0));
		nvmf_ini_target_answer(&t, 0, all[i].status, UINT64_MAX);
		assert_int_equal(nvmf_ini_take(t.e, done, 64), 1);
		assert_int_equal(done[0].error, all[i].error);
	}
}

/* ---- Responses that lie */

TEST_WITH(setup, teardown, test_second_response_for_a_command_ends_the_connection)
{
	uint8_t cqe[NVMF_CQE];

	OK(submit(BB_NVMF_READ, 0, 1, 0));
	nvmf_ini_target_build(&t, 0, SC_OK, 0, cqe);
	nvmf_ini_target_answer(&t, 0, SC_OK, 0);
	assert_int_equal(nvmf_ini_take(t.e, done, 64), 1);
	/* Its slot is in use again, and the id has another generation. */
	for (uint32_t i = 0; i < 8; i++)
		OK(submit(BB_NVMF_READ, i, 1, 0));
	nvmf_ini_target_cqe(&t, 1, cqe, NVMF_CQE);
	assert_fatal("no outstanding command");
	assert_int_equal(nvmf_ini_take(t.e, done, 64), 8);
	assert_int_equal(done[7].error, -ECONNRESET);
	assert_int_equal(submit(BB_NVMF_READ, 0, 1, 0), -ENOTCONN);
}

TEST_WITH(NULL, teardown, test_invalid_fields_of_a_response_end_the_connection)
{
	static const struct {
		uint32_t at, len;
		uint16_t qid, value;
		bool invalidated;
		const char *why;
	} lies[] = {
		{AT_CQE_CID, 16, 1, 0x0108, false, "no outstanding command"},
		{AT_CQE_CID, 16, 1, 0x01ff, false, "no outstanding command"},
		{AT_CQE_CID, 16, 1, 0x0001, false, "no outstanding command"},
		{AT_CQE_CID, 16, 1, 0x0200, false, "no outstanding command"},
		{AT_CQE_SQID, 16, 1, 2, false, "another queue"},
		{AT_CQE_SQHD, 16, 1, 9, false, "a head of 9 in a queue of 9"},
		{AT_CQE_SQID, 16, 0, 0, false, "no outstanding command"}, /* in the admin queue */
		{AT_CQE_STATUS, 14, 1, 0, false, "has 14 bytes"},
		{AT_CQE_STATUS, 64, 1, 0, false, "has 64 bytes"},
		{AT_CQE_STATUS, 16, 1, 0, true, "invalidated a key without request"},
	};

	for (uint32_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		uint8_t cqe[64] = {0};
		struct nvmf_ini_response r = {.bytes = cqe,
					      .len = lies[i].len,
					      .invalidated = lies[i].invalidated,
					      .key = KEY};

		if (i != 0)
			nvmf_ini_target_close(&t);
		nvmf_ini_target_open(&t, NULL);
		assert_true(nvmf_ini_target_live(&t));
		OK(submit(BB_NVMF_READ, 0, 1, 0));
		nvmf_ini_target_build(&t, 0, SC_OK, 0, cqe);
		assert_int_equal(get16(cqe + AT_CQE_CID), 0x0100);
		put16(cqe + lies[i].at, lies[i].value);
		nvmf_ini_response(t.e, lies[i].qid, &r);
		assert_fatal(lies[i].why);
		assert_int_equal(nvmf_ini_take(t.e, done, 64), 1);
		assert_int_equal(done[0].error, -ECONNRESET);
	}
}

TEST_WITH(setup, teardown, test_number_of_the_queue_may_be_zero)
{
	uint8_t cqe[NVMF_CQE];

	OK(submit(BB_NVMF_READ, 0, 1, 0));
	nvmf_ini_target_build(&t, 0, SC_OK, 0, cqe);
	put16(cqe + AT_CQE_SQID, 0);
	nvmf_ini_target_cqe(&t, 1, cqe, NVMF_CQE);
	assert_int_equal(nvmf_ini_take(t.e, done, 64), 1);
}

TEST_WITH(setup, teardown, test_silent_target_ends_the_connection)
{
	OK(submit(BB_NVMF_READ, 0, 1, 0));
	for (uint32_t i = 0; i < 299; i++) {
		nvmf_ini_target_time(&t, 100);
		/* It answers Keep Alive, but not the request. */
		if (t.nsent > 1)
			nvmf_ini_target_answer(&t, 1, SC_OK, 0);
	}
	assert_int_equal(t.e->step, INI_LIVE);
	nvmf_ini_target_time(&t, 200);
	assert_int_equal(t.e->step, INI_OVER);
	assert_int_equal(t.e->error, -ETIMEDOUT);
	assert_int_equal(nvmf_ini_take(t.e, done, 64), 1);
	assert_int_equal(done[0].error, -ECONNRESET);
}

/* ---- Lost connections */

TEST_WITH(setup, teardown, test_requests_fail_if_nothing_restores_the_connection)
{
	for (uint32_t i = 0; i < 5; i++)
		OK(submit(i % 2 ? BB_NVMF_READ : BB_NVMF_WRITE, i, 1, 0));
	nvmf_ini_target_answer(&t, 0, SC_OK, 0);
	nvmf_ini_target_break(&t);
	assert_int_equal(t.disconnects, 1);
	assert_int_equal(t.e->step, INI_OVER);
	assert_int_equal(nvmf_ini_take(t.e, done, 2), 2); /* in parts */
	assert_int_equal(done[0].error, 0);
	assert_int_equal(done[1].error, -ECONNRESET);
	assert_int_equal(nvmf_ini_take(t.e, done, 64), 3);
	assert_int_equal(t.e->used, 0);
	nvmf_ini_target_time(&t, 60000);
	assert_int_equal(t.connects[0], 1);
}

TEST_WITH(setup_again, teardown, test_outstanding_requests_are_sent_again)
{
	uint8_t before[NVMF_SQE], after[NVMF_SQE];

	OK(submit(BB_NVMF_WRITE, 7, 2, BB_NVMF_FUA));
	OK(submit(BB_NVMF_READ, 8, 1, BB_NVMF_NO_RETRY));
	OK(submit(BB_NVMF_FLUSH, 0, 0, 0));
	memcpy(before, t.sent[0].cmd, NVMF_SQE);
	nvmf_ini_target_break(&t);
	assert_int_equal(nvmf_ini_take(t.e, done, 64), 1);
	assert_ptr_equal(done[0].user, (void *)9);
	assert_int_equal(done[0].error, -ECONNRESET);
	/* A new request waits, unless it must not be retried. */
	assert_int_equal(submit(BB_NVMF_READ, 11, 1, BB_NVMF_NO_RETRY), -EAGAIN);
	OK(submit(BB_NVMF_READ, 12, 1, 0));
	assert_int_equal(t.nsent, 0);
	assert_true(nvmf_ini_target_live(&t));
	assert_int_equal(t.e->reconnects, 1);
	assert_int_equal(t.nsent, 3);
	memcpy(after, t.sent[0].cmd, NVMF_SQE);
	assert_true(get16(before + AT_CID) != get16(after + AT_CID));
	put16(after + AT_CID, get16(before + AT_CID));
	assert_memory_equal(before, after, NVMF_SQE);
	while (t.nsent != 0)
		nvmf_ini_target_answer(&t, 0, SC_OK, 0);
	assert_int_equal(nvmf_ini_take(t.e, done, 64), 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(done[i].error, 0);
}

TEST_WITH(setup_again, teardown, test_time_limit_of_a_loss_ends_the_requests)
{
	OK(submit(BB_NVMF_WRITE, 7, 2, 0));
	nvmf_ini_target_break(&t);
	for (uint32_t i = 0; i < 1999; i++) {
		if (t.connecting[0])
			nvmf_ini_rejected(t.e, 0, NULL, 0, "no listener");
		nvmf_ini_target_time(&t, 10);
		assert_int_not_equal(t.e->step, INI_OVER);
	}
	assert_in_range(t.connects[0], 20, 30);
	assert_int_equal(nvmf_ini_take(t.e, done, 64), 0);
	nvmf_ini_target_time(&t, 10);
	assert_int_equal(t.e->step, INI_OVER);
	assert_non_null(strstr(t.e->why, "no listener"));
	assert_int_equal(nvmf_ini_take(t.e, done, 64), 1);
	assert_int_equal(done[0].error, -ECONNRESET);
}

TEST_WITH(setup_again, teardown, test_target_that_connects_but_executes_nothing_is_given_up)
{
	OK(submit(BB_NVMF_WRITE, 7, 2, 0));
	/* It drops each connection when it is to execute the request. */
	for (uint32_t i = 0; i < 3000 && t.e->step != INI_OVER; i++) {
		nvmf_ini_target_run(&t);
		if (t.e->step == INI_LIVE)
			nvmf_ini_target_break(&t);
		nvmf_ini_target_time(&t, 10);
	}
	assert_int_equal(t.e->step, INI_OVER);
	assert_in_range(t.now, TARGET_TIME + 20000, TARGET_TIME + 21500);
	assert_int_equal(nvmf_ini_take(t.e, done, 64), 1);
}

TEST_WITH(setup_again, teardown, test_busy_target_is_asked_until_the_time_limit)
{
	/* As a target that still executes requests of the lost connection. */
	OK(submit(BB_NVMF_WRITE, 7, 2, 0));
	nvmf_ini_target_break(&t);
	t.refuse = 0x100 | FC_CONNECT;
	t.status = SC_CONNECT_BUSY;
	for (uint32_t i = 0; i < 1900; i++) {
		nvmf_ini_target_run(&t);
		nvmf_ini_target_time(&t, 10);
		assert_int_not_equal(t.e->step, INI_OVER);
	}
	t.refuse = UINT32_MAX;
	assert_true(nvmf_ini_target_live(&t));
	assert_int_equal(t.nsent, 1);
	nvmf_ini_target_answer(&t, 0, SC_OK, 0);
	assert_int_equal(nvmf_ini_take(t.e, done, 64), 1);
	assert_int_equal(done[0].error, 0);
	/* One that stays busy. */
	OK(submit(BB_NVMF_WRITE, 7, 2, 0));
	nvmf_ini_target_break(&t);
	t.refuse = 0x100 | FC_CONNECT;
	for (uint32_t i = 0; i < 2100; i++) {
		nvmf_ini_target_run(&t);
		nvmf_ini_target_time(&t, 10);
	}
	assert_int_equal(t.e->step, INI_OVER);
	assert_int_equal(nvmf_ini_take(t.e, done, 64), 1);
	assert_int_equal(done[0].error, -ECONNRESET);
}

TEST_WITH(setup_again, teardown, test_later_loss_has_a_time_limit_of_its_own)
{
	for (uint32_t i = 0; i < 5; i++) {
		OK(submit(BB_NVMF_WRITE, 7, 2, 0));
		nvmf_ini_target_break(&t);
		nvmf_ini_target_time(&t, 15000);
		assert_true(nvmf_ini_target_live(&t));
		nvmf_ini_target_answer(&t, 0, SC_OK, 0);
		assert_int_equal(nvmf_ini_take(t.e, done, 64), 1);
		assert_int_equal(done[0].error, 0);
	}
	assert_int_equal(t.e->reconnects, 5);
}

TEST_WITH(setup_again, teardown, test_another_namespace_after_a_loss_is_refused)
{
	static const struct {
		uint32_t at;
		uint8_t value;
	} changes[] = {{0, 1}, {99, 1}, {104, 1}, {127, 1}, {130, 12}};

	for (uint32_t i = 0; i < 5; i++) {
		if (i != 0) {
			nvmf_ini_target_close(&t);
			nvmf_ini_target_open(&t, &attr);
			assert_true(nvmf_ini_target_live(&t));
		}
		OK(submit(BB_NVMF_WRITE, 7, 2, 0));
		nvmf_ini_target_break(&t);
		t.space[changes[i].at] = changes[i].value;
		assert_false(nvmf_ini_target_live(&t));
		assert_fatal("another namespace than before");
		assert_int_equal(t.connects[1], 1);
		assert_int_equal(nvmf_ini_take(t.e, done, 64), 1);
		assert_int_equal(done[0].error, -ECONNRESET);
	}
}

TEST_WITH(setup_again, teardown, test_smaller_queue_after_a_loss_sends_in_parts)
{
	for (uint32_t i = 0; i < 8; i++)
		OK(submit(BB_NVMF_READ, i, 1, 0));
	nvmf_ini_target_break(&t);
	t.cap = (t.cap & ~0xffffull) | 3;
	assert_true(nvmf_ini_target_live(&t));
	assert_int_equal(t.e->shape.depth, 8);
	for (uint32_t left = 8; left > 0; left--) {
		assert_int_equal(t.nsent, left < 3 ? left : 3);
		nvmf_ini_target_answer(&t, 0, SC_OK, 0);
	}
	assert_int_equal(nvmf_ini_take(t.e, done, 64), 8);
}

/* ---- Memory windows */

static void
answer_invalidated(uint32_t i, uint32_t key, bool invalidated)
{
	struct nvmf_ini_response r = {.len = NVMF_CQE, .invalidated = invalidated, .key = key};
	uint8_t cqe[NVMF_CQE];

	nvmf_ini_target_build(&t, i, SC_OK, 0, cqe);
	nvmf_ini_target_drop(&t, i);
	r.bytes = cqe;
	nvmf_ini_response(t.e, 1, &r);
}

TEST_WITH(setup_windows, teardown, test_request_ends_when_its_key_is_invalid)
{
	const uint8_t *cmd = t.sent[0].cmd;

	OK(submit(BB_NVMF_READ, 3, 1, 0));
	assert_int_equal(t.grants, 1);
	assert_int_equal(cmd[AT_SGL + AT_SGL_TYPE], SGL_KEYED_INV);
	assert_int_equal(get32(cmd + AT_SGL + AT_SGL_KEY), 0x1001);
	answer_invalidated(0, 0x1001, true);
	assert_int_equal(nvmf_ini_take(t.e, done, 64), 1);
	assert_int_equal(t.revokes, 0);
	/* A target that does not invalidate it. */
	OK(submit(BB_NVMF_WRITE, 3, 1, 0));
	answer_invalidated(0, 0, false);
	assert_int_equal(nvmf_ini_take(t.e, done, 64), 0);
	assert_int_equal(t.revokes, 1);
	nvmf_ini_revoked(t.e, (uint16_t)t.revoking[0]);
	assert_int_equal(nvmf_ini_take(t.e, done, 64), 1);
	assert_int_equal(done[0].error, 0);
	nvmf_ini_revoked(t.e, (uint16_t)t.revoking[0]); /* without effect */
	assert_int_equal(nvmf_ini_take(t.e, done, 64), 0);
	/* Requests without data have no key. */
	OK(submit(BB_NVMF_FLUSH, 0, 0, 0));
	assert_int_equal(t.grants, 2);
	nvmf_ini_target_answer(&t, 0, SC_OK, 0);
	assert_int_equal(nvmf_ini_take(t.e, done, 64), 1);
}

TEST_WITH(setup_windows, teardown, test_invalidation_of_another_key_ends_the_connection)
{
	OK(submit(BB_NVMF_READ, 3, 1, 0));
	OK(submit(BB_NVMF_READ, 4, 1, 0));
	answer_invalidated(0, 0x1002, true);
	assert_fatal("invalidated a key without request");
}

TEST_WITH(setup_windows, teardown, test_loss_while_a_key_is_being_invalidated_keeps_the_answer)
{
	OK(submit(BB_NVMF_READ, 3, 1, 0));
	OK(submit(BB_NVMF_READ, 4, 1, 0));
	answer_invalidated(0, 0, false);
	nvmf_ini_target_break(&t);
	assert_int_equal(nvmf_ini_take(t.e, done, 64), 1);
	assert_ptr_equal(done[0].user, (void *)4);
	assert_int_equal(done[0].error, 0);
	assert_true(nvmf_ini_target_live(&t));
	assert_int_equal(t.nsent, 1);
	assert_int_equal(t.grants, 3);
	answer_invalidated(0, 0x1003, true);
	assert_int_equal(nvmf_ini_take(t.e, done, 64), 1);
	assert_int_equal(done[0].error, 0);
}

TEST_WITH(setup_windows, teardown, test_request_without_a_window_waits_for_the_next_connection)
{
	t.fail_grant = -ENOMEM;
	OK(submit(BB_NVMF_READ, 3, 1, 0));
	assert_int_equal(t.e->step, INI_PAUSE);
	assert_int_equal(t.nsent, 0);
	t.fail_grant = 0;
	assert_true(nvmf_ini_target_live(&t));
	assert_int_equal(t.nsent, 1);
}

TEST_MAIN(0)
