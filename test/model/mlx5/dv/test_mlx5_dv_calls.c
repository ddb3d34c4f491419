/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Tests mlx5_cmd_dv.c call by call: errors, refusals, ports, events. */
#include "mlx5_dv_env.h"

static const struct bb_dev_info *
listed(const struct bb_dev_info *info, int n)
{
	int i;

	for (i = 0; i < n; i++)
		if (strcmp(info[i].name, SUBST_NAME) == 0)
			return &info[i];
	return NULL;
}

T(test_devices_of_mlx5_are_listed)
{
	struct bb_dev_info info[32];
	int n;

	n = bb_dev_list(info, RTE_DIM(info));
	assert_in_range(n, 1, RTE_DIM(info));
	assert_non_null(listed(info, n));
	assert_string_equal(listed(info, n)->bus, SUBST_BUS);
	assert_string_equal(listed(info, n)->driver, "mlx5");
	assert_int_equal(bb_dev_list(NULL, 0), n);

	/* A machine without verbs, and a machine with another vendor's card. */
	subst.no_devices = true;
	n = bb_dev_list(info, RTE_DIM(info));
	assert_null(listed(info, n));
	subst.no_devices = false;
	subst.foreign = true;
	n = bb_dev_list(info, RTE_DIM(info));
	assert_null(listed(info, n));
}

T(test_errors_of_open_are_mapped_and_logged)
{
	static const struct {
		int err, ret;
		const char *text;
	} map[] = {
		{EPERM, -EPERM, "group rdma; in a container also --device"},
		{EACCES, -EACCES, "/dev/infiniband/uverbs"},
		{ENOENT, -EACCES, "ib_uverbs"},
		{ENODEV, -EACCES, "ib_uverbs"},
		{ENXIO, -EACCES, "ib_uverbs"},
		{EINVAL, -EOPNOTSUPP, "UCTX_EN"},
		{ENOSYS, -EOPNOTSUPP, "no DEVX"},
		{ENOTTY, -EOPNOTSUPP, "no DEVX"},
		{EOPNOTSUPP, -EOPNOTSUPP, "no DEVX"},
		{EPROTONOSUPPORT, -EOPNOTSUPP, "no DEVX"},
		{ENOMEM, -ENOMEM, "ulimit -l"},
		{EBUSY, -EBUSY, "cannot open"},
		{-1, -EIO, "cannot open"},
	};
	struct bb_dev *dev = NULL;
	size_t i;

	for (i = 0; i < RTE_DIM(map); i++) {
		forget_log();
		subst.open_errno = map[i].err;
		assert_int_equal(bb_dev_open(SUBST_NAME, &dev), map[i].ret);
		assert_true(said(SUBST_NAME));
		assert_true(said(map[i].text));
	}
	subst.open_errno = 0;
	subst.bad_async_fd = true;
	assert_int_equal(bb_dev_open(SUBST_NAME, &dev), -EBADF);
	subst.bad_async_fd = false;
	subst.bad_channel_fd = true;
	assert_int_equal(bb_dev_open(SUBST_NAME, &dev), -EBADF);
	subst.bad_channel_fd = false;
	assert_true(said("non-blocking"));
	forget_log();
	assert_int_equal(bb_dev_open(SUBST_NAME ",fast=1", &dev), -EINVAL);
	assert_int_equal(bb_dev_open(SUBST_NAME ",cq_resize=1", &dev), -EINVAL);
	assert_int_equal(bb_dev_open(SUBST_NAME ",cq_resize,x", &dev), -EINVAL);
	assert_int_equal(bb_dev_open(SUBST_NAME ",cq_resize,bf_copy=", &dev), -EINVAL);
	assert_int_equal(bb_dev_open(SUBST_NAME ",bf_copy=plain0123456789ab", &dev), -EINVAL);
	assert_true(said("valid options: cq_resize, no_bf, bf_copy="));
	assert_int_equal(bb_dev_open(SUBST_NAME ",bf_copy=fast,cq_resize", &dev), -EINVAL);
	assert_true(said("unknown bf_copy"));
	subst.no_devices = true;
	assert_int_equal(bb_dev_open(SUBST_NAME, &dev), -ENODEV);
	subst.no_devices = false;
	subst.foreign = true;
	assert_int_equal(bb_dev_open(SUBST_NAME, &dev), -ENODEV);
	assert_null(dev);
}

/* All queues ring the uncached register by 8-byte stores. */
T(test_no_bf_opens_the_device_as_one_without_blueflame)
{
	struct ex x;

	assert_int_equal(exchange(&x, SUBST_NAME ",no_bf,cq_resize"), 0);
	assert_int_equal(x.dev->attr.bf_size, 0);
	assert_int_equal(x.a->sq.bf_size, 0);
	assert_null(x.a->sq.ring);
	assert_int_equal(finish(&x), 0);
}

/* libmlx5 has uncached UARs only if the kernel has objects for UARs. */
T(test_no_bf_works_on_kernels_without_uncached_uars)
{
	struct ex x;

	subst.no_nc_uar = true;
	assert_int_equal(exchange(&x, SUBST_NAME ",no_bf,cq_resize"), 0);
	assert_true(said("5.7"));
	assert_int_equal(x.a->sq.bf_size, 0);
	assert_null(x.a->sq.ring);
	assert_int_equal(finish(&x), 0);
}

/* A command that the firmware refuses: reported by status, and by errno on an older kernel. */
T(test_refused_commands_are_reported_by_status)
{
	uint8_t in[16] = {0x0b, 0x00}, out[16];
	struct mlx5_ctx *ctx;
	struct ex x;

	assert_int_equal(exchange(&x, SUBST_NAME ",cq_resize"), 0);
	ctx = ctx_of(&x);
	assert_int_equal(ctx->cmd->general(ctx, in, sizeof(in), out, sizeof(out)), -EREMOTEIO);
	assert_int_equal(bb_prm_get(out, BB_PRM_CMD_STATUS), BB_PRM_STAT_BAD_OP);
	subst.old_kernel = true;
	memset(out, 0xff, sizeof(out));
	assert_int_equal(ctx->cmd->general(ctx, in, sizeof(in), out, sizeof(out)), -EINVAL);
	assert_int_equal(bb_prm_get(out, BB_PRM_CMD_STATUS), 0);
	/* Callers would take EREMOTEIO without a status for a success. */
	subst.fail_at = 1;
	subst.fail_errno = EREMOTEIO;
	assert_int_equal(ctx->cmd->general(ctx, in, sizeof(in), out, sizeof(out)), -EIO);
	subst.old_kernel = false;
	/* Commands that the kernel rejects. */
	in[0] = 0x02;
	in[1] = 0x03;
	assert_int_equal(ctx->cmd->general(ctx, in, sizeof(in), out, sizeof(out)), -EINVAL);
	assert_int_equal(finish(&x), 0);
}

T(test_handle_of_another_object_is_refused)
{
	uint8_t in[16] = {0}, out[BB_PRM_SZ_QUERY_QP_OUT];
	struct mlx5_qp *a, *b;
	struct mlx5_ctx *ctx;
	struct ex x;

	assert_int_equal(exchange(&x, SUBST_NAME ",cq_resize"), 0);
	ctx = ctx_of(&x);
	a = x.a->ctrl->priv;
	b = x.b->ctrl->priv;
	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_QUERY_QP);
	bb_prm_set(in, BB_PRM_QUERY_QP_QPN, x.a->qpn);
	assert_int_equal(ctx->cmd->obj_query(a->obj, in, sizeof(in), out, sizeof(out)), 0);
	assert_int_equal(ctx->cmd->obj_query(b->obj, in, sizeof(in), out, sizeof(out)), -EINVAL);
	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_2ERR_QP);
	assert_int_equal(ctx->cmd->obj_modify(b->obj, in, sizeof(in), out, sizeof(out)), -EINVAL);
	/* The device cannot be closed while objects exist. */
	assert_int_equal(ctx->cmd->close(ctx), -EBUSY);
	assert_int_equal(finish(&x), 0);
}

T(test_ports_and_gids_know_their_limits)
{
	struct mlx5_port port;
	struct mlx5_ctx *ctx;
	struct bb_gid gid;
	struct ex x;

	assert_int_equal(exchange(&x, SUBST_NAME ",cq_resize"), 0);
	ctx = ctx_of(&x);
	assert_int_equal(ctx->cmd->port_query(ctx, 1, &port), 0);
	assert_int_equal(port.state, BB_PORT_ACTIVE);
	assert_int_equal(port.link_layer, BB_LINK_ETHERNET);
	assert_int_equal(port.active_mtu, 4096);
	assert_int_equal(port.max_mtu, 4096);
	assert_int_equal(ctx->cmd->port_query(ctx, 0, &port), -EINVAL);
	assert_int_equal(ctx->cmd->port_query(ctx, 300, &port), -EINVAL);
	assert_int_equal(ctx->cmd->port_query(ctx, 2, &port), -EINVAL);
	OK(bb_gid_query(x.dev, 1, 0, &gid));
	assert_int_equal(bb_gid_query(x.dev, 1, port.gids - 1, &gid), -ENOENT);
	subst.gid_type = IBV_GID_TYPE_ROCE_V1;
	OK(bb_gid_query(x.dev, 1, 0, &gid));
	assert_int_equal(gid.type, BB_GID_ROCE_V1);
	subst.gid_type = 99;
	assert_int_equal(bb_gid_query(x.dev, 1, 0, &gid), -EOPNOTSUPP);
	assert_int_equal(finish(&x), 0);
}

/* Memory errors of the kernel, and calls that an older kernel does not have. */
T(test_memory_errors_of_the_kernel_are_reported)
{
	struct bb_umem *umem = NULL;
	struct bb_umem_attr attr;
	struct bb_dm *dm = NULL;
	struct bb_dev_attr da;
	struct bb_mr *mr = NULL;
	struct ex x;

	assert_int_equal(exchange(&x, SUBST_NAME ",cq_resize"), 0);
	OK(bb_dev_query(x.dev, &da));
	assert_true(da.dmabuf);
	assert_int_equal(da.max_dm_size, 128 << 10);
	assert_int_equal(subst.dm_log_align, 6);
	assert_int_equal(bb_dm_alloc(x.dev, da.max_dm_size, 0, &dm), -ENOMEM);
	assert_true(said("all processes share the device memory"));
	assert_int_equal(bb_dm_free(x.mem.dm), -EBUSY);
	assert_int_equal(bb_mr_reg_dmabuf(x.pd, 0, 64, 0, 12345, 0, &mr), -EBADF);
	bb_umem_attr_init(&attr);
	attr.addr = buf;
	attr.len = 4096;
	attr.pgsz_bitmap = 8192;
	assert_int_equal(bb_umem_reg_ex(x.dev, &attr, &umem), -EINVAL);
	attr.pgsz_bitmap = 4096;
	subst.no_bitmap = true;
	assert_int_equal(bb_umem_reg_ex(x.dev, &attr, &umem), -ENOTSUP);
	subst.no_bitmap = false;
	attr.dmabuf_fd = 12345;
	attr.pgsz_bitmap = 8192;
	assert_int_equal(bb_umem_reg_ex(x.dev, &attr, &umem), -EBADF);
	assert_int_equal(subst.pgsz_bitmap, 8192);
	attr.pgsz_bitmap = BB_UMEM_ANY_PAGE;
	subst.no_dmabuf = true;
	assert_int_equal(bb_umem_reg_ex(x.dev, &attr, &umem), -ENOTSUP);
	subst.no_dmabuf = false;
	assert_null(umem);
	assert_null(dm);
	assert_null(mr);
	assert_int_equal(finish(&x), 0);

	/* The attempt at open left nothing behind, and every other error means no support. */
	subst.no_dmabuf = true;
	OK(bb_dev_open(SUBST_NAME, &x.dev));
	OK(bb_dev_query(x.dev, &da));
	assert_false(da.dmabuf);
	OK(bb_dev_close(x.dev));
}

T(test_resizing_a_cq_of_a_card_needs_the_option_cq_resize)
{
	static const char *const specs[] = {SUBST_NAME, SUBST_NAME ",cq_resize"};
	struct bb_cq_attr ca;
	struct bb_dev_attr da;
	struct bb_dev *dev;
	struct bb_cq *cq;
	unsigned int i;

	for (i = 0; i < RTE_DIM(specs); i++) {
		OK(bb_dev_open(specs[i], &dev));
		OK(bb_dev_query(dev, &da));
		assert_int_equal(da.cq_resize, i);
		bb_cq_attr_init(&ca);
		ca.depth = 64;
		OK(bb_cq_create(dev, &ca, &cq));
		forget_log();
		assert_int_equal(bb_cq_resize(cq, 128), i == 0 ? -ENOTSUP : 0);
		assert_true(said("option cq_resize") == (i == 0));
		assert_int_equal(bb_cq_depth(cq), i == 0 ? 64 : 128);
		OK(bb_cq_destroy(cq));
		OK(bb_dev_close(dev));
	}
}

/* An InfiniBand port: no address handles, GIDs of another type. */
T(test_infiniband_port_has_its_own_gids)
{
	struct bb_port_attr port;
	struct bb_gid gid;
	struct ex x;

	snprintf(subst.args, sizeof(subst.args), "link=ib,dmabuf=memfd");
	assert_int_equal(exchange(&x, SUBST_NAME ",cq_resize"), 0);
	OK(bb_gid_query(x.dev, 1, 0, &gid));
	assert_int_equal(gid.type, BB_GID_IB);
	OK(bb_port_query(x.dev, 1, &port));
	assert_false(port.grh_required);
	assert_int_equal(finish(&x), 0);

	/* A port that needs a GRH on every path, as virtual functions do. */
	snprintf(subst.args, sizeof(subst.args), "link=ib,grh_required,dmabuf=memfd");
	assert_int_equal(exchange(&x, SUBST_NAME ",cq_resize"), 0);
	OK(bb_port_query(x.dev, 1, &port));
	assert_true(port.grh_required);
	assert_int_equal(finish(&x), 0);
}

T(test_kernel_events_are_translated)
{
	static const struct {
		enum ibv_event_type verbs;
		enum bb_event_type ours;
	} port_types[] = {
		{IBV_EVENT_PORT_ACTIVE, BB_EVENT_PORT_ACTIVE},
		{IBV_EVENT_PORT_ERR, BB_EVENT_PORT_DOWN},
		{IBV_EVENT_LID_CHANGE, BB_EVENT_PORT_CHANGE},
		{IBV_EVENT_PKEY_CHANGE, BB_EVENT_PORT_CHANGE},
		{IBV_EVENT_GID_CHANGE, BB_EVENT_PORT_CHANGE},
	};
	struct bb_sge sge = {(uintptr_t)buf, 8, 0};
	struct bb_event ev;
	struct mlx5_qp *q;
	struct bb_wc wc;
	struct ex x;
	size_t i;

	assert_int_equal(exchange(&x, SUBST_NAME ",cq_resize"), 0);
	for (i = 0; i < RTE_DIM(port_types); i++) {
		subst_async(IBV_EVENT_SM_CHANGE, 1); /* an event that the library ignores */
		subst_async(port_types[i].verbs, 1);
		OK(bb_event_get(x.dev, &ev));
		assert_int_equal(ev.type, port_types[i].ours);
		assert_int_equal(ev.port, 1);
	}
	assert_int_equal(bb_event_get(x.dev, &ev), -EAGAIN);
	/* Lost events are reported; truncated events are not guessed at. */
	q = x.a->ctrl->priv;
	subst_devx_overflow();
	subst_devx_event(q->cookie, BB_PRM_EVENT_WQ_CATAS_ERROR, 0);
	subst_devx_event(q->cookie, BB_PRM_EVENT_WQ_CATAS_ERROR, 64);
	OK(bb_event_get(x.dev, &ev));
	assert_int_equal(ev.type, BB_EVENT_QP_FATAL);
	assert_ptr_equal(ev.qp, x.a);
	assert_true(said("lost events"));
	/* A flood of events of either kind ends the call. */
	for (i = 0; i < 64; i++) {
		subst_devx_event(q->cookie, BB_PRM_EVENT_WQ_CATAS_ERROR, 0);
		subst_async(IBV_EVENT_SM_CHANGE, 1);
	}
	assert_int_equal(bb_event_get(x.dev, &ev), -EAGAIN);
	/* A real event: the responder refuses the peer's request. */
	sge.lkey = x.mr->lkey;
	OK(bb_post_write(x.a, 9, &sge, 1, (uintptr_t)buf, 1, 0));
	bb_qp_ring(x.a);
	for (i = 0; i < POLLS && bb_cq_poll(x.cq, &wc, 1) == 0; i++)
		subst_progress();
	assert_int_equal(wc.status, BB_WC_REM_ACCESS_ERR);
	OK(bb_event_get(x.dev, &ev));
	assert_int_equal(ev.type, BB_EVENT_QP_ACCESS);
	assert_ptr_equal(ev.qp, x.b);
	/* More event types than any object has. */
	assert_int_equal(
		ctx_of(&x)->cmd->event_subscribe(ctx_of(&x), q->obj, (uint16_t[9]){0}, 9, 1),
		-EINVAL);
	assert_int_equal(finish(&x), 0);
}

/*
 * The card is removed: the removal is reported once, and objects that the kernel destroyed can be
 * closed.
 */
T(test_removal_is_reported_once)
{
	struct bb_event ev;
	struct ex x;
	int how;

	for (how = 0; how < 2; how++) {
		subst_reset();
		assert_int_equal(exchange(&x, SUBST_NAME ",cq_resize"), 0);
		if (how == 0)
			subst_async(IBV_EVENT_DEVICE_FATAL, 0);
		else
			subst_remove();
		OK(bb_event_get(x.dev, &ev));
		assert_int_equal(ev.type, BB_EVENT_DEV_FATAL);
		if (how == 0)
			subst_remove();
		assert_int_equal(bb_event_get(x.dev, &ev), -EAGAIN);
		assert_int_equal(finish(&x), 0);
		assert_int_equal(subst.handles, 0);
	}
}

/* A waiter for completions learns of the removal and does not spin on a readable descriptor. */
T(test_removal_wakes_a_waiter)
{
	struct bb_cq *cq = NULL;
	struct bb_event ev;
	struct ex x;

	assert_int_equal(exchange(&x, SUBST_NAME ",cq_resize"), 0);
	assert_int_equal(bb_channel_get(x.ch, &cq), -EAGAIN);
	subst_remove();
	assert_int_equal(bb_channel_get(x.ch, &cq), -EIO);
	assert_int_equal(bb_channel_wait(x.ch, -1, &cq), -EIO);
	assert_null(cq);
	OK(bb_event_get(x.dev, &ev));
	assert_int_equal(ev.type, BB_EVENT_DEV_FATAL);
	assert_int_equal(finish(&x), 0);
}

/*
 * The card is removed before any event is polled: objects that the kernel destroyed can still be
 * destroyed and closed, and a later bb_event_get() reports the removal.
 */
T(test_removal_is_reported_after_the_objects_are_gone)
{
	struct bb_event ev;
	struct ex x;

	assert_int_equal(exchange(&x, SUBST_NAME ",cq_resize"), 0);
	subst_remove();
	assert_int_equal(finish(&x), 0);
	assert_int_equal(subst.handles, 0);

	subst_reset();
	assert_int_equal(exchange(&x, SUBST_NAME ",cq_resize"), 0);
	subst_remove();
	OK(bb_qp_destroy(x.a));
	x.a = NULL;
	OK(bb_event_get(x.dev, &ev));
	assert_int_equal(ev.type, BB_EVENT_DEV_FATAL);
	assert_int_equal(bb_event_get(x.dev, &ev), -EAGAIN);
	assert_int_equal(finish(&x), 0);
}

/* EIO of a device that is present is a failure: the object was not destroyed and may be in use. */
T(test_failed_destroy_is_reported)
{
	struct ex x;

	assert_int_equal(exchange(&x, SUBST_NAME ",cq_resize"), 0);
	subst.fail_at = 1;
	subst.fail_errno = EIO;
	assert_int_equal(bb_qp_destroy(x.a), -EIO);
	assert_int_equal(finish(&x), 0);
}

int
main(void)
{
	return run_group("mlx5_dv_calls");
}
