/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Packets of the shared-memory port, with the test as the peer. SENDs take the fast path
 * (soft_shm_send.c), whose packets must equal those of the full path.
 */
#include "shm_packet.h"

#define ANSWER 64u /* bytes of an answer, inline: two blocks of the send queue */

/*
 * SENDs with all paddings, in a ring full of old bytes: a byte that is not written again would
 * show. WQEs with inline data have one block or two.
 */
T(test_sends_of_any_length_are_written_whole)
{
	struct bb_roce_pkt pkt;
	struct bb_wc wc;
	uint32_t i, len, psn = us.psn;

	for (i = 0; i < SOFT_RING_SIZE / MTU + 64; i++) {
		bool wide = i < SOFT_RING_SIZE / MTU;

		len = wide ? MTU : 1 + (i * 7) % 64;
		memset(e.a.buf, wide ? 0xff : (int)i, len);
		pkt = packet(BB_ROCE_SEND_ONLY, psn, len);
		pkt.flags = BB_ROCE_ACKREQ | (i % 3 == 0 ? BB_ROCE_SE : 0);
		(wide || i % 2 == 0 ? send_from : send_inline)(len,
							       i % 3 == 0 ? BB_SEND_SOLICITED : 0);
		sends(&pkt, e.a.buf);
		ack(psn, i + 1);
		env_poll(&e, &e.a, &wc, 1);
		assert_int_equal(wc.status, BB_WC_SUCCESS);
		assert_int_equal(wc.wr_id, len);
		psn++;
	}
	/* One byte more than a packet can hold. */
	send_from(MTU + 1, 0);
	pkt = packet(BB_ROCE_SEND_FIRST, psn, MTU);
	sends(&pkt, e.a.buf);
	pkt = packet(BB_ROCE_SEND_LAST, psn + 1, 1);
	pkt.flags = BB_ROCE_ACKREQ;
	sends(&pkt, e.a.buf + MTU);
	nothing();
}

/* A fence waits for the preceding READ, and later requests wait with it. */
T(test_fence_waits_for_the_read_before_it)
{
	static const uint8_t data[8] = "read";
	struct bb_roce_pkt pkt;
	struct bb_sge sge = {.len = 8, .lkey = e.a.mr->lkey};
	uint32_t psn = us.psn, fenced, i;
	struct bb_wc wc[3];

	sge.addr = (uintptr_t)e.a.buf + 4096;
	for (fenced = 0; fenced < 2; fenced++) {
		OK(bb_post_read(e.a.qp, 1, &sge, 1, 0x1000, RKEY, BB_SEND_SIGNALED));
		bb_qp_ring(e.a.qp);
		pkt = packet(BB_ROCE_READ_REQUEST, psn, 0);
		pkt.va = 0x1000;
		pkt.rkey = RKEY;
		pkt.dmalen = 8;
		pkt.flags = BB_ROCE_ACKREQ;
		sends(&pkt, NULL);
		send_from(16, fenced ? BB_SEND_FENCE : 0);
		send_from(32, 0);
		if (fenced) {
			nothing();
			pkt = packet(BB_ROCE_READ_RESP_ONLY, psn, 8);
			pkt.syndrome = BB_ROCE_AETH_ACK | BB_ROCE_CREDITS_OFF;
			put(&pkt, data, THEIRS);
		}
		pkt = packet(BB_ROCE_SEND_ONLY, psn + 1, 16);
		/* Of two packets that are sent together the second asks for an ACK. */
		pkt.flags = fenced ? 0 : BB_ROCE_ACKREQ;
		sends(&pkt, e.a.buf);
		pkt = packet(BB_ROCE_SEND_ONLY, psn + 2, 32);
		pkt.flags = BB_ROCE_ACKREQ;
		sends(&pkt, e.a.buf);
		if (!fenced) {
			pkt = packet(BB_ROCE_READ_RESP_ONLY, psn, 8);
			pkt.syndrome = BB_ROCE_AETH_ACK | BB_ROCE_CREDITS_OFF;
			put(&pkt, data, THEIRS);
		}
		ack(psn + 2, 0);
		env_poll(&e, &e.a, wc, 3);
		for (i = 0; i < 3; i++)
			assert_int_equal(wc[i].status, BB_WC_SUCCESS);
		assert_memory_equal(e.a.buf + 4096, data, 8);
		psn += 3;
	}
}

/* ---- Records with a SEND and an ACK */

/* Stores an ACK of @psn to @to. */
static uint32_t
build_ack(uint8_t to[BB_ROCE_MAX_HDR], uint32_t dqpn, uint8_t flags, uint32_t psn, uint32_t msn)
{
	struct bb_roce_pkt pkt = packet(BB_ROCE_ACK, psn, 0);

	pkt.dqpn = dqpn;
	pkt.flags = flags;
	pkt.syndrome = BB_ROCE_AETH_ACK | BB_ROCE_CREDITS_OFF;
	pkt.msn = msn;
	return bb_roce_build(to, &pkt);
}

/* Checks that the next record has the device's reply @reply and its ACK of @psn, byte for byte. */
static void
replies(uint32_t reply, uint32_t psn, uint32_t msn)
{
	struct bb_roce_pkt pkt = packet(BB_ROCE_SEND_ONLY, reply, ANSWER);
	uint8_t want[2 * BB_ROCE_MAX_HDR + ANSWER];
	struct soft_ring_rec rec;
	uint32_t len, ack_len;
	const uint8_t *p = next(&rec);

	pkt.dqpn = PEER_QPN;
	pkt.flags = BB_ROCE_MIGREQ | BB_ROCE_ACKREQ;
	len = bb_roce_build(want, &pkt);
	memcpy(want + len, e.a.buf, ANSWER);
	ack_len = build_ack(want + len + ANSWER, PEER_QPN, BB_ROCE_MIGREQ, psn, msn);
	assert_int_equal(rec.ack_len, ack_len);
	assert_int_equal(rec.len, len + ANSWER + ack_len);
	assert_memory_equal(p, want, rec.len);
	assert_int_equal(rec.sgid, 1);
	assert_int_equal(rec.tclass, TCLASS);
	take();
}

static void
post_receive(uint64_t wr_id)
{
	const struct bb_sge sge = {
		.addr = (uintptr_t)e.a.buf + 8192, .len = 64, .lkey = e.a.mr->lkey};

	OK(bb_post_recv(e.a.qp, wr_id, &sge, 1));
	bb_qp_ring_recv(e.a.qp);
}

/*
 * A record is dropped if its second packet would fill it. A second packet that is malformed is
 * dropped alone. A device without a receive refuses the SEND, and accepts the ACK after it.
 */
T(test_second_packet_of_a_record_is_checked)
{
	static const uint8_t data[8] = "payload";
	struct bb_roce_pkt pkt = packet(BB_ROCE_SEND_ONLY, them.psn, 8);
	uint8_t bytes[255] = {0};
	struct soft_ring_rec *rec;
	struct bb_wc wc;
	uint32_t len, i;

	post_receive(1);
	for (i = 51; i <= 255; i += 51) {
		rec = soft_ring_reserve(&peer.out, i);
		assert_non_null(rec);
		*rec = (struct soft_ring_rec){.hop_limit = 64, .sgid = THEIRS, .ack_len = 255};
		bb_roce_build((uint8_t *)(rec + 1), &pkt);
		soft_ring_publish(&peer.out, rec, i);
	}
	nothing();
	assert_int_equal(bb_cq_poll(e.a.cq, &wc, 1), 0);

	write_two(&pkt, data, THEIRS, bytes, 5);
	env_poll(&e, &e.a, &wc, 1);
	assert_int_equal(wc.status, BB_WC_SUCCESS);
	assert_memory_equal(e.a.buf + 8192, data, 8);
	nothing();

	send_from(8, 0);
	progress();
	pkt = packet(BB_ROCE_SEND_ONLY, us.psn, 8);
	pkt.flags = BB_ROCE_ACKREQ;
	sends(&pkt, e.a.buf);
	pkt = packet(BB_ROCE_SEND_ONLY, them.psn + 1, 8);
	len = build_ack(bytes, us.qpn, 0, us.psn, 1);
	write_two(&pkt, data, THEIRS, bytes, (uint8_t)len);
	env_poll(&e, &e.a, &wc, 1);
	assert_int_equal(wc.status, BB_WC_SUCCESS);
	assert_int_equal(wc.opcode, BB_WC_SEND);
	answers(them.psn + 1, BB_ROCE_AETH_RNR | e.attr.min_rnr_timer);
}

/*
 * A faulty SEND is dropped, or refused by a NAK, and consumes no receive. The next correct SEND
 * consumes it.
 */
T(test_faulty_send_consumes_no_receive)
{
	enum {
		DROPPED,
		ACKED,
		NAKED
	};
	static const struct {
		const char *name;
		uint32_t dqpn, psn; /* added to the correct value */
		uint16_t pkey;
		uint8_t sgid, answer;
	} rows[] = {
		{"another address", 0, 0, 0xffff, OTHER, DROPPED},
		{"an address behind the last", 0, 0, 0xffff, BEHIND, DROPPED},
		{"an address behind all there can be", 0, 0, 0xffff, 255, DROPPED},
		{"another QP", 1u << 20, 0, 0xffff, THEIRS, DROPPED},
		{"another P_Key", 0, 0, 0x8001, THEIRS, DROPPED},
		{"a PSN of before", 0, UINT32_MAX, 0xffff, THEIRS, ACKED},
		{"a PSN far ahead", 0, 0x10000, 0xffff, THEIRS, NAKED},
	};
	struct bb_sge sge = {.len = 64, .lkey = e.a.mr->lkey};
	uint32_t psn = them.psn;
	const struct bb_cqe *cqe;
	struct bb_roce_pkt pkt;
	uint8_t data[64];
	struct bb_wc wc;
	unsigned int i;

	sge.addr = (uintptr_t)e.a.buf + 8192;
	for (i = 0; i < RTE_DIM(rows); i++) {
		OK(bb_post_recv(e.a.qp, i, &sge, 1));
		bb_qp_ring_recv(e.a.qp);
		memset(e.a.buf + 8192, 0, 64);
		memset(data, 0xdd, sizeof(data));
		pkt = packet(BB_ROCE_SEND_ONLY, psn + rows[i].psn, 61);
		pkt.dqpn = (us.qpn + rows[i].dqpn) & BB_ROCE_QPN_MASK;
		pkt.pkey = rows[i].pkey;
		put(&pkt, data, rows[i].sgid);
		if (rows[i].answer == ACKED)
			answers(psn - 1, BB_ROCE_AETH_ACK | BB_ROCE_CREDITS_OFF);
		if (rows[i].answer == NAKED)
			answers(psn, BB_ROCE_AETH_NAK | BB_ROCE_NAK_PSN);
		nothing();
		if (bb_cq_poll(e.a.cq, &wc, 1) != 0)
			fail_msg("%s: completion %d", rows[i].name, wc.status);
		assert_int_equal(e.a.buf[8192], 0);

		memset(data, (int)i + 1, sizeof(data));
		pkt = packet(BB_ROCE_SEND_ONLY, psn, 61);
		pkt.flags = (uint8_t)(BB_ROCE_ACKREQ | (i % 2 != 0 ? BB_ROCE_SE : 0));
		cqe = bb_cqring_at(&e.a.cq->ring, e.a.cq->ring.ci);
		put(&pkt, data, THEIRS);
		env_poll(&e, &e.a, &wc, 1);
		assert_int_equal(wc.status, BB_WC_SUCCESS);
		assert_int_equal(wc.wr_id, i);
		assert_int_equal(wc.byte_len, 61);
		assert_int_equal(cqe->op_own & BB_CQE_SE, i % 2 != 0 ? BB_CQE_SE : 0);
		assert_memory_equal(e.a.buf + 8192, data, 61);
		assert_int_equal(e.a.buf[8192 + 61], 0);
		answers(psn, BB_ROCE_AETH_ACK | BB_ROCE_CREDITS_OFF);
		psn++;
	}
}

/*
 * The application answers each message of the peer. After some of them the ACK leaves in the record
 * of the answer, and without an answer a turn later. The device accepts such a record, too.
 */
T(test_ack_leaves_with_the_answer_in_a_conversation)
{
	const uint8_t data[8] = "message";
	uint8_t bytes[BB_ROCE_MAX_HDR];
	struct bb_roce_pkt pkt;
	struct bb_wc wc[2];
	uint32_t i, len = 0;

	for (i = 0; i < SOFT_WIRE_CONVERSATION + 4; i++) {
		const bool late = i >= SOFT_WIRE_CONVERSATION;

		post_receive(i);
		memset(e.a.buf, (int)i, ANSWER);
		pkt = packet(BB_ROCE_SEND_ONLY, them.psn + i, sizeof(data));
		pkt.flags = BB_ROCE_ACKREQ;
		/* The poll that finds the message is the only turn before the answer is posted. */
		write_two(&pkt, data, THEIRS, bytes, (uint8_t)len);
		assert_int_equal(bb_cq_poll(e.a.cq, wc, 2), len != 0 ? 2 : 1);
		assert_int_equal(wc[0].opcode, BB_WC_RECV);
		assert_int_equal(wc[0].status, BB_WC_SUCCESS);
		if (len != 0)
			assert_int_equal(wc[1].status, BB_WC_SUCCESS);
		assert_int_equal(soft_ring_waiting(&peer.in), !late);
		if (!late)
			answers(them.psn + i, BB_ROCE_AETH_ACK | BB_ROCE_CREDITS_OFF);
		send_inline(ANSWER, 0);
		if (late) {
			replies(us.psn + i, them.psn + i, i + 1);
			len = build_ack(bytes, us.qpn, 0, us.psn + i, i + 1);
			continue;
		}
		pkt = packet(BB_ROCE_SEND_ONLY, us.psn + i, ANSWER);
		pkt.flags = BB_ROCE_ACKREQ;
		sends(&pkt, e.a.buf);
		ack(us.psn + i, i + 1);
		env_poll(&e, &e.a, wc, 1);
	}
	post_receive(i);
	pkt = packet(BB_ROCE_SEND_ONLY, them.psn + i, sizeof(data));
	pkt.flags = BB_ROCE_ACKREQ;
	put(&pkt, data, THEIRS);
	assert_false(soft_ring_waiting(&peer.in));
	progress();
	assert_true(soft_ring_waiting(&peer.in));
	answers(them.psn + i, BB_ROCE_AETH_ACK | BB_ROCE_CREDITS_OFF);
}

/* Writes message number @i of the peer, for which the application posts a receive. */
static void
write_message(uint32_t i)
{
	static const uint8_t data[8] = "message";
	struct bb_roce_pkt pkt = packet(BB_ROCE_SEND_ONLY, them.psn + i, sizeof(data));

	post_receive(i);
	pkt.flags = BB_ROCE_ACKREQ;
	write_packet(&pkt, data, THEIRS);
}

/* Checks that the next poll finds the messages from @i to @end - 1, and nothing else. */
static void
poll_finds(uint32_t i, uint32_t end)
{
	const int n = (int)(end - i);
	struct bb_wc wc[8];
	int k;

	assert_int_equal(bb_cq_poll(e.a.cq, wc, RTE_DIM(wc)), n);
	for (k = 0; k < n; k++) {
		assert_int_equal(wc[k].opcode, BB_WC_RECV);
		assert_int_equal(wc[k].status, BB_WC_SUCCESS);
		assert_int_equal(wc[k].wr_id, i + (uint32_t)k);
	}
}

/* Answers messages until the traffic is a conversation. Returns the number of messages. */
static uint32_t
converse(void)
{
	struct bb_roce_pkt pkt;
	struct bb_wc wc;
	uint32_t i;

	for (i = 0; i < SOFT_WIRE_CONVERSATION; i++) {
		write_message(i);
		poll_finds(i, i + 1);
		answers(them.psn + i, BB_ROCE_AETH_ACK | BB_ROCE_CREDITS_OFF);
		send_inline(ANSWER, 0);
		pkt = packet(BB_ROCE_SEND_ONLY, us.psn + i, ANSWER);
		pkt.flags = BB_ROCE_ACKREQ;
		sends(&pkt, e.a.buf);
		ack(us.psn + i, i + 1);
		env_poll(&e, &e.a, &wc, 1);
	}
	return i;
}

/*
 * In a conversation a turn ends after the first message. If more messages come without an answer,
 * one turn receives them all.
 */
T(test_turn_ends_after_a_message_of_a_conversation)
{
	uint32_t i = converse(), k;

	for (k = 0; k < 5; k++)
		write_message(i + k);
	poll_finds(i, i + 1);
	poll_finds(i + 1, i + 5);
}

/* All messages that have arrived, more than a burst, are received before the QP moves to ERR. */
T(test_messages_of_a_conversation_are_received_before_an_error)
{
	const uint32_t i = converse(), n = 40;
	struct bb_qp_attr attr;
	uint32_t k;

	for (k = 0; k < n; k++)
		write_message(i + k);
	bb_qp_attr_init(&attr);
	attr.state = BB_QP_ERR;
	OK(bb_qp_modify(e.a.qp, &attr, BB_QP_STATE));
	for (k = 0; k < n; k += 8)
		poll_finds(i + k, i + k + 8);
}

/* With fault injection a received packet is serialized again; no fault hits it afterwards. */
static int
begin_faulty(void **st)
{
	(void)st;
	return begin_with(",rx_ecn=100");
}

/* All opcodes that RC does not have, with and without bytes after the BTH (9.7.4.1.3). */
static void
unassigned_opcodes(void)
{
	static const uint8_t data[64];
	struct bb_wc wc;
	uint32_t i, op;

	for (op = 0, i = 0; op < 32; op++) {
		struct soft_ring_rec *rec;

		if (bb_roce_ops[op].flags != 0)
			continue;
		reconnect(0);
		rec = soft_ring_reserve(&peer.out, BB_ROCE_BTH_LEN + 4 * i);
		assert_non_null(rec);
		*rec = (struct soft_ring_rec){.sport = 0xc123, .hop_limit = 64, .sgid = THEIRS};
		bb_roce_bth_store((uint8_t *)(rec + 1), (uint8_t)op, BB_ROCE_ACKREQ, 0xffff, us.qpn,
				  them.psn, 0);
		memcpy((uint8_t *)(rec + 1) + BB_ROCE_BTH_LEN, data, 4 * i);
		soft_ring_publish(&peer.out, rec, BB_ROCE_BTH_LEN + 4 * i);
		progress();
		answers(them.psn, BB_ROCE_AETH_NAK | BB_ROCE_NAK_INVALID);
		assert_int_equal(bb_cq_poll(e.a.cq, &wc, 1), 0);
		i++;
	}
	assert_int_equal(i, 9);
}

T(test_unassigned_opcodes_are_refused_by_a_nak)
{
	unassigned_opcodes();
}

TEST_WITH(begin_faulty, end, test_unassigned_opcodes_are_refused_with_faults_enabled)
{
	unassigned_opcodes();
}

TEST_MAIN(env_eal_init("shm_packets"))
