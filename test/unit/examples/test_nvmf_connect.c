/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* NVMe-oF engine: Connect, properties, the end of queues and controllers. */
#include <errno.h>
#include <string.h>

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

#define INVALID_SQE(at)  assert_int_equal(host.result, at)
#define INVALID_DATA(at) assert_int_equal(host.result, CONNECT_IN_DATA | (at))

/* Executes a Connect to a new queue after one byte of the command or of the data was changed. */
static uint32_t
connect_changed(uint16_t qid, uint16_t cntlid, int cmd_at, int data_at, uint8_t value)
{
	struct nvmf_queue *q = nvmf_host_queue(&host, qid, IO_DEPTH);
	uint8_t cmd[NVMF_SQE];
	uint32_t status;

	nvmf_host_connect_cmd(&host, cmd, SUBSYS_OPEN, qid, cntlid, IO_DEPTH);
	if (cmd_at >= 0)
		cmd[cmd_at] = value;
	if (data_at >= 0)
		host.mem[data_at] = value;
	status = nvmf_host_exec(&host, q, cmd);
	assert_true((q->ctrl != NULL) == (status == SC_OK));
	nvmf_host_drop(&host, q);
	return status;
}

#define admin_changed(cmd_at, data_at, value)                                                      \
	connect_changed(0, NVMF_CNTLID_ANY, cmd_at, data_at, value)

TEST_WITH(setup, teardown, test_connect_returns_controller_ids_in_turn)
{
	struct nvmf_queue *a = nvmf_host_admin(&host, SUBSYS_OPEN);
	struct nvmf_queue *b = nvmf_host_admin(&host, SUBSYS_OWN);

	assert_int_equal(a->ctrl->cntlid, 1);
	assert_int_equal(b->ctrl->cntlid, 2);
	nvmf_host_drop(&host, a);
	a = nvmf_host_admin(&host, SUBSYS_OPEN);
	assert_int_equal(a->ctrl->cntlid, 3);
	nvmf_host_drop(&host, a);
	nvmf_host_drop(&host, b);
}

TEST_WITH(setup, teardown, test_connect_with_a_wrong_field_of_the_command_is_refused)
{
	assert_int_equal(admin_changed(AT_CON_RECFMT, -1, 1), SC_CONNECT_FORMAT | SC_DNR);
	assert_int_equal(admin_changed(AT_CON_QID, -1, 1), SC_CONNECT_PARAM | SC_DNR);
	INVALID_SQE(AT_CON_QID);
	assert_int_equal(admin_changed(AT_CON_SQSIZE, -1, 0), SC_CONNECT_PARAM | SC_DNR);
	INVALID_SQE(AT_CON_SQSIZE);
	assert_int_equal(admin_changed(AT_CON_SQSIZE, -1, IO_DEPTH), SC_CONNECT_PARAM | SC_DNR);
	INVALID_SQE(AT_CON_SQSIZE);
	assert_int_equal(admin_changed(AT_SGL + AT_SGL_LEN, -1, 1), SC_SGL_LENGTH | SC_DNR);
	assert_int_equal(admin_changed(-1, -1, 0), SC_OK);
}

TEST_WITH(setup, teardown, test_connect_with_a_wrong_field_of_the_data_is_refused)
{
	/* Only the dynamic controller model: a static id is refused. */
	assert_int_equal(connect_changed(0, 1, -1, -1, 0), SC_CONNECT_PARAM | SC_DNR);
	INVALID_DATA(AT_COND_CNTLID);
	assert_int_equal(connect_changed(0, 0xfffe, -1, -1, 0), SC_CONNECT_PARAM | SC_DNR);
	INVALID_DATA(AT_COND_CNTLID);
	assert_int_equal(admin_changed(-1, AT_COND_SUBNQN, 'x'), SC_CONNECT_PARAM | SC_DNR);
	INVALID_DATA(AT_COND_SUBNQN);
	assert_int_equal(admin_changed(-1, AT_COND_SUBNQN, 0), SC_CONNECT_PARAM | SC_DNR);
	assert_int_equal(admin_changed(-1, AT_COND_HOSTNQN + 3, '_'), SC_CONNECT_PARAM | SC_DNR);
	INVALID_DATA(AT_COND_HOSTNQN);
}

TEST_WITH(setup, teardown, test_connect_with_a_name_without_end_is_refused)
{
	struct nvmf_queue *q = nvmf_host_queue(&host, 0, IO_DEPTH);
	uint8_t cmd[NVMF_SQE];

	nvmf_host_connect_cmd(&host, cmd, SUBSYS_OPEN, 0, NVMF_CNTLID_ANY, IO_DEPTH);
	memset(host.mem + AT_COND_HOSTNQN + 4, 'a', NVMF_NQN - 4);
	memset(host.mem + AT_COND_HOSTNQN + NVMF_NQN, 'a', 256);
	assert_int_equal(nvmf_host_exec(&host, q, cmd), SC_CONNECT_PARAM | SC_DNR);
	INVALID_DATA(AT_COND_HOSTNQN);
	/* 224 characters: one more than a name may have. */
	nvmf_host_connect_cmd(&host, cmd, SUBSYS_OPEN, 0, NVMF_CNTLID_ANY, IO_DEPTH);
	memset(host.mem + AT_COND_HOSTNQN + 4, 'a', NVMF_NQN_MAX + 1 - 4);
	assert_int_equal(nvmf_host_exec(&host, q, cmd), SC_CONNECT_PARAM | SC_DNR);
	host.mem[AT_COND_HOSTNQN + NVMF_NQN_MAX] = 0;
	put16(cmd + AT_CID, 77);
	assert_int_equal(nvmf_host_exec(&host, q, cmd), SC_OK);
	assert_int_equal(strlen(q->ctrl->hostnqn), NVMF_NQN_MAX);
	nvmf_host_drop(&host, q);
}

TEST_WITH(setup, teardown, test_connect_of_a_host_that_is_not_listed_is_refused)
{
	struct nvmf_queue *q = nvmf_host_queue(&host, 0, IO_DEPTH);
	uint8_t cmd[NVMF_SQE];

	nvmf_host_connect_cmd(&host, cmd, SUBSYS_OWN, 0, NVMF_CNTLID_ANY, IO_DEPTH);
	strcpy((char *)host.mem + AT_COND_HOSTNQN, HOST_OTHER);
	assert_int_equal(nvmf_host_exec(&host, q, cmd), SC_CONNECT_HOST | SC_DNR);
	nvmf_host_connect_cmd(&host, cmd, SUBSYS_OPEN, 0, NVMF_CNTLID_ANY, IO_DEPTH);
	strcpy((char *)host.mem + AT_COND_HOSTNQN, HOST_OTHER);
	assert_int_equal(nvmf_host_exec(&host, q, cmd), SC_OK);
	nvmf_host_drop(&host, q);
}

TEST_WITH(setup, teardown, test_commands_before_connect_and_second_connect_are_out_of_sequence)
{
	struct nvmf_queue *q = nvmf_host_queue(&host, 0, IO_DEPTH);
	uint8_t cmd[NVMF_SQE];

	nvmf_host_cmd(&host, cmd, ADM_IDENTIFY, 0, NVMF_PAGE);
	assert_int_equal(nvmf_host_exec(&host, q, cmd), SC_COMMAND_SEQUENCE | SC_DNR);
	assert_int_equal(nvmf_host_property(&host, q, PROP_VS, 0), SC_COMMAND_SEQUENCE | SC_DNR);
	/* Two Connects: the second one arrives before the data of the first one. */
	nvmf_host_connect_cmd(&host, cmd, SUBSYS_OPEN, 0, NVMF_CNTLID_ANY, IO_DEPTH);
	nvmf_host_send(&host, q, cmd, NULL, 0);
	put16(cmd + AT_CID, 99);
	nvmf_host_send(&host, q, cmd, NULL, 0);
	nvmf_host_run(&host);
	assert_int_equal(nvmf_host_status(&host, host.responses - 2), SC_OK);
	assert_int_equal(nvmf_host_status(&host, host.responses - 1), SC_COMMAND_SEQUENCE | SC_DNR);
	assert_int_equal(nvmf_host_exec(&host, q, cmd), SC_COMMAND_SEQUENCE | SC_DNR);
	nvmf_host_drop(&host, q);
}

TEST_WITH(setup, teardown, test_admin_commands_need_an_enabled_controller)
{
	struct nvmf_queue *q = nvmf_host_admin(&host, SUBSYS_OPEN);
	uint8_t cmd[NVMF_SQE];

	assert_int_equal(nvmf_host_set_cc(&host, q, 0), SC_OK);
	nvmf_host_cmd(&host, cmd, ADM_KEEP_ALIVE, 0, 0);
	assert_int_equal(nvmf_host_exec(&host, q, cmd), SC_COMMAND_SEQUENCE | SC_DNR);
	assert_int_equal(nvmf_host_set_cc(&host, q, CC_ENTRIES_NVM | CC_EN), SC_OK);
	assert_int_equal(nvmf_host_exec(&host, q, cmd), SC_OK);
	nvmf_host_drop(&host, q);
}

/* ---- Properties */

TEST_WITH(setup, teardown, test_properties_have_their_values_and_sizes)
{
	struct nvmf_queue *q = nvmf_host_admin(&host, SUBSYS_OPEN);

	assert_int_equal(nvmf_host_property(&host, q, PROP_CAP, 1), SC_OK);
	assert_int_equal(host.result & 0xffff, IO_DEPTH - 1); /* MQES */
	assert_int_equal(host.result >> 37 & 1, 1);           /* CSS: NVM */
	assert_int_equal(host.result >> 48, 0);               /* MPSMIN, MPSMAX: 4096 */
	assert_int_equal(nvmf_host_property(&host, q, PROP_VS, 0), SC_OK);
	assert_int_equal(host.result, 0x10300);
	assert_int_equal(nvmf_host_property(&host, q, PROP_CC, 0), SC_OK);
	assert_int_equal(host.result, 0x460001);
	assert_int_equal(nvmf_host_property(&host, q, PROP_CSTS, 0), SC_OK);
	assert_int_equal(host.result, CSTS_RDY);
	assert_int_equal(nvmf_host_property(&host, q, PROP_CAP, 0), SC_INVALID_FIELD | SC_DNR);
	assert_int_equal(nvmf_host_property(&host, q, PROP_CSTS, 1), SC_INVALID_FIELD | SC_DNR);
	assert_int_equal(nvmf_host_property(&host, q, PROP_VS, 2), SC_INVALID_FIELD | SC_DNR);
	assert_int_equal(nvmf_host_property(&host, q, 0x24, 0), SC_INVALID_FIELD | SC_DNR);
	nvmf_host_drop(&host, q);
}

TEST_WITH(setup, teardown, test_property_set_takes_only_cc)
{
	struct nvmf_queue *q = nvmf_host_admin(&host, SUBSYS_OPEN);
	uint8_t cmd[NVMF_SQE];

	nvmf_host_cmd(&host, cmd, OPC_FABRICS, FC_PROPERTY_SET, 0);
	put32(cmd + AT_PROP_OFFSET, PROP_CSTS);
	assert_int_equal(nvmf_host_exec(&host, q, cmd), SC_INVALID_FIELD | SC_DNR);
	put32(cmd + AT_PROP_OFFSET, PROP_CC);
	cmd[AT_PROP_ATTRIB] = 1;
	assert_int_equal(nvmf_host_exec(&host, q, cmd), SC_INVALID_FIELD | SC_DNR);
	nvmf_host_cmd(&host, cmd, OPC_FABRICS, 8, 0);
	assert_int_equal(nvmf_host_exec(&host, q, cmd), SC_INVALID_OPCODE | SC_DNR);
	nvmf_host_cmd(&host, cmd, OPC_FABRICS, FC_PROPERTY_GET, 4);
	assert_int_equal(nvmf_host_exec(&host, q, cmd), SC_SGL_LENGTH | SC_DNR);
	nvmf_host_drop(&host, q);
}

static uint32_t
csts_after(struct nvmf_queue *q, uint32_t cc)
{
	assert_int_equal(nvmf_host_set_cc(&host, q, cc), SC_OK);
	assert_int_equal(nvmf_host_property(&host, q, PROP_CSTS, 0), SC_OK);
	return (uint32_t)host.result;
}

TEST_WITH(setup, teardown, test_cc_enables_disables_and_shuts_down)
{
	struct nvmf_queue *q = nvmf_host_admin(&host, SUBSYS_OPEN);

	assert_int_equal(csts_after(q, CC_ENTRIES_NVM | CC_EN | 1 << 14),
			 CSTS_RDY | CSTS_SHST_DONE);
	assert_int_equal(csts_after(q, 0), 0);
	assert_int_equal(csts_after(q, CC_ENTRIES_NVM | CC_EN), CSTS_RDY);
	assert_int_equal(csts_after(q, 0), 0);
	/* Entries of other sizes, another command set, another page size: a fatal status. */
	assert_int_equal(csts_after(q, CC_EN), CSTS_CFS);
	assert_int_equal(csts_after(q, 0), 0);
	assert_int_equal(csts_after(q, CC_ENTRIES_NVM | CC_EN | 6 << 4), CSTS_CFS);
	assert_int_equal(csts_after(q, 0), 0);
	assert_int_equal(csts_after(q, CC_ENTRIES_NVM | CC_EN | 1 << 7), CSTS_CFS);
	nvmf_host_drop(&host, q);
}

/* Sends @n Asynchronous Event Requests, whose ids start at @cid. */
static void
send_events(struct nvmf_queue *q, uint32_t cid, uint32_t n)
{
	uint8_t cmd[NVMF_SQE];
	uint32_t i;

	for (i = 0; i < n; i++) {
		nvmf_host_cmd(&host, cmd, ADM_ASYNC_EVENT, 0, 0);
		put16(cmd + AT_CID, cid + i);
		nvmf_host_send(&host, q, cmd, NULL, 0);
	}
	nvmf_host_run(&host);
}

static uint32_t
enable_events(struct nvmf_queue *q)
{
	uint8_t cmd[NVMF_SQE];

	nvmf_host_cmd(&host, cmd, ADM_SET_FEATURES, 0, 0);
	put32(cmd + AT_CDW10, FEAT_ASYNC);
	put32(cmd + AT_CDW11, ASYNC_NS_ATTR);
	return nvmf_host_exec(&host, q, cmd);
}

TEST_WITH(setup, teardown, test_disable_discards_event_requests_and_closes_the_io_queues)
{
	struct nvmf_queue *q = nvmf_host_admin(&host, SUBSYS_OPEN), *io, *again;
	uint32_t round, before;
	uint8_t cmd[NVMF_SQE];

	/* More rounds than the admin queue has requests for. */
	for (round = 1; round <= NVMF_ADMIN_DEPTH; round++) {
		io = nvmf_host_io(&host, q, 1);
		assert_int_equal(enable_events(q), SC_OK);
		before = host.responses;
		send_events(q, 1000, NVMF_ASYNC);
		assert_int_equal(host.responses, before);
		assert_int_equal(nvmf_host_set_cc(&host, q, 0), SC_OK);
		assert_int_equal(host.discarded, round * NVMF_ASYNC);
		assert_int_equal(host.closes, round);
		nvmf_host_rw(&host, cmd, NVM_READ, 1, 0, 1, 512);
		assert_int_equal(nvmf_host_exec(&host, io, cmd), SC_COMMAND_SEQUENCE | SC_DNR);
		assert_int_equal(nvmf_host_set_cc(&host, q, CC_ENTRIES_NVM | CC_EN), SC_OK);
		/* The number is free before the connection of the old queue has ended. */
		again = nvmf_host_io(&host, q, 1);
		nvmf_host_drop(&host, io);
		assert_ptr_equal(q->ctrl->queue[1], again);
		assert_int_equal(nvmf_host_exec(&host, again, cmd), SC_OK);
		nvmf_host_drop(&host, again);
	}
	/* No event: the host has not enabled any since then. */
	before = host.responses;
	send_events(q, 1000, 1);
	nvmf_ns_changed(host.t, &host.subsys[0], 1);
	nvmf_host_run(&host);
	assert_int_equal(host.responses, before);
	nvmf_host_drop(&host, q);
}

TEST_WITH(setup, teardown, test_disable_starts_the_commands_that_wait_for_a_request)
{
	struct nvmf_queue *q = nvmf_host_admin(&host, SUBSYS_OPEN);
	uint32_t before, i;
	uint8_t cmd[NVMF_SQE];

	send_events(q, 1000, NVMF_ASYNC);
	host.hold_sent = true;
	for (i = NVMF_ASYNC; i < NVMF_ADMIN_DEPTH; i++)
		assert_int_equal(nvmf_host_property(&host, q, PROP_VS, 0), SC_OK);
	before = host.responses;
	nvmf_host_cmd(&host, cmd, OPC_FABRICS, FC_PROPERTY_SET, 0);
	put32(cmd + AT_PROP_OFFSET, PROP_CC);
	nvmf_host_send(&host, q, cmd, NULL, 0);
	nvmf_host_cmd(&host, cmd, OPC_FABRICS, FC_PROPERTY_GET, 0);
	put32(cmd + AT_PROP_OFFSET, PROP_CSTS);
	for (i = 0; i < 3; i++) {
		put16(cmd + AT_CID, 2000 + i);
		nvmf_host_send(&host, q, cmd, NULL, 0);
	}
	nvmf_host_run(&host);
	assert_int_equal(host.responses, before);
	/* One request is free: the disable takes it, and the requests of the events are next. */
	nvmf_req_sent(&q->req[q->depth - 1]);
	nvmf_host_run(&host);
	assert_int_equal(host.responses, before + 4);
	assert_int_equal(host.discarded, NVMF_ASYNC);
	assert_int_equal(q->waiting, 0);
	for (i = 0; i < 3; i++)
		assert_int_equal(get64(host.response[(before + 1 + i) % RESPONSES].cqe), 0);
	nvmf_host_drop(&host, q);
}

/* ---- I/O queues */

TEST_WITH(setup, teardown, test_connect_of_an_io_queue_must_match_the_controller)
{
	struct nvmf_queue *q = nvmf_host_admin(&host, SUBSYS_OPEN), *other;

	assert_int_equal(connect_changed(1, 1, -1, -1, 0), SC_OK);
	assert_int_equal(connect_changed(1, 2, -1, -1, 0), SC_CONNECT_PARAM | SC_DNR);
	INVALID_DATA(AT_COND_CNTLID);
	assert_int_equal(connect_changed(1, 0, -1, -1, 0), SC_CONNECT_PARAM | SC_DNR);
	assert_int_equal(connect_changed(1, 0xffff, -1, -1, 0), SC_CONNECT_PARAM | SC_DNR);
	assert_int_equal(connect_changed(1, 1, -1, AT_COND_HOSTID + 15, 0),
			 SC_CONNECT_PARAM | SC_DNR);
	INVALID_DATA(AT_COND_HOSTID);
	assert_int_equal(connect_changed(1, 1, -1, AT_COND_HOSTNQN + 4, '3'),
			 SC_CONNECT_PARAM | SC_DNR);
	INVALID_DATA(AT_COND_HOSTNQN);
	/* A controller of another subsystem. */
	other = nvmf_host_admin(&host, SUBSYS_OWN);
	assert_int_equal(connect_changed(1, other->ctrl->cntlid, -1, -1, 0),
			 SC_CONNECT_PARAM | SC_DNR);
	INVALID_DATA(AT_COND_CNTLID);
	nvmf_host_drop(&host, other);
	nvmf_host_drop(&host, q);
}

TEST_WITH(setup, teardown, test_connect_of_an_io_queue_needs_a_free_number_and_a_ready_controller)
{
	struct nvmf_queue *q = nvmf_host_admin(&host, SUBSYS_OPEN), *io = nvmf_host_io(&host, q, 2);

	assert_int_equal(connect_changed(2, 1, -1, -1, 0), SC_COMMAND_SEQUENCE | SC_DNR);
	assert_ptr_equal(q->ctrl->queue[2], io);
	assert_int_equal(nvmf_host_set_cc(&host, q, 0), SC_OK);
	assert_int_equal(connect_changed(3, 1, -1, -1, 0), SC_CONNECT_PARAM | SC_DNR);
	INVALID_SQE(AT_CON_QID);
	nvmf_host_drop(&host, io);
	nvmf_host_drop(&host, q);
}

TEST_WITH(setup, teardown, test_queues_outside_of_the_limits_are_not_created)
{
	struct nvmf_queue *q = NULL;

	assert_int_equal(nvmf_queue_create(host.t, IO_QUEUES + 1, 2, NULL, NULL, &q), -EINVAL);
	assert_int_equal(nvmf_queue_create(host.t, 1, IO_DEPTH + 1, NULL, NULL, &q), -EINVAL);
	assert_int_equal(nvmf_queue_create(host.t, 1, 1, NULL, NULL, &q), -EINVAL);
	assert_int_equal(nvmf_queue_create(host.t, 0, NVMF_MAX_DEPTH + 1, NULL, NULL, &q), -EINVAL);
	assert_null(q);
}

TEST_WITH(setup, teardown, test_discovery_has_no_io_queues)
{
	struct nvmf_queue *q = nvmf_host_admin(&host, NVMF_DISCOVERY);
	struct nvmf_queue *io = nvmf_host_queue(&host, 1, IO_DEPTH);
	uint8_t cmd[NVMF_SQE];

	nvmf_host_connect_cmd(&host, cmd, NVMF_DISCOVERY, 1, q->ctrl->cntlid, IO_DEPTH);
	assert_int_equal(nvmf_host_exec(&host, io, cmd), SC_CONNECT_PARAM | SC_DNR);
	INVALID_SQE(AT_CON_QID);
	nvmf_host_drop(&host, io);
	nvmf_host_drop(&host, q);
}

TEST_WITH(setup, teardown, test_the_fifth_of_four_controllers_is_refused_as_busy)
{
	struct nvmf_queue *q[4];
	uint32_t i;

	for (i = 0; i < 4; i++)
		q[i] = nvmf_host_admin(&host, SUBSYS_OPEN);
	assert_int_equal(admin_changed(-1, -1, 0), SC_CONNECT_BUSY);
	nvmf_host_drop(&host, q[2]);
	assert_int_equal(admin_changed(-1, -1, 0), SC_OK);
	for (i = 0; i < 4; i++)
		if (i != 2)
			nvmf_host_drop(&host, q[i]);
}

/* ---- Ends */

TEST_WITH(setup, teardown, test_the_end_of_the_admin_queue_closes_the_io_queues)
{
	struct nvmf_queue *q = nvmf_host_admin(&host, SUBSYS_OPEN), *io = nvmf_host_io(&host, q, 1);
	uint8_t cmd[NVMF_SQE];

	nvmf_host_drop(&host, q);
	assert_int_equal(host.closes, 1);
	assert_int_equal(host.closes_told, 1);
	nvmf_host_rw(&host, cmd, NVM_READ, 1, 0, 1, 512);
	assert_int_equal(nvmf_host_exec(&host, io, cmd), SC_COMMAND_SEQUENCE | SC_DNR);
	nvmf_host_drop(&host, io);
}

TEST_WITH(setup, teardown, test_a_closed_queue_waits_for_its_namespace)
{
	struct nvmf_queue *q = nvmf_host_admin(&host, SUBSYS_OPEN), *io = nvmf_host_io(&host, q, 1);
	uint8_t cmd[NVMF_SQE];
	uint32_t before = host.responses;

	host.hold = true;
	nvmf_host_rw(&host, cmd, NVM_READ, 4, 0, 1, 512);
	nvmf_host_send(&host, io, cmd, NULL, 0);
	nvmf_queue_close(io);
	assert_false(nvmf_queue_idle(io));
	nvmf_host_finish(&host, 0);
	assert_true(nvmf_queue_idle(io));
	nvmf_host_run(&host);
	assert_int_equal(host.responses, before);
	nvmf_host_drop(&host, io);
	nvmf_host_drop(&host, q);
}

TEST_WITH(setup, teardown, test_flush_of_all_namespaces_survives_the_end_of_the_controller)
{
	struct nvmf_queue *q = nvmf_host_admin(&host, SUBSYS_OPEN), *io = nvmf_host_io(&host, q, 1);
	uint8_t cmd[NVMF_SQE];

	host.hold = true;
	nvmf_host_cmd(&host, cmd, NVM_FLUSH, NVMF_NSID_ALL, 0);
	nvmf_host_send(&host, io, cmd, NULL, 0);
	assert_int_equal(host.nheld, 1);
	nvmf_host_drop(&host, q);
	nvmf_host_finish(&host, 0);
	nvmf_host_run(&host);
	nvmf_host_drop(&host, io);
}

TEST_WITH(setup, teardown, test_target_with_a_value_out_of_range_is_not_created)
{
	const struct nvmf_target_attr good = host.t->attr;
	struct nvmf_target_attr attr;
	struct nvmf_subsys twice[2] = {host.subsys[0], host.subsys[0]};
	struct nvmf_target *t = NULL;

#define BAD(field, value)                                                                          \
	do {                                                                                       \
		attr = good;                                                                       \
		attr.field = value;                                                                \
		assert_int_equal(nvmf_target_create(&attr, &t), -EINVAL);                          \
	} while (0)
	BAD(max_io, 4096); /* MDTS 0 would mean that there is no limit */
	BAD(max_io, 12288);
	BAD(max_io, 2u << 20);
	BAD(in_capsule, 24);
	BAD(in_capsule, 2 * MAX_IO);
	BAD(io_queues, 0);
	BAD(io_queues, NVMF_MAX_QUEUES + 1);
	BAD(io_depth, 1);
	BAD(io_depth, NVMF_MAX_DEPTH + 1);
	BAD(ctrls, 0);
	BAD(ctrls, 65520);
	BAD(subsys, twice);
	twice[1].nqn = NVMF_DISCOVERY;
	BAD(subsys, twice);
	twice[1].nqn = "iqn.1";
	BAD(subsys, twice);
	assert_null(t);
}

TEST_MAIN(0)
