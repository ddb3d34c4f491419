/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * QP1 of bb_verbs on a device without a network: MADs that wait until the device knows the MACs of
 * their destinations. The index of the source GID identifies a MAD.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bb_test.h"
#include "cm/qp1.h"
#include "soft_hooks.h"

#define SENT  64u /* MADs, and buffers of QP1 */
#define TABLE 64u /* MADs that may wait */
#define SHARE 16u /* of one destination */
#define HOSTS 200u

/* ---- The device */

static int reach[HOSTS]; /* result of av_ready() for host i */
static struct {
	uint8_t host, mad;
} sent[SENT];
static uint32_t n_sent;
static uint8_t registers[4096] __attribute__((aligned(4096)));
static struct mlx5_umem umem;
static struct mlx5_pd pd;
static struct mlx5_mr mr;
static struct mlx5_uar uar = {.reg_addr = registers + 0x800, .base_addr = registers};
static struct mlx5_channel channel = {.fd = -1};
static struct mlx5_obj obj;

bool
soft_run(struct mlx5_ctx *ctx)
{
	(void)ctx;
	return false;
}

static int
umem_reg(struct mlx5_ctx *ctx, void *addr, size_t len, uint32_t access, uint64_t pgsz_bitmap,
	 struct mlx5_umem **out)
{
	(void)ctx, (void)addr, (void)len, (void)access, (void)pgsz_bitmap;
	*out = &umem;
	return 0;
}

static int
umem_dereg(struct mlx5_ctx *ctx, struct mlx5_umem *u)
{
	(void)ctx, (void)u;
	return 0;
}

static int
pd_alloc(struct mlx5_ctx *ctx, struct mlx5_pd **out)
{
	(void)ctx;
	*out = &pd;
	return 0;
}

static int
pd_free(struct mlx5_ctx *ctx, struct mlx5_pd *p)
{
	(void)ctx, (void)p;
	return 0;
}

static int
mr_reg(struct mlx5_ctx *ctx, struct mlx5_pd *p, const struct mlx5_mr_attr *attr,
       struct mlx5_mr **out)
{
	(void)ctx, (void)p, (void)attr;
	*out = &mr;
	return 0;
}

static int
mr_dereg(struct mlx5_ctx *ctx, struct mlx5_mr *m)
{
	(void)ctx, (void)m;
	return 0;
}

static int
uar_alloc(struct mlx5_ctx *ctx, enum mlx5_uar_type type, struct mlx5_uar **out)
{
	(void)ctx, (void)type;
	*out = &uar;
	return 0;
}

static int
uar_free(struct mlx5_ctx *ctx, struct mlx5_uar *u)
{
	(void)ctx, (void)u;
	return 0;
}

static int
query_eqn(struct mlx5_ctx *ctx, uint32_t vector, uint32_t *eqn)
{
	(void)ctx;
	*eqn = vector;
	return 0;
}

static int
channel_create(struct mlx5_ctx *ctx, struct mlx5_channel **out)
{
	(void)ctx;
	*out = &channel;
	return 0;
}

static int
channel_destroy(struct mlx5_ctx *ctx, struct mlx5_channel *ch)
{
	(void)ctx, (void)ch;
	return 0;
}

static int
channel_subscribe(struct mlx5_channel *ch, struct mlx5_obj *cq, uint64_t cookie)
{
	(void)ch, (void)cq, (void)cookie;
	return 0;
}

static int
obj_create(struct mlx5_ctx *ctx, const void *in, size_t inlen, void *out, size_t outlen,
	   struct mlx5_obj **o)
{
	(void)ctx, (void)in, (void)inlen, (void)out, (void)outlen;
	*o = &obj;
	return 0;
}

static int
obj_modify(struct mlx5_obj *o, const void *in, size_t inlen, void *out, size_t outlen)
{
	(void)o, (void)in, (void)inlen, (void)out, (void)outlen;
	return 0;
}

static int
obj_destroy(struct mlx5_obj *o)
{
	(void)o;
	return 0;
}

static int
qp1_claim(struct mlx5_ctx *ctx, uint32_t qpn)
{
	(void)ctx, (void)qpn;
	return 0;
}

static int
av_ready(struct mlx5_ctx *ctx, uint32_t port, uint32_t sgid_index, const uint8_t dgid[16])
{
	(void)ctx, (void)port, (void)sgid_index;
	return reach[dgid[15]];
}

static int
av_resolve(struct mlx5_ctx *ctx, struct mlx5_pd *p, uint32_t port, uint32_t sgid_index,
	   const uint8_t dgid[16], struct mlx5_av *av)
{
	(void)ctx, (void)p, (void)port;
	assert_int_equal(reach[dgid[15]], 0);
	assert_true(n_sent < SENT);
	sent[n_sent].host = dgid[15];
	sent[n_sent++].mad = (uint8_t)sgid_index;
	memset(av, 0, sizeof(*av));
	return 0;
}

static const struct mlx5_cmd_if cmd = {
	.name = "none",
	.obj_create = obj_create,
	.obj_modify = obj_modify,
	.obj_destroy = obj_destroy,
	.umem_reg = umem_reg,
	.umem_dereg = umem_dereg,
	.uar_alloc = uar_alloc,
	.uar_free = uar_free,
	.query_eqn = query_eqn,
	.pd_alloc = pd_alloc,
	.pd_free = pd_free,
	.mr_reg = mr_reg,
	.mr_dereg = mr_dereg,
	.av_resolve = av_resolve,
	.av_ready = av_ready,
	.channel_create = channel_create,
	.channel_destroy = channel_destroy,
	.channel_subscribe = channel_subscribe,
	.qp1_claim = qp1_claim,
};
static struct mlx5_ctx ctx = {.cmd = &cmd};
static uint64_t now;

static struct qp1 *
open_qp1(int all)
{
	struct qp1 *q = NULL;
	uint32_t i;

	for (i = 0; i < HOSTS; i++)
		reach[i] = all;
	n_sent = 0;
	OK(qp1_open(&ctx, &q));
	return q;
}

static void
send_mad(struct qp1 *q, uint8_t host, uint8_t mad)
{
	static const uint8_t bytes[BB_IBCM_MAD];
	struct bb_ibcm_net net = {.dst = {[15] = host}};

	qp1_send(q, mad, &net, bytes);
}

static void
retry(struct qp1 *q)
{
	now += QP1_RETRY_NS;
	qp1_retry(q, now);
}

static void
expect(uint32_t i, uint8_t host, uint8_t mad)
{
	assert_true(i < n_sent);
	assert_int_equal(sent[i].host, host);
	assert_int_equal(sent[i].mad, mad);
}

/* ---- Tests */

TEST(test_host_without_mac_leaves_room_for_others)
{
	struct qp1 *q = open_qp1(-EAGAIN);
	uint32_t i;

	for (i = 0; i < 2 * TABLE; i++)
		send_mad(q, 1, (uint8_t)i);
	send_mad(q, 2, 0);
	assert_int_equal(n_sent, 0);
	assert_int_equal(qp1_drops(q)[QP1_DROP_NO_ROOM], 2 * TABLE - SHARE);
	reach[1] = reach[2] = 0;
	retry(q);
	assert_int_equal(n_sent, SHARE + 1);
	for (i = 0; i < SHARE; i++)
		expect(i, 1, (uint8_t)i);
	expect(SHARE, 2, 0);
	assert_false(qp1_holds(q));
	qp1_close(q);
}

TEST(test_hosts_without_mac_do_not_delay_others)
{
	struct qp1 *q = open_qp1(-EAGAIN);
	uint32_t i;

	for (i = 0; i < HOSTS; i++)
		send_mad(q, (uint8_t)i, 0);
	/* The table is full. A host with a known MAC needs no place in it. */
	reach[HOSTS - 1] = 0;
	send_mad(q, HOSTS - 1, 7);
	assert_int_equal(n_sent, 1);
	expect(0, HOSTS - 1, 7);
	assert_int_equal(qp1_drops(q)[QP1_DROP_NO_ROOM], HOSTS - TABLE);
	qp1_close(q);
}

/* A MAD does not overtake one that waits, even if the MAC is known meanwhile. */
TEST(test_mads_of_a_host_keep_their_order)
{
	struct qp1 *q = open_qp1(-EAGAIN);
	uint8_t i;

	send_mad(q, 1, 0);
	reach[1] = 0;
	for (i = 1; i < 4; i++)
		send_mad(q, 1, i);
	send_mad(q, 1, 4);
	assert_int_equal(n_sent, 0);
	retry(q);
	for (i = 0; i < 5; i++)
		expect(i, 1, i);
	qp1_close(q);
}

TEST(test_mads_wait_for_two_seconds)
{
	struct qp1 *q = open_qp1(-EAGAIN);
	uint32_t i;

	send_mad(q, 1, 0);
	send_mad(q, 2, 0);
	/* No host has the address of host 2. */
	reach[2] = -EHOSTUNREACH;
	for (i = 0; i < 199; i++) {
		assert_true(qp1_holds(q));
		retry(q);
	}
	assert_true(qp1_holds(q));
	assert_int_equal(qp1_drops(q)[QP1_DROP_NO_ADDRESS], 1);
	retry(q);
	assert_false(qp1_holds(q));
	assert_int_equal(qp1_drops(q)[QP1_DROP_NO_ADDRESS], 2);
	send_mad(q, 2, 0);
	assert_int_equal(qp1_drops(q)[QP1_DROP_NO_ADDRESS], 3);
	reach[1] = reach[2] = 0;
	retry(q);
	assert_int_equal(n_sent, 0);
	qp1_close(q);
}

TEST_MAIN(0)
