/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The responder of RC: PSNs, order and lengths of packets, SENDs, WRITEs, ACKs and NAKs. */
#include "roce_fake.h"

static const uint32_t IMM = 0xa1b2c3d4;

T_FAKE(BB_ROCE_RC, test_each_request_of_one_packet_is_answered)
{
	static const struct bb_roce_pkt imm = {.flags = BB_ROCE_ACKREQ | BB_ROCE_SE,
					       .imm = 0xa1b2c3d4};

	fake_rx_ack(f, RC(SEND_ONLY), 0, 100);
	fake_expect(f, ACK, 0, 1);
	assert_fields(*f, n_done, 1, done[0].kind, BB_ROCE_MSG_SEND, done[0].status, 0);
	assert_int_equal(f->done[0].len, 100);
	assert_false(f->done[0].solicited);
	fake_expect_data(f->recv_data, 0, 0, 100);

	fake_rx(f, RC(SEND_ONLY_IMM), 1, 0, &imm);
	fake_expect(f, ACK, 1, 2);
	assert_fields(*f, n_done, 2, done[1].kind, BB_ROCE_MSG_SEND_IMM, done[1].len, 0);
	assert_int_equal(f->done[1].imm, IMM);
	assert_true(f->done[1].solicited);

	fake_rx_rdma(f, RC(WRITE_ONLY), 2, 200, 50, 200);
	fake_expect(f, ACK, 2, 3);
	fake_expect_data(f->mem + FAKE_START + 50, 2, 2, 200);
	assert_fields(*f, n_done, 2, qp.stats.rx_write, 1, failed, 0, established, 1);
}

/* Many packets, across the wrap of the PSN; the first one takes the receive. */
T_FAKE(BB_ROCE_RC, test_long_send_takes_one_receive)
{
	fake_rx(f, RC(SEND_FIRST), 0, FAKE_MTU, NULL);
	assert_int_equal(f->takes, 1);
	fake_rx(f, RC(SEND_MIDDLE), 1, FAKE_MTU, NULL);
	fake_rx(f, RC(SEND_MIDDLE), 2, FAKE_MTU, NULL);
	assert_int_equal(f->n_done, 0);
	fake_quiet(f); /* no AckReq */
	fake_rx_ack(f, RC(SEND_LAST), 3, 1);
	fake_expect(f, ACK, 3, 1);
	assert_fields(*f, takes, 1, n_done, 1, done[0].len, 3 * FAKE_MTU + 1);
	fake_expect_data(f->recv_data, 0, 3, 1);
}

T_FAKE(BB_ROCE_RC, test_long_write_arrives_whole)
{
	const struct bb_roce_pkt imm = {.flags = BB_ROCE_SE, .imm = IMM};

	fake_rx_rdma(f, RC(WRITE_FIRST), 0, FAKE_MTU, 8, 2 * FAKE_MTU + 256);
	/* A packet within a message is acknowledged. */
	fake_expect(f, ACK, 0, 0);
	fake_rx(f, RC(WRITE_MIDDLE), 1, FAKE_MTU, NULL);
	assert_int_equal(f->takes, 0);
	fake_rx(f, RC(WRITE_LAST_IMM), 2, FAKE_MTU, &imm);
	assert_fields(*f, takes, 1, checks, 1, n_done, 1, done[0].kind, BB_ROCE_MSG_WRITE_IMM);
	assert_fields(f->done[0], len, 3 * FAKE_MTU, imm, IMM);
	assert_true(f->done[0].solicited);
	fake_expect_data(f->mem + FAKE_START + 8, 0, 2, FAKE_MTU);
	fake_quiet(f);
	assert_int_equal(f->qp.resp.msn, 1);
}

T_FAKE(BB_ROCE_RC, test_one_ack_covers_all_received_packets)
{
	f->recvs = 8;
	for (int i = 0; i < 5; i++)
		fake_rx_ack(f, RC(SEND_ONLY), i, 4);
	fake_expect(f, ACK, 4, 5);
	/* The previous packet had AckReq: a newer packet without it is not covered. */
	fake_rx_ack(f, RC(SEND_ONLY), 5, 4);
	fake_rx(f, RC(SEND_ONLY), 6, 4, NULL);
	fake_expect(f, ACK, 5, 7);
	assert_int_equal(f->n_done, 7);
	fake_rx(f, RC(SEND_ONLY), 2, 4, NULL);
	fake_rx(f, RC(SEND_ONLY), 3, 4, NULL);
	fake_expect(f, ACK, 6, 7);
	assert_fields(*f, n_done, 7, takes, 7, qp.stats.duplicate, 2);
}

T_FAKE(BB_ROCE_RC, test_repeated_write_does_not_write_again)
{
	fake_rx_rdma(f, RC(WRITE_FIRST), 0, FAKE_MTU, 0, FAKE_MTU + 5);
	fake_rx_ack(f, RC(WRITE_LAST), 1, 5);
	fake_expect(f, ACK, 1, 1);
	memset(f->mem, 0x77, sizeof(f->mem));
	fake_rx_rdma(f, RC(WRITE_FIRST), 0, FAKE_MTU, 0, FAKE_MTU + 5);
	fake_rx(f, RC(WRITE_LAST), 1, 5, NULL);
	fake_expect(f, ACK, 1, 1);
	assert_fields(*f, mem[FAKE_START], 0x77, writes, 2);
	/* In the middle of a message too. */
	fake_rx_rdma(f, RC(WRITE_FIRST), 2, FAKE_MTU, 0, FAKE_MTU + 5);
	fake_rx(f, RC(WRITE_LAST), 1, 5, NULL);
	fake_expect(f, ACK, 2, 1);
	fake_rx_ack(f, RC(WRITE_LAST), 3, 5);
	fake_expect(f, ACK, 3, 2);
	fake_expect_data(f->mem + FAKE_START, 2, 3, 5);
}

/* After a gap: one NAK until the missing packet arrives, and nothing executes. */
T_FAKE(BB_ROCE_RC, test_gap_gets_one_nak_and_executes_nothing)
{
	f->recvs = 8;
	fake_rx_ack(f, RC(SEND_ONLY), 0, 4);
	fake_rx_ack(f, RC(SEND_ONLY), 2, 4);
	/* The NAK acknowledges the first packet as an ACK would. */
	fake_expect(f, NAK(PSN), 1, 1);
	fake_rx_ack(f, RC(SEND_ONLY), 3, 4);
	fake_rx_ack(f, RC(SEND_ONLY), 2, 4);
	fake_quiet(f);
	assert_int_equal(f->n_done, 1);
	fake_rx_ack(f, RC(SEND_ONLY), 1, 4);
	fake_rx_ack(f, RC(SEND_ONLY), 2, 4);
	fake_expect(f, ACK, 2, 3);
	assert_int_equal(f->n_done, 3);
	/* A new gap gets a new NAK. */
	fake_rx_ack(f, RC(SEND_ONLY), 4, 4);
	fake_expect(f, NAK(PSN), 3, 3);
	assert_fields(*f, qp.stats.out_of_sequence, 4, failed, 0);
}

/* The missing packet arrives before the NAK is sent: the NAK is dropped. */
T_FAKE(BB_ROCE_RC, test_late_packet_cancels_the_nak)
{
	fake_rx(f, RC(SEND_ONLY), 1, 4, NULL);
	fake_rx(f, RC(SEND_ONLY), 0, 4, NULL);
	fake_expect(f, ACK, 0, 1);
}

/* The farthest PSNs on both sides of the expected one. */
T_FAKE(BB_ROCE_RC, test_farthest_psns_are_duplicate_or_gap)
{
	fake_rx(f, RC(SEND_ONLY), -0x800000, 4, NULL);
	fake_expect(f, ACK, -1, 0);
	fake_rx(f, RC(SEND_ONLY), 0x7fffff, 4, NULL);
	fake_expect(f, NAK(PSN), 0, 0);
	assert_fields(*f, n_done, 0, qp.stats.duplicate, 1, qp.stats.out_of_sequence, 1);
	assert_int_equal(f->established, 0);
}

struct bad {
	const char *what;
	struct {
		uint8_t opcode;
		uint32_t len, dmalen;
	} pkt[3]; /* the last one is invalid */
	uint32_t n;
};

/* Sequences, lengths and opcodes that no requester sends: NAK invalid request. */
TEST(test_impossible_requests_get_invalid_request)
{
	static const struct bad bad[] = {
		{"MIDDLE alone", {{RC(SEND_MIDDLE), 256, 0}}, 1},
		{"LAST alone", {{RC(SEND_LAST), 4, 0}}, 1},
		{"LAST_IMM alone", {{RC(SEND_LAST_IMM), 4, 0}}, 1},
		{"LAST_INV alone", {{RC(SEND_LAST_INV), 4, 0}}, 1},
		{"WRITE_MIDDLE alone", {{RC(WRITE_MIDDLE), 256, 0}}, 1},
		{"WRITE_LAST alone", {{RC(WRITE_LAST), 4, 0}}, 1},
		{"FIRST after FIRST", {{RC(SEND_FIRST), 256, 0}, {RC(SEND_FIRST), 256, 0}}, 2},
		{"ONLY after FIRST", {{RC(SEND_FIRST), 256, 0}, {RC(SEND_ONLY), 4, 0}}, 2},
		{"WRITE in SEND", {{RC(SEND_FIRST), 256, 0}, {RC(WRITE_LAST), 4, 0}}, 2},
		{"WRITE_ONLY in SEND", {{RC(SEND_FIRST), 256, 0}, {RC(WRITE_ONLY), 4, 4}}, 2},
		{"SEND in WRITE", {{RC(WRITE_FIRST), 256, 260}, {RC(SEND_LAST), 4, 0}}, 2},
		{"READ in WRITE", {{RC(WRITE_FIRST), 256, 260}, {RC(READ_REQUEST), 0, 4}}, 2},
		{"atomic in SEND", {{RC(SEND_FIRST), 256, 0}, {RC(FETCH_ADD), 0, 0}}, 2},
		{"LAST after ONLY", {{RC(SEND_ONLY), 4, 0}, {RC(SEND_LAST), 4, 0}}, 2},
		{"short FIRST", {{RC(SEND_FIRST), 255, 0}}, 1},
		{"empty FIRST", {{RC(SEND_FIRST), 0, 0}}, 1},
		{"long FIRST", {{RC(SEND_FIRST), 257, 0}}, 1},
		{"short MIDDLE", {{RC(SEND_FIRST), 256, 0}, {RC(SEND_MIDDLE), 252, 0}}, 2},
		{"empty LAST", {{RC(SEND_FIRST), 256, 0}, {RC(SEND_LAST), 0, 0}}, 2},
		{"long LAST", {{RC(SEND_FIRST), 256, 0}, {RC(SEND_LAST), 257, 0}}, 2},
		{"long ONLY", {{RC(SEND_ONLY), 257, 0}}, 1},
		{"long WRITE_ONLY", {{RC(WRITE_ONLY), 257, 257}}, 1},
		{"short WRITE_FIRST", {{RC(WRITE_FIRST), 255, 300}}, 1},
		{"WRITE_ONLY beyond RETH", {{RC(WRITE_ONLY), 5, 4}}, 1},
		{"WRITE_ONLY below RETH", {{RC(WRITE_ONLY), 4, 5}}, 1},
		{"WRITE_ONLY of no bytes with some", {{RC(WRITE_ONLY), 0, 1}}, 1},
		{"WRITE_FIRST that is all", {{RC(WRITE_FIRST), 256, 256}}, 1},
		{"WRITE_FIRST beyond RETH", {{RC(WRITE_FIRST), 256, 255}}, 1},
		{"WRITE_MIDDLE that is the rest",
		 {{RC(WRITE_FIRST), 256, 512}, {RC(WRITE_MIDDLE), 256, 0}},
		 2},
		{"WRITE_LAST beyond RETH",
		 {{RC(WRITE_FIRST), 256, 300}, {RC(WRITE_LAST), 45, 0}},
		 2},
		{"WRITE_LAST below RETH",
		 {{RC(WRITE_FIRST), 256, 300}, {RC(WRITE_LAST), 43, 0}},
		 2},
		{"more than 2^31 bytes", {{RC(WRITE_FIRST), 256, 0x80000001}}, 1},
		{"READ of more than 2^31 bytes", {{RC(READ_REQUEST), 0, 0x80000001}}, 1},
		{"no opcode 0x15", {{0x15, 0, 0}}, 1},
		{"no opcode 0x1f", {{0x1f, 0, 0}}, 1},
	};
	struct fake f, before;
	uint32_t k;

	for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const struct bad *b = &bad[i];
		uint32_t msn = 0, takes;

		fake_init(&f, BB_ROCE_RC);
		for (k = 0; k + 1 < b->n; k++) {
			fake_rx_rdma(&f, b->pkt[k].opcode, (int)k, b->pkt[k].len, 0,
				     b->pkt[k].dmalen);
			msn += b->pkt[k].opcode == RC(SEND_ONLY);
		}
		takes = f.takes;
		memcpy(&before, &f, sizeof(f));
		fake_rx_rdma(&f, b->pkt[k].opcode, (int)k, b->pkt[k].len, 0, b->pkt[k].dmalen);
		if (!f.qp.resp.ack_due || f.qp.resp.ack_syndrome != NAK(INVALID))
			print_error("%s\n", b->what);
		fake_expect_fatal(&f, NAK(INVALID), (int)k, msn, BB_SYN_REMOTE_INVAL_REQ);
		/* Nothing was written, taken or checked; a receive already taken completes. */
		assert_memory_equal(f.mem, before.mem, sizeof(f.mem));
		assert_memory_equal(f.recv_data, before.recv_data, sizeof(f.recv_data));
		assert_fields(f, takes, takes, checks, before.checks, atomics, 0, n_done, takes);
		if (takes > before.n_done)
			assert_int_equal(f.done[takes - 1].status, BB_SYN_REMOTE_INVAL_REQ);
		assert_int_equal(f.qp.stats.resp_remote_invalid, 1);
	}
}

/* After a fatal NAK was queued, and before it is sent, no packet executes. */
T_FAKE(BB_ROCE_RC, test_nothing_executes_after_a_fatal_nak)
{
	f->room = 0;
	fake_rx(f, RC(SEND_LAST), 0, 4, NULL);
	assert_int_equal(fake_run(f, 8), 0);
	assert_int_equal(f->failed, 0);
	assert_true(bb_roce_busy(&f->qp));
	fake_rx_ack(f, RC(SEND_ONLY), 0, 4);
	fake_rx_rdma(f, RC(WRITE_ONLY), 0, 4, 0, 4);
	fake_rx_rdma(f, RC(READ_REQUEST), 0, 0, 0, 4);
	fake_rx_ack(f, RC(SEND_ONLY), -1, 4);
	fake_rx_ack(f, RC(SEND_ONLY), 1, 4);
	assert_int_equal(f->takes + f->writes + f->checks, 0);
	assert_int_equal(f->qp.stats.drop_state, 5);
	f->room = 8;
	fake_expect_fatal(f, NAK(INVALID), 0, 0, BB_SYN_REMOTE_INVAL_REQ);
	fake_rx_ack(f, RC(SEND_ONLY), 0, 4);
	fake_quiet(f);
	assert_int_equal(f->takes, 0);
}

/* No receive: RNR NAK with the timer, and nothing is taken. The packet then arrives again. */
TEST(test_missing_receive_gets_an_rnr_nak)
{
	static const uint8_t op[] = {RC(SEND_ONLY), RC(SEND_ONLY_IMM), RC(WRITE_ONLY_IMM)};
	struct fake f;

	for (uint32_t i = 0; i < sizeof(op); i++) {
		fake_init(&f, BB_ROCE_RC);
		f.recvs = 0;
		fake_rx_rdma(&f, op[i], 0, 32, 0, 32);
		fake_expect(&f, BB_ROCE_AETH_RNR | 12, 0, 0);
		/* The packets after it are sent again after the time in the RNR NAK. */
		fake_rx_ack(&f, RC(SEND_ONLY), 1, 4);
		fake_quiet(&f);
		assert_int_equal(f.writes, 0);
		fake_rx_rdma(&f, op[i], 0, 32, 0, 32);
		fake_expect(&f, BB_ROCE_AETH_RNR | 12, 0, 0);
		assert_int_equal(f.qp.stats.out_of_buffer, 2);
		f.recvs = 1;
		fake_rx_rdma(&f, op[i], 0, 32, 0, 32);
		fake_expect(&f, ACK, 0, 1);
		assert_fields(f, n_done, 1, failed, 0);
	}
}

/* The last packet of a WRITE with immediate waits for a receive; those before it are written. */
T_FAKE(BB_ROCE_RC, test_write_with_imm_waits_for_its_receive)
{
	f->recvs = 0;
	fake_rx_rdma(f, RC(WRITE_FIRST), 0, FAKE_MTU, 0, FAKE_MTU + 3);
	fake_rx_ack(f, RC(WRITE_LAST_IMM), 1, 3);
	fake_expect(f, BB_ROCE_AETH_RNR | 12, 1, 0);
	assert_int_equal(f->writes, 1);
	f->recvs = 1;
	fake_rx_ack(f, RC(WRITE_LAST_IMM), 1, 3);
	fake_expect(f, ACK, 1, 1);
	fake_expect_data(f->mem + FAKE_START, 0, 1, 3);
	assert_int_equal(f->n_done, 1);
}

/* Data that a receive does not accept: its completion, and the sender's NAK. */
TEST(test_unacceptable_data_complete_receive_with_error)
{
	static const struct {
		uint8_t status, nak, synd;
	} c[] = {
		{BB_SYN_LOCAL_LENGTH, NAK(INVALID), BB_SYN_REMOTE_INVAL_REQ},
		{BB_SYN_LOCAL_PROT, NAK(OP), BB_SYN_REMOTE_OP},
		{BB_SYN_LOCAL_QP_OP, NAK(OP), BB_SYN_REMOTE_OP},
	};
	struct fake f;

	for (uint32_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		fake_init(&f, BB_ROCE_RC);
		fake_rx(&f, RC(SEND_FIRST), 0, FAKE_MTU, NULL);
		f.recv_status = c[i].status;
		fake_rx_ack(&f, RC(SEND_LAST), 1, 4);
		fake_expect_fatal(&f, c[i].nak, 1, 0, c[i].synd);
		assert_fields(f, n_done, 1, done[0].status, c[i].status);
		assert_fields(f.qp.stats, resp_local_length, i == 0, resp_local_prot, i == 1);
		assert_int_equal(f.qp.stats.resp_remote_invalid, 0); /* as on the loop port */
	}
	/* Too long for the receive from the start. */
	fake_init(&f, BB_ROCE_RC);
	f.recv_room = 99;
	fake_rx_ack(&f, RC(SEND_ONLY), 0, 100);
	fake_expect_fatal(&f, NAK(INVALID), 0, 0, BB_SYN_REMOTE_INVAL_REQ);
	assert_int_equal(f.done[0].status, BB_SYN_LOCAL_LENGTH);
}

T_OWN_FAKE(test_broken_queue_reports_remote_operational_error)
{
	static const uint8_t op[] = {RC(SEND_ONLY), RC(WRITE_ONLY_IMM)};

	for (uint32_t i = 0; i < sizeof(op); i++) {
		fake_init(f, BB_ROCE_RC);
		f->recv_broken = true;
		fake_rx_rdma(f, op[i], 0, 4, 0, 4);
		fake_expect_fatal(f, NAK(OP), 0, 0, BB_SYN_REMOTE_OP);
		assert_int_equal(f->n_done, 0);
		fake_init(f, BB_ROCE_RC);
		f->done_status = BB_SYN_LOCAL_QP_OP;
		fake_rx_rdma(f, op[i], 0, 4, 0, 4);
		fake_expect_fatal(f, NAK(OP), 0, 0, BB_SYN_REMOTE_OP);
		assert_int_equal(f->n_done, 1);
	}
}

T_FAKE(BB_ROCE_RC, test_key_is_invalidated_before_the_completion)
{
	const struct bb_roce_pkt inv = {.flags = BB_ROCE_ACKREQ, .imm = FAKE_KEY};

	fake_rx(f, RC(SEND_FIRST), 0, FAKE_MTU, NULL);
	fake_rx(f, RC(SEND_LAST_INV), 1, 4, &inv);
	fake_expect(f, ACK, 1, 1);
	assert_fields(*f, n_invalidated, 1, invalidated, FAKE_KEY, done_at_invalidate, 0);
	assert_fields(f->done[0], kind, BB_ROCE_MSG_SEND_INV, imm, FAKE_KEY, len, FAKE_MTU + 4);

	/* Not possible now: the peer must send it again, and the receive stays taken. */
	f->invalidate_status = BB_ROCE_TRY_AGAIN;
	fake_rx(f, RC(SEND_ONLY_INV), 2, 4, &inv);
	fake_expect(f, BB_ROCE_AETH_RNR | 12, 2, 1);
	assert_int_equal(f->n_done, 1);
	fake_rx_ack(f, RC(SEND_ONLY), 3, 4);
	fake_quiet(f);
	f->invalidate_status = 0;
	fake_rx(f, RC(SEND_ONLY_INV), 2, 4, &inv);
	fake_expect(f, ACK, 2, 2);
	assert_fields(*f, takes, 2, n_done, 2);

	/* Rejected: the receive fails and the sender gets a NAK, as on the loop port. */
	f->recvs = 1;
	f->invalidate_status = BB_SYN_REMOTE_ACCESS;
	fake_rx(f, RC(SEND_ONLY_INV), 3, 4, &inv);
	fake_expect_fatal(f, NAK(OP), 3, 2, BB_SYN_REMOTE_OP);
	assert_fields(*f, n_done, 3, done[2].status, BB_SYN_REMOTE_INVAL_REQ);
}

/* Keys, bounds and rights are checked at the first packet for the whole message. */
TEST(test_write_is_checked_whole_at_its_first_packet)
{
	static const struct {
		uint64_t off;
		uint32_t len, rkey;
		uint8_t synd;
		bool right;
	} c[] = {
		{0, 600, FAKE_KEY + 1, BB_SYN_REMOTE_ACCESS, true},
		{FAKE_LEN - 599, 600, FAKE_KEY, BB_SYN_REMOTE_ACCESS, true},
		{(uint64_t)-1, 600, FAKE_KEY, BB_SYN_REMOTE_ACCESS, true},
		{0, FAKE_LEN + 1, FAKE_KEY, BB_SYN_REMOTE_ACCESS, true},
		{0, 0x80000000, FAKE_KEY, BB_SYN_REMOTE_ACCESS, true},
		{0, 600, FAKE_KEY, BB_SYN_REMOTE_INVAL_REQ, false},
	};
	uint8_t before[FAKE_MEM];
	struct fake f;

	for (uint32_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		const struct bb_roce_pkt pkt = {
			.va = FAKE_VA + c[i].off, .rkey = c[i].rkey, .dmalen = c[i].len};
		bool access = c[i].synd == BB_SYN_REMOTE_ACCESS;

		fake_init(&f, BB_ROCE_RC);
		memcpy(before, f.mem, sizeof(before));
		f.no_right = c[i].right ? 0 : 1u << BB_ROCE_ACCESS_WRITE;
		fake_rx(&f, RC(WRITE_FIRST), 0, FAKE_MTU, &pkt);
		fake_expect_fatal(&f, access ? NAK(ACCESS) : NAK(INVALID), 0, 0, c[i].synd);
		assert_memory_equal(f.mem, before, sizeof(before));
		assert_fields(f, writes, 0, qp.stats.resp_remote_access, access);
		assert_int_equal(f.qp.stats.resp_remote_invalid, !access);
	}
	/* The key is destroyed in the middle of a message. */
	fake_init(&f, BB_ROCE_RC);
	fake_rx_rdma(&f, RC(WRITE_FIRST), 0, FAKE_MTU, 0, FAKE_MTU + 4);
	f.key_gone = true;
	memcpy(before, f.mem, sizeof(before));
	fake_rx_ack(&f, RC(WRITE_LAST), 1, 4);
	fake_expect_fatal(&f, NAK(ACCESS), 1, 0, BB_SYN_REMOTE_ACCESS);
	assert_memory_equal(f.mem, before, sizeof(before));
}

T_FAKE(BB_ROCE_RC, test_write_of_zero_bytes_checks_only_the_right)
{
	const struct bb_roce_pkt pkt = {.va = 77, .rkey = 0xdead, .flags = BB_ROCE_ACKREQ};

	fake_rx(f, RC(WRITE_ONLY), 0, 0, &pkt);
	fake_expect(f, ACK, 0, 1);
	fake_rx(f, RC(WRITE_ONLY_IMM), 1, 0, &pkt);
	fake_expect(f, ACK, 1, 2);
	assert_fields(*f, writes, 0, n_done, 1, done[0].len, 0);
	f->no_right = 1u << BB_ROCE_ACCESS_WRITE;
	fake_rx(f, RC(WRITE_ONLY), 2, 0, &pkt);
	fake_expect_fatal(f, NAK(INVALID), 2, 2, BB_SYN_REMOTE_INVAL_REQ);
}

/* The port is full: the acknowledgement waits and covers packets that arrive meanwhile. */
T_FAKE(BB_ROCE_RC, test_full_port_delays_and_merges_acknowledgements)
{
	f->room = 0;
	fake_rx_ack(f, RC(SEND_ONLY), 0, 4);
	assert_int_equal(fake_run(f, 8), 0);
	assert_true(bb_roce_busy(&f->qp));
	fake_rx_ack(f, RC(SEND_ONLY), 1, 4);
	assert_int_equal(fake_run(f, 8), 0);
	f->room = 8;
	assert_int_equal(fake_run(f, 0), 0);
	fake_expect(f, ACK, 1, 2);
}

TEST_MAIN(0)
