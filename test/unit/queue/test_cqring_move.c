/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Completion ring: blocks of compressed CQEs, and the switch to another ring. */
#include "bb_cqring.h"
#include "queue_test.h"

struct fixture {
	struct bb_cqring cq;
	struct guarded ring;
	uint32_t dbrec[2] __attribute__((aligned(8)));
};

static void
start(struct fixture *f, uint32_t log_size, uint32_t ci)
{
	f->ring = guarded_alloc((size_t)64 << log_size, false);
	assert_int_equal(bb_cqring_init(&f->cq, f->ring.p, log_size, f->dbrec), 0);
	f->cq.compress = 1;
	f->cq.ci = ci;
}

#define T_START(log_size, ci, name)                                                                \
	TEST_ON(NULL, NULL, struct fixture, start(f, log_size, ci), guarded_free(&f->ring), name)

static struct bb_cqe *
at(const struct bb_cqring *cq, uint32_t i)
{
	return (struct bb_cqe *)(void *)cq->buf + (i & cq->mask);
}

static uint8_t
own(const struct bb_cqring *cq, uint32_t i)
{
	return (i & bb_cqring_size(cq)) != 0 ? 1 : 0;
}

/*
 * Writes a block as a device does: the title, and arrays at 1, 8, 16, ...; other slots stay
 * unchanged.
 */
static void
block(struct fixture *f, uint32_t pi, uint32_t n, uint16_t counter)
{
	struct bb_cqe *title = at(&f->cq, pi);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t array = i < 8 ? 1 : i / 8 * 8;
		uint8_t *mini = (uint8_t *)at(&f->cq, pi + array) + (size_t)(i % 8) * 8;
		uint32_t len = bb_be32(1000 + i * 3);

		memset(mini, 0xa5, 4);
		memcpy(mini + 4, &len, 4);
	}
	memset(title, 0, sizeof(*title));
	title->srqn_uidx = bb_be32(0x1234);
	title->byte_cnt = bb_be32(n);
	title->timestamp = bb_be64(77);
	title->wqe_counter = bb_be16(counter);
	title->op_own = (uint8_t)(BB_CQE_RESP_SEND << 4 | BB_CQE_COMPRESSED | own(&f->cq, pi));
}

static void
check_block(struct fixture *f, uint32_t n, uint16_t counter)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct bb_cqe *cqe = bb_cqring_peek(&f->cq);

		assert_non_null(cqe);
		assert_false(bb_cqe_is_compressed(cqe));
		assert_int_equal(cqe->op_own, BB_CQE_RESP_SEND << 4 | own(&f->cq, f->cq.ci));
		assert_int_equal(bb_be32(cqe->byte_cnt), 1000 + i * 3);
		assert_int_equal(bb_be16(cqe->wqe_counter), (uint16_t)(counter + i));
		assert_int_equal(bb_be32(cqe->srqn_uidx), 0x1234);
		assert_int_equal(bb_be64(cqe->timestamp), 77);
		f->cq.ci++;
	}
	assert_null(bb_cqring_peek(&f->cq));
}

/* Every block length, at every slot, in laps of both owners. */
TEST(test_every_compressed_block_expands_in_place)
{
	for (uint32_t n = 2; n <= 64; n++) {
		for (uint32_t place = 0; place < 64; place += n % 3 + 1) {
			struct fixture f;
			uint32_t ci = (n & 1) * 64 + 640 + place, i;

			start(&f, 6, ci);
			/*
			 * The ring has wrapped: the following slots hold CQEs of the previous
			 * lap.
			 */
			for (i = 0; i < 64; i++)
				at(&f.cq, ci + i)->op_own = (uint8_t)(!own(&f.cq, ci + i));
			block(&f, ci, n, (uint16_t)(65530 + place));
			assert_true(bb_cqe_is_compressed(bb_cqring_peek(&f.cq)));
			assert_int_equal(bb_cqring_expand(&f.cq, at(&f.cq, ci)), 0);
			check_block(&f, n, (uint16_t)(65530 + place));
			guarded_free(&f.ring);
		}
	}
}

/* An invalid count or title leaves the ring unchanged, except for the title's format. */
TEST(test_hostile_block_leaves_the_ring_unchanged)
{
	static const uint32_t counts[] = {0, 1, 17, 1u << 24, 0x80000000, UINT32_MAX};
	uint8_t before[16 * 64];
	struct fixture f;

	for (unsigned int i = 0; i < RTE_DIM(counts) + 16; i++) {
		struct bb_cqe *title;
		uint8_t opcode =
			(uint8_t)(i < RTE_DIM(counts) ? BB_CQE_RESP_SEND : i - RTE_DIM(counts));

		start(&f, 4, 16);
		memset(f.ring.p, 0x5a, 16 * 64);
		title = at(&f.cq, 3);
		title->byte_cnt = bb_be32(i < RTE_DIM(counts) ? counts[i] : 4);
		title->op_own = (uint8_t)(opcode << 4 | BB_CQE_COMPRESSED | 1);
		memcpy(before, f.ring.p, sizeof(before));
		if (i >= RTE_DIM(counts) && opcode >= BB_CQE_RESP_WR_IMM &&
		    opcode <= BB_CQE_RESP_SEND_INV) {
			assert_int_equal(bb_cqring_expand(&f.cq, title), 0);
		} else {
			assert_int_equal(bb_cqring_expand(&f.cq, title), -EINVAL);
			before[3 * 64 + 63] &= (uint8_t)~BB_CQE_COMPRESSED;
			assert_memory_equal(before, f.ring.p, sizeof(before));
		}
		guarded_free(&f.ring);
	}
}

T_START(5, 30, test_purge_expands_a_block_first)
{
	block(f, 30, 20, 5);
	assert_int_equal(bb_cqring_purge(&f->cq, 0x1234), 20);
	for (uint32_t i = 0; i < 20; i++, f->cq.ci++)
		assert_int_equal(bb_be32(bb_cqring_peek(&f->cq)->srqn_uidx), BB_CQE_NO_USER);
}

/* Unread CQEs, among them a block, move one slot on in the new ring. */
TEST(test_unread_cqes_move_to_the_new_ring)
{
	static const uint32_t sizes[] = {4, 5, 6, 9};

	for (uint32_t s = 0; s < RTE_DIM(sizes); s++) {
		for (uint32_t ci = 0; ci < 100; ci += 7) {
			for (uint32_t plain = 0; plain < 6; plain++) {
				struct guarded to = guarded_alloc((size_t)64 << sizes[s], false);
				uint32_t i, end = ci + plain + 9;
				struct fixture f;

				start(&f, 5, ci);
				for (i = ci; i < ci + plain; i++) {
					at(&f.cq, i)->wqe_counter = bb_be16((uint16_t)i);
					at(&f.cq, i)->op_own = own(&f.cq, i);
				}
				block(&f, ci + plain, 9, 300);
				bb_cqring_clear(to.p, sizes[s]);
				/* -EAGAIN until the device has finished the old ring. */
				assert_int_equal(bb_cqring_move(&f.cq, to.p, sizes[s]), -EAGAIN);
				assert_ptr_equal(f.cq.buf, f.ring.p);
				at(&f.cq, end)->op_own =
					(uint8_t)(BB_CQE_RESIZE << 4 | own(&f.cq, end));
				assert_int_equal(bb_cqring_move(&f.cq, to.p, sizes[s]), 0);
				guarded_free(&f.ring);
				assert_int_equal(f.cq.ci, ci + 1);
				assert_int_equal(bb_be32(f.dbrec[0]), ci + 1);
				assert_int_equal(bb_cqring_size(&f.cq), 1u << sizes[s]);
				assert_ptr_equal(f.cq.next, at(&f.cq, ci + 1));
				assert_int_equal(f.cq.lap, own(&f.cq, ci + 1));
				/* The device continues after the index of that CQE. */
				at(&f.cq, end + 1)->op_own =
					(uint8_t)(BB_CQE_RESP_SEND << 4 | own(&f.cq, end + 1));
				for (i = ci; i < ci + plain; i++, f.cq.ci++) {
					const struct bb_cqe *cqe = bb_cqring_peek(&f.cq);

					assert_non_null(cqe);
					assert_int_equal(bb_be16(cqe->wqe_counter), i);
				}
				for (i = 0; i < 9; i++, f.cq.ci++) {
					const struct bb_cqe *cqe = bb_cqring_peek(&f.cq);

					assert_non_null(cqe);
					assert_int_equal(bb_be32(cqe->byte_cnt), 1000 + i * 3);
				}
				assert_int_equal(f.cq.ci, end + 1);
				assert_non_null(bb_cqring_peek(&f.cq));
				f.cq.ci++;
				assert_null(bb_cqring_peek(&f.cq));
				guarded_free(&to);
			}
		}
	}
}

TEST(test_move_to_a_small_ring_is_refused)
{
	struct guarded to = guarded_alloc(64 * 4, false);
	struct fixture f;

	start(&f, 4, 8);
	for (uint32_t i = 8; i < 13; i++)
		at(&f.cq, i)->op_own = own(&f.cq, i);
	at(&f.cq, 13)->op_own = (uint8_t)(BB_CQE_RESIZE << 4 | own(&f.cq, 13));
	bb_cqring_clear(to.p, 2);
	assert_int_equal(bb_cqring_move(&f.cq, to.p, 2), -ENOSPC);
	assert_ptr_equal(f.cq.buf, f.ring.p);
	assert_int_equal(f.cq.ci, 8);
	guarded_free(&f.ring);
	guarded_free(&to);
}

TEST_MAIN(0)
