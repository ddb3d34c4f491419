/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Ports on net_ring. The test reads what a port sends from a ring, and feeds the port by another.
 */
#ifndef PORT_FIXTURE_H
#define PORT_FIXTURE_H

#include <unistd.h>

#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>

#include "bb_test.h"
#include "frames.h"
#include "soft_port.h"

#define SEC   UINT64_C(1000000000)
#define US4   "192.0.2.1"
#define US6   "2001:db8::1"
#define PEER4 "192.0.2.2"
#define PEER6 "2001:db8::2"
#define RINGS 16 /* entries, of which one stays free */

static struct rte_mempool *test_pool;

/* A port and the test's ends of its rings. */
struct rig {
	struct rte_ring *to, *from;
	char name[RTE_ETH_NAME_MAX_LEN];
	struct soft_port_opts o;
	struct soft_port *p;
	uint8_t mac[6];
	uint64_t now;

	/* Recorded by the callbacks. */
	uint32_t roce, links, lost;
	bool up;
	struct soft_port_rx rx;
	struct frame got; /* the last RoCE frame */
};

static inline void
rig_on_roce(void *arg, struct rte_mbuf *m, const struct soft_port_rx *rx)
{
	struct rig *r = arg;

	assert_int_equal(m->nb_segs, 1);
	assert_true(rx->l4_off + rx->l4_len <= m->data_len);
	r->roce++;
	r->rx = *rx;
	r->got.len = m->data_len;
	memcpy(r->got.b, rte_pktmbuf_mtod(m, void *), m->data_len);
}

static inline void
rig_on_link(void *arg, bool up)
{
	struct rig *r = arg;

	r->links++;
	r->up = up;
}

static inline void
rig_on_lost(void *arg)
{
	struct rig *r = arg;

	r->lost++;
}

static const struct soft_port_ops rig_ops = {
	.on_roce = rig_on_roce, .on_link = rig_on_link, .on_lost = rig_on_lost};

static inline void
rig_address(struct soft_port_opts *o, const char *text, uint32_t prefix)
{
	memcpy(o->ip[o->n_ip].addr, ip_of(text), 16);
	o->ip[o->n_ip++].prefix = (uint8_t)(strchr(text, ':') != NULL ? prefix : 96 + prefix);
}

static inline void
rig_neigh(struct soft_port_opts *o, const char *text, const void *mac)
{
	memcpy(o->neigh[o->n_neigh].ip, ip_of(text), 16);
	memcpy(o->neigh[o->n_neigh++].mac, mac, 6);
}

static inline void
rig_open(struct rig *r)
{
	struct soft_port_info info;

	assert_int_equal(soft_port_open("soft0", &r->o, &rig_ops, r, &r->p), 0);
	soft_port_info(r->p, &info);
	memcpy(r->mac, info.mac, 6);
	r->now += SEC;
}

/* Asserts that opening the port fails with @ret and logs @hint, which says what to do. */
static inline void
rig_refused(struct soft_port_opts *o, int ret, const char *hint)
{
	struct soft_port *p = NULL;
	char *text = NULL;
	size_t len = 0;
	FILE *log = open_memstream(&text, &len);

	assert_non_null(log);
	rte_openlog_stream(log);
	assert_int_equal(soft_port_open("soft0", o, &rig_ops, NULL, &p), ret);
	rte_openlog_stream(NULL);
	fclose(log);
	assert_null(p);
	if (strstr(text, hint) == NULL)
		fail_msg("not \"%s\": %s", hint, text);
	free(text);
}

/* Makes an ethdev between two rings, with options set and the port not yet open. */
static inline struct rig *
rig_new(struct rte_ring *to, struct rte_ring *from)
{
	static unsigned int n;
	struct rig *r = calloc(1, sizeof(*r));
	char name[32];
	int id;

	assert_non_null(r);
	snprintf(name, sizeof(name), "t%u", n++);
	r->to = to;
	r->from = from;
	id = rte_eth_from_rings(name, &r->to, 1, &r->from, 1, 0);
	assert_true(id >= 0);
	assert_int_equal(rte_eth_dev_get_name_by_port((uint16_t)id, r->name), 0);
	strcpy(r->o.name, r->name);
	rig_address(&r->o, US4, 24);
	rig_address(&r->o, US6, 64);
	return r;
}

static inline struct rte_ring *
rig_ring(void)
{
	static unsigned int n;
	struct rte_ring *ring;
	char name[32];

	snprintf(name, sizeof(name), "ring%u", n++);
	ring = rte_ring_create(name, RINGS, 0, 0);
	assert_non_null(ring);
	return ring;
}

/* Frees the mbufs left in a ring. */
static inline void
rig_drain(struct rte_ring *ring)
{
	void *m;

	while (rte_ring_dequeue(ring, &m) == 0)
		rte_pktmbuf_free(m);
}

static inline void
rig_free(struct rig *r)
{
	uint16_t id;

	if (r->p != NULL)
		soft_port_close(r->p);
	assert_int_equal(rte_eth_dev_get_port_by_name(r->name, &id), 0);
	assert_int_equal(rte_eth_dev_close(id), 0);
	free(r);
}

/* Feeds a frame to the port in segments of @seg bytes (0: one segment). */
static inline void
rig_give(struct rig *r, const struct frame *f, uint32_t seg)
{
	struct rte_mbuf *head = NULL, *m;
	uint32_t n;

	for (uint32_t at = 0; at < f->len; at += n) {
		n = seg == 0 || f->len - at < seg ? f->len - at : seg;
		m = rte_pktmbuf_alloc(test_pool);
		assert_non_null(m);
		memcpy(rte_pktmbuf_append(m, (uint16_t)n), f->b + at, n);
		if (head == NULL)
			head = m;
		else
			assert_int_equal(rte_pktmbuf_chain(head, m), 0);
	}
	assert_int_equal(rte_ring_enqueue(r->to, head), 0);
}

/* Returns the next mbuf that the port sent, NULL if none. */
static inline struct rte_mbuf *
rig_take_mbuf(struct rig *r)
{
	void *m;

	return rte_ring_dequeue(r->from, &m) == 0 ? m : NULL;
}

static inline bool
rig_take(struct rig *r, struct frame *f)
{
	struct rte_mbuf *m = rig_take_mbuf(r);
	const void *p;

	if (m == NULL)
		return false;
	assert_true(m->pkt_len <= sizeof(f->b));
	rte_mbuf_sanity_check(m, 1);
	p = rte_pktmbuf_read(m, 0, m->pkt_len, f->b);
	assert_non_null(p);
	if (p != f->b)
		memcpy(f->b, p, m->pkt_len);
	f->len = m->pkt_len;
	rte_pktmbuf_free(m);
	return true;
}

static inline int
rig_eal(const char *const *extra, unsigned int n)
{
	const char *args[16] = {"port",
				"--no-huge",
				"-m",
				"256",
				"--no-pci",
				"--no-shconf",
				"--no-telemetry",
				"--log-level=lib.eal:4"};
	unsigned int i, argc = 8;

	for (i = 0; i < n; i++)
		args[argc++] = extra[i];
	if (rte_eal_init((int)argc, (char **)(uintptr_t)args) < 0)
		return -1;
	test_pool = rte_pktmbuf_pool_create("test", 511, 0, 0, 10000 + RTE_PKTMBUF_HEADROOM, 0);
	return test_pool == NULL ? -1 : 0;
}

/* ---- For every test */

#define MS UINT64_C(1000000)

static struct rig *r;
static struct rte_ring *to, *from;
static uint8_t data[8192];

static inline int
setup(void **st)
{
	(void)st;
	to = rig_ring();
	from = rig_ring();
	r = rig_new(to, from);
	for (uint32_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 31 + (i >> 8));
	return 0;
}

static inline int
teardown(void **st)
{
	(void)st;
	rig_free(r);
	rig_drain(to);
	rig_drain(from);
	rte_ring_free(to);
	rte_ring_free(from);
	return 0;
}

/* A packet to a peer. */
struct out {
	struct bb_roce_net net;
	struct bb_roce_pkt pkt;
	uint8_t hdr[BB_ROCE_MAX_HDR];
	struct bb_roce_iov iov[BB_ROCE_MAX_IOV];
	struct soft_port_tx tx;
};

static inline void
out_init(struct out *o, const char *src, const char *dst, uint32_t len, struct soft_port_hold *hold)
{
	memset(o, 0, sizeof(*o));
	memcpy(o->net.src, ip_of(src), 16);
	memcpy(o->net.dst, ip_of(dst), 16);
	o->net.sport = 0xc0de;
	o->net.tclass = 0x69;
	o->net.hop_limit = 17;
	o->net.flow_label = 0x54321;
	o->pkt = (struct bb_roce_pkt){.opcode = BB_ROCE_WRITE_ONLY,
				      .pkey = 0xffff,
				      .dqpn = 0x123456,
				      .psn = 0xabcdef,
				      .va = 0x1122334455667788,
				      .rkey = 7,
				      .dmalen = len,
				      .len = len};
	o->iov[0] = (struct bb_roce_iov){data, len};
	o->tx = (struct soft_port_tx){.net = &o->net,
				      .hdr = o->hdr,
				      .hdr_len = bb_roce_build(o->hdr, &o->pkt),
				      .iov = o->iov,
				      .n = 1,
				      .hold = hold};
}

/* Sends up to @n packets in order. Returns how many were sent; *why says why it stopped. */
static inline uint32_t
rig_send(struct soft_port *p, const struct soft_port_tx *tx, uint32_t n, uint64_t now,
	 enum soft_port_sent *why)
{
	uint32_t i;

	*why = SOFT_PORT_SENT;
	for (i = 0; i < n; i++) {
		*why = soft_port_send(p, &tx[i], now);
		if (*why != SOFT_PORT_SENT)
			break;
	}
	soft_port_flush(p);
	return i;
}

static inline enum soft_port_sent
send_one(const struct out *o)
{
	enum soft_port_sent why;
	uint32_t n = rig_send(r->p, &o->tx, 1, r->now, &why);

	assert_int_equal(n, why == SOFT_PORT_SENT);
	return why;
}

static inline struct soft_port_stats
stats(void)
{
	struct soft_port_stack_stats stack;
	struct soft_port_stats port;
	struct soft_neigh_stats neigh;

	soft_port_stats(r->p, &port, &stack, &neigh);
	return port;
}

static inline uint64_t
drops(enum soft_port_drop why)
{
	struct soft_port_stack_stats stack;
	struct soft_port_stats port;
	struct soft_neigh_stats neigh;

	soft_port_stats(r->p, &port, &stack, &neigh);
	return stack.drop[why];
}

/*
 * Asserts that @f is the packet of @o: header bytes literally, the ICRC and the rest by lib/roce.
 */
static inline void
check_packet(const struct frame *f, const struct out *o, const void *dst_mac, uint32_t vlan)
{
	bool v4 = f->b[vlan != 0 ? 16 : 12] == 8;
	uint32_t l3 = vlan != 0 ? 18 : 14, l4 = l3 + (v4 ? 20 : 40), bth = l4 + 8;
	uint32_t icrc = f->len - 4, pad = bb_roce_pad(o->pkt.len);
	struct bb_roce_pkt pkt;
	uint8_t want[4];

	assert_memory_equal(f->b, dst_mac, 6);
	assert_memory_equal(f->b + 6, r->mac, 6);
	if (vlan != 0) {
		assert_int_equal(get16(f, 12), 0x8100);
		assert_int_equal(get16(f, 14), vlan);
	}
	assert_int_equal(get16(f, l3 - 2), v4 ? 0x0800 : 0x86dd);
	if (v4) {
		assert_fields(*f, b[l3], 0x45, b[l3 + 1], 0x69);
		assert_int_equal(get16(f, l3 + 2), f->len - l3);
		assert_int_equal(get16(f, l3 + 6), 0x4000);
		assert_int_equal(f->b[l3 + 8], 17);
		assert_int_equal(sum16(0, f->b + l3, 20) % 0xffff, 0);
		assert_memory_equal(f->b + l3 + 12, o->net.src + 12, 4);
		assert_memory_equal(f->b + l3 + 16, o->net.dst + 12, 4);
	} else {
		assert_memory_equal(f->b + l3, "\x66\x95\x43\x21", 4);
		assert_int_equal(get16(f, l3 + 4), f->len - l4);
		assert_fields(*f, b[l3 + 6], IPPROTO_UDP, b[l3 + 7], 17);
		assert_memory_equal(f->b + l3 + 8, o->net.src, 16);
		assert_memory_equal(f->b + l3 + 24, o->net.dst, 16);
	}
	assert_int_equal(get16(f, l4), 0xc0de);
	assert_int_equal(get16(f, l4 + 2), 4791);
	assert_int_equal(get16(f, l4 + 4), f->len - l4);
	assert_int_equal(get16(f, l4 + 6), 0);
	assert_int_equal(f->len, bth + o->tx.hdr_len + o->pkt.len + pad + 4);
	bb_roce_icrc_end(bb_roce_icrc_begin(f->b + l3, l4 - l3, f->b + l4, f->b + bth, icrc - bth),
			 want);
	assert_memory_equal(f->b + icrc, want, 4);
	assert_int_equal(bb_roce_parse(&pkt, f->b + bth, icrc - bth), BB_ROCE_OK);
	assert_fields(pkt, opcode, o->pkt.opcode, psn, o->pkt.psn, len, o->pkt.len);
	assert_memory_equal(pkt.payload, data, pkt.len);
}

#define T(name) TEST_WITH(setup, teardown, name)

#endif
