/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The responder of UC: errors drop a message without an answer. */
#include "roce_fake.h"

T_FAKE(BB_ROCE_UC, test_messages_of_every_kind_arrive)
{
	const struct bb_roce_pkt imm = {.imm = 0x55667788, .flags = BB_ROCE_SE};

	fake_rx_ack(f, UC(SEND_FIRST), 0, FAKE_MTU);
	fake_rx(f, UC(SEND_LAST_IMM), 1, 9, &imm);
	fake_rx_rdma(f, UC(WRITE_FIRST), 2, FAKE_MTU, 16, 2 * FAKE_MTU);
	fake_rx(f, UC(WRITE_LAST_IMM), 3, FAKE_MTU, &imm);
	fake_rx_rdma(f, UC(WRITE_ONLY), 4, 1, 2048, 1);
	assert_fields(*f, n_done, 2, done[0].kind, BB_ROCE_MSG_SEND_IMM, done[0].len, FAKE_MTU + 9);
	assert_int_equal(f->done[0].imm, imm.imm);
	assert_true(f->done[0].solicited);
	fake_expect_data(f->recv_data, 0, 1, 9);
	assert_fields(f->done[1], kind, BB_ROCE_MSG_WRITE_IMM, len, 2 * FAKE_MTU);
	fake_expect_data(f->mem + FAKE_START + 16, 2, 3, FAKE_MTU);
	fake_expect_data(f->mem + FAKE_START + 2048, 4, 4, 1);
	assert_int_equal(f->established, 1);
	fake_quiet(f);
}

/* A message may start at any PSN. A gap inside drops it, and its receive serves the next one. */
T_FAKE(BB_ROCE_UC, test_gap_drops_the_message_and_keeps_its_receive)
{
	fake_rx(f, UC(SEND_MIDDLE), 0, FAKE_MTU, NULL);
	fake_rx(f, UC(SEND_LAST), 1, 4, NULL);
	assert_fields(*f, takes, 0, qp.stats.drop_order, 2);
	fake_rx(f, UC(SEND_FIRST), 100, FAKE_MTU, NULL);
	fake_rx(f, UC(SEND_MIDDLE), 102, FAKE_MTU, NULL);
	/* Back in sequence, but the message is already dropped. */
	fake_rx(f, UC(SEND_MIDDLE), 101, FAKE_MTU, NULL);
	fake_rx(f, UC(SEND_LAST), 102, 4, NULL);
	assert_fields(*f, n_done, 0, places, 1, qp.stats.drop_order, 5);
	fake_rx(f, UC(SEND_ONLY), 103, 50, NULL);
	assert_fields(*f, n_done, 1, takes, 1, done[0].len, 50);
	fake_expect_data(f->recv_data, 103, 103, 50);
	/* A PSN behind the expected one: treated as new, since they cannot be distinguished. */
	fake_rx(f, UC(SEND_ONLY), 0, 50, NULL);
	assert_fields(*f, n_done, 2, qp.stats.out_of_sequence, 4);
	fake_quiet(f);
	assert_int_equal(f->failed, 0);
}

/* Wrong sequences and lengths drop the message up to the start of the next one. */
TEST(test_wrong_packet_drops_up_to_the_next_start)
{
	static const struct {
		struct {
			uint8_t opcode;
			uint32_t len, dmalen;
		} pkt[3];
		uint32_t n;
		uint64_t length, order;
	} c[] = {
		{{{UC(SEND_FIRST), 256, 0}, {UC(WRITE_LAST), 4, 0}, {UC(SEND_LAST), 4, 0}},
		 3,
		 0,
		 2},
		{{{UC(WRITE_FIRST), 256, 260}, {UC(SEND_LAST), 4, 0}, {UC(WRITE_LAST), 4, 0}},
		 3,
		 0,
		 2},
		{{{UC(SEND_ONLY), 4, 0}, {UC(SEND_LAST), 4, 0}}, 2, 0, 1},
		{{{UC(SEND_FIRST), 256, 0}, {UC(SEND_FIRST), 256, 0}}, 2, 0, 1},
		{{{UC(SEND_FIRST), 255, 0}, {UC(SEND_LAST), 4, 0}}, 2, 1, 1},
		{{{UC(SEND_FIRST), 256, 0}, {UC(SEND_LAST), 0, 0}}, 2, 1, 0},
		{{{UC(SEND_ONLY), 257, 0}}, 1, 1, 0},
		{{{UC(WRITE_ONLY), 4, 5}}, 1, 1, 0},
		{{{UC(WRITE_FIRST), 256, 300}, {UC(WRITE_LAST), 43, 0}}, 2, 1, 0},
		{{{BB_ROCE_UC | BB_ROCE_READ_REQUEST, 0, 4}}, 1, 0, 1},
	};
	struct fake f;
	uint32_t k;

	for (uint32_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		uint32_t before;

		fake_init(&f, BB_ROCE_UC);
		f.recvs = 8;
		for (k = 0; k < c[i].n; k++)
			fake_rx_rdma(&f, c[i].pkt[k].opcode, (int)k, c[i].pkt[k].len, 0,
				     c[i].pkt[k].dmalen);
		assert_fields(f.qp.stats, drop_length, c[i].length, drop_order, c[i].order);
		assert_int_equal(f.failed, 0);
		fake_quiet(&f);
		before = f.n_done;
		fake_rx(&f, UC(SEND_ONLY), (int)k, 4, NULL);
		assert_fields(f, n_done, before + 1, done[before].len, 4, takes, f.n_done);
	}
}

/* Wrong keys and rights: no packet of the message is written. */
TEST(test_refused_write_writes_no_packet)
{
	uint8_t before[FAKE_MEM];
	struct fake f;

	for (int i = 0; i < 2; i++) {
		fake_init(&f, BB_ROCE_UC);
		memcpy(before, f.mem, sizeof(before));
		f.no_right = i == 0 ? 1u << BB_ROCE_ACCESS_WRITE : 0;
		f.key_gone = i == 1;
		fake_rx_rdma(&f, UC(WRITE_FIRST), 0, FAKE_MTU, 0, FAKE_MTU + 4);
		f.no_right = 0;
		f.key_gone = false;
		fake_rx(&f, UC(WRITE_LAST_IMM), 1, 4, NULL);
		assert_memory_equal(f.mem, before, sizeof(before));
		assert_fields(f, writes, 0, n_done, 0, qp.stats.drop_access, 1);
		fake_rx_rdma(&f, UC(WRITE_ONLY), 2, 4, 0, 4);
		assert_fields(f, writes, 1, failed, 0);
		fake_quiet(&f);
	}
}

/* The key vanishes within a message: the rest is dropped, even if the key returns. */
T_FAKE(BB_ROCE_UC, test_lost_key_drops_the_rest)
{
	uint8_t before[FAKE_MEM];

	fake_rx_rdma(f, UC(WRITE_FIRST), 0, FAKE_MTU, 0, 2 * FAKE_MTU + 4);
	memcpy(before, f->mem, sizeof(before));
	f->key_gone = true;
	fake_rx(f, UC(WRITE_MIDDLE), 1, FAKE_MTU, NULL);
	f->key_gone = false;
	fake_rx(f, UC(WRITE_MIDDLE), 2, FAKE_MTU, NULL);
	fake_rx(f, UC(WRITE_LAST), 3, 4, NULL);
	assert_int_equal(f->writes, 2);
	assert_memory_equal(f->mem, before, sizeof(before));
	assert_fields(*f, qp.stats.drop_access, 1, qp.stats.drop_order, 2, failed, 0);
}

/* No receive, or one that is too small: the message is dropped, the receive stays. */
T_FAKE(BB_ROCE_UC, test_unfit_receive_stays_for_the_next_message)
{
	f->recvs = 0;
	fake_rx(f, UC(SEND_FIRST), 0, FAKE_MTU, NULL);
	f->recvs = 1;
	fake_rx(f, UC(SEND_LAST), 1, 4, NULL);
	assert_fields(*f, n_done, 0, qp.stats.drop_no_recv, 1, qp.stats.out_of_buffer, 1);
	f->recv_room = 300;
	fake_rx(f, UC(SEND_FIRST), 2, FAKE_MTU, NULL);
	fake_rx(f, UC(SEND_LAST), 3, 45, NULL);
	assert_fields(*f, n_done, 0, qp.stats.resp_local_length, 1);
	/* A WRITE with immediate may take it, too. */
	fake_rx_rdma(f, UC(WRITE_ONLY_IMM), 4, 8, 0, 8);
	assert_fields(*f, takes, 1, n_done, 1, done[0].status, 0);
	/* An invalid receive is a local error. */
	f->recvs = 1;
	f->recv_status = BB_SYN_LOCAL_PROT;
	fake_rx(f, UC(SEND_ONLY), 5, 4, NULL);
	assert_fields(*f, n_done, 2, done[1].status, BB_SYN_LOCAL_PROT, failed, 1, n_sent, 0);
}

TEST_MAIN(0)
