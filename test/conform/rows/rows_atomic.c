/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Atomics: returned value, memory, and atomicity. */
#include "conform.h"

#define MAN "ibv_post_send(3)"

static const struct {
	const char *name;
	uint32_t bits;
} flag_cell[] = {
	{"unsignaled", 0},
	{"signaled", BB_SEND_SIGNALED},
	{"fence", BB_SEND_SIGNALED | BB_SEND_FENCE},
};

static const struct {
	const char *name;
	const char *op;
	uint64_t operand, miss;
} value[] = {
	{"equal", "cmp_swap", 0, 0},
	{"swap-in-0", "cmp_swap", 1ull << 63, 0},
	{"low-bit-differs", "cmp_swap", 0, 1},
	{"high-bit-differs", "cmp_swap", 0, 1ull << 63},
	{"low-half-differs", "cmp_swap", 0, 0xffffffff},
	{"1", "fetch_add", 1, 0},
	{"minus-1", "fetch_add", UINT64_MAX, 0},
	{"2^32", "fetch_add", 1ull << 32, 0},
	{"2^63", "fetch_add", 1ull << 63, 0},
	{"bytes-differ", "fetch_add", 0x0102030405060708, 0},
};

ROW(run)
{
	struct xfer x;

	xfer_init(&x, row->op, fx_shared(fx));
	x.flags = flag_cell[row->flags].bits;
	x.operand = value[row->n].operand;
	x.miss = value[row->n].miss;
	x.shift = (uint32_t)(fx->wr_id * 8 % 64);
	xfer_run(fx, &x);
}

/* ---- Masked atomics: bits of a word, fields of a word */

static const struct {
	const char *name;
	bool add;
	/* add: boundaries in compare */
	uint64_t start, operand, compare, compare_mask, swap_mask;
} masked[] = {
	{"swap-all", false, 0x1122334455667788, 0x99aabbccddeeff00, 0x1122334455667788, UINT64_MAX,
	 UINT64_MAX},
	{"swap-low-byte", false, 0x1122334455667788, 0xff, 0x88, 0xff, 0xff},
	{"compare-one-bit", false, 0x1122334455667788, 0, 8, 8, 0xffff},
	{"differs-under-mask", false, 0x1122334455667788, 0, 0x89, 0xff, 0xffff},
	{"differs-beside-mask", false, 0x1122334455667788, 0xabcd, 0xff88, 0xff, 0xffff},
	{"empty-masks", false, 0x1122334455667788, 0xabcd, 1, 0, 0},
	{"add-whole", true, 0x00000000ffffffff, 1, 0, 0, 0},
	{"add-no-carry", true, 0x00000000ffffffff, 1, 0x80000000, 0, 0},
	{"add-bytes", true, 0xff01ff02ff03ff04, 0x0101010101010101, 0x8080808080808080, 0, 0},
};

/* Adds fields in @bits; a bit of @boundary is the highest of its field. */
static uint64_t
add_fields(uint64_t a, uint64_t b, uint64_t boundary, uint32_t bits)
{
	uint64_t sum = 0, carry = 0;

	for (uint32_t i = 0; i < bits; i++) {
		uint64_t x = (a >> i & 1) + (b >> i & 1) + carry;

		sum |= (x & 1) << i;
		carry = (boundary >> i & 1) != 0 ? 0 : x >> 1;
	}
	return sum;
}

ROW(run_masked)
{
	const uint32_t size = row->flags, i = row->n;
	const uint64_t all = size == 8 ? UINT64_MAX : UINT32_MAX;
	uint64_t start = masked[i].start & all, operand = masked[i].operand & all;
	uint64_t compare = masked[i].compare & all, mask = masked[i].compare_mask & all;
	uint64_t swap_mask = masked[i].swap_mask & all, want = start, now = 0, old = 0;
	struct bb_sge sge = sge_of(&fx->a, GUARD, size);
	struct pair p = fx_shared(fx);
	uint64_t raddr = addr_of(&fx->b, GUARD + 64);
	struct bb_wc wc;
	int ret;

	pattern(fx->a.mem, 2 * GUARD, fx->seed++);
	pattern(fx->b.mem, 2 * GUARD, fx->seed++);
	memcpy(fx->b.mem + GUARD + 64, &start, size);
	memcpy(fx->b.want, fx->b.mem, 2 * GUARD);
	if (masked[i].add) {
		want = add_fields(start, operand, compare, size * 8);
		ret = bb_post_masked_fetch_add(p.a, 9, &sge, raddr, fx->b.mr->rkey, operand,
					       compare, BB_SEND_SIGNALED);
	} else {
		if (((start ^ compare) & mask) == 0)
			want = (start & ~swap_mask) | (operand & swap_mask);
		ret = bb_post_masked_cmp_swap(p.a, 9, &sge, raddr, fx->b.mr->rkey, compare, mask,
					      operand, swap_mask, BB_SEND_SIGNALED);
	}
	wc = complete(fx, fx->a.cq, p.a, ret, 9, BB_WC_SUCCESS, "a masked atomic");
	CHECK(fx,
	      wc.opcode == (masked[i].add ? BB_WC_FETCH_ADD : BB_WC_CMP_SWAP) &&
		      wc.byte_len == size,
	      "opcode %u, byte_len %u", wc.opcode, wc.byte_len);
	memcpy(&now, fx->b.mem + GUARD + 64, size);
	CHECK(fx, now == want, "the word is 0x%" PRIx64 ", expected 0x%" PRIx64, now, want);
	memcpy(fx->b.want + GUARD + 64, &want, size);
	CHECK(fx, memcmp(fx->b.mem, fx->b.want, 2 * GUARD) == 0,
	      "bytes around the word have changed");
	memcpy(&old, fx->a.mem + GUARD, size);
	if ((fx->a.attr.masked_atomics_be & size) != 0)
		old = size == 8 ? __builtin_bswap64(old) : __builtin_bswap32((uint32_t)old);
	CHECK(fx, old == start, "the result is 0x%" PRIx64 ", expected 0x%" PRIx64, old, start);
	settle(fx, p.a, fx->a.cq);
}

ROW(run_masked_refused)
{
	struct bb_sge sge = sge_of(&fx->a, GUARD, 8);
	struct bb_send_wr wr = {.opcode = row->n, .sge = &sge, .nsge = 1};
	int err = 0;
	struct pair p = fx_own_pair(fx);

	wr.atomic.raddr = addr_of(&fx->b, GUARD);
	wr.atomic.rkey = fx->b.mr->rkey;
	log_clear();
	CHECK(fx, bb_qp_post_list(p.a, &wr, 1, &err) == 0 && err == -ENOTSUP, "error %d", err);
	CHECK(fx, log_lines() == 1, "%u lines were logged, expected 1", log_lines());
	check_alive(fx, p);
}

/*
 * Without the capability keys and QPs that would grant atomics are rejected with -EINVAL and one
 * line each.
 */
ROW(run_refused)
{
	struct bb_mr *mr = NULL;
	struct bb_qp_attr attr;
	struct pair_opts o = fx_opts(fx);
	struct pair p;

	REFUSED(fx, bb_mr_reg(fx->a.pd, fx->a.mem, 4096, ACCESS_ALL, &mr), -EINVAL, "atomics");
	CHECK(fx, mr == NULL, "a refused bb_mr_reg() wrote its out-pointer");
	p = fx_pair(fx, &o);
	attr = o.b;
	attr.state = BB_QP_RTS;
	attr.access = ACCESS_ALL;
	REFUSED(fx, bb_qp_modify(p.b, &attr, BB_QP_STATE | BB_QP_ACCESS), -EINVAL, "atomics");
	check_state(fx, p.b, BB_QP_RTS, "the refused");
	check_alive(fx, p);
}

/* Without the capability the requester's device rejects the request. */
ROW(run_refused_post)
{
	struct xfer x;

	xfer_init(&x, row->op, fx_own_pair(fx));
	xfer_prepare(fx, &x);
	xfer_expect_nothing(fx, &x);
	xfer_post(fx, &x);
	expect_wc(fx, fx->a.cq, x.p.a, x.wr_id, BB_WC_LOC_QP_OP_ERR, row->op->name);
	xfer_check_data(fx, &x);
	check_state(fx, x.p.b, BB_QP_RTS, "the target's");
}

void
rows_atomic(struct rows *rows)
{
	char group[64];
	struct row *row;

	for (unsigned int i = 0; i < RTE_DIM(value); i++) {
		for (unsigned int f = 0; f < RTE_DIM(flag_cell); f++) {
			snprintf(group, sizeof(group), "atomic/rc/%s", value[i].op);
			row = row_add(rows, MAN, run, group, "%s/%s", value[i].name,
				      flag_cell[f].name);
			row->op = op_find(value[i].op);
			row->flags = f;
			row->n = i;
			row->needs = NEED_ATOMICS;
		}
	}
	for (unsigned int i = 0; i < RTE_DIM(masked); i++) {
		for (unsigned int f = 4; f <= 8; f += 4) {
			row = row_add(rows, "mlx5_wqe_masked_atomic_seg", run_masked,
				      "atomic/rc/masked", "%s/%u-bytes", masked[i].name, f);
			row->n = i;
			row->flags = f;
			row->needs = NEED_ATOMICS | (f == 4 ? NEED_MASKED_4 : NEED_MASKED_8);
		}
	}
	for (unsigned int i = BB_WR_MASKED_CMP_AND_SWP; i <= BB_WR_MASKED_FETCH_AND_ADD; i++) {
		row = row_add(rows, MAN, run_masked_refused, "atomic/rc/no-masked", "%s",
			      bb_wr_opcode_name(i));
		row->n = i;
		row->needs = NEED_NO_MASKED;
	}
	row = row_add(rows, "ibv_reg_mr(3)", run_refused, "atomic/rc/no-capability", "rights");
	row->needs = NEED_NO_ATOMICS;
	for (unsigned int i = 0; i < n_ops; i++) {
		if (!ops[i].atomic)
			continue;
		row = row_add(rows, MAN, run_refused_post, "atomic/rc/no-capability", "%s",
			      ops[i].name);
		row->op = &ops[i];
		row->needs = NEED_NO_ATOMICS;
	}
}
