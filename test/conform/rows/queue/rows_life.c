/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* From creation to destruction: limits, flushes, resets, recovery, and a passive target. */
#include <rte_lcore.h>

#include "conform.h"

/* ---- Creation */

struct limit {
	const char *name;
	void (*set)(const struct fx *fx, struct bb_qp_init_attr *init);
	const char *word;
};

#define SETTER(name_, code_)                                                                       \
	static void set_##name_(const struct fx *fx, struct bb_qp_init_attr *init)                 \
	{                                                                                          \
		(void)fx;                                                                          \
		code_;                                                                             \
	}

SETTER(no_cq, init->send_cq = NULL)
SETTER(no_recv_cq, init->recv_cq = NULL)
SETTER(sq_0, init->sq_depth = 0)
SETTER(sq_max, init->sq_depth = fx->a.attr.max_qp_wr + 1)
SETTER(rq_max, init->rq_depth = fx->a.attr.max_qp_wr + 1)
SETTER(sge, init->max_sge = fx->a.attr.max_sge + 1)
SETTER(rsge, init->max_recv_sge = fx->a.attr.max_recv_sge + 1)
SETTER(inl, init->max_inline = fx->a.attr.max_inline + 1)
SETTER(signal, init->signal_every = init->sq_depth + 1)
SETTER(type, init->type = (enum bb_qp_type)77)
SETTER(size, init->size = 8)

static const struct limit limits[] = {
	{"no-send-cq", set_no_cq, "send_cq"},
	{"no-recv-cq", set_no_recv_cq, "recv_cq"},
	{"sq_depth-0", set_sq_0, "sq_depth"},
	{"sq_depth-over", set_sq_max, "sq_depth"},
	{"rq_depth-over", set_rq_max, "rq_depth"},
	{"max_sge-over", set_sge, "max_sge"},
	{"max_recv_sge-over", set_rsge, "max_recv_sge"},
	{"max_inline-over", set_inl, "max_inline"},
	{"signal_every-over", set_signal, "signal_every"},
	{"unknown-type", set_type, "type"},
	{"size-of-another-version", set_size, "bb_qp_init_attr_init"},
};

ROW(run_limit)
{
	const struct limit *l = row->arg;
	struct bb_qp_init_attr init = DEFAULTS(qp_init_attr);
	struct bb_qp *qp = NULL;

	init.send_cq = init.recv_cq = fx->a.cq;
	init.sq_depth = init.rq_depth = 16;
	l->set(fx, &init);
	REFUSED(fx, bb_qp_create(fx->a.pd, &init, &qp), -EINVAL, l->word);
	CHECK(fx, qp == NULL, "a refused bb_qp_create() wrote its out-pointer");
}

/* Each WQE may yield a completion: a CQ accepts no more queues than fit. */
ROW(run_credits)
{
	struct bb_cq *cq = fx_cq(fx, &fx->a, 64);
	struct bb_qp_init_attr init = DEFAULTS(qp_init_attr);
	struct bb_qp *qp = NULL;

	init.send_cq = init.recv_cq = cq;
	init.sq_depth = bb_cq_depth(cq) / 2;
	init.rq_depth = bb_cq_depth(cq) / 2 + 1;
	REFUSED(fx, bb_qp_create(fx->a.pd, &init, &qp), -ENOSPC, "depth");
	init.rq_depth--;
	fx_qp(fx, fx->a.pd, &init);
	init.sq_depth = 1;
	init.rq_depth = 0;
	REFUSED(fx, bb_qp_create(fx->a.pd, &init, &qp), -ENOSPC, "depth");
	CHECK(fx, qp == NULL, "a refused bb_qp_create() wrote its out-pointer");
}

ROW(run_other_device)
{
	struct bb_qp_init_attr init = DEFAULTS(qp_init_attr);
	struct bb_qp *qp = NULL;

	init.send_cq = init.recv_cq = fx->b.cq;
	init.sq_depth = init.rq_depth = 16;
	REFUSED(fx, bb_qp_create(fx->a.pd, &init, &qp), -EINVAL, "device");
}

ROW(run_connect)
{
	struct bb_qp_addr a, b;
	struct pair_opts o = fx_opts(fx);
	struct pair p = fx_pair(fx, &o);

	OK(fx, bb_qp_addr(p.a, 1, fx->a.gid, &a));
	OK(fx, bb_qp_addr(p.b, 1, fx->b.gid, &b));
	REFUSED(fx, bb_qp_connect(p.a, &a, &b, &o.a), -EINVAL, "RESET");
	REFUSED(fx, bb_qp_connect(p.a, &b, &a, &o.a), -EINVAL, "own address");
	check_alive(fx, p);
}

/* ---- Errors, resets, recovery */

static void
set_state(struct fx *fx, struct bb_qp *qp, enum bb_qp_state state)
{
	struct bb_qp_attr attr = DEFAULTS(qp_attr);

	attr.state = state;
	OK(fx, bb_qp_modify(qp, &attr, BB_QP_STATE));
}

/* In ERR every request completes, signalled or not, including later posts. */
ROW(run_flush)
{
	struct bb_sge sge = sge_of(&fx->a, GUARD, 64);
	struct bb_wc wc[16];
	uint32_t i, sends = 0, recvs = 0;
	struct pair p = fx_own_pair(fx);

	for (i = 0; i < 3; i++)
		CHECK(fx, bb_post_recv(p.a, 100 + i, &sge, 1) == 0, "the receive is not taken");
	bb_qp_ring_recv(p.a);
	/* The target has no receive, so the requests wait. */
	for (i = 0; i < 5; i++)
		CHECK(fx,
		      bb_post_send_inline(p.a, i, "x", 1, i % 2 != 0 ? BB_SEND_SIGNALED : 0) == 0,
		      "the SEND is not taken");
	bb_qp_ring(p.a);
	check_quiet(fx, fx->a.cq, "without a receive");
	set_state(fx, p.a, BB_QP_ERR);
	wait_wc(fx, fx->a.cq, wc, 8, "the flush");
	for (i = 0; i < 8; i++) {
		CHECK(fx, wc[i].status == BB_WC_WR_FLUSH_ERR, "flushed with \"%s\"",
		      bb_wc_status_name(wc[i].status));
		if (wc[i].wr_id >= 100)
			CHECK(fx, wc[i].wr_id == 100 + recvs++, "receives are out of order");
		else
			CHECK(fx, wc[i].wr_id == sends++, "sends are out of order");
	}
	CHECK(fx, sends == 5 && recvs == 3, "%u sends and %u receives came back", sends, recvs);
	CHECK(fx, bb_post_nop(p.a, 77, 0) == 0, "a post in ERR is not taken");
	bb_qp_ring(p.a);
	wait_wc(fx, fx->a.cq, wc, 1, "a post in ERR");
	check_wc(fx, wc, p.a, 77, BB_WC_WR_FLUSH_ERR, "a post in ERR");
	check_quiet(fx, fx->a.cq, "the flush");
	check_state(fx, p.b, BB_QP_RTS, "the target's");
}

/* RESET discards unpolled completions, and the QP starts with none. */
ROW(run_reset)
{
	struct bb_cq_stats before, after;
	struct bb_qp_stats stats;
	struct pair_opts o = fx_opts(fx);
	struct bb_wc wc;
	struct pair p = fx_pair(fx, &o);

	for (uint32_t i = 0; i < 10; i++)
		CHECK(fx, bb_post_nop(p.a, i, BB_SEND_SIGNALED) == 0, "the NOP is not taken");
	bb_qp_ring(p.a);
	wait_wc(fx, fx->a.cq, &wc, 1, "the first NOP");
	OK(fx, bb_cq_stats(fx->a.cq, &before));
	set_state(fx, p.a, BB_QP_RESET);
	OK(fx, bb_cq_stats(fx->a.cq, &after));
	CHECK(fx, after.cqes + after.purged == before.cqes + before.purged + 9,
	      "9 completions were left, %" PRIu64 " are accounted for",
	      after.cqes + after.purged - before.cqes - before.purged);
	check_quiet(fx, fx->a.cq, "behind RESET");
	OK(fx, bb_qp_stats(p.a, &stats));
	CHECK(fx, stats.outstanding == 0, "%u requests outlived RESET", stats.outstanding);
	set_state(fx, p.b, BB_QP_RESET);
	fx_connect(fx, p, &o);
	check_alive(fx, p);
}

/* Error, RESET, connect, traffic: repeatedly, with the same QPs. */
ROW(run_again)
{
	struct pair_opts o = fx_opts(fx);
	struct xfer x;
	struct pair p = fx_pair(fx, &o);

	for (uint32_t i = 0; i < 8; i++) {
		check_alive(fx, p);
		xfer_init(&x, op_find("write"), p);
		xfer_prepare(fx, &x);
		x.t.rkey ^= 0x11;
		xfer_post(fx, &x);
		expect_wc(fx, fx->a.cq, p.a, x.wr_id, BB_WC_REM_ACCESS_ERR, "a bad WRITE");
		wait_refusal(fx, "a bad WRITE");
		set_state(fx, p.a, BB_QP_RESET);
		set_state(fx, p.b, BB_QP_RESET);
		fx_connect(fx, p, &o);
	}
	check_alive(fx, p);
}

/* Completions of a destroyed QP reach neither other QPs of its CQ nor the next QP. */
ROW(run_destroy)
{
	struct pair other = fx_shared(fx);
	struct pair_opts o = fx_opts(fx);
	struct bb_wc wc[2];
	struct pair p = fx_pair(fx, &o);

	CHECK(fx, bb_post_nop(p.a, 1, BB_SEND_SIGNALED) == 0, "the NOP is not taken");
	bb_qp_ring(p.a);
	CHECK(fx, bb_post_nop(other.a, 2, BB_SEND_SIGNALED) == 0, "the NOP is not taken");
	bb_qp_ring(other.a);
	CHECK(fx, bb_post_nop(p.a, 3, BB_SEND_SIGNALED) == 0, "the NOP is not taken");
	bb_qp_ring(p.a);
	fx_progress(fx);
	fx_forget(fx, p.a);
	OK(fx, bb_qp_destroy(p.a));
	wait_wc(fx, fx->a.cq, wc, 1, "the other QP's NOP");
	check_wc(fx, wc, other.a, 2, BB_WC_SUCCESS, "the other QP's NOP");
	p = fx_pair(fx, &o);
	check_alive(fx, p);
}

/* ---- A target that makes no library call after it has passed on its keys */

struct passive {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int step; /* 1: connect; 2: the target sleeps; 3: it may end */
	const char *failed;
	struct bb_dev *dev;
	uint8_t *mem;
	struct bb_qp_attr attr;
	struct bb_qp_addr requester, target;
	uint32_t rkey;
	uint32_t access;
};

static void
passive_step(struct passive *t, int step)
{
	pthread_mutex_lock(&t->lock);
	t->step = step;
	pthread_cond_broadcast(&t->changed);
	pthread_mutex_unlock(&t->lock);
}

static void
passive_wait(struct passive *t, int step)
{
	pthread_mutex_lock(&t->lock);
	while (t->step < step && t->failed == NULL)
		pthread_cond_wait(&t->changed, &t->lock);
	pthread_mutex_unlock(&t->lock);
}

#define TRY(t, call)                                                                               \
	do {                                                                                       \
		if ((t)->failed == NULL && (call) != 0)                                            \
			(t)->failed = #call;                                                       \
	} while (0)

/* This thread owns CQ, QP and memory and so, with inline progress, their engine. */
static void *
passive_target(void *arg)
{
	struct bb_qp_init_attr init = DEFAULTS(qp_init_attr);
	struct passive *t = arg;
	struct bb_cq_attr cq_attr = DEFAULTS(cq_attr);
	struct bb_cq *cq = NULL;
	struct bb_qp *qp = NULL;
	struct bb_mr *mr = NULL;
	struct bb_pd *pd = NULL;

	TRY(t, rte_thread_register());
	TRY(t, bb_pd_alloc(t->dev, &pd));
	TRY(t, bb_cq_create(t->dev, &cq_attr, &cq));
	init.send_cq = init.recv_cq = cq;
	TRY(t, bb_qp_create(pd, &init, &qp));
	TRY(t, bb_mr_reg(pd, t->mem, ARENA, t->access, &mr));
	TRY(t, bb_qp_addr(qp, 1, t->attr.path.sgid_index, &t->target));
	t->rkey = mr != NULL ? mr->rkey : 0;
	passive_step(t, 1);
	passive_wait(t, 2);
	TRY(t, bb_qp_connect(qp, &t->target, &t->requester, &t->attr));
	passive_step(t, 3);
	/* From here on it only sleeps. */
	passive_wait(t, 4);
	if (qp != NULL)
		bb_qp_destroy(qp);
	if (mr != NULL)
		bb_mr_dereg(mr);
	if (cq != NULL)
		bb_cq_destroy(cq);
	if (pd != NULL)
		bb_pd_free(pd);
	rte_thread_unregister();
	return NULL;
}

static void
passive_end(void *arg)
{
	struct passive *t = arg;

	passive_step(t, 4);
	pthread_join(t->thread, NULL);
}

ROW(run_passive)
{
	static struct passive t;
	struct bb_qp_init_attr init;
	struct pair_opts o = fx_opts(fx);
	struct xfer x;

	t = (struct passive){.lock = PTHREAD_MUTEX_INITIALIZER,
			     .changed = PTHREAD_COND_INITIALIZER,
			     .dev = fx->b.dev,
			     .mem = fx->b.mem,
			     .attr = o.b,
			     .access = fx->access};
	init = o.init;
	init.send_cq = init.recv_cq = fx->a.cq;
	xfer_init(&x, row->op, (struct pair){.a = fx_qp(fx, fx->a.pd, &init)});
	CHECK(fx, pthread_create(&t.thread, NULL, passive_target, &t) == 0, "no thread");
	fx_defer(fx, passive_end, &t);
	passive_wait(&t, 1);
	OK(fx, bb_qp_addr(x.p.a, 1, fx->a.gid, &t.requester));
	passive_step(&t, 2);
	passive_wait(&t, 3);
	CHECK(fx, t.failed == NULL, "the target: %s", t.failed);
	OK(fx, bb_qp_connect(x.p.a, &t.requester, &t.target, &o.a));
	x.len = row->op->atomic ? 8 : row->n;
	for (uint32_t i = 0; i < 20; i++) {
		xfer_prepare(fx, &x);
		x.t.rkey = t.rkey;
		xfer_post(fx, &x);
		/* Only the requester polls. */
		expect_wc(fx, fx->a.cq, x.p.a, x.wr_id, BB_WC_SUCCESS, "the target sleeps");
		xfer_check_data(fx, &x);
	}
}

void
rows_life(struct rows *rows)
{
	static const uint32_t sizes[] = {1, 64, 65536};
	struct row *row;

	for (unsigned int i = 0; i < RTE_DIM(limits); i++)
		row_add(rows, "ibv_create_qp(3)", run_limit, "qp/rc/create-refused", "%s",
			limits[i].name)
			->arg = &limits[i];
	row_add(rows, "ibv_create_cq(3)", run_credits, "qp/rc/create-refused", "cq-too-small");
	row_add(rows, "ibv_create_qp(3)", run_other_device, "qp/rc/cq-of-another-device", "send")
		->needs = NEED_TWO_DEVICES;
	row_add(rows, "ibv_modify_qp(3)", run_connect, "qp/rc/connect-refused",
		"state-and-address");
	row_add(rows, "ibv_modify_qp(3)", run_flush, "qp/rc/error-flushes-all",
		"sends-and-receives");
	row_add(rows, "ibv_modify_qp(3)", run_reset, "qp/rc/reset-drops-completions", "10");
	row_add(rows, "ibv_modify_qp(3)", run_again, "qp/rc/reconnect", "8-times");
	row_add(rows, "ibv_destroy_qp(3)", run_destroy, "qp/rc/destroy-drops-completions",
		"shared-cq");
	for (unsigned int i = 0; i < n_ops; i++) {
		if (!ops[i].has_raddr || ops[i].takes_recv)
			continue;
		for (unsigned int k = 0; k < RTE_DIM(sizes); k++) {
			if (ops[i].atomic && k != 0)
				continue;
			row = row_add(rows, "ibv_post_send(3)", run_passive,
				      "one-sided/rc/target-sleeps", "%s/%u", ops[i].name,
				      ops[i].atomic ? 8 : sizes[k]);
			row->op = &ops[i];
			row->n = sizes[k];
			row->needs = ops[i].needs | NEED_PASSIVE;
		}
	}
}
