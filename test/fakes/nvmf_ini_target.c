/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <stdlib.h>
#include <string.h>

#include "nvmf_ini_target.h"

static void
must(bool ok)
{
	if (!ok)
		abort();
}

/* ---- Transport */

static int
connect_queue(struct nvmf_ini *e, uint16_t qid, uint32_t size, const uint8_t req[NVMF_CM_REQ])
{
	struct nvmf_ini_target *t = e->attr.user;

	must(qid <= 1 && !t->connecting[qid] && !t->open[qid] && size >= 2);
	if (t->fail_connect != 0)
		return t->fail_connect;
	t->connects[qid]++;
	t->sizes[qid] = size;
	t->connecting[qid] = true;
	memcpy(t->req[qid], req, NVMF_CM_REQ);
	return 0;
}

static void
disconnect(struct nvmf_ini *e)
{
	struct nvmf_ini_target *t = e->attr.user;

	t->disconnects++;
	t->connecting[0] = t->connecting[1] = t->open[0] = t->open[1] = false;
	t->nsent = t->nrevoking = 0;
}

static int
send_command(struct nvmf_ini *e, uint16_t qid, const uint8_t cmd[NVMF_SQE])
{
	struct nvmf_ini_target *t = e->attr.user;
	uint32_t i, n = 0;

	must(t->open[qid]);
	if (t->hostile && t->nsent == 512)
		nvmf_ini_target_drop(t, 0);
	must(t->nsent < 512);
	/* An outstanding id is not used again, and the queue has room. */
	for (i = 0; i < t->nsent && !t->hostile; i++) {
		if (t->sent[i].qid != qid)
			continue;
		must(get16(t->sent[i].cmd + AT_CID) != get16(cmd + AT_CID));
		n++;
	}
	must(n < t->sizes[qid] - 1);
	if (t->fail_send != 0)
		return t->fail_send;
	t->sent[t->nsent].qid = qid;
	memcpy(t->sent[t->nsent++].cmd, cmd, NVMF_SQE);
	return 0;
}

static int
grant(struct nvmf_ini *e, uint16_t index, const struct bb_nvmf_request *req, bool write,
      uint32_t *key)
{
	struct nvmf_ini_target *t = e->attr.user;

	must(index < e->depth && write == (req->op == BB_NVMF_READ));
	t->grants++;
	*key = 0x1000 + ++t->keys;
	return t->fail_grant;
}

static int
revoke(struct nvmf_ini *e, uint16_t index, uint32_t key)
{
	struct nvmf_ini_target *t = e->attr.user;

	must(index < e->depth && key > 0x1000 && key <= 0x1000 + t->keys);
	t->revokes++;
	t->revoking[t->nrevoking++] = index;
	return t->fail_revoke;
}

static const struct nvmf_ini_ops ops = {.connect = connect_queue,
					.disconnect = disconnect,
					.send = send_command,
					.grant = grant,
					.revoke = revoke};

/* ---- Target */

void
nvmf_ini_target_open(struct nvmf_ini_target *t, const struct bb_nvmf_attr *attr)
{
	struct nvmf_ini_attr a = {.shared = t->shared,
				  .shared_addr = TARGET_ADDR,
				  .shared_key = TARGET_KEY,
				  .ops = &ops,
				  .user = t};
	const char *why;

	memset(t, 0, sizeof(*t));
	bb_nvmf_attr_init(&a.nvmf);
	a.nvmf.depth = 8;
	if (attr != NULL)
		a.nvmf = *attr;
	a.nvmf.addr = "192.0.2.1:4420";
	a.nvmf.subnqn = TARGET_NQN;
	must(nvmf_ini_attr_check(&a.nvmf, &why) == 0);
	must(nvmf_ini_create(&a, &t->e) == 0);
	t->now = TARGET_TIME;
	t->refuse = UINT32_MAX;
	put16(t->rep + 2, 128);
	t->cap = 127 | 1ull << 37 | 4ull << 24;
	t->result = TARGET_CNTLID;
	t->csts = CSTS_RDY;
	t->controller[77] = 2; /* MDTS: 16 KiB */
	put16(t->controller + 78, TARGET_CNTLID);
	put16(t->controller + 514, 128);  /* MAXCMD */
	put32(t->controller + 516, 1);    /* NN */
	put16(t->controller + 520, 0xd);  /* ONCS */
	put32(t->controller + 536, 5);    /* SGLS */
	put32(t->controller + 1792, 4);   /* IOCCSZ */
	put32(t->controller + 1796, 1);   /* IORCSZ */
	put64(t->space, TARGET_BLOCKS);   /* NSZE */
	memset(t->space + 104, 0x5a, 24); /* NGUID, EUI-64 */
	t->space[130] = 9;                /* LBADS */
}

void
nvmf_ini_target_close(struct nvmf_ini_target *t)
{
	nvmf_ini_destroy(t->e);
}

void
nvmf_ini_target_cqe(struct nvmf_ini_target *t, uint16_t qid, const uint8_t *cqe, uint32_t len)
{
	const struct nvmf_ini_response r = {.bytes = cqe, .len = len};

	nvmf_ini_response(t->e, qid, &r);
}

void
nvmf_ini_target_build(const struct nvmf_ini_target *t, uint32_t i, uint32_t status, uint64_t result,
		      uint8_t cqe[NVMF_CQE])
{
	memset(cqe, 0, NVMF_CQE);
	put64(cqe + AT_CQE_RESULT, result);
	put16(cqe + AT_CQE_SQHD, 1);
	put16(cqe + AT_CQE_SQID, t->sent[i].qid);
	memcpy(cqe + AT_CQE_CID, t->sent[i].cmd + AT_CID, 2);
	put16(cqe + AT_CQE_STATUS, status << 1);
}

void
nvmf_ini_target_drop(struct nvmf_ini_target *t, uint32_t i)
{
	memmove(&t->sent[i], &t->sent[i + 1], (t->nsent - i - 1) * sizeof(t->sent[0]));
	t->nsent--;
}

void
nvmf_ini_target_answer(struct nvmf_ini_target *t, uint32_t i, uint32_t status, uint64_t result)
{
	uint16_t qid = t->sent[i].qid;
	uint8_t cqe[NVMF_CQE];

	nvmf_ini_target_build(t, i, status, result, cqe);
	nvmf_ini_target_drop(t, i);
	nvmf_ini_target_cqe(t, qid, cqe, NVMF_CQE);
}

/* Answers command @i if it is one that connects. Returns whether it did. */
static bool
answer(struct nvmf_ini_target *t, uint32_t i)
{
	const uint8_t *cmd = t->sent[i].cmd, *data = NULL;
	bool fabrics = cmd[AT_OPCODE] == OPC_FABRICS;
	uint32_t type = fabrics ? 0x100u | cmd[AT_FCTYPE] : cmd[AT_OPCODE];
	uint64_t result = 0;

	if (t->sent[i].qid != 0 && !fabrics)
		return false;
	if (type == (0x100 | FC_CONNECT))
		result = t->result;
	else if (type == (0x100 | FC_PROPERTY_GET))
		result = get32(cmd + AT_PROP_OFFSET) == PROP_CAP ? t->cap : t->csts;
	else if (type == ADM_IDENTIFY)
		data = cmd[AT_CDW10] == CNS_CONTROLLER ? t->controller : t->space;
	if (data != NULL && !t->no_data)
		memcpy(t->shared, data, NVMF_PAGE);
	nvmf_ini_target_answer(t, i, type == t->refuse ? t->status : SC_OK, result);
	return true;
}

void
nvmf_ini_target_run(struct nvmf_ini_target *t)
{
	bool more = true;
	uint32_t i;

	while (more) {
		more = false;
		for (i = 0; i < 2; i++) {
			if (!t->connecting[i])
				continue;
			t->connecting[i] = false;
			t->open[i] = more = true;
			nvmf_ini_connected(t->e, (uint16_t)i, t->rep, sizeof(t->rep));
		}
		for (i = 0; i < t->nsent && !more; i++)
			more = answer(t, i);
	}
}

void
nvmf_ini_target_time(struct nvmf_ini_target *t, uint32_t ms)
{
	uint64_t end = t->now + ms;

	while (t->now < end) {
		t->now += end - t->now < 10 ? end - t->now : 10;
		nvmf_ini_time(t->e, t->now);
		nvmf_ini_run(t->e);
	}
}

void
nvmf_ini_target_jump(struct nvmf_ini_target *t, uint32_t ms)
{
	t->now += ms;
	nvmf_ini_time(t->e, t->now);
	nvmf_ini_run(t->e);
}

bool
nvmf_ini_target_live(struct nvmf_ini_target *t)
{
	uint32_t i;

	nvmf_ini_target_jump(t, 0);
	for (i = 0; i < 1000 && t->e->step != INI_LIVE && t->e->step != INI_OVER; i++) {
		nvmf_ini_target_run(t);
		nvmf_ini_target_time(t, 10);
	}
	return t->e->step == INI_LIVE;
}

void
nvmf_ini_target_break(struct nvmf_ini_target *t)
{
	nvmf_ini_lost(t->e, -104, "the target is gone");
}
