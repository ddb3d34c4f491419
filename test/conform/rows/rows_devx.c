/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * DEVX: a CQ and an RC QP that the application creates by its own mailboxes in a umem. They
 * exchange data with a QP of the library. Also rejected mailboxes.
 *
 * Field positions are those of include/linux/mlx5/mlx5_ifc.h of Linux, written here a second
 * time: byte, bit from the top of the big-endian dword, width.
 */
#include <rte_lcore.h>

#include "bb_barrier.h"
#include "conform.h"

#define MAN "mlx5dv_devx_obj_create(3)"

#define SIZE   65536u
#define LOG_CQ 4u
#define LOG_RQ 2u /* WQEs of 64 bytes */
#define LOG_SQ 4u /* blocks of 64 bytes */
#define CQ_AT  0u
#define QP_AT  4096u
#define SQ_AT  (QP_AT + (64u << LOG_RQ))
#define CQ_DB  8192u
#define QP_DB  (8192u + 64u)
#define UIDX   0x5a5a5au

#define MAILBOX 0x110u /* CREATE_CQ, CREATE_QP and the transitions */
#define CQC     0x10u
#define QPC     0x18u
#define ADS     (QPC + 0x18u)

enum command {
	OP_QUERY_HCA_CAP = 0x100,
	OP_CREATE_CQ = 0x400,
	OP_CREATE_QP = 0x500,
	OP_RST2INIT = 0x502,
	OP_INIT2RTR = 0x503,
	OP_RTR2RTS = 0x504,
	OP_QUERY_QP = 0x50b,
};

/* Objects that a row made by mailboxes. */
struct hand {
	struct fx *fx;
	uint8_t *mem;
	struct bb_umem *umem;
	struct bb_devx_uar *uar;
	struct bb_devx_obj *cq, *qp;
	uint32_t cqn, qpn, ci, sq_pi;
	struct bb_qp *peer;
	struct bb_qp_addr local, remote;
};

static void
put(uint8_t *box, unsigned int byte, unsigned int bit, unsigned int width, uint32_t v)
{
	uint32_t d;

	memcpy(&d, box + byte, sizeof(d));
	d = bb_be32(bb_be32(d) | v << (32 - bit - width));
	memcpy(box + byte, &d, sizeof(d));
}

static uint32_t
get(const uint8_t *box, unsigned int byte, unsigned int bit, unsigned int width)
{
	uint32_t d;

	memcpy(&d, box + byte, sizeof(d));
	return bb_be32(d) << bit >> (32 - width);
}

static void
undo_obj(void *obj)
{
	(void)bb_devx_obj_destroy(obj);
}

static void
undo_umem(void *umem)
{
	(void)bb_umem_dereg(umem);
}

static void
undo_uar(void *uar)
{
	(void)bb_devx_uar_free(uar);
}

static void
undo_ah(void *ah)
{
	(void)bb_ah_destroy(ah);
}

static void
cq_box(const struct hand *h, uint8_t box[MAILBOX])
{
	uint32_t eqn;

	OK(h->fx, bb_devx_query_eqn(h->fx->a.dev, 0, &eqn));
	memset(box, 0, MAILBOX);
	put(box, 0x00, 0, 16, OP_CREATE_CQ);
	put(box, CQC + 0x04, 0, 32, h->umem->id); /* dbr_umem_id */
	put(box, CQC + 0x0c, 3, 5, LOG_CQ);       /* log_cq_size */
	put(box, CQC + 0x0c, 8, 24, h->uar->page_id);
	put(box, CQC + 0x14, 24, 8, eqn);
	put(box, CQC + 0x3c, 0, 32, CQ_DB); /* dbr_addr, low half */
	put(box, 0x54, 0, 32, CQ_AT);       /* cq_umem_offset, low half */
	put(box, 0x58, 0, 32, h->umem->id); /* cq_umem_id */
}

static void
create_cq(struct hand *h)
{
	uint8_t box[MAILBOX], out[16];

	/* Opcode 15: not yet written. */
	for (uint32_t i = 0; i < 1u << LOG_CQ; i++)
		h->mem[CQ_AT + i * 64 + 63] = BB_CQE_OP_OWN_INIT;
	cq_box(h, box);
	OK(h->fx, bb_devx_obj_create(h->fx->a.dev, box, MAILBOX, out, sizeof(out), &h->cq));
	fx_defer(h->fx, undo_obj, h->cq);
	h->cqn = get(out, 0x08, 8, 24);
}

static void
create_qp(struct hand *h)
{
	uint8_t box[MAILBOX] = {0}, out[16];
	uint32_t pdn;

	OK(h->fx, bb_devx_pd_number(h->fx->a.pd, &pdn));
	put(box, 0x00, 0, 16, OP_CREATE_QP);
	put(box, QPC + 0x00, 19, 2, 3); /* pm_state: migrated */
	put(box, QPC + 0x04, 8, 24, pdn);
	put(box, QPC + 0x08, 9, 4, LOG_RQ);
	put(box, QPC + 0x08, 13, 3, 2); /* log_rq_stride: 64 bytes */
	put(box, QPC + 0x08, 17, 4, LOG_SQ);
	/* ts_format: a device with real-time stamps only takes 1, its default. */
	put(box, QPC + 0x08, 24, 2, h->fx->a.attr.clock_hz == 0);
	put(box, QPC + 0x0c, 8, 24, h->uar->page_id);
	put(box, QPC + 0x10, 8, 24, UIDX);
	put(box, QPC + 0x7c, 8, 24, h->cqn);
	put(box, QPC + 0x9c, 8, 24, h->cqn);
	put(box, QPC + 0xa4, 0, 32, QP_DB); /* dbr_addr, low half */
	put(box, QPC + 0xe4, 0, 32, h->umem->id);
	put(box, 0x104, 0, 32, QP_AT); /* wq_umem_offset, low half */
	put(box, 0x108, 0, 32, h->umem->id);
	OK(h->fx, bb_devx_obj_create(h->fx->a.dev, box, sizeof(box), out, sizeof(out), &h->qp));
	fx_defer(h->fx, undo_obj, h->qp);
	h->qpn = get(out, 0x08, 8, 24);
}

/* Executes a transition: adds the opcode and the QP's number to the contents of @box. */
static void
modify(struct hand *h, enum command op, uint8_t box[MAILBOX])
{
	uint8_t out[16];

	put(box, 0x00, 0, 16, op);
	put(box, 0x08, 8, 24, h->qpn);
	OK(h->fx, bb_devx_obj_modify(h->qp, box, MAILBOX, out, sizeof(out)));
}

/* The path to the peer; the library resolves the MAC. */
static void
put_path(struct hand *h, uint8_t *ads)
{
	struct fx *fx = h->fx;
	struct bb_path path = {.port = 1, .sgid_index = fx->a.gid, .dlid = h->remote.lid};
	struct bb_ah *ah;

	put(ads, 0x24, 8, 8, 1); /* vhca_port_num */
	if (fx->a.port.link_layer == BB_LINK_INFINIBAND) {
		put(ads, 0x04, 16, 16, h->remote.lid);
		return;
	}
	memcpy(path.dgid, h->remote.gid, sizeof(path.dgid));
	OK(fx, bb_ah_create(fx->a.pd, &path, &ah));
	fx_defer(fx, undo_ah, ah);
	put(ads, 0x08, 8, 8, fx->a.gid);
	put(ads, 0x08, 24, 8, 64); /* hop_limit */
	memcpy(ads + 0x10, h->remote.gid, sizeof(h->remote.gid));
	/*
	 * RoCE v1 has no UDP port; in an address handle it is in the field of InfiniBand's LID.
	 */
	put(ads, 0x20, 16, 16, bb_be16(ah->av.rlid));
	memcpy(ads + 0x26, ah->av.rmac, sizeof(ah->av.rmac));
}

static uint32_t
mtu_code(uint32_t mtu)
{
	uint32_t code = 1;

	while (128u << code < mtu)
		code++;
	return code;
}

static void
connect_both(struct hand *h)
{
	struct fx *fx = h->fx;
	const uint32_t mtu = RTE_MIN(h->local.mtu, h->remote.mtu);
	uint8_t init[MAILBOX] = {0}, rtr[MAILBOX] = {0}, rts[MAILBOX] = {0};
	struct bb_qp_attr attr = DEFAULTS(qp_attr);

	put(init, QPC + 0x00, 19, 2, 3);
	put(init, QPC + 0x90, 16, 1, 1); /* rre */
	put(init, QPC + 0x90, 17, 1, 1); /* rwe */
	put(init, ADS + 0x24, 8, 8, 1);
	modify(h, OP_RST2INIT, init);

	put(rtr, QPC + 0x08, 0, 3, mtu_code(mtu));
	put(rtr, QPC + 0x08, 3, 5, 30); /* log_msg_max */
	put(rtr, QPC + 0x14, 8, 24, h->remote.qpn);
	put(rtr, QPC + 0x90, 8, 3, 2);  /* log_rra_max */
	put(rtr, QPC + 0x94, 3, 5, 12); /* min_rnr_nak */
	put(rtr, QPC + 0x94, 8, 24, h->remote.psn);
	put_path(h, rtr + ADS);
	modify(h, OP_INIT2RTR, rtr);

	put(rts, QPC + 0x70, 8, 3, 2); /* log_sra_max */
	put(rts, QPC + 0x70, 13, 3, 7);
	put(rts, QPC + 0x70, 16, 3, 7);
	put(rts, QPC + 0x78, 8, 24, h->local.psn);
	put(rts, ADS + 0x08, 0, 5, 14); /* ack_timeout */
	modify(h, OP_RTR2RTS, rts);

	attr.access = ACCESS_ALL & ~BB_ACCESS_REMOTE_ATOMIC;
	attr.path.sgid_index = fx->b.gid;
	attr.max_rd_atomic = 4;
	attr.max_dest_rd_atomic = 4;
	OK(fx, bb_qp_connect(h->peer, &h->remote, &h->local, &attr));
}

static void
setup(struct fx *fx, struct hand *h)
{
	struct bb_qp_init_attr init = DEFAULTS(qp_init_attr);
	struct bb_qp_addr addr;

	memset(h, 0, sizeof(*h));
	h->fx = fx;
	h->mem = fx_alloc(fx, SIZE, 4096);
	memset(h->mem, 0, SIZE);
	OK(fx, bb_umem_reg(fx->a.dev, h->mem, SIZE, BB_ACCESS_LOCAL_WRITE, &h->umem));
	fx_defer(fx, undo_umem, h->umem);
	OK(fx, bb_devx_uar_alloc(fx->a.dev, rte_lcore_id(), &h->uar));
	fx_defer(fx, undo_uar, h->uar);
	init.send_cq = fx->b.cq;
	init.recv_cq = fx->b.cq;
	init.sq_depth = 8;
	init.rq_depth = 8;
	h->peer = fx_qp(fx, fx->b.pd, &init);
	/* The QP has the address of any QP of A, except for the number. */
	OK(fx, bb_qp_addr(h->peer, 1, fx->b.gid, &h->remote));
	init.send_cq = fx->a.cq;
	init.recv_cq = fx->a.cq;
	OK(fx, bb_qp_addr(fx_qp(fx, fx->a.pd, &init), 1, fx->a.gid, &addr));
	create_cq(h);
	create_qp(h);
	addr.qpn = h->qpn;
	h->local = addr;
	connect_both(h);
}

/* Returns the next CQE of the application's CQ. */
static const struct bb_cqe *
wait_cqe(struct hand *h, const char *what)
{
	const struct bb_cqe *cqe = (const void *)(h->mem + CQ_AT + (h->ci % (1u << LOG_CQ)) * 64);
	double end = now_s() + h->fx->timeout;
	uint8_t own;

	for (;;) {
		own = bb_cqe_own_load(&cqe->op_own);
		if (own >> 4 != BB_CQE_INVALID && (own & 1) == (h->ci >> LOG_CQ & 1))
			break;
		CHECK(h->fx, now_s() < end, "%s: no CQE within %.1f s", what, h->fx->timeout);
		fx_progress(h->fx);
		rte_pause();
	}
	h->ci++;
	bb_dbrec_store((uint32_t *)(void *)(h->mem + CQ_DB), bb_be32(h->ci & 0xffffff));
	CHECK(h->fx, own >> 4 != BB_CQE_REQ_ERR && own >> 4 != BB_CQE_RESP_ERR,
	      "%s: error CQE, syndrome 0x%02x", what, bb_cqe_syndrome(cqe));
	CHECK(h->fx, (bb_be32(cqe->srqn_uidx) & 0xffffff) == UIDX, "%s: user index 0x%x", what,
	      bb_be32(cqe->srqn_uidx));
	return cqe;
}

static void
put_data(uint8_t *seg, const struct bb_sge *sge)
{
	const struct bb_wqe_data d = {bb_be32(sge->len), bb_be32(sge->lkey), bb_be64(sge->addr)};

	memcpy(seg, &d, sizeof(d));
}

/* Posts a WRITE of one piece and rings its doorbell. */
static void
post_write(struct hand *h, const struct bb_sge *sge, uint64_t raddr, uint32_t rkey)
{
	uint8_t *wqe = h->mem + SQ_AT + (h->sq_pi % (1u << LOG_SQ)) * 64;
	const struct bb_wqe_ctrl ctrl = {
		.opmod_idx_opcode = bb_be32(h->sq_pi << 8 | BB_WQE_RDMA_WRITE),
		.qpn_ds = bb_be32(h->qpn << 8 | 3),
		.fm_ce_se = BB_WQE_CE_CQE,
	};
	const struct bb_wqe_raddr to = {bb_be64(raddr), bb_be32(rkey), 0};
	uint64_t head;

	memcpy(wqe, &ctrl, sizeof(ctrl));
	memcpy(wqe + 16, &to, sizeof(to));
	put_data(wqe + 32, sge);
	h->sq_pi++;
	bb_dma_wmb();
	bb_dbrec_store((uint32_t *)(void *)(h->mem + QP_DB + 4), bb_be32(h->sq_pi & 0xffff));
	bb_db_wmb();
	memcpy(&head, wqe, sizeof(head));
	bb_uar_store64(h->uar->reg_addr, head);
	bb_wc_flush();
}

static void
post_recv(struct hand *h, const struct bb_sge *sge)
{
	const struct bb_sge end = {.lkey = BB_WQE_INVALID_LKEY};

	put_data(h->mem + QP_AT, sge);
	put_data(h->mem + QP_AT + 16, &end);
	bb_dma_wmb();
	bb_dbrec_store((uint32_t *)(void *)(h->mem + QP_DB), bb_be32(1));
}

static void
no_devx(struct fx *fx)
{
	uint8_t in[16] = {OP_QUERY_HCA_CAP >> 8}, out[16];
	struct bb_devx_obj *obj = NULL;
	struct bb_devx_uar *uar = NULL;
	uint32_t number;

	REFUSED(fx, bb_devx_general_cmd(fx->a.dev, in, 16, out, 16), -ENOTSUP, "DEVX");
	REFUSED(fx, bb_devx_obj_create(fx->a.dev, in, 16, out, 16, &obj), -ENOTSUP, "DEVX");
	REFUSED(fx, bb_devx_uar_alloc(fx->a.dev, rte_lcore_id(), &uar), -ENOTSUP, "DEVX");
	REFUSED(fx, bb_devx_pd_number(fx->a.pd, &number), -ENOTSUP, "DEVX");
	REFUSED(fx, bb_devx_query_eqn(fx->a.dev, 0, &number), -ENOTSUP, "DEVX");
	CHECK(fx, obj == NULL && uar == NULL, "a refused call wrote its out-pointer");
}

/* A WRITE is sent and a SEND received on queues that only the application knows. */
ROW(run_by_hand)
{
	const struct bb_sge from = sge_of(&fx->a, GUARD, 512), to = sge_of(&fx->a, 8192, 512);
	struct bb_sge sent = sge_of(&fx->b, 16384, 300);
	struct hand h;

	if (fx->a.attr.max_umem == 0) {
		no_devx(fx);
		return;
	}
	setup(fx, &h);
	pattern(fx->a.mem + GUARD, 512, fx->seed++);
	post_write(&h, &from, addr_of(&fx->b, 32768), fx->b.mr->rkey);
	CHECK(fx, wait_cqe(&h, "a WRITE by hand")->op_own >> 4 == BB_CQE_REQ,
	      "a WRITE by hand: not a requester's CQE");
	CHECK(fx, memcmp(fx->b.mem + 32768, fx->a.mem + GUARD, 512) == 0,
	      "a WRITE by hand is not at the target");

	post_recv(&h, &to);
	pattern(fx->b.mem + 16384, 300, fx->seed++);
	CHECK(fx, bb_post_send(h.peer, 7, &sent, 1, BB_SEND_SIGNALED) == 0, "SEND is not taken");
	bb_qp_ring(h.peer);
	CHECK(fx, bb_be32(wait_cqe(&h, "a receive by hand")->byte_cnt) == 300,
	      "a receive by hand: not 300 bytes");
	expect_wc(fx, fx->b.cq, h.peer, 7, BB_WC_SUCCESS, "a SEND to a QP made by hand");
	CHECK(fx, memcmp(fx->a.mem + 8192, fx->b.mem + 16384, 300) == 0,
	      "a SEND to a QP made by hand is not in its buffer");
}

/* A query's answer, and which objects hold others. */
ROW(run_owned)
{
	uint8_t in[16] = {0}, out[0x110];
	struct hand h;

	setup(fx, &h);
	put(in, 0x00, 0, 16, OP_QUERY_QP);
	put(in, 0x08, 8, 24, h.qpn);
	OK(fx, bb_devx_obj_query(h.qp, in, sizeof(in), out, sizeof(out)));
	CHECK(fx, get(out, 0x18, 0, 4) == 3, "QUERY_QP: state %u, not RTS", get(out, 0x18, 0, 4));
	REFUSED(fx, bb_umem_dereg(h.umem), -EBUSY, "umem");
	REFUSED(fx, bb_devx_uar_free(h.uar), -EBUSY, "UAR");
	REFUSED(fx, bb_dev_close(fx->a.dev), -EBUSY, "live");
	log_clear();
	CHECK(fx, bb_devx_obj_destroy(h.cq) != 0, "a CQ is destroyed while a QP names it");
}

/* Mailboxes that the device, or the kernel before it, rejects; no object is created. */
ROW(run_refused)
{
	static uint8_t longest[BB_DEVX_MAILBOX_MAX + 1];
	uint8_t box[MAILBOX], out[16];
	struct bb_devx_obj *obj = NULL;
	struct hand h = {.fx = fx};

	h.mem = fx_alloc(fx, SIZE, 4096);
	OK(fx, bb_umem_reg(fx->a.dev, h.mem, SIZE, BB_ACCESS_LOCAL_WRITE, &h.umem));
	fx_defer(fx, undo_umem, h.umem);
	OK(fx, bb_devx_uar_alloc(fx->a.dev, rte_lcore_id(), &h.uar));
	fx_defer(fx, undo_uar, h.uar);
	cq_box(&h, box);
	put(box, 0x58, 0, 32, 0xffffff); /* no such umem */
	memset(out, 0xee, sizeof(out));
	log_clear();
	CHECK(fx,
	      bb_devx_obj_create(fx->a.dev, box, sizeof(box), out, sizeof(out), &obj) == -EREMOTEIO,
	      "CREATE_CQ in a umem that is none is not refused by the device");
	CHECK(fx, out[0] != 0 && get(out, 0x04, 0, 32) != 0, "no status or no syndrome");
	CHECK(fx, log_having("DEVX command 0x400") == 1, "the log does not name the command");
	memset(out, 0xee, sizeof(out));
	log_clear();
	CHECK(fx, bb_devx_general_cmd(fx->a.dev, box, sizeof(box), out, sizeof(out)) == -EINVAL,
	      "CREATE_CQ as a general command is not refused by the kernel");
	CHECK(fx, get(out, 0, 0, 32) == 0, "a kernel's refusal reads as a device's status");
	REFUSED(fx, bb_devx_obj_create(fx->a.dev, box, 15, out, sizeof(out), &obj), -EINVAL,
		"mailboxes");
	REFUSED(fx, bb_devx_obj_create(fx->a.dev, box, sizeof(box), out, 15, &obj), -EINVAL,
		"mailboxes");
	REFUSED(fx, bb_devx_obj_create(fx->a.dev, NULL, sizeof(box), out, sizeof(out), &obj),
		-EINVAL, "mailboxes");
	REFUSED(fx, bb_devx_obj_create(fx->a.dev, longest, sizeof(longest), out, sizeof(out), &obj),
		-EINVAL, "mailboxes");
	CHECK(fx, obj == NULL, "a refused bb_devx_obj_create() wrote its out-pointer");
	/* Without live objects the page can be freed. */
	OK(fx, bb_devx_uar_free(h.uar));
	fx_forget(fx, h.uar);
}

void
rows_devx(struct rows *rows)
{
	row_add(rows, MAN, run_by_hand, "devx/queues-by-hand", "rc")->needs = NEED_QP_CONNECT;
	row_add(rows, MAN, run_owned, "devx/objects-are-held", "rc")->needs =
		NEED_QP_CONNECT | NEED_UMEM;
	row_add(rows, MAN, run_refused, "devx/refused", "mailbox")->needs = NEED_UMEM;
}
