/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Selective repeat at the responder: packets that arrive ahead of a missing one are kept, execute
 * in order, and are released once each.
 */
#include "bb_roce_short.h"
#include "roce_early_fake.h"

/* No packet executes early, then all do. There is one NAK, and one unsolicited ACK. */
T_BEGIN(test_early_packets_execute_in_order)
{
	send(f, 0);
	for (int i = 4; i >= 2; i--) {
		send(f, i);
		if (i == 4)
			fake_expect(f, NAK(PSN), 1, 1);
		expect_sends(f, 0, 0, 0);
	}
	fake_quiet(f);
	expect_kept(f, 3);
	assert_fields(f->qp.stats, stored, 3, out_of_sequence, 3);
	send(f, 1);
	expect_sends(f, 0, 0, 4);
	expect_kept(f, 0);
	fake_expect(f, ACK, 4, 5);
	/* Then it continues as usual. */
	send(f, 5);
	fake_quiet(f);
	send(f, 7);
	fake_expect(f, NAK(PSN), 6, 6);
	send(f, 6);
	fake_expect(f, ACK, 7, 8);
	expect_sends(f, 0, 0, 7);
	expect_kept(f, 0);
}

/* Packets of each kind of message, with their fields. */
T_BEGIN(test_kept_packets_keep_their_fields)
{
	const struct bb_roce_pkt more = {.va = FAKE_VA, .rkey = FAKE_KEY, .dmalen = 3 * FAKE_MTU};

	fake_rx(f, RC(SEND_LAST), 2, 9, NULL);
	fake_rx(f, RC(SEND_MIDDLE), 1, FAKE_MTU, NULL);
	fake_rx(f, RC(WRITE_LAST), 5, FAKE_MTU, NULL);
	fake_rx(f, RC(WRITE_MIDDLE), 4, FAKE_MTU, NULL);
	fake_rx(f, RC(WRITE_FIRST), 3, FAKE_MTU, &more);
	fake_expect(f, NAK(PSN), 0, 0);
	expect_kept(f, 5);
	assert_int_equal(f->takes + f->places + f->checks + f->writes, 0);
	fake_rx(f, RC(SEND_FIRST), 0, FAKE_MTU, NULL);
	fake_expect_data(f->recv_data, 0, 2, 9);
	fake_expect_data(f->mem + FAKE_START, 3, 5, FAKE_MTU);
	assert_fields(*f, n_done, 1, done[0].len, 2 * FAKE_MTU + 9);
	fake_expect(f, ACK, 5, 2);
	expect_kept(f, 0);
}

T_BEGIN(test_each_gap_gets_one_nak_at_once)
{
	send(f, 1);
	fake_expect(f, NAK(PSN), 0, 0);
	send(f, 3);
	send(f, 4);
	send(f, 7);
	fake_quiet(f);
	expect_kept(f, 4);
	send(f, 0);
	expect_sends(f, 0, 0, 1);
	fake_expect(f, NAK(PSN), 2, 2);
	send(f, 6);
	fake_quiet(f);
	fake_rx_ack(f, RC(SEND_ONLY), 2, 8);
	assert_int_equal(f->n_done, 5);
	fake_expect(f, NAK(PSN), 5, 5);
	expect_kept(f, 2);
	send(f, 5);
	assert_int_equal(f->n_done, 8);
	fake_expect(f, ACK, 7, 8);
	expect_kept(f, 0);
}

/* A duplicate is kept once, and acknowledged again after the packet has executed. */
T_BEGIN(test_kept_duplicate_is_acknowledged_after_execution)
{
	send(f, 1);
	send(f, 1);
	send(f, 1);
	fake_expect(f, NAK(PSN), 0, 0);
	expect_kept(f, 1);
	assert_int_equal(f->n_keeps, 1);
	send(f, 0);
	expect_sends(f, 0, 0, 1);
	fake_expect(f, ACK, 1, 2);
	send(f, 0);
	send(f, 1);
	expect_sends(f, 0, 0, 1);
	fake_expect(f, ACK, 1, 2);
	expect_kept(f, 0);
	assert_int_equal(f->qp.stats.duplicate, 2);
	/*
	 * A duplicate of an executed packet while others are kept: the ACK covers executed
	 * packets only.
	 */
	send(f, 3);
	fake_expect(f, NAK(PSN), 2, 2);
	send(f, 1);
	fake_expect(f, ACK, 1, 2);
	expect_kept(f, 1);
	bb_roce_qp_err(&f->qp);
	expect_kept(f, 0);
}

/* Packets are kept as far ahead as there is room; one beyond that must be sent again. */
T_BEGIN(test_packets_are_kept_as_far_as_there_is_room)
{
	for (int i = 2 * (int)FAKE_AHEADS; i > 0; i--)
		send(f, i);
	expect_kept(f, FAKE_AHEADS - 1);
	assert_int_equal(f->n_keeps, FAKE_AHEADS - 1);
	fake_expect(f, NAK(PSN), 0, 0);
	send(f, 0);
	expect_sends(f, 0, 0, FAKE_AHEADS - 1);
	fake_expect(f, ACK, FAKE_AHEADS - 1, FAKE_AHEADS);
	/* The caller has no room for more packets. */
	f->keep_room = 1;
	for (int i = 9; i <= 11; i++)
		send(f, i);
	fake_expect(f, NAK(PSN), 8, 8);
	expect_kept(f, 1);
	assert_int_equal(f->qp.stats.stored, FAKE_AHEADS);
	send(f, 8);
	expect_sends(f, 0, 0, 9);
	fake_expect(f, ACK, 9, 10);
	f->keep_room = 0;
	send(f, 11);
	fake_expect(f, NAK(PSN), 10, 10);
	send(f, 10);
	fake_quiet(f);
	expect_sends(f, 0, 0, 10);
	/* A queue pair without room. */
	fake_init(f, BB_ROCE_RC);
	send(f, 1);
	fake_expect(f, NAK(PSN), 0, 0);
	send(f, 0);
	fake_quiet(f);
	expect_sends(f, 0, 0, 0);
	assert_int_equal(f->n_keeps, 0);
}

T_BEGIN(test_kept_reads_and_atomics_answer_in_order)
{
	const struct fake_sent *s;
	uint64_t was;

	memcpy(&was, f->mem + FAKE_START + 512, 8);
	send(f, 5);
	fake_rx_atomic(f, RC(FETCH_ADD), 4, 512, 3, 0);
	fake_rx_rdma(f, RC(READ_REQUEST), 1, 0, 0, 2 * FAKE_MTU + 1);
	/* A different packet with this PSN can only be from another host. */
	send(f, 3);
	send(f, 2);
	fake_expect(f, NAK(PSN), 0, 0);
	expect_kept(f, 5);
	assert_int_equal(f->checks + f->atomics, 0);
	send(f, 0);
	expect_kept(f, 0);
	assert_fields(*f, n_done, 2, done[0].imm, 0, done[1].imm, 5, atomics, 1);
	fake_run(f, 64);
	fake_expect_read(f, RC(READ_RESP_FIRST), 1, 0, FAKE_MTU);
	fake_expect_read(f, RC(READ_RESP_MIDDLE), 2, FAKE_MTU, FAKE_MTU);
	fake_expect_read(f, RC(READ_RESP_LAST), 3, 2 * FAKE_MTU, 1);
	s = fake_next(f);
	assert_fields(s->pkt, opcode, RC(ATOMIC_ACK), psn, fake_psn(4));
	assert_true(s->pkt.orig == was);
	fake_expect(f, ACK, 5, 4);
	/* A READ that is the expected packet spans kept ones. */
	send(f, 7);
	send(f, 8);
	send(f, 9);
	fake_expect(f, NAK(PSN), 6, 4);
	fake_rx_rdma(f, RC(READ_REQUEST), 6, 0, 0, 3 * FAKE_MTU);
	expect_kept(f, 0);
	assert_fields(*f, n_done, 3, done[2].imm, 9);
	fake_run(f, 64);
	f->seen += 3;
	fake_expect(f, ACK, 9, 6);
	/* A READ that is longer than the range that can be kept. */
	send(f, 11);
	send(f, 17);
	expect_kept(f, 2);
	fake_expect(f, NAK(PSN), 10, 6);
	fake_rx_rdma(f, RC(READ_REQUEST), 10, 0, 0, 12 * FAKE_MTU);
	expect_kept(f, 0);
	assert_fields(*f, n_done, 3, qp.resp.epsn, fake_psn(22));
	/* Its data are the answer: no ACK follows. */
	assert_int_equal(fake_run(f, 64), 12);
	assert_int_equal(f->sent[f->n_sent - 1].pkt.opcode, RC(READ_RESP_LAST));
}

/* One packet has no receive: it must be sent again, the others stay kept. */
T_BEGIN(test_kept_packet_without_receive_is_requested_again)
{
	f->recvs = 2;
	send(f, 1);
	send(f, 2);
	send(f, 3);
	fake_expect(f, NAK(PSN), 0, 0);
	send(f, 0);
	expect_sends(f, 0, 0, 1);
	expect_kept(f, 1);
	fake_expect(f, BB_ROCE_AETH_RNR | 12, 2, 2);
	send(f, 4);
	send(f, 5);
	fake_quiet(f);
	expect_kept(f, 3);
	/* It has no receive the second time, either. */
	send(f, 2);
	fake_expect(f, BB_ROCE_AETH_RNR | 12, 2, 2);
	expect_kept(f, 3);
	f->recvs = 4;
	send(f, 2);
	expect_sends(f, 0, 0, 5);
	expect_kept(f, 0);
	fake_expect(f, ACK, 5, 6);
}

/* A key that cannot be invalidated now: only its packet must be sent again. */
T_BEGIN(test_kept_packet_whose_key_is_in_use_is_requested_again)
{
	send(f, 1);
	fake_rx(f, RC(SEND_ONLY_INV), 2, 8, NULL);
	send(f, 3);
	fake_expect(f, NAK(PSN), 0, 0);
	f->invalidate_status = BB_ROCE_TRY_AGAIN;
	send(f, 0);
	expect_sends(f, 0, 0, 1);
	fake_expect(f, BB_ROCE_AETH_RNR | 12, 2, 2);
	expect_kept(f, 1);
	send(f, 4);
	fake_quiet(f);
	f->invalidate_status = 0;
	fake_rx(f, RC(SEND_ONLY_INV), 2, 8, NULL);
	assert_int_equal(f->n_done, 5);
	fake_expect(f, ACK, 4, 5);
	expect_kept(f, 0);
}

static void
refused_packet(struct fake *f, uint32_t i)
{
	if (i == 0) /* outside the key */
		fake_rx_rdma(f, RC(WRITE_ONLY), 2, 8, FAKE_LEN, 8);
	else if (i == 1) /* outside any message */
		fake_rx(f, RC(SEND_LAST), 2, 8, NULL);
	else /* too long */
		fake_rx(f, RC(SEND_ONLY), 2, FAKE_MTU + 1, NULL);
}

/*
 * A kept packet that would be rejected is requested again. If it arrives the same way again, it
 * gets a NAK, nothing after it executes, and all kept packets are released.
 */
T_OWN_FAKE(test_kept_packet_that_is_refused_is_asked_for_again)
{
	for (uint32_t i = 0; i < 3; i++) {
		begin(f);
		send(f, 1);
		refused_packet(f, i);
		send(f, 3);
		send(f, 5);
		fake_expect(f, NAK(PSN), 0, 0);
		send(f, 0);
		expect_sends(f, 0, 0, 1);
		fake_expect(f, NAK(PSN), 2, 2);
		expect_kept(f, 2);
		refused_packet(f, i);
		/* The NAK must be sent first. */
		expect_kept(f, 2);
		send(f, 4);
		expect_kept(f, 2);
		fake_expect_fatal(f, i == 0 ? NAK(ACCESS) : NAK(INVALID), 2, 2,
				  i == 0 ? BB_SYN_REMOTE_ACCESS : BB_SYN_REMOTE_INVAL_REQ);
		expect_kept(f, 0);
		send(f, 2);
		expect_sends(f, 0, 0, 1);
	}
}

T_BEGIN(test_refused_expected_packet_leaves_kept_ones)
{
	f->recvs = 0;
	send(f, 1);
	fake_expect(f, NAK(PSN), 0, 0);
	send(f, 0);
	fake_expect(f, BB_ROCE_AETH_RNR | 12, 0, 0);
	expect_kept(f, 1);
	f->recvs = 2;
	fake_rx(f, RC(SEND_LAST), 0, 8, NULL);
	expect_kept(f, 1);
	fake_expect_fatal(f, NAK(INVALID), 0, 0, BB_SYN_REMOTE_INVAL_REQ);
	expect_kept(f, 0);
	assert_int_equal(f->n_done, 0);
}

/* The move to ERR releases all kept packets; the queue pair can be reused. */
T_BEGIN(test_err_releases_all_kept_packets)
{
	for (int i = 1; i < (int)FAKE_AHEADS; i++)
		send(f, i);
	expect_kept(f, FAKE_AHEADS - 1);
	bb_roce_qp_err(&f->qp);
	expect_kept(f, 0);
	for (int i = 0; i < (int)FAKE_AHEADS; i++)
		assert_null(f->ahead[i]);
	send(f, 1);
	expect_kept(f, 0);
	assert_int_equal(f->n_done, 0);
	bb_roce_qp_err(&f->qp);
	begin(f);
	send(f, 1);
	send(f, 0);
	expect_sends(f, 0, 0, 1);
}

/* Responses and unassigned opcodes are not requests. */
T_BEGIN(test_responses_are_not_kept)
{
	fake_rx(f, BB_ROCE_RC | 0x1f, 1, 8, NULL);
	fake_expect(f, NAK(PSN), 0, 0);
	expect_kept(f, 0);
	assert_int_equal(f->n_keeps, 0);
}

/* Types without answers continue with the next message. */
TEST(test_types_without_answers_keep_nothing)
{
	const struct bb_roce_pkt more = {.qkey = FAKE_QKEY, .sqpn = 3};
	static struct fake f;

	fake_init_ahead(&f, BB_ROCE_UC, FAKE_AHEADS);
	f.recvs = 8;
	for (int n = 4; n >= 1; n--)
		fake_rx(&f, UC(SEND_ONLY), n, 8, NULL);
	assert_fields(f, n_done, 4, n_keeps, 0);
	fake_init_ahead(&f, BB_ROCE_UD, FAKE_AHEADS);
	for (int n = 4; n >= 1; n--)
		fake_rx(&f, UD(SEND_ONLY), n, 8, &more);
	assert_int_equal(f.n_done, 2); /* as many as there are receives */
	assert_int_equal(f.n_keeps, 0);
}

T_BEGIN(test_fast_paths_rest_while_packets_are_kept)
{
	assert_true(bb_roce_short_next(&f->qp, fake_psn(0)));
	send(f, 1);
	assert_false(bb_roce_short_next(&f->qp, fake_psn(0)));
	send(f, 3);
	send(f, 0);
	assert_false(bb_roce_short_next(&f->qp, fake_psn(2)));
	send(f, 2);
	assert_true(bb_roce_short_next(&f->qp, fake_psn(4)));
	expect_sends(f, 0, 0, 3);
}

TEST_MAIN(0)
