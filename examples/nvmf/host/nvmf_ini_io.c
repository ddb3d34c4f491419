/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Requests, from submission to the response of the target. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "nvmf_ini_list.h"

#define CHECK_MS   50u /* ms between two checks of the time limits of requests */
#define ID_BITS    8u  /* low bits of a command id: the slot; the others: its generation */
#define MAX_BLOCKS 65536u

static_assert(BB_NVMF_MAX_DEPTH <= 1u << ID_BITS, "the index must fit into the id of a command");

/* ---- Commands */

static const struct {
	uint8_t opcode;
	/* data: the target accesses the caller's memory; write: it writes the memory */
	bool data, write;
} ops[] = {
	[BB_NVMF_READ] = {NVM_READ, true, true},
	[BB_NVMF_WRITE] = {NVM_WRITE, true, false},
	[BB_NVMF_FLUSH] = {NVM_FLUSH, false, false},
	[BB_NVMF_COMPARE] = {NVM_COMPARE, true, false},
	[BB_NVMF_ZEROES] = {NVM_WRITE_ZEROES, false, false},
	[BB_NVMF_DISCARD] = {NVM_DSM, false, false},
};

static void
put_sgl(uint8_t *cmd, uint64_t addr, uint32_t len, uint32_t key, uint8_t type)
{
	put64(cmd + AT_SGL + AT_SGL_ADDR, addr);
	put32(cmd + AT_SGL + AT_SGL_LEN, len);
	put32(cmd + AT_SGL + AT_SGL_KEY, key);
	cmd[AT_SGL + AT_SGL_TYPE] = type;
}

static void
put_discard(struct nvmf_ini *e, uint16_t i, uint8_t *cmd)
{
	const struct bb_nvmf_request *req = &e->slot[i].req;
	size_t at = INI_PAGE + (size_t)i * INI_RANGE;

	memset(e->attr.shared + at, 0, INI_RANGE);
	put32(e->attr.shared + at + 4, req->length >> e->shift);
	put64(e->attr.shared + at + 8, req->offset >> e->shift);
	put_sgl(cmd, e->attr.shared_addr + at, INI_RANGE, e->attr.shared_key, SGL_KEYED);
	put32(cmd + AT_CDW11, DSM_AD); /* CDW10 stays 0: one range */
}

static int
put_data(struct nvmf_ini *e, uint16_t i, uint8_t *cmd)
{
	struct nvmf_ini_slot *s = &e->slot[i];
	int rc = 0;

	s->key = s->rkey;
	if (e->attr.nvmf.windows)
		rc = e->attr.ops->grant(e, i, &s->req, ops[s->req.op].write, &s->key);
	put_sgl(cmd, s->addr, s->req.length, s->key,
		e->attr.nvmf.windows ? SGL_KEYED_INV : SGL_KEYED);
	return rc;
}

static void
send(struct nvmf_ini *e, uint16_t i)
{
	struct nvmf_ini_slot *s = &e->slot[i];
	uint8_t cmd[NVMF_SQE] = {0};
	int rc = 0;

	cmd[AT_OPCODE] = ops[s->req.op].opcode;
	cmd[AT_FLAGS] = PSDT_SGL;
	cmd[AT_SGL + AT_SGL_TYPE] = SGL_KEYED;
	put32(cmd + AT_NSID, e->attr.nvmf.nsid);
	s->generation++;
	put16(cmd + AT_CID, (uint32_t)s->generation << ID_BITS | i);
	if (s->req.op == BB_NVMF_DISCARD) {
		put_discard(e, i, cmd);
	} else if (s->req.op != BB_NVMF_FLUSH) {
		put64(cmd + AT_SLBA, s->req.offset >> e->shift);
		put16(cmd + AT_NLB, (s->req.length >> e->shift) - 1);
		if ((s->req.flags & BB_NVMF_FUA) != 0)
			put32(cmd + AT_CDW12, get32(cmd + AT_CDW12) | CDW12_FUA);
	}
	if (ops[s->req.op].data)
		rc = put_data(e, i, cmd);
	s->state = INI_SENT;
	s->time = e->now;
	e->sent++;
	if (rc == 0)
		rc = e->attr.ops->send(e, 1, cmd);
	if (rc != 0)
		nvmf_ini_lose(e, INI_BROKEN, rc, "a command cannot be sent: %s", strerror(-rc));
}

/* Sends queued requests as far as the target permits. */
static void
send_queued(struct nvmf_ini *e)
{
	while (e->step == INI_LIVE && e->sent < e->window && !empty(e, &e->queued))
		send(e, pop(e, &e->queued));
}

void
nvmf_ini_io_start(struct nvmf_ini *e)
{
	e->checked = e->now;
	send_queued(e);
}

/* ---- Submission of requests */

static int
check(const struct nvmf_ini *e, const struct bb_nvmf_request *req)
{
	const struct bb_nvmf_shape *s = &e->shape;
	uint32_t fua =
		req->op == BB_NVMF_READ || req->op == BB_NVMF_WRITE || req->op == BB_NVMF_ZEROES
			? BB_NVMF_FUA
			: 0;

	if ((uint32_t)req->op > BB_NVMF_DISCARD || (req->flags & ~(fua | BB_NVMF_NO_RETRY)) != 0)
		return -EINVAL;
	if (req->op == BB_NVMF_FLUSH)
		return req->length == 0 && req->offset == 0 ? 0 : -EINVAL;
	if (req->length == 0 || ((req->length | req->offset) & (s->block - 1)) != 0 ||
	    (ops[req->op].data && req->length > s->max_io) || req->length >> e->shift > MAX_BLOCKS)
		return -EINVAL;
	if (req->length > s->capacity || req->offset > s->capacity - req->length)
		return -ERANGE;
	if (s->read_only && req->op != BB_NVMF_READ && req->op != BB_NVMF_COMPARE)
		return -EROFS;
	if ((req->op == BB_NVMF_COMPARE && !s->compare) ||
	    (req->op == BB_NVMF_ZEROES && !s->zeroes) ||
	    (req->op == BB_NVMF_DISCARD && !s->discard))
		return -EOPNOTSUPP;
	return 0;
}

int
nvmf_ini_submit(struct nvmf_ini *e, const struct bb_nvmf_request *req, uint64_t addr, uint32_t rkey)
{
	int rc = check(e, req);
	uint16_t i;

	if (rc != 0)
		return rc;
	if (e->step == INI_OVER || !e->was_live)
		return -ENOTCONN;
	if (e->used == e->shape.depth)
		return -EAGAIN;
	if (e->step != INI_LIVE && (req->flags & BB_NVMF_NO_RETRY) != 0)
		return -EAGAIN;
	i = pop(e, &e->free);
	e->used++;
	e->slot[i].req = *req;
	e->slot[i].addr = addr;
	e->slot[i].rkey = rkey;
	push(e, &e->queued, i, INI_QUEUED);
	send_queued(e);
	return 0;
}

/* ---- Responses of the target */

void
nvmf_ini_io_response(struct nvmf_ini *e, uint16_t cid, uint32_t status,
		     const struct nvmf_ini_response *r)
{
	uint16_t i = cid & ((1u << ID_BITS) - 1);
	struct nvmf_ini_slot *s = &e->slot[i];
	bool granted;
	int rc;

	if (i >= e->depth || s->state != INI_SENT || s->generation != cid >> ID_BITS) {
		nvmf_ini_lose(e, INI_FATAL, -EPROTO,
			      "a response of the target is for no outstanding command");
		return;
	}
	granted = e->attr.nvmf.windows && ops[s->req.op].data;
	if (r->invalidated && (!granted || r->key != s->key)) {
		nvmf_ini_lose(e, INI_FATAL, -EPROTO,
			      "the target has invalidated a key without request");
		return;
	}
	e->losing = false;
	s->error = nvmf_ini_status_errno(status);
	if (!granted || r->invalidated) {
		e->sent--;
		finish(e, i, s->error);
		send_queued(e);
		return;
	}
	s->state = INI_REVOKING;
	rc = e->attr.ops->revoke(e, i, s->key);
	if (rc != 0)
		nvmf_ini_lose(e, INI_BROKEN, rc, "a key cannot be invalidated: %s", strerror(-rc));
}

void
nvmf_ini_revoked(struct nvmf_ini *e, uint16_t index)
{
	struct nvmf_ini_slot *s = &e->slot[index];

	if (s->state != INI_REVOKING)
		return;
	e->sent--;
	finish(e, index, s->error);
	send_queued(e);
}

/* ---- Time limits */

void
nvmf_ini_io_time(struct nvmf_ini *e)
{
	uint16_t i;

	if (e->sent == 0 || e->now - e->checked < CHECK_MS)
		return;
	e->checked = e->now;
	for (i = 0; i < e->depth; i++) {
		const struct nvmf_ini_slot *s = &e->slot[i];

		if ((s->state != INI_SENT && s->state != INI_REVOKING) ||
		    e->now - s->time < e->attr.nvmf.timeout_ms)
			continue;
		nvmf_ini_lose(e, INI_BROKEN, -ETIMEDOUT,
			      "the target has not answered a request for %u ms",
			      e->attr.nvmf.timeout_ms);
		return;
	}
}
