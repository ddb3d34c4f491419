/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * UMR WQEs: the bytes that libmlx5 writes for layouts, across the ring's end, the room they take,
 * CQEs requested in time, the fence. test/golden has the recorded binds and invalidations.
 */
#include "bb_sq_umr.h"
#include "sq_fixture.h"

#define ALL_RIGHTS 0xfu

static void
put_umr(struct bytes *e, uint8_t flags, uint32_t xlt, uint64_t mask)
{
	put32(e, (uint32_t)flags << 24);
	put32(e, xlt << 16);
	put64(e, mask);
	put_pad16(e, 0);
	put64(e, 0);
	put64(e, 0);
	put64(e, 0);
	put64(e, 0);
}

static void
put_mkey(struct bytes *e, uint8_t free, uint8_t access, uint32_t qpn_key, uint64_t len)
{
	put32(e, (uint32_t)free << 24 | (uint32_t)access << 8);
	put32(e, qpn_key);
	put64(e, 0);
	put64(e, 0);
	put64(e, len);
	for (unsigned int i = 0; i < 4; i++)
		put64(e, 0);
}

/* mlx5dv_wr_mr_list() of 3 pieces: 4 octowords, the last one 0. */
static void
list_bytes(struct bytes *e, uint16_t idx)
{
	e->len = 0;
	put_ctrl(e, idx, BB_WQE_UMR, 12, 0x08, bb_be32(0x1200));
	put_umr(e, 0x80, 4, 0x203c2001);
	put_mkey(e, 0, 0x78, 0xffffff00, 1 + 2 + 0x80000000ull);
	put_data(e, 1, 0x11, 0x1000);
	put_data(e, 2, 0x22, 0x2000);
	put_data(e, 0x80000000, 0x33, 0x3000);
	put_data(e, 0, 0, 0);
}

static const struct bb_sge pieces[] = {
	{0x1000, 1, 0x11}, {0x2000, 2, 0x22}, {0x3000, 0x80000000, 0x33}};

T_OWN_SQ(test_umr_list_has_the_bytes_of_libmlx5)
{
	struct bytes e;

	/* From each block of the ring, so that the wrap falls into each block of the segments. */
	for (uint16_t idx = 0; idx < 16; idx++) {
		sq_fixture_conf(f, 16);
		sq_fixture_start(f);
		sq_fixture_seek(f, idx);
		assert_int_equal(bb_sq_post_mkey_list(&f->sq, 7, 0x1200, ALL_RIGHTS, pieces, 3,
						      BB_SEND_SIGNALED),
				 0);
		list_bytes(&e, idx);
		sq_expect(f, idx, &e);
		assert_fields(f->sq.wqes[idx], opcode, BB_SQ_MKEY, wr_id, 7);
		sq_fixture_end(f);
	}
}

T_SQ(16, test_umr_interleaved_has_the_bytes_of_libmlx5)
{
	static const struct bb_interleaved block[] = {{0x1000, 16, 48, 0x11},
						      {0x2000, 65535, 0, 0x22}};
	struct bytes e = {.len = 0};

	assert_int_equal(bb_sq_post_mkey_interleaved(&f->sq, 7, 0x1200, 1, 3, block, 2, 0), 0);
	put_ctrl(&e, 0, BB_WQE_UMR, 12, 0x08, bb_be32(0x1200));
	put_umr(&e, 0x80, 4, 0x203c2001);
	put_mkey(&e, 0, 0x08, 0xffffff00, 3 * 65551);
	put32(&e, 65551);
	put32(&e, 0x400);
	put32(&e, 3);
	put32(&e, 2);
	put32(&e, 64u << 16 | 16);
	put32(&e, 0x11);
	put64(&e, 0x1000);
	put32(&e, 65535u << 16 | 65535);
	put32(&e, 0x22);
	put64(&e, 0x2000);
	put_data(&e, 0, 0, 0);
	sq_expect(f, 0, &e);
}

/*
 * Where a UMR must not change the right to atomics, only that bit (21) is missing from the masks.
 */
T_OWN_SQ(test_umr_without_atomics_lacks_only_that_bit)
{
	const struct bb_bind to = {.addr = 0x1000, .len = 64, .lkey = 0x11, .access = 2};
	uint64_t mask[3], is;

	for (unsigned int round = 0; round < 2; round++) {
		sq_fixture_conf(f, 32);
		f->conf.umr_no_atomic = round == 1;
		sq_fixture_start(f);
		assert_int_equal(bb_sq_post_mkey_list(&f->sq, 0, 0x1200, 7, pieces, 3, 0), 0);
		assert_int_equal(bb_sq_post_bind(&f->sq, 0, false, 0x1300, 0x1301, &to, 0), 0);
		assert_int_equal(bb_sq_post_bind(&f->sq, 0, true, 0x1400, 0x1401, &to, 0), 0);
		for (unsigned int i = 0; i < 3; i++) {
			memcpy(&is, f->ring.p + (size_t)i * 3 * BB_WQE_BB + BB_WQE_SEG + 8, 8);
			if (round == 0)
				mask[i] = bb_be64(is);
			assert_int_equal(bb_be64(is), mask[i] & ~(uint64_t)(round << 21));
			assert_int_equal(mask[i] >> 21 & 1, 1);
		}
		sq_fixture_end(f);
	}
}

/* The longest WQE; one more piece is rejected. */
TEST(test_longest_umr_fits_and_one_more_piece_does_not)
{
	struct bb_interleaved block[BB_UMR_MAX_PIECES];
	struct bb_sge sge[BB_UMR_MAX_PIECES + 1];
	struct sq_fixture f;

	for (uint32_t i = 0; i <= BB_UMR_MAX_PIECES; i++)
		sge[i] = (struct bb_sge){i, 1, 1};
	for (uint32_t i = 0; i < BB_UMR_MAX_PIECES; i++)
		block[i] = (struct bb_interleaved){i, 1, 0, 1};
	sq_fixture_conf(&f, 32);
	sq_fixture_start(&f);
	assert_int_equal(bb_sq_post_mkey_list(&f.sq, 0, 0, 0, sge, BB_UMR_MAX_PIECES + 1, 0),
			 -EINVAL);
	assert_int_equal(
		bb_sq_post_mkey_interleaved(&f.sq, 0, 0, 0, 1, block, BB_UMR_MAX_BLOCKS + 1, 0),
		-EINVAL);
	assert_int_equal(f.sq.pi, 0);
	assert_int_equal(bb_sq_post_mkey_list(&f.sq, 0, 0, 0, sge, BB_UMR_MAX_PIECES, 0), 0);
	assert_fields(f, ring.p[7], 60, sq.pi, 15);
	assert_int_equal(
		bb_sq_post_mkey_interleaved(&f.sq, 0, 0, 0, 1, block, BB_UMR_MAX_BLOCKS, 0), 0);
	assert_int_equal(f.sq.pi, 30);
	sq_fixture_end(&f);
}

T_SQ(16, test_bad_layout_is_refused)
{
	static const struct {
		uint32_t bytes, skip, repeat, n;
	} bad[] = {{0, 4, 1, 1}, {65536, 0, 1, 1}, {1, 65535, 1, 1}, {1, 1, 0, 1}, {1, 1, 1, 0}};
	struct bb_bind bind = {.len = 0x80000001};
	struct bb_sge sge = {0, 0, 0};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct bb_interleaved b = {0, bad[i].bytes, bad[i].skip, 0};

		assert_int_equal(bb_sq_post_mkey_interleaved(&f->sq, 0, 0, 0, bad[i].repeat, &b,
							     bad[i].n, 0),
				 -EINVAL);
	}
	assert_int_equal(bb_sq_post_mkey_list(&f->sq, 0, 0, 0, &sge, 1, 0), -EINVAL);
	sge.len = 0x80000001;
	assert_int_equal(bb_sq_post_mkey_list(&f->sq, 0, 0, 0, &sge, 1, 0), -EINVAL);
	assert_int_equal(bb_sq_post_mkey_list(&f->sq, 0, 0, 0, &sge, 0, 0), -EINVAL);
	assert_int_equal(bb_sq_post_bind(&f->sq, 0, true, 0, 0, &bind, 0), -EINVAL);
	assert_fields(f->sq, seq, 0, fence, 0);
	/* A disabled queue rejects UMRs as it does other posts. */
	bb_sq_enable(&f->sq, false);
	assert_int_equal(bb_sq_post_local_inv(&f->sq, 0, 0, 0), -ENOTCONN);
}

/* A WQE that fills its blocks does not touch the next one. A bind may have 2^31 bytes. */
T_SQ(16, test_full_wqe_does_not_touch_the_next_one)
{
	struct bb_bind bind = {.addr = 4096, .len = 0x80000000};
	uint8_t was[BB_WQE_BB];

	memset(was, 0xa5, sizeof(was));
	memcpy(f->sq.buf + 2 * BB_WQE_BB, was, sizeof(was));
	assert_int_equal(bb_sq_post_local_inv(&f->sq, 0, 0x1200, 0), 0);
	assert_memory_equal(f->sq.buf + 2 * BB_WQE_BB, was, sizeof(was));
	memcpy(f->sq.buf + 5 * BB_WQE_BB, was, sizeof(was));
	assert_int_equal(bb_sq_post_bind(&f->sq, 0, true, 0x1200, 0x1201, &bind, 0), 0);
	assert_memory_equal(f->sq.buf + 5 * BB_WQE_BB, was, sizeof(was));
}

T_OWN_SQ(test_wqe_of_three_blocks_takes_three_slots)
{
	struct bb_bind bind = {.addr = 1, .len = 1};

	sq_fixture_conf(f, 8);
	f->conf.depth = 8;
	sq_fixture_start(f);
	assert_int_equal(f->sq.slot_blocks, 1);
	assert_int_equal(bb_sq_post_bind(&f->sq, 1, true, 0, 0, &bind, 0), 0);
	assert_int_equal(bb_sq_outstanding(&f->sq), 3);
	assert_int_equal(bb_sq_post_bind(&f->sq, 2, true, 0, 0, &bind, 0), 0);
	assert_int_equal(bb_sq_post_bind(&f->sq, 3, true, 0, 0, &bind, 0), -EAGAIN);
	assert_int_equal(bb_sq_post_local_inv(&f->sq, 3, 0, 0), 0);
	assert_int_equal(bb_sq_outstanding(&f->sq), 8);
	assert_int_equal(f->sq.pi, 8);
	assert_int_equal(bb_sq_post_nop(&f->sq, 4, 0), -EAGAIN);
	assert_int_equal(bb_sq_post_local_inv(&f->sq, 4, 0, 0), -EAGAIN);
	/* The CQE of the first WQE frees all of its blocks. */
	assert_int_equal(bb_sq_complete(&f->sq, 0)->wr_id, 1);
	assert_int_equal(bb_sq_outstanding(&f->sq), 5);
	assert_int_equal(bb_sq_post_bind(&f->sq, 5, true, 0, 0, &bind, 0), 0);
	assert_int_equal(bb_sq_complete(&f->sq, 6)->wr_id, 3);
	assert_int_equal(bb_sq_outstanding(&f->sq), 3);
	assert_int_equal(bb_sq_complete(&f->sq, 8)->wr_id, 5);
	assert_int_equal(bb_sq_outstanding(&f->sq), 0);
	sq_fixture_end(f);

	/* A WQE that never fits is not reported as a full queue. */
	sq_fixture_conf(f, 2);
	f->conf.depth = 2;
	sq_fixture_start(f);
	assert_int_equal(bb_sq_post_bind(&f->sq, 1, true, 0, 0, &bind, 0), -EINVAL);
	assert_int_equal(bb_sq_post_local_inv(&f->sq, 1, 0, 0), 0);
	sq_fixture_end(f);
}

TEST(test_cqe_is_requested_in_time_for_any_sizes)
{
	struct bb_bind bind = {.addr = 1, .len = 1};
	uint32_t i, since;
	uint64_t seed = 5;

	for (uint32_t every = 1; every <= 16; every++) {
		struct sq_fixture f;

		sq_fixture_conf(&f, 64);
		f.conf.depth = 64;
		f.conf.sig_every = every;
		sq_fixture_start(&f);
		for (i = 0, since = 0; i < 2000; i++) {
			uint16_t at = (uint16_t)f.sq.pi;
			uint32_t before = f.sq.seq;

			seed = seed * 6364136223846793005u + 1;
			if (seed >> 62 == 0)
				assert_int_equal(bb_sq_post_bind(&f.sq, i, true, 0, 0, &bind, 0),
						 0);
			else if (seed >> 62 == 1)
				assert_int_equal(bb_sq_post_local_inv(&f.sq, i, 0, 0), 0);
			else
				assert_int_equal(bb_sq_post_nop(&f.sq, i, 0), 0);
			since += f.sq.seq - before;
			/* At the latest the WQE that reaches the limit requests one. */
			if ((f.ring.p[(size_t)(at & 63) * 64 + 11] & 0x0c) != 0)
				since = 0;
			assert_in_range(since, 0, every - 1);
			bb_sq_complete(&f.sq, at);
		}
		sq_fixture_end(&f);
	}
}

/* The next WQE gets a small fence, once; its own FENCE flag replaces it. */
TEST(test_wqe_after_a_umr_gets_a_small_fence)
{
	struct bb_sge sge[2] = {{0x1000, 8, 1}, {0x2000, 8, 1}};

	for (unsigned int kind = 0; kind < 6; kind++) {
		for (unsigned int fence = 0; fence < 2; fence++) {
			uint32_t flags = fence != 0 ? BB_SEND_FENCE : 0;
			struct sq_fixture f;
			uint16_t at;
			int ret = 1;

			sq_fixture_conf(&f, 64);
			f.conf.sig_every = 30;
			sq_fixture_start(&f);
			assert_int_equal(bb_sq_post_local_inv(&f.sq, 0, 0, 0), 0);
			at = (uint16_t)f.sq.pi;
			switch (kind) {
			case 0:
				ret = bb_sq_post_sgl(&f.sq, BB_WQE_RDMA_WRITE, true, 1, sge, 1, 0,
						     0, 0, flags);
				break;
			case 1:
				ret = bb_sq_post_sgl(&f.sq, BB_WQE_SEND, false, 1, sge, 2, 0, 0, 0,
						     flags);
				break;
			case 2:
				ret = bb_sq_post_inline(&f.sq, BB_WQE_RDMA_WRITE, true, 1, "x", 1,
							0, 0, 0, flags);
				break;
			case 3:
				ret = bb_sq_post_atomic(&f.sq, BB_WQE_ATOMIC_FA, 1, sge, 0, 0, 1, 0,
							flags);
				break;
			case 4:
				ret = bb_sq_post_nop(&f.sq, 1, flags);
				break;
			default:
				ret = bb_sq_post_local_inv(&f.sq, 1, 0, flags);
				break;
			}
			assert_int_equal(ret, 0);
			assert_int_equal(f.ring.p[(size_t)at * 64 + 11], fence != 0 ? 0x80 : 0x20);
			at = (uint16_t)f.sq.pi;
			assert_int_equal(bb_sq_post_sgl(&f.sq, BB_WQE_RDMA_WRITE, true, 1, sge, 1,
							0, 0, 0, 0),
					 0);
			/* The next UMR gets the small fence again. */
			assert_int_equal(f.ring.p[(size_t)at * 64 + 11], kind == 5 ? 0x20 : 0);
			sq_fixture_end(&f);
		}
	}
}

/* A reset, or a QP that is disabled for a while, clears the pending fence. */
T_SQ_CONF(64, test_reset_clears_the_pending_fence)
{
	f->conf.sig_every = 30;
	sq_fixture_start(f);
	assert_int_equal(bb_sq_post_local_inv(&f->sq, 0, 0, 0), 0);
	bb_sq_reset(&f->sq);
	assert_int_equal(bb_sq_post_nop(&f->sq, 0, 0), -ENOTCONN);
	bb_sq_enable(&f->sq, true);
	assert_int_equal(bb_sq_post_nop(&f->sq, 0, 0), 0);
	assert_int_equal(f->ring.p[11], 0);
	/* RTS to ERR: posts continue and the fence stays pending. */
	assert_int_equal(bb_sq_post_local_inv(&f->sq, 0, 0, 0), 0);
	bb_sq_enable(&f->sq, true);
	assert_int_equal(bb_sq_post_nop(&f->sq, 0, 0), 0);
	assert_int_equal(f->ring.p[3 * 64 + 11], 0x20);
}

TEST_MAIN(0)
