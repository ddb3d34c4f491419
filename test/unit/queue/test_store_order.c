/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Order of stores: WQE, fence, doorbell record, fence, register, flush; owner bit, fence, CQE,
 * fence, consumer record. The record may cover only WQEs whose bytes are all in the ring.
 */
#include "order_record.h"

#include "bb_bf_copy.h"
#include "bb_cqring.h"
#include "bb_rq.h"
#include "sq_fixture.h"

struct order_log order;

static void
record(const void *ring, size_t size)
{
	memset(&order, 0, sizeof(order));
	assert_true(size <= sizeof(order.seen[0]));
	order.ring = ring;
	order.ring_size = size;
}

static void
expect_events(const enum order_event *want, unsigned int n)
{
	assert_int_equal(order.n, n);
	for (unsigned int i = 0; i < n; i++) {
		if (order.event[i] != want[i])
			fail_msg("event %u is %d, not %d", i, order.event[i], want[i]);
	}
}

/* Asserts that nothing is written to the ring from the first fence on. */
static void
expect_ring_final(const void *ring)
{
	for (unsigned int i = 0; i < order.n; i++)
		assert_memory_equal(order.seen[i], ring, order.ring_size);
}

T_SQ(8, test_doorbell_stores_record_then_register)
{
	static const enum order_event want[] = {ORDER_DMA_WMB, ORDER_DBREC, ORDER_DB_WMB, ORDER_UAR,
						ORDER_WC_FLUSH};
	const struct bb_sge sge = {0x1000, 8, 5};

	record(f->ring.p, f->size);
	bb_sq_post_sgl(&f->sq, BB_WQE_RDMA_WRITE, true, 1, &sge, 1, 2, 3, 0, 0);
	bb_sq_post_inline(&f->sq, BB_WQE_SEND, false, 2, &sge, 8, 0, 0, 0, 0);
	bb_sq_post_atomic(&f->sq, BB_WQE_ATOMIC_CS, 3, &sge, 8, 0, 1, 2, 0);
	assert_int_equal(order.n, 0); /* building a WQE needs no fence and no doorbell */
	bb_sq_ring(&f->sq);
	expect_events(want, 5);
	assert_ptr_equal(order.where[1], &f->dbrec[1]);
	assert_int_equal(order.value[1], bb_be32(3));
	assert_ptr_equal(order.where[3], f->reg);
	assert_memory_equal(&order.value[3], f->ring.p + 2 * 64, 8);
	expect_ring_final(f->ring.p);
}

static void
ring_copy(struct bb_sq *sq)
{
	bb_bf_doorbell(sq, bb_bf_block_plain);
}

/* Stores a block at once, like the widest stores of bb_uar_wide.h. */
static void
whole_block(volatile uint64_t *reg, const uint8_t *block)
{
	uint64_t v;

	memcpy(&v, block, sizeof(v));
	order_add(ORDER_UAR, reg, v);
}

static void
ring_wide(struct bb_sq *sq)
{
	bb_bf_doorbell(sq, whole_block);
}

T_SQ_CONF(8, test_blueflame_stores_record_then_wqe)
{
	uint8_t data[60] = {1, 2, 3};

	f->conf.max_inline = 60;
	f->conf.db_mode = BB_DB_BLUEFLAME;
	sq_fixture_start(f);
	f->sq.ring = ring_copy; /* the recording function of this file */
	sq_fixture_seek(f, 7);  /* two blocks across the ring's end */
	record(f->ring.p, f->size);
	bb_sq_post_inline(&f->sq, BB_WQE_RDMA_WRITE, true, 1, data, 60, 2, 3, 0, 0);
	bb_sq_ring(&f->sq);
	assert_fields(order, n, 3 + 16 + 1, event[0], ORDER_DMA_WMB, event[1], ORDER_DBREC);
	assert_fields(order, value[1], bb_be32(9), event[2], ORDER_DB_WMB);
	for (unsigned int i = 0; i < 16; i++) {
		/*
		 * Ascending, in one burst: a write-combining buffer must not be evicted tail
		 * first.
		 */
		assert_int_equal(order.event[3 + i], ORDER_UAR);
		assert_ptr_equal(order.where[3 + i], (uint8_t *)f->reg + 8 * i);
		assert_memory_equal(&order.value[3 + i], f->ring.p + (7 * 64 + 8 * i) % f->size, 8);
	}
	assert_int_equal(order.event[19], ORDER_WC_FLUSH);
	expect_ring_final(f->ring.p);
}

/* Wide stores need the fences of narrow ones. A WQE that is not copied is rung with 8 bytes. */
T_SQ_CONF(8, test_blueflame_of_wide_stores)
{
	static const enum order_event want[] = {ORDER_DMA_WMB, ORDER_DBREC, ORDER_DB_WMB,
						ORDER_UAR,     ORDER_UAR,   ORDER_WC_FLUSH};
	static const enum order_event want_head[] = {ORDER_DMA_WMB, ORDER_DBREC, ORDER_DB_WMB,
						     ORDER_UAR, ORDER_WC_FLUSH};
	uint8_t data[60] = {1, 2, 3};

	f->conf.max_inline = 60;
	f->conf.db_mode = BB_DB_BLUEFLAME;
	sq_fixture_start(f);
	f->sq.ring = ring_wide;
	sq_fixture_seek(f, 7);
	record(f->ring.p, f->size);
	bb_sq_post_inline(&f->sq, BB_WQE_RDMA_WRITE, true, 1, data, 60, 2, 3, 0, 0);
	bb_sq_ring(&f->sq);
	expect_events(want, 6);
	assert_ptr_equal(order.where[3], f->reg);
	assert_memory_equal(&order.value[3], f->ring.p + 7 * 64, 8);
	assert_ptr_equal(order.where[4], f->reg + 8);
	assert_memory_equal(&order.value[4], f->ring.p, 8);
	expect_ring_final(f->ring.p);
	record(f->ring.p, f->size);
	bb_sq_post_nop(&f->sq, 2, 0);
	bb_sq_ring(&f->sq);
	expect_events(want_head, 5);
}

TEST(test_receive_ring_fences_before_the_record)
{
	static const enum order_event want[] = {ORDER_DMA_WMB, ORDER_DBREC};
	static uint8_t ring[64] __attribute__((aligned(64)));
	uint64_t wr_ids[2];
	uint32_t dbrec = 0;
	const struct bb_rq_conf conf = {
		.buf = ring,
		.wr_ids = wr_ids,
		.wqes = 2,
		.depth = 2,
		.log_stride = 5,
		.max_sge = 2,
		.dbrec = &dbrec,
		.owner = UINT32_MAX,
	};
	const struct bb_sge sge[2] = {{1, 2, 3}, {4, 5, 6}};
	struct bb_rq rq;

	assert_int_equal(bb_rq_init(&rq, &conf), 0);
	bb_rq_enable(&rq);
	record(ring, sizeof(ring));
	assert_int_equal(bb_rq_post(&rq, 1, sge, 2), 0);
	assert_int_equal(bb_rq_post(&rq, 1, sge, 1), 0);
	assert_int_equal(order.n, 0);
	bb_rq_ring(&rq);
	expect_events(want, 2);
	assert_ptr_equal(order.where[1], &dbrec);
	assert_int_equal(order.value[1], bb_be32(2));
	expect_ring_final(ring);
}

TEST(test_poll_fences_after_the_owner_bit)
{
	static const enum order_event want[] = {ORDER_OWN_LOAD, ORDER_DMA_RMB, ORDER_OWN_LOAD,
						ORDER_DMA_RMB, ORDER_DBREC};
	static uint8_t ring[256] __attribute__((aligned(64)));
	uint32_t rec[2] __attribute__((aligned(8)));
	struct bb_cqring cq;

	assert_int_equal(bb_cqring_init(&cq, ring, 2, rec), 0);
	ring[63] = 0;
	record(NULL, 0);
	assert_non_null(bb_cqring_peek(&cq));
	assert_ptr_equal(order.where[0], &ring[63]);
	cq.ci++;
	assert_null(bb_cqring_peek(&cq)); /* polling an empty CQ needs no fence */
	bb_cqring_update(&cq);
	expect_events(want, 5);
	assert_ptr_equal(order.where[4], rec);
	assert_int_equal(order.value[4], bb_be32(1));
}

TEST_MAIN(0)
