/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * NVMe-oF engine: a hostile host. The input is a list of actions on an admin queue and three I/O
 * queues, which start connected if bit 0 of the first byte is set. A command is 64 bytes of zeros
 * with an opcode, a namespace, and changes of single bytes; so inputs get far with few bytes.
 *
 * The transport of the test is nvmf_host.c. It checks that each transfer is inside of the memory of
 * its request and inside of the host's buffer, and that each request to a namespace is inside of
 * it. This file checks that in the end each command of a queue has had its response.
 */
#include <string.h>

#include "fuzz.h"
#include "nvmf_host.h"

enum action {
	SEND,
	RUN,
	HOLD,
	FINISH,
	TIME,
	CLOSE,
	CONNECT,
	ENABLE,
	CHANGED,
	REMOVE,
};

static struct nvmf_host host;
static struct nvmf_queue *queue[IO_QUEUES + 1];

static void
check_queue(const struct nvmf_queue *q)
{
	uint32_t i, states[REQ_SENDING + 1] = {0};

	for (i = 0; i < q->depth; i++) {
		fuzz_check(q->req[i].state <= REQ_SENDING && q->req[i].push <= MAX_IO);
		states[q->req[i].state]++;
	}
	fuzz_check(q->waiting <= q->depth && (q->waiting == 0 || states[REQ_FREE] == 0));
	fuzz_check(q->closed || q->in_ns == states[REQ_IO]);
	fuzz_check(states[REQ_WAITING] <= NVMF_ASYNC);
	fuzz_check(q->ctrl == NULL || q->ctrl->queue[q->qid] == q);
}

static void
open_queue(uint16_t qid)
{
	if (queue[qid] == NULL)
		queue[qid] = nvmf_host_queue(&host, qid, qid == 0 ? NVMF_ADMIN_DEPTH : IO_DEPTH);
}

static void
send_connect(uint16_t qid, struct fuzz_in *in)
{
	static const char *const names[] = {SUBSYS_OPEN, SUBSYS_OWN, NVMF_DISCOVERY, "nqn.none"};
	uint32_t n = fuzz_u8(in) & 3, depth = qid == 0 ? NVMF_ADMIN_DEPTH : IO_DEPTH, at;
	uint8_t cmd[NVMF_SQE];

	open_queue(qid);
	nvmf_host_connect_cmd(&host, cmd, names[n], qid, qid == 0 ? NVMF_CNTLID_ANY : 1, depth);
	at = fuzz_u16(in) % NVMF_CONNECT_DATA;
	host.mem[at] ^= fuzz_u8(in);
	nvmf_host_send(&host, queue[qid], cmd, NULL, 0);
	nvmf_host_run(&host);
}

static void
send_command(struct nvmf_queue *q, struct fuzz_in *in)
{
	uint8_t op = fuzz_u8(in), flags = fuzz_u8(in), changes = flags & 7;
	uint32_t nsid = fuzz_u8(in), len = (uint32_t)fuzz_u8(in) * 256, have = 0;
	uint8_t cmd[NVMF_SQE];

	nvmf_host_cmd(&host, cmd, op, nsid == 0xff ? NVMF_NSID_ALL : nsid, len);
	if ((flags & 8) != 0) {
		have = len < IN_CAPSULE ? len : IN_CAPSULE;
		nvmf_host_in_capsule(cmd, 0, len);
	}
	while (changes-- > 0) {
		uint8_t at = fuzz_u8(in);

		cmd[at % NVMF_SQE] = fuzz_u8(in);
	}
	if (host.events > 128)
		nvmf_host_run(&host);
	nvmf_host_send(&host, q, cmd, host.mem + (flags & 0xf0) * 64u, have);
	if ((flags & 0x10) == 0)
		nvmf_host_run(&host);
}

static void
end_queue(uint16_t qid)
{
	if (queue[qid] != NULL)
		nvmf_host_drop(&host, queue[qid]);
	queue[qid] = NULL;
}

static void
act(struct fuzz_in *in, uint64_t *now)
{
	uint8_t what = fuzz_u8(in);
	uint16_t qid = what >> 4 & IO_QUEUES;

	switch (what & 0xf) {
	case SEND:
		/* A namespace of the fake holds at most 64 requests. */
		if (queue[qid] != NULL && host.nheld < 48)
			send_command(queue[qid], in);
		break;
	case RUN:
		nvmf_host_run(&host);
		break;
	case HOLD:
		host.hold = true;
		host.fail = -(int)(what >> 7) * 5;
		break;
	case FINISH:
		nvmf_host_finish(&host, -(int)(what >> 7) * 28);
		break;
	case TIME:
		*now += fuzz_u16(in);
		nvmf_target_time(host.t, *now);
		break;
	case CLOSE:
		end_queue(qid);
		break;
	case CONNECT:
		send_connect(qid, in);
		break;
	case ENABLE:
		if (queue[0] != NULL)
			nvmf_host_set_cc(&host, queue[0], CC_ENTRIES_NVM | CC_EN | fuzz_u16(in));
		break;
	case CHANGED:
		nvmf_ns_changed(host.t, &host.subsys[0], fuzz_u8(in));
		host.subsys[1].any_host = (what >> 7) != 0;
		nvmf_access_changed(host.t, &host.subsys[1]);
		break;
	case REMOVE:
		if (!host.slow.removed) {
			nvmf_ns_remove(host.t, &host.subsys[0], &host.slow);
		} else if (host.slow.refs == 0) {
			host.slow.removed = false;
			fuzz_check(nvmf_ns_add(&host.subsys[0], 4, &host.slow) == 0);
		}
		break;
	default:
		break;
	}
}

/* Ends everything that waits. Then an open queue has only Asynchronous Event Requests. */
static void
settle(void)
{
	uint32_t i, j;

	while (host.events != 0 || host.nheld != 0 || host.t->zeroing != NULL) {
		nvmf_host_run(&host);
		nvmf_host_finish(&host, 0);
	}
	for (i = 0; i <= IO_QUEUES; i++) {
		if (queue[i] == NULL)
			continue;
		check_queue(queue[i]);
		fuzz_check(queue[i]->waiting == 0 && nvmf_queue_idle(queue[i]));
		for (j = 0; j < queue[i]->depth; j++)
			fuzz_check(queue[i]->req[j].state == REQ_FREE ||
				   queue[i]->req[j].state == REQ_WAITING);
	}
	fuzz_check(host.slow.refs + host.disk.refs + host.nothing.refs == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fuzz_in in = {data, len};
	uint64_t now = 0;
	uint16_t i;

	nvmf_host_open(&host);
	if ((fuzz_u8(&in) & 1) != 0) {
		queue[0] = nvmf_host_admin(&host, SUBSYS_OPEN);
		for (i = 1; i <= IO_QUEUES; i++)
			queue[i] = nvmf_host_io(&host, queue[0], i);
	} else {
		open_queue(0);
	}
	while (in.left > 0) {
		act(&in, &now);
		for (i = 0; i <= IO_QUEUES; i++)
			if (queue[i] != NULL)
				check_queue(queue[i]);
	}
	settle();
	for (i = 0; i <= IO_QUEUES; i++)
		end_queue((uint16_t)(IO_QUEUES - i));
	for (i = 0; i < host.t->attr.ctrls; i++)
		fuzz_check(host.t->ctrl[i] == NULL);
	nvmf_host_close(&host);
	return 0;
}
