/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Checks before a direct access to a peer's memory: the connection of the peer's QP and its
 * state. Also how an owner waits for a peer that is accessing its memory, and what it counts.
 */
#include <sys/socket.h>

#include "shm_direct_env.h"

/* ---- Queue pairs */

/* The target's QP is not connected to this side's QP. */
static void
other_qp(bool by_itself)
{
	/* An address of this side, but not the one of this connection. */
	static const uint8_t gid[16] = {[10] = 0xff, [11] = 0xff, 192, 0, 2, 9};
	/* 33 ms, one retry. */
	static const struct differ none, other_gid = {.gid = gid, .timeout = 13},
					 other_psn = {.psn = 5, .timeout = 13},
					 other_mtu = {.mtu = 256};

	/* Both sides know each other's memory from the start. */
	ready(by_itself, &none);
	part();
	join(&other_psn);
	bad(ACTOR_WRITE, mr_b.raddr, 8, mr_b.rkey, BB_WC_RETRY_EXC_ERR);
	part();
	join(&other_gid);
	bad(ACTOR_WRITE, mr_b.raddr, 8, mr_b.rkey, BB_WC_RETRY_EXC_ERR);
	part();
	join(&other_mtu);
	bad(ACTOR_WRITE, mr_b.raddr, 1000, mr_b.rkey, BB_WC_REM_INV_REQ_ERR);
	part();
}

T(test_qp_connected_elsewhere_is_not_reached)
{
	twice(other_qp);
}

/* A packet with this MAC would not reach the peer. */
T(test_peer_is_not_reached_with_another_mac)
{
	static const struct differ none, quick = {.timeout = 13};
	struct soft_shm *shm;
	uint32_t i;

	begin("");
	ready(true, &none);
	part();
	shm = own_gid();
	for (i = 0; i < shm->n_tx; i++)
		shm->tx[i]->mac[5] ^= 1;
	join(&quick);
	bad(ACTOR_WRITE, mr_b.raddr, 8, mr_b.rkey, BB_WC_RETRY_EXC_ERR);
	for (i = 0; i < shm->n_tx; i++)
		shm->tx[i]->mac[5] ^= 1;
	stop();
}

/*
 * The target allows one outstanding READ or atomic, the requester more: these requests go by
 * packets.
 */
T(test_reads_over_the_targets_limit_go_by_packets)
{
	static const struct differ one = {.reads = 1};
	uint64_t before;

	begin("");
	join(&one);
	warm(ACTOR_WRITE, mr_b.raddr, mr_b.rkey);
	before = direct();
	post(&a, ACTOR_READ_VERB, 0, 8, mr_b.raddr, mr_b.rkey);
	completes(&a, BB_WC_SUCCESS);
	m.z = 1;
	post(&a, ACTOR_FETCH_ADD, 0, 8, mr_b.raddr, mr_b.rkey);
	completes(&a, BB_WC_SUCCESS);
	assert_int_equal(direct(), before);
	post(&a, ACTOR_WRITE, 0, 8, mr_b.raddr, mr_b.rkey);
	completes(&a, BB_WC_SUCCESS);
	assert_int_equal(direct(), before + 1);
	stop();
}

static void
all_by_packets(const char *peer_gid)
{
	static const struct differ none;
	uint32_t i;

	begin_two("", peer_gid);
	join(&none);
	for (i = 0; i < 200; i++) {
		post(&a, ACTOR_WRITE, 0, 8, mr_b.raddr, mr_b.rkey);
		completes(&a, BB_WC_SUCCESS);
	}
	assert_int_equal(direct(), 0);
	stop();
}

/* The target's port flaps: a direct access would write while the port is down. */
T(test_flapping_target_is_reached_by_packets)
{
	all_by_packets(",flap=3600000:1");
}

/* The target captures its packets: a direct access would be missing in the file. */
T(test_captured_target_is_reached_by_packets)
{
	char file[] = "/tmp/bb_shm_XXXXXX", more[64];
	int fd = mkstemp(file);

	assert_true(fd >= 0);
	close(fd);
	snprintf(more, sizeof(more), ",capture=%s", file);
	all_by_packets(more);
	unlink(file);
}

T(test_request_after_a_packet_waits_for_its_ack)
{
	static const struct differ none;
	uint64_t before;
	uint32_t i;

	begin("");
	ready(true, &none);
	m.b = 5;
	m.x = OFF;
	m.y = 64;
	do_ok(&b, ACTOR_RECV);
	before = direct();
	actor_stop(&b);
	post(&a, ACTOR_SEND, 0, 8, 0, 0);
	post(&a, ACTOR_WRITE, 0, 8, mr_b.raddr + 64, mr_b.rkey);
	for (i = 0; i < 1000; i++)
		actor_run(&a);
	assert_int_equal(direct(), before);
	kill(b.pid, SIGCONT);
	completes(&a, BB_WC_SUCCESS);
	completes(&a, BB_WC_SUCCESS);
	completes(&b, BB_WC_SUCCESS);
	stop();
}

/* The target's QP was destroyed; its memory and keys still exist. */
T(test_destroyed_qp_is_not_reached_directly)
{
	static const struct differ soon = {.timeout = 16};

	begin("");
	ready(true, &soon);
	do_ok(&b, ACTOR_QP_DESTROY);
	bad(ACTOR_WRITE, mr_b.raddr, 8, mr_b.rkey, BB_WC_RETRY_EXC_ERR);
	stop();
}

/* The target's QP is in ERR because of an error of its own request. */
static void
qp_error(bool by_itself)
{
	static const struct differ soon = {.timeout = 16};

	ready(by_itself, &soon);
	/* Outside its MR. */
	post(&b, ACTOR_WRITE, 0, 8, mr_a.raddr, mr_a.rkey);
	completes(&b, BB_WC_LOC_PROT_ERR);
	assert_int_equal(state_of(&b), BB_QP_ERR);
	bad(ACTOR_WRITE, mr_b.raddr, 8, mr_b.rkey, BB_WC_RETRY_EXC_ERR);
	part();
}

T(test_failed_qp_is_not_reached_directly)
{
	twice(qp_error);
}

/* ---- Requests after a SEND */

/*
 * The peer is stopped, so the ACK of the SEND cannot come before the WRITEs were posted. A single
 * WRITE becomes a packet. Several WRITEs wait for the ACK, and are executed directly.
 */
static void
writes_after_send(uint32_t n)
{
	const uint64_t before = direct();
	struct bb_sge sge = {(uintptr_t)a.buf, 1000, a.mr->lkey};
	uint32_t i;

	m.x = OFF + 7000;
	m.y = 64;
	do_ok(&b, ACTOR_RECV);
	fill(&a, 0, 1000, n);
	actor_stop(&b);
	post(&a, ACTOR_SEND, 0, 64, 0, 0);
	for (i = 0; i < n; i++)
		OK(bb_post_write(a.qp, i, &sge, 1, mr_b.raddr + i * 1024, mr_b.rkey,
				 BB_SEND_SIGNALED));
	bb_qp_ring(a.qp);
	for (i = 0; i < 100; i++)
		actor_run(&a);
	assert_int_equal(kill(b.pid, SIGCONT), 0);
	completes(&a, BB_WC_SUCCESS);
	assert_int_equal(m.y, 77);
	for (i = 0; i < n; i++) {
		completes(&a, BB_WC_SUCCESS);
		assert_int_equal(m.y, i);
	}
	assert_int_equal(direct(), before + (n == 1 ? 0 : n));
	completes(&b, BB_WC_SUCCESS);
	for (i = 0; i < n; i++)
		holds(&b, OFF + i * 1024, 1000, n);
}

T(test_several_writes_after_a_send_wait_for_its_ack_and_one_does_not)
{
	static const struct differ none;
	uint32_t n;

	begin("");
	ready(true, &none);
	for (n = 1; n <= 5; n++)
		writes_after_send(n);
	stop();
}

/* ---- Shared memory */

/*
 * MRs before and after the first one, in the same file: each is accessed directly as soon as it
 * is published.
 */
T(test_later_regions_are_reached_directly)
{
	static const struct differ none;
	static const uint64_t offs[] = {OFF, 0, 6 << 20, 1 << 16, 7 << 20};
	uint64_t raddr[5];
	uint32_t rkey[5], i, k;

	begin("");
	ready(true, &none);
	raddr[0] = mr_b.raddr;
	rkey[0] = mr_b.rkey;
	for (i = 1; i < 5; i++) {
		more_mr(offs[i], 8192, ALL, false, &raddr[i], &rkey[i]);
		warm(ACTOR_WRITE, raddr[i], rkey[i]);
		for (k = 0; k <= i; k++) {
			uint64_t before = direct();

			fill(&a, 0, 1000, k + i);
			post(&a, ACTOR_WRITE, 0, 1000, raddr[k] + 3, rkey[k]);
			completes(&a, BB_WC_SUCCESS);
			assert_int_equal(direct(), before + 1);
			holds(&b, offs[k] + 3, 1000, k + i);
		}
	}
	stop();
}

/* Returns the slot of our segments that is in use. */
static const struct soft_shm_seg *
our_segment(void)
{
	uint32_t i = 0;

	while (own_gid()->seg[i].refs == 0)
		assert_true(++i < SOFT_SHM_SEGS);
	return &own_gid()->seg[i];
}

/*
 * A shared file is unused for a moment. A peer that has it mapped must look it up again, as it
 * might be another file, and then accesses it directly again.
 */
T(test_reused_file_is_looked_up_again)
{
	static const struct differ none;
	struct actor *sides[] = {&a, &b};
	uint32_t gen, i;

	begin("");
	ready(true, &none);
	gen = our_segment()->gen;
	for (i = 0; i < 2; i++) {
		do_ok(sides[i], ACTOR_DEREG);
		reg(sides[i], i == 0 ? &mr_a.raddr : &mr_b.raddr, i == 0 ? &mr_a.rkey : &mr_b.rkey);
	}
	assert_int_equal(our_segment()->gen, gen + 1);
	assert_int_equal(our_segment()->refs, 1);
	warm(ACTOR_WRITE, mr_b.raddr, mr_b.rkey);
	stop();
}

/* Returns true if the other process has answered. */
static bool
answered(void)
{
	char c;

	return recv(b.sock, &c, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

static void
wait_a_little(uint32_t ms)
{
	uint32_t i;

	for (i = 0; i < ms && !answered(); i++) {
		actor_run(&a);
		usleep(1000);
	}
}

/*
 * An owner that deregisters while a peer is accessing its memory waits until the peer is done.
 * Returns false if this process was stopped so long that the owner cut it off.
 */
static bool
owner_waits(enum actor_op op)
{
	static const struct differ none;
	uint64_t *word, began;
	bool early, in_time;

	begin("");
	ready(true, &none);
	assert_true(own_gid()->dir->engines >= 1);
	word = &own_gid()->dir->engine[0].v;
	assert_int_equal(*word & 1, 0);
	began = rte_rdtsc();
	__atomic_store_n(word, *word + 1, __ATOMIC_SEQ_CST);
	m.op = op;
	actor_tell(&b, &m);
	wait_a_little(50);
	early = answered();
	__atomic_store_n(word, *word + 1, __ATOMIC_SEQ_CST);
	in_time = rte_rdtsc() - began < soft_time_cycles(SOFT_SHM_HOLD_NS);
	while (!answered())
		actor_run(&a);
	assert_int_equal(recv(b.sock, &m, sizeof(m), 0), sizeof(m));
	assert_int_equal(m.ret, 0);
	if (in_time) {
		assert_false(early);
		/* The connection is unaffected. */
		assert_int_equal(state_of(&a), BB_QP_RTS);
	}
	stop();
	return in_time;
}

T(test_owner_waits_for_a_direct_access)
{
	static const enum actor_op ops[] = {ACTOR_DEREG, ACTOR_QP_DESTROY};
	uint32_t i, times;

	for (i = 0; i < RTE_DIM(ops); i++) {
		for (times = 0; times < 10 && !owner_waits(ops[i]); times++)
			;
		assert_int_not_equal(times, 10);
	}
}

/*
 * A peer that does not finish its access is cut off after two seconds; its later requests are
 * ignored.
 */
T(test_peer_that_holds_an_access_is_cut_off)
{
	static const struct differ none;
	uint64_t *word;

	begin("");
	ready(true, &none);
	word = &own_gid()->dir->engine[0].v;
	__atomic_store_n(word, *word + 1, __ATOMIC_SEQ_CST);
	m.op = ACTOR_DEREG;
	actor_tell(&b, &m);
	while (!answered())
		usleep(1000);
	assert_int_equal(recv(b.sock, &m, sizeof(m), 0), sizeof(m));
	assert_int_equal(m.ret, 0);
	__atomic_store_n(word, *word + 1, __ATOMIC_SEQ_CST);
	do_ok(&a, ACTOR_EVENT);
	assert_int_equal(m.a, BB_EVENT_QP_FATAL);
	assert_int_equal(state_of(&a), BB_QP_ERR);
	stop();
}

/* Executes a request directly, in short accesses. The last 333 bytes are no whole cache lines. */
static void
in_short_accesses(enum actor_verb verb, uint64_t raddr, uint32_t rkey)
{
	const uint32_t len = (6u << 20) + 333, limit = 4u << 20;
	const uint64_t *word = &own_gid()->dir->engine[0].v, before = *word, n = direct();

	post(&a, verb, 0, len, raddr, rkey);
	completes(&a, BB_WC_SUCCESS);
	assert_int_equal(direct(), n + 1);
	assert_int_equal(*word & 1, 0);
	/* Each access has two epochs, an odd and an even one. */
	assert_true((*word - before) / 2 > len / limit);
}

/*
 * An owner waits only two seconds, so the length of an access must not depend on the length and the
 * number of the requests.
 */
T(test_long_requests_are_executed_in_short_accesses)
{
	static const enum actor_verb verbs[] = {ACTOR_WRITE, ACTOR_WRITE_TWO};
	static const struct differ none;
	const uint32_t len = (6u << 20) + 333;
	uint64_t raddr, before, accesses;
	uint32_t rkey, i;

	begin("");
	ready(true, &none);
	more_mr(0, ACTOR_BUF, ALL, false, &raddr, &rkey);
	warm(ACTOR_WRITE, raddr, rkey);
	for (i = 0; i < RTE_DIM(verbs); i++) {
		fill(&a, 0, len, 3 + i);
		blank(&b);
		in_short_accesses(verbs[i], raddr + 65, rkey);
		holds(&b, 65, len, 3 + i);
	}
	blank(&a);
	in_short_accesses(ACTOR_READ_VERB, raddr + 65, rkey);
	holds(&a, 0, len, 4);

	/* A turn executes several of these requests, but only about 8 MiB or less (by the MTU). */
	before = direct();
	accesses = own_gid()->dir->engine[0].v;
	for (i = 0; i < 16; i++)
		post(&a, ACTOR_WRITE, 0, 1u << 20, raddr, rkey);
	assert_true(direct() == before);
	actor_run(&a);
	assert_in_range(direct() - before, 1, 9);
	for (i = 0; i < 16; i++)
		completes(&a, BB_WC_SUCCESS);
	accesses = (own_gid()->dir->engine[0].v - accesses) / 2;
	assert_int_equal(direct(), before + 16);
	assert_true(accesses >= 4);

	/* A request that ends after the key's memory does not write its first pieces. */
	more_mr(0, len - 1, ALL, false, &raddr, &rkey);
	warm(ACTOR_WRITE, raddr, rkey);
	bad(ACTOR_WRITE, raddr, len, rkey, BB_WC_REM_ACCESS_ERR);
	stop();
}

/* ---- Counters of direct accesses by a peer */

static struct bb_qp_addr addr_b;

static void
meet(struct actor *s, const struct bb_qp_addr *to)
{
	memset(&m, 0, sizeof(m));
	m.addr = *to;
	do_ok(s, ACTOR_CONNECT);
}

/* Returns the number of WRITEs that this side has served, starting from @before. */
static uint64_t
served(uint64_t before)
{
	struct bb_dev_stats stats;

	OK(bb_dev_stats(a.dev, &stats));
	return stats.rx_write - before;
}

/* The target writes to this side 100 times, by direct access in the end. */
static void
b_writes(void)
{
	uint32_t i;

	for (i = 0; i < 100; i++) {
		post(&b, ACTOR_WRITE, OFF, 8, mr_a.raddr, mr_a.rkey);
		completes(&b, BB_WC_SUCCESS);
	}
	assert_int_not_equal(own_gid()->rx[0]->dir->count[addr_b.qpn].writes, 0);
}

/* The two QPs connect again, in either order, or a new QP has the number of one of them. */
T(test_accesses_are_counted_once_over_reconnects)
{
	uint64_t before;

	begin("");
	m.a = BB_QPT_RC;
	do_ok(&a, ACTOR_QP);
	do_ok(&b, ACTOR_QP);
	addr_b = m.addr;
	meet(&a, &addr_b);
	meet(&b, &a.addr);
	before = served(0);
	b_writes();
	assert_int_equal(served(before), 100);

	do_ok(&a, ACTOR_RESET);
	do_ok(&b, ACTOR_RESET);
	meet(&a, &addr_b);
	/* The peer's entry for its QP is from the previous connection. */
	assert_int_equal(served(before), 100);
	meet(&b, &a.addr);
	assert_int_equal(served(before), 100);
	b_writes();
	assert_int_equal(served(before), 200);

	do_ok(&a, ACTOR_RESET);
	do_ok(&b, ACTOR_RESET);
	meet(&b, &a.addr);
	meet(&a, &addr_b);
	b_writes();
	b_writes();
	assert_int_equal(served(before), 400);

	do_ok(&a, ACTOR_QP_DESTROY);
	m.a = BB_QPT_RC;
	do_ok(&a, ACTOR_QP);
	meet(&a, &addr_b);
	assert_int_equal(served(before), 400);
	do_ok(&b, ACTOR_RESET);
	meet(&b, &a.addr);
	b_writes();
	assert_int_equal(served(before), 500);
	stop();
}

int
main(int argc, char **argv)
{
	return shm_main(argc, argv, __FILE__);
}
