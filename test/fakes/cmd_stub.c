/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "bare_eal.h"
#include "cmd_stub.h"

/* An implementation of a whole interface uses few of the parameters. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

struct stub stub;

static const struct mlx5_cmd_if stub_if;

void
stub_reset(void)
{
	uint8_t *g = stub.general;

	memset(&stub, 0, sizeof(stub));
	bb_prm_set(g, BB_PRM_HCA_LOG_MAX_QP_SZ, 15);
	bb_prm_set(g, BB_PRM_HCA_LOG_MAX_QP, 17);
	bb_prm_set(g, BB_PRM_HCA_LOG_MAX_RMP, 10);
	bb_prm_set(g, BB_PRM_HCA_LOG_MAX_SRQ_SZ, 15);
	bb_prm_set(g, BB_PRM_HCA_LOG_MAX_CQ_SZ, 22);
	bb_prm_set(g, BB_PRM_HCA_LOG_MAX_CQ, 16);
	bb_prm_set(g, BB_PRM_HCA_LOG_MAX_MRW_SZ, 40);
	bb_prm_set(g, BB_PRM_HCA_LOG_MAX_MKEY, 20);
	bb_prm_set(g, BB_PRM_HCA_LOG_MAX_RA_REQ_QP, 4);
	bb_prm_set(g, BB_PRM_HCA_LOG_MAX_RA_RES_QP, 5);
	bb_prm_set(g, BB_PRM_HCA_NUM_PORTS, 1);
	bb_prm_set(g, BB_PRM_HCA_LOG_MAX_MSG, 30);
	bb_prm_set(g, BB_PRM_HCA_CQE_VERSION, 1);
	bb_prm_set(g, BB_PRM_HCA_ROCE, 1);
	bb_prm_set(g, BB_PRM_HCA_ATOMIC, 1);
	bb_prm_set(g, BB_PRM_HCA_BF, 1);
	bb_prm_set(g, BB_PRM_HCA_LOG_BF_REG_SIZE, 9);
	bb_prm_set(g, BB_PRM_HCA_MAX_WQE_SZ_SQ, 1024);
	bb_prm_set(g, BB_PRM_HCA_MAX_WQE_SZ_RQ, 512);
	bb_prm_set(stub.atomic, BB_PRM_ATOMIC_CAP_MODE, 3);
	bb_prm_set(stub.atomic, BB_PRM_ATOMIC_CAP_SIZE_QP, 1 << 3);
	bb_prm_set(stub.atomic, BB_PRM_ATOMIC_CAP_REQ_8B_ENDIANNESS_MODE, 1);
	bb_prm_set(stub.roce, BB_PRM_ROCE_CAP_R_ROCE_MIN_SRC_UDP_PORT, 0xc000);
	bb_prm_set(stub.roce, BB_PRM_ROCE_CAP_R_ROCE_MAX_SRC_UDP_PORT, 0xffff);
	stub.port = (struct mlx5_port){.pkeys = 8,
				       .state = BB_PORT_ACTIVE,
				       .link_layer = BB_LINK_ETHERNET,
				       .max_mtu = 4096,
				       .active_mtu = 4096,
				       .gids = STUB_GIDS};
	stub.gids[0].type = BB_GID_ROCE_V1;
	stub.gids[1].type = BB_GID_ROCE_V2;
	stub.next_id = STUB_FIRST_ID;
	stub.next_umem = 0x700;
}

unsigned int
stub_alive(void)
{
	return stub.ctxs + stub.objs + stub.umems + stub.uars + stub.pds + stub.mrs;
}

static const struct stub_box *
last_box(uint16_t op)
{
	for (unsigned int i = stub.n_boxes; i > 0; i--)
		if (stub.boxes[i - 1].op == op)
			return &stub.boxes[i - 1];
	return NULL;
}

const uint8_t *
stub_box(uint16_t op)
{
	const struct stub_box *b = last_box(op);

	return b != NULL ? b->in : NULL;
}

size_t
stub_box_len(uint16_t op)
{
	const struct stub_box *b = last_box(op);

	return b != NULL ? b->len : 0;
}

unsigned int
stub_count(uint16_t op)
{
	unsigned int i, n = 0;

	for (i = 0; i < stub.n_boxes; i++)
		n += stub.boxes[i].op == op;
	return n;
}

void
stub_event(uint16_t type, uint64_t cookie, uint32_t port)
{
	if (stub.n_events < STUB_EVENTS)
		stub.events[stub.n_events++] =
			(struct mlx5_cmd_event){.type = type, .cookie = cookie, .port = port};
}

int
stub_eal_init(const char *program)
{
	return eal_start_or_skip(program, "0,1", EAL_OPTIONS(EAL_BARE("128"), "--log-level=5"));
}

/* Records a mailbox. Returns 0, or the failure that the test requested. */
static int
take(const void *in, size_t inlen, void *out)
{
	uint16_t op = (uint16_t)bb_prm_get(in, BB_PRM_CMD_OPCODE);
	struct stub_box *b;

	if (stub.n_boxes < STUB_BOXES) {
		b = &stub.boxes[stub.n_boxes++];
		b->op = op;
		b->len = inlen;
		memcpy(b->in, in, RTE_MIN(inlen, (size_t)STUB_BOX_SIZE));
	}
	if (op != stub.fail_op)
		return 0;
	if (stub.fail_status == 0)
		return stub.fail_errno;
	bb_prm_set(out, BB_PRM_CMD_STATUS, stub.fail_status);
	bb_prm_set(out, BB_PRM_CMD_SYNDROME, 0x1234);
	return -EREMOTEIO;
}

static int
stub_list(struct bb_dev_info *info, unsigned int n)
{
	if (n > 0) {
		memset(info, 0, sizeof(*info));
		snprintf(info->name, sizeof(info->name), "stub0");
	}
	return 1;
}

static int
stub_open(const char *name, const char *args, struct mlx5_ctx **out)
{
	struct mlx5_ctx *ctx;

	if (strcmp(name, "stub0") != 0)
		return -ENODEV;
	ctx = calloc(1, sizeof(*ctx));
	if (ctx == NULL)
		return -ENOMEM;
	ctx->cmd = &stub_if;
	ctx->cq_resize = true;
	snprintf(ctx->name, sizeof(ctx->name), "stub0");
	ctx->comp_vectors = STUB_EQS;
	stub.ctxs++;
	*out = ctx;
	return 0;
}

static int
stub_close(struct mlx5_ctx *ctx)
{
	if (stub.close_errno != 0)
		return stub.close_errno;
	stub.ctxs--;
	free(ctx);
	return 0;
}

static int
stub_general(struct mlx5_ctx *ctx, const void *in, size_t inlen, void *out, size_t outlen)
{
	uint32_t type = bb_prm_get(in, BB_PRM_CMD_OP_MOD) >> 1;
	const uint8_t *cap = type == BB_PRM_CAP_GENERAL          ? stub.general
			     : type == BB_PRM_CAP_ODP            ? stub.odp
			     : type == BB_PRM_CAP_ATOMIC         ? stub.atomic
			     : type == BB_PRM_CAP_DEV_MEM        ? stub.dev_mem
			     : type == BB_PRM_CAP_DEV_EVENT      ? stub.dev_event
			     : type == BB_PRM_CAP_PORT_SELECTION ? stub.port_selection
								 : stub.roce;
	int ret = take(in, inlen, out);

	if (ret == 0 && bb_prm_get(in, BB_PRM_CMD_OPCODE) == BB_PRM_OP_QUERY_LAG)
		memcpy(out, stub.lag, RTE_MIN(outlen, sizeof(stub.lag)));
	else if (ret == 0)
		memcpy((uint8_t *)out + BB_PRM_HCA_CAP_OUT_CAPS, cap,
		       outlen - BB_PRM_HCA_CAP_OUT_CAPS);
	return ret;
}

static int
stub_obj_create(struct mlx5_ctx *ctx, const void *in, size_t inlen, void *out, size_t outlen,
		struct mlx5_obj **out_obj)
{
	struct mlx5_obj *obj;
	int ret = take(in, inlen, out);

	if (ret != 0)
		return ret;
	obj = calloc(1, sizeof(*obj));
	if (obj == NULL)
		return -ENOMEM;
	obj->ctx = ctx;
	/* The number of a created object is in dword 8 of all these outputs, up to bit 31. */
	bb_prm_set(out, BB_PRM_CREATE_QP_OUT_QPN, stub.next_id++);
	stub.objs++;
	*out_obj = obj;
	return 0;
}

static int
stub_obj_modify(struct mlx5_obj *obj, const void *in, size_t inlen, void *out, size_t outlen)
{
	return take(in, inlen, out);
}

static int
stub_obj_query(struct mlx5_obj *obj, const void *in, size_t inlen, void *out, size_t outlen)
{
	int ret = take(in, inlen, out);

	if (ret != 0)
		return ret;
	if (bb_prm_get(in, BB_PRM_CMD_OPCODE) == BB_PRM_OP_QUERY_QP)
		memcpy(out, stub.query_qpc, RTE_MIN(outlen, sizeof(stub.query_qpc)));
	else
		memcpy(out, stub.counters, RTE_MIN(outlen, sizeof(stub.counters)));
	return 0;
}

static int
stub_obj_destroy(struct mlx5_obj *obj)
{
	stub.objs--;
	free(obj);
	return 0;
}

static int
stub_umem_reg(struct mlx5_ctx *ctx, void *addr, size_t len, uint32_t access, uint64_t pgsz,
	      struct mlx5_umem **umem)
{
	if (stub.umem_errno != 0)
		return stub.umem_errno;
	*umem = calloc(1, sizeof(**umem));
	if (*umem == NULL)
		return -ENOMEM;
	(*umem)->id = stub.next_umem++;
	stub.umems++;
	stub.umem_addr = addr;
	stub.umem_len = len;
	stub.umem_access = access;
	stub.umem_pgsz = pgsz;
	return 0;
}

static int
stub_umem_dereg(struct mlx5_ctx *ctx, struct mlx5_umem *umem)
{
	stub.umems--;
	free(umem);
	return 0;
}

static int
stub_uar_alloc(struct mlx5_ctx *ctx, enum mlx5_uar_type type, struct mlx5_uar **uar)
{
	uint8_t *page;

	if (stub.no_uar)
		return -ENOSPC;
	if (type == MLX5_UAR_BF ? stub.no_bf : stub.no_nc)
		return -EOPNOTSUPP;
	*uar = calloc(1, sizeof(**uar));
	page = aligned_alloc(4096, 4096);
	if (*uar == NULL || page == NULL) {
		free(*uar);
		free(page);
		return -ENOMEM;
	}
	memset(page, 0, 4096);
	(*uar)->base_addr = page;
	(*uar)->reg_addr = page + 0x800;
	(*uar)->page_id = 0x30 + stub.uars++;
	return 0;
}

static int
stub_uar_free(struct mlx5_ctx *ctx, struct mlx5_uar *uar)
{
	stub.uars--;
	free(uar->base_addr);
	free(uar);
	return 0;
}

static int
stub_query_eqn(struct mlx5_ctx *ctx, uint32_t vector, uint32_t *eqn)
{
	*eqn = STUB_EQN + vector;
	return stub.eqn_errno;
}

static int
stub_pd_alloc(struct mlx5_ctx *ctx, struct mlx5_pd **pd)
{
	if (stub.pd_errno != 0)
		return stub.pd_errno;
	*pd = calloc(1, sizeof(**pd));
	if (*pd == NULL)
		return -ENOMEM;
	(*pd)->pdn = STUB_PDN;
	stub.pds++;
	return 0;
}

static int
stub_pd_free(struct mlx5_ctx *ctx, struct mlx5_pd *pd)
{
	stub.pds--;
	free(pd);
	return 0;
}

static int
stub_mr_reg(struct mlx5_ctx *ctx, struct mlx5_pd *pd, const struct mlx5_mr_attr *attr,
	    struct mlx5_mr **mr)
{
	if (stub.mr_errno != 0)
		return stub.mr_errno;
	*mr = calloc(1, sizeof(**mr));
	if (*mr == NULL)
		return -ENOMEM;
	(*mr)->lkey = 0x11200;
	(*mr)->rkey = 0x11200;
	stub.mr_access = attr->access;
	stub.mrs++;
	return 0;
}

static int
stub_mr_dereg(struct mlx5_ctx *ctx, struct mlx5_mr *mr)
{
	stub.mrs--;
	free(mr);
	return 0;
}

static int
stub_mr_rereg(struct mlx5_ctx *ctx, struct mlx5_mr *mr, uint32_t flags, struct mlx5_pd *pd,
	      void *addr, uint64_t len, uint32_t access)
{
	if (stub.mr_errno != 0)
		return stub.mr_errno;
	stub.mr_access = access;
	mr->lkey += 0x100;
	mr->rkey = mr->lkey;
	return 0;
}

static int
stub_port_query(struct mlx5_ctx *ctx, uint32_t port, struct mlx5_port *attr)
{
	*attr = stub.port;
	return stub.port_errno;
}

static int
stub_gid_query(struct mlx5_ctx *ctx, uint32_t port, uint32_t index, struct bb_gid *gid)
{
	if (index >= STUB_GIDS)
		return -EINVAL;
	*gid = stub.gids[index];
	return 0;
}

static int
stub_pkey_query(struct mlx5_ctx *ctx, uint32_t port, uint32_t index, uint16_t *pkey)
{
	*pkey = (uint16_t)(0x8000 | index);
	return 0;
}

static int
stub_av_resolve(struct mlx5_ctx *ctx, struct mlx5_pd *pd, uint32_t port, uint32_t sgid_index,
		const uint8_t dgid[16], struct mlx5_av *av)
{
	memcpy(av->dmac, stub.dmac, sizeof(av->dmac));
	return stub.av_errno;
}

static int
stub_event_subscribe(struct mlx5_ctx *ctx, struct mlx5_obj *obj, const uint16_t *types,
		     unsigned int n, uint64_t cookie)
{
	/* The kernel rejects an empty list. */
	if (n == 0)
		return -EINVAL;
	if (obj != NULL) {
		stub.cookie = cookie;
		stub.types = 0;
		for (unsigned int i = 0; i < n; i++)
			stub.types |= UINT64_C(1) << types[i];
	}
	return stub.subscribe_errno;
}

static int
stub_event_get(struct mlx5_ctx *ctx, struct mlx5_cmd_event *event)
{
	if (stub.next_event == stub.n_events)
		return -EAGAIN;
	*event = stub.events[stub.next_event++];
	return 0;
}

static void
run(void *arg)
{
	/* In the UAR page, so that ASan reports progress on a device whose page was freed. */
	(*(uint32_t *)arg)++;
	__atomic_add_fetch(&stub.progressed, 1, __ATOMIC_RELAXED);
}

static void
stub_progress_of(struct mlx5_ctx *ctx, struct mlx5_uar *uar, void (**fn)(void *arg), void **arg)
{
	*fn = stub.inline_progress ? run : NULL;
	*arg = uar->base_addr;
}

static const struct mlx5_cmd_if stub_if = {
	.name = "stub",
	.list = stub_list,
	.open = stub_open,
	.close = stub_close,
	.general = stub_general,
	.obj_create = stub_obj_create,
	.obj_modify = stub_obj_modify,
	.obj_query = stub_obj_query,
	.obj_destroy = stub_obj_destroy,
	.umem_reg = stub_umem_reg,
	.umem_dereg = stub_umem_dereg,
	.uar_alloc = stub_uar_alloc,
	.uar_free = stub_uar_free,
	.query_eqn = stub_query_eqn,
	.pd_alloc = stub_pd_alloc,
	.pd_free = stub_pd_free,
	.mr_reg = stub_mr_reg,
	.mr_dereg = stub_mr_dereg,
	.mr_rereg = stub_mr_rereg,
	.port_query = stub_port_query,
	.gid_query = stub_gid_query,
	.pkey_query = stub_pkey_query,
	.av_resolve = stub_av_resolve,
	.event_subscribe = stub_event_subscribe,
	.event_get = stub_event_get,
	.progress_of = stub_progress_of,
};
MLX5_CMD_REGISTER(stub_if)
