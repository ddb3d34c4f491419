/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Commands by write(): the table of all commands, and the functions that execute short commands. */
#include <errno.h>
#include <string.h>

#include <infiniband/verbs.h>
#include <rdma/mlx5-abi.h>

#include "uverbs_queue.h"

static int
alloc_pd(struct uverbs_file *f, const struct uverbs_cmd *c)
{
	struct ib_uverbs_alloc_pd_resp core = {0};
	struct mlx5_ib_alloc_pd_resp drv;
	struct mlx5_pd *pd;
	int ret = f->soft->cmd->pd_alloc(f->soft, &pd);

	if (ret != 0)
		return -ret;
	core.pd_handle = uverbs_keep(f, UV_PD, pd);
	if (core.pd_handle == 0) {
		(void)f->soft->cmd->pd_free(f->soft, pd);
		return ENOMEM;
	}
	drv.pdn = pd->pdn;
	return uverbs_reply(c, &core, sizeof(core), &drv, sizeof(drv));
}

static int
reg_mr(struct uverbs_file *f, const struct uverbs_cmd *c)
{
	struct ib_uverbs_reg_mr_resp core = {0};
	struct mlx5_mr_attr attr;
	struct ib_uverbs_reg_mr q;
	struct mlx5_pd *pd;
	struct mlx5_mr *mr;
	int ret;

	memcpy(&q, c->in, sizeof(q));
	pd = uverbs_find(f, UV_PD, q.pd_handle);
	if (pd == NULL)
		return EINVAL;
	attr = mlx5_mr_mem((void *)(uintptr_t)q.start, q.length, q.access_flags);
	attr.iova = q.hca_va;
	ret = f->soft->cmd->mr_reg(f->soft, pd, &attr, &mr);
	if (ret != 0)
		return -ret;
	core.mr_handle = uverbs_keep(f, UV_MR, mr);
	if (core.mr_handle == 0) {
		(void)f->soft->cmd->mr_dereg(f->soft, mr);
		return ENOMEM;
	}
	core.lkey = mr->lkey;
	core.rkey = mr->rkey;
	return uverbs_reply(c, &core, sizeof(core), NULL, 0);
}

static int
rereg_mr(struct uverbs_file *f, const struct uverbs_cmd *c)
{
	struct ib_uverbs_rereg_mr_resp core = {0};
	struct ib_uverbs_rereg_mr q;
	struct mlx5_mr *mr;
	struct mlx5_pd *pd;
	int ret;

	memcpy(&q, c->in, sizeof(q));
	mr = uverbs_find(f, UV_MR, q.mr_handle);
	pd = uverbs_find(f, UV_PD, q.pd_handle);
	if (mr == NULL || ((q.flags & IBV_REREG_MR_CHANGE_PD) != 0 && pd == NULL))
		return EINVAL;
	ret = f->soft->cmd->mr_rereg(f->soft, mr, q.flags, pd, (void *)(uintptr_t)q.start, q.length,
				     q.access_flags);
	if (ret != 0)
		return -ret;
	core.lkey = mr->lkey;
	core.rkey = mr->rkey;
	return uverbs_reply(c, &core, sizeof(core), NULL, 0);
}

static int
alloc_mw(struct uverbs_file *f, const struct uverbs_cmd *c)
{
	struct ib_uverbs_alloc_mw_resp core = {0};
	struct ib_uverbs_alloc_mw q;
	struct mlx5_pd *pd;
	struct mlx5_mw *mw;
	int ret;

	memcpy(&q, c->in, sizeof(q));
	pd = uverbs_find(f, UV_PD, q.pd_handle);
	if (pd == NULL)
		return EINVAL;
	ret = f->soft->cmd->mw_alloc(f->soft, pd, q.mw_type, &mw);
	if (ret != 0)
		return -ret;
	core.mw_handle = uverbs_keep(f, UV_MW, mw);
	if (core.mw_handle == 0) {
		(void)f->soft->cmd->mw_free(f->soft, mw);
		return ENOMEM;
	}
	core.rkey = mw->rkey;
	return uverbs_reply(c, &core, sizeof(core), NULL, 0);
}

static int
create_ah(struct uverbs_file *f, const struct uverbs_cmd *c)
{
	struct ib_uverbs_create_ah_resp core;
	struct mlx5_ib_create_ah_resp drv = {.response_length = sizeof(drv)};
	struct ib_uverbs_create_ah q;
	struct mlx5_pd *pd;
	struct mlx5_port port;
	struct mlx5_av av = {0};
	int ret;

	memcpy(&q, c->in, sizeof(q));
	pd = uverbs_find(f, UV_PD, q.pd_handle);
	if (pd == NULL)
		return EINVAL;
	ret = f->soft->cmd->port_query(f->soft, q.attr.port_num, &port);
	if (ret == 0 && port.link_layer == BB_LINK_ETHERNET) {
		ret = f->soft->cmd->av_resolve(f->soft, pd, q.attr.port_num, q.attr.grh.sgid_index,
					       q.attr.grh.dgid, &av);
		memcpy(drv.dmac, av.dmac, sizeof(av.dmac));
	}
	if (ret != 0)
		return -ret;
	core.ah_handle = uverbs_keep(f, UV_AH, pd);
	if (core.ah_handle == 0)
		return ENOMEM;
	return uverbs_reply(c, &core, sizeof(core), &drv, sizeof(drv));
}

static int
create_channel(struct uverbs_file *f, const struct uverbs_cmd *c)
{
	struct ib_uverbs_create_comp_channel_resp core = {0};
	int fd = uverbs_events_new(f, UV_COMP);

	if (fd < 0)
		return -fd;
	core.fd = (uint32_t)fd;
	return uverbs_reply(c, &core, sizeof(core), NULL, 0);
}

/* ---- Destruction */

static int
destroy(struct uverbs_file *f, const struct uverbs_cmd *c, enum uverbs_kind kind)
{
	uint32_t handle;

	memcpy(&handle, c->in, sizeof(handle));
	return uverbs_destroy(f, kind, handle);
}

/* As in the kernel, the AHs of a PD count as its users. The device does not know them. */
static int
dealloc_pd(struct uverbs_file *f, const struct uverbs_cmd *c)
{
	struct ib_uverbs_dealloc_pd q;
	const struct mlx5_pd *pd;
	uint32_t i;

	memcpy(&q, c->in, sizeof(q));
	pd = uverbs_find(f, UV_PD, q.pd_handle);
	for (i = 1; pd != NULL && i < f->n_handles; i++)
		if (f->handles[i].kind == UV_AH && f->handles[i].p == pd)
			return EBUSY;
	return uverbs_destroy(f, UV_PD, q.pd_handle);
}

static int
dereg_mr(struct uverbs_file *f, const struct uverbs_cmd *c)
{
	return destroy(f, c, UV_MR);
}

static int
dealloc_mw(struct uverbs_file *f, const struct uverbs_cmd *c)
{
	return destroy(f, c, UV_MW);
}

static int
destroy_ah(struct uverbs_file *f, const struct uverbs_cmd *c)
{
	return destroy(f, c, UV_AH);
}

/*
 * Destroys a CQ, QP or SRQ. The response has the number of events that were reported for the
 * object. libibverbs then waits until the program has acknowledged all of these events.
 */
static int
destroy_queue(struct uverbs_file *f, const struct uverbs_cmd *c, enum uverbs_kind kind)
{
	struct ib_uverbs_destroy_cq_resp cq = {0};
	struct ib_uverbs_destroy_qp_resp qp;
	struct ib_uverbs_destroy_cq q;
	const struct uverbs_queue *p;
	int rc;

	memcpy(&q, c->in, sizeof(q));
	p = uverbs_find(f, kind, q.cq_handle);
	if (p == NULL)
		return EINVAL;
	if (kind == UV_QP && uverbs_qp_has_groups(f, q.cq_handle))
		return EBUSY;
	cq.comp_events_reported = p->comps;
	cq.async_events_reported = p->events;
	qp.events_reported = p->events;
	rc = uverbs_destroy(f, kind, q.cq_handle);
	if (rc != 0)
		return rc;
	return kind == UV_CQ ? uverbs_reply(c, &cq, sizeof(cq), NULL, 0)
			     : uverbs_reply(c, &qp, sizeof(qp), NULL, 0);
}

static int
destroy_cq(struct uverbs_file *f, const struct uverbs_cmd *c)
{
	return destroy_queue(f, c, UV_CQ);
}

static int
destroy_qp(struct uverbs_file *f, const struct uverbs_cmd *c)
{
	return destroy_queue(f, c, UV_QP);
}

static int
destroy_srq(struct uverbs_file *f, const struct uverbs_cmd *c)
{
	return destroy_queue(f, c, UV_SRQ);
}

/* ---- The table */

#define EX(command_)  (IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_##command_)
#define OLD(command_) IB_USER_VERBS_CMD_##command_

/* A command, and the minimum lengths in bytes of its request and of its response. */
static const struct {
	uint32_t command;
	uint32_t in, out;
	int (*fn)(struct uverbs_file *f, const struct uverbs_cmd *c);
} commands[] = {
#define IN(name_)  sizeof(struct ib_uverbs_##name_)
#define OUT(name_) sizeof(struct ib_uverbs_##name_##_resp)
	{OLD(GET_CONTEXT), IN(get_context), OUT(get_context), uverbs_get_context},
	{OLD(QUERY_DEVICE), IN(query_device), OUT(query_device), uverbs_query_device},
	{EX(QUERY_DEVICE), IN(ex_query_device), OUT(query_device), uverbs_query_device_ex},
	{OLD(QUERY_PORT), IN(query_port), OUT(query_port), uverbs_query_port},
	{OLD(ALLOC_PD), IN(alloc_pd), OUT(alloc_pd), alloc_pd},
	{OLD(DEALLOC_PD), IN(dealloc_pd), 0, dealloc_pd},
	{OLD(REG_MR), IN(reg_mr), OUT(reg_mr), reg_mr},
	{OLD(REREG_MR), IN(rereg_mr), OUT(rereg_mr), rereg_mr},
	{OLD(DEREG_MR), IN(dereg_mr), 0, dereg_mr},
	{OLD(ALLOC_MW), IN(alloc_mw), OUT(alloc_mw), alloc_mw},
	{OLD(DEALLOC_MW), IN(dealloc_mw), 0, dealloc_mw},
	{OLD(CREATE_AH), IN(create_ah), OUT(create_ah), create_ah},
	{OLD(DESTROY_AH), IN(destroy_ah), 0, destroy_ah},
	{OLD(CREATE_COMP_CHANNEL), IN(create_comp_channel), OUT(create_comp_channel),
	 create_channel},
	{OLD(CREATE_CQ), IN(create_cq), OUT(create_cq), uverbs_create_cq},
	{EX(CREATE_CQ), IN(ex_create_cq), OUT(ex_create_cq), uverbs_create_cq_ex},
	{OLD(RESIZE_CQ), IN(resize_cq), OUT(resize_cq), uverbs_resize_cq},
	{EX(MODIFY_CQ), IN(ex_modify_cq), 0, uverbs_modify_cq},
	{OLD(DESTROY_CQ), IN(destroy_cq), OUT(destroy_cq), destroy_cq},
	{OLD(CREATE_SRQ), IN(create_srq), OUT(create_srq), uverbs_create_srq},
	{OLD(MODIFY_SRQ), IN(modify_srq), 0, uverbs_modify_srq},
	{OLD(QUERY_SRQ), IN(query_srq), OUT(query_srq), uverbs_query_srq},
	{OLD(DESTROY_SRQ), IN(destroy_srq), OUT(destroy_srq), destroy_srq},
	{OLD(CREATE_QP), IN(create_qp), OUT(create_qp), uverbs_create_qp},
	{EX(CREATE_QP), IN(ex_create_qp), OUT(ex_create_qp), uverbs_create_qp_ex},
	{OLD(MODIFY_QP), IN(modify_qp), 0, uverbs_modify_qp},
	{EX(MODIFY_QP), IN(ex_modify_qp), OUT(ex_modify_qp), uverbs_modify_qp_ex},
	{OLD(QUERY_QP), IN(query_qp), OUT(query_qp), uverbs_query_qp},
	{OLD(DESTROY_QP), IN(destroy_qp), OUT(destroy_qp), destroy_qp},
	{OLD(ATTACH_MCAST), IN(attach_mcast), 0, uverbs_attach_mcast},
	{OLD(DETACH_MCAST), IN(detach_mcast), 0, uverbs_detach_mcast},
};

int
uverbs_command(struct uverbs_file *f, struct uverbs_cmd *c)
{
	unsigned int i;

	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (commands[i].command != c->command)
			continue;
		/* Same checks as verify_hdr() of Linux drivers/infiniband/core/uverbs_main.c. */
		if (c->in_len < commands[i].in)
			return EINVAL;
		if (c->out_len < commands[i].out)
			return ENOSPC;
		if (commands[i].out != 0 && c->out == NULL)
			return EFAULT;
		if ((c->command & IB_USER_VERBS_CMD_FLAG_EXTENDED) == 0)
			uverbs_cmd_split(c, commands[i].in);
		return commands[i].fn(f, c);
	}
	return EOPNOTSUPP;
}
