/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A responder of the RoCEv2 engine with an arbitrary peer. Invariants:
 *
 * - memory is accessed only inside ranges checked for that request, and changes only inside what
 *   a key grants; atomics are aligned;
 * - only the packet with the expected PSN (UC: or one that begins a message) has an effect, on
 *   arrival or later; an atomic executes once, and a repeated answer has the same result;
 * - kept packets are requests of RC with room, and are released once each;
 * - a READ is answered with the bytes of the memory it named, packet by packet, whatever is
 *   requested again;
 * - an ACK names only executed packets, and only an RC peer gets answers;
 * - a receive completes once; nothing happens after a failure; the responder always becomes idle.
 *
 * Byte 0: type (0 RC, 1 UC, 2 UD), bit 2: RTS, bit 4: it keeps packets; byte 1: PSN offset from
 * the wrap. Then steps, by the low two bits of a byte: 0, 1 packet; 2 run; 3 receives, keys, room.
 */
#include <stdlib.h>
#include <string.h>

#include "../../fakes/roce_keep.h"
#include "bb_roce_priv.h"
#include "fuzz.h"

/* An implementation of a whole interface uses few of the parameters. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define MTU     256u
#define MEM     8192u
#define VA      0x100000ull /* address of the array */
#define READS   4u
#define HISTORY 64u /* READs and atomics that the model remembers, more than the engine does */
#define QKEY    0x1111u
#define AHEADS  8u
#define AT_LEN  2048u

/* Rights of the keys; the rkey is the index. */
static const struct {
	uint32_t at, len, access;
} grants[] = {
	{1024, AT_LEN,
	 1u << BB_ROCE_ACCESS_WRITE | 1u << BB_ROCE_ACCESS_READ | 1u << BB_ROCE_ACCESS_ATOMIC},
	{4096, 1000, 1u << BB_ROCE_ACCESS_READ},
	{6000, 700, 1u << BB_ROCE_ACCESS_WRITE},
};
#define GRANTS (sizeof(grants) / sizeof(grants[0]))

struct asked {
	uint32_t psn, len, rkey, ends; /* ends: last packets of repeated parts, a bit each */
	uint64_t va, orig;
	bool atomic;
};

struct world {
	struct bb_roce_qp qp;
	struct bb_roce_replay replay[READS];
	struct bb_roce_msg ring[2];
	struct bb_roce_net net;
	uint8_t *mem, *before;
	uint32_t gone; /* destroyed keys, a bit each */
	uint32_t no_right;
	uint32_t recvs, recv_room, takes, dones;
	uint8_t invalidate_status;
	uint32_t room;
	struct bb_roce_pkt *ahead[AHEADS];
	uint32_t kept, keep_room;

	/* The packet being delivered, and whether it may have an effect. */
	bool delivering, effect;
	uint32_t psn, epsn;
	bool checked[3];
	struct {
		uint32_t rkey, len;
		uint64_t va;
	} check[3];
	struct asked asked[HISTORY];
	uint32_t n_asked;
	bool failed;
};

static struct asked *
asked_new(struct world *w)
{
	struct asked *a = &w->asked[w->n_asked++ % HISTORY];

	memset(a, 0, sizeof(*a));
	a->psn = w->psn;
	return a;
}

/* Returns the newest request with the PSN. */
static struct asked *
asked_find(struct world *w, uint32_t psn)
{
	uint32_t i, n = w->n_asked < HISTORY ? w->n_asked : HISTORY;

	for (i = 1; i <= n; i++) {
		struct asked *a = &w->asked[(w->n_asked - i) % HISTORY];
		uint32_t packets = bb_roce_packets(a->len, MTU);

		if (((psn - a->psn) & BB_ROCE_PSN_MASK) < packets)
			return a;
	}
	return NULL;
}

/* Asserts that an effect is permitted: a suitable packet is delivered, or stored ones follow it. */
static struct world *
effect(void *ctx)
{
	struct world *w = ctx;

	fuzz_check(w->delivering && !w->failed);
	if (w->qp.attr.type == BB_ROCE_RC && w->qp.resp.max_out_of_order != 0 &&
	    w->qp.resp.epsn != w->epsn) {
		fuzz_check(w->psn == w->epsn || w->kept != 0);
		w->psn = w->epsn = w->qp.resp.epsn;
		w->effect = true;
	}
	fuzz_check(w->effect);
	return w;
}

static void
check_read(struct world *w, const struct bb_roce_pkt *pkt, const struct bb_roce_iov *iov,
	   uint32_t n)
{
	const struct asked *a = asked_find(w, pkt->psn);
	uint32_t i, off, len = 0, left;
	const uint8_t *at;
	bool last = pkt->opcode == BB_ROCE_READ_RESP_LAST || pkt->opcode == BB_ROCE_READ_RESP_ONLY;

	fuzz_check(a != NULL && !a->atomic);
	off = ((pkt->psn - a->psn) & BB_ROCE_PSN_MASK) * MTU;
	left = a->len - off;
	fuzz_check(pkt->len == (left < MTU ? left : MTU));
	fuzz_check(left <= MTU ? last : !last || (a->ends >> off / MTU & 1) != 0);
	fuzz_check(left != 0 || n == 0);
	if (left == 0)
		return;
	at = w->mem + (a->va + off - VA);
	for (i = 0; i < n; i++) {
		fuzz_check(iov[i].p == at + len);
		len += iov[i].len;
	}
	fuzz_check(len == pkt->len);
}

static bool
on_tx(void *ctx, struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt,
      const struct bb_roce_iov *iov, uint32_t n, const struct bb_roce_msg *msg)
{
	struct world *w = ctx;
	int32_t diff = bb_roce_psn_diff(pkt->psn, qp->resp.epsn);
	const struct asked *a;

	/* A CNP answers a marked packet, not a request. */
	if (pkt->opcode == BB_ROCE_CNP)
		return n == 0 && w->room != 0 && w->room-- != 0;
	fuzz_check(!w->failed && !w->delivering && msg == NULL && qp->attr.type == BB_ROCE_RC);
	fuzz_check(pkt->dqpn == qp->attr.dqpn);
	if (w->room == 0)
		return false;
	w->room--;
	switch (pkt->opcode) {
	case BB_ROCE_ACK:
		fuzz_check(n == 0 && pkt->len == 0);
		if ((pkt->syndrome & BB_ROCE_AETH_KIND) == BB_ROCE_AETH_ACK)
			fuzz_check(diff < 0);
		else if (pkt->syndrome == (BB_ROCE_AETH_NAK | BB_ROCE_NAK_ACCESS))
			fuzz_check(diff <= 0);
		else
			fuzz_check(diff == 0);
		break;
	case BB_ROCE_ATOMIC_ACK:
		a = asked_find(w, pkt->psn);
		fuzz_check(a != NULL && a->atomic && a->orig == pkt->orig);
		break;
	default:
		fuzz_check(bb_roce_ops[pkt->opcode].flags & BB_ROCE_F_READ_RESP);
		check_read(w, pkt, iov, n);
	}
	return true;
}

static enum bb_roce_take
on_recv_take(void *ctx, struct bb_roce_qp *qp)
{
	struct world *w = effect(ctx);

	fuzz_check(w->takes == w->dones);
	if (w->recvs == 0)
		return BB_ROCE_TAKE_EMPTY;
	if (w->recvs >= 254)
		return w->recvs == 255 ? BB_ROCE_TAKE_FAILED : BB_ROCE_TAKE_NEVER;
	w->recvs--;
	w->takes++;
	return BB_ROCE_TAKE_OK;
}

static uint8_t
on_recv_place(void *ctx, struct bb_roce_qp *qp, uint32_t off, const uint8_t *data, uint32_t len)
{
	struct world *w = effect(ctx);
	uint8_t *copy;

	fuzz_check(w->takes == w->dones + 1);
	fuzz_check(len <= MTU && off % MTU == 0);
	if (qp->attr.type != BB_ROCE_UD)
		fuzz_check(len != 0);
	if (len > w->recv_room || off > w->recv_room - len)
		return BB_SYN_LOCAL_LENGTH;
	copy = malloc(len);
	fuzz_check(copy != NULL || len == 0);
	if (len != 0)
		memcpy(copy, data, len);
	free(copy);
	return w->recv_room == 77 ? BB_SYN_LOCAL_PROT : 0;
}

static uint8_t
on_recv_done(void *ctx, struct bb_roce_qp *qp, const struct bb_roce_recv *r)
{
	struct world *w = ctx;

	/* A READ that fails later also ends the receive of a later SEND. */
	fuzz_check(!w->failed && (w->delivering ? effect(w) != NULL : r->status != 0));
	w->dones++;
	fuzz_check(w->takes == w->dones);
	return w->recv_room == 78 ? BB_SYN_LOCAL_QP_OP : 0;
}

static uint8_t
on_invalidate(void *ctx, struct bb_roce_qp *qp, uint32_t rkey)
{
	struct world *w = effect(ctx);

	if (w->invalidate_status == 0 && rkey < GRANTS)
		w->gone |= 1u << rkey;
	return w->invalidate_status;
}

static uint8_t
on_check(void *ctx, struct bb_roce_qp *qp, enum bb_roce_access access, uint32_t rkey, uint64_t va,
	 uint32_t len)
{
	struct world *w = effect(ctx);
	uint64_t off;

	w->checked[access] = false;
	if (w->no_right & 1u << access)
		return BB_SYN_REMOTE_INVAL_REQ;
	if (len != 0) {
		if (rkey >= GRANTS || (w->gone & 1u << rkey) ||
		    !(grants[rkey].access & 1u << access))
			return BB_SYN_REMOTE_ACCESS;
		off = va - VA - grants[rkey].at;
		if (len > grants[rkey].len || off > grants[rkey].len - len)
			return BB_SYN_REMOTE_ACCESS;
	}
	w->checked[access] = true;
	w->check[access].rkey = rkey;
	w->check[access].va = va;
	w->check[access].len = len;
	if (access == BB_ROCE_ACCESS_READ) {
		struct asked *a = asked_new(w);

		a->len = len;
		a->va = va;
		a->rkey = rkey;
	}
	return 0;
}

/* Asserts that the range is part of a checked one. */
static void
was_checked(const struct world *w, enum bb_roce_access access, uint32_t rkey, uint64_t va,
	    uint32_t len)
{
	uint64_t off = va - w->check[access].va;

	fuzz_check(w->checked[access] && rkey == w->check[access].rkey && len != 0);
	fuzz_check(len <= w->check[access].len && off <= w->check[access].len - len);
}

static uint8_t
on_write(void *ctx, struct bb_roce_qp *qp, uint32_t rkey, uint64_t va, const uint8_t *data,
	 uint32_t len)
{
	struct world *w = effect(ctx);

	was_checked(w, BB_ROCE_ACCESS_WRITE, rkey, va, len);
	if (w->gone & 1u << rkey)
		return BB_SYN_REMOTE_ACCESS;
	memcpy(w->mem + (va - VA), data, len);
	return 0;
}

static int
on_read(void *ctx, struct bb_roce_qp *qp, uint32_t rkey, uint64_t va, uint32_t len,
	struct bb_roce_iov iov[BB_ROCE_MAX_IOV])
{
	struct world *w = ctx;
	uint32_t i, n = 0;

	fuzz_check(!w->delivering && !w->failed && len != 0 && len <= MTU);
	/* Part of a READ that was checked at any earlier time. */
	for (i = 0; i < w->n_asked && i < HISTORY && n == 0; i++) {
		const struct asked *a = &w->asked[i];
		uint64_t off = va - a->va;

		n = !a->atomic && a->rkey == rkey && len <= a->len && off <= a->len - len;
	}
	fuzz_check(n != 0);
	if (w->gone & 1u << rkey)
		return -BB_SYN_REMOTE_ACCESS;
	iov[0].p = w->mem + (va - VA);
	iov[0].len = len;
	return 1;
}

static uint8_t
on_atomic(void *ctx, struct bb_roce_qp *qp, uint8_t kind, uint32_t rkey, uint64_t va,
	  uint64_t swap_add, uint64_t compare, uint64_t *orig)
{
	struct world *w = effect(ctx);
	struct asked *a;
	uint64_t v;

	fuzz_check((va & 7) == 0);
	was_checked(w, BB_ROCE_ACCESS_ATOMIC, rkey, va, 8);
	memcpy(&v, w->mem + (va - VA), 8);
	*orig = v;
	a = asked_new(w);
	a->atomic = true;
	a->len = 8;
	a->orig = v;
	/* One atomic per packet. */
	w->effect = false;
	if (kind == BB_ROCE_MSG_FETCH_ADD)
		v += swap_add;
	else if (v == compare)
		v = swap_add;
	memcpy(w->mem + (va - VA), &v, 8);
	return 0;
}

static void
on_failed(void *ctx, struct bb_roce_qp *qp, bool responder, uint8_t synd)
{
	struct world *w = ctx;

	fuzz_check(responder && !w->failed && qp->state == BB_ROCE_ERR && synd != 0);
	w->failed = true;
}

static void
on_established(void *ctx, struct bb_roce_qp *qp)
{
	fuzz_check(((struct world *)ctx)->delivering && qp->state == BB_ROCE_RTR);
}

static struct bb_roce_pkt *
on_keep(void *ctx, struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt)
{
	struct world *w = ctx;

	fuzz_check(w->delivering && !w->failed && qp->attr.type == BB_ROCE_RC);
	fuzz_check(bb_roce_psn_distance(qp->resp.epsn, pkt->psn) - 1 < AHEADS - 1);
	if (w->kept >= w->keep_room)
		return NULL;
	w->kept++;
	return roce_keep(pkt);
}

static void
on_unkeep(void *ctx, struct bb_roce_qp *qp, struct bb_roce_pkt *pkt)
{
	struct world *w = ctx;

	fuzz_check(w->kept != 0);
	w->kept--;
	free(pkt);
}

static const struct bb_roce_ops ops = {
	.tx = on_tx,
	.recv_take = on_recv_take,
	.recv_place = on_recv_place,
	.recv_done = on_recv_done,
	.invalidate = on_invalidate,
	.remote_check = on_check,
	.remote_write = on_write,
	.remote_read = on_read,
	.remote_atomic = on_atomic,
	.failed = on_failed,
	.established = on_established,
	.store_pkt = on_keep,
	.release_pkt = on_unkeep,
};

/* Asserts that memory that no key lets a peer write is unchanged. */
static void
check_memory(const struct world *w)
{
	uint32_t at = 0, i;

	for (i = 0; i < GRANTS; i++) {
		if (!(grants[i].access & 1u << BB_ROCE_ACCESS_WRITE))
			continue;
		fuzz_check(memcmp(w->mem + at, w->before + at, grants[i].at - at) == 0);
		at = grants[i].at + grants[i].len;
	}
	fuzz_check(memcmp(w->mem + at, w->before + at, MEM - at) == 0);
}

/* Records where a request ends that repeats a part of a READ, of at most AT_LEN bytes. */
static void
part_asked(struct world *w, const struct bb_roce_pkt *pkt)
{
	struct asked *a = asked_find(w, pkt->psn);
	uint32_t end;

	if (pkt->opcode != BB_ROCE_READ_REQUEST || a == NULL || pkt->dmalen > AT_LEN)
		return;
	end = ((pkt->psn - a->psn) & BB_ROCE_PSN_MASK) + bb_roce_packets(pkt->dmalen, MTU) - 1;
	if (end < AT_LEN / MTU)
		a->ends |= 1u << end;
}

static void
deliver(struct world *w, const uint8_t *p, size_t len)
{
	uint32_t flags, epsn = w->qp.resp.epsn;
	struct bb_roce_pkt pkt;

	if (bb_roce_parse(&pkt, p, len) != BB_ROCE_OK)
		return;
	flags = bb_roce_ops[pkt.opcode].flags;
	w->delivering = true;
	w->psn = pkt.psn;
	w->epsn = epsn;
	w->effect = w->qp.attr.type == BB_ROCE_UD || pkt.psn == epsn ||
		    (w->qp.attr.type == BB_ROCE_UC && (flags & BB_ROCE_F_FIRST));
	part_asked(w, &pkt);
	bb_roce_rx(&w->qp, &pkt, &w->net, 0);
	w->delivering = false;
	fuzz_check(w->kept == w->qp.resp.n_out_of_order);
	fuzz_check(w->kept == 0 || w->qp.resp.out_of_order[w->qp.resp.epsn % AHEADS] == NULL ||
		   w->qp.resp.fatal != 0);
	check_memory(w);
}

/*
 * A packet: flags, opcode, PSN relative to the expected one, address and length of the RETH,
 * payload bytes. Then the input edits the resulting bytes.
 */
static void
step_packet(struct world *w, struct fuzz_in *in)
{
	uint8_t flags = fuzz_u8(in), hdr[BB_ROCE_MAX_HDR], *p;
	struct bb_roce_pkt pkt = {.opcode = fuzz_u8(in), .pkey = 0xffff, .dqpn = 0x100};
	uint32_t i, n, hdr_len, psn = (uint32_t)(int8_t)fuzz_u8(in);

	if (flags & 0x10)
		psn <<= 16;
	pkt.opcode |= (uint8_t)w->qp.attr.type;
	pkt.psn = bb_roce_psn_add(w->qp.resp.epsn, psn);
	pkt.flags = (uint8_t)((flags & 1 ? BB_ROCE_ACKREQ : 0) | (flags & 2 ? BB_ROCE_SE : 0));
	pkt.rkey = flags >> 2 & 3;
	pkt.qkey = flags & 4 ? 0 : QKEY;
	pkt.va = VA + (pkt.rkey < GRANTS ? grants[pkt.rkey].at : 0) +
		 (uint64_t)(int64_t)(int16_t)fuzz_u16(in);
	pkt.dmalen = fuzz_u16(in);
	pkt.swap_add = pkt.dmalen;
	pkt.imm = pkt.rkey;
	pkt.len = fuzz_u16(in) % (MTU + 8);
	hdr_len = bb_roce_build(hdr, &pkt);
	if (hdr_len == 0)
		return;
	if (!(bb_roce_ops[pkt.opcode].flags & BB_ROCE_F_PAYLOAD))
		pkt.len = 0;
	n = hdr_len + pkt.len + bb_roce_pad(pkt.len);
	/* Allocated with the exact size, for AddressSanitizer. */
	p = malloc(n);
	fuzz_check(p != NULL);
	memcpy(p, hdr, hdr_len);
	if (pkt.len == 0)
		p[1] &= 0xcf;
	memset(p + hdr_len, (int)(w->n_asked + pkt.psn), n - hdr_len);
	for (i = flags >> 5; i != 0; i--) {
		uint8_t at = fuzz_u8(in);

		p[at % hdr_len] ^= fuzz_u8(in);
	}
	deliver(w, p, n);
	free(p);
}

static void
step_change(struct world *w, struct fuzz_in *in)
{
	uint8_t what = fuzz_u8(in), value = fuzz_u8(in);

	if (what >= 240) {
		w->keep_room = value;
		return;
	}
	switch (what % 5) {
	case 0:
		w->recvs = value;
		break;
	case 1:
		w->recv_room = value * 8u;
		if (value >= 250)
			w->recv_room = value == 250 ? 77 : value == 251 ? 78 : 1u << 30;
		break;
	case 2:
		w->gone = value;
		break;
	case 3:
		w->no_right = value;
		break;
	default:
		w->invalidate_status = value;
	}
}

static void
start(struct world *w, uint8_t how, uint8_t psn)
{
	static const enum bb_roce_type types[] = {BB_ROCE_RC, BB_ROCE_UC, BB_ROCE_UD, BB_ROCE_RC};
	enum bb_roce_type type = types[how & 3];
	bool rc = type == BB_ROCE_RC;
	struct bb_roce_mem mem = {w->ring,        2,        w->replay,
				  rc ? READS : 0, w->ahead, how & 16 ? AHEADS : 0};
	struct bb_roce_attr attr = {
		.type = type,
		.mtu = MTU,
		.pkey = 0xffff,
		.qpn = 0x100,
		.dqpn = 0x200,
		.qkey = QKEY,
		.rq_psn = (0u - psn) & BB_ROCE_PSN_MASK,
		.max_dest_rd_atomic = how & 8 && rc ? 1 : mem.replays,
		.min_rnr_timer = 1,
		.window = 16,
	};

	memset(w, 0, sizeof(*w));
	w->mem = malloc(MEM);
	w->before = malloc(MEM);
	fuzz_check(w->mem != NULL && w->before != NULL);
	for (uint32_t i = 0; i < MEM; i++)
		w->mem[i] = w->before[i] = (uint8_t)(i ^ i >> 8);
	w->recvs = 4;
	w->recv_room = 1024;
	w->keep_room = AHEADS;
	bb_roce_qp_init(&w->qp, &ops, w, &mem);
	fuzz_check(bb_roce_qp_rtr(&w->qp, &attr) == 0);
	if (how & 4)
		fuzz_check(bb_roce_qp_rts(&w->qp, &attr) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fuzz_in in = {data, len};
	uint32_t i, sent;
	struct world w;
	uint8_t how = fuzz_u8(&in);

	start(&w, how, fuzz_u8(&in));
	while (in.left != 0) {
		uint8_t step = fuzz_u8(&in) & 3;

		if (step < 2) {
			step_packet(&w, &in);
		} else if (step == 2) {
			w.room = fuzz_u8(&in);
			(void)bb_roce_run(&w.qp, fuzz_u8(&in), 0);
		} else {
			step_change(&w, &in);
		}
	}
	/* It becomes idle after READs of at most 64 KiB each and one more answer. */
	for (i = 0, sent = 0; bb_roce_busy(&w.qp); i++) {
		fuzz_check(i < 4 && sent <= READS * 256 + 1);
		w.room = UINT32_MAX;
		sent += bb_roce_run(&w.qp, READS * 256 + 2, 0);
	}
	fuzz_check(w.takes - w.dones <= 1);
	bb_roce_qp_err(&w.qp);
	fuzz_check(w.kept == 0 && w.qp.resp.n_out_of_order == 0);
	free(w.mem);
	free(w.before);
	return 0;
}
