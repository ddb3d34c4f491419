/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Messages that the responder rejects in the middle: the completion of the receive already taken,
 * and the NAK.
 */
#include "roce_fake.h"

/* Full packets in a row: the one that exceeds the RETH's length is not written. */
T_FAKE(BB_ROCE_RC, test_packet_past_the_length_is_not_written)
{
	fake_rx_rdma(f, RC(WRITE_FIRST), 0, FAKE_MTU, 0, FAKE_MTU + 44);
	fake_rx(f, RC(WRITE_MIDDLE), 1, FAKE_MTU, NULL);
	assert_int_equal(f->writes, 1);
	fake_expect_fatal(f, NAK(INVALID), 1, 0, BB_SYN_REMOTE_INVAL_REQ);
}

/* A SEND has no length field: it ends at 2^31 bytes. */
T_FAKE(BB_ROCE_RC, test_send_ends_at_2_to_the_31_bytes)
{
	fake_rx(f, RC(SEND_FIRST), 0, FAKE_MTU, NULL);
	f->qp.resp.off = BB_ROCE_MAX_MSG - FAKE_MTU + 1;
	fake_rx(f, RC(SEND_MIDDLE), 1, FAKE_MTU, NULL);
	assert_fields(*f, places, 1, qp.stats.resp_remote_invalid, 1);
	fake_expect_fatal(f, NAK(INVALID), 1, 0, BB_SYN_REMOTE_INVAL_REQ);

	fake_init(f, BB_ROCE_UC);
	fake_rx(f, UC(SEND_FIRST), 0, FAKE_MTU, NULL);
	f->qp.resp.off = BB_ROCE_MAX_MSG - FAKE_MTU + 1;
	fake_rx(f, UC(SEND_MIDDLE), 1, FAKE_MTU, NULL);
	fake_rx(f, UC(SEND_LAST), 2, 1, NULL);
	assert_fields(*f, places, 1, qp.stats.drop_length, 1, n_done, 0, failed, 0);
}

T_FAKE(BB_ROCE_RC, test_failed_message_completes_with_kind_and_length)
{
	const struct bb_roce_pkt inv = {.imm = FAKE_KEY};

	fake_rx(f, RC(SEND_FIRST), 0, FAKE_MTU, NULL);
	f->recv_status = BB_SYN_LOCAL_PROT;
	fake_rx(f, RC(SEND_LAST), 1, 4, NULL);
	assert_fields(*f, n_done, 1, done[0].kind, BB_ROCE_MSG_SEND, done[0].len, FAKE_MTU + 4);

	fake_init(f, BB_ROCE_RC);
	fake_rx(f, RC(SEND_FIRST), 0, FAKE_MTU, NULL);
	f->invalidate_status = BB_SYN_REMOTE_ACCESS;
	fake_rx(f, RC(SEND_LAST_INV), 1, 4, &inv);
	assert_fields(*f, n_done, 1, done[0].kind, BB_ROCE_MSG_SEND_INV, done[0].len, FAKE_MTU + 4);

	/* A WRITE takes a receive only for its immediate. */
	fake_init(f, BB_ROCE_RC);
	fake_rx_rdma(f, RC(WRITE_FIRST), 0, FAKE_MTU, 0, FAKE_MTU + 4);
	f->key_gone = true;
	fake_rx(f, RC(WRITE_LAST_IMM), 1, 4, NULL);
	assert_fields(*f, n_done, 1, done[0].kind, BB_ROCE_MSG_WRITE_IMM);
	assert_fields(f->done[0], status, BB_SYN_REMOTE_ACCESS, len, FAKE_MTU);
}

/* A queue pair without a receive queue sends NAK invalid request: RNR NAKs would never end. */
T_OWN_FAKE(test_missing_receive_queue_is_invalid_request)
{
	static const uint8_t op[] = {RC(SEND_ONLY), RC(SEND_FIRST), RC(WRITE_ONLY_IMM)};
	uint32_t len;

	for (uint32_t i = 0; i < sizeof(op); i++) {
		fake_init(f, BB_ROCE_RC);
		f->recv_never = true;
		len = op[i] == RC(SEND_FIRST) ? FAKE_MTU : 4;
		fake_rx_rdma(f, op[i], 0, len, 0, len);
		fake_expect_fatal(f, NAK(INVALID), 0, 0, BB_SYN_REMOTE_INVAL_REQ);
		assert_fields(f->qp.stats, resp_remote_invalid, 1, out_of_buffer, 0);
		assert_int_equal(f->writes + f->n_done, 0);
	}
	fake_init(f, BB_ROCE_UC);
	f->recv_never = true;
	fake_rx(f, UC(SEND_FIRST), 0, FAKE_MTU, NULL);
	fake_rx(f, UC(SEND_LAST), 1, 4, NULL);
	assert_fields(f->qp.stats, drop_no_recv, 1, drop_order, 1);
	assert_int_equal(f->failed + f->n_done, 0);
}

/* The peer's first packet is reported once, also if a NAK rejects it or UC drops it. */
T_OWN_FAKE(test_rejected_first_packet_establishes_communication)
{
	fake_init(f, BB_ROCE_RC);
	f->recvs = 0;
	for (uint32_t i = 0; i < 2; i++) {
		fake_rx(f, RC(SEND_ONLY), 0, 4, NULL);
		fake_expect(f, BB_ROCE_AETH_RNR | 12, 0, 0);
		assert_int_equal(f->established, 1);
	}

	fake_init(f, BB_ROCE_RC);
	f->key_gone = true;
	fake_rx_rdma(f, RC(WRITE_ONLY), 0, 4, 0, 4);
	assert_int_equal(f->established, 1);
	fake_expect_fatal(f, NAK(ACCESS), 0, 0, BB_SYN_REMOTE_ACCESS);

	fake_init(f, BB_ROCE_UC);
	f->recvs = 0;
	fake_rx(f, UC(SEND_ONLY), 0, 4, NULL);
	assert_fields(*f, qp.stats.drop_no_recv, 1, established, 1);

	/* A packet without the beginning of its message is none of the peer's requests. */
	fake_init(f, BB_ROCE_RC);
	fake_rx(f, RC(SEND_MIDDLE), 0, FAKE_MTU, NULL);
	assert_int_equal(f->established, 0);
	fake_expect_fatal(f, NAK(INVALID), 0, 0, BB_SYN_REMOTE_INVAL_REQ);
}

static uint8_t
odd_check(void *ctx, struct bb_roce_qp *qp, enum bb_roce_access access, uint32_t rkey, uint64_t va,
	  uint32_t len)
{
	return BB_SYN_LOCAL_PROT;
}

T_OWN_FAKE(test_own_memory_fault_is_remote_operational_error)
{
	struct bb_roce_ops ops = fake_ops;

	ops.remote_check = odd_check;
	fake_init(f, BB_ROCE_RC);
	f->qp.ops = &ops;
	fake_rx_rdma(f, RC(WRITE_ONLY), 0, 4, 0, 4);
	fake_expect_fatal(f, NAK(OP), 0, 0, BB_SYN_REMOTE_OP);
}

/* UC: a message that fails at its second packet is dropped to its end. */
TEST(test_failed_uc_message_is_dropped_to_its_end)
{
	struct fake f;

	/* The message does not fit its receive; the remaining packets would. */
	fake_init(&f, BB_ROCE_UC);
	f.recv_room = FAKE_MTU + 44;
	fake_rx(&f, UC(SEND_FIRST), 0, FAKE_MTU, NULL);
	fake_rx(&f, UC(SEND_MIDDLE), 1, FAKE_MTU, NULL);
	assert_int_equal(f.qp.stats.drop_length, 1);
	fake_rx(&f, UC(SEND_LAST), 2, 4, NULL);
	assert_fields(f, n_done, 0, qp.stats.drop_order, 1);
	/* A packet of the wrong length. */
	fake_rx(&f, UC(SEND_FIRST), 3, FAKE_MTU, NULL);
	fake_rx(&f, UC(SEND_MIDDLE), 4, FAKE_MTU - 1, NULL);
	fake_rx(&f, UC(SEND_LAST), 5, 4, NULL);
	assert_fields(f, n_done, 0, qp.stats.drop_length, 2, qp.stats.drop_order, 2);
	/* No receive for the immediate: the message ends. A second last packet does not revive it.
	 */
	f.recvs = 0;
	f.qp.resp.have_recv = false;
	fake_rx_rdma(&f, UC(WRITE_FIRST), 6, FAKE_MTU, 0, FAKE_MTU + 4);
	fake_rx(&f, UC(WRITE_LAST_IMM), 7, 4, NULL);
	assert_int_equal(f.qp.stats.drop_no_recv, 1);
	f.recvs = 1;
	fake_rx(&f, UC(WRITE_LAST_IMM), 8, 4, NULL);
	assert_fields(f, n_done, 0, qp.stats.drop_order, 3, failed, 0);
}

/*
 * READs that are answered again make way for new ones: the rest of the first is not sent, and the
 * next starts with its first packet.
 */
T_FAKE(BB_ROCE_RC, test_repeated_reads_make_way_for_new_ones)
{
	int i;

	for (i = 0; i < (int)FAKE_READS; i++)
		fake_rx_rdma(f, RC(READ_REQUEST), 3 * i, 0, (uint64_t)i * 8, 3 * FAKE_MTU);
	assert_int_equal(fake_run(f, 64), 3 * FAKE_READS);
	f->seen = f->n_sent;
	fake_rx_rdma(f, RC(READ_REQUEST), 0, 0, 0, 3 * FAKE_MTU);
	assert_int_equal(fake_run(f, 2), 2);
	f->seen = f->n_sent;
	fake_rx_rdma(f, RC(READ_REQUEST), 3 * i, 0, 100, 4);
	(void)fake_run(f, 64);
	fake_expect_read(f, RC(READ_RESP_FIRST), 3, 8, FAKE_MTU);
	fake_expect_read(f, RC(READ_RESP_MIDDLE), 4, 8 + FAKE_MTU, FAKE_MTU);
	fake_expect_read(f, RC(READ_RESP_LAST), 5, 8 + 2 * FAKE_MTU, FAKE_MTU);
	f->seen += 6;
	fake_expect_read(f, RC(READ_RESP_ONLY), 12, 100, 4);
	fake_quiet(f);
}

/* The maximum number of READs in progress: each continues where it was. */
T_FAKE(BB_ROCE_RC, test_all_reads_in_progress_continue)
{
	fake_rx_rdma(f, RC(READ_REQUEST), 0, 0, 0, 3 * FAKE_MTU);
	assert_int_equal(fake_run(f, 1), 1);
	f->seen = f->n_sent;
	for (int i = 0; i < (int)FAKE_READS - 1; i++)
		fake_rx_rdma(f, RC(READ_REQUEST), 3 + i, 0, 0, 4);
	assert_int_equal(fake_run(f, 64), 2 + FAKE_READS - 1);
	fake_expect_read(f, RC(READ_RESP_MIDDLE), 1, FAKE_MTU, FAKE_MTU);
}

/* A READ that is answered again does not hide a later gap: the NAK is sent, too. */
T_FAKE(BB_ROCE_RC, test_repeated_read_does_not_hide_a_gap)
{
	fake_rx_rdma(f, RC(READ_REQUEST), 0, 0, 0, 4);
	assert_int_equal(fake_run(f, 64), 1);
	f->seen = f->n_sent;
	fake_rx_ack(f, RC(SEND_ONLY), 2, 4);
	fake_rx_rdma(f, RC(READ_REQUEST), 0, 0, 0, 4);
	assert_int_equal(fake_run(f, 1), 1);
	fake_expect_read(f, RC(READ_RESP_ONLY), 0, 0, 4);
	fake_expect(f, NAK(PSN), 1, 1);
}

TEST_MAIN(0)
