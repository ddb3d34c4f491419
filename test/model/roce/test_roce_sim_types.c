/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* UC and UD queue pairs in the simulated network, many hosts at once, and long runs. */
#include "roce_sim.h"

#define KIND(k) (1u << BB_ROCE_MSG_##k)
#define SENDS   (KIND(SEND) | KIND(SEND_IMM))
#define WRITES  (KIND(WRITE) | KIND(WRITE_IMM))

/* Returns the number of the queue pair's messages that the peer received whole. */
static uint64_t
arrived(const struct sim_qp *q)
{
	uint64_t n = 0, i;

	for (i = 0; i < q->posted; i++)
		n += q->msgs[i].executed ||
		     (q->msgs[i].kind == BB_ROCE_MSG_WRITE && q->msgs[i].len != 0 &&
		      q->msgs[i].placed == q->msgs[i].len);
	return n;
}

static void
uc_pair(uint64_t seed, const struct sim_faults *f, uint64_t recvs, uint64_t sum[2])
{
	struct sim *s = sim_open(seed, 2, seed % 2);
	struct bb_roce_attr a;
	struct sim_qp *q[2];
	uint64_t i, no_data = 0;

	sim_attr(s, &a);
	a.type = BB_ROCE_UC;
	sim_pair(s, &a, 4u << 20, q);
	sim_faults(s, f);
	sim_recvs(q[1], recvs);
	q[0]->load = (struct sim_load){
		.messages = 400, .kinds = SENDS | WRITES, .max_len = 8000, .depth = 16};
	sim_finish(s);
	assert_int_equal(q[0]->ok, 400);
	assert_int_equal(q[1]->qp.state, BB_ROCE_RTS);
	for (i = 0; i < 400; i++)
		no_data += q[0]->msgs[i].kind == BB_ROCE_MSG_WRITE && q[0]->msgs[i].len == 0;
	sum[0] += 400 - no_data;
	sum[1] += arrived(q[0]);
	sim_close(s);
}

TEST(test_uc_drops_messages_with_lost_packets)
{
	static const struct sim_faults faults[] = {
		{0},
		{.loss = 10000},
		{.loss = 100000},
		{.dup = 50000},
		{.reorder = 50000},
		{.corrupt = 50000},
		{.loss = 20000,
		 .dup = 20000,
		 .reorder = 20000,
		 .corrupt = 20000,
		 .tx_full = 100000},
	};
	uint32_t i, seed;

	for (i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		uint64_t sum[2] = {0, 0};

		for (seed = 0; seed < 30; seed++)
			uc_pair(100 * i + seed, &faults[i], 500, sum);
		printf("UC, faults %u: %ju of %ju messages arrived\n", i, (uintmax_t)sum[1],
		       (uintmax_t)sum[0]);
		if (i == 0)
			assert_true(sum[1] == sum[0]);
		else
			assert_true(sum[1] > sum[0] / 2 &&
				    (faults[i].dup == 50000 || sum[1] < sum[0]));
	}
}

/* No receive is left: messages are dropped, WRITEs continue, and the queue pair stays in RTS. */
TEST(test_uc_without_a_receive_stays_in_rts)
{
	static const struct sim_faults none = {0};
	uint64_t sum[2] = {0, 0};
	uint32_t seed;

	for (seed = 0; seed < 10; seed++)
		uc_pair(1000 + seed, &none, 0, sum);
	assert_true(sum[1] > 0 && sum[1] < sum[0] / 2);
}

static void
open_ud(struct sim *s, uint32_t host, uint64_t messages, uint64_t recvs)
{
	struct bb_roce_attr a;
	struct sim_qp *q;

	sim_attr(s, &a);
	a.type = BB_ROCE_UD;
	a.qkey = 0x11111111;
	q = sim_qp(s, host, &a, 0);
	sim_connect(q, q);
	sim_recvs(q, recvs);
	q->load = (struct sim_load){
		.messages = messages, .kinds = SENDS, .max_len = a.mtu, .depth = 16};
}

static void
ud_hosts(uint64_t seed, const struct sim_faults *f, uint64_t sum[2])
{
	struct sim *s = sim_open(seed, 20, seed % 2);
	uint32_t i;

	for (i = 0; i < 20; i++)
		open_ud(s, i, 200, 1000);
	sim_faults(s, f);
	sim_finish(s);
	for (i = 0; i < 20; i++) {
		assert_int_equal(s->qps[i]->ok, 200);
		assert_int_equal(s->qps[i]->qp.state, BB_ROCE_RTS);
		sum[0] += s->qps[i]->posted;
		sum[1] += s->qps[i]->received;
	}
	sim_close(s);
}

TEST(test_ud_loses_only_dropped_datagrams)
{
	static const struct sim_faults none = {0}, lossy = {.loss = 50000, .corrupt = 50000},
				       odd = {.dup = 50000, .reorder = 200000, .tx_full = 100000};
	uint64_t sum[2] = {0, 0};
	uint32_t seed;

	ud_hosts(2000, &none, sum);
	assert_true(sum[0] == 4000 && sum[1] == sum[0]);
	for (seed = 2001; seed < 2010; seed++)
		ud_hosts(seed, &lossy, sum);
	assert_true(sum[1] < sum[0] && sum[1] > sum[0] / 2);
	for (seed = 2010; seed < 2020; seed++)
		ud_hosts(seed, &odd, sum);
}

TEST(test_300_hosts_exchange_messages)
{
	const struct sim_faults f = {
		.loss = 10000, .dup = 10000, .reorder = 10000, .corrupt = 10000};
	struct sim *s = sim_open(3000, 300, true);
	uint64_t rc = 0;
	uint32_t i, j;

	/* Datagrams go to the first queue pairs. */
	for (i = 0; i < 300; i++)
		for (j = 0; j < 2; j++) {
			struct bb_roce_attr a;
			struct sim_qp *q[2];
			int k;

			sim_attr(s, &a);
			q[0] = sim_qp(s, i, &a, 1u << 14);
			sim_attr(s, &a);
			q[1] = sim_qp(s, (i + 1 + 6 * j) % 300, &a, 1u << 14);
			sim_connect(q[0], q[1]);
			for (k = 0; k < 2; k++) {
				sim_recvs(q[k], 8);
				q[k]->load = (struct sim_load){
					.messages = 40, .kinds = 0xff, .max_len = 2000, .depth = 8};
			}
		}
	sim_faults(s, &f);
	sim_finish(s);
	for (i = 0; i < s->qp_n; i++)
		rc += s->qps[i]->ok;
	assert_int_equal(rc, 1200 * 40);
	printf("300 hosts, %ju queue pairs: %ju packets, %ju lost, %ju bad\n", (uintmax_t)s->qp_n,
	       (uintmax_t)s->stats.packets, (uintmax_t)s->stats.lost, (uintmax_t)s->stats.bad);
	sim_close(s);
}

/*
 * Half a million messages (a tenth in the short form) with default retries: no error, whatever is
 * lost.
 */
static void
million(uint32_t loss, uint64_t seed)
{
	const struct sim_faults f = {.loss = loss};
	struct sim *s = sim_open(seed, 2, false);
	const uint64_t messages = 500000 / sim_share();
	uint64_t start = s->now;
	struct bb_roce_attr a;
	struct sim_qp *q[2];
	int i;

	sim_attr(s, &a);
	sim_pair(s, &a, 1u << 18, q);
	sim_faults(s, &f);
	for (i = 0; i < 2; i++) {
		sim_recvs(q[i], 64);
		q[i]->load = (struct sim_load){
			.messages = messages, .kinds = 0xff, .max_len = 1500, .depth = 32};
	}
	sim_finish(s);
	assert_int_equal(q[0]->ok + q[1]->ok, 2 * messages);
	printf("%u ppm loss: %ju ms, %ju packets, %ju lost, %ju sent again, %ju timeouts\n", loss,
	       (uintmax_t)((s->done_at - start) / SIM_MS), (uintmax_t)s->stats.packets,
	       (uintmax_t)s->stats.lost,
	       (uintmax_t)(q[0]->qp.stats.retransmitted + q[1]->qp.stats.retransmitted),
	       (uintmax_t)(q[0]->qp.stats.ack_timeout + q[1]->qp.stats.ack_timeout));
	sim_close(s);
}

TEST(test_half_a_million_messages_survive_1_percent_loss)
{
	million(10000, 4000);
}

TEST(test_half_a_million_messages_survive_10_percent_loss)
{
	million(100000, 4001);
}

TEST_MAIN(0)
