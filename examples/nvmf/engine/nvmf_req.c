/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Steps of a request that all commands share: data of the host, the namespace, the response. */
#include <errno.h>

#include "nvmf_priv.h"

/* ---- End of a request */

/* Adds a command that failed to the error log of its controller. */
static void
log_error(struct nvmf_ctrl *c, const struct nvmf_req *r, uint32_t status)
{
	struct nvmf_error *e = &c->error[c->errors++ % NVMF_ERRORS];
	bool nvm = r->q->qid != 0 && r->cmd[AT_OPCODE] != OPC_FABRICS;

	e->count = c->errors;
	e->sqid = r->q->qid;
	e->cid = r->cid;
	e->status = (uint16_t)(status << 1);
	e->nsid = r->cmd[AT_OPCODE] == OPC_FABRICS ? 0 : get32(r->cmd + AT_NSID);
	e->lba = nvm && r->cmd[AT_OPCODE] != NVM_FLUSH && r->cmd[AT_OPCODE] != NVM_DSM
			 ? get64(r->cmd + AT_SLBA)
			 : 0;
}

/* Counts a command that failed. */
static void
count_status(struct nvmf_target *t, uint32_t code)
{
	uint32_t i;

	for (i = 0; i < NVMF_STATUSES; i++) {
		if (t->status[i].count != 0 && t->status[i].status != code)
			continue;
		t->status[i].status = code;
		t->status[i].count++;
		return;
	}
}

static void
count_latency(struct nvmf_stats *s, uint64_t ticks)
{
	uint32_t class = 63 - (uint32_t)__builtin_clzll(ticks >> 8 | 1);

	s->latency[class < NVMF_LATENCIES ? class : NVMF_LATENCIES - 1]++;
}

void
nvmf_req_ns(struct nvmf_req *r, struct nvmf_ns *ns)
{
	/*
	 * The thread that closes a removed namespace reads refs. Release order: it must see 0 only
	 * after all uses.
	 */
	if (r->ns != NULL)
		__atomic_store_n(&r->ns->refs, r->ns->refs - 1, __ATOMIC_RELEASE);
	if (ns != NULL)
		COUNT(ns->refs, 1);
	r->ns = ns;
}

void
nvmf_end(struct nvmf_req *r, uint32_t status, uint64_t result)
{
	struct nvmf_queue *q = r->q;
	uint32_t code = status & ~(uint32_t)SC_DNR;

	nvmf_req_ns(r, NULL);
	if (q->closed)
		return;
	if (code != SC_OK) {
		q->stats.errors++;
		count_status(q->t, code);
		if (q->ctrl != NULL)
			log_error(q->ctrl, r, status);
	}
	/*
	 * An Asynchronous Event Request waits for an event, so its time is no latency of the
	 * target.
	 */
	if (r->state != REQ_WAITING)
		count_latency(&q->stats, q->t->ticks - r->began);
	put64(r->cqe + AT_CQE_RESULT, result);
	put16(r->cqe + AT_CQE_SQHD, q->no_flow ? 0xffff : q->sqhd);
	put16(r->cqe + AT_CQE_SQID, q->qid);
	put16(r->cqe + AT_CQE_CID, r->cid);
	put16(r->cqe + AT_CQE_STATUS, status << 1);
	/* After a conflict of ids, the id still belongs to the earlier command. */
	if (code != SC_CID_CONFLICT)
		q->cids[r->cid / 64] &= ~(1ull << (r->cid & 63));
	r->state = REQ_SENDING;
	q->t->attr.ops->respond(q, r);
}

void
nvmf_refuse(struct nvmf_req *r, uint32_t status)
{
	nvmf_end(r, status | SC_DNR, 0);
}

bool
nvmf_exact(struct nvmf_req *r, uint32_t want)
{
	if (r->len == want)
		return true;
	nvmf_refuse(r, SC_SGL_LENGTH);
	return false;
}

/* ---- Data of the host */

void
nvmf_pull(struct nvmf_req *r, uint32_t want, void (*next)(struct nvmf_req *r))
{
	uint32_t from = r->step;

	if (r->in_capsule) {
		next(r);
		return;
	}
	r->data = r->mem;
	r->pulled = next;
	r->state = REQ_PULLING;
	r->q->t->attr.ops->pull(r->q, r, r->mem, from, want);
}

void
nvmf_req_pulled(struct nvmf_req *r, bool ok)
{
	if (r->q->closed)
		return;
	if (r->q->ended)
		nvmf_refuse(r, SC_COMMAND_SEQUENCE);
	else if (ok)
		r->pulled(r);
	else
		nvmf_end(r, SC_DATA_TRANSFER, 0);
}

/* ---- Requests to a namespace */

void
nvmf_start(struct nvmf_req *r, const struct nvmf_io *io, void (*next)(struct nvmf_req *, int))
{
	int rc;

	if (r->ns->removed) {
		nvmf_refuse(r, SC_INVALID_NAMESPACE);
		return;
	}
	r->state = REQ_IO;
	r->done = next;
	r->q->in_ns++;
	rc = r->ns->ops->start(r->ns, r, io);
	if (rc == -EINPROGRESS)
		return;
	r->q->in_ns--;
	r->res = rc;
	r->again = true;
	if (r->looping)
		return;
	/*
	 * A loop instead of recursion: @next may call nvmf_start() for the next part of the
	 * command.
	 */
	r->looping = true;
	while (r->again) {
		r->again = false;
		r->done(r, r->res);
	}
	r->looping = false;
}

void
nvmf_req_done(struct nvmf_req *r, int res)
{
	struct nvmf_queue *q = r->q;

	q->in_ns--;
	if (q->closed)
		nvmf_req_ns(r, NULL);
	else
		r->done(r, res);
	nvmf_ctrl_unhold_idle(q);
}

void
nvmf_req_release(struct nvmf_req *r)
{
	r->state = REQ_FREE;
	r->next = r->q->free;
	r->q->free = r->index;
}

void
nvmf_req_discard(struct nvmf_req *r)
{
	r->q->cids[r->cid / 64] &= ~(1ull << (r->cid & 63));
	r->q->t->attr.ops->discard(r->q, r);
	nvmf_req_release(r);
}
