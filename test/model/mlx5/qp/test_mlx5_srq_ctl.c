/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* SRQs of the public API: CQ credits, limits of the device, and refused calls with their errors. */
#include "../mlx5_types.h"
#include "mlx5_srq_env.h"

/* A CQ reserves the depth of an SRQ once, and releases it with the last QP. */
SRQ_TEST(0, 1, test_cq_reserves_the_depth_of_an_srq_once)
{
	struct bb_qp_init_attr init;
	struct bb_cq_attr attr;
	struct bb_qp *qp[3], *none;
	struct bb_cq *cq;

	bb_cq_attr_init(&attr);
	attr.depth = 64;
	OK(bb_cq_create(r->e.b.dev, &attr, &cq));
	init = r->e.init;
	init.send_cq = r->e.b.cq;
	init.recv_cq = cq;
	init.sq_depth = 16;
	init.srq = r->srq;
	/* 32 for the SRQ, whatever the number of QPs. */
	OK(bb_qp_create(r->e.b.pd, &init, &qp[0]));
	OK(bb_qp_create(r->e.b.pd, &init, &qp[1]));
	init.send_cq = cq;
	init.sq_depth = 32;
	OK(bb_qp_create(r->e.b.pd, &init, &qp[2]));
	init.sq_depth = 1;
	none = NULL;
	assert_int_equal(bb_qp_create(r->e.b.pd, &init, &none), -ENOSPC);
	assert_null(none);
	OK(bb_qp_destroy(qp[2]));
	OK(bb_qp_destroy(qp[1]));
	init.sq_depth = 33;
	assert_int_equal(bb_qp_create(r->e.b.pd, &init, &none), -ENOSPC);
	assert_int_equal(bb_srq_destroy(r->srq), -EBUSY);
	OK(bb_qp_destroy(qp[0]));
	/* The SRQ's share is released: 64 entries for a queue without the SRQ. */
	init.srq = NULL;
	init.rq_depth = 31;
	OK(bb_qp_create(r->e.b.pd, &init, &none));
	OK(bb_qp_destroy(none));
	OK(bb_cq_destroy(cq));
}

SRQ_TEST(1, 1, test_srq_of_another_thread_or_layout_is_refused)
{
	struct bb_qp_init_attr init;
	struct bb_srq_attr attr;
	struct bb_srq *srq = NULL;
	struct bb_qp *qp = NULL;

	bb_srq_attr_init(&attr);
	attr.lcore = 12345;
	assert_int_equal(bb_srq_create(r->e.b.pd, &attr, &srq), -EINVAL);
	attr.lcore = BB_LCORE_SELF;
	assert_int_equal(bb_srq_create_v(r->e.b.pd, &attr, BB_LAYOUT_VERSION + 1, &srq), -EPROTO);
	assert_null(srq);
	/* An SRQ of another thread, and an SRQ without a receive CQ, are refused. */
	attr.lcore = 1;
	OK(bb_srq_create(r->e.b.pd, &attr, &srq));
	init = r->e.init;
	init.send_cq = r->e.b.cq;
	init.recv_cq = r->e.b.cq;
	init.srq = srq;
	assert_int_equal(bb_qp_create(r->e.b.pd, &init, &qp), -EINVAL);
	init.srq = r->srq;
	init.recv_cq = NULL;
	assert_int_equal(bb_qp_create(r->e.b.pd, &init, &qp), -EINVAL);
	assert_null(qp);
	OK(bb_srq_destroy(srq));
}

/* The largest SRQ of the device: every piece is used, with keys of the SRQ's PD. */
TEST(test_largest_srq_uses_every_piece_and_entry)
{
	struct bb_dev_attr dev;
	struct bb_sge sge[64];
	uint8_t want[LEN];
	uint32_t at = 0;
	struct bb_pd *pd;
	struct bb_wc wc;
	struct rig r;
	uint32_t i;

	memset(&r, 0, sizeof(r));
	env_open(&r.e);
	OK(bb_dev_query(r.e.b.dev, &dev));
	srq_open(&r, dev.max_srq_wr, dev.max_srq_sge, 0);
	OK(bb_pd_alloc(r.e.b.dev, &pd));
	{
		/* A QP of another PD: the keys belong to the SRQ's PD. */
		struct bb_qp_init_attr init = r.e.init;
		struct bb_cq_attr cq_attr;
		struct bb_cq *cq;

		bb_cq_attr_init(&cq_attr);
		cq_attr.depth = dev.max_srq_wr;
		OK(bb_cq_create(r.e.b.dev, &cq_attr, &cq));
		init.send_cq = r.e.b.cq;
		init.recv_cq = cq;
		init.srq = r.srq;
		r.a[0] = make_qp(&r, &r.e.a, NULL);
		OK(bb_qp_create(pd, &init, &r.b[0]));
		connect_pair(r.a[0], r.b[0], &r.e.attr);
		for (i = 0; i < dev.max_srq_sge; i++)
			sge[i] = sge_of(&r.e.b, 8192 - (size_t)i * 8, 2 + i % 3);
		OK(bb_post_srq_recv(r.srq, 5, sge, dev.max_srq_sge));
		bb_srq_ring(r.srq);
		send_from(&r, 0, 11);
		env_poll(&r.e, &(struct side){.cq = cq}, &wc, 1);
		/* 31 pieces of 2 to 4 bytes; the message fills 22 of them. */
		expect(&wc, r.b[0], 5, BB_WC_SUCCESS);
		fill(want, LEN, 11);
		for (i = 0; i < dev.max_srq_sge && at < LEN; i++) {
			uint32_t n = RTE_MIN(sge[i].len, LEN - at);

			assert_memory_equal((void *)(uintptr_t)sge[i].addr, want + at, n);
			at += n;
		}
		assert_int_equal(at, LEN);
		env_poll(&r.e, &r.e.a, &wc, 1);
		OK(bb_qp_destroy(r.b[0]));
		r.b[0] = NULL;
		OK(bb_cq_destroy(cq));
	}
	/* Every WQE of the SRQ accepts a receive. */
	for (i = 0; i < dev.max_srq_wr; i++)
		OK(bb_post_srq_recv(r.srq, i, sge, 1));
	assert_int_equal(bb_post_srq_recv(r.srq, i, sge, 1), -EAGAIN);
	OK(bb_pd_free(pd));
	rig_close(&r);
}

/* UC and UD: a message that is too long is lost, and the next message uses its receive. */
TEST(test_long_message_of_uc_and_ud_leaves_the_receive)
{
	enum bb_qp_type type;

	for (type = BB_QPT_UC; type <= BB_QPT_UD; type++) {
		uint32_t head = types_head(type), i;
		struct bb_srq_attr attr;
		struct bb_qp_init_attr init;
		struct bb_srq *srq;
		struct types_env t;
		struct bb_sge sge, out;
		struct bb_wc wc;
		struct env *e = &t.e;

		types_start(&t, type);
		bb_srq_attr_init(&attr);
		attr.depth = 4;
		OK(bb_srq_create(e->b.pd, &attr, &srq));
		OK(bb_qp_destroy(e->b.qp));
		init = e->init;
		init.send_cq = e->b.cq;
		init.recv_cq = e->b.cq;
		init.srq = srq;
		OK(bb_qp_create(e->b.pd, &init, &e->b.qp));
		if (type == BB_QPT_UD) {
			OK(bb_qp_ud_up(e->b.qp, 1, 0, TYPES_QKEY, 2));
		} else {
			struct bb_qp_attr a;

			bb_qp_attr_init(&a);
			a.state = BB_QP_RESET;
			OK(bb_qp_modify(e->a.qp, &a, BB_QP_STATE));
			connect_pair(e->a.qp, e->b.qp, &e->attr);
		}
		fill(e->a.buf, 4096, 3);
		for (i = 0; i < 40; i++) {
			uint32_t len = i % 9 == 4 ? 200 : 64;

			if (i % 9 != 5) {
				sge = sge_of(&e->b, (size_t)(i & 3) * 256, 64 + head);
				OK(bb_post_srq_recv(srq, i, &sge, 1));
				bb_srq_ring(srq);
			}
			out = sge_of(&e->a, i * 8, len);
			if (type == BB_QPT_UD)
				OK(bb_post_send_ud(e->a.qp, 1, &out, 1, t.to_b, e->b.qp->qpn,
						   TYPES_QKEY, BB_SEND_SIGNALED));
			else
				OK(bb_post_send(e->a.qp, 1, &out, 1, BB_SEND_SIGNALED));
			bb_qp_ring(e->a.qp);
			env_poll(e, &e->a, &wc, 1);
			assert_int_equal(wc.status, BB_WC_SUCCESS);
			if (len == 200) {
				env_silent(e, &e->b);
				continue;
			}
			env_poll(e, &e->b, &wc, 1);
			/* After a lost message, the receive that was posted for it is used. */
			expect(&wc, e->b.qp, i % 9 == 5 ? i - 1 : i, BB_WC_SUCCESS);
			assert_int_equal(wc.byte_len, 64 + head);
			assert_memory_equal(e->b.buf + (wc.wr_id & 3) * 256 + head,
					    e->a.buf + i * 8, 64);
		}
		OK(bb_qp_destroy(e->b.qp));
		e->b.qp = NULL;
		OK(bb_srq_destroy(srq));
		types_stop(&t);
	}
}

TEST_MAIN(env_eal_init("mlx5_srq_ctl"))
