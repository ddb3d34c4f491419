/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Management datagrams between the kernels of two guests, on each link between two devices. A
 * kernel's QP of type QP1 receives what is sent to QPN 1, and sends from QPN 1
 * (create_gsi() of mlx5_ib).
 */
#include <rte_eth_ring.h>
#include <rte_ethdev.h>

#include "../../fakes/bare_eal.h"
#include "bb_wqe.h"
#include "front_guest.h"
#include "front_priv.h"
#include "soft_mcg.h"
#include "soft_netif.h"
#include "soft_shm.h"
#include "soft_wire.h"

#define SEND  0x0a
#define READ  0x10
#define QKEY  0x80010000u
#define BYTES 256u
#define GRH   40u

struct kernel {
	struct g_guest *g;
	struct soft_dev *dev;
	uint32_t uar, pd, key;
	struct g_cq cq;
	struct g_qp qp;
	struct pages mem; /* page 0: sent, page 1: received */
	uint16_t received;
};

struct two {
	struct g_guest guest[2];
	struct kernel k[2];
};

/* Makes the key over all of RAM that a kernel uses. */
static uint32_t
ram_key(struct g_guest *g, uint32_t pd)
{
	uint8_t *mkc = box(g, BB_PRM_OP_CREATE_MKEY, 0, 0x110) + 0x10;

	bb_prm_set(mkc, BB_PRM_MKC_LENGTH64, 1);
	bb_prm_set(mkc, BB_PRM_MKC_LR, 1);
	bb_prm_set(mkc, BB_PRM_MKC_LW, 1);
	bb_prm_set(mkc, BB_PRM_MKC_RR, 1);
	bb_prm_set(mkc, BB_PRM_MKC_QPN, 0xffffff);
	bb_prm_set(mkc, BB_PRM_MKC_PD, pd);
	assert_status(g, OK);
	return bb_prm_get(g->out, BB_PRM_CREATE_MKEY_OUT_INDEX) << 8;
}

/* Makes a QP of the kernel in RTS with the Q_Key of QP1. */
static void
make_qp(struct kernel *k, struct g_qp *qp, uint32_t st)
{
	struct g_guest *g = k->g;
	uint8_t *qpc;

	g_qp(g, qp, 0, st, k->pd, k->uar, k->cq.cqn);
	qpc = g_qp_modify_box(g, qp, 0, BB_PRM_OP_RST2INIT_QP, k->pd, k->cq.cqn);
	bb_prm_set(qpc, BB_PRM_QPC_Q_KEY, QKEY);
	assert_status(g, OK);
	g_qp_modify_box(g, qp, 0, BB_PRM_OP_INIT2RTR_QP, k->pd, k->cq.cqn);
	assert_status(g, OK);
	g_qp_modify_box(g, qp, 0, BB_PRM_OP_RTR2RTS_QP, k->pd, k->cq.cqn);
	assert_status(g, OK);
}

/* Gives the port of a RoCE device an address, as the kernel's driver does. */
static void
set_address(struct g_guest *g, const struct soft_dev *dev, uint32_t i)
{
	struct bb_gid gid = {.raw = {0xfe, 0x80}, .type = BB_GID_ROCE_V2};
	const uint8_t mac[6] = {2, 0, 0, 0, 0, (uint8_t)(i + 1)};

	if (dev->opts.link_ib || dev->gid_valid[0])
		return;
	gid.raw[15] = (uint8_t)(i + 1);
	OK(front_set_address(g->f, 0, &gid, mac));
}

static void
kernel_open(struct kernel *k, struct g_guest *g, uint32_t dev)
{
	memset(k, 0, sizeof(*k));
	k->g = g;
	k->dev = soft_dev_peek(dev);
	assert_non_null(k->dev);
	set_address(g, k->dev, dev);
	k->uar = g_alloc(g, BB_PRM_OP_ALLOC_UAR, 0);
	k->pd = g_alloc(g, BB_PRM_OP_ALLOC_PD, 0);
	k->key = ram_key(g, k->pd);
	k->mem = g_pages(g, 2);
	g_cq(g, &k->cq, 0, k->uar);
	make_qp(k, &k->qp, BB_PRM_QP_ST_QP1);
}

/* Links between two devices: memory with LIDs, memory with GIDs, packets, shared memory, ports. */
enum {
	LIDS,
	GIDS,
	PACKETS,
	SHARED,
	PORTS,
	LINKS
};

static void
device(char *spec, size_t size, unsigned int link, uint32_t i)
{
	static const char *const memory[] = {
		[LIDS] = ",link=ib", [GIDS] = "", [PACKETS] = ",wire=1"};

	if (link == SHARED)
		snprintf(spec, size, "soft%u,shm=qp1_%d,ip=192.0.2.%u/24", i, (int)getpid(), i + 1);
	else if (link == PORTS)
		snprintf(spec, size, "soft%u,port=net_ring_qp1_port%u,ip=192.0.2.%u/24", i, i,
			 i + 1);
	else
		snprintf(spec, size, "soft%u%s", i, memory[link]);
}

/* Makes the two ports. Returns 0, as EAL does, or an exit status. */
static int
make_ports(void)
{
	struct rte_ring *ring[2];
	char name[32];

	if (bare_eal_init() < 0)
		return 1;
	ring[0] = rte_ring_create("qp1_0", 64, SOCKET_ID_ANY, 0);
	ring[1] = rte_ring_create("qp1_1", 64, SOCKET_ID_ANY, 0);
	for (unsigned int i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), "qp1_port%u", i);
		if (ring[i] == NULL ||
		    rte_eth_from_rings(name, &ring[i], 1, &ring[1 - i], 1, SOCKET_ID_ANY) < 0)
			return 1;
	}
	return 0;
}

/* Returns whether @dev can send to the address @gid: its peer or its neighbour has answered. */
static bool
reaches(struct soft_dev *dev, const uint8_t *gid)
{
	const struct soft_shm_tx *tx;

	if (dev->netif != NULL)
		return soft_netif_ready(dev, gid) == 0;
	if (dev->shm == NULL)
		return true;
	tx = soft_shm_reach(dev, gid, SOFT_SHM_ANY, false) == 0
		     ? soft_shm_find(dev->shm, gid, SOFT_SHM_ANY)
		     : NULL;
	return tx != NULL && tx->state == SOFT_SHM_UP;
}

/* Lets each device find the other one, as resolving an address does. */
static void
meet(struct two *t)
{
	for (unsigned int i = 0; i < 2; i++) {
		const uint8_t *gid = t->k[1 - i].dev->gids[1].raw;
		const uint64_t end = g_now() + G_WAIT_S;

		while (!reaches(t->k[i].dev, gid)) {
			assert_true(g_now() < end);
			g_poll(&t->guest[0]);
			g_poll(&t->guest[1]);
		}
	}
}

static struct two *
two_open(unsigned int link)
{
	struct two *t = calloc(1, sizeof(*t));
	char spec[96];

	assert_non_null(t);
	for (uint32_t i = 0; i < 2; i++) {
		device(spec, sizeof(spec), link, i);
		g_open(&t->guest[i], spec);
		kernel_open(&t->k[i], &t->guest[i], i);
	}
	meet(t);
	return t;
}

static void
two_close(struct two *t)
{
	g_close(&t->guest[0]);
	g_close(&t->guest[1]);
	free(t);
}

/* Posts one receive of the GRH and a MAD. */
static void
post_receive(struct kernel *k)
{
	uint8_t *wqe = g_at(k->g, &k->qp.ring, k->qp.offset + k->received % 4 * 16);

	bb_put32(wqe, GRH + BYTES);
	bb_put32(wqe + 4, k->key);
	bb_put64(wqe + 8, k->mem.pa[1]);
	bb_put32(g_ram(k->g, k->qp.dbr), ++k->received);
}

/* Sends a MAD from @qp of @k to QPN @dqpn of the device of @to. */
static void
send_mad(struct kernel *k, struct g_qp *qp, const struct kernel *to, uint32_t dqpn, uint8_t fill)
{
	struct bb_wqe_av av = {
		.qkey = bb_be32(QKEY),
		.dest_qpn = bb_be32(BB_WQE_EXT_AV | dqpn),
		.rlid = bb_be16((uint16_t)to->dev->lid),
		.hop_limit = 64,
	};
	/* The last GID: the address of ip=, if there is one. */
	const uint32_t index = k->dev->gid_valid[1] ? 1 : 0;
	uint8_t w[128];

	memset(g_ram(k->g, k->mem.pa[0]), fill, BYTES);
	memcpy(av.rmac, to->dev->mac, sizeof(av.rmac));
	if (!to->dev->opts.link_ib) {
		memcpy(av.rgid, to->dev->gids[index].raw, sizeof(av.rgid));
		av.grh_gid_fl = bb_be32(index << 20);
		av.rlid = bb_be16(0xc001);
	}
	wqe_head(qp, w, SEND, 5, G_CQE_UPDATE);
	memset(w + 80, 0, sizeof(w) - 80);
	memcpy(w + 16, &av, sizeof(av));
	bb_put32(w + 64, BYTES);
	bb_put32(w + 68, k->key);
	bb_put64(w + 72, k->mem.pa[0]);
	g_post(k->g, qp, w, sizeof(w));
	g_ring(k->g, qp, w, 8);
	assert_int_equal(g_cqe(k->g, &k->cq)[63] >> 4, 0);
}

/* Runs both devices. Returns whether a CQE has come. */
static bool
cqe_comes(struct two *t, struct kernel *k, unsigned int polls)
{
	const uint32_t slot = k->cq.ci & ((1u << k->cq.log) - 1), owner = k->cq.ci >> k->cq.log & 1;
	const uint8_t *e = g_at(k->g, &k->cq.ring, k->cq.offset + slot * 64);

	for (unsigned int i = 0; i < polls; i++) {
		g_poll(&t->guest[0]);
		g_poll(&t->guest[1]);
		if (e[63] >> 4 != 0xf && (e[63] & 1u) == owner)
			return true;
	}
	return false;
}

static void
check_received(struct two *t, struct kernel *k, uint32_t sqpn, uint8_t fill)
{
	const uint8_t *e;

	assert_true(cqe_comes(t, k, 3000000));
	e = g_cqe(k->g, &k->cq);
	assert_int_equal(e[63] >> 4, BB_CQE_RESP_SEND);
	assert_int_equal(bb_prm_dword(e, 56) & 0xffffff, k->qp.qpn);
	assert_int_equal(bb_prm_dword(e, offsetof(struct bb_cqe, flags_rqpn)) & 0xffffff, sqpn);
	assert_int_equal(bb_prm_dword(e, offsetof(struct bb_cqe, byte_cnt)), GRH + BYTES);
	for (uint32_t i = 0; i < BYTES; i++)
		assert_int_equal(g_ram(k->g, k->mem.pa[1])[GRH + i], fill);
}

TEST(test_mad_to_qpn_1_reaches_the_kernel_from_qpn_1)
{
	for (unsigned int i = 0; i < LINKS; i++) {
		struct two *t = two_open(i);

		print_message("link %u\n", i);
		assert_int_not_equal(t->k[0].qp.qpn, 1);
		/* There and back. */
		post_receive(&t->k[1]);
		send_mad(&t->k[0], &t->k[0].qp, &t->k[1], 1, 0x11);
		check_received(t, &t->k[1], 1, 0x11);
		post_receive(&t->k[0]);
		send_mad(&t->k[1], &t->k[1].qp, &t->k[0], 1, 0x22);
		check_received(t, &t->k[0], 1, 0x22);
		two_close(t);
	}
}

/* QP1 has a number of its own, by which its owner names it. Packets reach it by that number, too.
 */
TEST(test_other_qp_of_the_kernel_sends_from_its_own_number)
{
	for (unsigned int i = 0; i < LINKS; i++) {
		struct two *t = two_open(i);
		struct g_qp ud;

		memset(&ud, 0, sizeof(ud));
		make_qp(&t->k[0], &ud, BB_PRM_QP_ST_UD);
		post_receive(&t->k[1]);
		send_mad(&t->k[0], &ud, &t->k[1], 1, 0x33);
		check_received(t, &t->k[1], ud.qpn, 0x33);
		two_close(t);
	}
}

TEST(test_without_qp1_nothing_receives_and_commands_know_no_qpn_1)
{
	for (unsigned int i = 0; i < LINKS; i++) {
		struct two *t = two_open(i);
		struct kernel *k = &t->k[1];

		assert_int_equal(run_on(k->g, BB_PRM_OP_QUERY_QP, 0, 1), BB_PRM_STAT_BAD_RES);
		assert_int_equal(run_on(k->g, BB_PRM_OP_DESTROY_QP, 0, 1), BB_PRM_STAT_BAD_RES);
		post_receive(k);
		assert_int_equal(run_on(k->g, BB_PRM_OP_DESTROY_QP, 0, k->qp.qpn), BB_PRM_STAT_OK);
		send_mad(&t->k[0], &t->k[0].qp, k, 1, 0x44);
		assert_false(cqe_comes(t, k, 2000));
		/* The next QP1 receives again. */
		memset(&k->qp, 0, sizeof(k->qp));
		k->received = 0;
		make_qp(k, &k->qp, BB_PRM_QP_ST_QP1);
		post_receive(k);
		send_mad(&t->k[0], &t->k[0].qp, k, 1, 0x55);
		check_received(t, k, 1, 0x55);
		two_close(t);
	}
}

/* ---- A link without room */

static struct soft_engine *
engine_of(const struct kernel *k)
{
	return front_obj_find(k->g->f, FRONT_UAR, k->uar)->progress_arg;
}

static void
connect_rc(struct kernel *k, struct g_qp *qp, const struct kernel *to, const struct g_qp *remote)
{
	struct g_path path = {0};

	memcpy(path.gid, to->dev->gids[0].raw, sizeof(path.gid));
	memcpy(path.mac, to->dev->mac, sizeof(path.mac));
	k->g->path = &path;
	g_qp_up(k->g, qp, 0, k->pd, k->cq.cqn, remote->qpn);
	k->g->path = NULL;
}

TEST(test_front_with_a_response_for_a_full_link_asks_for_a_pause)
{
	struct two *t = two_open(PACKETS);
	struct g_qp rc[2];
	const uint64_t end = g_now() + G_WAIT_S;
	uint8_t w[64];
	unsigned int i;

	memset(rc, 0, sizeof(rc));
	for (i = 0; i < 2; i++)
		g_qp(t->k[i].g, &rc[i], 0, BB_PRM_QP_ST_RC, t->k[i].pd, t->k[i].uar,
		     t->k[i].cq.cqn);
	for (i = 0; i < 2; i++)
		connect_rc(&t->k[i], &rc[i], &t->k[1 - i], &rc[1 - i]);
	wqe_head(&rc[1], w, READ, 3, G_CQE_UPDATE);
	bb_put64(w + 16, t->k[0].mem.pa[0]);
	bb_put32(w + 24, t->k[0].key);
	bb_put32(w + 32, BYTES);
	bb_put32(w + 36, t->k[1].key);
	bb_put64(w + 40, t->k[1].mem.pa[1]);
	g_post(t->k[1].g, &rc[1], w, sizeof(w));
	g_ring(t->k[1].g, &rc[1], w, 8);
	/* The peer stops, and its inbox is full. */
	engine_of(&t->k[1])->packets += SOFT_WIRE_QUEUE;
	while (front_poll(t->guest[0].f) == 0)
		assert_true(g_now() < end);
	assert_int_equal(engine_of(&t->k[0])->n_run, 1);
	engine_of(&t->k[1])->packets -= SOFT_WIRE_QUEUE;
	assert_true(cqe_comes(t, &t->k[1], 3000000));
	assert_int_equal(g_cqe(t->k[1].g, &t->k[1].cq)[63] >> 4, BB_CQE_REQ);
	two_close(t);
}

/* Two QPs on two register pages of a guest. Each page gives work to the other one. */
TEST(test_front_asks_for_no_pause_while_a_page_has_given_work_to_another)
{
	const struct timespec busy = {.tv_nsec = 20000000};
	const uint64_t end = g_now() + G_WAIT_S;
	struct two *t = two_open(PACKETS);
	struct kernel *k = &t->k[0];
	const uint32_t uar[2] = {k->uar, g_alloc(k->g, BB_PRM_OP_ALLOC_UAR, 0)};
	const uint8_t *last;
	struct g_qp rc[2];
	uint8_t w[64], none;
	unsigned int i;

	memset(rc, 0, sizeof(rc));
	for (i = 0; i < 2; i++)
		g_qp(k->g, &rc[i], 0, BB_PRM_QP_ST_RC, k->pd, uar[i], k->cq.cqn);
	for (i = 0; i < 2; i++)
		connect_rc(k, &rc[i], k, &rc[1 - i]);
	last = g_at(k->g, &k->cq.ring, k->cq.offset + 63);
	none = __atomic_load_n(last, __ATOMIC_ACQUIRE);
	for (i = 0; i < 64; i++) {
		wqe_head(&rc[1], w, READ, 3, i == 63 ? G_CQE_UPDATE : 0);
		bb_put64(w + 16, k->mem.pa[0]);
		bb_put32(w + 24, k->key);
		bb_put32(w + 32, BYTES);
		bb_put32(w + 36, k->key);
		bb_put64(w + 40, k->mem.pa[1]);
		g_post(k->g, &rc[1], w, sizeof(w));
	}
	g_ring(k->g, &rc[1], w, 8);
	/* The time after a doorbell in which the program polls without a pause. */
	nanosleep(&busy, NULL);
	for (;;) {
		const int ms = front_poll(t->guest[0].f);

		if (__atomic_load_n(last, __ATOMIC_ACQUIRE) != none)
			break;
		assert_int_equal(ms, 0);
		assert_true(g_now() < end);
	}
	assert_int_equal(*last >> 4, BB_CQE_REQ);
	two_close(t);
}

TEST_MAIN(make_ports())
