/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * NVMe-oF initiator: a hostile target. The input is a list of actions: events of the transport,
 * responses whose bytes are changed, data of Identify, requests, and steps of the time. The
 * transport of the test is nvmf_ini_target.c, which checks that the engine uses no id twice and no
 * queue that is not open. This file checks that each request comes back exactly once, and that no
 * more memory is named than the request has.
 */
#include <string.h>

#include "fuzz.h"
#include "nvmf_ini_target.h"

#define ADDR 0x123456780000ull
#define KEY  0x00c0ffeeu

enum action {
	RUN,
	ANSWER,
	MESSAGE,
	DATA,
	SUBMIT,
	TAKE,
	REVOKED,
	TIME,
	BREAK,
	REJECT,
	CONNECTED,
	FAIL,
};

static struct nvmf_ini_target t;
static uint32_t submitted, taken;
static bool outstanding[65536];

static void
check_engine(const struct nvmf_ini *e)
{
	uint32_t i, states[INI_DONE + 1] = {0};

	for (i = 0; i < e->depth; i++) {
		fuzz_check(e->slot[i].state <= INI_DONE);
		states[e->slot[i].state]++;
	}
	fuzz_check(e->used == e->depth - states[INI_FREE]);
	fuzz_check(e->sent == states[INI_SENT] + states[INI_REVOKING]);
	fuzz_check(e->sent == 0 || e->step == INI_LIVE);
	fuzz_check(e->step != INI_OVER || (states[INI_QUEUED] == 0 && e->sent == 0));
	fuzz_check(!e->was_live || (e->shape.depth >= 1 && e->shape.depth <= e->depth));
	fuzz_check(e->used - states[INI_DONE] == submitted - taken - states[INI_DONE]);
	fuzz_check(memchr(e->why, '\0', sizeof(e->why)) != NULL);
	for (i = 0; i < t.nsent; i++) {
		const uint8_t *cmd = t.sent[i].cmd;
		uint32_t len = get32(cmd + AT_SGL + 7) >> 8;

		if (get32(cmd + AT_SGL + AT_SGL_KEY) == TARGET_KEY)
			fuzz_check(get64(cmd + AT_SGL) >= TARGET_ADDR &&
				   get64(cmd + AT_SGL) + len <= TARGET_ADDR + sizeof(t.shared));
		else if (t.sent[i].qid == 1 && len != 0)
			fuzz_check(len <= e->shape.max_io && get64(cmd + AT_SGL) >= ADDR &&
				   len == ((uint32_t)get16(cmd + AT_NLB) + 1) << e->shift);
	}
}

static void
answer(struct fuzz_in *in, uint32_t changes)
{
	uint8_t cqe[NVMF_CQE];
	struct nvmf_ini_response r = {.bytes = cqe, .len = NVMF_CQE};
	uint32_t i = fuzz_u8(in), flags = fuzz_u8(in);
	uint32_t status = (flags & 2) != 0 ? fuzz_u16(in) : 0;
	uint64_t result = (flags & 4) != 0 ? fuzz_u64(in) : 0;
	uint16_t qid;

	if (t.nsent == 0)
		return;
	i %= t.nsent;
	qid = t.sent[i].qid ^ (flags & 1);
	nvmf_ini_target_build(&t, i, status, result, cqe);
	r.invalidated = (flags & 8) != 0;
	r.key = get32(t.sent[i].cmd + AT_SGL + AT_SGL_KEY) + (flags >> 4 & 1);
	if ((flags & 0x20) != 0)
		nvmf_ini_target_drop(&t, i);
	while (changes-- > 0) {
		uint8_t at = fuzz_u8(in);

		cqe[at % NVMF_CQE] = fuzz_u8(in);
	}
	nvmf_ini_response(t.e, qid, &r);
}

static void
message(struct fuzz_in *in)
{
	uint8_t bytes[255];
	struct nvmf_ini_response r = {.bytes = bytes, .len = fuzz_u8(in)};

	for (uint32_t i = 0; i < r.len; i++)
		bytes[i] = fuzz_u8(in);
	nvmf_ini_response(t.e, fuzz_u8(in) & 1, &r);
}

static void
submit(struct fuzz_in *in)
{
	struct bb_nvmf_request req = {.user = (void *)(uintptr_t)submitted};

	req.op = (enum bb_nvmf_op)(fuzz_u8(in) & 7);
	req.flags = fuzz_u8(in) & 3;
	if (req.op != BB_NVMF_FLUSH) {
		req.offset = (uint64_t)fuzz_u16(in) << 9;
		req.length = (uint32_t)fuzz_u8(in) << 9;
	}
	if (submitted == sizeof(outstanding) ||
	    nvmf_ini_submit(t.e, &req, ADDR + req.offset, KEY) != 0)
		return;
	outstanding[submitted++] = true;
}

static void
take(uint32_t max)
{
	struct bb_nvmf_done done[16];
	uint32_t i, n = nvmf_ini_take(t.e, done, max & 15);

	fuzz_check(n <= (max & 15));
	for (i = 0; i < n; i++) {
		uintptr_t user = (uintptr_t)done[i].user;

		fuzz_check(user < submitted && outstanding[user] && done[i].error <= 0);
		outstanding[user] = false;
		taken++;
	}
}

static void
connected(struct fuzz_in *in)
{
	uint8_t rep[NVMF_CM_REP], len = fuzz_u8(in);
	uint16_t qid = len >> 7;

	len %= NVMF_CM_REP + 1;
	for (uint32_t i = 0; i < len; i++)
		rep[i] = fuzz_u8(in);
	if (!t.connecting[qid])
		return;
	t.connecting[qid] = false;
	t.open[qid] = true;
	nvmf_ini_connected(t.e, qid, rep, len);
}

/* Changes answers to come, or memory that the target may write. */
static void
change_data(struct fuzz_in *in, uint8_t what)
{
	uint16_t at = fuzz_u16(in);
	uint8_t value = fuzz_u8(in);

	if (what & 1)
		t.shared[at % sizeof(t.shared)] = value;
	else if (what & 2)
		t.controller[at % NVMF_PAGE] = value;
	else if (what & 4)
		t.space[at & 0xff] = value;
	else if (what & 8)
		t.csts = value;
	else
		t.cap ^= (uint64_t)value << (at & 63);
}

static void
act(struct fuzz_in *in)
{
	uint8_t what = fuzz_u8(in), high = what >> 4;
	uint8_t rej[4];

	switch (what & 0xf) {
	case RUN:
		nvmf_ini_target_run(&t);
		break;
	case ANSWER:
		answer(in, high);
		break;
	case MESSAGE:
		message(in);
		break;
	case DATA:
		change_data(in, high);
		break;
	case SUBMIT:
		submit(in);
		break;
	case TAKE:
		take(high);
		break;
	case REVOKED:
		nvmf_ini_revoked(t.e, fuzz_u8(in) % (uint16_t)t.e->depth);
		break;
	case TIME:
		if (high == 0)
			nvmf_ini_target_time(&t, fuzz_u16(in));
		else
			nvmf_ini_target_jump(&t, high == 15 ? 60000 : high);
		break;
	case BREAK:
		nvmf_ini_target_break(&t);
		break;
	case REJECT:
		rej[0] = rej[1] = rej[3] = 0;
		rej[2] = fuzz_u8(in);
		nvmf_ini_rejected(t.e, high & 1, rej, high & 2 ? 4 : 0, "rejected");
		break;
	case CONNECTED:
		connected(in);
		break;
	case FAIL:
		t.fail_connect = high & 1 ? -12 : 0;
		t.fail_send = high & 2 ? -11 : 0;
		t.fail_grant = high & 4 ? -12 : 0;
		t.fail_revoke = high & 8 ? -11 : 0;
		break;
	default:
		break;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fuzz_in in = {data, len};
	struct bb_nvmf_attr attr;
	uint8_t flags = fuzz_u8(&in);

	bb_nvmf_attr_init(&attr);
	attr.depth = 1 + (flags >> 4);
	attr.windows = (flags & 1) != 0;
	attr.reconnect_ms = (flags & 2) != 0 ? 20000 : 0;
	submitted = taken = 0;
	memset(outstanding, 0, sizeof(outstanding));
	nvmf_ini_target_open(&t, &attr);
	t.hostile = true;
	if ((flags & 4) != 0)
		fuzz_check(nvmf_ini_target_live(&t));
	else
		nvmf_ini_target_jump(&t, 0);
	while (in.left > 0) {
		act(&in);
		check_engine(t.e);
	}
	/* A connection that fails again and again ends, and all requests come back. */
	t.fail_connect = -12;
	nvmf_ini_target_break(&t);
	for (uint32_t i = 0; i < 200; i++) {
		t.now += 500;
		nvmf_ini_target_jump(&t, 0);
	}
	fuzz_check(t.e->step == INI_OVER);
	check_engine(t.e);
	while (t.e->used != 0)
		take(15);
	fuzz_check(taken == submitted);
	nvmf_ini_target_close(&t);
	return 0;
}
