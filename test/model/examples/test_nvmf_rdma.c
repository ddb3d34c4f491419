/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* examples/nvmf over RDMA: a target and a host on two software devices of one process. */
#include "nvmf_initiator.h"

static int
setup(void **state)
{
	(void)state;
	target_open("soft0");
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

#define IDLE nvmf_rdma_idle(&tgt.rdma)

TEST_WITH(setup, teardown, test_request_with_wrong_private_data_is_rejected_with_its_reason)
{
	/* recfmt, qid, hrqsize, hsqsize; status */
	static const uint16_t bad[][5] = {
		{1, 0, 32, 31, NVMF_CM_FORMAT},  {0, 5, 16, 15, NVMF_CM_QID},
		{0, 1, 16, 0, NVMF_CM_HSQSIZE},  {0, 1, 17, 16, NVMF_CM_HSQSIZE},
		{0, 0, 33, 32, NVMF_CM_HSQSIZE}, {0, 0, 0xffff, 0xffff, NVMF_CM_HSQSIZE},
		{0, 1, 14, 15, NVMF_CM_HRQSIZE}};
	struct hq q;

	for (uint32_t i = 0; i < RTE_DIM(bad); i++) {
		uint8_t req[NVMF_CM_REQ] = {0};

		for (uint32_t j = 0; j < 4; j++)
			put16(req + 2 * j, bad[i][j]);
		hq_call(&q, 0, DEPTH, req, sizeof(req));
		assert_int_equal(q.ev.type, BB_CM_REJECTED);
		assert_int_equal(q.ev.reason, BB_REJECT_CONSUMER);
		assert_int_equal(get16(q.private_data), 0);
		assert_int_equal(get16(q.private_data + 2), bad[i][4]);
		hq_free(&q);
	}
	assert_int_equal(tgt.rdma.rejected, RTE_DIM(bad));
	assert_true(IDLE);
}

TEST_WITH(setup, teardown, test_request_of_a_host_that_executes_no_reads_is_rejected)
{
	uint8_t req[NVMF_CM_REQ] = {0};
	struct hq q;

	put16(req + 4, MAX_DEPTH);
	put16(req + 6, MAX_DEPTH - 1);
	host.no_reads = true;
	hq_call(&q, 0, MAX_DEPTH, req, sizeof(req));
	assert_int_equal(q.ev.type, BB_CM_REJECTED);
	assert_int_equal(q.ev.reason, BB_REJECT_CONSUMER);
	assert_int_equal(get16(q.private_data + 2), NVMF_CM_IRD);
	hq_free(&q);
	assert_true(IDLE);
}

TEST_WITH(setup, teardown, test_data_goes_to_the_disk_and_back)
{
	struct hq admin, io;
	uint16_t id = hq_admin(&admin, 0);
	uint8_t cmd[NVMF_SQE];
	uint32_t i;

	hq_connect(&io, 1, id, 0);
	for (i = 0; i < DATA; i++)
		host.data[i] = (uint8_t)(i * 31 + i / 509);
	command_rw(cmd, 1, NVM_WRITE, 3, host.data + 5, MAX_IO);
	assert_int_equal(hq_exec(&io, cmd), SC_OK);
	assert_memory_equal(tgt.storage + 3 * 512, host.data + 5, MAX_IO);
	command_rw(cmd, 2, NVM_READ, 3, host.data + MAX_IO + 77, MAX_IO);
	assert_int_equal(hq_exec(&io, cmd), SC_OK);
	assert_memory_equal(host.data + MAX_IO + 77, tgt.storage + 3 * 512, MAX_IO);
	/* Data in the capsule. */
	command_rw(cmd, 3, NVM_WRITE, 100, 0, IN_CAPSULE);
	put32(cmd + AT_SGL + AT_SGL_KEY, 0);
	put32(cmd + AT_SGL + AT_SGL_LEN, IN_CAPSULE);
	cmd[AT_SGL + AT_SGL_TYPE] = SGL_IN_CAPSULE;
	hq_send(&io, cmd, host.data + 123, IN_CAPSULE);
	WAIT_FOR(io.outstanding == 0);
	assert_int_equal(io.status[3], SC_OK);
	assert_memory_equal(tgt.storage + 100 * 512, host.data + 123, IN_CAPSULE);
	/* Compare of more than half of the request's memory: two RDMA READs. */
	command_rw(cmd, 4, NVM_COMPARE, 3, host.data + 5, MAX_IO);
	assert_int_equal(hq_exec(&io, cmd), SC_OK);
	host.data[5 + MAX_IO - 1] ^= 1;
	assert_int_equal(hq_exec(&io, cmd), SC_COMPARE_FAILED | SC_DNR);
	hq_disconnect(&io);
	hq_disconnect(&admin);
	WAIT_FOR(IDLE);
}

TEST_WITH(setup, teardown, test_full_queue_of_random_commands_keeps_the_data)
{
	static uint8_t model[DISK];
	struct hq admin, io;
	uint16_t id = hq_admin(&admin, 0);
	uint32_t rng = 1, round, i;

	hq_connect(&io, 2, id, 0);
	for (round = 0; round < 100; round++) {
		uint8_t cmd[NVMF_SQE], ops[DEPTH - 1];
		uint32_t len[DEPTH - 1];

		/* Each command has a range of its own: their order is not defined. */
		for (i = 0; i < DEPTH - 1; i++) {
			uint8_t *at = host.data + i * MAX_IO;
			uint64_t slba = 64 * i + round % 16;

			rng = rng * 1664525 + 1013904223;
			len[i] = (1 + (rng >> 24) % 32) * 512;
			ops[i] = (rng >> 20 & 1) != 0 ? NVM_WRITE : NVM_READ;
			if (ops[i] == NVM_WRITE) {
				memset(at, (int)(rng >> 8), len[i]);
				put32(at, rng);
				memcpy(model + slba * 512, at, len[i]);
			} else {
				memset(at, 0xdd, len[i]);
			}
			command_rw(cmd, (uint16_t)(round * DEPTH + i), ops[i], slba, at, len[i]);
			if (ops[i] == NVM_WRITE && len[i] <= IN_CAPSULE) {
				put64(cmd + AT_SGL, 0);
				put64(cmd + AT_SGL + 8, len[i]);
				cmd[AT_SGL + AT_SGL_TYPE] = SGL_IN_CAPSULE;
				hq_send(&io, cmd, at, len[i]);
			} else {
				hq_send(&io, cmd, NULL, 0);
			}
		}
		WAIT_FOR(io.outstanding == 0);
		for (i = 0; i < DEPTH - 1; i++) {
			assert_int_equal(io.status[round * DEPTH + i], SC_OK);
			if (ops[i] == NVM_READ)
				assert_memory_equal(host.data + i * MAX_IO,
						    model + (64 * i + round % 16) * 512, len[i]);
		}
	}
	assert_memory_equal(tgt.storage, model, DISK);
	hq_disconnect(&io);
	hq_disconnect(&admin);
	WAIT_FOR(IDLE);
}

static void
send_reads(struct hq *q, uint32_t n)
{
	uint8_t cmd[NVMF_SQE];

	for (uint32_t i = 0; i < n; i++) {
		command_rw(cmd, (uint16_t)i, NVM_READ, i, host.data + i * MAX_IO, MAX_IO);
		hq_send(q, cmd, NULL, 0);
	}
	WAIT_FOR(q->outstanding == 0);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(q->status[i], SC_OK);
}

TEST_WITH(setup, teardown, test_null_namespace_reads_as_zeros_after_other_data)
{
	struct hq admin, io;
	struct nvmf_ns null;
	uint32_t i;

	hq_connect(&io, 1, hq_admin(&admin, 0), 0);
	memset(tgt.storage, 0xa5, DISK);
	send_reads(&io, DEPTH - 1);
	assert_memory_equal(host.data, tgt.storage, MAX_IO);
	nvmf_ns_null(&null, DISK, 9);
	tgt.disk.ops = null.ops;
	send_reads(&io, DEPTH - 1);
	for (i = 0; i < (DEPTH - 1) * MAX_IO; i++)
		assert_int_equal(host.data[i], 0);
	hq_disconnect(&io);
	hq_disconnect(&admin);
	WAIT_FOR(IDLE);
}

TEST_WITH(setup, teardown, test_response_invalidates_the_key_that_the_host_names)
{
	struct hq admin, io;
	uint16_t id = hq_admin(&admin, 0);
	uint8_t cmd[NVMF_SQE];
	struct bb_mw *mw;

	hq_connect(&io, 1, id, 0);
	OK(bb_mw_alloc(host.pd, BB_MW_TYPE_2, &mw));
	OK(bb_post_bind_mw(io.qp, 0, mw, bb_inc_rkey(mw->rkey), host.mr, (uintptr_t)host.data, 4096,
			   BB_ACCESS_REMOTE_WRITE, BB_SEND_SIGNALED));
	command_rw(cmd, 1, NVM_READ, 0, host.data, 4096);
	put32(cmd + AT_SGL + AT_SGL_KEY, mw->rkey);
	cmd[AT_SGL + AT_SGL_TYPE] = SGL_KEYED_INV;
	assert_int_equal(hq_exec(&io, cmd), SC_OK);
	assert_int_equal(io.invalidated, mw->rkey);
	/* The key is invalid now: the target's WRITE fails, and the connection ends. */
	io.event = false;
	put16(cmd + AT_CID, 2);
	hq_send(&io, cmd, NULL, 0);
	WAIT_FOR(io.event);
	assert_int_equal(io.ev.type, BB_CM_DISCONNECTED);
	hq_free(&io);
	OK(bb_mw_free(mw));
	hq_disconnect(&admin);
	WAIT_FOR(IDLE);
}

TEST_WITH(setup, teardown, test_wrong_key_ends_only_its_connection)
{
	struct hq admin, io, other;
	uint16_t id = hq_admin(&admin, 0);
	uint8_t cmd[NVMF_SQE];

	hq_connect(&io, 1, id, 0);
	hq_connect(&other, 2, id, 0);
	command_rw(cmd, 1, NVM_WRITE, 0, host.data, 512);
	put32(cmd + AT_SGL + AT_SGL_KEY, host.mr->rkey ^ 0x100);
	io.event = false;
	hq_send(&io, cmd, NULL, 0);
	WAIT_FOR(io.event);
	assert_int_equal(io.ev.type, BB_CM_DISCONNECTED);
	command_rw(cmd, 1, NVM_WRITE, 0, host.data, 512);
	assert_int_equal(hq_exec(&other, cmd), SC_OK);
	hq_free(&io);
	/* The number of the queue is free again. */
	hq_connect(&io, 1, id, 0);
	hq_disconnect(&io);
	hq_disconnect(&other);
	hq_disconnect(&admin);
	WAIT_FOR(IDLE);
}

TEST_WITH(setup, teardown, test_host_that_vanishes_in_a_transfer_gives_all_back)
{
	struct hq admin, io;
	uint16_t id = hq_admin(&admin, 0);
	uint8_t cmd[NVMF_SQE];

	hq_connect(&io, 1, id, 0);
	for (uint16_t i = 0; i < DEPTH - 1; i++) {
		command_rw(cmd, i, i & 1 ? NVM_READ : NVM_WRITE, 32 * i, host.data + i * MAX_IO,
			   MAX_IO);
		hq_send(&io, cmd, NULL, 0);
	}
	/* Without a message to the target. */
	hq_free(&io);
	hq_free(&admin);
	WAIT_FOR(IDLE);
	for (uint32_t i = 0; i < tgt.t->attr.ctrls; i++)
		assert_null(tgt.t->ctrl[i]);
	id = hq_admin(&admin, 0);
	hq_disconnect(&admin);
	WAIT_FOR(IDLE);
}

/* A namespace that holds all requests until the test ends them. */
static struct nvmf_req *held[DEPTH];
static uint32_t nheld;

static int
hold(struct nvmf_ns *ns, struct nvmf_req *r, const struct nvmf_io *io)
{
	(void)ns;
	(void)io;
	assert_true(nheld < DEPTH);
	held[nheld++] = r;
	return -EINPROGRESS;
}

static const struct nvmf_ns_ops hold_ops = {.start = hold};

/* Sends reads until the namespace holds @n of them. */
static void
hold_reads(struct hq *q, uint16_t n)
{
	uint8_t cmd[NVMF_SQE];

	nheld = 0;
	tgt.disk.ops = &hold_ops;
	for (uint16_t i = 0; i < n; i++) {
		command_rw(cmd, i, NVM_READ, i, host.data, 512);
		hq_send(q, cmd, NULL, 0);
	}
	WAIT_FOR(nheld == n);
}

TEST_WITH(setup, teardown, test_memory_of_a_lost_host_stays_until_the_namespace_has_ended)
{
	struct hq admin, io, other, again;
	uint16_t id = hq_admin(&admin, 0);
	struct nvmf_conn *entry;
	uint32_t i;

	hq_connect(&io, 1, id, 0);
	hold_reads(&io, 8);
	entry = held[0]->q->user;
	hq_disconnect(&io);
	WAIT_FOR(entry->conn == NULL);
	/* The entry is not free: a new queue gets another one. */
	hq_open(&other, 1);
	assert_non_null(entry->queue);
	assert_int_equal(entry->queue->in_ns, 8);
	/* The commands that the host would send again must not overtake the ones of the old queue.
	 */
	assert_int_equal(hq_connect_cmd(&other, 1, id, 0), SC_CONNECT_BUSY);
	hq_disconnect(&admin);
	hq_open(&again, 0);
	assert_int_equal(hq_connect_cmd(&again, 0, NVMF_CNTLID_ANY, 0), SC_CONNECT_BUSY);
	for (i = 0; i < nheld; i++)
		nvmf_req_done(held[i], 0);
	WAIT_FOR(entry->queue == NULL);
	assert_int_equal(hq_connect_cmd(&again, 0, NVMF_CNTLID_ANY, 0), SC_OK);
	hq_disconnect(&other);
	hq_disconnect(&again);
	WAIT_FOR(IDLE);
}

TEST_WITH(setup, teardown, test_target_that_ends_disconnects_its_hosts)
{
	struct hq admin, io;
	uint16_t id = hq_admin(&admin, 0);
	uint32_t i;

	hq_connect(&io, 1, id, 0);
	hold_reads(&io, 8);
	admin.event = io.event = false;
	nvmf_rdma_end(&tgt.rdma);
	assert_false(IDLE);
	WAIT_FOR(admin.event && io.event);
	assert_int_equal(io.ev.type, BB_CM_DISCONNECTED);
	for (i = 0; i < nheld; i++)
		nvmf_req_done(held[i], 0);
	WAIT_FOR(IDLE);
	hq_free(&io);
	hq_free(&admin);
}

TEST_WITH(setup, teardown, test_silent_host_is_disconnected_by_its_keep_alive_timer)
{
	struct hq admin, io;
	uint16_t id = hq_admin(&admin, 1);

	hq_connect(&io, 1, id, 0);
	admin.event = io.event = false;
	WAIT_FOR(admin.event && io.event);
	assert_int_equal(admin.ev.type, BB_CM_DISCONNECTED);
	assert_int_equal(io.ev.type, BB_CM_DISCONNECTED);
	hq_free(&io);
	hq_free(&admin);
	WAIT_FOR(IDLE);
}

/* Ends the time for the Connect command of all hosts that have not sent it. */
static void
end_connect_times(void)
{
	for (uint32_t i = 0; i < CONNS; i++)
		if (tgt.rdma.conn[i].queue != NULL && tgt.rdma.conn[i].queue->ctrl == NULL)
			tgt.rdma.conn[i].connect.deadline = 0;
}

TEST_WITH(setup, teardown, test_host_without_connect_command_is_disconnected)
{
	uint8_t req[NVMF_CM_REQ] = {0};
	struct hq q;

	put16(req + 4, 32);
	put16(req + 6, 31);
	hq_call(&q, 0, MAX_DEPTH, req, sizeof(req));
	assert_int_equal(q.ev.type, BB_CM_ESTABLISHED);
	q.event = false;
	end_connect_times();
	WAIT_FOR(q.event);
	assert_int_equal(q.ev.type, BB_CM_DISCONNECTED);
	hq_free(&q);
	WAIT_FOR(IDLE);
}

/* Connections of a host that sends requests for connections, and no command after them. */
#define HALF_OPEN 1000u

static struct {
	struct bb_cm *mute; /* never polled, so it does not answer the target's reply */
	struct bb_cq *cq;
	struct bb_qp *qp[HALF_OPEN];
	struct bb_conn *conn[HALF_OPEN];
} half;

static void
half_open_start(void)
{
	struct bb_cq_attr cq;
	struct bb_cm_attr cm;

	bb_cq_attr_init(&cq);
	cq.depth = HALF_OPEN * 8;
	OK(bb_cq_create(host.dev, &cq, &half.cq));
	bb_cm_attr_init(&cm);
	cm.transport = BB_CM_IB;
	OK(bb_cm_create(host.dev, &cm, &half.mute));
}

/* Requests connection @i, of an admin queue, and waits until the target has decided. */
static void
half_open(uint32_t i)
{
	uint64_t seen = tgt.rdma.accepted + tgt.rdma.rejected;
	uint8_t req[NVMF_CM_REQ] = {0};
	struct bb_qp_init_attr init;
	struct bb_conn_param param;

	put16(req + 4, 32);
	put16(req + 6, 31);
	bb_qp_init_attr_init(&init);
	init.send_cq = init.recv_cq = half.cq;
	init.sq_depth = init.rq_depth = 2;
	OK(bb_qp_create(host.pd, &init, &half.qp[i]));
	bb_conn_param_init(&param);
	param.private_data = req;
	param.private_len = sizeof(req);
	OK(bb_conn_connect(i % 2 == 0 ? host.cm : half.mute, (struct sockaddr *)&tgt.addr,
			   half.qp[i], &param, &half.conn[i]));
	WAIT_FOR(tgt.rdma.accepted + tgt.rdma.rejected != seen);
}

static void
half_open_end(void)
{
	for (uint32_t i = 0; i < HALF_OPEN; i++) {
		bb_conn_destroy(half.conn[i]);
		OK(bb_qp_destroy(half.qp[i]));
	}
	OK(bb_cm_destroy(half.mute));
	OK(bb_cq_destroy(half.cq));
}

static uint32_t
entries_in_use(void)
{
	uint32_t i, n = 0;

	for (i = 0; i < CONNS; i++)
		n += tgt.rdma.conn[i].queue != NULL;
	return n;
}

TEST_WITH(setup, teardown, test_thousand_half_open_connects_keep_no_host_away)
{
	struct hq admin, io, late;
	uint16_t id = hq_admin(&admin, 0);
	uint8_t cmd[NVMF_SQE];

	half_open_start();
	hq_connect(&io, 1, id, 0);
	for (uint32_t i = 0; i < HALF_OPEN; i++) {
		half_open(i);
		assert_true(entries_in_use() <= CONNS);
		if (i % 50 != 0)
			continue;
		command_rw(cmd, 1, NVM_WRITE, 0, host.data, 512);
		assert_int_equal(hq_exec(&io, cmd), SC_OK);
	}
	assert_int_equal(entries_in_use(), CONNS);
	/* A host that comes now gets a place when one of them had its time. */
	WAIT_FOR(tgt.t->now > tgt.rdma.conn[CONNS - 1].connect.deadline - 60000 + 600);
	hq_connect(&late, 2, id, 0);
	hq_disconnect(&late);
	/* All others end by the time for the Connect command. */
	end_connect_times();
	WAIT_FOR(entries_in_use() == 2);
	hq_disconnect(&io);
	hq_disconnect(&admin);
	WAIT_FOR(IDLE);
	half_open_end();
}

TEST_WITH(setup, teardown, test_more_queues_than_allowed_are_rejected_and_all_can_come_again)
{
	uint8_t req[NVMF_CM_REQ] = {0};
	struct hq q[CONNS], more;

	put16(req + 4, 32);
	put16(req + 6, 31);
	for (uint32_t round = 0; round < 10; round++) {
		uint16_t id = hq_admin(&q[0], 0);

		/* Queues with a controller. The target drops no such queue for another host. */
		for (uint16_t i = 1; i < CONNS - 1; i++)
			hq_connect(&q[i], i, id, 0);
		(void)hq_admin(&q[CONNS - 1], 0);
		hq_call(&more, 0, MAX_DEPTH, req, sizeof(req));
		assert_int_equal(more.ev.type, BB_CM_REJECTED);
		assert_int_equal(get16(more.private_data + 2), NVMF_CM_RESOURCES);
		hq_free(&more);
		for (uint32_t i = CONNS; i-- > 0;)
			hq_disconnect(&q[i]);
		WAIT_FOR(IDLE);
	}
}

TEST_WITH(setup, teardown, test_capsule_shorter_than_a_command_ends_the_connection)
{
	struct hq admin;
	struct bb_sge sge;

	hq_admin(&admin, 0);
	sge = (struct bb_sge){(uintptr_t)admin.mem, NVMF_SQE - 1, admin.mr->lkey};
	admin.event = false;
	OK(bb_post_send(admin.qp, 0, &sge, 1, BB_SEND_SIGNALED));
	bb_qp_ring(admin.qp);
	WAIT_FOR(admin.event);
	assert_int_equal(admin.ev.type, BB_CM_DISCONNECTED);
	hq_free(&admin);
	WAIT_FOR(IDLE);
}

TEST_MAIN(bare_eal_init() < 0 ? 1 : 0)
