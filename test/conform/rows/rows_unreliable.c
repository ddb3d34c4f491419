/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Unreliable queue pairs: silent losses (UC); datagrams with address handles, Q_Keys and 40 bytes
 * of GRH (UD); and operations that these types lack.
 */
#include "conform.h"

#define MAN    "ibv_post_send(3)"
#define MAN_AH "ibv_create_ah(3)"
#define GRH    40u
#define QKEY   0x1234567u

/* ---- UC: a fault at the sender is an error, a fault at the target is a silent loss */

enum fault {
	NO_RECEIVE,
	RKEY_UNKNOWN,
	RKEY_NO_RIGHT,
	QP_NO_RIGHT,
	TARGET_RESET,
	LKEY_UNKNOWN,
};

static const char *const fault_name[] = {
	"no-receive",  "rkey-unknown",    "rkey-no-right",
	"qp-no-right", "target-in-reset", "lkey-unknown",
};

static bool
applies(const struct op *op, enum fault fault)
{
	if ((op->types & 1u << BB_QPT_UC) == 0)
		return false;
	if (fault == NO_RECEIVE)
		return op->takes_recv;
	return fault >= TARGET_RESET || op->has_raddr;
}

ROW(run_uc)
{
	struct op op = *row->op;
	struct bb_qp_attr attr;
	struct pair_opts o = fx_opts(fx);
	struct xfer x;

	o.init.type = BB_QPT_UC;
	if (row->n == QP_NO_RIGHT)
		o.b.access = 0;
	if (row->n == NO_RECEIVE)
		op.takes_recv = false;
	xfer_init(&x, &op, fx_pair(fx, &o));
	xfer_prepare(fx, &x);
	xfer_expect_nothing(fx, &x);
	if (row->n == RKEY_UNKNOWN)
		x.t.rkey ^= 0x55;
	else if (row->n == RKEY_NO_RIGHT)
		x.t.rkey = fx_mr(fx, fx->b.pd, fx->b.mem, ARENA, BB_ACCESS_REMOTE_READ)->rkey;
	else if (row->n == LKEY_UNKNOWN)
		x.sge[0].lkey ^= 0x55;
	if (row->n == TARGET_RESET) {
		bb_qp_attr_init(&attr);
		attr.state = BB_QP_RESET;
		OK(fx, bb_qp_modify(x.p.b, &attr, BB_QP_STATE));
	}
	/* Without data nothing is written before the missing receive is found. */
	if (row->n == NO_RECEIVE && op.has_raddr)
		x.sge[0].len = 0;
	xfer_post(fx, &x);
	expect_wc(fx, fx->a.cq, x.p.a, x.wr_id,
		  row->n == LKEY_UNKNOWN ? BB_WC_LOC_PROT_ERR : BB_WC_SUCCESS, op.name);
	check_quiet(fx, fx->b.cq, "at the target");
	xfer_check_data(fx, &x);
	check_state(fx, x.p.a, row->n == LKEY_UNKNOWN ? BB_QP_ERR : BB_QP_RTS, "the requester's");
	check_state(fx, x.p.b, row->n == TARGET_RESET ? BB_QP_RESET : BB_QP_RTS, "the target's");
}

/* ---- UD */

struct ud {
	struct bb_qp *a, *b;
	struct bb_ah *ah; /* A's handle for B */
	uint32_t qpn;     /* B's */
};

static void
undo_ah(void *ah)
{
	(void)bb_ah_destroy(ah);
}

static void
path_to(struct fx *fx, struct bb_qp *qp, struct bb_path *path)
{
	struct bb_qp_addr addr;

	OK(fx, bb_qp_addr(qp, 1, fx->b.gid, &addr));
	memset(path, 0, sizeof(*path));
	memcpy(path->dgid, addr.gid, sizeof(path->dgid));
	path->dlid = addr.lid;
	path->is_global = fx->a.port.grh_required || fx->b.port.grh_required;
	path->port = 1;
	path->sgid_index = fx->a.gid;
}

static struct bb_qp *
ud_qp(struct fx *fx, struct side *s)
{
	struct bb_qp_init_attr init = DEFAULTS(qp_init_attr);
	struct bb_qp *qp;

	init.type = BB_QPT_UD;
	init.send_cq = init.recv_cq = s->cq;
	init.sq_depth = init.rq_depth = 16;
	init.max_sge = 3;
	init.max_recv_sge = 3;
	init.max_inline = 64;
	qp = fx_qp(fx, s->pd, &init);
	OK(fx, bb_qp_ud_up(qp, 1, 0, QKEY, 77));
	return qp;
}

/* Moves the QP back to RTR. */
static void
ud_reset(struct fx *fx, struct bb_qp *qp, struct bb_qp_attr *attr)
{
	attr->state = BB_QP_RESET;
	OK(fx, bb_qp_modify(qp, attr, BB_QP_STATE));
	attr->state = BB_QP_INIT;
	OK(fx, bb_qp_modify(qp, attr, BB_QP_STATE | BB_QP_PKEY_INDEX | BB_QP_PORT | BB_QP_QKEY));
	attr->state = BB_QP_RTR;
	OK(fx, bb_qp_modify(qp, attr, BB_QP_STATE));
}

static void
ud_make(struct fx *fx, struct ud *u)
{
	struct bb_path path;

	u->a = ud_qp(fx, &fx->a);
	u->b = ud_qp(fx, &fx->b);
	u->qpn = u->b->qpn;
	path_to(fx, u->b, &path);
	OK(fx, bb_ah_create(fx->a.pd, &path, &u->ah));
	fx_defer(fx, undo_ah, u->ah);
}

/* Posts a receive of @len bytes after the GRH, with guard bytes around it. */
static void
ud_receive(struct fx *fx, struct ud *u, uint32_t len, uint32_t pieces)
{
	struct bb_sge sge[3];

	/* The GRH with a few bytes of data, then the rest. */
	sge[0] = sge_of(&fx->b, GUARD, pieces > 1 ? GRH - 7 : GRH + len);
	sge[1] = sge_of(&fx->b, GUARD + GRH - 7, pieces > 1 ? 7 + len : 0);
	for (uint32_t i = pieces; i < RTE_DIM(sge); i++)
		sge[i].len = 0;
	memset(fx->b.mem, 0xc3, GUARD + GRH + 8192);
	CHECK(fx, bb_post_recv(u->b, 61, sge, pieces > 1 ? 2 : 1) == 0, "the receive is not taken");
	bb_qp_ring_recv(u->b);
}

struct dgram {
	const char *name;
	bool imm, inl, solicited, list;
	uint32_t pieces;
};

static const struct dgram dgrams[] = {
	{"send", false, false, false, false, 1},
	{"send_imm", true, false, false, false, 1},
	{"send-inline", false, true, false, false, 1},
	{"send_imm-inline", true, true, false, false, 1},
	{"send-solicited", false, false, true, false, 1},
	{"send-pieces", false, false, false, false, 3},
	{"send-list", false, false, false, true, 2},
	{"send_imm-list-inline", true, true, false, true, 2},
};

static int
ud_post(struct fx *fx, const struct ud *u, const struct dgram *d, uint32_t len, uint32_t qkey,
	uint32_t imm)
{
	uint32_t flags = BB_SEND_SIGNALED | (d->solicited ? BB_SEND_SOLICITED : 0), i;
	struct bb_send_wr wr = {.wr_id = 5};
	struct bb_sge sge[3];
	int err = 0;

	for (i = 0; i < d->pieces; i++) {
		uint32_t from = len * i / d->pieces, to = len * (i + 1) / d->pieces;

		sge[i] = sge_of(&fx->a, GUARD + from, to - from);
	}
	if (d->list) {
		wr.opcode = d->imm ? BB_WR_SEND_WITH_IMM : BB_WR_SEND;
		wr.flags = flags | (d->inl ? BB_SEND_INLINE : 0);
		wr.sge = sge;
		wr.nsge = d->pieces;
		wr.imm_or_inv = d->imm ? imm : 0;
		wr.ud.ah = u->ah;
		wr.ud.qpn = u->qpn;
		wr.ud.qkey = qkey;
		return bb_qp_post_list(u->a, &wr, 1, &err) == 1 ? 0 : err;
	}
	if (d->inl && d->imm)
		return bb_post_send_ud_imm_inline(u->a, 5, fx->a.mem + GUARD, len, u->ah, u->qpn,
						  qkey, imm, flags);
	if (d->inl)
		return bb_post_send_ud_inline(u->a, 5, fx->a.mem + GUARD, len, u->ah, u->qpn, qkey,
					      flags);
	if (d->imm)
		return bb_post_send_ud_imm(u->a, 5, sge, d->pieces, u->ah, u->qpn, qkey, imm,
					   flags);
	return bb_post_send_ud(u->a, 5, sge, d->pieces, u->ah, u->qpn, qkey, flags);
}

static void
check_dgram(struct fx *fx, const struct ud *u, const struct dgram *d, uint32_t len, uint32_t imm)
{
	const bool solicited = d->solicited && fx->b.attr.wc_solicited;
	uint8_t flags =
		(uint8_t)((d->imm ? BB_WC_WITH_IMM : 0) | (solicited ? BB_WC_SOLICITED : 0));
	struct bb_wc wc = expect_wc(fx, fx->b.cq, u->b, 61, BB_WC_SUCCESS, "the datagram");

	CHECK(fx, wc.opcode == BB_WC_RECV, "opcode %u", wc.opcode);
	CHECK(fx, wc.byte_len == len + GRH, "byte_len %u, expected %u", wc.byte_len, len + GRH);
	CHECK(fx, (wc.flags & ~BB_WC_GRH) == flags, "flags 0x%x, expected 0x%x", wc.flags, flags);
	if (d->imm)
		CHECK(fx, wc.imm == imm, "immediate 0x%x, expected 0x%x", wc.imm, imm);
	CHECK(fx, wc.src_qp == u->a->qpn, "src_qp 0x%x, expected 0x%x", wc.src_qp, u->a->qpn);
	if (fx->a.port.link_layer == BB_LINK_ETHERNET)
		CHECK(fx, (wc.flags & BB_WC_GRH) != 0, "RoCE without a GRH");
	CHECK(fx, memcmp(fx->b.mem + GUARD + GRH, fx->a.mem + GUARD, len) == 0,
	      "the datagram brought other bytes");
	for (uint32_t i = 0; i < 64; i++)
		CHECK(fx,
		      fx->b.mem[GUARD + GRH + len + i] == 0xc3 && fx->b.mem[GUARD - 1 - i] == 0xc3,
		      "bytes around the receive have changed");
}

static void
check_sent(struct fx *fx, const struct ud *u, enum bb_wc_status status)
{
	bb_qp_ring(u->a);
	expect_wc(fx, fx->a.cq, u->a, 5, status, "the SEND");
	check_quiet(fx, fx->a.cq, "the SEND");
}

static uint32_t
dgram_len(const struct fx *fx, uint32_t n)
{
	const uint32_t len[] = {0, 1, 33, fx->mtu - 1, fx->mtu};

	return len[n];
}

ROW(run_dgram)
{
	const struct dgram *d = row->arg;
	uint32_t len = dgram_len(fx, row->n);
	struct ud u;

	ud_make(fx, &u);
	pattern(fx->a.mem + GUARD, len, fx->seed++);
	ud_receive(fx, &u, len, row->flags);
	CHECK(fx, ud_post(fx, &u, d, len, QKEY, 0x01020304) == 0, "the SEND is not taken");
	check_sent(fx, &u, BB_WC_SUCCESS);
	check_dgram(fx, &u, d, len, 0x01020304);
	check_quiet(fx, fx->b.cq, "the datagram");
}

enum lost {
	LOST_QKEY,
	LOST_NO_RECEIVE,
	LOST_NO_QP,
	LOST_OWN_QKEY, /* not lost: the top bit selects the QP's own Q_Key */
};

ROW(run_lost)
{
	struct ud u, to;

	ud_make(fx, &u);
	to = u;
	pattern(fx->a.mem + GUARD, 33, fx->seed++);
	if (row->n != LOST_NO_RECEIVE)
		ud_receive(fx, &u, 33, 1);
	if (row->n == LOST_NO_QP)
		to.qpn ^= 0x800000;
	if (row->n == LOST_OWN_QKEY) {
		CHECK(fx, ud_post(fx, &u, &dgrams[0], 33, 0x80000000, 0) == 0,
		      "the SEND is not taken");
		check_sent(fx, &u, BB_WC_SUCCESS);
		check_dgram(fx, &u, &dgrams[0], 33, 0);
		return;
	}
	CHECK(fx,
	      ud_post(fx, row->n == LOST_NO_QP ? &to : &u, &dgrams[0], 33,
		      row->n == LOST_QKEY ? QKEY + 1 : QKEY, 0) == 0,
	      "the SEND is not taken");
	check_sent(fx, &u, BB_WC_SUCCESS);
	fx_progress(fx);
	check_quiet(fx, fx->b.cq, "a lost datagram");
	check_state(fx, u.a, BB_QP_RTS, "the sender's");
	check_state(fx, u.b, BB_QP_RTS, "the receiver's");
	/* The receive waits for the next message. */
	if (row->n == LOST_NO_RECEIVE)
		ud_receive(fx, &u, 33, 1);
	CHECK(fx, ud_post(fx, &u, &dgrams[0], 33, QKEY, 0) == 0, "the SEND is not taken");
	check_sent(fx, &u, BB_WC_SUCCESS);
	check_dgram(fx, &u, &dgrams[0], 33, 0);
}

/*
 * B's Q_Key changes, on the way to RTS or in it: messages with the old one are lost, those with
 * the new one arrive.
 */
ROW(run_change_qkey)
{
	uint32_t mask = BB_QP_STATE | BB_QP_QKEY;
	struct bb_qp_attr attr = DEFAULTS(qp_attr);
	struct ud u;

	ud_make(fx, &u);
	attr.qkey = QKEY;
	attr.sq_psn = 77;
	if (row->n != 0) {
		ud_reset(fx, u.b, &attr);
		mask |= BB_QP_SQ_PSN;
	}
	attr.qkey = QKEY + 1;
	attr.state = BB_QP_RTS;
	OK(fx, bb_qp_modify(u.b, &attr, mask));
	pattern(fx->a.mem + GUARD, 33, fx->seed++);
	ud_receive(fx, &u, 33, 1);
	/* The immediates distinguish the messages. */
	CHECK(fx, ud_post(fx, &u, &dgrams[1], 33, QKEY, 1) == 0, "the SEND is not taken");
	check_sent(fx, &u, BB_WC_SUCCESS);
	fx_progress(fx);
	check_quiet(fx, fx->b.cq, "a datagram with the old Q_Key");
	CHECK(fx, ud_post(fx, &u, &dgrams[1], 33, QKEY + 1, 2) == 0, "the SEND is not taken");
	check_sent(fx, &u, BB_WC_SUCCESS);
	check_dgram(fx, &u, &dgrams[1], 33, 2);
	check_state(fx, u.b, BB_QP_RTS, "the receiver's");
}

ROW(run_too_long)
{
	struct ud u;

	ud_make(fx, &u);
	ud_receive(fx, &u, fx->mtu + 1, 1);
	CHECK(fx, ud_post(fx, &u, &dgrams[0], fx->mtu + 1, QKEY, 0) == 0, "the SEND is not taken");
	check_sent(fx, &u, BB_WC_LOC_LEN_ERR);
	check_state(fx, u.a, BB_QP_ERR, "the sender's");
	check_quiet(fx, fx->b.cq, "a datagram over the MTU");
}

/* The address was copied: the handle may be destroyed before the doorbell. */
ROW(run_ah_gone)
{
	struct ud u;

	ud_make(fx, &u);
	pattern(fx->a.mem + GUARD, 33, fx->seed++);
	ud_receive(fx, &u, 33, 1);
	CHECK(fx, ud_post(fx, &u, &dgrams[0], 33, QKEY, 0) == 0, "the SEND is not taken");
	fx_forget(fx, u.ah);
	OK(fx, bb_ah_destroy(u.ah));
	check_sent(fx, &u, BB_WC_SUCCESS);
	check_dgram(fx, &u, &dgrams[0], 33, 0);
}

ROW(run_ah_refused)
{
	static const char *const word[] = {"port", "sgid_index", "flow_label", "sl", "dgid"};
	struct bb_ah *ah = NULL;
	struct bb_path path;
	struct ud u;

	ud_make(fx, &u);
	path_to(fx, u.b, &path);
	/* With a GRH on InfiniBand too, as its fields would be ignored otherwise. */
	path.is_global = 1;
	if (row->n == 0)
		path.port = 9;
	else if (row->n == 1)
		path.sgid_index = 200;
	else if (row->n == 2)
		path.flow_label = 1u << 20;
	else if (row->n == 3)
		path.sl = 16;
	else
		memset(path.dgid, 0, sizeof(path.dgid));
	REFUSED(fx, bb_ah_create(fx->a.pd, &path, &ah), -EINVAL, word[row->n]);
	CHECK(fx, ah == NULL, "a refused bb_ah_create() wrote its out-pointer");
}

ROW(run_ah_list)
{
	struct bb_send_wr wr = {.opcode = BB_WR_SEND};
	struct bb_path path;
	struct bb_ah *ah;
	struct ud u;
	int err = 0;

	ud_make(fx, &u);
	if (row->n != 0) {
		path_to(fx, u.b, &path);
		OK(fx, bb_ah_create(fx_pd(fx, &fx->a), &path, &ah));
		fx_defer(fx, undo_ah, ah);
		wr.ud.ah = ah;
	}
	log_clear();
	CHECK(fx, bb_qp_post_list(u.a, &wr, 1, &err) == 0 && err == -EINVAL, "error %d", err);
	CHECK(fx, log_lines() == 1 && log_having("address handle") == 1,
	      "the log does not say once that it is the address handle");
}

/* ---- Operations that the type lacks */

ROW(run_illegal)
{
	struct bb_sge sge = sge_of(&fx->a, GUARD, 8);
	struct bb_send_wr wr = {.opcode = row->op->wr, .sge = &sge, .nsge = 1};
	struct target t = {addr_of(&fx->b, GUARD), fx->b.mr->rkey, 0, 0, 0};
	struct bb_qp_stats before, after;
	struct pair_opts o;
	struct bb_qp *qp;
	struct ud u;
	int err = 0;

	if (row->type == BB_QPT_UD) {
		ud_make(fx, &u);
		qp = u.a;
	} else {
		o = fx_opts(fx);
		o.init.type = BB_QPT_UC;
		qp = fx_pair(fx, &o).a;
	}
	OK(fx, bb_qp_stats(qp, &before));
	if (row->n == 0) {
		REFUSED(fx, op_post(row->op, qp, 1, &sge, 1, &t, 0), -EINVAL,
			bb_qp_type_name(row->type));
	} else {
		log_clear();
		CHECK(fx, bb_qp_post_list(qp, &wr, 1, &err) == 0 && err == -EINVAL, "error %d",
		      err);
		CHECK(fx, log_lines() == 1, "%u lines were logged, expected 1", log_lines());
	}
	OK(fx, bb_qp_stats(qp, &after));
	CHECK(fx, before.posted == after.posted, "it is counted as posted");
	settle(fx, qp, fx->a.cq);
}

static void
add_illegal(struct rows *rows, enum bb_qp_type type, const char *group)
{
	struct row *row;

	for (unsigned int i = 0; i < n_ops; i++) {
		/* The function of a SEND without address cannot detect this. */
		if ((type == BB_QPT_UC && (ops[i].types & 1u << type) != 0) ||
		    (type == BB_QPT_UD && ops[i].recv_data))
			continue;
		for (unsigned int k = 0; k < 2; k++) {
			row = row_add(rows, MAN, run_illegal, group, "%s/%s", ops[i].name,
				      k == 0 ? "call" : "list");
			row->op = &ops[i];
			row->type = type;
			row->n = k;
		}
	}
}

void
rows_unreliable(struct rows *rows)
{
	static const char *const lost[] = {"other-qkey", "no-receive", "no-such-qp", "own-qkey"};
	static const char *const ah[] = {"port", "sgid_index", "flow_label", "sl", "dgid"};
	struct row *row;

	for (unsigned int k = 0; k < RTE_DIM(fault_name); k++) {
		for (unsigned int i = 0; i < n_ops; i++) {
			if (!applies(&ops[i], k))
				continue;
			/* After a send error IBTA vol. 1, 10.3.1 has SQE; here it is ERR. */
			row = row_add(
				rows, k == LKEY_UNKNOWN ? ASSUMED : "IBTA vol. 1, 9.8.2", run_uc,
				k == LKEY_UNKNOWN ? "unreliable/uc/error" : "unreliable/uc/lost",
				"%s/%s", fault_name[k], ops[i].name);
			row->op = &ops[i];
			row->n = k;
		}
	}
	add_illegal(rows, BB_QPT_UC, "unreliable/uc/illegal-operation");
	for (unsigned int i = 0; i < RTE_DIM(dgrams); i++) {
		for (unsigned int k = 0; k < 5; k++) {
			if (dgrams[i].inl && k > 2)
				continue;
			row = row_add(rows, MAN, run_dgram, "unreliable/ud/datagrams", "%s/%s",
				      dgrams[i].name,
				      k == 0   ? "0"
				      : k == 1 ? "1"
				      : k == 2 ? "33"
				      : k == 3 ? "mtu-1"
					       : "mtu");
			row->arg = &dgrams[i];
			row->n = k;
			row->flags = 1 + i % 2;
		}
	}
	for (unsigned int i = 0; i < RTE_DIM(lost); i++)
		row_add(rows, "IBTA vol. 1, 9.8.3", run_lost, "unreliable/ud/lost", "%s", lost[i])
			->n = i;
	row_add(rows, "ibv_modify_qp(3)", run_change_qkey, "unreliable/ud/change-qkey", "in-RTS");
	row_add(rows, "ibv_modify_qp(3)", run_change_qkey, "unreliable/ud/change-qkey",
		"RTR-to-RTS")
		->n = 1;
	row_add(rows, ASSUMED, run_too_long, "unreliable/ud/error", "over-mtu");
	row_add(rows, MAN_AH, run_ah_gone, "unreliable/ud/address-handle",
		"destroyed-behind-the-post");
	for (unsigned int i = 0; i < RTE_DIM(ah); i++)
		row_add(rows, MAN_AH, run_ah_refused, "unreliable/ud/address-handle-refused", "%s",
			ah[i])
			->n = i;
	row_add(rows, MAN, run_ah_list, "unreliable/ud/address-handle-refused", "none")->n = 0;
	row_add(rows, MAN, run_ah_list, "unreliable/ud/address-handle-refused", "of-another-pd")
		->n = 1;
	add_illegal(rows, BB_QPT_UD, "unreliable/ud/illegal-operation");
}
