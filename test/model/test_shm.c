/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The shared-memory port between real processes: every verb in both directions with its data,
 * errors, a peer that is killed, one that comes again, and addresses that are taken.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "shm_actor.h"

#define GUARD 0xee
#define ALL                                                                                        \
	(BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_READ |                  \
	 BB_ACCESS_REMOTE_ATOMIC)

static const char *const eal[] = {"--no-huge", "-m", "128"};
#define EAL eal, sizeof(eal) / sizeof(eal[0])

static struct actor a, b, c;
static struct actor_msg m;
/* Of the MRs, by actor. */
static struct {
	uint64_t raddr;
	uint32_t rkey;
} mr_a, mr_b, mr_c;

static int
ask(struct actor *s, enum actor_op op)
{
	m.op = op;
	actor_ask(&a, s, &m);
	return m.ret;
}

static void
do_ok(struct actor *s, enum actor_op op)
{
	int ret = ask(s, op);

	if (ret != 0)
		fail_msg("command %d of process %d: %s", (int)op, (int)s->pid, strerror(-ret));
}

/* A device with the address 192.0.2.@n on this test's fabric. */
static int
open_dev(struct actor *s, unsigned int n, const char *more)
{
	memset(&m, 0, sizeof(m));
	snprintf(m.text, sizeof(m.text), "soft0,shm=test%d,ip=192.0.2.%u/24%s", (int)getpid(), n,
		 more);
	return ask(s, ACTOR_OPEN);
}

static void
reg(struct actor *s, uint64_t *raddr, uint32_t *rkey)
{
	memset(&m, 0, sizeof(m));
	m.y = ACTOR_BUF;
	m.a = ALL;
	do_ok(s, ACTOR_MR);
	*raddr = m.raddr;
	*rkey = m.rkey;
}

static void
connect_two(struct actor *s, struct actor *t, enum bb_qp_type type)
{
	struct bb_qp_addr addr_s, addr_t;

	memset(&m, 0, sizeof(m));
	m.a = (uint32_t)type;
	do_ok(s, ACTOR_QP);
	addr_s = m.addr;
	m.a = (uint32_t)type;
	do_ok(t, ACTOR_QP);
	addr_t = m.addr;
	do_ok(s, ACTOR_CONNECT);
	m.addr = addr_s;
	do_ok(t, ACTOR_CONNECT);
	(void)addr_t;
}

/* This process and another one, connected. */
static void
start(enum bb_qp_type type, const char *more)
{
	memset(&a, 0, sizeof(a));
	actor_spawn(&b, EAL);
	assert_int_equal(open_dev(&a, 1, more), 0);
	assert_int_equal(open_dev(&b, 2, more), 0);
	reg(&a, &mr_a.raddr, &mr_a.rkey);
	reg(&b, &mr_b.raddr, &mr_b.rkey);
	connect_two(&a, &b, type);
}

static void
stop(void)
{
	do_ok(&a, ACTOR_CLOSE);
	do_ok(&b, ACTOR_CLOSE);
	actor_kill(&b);
}

static void
fill(struct actor *s, uint64_t off, uint64_t len, uint32_t seed)
{
	memset(&m, 0, sizeof(m));
	m.x = off;
	m.y = len;
	m.a = seed;
	do_ok(s, ACTOR_FILL);
}

/* The memory of @s from @off on is what was filled from @seed, and not beyond. */
static void
holds(struct actor *s, uint64_t off, uint64_t len, uint32_t seed)
{
	uint64_t done, i, n;

	for (done = 0; done < len; done += n) {
		n = len - done < ACTOR_DATA ? len - done : ACTOR_DATA;
		m.x = off + done;
		m.y = n;
		do_ok(s, ACTOR_READ);
		for (i = 0; i < n; i++)
			if (m.data[i] != actor_byte(seed, done + i))
				fail_msg("byte %u of %u differs", (unsigned int)(done + i),
					 (unsigned int)len);
	}
	m.x = off + len;
	m.y = 1;
	do_ok(s, ACTOR_READ);
	assert_int_equal(m.data[0], GUARD);
}

static void
blank(struct actor *s)
{
	m.x = 0;
	m.y = ACTOR_BUF;
	m.a = GUARD;
	do_ok(s, ACTOR_SET);
}

static void
post(struct actor *s, enum actor_verb verb, uint64_t off, uint64_t len, uint64_t raddr,
     uint32_t rkey)
{
	uint64_t z = m.z, w = m.w;

	memset(&m, 0, offsetof(struct actor_msg, data));
	m.a = (uint32_t)verb;
	m.b = 77;
	m.x = off;
	m.y = len;
	m.z = z;
	m.w = w;
	m.raddr = raddr;
	m.rkey = rkey;
	m.imm = 0x12345678;
	do_ok(s, ACTOR_POST);
}

static void
completes(struct actor *s, enum bb_wc_status status)
{
	do_ok(s, ACTOR_POLL);
	if (m.a != (uint32_t)status)
		fail_msg("%s, not %s", bb_wc_status_name((enum bb_wc_status)m.a),
			 bb_wc_status_name(status));
}

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

static void
test_rc(void **st)
{
	(void)st;
	start(BB_QPT_RC, "");
	one_way(&a, &b, mr_b.raddr, mr_b.rkey);
	one_way(&b, &a, mr_a.raddr, mr_a.rkey);
	atomics(&a, &b, mr_b.raddr, mr_b.rkey);
	atomics(&b, &a, mr_a.raddr, mr_a.rkey);
	stop();
}

/* Both devices run in threads of their own. */
static void
test_rc_thread(void **st)
{
	(void)st;
	start(BB_QPT_RC, ",progress=thread");
	one_way(&a, &b, mr_b.raddr, mr_b.rkey);
	one_way(&b, &a, mr_a.raddr, mr_a.rkey);
	atomics(&a, &b, mr_b.raddr, mr_b.rkey);
	stop();
}

/* One packet in twenty is lost, on each side: nobody notices. */
static void
test_rc_loss(void **st)
{
	(void)st;
	start(BB_QPT_RC, ",tx_drop=2,tx_corrupt=1,rx_drop=1,tx_reorder=1,rx_dup=1");
	one_way(&a, &b, mr_b.raddr, mr_b.rkey);
	atomics(&a, &b, mr_b.raddr, mr_b.rkey);
	stop();
}

static void
test_uc(void **st)
{
	(void)st;
	start(BB_QPT_UC, "");
	fill(&a, 0, 5000, 3);
	blank(&b);
	/* The one behind it comes last. */
	m.x = 0;
	m.y = 0;
	do_ok(&b, ACTOR_RECV);
	post(&a, ACTOR_WRITE, 0, 5000, mr_b.raddr, mr_b.rkey);
	completes(&a, BB_WC_SUCCESS);
	post(&a, ACTOR_WRITE_IMM, 0, 4, mr_b.raddr + 6000, mr_b.rkey);
	completes(&a, BB_WC_SUCCESS);
	completes(&b, BB_WC_SUCCESS);
	holds(&b, 0, 5000, 3);
	stop();
}

static void
test_ud(void **st)
{
	(void)st;
	start(BB_QPT_UD, "");
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
	stop();
}

/* ---- Errors */

static uint32_t
state(struct actor *s)
{
	do_ok(s, ACTOR_STATE);
	return m.a;
}

/* The target refuses, with the events of a wire, and both QPs are in error. */
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
	assert_int_equal(state(&a), BB_QP_ERR);
	do_ok(&b, ACTOR_EVENT);
	assert_int_equal(m.a,
			 status == BB_WC_REM_ACCESS_ERR ? BB_EVENT_QP_ACCESS : BB_EVENT_QP_REQUEST);
	assert_int_equal(state(&b), BB_QP_ERR);
	stop();
}

static void
test_refused(void **st)
{
	(void)st;
	refuses(0, 8, 1, ACTOR_WRITE, BB_WC_REM_ACCESS_ERR);
	refuses(ACTOR_BUF - 7, 8, 0, ACTOR_WRITE, BB_WC_REM_ACCESS_ERR);
	refuses(ACTOR_BUF - 4095, 4096, 0, ACTOR_READ_VERB, BB_WC_REM_ACCESS_ERR);
	refuses(0, 8, 0x100, ACTOR_FETCH_ADD, BB_WC_REM_ACCESS_ERR);
}

static void
test_rnr(void **st)
{
	(void)st;
	memset(&a, 0, sizeof(a));
	actor_spawn(&b, EAL);
	memset(&m, 0, sizeof(m));
	assert_int_equal(open_dev(&a, 1, ""), 0);
	a.timeout = 14;
	a.retry_cnt = 1;
	assert_int_equal(open_dev(&b, 2, ""), 0);
	reg(&a, &mr_a.raddr, &mr_a.rkey);
	reg(&b, &mr_b.raddr, &mr_b.rkey);
	connect_two(&a, &b, BB_QPT_RC);
	post(&a, ACTOR_SEND, 0, 8, 0, 0);
	completes(&a, BB_WC_RNR_RETRY_EXC_ERR);
	stop();
}

/* ---- Peers that go and come */

static int
descriptors(void)
{
	int fd, n = 0;

	for (fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/*
 * A peer is killed while it writes to us and we to it, again and again: our QP fails with its
 * oldest request, the others are flushed, an event tells; the third process is not disturbed, and
 * nothing of the dead one is left.
 */
static void
test_killed(void **st)
{
	struct actor second = {0};
	struct bb_qp *other;
	int before = 0, round, n;

	(void)st;
	memset(&a, 0, sizeof(a));
	actor_spawn(&c, EAL);
	assert_int_equal(open_dev(&a, 1, ""), 0);
	assert_int_equal(open_dev(&c, 3, ""), 0);
	reg(&a, &mr_a.raddr, &mr_a.rkey);
	reg(&c, &mr_c.raddr, &mr_c.rkey);
	connect_two(&a, &c, BB_QPT_RC);
	other = a.qp;
	for (round = 0; round < 12; round++) {
		actor_spawn(&b, EAL);
		assert_int_equal(open_dev(&b, 2, ""), 0);
		reg(&b, &mr_b.raddr, &mr_b.rkey);
		connect_two(&a, &b, BB_QPT_RC);
		post(&a, ACTOR_WRITE, 0, 64, mr_b.raddr, mr_b.rkey);
		completes(&a, BB_WC_SUCCESS);
		memset(&m, 0, sizeof(m));
		m.op = ACTOR_STORM;
		m.raddr = mr_a.raddr + 4096;
		m.rkey = mr_a.rkey;
		m.y = round % 3 == 0 ? 8 : 20000;
		actor_tell(&b, &m);
		for (n = 0; n < 200 * round; n++)
			actor_run(&a);
		for (n = 0; n < 3; n++)
			post(&a, ACTOR_WRITE_IMM, 0, 30000, mr_b.raddr, mr_b.rkey);
		for (n = 0; n < round; n++)
			actor_run(&a);
		actor_kill(&b);
		completes(&a, BB_WC_RETRY_EXC_ERR);
		completes(&a, BB_WC_WR_FLUSH_ERR);
		completes(&a, BB_WC_WR_FLUSH_ERR);
		assert_int_equal(state(&a), BB_QP_ERR);
		do_ok(&a, ACTOR_EVENT);
		assert_int_equal(m.a, BB_EVENT_QP_FATAL);
		do_ok(&a, ACTOR_QP_DESTROY);

		second = a;
		second.qp = other;
		fill(&c, 0, 100, (uint32_t)round);
		post(&second, ACTOR_READ_VERB, 0, 100, mr_c.raddr, mr_c.rkey);
		completes(&second, BB_WC_SUCCESS);
		assert_int_equal(state(&second), BB_QP_RTS);
		for (n = 0; n < 100; n++)
			actor_run(&a);
		if (round == 0)
			before = descriptors();
		assert_int_equal(descriptors(), before);
	}
	a.qp = other;
	do_ok(&a, ACTOR_CLOSE);
	do_ok(&c, ACTOR_CLOSE);
	actor_kill(&c);
}

/* A QP that has nothing under way learns it, too, and so does one that only receives. */
static void
test_killed_idle(void **st)
{
	(void)st;
	start(BB_QPT_RC, "");
	post(&a, ACTOR_WRITE, 0, 64, mr_b.raddr, mr_b.rkey);
	completes(&a, BB_WC_SUCCESS);
	m.b = 11;
	m.x = 0;
	m.y = 64;
	do_ok(&a, ACTOR_RECV);
	actor_kill(&b);
	do_ok(&a, ACTOR_EVENT);
	assert_int_equal(m.a, BB_EVENT_QP_FATAL);
	completes(&a, BB_WC_WR_FLUSH_ERR);
	assert_int_equal(state(&a), BB_QP_ERR);
	do_ok(&a, ACTOR_CLOSE);
}

/* An address belongs to one process, until that is gone; nobody answers at one that is free. */
static void
test_addresses(void **st)
{
	struct bb_qp_addr none = {
		.qpn = 1, .mtu = 4096, .gid = {[10] = 0xff, [11] = 0xff, 192, 0, 2, 77}};

	(void)st;
	memset(&a, 0, sizeof(a));
	actor_spawn(&b, EAL);
	assert_int_equal(open_dev(&b, 2, ""), 0);
	assert_int_equal(open_dev(&a, 2, ""), -EADDRINUSE);
	assert_int_equal(open_dev(&a, 1, ",ip=192.0.2.2/24"), -EADDRINUSE);
	assert_int_equal(open_dev(&a, 1, ",ip=2001:db8::1/64"), 0);
	memset(&m, 0, sizeof(m));
	m.a = BB_QPT_RC;
	do_ok(&a, ACTOR_QP);
	m.addr = none;
	assert_int_equal(ask(&a, ACTOR_CONNECT), -EHOSTUNREACH);
	do_ok(&a, ACTOR_CLOSE);
	actor_kill(&b);
	assert_int_equal(open_dev(&a, 2, ""), 0);
	do_ok(&a, ACTOR_CLOSE);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rc),          cmocka_unit_test(test_rc_thread),
		cmocka_unit_test(test_rc_loss),     cmocka_unit_test(test_uc),
		cmocka_unit_test(test_ud),          cmocka_unit_test(test_refused),
		cmocka_unit_test(test_rnr),         cmocka_unit_test(test_killed),
		cmocka_unit_test(test_killed_idle), cmocka_unit_test(test_addresses),
	};
	int ret;

	if (argc > 1 && strcmp(argv[1], "peer") == 0)
		return actor_main(argc, argv);
	ret = actor_eal("shm", EAL);
	if (ret != 0)
		return ret;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
