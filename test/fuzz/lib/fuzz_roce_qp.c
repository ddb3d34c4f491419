/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * One queue pair of the RoCEv2 engine with an arbitrary peer, network, caller and clock. The
 * input is a sequence of steps: post, receive a packet, send, advance the time. Packets and the
 * memory of both sides have exact sizes, so that AddressSanitizer detects every access outside
 * them. invariants() checks what must always hold: messages complete in order and once, limits
 * are respected, and a posted message is always awaited by a timer or work.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../../fakes/roce_keep.h"
#include "bb_cqe.h"
#include "bb_roce_qp.h"
#include "fuzz.h"

/* An implementation of a whole interface uses few of the parameters. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define SLOTS   8u
#define REPLAYS 4u
#define AHEADS  16u
#define REMOTE  8192u /* bytes of memory that the peer may use */
#define RKEY    1u
#define VA      UINT64_C(0xfffffffffffff000) /* its address: the end of the memory wraps to 0 */

struct world {
	struct bb_roce_qp qp;
	struct bb_roce_msg ring[SLOTS];
	struct bb_roce_replay replay[REPLAYS];
	struct fuzz_in in;
	uint64_t now, posted, done;
	uint8_t *local, *remote;
	struct bb_roce_net net;
	uint32_t room, receives;
	struct bb_roce_pkt *ahead[AHEADS];
	uint32_t kept;
	bool has_recv, failed;
	volatile uint8_t sum; /* forces the sent bytes to be read */
	uint8_t fault;        /* status of the next memory access */
};

/* Returns the status that the previous step requested. */
static uint8_t
fault(struct world *w)
{
	uint8_t synd = w->fault;

	w->fault = 0;
	return synd;
}

static uint32_t
outstanding(const struct bb_roce_qp *qp, uint32_t psn)
{
	return (psn - qp->req.una) & BB_ROCE_PSN_MASK;
}

static bool
op_tx(void *ctx, struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt,
      const struct bb_roce_iov *iov, uint32_t n, const struct bb_roce_msg *msg)
{
	struct world *w = ctx;
	uint8_t hdr[BB_ROCE_MAX_HDR];
	uint32_t i, len = 0;
	uint8_t sum = 0;

	fuzz_check(qp->state == BB_ROCE_RTR || qp->state == BB_ROCE_RTS);
	fuzz_check(n <= BB_ROCE_MAX_IOV);
	for (i = 0; i < n; i++) {
		for (uint32_t b = 0; b < iov[i].len; b++)
			sum ^= ((const uint8_t *)iov[i].p)[b];
		len += iov[i].len;
	}
	fuzz_check(len == pkt->len && len <= qp->attr.mtu);
	fuzz_check(bb_roce_build(hdr, pkt) == bb_roce_ops[pkt->opcode].hdr_len);
	fuzz_check(BB_ROCE_TYPE(pkt->opcode) == qp->attr.type || pkt->opcode == BB_ROCE_CNP);
	if (msg != NULL && qp->attr.type == BB_ROCE_RC)
		fuzz_check(outstanding(qp, pkt->psn) < qp->attr.window);
	if (w->room == 0)
		return false;
	w->room--;
	w->sum += sum;
	return true;
}

static int
pieces(uint8_t *p, uint32_t len, struct bb_roce_iov iov[BB_ROCE_MAX_IOV])
{
	uint32_t half = len / 2;

	iov[0] = (struct bb_roce_iov){p, half};
	iov[1] = (struct bb_roce_iov){p + half, len - half};
	return 2;
}

static int
op_gather(void *ctx, struct bb_roce_qp *qp, const struct bb_roce_msg *msg, uint32_t off,
	  uint32_t len, struct bb_roce_iov iov[BB_ROCE_MAX_IOV])
{
	struct world *w = ctx;
	uint8_t synd = fault(w);

	fuzz_check(len != 0 && len <= qp->attr.mtu && off <= msg->len && len <= msg->len - off);
	if (synd != 0)
		return -(int)synd;
	return pieces(w->local, len, iov);
}

static uint8_t
op_place(void *ctx, struct bb_roce_qp *qp, const struct bb_roce_msg *msg, uint32_t off,
	 const uint8_t *data, uint32_t len)
{
	struct world *w = ctx;

	fuzz_check(msg == &qp->req.ring[qp->req.tail & qp->req.mask]);
	fuzz_check(msg->kind == BB_ROCE_MSG_READ && len != 0 && len <= qp->attr.mtu);
	fuzz_check(off <= msg->len && len <= msg->len - off);
	fuzz_check(off == ((qp->req.una - msg->psn) & BB_ROCE_PSN_MASK) * qp->attr.mtu);
	memcpy(w->local, data, len);
	return fault(w);
}

static uint8_t
op_atomic_result(void *ctx, struct bb_roce_qp *qp, const struct bb_roce_msg *msg, uint64_t orig)
{
	fuzz_check(msg == &qp->req.ring[qp->req.tail & qp->req.mask]);
	fuzz_check(msg->kind == BB_ROCE_MSG_CMP_SWAP || msg->kind == BB_ROCE_MSG_FETCH_ADD);
	return fault(ctx);
}

static void
op_complete(void *ctx, struct bb_roce_qp *qp, const struct bb_roce_msg *msg, uint8_t status)
{
	struct world *w = ctx;

	fuzz_check(msg->cookie == w->done && w->done < w->posted);
	fuzz_check(status == 0 || qp->state == BB_ROCE_ERR);
	w->done++;
}

static enum bb_roce_take
op_recv_take(void *ctx, struct bb_roce_qp *qp)
{
	struct world *w = ctx;

	fuzz_check(!w->has_recv);
	if (fault(w) != 0)
		return BB_ROCE_TAKE_FAILED;
	if (w->receives == 0)
		return BB_ROCE_TAKE_EMPTY;
	w->receives--;
	w->has_recv = true;
	return BB_ROCE_TAKE_OK;
}

static uint8_t
op_recv_place(void *ctx, struct bb_roce_qp *qp, uint32_t off, const uint8_t *data, uint32_t len)
{
	struct world *w = ctx;

	fuzz_check(w->has_recv && len <= qp->attr.mtu);
	if (off > REMOTE || len > REMOTE - off)
		return BB_SYN_LOCAL_LENGTH;
	if (len != 0)
		memcpy(w->remote + off, data, len);
	return fault(w);
}

static uint8_t
op_recv_done(void *ctx, struct bb_roce_qp *qp, const struct bb_roce_recv *r)
{
	struct world *w = ctx;

	fuzz_check(w->has_recv);
	w->has_recv = false;
	return fault(w);
}

static uint8_t
op_invalidate(void *ctx, struct bb_roce_qp *qp, uint32_t rkey)
{
	return rkey == RKEY ? fault(ctx) : BB_ROCE_TRY_AGAIN;
}

static uint8_t
op_remote_check(void *ctx, struct bb_roce_qp *qp, enum bb_roce_access access, uint32_t rkey,
		uint64_t va, uint32_t len)
{
	if (len == 0)
		return 0;
	if (rkey != RKEY || va - VA > REMOTE || len > REMOTE - (va - VA))
		return BB_SYN_REMOTE_ACCESS;
	return fault(ctx);
}

static uint8_t
op_remote_write(void *ctx, struct bb_roce_qp *qp, uint32_t rkey, uint64_t va, const uint8_t *data,
		uint32_t len)
{
	struct world *w = ctx;

	/* Only permitted memory. */
	fuzz_check(rkey == RKEY && va - VA <= REMOTE && len <= REMOTE - (va - VA) && len != 0);
	fuzz_check(len <= qp->attr.mtu);
	memcpy(w->remote + (va - VA), data, len);
	return fault(w);
}

static int
op_remote_read(void *ctx, struct bb_roce_qp *qp, uint32_t rkey, uint64_t va, uint32_t len,
	       struct bb_roce_iov iov[BB_ROCE_MAX_IOV])
{
	struct world *w = ctx;
	uint8_t synd = fault(w);

	fuzz_check(rkey == RKEY && va - VA <= REMOTE && len <= REMOTE - (va - VA) && len != 0);
	fuzz_check(len <= qp->attr.mtu);
	if (synd != 0)
		return -(int)synd;
	return pieces(w->remote + (va - VA), len, iov);
}

static uint8_t
op_remote_atomic(void *ctx, struct bb_roce_qp *qp, uint8_t kind, uint32_t rkey, uint64_t va,
		 uint64_t swap_add, uint64_t compare, uint64_t *orig)
{
	struct world *w = ctx;

	fuzz_check(rkey == RKEY && va % 8 == 0 && va - VA <= REMOTE - 8);
	memcpy(orig, w->remote + (va - VA), 8);
	memcpy(w->remote + (va - VA), &swap_add, 8);
	return fault(w);
}

static void
op_failed(void *ctx, struct bb_roce_qp *qp, bool responder, uint8_t synd)
{
	struct world *w = ctx;

	fuzz_check(qp->state == BB_ROCE_ERR && synd != 0 && !w->failed);
	w->failed = true;
}

static void
op_established(void *ctx, struct bb_roce_qp *qp)
{
	fuzz_check(qp->state == BB_ROCE_RTR);
}

static struct bb_roce_pkt *
op_keep(void *ctx, struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt)
{
	struct world *w = ctx;

	fuzz_check(((pkt->psn - qp->resp.epsn - 1) & BB_ROCE_PSN_MASK) < AHEADS - 1);
	if (fault(w) != 0)
		return NULL;
	w->kept++;
	return roce_keep(pkt);
}

static void
op_unkeep(void *ctx, struct bb_roce_qp *qp, struct bb_roce_pkt *pkt)
{
	struct world *w = ctx;

	fuzz_check(w->kept-- != 0);
	free(pkt);
}

static const struct bb_roce_ops ops = {
	.tx = op_tx,
	.gather = op_gather,
	.place = op_place,
	.atomic_result = op_atomic_result,
	.complete = op_complete,
	.recv_take = op_recv_take,
	.recv_place = op_recv_place,
	.recv_done = op_recv_done,
	.invalidate = op_invalidate,
	.remote_check = op_remote_check,
	.remote_write = op_remote_write,
	.remote_read = op_remote_read,
	.remote_atomic = op_remote_atomic,
	.failed = op_failed,
	.established = op_established,
	.store_pkt = op_keep,
	.release_pkt = op_unkeep,
};

/* Returns a length near the important ones, or any. */
static uint32_t
length(struct world *w)
{
	uint8_t b = fuzz_u8(&w->in);
	uint32_t mtu = w->qp.attr.mtu;

	switch (b >> 5) {
	case 0:
		return b & 31;
	case 1:
		return mtu * (b & 31);
	case 2:
		return mtu * (b & 31) + 1;
	case 3:
		return mtu * (b & 31) - 1;
	case 4:
		return fuzz_u32(&w->in);
	case 5:
		return 8;
	default:
		return fuzz_u16(&w->in);
	}
}

static void
post(struct world *w)
{
	uint8_t b = fuzz_u8(&w->in);
	struct bb_roce_msg msg = {
		.cookie = w->posted,
		.kind = b % 9,
		.flags = b / 9 & 3,
		.rkey = RKEY,
		.raddr = VA,
		.net = &w->net,
	};

	msg.len = msg.kind > BB_ROCE_MSG_READ && b < 128 ? 8 : length(w);
	if (bb_roce_post(&w->qp, &msg) == 0)
		w->posted++;
}

static void
take_packet(struct world *w, bool response)
{
	static const uint8_t responses[] = {
		BB_ROCE_ACK,
		BB_ROCE_READ_RESP_FIRST,
		BB_ROCE_READ_RESP_MIDDLE,
		BB_ROCE_READ_RESP_LAST,
		BB_ROCE_READ_RESP_ONLY,
		BB_ROCE_ATOMIC_ACK,
	};
	struct bb_roce_pkt pkt = {.pkey = 0xffff, .dqpn = 1, .sqpn = 2, .qkey = 3};
	uint8_t how = fuzz_u8(&w->in), *payload;
	uint32_t base = response ? w->qp.req.una : w->qp.resp.epsn;

	if (response) {
		pkt.opcode = responses[how % 6];
		pkt.syndrome = how < 128 ? 0x1f : fuzz_u8(&w->in);
		pkt.msn = fuzz_u8(&w->in);
	} else {
		pkt.opcode = (how & 0x1f) | (uint8_t)w->qp.attr.type;
		pkt.flags = how >> 5;
		pkt.va = VA + fuzz_u16(&w->in) % (REMOTE + 16);
		pkt.rkey = fuzz_u8(&w->in) % 32 == 0 ? 7 : RKEY;
		pkt.dmalen = length(w);
		pkt.imm = pkt.rkey;
		if (how == 0xff)
			pkt.opcode = fuzz_u8(&w->in);
	}
	pkt.psn = (base + (uint32_t)(int8_t)fuzz_u8(&w->in)) & BB_ROCE_PSN_MASK;
	if (bb_roce_ops[pkt.opcode].flags & BB_ROCE_F_PAYLOAD)
		pkt.len = length(w) & 0x1fff;
	payload = malloc(pkt.len != 0 ? pkt.len : 1);
	fuzz_check(payload != NULL);
	memset(payload, 0x5a, pkt.len);
	pkt.payload = payload;
	bb_roce_rx(&w->qp, &pkt, &w->net, w->now);
	free(payload);
}

static void
start(struct world *w, uint8_t b)
{
	static const enum bb_roce_type types[] = {BB_ROCE_RC, BB_ROCE_RC, BB_ROCE_UC, BB_ROCE_UD};
	uint8_t c = fuzz_u8(&w->in), d = fuzz_u8(&w->in);
	const struct bb_roce_mem mem = {w->ring, SLOTS,    w->replay,
					REPLAYS, w->ahead, d & 8 ? AHEADS : 0};
	const struct bb_roce_attr attr = {
		.type = types[b & 3],
		.mtu = b & 4 ? 256 : 1024,
		.pkey = 0xffff,
		.qpn = 1,
		.dqpn = 2,
		.qkey = 3,
		.rq_psn = b & 8 ? 0xfffffe : 5,
		.sq_psn = b & 16 ? 0xfffffd : 7,
		.max_dest_rd_atomic = b >> 5 & 3,
		.min_rnr_timer = 1,
		.max_rd_atomic = c & 3,
		.ack_timeout = (d & 3) == 3 ? 0 : 1, /* with adaptive retransmission: forever */
		.retry_cnt = c >> 2 & 7,
		.rnr_retry = c >> 5,
		.window = 1 + d,
		.adaptive = d & 1 ? 1000 : 0,
		.selective = (d & 4) != 0,
	};

	bb_roce_qp_init(&w->qp, &ops, w, &mem);
	fuzz_check(bb_roce_qp_rtr(&w->qp, &attr) == 0);
	if (b & 128)
		fuzz_check(bb_roce_qp_rts(&w->qp, &attr) == 0);
}

/* Checks what must hold after every step. */
static void
invariants(struct world *w)
{
	const struct bb_roce_req *req = &w->qp.req;
	bool requests = w->qp.state == BB_ROCE_RTS;

	fuzz_check(req->head - req->tail == w->posted - w->done);
	fuzz_check(w->qp.state != BB_ROCE_ERR || bb_roce_deadline(&w->qp) == UINT64_MAX);
	fuzz_check(w->qp.state != BB_ROCE_ERR || !bb_roce_busy(&w->qp));
	fuzz_check(w->qp.resp.have_recv == w->has_recv);
	fuzz_check(w->kept == w->qp.resp.n_out_of_order && w->kept < AHEADS);
	fuzz_check(w->kept == 0 || (w->qp.attr.type == BB_ROCE_RC && w->qp.state != BB_ROCE_ERR));
	/* A packet repeated alone was sent before, and others with it. */
	fuzz_check(!req->run_left || w->qp.state == BB_ROCE_ERR ||
		   (req->nxt == req->sent && outstanding(&w->qp, req->nxt) > 1 &&
		    req->tail != req->head));
	if (requests && w->qp.attr.type == BB_ROCE_RC) {
		fuzz_check(outstanding(&w->qp, req->nxt) <= outstanding(&w->qp, req->sent));
		fuzz_check(outstanding(&w->qp, req->sent) <= w->qp.attr.window);
		fuzz_check(req->rd_atomic <= w->qp.attr.max_rd_atomic);
		/* Progress is certain: an answer is awaited, or there is work to do. */
		fuzz_check(w->posted == w->done || bb_roce_deadline(&w->qp) != UINT64_MAX ||
			   bb_roce_busy(&w->qp));
	}
	if (requests && w->qp.attr.type != BB_ROCE_RC)
		fuzz_check(w->posted == w->done || bb_roce_busy(&w->qp));
}

/* With room each run does work; otherwise a poll loop would spin. */
static void
run(struct world *w)
{
	uint32_t n, runs = 0;

	do {
		bool busy = bb_roce_busy(&w->qp), refused;
		uint64_t done = w->done, dropped = w->qp.stats.drop_replay;

		w->room = 4;
		n = bb_roce_run(&w->qp, 4, w->now);
		fuzz_check(n <= 4);
		refused = w->qp.req.failed_synd != 0 || w->qp.state == BB_ROCE_ERR;
		fuzz_check(busy || n == 0);
		fuzz_check(!busy || n != 0 || refused || done != w->done ||
			   dropped != w->qp.stats.drop_replay || w->qp.resp.fatal != 0);
	} while (n != 0 && ++runs < 32);
}

static void
step(struct world *w)
{
	uint8_t b = fuzz_u8(&w->in);

	switch (b & 7) {
	case 0:
		post(w);
		break;
	case 1:
	case 2:
		take_packet(w, true);
		break;
	case 3:
		take_packet(w, false);
		break;
	case 4:
		w->room = b >> 3;
		(void)bb_roce_run(&w->qp, b >> 3, w->now);
		break;
	case 5:
		w->now += (uint64_t)1 << (b >> 3);
		if (w->now >= bb_roce_deadline(&w->qp))
			bb_roce_tick(&w->qp, w->now);
		break;
	case 6:
		w->receives += b >> 5;
		w->fault = b & 16 ? BB_SYN_LOCAL_PROT : b & 8 ? BB_SYN_REMOTE_ACCESS : 0;
		break;
	default:
		if (b == 0xff)
			bb_roce_qp_err(&w->qp);
		else if (b == 0xf7 && w->qp.state == BB_ROCE_RTR)
			fuzz_check(bb_roce_qp_rts(&w->qp, &w->qp.attr) == 0);
		else if (b < 64)
			w->net.tclass = b >> 3;
		else
			run(w);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct world *w = calloc(1, sizeof(*w));

	fuzz_check(w != NULL);
	w->local = calloc(1, 8192);
	w->remote = calloc(1, REMOTE);
	if (w->local == NULL || w->remote == NULL)
		abort();
	w->in = (struct fuzz_in){data, len};
	start(w, fuzz_u8(&w->in));
	for (uint32_t steps = 0; w->in.left != 0 && steps < 2000; steps++) {
		step(w);
		invariants(w);
	}
	bb_roce_qp_err(&w->qp);
	bb_roce_qp_flush(&w->qp, BB_SYN_WR_FLUSH);
	fuzz_check(w->done == w->posted && w->kept == 0);
	free(w->local);
	free(w->remote);
	free(w);
	return 0;
}
