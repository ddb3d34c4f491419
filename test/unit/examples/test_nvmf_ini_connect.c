/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* NVMe-oF initiator: the steps of a connection, and targets that lie in them. */
#include <errno.h>
#include <string.h>

#include "bb_test.h"
#include "nvmf_ini_target.h"

static struct nvmf_ini_target t;

static int
setup(void **state)
{
	(void)state;
	nvmf_ini_target_open(&t, NULL);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	nvmf_ini_target_close(&t);
	return 0;
}

/* Checks that the connection is over, for a reason that contains @why. */
static void
assert_over(int error, const char *why)
{
	assert_int_equal(t.e->step, INI_OVER);
	if (strstr(t.e->why, why) == NULL)
		fail_msg("\"%s\" is not in \"%s\"", why, t.e->why);
	assert_int_equal(t.e->error, error);
	assert_int_equal(t.disconnects, 1);
	assert_int_equal(t.e->used, 0);
}

/* ---- Steps */

/* Executes everything up to the command of @step, and returns that command. */
static const uint8_t *
command_of(enum nvmf_ini_step step)
{
	uint32_t i;

	nvmf_ini_target_jump(&t, 0);
	for (i = 0; i < 100 && t.e->step != step; i++) {
		if (t.connecting[0] || t.connecting[1]) {
			uint16_t qid = t.connecting[1];

			t.connecting[qid] = false;
			t.open[qid] = true;
			nvmf_ini_connected(t.e, qid, t.rep, sizeof(t.rep));
			continue;
		}
		assert_int_equal(t.nsent, 1);
		if (t.e->step == INI_CONTROLLER)
			memcpy(t.shared, t.controller, NVMF_PAGE);
		if (t.e->step == INI_NAMESPACE)
			memcpy(t.shared, t.space, NVMF_PAGE);
		nvmf_ini_target_answer(&t, 0, SC_OK,
				       t.e->step == INI_CONNECT_ADMIN ? t.result
				       : t.e->step == INI_CAP         ? t.cap
								      : t.csts);
	}
	assert_int_equal(t.e->step, step);
	return t.sent[0].cmd;
}

TEST_WITH(setup, teardown, test_connect_command_names_the_host_and_the_subsystem)
{
	const uint8_t *cmd = command_of(INI_CONNECT_ADMIN), *d = t.shared;

	assert_int_equal(get16(t.req[0]), 0);
	assert_int_equal(get16(t.req[0] + 2), 0);
	assert_int_equal(get16(t.req[0] + 4), 32);
	assert_int_equal(get16(t.req[0] + 6), 31);
	assert_int_equal(cmd[AT_OPCODE], OPC_FABRICS);
	assert_int_equal(cmd[AT_FLAGS], PSDT_SGL);
	assert_int_equal(cmd[AT_FCTYPE], FC_CONNECT);
	assert_int_equal(get64(cmd + AT_SGL), TARGET_ADDR);
	assert_int_equal(get32(cmd + AT_SGL + 7) >> 8, NVMF_CONNECT_DATA);
	assert_int_equal(get32(cmd + AT_SGL + AT_SGL_KEY), TARGET_KEY);
	assert_int_equal(cmd[AT_SGL + AT_SGL_TYPE], SGL_KEYED);
	assert_int_equal(get16(cmd + AT_CON_QID), 0);
	assert_int_equal(get16(cmd + AT_CON_SQSIZE), 31);
	assert_int_equal(get32(cmd + AT_CON_KATO), 15000);
	assert_int_equal(get16(d + AT_COND_CNTLID), NVMF_CNTLID_ANY);
	assert_string_equal(d + AT_COND_SUBNQN, TARGET_NQN);
	assert_string_equal(d + AT_COND_HOSTNQN, "nqn.2026-01.org.example:bluebell");
}

TEST_WITH(setup, teardown, test_controller_is_enabled_and_its_queue_is_connected)
{
	const uint8_t *cmd = command_of(INI_ENABLE);

	assert_int_equal(cmd[AT_FCTYPE], FC_PROPERTY_SET);
	assert_int_equal(get32(cmd + AT_PROP_OFFSET), PROP_CC);
	assert_int_equal(get32(cmd + AT_PROP_VALUE), CC_ENTRIES_NVM | CC_EN);
	cmd = command_of(INI_CONNECT_IO);
	assert_int_equal(t.sent[0].qid, 1);
	assert_int_equal(get16(t.req[1] + 2), 1);
	assert_int_equal(get16(t.req[1] + 4), 9);
	assert_int_equal(get16(t.req[1] + 6), 8);
	assert_int_equal(get16(cmd + AT_CON_QID), 1);
	assert_int_equal(get16(cmd + AT_CON_SQSIZE), 8);
	assert_int_equal(get16(t.shared + AT_COND_CNTLID), TARGET_CNTLID);
	assert_int_equal(t.e->shape.capacity, 0); /* nothing is valid yet */
	nvmf_ini_target_answer(&t, 0, SC_OK, TARGET_CNTLID);
	assert_int_equal(t.e->step, INI_LIVE);
	assert_int_equal(t.e->shape.capacity, TARGET_BLOCKS * 512);
	assert_int_equal(t.e->shape.block, 512);
	assert_int_equal(t.e->shape.max_io, TARGET_MAX_IO);
	assert_int_equal(t.e->shape.depth, 8);
	assert_true(t.e->shape.compare && t.e->shape.zeroes && t.e->shape.discard);
	assert_false(t.e->shape.read_only);
	assert_int_equal(t.e->reconnects, 0);
}

TEST_WITH(setup, teardown, test_limits_of_the_target_reduce_the_depth)
{
	static const struct {
		uint16_t cap, max, rep;
		uint32_t depth;
	} limits[] = {{4, 128, 128, 4}, {127, 3, 128, 3}, {127, 128, 5, 5}, {127, 0, 128, 8}};

	for (uint32_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		nvmf_ini_target_close(&t);
		nvmf_ini_target_open(&t, NULL);
		put16(t.controller + 514, limits[i].max);
		t.cap = limits[i].cap | 1ull << 37;
		put16(t.rep + 2, limits[i].rep);
		assert_true(nvmf_ini_target_live(&t));
		assert_int_equal(t.e->shape.depth, limits[i].depth);
	}
}

TEST_WITH(setup, teardown, test_controller_gets_the_time_that_it_asks_for)
{
	t.csts = 0;
	assert_false(nvmf_ini_target_live(&t) && t.e->step != INI_READY);
	/* CAP.TO was 4, units of 500 ms; nvmf_ini_target_live() has given up to 10 s. */
	assert_over(-EPROTO, "has not enabled the controller in the time");
	nvmf_ini_target_close(&t);
	nvmf_ini_target_open(&t, NULL);
	t.csts = 0;
	nvmf_ini_target_jump(&t, 0);
	for (uint32_t i = 0; i < 190; i++) {
		nvmf_ini_target_run(&t);
		nvmf_ini_target_time(&t, 10);
	}
	assert_int_equal(t.e->step, INI_READY);
	t.csts = CSTS_RDY;
	assert_true(nvmf_ini_target_live(&t));
}

/* ---- Lies */

struct lie {
	uint8_t *field;
	uint32_t at, size;
	uint64_t value;
	const char *why;
	int error;
};

static void
put(uint8_t *at, uint32_t size, uint64_t value)
{
	for (uint32_t i = 0; i < size; i++)
		at[i] = (uint8_t)(value >> 8 * i);
}

TEST_WITH(setup, teardown, test_invalid_values_of_the_target_end_the_connection)
{
	const struct lie lies[] = {
		{t.rep, 0, 2, 1, "is no NVMe target", -EPROTO},
		{t.rep, 2, 2, 0, "is no NVMe target", -EPROTO},
		{(uint8_t *)&t.result, 0, 2, 0xffff, "invalid controller id", -EPROTO},
		{(uint8_t *)&t.result, 0, 2, 0xfff0, "invalid controller id", -EPROTO},
		{(uint8_t *)&t.result, 2, 1, 4, "requires authentication", -EPROTO},
		{(uint8_t *)&t.cap, 0, 2, 0, "queues of one entry", -EPROTO},
		{(uint8_t *)&t.cap, 4, 1, 0, "no NVM command set", -EPROTO},
		{(uint8_t *)&t.cap, 6, 1, 1, "no pages of 4096 bytes", -EPROTO},
		{(uint8_t *)&t.csts, 0, 1, CSTS_CFS | CSTS_RDY, "fatal status", -EPROTO},
		{(uint8_t *)&t.no_data, 0, 1, 1, "another controller", -EPROTO},
		{t.controller, 78, 2, TARGET_CNTLID + 1, "another controller", -EPROTO},
		{t.controller, 536, 4, 1, "keyed SGLs", -EPROTO},
		{t.controller, 536, 4, 4, "keyed SGLs", -EPROTO},
		{t.controller, 1792, 4, 3, "capsules of another size", -EPROTO},
		{t.controller, 1796, 4, 0, "capsules of another size", -EPROTO},
		{t.controller, 1796, 4, 2, "capsules of another size", -EPROTO},
		{t.controller, 516, 4, 0, "no namespace", -EPROTO},
		{t.space, 0, 8, 0, "no namespace", -EPROTO},
		{t.space, 0, 8, 1ull << 54, "invalid size", -EPROTO},
		{t.space, 0, 8, UINT64_MAX, "invalid size", -EPROTO},
		{t.space, 26, 1, 1, "invalid format", -EPROTO},
		{t.space, 26, 1, 0xf, "invalid format", -EPROTO},
		{t.space, 25, 2, 0x6fff, "blocks of a size", -EPROTO}, /* format 63: zeros */
		{t.space, 128, 2, 8, "metadata", -EPROTO},
		{t.space, 29, 1, 1, "metadata", -EPROTO},
		{t.space, 130, 1, 8, "blocks of a size", -EPROTO},
		{t.space, 130, 1, 17, "blocks of a size", -EPROTO},
		{t.space, 130, 1, 15, "blocks of a size", -EPROTO},
		{t.space, 130, 1, 32, "blocks of a size", -EPROTO},
		{t.space, 130, 1, 255, "blocks of a size", -EPROTO},
	};

	for (uint32_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		nvmf_ini_target_close(&t);
		nvmf_ini_target_open(&t, NULL);
		put(lies[i].field + lies[i].at, lies[i].size, lies[i].value);
		assert_false(nvmf_ini_target_live(&t));
		assert_over(lies[i].error, lies[i].why);
	}
}

TEST_WITH(setup, teardown, test_refused_command_of_a_step_ends_the_connection)
{
	static const struct {
		uint32_t refuse, status;
		const char *why;
		int error;
	} refusals[] = {
		{0x100 | FC_CONNECT, SC_CONNECT_HOST | SC_DNR, "not allowed", -ECONNREFUSED},
		{0x100 | FC_CONNECT, SC_CONNECT_PARAM | SC_DNR, "no such subsystem", -ECONNREFUSED},
		{0x100 | FC_PROPERTY_GET, SC_INVALID_FIELD, "Property Get", -EINVAL},
		{0x100 | FC_PROPERTY_SET, SC_INTERNAL, "Property Set", -EIO},
		{ADM_IDENTIFY, SC_INVALID_NAMESPACE | SC_DNR, "Identify", -ENODEV},
		{ADM_SET_FEATURES, SC_INVALID_OPCODE | SC_DNR, "Set Features", -EOPNOTSUPP},
	};

	for (uint32_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		nvmf_ini_target_close(&t);
		nvmf_ini_target_open(&t, NULL);
		t.refuse = refusals[i].refuse;
		t.status = refusals[i].status;
		assert_false(nvmf_ini_target_live(&t));
		assert_over(refusals[i].error, refusals[i].why);
	}
}

TEST_WITH(setup, teardown, test_response_that_fits_no_command_ends_the_connection)
{
	static const struct {
		uint32_t at, len;
		uint16_t qid, value;
		const char *why;
	} lies[] = {
		{AT_CQE_CID, 16, 0, 2, "no outstanding command"},
		{AT_CQE_CID, 16, 0, 0x8001, "no outstanding command"},
		{AT_CQE_SQID, 16, 0, 1, "another queue"},
		{AT_CQE_SQHD, 16, 0, 32, "a head of 32 in a queue of 32"},
		{AT_CQE_SQHD, 16, 0, 0xffff, "a head of 65535"},
		{AT_CQE_SQID, 16, 1, 0, "head of 1 in a queue of 0"},
		{AT_CQE_RESULT, 15, 0, 7, "has 15 bytes"},
		{AT_CQE_RESULT, 17, 0, 7, "has 17 bytes"},
		{AT_CQE_RESULT, 0, 0, 7, "has 0 bytes"},
	};
	uint8_t cqe[64] = {0};

	for (uint32_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		nvmf_ini_target_close(&t);
		nvmf_ini_target_open(&t, NULL);
		(void)command_of(INI_CONNECT_ADMIN);
		nvmf_ini_target_build(&t, 0, SC_OK, TARGET_CNTLID, cqe);
		put16(cqe + lies[i].at, lies[i].value);
		nvmf_ini_target_cqe(&t, lies[i].qid, cqe, lies[i].len);
		assert_over(-EPROTO, lies[i].why);
	}
}

TEST_WITH(setup, teardown, test_response_for_connect_in_the_wrong_queue_is_refused)
{
	uint8_t cqe[NVMF_CQE];

	(void)command_of(INI_CONNECT_IO);
	nvmf_ini_target_build(&t, 0, SC_OK, TARGET_CNTLID, cqe);
	put16(cqe + AT_CQE_SQID, 0);
	nvmf_ini_target_cqe(&t, 0, cqe, NVMF_CQE);
	assert_over(-EPROTO, "no outstanding command");
}

TEST_WITH(setup, teardown, test_invalidation_by_an_answer_of_the_admin_queue_is_refused)
{
	struct nvmf_ini_response r = {.len = NVMF_CQE, .invalidated = true, .key = TARGET_KEY};
	uint8_t cqe[NVMF_CQE];

	(void)command_of(INI_CAP);
	nvmf_ini_target_build(&t, 0, SC_OK, t.cap, cqe);
	r.bytes = cqe;
	nvmf_ini_response(t.e, 0, &r);
	assert_over(-EPROTO, "invalidated a key without request");
}

/* ---- Rejections and time */

TEST_WITH(setup, teardown, test_target_without_room_is_asked_again_until_the_time_limit)
{
	static const uint8_t rej[4] = {0, 0, NVMF_CM_RESOURCES, 0};
	uint32_t attempts = 0;

	nvmf_ini_target_jump(&t, 0);
	while (t.e->step != INI_OVER && attempts < 1000) {
		if (t.connecting[0]) {
			attempts++;
			nvmf_ini_rejected(t.e, 0, rej, sizeof(rej), "consumer reject");
		}
		nvmf_ini_target_time(&t, 10);
	}
	assert_int_equal(t.e->error, -ECONNREFUSED);
	assert_non_null(strstr(t.e->why, "it has no queue left"));
	/* 30 s: the first pauses are shorter than 1 s. */
	assert_in_range(attempts, 30, 40);
	assert_in_range(t.now, TARGET_TIME + 30000, TARGET_TIME + 31000);
}

TEST_WITH(setup, teardown, test_other_rejections_end_the_first_connection)
{
	static const uint8_t rej[4] = {0, 0, NVMF_CM_HSQSIZE, 0};

	nvmf_ini_target_jump(&t, 0);
	nvmf_ini_rejected(t.e, 0, rej, sizeof(rej), "consumer reject");
	assert_over(-ECONNREFUSED, "invalid size of the send queue");
	nvmf_ini_target_close(&t);
	nvmf_ini_target_open(&t, NULL);
	nvmf_ini_target_jump(&t, 0);
	nvmf_ini_rejected(t.e, 0, NULL, 0, "no listener");
	assert_over(-ECONNREFUSED, "no listener");
}

TEST_WITH(setup, teardown, test_busy_controllers_are_asked_again)
{
	t.refuse = 0x100 | FC_CONNECT;
	t.status = SC_CONNECT_BUSY | SC_DNR;
	nvmf_ini_target_jump(&t, 0);
	for (uint32_t i = 0; i < 10; i++) {
		nvmf_ini_target_run(&t);
		nvmf_ini_target_time(&t, 10);
	}
	assert_true(t.connects[0] > 1);
	t.refuse = UINT32_MAX;
	assert_true(nvmf_ini_target_live(&t));
}

TEST_WITH(setup, teardown, test_each_step_has_a_time_limit)
{
	static const enum nvmf_ini_step steps[] = {
		INI_CM_ADMIN,   INI_CONNECT_ADMIN, INI_CAP,       INI_ENABLE, INI_READY,
		INI_CONTROLLER, INI_QUEUES,        INI_NAMESPACE, INI_CM_IO,  INI_CONNECT_IO};
	struct bb_nvmf_attr attr;

	/* Without keep-alive, whose limit could come first. */
	bb_nvmf_attr_init(&attr);
	attr.keep_alive_ms = 0;
	attr.depth = 4;
	for (uint32_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		nvmf_ini_target_close(&t);
		nvmf_ini_target_open(&t, &attr);
		(void)command_of(steps[i]);
		nvmf_ini_target_time(&t, 29990);
		assert_int_equal(t.e->step, steps[i]);
		nvmf_ini_target_time(&t, 10);
		assert_over(-ETIMEDOUT, nvmf_ini_step_name(steps[i]));
	}
}

TEST_WITH(setup, teardown, test_failures_of_the_transport_end_the_connection)
{
	t.fail_connect = -ENOMEM;
	assert_false(nvmf_ini_target_live(&t));
	assert_over(-ENOMEM, "a queue cannot be created");
	nvmf_ini_target_close(&t);
	nvmf_ini_target_open(&t, NULL);
	t.fail_send = -EAGAIN;
	assert_false(nvmf_ini_target_live(&t));
	assert_over(-EAGAIN, "a command cannot be sent");
}

TEST_WITH(setup, teardown, test_keep_alive_is_sent_and_must_be_answered)
{
	uint32_t seen = 0;

	assert_true(nvmf_ini_target_live(&t));
	for (uint32_t i = 0; i < 100; i++) {
		nvmf_ini_target_time(&t, 1000);
		if (t.nsent == 0)
			continue;
		assert_int_equal(t.sent[0].cmd[AT_OPCODE], ADM_KEEP_ALIVE);
		assert_int_equal(t.sent[0].qid, 0);
		nvmf_ini_target_answer(&t, 0, SC_OK, 0);
		seen++;
	}
	assert_in_range(seen, 12, 14); /* every 7.5 s */
	nvmf_ini_target_time(&t, 45000);
	assert_over(-ETIMEDOUT, "Keep Alive");
}

TEST_WITH(setup, teardown, test_attributes_are_checked)
{
	char name[NVMF_NQN + 8];
	struct bb_nvmf_attr good, a;
	const char *why;

	bb_nvmf_attr_init(&good);
	a = good;
	assert_int_equal(nvmf_ini_attr_check(&a, &why), -EINVAL);
	good.addr = "192.0.2.1:4420";
	good.subnqn = TARGET_NQN;
	assert_int_equal(nvmf_ini_attr_check(&good, &why), 0);
	memset(name, 'x', sizeof(name));
	memcpy(name, "nqn.", 4);
	name[NVMF_NQN_MAX] = '\0';
	a = good;
	a.subnqn = a.hostnqn = name;
	assert_int_equal(nvmf_ini_attr_check(&a, &why), 0);
	name[NVMF_NQN_MAX] = 'x';
	assert_int_equal(nvmf_ini_attr_check(&a, &why), -EINVAL);
	a = good;
	a.hostnqn = "host";
	assert_int_equal(nvmf_ini_attr_check(&a, &why), -EINVAL);
	a = good;
	a.nsid = 0;
	assert_int_equal(nvmf_ini_attr_check(&a, &why), -EINVAL);
	a.nsid = NVMF_NSID_ALL;
	assert_int_equal(nvmf_ini_attr_check(&a, &why), -EINVAL);
	a = good;
	a.depth = 0;
	assert_int_equal(nvmf_ini_attr_check(&a, &why), -EINVAL);
	a = good;
	a.timeout_ms = 0;
	assert_int_equal(nvmf_ini_attr_check(&a, &why), -EINVAL);
}

TEST_MAIN(0)
