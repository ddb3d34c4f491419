/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Multicast groups: who gets a copy of a datagram, who does not, and what an attach refuses. */
#include <unistd.h>

#include "conform.h"

#define MAN     "ibv_attach_mcast(3)"
#define GRH     40u
#define QKEY    0x7654321u
#define MLID    0xc012u
#define SLOT    (GUARD + 8192u) /* bytes of a member's buffer, with its guard */
#define MEMBERS 3u

/* A group, A as the sender, and QPs of both sides as members. */
struct cast {
	uint8_t gid[16];
	uint16_t lid;
	struct bb_qp *a;
	struct bb_qp *qp[MEMBERS];
	struct bb_ah *ah;
};

struct attached {
	struct bb_qp *qp;
	uint8_t gid[16];
	uint16_t lid;
};

static void
undo_ah(void *ah)
{
	(void)bb_ah_destroy(ah);
}

static void
undo_attach(void *arg)
{
	struct attached *at = arg;

	(void)bb_qp_mcast_detach(at->qp, at->gid, at->lid);
	free(at);
}

/* Returns a GID of a group that fits the sender's GID. Groups differ in @n. */
static void
group_gid(struct fx *fx, uint8_t n, uint8_t gid[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	struct bb_gid own;

	OK(fx, bb_gid_query(fx->a.dev, 1, fx->a.gid, &own));
	memset(gid, 0, 16);
	if (memcmp(own.raw, mapped, sizeof(mapped)) == 0) {
		memcpy(gid, mapped, sizeof(mapped));
		gid[12] = 239;
		gid[13] = 200; /* above 127: the MAC of the group has only the low 7 bits */
	} else {
		gid[0] = 0xff;
		gid[1] = 0x1e;
		gid[12] = 0xbb;
	}
	gid[14] = (uint8_t)getpid();
	gid[15] = n;
}

static struct bb_qp *
ud_qp(struct fx *fx, struct side *s, uint32_t qkey)
{
	struct bb_qp_init_attr init = DEFAULTS(qp_init_attr);
	struct bb_qp *qp;

	init.type = BB_QPT_UD;
	init.send_cq = init.recv_cq = s->cq;
	init.sq_depth = init.rq_depth = 16;
	qp = fx_qp(fx, s->pd, &init);
	OK(fx, bb_qp_ud_up(qp, 1, 0, qkey, 5));
	return qp;
}

/* Attaches a QP for this row. */
static void
join(struct fx *fx, struct bb_qp *qp, const struct cast *c)
{
	struct attached *at = malloc(sizeof(*at));

	CHECK(fx, at != NULL, "out of memory");
	at->qp = qp;
	memcpy(at->gid, c->gid, sizeof(at->gid));
	at->lid = c->lid;
	fx_defer(fx, undo_attach, at);
	OK(fx, bb_qp_mcast_attach(qp, c->gid, c->lid));
}

/* Makes the sender, members on B, and the handle of the group. */
static void
cast_make(struct fx *fx, struct cast *c, unsigned int members)
{
	struct bb_path path = {0};

	memset(c, 0, sizeof(*c));
	group_gid(fx, 1, c->gid);
	c->lid = MLID;
	c->a = ud_qp(fx, &fx->a, QKEY);
	for (unsigned int i = 0; i < members; i++) {
		c->qp[i] = ud_qp(fx, &fx->b, QKEY);
		join(fx, c->qp[i], c);
	}
	memcpy(path.dgid, c->gid, sizeof(path.dgid));
	path.dlid = c->lid;
	path.is_global = 1;
	path.port = 1;
	path.sgid_index = fx->a.gid;
	OK(fx, bb_ah_create(fx->a.pd, &path, &c->ah));
	fx_defer(fx, undo_ah, c->ah);
}

/* Posts a receive of @qp in its own slot of memory of @s. */
static void
receive(struct fx *fx, struct side *s, struct bb_qp *qp, unsigned int slot, uint32_t len)
{
	uint32_t at = (1 + slot) * SLOT;
	struct bb_sge sge = sge_of(s, at, GRH + len);

	memset(s->mem + at - 64, 0xc3, GRH + len + 128);
	CHECK(fx, bb_post_recv(qp, 60 + slot, &sge, 1) == 0, "the receive is not taken");
	bb_qp_ring_recv(qp);
}

static void
send(struct fx *fx, const struct cast *c, uint32_t len, uint32_t imm)
{
	struct bb_sge sge = sge_of(&fx->a, 64, len);
	struct bb_wc wc;

	pattern(fx->a.mem + 64, len, fx->seed++);
	CHECK(fx,
	      bb_post_send_ud_imm(c->a, 5, &sge, 1, c->ah, BB_MCAST_QPN, QKEY, imm,
				  BB_SEND_SIGNALED) == 0,
	      "the SEND is not taken");
	bb_qp_ring(c->a);
	do
		wait_wc(fx, fx->a.cq, &wc, 1, "the SEND");
	while (wc.qp != c->a && wc.opcode == BB_WC_RECV);
	check_wc(fx, &wc, c->a, 5, BB_WC_SUCCESS, "the SEND");
}

/* Checks one copy: its completion and its bytes. */
static void
check_copy(struct fx *fx, const struct cast *c, const struct bb_wc *wc, const struct side *s,
	   const struct bb_qp *qp, unsigned int slot, uint32_t len, uint32_t imm)
{
	const uint8_t *at = s->mem + (1 + slot) * SLOT;

	check_wc(fx, wc, qp, 60 + slot, BB_WC_SUCCESS, "a copy");
	CHECK(fx, wc->opcode == BB_WC_RECV && wc->byte_len == GRH + len,
	      "opcode %u, byte_len %u, expected %u", wc->opcode, wc->byte_len, GRH + len);
	CHECK(fx, (wc->flags & BB_WC_GRH) != 0, "a datagram to a group without a GRH");
	CHECK(fx, (wc->flags & BB_WC_WITH_IMM) != 0 && wc->imm == imm, "immediate 0x%x", wc->imm);
	CHECK(fx, wc->src_qp == c->a->qpn, "src_qp 0x%x, expected 0x%x", wc->src_qp, c->a->qpn);
	CHECK(fx, memcmp(at + GRH, fx->a.mem + 64, len) == 0, "a copy has other bytes");
	/* The destination is the last field of both headers: 16 bytes, or 4 of IPv4. */
	CHECK(fx, memcmp(at + GRH - 4, c->gid + 12, 4) == 0, "the GRH does not name the group");
	for (uint32_t i = 0; i < 64; i++)
		CHECK(fx, at[GRH + len + i] == 0xc3 && at[-1 - (int)i] == 0xc3,
		      "bytes around the receive have changed");
}

/* Waits for exactly one copy at each of @n members of B, in any order. */
static void
check_copies(struct fx *fx, const struct cast *c, unsigned int n, uint32_t len, uint32_t imm)
{
	struct bb_wc wc[MEMBERS];
	unsigned int i, k, seen = 0;

	wait_wc(fx, fx->b.cq, wc, n, "the copies");
	for (i = 0; i < n; i++) {
		for (k = 0; k < n && wc[i].qp != c->qp[k]; k++)
			;
		CHECK(fx, k < n && (seen & 1u << k) == 0, "a copy for the wrong QP");
		seen |= 1u << k;
		check_copy(fx, c, &wc[i], &fx->b, c->qp[k], k, len, imm);
	}
	fx_progress(fx);
	check_quiet(fx, fx->b.cq, "the copies");
}

static void
run_copies(struct fx *fx, const struct row *row)
{
	const uint32_t len = row->size == UINT32_MAX ? fx->mtu : row->size;
	struct cast c;

	cast_make(fx, &c, row->n);
	for (unsigned int i = 0; i < row->n; i++)
		receive(fx, &fx->b, c.qp[i], i, len);
	send(fx, &c, len, 0x01020304);
	check_copies(fx, &c, row->n, len, 0x01020304);
}

/* Without a member, or a member of another group only, the datagram is dropped silently. */
static void
run_no_member(struct fx *fx, const struct row *row)
{
	struct cast c, other;

	cast_make(fx, &c, 0);
	c.qp[0] = ud_qp(fx, &fx->b, QKEY);
	if (row->n != 0) {
		other = c;
		group_gid(fx, 2, other.gid);
		join(fx, c.qp[0], &other);
	}
	receive(fx, &fx->b, c.qp[0], 0, 33);
	send(fx, &c, 33, 1);
	fx_progress(fx);
	check_quiet(fx, fx->b.cq, "a datagram to a group without a member");
	check_state(fx, c.a, BB_QP_RTS, "the sender's");
	check_state(fx, c.qp[0], BB_QP_RTS, "the receiver's");
	join(fx, c.qp[0], &c);
	send(fx, &c, 33, 2);
	check_copies(fx, &c, 1, 33, 2);
}

/* A detached QP gets no copy; the others do. */
static void
run_detach(struct fx *fx, const struct row *row)
{
	struct cast c;
	struct bb_qp *gone;

	(void)row;
	cast_make(fx, &c, 3);
	OK(fx, bb_qp_mcast_detach(c.qp[1], c.gid, c.lid));
	receive(fx, &fx->b, c.qp[1], 1, 33);
	gone = c.qp[1];
	c.qp[1] = c.qp[2];
	receive(fx, &fx->b, c.qp[0], 0, 33);
	receive(fx, &fx->b, c.qp[1], 1, 33);
	send(fx, &c, 33, 3);
	check_copies(fx, &c, 2, 33, 3);
	OK(fx, bb_qp_mcast_attach(gone, c.gid, c.lid));
	OK(fx, bb_qp_mcast_detach(gone, c.gid, c.lid));
}

/* The sending QP and another one of its side are members, too. */
static void
run_own(struct fx *fx, const struct row *row)
{
	struct bb_wc wc[3];
	struct bb_qp *more;
	unsigned int i, sent = 0, own = 0;
	struct bb_sge sge;
	struct cast c;

	(void)row;
	cast_make(fx, &c, 0);
	more = ud_qp(fx, &fx->a, QKEY);
	join(fx, c.a, &c);
	join(fx, more, &c);
	receive(fx, &fx->a, c.a, 0, 33);
	receive(fx, &fx->a, more, 1, 33);
	sge = sge_of(&fx->a, 64, 33);
	pattern(fx->a.mem + 64, 33, fx->seed++);
	CHECK(fx,
	      bb_post_send_ud_imm(c.a, 5, &sge, 1, c.ah, BB_MCAST_QPN, QKEY, 9, BB_SEND_SIGNALED) ==
		      0,
	      "the SEND is not taken");
	bb_qp_ring(c.a);
	wait_wc(fx, fx->a.cq, wc, 3, "the SEND and two copies");
	for (i = 0; i < 3; i++) {
		if (wc[i].opcode != BB_WC_RECV)
			sent++;
		else if (wc[i].qp == c.a)
			check_copy(fx, &c, &wc[i], &fx->a, c.a, 0, 33, 9), own++;
		else
			check_copy(fx, &c, &wc[i], &fx->a, more, 1, 33, 9);
	}
	CHECK(fx, sent == 1 && own == 1, "%u sends and %u own copies, expected 1 and 1", sent, own);
	check_quiet(fx, fx->a.cq, "the copies");
}

enum poor {
	POOR_NO_RECEIVE,
	POOR_QKEY,
	POOR_SHORT,
	POOR_RESET,
};
static const char *const poor_name[] = {"no-receive", "other-qkey", "short-receive", "in-reset"};

/* A member that cannot take its copy does not keep the copies from other members. */
static void
run_poor(struct fx *fx, const struct row *row)
{
	struct bb_qp_attr attr;
	struct cast c;
	struct bb_qp *poor;

	cast_make(fx, &c, 1);
	poor = ud_qp(fx, &fx->b, row->n == POOR_QKEY ? QKEY + 1 : QKEY);
	join(fx, poor, &c);
	c.qp[1] = ud_qp(fx, &fx->b, QKEY);
	join(fx, c.qp[1], &c);
	if (row->n == POOR_RESET) {
		bb_qp_attr_init(&attr);
		attr.state = BB_QP_RESET;
		OK(fx, bb_qp_modify(poor, &attr, BB_QP_STATE));
	} else if (row->n != POOR_NO_RECEIVE) {
		receive(fx, &fx->b, poor, 2, row->n == POOR_SHORT ? 32 : 33);
	}
	receive(fx, &fx->b, c.qp[0], 0, 33);
	receive(fx, &fx->b, c.qp[1], 1, 33);
	send(fx, &c, 33, 4);
	check_copies(fx, &c, 2, 33, 4);
	check_state(fx, poor, row->n == POOR_RESET ? BB_QP_RESET : BB_QP_RTS, "the member's");
	if (row->n != POOR_RESET)
		return;
	/* A reset does not detach. */
	OK(fx, bb_qp_ud_up(poor, 1, 0, QKEY, 5));
	c.qp[2] = poor;
	receive(fx, &fx->b, c.qp[0], 0, 33);
	receive(fx, &fx->b, c.qp[1], 1, 33);
	receive(fx, &fx->b, poor, 2, 33);
	send(fx, &c, 33, 5);
	check_copies(fx, &c, 3, 33, 5);
}

/* "Attached multiple times, the QP will still receive a single copy" (man page). */
static void
run_twice(struct fx *fx, const struct row *row)
{
	struct cast c;

	cast_make(fx, &c, 1);
	OK(fx, bb_qp_mcast_attach(c.qp[0], c.gid, c.lid));
	if (row->n == 0) {
		OK(fx, bb_qp_mcast_detach(c.qp[0], c.gid, c.lid));
		REFUSED(fx, bb_qp_mcast_detach(c.qp[0], c.gid, c.lid), -EINVAL, "not attached");
		return;
	}
	receive(fx, &fx->b, c.qp[0], 0, 33);
	receive(fx, &fx->b, c.qp[0], 0, 33);
	send(fx, &c, 33, 6);
	check_copies(fx, &c, 1, 33, 6);
}

/* ---- Refusals */

enum refusal {
	WRONG_TYPE,
	UNICAST_GID,
	ZERO_GID,
	NOT_ATTACHED,
	OTHER_GROUP,
	NO_LID,
	NULL_GID,
};
static const char *const refusal_name[] = {"rc",          "unicast-gid", "zero-gid", "not-attached",
					   "other-group", "unicast-lid", "null"};

static void
run_refused(struct fx *fx, const struct row *row)
{
	static const uint8_t zero[16];
	struct bb_gid own;
	uint8_t gid[16];
	struct bb_qp *qp;

	group_gid(fx, 1, gid);
	qp = ud_qp(fx, &fx->b, QKEY);
	switch (row->n) {
	case WRONG_TYPE:
		qp = fx_shared(fx).a;
		REFUSED(fx, bb_qp_mcast_attach(qp, gid, MLID), -EINVAL, "type UD");
		return;
	case UNICAST_GID:
		OK(fx, bb_gid_query(fx->a.dev, 1, fx->a.gid, &own));
		REFUSED(fx, bb_qp_mcast_attach(qp, own.raw, MLID), -EINVAL, "GID");
		return;
	case ZERO_GID:
		REFUSED(fx, bb_qp_mcast_attach(qp, zero, MLID), -EINVAL, "GID");
		return;
	case NOT_ATTACHED:
		REFUSED(fx, bb_qp_mcast_detach(qp, gid, MLID), -EINVAL, "not attached");
		return;
	case OTHER_GROUP:
		OK(fx, bb_qp_mcast_attach(qp, gid, MLID));
		gid[15]++;
		REFUSED(fx, bb_qp_mcast_detach(qp, gid, MLID), -EINVAL, "not attached");
		gid[15]--;
		OK(fx, bb_qp_mcast_detach(qp, gid, MLID));
		return;
	case NO_LID:
		/* On RoCE the LID is ignored. */
		if (fx->b.port.link_layer == BB_LINK_ETHERNET) {
			OK(fx, bb_qp_mcast_attach(qp, gid, 0xbfff));
			OK(fx, bb_qp_mcast_detach(qp, gid, 0xffff));
			return;
		}
		REFUSED(fx, bb_qp_mcast_attach(qp, gid, 0xbfff), -EINVAL, "LID");
		REFUSED(fx, bb_qp_mcast_attach(qp, gid, 0xffff), -EINVAL, "LID");
		return;
	default:
		CHECK(fx,
		      bb_qp_mcast_attach(NULL, gid, MLID) == -EINVAL &&
			      bb_qp_mcast_attach(qp, NULL, MLID) == -EINVAL &&
			      bb_qp_mcast_detach(NULL, gid, MLID) == -EINVAL &&
			      bb_qp_mcast_detach(qp, NULL, MLID) == -EINVAL,
		      "a NULL argument is not refused");
	}
}

static void
run_destroy(struct fx *fx, const struct row *row)
{
	struct bb_qp *qp = ud_qp(fx, &fx->b, QKEY);
	uint8_t gid[16], more[16];

	(void)row;
	group_gid(fx, 1, gid);
	group_gid(fx, 2, more);
	OK(fx, bb_qp_mcast_attach(qp, gid, MLID));
	OK(fx, bb_qp_mcast_attach(qp, more, MLID));
	REFUSED(fx, bb_qp_destroy(qp), -EBUSY, "multicast group");
	OK(fx, bb_qp_mcast_detach(qp, gid, MLID));
	REFUSED(fx, bb_qp_destroy(qp), -EBUSY, "multicast group");
	OK(fx, bb_qp_mcast_detach(qp, more, MLID));
	fx_forget(fx, qp);
	OK(fx, bb_qp_destroy(qp));
}

static void
run_none(struct fx *fx, const struct row *row)
{
	struct bb_qp *qp = ud_qp(fx, &fx->b, QKEY);
	uint8_t gid[16];

	(void)row;
	group_gid(fx, 1, gid);
	REFUSED(fx, bb_qp_mcast_attach(qp, gid, MLID), -ENOTSUP, "no multicast groups");
}

void
rows_mcast(struct rows *rows)
{
	static const uint32_t sizes[] = {0, 1, 33, UINT32_MAX};

	for (unsigned int n = 1; n <= MEMBERS; n++) {
		for (unsigned int i = 0; i < RTE_DIM(sizes); i++) {
			struct row *row = row_add(rows, MAN, run_copies, "unreliable/ud/multicast",
						  "members-%u/%s", n,
						  i == 0   ? "0"
						  : i == 1 ? "1"
						  : i == 2 ? "33"
							   : "mtu");

			row->size = sizes[i];
			row->n = n;
			row->needs = NEED_MCAST_COPIES;
		}
	}
	row_add(rows, "IBTA vol. 1, 10.5.2", run_no_member, "unreliable/ud/multicast", "no-member")
		->needs = NEED_MCAST_COPIES;
	{
		struct row *row = row_add(rows, "IBTA vol. 1, 10.5.2", run_no_member,
					  "unreliable/ud/multicast", "other-group");

		row->n = 1;
		row->needs = NEED_MCAST_COPIES;
	}
	row_add(rows, MAN, run_detach, "unreliable/ud/multicast", "detached")->needs =
		NEED_MCAST_COPIES;
	/* Known of cards: Linux's IPoIB drops the copies of its own packets. */
	row_add(rows, ASSUMED, run_own, "unreliable/ud/multicast", "own-copies")->needs =
		NEED_MCAST_COPIES;
	for (unsigned int i = 0; i < RTE_DIM(poor_name); i++) {
		struct row *row =
			row_add(rows, i == POOR_RESET ? ASSUMED : "IBTA vol. 1, 9.8.3", run_poor,
				"unreliable/ud/multicast", "one-of-three/%s", poor_name[i]);

		row->n = i;
		row->needs = NEED_MCAST_COPIES;
	}
	row_add(rows, MAN, run_twice, "unreliable/ud/multicast", "attached-twice")->needs =
		NEED_MCAST;
	{
		struct row *row = row_add(rows, MAN, run_twice, "unreliable/ud/multicast",
					  "attached-twice-one-copy");

		row->n = 1;
		row->needs = NEED_MCAST_COPIES;
	}
	for (unsigned int i = 0; i < RTE_DIM(refusal_name); i++) {
		struct row *row = row_add(rows, MAN, run_refused, "unreliable/ud/multicast-refused",
					  "%s", refusal_name[i]);

		row->n = i;
		row->needs = NEED_MCAST;
	}
	/* Linux: uverbs_free_qp(). */
	row_add(rows, MAN, run_destroy, "unreliable/ud/multicast-refused", "destroy-attached")
		->needs = NEED_MCAST;
	row_add(rows, MAN, run_none, "unreliable/ud/multicast-refused", "no-groups")->needs =
		NEED_NO_MCAST;
}
