/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * NVMe-oF engine: requests that outlive their connection. The host connects again and sends its
 * writes again. The first execution of a write must not come after that.
 */
#include <errno.h>

#include "bb_test.h"
#include "nvmf_host.h"

static struct nvmf_host host;
static struct nvmf_queue *admin, *q, *next;

static int
setup(void **state)
{
	*state = &host;
	nvmf_host_open(&host);
	admin = nvmf_host_admin(&host, SUBSYS_OPEN);
	q = nvmf_host_io(&host, admin, 1);
	next = nvmf_host_queue(&host, 0, NVMF_ADMIN_DEPTH);
	return 0;
}

static int
teardown(void **state)
{
	nvmf_host_drop(*state, next);
	nvmf_host_drop(*state, q);
	nvmf_host_drop(*state, admin);
	assert_null(host.t->ended);
	nvmf_host_close(*state);
	return 0;
}

/* Sends a write to the slow namespace, which holds it. */
static void
hold_write(void)
{
	uint8_t cmd[NVMF_SQE];

	host.hold = true;
	nvmf_host_rw(&host, cmd, NVM_WRITE, 4, 0, 1, 512);
	nvmf_host_send(&host, q, cmd, NULL, 0);
	nvmf_host_run(&host);
	assert_int_equal(host.nheld, 1);
}

/* Connects a second admin queue. @change: byte of the data that differs from the first Connect. */
static uint32_t
connect_next(const char *subnqn, uint32_t change)
{
	uint8_t cmd[NVMF_SQE];

	nvmf_host_connect_cmd(&host, cmd, subnqn, 0, NVMF_CNTLID_ANY, NVMF_ADMIN_DEPTH);
	if (change != 0)
		host.mem[change] ^= 1;
	return nvmf_host_exec(&host, next, cmd);
}

TEST_WITH(setup, teardown, test_host_waits_for_a_request_of_its_ended_controller)
{
	hold_write();
	nvmf_queue_close(q);
	nvmf_queue_close(admin);
	assert_int_equal(connect_next(SUBSYS_OPEN, 0), SC_CONNECT_BUSY);
	assert_int_equal(connect_next(SUBSYS_OPEN, 0), SC_CONNECT_BUSY);
	nvmf_host_finish(&host, 0);
	assert_int_equal(connect_next(SUBSYS_OPEN, 0), SC_OK);
}

TEST_WITH(setup, teardown, test_order_of_the_ends_of_the_queues_has_no_effect)
{
	hold_write();
	nvmf_queue_close(admin);
	assert_int_equal(host.closes, 1);
	assert_int_equal(connect_next(SUBSYS_OPEN, 0), SC_CONNECT_BUSY);
	nvmf_queue_close(q);
	assert_int_equal(connect_next(SUBSYS_OPEN, 0), SC_CONNECT_BUSY);
	nvmf_host_finish(&host, 0);
	assert_int_equal(connect_next(SUBSYS_OPEN, 0), SC_OK);
}

TEST_WITH(setup, teardown, test_ended_queue_without_requests_delays_no_host)
{
	nvmf_queue_close(admin);
	/* The transport has not closed the I/O queue yet. */
	assert_false(q->closed);
	assert_int_equal(connect_next(SUBSYS_OPEN, 0), SC_OK);
}

TEST_WITH(setup, teardown, test_failed_write_ends_the_wait_too)
{
	hold_write();
	nvmf_queue_close(q);
	nvmf_queue_close(admin);
	nvmf_host_finish(&host, -EIO);
	assert_int_equal(connect_next(SUBSYS_OPEN, 0), SC_OK);
}

TEST_WITH(setup, teardown, test_other_hosts_and_subsystems_do_not_wait)
{
	hold_write();
	nvmf_queue_close(q);
	nvmf_queue_close(admin);
	assert_int_equal(connect_next(SUBSYS_OPEN, 0), SC_CONNECT_BUSY);
	assert_int_equal(connect_next(SUBSYS_OWN, 0), SC_OK);
	nvmf_host_drop(&host, next);
	nvmf_host_finish(&host, 0);
	next = nvmf_host_queue(&host, 0, NVMF_ADMIN_DEPTH);
}

TEST_WITH(setup, teardown, test_host_with_another_identifier_does_not_wait)
{
	hold_write();
	nvmf_queue_close(q);
	nvmf_queue_close(admin);
	assert_int_equal(connect_next(SUBSYS_OPEN, AT_COND_HOSTID + 15), SC_OK);
}

TEST_WITH(setup, teardown, test_host_with_another_name_does_not_wait)
{
	hold_write();
	nvmf_queue_close(q);
	nvmf_queue_close(admin);
	assert_int_equal(connect_next(SUBSYS_OPEN, AT_COND_HOSTNQN + 4), SC_OK);
}

TEST_WITH(setup, teardown, test_expired_controller_makes_its_host_wait_before_it_has_ended)
{
	hold_write();
	admin->ctrl->kato.ms = 50;
	nvmf_timer_start(host.t, &admin->ctrl->kato);
	nvmf_target_time(host.t, 100);
	assert_int_equal(host.closes, 2);
	assert_int_equal(connect_next(SUBSYS_OPEN, 0), SC_CONNECT_BUSY);
	nvmf_host_finish(&host, 0);
	nvmf_host_run(&host);
	assert_int_equal(connect_next(SUBSYS_OPEN, 0), SC_OK);
}

TEST_WITH(setup, teardown, test_queue_of_a_live_controller_waits_for_the_requests_of_a_closed_one)
{
	struct nvmf_queue *other = nvmf_host_queue(&host, 1, IO_DEPTH);
	uint8_t cmd[NVMF_SQE];

	hold_write();
	nvmf_queue_close(q);
	nvmf_host_connect_cmd(&host, cmd, SUBSYS_OPEN, 1, admin->ctrl->cntlid, IO_DEPTH);
	assert_int_equal(nvmf_host_exec(&host, other, cmd), SC_CONNECT_BUSY);
	assert_int_equal(connect_next(SUBSYS_OPEN, 0), SC_CONNECT_BUSY);
	nvmf_host_finish(&host, 0);
	nvmf_host_connect_cmd(&host, cmd, SUBSYS_OPEN, 1, admin->ctrl->cntlid, IO_DEPTH);
	assert_int_equal(nvmf_host_exec(&host, other, cmd), SC_OK);
	nvmf_host_drop(&host, other);
}

static uint64_t
csts(void)
{
	assert_int_equal(nvmf_host_property(&host, admin, PROP_CSTS, 0), SC_OK);
	return host.result;
}

TEST_WITH(setup, teardown, test_disabled_controller_is_ready_until_its_requests_have_ended)
{
	hold_write();
	assert_int_equal(nvmf_host_set_cc(&host, admin, CC_ENTRIES_NVM), SC_OK);
	assert_int_equal(host.closes, 1);
	assert_int_equal(host.closes_told, 0);
	assert_int_equal(csts(), CSTS_RDY);
	/* The transport closes the queue later. */
	nvmf_queue_close(q);
	assert_int_equal(csts(), CSTS_RDY);
	nvmf_host_finish(&host, 0);
	assert_int_equal(csts(), 0);
	nvmf_queue_close(admin);
	assert_int_equal(connect_next(SUBSYS_OPEN, 0), SC_OK);
}

TEST_WITH(setup, teardown, test_shutdown_is_in_progress_until_the_requests_have_ended)
{
	hold_write();
	assert_int_equal(nvmf_host_set_cc(&host, admin, CC_ENTRIES_NVM | CC_EN | 1 << 14), SC_OK);
	assert_int_equal(host.closes, 1);
	assert_int_equal(host.closes_told, 0);
	assert_int_equal(csts(), CSTS_RDY | CSTS_SHST_BUSY);
	nvmf_queue_close(q);
	assert_int_equal(csts(), CSTS_RDY | CSTS_SHST_BUSY);
	nvmf_host_finish(&host, 0);
	assert_int_equal(csts(), CSTS_RDY | CSTS_SHST_DONE);
	nvmf_queue_close(admin);
	assert_int_equal(connect_next(SUBSYS_OPEN, 0), SC_OK);
}

TEST_WITH(setup, teardown, test_host_that_does_not_await_its_shutdown_waits_at_connect)
{
	hold_write();
	assert_int_equal(nvmf_host_set_cc(&host, admin, CC_ENTRIES_NVM | CC_EN | 1 << 14), SC_OK);
	nvmf_queue_close(q);
	nvmf_queue_close(admin);
	assert_int_equal(connect_next(SUBSYS_OPEN, 0), SC_CONNECT_BUSY);
	nvmf_host_finish(&host, 0);
	assert_int_equal(connect_next(SUBSYS_OPEN, 0), SC_OK);
}

TEST_WITH(setup, teardown, test_io_queue_of_a_shut_down_controller_starts_no_more_writes)
{
	const uint8_t before = host.storage[0];
	uint8_t cmd[NVMF_SQE];

	assert_int_equal(nvmf_host_set_cc(&host, admin, CC_ENTRIES_NVM | CC_EN | 1 << 14), SC_OK);
	host.mem[0] = (uint8_t)~before;
	nvmf_host_rw(&host, cmd, NVM_WRITE, 1, 0, 1, 512);
	assert_int_equal(nvmf_host_exec(&host, q, cmd), SC_COMMAND_SEQUENCE | SC_DNR);
	assert_int_equal(host.storage[0], before);
}

TEST_WITH(setup, teardown, test_data_that_arrives_after_the_end_of_the_controller_is_not_written)
{
	const uint8_t before = host.storage[0];
	uint8_t cmd[NVMF_SQE];

	host.mem[0] = (uint8_t)~before;
	nvmf_host_rw(&host, cmd, NVM_WRITE, 1, 0, 1, 512);
	nvmf_host_send(&host, q, cmd, NULL, 0);
	assert_int_equal(q->req[0].state, REQ_PULLING);
	nvmf_queue_close(admin);
	nvmf_host_run(&host);
	assert_int_equal(host.storage[0], before);
}

TEST_WITH(setup, teardown, test_ended_queue_connects_to_no_controller)
{
	uint8_t cmd[NVMF_SQE];

	nvmf_queue_close(admin);
	assert_int_equal(connect_next(SUBSYS_OPEN, 0), SC_OK);
	assert_int_equal(nvmf_host_set_cc(&host, next, CC_ENTRIES_NVM | CC_EN), SC_OK);
	nvmf_host_connect_cmd(&host, cmd, SUBSYS_OPEN, 1, next->ctrl->cntlid, IO_DEPTH);
	assert_int_equal(nvmf_host_exec(&host, q, cmd), SC_COMMAND_SEQUENCE | SC_DNR);
}

TEST_WITH(setup, teardown, test_queue_of_another_thread_makes_the_host_wait_until_it_is_destroyed)
{
	struct nvmf_queue *stub;
	uint8_t cmd[NVMF_SQE];
	uint64_t result;

	assert_int_equal(nvmf_stub_create(host.t, 2, &host, &stub), 0);
	nvmf_host_connect_cmd(&host, cmd, SUBSYS_OPEN, 2, admin->ctrl->cntlid, IO_DEPTH);
	assert_int_equal(nvmf_attach(stub, host.mem, &result), SC_OK);
	nvmf_queue_close(admin);
	assert_int_equal(connect_next(SUBSYS_OPEN, 0), SC_CONNECT_BUSY);
	nvmf_queue_close(stub);
	assert_int_equal(connect_next(SUBSYS_OPEN, 0), SC_CONNECT_BUSY);
	nvmf_queue_destroy(stub);
	assert_int_equal(connect_next(SUBSYS_OPEN, 0), SC_OK);
}

TEST_MAIN(0)
