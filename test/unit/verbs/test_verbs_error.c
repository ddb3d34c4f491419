/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The verbs driver on the null provider: errors, resets, requests that the provider refuses, and
 * each of its calls failing in turn.
 */
#include "../../fakes/log_catch.h"
#include "verbs_fixture.h"

T_KINDS(BB_QPT_RC, false, test_error_flushes_later_requests_and_receives)
{
	struct bb_wc wc[4];
	struct bb_sge sge = piece(f, FROM, 8);

	assert_int_equal(bb_post_write(f->qp, 1, &sge, 1, TO, 1, 0), 0);
	assert_int_equal(bb_post_send(f->qp, 2, &sge, 1, 0), 0);
	assert_int_equal(bb_post_nop(f->qp, 3, 0), 0);
	assert_int_equal(bb_post_write(f->qp, 4, &sge, 1, TO, 1, 0), 0);
	bb_qp_ring(f->qp);
	take(f, wc, 3);
	assert_fields(wc[0], status, BB_WC_RNR_RETRY_EXC_ERR, vendor_err, 0x5e, wr_id, 2);
	assert_fields(wc[1], wr_id, 3, status, BB_WC_WR_FLUSH_ERR);
	assert_fields(wc[2], wr_id, 4, status, BB_WC_WR_FLUSH_ERR);
	/* In ERR a post is flushed, a NOP too. */
	assert_int_equal(bb_post_nop(f->qp, 5, 0), 0);
	bb_qp_ring(f->qp);
	take(f, wc, 1);
	assert_int_equal(wc[0].status, BB_WC_WR_FLUSH_ERR);
	post_recv(f, 6);
	take(f, wc, 1);
	assert_fields(wc[0], wr_id, 6, status, BB_WC_WR_FLUSH_ERR);
}

T_ON(BB_QPT_RC, false, test_reset_makes_the_qp_new)
{
	struct bb_qp_attr attr = DEFAULTS(qp_attr);
	struct bb_wc wc[2];
	struct bb_sge sge = piece(f, FROM, 8);

	for (uint64_t i = 0; i < 5; i++)
		one(f, bb_post_write(f->qp, i, &sge, 1, TO, 1, BB_SEND_SIGNALED), i,
		    BB_WC_RDMA_WRITE);
	assert_int_equal(bb_post_write(f->qp, 1, &sge, 1, TO, 1, BB_SEND_SIGNALED), 0);
	assert_int_equal(bb_post_send(f->qp, 2, &sge, 1, BB_SEND_SIGNALED), 0);
	assert_int_equal(bb_post_nop(f->qp, 3, BB_SEND_SIGNALED), 0);
	bb_qp_ring(f->qp);
	attr.state = BB_QP_RESET;
	assert_int_equal(bb_qp_modify(f->qp, &attr, BB_QP_STATE), 0);
	assert_int_equal(bb_cq_poll(f->cq, wc, 1), 0);
	assert_int_equal(connect_to_itself(f->qp), 0);
	/* A NOP waits only for requests posted after the reset. */
	one(f, bb_post_nop(f->qp, 8, BB_SEND_SIGNALED), 8, BB_WC_NOP);
	null_dev.hold = true;
	assert_int_equal(bb_post_write(f->qp, 9, &sge, 1, TO, 1, BB_SEND_SIGNALED), 0);
	assert_int_equal(bb_post_nop(f->qp, 10, BB_SEND_SIGNALED), 0);
	bb_qp_ring(f->qp);
	assert_int_equal(bb_cq_poll(f->cq, wc, 1), 0);
	null_dev.hold = false;
	null_release();
	take(f, wc, 2);
	assert_int_equal(wc[0].wr_id, 9);
	assert_int_equal(wc[1].wr_id, 10);
}

/* The provider refuses one of four: it and all after it fail, in order. */
T_F(test_refused_request_fails_with_all_after_it)
{
	struct bb_sge sge;
	struct bb_wc wc[8];
	uint64_t i;

	for (size_t k = 0; k < RTE_DIM(kinds); k++) {
		make(f, BB_QPT_RC, false, k);
		sge = piece(f, FROM, 8);
		null_dev.bad_wr = 3;
		for (i = 0; i < 4; i++)
			assert_int_equal(bb_post_write(f->qp, i, &sge, 1, TO, 1, BB_SEND_SIGNALED),
					 0);
		bb_qp_ring(f->qp);
		take(f, wc, 4);
		/* ibv_wr_complete() refuses all of them together. */
		for (i = 0; i < 4; i++)
			assert_int_equal(wc[i].wr_id, i);
		i = extended(k) ? 0 : 2;
		assert_int_equal(wc[i].status, BB_WC_LOC_QP_OP_ERR);
		assert_int_equal(wc[3].status, BB_WC_WR_FLUSH_ERR);
		assert_int_equal(null_dev.qp_attr.qp_state, IBV_QPS_ERR);
		if (i != 0)
			assert_int_equal(wc[1].status, BB_WC_SUCCESS);
		assert_int_equal(bb_post_write(f->qp, 5, &sge, 1, TO, 1, 0), 0);
		bb_qp_ring(f->qp);
		take(f, wc, 1);
		assert_int_equal(wc[0].status, BB_WC_WR_FLUSH_ERR);
		fixture_free(f);
		null_reset();
		make(f, BB_QPT_RC, false, k);
		null_dev.bad_wr = 1;
		post_recv(f, 3);
		take(f, wc, 1);
		assert_fields(wc[0], wr_id, 3, status, BB_WC_LOC_QP_OP_ERR);
		fixture_free(f);
		null_reset();
	}
}

/* Each call of libibverbs fails in turn: an error is returned, and no object leaks. */
T_F(test_no_failed_call_leaks)
{
	static const int errs[] = {ENOMEM, EINVAL};
	uint32_t n, kept;
	int ret, srq;

	for (uint32_t e = 0; e < RTE_DIM(errs); e++) {
		for (size_t k = 0; k < 2 * RTE_DIM(kinds); k++) {
			srq = k >= RTE_DIM(kinds);
			for (n = 1;; n++) {
				null_reset();
				null_dev.no_cq_ex = kinds[k % RTE_DIM(kinds)].no_cq_ex;
				null_dev.no_qp_ex = kinds[k % RTE_DIM(kinds)].no_qp_ex;
				null_dev.no_td = kinds[k % RTE_DIM(kinds)].no_td;
				null_dev.fail_at = n;
				null_dev.fail_errno = errs[e];
				ret = fixture_make(f, BB_QPT_RC, srq != 0);
				null_dev.fail_at = 0;
				kept = null_dev.objects;
				fixture_free(f);
				if (!null_dev.failed)
					break;
				/*
				 * Calls that report an optional feature, or have an alternative.
				 */
				assert_true(ret < 0 || kept > 0);
				/* A handle that could not be destroyed stays at the provider. */
				if (strncmp(null_dev.failed_call, "ibv_de", 6) != 0)
					assert_int_equal(null_dev.objects, 0);
				else
					null_dev.objects = 0;
			}
			assert_int_equal(ret, 0);
			assert_true(n > 12);
		}
	}
}

/* A provider whose ibv_wr_*() cannot change keys gets these requests by ibv_post_send(), in order.
 */
T_F(test_missing_key_operations_refuse_only_that_request)
{
	struct bb_wc wc[4];
	struct bb_sge sge;
	struct bb_mw *mw;
	int ret;

	for (unsigned int what = 0; what < 6; what++) {
		null_dev.no_keys = true;
		make(f, BB_QPT_RC, false, 0);
		sge = piece(f, FROM, 8);
		/* Every other round the provider rejects the request. */
		null_dev.bad_wr = what % 2 == 0 ? 0 : 3;
		assert_int_equal(bb_post_write(f->qp, 1, &sge, 1, TO, 1, BB_SEND_SIGNALED), 0);
		assert_int_equal(bb_post_write(f->qp, 2, &sge, 1, TO + 8, 1, BB_SEND_SIGNALED), 0);
		assert_int_equal(bb_mw_alloc(f->pd, BB_MW_TYPE_2, &mw), 0);
		if (what / 2 == 0)
			ret = bb_post_local_inv(f->qp, 3, 0x1200, BB_SEND_SIGNALED);
		else if (what / 2 == 1)
			ret = bb_post_send_inv(f->qp, 3, &sge, 1, 0x1200, BB_SEND_SIGNALED);
		else
			ret = bb_post_bind_mw(f->qp, 3, mw, bb_inc_rkey(mw->rkey), f->mr, FROM, 64,
					      BB_ACCESS_REMOTE_WRITE, BB_SEND_SIGNALED);
		assert_int_equal(ret, 0);
		if (what == 2) {
			null_dev.bad_wr = 0;
			post_recv(f, 4);
		}
		bb_qp_ring(f->qp);
		take(f, wc, what == 2 ? 4 : 3);
		assert_int_equal(wc[0].status, BB_WC_SUCCESS);
		assert_int_equal(wc[1].status, BB_WC_SUCCESS);
		/* The receive of SEND_WITH_INV completes first. */
		ret = what == 2 ? 3 : 2;
		assert_int_equal(wc[ret].wr_id, 3);
		if (what % 2 == 0)
			assert_int_equal(wc[ret].status, BB_WC_SUCCESS);
		else
			assert_int_equal(wc[ret].status,
					 what == 5 ? BB_WC_MW_BIND_ERR : BB_WC_LOC_QP_OP_ERR);
		assert_memory_equal(mem + LEN + 8, mem, 8);
		assert_int_equal(null_dev.wr_ex, 2);
		/* After a rejection the driver posts a marker. */
		assert_int_equal(null_dev.wr_plain, 1);
		assert_int_equal(bb_mw_free(mw), 0);
		fixture_free(f);
		null_reset();
	}
}

/*
 * Far more receives in one doorbell than the provider is given at a time: none is lost, many or
 * long.
 */
static void
many_receives(bool srq, uint32_t pieces)
{
	const uint32_t n = 50;
	struct bb_qp_init_attr init = DEFAULTS(qp_init_attr);
	struct bb_sge sge[4];
	struct bb_wc wc[2];
	struct fixture f;

	make(&f, BB_QPT_RC, srq, 0);
	assert_int_equal(bb_qp_destroy(f.qp), 0);
	init.sq_depth = 4;
	init.rq_depth = srq ? 0 : n;
	init.max_recv_sge = srq ? 0 : 4;
	init.max_inline = 16;
	init.send_cq = init.recv_cq = f.cq;
	init.srq = f.srq;
	assert_int_equal(bb_qp_create(f.pd, &init, &f.qp), 0);
	assert_int_equal(connect_to_itself(f.qp), 0);
	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t k = 0; k < pieces; k++)
			sge[k] = piece(&f, TO + 16 * i + 4 * k, 4);
		assert_int_equal(srq ? bb_post_srq_recv(f.srq, i, sge, pieces)
				     : bb_post_recv(f.qp, i, sge, pieces),
				 0);
	}
	if (srq)
		bb_srq_ring(f.srq);
	else
		bb_qp_ring_recv(f.qp);
	assert_int_equal(null_dev.recvs, n);
	for (uint32_t i = 0; i < n; i++) {
		uint8_t data[16];

		memset(data, (int)i + 1, sizeof(data));
		assert_int_equal(
			bb_post_send_inline(f.qp, 100 + i, data, 4 * pieces, BB_SEND_SIGNALED), 0);
		bb_qp_ring(f.qp);
		take(&f, wc, 2);
		assert_fields(wc[0], status, BB_WC_SUCCESS, wr_id, i, byte_len, 4 * pieces);
		assert_int_equal(wc[1].wr_id, 100 + i);
		assert_memory_equal(mem + LEN + 16 * i, data, 4 * pieces);
	}
	fixture_free(&f);
	null_reset();
}

T(test_none_of_many_receives_in_a_doorbell_is_lost)
{
	for (uint32_t pieces = 0; pieces <= 4; pieces++) {
		many_receives(false, pieces);
		if (pieces <= 2)
			many_receives(true, pieces);
	}
}

/* A QP that only librdmacm can connect is refused and left unchanged. */
TEST(test_iwarp_qp_is_refused_and_unchanged)
{
	struct bb_qp_addr addr = {.mtu = 1024, .gid = {[15] = 1}}, none;
	struct bb_cm_attr cm_attr = DEFAULTS(cm_attr);
	struct bb_qp_attr attr = DEFAULTS(qp_attr);
	struct fixture f;
	struct bb_cm *cm;

	null_reset();
	null_dev.iwarp = true;
	assert_int_equal(fixture_make(&f, BB_QPT_RC, false), -ENOTSUP);
	assert_non_null(f.qp);
	assert_int_equal(bb_qp_addr(f.qp, 1, 0, &none), -ENOTSUP);
	addr.qpn = f.qp->qpn;
	assert_int_equal(bb_qp_connect(f.qp, &addr, &addr, &attr), -ENOTSUP);
	assert_int_equal(f.qp->state, BB_QP_RESET);
	assert_int_equal(bb_cm_create(f.dev, &cm_attr, &cm), -ENOTSUP);
	fixture_free(&f);
	assert_int_equal(null_dev.objects, 0);
}

TEST_MAIN(bare_eal_init() < 0 ? 1 : 0)
