/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* NVMe-oF engine: I/O queues of a target whose controllers belong to another target. */
#include <string.h>

#include "bb_test.h"
#include "nvmf_host.h"

static struct nvmf_host host;
static struct nvmf_target *first, *worker;
static struct nvmf_queue *admin, *q, *stub;

static int
setup(void **state)
{
	struct nvmf_target_attr attr;

	*state = &host;
	nvmf_host_open(&host);
	first = host.t;
	attr = first->attr;
	attr.remote = true;
	assert_int_equal(nvmf_target_create(&attr, &worker), 0);
	admin = nvmf_host_admin(&host, SUBSYS_OPEN);
	host.t = worker;
	q = nvmf_host_queue(&host, 1, IO_DEPTH);
	assert_int_equal(nvmf_stub_create(first, 1, &host, &stub), 0);
	return 0;
}

static int
teardown(void **state)
{
	nvmf_host_drop(*state, q);
	nvmf_queue_close(stub);
	nvmf_queue_destroy(stub);
	host.t = first;
	nvmf_host_drop(*state, admin);
	nvmf_target_destroy(worker);
	nvmf_host_close(*state);
	return 0;
}

/* Sends Connect, lets the first target decide, and returns the status of the response. */
static uint32_t
connect(const char *subnqn, uint16_t cntlid)
{
	uint32_t before = host.responses, status;
	uint8_t cmd[NVMF_SQE];
	uint64_t result;

	nvmf_host_connect_cmd(&host, cmd, subnqn, 1, cntlid, IO_DEPTH);
	nvmf_host_send(&host, q, cmd, NULL, 0);
	nvmf_host_run(&host);
	if (host.attaching == NULL)
		return nvmf_host_status(&host, before);
	assert_int_equal(host.responses, before);
	status = nvmf_attach(stub, host.attaching->data, &result);
	nvmf_attached(host.attaching, status, result);
	host.attaching = NULL;
	nvmf_host_run(&host);
	assert_int_equal(host.responses, before + 1);
	host.result = get64(host.response[before % RESPONSES].cqe);
	assert_int_equal(nvmf_host_status(&host, before), status);
	return status;
}

static uint32_t
read_block(void)
{
	uint8_t cmd[NVMF_SQE];

	nvmf_host_rw(&host, cmd, NVM_READ, 1, 0, 1, 512);
	return nvmf_host_exec(&host, q, cmd);
}

TEST_WITH(setup, teardown, test_attached_queue_executes_commands)
{
	assert_int_equal(connect(SUBSYS_OPEN, admin->ctrl->cntlid), SC_OK);
	assert_int_equal(host.result, admin->ctrl->cntlid);
	assert_ptr_equal(admin->ctrl->queue[1], stub);
	assert_ptr_not_equal(q->ctrl, admin->ctrl);
	assert_int_equal(read_block(), SC_OK);
	/* A second Connect is out of sequence without a question to the first target. */
	assert_int_equal(connect(SUBSYS_OPEN, admin->ctrl->cntlid), SC_COMMAND_SEQUENCE | SC_DNR);
}

TEST_WITH(setup, teardown, test_refused_queue_may_connect_again)
{
	assert_int_equal(read_block(), SC_COMMAND_SEQUENCE | SC_DNR);
	assert_int_equal(connect(SUBSYS_OPEN, 77), SC_CONNECT_PARAM | SC_DNR);
	assert_int_equal(host.result, CONNECT_IN_DATA | AT_COND_CNTLID);
	assert_int_equal(connect(SUBSYS_OWN, admin->ctrl->cntlid), SC_CONNECT_PARAM | SC_DNR);
	assert_int_equal(connect("nqn.none", 1), SC_CONNECT_PARAM | SC_DNR);
	assert_int_equal(read_block(), SC_COMMAND_SEQUENCE | SC_DNR);
	assert_int_equal(connect(SUBSYS_OPEN, admin->ctrl->cntlid), SC_OK);
	assert_int_equal(read_block(), SC_OK);
}

TEST_WITH(setup, teardown, test_end_of_the_controller_closes_the_queue_that_stands_for_it)
{
	assert_int_equal(connect(SUBSYS_OPEN, admin->ctrl->cntlid), SC_OK);
	assert_int_equal(nvmf_host_set_cc(&host, admin, 0), SC_OK);
	assert_int_equal(host.closes, 1);
	assert_null(stub->ctrl);
	/* The number is free, before the worker has heard of it. */
	assert_null(admin->ctrl->queue[1]);
	assert_int_equal(read_block(), SC_OK);
}

TEST_WITH(setup, teardown, test_end_of_the_queue_frees_its_number)
{
	assert_int_equal(connect(SUBSYS_OPEN, admin->ctrl->cntlid), SC_OK);
	nvmf_queue_close(q);
	assert_null(q->ctrl);
	nvmf_queue_close(stub);
	assert_null(admin->ctrl->queue[1]);
}

TEST_WITH(setup, teardown, test_answer_to_a_closed_queue_is_ignored)
{
	uint8_t cmd[NVMF_SQE];
	uint64_t result;

	nvmf_host_connect_cmd(&host, cmd, SUBSYS_OPEN, 1, admin->ctrl->cntlid, IO_DEPTH);
	nvmf_host_send(&host, q, cmd, NULL, 0);
	nvmf_host_run(&host);
	nvmf_queue_close(q);
	assert_int_equal(nvmf_attach(stub, host.attaching->data, &result), SC_OK);
	nvmf_attached(host.attaching, SC_OK, result);
	assert_null(q->ctrl);
}

TEST_WITH(setup, teardown, test_queue_whose_subsystem_goes_while_it_attaches_is_closed)
{
	uint32_t before = host.responses;
	uint8_t cmd[NVMF_SQE];
	uint64_t result;

	nvmf_host_connect_cmd(&host, cmd, SUBSYS_OPEN, 1, admin->ctrl->cntlid, IO_DEPTH);
	nvmf_host_send(&host, q, cmd, NULL, 0);
	nvmf_host_run(&host);
	assert_int_equal(nvmf_attach(stub, host.attaching->data, &result), SC_OK);
	host.subsys[0].inactive = true;
	nvmf_attached(host.attaching, SC_OK, result);
	nvmf_host_run(&host);
	/* No response: after one the host could send Connect again, and the queue is attached. */
	assert_int_equal(host.closes, 1);
	assert_int_equal(host.responses, before);
	assert_null(q->ctrl);
}

TEST_WITH(setup, teardown, test_capsules_of_the_worker_keep_the_controller_alive)
{
	admin->ctrl->kato.ms = 2000;
	nvmf_timer_start(first, &admin->ctrl->kato);
	assert_int_equal(connect(SUBSYS_OPEN, admin->ctrl->cntlid), SC_OK);
	for (uint64_t now = 100; now <= 1900; now += 100)
		nvmf_target_time(first, now);
	nvmf_queue_alive(stub);
	for (uint64_t now = 2000; now <= 3800; now += 100)
		nvmf_target_time(first, now);
	assert_int_equal(host.closes, 0);
	nvmf_target_time(first, 3900);
	assert_int_equal(host.closes, 2);
}

TEST_WITH(setup, teardown, test_admin_queue_of_a_worker_is_refused)
{
	struct nvmf_queue *wrong = nvmf_host_queue(&host, 0, IO_DEPTH);
	uint8_t cmd[NVMF_SQE];

	nvmf_host_connect_cmd(&host, cmd, SUBSYS_OPEN, 0, NVMF_CNTLID_ANY, IO_DEPTH);
	assert_int_equal(nvmf_host_exec(&host, wrong, cmd), SC_CONNECT_PARAM | SC_DNR);
	nvmf_host_drop(&host, wrong);
}

TEST_MAIN(0)
