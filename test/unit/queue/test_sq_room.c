/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * A full send queue always gets room again. If a post returns "full", a WQE that was rung
 * requests a CQE, and that CQE frees room. Tested by random posts of every kind on queues of
 * random sizes. The device executes what the doorbell record covers and writes the requested
 * CQEs.
 */
#include "bb_sq_ud.h"
#include "bb_sq_umr.h"
#include "sq_fixture.h"

#define MAX_SGE   12u
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* The device: WQEs up to the record, and their CQEs in order. */
struct device {
	uint16_t next;      /* block of the next WQE to execute */
	uint16_t cqe[4096]; /* WQE counters of CQEs not yet polled */
	uint32_t head, tail;
	uint32_t unknown; /* WQEs executed since the last CQE */
};

struct world {
	struct sq_fixture f;
	struct device dev;
	uint64_t seed;
	bool signal_all;
	uint32_t signalled; /* of 8 requests, the number signalled */
	uint32_t posted, reports, reported, umrs;
};

static void
execute(struct world *w)
{
	const struct bb_sq *sq = &w->f.sq;
	struct device *d = &w->dev;

	while (d->next != (uint16_t)bb_be32(*sq->dbrec)) {
		const uint8_t *ctrl = w->f.ring.p + (size_t)(d->next & sq->mask) * BB_WQE_BB;

		assert_int_equal(ctrl[1] << 8 | ctrl[2], d->next);
		d->unknown++;
		if (ctrl[11] & 0x08) {
			d->cqe[d->tail++ % 4096] = d->next;
			d->unknown = 0;
		}
		d->next = (uint16_t)(d->next + bb_wqe_blocks(ctrl[7]));
	}
}

/* Polls one CQE as bb_cq_poll() does. */
static void
poll_one(struct world *w)
{
	const struct bb_sq_wqe *wqe = bb_sq_complete(&w->f.sq, w->dev.cqe[w->dev.head++ % 4096]);

	if ((wqe->flags & BB_SEND_SIGNALED) == 0)
		return;
	assert_int_not_equal(wqe->wc_opcode, BB_SQ_OWN);
	assert_int_not_equal(wqe->wr_id, 0);
	w->reported++;
}

static void
random_conf(struct world *w)
{
	struct bb_sq_conf *c = &w->f.conf;
	uint32_t ds, most;

	do {
		sq_fixture_conf(&w->f, 1u << rnd_below(&w->seed, 9));
		c->type = rnd_below(&w->seed, 4) == 0   ? BB_QPT_UD
			  : rnd_below(&w->seed, 3) == 0 ? BB_QPT_UC
							: BB_QPT_RC;
		c->max_sge = rnd_below(&w->seed, 3) == 0 ? rnd_below(&w->seed, MAX_SGE + 1) : 1;
		c->max_inline = rnd_below(&w->seed, 3) == 0 ? rnd_below(&w->seed, 200) : 0;
		ds = (c->type == BB_QPT_UD ? 4 : 2);
		ds += MAX(c->max_sge, bb_wqe_inline_ds(c->max_inline));
		most = c->blocks / bb_wqe_blocks(MAX(ds, 4u));
	} while (most == 0);
	c->depth = rnd_below(&w->seed, 3) == 0 ? most : 1 + rnd_below(&w->seed, most);
	w->signal_all = rnd_below(&w->seed, 8) == 0;
	c->signal_all = w->signal_all;
	c->sig_every = 1;
	if (!w->signal_all)
		c->sig_every =
			rnd_below(&w->seed, 2) == 0 ? c->depth : 1 + rnd_below(&w->seed, c->depth);
	c->db_mode = rnd_below(&w->seed, 2) == 0 ? BB_DB_DOORBELL : BB_DB_BLUEFLAME;
	w->signalled = rnd_below(&w->seed, 2) == 0 ? 0 : rnd_below(&w->seed, 9);
}

/* Posts one request. @kind is random and does not change when the post is repeated. */
static int
post(struct world *w, uint32_t kind, uint32_t n, uint32_t flags)
{
	static const uint8_t data[256];
	struct bb_sq *sq = &w->f.sq;
	const bool ud = w->f.conf.type == BB_QPT_UD;
	const uint32_t pieces = n % (w->f.conf.max_sge + 1), len = n % (w->f.conf.max_inline + 1);
	const struct bb_sge whole = {(uintptr_t)data, len, 0}, eight = {0, 8, 0}, four = {0, 4, 0};
	const struct bb_bind range = {.len = 8}, none = {.len = 0};
	struct bb_interleaved block[BB_UMR_MAX_BLOCKS];
	struct bb_sge sge[BB_UMR_MAX_PIECES];
	const struct bb_wqe_av av = {0};

	for (uint32_t i = 0; i < BB_UMR_MAX_PIECES; i++)
		sge[i] = (struct bb_sge){i, 1 + i, 1};
	for (uint32_t i = 0; i < BB_UMR_MAX_BLOCKS; i++)
		block[i] = (struct bb_interleaved){i, 1, 0, 1};
	switch (ud ? 20 + kind % 5 : kind % 16) {
	case 0:
		return bb_sq_post_sgl(sq, BB_WQE_RDMA_WRITE, true, 1, sge, 1, 0, 0, 0, flags);
	case 1:
		return bb_sq_post_sgl(sq, BB_WQE_SEND, false, 1, sge, pieces, 0, 0, 0, flags);
	case 2:
		return bb_sq_post_inline(sq, BB_WQE_RDMA_WRITE, true, 1, data, len, 0, 0, 0, flags);
	case 3:
		return bb_sq_post_inline_list(sq, BB_WQE_SEND, false, 1, &whole, 1, 0, 0, 0, flags);
	case 4:
		return bb_sq_post_sgl(sq, BB_WQE_RDMA_READ, true, 1, sge, 1, 0, 0, 0, flags);
	case 5:
		return bb_sq_post_atomic(sq, BB_WQE_ATOMIC_FA, 1, &eight, 0, 0, 0, 0, flags);
	case 6:
	case 7:
		return bb_sq_post_masked(sq, BB_WQE_ATOMIC_MASKED_CS, 1, &eight, 0, 0, 0, 0, 0, 0,
					 flags);
	case 8:
		return bb_sq_post_masked(sq, BB_WQE_ATOMIC_MASKED_FA, 1, &four, 0, 0, 0, 0, 0, 0,
					 flags);
	case 9:
		return bb_sq_post_bind(sq, 1, n % 2 == 0, 0, 0, &range, flags);
	case 10:
		return bb_sq_post_bind(sq, 1, n % 2 == 0, 0, 0, &none, flags);
	case 11:
		return bb_sq_post_local_inv(sq, 1, 0, flags);
	case 12:
	case 13:
		return bb_sq_post_mkey_list(sq, 1, 0, 0, sge, 1 + n % BB_UMR_MAX_PIECES, flags);
	case 14:
		return bb_sq_post_mkey_interleaved(sq, 1, 0, 0, 1, block, 1 + n % BB_UMR_MAX_BLOCKS,
						   flags);
	case 20:
	case 21:
		return bb_sq_post_ud(sq, BB_WQE_SEND, 1, &av, 0, 0, sge, pieces, 0, flags);
	case 22:
		return bb_sq_post_ud_inline(sq, BB_WQE_SEND, 1, &av, 0, 0, data, len, 0, flags);
	case 23:
		return bb_sq_post_ud_inline_list(sq, BB_WQE_SEND, 1, &av, 0, 0, &whole, 1, 0,
						 flags);
	default:
		return bb_sq_post_nop(sq, 1, flags);
	}
}

static void
explain(const struct world *w, uint32_t kind, uint32_t n, const char *what)
{
	const struct bb_sq_conf *c = &w->f.conf;

	fail_msg("%s: type %d, blocks %u, depth %u, max_sge %u, max_inline %u, signal_every %u; "
		 "request %u of %u, outstanding %u",
		 what, (int)c->type, c->blocks, c->depth, c->max_sge, c->max_inline, c->sig_every,
		 kind % 16, n, bb_sq_outstanding(&w->f.sq));
}

/* Repeats a request of @kind that found no room until it is posted. */
static void
until_posted(struct world *w, uint32_t kind, uint32_t n, uint32_t flags)
{
	int ret = -EAGAIN;

	for (uint32_t tries = 0; ret == -EAGAIN; tries++) {
		if (w->dev.head == w->dev.tail)
			explain(w, kind, n, "full, and no CQE comes");
		if (tries > 2 * w->f.conf.depth)
			explain(w, kind, n, "full, and CQEs make no room");
		poll_one(w);
		ret = post(w, kind, n, flags);
		/*
		 * WQEs that were rung before this post execute without another doorbell of the
		 * application.
		 */
		execute(w);
	}
	assert_int_equal(ret, 0);
}

static void
step(struct world *w)
{
	const uint32_t kind = rnd_below(&w->seed, 1u << 20), n = rnd_below(&w->seed, 1000);
	const bool ring = rnd_below(&w->seed, 2) == 0;
	uint32_t flags = rnd_below(&w->seed, 8) < w->signalled ? BB_SEND_SIGNALED : 0;
	const uint16_t at = w->f.sq.pi;
	int ret;

	if (ring)
		bb_sq_ring(&w->f.sq);
	ret = post(w, kind, n, flags);
	if (ret == -EINVAL)
		return; /* never fits, or the QP type does not have it */
	if (ret == -EAGAIN) {
		if (!ring)
			bb_sq_ring(&w->f.sq);
		execute(w);
		until_posted(w, kind, n, flags);
	} else {
		assert_int_equal(ret, 0);
		w->umrs += w->f.wqes[at & w->f.sq.mask].opcode >= BB_SQ_BIND_MW;
	}
	w->posted++;
	w->reports += flags != 0 || w->signal_all;
	/* Outstanding WQEs never overlap in the ring. */
	assert_true(bb_sq_outstanding(&w->f.sq) <= w->f.conf.depth);
	if (rnd_below(&w->seed, 4) == 0) {
		bb_sq_ring(&w->f.sq);
		execute(w);
	}
	while (w->dev.head != w->dev.tail && rnd_below(&w->seed, 6) == 0)
		poll_one(w);
}

TEST(test_full_queue_gets_room_by_a_cqe)
{
	uint64_t posted = 0, own = 0, umrs = 0;

	/* Requests that can never fit are rejected with a log line. */
	log_begin();
	for (uint32_t round = 0; round < 3000; round++) {
		struct world w = {.seed = 1 + round * UINT64_C(0x9e3779b97f4a7c15)};

		random_conf(&w);
		w.f.conf.owner = UINT32_MAX;
		sq_fixture_start(&w.f);
		for (uint32_t i = 0; i < 300; i++)
			step(&w);
		/* Every completion is reported once; a drain finds the remaining ones. */
		bb_sq_ring(&w.f.sq);
		execute(&w);
		while (w.dev.head != w.dev.tail)
			poll_one(&w);
		assert_int_equal(w.reported, w.reports);
		posted += w.posted;
		umrs += w.umrs;
		own += bb_sq_outstanding(&w.f.sq) == 0;
		sq_fixture_end(&w.f);
	}
	log_stop();
	/* The run covered enough cases. */
	assert_true(posted > 300000);
	assert_true(umrs > 10000);
	assert_true(own != 0);
}

/* The shortest sequences for each kind: unsignalled requests, then one of several slots. */
TEST(test_large_request_gets_room_after_unsignalled_ones)
{
	static const struct {
		const char *what;
		uint32_t depth, every, before, kind, n;
	} cases[] = {
		{"masked CMP_SWAP", 2, 2, 1, 6, 0},
		{"masked CMP_SWAP", 128, 128, 127, 6, 0},
		{"bind", 16, 16, 14, 9, 0},
		{"unbind", 16, 16, 15, 10, 0},
		{"invalidation", 16, 16, 15, 11, 0},
		{"key of 24 pieces", 8, 2, 1, 12, 23},
		{"key of 52 pieces", 16, 4, 3, 12, 51},
		{"key of 51 blocks", 16, 4, 3, 14, 50},
	};
	struct world w;
	uint32_t ring;

	for (size_t c = 0; c < 2 * sizeof(cases) / sizeof(cases[0]); c++) {
		ring = c % 2;
		memset(&w, 0, sizeof(w));
		sq_fixture_conf(&w.f, cases[c / 2].depth);
		w.f.conf.max_sge = 1;
		w.f.conf.max_inline = 0;
		w.f.conf.depth = cases[c / 2].depth;
		w.f.conf.sig_every = cases[c / 2].every;
		sq_fixture_start(&w.f);
		for (uint32_t i = 0; i < cases[c / 2].before; i++)
			assert_int_equal(post(&w, 0, 0, 0), 0);
		if (ring)
			bb_sq_ring(&w.f.sq);
		assert_int_equal(post(&w, cases[c / 2].kind, cases[c / 2].n, 0), -EAGAIN);
		/* Only WQEs that the application rang were sent. */
		assert_int_equal(bb_be32(*w.f.sq.dbrec), ring ? cases[c / 2].before + 1 : 0);
		if (!ring)
			bb_sq_ring(&w.f.sq);
		execute(&w);
		assert_int_equal(w.dev.tail, 1);
		/* A repeated post adds no second NOP. */
		assert_int_equal(post(&w, cases[c / 2].kind, cases[c / 2].n, 0), -EAGAIN);
		assert_int_equal(bb_sq_outstanding(&w.f.sq), cases[c / 2].before + 1);
		assert_int_equal(w.f.sq.extra, 1);
		until_posted(&w, cases[c / 2].kind, cases[c / 2].n, 0);
		assert_int_equal(w.reported, 0);
		sq_fixture_end(&w.f);
	}
}

TEST_MAIN(0)
