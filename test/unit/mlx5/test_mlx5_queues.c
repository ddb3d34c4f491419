/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Queue memory, UARs, and the mailboxes that create CQs and QPs. */
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <rte_lcore.h>

#include "../../fakes/log_catch.h"
#include "mlx5_fixture.h"

#define MANY 700 /* more than the records of a page */

T_DEV(test_create_cq_mailbox_has_size_eq_and_record)
{
	struct bb_cq_attr attr = DEFAULTS(cq_attr);
	const uint8_t *in, *c;
	struct bb_cq *cq;
	uint64_t at;

	attr.depth = 100;
	attr.comp_vector = STUB_EQS - 1;
	assert_int_equal(bb_cq_create(f->dev, &attr, &cq), 0);
	assert_int_equal(bb_cq_depth(cq), 128);
	in = stub_box(BB_PRM_OP_CREATE_CQ);
	c = in + BB_PRM_CREATE_CQ_CQC.byte;
	assert_int_equal(bb_prm_get(c, BB_PRM_CQC_LOG_CQ_SIZE), 7);
	assert_int_equal(bb_prm_get(c, BB_PRM_CQC_C_EQN), STUB_EQN + STUB_EQS - 1);
	assert_int_equal(bb_prm_get(c, BB_PRM_CQC_UAR_PAGE), 0x30);
	assert_int_equal(bb_prm_get(c, BB_PRM_CQC_DBR_UMEM_VALID), 1);
	assert_int_equal(bb_prm_get(in, BB_PRM_CREATE_CQ_UMEM_VALID), 1);
	assert_int_equal(bb_prm_get(c, BB_PRM_CQC_CQE_SZ), 0);
	assert_int_equal(bb_prm_get(c, BB_PRM_CQC_OI), 0);
	assert_int_equal(bb_prm_get(c, BB_PRM_CQC_CC), 0);
	assert_int_equal(bb_prm_get(c, BB_PRM_CQC_CQE_COMP_EN), 0);
	assert_int_equal(bb_prm_get(c, BB_PRM_CQC_LOG_PAGE_SIZE), 0);
	/* Ring and record are where the mailbox says. */
	at = bb_prm_get64(in, BB_PRM_CREATE_CQ_UMEM_OFFSET);
	assert_ptr_equal(cq->ring.buf, stub.umem_addr + at);
	assert_int_equal(at % 4096, 0);
	at = bb_prm_get64(c, BB_PRM_CQC_DBR_ADDR);
	assert_ptr_equal(cq->ring.dbrec, stub.umem_addr + at);
	assert_fields(cq->ring, dbrec[0], 0, buf[63], BB_CQE_OP_OWN_INIT);
	assert_int_equal(stub.umem_access, BB_ACCESS_LOCAL_WRITE);
	assert_int_equal(bb_cq_destroy(cq), 0);
}

T_DEV(test_cq_of_a_vector_without_an_event_queue_fails)
{
	struct bb_cq_attr attr = DEFAULTS(cq_attr);
	struct bb_cq *cq;

	stub.eqn_errno = -EINVAL;
	assert_logged(bb_cq_create(f->dev, &attr, &cq), -EINVAL, "event queue");
	assert_int_equal(stub.umems, 0);
}

/*
 * The device accepts the new ring and never finishes the old one: the CQ cannot be resized again.
 */
T_F(test_cq_of_a_half_finished_resize_cannot_be_resized)
{
	struct bb_cq_attr attr = DEFAULTS(cq_attr);
	struct bb_cq *cq;

	bb_prm_set(stub.general, BB_PRM_HCA_CQ_RESIZE, 1);
	open_dev(f);
	attr.depth = 8;
	assert_int_equal(bb_cq_create(f->dev, &attr, &cq), 0);
	assert_int_equal(bb_cq_resize(cq, 16), -EIO);
	assert_int_equal(bb_cq_resize(cq, 32), -EIO);
	assert_int_equal(stub_count(BB_PRM_OP_MODIFY_CQ), 1);
	assert_int_equal(bb_cq_destroy(cq), 0);
}

T_DEV(test_create_qp_mailbox_has_sizes_and_keys)
{
	struct bb_qp_init_attr init = DEFAULTS(qp_init_attr);
	const uint8_t *in, *c;
	uint64_t at;

	init.sq_depth = 100;
	init.rq_depth = 30;
	init.max_sge = 3;
	init.max_recv_sge = 3;
	init.max_inline = 0;
	make_qp(f, &init);
	in = stub_box(BB_PRM_OP_CREATE_QP);
	c = in + BB_PRM_CREATE_QP_QPC.byte;
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_ST), BB_PRM_QP_ST_RC);
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_PM_STATE), 3);
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_PD), STUB_PDN);
	/* Five segments are two blocks: 200 of them, 256 as a power of two. */
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_LOG_SQ_SIZE), 8);
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_NO_SQ), 0);
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_LOG_RQ_SIZE), 5);
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_LOG_RQ_STRIDE), 2);
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_RQ_TYPE), BB_PRM_RQ_TYPE_REGULAR);
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_USER_INDEX), f->qp->user_index);
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_UAR_PAGE), 0x30);
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_CS_REQ), 0);
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_CS_RES), 0);
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_CQN_SND), bb_prm_get(c, BB_PRM_QPC_CQN_RCV));
	/* The kernel sets these, too; a direct firmware command must do so itself. */
	assert_int_equal(bb_prm_get(in, BB_PRM_CREATE_QP_WQ_UMEM_VALID), 1);
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_DBR_UMEM_VALID), 1);
	at = bb_prm_get64(in, BB_PRM_CREATE_QP_WQ_UMEM_OFFSET);
	assert_int_equal(at % 4096, 0);
	assert_ptr_equal(f->qp->rq.buf, stub.umem_addr + at);
	assert_ptr_equal(f->qp->sq.buf, f->qp->rq.buf + (32 << 6));
	at = bb_prm_get64(c, BB_PRM_QPC_DBR_ADDR);
	assert_ptr_equal(f->qp->rq.conf_dbrec, stub.umem_addr + at);
	assert_ptr_equal(f->qp->sq.dbrec, stub.umem_addr + at + 4);
	assert_fields(f->qp->sq, mask, 255, depth, 100);
	/* The requested limits, although two blocks hold eight segments. */
	assert_fields(*f->qp, sq.max_sge, 3, sq.max_inline, 0, rq.max_sge, 3);
}

/*
 * QP types with data in CQEs, by the kernel's rule (create_user_qp()): the requester of RC only,
 * the responder of RC and UC.
 */
T_F(test_scatter_to_cqe_follows_the_kernels_rule_by_type)
{
	static const struct {
		enum bb_qp_type type;
		uint32_t cs_req, cs_res;
	} types[] = {{BB_QPT_RC, 0x11, 0x1}, {BB_QPT_UC, 0, 0x1}, {BB_QPT_UD, 0, 0}};
	struct bb_qp_init_attr init;
	const uint8_t *c;

	for (size_t i = 0; i < RTE_DIM(types); i++) {
		stub_reset();
		open_dev(f);
		bb_qp_init_attr_init(&init);
		init.type = types[i].type;
		init.scatter_to_cqe = true;
		make_qp(f, &init);
		c = stub_box(BB_PRM_OP_CREATE_QP) + BB_PRM_CREATE_QP_QPC.byte;
		assert_int_equal(bb_prm_get(c, BB_PRM_QPC_CS_REQ), types[i].cs_req);
		assert_int_equal(bb_prm_get(c, BB_PRM_QPC_CS_RES), types[i].cs_res);
		close_dev(f);
	}
}

T_DEV(test_qp_without_receives_has_no_rq)
{
	struct bb_qp_init_attr init = DEFAULTS(qp_init_attr);
	const uint8_t *c;

	init.rq_depth = 0;
	make_qp(f, &init);
	c = stub_box(BB_PRM_OP_CREATE_QP) + BB_PRM_CREATE_QP_QPC.byte;
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_RQ_TYPE), BB_PRM_RQ_TYPE_ZERO);
	assert_int_equal(bb_prm_get(c, BB_PRM_QPC_LOG_RQ_SIZE), 0);
	/* The device needs a receive CQ even without a receive queue. */
	assert_int_not_equal(bb_prm_get(c, BB_PRM_QPC_CQN_RCV), 0);
}

/* The RQ's bytes are whole blocks, however small the RQ is. */
T_DEV(test_smallest_rq_takes_whole_blocks)
{
	struct bb_qp_init_attr init = DEFAULTS(qp_init_attr);

	init.rq_depth = 1;
	init.sq_depth = 1;
	make_qp(f, &init);
	assert_ptr_equal(f->qp->sq.buf, f->qp->rq.buf + 64);
	assert_fields(*f->qp, rq.depth, 1, sq.depth, 1);
}

T_F(test_largest_wqe_fits_the_ring)
{
	struct bb_qp_init_attr init = DEFAULTS(qp_init_attr);
	struct bb_dev_attr attr;

	bb_prm_set(stub.general, BB_PRM_HCA_LOG_MAX_QP_SZ, 6);
	open_dev(f);
	assert_int_equal(bb_dev_query(f->dev, &attr), 0);
	init.rq_depth = 8;
	init.max_sge = attr.max_sge;
	init.max_inline = attr.max_inline;
	init.sq_depth = 2;
	make_qp(f, &init);
	assert_fields(f->qp->sq, max_sge, attr.max_sge, max_inline, attr.max_inline, mask, 31);
	assert_int_equal(bb_qp_destroy(f->qp), 0);
	/* 2^6 blocks do not fit 8 WQEs of 16 blocks. */
	init.sq_depth = 8;
	assert_int_equal(bb_qp_create(f->pd, &init, &f->qp), -EINVAL);
	f->qp = NULL;
}

/* One UAR per lcore, freed with its last queue. Queues of another lcore use another UAR. */
T_DEV(test_each_lcore_has_one_uar_until_its_last_queue)
{
	struct bb_cq_attr attr = DEFAULTS(cq_attr);
	struct bb_cq *a, *b, *c;

	assert_int_equal(bb_cq_create(f->dev, &attr, &a), 0);
	assert_int_equal(stub.uars, 1);
	assert_int_equal(bb_cq_create(f->dev, &attr, &b), 0);
	assert_int_equal(stub.uars, 1);
	attr.lcore = 1;
	assert_int_equal(bb_cq_create(f->dev, &attr, &c), 0);
	assert_int_equal(stub.uars, 2);
	assert_int_equal(bb_prm_get(stub_box(BB_PRM_OP_CREATE_CQ) + BB_PRM_CREATE_CQ_CQC.byte,
				    BB_PRM_CQC_UAR_PAGE),
			 0x31);
	/* Records of two lcores share no page. */
	assert_true((uintptr_t)c->ring.dbrec / 4096 != (uintptr_t)a->ring.dbrec / 4096);
	assert_int_equal(bb_cq_destroy(c), 0);
	assert_int_equal(stub.uars, 1);
	assert_int_equal(bb_cq_destroy(a), 0);
	assert_int_equal(stub.uars, 1);
	assert_int_equal(bb_cq_destroy(b), 0);
	assert_int_equal(stub.uars, 0);
}

T_F(test_uar_without_blueflame_is_used)
{
	stub.no_bf = true;
	open_qp(f);
	assert_int_equal(f->qp->sq.bf_size, 0);
	close_dev(f);

	stub_reset();
	open_qp(f);
	assert_int_equal(f->qp->sq.bf_size, 256);
}

T_DEV(test_refused_uar_is_logged_with_its_cause)
{
	struct bb_cq_attr attr = DEFAULTS(cq_attr);
	struct bb_cq *cq;

	stub.no_bf = true;
	stub.no_nc = true;
	log_begin();
	assert_int_equal(bb_cq_create(f->dev, &attr, &cq), -EOPNOTSUPP);
	log_expect("before 5.7");
	stub.no_uar = true;
	log_begin();
	assert_int_equal(bb_cq_create(f->dev, &attr, &cq), -ENOSPC);
	log_expect("let fewer processes use the device");
}

T_F(test_progress_runs_the_callers_device)
{
	struct bb_cq_attr attr = DEFAULTS(cq_attr);
	struct bb_event ev;
	struct bb_cq *cq;

	stub.inline_progress = true;
	open_dev(f);
	bb_dev_progress(f->dev);
	assert_int_equal(stub.progressed, 0);
	assert_int_equal(bb_cq_create(f->dev, &attr, &cq), 0);
	bb_dev_progress(f->dev);
	assert_int_equal(stub.progressed, 1);
	cq->progress(cq->progress_arg);
	assert_int_equal(stub.progressed, 2);
	/* Waiting for events also runs the device. */
	assert_int_equal(bb_event_get(f->dev, &ev), -EAGAIN);
	assert_int_equal(stub.progressed, 3);
	assert_int_equal(bb_cq_destroy(cq), 0);
	bb_dev_progress(f->dev);
	assert_int_equal(stub.progressed, 3);
	/* A queue of another lcore does not let this lcore run the device. */
	attr.lcore = 1;
	assert_int_equal(bb_cq_create(f->dev, &attr, &cq), 0);
	bb_dev_progress(f->dev);
	assert_int_equal(stub.progressed, 3);
	assert_int_equal(bb_cq_destroy(cq), 0);
}

struct runner {
	struct bb_dev *dev;
	uint32_t lcore;
	int started, stop;
};

static void *
run_device(void *arg)
{
	struct runner *r = arg;

	if (rte_thread_register() != 0)
		return NULL;
	r->lcore = rte_lcore_id();
	__atomic_store_n(&r->started, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&r->stop, __ATOMIC_ACQUIRE)) {
		bb_dev_progress(r->dev);
		sched_yield();
	}
	rte_thread_unregister();
	return r;
}

/* A thread runs the device while another one creates and destroys its only queue. */
T_F(test_progress_beside_create_and_destroy_is_safe)
{
	struct runner r = {0};
	struct bb_cq_attr attr = DEFAULTS(cq_attr);
	struct bb_cq *cq;
	pthread_t thread;
	void *ok;

	stub.inline_progress = true;
	open_dev(f);
	r.dev = f->dev;
	assert_int_equal(pthread_create(&thread, NULL, run_device, &r), 0);
	while (!__atomic_load_n(&r.started, __ATOMIC_ACQUIRE))
		sched_yield();
	attr.depth = 16;
	attr.lcore = r.lcore;
	for (int i = 0; i < 2000; i++) {
		assert_int_equal(bb_cq_create(f->dev, &attr, &cq), 0);
		if (i % 16 == 0)
			sched_yield();
		assert_int_equal(bb_cq_destroy(cq), 0);
	}
	/* Waits until the thread has run the device. */
	assert_int_equal(bb_cq_create(f->dev, &attr, &cq), 0);
	while (__atomic_load_n(&stub.progressed, __ATOMIC_RELAXED) == 0)
		sched_yield();
	assert_int_equal(bb_cq_destroy(cq), 0);
	__atomic_store_n(&r.stop, 1, __ATOMIC_RELEASE);
	assert_int_equal(pthread_join(thread, &ok), 0);
	assert_ptr_equal(ok, &r);
}

/* Records are packed, eight bytes apart. Memory is registered per slab, not per QP. */
T_DEV(test_records_are_packed_and_registered_per_slab)
{
	static struct bb_qp *qps[MANY];
	struct bb_qp_init_attr init = DEFAULTS(qp_init_attr);
	struct bb_cq_attr attr = DEFAULTS(cq_attr);
	uint32_t umems;

	attr.depth = MANY * 8;
	assert_int_equal(bb_cq_create(f->dev, &attr, &f->cq), 0);
	init.send_cq = f->cq;
	init.recv_cq = f->cq;
	init.sq_depth = 4;
	init.rq_depth = 4;
	for (unsigned int i = 0; i < MANY; i++)
		assert_int_equal(bb_qp_create(f->pd, &init, &qps[i]), 0);
	assert_ptr_equal(qps[1]->sq.dbrec, qps[0]->sq.dbrec + 2);
	assert_ptr_equal(qps[511]->sq.dbrec, qps[0]->sq.dbrec + 2 * 511);
	/* 4 KiB each. */
	assert_true(stub.umems <= MANY * 4096 / (2 << 20) + 2);
	umems = stub.umems;
	/* Freed slots are reused. */
	for (unsigned int i = 0; i < MANY; i += 2)
		assert_int_equal(bb_qp_destroy(qps[i]), 0);
	for (unsigned int i = 0; i < MANY; i += 2)
		assert_int_equal(bb_qp_create(f->pd, &init, &qps[i]), 0);
	assert_int_equal(stub.umems, umems);
	for (unsigned int i = 0; i < MANY; i++) {
		assert_int_equal(qps[i]->sq.dbrec[0], 0);
		assert_int_equal(bb_qp_destroy(qps[i]), 0);
	}
}

/* The record of a destroyed QP is zeroed for the next one. */
T_QP(test_record_of_a_destroyed_qp_is_zeroed)
{
	struct bb_qp_init_attr init = DEFAULTS(qp_init_attr);
	uint32_t *rec = f->qp->rq.conf_dbrec;

	rec[0] = 0x12345678;
	rec[1] = 0x9abcdef0;
	assert_int_equal(bb_qp_destroy(f->qp), 0);
	init.send_cq = f->cq;
	init.recv_cq = f->cq;
	assert_int_equal(bb_qp_create(f->pd, &init, &f->qp), 0);
	assert_ptr_equal(f->qp->rq.conf_dbrec, rec);
	assert_int_equal(rec[0] | rec[1], 0);
}

/*
 * No page size above the real one is offered to the kernel, nor one that would split a slab. The
 * real size is offered, as the smallest that kernels with pages of 64 KiB accept.
 */
T_QP(test_offered_page_sizes_fit_the_slab)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE); /* --no-huge */

	assert_fields(stub, umem_pgsz, 2 * page - 4096, umem_len, 2 << 20);
	assert_int_equal((uintptr_t)stub.umem_addr % page, 0);
}

T_DEV(test_large_ring_has_a_slab_of_its_own)
{
	struct bb_cq_attr attr = DEFAULTS(cq_attr);
	struct bb_cq *cq;

	attr.depth = 1 << 17;
	assert_int_equal(bb_cq_create(f->dev, &attr, &f->cq), 0);
	/* The ring has a slab of its own; the record is in another one. */
	assert_int_equal(stub.umems, 2);
	/* More memory than EAL has. */
	attr.depth = 1 << 22;
	assert_int_equal(bb_cq_create(f->dev, &attr, &cq), -ENOMEM);
}

/*
 * Each step of creating a QP fails in turn. The device stays unchanged and can create one
 * afterwards.
 */
T_QP(test_failed_qp_create_leaves_nothing)
{
	static const struct {
		uint16_t op;
		int *err;
	} fail[] = {
		{BB_PRM_OP_CREATE_QP, NULL},
		{0, &stub.subscribe_errno},
	};
	struct bb_qp_init_attr init = DEFAULTS(qp_init_attr);
	unsigned int alive;
	struct bb_qp *qp;

	init.send_cq = f->cq;
	init.recv_cq = f->cq;
	alive = stub_alive();
	for (size_t i = 0; i < RTE_DIM(fail); i++) {
		stub.fail_op = fail[i].op;
		stub.fail_errno = -ENOMEM;
		if (fail[i].err != NULL)
			*fail[i].err = -ENOMEM;
		assert_int_equal(bb_qp_create(f->pd, &init, &qp), -ENOMEM);
		assert_int_equal(stub_alive(), alive);
		stub.fail_op = 0;
		stub.subscribe_errno = 0;
	}
	assert_int_equal(bb_qp_create(f->pd, &init, &qp), 0);
	assert_int_equal(bb_qp_destroy(qp), 0);
}

T_DEV(test_failed_cq_create_leaves_nothing)
{
	struct bb_cq_attr attr = DEFAULTS(cq_attr);
	struct bb_cq *cq;
	unsigned int alive = stub_alive();

	stub.no_uar = true;
	assert_int_equal(bb_cq_create(f->dev, &attr, &cq), -ENOSPC);
	stub.no_uar = false;
	stub.umem_errno = -ENOMEM;
	assert_int_equal(bb_cq_create(f->dev, &attr, &cq), -ENOMEM);
	stub.umem_errno = 0;
	assert_int_equal(stub_alive(), alive);
	stub.subscribe_errno = -EINVAL;
	assert_int_equal(bb_cq_create(f->dev, &attr, &cq), -EINVAL);
	stub.subscribe_errno = 0;
	/* A slab stays allocated for the next queue. */
	assert_int_equal(stub_alive(), alive + 1);
}

T_DEV(test_errors_of_pd_and_mr_are_returned)
{
	static uint8_t mem[64];
	struct bb_mr *mr;
	struct bb_pd *pd;

	stub.pd_errno = -ENOMEM;
	assert_int_equal(bb_pd_alloc(f->dev, &pd), -ENOMEM);
	stub.mr_errno = -EFAULT;
	assert_int_equal(bb_mr_reg(f->pd, mem, sizeof(mem), BB_ACCESS_LOCAL_WRITE, &mr), -EFAULT);
	stub.mr_errno = 0;
	assert_int_equal(bb_mr_reg(f->pd, mem, sizeof(mem), BB_ACCESS_LOCAL_WRITE, &mr), 0);
	assert_int_equal(mr->lkey, 0x11200);
	assert_int_equal(bb_mr_dereg(mr), 0);
}

TEST_MAIN(stub_eal_init("mlx5_queues"))
