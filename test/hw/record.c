/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mlx5.h"
#include "record.h"

static struct {
	struct mlx5_dev *d;
	const struct mlx5_cmd_if *real;
	struct mlx5_cmd_if cmd; /* the device's own functions, which this file wraps */
	json_t *log;
} rec;

json_t *
record_hex(const void *data, size_t len)
{
	const uint8_t *p = data;
	char *text = malloc(2 * len + 1);
	json_t *s;
	size_t i;

	if (text == NULL)
		return json_null();
	for (i = 0; i < len; i++)
		snprintf(text + 2 * i, 3, "%02x", p[i]);
	s = json_stringn(text, 2 * len);
	free(text);
	return s;
}

static int
mailbox(const char *call, const void *in, size_t inlen, const void *out, size_t outlen, int ret)
{
	json_array_append_new(rec.log, json_pack("{s:s, s:o, s:o, s:i}", "call", call, "in",
						 record_hex(in, inlen), "out",
						 record_hex(out, outlen), "ret", ret));
	return ret;
}

/* Records calls of the kernel without a mailbox, without addresses, which differ in each run. */
static int
ioctl_call(const char *call, const char *asked, int ret)
{
	json_array_append_new(
		rec.log, json_pack("{s:s, s:s, s:i}", "call", call, "asked", asked, "ret", ret));
	return ret;
}

static int
general(struct mlx5_ctx *ctx, const void *in, size_t inlen, void *out, size_t outlen)
{
	int ret = rec.real->general(ctx, in, inlen, out, outlen);

	return mailbox("general", in, inlen, out, outlen, ret);
}

static int
obj_create(struct mlx5_ctx *ctx, const void *in, size_t inlen, void *out, size_t outlen,
	   struct mlx5_obj **obj)
{
	int ret = rec.real->obj_create(ctx, in, inlen, out, outlen, obj);

	return mailbox("obj_create", in, inlen, out, outlen, ret);
}

/* Clears the peer's GID and MAC address in a copy: reports name no host. */
static void
clear_addresses(uint8_t *in)
{
	void *ads = bb_prm_sub(bb_prm_sub(in, BB_PRM_MODIFY_QP_QPC), BB_PRM_QPC_ADS);

	memset(bb_prm_sub(ads, BB_PRM_ADS_RGID_RIP), 0, 16);
	bb_prm_set(ads, BB_PRM_ADS_RMAC_47_32, 0);
	bb_prm_set(ads, BB_PRM_ADS_RMAC_31_0, 0);
}

static int
obj_modify(struct mlx5_obj *obj, const void *in, size_t inlen, void *out, size_t outlen)
{
	int ret = rec.real->obj_modify(obj, in, inlen, out, outlen);
	uint8_t copy[BB_PRM_SZ_MODIFY_QP_IN];
	uint32_t op = bb_prm_get(in, BB_PRM_CMD_OPCODE);

	if (op == BB_PRM_OP_INIT2RTR_QP && inlen == sizeof(copy)) {
		memcpy(copy, in, inlen);
		clear_addresses(copy);
		in = copy;
	}
	return mailbox("obj_modify", in, inlen, out, outlen, ret);
}

static int
obj_query(struct mlx5_obj *obj, const void *in, size_t inlen, void *out, size_t outlen)
{
	int ret = rec.real->obj_query(obj, in, inlen, out, outlen);

	return mailbox("obj_query", in, inlen, out, outlen, ret);
}

static int
obj_destroy(struct mlx5_obj *obj)
{
	return ioctl_call("obj_destroy", "", rec.real->obj_destroy(obj));
}

static int
umem_reg(struct mlx5_ctx *ctx, void *addr, size_t len, uint32_t access, uint64_t pgsz_bitmap,
	 struct mlx5_umem **umem)
{
	int ret = rec.real->umem_reg(ctx, addr, len, access, pgsz_bitmap, umem);
	char asked[96];

	snprintf(asked, sizeof(asked), "%zu bytes, access 0x%x, page sizes 0x%" PRIx64, len, access,
		 pgsz_bitmap);
	return ioctl_call("umem_reg", asked, ret);
}

static int
uar_alloc(struct mlx5_ctx *ctx, enum mlx5_uar_type type, struct mlx5_uar **uar)
{
	int ret = rec.real->uar_alloc(ctx, type, uar);

	return ioctl_call("uar_alloc", type == MLX5_UAR_BF ? "BlueFlame" : "not cached", ret);
}

static int
mr_reg(struct mlx5_ctx *ctx, struct mlx5_pd *pd, const struct mlx5_mr_attr *attr,
       struct mlx5_mr **mr)
{
	int ret = rec.real->mr_reg(ctx, pd, attr, mr);
	char asked[64];

	snprintf(asked, sizeof(asked), "kind %d, %" PRIu64 " bytes, access 0x%x", (int)attr->kind,
		 attr->len, attr->access);
	return ioctl_call("mr_reg", asked, ret);
}

json_t *
record_start(struct bb_dev *dev)
{
	struct mlx5_dev *d;

	if (strcmp(dev->attr.driver, "mlx5") != 0)
		return NULL;
	d = mlx5_dev_of(dev);
	rec.d = d;
	rec.real = d->cmd;
	rec.cmd = *d->cmd;
	rec.cmd.general = general;
	rec.cmd.obj_create = obj_create;
	rec.cmd.obj_modify = obj_modify;
	rec.cmd.obj_query = obj_query;
	rec.cmd.obj_destroy = obj_destroy;
	rec.cmd.umem_reg = umem_reg;
	rec.cmd.uar_alloc = uar_alloc;
	rec.cmd.mr_reg = mr_reg;
	rec.log = json_array();
	d->cmd = &rec.cmd;
	d->ctx->cmd = &rec.cmd;
	(void)mlx5_caps_query(d);
	return rec.log;
}

void
record_stop(void)
{
	rec.d->cmd = rec.real;
	rec.d->ctx->cmd = rec.real;
}
