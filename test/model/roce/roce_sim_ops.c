/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The engine's callbacks, which know the expected effect of each message. */
#include "../../fakes/roce_keep.h"
#include "roce_sim.h"

/* Number of the newest messages of UC and UD among which a received message is searched. */
#define CANDIDATES 4096u

#define CHECK(q_, cond_, fmt_, ...)                                                                \
	do {                                                                                       \
		if (!(cond_))                                                                      \
			sim_fail((q_)->host->sim, "QP %u: " fmt_, (q_)->qp.attr.qpn,               \
				 ##__VA_ARGS__);                                                   \
	} while (0)

static uint64_t
word_of(uint64_t key, uint64_t at)
{
	uint64_t x = (key + at) * 0x9e3779b97f4a7c15u;

	return (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
}

void
sim_pattern(uint8_t *p, uint64_t key, uint64_t off, uint64_t len)
{
	uint64_t word = word_of(key, off / 8), i;

	for (i = 0; i < len; i++) {
		if ((off + i) % 8 == 0)
			word = word_of(key, (off + i) / 8);
		p[i] = (uint8_t)(word >> (off + i) % 8 * 8);
	}
}

static bool
is_pattern(const uint8_t *p, uint64_t key, uint64_t off, uint64_t len)
{
	uint8_t want[4096];
	uint64_t n;

	for (; len != 0; len -= n, p += n, off += n) {
		n = len < sizeof(want) ? len : sizeof(want);
		sim_pattern(want, key, off, n);
		if (memcmp(p, want, n) != 0)
			return false;
	}
	return true;
}

static bool
is_rc(const struct sim_qp *q)
{
	return q->qp.attr.type == BB_ROCE_RC;
}

/* ---- Requester */

static struct sim_msg *
msg_of(struct sim_qp *q, const struct bb_roce_msg *msg)
{
	CHECK(q, msg->cookie >= q->done && msg->cookie < q->posted, "message %ju is not posted",
	      (uintmax_t)msg->cookie);
	return &q->msgs[msg->cookie];
}

/* Responses of a READ are consecutive, and a retransmission starts again (9.7.3.1). */
static void
check_response(struct sim_qp *q, const struct bb_roce_pkt *pkt, uint32_t flags)
{
	if (!(flags & BB_ROCE_F_READ_RESP))
		return;
	CHECK(q, (flags & BB_ROCE_F_FIRST) || (q->in_response && pkt->psn == q->response_psn),
	      "%s with PSN %06x does not follow one", bb_roce_ops[pkt->opcode].name, pkt->psn);
	q->in_response = !(flags & BB_ROCE_F_LAST);
	q->response_psn = (pkt->psn + 1) & BB_ROCE_PSN_MASK;
}

static bool
op_tx(void *ctx, struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt,
      const struct bb_roce_iov *iov, uint32_t n, const struct bb_roce_msg *msg)
{
	struct sim_qp *q = ctx;
	bool request = (bb_roce_ops[pkt->opcode].flags & BB_ROCE_F_REQUEST) != 0;
	uint32_t len = 0, i;

	CHECK(q, &q->qp == qp, "another queue pair");
	CHECK(q, bb_roce_ops[pkt->opcode].flags != 0, "opcode 0x%02x", pkt->opcode);
	/*
	 * The ICRC does not cover the ECN bits, so a congestion mark can be a fault of the
	 * network.
	 */
	CHECK(q,
	      BB_ROCE_TYPE(pkt->opcode) == qp->attr.type ||
		      (pkt->opcode == BB_ROCE_CNP && qp->stats.tx_cnp < qp->stats.ecn_ce),
	      "opcode 0x%02x", pkt->opcode);
	CHECK(q, request == (msg != NULL), "%s of %s message", bb_roce_ops[pkt->opcode].name,
	      msg != NULL ? "a" : "no");
	CHECK(q, n <= BB_ROCE_MAX_IOV && pkt->len <= qp->attr.mtu, "%u bytes in %u pieces",
	      pkt->len, n);
	for (i = 0; i < n; i++)
		len += iov[i].len;
	CHECK(q, len == pkt->len, "%u bytes of payload, not %u", len, pkt->len);
	if (request)
		(void)msg_of(q, msg);
	if (request && is_rc(q))
		CHECK(q, ((pkt->psn - qp->req.una) & BB_ROCE_PSN_MASK) < qp->attr.window,
		      "PSN %06x is beyond the window", pkt->psn);
	if (!sim_transmit(q, qp->attr.type == BB_ROCE_UD ? msg->net : &qp->attr.path, pkt, iov, n))
		return false;
	check_response(q, pkt, bb_roce_ops[pkt->opcode].flags);
	return true;
}

static int
op_gather(void *ctx, struct bb_roce_qp *qp, const struct bb_roce_msg *msg, uint32_t off,
	  uint32_t len, struct bb_roce_iov iov[BB_ROCE_MAX_IOV])
{
	struct sim_qp *q = ctx;
	struct sim_msg *m = msg_of(q, msg);
	uint32_t pieces = 1 + sim_below(&q->rng, 3), at = 0, i;

	CHECK(q, len <= qp->attr.mtu && off <= m->len && len <= m->len - off,
	      "bytes %u to %u of %u", off, off + len, m->len);
	if (sim_missing(q))
		return -(int)BB_ROCE_TRY_AGAIN;
	sim_pattern(q->gbuf, m->key, off, len);
	for (i = 0; i < pieces; i++) {
		iov[i].p = q->gbuf + at;
		iov[i].len = i == pieces - 1 ? len - at : sim_below(&q->rng, len - at + 1);
		at += iov[i].len;
	}
	return (int)pieces;
}

static uint8_t
op_place(void *ctx, struct bb_roce_qp *qp, const struct bb_roce_msg *msg, uint32_t off,
	 const uint8_t *data, uint32_t len)
{
	struct sim_qp *q = ctx;
	struct sim_msg *m = msg_of(q, msg);

	(void)qp;
	CHECK(q, m->kind == BB_ROCE_MSG_READ && off == m->placed && len <= m->len - off,
	      "bytes %u to %u of a READ, %u have come", off, off + len, m->placed);
	CHECK(q, m->executed || q->peer->exec_off > off, "data before the READ");
	CHECK(q, is_pattern(data, m->key, m->key_off + off, len), "READ: wrong data at byte %u",
	      off);
	if (sim_missing(q))
		return BB_ROCE_TRY_AGAIN;
	m->placed += len;
	return 0;
}

static uint8_t
op_atomic_result(void *ctx, struct bb_roce_qp *qp, const struct bb_roce_msg *msg, uint64_t orig)
{
	struct sim_qp *q = ctx;
	struct sim_msg *m = msg_of(q, msg);

	(void)qp;
	CHECK(q, m->kind > BB_ROCE_MSG_READ && m->executed, "a result before the atomic");
	CHECK(q, orig == m->orig, "atomic: %jx, not %jx", (uintmax_t)orig, (uintmax_t)m->orig);
	CHECK(q, m->placed == 0, "a second result");
	if (sim_missing(q))
		return BB_ROCE_TRY_AGAIN;
	m->placed = 8;
	return 0;
}

static void
op_complete(void *ctx, struct bb_roce_qp *qp, const struct bb_roce_msg *msg, uint8_t status)
{
	struct sim_qp *q = ctx;
	struct sim_msg *m = msg_of(q, msg);

	(void)qp;
	CHECK(q, msg->cookie == q->done, "message %ju completes before %ju", (uintmax_t)msg->cookie,
	      (uintmax_t)q->done);
	q->done++;
	q->host->sim->done_at = q->host->sim->now;
	sim_wake(q);
	if (status != 0) {
		CHECK(q, q->may_fail, "message %ju fails with syndrome 0x%02x (retries %u)",
		      (uintmax_t)msg->cookie, status, q->qp.req.retries);
		CHECK(q, q->flushed == (q->error != 0), "a second error, 0x%02x", status);
		if (q->error == 0)
			q->error = status;
		return;
	}
	CHECK(q, q->error == 0, "success after an error");
	q->ok++;
	if (!is_rc(q))
		return;
	CHECK(q, m->executed, "message %ju completes before the peer has acted",
	      (uintmax_t)msg->cookie);
	if (m->kind >= BB_ROCE_MSG_READ)
		CHECK(q, m->placed == m->len, "%u of %u bytes", m->placed, m->len);
	if (m->kind == BB_ROCE_MSG_WRITE || m->kind == BB_ROCE_MSG_WRITE_IMM)
		CHECK(q, is_pattern(q->peer->mem + m->off, m->key, 0, m->len),
		      "the peer's memory is not what was written");
}

/* ---- Responder: RC in the order of the peer's messages */

static struct sim_msg *
executing(struct sim_qp *q, uint32_t kinds)
{
	struct sim_msg *m = &q->peer->msgs[q->exec];

	CHECK(q, q->exec < q->peer->posted, "an access that nobody asked for");
	CHECK(q, kinds >> m->kind & 1, "message %ju is of kind %u", (uintmax_t)q->exec, m->kind);
	return m;
}

static void
executed(struct sim_qp *q, struct sim_msg *m)
{
	CHECK(q, !m->executed, "message %ju acts twice", (uintmax_t)q->exec);
	m->executed = true;
	q->exec++;
	q->exec_off = 0;
}

#define KIND(k) (1u << BB_ROCE_MSG_##k)
#define SENDS   (KIND(SEND) | KIND(SEND_IMM) | KIND(SEND_INV))
#define WRITES  (KIND(WRITE) | KIND(WRITE_IMM))
#define ATOMICS (KIND(CMP_SWAP) | KIND(FETCH_ADD))

/* Returns the newest UC message of this kind and range, at its first byte. */
static struct sim_msg *
uc_write(struct sim_qp *q, uint64_t off, uint32_t len)
{
	struct sim_qp *f = q->peer;
	uint64_t i;

	for (i = f->posted; i-- > 0;) {
		struct sim_msg *m = &f->msgs[i];

		if ((WRITES >> m->kind & 1) != 0 && m->off == off && m->len == len) {
			q->exec = i;
			m->placed = 0;
			return m;
		}
	}
	sim_fail(q->host->sim, "UC: a WRITE that nobody asked for");
}

static uint8_t
op_remote_check(void *ctx, struct bb_roce_qp *qp, enum bb_roce_access access, uint32_t rkey,
		uint64_t va, uint32_t len)
{
	static const uint32_t kinds[] = {[BB_ROCE_ACCESS_WRITE] = WRITES,
					 [BB_ROCE_ACCESS_READ] = KIND(READ),
					 [BB_ROCE_ACCESS_ATOMIC] = ATOMICS};
	struct sim_qp *q = ctx;
	uint64_t off = va - q->va;
	struct sim_msg *m;

	(void)qp;
	if (len != 0 && (rkey != q->rkey || off > q->size || len > q->size - off)) {
		CHECK(q, q->peer->may_fail, "key %x, %u bytes at %ju", rkey, len, (uintmax_t)off);
		return BB_SYN_REMOTE_ACCESS;
	}
	if (len != 0 && sim_missing(q))
		return BB_ROCE_TRY_AGAIN;
	q->grant_va = va;
	q->grant_len = len;
	if (!is_rc(q)) {
		(void)uc_write(q, off, len);
		return 0;
	}
	m = executing(q, kinds[access]);
	if (access == BB_ROCE_ACCESS_READ) {
		CHECK(q, off == m->off + q->exec_off && len <= m->len - q->exec_off,
		      "READ of %u bytes at %ju", len, (uintmax_t)off);
		q->exec_off += len;
		if (q->exec_off == m->len)
			executed(q, m);
		return 0;
	}
	CHECK(q, off == m->off && len == m->len && q->exec_off == 0, "%u bytes at %ju", len,
	      (uintmax_t)off);
	if (len == 0 && m->kind == BB_ROCE_MSG_WRITE)
		executed(q, m);
	return 0;
}

static void
check_grant(struct sim_qp *q, uint64_t va, uint32_t len)
{
	CHECK(q,
	      va >= q->grant_va && va - q->grant_va <= q->grant_len &&
		      len <= q->grant_len - (va - q->grant_va),
	      "%u bytes at %jx, which were not granted", len, (uintmax_t)va);
}

static uint8_t
op_remote_write(void *ctx, struct bb_roce_qp *qp, uint32_t rkey, uint64_t va, const uint8_t *data,
		uint32_t len)
{
	struct sim_qp *q = ctx;
	uint64_t off = va - q->va;
	struct sim_msg *m = executing(q, WRITES);
	uint64_t at = is_rc(q) ? q->exec_off : m->placed;

	CHECK(q, rkey == q->rkey && len != 0 && len <= qp->attr.mtu, "key %x", rkey);
	check_grant(q, va, len);
	CHECK(q, off == m->off + at && len <= m->len - at, "WRITE at byte %ju, not %ju",
	      (uintmax_t)(off - m->off), (uintmax_t)at);
	CHECK(q, is_pattern(data, m->key, at, len), "WRITE: wrong data at byte %ju", (uintmax_t)at);
	if (sim_missing(q))
		return BB_ROCE_TRY_AGAIN;
	memcpy(q->mem + off, data, len);
	if (!is_rc(q)) {
		m->placed += len;
		return 0;
	}
	q->exec_off += len;
	if (q->exec_off == m->len && m->kind == BB_ROCE_MSG_WRITE)
		executed(q, m);
	return 0;
}

/* Called again for each repeated response: only reads memory. */
static int
op_remote_read(void *ctx, struct bb_roce_qp *qp, uint32_t rkey, uint64_t va, uint32_t len,
	       struct bb_roce_iov iov[BB_ROCE_MAX_IOV])
{
	struct sim_qp *q = ctx;
	uint64_t off = va - q->va;

	CHECK(q,
	      rkey == q->rkey && off <= q->size && len <= q->size - off && len != 0 &&
		      len <= qp->attr.mtu,
	      "READ of %u bytes at %ju", len, (uintmax_t)off);
	if (sim_missing(q))
		return -(int)BB_ROCE_TRY_AGAIN;
	iov[0].p = q->mem + off;
	iov[0].len = len / 2;
	iov[1].p = q->mem + off + len / 2;
	iov[1].len = len - len / 2;
	return 2;
}

static uint8_t
op_remote_atomic(void *ctx, struct bb_roce_qp *qp, uint8_t kind, uint32_t rkey, uint64_t va,
		 uint64_t swap_add, uint64_t compare, uint64_t *orig)
{
	struct sim_qp *q = ctx;
	struct sim_msg *m = executing(q, ATOMICS);
	uint64_t *word = (uint64_t *)(void *)(q->mem + m->off);

	(void)qp;
	CHECK(q, rkey == q->rkey && va - q->va == m->off && kind == m->kind, "an atomic at %jx",
	      (uintmax_t)va);
	check_grant(q, va, 8);
	CHECK(q,
	      swap_add == m->swap_add && (kind == BB_ROCE_MSG_FETCH_ADD || compare == m->compare),
	      "operands of an atomic");
	if (sim_missing(q))
		return BB_ROCE_TRY_AGAIN;
	*orig = m->orig = *word;
	if (kind == BB_ROCE_MSG_FETCH_ADD)
		*word += swap_add;
	else if (*word == compare)
		*word = swap_add;
	executed(q, m);
	return 0;
}

/* ---- Receives */

static enum bb_roce_take
op_recv_take(void *ctx, struct bb_roce_qp *qp)
{
	struct sim_qp *q = ctx;

	(void)qp;
	CHECK(q, !q->in_hand, "a second receive for one message");
	if (is_rc(q))
		(void)executing(q, SENDS | KIND(WRITE_IMM));
	if (q->taken == q->recvs)
		return BB_ROCE_TAKE_EMPTY;
	q->taken++;
	q->in_hand = true;
	return BB_ROCE_TAKE_OK;
}

static uint8_t
op_recv_place(void *ctx, struct bb_roce_qp *qp, uint32_t off, const uint8_t *data, uint32_t len)
{
	struct sim_qp *q = ctx;
	struct sim_msg *m;

	CHECK(q, q->in_hand, "data without a receive");
	CHECK(q, len <= qp->attr.mtu, "%u bytes in a packet", len);
	if (off > q->recv_size || len > q->recv_size - off)
		return BB_SYN_LOCAL_LENGTH;
	if (sim_missing(q))
		return BB_ROCE_TRY_AGAIN;
	memcpy(q->rbuf + off, data, len);
	if (!is_rc(q))
		return 0;
	m = executing(q, SENDS);
	CHECK(q, off == q->exec_off && len <= m->len - off, "SEND: byte %u, not %ju", off,
	      (uintmax_t)q->exec_off);
	CHECK(q, is_pattern(data, m->key, off, len), "SEND: wrong data at byte %u", off);
	q->exec_off += len;
	return 0;
}

/* Returns true if @m agrees with the receive and, for UC and UD, with the received bytes. */
static bool
matches(const struct sim_qp *q, const struct sim_msg *m, const struct bb_roce_recv *r)
{
	if (m->kind != r->kind || m->len != r->len)
		return false;
	if (r->kind != BB_ROCE_MSG_SEND && m->imm != r->imm)
		return false;
	if (((m->flags & BB_ROCE_SOLICITED) != 0) != r->solicited)
		return false;
	if (is_rc(q))
		return true;
	return r->kind == BB_ROCE_MSG_WRITE_IMM ? m->placed == m->len
						: is_pattern(q->rbuf, m->key, 0, m->len);
}

static struct sim_qp *
sender(struct sim_qp *q, const struct bb_roce_recv *r)
{
	struct sim *s = q->host->sim;
	uint32_t i;

	if (q->qp.attr.type != BB_ROCE_UD)
		return q->peer;
	for (i = 0; i < s->host_n; i++)
		if (memcmp(s->hosts[i].gid, r->net->src, 16) == 0) {
			CHECK(q, r->sqpn != 0 && r->sqpn <= s->hosts[i].qp_n, "sender %u", r->sqpn);
			return s->hosts[i].qps[r->sqpn - 1];
		}
	sim_fail(s, "a datagram from nobody");
}

/* UC, UD: checks that the message was sent. Of equal messages it takes one that has not arrived. */
static void
check_known(struct sim_qp *q, struct sim_qp *from, const struct bb_roce_recv *r)
{
	struct sim_msg *m, *seen = NULL;
	uint64_t i;

	for (i = from->posted; i-- > 0 && from->posted - i <= CANDIDATES;) {
		m = &from->msgs[i];
		if ((m->executed && seen != NULL) || !matches(q, m, r))
			continue;
		seen = m;
		if (!m->executed)
			break;
	}
	CHECK(q, seen != NULL, "received %u bytes that nobody sent", r->len);
	seen->executed = true;
}

static uint8_t
op_recv_done(void *ctx, struct bb_roce_qp *qp, const struct bb_roce_recv *r)
{
	struct sim_qp *q = ctx;

	(void)qp;
	CHECK(q, q->in_hand, "a completion without a receive");
	q->in_hand = false;
	q->received++;
	sim_recv_later(q);
	if (r->status != 0) {
		CHECK(q, q->may_fail, "a receive fails with 0x%02x", r->status);
		return 0;
	}
	if (is_rc(q)) {
		struct sim_msg *m = executing(q, SENDS | KIND(WRITE_IMM));

		CHECK(q, q->exec_off == m->len, "%ju of %u bytes", (uintmax_t)q->exec_off, m->len);
		CHECK(q, matches(q, m, r), "a receive of kind %u, %u bytes", r->kind, r->len);
		executed(q, m);
		return 0;
	}
	check_known(q, sender(q, r), r);
	return 0;
}

static uint8_t
op_invalidate(void *ctx, struct bb_roce_qp *qp, uint32_t rkey)
{
	struct sim_qp *q = ctx;
	struct sim_msg *m = executing(q, KIND(SEND_INV));

	(void)qp;
	CHECK(q, rkey == m->imm, "key %x", rkey);
	return sim_key_busy(q) ? BB_ROCE_TRY_AGAIN : 0;
}

static void
op_failed(void *ctx, struct bb_roce_qp *qp, bool responder, uint8_t synd)
{
	struct sim_qp *q = ctx;

	(void)qp;
	CHECK(q, q->may_fail && !q->failed, "fails with 0x%02x", synd);
	q->failed = true;
	q->failed_responder = responder;
	q->failed_synd = synd;
	sim_wake(q);
}

static void
op_established(void *ctx, struct bb_roce_qp *qp)
{
	(void)ctx;
	(void)qp;
}

/* Lacks room now and then. */
static struct bb_roce_pkt *
op_keep(void *ctx, struct bb_roce_qp *qp, const struct bb_roce_pkt *pkt)
{
	struct sim_qp *q = ctx;

	CHECK(q,
	      ((pkt->psn - qp->resp.epsn - 1) & BB_ROCE_PSN_MASK) < qp->resp.max_out_of_order - 1,
	      "PSN %06x is kept", pkt->psn);
	if (!q->host->sim->keep_all && sim_below(&q->rng, 100) == 0)
		return NULL;
	if (q->host->sim->keeps != 0 && qp->stats.stored >= q->host->sim->keeps)
		return NULL;
	q->kept++;
	CHECK(q, q->kept <= qp->resp.max_out_of_order, "%u packets are kept", q->kept);
	return roce_keep(pkt);
}

static void
op_unkeep(void *ctx, struct bb_roce_qp *qp, struct bb_roce_pkt *pkt)
{
	struct sim_qp *q = ctx;

	(void)qp;
	q->kept--;
	free(pkt);
}

const struct bb_roce_ops sim_ops = {
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

/* Checks that the range has only the bytes of the WRITE, or zeros, as before. */
static void
check_range(struct sim_qp *q, const struct sim_msg *m)
{
	uint8_t *want = malloc(m->len + 1u);
	uint32_t i;

	assert_non_null(want);
	sim_pattern(want, m->key, 0, m->len);
	for (i = 0; i < m->len; i++)
		CHECK(q, q->mem[m->off + i] == want[i] || (!m->executed && q->mem[m->off + i] == 0),
		      "UC: byte %u of a range of %u is nobody's", i, m->len);
	free(want);
}

void
sim_check_memory(struct sim_qp *q)
{
	uint64_t i;

	for (i = 0; i < SIM_CANARY; i++)
		CHECK(q, q->mem[-1 - (int64_t)i] == 0xca && q->mem[q->size + i] == 0xca,
		      "a byte beside the region was written");
	CHECK(q, is_pattern(q->mem + q->read_from, q->rkey, 0, q->write_from - q->read_from),
	      "constant bytes were written");
	if (q->qp.attr.type == BB_ROCE_UC)
		for (i = 0; i < q->peer->posted; i++)
			if (WRITES >> q->peer->msgs[i].kind & 1)
				check_range(q, &q->peer->msgs[i]);
}
