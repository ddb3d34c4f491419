/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Attributes of CQs: resize, moderation, timestamps, compression. */
#include "conform.h"

/* Posts NOPs; for the verbs driver, which completes NOPs itself, empty WRITEs. */
static void
nops(struct fx *fx, struct pair p, uint64_t first, uint32_t n)
{
	const bool verbs = strcmp(fx->a.attr.driver, "verbs") == 0;

	for (uint32_t i = 0; i < n; i++)
		CHECK(fx,
		      (verbs ? bb_post_write(p.a, first + i, NULL, 0, (uintptr_t)fx->b.mem,
					     fx->b.mr->rkey, BB_SEND_SIGNALED)
			     : bb_post_nop(p.a, first + i, BB_SEND_SIGNALED)) == 0,
		      "the request is not taken");
	bb_qp_ring(p.a);
}

static void
take(struct fx *fx, struct bb_cq *cq, struct bb_qp *qp, uint64_t first, uint32_t n)
{
	struct bb_wc wc[64];

	wait_wc(fx, cq, wc, n, "NOPs");
	for (uint32_t i = 0; i < n; i++)
		check_wc(fx, &wc[i], qp, first + i, BB_WC_SUCCESS, "NOPs");
}

/* ---- Resize: unpolled completions stay in order, traffic continues, the new depth applies. */

ROW(run_resize)
{
	struct bb_cq *cq = fx_cq(fx, &fx->a, 128);
	struct pair_opts o = fx_opts(fx);
	struct pair p;
	uint32_t waiting = row->flags;

	o.init.send_cq = o.init.recv_cq = cq;
	p = fx_pair(fx, &o);
	/* Not at the start of the ring. */
	nops(fx, p, 0, 7);
	take(fx, cq, p.a, 0, 7);
	nops(fx, p, 100, waiting);
	fx_progress(fx);
	/* If the device is another thread or a card, most requests have completed then. */
	if (!fx->a.attr.software)
		rte_delay_us_block(1000);
	OK(fx, bb_cq_resize(cq, row->n));
	CHECK(fx, bb_cq_depth(cq) >= row->n, "resized to %u, depth is %u", row->n, bb_cq_depth(cq));
	take(fx, cq, p.a, 100, waiting);
	nops(fx, p, 200, 20);
	take(fx, cq, p.a, 200, 20);
	OK(fx, bb_cq_resize(cq, 128));
	nops(fx, p, 300, 30);
	take(fx, cq, p.a, 300, 30);
	check_quiet(fx, cq, "a resized CQ");
	check_alive(fx, fx_shared(fx));
}

ROW(run_resize_refused)
{
	struct bb_cq *cq = fx_cq(fx, &fx->a, 128);
	struct pair_opts o = fx_opts(fx);
	struct pair p;

	o.init.send_cq = o.init.recv_cq = cq;
	p = fx_pair(fx, &o);
	if (row->n == 0)
		REFUSED(fx, bb_cq_resize(cq, 0), -EINVAL, "depth");
	else if (row->n == 1)
		REFUSED(fx, bb_cq_resize(cq, fx->a.attr.max_cqe + 1), -EINVAL, "depth");
	else
		REFUSED(fx, bb_cq_resize(cq, 32), -EINVAL, "queues");
	CHECK(fx, bb_cq_depth(cq) == 128, "a refused bb_cq_resize() changed the depth");
	nops(fx, p, 1, 10);
	take(fx, cq, p.a, 1, 10);
}

ROW(run_no_resize)
{
	struct bb_cq *cq = fx_cq(fx, &fx->a, 64);

	REFUSED(fx, bb_cq_resize(cq, 256), -ENOTSUP, "resized");
	CHECK(fx, bb_cq_depth(cq) == 64, "a refused bb_cq_resize() changed the depth");
}

/* ---- Moderation delays events, but not what a poll finds. */

ROW(run_moderate)
{
	struct pair_opts o = fx_opts(fx);
	struct pair p;
	struct bb_cq *cq = fx_cq(fx, &fx->a, 128);

	o.init.send_cq = o.init.recv_cq = cq;
	p = fx_pair(fx, &o);
	OK(fx, bb_cq_moderate(cq, 100, 4095));
	nops(fx, p, 1, 5);
	take(fx, cq, p.a, 1, 5);
	OK(fx, bb_cq_moderate(cq, 0, 0));
	nops(fx, p, 1, 5);
	take(fx, cq, p.a, 1, 5);
	REFUSED(fx, bb_cq_moderate(cq, 65536, 0), -EINVAL, "moderation");
	REFUSED(fx, bb_cq_moderate(cq, 0, 4096), -EINVAL, "moderation");
}

static void
undo_cq(void *cq)
{
	(void)bb_cq_destroy(cq);
}

static void
undo_channel(void *ch)
{
	(void)bb_channel_destroy(ch);
}

/* No event before the count or the period is reached. */
ROW(run_moderated_event)
{
	uint32_t count = row->n, period = row->flags;
	struct bb_cq_attr attr = DEFAULTS(cq_attr);
	struct bb_channel *ch;
	struct bb_cq *cq, *got = NULL;
	struct pair_opts o = fx_opts(fx);
	struct pair p;

	OK(fx, bb_channel_create(fx->a.dev, &ch));
	fx_defer(fx, undo_channel, ch);
	attr.channel = ch;
	OK(fx, bb_cq_create(fx->a.dev, &attr, &cq));
	fx_defer(fx, undo_cq, cq);
	OK(fx, bb_cq_moderate(cq, count, period));
	o.init.send_cq = o.init.recv_cq = cq;
	p = fx_pair(fx, &o);
	OK(fx, bb_cq_arm(cq, false));
	nops(fx, p, 1, 3);
	if (period == 0)
		CHECK(fx, bb_channel_wait(ch, 5, &got) == -EAGAIN, "an event before the count");
	else
		OK(fx, bb_channel_wait(ch, (int)(fx->timeout * 1000), &got));
	if (period == 0) {
		nops(fx, p, 4, count - 3);
		OK(fx, bb_channel_wait(ch, (int)(fx->timeout * 1000), &got));
	}
	CHECK(fx, got == cq, "the event names another CQ");
	take(fx, cq, p.a, 1, period == 0 ? count : 3);
}

ROW(run_no_moderation)
{
	REFUSED(fx, bb_cq_moderate(fx->a.cq, 10, 10), -ENOTSUP, "moderate");
}

/* ---- Time */

ROW(run_time)
{
	uint64_t hz = 0, before = 0, after = 0, ts[16], last;
	struct bb_cq_attr attr = DEFAULTS(cq_attr);
	struct bb_wc wc[16];
	struct pair_opts o = fx_opts(fx);
	struct bb_cq *cq;
	struct pair p;
	uint32_t i, n = 0;
	double end = now_s() + fx->timeout;

	attr.timestamps = true;
	OK(fx, bb_cq_create(fx->a.dev, &attr, &cq));
	fx_defer(fx, undo_cq, cq);
	o.init.send_cq = o.init.recv_cq = cq;
	p = fx_pair(fx, &o);
	OK(fx, bb_dev_clock(fx->a.dev, &hz, &before));
	CHECK(fx, hz == fx->a.attr.clock_hz && hz >= 1000000, "the clock runs at %" PRIu64 " Hz",
	      hz);
	nops(fx, p, 0, 16);
	while (n < 16 && now_s() < end) {
		if (fx->two)
			fx_progress(fx);
		n += bb_cq_poll_ts(cq, wc + n, ts + n, 16 - n);
	}
	CHECK(fx, n == 16, "%u of 16 completions came", n);
	OK(fx, bb_dev_clock(fx->a.dev, NULL, &after));
	last = before;
	for (i = 0; i < 16; i++) {
		check_wc(fx, &wc[i], p.a, i, BB_WC_SUCCESS, "a NOP");
		CHECK(fx, ts[i] >= last && ts[i] <= after,
		      "time %" PRIu64 " of completion %u is not between %" PRIu64 " and %" PRIu64,
		      ts[i], i, last, after);
		last = ts[i];
	}
}

ROW(run_no_time)
{
	struct bb_cq_attr attr = DEFAULTS(cq_attr);
	struct bb_cq *cq = NULL;
	uint64_t now = 77;

	attr.timestamps = true;
	REFUSED(fx, bb_cq_create(fx->a.dev, &attr, &cq), -ENOTSUP, "clock");
	REFUSED(fx, bb_dev_clock(fx->a.dev, NULL, &now), -ENOTSUP, "clock");
	CHECK(fx, cq == NULL && now == 77, "a refused call wrote its out-pointer");
}

/* ---- Compression: the same completions, in fewer bytes */

ROW(run_compressed)
{
	struct bb_qp_init_attr init;
	struct bb_cq_attr attr = DEFAULTS(cq_attr);
	struct bb_wc wc[32];
	struct pair_opts o = fx_opts(fx);
	struct bb_cq *cq;
	struct pair p;
	uint32_t len;

	attr.compress = true;
	attr.depth = 64;
	OK(fx, bb_cq_create(fx->b.dev, &attr, &cq));
	fx_defer(fx, undo_cq, cq);
	init = o.init;
	init.send_cq = init.recv_cq = fx->a.cq;
	p.a = fx_qp(fx, fx->a.pd, &init);
	init.send_cq = fx->b.cq;
	init.recv_cq = cq;
	init.rq_depth = 32;
	p.b = fx_qp(fx, fx->b.pd, &init);
	fx_connect(fx, p, &o);
	for (uint32_t round = 0; round < 5; round++) {
		for (uint32_t i = 0; i < row->n; i++) {
			struct bb_sge sge = sge_of(&fx->b, GUARD + i * 64, 64);

			CHECK(fx, bb_post_recv(p.b, 500 + i, &sge, 1) == 0,
			      "the receive is not taken");
		}
		bb_qp_ring_recv(p.b);
		for (uint32_t i = 0; i < row->n; i++) {
			uint8_t data[64];

			/* Equal and unequal lengths, with immediate data among them. */
			len = i % 5 == 4 ? 3 : 40;
			memset(data, (int)(round * 32 + i), sizeof(data));
			CHECK(fx,
			      (i % 7 == 6 ? bb_post_send_imm_inline(p.a, i, data, len, i, 0)
					  : bb_post_send_inline(p.a, i, data, len, 0)) == 0,
			      "the SEND is not taken");
		}
		bb_qp_ring(p.a);
		wait_wc(fx, cq, wc, row->n, "compressed completions");
		for (uint32_t i = 0; i < row->n; i++) {
			len = i % 5 == 4 ? 3 : 40;
			check_wc(fx, &wc[i], p.b, 500 + i, BB_WC_SUCCESS,
				 "a compressed completion");
			CHECK(fx, wc[i].opcode == BB_WC_RECV && wc[i].byte_len == len,
			      "completion %u: opcode %u, byte_len %u", i, wc[i].opcode,
			      wc[i].byte_len);
			CHECK(fx,
			      ((wc[i].flags & BB_WC_WITH_IMM) != 0) == (i % 7 == 6) &&
				      (i % 7 != 6 || wc[i].imm == i),
			      "completion %u: flags 0x%x, immediate %u", i, wc[i].flags, wc[i].imm);
			CHECK(fx, fx->b.mem[GUARD + i * 64] == (uint8_t)(round * 32 + i),
			      "message %u is in another's buffer", i);
		}
		check_quiet(fx, cq, "compressed completions");
		settle(fx, p.a, fx->a.cq);
	}
}

ROW(run_no_compression)
{
	struct bb_cq_attr attr = DEFAULTS(cq_attr);
	struct bb_cq *cq = NULL;

	attr.compress = true;
	if (row->n != 0) {
		attr.timestamps = true;
		REFUSED(fx, bb_cq_create(fx->a.dev, &attr, &cq), -EINVAL, "timestamps");
	} else {
		REFUSED(fx, bb_cq_create(fx->a.dev, &attr, &cq), -ENOTSUP, "compress");
	}
	CHECK(fx, cq == NULL, "a refused bb_cq_create() wrote its out-pointer");
}

void
rows_cq(struct rows *rows)
{
	static const uint32_t depth[] = {64, 256, 1024}, waiting[] = {0, 1, 20},
			      burst[] = {1, 2, 8, 30};
	struct row *row;

	for (unsigned int i = 0; i < RTE_DIM(depth); i++) {
		for (unsigned int k = 0; k < RTE_DIM(waiting); k++) {
			row = row_add(rows, "ibv_resize_cq(3)", run_resize, "cq/resize",
				      "to-%u/%u-waiting", depth[i], waiting[k]);
			row->n = depth[i];
			row->flags = waiting[k];
			row->needs = NEED_CQ_RESIZE;
		}
	}
	for (unsigned int i = 0; i < 3; i++) {
		row = row_add(rows, "ibv_resize_cq(3)", run_resize_refused, "cq/resize-refused",
			      "%s",
			      i == 0   ? "0"
			      : i == 1 ? "over-max_cqe"
				       : "under-its-queues");
		row->n = i;
		row->needs = NEED_CQ_RESIZE;
	}
	row_add(rows, "ibv_resize_cq(3)", run_no_resize, "cq/no-resize", "refused")->needs =
		NEED_NO_CQ_RESIZE;
	row_add(rows, "ibv_modify_cq(3)", run_moderate, "cq/moderation", "polls-see-at-once")
		->needs = NEED_CQ_MODERATION;
	row = row_add(rows, "ibv_modify_cq(3)", run_moderated_event, "cq/moderation", "count");
	row->n = 8;
	row->needs = NEED_CQ_MODERATION;
	row = row_add(rows, "ibv_modify_cq(3)", run_moderated_event, "cq/moderation", "period");
	row->n = 1000;
	row->flags = 2000;
	row->needs = NEED_CQ_MODERATION;
	row_add(rows, "ibv_modify_cq(3)", run_no_moderation, "cq/no-moderation", "refused")->needs =
		NEED_NO_CQ_MODERATION;
	/* The man page has the clock, but does not state that a QP's timestamps increase. */
	row_add(rows, ASSUMED, run_time, "cq/timestamps", "in-order")->needs = NEED_CLOCK;
	row_add(rows, "ibv_create_cq_ex(3)", run_no_time, "cq/no-timestamps", "refused")->needs =
		NEED_NO_CLOCK;
	for (unsigned int i = 0; i < RTE_DIM(burst); i++) {
		row = row_add(rows, "mlx5dv_create_cq(3)", run_compressed, "cq/compression",
			      "%u-at-once", burst[i]);
		row->n = burst[i];
		row->needs = NEED_COMPRESSION;
	}
	row = row_add(rows, "mlx5dv_create_cq(3)", run_no_compression, "cq/compression",
		      "not-with-timestamps");
	row->n = 1;
	row->needs = NEED_COMPRESSION | NEED_CLOCK;
	row_add(rows, "mlx5dv_create_cq(3)", run_no_compression, "cq/no-compression", "refused")
		->needs = NEED_NO_COMPRESSION;
}
