/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A queue pair of the RoCEv2 engine with a caller that records the calls. The test is the peer:
 * it checks what was sent and builds the answers.
 */
#ifndef ROCE_REQ_FAKE_H
#define ROCE_REQ_FAKE_H

#include <string.h>

#include "bb_cqe.h"
#include "bb_roce_qp.h"
#include "bb_test_on.h"

/* An implementation of a whole interface uses few of the parameters. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

enum {
	RF_SLOTS = 32,
	RF_LOG = 512,
	RF_MTU = 256,
	RF_PSN = 100,
	RF_RKEY = 0x4711,
};
#define RF_RADDR   UINT64_C(0x7f0000001003)
#define RF_US      UINT64_C(1000)
#define RF_TIMEOUT (UINT64_C(4096) << 14)
#define RF_ACK     (BB_ROCE_AETH_ACK | BB_ROCE_CREDITS_OFF)
#define RF_NAK(n)  (BB_ROCE_AETH_NAK | (n))

struct rf_tx {
	struct bb_roce_pkt pkt;
	uint8_t payload[4096];
	uint64_t cookie;
};

struct rf_done {
	uint64_t cookie;
	uint8_t status;
};

struct rf {
	struct bb_roce_qp qp;
	struct bb_roce_msg ring[RF_SLOTS];
	struct bb_roce_replay replay[4];
	struct bb_roce_attr attr;
	struct bb_roce_net net; /* addresses of received packets */
	uint64_t now, posted;

	uint32_t room; /* packets that tx accepts; UINT32_MAX: unlimited */
	struct rf_tx tx[RF_LOG];
	uint32_t ntx, seen;
	struct rf_done done[RF_LOG];
	uint32_t ndone;
	uint32_t nfailed;
	bool failed_responder;
	uint8_t failed_synd;

	uint64_t bad_cookie; /* gather, place and atomic_result fail with status bad for this
			      * cookie */
	uint8_t bad;
	uint8_t scratch[4096];
	uint32_t placed; /* bytes of the current READ placed so far, in order and each once */
	bool blind;      /* skip the check of their values */
	uint64_t orig;
};

/* Returns byte @off of the memory of message @cookie. */
static inline uint8_t
rf_byte(uint64_t cookie, uint32_t off)
{
	return (uint8_t)(cookie * 37 + off + off / 251);
}

static bool
rf_op_tx(void *ctx, struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt,
	 const struct bb_roce_iov *iov, uint32_t n, const struct bb_roce_msg *msg)
{
	struct rf *f = ctx;
	uint32_t i, len = 0;
	struct rf_tx *tx;

	if (f->room == 0)
		return false;
	if (f->room != UINT32_MAX)
		f->room--;
	tx = &f->tx[f->ntx++ % RF_LOG];
	tx->pkt = *pkt;
	tx->cookie = msg == NULL ? UINT64_MAX : msg->cookie;
	for (i = 0; i < n; i++) {
		assert_true(iov[i].len <= sizeof(tx->payload) - len);
		memcpy(tx->payload + len, iov[i].p, iov[i].len);
		len += iov[i].len;
	}
	assert_int_equal(len, pkt->len);
	return true;
}

static int
rf_op_gather(void *ctx, struct bb_roce_qp *qp, const struct bb_roce_msg *msg, uint32_t off,
	     uint32_t len, struct bb_roce_iov iov[BB_ROCE_MAX_IOV])
{
	struct rf *f = ctx;
	uint32_t i, half = len / 2;

	assert_true(len <= qp->attr.mtu && len <= msg->len && off <= msg->len - len && len != 0);
	if (f->bad != 0 && msg->cookie == f->bad_cookie)
		return -(int)f->bad;
	for (i = 0; i < len; i++)
		f->scratch[i] = rf_byte(msg->cookie, off + i);
	iov[0] = (struct bb_roce_iov){f->scratch, half};
	iov[1] = (struct bb_roce_iov){f->scratch + half, len - half};
	return 2;
}

static uint8_t
rf_op_place(void *ctx, struct bb_roce_qp *qp, const struct bb_roce_msg *msg, uint32_t off,
	    const uint8_t *data, uint32_t len)
{
	struct rf *f = ctx;

	assert_true(len <= msg->len && off <= msg->len - len && len != 0);
	if (f->bad != 0 && msg->cookie == f->bad_cookie)
		return f->bad;
	assert_int_equal(off, f->placed);
	for (uint32_t i = 0; i < len && !f->blind; i++)
		if (data[i] != rf_byte(msg->cookie, off + i))
			fail_msg("byte %u of message %u", off + i, (unsigned int)msg->cookie);
	f->placed += len;
	return 0;
}

static uint8_t
rf_op_atomic_result(void *ctx, struct bb_roce_qp *qp, const struct bb_roce_msg *msg, uint64_t orig)
{
	struct rf *f = ctx;

	if (f->bad != 0 && msg->cookie == f->bad_cookie)
		return f->bad;
	f->orig = orig;
	return 0;
}

static void
rf_op_complete(void *ctx, struct bb_roce_qp *qp, const struct bb_roce_msg *msg, uint8_t status)
{
	struct rf *f = ctx;

	f->placed = 0;
	f->done[f->ndone++ % RF_LOG] = (struct rf_done){msg->cookie, status};
}

static inline void
rf_op_complete_run(void *ctx, struct bb_roce_qp *qp, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		rf_op_complete(ctx, qp, &qp->req.ring[(qp->req.tail + i) & qp->req.mask], 0);
}

static void
rf_op_failed(void *ctx, struct bb_roce_qp *qp, bool responder, uint8_t synd)
{
	struct rf *f = ctx;

	assert_int_equal(qp->state, BB_ROCE_ERR);
	f->nfailed++;
	f->failed_responder = responder;
	f->failed_synd = synd;
}

static enum bb_roce_take
rf_op_recv_take(void *ctx, struct bb_roce_qp *qp)
{
	return BB_ROCE_TAKE_EMPTY;
}

static uint8_t
rf_op_remote_check(void *ctx, struct bb_roce_qp *qp, enum bb_roce_access access, uint32_t rkey,
		   uint64_t va, uint32_t len)
{
	return rkey == RF_RKEY ? 0 : BB_SYN_REMOTE_ACCESS;
}

static uint8_t
rf_op_remote_write(void *ctx, struct bb_roce_qp *qp, uint32_t rkey, uint64_t va,
		   const uint8_t *data, uint32_t len)
{
	return 0;
}

static int
rf_op_remote_read(void *ctx, struct bb_roce_qp *qp, uint32_t rkey, uint64_t va, uint32_t len,
		  struct bb_roce_iov iov[BB_ROCE_MAX_IOV])
{
	struct rf *f = ctx;

	iov[0] = (struct bb_roce_iov){f->scratch, len};
	return 1;
}

static void
rf_op_established(void *ctx, struct bb_roce_qp *qp)
{
}

static const struct bb_roce_ops rf_ops = {
	.tx = rf_op_tx,
	.gather = rf_op_gather,
	.place = rf_op_place,
	.atomic_result = rf_op_atomic_result,
	.complete = rf_op_complete,
	.failed = rf_op_failed,
	.recv_take = rf_op_recv_take,
	.remote_check = rf_op_remote_check,
	.remote_write = rf_op_remote_write,
	.remote_read = rf_op_remote_read,
	.established = rf_op_established,
};

/* Sets attributes that a test may change before rf_start(). */
static inline void
rf_init(struct rf *f, enum bb_roce_type type)
{
	const struct bb_roce_mem mem = {f->ring, RF_SLOTS, f->replay, 4, NULL, 0};

	memset(f, 0, sizeof(*f));
	f->room = UINT32_MAX;
	f->now = 1000000;
	f->net.src[15] = 2;
	f->attr = (struct bb_roce_attr){
		.type = type,
		.mtu = RF_MTU,
		.pkey = 0xffff,
		.qpn = 0x11,
		.dqpn = 0x222222,
		.rq_psn = 500,
		.max_dest_rd_atomic = 4,
		.sq_psn = RF_PSN,
		.max_rd_atomic = 4,
		.ack_timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.window = 64,
	};
	f->attr.path.dst[15] = 2;
	bb_roce_qp_init(&f->qp, &rf_ops, f, &mem);
}

static inline void
rf_start(struct rf *f)
{
	assert_int_equal(bb_roce_qp_rtr(&f->qp, &f->attr), 0);
	assert_int_equal(bb_roce_qp_rts(&f->qp, &f->attr), 0);
}

static inline struct bb_roce_msg
rf_msg(const struct rf *f, enum bb_roce_kind kind, uint32_t len, uint8_t flags)
{
	return (struct bb_roce_msg){
		.cookie = f->posted,
		.kind = (uint8_t)kind,
		.flags = flags,
		.len = len,
		.imm = 0x01020304,
		.rkey = RF_RKEY,
		.raddr = RF_RADDR,
		.swap_add = 7,
		.compare = 8,
	};
}

/* Cookies count from 0. */
static inline void
rf_post(struct rf *f, enum bb_roce_kind kind, uint32_t len, uint8_t flags)
{
	const struct bb_roce_msg msg = rf_msg(f, kind, len, flags);

	assert_int_equal(bb_roce_post(&f->qp, &msg), 0);
	f->posted++;
}

/* Sends until nothing more can be sent. Returns the number of packets. */
static inline uint32_t
rf_run(struct rf *f)
{
	uint32_t n, all = 0;

	while ((n = bb_roce_run(&f->qp, 8, f->now)) != 0)
		all += n;
	return all;
}

static inline void
rf_rx(struct rf *f, uint8_t opcode, uint32_t psn, struct bb_roce_pkt pkt)
{
	pkt.opcode = opcode;
	pkt.psn = psn & BB_ROCE_PSN_MASK;
	pkt.pkey = 0xffff;
	pkt.dqpn = 0x11;
	bb_roce_rx(&f->qp, &pkt, &f->net, f->now);
}

static inline void
rf_ack(struct rf *f, uint32_t psn, uint8_t syndrome)
{
	rf_rx(f, BB_ROCE_ACK, psn, (struct bb_roce_pkt){.syndrome = syndrome});
}

/* Receives a packet with data of message @cookie from @off. */
static inline void
rf_data(struct rf *f, uint8_t opcode, uint32_t psn, uint64_t cookie, uint32_t off, uint32_t len)
{
	uint8_t *data = malloc(len + 1);

	assert_non_null(data);
	for (uint32_t i = 0; i < len; i++)
		data[i] = rf_byte(cookie, off + i);
	rf_rx(f, opcode, psn,
	      (struct bb_roce_pkt){.syndrome = RF_ACK, .len = len, .payload = data});
	free(data);
}

/* Returns the next sent packet that was not yet checked. */
static inline const struct rf_tx *
rf_next(struct rf *f)
{
	assert_true(f->seen < f->ntx);
	return &f->tx[f->seen++ % RF_LOG];
}

static inline const struct bb_roce_pkt *
rf_expect(struct rf *f, uint8_t opcode, uint32_t psn)
{
	const struct rf_tx *tx = rf_next(f);

	assert_fields(tx->pkt, opcode, opcode, psn, psn & BB_ROCE_PSN_MASK);
	return &tx->pkt;
}

static inline void
rf_expect_none(const struct rf *f)
{
	assert_int_equal(f->ntx, f->seen);
}

/*
 * Expects @n successful completions since the last check, then one with @status unless it is 0.
 */
static inline void
rf_expect_done(struct rf *f, uint32_t from, uint32_t n, uint8_t status)
{
	assert_int_equal(f->ndone, from + n + (status != 0));
	for (uint32_t i = 0; i < n; i++) {
		assert_fields(f->done[from + i], cookie, from + i, status, 0);
	}
	if (status == 0)
		return;
	assert_fields(f->done[from + n], cookie, from + n, status, status);
}

/* Expects that message @from + @n failed the queue pair and those before it succeeded. */
static inline void
rf_expect_failed(struct rf *f, uint32_t from, uint32_t n, uint8_t status)
{
	rf_expect_done(f, from, n, status);
	assert_fields(*f, qp.state, BB_ROCE_ERR, nfailed, 1);
	assert_false(f->failed_responder);
	assert_int_equal(f->failed_synd, status);
	assert_false(bb_roce_busy(&f->qp));
	assert_int_equal(bb_roce_deadline(&f->qp), UINT64_MAX);
	assert_int_equal(rf_run(f), 0);
}

/* Expects no failure and no pending message. */
static inline void
rf_expect_idle(struct rf *f)
{
	assert_fields(*f, nfailed, 0, ndone, f->posted);
	assert_false(bb_roce_busy(&f->qp));
	assert_int_equal(bb_roce_deadline(&f->qp), UINT64_MAX);
	rf_expect_none(f);
}

/* Starts an RC queue pair with the defaults. */
static inline void
rf_begin(struct rf *f)
{
	rf_init(f, BB_ROCE_RC);
	rf_start(f);
}

/* A test that makes its requesters itself. */
#define T_OWN_RF(name) TEST_ON(NULL, NULL, struct rf, (void)0, (void)0, name)
/* Tests on a requester that is not started, and on one that is. */
#define T_RF(type, name) TEST_ON(NULL, NULL, struct rf, rf_init(f, type), (void)0, name)
#define T_BEGUN(name)    TEST_ON(NULL, NULL, struct rf, rf_begin(f), (void)0, name)

/* Posts and sends @n WRITEs of one packet each. */
static inline void
rf_writes(struct rf *f, uint32_t n)
{
	while (n-- != 0)
		rf_post(f, BB_ROCE_MSG_WRITE, 1, 0);
	rf_run(f);
	f->seen = f->ntx;
}

/* Runs the clock to the deadline; nothing happens before it. */
static inline void
rf_timeout(struct rf *f)
{
	assert_int_not_equal(bb_roce_deadline(&f->qp), UINT64_MAX);
	f->now = bb_roce_deadline(&f->qp);
	bb_roce_tick(&f->qp, f->now - 1);
	assert_int_equal(bb_roce_deadline(&f->qp), f->now); /* not before the deadline */
	bb_roce_tick(&f->qp, f->now);
}

#endif
