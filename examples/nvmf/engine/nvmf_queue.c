/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Queues and requests: from the capsule to the response. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nvmf_priv.h"

#define CIDS 65536u

int
nvmf_queue_create(struct nvmf_target *t, uint16_t qid, uint32_t depth, void *mem, void *user,
		  struct nvmf_queue **out)
{
	uint32_t i, max = qid == 0 ? NVMF_MAX_DEPTH : t->attr.io_depth;
	struct nvmf_queue *q;

	if (qid > t->attr.io_queues || depth < 2 || depth > max)
		return -EINVAL;
	q = calloc(1, sizeof(*q));
	if (q == NULL)
		return -ENOMEM;
	q->t = t;
	q->qid = qid;
	q->depth = depth;
	q->user = user;
	q->req = calloc(depth, sizeof(*q->req));
	q->ring = calloc(depth, sizeof(*q->ring));
	q->cids = calloc(CIDS / 64, sizeof(*q->cids));
	if (q->req == NULL || q->ring == NULL || q->cids == NULL) {
		q->closed = true;
		nvmf_queue_destroy(q);
		return -ENOMEM;
	}
	for (i = 0; i < depth; i++) {
		q->req[i].q = q;
		q->req[i].index = i;
		q->req[i].mem = (uint8_t *)mem + (size_t)i * t->attr.max_io;
		q->req[i].next = i + 1;
	}
	*out = q;
	return 0;
}

void
nvmf_queue_close(struct nvmf_queue *q)
{
	struct nvmf_ctrl *c = q->ctrl;
	uint32_t i;

	if (q->closed)
		return;
	q->closed = true;
	q->ctrl = NULL;
	/* All other requests use no namespace, or release it in nvmf_req_done(). */
	for (i = 0; i < q->depth; i++)
		if (q->req[i].state == REQ_PULLING)
			nvmf_req_ns(&q->req[i], NULL);
	nvmf_ctrl_unhold_idle(q);
	if (c == NULL)
		return;
	c->queue[q->qid] = NULL;
	if (c->proxy)
		free(c);
	else if (q->qid == 0)
		nvmf_ctrl_end(c);
}

int
nvmf_stub_create(struct nvmf_target *t, uint16_t qid, void *user, struct nvmf_queue **out)
{
	struct nvmf_queue *q = calloc(1, sizeof(*q));

	if (q == NULL)
		return -ENOMEM;
	q->t = t;
	q->qid = qid;
	q->user = user;
	*out = q;
	return 0;
}

void
nvmf_queue_alive(struct nvmf_queue *q)
{
	if (q->ctrl != NULL)
		nvmf_ctrl_alive(q->ctrl);
}

bool
nvmf_queue_idle(const struct nvmf_queue *q)
{
	return q->in_ns == 0;
}

void
nvmf_queue_destroy(struct nvmf_queue *q)
{
	nvmf_ctrl_unhold(q);
	free(q->req);
	free(q->ring);
	free(q->cids);
	free(q);
}

/* ---- Capsules */

/*
 * Decodes the SGL descriptor of a command. Returns SC_OK or the status of the error. Every command
 * has one: a command without data has a descriptor of 0 bytes.
 */
static uint32_t
decode_sgl(struct nvmf_req *r, const struct nvmf_capsule *cap)
{
	const uint8_t *sgl = r->cmd + AT_SGL;
	uint32_t room = cap->len - NVMF_SQE;
	uint64_t off = get64(sgl + AT_SGL_ADDR);

	switch (sgl[AT_SGL_TYPE]) {
	case SGL_KEYED:
	case SGL_KEYED_INV:
		r->addr = off;
		r->len = get32(sgl + AT_SGL_LEN) & 0xffffff;
		r->key = get32(sgl + AT_SGL_KEY);
		r->invalidate = sgl[AT_SGL_TYPE] == SGL_KEYED_INV && r->len != 0;
		return SC_OK;
	case SGL_IN_CAPSULE:
		r->len = get32(sgl + AT_SGL_LEN);
		r->in_capsule = true;
		if (r->q->qid == 0 && r->len != 0)
			return SC_SGL_TYPE;
		if (r->len > room || off > room - r->len)
			return SC_SGL_OFFSET;
		r->data = cap->bytes + NVMF_SQE + off;
		return SC_OK;
	default:
		return SC_SGL_TYPE;
	}
}

/* Returns whether the command may use data in the capsule: only those that send data may. */
static bool
may_be_in_capsule(const struct nvmf_req *r)
{
	uint8_t op = r->cmd[AT_OPCODE] == OPC_FABRICS ? r->cmd[AT_FCTYPE] : r->cmd[AT_OPCODE];

	return r->len == 0 || (op & 3) == 1;
}

static void
dispatch(struct nvmf_req *r)
{
	struct nvmf_queue *q = r->q;

	if (r->cmd[AT_OPCODE] == OPC_FABRICS)
		nvmf_fabrics(r);
	else if (q->ctrl == NULL || (q->ctrl->csts & (CSTS_RDY | CSTS_CFS)) != CSTS_RDY)
		nvmf_refuse(r, SC_COMMAND_SEQUENCE);
	else if (q->qid == 0)
		nvmf_admin(r);
	else
		nvmf_nvm(r);
}

/* Takes a free request for a capsule, and starts the command. */
static void
begin(struct nvmf_queue *q, const struct nvmf_capsule *cap)
{
	struct nvmf_req *r = &q->req[q->free];
	uint32_t status;
	uint64_t bit;

	q->free = r->next;
	memcpy(r->cmd, cap->bytes, NVMF_SQE);
	r->cid = get16(r->cmd + AT_CID);
	r->capsule = cap->index;
	r->invalidate = r->in_capsule = false;
	r->len = r->push = r->step = r->part = 0;
	r->key = 0;
	r->addr = 0;
	r->began = q->t->ticks;
	r->data = r->mem;
	q->sqhd = q->sqhd + 1 < q->size ? q->sqhd + 1 : 0;
	q->stats.commands++;
	if (q->ctrl != NULL)
		nvmf_ctrl_alive(q->ctrl);
	bit = 1ull << (r->cid & 63);
	if ((q->cids[r->cid / 64] & bit) != 0) {
		nvmf_refuse(r, SC_CID_CONFLICT);
		return;
	}
	q->cids[r->cid / 64] |= bit;
	status = decode_sgl(r, cap);
	if ((r->cmd[AT_FLAGS] & FLAG_FUSED) != 0 || (r->cmd[AT_FLAGS] & FLAG_PSDT) != PSDT_SGL)
		nvmf_refuse(r, SC_INVALID_FIELD);
	else if (status != SC_OK)
		nvmf_refuse(r, status);
	else if (r->in_capsule && !may_be_in_capsule(r))
		nvmf_refuse(r, SC_SGL_TYPE);
	else
		dispatch(r);
}

void
nvmf_capsule(struct nvmf_queue *q, const void *bytes, uint32_t len, uint32_t index)
{
	struct nvmf_capsule cap = {bytes, len, index};

	if (q->closed)
		return;
	if (len < NVMF_SQE || len - NVMF_SQE > (q->qid == 0 ? 0 : q->t->attr.in_capsule)) {
		q->t->attr.ops->close(q,
				      "a capsule is shorter than a command, or longer than agreed");
		return;
	}
	if (q->free < q->depth) {
		begin(q, &cap);
	} else if (q->waiting < q->depth) {
		uint32_t at = q->first + q->waiting++;

		q->ring[at < q->depth ? at : at - q->depth] = cap;
	} else {
		q->t->attr.ops->close(q,
				      "the host has sent more commands than the queue has entries");
	}
}

void
nvmf_req_sent(struct nvmf_req *r)
{
	struct nvmf_queue *q = r->q;

	nvmf_req_release(r);
	/* A loop, because a command that disables the controller frees several requests. */
	while (!q->closed && q->waiting != 0 && q->free < q->depth) {
		struct nvmf_capsule cap = q->ring[q->first];

		q->first = q->first + 1 < q->depth ? q->first + 1 : 0;
		q->waiting--;
		begin(q, &cap);
	}
}
