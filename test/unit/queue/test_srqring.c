/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * WQEs of a shared receive queue: bytes, links, the free list against a plain model, wrap of the
 * counter, rejected posts. Also scattering of data from CQEs on all three kinds of queue.
 */
#include "bb_scatter.h"
#include "bb_sq_atomic.h"
#include "bb_srqring.h"
#include "queue_test.h"

#define FILL 0xee

struct fixture {
	struct bb_srqring srq;
	struct bb_srqring_conf conf;
	struct guarded ring;
	uint64_t wr_ids[4096];
	uint8_t held[4096];
	uint32_t dbrec[2];
};

static void
start(struct fixture *f, uint32_t wqes, uint32_t depth, uint32_t log_stride)
{
	memset(f, 0, sizeof(*f));
	f->conf.wqes = wqes;
	f->conf.depth = depth;
	f->conf.log_stride = log_stride;
	f->conf.max_sge = (1u << log_stride) / 16 - 1;
	f->conf.srqn = 0x123456;
	f->conf.owner = UINT32_MAX;
	f->ring = guarded_alloc((size_t)wqes << log_stride, false);
	memset(f->ring.p, FILL, (size_t)wqes << log_stride);
	f->dbrec[0] = 0x11111111;
	f->dbrec[1] = 0x22222222;
	f->conf.buf = f->ring.p;
	f->conf.wr_ids = f->wr_ids;
	f->conf.held = f->held;
	f->conf.dbrec = &f->dbrec[0];
	assert_int_equal(bb_srqring_init(&f->srq, &f->conf), 0);
}

#define T_START(wqes, depth, log_stride, name)                                                     \
	TEST_ON(NULL, NULL, struct fixture, start(f, wqes, depth, log_stride),                     \
		guarded_free(&f->ring), name)

T_START(4, 3, 6, test_srq_wqe_has_link_pieces_and_end_mark)
{
	const struct bb_sge sge[] = {{0x1122334455667788, 0x80000000, 0x01020304},
				     {0x99, 0, 0x5},
				     {0x10, 7, 0xa0b0c0d0}};
	struct bytes e = {.len = 0};

	/* The second WQE: links set at creation; the rest of the ring is zero. */
	assert_int_equal(bb_srqring_post(&f->srq, 1, sge, 0), 0);
	assert_int_equal(bb_srqring_post(&f->srq, 2, sge, 3), 0);
	put32(&e, 1);
	put64(&e, 0);
	put32(&e, 0);
	put64(&e, 0x100); /* end mark: byte count 0, key 0x100 */
	put64(&e, 0);
	put64(&e, 0);
	put64(&e, 0);
	put64(&e, 0);
	put64(&e, 0);
	put32(&e, 2);
	put64(&e, 0);
	put32(&e, 0);
	put32(&e, 0); /* 2^31 */
	put32(&e, 0x01020304);
	put64(&e, 0x1122334455667788);
	put32(&e, 7); /* the empty piece is left out */
	put32(&e, 0xa0b0c0d0);
	put64(&e, 0x10);
	put64(&e, 0x100);
	put64(&e, 0);
	put32(&e, 3);
	assert_memory_equal(f->ring.p, e.b, e.len);
	/* Nothing reaches the device before the doorbell, which is one store. */
	assert_int_equal(f->dbrec[0], 0);
	bb_srqring_ring(&f->srq);
	assert_fields(*f, dbrec[0], htobe32(2), dbrec[1], 0x22222222);
	f->dbrec[0] = 5;
	bb_srqring_ring(&f->srq);
	assert_int_equal(f->dbrec[0], 5);
}

/* A full list has no end mark: it would be in the next WQE. */
T_START(2, 1, 6, test_full_list_has_no_end_mark)
{
	struct bb_sge sge[3] = {{1, 1, 1}, {2, 2, 2}, {3, 3, 3}};

	assert_int_equal(bb_srqring_post(&f->srq, 1, sge, 3), 0);
	assert_memory_equal(f->ring.p + 48, "\0\0\0\3\0\0\0\3\0\0\0\0\0\0\0\3", 16);
	assert_memory_equal(f->ring.p + 64, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
}

/*
 * Random posts and completions against a model of the application and of a device that follows
 * the links from WQE 0. More than 65,536 posts, so that counters wrap.
 */
T_START(64, 63, 5, test_random_use_equals_a_model_of_the_device)
{
	uint32_t head = 0, taken = 0, posted = 0, n_held = 0, i;
	uint16_t held[64];
	uint64_t ids[64], rng = 88172645463325252ull, next_id = 1, expect_id = 1, wr_id;

	for (i = 0; i < 400000; i++) {
		uint32_t what = rnd_below(&rng, 3);

		if (what == 0) {
			struct bb_sge sge = {next_id, 1, 1};
			bool room = posted - taken + n_held < 63;

			assert_int_equal(bb_srqring_post(&f->srq, next_id, &sge, 1),
					 room ? 0 : -EAGAIN);
			posted += room;
			next_id += room;
			bb_srqring_ring(&f->srq);
		} else if (what == 1 && taken != (uint32_t)posted) {
			/* The device finds the oldest post at the head. */
			uint8_t *wqe = f->ring.p + (size_t)head * 32;
			uint64_t addr;

			assert_int_equal(be32toh(f->dbrec[0]), posted & 0xffff);
			memcpy(&addr, wqe + 24, 8);
			assert_int_equal(be64toh(addr), expect_id);
			ids[n_held] = expect_id++;
			held[n_held++] = (uint16_t)head;
			head = (uint32_t)(wqe[2] << 8 | wqe[3]);
			assert_true(head < 64);
			taken++;
		} else if (n_held != 0) {
			uint32_t k = rnd_below(&rng, n_held);

			assert_true(bb_srqring_complete(&f->srq, held[k], &wr_id));
			assert_int_equal(wr_id, ids[k]);
			/* A second completion of the WQE is rejected. */
			assert_false(bb_srqring_complete(&f->srq, held[k], &wr_id));
			held[k] = held[--n_held];
			ids[k] = ids[n_held];
		}
	}
	assert_true(posted > 100000);
	assert_int_equal(f->srq.pi - f->srq.ci, posted - taken + n_held);
}

T_START(4, 3, 5, test_refused_post_logs_once_and_changes_nothing)
{
	struct bb_sge sge[4] = {{1, 0x80000001, 1}};
	uint64_t wr_id = 77;

	/* A WQE that is not outstanding or outside the ring changes nothing. */
	assert_false(bb_srqring_complete(&f->srq, 0, &wr_id));
	assert_false(bb_srqring_complete(&f->srq, 4, &wr_id));
	assert_false(bb_srqring_complete(&f->srq, 0xffff, &wr_id));
	assert_int_equal(wr_id, 77);
	assert_int_equal(f->srq.tail, 3);
	log_begin();
	assert_int_equal(bb_srqring_post(&f->srq, 1, sge, 1), -EINVAL);
	assert_int_equal(bb_srqring_post(&f->srq, 1, sge, 2), -EINVAL);
	assert_int_equal(bb_srqring_post(&f->srq, 1, sge, 2), -EINVAL);
	/* One line per reason, with the SRQ's number. */
	assert_int_equal(log_count("SRQ 0x123456: more SGEs"), 2);
	assert_fields(f->srq, pi, 0, head, 0);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(bb_srqring_post(&f->srq, i, sge, 0), 0);
	assert_int_equal(bb_srqring_post(&f->srq, 3, sge, 0), -EAGAIN);
	assert_int_equal(f->srq.full, 1);
	assert_true(bb_srqring_complete(&f->srq, 1, &wr_id));
	assert_int_equal(bb_srqring_post(&f->srq, 3, sge, 0), 0);
}

T_START(8, 7, 6, test_init_refuses_bad_configurations)
{
	struct bb_srqring srq;
	struct bb_srqring_conf bad[12];

	for (unsigned int i = 0; i < 12; i++)
		bad[i] = f->conf;
	bad[0].wqes = 7;
	bad[1].wqes = 1;
	bad[2].wqes = 65536;
	bad[3].depth = 0;
	bad[4].depth = 8;
	bad[5].log_stride = 4;
	bad[6].log_stride = 10;
	bad[7].max_sge = 4;
	bad[8].buf = f->ring.p + 32;
	bad[9].held = NULL;
	bad[10].dbrec = NULL;
	bad[11].wr_ids = NULL;
	for (unsigned int i = 0; i < 12; i++) {
		log_begin();
		assert_int_equal(bb_srqring_init(&srq, &bad[i]), -EINVAL);
		assert_int_equal(log_count("SRQ 0x123456"), 1);
	}
}

/* ---- Data from CQEs, by lists of the last WQE in the ring, so that an overrun faults. */

static uint8_t data[32] = "0123456789abcdefghijklmnopqrstuv";

static void
expect_at(const uint8_t *p, uint32_t from, uint32_t n)
{
	assert_memory_equal(p, data + from, n);
	assert_int_equal(p[n], 0);
}

T_START(2, 1, 6, test_cqe_data_scatter_to_srq_pieces)
{
	uint8_t to[3][40] = {{0}};
	struct bb_sge sge[3];

	f->srq.head = 1;
	for (uint32_t i = 0; i < 3; i++)
		sge[i] = (struct bb_sge){(uintptr_t)to[i], 4 + i, 1};
	assert_int_equal(bb_srqring_post(&f->srq, 1, sge, 3), 0);
	assert_int_equal(bb_srqring_scatter(&f->srq, 1, data, 15), 0);
	expect_at(to[0], 0, 4);
	expect_at(to[1], 4, 5);
	expect_at(to[2], 9, 6);
	/* Returns the number of bytes that did not fit; they are not written. */
	assert_int_equal(bb_srqring_scatter(&f->srq, 1, data, 32), 17);
	expect_at(to[2], 9, 6);
	assert_int_equal(bb_srqring_scatter(&f->srq, 1, data, 0), 0);
}

TEST(test_cqe_data_scatter_to_receive_pieces)
{
	uint8_t to[2][40] = {{0}};
	struct guarded ring = guarded_alloc(64, false);
	struct bb_rq_conf conf = {.buf = ring.p,
				  .wqes = 2,
				  .depth = 2,
				  .log_stride = 5,
				  .max_sge = 2,
				  .owner = UINT32_MAX};
	uint64_t wr_ids[2];
	uint32_t dbrec;
	struct bb_sge sge[2] = {{(uintptr_t)to[0], 3, 1}, {(uintptr_t)to[1], 0x80000000, 1}};
	struct bb_rq rq;

	conf.wr_ids = wr_ids;
	conf.dbrec = &dbrec;
	assert_int_equal(bb_rq_init(&rq, &conf), 0);
	bb_rq_enable(&rq);
	/* One piece and the end mark; then two pieces, one of 2^31 bytes. */
	assert_int_equal(bb_rq_post(&rq, 1, sge, 1), 0);
	assert_int_equal(bb_rq_post(&rq, 2, sge, 2), 0);
	assert_int_equal(bb_rq_scatter(&rq, 0, data, 10), 7);
	expect_at(to[0], 0, 3);
	assert_int_equal(to[1][0], 0);
	/* The counter exceeds the ring size; the slot is the counter modulo the size. */
	assert_int_equal(bb_rq_scatter(&rq, 0xffff, data, 32), 0);
	expect_at(to[1], 3, 29);
	guarded_free(&ring);
}

/* A READ's list crosses the ring's end; an atomic's piece is its last segment. */
TEST(test_cqe_data_scatter_to_read_and_atomic_pieces)
{
	static uint8_t to[6][40];
	struct guarded ring = guarded_alloc(256, false);
	struct bb_sq_wqe wqes[4];
	uint64_t reg[8];
	uint32_t dbrec;
	struct bb_sq_conf conf = {.buf = ring.p,
				  .wqes = wqes,
				  .blocks = 4,
				  .depth = 2,
				  .max_sge = 6,
				  .sig_every = 1,
				  .dbrec = &dbrec,
				  .reg = reg,
				  .owner = UINT32_MAX};
	struct bb_sge sge[6];
	struct bb_sq sq;

	memset(to, 0, sizeof(to));
	assert_int_equal(bb_sq_init(&sq, &conf), 0);
	bb_sq_enable(&sq, true);
	sq.pi = 3;
	for (uint32_t i = 0; i < 6; i++)
		sge[i] = (struct bb_sge){(uintptr_t)to[i], 1 + i, 1};
	assert_int_equal(bb_sq_post_sgl(&sq, BB_WQE_RDMA_READ, true, 1, sge, 6, 0, 0, 0, 0), 0);
	assert_int_equal(bb_sq_scatter(&sq, 3, data, 21), 0);
	expect_at(to[0], 0, 1);
	expect_at(to[1], 1, 2);
	expect_at(to[2], 3, 3);
	expect_at(to[5], 15, 6);
	assert_int_equal(bb_sq_scatter(&sq, 3, data, 32), 11);
	bb_sq_complete(&sq, 3);
	sge[0].len = 8;
	assert_int_equal(bb_sq_post_atomic(&sq, BB_WQE_ATOMIC_CS, 2, sge, 64, 0, 1, 2, 0), 0);
	assert_int_equal(bb_sq_scatter(&sq, 5, data + 8, 8), 0);
	expect_at(to[0], 8, 8);
	guarded_free(&ring);
}

TEST_MAIN(0)
