/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A small initiator of NVMe over Fabrics for tests of examples/nvmf, on a device of its own. One
 * thread runs it and the target in turn.
 */
#ifndef NVMF_INITIATOR_H
#define NVMF_INITIATOR_H

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_malloc.h>

#include "../../fakes/bare_eal.h"
#include "bb_test.h"
#include "nvmf_rdma.h"

#define WAIT_S     60
#define DEPTH      16u
#define MAX_IO     16384u
#define IN_CAPSULE 4096u
#define DISK       (1u << 20)
#define CONNS      6u
#define DATA       (DEPTH * MAX_IO) /* bytes of the host's buffers */
#define CAPSULE    (NVMF_SQE + IN_CAPSULE)
#define MAX_DEPTH  32u
#define NQN        "nqn.2026-01.org.example:disk"

struct target {
	struct nvmf_subsys subsys;
	struct nvmf_ns disk, *ns[1];
	struct nvmf_target *t;
	struct nvmf_rdma rdma;
	struct bb_dev *dev;
	uint8_t *mem, *storage;
	struct sockaddr_storage addr;
};

/* A queue of the host. */
struct hq {
	struct bb_qp *qp;
	struct bb_conn *conn;
	uint16_t qid;
	uint32_t depth;
	struct bb_cm_event ev; /* the last one */
	uint8_t private_data[196];
	bool event;
	uint8_t *mem; /* capsules to send, then responses */
	struct bb_mr *mr;
	uint32_t outstanding;
	uint32_t responses, failed;  /* responses; completions with an error */
	uint8_t cqe[NVMF_CQE];       /* the last response */
	uint32_t invalidated;        /* key that it has invalidated; 0 if none */
	uint16_t status[65536 / 16]; /* by command id */
};

struct host {
	struct bb_dev *dev;
	struct bb_pd *pd;
	struct bb_cq *cq;
	struct bb_cm *cm;
	struct bb_mr *mr;
	uint8_t *data;
	bool no_reads; /* its next queues execute no RDMA READs */
	bool mute;     /* it does not poll its CM, so it answers no message of the CM */
};

static struct target tgt;
static const char *target_listen[] = {"0.0.0.0:0"};
static struct host host;

/* ---- Target */

static inline void
device_address(struct bb_dev *dev, struct sockaddr_storage *addr)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)addr;
	struct bb_gid_want want;
	struct bb_gid gid;
	uint8_t index;

	OK(bb_cm_addr("127.0.0.1:0", addr));
	bb_gid_want_init(&want);
	want.family = BB_GID_IPV4;
	OK(bb_gid_choose(dev, 1, &want, &index));
	OK(bb_gid_query(dev, 1, index, &gid));
	memcpy(&v4->sin_addr, gid.raw + 12, 4);
}

static uint32_t tgt_sleep_us; /* attribute of the next target_open() */

static inline void
target_open(const char *spec)
{
	struct nvmf_target_attr attr = {.subsys = &tgt.subsys,
					.nsubsys = 1,
					.max_io = MAX_IO,
					.in_capsule = IN_CAPSULE,
					.io_queues = 4,
					.io_depth = DEPTH,
					.ctrls = 4,
					.ops = &nvmf_rdma_ops};
	struct nvmf_rdma_attr rdma = {.lcore = BB_LCORE_SELF,
				      .listen = target_listen,
				      .listeners = 1,
				      .conns = CONNS,
				      .connect_ms = 60000,
				      .sleep_us = tgt_sleep_us};

	memset(&tgt, 0, sizeof(tgt));
	tgt.subsys = (struct nvmf_subsys){
		.nqn = NQN, .serial = "1", .any_host = true, .ns = tgt.ns, .max_ns = 1};
	tgt.storage = rte_zmalloc("disk", DISK, 4096);
	assert_non_null(tgt.storage);
	nvmf_ns_memory(&tgt.disk, tgt.storage, DISK, 9);
	OK(nvmf_ns_add(&tgt.subsys, 1, &tgt.disk));
	OK(nvmf_target_create(&attr, &tgt.t));
	OK(bb_dev_open(spec, &tgt.dev));
	rdma.dev = tgt.dev;
	tgt.mem = rte_malloc("target", nvmf_rdma_memory(&attr, CONNS), 4096);
	assert_non_null(tgt.mem);
	OK(nvmf_rdma_open(&tgt.rdma, &rdma, tgt.t, tgt.mem));
	device_address(tgt.dev, &tgt.addr);
	((struct sockaddr_in *)&tgt.addr)->sin_port = htons(bb_listener_port(tgt.rdma.listener[0]));
}

static inline void
target_close(void)
{
	nvmf_rdma_end(&tgt.rdma);
	while (!nvmf_rdma_idle(&tgt.rdma))
		(void)bb_loop_run_once(tgt.rdma.loop);
	nvmf_rdma_close(&tgt.rdma);
	OK(bb_dev_close(tgt.dev));
	nvmf_target_destroy(tgt.t);
	rte_free(tgt.mem);
	rte_free(tgt.storage);
}

/* ---- Host */

static inline void
host_open(const char *spec)
{
	struct bb_cq_attr cq;
	struct bb_cm_attr cm;

	memset(&host, 0, sizeof(host));
	OK(bb_dev_open(spec, &host.dev));
	OK(bb_pd_alloc(host.dev, &host.pd));
	bb_cq_attr_init(&cq);
	cq.depth = 1024;
	OK(bb_cq_create(host.dev, &cq, &host.cq));
	bb_cm_attr_init(&cm);
	cm.transport = BB_CM_IB;
	OK(bb_cm_create(host.dev, &cm, &host.cm));
	host.data = rte_zmalloc("host", DATA, 4096);
	assert_non_null(host.data);
	OK(bb_mr_reg(host.pd, host.data, DATA,
		     BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_READ |
			     BB_ACCESS_MW_BIND,
		     &host.mr));
}

static inline void
host_close(void)
{
	OK(bb_cm_destroy(host.cm));
	OK(bb_cq_destroy(host.cq));
	OK(bb_mr_dereg(host.mr));
	OK(bb_pd_free(host.pd));
	OK(bb_dev_close(host.dev));
	rte_free(host.data);
}

static inline uint8_t *
response_at(struct hq *q, uint32_t i)
{
	return q->mem + q->depth * CAPSULE + i * 64;
}

static inline void
post_response(struct hq *q, uint32_t i)
{
	struct bb_sge sge = {(uintptr_t)response_at(q, i), 64, q->mr->lkey};

	OK(bb_post_recv(q->qp, 0x8000 | i, &sge, 1));
	bb_qp_ring_recv(q->qp);
}

static inline void
host_wc(const struct bb_wc *wc)
{
	struct hq *q = wc->qp->user;
	uint32_t i = (uint32_t)wc->wr_id & 0x7fff;

	if (wc->status != BB_WC_SUCCESS) {
		q->failed++;
		return;
	}
	if (wc->opcode != BB_WC_RECV)
		return;
	assert_int_equal(wc->byte_len, NVMF_CQE);
	memcpy(q->cqe, response_at(q, i), NVMF_CQE);
	q->invalidated = (wc->flags & BB_WC_WITH_INV) != 0 ? wc->imm : 0;
	q->status[get16(q->cqe + AT_CQE_CID) % RTE_DIM(q->status)] =
		(uint16_t)(get16(q->cqe + AT_CQE_STATUS) >> 1);
	q->responses++;
	q->outstanding--;
	post_response(q, i);
}

static struct nvmf_rdma *tgt_worker; /* transport of the target's second lcore; NULL if none */

/* Runs target and host once. */
static inline void
turn(void)
{
	struct bb_cm_event ev;
	struct bb_wc wc[16];
	int i, n;

	assert_true(bb_loop_run_once(tgt.rdma.loop) >= 0);
	if (tgt_worker != NULL)
		assert_true(bb_loop_run_once(tgt_worker->loop) >= 0);
	n = (int)bb_cq_poll(host.cq, wc, 16);
	for (i = 0; i < n; i++)
		host_wc(&wc[i]);
	if (!host.mute && bb_cm_poll(host.cm, &ev, 1) == 1) {
		struct hq *q = bb_conn_user(ev.conn);

		if (q == NULL)
			return;
		q->ev = ev;
		q->event = true;
		if (ev.private_len != 0 && ev.private_len <= sizeof(q->private_data))
			memcpy(q->private_data, ev.private_data, ev.private_len);
	}
}

#define WAIT_FOR(condition)                                                                        \
	do {                                                                                       \
		const uint64_t end_ = rte_get_tsc_cycles() + WAIT_S * rte_get_tsc_hz();            \
                                                                                                   \
		while (!(condition)) {                                                             \
			turn();                                                                    \
			if (rte_get_tsc_cycles() > end_)                                           \
				fail_msg("%s:%d: %s does not come", __FILE__, __LINE__,            \
					 #condition);                                              \
		}                                                                                  \
	} while (0)

/* Creates a queue and sends the request to connect with @len bytes of private data. */
static inline void
hq_call(struct hq *q, uint16_t qid, uint32_t depth, const void *private_data, uint32_t len)
{
	struct bb_qp_init_attr init;
	struct bb_conn_param param;
	uint32_t i, bytes = depth * (CAPSULE + 64);

	memset(q, 0, sizeof(*q));
	q->qid = qid;
	q->depth = depth;
	q->mem = rte_zmalloc("queue", bytes, 4096);
	assert_non_null(q->mem);
	OK(bb_mr_reg(host.pd, q->mem, bytes, BB_ACCESS_LOCAL_WRITE, &q->mr));
	bb_qp_init_attr_init(&init);
	init.send_cq = host.cq;
	init.recv_cq = host.cq;
	init.sq_depth = 2 * depth;
	init.rq_depth = depth;
	OK(bb_qp_create(host.pd, &init, &q->qp));
	q->qp->user = q;
	for (i = 0; i < depth; i++)
		post_response(q, i);
	bb_conn_param_init(&param);
	param.private_data = private_data;
	param.private_len = len;
	param.access = BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_READ;
	if (host.no_reads)
		param.responder_resources = 0;
	OK(bb_conn_connect(host.cm, (struct sockaddr *)&tgt.addr, q->qp, &param, &q->conn));
	bb_conn_user_set(q->conn, q);
	WAIT_FOR(q->event);
}

static inline void
hq_free(struct hq *q)
{
	bb_conn_destroy(q->conn);
	OK(bb_qp_destroy(q->qp));
	OK(bb_mr_dereg(q->mr));
	rte_free(q->mem);
}

static inline void
hq_disconnect(struct hq *q)
{
	q->event = false;
	if (bb_conn_disconnect(q->conn, NULL, 0) == 0)
		WAIT_FOR(q->event);
	hq_free(q);
}

/* Posts a capsule with command @cid. @data of @len bytes follows the command. */
static inline void
hq_send(struct hq *q, const uint8_t *cmd, const void *data, uint32_t len)
{
	uint8_t *at = q->mem + (get16(cmd + AT_CID) % q->depth) * CAPSULE;
	struct bb_sge sge = {(uintptr_t)at, NVMF_SQE + len, q->mr->lkey};

	memcpy(at, cmd, NVMF_SQE);
	if (len != 0)
		memcpy(at + NVMF_SQE, data, len);
	q->status[get16(cmd + AT_CID) % RTE_DIM(q->status)] = 0xffff;
	q->outstanding++;
	OK(bb_post_send(q->qp, 0, &sge, 1, BB_SEND_SIGNALED));
	bb_qp_ring(q->qp);
}

static inline uint32_t
hq_exec(struct hq *q, const uint8_t *cmd)
{
	uint32_t before = q->responses;

	hq_send(q, cmd, NULL, 0);
	WAIT_FOR(q->responses != before);
	return get16(q->cqe + AT_CQE_STATUS) >> 1;
}

static inline void
command(uint8_t *cmd, uint16_t cid, uint8_t op, uint32_t nsid, const void *at, uint32_t len)
{
	memset(cmd, 0, NVMF_SQE);
	cmd[AT_OPCODE] = op;
	cmd[AT_FLAGS] = PSDT_SGL;
	put16(cmd + AT_CID, cid);
	put32(cmd + AT_NSID, nsid);
	put64(cmd + AT_SGL, (uintptr_t)at);
	put32(cmd + AT_SGL + AT_SGL_LEN, len);
	put32(cmd + AT_SGL + AT_SGL_KEY, host.mr->rkey);
	cmd[AT_SGL + AT_SGL_TYPE] = SGL_KEYED;
}

static inline void
command_rw(uint8_t *cmd, uint16_t cid, uint8_t op, uint64_t slba, const void *at, uint32_t len)
{
	command(cmd, cid, op, 1, at, len);
	put64(cmd + AT_SLBA, slba);
	put16(cmd + AT_NLB, len / 512 - 1);
}

static inline uint32_t
depth_of_queue(uint16_t qid)
{
	return qid == 0 ? MAX_DEPTH : DEPTH;
}

/* Connects queue @qid by the CM only. */
static inline void
hq_open(struct hq *q, uint16_t qid)
{
	uint32_t depth = depth_of_queue(qid);
	uint8_t req[NVMF_CM_REQ] = {0};

	put16(req + 2, qid);
	put16(req + 4, depth);
	put16(req + 6, depth - 1);
	hq_call(q, qid, depth, req, sizeof(req));
	assert_int_equal(q->ev.type, BB_CM_ESTABLISHED);
	assert_int_equal(get16(q->private_data), 0);
	assert_int_equal(get16(q->private_data + 2), depth);
}

/* Executes Connect of queue @qid to the controller @cntlid. Returns its status. */
static inline uint32_t
hq_connect_cmd(struct hq *q, uint16_t qid, uint16_t cntlid, uint32_t kato)
{
	uint8_t cmd[NVMF_SQE];

	memset(host.data, 0, NVMF_CONNECT_DATA);
	memset(host.data + AT_COND_HOSTID, 7, 16);
	put16(host.data + AT_COND_CNTLID, cntlid);
	strcpy((char *)host.data + AT_COND_SUBNQN, NQN);
	strcpy((char *)host.data + AT_COND_HOSTNQN, "nqn.2026-01.org.example:host");
	command(cmd, 0, OPC_FABRICS, FC_CONNECT, host.data, NVMF_CONNECT_DATA);
	put16(cmd + AT_CON_QID, qid);
	put16(cmd + AT_CON_SQSIZE, depth_of_queue(qid) - 1);
	put32(cmd + AT_CON_KATO, kato);
	return hq_exec(q, cmd);
}

/* Connects queue @qid to the controller @cntlid, by both protocols. */
static inline void
hq_connect(struct hq *q, uint16_t qid, uint16_t cntlid, uint32_t kato)
{
	hq_open(q, qid);
	assert_int_equal(hq_connect_cmd(q, qid, cntlid, kato), SC_OK);
}

/* Connects an admin queue and enables the controller. */
static inline uint16_t
hq_admin(struct hq *q, uint32_t kato)
{
	uint8_t cmd[NVMF_SQE];
	uint16_t cntlid;

	hq_connect(q, 0, NVMF_CNTLID_ANY, kato);
	cntlid = get16(q->cqe);
	command(cmd, 1, OPC_FABRICS, FC_PROPERTY_SET, NULL, 0);
	put32(cmd + AT_PROP_OFFSET, PROP_CC);
	put32(cmd + AT_PROP_VALUE, CC_ENTRIES_NVM | CC_EN);
	assert_int_equal(hq_exec(q, cmd), SC_OK);
	return cntlid;
}

#endif
