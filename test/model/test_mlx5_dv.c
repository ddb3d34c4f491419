/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The command interface on mlx5dv, without a card: libibverbs and libmlx5 are
 * replaced (test/fakes/ibv_subst.c), the firmware is the software device. The same
 * exchange of data goes through it once undisturbed and then with each call
 * failing in turn.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_malloc.h>

#include "bluebell.h"
#include "ibv_subst.h"
#include "mlx5.h"

#define BUF       4096
#define POLLS     100000
#define MAX_CALLS 500

static char *log_text;
static size_t log_len;
static FILE *log_file;
static uint8_t *buf;

struct ex {
	struct bb_dev *dev;
	struct bb_pd *pd;
	struct bb_cq *cq;
	struct bb_qp *a, *b;
	struct bb_mr *mr;
};

static int
setup(void **state)
{
	(void)state;
	subst_reset();
	rewind(log_file);
	memset(buf, 0, BUF);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	if (subst.handles != 0)
		fprintf(stderr, "%u handles of the substitute are left; the log says:\n%s",
			subst.handles, log_text);
	return subst.handles == 0 ? 0 : -1;
}

/* Was this said, since the test began? */
static bool
said(const char *text)
{
	fflush(log_file);
	return strstr(log_text, text) != NULL;
}

static void
forget_log(void)
{
	rewind(log_file);
	fflush(log_file);
	log_text[0] = '\0';
}

/* The next completion is a success of @wr_id. */
static int
complete(struct ex *x, uint64_t wr_id)
{
	struct bb_wc wc;
	unsigned int i;

	for (i = 0; i < POLLS; i++) {
		subst_progress();
		if (bb_cq_poll(x->cq, &wc, 1) == 0)
			continue;
		assert_int_equal(wc.status, BB_WC_SUCCESS);
		assert_int_equal(wc.wr_id, wr_id);
		return 0;
	}
	fail_msg("request %llu does not complete", (unsigned long long)wr_id);
	return -EIO;
}

/* WRITE, READ, FETCH_ADD and SEND between two QPs, checked byte for byte. */
static int
traffic(struct ex *x)
{
	struct bb_sge sge = {(uintptr_t)buf, 8, x->mr->lkey};
	uint64_t *word = (uint64_t *)(void *)buf, raddr = (uintptr_t)(buf + 1024);

	memset(buf, 0, BUF);
	word[0] = 0x1234;
	assert_int_equal(bb_post_write(x->a, 1, &sge, 1, raddr, x->mr->rkey, BB_SEND_SIGNALED), 1);
	bb_qp_ring(x->a);
	complete(x, 1);
	assert_int_equal(word[128], 0x1234);

	sge.addr = (uintptr_t)(buf + 64);
	assert_int_equal(bb_post_read(x->a, 2, &sge, 1, raddr, x->mr->rkey, BB_SEND_SIGNALED), 1);
	bb_qp_ring(x->a);
	complete(x, 2);
	assert_int_equal(word[8], 0x1234);

	assert_int_equal(bb_post_fetch_add(x->a, 3, &sge, raddr, x->mr->rkey, 2, BB_SEND_SIGNALED),
			 1);
	bb_qp_ring(x->a);
	complete(x, 3);
	assert_int_equal(word[8], 0x1234);
	assert_int_equal(word[128], 0x1236);

	sge.addr = (uintptr_t)(buf + 2048);
	assert_int_equal(bb_post_recv(x->b, 4, &sge, 1), 1);
	bb_qp_ring_recv(x->b);
	assert_int_equal(bb_post_send_inline(x->a, 5, "bluebell", 8, 0), 1);
	bb_qp_ring(x->a);
	complete(x, 4);
	assert_memory_equal(buf + 2048, "bluebell", 8);
	return 0;
}

static int
make(struct ex *x)
{
	struct bb_qp_init_attr init;
	struct bb_cq_attr cq;
	int ret;

	ret = bb_pd_alloc(x->dev, &x->pd);
	if (ret != 0)
		return ret;
	ret = bb_mr_reg(x->pd, buf, BUF,
			BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_READ |
				BB_ACCESS_REMOTE_ATOMIC,
			&x->mr);
	if (ret != 0)
		return ret;
	bb_cq_attr_init(&cq);
	cq.depth = 64;
	ret = bb_cq_create(x->dev, &cq, &x->cq);
	if (ret != 0)
		return ret;
	bb_qp_init_attr_init(&init);
	init.sq_depth = 16;
	init.rq_depth = 8;
	init.send_cq = x->cq;
	init.recv_cq = x->cq;
	ret = bb_qp_create(x->pd, &init, &x->a);
	if (ret != 0)
		return ret;
	return bb_qp_create(x->pd, &init, &x->b);
}

static int
connect_both(struct ex *x)
{
	struct bb_qp_addr a, b;
	struct bb_qp_attr attr;
	int ret;

	bb_qp_attr_init(&attr);
	attr.access = BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_READ | BB_ACCESS_REMOTE_ATOMIC;
	ret = bb_qp_addr(x->a, 1, 0, &a);
	if (ret == 0)
		ret = bb_qp_addr(x->b, 1, 0, &b);
	if (ret == 0)
		ret = bb_qp_connect(x->a, &a, &b, &attr);
	if (ret == 0)
		ret = bb_qp_connect(x->b, &b, &a, &attr);
	return ret;
}

static int
ask(struct ex *x)
{
	struct bb_dev_stats stats;
	struct bb_qp_attr attr;
	struct bb_event ev;
	int ret;

	ret = bb_dev_stats(x->dev, &stats);
	if (ret == 0)
		ret = bb_qp_query(x->a, &attr);
	if (ret == 0) {
		assert_int_equal(attr.state, BB_QP_RTS);
		ret = bb_event_get(x->dev, &ev);
	}
	return ret == -EAGAIN ? 0 : ret;
}

static int
exchange(struct ex *x, const char *spec)
{
	int ret;

	memset(x, 0, sizeof(*x));
	ret = bb_dev_open(spec, &x->dev);
	if (ret == 0)
		ret = make(x);
	if (ret == 0)
		ret = connect_both(x);
	if (ret == 0)
		ret = traffic(x);
	if (ret == 0)
		ret = ask(x);
	fflush(log_file);
	return ret;
}

/* Destroying may fail once; it can then be tried again. */
#define DESTROY(call)                                                                              \
	do {                                                                                       \
		int ret_ = call;                                                                   \
                                                                                                   \
		if (ret_ != 0) {                                                                   \
			if (first == 0)                                                            \
				first = ret_;                                                      \
			assert_int_equal(call, 0);                                                 \
		}                                                                                  \
	} while (0)

static int
finish(struct ex *x)
{
	int first = 0;

	if (x->a != NULL)
		DESTROY(bb_qp_destroy(x->a));
	if (x->b != NULL)
		DESTROY(bb_qp_destroy(x->b));
	if (x->cq != NULL)
		DESTROY(bb_cq_destroy(x->cq));
	if (x->mr != NULL)
		DESTROY(bb_mr_dereg(x->mr));
	if (x->pd != NULL)
		DESTROY(bb_pd_free(x->pd));
	if (x->dev != NULL)
		DESTROY(bb_dev_close(x->dev));
	return first;
}

static struct mlx5_ctx *
ctx_of(const struct ex *x)
{
	return mlx5_dev_of(x->dev)->ctx;
}

static void
undisturbed(void **state)
{
	struct bb_dev_attr attr;
	struct ex x;

	(void)state;
	assert_int_equal(exchange(&x, SUBST_NAME), 0);
	assert_int_equal(bb_dev_query(x.dev, &attr), 0);
	assert_false(attr.software);
	assert_string_equal(bb_dev_name(x.dev), SUBST_NAME);
	/* Nobody but the device itself runs it. */
	assert_null(x.cq->progress);
	assert_int_equal(x.a->sq.bf_size, 256);
	assert_int_equal(subst.pgsz_bitmap, 4096);
	assert_int_equal(subst.umem_reg, 0);
	assert_int_equal(finish(&x), 0);
}

static void
by_pci_address(void **state)
{
	struct ex x;

	(void)state;
	assert_int_equal(exchange(&x, SUBST_BUS), 0);
	assert_int_equal(finish(&x), 0);
}

/* Pieces of EAL's heap in use: what ASan does not see. */
static unsigned int
heap_pieces(void)
{
	struct rte_malloc_socket_stats stats;

	assert_int_equal(rte_malloc_get_socket_stats(0, &stats), 0);
	return stats.alloc_count;
}

static void
each_call_fails(int err)
{
	unsigned int pieces = heap_pieces();
	unsigned int refused = 0, degraded = 0;
	uint32_t k;

	for (k = 1; k < MAX_CALLS; k++) {
		struct ex x;
		int ret, late;

		subst_reset();
		forget_log();
		subst.fail_at = k;
		subst.fail_errno = err;
		ret = exchange(&x, SUBST_NAME);
		late = finish(&x);
		if (ret == 0)
			ret = late;
		if (subst.handles != 0)
			fail_msg("call %u (%s): %u handles are left", k, subst.failed_call,
				 subst.handles);
		if (heap_pieces() != pieces)
			fail_msg("call %u (%s) leaks EAL memory", k, subst.failed_call);
		if (!subst.failed)
			break;
		/* Either an error that the log explains, or it went without. */
		if (ret != 0) {
			assert_true(ret < 0);
			refused++;
		} else {
			degraded++;
		}
		if (ret != 0 && !said(SUBST_NAME))
			fail_msg("call %u (%s) gives %d and no line in the log", k,
				 subst.failed_call, ret);
	}
	assert_true(k < MAX_CALLS);
	assert_true(refused > 30);
	print_message("%s: %u calls failed in turn, %u of them could be done without\n",
		      strerror(err), k - 1, degraded);
	/*
	 * BlueFlame UAR and counter set; with EOPNOTSUPP the page size bitmap and all that
	 * has to do with events. The rest is needed.
	 */
	assert_in_range(degraded, 2, err == EOPNOTSUPP ? 8 : 4);
}

static void
each_call_fails_enomem(void **state)
{
	(void)state;
	each_call_fails(ENOMEM);
}

static void
each_call_fails_eperm(void **state)
{
	(void)state;
	each_call_fails(EPERM);
}

static void
each_call_fails_einval(void **state)
{
	(void)state;
	each_call_fails(EINVAL);
}

static void
each_call_fails_eopnotsupp(void **state)
{
	(void)state;
	each_call_fails(EOPNOTSUPP);
}

static void
each_call_fails_eremoteio(void **state)
{
	(void)state;
	each_call_fails(EREMOTEIO);
}

static const struct bb_dev_info *
listed(const struct bb_dev_info *info, int n)
{
	int i;

	for (i = 0; i < n; i++)
		if (strcmp(info[i].name, SUBST_NAME) == 0)
			return &info[i];
	return NULL;
}

static void
list(void **state)
{
	struct bb_dev_info info[32];
	int n;

	(void)state;
	n = bb_dev_list(info, RTE_DIM(info));
	assert_in_range(n, 1, RTE_DIM(info));
	assert_non_null(listed(info, n));
	assert_string_equal(listed(info, n)->bus, SUBST_BUS);
	assert_string_equal(listed(info, n)->driver, "mlx5");
	assert_int_equal(bb_dev_list(NULL, 0), n);

	/* A machine without verbs, and one with another vendor's card. */
	subst.no_devices = true;
	n = bb_dev_list(info, RTE_DIM(info));
	assert_null(listed(info, n));
	subst.no_devices = false;
	subst.foreign = true;
	n = bb_dev_list(info, RTE_DIM(info));
	assert_null(listed(info, n));
}

static void
open_errors(void **state)
{
	static const struct {
		int err, ret;
		const char *text;
	} map[] = {
		{EPERM, -EPERM, "CAP_NET_RAW"},
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

	(void)state;
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
	assert_true(said("no options"));
	subst.no_devices = true;
	assert_int_equal(bb_dev_open(SUBST_NAME, &dev), -ENODEV);
	subst.no_devices = false;
	subst.foreign = true;
	assert_int_equal(bb_dev_open(SUBST_NAME, &dev), -ENODEV);
	assert_null(dev);
}

/* Kernels without page size bitmaps, and without events. */
static void
older_kernels(void **state)
{
	struct bb_event ev;
	struct ex x;

	(void)state;
	subst.no_bitmap = true;
	subst.no_channel = true;
	subst.old_kernel = true;
	assert_int_equal(exchange(&x, SUBST_NAME), 0);
	assert_true(subst.umem_reg_ex > 0);
	assert_int_equal(subst.umem_reg, subst.umem_reg_ex);
	assert_true(said("no events"));
	/* Ports are still told of. */
	subst_async(IBV_EVENT_PORT_ERR, 1);
	assert_int_equal(bb_event_get(x.dev, &ev), 0);
	assert_int_equal(ev.type, BB_EVENT_PORT_CHANGE);
	assert_int_equal(finish(&x), 0);
}

/* A command that the firmware refuses: by status, and by errno from an older kernel. */
static void
refused_commands(void **state)
{
	uint8_t in[16] = {0x0b, 0x00}, out[16];
	struct mlx5_ctx *ctx;
	struct ex x;

	(void)state;
	assert_int_equal(exchange(&x, SUBST_NAME), 0);
	ctx = ctx_of(&x);
	assert_int_equal(ctx->cmd->general(ctx, in, sizeof(in), out, sizeof(out)), -EREMOTEIO);
	assert_int_equal(bb_prm_get(out, BB_PRM_CMD_STATUS), BB_PRM_STAT_BAD_OP);
	subst.old_kernel = true;
	memset(out, 0xff, sizeof(out));
	assert_int_equal(ctx->cmd->general(ctx, in, sizeof(in), out, sizeof(out)), -EINVAL);
	assert_int_equal(bb_prm_get(out, BB_PRM_CMD_STATUS), 0);
	/* EREMOTEIO without a status would be called a success further up. */
	subst.fail_at = 1;
	subst.fail_errno = EREMOTEIO;
	assert_int_equal(ctx->cmd->general(ctx, in, sizeof(in), out, sizeof(out)), -EIO);
	subst.old_kernel = false;
	/* What the kernel does not let pass. */
	in[0] = 0x02;
	in[1] = 0x03;
	assert_int_equal(ctx->cmd->general(ctx, in, sizeof(in), out, sizeof(out)), -EINVAL);
	assert_int_equal(finish(&x), 0);
}

/* A handle is not to be used for another object's command. */
static void
handle_checks(void **state)
{
	uint8_t in[16] = {0}, out[BB_PRM_SZ_QUERY_QP_OUT];
	struct mlx5_qp *a, *b;
	struct mlx5_ctx *ctx;
	struct ex x;

	(void)state;
	assert_int_equal(exchange(&x, SUBST_NAME), 0);
	ctx = ctx_of(&x);
	a = x.a->ctrl->priv;
	b = x.b->ctrl->priv;
	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_QUERY_QP);
	bb_prm_set(in, BB_PRM_QUERY_QP_QPN, x.a->qpn);
	assert_int_equal(ctx->cmd->obj_query(a->obj, in, sizeof(in), out, sizeof(out)), 0);
	assert_int_equal(ctx->cmd->obj_query(b->obj, in, sizeof(in), out, sizeof(out)), -EINVAL);
	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_2ERR_QP);
	assert_int_equal(ctx->cmd->obj_modify(b->obj, in, sizeof(in), out, sizeof(out)), -EINVAL);
	/* Not closed while objects live. */
	assert_int_equal(ctx->cmd->close(ctx), -EBUSY);
	assert_int_equal(finish(&x), 0);
}

static void
ports_and_gids(void **state)
{
	struct mlx5_port port;
	struct mlx5_ctx *ctx;
	struct bb_gid gid;
	struct ex x;

	(void)state;
	assert_int_equal(exchange(&x, SUBST_NAME), 0);
	ctx = ctx_of(&x);
	assert_int_equal(ctx->cmd->port_query(ctx, 1, &port), 0);
	assert_int_equal(port.state, BB_PORT_ACTIVE);
	assert_int_equal(port.link_layer, BB_LINK_ETHERNET);
	assert_int_equal(port.active_mtu, 4096);
	assert_int_equal(port.max_mtu, 4096);
	assert_int_equal(ctx->cmd->port_query(ctx, 0, &port), -EINVAL);
	assert_int_equal(ctx->cmd->port_query(ctx, 300, &port), -EINVAL);
	assert_int_equal(ctx->cmd->port_query(ctx, 2, &port), -EINVAL);
	assert_int_equal(bb_gid_query(x.dev, 1, 0, &gid), 0);
	assert_int_equal(bb_gid_query(x.dev, 1, port.gids - 1, &gid), -ENOENT);
	subst.gid_type = IBV_GID_TYPE_ROCE_V1;
	assert_int_equal(bb_gid_query(x.dev, 1, 0, &gid), 0);
	assert_int_equal(gid.type, BB_GID_ROCE_V1);
	subst.gid_type = 99;
	assert_int_equal(bb_gid_query(x.dev, 1, 0, &gid), -EOPNOTSUPP);
	assert_int_equal(finish(&x), 0);
}

/* An InfiniBand port: no address handles, GIDs of another type. */
static void
infiniband(void **state)
{
	struct bb_gid gid;
	struct ex x;

	(void)state;
	snprintf(subst.args, sizeof(subst.args), "link=ib");
	assert_int_equal(exchange(&x, SUBST_NAME), 0);
	assert_int_equal(bb_gid_query(x.dev, 1, 0, &gid), 0);
	assert_int_equal(gid.type, BB_GID_IB);
	assert_int_equal(finish(&x), 0);
}

static void
events(void **state)
{
	static const enum ibv_event_type port_types[] = {
		IBV_EVENT_PORT_ACTIVE, IBV_EVENT_PORT_ERR, IBV_EVENT_LID_CHANGE,
		IBV_EVENT_PKEY_CHANGE, IBV_EVENT_GID_CHANGE};
	struct bb_sge sge = {(uintptr_t)buf, 8, 0};
	struct bb_event ev;
	struct mlx5_qp *q;
	struct bb_wc wc;
	struct ex x;
	size_t i;

	(void)state;
	assert_int_equal(exchange(&x, SUBST_NAME), 0);
	for (i = 0; i < RTE_DIM(port_types); i++) {
		subst_async(IBV_EVENT_SM_CHANGE, 1); /* of no interest */
		subst_async(port_types[i], 1);
		assert_int_equal(bb_event_get(x.dev, &ev), 0);
		assert_int_equal(ev.type, BB_EVENT_PORT_CHANGE);
		assert_int_equal(ev.port, 1);
	}
	assert_int_equal(bb_event_get(x.dev, &ev), -EAGAIN);
	/* Lost ones are told of, ones cut short are not guessed at. */
	q = x.a->ctrl->priv;
	subst_devx_overflow();
	subst_devx_event(q->cookie, BB_PRM_EVENT_WQ_CATAS_ERROR, 0);
	subst_devx_event(q->cookie, BB_PRM_EVENT_WQ_CATAS_ERROR, 64);
	assert_int_equal(bb_event_get(x.dev, &ev), 0);
	assert_int_equal(ev.type, BB_EVENT_QP_FATAL);
	assert_ptr_equal(ev.qp, x.a);
	assert_true(said("lost events"));
	/* A flood of either kind ends a call. */
	for (i = 0; i < 64; i++) {
		subst_devx_event(q->cookie, BB_PRM_EVENT_WQ_CATAS_ERROR, 0);
		subst_async(IBV_EVENT_SM_CHANGE, 1);
	}
	assert_int_equal(bb_event_get(x.dev, &ev), -EAGAIN);
	/* A real one: the peer's request is refused. */
	sge.lkey = x.mr->lkey;
	assert_int_equal(bb_post_write(x.a, 9, &sge, 1, (uintptr_t)buf, 1, 0), 1);
	bb_qp_ring(x.a);
	for (i = 0; i < POLLS && bb_cq_poll(x.cq, &wc, 1) == 0; i++)
		subst_progress();
	assert_int_equal(wc.status, BB_WC_REM_ACCESS_ERR);
	assert_int_equal(bb_event_get(x.dev, &ev), 0);
	assert_int_equal(ev.type, BB_EVENT_QP_ACCESS);
	assert_ptr_equal(ev.qp, x.b);
	/* More types than anybody has. */
	assert_int_equal(
		ctx_of(&x)->cmd->event_subscribe(ctx_of(&x), q->obj, (uint16_t[9]){0}, 9, 1),
		-EINVAL);
	assert_int_equal(finish(&x), 0);
}

/* The card is pulled: said once, and what the kernel destroyed can be closed. */
static void
device_removed(void **state)
{
	struct bb_event ev;
	struct ex x;
	int how;

	(void)state;
	for (how = 0; how < 2; how++) {
		subst_reset();
		assert_int_equal(exchange(&x, SUBST_NAME), 0);
		if (how == 0)
			subst_async(IBV_EVENT_DEVICE_FATAL, 0);
		else
			subst.gone = true;
		assert_int_equal(bb_event_get(x.dev, &ev), 0);
		assert_int_equal(ev.type, BB_EVENT_DEV_FATAL);
		subst.gone = true;
		assert_int_equal(bb_event_get(x.dev, &ev), -EAGAIN);
		assert_int_equal(finish(&x), 0);
		assert_int_equal(subst.handles, 0);
	}
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static int
eal_init(void)
{
	static char args[][32] = {
		"test_mlx5_dv",   "--no-huge",   "-m", "64", "--no-pci",
		"--no-telemetry", "--no-shconf", "-l", "0",  "--file-prefix=bb_mlx5_dv"};
	char *argv[RTE_DIM(args) + 1] = {0};
	unsigned int i;

	for (i = 0; i < RTE_DIM(args); i++)
		argv[i] = args[i];
	return rte_eal_init((int)i, argv);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(undisturbed),
		T(by_pci_address),
		T(each_call_fails_enomem),
		T(each_call_fails_eperm),
		T(each_call_fails_einval),
		T(each_call_fails_eopnotsupp),
		T(each_call_fails_eremoteio),
		T(list),
		T(open_errors),
		T(older_kernels),
		T(refused_commands),
		T(handle_checks),
		T(ports_and_gids),
		T(infiniband),
		T(events),
		T(device_removed),
	};
	int ret;

	if (eal_init() < 0) {
		fprintf(stderr, "skipped: EAL does not start: %s\n", rte_strerror(rte_errno));
		return 77;
	}
	log_file = open_memstream(&log_text, &log_len);
	buf = rte_zmalloc("test", BUF, 4096);
	if (log_file == NULL || buf == NULL || rte_openlog_stream(log_file) != 0)
		return 1;
	fflush(log_file);
	ret = cmocka_run_group_tests(tests, NULL, NULL);
	rte_openlog_stream(NULL);
	fclose(log_file);
	free(log_text);
	rte_free(buf);
	return ret;
}
