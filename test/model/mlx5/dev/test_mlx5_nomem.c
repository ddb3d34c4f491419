/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/* Failing allocations (nomem.h) of the library, the mlx5 driver and the software device. */
#define _GNU_SOURCE /* fopencookie() */
#include "../mlx5_env.h"

#include <unistd.h>

#include <rte_mempool.h>

#include "../../../fakes/nomem.h"
#include "bb_loop.h"

static struct env e;
static struct bb_dm *dm;
static struct rte_mempool *pool;
static struct bb_dev *fresh;
static struct bb_cq_attr cq_attr;
static struct bb_srq_attr srq_attr;
static struct bb_loop_attr loop_attr;
static struct bb_qp_init_attr qp_attr;

/* The first open of this device also creates its tables. */
MAKE(dev, bb_dev, bb_dev_open("soft7", out))
UNDO(dev, bb_dev, bb_dev_close)
MAKE(pd, bb_pd, bb_pd_alloc(e.a.dev, out))
UNDO(pd, bb_pd, bb_pd_free)
MAKE(cq, bb_cq, bb_cq_create(e.a.dev, &cq_attr, out))
UNDO(cq, bb_cq, bb_cq_destroy)

/* The first queue of a device also creates its tables. */
static int
make_first_cq(void)
{
	struct bb_cq_attr attr;
	struct bb_dev *dev = NULL;
	int ret = bb_dev_open("soft7", &dev);

	if (ret != 0)
		return ret;
	bb_cq_attr_init(&attr);
	ret = bb_cq_create(dev, &attr, (struct bb_cq **)(void *)&made);
	if (ret == 0)
		fresh = dev;
	else
		OK(bb_dev_close(dev));
	return ret;
}

static int
undo_first_cq(void)
{
	int ret = bb_cq_destroy(made);

	return ret != 0 ? ret : bb_dev_close(fresh);
}

MAKE(mr, bb_mr, bb_mr_reg(e.a.pd, e.a.buf, 4096, ENV_ALL, out))
UNDO(mr, bb_mr, bb_mr_dereg)
MAKE(dm, bb_dm, bb_dm_alloc(e.a.dev, 64, 0, out))
UNDO(dm, bb_dm, bb_dm_free)
MAKE(dm_mr, bb_mr,
     bb_mr_reg_dm(e.a.pd, dm, 0, 64, BB_ACCESS_LOCAL_WRITE | BB_ACCESS_ZERO_BASED, out))
MAKE(umem, bb_umem, bb_umem_reg(e.a.dev, e.a.buf, 4096, BB_ACCESS_LOCAL_WRITE, out))
UNDO(umem, bb_umem, bb_umem_dereg)

static int
make_mkey(void)
{
	struct bb_sge piece = {(uintptr_t)e.a.buf, 64, e.a.mr->lkey};
	struct bb_mkey_attr attr;

	bb_mkey_attr_init(&attr);
	attr.pieces = &piece;
	attr.n = 1;
	attr.access = BB_ACCESS_LOCAL_WRITE;
	return bb_mkey_create(e.a.pd, &attr, (struct bb_mkey **)(void *)&made);
}
UNDO(mkey, bb_mkey, bb_mkey_destroy)
MAKE(mw, bb_mw, bb_mw_alloc(e.a.pd, BB_MW_TYPE_1, out))
UNDO(mw, bb_mw, bb_mw_free)
MAKE(channel, bb_channel, bb_channel_create(e.a.dev, out))
UNDO(channel, bb_channel, bb_channel_destroy)
MAKE(srq, bb_srq, bb_srq_create(e.a.pd, &srq_attr, out))
UNDO(srq, bb_srq, bb_srq_destroy)
MAKE(qp, bb_qp, bb_qp_create(e.a.pd, &qp_attr, out))
UNDO(qp, bb_qp, bb_qp_destroy)

static int
make_ah(void)
{
	struct bb_qp_addr addr;
	struct bb_path path = {.port = 1, .is_global = 1, .hop_limit = 64};

	OK(bb_qp_addr(e.a.qp, 1, 0, &addr));
	memcpy(path.dgid, addr.gid, sizeof(path.dgid));
	return bb_ah_create(e.a.pd, &path, (struct bb_ah **)(void *)&made);
}
UNDO(ah, bb_ah, bb_ah_destroy)
MAKE(loop, bb_loop, bb_loop_create(&loop_attr, out))
UNDO(loop, bb_loop, bb_loop_destroy)

/* Calls that return no object record what they made through this function. */
static int
set_made(int ret)
{
	if (ret == 0)
		made = &made;
	return ret;
}

static int
make_pool(void)
{
	return set_made(bb_mem_add_mempool(e.a.pd, pool));
}

static int
undo_pool(void)
{
	return bb_mem_del_mempool(e.a.pd, pool);
}

/* A ring of 4 MiB is a separate piece of EAL memory. */
#define LARGE_CQ 65536

/* The resize moves the rings. If it fails, the CQ keeps its old depth. */
static int
make_resized(void)
{
	int ret = bb_cq_resize(e.b.cq, LARGE_CQ);

	assert_int_equal(bb_cq_depth(e.b.cq) >= LARGE_CQ, ret == 0);
	return set_made(ret);
}

static int
undo_resized(void)
{
	return bb_cq_resize(e.b.cq, 1024);
}

static const struct maker makers[] = {
	{"device", make_dev, undo_dev, 5, true},
	{"PD", make_pd, undo_pd, 3, false},
	{"CQ", make_cq, undo_cq, 4, false},
	{"first CQ", make_first_cq, undo_first_cq, 12, false},
	{"MR", make_mr, undo_mr, 3, false},
	{"DM", make_dm, undo_dm, 2, false},
	{"MR of DM", make_dm_mr, undo_mr, 3, false},
	{"umem", make_umem, undo_umem, 2, false},
	{"mkey", make_mkey, undo_mkey, 2, false},
	{"window", make_mw, undo_mw, 2, true},
	{"channel", make_channel, undo_channel, 2, false},
	{"SRQ", make_srq, undo_srq, 3, false},
	{"QP", make_qp, undo_qp, 4, false},
	{"AH", make_ah, undo_ah, 1, false},
	{"loop", make_loop, undo_loop, 3, false},
	{"mempool", make_pool, undo_pool, 2, false},
	{"larger CQ", make_resized, undo_resized, 1, false},
};

static int
setup(void **state)
{
	(void)state;
	/* Few keys: the table of windows has one page, whichever key is drawn. */
	env_open_spec(&e, "soft0,log_max_mkey=12");
	env_qps(&e);
	bb_cq_attr_init(&cq_attr);
	cq_attr.depth = 4096;
	bb_srq_attr_init(&srq_attr);
	bb_loop_attr_init(&loop_attr);
	qp_attr = e.init;
	qp_attr.send_cq = qp_attr.recv_cq = e.a.cq;
	OK(bb_dm_alloc(e.a.dev, 64, 0, &dm));
	pool = rte_mempool_create("nomem", 63, 64, 0, 0, NULL, NULL, NULL, NULL, SOCKET_ID_ANY, 0);
	assert_non_null(pool);
	return nomem_log();
}

static int
teardown(void **state)
{
	(void)state;
	rte_openlog_stream(NULL);
	rte_mempool_free(pool);
	OK(bb_dm_free(dm));
	env_stop(&e);
	return 0;
}

TEST_WITH(setup, teardown, test_failed_allocation_of_each_call_leaves_no_object)
{
	nomem_each(makers, RTE_DIM(makers));
}

TEST_MAIN(env_eal_init("mlx5_nomem"))
