/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* NVMe-oF engine: subsystems and namespaces that change under connected hosts, and counters. */
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
rw(uint8_t op, uint32_t nsid)
{
	uint8_t cmd[NVMF_SQE];

	nvmf_host_rw(&host, cmd, op, nsid, 0, 1, 512);
	return nvmf_host_exec(&host, q, cmd);
}

static void
begin(uint8_t op, uint32_t nsid)
{
	uint8_t cmd[NVMF_SQE];

	nvmf_host_rw(&host, cmd, op, nsid, 0, 1, 512);
	nvmf_host_send(&host, q, cmd, NULL, 0);
}

static void
enable_events(struct nvmf_queue *of, uint32_t events)
{
	uint8_t cmd[NVMF_SQE];

	nvmf_host_cmd(&host, cmd, ADM_SET_FEATURES, 0, 0);
	put32(cmd + AT_CDW10, FEAT_ASYNC);
	put32(cmd + AT_CDW11, events);
	assert_int_equal(nvmf_host_exec(&host, of, cmd), SC_OK);
	nvmf_host_cmd(&host, cmd, ADM_ASYNC_EVENT, 0, 0);
	nvmf_host_send(&host, of, cmd, NULL, 0);
}

/* ---- Namespaces */

TEST_WITH(setup, teardown, test_removed_namespace_is_reported_and_executes_nothing)
{
	uint32_t before;

	enable_events(admin, ASYNC_NS_ATTR);
	before = host.responses;
	nvmf_ns_remove(host.t, &host.subsys[0], &host.slow);
	nvmf_host_run(&host);
	assert_int_equal(host.responses, before + 1);
	assert_int_equal(get64(host.response[before].cqe), EVENT_NS_ATTR);
	assert_int_equal(host.slow.refs, 0);
	assert_int_equal(rw(NVM_READ, 4), SC_INVALID_NAMESPACE | SC_DNR);
	assert_int_equal(rw(NVM_READ, 1), SC_OK);
	assert_int_equal(host.ops[NVMF_IO_READ], 0);
	/* Another namespace may take the number. */
	assert_int_equal(nvmf_ns_add(&host.subsys[0], 4, &host.slow), 0);
	host.slow.removed = false;
	assert_int_equal(rw(NVM_READ, 4), SC_OK);
}

TEST_WITH(setup, teardown, test_namespace_removed_during_a_transfer_is_not_written)
{
	uint32_t before = host.responses;

	begin(NVM_WRITE, 4);
	assert_int_equal(host.slow.refs, 1);
	nvmf_ns_remove(host.t, &host.subsys[0], &host.slow);
	nvmf_host_run(&host);
	assert_int_equal(host.responses, before + 1);
	assert_int_equal(nvmf_host_status(&host, before), SC_INVALID_NAMESPACE | SC_DNR);
	assert_int_equal(host.ops[NVMF_IO_WRITE], 0);
	assert_int_equal(host.slow.refs, 0);
}

TEST_WITH(setup, teardown, test_removed_namespace_has_references_until_its_requests_end)
{
	uint32_t before = host.responses;

	host.hold = true;
	begin(NVM_READ, 4);
	begin(NVM_READ, 4);
	nvmf_ns_remove(host.t, &host.subsys[0], &host.slow);
	assert_int_equal(host.slow.refs, 2);
	nvmf_host_finish(&host, 0);
	nvmf_host_run(&host);
	assert_int_equal(host.slow.refs, 0);
	assert_int_equal(host.responses, before + 2);
	assert_int_equal(nvmf_host_status(&host, before), SC_OK);
}

TEST_WITH(setup, teardown, test_closed_queue_gives_its_references_back)
{
	begin(NVM_WRITE, 4); /* a transfer */
	host.hold = true;
	begin(NVM_READ, 4);
	assert_int_equal(host.slow.refs, 2);
	nvmf_queue_close(q);
	assert_int_equal(host.slow.refs, 1);
	nvmf_host_finish(&host, 0);
	assert_int_equal(host.slow.refs, 0);
}

TEST_WITH(setup, teardown, test_flush_of_all_ends_at_a_removed_namespace)
{
	uint32_t before = host.responses;
	uint8_t cmd[NVMF_SQE];

	host.hold = true;
	nvmf_host_cmd(&host, cmd, NVM_FLUSH, NVMF_NSID_ALL, 0);
	nvmf_host_send(&host, q, cmd, NULL, 0);
	assert_int_equal(host.nheld, 1);
	assert_int_equal(host.slow.refs, 1);
	nvmf_ns_remove(host.t, &host.subsys[0], &host.slow);
	nvmf_host_finish(&host, 0);
	nvmf_host_run(&host);
	assert_int_equal(host.responses, before + 1);
	assert_int_equal(nvmf_host_status(&host, before), SC_OK);
	assert_int_equal(host.slow.refs + host.disk.refs + host.nothing.refs, 0);
}

/* ---- Subsystems */

static uint32_t
connect_status(const char *subnqn)
{
	struct nvmf_queue *other = nvmf_host_queue(&host, 0, IO_DEPTH);
	uint8_t cmd[NVMF_SQE];
	uint32_t status;

	nvmf_host_connect_cmd(&host, cmd, subnqn, 0, NVMF_CNTLID_ANY, IO_DEPTH);
	status = nvmf_host_exec(&host, other, cmd);
	nvmf_host_drop(&host, other);
	return status;
}

TEST_WITH(setup, teardown, test_inactive_subsystem_disconnects_its_hosts_and_is_not_found)
{
	struct nvmf_queue *own = nvmf_host_admin(&host, SUBSYS_OWN);
	struct nvmf_queue *discovery = nvmf_host_admin(&host, NVMF_DISCOVERY);
	uint8_t cmd[NVMF_SQE];
	uint32_t before;

	enable_events(discovery, ASYNC_DISCOVERY);
	before = host.responses;
	assert_false(nvmf_subsys_idle(host.t, &host.subsys[1]));
	host.subsys[1].inactive = true;
	nvmf_access_changed(host.t, &host.subsys[1]);
	assert_int_equal(host.closes, 1);
	nvmf_host_run(&host);
	assert_int_equal(host.responses, before + 1);
	assert_int_equal(get64(host.response[before].cqe), EVENT_DISCOVERY);
	/* Until the transport has closed the queue, the controller refuses its commands. */
	nvmf_host_cmd(&host, cmd, ADM_KEEP_ALIVE, 0, 0);
	assert_int_equal(nvmf_host_exec(&host, own, cmd), SC_COMMAND_SEQUENCE | SC_DNR);
	nvmf_host_drop(&host, own);
	assert_true(nvmf_subsys_idle(host.t, &host.subsys[1]));
	assert_int_equal(connect_status(SUBSYS_OWN), SC_CONNECT_PARAM | SC_DNR);
	nvmf_host_cmd(&host, cmd, ADM_GET_LOG_PAGE, 0, 1024);
	put32(cmd + AT_CDW10, LOG_DISCOVERY | 255 << 16);
	assert_int_equal(nvmf_host_exec(&host, discovery, cmd), SC_OK);
	assert_int_equal(get64(host.mem), 1);
	assert_int_equal(get64(host.mem + 8), 2);
	nvmf_host_drop(&host, discovery);
	/* It may return, under another name. */
	host.subsys[1].nqn = "nqn.2026-01.org.example:new";
	host.subsys[1].inactive = false;
	nvmf_access_changed(host.t, &host.subsys[1]);
	assert_int_equal(connect_status("nqn.2026-01.org.example:new"), SC_OK);
	assert_int_equal(host.closes, 1);
}

TEST_WITH(setup, teardown, test_host_that_leaves_the_list_is_disconnected)
{
	static const char *const only[] = {HOST_OTHER};
	struct nvmf_queue *own = nvmf_host_admin(&host, SUBSYS_OWN);

	host.subsys[1].hosts = only;
	host.subsys[1].nhosts = 1;
	nvmf_access_changed(host.t, &host.subsys[1]);
	assert_int_equal(host.closes, 1);
	assert_int_equal(connect_status(SUBSYS_OWN), SC_CONNECT_HOST | SC_DNR);
	nvmf_host_drop(&host, own);
	/* The hosts of the other subsystem notice nothing. */
	assert_int_equal(rw(NVM_READ, 1), SC_OK);
}

/* ---- Counters */

static uint64_t
count_of(uint32_t status)
{
	uint32_t i;

	for (i = 0; i < NVMF_STATUSES; i++)
		if (host.t->status[i].count != 0 && host.t->status[i].status == status)
			return host.t->status[i].count;
	return 0;
}

static uint64_t
latencies_of(const struct nvmf_queue *of)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < NVMF_LATENCIES; i++)
		sum += of->stats.latency[i];
	return sum;
}

TEST_WITH(setup, teardown, test_time_that_an_event_request_waits_is_no_latency)
{
	uint64_t before = latencies_of(admin);
	uint8_t cmd[NVMF_SQE];
	uint16_t cid;

	nvmf_host_cmd(&host, cmd, ADM_ASYNC_EVENT, 0, 0);
	cid = get16(cmd + AT_CID);
	nvmf_host_send(&host, admin, cmd, NULL, 0);
	nvmf_host_cmd(&host, cmd, ADM_ABORT, 0, 0);
	put32(cmd + AT_CDW10, (uint32_t)cid << 16);
	nvmf_host_send(&host, admin, cmd, NULL, 0);
	nvmf_host_run(&host);
	assert_int_equal(latencies_of(admin), before + 1);
}

TEST_WITH(setup, teardown, test_queue_counts_commands_bytes_errors_and_latencies)
{
	const struct nvmf_stats *s = &q->stats;
	uint32_t i;

	assert_int_equal(s->commands, 1); /* Connect */
	for (i = 0; i < 3; i++)
		assert_int_equal(rw(NVM_READ, 1), SC_OK);
	assert_int_equal(rw(NVM_WRITE, 1), SC_OK);
	assert_int_equal(rw(NVM_READ, 3), SC_INVALID_NAMESPACE | SC_DNR);
	assert_int_equal(rw(NVM_WRITE, 2), SC_WRITE_PROTECTED | SC_DNR);
	assert_int_equal(rw(NVM_WRITE, 2), SC_WRITE_PROTECTED | SC_DNR);
	assert_int_equal(s->commands, 8);
	assert_int_equal(s->errors, 3);
	assert_int_equal(s->bytes_read, 3 * 512);
	assert_int_equal(s->bytes_written, 512);
	assert_int_equal(count_of(SC_INVALID_NAMESPACE), 1);
	assert_int_equal(count_of(SC_WRITE_PROTECTED), 2);
	assert_int_equal(s->latency[0], 8);
	host.hold = true;
	begin(NVM_READ, 4);
	host.t->ticks += 256 << 7;
	begin(NVM_READ, 4);
	host.t->ticks += 256;
	nvmf_host_finish(&host, 0);
	nvmf_host_run(&host);
	assert_int_equal(s->latency[7], 1);
	assert_int_equal(s->latency[0], 9);
	host.hold = true;
	begin(NVM_READ, 4);
	host.t->ticks += UINT64_MAX / 2;
	nvmf_host_finish(&host, 0);
	nvmf_host_run(&host);
	assert_int_equal(s->latency[NVMF_LATENCIES - 1], 1);
}

TEST_WITH(setup, teardown, test_more_status_codes_than_fit_are_not_counted)
{
	uint32_t i;

	for (i = 0; i < NVMF_STATUSES; i++)
		host.t->status[i].status = 0x700 + i, host.t->status[i].count = 1;
	assert_int_equal(rw(NVM_READ, 3), SC_INVALID_NAMESPACE | SC_DNR);
	assert_int_equal(q->stats.errors, 1);
	for (i = 0; i < NVMF_STATUSES; i++)
		assert_int_equal(host.t->status[i].count, 1);
}

TEST_MAIN(0)
