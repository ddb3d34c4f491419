/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The state machine of queue pairs: transitions, ranges, reset, connect. */
#include "qp_fixture.h"

/* The state machine, written down a second time: from, to, required and optional attributes. */
static const struct {
	enum bb_qp_state from, to;
	uint32_t required, optional;
} legal[] = {
	{BB_QP_RESET, BB_QP_RESET, 0, 0},
	{BB_QP_RESET, BB_QP_INIT, TO_INIT, 0},
	{BB_QP_RESET, BB_QP_ERR, 0, 0},
	{BB_QP_INIT, BB_QP_RESET, 0, 0},
	{BB_QP_INIT, BB_QP_INIT, 0, TO_INIT},
	{BB_QP_INIT, BB_QP_RTR, TO_RTR, BB_QP_ACCESS | BB_QP_PKEY_INDEX},
	{BB_QP_INIT, BB_QP_ERR, 0, 0},
	{BB_QP_RTR, BB_QP_RESET, 0, 0},
	{BB_QP_RTR, BB_QP_RTS, TO_RTS, BB_QP_ACCESS | BB_QP_MIN_RNR_TIMER},
	{BB_QP_RTR, BB_QP_ERR, 0, 0},
	{BB_QP_RTS, BB_QP_RESET, 0, 0},
	{BB_QP_RTS, BB_QP_RTS, 0, BB_QP_ACCESS | BB_QP_MIN_RNR_TIMER},
	{BB_QP_RTS, BB_QP_ERR, 0, 0},
	{BB_QP_ERR, BB_QP_RESET, 0, 0},
	{BB_QP_ERR, BB_QP_ERR, 0, 0},
};

/*
 * Every pair of states with its required attributes, with one missing, and with each one added.
 */
T(test_only_legal_transitions_with_their_attributes_succeed)
{
	static const enum bb_qp_state states[] = {BB_QP_RESET, BB_QP_INIT, BB_QP_RTR, BB_QP_RTS,
						  BB_QP_ERR};
	unsigned int i, j, k, bit, tried = 0;

	rte_log_set_level_pattern("bluebell", RTE_LOG_EMERG);
	for (i = 0; i < RTE_DIM(states); i++) {
		for (j = 0; j < RTE_DIM(states); j++) {
			const uint32_t st = BB_QP_STATE;
			int found = -1;

			for (k = 0; k < RTE_DIM(legal); k++)
				if (legal[k].from == states[i] && legal[k].to == states[j])
					found = (int)k;
			for (bit = 0; bit < 16; bit++) {
				uint32_t one = 1u << bit, mask = st;
				struct bb_qp *qp = qp_create(f);
				int calls, want = 0;

				bring_to(qp, states[i]);
				calls = fake.modifies;
				if (found >= 0)
					mask |= legal[found].required;
				/* Toggles one attribute; BB_QP_STATE stands for none. */
				if (one != st)
					mask ^= one;
				if (found < 0)
					want = -EINVAL;
				else if (one != st && ((legal[found].required & one) != 0 ||
						       (legal[found].optional & one) == 0))
					want = -EINVAL;
				assert_int_equal(modify(qp, states[j], mask), want);
				assert_int_equal(qp->state, want == 0 ? states[j] : states[i]);
				assert_int_equal(fake.modifies, calls + (want == 0));
				assert_int_equal(bb_qp_destroy(qp), 0);
				tried++;
			}
		}
	}
	rte_log_set_level_pattern("bluebell", RTE_LOG_NOTICE);
	assert_int_equal(tried, 25 * 16);
}

T(test_refused_modify_logs_what_is_wrong)
{
	struct bb_qp *qp = qp_create(f);
	struct bb_qp_attr a;

	assert_logged(modify(qp, BB_QP_INIT, TO_INIT & ~BB_QP_ACCESS), -EINVAL,
		      "transition from RESET to INIT lacks attribute BB_QP_ACCESS");
	assert_logged(modify(qp, BB_QP_INIT, TO_INIT | BB_QP_TIMEOUT), -EINVAL,
		      "transition from RESET to INIT does not allow attribute BB_QP_TIMEOUT");
	assert_logged(modify(qp, BB_QP_RTS, TO_RTS), -EINVAL, "no transition from RESET to RTS");
	assert_logged(modify(qp, BB_QP_SQD, BB_QP_STATE), -ENOTSUP, "stop posting");
	assert_int_equal(modify(qp, (enum bb_qp_state)42, BB_QP_STATE), -EINVAL);
	good_attr(&a);
	a.state = BB_QP_INIT;
	a.size = 1;
	assert_logged(bb_qp_modify(qp, &a, TO_INIT), -EINVAL, "bb_qp_attr_init()");
	assert_int_equal(bb_qp_modify(qp, NULL, TO_INIT), -EINVAL);
	assert_int_equal(bb_qp_modify(NULL, &a, TO_INIT), -EINVAL);
	assert_int_equal(fake.modifies, 0);
	assert_int_equal(bb_qp_destroy(qp), 0);
}

T(test_attribute_out_of_range_is_refused_by_name)
{
	struct bb_qp *qp = qp_create(f);
	struct bb_qp_attr a;

#define OUT(to, mask, change, text)                                                                \
	do {                                                                                       \
		int calls_ = fake.modifies;                                                        \
		good_attr(&a);                                                                     \
		a.state = to;                                                                      \
		change;                                                                            \
		log_begin();                                                                       \
		assert_int_equal(bb_qp_modify(qp, &a, mask), -EINVAL);                             \
		log_expect(text);                                                                  \
		assert_int_equal(fake.modifies, calls_);                                           \
	} while (0)
	OUT(BB_QP_INIT, TO_INIT, a.path.port = 0, "path.port 0");
	OUT(BB_QP_INIT, TO_INIT, a.path.port = FAKE_PORTS + 1, "path.port");
	OUT(BB_QP_INIT, TO_INIT, a.access = 1 << 9, "access");
	f->dev->attr.atomics = false;
	OUT(BB_QP_INIT, TO_INIT, a.access = BB_ACCESS_REMOTE_ATOMIC, "no atomics");
	f->dev->attr.atomics = true;
	assert_int_equal(modify(qp, BB_QP_INIT, TO_INIT), 0);

	OUT(BB_QP_RTR, TO_RTR, a.path_mtu = 4096, "path_mtu 4096"); /* the active MTU is 2048 */
	OUT(BB_QP_RTR, TO_RTR, a.path_mtu = 1000, "path_mtu");
	OUT(BB_QP_RTR, TO_RTR, a.path_mtu = 128, "path_mtu");
	OUT(BB_QP_RTR, TO_RTR, a.path_mtu = 0, "path_mtu");
	OUT(BB_QP_RTR, TO_RTR, a.dest_qpn = 1 << 24, "dest_qpn");
	OUT(BB_QP_RTR, TO_RTR, a.rq_psn = 1 << 24, "rq_psn");
	OUT(BB_QP_RTR, TO_RTR, a.max_dest_rd_atomic = 17, "max_dest_rd_atomic");
	OUT(BB_QP_RTR, TO_RTR, a.min_rnr_timer = 32, "min_rnr_timer");
	OUT(BB_QP_RTR, TO_RTR, a.path.port = 2, "path.port");
	OUT(BB_QP_RTR, TO_RTR, a.path.flow_label = 1 << 20, "flow_label");
	OUT(BB_QP_RTR, TO_RTR, a.path.sl = 8, "path.sl");
	OUT(BB_QP_RTR, TO_RTR, a.path.static_rate = 1, "static_rate");
	OUT(BB_QP_RTR, TO_RTR, a.path.static_rate = 24, "static_rate");
	OUT(BB_QP_RTR, TO_RTR, a.path.sgid_index = FAKE_GIDS, "sgid_index");
	OUT(BB_QP_RTR, TO_RTR, a.path.sgid_index = 2, "empty");
	OUT(BB_QP_RTR, TO_RTR, a.path.dgid[15] = 0, "dgid");
	fake.link = BB_LINK_INFINIBAND;
	OUT(BB_QP_RTR, TO_RTR, a.path.dlid = 0, "LID");
	OUT(BB_QP_RTR, TO_RTR, a.path.sl = 16, "path.sl");
	OUT(BB_QP_RTR, TO_RTR, (a.path.is_global = 1, a.path.sgid_index = 2), "empty");
	OUT(BB_QP_RTR, TO_RTR, (a.path.is_global = 1, a.path.dgid[15] = 0), "dgid");
	fake.grh_required = true;
	OUT(BB_QP_RTR, TO_RTR, a.path.is_global = 0, "is_global 0");
	fake.grh_required = false;
	/* Without a GRH the GIDs are ignored. */
	good_attr(&a);
	a.state = BB_QP_RTR;
	a.path.sgid_index = 2;
	a.path.dgid[15] = 0;
	assert_int_equal(bb_qp_modify(qp, &a, TO_RTR), 0);

	OUT(BB_QP_RTS, TO_RTS, a.sq_psn = 1 << 24, "sq_psn");
	OUT(BB_QP_RTS, TO_RTS, a.timeout = 32, "timeout");
	OUT(BB_QP_RTS, TO_RTS, a.retry_cnt = 8, "retry_cnt");
	OUT(BB_QP_RTS, TO_RTS, a.rnr_retry = 8, "rnr_retry");
	OUT(BB_QP_RTS, TO_RTS, a.max_rd_atomic = 17, "max_rd_atomic");
#undef OUT
	assert_int_equal(qp->state, BB_QP_RTR);
	assert_int_equal(bb_qp_destroy(qp), 0);
}

T(test_refusal_by_the_device_leaves_the_qp_unchanged)
{
	struct bb_qp *qp = qp_create(f);
	struct bb_qp_attr a;

	bring_to(qp, BB_QP_RTS);
	assert_int_equal(bb_post_nop(qp, 1, 0), 0);
	fake_fail(FAKE_QP_MODIFY, -EREMOTEIO);
	assert_int_equal(modify(qp, BB_QP_RESET, BB_QP_STATE), -EREMOTEIO);
	assert_int_equal(qp->state, BB_QP_RTS);
	assert_int_equal(bb_sq_outstanding(&qp->sq), 1);
	assert_int_equal(modify(qp, BB_QP_ERR, BB_QP_STATE), -EREMOTEIO);
	assert_int_equal(qp->state, BB_QP_RTS);
	fake_fail(FAKE_QP_DESTROY, -EIO);
	assert_int_equal(bb_qp_destroy(qp), -EIO);
	assert_ptr_equal(f->dev->qps[qp->user_index], qp);
	assert_int_equal(f->cq->ctrl->queues, 2);
	assert_int_equal(bb_post_nop(qp, 2, 0), 0);
	fake_fail(FAKE_QP_QUERY, -EIO);
	memset(&a, 0x5a, sizeof(a));
	assert_int_equal(bb_qp_query(qp, &a), -EIO);
	assert_int_equal(a.access, 0x5a5a5a5a);
	fake_fail(FAKE_NONE, 0);
	assert_int_equal(bb_qp_destroy(qp), 0);
}

T(test_sends_need_rts_and_receives_no_state)
{
	static const struct {
		enum bb_qp_state state;
		int send, recv;
	} table[] = {
		{BB_QP_RESET, -ENOTCONN, 0}, {BB_QP_INIT, -ENOTCONN, 0}, {BB_QP_RTR, -ENOTCONN, 0},
		{BB_QP_RTS, 0, 0},           {BB_QP_ERR, 0, 0},
	};

	rte_log_set_level_pattern("bluebell*", RTE_LOG_EMERG);
	for (unsigned int i = 0; i < RTE_DIM(table); i++) {
		struct bb_qp *qp = qp_create(f);

		bring_to(qp, table[i].state);
		assert_int_equal(bb_post_nop(qp, 1, 0), table[i].send);
		assert_int_equal(bb_post_recv(qp, 1, NULL, 0), table[i].recv);
		/* A reset discards all posted requests. */
		assert_int_equal(modify(qp, BB_QP_RESET, BB_QP_STATE), 0);
		assert_int_equal(bb_post_nop(qp, 1, 0), -ENOTCONN);
		assert_int_equal(qp->rq.pi, 0);
		assert_int_equal(bb_post_recv(qp, 1, NULL, 0), 0);
		assert_int_equal(bb_qp_destroy(qp), 0);
	}
	rte_log_set_level_pattern("bluebell*", RTE_LOG_NOTICE);
}

/*
 * A reset QP starts afresh: no old CQE, doorbell records zero, and the next first error is
 * logged.
 */
T(test_reset_starts_afresh)
{
	struct bb_qp *qp = qp_create(f);
	struct bb_qp_stats stats;
	struct bb_cq_stats cstats;
	struct bb_wc wc[4];

	for (unsigned int life = 1; life <= 3; life++) {
		bring_to(qp, BB_QP_RTS);
		assert_int_equal(bb_post_nop(qp, life, BB_SEND_SIGNALED), 0);
		assert_int_equal(bb_post_nop(qp, life, BB_SEND_SIGNALED), 0);
		assert_int_equal(bb_post_recv(qp, life, NULL, 0), 0);
		bb_qp_ring(qp);
		bb_qp_ring_recv(qp);
		fake_cqe_error(f->cq, BB_CQE_REQ_ERR, qp->user_index, 0, BB_SYN_RETRY_EXC, 0x81);
		assert_logged(bb_cq_poll(f->cq, wc, 4), 1, "retry counter exceeded");
		assert_int_equal(wc[0].wr_id, life);
		/* A CQE that the reset purges. */
		fake_cqe_error(f->cq, BB_CQE_REQ_ERR, qp->user_index, 1, BB_SYN_WR_FLUSH, 0xf9);
		assert_int_equal(modify(qp, BB_QP_RESET, BB_QP_STATE), 0);
		assert_int_equal(bb_cq_poll(f->cq, wc, 4), 0);
		assert_int_equal(*qp->sq.dbrec, 0);
		assert_int_equal(*qp->rq.conf_dbrec, 0);
		assert_int_equal(bb_qp_stats(qp, &stats), 0);
		assert_fields(stats, posted, 2 * life, doorbells, life, outstanding, 0);
		assert_fields(stats, recv_posted, life, recv_outstanding, 0, errors, life);
	}
	assert_int_equal(bb_cq_stats(f->cq, &cstats), 0);
	assert_fields(cstats, purged, 3, cqes, 3);
	assert_int_equal(bb_qp_stats(qp, NULL), -EINVAL);
	assert_int_equal(bb_qp_destroy(qp), 0);
}

T(test_connect_applies_both_addresses)
{
	struct bb_qp *a = qp_create(f), *b = qp_create(f);
	struct bb_qp_addr la, lb;
	struct bb_qp_attr attr = DEFAULTS(qp_attr);

	assert_int_equal(bb_qp_addr(a, 1, 0, &la), 0);
	assert_int_equal(bb_qp_addr(b, 1, 1, &lb), 0);
	lb.mtu = 512;
	attr.access = BB_ACCESS_REMOTE_READ;
	attr.path.traffic_class = 0x40;
	assert_int_equal(bb_qp_connect(a, &la, &lb, &attr), 0);
	assert_int_equal(a->state, BB_QP_RTS);
	assert_fields(fake, modifies, 3, last_mask, TO_RTS);
	assert_fields(a->ctrl->attr, dest_qpn, b->qpn, sq_psn, la.psn, rq_psn, lb.psn);
	assert_fields(a->ctrl->attr, path_mtu, 512, access, BB_ACCESS_REMOTE_READ);
	assert_int_equal(a->ctrl->attr.path.traffic_class, 0x40);
	assert_memory_equal(a->ctrl->attr.path.dgid, lb.gid, 16);
	assert_int_equal(bb_post_nop(a, 1, 0), 0);

	assert_logged(bb_qp_connect(b, &la, &lb, &attr), -EINVAL,
		      "give this QP's own address first");
	assert_logged(bb_qp_connect(a, &la, &lb, &attr), -EINVAL, "in RTS");
	/* A port that requires a GRH gets one, whatever the attributes say. */
	fake.link = BB_LINK_INFINIBAND;
	assert_int_equal(bb_qp_addr(b, 1, 1, &lb), 0);
	la.lid = lb.lid;
	assert_int_equal(bb_qp_connect(b, &lb, &la, &attr), 0);
	assert_int_equal(b->ctrl->attr.path.is_global, 0);
	assert_int_equal(modify(b, BB_QP_RESET, BB_QP_STATE), 0);
	fake.grh_required = true;
	assert_int_equal(bb_qp_connect(b, &lb, &la, &attr), 0);
	assert_int_equal(b->ctrl->attr.path.is_global, 1);
	assert_int_equal(modify(b, BB_QP_RESET, BB_QP_STATE), 0);
	assert_int_equal(bb_qp_connect(NULL, &la, &lb, &attr), -EINVAL);
	assert_int_equal(bb_qp_connect(b, NULL, &lb, &attr), -EINVAL);
	assert_int_equal(bb_qp_connect(b, &lb, NULL, &attr), -EINVAL);
	assert_int_equal(bb_qp_connect(b, &lb, &la, NULL), -EINVAL);
	assert_int_equal(bb_qp_destroy(a), 0);
	assert_int_equal(bb_qp_destroy(b), 0);
}

/* Whichever step fails, the QP returns to RESET and can be connected again. */
T(test_failed_connect_returns_to_reset)
{
	struct bb_qp *qp = qp_create(f);
	struct bb_qp_attr attr = DEFAULTS(qp_attr);
	struct bb_qp_addr l, r;

	assert_int_equal(bb_qp_addr(qp, 1, 0, &l), 0);
	r = l;
	r.qpn = 0x99;
	for (int step = 0; step < 3; step++) {
		/* All later calls of the driver fail, the one to RESET too. */
		fake_fail(FAKE_QP_MODIFY, -EREMOTEIO);
		fake.fail_after = step;
		assert_int_equal(bb_qp_connect(qp, &l, &r, &attr), -EREMOTEIO);
		fake_fail(FAKE_NONE, 0);
		if (qp->state != BB_QP_RESET)
			assert_int_equal(modify(qp, BB_QP_RESET, BB_QP_STATE), 0);
	}
	/* The second step rejects this attribute. */
	attr.min_rnr_timer = 99;
	assert_int_equal(bb_qp_connect(qp, &l, &r, &attr), -EINVAL);
	assert_int_equal(qp->state, BB_QP_RESET);
	assert_int_equal(fake.last_to, BB_QP_RESET);
	attr.min_rnr_timer = 1;
	assert_int_equal(bb_qp_connect(qp, &l, &r, &attr), 0);
	assert_int_equal(qp->state, BB_QP_RTS);
	assert_int_equal(bb_qp_destroy(qp), 0);
}

TEST(test_every_state_has_a_name)
{
	assert_string_equal(bb_qp_state_name(BB_QP_RESET), "RESET");
	assert_string_equal(bb_qp_state_name(BB_QP_ERR), "ERR");
	assert_string_equal(bb_qp_state_name((enum bb_qp_state) - 1), "?");
	assert_string_equal(bb_qp_state_name((enum bb_qp_state)6), "?");
}

/* The state of the object is stale then: RTR. */
T(test_qp_that_failed_in_rtr_is_drained)
{
	struct bb_qp *qp = qp_create(f);

	bring_to(qp, BB_QP_RTR);
	assert_logged(bb_qp_drain(qp), -ENOTCONN, "cannot be drained before RTS");
	bb_sq_error(&qp->sq);
	assert_int_equal(bb_qp_drain(qp), 0);
	assert_int_equal(bb_qp_destroy(qp), 0);
}

TEST_MAIN(fake_eal_init())
