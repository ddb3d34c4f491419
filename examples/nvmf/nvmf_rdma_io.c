/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Transfers, responses and receives, and the first step of a disconnection. */
#include <inttypes.h>

#include <rte_cycles.h>

#include "nvmf_rdma.h"
#include "program.h"

/*
 * wr_id of a work request of the send queue: one of these tags in the bits of WR_KIND, which names
 * the operation, and the index of the NVMe request in the bits of WR_REQ.
 */
#define WR_PULL 0x10000u /* RDMA READ */
#define WR_PUSH 0x20000u /* RDMA WRITE */
#define WR_DONE 0x30000u /* SEND */
#define WR_KIND 0xf0000u
#define WR_REQ  0x0ffffu

void
nvmf_rdma_drop(struct nvmf_conn *c, const char *why)
{
	struct nvmf_rdma *r = c->rdma;

	if (c->ending)
		return;
	r->dropped += why != NULL;
	/*
	 * Limit the lines, because hosts may connect and lose their connections thousands of times.
	 */
	if (why != NULL && r->target->now >= r->next_drop_line) {
		say("host %s, queue %u: %s; it is disconnected; %" PRIu64 " disconnected so far",
		    c->name, c->queue->qid, why, r->dropped);
		r->next_drop_line = r->target->now + NVMF_LINE_MS;
	}
	c->ending = r->has_ending = true;
	if (c->conn != NULL)
		(void)bb_conn_disconnect(c->conn, NULL, 0);
}

static void
posted(struct nvmf_conn *c, int rc)
{
	c->ring_send = true;
	nvmf_rdma_list(c);
	/* The send queue has room for the sends of all requests, so the post does not fail. */
	if (rc != 0)
		nvmf_rdma_drop(c, "its send queue is full");
}

static void
pull(struct nvmf_queue *q, struct nvmf_req *r, void *to, uint32_t offset, uint32_t len)
{
	struct nvmf_conn *c = q->user;
	struct bb_sge sge = {(uintptr_t)to, len, c->rdma->mr->lkey};

	if (c->ending)
		return;
	c->pulls++;
	c->rdma->pulls++;
	posted(c, bb_post_read(c->qp, WR_PULL | r->index, &sge, 1, r->addr + offset, r->key,
			       BB_SEND_SIGNALED));
}

static void
post_response(struct nvmf_conn *c, struct nvmf_req *r, uint32_t flags)
{
	uint64_t id = WR_DONE | r->index;

	if (r->invalidate)
		posted(c, bb_post_send_inv_inline(c->qp, id, r->cqe, NVMF_CQE, r->key, flags));
	else
		posted(c, bb_post_send_inline(c->qp, id, r->cqe, NVMF_CQE, flags));
}

/*
 * Posts the SENDs of the responses that wait. Afterwards each request names the one whose SEND was
 * posted before it in this turn, for sent().
 */
static void
post_waiting(struct nvmf_conn *c, bool end)
{
	struct nvmf_req *r;

	for (; c->responses != 0 && !c->ending; c->responses--) {
		r = &c->queue->req[c->first_response];
		c->first_response = r->next;
		r->next = c->unsignalled;
		c->unsignalled = r->index + 1;
		post_response(c, r, end && c->responses == 1 ? BB_SEND_SIGNALED : 0);
	}
	c->responses = c->pushed = 0;
}

/* Only the last SEND of a turn is signalled, because a QP completes its requests in order. */
void
nvmf_rdma_post_responses(struct nvmf_conn *c)
{
	post_waiting(c, true);
	c->unsignalled = 0;
}

/* Frees the request of a response that was sent, and those of the unsignalled ones before it. */
static void
sent(struct nvmf_queue *q, struct nvmf_req *r)
{
	uint32_t before;

	for (;;) {
		before = r->next;
		nvmf_req_sent(r);
		if (before == 0)
			return;
		r = &q->req[before - 1];
	}
}

static void
respond(struct nvmf_queue *q, struct nvmf_req *r)
{
	struct nvmf_conn *c = q->user;
	struct bb_sge sge = {(uintptr_t)r->data, r->push, c->rdma->mr->lkey};

	if (c->ending)
		return;
	/*
	 * Post the receive first, because the host may send its next command after this response.
	 */
	(void)nvmf_rdma_receive(c, r->capsule);
	if (c->pushed + r->push > c->rdma->push_max)
		post_waiting(c, false);
	if (r->push != 0)
		posted(c, bb_post_write(c->qp, WR_PUSH | r->index, &sge, 1, r->addr, r->key, 0));
	if (c->responses++ == 0)
		c->first_response = r->index;
	else
		q->req[c->last_response].next = r->index;
	c->last_response = r->index;
	c->pushed += r->push;
}

static void
discard(struct nvmf_queue *q, struct nvmf_req *r)
{
	struct nvmf_conn *c = q->user;

	if (!c->ending)
		(void)nvmf_rdma_receive(c, r->capsule);
}

static void
close_queue(struct nvmf_queue *q, const char *why)
{
	/* A queue without requests (depth 0) stands for a worker's queue. */
	if (q->depth == 0)
		nvmf_rdma_close_stub(q->user, why == NULL);
	else
		nvmf_rdma_drop(q->user, why);
}

const struct nvmf_ops nvmf_rdma_ops = {.pull = pull,
				       .respond = respond,
				       .discard = discard,
				       .close = close_queue,
				       .attach = nvmf_rdma_attach};

int
nvmf_rdma_receive(struct nvmf_conn *c, uint32_t index)
{
	const struct nvmf_rdma *r = c->rdma;
	uint32_t data = c->queue->qid == 0 ? 0 : r->target->attr.in_capsule;
	struct bb_sge sge = {(uintptr_t)c->capsules + (size_t)index * r->stride, NVMF_SQE + data,
			     r->mr->lkey};

	c->ring_recv = true;
	nvmf_rdma_list(c);
	return bb_post_recv(c->qp, index, &sge, 1);
}

static void
completed(struct nvmf_conn *c, const struct bb_wc *wc)
{
	struct nvmf_req *req = &c->queue->req[wc->wr_id & WR_REQ];

	if (wc->status != BB_WC_SUCCESS) {
		/* One cause is an invalid key or address in a command of the host. */
		if (wc->status != BB_WC_WR_FLUSH_ERR)
			nvmf_rdma_drop(c, bb_wc_status_name(wc->status));
		return;
	}
	if (wc->opcode == BB_WC_RECV) {
		__atomic_store_n(&c->active, c->active + 1, __ATOMIC_RELAXED);
		nvmf_capsule(c->queue, c->capsules + (size_t)wc->wr_id * c->rdma->stride,
			     wc->byte_len, (uint32_t)wc->wr_id);
		c->rdma->starved |= c->queue->waiting != 0;
	} else if ((wc->wr_id & WR_KIND) == WR_PULL) {
		c->pulls--;
		c->rdma->pulls--;
		nvmf_req_pulled(req, true);
	} else if ((wc->wr_id & WR_KIND) == WR_DONE) {
		sent(c->queue, req);
	}
}

void
nvmf_rdma_wc(struct bb_cq *cq, const struct bb_wc *wc, unsigned int n, void *arg)
{
	struct nvmf_rdma *r = arg;
	unsigned int i;

	(void)cq;
	r->busy = true;
	r->target->ticks = rte_get_tsc_cycles();
	for (i = 0; i < n; i++) {
		struct nvmf_conn *c = wc[i].qp->user;

		if (!c->ending)
			completed(c, &wc[i]);
	}
}
