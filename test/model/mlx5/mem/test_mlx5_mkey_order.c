/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Keys that requests of one doorbell lay out, use and invalidate. The library fences the request
 * after a change, and the device delays the other requests no longer than that needs.
 */
#include <unistd.h>

#include "../mlx5_env.h"

#define PIECE 16u  /* bytes of a block of the key */
#define LEN   256u /* bytes of the key */
#define SLOT  512u /* bytes of the target's memory for one WRITE */

/* Each path that requests can take. If b is NULL both sides are on one device. */
static const struct way {
	const char *a, *b;
} ways[] = {
	{"soft0", NULL},
	{"soft0", "soft1"},
	{"soft0,wire=1", NULL},
	{"soft0,wire=1", "soft1,wire=1"},
	{"soft0,shm=%d,ip=192.0.2.1/24", NULL},
	{"soft0,shm=%d,ip=192.0.2.1/24", "soft1,shm=%d,ip=192.0.2.2/24"},
};

static void
open_way(struct env *e, const struct way *w, enum bb_qp_type type)
{
	char spec[2][64];

	snprintf(spec[0], sizeof(spec[0]), w->a, (int)getpid());
	if (w->b != NULL)
		snprintf(spec[1], sizeof(spec[1]), w->b, (int)getpid());
	env_open_two(e, spec[0], w->b != NULL ? spec[1] : NULL);
	e->init.type = type;
	env_up(e);
}

/* Creates b's key over every fourth 16 bytes of its buffer. */
static struct bb_mkey *
key_of(struct env *e)
{
	struct bb_mkey_attr attr;
	struct bb_mkey *k;

	bb_mkey_attr_init(&attr);
	attr.max_pieces = 2;
	OK(bb_mkey_create(e->b.pd, &attr, &k));
	return k;
}

static int
layout(struct env *e, struct bb_mkey *k, uint64_t wr_id)
{
	struct bb_interleaved b = {(uintptr_t)e->b.buf, PIECE, 3 * PIECE, e->b.mr->lkey};

	return bb_post_mkey_interleaved(e->b.qp, wr_id, k, ENV_ALL, LEN / PIECE, &b, 1,
					BB_SEND_SIGNALED);
}

/* Posts a WRITE to a's slot @i from the key or, if @k is NULL, from b's region. */
static int
write_to(struct env *e, const struct bb_mkey *k, unsigned int i)
{
	struct bb_sge sge = k != NULL ? (struct bb_sge){0, LEN, k->lkey} : sge_of(&e->b, 0, LEN);

	return bb_post_write(e->b.qp, i, &sge, 1, raddr_of(&e->a, (size_t)i * SLOT), e->a.mr->rkey,
			     BB_SEND_SIGNALED);
}

/* Checks that the WRITE's data arrives; the next packets may be needed for that. */
static void
expect_slot(struct env *e, bool by_key, unsigned int i)
{
	uint64_t end = rte_get_timer_cycles() + ENV_WAIT_S * rte_get_timer_hz();
	const uint8_t *at = e->a.buf + (size_t)i * SLOT;
	uint8_t want[LEN];
	unsigned int p;

	for (p = 0; p < LEN / PIECE; p++)
		memcpy(want + p * PIECE, e->b.buf + p * PIECE * (by_key ? 4u : 1u), PIECE);
	while (memcmp(at, want, LEN) != 0 && rte_get_timer_cycles() < end) {
		bb_dev_progress(e->a.dev);
		bb_dev_progress(e->b.dev);
	}
	assert_memory_equal(at, want, LEN);
}

/*
 * Posts @what: L lays out, K WRITEs by the key, W WRITEs by the region, N is a NOP, I invalidates
 * the key.
 */
static void
batch(struct env *e, struct bb_mkey *k, const char *what)
{
	unsigned int n = (unsigned int)strlen(what), i;
	struct bb_wc wc[8];

	fill(e->b.buf, 4 * LEN, 5);
	memset(e->a.buf, 0, n * SLOT);
	for (i = 0; i < n; i++) {
		int ret = what[i] == 'L'   ? layout(e, k, i)
			  : what[i] == 'K' ? write_to(e, k, i)
			  : what[i] == 'W' ? write_to(e, NULL, i)
			  : what[i] == 'N'
				  ? bb_post_nop(e->b.qp, i, BB_SEND_SIGNALED)
				  : bb_post_local_inv(e->b.qp, i, k->rkey, BB_SEND_SIGNALED);

		assert_int_equal(ret, 0);
	}
	bb_qp_ring(e->b.qp);
	env_poll(e, &e->b, wc, n);
	for (i = 0; i < n; i++) {
		expect(&wc[i], e->b.qp, i, BB_WC_SUCCESS);
		if (what[i] == 'K' || what[i] == 'W')
			expect_slot(e, what[i] == 'K', i);
	}
}

/* The first request after the layout has the fence, so all requests after it may use the key. */
TEST(test_requests_after_a_layout_use_the_key)
{
	static const char *const what[] = {"LK", "LWK", "LKK", "LNK", "LWWK", "K", "LKLKK"};
	unsigned int i, b, round;
	struct bb_mkey *k;
	struct env e;

	for (i = 0; i < RTE_DIM(ways); i++) {
		open_way(&e, &ways[i], BB_QPT_RC);
		k = key_of(&e);
		/*
		 * On shared memory the first requests travel as packets, later ones are executed
		 * directly.
		 */
		for (round = 0; round < 3; round++)
			for (b = 0; b < RTE_DIM(what); b++)
				batch(&e, k, what[b]);
		OK(bb_mkey_destroy(k));
		env_stop(&e);
	}
}

/*
 * The key is laid out anew and invalidated after a request of the same queue that uses it. An
 * unreliable request completes when it is sent; its arrival is not reported.
 */
TEST(test_change_after_a_use_waits_for_it)
{
	static const char *const what[] = {"LKI", "LKLKI", "LKKI", "LI"};
	enum bb_qp_type type;
	unsigned int i, b, round;
	struct bb_mkey *k;
	struct env e;

	for (i = 0; i < 2 * RTE_DIM(ways); i++) {
		type = i % 2 == 0 ? BB_QPT_RC : BB_QPT_UC;
		open_way(&e, &ways[i / 2], type);
		k = key_of(&e);
		for (round = 0; round < 3; round++)
			for (b = 0; b < RTE_DIM(what); b++)
				batch(&e, k, what[b]);
		OK(bb_mkey_destroy(k));
		env_stop(&e);
	}
}

static void
reset(struct env *e)
{
	struct bb_qp_attr attr;

	bb_qp_attr_init(&attr);
	attr.state = BB_QP_RESET;
	OK(bb_qp_modify(e->a.qp, &attr, BB_QP_STATE));
	OK(bb_qp_modify(e->b.qp, &attr, BB_QP_STATE));
	connect_pair(e->a.qp, e->b.qp, &e->attr);
}

TEST(test_reset_drops_the_pending_fence)
{
	struct bb_sge sge;
	struct bb_mkey *k;
	struct bb_wc wc[3];
	struct env e;
	unsigned int i;

	for (i = 0; i < RTE_DIM(ways); i++) {
		open_way(&e, &ways[i], BB_QPT_RC);
		k = key_of(&e);
		sge = sge_of(&e.b, 0, 8);
		sge.lkey ^= 0xff00;
		assert_int_equal(layout(&e, k, 1), 0);
		OK(bb_post_write(e.b.qp, 2, &sge, 1, raddr_of(&e.a, 0), e.a.mr->rkey, 0));
		assert_int_equal(write_to(&e, k, 3), 0);
		bb_qp_ring(e.b.qp);
		env_poll(&e, &e.b, wc, 3);
		expect(&wc[0], e.b.qp, 1, BB_WC_SUCCESS);
		expect(&wc[1], e.b.qp, 2, BB_WC_LOC_PROT_ERR);
		expect(&wc[2], e.b.qp, 3, BB_WC_WR_FLUSH_ERR);
		reset(&e);
		batch(&e, k, "K");
		OK(bb_mkey_destroy(k));
		env_stop(&e);
	}
}

TEST_MAIN(env_eal_init("mlx5_mkey_order"))
