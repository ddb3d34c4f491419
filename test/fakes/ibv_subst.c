/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <unistd.h>

#include <infiniband/mlx5dv.h>

#include "ibv_subst.h"
#include "soft_ctl.h"
#include "soft_kernel.h"

/* The headers wrap these in macros; here are the functions themselves. */
#undef ibv_query_port
#undef ibv_reg_mr

extern const struct mlx5_cmd_if soft_cmd_if;

#define QUEUE 64

struct subst subst;

struct ctx {
	struct ibv_context pub; /* first */
	struct mlx5_ctx *soft;
};

struct mlx5dv_devx_obj {
	struct mlx5_obj *soft;
};

struct umem {
	struct mlx5dv_devx_umem pub;
	struct mlx5_umem *soft;
	struct ctx *ctx;
};

struct uar {
	struct mlx5dv_devx_uar pub;
	struct mlx5_uar *soft;
	struct ctx *ctx;
	LIST_ENTRY(uar) link;
};

struct pd {
	struct ibv_pd pub;
	struct mlx5_pd *soft;
};

struct mr {
	struct ibv_mr pub;
	struct mlx5_mr *soft;
};

struct ah {
	struct ibv_ah pub;
	struct mlx5_wqe_av av;
};

struct channel {
	struct mlx5dv_devx_event_channel pub;
	struct ctx *ctx;
};

struct devx_event {
	uint64_t cookie;
	uint8_t type;
	uint32_t bytes;
	int err;
};

static struct ibv_device device;
static LIST_HEAD(, uar) uars = LIST_HEAD_INITIALIZER(uars);
static struct ibv_async_event async[QUEUE];
static unsigned int n_async, next_async;
static struct devx_event devx[QUEUE];
static unsigned int n_devx, next_devx;

void
subst_reset(void)
{
	static char dir[] = "/tmp/bb_subst_XXXXXX";
	static bool made;
	char link[sizeof(device.ibdev_path) + 16];

	memset(&subst, 0, sizeof(subst));
	n_async = next_async = n_devx = next_devx = 0;
	snprintf(device.name, sizeof(device.name), SUBST_NAME);
	if (made)
		return;
	/* A sysfs folder whose "device" names the PCI address. */
	made = mkdtemp(dir) != NULL;
	snprintf(device.ibdev_path, sizeof(device.ibdev_path), "%s", dir);
	snprintf(link, sizeof(link), "%s/device", device.ibdev_path);
	if (symlink("../../../" SUBST_BUS, link) != 0)
		perror("symlink");
}

static void __attribute__((destructor)) remove_sysfs(void)
{
	char link[sizeof(device.ibdev_path) + 16];

	if (device.ibdev_path[0] == '\0')
		return;
	snprintf(link, sizeof(link), "%s/device", device.ibdev_path);
	(void)unlink(link);
	(void)rmdir(device.ibdev_path);
}

/* Is it this call's turn to fail? Returns the errno, or 0. */
static int
turn(const char *call)
{
	subst.calls++;
	if (subst.gone)
		return EIO;
	if (subst.fail_at == 0 || --subst.fail_at != 0)
		return 0;
	subst.failed = true;
	subst.failed_call = call;
	return subst.fail_errno;
}

/* A command's turn to fail: EREMOTEIO comes with what the device said. */
static int
box_turn(const char *call, void *out)
{
	int err = turn(call);

	if (err == EREMOTEIO && !subst.old_kernel) {
		bb_prm_set(out, BB_PRM_CMD_STATUS, BB_PRM_STAT_LIM_ERR);
		bb_prm_set(out, BB_PRM_CMD_SYNDROME, 0x5eed);
	}
	return err;
}

/* An outcome of the software device as libmlx5 gives it: a positive errno. */
static int
result(int ret, void *out, size_t outlen)
{
	if (ret == -EREMOTEIO && subst.old_kernel) {
		int err = soft_kernel_status_errno((uint8_t)bb_prm_get(out, BB_PRM_CMD_STATUS));

		memset(out, 0, outlen);
		return -err;
	}
	return -ret;
}

static void *
handle(size_t size)
{
	void *p = calloc(1, size);

	if (p == NULL)
		abort();
	subst.handles++;
	return p;
}

static void
release(void *p)
{
	subst.handles--;
	free(p);
}

static void *
null(int err)
{
	errno = err;
	return NULL;
}

static struct ctx *
ctx_of(struct ibv_context *context)
{
	return (struct ctx *)(void *)context;
}

void
subst_progress(void)
{
	void (*fn)(void *arg) = NULL;
	void *arg = NULL;
	struct uar *u;

	LIST_FOREACH(u, &uars, link) {
		soft_cmd_if.progress_of(u->ctx->soft, u->soft, &fn, &arg);
		if (fn != NULL)
			fn(arg);
	}
}

/* ---- Devices */

struct ibv_device **
ibv_get_device_list(int *num)
{
	struct ibv_device **list;
	int err = turn(__func__);

	if (err != 0 || subst.no_devices)
		return null(err != 0 ? err : ENOSYS);
	list = handle(2 * sizeof(*list));
	list[0] = &device;
	*num = 1;
	return list;
}

void
ibv_free_device_list(struct ibv_device **list)
{
	release(list);
}

const char *
ibv_get_device_name(struct ibv_device *dev)
{
	return dev->name;
}

bool
mlx5dv_is_supported(struct ibv_device *dev)
{
	return dev == &device && !subst.foreign;
}

struct ibv_context *
mlx5dv_open_device(struct ibv_device *dev, struct mlx5dv_context_attr *attr)
{
	struct mlx5_ctx *soft;
	struct ctx *c;
	int err = turn(__func__), ret;
	const uint16_t port_change = BB_PRM_EVENT_PORT_CHANGE;

	if (subst.open_errno != 0)
		return null(subst.open_errno > 0 ? subst.open_errno : 0);
	if (err == 0 && attr->flags != MLX5DV_CONTEXT_FLAGS_DEVX)
		err = EINVAL;
	if (err != 0)
		return null(err);
	ret = soft_cmd_if.open(SUBST_SOFT, subst.args, &soft);
	if (ret != 0)
		return null(-ret);
	ret = soft_cmd_if.event_subscribe(soft, NULL, &port_change, 1, 0);
	if (ret != 0) {
		(void)soft_cmd_if.close(soft);
		return null(-ret);
	}
	c = handle(sizeof(*c));
	c->soft = soft;
	c->pub.device = dev;
	c->pub.async_fd = subst.bad_async_fd ? -1 : eventfd(0, 0);
	return &c->pub;
}

int
ibv_close_device(struct ibv_context *context)
{
	struct ctx *c = ctx_of(context);
	int err = turn(__func__), ret;

	/* A device that still has objects would show here. */
	ret = soft_cmd_if.close(c->soft);
	if (ret != 0)
		return -ret;
	close(c->pub.async_fd);
	release(c);
	errno = err;
	return err == 0 ? 0 : -1;
}

/* ---- Commands */

int
mlx5dv_devx_general_cmd(struct ibv_context *context, const void *in, size_t inlen, void *out,
			size_t outlen)
{
	int err = box_turn(__func__, out);

	if (err != 0)
		return err;
	return result(soft_cmd_if.general(ctx_of(context)->soft, in, inlen, out, outlen), out,
		      outlen);
}

struct mlx5dv_devx_obj *
mlx5dv_devx_obj_create(struct ibv_context *context, const void *in, size_t inlen, void *out,
		       size_t outlen)
{
	struct mlx5dv_devx_obj *o;
	struct mlx5_obj *soft;
	int err = box_turn(__func__, out);

	if (err == 0)
		err = result(soft_cmd_if.obj_create(ctx_of(context)->soft, in, inlen, out, outlen,
						    &soft),
			     out, outlen);
	if (err != 0)
		return null(err);
	o = handle(sizeof(*o));
	o->soft = soft;
	return o;
}

int
mlx5dv_devx_obj_query(struct mlx5dv_devx_obj *obj, const void *in, size_t inlen, void *out,
		      size_t outlen)
{
	int err = box_turn(__func__, out);

	if (err != 0)
		return err;
	return result(soft_cmd_if.obj_query(obj->soft, in, inlen, out, outlen), out, outlen);
}

int
mlx5dv_devx_obj_modify(struct mlx5dv_devx_obj *obj, const void *in, size_t inlen, void *out,
		       size_t outlen)
{
	int err = box_turn(__func__, out);

	if (err != 0)
		return err;
	return result(soft_cmd_if.obj_modify(obj->soft, in, inlen, out, outlen), out, outlen);
}

/* When the device is gone, the kernel has destroyed the object: so does this. */
static int
destroyed(const char *call, int (*destroy)(void *h), void *h, void *mem)
{
	int err = turn(call), ret;

	if (err != 0 && !subst.gone)
		return err;
	ret = destroy(h);
	if (ret != 0)
		return -ret;
	release(mem);
	return err;
}

static int
destroy_obj(void *h)
{
	return soft_cmd_if.obj_destroy(((struct mlx5dv_devx_obj *)h)->soft);
}

int
mlx5dv_devx_obj_destroy(struct mlx5dv_devx_obj *obj)
{
	return destroyed(__func__, destroy_obj, obj, obj);
}

int
mlx5dv_devx_query_eqn(struct ibv_context *context, uint32_t vector, uint32_t *eqn)
{
	int err = turn(__func__);

	return err != 0 ? err : -soft_cmd_if.query_eqn(ctx_of(context)->soft, vector, eqn);
}

/* ---- Memory */

static struct mlx5dv_devx_umem *
umem_reg(struct ibv_context *context, void *addr, size_t size, uint32_t access, uint64_t bitmap)
{
	struct mlx5_umem *soft;
	struct umem *u;
	int ret = soft_cmd_if.umem_reg(ctx_of(context)->soft, addr, size, access, bitmap, &soft);

	if (ret != 0)
		return null(-ret);
	u = handle(sizeof(*u));
	u->ctx = ctx_of(context);
	u->soft = soft;
	u->pub.umem_id = soft->id;
	return &u->pub;
}

struct mlx5dv_devx_umem *
mlx5dv_devx_umem_reg_ex(struct ibv_context *context, struct mlx5dv_devx_umem_in *in)
{
	int err = turn(__func__);

	subst.umem_reg_ex++;
	subst.pgsz_bitmap = in->pgsz_bitmap;
	if (err == 0 && (subst.no_bitmap || in->comp_mask != 0))
		err = EOPNOTSUPP;
	if (err != 0)
		return null(err);
	return umem_reg(context, in->addr, in->size, in->access, in->pgsz_bitmap);
}

struct mlx5dv_devx_umem *
mlx5dv_devx_umem_reg(struct ibv_context *context, void *addr, size_t size, uint32_t access)
{
	int err = turn(__func__);

	subst.umem_reg++;
	if (err != 0)
		return null(err);
	/* What the kernel takes when none is given: whatever fits. */
	return umem_reg(context, addr, size, access, ~UINT64_C(0xfff));
}

static int
destroy_umem(void *h)
{
	struct umem *u = h;

	return soft_cmd_if.umem_dereg(u->ctx->soft, u->soft);
}

int
mlx5dv_devx_umem_dereg(struct mlx5dv_devx_umem *umem)
{
	return destroyed(__func__, destroy_umem, umem, umem);
}

struct mlx5dv_devx_uar *
mlx5dv_devx_alloc_uar(struct ibv_context *context, uint32_t flags)
{
	struct mlx5_uar *soft;
	struct uar *u;
	int err = turn(__func__), ret;

	if (err != 0)
		return null(err);
	ret = soft_cmd_if.uar_alloc(ctx_of(context)->soft,
				    flags == MLX5DV_UAR_ALLOC_TYPE_BF ? MLX5_UAR_BF : MLX5_UAR_NC,
				    &soft);
	if (ret != 0)
		return null(-ret);
	u = handle(sizeof(*u));
	u->ctx = ctx_of(context);
	u->soft = soft;
	u->pub.reg_addr = soft->reg_addr;
	u->pub.base_addr = soft->base_addr;
	u->pub.page_id = soft->page_id;
	LIST_INSERT_HEAD(&uars, u, link);
	return &u->pub;
}

void
mlx5dv_devx_free_uar(struct mlx5dv_devx_uar *uar)
{
	struct uar *u = (struct uar *)(void *)uar;

	if (soft_cmd_if.uar_free(u->ctx->soft, u->soft) != 0)
		return; /* leaks, and shows as a live handle */
	LIST_REMOVE(u, link);
	release(u);
}

struct ibv_pd *
ibv_alloc_pd(struct ibv_context *context)
{
	struct mlx5_pd *soft;
	struct pd *p;
	int err = turn(__func__), ret;

	if (err != 0)
		return null(err);
	ret = soft_cmd_if.pd_alloc(ctx_of(context)->soft, &soft);
	if (ret != 0)
		return null(-ret);
	p = handle(sizeof(*p));
	p->pub.context = context;
	p->soft = soft;
	return &p->pub;
}

static int
destroy_pd(void *h)
{
	struct pd *p = h;

	return soft_cmd_if.pd_free(ctx_of(p->pub.context)->soft, p->soft);
}

int
ibv_dealloc_pd(struct ibv_pd *pd)
{
	return destroyed(__func__, destroy_pd, pd, pd);
}

struct ibv_mr *
ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	struct mlx5_mr *soft;
	struct mr *m;
	int err = turn(__func__), ret;

	if (err == 0 && iova != (uintptr_t)addr)
		err = EINVAL;
	if (err != 0)
		return null(err);
	ret = soft_cmd_if.mr_reg(ctx_of(pd->context)->soft, ((struct pd *)(void *)pd)->soft, addr,
				 length, access, &soft);
	if (ret != 0)
		return null(-ret);
	m = handle(sizeof(*m));
	m->pub.context = pd->context;
	m->pub.lkey = soft->lkey;
	m->pub.rkey = soft->rkey;
	m->soft = soft;
	return &m->pub;
}

struct ibv_mr *
ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, (unsigned int)access);
}

static int
destroy_mr(void *h)
{
	struct mr *m = h;

	return soft_cmd_if.mr_dereg(ctx_of(m->pub.context)->soft, m->soft);
}

int
ibv_dereg_mr(struct ibv_mr *mr)
{
	return destroyed(__func__, destroy_mr, mr, mr);
}

/* ---- Ports and addresses */

int
ibv_query_port(struct ibv_context *context, uint8_t port_num, struct _compat_ibv_port_attr *compat)
{
	struct ibv_port_attr *attr = (struct ibv_port_attr *)(void *)compat;
	struct mlx5_port p;
	int err = turn(__func__), ret;

	if (err != 0)
		return err;
	ret = soft_cmd_if.port_query(ctx_of(context)->soft, port_num, &p);
	if (ret != 0)
		return -ret;
	attr->state = p.state == BB_PORT_ACTIVE ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
	attr->link_layer = p.link_layer == BB_LINK_ETHERNET ? IBV_LINK_LAYER_ETHERNET
							    : IBV_LINK_LAYER_INFINIBAND;
	attr->max_mtu = IBV_MTU_4096;
	attr->active_mtu = p.active_mtu == 4096 ? IBV_MTU_4096 : IBV_MTU_1024;
	attr->lid = p.lid;
	attr->gid_tbl_len = (int)p.gids;
	return 0;
}

int
_ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
		  struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	static const uint32_t types[] = {
		[BB_GID_IB] = IBV_GID_TYPE_IB,
		[BB_GID_ROCE_V1] = IBV_GID_TYPE_ROCE_V1,
		[BB_GID_ROCE_V2] = IBV_GID_TYPE_ROCE_V2,
	};
	struct bb_gid gid;
	int err = turn(__func__), ret;

	if (err == 0 && (flags != 0 || entry_size != sizeof(*entry)))
		err = EINVAL;
	if (err != 0)
		return err;
	ret = soft_cmd_if.gid_query(ctx_of(context)->soft, port_num, gid_index, &gid);
	if (ret != 0)
		return ret == -ENOENT ? ENODATA : -ret;
	memset(entry, 0, sizeof(*entry));
	memcpy(entry->gid.raw, gid.raw, sizeof(gid.raw));
	entry->gid_type = subst.gid_type != 0 ? subst.gid_type : types[gid.type];
	return 0;
}

struct ibv_ah *
ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct mlx5_av av;
	struct ah *a;
	int err = turn(__func__), ret;

	if (err == 0 && (!attr->is_global || attr->grh.hop_limit == 0))
		err = EINVAL;
	if (err != 0)
		return null(err);
	ret = soft_cmd_if.av_resolve(ctx_of(pd->context)->soft, ((struct pd *)(void *)pd)->soft,
				     attr->port_num, attr->grh.sgid_index, attr->grh.dgid.raw, &av);
	if (ret != 0)
		return null(-ret);
	a = handle(sizeof(*a));
	memcpy(a->av.rmac, av.dmac, sizeof(av.dmac));
	return &a->pub;
}

int
ibv_destroy_ah(struct ibv_ah *ah)
{
	release(ah);
	return 0;
}

int
mlx5dv_init_obj(struct mlx5dv_obj *obj, uint64_t obj_type)
{
	int err = turn(__func__);

	if (err != 0)
		return err;
	switch (obj_type) {
	case MLX5DV_OBJ_PD:
		obj->pd.out->pdn = ((struct pd *)(void *)obj->pd.in)->soft->pdn;
		return 0;
	case MLX5DV_OBJ_AH:
		obj->ah.out->av = &((struct ah *)(void *)obj->ah.in)->av;
		return 0;
	default:
		return EOPNOTSUPP;
	}
}

/* ---- Events */

struct mlx5dv_devx_event_channel *
mlx5dv_devx_create_event_channel(struct ibv_context *context,
				 enum mlx5dv_devx_create_event_channel_flags flags)
{
	struct channel *ch;
	int err = turn(__func__);

	if (err == 0 && (subst.no_channel || flags != 0))
		err = EOPNOTSUPP;
	if (err != 0)
		return null(err);
	ch = handle(sizeof(*ch));
	ch->ctx = ctx_of(context);
	ch->pub.fd = subst.bad_channel_fd ? -1 : eventfd(0, 0);
	return &ch->pub;
}

void
mlx5dv_devx_destroy_event_channel(struct mlx5dv_devx_event_channel *channel)
{
	close(channel->fd);
	release(channel);
}

int
mlx5dv_devx_subscribe_devx_event(struct mlx5dv_devx_event_channel *channel,
				 struct mlx5dv_devx_obj *obj, uint16_t events_sz,
				 uint16_t events_num[], uint64_t cookie)
{
	struct channel *ch = (struct channel *)(void *)channel;
	int err = turn(__func__);

	if (err == 0 && events_sz % sizeof(events_num[0]) != 0)
		err = EINVAL;
	if (err != 0)
		return err;
	return -soft_cmd_if.event_subscribe(ch->ctx->soft, obj->soft, events_num,
					    events_sz / (unsigned int)sizeof(events_num[0]),
					    cookie);
}

void
subst_async(enum ibv_event_type type, int port)
{
	async[n_async % QUEUE].event_type = type;
	async[n_async++ % QUEUE].element.port_num = port;
}

void
subst_devx_overflow(void)
{
	devx[n_devx++ % QUEUE] = (struct devx_event){.err = EOVERFLOW};
}

void
subst_devx_event(uint64_t cookie, uint8_t type, uint32_t bytes)
{
	devx[n_devx++ % QUEUE] = (struct devx_event){cookie, type, bytes, 0};
}

/* The software device has one queue per context; the kernel has a descriptor for each kind. */
static void
sort_events(struct ctx *c)
{
	struct mlx5_cmd_event ev;

	while (soft_cmd_if.event_get(c->soft, &ev) == 0) {
		if (ev.type == BB_PRM_EVENT_PORT_CHANGE)
			subst_async(IBV_EVENT_PORT_ACTIVE, (int)ev.port);
		else
			subst_devx_event(ev.cookie, (uint8_t)ev.type, 64);
	}
}

static bool
nonblocking(int fd)
{
	return (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0;
}

ssize_t
mlx5dv_devx_get_event(struct mlx5dv_devx_event_channel *channel,
		      struct mlx5dv_devx_async_event_hdr *event, size_t len)
{
	struct channel *ch = (struct channel *)(void *)channel;
	int err = turn(__func__);
	struct devx_event *e;

	if (!nonblocking(channel->fd))
		abort(); /* would block */
	sort_events(ch->ctx);
	if (err == 0 && next_devx == n_devx)
		err = EAGAIN;
	if (err != 0) {
		errno = err;
		return -1;
	}
	e = &devx[next_devx++ % QUEUE];
	if (e->err != 0 || sizeof(*event) + e->bytes > len) {
		errno = e->err != 0 ? e->err : ENOSPC;
		return -1;
	}
	event->cookie = e->cookie;
	memset(event->out_data, 0, e->bytes);
	if (e->bytes > 1)
		event->out_data[1] = e->type;
	return (ssize_t)(sizeof(*event) + e->bytes);
}

int
ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	int err = turn(__func__);

	if (!nonblocking(context->async_fd))
		abort(); /* would block */
	sort_events(ctx_of(context));
	if (err == 0 && next_async == n_async)
		err = EAGAIN;
	if (err != 0) {
		errno = err;
		return -1;
	}
	*event = async[next_async++ % QUEUE];
	subst.handles++; /* to be acknowledged */
	return 0;
}

void
ibv_ack_async_event(struct ibv_async_event *event)
{
	(void)event;
	subst.handles--;
}
