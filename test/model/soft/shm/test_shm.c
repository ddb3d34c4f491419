/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The shared-memory port between real processes: every verb in both directions with its data, and
 * errors.
 */
#include "shm_env.h"

/* ---- Verbs */

static void
one_way(struct actor *s, struct actor *t, uint64_t raddr, uint32_t rkey)
{
	static const uint32_t sizes[] = {1, 8, 61, 4095, 4096, 4097, 65536, 300000};
	uint32_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint32_t len = sizes[i];

		blank(t);
		fill(s, 64, len, i);
		post(s, ACTOR_WRITE, 64, len, raddr + 33, rkey);
		completes(s, BB_WC_SUCCESS);
		holds(t, 33, len, i);

		blank(s);
		post(s, ACTOR_READ_VERB, 128, len, raddr + 33, rkey);
		completes(s, BB_WC_SUCCESS);
		holds(s, 128, len, i);

		blank(t);
		m.b = 5;
		m.x = 7;
		m.y = len;
		do_ok(t, ACTOR_RECV);
		fill(s, 0, len, i + 50);
		post(s, ACTOR_SEND, 0, len, 0, 0);
		completes(s, BB_WC_SUCCESS);
		completes(t, BB_WC_SUCCESS);
		assert_int_equal(m.x, len);
		assert_int_equal(m.y, 5);
		holds(t, 7, len, i + 50);

		blank(t);
		m.x = 0;
		m.y = 0;
		do_ok(t, ACTOR_RECV);
		post(s, ACTOR_WRITE_IMM, 0, len, raddr, rkey);
		completes(s, BB_WC_SUCCESS);
		completes(t, BB_WC_SUCCESS);
		assert_int_equal(m.imm, 0x12345678);
		assert_int_equal(m.x, len);
		holds(t, 0, len, i + 50);
	}
}

static uint64_t
word(struct actor *s, uint64_t off)
{
	uint64_t v;

	m.x = off;
	m.y = 8;
	do_ok(s, ACTOR_READ);
	memcpy(&v, m.data, 8);
	return v;
}

static void
atomics(struct actor *s, struct actor *t, uint64_t raddr, uint32_t rkey)
{
	m.x = 0;
	m.y = 16;
	m.a = 0;
	do_ok(t, ACTOR_SET);
	m.z = 5;
	post(s, ACTOR_FETCH_ADD, 64, 8, raddr, rkey);
	completes(s, BB_WC_SUCCESS);
	assert_int_equal(word(t, 0), 5);
	assert_int_equal(word(s, 64), 0);
	m.z = 5;
	m.w = 9;
	post(s, ACTOR_CMP_SWAP, 64, 8, raddr, rkey);
	completes(s, BB_WC_SUCCESS);
	assert_int_equal(word(t, 0), 9);
	assert_int_equal(word(s, 64), 5);
	m.z = 5;
	m.w = 1;
	post(s, ACTOR_CMP_SWAP, 64, 8, raddr, rkey);
	completes(s, BB_WC_SUCCESS);
	assert_int_equal(word(t, 0), 9);
	assert_int_equal(word(s, 64), 9);
	assert_int_equal(word(t, 8), 0);
}

#define T(start, name) TEST_BETWEEN(start, stop(), name)

T(start(BB_QPT_RC, ""), test_rc_reaches_the_peers_memory)
{
	one_way(&a, &b, mr_b.raddr, mr_b.rkey);
	one_way(&b, &a, mr_a.raddr, mr_a.rkey);
	atomics(&a, &b, mr_b.raddr, mr_b.rkey);
	atomics(&b, &a, mr_a.raddr, mr_a.rkey);
}

T(start(BB_QPT_RC, ",progress=thread"), test_rc_between_device_threads_reaches_memory)
{
	one_way(&a, &b, mr_b.raddr, mr_b.rkey);
	one_way(&b, &a, mr_a.raddr, mr_a.rkey);
	atomics(&a, &b, mr_b.raddr, mr_b.rkey);
}

/* One packet in twenty is lost, on each side: no request fails. */
T(start(BB_QPT_RC, ",tx_drop=2,tx_corrupt=1,rx_drop=1,tx_reorder=1,rx_dup=1"),
  test_lossy_rc_fails_no_request)
{
	one_way(&a, &b, mr_b.raddr, mr_b.rkey);
	atomics(&a, &b, mr_b.raddr, mr_b.rkey);
}

T(start(BB_QPT_UC, ""), test_uc_reaches_the_peers_memory)
{
	fill(&a, 0, 5000, 3);
	blank(&b);
	/* The next request arrives last. */
	m.x = 0;
	m.y = 0;
	do_ok(&b, ACTOR_RECV);
	post(&a, ACTOR_WRITE, 0, 5000, mr_b.raddr, mr_b.rkey);
	completes(&a, BB_WC_SUCCESS);
	post(&a, ACTOR_WRITE_IMM, 0, 4, mr_b.raddr + 6000, mr_b.rkey);
	completes(&a, BB_WC_SUCCESS);
	completes(&b, BB_WC_SUCCESS);
	holds(&b, 0, 5000, 3);
}

T(start(BB_QPT_UD, ""), test_ud_reaches_the_peer)
{
	blank(&b);
	m.x = 0;
	m.y = 4136;
	do_ok(&b, ACTOR_RECV);
	fill(&a, 0, 4096, 9);
	post(&a, ACTOR_SEND, 0, 4096, 0, 0);
	completes(&a, BB_WC_SUCCESS);
	completes(&b, BB_WC_SUCCESS);
	assert_int_equal(m.x, 4136);
	holds(&b, 40, 4096, 9);
}

TEST(test_memory_without_a_descriptor_is_accessed)
{
	setenv("ACTOR_MALLOC", "1", 1);
	start(BB_QPT_RC, "");
	unsetenv("ACTOR_MALLOC");
	one_way(&a, &b, mr_b.raddr, mr_b.rkey);
	one_way(&b, &a, mr_a.raddr, mr_a.rkey);
	atomics(&a, &b, mr_b.raddr, mr_b.rkey);
	stop();
}

T(start(BB_QPT_RC, ",shm_packets"), test_requests_forced_to_packets_arrive)
{
	one_way(&a, &b, mr_b.raddr, mr_b.rkey);
	atomics(&a, &b, mr_b.raddr, mr_b.rkey);
}

T(start(BB_QPT_RC, ""), test_memory_of_a_stopped_target_is_accessed)
{
	/* Completes the messages of the handshake first. */
	post(&a, ACTOR_WRITE, 0, 64, mr_b.raddr, mr_b.rkey);
	completes(&a, BB_WC_SUCCESS);
	actor_stop(&b);
	fill(&a, 0, 50000, 3);
	post(&a, ACTOR_WRITE, 0, 50000, mr_b.raddr + 8, mr_b.rkey);
	completes(&a, BB_WC_SUCCESS);
	blank(&a);
	post(&a, ACTOR_READ_VERB, 64, 50000, mr_b.raddr + 8, mr_b.rkey);
	completes(&a, BB_WC_SUCCESS);
	holds(&a, 64, 50000, 3);
	m.z = 1;
	post(&a, ACTOR_FETCH_ADD, 0, 8, mr_b.raddr, mr_b.rkey);
	completes(&a, BB_WC_SUCCESS);
	kill(b.pid, SIGCONT);
}

/* ---- Errors */

static void
refuses(uint64_t off, uint64_t len, uint32_t rkey, enum actor_verb verb, enum bb_wc_status status)
{
	start(BB_QPT_RC, "");
	if (rkey == 0)
		rkey = mr_b.rkey;
	else
		rkey += mr_b.rkey;
	blank(&b);
	post(&a, verb, 0, len, mr_b.raddr + off, rkey);
	completes(&a, status);
	assert_int_equal(state_of(&a), BB_QP_ERR);
	do_ok(&b, ACTOR_EVENT);
	assert_int_equal(m.a,
			 status == BB_WC_REM_ACCESS_ERR ? BB_EVENT_QP_ACCESS : BB_EVENT_QP_REQUEST);
	assert_int_equal(state_of(&b), BB_QP_ERR);
	stop();
}

TEST(test_bad_key_or_range_is_refused)
{
	refuses(0, 8, 1, ACTOR_WRITE, BB_WC_REM_ACCESS_ERR);
	refuses(ACTOR_BUF - 7, 8, 0, ACTOR_WRITE, BB_WC_REM_ACCESS_ERR);
	refuses(ACTOR_BUF - 4095, 4096, 0, ACTOR_READ_VERB, BB_WC_REM_ACCESS_ERR);
	refuses(0, 8, 0x100, ACTOR_FETCH_ADD, BB_WC_REM_ACCESS_ERR);
}

TEST(test_missing_receive_is_retried)
{
	memset(&a, 0, sizeof(a));
	actor_spawn(&b, EAL);
	memset(&m, 0, sizeof(m));
	assert_int_equal(open_dev(&a, 1, ""), 0);
	a.timeout = 18; /* a second, so that a busy machine runs the peer in time */
	a.retry_cnt = 1;
	assert_int_equal(open_dev(&b, 2, ""), 0);
	reg(&a, &mr_a.raddr, &mr_a.rkey);
	reg(&b, &mr_b.raddr, &mr_b.rkey);
	connect_two(&a, &b, BB_QPT_RC);
	post(&a, ACTOR_SEND, 0, 8, 0, 0);
	completes(&a, BB_WC_RNR_RETRY_EXC_ERR);
	stop();
}

int
main(int argc, char **argv)
{
	return shm_main(argc, argv, __FILE__);
}
