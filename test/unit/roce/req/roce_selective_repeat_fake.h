/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A requester of the RoCEv2 engine with selective repeat. The test decides whether the peer keeps
 * or drops packets that arrive out of order after a lost one.
 */
#ifndef ROCE_SELECTIVE_REPEAT_FAKE_H
#define ROCE_SELECTIVE_REPEAT_FAKE_H

#include "bb_roce_priv.h"
#include "roce_req_fake.h"

static inline void
begin(struct rf *f, uint32_t adaptive)
{
	rf_init(f, BB_ROCE_RC);
	f->attr.selective = true;
	f->attr.adaptive = adaptive;
	rf_start(f);
}

#define T_BEGIN(adaptive, name) TEST_ON(NULL, NULL, struct rf, begin(f, adaptive), (void)0, name)

static inline void
lost(struct rf *f, uint32_t psn)
{
	rf_ack(f, psn, RF_NAK(BB_ROCE_NAK_PSN));
}

/*
 * Asserts that @n packets from the oldest, @psn, are sent again and request acknowledgements. No
 * other state moves.
 */
static inline const struct rf_tx *
row(struct rf *f, uint8_t opcode, uint32_t psn, uint32_t n)
{
	uint32_t nxt = f->qp.req.nxt, next = f->qp.req.next, i;
	uint64_t again = f->qp.stats.retransmitted;
	/* The newest packet follows until the peer is known to keep packets. */
	bool shows = !f->qp.req.peer_stores && ((f->qp.req.sent - psn) & BB_ROCE_PSN_MASK) > 2;
	const struct rf_tx *tx;

	assert_int_equal(f->qp.req.una, psn & BB_ROCE_PSN_MASK);
	assert_true(bb_roce_busy(&f->qp));
	assert_int_equal(rf_run(f), n + shows);
	tx = &f->tx[f->seen % RF_LOG];
	for (i = 0; i < n; i++)
		assert_true(rf_expect(f, opcode, psn + i)->flags & BB_ROCE_ACKREQ);
	if (shows)
		assert_int_equal(rf_next(f)->pkt.psn, (nxt - 1) & BB_ROCE_PSN_MASK);
	rf_expect_none(f);
	assert_fields(f->qp, req.nxt, nxt, req.next, next, stats.retransmitted, again + n + shows);
	assert_false(bb_roce_busy(&f->qp));
	return tx;
}

/* Asserts that exactly one packet is sent again. */
static inline const struct rf_tx *
alone(struct rf *f, uint8_t opcode, uint32_t psn)
{
	return row(f, opcode, psn, 1);
}

static inline void
check_payload(const struct rf_tx *tx, uint64_t cookie, uint32_t off, uint32_t len)
{
	assert_fields(*tx, cookie, cookie, pkt.len, len);
	for (uint32_t i = 0; i < len; i++)
		assert_int_equal(tx->payload[i], rf_byte(cookie, off + i));
}

/* Asserts that exactly @n packets from @psn are sent again, each a WRITE. */
static inline void
all_again(struct rf *f, uint32_t psn, uint32_t n)
{
	assert_int_equal(rf_run(f), n);
	while (n-- != 0)
		rf_expect(f, BB_ROCE_WRITE_ONLY, psn++);
	rf_expect_none(f);
}

/* Four WRITEs; the first is lost and the peer kept the others. */
static inline void
keep(struct rf *f)
{
	uint32_t psn = f->qp.req.una;

	rf_writes(f, 4);
	lost(f, psn);
	alone(f, BB_ROCE_WRITE_ONLY, psn);
	rf_ack(f, psn + 3, RF_ACK);
	assert_true(f->qp.req.peer_stores);
	rf_expect_idle(f);
}

/* Four WRITEs; the first is lost and the peer dropped the others. */
static inline void
dropped(struct rf *f, bool tried)
{
	uint32_t psn = f->qp.req.una;

	rf_writes(f, 4);
	lost(f, psn);
	if (tried) {
		alone(f, BB_ROCE_WRITE_ONLY, psn);
		rf_ack(f, psn, RF_ACK);
		all_again(f, psn + 1, 3);
	} else {
		all_again(f, psn, 4);
	}
	rf_ack(f, psn + 3, RF_ACK);
	rf_expect_idle(f);
}

#endif
