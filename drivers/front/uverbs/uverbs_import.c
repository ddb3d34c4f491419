/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Methods for ibv_import_device(). It creates a second context on a node that is already open. The
 * second context uses objects of the first context by their handles. libibverbs creates the CQs and
 * QPs of the second context by ioctl() only. uverbs_cq.c and uverbs_qp.c create them as for
 * write().
 *
 * Asynchronous events of all objects go to the descriptor of the first context.
 */
#include <errno.h>
#include <string.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>

#include "uverbs_attr.h"
#include "uverbs_priv.h"

/* Maximum number of bytes of the provider's part of a response. */
#define MAX_DRV 256

static int
query_context(struct uverbs_file *f, struct ib_uverbs_ioctl_hdr *h)
{
	struct mlx5_ib_alloc_ucontext_resp drv;
	size_t len;
	void *to = out(h, MLX5_IB_ATTR_QUERY_CONTEXT_RESP_UCTX, &len);

	uverbs_fill_context(f, &drv);
	if (to != NULL)
		memcpy(to, &drv, len < sizeof(drv) ? len : sizeof(drv));
	out_num(h, UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS, UVERBS_COMP_VECTORS);
	out_num(h, UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT, 0);
	return 0;
}

static int
async_fd(struct uverbs_file *f, struct ib_uverbs_ioctl_hdr *h)
{
	struct ib_uverbs_attr *a = attr(h, UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE);
	int fd = a != NULL ? uverbs_events_new(f, UV_ASYNC) : -EINVAL;

	if (fd < 0)
		return -fd;
	a->data_s64 = fd;
	return 0;
}

/* ---- Queries of objects by their handles */

static int
query_pd(struct uverbs_file *f, struct ib_uverbs_ioctl_hdr *h)
{
	const struct mlx5_pd *pd =
		uverbs_find(f, UV_PD, in_handle(h, MLX5_IB_ATTR_QUERY_PD_HANDLE));

	if (pd == NULL)
		return ENOENT;
	out_num(h, MLX5_IB_ATTR_QUERY_PD_RESP_PDN, pd->pdn);
	return 0;
}

static int
query_mr(struct uverbs_file *f, struct ib_uverbs_ioctl_hdr *h)
{
	struct mlx5_mr *mr = uverbs_find(f, UV_MR, in_handle(h, UVERBS_ATTR_QUERY_MR_HANDLE));

	if (mr == NULL)
		return ENOENT;
	out_num(h, UVERBS_ATTR_QUERY_MR_RESP_LKEY, mr->lkey);
	out_num(h, UVERBS_ATTR_QUERY_MR_RESP_RKEY, mr->rkey);
	out_num(h, UVERBS_ATTR_QUERY_MR_RESP_LENGTH, soft_mr_length(mr));
	return 0;
}

static int
query_dm(struct uverbs_file *f, struct ib_uverbs_ioctl_hdr *h)
{
	const struct mlx5_dm *dm =
		uverbs_find(f, UV_DM, in_handle(h, MLX5_IB_ATTR_QUERY_DM_REQ_HANDLE));

	if (dm == NULL)
		return ENOENT;
	out_num(h, MLX5_IB_ATTR_QUERY_DM_RESP_START_OFFSET, 0);
	out_num(h, MLX5_IB_ATTR_QUERY_DM_RESP_PAGE_INDEX, soft_dm_page(dm));
	out_num(h, MLX5_IB_ATTR_QUERY_DM_RESP_LENGTH, dm->len);
	return 0;
}

/* ---- Creation */

/* Gives the command the provider's part of the ioctl(), and a buffer for the response. */
static void
begin(struct ib_uverbs_ioctl_hdr *h, struct uverbs_cmd *c, uint8_t *to, size_t core)
{
	size_t len;

	c->drv_in = in(h, UVERBS_ATTR_UHW_IN, &c->drv_len);
	if (c->drv_in == NULL)
		c->drv_in = to; /* not read, because drv_len is 0 */
	c->out = to;
	(void)out(h, UVERBS_ATTR_UHW_OUT, &len);
	c->out_len = core + len;
}

/* Passes the provider's part of the response to the caller. */
static void
end(struct ib_uverbs_ioctl_hdr *h, const uint8_t *from)
{
	size_t len;
	void *to = out(h, UVERBS_ATTR_UHW_OUT, &len);

	if (to != NULL)
		memcpy(to, from, len);
}

static int
create_cq(struct uverbs_file *f, struct ib_uverbs_ioctl_hdr *h)
{
	struct ib_uverbs_attr *handle = attr(h, UVERBS_ATTR_CREATE_CQ_HANDLE);
	const struct ib_uverbs_attr *channel = attr(h, UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL);
	const struct ib_uverbs_ex_create_cq q = {
		.user_handle = in_u64(h, UVERBS_ATTR_CREATE_CQ_USER_HANDLE),
		.cqe = (uint32_t)in_u64(h, UVERBS_ATTR_CREATE_CQ_CQE),
		.comp_vector = (uint32_t)in_u64(h, UVERBS_ATTR_CREATE_CQ_COMP_VECTOR),
		.comp_channel = channel != NULL ? (int32_t)channel->data_s64 : -1,
		.flags = (uint32_t)in_u64(h, UVERBS_ATTR_CREATE_CQ_FLAGS),
	};
	struct uverbs_cmd c = {.in = (const uint8_t *)&q, .in_len = sizeof(q)};
	struct ib_uverbs_ex_create_cq_resp core;
	uint8_t to[sizeof(core) + MAX_DRV];
	int rc;

	begin(h, &c, to, sizeof(core));
	if (handle == NULL || c.out_len > sizeof(to))
		return EINVAL;
	rc = uverbs_create_cq_ex(f, &c);
	if (rc != 0)
		return rc;
	memcpy(&core, to, sizeof(core));
	handle->data = core.base.cq_handle;
	out_num(h, UVERBS_ATTR_CREATE_CQ_RESP_CQE, core.base.cqe);
	end(h, to + sizeof(core));
	return 0;
}

static int
create_qp(struct uverbs_file *f, struct ib_uverbs_ioctl_hdr *h)
{
	struct ib_uverbs_attr *handle = attr(h, UVERBS_ATTR_CREATE_QP_HANDLE);
	const uint32_t flags = (uint32_t)in_u64(h, UVERBS_ATTR_CREATE_QP_FLAGS);
	struct ib_uverbs_qp_cap cap = {0}, *cap_to;
	struct ib_uverbs_create_qp q;
	struct uverbs_cmd c = {.in = (const uint8_t *)&q, .in_len = sizeof(q)};
	struct ib_uverbs_create_qp_resp core;
	uint8_t to[sizeof(core) + MAX_DRV];
	const void *cap_in;
	size_t len;
	int rc;

	begin(h, &c, to, sizeof(core));
	cap_in = in(h, UVERBS_ATTR_CREATE_QP_CAP, &len);
	if (handle == NULL || cap_in == NULL || len < sizeof(cap) || c.out_len > sizeof(to))
		return EINVAL;
	if ((flags & ~(uint32_t)IB_UVERBS_QP_CREATE_SQ_SIG_ALL) != 0 ||
	    attr(h, UVERBS_ATTR_CREATE_QP_SOURCE_QPN) != NULL ||
	    attr(h, UVERBS_ATTR_CREATE_QP_IND_TABLE_HANDLE) != NULL ||
	    attr(h, UVERBS_ATTR_CREATE_QP_XRCD_HANDLE) != NULL)
		return EOPNOTSUPP;
	memcpy(&cap, cap_in, sizeof(cap));
	q = (struct ib_uverbs_create_qp){
		.user_handle = in_u64(h, UVERBS_ATTR_CREATE_QP_USER_HANDLE),
		.pd_handle = (uint32_t)in_handle(h, UVERBS_ATTR_CREATE_QP_PD_HANDLE),
		.send_cq_handle = (uint32_t)in_handle(h, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE),
		.recv_cq_handle = (uint32_t)in_handle(h, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE),
		.srq_handle = (uint32_t)in_handle(h, UVERBS_ATTR_CREATE_QP_SRQ_HANDLE),
		.is_srq = attr(h, UVERBS_ATTR_CREATE_QP_SRQ_HANDLE) != NULL,
		.max_send_wr = cap.max_send_wr,
		.max_recv_wr = cap.max_recv_wr,
		.max_send_sge = cap.max_send_sge,
		.max_recv_sge = cap.max_recv_sge,
		.max_inline_data = cap.max_inline_data,
		.sq_sig_all = (flags & IB_UVERBS_QP_CREATE_SQ_SIG_ALL) != 0,
		.qp_type = (uint8_t)in_u64(h, UVERBS_ATTR_CREATE_QP_TYPE),
	};
	rc = uverbs_create_qp(f, &c);
	if (rc != 0)
		return rc;
	memcpy(&core, to, sizeof(core));
	handle->data = core.qp_handle;
	out_num(h, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, core.qpn);
	cap_to = out(h, UVERBS_ATTR_CREATE_QP_RESP_CAP, &len);
	cap = (struct ib_uverbs_qp_cap){
		.max_send_wr = core.max_send_wr,
		.max_recv_wr = core.max_recv_wr,
		.max_send_sge = core.max_send_sge,
		.max_recv_sge = core.max_recv_sge,
		.max_inline_data = core.max_inline_data,
	};
	if (cap_to != NULL)
		memcpy(cap_to, &cap, len < sizeof(cap) ? len : sizeof(cap));
	end(h, to + sizeof(core));
	return 0;
}

int
uverbs_import_method(struct uverbs_file *f, struct ib_uverbs_ioctl_hdr *h)
{
	switch (h->object_id << 16 | h->method_id) {
	case UVERBS_OBJECT_DEVICE << 16 | UVERBS_METHOD_QUERY_CONTEXT:
		return query_context(f, h);
	case UVERBS_OBJECT_ASYNC_EVENT << 16 | UVERBS_METHOD_ASYNC_EVENT_ALLOC:
		return async_fd(f, h);
	case UVERBS_OBJECT_PD << 16 | MLX5_IB_METHOD_PD_QUERY:
		return query_pd(f, h);
	case UVERBS_OBJECT_MR << 16 | UVERBS_METHOD_QUERY_MR:
		return query_mr(f, h);
	case UVERBS_OBJECT_DM << 16 | MLX5_IB_METHOD_DM_QUERY:
		return query_dm(f, h);
	case UVERBS_OBJECT_CQ << 16 | UVERBS_METHOD_CQ_CREATE:
		return create_cq(f, h);
	case UVERBS_OBJECT_QP << 16 | UVERBS_METHOD_QP_CREATE:
		return create_qp(f, h);
	default:
		/* The kernel's errno for an unknown method: libibverbs then tries write(). */
		return EPROTONOSUPPORT;
	}
}
