/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Failing allocations (nomem.h) of the library, the verbs driver and the null provider. */
#define _GNU_SOURCE /* fopencookie() */
#include "../../unit/verbs/verbs_fixture.h"

#include "../../fakes/nomem.h"

static struct fixture f;
static struct bb_dm *dm;
static struct bb_cq_attr cq_attr;
static struct bb_srq_attr srq_attr;
static struct bb_qp_init_attr init;
static const struct bb_path path = {.port = 1, .dgid = {[15] = 1}};

MAKE(dev, bb_dev, bb_dev_open("verbs:" NULL_NAME, out))
UNDO(dev, bb_dev, bb_dev_close)
MAKE(pd, bb_pd, bb_pd_alloc(f.dev, out))
UNDO(pd, bb_pd, bb_pd_free)
MAKE(cq, bb_cq, bb_cq_create(f.dev, &cq_attr, out))
UNDO(cq, bb_cq, bb_cq_destroy)
MAKE(mr, bb_mr, bb_mr_reg(f.pd, mem, LEN, BB_ACCESS_LOCAL_WRITE, out))
UNDO(mr, bb_mr, bb_mr_dereg)
MAKE(dm, bb_dm, bb_dm_alloc(f.dev, 64, 0, out))
UNDO(dm, bb_dm, bb_dm_free)
MAKE(dm_mr, bb_mr, bb_mr_reg_dm(f.pd, dm, 0, 64, BB_ACCESS_LOCAL_WRITE, out))
MAKE(mw, bb_mw, bb_mw_alloc(f.pd, BB_MW_TYPE_2, out))
UNDO(mw, bb_mw, bb_mw_free)
MAKE(channel, bb_channel, bb_channel_create(f.dev, out))
UNDO(channel, bb_channel, bb_channel_destroy)
MAKE(srq, bb_srq, bb_srq_create(f.pd, &srq_attr, out))
UNDO(srq, bb_srq, bb_srq_destroy)
MAKE(qp, bb_qp, bb_qp_create(f.pd, &init, out))
UNDO(qp, bb_qp, bb_qp_destroy)
MAKE(ah, bb_ah, bb_ah_create(f.pd, &path, out))
UNDO(ah, bb_ah, bb_ah_destroy)

static int
make_resized(void)
{
	int ret = bb_cq_resize(f.cq, 2048);

	assert_int_equal(bb_cq_depth(f.cq) == 2048, ret == 0);
	made = ret == 0 ? f.cq : NULL;
	return ret;
}

static int
undo_resized(void)
{
	return bb_cq_resize(f.cq, 1024);
}

static const struct maker makers[] = {
	{"device", make_dev, undo_dev, 5, true},
	{"PD", make_pd, undo_pd, 3, false},
	{"CQ", make_cq, undo_cq, 4, false},
	{"MR", make_mr, undo_mr, 3, false},
	{"DM", make_dm, undo_dm, 2, false},
	{"MR of DM", make_dm_mr, undo_mr, 3, false},
	{"window", make_mw, undo_mw, 2, true},
	{"channel", make_channel, undo_channel, 3, false},
	{"SRQ", make_srq, undo_srq, 5, false},
	{"QP", make_qp, undo_qp, 5, true},
	{"AH", make_ah, undo_ah, 2, false},
	{"larger CQ", make_resized, undo_resized, 1, false},
};

static void
each_call(void)
{
	uint32_t objects = null_dev.objects;

	nomem_each(makers, RTE_DIM(makers));
	assert_int_equal(null_dev.objects, objects);
}

/* Uses ibv_wr_*() and ibv_start_poll(), or the older calls if there is a state. */
static int
start(void **state)
{
	setup(state);
	bb_cq_attr_init(&cq_attr);
	bb_srq_attr_init(&srq_attr);
	bb_qp_init_attr_init(&init);
	init.sq_depth = init.rq_depth = 16;
	make(&f, BB_QPT_RC, false, *state != NULL);
	OK(bb_dm_alloc(f.dev, 64, 0, &dm));
	init.send_cq = init.recv_cq = f.cq;
	return nomem_log();
}

static int
stop(void **state)
{
	rte_openlog_stream(NULL);
	OK(bb_dm_free(dm));
	fixture_free(&f);
	return teardown(state);
}

TEST_WITH(start, stop, test_failed_allocation_of_each_call_leaves_no_object)
{
	each_call();
}

static bool plain = true;

TEST_STATE(start, stop, &plain, test_failed_allocation_with_older_calls_leaves_no_object)
{
	each_call();
}

TEST_MAIN(bare_eal_init() < 0)
