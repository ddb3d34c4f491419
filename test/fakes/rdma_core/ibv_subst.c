/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "ibv_subst_priv.h"
#include "soft_hooks.h"

struct subst subst;
struct uar_list subst_uars = LIST_HEAD_INITIALIZER(subst_uars);

static struct ibv_device device;

void
subst_reset(void)
{
	static char dir[] = P_tmpdir "/bb_subst_XXXXXX";
	static bool made;
	char link[sizeof(device.ibdev_path) + 16];

	memset(&subst, 0, sizeof(subst));
	snprintf(subst.args, sizeof(subst.args), "dmabuf=memfd");
	subst_events_reset();
	snprintf(device.name, sizeof(device.name), SUBST_NAME);
	if (made)
		return;
	/* Makes a sysfs folder whose "device" link names the PCI address. */
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

int
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

/*
 * Returns the errno if this command must fail. EREMOTEIO comes with the device's status in @out.
 */
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

/* Converts a result of the software device to a positive errno, as libmlx5 returns it. */
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

void *
handle(size_t size)
{
	void *p = calloc(1, size);

	if (p == NULL)
		abort();
	subst.handles++;
	return p;
}

void
release(void *p)
{
	subst.handles--;
	free(p);
}

void *
null(int err)
{
	errno = err;
	return NULL;
}

void
subst_progress(void)
{
	void (*fn)(void *arg) = NULL;
	void *arg = NULL;
	struct uar *u;

	LIST_FOREACH(u, &subst_uars, link) {
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

/* drivers/verbs is not under test and does not get the device. */
struct ibv_context *
ibv_open_device(struct ibv_device *dev)
{
	(void)dev;
	return null(ENODEV);
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
	c->verbs.sz = sizeof(c->verbs);
	c->verbs.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	c->verbs.context.device = dev;
	c->verbs.context.async_fd = subst.bad_async_fd ? -1 : eventfd(0, 0);
	subst_dm_ops(&c->verbs);
	subst_clock_ops(&c->verbs);
	subst_mw_ops(&c->verbs.context);
	return &c->verbs.context;
}

int
ibv_close_device(struct ibv_context *context)
{
	struct ctx *c = ctx_of(context);
	int err = turn(__func__), ret;

	/* Fails if the device still has objects. */
	ret = soft_cmd_if.close(c->soft);
	if (ret != 0)
		return -ret;
	close(c->verbs.context.async_fd);
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

int
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
