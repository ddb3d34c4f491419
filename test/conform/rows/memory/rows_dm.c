/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Device memory: allocated, copied to and from, and used by requests of both sides. */
#include "conform.h"

#define MAN "ibv_alloc_dm(3)"
#define LEN 1024u
#define LW  BB_ACCESS_LOCAL_WRITE
#define RW  BB_ACCESS_REMOTE_WRITE
#define RR  BB_ACCESS_REMOTE_READ

static void
undo_dm(void *dm)
{
	(void)bb_dm_free(dm);
}

static struct bb_dm *
dm_of(struct fx *fx, struct side *s, uint64_t len, uint32_t log_align)
{
	struct bb_dm *dm;

	OK(fx, bb_dm_alloc(s->dev, len, log_align, &dm));
	fx_defer(fx, undo_dm, dm);
	return dm;
}

static void
undo_mr(void *mr)
{
	(void)bb_mr_dereg(mr);
}

static struct bb_mr *
dm_mr(struct fx *fx, struct bb_pd *pd, struct bb_dm *dm, uint64_t off, size_t len, uint32_t access)
{
	struct bb_mr *mr;

	OK(fx, bb_mr_reg_dm(pd, dm, off, len, access, &mr));
	fx_defer(fx, undo_mr, mr);
	return mr;
}

/* ---- Control path */

ROW(run_none)
{
	struct bb_dm *dm = NULL;

	REFUSED(fx, bb_dm_alloc(fx->a.dev, 64, 0, &dm), -ENOTSUP, "max_dm_size");
	CHECK(fx, dm == NULL, "a refused bb_dm_alloc() wrote its out-pointer");
}

ROW(run_alloc_refused)
{
	const struct bb_dev_attr *a = &fx->a.attr;
	struct bb_dm *dm = NULL;

	if (row->n == 0)
		REFUSED(fx, bb_dm_alloc(fx->a.dev, 0, 0, &dm), -EINVAL, "length is 0");
	else if (row->n == 1)
		REFUSED(fx, bb_dm_alloc(fx->a.dev, a->max_dm_size + 1, 0, &dm), -EINVAL,
			"max_dm_size");
	else
		REFUSED(fx, bb_dm_alloc(fx->a.dev, 64, a->max_dm_log_align + 1, &dm), -EINVAL,
			"max_dm_log_align");
	CHECK(fx, dm == NULL, "a refused bb_dm_alloc() wrote its out-pointer");
}

/* All of it can be allocated once; freed memory can be allocated again. */
ROW(run_exhaust)
{
	struct bb_dm *dm[64];
	uint64_t piece = fx->a.attr.max_dm_size / 4;
	unsigned int i;
	int ret = 0;

	for (unsigned int round = 0; round < 3; round++) {
		for (i = 0; i < RTE_DIM(dm) && ret == 0; i++)
			ret = bb_dm_alloc(fx->a.dev, piece, 0, &dm[i]);
		CHECK(fx, ret == -ENOMEM, "device memory does not end: %d", ret);
		i--;
		CHECK(fx, i >= 1 && i <= 4, "%u quarters of the device memory were to be had", i);
		while (i-- > 0)
			OK(fx, bb_dm_free(dm[i]));
		ret = 0;
	}
}

ROW(run_align)
{
	struct bb_dm *dm = dm_of(fx, &fx->a, row->n, row->flags);

	CHECK(fx, dm->len == row->n && dm->log_align == row->flags && dm->dev == fx->a.dev,
	      "struct bb_dm does not say what was asked for");
}

ROW(run_busy)
{
	struct bb_dm *dm = dm_of(fx, &fx->a, LEN, 0);

	dm_mr(fx, fx->a.pd, dm, 0, LEN, LW);
	REFUSED(fx, bb_dm_free(dm), -EBUSY, "MR");
	REFUSED(fx, bb_dev_close(fx->a.dev), -EBUSY, "live");
}

/* ---- Copies */

struct copy {
	const char *name;
	uint64_t off;
	size_t len;
	int err;
};

static const struct copy copies[] = {
	{"all", 0, LEN, 0},
	{"4-bytes", 0, 4, 0},
	{"4-bytes-at-the-end", LEN - 4, 4, 0},
	{"inside", 12, 100, 0},
	{"nothing", 8, 0, 0},
	{"nothing-at-the-end", LEN, 0, 0},
	{"odd-offset", 2, 4, -EINVAL},
	{"odd-length", 4, 3, -EINVAL},
	{"behind-the-end", LEN - 4, 8, -EFAULT},
	{"far-behind-the-end", LEN + 4, 4, -EFAULT},
	{"wraps", UINT64_MAX - 3, 8, -EFAULT},
	{"longer-than-all", 0, SIZE_MAX - 3, -EFAULT},
};

ROW(run_copy)
{
	const struct copy *c = row->arg;
	struct bb_dm *dm = dm_of(fx, &fx->a, LEN, 3);
	static uint8_t before[LEN], src[LEN + 1], got[LEN + 2];

	pattern(before, LEN, fx->seed++);
	pattern(src, sizeof(src), fx->seed++);
	OK(fx, bb_dm_write(dm, 0, before, LEN));
	if (c->err != 0) {
		REFUSED(fx, bb_dm_write(dm, c->off, src + 1, c->len), c->err, "device memory");
		REFUSED(fx, bb_dm_read(dm, got, c->off, c->len), c->err, "device memory");
	} else {
		OK(fx, bb_dm_write(dm, c->off, src + 1, c->len));
		memset(got, 0x77, sizeof(got));
		OK(fx, bb_dm_read(dm, got + 1, c->off, c->len));
		CHECK(fx, memcmp(got + 1, src + 1, c->len) == 0,
		      "what was read is not what was written");
		CHECK(fx, got[0] == 0x77 && got[c->len + 1] == 0x77,
		      "a read wrote around its buffer");
		memcpy(before + c->off, src + 1, c->len);
	}
	OK(fx, bb_dm_read(dm, got, 0, LEN));
	CHECK(fx, memcmp(got, before, LEN) == 0, "bytes outside the copy have changed");
}

/* ---- Registration */

ROW(run_mr_refused)
{
	static const struct {
		uint64_t off;
		size_t len;
		uint32_t access;
	} bad[] = {
		{0, 0, LW},         {0, LEN + 1, LW},
		{LEN - 4, 8, LW},   {UINT64_MAX - 3, 8, LW},
		{0, LEN, RW},       {0, LEN, LW | BB_ACCESS_ON_DEMAND},
		{0, LEN, 1u << 15},
	};
	struct bb_dm *dm = dm_of(fx, &fx->a, LEN, 0);
	struct bb_mr *mr = NULL;

	REFUSED(fx,
		bb_mr_reg_dm(fx->a.pd, dm, bad[row->n].off, bad[row->n].len, bad[row->n].access,
			     &mr),
		-EINVAL, "device memory");
	CHECK(fx, mr == NULL, "a refused bb_mr_reg_dm() wrote its out-pointer");
}

ROW(run_mr_other_device)
{
	struct bb_dm *dm = dm_of(fx, &fx->a, LEN, 0);
	struct bb_mr *mr = NULL;

	REFUSED(fx, bb_mr_reg_dm(fx->b.pd, dm, 0, LEN, LW, &mr), -EINVAL, "device");
}

/* ---- Requests: addresses of the MR start at 0, whatever its offset in the memory */

#define OFF 256u

ROW(run_remote)
{
	struct bb_dm *dm = dm_of(fx, &fx->b, LEN, 3);
	struct bb_mr *mr = dm_mr(fx, fx->b.pd, dm, OFF, 512, fx->access);
	static uint8_t want[LEN], got[LEN];
	struct xfer x;
	uint64_t old, new;

	CHECK(fx, mr->iova == 0 && mr->addr == NULL && mr->len == 512,
	      "struct bb_mr is not zero-based");
	pattern(want, LEN, fx->seed++);
	OK(fx, bb_dm_write(dm, 0, want, LEN));
	xfer_init(&x, row->op, fx_shared(fx));
	x.len = row->op->atomic ? 8 : row->n;
	xfer_prepare(fx, &x);
	x.t.raddr = 64;
	x.t.rkey = mr->rkey;
	memcpy(&old, want + OFF + 64, 8);
	x.t.compare = old;
	new = row->op->wc == BB_WC_FETCH_ADD ? old + x.t.swap_add : x.t.swap_add;
	memcpy(fx->b.want, fx->b.mem, x.window);
	if (row->op->to_target)
		memcpy(want + OFF + 64, (const void *)(uintptr_t)x.sge[0].addr, x.len);
	else
		memcpy(fx->a.want + (x.sge[0].addr - (uintptr_t)fx->a.mem), want + OFF + 64, x.len);
	if (row->op->atomic)
		memcpy(want + OFF + 64, &new, 8);
	xfer_post(fx, &x);
	expect_wc(fx, fx->a.cq, x.p.a, x.wr_id, BB_WC_SUCCESS, row->op->name);
	OK(fx, bb_dm_read(dm, got, 0, LEN));
	CHECK(fx, memcmp(got, want, LEN) == 0, "the device memory is not as it should be");
	xfer_check_data(fx, &x);
	if (row->op->takes_recv)
		xfer_check_recv(fx, &x);
}

/* As the requester's own memory: gathered from and scattered into. */
ROW(run_local)
{
	struct bb_dm *dm = dm_of(fx, &fx->a, LEN, 3);
	struct bb_mr *mr = dm_mr(fx, fx->a.pd, dm, OFF, 512, LW);
	static uint8_t want[LEN], got[LEN];
	struct xfer x;

	pattern(want, LEN, fx->seed++);
	OK(fx, bb_dm_write(dm, 0, want, LEN));
	xfer_init(&x, row->op, fx_shared(fx));
	x.len = 300;
	xfer_prepare(fx, &x);
	memcpy(fx->a.want, fx->a.mem, x.window);
	if (row->op->to_target)
		memcpy(fx->b.want + (x.rsge[0].addr - (uintptr_t)fx->b.mem), want + OFF + 8, 300);
	else
		memcpy(want + OFF + 8, (const void *)(uintptr_t)x.t.raddr, 300);
	x.sge[0] = (struct bb_sge){8, 300, mr->lkey};
	xfer_post(fx, &x);
	expect_wc(fx, fx->a.cq, x.p.a, x.wr_id, BB_WC_SUCCESS, row->op->name);
	if (row->op->takes_recv)
		xfer_check_recv(fx, &x);
	xfer_check_data(fx, &x);
	OK(fx, bb_dm_read(dm, got, 0, LEN));
	CHECK(fx, memcmp(got, want, LEN) == 0, "the device memory is not as it should be");
}

/* The end of the MR is the end of the key, although the memory continues. */
ROW(run_range)
{
	static const uint64_t at[] = {512, 512 - 63, UINT64_MAX - 7};
	struct bb_dm *dm = dm_of(fx, &fx->b, LEN, 3);
	struct bb_mr *mr = dm_mr(fx, fx->b.pd, dm, OFF, 512, fx->access);
	static uint8_t want[LEN], got[LEN];
	struct xfer x;

	pattern(want, LEN, fx->seed++);
	OK(fx, bb_dm_write(dm, 0, want, LEN));
	xfer_init(&x, op_find("write"), fx_own_pair(fx));
	xfer_prepare(fx, &x);
	xfer_expect_nothing(fx, &x);
	x.t.raddr = at[row->n];
	x.t.rkey = mr->rkey;
	xfer_post(fx, &x);
	expect_wc(fx, fx->a.cq, x.p.a, x.wr_id, BB_WC_REM_ACCESS_ERR, "past the MR");
	wait_refusal(fx, "past the MR");
	OK(fx, bb_dm_read(dm, got, 0, LEN));
	CHECK(fx, memcmp(got, want, LEN) == 0, "the device memory has changed");
}

/* A counter on the device: two QPs add, the host only reads. */
ROW(run_counter)
{
	struct bb_dm *dm = dm_of(fx, &fx->b, 64, 3);
	struct bb_mr *mr = dm_mr(fx, fx->b.pd, dm, 0, 64, fx->access);
	struct bb_sge sge = sge_of(&fx->a, GUARD, 8);
	uint64_t zero[8] = {0}, now;
	struct pair_opts o = fx_opts(fx);
	struct pair p[2];
	struct bb_wc wc[32];

	OK(fx, bb_dm_write(dm, 0, zero, sizeof(zero)));
	p[0] = fx_pair(fx, &o);
	p[1] = fx_pair(fx, &o);
	for (uint32_t i = 0; i < 10; i++) {
		for (uint32_t k = 0; k < 32; k++)
			CHECK(fx,
			      bb_post_fetch_add(p[k % 2].a, k, &sge, 0, mr->rkey, 3,
						BB_SEND_SIGNALED) == 0,
			      "the post is not taken");
		bb_qp_ring(p[0].a);
		bb_qp_ring(p[1].a);
		wait_wc(fx, fx->a.cq, wc, 32, "fetch_add");
	}
	OK(fx, bb_dm_read(dm, &now, 0, 8));
	CHECK(fx, now == 3 * 320, "320 additions of 3 made %" PRIu64, now);
}

void
rows_dm(struct rows *rows)
{
	static const uint32_t size[] = {1, 8, 256, 448};
	struct row *row;

	row_add(rows, MAN, run_none, "dm/none", "alloc")->needs = NEED_NO_DM;
	for (unsigned int i = 0; i < 3; i++) {
		row = row_add(rows, MAN, run_alloc_refused, "dm/alloc-refused", "%s",
			      i == 0   ? "empty"
			      : i == 1 ? "over-max_dm_size"
				       : "over-max_dm_log_align");
		row->n = i;
		row->needs = NEED_DM;
	}
	row_add(rows, MAN, run_exhaust, "dm/alloc", "until-it-ends")->needs = NEED_DM;
	for (unsigned int i = 0; i <= 6; i += 3) {
		row = row_add(rows, MAN, run_align, "dm/alloc", "aligned-to-2^%u", i);
		row->n = 100;
		row->flags = i;
		row->needs = NEED_DM;
	}
	row_add(rows, MAN, run_busy, "dm/children-live", "mr")->needs = NEED_DM;
	for (unsigned int i = 0; i < RTE_DIM(copies); i++) {
		row = row_add(rows, MAN, run_copy,
			      copies[i].err != 0 ? "dm/copy-refused" : "dm/copy", "%s",
			      copies[i].name);
		row->arg = &copies[i];
		row->needs = NEED_DM;
	}
	for (unsigned int i = 0; i < 7; i++) {
		static const char *const name[] = {
			"empty",          "longer",    "behind-the-end", "wraps",
			"no-local-write", "on-demand", "unknown-right"};

		row = row_add(rows, MAN, run_mr_refused, "dm/mr-refused", "%s", name[i]);
		row->n = i;
		row->needs = NEED_DM;
	}
	row_add(rows, MAN, run_mr_other_device, "dm/mr-of-another-device", "pd")->needs =
		NEED_DM | NEED_TWO_DEVICES;
	for (unsigned int i = 0; i < n_ops; i++) {
		if (ops[i].has_raddr) {
			for (unsigned int k = 0; k < (ops[i].atomic ? 1 : RTE_DIM(size)); k++) {
				row = row_add(rows, MAN, run_remote, "dm/rc/remote-target", "%s/%u",
					      ops[i].name, ops[i].atomic ? 8 : size[k]);
				row->op = &ops[i];
				row->n = size[k];
				row->needs = NEED_DM | ops[i].needs;
			}
		}
		if (!ops[i].atomic) {
			row = row_add(rows, MAN, run_local, "dm/rc/local-memory", "%s",
				      ops[i].name);
			row->op = &ops[i];
			row->needs = NEED_DM;
		}
	}
	for (unsigned int i = 0; i < 3; i++) {
		row = row_add(rows, MAN, run_range, "dm/rc/past-the-mr", "%u", i);
		row->n = i;
		row->needs = NEED_DM;
	}
	row_add(rows, MAN, run_counter, "dm/rc/counter", "two-qps")->needs = NEED_DM | NEED_ATOMICS;
}
