/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The mlx5 side of the kernel's verbs, over the software ConnectX: what libmlx5 asks by ioctl()
 * and write() becomes a call of the software device's command interface. So the driver's own
 * rdma-core calls run in rdma-core as it is installed, and the device behind is as strict as ever.
 *
 * Methods and attributes: <rdma/mlx5_user_ioctl_cmds.h>, <rdma/ib_user_ioctl_cmds.h>; commands:
 * <rdma/ib_user_verbs.h>, <rdma/mlx5-abi.h>. What is not here is refused as by a kernel that does
 * not know it. UVERBS_TRACE in the environment lists the calls.
 */
#define _GNU_SOURCE
#undef _FILE_OFFSET_BITS /* it would give pread() and others other names */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <rdma/rdma_user_ioctl.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include "mlx5_cmd.h"
#include "peer_uverbs.h"
#include "soft_ctl.h"

#define MAX_HANDLES 65536
#define EQE_TYPE    1 /* byte of an EQE */
#define EQE_BYTES   64
#define MAX_PAGES   4096
#define MAX_DM      (1u << 20)
/* Where things are mapped: of a UAR its handle, of device memory as libmlx5 makes it. */
#define MAP_UAR   ((uint64_t)1 << 40)
#define MAP_SHIFT 20
#define MAP_DM    8 /* the command, bits 8 to 15 of the page: MLX5_IB_MMAP_DEVICE_MEM */
/* ib_user_verbs.h has no names for them. */
#define PORT_DOWN   1
#define PORT_ACTIVE 4

enum kind {
	FREE,
	PD,
	OBJ,
	UMEM,
	UAR,
	DM,
	MR,
	MW,
	AH,
	EVENTS,
	CHANNEL
};

static struct handle {
	enum kind kind;
	void *p;
	int fd; /* of EVENTS and CHANNEL */
} handles[MAX_HANDLES];
static unsigned int used = 1;

static struct mlx5_ctx *soft;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* 0: there are too many. */
static uint32_t
keep(enum kind kind, void *p)
{
	unsigned int i;

	for (i = 1; i < MAX_HANDLES; i++) {
		const unsigned int at = (used + i) % MAX_HANDLES;

		if (at == 0 || handles[at].kind != FREE)
			continue;
		handles[at] = (struct handle){.kind = kind, .p = p, .fd = -1};
		used = at;
		return at;
	}
	return 0;
}

static void *
get(enum kind kind, uint64_t handle)
{
	if (handle == 0 || handle >= MAX_HANDLES || handles[handle].kind != kind)
		return NULL;
	return handles[handle].p;
}

/* ---- attributes of an ioctl() */

static struct ib_uverbs_attr *
attr(struct ib_uverbs_ioctl_hdr *h, uint16_t id)
{
	unsigned int i;

	for (i = 0; i < h->num_attrs; i++)
		if (h->attrs[i].attr_id == id)
			return &h->attrs[i];
	return NULL;
}

/* Up to 8 bytes are in the attribute itself. */
static const void *
in(struct ib_uverbs_ioctl_hdr *h, uint16_t id, size_t *len)
{
	struct ib_uverbs_attr *a = attr(h, id);

	*len = a != NULL ? a->len : 0;
	if (a == NULL)
		return NULL;
	return a->len <= sizeof(a->data) ? (void *)&a->data : (void *)(uintptr_t)a->data;
}

static uint64_t
in_u64(struct ib_uverbs_ioctl_hdr *h, uint16_t id)
{
	uint64_t v = 0;
	size_t len;
	const void *p = in(h, id, &len);

	if (p != NULL)
		memcpy(&v, p, len < sizeof(v) ? len : sizeof(v));
	return v;
}

static uint64_t
in_handle(struct ib_uverbs_ioctl_hdr *h, uint16_t id)
{
	struct ib_uverbs_attr *a = attr(h, id);

	return a != NULL ? a->data : 0;
}

static void *
out(struct ib_uverbs_ioctl_hdr *h, uint16_t id, size_t *len)
{
	struct ib_uverbs_attr *a = attr(h, id);

	*len = a != NULL ? a->len : 0;
	if (a == NULL)
		return NULL;
	a->flags |= UVERBS_ATTR_F_VALID_OUTPUT;
	return (void *)(uintptr_t)a->data;
}

static void
out_num(struct ib_uverbs_ioctl_hdr *h, uint16_t id, uint64_t v)
{
	size_t len;
	void *p = out(h, id, &len);

	if (p != NULL)
		memcpy(p, &v, len < sizeof(v) ? len : sizeof(v));
}

/* A handle of what was made goes out. */
static int
out_handle(struct ib_uverbs_ioctl_hdr *h, uint16_t id, enum kind kind, void *p)
{
	struct ib_uverbs_attr *a = attr(h, id);
	uint32_t handle = a != NULL ? keep(kind, p) : 0;

	if (handle == 0)
		return ENOMEM;
	a->data = handle;
	return 0;
}

/* ---- methods */

static int
devx_other(struct ib_uverbs_ioctl_hdr *h)
{
	size_t inlen, outlen;
	const void *cmd = in(h, MLX5_IB_ATTR_DEVX_OTHER_CMD_IN, &inlen);
	void *res = out(h, MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT, &outlen);

	if (cmd == NULL || res == NULL)
		return EINVAL;
	return -soft->cmd->general(soft, cmd, inlen, res, outlen);
}

static int
obj_create(struct ib_uverbs_ioctl_hdr *h)
{
	size_t inlen, outlen;
	const void *cmd = in(h, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN, &inlen);
	void *res = out(h, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, &outlen);
	struct mlx5_obj *obj;
	int ret;

	if (cmd == NULL || res == NULL)
		return EINVAL;
	ret = soft->cmd->obj_create(soft, cmd, inlen, res, outlen, &obj);
	if (ret != 0)
		return -ret;
	return out_handle(h, MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE, OBJ, obj);
}

static int
obj_change(struct ib_uverbs_ioctl_hdr *h, bool modify)
{
	const uint16_t base =
		modify ? MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE : MLX5_IB_ATTR_DEVX_OBJ_QUERY_HANDLE;
	struct mlx5_obj *obj = get(OBJ, in_handle(h, base));
	size_t inlen, outlen;
	const void *cmd = in(h, base + 1, &inlen);
	void *res = out(h, base + 2, &outlen);

	if (obj == NULL || cmd == NULL || res == NULL)
		return EINVAL;
	if (modify)
		return -soft->cmd->obj_modify(obj, cmd, inlen, res, outlen);
	return -soft->cmd->obj_query(obj, cmd, inlen, res, outlen);
}

/* Destroy what @handle names. */
static int
destroy(enum kind kind, uint64_t handle)
{
	void *p = get(kind, handle);
	int ret;

	if (p == NULL)
		return EINVAL;
	switch (kind) {
	case PD:
		ret = soft->cmd->pd_free(soft, p);
		break;
	case OBJ:
		ret = soft->cmd->obj_destroy(p);
		break;
	case UMEM:
		ret = soft->cmd->umem_dereg(soft, p);
		break;
	case UAR:
		ret = soft->cmd->uar_free(soft, p);
		break;
	case DM:
		ret = soft->cmd->dm_free(soft, p);
		break;
	case MR:
		ret = soft->cmd->mr_dereg(soft, p);
		break;
	case MW:
		ret = soft->cmd->mw_free(soft, p);
		break;
	default:
		ret = 0;
		break;
	}
	if (ret == 0)
		handles[handle].kind = FREE;
	return -ret;
}

static int
umem_reg(struct ib_uverbs_ioctl_hdr *h)
{
	const uint64_t addr = in_u64(h, MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR);
	const uint64_t len = in_u64(h, MLX5_IB_ATTR_DEVX_UMEM_REG_LEN);
	const uint32_t access = (uint32_t)in_u64(h, MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS);
	const struct ib_uverbs_attr *fd = attr(h, MLX5_IB_ATTR_DEVX_UMEM_REG_DMABUF_FD);
	uint64_t pages = UINT64_MAX;
	struct mlx5_umem *umem;
	int ret;

	if (attr(h, MLX5_IB_ATTR_DEVX_UMEM_REG_PGSZ_BITMAP) != NULL)
		pages = in_u64(h, MLX5_IB_ATTR_DEVX_UMEM_REG_PGSZ_BITMAP);
	if (fd != NULL)
		ret = soft->cmd->umem_reg_dmabuf(soft, (int)fd->data_s64, addr, len, access, pages,
						 &umem);
	else
		ret = soft->cmd->umem_reg(soft, (void *)(uintptr_t)addr, len, access, pages, &umem);
	if (ret != 0)
		return -ret;
	out_num(h, MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID, umem->id);
	return out_handle(h, MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE, UMEM, umem);
}

static int
dm_alloc(struct ib_uverbs_ioctl_hdr *h)
{
	struct mlx5_dm *dm;
	int ret = soft->cmd->dm_alloc(soft, in_u64(h, UVERBS_ATTR_ALLOC_DM_LENGTH),
				      (uint32_t)in_u64(h, UVERBS_ATTR_ALLOC_DM_ALIGNMENT), &dm);

	if (ret == 0)
		ret = -out_handle(h, UVERBS_ATTR_ALLOC_DM_HANDLE, DM, dm);
	if (ret != 0)
		return -ret;
	/* Where it begins in the page that is mapped. */
	out_num(h, MLX5_IB_ATTR_ALLOC_DM_RESP_START_OFFSET,
		(uintptr_t)((struct soft_dm *)(void *)dm)->base % (uint64_t)sysconf(_SC_PAGESIZE));
	out_num(h, MLX5_IB_ATTR_ALLOC_DM_RESP_PAGE_INDEX,
		in_handle(h, UVERBS_ATTR_ALLOC_DM_HANDLE));
	return 0;
}

/* A key of what is no memory of the process; @ids: attributes of the method. */
struct mr_ids {
	uint16_t handle, pd, lkey, rkey;
};

static int
make_mr(struct ib_uverbs_ioctl_hdr *h, const struct mlx5_mr_attr *a, const struct mr_ids *ids)
{
	struct mlx5_pd *pd = get(PD, in_handle(h, ids->pd));
	struct mlx5_mr *mr;
	int ret = pd != NULL ? soft->cmd->mr_reg(soft, pd, a, &mr) : -EINVAL;

	if (ret != 0)
		return -ret;
	out_num(h, ids->lkey, mr->lkey);
	out_num(h, ids->rkey, mr->rkey);
	return out_handle(h, ids->handle, MR, mr);
}

static int
dm_mr(struct ib_uverbs_ioctl_hdr *h)
{
	static const struct mr_ids ids = {
		UVERBS_ATTR_REG_DM_MR_HANDLE, UVERBS_ATTR_REG_DM_MR_PD_HANDLE,
		UVERBS_ATTR_REG_DM_MR_RESP_LKEY, UVERBS_ATTR_REG_DM_MR_RESP_RKEY};
	const struct mlx5_mr_attr a = {
		.kind = MLX5_MR_DM,
		.dm = get(DM, in_handle(h, UVERBS_ATTR_REG_DM_MR_DM_HANDLE)),
		.offset = in_u64(h, UVERBS_ATTR_REG_DM_MR_OFFSET),
		.len = in_u64(h, UVERBS_ATTR_REG_DM_MR_LENGTH),
		.access = (uint32_t)in_u64(h, UVERBS_ATTR_REG_DM_MR_ACCESS_FLAGS),
	};

	return a.dm != NULL ? make_mr(h, &a, &ids) : EINVAL;
}

static int
dmabuf_mr(struct ib_uverbs_ioctl_hdr *h)
{
	static const struct mr_ids ids = {
		UVERBS_ATTR_REG_DMABUF_MR_HANDLE, UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE,
		UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY};
	const struct mlx5_mr_attr a = {
		.kind = MLX5_MR_DMABUF,
		.fd = (int)in_u64(h, UVERBS_ATTR_REG_DMABUF_MR_FD),
		.offset = in_u64(h, UVERBS_ATTR_REG_DMABUF_MR_OFFSET),
		.len = in_u64(h, UVERBS_ATTR_REG_DMABUF_MR_LENGTH),
		.iova = in_u64(h, UVERBS_ATTR_REG_DMABUF_MR_IOVA),
		.access = (uint32_t)in_u64(h, UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS),
	};

	return make_mr(h, &a, &ids);
}

/* The mapping of a page is found again by its handle. */
static int
uar_alloc(struct ib_uverbs_ioctl_hdr *h)
{
	const bool nc =
		in_u64(h, MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE) == MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC;
	struct mlx5_uar *uar;
	int ret = soft->cmd->uar_alloc(soft, nc ? MLX5_UAR_NC : MLX5_UAR_BF, &uar);

	if (ret != 0)
		return -ret;
	ret = out_handle(h, MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE, UAR, uar);
	if (ret != 0)
		return ret;
	out_num(h, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET,
		MAP_UAR | in_handle(h, MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE) << MAP_SHIFT);
	out_num(h, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, (uint64_t)sysconf(_SC_PAGESIZE));
	out_num(h, MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, uar->page_id);
	return 0;
}

static int
query_eqn(struct ib_uverbs_ioctl_hdr *h)
{
	uint32_t eqn;
	int ret = soft->cmd->query_eqn(
		soft, (uint32_t)in_u64(h, MLX5_IB_ATTR_DEVX_QUERY_EQN_USER_VEC), &eqn);

	if (ret == 0)
		out_num(h, MLX5_IB_ATTR_DEVX_QUERY_EQN_DEV_EQN, eqn);
	return -ret;
}

static int
query_gid(struct ib_uverbs_ioctl_hdr *h)
{
	const uint32_t port = (uint32_t)in_u64(h, UVERBS_ATTR_QUERY_GID_ENTRY_PORT);
	const uint32_t index = (uint32_t)in_u64(h, UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX);
	struct ib_uverbs_gid_entry e = {.gid_index = index, .port_num = port};
	struct bb_gid gid;
	size_t len;
	void *to = out(h, UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, &len);
	int ret = soft->cmd->gid_query(soft, port, index, &gid);

	if (ret == -ENOENT) /* an empty entry */
		return ENODATA;
	if (ret != 0 || to == NULL)
		return ret != 0 ? -ret : EINVAL;
	memcpy(e.gid, gid.raw, sizeof(gid.raw));
	e.gid_type = (uint32_t)gid.type;
	memcpy(to, &e, len < sizeof(e) ? len : sizeof(e));
	return 0;
}

static int
event_fd(struct ib_uverbs_ioctl_hdr *h)
{
	struct ib_uverbs_attr *a = attr(h, MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_HANDLE);
	const bool no_data = in_u64(h, MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_FLAGS) != 0;
	struct mlx5_channel *ch = NULL;
	uint32_t handle;
	int fd, ret;

	if (a == NULL)
		return EINVAL;
	if (no_data) {
		ret = soft->cmd->channel_create(soft, &ch);
		if (ret != 0)
			return -ret;
	}
	fd = no_data ? dup(ch->fd) : eventfd(0, EFD_CLOEXEC);
	handle = keep(no_data ? CHANNEL : EVENTS, ch);
	if (fd < 0 || handle == 0)
		return EMFILE;
	handles[handle].fd = fd;
	a->data_s64 = fd;
	return 0;
}

static struct handle *
by_fd(int fd)
{
	unsigned int i;

	for (i = 1; i < MAX_HANDLES; i++)
		if ((handles[i].kind == EVENTS || handles[i].kind == CHANNEL) &&
		    handles[i].fd == fd)
			return &handles[i];
	return NULL;
}

static int
subscribe(struct ib_uverbs_ioctl_hdr *h)
{
	struct ib_uverbs_attr *fd = attr(h, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_HANDLE);
	struct ib_uverbs_attr *o = attr(h, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_OBJ_HANDLE);
	struct mlx5_obj *obj = o != NULL ? get(OBJ, o->data) : NULL;
	const uint64_t cookie = in_u64(h, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_COOKIE);
	struct handle *to = fd != NULL ? by_fd((int)fd->data_s64) : NULL;
	size_t len;
	const void *list = in(h, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_TYPE_NUM_LIST, &len);
	uint16_t types[16];

	if (to == NULL || list == NULL || len > sizeof(types) || (o != NULL && obj == NULL))
		return EINVAL;
	memcpy(types, list, len);
	if (to->kind == CHANNEL)
		return -soft->cmd->channel_subscribe(to->p, obj, cookie);
	return -soft->cmd->event_subscribe(soft, obj, types, (unsigned int)(len / 2), cookie);
}

static int
method(struct ib_uverbs_ioctl_hdr *h)
{
	switch (h->object_id << 16 | h->method_id) {
	case MLX5_IB_OBJECT_DEVX << 16 | MLX5_IB_METHOD_DEVX_OTHER:
		return devx_other(h);
	case MLX5_IB_OBJECT_DEVX << 16 | MLX5_IB_METHOD_DEVX_QUERY_EQN:
		return query_eqn(h);
	case MLX5_IB_OBJECT_DEVX << 16 | MLX5_IB_METHOD_DEVX_SUBSCRIBE_EVENT:
		return subscribe(h);
	case MLX5_IB_OBJECT_DEVX_OBJ << 16 | MLX5_IB_METHOD_DEVX_OBJ_CREATE:
		return obj_create(h);
	case MLX5_IB_OBJECT_DEVX_OBJ << 16 | MLX5_IB_METHOD_DEVX_OBJ_MODIFY:
		return obj_change(h, true);
	case MLX5_IB_OBJECT_DEVX_OBJ << 16 | MLX5_IB_METHOD_DEVX_OBJ_QUERY:
		return obj_change(h, false);
	case MLX5_IB_OBJECT_DEVX_OBJ << 16 | MLX5_IB_METHOD_DEVX_OBJ_DESTROY:
		return destroy(OBJ, in_handle(h, MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE));
	case MLX5_IB_OBJECT_DEVX_UMEM << 16 | MLX5_IB_METHOD_DEVX_UMEM_REG:
		return umem_reg(h);
	case MLX5_IB_OBJECT_DEVX_UMEM << 16 | MLX5_IB_METHOD_DEVX_UMEM_DEREG:
		return destroy(UMEM, in_handle(h, MLX5_IB_ATTR_DEVX_UMEM_DEREG_HANDLE));
	case MLX5_IB_OBJECT_UAR << 16 | MLX5_IB_METHOD_UAR_OBJ_ALLOC:
		return uar_alloc(h);
	case MLX5_IB_OBJECT_UAR << 16 | MLX5_IB_METHOD_UAR_OBJ_DESTROY:
		return destroy(UAR, in_handle(h, MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE));
	case MLX5_IB_OBJECT_DEVX_ASYNC_EVENT_FD << 16 | MLX5_IB_METHOD_DEVX_ASYNC_EVENT_FD_ALLOC:
		return event_fd(h);
	case UVERBS_OBJECT_DM << 16 | UVERBS_METHOD_DM_ALLOC:
		return dm_alloc(h);
	case UVERBS_OBJECT_DM << 16 | UVERBS_METHOD_DM_FREE:
		return destroy(DM, in_handle(h, UVERBS_ATTR_FREE_DM_HANDLE));
	case UVERBS_OBJECT_MR << 16 | UVERBS_METHOD_DM_MR_REG:
		return dm_mr(h);
	case UVERBS_OBJECT_MR << 16 | UVERBS_METHOD_REG_DMABUF_MR:
		return dmabuf_mr(h);
	case UVERBS_OBJECT_DEVICE << 16 | UVERBS_METHOD_QUERY_GID_ENTRY:
		return query_gid(h);
	default:
		/* The kernel's answer to what it does not know: then libibverbs tries write(). */
		return EPROTONOSUPPORT;
	}
}

/* ---- commands by write() */

static int
get_context(const struct uverbs_cmd *c)
{
	const struct mlx5_ib_alloc_ucontext_resp drv = {
		.qp_tab_size = 1 << 18,
		.bf_reg_size = 512,
		.cache_line_size = 64,
		.max_sq_desc_sz = 1008,
		.max_rq_desc_sz = 512,
		.max_send_wqebb = 32768,
		.max_recv_wr = 32768,
		.max_srq_recv_wr = 32767,
		.num_ports = 1,
		.response_length = sizeof(drv),
		.cqe_version = 1,
		.cmds_supp_uhw = MLX5_USER_CMDS_SUPP_UHW_CREATE_AH,
		.log_uar_size = 12,
		.num_uars_per_page = 1,
	};
	const struct ib_uverbs_get_context_resp core = {
		.async_fd = (uint32_t)eventfd(0, EFD_CLOEXEC),
		.num_comp_vectors = 1,
	};
	int ret = soft == NULL ? soft_cmd_if.open("soft0", "progress=thread,no_clock", &soft) : 0;

	return ret != 0 ? -ret : uverbs_answer(c, &core, sizeof(core), &drv, sizeof(drv));
}

/* Of what libmlx5 asks for at the opening; capabilities are read from the device's mailbox. */
static int
query_device(const struct uverbs_cmd *c)
{
	const struct ib_uverbs_ex_query_device_resp core = {
		.response_length = sizeof(core),
		.max_dm_size = MAX_DM,
	};
	size_t len = c->out_len < sizeof(core) ? c->out_len : sizeof(core);

	return uverbs_answer(c, &core, len, NULL, 0);
}

static int
query_port(const struct uverbs_cmd *c)
{
	struct ib_uverbs_query_port_resp core = {0};
	struct ib_uverbs_query_port q;
	struct mlx5_port port;
	int ret;

	memcpy(&q, c->in, sizeof(q));
	ret = soft->cmd->port_query(soft, q.port_num, &port);
	if (ret != 0)
		return -ret;
	core.state = port.state == BB_PORT_ACTIVE ? PORT_ACTIVE : PORT_DOWN;
	core.lid = port.lid;
	core.gid_tbl_len = (int32_t)port.gids;
	core.pkey_tbl_len = 1;
	core.max_mtu = (uint8_t)(__builtin_ctz(port.max_mtu) - 7);
	core.active_mtu = (uint8_t)(__builtin_ctz(port.active_mtu) - 7);
	core.link_layer = port.link_layer == BB_LINK_ETHERNET ? 2 : 1;
	return uverbs_answer(c, &core, sizeof(core), NULL, 0);
}

static int
alloc_pd(const struct uverbs_cmd *c)
{
	struct ib_uverbs_alloc_pd_resp core;
	struct mlx5_ib_alloc_pd_resp drv;
	struct mlx5_pd *pd;
	int ret = soft->cmd->pd_alloc(soft, &pd);

	if (ret != 0)
		return -ret;
	core.pd_handle = keep(PD, pd);
	drv.pdn = pd->pdn;
	return uverbs_answer(c, &core, sizeof(core), &drv, sizeof(drv));
}

static int
reg_mr(const struct uverbs_cmd *c)
{
	struct ib_uverbs_reg_mr_resp core = {0};
	struct mlx5_mr_attr attr;
	struct ib_uverbs_reg_mr q;
	struct mlx5_pd *pd;
	struct mlx5_mr *mr;
	int ret;

	memcpy(&q, c->in, sizeof(q));
	pd = get(PD, q.pd_handle);
	if (pd == NULL)
		return EINVAL;
	attr = mlx5_mr_mem((void *)(uintptr_t)q.start, q.length, q.access_flags);
	attr.iova = q.hca_va;
	ret = soft->cmd->mr_reg(soft, pd, &attr, &mr);
	if (ret != 0)
		return -ret;
	core.mr_handle = keep(MR, mr);
	core.lkey = mr->lkey;
	core.rkey = mr->rkey;
	return uverbs_answer(c, &core, sizeof(core), NULL, 0);
}

static int
rereg_mr(const struct uverbs_cmd *c)
{
	struct ib_uverbs_rereg_mr_resp core = {0};
	struct ib_uverbs_rereg_mr q;
	struct mlx5_mr *mr;
	int ret;

	memcpy(&q, c->in, sizeof(q));
	mr = get(MR, q.mr_handle);
	if (mr == NULL)
		return EINVAL;
	ret = soft->cmd->mr_rereg(soft, mr, q.flags, get(PD, q.pd_handle),
				  (void *)(uintptr_t)q.start, q.length, q.access_flags);
	if (ret != 0)
		return -ret;
	core.lkey = mr->lkey;
	core.rkey = mr->rkey;
	return uverbs_answer(c, &core, sizeof(core), NULL, 0);
}

static int
alloc_mw(const struct uverbs_cmd *c)
{
	struct ib_uverbs_alloc_mw_resp core = {0};
	struct ib_uverbs_alloc_mw q;
	struct mlx5_pd *pd;
	struct mlx5_mw *mw;
	int ret;

	memcpy(&q, c->in, sizeof(q));
	pd = get(PD, q.pd_handle);
	if (pd == NULL)
		return EINVAL;
	ret = soft->cmd->mw_alloc(soft, pd, q.mw_type, &mw);
	if (ret != 0)
		return -ret;
	core.mw_handle = keep(MW, mw);
	core.rkey = mw->rkey;
	return uverbs_answer(c, &core, sizeof(core), NULL, 0);
}

static int
create_ah(const struct uverbs_cmd *c)
{
	struct ib_uverbs_create_ah_resp core;
	struct mlx5_ib_create_ah_resp drv = {.response_length = sizeof(drv)};
	struct ib_uverbs_create_ah q;
	struct mlx5_pd *pd;
	struct mlx5_av av;
	int ret;

	memcpy(&q, c->in, sizeof(q));
	pd = get(PD, q.pd_handle);
	if (pd == NULL)
		return EINVAL;
	ret = soft->cmd->av_resolve(soft, pd, q.attr.port_num, q.attr.grh.sgid_index,
				    q.attr.grh.dgid, &av);
	if (ret != 0)
		return -ret;
	memcpy(drv.dmac, av.dmac, sizeof(av.dmac));
	core.ah_handle = keep(AH, pd);
	return uverbs_answer(c, &core, sizeof(core), &drv, sizeof(drv));
}

/* Those that end something are of one form: the handle, in front or behind a response. */
static int
end(const struct uverbs_cmd *c, enum kind kind)
{
	uint32_t handle;

	if (c->in_len < sizeof(handle))
		return EINVAL;
	memcpy(&handle, c->in, sizeof(handle));
	return destroy(kind, handle);
}

static int
write_cmd(uint32_t command, const struct uverbs_cmd *c)
{
	switch (command) {
	case IB_USER_VERBS_CMD_GET_CONTEXT:
		return get_context(c);
	case IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_QUERY_DEVICE:
		return query_device(c);
	case IB_USER_VERBS_CMD_QUERY_PORT:
		return query_port(c);
	case IB_USER_VERBS_CMD_ALLOC_PD:
		return alloc_pd(c);
	case IB_USER_VERBS_CMD_DEALLOC_PD:
		return end(c, PD);
	case IB_USER_VERBS_CMD_REG_MR:
		return reg_mr(c);
	case IB_USER_VERBS_CMD_REREG_MR:
		return rereg_mr(c);
	case IB_USER_VERBS_CMD_DEREG_MR:
		return end(c, MR);
	case IB_USER_VERBS_CMD_ALLOC_MW:
		return alloc_mw(c);
	case IB_USER_VERBS_CMD_DEALLOC_MW:
		return end(c, MW);
	case IB_USER_VERBS_CMD_CREATE_AH:
		return create_ah(c);
	case IB_USER_VERBS_CMD_DESTROY_AH:
		return end(c, AH);
	default:
		return EOPNOTSUPP;
	}
}

static void *
page_of(void *addr)
{
	return (void *)((uintptr_t)addr & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1));
}

/* The page that begins what @h names; NULL: nothing that is mapped. */
static void *
mapped(const struct handle *h)
{
	if (h->kind == UAR)
		return ((struct mlx5_uar *)h->p)->base_addr;
	return h->kind == DM ? page_of(((struct soft_dm *)h->p)->base) : NULL;
}

/*
 * Pages that were ever mapped are the software device's, which keeps them; libmlx5 unmaps some
 * before, some behind the end of what they hold.
 */
static void *page_list[MAX_PAGES];
static unsigned int pages;

static void *
map(off_t offset)
{
	const uint64_t page = (uint64_t)(offset / sysconf(_SC_PAGESIZE));
	uint64_t handle = 0;
	unsigned int i;
	void *at;

	if (((uint64_t)offset & MAP_UAR) != 0)
		handle = ((uint64_t)offset & ~MAP_UAR) >> MAP_SHIFT;
	else if ((page >> 8 & 0xff) == MAP_DM)
		handle = (page & 0xff) | page >> 16 << 8;
	if (handle >= MAX_HANDLES || mapped(&handles[handle]) == NULL)
		return NULL;
	at = mapped(&handles[handle]);
	for (i = 0; i < pages && page_list[i] != at; i++)
		;
	if (i == MAX_PAGES)
		return NULL;
	page_list[i] = at;
	if (i == pages)
		pages++;
	return at;
}

static const struct uverbs_kernel kernel = {.write = write_cmd, .map = map};

static char root[] = "/tmp/bluebell-uverbs-XXXXXX";

static void __attribute__((constructor)) start(void)
{
	if (uverbs_start(root, &kernel) != 0) {
		fprintf(stderr, "no /sys for libibverbs in %s\n", root);
		_exit(77);
	}
}

static void __attribute__((destructor)) stop(void)
{
	uverbs_end(root);
}

/* ---- libc */

int
ioctl(int fd, unsigned long request, ...)
{
	struct ib_uverbs_ioctl_hdr *h;
	va_list ap;
	void *arg;
	int rc;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (fd < 0 || fd != uverbs_fd() || request != RDMA_VERBS_IOCTL)
		return (int)syscall(SYS_ioctl, fd, request, arg);
	h = arg;
	pthread_mutex_lock(&lock);
	rc = method(h);
	pthread_mutex_unlock(&lock);
	if (getenv("UVERBS_TRACE") != NULL)
		fprintf(stderr, "uverbs: object 0x%x method 0x%x: %s\n", h->object_id, h->method_id,
			strerror(rc));
	if (rc == 0)
		return 0;
	errno = rc;
	return -1;
}

/* An event: of a channel of completions the cookie, else an EQE behind it. */
static ssize_t
read_event(const struct handle *to, void *buf, size_t len)
{
	struct mlx5_cmd_event event;
	uint8_t eqe[8 + EQE_BYTES] = {0};
	uint64_t cookie;
	int ret;

	if (to->kind == CHANNEL) {
		ret = soft->cmd->channel_get(to->p, &cookie);
		if (ret == 0)
			memcpy(buf, &cookie, sizeof(cookie));
		errno = -ret;
		return ret == 0 ? (ssize_t)sizeof(cookie) : -1;
	}
	ret = soft->cmd->event_get(soft, &event);
	errno = -ret;
	if (ret != 0)
		return -1;
	memcpy(eqe, &event.cookie, sizeof(event.cookie));
	eqe[8 + EQE_TYPE] = (uint8_t)event.type;
	if (len > sizeof(eqe))
		len = sizeof(eqe);
	memcpy(buf, eqe, len);
	return (ssize_t)len;
}

ssize_t
read(int fd, void *buf, size_t len)
{
	const struct handle *to = soft != NULL && fd >= 0 ? by_fd(fd) : NULL;

	return to != NULL ? read_event(to, buf, len) : syscall(SYS_read, fd, buf, len);
}

int
munmap(void *addr, size_t len)
{
	unsigned int i;

	for (i = 0; i < pages; i++)
		if (page_list[i] == addr)
			return 0;
	return (int)syscall(SYS_munmap, addr, len);
}

int
close(int fd)
{
	struct handle *to = soft != NULL && fd >= 0 ? by_fd(fd) : NULL;

	if (to != NULL && to->kind == CHANNEL)
		(void)soft->cmd->channel_destroy(soft, to->p);
	if (to != NULL)
		to->kind = FREE;
	return (int)syscall(SYS_close, fd);
}
