/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bluebell.h>
#include <rte_cycles.h>

#include "bb_blk.h"
#include "blk_proto.h"

#define BURST 32u
/* Number of polls without a result after which the connection's socket is checked. */
#define LOOK_EVERY 64u
/*
 * After a failed completion, seconds to wait for a message of the connection. The target may have
 * sent the cause.
 */
#define WHY_S 1u
/* Pause between two attempts to connect to a target that has its maximum number of clients. */
#define RETRY_US 200000u

struct pending {
	struct blk_command cmd;
	const void *mem;
	void *user;
	uint16_t next; /* index of the next free entry */
	bool used;
};

struct bb_blk {
	struct bb_ep *ep;
	struct bb_cq *cq;
	struct bb_mr *mr; /* memory region of capsules, the buffers of received completions */
	struct bb_blk_shape shape;
	uint8_t (*capsules)[BLK_COMPLETION];
	struct pending *pending;
	uint32_t used, empty;
	uint32_t regs; /* number of the caller's registrations */
	uint16_t free; /* index of the first free entry of pending; depth if there is none */
	bool ring_recv;
	bool over;
	uint64_t failed;          /* TSC at the first failed completion; 0 if there was none */
	enum bb_wc_status status; /* status of the first failed completion */
	char why[160];
};

const struct bb_blk_shape *
bb_blk_shape(const struct bb_blk *b)
{
	return &b->shape;
}

uint32_t
bb_blk_pending(const struct bb_blk *b)
{
	return b->used;
}

const char *
bb_blk_broken(const struct bb_blk *b)
{
	return b->over ? b->why : NULL;
}

int
bb_blk_reg(struct bb_blk *b, void *mem, size_t len, struct bb_mr **mr)
{
	int rc = bb_mr_reg(b->ep->pd, mem, len,
			   BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_READ,
			   mr);

	b->regs += rc == 0;
	return rc;
}

int
bb_blk_dereg(struct bb_blk *b, struct bb_mr *mr)
{
	int rc = bb_mr_dereg(mr);

	b->regs -= rc == 0;
	return rc;
}

/* ---- Open, close */

static int
make(struct bb_dev *dev, const struct bb_blk_attr *attr, struct bb_blk *b)
{
	uint32_t depth = attr->depth < BB_BLK_MAX_DEPTH ? attr->depth : BB_BLK_MAX_DEPTH, i;
	struct bb_ep_attr ep;
	struct bb_cq_attr cq;
	int rc;

	b->pending = calloc(depth, sizeof(*b->pending));
	b->capsules = calloc(depth, sizeof(*b->capsules));
	if (b->pending == NULL || b->capsules == NULL)
		return -ENOMEM;
	bb_cq_attr_init(&cq);
	cq.depth = 4 * depth + 16;
	rc = bb_cq_create(dev, &cq, &b->cq);
	bb_ep_attr_init(&ep);
	ep.timeout_ms = attr->timeout_ms;
	ep.qp.send_cq = b->cq;
	ep.qp.recv_cq = b->cq;
	/*
	 * Larger than the depth, because the slot of a request is free only after a later CQE has
	 * confirmed the request.
	 */
	ep.qp.sq_depth = 2 * depth + 4;
	ep.qp.rq_depth = depth;
	if (rc == 0)
		rc = bb_ep_create(dev, attr->addr, false, &ep, &b->ep);
	if (rc == 0)
		rc = bb_ep_reg_msgs(b->ep, b->capsules, depth * sizeof(*b->capsules), &b->mr);
	for (i = 0; i < depth && rc == 0; i++)
		rc = bb_ep_post_recv(b->ep, (void *)(uintptr_t)i, b->capsules[i], BLK_COMPLETION,
				     b->mr);
	return rc;
}

static int
greet(struct bb_blk *b, const struct bb_blk_attr *attr)
{
	uint32_t depth = attr->depth < BB_BLK_MAX_DEPTH ? attr->depth : BB_BLK_MAX_DEPTH;
	struct bb_conn_param param;
	const struct bb_cm_event *ev;
	uint8_t hello[BLK_HELLO];
	const char *wrong;
	int rc;

	bb_conn_param_init(&param);
	blk_hello_encode(hello, depth);
	param.private_data = hello;
	param.private_len = sizeof(hello);
	param.access = BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_READ;
	param.timeout_ms = attr->timeout_ms;
	param.ack_timeout = 18; /* 1 s, so that a short pause of the target breaks nothing */
	rc = bb_ep_connect(b->ep, &param);
	ev = &b->ep->event;
	if (rc != 0 && ev->type == BB_CM_REJECTED && ev->private_len > 0)
		snprintf(b->why, sizeof(b->why), "the target refuses: %.*s", (int)ev->private_len,
			 (const char *)ev->private_data);
	if (rc != 0)
		return rc;
	wrong = blk_welcome_decode(ev->private_data, ev->private_len, &b->shape);
	if (wrong == NULL && b->shape.depth > depth)
		wrong = "grants more requests than the client asked for";
	if (wrong == NULL)
		return 0;
	snprintf(b->why, sizeof(b->why), "the peer is no target: its welcome message %s", wrong);
	return -EPROTO;
}

static void
release(struct bb_blk *b)
{
	if (b->ep != NULL && b->ep->conn != NULL && !b->over)
		(void)bb_ep_disconnect(b->ep);
	if (b->mr != NULL)
		(void)bb_mr_dereg(b->mr);
	if (b->ep != NULL)
		(void)bb_ep_destroy(b->ep);
	if (b->cq != NULL)
		(void)bb_cq_destroy(b->cq);
	free(b->capsules);
	free(b->pending);
	free(b);
}

static int
open_once(struct bb_dev *dev, const struct bb_blk_attr *attr, struct bb_blk **out, char *why,
	  size_t len, bool *full)
{
	struct bb_blk *b = calloc(1, sizeof(*b));
	uint16_t i;
	int rc = b == NULL ? -ENOMEM : 0;

	if (rc == 0 && (attr->depth == 0 || attr->addr == NULL || attr->timeout_ms == 0))
		rc = -EINVAL;
	if (rc == 0)
		rc = make(dev, attr, b);
	if (rc == 0)
		rc = greet(b, attr);
	if (rc != 0) {
		*full = b != NULL && strstr(b->why, BLK_FULL) != NULL;
		snprintf(why, len, "%s%s", b != NULL && b->why[0] != '\0' ? b->why : strerror(-rc),
			 rc == -ECONNREFUSED && b->why[0] == '\0'
				 ? "; does storage_target run, with this --listen?"
				 : "");
		if (b != NULL)
			release(b);
		return rc;
	}
	for (i = 0; i < b->shape.depth; i++)
		b->pending[i].next = (uint16_t)(i + 1);
	*out = b;
	return 0;
}

int
bb_blk_open(struct bb_dev *dev, const struct bb_blk_attr *attr, struct bb_blk **out, char *why,
	    size_t len)
{
	const uint64_t end =
		rte_get_tsc_cycles() + rte_get_tsc_hz() / 1000 * (uint64_t)attr->timeout_ms;
	bool full;
	int rc;

	/*
	 * If the target has its maximum number of clients, try again. Another client may leave, or
	 * the target may disconnect one that is idle.
	 */
	for (;;) {
		full = false;
		rc = open_once(dev, attr, out, why, len, &full);
		if (!full || rte_get_tsc_cycles() >= end)
			return rc;
		rte_delay_us_sleep(RETRY_US);
	}
}

int
bb_blk_close(struct bb_blk *b)
{
	if (b->regs != 0)
		return -EBUSY;
	release(b);
	return 0;
}

/* ---- Requests */

static int
check(const struct bb_blk_request *req, struct blk_command *c)
{
	uintptr_t mem = (uintptr_t)req->mem;

	*c = (struct blk_command){.op = (uint8_t)req->op, .flags = req->flags};
	if (req->op == BB_BLK_FLUSH)
		return req->length == 0 && req->offset == 0 && req->flags == 0 ? 0 : -EINVAL;
	if ((req->op != BB_BLK_READ && req->op != BB_BLK_WRITE) || req->length == 0 ||
	    req->mr == NULL || (req->flags & ~(req->op == BB_BLK_WRITE ? BB_BLK_FUA : 0)) != 0)
		return -EINVAL;
	if (mem < (uintptr_t)req->mr->addr || req->length > req->mr->len ||
	    mem - (uintptr_t)req->mr->addr > req->mr->len - req->length)
		return -EINVAL;
	c->length = req->length;
	c->offset = req->offset;
	c->addr = req->mr->iova + (mem - (uintptr_t)req->mr->addr);
	c->rkey = req->mr->rkey;
	return 0;
}

int
bb_blk_submit(struct bb_blk *b, const struct bb_blk_request *req)
{
	uint8_t msg[BLK_COMMAND];
	struct blk_command c;
	struct pending *p;
	int rc = check(req, &c);

	if (rc != 0)
		return rc;
	if (b->over)
		return -ENOTCONN;
	if (b->free == b->shape.depth)
		return -EAGAIN;
	p = &b->pending[b->free];
	c.id = b->free;
	/* The target makes the same check. This one avoids sending a command that would fail. */
	rc = blk_status_errno(blk_command_check(&c, &b->shape));
	if (rc != 0)
		return rc;
	if (c.op == BB_BLK_WRITE)
		c.digest = blk_crc(req->mem, c.length);
	blk_command_encode(msg, &c);
	rc = bb_post_send_inline(b->ep->qp, c.id, msg, sizeof(msg), 0);
	if (rc != 0)
		return rc;
	b->free = p->next;
	b->used++;
	*p = (struct pending){.cmd = c, .mem = req->mem, .user = req->user, .used = true};
	return 0;
}

void
bb_blk_ring(struct bb_blk *b)
{
	bb_qp_ring(b->ep->qp);
}

static void
give(struct bb_blk *b, uint32_t id, int error, struct bb_blk_done *done)
{
	struct pending *p = &b->pending[id];

	done->user = p->user;
	done->error = error;
	p->used = false;
	p->next = b->free;
	b->free = (uint16_t)id;
	b->used--;
}

static void
broke(struct bb_blk *b, const char *why)
{
	if (b->over)
		return;
	b->over = true;
	snprintf(b->why, sizeof(b->why), "%s", why);
}

/*
 * Handles a completion message from the target, which is not trusted. Returns the number of
 * requests that it completes, 0 or 1.
 */
static uint32_t
completed(struct bb_blk *b, const struct bb_wc *wc, struct bb_blk_done *done)
{
	struct bb_sge sge;
	struct blk_completion c;
	struct pending *p;
	char why[96];
	const char *wrong;
	int error;

	wrong = blk_completion_decode(b->capsules[wc->wr_id], wc->byte_len, &c);
	if (wrong == NULL && (c.id >= b->shape.depth || !b->pending[c.id].used))
		wrong = "belongs to no outstanding command";
	p = wrong == NULL ? &b->pending[c.id] : NULL;
	if (wrong == NULL && c.status == BLK_OK && c.length != p->cmd.length)
		wrong = "has a length that is not the command's";
	if (wrong != NULL) {
		snprintf(why, sizeof(why), "a completion of the target %s", wrong);
		broke(b, why);
		return 0;
	}
	sge = (struct bb_sge){(uintptr_t)b->capsules[wc->wr_id], BLK_COMPLETION, b->mr->lkey};
	(void)bb_post_recv(b->ep->qp, wc->wr_id, &sge, 1);
	b->ring_recv = true;
	error = blk_status_errno(c.status);
	if (error == 0 && p->cmd.op == BB_BLK_READ && blk_crc(p->mem, p->cmd.length) != c.digest)
		error = -EBADMSG;
	give(b, c.id, error, done);
	return 1;
}

/*
 * Disconnects if necessary. Returns true if the queue pair is in ERR, so that the target cannot
 * access the caller's memory any more. bb_conn_disconnect() moves the queue pair to ERR at once. So
 * this function does not wait for the target's answer, which may never arrive.
 */
static bool
quiet(struct bb_blk *b)
{
	if (bb_ep_connected(b->ep))
		(void)bb_conn_disconnect(b->ep->conn, NULL, 0);
	return b->ep->qp->state == BB_QP_ERR || !bb_ep_connected(b->ep);
}

static void
look(struct bb_blk *b)
{
	const struct bb_cm_event *ev = &b->ep->event;
	char why[160];

	if (bb_ep_connected(b->ep))
		return;
	if (ev->type == BB_CM_DISCONNECTED && ev->private_len > 0)
		snprintf(why, sizeof(why), "the target has disconnected: %.*s",
			 (int)ev->private_len, (const char *)ev->private_data);
	else
		snprintf(why, sizeof(why), "the target is gone: %s",
			 ev->why != NULL ? ev->why : "the connection broke");
	broke(b, why);
}

static uint32_t
give_up(struct bb_blk *b, struct bb_blk_done *done, uint32_t n)
{
	uint32_t i, took = 0;

	if (b->used == 0 || !quiet(b))
		return 0;
	for (i = 0; i < b->shape.depth && took < n; i++)
		if (b->pending[i].used)
			give(b, i, -ECONNRESET, &done[took++]);
	return took;
}

uint32_t
bb_blk_poll(struct bb_blk *b, struct bb_blk_done *done, uint32_t n)
{
	struct bb_wc wc[BURST];
	uint32_t i, got, took = 0;

	if (b->over)
		return give_up(b, done, n);
	got = bb_cq_poll(b->cq, wc, n < BURST ? n : BURST);
	for (i = 0; i < got && !b->over; i++) {
		if (wc[i].status == BB_WC_SUCCESS) {
			took += completed(b, &wc[i], &done[took]);
		} else if (b->failed == 0) {
			b->failed = rte_get_tsc_cycles();
			b->status = wc[i].status;
		}
	}
	if (b->ring_recv)
		bb_qp_ring_recv(b->ep->qp);
	b->ring_recv = false;
	b->empty = got == 0 ? b->empty + 1 : 0;
	if (b->empty % LOOK_EVERY == LOOK_EVERY - 1)
		look(b);
	/* If the target's access was rejected, the connection reports no event. */
	if (b->failed != 0 && rte_get_tsc_cycles() - b->failed > WHY_S * rte_get_tsc_hz())
		broke(b,
		      b->status != BB_WC_WR_FLUSH_ERR
			      ? bb_wc_status_name(b->status)
			      : "the queue pair is in error: the target used a key or address that it has "
				"no right to, or died");
	return took;
}
