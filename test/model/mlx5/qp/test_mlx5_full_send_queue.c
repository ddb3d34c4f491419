/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Full send queues through the public API. A request that takes several slots gets them. The NOPs
 * that the library posts for such requests, for drains and for recoveries are never reported.
 * test/unit/queue/test_sq_room.c checks the same with random queues.
 */
#include "../mem/keys_env.h"

enum kind {
	MASKED,
	BIND,
	UNBIND,
	INVALIDATE,
	LIST,
	INTERLEAVED,
	LISTED_MASKED,
	LISTED_INVALIDATE,
	KINDS
};

struct rig {
	struct env *e;
	struct bb_mw *one, *two;
	struct bb_mkey *key;
};

/* Posts one signalled request of @kind at b, with wr_id 99. */
static int
post(const struct rig *r, enum kind kind)
{
	struct bb_qp *qp = r->e->b.qp;
	struct bb_mr *mr = r->e->b.mr;
	struct bb_sge sge = sge_of(&r->e->b, 0, 8), list[40];
	const uint64_t raddr = raddr_of(&r->e->a, 4096);
	const uint32_t rkey = r->e->a.mr->rkey;
	struct bb_interleaved block[40];
	struct bb_send_wr wr = {.wr_id = 99, .flags = BB_SEND_SIGNALED};
	uint32_t i, n;
	int err;

	for (i = 0; i < RTE_DIM(list); i++) {
		list[i] = sge_of(&r->e->b, 16 * i, 8);
		block[i] =
			(struct bb_interleaved){.addr = list[i].addr, .bytes = 8, .lkey = mr->lkey};
	}
	switch (kind) {
	case MASKED:
		return bb_post_masked_cmp_swap(qp, 99, &sge, raddr, rkey, 0, 0, 0, 0,
					       BB_SEND_SIGNALED);
	case BIND:
		return bb_mw_bind(qp, 99, r->one, mr, raddr_of(&r->e->b, 0), 64,
				  BB_ACCESS_REMOTE_READ, BB_SEND_SIGNALED);
	case UNBIND:
		return bb_mw_bind(qp, 99, r->one, NULL, 0, 0, 0, BB_SEND_SIGNALED);
	case INVALIDATE:
		return bb_post_local_inv(qp, 99, r->two->rkey, BB_SEND_SIGNALED);
	case LIST:
		return bb_post_mkey_list(qp, 99, r->key, BB_ACCESS_REMOTE_READ, list, 40,
					 BB_SEND_SIGNALED);
	case INTERLEAVED:
		return bb_post_mkey_interleaved(qp, 99, r->key, BB_ACCESS_REMOTE_READ, 1, block, 40,
						BB_SEND_SIGNALED);
	case LISTED_MASKED:
		wr.opcode = BB_WR_MASKED_CMP_AND_SWP;
		wr.sge = &sge;
		wr.nsge = 1;
		wr.atomic.raddr = raddr;
		wr.atomic.rkey = rkey;
		break;
	default:
		wr.opcode = BB_WR_LOCAL_INV;
		wr.imm_or_inv = r->two->rkey;
		break;
	}
	n = bb_qp_post_list(qp, &wr, 1, &err);
	return err != 0 ? err : n == 1 ? 0 : -EAGAIN;
}

/* Allocates a window of type 2 and binds it on b's QP, so that it can be invalidated. */
static void
bind_two(const struct rig *r)
{
	OK(bb_post_bind_mw(r->e->b.qp, 1, r->two, bb_inc_rkey(r->two->rkey), r->e->b.mr,
			   raddr_of(&r->e->b, 0), 64, BB_ACCESS_REMOTE_READ, BB_SEND_SIGNALED));
	assert_int_equal(done(r->e, &r->e->b, BB_WC_BIND_MW), BB_WC_SUCCESS);
}

static void
rig_make(struct rig *r, struct env *e, uint32_t signal_every)
{
	struct bb_mkey_attr ka;

	r->e = e;
	e->init.sq_depth = 16;
	e->init.max_sge = 1;
	e->init.max_inline = 0;
	e->init.signal_every = signal_every;
	fresh(e);
	OK(bb_mw_alloc(e->b.pd, BB_MW_TYPE_1, &r->one));
	OK(bb_mw_alloc(e->b.pd, BB_MW_TYPE_2, &r->two));
	bb_mkey_attr_init(&ka);
	ka.max_pieces = 64;
	OK(bb_mkey_create(e->b.pd, &ka, &r->key));
}

static void
rig_free(struct rig *r)
{
	OK(bb_mkey_destroy(r->key));
	OK(bb_mw_free(r->one));
	OK(bb_mw_free(r->two));
}

static void
writes(struct env *e, uint32_t n)
{
	struct bb_sge sge = sge_of(&e->b, 0, 8);

	for (; n > 0; n--)
		OK(bb_post_write(e->b.qp, 5, &sge, 1, raddr_of(&e->a, 4096), e->a.mr->rkey, 0));
}

/*
 * After any number of unsignalled requests, with the default and with the slowest signalling
 * cadence.
 */
KEYS_TEST(test_large_request_gets_room_after_unsignalled_ones)
{
	static const uint32_t paces[] = {0, 16};
	struct bb_wc wc;
	uint32_t before, calls;
	enum kind kind;
	struct rig r;
	size_t i;

	for (i = 0; i < RTE_DIM(paces); i++) {
		rig_make(&r, e, paces[i]);
		for (kind = 0; kind < KINDS; kind++) {
			for (before = 0; before < 16; before++) {
				int ret;

				if (kind == INVALIDATE || kind == LISTED_INVALIDATE)
					bind_two(&r);
				writes(e, before);
				bb_qp_ring(e->b.qp);
				for (calls = 0; (ret = post(&r, kind)) == -EAGAIN; calls++) {
					assert_in_range(calls, 0, 100000000);
					assert_int_equal(bb_cq_poll(e->b.cq, &wc, 1), 0);
				}
				assert_int_equal(ret, 0);
				env_done(e, &e->b, 99, BB_WC_SUCCESS);
			}
		}
		env_silent(e, &e->b);
		rig_free(&r);
	}
}

/* A window allows a few binds that are not known to be complete, signalled or not. */
KEYS_TEST(test_window_gets_room_after_unsignalled_binds)
{
	uint32_t i, calls;
	struct bb_wc wc;
	struct rig r;
	int ret;

	rig_make(&r, e, 0);
	e->init.sq_depth = 512;
	e->init.signal_every = 512;
	fresh(e);
	for (i = 0; i < 100; i++) {
		for (calls = 0;; calls++) {
			ret = bb_mw_bind(e->b.qp, 1, r.one, i % 2 != 0 ? NULL : e->b.mr,
					 raddr_of(&e->b, 0), i % 2 != 0 ? 0 : 64,
					 BB_ACCESS_REMOTE_READ, 0);
			if (ret != -EAGAIN)
				break;
			assert_in_range(calls, 0, 100000000);
			bb_qp_ring(e->b.qp);
			assert_int_equal(bb_cq_poll(e->b.cq, &wc, 1), 0);
		}
		assert_int_equal(ret, 0);
	}
	rig_free(&r);
}

/* In ERR each request is reported, but the library's NOPs are not. */
KEYS_TEST(test_own_nops_are_not_reported_when_they_are_flushed)
{
	struct bb_qp_stats stats;
	struct bb_qp_attr attr;
	struct bb_wc wc[32];
	uint32_t i, drains, calls;
	struct rig r;

	for (drains = 0; drains < 2; drains++) {
		rig_make(&r, e, 16);
		bb_qp_attr_init(&attr);
		attr.state = BB_QP_ERR;
		OK(bb_qp_modify(e->b.qp, &attr, BB_QP_STATE));
		writes(e, 15);
		bb_qp_ring(e->b.qp);
		if (drains == 0)
			assert_int_equal(post(&r, MASKED), -EAGAIN);
		else
			assert_int_equal(bb_qp_drain(e->b.qp), -EAGAIN);
		OK(bb_qp_stats(e->b.qp, &stats));
		assert_int_equal(stats.posted, 15);
		assert_int_equal(stats.outstanding, 16);
		env_poll(e, &e->b, wc, 15);
		for (i = 0; i < 15; i++)
			expect(&wc[i], e->b.qp, 5, BB_WC_WR_FLUSH_ERR);
		/* With an engine of its own the device can still be at work on the NOP. */
		for (calls = 0; !bb_qp_drained(e->b.qp); calls++) {
			assert_in_range(calls, 0, 100000000);
			bb_dev_progress(e->b.dev);
			assert_int_equal(bb_cq_poll(e->b.cq, wc, 1), 0);
		}
		env_silent(e, &e->b);
		rig_free(&r);
	}
}

/* A recovery reports no entry for them either, at any position. */
KEYS_TEST(test_own_nops_are_not_recovered)
{
	struct bb_qp_recovery rec = {.ends = NULL};
	struct bb_wr_end ends[32];
	uint32_t i, bad;
	struct rig r;

	for (bad = 0; bad < 2; bad++) {
		rig_make(&r, e, 16);
		writes(e, 15);
		bb_qp_ring(e->b.qp);
		assert_int_equal(post(&r, MASKED), -EAGAIN); /* the library posts a NOP */
		rec.ends = ends;
		rec.max = bad ? 14 : 15;
		if (bad) {
			assert_int_equal(bb_qp_recover(e->b.qp, NULL, NULL, NULL, &rec), -ENOSPC);
			rec.max = 15;
		}
		OK(bb_qp_recover(e->b.qp, NULL, NULL, NULL, &rec));
		if (!bad)
			assert_int_equal(rec.n, 15);
		for (i = 0; i < rec.n; i++)
			assert_int_equal(ends[i].wc.wr_id, 5);
		rig_free(&r);
	}
}

/*
 * The queue has no room for the library's NOP, and the only send that asks for a CQE was not rung.
 * The recovery rings it, so that its flush error shows the outcome of the earlier sends.
 */
KEYS_TEST(test_recovery_of_a_full_queue_rings_its_last_send)
{
	const uint64_t to = raddr_of(&e->a, 4096);
	struct bb_wr_end ends[4];
	struct bb_qp_recovery rec = {.ends = ends, .max = RTE_DIM(ends)};
	struct bb_qp_stats before, after;
	uint32_t rung, i, calls;

	e->init.sq_depth = 4;
	e->init.signal_every = 4;
	for (rung = 0; rung < 4; rung++) {
		fresh(e);
		memset(e->b.buf, 0x5a, 8);
		memset(e->a.buf + 4096, 0, 32);
		for (i = 0; i < 4; i++) {
			struct bb_sge sge = sge_of(&e->b, 0, 8);

			OK(bb_post_write(e->b.qp, i, &sge, 1, to + 8 * i, e->a.mr->rkey, 0));
			if (i + 1 != rung)
				continue;
			bb_qp_ring(e->b.qp);
			for (calls = 0;
			     __atomic_load_n(&e->a.buf[4096 + 8 * i + 7], __ATOMIC_ACQUIRE) != 0x5a;
			     calls++) {
				assert_in_range(calls, 0, 100000000);
				bb_dev_progress(e->b.dev);
				bb_dev_progress(e->a.dev);
			}
		}
		OK(bb_qp_stats(e->b.qp, &before));
		OK(bb_qp_recover(e->b.qp, NULL, NULL, NULL, &rec));
		OK(bb_qp_stats(e->b.qp, &after));
		assert_int_equal(after.doorbells, before.doorbells + 1);
		assert_int_equal(rec.n, 4);
		for (i = 0; i < 4; i++) {
			assert_int_equal(ends[i].wc.wr_id, i);
			assert_int_equal(ends[i].fate, i < rung ? BB_WR_DONE : BB_WR_NOT_DONE);
		}
	}
}

TEST_MAIN(env_eal_init("mlx5_full_send_queue"))
