/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Receive WQEs: bytes, terminator, wrap of ring and counter, depth, rejected posts. */
#include "bb_rq.h"
#include "queue_test.h"

#define FILL 0xee

struct fixture {
	struct bb_rq rq;
	struct bb_rq_conf conf;
	struct guarded ring;
	uint64_t wr_ids[256];
	uint32_t dbrec[2];
	size_t size;
};

static void
conf(struct fixture *f, uint32_t wqes, uint32_t log_stride, uint32_t max_sge)
{
	memset(f, 0, sizeof(*f));
	f->conf.wqes = wqes;
	f->conf.depth = wqes;
	f->conf.log_stride = log_stride;
	f->conf.max_sge = max_sge;
	f->conf.qpn = 0x123456;
	f->conf.owner = UINT32_MAX;
}

static void
start(struct fixture *f)
{
	f->size = (size_t)f->conf.wqes << f->conf.log_stride;
	/* A ring starts on 64 bytes, so a small one leaves room before the guard page. */
	f->ring = guarded_alloc((f->size + 63) & ~(size_t)63, false);
	memset(f->ring.p, FILL, f->size);
	f->dbrec[0] = 0x11111111;
	f->dbrec[1] = 0x22222222;
	f->conf.buf = f->ring.p;
	f->conf.wr_ids = f->wr_ids;
	f->conf.dbrec = &f->dbrec[0];
	assert_int_equal(bb_rq_init(&f->rq, &f->conf), 0);
	bb_rq_enable(&f->rq);
}

#define T_CONF(wqes, log_stride, max_sge, name)                                                    \
	TEST_ON(NULL, NULL, struct fixture, conf(f, wqes, log_stride, max_sge),                    \
		guarded_free(&f->ring), name)

/* Asserts that a WQE's stride holds the pieces, the end mark if there is room, then old bytes. */
static void
expect_wqe(const struct fixture *f, uint32_t idx, const struct bb_sge *sge, uint32_t n)
{
	size_t stride = (size_t)1 << f->conf.log_stride;
	struct bytes e = {.len = 0};

	for (uint32_t i = 0; i < n; i++) {
		if (sge[i].len == 0)
			continue;
		put32(&e, sge[i].len == 0x80000000u ? 0 : sge[i].len);
		put32(&e, sge[i].lkey);
		put64(&e, sge[i].addr);
	}
	if (e.len < stride) {
		put32(&e, 0);
		put32(&e, 0x100);
		put64(&e, 0);
	}
	while (e.len < stride)
		put8(&e, FILL);
	assert_memory_equal(f->ring.p + idx * stride, e.b, stride);
}

TEST(test_receive_wqe_has_pieces_and_end_mark)
{
	struct bb_sge sge[32];

	for (uint32_t i = 0; i < 32; i++)
		sge[i] = (struct bb_sge){0x1000ull * (i + 1), 100 + i, 0x700 + i};
	for (uint32_t log_stride = 4; log_stride <= 9; log_stride++) {
		uint32_t max = (1u << log_stride) / 16;

		for (uint32_t n = 0; n <= max; n++) {
			struct fixture f;

			conf(&f, 4, log_stride, max);
			start(&f);
			assert_int_equal(bb_rq_post(&f.rq, 77, sge, n), 0);
			expect_wqe(&f, 0, sge, n);
			assert_int_equal(f.wr_ids[0], 77);
			guarded_free(&f.ring);
		}
	}
}

T_CONF(4, 6, 4, test_empty_piece_is_left_out_and_2g_is_length_0)
{
	const struct bb_sge sge[4] = {{1, 0, 1}, {2, 0x80000000u, 2}, {3, 0, 3}, {4, 9, 4}};

	start(f);
	assert_int_equal(bb_rq_post(&f->rq, 1, sge, 4), 0);
	expect_wqe(f, 0, sge, 4);
	assert_int_equal(bb_rq_post(&f->rq, 2, sge, 1), 0); /* empty pieces only */
	expect_wqe(f, 1, sge, 1);
}

/* Laps of the 16-bit counter. Completions may name any WQE, in any order. */
T_CONF(64, 5, 2, test_receives_complete_in_any_order_over_laps)
{
	uint64_t seed = 3, posted = 0, completed = 0;

	f->conf.depth = 50;
	start(f);
	while (completed < 4 * 65536) {
		struct bb_sge sge[2];
		uint32_t n = rnd_below(&seed, 3);
		int rc;

		sge[0] = (struct bb_sge){rnd(&seed), 1 + rnd_below(&seed, 9), 5};
		sge[1] = (struct bb_sge){rnd(&seed), 1 + rnd_below(&seed, 9), 6};
		memset(f->ring.p + posted % 64 * 32, FILL, 32);
		rc = bb_rq_post(&f->rq, 1000 + posted, sge, n);
		if (posted - completed == 50) {
			assert_int_equal(rc, -EAGAIN);
		} else {
			assert_int_equal(rc, 0);
			expect_wqe(f, posted % 64, sge, n);
			posted++;
		}
		if (rnd_below(&seed, 4) == 0) {
			bb_rq_ring(&f->rq);
			assert_int_equal(bb_be32(f->dbrec[0]), posted & 0xffff);
		}
		while (completed < posted && (rc != 0 || rnd_below(&seed, 2) == 0)) {
			assert_int_equal(bb_rq_complete(&f->rq, (uint16_t)completed),
					 1000 + completed);
			completed++;
			rc = 0;
		}
	}
	assert_true(f->rq.full > 0);
	assert_int_equal(f->dbrec[1], 0x22222222); /* the record of the send queue stays
						    * unchanged */
}

T_CONF(4, 4, 1, test_ring_stores_the_record_only_for_new_wqes)
{
	const struct bb_sge sge = {1, 1, 1};

	start(f);
	assert_int_equal(f->dbrec[0], 0);
	bb_rq_post(&f->rq, 1, &sge, 1);
	bb_rq_post(&f->rq, 1, &sge, 1);
	assert_int_equal(f->dbrec[0], 0);
	bb_rq_ring(&f->rq);
	assert_int_equal(f->dbrec[0], bb_be32(2));
	f->dbrec[0] = 0x55;
	bb_rq_ring(&f->rq); /* no new WQE: no store */
	assert_int_equal(f->dbrec[0], 0x55);
	bb_rq_reset(&f->rq);
	assert_int_equal(f->dbrec[0], 0);
}

static uint32_t handed_from, handed_to, handings;

/* A driver's ring function: takes the WQEs from rung to pi. */
static void
take(struct bb_rq *rq)
{
	handings++;
	handed_from = rq->rung;
	handed_to = rq->pi;
	rq->rung = rq->pi;
}

/*
 * By the record, then by a driver's ring function: WQEs rung before the queue is enabled are
 * passed on when it is.
 */
TEST(test_receives_rung_before_enable_are_handed_over_by_it)
{
	const struct bb_sge sge = {0x1000, 64, 7};
	struct fixture f;

	for (int by_ring = 0; by_ring < 2; by_ring++) {
		conf(&f, 4, 4, 1);
		start(&f);
		if (by_ring) {
			f.conf.dbrec = NULL;
			f.conf.ring = take;
		}
		assert_int_equal(bb_rq_init(&f.rq, &f.conf), 0);
		handings = 0;
		f.dbrec[0] = 0;
		assert_int_equal(bb_rq_post(&f.rq, 1, &sge, 1), 0);
		assert_int_equal(bb_rq_post(&f.rq, 2, &sge, 1), 0);
		bb_rq_ring(&f.rq);
		assert_int_equal(bb_rq_post(&f.rq, 3, &sge, 1), 0);
		assert_int_equal(f.dbrec[0], 0);
		assert_int_equal(handings, 0);
		/* The third WQE was not rung. */
		bb_rq_enable(&f.rq);
		assert_fields(f.rq, pi, 3, rung, 2);
		if (by_ring) {
			assert_int_equal(handings, 1);
			assert_int_equal(handed_from, 0);
			assert_int_equal(handed_to, 2);
		} else {
			assert_int_equal(f.dbrec[0], bb_be32(2));
		}
		bb_rq_ring(&f.rq);
		bb_rq_enable(&f.rq);
		assert_int_equal(by_ring ? handed_to : bb_be32(f.dbrec[0]), 3);
		assert_int_equal(handings, by_ring ? 2 : 0);
		assert_int_equal(bb_rq_post(&f.rq, 4, &sge, 1), 0);
		assert_int_equal(bb_rq_post(&f.rq, 5, &sge, 1), -EAGAIN);
		/* A reset drops all receives, and new ones wait again. */
		bb_rq_reset(&f.rq);
		handings = 0;
		assert_int_equal(f.dbrec[0], 0);
		assert_int_equal(bb_rq_post(&f.rq, 6, &sge, 1), 0);
		bb_rq_ring(&f.rq);
		assert_int_equal(f.dbrec[0], 0);
		assert_int_equal(handings, 0);
		bb_rq_reset(&f.rq);
		bb_rq_enable(&f.rq);
		assert_int_equal(f.dbrec[0], 0);
		assert_int_equal(handings, 0);
		guarded_free(&f.ring);
	}
}

T_CONF(4, 5, 2, test_refused_post_logs_once_and_changes_nothing)
{
	const struct bb_sge many[3] = {{1, 1, 1}, {2, 2, 2}, {3, 3, 3}};
	const struct bb_sge big[2] = {{1, 1, 1}, {2, 0x80000001u, 2}};
	static const char *const text[] = {"max_sge", "2^31 bytes"};
	uint8_t before[4 * 32];

	start(f);
	memcpy(before, f->ring.p, sizeof(before));
	for (int i = 0; i < 2; i++) {
		log_begin();
		for (int round = 0; round < 3; round++) {
			struct bb_rq rq = f->rq;
			int rc;

			if (i == 0) {
				rc = bb_rq_post(&f->rq, 9, many, 3);
			} else {
				rc = bb_rq_post(&f->rq, 9, big, 2);
			}
			assert_int_equal(rc, -EINVAL);
			rq.refused = f->rq.refused;
			assert_memory_equal(&rq, &f->rq, sizeof(rq));
			assert_memory_equal(before, f->ring.p, sizeof(before));
			assert_int_equal(f->wr_ids[0], 0);
		}
		assert_int_equal(log_count(text[i]), 1);
	}
}

T_CONF(16, 5, 2, test_init_refuses_bad_configurations)
{
	struct bb_rq rq, before;
	struct bb_rq_conf c;

	start(f);
	memset(&rq, 0x5a, sizeof(rq));
	before = rq;
#define REFUSED(field_, value_)                                                                    \
	do {                                                                                       \
		c = f->conf;                                                                       \
		c.field_ = (value_);                                                               \
		log_begin();                                                                       \
		assert_int_equal(bb_rq_init(&rq, &c), -EINVAL);                                    \
		assert_int_equal(log_count("receive queue"), 1);                                   \
		assert_memory_equal(&rq, &before, sizeof(rq));                                     \
	} while (0)
	REFUSED(buf, NULL);
	REFUSED(buf, f->ring.p + 32);
	REFUSED(wr_ids, NULL);
	REFUSED(dbrec, NULL);
	REFUSED(dbrec, (uint32_t *)(void *)((uintptr_t)&f->dbrec[0] + 2));
	REFUSED(wqes, 0);
	REFUSED(wqes, 24);
	REFUSED(wqes, 65536);
	REFUSED(depth, 0);
	REFUSED(depth, 17);
	REFUSED(log_stride, 3);
	REFUSED(log_stride, 10);
	REFUSED(log_stride, 200);
	REFUSED(max_sge, 3);
	REFUSED(max_sge, UINT32_MAX);
#undef REFUSED
}

TEST_MAIN(0)
