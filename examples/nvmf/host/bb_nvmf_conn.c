/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Connections of the initiator, and the commands that the engine sends. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include <rte_cycles.h>

#include "bb_nvmf_priv.h"

#define WR_REVOKE 0x10000u /* wr_id of an invalidation: this bit and the index of the request */
/*
 * Slots of the send queue for each command. A command is a SEND and, with windows, also a bind and
 * an invalidation. A bind takes several slots, which become free only after a later completion.
 */
#define SQ_PER_COMMAND 2u
#define SQ_PER_WINDOW  12u
/* 4.096 us << 18 is 1.07 s, so a short pause of the target does not break the connection. */
#define ACK_TIMEOUT 18u
#define FINISH_MS   200u /* ms that a close waits for the target's answer */

/* ---- Connect and disconnect */

static int
receive(struct nvmf_ini_queue *q, uint64_t i)
{
	struct bb_sge sge = {(uintptr_t)q->recv + i * RECV, RECV, q->n->recv->lkey};

	q->ring_recv = true;
	return bb_post_recv(q->qp, i, &sge, 1);
}

static int
create_qp(struct nvmf_ini_queue *q, uint32_t size, bool windows)
{
	struct bb_qp_init_attr init;
	uint32_t i;
	int rc;

	bb_qp_init_attr_init(&init);
	init.send_cq = init.recv_cq = q->n->cq;
	init.sq_depth = size * (windows ? SQ_PER_WINDOW : SQ_PER_COMMAND) + 4;
	init.rq_depth = size;
	rc = bb_qp_create(q->n->pd, &init, &q->qp);
	if (rc != 0)
		return rc;
	q->qp->user = q;
	for (i = 0; i < size && rc == 0; i++)
		rc = receive(q, i);
	bb_qp_ring_recv(q->qp);
	q->ring_recv = false;
	return rc;
}

static int
create_windows(struct bb_nvmf *n)
{
	uint32_t i;
	int rc = 0;

	for (i = 0; i < n->depth && rc == 0; i++)
		rc = bb_mw_alloc(n->pd, BB_MW_TYPE_2, &n->window[i]);
	return rc;
}

static int
connect_queue(struct nvmf_ini *e, uint16_t qid, uint32_t size, const uint8_t req[NVMF_CM_REQ])
{
	struct bb_nvmf *n = e->attr.user;
	struct nvmf_ini_queue *q = &n->queue[qid];
	struct bb_conn_param param;
	int rc;

	rc = create_qp(q, size, qid != 0 && n->windows);
	if (rc == 0 && qid != 0 && n->windows)
		rc = create_windows(n);
	if (rc != 0)
		return rc;
	bb_conn_param_init(&param);
	param.private_data = req;
	param.private_len = NVMF_CM_REQ;
	param.access = BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_READ;
	param.timeout_ms = n->timeout_ms;
	param.ack_timeout = ACK_TIMEOUT;
	rc = bb_conn_connect(n->cm, (struct sockaddr *)&n->addr, q->qp, &param, &q->conn);
	if (rc == 0)
		bb_conn_user_set(q->conn, q);
	return rc;
}

void
bb_nvmf_conn_disconnect(struct bb_nvmf *n)
{
	uint32_t i;

	n->connection++;
	n->failed = 0;
	for (i = 0; i < 2; i++) {
		struct nvmf_ini_queue *q = &n->queue[1 - i];

		if (q->conn != NULL) {
			(void)bb_conn_disconnect(q->conn, NULL, 0);
			bb_conn_destroy(q->conn);
		}
		if (q->qp != NULL)
			bb_qp_destroy(q->qp);
		q->conn = NULL;
		q->qp = NULL;
		q->ring_send = q->ring_recv = false;
	}
	for (i = 0; n->windows && i < n->depth; i++) {
		if (n->window[i] != NULL)
			bb_mw_free(n->window[i]);
		n->window[i] = NULL;
	}
}

void
bb_nvmf_conn_finish(struct bb_nvmf *n)
{
	const uint64_t end = rte_get_tsc_cycles() + rte_get_tsc_hz() / 1000 * FINISH_MS;
	struct bb_cm_event ev;
	uint32_t i, open = 0;

	for (i = 0; i < 2; i++)
		open += n->queue[1 - i].conn != NULL &&
			bb_conn_disconnect(n->queue[1 - i].conn, NULL, 0) == 0;
	while (open > 0 && rte_get_tsc_cycles() < end) {
		bb_dev_progress(n->dev);
		open -= bb_cm_poll(n->cm, &ev, 1);
	}
}

static void
disconnect(struct nvmf_ini *e)
{
	bb_nvmf_conn_disconnect(e->attr.user);
}

/* ---- Commands and keys of requests */

static int
send_command(struct nvmf_ini *e, uint16_t qid, const uint8_t cmd[NVMF_SQE])
{
	struct bb_nvmf *n = e->attr.user;
	struct nvmf_ini_queue *q = &n->queue[qid];

	q->ring_send = true;
	return bb_post_send_inline(q->qp, 0, cmd, NVMF_SQE, 0);
}

static int
grant(struct nvmf_ini *e, uint16_t index, const struct bb_nvmf_request *req, bool write,
      uint32_t *key)
{
	struct bb_nvmf *n = e->attr.user;
	struct bb_mw *mw = n->window[index];
	uint64_t at = req->mr->iova + ((uintptr_t)req->mem - (uintptr_t)req->mr->addr);
	int rc;

	rc = bb_post_bind_mw(n->queue[1].qp, 0, mw, bb_inc_rkey(mw->rkey), req->mr, at, req->length,
			     write ? BB_ACCESS_REMOTE_WRITE : BB_ACCESS_REMOTE_READ, 0);
	*key = mw->rkey;
	return rc;
}

static int
revoke(struct nvmf_ini *e, uint16_t index, uint32_t key)
{
	struct bb_nvmf *n = e->attr.user;

	n->queue[1].ring_send = true;
	return bb_post_local_inv(n->queue[1].qp, WR_REVOKE | index, key, BB_SEND_SIGNALED);
}

const struct nvmf_ini_ops bb_nvmf_conn_ops = {
	.connect = connect_queue,
	.disconnect = disconnect,
	.send = send_command,
	.grant = grant,
	.revoke = revoke,
};

/* ---- Completions, and events of the CM */

void
bb_nvmf_conn_wc(struct bb_nvmf *n, const struct bb_wc *wc)
{
	struct nvmf_ini_queue *q = wc->qp->user;
	struct nvmf_ini_response r;
	char why[INI_WHY];

	if (wc->status == BB_WC_WR_FLUSH_ERR) {
		/*
		 * Do not end the connection yet: the CM may still report the cause.
		 * bb_nvmf_conn_poll() ends the connection after a second.
		 */
		if (n->failed == 0)
			n->failed = rte_get_tsc_cycles();
		return;
	}
	if (wc->status != BB_WC_SUCCESS) {
		snprintf(why, sizeof(why), "the target is gone: %s", bb_wc_status_name(wc->status));
		nvmf_ini_lost(n->e, -ECONNRESET, why);
		return;
	}
	if (wc->opcode == BB_WC_LOCAL_INV) {
		nvmf_ini_revoked(n->e, (uint16_t)(wc->wr_id & 0xffff));
		return;
	}
	if (wc->opcode != BB_WC_RECV)
		return;
	r = (struct nvmf_ini_response){
		.bytes = q->recv + wc->wr_id * RECV,
		.len = wc->byte_len,
		.invalidated = (wc->flags & BB_WC_WITH_INV) != 0,
		.key = wc->imm,
	};
	nvmf_ini_response(n->e, q == &n->queue[1], &r);
	/*
	 * The engine has read the response, so its buffer is free. qp is NULL if the engine
	 * disconnected.
	 */
	if (q->qp != NULL)
		(void)receive(q, wc->wr_id);
}

static void
event(struct bb_nvmf *n, const struct bb_cm_event *ev)
{
	struct nvmf_ini_queue *q = bb_conn_user(ev->conn);
	uint16_t qid = q == &n->queue[1];
	bool consumer = ev->type == BB_CM_REJECTED && ev->reason == BB_REJECT_CONSUMER;
	uint32_t connection = n->connection;
	char why[INI_WHY];

	if (ev->type == BB_CM_ESTABLISHED) {
		nvmf_ini_connected(n->e, qid, ev->private_data, ev->private_len);
		return;
	}
	if (ev->type == BB_CM_REJECTED)
		nvmf_ini_rejected(n->e, qid, ev->private_data, consumer ? ev->private_len : 0,
				  ev->why);
	/* nvmf_ini_rejected() has disconnected, unless the engine did not expect a rejection. */
	if (n->connection != connection)
		return;
	snprintf(why, sizeof(why), "%s: %s",
		 ev->type == BB_CM_FAILED ? "cannot connect" : "the target is gone", ev->why);
	nvmf_ini_lost(n->e, ev->status != 0 ? ev->status : -ECONNRESET, why);
}

void
bb_nvmf_conn_poll(struct bb_nvmf *n)
{
	struct bb_cm_event ev;

	while (bb_cm_poll(n->cm, &ev, 1) == 1)
		event(n, &ev);
	if (n->failed != 0 && rte_get_tsc_cycles() - n->failed > rte_get_tsc_hz())
		nvmf_ini_lost(
			n->e, -ECONNRESET,
			"the queue pair is in error: the target used a key or address that it has "
			"no right to, or died");
}
