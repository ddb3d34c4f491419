/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Two guests whose netdevs have a port= each. Two rings are the wire between the ports: the tests
 * read frames from the rings, and put frames of a hostile host into them.
 */
#include <errno.h>

#include <rte_eth_ring.h>
#include <rte_ethdev.h>

#include "../../fakes/bare_eal.h"
#include "bb_wqe.h"
#include "eth.h"
#include "eth_port.h"
#include "soft_ctl.h"
#include "soft_mcg.h"
#include "soft_netif.h"

#define WIRE      127u /* frames that a ring holds */
#define RAW_MBUFS 511u
#define VLAN      0x8100u
#define ROCE_PORT 4791u
#define UDP_AT    34u /* offset of UDP in a frame with IPv4 */
#define MORE      ",link=eth,mtu=4096,framesz=4300"

static struct rte_ring *wire[2]; /* frames to port i */
static struct rte_mempool *raw;

/* Puts a frame of @len bytes on the wire to port @i, with @flags of its mbuf. */
static void
inject_flagged(uint32_t i, const uint8_t *frame, uint32_t len, uint64_t flags, uint16_t tci)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(raw);

	assert_non_null(m);
	memcpy(rte_pktmbuf_append(m, (uint16_t)len), frame, len);
	m->ol_flags = flags;
	m->vlan_tci = tci;
	assert_int_equal(rte_ring_enqueue(wire[i], m), 0);
}

static void
inject(uint32_t i, const uint8_t *frame, uint32_t len)
{
	inject_flagged(i, frame, len, 0, 0);
}

/* Takes a frame to port @i from the wire. Returns its bytes, 0 if there is none. */
static uint32_t
take(uint32_t i, uint8_t *to, uint32_t size)
{
	struct rte_mbuf *m;
	uint32_t len;
	void *obj;

	if (rte_ring_dequeue(wire[i], &obj) != 0)
		return 0;
	m = obj;
	len = m->pkt_len;
	assert_true(len <= size && rte_pktmbuf_linearize(m) == 0);
	memcpy(to, rte_pktmbuf_mtod(m, const uint8_t *), len);
	rte_pktmbuf_free(m);
	return len;
}

static void
poll_both(void)
{
	g_poll(&ports[0]->g);
	g_poll(&ports[1]->g);
}

/* Gives a guest's port the GID ::ffff:10.0.0.(i + 1) and the MAC of tcp_frame(). */
static void
set_address(uint32_t i, bool valid)
{
	struct bb_gid gid = {.raw = {[10] = 0xff, 0xff, 10, 0, 0, (uint8_t)(i + 1)},
			     .type = BB_GID_ROCE_V2};
	const uint8_t mac[6] = {2, 0, 0, 0, 0, (uint8_t)(i + 1)};

	OK(front_set_address(ports[i]->g.f, 3, valid ? &gid : NULL, mac));
}

static void
test_frame_reaches_the_other_guest(void **state)
{
	uint8_t f[1500], got[1500], mac[6];
	uint32_t frame = 0;

	(void)state;
	tcp_frame(f, sizeof(f), 0);
	post_frame(ports[0], OP_SEND, f, sizeof(f), 0, CS_ALL, 0);
	assert_sent(ports[0], 0);
	assert_received(ports[1], sizeof(f));
	read_frame(ports[1], 0, got, sizeof(got));
	assert_checksums(got);
	assert_memory_equal(f + HEADERS, got + HEADERS, sizeof(f) - HEADERS);
	assert_true(no_cqe(ports[0], &ports[0]->rcq));
	assert_true(front_ethernet_port(ports[0]->g.f, mac, &frame));
	assert_int_equal(frame, 4096 + 84 + 18);
	assert_int_equal(mac[0], 2);
}

static void
test_long_message_waits_for_room_and_loses_nothing(void **state)
{
	uint8_t f[HEADERS + 4000], got[2048];
	uint32_t i, n = 0, idle = 0, len;

	(void)state;
	tcp_frame(f, sizeof(f), 0);
	/* 6 x 40 frames; the ring and the queue before it hold 191. */
	for (i = 0; i < 6; i++)
		post_frame(ports[0], OP_LSO, f, sizeof(f), HEADERS, CS_ALL, 100);
	for (i = 0; i < 6 && !no_cqe(ports[0], &ports[0]->scq); i++)
		assert_sent(ports[0], 0);
	assert_true(i < 6);
	while (idle < 100) {
		len = take(1, got, sizeof(got));
		if (len == 0) {
			g_poll(&ports[0]->g);
			idle++;
			continue;
		}
		idle = 0;
		assert_int_equal(len, HEADERS + 100);
		assert_checksums(got);
		assert_int_equal(bb_prm_dword(got, 38), 0xfff0u + n++ % 40 * 100);
	}
	assert_int_equal(n, 240);
}

/* A wire that takes nothing must not stop the SQ for ever: Linux would reset it. */
static void
test_frames_are_dropped_if_the_wire_stays_full(void **state)
{
	struct soft_netif *nif = soft_dev_peek(0)->netif;
	uint8_t f[HEADERS + 4000];
	uint32_t i;

	(void)state;
	tcp_frame(f, sizeof(f), 0);
	for (i = 0; i < 8; i++)
		post_frame(ports[0], OP_LSO, f, sizeof(f), HEADERS, CS_ALL, 100);
	for (i = 0; i < 8; i++)
		assert_sent(ports[0], 0);
	assert_true(nif->host->tx_dropped > 0);
	assert_int_equal(nif->host->tx + nif->host->tx_dropped, 320);
	/* The flows go on when there is room again. */
	while (take(1, f, sizeof(f)) != 0)
		g_poll(&ports[0]->g);
	tcp_frame(f, 100, 0);
	post_frame(ports[0], OP_SEND, f, 100, 0, 0, 0);
	assert_sent(ports[0], 0);
	assert_received(ports[1], 100);
}

static void
test_flood_takes_bounded_turns(void **state)
{
	const struct soft_netif_host *host = soft_dev_peek(1)->netif->host;
	struct front_frames *stats = &ports[1]->g.f->eth->stats;
	const uint64_t before = host->rx_dropped;
	uint8_t f[100];
	uint32_t i, k;

	(void)state;
	tcp_frame(f, sizeof(f), 0);
	for (k = 0; k < 4; k++) {
		for (i = 0; i < WIRE; i++)
			inject(1, f, sizeof(f));
		g_poll(&ports[1]->g);
		/* At most two bursts of 32 frames: one of an engine, one of the netdev. */
		assert_true(rte_ring_count(wire[1]) >= WIRE - 2 * SOFT_PORT_BURST);
		while (rte_ring_count(wire[1]) != 0)
			g_poll(&ports[1]->g);
	}
	for (i = 0; i < 4; i++)
		assert_received(ports[1], sizeof(f));
	for (i = 0; i < 10; i++)
		g_poll(&ports[1]->g);
	assert_int_equal(stats->rx_frames, 4);
	/* Frames for which the netdev has no room are dropped, too. */
	assert_int_equal(stats->rx_frames + stats->dropped_no_wqe + host->rx_dropped - before,
			 4 * WIRE);
	assert_int_equal(rte_mempool_avail_count(raw), RAW_MBUFS);
}

static void
test_hostile_lengths_are_dropped(void **state)
{
	struct soft_netif *nif = soft_dev_peek(1)->netif;
	uint8_t f[4300];
	uint32_t len;

	(void)state;
	tcp_frame(f, sizeof(f), 0);
	for (len = 0; len < 14; len++)
		inject(1, f, len);
	for (len = 0; len < 10; len++)
		g_poll(&ports[1]->g);
	assert_int_equal(nif->host->rx_dropped, 14);
	assert_true(no_cqe(ports[1], &ports[1]->rcq));
	inject(1, f, 14);
	assert_received(ports[1], 14);
	inject(1, f, sizeof(f)); /* longer than the receive */
	inject(1, f, 60);
	assert_received(ports[1], 60);
	assert_int_equal(ports[1]->g.f->eth->stats.dropped_too_long, 1);
	/* A frame that the port cannot carry. */
	memset(g_ram(&ports[0]->g, ports[0]->data.pa[1]), 0, PAGE);
	post_frame(ports[0], OP_SEND, f, 4096, 0, 0, 0);
	assert_sent(ports[0], 0);
	assert_int_equal(take(1, f, sizeof(f)), 4096);
}

static void
test_tag_that_the_pmd_removed_is_inserted(void **state)
{
	uint8_t f[100], got[104];

	(void)state;
	tcp_frame(f, sizeof(f), 0);
	inject_flagged(1, f, sizeof(f), RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED, 0xa123);
	assert_received(ports[1], sizeof(got));
	read_frame(ports[1], 0, got, sizeof(got));
	assert_memory_equal(got, f, 12);
	assert_int_equal(bb_prm_dword(got, 12), VLAN << 16 | 0xa123);
	assert_memory_equal(got + 16, f + 12, sizeof(f) - 12);
	/* A tag in the frame stays, also in front of a RoCE datagram: the port has no VLAN. */
	set_address(1, true);
	memcpy(got, f, 12);
	memset(got + 12, 0x81, 1);
	inject(1, got, sizeof(got));
	assert_received(ports[1], sizeof(got));
}

static void
test_stopped_port_drops_frames(void **state)
{
	uint8_t f[100];
	uint32_t i;

	(void)state;
	tcp_frame(f, sizeof(f), 0);
	front_stop(ports[1]->g.f, true);
	inject(1, f, sizeof(f));
	for (i = 0; i < 10; i++)
		g_poll(&ports[1]->g);
	assert_int_equal(rte_ring_count(wire[1]), 0);
	assert_int_equal(ports[1]->g.f->eth->stats.dropped_error, 1);
	front_stop(ports[1]->g.f, false);
	inject(1, f, sizeof(f));
	assert_received(ports[1], sizeof(f));
	assert_true(no_cqe(ports[1], &ports[1]->rcq));
}

/* Fills a RoCE datagram to 10.0.0.2 that ends after UDP. */
static void
roce_frame(uint8_t *f, uint32_t len)
{
	tcp_frame(f, len, 0);
	f[23] = 17;
	bb_prm_set(f + UDP_AT, BB_PRM_F(0, 0, 16), 0xc000);
	bb_prm_set(f + UDP_AT, BB_PRM_F(0, 16, 16), ROCE_PORT);
	bb_put32(f + UDP_AT + 4, (len - UDP_AT) << 16);
	bb_prm_set(f + 24, BB_PRM_F(0, 0, 16), 0);
	bb_prm_set(f + 24, BB_PRM_F(0, 0, 16), ~word_sum(f + 14, 20, 0) & 0xffff);
}

static void
test_only_roce_to_the_guests_addresses_goes_to_the_device(void **state)
{
	struct soft_dev *dev = soft_dev_peek(1);
	uint64_t lost = 0;
	uint8_t f[100];
	uint32_t i;

	(void)state;
	roce_frame(f, sizeof(f));
	inject(1, f, sizeof(f));
	assert_received(ports[1], sizeof(f));
	set_address(1, true);
	inject(1, f, sizeof(f));
	for (i = 0; i < 10; i++)
		g_poll(&ports[1]->g);
	assert_true(no_cqe(ports[1], &ports[1]->rcq));
	for (i = 0; i < SOFT_LOSTS; i++)
		lost += dev->lost[i];
	assert_int_equal(lost, 1);
	/* Another MAC, another port, a wrong checksum: not RoCE. */
	f[5] = 9;
	inject(1, f, sizeof(f));
	assert_received(ports[1], sizeof(f));
	roce_frame(f, sizeof(f));
	f[UDP_AT + 3] ^= 1;
	inject(1, f, sizeof(f));
	assert_received(ports[1], sizeof(f));
	post_receive(ports[1]);
	post_receive(ports[1]);
	roce_frame(f, sizeof(f));
	f[24] ^= 1;
	inject(1, f, sizeof(f));
	assert_received(ports[1], sizeof(f));
	/* The entry is emptied, as by a reset. */
	set_address(1, false);
	roce_frame(f, sizeof(f));
	inject(1, f, sizeof(f));
	assert_received(ports[1], sizeof(f));
}

struct end {
	uint32_t uar, pd, key;
	struct g_cq cq;
	struct g_qp qp;
	struct pages mem;
	struct g_path path;
};

static void
end_open(struct end *e, uint32_t i)
{
	struct g_guest *g = &ports[i]->g;

	memset(e, 0, sizeof(*e));
	set_address(i, true);
	e->uar = g_alloc(g, BB_PRM_OP_ALLOC_UAR, 0);
	e->pd = g_alloc(g, BB_PRM_OP_ALLOC_PD, 0);
	e->mem = g_pages(g, 3);
	e->key = g_mkey(g, e->pd, G_VA_TO, G_BYTES, &e->mem);
	g_cq(g, &e->cq, 0, e->uar);
	g_qp(g, &e->qp, 0, BB_PRM_QP_ST_RC, e->pd, e->uar, e->cq.cqn);
}

/* Connects end @i to QP @remote of the other guest, whose MAC the guest's kernel has resolved. */
static void
end_connect(struct end *e, uint32_t i, uint32_t remote)
{
	struct g_guest *g = &ports[i]->g;

	e->path = (struct g_path){.index = 3,
				  .gid = {[10] = 0xff, 0xff, 10, 0, 0, (uint8_t)(2 - i)},
				  .mac = {2, 0, 0, 0, 0, (uint8_t)(2 - i)}};
	g->path = &e->path;
	g_qp_up(g, &e->qp, 0, e->pd, e->cq.cqn, remote);
}

static void
test_write_between_two_guests_needs_no_resolution(void **state)
{
	struct end *e = test_calloc(2, sizeof(*e));
	uint8_t w[64], f[4300];
	const uint64_t end = g_now() + G_WAIT_S;
	uint32_t i;

	(void)state;
	end_open(&e[0], 0);
	end_open(&e[1], 1);
	end_connect(&e[0], 0, e[1].qp.qpn);
	end_connect(&e[1], 1, e[0].qp.qpn);
	for (i = 0; i < G_BYTES; i++)
		*g_at(&ports[0]->g, &e[0].mem, G_VA_TO % PAGE + i) = (uint8_t)(i * 5 + 1);
	wqe_head(&e[0].qp, w, G_WRITE, 3, G_CQE_UPDATE);
	bb_put64(w + 16, G_VA_TO);
	bb_put32(w + 24, e[1].key);
	bb_put32(w + 32, G_BYTES);
	bb_put32(w + 36, e[0].key);
	bb_put64(w + 40, G_VA_TO);
	g_post(&ports[0]->g, &e[0].qp, w, sizeof(w));
	g_ring(&ports[0]->g, &e[0].qp, w, 8);
	/* The first frame on the wire is of the WRITE, to the MAC of the path; it is then lost. */
	while (rte_ring_count(wire[1]) == 0 && g_now() < end)
		g_poll(&ports[0]->g);
	assert_true(take(1, f, sizeof(f)) > 4096);
	assert_memory_equal(f, e[0].path.mac, 6);
	assert_memory_equal(f + 6, e[1].path.mac, 6);
	assert_int_equal(bb_prm_get(f + UDP_AT, BB_PRM_F(0, 16, 16)), ROCE_PORT);
	while (no_cqe(ports[0], &e[0].cq) && g_now() < end)
		poll_both();
	assert_int_equal(g_cqe(&ports[0]->g, &e[0].cq)[63] >> 4, BB_CQE_REQ);
	for (i = 0; i < G_BYTES; i++)
		assert_int_equal(*g_at(&ports[1]->g, &e[1].mem, G_VA_TO % PAGE + i),
				 (uint8_t)(i * 5 + 1));
	assert_true(no_cqe(ports[0], &ports[0]->rcq));
	assert_true(no_cqe(ports[1], &ports[1]->rcq));
	/* The guest moves to another MAC: cached headers are stale. */
	{
		struct bb_gid gid = {.type = BB_GID_ROCE_V2};
		const uint8_t mac[6] = {2, 0, 0, 0, 0, 0x77};

		memcpy(gid.raw, e[1].path.gid, 16);
		OK(front_set_address(ports[0]->g.f, 3, &gid, mac));
	}
	g_post(&ports[0]->g, &e[0].qp, w, sizeof(w));
	w[2]++;
	bb_put32(g_at(&ports[0]->g, &e[0].qp.ring, e[0].qp.offset + 64 + 64), 1u << 8 | G_WRITE);
	g_ring(&ports[0]->g, &e[0].qp, w, 8);
	while (rte_ring_count(wire[1]) == 0 && g_now() < end)
		g_poll(&ports[0]->g);
	assert_true(take(1, f, sizeof(f)) > 4096);
	assert_int_equal(f[11], 0x77);
	test_free(e);
}

/* A device that failed is opened again, with its port, and the guest's driver begins anew. */
static void
test_port_is_there_again_after_a_failure(void **state)
{
	struct front_frames *stats = &ports[1]->g.f->eth->stats;
	uint8_t f[100], mac[6];
	uint32_t i, frame = 0;

	(void)state;
	set_address(1, true);
	ports[1]->g.f->dead = true;
	front_reset(ports[1]->g.f);
	assert_false(ports[1]->g.f->dead);
	assert_true(front_ethernet_port(ports[1]->g.f, mac, &frame));
	/* No address is left, so a RoCE datagram is a frame, for which there is no flow table yet.
	 */
	roce_frame(f, sizeof(f));
	inject(1, f, sizeof(f));
	for (i = 0; i < 10; i++)
		g_poll(&ports[1]->g);
	assert_int_equal(stats->dropped_steering, 1);
	assert_int_equal(rte_mempool_avail_count(raw), RAW_MBUFS);
	set_address(1, true);
}

/* Another context keeps the device open, with the port in its old state. */
static void
test_port_is_opened_by_the_next_reset_if_a_reset_cannot(void **state)
{
	struct front *f = ports[1]->g.f;
	struct mlx5_ctx *other;
	uint32_t frame = 0;
	uint8_t mac[6];

	(void)state;
	OK(soft_open_host(f->device, f->opts, &f->memory, SOFT_ROLE_KERNEL, &other));
	f->dead = true;
	front_reset(f);
	assert_true(f->dead);
	g_poll(&ports[1]->g);
	front_reset(f);
	assert_true(f->dead);
	soft_cmd_if.close(other);
	front_reset(f);
	assert_false(f->dead);
	assert_true(front_ethernet_port(f, mac, &frame));
	assert_int_equal(frame, 4096 + 84 + 18);
	/* The port is closed while it could not be opened. */
	OK(soft_open_host(f->device, f->opts, &f->memory, SOFT_ROLE_KERNEL, &other));
	f->dead = true;
	front_reset(f);
	assert_true(f->dead);
	soft_cmd_if.close(other);
}

static void
test_options_with_addresses_are_refused(void **state)
{
	struct g_guest g;
	uint8_t mac[6];
	uint32_t frame;

	(void)state;
	g_open(&g, "soft2,link=eth,port=net_ring_eth_port2,ip=10.0.0.1/24");
	assert_int_equal(front_ethernet(g.f), -EINVAL);
	assert_false(front_ethernet_port(g.f, mac, &frame));
	g_close(&g);
	g_open(&g, "soft2,link=eth");
	OK(front_ethernet(g.f));
	assert_false(front_ethernet_port(g.f, mac, &frame));
	g_close(&g);
}

/* Empties the wire before the ports are opened, and checks that no frame of the test is lost. */
static int
open_on_wire(void **state)
{
	uint8_t f[8192];

	while (take(0, f, sizeof(f)) != 0 || take(1, f, sizeof(f)) != 0)
		;
	assert_int_equal(rte_mempool_avail_count(raw), RAW_MBUFS);
	return ports_open(state);
}

/* Makes the wire, and a port that is connected to itself. Returns 0 or an exit status. */
static int
make_wire(void)
{
	struct rte_ring *loop;
	char name[32];
	uint32_t i;

	if (bare_eal_init() < 0)
		return 1;
	wire[0] = rte_ring_create("wire0", WIRE + 1, SOCKET_ID_ANY, 0);
	wire[1] = rte_ring_create("wire1", WIRE + 1, SOCKET_ID_ANY, 0);
	loop = rte_ring_create("loop", WIRE + 1, SOCKET_ID_ANY, 0);
	raw = rte_pktmbuf_pool_create("raw", RAW_MBUFS, 0, 0, 8192, SOCKET_ID_ANY);
	if (loop == NULL || raw == NULL)
		return 1;
	for (i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), "eth_port%u", i);
		if (wire[i] == NULL ||
		    rte_eth_from_rings(name, &wire[i], 1, &wire[1 - i], 1, SOCKET_ID_ANY) < 0)
			return 1;
	}
	return rte_eth_from_rings("eth_port2", &loop, 1, &loop, 1, SOCKET_ID_ANY) < 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, open_on_wire, ports_close)
		T(test_frame_reaches_the_other_guest),
		T(test_long_message_waits_for_room_and_loses_nothing),
		T(test_frames_are_dropped_if_the_wire_stays_full),
		T(test_flood_takes_bounded_turns),
		T(test_hostile_lengths_are_dropped),
		T(test_tag_that_the_pmd_removed_is_inserted),
		T(test_stopped_port_drops_frames),
		T(test_only_roce_to_the_guests_addresses_goes_to_the_device),
		T(test_write_between_two_guests_needs_no_resolution),
		T(test_port_is_there_again_after_a_failure),
		T(test_port_is_opened_by_the_next_reset_if_a_reset_cannot),
		cmocka_unit_test(test_options_with_addresses_are_refused),
	};

	port_devices[0] = "soft0" MORE ",port=net_ring_eth_port0";
	port_devices[1] = "soft1" MORE ",port=net_ring_eth_port1";
	if (make_wire() != 0)
		return 1;
	return cmocka_run_group_tests_name("front_eth_port", tests, NULL, NULL);
}
