/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Order and atomicity as seen by a thread that only reads memory. A payload comes before its
 * completion and before later messages. Aligned units of 8 bytes are whole. Atomics work against
 * the CPU and each other. Also fences, PSNs, and repeated requests.
 */
#include <sched.h>

#include "conform.h"

/* A thread of a row; joined after the row. */
struct watcher {
	pthread_t thread;
	uint32_t stop;
	uint8_t *mem;
	uint64_t seen, bad; /* results */
	uint64_t arg;
};

static void
watcher_stop(void *arg)
{
	struct watcher *w = arg;

	__atomic_store_n(&w->stop, 1, __ATOMIC_RELEASE);
	pthread_join(w->thread, NULL);
}

static void
watch(struct fx *fx, struct watcher *w, void *(*fn)(void *arg), uint8_t *mem, uint64_t arg)
{
	memset(w, 0, sizeof(*w));
	w->mem = mem;
	w->arg = arg;
	CHECK(fx, pthread_create(&w->thread, NULL, fn, w) == 0, "no thread");
	fx_defer(fx, watcher_stop, w);
}

/*
 * Returns whether the thread must look longer to be conclusive. The CPUs may be busy: for a
 * required observation the first one is awaited as long as any other event.
 */
static bool
watching(const struct fx *fx, const struct watcher *w, uint64_t enough, bool must, double start)
{
	uint64_t seen = __atomic_load_n(&w->seen, __ATOMIC_RELAXED);

	if (seen >= enough)
		return false;
	sched_yield();
	return now_s() < start + (must && seen == 0 ? fx->timeout : RTE_MIN(fx->timeout, 1.0));
}

static void
saw(struct watcher *w, uint64_t n)
{
	__atomic_store_n(&w->seen, w->seen + n, __ATOMIC_RELAXED);
}

/* Stops the thread; its results stay. */
static void
watched(struct fx *fx, struct watcher *w)
{
	fx_forget(fx, w);
	watcher_stop(w);
}

static void
post_ring_wait(struct fx *fx, struct pair p, const struct op *op, const struct bb_sge *sge,
	       const struct target *t)
{
	uint64_t id = fx->wr_id++;

	complete(fx, fx->a.cq, p.a, op_post(op, p.a, id, sge, 1, t, BB_SEND_SIGNALED), id,
		 BB_WC_SUCCESS, op->name);
}

/* ---- The payload of a WRITE is complete before a later WRITE of the QP is visible. */

#define BLOCK 8192u

static void *
look_behind_flag(void *arg)
{
	struct watcher *w = arg;
	uint64_t *flag = (uint64_t *)(void *)(w->mem + BLOCK), last = 0;

	while (__atomic_load_n(&w->stop, __ATOMIC_ACQUIRE) == 0) {
		uint64_t now = __atomic_load_n(flag, __ATOMIC_ACQUIRE);

		if (now == last)
			continue;
		last = now;
		saw(w, 1);
		/* Later rounds may have begun; data older than the flag is an error. */
		for (uint32_t i = 0; i < BLOCK; i += 8)
			w->bad += __atomic_load_n((uint64_t *)(void *)(w->mem + i),
						  __ATOMIC_RELAXED) < now;
	}
	return NULL;
}

ROW(run_later_message)
{
	const struct op *op = op_find("write");
	struct pair p = fx_shared(fx);
	struct bb_sge sge = sge_of(&fx->a, GUARD, BLOCK);
	double start = now_s();
	static struct watcher w;
	uint64_t id;
	struct target t = {0};

	memset(fx->b.mem + GUARD, 0, BLOCK + 8);
	watch(fx, &w, look_behind_flag, fx->b.mem + GUARD, 0);
	for (uint64_t round = 1; round <= 200 || watching(fx, &w, 20, true, start); round++) {
		for (uint32_t i = 0; i < BLOCK + 8; i += 8)
			memcpy(fx->a.mem + GUARD + i, &round, 8);
		t.raddr = addr_of(&fx->b, GUARD);
		t.rkey = fx->b.mr->rkey;
		sge.len = BLOCK;
		CHECK(fx, op_post(op, p.a, 0, &sge, 1, &t, 0) == 0, "the post is not taken");
		if (row->n != 0)
			bb_qp_ring(p.a);
		t.raddr += BLOCK;
		id = fx->wr_id++;
		complete(
			fx, fx->a.cq, p.a,
			bb_post_write_inline(p.a, id, &round, 8, t.raddr, t.rkey, BB_SEND_SIGNALED),
			id, BB_WC_SUCCESS, "the flag");
	}
	watched(fx, &w);
	CHECK(fx, w.seen != 0, "the other thread saw no flag at all");
	CHECK(fx, w.bad == 0, "%" PRIu64 " units were older than the flag behind them", w.bad);
}

/* ---- Aligned units of 8 bytes are never partly old and partly new. */

/* Counts reads that found both old and new units, that is, during a WRITE. */
static void *
look_for_torn(void *arg)
{
	struct watcher *w = arg;

	while (__atomic_load_n(&w->stop, __ATOMIC_ACQUIRE) == 0) {
		uint64_t first = __atomic_load_n((uint64_t *)(void *)w->mem, __ATOMIC_RELAXED);
		bool mixed = false;

		for (uint32_t i = 0; i < BLOCK; i += 8) {
			uint64_t v =
				__atomic_load_n((uint64_t *)(void *)(w->mem + i), __ATOMIC_RELAXED);

			mixed |= v != first;
			w->bad += v != (v & 0xff) * 0x0101010101010101u;
		}
		saw(w, mixed);
	}
	return NULL;
}

ROW(run_torn)
{
	struct pair p = fx_shared(fx);
	double start = now_s();
	static struct watcher w;
	struct side *to = row->op->to_target ? &fx->b : &fx->a;
	struct side *from = row->op->to_target ? &fx->a : &fx->b;
	struct bb_sge sge = sge_of(&fx->a, GUARD, BLOCK);
	struct target t = {.raddr = addr_of(&fx->b, GUARD), .rkey = fx->b.mr->rkey};

	memset(to->mem + GUARD, 0, BLOCK);
	watch(fx, &w, look_for_torn, to->mem + GUARD, 0);
	for (uint32_t round = 1; round <= 200 || watching(fx, &w, 100, false, start); round++) {
		memset(from->mem + GUARD, (int)(round & 0xff), BLOCK);
		post_ring_wait(fx, p, row->op, &sge, &t);
	}
	watched(fx, &w);
	CHECK(fx, w.bad == 0, "%" PRIu64 " torn units in %" PRIu64 " looks at a message in flight",
	      w.bad, w.seen);
}

/* ---- Atomics: every increment counts, from any initiator. */

#define ADDS 300u

static void *
add_by_cpu(void *arg)
{
	struct watcher *w = arg;
	uint64_t *at = (uint64_t *)(void *)w->mem;

	while (__atomic_load_n(&w->stop, __ATOMIC_ACQUIRE) == 0) {
		__atomic_fetch_add(at, 1ull << 32, __ATOMIC_SEQ_CST);
		saw(w, 1);
		if (w->arg != 0)
			rte_delay_us_sleep((unsigned int)w->arg);
	}
	return NULL;
}

ROW(run_against_cpu)
{
	struct target t = {addr_of(&fx->b, GUARD), fx->b.mr->rkey, 0, 0, 1};
	bool swap = row->op->wc == BB_WC_CMP_SWAP;
	struct bb_sge sge = sge_of(&fx->a, GUARD, 8);
	uint64_t *at = (uint64_t *)(void *)(fx->b.mem + GUARD);
	struct pair p = fx_shared(fx);
	uint64_t old, last = 0, done = 0;
	double start = now_s();
	static struct watcher w;

	*at = 0;
	/* A CMP_SWAP needs a chance to win against the CPU. */
	watch(fx, &w, add_by_cpu, fx->b.mem + GUARD, swap ? 100 : 0);
	for (uint32_t i = 0; i < ADDS || watching(fx, &w, 20, true, start) ||
			     (done == 0 && now_s() < start + fx->timeout);
	     i++) {
		if (swap) {
			t.compare = __atomic_load_n(at, __ATOMIC_SEQ_CST);
			t.swap_add = t.compare + 1;
		}
		post_ring_wait(fx, p, row->op, &sge, &t);
		memcpy(&old, fx->a.mem + GUARD, 8);
		CHECK(fx, old >= last, "the value went back from %" PRIx64 " to %" PRIx64, last,
		      old);
		last = old;
		done += !swap || old == t.compare;
	}
	watched(fx, &w);
	CHECK(fx, done != 0 && w.seen != 0, "nobody but one of the two changed the word");
	CHECK(fx, *at == (w.seen << 32) + done,
	      "%" PRIu64 " changes by atomics and %" PRIu64 " by the CPU, the memory says %" PRIu64
	      " and %" PRIu64,
	      done, w.seen, *at & UINT32_MAX, *at >> 32);
}

/* Two QPs add to one word; on two devices they are two engines. */
ROW(run_against_each_other)
{
	struct bb_sge sge = sge_of(&fx->a, GUARD, 8);
	struct target t = {addr_of(&fx->b, GUARD), fx->b.mr->rkey, 0, 0, 1};
	struct pair_opts o = fx_opts(fx);
	struct pair p[2];
	struct bb_wc wc[32];
	uint32_t i, k, n = 0;
	uint64_t sum;

	p[0] = fx_pair(fx, &o);
	p[1] = fx_pair(fx, &o);
	memset(fx->b.mem + GUARD, 0, 8);
	for (i = 0; i < 40; i++) {
		for (k = 0; k < 32; k++)
			CHECK(fx,
			      op_post(op_find("fetch_add"), p[k % 2].a, k, &sge, 1, &t,
				      BB_SEND_SIGNALED) == 0,
			      "the post is not taken");
		bb_qp_ring(p[0].a);
		bb_qp_ring(p[1].a);
		wait_wc(fx, fx->a.cq, wc, 32, "fetch_add");
		for (k = 0; k < 32; k++, n++)
			CHECK(fx, wc[k].status == BB_WC_SUCCESS, "fetch_add: %s",
			      bb_wc_status_name(wc[k].status));
	}
	memcpy(&sum, fx->b.mem + GUARD, 8);
	CHECK(fx, sum == n, "%u additions of 1 made %" PRIu64, n, sum);
}

/* ---- Fence, PSN, repeated requests */

/* The target serves one READ at a time, the requester may send 4: fences make it work. */
ROW(run_fence_depth)
{
	struct pair_opts o = fx_opts(fx);
	struct bb_wc wc[24];
	struct xfer x;

	o.a.max_rd_atomic = 4;
	o.b.max_dest_rd_atomic = 1;
	xfer_init(&x, row->op, fx_pair(fx, &o));
	xfer_prepare(fx, &x);
	for (uint32_t i = 0; i < 24; i++)
		CHECK(fx,
		      op_post(row->op, x.p.a, i, x.sge, 1, &x.t,
			      BB_SEND_SIGNALED | BB_SEND_FENCE) == 0,
		      "the post is not taken");
	bb_qp_ring(x.p.a);
	wait_wc(fx, fx->a.cq, wc, 24, "fenced READs");
	for (uint32_t i = 0; i < 24; i++)
		check_wc(fx, &wc[i], x.p.a, i, BB_WC_SUCCESS, "fenced READs");
	if (!row->op->atomic)
		xfer_check_data(fx, &x);
}

/* A fenced request sends the data that the READ before it has fetched. */
ROW(run_fence_data)
{
	struct pair p = fx_shared(fx);
	uint64_t id = fx->wr_id++;
	struct bb_sge sge;
	struct xfer x;

	xfer_init(&x, op_find("read"), p);
	x.len = 2000;
	xfer_prepare(fx, &x);
	sge = x.sge[0];
	/* Back to the target, after the original data. */
	CHECK(fx, op_post(x.op, p.a, 0, x.sge, 1, &x.t, 0) == 0, "the READ is not taken");
	complete(fx, fx->a.cq, p.a,
		 bb_post_write(p.a, id, &sge, 1, x.t.raddr + 4096, x.t.rkey,
			       BB_SEND_SIGNALED | BB_SEND_FENCE),
		 id, BB_WC_SUCCESS, "the fenced WRITE");
	CHECK(fx,
	      memcmp((const uint8_t *)(uintptr_t)x.t.raddr + 4096,
		     (const uint8_t *)(uintptr_t)x.t.raddr, x.len) == 0,
	      "the fenced WRITE sent what was there before the READ");
}

static void
connect_psn(struct fx *fx, struct pair p, const struct pair_opts *o, uint32_t psn_a, uint32_t psn_b,
	    bool both)
{
	struct bb_qp_addr a, b;

	OK(fx, bb_qp_addr(p.a, 1, fx->a.gid, &a));
	OK(fx, bb_qp_addr(p.b, 1, fx->b.gid, &b));
	a.psn = psn_a;
	b.psn = psn_b;
	OK(fx, bb_qp_connect(p.a, &a, &b, &o->a));
	if (both)
		OK(fx, bb_qp_connect(p.b, &b, &a, &o->b));
}

static void
reset(struct fx *fx, struct bb_qp *qp)
{
	struct bb_qp_attr attr = DEFAULTS(qp_attr);

	attr.state = BB_QP_RESET;
	OK(fx, bb_qp_modify(qp, &attr, BB_QP_STATE));
}

/* 24-bit PSNs wrap during traffic. */
ROW(run_psn_wrap)
{
	struct pair_opts o = fx_opts(fx);
	struct xfer x;
	struct pair p = fx_pair(fx, &o);

	reset(fx, p.a);
	reset(fx, p.b);
	connect_psn(fx, p, &o, 0xfffffb, 0xfffffd, true);
	for (uint32_t i = 0; i < 4; i++) {
		xfer_init(&x, row->op, p);
		if (!row->op->atomic)
			x.len = 3 * fx->mtu - 1;
		xfer_run(fx, &x);
	}
}

/*
 * The requester starts again with its first PSN: the target sees a repeated request. It answers
 * an atomic with the old result without executing it, and acknowledges a WRITE without writing.
 */
ROW(run_repeated)
{
	struct pair_opts o = fx_opts(fx);
	struct xfer x;
	uint8_t first[64];
	struct pair p = fx_pair(fx, &o);

	reset(fx, p.a);
	reset(fx, p.b);
	connect_psn(fx, p, &o, 100, 200, true);
	xfer_init(&x, row->op, p);
	xfer_prepare(fx, &x);
	xfer_post(fx, &x);
	expect_wc(fx, fx->a.cq, p.a, x.wr_id, BB_WC_SUCCESS, "the first");
	xfer_check_data(fx, &x);
	memcpy(first, (const void *)(uintptr_t)x.sge[0].addr, x.len);
	reset(fx, p.a);
	connect_psn(fx, p, &o, 100, 200, false);
	if (!row->op->atomic)
		pattern((void *)(uintptr_t)x.sge[0].addr, x.len, fx->seed++);
	else
		memset((void *)(uintptr_t)x.sge[0].addr, 0, x.len);
	xfer_post(fx, &x);
	expect_wc(fx, fx->a.cq, p.a, x.wr_id, BB_WC_SUCCESS, "the repeated");
	if (!row->op->atomic)
		memcpy((void *)(uintptr_t)x.sge[0].addr, first, x.len);
	/* The target's memory is unchanged, and an atomic returned the first result. */
	xfer_check_data(fx, &x);
}

void
rows_order(struct rows *rows)
{
	static const char *const one_sided[] = {"write", "read"};
	struct row *row;

	row_add(rows, "IBTA vol. 1, 9.5", run_later_message,
		"order/rc/payload-before-later-message", "one-doorbell")
		->n = 0;
	row_add(rows, "IBTA vol. 1, 9.5", run_later_message,
		"order/rc/payload-before-later-message", "two-doorbells")
		->n = 1;
	for (unsigned int i = 0; i < RTE_DIM(one_sided); i++) {
		/* Applications rely on it (FaRM, UCX); neither verbs nor IBTA promise it. */
		row = row_add(rows, ASSUMED, run_torn, "order/rc/aligned-8-bytes-whole", "%s",
			      one_sided[i]);
		row->op = op_find(one_sided[i]);
	}
	for (unsigned int i = 0; i < n_ops; i++) {
		if (ops[i].atomic) {
			row = row_add(rows, "ibv_query_device(3)", run_against_cpu,
				      "order/rc/atomic-against-cpu", "%s", ops[i].name);
			row->op = &ops[i];
			row->needs = NEED_ATOMICS | NEED_GLOBAL_ATOMICS;
		}
		if (ops[i].atomic || ops[i].wc == BB_WC_RDMA_READ) {
			row = row_add(rows, "ibv_post_send(3)", run_fence_depth,
				      "order/rc/fence-holds-the-depth", "%s", ops[i].name);
			row->op = &ops[i];
			row->needs = ops[i].needs;
		}
		row = row_add(rows, "IBTA vol. 1, 9.7.2", run_psn_wrap, "order/rc/psn-wraps", "%s",
			      ops[i].name);
		row->op = &ops[i];
		row->needs = ops[i].needs | NEED_QP_CONNECT;
		if (ops[i].has_raddr && !ops[i].takes_recv) {
			if (ops[i].wc == BB_WC_RDMA_READ)
				continue;
			row = row_add(rows, "IBTA vol. 1, 9.7.5.1", run_repeated,
				      "order/rc/repeated-request", "%s", ops[i].name);
			row->op = &ops[i];
			row->needs = ops[i].needs | NEED_PSNS | NEED_QP_CONNECT;
		}
	}
	row_add(rows, "ibv_post_send(3)", run_against_each_other, "order/rc/atomic-against-atomic",
		"two-qps")
		->needs = NEED_ATOMICS;
	row_add(rows, "ibv_post_send(3)", run_fence_data, "order/rc/fence-behind-read", "write");
}
