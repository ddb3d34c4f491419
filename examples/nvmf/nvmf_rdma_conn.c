/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Connections: accepts, refuses and releases the queues of hosts. */
#include <inttypes.h>
#include <string.h>

#include "nvmf_rdma.h"
#include "program.h"

/* Time that a host has for its Connect command even if all queues are in use. */
#define PATIENCE_MS 500u

/* ---- End of connections */

/* Frees a connection that has ended, unless a namespace still uses its memory. */
void
nvmf_rdma_release(struct nvmf_conn *c)
{
	if (c->qp != NULL)
		bb_qp_destroy(c->qp);
	c->qp = NULL;
	c->ring_send = c->ring_recv = false;
	c->responses = c->pushed = c->unsignalled = 0;
	c->rdma->pulls -= c->pulls;
	c->pulls = 0;
	nvmf_queue_close(c->queue);
	if (c->releasing != !nvmf_queue_idle(c->queue)) {
		c->releasing = !c->releasing;
		if (c->releasing) {
			c->rdma->releasing++;
			nvmf_rdma_linger(c);
		} else {
			c->rdma->releasing--;
		}
	}
	if (c->releasing)
		return;
	nvmf_queue_destroy(c->queue);
	c->queue = NULL;
	__atomic_store_n(&c->rdma->used, c->rdma->used - 1, __ATOMIC_RELAXED);
	nvmf_rdma_detach(c);
}

void
nvmf_rdma_end_conn(struct nvmf_conn *c)
{
	c->ending = true;
	bb_conn_destroy(c->conn);
	c->conn = NULL;
	nvmf_rdma_release(c);
}

/* ---- Connection requests */

static void
reject(struct nvmf_rdma *r, struct bb_conn *conn, enum nvmf_cm_status status, const char *why)
{
	uint8_t rej[NVMF_CM_REJ] = {0};
	struct bb_conn_info info;

	bb_conn_query(conn, &info);
	/* Limit the lines, because a host may send thousands of connection requests. */
	if (r->target->now >= r->next_line) {
		say("host %s: connection refused: %s; %" PRIu64 " refused so far", info.peer, why,
		    r->rejected + 1);
		r->next_line = r->target->now + NVMF_LINE_MS;
	}
	put16(rej + 2, status);
	(void)bb_conn_reject(conn, rej, sizeof(rej));
	bb_conn_destroy(conn);
	r->rejected++;
}

/* Checks the private data of a connection request. Returns 0, or the reason of the rejection. */
static enum nvmf_cm_status
check(const struct nvmf_rdma *r, const struct bb_cm_event *ev, const char **why)
{
	const struct nvmf_target_attr *t = &r->target->attr;
	const uint8_t *req = ev->private_data;
	uint32_t qid, max;

	*why = "its private data is shorter than 32 bytes";
	if (ev->private_len < NVMF_CM_REQ)
		return NVMF_CM_LENGTH;
	*why = "its private data has another record format";
	if (get16(req) != 0)
		return NVMF_CM_FORMAT;
	qid = get16(req + 2);
	*why = "the number of the queue is above the maximum";
	if (qid > t->io_queues)
		return NVMF_CM_QID;
	max = qid == 0 ? NVMF_ADMIN_DEPTH : t->io_depth;
	*why = "the size of its send queue is 0 or above the maximum";
	if (get16(req + 6) == 0 || get16(req + 6) >= max)
		return NVMF_CM_HSQSIZE;
	*why = "the size of its receive queue is smaller than that of its send queue";
	if (get16(req + 4) < get16(req + 6))
		return NVMF_CM_HRQSIZE;
	return 0;
}

/*
 * Returns a free entry. If there is none, frees one: of the hosts that have sent no Connect command
 * for at least PATIENCE_MS, it disconnects the one that connected first. So hosts that never send
 * Connect keep no other host away. Returns NULL if there is no such host.
 */
static struct nvmf_conn *
free_entry(struct nvmf_rdma *r)
{
	struct nvmf_conn *oldest = NULL;
	uint32_t i;

	for (i = 0; i < r->attr.conns; i++) {
		struct nvmf_conn *c = &r->conn[i];

		if (c->detaching)
			continue;
		if (c->queue == NULL)
			return c;
		if (c->conn != NULL && c->queue->ctrl == NULL &&
		    (oldest == NULL || c->connect.deadline < oldest->connect.deadline))
			oldest = c;
	}
	if (oldest == NULL ||
	    oldest->connect.deadline + PATIENCE_MS > r->target->now + r->attr.connect_ms)
		return NULL;
	nvmf_rdma_drop(oldest, "it has sent no Connect command, and another host needs its place");
	nvmf_rdma_end_conn(oldest);
	return oldest->queue == NULL && !oldest->detaching ? oldest : NULL;
}

static int
create_qp(struct nvmf_conn *c)
{
	struct bb_qp_init_attr init;
	int rc;

	bb_qp_init_attr_init(&init);
	init.send_cq = c->rdma->send_cq;
	init.recv_cq = c->rdma->recv_cq;
	init.sq_depth = c->depth * NVMF_SQ_PER_REQ;
	init.rq_depth = c->depth;
	rc = bb_qp_create(c->rdma->pd, &init, &c->qp);
	if (rc == 0)
		c->qp->user = c;
	return rc;
}

/* Posts all receives, and accepts the connection. Returns 0 or -errno. */
static int
accept_conn(struct nvmf_conn *c, struct bb_conn *conn)
{
	uint8_t rep[NVMF_CM_REP] = {0};
	struct bb_conn_param param;
	uint32_t i;
	int rc = 0;

	for (i = 0; i < c->depth && rc == 0; i++)
		rc = nvmf_rdma_receive(c, i);
	if (rc != 0)
		return rc;
	bb_qp_ring_recv(c->qp);
	c->ring_recv = false;
	put16(rep + 2, c->depth);
	bb_conn_param_init(&param);
	param.private_data = rep;
	param.private_len = sizeof(rep);
	return bb_conn_accept(conn, c->qp, &param);
}

static void
request(struct nvmf_rdma *r, const struct bb_cm_event *ev)
{
	const uint8_t *req = ev->private_data;
	struct bb_conn_info info;
	enum nvmf_cm_status status;
	struct nvmf_conn *c;
	const char *why;
	int rc;

	status = check(r, ev, &why);
	if (status != 0) {
		reject(r, ev->conn, status, why);
		return;
	}
	if (get16(req + 2) != 0 && nvmf_rdma_delegate(r, ev->conn))
		return;
	bb_conn_query(ev->conn, &info);
	if (info.peer_responder_resources == 0) {
		reject(r, ev->conn, NVMF_CM_IRD, "it executes no RDMA READs");
		return;
	}
	c = free_entry(r);
	if (c == NULL) {
		reject(r, ev->conn, NVMF_CM_RESOURCES,
		       get16(req + 2) == 0 && r->workers != 0
			       ? "the first lcore, which serves all admin queues, has used up its "
				 "share of --queues"
			       : "all queues are in use (--queues)");
		return;
	}
	c->depth = (uint32_t)get16(req + 6) + 1;
	c->ending = c->attach_sent = false;
	c->qid = get16(req + 2);
	c->attaching = NULL;
	c->connect.ms = r->attr.connect_ms;
	nvmf_timer_start(r->target, &c->connect);
	memcpy(c->name, info.peer, sizeof(c->name));
	rc = nvmf_queue_create(r->target, get16(req + 2), c->depth, c->mem, c, &c->queue);
	if (rc == 0)
		__atomic_store_n(&r->used, r->used + 1, __ATOMIC_RELAXED);
	if (rc == 0)
		rc = create_qp(c);
	if (rc == 0)
		rc = accept_conn(c, ev->conn);
	if (rc != 0) {
		if (c->queue != NULL)
			nvmf_rdma_release(c);
		reject(r, ev->conn, NVMF_CM_RESOURCES, "the device has no queue left for it");
		return;
	}
	c->conn = ev->conn;
	bb_conn_user_set(c->conn, c);
	r->accepted++;
}

void
nvmf_rdma_event(struct bb_cm *cm, const struct bb_cm_event *ev, void *arg)
{
	struct nvmf_rdma *r = arg;
	struct nvmf_conn *c;

	(void)cm;
	r->busy = true;
	if (ev->type == BB_CM_CONNECT_REQUEST) {
		request(r, ev);
		__atomic_store_n(&r->handled, r->handled + 1, __ATOMIC_RELEASE);
		return;
	}
	if (ev->type == BB_CM_ESTABLISHED)
		return;
	/* The connection has ended or failed. */
	c = bb_conn_user(ev->conn);
	bb_conn_destroy(ev->conn);
	if (c == NULL)
		return;
	c->conn = NULL;
	c->ending = true;
	nvmf_rdma_release(c);
}
