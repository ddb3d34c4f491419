/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* RC queue pairs of the RoCEv2 engine on a network that loses and corrupts packets. */
#include "roce_sim.h"

#define KIND(k) (1u << BB_ROCE_MSG_##k)
#define ALL     0xffu
#define KINDS   8u

static const uint32_t mtus[] = {256, 512, 1024, 2048, 4096};
#define MTUS (sizeof(mtus) / sizeof(mtus[0]))

/* A pair that sends random messages in both directions. */
struct plan {
	struct sim_faults faults;
	uint64_t messages;
	uint32_t kinds, max_len, depth, recvs;
	uint64_t recv_delay, think;
	bool not_adaptive;
	uint32_t missing; /* as in struct sim */
};

static const struct plan usual = {
	.messages = 300, .kinds = ALL, .max_len = 8000, .depth = 32, .recvs = 64};

struct outcome {
	uint64_t digest, ns, missed;
	struct sim_stats net;
	struct bb_roce_stats qp[2];
};

static struct outcome
run_pair(uint64_t seed, const struct plan *p, const struct bb_roce_attr *attr)
{
	struct sim *s = sim_open(seed, 2, seed % 2);
	struct outcome out;
	struct bb_roce_attr a;
	struct sim_qp *q[2];
	uint64_t start = s->now;
	int i;

	sim_attr(s, &a);
	if (attr != NULL)
		a = *attr;
	if (p->not_adaptive)
		a.adaptive = 0;
	sim_pair(s, &a, 1u << 18, q);
	sim_faults(s, &p->faults);
	s->missing = p->missing;
	for (i = 0; i < 2; i++) {
		q[i]->load.messages = p->messages;
		q[i]->load.kinds = p->kinds;
		q[i]->load.max_len = p->max_len;
		q[i]->load.depth = p->depth;
		q[i]->load.think = p->think;
		q[i]->load.fences = 20000;
		q[i]->recv_delay = p->recv_delay;
		sim_recvs(q[i], p->recvs);
	}
	sim_finish(s);
	for (i = 0; i < 2; i++) {
		assert_int_equal(q[i]->ok, p->messages);
		out.qp[i] = q[i]->qp.stats;
	}
	out.digest = s->digest;
	out.net = s->stats;
	out.ns = s->now - start;
	out.missed = s->missed;
	sim_close(s);
	return out;
}

/* Adds to the sums of all seeds, which show that the tested conditions occurred. */
static void
add(struct outcome *sum, const struct outcome *o)
{
	int i;

	sum->net.packets += o->net.packets;
	sum->net.lost += o->net.lost;
	sum->net.bad += o->net.bad;
	sum->ns += o->ns;
	sum->missed += o->missed;
	for (i = 0; i < 2; i++) {
		sum->qp[0].retransmitted += o->qp[i].retransmitted;
		sum->qp[0].ack_timeout += o->qp[i].ack_timeout;
		sum->qp[0].packet_seq_err += o->qp[i].packet_seq_err;
		sum->qp[0].implied_nak_seq += o->qp[i].implied_nak_seq;
		sum->qp[0].duplicate += o->qp[i].duplicate;
		sum->qp[0].rnr_nak_retry += o->qp[i].rnr_nak_retry;
	}
}

static struct outcome
run_seeds(const char *what, uint64_t from, uint64_t n, const struct plan *p)
{
	struct outcome sum = {0}, o;
	uint64_t seed;

	for (seed = from; seed < from + n; seed++) {
		o = run_pair(seed, p, NULL);
		add(&sum, &o);
	}
	printf("%s: %ju messages, %ju packets, %ju lost, %ju bad, %ju sent again, %ju timeouts, "
	       "%ju NAKs, %ju implied, %ju duplicates, %ju RNR\n",
	       what, (uintmax_t)(2 * n * p->messages), (uintmax_t)sum.net.packets,
	       (uintmax_t)sum.net.lost, (uintmax_t)sum.net.bad, (uintmax_t)sum.qp[0].retransmitted,
	       (uintmax_t)sum.qp[0].ack_timeout, (uintmax_t)sum.qp[0].packet_seq_err,
	       (uintmax_t)sum.qp[0].implied_nak_seq, (uintmax_t)sum.qp[0].duplicate,
	       (uintmax_t)sum.qp[0].rnr_nak_retry);
	return sum;
}

/* Each kind and size with each MTU, one after the other; then with loss. */
static void
sizes(uint32_t loss)
{
	const struct sim_faults f = {.loss = loss};
	uint32_t m, kind, i;

	for (m = 0; m < MTUS; m++) {
		const uint32_t lens[] = {0,           1,         mtus[m] - 1, mtus[m],
					 mtus[m] + 1, 64u << 10, 1u << 20};
		struct sim *s = sim_open(m + 1, 2, m % 2);
		uint64_t sent = 0;
		struct bb_roce_attr a;
		struct sim_qp *q[2];

		sim_attr(s, &a);
		a.mtu = mtus[m];
		sim_pair(s, &a, 8u << 20, q);
		sim_faults(s, &f);
		for (kind = 0; kind < KINDS; kind++)
			for (i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
				struct sim_msg msg;

				sim_recvs(q[1], 1);
				sim_make(q[0], &msg, (uint8_t)kind, lens[i]);
				assert_true(sim_post(q[0], &msg));
				sim_finish(s);
				assert_int_equal(q[0]->ok, ++sent);
			}
		/* Exactly one receive for each message that needs one. */
		assert_int_equal(q[1]->received, 4 * sizeof(lens) / sizeof(lens[0]));
		if (loss == 0) {
			assert_int_equal(q[0]->qp.stats.retransmitted, 0);
			assert_int_equal(q[1]->qp.stats.duplicate, 0);
		}
		sim_close(s);
	}
}

/*
 * Pages are missing at either end, before a message and within it: messages are late, but none is
 * lost or executed twice.
 */
TEST(test_messages_wait_for_missing_pages)
{
	struct plan p = usual;
	struct outcome o;

	p.missing = 50000;
	o = run_seeds("missing pages", 500, 20, &p);
	assert_true(o.missed > 1000 && o.qp[0].rnr_nak_retry > 100);
	p.faults = (struct sim_faults){.loss = 10000, .reorder = 20000, .tx_full = 10000};
	p.recvs = 8;
	p.recv_delay = 100 * SIM_US;
	o = run_seeds("missing pages and losses", 600, 20, &p);
	assert_true(o.missed > 1000 && o.net.lost > 100);
}

TEST(test_messages_of_all_sizes_arrive)
{
	sizes(0);
}

TEST(test_messages_of_all_sizes_arrive_despite_loss)
{
	sizes(10000);
}

TEST(test_network_without_faults_resends_nothing)
{
	struct outcome sum;

	sum = run_seeds("no faults", 1, 50, &usual);
	assert_int_equal(sum.qp[0].retransmitted, 0);
	assert_int_equal(sum.qp[0].duplicate, 0);
	assert_int_equal(sum.qp[0].ack_timeout, 0);
}

TEST(test_one_percent_loss_fails_no_message)
{
	struct plan p = usual;
	struct outcome sum;

	p.faults.loss = 10000;
	p.messages = 1000;
	sum = run_seeds("1 % loss", 100, 50, &p);
	assert_true(sum.qp[0].packet_seq_err > 100 && sum.qp[0].implied_nak_seq > 100);
	assert_true(sum.qp[0].duplicate > 100);
}

TEST(test_ten_percent_loss_fails_no_message)
{
	struct plan p = usual;
	struct outcome sum;

	p.faults.loss = 100000;
	run_seeds("10 % loss", 200, 100, &p);
	p.not_adaptive = true;
	sum = run_seeds("10 % loss, not adaptive", 200, 100, &p);
	assert_true(sum.qp[0].ack_timeout > 100);
}

TEST(test_loss_in_one_direction_fails_no_message)
{
	uint64_t seed;

	for (seed = 300; seed < 340; seed++) {
		struct sim *s = sim_open(seed, 2, false);
		struct bb_roce_attr a;
		struct sim_qp *q[2];

		sim_attr(s, &a);
		sim_pair(s, &a, 1u << 18, q);
		s->hosts[seed % 2].out.loss = 50000;
		sim_recvs(q[1], 64);
		q[0]->load = (struct sim_load){
			.messages = 300, .kinds = ALL, .max_len = 5000, .depth = 16};
		sim_finish(s);
		assert_int_equal(q[0]->ok, 300);
		sim_close(s);
	}
}

/*
 * Requests are lost, and no timer runs: the NAK for each loss is sufficient, whether the peer
 * holds or drops the packets after the lost one.
 */
TEST(test_losses_are_repaired_by_naks_alone)
{
	uint64_t seed, lost = 0;

	for (seed = 340; seed < 370; seed++) {
		struct sim *s = sim_open(seed, 2, false);
		struct bb_roce_attr a;
		struct sim_qp *q[2];

		sim_attr(s, &a);
		a.adaptive = 0;
		a.ack_timeout = 0;
		sim_pair(s, &a, 1u << 18, q);
		s->hosts[0].out = (struct sim_faults){.loss = 100000, .untimed = true};
		sim_recvs(q[1], 64);
		q[0]->load = (struct sim_load){
			.messages = 300, .kinds = ALL, .max_len = 5000, .depth = 32};
		sim_finish(s);
		assert_int_equal(q[0]->ok, 300);
		lost += s->stats.lost;
		sim_close(s);
	}
	assert_true(lost > 1000);
}

TEST(test_reordered_and_damaged_packets_fail_no_message)
{
	struct plan p = usual;
	struct outcome sum;

	p.faults = (struct sim_faults){.dup = 50000};
	run_seeds("5 % doubled", 400, 40, &p);
	p.faults = (struct sim_faults){.reorder = 50000};
	run_seeds("5 % reordered", 500, 40, &p);
	p.faults = (struct sim_faults){.corrupt = 20000};
	sum = run_seeds("2 % corrupted", 600, 40, &p);
	assert_true(sum.net.bad > 100);
	p.faults = (struct sim_faults){.loss = 20000,
				       .dup = 20000,
				       .reorder = 20000,
				       .corrupt = 20000,
				       .tx_full = 100000,
				       .delay = 20 * SIM_US};
	run_seeds("all of it", 700, 80, &p);
}

/* PSNs pass 2^24 and 2^23, where signed distances change sign, with loss and duplicates. */
TEST(test_psns_wrap_with_loss_and_duplicates)
{
	static const uint32_t starts[] = {0xffffff, 0xfffff0, 0xffff00, 0x7fffff, 0x7fff80, 0};
	struct plan p = usual;
	uint64_t seed;

	p.faults = (struct sim_faults){.loss = 20000, .dup = 20000, .reorder = 10000};
	for (seed = 0; seed < 60; seed++) {
		struct sim *s = sim_open(seed, 2, false);
		struct bb_roce_attr a;

		sim_attr(s, &a);
		sim_close(s);
		a.sq_psn = starts[seed % 6];
		run_pair(800 + seed, &p, &a);
	}
}

TEST(test_windows_limits_and_mtus_fail_no_message)
{
	struct plan p = usual;
	uint64_t seed;

	p.faults = (struct sim_faults){.loss = 10000, .dup = 10000, .reorder = 10000};
	p.messages = 150;
	for (seed = 900; seed < 1050; seed++) {
		struct sim *s = sim_open(seed, 2, false);
		struct bb_roce_attr a;

		sim_attr(s, &a);
		a.mtu = mtus[sim_below(&s->rng, MTUS)];
		a.window = 1 + sim_below(&s->rng, sim_below(&s->rng, 2) ? 8 : 1000);
		a.max_rd_atomic = 1 + sim_below(&s->rng, SIM_REPLAYS);
		a.max_dest_rd_atomic =
			a.max_rd_atomic + sim_below(&s->rng, SIM_REPLAYS - a.max_rd_atomic + 1);
		a.ack_timeout = 8 + sim_below(&s->rng, 8);
		a.min_rnr_timer = sim_below(&s->rng, 32);
		a.adaptive = seed % 4 == 0 ? 0 : 1 + sim_below(&s->rng, 100000);
		if (seed % 8 == 1) /* no limit */
			a.ack_timeout = 0;
		p.depth = 1 + sim_below(&s->rng, SIM_SLOTS);
		p.recvs = 1 + sim_below(&s->rng, 64);
		sim_close(s);
		run_pair(seed, &p, &a);
	}
}

TEST(test_late_receives_lose_no_message)
{
	struct plan p = usual;
	struct outcome sum;

	p.recvs = 1;
	p.recv_delay = 200 * SIM_US;
	p.messages = 100;
	sum = run_seeds("late receives", 1100, 20, &p);
	assert_true(sum.qp[0].rnr_nak_retry > 500);
	p.faults = (struct sim_faults){.loss = 20000, .dup = 20000, .reorder = 20000};
	run_seeds("late receives and loss", 1200, 20, &p);
}

TEST(test_elapsed_hours_have_no_effect)
{
	struct plan p = usual;
	struct outcome sum;

	p.faults.loss = 20000;
	p.messages = 3000;
	p.think = 7 * SIM_SEC;
	p.max_len = 3000;
	sum = run_seeds("hours", 1300, 3, &p);
	assert_true(sum.ns > 3 * 5 * SIM_HOUR);
}

/* Equal seeds give equal runs, to the byte and the nanosecond; another seed gives another run. */
TEST(test_equal_seeds_give_equal_runs)
{
	struct plan p = usual;
	struct outcome a, b, c;

	p.faults = (struct sim_faults){.loss = 20000, .dup = 20000, .corrupt = 20000};
	a = run_pair(1400, &p, NULL);
	b = run_pair(1400, &p, NULL);
	c = run_pair(1402, &p, NULL);
	assert_true(a.digest == b.digest && a.ns == b.ns && a.net.packets == b.net.packets);
	assert_true(a.digest != c.digest);
}

TEST_MAIN(0)
