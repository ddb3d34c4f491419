/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Errors that an unreliable peer does not report, and attributes of UC and UD in bb_qp_modify().
 * Sources: man ibv_modify_qp; IBTA vol. 1, 9.8 and 9.9.3; Linux's rxe.
 */
#include "../mlx5_types.h"

/* A receive with a bad key is a local error: the receive fails, and so does its QP. */
TEST(test_receive_with_a_bad_key_fails_its_qp)
{
	unsigned int type;

	for (type = BB_QPT_UC; type <= BB_QPT_UD; type++) {
		struct types_env t;
		struct bb_sge sge, from;
		struct bb_wc wc[2];

		types_start(&t, type);
		sge = sge_of(&t.e.b, 0, 200);
		sge.lkey ^= 0xff00;
		OK(bb_post_recv(t.e.b.qp, 1, &sge, 1));
		OK(bb_post_recv(t.e.b.qp, 2, &sge, 1));
		bb_qp_ring_recv(t.e.b.qp);
		from = sge_of(&t.e.a, 0, 10);
		if (type == BB_QPT_UD) {
			types_send_ud(&t, t.to_b, t.e.b.qp->qpn, TYPES_QKEY, 10);
		} else {
			OK(bb_post_send(t.e.a.qp, 9, &from, 1, BB_SEND_SIGNALED));
			env_done(&t.e, &t.e.a, 9, BB_WC_SUCCESS);
		}
		env_poll(&t.e, &t.e.b, wc, 2);
		expect(&wc[0], t.e.b.qp, 1, BB_WC_LOC_PROT_ERR);
		expect(&wc[1], t.e.b.qp, 2, BB_WC_WR_FLUSH_ERR);
		/* The peer's QP is unaffected. */
		OK(bb_post_nop(t.e.a.qp, 4, BB_SEND_SIGNALED));
		env_done(&t.e, &t.e.a, 4, BB_WC_SUCCESS);
		types_stop(&t);
	}
}

static void
uc_write(struct types_env *t, uint64_t raddr, uint32_t rkey, uint32_t len, bool imm)
{
	struct bb_sge sge = sge_of(&t->e.a, 0, len);

	if (imm)
		OK(bb_post_write_imm(t->e.a.qp, 9, &sge, 1, raddr, rkey, 1, BB_SEND_SIGNALED));
	else
		OK(bb_post_write(t->e.a.qp, 9, &sge, 1, raddr, rkey, BB_SEND_SIGNALED));
	env_done(&t->e, &t->e.a, 9, BB_WC_SUCCESS);
}

/*
 * UC: the target drops a message that it cannot take. The sender's request completes, and both
 * QPs stay in RTS.
 */
TYPES_TEST(BB_QPT_UC, test_uc_drops_messages_silently)
{
	struct bb_dev_stats before, after;
	struct bb_qp_attr attr;
	struct bb_wc wc;
	struct env *e = &t->e;
	struct bb_event ev;

	fill(e->a.buf, 8192, 3);
	memset(e->b.buf, 0xee, 8192);
	OK(bb_dev_stats(e->b.dev, &before));
	uc_write(t, raddr_of(&e->b, 0), e->b.mr->rkey ^ 0xff00, 100, false);
	uc_write(t, raddr_of(&e->b, ENV_BUF - 50), e->b.mr->rkey, 100, false);
	uc_write(t, raddr_of(&e->b, 0), e->b.mr->rkey, 5000, true); /* no receive */
	assert_int_equal(e->b.buf[0], 0xee);
	assert_int_equal(e->b.buf[ENV_BUF - 50], 0);
	OK(bb_dev_stats(e->b.dev, &after));
	assert_int_equal(after.out_of_buffer, before.out_of_buffer + 1);
	assert_int_equal(after.remote_access_err, before.remote_access_err);

	/* A receive that is too short stays for the next message. */
	types_receive(t, 1, 0, 99);
	{
		struct bb_sge sge = sge_of(&e->a, 0, 100);

		OK(bb_post_send(e->a.qp, 2, &sge, 1, BB_SEND_SIGNALED));
		sge.len = 99;
		OK(bb_post_send(e->a.qp, 3, &sge, 1, BB_SEND_SIGNALED));
		env_done(e, &e->a, 2, BB_WC_SUCCESS);
		env_expect(e, &e->a, 3, BB_WC_SUCCESS);
	}
	env_poll(e, &e->b, &wc, 1);
	expect(&wc, e->b.qp, 1, BB_WC_SUCCESS);
	assert_int_equal(wc.byte_len, 99);

	/* The right to write is revoked: no message arrives, and no error is reported. */
	bb_qp_attr_init(&attr);
	OK(bb_qp_modify(e->b.qp, &attr, BB_QP_ACCESS));
	memset(e->b.buf, 0xee, 100);
	uc_write(t, raddr_of(&e->b, 0), e->b.mr->rkey, 100, false);
	assert_int_equal(e->b.buf[0], 0xee);
	attr.access = BB_ACCESS_REMOTE_WRITE;
	OK(bb_qp_modify(e->b.qp, &attr, BB_QP_ACCESS));
	uc_write(t, raddr_of(&e->b, 0), e->b.mr->rkey, 100, false);
	assert_memory_equal(e->b.buf, e->a.buf, 100);

	/* The peer's QP fails and returns: messages sent meanwhile are lost, later ones arrive. */
	attr.state = BB_QP_ERR;
	OK(bb_qp_modify(e->b.qp, &attr, BB_QP_STATE));
	memset(e->b.buf, 0xee, 100);
	uc_write(t, raddr_of(&e->b, 0), e->b.mr->rkey, 100, false);
	assert_int_equal(e->b.buf[0], 0xee);
	OK(bb_qp_query(e->a.qp, &attr));
	assert_int_equal(attr.state, BB_QP_RTS);
	while (bb_event_get(e->b.dev, &ev) == 0)
		assert_true(ev.type != BB_EVENT_QP_ACCESS && ev.type != BB_EVENT_QP_REQUEST);
}

/* Mismatched PSNs: UC accepts a message with any PSN. */
TEST(test_uc_accepts_any_psn)
{
	struct bb_qp_addr a, b;
	struct types_env t = {0};
	struct env *e = &t.e;

	env_open(e);
	e->init.type = BB_QPT_UC;
	env_qps(e);
	OK(bb_qp_addr(e->a.qp, 1, 1, &a));
	OK(bb_qp_addr(e->b.qp, 1, 1, &b));
	e->attr.path.sgid_index = 1;
	OK(bb_qp_connect(e->a.qp, &a, &b, &e->attr));
	a.psn = (a.psn + 12345) & 0xffffff;
	OK(bb_qp_connect(e->b.qp, &b, &a, &e->attr));
	fill(e->a.buf, 9000, 5);
	uc_write(&t, raddr_of(&e->b, 0), e->b.mr->rkey, 9000, false);
	assert_memory_equal(e->b.buf, e->a.buf, 9000);
	fill(e->a.buf, 100, 6);
	uc_write(&t, raddr_of(&e->b, 0), e->b.mr->rkey, 100, false);
	assert_memory_equal(e->b.buf, e->a.buf, 100);
	env_stop(e);
}

/* A UC QP keeps the right that it can use, and the helpers of UD and RC check the type. */
TEST(test_types_have_attributes_and_helpers_of_their_own)
{
	struct types_env t = {0};
	struct bb_qp_attr attr;
	struct env *e = &t.e;

	env_open(e);
	e->init.type = BB_QPT_UD;
	side_qp(e, &e->a);
	e->init.type = BB_QPT_UC;
	side_qp(e, &e->b);
	bb_qp_attr_init(&attr);
	attr.state = BB_QP_INIT;
	attr.qkey = 5;
#define INIT (BB_QP_STATE | BB_QP_PKEY_INDEX | BB_QP_PORT)
	OK(bb_qp_modify(e->a.qp, &attr, INIT | BB_QP_QKEY));
	OK(bb_qp_modify(e->b.qp, &attr, INIT | BB_QP_ACCESS));
	attr.qkey = 6;
	OK(bb_qp_modify(e->a.qp, &attr, BB_QP_QKEY));
	attr.state = BB_QP_RTR;
	OK(bb_qp_modify(e->a.qp, &attr, BB_QP_STATE | BB_QP_QKEY | BB_QP_PKEY_INDEX));
	types_path(&e->a, 1, &attr.path);
#define RTR (BB_QP_STATE | BB_QP_PATH | BB_QP_PATH_MTU | BB_QP_DEST_QPN | BB_QP_RQ_PSN)
	attr.access = BB_ACCESS_REMOTE_READ | BB_ACCESS_REMOTE_WRITE;
	OK(bb_qp_modify(e->b.qp, &attr, RTR | BB_QP_ACCESS));
	attr.state = BB_QP_RTS;
	attr.sq_psn = 0x123456;
	OK(bb_qp_modify(e->a.qp, &attr, BB_QP_STATE | BB_QP_SQ_PSN | BB_QP_QKEY));
	OK(bb_qp_modify(e->b.qp, &attr, BB_QP_STATE | BB_QP_SQ_PSN));
	memset(&attr, 0, sizeof(attr));
	OK(bb_qp_query(e->b.qp, &attr));
	assert_int_equal(attr.state, BB_QP_RTS);
	assert_int_equal(attr.access, BB_ACCESS_REMOTE_WRITE);
	assert_int_equal(attr.sq_psn, 0x123456);
	OK(bb_qp_query(e->a.qp, &attr));
	assert_int_equal(attr.qkey, 6);

	/* The helpers check the QP's type. */
	assert_int_equal(bb_qp_ud_up(e->b.qp, 1, 0, 1, 1), -EINVAL);
	assert_int_equal(bb_qp_ud_up(e->a.qp, 1, 0, 1, 1), -EINVAL);
	{
		struct bb_qp_addr addr;

		OK(bb_qp_addr(e->a.qp, 1, 1, &addr));
		assert_int_equal(bb_qp_connect(e->a.qp, &addr, &addr, &e->attr), -EINVAL);
		attr.size = sizeof(attr);
		attr.state = BB_QP_RESET;
		OK(bb_qp_modify(e->a.qp, &attr, BB_QP_STATE));
		assert_int_equal(bb_qp_ud_up(e->a.qp, 2, 0, 1, 1), -EINVAL);
		assert_int_equal(e->a.qp->state, BB_QP_RESET);
		assert_int_equal(bb_qp_ud_up(e->a.qp, 1, 0, 1, 1 << 24), -EINVAL);
		assert_int_equal(e->a.qp->state, BB_QP_RESET);
		OK(bb_qp_ud_up(e->a.qp, 1, 0, 1, 1));
	}
	env_stop(e);
}

TEST_MAIN(env_eal_init("mlx5_uc"))
