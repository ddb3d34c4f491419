/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The fault options of a device's network, in virtual time: their effect on packets, read from
 * the device's captures.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include <rte_common.h>

#include "../soft_rig.h"
#include "bb_cqe.h"
#include "bb_roce_op.h"
#include "capture_read.h"
#include "soft_ctl.h"
#include "soft_wire.h"

#define MTU          1024u /* of rig_link_default() */
#define CNP_INTERVAL 50000u
#define DSCP         26u
#define ECT0         2u
#define CE           3u

/* Frequency of the TSC in Hz that EAL reports; 0 as without EAL, where the device measures it. */
static uint64_t tsc_hz;

uint64_t __wrap_rte_get_tsc_hz(void);

uint64_t
__wrap_rte_get_tsc_hz(void)
{
	return tsc_hz;
}

struct net {
	struct rig_pair p;
	char path[64];
};

static void
net_link(struct rig_link *l)
{
	*l = rig_link_default();
	l->retry = 7;
	l->timeout = 10; /* 4 ms */
}

static void
net_open(struct net *n, const char *more, const struct rig_link *l)
{
	char args[256];

	capture_path(n->path, sizeof(n->path));
	assert_true(snprintf(args, sizeof(args), "wire=1,virtual_time,capture=%s,%s", n->path,
			     more) < (int)sizeof(args));
	rig_pair_open(&n->p, args, false, l);
}

/* Closes the network and reads its capture. */
static void
net_close(struct net *n, struct capture *c)
{
	rig_polls(n->p.u[0], 10);
	rig_pair_close(&n->p);
	capture_read(c, n->path);
	unlink(n->path);
}

static uint8_t
write_one(struct net *n, uint32_t len)
{
	struct rig_cqe e;

	rig_write(&n->p.a, &n->p.ma, 0, len, &n->p.mb, 0, RIG_CQE);
	rig_ring(&n->p.a);
	rig_wait(&n->p.ca, n->p.u[0], &e);
	assert_int_equal(e.counter, n->p.a.last);
	return e.opcode == 0 ? 0 : e.syndrome;
}

static void
writes(struct net *n, uint32_t times, uint32_t len)
{
	while (times-- != 0)
		assert_int_equal(write_one(n, len), 0);
}

/* ---- Dropped packets are counted by reason */

static uint64_t
lost(const struct net *n, uint32_t why)
{
	soft_quiesce();
	return soft_ctx(n->p.d.ctx)->dev->lost[why];
}

TEST(test_lost_packets_are_counted_by_cause)
{
	struct rig_link l;
	struct capture c;
	struct net n;

	net_link(&l);
	net_open(&n, "rx_corrupt=30,seed=5", &l);
	writes(&n, 20, 3000);
	assert_true(lost(&n, BB_ROCE_DROP_ICRC) > 5);
	assert_int_equal(lost(&n, SOFT_LOST_NO_QP), 0);
	net_close(&n, &c);
	capture_free(&c);
	/* Each open of the device counts from 0. */
	net_open(&n, "seed=5", &l);
	writes(&n, 20, 3000);
	assert_int_equal(lost(&n, BB_ROCE_DROP_ICRC), 0);
	net_close(&n, &c);
	capture_free(&c);
}

/* ---- Fields of a path appear in its packets */

TEST(test_packets_carry_the_path_of_the_qp)
{
	static const uint32_t sports[] = {0xc000, 0xd00d, 0xffff};
	const struct bb_roce_net *net;
	struct rig_link l;
	struct capture c;
	struct net n;
	uint32_t i, k;

	for (i = 0; i < RTE_DIM(sports); i++) {
		net_link(&l);
		l.tclass = DSCP << 2;
		l.sport = sports[i];
		l.flow_label = 0xabcde;
		net_open(&n, "seed=1", &l);
		writes(&n, 2, 3 * MTU);
		/* The rig's addresses are IPv4, whose header has no flow label. */
		net = &soft_qp_find(soft_ctx(n.p.d.ctx)->dev, n.p.a.qpn)->wire->path.net;
		assert_int_equal(net->flow_label, l.flow_label);
		net_close(&n, &c);
		assert_true(c.n >= 8);
		for (k = 0; k < c.n; k++) {
			const uint8_t *ip = c.pkt[k].ip;

			assert_int_equal(ip[0], 0x45);
			assert_int_equal(ip[1], DSCP << 2);
			assert_int_equal(ip[8], 64); /* of rig_qp_mailbox() */
			assert_int_equal(ip[20] << 8 | ip[21], sports[i]);
			assert_int_equal(ip[22] << 8 | ip[23], BB_ROCE_UDP_PORT);
		}
		capture_free(&c);
	}
}

/* ---- Repeated runs */

#define FAULTS                                                                                     \
	"tx_drop=2,tx_dup=2,tx_reorder=2,tx_corrupt=1,tx_delay=3,rx_drop=1,rx_dup=1,rx_reorder=3," \
	"rx_corrupt=1,rx_delay=2,tx_ecn=10"

static void
faulty_run(struct capture *c, uint32_t seed)
{
	struct rig_link l;
	char args[200];
	struct net n;
	uint32_t i;

	net_link(&l);
	l.tclass = ECT0;
	snprintf(args, sizeof(args), "seed=%u," FAULTS, seed);
	net_open(&n, args, &l);
	for (i = 0; i < 60; i++) {
		writes(&n, 1, 1 + i * 100);
		assert_memory_equal(n.p.mb.p, n.p.ma.p, 1 + i * 100);
	}
	net_close(&n, c);
}

/* Returns true if both captures are equal except for QP numbers. */
static bool
same(const struct capture *a, const struct capture *b)
{
	uint32_t i;

	for (i = 0; i < a->n && i < b->n; i++) {
		const struct capture_pkt *p = &a->pkt[i], *q = &b->pkt[i];

		if (p->ns - a->pkt[0].ns != q->ns - b->pkt[0].ns || p->dir != q->dir ||
		    p->len != q->len || strcmp(p->note, q->note) != 0 || p->tclass != q->tclass ||
		    p->icrc_ok != q->icrc_ok)
			return false;
		if (p->icrc_ok && (p->pkt.opcode != q->pkt.opcode || p->pkt.psn != q->pkt.psn))
			return false;
	}
	return a->n == b->n;
}

TEST(test_equal_seeds_lose_the_same_packets)
{
	struct capture a, b, c;

	faulty_run(&a, 7);
	faulty_run(&b, 7);
	faulty_run(&c, 8);
	assert_true(a.n > 500);
	assert_true(same(&a, &b));
	assert_false(same(&a, &c));
	capture_free(&a);
	capture_free(&b);
	capture_free(&c);
}

/*
 * Time of a WRITE and its response: the networks of both ends delay each packet, when sent and
 * when received.
 */
TEST(test_each_network_delays_each_packet)
{
	static const struct {
		const char *args;
		uint32_t us;
	} runs[] = {
		{"seed=1", 0},
		{"tx_delay=300", 600},
		{"rx_delay=200", 400},
		{"tx_delay=300,rx_delay=200", 1000},
	};
	struct rig_link l;
	struct capture c;
	uint64_t start, took;
	struct net n;
	uint32_t i;

	for (i = 0; i < RTE_DIM(runs); i++) {
		net_link(&l);
		net_open(&n, runs[i].args, &l);
		start = soft_dev_ns(soft_ctx(n.p.d.ctx)->dev);
		writes(&n, 1, 8);
		took = (soft_dev_ns(soft_ctx(n.p.d.ctx)->dev) - start) / 1000;
		assert_in_range(took, runs[i].us, runs[i].us + 50);
		net_close(&n, &c);
		capture_free(&c);
	}
}

/* ---- Congestion */

struct congestion {
	uint64_t marked, sent, handled;
};

static void
congestion(const struct rig_dev *d, bool clear, struct congestion *c)
{
	uint8_t in[BB_PRM_SZ_QUERY_CONG_STATISTICS_IN] = {0};
	uint8_t out[BB_PRM_SZ_QUERY_CONG_STATISTICS_OUT] = {0};

	bb_prm_set(in, BB_PRM_CMD_OPCODE, BB_PRM_OP_QUERY_CONG_STATISTICS);
	bb_prm_set(in, BB_PRM_QUERY_CONG_STATISTICS_CLEAR, clear);
	OK(soft_cmd_if.general(d->ctx, in, sizeof(in), out, sizeof(out)));
	assert_int_equal(bb_prm_get(out, BB_PRM_CONG_NP_ECN_MARKED_ROCE_PACKETS_HIGH), 0);
	c->marked = bb_prm_get(out, BB_PRM_CONG_NP_ECN_MARKED_ROCE_PACKETS_LOW);
	c->sent = bb_prm_get(out, BB_PRM_CONG_NP_CNP_SENT_LOW);
	c->handled = bb_prm_get(out, BB_PRM_CONG_RP_CNP_HANDLED_LOW);
}

/* Returns true if the checksum of an IPv4 header is correct (RFC 1071). */
static bool
ip4_sum_ok(const uint8_t *ip)
{
	uint32_t sum = 0, i;

	for (i = 0; i < 20; i += 2)
		sum += (uint32_t)ip[i] << 8 | ip[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	return sum == 0xffff;
}

/* Counts marks and notifications in the file and checks that they agree. */
static void
count_congestion(const struct capture *c, struct congestion *sum)
{
	uint64_t last[2] = {0, 0};
	uint32_t first = c->n != 0 ? c->pkt[0].pkt.dqpn : 0, i;

	memset(sum, 0, sizeof(*sum));
	for (i = 0; i < c->n; i++) {
		const struct capture_pkt *k = &c->pkt[i];
		bool cnp = k->pkt.opcode == BB_ROCE_CNP;
		unsigned int qp;

		assert_true(k->icrc_ok);
		assert_true(ip4_sum_ok(k->ip));
		assert_int_equal(k->tclass >> 2, DSCP);
		if (k->dir == CAPTURE_IN) {
			sum->marked += !cnp && (k->tclass & CE) == CE;
			sum->handled += cnp;
			continue;
		}
		assert_int_equal((k->tclass & CE) == CE, strcmp(k->note, "tx_ecn") == 0);
		if (!cnp)
			continue;
		sum->sent++;
		assert_true((k->pkt.flags & BB_ROCE_BECN) != 0);
		/* At most one notification in 50 us to a queue pair. */
		qp = k->pkt.dqpn != first;
		assert_true(last[qp] == 0 || k->ns - last[qp] >= CNP_INTERVAL);
		last[qp] = k->ns;
	}
}

static void
marked_run(const char *args, uint32_t tclass, struct capture *c, struct congestion *told)
{
	struct congestion again;
	struct rig_link l;
	struct net n;

	net_link(&l);
	l.tclass = tclass;
	net_open(&n, args, &l);
	writes(&n, 200, 3 * MTU);
	rig_polls(n.p.u[0], 100);
	congestion(&n.p.d, false, told);
	congestion(&n.p.d, true, &again);
	assert_memory_equal(told, &again, sizeof(again));
	congestion(&n.p.d, false, &again);
	assert_int_equal(again.marked + again.sent + again.handled, 0);
	net_close(&n, c);
}

TEST(test_marked_packets_are_answered_by_cnps)
{
	static const struct {
		const char *args;
		uint32_t ecn;
		bool all, none;
	} runs[] = {
		{"tx_ecn=100", ECT0, true, false}, {"tx_ecn=100", 1, true, false},
		{"tx_ecn=25", ECT0, false, false}, {"tx_ecn=100", 0, false, true},
		{"tx_ecn=0", ECT0, false, true},
	};
	struct congestion told, seen;
	struct capture c;
	uint64_t us;
	uint32_t i;

	for (i = 0; i < RTE_DIM(runs); i++) {
		marked_run(runs[i].args, DSCP << 2 | runs[i].ecn, &c, &told);
		count_congestion(&c, &seen);
		assert_int_equal(told.marked, seen.marked);
		assert_int_equal(told.sent, seen.sent);
		assert_int_equal(told.handled, seen.handled);
		assert_int_equal(told.sent, told.handled);
		us = (c.pkt[c.n - 1].ns - c.pkt[0].ns) / 1000;
		/* Both ends of the connection, once in 50 us each, and once at the start. */
		assert_true(told.sent <= 2 * (us / 50 + 1));
		if (runs[i].none) {
			assert_int_equal(told.marked + told.sent, 0);
		} else {
			assert_true(told.marked > 100 && told.sent > 4);
			/*
			 * If every packet is marked, a notification is sent whenever the interval
			 * allows it.
			 */
			assert_true(!runs[i].all || told.sent >= us / 50);
			assert_true(runs[i].all == (told.marked + told.handled == c.n / 2));
		}
		capture_free(&c);
	}
}

/* Packets marked by the receiver's own network: same result, and the file has them unmarked. */
TEST(test_packets_marked_on_receive_are_captured_unmarked)
{
	struct congestion told;
	struct capture c;
	uint32_t i;

	marked_run("rx_ecn=100", DSCP << 2 | ECT0, &c, &told);
	for (i = 0; i < c.n; i++) {
		assert_int_equal(c.pkt[i].tclass & CE, ECT0);
		assert_string_equal(c.pkt[i].note, c.pkt[i].dir == CAPTURE_IN ? "rx_ecn" : "");
	}
	assert_int_equal(told.marked + told.handled, c.n / 2);
	assert_true(told.sent > 4);
	capture_free(&c);
}

/* ---- A peer that pauses, a port that flaps */

/* Returns the result of 20 WRITEs under these faults: 0, or the syndrome of the first failure. */
static uint8_t
outcome(const char *args, struct capture *c)
{
	struct rig_link l;
	struct net n;
	uint8_t synd = 0;
	uint32_t i;

	net_link(&l);
	net_open(&n, args, &l);
	for (i = 0; i < 20 && synd == 0; i++) {
		memset(n.p.mb.p, 0, 3 * MTU);
		synd = write_one(&n, 3 * MTU);
		if (synd == 0)
			assert_memory_equal(n.p.mb.p, n.p.ma.p, 3 * MTU);
		/* One millisecond between them. */
		rig_polls(n.p.u[0], 1000);
	}
	net_close(&n, c);
	return synd;
}

/* Returns the longest time between two sent packets, in microseconds. */
static uint64_t
longest_gap(const struct capture *c)
{
	uint64_t last = c->pkt[0].ns, longest = 0;
	uint32_t i;

	for (i = 0; i < c->n; i++) {
		if (c->pkt[i].dir != CAPTURE_OUT)
			continue;
		longest = RTE_MAX(longest, c->pkt[i].ns - last);
		last = c->pkt[i].ns;
	}
	return longest / 1000;
}

/* Retries last 8 times 4.2 ms: a shorter pause does not fail a request, a longer pause does. */
TEST(test_pause_beyond_the_retries_fails_the_request)
{
	static const struct {
		const char *args;
		uint8_t synd;
		uint32_t gap; /* minimum time without a sent packet, in us */
	} runs[] = {
		{"tx_stall=10:10,seed=3", 0, 9000},
		{"rx_stall=10:10,seed=3", 0, 0},
		{"tx_stall=100:60000", BB_SYN_RETRY_EXC, 0},
		{"rx_stall=100:60000", BB_SYN_RETRY_EXC, 0},
		{"tx_full=2", BB_SYN_RETRY_EXC, 0},
		{"rx_full=2", BB_SYN_RETRY_EXC, 0},
		{"tx_full=9", BB_SYN_RETRY_EXC, 0},
		{"tx_full=9:10", 0, 9000},
		{"rx_full=9:10", 0, 9000},
		{"flap=3:2", 0, 0},
		{"flap=3:60000", BB_SYN_RETRY_EXC, 0},
	};
	struct capture c, again;
	uint32_t i;

	for (i = 0; i < RTE_DIM(runs); i++) {
		assert_int_equal(outcome(runs[i].args, &c), runs[i].synd);
		assert_int_equal(outcome(runs[i].args, &again), runs[i].synd);
		assert_true(same(&c, &again));
		if (runs[i].gap != 0)
			assert_true(longest_gap(&c) >= runs[i].gap);
		capture_free(&c);
		capture_free(&again);
	}
}

TEST(test_each_change_of_the_port_is_reported)
{
	struct mlx5_port port;
	struct rig_pair p;
	uint32_t i;

	rig_pair_open(&p, "wire=1,virtual_time,flap=3:2", false, NULL);
	rig_subscribe(&p.d, NULL, BB_PRM_EVENT_PORT_CHANGE, 7);
	for (i = 0; i < 4; i++) {
		/* Until 100 us before the change, and until 100 us after it. */
		rig_polls(p.u[0], i == 0 ? 2900 : i % 2 == 0 ? 2800 : 1800);
		rig_expect_no_event(&p.d);
		OK(soft_cmd_if.port_query(p.d.ctx, 1, &port));
		assert_int_equal(port.state, i % 2 == 0 ? BB_PORT_ACTIVE : BB_PORT_DOWN);
		rig_polls(p.u[0], 200);
		rig_expect_event(&p.d, BB_PRM_EVENT_PORT_CHANGE, 7);
	}
	rig_pair_close(&p);
}

/* ---- The window */

/* Returns the largest number of unacknowledged requests of @a when one was sent. */
static uint32_t
most_in_flight(const struct capture *c, uint32_t a, uint32_t psn)
{
	uint32_t una = psn, most = 0, i;

	for (i = 0; i < c->n; i++) {
		const struct capture_pkt *k = &c->pkt[i];

		if (k->dir == CAPTURE_OUT && k->pkt.dqpn != a)
			most = RTE_MAX(most, ((k->pkt.psn - una) & 0xffffff) + 1);
		if (k->dir == CAPTURE_IN && k->pkt.dqpn == a && k->pkt.opcode == BB_ROCE_ACK)
			una = (k->pkt.psn + 1) & 0xffffff;
	}
	return most;
}

TEST(test_window_limits_the_packets_in_flight)
{
	static const uint32_t windows[] = {1, 4, 63};
	struct rig_link l;
	struct capture c;
	char args[32];
	struct net n;
	uint32_t i;

	for (i = 0; i < RTE_DIM(windows); i++) {
		net_link(&l);
		/* No packet is sent twice. */
		l.timeout = 0;
		snprintf(args, sizeof(args), "window=%u", windows[i]);
		net_open(&n, args, &l);
		writes(&n, 2, 200 * MTU);
		assert_memory_equal(n.p.mb.p, n.p.ma.p, 200 * MTU);
		net_close(&n, &c);
		assert_int_equal(most_in_flight(&c, n.p.a.qpn, l.sq_psn), windows[i]);
		capture_free(&c);
	}
}

TEST(test_invalid_network_options_are_refused)
{
	static const char *const bad[] = {
		"wire=1,window=0",
		"wire=1,window=65537",
		"virtual_time",
		"wire=1,virtual_time,progress=thread",
		"wire=1,tx_ecn=101",
		"rx_ecn=1",
		"wire=1,tx_stall=1",
		"wire=1,tx_stall=101:1",
		"wire=1,rx_stall=1:0",
		"wire=1,rx_stall=1:1s",
		"rx_stall=1:1",
		"wire=1,tx_full",
		"wire=1,tx_full=0",
		"wire=1,rx_full=1:0",
		"wire=1,rx_full=:1",
		"wire=1,rx_full=4294967296",
		"tx_full=1",
		"flap=1",
		"flap=0:1",
		"flap=1:3600001",
		"flap=1:1,fault=port_down:1",
	};
	struct mlx5_ctx *ctx;
	uint32_t i;

	for (i = 0; i < RTE_DIM(bad); i++)
		assert_int_equal(soft_cmd_if.open("soft0", bad[i], &ctx), -EINVAL);
}

int
main(int argc, char **argv)
{
	tsc_hz = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
	return bb_test_run(__FILE__, NULL, NULL);
}
