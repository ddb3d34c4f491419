/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Selective repeat against packets that a third host forges with the peer's address: what the
 * window of kept packets exposes, and who may use it.
 */
#include "bb_roce_short.h"
#include "roce_early_fake.h"

static void
begin_unproven(struct fake *f)
{
	begin(f);
	f->qp.resp.store_until = 0;
	send(f, 0);
}

T_OWN_FAKE(test_peer_that_goes_back_is_granted_no_window)
{
	int i, gap;

	begin_unproven(f);
	for (i = 1; i < 60; i += 6) {
		/* Losses of one to four packets; then all packets from there again. */
		gap = 1 + i % 4;
		send(f, i + gap);
		fake_expect(f, NAK(PSN), i, (uint32_t)i);
		send(f, i + gap + 1);
		expect_kept(f, 0);
		for (gap = 0; gap < 6; gap++)
			send(f, i + gap);
		expect_kept(f, 0);
	}
	assert_int_equal(f->qp.stats.stored, 0);
	/* One packet ahead, the expected one, and one that does not follow the first. */
	send(f, i + 2);
	fake_expect(f, NAK(PSN), i, (uint32_t)i);
	send(f, i);
	send(f, i + 3 + 16);
	expect_kept(f, 0);
}

T_OWN_FAKE(test_peer_that_repeats_selectively_is_granted_a_window)
{
	begin_unproven(f);
	send(f, 2);
	send(f, 3);
	fake_expect(f, NAK(PSN), 1, 1);
	expect_kept(f, 0);
	/* The lost packet, then a new one: this is already kept. */
	send(f, 1);
	send(f, 4);
	fake_expect(f, NAK(PSN), 2, 2);
	expect_kept(f, 1);
	send(f, 2);
	send(f, 3);
	expect_sends(f, 0, 0, 4);
	expect_kept(f, 0);
	fake_expect(f, ACK, 4, 5);
	send(f, 6);
	expect_kept(f, 1);
	send(f, 5);
	fake_expect(f, ACK, 6, 7);
	expect_sends(f, 0, 0, 6);
	/* The permission to keep expires. */
	f->qp.resp.store_until = f->qp.resp.seq;
	send(f, 8);
	expect_kept(f, 0);
}

/* The peer has shown nothing before the first NAK, whatever its first PSN is. */
T_OWN_FAKE(test_peer_without_a_loss_is_granted_no_window)
{
	for (uint32_t first = 0; first < 2; first++) {
		begin(f);
		f->qp.resp.store_until = 0;
		f->qp.resp.epsn = first;
		if (first == 0)
			send(f, 2); /* PSN 0 */
		send(f, 4);         /* PSN 2 */
		fake_expect(f, NAK(PSN), 3, 1 - first);
		expect_kept(f, 0);
	}
}

/* Up to 15 packets in a row may be lost; packets further ahead are not kept. */
T_OWN_FAKE(test_packets_far_ahead_are_not_kept)
{
	for (int i = 1; i < (int)FAKE_MAX_AHEADS; i++) {
		begin(f);
		f->qp.resp.max_out_of_order = FAKE_MAX_AHEADS;
		send(f, i);
		fake_expect(f, NAK(PSN), 0, 0);
		expect_kept(f, i < 16 ? 1 : 0);
		bb_roce_ooo_drop(&f->qp);
	}
}

/*
 * Receives a packet of @kind. @n > 0: field @n differs from the packet with @n of 0, the PSN is
 * the same. Returns false if there is no such field.
 */
static bool
packet_of(struct fake *f, uint32_t kind, uint32_t n)
{
	struct bb_roce_pkt pkt = {.imm = 7, .flags = n == 0 ? BB_ROCE_ACKREQ : 0};
	uint8_t opcode = RC(SEND_ONLY_IMM);

	pkt.rkey = FAKE_KEY;
	pkt.va = FAKE_VA;
	pkt.dmalen = 8;
	if (kind == 1)
		opcode = RC(WRITE_ONLY_IMM);
	else if (kind == 2)
		opcode = RC(CMP_SWAP);
	else if (kind == 3)
		opcode = RC(READ_REQUEST);
	switch (n) {
	case 1:
		opcode = RC(SEND_ONLY_INV);
		break;
	case 2:
		if (kind > 1)
			return false;
		pkt.imm++;
		break;
	case 3:
		if (kind == 0)
			return false;
		pkt.rkey++;
		break;
	case 4:
		if (kind == 0)
			return false;
		pkt.va += 8;
		break;
	case 5:
		if (kind == 0 || kind == 2)
			return false;
		pkt.dmalen++;
		break;
	case 6:
		if (kind != 2)
			return false;
		pkt.compare++;
		break;
	case 7:
		if (kind != 2)
			return false;
		pkt.swap_add++;
		break;
	case 8:
		if (kind > 1)
			return false;
		fake_rx(f, opcode, 2, 7, &pkt);
		return true;
	case 9:
		pkt.flags = BB_ROCE_SE;
		break;
	default:
		break;
	}
	fake_rx(f, opcode, 2, kind > 1 ? 0 : 8, &pkt);
	return true;
}

static void
two_packets(struct fake *f, uint32_t kind, uint32_t n)
{
	packet_of(f, kind, 0);
	fake_expect(f, NAK(PSN), 0, 0);
	expect_kept(f, 1);
	if (!packet_of(f, kind, n))
		return;
	assert_int_equal(f->qp.stats.drop_differs, n != 0);
	expect_kept(f, n == 0);
	if (n == 0) {
		fake_quiet(f);
		return;
	}
	/* The peer must send both again, and no packet is kept any more. */
	fake_expect(f, NAK(PSN), 0, 0);
	send(f, 2);
	send(f, 3);
	expect_kept(f, 0);
	send(f, 0);
	send(f, 1);
	send(f, 2);
	expect_sends(f, 0, 0, 2);
}

T_OWN_FAKE(test_two_packets_of_one_psn_that_differ_are_both_dropped)
{
	for (uint32_t kind = 0; kind < 4; kind++) {
		for (uint32_t n = 0; n < 10; n++) {
			begin(f);
			two_packets(f, kind, n);
			bb_roce_ooo_drop(&f->qp);
		}
	}
}

/* Receives a WRITE_ONLY_IMM on the fast path. @field: field that differs from the first packet. */
static void
fast_write(struct fake *f, uint32_t field)
{
	uint8_t data[8] = {0};
	struct bb_roce_pkt pkt = {.opcode = RC(WRITE_ONLY_IMM),
				  .psn = fake_psn(2),
				  .va = FAKE_VA + (field == 1),
				  .rkey = FAKE_KEY + (field == 2),
				  .dmalen = sizeof(data) + (field == 3),
				  .imm = field == 4,
				  .len = sizeof(data),
				  .payload = data};

	assert_true(bb_roce_short_is_out_of_order(&f->qp, pkt.psn));
	bb_roce_short_out_of_order(&f->qp, &pkt);
}

T_OWN_FAKE(test_fast_path_drops_two_packets_of_one_psn_that_differ)
{
	for (uint32_t field = 0; field < 5; field++) {
		begin(f);
		fast_write(f, 0);
		expect_kept(f, 1);
		fast_write(f, field);
		assert_int_equal(f->qp.stats.drop_differs, field != 0);
		expect_kept(f, field == 0);
		bb_roce_ooo_drop(&f->qp);
	}
}

TEST_MAIN(0)
