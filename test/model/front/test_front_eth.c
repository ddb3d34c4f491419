/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Frames between two Ethernet ports: receive queues, flow tables, limits. */
#include "eth.h"
#include "eth_port.h"

static void
test_frame_reaches_the_other_port(void **state)
{
	struct port *a = ports[0], *b = ports[1];
	uint8_t f[600], got[600];
	const uint8_t *cqe;

	(void)state;
	tcp_frame(f, sizeof(f), 0);
	post_frame(a, OP_SEND, f, sizeof(f), 0, 0, 0);
	assert_sent(a, 0);
	cqe = assert_received(b, sizeof(f));
	assert_int_equal(bb_prm_get(cqe + 20, BB_PRM_F(0, 0, 16)),
			 word_sum(f + 14, sizeof(f) - 14, 0));
	read_frame(b, 0, got, sizeof(got));
	assert_memory_equal(f, got, sizeof(f));
	assert_true(no_cqe(a, &a->rcq));
	/* Now the link knows where the first port is. */
	tcp_frame(f, sizeof(f), 1);
	post_frame(b, OP_SEND, f, sizeof(f), 14, 0, 0);
	assert_received(a, sizeof(f));
	read_frame(a, 0, got, sizeof(got));
	assert_memory_equal(f, got, sizeof(f));
	assert_true(no_cqe(b, &b->rcq));
}

static void
test_short_frame_is_padded(void **state)
{
	uint8_t f[42], got[60];
	uint32_t i;

	(void)state;
	tcp_frame(got, sizeof(got), 0);
	memcpy(f, got, sizeof(f));
	f[12] = 0x88;
	post_frame(ports[0], OP_SEND, f, sizeof(f), 18, 0, 0);
	assert_received(ports[1], 60);
	read_frame(ports[1], 0, got, sizeof(got));
	assert_memory_equal(f, got, sizeof(f));
	for (i = sizeof(f); i < sizeof(got); i++)
		assert_int_equal(got[i], 0);
}

static void
test_checksums_are_computed(void **state)
{
	uint8_t f[601], got[601];

	(void)state;
	tcp_frame(f, sizeof(f), 0);
	post_frame(ports[0], OP_SEND, f, sizeof(f), 0, CS_ALL, 0);
	assert_received(ports[1], sizeof(f));
	read_frame(ports[1], 0, got, sizeof(got));
	assert_checksums(got);
	assert_memory_equal(f + HEADERS, got + HEADERS, sizeof(f) - HEADERS);
}

static void
test_frame_without_a_receive_is_dropped(void **state)
{
	uint8_t f[100];
	uint32_t i;

	(void)state;
	tcp_frame(f, sizeof(f), 0);
	for (i = 0; i < 5; i++) {
		post_frame(ports[0], OP_SEND, f, sizeof(f), 0, 0, 0);
		assert_sent(ports[0], 0);
	}
	for (i = 0; i < 4; i++)
		assert_received(ports[1], sizeof(f));
	assert_true(no_cqe(ports[1], &ports[1]->rcq));
	post_receive(ports[1]);
	post_frame(ports[0], OP_SEND, f, sizeof(f), 0, 0, 0);
	assert_received(ports[1], sizeof(f));
}

static void
test_frame_longer_than_the_receive_is_dropped(void **state)
{
	uint8_t f[FRAME_MAX + 65];

	(void)state;
	tcp_frame(f, sizeof(f), 0);
	post_frame(ports[0], OP_SEND, f, sizeof(f), 0, 0, 0);
	assert_sent(ports[0], 0);
	assert_true(no_cqe(ports[1], &ports[1]->rcq));
	post_frame(ports[0], OP_SEND, f, sizeof(f) - 1, 0, 0, 0);
	assert_received(ports[1], sizeof(f) - 1);
}

static void
test_tables_match_and_miss(void **state)
{
	struct port *b = ports[1];
	uint32_t last = make_table(b, b->table), first = make_table(b, last), group;
	uint8_t f[100], *flow;

	(void)state;
	/* Drops frames of TCP port 80, which is byte 0x17 of the match. */
	group_box(b, first, 0, 0x17, 0xff);
	group = made_number(b);
	flow = entry_box(b, first, group, 1, 2, 0, 0);
	flow[BB_PRM_FLOWC_VALUE.byte + 0x17] = 80;
	assert_status(&b->g, OK);
	set_root(b, first);
	tcp_frame(f, sizeof(f), 0);
	post_frame(ports[0], OP_SEND, f, sizeof(f), 0, 0, 0);
	assert_true(no_cqe(b, &b->rcq));
	f[37] = 81; /* misses, and goes by two tables to the entry of the third */
	post_frame(ports[0], OP_SEND, f, sizeof(f), 0, 0, 0);
	assert_received(b, sizeof(f));
	/* Tables in a circle end. */
	flow = entry_box(b, first, group, 0, 4, 1, first);
	flow[BB_PRM_FLOWC_VALUE.byte + 0x17] = 81;
	assert_status(&b->g, OK);
	post_frame(ports[0], OP_SEND, f, sizeof(f), 0, 0, 0);
	assert_true(no_cqe(b, &b->rcq));
	bb_prm_set(box(&b->g, BB_PRM_OP_DELETE_FLOW_TABLE_ENTRY, 0, BB_PRM_SZ_FLOW_TABLE_IN),
		   BB_PRM_FLOW_TABLE_ID, first);
	assert_status(&b->g, OK);
	post_frame(ports[0], OP_SEND, f, sizeof(f), 0, 0, 0);
	assert_received(b, sizeof(f));
}

static void
test_objects_in_use_stay(void **state)
{
	struct port *p = ports[0];

	(void)state;
	assert_int_equal(run_on(&p->g, BB_PRM_OP_DESTROY_CQ, 0, p->scq.cqn), BB_PRM_STAT_RES_BUSY);
	assert_int_equal(run_on(&p->g, BB_PRM_OP_DESTROY_RQ, 0, p->rqn), BB_PRM_STAT_RES_BUSY);
	assert_int_equal(run_on(&p->g, BB_PRM_OP_DESTROY_TIR, 0, p->tirn), BB_PRM_STAT_RES_BUSY);
	assert_int_equal(run_on(&p->g, BB_PRM_OP_DESTROY_SQ, 0, p->sqn), BB_PRM_STAT_OK);
	assert_int_equal(run_on(&p->g, BB_PRM_OP_DESTROY_CQ, 0, p->scq.cqn), BB_PRM_STAT_OK);
}

static void
test_what_is_not_done_is_refused(void **state)
{
	struct port *p = ports[0];
	uint16_t uid = g_user(&p->g);
	uint8_t *ctx;

	(void)state;
	box(&p->g, BB_PRM_OP_CREATE_TIS, uid, BB_PRM_SZ_CREATE_TIS_IN);
	assert_status(&p->g, BAD_RES);
	ctx = queue_box(p, BB_PRM_OP_CREATE_RQ, p->rcq.cqn, &p->rq_ring, p->rq_dbr, LOG_RQ,
			LOG_STRIDE);
	bb_prm_set(ctx + BB_PRM_SQC_WQ.byte, BB_PRM_WQ_TYPE, 3); /* a striding RQ */
	assert_status(&p->g, BAD_PARAM);
	queue_box(p, BB_PRM_OP_CREATE_SQ, p->scq.cqn, &p->sq.ring, p->sq.dbr, 7, 6);
	assert_status(&p->g, BAD_INP_LEN); /* two pages are needed */
	queue_box(p, BB_PRM_OP_CREATE_SQ, 0xfff, &p->sq.ring, p->sq.dbr, LOG_SQ, 6);
	assert_status(&p->g, BAD_RES);
	group_box(p, p->table, 2, 0x40, 1); /* misc_parameters */
	assert_status(&p->g, BAD_PARAM);
	group_box(p, p->table, 1, 0, 0); /* overlaps the first group */
	assert_status(&p->g, BAD_PARAM);
	entry_box(p, p->table, p->group, 1, 4, 0, 0); /* a vport */
	assert_status(&p->g, BAD_PARAM);
	entry_box(p, p->table, p->group, 1, 0x40, 0, 0); /* changes headers */
	assert_status(&p->g, BAD_PARAM);
	entry_box(p, p->table, p->group, 5, 2, 0, 0); /* beyond the group */
	assert_status(&p->g, BAD_PARAM);
	entry_box(p, p->table, p->group, 1, 4, 2, p->tirn);
	bb_prm_set(p->g.in + BB_PRM_SET_FTE_CTX.byte, BB_PRM_FLOWC_DESTS, 5);
	assert_status(&p->g, BAD_INP_LEN);
}

/* Makes an entry that passes all frames to TIR @tir seven times, and at last to @type and @id. */
static void
copies(struct port *p, uint32_t table, uint32_t tir, uint32_t type, uint32_t id)
{
	uint32_t i, group;
	uint8_t *flow;

	group_box(p, table, 0, 0, 0);
	group = made_number(p);
	flow = entry_box(p, table, group, 0, 4, 2, tir);
	bb_prm_set(flow, BB_PRM_FLOWC_DESTS, 8);
	p->g.in_len += 7 * 8;
	for (i = 0; i < 8; i++) {
		uint8_t *dest = flow + BB_PRM_FLOWC_DESTINATION + i * 8;

		bb_prm_set(dest, BB_PRM_DEST_TYPE, i == 7 ? type : 2);
		bb_prm_set(dest, BB_PRM_DEST_ID, i == 7 ? id : tir);
	}
	assert_status(&p->g, OK);
}

static void
test_frame_has_a_limited_number_of_copies(void **state)
{
	struct port *b = ports[1];
	struct pages page = g_pages(&b->g, 1);
	uint64_t dbr = g_pages(&b->g, 1).pa[0];
	uint32_t rq, tir, first, second, third, i;
	uint8_t f[100], *ctx, *w;

	(void)state;
	/* An RQ with 32 receives. */
	queue_box(b, BB_PRM_OP_CREATE_RQ, b->rcq.cqn, &page, dbr, 5, LOG_STRIDE);
	rq = made_number(b);
	assert_int_equal(modify_queue(b, BB_PRM_OP_MODIFY_RQ, rq, RST, RDY), BB_PRM_STAT_OK);
	for (i = 0; i < 32; i++) {
		w = g_at(&b->g, &page, i << LOG_STRIDE);
		bb_put32(w, PAGE);
		bb_put32(w + 4, b->key);
		bb_put64(w + 8, b->buffers.pa[0]);
	}
	bb_put32(g_ram(&b->g, dbr), 32);
	ctx = box(&b->g, BB_PRM_OP_CREATE_TIR, 0, BB_PRM_SZ_CREATE_TIR_IN) +
	      BB_PRM_CREATE_TIR_CTX.byte;
	bb_prm_set(ctx, BB_PRM_TIRC_INLINE_RQN, rq);
	tir = made_number(b);
	first = make_table(b, 0);
	second = make_table(b, 0);
	third = make_table(b, 0);
	copies(b, first, tir, 1, second);
	copies(b, second, tir, 1, third);
	copies(b, third, tir, 2, tir);
	set_root(b, first);
	tcp_frame(f, sizeof(f), 0);
	post_frame(ports[0], OP_SEND, f, sizeof(f), 0, 0, 0);
	for (i = 0; i < ETH_MAX_DELIVERIES; i++)
		assert_received(b, sizeof(f));
	assert_true(no_cqe(b, &b->rcq));
}

static uint32_t
new_tis(struct port *p)
{
	box(&p->g, BB_PRM_OP_CREATE_TIS, 0, BB_PRM_SZ_CREATE_TIS_IN);
	return run(&p->g);
}

/* An RQ of 4096 pages. */
static uint32_t
new_big_rq(struct port *p)
{
	const struct pages none = {.n = 0};

	queue_box(p, BB_PRM_OP_CREATE_RQ, p->rcq.cqn, &none, p->rq_dbr, 15, 9);
	p->g.in_len += 4096 * 8;
	return run(&p->g);
}

static void
test_objects_beyond_the_limits_are_refused(void **state)
{
	struct port *p = ports[0];
	uint32_t n, number = 0;

	(void)state;
	for (n = 1; new_tis(p) == BB_PRM_STAT_OK && n <= 1024; n++)
		number = bb_prm_get(p->g.out, BB_PRM_F(8, 8, 24));
	assert_int_equal(n, 1024);
	assert_int_equal(new_tis(p), BB_PRM_STAT_LIM_ERR);
	assert_int_equal(run_on(&p->g, BB_PRM_OP_DESTROY_TIS, 0, number), BB_PRM_STAT_OK);
	assert_int_equal(new_tis(p), BB_PRM_STAT_OK);
	assert_int_not_equal(bb_prm_get(p->g.out, BB_PRM_F(8, 8, 24)), number);
	/* The rings of all queues have ETH_MAX_PAGES pages; two queues exist already. */
	for (n = 1; new_big_rq(p) == BB_PRM_STAT_OK && n <= 64; n++)
		number = bb_prm_get(p->g.out, BB_PRM_F(8, 8, 24));
	assert_int_equal(n, ETH_MAX_PAGES / 4096);
	assert_int_equal(new_big_rq(p), BB_PRM_STAT_LIM_ERR);
	assert_int_equal(run_on(&p->g, BB_PRM_OP_DESTROY_RQ, 0, number), BB_PRM_STAT_OK);
	assert_int_equal(new_big_rq(p), BB_PRM_STAT_OK);
	for (n = 1; n < 256; n++) /* one table exists */
		make_table(p, 0);
	bb_prm_set(box(&p->g, BB_PRM_OP_CREATE_FLOW_TABLE, 0, BB_PRM_SZ_CREATE_FLOW_TABLE_IN) +
			   BB_PRM_CREATE_FT_CTX.byte,
		   BB_PRM_FTC_LOG_SIZE, 4);
	assert_status(&p->g, LIM_ERR);
}

static void
test_stopped_port_neither_sends_nor_receives(void **state)
{
	struct port *a = ports[0], *b = ports[1];
	uint8_t f[100];

	(void)state;
	tcp_frame(f, sizeof(f), 0);
	front_stop(b->g.f, true);
	post_frame(a, OP_SEND, f, sizeof(f), 0, 0, 0);
	assert_sent(a, 0);
	assert_true(no_cqe(b, &b->rcq));
	front_stop(b->g.f, false);
	front_stop(a->g.f, true);
	post_frame(a, OP_SEND, f, sizeof(f), 0, 0, 0);
	assert_int_equal(eth_poll(a->g.f->eth), -1);
	assert_true(no_cqe(a, &a->scq));
	assert_true(no_cqe(b, &b->rcq));
	front_stop(a->g.f, false);
	assert_sent(a, 0);
	assert_received(b, sizeof(f));
}

static void
test_reset_frees_the_objects(void **state)
{
	struct port *a = ports[0];
	uint8_t f[100];

	(void)state;
	front_reset(a->g.f);
	assert_int_equal(a->g.windows, 0);
	tcp_frame(f, sizeof(f), 1);
	post_frame(ports[1], OP_SEND, f, sizeof(f), 0, 0, 0);
	assert_sent(ports[1], 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, ports_open, ports_close)
		T(test_frame_reaches_the_other_port),
		T(test_short_frame_is_padded),
		T(test_checksums_are_computed),
		T(test_frame_without_a_receive_is_dropped),
		T(test_frame_longer_than_the_receive_is_dropped),
		T(test_tables_match_and_miss),
		T(test_objects_in_use_stay),
		T(test_what_is_not_done_is_refused),
		T(test_frame_has_a_limited_number_of_copies),
		T(test_objects_beyond_the_limits_are_refused),
		T(test_stopped_port_neither_sends_nor_receives),
		T(test_reset_frees_the_objects),
	};

	return cmocka_run_group_tests_name("front_eth", tests, NULL, NULL);
}
