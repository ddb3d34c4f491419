/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Adaptive retransmission of the RoCEv2 engine: its gain, and limits of its cost. */
#include "roce_sim.h"

#define WINDOW      64u
#define ACK_TIMEOUT 14u

/* Sums over both queue pairs. */
struct result {
	uint64_t ns, packets, again, timeouts, early;
};

static struct sim *
open_pair(uint64_t seed, uint32_t adaptive, uint32_t ack_timeout, struct sim_qp *q[2])
{
	struct sim *s = sim_open(seed, 2, false);
	struct bb_roce_attr a;

	sim_attr(s, &a);
	a.window = WINDOW;
	a.adaptive = adaptive;
	a.ack_timeout = ack_timeout;
	sim_pair(s, &a, 1u << 18, q);
	return s;
}

static void
load(struct sim_qp *q[2], uint64_t messages, uint64_t recvs)
{
	int i;

	for (i = 0; i < 2; i++) {
		sim_recvs(q[i], recvs);
		q[i]->load = (struct sim_load){
			.messages = messages, .kinds = 0xff, .max_len = 1500, .depth = 32};
	}
}

/* Runs to the end and checks that all messages succeeded. Returns the sums since @start. */
static struct result
finish(struct sim *s, struct sim_qp *q[2], uint64_t start)
{
	struct result r = {0};
	int i;

	sim_finish(s);
	for (i = 0; i < 2; i++) {
		const struct bb_roce_stats *st = &q[i]->qp.stats;

		assert_int_equal(q[i]->ok, q[i]->posted);
		r.again += st->retransmitted;
		r.timeouts += st->ack_timeout;
		r.early += st->roce_adp_retrans;
	}
	r.ns = s->done_at - start;
	r.packets = s->stats.packets;
	sim_close(s);
	return r;
}

static struct result
run(uint64_t seed, uint32_t adaptive, const struct sim_faults *f, uint64_t messages)
{
	struct sim_qp *q[2];
	struct sim *s = open_pair(seed, adaptive, ACK_TIMEOUT, q);

	sim_faults(s, f);
	load(q, messages, 64);
	return finish(s, q, s->now);
}

static void
print(const char *what, const struct result *r)
{
	printf("%s: %ju us, %ju packets, %ju sent again, %ju timeouts, %ju early\n", what,
	       (uintmax_t)(r->ns / SIM_US), (uintmax_t)r->packets, (uintmax_t)r->again,
	       (uintmax_t)r->timeouts, (uintmax_t)r->early);
}

TEST(test_one_percent_loss_keeps_half_the_goodput)
{
	const struct sim_faults none = {0}, loss = {.loss = 10000};
	uint64_t seed;

	for (seed = 1; seed <= (sim_share() > 1 ? 1 : 5); seed++) {
		struct result best = run(seed, BB_ROCE_ADAPTIVE, &none, 50000);
		struct result on = run(seed, BB_ROCE_ADAPTIVE, &loss, 50000);
		struct result off = run(seed, 0, &loss, 50000);

		print("no loss", &best);
		print("1 % loss", &on);
		print("1 % loss, not adaptive", &off);
		assert_int_equal(best.again, 0);
		assert_true(on.ns <= 2 * best.ns);
		assert_int_equal(on.timeouts, 0);
		assert_true(off.ns > 10 * best.ns && off.early == 0);
	}
}

/* Without loss the adaptive timer sends little more; a NAK for reordered packets does that. */
TEST(test_reordered_packets_resend_little)
{
	const struct sim_faults f = {.reorder = 50000}, g = {.reorder = 500000, .dup = 50000};
	uint64_t seed;

	for (seed = 10; seed < 15; seed++) {
		struct result on = run(seed, BB_ROCE_ADAPTIVE, &f, 10000);
		struct result off = run(seed, 0, &f, 10000);

		print("reordered", &on);
		print("reordered, not adaptive", &off);
		assert_true(on.again <= off.again + off.again / 4);
		assert_true(on.ns <= off.ns && on.early <= on.packets / 200);
		on = run(seed, BB_ROCE_ADAPTIVE, &g, 2000);
		off = run(seed, 0, &g, 2000);
		print("much reordered", &on);
		print("much reordered, not adaptive", &off);
		assert_true(on.again <= off.again + off.again / 4);
		assert_true(on.ns <= off.ns + off.ns / 4 && on.early <= on.packets / 50);
	}
}

/* A long path, and a path whose delay grows: once the delay is known no packet is sent twice. */
TEST(test_known_delay_resends_nothing)
{
	static const uint64_t delays[] = {10 * SIM_US, 300 * SIM_US, 5 * SIM_MS, 20 * SIM_MS};
	uint32_t i, later;

	for (i = 0; i < 4; i++)
		for (later = 0; later < 2; later++) {
			struct sim_faults f = {.delay = later ? 0 : delays[i]};
			struct sim_qp *q[2];
			struct sim *s = open_pair(20 + i, BB_ROCE_ADAPTIVE, ACK_TIMEOUT, q);
			uint64_t start = s->now;
			struct result r;

			sim_faults(s, &f);
			load(q, 3000, 64);
			if (later) {
				sim_run(s, s->now + 200 * SIM_US);
				assert_true(q[0]->done > 100 && q[0]->done < 1500);
				f.delay = delays[i];
				sim_faults(s, &f);
			}
			r = finish(s, q, start);
			print(later ? "delay later" : "delay", &r);
			/* Per side: 4 us doubles 13 times before it exceeds 20 ms. */
			assert_true(r.early <= 2 * 13 && r.again <= r.early * WINDOW);
			assert_true(r.again <= r.packets / 10);
			assert_true(r.early == 0 || later || delays[i] > SIM_MS);
		}
}

/*
 * A slow peer that sends RNR NAKs or partial responses: the requester waits and need not
 * retransmit.
 */
TEST(test_slow_responder_causes_no_resend)
{
	struct sim_qp *q[2];
	struct sim_msg m;
	struct result r;
	struct sim *s;
	uint32_t i;

	/*
	 * Receives are posted late, one by one: retransmissions are those that the RNR waits
	 * require.
	 */
	for (i = 0; i < 2; i++) {
		s = open_pair(30, i == 0 ? BB_ROCE_ADAPTIVE : 0, ACK_TIMEOUT, q);
		q[0]->recv_delay = q[1]->recv_delay = 200 * SIM_US;
		load(q, 500, 1);
		r = finish(s, q, s->now);
		print(i == 0 ? "RNR" : "RNR, not adaptive", &r);
		assert_int_equal(r.early, 0);
	}
	/* READs of a window and more, many at a time, with a slow return path. */
	s = open_pair(31, BB_ROCE_ADAPTIVE, ACK_TIMEOUT, q);
	s->hosts[1].out.delay = 900 * SIM_US;
	for (i = 0; i < 16; i++) {
		sim_make(q[0], &m, BB_ROCE_MSG_READ, 100000);
		m.flags = 0;
		assert_true(sim_post(q[0], &m));
	}
	r = finish(s, q, s->now);
	print("READs", &r);
	assert_int_equal(r.early, 0);
	assert_int_equal(r.again, 0);
}

/* A dead peer: the error comes as early as without adaptive timers, and few packets are wasted. */
TEST(test_dead_peer_fails_as_early_as_without_adaptive_timers)
{
	uint64_t ns[2], packets[2];
	uint32_t i, used;

	for (used = 0; used < 2; used++) { /* with the round trip time known, or not */
		for (i = 0; i < 2; i++) {
			const struct sim_faults dead = {.loss = 1000000};
			struct sim_qp *q[2];
			struct sim *s =
				open_pair(40, i == 0 ? 0 : BB_ROCE_ADAPTIVE, ACK_TIMEOUT, q);
			struct sim_msg m;
			uint32_t j;

			if (used) {
				load(q, 100, 64);
				sim_finish(s);
				sim_run(s, s->now + SIM_MS);
			}
			sim_faults(s, &dead);
			q[0]->may_fail = true;
			packets[i] = s->stats.packets;
			ns[i] = s->now;
			for (j = 0; j < 5; j++) {
				sim_make(q[0], &m, BB_ROCE_MSG_WRITE, 3000);
				assert_true(sim_post(q[0], &m));
			}
			sim_finish(s);
			assert_true(q[0]->failed);
			assert_int_equal(q[0]->error, BB_SYN_RETRY_EXC);
			assert_int_equal(q[0]->qp.stats.ack_timeout, 8);
			ns[i] = s->done_at - ns[i];
			packets[i] = s->stats.packets - packets[i];
			sim_close(s);
		}
		printf("dead: %ju ns and %ju packets, not adaptive %ju and %ju\n", (uintmax_t)ns[1],
		       (uintmax_t)packets[1], (uintmax_t)ns[0], (uintmax_t)packets[0]);
		assert_int_equal(ns[0], ns[1]);
		assert_int_equal(packets[0], 8 * 15);
		/* 4 us doubles 14 times before it exceeds 67 ms. */
		assert_true(packets[1] > packets[0] && packets[1] <= (8 + 15) * 15);
	}
}

/* Without an ack timeout the QP survives losses and a link that is dead for a minute. */
TEST(test_qp_without_a_timeout_survives_a_dead_minute)
{
	const struct sim_faults dead = {.loss = 1000000}, loss = {.loss = 20000};
	uint64_t seed;

	for (seed = 50; seed < 60; seed++) {
		struct sim_qp *q[2];
		struct sim *s = open_pair(seed, BB_ROCE_ADAPTIVE, 0, q);
		uint64_t start = s->now;
		struct result r;

		sim_faults(s, &loss);
		load(q, 2000, 64);
		sim_run(s, s->now + 100 * SIM_US);
		assert_true(q[0]->done != 0 && q[0]->done < 2000);
		sim_faults(s, &dead);
		sim_run(s, s->now + 60 * SIM_SEC);
		sim_faults(s, &loss);
		r = finish(s, q, start);
		print("no ack timeout", &r);
		assert_true(r.ns > 60 * SIM_SEC && r.ns < 75 * SIM_SEC);
		assert_int_equal(r.timeouts, 0);
	}
}

/*
 * Two processes on a machine with too few CPUs, and a tenth of the packets lost. Each process has
 * the CPU for a millisecond, then waits for it for three ack timeouts at most. Such waits are not
 * losses and do not use up the retries. The second of these seeds needs more than seven retries
 * if the ack timeout is not extended.
 */
TEST(test_starved_processes_lose_no_message)
{
	const struct sim_faults loss = {.loss = 100000};
	uint64_t seed, stalls = 0, timeouts = 0;
	int i;

	for (seed = 1; seed <= 4; seed++) {
		struct sim *s = sim_open(seed, 2, false);
		struct bb_roce_attr a;
		struct sim_qp *q[2];
		struct result r;
		uint64_t start;

		sim_attr(s, &a);
		a.window = 256;
		a.adaptive = 100 * SIM_US;
		a.ack_timeout = ACK_TIMEOUT;
		a.rnr_retry = 7;
		sim_pair(s, &a, 1u << 18, q);
		sim_faults(s, &loss);
		for (i = 0; i < 2; i++) {
			sim_recvs(q[i], 512);
			q[i]->load = (struct sim_load){.messages = i == 0 ? 3000 : 0,
						       .kinds = 1u << BB_ROCE_MSG_SEND |
								1u << BB_ROCE_MSG_WRITE,
						       .max_len = 8,
						       .depth = 64};
			s->hosts[i].stall_max = 200 * SIM_MS;
			s->hosts[i].stall_every = SIM_MS;
		}
		start = s->now;
		sim_run(s, UINT64_MAX);
		stalls += s->stats.stalls;
		r = finish(s, q, start);
		timeouts += r.timeouts;
		print("starved", &r);
	}
	assert_true(stalls > 1000);
	/* 900 and more without the extension. */
	assert_true(timeouts != 0 && timeouts < 400);
}

/*
 * SENDs and WRITEs in one direction, whose lost packets are all requests. *lost: their number.
 * The peer holds up to @aheads packets at a time, and @keeps in total, 0 for any number.
 */
static struct result
run_one_way(uint64_t seed, uint32_t aheads, uint64_t keeps, bool selective,
	    const struct sim_faults *f, uint64_t *lost)
{
	struct sim *s = sim_open(seed, 2, false);
	struct bb_roce_attr a;
	struct sim_qp *q[2];
	uint64_t start = s->now;

	s->aheads = aheads;
	s->keep_all = true;
	s->keeps = keeps;
	sim_attr(s, &a);
	a.window = WINDOW;
	a.ack_timeout = ACK_TIMEOUT;
	a.selective = selective;
	sim_pair(s, &a, 1u << 18, q);
	s->hosts[0].out = *f;
	sim_recvs(q[1], 256);
	q[0]->load = (struct sim_load){.messages = 5000,
				       .kinds = 1u << BB_ROCE_MSG_SEND | 1u << BB_ROCE_MSG_WRITE |
						1u << BB_ROCE_MSG_SEND_IMM,
				       .max_len = 3000,
				       .depth = 32};
	sim_finish(s);
	*lost = s->stats.lost;
	return finish(s, q, start);
}

static void
add(struct result *sum, const struct result *r)
{
	sum->ns += r->ns;
	sum->packets += r->packets;
	sum->again += r->again;
	sum->early += r->early;
}

/*
 * With a peer that holds packets the requester resends the lost packets and little more, as long
 * as losses are few. Packets cost nothing here, and a window that is sent twice fills more gaps
 * at once, for which the rows allow. A peer that holds none costs as much as before.
 */
TEST(test_peer_that_holds_packets_gets_only_lost_ones)
{
	static const struct sim_faults faults[] = {{.loss = 10000},
						   {.loss = 100000},
						   {.reorder = 50000},
						   {.reorder = 500000, .dup = 50000}};
	static const char *const names[] = {"1 % lost", "10 % lost", "reordered", "much reordered"};
	uint32_t i;

	for (i = 0; i < 4; i++) {
		/*
		 * First index: the peer drops (0) or holds (1) packets; second: selective off or
		 * on.
		 */
		struct result sum[2][2] = {0}, r;
		uint64_t seed, lost, all = 0, worst = 0;
		uint32_t keeps, on;

		for (seed = 60; seed < 60 + (sim_share() > 1 ? 2 : 8); seed++)
			for (keeps = 0; keeps < 2; keeps++)
				for (on = 0; on < 2; on++) {
					r = run_one_way(seed, keeps ? SIM_AHEADS : 0, 0, on,
							&faults[i], &lost);
					add(&sum[keeps][on], &r);
					if (!keeps || !on)
						continue;
					all += lost;
					worst = r.again > worst ? r.again : worst;
					/*
					 * At most one window each until both sides have detected
					 * it.
					 */
					assert_true(i != 0 || r.again <= lost + 2 * WINDOW);
				}
		printf("%s, %ju of them\n", names[i], (uintmax_t)all);
		print("kept, selective", &sum[1][1]);
		print("kept, not selective", &sum[1][0]);
		print("dropped, selective", &sum[0][1]);
		print("dropped, not selective", &sum[0][0]);
		assert_true(sum[1][1].again <=
			    sum[1][0].again + sum[1][0].again / (sim_share() > 1 ? 5 : 10));
		assert_true(i % 2 == 1 || sum[1][1].again * 4 <= sum[1][0].again);
		assert_true(sum[0][1].again <=
			    sum[0][0].again + sum[0][0].again / (sim_share() > 1 ? 10 : 20));
		if (sim_share() > 1)
			continue;
		/* No seed fails to detect that the peer holds packets. */
		assert_true(worst * 8 <= 2 * sum[1][1].again);
		assert_true(i != 0 || sum[1][1].again <= all + all / 2 + 8 * WINDOW);
		assert_true(sum[1][1].ns <= sum[1][0].ns + sum[1][0].ns * (i < 2 ? 10 : 40) / 100);
		assert_true(sum[0][1].ns <= sum[0][0].ns + sum[0][0].ns / 20);
	}
}

/*
 * A peer that holds packets and then has no room: not slower, or hardly, than one that never held
 * any.
 */
TEST(test_peer_without_room_is_hardly_slower)
{
	static const struct sim_faults faults[] = {{.loss = 10000}, {.loss = 100000}};
	uint32_t i;

	for (i = 0; i < 2; i++) {
		struct result sum[2] = {0}, r;
		uint64_t seed, lost;
		uint32_t on;

		for (seed = 60; seed < 60 + (sim_share() > 1 ? 2 : 8); seed++)
			for (on = 0; on < 2; on++) {
				r = run_one_way(seed, SIM_AHEADS, 100, on, &faults[i], &lost);
				add(&sum[on], &r);
			}
		print("out of room, selective", &sum[1]);
		print("out of room, not selective", &sum[0]);
		assert_true(sum[1].ns <= sum[0].ns + sum[0].ns / 5);
		assert_true(sum[1].again <= sum[0].again + sum[0].again / 4);
	}
}

TEST_MAIN(0)
