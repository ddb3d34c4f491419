/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Keys, bounds and rights that a requester checks before a direct access to a peer's memory: each
 * bad request is refused as over packets.
 */
#include "shm_direct_env.h"

/* ---- Keys */

static void
bounds(bool by_itself)
{
	static const struct {
		enum actor_verb verb;
		uint64_t at, len;
	} all[] = {
		{ACTOR_WRITE, UINT64_MAX, 8},
		{ACTOR_WRITE, LEN - 7, 8},
		{ACTOR_WRITE, LEN, 1},
		{ACTOR_WRITE, 0, LEN + 1},
		{ACTOR_WRITE, 1, LEN},
		{ACTOR_WRITE, UINT64_MAX - OFF, 8},
		{ACTOR_WRITE_TWO, UINT64_MAX, 8},
		{ACTOR_WRITE_TWO, LEN - 7, 8},
		{ACTOR_WRITE_TWO, 0, LEN + 1},
		{ACTOR_READ_VERB, UINT64_MAX - 7, 8},
		{ACTOR_READ_VERB, LEN - 7, 8},
		{ACTOR_READ_VERB, 0, LEN + 1},
		{ACTOR_FETCH_ADD, LEN - 4, 8},
		{ACTOR_CMP_SWAP, LEN + 4, 8},
		{ACTOR_FETCH_ADD, UINT64_MAX - 7, 8},
	};
	static const struct differ none;
	unsigned int i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		ready(by_itself, &none);
		bad(all[i].verb, mr_b.raddr + all[i].at, all[i].len, mr_b.rkey,
		    BB_WC_REM_ACCESS_ERR);
		part();
	}
	/* The whole MR, to the last byte. */
	ready(by_itself, &none);
	post(&a, ACTOR_WRITE, 0, LEN, mr_b.raddr, mr_b.rkey);
	completes(&a, BB_WC_SUCCESS);
	post(&a, ACTOR_READ_VERB, 0, LEN, mr_b.raddr, mr_b.rkey);
	completes(&a, BB_WC_SUCCESS);
	part();
}

T(test_direct_access_obeys_the_bounds)
{
	twice(bounds);
}

/* Another variant of an index, an index without a key, a deregistered key, a key of another PD. */
static void
keys(bool by_itself)
{
	static const enum actor_verb verbs[] = {ACTOR_WRITE, ACTOR_WRITE_TWO, ACTOR_READ_VERB,
						ACTOR_CMP_SWAP};
	static const struct differ none;
	uint64_t raddr, other;
	uint32_t old, rkey;
	unsigned int i;

	more_mr(ACTOR_BUF / 2, 4096, ALL, true, &other, &rkey);
	for (i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		ready(by_itself, &none);
		bad(verbs[i], mr_b.raddr, 8, mr_b.rkey ^ 1, BB_WC_REM_ACCESS_ERR);
		part();
		ready(by_itself, &none);
		bad(verbs[i], mr_b.raddr, 8, mr_b.rkey ^ 0x8000, BB_WC_REM_ACCESS_ERR);
		part();
		ready(by_itself, &none);
		bad(verbs[i], other, 8, rkey, BB_WC_REM_ACCESS_ERR);
		part();
	}
	/*
	 * The owner deregisters a key that this side has cached, and registers another for the
	 * same memory.
	 */
	for (i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		ready(by_itself, &none);
		old = mr_b.rkey;
		raddr = mr_b.raddr;
		do_ok(&b, ACTOR_DEREG);
		memset(&m, 0, sizeof(m));
		m.x = OFF;
		m.y = LEN;
		m.a = ALL;
		do_ok(&b, ACTOR_MR);
		mr_b.rkey = m.rkey;
		assert_int_not_equal(mr_b.rkey, old);
		bad(verbs[i], raddr, 8, old, BB_WC_REM_ACCESS_ERR);
		part();
	}
}

T(test_direct_access_needs_a_valid_key)
{
	twice(keys);
}

/* ---- Rights */

static const struct {
	enum actor_verb verb;
	uint32_t needs;
} rights_of[] = {
	{ACTOR_WRITE, BB_ACCESS_REMOTE_WRITE},     {ACTOR_WRITE_TWO, BB_ACCESS_REMOTE_WRITE},
	{ACTOR_READ_VERB, BB_ACCESS_REMOTE_READ},  {ACTOR_FETCH_ADD, BB_ACCESS_REMOTE_ATOMIC},
	{ACTOR_CMP_SWAP, BB_ACCESS_REMOTE_ATOMIC},
};
#define VERBS (sizeof(rights_of) / sizeof(rights_of[0]))

/* A key with one right allows that operation only. */
static void
key_rights(bool by_itself)
{
	static const uint32_t rights[] = {BB_ACCESS_REMOTE_READ, BB_ACCESS_REMOTE_WRITE,
					  BB_ACCESS_REMOTE_ATOMIC};
	static const struct differ none;
	unsigned int i, k;
	uint64_t raddr;
	uint32_t rkey;

	for (i = 0; i < 3; i++) {
		more_mr(OFF + i * 4096, 4096, BB_ACCESS_LOCAL_WRITE | rights[i], false, &raddr,
			&rkey);
		for (k = 0; k < VERBS; k++) {
			ready(by_itself, &none);
			if (rights_of[k].needs != rights[i]) {
				bad(rights_of[k].verb, raddr, 8, rkey, BB_WC_REM_ACCESS_ERR);
			} else {
				post(&a, rights_of[k].verb, 0, 8, raddr, rkey);
				completes(&a, BB_WC_SUCCESS);
				blank(&b);
			}
			part();
		}
	}
}

T(test_direct_access_obeys_the_rights_of_the_key)
{
	twice(key_rights);
}

/* The QP does not allow its peer an operation that the key allows. */
static void
qp_rights(bool by_itself)
{
	unsigned int i, k;

	for (i = 0; i < VERBS; i++) {
		struct differ d = {.lacks = rights_of[i].needs};

		for (k = 0; rights_of[k].needs == d.lacks; k = (k + 1) % VERBS)
			;
		join(&d);
		if (by_itself)
			warm(rights_of[k].verb, mr_b.raddr, mr_b.rkey);
		bad(rights_of[i].verb, mr_b.raddr, 8, mr_b.rkey, BB_WC_REM_INV_REQ_ERR);
		part();
	}
}

T(test_direct_access_obeys_the_rights_of_the_qp)
{
	twice(qp_rights);
}

/* A request of zero bytes needs no key, but the QP's right (9.7.4.1.4). */
static void
no_bytes(bool by_itself)
{
	static const struct differ none, no_write = {.lacks = BB_ACCESS_REMOTE_WRITE},
					 no_read = {.lacks = BB_ACCESS_REMOTE_READ};
	uint64_t before;

	ready(by_itself, &none);
	before = direct();
	post(&a, ACTOR_WRITE, 0, 0, 0, 0);
	completes(&a, BB_WC_SUCCESS);
	post(&a, ACTOR_READ_VERB, 0, 0, 0, 0);
	completes(&a, BB_WC_SUCCESS);
	assert_int_equal(direct(), before + (by_itself ? 2 : 0));
	part();
	join(&no_write);
	if (by_itself)
		warm(ACTOR_READ_VERB, mr_b.raddr, mr_b.rkey);
	bad(ACTOR_WRITE, mr_b.raddr, 0, mr_b.rkey, BB_WC_REM_INV_REQ_ERR);
	part();
	join(&no_read);
	if (by_itself)
		warm(ACTOR_WRITE, mr_b.raddr, mr_b.rkey);
	bad(ACTOR_READ_VERB, mr_b.raddr, 0, mr_b.rkey, BB_WC_REM_INV_REQ_ERR);
	part();
}

T(test_access_of_no_bytes_checks_no_key)
{
	twice(no_bytes);
}

int
main(int argc, char **argv)
{
	return shm_main(argc, argv, __FILE__);
}
