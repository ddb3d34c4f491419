/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A connection of two processes on which requests are executed directly in the peer's memory, as
 * the counters in this process's directory show, and bad requests on it. A new connection uses
 * packets, so it does not show the checks that a requester makes before a direct access.
 */
#ifndef SHM_DIRECT_ENV_H
#define SHM_DIRECT_ENV_H

#include "soft_shm.h"

#include "shm_env.h"

/* An MR in the middle of shared pages, which ends in the middle of an atomic's 8 bytes. */
#define OFF      4160u
#define LEN      8060u
#define BAD_BYTE 0xffu /* bad requests would write it */

static inline struct soft_shm *
own_gid(void)
{
	static const uint8_t gid[16] = {[10] = 0xff, [11] = 0xff, 192, 0, 2, 1};

	return soft_dev_peek_gid(gid)->shm;
}

/* Returns the number of requests that this side's QP has executed directly. */
static inline uint64_t
direct(void)
{
	const struct soft_shm_count *n = &own_gid()->dir->count[a.addr.qpn];

	return n->writes + n->reads + n->atomics;
}

/* Differences of the target's side from a default connection. */
struct differ {
	uint32_t lacks; /* rights that its QP does not have */
	uint32_t mtu, psn, reads;
	const uint8_t *gid;
	uint8_t timeout; /* of this side's QP */
};

static inline void
join(const struct differ *d)
{
	struct bb_qp_addr addr_a;

	memset(&m, 0, sizeof(m));
	m.a = BB_QPT_RC;
	do_ok(&a, ACTOR_QP);
	addr_a = m.addr;
	do_ok(&b, ACTOR_QP);
	a.timeout = d->timeout != 0 ? d->timeout : 18;
	a.retry_cnt = d->timeout != 0 ? 1 : 7;
	do_ok(&a, ACTOR_CONNECT);
	m.addr = addr_a;
	if (d->mtu != 0)
		m.addr.mtu = d->mtu;
	m.addr.psn = (m.addr.psn + d->psn) & 0xffffff;
	if (d->gid != NULL)
		memcpy(m.addr.gid, d->gid, 16);
	m.b = d->lacks;
	m.y = d->reads;
	do_ok(&b, ACTOR_CONNECT);
}

static inline void
part(void)
{
	do_ok(&a, ACTOR_QP_DESTROY);
	do_ok(&b, ACTOR_QP_DESTROY);
}

/* Opens both devices, each with its own options. */
static inline void
begin_two(const char *own_gid, const char *peer_gid)
{
	char two[64];

	memset(&a, 0, sizeof(a));
	actor_spawn(&b, EAL);
	snprintf(two, sizeof(two), ",ip=192.0.2.9/24%s", own_gid);
	assert_int_equal(open_dev(&a, 1, two), 0);
	assert_int_equal(open_dev(&b, 2, peer_gid), 0);
	reg(&a, &mr_a.raddr, &mr_a.rkey);
	memset(&m, 0, sizeof(m));
	m.x = OFF;
	m.y = LEN;
	m.a = ALL;
	do_ok(&b, ACTOR_MR);
	mr_b.raddr = m.raddr;
	mr_b.rkey = m.rkey;
	m.x = 0;
	m.y = ACTOR_BUF;
	m.a = BAD_BYTE;
	do_ok(&a, ACTOR_SET);
	blank(&b);
}

static inline void
begin(const char *more)
{
	begin_two(more, more);
}

/* Registers one more MR of the target. */
static inline void
more_mr(uint64_t off, uint64_t len, uint32_t rights, bool other_pd, uint64_t *raddr, uint32_t *rkey)
{
	memset(&m, 0, sizeof(m));
	m.x = off;
	m.y = len;
	m.a = rights;
	m.b = other_pd;
	do_ok(&b, ACTOR_MR_MORE);
	*raddr = m.raddr;
	*rkey = m.rkey;
}

/* Repeats requests of 8 bytes until one is executed directly, then resets the target's memory. */
static inline void
warm(enum actor_verb verb, uint64_t raddr, uint32_t rkey)
{
	uint64_t before = direct();
	uint32_t i;

	for (i = 0; direct() == before; i++) {
		if (i == 1000)
			fail_msg("all goes by packets");
		m.z = 0;
		post(&a, verb, 0, 8, raddr, rkey);
		completes(&a, BB_WC_SUCCESS);
	}
	blank(&b);
}

/* Checks that every byte of the target is unchanged. */
static inline void
untouched(void)
{
	uint32_t i, off;

	for (off = 0; off < 4 * ACTOR_DATA; off += ACTOR_DATA) {
		m.x = off;
		m.y = ACTOR_DATA;
		do_ok(&b, ACTOR_READ);
		for (i = 0; i < ACTOR_DATA; i++)
			if (m.data[i] != GUARD)
				fail_msg("byte %u is written", off + i);
	}
}

static inline void
bad(enum actor_verb verb, uint64_t raddr, uint64_t len, uint32_t rkey, enum bb_wc_status status)
{
	uint64_t before = direct();

	m.z = 1;
	post(&a, verb, 0, len, raddr, rkey);
	completes(&a, status);
	assert_int_equal(direct(), before);
	untouched();
	if (status == BB_WC_RETRY_EXC_ERR)
		return;
	do_ok(&b, ACTOR_EVENT);
	assert_int_equal(m.a,
			 status == BB_WC_REM_ACCESS_ERR ? BB_EVENT_QP_ACCESS : BB_EVENT_QP_REQUEST);
}

/* Runs @test with packets, and with direct access. */
static inline void
twice(void (*test)(bool direct))
{
	begin("");
	test(true);
	stop();
	begin(",shm_packets");
	test(false);
	stop();
}

static inline void
ready(bool by_itself, const struct differ *d)
{
	join(d);
	if (by_itself)
		warm(ACTOR_WRITE, mr_b.raddr, mr_b.rkey);
}

/* Cleans up after a failed test, so that the next test starts fresh. */
static inline int
leave(void **st)
{
	(void)st;
	if (a.dev != NULL) {
		actor_kill(&b);
		do_ok(&a, ACTOR_CLOSE);
	}
	return 0;
}

#define T(name) TEST_WITH(NULL, leave, name)

#endif
