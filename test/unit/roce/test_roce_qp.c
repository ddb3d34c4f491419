/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* A queue pair of the RoCEv2 engine as its caller uses it: states, posting, common checks. */
#include <errno.h>

#include "req/roce_req_fake.h"

TEST(test_attributes_out_of_range_are_refused)
{
	static struct rf f;
	struct bb_roce_attr a;

	rf_init(&f, BB_ROCE_RC);
	assert_int_equal(bb_roce_qp_rts(&f.qp, &f.attr), -EINVAL);
#define REFUSED(call, field, value)                                                                \
	do {                                                                                       \
		a = f.attr;                                                                        \
		a.field = (value);                                                                 \
		assert_int_equal(call(&f.qp, &a), -EINVAL);                                        \
	} while (0)
	REFUSED(bb_roce_qp_rtr, type, 0x40);
	REFUSED(bb_roce_qp_rtr, mtu, 0);
	REFUSED(bb_roce_qp_rtr, mtu, 128);
	REFUSED(bb_roce_qp_rtr, mtu, 1500);
	REFUSED(bb_roce_qp_rtr, mtu, 8192);
	REFUSED(bb_roce_qp_rtr, qpn, 1 << 24);
	REFUSED(bb_roce_qp_rtr, dqpn, 1 << 24);
	REFUSED(bb_roce_qp_rtr, rq_psn, 1 << 24);
	REFUSED(bb_roce_qp_rtr, min_rnr_timer, 32);
	REFUSED(bb_roce_qp_rtr, max_dest_rd_atomic, 5);
	assert_int_equal(f.qp.state, BB_ROCE_RESET);
	assert_int_equal(bb_roce_qp_rtr(&f.qp, &f.attr), 0);
	assert_int_equal(bb_roce_qp_rtr(&f.qp, &f.attr), -EINVAL);
	REFUSED(bb_roce_qp_rts, sq_psn, 1 << 24);
	REFUSED(bb_roce_qp_rts, ack_timeout, 32);
	REFUSED(bb_roce_qp_rts, retry_cnt, 8);
	REFUSED(bb_roce_qp_rts, rnr_retry, 8);
	REFUSED(bb_roce_qp_rts, window, 0);
	REFUSED(bb_roce_qp_rts, window, BB_ROCE_MAX_WINDOW + 1);
	assert_int_equal(f.qp.state, BB_ROCE_RTR);
	assert_int_equal(bb_roce_qp_rts(&f.qp, &f.attr), 0);
	assert_int_equal(bb_roce_qp_rts(&f.qp, &f.attr), -EINVAL);
	bb_roce_qp_err(&f.qp);
	assert_int_equal(bb_roce_qp_rtr(&f.qp, &f.attr), -EINVAL);
	assert_int_equal(bb_roce_qp_rts(&f.qp, &f.attr), -EINVAL);
}

T_OWN_RF(test_changed_attributes_affect_the_next_packet)
{
	struct bb_roce_pkt pkt = {.opcode = BB_ROCE_RC | BB_ROCE_SEND_ONLY, .pkey = 0xffff};

	rf_init(f, BB_ROCE_RC);
	assert_int_equal(bb_roce_qp_change(&f->qp, 7, 1), -EINVAL);
	assert_int_equal(bb_roce_qp_rtr(&f->qp, &f->attr), 0);
	assert_int_equal(bb_roce_qp_change(&f->qp, 7, 32), -EINVAL);
	assert_int_equal(f->qp.attr.qkey, 0);
	assert_int_equal(bb_roce_qp_change(&f->qp, 7, 31), 0);
	assert_int_equal(f->qp.attr.qkey, 7);
	/* The attributes set from INIT to RTR stay. */
	assert_int_equal(bb_roce_qp_rts(&f->qp, &f->attr), 0);
	assert_int_equal(f->qp.attr.qkey, 7);
	pkt.psn = 500;
	bb_roce_rx(&f->qp, &pkt, &f->net, f->now);
	assert_int_equal(rf_run(f), 1);
	assert_int_equal(rf_expect(f, BB_ROCE_ACK, 500)->syndrome, BB_ROCE_AETH_RNR | 31);
	assert_int_equal(bb_roce_qp_change(&f->qp, 8, 12), 0);
	assert_int_equal(f->qp.attr.qkey, 8);
	bb_roce_rx(&f->qp, &pkt, &f->net, f->now);
	assert_int_equal(rf_run(f), 1);
	assert_int_equal(rf_expect(f, BB_ROCE_ACK, 500)->syndrome, BB_ROCE_AETH_RNR | 12);
	bb_roce_qp_err(&f->qp);
	assert_int_equal(bb_roce_qp_change(&f->qp, 7, 1), -EINVAL);
}

static int
post(struct rf *f, enum bb_roce_kind kind, uint32_t len)
{
	const struct bb_roce_msg msg = rf_msg(f, kind, len, 0);

	return bb_roce_post(&f->qp, &msg);
}

T_OWN_RF(test_post_refuses_wrong_kind_length_and_full_ring)
{
	/* QP types that have each kind. */
	static const struct {
		enum bb_roce_kind kind;
		bool uc, ud;
	} kinds[] = {
		{BB_ROCE_MSG_SEND, true, true},       {BB_ROCE_MSG_SEND_IMM, true, true},
		{BB_ROCE_MSG_SEND_INV, false, false}, {BB_ROCE_MSG_WRITE, true, false},
		{BB_ROCE_MSG_WRITE_IMM, true, false}, {BB_ROCE_MSG_READ, false, false},
		{BB_ROCE_MSG_CMP_SWAP, false, false}, {BB_ROCE_MSG_FETCH_ADD, false, false},
	};
	static const enum bb_roce_type types[] = {BB_ROCE_RC, BB_ROCE_UC, BB_ROCE_UD};

	for (uint32_t t = 0; t < 3; t++) {
		rf_init(f, types[t]);
		f->attr.max_dest_rd_atomic = 0;
		assert_int_equal(post(f, BB_ROCE_MSG_SEND, 1), -EINVAL); /* in RESET */
		rf_start(f);
		for (uint32_t k = 0; k < 8; k++) {
			bool has = t == 0 || (t == 1 ? kinds[k].uc : kinds[k].ud);

			assert_int_equal(post(f, kinds[k].kind, 8), has ? 0 : -EINVAL);
		}
		assert_int_equal(post(f, (enum bb_roce_kind)8, 8), -EINVAL);
		assert_int_equal(post(f, (enum bb_roce_kind)32, 8), -EINVAL);
		assert_int_equal(post(f, (enum bb_roce_kind)255, 8), -EINVAL);
	}
	assert_int_equal(post(f, BB_ROCE_MSG_SEND, RF_MTU), 0); /* of UD */
	assert_int_equal(post(f, BB_ROCE_MSG_SEND, RF_MTU + 1), -EMSGSIZE);
	rf_init(f, BB_ROCE_RC);
	rf_start(f);
	assert_int_equal(post(f, BB_ROCE_MSG_FETCH_ADD, 4), -EINVAL);
	assert_int_equal(post(f, BB_ROCE_MSG_CMP_SWAP, 16), -EINVAL);
	assert_int_equal(post(f, BB_ROCE_MSG_WRITE, (1u << 31) + 1), -EMSGSIZE);
	for (uint32_t k = 0; k < RF_SLOTS; k++)
		assert_int_equal(post(f, BB_ROCE_MSG_WRITE, 1u << 31), 0);
	assert_int_equal(post(f, BB_ROCE_MSG_WRITE, 1), -ENOBUFS);
}

/* A message posted before RTS waits for RTS; in ERR it waits for the flush. */
TEST(test_posts_before_rts_wait_for_it)
{
	static struct rf f;

	rf_init(&f, BB_ROCE_RC);
	assert_false(bb_roce_busy(&f.qp));
	assert_int_equal(rf_run(&f), 0);
	assert_int_equal(bb_roce_qp_rtr(&f.qp, &f.attr), 0);
	rf_post(&f, BB_ROCE_MSG_WRITE, 1, 0);
	assert_false(bb_roce_busy(&f.qp));
	assert_int_equal(rf_run(&f), 0);
	assert_int_equal(bb_roce_qp_rts(&f.qp, &f.attr), 0);
	assert_true(bb_roce_busy(&f.qp));
	assert_int_equal(rf_run(&f), 1);
	rf_post(&f, BB_ROCE_MSG_WRITE, 1, 0);
	bb_roce_qp_err(&f.qp);
	rf_post(&f, BB_ROCE_MSG_SEND, 1, 0);
	assert_false(bb_roce_busy(&f.qp));
	assert_int_equal(rf_run(&f), 0);
	assert_int_equal(bb_roce_deadline(&f.qp), UINT64_MAX);
	bb_roce_tick(&f.qp, UINT64_MAX);
	assert_int_equal(f.qp.stats.ack_timeout, 0);
	rf_ack(&f, RF_PSN, RF_ACK);
	assert_int_equal(f.ndone, 0);
	bb_roce_qp_flush(&f.qp, BB_SYN_WR_FLUSH);
	assert_fields(f, ndone, 3, done[0].status, BB_SYN_WR_FLUSH, done[2].cookie, 2);
	assert_int_equal(f.nfailed, 0); /* the caller moved it itself */
}

TEST(test_packet_with_wrong_pkey_state_or_transport_is_dropped)
{
	/* P_Keys of the queue pair and of the packet; whether the packet is accepted. */
	static const struct {
		uint16_t ours, theirs;
		bool ok;
	} pkeys[] = {
		{0xffff, 0xffff, true},  {0xffff, 0x7fff, true},  {0x7fff, 0xffff, true},
		{0x7fff, 0x7fff, false}, {0xffff, 0xfffe, false}, {0x8001, 0x0001, true},
		{0x0001, 0x0001, false}, {0x8001, 0x8002, false},
	};
	struct bb_roce_pkt pkt = {.opcode = BB_ROCE_ACK, .psn = RF_PSN, .pkey = 0xffff};
	static struct rf f;

	pkt.syndrome = RF_ACK;
	for (uint32_t i = 0; i < sizeof(pkeys) / sizeof(pkeys[0]); i++) {
		rf_init(&f, BB_ROCE_RC);
		f.attr.pkey = pkeys[i].ours;
		rf_start(&f);
		rf_post(&f, BB_ROCE_MSG_WRITE, 1, 0);
		rf_run(&f);
		pkt.pkey = pkeys[i].theirs;
		bb_roce_rx(&f.qp, &pkt, &f.net, f.now);
		assert_fields(f, ndone, pkeys[i].ok, qp.stats.drop_pkey, !pkeys[i].ok);
	}
	pkt.pkey = 0xffff;
	rf_init(&f, BB_ROCE_RC);
	bb_roce_rx(&f.qp, &pkt, &f.net, f.now);
	assert_int_equal(f.qp.stats.drop_state, 1);
	assert_int_equal(bb_roce_qp_rtr(&f.qp, &f.attr), 0);
	bb_roce_rx(&f.qp, &pkt, &f.net, f.now);
	assert_int_equal(f.qp.stats.drop_state, 2); /* a response without a request */
	assert_int_equal(bb_roce_qp_rts(&f.qp, &f.attr), 0);
	rf_post(&f, BB_ROCE_MSG_WRITE, 1, 0);
	rf_run(&f);
	/* Another transport. */
	for (uint32_t i = 1; i < 8; i++) {
		pkt.opcode = (uint8_t)(i << 5 | BB_ROCE_ACK);
		bb_roce_rx(&f.qp, &pkt, &f.net, f.now);
		assert_int_equal(f.qp.stats.drop_type, i);
	}
	pkt.opcode = BB_ROCE_ACK;
	/* Changes each byte of the peer's address. */
	for (uint32_t i = 0; i < 16; i++) {
		f.net.src[i] ^= 0x10;
		bb_roce_rx(&f.qp, &pkt, &f.net, f.now);
		assert_int_equal(f.qp.stats.drop_source, i + 1);
		f.net.src[i] ^= 0x10;
		/* Changes each byte of the own address: the port may have others. */
		f.net.dst[i] ^= 0x10;
		bb_roce_rx(&f.qp, &pkt, &f.net, f.now);
		assert_int_equal(f.qp.stats.drop_dest, i + 1);
		f.net.dst[i] ^= 0x10;
	}
	assert_int_equal(f.ndone, 0);
	bb_roce_rx(&f.qp, &pkt, &f.net, f.now);
	assert_int_equal(f.ndone, 1);
	bb_roce_qp_err(&f.qp);
	bb_roce_rx(&f.qp, &pkt, &f.net, f.now);
	assert_int_equal(f.qp.stats.drop_state, 3);
}

/* A marked packet is answered by a CNP, at most one in 50 us. CNPs received are counted. */
T_OWN_RF(test_marked_packet_gets_at_most_one_cnp_in_50_us)
{
	static const enum bb_roce_type types[] = {BB_ROCE_RC, BB_ROCE_UC};
	struct bb_roce_pkt pkt = {.pkey = 0xffff, .rkey = RF_RKEY};
	const struct bb_roce_pkt *cnp;

	for (uint32_t t = 0; t < 2; t++) {
		rf_init(f, types[t]);
		f->attr.rq_psn = 0;
		assert_int_equal(bb_roce_qp_rtr(&f->qp, &f->attr), 0); /* reported in RTR too */
		pkt.opcode = (uint8_t)(types[t] | BB_ROCE_WRITE_ONLY);
		for (uint32_t i = 0; i < 4; i++) { /* not ECT, ECT(1), ECT(0), CE */
			f->net.tclass = (uint8_t)(0xa0 | i);
			pkt.psn = i;
			bb_roce_rx(&f->qp, &pkt, &f->net, f->now);
			assert_int_equal(f->qp.stats.ecn_ce, i == 3);
			assert_int_equal(bb_roce_busy(&f->qp), i == 3);
		}
		f->room = 0;
		assert_int_equal(rf_run(f), 0);
		assert_true(bb_roce_busy(&f->qp));
		f->room = UINT32_MAX;
		assert_int_equal(rf_run(f), 1);
		cnp = rf_expect(f, BB_ROCE_CNP, 0);
		assert_int_equal(cnp->flags & (BB_ROCE_BECN | BB_ROCE_FECN), BB_ROCE_BECN);
		assert_fields(*cnp, dqpn, 0x222222, pkey, 0xffff, len, 0);
		assert_int_equal(bb_roce_qp_rts(&f->qp, &f->attr), 0);
		f->now += 50 * RF_US - 1;
		pkt.psn = 4;
		bb_roce_rx(&f->qp, &pkt, &f->net, f->now);
		assert_int_equal(rf_run(f), 0);
		f->now++;
		f->net.tclass = 0;
		pkt.flags = BB_ROCE_FECN;
		pkt.psn = 5;
		bb_roce_rx(&f->qp, &pkt, &f->net, f->now);
		assert_int_equal(rf_run(f), 1);
		rf_expect(f, BB_ROCE_CNP, 0);
		assert_fields(f->qp.stats, ecn_ce, 3, tx_cnp, 2, rx_write, 6);
		pkt.flags = 0;
		/* Only a CNP from the peer lowers the rate. */
		pkt.opcode = BB_ROCE_CNP;
		bb_roce_rx(&f->qp, &pkt, &f->net, f->now);
		f->net.src[3] = 1;
		bb_roce_rx(&f->qp, &pkt, &f->net, f->now);
		assert_fields(f->qp.stats, cnp, 1, drop_source, 1);
		assert_false(bb_roce_busy(&f->qp));
		/* A CE-marked packet is delivered and counted as any other. */
		f->net.src[3] = 0;
		f->net.tclass = 3;
		f->now += 50 * RF_US;
		pkt.opcode = (uint8_t)(types[t] | BB_ROCE_WRITE_ONLY);
		pkt.psn = 6;
		bb_roce_rx(&f->qp, &pkt, &f->net, f->now);
		rf_post(f, BB_ROCE_MSG_WRITE, 2 * RF_MTU, 0);
		assert_int_equal(bb_roce_run(&f->qp, 2, f->now), 2);
		assert_int_equal(bb_roce_run(&f->qp, 2, f->now), 1);
	}
	/* A datagram gets no CNP: UD has no stream to slow down. */
	rf_init(f, BB_ROCE_UD);
	rf_start(f);
	f->net.tclass = 3;
	pkt.opcode = BB_ROCE_UD | BB_ROCE_SEND_ONLY;
	bb_roce_rx(&f->qp, &pkt, &f->net, f->now);
	assert_int_equal(f->qp.stats.ecn_ce, 1);
	assert_false(f->qp.cnp_due);
}

T_OWN_RF(test_budget_leaves_room_for_own_requests)
{
	uint32_t i, mine = 0;

	rf_init(f, BB_ROCE_RC);
	rf_start(f);
	for (i = 0; i < 8; i++)
		rf_post(f, BB_ROCE_MSG_WRITE, 1, 0);
	rf_rx(f, BB_ROCE_READ_REQUEST, 500,
	      (struct bb_roce_pkt){.rkey = RF_RKEY, .dmalen = 100 * RF_MTU});
	assert_int_equal(bb_roce_run(&f->qp, 0, f->now), 0);
	assert_int_equal(bb_roce_run(&f->qp, 16, f->now), 16);
	for (i = 0; i < 16; i++)
		mine += f->tx[i].cookie != UINT64_MAX;
	assert_int_equal(mine, 4);
	assert_int_equal(bb_roce_run(&f->qp, 1, f->now), 1);
	assert_int_equal(f->ntx, 17);
	assert_int_equal(rf_run(f), 100 + 8 - 17);
	assert_false(bb_roce_busy(&f->qp));
}

TEST_MAIN(0)
