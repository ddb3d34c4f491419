/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Datagrams: sent as one packet, received with the Q_Key, dropped without an answer. */
#include "roce_fake.h"

static void
rx(struct fake *f, uint8_t opcode, uint32_t len, uint32_t qkey)
{
	const struct bb_roce_pkt pkt = {
		.flags = BB_ROCE_SE, .qkey = qkey, .sqpn = 0x300, .imm = 0x12345678};

	fake_rx(f, opcode, 0x1000, len, &pkt);
}

T_FAKE(BB_ROCE_UD, test_datagram_completes_with_source_and_grh)
{
	rx(f, UD(SEND_ONLY), 100, FAKE_QKEY);
	rx(f, UD(SEND_ONLY_IMM), 0, FAKE_QKEY);
	assert_int_equal(f->n_done, 2);
	assert_int_equal(f->places, 2); /* the GRH needs room even without data */
	assert_fields(f->done[0], kind, BB_ROCE_MSG_SEND, status, 0, len, 100, sqpn, 0x300);
	assert_ptr_equal(f->done[0].net, &f->net);
	assert_true(f->done[0].solicited);
	fake_expect_data(f->recv_data + 40, 0x1000, 0x1000, 100);
	assert_fields(f->done[1], kind, BB_ROCE_MSG_SEND_IMM, imm, 0x12345678, len, 0);
	assert_int_equal(f->established, 1);
	fake_quiet(f); /* no answer is sent */
}

T_FAKE(BB_ROCE_UD, test_each_dropped_datagram_is_counted_by_reason)
{
	rx(f, UD(SEND_ONLY), 4, FAKE_QKEY + 1);
	assert_int_equal(f->qp.stats.drop_qkey, 1);
	rx(f, UD(SEND_ONLY), 4, FAKE_QKEY | 0x80000000);
	assert_int_equal(f->qp.stats.drop_qkey, 2);
	rx(f, UD(SEND_ONLY), FAKE_MTU + 1, FAKE_QKEY);
	assert_int_equal(f->qp.stats.drop_length, 1);
	rx(f, BB_ROCE_UD | BB_ROCE_SEND_FIRST, 4, FAKE_QKEY);
	assert_int_equal(f->qp.stats.drop_order, 1);
	assert_int_equal(f->takes + f->places, 0);
	assert_int_equal(f->established, 0);

	/* A receive that was too small stays for the next datagram. */
	f->recv_room = 139;
	rx(f, UD(SEND_ONLY), 100, FAKE_QKEY);
	assert_fields(f->qp.stats, drop_length, 2, resp_local_length, 1);
	f->recv_room = 39;
	rx(f, UD(SEND_ONLY), 0, FAKE_QKEY);
	assert_int_equal(f->qp.stats.drop_length, 3);
	f->recv_room = 139;
	assert_int_equal(f->n_done, 0);
	rx(f, UD(SEND_ONLY), 99, FAKE_QKEY);
	assert_fields(*f, n_done, 1, takes, 1);

	f->recvs = 0;
	rx(f, UD(SEND_ONLY), 4, FAKE_QKEY);
	assert_fields(*f, qp.stats.drop_no_recv, 1, qp.stats.out_of_buffer, 1, n_done, 1);
	assert_int_equal(f->failed, 0);
	fake_quiet(f);
}

/* The address of a group comes with its QP number, and the reverse (10.5.2). */
T_FAKE(BB_ROCE_UD, test_group_address_needs_group_qpn)
{
	static const uint8_t group6[16] = {0xff, 0x0e, [15] = 1};
	static const uint8_t group4[16] = {[10] = 0xff, 0xff, 239, 1, 2, 3};
	static const uint8_t host4[16] = {[10] = 0xff, 0xff, 223, 1, 2, 3};
	struct bb_roce_pkt pkt = {.opcode = UD(SEND_ONLY),
				  .pkey = 0xffff,
				  .dqpn = BB_ROCE_MCAST_QPN,
				  .qkey = FAKE_QKEY};

	bb_roce_rx(&f->qp, &pkt, &f->net, 0);
	memcpy(f->net.dst, host4, 16);
	bb_roce_rx(&f->qp, &pkt, &f->net, 0);
	assert_fields(*f, n_done, 0, qp.stats.drop_dest, 2);
	memcpy(f->net.dst, group4, 16);
	bb_roce_rx(&f->qp, &pkt, &f->net, 0);
	memcpy(f->net.dst, group6, 16);
	bb_roce_rx(&f->qp, &pkt, &f->net, 0);
	assert_fields(*f, n_done, 2, qp.stats.drop_dest, 2);
	rx(f, UD(SEND_ONLY), 4, FAKE_QKEY);
	assert_fields(*f, n_done, 2, qp.stats.drop_dest, 3);
	fake_quiet(f);
}

T_FAKE(BB_ROCE_UD, test_local_error_fails_the_queue_pair)
{
	f->recv_status = BB_SYN_LOCAL_PROT;
	rx(f, UD(SEND_ONLY), 4, FAKE_QKEY);
	assert_fields(*f, n_done, 1, done[0].status, BB_SYN_LOCAL_PROT);
	assert_fields(*f, qp.stats.resp_local_prot, 1, failed, 1);
	rx(f, UD(SEND_ONLY), 4, FAKE_QKEY);
	assert_int_equal(f->places, 1);

	fake_init(f, BB_ROCE_UD);
	f->recv_broken = true;
	rx(f, UD(SEND_ONLY), 4, FAKE_QKEY);
	assert_fields(*f, failed, 1, n_done, 0);

	fake_init(f, BB_ROCE_UD);
	f->done_status = BB_SYN_LOCAL_QP_OP;
	rx(f, UD(SEND_ONLY), 4, FAKE_QKEY);
	assert_fields(*f, failed, 1, n_sent, 0);
}

static void
ready(struct fake *f)
{
	struct bb_roce_attr attr;

	fake_init(f, BB_ROCE_UD);
	attr = f->qp.attr;
	attr.sq_psn = 0xffffff;
	assert_int_equal(bb_roce_qp_rts(&f->qp, &attr), 0);
}

static int
post(struct fake *f, uint64_t cookie, uint8_t kind, uint32_t len, uint32_t qkey, uint8_t flags)
{
	const struct bb_roce_msg m = {.cookie = cookie,
				      .kind = kind,
				      .flags = flags,
				      .len = len,
				      .imm = 0xabcdef01,
				      .dqpn = 0x456,
				      .qkey = qkey,
				      .net = &f->net};

	return bb_roce_post(&f->qp, &m);
}

TEST(test_datagram_is_one_packet_with_its_qkey)
{
	const struct bb_roce_pkt *p;
	struct fake f;

	ready(&f);
	assert_int_equal(post(&f, 1, BB_ROCE_MSG_SEND, 100, 0x22222222, 0), 0);
	assert_int_equal(post(&f, 2, BB_ROCE_MSG_SEND_IMM, 0, 0x80000000, BB_ROCE_SOLICITED), 0);
	assert_int_equal(post(&f, 3, BB_ROCE_MSG_SEND, FAKE_MTU, 0x7fffffff, 0), 0);
	assert_int_equal(post(&f, 4, BB_ROCE_MSG_SEND, FAKE_MTU + 1, 1, 0), -EMSGSIZE);
	assert_int_equal(post(&f, 4, BB_ROCE_MSG_WRITE, 4, 1, 0), -EINVAL);
	assert_true(bb_roce_busy(&f.qp));
	assert_int_equal(fake_run(&f, 64), 3);
	assert_false(bb_roce_busy(&f.qp));

	p = &f.sent[0].pkt;
	assert_fields(*p, opcode, UD(SEND_ONLY), psn, 0xffffff, dqpn, 0x456, qkey, 0x22222222);
	assert_fields(*p, sqpn, 0x100, pkey, 0xffff);
	assert_int_equal(p->flags & BB_ROCE_SE, 0);
	assert_int_equal(f.sent[0].len, 100);
	assert_memory_equal(f.sent[0].data, f.mem, 100);
	assert_int_equal(f.sent[0].cookie, 1);
	p = &f.sent[1].pkt;
	assert_fields(*p, opcode, UD(SEND_ONLY_IMM), psn, 0);
	assert_int_equal(p->qkey, FAKE_QKEY); /* 10.2.5: the QP's own Q_Key */
	assert_int_equal(p->imm, 0xabcdef01);
	assert_int_equal(p->flags & BB_ROCE_SE, BB_ROCE_SE);
	p = &f.sent[2].pkt;
	assert_fields(*p, psn, 1, qkey, 0x7fffffff);
	assert_int_equal(f.sent[2].len, FAKE_MTU);
	/* Datagrams complete when they were sent. */
	assert_fields(f, n_completed, 3, completed[2], 3, status[2], 0);
}

/* Sending with a budget, a full port, and a full ring. */
T_OWN_FAKE(test_send_respects_budget_port_and_ring)
{
	ready(f);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(post(f, i, BB_ROCE_MSG_SEND, 4, 1, 0), 0);
	assert_int_equal(post(f, 8, BB_ROCE_MSG_SEND, 4, 1, 0), -ENOBUFS);
	assert_int_equal(fake_run(f, 3), 3);
	assert_int_equal(f->n_completed, 3);
	f->room = 2;
	assert_int_equal(fake_run(f, 64), 2);
	assert_true(bb_roce_busy(&f->qp));
	assert_int_equal(post(f, 8, BB_ROCE_MSG_SEND, 4, 1, 0), 0);
	f->room = 64;
	assert_int_equal(fake_run(f, 64), 4);
	for (uint32_t i = 0; i < 9; i++) {
		assert_int_equal(f->completed[i], i);
		assert_int_equal(f->sent[i].pkt.psn, (0xffffff + i) & BB_ROCE_PSN_MASK);
	}
	assert_false(bb_roce_busy(&f->qp));
}

TEST(test_failed_send_completes_in_order)
{
	struct fake f;

	ready(&f);
	assert_int_equal(post(&f, 1, BB_ROCE_MSG_SEND, 0, 1, 0), 0);
	assert_int_equal(post(&f, 2, BB_ROCE_MSG_SEND, 4, 1, 0), 0);
	assert_int_equal(post(&f, 3, BB_ROCE_MSG_SEND, 4, 1, 0), 0);
	f.gather_status = BB_SYN_LOCAL_PROT;
	assert_int_equal(fake_run(&f, 64), 1);
	assert_int_equal(f.failed, 1);
	assert_false(f.failed_responder);
	assert_fields(f, n_completed, 2, status[0], 0, status[1], BB_SYN_LOCAL_PROT);
	assert_int_equal(fake_run(&f, 64), 0);
	bb_roce_qp_flush(&f.qp, BB_SYN_WR_FLUSH);
	assert_fields(f, n_completed, 3, completed[2], 3, status[2], BB_SYN_WR_FLUSH);
}

/* A new Q_Key applies to received datagrams and to the own ones. */
TEST(test_new_qkey_applies_both_ways)
{
	struct fake f;

	ready(&f);
	rx(&f, UD(SEND_ONLY), 4, FAKE_QKEY);
	assert_int_equal(bb_roce_qp_change(&f.qp, FAKE_QKEY + 1, 0), 0);
	rx(&f, UD(SEND_ONLY), 4, FAKE_QKEY);
	assert_fields(f, n_done, 1, qp.stats.drop_qkey, 1);
	rx(&f, UD(SEND_ONLY), 4, FAKE_QKEY + 1);
	assert_int_equal(f.n_done, 2);
	assert_int_equal(post(&f, 1, BB_ROCE_MSG_SEND, 4, 0x80000000, 0), 0);
	assert_int_equal(fake_run(&f, 64), 1);
	assert_int_equal(f.sent[0].pkt.qkey, FAKE_QKEY + 1);
}

static void
end_complete(void *ctx, struct bb_roce_qp *qp, const struct bb_roce_msg *msg, uint8_t status)
{
	fake_complete(ctx, qp, msg, status);
	bb_roce_qp_err(qp);
}

/* A completion that cannot be written ends the queue pair: no further datagram is sent. */
T_OWN_FAKE(test_failed_completion_stops_further_datagrams)
{
	struct bb_roce_ops ops = fake_ops;

	ready(f);
	ops.complete = end_complete;
	f->qp.ops = &ops;
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(post(f, i, BB_ROCE_MSG_SEND, 4, 1, 0), 0);
	assert_int_equal(fake_run(f, 64), 1);
	assert_int_equal(f->n_completed, 1);
	assert_int_equal(f->failed, 0); /* the caller already knows */
}

TEST_MAIN(0)
