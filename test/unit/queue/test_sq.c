/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Send WQEs: bytes of every builder, wrap at the end of the ring, rejected posts. */
#include "sq_fixture.h"

#define RADDR 0x1122334455667788ull
#define RKEY  0x99aabbccu
#define IMM   0x04030201u /* on the wire: 01 02 03 04 */

T_SQ_CONF(16, test_flags_are_in_the_control_segment)
{
	static const struct {
		uint32_t flags;
		uint8_t byte;
	} cases[] = {
		{0, 0},
		{BB_SEND_SIGNALED, 0x08},
		{BB_SEND_SOLICITED, 0x02},
		{BB_SEND_FENCE, 0x80},
		{BB_SEND_FENCE | BB_SEND_SIGNALED | BB_SEND_SOLICITED, 0x8a},
		{0xffffff00u | BB_SEND_SIGNALED, 0x08}, /* bits that are no flags are ignored */
	};

	f->conf.sig_every = 16;
	sq_fixture_start(f);
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bytes e = {.len = 0};

		assert_int_equal(bb_sq_post_nop(&f->sq, i, cases[i].flags), 0);
		put_ctrl(&e, (uint16_t)i, 0x00, 1, cases[i].byte, 0);
		sq_expect(f, (uint16_t)i, &e);
		assert_int_equal(f->wqes[i].flags, cases[i].flags & 0xff);
	}
}

T_SQ(16, test_gather_wqes_of_every_opcode)
{
	static const struct {
		uint8_t opcode;
		bool raddr;
		uint32_t imm;
	} cases[] = {
		{0x0a, false, 0},  {0x0b, false, IMM}, {0x08, true, 0},
		{0x09, true, IMM}, {0x10, true, 0},
	};
	const struct bb_sge sge[2] = {{0xa000, 100, 0x1111}, {0xb000, 1, 0x2222}};

	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t ds = cases[i].raddr ? 4 : 3;
		struct bytes e = {.len = 0};

		assert_int_equal(bb_sq_post_sgl(&f->sq, cases[i].opcode, cases[i].raddr, 70 + i,
						sge, 2, RADDR, RKEY, cases[i].imm,
						BB_SEND_SIGNALED),
				 0);
		put_ctrl(&e, (uint16_t)i, cases[i].opcode, ds, 0x08, cases[i].imm);
		if (cases[i].raddr)
			put_raddr(&e, RADDR, RKEY);
		put_data(&e, 100, 0x1111, 0xa000);
		put_data(&e, 1, 0x2222, 0xb000);
		sq_expect(f, (uint16_t)i, &e);
		assert_fields(f->wqes[i], wr_id, 70 + i, opcode, cases[i].opcode, seq, i + 1);
	}
}

T_SQ(4, test_atomic_wqes_have_operands_and_result_piece)
{
	const struct bb_sge sge = {0xc0de, 8, 0x77};
	struct bytes e = {.len = 0};

	assert_int_equal(bb_sq_post_atomic(&f->sq, BB_WQE_ATOMIC_CS, 1, &sge, RADDR, RKEY, 0x51,
					   0xc0, BB_SEND_SIGNALED),
			 0);
	put_ctrl(&e, 0, 0x11, 4, 0x08, 0);
	put_raddr(&e, RADDR, RKEY);
	put64(&e, 0x51);
	put64(&e, 0xc0);
	put_data(&e, 8, 0x77, 0xc0de);
	sq_expect(f, 0, &e);

	e.len = 0;
	assert_int_equal(bb_sq_post_atomic(&f->sq, BB_WQE_ATOMIC_FA, 1, &sge, RADDR, RKEY,
					   0xfffffffffffffff0ull, 0, BB_SEND_SIGNALED),
			 0);
	put_ctrl(&e, 1, 0x12, 4, 0x08, 0);
	put_raddr(&e, RADDR, RKEY);
	put64(&e, 0xfffffffffffffff0ull);
	put64(&e, 0);
	put_data(&e, 8, 0x77, 0xc0de);
	sq_expect(f, 1, &e);
}

/* Gather lists of every length, starting at every block of the ring. */
TEST(test_gather_list_wraps_at_the_ring_end)
{
	enum {
		BLOCKS = 8,
		MAX = 26
	};
	struct bb_sge sge[MAX];

	for (uint32_t i = 0; i < MAX; i++)
		sge[i] = (struct bb_sge){0x100000ull * (i + 1), 1000 + i, 0x50 + i};
	for (uint32_t start = 0; start < BLOCKS; start++) {
		for (uint32_t n = 0; n <= MAX; n++) {
			for (int raddr = 0; raddr <= 1; raddr++) {
				uint32_t ds = 1 + (uint32_t)raddr + n;
				struct bytes e = {.len = 0};
				struct sq_fixture f;

				sq_fixture_conf(&f, BLOCKS);
				f.conf.max_sge = MAX;
				sq_fixture_start(&f);
				sq_fixture_seek(&f, (uint16_t)start);
				assert_int_equal(bb_sq_post_sgl(&f.sq, raddr ? 0x08 : 0x0a, raddr,
								5, sge, n, RADDR, RKEY, 0, 0),
						 0);
				put_ctrl(&e, (uint16_t)start, raddr ? 0x08 : 0x0a, ds, 0x08, 0);
				if (raddr)
					put_raddr(&e, RADDR, RKEY);
				for (uint32_t i = 0; i < n; i++)
					put_data(&e, sge[i].len, sge[i].lkey, sge[i].addr);
				sq_expect(&f, (uint16_t)start, &e);
				assert_int_equal(f.sq.pi, start + (ds + 3) / 4);
				sq_fixture_end(&f);
			}
		}
	}
}

/* Inline data of every length, starting at every block; the padding is not written. */
TEST(test_inline_data_wraps_at_the_ring_end)
{
	enum {
		BLOCKS = 4,
		MAX = BLOCKS * 64 - 36
	};
	uint8_t data[MAX];

	for (uint32_t i = 0; i < MAX; i++)
		data[i] = (uint8_t)(i * 7 + 1);
	for (uint32_t start = 0; start < BLOCKS; start++) {
		for (uint32_t len = 0; len <= MAX; len++) {
			for (int raddr = 0; raddr <= 1; raddr++) {
				uint32_t ds = 1 + (uint32_t)raddr + (len ? (len + 4 + 15) / 16 : 0);
				uint8_t opcode = raddr ? 0x09 : 0x0b;
				struct bytes e = {.len = 0};
				struct sq_fixture f;

				sq_fixture_conf(&f, BLOCKS);
				f.conf.max_inline = MAX;
				sq_fixture_start(&f);
				sq_fixture_seek(&f, (uint16_t)start);
				memset(f.ring.p, SQ_FILL, f.size);
				assert_int_equal(bb_sq_post_inline(&f.sq, opcode, raddr, 9, data,
								   len, RADDR, RKEY, IMM,
								   BB_SEND_SOLICITED),
						 0);
				put_ctrl(&e, (uint16_t)start, opcode, ds, 0x0a, IMM);
				if (raddr)
					put_raddr(&e, RADDR, RKEY);
				if (len != 0) {
					put32(&e, 0x80000000u | len);
					put_mem(&e, data, len);
				}
				/* After the data the ring is unchanged up to its end. */
				while (e.len < f.size)
					put8(&e, SQ_FILL);
				sq_expect(&f, (uint16_t)start, &e);
				assert_int_equal(f.sq.pi, start + (ds + 3) / 4);
				sq_fixture_end(&f);
			}
		}
	}
}

T_SQ_CONF(32, test_inline_length_known_at_compile_time_gives_the_same_bytes)
{
	static const uint8_t data[32] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
					 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22,
					 23, 24, 25, 26, 27, 28, 29, 30, 31, 32};
	uint16_t at = 0;

	f->conf.max_inline = 44;
	sq_fixture_start(f);
#define CHECK(len_, raddr_)                                                                        \
	do {                                                                                       \
		struct bytes e = {.len = 0};                                                       \
		uint32_t ds = ((raddr_) ? 2 : 1) + ((len_) + 4 + 15) / 16;                         \
		assert_int_equal(                                                                  \
			bb_sq_post_inline(&f->sq, 0x08, raddr_, 0, data, len_, RADDR, RKEY, 0, 0), \
			0);                                                                        \
		put_ctrl(&e, at, 0x08, ds, 0x08, 0);                                               \
		if (raddr_)                                                                        \
			put_raddr(&e, RADDR, RKEY);                                                \
		put32(&e, 0x80000000u | (len_));                                                   \
		put_mem(&e, data, len_);                                                           \
		sq_expect(f, at, &e);                                                              \
		at = f->sq.pi;                                                                     \
	} while (0)
	CHECK(1, true);
	CHECK(4, true);
	CHECK(8, true);
	CHECK(12, true);
	CHECK(16, true);
	CHECK(28, true);
	CHECK(32, true);
	CHECK(8, false);
	CHECK(32, false);
#undef CHECK
}

T_SQ_CONF(16, test_empty_piece_is_left_out_and_2g_is_length_0)
{
	const struct bb_sge sge[5] = {{0x1000, 0, 1},
				      {0x2000, 0x80000000u, 2},
				      {0x3000, 0, 3},
				      {0x4000, 7, 4},
				      {0x5000, 0, 5}};
	struct bytes e = {.len = 0};

	f->conf.max_sge = 5;
	sq_fixture_start(f);
	assert_int_equal(bb_sq_post_sgl(&f->sq, 0x08, true, 0, sge, 5, RADDR, RKEY, 0, 0), 0);
	put_ctrl(&e, 0, 0x08, 4, 0x08, 0);
	put_raddr(&e, RADDR, RKEY);
	put_data(&e, 0, 2, 0x2000); /* 2^31 */
	put_data(&e, 7, 4, 0x4000);
	put8(&e, SQ_FILL);
	sq_expect(f, 0, &e);

	/* A list with one empty piece adds no segment. */
	e.len = 0;
	assert_int_equal(bb_sq_post_sgl(&f->sq, 0x0a, false, 0, sge, 1, 0, 0, 0, 0), 0);
	put_ctrl(&e, 1, 0x0a, 1, 0x08, 0);
	put8(&e, SQ_FILL);
	sq_expect(f, 1, &e);
}

/* Every rejected post returns its errno, leaves ring and queue unchanged, and logs one line. */
T_SQ_CONF(8, test_refused_post_logs_once_and_changes_nothing)
{
	const struct bb_sge ok = {8, 8, 1}, many[3] = {{1, 1, 1}, {2, 2, 2}, {3, 3, 3}};
	const struct bb_sge big[2] = {{1, 5, 1}, {2, 0x80000001u, 2}}, odd = {8, 4, 1};
	uint8_t before[8 * 64], data[64] = {0};
	struct bb_sq_wqe wqes[8];
	struct bb_sq sq;

	f->conf.sig_every = 3;
	sq_fixture_start(f);
	assert_int_equal(bb_sq_post_nop(&f->sq, 1, 0), 0);
	memcpy(before, f->ring.p, sizeof(before));
	memcpy(wqes, f->wqes, sizeof(wqes));
	for (int i = 0; i < 7; i++) {
		static const char *const text[] = {"max_sge", "2^31 bytes", "max_inline",
						   "8 bytes", "multiple",   "*_inline()",
						   "RTS"};

		sq = f->sq;
		log_begin();
		for (int round = 0; round < 3; round++) {
			int rc = 0, want = -EINVAL;

			switch (i) {
			case 0:
				rc = bb_sq_post_sgl(&f->sq, 8, true, 0, many, 3, 0, 0, 0, 0);
				break;
			case 1:
				rc = bb_sq_post_sgl(&f->sq, 8, true, 0, big, 2, 0, 0, 0, 0);
				break;
			case 2:
				rc = bb_sq_post_inline(&f->sq, 8, true, 0, data, 29, 0, 0, 0, 0);
				break;
			case 3:
				rc = bb_sq_post_atomic(&f->sq, 0x12, 0, &odd, 0, 0, 1, 0, 0);
				break;
			case 4:
				rc = bb_sq_post_atomic(&f->sq, 0x12, 0, &ok, 4, 0, 1, 0, 0);
				break;
			case 5: /* INLINE where the data is not copied */
				rc = bb_sq_post_sgl(&f->sq, 8, true, 0, &ok, 1, 0, 0, 0,
						    BB_SEND_SIGNALED | BB_SEND_INLINE);
				break;
			default:
				bb_sq_enable(&f->sq, false);
				rc = bb_sq_post_sgl(&f->sq, 8, true, 0, &ok, 1, 0, 0, 0, 0);
				want = -ENOTCONN;
				bb_sq_enable(&f->sq, true);
			}
			assert_int_equal(rc, want);
		}
		assert_int_equal(log_count(text[i]), 1);
		sq.refused = f->sq.refused;
		assert_memory_equal(&sq, &f->sq, sizeof(sq));
		assert_memory_equal(before, f->ring.p, sizeof(before));
		assert_memory_equal(wqes, f->wqes, sizeof(wqes));
		assert_int_equal(f->dbrec[1], 0);
	}
}

/*
 * With limits of 0 only atomics and NOPs fit. A queue full of them reports full, not too small.
 */
T_SQ_CONF(1, test_queue_without_pieces_reports_full)
{
	const struct bb_sge ok = {8, 8, 1};

	f->conf.max_sge = 0;
	f->conf.max_inline = 0;
	sq_fixture_start(f);
	assert_int_equal(bb_sq_post_atomic(&f->sq, 0x12, 3, &ok, 8, 0, 1, 0, 0), 0);
	assert_int_equal(bb_sq_post_atomic(&f->sq, 0x12, 3, &ok, 8, 0, 1, 0, 0), -EAGAIN);
}

/* A post to a full queue changes nothing and logs nothing. */
T_SQ(2, test_post_to_a_full_queue_changes_nothing)
{
	uint8_t before[2 * 64], data[8] = {0};
	const struct bb_sge ok = {8, 8, 1};
	struct bb_sq sq;

	assert_int_equal(bb_sq_post_nop(&f->sq, 1, 0), 0);
	assert_int_equal(bb_sq_post_nop(&f->sq, 2, 0), 0);
	memcpy(before, f->ring.p, sizeof(before));
	sq = f->sq;
	log_begin();
	assert_int_equal(bb_sq_post_nop(&f->sq, 3, 0), -EAGAIN);
	assert_int_equal(bb_sq_post_sgl(&f->sq, 8, true, 3, &ok, 1, 0, 0, 0, 0), -EAGAIN);
	assert_int_equal(bb_sq_post_inline(&f->sq, 8, true, 3, data, 8, 0, 0, 0, 0), -EAGAIN);
	assert_int_equal(bb_sq_post_atomic(&f->sq, 0x12, 3, &ok, 8, 0, 1, 0, 0), -EAGAIN);
	assert_int_equal(log_count(NULL), 0);
	sq.full += 4;
	assert_memory_equal(&sq, &f->sq, sizeof(sq));
	assert_memory_equal(before, f->ring.p, sizeof(before));
}

TEST_MAIN(0)
