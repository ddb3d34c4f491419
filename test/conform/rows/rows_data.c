/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Data: every verb that moves bytes, in every size, with every flag and shape that man
 * ibv_post_send permits. A row posts one request and checks everything.
 */
#include "conform.h"

#define MAN "ibv_post_send(3)"

enum size {
	SIZE_0,
	SIZE_1,
	SIZE_4,
	SIZE_8,
	SIZE_INLINE, /* the largest inline size */
	SIZE_MTU_LESS,
	SIZE_MTU,
	SIZE_MTU_MORE,
	SIZE_64K,
	SIZE_1M,
	SIZES,
};

static const char *const size_name[SIZES] = {
	"0", "1", "4", "8", "inline", "mtu-1", "mtu", "mtu+1", "64K", "1M",
};

static uint32_t
size_of(const struct fx *fx, enum size size)
{
	const uint32_t bytes[SIZES] = {
		0,           1,       4,           8,          fx->max_inline,
		fx->mtu - 1, fx->mtu, fx->mtu + 1, 64u * 1024, 1024u * 1024,
	};

	return bytes[size];
}

enum flag {
	UNSIGNALED,
	SIGNALED,
	FENCE,
	SOLICITED,
	INLINE,
	INLINE_UNSIGNALED,
	SIGNAL_ALL, /* attribute of the QP; the request has no flag */
	LIST,
	LIST_INLINE, /* inline data from a gather list */
	FLAGS,
};

static const struct {
	const char *name;
	uint32_t bits;
} flag_cell[FLAGS] = {
	{"unsignaled", 0},
	{"signaled", BB_SEND_SIGNALED},
	{"fence", BB_SEND_SIGNALED | BB_SEND_FENCE},
	{"solicited", BB_SEND_SIGNALED | BB_SEND_SOLICITED},
	{"inline", BB_SEND_SIGNALED},
	{"inline-unsignaled", 0},
	{"signal-all", 0},
	{"list", BB_SEND_SIGNALED},
	{"list-inline", BB_SEND_SIGNALED},
};

#define MOST UINT32_MAX /* as many pieces as queue and operation accept */

static uint32_t
most_pieces(const struct fx *fx, const struct op *op)
{
	return op->wc == BB_WC_RDMA_READ ? RTE_MIN(fx->max_sge, fx->a.attr.max_read_sge)
					 : fx->max_sge;
}

ROW(run)
{
	enum shared which = row->type == BB_QPT_UC     ? SHARED_UC
			    : row->flags == SIGNAL_ALL ? SHARED_RC_ALL
						       : SHARED_RC;
	struct xfer x;

	xfer_init(&x, row->op, fx_shared_of(fx, which));
	x.unreliable = row->type == BB_QPT_UC;
	x.signal_all = row->flags == SIGNAL_ALL;
	x.len = size_of(fx, row->size);
	x.flags = flag_cell[row->flags].bits;
	x.use_inline = row->flags == INLINE || row->flags == INLINE_UNSIGNALED ||
		       row->flags == LIST_INLINE;
	x.use_list = row->flags >= LIST;
	x.nsge = row->pieces == MOST ? most_pieces(fx, row->op) : row->pieces;
	/* Different pieces at the receiver, so that their boundaries do not match. */
	x.nrecv = row->pieces == 1   ? RTE_MIN(3u, fx->max_rsge)
		  : row->pieces == 2 ? fx->max_rsge
				     : 1;
	/* Every offset in a cache line is used in turn. */
	x.shift = (uint32_t)(fx->wr_id * 7 % 64);
	xfer_run(fx, &x);
}

static bool
legal(const struct op *op, enum bb_qp_type type, enum size size, enum flag flag, uint32_t pieces)
{
	/* A fence waits for READs and atomics, which only RC has. */
	if (type != BB_QPT_RC && (flag == FENCE || flag == SIGNAL_ALL))
		return false;
	if (flag == SOLICITED && !op->takes_recv)
		return false;
	if ((flag == INLINE || flag == INLINE_UNSIGNALED) &&
	    (!op->can_inline || size > SIZE_INLINE || pieces != 1))
		return false;
	if (flag == LIST_INLINE && (!op->can_inline || size > SIZE_INLINE))
		return false;
	return true;
}

/* A message without payload addresses no memory: its key and address are not checked. */
ROW(run_empty_key)
{
	struct xfer x;

	xfer_init(&x, row->op, fx_shared(fx));
	x.len = 0;
	x.nsge = row->n;
	xfer_prepare(fx, &x);
	x.t.raddr = 0;
	x.t.rkey = 0;
	xfer_post(fx, &x);
	settle_one(fx, &x);
	xfer_check_data(fx, &x);
}

/* Many requests in one doorbell: each executes in order and has its own completion. */
ROW(run_burst)
{
	const uint32_t n = 24, len = 96;
	struct pair p = fx_shared(fx);
	uint64_t first = fx->wr_id;
	struct bb_wc wc[24];
	struct xfer x;
	uint32_t i, k = 0;

	xfer_init(&x, row->op, p);
	x.len = n * len;
	xfer_prepare(fx, &x);
	first = fx->wr_id;
	fx->wr_id += n;
	for (i = 0; i < n; i++) {
		struct bb_sge sge = x.sge[0];
		struct target t = x.t;
		bool last = i == n - 1;

		sge.addr += i * len;
		sge.len = len;
		t.raddr += i * len;
		CHECK(fx,
		      op_post(row->op, p.a, first + i, &sge, 1, &t,
			      last || i % row->n == 0 ? BB_SEND_SIGNALED : 0) == 0,
		      "post %u of %u is not taken", i + 1, n);
	}
	bb_qp_ring(p.a);
	for (i = 0; i < n; i++)
		k += i == n - 1 || i % row->n == 0;
	wait_wc(fx, fx->a.cq, wc, k, "a burst");
	for (i = 0, k = 0; i < n; i++)
		if (i == n - 1 || i % row->n == 0)
			check_wc(fx, &wc[k++], p.a, first + i, BB_WC_SUCCESS, "a burst");
	xfer_check_data(fx, &x);
	settle(fx, p.a, fx->a.cq);
}

static void
add_op(struct rows *rows, const struct op *op, enum bb_qp_type type)
{
	static const uint32_t pieces[] = {1, 2, MOST};
	static const char *const pieces_name[] = {"1", "2", "max"};
	char group[64];
	struct row *row;

	snprintf(group, sizeof(group), "data/%s/%s", type == BB_QPT_RC ? "rc" : "uc", op->name);
	for (unsigned int s = 0; s < SIZES; s++) {
		for (unsigned int f = 0; f < FLAGS; f++) {
			for (unsigned int k = 0; k < RTE_DIM(pieces); k++) {
				if (!legal(op, type, s, f, pieces[k]))
					continue;
				row = row_add(rows, MAN, run, group, "%s/%s/%s", size_name[s],
					      flag_cell[f].name, pieces_name[k]);
				row->op = op;
				row->type = type;
				row->size = s;
				row->flags = f;
				row->pieces = pieces[k];
			}
		}
	}
}

void
rows_data(struct rows *rows)
{
	static const uint32_t every[] = {1, 3, 24};
	struct row *row;

	for (unsigned int i = 0; i < n_ops; i++)
		if (!ops[i].atomic)
			add_op(rows, &ops[i], BB_QPT_RC);
	for (unsigned int i = 0; i < n_ops; i++)
		if ((ops[i].types & 1u << BB_QPT_UC) != 0)
			add_op(rows, &ops[i], BB_QPT_UC);
	for (unsigned int i = 0; i < n_ops; i++) {
		if (ops[i].atomic || !ops[i].has_raddr)
			continue;
		for (unsigned int k = 0; k <= 1; k++) {
			row = row_add(rows, "IBTA vol. 1, 9.7.4.1.4", run_empty_key,
				      "data/rc/empty-names-no-memory", "%s/%u-pieces", ops[i].name,
				      k);
			row->op = &ops[i];
			row->n = k;
		}
	}
	for (unsigned int i = 0; i < n_ops; i++) {
		if (ops[i].atomic || ops[i].takes_recv)
			continue;
		for (unsigned int k = 0; k < RTE_DIM(every); k++) {
			row = row_add(rows, MAN, run_burst, "data/rc/burst", "%s/signal-every-%u",
				      ops[i].name, every[k]);
			row->op = &ops[i];
			row->n = every[k];
		}
	}
}
