/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The verbs driver on the null provider: how a request is translated for libibverbs - flags,
 * binds - and requests that cannot be translated, by each posting API.
 */
#include "../../fakes/log_catch.h"
#include "verbs_drv.h"
#include "verbs_fixture.h"

#define SIG BB_SEND_SIGNALED

/* ---- Flags */

enum verb {
	WRITE,
	WRITE_TWO, /* two pieces */
	WRITE_INLINE,
	WRITE_IMM,
	READ,
	SEND,
	SEND_INLINE,
	SEND_INV,
	FETCH_ADD,
	LOCAL_INV,
	VERBS
};

static bool
wants_receive(enum verb v)
{
	return v == WRITE_IMM || v == SEND || v == SEND_INLINE || v == SEND_INV;
}

static int
post(struct fixture *f, enum verb v, uint32_t flags)
{
	const struct bb_sge sge[2] = {piece(f, FROM, 8), piece(f, FROM + 64, 8)};

	switch (v) {
	case WRITE:
	case WRITE_TWO:
		return bb_post_write(f->qp, 1, sge, v == WRITE ? 1 : 2, TO, 9, flags);
	case WRITE_INLINE:
		return bb_post_write_inline(f->qp, 1, mem, 8, TO, 9, flags);
	case WRITE_IMM:
		return bb_post_write_imm(f->qp, 1, sge, 1, TO, 9, 3, flags);
	case READ:
		return bb_post_read(f->qp, 1, sge, 1, TO, 9, flags);
	case SEND:
		return bb_post_send(f->qp, 1, sge, 1, flags);
	case SEND_INLINE:
		return bb_post_send_inline(f->qp, 1, mem, 8, flags);
	case SEND_INV:
		return bb_post_send_inv(f->qp, 1, sge, 1, 0x1200, flags);
	case FETCH_ADD:
		return bb_post_fetch_add(f->qp, 1, sge, TO, 9, 1, flags);
	default:
		return bb_post_local_inv(f->qp, 1, 0x1200, flags);
	}
}

static const struct {
	uint32_t ours;
	unsigned int theirs;
} flags_of[] = {
	{0, 0},
	{BB_SEND_SOLICITED, IBV_SEND_SOLICITED},
	{BB_SEND_FENCE, IBV_SEND_FENCE},
	{BB_SEND_FENCE | BB_SEND_SOLICITED, IBV_SEND_FENCE | IBV_SEND_SOLICITED},
};

/* Each flag of each request; flags of the previous request do not leak. */
T_KINDS(BB_QPT_RC, false, test_flags_do_not_leak_to_the_next_request)
{
	struct bb_wc wc[4];
	size_t before;

	for (size_t v = 0; v < VERBS; v++) {
		const unsigned int data =
			v == WRITE_INLINE || v == SEND_INLINE ? IBV_SEND_INLINE : 0;

		for (size_t i = 0; i < 16; i++) {
			before = i / 4;
			if (wants_receive(v)) {
				post_recv(f, 7);
				post_recv(f, 8);
			}
			assert_int_equal(post(f, v, flags_of[before].ours), 0);
			assert_int_equal(post(f, v, SIG | flags_of[i % 4].ours), 0);
			bb_qp_ring(f->qp);
			assert_int_equal(null_dev.send_flags,
					 IBV_SEND_SIGNALED | data | flags_of[i % 4].theirs);
			assert_int_equal(bb_cq_poll(f->cq, wc, 4), wants_receive(v) ? 3 : 1);
		}
	}
}

/* ---- Binds */

static int
bind_any(struct fixture *f, uint64_t wr_id, struct bb_mw *mw, uint32_t flags)
{
	if (mw->type == BB_MW_TYPE_1)
		return bb_mw_bind(f->qp, wr_id, mw, f->mr, FROM, 64, BB_ACCESS_REMOTE_WRITE, flags);
	return bb_post_bind_mw(f->qp, wr_id, mw, bb_inc_rkey(mw->rkey), f->mr, FROM, 64,
			       BB_ACCESS_REMOTE_WRITE, flags);
}

T_KINDS(BB_QPT_RC, false, test_bind_passes_window_and_rights)
{
	static const struct {
		uint32_t ours;
		unsigned int theirs;
	} rights[] = {
		{BB_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_READ},
		{BB_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_WRITE},
		{BB_ACCESS_REMOTE_ATOMIC, IBV_ACCESS_REMOTE_ATOMIC},
		{BB_ACCESS_REMOTE_READ | BB_ACCESS_ZERO_BASED,
		 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED},
	};
	const struct ibv_mw_bind_info *b = &null_dev.bind;
	struct bb_mw *mw[2];
	uint32_t key;

	assert_int_equal(bb_mw_alloc(f->pd, BB_MW_TYPE_1, &mw[0]), 0);
	assert_int_equal(bb_mw_alloc(f->pd, BB_MW_TYPE_2, &mw[1]), 0);
	assert_int_not_equal(mw[0]->rkey >> 8, mw[1]->rkey >> 8);
	for (size_t i = 0; i < 2 * RTE_DIM(rights); i++) {
		const uint32_t access = rights[i / 2].ours;

		if ((access & BB_ACCESS_ZERO_BASED) != 0 && i % 2 == 0)
			continue;
		key = bb_inc_rkey(mw[1]->rkey);
		one(f,
		    i % 2 == 0 ? bb_mw_bind(f->qp, 1, mw[0], f->mr, FROM + 64, 128, access, SIG)
			       : bb_post_bind_mw(f->qp, 1, mw[1], key, f->mr, FROM + 64, 128,
						 access, SIG),
		    1, BB_WC_BIND_MW);
		assert_fields(*b, mr->lkey, f->mr->lkey, addr, FROM + 64, length, 128);
		assert_int_equal(b->mw_access_flags, rights[i / 2].theirs);
		if (i % 2 == 0) {
			one(f, bb_mw_bind(f->qp, 2, mw[0], NULL, 0, 0, 0, SIG), 2, BB_WC_BIND_MW);
			assert_int_equal(b->addr + b->length + b->mw_access_flags, 0);
		} else {
			one(f, bb_post_local_inv(f->qp, 2, key, SIG), 2, BB_WC_LOCAL_INV);
		}
	}
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(bb_mw_free(mw[i]), 0);
}

/* Posts around binds of @mw, rings, and checks that nothing executed before the doorbell. */
static void
bind_among_writes(struct fixture *f, struct bb_mw *mw)
{
	const struct bb_sge sge = piece(f, FROM, 8);
	struct bb_wc wc[6];
	uint32_t rkey;

	null_dev.bind_rkey = 0;
	memset(&mem[LEN], 0, 64);
	assert_int_equal(bb_post_write(f->qp, 1, &sge, 1, TO, 9, 0), 0);
	assert_int_equal(bind_any(f, 2, mw, SIG), 0);
	assert_int_equal(bb_post_write(f->qp, 3, &sge, 1, TO + 8, 9, SIG), 0);
	assert_int_equal(bind_any(f, 4, mw, 0), 0);
	assert_int_equal(bb_post_nop(f->qp, 5, SIG), 0);
	assert_int_equal(bb_post_write(f->qp, 6, &sge, 1, TO + 16, 9, SIG), 0);
	rkey = mw->rkey;
	assert_int_equal(null_dev.bind_rkey, 0);
	assert_int_equal(mem[LEN] | mem[LEN + 8] | mem[LEN + 16], 0);
	assert_int_equal(bb_cq_poll(f->cq, wc, 6), 0);
	bb_qp_ring(f->qp);
	take(f, wc, 4);
	assert_int_equal(wc[0].wr_id, 2);
	assert_int_equal(wc[0].opcode, BB_WC_BIND_MW);
	assert_int_equal(wc[1].wr_id, 3);
	assert_int_equal(wc[2].wr_id, 5);
	assert_int_equal(wc[2].opcode, BB_WC_NOP);
	assert_int_equal(wc[3].wr_id, 6);
	assert_int_equal(wc[3].status, BB_WC_SUCCESS);
	assert_int_equal(null_dev.bind_rkey, rkey);
	assert_memory_equal(&mem[LEN], mem, 8);
	assert_memory_equal(&mem[LEN + 16], mem, 8);
}

/* Binds and later requests execute at the doorbell, in the order of the posts. */
T_KINDS(BB_QPT_RC, false, test_bind_waits_for_the_doorbell)
{
	const struct bb_sge sge = piece(f, FROM, 8);
	const bool extended = verbs_qp_of(f->qp)->ex != NULL;
	struct bb_mw *mw;

	for (uint32_t type = BB_MW_TYPE_1; type <= BB_MW_TYPE_2; type++) {
		assert_int_equal(bb_mw_alloc(f->pd, (enum bb_mw_type)type, &mw), 0);
		/* The second doorbell comes after one with binds and one without. */
		for (int i = 0; i < 2; i++) {
			null_dev.wr_ex = 0;
			bind_among_writes(f, mw);
			/* A type 1 bind holds back all later requests of its doorbell. */
			if (extended && type == BB_MW_TYPE_1)
				assert_int_equal(null_dev.wr_ex, 1);
			one(f, bb_post_write(f->qp, 7, &sge, 1, TO, 9, SIG), 7, BB_WC_RDMA_WRITE);
		}
		assert_int_equal(bb_mw_free(mw), 0);
	}
}

/* A reset drops the binds and requests that were not rung, and the queue works afterwards. */
T_KINDS(BB_QPT_RC, false, test_bind_dropped_by_reset)
{
	const struct bb_sge sge = piece(f, FROM, 8);
	const bool extended = verbs_qp_of(f->qp)->ex != NULL;
	struct bb_qp_attr attr;
	struct bb_mw *mw;

	assert_int_equal(bb_mw_alloc(f->pd, BB_MW_TYPE_1, &mw), 0);
	assert_int_equal(bb_post_write(f->qp, 1, &sge, 1, TO, 9, SIG), 0);
	assert_int_equal(bind_any(f, 2, mw, SIG), 0);
	assert_int_equal(bb_post_write(f->qp, 3, &sge, 1, TO + 8, 9, SIG), 0);
	bb_qp_attr_init(&attr);
	attr.state = BB_QP_RESET;
	assert_int_equal(bb_qp_modify(f->qp, &attr, BB_QP_STATE), 0);
	assert_int_equal(connect_to_itself(f->qp), 0);
	one(f, bb_post_write(f->qp, 4, &sge, 1, TO + 16, 9, SIG), 4, BB_WC_RDMA_WRITE);
	assert_int_equal(null_dev.wr_ex + null_dev.wr_plain, 1);
	assert_int_equal(null_dev.wr_ex, extended);
	assert_int_equal(mem[LEN] | mem[LEN + 8], 0);
	/* The window outlives a bind that its QP never rings. */
	assert_int_equal(bind_any(f, 5, mw, SIG), 0);
	assert_int_equal(bb_qp_destroy(f->qp), 0);
	f->qp = NULL;
	assert_int_equal(bb_mw_free(mw), 0);
}

/* Of unsignalled requests, only the last of a doorbell is signalled at the provider. */
T_KINDS(BB_QPT_RC, false, test_unsignalled_at_the_provider)
{
	const struct bb_sge sge = piece(f, TO + 64, 8);
	struct bb_wc wc[2];

	assert_int_equal(bb_post_read(f->qp, 1, &sge, 1, FROM, 9, 0), 0);
	assert_int_equal(bb_post_fetch_add(f->qp, 2, &sge, TO + 128, 9, 1, 0), 0);
	assert_int_equal(bb_post_local_inv(f->qp, 3, 0x1200, 0), 0);
	bb_qp_ring(f->qp);
	assert_int_equal(null_dev.signaled, 1);
	assert_int_equal(bb_cq_poll(f->cq, wc, 2), 0);
	one(f, bb_post_nop(f->qp, 4, SIG), 4, BB_WC_NOP);
	assert_int_equal(null_dev.signaled, 1);
}

/* A NOP after an unsignalled WRITE completes, also if a SEND found no room between the two. */
T_KINDS(BB_QPT_RC, false, test_nop_after_a_send_without_room)
{
	const struct bb_sge sge = piece(f, FROM, 8);
	struct bb_wc wc[14];

	for (uint64_t i = 0; i < 13; i++)
		assert_int_equal(bb_post_write(f->qp, i, &sge, 1, TO, 9, SIG), 0);
	bb_qp_ring(f->qp);
	for (uint64_t i = 13; i < 16; i++)
		assert_int_equal(bb_post_write(f->qp, i, &sge, 1, TO, 9, 0), 0);
	assert_int_equal(bb_post_send(f->qp, 16, &sge, 1, 0), -EAGAIN);
	take(f, wc, 13);
	one(f, bb_post_nop(f->qp, 17, SIG), 17, BB_WC_NOP);
}

/* ---- Requests that libibverbs cannot express */

enum bad {
	MASKED,      /* libibverbs has no such operation */
	GONE_WINDOW, /* freed after the post */
	BADS
};

static int
post_bad(struct fixture *f, enum bad bad, struct bb_mw *mw)
{
	const struct bb_sge sge = piece(f, FROM, 8);

	if (bad == MASKED)
		return bb_post_masked_fetch_add(f->qp, 2, &sge, TO, 9, 1, 0, SIG);
	return bind_any(f, 2, mw, SIG);
}

/* Only that request fails: those before it execute, those after it do not. */
T_F(test_impossible_request_fails_alone)
{
	static const struct {
		const char *text;
		enum bb_wc_status status;
	} want[] = {
		{"libibverbs does not support the operation", BB_WC_LOC_QP_OP_ERR},
		{"the window was destroyed", BB_WC_MW_BIND_ERR},
	};
	struct bb_wc wc[4];
	struct bb_sge sge;
	struct bb_mw *mw;
	size_t front;

	for (size_t k = 0; k < RTE_DIM(kinds); k++) {
		for (size_t i = 0; i < 2 * BADS; i++) {
			front = i / BADS;
			make(f, BB_QPT_RC, false, k);
			sge = piece(f, FROM, 8);
			assert_int_equal(bb_mw_alloc(f->pd, BB_MW_TYPE_1, &mw), 0);
			if (front != 0)
				assert_int_equal(bb_post_write(f->qp, 1, &sge, 1, TO, 9, SIG), 0);
			log_begin();
			assert_int_equal(post_bad(f, (enum bad)(i % BADS), mw), 0);
			assert_int_equal(bb_post_write(f->qp, 3, &sge, 1, TO + 64, 9, 0), 0);
			assert_int_equal(bb_mw_free(mw), 0);
			assert_int_equal(bb_cq_poll(f->cq, wc, 4), 0);
			bb_qp_ring(f->qp);
			log_expect(want[i % BADS].text);
			assert_int_equal(null_dev.qp_attr.qp_state, IBV_QPS_ERR);
			take(f, wc, 2 + (unsigned int)front);
			if (front != 0) {
				assert_fields(wc[0], wr_id, 1, status, BB_WC_SUCCESS);
			}
			assert_int_equal(mem[LEN], front != 0 ? mem[0] : 0);
			assert_int_equal(mem[LEN + 64], 0);
			assert_fields(wc[front], wr_id, 2, status, want[i % BADS].status);
			assert_fields(wc[front + 1], wr_id, 3, status, BB_WC_WR_FLUSH_ERR);
			fixture_free(f);
			null_reset();
		}
	}
}

/* The driver marks the end of the queue by ibv_post_send(), which must not be in an open batch. */
T_F(test_impossible_request_after_one_that_is_not_polled)
{
	struct bb_wc wc[2];
	struct bb_sge sge;

	for (size_t k = 0; k < RTE_DIM(kinds); k++) {
		make(f, BB_QPT_RC, false, k);
		sge = piece(f, FROM, 8);
		assert_int_equal(bb_post_write(f->qp, 1, &sge, 1, TO, 9, SIG), 0);
		bb_qp_ring(f->qp);
		log_begin();
		assert_int_equal(bb_post_masked_fetch_add(f->qp, 2, &sge, TO, 9, 1, 0, SIG), 0);
		bb_qp_ring(f->qp);
		log_expect("libibverbs does not support the operation");
		take(f, wc, 2);
		assert_fields(wc[0], wr_id, 1, status, BB_WC_SUCCESS);
		assert_fields(wc[1], wr_id, 2, status, BB_WC_LOC_QP_OP_ERR);
		fixture_free(f);
		null_reset();
	}
}

/* A request before it is refused by the provider: this is the reported error. */
T_F(test_earlier_refusal_is_the_reported_error)
{
	struct bb_sge sge[2];
	struct bb_wc wc[3];
	struct bb_mw *mw;

	for (size_t k = 0; k < RTE_DIM(kinds); k++) {
		for (size_t i = 0; i < BADS; i++) {
			make(f, BB_QPT_RC, false, k);
			sge[0] = piece(f, FROM, 8);
			sge[1] = piece(f, FROM + 64, 8);
			assert_int_equal(bb_mw_alloc(f->pd, BB_MW_TYPE_1, &mw), 0);
			null_dev.bad_wr = 1;
			assert_int_equal(bb_post_write(f->qp, 1, sge, 2, TO, 9, 0), 0);
			assert_int_equal(post_bad(f, (enum bad)i, mw), 0);
			assert_int_equal(bb_mw_free(mw), 0);
			bb_qp_ring(f->qp);
			take(f, wc, 2);
			assert_fields(wc[0], wr_id, 1, status, BB_WC_LOC_QP_OP_ERR);
			assert_fields(wc[1], wr_id, 2, status, BB_WC_WR_FLUSH_ERR);
			fixture_free(f);
			null_reset();
		}
	}
}

/* ---- NOPs that wait */

/* A NOP after an unsignalled WQE in the middle of a doorbell completes when the WQE has. */
T_F(test_nop_in_a_doorbell_waits_for_its_wqe)
{
	struct bb_sge sge[2];
	struct bb_wc wc[4];

	for (size_t k = 0; k < RTE_DIM(kinds); k++) {
		for (size_t pieces = 1; pieces < 3; pieces++) {
			make(f, BB_QPT_RC, false, k);
			sge[0] = piece(f, FROM, 8);
			sge[1] = piece(f, FROM + 64, 8);
			null_dev.hold = true;
			assert_int_equal(bb_post_write(f->qp, 1, sge, (uint32_t)pieces, TO, 9, 0),
					 0);
			assert_int_equal(bb_post_nop(f->qp, 2, SIG), 0);
			assert_int_equal(bb_post_write(f->qp, 3, sge, (uint32_t)pieces, TO, 9, 0),
					 0);
			bb_qp_ring(f->qp);
			assert_int_equal(bb_cq_poll(f->cq, wc, 4), 0);
			null_release();
			take(f, wc, 1);
			assert_fields(wc[0], wr_id, 2, status, BB_WC_SUCCESS);
			null_dev.hold = false;
			fixture_free(f);
			null_reset();
		}
	}
}

/*
 * Replaces the queue pair by one with one piece per request that requests CQEs as late as
 * possible.
 */
static void
make_small(struct fixture *f, bool signal_all)
{
	struct bb_qp_init_attr init = DEFAULTS(qp_init_attr);

	assert_int_equal(bb_qp_destroy(f->qp), 0);
	init.sq_depth = 8;
	init.rq_depth = 1;
	init.max_sge = 1;
	init.max_inline = 0;
	init.signal_every = signal_all ? 0 : 8;
	init.signal_all = signal_all;
	init.send_cq = f->cq;
	init.recv_cq = f->cq;
	assert_int_equal(bb_qp_create(f->pd, &init, &f->qp), 0);
	assert_int_equal(connect_to_itself(f->qp), 0);
}

/* A bind takes three WQEs here. It gets room after any number of unsignalled requests. */
T_KINDS(BB_QPT_RC, false, test_large_request_gets_room_after_unsignalled_ones)
{
	struct bb_sge sge;
	struct bb_mw *mw;
	struct bb_wc wc;
	uint32_t kind_of_write;

	make_small(f, false);
	assert_int_equal(bb_mw_alloc(f->pd, BB_MW_TYPE_1, &mw), 0);
	sge = piece(f, FROM, 8);
	for (uint32_t before = 0; before < 16; before++) {
		/* With WQEs and without, see verbs_post.c. */
		kind_of_write = before / 8;
		for (uint32_t i = 0; i < before % 8; i++)
			assert_int_equal(bb_post_write(f->qp, 5, &sge, 1, TO, 1,
						       kind_of_write ? BB_SEND_FENCE : 0),
					 0);
		bb_qp_ring(f->qp);
		for (uint32_t calls = 0;
		     bb_mw_bind(f->qp, 9, mw, f->mr, FROM, 8, 0, SIG) == -EAGAIN; calls++) {
			assert_in_range(calls, 0, 10);
			assert_int_equal(bb_cq_poll(f->cq, &wc, 1), 0);
		}
		one(f, 0, 9, BB_WC_BIND_MW);
	}
	assert_int_equal(bb_mw_free(mw), 0);
}

/* The library asks for a CQE of each of these requests, whatever the caller asks for. */
T_KINDS(BB_QPT_RC, false, test_signal_all_reports_binds_and_invalidations)
{
	struct bb_mw *mw;

	make_small(f, true);
	for (enum bb_mw_type type = BB_MW_TYPE_1; type <= BB_MW_TYPE_2; type++) {
		assert_int_equal(bb_mw_alloc(f->pd, type, &mw), 0);
		for (uint32_t flags = 0; flags <= SIG; flags += SIG) {
			one(f, bind_any(f, 1, mw, flags), 1, BB_WC_BIND_MW);
			if (type == BB_MW_TYPE_1)
				one(f, bb_mw_bind(f->qp, 2, mw, NULL, 0, 0, 0, flags), 2,
				    BB_WC_BIND_MW);
			else
				one(f, bb_post_local_inv(f->qp, 2, mw->rkey, flags), 2,
				    BB_WC_LOCAL_INV);
		}
		assert_int_equal(bb_mw_free(mw), 0);
	}
}

T_F(test_drain_nop_is_never_reported)
{
	struct bb_sge sge;
	struct bb_wc wc[4];

	for (size_t k = 0; k < RTE_DIM(kinds); k++) {
		for (uint32_t flags = 0; flags <= SIG; flags += SIG) {
			make(f, BB_QPT_RC, false, k);
			make_small(f, true);
			sge = piece(f, FROM, 8);
			null_dev.hold = true;
			assert_int_equal(bb_post_write(f->qp, 1, &sge, 1, TO, 1, flags), 0);
			assert_int_equal(bb_post_write(f->qp, 2, &sge, 1, TO, 1, flags), 0);
			assert_int_equal(bb_qp_drain(f->qp), -EAGAIN);
			null_release();
			take(f, wc, 2);
			assert_int_equal(wc[0].wr_id, 1);
			assert_int_equal(wc[1].wr_id, 2);
			assert_int_equal(bb_qp_drain(f->qp), 0);
			null_dev.hold = false;
			fixture_free(f);
			null_reset();
		}
	}
}

TEST_MAIN(bare_eal_init() < 0 ? 1 : 0)
