/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* READs and atomics at the responder: responses, their order, and repeated requests. */
#include "roce_fake.h"

/* Lengths around the MTU, and the opcodes of their responses. */
T_FAKE(BB_ROCE_RC, test_read_response_is_split_at_the_mtu)
{
	fake_rx_rdma(f, RC(READ_REQUEST), 0, 0, 10, 255);
	assert_int_equal(fake_run(f, 64), 1);
	fake_expect_read(f, RC(READ_RESP_ONLY), 0, 10, 255);
	assert_int_equal(f->sent[0].pkt.msn, 1);
	fake_rx_rdma(f, RC(READ_REQUEST), 1, 0, 0, 256);
	assert_int_equal(fake_run(f, 64), 1);
	fake_expect_read(f, RC(READ_RESP_ONLY), 1, 0, 256);
	fake_rx_rdma(f, RC(READ_REQUEST), 2, 0, 0, 257);
	assert_int_equal(fake_run(f, 64), 2);
	fake_expect_read(f, RC(READ_RESP_FIRST), 2, 0, 256);
	fake_expect_read(f, RC(READ_RESP_LAST), 3, 256, 1);
	fake_rx_rdma(f, RC(READ_REQUEST), 4, 0, 1, 1024);
	assert_int_equal(fake_run(f, 64), 4);
	fake_expect_read(f, RC(READ_RESP_FIRST), 4, 1, 256);
	fake_expect_read(f, RC(READ_RESP_MIDDLE), 5, 257, 256);
	fake_expect_read(f, RC(READ_RESP_MIDDLE), 6, 513, 256);
	fake_expect_read(f, RC(READ_RESP_LAST), 7, 769, 256);
	assert_int_equal(f->sent[f->n_sent - 1].pkt.msn, 4);
	fake_quiet(f);
	/* The PSNs of the response are used up. */
	fake_rx_ack(f, RC(SEND_ONLY), 8, 4);
	fake_expect(f, ACK, 8, 5);
	assert_fields(*f, qp.stats.rx_read, 4, established, 1);
}

T_FAKE(BB_ROCE_RC, test_read_of_zero_bytes_checks_only_the_right)
{
	const struct bb_roce_pkt pkt = {.va = 3, .rkey = 0xdead};

	fake_rx(f, RC(READ_REQUEST), 0, 0, &pkt);
	assert_int_equal(fake_run(f, 64), 1);
	fake_expect_read(f, RC(READ_RESP_ONLY), 0, 0, 0);
	f->no_right = 1u << BB_ROCE_ACCESS_READ;
	fake_rx(f, RC(READ_REQUEST), 1, 0, &pkt);
	fake_expect_fatal(f, NAK(INVALID), 1, 1, BB_SYN_REMOTE_INVAL_REQ);
}

/* A response is sent as far as budget and port allow, and continued later. */
T_FAKE(BB_ROCE_RC, test_read_response_stops_at_budget_and_port)
{
	fake_rx_rdma(f, RC(READ_REQUEST), 0, 0, 0, 1280);
	assert_int_equal(fake_run(f, 2), 2);
	f->room = 1;
	assert_int_equal(fake_run(f, 2), 1);
	assert_int_equal(fake_run(f, 2), 0);
	assert_true(bb_roce_busy(&f->qp));
	f->room = 64;
	assert_int_equal(fake_run(f, 1), 1);
	assert_int_equal(fake_run(f, 64), 1);
	fake_expect_read(f, RC(READ_RESP_FIRST), 0, 0, 256);
	fake_expect_read(f, RC(READ_RESP_MIDDLE), 1, 256, 256);
	fake_expect_read(f, RC(READ_RESP_MIDDLE), 2, 512, 256);
	fake_expect_read(f, RC(READ_RESP_MIDDLE), 3, 768, 256);
	fake_expect_read(f, RC(READ_RESP_LAST), 4, 1024, 256);
	fake_quiet(f);
}

T_OWN_FAKE(test_read_without_right_or_key_is_refused)
{
	static const struct {
		uint64_t off;
		uint32_t len, rkey;
		uint8_t synd;
	} c[] = {
		{0, 8, FAKE_KEY + 1, BB_SYN_REMOTE_ACCESS},
		{FAKE_LEN - 7, 8, FAKE_KEY, BB_SYN_REMOTE_ACCESS},
		{(uint64_t)-1, 8, FAKE_KEY, BB_SYN_REMOTE_ACCESS},
		{0, 0x80000000, FAKE_KEY, BB_SYN_REMOTE_ACCESS},
		{0, 8, FAKE_KEY, BB_SYN_REMOTE_INVAL_REQ},
	};

	for (uint32_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		const struct bb_roce_pkt pkt = {
			.va = FAKE_VA + c[i].off, .rkey = c[i].rkey, .dmalen = c[i].len};
		bool access = c[i].synd == BB_SYN_REMOTE_ACCESS;

		fake_init(f, BB_ROCE_RC);
		f->no_right = access ? 0 : 1u << BB_ROCE_ACCESS_READ;
		fake_rx(f, RC(READ_REQUEST), 0, 0, &pkt);
		fake_expect_fatal(f, access ? NAK(ACCESS) : NAK(INVALID), 0, 0, c[i].synd);
	}
}

/*
 * The limit is the number of replay entries; one more request is invalid while all are
 * unanswered.
 */
T_FAKE(BB_ROCE_RC, test_read_past_the_limit_is_invalid)
{
	int i;

	for (i = 0; i < (int)FAKE_READS; i++)
		fake_rx_rdma(f, RC(READ_REQUEST), i, 0, 0, 8);
	assert_int_equal(fake_run(f, 1), 1);
	fake_rx_rdma(f, RC(READ_REQUEST), i, 0, 0, 8);
	assert_int_equal(f->qp.resp.fatal, 0);
	fake_rx_atomic(f, RC(FETCH_ADD), i + 1, 0, 1, 0);
	assert_int_equal(f->atomics, 0);
	assert_int_equal(fake_run(f, FAKE_READS), FAKE_READS);
	for (i = 0; i < (int)FAKE_READS + 1; i++)
		fake_expect_read(f, RC(READ_RESP_ONLY), i, 0, 8);
	fake_expect_fatal(f, NAK(INVALID), i, 5, BB_SYN_REMOTE_INVAL_REQ);
	/* A queue pair that serves no READs. */
	fake_init(f, BB_ROCE_RC);
	f->qp.attr.max_dest_rd_atomic = 0;
	fake_rx_rdma(f, RC(READ_REQUEST), 0, 0, 0, 8);
	fake_expect_fatal(f, NAK(INVALID), 0, 0, BB_SYN_REMOTE_INVAL_REQ);
}

/* Responses are sent in the order of PSNs, whichever was ready first. */
T_FAKE(BB_ROCE_RC, test_responses_are_in_the_order_of_psns)
{
	fake_rx_ack(f, RC(SEND_ONLY), 0, 4);
	fake_rx_rdma(f, RC(READ_REQUEST), 1, 0, 0, 512);
	fake_rx_atomic(f, RC(FETCH_ADD), 3, 0, 1, 0);
	fake_rx_rdma(f, RC(WRITE_ONLY), 4, 4, 1024, 4);
	fake_rx_ack(f, RC(SEND_ONLY), 6, 4);
	assert_fields(*f, n_done, 1, writes, 1);
	assert_int_equal(fake_run(f, 1), 1);
	fake_expect_read(f, RC(READ_RESP_FIRST), 1, 0, 256);
	assert_int_equal(f->sent[0].pkt.msn, 2);
	assert_int_equal(fake_run(f, 2), 2);
	fake_expect_read(f, RC(READ_RESP_LAST), 2, 256, 256);
	assert_int_equal(fake_next(f)->pkt.opcode, RC(ATOMIC_ACK));
	assert_fields(f->sent[2].pkt, psn, fake_psn(3), msn, 3);
	/* The READ's response covers the first SEND, the NAK covers the WRITE. */
	fake_expect(f, NAK(PSN), 5, 4);
}

T_FAKE(BB_ROCE_RC, test_fatal_nak_waits_for_responses_before_it)
{
	fake_rx_rdma(f, RC(READ_REQUEST), 0, 0, 0, 512);
	fake_rx(f, RC(SEND_LAST), 2, 4, NULL);
	assert_int_equal(fake_run(f, 1), 1);
	fake_expect_read(f, RC(READ_RESP_FIRST), 0, 0, 256);
	assert_int_equal(f->failed, 0);
	assert_int_equal(fake_run(f, 1), 1);
	fake_expect_read(f, RC(READ_RESP_LAST), 1, 256, 256);
	fake_expect_fatal(f, NAK(INVALID), 2, 1, BB_SYN_REMOTE_INVAL_REQ);
}

/* Requests the whole READ again, its end, and either while it is being answered. */
T_FAKE(BB_ROCE_RC, test_repeated_read_is_answered_again)
{
	fake_rx_rdma(f, RC(READ_REQUEST), 0, 0, 100, 1000);
	assert_int_equal(fake_run(f, 64), 4);
	f->seen = f->n_sent;
	fake_rx_rdma(f, RC(READ_REQUEST), 0, 0, 100, 1000);
	assert_int_equal(fake_run(f, 2), 2);
	fake_expect_read(f, RC(READ_RESP_FIRST), 0, 100, 256);
	fake_expect_read(f, RC(READ_RESP_MIDDLE), 1, 356, 256);
	/* Back to the second packet. */
	fake_rx_rdma(f, RC(READ_REQUEST), 1, 0, 356, 744);
	assert_int_equal(fake_run(f, 64), 3);
	fake_expect_read(f, RC(READ_RESP_FIRST), 1, 356, 256);
	fake_expect_read(f, RC(READ_RESP_MIDDLE), 2, 612, 256);
	fake_expect_read(f, RC(READ_RESP_LAST), 3, 868, 232);
	fake_rx_rdma(f, RC(READ_REQUEST), 3, 0, 868, 232);
	assert_int_equal(fake_run(f, 64), 1);
	fake_expect_read(f, RC(READ_RESP_ONLY), 3, 868, 232);
	/* From the start, then from further on before that response was sent. */
	fake_rx_rdma(f, RC(READ_REQUEST), 0, 0, 100, 1000);
	fake_rx_rdma(f, RC(READ_REQUEST), 2, 0, 612, 488);
	assert_int_equal(fake_run(f, 64), 2);
	fake_expect_read(f, RC(READ_RESP_FIRST), 2, 612, 256);
	fake_expect_read(f, RC(READ_RESP_LAST), 3, 868, 232);
	fake_quiet(f);
	/* It does not count as a new request. */
	assert_fields(f->qp, resp.msn, 1, resp.epsn, fake_psn(4), stats.rx_read, 1);
	assert_int_equal(f->qp.stats.duplicate, 5);
}

/* The peer has received all but a few packets of the response. */
T_FAKE(BB_ROCE_RC, test_repeated_part_of_a_read_is_answered_alone)
{
	fake_rx_rdma(f, RC(READ_REQUEST), 0, 0, 100, 1000);
	assert_int_equal(fake_run(f, 64), 4);
	f->seen = f->n_sent;
	fake_rx_rdma(f, RC(READ_REQUEST), 1, 0, 356, 256);
	assert_int_equal(fake_run(f, 64), 1);
	fake_expect_read(f, RC(READ_RESP_ONLY), 1, 356, 256);
	fake_rx_rdma(f, RC(READ_REQUEST), 0, 0, 100, 768);
	assert_int_equal(fake_run(f, 64), 3);
	fake_expect_read(f, RC(READ_RESP_FIRST), 0, 100, 256);
	fake_expect_read(f, RC(READ_RESP_MIDDLE), 1, 356, 256);
	fake_expect_read(f, RC(READ_RESP_LAST), 2, 612, 256);
	/* Both parts arrive before either is answered: the peer gets the second one later. */
	fake_rx_rdma(f, RC(READ_REQUEST), 0, 0, 100, 512);
	fake_rx_rdma(f, RC(READ_REQUEST), 2, 0, 612, 488);
	assert_int_equal(fake_run(f, 64), 2);
	fake_expect_read(f, RC(READ_RESP_FIRST), 0, 100, 256);
	fake_expect_read(f, RC(READ_RESP_LAST), 1, 356, 256);
	assert_int_equal(f->qp.stats.drop_replay, 1);
	fake_rx_rdma(f, RC(READ_REQUEST), 2, 0, 612, 488);
	assert_int_equal(fake_run(f, 64), 2);
	fake_expect_read(f, RC(READ_RESP_FIRST), 2, 612, 256);
	fake_expect_read(f, RC(READ_RESP_LAST), 3, 868, 232);
	fake_quiet(f);
	assert_fields(f->qp, resp.epsn, fake_psn(4), stats.drop_replay, 1);
}

/* The first response is sent to its end, so that its opcodes are in order. */
T_FAKE(BB_ROCE_RC, test_part_of_a_read_in_progress_is_dropped)
{
	fake_rx_rdma(f, RC(READ_REQUEST), 0, 0, 0, 768);
	assert_int_equal(fake_run(f, 2), 2);
	fake_rx_rdma(f, RC(READ_REQUEST), 0, 0, 0, 256);
	assert_int_equal(fake_run(f, 64), 1);
	fake_expect_read(f, RC(READ_RESP_FIRST), 0, 0, 256);
	fake_expect_read(f, RC(READ_RESP_MIDDLE), 1, 256, 256);
	fake_expect_read(f, RC(READ_RESP_LAST), 2, 512, 256);
	fake_rx_rdma(f, RC(READ_REQUEST), 0, 0, 0, 256);
	assert_int_equal(fake_run(f, 64), 1);
	fake_expect_read(f, RC(READ_RESP_ONLY), 0, 0, 256);
	fake_quiet(f);
}

/* An answered part of a READ does not limit what the peer may request of it later. */
T_FAKE(BB_ROCE_RC, test_repeat_sends_a_later_read_beyond_an_earlier_part)
{
	fake_rx_rdma(f, RC(READ_REQUEST), 0, 0, 0, 300);
	fake_rx_rdma(f, RC(READ_REQUEST), 2, 0, 512, 1024);
	assert_int_equal(fake_run(f, 64), 6);
	for (int round = 0; round < 2; round++) {
		fake_rx_rdma(f, RC(READ_REQUEST), 3, 0, 768, 256);
		assert_int_equal(fake_run(f, 64), 1);
		f->seen = f->n_sent;
		fake_rx_rdma(f, RC(READ_REQUEST), 0, 0, 0, 300);
		if (round == 1)
			fake_rx_rdma(f, RC(READ_REQUEST), 5, 0, 1280, 256);
		fake_run(f, 64);
		fake_expect_read(f, RC(READ_RESP_FIRST), 0, 0, 256);
		fake_expect_read(f, RC(READ_RESP_LAST), 1, 256, 44);
		if (round == 1) {
			fake_expect_read(f, RC(READ_RESP_ONLY), 5, 1280, 256);
		} else {
			fake_expect_read(f, RC(READ_RESP_FIRST), 3, 768, 256);
			fake_expect_read(f, RC(READ_RESP_MIDDLE), 4, 1024, 256);
			fake_expect_read(f, RC(READ_RESP_LAST), 5, 1280, 256);
		}
		fake_quiet(f);
	}
}

/*
 * A repeated earlier READ does not send again the part of a later READ that the peer already has.
 */
T_FAKE(BB_ROCE_RC, test_repeat_does_not_resend_a_later_part)
{
	fake_rx_rdma(f, RC(READ_REQUEST), 0, 0, 0, 300);
	fake_rx_rdma(f, RC(READ_REQUEST), 2, 0, 512, 1024);
	assert_int_equal(fake_run(f, 64), 6);
	fake_rx_rdma(f, RC(READ_REQUEST), 4, 0, 1024, 512);
	assert_int_equal(fake_run(f, 64), 2);
	f->seen = f->n_sent;
	fake_rx_rdma(f, RC(READ_REQUEST), 0, 0, 0, 300);
	assert_int_equal(fake_run(f, 64), 4);
	fake_expect_read(f, RC(READ_RESP_FIRST), 0, 0, 256);
	fake_expect_read(f, RC(READ_RESP_LAST), 1, 256, 44);
	fake_expect_read(f, RC(READ_RESP_FIRST), 4, 1024, 256);
	fake_expect_read(f, RC(READ_RESP_LAST), 5, 1280, 256);
	fake_quiet(f);
}

/*
 * The responder goes back and on over all later requests, once for repeated requests that arrive
 * together.
 */
T_FAKE(BB_ROCE_RC, test_repeats_that_arrive_together_go_back_once)
{
	uint8_t old[8];

	memcpy(old, f->mem + FAKE_START, 8);
	fake_rx_rdma(f, RC(READ_REQUEST), 0, 0, 0, 512);
	fake_rx_atomic(f, RC(FETCH_ADD), 2, 0, 1, 0);
	fake_rx_rdma(f, RC(READ_REQUEST), 3, 0, 512, 8);
	assert_int_equal(fake_run(f, 64), 4);
	f->seen = f->n_sent;
	for (int round = 0; round < 2; round++) {
		const struct fake_sent *s;

		fake_rx_rdma(f, RC(READ_REQUEST), 1, 0, 256, 256);
		fake_rx_atomic(f, RC(FETCH_ADD), 2, 0, 1, 0);
		/* Lost in the second round: the responder answers it with those before it. */
		if (round == 0)
			fake_rx_rdma(f, RC(READ_REQUEST), 3, 0, 512, 8);
		assert_int_equal(fake_run(f, 64), 3);
		fake_expect_read(f, RC(READ_RESP_ONLY), 1, 256, 256);
		s = fake_next(f);
		assert_fields(s->pkt, opcode, RC(ATOMIC_ACK), psn, fake_psn(2));
		assert_memory_equal(&s->pkt.orig, old, 8);
		fake_expect_read(f, RC(READ_RESP_ONLY), 3, 512, 8);
		fake_quiet(f);
	}
	assert_int_equal(f->atomics, 1);
}

/*
 * A repeated request that differs from the first one, or whose replay entry is gone, is dropped.
 */
T_FAKE(BB_ROCE_RC, test_repeat_that_differs_is_dropped)
{
	static const struct {
		int n;
		uint64_t off;
		uint32_t len, rkey;
	} c[] = {
		{0, 101, 999, FAKE_KEY},      /* different address */
		{0, 100, 1001, FAKE_KEY},     /* longer */
		{0, 100, 999, FAKE_KEY},      /* shorter */
		{1, 356, 745, FAKE_KEY},      /* the end, too long */
		{1, 356, 1024, FAKE_KEY},     /* whole packets, too long */
		{1, 100, 256, FAKE_KEY},      /* a part, with the address of the start */
		{1, 356, 300, FAKE_KEY},      /* a part that ends in a packet */
		{1, 356, 0, FAKE_KEY},        /* an empty part */
		{1, 100, 744, FAKE_KEY},      /* the end, with the address of
					       * the start */
		{0, 100, 1000, FAKE_KEY + 1}, /* different key */
		{0, 100, 0, FAKE_KEY},        {-1, 100, 1000, FAKE_KEY}, /* never requested */
		{4, 0, 8, FAKE_KEY},                                     /* an atomic */
	};
	uint32_t i;

	fake_rx_rdma(f, RC(READ_REQUEST), 0, 0, 100, 1000);
	fake_rx_atomic(f, RC(CMP_SWAP), 4, 0, 1, 2);
	(void)fake_run(f, 64);
	f->seen = f->n_sent;
	for (i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		const struct bb_roce_pkt pkt = {
			.va = FAKE_VA + c[i].off, .rkey = c[i].rkey, .dmalen = c[i].len};

		fake_rx(f, RC(READ_REQUEST), c[i].n, 0, &pkt);
		fake_quiet(f);
		assert_int_equal(f->qp.stats.drop_replay, i + 1);
	}
	fake_rx_atomic(f, RC(FETCH_ADD), 4, 0, 1, 2); /* other kind of atomic */
	fake_rx_atomic(f, RC(CMP_SWAP), 4, 8, 1, 2);  /* different address */
	fake_rx_atomic(f, RC(CMP_SWAP), 0, 0, 1, 2);  /* a READ */
	fake_rx(f, 0x1f, 0, 0, NULL);                 /* unassigned opcode */
	fake_quiet(f);
	assert_fields(*f, qp.stats.drop_replay, i + 4, atomics, 1);
	/* Too old. */
	for (int n = 5; n < 5 + (int)FAKE_READS - 1; n++) {
		fake_rx_rdma(f, RC(READ_REQUEST), n, 0, 0, 8);
		(void)fake_run(f, 64);
	}
	f->seen = f->n_sent;
	fake_rx_rdma(f, RC(READ_REQUEST), 0, 0, 100, 1000);
	fake_quiet(f);
	fake_rx_atomic(f, RC(CMP_SWAP), 4, 0, 1, 2);
	assert_int_equal(fake_run(f, 64), (int)FAKE_READS);
	assert_int_equal(f->failed, 0);
}

/*
 * The memory is gone: before the first response the request is rejected; a repeated request is
 * dropped.
 */
T_FAKE(BB_ROCE_RC, test_lost_key_refuses_first_and_drops_repeat)
{
	fake_rx_rdma(f, RC(READ_REQUEST), 0, 0, 0, 512);
	(void)fake_run(f, 64);
	f->seen = f->n_sent;
	f->key_gone = true;
	fake_rx_rdma(f, RC(READ_REQUEST), 0, 0, 0, 512);
	fake_quiet(f);
	assert_fields(*f, failed, 0, qp.stats.drop_replay, 1);
	f->key_gone = false;
	fake_rx_rdma(f, RC(READ_REQUEST), 2, 0, 0, 512);
	fake_rx_ack(f, RC(SEND_FIRST), 4, FAKE_MTU);
	assert_int_equal(fake_run(f, 1), 1);
	fake_expect_read(f, RC(READ_RESP_FIRST), 2, 0, 256);
	f->key_gone = true;
	fake_expect_fatal(f, NAK(ACCESS), 3, 2, BB_SYN_REMOTE_ACCESS);
	/* The receive of the following SEND completes in error. */
	assert_fields(*f, n_done, 1, done[0].status, BB_SYN_REMOTE_ACCESS);
}

T_FAKE(BB_ROCE_RC, test_repeated_read_uses_no_slot)
{
	int i;

	for (i = 0; i < (int)FAKE_READS; i++)
		fake_rx_rdma(f, RC(READ_REQUEST), i, 0, 0, 8);
	(void)fake_run(f, 64);
	f->seen = f->n_sent;
	fake_rx_rdma(f, RC(READ_REQUEST), 0, 0, 0, 8);
	fake_rx_rdma(f, RC(READ_REQUEST), i, 0, 0, 8);
	/* The oldest one lost its replay entry. */
	assert_int_equal(fake_run(f, 64), (int)FAKE_READS);
	for (i = 1; i <= (int)FAKE_READS; i++)
		fake_expect_read(f, RC(READ_RESP_ONLY), i, 0, 8);
	fake_quiet(f);
	assert_int_equal(f->failed, 0);
}

/* The ACK of a repeated SEND does not cover a later READ, whose response may be lost. */
T_FAKE(BB_ROCE_RC, test_ack_of_a_repeat_excludes_a_later_read)
{
	f->recvs = 8;
	fake_rx_ack(f, RC(SEND_ONLY), 0, 4);
	fake_rx_rdma(f, RC(READ_REQUEST), 1, 0, 0, 512);
	fake_rx_ack(f, RC(SEND_ONLY), 3, 4);
	(void)fake_run(f, 64);
	f->seen = f->n_sent;
	fake_rx_ack(f, RC(SEND_ONLY), 0, 4);
	fake_expect(f, ACK, 0, 3);
	/*
	 * With the READ repeated after it, the response is enough, before and while it is sent.
	 */
	fake_rx_ack(f, RC(SEND_ONLY), 0, 4);
	fake_rx_rdma(f, RC(READ_REQUEST), 1, 0, 0, 512);
	assert_int_equal(fake_run(f, 1), 1);
	fake_rx_ack(f, RC(SEND_ONLY), 0, 4);
	assert_int_equal(fake_run(f, 64), 1);
	fake_expect_read(f, RC(READ_RESP_FIRST), 1, 0, 256);
	fake_expect_read(f, RC(READ_RESP_LAST), 2, 256, 256);
	fake_quiet(f);
	fake_rx_rdma(f, RC(READ_REQUEST), 1, 0, 0, 512);
	fake_rx_ack(f, RC(SEND_ONLY), 3, 4);
	assert_int_equal(fake_run(f, 2), 2);
	f->seen = f->n_sent;
	fake_expect(f, ACK, 3, 3);
	/* An old ACK does not replace a newer one or a NAK. */
	fake_rx_ack(f, RC(SEND_ONLY), 4, 4);
	fake_rx_ack(f, RC(SEND_ONLY), 0, 4);
	fake_expect(f, ACK, 4, 4);
	fake_rx_ack(f, RC(SEND_ONLY), 6, 4);
	fake_rx_ack(f, RC(SEND_ONLY), 4, 4);
	fake_expect(f, NAK(PSN), 5, 4);
	assert_int_equal(f->n_done, 3);
	/* A new READ's response covers older messages, too. */
	fake_rx_ack(f, RC(SEND_ONLY), 5, 4);
	fake_rx_rdma(f, RC(READ_REQUEST), 6, 0, 0, 8);
	assert_int_equal(fake_run(f, 64), 1);
	fake_expect_read(f, RC(READ_RESP_ONLY), 6, 0, 8);
	fake_quiet(f);
}

/* The queue pair's limit is lower than the number of replay entries. */
T_FAKE(BB_ROCE_RC, test_limit_below_the_replay_entries_applies)
{
	f->qp.attr.max_dest_rd_atomic = 2;
	/* A PSN before the first packet is not mistaken for a READ. */
	fake_rx_ack(f, RC(SEND_ONLY), 0, 4);
	fake_rx_ack(f, RC(SEND_ONLY), -3, 4);
	fake_expect(f, ACK, 0, 1);
	for (int i = 1; i <= 3; i++) {
		fake_rx_rdma(f, RC(READ_REQUEST), i, 0, 0, 8);
		assert_int_equal(fake_run(f, 64), 1);
	}
	f->seen = f->n_sent;
	fake_rx_rdma(f, RC(READ_REQUEST), 1, 0, 0, 8);
	fake_quiet(f);
	fake_rx_rdma(f, RC(READ_REQUEST), 2, 0, 0, 8);
	assert_int_equal(fake_run(f, 64), 2);
	f->seen = f->n_sent;
	for (int i = 4; i <= 6; i++)
		fake_rx_rdma(f, RC(READ_REQUEST), i, 0, 0, 8);
	assert_int_equal(fake_run(f, 2), 2);
	f->seen = f->n_sent;
	fake_expect_fatal(f, NAK(INVALID), 6, 6, BB_SYN_REMOTE_INVAL_REQ);
}

static uint64_t
word(const struct fake *f, uint32_t off)
{
	uint64_t v;

	memcpy(&v, f->mem + FAKE_START + off, 8);
	return v;
}

T_FAKE(BB_ROCE_RC, test_atomic_returns_the_old_value_and_executes_once)
{
	uint64_t old = word(f, 8);

	fake_rx_atomic(f, RC(FETCH_ADD), 0, 8, 5, 0);
	fake_rx_atomic(f, RC(CMP_SWAP), 1, 8, 77, old + 5);
	fake_rx_atomic(f, RC(CMP_SWAP), 2, 8, 99, old);
	assert_int_equal(fake_run(f, 64), 3);
	assert_fields(f->sent[0].pkt, opcode, RC(ATOMIC_ACK), syndrome, ACK, orig, old);
	assert_fields(*f, sent[1].pkt.orig, old + 5, sent[2].pkt.orig, 77);
	assert_fields(f->sent[2].pkt, psn, fake_psn(2), msn, 3);
	assert_int_equal(word(f, 8), 77);
	assert_int_equal(f->qp.stats.rx_atomic, 3);
	/* An atomic executes once, answered or not. */
	f->seen = f->n_sent;
	fake_rx_atomic(f, RC(FETCH_ADD), 3, 8, 5, 0);
	fake_rx_atomic(f, RC(FETCH_ADD), 3, 8, 5, 0);
	assert_int_equal(fake_run(f, 64), 1);
	fake_rx_atomic(f, RC(FETCH_ADD), 3, 8, 5, 0);
	assert_int_equal(fake_run(f, 64), 1);
	assert_fields(*f, sent[3].pkt.orig, 77, sent[4].pkt.orig, 77);
	assert_int_equal(word(f, 8), 82);
	assert_int_equal(f->atomics, 4);
}

T_OWN_FAKE(test_atomic_without_right_or_alignment_is_refused)
{
	static const struct {
		uint64_t off;
		uint8_t nak, synd;
		bool right;
	} c[] = {
		{4, NAK(INVALID), BB_SYN_REMOTE_INVAL_REQ, true},
		{1, NAK(INVALID), BB_SYN_REMOTE_INVAL_REQ, true},
		{FAKE_LEN, NAK(ACCESS), BB_SYN_REMOTE_ACCESS, true},
		{0, NAK(INVALID), BB_SYN_REMOTE_INVAL_REQ, false},
	};

	for (uint32_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		fake_init(f, BB_ROCE_RC);
		f->no_right = c[i].right ? 0 : 1u << BB_ROCE_ACCESS_ATOMIC;
		fake_rx_atomic(f, RC(FETCH_ADD), 0, c[i].off, 1, 0);
		fake_expect_fatal(f, c[i].nak, 0, 0, c[i].synd);
		assert_int_equal(f->atomics, 0);
	}
}

T_FAKE(BB_ROCE_RC, test_old_replay_entries_do_not_match_after_a_wrap)
{
	fake_rx_atomic(f, RC(FETCH_ADD), 0, 8, 5, 0);
	(void)fake_run(f, 64);
	f->seen = f->n_sent;
	/* Moves through all PSNs once, as SENDs would. */
	f->qp.resp.seq += 1u << 24;
	fake_rx_atomic(f, RC(FETCH_ADD), 0, 8, 5, 0);
	fake_quiet(f);
	assert_int_equal(f->qp.stats.drop_replay, 1);
	fake_rx(f, RC(SEND_ONLY), -2, 4, NULL);
	fake_expect(f, ACK, 0, 1);
}

TEST_MAIN(0)
