/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nvmf_host.h"

static struct nvmf_host *host; /* of the ops: one at a time */

static void
must(bool ok)
{
	if (!ok)
		abort();
}

static void
pull(struct nvmf_queue *q, struct nvmf_req *r, void *to, uint32_t offset, uint32_t len)
{
	/* The engine writes only into the memory of the request. */
	must(r->q == q && (uint8_t *)to >= r->mem && len <= MAX_IO);
	must((uint8_t *)to + len <= r->mem + MAX_IO && len <= r->len && offset <= r->len - len);
	must(host->events < 256);
	host->event[host->events++] = (struct nvmf_host_event){r, false, to, offset, len};
}

static void
respond(struct nvmf_queue *q, struct nvmf_req *r)
{
	must(r->q == q && r->state == REQ_SENDING && r->push <= MAX_IO && r->push <= r->len);
	must(host->events < 256);
	host->event[host->events++] = (struct nvmf_host_event){r, true, NULL, 0, 0};
}

static void
discard(struct nvmf_queue *q, struct nvmf_req *r)
{
	must(r->q == q && r->state == REQ_WAITING);
	host->discarded++;
}

static void
on_close(struct nvmf_queue *q, const char *why)
{
	must(q->user == host && (why == NULL || why[0] != '\0'));
	host->closes++;
	host->closes_told += why != NULL;
}

static void
attach(struct nvmf_queue *q, struct nvmf_req *r)
{
	must(r->q == q && r->state == REQ_ATTACHING && host->attaching == NULL);
	host->attaching = r;
}

static const struct nvmf_ops ops = {
	.pull = pull, .respond = respond, .discard = discard, .close = on_close, .attach = attach};

static int
execute(struct nvmf_host *h, const struct nvmf_io *io)
{
	must(io->op == NVMF_IO_FLUSH ||
	     (io->len <= sizeof(h->storage) && io->offset <= sizeof(h->storage) - io->len));
	h->ops[io->op]++;
	h->fuas += io->fua;
	h->buf = io->buf;
	if (h->fail != 0)
		return h->fail;
	if (io->op == NVMF_IO_READ)
		memcpy(io->buf, h->storage + io->offset, io->len);
	else if (io->op == NVMF_IO_WRITE)
		memcpy(h->storage + io->offset, io->buf, io->len);
	else if (io->op != NVMF_IO_FLUSH)
		memset(h->storage + io->offset, 0, io->len);
	return 0;
}

static int
slow_start(struct nvmf_ns *ns, struct nvmf_req *r, const struct nvmf_io *io)
{
	struct nvmf_host *h = ns->ctx;

	if (!h->hold)
		return execute(h, io);
	must(h->nheld < 64);
	h->held[h->nheld].r = r;
	h->held[h->nheld++].io = *io;
	return -EINPROGRESS;
}

static const struct nvmf_ns_ops slow_ops = {.start = slow_start};

void
nvmf_host_finish(struct nvmf_host *h, int res)
{
	uint32_t i, n = h->nheld;

	h->nheld = 0;
	h->hold = false;
	for (i = 0; i < n; i++) {
		struct nvmf_req *r = h->held[i].r;

		nvmf_req_done(r, res != 0 || r->q->closed ? res : execute(h, &h->held[i].io));
	}
}

void
nvmf_host_open(struct nvmf_host *h)
{
	static const char *const hosts[] = {HOST_OTHER "2", HOST_NQN};
	static const struct nvmf_port ports[] = {{"192.0.2.1", "4420", 1},
						 {"2001:db8::1", "4421", 2}};
	struct nvmf_target_attr attr = {
		.subsys = h->subsys,
		.nsubsys = 2,
		.max_io = MAX_IO,
		.in_capsule = IN_CAPSULE,
		.io_queues = IO_QUEUES,
		.io_depth = IO_DEPTH,
		.ctrls = 4,
		.ports = ports,
		.nports = 2,
		.ops = &ops,
	};
	uint32_t i;

	memset(h, 0, sizeof(*h));
	host = h;
	h->subsys[0] = (struct nvmf_subsys){
		.nqn = SUBSYS_OPEN, .serial = "S1", .any_host = true, .ns = h->ns, .max_ns = 5};
	h->subsys[1] = (struct nvmf_subsys){
		.nqn = SUBSYS_OWN, .serial = "S2", .hosts = hosts, .nhosts = 2};
	nvmf_ns_memory(&h->disk, h->storage, sizeof(h->storage), 9);
	nvmf_ns_null(&h->nothing, 1 << 20, 12);
	h->nothing.read_only = true;
	nvmf_ns_memory(&h->slow, h, sizeof(h->storage), 9);
	h->slow.ops = &slow_ops;
	must(nvmf_ns_add(&h->subsys[0], 1, &h->disk) == 0);
	must(nvmf_ns_add(&h->subsys[0], 2, &h->nothing) == 0);
	must(nvmf_ns_add(&h->subsys[0], 4, &h->slow) == 0);
	for (i = 0; i < sizeof(h->storage); i++)
		h->storage[i] = (uint8_t)(i * 7 + i / 512);
	for (i = 0; i < HOST_MEM; i++)
		h->mem[i] = (uint8_t)(i * 13 + i / 256);
	must(nvmf_target_create(&attr, &h->t) == 0);
}

void
nvmf_host_close(struct nvmf_host *h)
{
	nvmf_target_destroy(h->t);
}

struct nvmf_queue *
nvmf_host_queue(struct nvmf_host *h, uint16_t qid, uint32_t depth)
{
	struct nvmf_queue *q;
	void *mem = malloc((size_t)depth * MAX_IO);

	must(mem != NULL);
	memset(mem, 0xee, (size_t)depth * MAX_IO);
	must(nvmf_queue_create(h->t, qid, depth, mem, h, &q) == 0);
	return q;
}

void
nvmf_host_drop(struct nvmf_host *h, struct nvmf_queue *q)
{
	void *mem = q->req[0].mem;
	uint32_t i;

	for (i = 0; i < h->events; i++)
		if (h->event[i].r != NULL && h->event[i].r->q == q)
			h->event[i].r = NULL;
	nvmf_queue_close(q);
	while (nvmf_target_turn(h->t) != 0)
		;
	if (!nvmf_queue_idle(q))
		nvmf_host_finish(h, 0);
	must(nvmf_queue_idle(q));
	nvmf_queue_destroy(q);
	free(mem);
}

static void
deliver(struct nvmf_host *h, struct nvmf_req *r)
{
	struct nvmf_host_response *to = &h->response[h->responses++ % RESPONSES];
	uint64_t at = r->addr - HOST_ADDR;

	if (r->push != 0 && r->key == HOST_KEY && r->push <= HOST_MEM && at <= HOST_MEM - r->push)
		memcpy(h->mem + at, r->data, r->push);
	to->q = r->q;
	memcpy(to->cqe, r->cqe, NVMF_CQE);
	to->capsule = r->capsule;
	to->key = r->key;
	to->invalidate = r->invalidate;
}

void
nvmf_host_run(struct nvmf_host *h)
{
	uint32_t i;

	while (!h->hold_turns && nvmf_target_turn(h->t) != 0)
		;
	for (i = 0; i < h->events; i++) {
		struct nvmf_host_event e = h->event[i];
		uint64_t at;

		if (e.r == NULL)
			continue;
		if (e.respond) {
			deliver(h, e.r);
			if (!h->hold_sent)
				nvmf_req_sent(e.r);
			continue;
		}
		at = e.r->addr - HOST_ADDR + e.offset;
		if (h->fail_pull || e.r->key != HOST_KEY || at > HOST_MEM - e.len) {
			nvmf_req_pulled(e.r, false);
			continue;
		}
		memcpy(e.to, h->mem + at, e.len);
		nvmf_req_pulled(e.r, true);
	}
	h->events = 0;
}

void
nvmf_host_cmd(struct nvmf_host *h, uint8_t *cmd, uint8_t op, uint32_t nsid, uint32_t len)
{
	memset(cmd, 0, NVMF_SQE);
	cmd[AT_OPCODE] = op;
	cmd[AT_FLAGS] = PSDT_SGL;
	put16(cmd + AT_CID, h->cid++);
	put32(cmd + AT_NSID, nsid);
	put64(cmd + AT_SGL, HOST_ADDR);
	put32(cmd + AT_SGL + AT_SGL_LEN, len);
	put32(cmd + AT_SGL + AT_SGL_KEY, HOST_KEY);
	cmd[AT_SGL + AT_SGL_TYPE] = SGL_KEYED;
}

void
nvmf_host_rw(struct nvmf_host *h, uint8_t *cmd, uint8_t op, uint32_t nsid, uint64_t slba,
	     uint32_t n, uint32_t len)
{
	nvmf_host_cmd(h, cmd, op, nsid, len);
	put64(cmd + AT_SLBA, slba);
	put16(cmd + AT_NLB, n - 1);
}

void
nvmf_host_in_capsule(uint8_t *cmd, uint64_t offset, uint32_t len)
{
	memset(cmd + AT_SGL, 0, 16);
	put64(cmd + AT_SGL + AT_SGL_ADDR, offset);
	put32(cmd + AT_SGL + AT_SGL_LEN, len);
	cmd[AT_SGL + AT_SGL_TYPE] = SGL_IN_CAPSULE;
}

void
nvmf_host_send(struct nvmf_host *h, struct nvmf_queue *q, const uint8_t *cmd, const void *data,
	       uint32_t len)
{
	uint32_t i = h->next_capsule++ % 64;

	memcpy(h->capsule[i], cmd, NVMF_SQE);
	if (len != 0)
		memcpy(h->capsule[i] + NVMF_SQE, data, len);
	nvmf_capsule(q, h->capsule[i], NVMF_SQE + len, i);
}

uint32_t
nvmf_host_status(const struct nvmf_host *h, uint32_t i)
{
	return get16(h->response[i % RESPONSES].cqe + AT_CQE_STATUS) >> 1;
}

uint32_t
nvmf_host_exec(struct nvmf_host *h, struct nvmf_queue *q, const uint8_t *cmd)
{
	uint32_t before = h->responses;

	nvmf_host_send(h, q, cmd, NULL, 0);
	nvmf_host_run(h);
	if (h->responses != before + 1)
		return UINT32_MAX;
	h->result = get64(h->response[before % RESPONSES].cqe);
	return nvmf_host_status(h, before);
}

void
nvmf_host_connect_cmd(struct nvmf_host *h, uint8_t *cmd, const char *subnqn, uint16_t qid,
		      uint16_t cntlid, uint32_t depth)
{
	nvmf_host_cmd(h, cmd, OPC_FABRICS, FC_CONNECT, NVMF_CONNECT_DATA);
	put16(cmd + AT_CON_QID, qid);
	put16(cmd + AT_CON_SQSIZE, depth - 1);
	memset(h->mem, 0, NVMF_CONNECT_DATA);
	memset(h->mem + AT_COND_HOSTID, 0xa5, 16);
	put16(h->mem + AT_COND_CNTLID, cntlid);
	strcpy((char *)h->mem + AT_COND_SUBNQN, subnqn);
	strcpy((char *)h->mem + AT_COND_HOSTNQN, HOST_NQN);
}

uint32_t
nvmf_host_property(struct nvmf_host *h, struct nvmf_queue *q, uint32_t offset, uint8_t attrib)
{
	uint8_t cmd[NVMF_SQE];

	nvmf_host_cmd(h, cmd, OPC_FABRICS, FC_PROPERTY_GET, 0);
	cmd[AT_PROP_ATTRIB] = attrib;
	put32(cmd + AT_PROP_OFFSET, offset);
	return nvmf_host_exec(h, q, cmd);
}

uint32_t
nvmf_host_set_cc(struct nvmf_host *h, struct nvmf_queue *q, uint32_t cc)
{
	uint8_t cmd[NVMF_SQE];

	nvmf_host_cmd(h, cmd, OPC_FABRICS, FC_PROPERTY_SET, 0);
	put32(cmd + AT_PROP_OFFSET, PROP_CC);
	put64(cmd + AT_PROP_VALUE, cc);
	return nvmf_host_exec(h, q, cmd);
}

struct nvmf_queue *
nvmf_host_admin(struct nvmf_host *h, const char *subnqn)
{
	struct nvmf_queue *q = nvmf_host_queue(h, 0, NVMF_ADMIN_DEPTH);
	uint8_t cmd[NVMF_SQE];

	nvmf_host_connect_cmd(h, cmd, subnqn, 0, NVMF_CNTLID_ANY, NVMF_ADMIN_DEPTH);
	must(nvmf_host_exec(h, q, cmd) == SC_OK);
	must(nvmf_host_set_cc(h, q, CC_ENTRIES_NVM | CC_EN) == SC_OK);
	return q;
}

struct nvmf_queue *
nvmf_host_io(struct nvmf_host *h, struct nvmf_queue *admin, uint16_t qid)
{
	struct nvmf_queue *q = nvmf_host_queue(h, qid, IO_DEPTH);
	uint8_t cmd[NVMF_SQE];

	nvmf_host_connect_cmd(h, cmd, admin->ctrl->subsys->nqn, qid, admin->ctrl->cntlid, IO_DEPTH);
	must(nvmf_host_exec(h, q, cmd) == SC_OK);
	return q;
}
