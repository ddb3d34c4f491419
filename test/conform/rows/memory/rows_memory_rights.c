/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Every combination of a key's rights, a QP's rights and a verb: permitted exactly if both have
 * the verb's right.
 */
#include "conform.h"

static const struct {
	const char *name;
	uint32_t access;
} combos[] = {
	{"none", 0},
	{"lw", BB_ACCESS_LOCAL_WRITE},
	{"rr", BB_ACCESS_REMOTE_READ},
	{"lw+rr", BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_READ},
	{"lw+rw", BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE},
	{"lw+ra", BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_ATOMIC},
	{"lw+rw+rr", BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_READ},
	{"lw+rw+ra", BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_ATOMIC},
	{"lw+rr+ra", BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_READ | BB_ACCESS_REMOTE_ATOMIC},
	{"all", ACCESS_ALL},
};

/* Returns the rkey. Without remote rights it returns the lkey, which a peer could guess. */
static uint32_t
key_for_peers(const struct bb_mr *mr)
{
	return mr->rkey != 0 ? mr->rkey : mr->lkey;
}

ROW(run)
{
	uint32_t key_access = combos[row->n].access, qp_access = combos[row->flags].access;
	bool by_key = (key_access & row->op->right) != 0, by_qp = (qp_access & row->op->right) != 0;
	struct pair_opts o = fx_opts(fx);
	struct xfer x;

	o.b.access = qp_access;
	xfer_init(&x, row->op, fx_pair(fx, &o));
	xfer_prepare(fx, &x);
	x.t.rkey = key_for_peers(fx_mr(fx, fx->b.pd, fx->b.mem, ARENA, key_access));
	if (by_key && by_qp) {
		xfer_post(fx, &x);
		settle_one(fx, &x);
		xfer_check_data(fx, &x);
		return;
	}
	xfer_expect_nothing(fx, &x);
	xfer_post(fx, &x);
	expect_wc(fx, fx->a.cq, x.p.a, x.wr_id,
		  by_qp ? BB_WC_REM_ACCESS_ERR : BB_WC_REM_INV_REQ_ERR, row->op->name);
	xfer_check_data(fx, &x);
	check_state(fx, x.p.b, BB_QP_ERR, "the target's");
	wait_refusal(fx, row->op->name);
}

void
rows_memory_rights(struct rows *rows)
{
	static const char *const verbs[] = {"write", "write_imm", "read", "cmp_swap", "fetch_add"};
	struct row *row;
	char group[64];

	for (unsigned int i = 0; i < RTE_DIM(verbs); i++) {
		const struct op *op = op_find(verbs[i]);

		snprintf(group, sizeof(group), "rights/rc/%s", op->name);
		for (unsigned int k = 0; k < RTE_DIM(combos); k++) {
			for (unsigned int q = 0; q < RTE_DIM(combos); q++) {
				row = row_add(rows, "ibv_reg_mr(3), ibv_modify_qp(3)", run, group,
					      "key-%s/qp-%s", combos[k].name, combos[q].name);
				row->op = op;
				row->n = k;
				row->flags = q;
				row->needs = op->needs;
				if (((combos[k].access | combos[q].access) &
				     BB_ACCESS_REMOTE_ATOMIC) != 0)
					row->needs |= NEED_ATOMICS;
			}
		}
	}
}
