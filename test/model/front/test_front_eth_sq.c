/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Send queues of Ethernet ports: messages that are cut into segments, turns, wrong WQEs, ERR. */
#include "eth.h"
#include "eth_port.h"

static void
test_long_message_is_cut_into_segments(void **state)
{
	static const uint32_t bytes[3] = {1000, 1000, 500};
	uint8_t f[HEADERS + 2500], got[HEADERS + 1000];
	uint32_t i, at = HEADERS;

	(void)state;
	tcp_frame(f, sizeof(f), 0);
	post_frame(ports[0], OP_LSO, f, sizeof(f), HEADERS, CS_ALL, 1000);
	assert_sent(ports[0], 0);
	for (i = 0; i < 3; i++) {
		assert_received(ports[1], HEADERS + bytes[i]);
		read_frame(ports[1], i, got, HEADERS + bytes[i]);
		assert_checksums(got);
		assert_int_equal(bb_prm_get(got + 18, BB_PRM_F(0, 0, 16)), 0x1234 + i);
		assert_int_equal(bb_prm_dword(got, 38), 0xfff0u + i * 1000);
		assert_int_equal(got[47], i == 2 ? 0x19 : 0x10); /* FIN and PSH at the end only */
		assert_memory_equal(f + at, got + HEADERS, bytes[i]);
		at += bytes[i];
	}
	assert_true(no_cqe(ports[1], &ports[1]->rcq));
}

/* Posts a message whose payload is @n times the same data segment of @bytes bytes. */
static void
post_long(struct port *p, uint32_t n, uint32_t bytes, uint32_t mss)
{
	const uint32_t at = (30 + HEADERS + 15) & ~15u, ds = at / 16 + n;
	uint8_t w[1024] = {0}, f[HEADERS + PAGE];
	uint32_t i;

	tcp_frame(f, HEADERS + bytes, 0);
	bb_prm_set(f + 16, BB_PRM_F(0, 0, 16), 0); /* no length, as it has only 16 bits */
	memcpy(g_ram(&p->g, p->data.pa[0]), f + HEADERS, bytes);
	wqe_head(&p->sq, w, OP_LSO, ds, G_CQE_UPDATE);
	w[20] = CS_ALL;
	bb_prm_set(w + 20, BB_PRM_F(0, 16, 16), mss);
	bb_prm_set(w + 28, BB_PRM_F(0, 0, 16), HEADERS);
	memcpy(w + 30, f, HEADERS);
	for (i = 0; i < n; i++) {
		bb_put32(w + at + i * 16, bytes);
		bb_put32(w + at + i * 16 + 4, p->key);
		bb_put64(w + at + i * 16 + 8, p->data.pa[0]);
	}
	g_poll(&p->g);
	g_post(&p->g, &p->sq, w, (ds * 16 + 63) & ~63u);
	g_ring(&p->g, &p->sq, w, 8);
}

/* BIG TCP: Linux sends such messages if gso_max_size of the netdev is raised. */
static void
test_message_longer_than_64_kib_is_cut_into_segments(void **state)
{
	const struct front_frames *s = &ports[0]->g.f->eth->stats;
	uint8_t got[HEADERS + 1000];
	uint32_t i;

	(void)state;
	post_long(ports[0], 50, 2000, 1000);
	assert_sent(ports[0], 0);
	assert_int_equal(s->tx_frames, 100);
	assert_int_equal(s->tx_bytes, 100 * (HEADERS + 1000));
	for (i = 0; i < 4; i++) {
		assert_received(ports[1], HEADERS + 1000);
		read_frame(ports[1], i, got, sizeof(got));
		assert_checksums(got);
		assert_int_equal(bb_prm_dword(got, 38), 0xfff0u + i * 1000);
	}
}

/* A message may not become tens of thousands of frames. */
static void
test_tiny_segments_are_refused(void **state)
{
	(void)state;
	post_long(ports[0], 4, 4000, 1);
	assert_sent(ports[0], 0x01);
	assert_true(no_cqe(ports[1], &ports[1]->rcq));
}

static void
test_vlan_tag_is_inserted(void **state)
{
	struct port *a = ports[0];
	uint8_t f[100], got[104], w[64] = {0};

	(void)state;
	tcp_frame(f, sizeof(f), 0);
	memcpy(g_ram(&a->g, a->data.pa[0]), f, sizeof(f));
	wqe_head(&a->sq, w, OP_SEND, 3, G_CQE_UPDATE);
	bb_put32(w + 28, 0x8000a123);
	bb_put32(w + 32, sizeof(f));
	bb_put32(w + 36, a->key);
	bb_put64(w + 40, a->data.pa[0]);
	g_post(&a->g, &a->sq, w, sizeof(w));
	ring_sq(a, w, 8);
	assert_received(ports[1], sizeof(got));
	read_frame(ports[1], 0, got, sizeof(got));
	assert_memory_equal(got, f, 12);
	assert_int_equal(bb_prm_dword(got, 12), 0x8100a123);
	assert_memory_equal(got + 16, f + 12, sizeof(f) - 12);
}

static uint32_t
state_of(struct port *p, uint16_t op, uint32_t queue)
{
	assert_int_equal(run_on(&p->g, op, 0, queue), BB_PRM_STAT_OK);
	return bb_prm_get(p->g.out + BB_PRM_QUERY_SQ_CTX.byte, BB_PRM_SQC_STATE);
}

static void
recover(struct port *p)
{
	assert_int_equal(state_of(p, BB_PRM_OP_QUERY_SQ, p->sqn), ERR);
	assert_int_equal(modify_queue(p, BB_PRM_OP_MODIFY_SQ, p->sqn, ERR, RDY),
			 BB_PRM_STAT_BAD_RES_STATE);
	assert_int_equal(modify_queue(p, BB_PRM_OP_MODIFY_SQ, p->sqn, ERR, RST), BB_PRM_STAT_OK);
	assert_int_equal(modify_queue(p, BB_PRM_OP_MODIFY_SQ, p->sqn, RST, RDY), BB_PRM_STAT_OK);
	p->sq.pi = 0;
}

static void
test_wrong_wqe_completes_with_error(void **state)
{
	struct port *a = ports[0];
	uint32_t key = a->key, i;
	uint64_t pa = a->data.pa[0];
	uint8_t f[100];

	(void)state;
	tcp_frame(f, sizeof(f), 0);
	for (i = 0; i < 6; i++) {
		uint8_t w[64] = {0};

		wqe_head(&a->sq, w, i == 0 ? 0x25 : OP_SEND, 3, 0);
		bb_put32(w + 32, i == 1 ? 0x200000 : i == 2 ? 10 : sizeof(f));
		bb_put32(w + 36, i == 3 ? key ^ 1 : key);
		bb_put64(w + 40, i == 4 ? UINT64_MAX - 8 : pa);
		if (i == 5)
			bb_put32(w + 4, (a->sqn + 1) << 8 | 3);
		g_post(&a->g, &a->sq, w, sizeof(w));
		bb_put32(w + 4, a->sqn << 8 | 3);
		ring_sq(a, w, 8);
		assert_sent(a, i == 0 || i == 5 ? 0x02 : i < 3 ? 0x01 : 0x04);
		recover(a);
	}
	post_frame(a, OP_SEND, f, sizeof(f), 0, 0, 0);
	assert_received(ports[1], sizeof(f));
}

/* Posts a WQE of a frame with or without CQE, without a doorbell. */
static void
post_quiet(struct port *p, uint8_t opcode, uint8_t flags)
{
	uint8_t w[64] = {0};

	wqe_head(&p->sq, w, opcode, 3, flags);
	bb_put32(w + 32, 100);
	bb_put32(w + 36, p->key);
	bb_put64(w + 40, p->data.pa[0]);
	g_post(&p->g, &p->sq, w, sizeof(w));
}

static void
assert_error_cqe(struct port *p, uint32_t index, uint32_t syndrome)
{
	const uint8_t *cqe = g_cqe(&p->g, &p->scq);

	assert_int_equal(cqe[63] >> 4, BB_CQE_REQ_ERR);
	assert_int_equal(cqe[BB_CQE_SYNDROME_BYTE], syndrome);
	assert_int_equal(bb_prm_get(cqe + 60, BB_PRM_F(0, 0, 16)), index);
}

/* The recovery of mlx5e waits for a CQE of each WQE. */
static void
test_wqes_after_a_failed_one_are_flushed(void **state)
{
	struct port *a = ports[0];
	uint8_t w[8] = {0};

	(void)state;
	bb_put32(w + 4, a->sqn << 8);
	post_quiet(a, 0x25, G_CQE_UPDATE);
	post_quiet(a, OP_SEND, 0);
	post_quiet(a, OP_SEND, G_CQE_UPDATE);
	ring_sq(a, w, sizeof(w));
	assert_error_cqe(a, 0, 0x02);
	assert_error_cqe(a, 1, 0x05);
	assert_error_cqe(a, 2, 0x05);
	assert_true(no_cqe(a, &a->scq));
	/* A doorbell in ERR. */
	post_quiet(a, OP_SEND, 0);
	ring_sq(a, w, sizeof(w));
	assert_error_cqe(a, 3, 0x05);
	assert_true(no_cqe(ports[1], &ports[1]->rcq));
	recover(a);
	post_quiet(a, OP_SEND, G_CQE_UPDATE);
	ring_sq(a, w, sizeof(w));
	assert_sent(a, 0);
	/* The driver itself moves the SQ to ERR, while a WQE waits for its turn. */
	a->g.f->eth->spent = ETH_TURN_NS;
	post_quiet(a, OP_SEND, 0);
	g_ring(&a->g, &a->sq, w, sizeof(w));
	assert_int_equal(modify_queue(a, BB_PRM_OP_MODIFY_SQ, a->sqn, RDY, ERR), BB_PRM_STAT_OK);
	assert_error_cqe(a, 1, 0x05);
	/* A WQE that waits is not executed after a reset. */
	a->g.f->eth->spent = ETH_TURN_NS;
	post_quiet(a, OP_SEND, 0);
	g_ring(&a->g, &a->sq, w, sizeof(w));
	recover(a);
	g_poll(&a->g);
	assert_true(no_cqe(a, &a->scq));
	assert_int_equal(state_of(a, BB_PRM_OP_QUERY_SQ, a->sqn), RDY);
}

/* Only the copy asks for a CQE, as in Linux's test of write combining. */
static void
test_blueflame_copy_takes_the_place_of_the_wqe(void **state)
{
	struct port *a = ports[0];
	uint8_t w[64] = {0};

	(void)state;
	wqe_head(&a->sq, w, 0, 1, 0);
	g_post(&a->g, &a->sq, w, sizeof(w));
	w[11] = G_CQE_UPDATE;
	ring_sq(a, w, 8);
	assert_true(no_cqe(a, &a->scq));
	wqe_head(&a->sq, w, 0, 1, 0);
	g_post(&a->g, &a->sq, w, sizeof(w));
	w[11] = G_CQE_UPDATE;
	ring_sq(a, w, sizeof(w));
	assert_sent(a, 0);
}

static void
test_record_beyond_the_ring_stops_the_queue(void **state)
{
	struct port *a = ports[0];
	uint8_t w[64] = {0};

	(void)state;
	wqe_head(&a->sq, w, OP_SEND, 3, 0);
	bb_put32(g_ram(&a->g, a->sq.dbr) + 4, (1u << LOG_SQ) + 1);
	ring_sq(a, w, 8);
	assert_true(no_cqe(a, &a->scq));
	recover(a);
}

/* The ring is not RAM, so that the opcode is unknown. */
static void
test_unreadable_wqe_completes_without_an_opcode(void **state)
{
	const struct pages nowhere = {.pa = {UINT64_C(1) << 40}, .n = 1};
	struct port *a = ports[0];
	struct g_qp sq = {.uar = a->uar};
	uint64_t dbr = g_pages(&a->g, 1).pa[0];
	uint8_t f[100], w[8] = {0};
	const uint8_t *cqe;

	(void)state;
	queue_box(a, BB_PRM_OP_CREATE_SQ, a->scq.cqn, &nowhere, dbr, LOG_SQ, 6);
	sq.qpn = made_number(a);
	assert_int_equal(modify_queue(a, BB_PRM_OP_MODIFY_SQ, sq.qpn, RST, RDY), BB_PRM_STAT_OK);
	tcp_frame(f, sizeof(f), 0);
	post_frame(a, OP_SEND, f, sizeof(f), 0, 0, 0);
	assert_sent(a, 0);
	bb_put32(g_ram(&a->g, dbr) + 4, 1);
	bb_put32(w + 4, sq.qpn << 8);
	g_poll(&a->g);
	g_ring(&a->g, &sq, w, sizeof(w));
	cqe = g_cqe(&a->g, &a->scq);
	assert_int_equal(cqe[63] >> 4, BB_CQE_REQ_ERR);
	assert_int_equal(cqe[BB_CQE_SYNDROME_BYTE], 0x04);
	assert_int_equal(bb_prm_dword(cqe, 56), sq.qpn);
}

/* The doorbell comes at the end of a turn: one frame is sent, the others in the next turns. */
static void
test_long_message_goes_on_in_the_next_turn(void **state)
{
	struct port *a = ports[0], *b = ports[1];
	struct front_eth *e = a->g.f->eth;
	uint8_t f[HEADERS + 2500], got[HEADERS + 1000];

	(void)state;
	tcp_frame(f, sizeof(f), 0);
	e->spent = ETH_TURN_NS - 1;
	post_frame_late(a, OP_LSO, f, sizeof(f), HEADERS, CS_ALL, 1000);
	assert_received(b, HEADERS + 1000);
	assert_true(no_cqe(b, &b->rcq));
	assert_true(no_cqe(a, &a->scq));
	assert_sent(a, 0);
	assert_received(b, HEADERS + 1000);
	assert_received(b, HEADERS + 500);
	assert_true(no_cqe(b, &b->rcq));
	read_frame(b, 1, got, HEADERS + 1000);
	assert_checksums(got);
	assert_memory_equal(f + HEADERS + 1000, got + HEADERS, 1000);
	assert_int_equal(bb_prm_dword(got, 38), 0xfff0u + 1000);
}

/* All SQs of a port share its turn. A poll that ran an SQ asks for another poll of all ports. */
static void
test_doorbell_after_the_turn_waits_for_a_poll(void **state)
{
	struct port *a = ports[0], *b = ports[1];
	struct front_eth *e = a->g.f->eth;
	uint8_t f[100];

	(void)state;
	tcp_frame(f, sizeof(f), 0);
	e->spent = ETH_TURN_NS;
	post_frame_late(a, OP_SEND, f, sizeof(f), 0, 0, 0);
	assert_true(no_cqe(b, &b->rcq));
	assert_int_equal(eth_poll(e), 0);
	assert_int_equal(eth_poll(e), -1);
	assert_received(b, sizeof(f));
	assert_sent(a, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, ports_open, ports_close)
		T(test_long_message_is_cut_into_segments),
		T(test_message_longer_than_64_kib_is_cut_into_segments),
		T(test_tiny_segments_are_refused),
		T(test_vlan_tag_is_inserted),
		T(test_wrong_wqe_completes_with_error),
		T(test_wqes_after_a_failed_one_are_flushed),
		T(test_blueflame_copy_takes_the_place_of_the_wqe),
		T(test_record_beyond_the_ring_stops_the_queue),
		T(test_unreadable_wqe_completes_without_an_opcode),
		T(test_long_message_goes_on_in_the_next_turn),
		T(test_doorbell_after_the_turn_waits_for_a_poll),
	};

	return cmocka_run_group_tests_name("front_eth_sq", tests, NULL, NULL);
}
