/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Mailbox fields: every bit and width, and no bit beside them. */
#include "../queue/queue_test.h"
#include "bb_prm.h"

static int
bit_of(const uint8_t *p, unsigned int bit)
{
	return p[bit / 8] >> (7 - bit % 8) & 1;
}

TEST(test_set_changes_only_its_field)
{
	uint64_t seed = 5;

	for (unsigned int bit = 0; bit < 32; bit++) {
		for (unsigned int width = 1; width <= 32 - bit; width++) {
			struct bb_prm_field f = BB_PRM_F(4, bit, width);
			uint32_t v = (uint32_t)rnd(&seed), got;
			uint8_t mem[12], before[12];

			for (unsigned int i = 0; i < sizeof(mem); i++)
				mem[i] = (uint8_t)rnd(&seed);
			memcpy(before, mem, sizeof(mem));
			bb_prm_set(mem, f, v);
			for (unsigned int i = 0; i < 96; i++) {
				if (i < 32 + bit || i >= 32 + bit + width)
					assert_int_equal(bit_of(mem, i), bit_of(before, i));
				else
					assert_int_equal(bit_of(mem, i),
							 v >> (31 + bit + width - i) & 1);
			}
			got = bb_prm_get(mem, f);
			assert_int_equal(got, width == 32 ? v : v & ((1u << width) - 1));
		}
	}
}

TEST(test_field_of_64_bits_is_big_endian)
{
	static const uint8_t want[24] = {[8] = 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88};
	uint8_t mem[24] = {0};

	bb_prm_set64(mem, BB_PRM_F(8, 0, 64), 0x1122334455667788ull);
	assert_memory_equal(mem, want, sizeof(mem));
	assert_true(bb_prm_get64(mem, BB_PRM_F(8, 0, 64)) == 0x1122334455667788ull);
}

TEST(test_contexts_nest_at_their_offsets)
{
	uint8_t in[BB_PRM_SZ_CREATE_QP_IN] = {0};

	/* A context inside its mailbox, and an address path inside the context. */
	assert_ptr_equal(bb_prm_sub(in, BB_PRM_CREATE_QP_QPC), in + 0x18);
	bb_prm_set(bb_prm_sub(bb_prm_sub(in, BB_PRM_CREATE_QP_QPC), BB_PRM_QPC_ADS),
		   BB_PRM_ADS_RMAC_31_0, 0x01020304);
	assert_int_equal(in[0x18 + 0x18 + 0x28], 1);
	assert_int_equal(in[0x18 + 0x18 + 0x2b], 4);
	assert_ptr_equal(bb_prm_csub(in, BB_PRM_CREATE_QP_QPC), in + 0x18);
}

TEST_MAIN(0)
