/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* The null provider's completions. */
#include "verbs_null_priv.h"

static int
poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	struct null_cq *c = outer_of(cq, struct null_cq, cq);
	int i;

	for (i = 0; i < n && c->head != c->shown; i++)
		wc[i] = c->wc[c->head++ % NULL_RING];
	return i;
}

static int
req_notify(struct ibv_cq *cq, int solicited)
{
	int err = null_turn(__func__);

	null_dev.solicited_only = solicited != 0;
	outer_of(cq, struct null_cq, cq)->armed = err == 0;
	return err;
}

static const struct ibv_wc *
current(const struct ibv_cq_ex *ex)
{
	const struct null_cq *c = (const void *)ex;

	return &c->wc[c->head % NULL_RING];
}

static int
show(struct ibv_cq_ex *ex)
{
	const struct null_cq *c = outer_of(ex, struct null_cq, ex);

	if (c->head == c->shown)
		return ENOENT;
	ex->status = current(ex)->status;
	ex->wr_id = current(ex)->wr_id;
	return 0;
}

static int
start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	(void)attr;
	return show(ex);
}

static int
next_poll(struct ibv_cq_ex *ex)
{
	struct null_cq *c = outer_of(ex, struct null_cq, ex);

	if (!null_dev.rxe && c->head + 1 == c->shown)
		return ENOENT;
	c->head++;
	return show(ex);
}

static void
end_poll(struct ibv_cq_ex *ex)
{
	outer_of(ex, struct null_cq, ex)->head++;
}

static enum ibv_wc_opcode
read_opcode(struct ibv_cq_ex *ex)
{
	return current(ex)->opcode;
}

static uint32_t
read_vendor_err(struct ibv_cq_ex *ex)
{
	return current(ex)->vendor_err;
}

static uint32_t
read_byte_len(struct ibv_cq_ex *ex)
{
	return current(ex)->byte_len;
}

static __be32
read_imm(struct ibv_cq_ex *ex)
{
	return current(ex)->imm_data;
}

static uint32_t
read_qp_num(struct ibv_cq_ex *ex)
{
	return current(ex)->qp_num;
}

static uint32_t
read_src_qp(struct ibv_cq_ex *ex)
{
	return current(ex)->src_qp;
}

static unsigned int
read_flags(struct ibv_cq_ex *ex)
{
	return current(ex)->wc_flags;
}

static uint32_t
read_slid(struct ibv_cq_ex *ex)
{
	return current(ex)->slid;
}

static uint8_t
read_sl(struct ibv_cq_ex *ex)
{
	return current(ex)->sl;
}

static uint64_t
read_time(struct ibv_cq_ex *ex)
{
	const struct null_cq *c = (const void *)ex;

	return c->time[c->head % NULL_RING];
}

/* Functions for fields that were not requested are missing, as with other providers. */
static void
ex_ops(struct null_cq *c, uint64_t flags)
{
	c->ex.start_poll = start_poll;
	c->ex.next_poll = next_poll;
	c->ex.end_poll = end_poll;
	c->ex.read_opcode = read_opcode;
	c->ex.read_vendor_err = read_vendor_err;
	c->ex.read_wc_flags = read_flags;
	if ((flags & IBV_WC_EX_WITH_BYTE_LEN) != 0)
		c->ex.read_byte_len = read_byte_len;
	if ((flags & IBV_WC_EX_WITH_IMM) != 0)
		c->ex.read_imm_data = read_imm;
	if ((flags & IBV_WC_EX_WITH_QP_NUM) != 0)
		c->ex.read_qp_num = read_qp_num;
	if ((flags & IBV_WC_EX_WITH_SRC_QP) != 0)
		c->ex.read_src_qp = read_src_qp;
	if ((flags & IBV_WC_EX_WITH_SLID) != 0)
		c->ex.read_slid = read_slid;
	if ((flags & IBV_WC_EX_WITH_SL) != 0)
		c->ex.read_sl = read_sl;
	if ((flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP) != 0)
		c->ex.read_completion_ts = read_time;
}

static struct ibv_cq *
cq_make(struct ibv_context *ctx, uint32_t depth, void *user, struct ibv_comp_channel *channel)
{
	static uint32_t next_handle = 1;

	if (null_dev.cq_depth == 0) {
		null_dev.objects_before_cq = null_dev.objects;
		null_dev.cq_depth = depth;
	}
	MAKE(struct null_cq, c);
	c->cq.context = ctx;
	c->cq.cq_context = user;
	c->cq.channel = channel;
	c->cq.handle = next_handle++;
	c->depth = depth;
	return &c->cq;
}

static struct ibv_cq_ex *
create_cq_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr)
{
	struct ibv_cq *cq;

	null_dev.cq_init = *attr;
	if (null_dev.no_cq_ex)
		return null_fail(EOPNOTSUPP);
	if (null_dev.no_cq_flags && attr->comp_mask != 0)
		return null_fail(EINVAL);
	cq = cq_make(ctx, attr->cqe, attr->cq_context, attr->channel);
	if (cq == NULL)
		return NULL;
	ex_ops(outer_of(cq, struct null_cq, cq), attr->wc_flags);
	return &outer_of(cq, struct null_cq, cq)->ex;
}

struct ibv_cq *
ibv_create_cq(struct ibv_context *ctx, int cqe, void *user, struct ibv_comp_channel *channel,
	      int vector)
{
	null_dev.cq_vector = vector;
	return cq_make(ctx, (uint32_t)cqe, user, channel);
}

/* Exactly the requested depth. As with libbnxt_re, an error is negative. */
int
ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	struct null_cq *c = outer_of(cq, struct null_cq, cq);
	int err = null_turn(__func__);

	if (null_dev.no_resize)
		return EOPNOTSUPP;
	if (err != 0 || (uint32_t)cqe < c->tail - c->head)
		return err != 0 ? -err : -EINVAL;
	c->depth = (uint32_t)cqe;
	null_dev.resized = (uint32_t)cqe;
	return 0;
}

int
ibv_destroy_cq(struct ibv_cq *cq)
{
	return null_destroy(__func__, outer_of(cq, struct null_cq, cq));
}

void
null_clean(struct ibv_cq *cq, uint32_t qpn)
{
	struct null_cq *c = outer_of(cq, struct null_cq, cq);
	uint32_t i, to = c->head;

	for (i = c->head; i != c->tail; i++) {
		if (c->wc[i % NULL_RING].qp_num == qpn)
			continue;
		c->time[to % NULL_RING] = c->time[i % NULL_RING];
		c->wc[to++ % NULL_RING] = c->wc[i % NULL_RING];
	}
	null_dev.cleaned += c->tail - to;
	c->tail = c->shown = to;
}

static int
modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
	int err = null_turn(__func__);

	(void)cq;
	if (err != 0 || attr->attr_mask != IBV_CQ_ATTR_MODERATE ||
	    attr->moderate.cq_count > NULL_MODERATE)
		return err != 0 ? err : EINVAL;
	null_dev.cq_count = attr->moderate.cq_count;
	null_dev.cq_period = attr->moderate.cq_period;
	return 0;
}

void
null_cq_ops(struct verbs_context *v)
{
	v->create_cq_ex = create_cq_ex;
	v->modify_cq = modify_cq;
	v->context.ops.poll_cq = poll_cq;
	v->context.ops.req_notify_cq = req_notify;
}
