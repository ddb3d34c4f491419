/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>

#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include "golden.h"
#include "live.h"
#include "peer_sysfs.h"
#include "peer_uverbs.h"

#define GIDS 256

struct live_answers live;

/* ---- the kernel */

/*
 * The errno of a file that is not a libibverbs device: libibverbs then uses the older calls.
 * QEMU's emulation of Linux returns another one.
 */
int
ioctl(int fd, unsigned long request, ...)
{
	(void)fd;
	(void)request;
	errno = ENOTTY;
	return -1;
}

static int
get_context(const struct uverbs_cmd *c)
{
	struct mlx5_ib_alloc_ucontext_resp drv;
	const struct ib_uverbs_get_context_resp core = {
		.async_fd = (uint32_t)eventfd(0, EFD_CLOEXEC),
		.num_comp_vectors = 1,
	};

	uverbs_context(&drv);
	drv.tot_bfregs = 16;
	drv.max_sq_desc_sz = 1024;
	/* The kernel resolves Ethernet addresses. */
	drv.cmds_supp_uhw = MLX5_USER_CMDS_SUPP_UHW_CREATE_AH;
	return uverbs_reply(c, &core, sizeof(core), &drv, sizeof(drv));
}

static int
query_device(const struct uverbs_cmd *c)
{
	const struct ib_uverbs_ex_query_device_resp core = {
		.base = {.atomic_cap = IBV_ATOMIC_HCA},
		.response_length = sizeof(core),
	};

	return uverbs_reply(c, &core, c->out_len < sizeof(core) ? c->out_len : sizeof(core), NULL,
			    0);
}

static int
query_port(const struct uverbs_cmd *c)
{
	const struct ib_uverbs_query_port_resp core = {
		.state = 4, /* active */
		.max_mtu = IBV_MTU_4096,
		.active_mtu = IBV_MTU_4096,
		.gid_tbl_len = GIDS,
		.pkey_tbl_len = 1,
		.link_layer = live.ethernet ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND,
	};

	return uverbs_reply(c, &core, sizeof(core), NULL, 0);
}

/* @caps: max_send_wr to max_inline_data; the provider's values stay unchanged. */
static int
create_qp(const struct uverbs_cmd *c, const uint32_t *caps, const uint8_t *drv_in, size_t drv_len,
	  bool ex)
{
	const struct mlx5_ib_create_qp_resp drv = {.bfreg_index = 2};
	const struct ib_uverbs_ex_create_qp_resp core = {
		.base =
			{
				.qp_handle = 1,
				.qpn = live.qpn,
				.max_send_wr = caps[0],
				.max_recv_wr = caps[1],
				.max_send_sge = caps[2],
				.max_recv_sge = caps[3],
				.max_inline_data = caps[4],
			},
		.response_length = sizeof(core),
	};
	struct mlx5_ib_create_qp in = {0};

	memcpy(&in, drv_in, drv_len < sizeof(in) ? drv_len : sizeof(in));
	live.user_index = in.uidx;
	return uverbs_reply(c, &core, ex ? sizeof(core) : sizeof(core.base), &drv, sizeof(drv));
}

static int
create_srq(const struct uverbs_cmd *c)
{
	const struct mlx5_ib_create_srq_resp drv = {.srqn = 7};
	struct ib_uverbs_create_srq_resp core = {.srq_handle = 1, .srqn = 7};
	struct ib_uverbs_create_srq in;

	memcpy(&in, c->in, sizeof(in));
	core.max_wr = in.max_wr;
	core.max_sge = in.max_sge;
	return uverbs_reply(c, &core, sizeof(core), &drv, sizeof(drv));
}

static int
answer(const struct uverbs_cmd *c)
{
	const struct ib_uverbs_reg_mr_resp mr = {1, live.key, live.key};
	const struct ib_uverbs_alloc_mw_resp mw = {1, live.key};
	const struct ib_uverbs_create_ah_resp ah = {1};
	struct mlx5_ib_create_ah_resp resolved = {.response_length = sizeof(resolved)};
	const struct ib_uverbs_destroy_qp_resp gone = {0};
	struct ib_uverbs_ex_create_qp ex;
	struct ib_uverbs_create_qp qp;

	switch (c->command) {
	case IB_USER_VERBS_CMD_GET_CONTEXT:
		return get_context(c);
	case IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_QUERY_DEVICE:
		return query_device(c);
	case IB_USER_VERBS_CMD_QUERY_PORT:
		return query_port(c);
	case IB_USER_VERBS_CMD_REG_MR:
		return uverbs_reply(c, &mr, sizeof(mr), NULL, 0);
	case IB_USER_VERBS_CMD_ALLOC_MW:
		return uverbs_reply(c, &mw, sizeof(mw), NULL, 0);
	case IB_USER_VERBS_CMD_CREATE_AH:
		memcpy(resolved.dmac, live.dmac, sizeof(live.dmac));
		return uverbs_reply(c, &ah, sizeof(ah), &resolved, sizeof(resolved));
	case IB_USER_VERBS_CMD_CREATE_QP:
		memcpy(&qp, c->in, sizeof(qp));
		return create_qp(c, &qp.max_send_wr, c->in + sizeof(qp), c->in_len - sizeof(qp),
				 false);
	case IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_CREATE_QP:
		memcpy(&ex, c->in, sizeof(ex));
		return create_qp(c, &ex.max_send_wr, c->drv_in, c->drv_len, true);
	case IB_USER_VERBS_CMD_CREATE_SRQ:
		return create_srq(c);
	case IB_USER_VERBS_CMD_DESTROY_QP:
		return uverbs_reply(c, &gone, sizeof(gone), NULL, 0);
	case IB_USER_VERBS_CMD_DEREG_MR:
	case IB_USER_VERBS_CMD_DEALLOC_MW:
	case IB_USER_VERBS_CMD_DESTROY_AH:
		return 0;
	default:
		return ENOSYS;
	}
}

/* ---- the device */

void
live_gid_type(unsigned int index, const char *type)
{
	char path[80];

	snprintf(path, sizeof(path), "class/infiniband/mlx5_0/ports/1/gid_attrs/types/%u", index);
	(void)peer_sysfs_put(path, type);
}

int
live_main(const char *name, void (*test)(void **state))
{
	static const struct uverbs_kernel kernel = {.write = answer};
	const struct CMUnitTest tests[] = {{"test_vectors", test, NULL, NULL, NULL}};

	if (uverbs_start(&kernel) != 0) {
		fprintf(stderr, "no /sys for libibverbs: TMPDIR, /tmp?\n");
		return 77;
	}
	atexit(peer_sysfs_end);
	return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

struct ibv_context *
live_open(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx;

	if (list == NULL || list[0] == NULL)
		return NULL;
	ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	return ctx;
}

bool
live_ready(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};

	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE) != 0)
		return false;
	attr.qp_state = IBV_QPS_RTS;
	return ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0;
}

/* ---- completions */

bool
live_cq_create(struct live_cq *c, struct ibv_context *ctx)
{
	struct mlx5dv_obj obj;

	c->ci = 0;
	c->cq = ibv_create_cq(ctx, 63, NULL, NULL, 0);
	obj.cq.in = c->cq;
	obj.cq.out = &c->dv;
	return c->cq != NULL && mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ) == 0 && c->dv.cqe_size == 64;
}

bool
live_cq_done(struct live_cq *c, uint32_t user_index, uint16_t index, bool receive)
{
	struct mlx5_cqe64 *cqe = (struct mlx5_cqe64 *)c->dv.buf + (c->ci & (c->dv.cqe_cnt - 1));
	const bool owner = (c->ci & c->dv.cqe_cnt) != 0;
	struct ibv_wc wc;

	memset(cqe, 0, sizeof(*cqe));
	cqe->srqn_uidx = htobe32(user_index);
	cqe->sop_drop_qpn = htobe32((uint32_t)MLX5_OPCODE_SEND << 24);
	cqe->wqe_counter = htobe16(index);
	cqe->op_own = (uint8_t)((receive ? MLX5_CQE_RESP_SEND : MLX5_CQE_REQ) << 4 | owner);
	c->ci++;
	return ibv_poll_cq(c->cq, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS;
}
