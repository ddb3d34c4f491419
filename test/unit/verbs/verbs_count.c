/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * The cost of a post and of a completion by drivers/verbs above bare ibv_wr_*() on the same
 * provider, the null provider. devtools/instructions --bench runs it and needs these options and
 * function names. Both counts include the provider.
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

enum op {
	WRITE,
	INLINE,
	SEND,
	READ,
	LIST,
	ATOMIC,
	FENCE,
	UD,
	BELL /* SENDs, each with a doorbell of its own */
};

/* A kernel whose name ends in "last" signals only the last request of each batch. */
static const struct {
	const char *name;
	enum op op;
} kernels[] = {
	{"sge64/batch1/all", WRITE},      {"sge64/batch16/all", WRITE},
	{"sge64/batch16/last", WRITE},    {"inline8/batch16/all", INLINE},
	{"send64/batch16/all", SEND},     {"send64/batch16/last", SEND},
	{"read64/batch16/all", READ},     {"list2x64/batch16/all", LIST},
	{"fetchadd/batch16/all", ATOMIC}, {"fence64/batch16/all", FENCE},
	{"datagram64/batch16/all", UD},   {"sendbell64/batch16/last", BELL},
};

static uint8_t mem[4096];
static struct bb_qp *qp;
static struct bb_cq *cq;
static struct bb_mr *mr;
static struct bb_ah *ah;
static enum op op;

/* Posts a request of a constant kind. @sge: two pieces. */
static inline __attribute__((always_inline)) int
post_one(enum op kind, uint64_t wr_id, const struct bb_sge *sge, uint32_t flags)
{
	const struct bb_sge word = {sge->addr, 8, sge->lkey};
	const uint64_t raddr = (uintptr_t)mem + 1024;

	switch (kind) {
	case INLINE:
		return bb_post_write_inline(qp, wr_id, mem, 8, raddr, mr->rkey, flags);
	case SEND:
	case BELL:
		return bb_post_send(qp, wr_id, sge, 1, flags);
	case READ:
		return bb_post_read(qp, wr_id, sge, 1, raddr, mr->rkey, flags);
	case LIST:
		return bb_post_write(qp, wr_id, sge, 2, raddr, mr->rkey, flags);
	case ATOMIC:
		return bb_post_fetch_add(qp, wr_id, &word, raddr, mr->rkey, 1, flags);
	case UD:
		return bb_post_send_ud(qp, wr_id, sge, 1, ah, 7, 0x11, flags);
	case FENCE:
		flags |= BB_SEND_FENCE;
		break;
	default:
		break;
	}
	return bb_post_write(qp, wr_id, sge, 1, raddr, mr->rkey, flags);
}

static inline __attribute__((always_inline)) unsigned int
post_batch(enum op kind, uint64_t i, uint32_t batch, bool last)
{
	const struct bb_sge sge[2] = {{(uintptr_t)mem, 64, mr->lkey},
				      {(uintptr_t)mem + 64, 64, mr->lkey}};
	unsigned int bad = 0;

	for (uint32_t k = 1; k < batch; k++) {
		bad += post_one(kind, i++, sge, last ? 0 : BB_SEND_SIGNALED) != 0;
		if (kind == BELL)
			bb_qp_ring(qp);
	}
	bad += post_one(kind, i, sge, BB_SEND_SIGNALED) != 0;
	bb_qp_ring(qp);
	return bad;
}

/* Counted. */
static NOINLINE unsigned int
count_post_other(uint64_t i, uint32_t batch, bool last)
{
	switch (op) {
	case INLINE:
		return post_batch(INLINE, i, batch, false);
	case SEND:
		return last ? post_batch(SEND, i, batch, true) : post_batch(SEND, i, batch, false);
	case READ:
		return post_batch(READ, i, batch, false);
	case LIST:
		return post_batch(LIST, i, batch, false);
	case ATOMIC:
		return post_batch(ATOMIC, i, batch, false);
	case FENCE:
		return post_batch(FENCE, i, batch, false);
	case UD:
		return post_batch(UD, i, batch, false);
	case BELL:
		return post_batch(BELL, i, batch, true);
	default:
		return post_batch(WRITE, i, batch, true);
	}
}

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

/* Posts a request of a constant kind by hand. */
static inline __attribute__((always_inline)) void
baseline_one(enum op kind, struct ibv_qp_ex *ex, const struct ibv_sge *list)
{
	const uint64_t raddr = (uintptr_t)mem + 1024;

	switch (kind) {
	case INLINE:
		ibv_wr_rdma_write(ex, mr->rkey, raddr);
		ibv_wr_set_inline_data(ex, mem, 8);
		return;
	case SEND:
	case BELL:
		ibv_wr_send(ex);
		break;
	case READ:
		ibv_wr_rdma_read(ex, mr->rkey, raddr);
		break;
	case LIST:
		ibv_wr_rdma_write(ex, mr->rkey, raddr);
		ibv_wr_set_sge_list(ex, 2, list);
		return;
	case ATOMIC:
		ibv_wr_atomic_fetch_add(ex, mr->rkey, raddr, 1);
		ibv_wr_set_sge(ex, mr->lkey, (uintptr_t)mem, 8);
		return;
	case UD:
		ibv_wr_send(ex);
		ibv_wr_set_ud_addr(ex, verbs_ah_of(&ah->av), 7, 0x11);
		break;
	default:
		ibv_wr_rdma_write(ex, mr->rkey, raddr);
		break;
	}
	ibv_wr_set_sge(ex, list->lkey, list->addr, list->length);
}

static inline __attribute__((always_inline)) int
baseline_batch(enum op kind, struct ibv_qp_ex *ex, uint64_t i, uint32_t batch, bool last)
{
	const struct ibv_sge list[2] = {{(uintptr_t)mem, 64, mr->lkey},
					{(uintptr_t)mem + 64, 64, mr->lkey}};
	const unsigned int more =
		(kind == FENCE ? IBV_SEND_FENCE : 0u) | (kind == INLINE ? IBV_SEND_INLINE : 0u);
	int bad = 0;

	ibv_wr_start(ex);
	for (uint32_t k = 1; k < batch; k++) {
		ex->wr_id = i++;
		ex->wr_flags = more | (last ? 0u : IBV_SEND_SIGNALED);
		baseline_one(kind, ex, list);
		if (kind == BELL) {
			bad |= ibv_wr_complete(ex);
			ibv_wr_start(ex);
		}
	}
	ex->wr_id = i;
	ex->wr_flags = more | IBV_SEND_SIGNALED;
	baseline_one(kind, ex, list);
	return bad | ibv_wr_complete(ex);
}

/* Counted: the baselines, on the same QP and CQ. */
static NOINLINE int
count_baseline_post_other(struct ibv_qp_ex *ex, uint64_t i, uint32_t batch, bool last)
{
	switch (op) {
	case INLINE:
		return baseline_batch(INLINE, ex, i, batch, false);
	case SEND:
		return last ? baseline_batch(SEND, ex, i, batch, true)
			    : baseline_batch(SEND, ex, i, batch, false);
	case READ:
		return baseline_batch(READ, ex, i, batch, false);
	case LIST:
		return baseline_batch(LIST, ex, i, batch, false);
	case ATOMIC:
		return baseline_batch(ATOMIC, ex, i, batch, false);
	case FENCE:
		return baseline_batch(FENCE, ex, i, batch, false);
	case UD:
		return baseline_batch(UD, ex, i, batch, false);
	case BELL:
		return baseline_batch(BELL, ex, i, batch, true);
	default:
		return baseline_batch(WRITE, ex, i, batch, true);
	}
}

/* Counted. */
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

static struct bb_dev *dev;
static struct bb_pd *pd;

static int
make(void)
{
	struct bb_qp_init_attr init;
	struct bb_cq_attr cattr;
	struct bb_qp_attr attr;
	struct bb_path path = {.port = 1, .dgid = {[15] = 1}};
	struct bb_qp_addr addr;

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
	init.max_sge = 2;
	init.max_inline = 64;
	init.type = op == UD ? BB_QPT_UD : BB_QPT_RC;
	if (bb_qp_create(pd, &init, &qp) != 0 || bb_qp_addr(qp, 1, 0, &addr) != 0)
		return -1;
	if (op == UD)
		return bb_ah_create(pd, &path, &ah) != 0 ? -1 : bb_qp_ud_up(qp, 1, 0, 0x11, 5);
	return bb_qp_connect(qp, &addr, &addr, &attr);
}

static int
unmake(void)
{
	int bad = bb_qp_destroy(qp);

	if (op == UD)
		bad |= bb_ah_destroy(ah);
	bad |= bb_cq_destroy(cq);
	bad |= bb_mr_dereg(mr);
	bad |= bb_pd_free(pd);
	return bad | bb_dev_close(dev);
}

/* Ends the counts of one kernel: callgrind writes them when this function returns. */
static NOINLINE void
count_done(void)
{
	__asm__ volatile("");
}

static int
run(bool ours, uint32_t batch, bool last, uint64_t n)
{
	struct verbs_qp *q = verbs_qp_of(qp);
	uint64_t i, wr_ids[32];
	struct bb_wc wc[32];

	for (i = 0; i < n; i += batch) {
		int bad;

		if (batch == 1)
			bad = ours ? (int)count_post_sge(i) : count_baseline_post_sge(q->ex, i);
		else if (op == WRITE && !last)
			bad = ours ? (int)count_post(i, batch)
				   : count_baseline_post(q->ex, i, batch);
		else
			bad = ours ? (int)count_post_other(i, batch, last)
				   : count_baseline_post_other(q->ex, i, batch, last);
		if (bad != 0)
			return 1;
		if ((ours ? count_poll(wc, 32) : count_baseline_poll(q->scq->ex, wr_ids)) !=
		    (last ? 1 : batch))
			return 1;
	}
	return 0;
}

int
main(int argc, char **argv)
{
	const char *side = "";
	char none[] = "", *kernel = none, *name;
	uint64_t n = 0;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--list-kernels") == 0)
			for (size_t k = 0; k < RTE_DIM(kernels); k++)
				puts(kernels[k].name);
		else if (strcmp(argv[i], "--kernel") == 0 && i + 1 < argc)
			kernel = argv[++i];
		else if (strcmp(argv[i], "--side") == 0 && i + 1 < argc)
			side = argv[++i];
		else if (strcmp(argv[i], "--instructions") == 0 && i + 1 < argc)
			n = strtoull(argv[++i], NULL, 10);
	}
	if (n == 0)
		return 0;
	if (bare_eal_init() < 0)
		return 1;
	for (name = strtok(kernel, ","); name != NULL; name = strtok(NULL, ",")) {
		for (size_t k = 0; k < RTE_DIM(kernels); k++)
			if (strcmp(kernels[k].name, name) == 0)
				op = kernels[k].op;
		if (make() != 0 ||
		    run(strcmp(side, "ours") == 0, strstr(name, "batch16") != NULL ? 16 : 1,
			strstr(name, "/last") != NULL, n) != 0 ||
		    unmake() != 0)
			return 1;
		count_done();
	}
	return 0;
}
