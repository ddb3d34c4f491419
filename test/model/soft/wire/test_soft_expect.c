/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Compares the fast path for expected frames (soft_wire_expect.c) with the full path. Two
 * identical devices on net_ring get the same frames: correct, wrong and damaged ones. The PMD of
 * one device reports that it has not checked the IP header, so that this device never uses the
 * fast path. Memory, queue pairs, completions, counters and responses must stay equal. usage:
 * model_soft_expect [SEED [STEPS]]
 */
#include <stdlib.h>
#include <unistd.h>

#include "soft_expect_env.h"

/* ---- Frames */

struct plan {
	struct bb_roce_pkt pkt;
	struct bb_roce_net net;
	uint8_t data[4096];
	uint8_t b[FRAME]; /* from the IP header on, after room for Ethernet */
	uint32_t len, missing;
	uint64_t said; /* checksum flags of the PMD */
	bool tag;
};

static const struct bb_roce_resp *
resp(void)
{
	return &env.s[0].w->roce.resp;
}

static const struct bb_roce_req *
req(void)
{
	return &env.s[0].w->roce.req;
}

static uint32_t
psn_near(uint32_t psn)
{
	return (psn + dice(9) - 4) & BB_ROCE_PSN_MASK;
}

static void
plan_request(struct plan *p)
{
	static const uint32_t lens[] = {8, 8, 64, 1, 3, 0, MTU, MTU + 4};
	static const uint8_t usual[] = {BB_ROCE_WRITE_ONLY, BB_ROCE_WRITE_ONLY_IMM,
					BB_ROCE_SEND_ONLY, BB_ROCE_SEND_ONLY_IMM};
	static const uint8_t ops[] = {BB_ROCE_READ_REQUEST, BB_ROCE_FETCH_ADD, BB_ROCE_WRITE_FIRST,
				      BB_ROCE_SEND_FIRST};
	struct bb_roce_pkt *k = &p->pkt;

	if (dice(16) == 0)
		env.len = lens[dice(RTE_DIM(lens))];
	if (dice(16) == 0)
		env.opcode = usual[dice(RTE_DIM(usual))];
	k->opcode = dice(8) == 0 ? usual[dice(RTE_DIM(usual))] : env.opcode;
	if (resp()->in_message && dice(8) != 0)
		k->opcode = resp()->kind == BB_ROCE_MSG_WRITE
				    ? (dice(2) ? BB_ROCE_WRITE_MIDDLE : BB_ROCE_WRITE_LAST)
				    : (dice(2) ? BB_ROCE_SEND_MIDDLE : BB_ROCE_SEND_LAST);
	if (dice(16) == 0)
		k->opcode = ops[dice(RTE_DIM(ops))];
	k->len = env.len;
	k->dmalen = k->len;
	if (k->opcode == BB_ROCE_WRITE_FIRST || k->opcode == BB_ROCE_SEND_FIRST ||
	    k->opcode == BB_ROCE_WRITE_MIDDLE || k->opcode == BB_ROCE_SEND_MIDDLE) {
		k->len = MTU;
		k->dmalen = MTU * (1 + dice(3)) + env.len;
	}
	if (k->opcode == BB_ROCE_READ_REQUEST || k->opcode == BB_ROCE_FETCH_ADD)
		k->len = 0;
	k->psn = dice(16) == 0 ? psn_near(resp()->epsn) : resp()->epsn;
	k->va = IOVA + 8 * dice(MEM / 8 - 1);
	if (dice(64) == 0)
		k->va = IOVA + MEM - dice(16);
	k->rkey = env.s[0].mr->rkey + (dice(64) == 0);
	if (dice(64) == 0)
		k->dmalen++;
	k->swap_add = dice(1000);
	k->imm = dice(1000);
	if (dice(2))
		k->flags |= BB_ROCE_ACKREQ;
	if (dice(8) == 0)
		k->flags |= BB_ROCE_SE;
}

static void
plan_ack(struct plan *p)
{
	static const uint8_t syndromes[] = {
		BB_ROCE_AETH_ACK | 3, BB_ROCE_AETH_NAK | BB_ROCE_NAK_PSN,
		BB_ROCE_AETH_NAK | BB_ROCE_NAK_OP, 0x80 | BB_ROCE_CREDITS_OFF};
	struct bb_roce_pkt *k = &p->pkt;
	uint32_t out = (req()->sent - req()->una) & BB_ROCE_PSN_MASK;

	k->opcode = BB_ROCE_ACK;
	if (dice(2) && req()->ring[req()->tail & req()->mask].kind == BB_ROCE_MSG_READ) {
		k->opcode = BB_ROCE_READ_RESP_ONLY;
		k->len = 8;
	}
	k->psn = out == 0 || dice(16) == 0 ? psn_near(req()->una)
					   : (req()->una + dice(out)) & BB_ROCE_PSN_MASK;
	k->syndrome = BB_ROCE_AETH_ACK | BB_ROCE_CREDITS_OFF;
	if (dice(32) == 0)
		k->syndrome = syndromes[dice(RTE_DIM(syndromes))];
	k->msn = dice(1 << 24);
}

static void
plan_build(struct plan *p)
{
	const struct bb_roce_iov iov = {.p = p->data, .len = p->pkt.len};
	uint32_t i;

	for (i = 0; i < p->pkt.len; i++)
		p->data[i] = (uint8_t)dice(256);
	p->len = (uint32_t)roce_frame_build(p->b + ETH, &p->net, &p->pkt, &iov, 1);
}

/* Returns the length of the IP header as it was built. */
static uint32_t
ip_len(void)
{
	return env.v6 ? 40 : 20;
}

/* Corrects the checksums after a byte was changed, so that the frame is parsed further. */
static void
plan_mend(struct plan *p)
{
	uint8_t *ip = p->b + ETH;
	struct roce_frame f;

	if (ip[0] == 0x45) {
		uint16_t sum;

		ip[10] = ip[11] = 0;
		sum = soft_port_csum(NULL, NULL, 0, 0, ip, 20);
		memcpy(ip + 10, &sum, 2);
	}
	if (roce_frame_split(&f, ip, p->len))
		bb_roce_icrc_end(bb_roce_icrc_begin(ip, f.ip_len, f.udp, f.bth, f.bth_len),
				 (uint8_t *)(uintptr_t)f.icrc);
}

/* Returns true for a frame that would start a timer; this test has no time. */
static bool
is_rnr_nak(const struct plan *p)
{
	const uint8_t *bth = p->b + ETH + ip_len() + 8;

	return (bb_roce_ops[bth[0]].flags & BB_ROCE_F_AETH) != 0 &&
	       (bth[BB_ROCE_BTH_LEN] & BB_ROCE_AETH_KIND) == BB_ROCE_AETH_RNR;
}

static void
plan_damage(struct plan *p)
{
	uint32_t i;

	switch (dice(7)) {
	case 0:
		p->missing = dice(RTE_MIN(p->len, ip_len() + 50u));
		break;
	case 1:
		p->len += dice(60);
		break;
	case 2:
		p->tag = !p->tag;
		break;
	case 3:
		p->said = dice(2) ? RTE_MBUF_F_RX_IP_CKSUM_BAD : RTE_MBUF_F_RX_VLAN_STRIPPED;
		break;
	default:
		i = dice(4) == 0 ? p->len : RTE_MIN(p->len, ip_len() + 60u);
		p->b[ETH + dice(i)] ^= (uint8_t)(1u << dice(8));
		if (dice(2))
			plan_mend(p);
	}
}

/* Sets the fields that all correct packets have in common. */
static void
plan_begin(struct plan *p)
{
	memset(p, 0, sizeof(*p));
	p->tag = env.tag;
	memcpy(p->net.src, env.peer.gid.raw, 16);
	memcpy(p->net.dst, env.s[0].d.gid.raw, 16);
	p->net.sport = 0xc123;
	p->net.hop_limit = 64;
	p->net.tclass = 0x20;
	p->pkt.pkey = 0xffff;
	p->pkt.dqpn = env.s[0].q.qpn;
	p->pkt.flags = BB_ROCE_MIGREQ;
}

static void
plan(struct plan *p)
{
	plan_begin(p);
	if (dice(50) == 0)
		p->net.src[15] ^= 1;
	if (req()->sent != req()->una && dice(3) == 0)
		plan_ack(p);
	else
		plan_request(p);
	if (dice(200) == 0)
		p->net.tclass |= 3;
	if (dice(200) == 0)
		p->pkt.flags |= BB_ROCE_FECN;
	plan_build(p);
	if (dice(8) == 0)
		plan_damage(p);
	/*
	 * Of marks that arrive close together one device may report two, and the other device
	 * only one.
	 */
	if ((p->b[ETH + 1] >> (env.v6 ? 4 : 0) & 3) == 3 ||
	    (p->b[ETH + ip_len() + 8 + 4] & 0x80) != 0)
		usleep(200);
}

static void
give(struct side *s, const struct plan *p, uint32_t cut)
{
	const uint8_t tag[4] = {0x81, 0, 0, env.tag ? 5 : 0};
	struct rte_mbuf *m = rte_pktmbuf_alloc(env.pool), *more;
	uint8_t *at;

	assert_non_null(m);
	at = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)(ETH + p->len + (p->tag ? 4 : 0)));
	assert_non_null(at);
	memcpy(at, soft_ctx(s->d.ctx)->dev->mac, 6);
	memcpy(at + 6, peer_mac, 6);
	at += 12;
	if (p->tag) {
		memcpy(at, tag, 4);
		at += 4;
	}
	at[0] = env.v6 ? 0x86 : 0x08;
	at[1] = env.v6 ? 0xdd : 0;
	memcpy(at + 2, p->b + ETH, p->len);
	/* The removed bytes are from the frame's end. */
	assert_int_equal(rte_pktmbuf_trim(m, (uint16_t)p->missing), 0);
	m->ol_flags |= p->said != 0 ? p->said : s->ol_flags;
	m->vlan_tci = 5;
	/* In two segments. */
	if (cut != 0 && cut < m->data_len) {
		more = rte_pktmbuf_alloc(env.pool);
		assert_non_null(more);
		memcpy(rte_pktmbuf_append(more, (uint16_t)(m->data_len - cut)),
		       rte_pktmbuf_mtod_offset(m, uint8_t *, cut), m->data_len - cut);
		assert_int_equal(rte_pktmbuf_trim(m, (uint16_t)(m->data_len - cut)), 0);
		assert_int_equal(rte_pktmbuf_chain(m, more), 0);
	}
	assert_int_equal(rte_ring_enqueue(s->to, m), 0);
}

/* ---- Comparison */

static void
same_answers(void)
{
	struct rte_mbuf *m[2];
	void *a, *b = NULL;

	while (rte_ring_dequeue(env.s[0].from, &a) == 0) {
		assert_int_equal(rte_ring_dequeue(env.s[1].from, &b), 0);
		m[0] = a;
		m[1] = b;
		assert_int_equal(rte_pktmbuf_linearize(m[0]) | rte_pktmbuf_linearize(m[1]), 0);
		assert_int_equal(m[0]->data_len, m[1]->data_len);
		/* All bytes except the MAC addresses. */
		assert_memory_equal(rte_pktmbuf_mtod_offset(m[0], void *, 12),
				    rte_pktmbuf_mtod_offset(m[1], void *, 12),
				    m[0]->data_len - 12u);
		rte_pktmbuf_free(m[0]);
		rte_pktmbuf_free(m[1]);
	}
	assert_int_not_equal(rte_ring_dequeue(env.s[1].from, &b), 0);
}

/* Pointers of a queue pair are compared separately; the rest is compared by bytes. */
static void
same_engine(void)
{
	struct bb_roce_resp r[2];
	struct bb_roce_req q[2];
	unsigned int i;

	for (i = 0; i < 2; i++) {
		struct bb_roce_rto none = {0};

		memcpy(&r[i], &env.s[i].w->roce.resp, sizeof(r[i]));
		memcpy(&q[i], &env.s[i].w->roce.req, sizeof(q[i]));
		r[i].replay = NULL;
		r[i].out_of_order = NULL;
		q[i].ring = NULL;
		/* Times differ. */
		q[i].rto = none;
	}
	assert_memory_equal(&r[0], &r[1], sizeof(r[0]));
	assert_memory_equal(&q[0], &q[1], sizeof(q[0]));
	assert_int_equal(env.s[0].w->roce.state, env.s[1].w->roce.state);
	assert_memory_equal(&env.s[0].w->roce.stats, &env.s[1].w->roce.stats,
			    sizeof(env.s[0].w->roce.stats));
	assert_int_equal(env.s[0].w->roce.cnp_due, env.s[1].w->roce.cnp_due);
}

static void
same_cqes(void)
{
	struct rig_cqe a, b;

	while (rig_cqe(&env.s[0].c, &a)) {
		memset(&b, 0, sizeof(b));
		assert_true(rig_cqe(&env.s[1].c, &b));
		assert_int_equal(a.opcode, b.opcode);
		assert_int_equal(a.syndrome, b.syndrome);
		assert_int_equal(a.vendor, b.vendor);
		assert_int_equal(a.counter, b.counter);
		assert_int_equal(a.imm, b.imm);
		assert_int_equal(a.bytes, b.bytes);
		assert_int_equal(a.solicited, b.solicited);
	}
	assert_false(rig_cqe(&env.s[1].c, &b));
}

static void
same(void)
{
	const struct soft_dev *a = soft_ctx(env.s[0].d.ctx)->dev,
			      *b = soft_ctx(env.s[1].d.ctx)->dev;
	struct soft_port_stack_stats stack[2];
	struct soft_neigh_stats neigh;
	struct soft_port_stats port[2];
	uint32_t i;

	soft_port_stats(a->netif->port, &port[0], &stack[0], &neigh);
	soft_port_stats(b->netif->port, &port[1], &stack[1], &neigh);
	assert_memory_equal(&stack[0], &stack[1], sizeof(stack[0]));
	assert_memory_equal(&port[0], &port[1], sizeof(port[0]));
	assert_memory_equal(a->lost, b->lost, sizeof(a->lost));
	assert_memory_equal(env.s[0].mem, env.s[1].mem, MEM);
	same_engine();
	same_answers();
	same_cqes();
	/* Otherwise the test compares the full path with itself. */
	for (i = 0; i < SOFT_WIRE_KINDS; i++)
		assert_int_equal(env.s[1].w->expect[i].end, 0);
}

/* ---- */

/* Actions of the owner: posts receives and requests, grants and revokes rights. */
static void
owners(void)
{
	const struct soft_qp *qp = env.s[0].w->qp;
	uint32_t i, k, n = dice(4), at = 8 * dice(MEM / 16), opcode = dice(5);
	bool receive = dice(8) != 0 && (uint16_t)(env.s[0].q.rq_pi - qp->rq_ci) < 8;
	bool ask = dice(6) == 0 && (uint16_t)(env.s[0].q.pi - qp->sq_ci) < 32;
	/* A receive that must not be written to, or is too short. */
	uint32_t wrong = dice(100);
	bool rights = dice(60) == 0 && qp->state == BB_PRM_QP_RTS;

	if (rights)
		env.link.access ^= BB_ACCESS_REMOTE_WRITE;
	for (i = 0; i < 2; i++) {
		struct rig_mem own = {
			.p = (uint8_t *)(uintptr_t)IOVA, .mr = env.s[i].mr, .len = MEM};
		struct rig_qp *q = &env.s[i].q;

		if (receive) {
			own.mr = wrong == 0 ? env.s[i].ro : env.s[i].mr;
			rig_recv(q, &own, at, wrong == 1 ? 4 : 2 * MTU);
			own.mr = env.s[i].mr;
		}
		for (k = 0; ask && k < n; k++) {
			if (opcode != 0)
				rig_write(q, &own, at, 8, &own, 0, k + 1 == n ? RIG_CQE : 0);
			else
				rig_read(q, &own, at, 8, &own, 0, RIG_CQE);
		}
		if (ask && n != 0)
			rig_ring(q);
		if (rights)
			assert_int_equal(rig_qp_modify(q, BB_PRM_OP_RTS2RTS_QP, &env.peer, PEER_QPN,
						       &env.link),
					 0);
	}
}

/* Counts a step in which the frame took the fast path. */
static void
count_met(uint8_t opcode)
{
	static const uint8_t opcodes[SOFT_WIRE_KINDS] = {
		[SOFT_WIRE_WRITE] = BB_ROCE_WRITE_ONLY,
		[SOFT_WIRE_WRITE_IMM] = BB_ROCE_WRITE_ONLY_IMM,
		[SOFT_WIRE_SEND] = BB_ROCE_SEND_ONLY,
		[SOFT_WIRE_SEND_IMM] = BB_ROCE_SEND_ONLY_IMM,
		[SOFT_WIRE_ACK] = BB_ROCE_ACK,
	};
	uint32_t i;

	for (i = 0; i < SOFT_WIRE_KINDS; i++)
		env.met[i] += opcodes[i] == opcode;
}

static void
both_ways_agree(const struct way *way)
{
	static struct plan p;
	uint64_t step;
	uint32_t i, n, k, cut, met;

	memset(env.met, 0, sizeof(env.met));
	connect_both();
	for (step = 0; step < steps; step++) {
		if (env.s[0].w->roce.state != BB_ROCE_RTS || dice(500) == 0)
			connect_both();
		owners();
		met = env.s[0].w->expect_met;
		n = 1 + (dice(4) == 0 ? dice(4) : 0);
		for (k = 0; k < n; k++) {
			plan(&p);
			if (is_rnr_nak(&p))
				continue;
			cut = dice(16) == 0 ? 1 + dice(100) : 0;
			for (i = 0; i < 2; i++)
				give(&env.s[i], &p, cut);
		}
		for (i = 0; i < 2; i++)
			rig_polls(&env.s[i].u, 3);
		if (n == 1 && env.s[0].w->expect_met > met)
			count_met(p.pkt.opcode);
		same();
	}
	for (i = 0; i < SOFT_WIRE_KINDS; i++) {
		print_message("kind %u: expected in %u of %u steps\n", i, env.met[i],
			      (unsigned int)steps);
		if (way->capture)
			assert_int_equal(env.met[i], 0);
		else
			assert_true(env.met[i] > steps / 100);
	}
}

#define T(name, ...)                                                                               \
	static struct way name##_way = {__VA_ARGS__};                                              \
	TEST_STATE(setup, teardown, &name##_way, name)                                             \
	{                                                                                          \
		both_ways_agree(&name##_way);                                                      \
	}

T(test_fast_path_acts_as_the_full_path_over_ipv4, .vlan = "")
T(test_fast_path_acts_as_the_full_path_over_ipv6, .vlan = "", .v6 = true)
T(test_fast_path_acts_as_the_full_path_with_vlan, .vlan = "vlan=5,")
T(test_fast_path_acts_as_the_full_path_with_vlan_and_ipv6, .vlan = "vlan=5,", .v6 = true)
T(test_device_with_capture_takes_the_full_path, .vlan = "", .capture = true)

/* Gives both devices a correct WRITE of 8 bytes. */
static void
give_write(void)
{
	static struct plan p;
	uint32_t i;

	plan_begin(&p);
	p.pkt.opcode = BB_ROCE_WRITE_ONLY;
	p.pkt.len = p.pkt.dmalen = 8;
	p.pkt.psn = resp()->epsn;
	p.pkt.va = IOVA;
	p.pkt.rkey = env.s[0].mr->rkey;
	plan_build(&p);
	for (i = 0; i < 2; i++)
		give(&env.s[i], &p, 0);
}

/* The queue pair of the last expected frame is destroyed before the next frame arrives. */
TEST_STATE(setup, teardown, &test_fast_path_acts_as_the_full_path_over_ipv4_way,
	   test_frame_for_a_destroyed_queue_pair_is_dropped)
{
	static uint8_t before[MEM];
	uint32_t i, k;

	connect_both();
	for (k = 0; k < 4; k++) {
		give_write();
		for (i = 0; i < 2; i++)
			rig_polls(&env.s[i].u, 3);
		same();
	}
	assert_true(env.s[0].w->expect_met > 0);
	memcpy(before, env.s[0].mem, MEM);
	give_write();
	for (i = 0; i < 2; i++) {
		rig_qp_close(&env.s[i].q);
		rig_polls(&env.s[i].u, 3);
		assert_memory_equal(env.s[i].mem, before, MEM);
		side_open_qp(&env.s[i]);
	}
	same();
}

int
main(int argc, char **argv)
{
	if (argc > 1)
		start = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		steps = strtoull(argv[2], NULL, 0);
	if (bare_eal_init() < 0)
		return 77;
	/* Each refusal logs a line, and there are thousands. */
	rte_log_set_global_level(RTE_LOG_EMERG);
	return bb_test_run(__FILE__, NULL, NULL);
}
