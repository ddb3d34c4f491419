/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The verbs driver on the null provider: completions as the application gets them. Statuses, the
 * sender's address of a receive, and completions of a QP that is reset or destroyed.
 */
#include "../../fakes/log_catch.h"
#include "verbs_drv.h"
#include "verbs_fixture.h"

#define SIG BB_SEND_SIGNALED

static const struct {
	enum ibv_wc_status theirs;
	enum bb_wc_status ours;
} statuses[] = {
	{IBV_WC_LOC_LEN_ERR, BB_WC_LOC_LEN_ERR},
	{IBV_WC_LOC_QP_OP_ERR, BB_WC_LOC_QP_OP_ERR},
	{IBV_WC_LOC_PROT_ERR, BB_WC_LOC_PROT_ERR},
	{IBV_WC_WR_FLUSH_ERR, BB_WC_WR_FLUSH_ERR},
	{IBV_WC_MW_BIND_ERR, BB_WC_MW_BIND_ERR},
	{IBV_WC_BAD_RESP_ERR, BB_WC_BAD_RESP_ERR},
	{IBV_WC_LOC_ACCESS_ERR, BB_WC_LOC_ACCESS_ERR},
	{IBV_WC_REM_INV_REQ_ERR, BB_WC_REM_INV_REQ_ERR},
	{IBV_WC_REM_ACCESS_ERR, BB_WC_REM_ACCESS_ERR},
	{IBV_WC_REM_OP_ERR, BB_WC_REM_OP_ERR},
	{IBV_WC_RETRY_EXC_ERR, BB_WC_RETRY_EXC_ERR},
	{IBV_WC_RNR_RETRY_EXC_ERR, BB_WC_RNR_RETRY_EXC_ERR},
	{IBV_WC_REM_ABORT_ERR, BB_WC_REM_ABORT_ERR},
	{IBV_WC_FATAL_ERR, BB_WC_GENERAL_ERR},
	{IBV_WC_GENERAL_ERR, BB_WC_GENERAL_ERR},
};

/* A failed request: those before it succeeded, those after it are flushed. */
static void
send_status(size_t kind, size_t i)
{
	struct fixture f;
	struct bb_sge sge;
	struct bb_wc wc[3];

	make(&f, BB_QPT_RC, false, kind);
	sge = piece(&f, FROM, 8);
	one(&f, bb_post_write(f.qp, 1, &sge, 1, TO, 1, SIG), 1, BB_WC_RDMA_WRITE);
	null_dev.status = statuses[i].theirs;
	assert_int_equal(bb_post_write(f.qp, 2, &sge, 1, TO, 1, 0), 0);
	assert_int_equal(bb_post_nop(f.qp, 3, 0), 0);
	assert_int_equal(bb_post_write(f.qp, 4, &sge, 1, TO, 1, SIG), 0);
	bb_qp_ring(f.qp);
	take(&f, wc, 3);
	assert_fields(wc[0], wr_id, 2, status, statuses[i].ours, vendor_err, 0x5e);
	assert_ptr_equal(wc[0].qp, f.qp);
	assert_fields(wc[1], wr_id, 3, status, BB_WC_WR_FLUSH_ERR);
	assert_fields(wc[2], wr_id, 4, status, BB_WC_WR_FLUSH_ERR);
	fixture_free(&f);
	null_reset();
}

static void
recv_status(size_t kind, size_t i, bool srq)
{
	struct fixture f;
	struct bb_sge sge;
	struct bb_wc wc[2];

	make(&f, BB_QPT_RC, srq, kind);
	sge = piece(&f, FROM, 8);
	post_recv(&f, 77);
	null_dev.recv.status = statuses[i].theirs;
	null_dev.recv.vendor_err = 0x61;
	assert_int_equal(bb_post_send(f.qp, 1, &sge, 1, SIG), 0);
	bb_qp_ring(f.qp);
	take(&f, wc, 2);
	assert_fields(wc[0], wr_id, 77, status, statuses[i].ours, vendor_err, 0x61);
	assert_ptr_equal(wc[0].qp, f.qp);
	assert_fields(wc[1], wr_id, 1, status, BB_WC_REM_OP_ERR);
	fixture_free(&f);
	null_reset();
}

T(test_every_status_is_translated)
{
	for (size_t k = 0; k < RTE_DIM(kinds); k++) {
		for (size_t i = 0; i < RTE_DIM(statuses); i++) {
			send_status(k, i);
			recv_status(k, i, false);
			recv_status(k, i, true);
		}
	}
}

/*
 * A failed request stops only the send queue of an unreliable QP (SQE). The driver moves the QP
 * to ERR as other types, so receives are flushed, too.
 */
T_F(test_failed_unreliable_request_flushes_receives)
{
	static const enum bb_qp_type types[] = {BB_QPT_UC, BB_QPT_UD};
	const struct bb_path path = {.port = 1, .dgid = {[15] = 1}};
	struct bb_qp_attr attr;
	struct bb_ah *ah = NULL;
	struct bb_sge sge;
	struct bb_wc wc[2];
	int ret;

	for (size_t k = 0; k < RTE_DIM(kinds); k++) {
		for (size_t i = 0; i < RTE_DIM(types); i++) {
			make(f, types[i], false, k);
			sge = piece(f, FROM, 8);
			assert_int_equal(bb_ah_create(f->pd, &path, &ah), 0);
			post_recv(f, 9);
			null_dev.status = IBV_WC_LOC_PROT_ERR;
			ret = types[i] == BB_QPT_UC
				      ? bb_post_send(f->qp, 1, &sge, 1, SIG)
				      : bb_post_send_ud(f->qp, 1, &sge, 1, ah, 5, 6, SIG);
			assert_int_equal(ret, 0);
			bb_qp_ring(f->qp);
			assert_int_equal(bb_cq_poll(f->cq, wc, 1), 1);
			assert_fields(wc[0], wr_id, 1, status, BB_WC_LOC_PROT_ERR);
			assert_int_equal(bb_qp_query(f->qp, &attr), 0);
			assert_int_equal(attr.state, BB_QP_ERR);
			assert_int_equal(null_dev.qp_attr.qp_state, IBV_QPS_ERR);
			take(f, wc, 1);
			assert_fields(wc[0], wr_id, 9, status, BB_WC_WR_FLUSH_ERR);
			assert_int_equal(bb_ah_destroy(ah), 0);
			fixture_free(f);
			null_reset();
		}
	}
}

/* ---- Fields of a datagram's receive */

static void
datagram(size_t kind, bool ib, bool imm)
{
	const struct bb_path path = {.port = 1, .dlid = 5, .dgid = {[15] = 1}};
	struct fixture f;
	struct bb_sge sge;
	struct bb_wc wc[2];
	struct bb_ah *ah;

	null_dev.infiniband = ib;
	make(&f, BB_QPT_UD, false, kind);
	sge = piece(&f, FROM, 30);
	assert_int_equal(bb_ah_create(f.pd, &path, &ah), 0);
	null_dev.recv = (struct ibv_wc){
		.slid = 0x1234, .sl = 9, .pkey_index = 0x77, .wc_flags = ib ? 0 : IBV_WC_GRH};
	post_recv(&f, 77);
	assert_int_equal(imm ? bb_post_send_ud_imm(f.qp, 1, &sge, 1, ah, 6, 0x11, 7, SIG)
			     : bb_post_send_ud(f.qp, 1, &sge, 1, ah, 6, 0x11, SIG),
			 0);
	bb_qp_ring(f.qp);
	take(&f, wc, 2);
	assert_ptr_equal(null_dev.ud.ah, verbs_ah_of(&ah->av));
	assert_fields(null_dev.ud, qpn, 6, qkey, 0x11);
	assert_fields(wc[0], status, BB_WC_SUCCESS, opcode, BB_WC_RECV, wr_id, 77, byte_len, 30);
	assert_int_equal(wc[0].src_qp, f.qp->qpn);
	assert_int_equal(wc[0].flags, (imm ? BB_WC_WITH_IMM : 0) | (ib ? 0 : BB_WC_GRH));
	assert_int_equal(wc[0].imm, imm ? 7 : 0);
	/*
	 * LIDs and service levels exist on InfiniBand only. An extended CQ does not report the
	 * P_Key index.
	 */
	assert_fields(wc[0], slid, ib ? 0x1234 : 0, sl, ib ? 9 : 0);
	assert_int_equal(wc[0].pkey_index, plain_cq(kind) && !imm ? 0x77 : 0);
	assert_int_equal(bb_ah_destroy(ah), 0);
	fixture_free(&f);
	null_reset();
}

T(test_datagram_reports_its_source)
{
	for (size_t k = 0; k < RTE_DIM(kinds); k++)
		for (int n = 0; n < 4; n++)
			datagram(k, (n & 1) != 0, (n & 2) != 0);
}

/* ---- A QP with its own receive CQ is destroyed or reset before its receives are polled */

static void
leave(size_t kind, bool srq, bool reset, bool cleans)
{
	struct bb_qp_init_attr init = DEFAULTS(qp_init_attr);
	struct bb_cq_attr cattr = DEFAULTS(cq_attr);
	struct bb_qp_attr attr = DEFAULTS(qp_attr);
	struct fixture f;
	struct bb_sge sge;
	struct bb_cq *rcq;
	struct bb_wc wc;

	null_dev.cleans = cleans;
	make(&f, BB_QPT_RC, srq, kind);
	assert_int_equal(bb_qp_destroy(f.qp), 0);
	f.qp = NULL;
	assert_int_equal(bb_cq_create(f.dev, &cattr, &rcq), 0);
	init.sq_depth = init.rq_depth = 16;
	init.max_recv_sge = 2;
	init.send_cq = f.cq;
	init.recv_cq = rcq;
	init.srq = f.srq;
	assert_int_equal(bb_qp_create(f.pd, &init, &f.qp), 0);
	assert_int_equal(connect_to_itself(f.qp), 0);
	sge = piece(&f, FROM, 8);
	for (unsigned int i = 0; i < 3; i++) {
		post_recv(&f, i);
		assert_int_equal(bb_post_send(f.qp, i, &sge, 1, SIG), 0);
		bb_qp_ring(f.qp);
	}
	/* The SRQ keeps the last receive, also if a message comes at the last moment. */
	if (srq)
		post_recv(&f, 3);
	null_dev.late = srq;
	attr.state = BB_QP_RESET;
	if (reset) {
		assert_int_equal(bb_qp_modify(f.qp, &attr, BB_QP_STATE), 0);
	} else {
		assert_int_equal(bb_qp_destroy(f.qp), 0);
		f.qp = NULL;
	}
	/* The log would report a completion of no QP, or of no receive. */
	log_begin();
	assert_int_equal(bb_cq_poll(f.cq, &wc, 1), 0);
	assert_int_equal(bb_cq_poll(rcq, &wc, 1), 0);
	log_expect(NULL);
	if (srq) {
		struct bb_srq_stats stats;

		/* The receives belong to the SRQ again. */
		assert_int_equal(bb_srq_stats(f.srq, &stats), 0);
		assert_int_equal(stats.outstanding, 1);
		assert_int_equal(null_dev.cleaned, 0);
	}
	if (f.qp != NULL)
		assert_int_equal(bb_qp_destroy(f.qp), 0);
	f.qp = NULL;
	assert_int_equal(bb_cq_destroy(rcq), 0);
	fixture_free(&f);
	null_reset();
}

T(test_receives_of_a_destroyed_or_reset_qp_are_gone)
{
	for (size_t k = 0; k < RTE_DIM(kinds); k++)
		for (int n = 0; n < 8; n++)
			leave(k, (n & 1) != 0, (n & 2) != 0, (n & 4) != 0);
}

/* ---- Receives that the provider refuses */

/*
 * They end after the receives that the provider accepted, which are flushed as the QP goes to
 * ERR.
 */
T_KINDS(BB_QPT_RC, false, test_refused_receives_end_after_accepted_ones)
{
	struct bb_wc wc[5];
	struct bb_sge sge = piece(f, TO, 8);

	post_recv(f, 0);
	null_dev.bad_wr = 3;
	for (unsigned int i = 1; i < 5; i++)
		assert_int_equal(bb_post_recv(f->qp, i, &sge, 1), 0);
	log_begin();
	bb_qp_ring_recv(f->qp);
	log_expect("the provider rejected a receive: Invalid argument; the QP goes to ERR");
	assert_fields(null_dev, recvs, 3, qp_attr.qp_state, IBV_QPS_ERR);
	take(f, wc, 5);
	for (unsigned int i = 0; i < 5; i++) {
		assert_int_equal(wc[i].wr_id, i);
		assert_int_equal(wc[i].status, i < 3 ? BB_WC_WR_FLUSH_ERR : BB_WC_LOC_QP_OP_ERR);
	}
	/* Without new receives the provider is not called. */
	bb_qp_ring_recv(f->qp);
	assert_int_equal(null_dev.recvs, 3);
}

TEST_MAIN(bare_eal_init() < 0 ? 1 : 0)
