/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Accounting of the send queue: indices, depth, blocks, signalling, reset, limits. */
#include "sq_fixture.h"

#define RADDR 0x1122334455667788ull
#define RKEY  0x99aabbccu

/* Random WQEs over many laps of the 16-bit block index, completed by wqe_counter. */
T_OWN_SQ(test_completions_free_wqes_over_many_laps)
{
	struct {
		uint16_t idx;
		uint64_t wr_id;
		uint32_t flags;
		bool cqe;
	} queue[64];
	uint64_t seed = 42, wr_id = 0, seen = 0, blocks = 0;
	uint32_t head = 0, tail = 0;
	struct bb_sge sge[6];
	uint32_t i;

	for (i = 0; i < 6; i++)
		sge[i] = (struct bb_sge){i, i + 1, i};
	sq_fixture_conf(f, 64);
	f->conf.depth = 32; /* two blocks each: the ring holds no more WQEs of the largest size */
	f->conf.max_sge = 6;
	f->conf.sig_every = 9;
	sq_fixture_start(f);
	while (blocks < 5 * 65536) {
		uint32_t n = rnd_below(&seed, 7), ds = 2 + n, flags;
		uint16_t idx = f->sq.pi;

		flags = rnd_below(&seed, 4) == 0 ? BB_SEND_SIGNALED : 0;
		if (bb_sq_post_sgl(&f->sq, 0x08, true, wr_id, sge, n, RADDR, RKEY, 0, flags) == 0) {
			const uint8_t *w = f->ring.p + (size_t)idx % 64 * 64;

			assert_int_equal(w[1] << 8 | w[2], idx);
			assert_int_equal(w[7], ds);
			queue[head % 64].idx = idx;
			queue[head % 64].wr_id = wr_id++;
			queue[head % 64].flags = flags;
			queue[head % 64].cqe = (w[11] & 0x08) != 0;
			head++;
			blocks += (ds + 3) / 4;
			assert_true(head - tail <= 32);
			assert_true((uint16_t)(f->sq.pi - queue[tail % 64].idx) <= 64);
			if (rnd_below(&seed, 3) != 0)
				continue;
		}
		/* Completes up to the next WQE that requests a CQE. */
		bb_sq_ring(&f->sq);
		assert_int_equal(bb_be32(f->dbrec[1]), f->sq.pi);
		for (i = tail; i != head && !queue[i % 64].cqe; i++)
			;
		if (i == head)
			continue;
		const struct bb_sq_wqe *w = bb_sq_complete(&f->sq, queue[i % 64].idx);

		assert_fields(*w, wr_id, queue[i % 64].wr_id, flags, queue[i % 64].flags);
		tail = i + 1;
		seen++;
		assert_int_equal(bb_sq_outstanding(&f->sq), head - tail);
	}
	assert_true(seen > 1000);
	assert_int_equal(f->dbrec[0], 0x11111111); /* the receive record stays unchanged */
	sq_fixture_end(f);
}

T_SQ_CONF(16, test_full_queue_gets_room_by_a_completion)
{
	f->conf.depth = 5;
	f->conf.sig_every = 5;
	sq_fixture_start(f);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(bb_sq_post_nop(&f->sq, i, 0), 0);
	assert_int_equal(bb_sq_post_nop(&f->sq, 9, 0), -EAGAIN);
	assert_int_equal(bb_sq_post_nop(&f->sq, 9, 0), -EAGAIN);
	assert_int_equal(f->sq.full, 2);
	assert_int_equal(bb_sq_outstanding(&f->sq), 5);
	bb_sq_complete(&f->sq, 2); /* frees WQEs 0, 1, 2 */
	assert_int_equal(bb_sq_outstanding(&f->sq), 2);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(bb_sq_post_nop(&f->sq, i, 0), 0);
	assert_int_equal(bb_sq_post_nop(&f->sq, 9, 0), -EAGAIN);
}

T_SQ_CONF(16, test_forced_signals_are_not_the_users)
{
	f->conf.sig_every = 4;
	sq_fixture_start(f);
	for (uint32_t i = 0; i < 10; i++) {
		/* The user signals WQE 5, so the count restarts after it. */
		uint32_t flags = i == 5 ? BB_SEND_SIGNALED : 0;
		bool cqe = i == 3 || i == 5 || i == 9;

		assert_int_equal(bb_sq_post_nop(&f->sq, i, flags), 0);
		assert_int_equal(f->ring.p[i * 64 + 11], cqe ? 0x08 : 0);
		assert_int_equal(f->wqes[i].flags, flags); /* forced signals are not reported as
							    * the user's */
	}
}

/*
 * For any configuration: outstanding WQEs never overlap in the ring, and a full queue contains a
 * WQE that will give a CQE.
 */
TEST(test_full_queue_always_awaits_a_cqe)
{
	uint64_t seed = 7;

	for (uint32_t round = 0; round < 3000; round++) {
		uint16_t idx[64];
		struct bb_sge sge[20];
		struct sq_fixture f;
		uint32_t tries, i, head = 0, tail = 0, most;

		for (i = 0; i < 20; i++)
			sge[i] = (struct bb_sge){i, 1, i};
		sq_fixture_conf(&f, 1u << rnd_below(&seed, 7));
		f.conf.max_sge = rnd_below(&seed, 21);
		most = f.conf.blocks / ((2 + f.conf.max_sge + 3) / 4);
		if (most == 0)
			continue;
		f.conf.depth = 1 + rnd_below(&seed, most);
		f.conf.sig_every = 1 + rnd_below(&seed, f.conf.depth);
		sq_fixture_start(&f);
		for (tries = 0; tries < 200; tries++) {
			uint32_t n = rnd_below(&seed, f.conf.max_sge + 1);
			uint16_t at = f.sq.pi;

			if (bb_sq_post_sgl(&f.sq, 8, true, 0, sge, n, 0, 0, 0, 0) == 0) {
				idx[head++ % 64] = at;
				if ((uint16_t)(f.sq.pi - idx[tail % 64]) > f.conf.blocks)
					fail_msg("WQEs overlap: blocks %u depth %u sge %u",
						 f.conf.blocks, f.conf.depth, f.conf.max_sge);
				continue;
			}
			assert_int_equal(head - tail, f.conf.depth);
			for (i = tail; i != head; i++) {
				if (f.ring.p[(idx[i % 64] & f.sq.mask) * 64u + 11] & 0x08)
					break;
			}
			if (i == head)
				fail_msg("full without a CQE to come: blocks %u depth %u every %u "
					 "sge %u",
					 f.conf.blocks, f.conf.depth, f.conf.sig_every,
					 f.conf.max_sge);
			bb_sq_complete(&f.sq, idx[i % 64]);
			tail = i + 1;
		}
		sq_fixture_end(&f);
	}
}

T_SQ_CONF(4, test_reset_restores_a_fresh_queue)
{
	struct bb_sq fresh;

	f->conf.db_mode = BB_DB_BLUEFLAME;
	f->conf.sig_every = 4; /* reset after three WQEs of a signalling round */
	sq_fixture_start(f);
	bb_sq_enable(&f->sq, false);
	fresh = f->sq;
	bb_sq_enable(&f->sq, true);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(bb_sq_post_nop(&f->sq, i, 0), 0);
	bb_sq_ring(&f->sq);
	log_begin();
	assert_int_equal(bb_sq_refuse_arg(&f->sq, BB_REFUSED_SGE_LEN), -EINVAL);
	log_stop();
	assert_int_equal(bb_be32(f->dbrec[1]), 3);

	bb_sq_reset(&f->sq);
	assert_fields(*f, dbrec[1], 0, dbrec[0], 0x11111111);
	/* Except for the register half to use next, which belongs to the register. */
	fresh.own_offset = f->sq.own_offset;
	assert_memory_equal(&fresh, &f->sq, sizeof(fresh));
	log_begin();
	assert_int_equal(bb_sq_post_nop(&f->sq, 0, 0), -ENOTCONN);
	assert_int_equal(log_count("0xabcdef"), 1);
	bb_sq_enable(&f->sq, true);
	assert_int_equal(bb_sq_post_nop(&f->sq, 0, 0), 0);
	assert_int_equal(f->ring.p[2], 0); /* the index starts at 0 again */
}

T_SQ_CONF(16, test_init_refuses_bad_configurations)
{
	struct bb_sq_conf c;
	struct bb_sq sq, before;

	f->conf.depth = 4;
	f->conf.sig_every = 4;
	sq_fixture_start(f);
	memset(&sq, 0x5a, sizeof(sq));
	before = sq;
#define REFUSED(field_, value_)                                                                    \
	do {                                                                                       \
		c = f->conf;                                                                       \
		c.field_ = (value_);                                                               \
		log_begin();                                                                       \
		assert_int_equal(bb_sq_init(&sq, &c), -EINVAL);                                    \
		assert_int_equal(log_count("send queue"), 1);                                      \
		assert_memory_equal(&sq, &before, sizeof(sq));                                     \
	} while (0)
	REFUSED(buf, NULL);
	REFUSED(buf, f->ring.p + 16);
	REFUSED(wqes, NULL);
	REFUSED(dbrec, NULL);
	REFUSED(dbrec, (uint32_t *)(void *)((uintptr_t)&f->dbrec[0] + 2));
	REFUSED(reg, NULL);
	REFUSED(reg, (uint8_t *)f->reg + 4);
	REFUSED(blocks, 0);
	REFUSED(blocks, 12);
	REFUSED(blocks, 65536);
	REFUSED(qpn, 0x1000000);
	REFUSED(depth, 0);
	REFUSED(depth, 3); /* less than sig_every */
	REFUSED(sig_every, 0);
	REFUSED(sig_every, 5);
	REFUSED(max_sge, 62);
	REFUSED(max_sge, UINT32_MAX);
	REFUSED(max_sge, 15); /* 4 WQEs of 5 blocks do not fit into 16 */
	REFUSED(depth, 17);
	REFUSED(max_inline, 973);
	REFUSED(max_inline, UINT32_MAX);
	REFUSED(max_inline, 221);
	REFUSED(bf_size, 32);
	REFUSED(bf_size, 96);
	REFUSED(bf_size, 65536);
	REFUSED(db_mode, (enum bb_db_mode)2);
#undef REFUSED
#define ACCEPTED(field_, value_)                                                                   \
	do {                                                                                       \
		c = f->conf;                                                                       \
		c.field_ = (value_);                                                               \
		assert_int_equal(bb_sq_init(&sq, &c), 0);                                          \
	} while (0)
	ACCEPTED(max_sge, 14);
	ACCEPTED(max_sge, 0);
	ACCEPTED(max_inline, 220);
	ACCEPTED(max_inline, 0);
	ACCEPTED(bf_size, 0);
	ACCEPTED(qpn, 0xffffff);
	ACCEPTED(sig_every, 1);
	ACCEPTED(depth, 16);
#undef ACCEPTED
}

/* The largest ring: used blocks and the 16-bit index remain distinct. */
T_SQ_CONF(32768, test_largest_ring_keeps_indices_distinct)
{
	f->conf.sig_every = 32768;
	sq_fixture_start(f);
	for (uint32_t lap = 0; lap < 3; lap++) {
		for (uint32_t i = 0; i < 32768; i++)
			assert_int_equal(bb_sq_post_nop(&f->sq, i, 0), 0);
		assert_int_equal(bb_sq_post_nop(&f->sq, 0, 0), -EAGAIN);
		assert_int_equal(bb_sq_outstanding(&f->sq), 32768);
		assert_int_equal(bb_sq_complete(&f->sq, (uint16_t)(f->sq.pi - 1))->wr_id, 32767);
		assert_int_equal(bb_sq_outstanding(&f->sq), 0);
	}
}

/* The count of WQEs overflows 32 bits between two doorbells; the ring's index is unaffected. */
T_SQ_CONF(64, test_count_past_32_bits_keeps_the_index)
{
	const uint64_t start = (UINT64_C(7) << 32) - 20;

	f->conf.sig_every = 8;
	sq_fixture_start(f);
	for (uint32_t laps = 0; laps < 3; laps++) {
		uint64_t posted = start;

		f->sq.seq = f->sq.done = (uint32_t)start;
		f->sq.rung_seq = start;
		f->sq.sig_seq = f->sq.seq;
		for (uint32_t i = 0; i < 12; i++) {
			uint16_t at = f->sq.pi;

			for (uint32_t k = 0; k < 5; k++)
				assert_int_equal(bb_sq_post_nop(&f->sq, k, BB_SEND_SIGNALED), 0);
			assert_int_equal(f->sq.pi, (uint16_t)(at + 5));
			bb_sq_ring(&f->sq);
			posted += 5;
			assert_true(f->sq.rung_seq == posted);
			assert_fields(f->sq, seq, (uint32_t)posted, carry, 0);
			assert_int_equal(bb_be32(f->dbrec[1]), f->sq.pi);
			assert_int_equal(bb_sq_complete(&f->sq, (uint16_t)(at + 4))->seq,
					 (uint32_t)posted);
			assert_int_equal(bb_sq_outstanding(&f->sq), 0);
		}
		/* In the second lap the index overflows, too. */
		sq_fixture_seek(f, (uint16_t)(laps == 0 ? 65536 - 30 : 100));
	}
}

TEST_MAIN(0)
