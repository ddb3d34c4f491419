/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Datagrams, masked atomics, inline data of several pieces: bytes, wraps, rejected posts. Also
 * each cell of the tables in man ibv_post_send.
 */
#include "bb_rq.h"
#include "bb_sq_ud.h"
#include "bb_sq_umr.h"
#include "bb_srqring.h"
#include "sq_fixture.h"

#define RADDR 0x1122334455667788ull
#define RKEY  0x99aabbccu
#define IMM   0x04030201u /* on the wire: 01 02 03 04 */
#define QKEY  0x80c0ffeeu
#define DEST  0x123456u

static struct bb_wqe_av
some_av(void)
{
	struct bb_wqe_av av;

	for (unsigned int i = 0; i < sizeof(av); i++)
		((uint8_t *)&av)[i] = (uint8_t)(0x40 + i);
	av.qkey = 0;
	av.dest_qpn = 0;
	return av;
}

static void
put_av(struct bytes *e, const struct bb_wqe_av *av)
{
	put32(e, QKEY);
	put_mem(e, &av->rsvd4, 4);
	put32(e, 0x80000000u | DEST);
	put_mem(e, (const uint8_t *)av + 12, 36);
}

static void
ud_start(struct sq_fixture *f, uint32_t blocks)
{
	sq_fixture_conf(f, blocks);
	f->conf.type = BB_QPT_UD;
	f->conf.max_sge = 8;
	f->conf.max_inline = 124;
	f->conf.depth = blocks / 3;
	sq_fixture_start(f);
}

#define T_START(blocks, name)                                                                      \
	TEST_ON(NULL, NULL, struct sq_fixture, ud_start(f, blocks), sq_fixture_end(f), name)

/* A QP that the device moved from RTR to ERR accepts datagrams, to flush them. */
T_OWN_SQ(test_datagrams_are_accepted_in_err)
{
	const struct bb_wqe_av av = some_av();
	const struct bb_sge sge = {0x1000, 8, 5};

	for (unsigned int i = 0; i < 3; i++) {
		int ret;

		ud_start(f, 32);
		bb_sq_enable(&f->sq, false);
		assert_int_equal(
			bb_sq_post_ud(&f->sq, BB_WQE_SEND, 1, &av, DEST, QKEY, &sge, 1, 0, 0),
			-ENOTCONN);
		__atomic_store_n(&f->sq.error, 1, __ATOMIC_RELAXED);
		if (i == 0)
			ret = bb_sq_post_ud(&f->sq, BB_WQE_SEND, 1, &av, DEST, QKEY, &sge, 1, 0, 0);
		else if (i == 1)
			ret = bb_sq_post_ud_inline(&f->sq, BB_WQE_SEND, 1, &av, DEST, QKEY, "data",
						   4, 0, 0);
		else
			ret = bb_sq_post_ud_inline_list(&f->sq, BB_WQE_SEND, 1, &av, DEST, QKEY,
							NULL, 0, 0, 0);
		assert_int_equal(ret, 0);
		assert_int_equal(bb_sq_outstanding(&f->sq), 1);
		sq_fixture_end(f);
	}
}

/* A WQE of one to three blocks at every slot of the ring. */
T_START(16, test_datagram_wqe_wraps_at_the_ring_end)
{
	const struct bb_wqe_av av = some_av();
	struct bb_sge sge[8];

	for (uint32_t i = 0; i < 8; i++)
		sge[i] = (struct bb_sge){0xa000 + i, i == 3 ? 0 : 10 + i, 0x100 + i};
	for (uint32_t n = 0; n <= 8; n++) {
		for (uint16_t at = 0; at < 16; at++) {
			struct bytes e = {.len = 0};
			uint16_t pi;

			sq_fixture_seek(f, (uint16_t)((f->sq.pi & ~15u) + 16 + at));
			pi = (uint16_t)f->sq.pi;
			assert_int_equal(bb_sq_post_ud(&f->sq, 0x0b, 5, &av, DEST, QKEY, sge, n,
						       IMM, BB_SEND_SIGNALED | BB_SEND_SOLICITED),
					 0);
			put_ctrl(&e, pi, 0x0b, 4 + n - (n > 3), 0x0a, IMM);
			put_av(&e, &av);
			for (uint32_t i = 0; i < n; i++)
				if (i != 3)
					put_data(&e, sge[i].len, sge[i].lkey, sge[i].addr);
			sq_expect(f, pi, &e);
			bb_sq_complete(&f->sq, pi);
		}
	}
}

T_START(16, test_inline_pieces_are_gathered)
{
	const struct bb_wqe_av av = some_av();
	uint8_t data[125];

	for (uint32_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i + 1);
	for (uint32_t len = 0; len <= 124; len++) {
		/* The data in one piece, and in three pieces with an empty one among them. */
		const struct bb_sge sge[4] = {
			{(uintptr_t)data, len / 3, 1},
			{0, 0, 2},
			{(uintptr_t)data + len / 3, len / 2, 3},
			{(uintptr_t)data + len / 3 + len / 2, len - len / 3 - len / 2, 4}};

		for (uint16_t at = 13; at < 16 + 2; at++) {
			struct bytes e = {.len = 0};
			uint16_t pi;

			sq_fixture_seek(f, (uint16_t)((f->sq.pi & ~15u) + 16 + at));
			pi = (uint16_t)f->sq.pi;
			if (at % 2 == 0)
				assert_int_equal(bb_sq_post_ud_inline(&f->sq, 0x0a, 5, &av, DEST,
								      QKEY, data, len, 0,
								      BB_SEND_SIGNALED),
						 0);
			else
				assert_int_equal(bb_sq_post_ud_inline_list(&f->sq, 0x0a, 5, &av,
									   DEST, QKEY, sge, 4, 0,
									   BB_SEND_SIGNALED),
						 0);
			put_ctrl(&e, pi, 0x0a, 4 + bb_wqe_inline_ds(len), 0x08, 0);
			put_av(&e, &av);
			if (len != 0) {
				put32(&e, 0x80000000u | len);
				put_mem(&e, data, len);
			}
			sq_expect(f, pi, &e);
			bb_sq_complete(&f->sq, pi);
		}
	}
	assert_int_equal(bb_sq_post_ud_inline(&f->sq, 0x0a, 5, &av, DEST, QKEY, data, 125, 0, 0),
			 -EINVAL);
}

T_SQ_CONF(8, test_inline_list_with_remote_address_wraps)
{
	uint8_t data[200];

	f->conf.max_inline = 200;
	f->conf.depth = 2;
	sq_fixture_start(f);
	for (uint32_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i + 1);
	for (uint32_t len = 0; len <= sizeof(data); len += 7) {
		for (uint16_t at = 5; at < 8; at++) {
			for (uint32_t cut = 0; cut <= len; cut += 5) {
				const struct bb_sge sge[2] = {
					{(uintptr_t)data, cut, 0xbad},
					{(uintptr_t)data + cut, len - cut, 0xbad}};
				struct bytes e = {.len = 0};
				uint16_t pi;

				sq_fixture_seek(f, (uint16_t)((f->sq.pi & ~7u) + 8 + at));
				pi = (uint16_t)f->sq.pi;
				assert_int_equal(bb_sq_post_inline_list(&f->sq, 0x09, true, 1, sge,
									2, RADDR, RKEY, IMM,
									BB_SEND_SIGNALED),
						 0);
				put_ctrl(&e, pi, 0x09, 2 + bb_wqe_inline_ds(len), 0x08, IMM);
				put_raddr(&e, RADDR, RKEY);
				if (len != 0) {
					put32(&e, 0x80000000u | len);
					put_mem(&e, data, len);
				}
				sq_expect(f, pi, &e);
				bb_sq_complete(&f->sq, pi);
			}
		}
	}
}

T_SQ(8, test_masked_atomic_wqes_have_their_masks)
{
	const struct bb_sge four = {0xa000, 4, 0x11}, eight = {0xb000, 8, 0x22};

	for (uint16_t at = 0; at < 8; at++) {
		const struct {
			uint8_t opcode;
			const struct bb_sge *sge;
			uint32_t ds;
		} c[] = {{0x14, &four, 4}, {0x14, &eight, 5}, {0x15, &four, 4}, {0x15, &eight, 4}};

		for (unsigned int i = 0; i < 4; i++) {
			struct bytes e = {.len = 0};
			uint16_t pi;

			sq_fixture_seek(f, (uint16_t)((f->sq.pi & ~7u) + 8 + at));
			pi = (uint16_t)f->sq.pi;
			assert_int_equal(bb_sq_post_masked(&f->sq, c[i].opcode, 1, c[i].sge, 0x1000,
							   RKEY, 0x0101010101010101,
							   0x0202020202020202, 0x0303030303030303,
							   0x0404040404040404, BB_SEND_SIGNALED),
					 0);
			put32(&e, (uint32_t)(c[i].sge->len == 8 ? 9 : 8) << 24 | (uint32_t)pi << 8 |
					  c[i].opcode);
			put32(&e, SQ_QPN << 8 | c[i].ds);
			put32(&e, 0x08);
			put32(&e, 0);
			put_raddr(&e, 0x1000, RKEY);
			if (c[i].sge->len == 8) {
				put64(&e, 0x0101010101010101);
				put64(&e, 0x0202020202020202);
				if (c[i].opcode == 0x14) {
					put64(&e, 0x0303030303030303);
					put64(&e, 0x0404040404040404);
				}
			} else {
				put32(&e, 0x01010101);
				put32(&e, 0x02020202);
				put32(&e, 0x03030303);
				put32(&e, 0x04040404);
			}
			put_data(&e, c[i].sge->len, c[i].sge->lkey, c[i].sge->addr);
			sq_expect(f, pi, &e);
			assert_int_equal(f->sq.pi, (uint16_t)(pi + bb_wqe_blocks(c[i].ds)));
			bb_sq_complete(&f->sq, pi);
			assert_int_equal(bb_sq_outstanding(&f->sq), 0);
		}
	}
}

/*
 * A request that the QP type does not have is rejected before anything is written, whatever the
 * queue's state.
 */
TEST(test_request_of_another_type_is_refused_unwritten)
{
	const struct bb_wqe_av av = some_av();
	const struct bb_sge sge = {0xa000, 8, 1};

	for (unsigned int type = BB_QPT_RC; type <= BB_QPT_UD; type++) {
		struct sq_fixture f;
		uint8_t before[8 * 64];
		bool msg = type != BB_QPT_UD, rd = type == BB_QPT_RC, ud = type == BB_QPT_UD;

		sq_fixture_conf(&f, 8);
		f.conf.type = type;
		f.conf.max_sge = 1;
		f.conf.max_inline = 12;
		f.conf.depth = 4;
		sq_fixture_start(&f);
		for (unsigned int round = 0; round < 3; round++) {
			int yes = round == 0 ? 0 : -EAGAIN;
			int no = round == 2 ? -ENOTCONN : -EINVAL;

			if (round == 1)
				for (unsigned int i = 0; i < 4; i++)
					assert_int_equal(bb_sq_post_nop(&f.sq, 0, 0), 0);
			if (round == 2) {
				bb_sq_enable(&f.sq, false);
				yes = -ENOTCONN;
			}
			memcpy(before, f.ring.p, sizeof(before));
#define TRY(ok, call)                                                                              \
	do {                                                                                       \
		uint32_t was_ = f.sq.seq;                                                          \
		uint16_t pi_ = (uint16_t)f.sq.pi;                                                  \
		int ret_ = (call);                                                                 \
		assert_int_equal(ret_, (ok) ? yes : no);                                           \
		assert_int_equal(f.sq.seq, was_ + (ret_ == 0));                                    \
		if (ret_ == 0)                                                                     \
			bb_sq_complete(&f.sq, pi_);                                                \
		else                                                                               \
			assert_memory_equal(before, f.ring.p, sizeof(before));                     \
		memcpy(before, f.ring.p, sizeof(before));                                          \
	} while (0)
			TRY(msg, bb_sq_post_sgl(&f.sq, 0x0a, false, 1, &sge, 1, 0, 0, 0, 0));
			TRY(msg, bb_sq_post_sgl(&f.sq, 0x08, true, 1, &sge, 1, 0, 0, 0, 0));
			TRY(msg, bb_sq_post_sgl(&f.sq, 0x08, true, 1, NULL, 0, 0, 0, 0, 0));
			TRY(rd, bb_sq_post_sgl(&f.sq, 0x10, true, 1, &sge, 1, 0, 0, 0, 0));
			TRY(rd, bb_sq_post_sgl(&f.sq, 0x10, true, 1, NULL, 0, 0, 0, 0, 0));
			TRY(msg, bb_sq_post_inline(&f.sq, 0x0a, false, 1, "x", 1, 0, 0, 0, 0));
			TRY(msg,
			    bb_sq_post_inline_list(&f.sq, 0x0a, false, 1, NULL, 0, 0, 0, 0, 0));
			TRY(rd, bb_sq_post_atomic(&f.sq, 0x11, 1, &sge, 0, 0, 0, 0, 0));
			TRY(rd, bb_sq_post_masked(&f.sq, 0x15, 1, &sge, 0, 0, 0, 0, 0, 0, 0));
			TRY(ud, bb_sq_post_ud(&f.sq, 0x0a, 1, &av, 1, 1, &sge, 1, 0, 0));
			TRY(ud, bb_sq_post_ud_inline(&f.sq, 0x0a, 1, &av, 1, 1, "x", 1, 0, 0));
			TRY(ud,
			    bb_sq_post_ud_inline_list(&f.sq, 0x0a, 1, &av, 1, 1, NULL, 0, 0, 0));
			TRY(true, bb_sq_post_nop(&f.sq, 1, 0));
#undef TRY
		}
		sq_fixture_end(&f);
	}
}

T_SQ_CONF(8, test_signal_all_requests_a_cqe_for_every_wqe)
{
	f->conf.signal_all = true;
	sq_fixture_start(f);
	for (unsigned int i = 0; i < 40; i++) {
		uint16_t at = (uint16_t)f->sq.pi;
		const struct bb_sq_wqe *w;

		assert_int_equal(
			bb_sq_post_nop(&f->sq, i, i % 3 == 0 ? BB_SEND_SIGNALED : BB_SEND_FENCE),
			0);
		assert_int_equal(f->ring.p[(at & 7) * 64 + 11] & 0x0c, 0x08);
		w = bb_sq_complete(&f->sq, at);
		assert_int_equal(w->wr_id, i);
		assert_int_equal(w->flags & BB_SEND_SIGNALED, BB_SEND_SIGNALED);
	}
	f->conf.sig_every = 2;
	assert_int_equal(bb_sq_init(&f->sq, &f->conf), -EINVAL);
	f->conf.sig_every = 1;
	f->conf.type = (enum bb_qp_type)3;
	assert_int_equal(bb_sq_init(&f->sq, &f->conf), -EINVAL);
}

/* Man ibv_post_send: opcodes by service type, and which flags go with which. */
TEST(test_only_opcodes_and_flags_of_the_man_page_are_accepted)
{
	static const struct {
		enum bb_wr_opcode op;
		bool ud, uc, rc, inl, solicited;
		uint8_t wqe;
	} man[] = {
		{BB_WR_SEND, true, true, true, true, true, 0x0a},
		{BB_WR_SEND_WITH_IMM, true, true, true, true, true, 0x0b},
		{BB_WR_RDMA_WRITE, false, true, true, true, false, 0x08},
		{BB_WR_RDMA_WRITE_WITH_IMM, false, true, true, true, true, 0x09},
		{BB_WR_RDMA_READ, false, false, true, false, false, 0x10},
		{BB_WR_ATOMIC_CMP_AND_SWP, false, false, true, false, false, 0x11},
		{BB_WR_ATOMIC_FETCH_AND_ADD, false, false, true, false, false, 0x12},
		{BB_WR_MASKED_CMP_AND_SWP, false, false, true, false, false, 0x14},
		{BB_WR_MASKED_FETCH_AND_ADD, false, false, true, false, false, 0x15},
		{BB_WR_LOCAL_INV, false, true, true, false, false, 0x25},
		{BB_WR_BIND_MW, false, true, true, false, false, 0x25},
		{BB_WR_SEND_WITH_INV, false, true, true, true, true, 0x01},
	};
	static const enum bb_wr_opcode none[] = {BB_WR_TSO, BB_WR_DRIVER1, BB_WR_FLUSH,
						 BB_WR_ATOMIC_WRITE};

	assert_int_equal(sizeof(man) / sizeof(man[0]) + 4, BB_WR_OPCODES);
	for (unsigned int i = 0; i < sizeof(man) / sizeof(man[0]); i++) {
		const bool types[] = {man[i].rc, man[i].uc, man[i].ud};

		assert_int_equal(bb_wr_wqe_opcode(man[i].op), man[i].wqe);
		assert_string_not_equal(bb_wr_opcode_name(man[i].op), "?");
		for (unsigned int type = BB_QPT_RC; type <= BB_QPT_UD; type++) {
			int ok = types[type] ? 0 : -EINVAL;

			assert_int_equal(bb_wr_check(type, man[i].op, 0), ok);
			assert_int_equal(bb_wr_check(type, man[i].op, BB_SEND_SIGNALED), ok);
			assert_int_equal(bb_wr_check(type, man[i].op, BB_SEND_INLINE),
					 man[i].inl ? ok : -EINVAL);
			assert_int_equal(bb_wr_check(type, man[i].op, BB_SEND_SOLICITED),
					 man[i].solicited ? ok : -EINVAL);
			assert_int_equal(bb_wr_check(type, man[i].op, BB_SEND_FENCE),
					 type == BB_QPT_RC ? ok : -EINVAL);
			assert_int_equal(bb_wr_check(type, man[i].op, BB_SEND_SMALL_FENCE), ok);
			assert_int_equal(
				bb_wr_check(type, man[i].op, BB_SEND_FENCE | BB_SEND_SMALL_FENCE),
				-EINVAL);
			assert_int_equal(bb_wr_check(type, man[i].op, 1u << 30), -EINVAL);
		}
	}
	for (unsigned int i = 0; i < 4; i++)
		for (unsigned int type = BB_QPT_RC; type <= BB_QPT_UD; type++)
			assert_int_equal(bb_wr_check(type, none[i], 0), -ENOTSUP);
	assert_int_equal(bb_wr_check((enum bb_qp_type)3, BB_WR_SEND, 0), -EINVAL);
	assert_int_equal(bb_wr_check(BB_QPT_RC, BB_WR_OPCODES, 0), -EINVAL);
	assert_string_equal(bb_wr_opcode_name(BB_WR_OPCODES), "?");
	assert_string_equal(bb_qp_type_name(BB_QPT_UC), "UC");
	assert_string_equal(bb_qp_type_name((enum bb_qp_type)3), "?");
}

/*
 * The count is checked first. The list may be shorter than the count, and here ends at a page
 * that faults.
 */
TEST(test_too_long_list_is_refused_unread)
{
	const struct bb_wqe_av av = some_av();
	struct guarded page = guarded_alloc(sizeof(struct bb_sge), false);
	struct bb_srqring srq = {.max_sge = 1};
	struct bb_rq rq = {.max_sge = 1, .depth = 1};
	struct bb_sge *sge = (struct bb_sge *)(void *)page.p;
	static const uint32_t counts[] = {9, 1000, UINT32_MAX};
	struct sq_fixture f, ud;

	*sge = (struct bb_sge){0x1000, 125, 5};
	sq_fixture_conf(&f, 32);
	f.conf.max_sge = 8;
	f.conf.max_inline = 124;
	sq_fixture_start(&f);
	ud_start(&ud, 32);
	log_begin();
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		const uint32_t n = counts[i];

		assert_int_equal(
			bb_sq_post_ud(&ud.sq, BB_WQE_SEND, 1, &av, DEST, QKEY, sge, n, 0, 0),
			-EINVAL);
		assert_int_equal(bb_sq_post_ud_inline_list(&ud.sq, BB_WQE_SEND, 1, &av, DEST, QKEY,
							   sge, n, 0, 0),
				 -EINVAL);
		assert_int_equal(bb_sq_post_sgl(&f.sq, BB_WQE_SEND, false, 1, sge, n, 0, 0, 0, 0),
				 -EINVAL);
		assert_int_equal(
			bb_sq_post_sgl(&f.sq, BB_WQE_RDMA_READ, true, 1, sge, n, 0, 0, 0, 0),
			-EINVAL);
		assert_int_equal(
			bb_sq_post_inline_list(&f.sq, BB_WQE_SEND, false, 1, sge, n, 0, 0, 0, 0),
			-EINVAL);
		assert_int_equal(bb_rq_post(&rq, 1, sge, n), -EINVAL);
		assert_int_equal(bb_srqring_post(&srq, 1, sge, n), -EINVAL);
	}
	assert_int_equal(bb_sq_post_mkey_list(&f.sq, 1, 0, 0, sge, 53, 0), -EINVAL);
	log_count("max_sge");
	assert_int_equal(f.sq.seq + ud.sq.seq, 0);
	sq_fixture_end(&f);
	sq_fixture_end(&ud);
	guarded_free(&page);
}

TEST_MAIN(0)
