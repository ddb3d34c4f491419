/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Helpers of the tests of the shared-memory port: this process is a, another process is b. */
#ifndef SHM_ENV_H
#define SHM_ENV_H

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bb_test_on.h"
#include "shm_actor.h"

#define GUARD 0xee
#define ALL                                                                                        \
	(BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE | BB_ACCESS_REMOTE_READ |                  \
	 BB_ACCESS_REMOTE_ATOMIC)

static const char *const eal[] = {"--no-huge", "-m", "128"};
#define EAL eal, sizeof(eal) / sizeof(eal[0])

static struct actor a, b;
static struct actor_msg m;
/* Address and rkey of the MR, by actor. */
static struct {
	uint64_t raddr;
	uint32_t rkey;
} mr_a, mr_b;

static inline int
ask(struct actor *s, enum actor_op op)
{
	m.op = op;
	actor_ask(&a, s, &m);
	return m.ret;
}

static inline void
do_ok(struct actor *s, enum actor_op op)
{
	int ret = ask(s, op);

	if (ret != 0)
		fail_msg("command %d of process %d: %s", (int)op, (int)s->pid, strerror(-ret));
}

/* Stops the process of @s, and waits until it is stopped; kill() alone does not wait. */
static inline void
actor_stop(const struct actor *s)
{
	assert_int_equal(kill(s->pid, SIGSTOP), 0);
	assert_int_equal(waitpid(s->pid, NULL, WUNTRACED), s->pid);
}

/* Opens a device with the address 192.0.2.@n on this test's fabric. */
static inline int
open_dev(struct actor *s, unsigned int n, const char *more)
{
	memset(&m, 0, sizeof(m));
	snprintf(m.text, sizeof(m.text), "soft0,shm=test%d,ip=192.0.2.%u/24%s", (int)getpid(), n,
		 more);
	return ask(s, ACTOR_OPEN);
}

static inline void
reg(struct actor *s, uint64_t *raddr, uint32_t *rkey)
{
	memset(&m, 0, sizeof(m));
	m.y = ACTOR_BUF;
	m.a = ALL;
	do_ok(s, ACTOR_MR);
	*raddr = m.raddr;
	*rkey = m.rkey;
}

static inline void
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

/*
 * Starts another process, and creates a QP in each, which it does not connect. @ip_b: the other
 * process has the address 192.0.2.@ip_b. Clears m.
 */
static inline void
open_two(enum bb_qp_type type, const char *more, unsigned int ip_b, struct bb_qp_addr *addr_a,
	 struct bb_qp_addr *addr_b)
{
	memset(&a, 0, sizeof(a));
	actor_spawn(&b, EAL);
	assert_int_equal(open_dev(&a, 1, more), 0);
	assert_int_equal(open_dev(&b, ip_b, more), 0);
	/* Eight seconds: on a loaded machine the other process may wait long for its CPU. */
	a.timeout = 18;
	a.retry_cnt = 7;
	reg(&a, &mr_a.raddr, &mr_a.rkey);
	reg(&b, &mr_b.raddr, &mr_b.rkey);
	m.a = (uint32_t)type;
	do_ok(&a, ACTOR_QP);
	*addr_a = m.addr;
	m.a = (uint32_t)type;
	do_ok(&b, ACTOR_QP);
	*addr_b = m.addr;
	memset(&m, 0, sizeof(m));
}

/* Starts another process and connects it with this one. */
static inline void
start(enum bb_qp_type type, const char *more)
{
	memset(&a, 0, sizeof(a));
	actor_spawn(&b, EAL);
	assert_int_equal(open_dev(&a, 1, more), 0);
	assert_int_equal(open_dev(&b, 2, more), 0);
	/* Eight seconds: on a loaded machine the other process may wait long for its CPU. */
	a.timeout = 18;
	a.retry_cnt = 7;
	reg(&a, &mr_a.raddr, &mr_a.rkey);
	reg(&b, &mr_b.raddr, &mr_b.rkey);
	connect_two(&a, &b, type);
}

static inline void
stop(void)
{
	do_ok(&a, ACTOR_CLOSE);
	do_ok(&b, ACTOR_CLOSE);
	actor_kill(&b);
}

static inline void
fill(struct actor *s, uint64_t off, uint64_t len, uint32_t seed)
{
	memset(&m, 0, sizeof(m));
	m.x = off;
	m.y = len;
	m.a = seed;
	do_ok(s, ACTOR_FILL);
}

/*
 * Checks that @len bytes of @s at @off were filled from @seed, and that the bytes after them were
 * not.
 */
static inline void
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

static inline void
blank(struct actor *s)
{
	m.x = 0;
	m.y = ACTOR_BUF;
	m.a = GUARD;
	do_ok(s, ACTOR_SET);
}

static inline void
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

static inline void
completes(struct actor *s, enum bb_wc_status status)
{
	do_ok(s, ACTOR_POLL);
	if (m.a != (uint32_t)status)
		fail_msg("%s, not %s", bb_wc_status_name((enum bb_wc_status)m.a),
			 bb_wc_status_name(status));
}

static inline uint32_t
state_of(struct actor *s)
{
	do_ok(s, ACTOR_STATE);
	return m.a;
}

/* Main function: runs the tests of a file, or the commands of the other process. */
static inline int
shm_main(int argc, char **argv, const char *file)
{
	int ret;

	if (argc > 1 && strcmp(argv[1], "peer") == 0)
		return actor_main(argc, argv);
	ret = actor_eal("shm", EAL);
	return ret != 0 ? ret : bb_test_run(file, NULL, NULL);
}

#endif
