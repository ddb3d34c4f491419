/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The state machine of man ibv_modify_qp: every transition, every attribute that a transition
 * requires or forbids, and every value out of range. A rejected call changes nothing.
 */
#include "conform.h"

#define MAN "ibv_modify_qp(3)"

#define STEPS 5
static const struct step {
	enum bb_qp_state from, to;
	uint32_t required, optional;
} steps_of[][STEPS] = {
	[BB_QPT_RC] =
		{
			{BB_QP_RESET, BB_QP_INIT, BB_QP_PKEY_INDEX | BB_QP_PORT | BB_QP_ACCESS, 0},
			{BB_QP_INIT, BB_QP_INIT, 0, BB_QP_PKEY_INDEX | BB_QP_PORT | BB_QP_ACCESS},
			{BB_QP_INIT, BB_QP_RTR,
			 BB_QP_PATH | BB_QP_PATH_MTU | BB_QP_DEST_QPN | BB_QP_RQ_PSN |
				 BB_QP_MAX_DEST_RD_ATOMIC | BB_QP_MIN_RNR_TIMER,
			 BB_QP_ACCESS | BB_QP_PKEY_INDEX},
			{BB_QP_RTR, BB_QP_RTS,
			 BB_QP_TIMEOUT | BB_QP_RETRY_CNT | BB_QP_RNR_RETRY | BB_QP_SQ_PSN |
				 BB_QP_MAX_RD_ATOMIC,
			 BB_QP_ACCESS | BB_QP_MIN_RNR_TIMER},
			{BB_QP_RTS, BB_QP_RTS, 0, BB_QP_ACCESS | BB_QP_MIN_RNR_TIMER},
		},
	[BB_QPT_UC] =
		{
			{BB_QP_RESET, BB_QP_INIT, BB_QP_PKEY_INDEX | BB_QP_PORT | BB_QP_ACCESS, 0},
			{BB_QP_INIT, BB_QP_INIT, 0, BB_QP_PKEY_INDEX | BB_QP_PORT | BB_QP_ACCESS},
			{BB_QP_INIT, BB_QP_RTR,
			 BB_QP_PATH | BB_QP_PATH_MTU | BB_QP_DEST_QPN | BB_QP_RQ_PSN,
			 BB_QP_ACCESS | BB_QP_PKEY_INDEX},
			{BB_QP_RTR, BB_QP_RTS, BB_QP_SQ_PSN, BB_QP_ACCESS},
			{BB_QP_RTS, BB_QP_RTS, 0, BB_QP_ACCESS},
		},
	[BB_QPT_UD] =
		{
			{BB_QP_RESET, BB_QP_INIT, BB_QP_PKEY_INDEX | BB_QP_PORT | BB_QP_QKEY, 0},
			{BB_QP_INIT, BB_QP_INIT, 0, BB_QP_PKEY_INDEX | BB_QP_PORT | BB_QP_QKEY},
			{BB_QP_INIT, BB_QP_RTR, 0, BB_QP_PKEY_INDEX | BB_QP_QKEY},
			{BB_QP_RTR, BB_QP_RTS, BB_QP_SQ_PSN, BB_QP_QKEY},
			{BB_QP_RTS, BB_QP_RTS, 0, BB_QP_QKEY},
		},
};

static const char *const bit_name[] = {
	"BB_QP_STATE",         "BB_QP_ACCESS",    "BB_QP_PKEY_INDEX",
	"BB_QP_PORT",          "BB_QP_PATH",      "BB_QP_PATH_MTU",
	"BB_QP_DEST_QPN",      "BB_QP_RQ_PSN",    "BB_QP_MAX_DEST_RD_ATOMIC",
	"BB_QP_MIN_RNR_TIMER", "BB_QP_SQ_PSN",    "BB_QP_TIMEOUT",
	"BB_QP_RETRY_CNT",     "BB_QP_RNR_RETRY", "BB_QP_MAX_RD_ATOMIC",
	"BB_QP_QKEY",
};

static const struct step *
step_of(enum bb_qp_type type, enum bb_qp_state from, enum bb_qp_state to)
{
	for (unsigned int i = 0; i < STEPS; i++)
		if (steps_of[type][i].from == from && steps_of[type][i].to == to)
			return &steps_of[type][i];
	return NULL;
}

/* Returns the attributes of a QP that is connected to itself. */
static struct bb_qp_attr
attr_self(struct fx *fx, struct bb_qp *qp)
{
	struct bb_qp_addr addr;
	struct bb_qp_attr attr = DEFAULTS(qp_attr);

	OK(fx, bb_qp_addr(qp, 1, fx->a.gid, &addr));
	attr.access = BB_ACCESS_REMOTE_WRITE;
	attr.qkey = 0x4711;
	attr.path_mtu = fx->mtu;
	attr.dest_qpn = qp->qpn;
	attr.rq_psn = 7;
	attr.sq_psn = 7;
	attr.max_rd_atomic = 1;
	attr.max_dest_rd_atomic = 1;
	memcpy(attr.path.dgid, addr.gid, sizeof(addr.gid));
	attr.path.dlid = addr.lid;
	attr.path.is_global = fx->a.port.grh_required;
	return attr;
}

static struct bb_qp *
make(struct fx *fx, enum bb_qp_type type)
{
	struct bb_qp_init_attr init = DEFAULTS(qp_init_attr);

	init.type = type;
	init.send_cq = init.recv_cq = fx->a.cq;
	init.sq_depth = init.rq_depth = 16;
	return fx_qp(fx, fx->a.pd, &init);
}

static void
go(struct fx *fx, enum bb_qp_type type, struct bb_qp *qp, const struct bb_qp_attr *attr,
   enum bb_qp_state to)
{
	static const enum bb_qp_state way[] = {BB_QP_RESET, BB_QP_INIT, BB_QP_RTR, BB_QP_RTS};
	struct bb_qp_attr a = *attr;

	if (to == BB_QP_ERR) {
		a.state = to;
		OK(fx, bb_qp_modify(qp, &a, BB_QP_STATE));
		return;
	}
	for (unsigned int i = 1; i < RTE_DIM(way) && way[i - 1] != to; i++) {
		a.state = way[i];
		OK(fx,
		   bb_qp_modify(qp, &a, BB_QP_STATE | step_of(type, way[i - 1], way[i])->required));
	}
}

/* From every state to every state. */
ROW(run_transition)
{
	enum bb_qp_state from = row->n, to = row->flags;
	const struct step *step = step_of(row->type, from, to);
	struct bb_qp *qp = make(fx, row->type);
	struct bb_qp_attr attr = attr_self(fx, qp);
	uint32_t mask = BB_QP_STATE | (step != NULL ? step->required : 0);

	go(fx, row->type, qp, &attr, from);
	attr.state = to;
	if (to == BB_QP_SQD) {
		REFUSED(fx, bb_qp_modify(qp, &attr, mask), -ENOTSUP, "SQD");
	} else if (step == NULL && to != BB_QP_RESET && to != BB_QP_ERR) {
		REFUSED(fx, bb_qp_modify(qp, &attr, mask), -EINVAL, bb_qp_state_name(to));
	} else {
		OK(fx, bb_qp_modify(qp, &attr, mask));
		CHECK(fx, qp->state == to, "bb_qp.state is %s", bb_qp_state_name(qp->state));
		check_state(fx, qp, to, "the");
		return;
	}
	CHECK(fx, qp->state == from, "bb_qp.state is %s", bb_qp_state_name(qp->state));
	check_state(fx, qp, from, "the refused");
}

/* One attribute missing or forbidden. */
ROW(run_mask)
{
	const struct step *step = row->arg;
	struct bb_qp *qp = make(fx, row->type);
	struct bb_qp_attr attr = attr_self(fx, qp);
	uint32_t bit = 1u << row->n, mask = BB_QP_STATE | step->required;

	go(fx, row->type, qp, &attr, step->from);
	attr.state = step->to;
	mask ^= bit;
	if ((step->optional & bit) != 0) {
		OK(fx, bb_qp_modify(qp, &attr, mask));
		check_state(fx, qp, step->to, "the");
		return;
	}
	REFUSED(fx, bb_qp_modify(qp, &attr, mask), -EINVAL, bit_name[row->n]);
	check_state(fx, qp, step->from, "the refused");
	/* The state is unchanged: the correct call succeeds. */
	OK(fx, bb_qp_modify(qp, &attr, BB_QP_STATE | step->required));
}

ROW(run_unknown_bit)
{
	struct bb_qp *qp = make(fx, row->type);
	struct bb_qp_attr attr = attr_self(fx, qp);

	attr.state = BB_QP_INIT;
	REFUSED(fx,
		bb_qp_modify(qp, &attr, BB_QP_STATE | steps_of[BB_QPT_RC][0].required | 1u << 30),
		-EINVAL, "an undefined bit");
	check_state(fx, qp, BB_QP_RESET, "the refused");
}

/* ---- Values */

struct value {
	const char *name;
	enum bb_qp_state to;
	void (*set)(const struct fx *fx, struct bb_qp_attr *attr);
	const char *word;
};

#define SETTER(name_, code_)                                                                       \
	static void set_##name_(const struct fx *fx, struct bb_qp_attr *attr)                      \
	{                                                                                          \
		(void)fx;                                                                          \
		code_;                                                                             \
	}

SETTER(port_0, attr->path.port = 0)
SETTER(port_255, attr->path.port = 255)
SETTER(access, attr->access |= 1u << 18)
SETTER(mtu_0, attr->path_mtu = 0)
SETTER(mtu_1000, attr->path_mtu = 1000)
SETTER(mtu_8192, attr->path_mtu = 8192)
SETTER(dest_qpn, attr->dest_qpn = 1u << 24)
SETTER(rq_psn, attr->rq_psn = 1u << 24)
SETTER(sq_psn, attr->sq_psn = 1u << 24)
SETTER(rd, attr->max_rd_atomic = (uint8_t)(fx->a.attr.max_rd_atomic + 1))
SETTER(dest_rd, attr->max_dest_rd_atomic = (uint8_t)(fx->a.attr.max_dest_rd_atomic + 1))
SETTER(rnr_timer, attr->min_rnr_timer = 32)
SETTER(timeout, attr->timeout = 32)
SETTER(retry, attr->retry_cnt = 8)
SETTER(rnr_retry, attr->rnr_retry = 8)
SETTER(other_port, attr->path.port = 2)
SETTER(flow, attr->path.flow_label = 1u << 20)
SETTER(rate, attr->path.static_rate = 24)
SETTER(sl, attr->path.sl = 16)

static const struct value values[] = {
	{"port-0", BB_QP_INIT, set_port_0, "port"},
	{"port-255", BB_QP_INIT, set_port_255, "port"},
	{"unknown-access", BB_QP_INIT, set_access, "access"},
	{"mtu-0", BB_QP_RTR, set_mtu_0, "path_mtu"},
	{"mtu-1000", BB_QP_RTR, set_mtu_1000, "path_mtu"},
	{"mtu-8192", BB_QP_RTR, set_mtu_8192, "path_mtu"},
	{"dest_qpn-2^24", BB_QP_RTR, set_dest_qpn, "dest_qpn"},
	{"rq_psn-2^24", BB_QP_RTR, set_rq_psn, "rq_psn"},
	{"sq_psn-2^24", BB_QP_RTS, set_sq_psn, "sq_psn"},
	{"max_rd_atomic-over", BB_QP_RTS, set_rd, "max_rd_atomic"},
	{"max_dest_rd_atomic-over", BB_QP_RTR, set_dest_rd, "max_dest_rd_atomic"},
	{"min_rnr_timer-32", BB_QP_RTR, set_rnr_timer, "min_rnr_timer"},
	{"timeout-32", BB_QP_RTS, set_timeout, "timeout"},
	{"retry_cnt-8", BB_QP_RTS, set_retry, "retry_cnt"},
	{"rnr_retry-8", BB_QP_RTS, set_rnr_retry, "rnr_retry"},
	{"path-on-another-port", BB_QP_RTR, set_other_port, "port"},
	{"flow_label-2^20", BB_QP_RTR, set_flow, "flow_label"},
	{"static_rate-24", BB_QP_RTR, set_rate, "static_rate"},
	{"sl-16", BB_QP_RTR, set_sl, "sl"},
};

ROW(run_value)
{
	const struct value *v = row->arg;
	struct bb_qp *qp = make(fx, row->type);
	struct bb_qp_attr attr = attr_self(fx, qp), bad;
	enum bb_qp_state from = (enum bb_qp_state)(v->to - 1);

	go(fx, row->type, qp, &attr, from);
	bad = attr;
	bad.state = v->to;
	v->set(fx, &bad);
	REFUSED(fx, bb_qp_modify(qp, &bad, BB_QP_STATE | step_of(BB_QPT_RC, from, v->to)->required),
		-EINVAL, v->word);
	check_state(fx, qp, from, "the refused");
	attr.state = v->to;
	OK(fx, bb_qp_modify(qp, &attr, BB_QP_STATE | step_of(BB_QPT_RC, from, v->to)->required));
}

/* A query reads the device and returns the attributes that were set. */
ROW(run_query)
{
	struct bb_qp *qp = make(fx, row->type);
	struct bb_qp_attr attr = attr_self(fx, qp), got;

	attr.retry_cnt = 3;
	attr.rnr_retry = 5;
	attr.timeout = 17;
	attr.min_rnr_timer = 12;
	attr.sq_psn = 0xabcdef;
	attr.rq_psn = 0x123456;
	attr.path.static_rate = 3; /* 10 Gb/s, or the device's next lower rate */
	go(fx, row->type, qp, &attr, BB_QP_RTS);
	OK(fx, bb_qp_query(qp, &got));
	CHECK(fx, got.state == BB_QP_RTS, "state");
	CHECK(fx, got.path_mtu == attr.path_mtu && got.dest_qpn == attr.dest_qpn, "path");
	CHECK(fx, got.retry_cnt == 3 && got.rnr_retry == 5 && got.timeout == 17, "retries");
	CHECK(fx, got.path.static_rate <= 3 && (got.path.static_rate == 3 || !fx->a.attr.software),
	      "static_rate is %u, 3 was set", got.path.static_rate);
	CHECK(fx, got.min_rnr_timer == 12, "min_rnr_timer is %u, 12 was set", got.min_rnr_timer);
	CHECK(fx, got.access == attr.access, "access is 0x%x, 0x%x was set", got.access,
	      attr.access);
	CHECK(fx, got.sq_psn == 0xabcdef, "sq_psn is 0x%x, 0xabcdef was set", got.sq_psn);
}

/* Rights may change during traffic; the next request meets the new ones. */
ROW(run_change_access)
{
	struct pair_opts o = fx_opts(fx);
	struct bb_qp_attr attr;
	struct pair p;
	struct xfer x;

	o.b.access = BB_ACCESS_REMOTE_READ;
	p = fx_pair(fx, &o);
	attr = o.b;
	attr.state = BB_QP_RTS;
	attr.access = BB_ACCESS_REMOTE_READ | BB_ACCESS_REMOTE_WRITE;
	OK(fx, bb_qp_modify(p.b, &attr, BB_QP_STATE | BB_QP_ACCESS));
	check_alive(fx, p);
	attr.access = BB_ACCESS_REMOTE_READ;
	OK(fx, bb_qp_modify(p.b, &attr, BB_QP_STATE | BB_QP_ACCESS));
	xfer_init(&x, op_find("write"), p);
	xfer_prepare(fx, &x);
	xfer_expect_nothing(fx, &x);
	xfer_post(fx, &x);
	expect_wc(fx, fx->a.cq, p.a, x.wr_id, BB_WC_REM_INV_REQ_ERR, "a WRITE without the right");
	xfer_check_data(fx, &x);
	wait_refusal(fx, "a WRITE without the right");
}

void
rows_qp(struct rows *rows)
{
	static const enum bb_qp_state from[] = {BB_QP_RESET, BB_QP_INIT, BB_QP_RTR, BB_QP_RTS,
						BB_QP_ERR};
	struct row *row;
	char group[64];

	for (unsigned int t = BB_QPT_RC; t <= BB_QPT_UD; t++) {
		const char *type = t == BB_QPT_RC ? "rc" : t == BB_QPT_UC ? "uc" : "ud";

		snprintf(group, sizeof(group), "qp/%s/transitions", type);
		for (unsigned int i = 0; i < RTE_DIM(from); i++) {
			for (unsigned int k = BB_QP_RESET; k <= BB_QP_ERR; k++) {
				row = row_add(rows, MAN, run_transition, group, "%s-to-%s",
					      bb_qp_state_name(from[i]), bb_qp_state_name(k));
				row->type = t;
				row->n = from[i];
				row->flags = k;
			}
		}
		snprintf(group, sizeof(group), "qp/%s/attribute-masks", type);
		for (unsigned int i = 0; i < STEPS; i++) {
			const struct step *step = &steps_of[t][i];

			for (unsigned int k = 1; k < RTE_DIM(bit_name); k++) {
				row = row_add(rows, MAN, run_mask, group, "%s-to-%s/%s%s",
					      bb_qp_state_name(step->from),
					      bb_qp_state_name(step->to),
					      (step->required >> k & 1) != 0 ? "without-" : "with-",
					      bit_name[k]);
				row->type = t;
				row->arg = step;
				row->n = k;
			}
		}
	}
	row_add(rows, MAN, run_unknown_bit, "qp/rc/attribute-masks", "undefined-bit");
	for (unsigned int i = 0; i < RTE_DIM(values); i++)
		row_add(rows, MAN, run_value, "qp/rc/values", "%s", values[i].name)->arg =
			&values[i];
	row_add(rows, "ibv_query_qp(3)", run_query, "qp/rc/query", "as-set");
	row_add(rows, MAN, run_change_access, "qp/rc/change-rights-in-RTS", "write");
}
