/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * examples/nvmf over RDMA: the target drops a queue while its namespace executes requests of that
 * queue. The host must not get a new controller before these requests have ended. A second lcore
 * serves I/O queues.
 */
#include "nvmf_initiator.h"
#include "say.h"

#define HELD 4u

static struct nvmf_req *held[HELD];
static uint32_t nheld;

static int
hold(struct nvmf_ns *ns, struct nvmf_req *r, const struct nvmf_io *io)
{
	(void)ns;
	(void)io;
	assert_true(nheld < HELD);
	held[nheld++] = r;
	return -EINPROGRESS;
}

static const struct nvmf_ns_ops hold_ops = {.start = hold};

/* ---- A second lcore of the target; this thread runs it, too */

static struct {
	struct nvmf_subsys subsys;
	struct nvmf_ns disk, *ns[1];
	struct nvmf_target *t;
	struct nvmf_rdma rdma;
	uint8_t *mem;
} second;

static void
second_open(void)
{
	struct nvmf_rdma_attr rdma = tgt.rdma.attr;
	struct nvmf_target_attr attr = tgt.t->attr;

	memset(&second, 0, sizeof(second));
	second.subsys = (struct nvmf_subsys){
		.nqn = NQN, .serial = "1", .any_host = true, .ns = second.ns, .max_ns = 1};
	nvmf_ns_memory(&second.disk, tgt.storage, DISK, 9);
	second.disk.ops = &hold_ops;
	OK(nvmf_ns_add(&second.subsys, 1, &second.disk));
	attr.subsys = &second.subsys;
	attr.remote = true;
	OK(nvmf_target_create(&attr, &second.t));
	rdma.first = &tgt.rdma;
	rdma.listeners = 0;
	second.mem = rte_malloc("second", nvmf_rdma_memory(&attr, CONNS), 4096);
	assert_non_null(second.mem);
	OK(nvmf_rdma_open(&second.rdma, &rdma, second.t, second.mem));
	tgt.rdma.worker[tgt.rdma.workers++] = &second.rdma;
	tgt_worker = &second.rdma;
}

static void
second_close(void)
{
	nvmf_rdma_end(&second.rdma);
	WAIT_FOR(nvmf_rdma_idle(&second.rdma) && nvmf_rdma_idle(&tgt.rdma));
	tgt_worker = NULL;
	tgt.rdma.workers = 0;
	nvmf_rdma_close(&second.rdma);
	nvmf_target_destroy(second.t);
	rte_free(second.mem);
}

static int
setup(void **state)
{
	(void)state;
	nheld = 0;
	target_open("soft0");
	tgt.disk.ops = &hold_ops;
	host_open("soft1");
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	host_close();
	target_close();
	return 0;
}

/* ---- The tests */

/* Sends a capsule that is too short for a command. */
static void
send_short(struct hq *q)
{
	struct bb_sge sge = {(uintptr_t)q->mem, NVMF_SQE - 1, q->mr->lkey};

	OK(bb_post_send(q->qp, 0, &sge, 1, BB_SEND_SIGNALED));
	bb_qp_ring(q->qp);
}

/*
 * Makes the transport @r, which serves the I/O queue, drop that queue. The host does not answer the
 * target's message of the CM, and connects again.
 */
static void
drop_and_connect(struct nvmf_rdma *r)
{
	struct hq admin, io, again;
	uint8_t cmd[NVMF_SQE];

	hq_connect(&io, 1, hq_admin(&admin, 0), 0);
	for (uint16_t i = 0; i < HELD; i++) {
		command_rw(cmd, i, NVM_READ, i, host.data, 512);
		hq_send(&io, cmd, NULL, 0);
	}
	WAIT_FOR(nheld == HELD);
	hq_open(&again, 0);
	host.mute = true;
	send_short(&io);
	WAIT_FOR(r->dropped == 1);
	/* The next turns pass the loss to the engine, by a message between lcores if necessary. */
	for (uint32_t i = 0; i < 4; i++)
		turn();
	assert_int_equal(hq_connect_cmd(&again, 0, NVMF_CNTLID_ANY, 0), SC_CONNECT_BUSY);
	for (uint32_t i = 0; i < HELD; i++)
		nvmf_req_done(held[i], 0);
	WAIT_FOR(r->releasing == 0);
	for (uint32_t i = 0; i < 4; i++)
		turn();
	assert_int_equal(hq_connect_cmd(&again, 0, NVMF_CNTLID_ANY, 0), SC_OK);
	/* The host learns of the end of its queue, although the target did not wait for it. */
	io.event = host.mute = false;
	WAIT_FOR(io.event);
	assert_int_equal(io.ev.type, BB_CM_DISCONNECTED);
	hq_free(&io);
	hq_disconnect(&again);
	hq_disconnect(&admin);
}

TEST_WITH(setup, teardown, test_host_of_a_dropped_queue_waits_for_the_requests_of_that_queue)
{
	drop_and_connect(&tgt.rdma);
}

TEST_WITH(setup, teardown, test_host_waits_for_the_requests_of_a_queue_that_a_worker_dropped)
{
	second_open();
	drop_and_connect(&second.rdma);
	second_close();
}

TEST_WITH(setup, teardown, test_refused_admin_queue_blames_the_share_of_the_first_lcore)
{
	uint8_t req[NVMF_CM_REQ] = {0};
	struct hq admin, more;

	second_open();
	tgt.rdma.attr.conns = 1;
	hq_admin(&admin, 0);
	put16(req + 4, MAX_DEPTH);
	put16(req + 6, MAX_DEPTH - 1);
	hq_call(&more, 0, MAX_DEPTH, req, sizeof(req));
	assert_int_equal(more.ev.type, BB_CM_REJECTED);
	assert_int_equal(get16(more.private_data + 2), NVMF_CM_RESOURCES);
	assert_non_null(strstr(said, "the first lcore"));
	hq_free(&more);
	hq_disconnect(&admin);
	tgt.rdma.attr.conns = CONNS;
	second_close();
}

TEST_MAIN(bare_eal_init() < 0 ? 1 : 0)
