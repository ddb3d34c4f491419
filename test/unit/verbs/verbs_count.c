/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The cost of a write by drivers/verbs above bare ibv_wr_*() on the same provider, the null
 * provider. devtools/instructions --bench runs it and needs these options and function names.
 * Both counts include the provider.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bare_eal.h"
#include "bluebell.h"
#include "verbs_drv.h"
#include "verbs_null.h"

#ifdef __clang__
#define NOINLINE __attribute__((noinline)) /* clang makes no clones */
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif

static const char *const kernels[] = {"sge64/batch1/all", "sge64/batch16/all"};

static uint8_t mem[4096];
static struct bb_qp *qp;
static struct bb_cq *cq;
static struct bb_mr *mr;

/* Counted. */
static NOINLINE unsigned int
count_post(uint64_t i, uint32_t batch)
{
	const struct bb_sge sge = {(uintptr_t)mem, 64, mr->lkey};
	unsigned int bad = 0;

	for (uint32_t k = 0; k < batch; k++)
		bad += bb_post_write(qp, i + k, &sge, 1, (uintptr_t)mem + 1024, mr->rkey,
				     BB_SEND_SIGNALED) != 0;
	bb_qp_ring(qp);
	return bad;
}

/* Counted. */
static NOINLINE unsigned int
count_post_sge(uint64_t i)
{
	const struct bb_sge sge = {(uintptr_t)mem, 64, mr->lkey};

	if (bb_post_write(qp, i, &sge, 1, (uintptr_t)mem + 1024, mr->rkey, BB_SEND_SIGNALED) != 0)
		return 1;
	bb_qp_ring(qp);
	return 0;
}

/* Counted. */
static NOINLINE unsigned int
count_poll(struct bb_wc *wc, unsigned int n)
{
	return bb_cq_poll(cq, wc, n);
}

/* Counted: the baselines, on the same QP and CQ. */
static NOINLINE int
count_baseline_post(struct ibv_qp_ex *ex, uint64_t i, uint32_t batch)
{
	ibv_wr_start(ex);
	for (uint32_t k = 0; k < batch; k++) {
		ex->wr_id = i + k;
		ex->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_rdma_write(ex, mr->rkey, (uintptr_t)mem + 1024);
		ibv_wr_set_sge(ex, mr->lkey, (uintptr_t)mem, 64);
	}
	return ibv_wr_complete(ex);
}

/* Counted. */
static NOINLINE int
count_baseline_post_sge(struct ibv_qp_ex *ex, uint64_t i)
{
	ibv_wr_start(ex);
	ex->wr_id = i;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(ex, mr->rkey, (uintptr_t)mem + 1024);
	ibv_wr_set_sge(ex, mr->lkey, (uintptr_t)mem, 64);
	return ibv_wr_complete(ex);
}

/* Counted. */
static NOINLINE unsigned int
count_baseline_poll(struct ibv_cq_ex *ex, uint64_t *wr_ids)
{
	struct ibv_poll_cq_attr attr = {0};
	unsigned int n = 0;

	if (ibv_start_poll(ex, &attr) != 0)
		return 0;
	do
		wr_ids[n++] = ex->status == IBV_WC_SUCCESS ? ex->wr_id : 0;
	while (n < 32 && ibv_next_poll(ex) == 0);
	ibv_end_poll(ex);
	return n;
}

static int
make(void)
{
	struct bb_qp_init_attr init;
	struct bb_cq_attr cattr;
	struct bb_qp_attr attr;
	struct bb_qp_addr addr;
	struct bb_dev *dev;
	struct bb_pd *pd;

	bb_cq_attr_init(&cattr);
	bb_qp_init_attr_init(&init);
	bb_qp_attr_init(&attr);
	attr.access = BB_ACCESS_REMOTE_WRITE;
	null_reset();
	null_dev.silent = true;
	if (bb_dev_open(NULL_NAME, &dev) != 0 || bb_pd_alloc(dev, &pd) != 0 ||
	    bb_mr_reg(pd, mem, sizeof(mem), BB_ACCESS_LOCAL_WRITE | BB_ACCESS_REMOTE_WRITE, &mr) ||
	    bb_cq_create(dev, &cattr, &cq) != 0)
		return -1;
	init.send_cq = cq;
	init.recv_cq = cq;
	if (bb_qp_create(pd, &init, &qp) != 0 || bb_qp_addr(qp, 1, 0, &addr) != 0)
		return -1;
	return bb_qp_connect(qp, &addr, &addr, &attr);
}

static int
run(bool ours, uint32_t batch, uint64_t n)
{
	struct verbs_qp *q = verbs_qp_of(qp);
	uint64_t i, wr_ids[32];
	struct bb_wc wc[32];

	for (i = 0; i < n; i += batch) {
		int bad;

		if (batch == 1)
			bad = ours ? (int)count_post_sge(i) : count_baseline_post_sge(q->ex, i);
		else
			bad = ours ? (int)count_post(i, batch)
				   : count_baseline_post(q->ex, i, batch);
		if (bad != 0)
			return 1;
		if ((ours ? count_poll(wc, 32) : count_baseline_poll(q->scq->ex, wr_ids)) != batch)
			return 1;
	}
	return 0;
}

int
main(int argc, char **argv)
{
	const char *kernel = "", *side = "";
	uint64_t n = 0;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--list-kernels") == 0)
			for (size_t k = 0; k < RTE_DIM(kernels); k++)
				puts(kernels[k]);
		else if (strcmp(argv[i], "--kernel") == 0 && i + 1 < argc)
			kernel = argv[++i];
		else if (strcmp(argv[i], "--side") == 0 && i + 1 < argc)
			side = argv[++i];
		else if (strcmp(argv[i], "--instructions") == 0 && i + 1 < argc)
			n = strtoull(argv[++i], NULL, 10);
	}
	if (n == 0)
		return 0;
	if (bare_eal_init() < 0 || make() != 0)
		return 1;
	return run(strcmp(side, "ours") == 0, strstr(kernel, "batch16") != NULL ? 16 : 1, n);
}
