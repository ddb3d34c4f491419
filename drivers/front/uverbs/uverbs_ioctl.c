/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Calls of libmlx5 by ioctl(). */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>

#include "uverbs_attr.h"
#include "uverbs_priv.h"
#include "uverbs_queue.h"

/* Returns the handle of a new object to the caller; destroys the object if that fails. */
static int
out_handle(struct uverbs_file *f, struct ib_uverbs_ioctl_hdr *h, uint16_t id, enum uverbs_kind kind,
	   void *p)
{
	struct ib_uverbs_attr *a = attr(h, id);
	uint32_t handle = a != NULL ? uverbs_keep(f, kind, p) : 0;

	if (handle != 0) {
		a->data = handle;
		return 0;
	}
	(void)uverbs_end(f, kind, p);
	return a != NULL ? ENOMEM : EINVAL;
}

/* ---- methods */

static int
devx_other(struct uverbs_file *f, struct ib_uverbs_ioctl_hdr *h)
{
	size_t inlen, outlen;
	const void *cmd = in(h, MLX5_IB_ATTR_DEVX_OTHER_CMD_IN, &inlen);
	void *res = out(h, MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT, &outlen);

	if (cmd == NULL || res == NULL)
		return EINVAL;
	return -f->soft->cmd->general(f->soft, cmd, inlen, res, outlen);
}

static int
obj_create(struct uverbs_file *f, struct ib_uverbs_ioctl_hdr *h)
{
	size_t inlen, outlen;
	const void *cmd = in(h, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN, &inlen);
	void *res = out(h, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, &outlen);
	struct mlx5_obj *obj;
	int ret;

	if (cmd == NULL || res == NULL)
		return EINVAL;
	ret = f->soft->cmd->obj_create(f->soft, cmd, inlen, res, outlen, &obj);
	if (ret != 0)
		return -ret;
	return out_handle(f, h, MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE, UV_OBJ, obj);
}

/*
 * Returns an object that a program may modify and query by a command: an object of DEVX, or a queue
 * of verbs (devx_is_valid_obj_id() of Linux). UCX connects QPs of verbs by commands
 * (uct_ib_mlx5_devx_modify_qp()).
 */
static struct mlx5_obj *
devx_obj(const struct uverbs_file *f, uint64_t handle)
{
	static const enum uverbs_kind queues[] = {UV_CQ, UV_QP, UV_SRQ};
	const struct uverbs_queue *q = NULL;
	unsigned int i;

	for (i = 0; i < sizeof(queues) / sizeof(queues[0]) && q == NULL; i++)
		q = uverbs_find(f, queues[i], handle);
	return q != NULL ? q->obj : uverbs_find(f, UV_OBJ, handle);
}

static int
obj_change(struct uverbs_file *f, struct ib_uverbs_ioctl_hdr *h, bool modify)
{
	const uint16_t base =
		modify ? MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE : MLX5_IB_ATTR_DEVX_OBJ_QUERY_HANDLE;
	struct mlx5_obj *obj = devx_obj(f, in_handle(h, base));
	size_t inlen, outlen;
	const void *cmd = in(h, base + 1, &inlen);
	void *res = out(h, base + 2, &outlen);

	if (obj == NULL || cmd == NULL || res == NULL)
		return EINVAL;
	if (modify)
		return -f->soft->cmd->obj_modify(obj, cmd, inlen, res, outlen);
	return -f->soft->cmd->obj_query(obj, cmd, inlen, res, outlen);
}

static int
umem_reg(struct uverbs_file *f, struct ib_uverbs_ioctl_hdr *h)
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
		ret = f->soft->cmd->umem_reg_dmabuf(f->soft, (int)fd->data_s64, addr, len, access,
						    pages, &umem);
	else
		ret = f->soft->cmd->umem_reg(f->soft, (void *)(uintptr_t)addr, len, access, pages,
					     &umem);
	if (ret != 0)
		return -ret;
	out_num(h, MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID, umem->id);
	return out_handle(f, h, MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE, UV_UMEM, umem);
}

static int
dm_alloc(struct uverbs_file *f, struct ib_uverbs_ioctl_hdr *h)
{
	struct mlx5_dm *dm;
	int ret = f->soft->cmd->dm_alloc(f->soft, in_u64(h, UVERBS_ATTR_ALLOC_DM_LENGTH),
					 (uint32_t)in_u64(h, UVERBS_ATTR_ALLOC_DM_ALIGNMENT), &dm);

	if (ret == 0)
		ret = -out_handle(f, h, UVERBS_ATTR_ALLOC_DM_HANDLE, UV_DM, dm);
	if (ret != 0)
		return -ret;
	/* The memory starts at the beginning of the mapped page. */
	out_num(h, MLX5_IB_ATTR_ALLOC_DM_RESP_START_OFFSET, 0);
	out_num(h, MLX5_IB_ATTR_ALLOC_DM_RESP_PAGE_INDEX, soft_dm_page(dm));
	return 0;
}

/* Numbers of the attributes of a method that registers device memory or a dma-buf. */
struct mr_ids {
	uint16_t handle, pd, lkey, rkey;
};

static int
make_mr(struct uverbs_file *f, struct ib_uverbs_ioctl_hdr *h, const struct mlx5_mr_attr *a,
	const struct mr_ids *ids)
{
	struct mlx5_pd *pd = uverbs_find(f, UV_PD, in_handle(h, ids->pd));
	struct mlx5_mr *mr;
	int ret = pd != NULL ? f->soft->cmd->mr_reg(f->soft, pd, a, &mr) : -EINVAL;

	if (ret != 0)
		return -ret;
	out_num(h, ids->lkey, mr->lkey);
	out_num(h, ids->rkey, mr->rkey);
	return out_handle(f, h, ids->handle, UV_MR, mr);
}

static int
dm_mr(struct uverbs_file *f, struct ib_uverbs_ioctl_hdr *h)
{
	static const struct mr_ids ids = {
		UVERBS_ATTR_REG_DM_MR_HANDLE, UVERBS_ATTR_REG_DM_MR_PD_HANDLE,
		UVERBS_ATTR_REG_DM_MR_RESP_LKEY, UVERBS_ATTR_REG_DM_MR_RESP_RKEY};
	const struct mlx5_mr_attr a = {
		.kind = MLX5_MR_DM,
		.dm = uverbs_find(f, UV_DM, in_handle(h, UVERBS_ATTR_REG_DM_MR_DM_HANDLE)),
		.offset = in_u64(h, UVERBS_ATTR_REG_DM_MR_OFFSET),
		.len = in_u64(h, UVERBS_ATTR_REG_DM_MR_LENGTH),
		.access = (uint32_t)in_u64(h, UVERBS_ATTR_REG_DM_MR_ACCESS_FLAGS),
	};

	return a.dm != NULL ? make_mr(f, h, &a, &ids) : EINVAL;
}

static int
dmabuf_mr(struct uverbs_file *f, struct ib_uverbs_ioctl_hdr *h)
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

	return make_mr(f, h, &a, &ids);
}

/* Allocates a UAR page. Returns its handle, and the offset and length for mmap(). */
static int
uar_alloc(struct uverbs_file *f, struct ib_uverbs_ioctl_hdr *h)
{
	const bool nc =
		in_u64(h, MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE) == MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC;
	struct mlx5_uar *uar;
	int ret = f->soft->cmd->uar_alloc(f->soft, nc ? MLX5_UAR_NC : MLX5_UAR_BF, &uar);

	if (ret != 0)
		return -ret;
	ret = out_handle(f, h, MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE, UV_UAR, uar);
	if (ret != 0)
		return ret;
	out_num(h, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, soft_uar_offset(uar));
	out_num(h, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, (uint64_t)sysconf(_SC_PAGESIZE));
	out_num(h, MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, uar->page_id);
	return 0;
}

static int
query_eqn(struct uverbs_file *f, struct ib_uverbs_ioctl_hdr *h)
{
	uint32_t eqn;
	int ret = f->soft->cmd->query_eqn(
		f->soft, (uint32_t)in_u64(h, MLX5_IB_ATTR_DEVX_QUERY_EQN_USER_VEC), &eqn);

	if (ret == 0)
		out_num(h, MLX5_IB_ATTR_DEVX_QUERY_EQN_DEV_EQN, eqn);
	return -ret;
}

static int
query_gid(struct uverbs_file *f, struct ib_uverbs_ioctl_hdr *h)
{
	const uint32_t port = (uint32_t)in_u64(h, UVERBS_ATTR_QUERY_GID_ENTRY_PORT);
	const uint32_t index = (uint32_t)in_u64(h, UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX);
	struct ib_uverbs_gid_entry e = {.gid_index = index, .port_num = port};
	struct bb_gid gid;
	size_t len;
	void *to = out(h, UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, &len);
	int ret = f->soft->cmd->gid_query(f->soft, port, index, &gid);

	if (ret == -ENOENT) /* an empty entry */
		return ENODATA;
	if (ret != 0 || to == NULL)
		return ret != 0 ? -ret : EINVAL;
	memcpy(e.gid, gid.raw, sizeof(gid.raw));
	e.gid_type = (uint32_t)gid.type;
	memcpy(to, &e, len < sizeof(e) ? len : sizeof(e));
	return 0;
}

/*
 * Returns all used entries of the GID table, as ib_uverbs_handler_UVERBS_METHOD_QUERY_GID_TABLE()
 * does.
 */
static int
query_gids(struct uverbs_file *f, struct ib_uverbs_ioctl_hdr *h)
{
	const uint64_t size = in_u64(h, UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE);
	struct ib_uverbs_gid_entry e;
	struct mlx5_port port;
	struct bb_gid gid;
	uint64_t n = 0;
	uint32_t i;
	size_t len;
	uint8_t *to = out(h, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, &len);

	if (to == NULL || size == 0 || size > len ||
	    f->soft->cmd->port_query(f->soft, 1, &port) != 0)
		return EINVAL;
	for (i = 0; i < port.gids; i++) {
		if (f->soft->cmd->gid_query(f->soft, 1, i, &gid) != 0)
			continue;
		if (n == len / size)
			return EINVAL;
		e = (struct ib_uverbs_gid_entry){
			.gid_index = i, .port_num = 1, .gid_type = (uint32_t)gid.type};
		memcpy(e.gid, gid.raw, sizeof(gid.raw));
		memcpy(to + n * size, &e, size < sizeof(e) ? size : sizeof(e));
		n++;
	}
	out_num(h, UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, n);
	return 0;
}

static int
event_fd(struct uverbs_file *f, struct ib_uverbs_ioctl_hdr *h)
{
	struct ib_uverbs_attr *a = attr(h, MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_HANDLE);
	const bool no_data = in_u64(h, MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_FLAGS) != 0;
	int fd = a != NULL ? uverbs_events_new(f, no_data ? UV_CHANNEL : UV_DEVX) : -EINVAL;

	if (fd < 0)
		return -fd;
	a->data_s64 = fd;
	return 0;
}

static int
subscribe(struct uverbs_file *f, struct ib_uverbs_ioctl_hdr *h)
{
	struct ib_uverbs_attr *fd = attr(h, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_HANDLE);
	struct ib_uverbs_attr *o = attr(h, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_OBJ_HANDLE);
	struct mlx5_obj *obj = o != NULL ? uverbs_find(f, UV_OBJ, o->data) : NULL;
	const uint64_t cookie = in_u64(h, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_COOKIE);
	struct uverbs_events *to = fd != NULL ? uverbs_events_find(f, (int)fd->data_s64) : NULL;
	size_t len;
	const void *list = in(h, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_TYPE_NUM_LIST, &len);
	uint16_t types[16];

	if (to == NULL || list == NULL || len > sizeof(types) || (o != NULL && obj == NULL))
		return EINVAL;
	memcpy(types, list, len);
	return uverbs_subscribe(f, to, obj, types, (unsigned int)(len / 2), cookie);
}

int
uverbs_method(struct uverbs_file *f, struct ib_uverbs_ioctl_hdr *h)
{
	switch (h->object_id << 16 | h->method_id) {
	case MLX5_IB_OBJECT_DEVX << 16 | MLX5_IB_METHOD_DEVX_OTHER:
		return devx_other(f, h);
	case MLX5_IB_OBJECT_DEVX << 16 | MLX5_IB_METHOD_DEVX_QUERY_EQN:
		return query_eqn(f, h);
	case MLX5_IB_OBJECT_DEVX << 16 | MLX5_IB_METHOD_DEVX_SUBSCRIBE_EVENT:
		return subscribe(f, h);
	case MLX5_IB_OBJECT_DEVX_OBJ << 16 | MLX5_IB_METHOD_DEVX_OBJ_CREATE:
		return obj_create(f, h);
	case MLX5_IB_OBJECT_DEVX_OBJ << 16 | MLX5_IB_METHOD_DEVX_OBJ_MODIFY:
		return obj_change(f, h, true);
	case MLX5_IB_OBJECT_DEVX_OBJ << 16 | MLX5_IB_METHOD_DEVX_OBJ_QUERY:
		return obj_change(f, h, false);
	case MLX5_IB_OBJECT_DEVX_OBJ << 16 | MLX5_IB_METHOD_DEVX_OBJ_DESTROY:
		return uverbs_destroy(f, UV_OBJ,
				      in_handle(h, MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE));
	case MLX5_IB_OBJECT_DEVX_UMEM << 16 | MLX5_IB_METHOD_DEVX_UMEM_REG:
		return umem_reg(f, h);
	case MLX5_IB_OBJECT_DEVX_UMEM << 16 | MLX5_IB_METHOD_DEVX_UMEM_DEREG:
		return uverbs_destroy(f, UV_UMEM,
				      in_handle(h, MLX5_IB_ATTR_DEVX_UMEM_DEREG_HANDLE));
	case MLX5_IB_OBJECT_UAR << 16 | MLX5_IB_METHOD_UAR_OBJ_ALLOC:
		return uar_alloc(f, h);
	case MLX5_IB_OBJECT_UAR << 16 | MLX5_IB_METHOD_UAR_OBJ_DESTROY:
		return uverbs_uar_destroy(f, in_handle(h, MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE));
	case MLX5_IB_OBJECT_DEVX_ASYNC_EVENT_FD << 16 | MLX5_IB_METHOD_DEVX_ASYNC_EVENT_FD_ALLOC:
		return event_fd(f, h);
	case UVERBS_OBJECT_DM << 16 | UVERBS_METHOD_DM_ALLOC:
		return dm_alloc(f, h);
	case UVERBS_OBJECT_DM << 16 | UVERBS_METHOD_DM_FREE:
		return uverbs_destroy(f, UV_DM, in_handle(h, UVERBS_ATTR_FREE_DM_HANDLE));
	case UVERBS_OBJECT_MR << 16 | UVERBS_METHOD_DM_MR_REG:
		return dm_mr(f, h);
	case UVERBS_OBJECT_MR << 16 | UVERBS_METHOD_REG_DMABUF_MR:
		return dmabuf_mr(f, h);
	case UVERBS_OBJECT_DEVICE << 16 | UVERBS_METHOD_QUERY_GID_TABLE:
		return query_gids(f, h);
	case UVERBS_OBJECT_DEVICE << 16 | UVERBS_METHOD_QUERY_GID_ENTRY:
		return query_gid(f, h);
	default:
		return uverbs_import_method(f, h);
	}
}
