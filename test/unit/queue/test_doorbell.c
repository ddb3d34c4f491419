/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Doorbells of the send queue: record, register bytes, BlueFlame, register halves.
 *
 * usage: unit_doorbell [KIND]: uses copies of this kind, named as by bb_bf_copy_name(); default:
 * plain. All kinds store the same bytes. Exit status 77: the CPU or the build lacks the kind.
 */
#include <stdio.h>
#include <string.h>

#include "bb_bf_copy.h"
#include "bb_rung.h"
#include "sq_fixture.h"

static enum bb_bf_copy kind;

static void
expect_fill(const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		assert_int_equal(p[i], SQ_FILL);
}

/*
 * Asserts: one half of the register holds @len bytes of the ring from block @idx, the other
 * nothing.
 */
static void
expect_reg(struct sq_fixture *f, uint32_t half, uint16_t idx, size_t len)
{
	const uint8_t *reg = (const uint8_t *)f->reg;
	size_t start = (size_t)idx % f->conf.blocks * 64, at = half * SQ_BF_HALF, i;

	expect_fill(reg, at);
	for (i = 0; i < len; i++)
		assert_int_equal(reg[at + i], f->ring.p[(start + i) % f->size]);
	expect_fill(reg + at + len, SQ_REG_SIZE - at - len);
	memset(f->reg, SQ_FILL, SQ_REG_SIZE);
}

/* Posts a SEND of @ds segments. */
static void
post_ds(struct sq_fixture *f, uint32_t ds)
{
	struct bb_sge sge[32];

	for (uint32_t i = 0; i < 32; i++)
		sge[i] = (struct bb_sge){0x1000 * i, 10 + i, 0x20 + i};
	assert_int_equal(bb_sq_post_sgl(&f->sq, 0x0a, false, 0, sge, ds - 1, 0, 0, 0, 0), 0);
}

static void
start(struct sq_fixture *f, uint32_t blocks, enum bb_db_mode mode, uint32_t bf_size)
{
	sq_fixture_conf(f, blocks);
	f->conf.max_sge = 20;
	f->conf.db_mode = mode;
	f->conf.bf_size = bf_size;
	f->conf.bf_copy = kind;
	sq_fixture_start(f);
}

#define T_START(blocks, mode, bf_size, name)                                                       \
	TEST_ON(NULL, NULL, struct sq_fixture, start(f, blocks, mode, bf_size), sq_fixture_end(f), \
		name)

T_START(32, BB_DB_DOORBELL, SQ_BF_HALF, test_doorbell_writes_record_and_first_bytes)
{
	uint16_t at;

	post_ds(f, 3);
	assert_int_equal(f->dbrec[1], 0); /* nothing reaches the device before the doorbell */
	expect_fill((uint8_t *)f->reg, SQ_REG_SIZE);
	bb_sq_ring(&f->sq);
	assert_int_equal(bb_be32(f->dbrec[1]), 1);
	expect_reg(f, 0, 0, 8);

	/* A batch: the record covers all WQEs, the register gets the head of the last one. */
	post_ds(f, 2);
	post_ds(f, 9);
	at = f->sq.pi;
	post_ds(f, 5);
	bb_sq_ring(&f->sq);
	assert_int_equal(bb_be32(f->dbrec[1]), 7);
	expect_reg(f, 0, at, 8);

	/* A doorbell without new WQEs stores nothing. */
	f->dbrec[1] = 0x55;
	bb_sq_ring(&f->sq);
	assert_int_equal(f->dbrec[1], 0x55);
	expect_fill((uint8_t *)f->reg, SQ_REG_SIZE);
	assert_fields(*f, sq.doorbells, 2, dbrec[0], 0x11111111);
}

/* A single WQE of 2 to 16 segments is copied whole, in blocks; others as 8 bytes. */
T_START(64, BB_DB_BLUEFLAME, SQ_BF_HALF, test_blueflame_copies_a_single_wqe_whole)
{
	uint32_t ds, half = 0;

	for (ds = 1; ds <= 21; ds++) {
		uint16_t at = f->sq.pi;

		post_ds(f, ds);
		bb_sq_ring(&f->sq);
		expect_reg(f, half, at, ds == 1 || ds > 16 ? 8 : (ds + 3) / 4 * 64);
		half ^= 1;
		bb_sq_complete(&f->sq, at);
	}
}

T_START(64, BB_DB_BLUEFLAME, SQ_BF_HALF, test_blueflame_rings_a_batch_by_8_bytes)
{
	post_ds(f, 3);
	post_ds(f, 4);
	bb_sq_ring(&f->sq);
	expect_reg(f, 0, 1, 8);
	post_ds(f, 4);
	bb_sq_ring(&f->sq);
	expect_reg(f, 1, 2, 64);
}

/* A copy of several blocks from every block of the ring, across its end. */
TEST(test_blueflame_copies_across_the_ring_end)
{
	for (uint32_t at = 0; at < 8; at++) {
		for (uint32_t ds = 2; ds <= 16; ds++) {
			struct sq_fixture f;

			start(&f, 8, BB_DB_BLUEFLAME, SQ_BF_HALF);
			sq_fixture_seek(&f, (uint16_t)at);
			post_ds(&f, ds);
			bb_sq_ring(&f.sq);
			expect_reg(&f, 0, (uint16_t)at, (ds + 3) / 4 * 64);
			assert_int_equal(bb_be32(f.dbrec[1]), at + (ds + 3) / 4);
			sq_fixture_end(&f);
		}
	}
}

/* A register without BlueFlame, and a small one. */
T_OWN_SQ(test_small_register_is_rung_by_8_bytes)
{
	start(f, 16, BB_DB_BLUEFLAME, 0);
	post_ds(f, 3);
	bb_sq_ring(&f->sq);
	expect_reg(f, 0, 0, 8);
	post_ds(f, 3);
	bb_sq_ring(&f->sq);
	expect_reg(f, 0, 1, 8); /* the register has one half only */
	sq_fixture_end(f);

	start(f, 16, BB_DB_BLUEFLAME, 64);
	post_ds(f, 4);
	bb_sq_ring(&f->sq);
	assert_memory_equal(f->reg, f->ring.p, 64);
	expect_fill((uint8_t *)f->reg + 64, SQ_REG_SIZE - 64);
	post_ds(f, 5);
	bb_sq_ring(&f->sq);
	assert_memory_equal((uint8_t *)f->reg + 64, f->ring.p + 64, 8);
	expect_fill((uint8_t *)f->reg + 72, SQ_REG_SIZE - 72);
	sq_fixture_end(f);
}

/* The halves alternate per register, whichever queue rings it, with or without a copy. */
TEST(test_halves_alternate_per_register)
{
	struct sq_fixture a, b, c;
	uint16_t half = 0, at;

	sq_fixture_conf(&a, 8);
	sq_fixture_conf(&b, 8);
	sq_fixture_conf(&c, 8);
	a.conf.bf_offset = &half;
	b.conf.bf_offset = &half;
	a.conf.bf_copy = kind;
	b.conf.bf_copy = kind;
	c.conf.bf_offset = &half;
	a.conf.db_mode = BB_DB_BLUEFLAME;
	b.conf.db_mode = BB_DB_BLUEFLAME;
	sq_fixture_start(&a);
	sq_fixture_start(&b);
	sq_fixture_start(&c);
	b.sq.reg = a.sq.reg;
	c.sq.reg = a.sq.reg;
	bb_sq_post_nop(&a.sq, 0, 0);
	bb_sq_ring(&a.sq);
	assert_int_equal(half, SQ_BF_HALF);
	expect_reg(&a, 0, 0, 8);
	bb_sq_post_nop(&b.sq, 0, 0);
	bb_sq_ring(&b.sq);
	assert_int_equal(half, 0);
	expect_reg(&a, 1, 0, 8); /* the same 8 bytes: the QPN and index are equal */
	bb_sq_post_nop(&b.sq, 0, 0);
	bb_sq_ring(&b.sq);
	assert_memory_equal(a.reg, b.ring.p + 64, 8);
	assert_int_equal(half, SQ_BF_HALF);
	/*
	 * A queue that never copies alternates, too, so its plain store never overwrites another
	 * queue's copy.
	 */
	for (uint32_t i = 0; i < 6; i++) {
		memset(a.reg, SQ_FILL, SQ_REG_SIZE);
		at = half;
		post_ds(&c, 3);
		bb_sq_ring(&c.sq);
		assert_int_equal(half, at ^ SQ_BF_HALF);
		assert_memory_equal((uint8_t *)a.reg + at, c.ring.p + 64 * i, 8);
		expect_fill((uint8_t *)a.reg + half, SQ_BF_HALF);
		expect_fill((uint8_t *)a.reg + at + 8, SQ_BF_HALF - 8);
		if (i == 2) {
			post_ds(&a, 3);
			bb_sq_ring(&a.sq);
			assert_int_equal(half, at);
		}
	}
	sq_fixture_end(&a);
	sq_fixture_end(&b);
	sq_fixture_end(&c);
}

/* A kind that the build lacks, or a register that the stores do not fit, is rejected. */
T_START(8, BB_DB_BLUEFLAME, SQ_BF_HALF, test_impossible_doorbell_is_refused)
{
	enum bb_bf_copy i;

	for (i = 0; i <= BB_BF_COPY_KINDS; i++) {
		f->conf.bf_copy = i;
		assert_int_equal(bb_sq_init(&f->sq, &f->conf), bb_bf_copy_has(i) ? 0 : -EINVAL);
		assert_true(bb_bf_copy_has(i) || f->sq.ring != NULL); /* left unchanged */
	}
	f->conf.bf_copy = kind;
	f->conf.reg = f->reg + 1;
	assert_int_equal(bb_sq_init(&f->sq, &f->conf), -EINVAL);
	f->conf.db_mode = BB_DB_DOORBELL;
	assert_int_equal(bb_sq_init(&f->sq, &f->conf), 0);
}

/* A queue's doorbell function is that of its own kind. */
T_START(8, BB_DB_BLUEFLAME, SQ_BF_HALF, test_kind_is_the_queues_own)
{
	enum bb_bf_copy i;

	assert_ptr_equal(f->sq.ring, bb_bf_ring(kind));
	for (i = 0; i < BB_BF_COPY_KINDS; i++)
		assert_true(i == kind || bb_bf_ring(i) != bb_bf_ring(kind));
}

/* With a list, the doorbell adds the queue to it; record and register are as without. */
T_START(64, BB_DB_DOORBELL, SQ_BF_HALF, test_doorbell_adds_the_queue_to_its_list)
{
	static struct bb_rung list = {.n = UINT32_MAX - 2};
	uint32_t i, k;

	assert_null(f->sq.ring);
	f->conf.rung = &list;
	for (k = 0; k < 2; k++) {
		f->conf.db_mode = k == 0 ? BB_DB_DOORBELL : BB_DB_BLUEFLAME;
		assert_int_equal(bb_sq_init(&f->sq, &f->conf), 0);
		bb_sq_enable(&f->sq, true);
		for (i = 0; i < 4; i++) {
			post_ds(f, 3);
			bb_sq_ring(&f->sq);
			assert_int_equal(list.n, UINT32_MAX - 1 + 4 * k + i);
			assert_int_equal(list.qpn[(list.n - 1) % BB_RUNG_SIZE],
					 bb_be32(SQ_QPN << 8));
			assert_int_equal(bb_be32(f->dbrec[1]), i + 1);
			expect_reg(f, k & i, (uint16_t)i, k == 0 ? 8 : 64);
		}
	}
}

int
main(int argc, char **argv)
{
	while (argc == 2 && kind < BB_BF_COPY_KINDS && strcmp(argv[1], bb_bf_copy_name(kind)) != 0)
		kind++;
	if (!bb_bf_copy_has(kind)) {
		printf("SKIP: no BlueFlame copies by %s on this CPU or in this build\n", argv[1]);
		return kind < BB_BF_COPY_KINDS ? 77 : 2;
	}

	return bb_test_run(__FILE__, NULL, NULL);
}
