/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Recovery from an error in one call, with the fate of each request; draining of a send queue;
 * data in the CQE; chains of mbufs.
 */
#include <rte_mbuf.h>

#include "bb_mbuf.h"
#include "conform.h"

/* ---- Recovery */

static void
put(struct fx *fx, struct pair p, uint64_t id, uint32_t off, uint32_t rkey, uint32_t flags)
{
	CHECK(fx,
	      bb_post_write_inline(p.a, id, &id, 8, addr_of(&fx->b, GUARD + off), rkey, flags) == 0,
	      "the WRITE is not taken");
}

static void
recover(struct fx *fx, struct pair p, const struct pair_opts *o, struct bb_qp_recovery *r)
{
	struct bb_wr_end rest[64];
	struct bb_qp_recovery rb = {.ends = rest, .max = RTE_DIM(rest)};
	struct bb_qp_addr a, b;

	OK(fx, bb_qp_addr(p.a, 1, fx->a.gid, &a));
	OK(fx, bb_qp_addr(p.b, 1, fx->b.gid, &b));
	OK(fx, bb_qp_recover(p.a, &a, &b, &o->a, r));
	OK(fx, bb_qp_recover(p.b, &b, &a, &o->b, &rb));
	check_alive(fx, p);
}

/* Done, failed, not done: in order, unsignalled ones too, and consistent with memory. */
ROW(run_fates)
{
	static const enum bb_wr_fate fate[] = {BB_WR_DONE, BB_WR_DONE, BB_WR_FAILED, BB_WR_NOT_DONE,
					       BB_WR_NOT_DONE};
	const uint32_t good = fx->b.mr->rkey, flags = row->n ? BB_SEND_SIGNALED : 0;
	struct bb_wr_end ends[64];
	struct bb_qp_recovery r = {.ends = ends, .max = RTE_DIM(ends)};
	struct pair_opts o = fx_opts(fx);
	uint64_t got;
	double end;
	struct pair p = fx_pair(fx, &o);

	memset(fx->b.mem + GUARD, 0, 64);
	put(fx, p, 10, 0, good, flags);
	put(fx, p, 11, 8, good, flags);
	put(fx, p, 12, 16, good ^ 0x77, flags);
	put(fx, p, 13, 24, good, flags);
	put(fx, p, 14, 32, good, flags);
	bb_qp_ring(p.a);
	for (end = now_s() + fx->timeout; qp_state(fx, p.a) != BB_QP_ERR && now_s() < end;)
		fx_progress(fx);
	wait_refusal(fx, "a bad WRITE");
	for (uint32_t i = 0; i < 5; i++) {
		memcpy(&got, fx->b.mem + GUARD + 8 * i, 8);
		CHECK(fx, got == (i < 2 ? 10 + i : 0), "WRITE %u is %sthere", i, got ? "" : "not ");
	}
	recover(fx, p, &o, &r);
	CHECK(fx, r.n == 5, "%u requests are told of, 5 were posted", r.n);
	for (uint32_t i = 0; i < 5; i++)
		CHECK(fx, ends[i].wc.wr_id == 10 + i && ends[i].fate == fate[i] && !ends[i].recv,
		      "request %u: wr_id %" PRIu64 ", \"%s\", expected \"%s\"", i, ends[i].wc.wr_id,
		      bb_wr_fate_name(ends[i].fate), bb_wr_fate_name(fate[i]));
	CHECK(fx, ends[2].wc.status == BB_WC_REM_ACCESS_ERR, "request 2 failed with \"%s\"",
	      bb_wc_status_name(ends[2].wc.status));
}

static void
undo_mw(void *mw)
{
	(void)bb_mw_free(mw);
}

/* A bind takes several slots and is one request: after a failure, and when not rung. */
ROW(run_fates_window)
{
	struct bb_wr_end ends[64];
	struct bb_qp_recovery r = {.ends = ends, .max = RTE_DIM(ends)};
	const bool fails = row->n;
	struct pair_opts o = fx_opts(fx);
	struct bb_mw *mw;
	double end;
	struct pair p = fx_pair(fx, &o);
	struct bb_mr *mr = fx_mr(fx, fx->a.pd, fx->a.mem, ARENA, fx->access | BB_ACCESS_MW_BIND);

	OK(fx, bb_mw_alloc(fx->a.pd, BB_MW_TYPE_1, &mw));
	fx_defer(fx, undo_mw, mw);
	put(fx, p, 10, 0, fx->b.mr->rkey ^ (fails ? 0x77 : 0), 0);
	CHECK(fx,
	      bb_mw_bind(p.a, 11, mw, mr, addr_of(&fx->a, 0), 64, BB_ACCESS_REMOTE_WRITE, 0) == 0,
	      "the bind is not taken");
	put(fx, p, 12, 8, fx->b.mr->rkey, 0);
	if (fails) {
		bb_qp_ring(p.a);
		for (end = now_s() + fx->timeout; qp_state(fx, p.a) != BB_QP_ERR && now_s() < end;)
			fx_progress(fx);
		wait_refusal(fx, "a bad WRITE");
	}
	recover(fx, p, &o, &r);
	CHECK(fx, r.n == 3, "%u requests are told of, 3 were posted", r.n);
	for (uint32_t i = 0; i < 3; i++) {
		const enum bb_wr_fate want = fails && i == 0 ? BB_WR_FAILED : BB_WR_NOT_DONE;

		CHECK(fx, ends[i].wc.wr_id == 10 + i && ends[i].fate == want,
		      "request %u: wr_id %" PRIu64 ", \"%s\", expected \"%s\"", i, ends[i].wc.wr_id,
		      bb_wr_fate_name(ends[i].fate), bb_wr_fate_name(want));
	}
}

ROW(run_no_room)
{
	struct bb_wr_end ends[64];
	struct bb_qp_recovery r = {.ends = ends, .max = 2};
	uint32_t i, n = 0;
	int ret;
	struct pair p = fx_own_pair(fx);

	/* Not rung: none of them executed. */
	for (i = 0; i < 5; i++)
		put(fx, p, i, 8 * i, fx->b.mr->rkey, 0);
	while ((ret = bb_qp_recover(p.a, NULL, NULL, NULL, &r)) == -ENOSPC) {
		for (i = 0; i < r.n; i++, n++)
			CHECK(fx, ends[i].wc.wr_id == n && ends[i].fate == BB_WR_NOT_DONE,
			      "request %u: wr_id %" PRIu64 ", \"%s\"", n, ends[i].wc.wr_id,
			      bb_wr_fate_name(ends[i].fate));
		CHECK(fx, n <= 5, "more than 5 requests are told of");
	}
	CHECK(fx, ret == 0 && n + r.n == 5, "it returned %d, %u requests are told of", ret,
	      n + r.n);
	check_state(fx, p.a, BB_QP_RESET, "the recovered");
}

ROW(run_drain)
{
	double end = now_s() + fx->timeout;
	struct bb_wc wc;
	int ret;
	struct pair p = fx_own_pair(fx);

	CHECK(fx, bb_qp_drained(p.a), "an empty queue is not drained");
	for (uint32_t i = 0; i < row->n; i++)
		put(fx, p, i, 0, fx->b.mr->rkey, 0);
	CHECK(fx, !bb_qp_drained(p.a), "a queue with requests is drained");
	while ((ret = bb_qp_drain(p.a)) == -EAGAIN && now_s() < end)
		CHECK(fx, fx_poll(fx, fx->a.cq, &wc, 1) == 0, "the drain reports a completion");
	CHECK(fx, ret == 0 && bb_qp_drained(p.a), "it returned %d", ret);
	check_alive(fx, p);
}

/* ---- Data in the CQE */

static const uint32_t cqe_size[] = {0, 1, 31, 32, 33, 64, 65};

ROW(run_scatter)
{
	struct pair_opts o = fx_opts(fx);
	struct xfer x;

	o.init.scatter_to_cqe = true;
	xfer_init(&x, row->op, fx_pair(fx, &o));
	x.len = row->op->atomic ? 8 : cqe_size[row->n];
	x.nsge = row->op->atomic ? 1 : row->pieces;
	x.nrecv = row->pieces;
	for (uint32_t i = 0; i < 6; i++) {
		x.shift = i * 5;
		xfer_run(fx, &x);
	}
}

/* ---- Mbufs */

static void
undo_pool(void *mp)
{
	rte_mempool_free(mp);
}

static struct rte_mempool *
pool(struct fx *fx, const char *name)
{
	struct rte_mempool *mp = rte_pktmbuf_pool_create(name, 127, 0, 0, 512, SOCKET_ID_ANY);

	CHECK(fx, mp != NULL, "no mempool");
	fx_defer(fx, undo_pool, mp);
	return mp;
}

static struct rte_mbuf *
chain(struct fx *fx, struct rte_mempool *mp, uint32_t n, uint32_t len)
{
	struct rte_mbuf *head = NULL, *m;

	for (uint32_t i = 0; i < n; i++) {
		m = rte_pktmbuf_alloc(mp);
		CHECK(fx, m != NULL, "no mbuf");
		if (head == NULL)
			head = m;
		else
			CHECK(fx, rte_pktmbuf_chain(head, m) == 0, "no chain");
		if (len == 0)
			continue;
		m->data_len = (uint16_t)(len + i);
		pattern(rte_pktmbuf_mtod(m, void *), m->data_len, fx->seed++);
	}
	head->pkt_len = 0;
	for (m = head; m != NULL; m = m->next)
		head->pkt_len += m->data_len;
	return head;
}

struct pools {
	struct fx *fx;
	struct rte_mempool *a, *b;
};

static void
undo_registered(void *arg)
{
	struct pools *p = arg;

	(void)bb_mem_del_mempool(p->fx->a.pd, p->a);
	(void)bb_mem_del_mempool(p->fx->b.pd, p->b);
}

/* A chain is sent and received segment by segment. */
ROW(run_mbuf)
{
	struct bb_lkey_cache ca, cb;
	static struct pools pools;
	struct pair p = fx_shared(fx);
	struct rte_mbuf *out, *in;
	static uint8_t sent[4096], got[4096];
	struct bb_wc wc;

	pools = (struct pools){fx, pool(fx, "conform_a"), pool(fx, "conform_b")};
	OK(fx, bb_mem_add_mempool(fx->a.pd, pools.a));
	OK(fx, bb_mem_add_mempool(fx->b.pd, pools.b));
	fx_defer(fx, undo_registered, &pools);
	bb_lkey_cache_init(&ca, fx->a.pd);
	bb_lkey_cache_init(&cb, fx->b.pd);
	out = chain(fx, pools.a, row->n, 200);
	in = chain(fx, pools.b, 3, 0);
	memmove(sent, rte_pktmbuf_read(out, 0, out->pkt_len, sent), out->pkt_len);
	CHECK(fx, bb_post_recv_mbuf(p.b, &cb, 81, in) == 0, "the receive is not taken");
	bb_qp_ring_recv(p.b);
	CHECK(fx, bb_post_send_mbuf(p.a, &ca, 82, out, BB_SEND_SIGNALED) == 0,
	      "the SEND is not taken");
	bb_qp_ring(p.a);
	wc = expect_wc(fx, fx->b.cq, p.b, 81, BB_WC_SUCCESS, "a chain");
	CHECK(fx, wc.byte_len == out->pkt_len, "byte_len %u, %u were sent", wc.byte_len,
	      out->pkt_len);
	CHECK(fx, bb_mbuf_set_len(in, wc.byte_len) == 0 && in->pkt_len == out->pkt_len,
	      "the chain's length is %u", in->pkt_len);
	CHECK(fx, memcmp(rte_pktmbuf_read(in, 0, in->pkt_len, got), sent, out->pkt_len) == 0,
	      "the chain brought other bytes");
	expect_wc(fx, fx->a.cq, p.a, 82, BB_WC_SUCCESS, "the SEND");
	rte_pktmbuf_free(in);
	rte_pktmbuf_free(out);
}

ROW(run_mbuf_refused)
{
	struct rte_mempool *mp = pool(fx, "conform_a");
	struct rte_mbuf *m = chain(fx, mp, 1, 200);
	struct bb_lkey_cache cache;
	struct pair p = fx_own_pair(fx);

	bb_lkey_cache_init(&cache, fx->a.pd);
	REFUSED(fx, bb_post_send_mbuf(p.a, &cache, 1, m, 0), -EFAULT, "registration");
	rte_pktmbuf_free(m);
	settle(fx, p.a, fx->a.cq);
}

void
rows_recover(struct rows *rows)
{
	static const uint32_t many[] = {1, 3, 20};
	struct row *row;

	row_add(rows, "IBTA vol. 1, 9.9.3", run_fates, "qp/rc/recovered-with-fates", "unsignaled")
		->n = 0;
	row_add(rows, "IBTA vol. 1, 9.9.3", run_fates, "qp/rc/recovered-with-fates", "signaled")
		->n = 1;
	row_add(rows, "ibv_modify_qp(3)", run_no_room, "qp/rc/recovered-with-fates",
		"two-at-a-time");
	for (unsigned int i = 0; i < 2; i++) {
		row = row_add(rows, "IBTA vol. 1, 9.9.3", run_fates_window,
			      "qp/rc/recovered-with-fates", "window/%s",
			      i == 0 ? "not-rung" : "behind-a-failure");
		row->n = i;
		row->needs = NEED_MW;
	}
	for (unsigned int i = 0; i < RTE_DIM(many); i++)
		row_add(rows, "ibv_modify_qp(3)", run_drain, "qp/rc/drained", "%u", many[i])->n =
			many[i];
	for (unsigned int i = 0; i < n_ops; i++) {
		if (!ops[i].recv_data && ops[i].to_target)
			continue;
		for (unsigned int k = 0; k < (ops[i].atomic ? 1 : RTE_DIM(cqe_size)); k++) {
			row = row_add(rows, "mlx5dv_create_qp(3)", run_scatter,
				      "completion/rc/data-in-cqe", "%s/%u", ops[i].name,
				      ops[i].atomic ? 8 : cqe_size[k]);
			row->op = &ops[i];
			row->n = k;
			row->pieces = 1 + k % 2;
			row->needs = ops[i].needs;
		}
	}
	for (unsigned int i = 1; i <= 5; i += 2)
		row_add(rows, "rte_mbuf.h", run_mbuf, "memory/mbuf/chains", "%u-segments", i)->n =
			i;
	row_add(rows, "rte_mbuf.h", run_mbuf_refused, "memory/mbuf/refused", "not-registered");
}
