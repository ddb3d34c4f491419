/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Completion queues: create and destroy, credits, polling, translation, purge. */
#include "core_fixture.h"

static struct bb_qp *
qp_create(struct fixture *f, uint32_t sq_depth, uint32_t rq_depth)
{
	struct bb_qp_init_attr attr = DEFAULTS(qp_init_attr);
	struct bb_qp *qp = NULL;

	attr.send_cq = f->cq;
	attr.recv_cq = f->cq;
	attr.sq_depth = sq_depth;
	attr.rq_depth = rq_depth;
	assert_int_equal(bb_qp_create(f->pd, &attr, &qp), 0);
	return qp;
}

/* Creates a QP that accepts posts in any state. */
static struct bb_qp *
qp_ready(struct fixture *f, uint32_t sq_depth, uint32_t rq_depth)
{
	struct bb_qp *qp = qp_create(f, sq_depth, rq_depth);

	bb_sq_enable(&qp->sq, true);
	if (rq_depth != 0)
		bb_rq_enable(&qp->rq);
	qp->state = BB_QP_RTS;
	return qp;
}

static void
post_sends(struct bb_qp *qp, uint64_t wr_id, unsigned int n, uint32_t flags)
{
	for (; n > 0; n--)
		assert_int_equal(bb_post_write_inline(qp, wr_id++, "abcdefgh", 8, 0x1000, 7, flags),
				 0);
}

static void
post_recvs(struct bb_qp *qp, uint64_t wr_id, unsigned int n)
{
	const struct bb_sge sge = {0x2000, 64, 0x55};

	for (; n > 0; n--)
		assert_int_equal(bb_post_recv(qp, wr_id++, &sge, 1), 0);
}

T(test_create_rounds_depth_up_and_aligns)
{
	struct bb_cq *cq = (void *)1;
	struct bb_cq_attr attr = DEFAULTS(cq_attr);

	attr.depth = 100;
	assert_int_equal(bb_cq_create(f->dev, &attr, &cq), 0);
	assert_int_equal(bb_cq_depth(cq), 128);
	assert_int_equal((uintptr_t)cq % BB_CACHE_LINE, 0);
	assert_int_equal(cq->owner, 0);
	assert_int_equal(fake.cqs, 2);
	assert_int_equal(bb_cq_destroy(cq), 0);
	assert_int_equal(fake.cqs, 1);
	assert_int_equal(bb_cq_destroy(NULL), -EINVAL);
}

T(test_create_refuses_bad_attributes)
{
	struct bb_cq *cq = (void *)1;
	struct bb_cq_attr attr = DEFAULTS(cq_attr);

	assert_int_equal(bb_cq_create(NULL, &attr, &cq), -EINVAL);
	assert_int_equal(bb_cq_create(f->dev, NULL, &cq), -EINVAL);
	assert_int_equal(bb_cq_create(f->dev, &attr, NULL), -EINVAL);
	assert_logged(bb_cq_create_v(f->dev, &attr, BB_LAYOUT_VERSION + 1, &cq), -EPROTO,
		      "rebuild");
	attr.size--;
	assert_logged(bb_cq_create(f->dev, &attr, &cq), -EINVAL, "bb_cq_attr_init()");
	attr.size++;
	attr.depth = 0;
	assert_int_equal(bb_cq_create(f->dev, &attr, &cq), -EINVAL);
	attr.depth = f->dev->attr.max_cqe + 1;
	assert_logged(bb_cq_create(f->dev, &attr, &cq), -EINVAL, "give 1 to 65536");
	attr.depth = 16;
	attr.comp_vector = f->dev->attr.comp_vectors;
	assert_logged(bb_cq_create(f->dev, &attr, &cq), -EINVAL,
		      "completion vector 4 is out of range: give 0 to 3");
	attr.comp_vector = 3;
	attr.lcore = 77;
	assert_logged(bb_cq_create(f->dev, &attr, &cq), -EINVAL, "lcore 77");
	attr.lcore = BB_LCORE_SELF;
	fake_fail(FAKE_CQ_CREATE, -ENOMEM);
	assert_int_equal(bb_cq_create(f->dev, &attr, &cq), -ENOMEM);
	fake_fail(FAKE_NONE, 0);
	assert_ptr_equal(cq, (void *)1);
	assert_int_equal(fake.cqs, 1);
	assert_int_equal(f->dev->cqs, 1);
}

T(test_destroy_is_refused_while_queues_use_it)
{
	struct bb_qp *qp = qp_create(f, 16, 16);

	assert_logged(bb_cq_destroy(f->cq), -EBUSY, "2 queues complete into it");
	assert_int_equal(bb_qp_destroy(qp), 0);
	qp = qp_create(f, 16, 0);
	assert_logged(bb_cq_destroy(f->cq), -EBUSY, "1 queue completes into it");
	assert_int_equal(bb_qp_destroy(qp), 0);
	fake_fail(FAKE_CQ_DESTROY, -EIO);
	assert_int_equal(bb_cq_destroy(f->cq), -EIO);
	fake_fail(FAKE_NONE, 0);
	assert_int_equal(f->dev->cqs, 1);
}

/* A CQ accepts queues up to its depth, no further, and gets the credits back. */
T(test_cq_accepts_queues_up_to_its_depth)
{
	struct bb_qp_init_attr attr = DEFAULTS(qp_init_attr);
	struct bb_qp *a, *b, *c = (void *)1;

	a = qp_create(f, 100, 28);
	b = qp_create(f, 128, 0);
	attr.send_cq = f->cq;
	attr.recv_cq = f->cq;
	attr.sq_depth = 1;
	attr.rq_depth = 0;
	assert_logged(bb_qp_create(f->pd, &attr, &c), -ENOSPC,
		      "its depth is 256, of which 256 CQEs are reserved for 3 other queues");
	assert_ptr_equal(c, (void *)1);
	assert_int_equal(bb_qp_destroy(b), 0);

	/* The send queue fits, the receive queue does not: the credits of both return. */
	attr.sq_depth = 128;
	attr.rq_depth = 1;
	assert_logged(bb_qp_create(f->pd, &attr, &c), -ENOSPC, "a depth of at least 257");
	assert_fields(*f->cq->ctrl, reserved, 128, queues, 2);
	attr.rq_depth = 0;
	assert_int_equal(bb_qp_create(f->pd, &attr, &c), 0);
	assert_int_equal(bb_qp_destroy(c), 0);
	assert_int_equal(bb_qp_destroy(a), 0);
	assert_fields(*f->cq->ctrl, reserved, 0, queues, 0);
}

T(test_signalled_send_completes_all_before_it)
{
	struct bb_qp *qp = qp_ready(f, 16, 0);
	struct bb_cq_stats stats;
	struct bb_wc wc[4];
	uint16_t counter;

	post_sends(qp, 100, 3, 0);
	counter = qp->sq.pi;
	post_sends(qp, 103, 1, BB_SEND_SIGNALED);
	fake_cqe(f->cq, BB_CQE_REQ, qp->user_index, counter);
	memset(wc, 0xff, sizeof(wc));
	assert_int_equal(bb_cq_poll(f->cq, wc, 4), 1);
	assert_int_equal(wc[0].wr_id, 103);
	assert_ptr_equal(wc[0].qp, qp);
	assert_fields(wc[0], status, BB_WC_SUCCESS, opcode, BB_WC_RDMA_WRITE);
	assert_int_equal(bb_sq_outstanding(&qp->sq), 0);

	/* A CQE of a WQE that only the library signalled is accounted for. */
	counter = qp->sq.pi;
	post_sends(qp, 104, 1, 0);
	fake_cqe(f->cq, BB_CQE_REQ, qp->user_index, counter);
	assert_int_equal(bb_cq_poll(f->cq, wc, 4), 0);
	assert_int_equal(bb_sq_outstanding(&qp->sq), 0);
	assert_int_equal(bb_cq_stats(f->cq, &stats), 0);
	assert_fields(stats, cqes, 2, errors, 0);
	assert_int_equal(bb_cq_stats(f->cq, NULL), -EINVAL);
	assert_int_equal(bb_qp_destroy(qp), 0);
}

T(test_receives_complete_with_length_imm_and_flags)
{
	struct bb_qp *qp = qp_ready(f, 16, 8);
	struct bb_qp_stats stats;
	struct bb_wc wc[4];
	struct bb_cqe *cqe;

	post_recvs(qp, 50, 4);
	cqe = fake_cqe(f->cq, BB_CQE_RESP_SEND, qp->user_index, 0);
	cqe->byte_cnt = bb_be32(40);
	cqe = fake_cqe(f->cq, BB_CQE_RESP_SEND_IMM, qp->user_index, 1);
	cqe->imm = 0x11223344;
	cqe->op_own |= 2;
	cqe = fake_cqe(f->cq, BB_CQE_RESP_WR_IMM, qp->user_index, 2);
	cqe->imm = 0x55667788;
	cqe->byte_cnt = bb_be32(4096);
	memset(wc, 0xff, sizeof(wc));
	assert_int_equal(bb_cq_poll(f->cq, wc, 4), 3);
	assert_fields(wc[0], wr_id, 50, opcode, BB_WC_RECV, byte_len, 40, flags, 0);
	assert_int_equal(wc[0].status, BB_WC_SUCCESS);
	assert_ptr_equal(wc[0].qp, qp);
	assert_fields(wc[1], wr_id, 51, opcode, BB_WC_RECV);
	assert_fields(wc[1], flags, BB_WC_WITH_IMM | BB_WC_SOLICITED, imm, 0x11223344);
	assert_fields(wc[2], wr_id, 52, opcode, BB_WC_RECV_RDMA_IMM, flags, BB_WC_WITH_IMM);
	assert_int_equal(wc[2].byte_len, 4096);
	assert_int_equal(bb_qp_stats(qp, &stats), 0);
	assert_fields(stats, recv_posted, 4, recv_outstanding, 1);
	assert_int_equal(bb_qp_destroy(qp), 0);
}

/* The failed WQE and all WQEs after it complete, one completion each, unsignalled ones too. */
T(test_failed_wqe_completes_all_after_it)
{
	struct bb_qp *qp = qp_ready(f, 16, 8);
	struct bb_cq_stats stats;
	struct bb_qp_stats qstats;
	struct bb_wc wc[8];
	uint16_t counter[4];

	for (unsigned int i = 0; i < 4; i++) {
		counter[i] = qp->sq.pi;
		post_sends(qp, 200 + i, 1, 0);
	}
	post_recvs(qp, 300, 1);
	fake_cqe_error(f->cq, BB_CQE_REQ_ERR, qp->user_index, counter[1], BB_SYN_REMOTE_ACCESS,
		       0x88);
	fake_cqe_error(f->cq, BB_CQE_REQ_ERR, qp->user_index, counter[2], BB_SYN_WR_FLUSH, 0xf9);
	fake_cqe_error(f->cq, BB_CQE_REQ_ERR, qp->user_index, counter[3], BB_SYN_WR_FLUSH, 0xf9);
	fake_cqe_error(f->cq, BB_CQE_RESP_ERR, qp->user_index, 0, BB_SYN_WR_FLUSH, 0xf9);
	assert_logged(bb_cq_poll(f->cq, wc, 8), 4,
		      "remote access error (syndrome 0x13, vendor 0x88)");
	assert_fields(wc[0], wr_id, 201, status, BB_WC_REM_ACCESS_ERR, syndrome, 0x13);
	assert_fields(wc[0], vendor_err, 0x88, opcode, BB_WC_RDMA_WRITE);
	assert_fields(wc[1], wr_id, 202, status, BB_WC_WR_FLUSH_ERR);
	assert_int_equal(wc[2].wr_id, 203);
	assert_fields(wc[3], wr_id, 300, status, BB_WC_WR_FLUSH_ERR, opcode, BB_WC_RECV);
	assert_ptr_equal(wc[3].qp, qp);
	assert_int_equal(qp->state, BB_QP_ERR);
	assert_int_equal(bb_sq_outstanding(&qp->sq), 0);
	assert_int_equal(bb_cq_stats(f->cq, &stats), 0);
	assert_int_equal(stats.errors, 4);
	assert_int_equal(bb_qp_stats(qp, &qstats), 0);
	assert_int_equal(qstats.errors, 4);

	/* Posting continues; a second error is not logged. */
	counter[0] = qp->sq.pi;
	post_sends(qp, 210, 1, 0);
	fake_cqe_error(f->cq, BB_CQE_REQ_ERR, qp->user_index, counter[0], BB_SYN_LOCAL_PROT, 0x52);
	assert_logged(bb_cq_poll(f->cq, wc, 8), 1, NULL);
	assert_int_equal(bb_qp_destroy(qp), 0);
}

T(test_error_logs_the_failed_wqe)
{
	struct bb_qp *qp = qp_ready(f, 16, 8);
	const struct bb_sge sge = {0xabc000, 512, 0x1234};
	struct bb_wc wc;

	assert_int_equal(bb_post_read(qp, 1, &sge, 1, 0xdef000, 0x4321, 0), 0);
	fake_cqe_error(f->cq, BB_CQE_REQ_ERR, qp->user_index, 0, BB_SYN_REMOTE_ACCESS, 0x88);
	log_begin();
	assert_int_equal(bb_cq_poll(f->cq, &wc, 1), 1);
	fflush(log_file);
	assert_non_null(strstr(log_text, "RDMA_READ"));
	assert_non_null(strstr(log_text, "4321"));
	log_expect("wrong or deregistered rkey");
	assert_int_equal(bb_qp_destroy(qp), 0);

	qp = qp_ready(f, 16, 8);
	post_recvs(qp, 9, 1);
	fake_cqe_error(f->cq, BB_CQE_RESP_ERR, qp->user_index, 0, BB_SYN_LOCAL_PROT, 0x32);
	assert_logged(bb_cq_poll(f->cq, &wc, 1), 1, "the failed receive: ");
	assert_int_equal(wc.wr_id, 9);
	assert_int_equal(bb_qp_destroy(qp), 0);
}

/*
 * A receive that the device took from the SRQ without a message: syndrome 0x22 with vendor syndrome
 * 0x93 (libmlx5, providers/mlx5/cq.c: is_odp_pfault_err()) or 0x99 (UCX, ib_mlx5.h:
 * UCT_IB_MLX5_CQE_VENDOR_SYND_PSN). Both libraries go on with the queue pair.
 */
T(test_receive_that_the_device_took_without_a_message_is_posted_again)
{
	static const uint8_t vendor[] = {0x93, 0x99};
	struct bb_srq_attr srq_attr = DEFAULTS(srq_attr);
	struct bb_qp_init_attr attr = DEFAULTS(qp_init_attr);
	const struct bb_sge sge[] = {{0x2000, 64, 0x55}, {0x3000, 32, 0x66}};
	struct bb_cq_stats stats;
	struct bb_srq *srq;
	struct bb_qp *qp;
	struct bb_wc wc[4];
	uint16_t idx = 0;

	f->dev->attr.max_srq = 1;
	f->dev->attr.max_srq_wr = 7;
	f->dev->attr.max_srq_sge = 3;
	srq_attr.depth = 7;
	srq_attr.max_sge = 3;
	assert_int_equal(bb_srq_create(f->pd, &srq_attr, &srq), 0);
	attr.send_cq = f->cq;
	attr.recv_cq = f->cq;
	attr.sq_depth = 4;
	attr.srq = srq;
	assert_int_equal(bb_qp_create(f->pd, &attr, &qp), 0);
	qp->state = BB_QP_RTS;
	/* The SRQ is full. The only free WQE is 7, the last of the ring. */
	for (uint64_t i = 0; i < 7; i++)
		assert_int_equal(bb_post_srq_recv(srq, 100 + i, sge, 2), 0);
	bb_srq_ring(srq);
	for (unsigned int i = 0; i < RTE_DIM(vendor); i++) {
		const uint8_t *wqe;

		fake_cqe_error(f->cq, BB_CQE_RESP_ERR, qp->user_index, idx, 0x22, vendor[i]);
		assert_logged(bb_cq_poll(f->cq, wc, 4), 0, NULL);
		assert_int_equal(qp->state, BB_QP_RTS);
		/* Receive 100 is in the WQE that was free, and the device got it. */
		idx = i == 0 ? 7 : 0;
		assert_int_equal(bb_be32(srq->ring.dbrec[0]), 8 + i);
		wqe = (const uint8_t *)(bb_srqring_wqe(&srq->ring, idx) + 1);
		assert_memory_equal(wqe,
				    "\0\0\0\x40\0\0\0\x55\0\0\0\0\0\0\x20\0"
				    "\0\0\0\x20\0\0\0\x66\0\0\0\0\0\0\x30\0"
				    "\0\0\0\0\0\0\1\0",
				    40);
		assert_int_equal(bb_post_srq_recv(srq, 999, sge, 1), -EAGAIN);
	}
	/* The device takes the other receives first, then 100 from its WQE. */
	for (uint16_t i = 1; i < 4; i++)
		fake_cqe(f->cq, BB_CQE_RESP_SEND, qp->user_index, i);
	assert_int_equal(bb_cq_poll(f->cq, wc, 3), 3);
	assert_int_equal(wc[0].wr_id, 101);
	fake_cqe(f->cq, BB_CQE_RESP_SEND, qp->user_index, idx);
	assert_int_equal(bb_cq_poll(f->cq, wc, 4), 1);
	assert_int_equal(wc[0].wr_id, 100);
	assert_int_equal(wc[0].status, BB_WC_SUCCESS);
	assert_int_equal(bb_cq_stats(f->cq, &stats), 0);
	assert_int_equal(stats.errors, 0);
	/* Any other abort is an error of the QP. */
	fake_cqe_error(f->cq, BB_CQE_RESP_ERR, qp->user_index, 4, 0x22, 0x98);
	log_begin();
	assert_int_equal(bb_cq_poll(f->cq, wc, 4), 1);
	log_expect("remote abort");
	assert_int_equal(wc[0].status, BB_WC_REM_ABORT_ERR);
	assert_int_equal(wc[0].wr_id, 104);
	assert_int_equal(qp->state, BB_QP_ERR);
	assert_int_equal(bb_qp_destroy(qp), 0);
	assert_int_equal(bb_srq_destroy(srq), 0);
}

static struct bb_cq *rung_cq;
static uint32_t rung_ci; /* consumer index that the device had at the last doorbell of the SRQ */
static uint32_t rung_uidx;

static void
note_ci(struct bb_srqring *ring)
{
	rung_ci = bb_be32(rung_cq->ring.dbrec[0]);
	ring->rung = ring->pi;
}

/* The receive may complete at once: the device must know before that its old CQE is consumed. */
T(test_reposted_receive_is_rung_after_the_slot_of_its_cqe_is_free)
{
	struct bb_qp_recovery r = {0};
	struct bb_srq_attr srq_attr = DEFAULTS(srq_attr);
	struct bb_qp_init_attr attr = DEFAULTS(qp_init_attr);
	const struct bb_sge sge = {0x2000, 64, 0x55};
	struct bb_wr_end ends[8];
	struct bb_srq *srq;
	struct bb_qp *qp;
	struct bb_wc wc[4];

	f->dev->attr.max_srq = 1;
	f->dev->attr.max_srq_wr = 7;
	f->dev->attr.max_srq_sge = 1;
	srq_attr.depth = 7;
	srq_attr.max_sge = 1;
	assert_int_equal(bb_srq_create(f->pd, &srq_attr, &srq), 0);
	attr.send_cq = f->cq;
	attr.recv_cq = f->cq;
	attr.sq_depth = 4;
	attr.srq = srq;
	assert_int_equal(bb_qp_create(f->pd, &attr, &qp), 0);
	qp->state = BB_QP_RTS;
	rung_cq = f->cq;
	srq->ring.dbrec = NULL;
	srq->ring.ring = note_ci;
	for (uint64_t i = 0; i < 6; i++)
		assert_int_equal(bb_post_srq_recv(srq, i, &sge, 1), 0);
	bb_srq_ring(srq);
	fake_cqe(f->cq, BB_CQE_RESP_SEND, qp->user_index, 0);
	fake_cqe_error(f->cq, BB_CQE_RESP_ERR, qp->user_index, 1, 0x22, 0x99);
	fake_cqe(f->cq, BB_CQE_RESP_SEND, qp->user_index, 2);
	assert_int_equal(bb_cq_poll(f->cq, wc, 4), 2);
	assert_int_equal(rung_ci, 2);
	assert_int_equal(bb_be32(f->cq->ring.dbrec[0]), 3);
	/* A recovery frees the slots of all its CQEs at once. */
	fake_cqe(f->cq, BB_CQE_RESP_SEND, qp->user_index, 3);
	fake_cqe_error(f->cq, BB_CQE_RESP_ERR, qp->user_index, 4, 0x22, 0x99);
	r.ends = ends;
	r.max = RTE_DIM(ends);
	assert_int_equal(bb_qp_recover(qp, NULL, NULL, NULL, &r), 0);
	assert_int_equal(r.n, 1);
	assert_int_equal(rung_ci, 5);
	assert_int_equal(srq->ring.rung, srq->ring.pi);
	assert_int_equal(bb_qp_destroy(qp), 0);
	assert_int_equal(bb_srq_destroy(srq), 0);
}

static unsigned int aborted; /* receives that the device took in vain */

/* The device takes the next receive in vain at once. The WQEs are used in turn. */
static void
abort_next(struct bb_srqring *ring)
{
	note_ci(ring);
	assert_int_equal(rung_ci, aborted);
	if (aborted < 7)
		fake_cqe_error(rung_cq, BB_CQE_RESP_ERR, rung_uidx, aborted++ & ring->mask, 0x22,
			       0x99);
}

/* One poll takes more CQEs than the CQ has, because each is freed early. */
T(test_receives_that_are_taken_in_vain_do_not_move_the_cq_back)
{
	struct bb_qp_init_attr attr = DEFAULTS(qp_init_attr);
	struct bb_srq_attr srq_attr = DEFAULTS(srq_attr);
	struct bb_cq_attr cq_attr = DEFAULTS(cq_attr);
	const struct bb_sge sge = {0x2000, 64, 0x55};
	struct bb_srq *srq;
	struct bb_cq *cq;
	struct bb_qp *qp;
	struct bb_wc wc;

	f->dev->attr.max_srq = 1;
	f->dev->attr.max_srq_wr = 7;
	f->dev->attr.max_srq_sge = 1;
	srq_attr.depth = 3;
	srq_attr.max_sge = 1;
	assert_int_equal(bb_srq_create(f->pd, &srq_attr, &srq), 0);
	cq_attr.depth = 4;
	assert_int_equal(bb_cq_create(f->dev, &cq_attr, &cq), 0);
	attr.send_cq = f->cq;
	attr.recv_cq = cq;
	attr.sq_depth = 4;
	attr.srq = srq;
	assert_int_equal(bb_qp_create(f->pd, &attr, &qp), 0);
	qp->state = BB_QP_RTS;
	rung_cq = cq;
	rung_uidx = qp->user_index;
	srq->ring.dbrec = NULL;
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(bb_post_srq_recv(srq, i, &sge, 1), 0);
	srq->ring.ring = note_ci;
	bb_srq_ring(srq);
	srq->ring.ring = abort_next;
	aborted = 1;
	fake_cqe_error(cq, BB_CQE_RESP_ERR, qp->user_index, 0, 0x22, 0x99);
	assert_int_equal(bb_cq_poll(cq, &wc, 1), 0);
	assert_int_equal(aborted, 7);
	assert_int_equal(bb_be32(cq->ring.dbrec[0]), 7);
	assert_int_equal(bb_qp_destroy(qp), 0);
	assert_int_equal(bb_srq_destroy(srq), 0);
	assert_int_equal(bb_cq_destroy(cq), 0);
}

/* A queue that the application moved to ERR only flushes, without a log line. */
T(test_flush_after_own_modify_logs_nothing)
{
	struct bb_qp *qp = qp_ready(f, 16, 0);
	struct bb_wc wc;

	post_sends(qp, 1, 1, 0);
	fake_cqe_error(f->cq, BB_CQE_REQ_ERR, qp->user_index, 0, BB_SYN_WR_FLUSH, 0xf9);
	assert_logged(bb_cq_poll(f->cq, &wc, 1), 1, NULL);
	assert_int_equal(wc.status, BB_WC_WR_FLUSH_ERR);
	assert_int_equal(bb_qp_destroy(qp), 0);
}

/* CQEs that a device must not write are dropped, logged once, and nothing else is lost. */
T(test_stray_cqe_is_dropped_and_logged_once)
{
	struct bb_qp *qp = qp_ready(f, 16, 0);
	struct bb_cq_stats stats;
	struct bb_wc wc[8];

	fake_cqe(f->cq, BB_CQE_REQ, qp->user_index + 1, 0); /* user index of no QP */
	fake_cqe(f->cq, BB_CQE_REQ, 0, 0);                  /* as an all-zero CQE would */
	fake_cqe(f->cq, BB_CQE_RESP_SEND, BB_CQE_NO_USER - 1, 0);
	fake_cqe(f->cq, BB_CQE_RESP_SEND, qp->user_index, 0); /* the QP has no receive queue */
	fake_cqe(f->cq, 9, qp->user_index, 0);                /* invalid opcode */
	fake_cqe_error(f->cq, BB_CQE_REQ_ERR, qp->user_index, 3, BB_SYN_REMOTE_OP, 0x89);
	log_begin();
	assert_int_equal(bb_cq_poll(f->cq, wc, 8), 0);
	fflush(log_file);
	assert_non_null(strstr(log_text, "belongs to no queue pair"));
	assert_null(strstr(log_text, "opcode is unknown"));
	log_stop();
	assert_int_equal(bb_cq_stats(f->cq, &stats), 0);
	assert_fields(stats, purged, 6, cqes, 6);
	assert_int_equal(bb_sq_outstanding(&qp->sq), 0);
	assert_int_equal(bb_qp_destroy(qp), 0);
}

/* The title of an unexpected compressed block is dropped alone; the CQEs after it stay. */
T(test_stray_compressed_title_is_dropped_alone)
{
	struct bb_qp *qp = qp_ready(f, 16, 8);
	struct bb_cqe *title;
	struct bb_wc wc[8];
	uint16_t counter = qp->sq.pi;

	post_sends(qp, 100, 1, BB_SEND_SIGNALED);
	post_recvs(qp, 300, 4);
	title = fake_cqe(f->cq, BB_CQE_RESP_SEND, qp->user_index, 0);
	title->op_own |= BB_CQE_COMPRESSED;
	title->byte_cnt = bb_be32(4);
	fake_cqe(f->cq, BB_CQE_REQ, qp->user_index, counter);
	assert_logged(bb_cq_poll(f->cq, wc, 8), 1, "compressed");
	assert_fields(wc[0], wr_id, 100, status, BB_WC_SUCCESS);
	assert_int_equal(bb_qp_destroy(qp), 0);
}

/*
 * Two QPs on one CQ with interleaved CQEs; one QP is destroyed unpolled. The other QP's CQEs all
 * arrive in order, and the ring has room for the returned credits.
 */
T(test_destroy_purges_only_its_own_cqes)
{
	struct bb_qp *a, *b;
	struct bb_cq_stats stats;
	struct bb_wc wc[64];
	unsigned int i, n;

	for (unsigned int lap = 0; lap < 9; lap++) {
		a = qp_ready(f, 128, 0);
		b = qp_ready(f, 128, 0);
		for (i = 0; i < 121; i++) {
			uint16_t ca = a->sq.pi, cb = b->sq.pi;

			post_sends(a, 1000 + i, 1, BB_SEND_SIGNALED);
			post_sends(b, 2000 + i, 1, BB_SEND_SIGNALED);
			/*
			 * 121 of each, so that the ring wraps at every slot. Some neighbours are
			 * swapped.
			 */
			if (i % 3 == lap % 3)
				fake_cqe(f->cq, BB_CQE_REQ, b->user_index, cb);
			fake_cqe(f->cq, BB_CQE_REQ, a->user_index, ca);
			if (i % 3 != lap % 3)
				fake_cqe(f->cq, BB_CQE_REQ, b->user_index, cb);
		}
		/* Polls a few first, so that the consumer index moves through the slots. */
		n = bb_cq_poll(f->cq, wc, 10 + lap);
		assert_int_equal(n, 10 + lap);
		for (i = 0, n = 0; i < 10 + lap; i++)
			n += wc[i].qp == b;
		assert_int_equal(bb_qp_destroy(a), 0);
		while (n < 121) {
			unsigned int got = bb_cq_poll(f->cq, wc, 7);

			assert_int_not_equal(got, 0);
			for (i = 0; i < got; i++, n++) {
				assert_ptr_equal(wc[i].qp, b);
				assert_int_equal(wc[i].wr_id, 2000 + n);
			}
		}
		assert_int_equal(bb_cq_poll(f->cq, wc, 64), 0);
		assert_int_equal(bb_sq_outstanding(&b->sq), 0);
		assert_int_equal(bb_qp_destroy(b), 0);
	}
	assert_int_equal(bb_cq_stats(f->cq, &stats), 0);
	assert_in_range(stats.purged, 9 * 100, 9 * 121);
}

/*
 * A purge frees slots at once. Otherwise the CQEs of a destroyed QP and of a new QP would not fit
 * together, although the credits allow both.
 */
T(test_purge_frees_slots_at_once)
{
	for (unsigned int lap = 0; lap < 5; lap++) {
		struct bb_qp *qp = qp_ready(f, 256, 0);

		for (unsigned int i = 0; i < 256; i++) {
			post_sends(qp, i, 1, 0);
			/* fake_cqe() asserts that the ring does not overrun. */
			fake_cqe(f->cq, BB_CQE_REQ, qp->user_index, (uint16_t)i);
		}
		assert_int_equal(bb_qp_destroy(qp), 0);
		assert_int_equal(bb_be32(f->cq->ring.dbrec[0]), (lap + 1) * 256);
	}
}

TEST_MAIN(fake_eal_init())
