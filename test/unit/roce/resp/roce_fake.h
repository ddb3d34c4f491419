/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A queue pair of the RoCEv2 engine with all that it needs: one key for a part of an array,
 * receives of one size, and a record of sent packets, completions and failures.
 */
#ifndef ROCE_FAKE_H
#define ROCE_FAKE_H

#include <errno.h>
#include <string.h>

#include "../../../fakes/roce_keep.h"
#include "bb_roce_priv.h"
#include "bb_test_on.h"

/* An implementation of a whole interface uses few of the parameters. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define FAKE_MTU        256u
#define FAKE_MEM        8192u
#define FAKE_VA         0x7000000000001000ull /* address of the key's first byte */
#define FAKE_START      1024u                 /* its offset in the array */
#define FAKE_LEN        4096u
#define FAKE_KEY        0x1234u
#define FAKE_PSN        0xfffffeu /* the second packet after it wraps */
#define FAKE_READS      4u
#define FAKE_AHEADS     8u
#define FAKE_MAX_AHEADS 64u
#define FAKE_QKEY       0x11111111u
#define FAKE_LOG        128u

#define RC(op) (BB_ROCE_RC | BB_ROCE_##op)
#define UC(op) (BB_ROCE_UC | BB_ROCE_##op)
#define UD(op) (BB_ROCE_UD | BB_ROCE_##op)
#define ACK    (BB_ROCE_AETH_ACK | BB_ROCE_CREDITS_OFF)
#define NAK(c) (BB_ROCE_AETH_NAK | BB_ROCE_NAK_##c)

struct fake_sent {
	struct bb_roce_pkt pkt;
	uint8_t data[FAKE_MTU];
	uint32_t len;
	uint64_t cookie; /* of its message */
};

struct fake {
	struct bb_roce_qp qp;
	struct bb_roce_msg ring[8];
	struct bb_roce_replay replay[FAKE_READS];
	struct bb_roce_net net;

	struct bb_roce_pkt *ahead[FAKE_MAX_AHEADS];
	uint32_t keep_room; /* packets that it may hold */
	uint32_t n_kept;    /* packets held now, and in all */
	uint32_t n_keeps;

	uint8_t mem[FAKE_MEM];
	uint32_t no_right; /* bits of enum bb_roce_access that the queue pair lacks */
	bool key_gone;
	uint32_t checks, writes, atomics;

	uint32_t recvs, recv_room;
	bool recv_broken, recv_never;
	uint8_t recv_status; /* result of recv_place() */
	uint8_t recv_data[FAKE_MEM];
	uint32_t takes, places;
	uint8_t done_status; /* result of recv_done() */
	struct bb_roce_recv done[FAKE_LOG];
	uint32_t n_done;
	uint8_t invalidate_status;
	uint32_t invalidated, n_invalidated;
	uint32_t done_at_invalidate;

	struct fake_sent sent[FAKE_LOG];
	uint32_t n_sent, seen; /* seen: checked by the test */
	uint32_t room;         /* packets that the port accepts */

	uint8_t gather_status;
	uint64_t completed[FAKE_LOG];
	uint8_t status[FAKE_LOG];
	uint32_t n_completed;

	uint32_t failed, established;
	bool failed_responder;
	uint8_t failed_synd;
	uint32_t sent_at_failed;
};

static inline bool
fake_tx(void *ctx, struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt,
	const struct bb_roce_iov *iov, uint32_t n, const struct bb_roce_msg *msg)
{
	struct fake *f = ctx;
	struct fake_sent *s;

	assert_ptr_equal(qp, &f->qp);
	if (f->room == 0)
		return false;
	f->room--;
	assert_true(f->n_sent < FAKE_LOG);
	s = &f->sent[f->n_sent++];
	s->pkt = *pkt;
	s->cookie = msg != NULL ? msg->cookie : 0;
	s->len = 0;
	for (uint32_t i = 0; i < n; i++) {
		assert_true(iov[i].len <= FAKE_MTU - s->len);
		memcpy(s->data + s->len, iov[i].p, iov[i].len);
		s->len += iov[i].len;
	}
	assert_int_equal(s->len, pkt->len);
	return true;
}

/* Returns the memory in two pieces where possible. */
static inline int
fake_pieces(const uint8_t *p, uint32_t len, struct bb_roce_iov *iov)
{
	uint32_t half = len / 2;

	iov[0].p = p;
	iov[0].len = len - half;
	iov[1].p = p + len - half;
	iov[1].len = half;
	return half != 0 ? 2 : 1;
}

static inline int
fake_gather(void *ctx, struct bb_roce_qp *qp, const struct bb_roce_msg *msg, uint32_t off,
	    uint32_t len, struct bb_roce_iov iov[BB_ROCE_MAX_IOV])
{
	struct fake *f = ctx;

	if (f->gather_status != 0)
		return -f->gather_status;
	assert_true(off <= msg->len && len <= msg->len - off);
	return fake_pieces(f->mem + off, len, iov);
}

static inline void
fake_complete(void *ctx, struct bb_roce_qp *qp, const struct bb_roce_msg *msg, uint8_t status)
{
	struct fake *f = ctx;

	f->completed[f->n_completed] = msg->cookie;
	f->status[f->n_completed++] = status;
}

static inline enum bb_roce_take
fake_recv_take(void *ctx, struct bb_roce_qp *qp)
{
	struct fake *f = ctx;

	if (f->recv_broken)
		return BB_ROCE_TAKE_FAILED;
	if (f->recv_never)
		return BB_ROCE_TAKE_NEVER;
	if (f->recvs == 0)
		return BB_ROCE_TAKE_EMPTY;
	f->recvs--;
	f->takes++;
	return BB_ROCE_TAKE_OK;
}

static inline uint8_t
fake_recv_place(void *ctx, struct bb_roce_qp *qp, uint32_t off, const uint8_t *data, uint32_t len)
{
	struct fake *f = ctx;

	assert_true(qp->resp.have_recv);
	f->places++;
	if (f->recv_status != 0)
		return f->recv_status;
	if (qp->attr.type == BB_ROCE_UD) {
		if (f->recv_room < 40)
			return BB_SYN_LOCAL_LENGTH;
		off += 40;
	}
	if (len > f->recv_room || off > f->recv_room - len)
		return BB_SYN_LOCAL_LENGTH;
	if (len != 0)
		memcpy(f->recv_data + off, data, len);
	return 0;
}

static inline uint8_t
fake_recv_done(void *ctx, struct bb_roce_qp *qp, const struct bb_roce_recv *r)
{
	struct fake *f = ctx;

	assert_true(f->n_done < f->takes); /* each receive completes once */
	f->done[f->n_done++] = *r;
	return f->done_status;
}

static inline uint8_t
fake_invalidate(void *ctx, struct bb_roce_qp *qp, uint32_t rkey)
{
	struct fake *f = ctx;

	f->invalidated = rkey;
	f->n_invalidated++;
	f->done_at_invalidate = f->n_done;
	return f->invalidate_status;
}

/* Returns the address behind the key, NULL if it is out of range. */
static inline uint8_t *
fake_at(struct fake *f, uint32_t rkey, uint64_t va, uint64_t len)
{
	uint64_t off = va - FAKE_VA;

	if (f->key_gone || rkey != FAKE_KEY || len > FAKE_LEN || off > FAKE_LEN - len)
		return NULL;
	return f->mem + FAKE_START + off;
}

static inline uint8_t
fake_check(void *ctx, struct bb_roce_qp *qp, enum bb_roce_access access, uint32_t rkey, uint64_t va,
	   uint32_t len)
{
	struct fake *f = ctx;

	f->checks++;
	if (f->no_right & 1u << access)
		return BB_SYN_REMOTE_INVAL_REQ;
	return len == 0 || fake_at(f, rkey, va, len) != NULL ? 0 : BB_SYN_REMOTE_ACCESS;
}

static inline uint8_t
fake_write(void *ctx, struct bb_roce_qp *qp, uint32_t rkey, uint64_t va, const uint8_t *data,
	   uint32_t len)
{
	struct fake *f = ctx;
	uint8_t *p = fake_at(f, rkey, va, len);

	f->writes++;
	if (p == NULL)
		return BB_SYN_REMOTE_ACCESS;
	memcpy(p, data, len);
	return 0;
}

static inline int
fake_read(void *ctx, struct bb_roce_qp *qp, uint32_t rkey, uint64_t va, uint32_t len,
	  struct bb_roce_iov iov[BB_ROCE_MAX_IOV])
{
	struct fake *f = ctx;
	uint8_t *p = fake_at(f, rkey, va, len);

	assert_int_not_equal(len, 0);
	return p == NULL ? -BB_SYN_REMOTE_ACCESS : fake_pieces(p, len, iov);
}

static inline uint8_t
fake_atomic(void *ctx, struct bb_roce_qp *qp, uint8_t kind, uint32_t rkey, uint64_t va,
	    uint64_t swap_add, uint64_t compare, uint64_t *orig)
{
	struct fake *f = ctx;
	uint8_t *p = fake_at(f, rkey, va, 8);
	uint64_t v;

	f->atomics++;
	if (p == NULL)
		return BB_SYN_REMOTE_ACCESS;
	memcpy(&v, p, 8);
	*orig = v;
	if (kind == BB_ROCE_MSG_FETCH_ADD)
		v += swap_add;
	else if (v == compare)
		v = swap_add;
	memcpy(p, &v, 8);
	return 0;
}

static inline void
fake_failed(void *ctx, struct bb_roce_qp *qp, bool responder, uint8_t synd)
{
	struct fake *f = ctx;

	assert_int_equal(qp->state, BB_ROCE_ERR);
	f->failed++;
	f->failed_responder = responder;
	f->failed_synd = synd;
	f->sent_at_failed = f->n_sent;
}

static inline void
fake_established(void *ctx, struct bb_roce_qp *qp)
{
	struct fake *f = ctx;

	f->established++;
}

static inline struct bb_roce_pkt *
fake_keep(void *ctx, struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt)
{
	struct fake *f = ctx;

	if (f->n_kept >= f->keep_room)
		return NULL;
	f->n_kept++;
	f->n_keeps++;
	return roce_keep(pkt);
}

static inline void
fake_unkeep(void *ctx, struct bb_roce_qp *qp, struct bb_roce_pkt *pkt)
{
	struct fake *f = ctx;

	assert_int_not_equal(f->n_kept, 0);
	f->n_kept--;
	free(pkt);
}

static const struct bb_roce_ops fake_ops = {
	.tx = fake_tx,
	.gather = fake_gather,
	.complete = fake_complete,
	.recv_take = fake_recv_take,
	.recv_place = fake_recv_place,
	.recv_done = fake_recv_done,
	.invalidate = fake_invalidate,
	.remote_check = fake_check,
	.remote_write = fake_write,
	.remote_read = fake_read,
	.remote_atomic = fake_atomic,
	.failed = fake_failed,
	.established = fake_established,
	.store_pkt = fake_keep,
	.release_pkt = fake_unkeep,
};

/* Makes a queue pair in RTR with two receives of 1024 bytes. It keeps up to @aheads packets. */
static inline void
fake_init_ahead(struct fake *f, enum bb_roce_type type, uint32_t aheads)
{
	struct bb_roce_mem mem = {f->ring,  8,     f->replay, type == BB_ROCE_RC ? FAKE_READS : 0,
				  f->ahead, aheads};
	struct bb_roce_attr attr = {
		.type = type,
		.mtu = FAKE_MTU,
		.pkey = 0xffff,
		.qpn = 0x100,
		.dqpn = 0x200,
		.qkey = FAKE_QKEY,
		.rq_psn = FAKE_PSN,
		.max_dest_rd_atomic = type == BB_ROCE_RC ? FAKE_READS : 0,
		.min_rnr_timer = 12,
	};

	memset(f, 0, sizeof(*f));
	for (uint32_t i = 0; i < FAKE_MEM; i++)
		f->mem[i] = (uint8_t)(i * 7 + (i >> 8));
	f->recvs = 2;
	f->recv_room = 1024;
	f->room = FAKE_LOG;
	f->keep_room = FAKE_AHEADS;
	bb_roce_qp_init(&f->qp, &fake_ops, f, &mem);
	assert_int_equal(bb_roce_qp_rtr(&f->qp, &attr), 0);
}

/* Makes a queue pair that keeps no packets. */
static inline void
fake_init(struct fake *f, enum bb_roce_type type)
{
	fake_init_ahead(f, type, 0);
}

/* A test that makes its responders itself, and one on a responder of @type. */
#define T_OWN_FAKE(name)   TEST_ON(NULL, NULL, struct fake, (void)0, (void)0, name)
#define T_FAKE(type, name) TEST_ON(NULL, NULL, struct fake, fake_init(f, type), (void)0, name)

/* Returns the PSN of packet @n. */
static inline uint32_t
fake_psn(int n)
{
	return (FAKE_PSN + (uint32_t)n) & BB_ROCE_PSN_MASK;
}

/* Returns payload byte @i of packet @n. */
static inline uint8_t
fake_byte(int n, uint32_t i)
{
	return (uint8_t)(n * 31 + (int)i * 3 + 1);
}

/*
 * Receives packet @n of the stream with @len bytes of payload. @more: its other fields, or NULL.
 */
static inline void
fake_rx(struct fake *f, uint8_t opcode, int n, uint32_t len, const struct bb_roce_pkt *more)
{
	struct bb_roce_pkt pkt = {0};
	uint8_t data[2 * FAKE_MTU];

	if (more != NULL)
		pkt = *more;
	assert_true(len <= sizeof(data));
	for (uint32_t i = 0; i < len; i++)
		data[i] = fake_byte(n, i);
	pkt.opcode = opcode;
	pkt.pkey = 0xffff;
	pkt.dqpn = f->qp.attr.qpn;
	pkt.psn = fake_psn(n);
	pkt.len = len;
	pkt.payload = data;
	bb_roce_rx(&f->qp, &pkt, &f->net, 0);
	memset(data, 0xdd, sizeof(data)); /* the queue pair must not hold a pointer to it */
}

/* Receives a packet with AckReq. */
static inline void
fake_rx_ack(struct fake *f, uint8_t opcode, int n, uint32_t len)
{
	const struct bb_roce_pkt more = {.flags = BB_ROCE_ACKREQ};

	fake_rx(f, opcode, n, len, &more);
}

static inline void
fake_rx_rdma(struct fake *f, uint8_t opcode, int n, uint32_t len, uint64_t off, uint32_t dmalen)
{
	const struct bb_roce_pkt more = {
		.flags = BB_ROCE_ACKREQ, .va = FAKE_VA + off, .rkey = FAKE_KEY, .dmalen = dmalen};

	fake_rx(f, opcode, n, len, &more);
}

static inline void
fake_rx_atomic(struct fake *f, uint8_t opcode, int n, uint64_t off, uint64_t swap_add,
	       uint64_t compare)
{
	const struct bb_roce_pkt more = {
		.va = FAKE_VA + off, .rkey = FAKE_KEY, .swap_add = swap_add, .compare = compare};

	fake_rx(f, opcode, n, 0, &more);
}

static inline uint32_t
fake_run(struct fake *f, uint32_t budget)
{
	return bb_roce_run(&f->qp, budget, 0);
}

/* Returns the next sent packet, which must exist. */
static inline const struct fake_sent *
fake_next(struct fake *f)
{
	assert_true(f->seen < f->n_sent);
	return &f->sent[f->seen++];
}

/* Asserts that nothing else is sent. */
static inline void
fake_quiet(struct fake *f)
{
	assert_int_equal(fake_run(f, 64), 0);
	assert_int_equal(f->seen, f->n_sent);
	assert_false(bb_roce_busy(&f->qp));
}

/* Asserts that exactly one ACK or NAK is sent. */
static inline void
fake_expect(struct fake *f, uint8_t syndrome, int n, uint32_t msn)
{
	const struct fake_sent *s;

	(void)fake_run(f, 64);
	s = fake_next(f);
	assert_fields(s->pkt, opcode, RC(ACK), syndrome, syndrome, psn, fake_psn(n), msn, msn);
	assert_fields(s->pkt, dqpn, 0x200, pkey, 0xffff);
	fake_quiet(f);
}

/* Asserts that a fatal NAK is sent and the queue pair fails afterwards. */
static inline void
fake_expect_fatal(struct fake *f, uint8_t syndrome, int n, uint32_t msn, uint8_t synd)
{
	uint32_t before = f->n_sent;

	assert_int_equal(f->failed, 0);
	fake_expect(f, syndrome, n, msn);
	assert_int_equal(f->failed, 1);
	assert_true(f->failed_responder);
	assert_fields(*f, failed_synd, synd, sent_at_failed, before + 1);
}

/* Asserts that the next packet is part of a READ response, from byte @off of the key. */
static inline void
fake_expect_read(struct fake *f, uint8_t opcode, int n, uint32_t off, uint32_t len)
{
	const struct fake_sent *s = fake_next(f);

	assert_fields(*s, pkt.opcode, opcode, pkt.psn, fake_psn(n), len, len);
	assert_memory_equal(s->data, f->mem + FAKE_START + off, len);
	if (opcode != RC(READ_RESP_MIDDLE))
		assert_int_equal(s->pkt.syndrome, ACK);
}

/* Asserts that @p holds the message of packets @n to @last as sent. */
static inline void
fake_expect_data(const uint8_t *p, int n, int last, uint32_t last_len)
{
	for (; n <= last; n++) {
		uint32_t len = n == last ? last_len : FAKE_MTU;

		for (uint32_t i = 0; i < len; i++)
			assert_int_equal(*p++, fake_byte(n, i));
	}
}

#endif
