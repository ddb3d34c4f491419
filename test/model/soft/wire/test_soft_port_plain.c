/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Short packets on a port take a fast path. The frames of such a device are compared with those
 * of a device with a capture, which sends all packets on the full path. Meanwhile arrive ACKs and
 * NAKs, requests, a neighbour with another MAC, another connection of the queue pair; packets are
 * also lost on purpose. The offloads requested from the PMD are compared, too: net_ring makes no
 * checksums, but this file can make it report that it does.
 */
#include <stdio.h>
#include <unistd.h>

#include "../../../fakes/bare_eal.h"
#include "port_plain_env.h"
#include "soft_data.h"
#include "wrap_ethdev.h"

#define ANEW 30 /* steps of a lossy connection */

/* ---- The PMD */

int
__wrap_rte_eth_dev_info_get(uint16_t id, struct rte_eth_dev_info *info)
{
	int ret = __real_rte_eth_dev_info_get(id, info);

	if (by_pmd)
		info->tx_offload_capa |= RTE_ETH_TX_OFFLOAD_IPV4_CKSUM;
	return ret;
}

int
__wrap_rte_eth_dev_configure(uint16_t id, uint16_t rx, uint16_t tx, const struct rte_eth_conf *conf)
{
	struct rte_eth_conf own = *conf;

	assert_int_equal((conf->txmode.offloads & RTE_ETH_TX_OFFLOAD_IPV4_CKSUM) != 0, by_pmd);
	own.txmode.offloads &= ~RTE_ETH_TX_OFFLOAD_IPV4_CKSUM;
	return __real_rte_eth_dev_configure(id, rx, tx, &own);
}

/* ---- The full path */

/* WQEs on the full path, by device. */
static uint32_t decoded[2];

uint8_t __real_soft_req_decode(struct soft_engine *e, struct soft_req *r, const struct soft_qp *qp,
			       uint16_t idx, uint32_t avail);
uint8_t __wrap_soft_req_decode(struct soft_engine *e, struct soft_req *r, const struct soft_qp *qp,
			       uint16_t idx, uint32_t avail);

uint8_t
__wrap_soft_req_decode(struct soft_engine *e, struct soft_req *r, const struct soft_qp *qp,
		       uint16_t idx, uint32_t avail)
{
	decoded[e->dev->index]++;
	return __real_soft_req_decode(e, r, qp, idx, avail);
}

/* ---- Both devices */

static void
connect_both(uint32_t remote, uint32_t tclass)
{
	struct rig_link l = rig_link_default();
	uint32_t i;

	l.timeout = 0; /* no retransmission by timeout */
	l.tclass = tclass;
	for (i = 0; i < 2; i++)
		rig_qp_up(&s[i].q, &peer, remote, &l);
	psn = una = sent = l.sq_psn;
	epsn = l.rq_psn;
	head = tail = 0;
	freed = 0;
}

static void
connect_anew(uint32_t remote, uint32_t tclass)
{
	uint32_t i;

	for (i = 0; i < 2; i++)
		rig_qp_reset(&s[i].q);
	connect_both(remote, tclass);
}

static void
open_side(uint32_t i, const char *more)
{
	const struct rig_qp_attr attr = {.log_sq = 6, .log_rq = 4, .log_stride = 6};
	static uint32_t n;
	char name[32], args[256];
	uint16_t id;
	int port;

	memset(&s[i], 0, sizeof(s[i]));
	snprintf(name, sizeof(name), "to%u", n);
	s[i].to = rte_ring_create(name, RINGS, 0, 0);
	snprintf(name, sizeof(name), "from%u", n);
	s[i].from = rte_ring_create(name, RINGS, 0, 0);
	assert_true(s[i].to != NULL && s[i].from != NULL);
	snprintf(name, sizeof(name), "p%u", n++);
	port = rte_eth_from_rings(name, &s[i].to, 1, &s[i].from, 1, 0);
	assert_true(port >= 0);
	id = (uint16_t)port;
	assert_int_equal(rte_eth_dev_get_name_by_port(id, name), 0);
	/* The rig's GID is the third of these addresses. */
	assert_true(snprintf(args, sizeof(args),
			     "port=%s,ip=198.51.100.1/24,ip=198.51.100.2/24,ip=%s/%d,seed=1%s%s",
			     name, us, strchr(us, ':') != NULL ? 64 : 24, vlan ? ",vlan=5" : "",
			     more) < (int)sizeof(args));
	rig_dev_open(&s[i].d, i == 0 ? "soft0" : "soft1", args);
	memcpy(s[i].mac, s[i].d.mac, 6);
	rig_uar_open(&s[i].u, &s[i].d, MLX5_UAR_BF);
	rig_cq_open(&s[i].c, &s[i].u, 8);
	rig_qp_open(&s[i].q, &s[i].u, &s[i].c, &s[i].c, &attr);
	rig_mem_open(&s[i].m, &s[i].d, NULL, MEM, RIG_ALL);
}

static void
close_side(struct side *a)
{
	struct frame f;
	void *m;

	rig_qp_close(&a->q);
	rig_cq_close(&a->c);
	rig_mem_close(&a->m);
	rig_uar_close(&a->u);
	rig_dev_close(&a->d);
	while (take(a, &f))
		;
	while (rte_ring_dequeue(a->to, &m) == 0)
		rte_pktmbuf_free(m);
}

static void
open_both(const char *ours, const char *theirs, bool tagged)
{
	struct frame f;
	char more[128];
	uint32_t i;

	us = ours;
	them = theirs;
	vlan = tagged;
	rkey = 0x1234;
	memcpy(peer.gid.raw, ip_of(them), 16);
	holes = 0;
	memset(decoded, 0, sizeof(decoded));
	capture_path(path, sizeof(path));
	snprintf(more, sizeof(more), "%s,capture=%s", faults, path);
	open_side(0, faults);
	open_side(1, more);
	for (i = 0; i < MEM; i++)
		s[0].m.p[i] = s[1].m.p[i] = (uint8_t)(i * 31 + (i >> 8));
	connect_both(PEERQP, 0);
	/* Neither device knows the peer before its answer. */
	for (i = 0; i < 2; i++) {
		rig_send(&s[i].q, &s[i].m, 0, 8, RIG_CQE);
		rig_ring(&s[i].q);
	}
	out[head % BLOCKS].end = s[0].q.pi;
	out[head % BLOCKS].packet = true;
	out[head++ % BLOCKS].psn = psn++;
	poll();
	same(&f);
	neighbour(MAC_A);
	while (same(&f) == 0)
		poll();
	assert_memory_equal(f.b, MAC_A, 6);
}

static void
close_both(void)
{
	close_side(&s[0]);
	close_side(&s[1]);
	unlink(path);
}

/* ---- Events for both devices */

/* Properties of a WQE on which the headers of its packet depend. */
struct kind {
	uint8_t op, se;
	uint32_t len;
	bool in; /* inline data */
};

/*
 * Most WQEs differ from the WQE before in at most one property, because the fast path compares a
 * WQE with the WQE before.
 */
static struct kind
choose_kind(void)
{
	static const uint8_t ops[] = {MLX5_OPCODE_RDMA_WRITE, MLX5_OPCODE_RDMA_WRITE_IMM,
				      MLX5_OPCODE_SEND, MLX5_OPCODE_SEND_IMM};
	static struct kind last;
	const struct kind any = {ops[dice(4)], dice(4) == 0 ? SE : 0,
				 dice(3) == 0 ? 8 : 1 + dice(300), dice(2) == 0};
	uint32_t what = last.len == 0 ? 0 : dice(12);

	if (what == 0)
		last = any;
	else if (what == 1)
		last.op = any.op;
	else if (what == 2)
		last.se = any.se;
	else if (what == 3)
		last.len = any.len;
	else if (what == 4)
		last.in = any.in;
	return last;
}

/* Posts a WQE of any kind, mostly plain ones. The PSN does not reach its wrap. */
static void
post(bool first)
{
	const struct kind kind = choose_kind();
	uint8_t op = dice(40) == 0 ? MLX5_OPCODE_NOP : kind.op, fm_ce_se = kind.se;
	uint32_t len = kind.len, off = dice(MEM - 300), imm = dice(1 << 20);
	bool write = op == MLX5_OPCODE_RDMA_WRITE || op == MLX5_OPCODE_RDMA_WRITE_IMM;
	bool in = kind.in;
	uint64_t raddr = (uint64_t)dice(1 << 30) << 20;
	uint32_t i, ds;

	if (in)
		len = 1 + (len - 1) % (write ? 92 : 44);
	/*
	 * Inline data across the end of the ring takes the full path. The preceding request may
	 * then ask for its own ACK, which is not a fault.
	 */
	if (in && write && !first && s[0].q.pi % BLOCKS == BLOCKS - 1)
		len = 1 + (len - 1) % 28;
	fm_ce_se |= dice(2) == 0 ? RIG_CQE : 0;
	fm_ce_se |= dice(30) == 0 ? FENCE : 0;
	for (i = 0; i < 2; i++) {
		struct rig_qp *q = &s[i].q;

		ds = 1;
		if (write) {
			rig_raddr(q, raddr, rkey);
			ds = 2;
		}
		if (op == MLX5_OPCODE_NOP) {
			rig_nop(q, fm_ce_se);
			continue;
		}
		if (in)
			ds += rig_inline(q, ds, s[i].m.p + off, len);
		else
			rig_data(q, ds++, &s[i].m, off, len);
		rig_wqe(q, op, fm_ce_se, ds, htonl(imm));
	}
	out[head % BLOCKS].end = s[0].q.pi;
	out[head % BLOCKS].packet = op != MLX5_OPCODE_NOP;
	out[head++ % BLOCKS].psn = psn;
	psn += op != MLX5_OPCODE_NOP;
}

static void
answer(uint8_t syndrome, uint32_t upto)
{
	const struct bb_roce_pkt pkt = {
		.opcode = BB_ROCE_RC | BB_ROCE_ACK,
		.pkey = 0xffff,
		.dqpn = s[0].q.qpn,
		.psn = upto & BB_ROCE_PSN_MASK,
		.syndrome = syndrome,
	};

	from_peer(&pkt);
}

/* The peer acknowledges all packets before @upto. */
static void
acknowledged(uint32_t upto)
{
	if ((int32_t)(upto - una) > 0)
		una = upto;
	while (tail != head &&
	       (int32_t)(out[tail % BLOCKS].psn + out[tail % BLOCKS].packet - una) <= 0)
		freed = out[tail++ % BLOCKS].end;
}

static void
acks(void)
{
	uint32_t upto = sent;

	if (sent == una)
		return;
	switch (dice(6)) {
	case 0: /* the oldest missing packet */
		answer(BB_ROCE_AETH_NAK | BB_ROCE_NAK_PSN, una);
		return;
	case 1:
		upto = una + 1 + dice(sent - una);
		break;
	default:
		break;
	}
	answer(BB_ROCE_AETH_ACK | BB_ROCE_CREDITS_OFF, upto - 1);
	acknowledged(upto);
}

/* Sends a WRITE of zero bytes, for which any key is accepted. */
static void
request(void)
{
	const struct bb_roce_pkt pkt = {
		.opcode = BB_ROCE_RC | BB_ROCE_WRITE_ONLY,
		.flags = dice(3) == 0 ? 0 : BB_ROCE_ACKREQ,
		.pkey = 0xffff,
		.dqpn = s[0].q.qpn,
		.psn = (epsn - (dice(20) == 0) + (dice(20) == 0)) & BB_ROCE_PSN_MASK,
	};

	from_peer(&pkt);
	epsn += pkt.psn == (epsn & BB_ROCE_PSN_MASK);
}

/* Checks that both devices completed the same requests. */
static void
completions(void)
{
	struct rig_cqe a, b;

	while (rig_cqe(&s[0].c, &a)) {
		assert_true(rig_cqe(&s[1].c, &b));
		assert_int_equal(a.opcode, BB_CQE_REQ);
		assert_int_equal(b.opcode, BB_CQE_REQ);
		assert_int_equal(a.counter, b.counter);
		assert_int_equal(a.sop, b.sop);
	}
	assert_false(rig_cqe(&s[1].c, &b));
}

static void
step(void)
{
	uint32_t what = dice(20), n, i;

	if (what < 9) {
		n = 1 + dice(dice(3) == 0 ? 12 : 2);
		for (i = 0; i < n && (uint16_t)(s[0].q.pi - freed) + 3u <= BLOCKS; i++)
			post(i == 0);
		for (i = 0; i < 2; i++)
			if (tail != head)
				rig_ring(&s[i].q);
	} else if (what < 14) {
		acks();
	} else if (what < 18) {
		request();
	} else if (what == 18 && dice(4) == 0) {
		neighbour(dice(2) == 0 ? MAC_A : MAC_B);
	}
	poll();
}

static void
random_traffic(const char *ours, const char *theirs, bool tagged)
{
	struct frame f;
	uint32_t i, n = 0;

	open_both(ours, theirs, tagged);
	for (i = 0; i < 3000; i++) {
		step();
		n += same(&f);
		completions();
		/* Requests after a fence wait for lost packets, and no timer runs. */
		if (faults[0] != '\0' && i % ANEW == ANEW - 1)
			connect_anew(PEERQP, 0);
	}
	close_both();
	printf("%u packets, %u not in their order; %u and %u WQEs went the long way\n", n, holes,
	       decoded[0], decoded[1]);
	assert_true(n > 3000);
	/* A fence, a NAK or a NOP moves neighbouring requests to the full path, too. */
	assert_true(decoded[0] < decoded[1] * 3 / 4);
	assert_int_equal(faults[0] != '\0', holes > 100);
}

TEST(test_both_paths_send_equal_frames_over_ipv4)
{
	random_traffic("192.0.2.1", "192.0.2.2", false);
}

TEST(test_both_paths_send_equal_frames_over_ipv4_and_vlan)
{
	random_traffic("192.0.2.1", "192.0.2.2", true);
}

TEST(test_both_paths_send_equal_frames_over_ipv6)
{
	random_traffic("2001:db8::1", "2001:db8::2", false);
}

TEST(test_both_paths_send_equal_frames_over_ipv6_and_vlan)
{
	random_traffic("2001:db8::1", "2001:db8::2", true);
}

/* Random traffic with a PMD that makes IPv4 checksums. */
TEST(test_pmd_that_makes_checksums_sends_equal_frames)
{
	by_pmd = true;
	random_traffic("192.0.2.1", "192.0.2.2", false);
	random_traffic("192.0.2.1", "192.0.2.2", true);
	random_traffic("2001:db8::1", "2001:db8::2", false);
	by_pmd = false;
}

/* Packets lost on purpose, requests and responses: both devices lose the same ones. */
TEST(test_both_paths_lose_the_same_packets)
{
	faults = ",tx_drop=5,seed=4";
	random_traffic("192.0.2.1", "192.0.2.2", false);
	random_traffic("2001:db8::1", "2001:db8::2", true);
	faults = "";
}

/* ---- Changed packet headers */

static void
one_write(struct frame *f)
{
	static struct frame other;
	uint32_t i, n = 0;

	for (i = 0; i < 2; i++) {
		rig_write(&s[i].q, &s[i].m, 0, 8, &s[i].m, 8, 0);
		rig_ring(&s[i].q);
	}
	psn++;
	poll();
	/* Keys and addresses belong to each device: only soft0's are used here. */
	while (take(&s[0], &other))
		if (is_packet(&other)) {
			*f = other;
			n++;
		}
	assert_int_equal(n, 1);
	while (take(&s[1], &other))
		;
}

TEST(test_changed_neighbour_gets_the_next_frames)
{
	const uint32_t l3 = 14, bth = l3 + 28;
	struct frame f;
	uint32_t i;

	open_both("192.0.2.1", "192.0.2.2", false);
	for (i = 0; i < 4; i++) {
		const char *mac = i % 2 == 0 ? MAC_B : MAC_A;

		one_write(&f);
		assert_memory_equal(f.b, i % 2 == 0 ? MAC_A : MAC_B, 6);
		neighbour(mac);
		one_write(&f);
		assert_memory_equal(f.b, mac, 6);
		answer(BB_ROCE_AETH_ACK | BB_ROCE_CREDITS_OFF, psn - 1);
		poll();
	}
	one_write(&f);
	one_write(&f);
	/* Another connection: DSCP and the peer's QP number. */
	connect_anew(PEERQP + 1, 26 << 2);
	one_write(&f);
	one_write(&f);
	assert_int_equal(f.b[l3 + 1], 26 << 2);
	assert_int_equal(f.b[bth + 7], (PEERQP + 1) & 0xff);
	close_both();
}

int
main(void)
{
	if (bare_eal_init() < 0)
		return 77;
	pool = rte_pktmbuf_pool_create("test", 511, 0, 0, 2048 + RTE_PKTMBUF_HEADROOM, 0);
	if (pool == NULL)
		return 1;
	return bb_test_run(__FILE__, NULL, NULL);
}
