/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The null provider's queues: requests execute when they are posted. */
#include <errno.h>
#include <string.h>

#include "verbs_null_priv.h"

/* CQs with held completions, newest first. */
static struct null_cq *holders;

static void
complete(struct ibv_cq *cq, const struct ibv_wc *wc)
{
	struct null_cq *c = outer_of(cq, struct null_cq, cq);

	if (c->tail - c->head >= c->depth) {
		null_dev.overruns++;
		return;
	}
	c->time[c->tail % NULL_RING] = null_dev.clock != 0 ? ++null_dev.clock : 0;
	c->wc[c->tail++ % NULL_RING] = *wc;
	if (!null_dev.hold) {
		c->shown = c->tail;
		null_notify(c);
		return;
	}
	if (c->next == NULL && holders != c) {
		c->next = holders;
		holders = c;
	}
}

void
null_release(void)
{
	while (holders != NULL) {
		struct null_cq *c = holders;

		holders = c->next;
		c->next = NULL;
		c->shown = c->tail;
		null_notify(c);
	}
}

static struct null_rq *
rq_of(struct null_qp *q)
{
	return q->qp.srq != NULL ? &outer_of(q->qp.srq, struct null_srq, srq)->rq : &q->rq;
}

void
null_flush(struct null_qp *q)
{
	for (; q->rq.head != q->rq.tail; q->rq.head++) {
		const struct ibv_wc wc = {.wr_id = q->rq.wr[q->rq.head % NULL_RING].wr_id,
					  .status = IBV_WC_WR_FLUSH_ERR,
					  .qp_num = q->qp.qp_num};

		complete(q->qp.recv_cq, &wc);
	}
}

/* Copy between pieces and one buffer. */
static uint32_t
gather(const struct ibv_sge *sge, int n, uint8_t *to)
{
	uint32_t len = 0;

	for (int i = 0; i < n; i++) {
		memcpy(to + len, null_at(sge[i].lkey, sge[i].addr), sge[i].length);
		len += sge[i].length;
	}
	return len;
}

static void
scatter(const struct ibv_sge *sge, int n, const uint8_t *from, uint32_t len)
{
	for (int i = 0; i < n && len > 0; i++) {
		uint32_t part = len < sge[i].length ? len : sge[i].length;

		memcpy(null_at(sge[i].lkey, sge[i].addr), from, part);
		from += part;
		len -= part;
	}
}

/* Receives a message. Returns the status for the sender. */
static enum ibv_wc_status
receive(struct null_qp *q, const struct ibv_send_wr *wr, const uint8_t *data, uint32_t len)
{
	struct null_rq *rq = rq_of(q);
	struct ibv_wc wc = null_dev.recv;
	const struct null_recv *r = &rq->wr[rq->head % NULL_RING];

	if (rq->head == rq->tail)
		return IBV_WC_RNR_RETRY_EXC_ERR;
	rq->head++;
	wc.qp_num = q->qp.qp_num;
	wc.wr_id = r->wr_id;
	wc.byte_len = len;
	wc.src_qp = q->qp.qp_num;
	wc.opcode =
		wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
	if (wr->opcode == IBV_WR_SEND_WITH_INV) {
		wc.wc_flags |= IBV_WC_WITH_INV;
		wc.invalidated_rkey = wr->invalidate_rkey;
	} else if (wr->opcode != IBV_WR_SEND) {
		wc.wc_flags |= IBV_WC_WITH_IMM;
		wc.imm_data = wr->imm_data;
	}
	if (wr->opcode != IBV_WR_RDMA_WRITE_WITH_IMM)
		scatter(r->sge, r->n, data, len);
	complete(q->qp.recv_cq, &wc);
	return wc.status == IBV_WC_SUCCESS ? IBV_WC_SUCCESS : IBV_WC_REM_OP_ERR;
}

void
null_late(struct null_qp *q)
{
	const struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};

	if (null_dev.late && (q->qp.state == IBV_QPS_RTR || q->qp.state == IBV_QPS_RTS))
		(void)receive(q, &wr, NULL, 0);
}

static void
atomic(const struct ibv_send_wr *wr)
{
	uint64_t *at = null_at(wr->wr.atomic.rkey, wr->wr.atomic.remote_addr), old = *at;

	if (wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		*at += wr->wr.atomic.compare_add;
	else if (old == wr->wr.atomic.compare_add)
		*at = wr->wr.atomic.swap;
	scatter(wr->sg_list, wr->num_sge, (const uint8_t *)&old, sizeof(old));
}

static enum ibv_wc_status
bind(const struct ibv_mw *mw, const struct ibv_mw_bind_info *info)
{
	bool good = info->mr != NULL ? info->mr->pd == mw->pd : info->length == 0 && null_dev.mlx5;

	null_dev.bind = *info;
	return good ? IBV_WC_SUCCESS : IBV_WC_MW_BIND_ERR;
}

static enum ibv_wc_status
execute(struct null_qp *q, const struct ibv_send_wr *wr)
{
	static uint8_t buf[1 << 16];
	void *remote = null_at(wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
	uint32_t len;

	switch (wr->opcode) {
	case IBV_WR_RDMA_WRITE:
		gather(wr->sg_list, wr->num_sge, remote);
		return IBV_WC_SUCCESS;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		len = gather(wr->sg_list, wr->num_sge, remote);
		return receive(q, wr, remote, len);
	case IBV_WR_RDMA_READ:
		scatter(wr->sg_list, wr->num_sge, remote, UINT32_MAX);
		return IBV_WC_SUCCESS;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		atomic(wr);
		return IBV_WC_SUCCESS;
	case IBV_WR_LOCAL_INV:
		return IBV_WC_SUCCESS;
	case IBV_WR_BIND_MW:
		wr->bind_mw.mw->rkey = wr->bind_mw.rkey;
		null_dev.bind_rkey = wr->bind_mw.rkey;
		return bind(wr->bind_mw.mw, &wr->bind_mw.bind_info);
	default:
		len = gather(wr->sg_list, wr->num_sge, buf);
		return receive(q, wr, buf, len);
	}
}

static bool
is_atomic(const struct ibv_send_wr *wr)
{
	return wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static void
run(struct null_qp *q, const struct ibv_send_wr *wr)
{
	struct ibv_wc wc = {.wr_id = wr->wr_id, .qp_num = q->qp.qp_num, .vendor_err = 0x5e};

	null_dev.wr_opcodes |= 1u << wr->opcode;
	null_dev.send_flags = wr->send_flags;
	if (q->qp.state == IBV_QPS_ERR || q->qp.state == IBV_QPS_SQE)
		wc.status = IBV_WC_WR_FLUSH_ERR;
	else if (null_dev.status != IBV_WC_SUCCESS)
		wc.status = null_dev.status;
	else if (!null_dev.silent)
		wc.status = execute(q, wr);
	null_dev.status = IBV_WC_SUCCESS;
	/* For other opcodes it is undefined. */
	wc.byte_len = 0x5a5a5a;
	if (wr->opcode == IBV_WR_RDMA_READ)
		wc.byte_len = wr->num_sge > 0 ? wr->sg_list[0].length : 0;
	else if (is_atomic(wr))
		wc.byte_len = 8;
	if (q->qp.qp_type == IBV_QPT_UD) {
		null_dev.ud.ah = wr->wr.ud.ah;
		null_dev.ud.qpn = wr->wr.ud.remote_qpn;
		null_dev.ud.qkey = wr->wr.ud.remote_qkey;
	}
	if ((wr->send_flags & IBV_SEND_SIGNALED) != 0)
		null_dev.signaled++;
	if ((wr->send_flags & IBV_SEND_SIGNALED) == 0 && wc.status == IBV_WC_SUCCESS)
		return;
	complete(q->qp.send_cq, &wc);
	if (wc.status == IBV_WC_SUCCESS || q->qp.state == IBV_QPS_ERR)
		return;
	/* A failed request stops only the send queue of an unreliable QP. */
	q->qp.state = q->qp.qp_type == IBV_QPT_RC ? IBV_QPS_ERR : IBV_QPS_SQE;
	if (q->qp.state == IBV_QPS_ERR)
		null_flush(q);
}

static int
refuses(void)
{
	if (null_dev.gone)
		return EIO;
	return null_dev.bad_wr != 0 && --null_dev.bad_wr == 0 ? EINVAL : 0;
}

static int
post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	/* Not allowed between ibv_wr_start() and ibv_wr_complete(). */
	null_dev.misuse += outer_of(qp, struct null_qp, qp)->open;
	for (; wr != NULL; wr = wr->next) {
		int err = refuses();

		if (err != 0) {
			*bad = wr;
			return err;
		}
		null_dev.wr_plain++;
		run(outer_of(qp, struct null_qp, qp), wr);
	}
	return 0;
}

static int
recv_add(struct null_rq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	for (; wr != NULL; wr = wr->next) {
		struct null_recv *r = &rq->wr[rq->tail % NULL_RING];
		int err = refuses();

		if (err != 0) {
			*bad = wr;
			return err;
		}
		r->wr_id = wr->wr_id;
		r->n = wr->num_sge;
		memcpy(r->sge, wr->sg_list, (size_t)wr->num_sge * sizeof(r->sge[0]));
		rq->tail++;
		null_dev.recvs++;
	}
	return 0;
}

static int
post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct null_qp *q = outer_of(qp, struct null_qp, qp);
	int err = recv_add(&q->rq, wr, bad);

	if (q->qp.state == IBV_QPS_ERR)
		null_flush(q);
	return err;
}

static int
post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return recv_add(&outer_of(srq, struct null_srq, srq)->rq, wr, bad);
}

static int
bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *b)
{
	struct ibv_send_wr *bad, wr = {.wr_id = b->wr_id, .opcode = IBV_WR_BIND_MW};

	wr.send_flags = b->send_flags;
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = b->bind_info;
	return post_send(qp, &wr, &bad);
}

/* ---- Extended post */

static struct null_req *
next_req(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode)
{
	struct null_qp *q = outer_of(ex, struct null_qp, ex);
	struct null_req *r = &q->batch[q->n++ % 64];
	int err = refuses();

	null_dev.misuse += !q->open;
	if (err != 0)
		q->err = err;
	r->wr.wr_id = ex->wr_id;
	r->wr.opcode = opcode;
	r->wr.send_flags = ex->wr_flags;
	r->wr.sg_list = r->sge;
	r->wr.num_sge = 0;
	return r;
}

static void
wr_start(struct ibv_qp_ex *ex)
{
	struct null_qp *q = outer_of(ex, struct null_qp, ex);

	null_dev.misuse += q->open;
	q->open = true;
	q->n = 0;
	q->err = 0;
}

static int
wr_complete(struct ibv_qp_ex *ex)
{
	struct null_qp *q = outer_of(ex, struct null_qp, ex);

	null_dev.misuse += !q->open;
	q->open = false;
	if (q->err != 0)
		return q->err;
	for (uint32_t i = 0; i < q->n; i++) {
		null_dev.wr_ex++;
		run(q, &q->batch[i].wr);
	}
	return 0;
}

static void
wr_abort(struct ibv_qp_ex *ex)
{
	struct null_qp *q = outer_of(ex, struct null_qp, ex);

	null_dev.misuse += !q->open;
	q->open = false;
	q->n = 0;
}

static void
rdma(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t raddr, __be32 imm)
{
	struct null_req *r = next_req(ex, opcode);

	r->wr.wr.rdma.remote_addr = raddr;
	r->wr.wr.rdma.rkey = rkey;
	r->wr.imm_data = imm;
}

static void
wr_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t raddr)
{
	rdma(ex, IBV_WR_RDMA_WRITE, rkey, raddr, 0);
}

static void
wr_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t raddr, __be32 imm)
{
	rdma(ex, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, raddr, imm);
}

static void
wr_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t raddr)
{
	rdma(ex, IBV_WR_RDMA_READ, rkey, raddr, 0);
}

static void
wr_send(struct ibv_qp_ex *ex)
{
	next_req(ex, IBV_WR_SEND);
}

static void
wr_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
	next_req(ex, IBV_WR_SEND_WITH_IMM)->wr.imm_data = imm;
}

static void
wr_send_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	next_req(ex, IBV_WR_SEND_WITH_INV)->wr.invalidate_rkey = rkey;
}

static void
wr_local_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	next_req(ex, IBV_WR_LOCAL_INV)->wr.invalidate_rkey = rkey;
}

static void
wr_bind(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey, const struct ibv_mw_bind_info *info)
{
	struct null_req *r = next_req(ex, IBV_WR_BIND_MW);

	r->wr.bind_mw.mw = mw;
	r->wr.bind_mw.rkey = rkey;
	r->wr.bind_mw.bind_info = *info;
}

static void
atomic_req(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t raddr,
	   uint64_t compare_add, uint64_t swap)
{
	struct null_req *r = next_req(ex, opcode);

	r->wr.wr.atomic.remote_addr = raddr;
	r->wr.wr.atomic.rkey = rkey;
	r->wr.wr.atomic.compare_add = compare_add;
	r->wr.wr.atomic.swap = swap;
}

static void
wr_cs(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t raddr, uint64_t compare, uint64_t swap)
{
	atomic_req(ex, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, raddr, compare, swap);
}

static void
wr_fa(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t raddr, uint64_t add)
{
	atomic_req(ex, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, raddr, add, 0);
}

static struct null_req *
last_req(struct ibv_qp_ex *ex)
{
	struct null_qp *q = outer_of(ex, struct null_qp, ex);

	return &q->batch[(q->n - 1) % 64];
}

static void
wr_set_sge_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_sge *sge)
{
	struct null_req *r = last_req(ex);

	for (size_t i = 0; i < n; i++) {
		r->sge[i] = sge[i];
		if (null_dev.rxe)
			r->sge[i].length = sge[0].length;
	}
	r->wr.num_sge = (int)n;
}

static void
wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t len)
{
	struct null_req *r = last_req(ex);

	r->sge[0] = (struct ibv_sge){addr, len, lkey};
	r->wr.num_sge = 1;
}

static void
wr_set_inline_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_data_buf *buf)
{
	struct null_req *r = last_req(ex);
	uint32_t len = 0;

	for (size_t i = 0; i < n; i++) {
		memcpy(r->data + len, buf[i].addr, buf[i].length);
		len += (uint32_t)buf[i].length;
	}
	r->sge[0] = (struct ibv_sge){(uintptr_t)r->data, len, 0};
	r->wr.num_sge = 1;
}

static void
wr_set_inline(struct ibv_qp_ex *ex, void *addr, size_t len)
{
	const struct ibv_data_buf buf = {addr, len};

	wr_set_inline_list(ex, 1, &buf);
}

static void
wr_set_ud(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct null_req *r = last_req(ex);

	r->wr.wr.ud.ah = ah;
	r->wr.wr.ud.remote_qpn = qpn;
	r->wr.wr.ud.remote_qkey = qkey;
}

void
null_qp_ops(struct null_qp *q, uint64_t ops)
{
	q->ex.qp_base = q->qp;
	q->ex.wr_start = wr_start;
	q->ex.wr_complete = wr_complete;
	q->ex.wr_abort = wr_abort;
	q->ex.wr_set_sge = wr_set_sge;
	q->ex.wr_set_sge_list = wr_set_sge_list;
	q->ex.wr_set_inline_data = wr_set_inline;
	q->ex.wr_set_inline_data_list = wr_set_inline_list;
	q->ex.wr_set_ud_addr = wr_set_ud;
	if ((ops & IBV_QP_EX_WITH_RDMA_WRITE) != 0)
		q->ex.wr_rdma_write = wr_write;
	if ((ops & IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM) != 0)
		q->ex.wr_rdma_write_imm = wr_write_imm;
	if ((ops & IBV_QP_EX_WITH_RDMA_READ) != 0)
		q->ex.wr_rdma_read = wr_read;
	if ((ops & IBV_QP_EX_WITH_SEND) != 0)
		q->ex.wr_send = wr_send;
	if ((ops & IBV_QP_EX_WITH_SEND_WITH_IMM) != 0)
		q->ex.wr_send_imm = wr_send_imm;
	if ((ops & IBV_QP_EX_WITH_SEND_WITH_INV) != 0)
		q->ex.wr_send_inv = wr_send_inv;
	if ((ops & IBV_QP_EX_WITH_LOCAL_INV) != 0)
		q->ex.wr_local_inv = wr_local_inv;
	if ((ops & IBV_QP_EX_WITH_BIND_MW) != 0)
		q->ex.wr_bind_mw = wr_bind;
	if ((ops & IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP) != 0)
		q->ex.wr_atomic_cmp_swp = wr_cs;
	if ((ops & IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD) != 0)
		q->ex.wr_atomic_fetch_add = wr_fa;
}

void
null_post_ops(struct verbs_context *v)
{
	v->context.ops.post_send = post_send;
	v->context.ops.post_recv = post_recv;
	v->context.ops.post_srq_recv = post_srq_recv;
	v->context.ops.bind_mw = bind_mw;
}
