/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Indirect keys: one key over many pieces, with a fixed layout or one set by requests. */
#include "conform.h"

#define MAN     "mlx5dv_create_mkey(3)"
#define MAN_WR  "mlx5dv_wr_mr_list(3)"
#define MAN_INT "mlx5dv_wr_mr_interleaved(3)"
#define IOVA    0x400000000ull
#define TOP     1024u /* bytes of an arena that rows check, in KiB */

static void
undo_mkey(void *mkey)
{
	(void)bb_mkey_destroy(mkey);
}

static struct bb_mkey *
make(struct fx *fx, struct bb_pd *pd, const struct bb_sge *pieces, uint32_t n, uint32_t access)
{
	struct bb_mkey_attr attr = DEFAULTS(mkey_attr);
	struct bb_mkey *mkey;

	attr.pieces = pieces;
	attr.n = n;
	attr.iova = IOVA;
	/* Atomics require a length that most of these keys lack. */
	attr.access = access & ~(uint32_t)BB_ACCESS_REMOTE_ATOMIC;
	OK(fx, bb_mkey_create(pd, &attr, &mkey));
	fx_defer(fx, undo_mkey, mkey);
	return mkey;
}

/* All rights that the device supports for keys laid out by requests. */
static uint32_t
rights(const struct fx *fx)
{
	return fx->b.attr.mkey_atomic_align != 0 ? fx->access
						 : fx->access & ~(uint32_t)BB_ACCESS_REMOTE_ATOMIC;
}

static struct bb_mkey *
make_empty(struct fx *fx, struct bb_pd *pd, uint32_t max_pieces)
{
	struct bb_mkey_attr attr = DEFAULTS(mkey_attr);
	struct bb_mkey *mkey;

	attr.max_pieces = max_pieces;
	attr.iova = IOVA;
	OK(fx, bb_mkey_create(pd, &attr, &mkey));
	fx_defer(fx, undo_mkey, mkey);
	return mkey;
}

/* Makes pieces of unequal length, the first one last in memory. Returns the sum of lengths. */
static uint32_t
pieces_of(const struct side *s, struct bb_sge *sge, uint32_t n)
{
	uint32_t i, at = GUARD, sum = 0;

	for (i = n; i-- > 0;) {
		sge[i] = sge_of(s, at, 200 + 37 * i);
		at += sge[i].len + 16;
		sum += sge[i].len;
	}
	return sum;
}

/* Returns byte @k of a list of pieces. */
static uint8_t *
byte_of(const struct bb_sge *sge, uint32_t k)
{
	while (k >= sge->len)
		k -= (sge++)->len;
	return (uint8_t *)(uintptr_t)(sge->addr + k);
}

/*
 * WRITEs @len bytes at @off of B's key and checks that they are in the pieces and nowhere else.
 */
static void
write_check(struct fx *fx, struct pair p, const struct bb_mkey *mkey, const struct bb_sge *pieces,
	    uint32_t off, uint32_t len)
{
	struct bb_sge sge = sge_of(&fx->a, GUARD, len);
	uint64_t id = fx->wr_id++;

	pattern(fx->a.mem + GUARD, len, fx->seed++);
	pattern(fx->b.mem, TOP * 64, fx->seed++);
	memcpy(fx->b.want, fx->b.mem, TOP * 64);
	for (uint32_t k = 0; k < len; k++)
		fx->b.want[byte_of(pieces, off + k) - fx->b.mem] = fx->a.mem[GUARD + k];
	complete(fx, fx->a.cq, p.a,
		 bb_post_write(p.a, id, &sge, 1, IOVA + off, mkey->rkey, BB_SEND_SIGNALED), id,
		 BB_WC_SUCCESS, "a WRITE through the key");
	CHECK(fx, memcmp(fx->b.mem, fx->b.want, TOP * 64) == 0,
	      "a WRITE of %u bytes at %u is not where the pieces are", len, off);
}

ROW(run_fixed)
{
	struct bb_sge pieces[64];
	uint32_t n = row->n, sum = pieces_of(&fx->b, pieces, n);
	struct bb_mkey *mkey = make(fx, fx->b.pd, pieces, n, fx->access);
	struct pair p = fx_shared(fx);

	CHECK(fx, mkey->len == sum && mkey->iova == IOVA && mkey->pd == fx->b.pd,
	      "struct bb_mkey does not say what was made");
	write_check(fx, p, mkey, pieces, 0, sum);
	write_check(fx, p, mkey, pieces, 0, 1);
	write_check(fx, p, mkey, pieces, sum - 1, 1);
	/* Across the boundary of two pieces. */
	write_check(fx, p, mkey, pieces, 190, RTE_MIN(sum - 190, 100u));
}

/* As the requester's own memory: gathered from and scattered into. */
ROW(run_local)
{
	struct bb_sge pieces[8], sge;
	uint32_t sum = pieces_of(&fx->a, pieces, 8), k;
	struct bb_mkey *mkey = make(fx, fx->a.pd, pieces, 8, fx->access);
	struct xfer x;

	xfer_init(&x, row->op, fx_shared(fx));
	x.len = sum;
	xfer_prepare(fx, &x);
	x.window = RTE_MAX(x.window, GUARD + sum + 8 * 16 + GUARD);
	memcpy(fx->a.want, fx->a.mem, x.window);
	memcpy(fx->b.want, fx->b.mem, x.window);
	for (k = 0; k < sum; k++) {
		uint8_t *there = (uint8_t *)(uintptr_t)x.rsge[0].addr + k,
			*here = byte_of(pieces, k);

		if (row->op->to_target)
			fx->b.want[byte_of(x.rsge, k) - fx->b.mem] = *here;
		else
			fx->a.want[here - fx->a.mem] = *there;
	}
	sge = (struct bb_sge){IOVA, sum, mkey->lkey};
	x.sge[0] = sge;
	xfer_post(fx, &x);
	expect_wc(fx, fx->a.cq, x.p.a, x.wr_id, BB_WC_SUCCESS, row->op->name);
	if (row->op->takes_recv)
		xfer_check_recv(fx, &x);
	xfer_check_data(fx, &x);
}

/* A key over a piece of another key. */
ROW(run_nested)
{
	struct bb_sge pieces[4], over;
	uint32_t sum = pieces_of(&fx->b, pieces, 4);
	struct bb_mkey *inner = make(fx, fx->b.pd, pieces, 4, fx->access);

	(void)sum;
	over = (struct bb_sge){IOVA, sum, inner->lkey};
	write_check(fx, fx_shared(fx), make(fx, fx->b.pd, &over, 1, fx->access), pieces, 0, sum);
}

enum fault {
	BEHIND_END,
	BEFORE_START,
	NO_RIGHT,
	NOT_LAID_OUT,
};

ROW(run_fault)
{
	struct bb_sge pieces[4], sge = sge_of(&fx->a, GUARD, 64);
	uint32_t sum = pieces_of(&fx->b, pieces, 4);
	struct bb_mkey *mkey;
	uint64_t raddr = IOVA;
	struct pair p = fx_own_pair(fx);

	memset(fx->b.mem, 0x3c, TOP * 64);
	memset(fx->b.want, 0x3c, TOP * 64);
	if (row->n == NOT_LAID_OUT)
		mkey = make_empty(fx, fx->b.pd, 4);
	else
		mkey = make(fx, fx->b.pd, pieces, 4,
			    row->n == NO_RIGHT ? BB_ACCESS_REMOTE_READ : fx->access);
	if (row->n == BEHIND_END)
		raddr += sum - 63;
	else if (row->n == BEFORE_START)
		raddr--;
	complete(fx, fx->a.cq, p.a,
		 bb_post_write(p.a, 1, &sge, 1, raddr, mkey->rkey, BB_SEND_SIGNALED), 1,
		 BB_WC_REM_ACCESS_ERR, "a bad WRITE");
	wait_refusal(fx, "a bad WRITE");
	CHECK(fx, memcmp(fx->b.mem, fx->b.want, TOP * 64) == 0, "bytes have moved");
}

/* The regions under it cannot be deregistered while it exists. */
ROW(run_held)
{
	struct bb_mr *mr = fx_mr(fx, fx->b.pd, fx->b.mem, ARENA, fx->access);
	struct bb_sge piece = sge_of(&fx->b, GUARD, 100);
	struct bb_mkey *mkey;

	piece.lkey = mr->lkey;
	mkey = make(fx, fx->b.pd, &piece, 1, fx->access);
	REFUSED(fx, bb_mr_dereg(mr), -EBUSY, "key");
	write_check(fx, fx_shared(fx), mkey, &piece, 0, 100);
	fx_forget(fx, mkey);
	OK(fx, bb_mkey_destroy(mkey));
	fx_forget(fx, mr);
	OK(fx, bb_mr_dereg(mr));
}

ROW(run_refused)
{
	struct bb_sge pieces[2] = {sge_of(&fx->a, GUARD, 64), sge_of(&fx->a, GUARD + 64, 64)};
	struct bb_mkey_attr attr = DEFAULTS(mkey_attr);
	struct bb_mkey *mkey = NULL;

	attr.pieces = pieces;
	attr.n = 2;
	attr.access = BB_ACCESS_LOCAL_WRITE;
	switch (row->n) {
	case 0:
		attr.n = 0;
		break;
	case 1:
		attr.max_pieces = 4;
		break;
	case 2:
		attr.n = fx->a.attr.max_mkey_pieces + 1;
		break;
	case 3:
		pieces[1].len = 0;
		break;
	case 4:
		pieces[1].len = 0x80000001;
		break;
	case 5:
		attr.iova = UINT64_MAX - 100;
		break;
	case 6:
		attr.access = BB_ACCESS_REMOTE_WRITE;
		break;
	case 7:
		attr.access = 1u << 15;
		break;
	case 8:
		attr.access |= BB_ACCESS_REMOTE_ATOMIC;
		pieces[1].len = 63;
		break;
	case 9:
		attr.access |= BB_ACCESS_REMOTE_ATOMIC;
		attr.iova = 4;
		break;
	default:
		attr.size = 4;
		break;
	}
	REFUSED(fx, bb_mkey_create(fx->a.pd, &attr, &mkey), -EINVAL, "key");
	CHECK(fx, mkey == NULL, "a refused bb_mkey_create() wrote its out-pointer");
}

ROW(run_none)
{
	struct bb_sge piece = sge_of(&fx->a, GUARD, 64);
	struct bb_mkey_attr attr = DEFAULTS(mkey_attr);
	struct bb_mkey *mkey = NULL;

	if (row->n == 0) {
		attr.pieces = &piece;
		attr.n = 1;
	} else {
		attr.max_pieces = 4;
	}
	REFUSED(fx, bb_mkey_create(fx->a.pd, &attr, &mkey), -ENOTSUP, "indirect keys");
	CHECK(fx, mkey == NULL, "a refused bb_mkey_create() wrote its out-pointer");
}

/* ---- Layout by requests of B */

static void
laid_out(struct fx *fx, struct bb_qp *qp, int posted)
{
	struct bb_wc wc = complete(fx, fx->b.cq, qp, posted, 41, BB_WC_SUCCESS, "the layout");

	CHECK(fx, wc.opcode == BB_WC_MKEY, "opcode %u", wc.opcode);
}

ROW(run_list)
{
	struct bb_mkey *mkey = make_empty(fx, fx->b.pd, 4);
	struct bb_sge pieces[4], again[2];
	uint32_t sum = pieces_of(&fx->b, pieces, row->n);
	struct pair p = fx_shared(fx);

	laid_out(fx, p.b,
		 bb_post_mkey_list(p.b, 41, mkey, rights(fx), pieces, row->n, BB_SEND_SIGNALED));
	write_check(fx, p, mkey, pieces, 0, sum);
	write_check(fx, p, mkey, pieces, sum - 7, 7);
	/* Over other memory, repeatedly. */
	again[0] = sge_of(&fx->b, GUARD + 3000, 10);
	again[1] = sge_of(&fx->b, GUARD, 500);
	laid_out(fx, p.b, bb_post_mkey_list(p.b, 41, mkey, rights(fx), again, 2, BB_SEND_SIGNALED));
	write_check(fx, p, mkey, again, 0, 510);
}

/* Later requests on the same queue see the layout. */
ROW(run_behind)
{
	struct bb_mkey *mkey = make_empty(fx, fx->a.pd, 4);
	struct bb_sge pieces[2] = {sge_of(&fx->a, GUARD + 1000, 100), sge_of(&fx->a, GUARD, 100)};
	struct bb_sge sge = {IOVA, 200, mkey->lkey};
	struct pair p = fx_shared(fx);
	struct bb_wc wc[2];

	pattern(fx->a.mem + GUARD, 2000, fx->seed++);
	CHECK(fx,
	      bb_post_mkey_list(p.a, 41, mkey, BB_ACCESS_LOCAL_WRITE, pieces, 2,
				BB_SEND_SIGNALED) == 0,
	      "the layout is not taken");
	CHECK(fx,
	      bb_post_write(p.a, 42, &sge, 1, addr_of(&fx->b, GUARD), fx->b.mr->rkey,
			    BB_SEND_SIGNALED) == 0,
	      "the WRITE is not taken");
	bb_qp_ring(p.a);
	wait_wc(fx, fx->a.cq, wc, 2, "a layout and a WRITE");
	check_wc(fx, &wc[0], p.a, 41, BB_WC_SUCCESS, "the layout");
	check_wc(fx, &wc[1], p.a, 42, BB_WC_SUCCESS, "the WRITE behind it");
	CHECK(fx,
	      memcmp(fx->b.mem + GUARD, fx->a.mem + GUARD + 1000, 100) == 0 &&
		      memcmp(fx->b.mem + GUARD + 100, fx->a.mem + GUARD, 100) == 0,
	      "the WRITE did not see the layout");
}

ROW(run_interleaved)
{
	struct bb_mkey *mkey = make_empty(fx, fx->b.pd, 4);
	const uint32_t lkey = fx->b.mr->lkey, repeat = 10;
	const struct bb_interleaved block[2] = {
		{addr_of(&fx->b, GUARD), 64, 16, lkey},
		{addr_of(&fx->b, GUARD + 4096), 8, row->n, lkey},
	};
	struct bb_sge pieces[20];
	struct pair p = fx_shared(fx);

	laid_out(fx, p.b,
		 bb_post_mkey_interleaved(p.b, 41, mkey, rights(fx), repeat, block, 2,
					  BB_SEND_SIGNALED));
	for (uint32_t i = 0; i < repeat; i++) {
		pieces[2 * i] = (struct bb_sge){block[0].addr + i * 80, 64, lkey};
		pieces[2 * i + 1] = (struct bb_sge){block[1].addr + i * (8 + row->n), 8, lkey};
	}
	write_check(fx, p, mkey, pieces, 0, 720);
	write_check(fx, p, mkey, pieces, 60, 80);
	write_check(fx, p, mkey, pieces, 719, 1);
}

ROW(run_no_pattern)
{
	struct bb_mkey *mkey = make_empty(fx, fx->b.pd, 4);
	const struct bb_interleaved block = {addr_of(&fx->b, GUARD), 64, 16, fx->b.mr->lkey};

	REFUSED(fx,
		bb_post_mkey_interleaved(fx_shared(fx).b, 41, mkey, rights(fx), 2, &block, 1, 0),
		-ENOTSUP, "interleaved");
}

ROW(run_invalidated)
{
	struct bb_mkey *mkey = make_empty(fx, fx->b.pd, 4);
	struct bb_sge piece = sge_of(&fx->b, GUARD, 500), sge = sge_of(&fx->a, GUARD, 64);
	struct bb_wc wc;
	struct pair p = fx_own_pair(fx);

	laid_out(fx, p.b,
		 bb_post_mkey_list(p.b, 41, mkey, rights(fx), &piece, 1, BB_SEND_SIGNALED));
	write_check(fx, p, mkey, &piece, 0, 500);
	wc = complete(fx, fx->b.cq, p.b, bb_post_local_inv(p.b, 43, mkey->rkey, BB_SEND_SIGNALED),
		      43, BB_WC_SUCCESS, "the invalidation");
	CHECK(fx, wc.opcode == BB_WC_LOCAL_INV, "opcode %u", wc.opcode);
	complete(fx, fx->a.cq, p.a,
		 bb_post_write(p.a, 1, &sge, 1, IOVA, mkey->rkey, BB_SEND_SIGNALED), 1,
		 BB_WC_REM_ACCESS_ERR, "a WRITE");
	wait_refusal(fx, "a WRITE");
}

ROW(run_post_refused)
{
	struct bb_sge pieces[8];
	struct bb_mkey *mkey = make_empty(fx, fx->b.pd, 4);
	uint32_t n = 1, access = BB_ACCESS_LOCAL_WRITE;
	struct pair p = fx_own_pair(fx);

	pieces_of(&fx->b, pieces, 8);
	if (row->n == 0)
		mkey = make(fx, fx->b.pd, pieces, 2, access);
	else if (row->n == 1)
		mkey = make_empty(fx, fx_pd(fx, &fx->b), 4);
	else if (row->n == 2)
		n = 8;
	else if (row->n == 3)
		pieces[0].len = 0;
	else
		access = BB_ACCESS_REMOTE_WRITE;
	log_clear();
	CHECK(fx, bb_post_mkey_list(p.b, 41, mkey, access, pieces, n, 0) == -EINVAL,
	      "it is not refused");
	CHECK(fx, log_lines() == 1, "%u lines were logged, expected 1", log_lines());
	settle(fx, p.b, fx->b.cq);
}

void
rows_mkey(struct rows *rows)
{
	static const uint32_t n[] = {1, 2, 5, 40};
	static const char *const fault[] = {"behind-end", "before-start", "no-right",
					    "not-laid-out"};
	static const char *const refused[] = {"no-pieces",
					      "pieces-and-max_pieces",
					      "over-max",
					      "empty-piece",
					      "piece-over-2^31",
					      "iova-wraps",
					      "write-without-local-write",
					      "unknown-right",
					      "atomic-right-odd-length",
					      "atomic-right-odd-iova",
					      "size-of-another-version"};
	static const char *const post[] = {"fixed-key", "another-pd", "over-max_pieces",
					   "empty-piece", "write-without-local-write"};
	struct row *row = row_add(rows, MAN, run_none, "key/none", "fixed");

	row->needs = NEED_NO_MKEY;
	row = row_add(rows, MAN, run_none, "key/no-layout", "by-requests");
	row->n = 1;
	row->needs = NEED_NO_MKEY_LAYOUT;
	for (unsigned int i = 0; i < RTE_DIM(n); i++) {
		row = row_add(rows, MAN, run_fixed, "key/rc/fixed-pieces", "%u", n[i]);
		row->n = n[i];
		row->needs = NEED_MKEY;
	}
	for (unsigned int i = 0; i < n_ops; i++) {
		if (ops[i].atomic)
			continue;
		row = row_add(rows, MAN, run_local, "key/rc/local-memory", "%s", ops[i].name);
		row->op = &ops[i];
		row->needs = NEED_MKEY;
	}
	row_add(rows, MAN, run_nested, "key/rc/key-over-key", "two-deep")->needs = NEED_MKEY;
	row_add(rows, MAN, run_held, "key/rc/region-is-held", "fixed")->needs = NEED_MKEY;
	for (unsigned int i = 0; i < RTE_DIM(fault); i++) {
		row = row_add(rows, MAN, run_fault, "key/rc/error", "%s", fault[i]);
		row->n = i;
		row->needs = i == NOT_LAID_OUT ? NEED_MKEY_LAYOUT : NEED_MKEY;
	}
	for (unsigned int i = 0; i < RTE_DIM(refused); i++) {
		row = row_add(rows, MAN, run_refused, "key/create-refused", "%s", refused[i]);
		row->n = i;
		row->needs = i == 1 ? NEED_MKEY_LAYOUT : NEED_MKEY;
	}
	for (unsigned int i = 1; i <= 4; i++) {
		row = row_add(rows, MAN_WR, run_list, "key/rc/list", "%u", i);
		row->n = i;
		row->needs = NEED_MKEY_LAYOUT;
	}
	row_add(rows, MAN_WR, run_behind, "key/rc/request-behind-sees-it", "write")->needs =
		NEED_MKEY_LAYOUT;
	row_add(rows, MAN_WR, run_invalidated, "key/rc/invalidated", "local")->needs =
		NEED_MKEY_LAYOUT;
	for (unsigned int i = 0; i < RTE_DIM(post); i++) {
		row = row_add(rows, MAN_WR, run_post_refused, "key/rc/list-refused", "%s", post[i]);
		row->n = i;
		row->needs = NEED_MKEY_LAYOUT;
	}
	for (unsigned int i = 0; i <= 100; i += 50) {
		row = row_add(rows, MAN_INT, run_interleaved, "key/rc/interleaved", "skip-%u", i);
		row->n = i;
		row->needs = NEED_MKEY_INTERLEAVED;
	}
	row_add(rows, MAN_INT, run_no_pattern, "key/rc/no-interleaved", "refused")->needs =
		NEED_MKEY_LAYOUT | NEED_NO_MKEY_INTERLEAVED;
}
