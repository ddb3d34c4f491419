/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Completion ring: owner bit over laps, 24-bit consumer index, purge. */
#include "bb_cqring.h"
#include "queue_test.h"

struct fixture {
	struct bb_cqring cq;
	struct guarded ring;
	uint32_t dbrec[2] __attribute__((aligned(8)));
	uint32_t log_size;
};

static void
start(struct fixture *f, uint32_t log_size)
{
	f->log_size = log_size;
	f->ring = guarded_alloc((size_t)64 << log_size, false);
	memset(f->ring.p, 0, (size_t)64 << log_size);
	memset(f->dbrec, 0xff, sizeof(f->dbrec));
	assert_int_equal(bb_cqring_init(&f->cq, f->ring.p, log_size, f->dbrec), 0);
}

#define T_START(log_size, name)                                                                    \
	TEST_ON(NULL, NULL, struct fixture, start(f, log_size), guarded_free(&f->ring), name)

/* Writes CQE number @pi, counted from 0, as a device does. */
static void
produce(struct fixture *f, uint64_t pi, uint8_t opcode, uint32_t user_index, uint16_t counter)
{
	uint8_t *c = f->ring.p + (pi & ((1u << f->log_size) - 1)) * 64;

	c[33] = (uint8_t)(user_index >> 16);
	c[34] = (uint8_t)(user_index >> 8);
	c[35] = (uint8_t)user_index;
	c[60] = (uint8_t)(counter >> 8);
	c[61] = (uint8_t)counter;
	c[63] = (uint8_t)(opcode << 4 | (pi >> f->log_size & 1));
}

TEST(test_init_gives_all_entries_to_the_device)
{
	struct fixture f;

	for (uint32_t log_size = 0; log_size <= 10; log_size++) {
		start(&f, log_size);
		for (uint32_t i = 0; i < 1u << log_size; i++)
			assert_int_equal(f.ring.p[i * 64 + 63], 0xf1);
		assert_int_equal(f.dbrec[0], 0);
		assert_int_equal(bb_be32(f.dbrec[1]), BB_CQ_ARM_NONE);
		assert_null(bb_cqring_peek(&f.cq));
		guarded_free(&f.ring);
	}
}

TEST(test_init_refuses_bad_arguments)
{
	static uint8_t mem[256] __attribute__((aligned(64)));
	struct bb_cqring cq, before;
	uint32_t dbrec[2] __attribute__((aligned(8))) = {5, 6};

	memset(&cq, 0x5a, sizeof(cq));
	before = cq;
	log_begin();
	assert_int_equal(bb_cqring_init(&cq, mem, 23, dbrec), -EINVAL);
	assert_int_equal(bb_cqring_init(&cq, mem, UINT32_MAX, dbrec), -EINVAL);
	assert_int_equal(bb_cqring_init(&cq, NULL, 1, dbrec), -EINVAL);
	assert_int_equal(bb_cqring_init(&cq, mem + 32, 1, dbrec), -EINVAL);
	assert_int_equal(bb_cqring_init(&cq, mem, 1, NULL), -EINVAL);
	assert_int_equal(bb_cqring_init(&cq, mem, 1, dbrec + 1), -EINVAL);
	assert_int_equal(log_count("CQ"), 6);
	assert_memory_equal(&cq, &before, sizeof(cq));
	assert_true(dbrec[0] == 5 && dbrec[1] == 6);
}

/* Fills and empties the ring by random amounts over several laps, for the smallest rings too. */
TEST(test_entries_arrive_in_order_over_many_laps)
{
	for (uint32_t log_size = 0; log_size <= 6; log_size++) {
		uint64_t seed = 11, pi = 0, ci = 0, size = 1u << log_size;
		struct fixture f;

		start(&f, log_size);
		while (ci < 40 * size) {
			while (pi - ci < size && rnd_below(&seed, 3) != 0) {
				produce(&f, pi, BB_CQE_REQ, 7, (uint16_t)(pi * 3));
				pi++;
			}
			while (rnd_below(&seed, 3) != 0) {
				struct bb_cqe *cqe = bb_cqring_peek(&f.cq);

				if (ci == pi) {
					assert_null(cqe);
					break;
				}
				assert_non_null(cqe);
				assert_int_equal(bb_be16(cqe->wqe_counter), (uint16_t)(ci * 3));
				f.cq.ci++;
				ci++;
			}
			bb_cqring_update(&f.cq);
			assert_int_equal(bb_be32(f.dbrec[0]), ci);
		}
		assert_int_equal(bb_be32(f.dbrec[1]), BB_CQ_ARM_NONE);
		guarded_free(&f.ring);
	}
}

/* An entry that the device is still writing: its opcode is invalid, whatever the owner bit. */
T_START(2, test_entry_with_invalid_opcode_is_not_taken)
{
	f->ring.p[63] = 0xf0;
	assert_null(bb_cqring_peek(&f->cq));
	f->ring.p[63] = 0x01;
	assert_null(bb_cqring_peek(&f->cq));
	f->ring.p[63] = 0x00;
	assert_non_null(bb_cqring_peek(&f->cq));
	f->ring.p[63] = 0xe0;
	assert_non_null(bb_cqring_peek(&f->cq));
}

/* Past 2^24 the record wraps; the owner bit follows the ring's own laps. */
T_START(6, test_index_wraps_past_2_to_the_24)
{
	const uint64_t last = (1u << 24) + 1000;

	for (uint64_t i = 0; i < last; i++) {
		struct bb_cqe *cqe;

		produce(f, i, BB_CQE_RESP_SEND, 1, (uint16_t)i);
		cqe = bb_cqring_peek(&f->cq);
		if (cqe == NULL || bb_be16(cqe->wqe_counter) != (uint16_t)i)
			fail_msg("CQE %llu is not seen", (unsigned long long)i);
		f->cq.ci++;
		if (bb_cqring_peek(&f->cq) != NULL)
			fail_msg("CQE %llu is seen early", (unsigned long long)i + 1);
		bb_cqring_update(&f->cq);
		if (bb_be32(f->dbrec[0]) != ((i + 1) & 0xffffff))
			fail_msg("record 0x%x after CQE %llu", bb_be32(f->dbrec[0]),
				 (unsigned long long)i);
	}
}

T_START(3, test_software_count_wraps_at_2_to_the_32)
{
	f->cq.ci = UINT32_MAX - 20;
	for (uint64_t i = 0; i < 8; i++) /* CQEs of the previous lap */
		produce(f, f->cq.ci - 8 + i, BB_CQE_REQ, 1, 0);
	for (uint64_t i = UINT32_MAX - 20; i < (uint64_t)UINT32_MAX + 20; i++) {
		assert_null(bb_cqring_peek(&f->cq));
		produce(f, i, BB_CQE_REQ, 1, (uint16_t)i);
		assert_non_null(bb_cqring_peek(&f->cq));
		assert_int_equal(bb_be16(bb_cqring_peek(&f->cq)->wqe_counter), (uint16_t)i);
		f->cq.ci++;
	}
}

/* A purge removes only valid unconsumed CQEs of the given user index, across the ring's end. */
TEST(test_purge_removes_only_cqes_of_its_user)
{
	for (uint32_t at = 0; at < 24; at++) {
		uint8_t before[8 * 64];
		struct fixture f;

		start(&f, 3);
		for (uint32_t k = 0; k < at; k++) {
			produce(&f, k, BB_CQE_REQ, 5, (uint16_t)k);
			f.cq.ci++;
		}
		/* 5 5 9 5(error) 9 5, then no new CQE. */
		produce(&f, at, BB_CQE_REQ, 5, 0);
		produce(&f, at + 1, BB_CQE_RESP_SEND, 5, 1);
		produce(&f, at + 2, BB_CQE_REQ, 9, 2);
		produce(&f, at + 3, BB_CQE_REQ_ERR, 5, 3);
		produce(&f, at + 4, BB_CQE_REQ, 9, 4);
		produce(&f, at + 5, BB_CQE_REQ, 5, 5);
		memcpy(before, f.ring.p, sizeof(before));
		assert_int_equal(bb_cqring_purge(&f.cq, 5), 4);
		assert_int_equal(f.cq.ci, at);
		for (uint32_t k = 0; k < 8; k++) {
			static const bool gone[8] = {true, true, false, true, false, true};
			uint8_t *c = f.ring.p + (at + k) % 8 * 64;

			if (gone[k])
				memset(before + (at + k) % 8 * 64 + 33, 0xff, 3);
			before[(at + k) % 8 * 64 + 32] = c[32];
			assert_memory_equal(c, before + (at + k) % 8 * 64, 64);
		}
		assert_int_equal(bb_cqring_purge(&f.cq, 5), 0);
		assert_int_equal(bb_cqring_purge(&f.cq, 9), 2);
		guarded_free(&f.ring);
	}
}

T_START(4, test_purge_of_a_full_ring_ends_after_one_lap)
{
	for (uint32_t i = 0; i < 16; i++)
		produce(f, i, BB_CQE_REQ, 3, (uint16_t)i);
	assert_int_equal(bb_cqring_purge(&f->cq, 3), 16);
}

/* Bursts of every length: address and owner bit of the next CQE follow the consumer index. */
TEST(test_next_and_lap_follow_the_consumer_index)
{
	for (uint32_t log_size = 0; log_size <= 4; log_size++) {
		uint64_t ci = 0, end;
		struct fixture f;

		start(&f, log_size);
		for (uint32_t round = 0; round < 200; round++) {
			const struct bb_cqe *cqe = f.cq.next;

			end = ci + 1 + round % (1u << log_size);
			for (uint64_t i = ci; i < end; i++)
				produce(&f, i, BB_CQE_REQ, 1, (uint16_t)i);
			while (ci < end) {
				assert_ptr_equal(cqe, bb_cqring_at(&f.cq, ci));
				assert_int_equal(bb_cqe_own_load(&cqe->op_own) ^ f.cq.lap, 0);
				assert_int_equal(bb_be16(cqe->wqe_counter), (uint16_t)ci);
				ci++;
				cqe = bb_cqring_after(&f.cq, cqe, ci);
			}
			bb_cqring_release(&f.cq, cqe, ci);
			assert_int_equal(f.cq.ci, ci);
			assert_int_equal(bb_be32(f.dbrec[0]), ci);
			assert_ptr_equal(f.cq.next, bb_cqring_at(&f.cq, ci));
			assert_int_equal(f.cq.lap, ci >> log_size & 1);
			assert_null(bb_cqring_peek(&f.cq));
		}
		guarded_free(&f.ring);
	}
}

TEST_MAIN(0)
