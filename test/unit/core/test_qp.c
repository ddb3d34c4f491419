/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Queue pairs: create, user indices, query, address. */
#include <rte_random.h>

#include "qp_fixture.h"

T(test_create_links_qp_to_device_and_pd)
{
	struct bb_qp *qp = qp_create(f);

	assert_int_equal((uintptr_t)qp % BB_CACHE_LINE, 0);
	assert_int_equal(qp->state, BB_QP_RESET);
	assert_int_not_equal(qp->user_index, 0);
	assert_ptr_equal(f->dev->qps[qp->user_index], qp);
	assert_int_equal(qp->ctrl->init.signal_every, 8);
	assert_int_equal(fake.qps, 1);
	assert_int_equal(f->pd->qps, 1);
	assert_logged(bb_pd_free(f->pd), -EBUSY, "0 MRs, 1 QP and 0 SRQs live");
	assert_int_equal(bb_qp_destroy(qp), 0);
	assert_int_equal(f->dev->qps_used, 0);
	assert_int_equal(bb_qp_destroy(NULL), -EINVAL);
}

T(test_create_fills_zeroes_with_defaults)
{
	struct bb_qp_init_attr attr;
	struct bb_qp *qp;

	init_attr(f, &attr);
	attr.sq_depth = 1;
	attr.rq_depth = 0;
	attr.recv_cq = NULL;
	f->dev->attr.bf_size = 0;
	assert_int_equal(bb_qp_create(f->pd, &attr, &qp), 0);
	assert_int_equal(qp->ctrl->init.signal_every, 1);
	assert_ptr_equal(qp->ctrl->recv_cq, f->cq);
	assert_int_equal(qp->ctrl->init.db_mode, BB_DB_DOORBELL);
	assert_fields(*f->cq->ctrl, reserved, 1, queues, 1);
	bring_to(qp, BB_QP_RTS);
	assert_int_equal(modify(qp, BB_QP_RESET, BB_QP_STATE), 0);
	assert_int_equal(bb_qp_destroy(qp), 0);
}

T(test_create_refuses_bad_attributes)
{
	struct bb_qp_init_attr good, attr;
	struct bb_qp *qp = (void *)1;
	struct bb_dev *other;
	struct bb_cq *cq;

	init_attr(f, &good);
#define REFUSE(change, ret, text)                                                                  \
	do {                                                                                       \
		attr = good;                                                                       \
		change;                                                                            \
		log_begin();                                                                       \
		assert_int_equal(bb_qp_create(f->pd, &attr, &qp), ret);                            \
		log_expect(text);                                                                  \
		assert_ptr_equal(qp, (void *)1);                                                   \
		assert_int_equal(fake.qps, 0);                                                     \
		assert_int_equal(f->cq->ctrl->reserved, 0);                                        \
		assert_int_equal(f->dev->qps_used, 0);                                             \
	} while (0)
	REFUSE(attr.size--, -EINVAL, "bb_qp_init_attr_init()");
	REFUSE(attr.type = (enum bb_qp_type)7, -EINVAL, "type");
	REFUSE(attr.send_cq = NULL, -EINVAL, "send_cq");
	REFUSE(attr.recv_cq = NULL, -EINVAL, "recv_cq");
	REFUSE(attr.sq_depth = 0, -EINVAL, "sq_depth 0");
	REFUSE(attr.sq_depth = 8193, -EINVAL, "sq_depth 8193 is out of range: give 1 to 8192");
	REFUSE(attr.rq_depth = 8193, -EINVAL, "rq_depth");
	REFUSE(attr.max_sge = 9, -EINVAL, "max_sge");
	REFUSE(attr.max_recv_sge = 5, -EINVAL, "max_recv_sge");
	REFUSE(attr.max_inline = 257, -EINVAL, "max_inline");
	REFUSE(attr.signal_every = 33, -EINVAL, "signal_every");
	REFUSE(attr.db_mode = (enum bb_db_mode)5, -EINVAL, "db_mode");
	REFUSE(attr.sq_depth = 250, -ENOSPC, "create the CQ");
	REFUSE(fake_fail(FAKE_QP_CREATE, -EREMOTEIO), -EREMOTEIO, NULL);
	fake_fail(FAKE_NONE, 0);

	/* A CQ of another device and one of another owner. */
	assert_int_equal(bb_dev_open("fake1", &other), 0);
	cq = fixture_cq(other, 256);
	REFUSE(attr.recv_cq = cq, -EINVAL, "another device");
	assert_int_equal(bb_cq_destroy(cq), 0);
	assert_int_equal(bb_dev_close(other), 0);
	cq = fixture_cq(f->dev, 256);
	cq->owner = 1;
	REFUSE(attr.recv_cq = cq, -EINVAL, "different owners");
	assert_int_equal(bb_cq_destroy(cq), 0);
#undef REFUSE

	assert_logged(bb_qp_create_v(f->pd, &good, 0, &qp), -EPROTO, "rebuild");
	assert_int_equal(bb_qp_create(NULL, &good, &qp), -EINVAL);
	assert_int_equal(bb_qp_create(f->pd, NULL, &qp), -EINVAL);
	assert_int_equal(bb_qp_create(f->pd, &good, NULL), -EINVAL);
}

T(test_user_index_is_reused_last)
{
	struct bb_qp *a = qp_create(f), *b;
	uint32_t first = a->user_index, seen = 0, i;

	assert_int_equal(bb_qp_destroy(a), 0);
	b = qp_create(f);
	assert_int_equal(b->user_index, first + 1);
	f->dev->qps_next = BB_MAX_USER_INDEX;
	a = qp_create(f);
	assert_int_equal(a->user_index, BB_MAX_USER_INDEX);
	assert_int_equal(bb_qp_destroy(a), 0);
	/* Across the wrap: index 0 is never used, and indexes in use are skipped. */
	for (i = 0; i < 3; i++) {
		a = qp_create(f);
		assert_int_not_equal(a->user_index, 0);
		assert_int_not_equal(a->user_index, b->user_index);
		seen += a->user_index;
		assert_int_equal(bb_qp_destroy(a), 0);
	}
	assert_int_equal(seen, 1 + 3 + 4);
	assert_int_equal(bb_qp_destroy(b), 0);
}

T(test_create_fails_without_a_free_user_index)
{
	struct bb_qp_init_attr attr;
	struct bb_qp *qp = NULL, *some = qp_create(f);

	for (uint32_t i = 1; i <= BB_MAX_USER_INDEX; i++)
		if (i != 500 && f->dev->qps[i] == NULL)
			f->dev->qps[i] = some;
	init_attr(f, &attr);
	assert_int_equal(bb_qp_create(f->pd, &attr, &qp), 0);
	assert_int_equal(qp->user_index, 500);
	assert_int_equal(bb_qp_create(f->pd, &attr, &qp), -ENOMEM);
	assert_int_equal(f->cq->ctrl->queues, 4);
	assert_int_equal(bb_qp_destroy(qp), 0);
	for (uint32_t i = 1; i <= BB_MAX_USER_INDEX; i++)
		f->dev->qps[i] = NULL;
	f->dev->qps[some->user_index] = some;
	assert_int_equal(bb_qp_destroy(some), 0);
}

T(test_query_reports_the_state_of_the_device)
{
	struct bb_qp *qp = qp_create(f);
	struct bb_qp_attr a;

	bring_to(qp, BB_QP_RTS);
	assert_int_equal(bb_qp_query(qp, &a), 0);
	assert_fields(a, size, sizeof(a), state, BB_QP_RTS, dest_qpn, 0x77, rq_psn, 1, sq_psn, 2);
	assert_fields(a, path_mtu, 1024, timeout, 14, path.port, 1);
	/* The state that the device reports wins. */
	fake.has_query_state = true;
	fake.query_state = BB_QP_ERR;
	assert_int_equal(bb_qp_query(qp, &a), 0);
	assert_int_equal(a.state, BB_QP_ERR);
	assert_int_equal(qp->state, BB_QP_ERR);
	/* A query answer that is older than an error CQE does not undo the error. */
	fake.query_state = BB_QP_RTS;
	assert_int_equal(bb_qp_query(qp, &a), 0);
	assert_int_equal(qp->state, BB_QP_ERR);
	assert_int_equal(bb_qp_query(qp, NULL), -EINVAL);
	assert_int_equal(bb_qp_query(NULL, &a), -EINVAL);
	assert_int_equal(bb_qp_destroy(qp), 0);
}

T(test_posted_counts_past_32_bits)
{
	struct bb_qp *qp = qp_create(f);
	struct bb_qp_stats stats;
	struct bb_wc wc;

	bring_to(qp, BB_QP_RTS);
	qp->sq.seq = 0xfffffff0;
	qp->sq.done = 0xfffffff0;
	qp->sq.rung_seq = 0x1fffffff0;
	for (uint32_t i = 1; i <= 40; i++) {
		uint16_t counter = qp->sq.pi;

		assert_int_equal(bb_post_nop(qp, i, BB_SEND_SIGNALED), 0);
		assert_int_equal(bb_qp_stats(qp, &stats), 0);
		assert_fields(stats, posted, 0x1fffffff0 + i, outstanding, 1);
		if (i % 3 != 0)
			bb_qp_ring(qp);
		fake_cqe(f->cq, BB_CQE_REQ, qp->user_index, counter);
		assert_int_equal(bb_cq_poll(f->cq, &wc, 1), 1);
		assert_int_equal(wc.wr_id, i);
	}
	assert_int_equal(bb_qp_destroy(qp), 0);
}

T(test_addr_has_gid_mtu_and_a_new_psn)
{
	struct bb_qp *qp = qp_create(f);
	struct bb_qp_addr a, b;
	unsigned int i, same = 0;

	assert_int_equal(bb_qp_addr(qp, 1, 3, &a), 0);
	assert_fields(a, qpn, qp->qpn, mtu, 2048, gid[15], 3);
	for (i = 0; i < 16; i++) {
		assert_int_equal(bb_qp_addr(qp, 1, 3, &b), 0);
		assert_true(b.psn <= 0xffffff);
		same += a.psn == b.psn;
	}
	assert_true(same < 16);
	assert_logged(bb_qp_addr(qp, 1, 2, &b), -ENOENT, "no GID at index 2");
	assert_int_equal(bb_qp_addr(qp, 9, 0, &b), -EINVAL);
	assert_int_equal(bb_qp_addr(qp, 1, 0, NULL), -EINVAL);
	/* InfiniBand needs no GRH. */
	fake.link = BB_LINK_INFINIBAND;
	assert_int_equal(bb_qp_addr(qp, 1, 2, &b), 0);
	assert_int_equal(b.lid, 7);
	/* Except on ports that require a GRH on every path. */
	fake.grh_required = true;
	assert_logged(bb_qp_addr(qp, 1, 2, &b), -ENOENT, "no GID at index 2");
	assert_int_equal(bb_qp_addr(qp, 1, 3, &b), 0);
	assert_int_equal(b.gid[15], 3);
	assert_int_equal(bb_qp_destroy(qp), 0);
}

/* A peer that has seen PSNs of this process cannot predict the next one. */
T(test_psns_are_not_predictable_from_rte_rand)
{
	struct bb_qp *qp = qp_create(f);
	unsigned int i, same = 0;
	struct bb_qp_addr a, b;

	for (i = 0; i < 8; i++) {
		rte_srand(i);
		assert_int_equal(bb_qp_addr(qp, 1, 3, &a), 0);
		rte_srand(i);
		assert_int_equal(bb_qp_addr(qp, 1, 3, &b), 0);
		same += a.psn == b.psn;
	}
	/* One match is possible by chance: 1 in 2^24. */
	assert_in_range(same, 0, 1);
	assert_int_equal(bb_qp_destroy(qp), 0);
}

/* ERR accepts posts, also when the device and not a call caused it. */
T(test_err_accepts_posts_whoever_caused_it)
{
	struct bb_qp *qp = qp_create(f);
	const struct bb_sge sge = {0x2000, 64, 0x55};
	struct bb_event ev;
	struct bb_wc wc;

	/* The CQE of a receive that failed by an invalid request. */
	bring_to(qp, BB_QP_RTR);
	assert_int_equal(bb_post_recv(qp, 5, &sge, 1), 0);
	assert_int_equal(bb_post_nop(qp, 1, 0), -ENOTCONN);
	fake_cqe_error(f->cq, BB_CQE_RESP_ERR, qp->user_index, 0, BB_SYN_LOCAL_LENGTH, 0);
	assert_int_equal(bb_cq_poll(f->cq, &wc, 1), 1);
	assert_int_equal(bb_post_nop(qp, 1, 0), 0);

	/* An event. A reset discards its effect, even if the event arrives late. */
	bring_to(qp, BB_QP_ERR);
	assert_int_equal(modify(qp, BB_QP_RESET, BB_QP_STATE), 0);
	assert_int_equal(bb_post_nop(qp, 1, 0), -ENOTCONN);
	fake.event = (struct bb_event){.type = BB_EVENT_QP_ACCESS, .qp = qp};
	fake.has_event = true;
	assert_int_equal(bb_event_get(f->dev, &ev), 0);
	assert_int_equal(bb_post_nop(qp, 1, 0), -ENOTCONN);
	bring_to(qp, BB_QP_RTR);
	assert_int_equal(bb_post_nop(qp, 1, 0), -ENOTCONN);
	/* The event arrives still later: the device says that the QP is in RTR again. */
	fake.has_event = true;
	fake.has_query_state = true;
	fake.query_state = BB_QP_RTR;
	assert_int_equal(bb_event_get(f->dev, &ev), 0);
	assert_int_equal(qp->state, BB_QP_RTR);
	fake.has_query_state = false;
	fake.has_event = true;
	assert_int_equal(bb_event_get(f->dev, &ev), 0);
	assert_int_equal(qp->state, BB_QP_ERR);
	assert_int_equal(bb_post_read(qp, 1, &sge, 1, 0x1000, 7, 0), 0);
	assert_int_equal(bb_post_send(qp, 1, &sge, 1, 0), 0);
	assert_int_equal(bb_qp_destroy(qp), 0);
}

TEST_MAIN(fake_eal_init())
