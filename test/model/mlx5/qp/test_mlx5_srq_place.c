/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Places of SRQ rings in queue memory. A umem page here is larger than a ring's unit of 4 KiB: on
 * hugepages (../../../fakes/hugepages.c), and on a host with pages of 64 KiB.
 */
#include <unistd.h>

#include "../mlx5_env.h"
#include "mlx5.h"
#include "soft_ctl.h"

/* UMEM_PAGE, page size of the umem in bytes: from meson.build. */
#define SLAB  (2u << 20)
#define HALF  (UMEM_PAGE / 2)
#define CQE   64u
#define N_SRQ 12
#define MANY  100u

struct place {
	struct bb_dev *dev;
	struct bb_pd *pd;
	struct bb_cq *large;
};

static struct bb_cq *
make_cq(struct place *p, uint32_t depth)
{
	struct bb_cq_attr attr;
	struct bb_cq *cq;

	bb_cq_attr_init(&attr);
	attr.depth = depth;
	OK(bb_cq_create(p->dev, &attr, &cq));
	return cq;
}

static struct bb_srq *
make_srq(struct place *p)
{
	struct bb_srq_attr attr;
	struct bb_srq *srq;

	bb_srq_attr_init(&attr);
	attr.depth = 64;
	OK(bb_srq_create(p->pd, &attr, &srq));
	return srq;
}

static const struct mlx5_qbuf *
cq_ring(const struct bb_cq *cq)
{
	return &((struct mlx5_cq *)cq->ctrl->priv)->ring;
}

static const struct mlx5_qbuf *
srq_ring(const struct bb_srq *srq)
{
	return &((struct mlx5_srq *)srq->ctrl->priv)->ring;
}

/* The ring and the record of the large CQ take half a page of the umem and one unit more. */
static void
start(struct place *p)
{
	const struct soft_ctx *ctx;

	OK(bb_dev_open("soft0", &p->dev));
	OK(bb_pd_alloc(p->dev, &p->pd));
	p->large = make_cq(p, HALF / CQE);
	ctx = soft_ctx(mlx5_dev_of(p->dev)->ctx);
	assert_int_equal(ctx->dev->ctl->umems[cq_ring(p->large)->umem_id]->pgsz, UMEM_PAGE);
	assert_int_equal(cq_ring(p->large)->offset, 0);
}

static void
stop(struct place *p)
{
	OK(bb_cq_destroy(p->large));
	OK(bb_pd_free(p->pd));
	OK(bb_dev_close(p->dev));
}

#define T(name) TEST_ON_AS(struct place, p, start(p), stop(p), name)

/* wq.page_offset has 5 bits, so the next free unit, 33/64 or 36/64 of a page, is not usable. */
T(test_srq_rings_start_where_page_offset_can_name_them)
{
	struct bb_srq *srq[N_SRQ];
	struct bb_cq *cq[N_SRQ];

	for (unsigned int i = 0; i < N_SRQ; i++) {
		srq[i] = make_srq(p);
		assert_in_range(srq_ring(srq[i])->offset % UMEM_PAGE, 0, HALF - 1);
		cq[i] = make_cq(p, 64);
	}
	for (unsigned int i = 0; i < N_SRQ; i++) {
		OK(bb_srq_destroy(srq[i]));
		OK(bb_cq_destroy(cq[i]));
	}
}

T(test_srq_rings_take_one_page_of_the_host_each)
{
	const unsigned int slabs = MANY * (unsigned int)sysconf(_SC_PAGESIZE) / SLAB + 1;
	const struct mlx5_qmem *qmem = &mlx5_dev_of(p->dev)->qmem;
	struct bb_srq *srq[MANY];

	for (unsigned int i = 0; i < MANY; i++)
		srq[i] = make_srq(p);
	assert_in_range(qmem->n_slabs, 1, 1 + slabs);
	for (unsigned int i = 0; i < MANY; i++)
		OK(bb_srq_destroy(srq[i]));
}

TEST_MAIN(env_eal_init("mlx5_srq_place"))
