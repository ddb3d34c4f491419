/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * QP1 of the software device for the library itself: bb_qp1_claim(). Two engines of lib/ibcm then
 * establish a connection by management datagrams of two devices.
 */
#include <unistd.h>

#include "../mlx5_types.h"
#include "bb_core.h"
#include "bb_ibcm.h"

#define SERVICE 0x1061c06ull
#define SLOT    512u /* bytes of the buffer for one datagram */
#define RECVS   4u

static const char *const specs[][2] = {{"soft0", "soft1"}, {"soft0,wire=1", "soft1,wire=1"}};
#define SPECS (sizeof(specs) / sizeof(specs[0]))

/* One end: a QP1 and an engine. */
struct end {
	struct env *e;
	struct side *side;
	struct bb_ah *ah; /* to the peer */
	struct bb_gid gid;
	struct bb_ibcm *cm;
	enum bb_ibcm_event_type last;
	uint32_t id, sent;
};

static void
open_two(struct env *e, unsigned int spec)
{
	memset(e, 0, sizeof(*e));
	env_open_two(e, specs[spec][0], specs[spec][1]);
	e->init.type = BB_QPT_UD;
	env_qps(e);
}

static void
qp1_up(struct side *s)
{
	OK(bb_qp1_claim(s->qp));
	OK(bb_qp_ud_up(s->qp, 1, 0, BB_IBCM_QKEY, 1));
}

static void
post_receive(struct side *s, uint32_t slot)
{
	const struct bb_sge sge = sge_of(s, slot * SLOT, TYPES_GRH + BB_IBCM_MAD);

	OK(bb_post_recv(s->qp, slot, &sge, 1));
	bb_qp_ring_recv(s->qp);
}

TEST(test_qp1_has_one_owner_until_it_is_destroyed)
{
	struct env e;

	open_two(&e, 0);
	OK(bb_qp1_claim(e.a.qp));
	/* Each device has a QP1 of its own. */
	OK(bb_qp1_claim(e.b.qp));
	assert_int_equal(bb_qp1_claim(e.a.qp), -EBUSY);
	OK(bb_qp_destroy(e.a.qp));
	side_qp(&e, &e.a);
	OK(bb_qp1_claim(e.a.qp));
	env_stop(&e);
}

TEST(test_qp1_must_be_a_ud_qp_in_reset)
{
	struct env e;

	open_two(&e, 0);
	OK(bb_qp_ud_up(e.a.qp, 1, 0, BB_IBCM_QKEY, 1));
	assert_int_equal(bb_qp1_claim(e.a.qp), -EINVAL);
	OK(bb_qp_destroy(e.b.qp));
	e.init.type = BB_QPT_RC;
	side_qp(&e, &e.b);
	assert_int_equal(bb_qp1_claim(e.b.qp), -EINVAL);
	env_stop(&e);
}

/* The library's CM does not mark its IDs, so messages for it would go to any process of a host. */
TEST(test_qp1_of_a_shared_address_is_refused)
{
	struct env e;
	char spec[96];

	memset(&e, 0, sizeof(e));
	snprintf(spec, sizeof(spec), "soft0,shm=qp1-%d,ip=192.0.2.1/24,host=h", (int)getpid());
	env_open_two(&e, spec, NULL);
	e.init.type = BB_QPT_UD;
	side_qp(&e, &e.a);
	assert_int_equal(bb_qp1_claim(e.a.qp), -ENOTSUP);
	/* The QP can be used as any other. */
	OK(bb_qp_ud_up(e.a.qp, 1, 0, BB_IBCM_QKEY, 1));
	env_stop(&e);
}

/* ---- Two engines */

static void
end_tx(void *ctx, const struct bb_ibcm_net *net, const uint8_t mad[BB_IBCM_MAD])
{
	struct end *n = ctx;
	const size_t at = (RECVS + n->sent++ % RECVS) * SLOT;
	const struct bb_sge sge = sge_of(n->side, at, BB_IBCM_MAD);

	assert_memory_equal(net->src, n->gid.raw, 16);
	memcpy(n->side->buf + at, mad, BB_IBCM_MAD);
	OK(bb_post_send_ud(n->side->qp, 100, &sge, 1, n->ah, BB_IBCM_QPN, BB_IBCM_QKEY,
			   BB_SEND_SIGNALED));
	bb_qp_ring(n->side->qp);
}

static void
end_event(void *ctx, const struct bb_ibcm_event *ev)
{
	struct end *n = ctx;

	n->last = ev->type;
	n->id = ev->id;
}

/* Opens an end. @peer: the device of the other end. */
static void
end_open(struct end *n, struct env *e, struct side *side, const struct side *peer)
{
	static const struct bb_ibcm_ops ops = {.tx = end_tx, .event = end_event};
	struct bb_ibcm_attr attr;
	struct bb_path path;

	memset(n, 0, sizeof(*n));
	n->e = e;
	n->side = side;
	OK(bb_gid_query(side->dev, 1, 1, &n->gid));
	types_path(peer, 1, &path);
	OK(bb_ah_create(side->pd, &path, &n->ah));
	bb_ibcm_attr_init(&attr);
	attr.max_conns = 16;
	attr.seed = side == &e->a ? 1 : 2;
	attr.ops = &ops;
	attr.ctx = n;
	OK(bb_ibcm_create(&attr, &n->cm));
	qp1_up(side);
	for (uint32_t i = 0; i < RECVS; i++)
		post_receive(side, i);
}

static void
end_close(struct end *n)
{
	bb_ibcm_destroy(n->cm);
	OK(bb_ah_destroy(n->ah));
}

/*
 * Reads the GIDs of a datagram from its first 40 bytes: a GRH or IPv6 header, or an IPv4 header in
 * the last 20.
 */
static void
get_addresses(const uint8_t *head, struct bb_ibcm_net *net)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (head[0] >> 4 == 6) {
		memcpy(net->src, head + 8, 16);
		memcpy(net->dst, head + 24, 16);
		return;
	}
	assert_int_equal(head[20], 0x45);
	memcpy(net->src, mapped, sizeof(mapped));
	memcpy(net->src + 12, head + 32, 4);
	memcpy(net->dst, mapped, sizeof(mapped));
	memcpy(net->dst + 12, head + 36, 4);
}

/* Polls an end until its engine has received one MAD. */
static void
receive(struct end *n)
{
	struct bb_ibcm_gmp gmp = {.qkey = BB_IBCM_QKEY};
	struct bb_wc wc;
	uint8_t *at;

	do
		env_poll(n->e, n->side, &wc, 1);
	while (wc.wr_id == 100);
	assert_int_equal(wc.status, BB_WC_SUCCESS);
	assert_int_equal(wc.byte_len, TYPES_GRH + BB_IBCM_MAD);
	assert_int_equal(wc.src_qp, BB_IBCM_QPN);
	at = n->side->buf + wc.wr_id * SLOT;
	get_addresses(at, &gmp.net);
	gmp.sqpn = wc.src_qp;
	bb_ibcm_rx(n->cm, &gmp, at + TYPES_GRH, BB_IBCM_MAD, 0);
	post_receive(n->side, (uint32_t)wc.wr_id);
}

TEST(test_engines_connect_and_disconnect_over_qp1)
{
	const struct bb_ibcm_service service = {.service_id = SERVICE, .mask = UINT64_MAX};
	const struct bb_ibcm_req req = {
		.service_id = SERVICE, .qpn = 5, .remote_timeout = 20, .pkey = 0xffff, .mtu = 3};
	const struct bb_ibcm_rep rep = {.qpn = 6};

	for (unsigned int i = 0; i < SPECS; i++) {
		struct bb_ibcm_net net = {.hop_limit = 64};
		struct end a, b;
		struct env e;
		uint32_t id;

		open_two(&e, i);
		end_open(&a, &e, &e.a, &e.b);
		end_open(&b, &e, &e.b, &e.a);
		memcpy(net.src, a.gid.raw, 16);
		memcpy(net.dst, b.gid.raw, 16);
		OK(bb_ibcm_listen(b.cm, &service));
		OK(bb_ibcm_connect(a.cm, &net, &req, "hi", 2, 0, 0, &id));
		receive(&b);
		assert_int_equal(b.last, BB_IBCM_EV_REQ);
		OK(bb_ibcm_accept(b.cm, b.id, &rep, NULL, 0, 0, 0));
		receive(&a);
		assert_int_equal(a.last, BB_IBCM_EV_REP);
		OK(bb_ibcm_ready(a.cm, a.id, NULL, 0));
		receive(&b);
		assert_int_equal(b.last, BB_IBCM_EV_ESTABLISHED);
		OK(bb_ibcm_disconnect(b.cm, b.id, NULL, 0, 0));
		receive(&a);
		assert_int_equal(a.last, BB_IBCM_EV_DISCONNECTED);
		receive(&b);
		assert_int_equal(b.last, BB_IBCM_EV_DISCONNECTED);
		end_close(&a);
		end_close(&b);
		env_stop(&e);
	}
}

TEST_MAIN(env_eal_init("mlx5_qp1"))
