/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Posts of the verbs driver that go to ibv_wr_*() without WQEs. They share order, room, states
 * and fates with posts that use WQEs. Also posts that were not rung.
 */
#include "../../fakes/log_catch.h"
#include "verbs_drv.h"
#include "verbs_fixture.h"

#define SIG BB_SEND_SIGNALED

static void
state_to(struct fixture *f, enum bb_qp_state state)
{
	struct bb_qp_attr attr = DEFAULTS(qp_attr);

	attr.state = state;
	assert_int_equal(bb_qp_modify(f->qp, &attr, BB_QP_STATE), 0);
}

/*
 * Nothing is sent before the doorbell; inline data is copied at the post; ibv_post_send() is not
 * used.
 */
T_ON(BB_QPT_RC, false, test_posts_are_sent_by_the_doorbell)
{
	struct bb_wc wc[4];
	uint8_t data[40];
	struct bb_sge sge = piece(f, FROM, 100);

	memset(data, 7, sizeof(data));
	assert_int_equal(bb_post_write(f->qp, 0, &sge, 1, TO, 1, SIG), 0);
	assert_int_equal(bb_post_write_inline(f->qp, 1, data, 40, TO + 200, 1, SIG), 0);
	sge.addr = TO + 300;
	assert_int_equal(bb_post_read(f->qp, 2, &sge, 1, FROM + 300, 1, SIG), 0);
	post_recv(f, 9);
	sge.addr = FROM;
	sge.len = 30;
	assert_int_equal(bb_post_send_imm(f->qp, 3, &sge, 1, 0x1234, SIG), 0);
	memset(data, 8, sizeof(data));
	assert_int_equal(null_dev.wr_ex, 0);
	assert_int_equal(mem[LEN], 0);
	assert_int_equal(bb_cq_poll(f->cq, wc, 4), 0);
	bb_qp_ring(f->qp);
	assert_fields(null_dev, wr_ex, 4, wr_plain, 0);
	assert_int_equal(bb_cq_poll(f->cq, wc, 3), 3);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(wc[i].wr_id, i);
	assert_fields(wc[2], opcode, BB_WC_RDMA_READ, byte_len, 100);
	take(f, wc, 2);
	assert_fields(wc[0], wr_id, 9, imm, 0x1234);
	assert_fields(wc[1], wr_id, 3, opcode, BB_WC_SEND);
	assert_int_equal(mem[LEN + 200], 7);
	assert_int_equal(mem[LEN + 239], 7);
	assert_memory_equal(mem + LEN + 300, mem + 300, 100);
}

/* Requests with and without WQEs in turn, in one doorbell and in several. */
T_ON(BB_QPT_RC, false, test_requests_with_and_without_wqes_keep_order)
{
	struct bb_sge sge, two[2];
	struct bb_wc wc[8];
	uint64_t i, n;

	sge = piece(f, FROM, 8);
	two[0] = sge;
	two[1] = piece(f, FROM + 64, 8);
	for (uint64_t round = 0; round < 64; round++) {
		for (n = 0; n < 7; n++) {
			const uint32_t flags = n == 6 || (round & n) != 0 ? SIG : 0;
			int ret;

			if ((round * 5 + n) % 3 == 0)
				ret = bb_post_write(f->qp, n, two, 2, TO, 1, flags);
			else if ((round + n) % 5 == 0)
				ret = bb_post_nop(f->qp, n, flags);
			else if ((round + n) % 7 == 0)
				ret = bb_post_write_inline(f->qp, n, mem, 60, TO, 1, flags);
			else
				ret = bb_post_write(f->qp, n, &sge, 1, TO, 1, flags);
			assert_int_equal(ret, 0);
			if ((round >> n & 1) != 0)
				bb_qp_ring(f->qp);
		}
		bb_qp_ring(f->qp);
		i = 0;
		for (n = 0; n < 7; n++)
			i += n == 6 || (round & n) != 0;
		take(f, wc, (unsigned int)i);
		for (n = 0, i = 0; n < 7; n++) {
			if (n != 6 && (round & n) == 0)
				continue;
			assert_int_equal(wc[i].wr_id, n);
			assert_int_equal(wc[i++].status, BB_WC_SUCCESS);
		}
	}
}

T_ON(BB_QPT_RC, false, test_nop_waits_for_earlier_doorbells_only)
{
	struct bb_wc wc[8];
	uint64_t i;
	struct bb_sge sge = piece(f, FROM, 8);

	for (uint64_t round = 0; round < 3; round++) {
		null_dev.hold = true;
		for (i = 0; i < 3; i++) {
			assert_int_equal(bb_post_write(f->qp, i, &sge, 1, TO, 1, SIG), 0);
			bb_qp_ring(f->qp);
		}
		for (; i < 5; i++) {
			assert_int_equal(bb_post_nop(f->qp, i, SIG), 0);
			bb_qp_ring(f->qp);
		}
		assert_int_equal(bb_cq_poll(f->cq, wc, 8), 0);
		null_release();
		assert_int_equal(bb_post_write(f->qp, i, &sge, 1, TO, 1, SIG), 0);
		bb_qp_ring(f->qp);
		/* Only the last one is held back. */
		take(f, wc, 5);
		for (i = 0; i < 5; i++) {
			assert_fields(wc[i], wr_id, i, status, BB_WC_SUCCESS);
		}
		null_dev.hold = false;
		null_release();
		take(f, wc, 1);
		assert_int_equal(wc[0].wr_id, 5);
	}
}

T_ON(BB_QPT_RC, false, test_direct_write_has_its_own_flags)
{
	struct bb_sge sge, two[2];
	struct bb_wc wc[4];

	sge = piece(f, FROM, 8);
	two[0] = sge;
	two[1] = piece(f, FROM + 64, 8);
	for (unsigned int front = 0; front < 5; front++) {
		for (unsigned int rung = 0; rung < 2; rung++) {
			bool told = front == 1 || front == 2;

			/* This WRITE starts the doorbell, unless an earlier request did. */
			assert_int_equal(bb_post_write(f->qp, 0, &sge, 1, TO, 1, SIG), 0);
			if (front == 0)
				assert_int_equal(bb_post_write(f->qp, 1, &sge, 1, TO, 1, 0), 0);
			else if (front == 1)
				assert_int_equal(
					bb_post_write_inline(f->qp, 1, mem, 60, TO, 1, SIG), 0);
			else if (front == 2)
				assert_int_equal(bb_post_read(f->qp, 1, &sge, 1, TO, 1, SIG), 0);
			else if (front == 3)
				assert_int_equal(bb_post_write(f->qp, 1, two, 2, TO, 1, 0), 0);
			else
				assert_int_equal(
					bb_post_write(f->qp, 1, &sge, 1, TO, 1, BB_SEND_FENCE), 0);
			if (rung != 0)
				bb_qp_ring(f->qp);
			assert_int_equal(bb_post_write(f->qp, 2, &sge, 1, TO, 1, SIG), 0);
			bb_qp_ring(f->qp);
			assert_int_equal(null_dev.send_flags, IBV_SEND_SIGNALED);
			take(f, wc, told ? 3 : 2);
			assert_int_equal(wc[told ? 2 : 1].wr_id, 2);
		}
	}
}

/* A doorbell may end with an unsignalled request; its end is still found. */
T_ON(BB_QPT_RC, false, test_doorbell_may_end_unsignalled)
{
	struct bb_wc wc;
	uint32_t i;
	struct bb_sge sge = piece(f, FROM, 8);

	for (i = 0; i < 3; i++)
		assert_int_equal(bb_post_write(f->qp, i, &sge, 1, TO, 1, 0), 0);
	bb_qp_ring(f->qp);
	assert_int_equal(null_dev.signaled, 0);
	assert_int_equal(bb_qp_drain(f->qp), -EAGAIN);
	assert_int_equal(bb_cq_poll(f->cq, &wc, 1), 0);
	assert_int_equal(bb_qp_drain(f->qp), 0);
	assert_int_equal(null_dev.wr_ex, 4);
	/* The last request is signalled, so no further one is needed. */
	one(f, bb_post_write(f->qp, 9, &sge, 1, TO, 1, SIG), 9, BB_WC_RDMA_WRITE);
	assert_int_equal(bb_qp_drain(f->qp), 0);
	assert_int_equal(bb_post_nop(f->qp, 10, SIG), 0);
	bb_qp_ring(f->qp);
	assert_int_equal(null_dev.wr_ex, 5);
	assert_int_equal(bb_cq_poll(f->cq, &wc, 1), 1);
	/* A SEND that no completion waits for is signalled: a peer need not accept WRITEs. */
	post_recv(f, 1);
	assert_int_equal(bb_post_send(f->qp, 11, &sge, 1, 0), 0);
	i = null_dev.signaled;
	bb_qp_ring(f->qp);
	assert_int_equal(null_dev.signaled, i + 1);
	assert_int_equal(bb_cq_poll(f->cq, &wc, 1), 1);
	assert_int_equal(wc.wr_id, 1);
	assert_int_equal(bb_cq_poll(f->cq, &wc, 1), 0);
}

/* A full queue gets room by a completion, also across the end of the ring. */
T_ON(BB_QPT_RC, false, test_full_queue_gets_room_by_a_completion)
{
	struct bb_wc wc[16];
	uint64_t i;
	struct bb_sge sge = piece(f, FROM, 8);

	for (uint64_t round = 0; round < 9; round++) {
		for (i = 0; i < 16; i++) {
			assert_int_equal(bb_post_write(f->qp, i, &sge, 1, TO, 1, SIG), 0);
			if (round % 2 != 0 || i % 5 == 0)
				bb_qp_ring(f->qp);
		}
		assert_int_equal(bb_post_write(f->qp, i, &sge, 1, TO, 1, SIG), -EAGAIN);
		assert_int_equal(bb_post_write_inline(f->qp, i, mem, 8, TO, 1, SIG), -EAGAIN);
		assert_int_equal(bb_post_nop(f->qp, i, SIG), -EAGAIN);
		bb_qp_ring(f->qp);
		assert_int_equal(bb_post_write(f->qp, i, &sge, 1, TO, 1, SIG), -EAGAIN);
		assert_int_equal(bb_cq_poll(f->cq, wc, 1), 1);
		assert_int_equal(bb_post_write(f->qp, 99, &sge, 1, TO, 1, SIG), 0);
		assert_int_equal(bb_post_write(f->qp, i, &sge, 1, TO, 1, SIG), -EAGAIN);
		bb_qp_ring(f->qp);
		take(f, wc, 16);
		assert_int_equal(wc[15].wr_id, 99);
	}
	/* Without polls the ring is never found full. */
	for (i = 0; i < 1000; i++) {
		assert_int_equal(bb_post_write(f->qp, i, &sge, 1, TO, 1, i % 37 == 0 ? SIG : 0), 0);
		if (i % 3 == 0)
			bb_qp_ring(f->qp);
		assert_true(bb_cq_poll(f->cq, wc, 16) <= 1);
		bb_qp_ring(f->qp);
		assert_true(bb_cq_poll(f->cq, wc, 16) <= 1);
	}
}

/* States that accept no posts, arguments that no state accepts, and posts that are not rung. */
T_F(test_posts_follow_the_state_of_the_qp)
{
	struct bb_sge sge;
	struct bb_wc wc[4];

	make(f, BB_QPT_RC, false, 0);
	sge = piece(f, FROM, 8);
	assert_int_equal(bb_post_write(f->qp, 1, &sge, 1, TO, 1, SIG), 0);
	assert_int_equal(bb_post_write(f->qp, 2, &sge, 1, TO, 1, 0), 0);
	state_to(f, BB_QP_RESET);
	assert_int_equal(bb_post_write(f->qp, 3, &sge, 1, TO, 1, SIG), -ENOTCONN);
	bb_qp_ring(f->qp);
	assert_int_equal(null_dev.wr_ex, 0);
	assert_int_equal(connect_to_itself(f->qp), 0);
	one(f, bb_post_write(f->qp, 4, &sge, 1, TO, 1, SIG), 4, BB_WC_RDMA_WRITE);
	assert_int_equal(null_dev.wr_ex, 1);
	sge.len = BB_WQE_MAX_SGE_LEN + 1;
	assert_int_equal(bb_post_write(f->qp, 5, &sge, 1, TO, 1, SIG), -EINVAL);
	sge.len = 0;
	one(f, bb_post_write(f->qp, 6, &sge, 1, TO, 1, SIG), 6, BB_WC_RDMA_WRITE);
	one(f, bb_post_write_inline(f->qp, 7, NULL, 0, TO, 1, SIG), 7, BB_WC_RDMA_WRITE);
	sge.len = 8;
	/* Posted before ERR and rung in it; posted in ERR. */
	assert_int_equal(bb_post_write(f->qp, 8, &sge, 1, TO, 1, 0), 0);
	state_to(f, BB_QP_ERR);
	assert_int_equal(bb_post_write(f->qp, 9, &sge, 1, TO, 1, SIG), 0);
	bb_qp_ring(f->qp);
	take(f, wc, 2);
	assert_fields(wc[0], wr_id, 8, status, BB_WC_WR_FLUSH_ERR);
	assert_fields(wc[1], wr_id, 9, status, BB_WC_WR_FLUSH_ERR);
	state_to(f, BB_QP_RESET);
	assert_int_equal(connect_to_itself(f->qp), 0);
	/* Pending until the QP is destroyed. */
	assert_int_equal(bb_post_write(f->qp, 10, &sge, 1, TO, 1, SIG), 0);
	fixture_free(f);
	null_reset();
	make(f, BB_QPT_UC, false, 0);
	sge = piece(f, FROM, 8);
	assert_int_equal(bb_post_read(f->qp, 1, &sge, 1, TO, 1, SIG), -EINVAL);
	one(f, bb_post_write(f->qp, 2, &sge, 1, TO, 1, SIG), 2, BB_WC_RDMA_WRITE);
}

/* The provider refuses a doorbell in which requests with WQEs follow direct ones. */
T_ON(BB_QPT_RC, false, test_refused_doorbell_fails_direct_and_wqe_requests)
{
	struct bb_sge sge, two[2];
	struct bb_wc wc[8];

	sge = piece(f, FROM, 8);
	two[0] = sge;
	two[1] = sge;
	one(f, bb_post_write(f->qp, 9, &sge, 1, TO, 1, SIG), 9, BB_WC_RDMA_WRITE);
	null_dev.bad_wr = 2;
	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(i < 2 ? bb_post_write(f->qp, i, &sge, 1, TO, 1, 0)
				       : bb_post_write(f->qp, i, two, 2, TO, 1, 0),
				 0);
	bb_qp_ring(f->qp);
	take(f, wc, 4);
	for (uint64_t i = 0; i < 4; i++) {
		assert_int_equal(wc[i].wr_id, i);
		assert_int_equal(wc[i].status, i == 0 ? BB_WC_LOC_QP_OP_ERR : BB_WC_WR_FLUSH_ERR);
	}
	assert_int_equal(null_dev.wr_ex, 1);
	/* Nothing more is passed to the provider until a reset. */
	assert_int_equal(bb_post_write(f->qp, 5, &sge, 1, TO, 1, 0), 0);
	bb_qp_ring(f->qp);
	take(f, wc, 1);
	assert_int_equal(null_dev.wr_ex, 1);
	state_to(f, BB_QP_RESET);
	assert_int_equal(connect_to_itself(f->qp), 0);
	one(f, bb_post_write(f->qp, 6, &sge, 1, TO, 1, SIG), 6, BB_WC_RDMA_WRITE);
}

/*
 * The provider refuses a doorbell without WQEs: after one without and one with WQEs, and after a
 * NOP. All earlier requests are known to be complete: no query is needed.
 */
T(test_refused_direct_doorbell_leaves_earlier_ones_complete)
{
	struct fixture f;
	struct bb_sge sge, two[2];
	struct bb_wc wc[8];

	for (uint64_t round = 0; round < 3; round++) {
		make(&f, BB_QPT_RC, false, 0);
		sge = piece(&f, FROM, 8);
		two[0] = sge;
		two[1] = sge;
		for (uint64_t i = 0; i < 5; i++)
			one(&f,
			    round == 1 && i == 4 ? bb_post_write(f.qp, i, two, 2, TO, 1, SIG)
						 : bb_post_write(f.qp, i, &sge, 1, TO, 1, SIG),
			    i, BB_WC_RDMA_WRITE);
		if (round == 2)
			one(&f, bb_post_nop(f.qp, 5, SIG), 5, BB_WC_NOP);
		bb_qp_ring(f.qp);
		null_dev.bad_wr = 2;
		for (uint64_t i = 10; i < 13; i++)
			assert_int_equal(bb_post_write(f.qp, i, &sge, 1, TO, 1, SIG), 0);
		bb_qp_ring(f.qp);
		take(&f, wc, 3);
		for (uint64_t i = 0; i < 3; i++) {
			assert_int_equal(wc[i].wr_id, 10 + i);
			assert_int_equal(wc[i].status,
					 i == 0 ? BB_WC_LOC_QP_OP_ERR : BB_WC_WR_FLUSH_ERR);
		}
		assert_fields(null_dev, wr_ex, 5, wr_plain, 0);
		fixture_free(&f);
		teardown(state);
		setup(state);
	}
}

/* A reset or destroy is refused: requests that were not rung end in error and are not lost. */
T(test_refused_reset_ends_unrung_requests_in_error)
{
	struct fixture f;
	struct bb_qp_attr attr = DEFAULTS(qp_attr);
	struct bb_sge sge;
	struct bb_wc wc[4];

	attr.state = BB_QP_RESET;
	for (int end = 0; end < 2; end++) {
		make(&f, BB_QPT_RC, false, 0);
		sge = piece(&f, FROM, 8);
		/* Nothing is outstanding, so the QP continues. */
		one(&f, bb_post_write(f.qp, 1, &sge, 1, TO, 1, SIG), 1, BB_WC_RDMA_WRITE);
		null_dev.fail_errno = EBUSY;
		null_dev.fail_at = 1;
		assert_int_equal(end ? bb_qp_destroy(f.qp) : bb_qp_modify(f.qp, &attr, BB_QP_STATE),
				 -EBUSY);
		one(&f, bb_post_write(f.qp, 2, &sge, 1, TO, 1, SIG), 2, BB_WC_RDMA_WRITE);
		for (uint64_t i = 3; i < 5; i++)
			assert_int_equal(bb_post_write(f.qp, i, &sge, 1, TO, 1, SIG), 0);
		null_dev.fail_at = 1;
		assert_int_equal(end ? bb_qp_destroy(f.qp) : bb_qp_modify(f.qp, &attr, BB_QP_STATE),
				 -EBUSY);
		assert_int_equal(bb_post_write(f.qp, 5, &sge, 1, TO, 1, SIG), 0);
		bb_qp_ring(f.qp);
		take(&f, wc, 3);
		for (uint64_t i = 3; i < 6; i++) {
			assert_int_equal(wc[i - 3].wr_id, i);
			assert_int_equal(wc[i - 3].status,
					 i == 3 ? BB_WC_LOC_QP_OP_ERR : BB_WC_WR_FLUSH_ERR);
		}
		assert_int_equal(null_dev.wr_ex, 2);
		state_to(&f, BB_QP_RESET);
		assert_int_equal(connect_to_itself(f.qp), 0);
		one(&f, bb_post_write(f.qp, 6, &sge, 1, TO, 1, SIG), 6, BB_WC_RDMA_WRITE);
		fixture_free(&f);
		teardown(state);
		setup(state);
	}
}

/* The count of requests passes 2^32 while rung, alone and in a batch. */
T(test_count_passes_2_to_the_32)
{
	struct fixture f;
	struct bb_sge sge;
	struct bb_wc wc[8];

	for (uint32_t ahead = 1; ahead < 4; ahead++) {
		struct verbs_qp *q;

		make(&f, BB_QPT_RC, false, 0);
		sge = piece(&f, FROM, 8);
		q = verbs_qp_of(f.qp);
		f.qp->sq.seq = f.qp->sq.done = q->done = 0u - ahead;
		f.qp->sq.rung_seq = f.qp->sq.seq;
		for (uint32_t i = 0; i < 3; i++)
			one(&f, bb_post_write(f.qp, i, &sge, 1, TO, 1, SIG), i, BB_WC_RDMA_WRITE);
		for (uint32_t i = 0; i < 5; i++)
			assert_int_equal(bb_post_write(f.qp, i, &sge, 1, TO, 1, SIG), 0);
		bb_qp_ring(f.qp);
		take(&f, wc, 5);
		assert_int_equal(wc[4].wr_id, 4);
		assert_true(f.qp->sq.rung_seq == (UINT64_C(1) << 32) + 8 - ahead);
		assert_int_equal(f.qp->sq.doorbells, 4);
		one(&f, bb_post_nop(f.qp, 9, SIG), 9, BB_WC_NOP);
		assert_int_equal(q->own[0].after_seq, 8 - ahead);
		fixture_free(&f);
		teardown(state);
		setup(state);
	}
}

/* A NOP after an unsignalled WRITE; the WRITE's doorbell crossed the wrap and has ended. */
T_ON(BB_QPT_RC, false, test_nop_waits_across_the_wrap)
{
	struct bb_wc wc;
	struct bb_sge sge = piece(f, FROM, 8);
	struct verbs_qp *q = verbs_qp_of(f->qp);

	f->qp->sq.seq = f->qp->sq.done = q->done = UINT32_MAX;
	f->qp->sq.rung_seq = UINT32_MAX;
	null_dev.hold = true;
	assert_int_equal(bb_post_write(f->qp, 1, &sge, 1, TO, 1, 0), 0);
	bb_qp_ring(f->qp);
	assert_int_equal(null_dev.wr_ex, 1);
	assert_int_equal(bb_post_nop(f->qp, 2, SIG), 0);
	bb_qp_ring(f->qp);
	assert_int_equal(bb_cq_poll(f->cq, &wc, 1), 0);
	null_dev.hold = false;
	null_release();
	take(f, &wc, 1);
	assert_fields(wc, wr_id, 2, status, BB_WC_SUCCESS);
}

/* The provider may have seen the post: it cannot be taken back, and is sent with the doorbell. */
T_ON(BB_QPT_RC, false, test_abort_is_refused)
{
	struct bb_sge sge = piece(f, FROM, 8);

	assert_int_equal(bb_post_write(f->qp, 1, &sge, 1, TO, 1, SIG), 0);
	assert_logged(bb_qp_abort(f->qp), -ENOTSUP, "cannot withdraw posted requests");
	one(f, 0, 1, BB_WC_RDMA_WRITE);
}

TEST_MAIN(bare_eal_init() < 0 ? 1 : 0)
